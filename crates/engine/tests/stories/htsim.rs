//! Claim: flows of a connection matrix start when their triggers fire.

use crate::lab::{agreed_on, lay};
use engine::Outcome;
use model::{Plan, Time};

/// Runs a matrix on hosts of one switch, with links of 400 Gb/s and 1 us.
fn play(name: &str, settings: &str, matrix: &str) -> (Plan, Outcome) {
    let path = format!("{}/{name}.cm", env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(&path, matrix).unwrap();
    let text = format!(
        "[topology.leaf-spine]\nleaves = 1\nspines = 1\nhosts-per-leaf = 4\n[[workload]]\n\
         htsim = {{ file = '{path}'{settings} }}\n"
    );
    let checked = lay(&text);
    let outcome = agreed_on(&checked, &format!("{text}\n{matrix}"));
    (checked.plan, outcome)
}

/// Index of the message between two hosts.
fn flow(plan: &Plan, from: u32, to: u32) -> usize {
    let between = |qp: &model::plan::Qp| (qp.from.0, qp.to.0) == (from, to);
    plan.messages.iter().position(|m| between(&plan.qps[m.qp.index()])).unwrap()
}

#[test]
fn a_flow_goes_on_from_the_host_that_the_one_before_has_reached() {
    let matrix = "Nodes 4\nConnections 3\nTriggers 2\n0->1 id 1 start 5000000 size 100000 recv_done_trigger 1\n\
                  1->2 id 2 trigger 1 size 100000 send_done_trigger 2\n1->3 id 3 trigger 2 size 1\n\
                  trigger id 1 oneshot\ntrigger id 2 oneshot\n";
    let (plan, run) = play("chain", ", strict = true", matrix);
    let [first, second, third] = [(0, 1), (1, 2), (1, 3)].map(|(a, b)| &run.messages[flow(&plan, a, b)]);
    assert_eq!(first.start, Time::from_us(5));
    assert_eq!(second.start, first.received);
    assert_eq!(third.start, second.acked);
}

#[test]
fn a_barrier_waits_for_the_last_of_its_flows() {
    let matrix = "Nodes 4\nConnections 4\nTriggers 1\n1->0 id 1 start 0 size 100000 recv_done_trigger 1\n\
                  2->0 id 2 start 9000000 size 100000 recv_done_trigger 1\n0->1 id 3 trigger 1 size 7\n\
                  0->3 id 4 trigger 1 size 7\ntrigger id 1 barrier count 2\n";
    let (plan, run) = play("barrier", ", strict = true", matrix);
    let last = run.messages[flow(&plan, 2, 0)].received;
    assert!(last > run.messages[flow(&plan, 1, 0)].received);
    assert_eq!(run.messages[flow(&plan, 0, 1)].start, last);
    assert_eq!(run.messages[flow(&plan, 0, 3)].start, last);
}

#[test]
fn a_multishot_trigger_starts_one_flow_each_time() {
    let matrix = "Nodes 4\nConnections 4\nTriggers 1\n0->1 id 1 start 0 size 1000 send_done_trigger 1\n\
                  0->2 id 2 start 50000000 size 1000 send_done_trigger 1\n0->3 id 3 trigger 1 size 7\n\
                  0->1 id 4 trigger 1 size 8\ntrigger id 1 multishot\n";
    let (plan, run) = play("multishot", "", matrix);
    assert_eq!(run.messages[flow(&plan, 0, 3)].start, run.messages[flow(&plan, 0, 1)].acked);
    let eight = plan.messages.iter().position(|m| m.bytes == 8).unwrap();
    assert_eq!(run.messages[eight].start, run.messages[flow(&plan, 0, 2)].acked);
}

#[test]
fn a_trigger_at_another_host_takes_the_time_of_a_message() {
    let matrix = "Nodes 4\nConnections 2\nTriggers 1\n0->1 id 1 start 0 size 1000 recv_done_trigger 1\n\
                  2->3 id 2 trigger 1 size 1000\ntrigger id 1 oneshot\n";
    let (plan, run) = play("far", "", matrix);
    let (cause, signal) = (&run.messages[flow(&plan, 0, 1)], &run.messages[flow(&plan, 1, 2)]);
    assert_eq!(signal.start, cause.received);
    assert_eq!(run.messages[flow(&plan, 2, 3)].start, signal.received);
    assert!(signal.received > cause.received + Time::from_us(2));
}

#[test]
fn messages_of_one_connection_go_one_after_another() {
    let matrix = "Nodes 4\nConnections 3\n0->1 id 1 msg start 0 size 100000\n0->1 id 1 msg start 1 size 1000\n\
                  0->1 id 2 start 0 size 100000\n";
    let (plan, run) = play("connection", ", msg-start = \"us\"", matrix);
    assert_eq!(plan.qps.len(), 2);
    let second = plan.messages.iter().position(|m| m.bytes == 1000).unwrap();
    assert_eq!(plan.messages[second].start, Time::from_us(1));
    assert!(run.messages[second].received > run.messages[second - 1].received);
}
