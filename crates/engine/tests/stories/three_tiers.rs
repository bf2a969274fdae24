//! Claim: on a fat tree of three tiers, Themis spreads every flow over all paths, slot by slot. So the ToR of the
//! receiver tells late packets from lost ones, as on two tiers.

use crate::lab::{agreed_on, lay, run};
use engine::Outcome;
use model::Plan;
use std::collections::BTreeMap;

fn counters(run: &Outcome) -> BTreeMap<&'static str, u64> {
    run.counters.iter().copied().collect()
}

/// A single flow of 40 packets per path from the first host to the last.
fn one_flow(k: usize, settings: &str) -> (Plan, Outcome) {
    let (paths, last) = (k * k / 4, k * k * k / 4 - 1);
    let bytes = paths * 40 * 1438;
    let (checked, outcome) = run(&format!(
        "[topology.fat-tree]\nk = {k}\n[scheme.themis]\n{settings}\n[[workload]]\n\
         flows = {{ list = [{{ from = \"host0\", to = \"host{last}\", bytes = \"{bytes}B\" }}] }}\n"
    ));
    (checked.plan, outcome)
}

/// Frames from each core switch down into the pod of the last host.
fn down_from_cores(plan: &Plan, run: &Outcome) -> Vec<u64> {
    let fabric = &plan.fabric;
    let pod = |node| fabric.name(node).split('-').next().unwrap().to_owned();
    let last = pod(fabric.attachment(plan.qps[0].to));
    let links = fabric.links().iter().zip(&run.links);
    links.filter(|(l, _)| fabric.role(l.from) == "core" && pod(l.to) == last).map(|(_, r)| r.frames).collect()
}

#[test]
fn the_slots_of_a_flow_take_every_path_between_two_pods_once() {
    for k in [4, 8] {
        let (plan, outcome) = one_flow(k, "");
        assert_eq!(down_from_cores(&plan, &outcome), vec![40; k * k / 4], "k = {k}");
        // The packets also use every uplink of the source ToR and of every aggregation switch of its pod.
        let fabric = &plan.fabric;
        for (role, frames) in [("edge", 40 * k as u64 / 2), ("aggregation", 40)] {
            let up = fabric.links().iter().zip(&outcome.links).filter(|(l, record)| {
                let mine = fabric.name(l.from).starts_with("pod0-");
                mine && fabric.role(l.from) == role
                    && fabric.tier(l.to) > fabric.tier(l.from)
                    && record.frames > 0
            });
            assert!(up.map(|(_, record)| record.frames).all(|n| n == frames), "k = {k}, {role}");
        }
    }
}

#[test]
fn without_a_path_map_a_flow_takes_one_path_for_each_uplink_of_its_tor() {
    let (plan, outcome) = one_flow(4, "path-map = false");
    let mut frames = down_from_cores(&plan, &outcome);
    frames.sort();
    assert_eq!(frames, [0, 0, 80, 80]);
    let (plan, outcome) = one_flow(4, "slots = 2");
    assert_eq!(down_from_cores(&plan, &outcome).iter().filter(|&&n| n > 0).count(), 2);
}

#[test]
fn inside_a_pod_the_slots_take_every_aggregation_switch() {
    let (checked, outcome) = run("[topology.fat-tree]\nk = 8\n[scheme.themis]\n[[workload]]\n\
         flows = { list = [{ from = \"host0\", to = \"host15\", bytes = \"230080B\" }] }\n");
    let fabric = &checked.plan.fabric;
    let tor = fabric.find("pod0-edge3").unwrap();
    let into =
        fabric.links().iter().zip(&outcome.links).filter(|(l, _)| l.to == tor && !fabric.is_host(l.from));
    assert_eq!(into.map(|(_, record)| record.frames).collect::<Vec<_>>(), [40; 4]);
}

/// Every host of a fat tree with k = 4 sends to a host of another rack; `loss` is the links' loss rate. After a timeout the
/// NICs resend one packet, so only a wrong NACK causes a needless retransmission.
fn permutation(loss: f64) -> Outcome {
    let text = format!(
        "[topology.fat-tree]\nk = 4\nrate = \"100Gbps\"\n[links]\nloss = {loss:?}\n[scheme.themis]\n\
         [nic.transport.nic-sr]\nresend = \"oldest\"\n\
         [[workload]]\npermutation = {{ kind = \"cross-rack\", bytes = \"2MB\" }}\n"
    );
    let checked = lay(&text);
    agreed_on(&checked, &text)
}

#[test]
fn without_losses_there_are_no_retransmissions_and_no_compensated_nacks() {
    let run = permutation(0.0);
    let counters = counters(&run);
    assert!(
        run.data.out_of_order > 1000 && counters["nacks_blocked"] > 100,
        "spraying reorders: {counters:?}"
    );
    assert_eq!((counters["nacks_forwarded"], counters["nacks_compensated"]), (0, 0));
    assert_eq!((counters["compensations_spurious"], run.data.retransmitted), (0, 0));
}

#[test]
fn lost_packets_are_retransmitted_and_few_others() {
    let run = permutation(0.001);
    let counters = counters(&run);
    assert!(run.data.dropped_link > 50 && run.data.retransmitted >= run.data.dropped_link);
    assert!(counters["nacks_compensated"] + counters["nacks_forwarded"] > 50, "{counters:?}");
    assert_eq!((run.data.spurious, counters["compensations_spurious"]), (0, 0));
}
