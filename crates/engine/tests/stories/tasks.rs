//! Claim: tasks take their time on their streams, and start messages and each other in no time.

use crate::lab::{agreed_on, lay};
use engine::Outcome;
use model::plan::{Plan, Task, Trigger, Work};
use model::{MessageId, NodeId, TaskId, Time};
use proptest::prelude::*;

const NS: Time = Time::from_ns(1);

/// A graph of tasks and messages over a plan whose messages do not wait for each other.
struct Graph<'p> {
    plan: &'p mut Plan,
    /// Pairs of cause and effect. A message causes its effect when it has arrived.
    causes: Vec<(Trigger, Trigger)>,
}

impl<'p> Graph<'p> {
    fn on(plan: &'p mut Plan) -> Self {
        Graph { plan, causes: Vec::new() }
    }

    /// Adds a task; hosts come in the order of their nodes.
    fn task(&mut self, host: u32, work: Work) -> Trigger {
        self.plan.tasks.push(Task::new(NodeId(host), work));
        Trigger::Task(TaskId(self.plan.tasks.len() as u32 - 1))
    }

    fn after(&mut self, cause: Trigger, effect: Trigger) {
        self.causes.push((cause, effect));
    }

    /// Writes the triggers into the plan.
    fn lay(self) {
        let Graph { plan, causes } = self;
        let number = |trigger: &Trigger| match trigger {
            Trigger::Message(m) => (0, m.0),
            Trigger::Task(t) => (1, t.0),
        };
        let mut sorted = causes;
        sorted.sort_by_key(|(cause, _)| number(cause));
        for (cause, effect) in sorted {
            let at = plan.triggers.len() as u32;
            plan.triggers.push(effect);
            let range = match cause {
                Trigger::Message(m) => &mut plan.messages[m.index()].on_received,
                Trigger::Task(t) => &mut plan.tasks[t.index()].on_done,
            };
            if range.start == range.end {
                *range = at..at;
            }
            range.end = at + 1;
            match effect {
                Trigger::Message(m) => plan.messages[m.index()].needs += 1,
                Trigger::Task(t) => plan.tasks[t.index()].needs += 1,
            }
        }
        scenario::plan_check(plan).unwrap();
    }
}

fn ends(run: &Outcome) -> Vec<Time> {
    run.tasks.iter().map(|task| task.end).collect()
}

fn message(m: u32) -> Trigger {
    Trigger::Message(MessageId(m))
}

fn ns(n: u64) -> Time {
    Time::from_ns(n)
}

/// Hosts `a` and `b` on one switch at 400 Gb/s, and a flow of ten frames each way: message 0 goes to `a`.
const PAIR: &str = "[topology.links]\nhosts = [\"a\", \"b\"]\nswitches = [\"x\"]\nrate = \"400Gbps\"\n\
    links = [[\"a\", \"x\"], [\"b\", \"x\"]]\n[[workload]]\nflows = { list = [\
    { from = \"a\", to = \"b\", bytes = \"14380B\" }, { from = \"b\", to = \"a\", bytes = \"14380B\" }] }\n";
/// Time of a message of [`PAIR`]: eleven frames of 30.4 ns, and two links of 1 us.
const FLIGHT: Time = Time(11 * 30_400 + 2_000_000);

#[test]
fn a_receiver_computes_on_a_message_and_answers() {
    let mut checked = lay(PAIR);
    let to_b = u32::from(checked.plan.qps[0].to.0 == 0);
    let mut graph = Graph::on(&mut checked.plan);
    let forward = graph.task(0, Work::On { stream: 0, time: ns(5_000) });
    let on_arrival = graph.task(1, Work::On { stream: 0, time: ns(7_000) });
    graph.after(forward, message(to_b));
    graph.after(message(to_b), on_arrival);
    graph.after(on_arrival, message(1 - to_b));
    let last = message(1 - to_b);
    graph.lay();
    let run = agreed_on(&checked, PAIR);
    let Trigger::Message(last) = last else { unreachable!() };
    let arrived = ns(5_000).ps() + FLIGHT.ps();
    assert_eq!(ends(&run), [ns(5_000), Time(arrived + ns(7_000).ps())]);
    assert_eq!(run.tasks[1].ready, Time(arrived));
    assert_eq!(run.messages[last.index()].start, run.tasks[1].end);
    assert_eq!(run.messages[last.index()].received, Time(run.tasks[1].end.ps() + FLIGHT.ps()));
}

#[test]
fn a_stream_does_one_task_at_a_time_and_others_go_on() {
    let mut checked = lay(PAIR);
    let mut graph = Graph::on(&mut checked.plan);
    for (stream, time) in [(0, 10), (0, 20), (1, 5), (0, 1)] {
        graph.task(0, Work::On { stream, time: ns(time) });
    }
    let free = graph.task(0, Work::Free { time: ns(100) });
    let join = graph.task(0, Work::Free { time: Time::ZERO });
    graph.after(free, join);
    graph.after(Trigger::Task(TaskId(3)), join);
    graph.lay();
    let run = agreed_on(&checked, PAIR);
    assert_eq!(ends(&run), [10, 30, 5, 31, 100, 100].map(ns));
    assert_eq!((run.tasks[3].ready, run.tasks[3].start), (Time::ZERO, ns(30)));
}

/// The copies of an exchange between the GPUs 0, 1 and 2: streams 0 to 2 carry bytes out, 3 to 5 in. Two copies enter GPU 2,
/// and one of them waits.
#[test]
fn a_copy_cuts_through_two_streams() {
    let mut checked = lay(PAIR);
    let mut graph = Graph::on(&mut checked.plan);
    let copy = |from: u32, to: u32| Work::Copy { from, to: 3 + to, time: ns(100), delay: ns(500) };
    for (from, to) in [(0, 2), (1, 2), (0, 1), (2, 0)] {
        graph.task(0, copy(from, to));
    }
    graph.lay();
    let run = agreed_on(&checked, PAIR);
    assert_eq!(ends(&run), [600, 700, 700, 600].map(ns));
}

/// A run ends with its last task, and a long task is no stall.
#[test]
fn a_run_waits_for_long_compute() {
    let mut checked = lay(PAIR);
    let mut graph = Graph::on(&mut checked.plan);
    graph.task(1, Work::On { stream: 0, time: Time::from_ms(900) });
    graph.lay();
    let run = agreed_on(&checked, PAIR);
    assert_eq!((run.end, ends(&run)), (Time::from_ms(900), vec![Time::from_ms(900)]));
}

#[test]
fn tasks_that_wait_for_each_other_are_refused() {
    let mut checked = lay(PAIR);
    let plan = &mut checked.plan;
    let mut graph = Graph::on(plan);
    let (a, b) = (graph.task(0, Work::Free { time: NS }), graph.task(0, Work::Free { time: NS }));
    let Graph { plan, .. } = graph;
    plan.triggers = vec![b, a];
    (plan.tasks[0].on_done, plan.tasks[1].on_done) = (0..1, 1..2);
    (plan.tasks[0].needs, plan.tasks[1].needs) = (1, 1);
    assert_eq!(scenario::plan_check(plan).unwrap_err(), "2 messages and tasks wait for each other");
    (plan.tasks[0].node, plan.tasks[1].node) = (NodeId(0), NodeId(1));
    let text = scenario::plan_check(plan).unwrap_err();
    assert_eq!(text, "task 0 starts task 1, which does not start at its host");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Random graphs over an all-to-all of two hosts with two ports each and two with one: both engines agree.
    #[test]
    fn random_graphs_give_one_result(
        work in prop::collection::vec((0..4u32, 0..3u32, 0..3u32, 0..4_000u64, 0..3usize), 1..24),
        edges in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..60),
    ) {
        let text = "[topology.links]\nhosts = [\"a\", \"b\", \"c\", \"d\"]\nswitches = [\"x\", \"y\"]\nrate = \"400Gbps\"\n\
            links = [[\"a\", \"x\"], [\"a\", \"y\"], [\"b\", \"x\"], [\"b\", \"y\"], [\"c\", \"x\"], [\"d\", \"y\"], [\"x\", \"y\"]]\n\
            [[workload]]\nall-to-all = { bytes = \"60kB\", groups = \"all\" }\n";
        let mut checked = lay(text);
        let plan = &mut checked.plan;
        let mut work = work;
        work.sort_by_key(|(host, ..)| *host);
        let messages = plan.messages.len();
        let mut graph = Graph::on(plan);
        for &(host, from, to, time, kind) in &work {
            let time = ns(time);
            graph.task(host, match kind {
                0 => Work::Free { time },
                1 => Work::On { stream: from, time },
                _ => Work::Copy { from, to: 3 + to, time, delay: ns(500) },
            });
        }
        let host_of = |plan: &Plan, t: Trigger, end: bool| match t {
            Trigger::Message(m) => {
                let qp = &plan.qps[plan.messages[m.index()].qp.index()];
                plan.fabric.node_of(if end { qp.to } else { qp.from })
            }
            Trigger::Task(t) => plan.tasks[t.index()].node,
        };
        // A node of the graph causes only later nodes, so there is no cycle. Messages of one queue pair keep their order.
        let mut nodes: Vec<Trigger> = (0..messages as u32).map(message).collect();
        for t in 0..work.len() {
            nodes.insert((t * 7) % (nodes.len() + 1), Trigger::Task(TaskId(t as u32)));
        }
        for (a, b) in &edges {
            let (a, b) = (a.index(nodes.len()), b.index(nodes.len()));
            let (cause, effect) = (nodes[a.min(b)], nodes[a.max(b)]);
            if a != b && host_of(graph.plan, cause, true) == host_of(graph.plan, effect, false) {
                graph.after(cause, effect);
            }
        }
        graph.lay();
        let run = agreed_on(&checked, text);
        prop_assert!(run.tasks.iter().all(|task| task.ready <= task.start && task.start <= task.end));
    }
}
