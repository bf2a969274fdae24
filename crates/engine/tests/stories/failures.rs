//! Claim: links go down, come back and slow down at exactly the picosecond that the scenario gives. After
//! detection, routing finds the remaining paths. No flow gets stuck, and schemes that promise order keep it.

use crate::lab::{agreed_on, lay, leaf_spine, run};
use engine::Outcome;
use engine::outcome::Ending;
use model::{LinkId, Plan, Time};
use std::collections::BTreeMap;

/// One link of 100 Gb/s and 1 us. A full frame takes 121.6 ns.
const CABLE: &str = "[topology.links]\nhosts = [\"a\", \"b\"]\nlinks = [[\"a\", \"b\"]]\n\
                     [nic.transport.ideal]\n[nic.congestion.none]\n";

fn failure(keys: &str) -> String {
    format!("[[failure]]\n{keys}\n")
}

/// One flow of `packets` full packets from one host to another.
fn one_flow(from: &str, to: &str, packets: u64) -> String {
    let bytes = packets * 1438;
    format!(
        "[[workload]]\nflows = {{ list = [{{ from = \"{from}\", to = \"{to}\", bytes = \"{bytes}B\" }}] }}\n"
    )
}

/// The outcome on which all engines agree.
fn agreed(text: &str) -> (Plan, Outcome) {
    let checked = lay(text);
    let outcome = agreed_on(&checked, text);
    (checked.plan, outcome)
}

fn counter(run: &Outcome, name: &str) -> u64 {
    run.counters.iter().copied().collect::<BTreeMap<_, _>>().get(name).copied().unwrap_or(0)
}

/// Packets lost on the links from the switch or host `name`.
fn lost_behind(plan: &Plan, run: &Outcome, name: &str) -> u64 {
    let node = plan.fabric.find(name).unwrap();
    let ports = plan.fabric.ports(node).iter();
    ports.map(|l| run.links[plan.fabric.link(l.from, l.port).index()].lost).sum()
}

#[test]
fn exactly_the_packets_in_flight_or_started_while_the_link_is_down_are_lost() {
    for (from, until) in [(5_000u64, 6_000), (5_000, 5_001), (0, 300), (1_216, 1_217), (11_000, 13_000)] {
        let text = format!(
            "{CABLE}{}{}",
            failure(&format!(
                "links = [[\"a\", \"b\"]]\none-way = true\nat = \"{from}ns\"\nuntil = \"{until}ns\""
            )),
            one_flow("a", "b", 100)
        );
        let (_, run) = agreed(&text);
        // Packet k starts at k x 121.6 ns and arrives 1121.6 ns later. Retransmissions start after the repair.
        let hit = |k: &u64| (k * 121_600 + 1_121_600) > from * 1000 && k * 121_600 < until * 1000;
        let expected = (0..100).filter(hit).count() as u64;
        assert_eq!(run.links[0].lost, expected, "down from {from} ns until {until} ns");
        assert_eq!(run.ending, Ending::Finished);
    }
}

#[test]
fn a_link_slowed_to_a_tenth_equals_a_link_of_a_tenth_of_the_rate() {
    let fabric = |rate: &str| {
        format!(
            "[topology.links]\nhosts = [\"a\", \"b\"]\nswitches = [\"s\"]\nlinks = [[\"a\", \"s\"], [\"s\", \"b\", \"{rate}\"]]\n"
        )
    };
    let slow = failure("links = [[\"s\", \"b\"]]\nrate = 0.1");
    let (_, failed) = agreed(&format!("{}{slow}{}", fabric("100Gbps"), one_flow("a", "b", 200)));
    // Marking thresholds depend on a port's nominal rate, so ECN is off to make both runs comparable.
    let ecn = "[switch]\necn = \"off\"\n";
    let (_, failed_unmarked) =
        agreed(&format!("{}{ecn}{slow}{}", fabric("100Gbps"), one_flow("a", "b", 200)));
    let (_, built) = agreed(&format!("{}{ecn}{}", fabric("10Gbps"), one_flow("a", "b", 200)));
    assert_eq!(failed_unmarked.messages, built.messages);
    assert!(failed.messages[0].acked >= built.messages[0].acked);
    // The slow port keeps the thresholds of 100 Gb/s in bytes. A port of 10 Gb/s with these thresholds is the same.
    let kept = "[[switch.ecn.at-rate]]\nrate = \"10Gbps\"\nkmin = \"100kB\"\nkmax = \"400kB\"\npmax = 0.2\n";
    let (_, marked) = agreed(&format!("{}{kept}{}", fabric("10Gbps"), one_flow("a", "b", 200)));
    let marks = |run: &Outcome| run.links.iter().map(|link| link.marks).sum::<u64>();
    assert!(marks(&failed) > 0 && marks(&failed) == marks(&marked), "{} {}", marks(&failed), marks(&marked));
    assert_eq!(failed.messages, marked.messages);
}

#[test]
fn a_new_rate_applies_from_the_next_start_on() {
    // Ten packets of 121.6 ns each, then four at 25 Gb/s of 486.4 ns each, then the old rate. Each change comes
    // while a packet is on the wire.
    let (at, until) = (9 * 121_600 + 1, 10 * 121_600 + 3 * 486_400 + 1);
    let text = format!(
        "{CABLE}{}{}",
        failure(&format!("links = [[\"a\", \"b\"]]\nrate = 0.25\nat = \"{at}ps\"\nuntil = \"{until}ps\"")),
        one_flow("a", "b", 20)
    );
    let (_, run) = agreed(&text);
    let sent = 10 * 121_600 + 4 * 486_400 + 6 * 121_600;
    assert_eq!(run.messages[0].last_sent, Time(sent));
    assert_eq!(run.messages[0].received, Time(sent + 1_000_000));
}

/// A link loses every packet that starts on it between 5 and 6 us, as a gray link with a chance of 1, and about one in ten with
/// a chance of 0.1. Packet k starts at k x 121.6 ns. Packets that are on the way already arrive.
#[test]
fn a_gray_link_loses_its_share_of_the_packets_that_start_while_it_is_gray() {
    let story = |loss: &str, until: u64, packets: u64| {
        let gray = format!(
            "links = [[\"a\", \"b\"]]\none-way = true\nloss = {loss}\nat = \"5us\"\nuntil = \"{until}us\""
        );
        let (_, run) = agreed(&format!("{CABLE}{}{}", failure(&gray), one_flow("a", "b", packets)));
        assert_eq!(run.ending, Ending::Finished);
        assert_eq!(run.data.retransmitted, run.links[0].lost, "each loss costs one retransmission");
        run.links[0].lost
    };
    let starts = (0..100u64).map(|k| k * 121_600);
    assert_eq!(story("1.0", 6, 100), starts.filter(|at| (5_000_000..6_000_000).contains(at)).count() as u64);
    // 95 us have 781 starts; six standard deviations are 50.
    let lost = story("0.1", 100, 2_000);
    assert!((28..=128).contains(&lost), "{lost} packets of 781 lost");
}

#[test]
fn routes_avoid_a_dead_spine_once_it_is_detected() {
    let story = |detection: u64| {
        let text = format!(
            "{}[routing]\ndetection = \"{detection}us\"\n[scheme.rps]\n{}[[workload]]\npermutation = {{ bytes = \"2MB\" }}\n",
            leaf_spine(4, 4, 2, ""),
            failure("switch = \"spine2\"\nat = \"10us\"")
        );
        let (checked, outcome) = run(&text);
        let last = checked.plan.fabric.find("spine2").unwrap();
        let into: u64 = (0..outcome.links.len())
            .filter(|&l| checked.plan.fabric.links()[l].to == last)
            .map(|l| outcome.links[l].lost)
            .sum();
        assert_eq!(outcome.ending, Ending::Finished);
        (into, outcome.messages.iter().map(|m| m.acked).max().unwrap())
    };
    let (few, soon) = story(2);
    let (many, late) = story(20);
    assert!(0 < few && few < many, "{few} and {many} packets lost on the way to the dead spine");
    assert!(soon < late, "{soon} and {late}");
}

/// Sixteen flows from one rack to another over four spines, of which one cannot be reached from the first rack. Some flows
/// hash to it.
#[test]
fn frozen_routes_lead_over_a_dead_link_for_ever_and_only_senders_with_other_paths_leave_it() {
    let story = |scheme: &str| {
        let text = format!(
            "{}[stop]\nafter = \"20ms\"\n[routing]\ndetection = \"never\"\n{scheme}\n{}[[workload]]\n\
             flows = {{ list = [{}] }}\n",
            leaf_spine(2, 4, 16, "uplink-rate = \"1600Gbps\""),
            failure("links = [[\"leaf0\", \"spine2\"]]\none-way = true"),
            (0..16)
                .map(|h| format!("{{ from = \"host{h}\", to = \"host{}\", bytes = \"400kB\" }}", h + 16))
                .collect::<Vec<_>>()
                .join(", ")
        );
        agreed(&text)
    };
    let finished = |run: &Outcome| run.messages.iter().filter(|m| m.acked != Time::NEVER).count();
    let (plan, ecmp) = story("[scheme.ecmp]");
    let stuck = 16 - finished(&ecmp);
    assert!((1..16).contains(&stuck), "{stuck} flows hash to the dead link");
    assert_eq!(ecmp.ending, Ending::Stopped);
    // Every timeout of a stuck flow sends at least one packet into the dead link, 19 times in 20 ms.
    assert!(lost_behind(&plan, &ecmp, "leaf0") >= 19 * stuck as u64);
    assert!(plan.failures.reach_in_the_end(&plan.fabric, None, plan.qps[0].from, plan.qps[0].to));
    let (plan, reps) = story("[scheme.reps]");
    assert_eq!((&reps.ending, finished(&reps)), (&Ending::Finished, 16));
    assert!(lost_behind(&plan, &reps, "leaf0") > 0);
    let (_, known) = agreed(&format!(
        "{}{}[[workload]]\npermutation = {{ bytes = \"400kB\" }}\n",
        leaf_spine(2, 4, 16, ""),
        failure("links = [[\"leaf0\", \"spine2\"]]")
    ));
    assert_eq!(known.data.dropped_link, 0, "routes that are not frozen avoid the link from the start");
}

#[test]
fn a_flow_that_waits_for_a_repair_is_no_deadlock_and_one_that_waits_for_none_is() {
    let story = |until: &str| {
        format!(
            "{CABLE}[nic]\ntimeout = {{ fixed = \"200us\" }}\n[stop]\nno-progress = \"3ms\"\n{}{}",
            failure(&format!("links = [[\"a\", \"b\"]]\nat = \"1us\"\n{until}")),
            one_flow("a", "b", 50)
        )
    };
    let (_, waits) = agreed(&story("until = \"20ms\"").replace("[nic.transport.ideal]", ""));
    assert_eq!(waits.ending, Ending::Finished);
    assert!(waits.messages[0].acked > Time::from_ms(20));
    let (plan, stuck) = agreed(&story("").replace("[nic.transport.ideal]", ""));
    let Ending::Stalled(stall) = &stuck.ending else { panic!("{:?}", stuck.ending) };
    assert_eq!(stall.count, 1);
    assert!(!plan.failures.reach_in_the_end(&plan.fabric, None, plan.qps[0].from, plan.qps[0].to));
}

/// A fat tree and a leaf-spine fabric, each with a link and a switch that are dead from the start.
fn broken_from_the_start() -> [(&'static str, String); 2] {
    [
        (
            "leaf-spine",
            format!(
                "{}{}{}",
                leaf_spine(4, 4, 4, ""),
                failure("switch = \"spine2\""),
                failure("links = [[\"leaf1\", \"spine0\"]]")
            ),
        ),
        (
            "fat tree",
            format!(
                "[topology.fat-tree]\nk = 4\n{}{}",
                failure("switch = \"core1\""),
                failure("links = [[\"pod0-edge0\", \"pod0-aggregation1\"]]")
            ),
        ),
    ]
}

const TRAFFIC: &str = "[[workload]]\npermutation = { bytes = \"400kB\", kind = \"shift\" }\n";

#[test]
fn themis_without_spraying_keeps_the_order_and_judges_nothing() {
    for (name, fabric) in broken_from_the_start() {
        let (plan, run) = agreed(&format!("{fabric}[scheme.themis]\non-failure = \"ecmp\"\n{TRAFFIC}"));
        assert_eq!((run.data.out_of_order, run.data.dropped_link), (0, 0), "{name}");
        assert_eq!(counter(&run, "nacks_blocked"), 0, "{name}");
        let cross = plan.qps.iter().filter(|qp| !plan.fabric.same_rack(qp.from, qp.to)).count() as u64;
        let packets = plan.wire.packets(400_000);
        assert_eq!(counter(&run, "packets_unsprayed"), cross * packets, "{name}");
        assert_eq!(run.ending, Ending::Finished);
    }
}

#[test]
fn themis_with_remapped_slots_sprays_on_and_lets_no_false_nack_pass() {
    for (name, fabric) in broken_from_the_start() {
        let (_, run) = agreed(&format!("{fabric}[scheme.themis]\non-failure = \"remap\"\n{TRAFFIC}"));
        assert_eq!(run.ending, Ending::Finished);
        assert!(counter(&run, "packets_remapped") > 0, "{name}");
        assert!(run.data.out_of_order > 0 && counter(&run, "nacks_blocked") > 0, "{name}");
        // Every slot still has one path, so nothing is lost and nothing is considered lost.
        assert_eq!((run.data.dropped_link, run.data.retransmitted), (0, 0), "{name}");
        assert_eq!(counter(&run, "compensations_spurious"), 0, "{name}");
    }
}

#[test]
fn remapped_slots_of_a_dead_spine_spread_over_the_others() {
    let text = format!(
        "{}{}[scheme.themis]\non-failure = \"remap\"\n[nic.congestion.none]\n[[workload]]\n\
         permutation = {{ bytes = \"1MB\", kind = \"shift\" }}\n",
        leaf_spine(2, 8, 16, "uplink-rate = \"800Gbps\""),
        failure("switch = \"spine5\"")
    );
    let (checked, outcome) = run(&text);
    let fabric = &checked.plan.fabric;
    let up: Vec<u64> = (0..outcome.links.len())
        .map(|l| (LinkId(l as u32), &fabric.links()[l]))
        .filter(|(_, l)| fabric.role(l.from) == "leaf" && fabric.name(l.to).starts_with("spine"))
        .map(|(id, _)| outcome.links[id.index()].bytes)
        .collect();
    let (most, all) = (up.iter().max().unwrap(), up.iter().sum::<u64>());
    // Fourteen uplinks remain, and an eighth of the slots must move. All of them on one uplink would double its
    // load.
    assert!(*most * 14 * 100 < all * 125, "{up:?}");
    assert_eq!(lost_behind(&checked.plan, &outcome, "leaf0"), 0);
}

#[test]
fn no_flow_gets_stuck_when_a_spine_dies_and_comes_back() {
    let schemes = [
        "[scheme.themis]\non-failure = \"ecmp\"",
        "[scheme.themis]\non-failure = \"remap\"",
        "[scheme.themis]\non-failure = \"remap\"\nmode = \"literal\"",
        "[scheme.themis]\non-failure = \"remap\"\nslots = 12",
        "[scheme.ecmp]",
        "[scheme.ar]",
        "[scheme.drill]",
        "[scheme.reps]",
    ];
    for scheme in schemes {
        let text = format!(
            "{}[routing]\ndetection = \"15us\"\n[nic]\ntimeout = {{ fixed = \"200us\" }}\n{}{}{scheme}\n[[workload]]\n\
             all-to-all = {{ per-pair = \"40kB\", groups = \"all\" }}\n",
            leaf_spine(3, 4, 4, "rate = \"100Gbps\""),
            failure("switch = \"spine1\"\nat = \"8us\"\nuntil = \"60us\""),
            failure("links = [[\"leaf0\", \"spine3\"]]\nat = \"20us\"\nuntil = \"33us\"")
        );
        let (_, run) = agreed(&text);
        assert_eq!(run.ending, Ending::Finished, "{scheme}");
        assert!(run.data.dropped_link > 0, "{scheme}: the failure hit nothing");
    }
}

#[test]
fn a_link_that_flaps_under_pfc_forgets_its_pauses_and_no_port_waits_forever() {
    // An incast pauses all switches on its path, and links flap at many times in it.
    for at in (2..40).step_by(3) {
        let text = format!(
            "{}[switch]\nbuffer = \"150kB\"\n[nic]\ntimeout = {{ fixed = \"100us\" }}\n[routing]\ndetection = \"30us\"\n\
             {}{}[[workload]]\nincast = {{ senders = 9, bytes = \"50kB\" }}\n",
            leaf_spine(4, 4, 3, "rate = \"100Gbps\"\ndelay = \"200ns\""),
            failure(&format!("switch = \"spine0\"\nat = \"{at}us\"\nuntil = \"{}us\"", at + 2)),
            failure(&format!(
                "links = [[\"leaf*\", \"spine2\"]]\none-way = true\nat = \"{at}us\"\nuntil = \"{}us\"",
                at + 5
            ))
        );
        let (_, run) = agreed(&text);
        assert_eq!(run.ending, Ending::Finished, "down at {at} us");
        assert!(run.control.pause > 0);
    }
}

/// An engine may compute the ports of a switch one after the other. Recording once kept the first events that it computed, in
/// place of the earliest.
#[test]
fn the_earliest_events_are_recorded_whichever_port_is_computed_first() {
    let text = "topology = { dragonfly = { groups = 2, routers-per-group = 1 } }\nworkload = [{ permutation = {} }]\nseed = 8\n\
                scheme = { rps = {} }\nfailure = [{ links = [[\"group0-router0\", \"group1-router0\"]] }]\n";
    let run = agreed_on(&lay(text), text);
    assert!(run.notes.more_events > 0 && run.data.dropped_link > 0);
}

/// The next event is the repair of a link, at the time at which the run stops: the run is stopped, and not stalled.
#[test]
fn a_run_whose_next_event_is_its_stop_has_not_stalled() {
    let text = "topology = { links = { hosts = 3, switches = [\"s0\", \"s1\", \"s2\"], links = [\n\
                [\"host0\", \"s1\", \"1Gbps\", \"20ns\"], [\"host1\", \"s2\"], [\"host2\", \"s1\"], [\"s2\", \"s0\"]] } }\n\
                workload = [{ back-to-back = { bytes = \"1B\" } }]\n\
                links = { lose = [{ from = \"host0\", to = \"host2\", psns = [0] }] }\n\
                failure = [{ random = 1, until = \"100us\", rate = \"100Mbps\" }]\n\
                stop = { after = \"100us\", no-progress = \"1ps\" }\n";
    assert_eq!(agreed_on(&lay(text), text).ending, Ending::Stopped);
}

/// The next event is a packet that arrives after the run has stopped. The window before it only hands the packet on: it finds
/// no stall, and closes no bin of a series.
#[test]
fn a_run_that_stops_before_its_next_arrival_neither_stalls_nor_widens_bins() {
    let slow = "topology = { links = { hosts = 2, switches = [\"s0\", \"s1\"], links = [\n\
                [\"host0\", \"s1\"], [\"host1\", \"s1\", \"1Gbps\"], [\"s0\", \"s1\", \"1Gbps\", \"2us\"]] } }\n\
                workload = [{ permutation = { bytes = \"1kB\" } }]\n";
    for (after, no_progress) in [("7us", "1us"), ("8us", "1us"), ("9us", "1ps"), ("12us", "3us")] {
        let text = format!("{slow}stop = {{ after = \"{after}\", no-progress = \"{no_progress}\" }}\n");
        agreed_on(&lay(&text), &text);
    }
    let text = format!("{slow}stop = {{ after = \"7us\", no-progress = \"1us\" }}\n");
    assert_eq!(agreed_on(&lay(&text), &text).ending, Ending::Stopped);
    let lossy = "topology = { links = { hosts = 3, switches = [\"s0\", \"s2\"], links = [\n\
                 [\"host0\", \"s0\"], [\"host1\", \"s0\"], [\"host2\", \"s2\"],\n\
                 [\"host2\", \"s0\", \"1Gbps\", \"333ns\"], [\"s2\", \"s0\", \"1Gbps\", \"12us\"]] } }\n\
                 workload = [{ permutation = { bytes = \"1kB\" } }]\n\
                 links = { loss = 0.0805 }\n";
    for us in (1992..=2004).chain([1005, 1010, 1020]) {
        let text = format!("{lossy}stop = {{ after = \"{us}us\" }}\n");
        agreed_on(&lay(&text), &text);
    }
}
