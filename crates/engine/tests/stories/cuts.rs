//! Claim: a switch that cuts data sends every header on while headers fit; it loses and counts the rest.

use crate::lab::{agreed_on, lay, run_on};
use crate::receivers::{Habit, with};
use engine::outcome::{EventKind, Outcome, Passed};
use model::record::RecordPlan;
use model::{LinkId, Psn, QpId, Time};
use scenario::Checked;
use std::collections::BTreeMap;

/// Senders at line rate and their receiver, host0, at one switch, whose queue of data holds ten frames. All run for a
/// fixed time. Links differ by `skew` nanoseconds, so that with some skew no two packets arrive at one instant.
fn incast(senders: usize, skew: usize, switch: &str) -> String {
    let mut links = String::new();
    for host in 0..=senders {
        links += &format!("[\"host{host}\", \"s\", \"100Gbps\", \"{}ns\"], ", 1000 + host * skew);
    }
    format!(
        "[topology.links]\nhosts = {}\nswitches = [\"s\"]\nlinks = [{links}]\n[wire]\nframe = \"4158B\"\n\
         [switch]\npfc = \"off\"\nbuffer = \"10MB\"\nqueue-cap = \"41700B\"\n{switch}\n\
         [nic.congestion.none]\n[stop]\nafter = \"150us\"\n[[workload]]\nincast = {{ senders = {senders}, bytes = \"4MB\" }}\n",
        senders + 1
    )
}

/// Strict priority for all control packets; cut packets are at most `cap`.
fn headers_first(cap: &str) -> String {
    format!(
        "cut = \"on\"\nclasses = [{{ kinds = [\"trimmed\"], cap = \"{cap}\" }}, \
         {{ kinds = [\"ack\", \"nack\", \"cnp\", \"signal\", \"control\"] }}, {{ kinds = [\"data\"] }}]"
    )
}

/// While a data frame takes its time on the receiver's link, one frame of every sender arrives and becomes a header. Of
/// headers of 64 B with gaps of 20 B, 49 fit into the time of a frame of 4158 B with its gap, and 50 do not. All senders
/// are in step, and a data frame is not interrupted, so up to twice as many headers wait.
#[test]
fn every_header_arrives_while_headers_fit() {
    let run = |senders: usize| {
        let text = incast(senders, 0, &headers_first("8kB"));
        agreed_on(&lay(&text), &text)
    };
    let fits = run(49);
    assert!(fits.data.cut > 5_000, "{:?}", fits.data);
    assert_eq!(
        (fits.data.headers_lost, fits.data.dropped_buffer, fits.data.cut_last_hop),
        (0, 0, fits.data.cut)
    );
    let exceeds = run(51);
    assert!(exceeds.data.headers_lost > 50, "{:?}", exceeds.data);
    assert_eq!(exceeds.data.dropped_buffer, 0, "no data is dropped");
}

#[test]
fn with_preset_classes_headers_leave_before_data_or_with_it() {
    for (classes, lost) in [("strict", false), ("one", true), ("cnp-first", true)] {
        for victim in ["arriving", "even"] {
            let text = incast(12, 0, &format!("classes = \"{classes}\"\ncut = {{ victim = \"{victim}\" }}"));
            let run = agreed_on(&lay(&text), &text);
            assert!(run.data.cut > 500 && run.data.headers_arrived > 0, "{classes}: {:?}", run.data);
            assert_eq!(
                run.data.headers_lost > 0,
                lost,
                "{classes}: a full queue has no room for headers either"
            );
        }
    }
}

/// A packet of a queue pair.
type Name = (QpId, Psn);

/// Times at which data packets reached the switch, and those at which it cut packets, in order.
fn arrivals_and_cuts(checked: &mut Checked) -> (Outcome, BTreeMap<Time, Name>, Vec<(Time, Name)>) {
    let plan = &mut checked.plan;
    plan.record = RecordPlan {
        qps: (0..plan.qps.len() as u32).map(QpId).collect(),
        width: Time::from_us(2),
        bins: 16,
        follow: (0..plan.qps.len() as u32).map(QpId).collect(),
        events: 1_000_000,
        taps: (1..plan.fabric.hosts() as u32).map(LinkId).collect(),
        ..plan.record.clone()
    };
    let run = run_on(checked);
    let plan = &checked.plan;
    let mut arrivals = BTreeMap::new();
    for frame in &run.notes.frames {
        let link = &plan.fabric.links()[frame.link.index()];
        if let Passed::Packet(packet, _) = frame.what {
            let at = frame.at + plan.wire.transmission(link.rate, packet.frame()) + link.delay;
            assert!(arrivals.insert(at, (packet.qp(), packet.psn())).is_none(), "two packets arrive at {at}");
        }
    }
    let cuts = run.notes.events.iter().filter(|e| e.what == EventKind::Cut).map(|e| (e.at, (e.qp, e.psn)));
    let mut cuts: Vec<_> = cuts.collect();
    cuts.sort_by_key(|(at, _)| *at);
    (run, arrivals, cuts)
}

/// The newest arrival before `at` that is still in the queue, as far as cuts decide.
fn newest(arrivals: &BTreeMap<Time, Name>, cut: &[(Time, Name)], at: Time) -> Option<Name> {
    let waits = |name: &&Name| !cut.iter().rev().take(500).any(|(_, gone)| gone == *name);
    arrivals.range(..at).rev().map(|(_, name)| name).find(waits).copied()
}

#[test]
fn a_coin_cuts_the_arriving_packet_or_the_newest_one_that_waits() {
    for (victim, even) in [("arriving", false), ("even", true)] {
        let text = incast(12, 7, &format!("cut = {{ victim = \"{victim}\" }}"));
        let mut checked = lay(&text);
        agreed_on(&checked, &text);
        let (run, arrivals, cuts) = arrivals_and_cuts(&mut checked);
        assert_eq!((cuts.len() as u64, run.notes.more_events), (run.data.cut, 0));
        let (mut arriving, mut waiting) = (0, 0);
        for (i, (at, name)) in cuts.iter().enumerate() {
            match arrivals.get(at) {
                Some(arrival) if arrival == name => arriving += 1,
                _ => {
                    waiting += 1;
                    assert_eq!(newest(&arrivals, &cuts[..i], *at), Some(*name), "cut at {at}");
                }
            }
        }
        let share = f64::from(waiting) / f64::from(arriving + waiting);
        assert!(if even { (0.4..0.6).contains(&share) } else { waiting == 0 }, "{victim}: {share}");
    }
}

/// With a large shared buffer, a cut depends on the queue of one port alone.
#[test]
fn caps_need_no_heavy_visits_unless_the_shared_buffer_may_fill() {
    let control_first = "classes = [{ kinds = [\"ack\", \"nack\", \"cnp\", \"control\", \"trimmed\"] }, { kinds = [\"data\"] }]";
    let weighted = "classes = [{ kinds = [\"ack\", \"nack\", \"cnp\", \"control\", \"trimmed\"], weight = 1, cap = \"9kB\" }, { kinds = [\"data\"], weight = 3 }]";
    for classes in [control_first, "classes = \"strict\"", weighted] {
        for (overflow, cuts) in [("cut = { victim = \"even\" }", true), ("cut = \"on\"", true), ("", false)] {
            let text = incast(12, 7, &format!("{classes}\n{overflow}"));
            let run = agreed_on(&lay(&text), &text);
            let refused = if cuts { run.data.cut } else { run.data.dropped_buffer };
            assert!(refused > 500, "{:?}", run.data);
            // The end of the run may cut the last window short.
            assert!(run_on(&lay(&text)).effort.heavy <= 1, "{text}");
            let small = lay(&text.replace("10MB", "90kB"));
            agreed_on(&small, &text);
            assert!(run_on(&small).effort.heavy > 10, "{text}");
        }
    }
}

/// Switches that spray, hash, or take the shortest queue, with headers and data in weighted classes.
#[test]
fn ports_with_weighted_classes_need_no_heavy_visits_whatever_chooses_the_path() {
    for scheme in ["rps", "ecmp", "ar", "drill", "oblivious"] {
        let text = format!(
            "[topology.leaf-spine]\nleaves = 3\nspines = 3\nhosts-per-leaf = 4\nrate = \"100Gbps\"\ndelay = \"500ns\"\n\
             [wire]\npayload = \"4096B\"\n[switch]\npfc = \"off\"\ncut = {{ frame = \"57B\", victim = \"even\" }}\n\
             queue-cap = \"33kB\"\nclasses = [{{ kinds = [\"trimmed\", \"control\", \"cnp\", \"nack\", \"signal\"], weight = 1 }}, \
             {{ kinds = [\"data\", \"ack\"], weight = 2 }}]\n[nic.transport.dcp]\n[scheme.{scheme}]\n[[workload]]\n\
             permutation = {{ bytes = \"300kB\", kind = \"cross-rack\" }}\n[[workload]]\nincast = {{ senders = 8, bytes = \"100kB\" }}\n"
        );
        let run = agreed_on(&lay(&text), &text);
        assert!(run.data.cut > 20, "{scheme}: {:?}", run.data);
        assert!(run_on(&lay(&text)).effort.heavy <= 1, "{scheme}");
    }
}

#[test]
fn a_lossy_buffer_with_dynamic_thresholds_cuts_as_well() {
    let text = incast(12, 0, "cut = \"on\"").replace("queue-cap = \"41700B\"\n", "drop-alpha = \"1/64\"\n");
    let run = agreed_on(&lay(&text), &text);
    assert!(run.data.cut > 500);
    assert_eq!((run.data.headers_lost, run.data.dropped_buffer), (0, 0));
}

#[test]
fn all_flows_end_on_a_fabric_that_cuts_everywhere() {
    for (classes, nic) in
        [("strict", ""), ("one", "[nic.transport.irn]"), ("cnp-first", "[nic.transport.go-back-n]")]
    {
        let text = format!(
            "[topology.leaf-spine]\nleaves = 4\nspines = 2\nhosts-per-leaf = 4\n[switch]\npfc = \"off\"\nbuffer = \"1MB\"\n\
             queue-cap = \"4kB\"\nqueue-cap-to-hosts = \"2kB\"\nclasses = \"{classes}\"\ncut = {{ victim = \"even\" }}\n\
             [links]\nloss = 0.001\nlose-replies = true\n[scheme.rps]\n[nic]\ntimeout = {{ fixed = \"50us\" }}\n{nic}\n\
             [[workload]]\nall-to-all = {{ per-pair = \"20kB\", groups = \"all\" }}\n"
        );
        let run = agreed_on(&lay(&text), &text);
        let inside = run.data.cut - run.data.cut_last_hop;
        assert!(inside > 10 && run.data.cut_last_hop > 10, "{classes}: {:?}", run.data);
        assert_eq!(run.ending.name(), "finished");
    }
}

/// NICs that read headers: paths, delivery and control. With credit and a window together a sender may wait for its timer, which
/// takes the place of requests for credit.
const READERS: [&str; 6] = [
    "[scheme.entropy-mixed]\n[nic.transport.uec]\n[nic.congestion.nscc]",
    "[scheme.entropy-mixed]\n[nic.transport.uec]\n[nic.congestion.rccc]",
    "[scheme.entropy-mixed]\n[nic.transport.uec]\n[nic.congestion.rccc]\nnscc = {}",
    "[scheme.reps]\n[nic.transport.uec]\n[nic.congestion.none]",
    "[scheme.mrc]\n[nic.transport.mrc]\nlost-after = 0\n[nic.congestion.nscc]",
    "[scheme.rps]\n[nic.transport.dcp]\n[nic.congestion.none]",
];

#[test]
fn nics_that_read_headers_need_no_timer_and_send_a_cut_packet_again_once_per_cut() {
    for nic in READERS {
        let text = format!(
            "[topology.leaf-spine]\nleaves = 4\nspines = 2\nhosts-per-leaf = 4\n[switch]\npfc = \"off\"\nbuffer = \"10MB\"\n\
             queue-cap = \"15kB\"\nqueue-cap-to-hosts = \"5kB\"\nclasses = \"strict\"\ncut = {{ victim = \"even\" }}\n\
             ecn = {{ kmin = \"3kB\", kmax = \"12kB\", pmax = 1.0 }}\n[nic]\ntimeout = {{ fixed = \"1s\" }}\n{nic}\n\
             [[workload]]\nall-to-all = {{ per-pair = \"50kB\", groups = \"all\" }}\n"
        );
        let run = agreed_on(&lay(&text), &text);
        let data = run.data;
        let inside = data.cut - data.cut_last_hop;
        assert!(inside > 10 && data.cut_last_hop > 10, "{nic}: {data:?}");
        assert_eq!((run.ending.name(), run.control.timeout), ("finished", 0), "{nic}");
        assert_eq!((data.headers_lost, data.dropped_buffer, data.headers_arrived), (0, 0, data.cut), "{nic}");
        assert_eq!(
            (data.retransmitted, data.spurious, data.sent),
            (data.cut, 0, data.accepted + data.cut),
            "{nic}"
        );
    }
}

#[test]
fn a_receiver_that_answers_headers_spares_its_senders_the_wait_for_their_timers() {
    let weighted = "cut = \"on\"\nclasses = [{ kinds = [\"ack\", \"nack\", \"cnp\"] }, \
        { kinds = [\"trimmed\"], weight = 1 }, { kinds = [\"data\"], weight = 3 }]";
    for switch in [&headers_first("8kB"), "cut = { victim = \"even\" }", weighted] {
        for nic in ["go-back-n", "ideal"] {
            let text = incast(12, 0, switch).replace("4MB", "60kB").replace("\"150us\"", "\"1s\"");
            let text = format!("{text}[nic.transport.{nic}]\n");
            let [silent, answers] = [false, true].map(|answers| with(Habit::AnswersCuts(answers), &text));
            for run in [&silent, &answers] {
                assert!(run.data.headers_arrived > 50 && run.data.headers_lost == 0, "{:?}", run.data);
                assert_eq!(run.ending.name(), "finished");
            }
            if nic == "ideal" {
                // Otherwise these receivers only send an ACK for every data packet. Their senders ignore NACKs.
                let packets = answers.data.accepted + answers.data.duplicate;
                let replies = answers.control.ack + answers.control.nack;
                assert_eq!(replies, packets + answers.data.headers_arrived, "a reply to every header");
                assert!(answers.control.nack > 0);
            } else {
                assert!(silent.control.timeout > 0 && answers.control.timeout == 0);
                assert!(answers.end < silent.end, "{} {}", answers.end, silent.end);
            }
        }
    }
}
