//! Two jobs by hand: what their ranks did, and what their collectives achieved.

use super::*;
use crate::testing;
use engine::Outcome;
use engine::outcome::TaskRecord;
use model::NodeId;
use model::plan::{Job, Work};

/// A task of a rank: job, rank, role, operation, start and end in us. A task without end has not ended.
type Told = (u16, u32, Role, u32, u64, Option<u64>);

const US: fn(u64) -> Time = Time::from_us;

fn operation(job: u16, dimension: &'static str, ranks: u32) -> Operation {
    let name = if ranks == 0 { "forward" } else { "all-reduce" };
    Operation { name, dimension, ranks, job, bytes: 40_000, bus: (14, 8), ..Operation::default() }
}

/// A run of two jobs, of which the second starts at 5 us and trains on 4096 tokens.
fn world(operations: Vec<Operation>, tasks: &[Told]) -> (Plan, Outcome) {
    let (mut plan, mut outcome) = (testing::plan(1), testing::outcome(1));
    plan.jobs.push(Job { name: "second".into(), start: US(5), tokens: 4096, ..plan.jobs[0].clone() });
    plan.operations = operations;
    for &(job, rank, role, operation, start, end) in tasks {
        let work = Work::Free { time: Time::ZERO };
        plan.tasks.push(Task { job, rank, role, operation, ..Task::new(NodeId(0), work) });
        let end = end.map_or(Time::NEVER, US);
        outcome.tasks.push(TaskRecord { ready: US(start), start: US(start), end });
    }
    (plan, outcome)
}

fn run(world: &(Plan, Outcome)) -> RunData<'_> {
    RunData { plan: &world.0, ideal: &[], outcome: &world.1, served: None }
}

fn span(start: u64, end: u64) -> Option<Span> {
    Some(Span { start: US(start), end: US(end) })
}

/// Ranks 0 and 1 compute, reduce, and compute again.
fn two_ranks() -> (Plan, Outcome) {
    let operations = vec![operation(0, "", 0), operation(0, "tp", 2), operation(0, "dp", 2)];
    world(
        operations,
        &[
            (0, 0, Role::Compute, 0, 0, Some(10)),
            (0, 1, Role::Compute, 0, 2, Some(14)),
            (0, 0, Role::Enter, 1, 9, Some(10)),
            (0, 1, Role::Enter, 1, 13, Some(14)),
            // A copy inside a server is neither entry nor exit.
            (0, 0, Role::Inner, 1, 3, Some(40)),
            (0, 0, Role::Leave, 1, 18, Some(20)),
            (0, 1, Role::Leave, 1, 18, Some(24)),
            (0, 1, Role::Compute, 0, 24, Some(30)),
            // Work that belongs to no operation is no part of the results.
            (0, 0, Role::Compute, Operation::NONE, 0, Some(50)),
        ],
    )
}

#[test]
fn an_operation_lasts_from_the_first_entry_to_the_last_exit() {
    assert_eq!(spans(run(&two_ranks())), [span(0, 30), span(10, 24), None]);
}

#[test]
fn an_operation_that_one_rank_has_not_left_has_no_span_and_its_job_no_budget() {
    let (mut plan, mut outcome) = two_ranks();
    plan.operations.push(operation(1, "ep", 2));
    for (role, end) in [(Role::Enter, 8), (Role::Leave, 13)] {
        plan.tasks.push(Task {
            job: 1,
            role,
            operation: 3,
            ..Task::new(NodeId(0), Work::Free { time: Time::ZERO })
        });
        outcome.tasks.push(TaskRecord { ready: US(8), start: US(8), end: US(end) });
    }
    outcome.tasks[6].end = Time::NEVER; // rank 1 has not left the reduction of the first job
    let world = (plan, outcome);
    let all = spans(run(&world));
    assert_eq!(all, [span(0, 30), None, None, span(8, 13)]);
    assert!(activity(run(&world), 0, &all).is_none());
    let second = budget(run(&world), 1, &all).unwrap();
    assert_eq!((second.time, second.tokens), (8.0, 4096), "from its own start on");
    assert_eq!(second.bus.len(), 1, "the other job's collectives are not its own");
}

#[test]
fn an_operation_whose_ranks_have_only_entered_has_no_span() {
    let world = world(vec![operation(0, "tp", 2)], &[(0, 0, Role::Enter, 0, 0, Some(3))]);
    assert_eq!(spans(run(&world)), [None]);
}

#[test]
fn the_bandwidth_on_the_bus_is_that_of_nccl_tests() {
    // All-reduce of 8 ranks: 2 (n - 1) / n bytes on the bus per byte.
    let of = |bus, ranks, end| {
        let operation = Operation { bytes: 1000, bus, ranks, ..Operation::default() };
        Span { start: US(1), end: US(end) }.bus_bandwidth(&operation)
    };
    assert_eq!(of((14, 8), 8, 2), Some(1.75), "1000 B in 1 us are 1 GB/s");
    assert_eq!(of((1, 1), 8, 5), Some(0.25));
    assert_eq!(of((0, 1), 1, 2), Some(0.0), "a rank alone has nothing on the bus");
    assert_eq!(of((14, 8), 8, 1), None, "it took no time");
    assert_eq!((of((0, 0), 8, 2), of((1, 1), 0, 2)), (None, None), "no collective");
}

#[test]
fn each_rank_is_inside_an_operation_from_its_own_entry_on() {
    let world = two_ranks();
    let all = spans(run(&world));
    let activity = activity(run(&world), 0, &all).unwrap();
    let entered: Vec<_> = activity.ranks.values().map(|rank| rank.entered.clone()).collect();
    assert_eq!(entered, [[(US(10)..US(20), "tp")], [(US(14)..US(24), "tp")]]);
    assert_eq!((activity.start, activity.end), (US(0), US(50)), "the job ends with its last task");
}

#[test]
fn ranks_that_enter_by_one_task_are_inside_from_the_start_of_the_operation() {
    // Behind an NVSwitch one task stands for the entry of all.
    let world = world(
        vec![operation(0, "tp", 2)],
        &[
            (0, 0, Role::Enter, 0, 4, Some(4)),
            (0, 0, Role::Leave, 0, 4, Some(9)),
            (0, 1, Role::Leave, 0, 4, Some(8)),
        ],
    );
    let all = spans(run(&world));
    let ranks = activity(run(&world), 0, &all).unwrap().ranks;
    assert_eq!(ranks[&1].entered, [(US(4)..US(8), "tp")]);
    // A rank that leaves at the instant of its entry was not inside.
    let none = what_a_rank_did(
        &world.0,
        US(0),
        vec![(US(9), US(4), &world.0.tasks[1])],
        &all,
        &BTreeMap::from([((0, 0), US(9))]),
    );
    assert!(none.entered.is_empty());
}

#[test]
fn waits_of_a_rank_follow_each_other_and_means_go_over_ranks() {
    // Rank 0 computes until 10 us, and waits for two operations that end at 14 and 20 us. Rank 1 computes until 16 us, so that
    // it waits only for the second one.
    let world = world(
        vec![operation(0, "", 0), operation(0, "tp", 2), operation(0, "dp", 2)],
        &[
            (0, 0, Role::Compute, 0, 0, Some(10)),
            (0, 1, Role::Compute, 0, 0, Some(8)),
            (0, 1, Role::Compute, 0, 8, Some(16)),
            (0, 0, Role::Leave, 2, 3, Some(20)),
            (0, 0, Role::Leave, 1, 3, Some(14)),
            (0, 1, Role::Leave, 1, 3, Some(14)),
            (0, 1, Role::Leave, 2, 3, Some(20)),
            (0, 0, Role::Enter, 1, 3, Some(3)),
            (0, 0, Role::Enter, 2, 3, Some(3)),
        ],
    );
    let all = spans(run(&world));
    let ranks = activity(run(&world), 0, &all).unwrap().ranks;
    assert_eq!(ranks[&0].exposed, [(US(10)..US(14), "tp"), (US(14)..US(20), "dp")]);
    assert_eq!(ranks[&1].exposed, [(US(16)..US(20), "dp")]);
    assert_eq!(ranks[&1].computed, [US(0)..US(8), US(8)..US(16)]);
    let budget = budget(run(&world), 0, &all).unwrap();
    assert_eq!((budget.time, budget.compute), (20.0, 13.0));
    assert_eq!(budget.exposed, BTreeMap::from([("tp", 2.0), ("dp", 5.0)]));
    assert_eq!(budget.bubble(), 0.0);
}

#[test]
fn a_computation_that_runs_when_an_operation_ends_hides_it_even_if_an_earlier_one_ended_long_ago() {
    let of = |begin: u64| {
        let tasks = [
            (0, 0, Role::Compute, 0, 0, Some(2)),
            (0, 0, Role::Compute, 0, begin, Some(20)),
            (0, 0, Role::Leave, 1, 2, Some(10)),
        ];
        let world = world(vec![operation(0, "", 0), operation(0, "tp", 2)], &tasks);
        activity(run(&world), 0, &[None, None]).unwrap().ranks[&0].exposed.clone()
    };
    assert_eq!(of(9), []);
    assert_eq!(of(10), [(US(2)..US(10), "tp")], "it starts because the operation has ended");
}

#[test]
fn a_transfer_between_stages_is_waited_for_from_its_start_on() {
    let tasks = [
        (0, 0, Role::Compute, 0, 0, Some(2)),
        (0, 1, Role::Enter, 1, 7, Some(7)),
        (0, 0, Role::Leave, 1, 7, Some(10)),
    ];
    for (dimension, from) in [("pp", 7), ("tp", 2)] {
        let world = world(vec![operation(0, "", 0), operation(0, dimension, 2)], &tasks);
        let all = spans(run(&world));
        let exposed = &activity(run(&world), 0, &all).unwrap().ranks[&0].exposed;
        assert_eq!(*exposed, [(US(from)..US(10), dimension)]);
    }
}

#[test]
fn a_budget_counts_steps_and_the_collectives_but_no_transfer_between_two_stages() {
    let step = |step, operation| Operation { step, ..operation };
    let operations = vec![
        step(2, operation(0, "tp", 2)),
        step(1, operation(0, "pp", 2)),
        step(0, operation(0, "pp", 3)),
        step(0, operation(0, "", 4)),
        step(7, operation(1, "dp", 2)),
    ];
    let ends = |number| [(0, 0, Role::Enter, number, 0, Some(1)), (0, 0, Role::Leave, number, 0, Some(5))];
    let world = world(operations, &[0, 1, 2, 3, 4].map(ends).concat());
    let budget = budget(run(&world), 0, &spans(run(&world))).unwrap();
    assert_eq!((budget.steps, budget.tokens), (3, 0), "steps 0 to 2");
    // 40,000 B in 4 us, times 14/8.
    let bus = BTreeMap::from(
        ["tp all-reduce", "pp all-reduce", "all-reduce"].map(|name| (name.to_owned(), vec![17.5])),
    );
    assert_eq!(budget.bus, bus);
}
