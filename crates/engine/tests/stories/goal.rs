//! Claim: a GOAL schedule runs as its statements say: computations one after another on their cpu, messages when what they
//! require has ended.

use crate::lab::{agreed_on, lay};
use engine::Outcome;
use model::plan::Role;
use model::{Plan, Rate, Time};

/// Payload of a full frame.
const FULL: u64 = 1438;

/// Runs a schedule on a fabric; `settings` are more keys of the workload.
fn play(name: &str, fabric: &str, settings: &str, schedule: &str) -> (Plan, Outcome) {
    let path = format!("{}/{name}.goal", env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(&path, schedule).unwrap();
    let text = format!("{fabric}\n[[workload]]\ngoal = {{ file = '{path}'{settings} }}\n");
    let checked = lay(&text);
    assert_eq!(checked.warnings(), [""; 0]);
    let outcome = agreed_on(&checked, &format!("{text}\n{schedule}"));
    (checked.plan, outcome)
}

/// One switch, with links of 400 Gb/s and 1 us.
fn star(hosts: usize) -> String {
    format!("[topology.leaf-spine]\nleaves = 1\nspines = 1\nhosts-per-leaf = {hosts}")
}

/// Ends of the tasks of a role of a rank, in the order of time, ns.
fn ends(plan: &Plan, run: &Outcome, rank: u32, role: Role) -> Vec<u64> {
    let mine = plan.tasks.iter().zip(&run.tasks).filter(|(task, _)| (task.rank, task.role) == (rank, role));
    let mut ends: Vec<u64> = mine.map(|(_, record)| record.end.ps() / 1000).collect();
    ends.sort_unstable();
    ends
}

/// Time of so many full frames on a link.
fn frames(plan: &Plan, number: u64) -> u64 {
    number * plan.wire.transmission(Rate::from_gbps(400), plan.wire.max_frame()).ps()
}

/// Time from the start of a message of so many full frames to the arrival of its last byte over two links.
fn arrival(plan: &Plan, number: u64) -> u64 {
    frames(plan, number + 1) + 2_000_000
}

#[test]
fn a_message_leaves_when_the_computation_that_it_requires_has_ended() {
    let schedule = format!(
        "num_ranks 2\nrank 0 {{\na: calc 5000\nb: send {0}b to 1\nb requires a\n}}\n\
         rank 1 {{\nc: recv {0}b from 0\nd: calc 100\nd requires c\n}}\n",
        8 * FULL
    );
    let (plan, run) = play("after-computation", &star(2), "", &schedule);
    let arrived = 5_000_000 + arrival(&plan, 8);
    assert_eq!(run.messages[0].received, Time(arrived));
    assert_eq!(ends(&plan, &run, 1, Role::Leave), [arrived / 1000]);
    assert_eq!(ends(&plan, &run, 1, Role::Compute), [arrived / 1000 + 100]);
}

#[test]
fn a_cpu_computes_one_thing_at_a_time_and_two_cpus_work_side_by_side() {
    let schedule = "num_ranks 2\nrank 0 {\ncalc 100\ncalc 200\ncalc 50 cpu 1\n}\nrank 1 {\ncalc 10\n}\n";
    let (plan, run) = play("cpus", &star(2), "", schedule);
    assert_eq!(ends(&plan, &run, 0, Role::Compute), [50, 100, 300]);
    assert_eq!(ends(&plan, &run, 1, Role::Compute), [10], "a rank has a cpu of its own");
}

#[test]
fn irequires_waits_for_the_start_even_if_the_cpu_is_busy_before_it() {
    let schedule = "num_ranks 2\nrank 0 {\ncalc 100\nlong: calc 1000\nearly: calc 10 cpu 1\nlate: calc 10 cpu 1\n\
                    early irequires long\nlate requires long\n}\n\
                    rank 1 {\nlast: calc 1 cpu 1\nfirst: calc 30\nother: calc 7 cpu 1\nlast requires first\n\
                    other irequires first\n}\n";
    let (plan, run) = play("start", &star(2), "", schedule);
    // The long computation starts at 100 ns, when the first one ends.
    assert_eq!(ends(&plan, &run, 0, Role::Compute), [100, 110, 1100, 1110]);
    assert_eq!(ends(&plan, &run, 1, Role::Compute), [7, 30, 31]);
}

#[test]
fn nothing_takes_a_nanosecond_or_a_byte_and_a_message_to_oneself_stays() {
    let schedule = "num_ranks 2\nrank 0 {\na: calc 0\nb: send 0b to 1\nb requires a\nc: send 8b to 0 tag 3\n\
                    d: recv 8b from 0 tag 3\ne: calc 5 cpu 1\ne requires d\n}\nrank 1 {\nrecv 0b from 0\n}\n";
    let (plan, run) = play("nothing", &star(2), "", schedule);
    assert_eq!(plan.messages.iter().map(|m| m.bytes).collect::<Vec<_>>(), [1]);
    // The message to oneself follows the first computation on the cpu.
    assert_eq!(ends(&plan, &run, 0, Role::Compute), [1, 7]);
    assert_eq!(ends(&plan, &run, 0, Role::Leave), [2]);
}

#[test]
fn messages_of_one_nic_leave_one_after_another() {
    let schedule = format!(
        "num_ranks 3\nrank 0 {{\nsend {0}b to 1\nsend {0}b to 2\n}}\nrank 1 {{\nrecv {0}b from 0\n}}\n\
         rank 2 {{\nrecv {0}b from 0\n}}\n",
        100 * FULL
    );
    let (plan, run) = play("one-nic", &star(3), "", &schedule);
    let received: Vec<_> = run.messages.iter().map(|record| record.received).collect();
    let first = arrival(&plan, 100);
    assert_eq!(received, [Time(first), Time(first + frames(&plan, 100))]);
}

#[test]
fn a_send_ends_with_its_ack_or_with_the_answer_of_its_receiver_or_at_once() {
    let schedule = format!(
        "num_ranks 2\nrank 0 {{\na: send {0}b to 1\nb: calc 1\nb requires a\n}}\n\
         rank 1 {{\nc: calc 50000\nd: recv {0}b from 0\nd requires c\n}}\n",
        8 * FULL
    );
    let end = |name: &str, settings: &str| {
        let (plan, run) = play(name, &star(2), settings, &schedule);
        let end = ends(&plan, &run, 0, Role::Compute)[0];
        (end, run, plan)
    };
    let (acked, run, plan) = end("acked", "");
    assert_eq!(acked, run.messages[0].acked.ps() / 1000 + 1);
    assert_eq!(plan.messages.len(), 1);
    // The answer is the shortest frame, which the switch stores and forwards.
    let (delivered, _, plan) = end("delivered", ", send-done = \"delivered\"");
    let short = plan.wire.transmission(Rate::from_gbps(400), plan.wire.data_frame(1)).ps();
    assert_eq!(plan.messages.len(), 2);
    assert_eq!(delivered, (50_000_000 + 2 * short + 2_000_000) / 1000 + 1);
    assert_eq!(end("eager", ", send-done = \"eager\"").0, 1);
    let (long, ..) = end("rendezvous", ", send-done = \"eager\", eager-limit = \"11503B\"");
    assert_eq!(long, acked);
}

#[test]
fn ranks_of_one_server_copy_over_nvlink() {
    let fabric = "[server]\nnvlink = { rate = \"3600Gbps\" }\n[topology.rails]\nservers = 2\nspines = 4";
    let schedule = "num_ranks 3\nrank 0 {\nsend 4500000b to 1\nsend 4500000b to 2\n}\n\
                    rank 1 {\nrecv 4500000b from 0\n}\nrank 2 {\nrecv 4500000b from 0\n}\n";
    let (plan, run) = play("nvlink", fabric, "", schedule);
    assert_eq!(plan.messages.len(), 0);
    // 10 us for each copy at 450 GB/s, one after another, and the delay of a link.
    let (one, two) = (ends(&plan, &run, 1, Role::Leave)[0], ends(&plan, &run, 2, Role::Leave)[0]);
    assert_eq!(two - one, 10_000);
    assert!((10_000..11_000).contains(&one), "{one}");
}

#[test]
fn ranks_may_be_servers_whose_nics_are_those_of_their_gpus() {
    let fabric = "[server]\n[topology.rails]\nservers = 2\nspines = 4";
    let schedule = "num_ranks 2\nrank 0 {\nsend 1000b to 1 tag 0 nic 3\nsend 1000b to 1 tag 1 nic 7\n}\n\
                    rank 1 {\nrecv 1000b from 0 tag 0 nic 3\nrecv 1000b from 0 tag 1 nic 6\n}\n";
    let (plan, run) = play("servers", fabric, ", ranks = \"server\"", schedule);
    let ends: Vec<_> = plan.qps.iter().map(|qp| (qp.from.0, qp.to.0)).collect();
    let port = |server: u32, gpu: u32| 8 * server + gpu;
    assert_eq!(ends, [(port(0, 3), port(1, 3)), (port(0, 7), port(1, 6))]);
    assert!(run.messages.iter().all(|record| record.received < Time::NEVER));
}

#[test]
fn receives_of_any_source_get_what_the_others_leave() {
    let schedule = "num_ranks 3\nrank 0 {\na: recv 10b from -1 tag -1\nb: recv 20b from 1 tag 5\nc: calc 9\n\
                    c requires a\n}\nrank 1 {\nsend 20b to 0 tag 5\n}\nrank 2 {\nd: calc 30000\ne: send 10b to 0 tag 8\n\
                    e requires d\n}\n";
    let (plan, run) = play("any", &star(3), "", schedule);
    let [early, late] = ends(&plan, &run, 0, Role::Leave)[..] else { panic!("two receives") };
    assert!(early < 10_000 && late > 30_000);
    assert_eq!(ends(&plan, &run, 0, Role::Compute), [late + 9]);
}
