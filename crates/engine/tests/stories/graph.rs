//! Claim: a graph of the scenario runs as written: a task starts when the tasks before it have ended on its GPU.

use crate::lab::{agreed_on, lay};
use model::plan::Role;
use model::{Rate, Time};

/// Payload of a full frame.
const FULL: u64 = 1438;

#[test]
fn a_message_joins_the_computations_of_two_gpus() {
    let text = format!(
        "[server]\ngpus = 1\n[topology.leaf-spine]\nleaves = 1\nspines = 1\nhosts-per-leaf = 2\n[[workload]]\n\
         graph = [\n\
         {{ name = \"first\", ranks = [0], compute = \"5us\" }},\n\
         {{ name = \"early\", ranks = [1], compute = \"3us\" }},\n\
         {{ name = \"give\", send = {{ from = 0, to = 1, bytes = \"{}B\" }}, after = [\"first\"] }},\n\
         {{ name = \"last\", ranks = [1], compute = \"2us\", after = [\"give\", \"early\"] }},\n\
         {{ name = \"rest\", ranks = [0], compute = \"1us\", after = [\"give\"] }},\n]\n",
        8 * FULL
    );
    let checked = lay(&text);
    let run = agreed_on(&checked, &text);
    let plan = &checked.plan;
    let time = |frame| plan.wire.transmission(Rate::from_gbps(400), frame).ps();
    // Eight frames over two links of 1 us; the last one is stored and forwarded.
    let arrived = 5_000_000 + 9 * time(plan.wire.max_frame()) + 2_000_000;
    let acked = arrived + 2 * time(plan.wire.ack) + 2_000_000;
    let ends = |rank| {
        let mine = plan
            .tasks
            .iter()
            .zip(&run.tasks)
            .filter(|(task, _)| (task.rank, task.role) == (rank, Role::Compute));
        let mut ends: Vec<Time> = mine.map(|(_, record)| record.end).collect();
        ends.sort_unstable();
        ends
    };
    assert_eq!(ends(1), [Time::from_us(3), Time(arrived + 2_000_000)]);
    assert_eq!(ends(0), [Time::from_us(5), Time(acked + 1_000_000)]);
}
