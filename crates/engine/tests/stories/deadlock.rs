//! Claim: a run in which nothing moves any more ends on every engine and names the causes: the ring of pauses of a
//! PFC deadlock, messages that wait for others, or a flow whose packets never arrive.

use crate::lab::{agreed_on, lay, leaf_spine};
use engine::link_name;
use engine::outcome::{Ending, Outcome, Stall, Waiting};
use model::{MessageId, Time};
use std::collections::BTreeSet;

fn stall(run: &Outcome) -> &Stall {
    match &run.ending {
        Ending::Stalled(stall) => stall,
        other => panic!("it ended as {other:?}"),
    }
}

/// `n` switches in a ring with a host on each. Every host sends clockwise to the host `hops` switches away.
fn ring(n: usize, hops: usize, bytes: &str, more: &str) -> String {
    let names: Vec<String> = (0..n).map(|s| format!("s{s}")).collect();
    let uplinks = (0..n).map(|i| format!("[\"host{i}\", \"s{i}\", \"400Gbps\"], "));
    let around = (0..n).map(|i| format!("[\"s{i}\", \"s{}\"], ", (i + 1) % n));
    let links: String = uplinks.chain(around).collect();
    let list: String = (0..n)
        .map(|i| format!("{{ from = \"host{i}\", to = \"host{}\", bytes = \"{bytes}\" }}, ", (i + hops) % n))
        .collect();
    format!(
        "[topology.links]\nhosts = {n}\nswitches = {names:?}\ndelay = \"200ns\"\nlinks = [{links}]\n\
         [switch]\nbuffer = \"120kB\"\n[nic.congestion.none]\n[stop]\nno-progress = \"5ms\"\n{more}\n\
         [[workload]]\n[workload.flows]\nlist = [{list}]\n"
    )
}

#[test]
fn a_ring_of_switches_that_pause_each_other_is_named() {
    // Every link of the ring must carry the traffic of its own host and of the host before: twice its rate. Each
    // switch pauses the one before it until its own packets move, so none ever moves.
    for n in [5, 6] {
        let text = ring(n, 2, "2MB", "");
        let checked = lay(&text);
        let run = agreed_on(&checked, &text);
        let stall = stall(&run);
        assert_eq!(run.data.dropped_buffer, 0);
        assert_eq!(stall.count, n as u64);
        assert!(
            stall
                .waiting
                .iter()
                .all(|(_, w)| matches!(w, Waiting::Packets { acked, total } if acked < total))
        );
        let fabric = &checked.plan.fabric;
        let named: BTreeSet<String> = stall.pfc_cycle.iter().map(|l| link_name(fabric, *l)).collect();
        let ring: BTreeSet<String> = (0..n).map(|i| format!("s{i} -> s{}", (i + 1) % n)).collect();
        assert_eq!(named, ring);
        assert_eq!(stall.pfc_cycle.len(), n);
        for (i, link) in stall.pfc_cycle.iter().enumerate() {
            let next = stall.pfc_cycle[(i + 1) % n];
            assert_eq!(fabric.links()[link.index()].to, fabric.links()[next.index()].from, "in order");
            assert!(stall.paused.contains(link));
        }
        assert!(run.data.in_flight > 0 && run.end >= stall.since);
    }
}

#[test]
fn a_deadlock_without_timers_ends_too() {
    let text = ring(5, 2, "2MB", "[nic]\ntimeout = \"none\"");
    let checked = lay(&text);
    let run = agreed_on(&checked, &text);
    assert_eq!(stall(&run).pfc_cycle.len(), 5);
    assert_eq!(run.control.timeout, 0);
}

/// A watchdog finds each paused queue of the ring stormed, and drops it. What was lost is sent again, and the ring may close again: after some
/// rounds all flows are through.
#[test]
fn a_watchdog_ends_a_deadlock() {
    let dog = "pfc.watchdog = { detection-time = \"1ms\", restoration-time = \"1ms\" }";
    let text = ring(5, 2, "400kB", "").replace("[switch]", &format!("[switch]\n{dog}"));
    let lasting = text.replace("no-progress = \"5ms\"", "no-progress = \"100ms\"");
    let run = agreed_on(&lay(&lasting), &lasting);
    assert_eq!((run.ending, run.data.dropped_buffer), (Ending::Finished, 0));
    assert!(run.data.dropped_watchdog > 0);
    assert!(run.links.iter().any(|link| link.storms > 0));
}

#[test]
fn to_the_next_switch_there_is_no_deadlock() {
    // No packet crosses two links of the ring, so no link of the ring waits for another.
    let text = ring(5, 1, "2MB", "");
    let checked = lay(&text);
    let run = agreed_on(&checked, &text);
    assert_eq!(run.ending, Ending::Finished);
    assert!(run.control.pause > 0);
}

#[test]
fn a_message_whose_trigger_never_fires_is_named() {
    let fabric = leaf_spine(2, 2, 2, "");
    let text = format!(
        "{fabric}[[workload]]\nall-to-all = {{ per-pair = \"9kB\", groups = \"all\", schedule = \"staggered\" }}\n"
    );
    let mut checked = lay(&text);
    // The last message of a host needs one trigger more than there are.
    let plan = &mut checked.plan;
    let last = (0..plan.messages.len()).rfind(|&i| plan.messages[i].on_acked.is_empty()).unwrap();
    plan.messages[last].needs += 1;
    let run = agreed_on(&checked, &text);
    let stall = stall(&run);
    assert_eq!(stall.waiting, [(MessageId(last as u32), Waiting::Triggers)]);
    assert_eq!((stall.count, stall.pfc_cycle.len(), stall.paused.len()), (1, 0, 0));
    assert_eq!(run.messages[last].start, Time::NEVER);
}

#[test]
fn messages_behind_one_that_cannot_start_wait_for_their_predecessor() {
    let text = format!(
        "{}[[workload]]\n[workload.flows]\nlist = [\n{{ from = \"host0\", to = \"host3\", bytes = \"9kB\" }},\n\
         {{ from = \"host0\", to = \"host3\", bytes = \"9kB\" }},\n]\n",
        leaf_spine(2, 2, 2, "")
    );
    let mut checked = lay(&text);
    checked.plan.messages[0].needs = 1;
    let run = agreed_on(&checked, &text);
    let expected = [(MessageId(0), Waiting::Triggers), (MessageId(1), Waiting::Predecessor)];
    assert_eq!(stall(&run).waiting, expected);
    assert_eq!(run.data.sent, 0);
}

#[test]
fn a_flow_whose_packets_all_get_lost_ends_by_lack_of_progress() {
    let text = format!(
        "{}[links]\nloss = 1.0\n[stop]\nno-progress = \"20ms\"\n[[workload]]\npermutation = {{ bytes = \"9kB\" }}\n",
        leaf_spine(2, 2, 2, "")
    );
    let checked = lay(&text);
    let run = agreed_on(&checked, &text);
    let stall = stall(&run);
    assert_eq!(stall.since, Time::ZERO, "nothing was ever accepted");
    assert_eq!(stall.count, 4);
    assert!(stall.waiting.iter().all(|(_, w)| *w == Waiting::Packets { acked: 0, total: 7 }));
    // A timeout occurs every millisecond, until 20 ms have passed without progress.
    assert!((4 * 19..=4 * 21).contains(&run.control.timeout), "{}", run.control.timeout);
    assert_eq!(run.data.sent, run.data.dropped_link);
}

#[test]
fn a_flow_whose_replies_all_get_lost_ends_with_every_byte_delivered() {
    // Two hosts on one switch; only the link from the switch to the receiver loses nothing in either direction.
    let text = "[topology.links]\nhosts = [\"a\", \"b\"]\nswitches = [\"s\"]\n\
                links = [[\"a\", \"s\"], [\"b\", \"s\"]]\n[links]\nloss = 0.03\nlose-replies = true\n\
                [stop]\nno-progress = \"20ms\"\n[nic]\nack-duplicates = false\n[[workload]]\n[workload.flows]\n\
                list = [{ from = \"a\", to = \"b\", bytes = \"60kB\" }]\n";
    let ended: Vec<Outcome> = (1..40u64)
        .map(|seed| {
            let checked = lay(&format!("seed = {seed}\n{text}"));
            agreed_on(&checked, text)
        })
        .collect();
    // The last ACK is lost in some runs. Duplicates are not acknowledged here, so the sender then never learns of
    // the end.
    let stalled: Vec<_> = ended.iter().filter(|run| matches!(run.ending, Ending::Stalled(_))).collect();
    assert!(!stalled.is_empty() && stalled.len() < ended.len(), "{} of {}", stalled.len(), ended.len());
    for run in stalled {
        assert!(run.messages[0].received != Time::NEVER && run.messages[0].acked == Time::NEVER);
        assert_eq!(stall(run).count, 1);
    }
}

#[test]
fn a_run_that_stops_with_its_last_packets_on_the_wire_has_not_stalled() {
    // No timer runs; the stop cuts short the window in which the packets would have arrived.
    for us in 1..=4 {
        let text = format!(
            "{}[stop]\nafter = \"{us}000001ps\"\n[nic]\ntimeout = \"none\"\n[[workload]]\n\
             permutation = {{ bytes = \"1kB\", kind = \"cross-rack\" }}\n",
            leaf_spine(2, 2, 2, "")
        );
        let checked = lay(&text);
        let run = agreed_on(&checked, &text);
        assert_eq!((run.ending, run.data.in_flight), (Ending::Stopped, 4), "{us} us");
    }
}
