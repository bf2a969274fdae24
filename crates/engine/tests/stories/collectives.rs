//! Claim: collectives send the bytes and steps of the textbook and take its time on an idle fabric. A run with the
//! same seed is the same run.

use crate::lab::{agreed_on, lay, leaf_spine, run};
use engine::outcome::Outcome;
use model::{Plan, Time};

/// Bytes sent and received by each host.
fn bytes(plan: &Plan) -> (Vec<u64>, Vec<u64>) {
    let mut sent = vec![0; plan.fabric.hosts()];
    let mut received = sent.clone();
    for m in &plan.messages {
        let qp = &plan.qps[m.qp.index()];
        sent[qp.from.index()] += m.bytes;
        received[qp.to.index()] += m.bytes;
    }
    (sent, received)
}

/// Time from the job's start until the last rank has received its last byte.
fn completion(run: &Outcome) -> Time {
    run.messages.iter().map(|m| m.received).max().unwrap()
}

/// An all-reduce with one host on each of `ranks` leaves under one spine: every rank has its own path to the next.
fn all_reduce(ranks: usize, bytes: u64, more: &str) -> String {
    let fabric = leaf_spine(ranks, 1, 1, "");
    format!("{fabric}{more}\n[[workload]]\nall-reduce = {{ bytes = \"{bytes}B\" }}\n")
}

#[test]
fn a_ring_all_reduce_takes_its_steps_and_sends_its_share() {
    for n in [2, 3, 4, 8] {
        let text = all_reduce(n, 8 * 3 * 1_438 * 40, "");
        let checked = lay(&text);
        let outcome = agreed_on(&checked, &text);
        let plan = &checked.plan;
        let steps = 2 * (n - 1);
        assert_eq!(plan.messages.len(), n * steps);
        assert_eq!(plan.qps.len(), n, "one queue pair to the next rank, for all steps");
        let share = steps as u64 * (8 * 3 * 1_438 * 40) / n as u64;
        assert_eq!(bytes(plan), (vec![share; n], vec![share; n]));
        for qp in &plan.qps {
            // A step starts exactly when the step before it has arrived at its sender.
            let before = plan.qps.iter().position(|other| other.to == qp.from).unwrap();
            for k in 1..steps {
                let start = outcome.messages[qp.messages.start as usize + k].start;
                let cause = outcome.messages[plan.qps[before].messages.start as usize + k - 1].received;
                assert_eq!(start, cause, "step {k}");
            }
        }
    }
}

#[test]
fn a_ring_all_reduce_takes_the_textbooks_time() {
    // A step takes the packets of a chunk one after the other, 30.4 ns each, three store-and-forward switches for
    // the last one, and 4 us of propagation. One ACK per step precedes the next step's data: 1.72 ns.
    for n in [3, 4, 8] {
        let packets = 50;
        let step = packets * 30_400 + 3 * 30_400 + 4 * 1_000_000;
        let steps = 2 * (n as u64 - 1);
        for qp in ["persistent", "per-message"] {
            let text = all_reduce(n, n as u64 * packets * 1_438, "[nic]\nack-every = 1000")
                .replace("[[workload]]", &format!("[[workload]]\nqp = \"{qp}\""));
            let checked = lay(&text);
            let took = completion(&agreed_on(&checked, &text)).ps();
            let ideal = steps * step;
            assert!(took >= ideal && took - ideal < 30_400, "{n} ranks: {took}, by the textbook {ideal}");
        }
    }
}

#[test]
fn all_to_all_sends_every_part_to_every_peer() {
    for (key, per_pair) in [("per-pair = \"10kB\"", 10_000), ("bytes = \"60kB\"", 10_000)] {
        for schedule in ["at-once", "staggered"] {
            let fabric = leaf_spine(3, 3, 2, "");
            let text = format!(
                "{fabric}[[workload]]\nall-to-all = {{ {key}, groups = \"all\", schedule = \"{schedule}\" }}\n"
            );
            let checked = lay(&text);
            let outcome = agreed_on(&checked, &text);
            assert_eq!(bytes(&checked.plan), (vec![5 * per_pair; 6], vec![5 * per_pair; 6]));
            assert_eq!(checked.plan.messages.len(), 30);
            // A receiver's link carries 5 x 7 packets, which bounds the completion time from below.
            assert!(completion(&outcome) > Time(5 * 7 * 28_000));
        }
    }
}

#[test]
fn a_staggered_all_to_all_sends_to_one_peer_after_the_other() {
    let fabric = leaf_spine(3, 3, 2, "");
    let text = format!(
        "{fabric}[[workload]]\nall-to-all = {{ per-pair = \"10kB\", groups = \"all\", schedule = \"staggered\" }}\n"
    );
    let (checked, outcome) = run(&text);
    for rank in 0..6u32 {
        let mut mine: Vec<_> = (0..30)
            .filter(|&i| checked.plan.qps[checked.plan.messages[i].qp.index()].from.0 == rank)
            .map(|i| (outcome.messages[i].start, outcome.messages[i].acked))
            .collect();
        mine.sort();
        assert!(mine.windows(2).all(|pair| pair[0].1 == pair[1].0), "{mine:?}");
    }
}

#[test]
fn the_same_seed_is_the_same_run_and_another_one_is_not() {
    let fabric = leaf_spine(3, 4, 2, "");
    let with = |seed: u64, scheme: &str| {
        run(&format!(
            "seed = {seed}\n{fabric}[scheme.{scheme}]\n[[workload]]\nall-reduce = {{ bytes = \"1MB\" }}\n"
        ))
        .1
    };
    for scheme in ["ecmp", "rps", "ar", "drill", "themis"] {
        assert_eq!(with(1, scheme), with(1, scheme));
    }
    assert_ne!(with(1, "rps"), with(2, "rps"));
    assert_eq!(with(1, "rps").data.accepted, with(2, "rps").data.accepted);
}
