//! Claim: a program that posts messages and tasks while the run goes on gets the run of a plan with these messages and
//! tasks, bit for bit, in both engines.
//!
//! The program here knows a plan. It posts what the plan starts, and at every event what the event triggers.

use crate::lab::{check_books, lay, leaf_spine, run_on};
use engine::Kind;
use engine::live::{Ended, Event, Live, Next};
use engine::outcome::{Outcome, TaskRecord};
use model::plan::{Message, Task, Trigger, Work};
use model::{NodeId, Plan, QpId, TaskId, Time};
use proptest::prelude::*;
use proptest::sample::select;
use scenario::{Checked, Source, check_program};
use std::collections::BTreeMap;
use std::ops::Range;

/// A program that plays a plan from outside.
struct Player<'a> {
    plan: &'a Plan,
    run: Box<dyn Live + 'a>,
    needs: Vec<u32>,
    task_needs: Vec<u32>,
    /// Messages posted, by queue pair.
    posted: Vec<u32>,
    /// Tasks of the plan, by host and number.
    tasks: BTreeMap<(NodeId, u32), TaskId>,
}

/// The plan without messages, tasks and triggers: a program posts them.
fn bare(plan: &Plan) -> Plan {
    let mut bare = plan.clone();
    bare.messages.clear();
    bare.tasks.clear();
    bare.triggers.clear();
    bare.qps.iter_mut().for_each(|qp| qp.messages = 0..0);
    bare.posted = Some(0);
    bare
}

impl Player<'_> {
    fn message(&self, qp: QpId, number: u32) -> &Message {
        &self.plan.messages[(self.plan.qps[qp.index()].messages.start + number) as usize]
    }

    /// Posts the messages of a queue pair that may start, in their order.
    fn post_ready(&mut self, qp: QpId) {
        let range = self.plan.qps[qp.index()].messages.clone();
        while range.start + self.posted[qp.index()] < range.end {
            let m = (range.start + self.posted[qp.index()]) as usize;
            if self.needs[m] > 0 || self.plan.messages[m].start > self.run.now() {
                return;
            }
            let number = self.run.post(qp, self.plan.messages[m].bytes);
            assert_eq!(number, self.posted[qp.index()]);
            self.posted[qp.index()] += 1;
        }
    }

    fn post_task(&mut self, task: TaskId) {
        let Task { node, .. } = self.plan.tasks[task.index()];
        let number = self.run.post_task(self.plan.tasks[task.index()].clone());
        self.tasks.insert((node, number), task);
    }

    fn fire(&mut self, triggers: &Range<u32>) {
        for i in triggers.clone() {
            match self.plan.triggers[i as usize] {
                Trigger::Message(m) => {
                    self.needs[m.index()] -= 1;
                    self.post_ready(self.plan.messages[m.index()].qp);
                }
                Trigger::Task(t) => {
                    self.task_needs[t.index()] -= 1;
                    if self.task_needs[t.index()] == 0 {
                        self.post_task(t);
                    }
                }
            }
        }
    }

    fn react(&mut self, event: Event) {
        let plan = self.plan;
        let triggers = match event.what {
            Ended::Acked(qp, number) => self.message(qp, number).on_acked.clone(),
            Ended::Received(qp, number) => self.message(qp, number).on_received.clone(),
            Ended::Task(number) => plan.tasks[self.tasks[&(event.node, number)].index()].on_done.clone(),
        };
        self.fire(&triggers);
    }

    /// Plays the plan up to its last start, and then to its end.
    fn play(&mut self) {
        let plan = self.plan;
        let of_messages = plan.messages.iter().map(|message| message.start);
        let mut starts: Vec<Time> = of_messages.chain(plan.tasks.iter().map(|task| task.start)).collect();
        starts.sort_unstable();
        starts.dedup();
        let mut before = Time::ZERO;
        for start in starts.into_iter().map(Some).chain([None]) {
            loop {
                match self.run.next(start.unwrap_or(Time::NEVER), &mut ()) {
                    Next::Event(event) => {
                        assert!(event.at >= before, "time goes back from {before} to {}", event.at);
                        assert_eq!(event.at, self.run.now());
                        before = event.at;
                        self.react(event);
                    }
                    Next::Until | Next::Idle => break,
                    Next::Ended => return,
                }
            }
            if let Some(start) = start {
                for t in 0..plan.tasks.len() {
                    let posted = || self.tasks.values().any(|posted| posted.index() == t);
                    if plan.tasks[t].start == start && self.task_needs[t] == 0 && !posted() {
                        self.post_task(TaskId(t as u32));
                    }
                }
                (0..plan.qps.len() as u32).map(QpId).for_each(|qp| self.post_ready(qp));
            }
        }
    }
}

/// Plays the plan of a scenario from outside. The tasks' records are in the order of the plan.
fn driven(checked: &Checked, kind: Kind) -> (Plan, Outcome) {
    let (plan, bare) = (&checked.plan, bare(&checked.plan));
    let mut player = Player {
        plan,
        run: sim::live(&bare, &checked.schemes, &checked.nics, kind),
        needs: plan.messages.iter().map(|message| message.needs).collect(),
        task_needs: plan.tasks.iter().map(|task| task.needs).collect(),
        posted: vec![0; plan.qps.len()],
        tasks: BTreeMap::new(),
    };
    player.play();
    let Player { run, tasks, .. } = player;
    let (grown, mut outcome) = run.finish(&mut ());
    let mut records = vec![TaskRecord::default(); plan.tasks.len()];
    let mut first = BTreeMap::new();
    for (i, task) in grown.tasks.iter().enumerate() {
        first.entry(task.node).or_insert(i);
    }
    for ((node, number), task) in tasks {
        records[task.index()] = outcome.tasks[first[&node] + number as usize];
    }
    outcome.tasks = records;
    (grown, outcome)
}

/// The first difference between the driven run of a scenario and the run of its plan. Series are left out: once all messages
/// have ended, those of the plan's run put late duplicates into one bin.
pub(crate) fn difference(checked: &Checked) -> Result<(), String> {
    let native = run_on(checked);
    for kind in [Kind::Reference, Kind::Window] {
        let (plan, mut outcome) = driven(checked, kind);
        check_books(&plan, &outcome);
        outcome.recording = native.recording.clone();
        if let Some(difference) = audit::difference(&plan, &native, &outcome) {
            return Err(format!("{kind:?}, driven, differs from the run of the plan:\n{difference}"));
        }
    }
    Ok(())
}

fn check_driven(text: &str) {
    difference(&lay(text)).unwrap_or_else(|difference| panic!("{difference}\nin: {text}"));
}

#[test]
fn a_ring_whose_steps_a_program_posts_is_the_ring_of_the_plan() {
    for scheme in ["ecmp", "themis", "ar", "flowcut", "conweave", "reps"] {
        check_driven(&format!(
            "{}[scheme.{scheme}]\n[[workload]]\nall-reduce = {{ bytes = \"143800B\", groups = \"all\" }}\n",
            leaf_spine(2, 2, 2, "")
        ));
    }
}

#[test]
fn messages_that_start_later_start_at_their_time() {
    let sizes = "sizes = { uniform = { min = \"1B\", max = \"40kB\" } }, load = 0.8, count = 60";
    for nic in ["", "[nic.transport.go-back-n]\n", "[nic.congestion.hpcc]\n"] {
        check_driven(&format!("{}{nic}[[workload]]\npoisson = {{ {sizes} }}\n", leaf_spine(3, 2, 3, "")));
    }
}

#[test]
fn losses_and_failures_meet_a_driven_run_as_any_other() {
    check_driven(&format!(
        "{}[links]\nloss = 0.01\n[nic]\ntimeout = {{ fixed = \"60us\" }}\n[[failure]]\nlinks = [[\"leaf0\", \"spine0\"]]\n\
         at = \"9us\"\ndown = true\n[[workload]]\nall-to-all = {{ per-pair = \"28760B\", groups = \"all\" }}\n",
        leaf_spine(2, 2, 3, "")
    ));
}

/// The only packet of the first flow is lost, and no timer brings it back. The message of the second flow is not in the plan, and neither
/// is that of the first.
#[test]
fn a_driven_run_that_stalls_names_the_posted_messages_that_wait() {
    check_driven(&format!(
        "{}[nic]\ntimeout = \"none\"\n[[links.lose]]\nfrom = \"host0\"\nto = \"host2\"\npsns = [0]\n[[workload]]\n\
         flows = {{ list = [{{ from = \"host1\", to = \"host3\", bytes = \"1kB\" }}, {{ from = \"host0\", to = \"host2\", bytes = \"1kB\" }}] }}\n",
        leaf_spine(2, 1, 2, "")
    ));
}

/// A far host's only packet is marked amid those of two near ones. In one queue, its CNP leaves right after its ACK, which is the last.
#[test]
fn nothing_is_forgotten_while_a_cnp_is_under_way() {
    let forgets = |list: &str, kind: Kind| {
        let checked = lay(&format!(
            "{}[switch]\nclasses = \"one\"\necn = {{ kmin = \"1kB\", kmax = \"1kB\", pmax = 1.0 }}\n[nic]\n\
             cnp-interval-per = \"queue-pair\"\n[nic.congestion.dcqcn]\n[[workload]]\nflows = {{ list = [{list}] }}\n",
            leaf_spine(2, 1, 4, "")
        ));
        let bare = bare(&checked.plan);
        let mut run = sim::live(&bare, &checked.schemes, &checked.nics, kind);
        for message in &checked.plan.messages {
            run.post(message.qp, message.bytes);
        }
        while run.next(Time::NEVER, &mut ()) != Next::Idle {}
        let at = Time(run.now().ps() + Time::from_us(1).ps());
        run.forgets(QpId(0), at)
    };
    let far = "{ from = \"host0\", to = \"host4\", bytes = \"1kB\" }";
    let near = |host: &str| format!("{{ from = \"{host}\", to = \"host4\", bytes = \"107850B\" }}");
    let amid = [far.to_owned(), near("host5"), near("host6")].join(", ");
    for kind in [Kind::Reference, Kind::Window] {
        assert!(forgets(far, kind), "{kind:?}: one message is not marked");
        assert!(!forgets(&amid, kind), "{kind:?}");
    }
}

#[test]
fn servers_copy_and_compute_for_a_program() {
    check_driven(
        "[server]\ngpus = 4\nnics = 2\n[topology.rails]\nservers = 2\nspines = 2\n[[workload]]\n\
         collective = { kind = \"all-reduce\", bytes = \"1MB\", algorithm = \"ring\" }\n",
    );
    check_driven(
        "[server]\ngpus = 2\n[topology.rails]\nservers = 2\nspines = 1\n[[workload]]\n[workload.training]\n\
         model = { hidden = 64, layers = 4, heads = 4, ffn = 128, gated = true, vocab = 100 }\n\
         parallel = { tp = 2, pp = 2 }\nbatch = { global = 4, sequence = 16 }\n\
         compute = { forward = \"10us\", backward = \"20us\" }\n",
    );
}

#[test]
fn engines_agree_on_tasks_that_a_program_posts_at_one_instant() {
    // Their order is the order of posting, which need not be the order in a plan.
    let text = "[server]\ngpus = 4\nnics = 2\n[topology.rails]\nservers = 2\nspines = 2\n[[workload]]\n\
                collective = { kind = \"all-reduce\", bytes = \"1MB\", algorithm = \"tree\" }\n";
    let checked = lay(text);
    let [(plan, window), (_, reference)] = [Kind::Window, Kind::Reference].map(|kind| driven(&checked, kind));
    check_books(&plan, &window);
    assert_eq!(audit::difference(&plan, &reference, &window), None);
}

/// A call of a random program.
#[derive(Clone, Copy, Debug)]
enum Call {
    /// Asks for events up to so many picoseconds from now; `None` without end.
    Next(Option<u64>),
    /// Sends bytes on a queue pair, by its number modulo their number.
    Post(u32, u64),
    /// Sets a timer of a host, by its number modulo their number.
    Timer(u32, u64),
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        4 => prop::option::weighted(0.7, 0..4_000_000u64).prop_map(Call::Next),
        3 => (any::<u32>(), prop_oneof![1..4u64, 1..60_000u64]).prop_map(|(qp, bytes)| Call::Post(qp, bytes)),
        1 => (any::<u32>(), prop_oneof![Just(0), 0..3_000_000u64]).prop_map(|(host, after)| Call::Timer(host, after)),
    ]
}

/// What a program sees: the answers to its calls, and the outcome.
fn seen(checked: &Checked, calls: &[Call], kind: Kind) -> (Vec<(Time, Next)>, Plan, Outcome) {
    let plan = &checked.plan;
    let mut run = sim::live(plan, &checked.schemes, &checked.nics, kind);
    let mut seen = Vec::new();
    let lines = plan.qps.iter().enumerate().filter(|(_, qp)| qp.messages.is_empty());
    let lines: Vec<QpId> = lines.map(|(i, _)| QpId(i as u32)).collect();
    for call in calls {
        match *call {
            Call::Next(ahead) => {
                let until = ahead.map_or(Time::NEVER, |ahead| Time(run.now().ps() + ahead));
                let next = run.next(until, &mut ());
                seen.push((run.now(), next));
            }
            Call::Post(qp, bytes) => {
                run.post(lines[qp as usize % lines.len()], bytes);
            }
            Call::Timer(host, after) => {
                let node = NodeId(host % plan.fabric.servers() as u32);
                run.post_task(Task::new(node, Work::Free { time: Time(after) }));
            }
        }
    }
    let (plan, outcome) = run.finish(&mut ());
    (seen, plan, outcome)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Sends of any rank at any time: the engines show the program the same events, and time never goes back.
    #[test]
    fn whatever_a_program_does_the_engines_agree(
        calls in prop::collection::vec(call(), 1..60),
        delays in select(vec!["1us", "300ns"]),
        rest in select(vec![
            "",
            "[scheme.themis]\n",
            "[nic.transport.go-back-n]\n[links]\nloss = 0.02\n",
            "[[workload]]\nname = \"noise\"\nbackground = true\npermutation = { bytes = \"30kB\" }\n",
            "[[workload]]\nname = \"other\"\npermutation = { bytes = \"30kB\" }\n",
        ]),
    ) {
        let fabric = leaf_spine(2, 2, 2, &format!("delay = \"{delays}\"\nuplink-delay = \"1us\"\n"));
        let text = format!("{fabric}[[workload]]\nprogram = {{ qps = 2 }}\n{rest}");
        let checked = check_program(&Source::new("story.toml", text), &[]).unwrap();
        let (window, plan, outcome) = seen(&checked, &calls, Kind::Window);
        let (reference, _, expected) = seen(&checked, &calls, Kind::Reference);
        prop_assert_eq!(&window, &reference);
        prop_assert!(window.windows(2).all(|two| two[0].0 <= two[1].0), "time goes back");
        prop_assert_eq!(audit::difference(&plan, &expected, &outcome), None);
        prop_assert_eq!(audit::mistakes(&plan, &outcome), [""; 0]);
    }
}
