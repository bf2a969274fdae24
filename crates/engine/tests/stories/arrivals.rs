//! Claim: flows start when the workload says. In an open loop they arrive at random; in a closed loop each waits
//! for the one before. A loaded fabric behaves as queueing theory predicts.

use crate::lab::{agreed_on, lay, leaf_spine};
use engine::outcome::Outcome;
use model::{HostId, Plan, Time};
use scenario::ideal::ideal_fct;

/// FCT over ideal FCT of every message.
fn slowdowns(plan: &Plan, run: &Outcome) -> Vec<f64> {
    let slowdown = |i: usize| {
        let (m, r) = (&plan.messages[i], &run.messages[i]);
        let qp = &plan.qps[m.qp.index()];
        r.acked.since(r.start).ps() as f64 / ideal_fct(plan, qp.from, qp.to, m.bytes).ps() as f64
    };
    (0..plan.messages.len()).map(slowdown).collect()
}

fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len() as f64
}

fn poisson(settings: &str) -> (Plan, Outcome) {
    let fabric = leaf_spine(3, 3, 3, "");
    let text = format!("{fabric}[nic.congestion.none]\n[[workload]]\npoisson = {{ {settings} }}\n");
    let checked = lay(&text);
    let outcome = agreed_on(&checked, &text);
    (checked.plan, outcome)
}

#[test]
fn flows_of_an_open_loop_start_when_they_arrive() {
    let (plan, run) =
        poisson("sizes = { uniform = { min = \"1B\", max = \"40kB\" } }, load = 0.7, count = 300");
    let first = plan.messages.iter().map(|m| m.start).min().unwrap();
    assert!(first > Time::ZERO);
    for (m, r) in plan.messages.iter().zip(&run.messages) {
        assert_eq!(r.start, m.start, "no flow waits for another");
    }
}

#[test]
fn flows_rarely_meet_at_low_load_and_queue_up_beyond_capacity() {
    let mean_of = |load: &str, count: u32| {
        let (plan, run) = poisson(&format!("sizes = {{ fixed = \"20kB\" }}, load = {load}, count = {count}"));
        mean(&slowdowns(&plan, &run))
    };
    let (short, long) = (mean_of("0.01", 300), mean_of("0.01", 3000));
    assert!(short < 1.02 && long < 1.02, "flows rarely meet: {short}, {long}");
    // With ten times as many flows, ten times as many wait on average at the end. Most of a flow's ideal time is
    // propagation delay.
    let (short, long) = (mean_of("2", 300), mean_of("2", 3000));
    assert!(long > 3.0 * short, "queues grow for as long as flows arrive: {short}, then {long}");
}

#[test]
fn a_random_partner_is_drawn_when_the_last_message_is_acknowledged() {
    let fabric = leaf_spine(3, 3, 2, "");
    let text = format!("{fabric}[[workload]]\nrandom-partner = {{ bytes = \"30kB\", iterations = 8 }}\n");
    let checked = lay(&text);
    let (plan, run) = (&checked.plan, agreed_on(&checked, &text));
    for host in 0..6 {
        let of = |i: &usize| plan.qps[plan.messages[*i].qp.index()].from == HostId(host);
        let mut mine: Vec<_> = (0..plan.messages.len())
            .filter(of)
            .map(|i| (run.messages[i].start, run.messages[i].acked))
            .collect();
        mine.sort();
        assert_eq!((mine.len(), mine[0].0), (8, Time::ZERO));
        assert!(mine.windows(2).all(|pair| pair[0].1 == pair[1].0), "{mine:?}");
    }
}

#[test]
fn a_windowed_all_to_all_keeps_its_number_of_peers_busy() {
    let fabric = leaf_spine(3, 3, 3, "");
    for window in [1, 3, 8] {
        let text = format!(
            "{fabric}[[workload]]\nall-to-all = {{ per-pair = \"20kB\", groups = \"all\", window = {window} }}\n"
        );
        let checked = lay(&text);
        let (plan, run) = (&checked.plan, agreed_on(&checked, &text));
        for host in 0..9 {
            let of = |i: &usize| plan.qps[plan.messages[*i].qp.index()].from == HostId(host);
            let mine: Vec<_> = (0..plan.messages.len()).filter(of).map(|i| &run.messages[i]).collect();
            assert_eq!(mine.len(), 8);
            // The number of active messages grows only when one starts, so it is counted at starts.
            let most = mine
                .iter()
                .map(|new| mine.iter().filter(|m| m.start <= new.start && new.start < m.acked).count())
                .max();
            assert_eq!(most, Some(window), "host {host}");
        }
    }
}
