//! Claim: a Chakra trace runs as its graph says: computations take their recorded time, messages and collectives that of the fabric,
//! and a rank does one of these at a time.

use crate::lab::{agreed_on, lay};
use engine::Outcome;
use model::plan::Role;
use model::{Plan, Rate, Time};

/// Payload of a full frame.
const FULL: u64 = 1438;

fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

/// A field that holds bytes.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    [vec![number << 3 | 2], varint(bytes.len() as u64), bytes.to_vec()].concat()
}

/// A node: its id and type, its microseconds, the nodes before it, and its whole-number attributes.
fn node(id: u64, kind: u8, micros: u64, after: &[u8], attributes: &[(&str, u64)]) -> Vec<u8> {
    let mut node = [vec![0x08], varint(id), vec![0x18, kind, 0x38], varint(micros), field(5, after)].concat();
    for (name, value) in attributes {
        node.extend(field(10, &[field(1, name.as_bytes()), vec![9 << 3], varint(*value)].concat()));
    }
    [varint(node.len() as u64), node].concat()
}

/// Runs a trace, given by the nodes of each rank, on one switch with links of 400 Gb/s and 1 us.
fn play(name: &str, ranks: &[Vec<Vec<u8>>]) -> (Plan, Outcome) {
    let folder = env!("CARGO_TARGET_TMPDIR");
    for (rank, nodes) in ranks.iter().enumerate() {
        let metadata = field(1, b"0.0.4");
        let file = [varint(metadata.len() as u64), metadata, nodes.concat()].concat();
        std::fs::write(format!("{folder}/{name}.{rank}.et"), file).unwrap();
    }
    let text = format!(
        "[topology.leaf-spine]\nleaves = 1\nspines = 1\nhosts-per-leaf = {}\n[[workload]]\nchakra = {{ file = '{folder}/{name}.0.et' }}\n",
        ranks.len()
    );
    let checked = lay(&text);
    assert_eq!(checked.warnings(), [""; 0]);
    let outcome = agreed_on(&checked, &text);
    (checked.plan, outcome)
}

/// Ends of the tasks of a role of a rank, in the order of time.
fn ends(plan: &Plan, run: &Outcome, rank: u32, role: Role) -> Vec<Time> {
    let mine = plan.tasks.iter().zip(&run.tasks).filter(|(task, _)| (task.rank, task.role) == (rank, role));
    let mut ends: Vec<Time> = mine.map(|(_, record)| record.end).collect();
    ends.sort_unstable();
    ends
}

/// Time from the start of a message of so many full frames to the arrival of its last byte over two links.
fn arrival(plan: &Plan, number: u64) -> u64 {
    (number + 1) * plan.wire.transmission(Rate::from_gbps(400), plan.wire.max_frame()).ps() + 2_000_000
}

const COMPUTE: u8 = 4;
const SEND: u8 = 5;
const RECEIVE: u8 = 6;
const COLLECTIVE: u8 = 7;

#[test]
fn a_message_leaves_when_the_computation_before_it_has_ended() {
    let send = node(2, SEND, 0, &[1], &[("comm_dst", 1), ("comm_size", 8 * FULL), ("comm_tag", 3)]);
    let receive = node(7, RECEIVE, 0, &[], &[("comm_src", 0), ("comm_size", 8 * FULL), ("comm_tag", 3)]);
    // The computation of rank 1 has a lower id than the receive for which it waits.
    let ranks = [vec![node(1, COMPUTE, 5, &[], &[]), send], vec![node(4, COMPUTE, 1, &[7], &[]), receive]];
    let (plan, run) = play("story-message", &ranks);
    let arrived = 5_000_000 + arrival(&plan, 8);
    assert_eq!(run.messages[0].received, Time(arrived));
    assert_eq!(ends(&plan, &run, 1, Role::Compute), [Time(arrived + 1_000_000)]);
}

#[test]
fn the_cpu_and_the_gpu_compute_side_by_side_each_one_thing_at_a_time() {
    let cpu = [("is_cpu_op", 1)];
    let mine = vec![
        node(1, COMPUTE, 100, &[], &[]),
        node(2, COMPUTE, 200, &[], &[]),
        node(3, COMPUTE, 50, &[], &cpu),
        node(4, COMPUTE, 0, &[3], &cpu),
    ];
    let (plan, run) = play("story-streams", &[mine, vec![]]);
    let expected = [Time::from_us(50), Time::from_ns(50_001), Time::from_us(100), Time::from_us(300)];
    assert_eq!(ends(&plan, &run, 0, Role::Compute), expected);
}

#[test]
fn a_collective_starts_when_its_last_rank_is_ready() {
    let reduce = node(2, COLLECTIVE, 0, &[1], &[("comm_type", 0), ("comm_size", 16 * FULL)]);
    let rank =
        |micros| vec![node(1, COMPUTE, micros, &[], &[]), reduce.clone(), node(3, COMPUTE, 1, &[2], &[])];
    let (plan, run) = play("story-collective", &[rank(10), rank(30)]);
    // Rank 0 has sent its half early. So rank 1, once it is ready, sends both its own half and the sum of the other one. Rank 0
    // returns the sum of the first, and between its frames the ACKs of the other eight.
    let acks = 8 * plan.wire.transmission(Rate::from_gbps(400), plan.wire.ack).ps();
    let back = 2 * arrival(&plan, 8) + acks;
    assert_eq!(
        ends(&plan, &run, 0, Role::Compute),
        [Time::from_us(10), Time(31_000_000 + arrival(&plan, 16))]
    );
    assert_eq!(ends(&plan, &run, 1, Role::Compute), [Time::from_us(30), Time(31_000_000 + back)]);
}

#[test]
fn messages_of_a_rank_leave_one_after_another() {
    let peer = |tag| [("comm_dst", 1), ("comm_size", 4 * FULL), ("comm_tag", tag)];
    let source = |tag| [("comm_src", 0), ("comm_size", 4 * FULL), ("comm_tag", tag)];
    let ranks = [
        vec![node(1, SEND, 0, &[], &peer(1)), node(2, SEND, 0, &[], &peer(2))],
        vec![node(1, RECEIVE, 0, &[], &source(2)), node(2, RECEIVE, 0, &[], &source(1))],
    ];
    let (plan, run) = play("story-one-after-another", &ranks);
    let mut received: Vec<Time> = run.messages.iter().map(|message| message.received).collect();
    received.sort_unstable();
    assert_eq!(received[0], Time(arrival(&plan, 4)));
    // The ACK of the first message returns over two links before the second one leaves.
    assert!(received[1] > Time(2 * arrival(&plan, 4) + 2_000_000), "{received:?}");
}
