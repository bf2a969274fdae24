//! Claim: a host that pauses its switch without end stops what wants to go there, and by and by what shares a buffer with it; the
//! watchdog of PFC frees the queue after the time that it was given, and touches no other queue.

use crate::lab::{agreed_on, lay, leaf_spine, total};
use engine::link_name;
use engine::outcome::{Ending, LinkRecord, Outcome};
use model::Plan;
use std::collections::BTreeMap;

const US: u64 = 1_000_000;
/// Two hosts at a switch, at 400 Gb/s.
const PAIR: &str = "[topology.links]\nhosts = [\"a\", \"b\"]\nswitches = [\"s\"]\nrate = \"400Gbps\"\ndelay = \"1us\"\n\
                    links = [[\"a\", \"s\"], [\"s\", \"b\"]]\n[nic.congestion.none]\n[switch]\necn = \"off\"\n";
/// The longest pause: 65,535 x 512 bit times at 400 Gb/s, ps.
const LONGEST: u64 = 65_535 * 512 * 1_000 / 400;

/// Buffers of a switch that the storm fills, and of one that it does not.
const SMALL: &str = "3MB";
const LARGE: &str = "64MB";

/// The outcome on which all engines agree.
fn agreed(text: &str) -> (Plan, Outcome) {
    let checked = lay(text);
    let outcome = agreed_on(&checked, text);
    (checked.plan, outcome)
}

fn storm(host: &str, at: &str, until: &str) -> String {
    format!("[[failure]]\nstorm = [\"{host}\"]\nat = \"{at}\"\nuntil = \"{until}\"\n")
}

/// Flows by sender, receiver, size and start in us.
type Flows<'a> = &'a [(&'a str, &'a str, &'a str, u64)];

fn flows(list: Flows<'_>) -> String {
    let flow = |&(from, to, bytes, start): &(&str, &str, &str, u64)| {
        format!("{{ from = \"{from}\", to = \"{to}\", bytes = \"{bytes}\", start = \"{start}us\" }}")
    };
    let list: Vec<String> = list.iter().map(flow).collect();
    format!("[[workload]]\nflows = {{ list = [{}] }}\n", list.join(", "))
}

fn watchdog(keys: &str) -> String {
    format!("pfc.watchdog = {{ {keys} }}\n")
}

/// The records of links by name.
fn by_name(plan: &Plan, run: &Outcome) -> BTreeMap<String, LinkRecord> {
    let ids = (0..run.links.len() as u32).map(model::LinkId);
    ids.map(|id| (link_name(&plan.fabric, id), run.links[id.index()])).collect()
}

/// The path `a` to `b` is paused from the arrival of the first frame until the last one ends.
#[test]
fn a_storm_renews_its_pauses_and_the_last_one_ends_by_itself() {
    for (until, frames) in [("190us", 5), ("11us", 1), ("93885ns", 3), ("93884ns", 2)] {
        let text = PAIR.to_owned() + &storm("b", "10us", until) + &flows(&[("a", "b", "4MB", 0)]);
        let (plan, run) = agreed(&text);
        let port = by_name(&plan, &run)["s -> b"];
        let paused = (frames - 1) * (LONGEST / 2) + LONGEST;
        assert_eq!((port.pauses, port.paused.ps()), (frames, paused), "until {until}");
        assert_eq!((run.control.pause, run.control.resume), (frames, 0));
        // 4 MB take 85 us; from 11 us on nothing leaves until the storm is over.
        let received = run.messages[0].received.ps();
        assert!(received > 11 * US + paused && received < 11 * US + paused + 90 * US, "{received}");
        assert_eq!(run.data.dropped_buffer, 0);
    }
}

#[test]
fn a_link_that_goes_down_ends_a_storm_and_one_that_comes_back_lets_it_go_on() {
    let down = "[[failure]]\nlinks = [[\"s\", \"b\"]]\nat = \"50us\"\nuntil = \"60us\"\n";
    let text = PAIR.to_owned() + &storm("b", "10us", "80us") + down + &flows(&[("a", "b", "4MB", 0)]);
    let (plan, run) = agreed(&text);
    let port = by_name(&plan, &run)["s -> b"];
    // From 11 us to 50 us, and from 61 us until the only frame after the repair ends.
    assert_eq!((port.pauses, port.paused.ps()), (2, 39 * US + LONGEST));
    assert!(run.data.in_outages > 0 && run.ending == Ending::Finished);
}

/// Two racks, and a storm at `host3` in the second one. `host0` sends to it, and `host1` to its neighbour `host4`.
fn racks(buffer: &str, switch: &str, until: &str, more: Flows<'_>) -> (Plan, Outcome) {
    let all = [&[("host0", "host3", "8MB", 0), ("host1", "host4", "8MB", 0)], more].concat();
    let text = leaf_spine(2, 2, 3, "rate = \"400Gbps\"\ndelay = \"500ns\"")
        + "[scheme.rps]\n[nic.congestion.none]\n"
        + &format!("[switch]\nbuffer = \"{buffer}\"\necn = \"off\"\n{switch}")
        + &storm("host3", "10us", until)
        + &flows(&all);
    agreed(&text)
}

#[test]
fn a_storm_spreads_upstream_and_stops_flows_that_go_elsewhere() {
    let (plan, run) = racks(SMALL, "", "1ms", &[]);
    let links = by_name(&plan, &run);
    let way = ["leaf1 -> host3", "spine0 -> leaf1", "leaf0 -> spine0", "host0 -> leaf0"];
    for pair in way.windows(2) {
        let [first, then] = [0, 1].map(|i| links[pair[i]].paused);
        assert!(then.ps() > 0 && then < first, "{pair:?}: {first} {then}");
    }
    // The other flow is the storm's victim: it crosses links that are paused because of the first one.
    assert!(run.messages[1].received.ps() > 1_000 * US, "{}", run.messages[1].received);
    assert_eq!((run.ending.clone(), run.data.dropped_buffer), (Ending::Finished, 0));
    let (_, calm) = racks(SMALL, "", "11us", &[]);
    assert!(calm.messages[1].received.ps() < 500 * US, "{}", calm.messages[1].received);
}

#[test]
fn a_storm_longer_than_detection_and_a_poll_triggers_and_a_shorter_one_does_not() {
    let dog = watchdog("detection-time = \"1ms\", restoration-time = \"1ms\", poll-interval = \"500us\"");
    for (until, found) in [("800us", 0), ("1600us", 1), ("3ms", 1)] {
        let (plan, run) = racks(SMALL, &dog, until, &[]);
        let port = by_name(&plan, &run)["leaf1 -> host3"];
        assert_eq!((port.storms, port.storms_restored), (found, found), "until {until}");
        assert_eq!(run.data.dropped_watchdog > 0, found > 0);
        assert_eq!((run.ending, run.data.dropped_buffer), (Ending::Finished, 0));
    }
}

/// Two senders, two receivers, and a host of the storm that sends, too: only the queue of the storm loses packets, and what comes in by
/// its port.
#[test]
fn only_the_stormed_queue_of_its_port_loses_packets() {
    let dog = watchdog("detection-time = \"1ms\", restoration-time = \"1ms\", poll-interval = \"500us\"");
    let (plan, run) = racks(LARGE, &dog, "4ms", &[("host3", "host1", "200kB", 2_500)]);
    for (name, link) in by_name(&plan, &run) {
        let stormed = name == "leaf1 -> host3";
        assert_eq!(link.storm_drops > 0, stormed, "{name}");
        assert_eq!(link.storm_drops_in > 0, stormed, "{name}");
        assert_eq!((link.storms, link.storms_restored), (stormed.into(), stormed.into()), "{name}");
    }
    assert_eq!((run.ending.clone(), run.data.dropped_buffer + run.data.dropped_link), (Ending::Finished, 0));
    let drops = total(&run, |link| link.storm_drops + link.storm_drops_in);
    assert_eq!(drops, run.data.dropped_watchdog + run.control.dropped);
    let [from_storm, to_storm, beside] = [0, 1, 2].map(|i| run.messages[i].received.ps() / US);
    assert!(beside < 500, "the buffer has room for the storm");
    assert!(from_storm > 4_000 && to_storm > 4_000, "{from_storm} {to_storm}");
}

#[test]
fn forwarding_ignores_pauses_and_loses_nothing() {
    let dog = watchdog(
        "detection-time = \"1ms\", restoration-time = \"1ms\", poll-interval = \"500us\", action = \"forward\"",
    );
    let (plan, run) = racks(LARGE, &dog, "4ms", &[("host3", "host1", "200kB", 2_500)]);
    let port = by_name(&plan, &run)["leaf1 -> host3"];
    assert_eq!((port.storms, run.data.dropped_watchdog, run.data.dropped_buffer), (1, 0, 0));
    // Pauses count until the watchdog acts, 1 to 1.5 ms after the storm began.
    assert!(port.paused.ps() > 1_000 * US && port.paused.ps() < 1_500 * US, "{}", port.paused);
    let [from_storm, to_storm] = [0, 1].map(|i| run.messages[i].received.ps() / US);
    assert!((1_000..2_000).contains(&to_storm) && from_storm < 2_700, "{from_storm} {to_storm}");
}

/// A storm that has spread looks like a storm to the switches before it: they are paused as long, and poll at times of their own.
#[test]
fn a_storm_that_spreads_makes_other_watchdogs_act() {
    let dog = watchdog("detection-time = \"1ms\", restoration-time = \"1ms\", poll-interval = \"500us\"");
    let (plan, run) = racks(SMALL, &dog, "4ms", &[]);
    let storms = by_name(&plan, &run);
    assert!(storms["leaf1 -> host3"].storms > 0 || storms["spine0 -> leaf1"].storms > 0);
    assert!(run.messages[1].received.ps() > 1_000 * US, "the victim has waited for a watchdog");
    assert_eq!((run.ending, run.data.dropped_buffer), (Ending::Finished, 0));
    // A port of a spine that ignores the pauses of a full leaf fills its headroom, too. No switch is to blame for what is lost then.
    let dog = dog.replace("500us", "500us\", action = \"forward");
    let (_, run) = racks(SMALL, &dog, "4ms", &[]);
    assert!(run.data.dropped_buffer > 0 && run.broke_lossless.is_empty());
}

/// A storm of 0.7 s, with the times of SONiC.
#[test]
fn the_watchdog_of_sonic_takes_200_to_400_ms() {
    let text = PAIR.to_owned()
        + &watchdog("")
        + "[stop]\nno-progress = \"2s\"\n"
        + &storm("b", "10us", "700ms")
        + &flows(&[("a", "b", "4MB", 0)]);
    let (plan, run) = agreed(&text);
    let port = by_name(&plan, &run)["s -> b"];
    let paused = port.paused.ps() / 1_000 / US;
    assert!((200..400).contains(&paused), "{paused} ms");
    assert_eq!((port.storms, port.storms_restored, run.ending), (1, 1, Ending::Finished));
    let end = run.messages[0].received.ps() / 1_000 / US;
    assert!((900..1_100).contains(&end), "restored after 200 to 400 ms without pauses: {end} ms");
}

/// SONiC on Spectrum asks what the queue holds; on Tomahawk it asks for pauses alone.
#[test]
fn a_watchdog_that_looks_into_queues_leaves_an_idle_one_alone() {
    let storms = |detection: &str, traffic: Flows<'_>| {
        let times = "detection-time = \"200us\", restoration-time = \"100us\", poll-interval = \"100us\"";
        let dog = watchdog(&format!("{times}, detection = \"{detection}\""));
        let text = PAIR.to_owned() + &dog + &storm("b", "10us", "900us") + &flows(traffic);
        let (plan, run) = agreed(&text);
        assert_eq!(run.ending, Ending::Finished, "{text}");
        let port = by_name(&plan, &run)["s -> b"];
        (port.storms, port.storm_drops > 0)
    };
    // The other host's traffic goes the other way, until the storm is over.
    let idle: Flows<'_> = &[("b", "a", "1MB", 0), ("b", "a", "1MB", 1000)];
    assert_eq!(storms("broadcom", idle), (1, false), "no data waits, and replies are not paused");
    assert_eq!(storms("nvidia", idle), (0, false));
    let held: Flows<'_> = &[("a", "b", "4MB", 0)];
    assert_eq!(storms("broadcom", held), (1, true));
    assert_eq!(storms("nvidia", held), (1, true));
}
