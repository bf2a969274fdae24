//! Claim: CONGA and ConWeave have their intended effect on a whole fabric, equally in both engines.

use crate::lab::{agreed_on, lay, leaf_spine, run};
use engine::Outcome;
use engine::outcome::Ending;
use model::Plan;

fn counter(run: &Outcome, name: &str) -> u64 {
    run.counters.iter().find(|(n, _)| *n == name).map_or(0, |c| c.1)
}

/// Bytes that a link between two switches has carried.
fn carried(plan: &Plan, run: &Outcome, from: &str, to: &str) -> u64 {
    let fabric = &plan.fabric;
    let (from, to) = (fabric.find(from).unwrap(), fabric.find(to).unwrap());
    let link = fabric.ports(from).iter().find(|link| link.to == to).unwrap();
    run.links[fabric.link(from, link.port).index()].bytes
}

/// Four hosts send one way to another rack over four spines, 100 kB every 180 us, which leaves pauses of more than
/// 100 us. `slow` is a link at a twentieth of its rate.
fn bursts(seed: u64, scheme: &str, slow: &str) -> String {
    let mut list = String::new();
    for burst in 0..40 {
        for host in 0..4 {
            let (to, start) = (host + 4, 180 * burst + 40 * host);
            list += &format!(
                "{{ from = \"host{host}\", to = \"host{to}\", bytes = \"100kB\", start = \"{start}us\" }},"
            );
        }
    }
    let fabric = leaf_spine(2, 4, 4, "rate = \"100Gbps\"\ndelay = \"1us\"");
    format!(
        "seed = {seed}\n{fabric}[[failure]]\nlinks = [{slow}]\none-way = true\nrate = 0.05\n\
         [nic.congestion.none]\n{scheme}\n[[workload]]\nflows = {{ list = [{list}] }}\n"
    )
}

/// Sum of the completion times of all messages.
fn completion(run: &Outcome) -> u64 {
    run.messages.iter().map(|m| m.acked.since(m.start).ps()).sum()
}

#[test]
fn conga_keeps_flowlets_off_a_slow_link_at_either_end() {
    // The slow link leaves the sender's own leaf, or only the far leaf can report it, by signals: no data flows
    // back.
    for (slow, from, to) in
        [("[\"leaf0\", \"spine2\"]", "leaf0", "spine2"), ("[\"spine2\", \"leaf1\"]", "spine2", "leaf1")]
    {
        let mut moved = 0;
        for seed in 1..7 {
            let text = bursts(seed, "[scheme.conga]\nageing = \"10ms\"", slow);
            let checked = lay(&text);
            let conga = agreed_on(&checked, &text);
            let (flowlets, blind) = run(&bursts(seed, "[scheme.flowlet]\ngap = \"100us\"", slow));
            let of_conga = carried(&checked.plan, &conga, from, to);
            let of_flowlets = carried(&flowlets.plan, &blind, from, to);
            assert!(of_flowlets > 20 * 100_000, "a quarter of 160 messages: {of_flowlets}");
            assert!(of_conga < of_flowlets / 3, "{of_conga} of {of_flowlets}, {slow}: {:?}", conga.counters);
            assert!(counter(&conga, "feedback_signals") > 0 && counter(&conga, "feedback_carried") == 0);
            assert!(completion(&conga) < completion(&blind));
            moved += counter(&conga, "flowlets_moved");
        }
        // A quarter of 24 flows start on the slow path, and leave it.
        assert!(moved > 0);
    }
}

#[test]
fn feedback_rides_along_where_data_goes_both_ways() {
    let fabric = leaf_spine(4, 4, 4, "rate = \"100Gbps\"\ndelay = \"1us\"");
    let text = format!(
        "{fabric}[scheme.conga]\n[[workload]]\nall-to-all = {{ per-pair = \"60kB\", groups = \"all\" }}\n"
    );
    let run = agreed_on(&lay(&text), &text);
    let (carried, signals) = (counter(&run, "feedback_carried"), counter(&run, "feedback_signals"));
    assert!(carried > 10 * signals, "{carried} and {signals}");
}

/// One flow from a to b at half of the fabric's rate, over m0 or m1. Other traffic crosses both paths in turn, 250
/// kB at a time, which makes 10 us of queue.
fn two_paths(seed: u64, scheme: &str) -> String {
    let mut list = String::new();
    for burst in 0..6 {
        let (from, at) = (burst % 2, 100 + 120 * burst);
        list +=
            &format!("{{ from = \"c{from}\", to = \"d{from}\", bytes = \"250kB\", start = \"{at}us\" }},");
    }
    format!(
        "seed = {seed}\n[topology.links]\nhosts = [\"a\", \"b\", \"c0\", \"c1\", \"d0\", \"d1\"]\n\
         switches = [\"s\", \"m0\", \"m1\", \"t\"]\nrate = \"100Gbps\"\nlinks = [[\"a\", \"s\", \"50Gbps\"],\n\
         [\"s\", \"m0\"], [\"s\", \"m1\"], [\"m0\", \"t\"], [\"m1\", \"t\"],\n\
         [\"t\", \"b\", \"400Gbps\"], [\"c0\", \"m0\"], [\"c1\", \"m1\"],\n\
         [\"t\", \"d0\"], [\"t\", \"d1\"]]\n[nic.congestion.none]\n{scheme}\n[class.noise.scheme.ecmp]\n\
         [[workload]]\nflows = {{ list = [{{ from = \"a\", to = \"b\", bytes = \"5MB\" }}] }}\n\
         [[workload]]\nname = \"noise\"\nclass = \"noise\"\nflows = {{ list = [{list}] }}\n"
    )
}

#[test]
fn a_flow_leaves_a_congested_path_and_its_receiver_sees_every_packet_in_order() {
    let (mut moved, mut held, mut timers) = (0, 0, 0);
    for seed in 1..6 {
        let text = two_paths(seed, "[scheme.conweave]");
        let run = agreed_on(&lay(&text), &text);
        assert_eq!((run.data.out_of_order, run.data.retransmitted, run.control.nack), (0, 0, 0));
        assert_eq!(counter(&run, "resume_timers") + counter(&run, "reorder_queues_full"), 0);
        moved += counter(&run, "reroutes");
        held += counter(&run, "holds");
        assert!((counter(&run, "held_peak") > 0) == (counter(&run, "holds") > 0));
        // Without waiting for the TAIL, the same flow arrives out of order.
        let text = two_paths(seed, "[scheme.conweave]\nresume-default = \"1ns\"\nresume-extra = \"0us\"");
        let impatient = agreed_on(&lay(&text), &text);
        let expired = counter(&impatient, "resume_timers");
        assert_eq!(impatient.data.out_of_order > 0, expired > 0, "{:?}", impatient.counters);
        timers += expired;
    }
    assert!(moved > 10 && held > 100 && timers > 0, "{moved}, {held}, {timers}");
}

#[test]
fn on_a_busy_fabric_a_counter_reports_every_loss_of_order() {
    // Ports of 25 Gb/s between 12 hosts of 100 Gb/s, and 60 messages that start together.
    let fabric = leaf_spine(4, 4, 3, "rate = \"100Gbps\"\ndelay = \"500ns\"\nuplink-rate = \"25Gbps\"");
    let (mut reroutes, mut held, mut full) = (0, 0, 0);
    for seed in 1..4 {
        for keys in ["", "reorder-queues = 1", "theta-path-busy = \"1us\""] {
            let text = format!(
                "seed = {seed}\n{fabric}[nic.transport.ideal]\n[nic.congestion.none]\n[scheme.conweave]\n{keys}\n\
                 [[workload]]\nall-to-all = {{ per-pair = \"150kB\", groups = \"all\" }}\n"
            );
            let run = agreed_on(&lay(&text), &text);
            let excuses = ["resume_timers", "reorder_queues_full", "held_over", "idle_moves"];
            let excused: u64 = excuses.iter().map(|name| counter(&run, name)).sum();
            assert!(run.data.out_of_order == 0 || excused > 0, "{:?} in {text}", run.counters);
            assert_eq!(run.data.held, 0);
            reroutes += counter(&run, "reroutes");
            held += counter(&run, "holds");
            full += counter(&run, "reorder_queues_full");
        }
    }
    assert!(reroutes > 50 && held > 100 && full > 0, "{reroutes}, {held}, {full}");
}

#[test]
fn a_receiver_waits_for_a_lost_tail_no_longer_than_its_timer() {
    let mut timers = 0;
    for seed in 1..6 {
        let text = format!("{}[links]\nloss = 0.05\n", two_paths(seed, "[scheme.conweave]"));
        let run = agreed_on(&lay(&text), &text);
        assert_eq!(run.ending, Ending::Finished);
        timers += counter(&run, "resume_timers");
    }
    assert!(timers > 0);
}
