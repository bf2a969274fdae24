//! Claim: under Ethereal every uplink of a source carries the same bytes, equal flows finish as with ideal spraying, and a
//! queue pair leaves a dead path after a timeout.

use crate::lab::{agreed_on, lay, leaf_spine, run};
use engine::Outcome;
use engine::outcome::Ending;
use model::{Plan, Time};

/// The outcome on which all engines agree.
fn agreed(text: &str) -> (Plan, Outcome) {
    let checked = lay(text);
    let outcome = agreed_on(&checked, text);
    (checked.plan, outcome)
}

fn counter(run: &Outcome, name: &str) -> u64 {
    run.counters.iter().find(|(n, _)| *n == name).map_or(0, |c| c.1)
}

/// Bytes of every link from a leaf to a spine.
fn uplinks(plan: &Plan, run: &Outcome, leaf: &str) -> Vec<u64> {
    let fabric = &plan.fabric;
    let ports = fabric.ports(fabric.find(leaf).unwrap()).iter().filter(|l| !fabric.is_host(l.to));
    ports.map(|l| run.links[fabric.link(l.from, l.port).index()].bytes).collect()
}

fn last(run: &Outcome) -> Time {
    assert_eq!(run.ending, Ending::Finished);
    run.messages.iter().map(|m| m.acked).max().unwrap()
}

#[test]
fn every_uplink_of_a_source_carries_the_same_bytes() {
    for (flows, spines) in [(1, 4), (2, 4), (3, 4), (4, 4), (6, 4), (5, 3), (4, 6)] {
        let list = (0..flows)
            .map(|to| format!("{{ from = \"host0\", to = \"host{}\", bytes = \"144kB\" }}", 8 + to));
        let text = format!(
            "{}[scheme.ethereal]\n[[workload]]\nflows = {{ list = [{}] }}\n",
            leaf_spine(2, spines, 8, ""),
            list.collect::<Vec<_>>().join(", ")
        );
        let (plan, run) = agreed(&text);
        let bytes = uplinks(&plan, &run, "leaf0");
        assert!(
            bytes[0] > 0 && bytes.iter().all(|b| *b == bytes[0]),
            "{flows} flows, {spines} spines: {bytes:?}"
        );
        assert_eq!((run.data.out_of_order, run.data.retransmitted), (0, 0), "each subflow stays on its path");
    }
}

/// A permutation between racks, and an all-to-all of all hosts, each with the factor by which it takes longer under ECMP at
/// least. The fabric has as many uplinks as hosts per rack.
const STEPS: [(&str, f64); 2] = [
    ("permutation = { bytes = \"2MB\", kind = \"shift\" }", 1.3),
    ("all-to-all = { per-pair = \"150kB\", groups = \"all\" }", 1.1),
];

#[test]
fn equal_flows_finish_as_with_ideal_spraying() {
    for (step, factor) in STEPS {
        let time = |scheme: &str| {
            // A NIC that takes packets in any order, and no rate control, so that only the paths decide.
            let text = format!(
                "{}[nic.transport.ideal]\n[nic.congestion.none]\n[scheme.{scheme}]\n[[workload]]\n{step}\n",
                leaf_spine(4, 4, 4, "delay = \"500ns\"")
            );
            last(&run(&text).1).as_us()
        };
        let (ethereal, ideal, ecmp) = (time("ethereal"), time("ar").min(time("rps")), time("ecmp"));
        assert!(ethereal < 1.05 * ideal, "{step}: {ethereal} us, sprayed {ideal} us");
        assert!(ecmp > factor * ethereal, "{step}: {ethereal} us, hashed {ecmp} us");
    }
}

#[test]
fn a_ring_gains_nothing() {
    // One rank of each rack sends to another rack.
    let time = |scheme: &str| {
        let text = format!(
            "{}[scheme.{scheme}]\n[[workload]]\nall-reduce = {{ bytes = \"4MB\", groups = \"all\" }}\n",
            leaf_spine(4, 4, 4, "")
        );
        last(&run(&text).1).as_us()
    };
    let (ethereal, ecmp) = (time("ethereal"), time("ecmp"));
    assert!((ethereal / ecmp - 1.0).abs() < 0.01, "{ethereal} us and {ecmp} us");
}

#[test]
fn a_queue_pair_on_a_dead_path_moves_after_its_timeout() {
    let story = |keys: &str| {
        let text = format!(
            "{}[stop]\nafter = \"10ms\"\n[nic]\ntimeout = {{ fixed = \"1ms\" }}\n[routing]\ndetection = \"never\"\n\
             [[failure]]\nlinks = [[\"leaf0\", \"spine2\"]]\n[scheme.ethereal]\n{keys}\n[[workload]]\n\
             flows = {{ list = [{}] }}\n",
            leaf_spine(2, 4, 8, ""),
            (0..8)
                .map(|h| format!("{{ from = \"host{h}\", to = \"host{}\", bytes = \"200kB\" }}", h + 8))
                .collect::<Vec<_>>()
                .join(", ")
        );
        agreed(&text)
    };
    let (plan, moved) = story("");
    // Each of the eight flows has a subflow on each of the four paths, and ACKs take the path of their data.
    assert_eq!(plan.qps.iter().filter(|qp| qp.path == Some(2)).count(), 8);
    assert_eq!(counter(&moved, "paths_moved"), 8);
    let end = last(&moved);
    assert!(end > Time::from_us(1_000) && end < Time::from_us(1_500), "{end}");
    let (_, stays) = story("moves = false");
    assert_eq!(stays.ending, Ending::Stopped);
    let stuck = stays.messages.iter().filter(|m| m.acked == Time::NEVER).count();
    assert_eq!((stuck, counter(&stays, "paths_moved")), (8, 0));
}

#[test]
fn where_routes_avoid_a_dead_link_its_paths_alone_move() {
    let text = format!(
        "{}[[failure]]\nlinks = [[\"leaf0\", \"spine2\"]]\n[scheme.ethereal]\n[[workload]]\n\
         flows = {{ list = [{{ from = \"host0\", to = \"host8\", bytes = \"400kB\" }}] }}\n",
        leaf_spine(2, 4, 8, "")
    );
    let (plan, run) = agreed(&text);
    let bytes = uplinks(&plan, &run, "leaf0");
    // Spine 3 stands in for spine 2.
    assert_eq!((bytes[0], bytes[2]), (bytes[1], 0));
    assert_eq!(bytes[3], 2 * bytes[0]);
    assert_eq!((run.data.dropped_link, counter(&run, "paths_moved")), (0, 0));
}
