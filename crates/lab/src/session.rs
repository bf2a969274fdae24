//! A run that a program drives: it sends messages and sets timers, and learns when they end.
//!
//! ```no_run
//! use lab::session::{Kind, Next, Session};
//! use model::Time;
//!
//! // Rank 1 answers rank 0's message with one of its own.
//! let mut session = Session::open("quickstart", &[])?;
//! session.send(7, (0, 1), 1_000_000, 0)?;
//! while let Next::Event(event) = session.next(None)? {
//!     println!("{} {:?} of {} at rank {}", event.at, event.kind, event.id, event.rank);
//!     if event.kind == Kind::Received && event.id == 7 {
//!         session.send(8, (1, 0), 1_000_000, 0)?;
//!     }
//! }
//! let run = session.finish();
//! println!("{} us", run.summary.sim_time_us);
//! # Ok::<(), lab::Failure>(())
//! ```

use crate::clock::Stopwatch;
use crate::event::Line;
pub use crate::event::{Event, Kind, Next};
use crate::execute::{Run, Spent, conclude};
use crate::failure::Failure;
use crate::headroom::Headroom;
use engine::live::{self, Ended, Live};
pub use model::{Bytes, Time};
use model::{NodeId, QpId};
use scenario::program::{ProgramRanks, Way};
use scenario::{Checked, Source};
use self_cell::self_cell;
use serving::kv::{pairs, part};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A message that the program has sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Send {
    id: u64,
    from: u32,
    to: u32,
    bytes: u64,
    tag: u32,
    /// True for a message of a transfer, whose number is `id`.
    part: bool,
}

/// Messages from one instance to another, which are one for the program.
#[derive(Clone, Copy, Debug)]
struct Transfer {
    id: u64,
    /// First rank of the receivers.
    rank: u32,
    /// Messages that have not arrived.
    left: u32,
}

/// A task that the program has caused.
#[derive(Clone, Copy, Debug)]
enum Posted {
    Timer { id: u64, rank: u32 },
    Copy(Send),
}

type Driven<'a> = Option<Box<dyn Live + 'a>>;

self_cell!(
    /// A checked scenario, and the run that borrows it.
    struct Running {
        owner: Checked,
        #[not_covariant]
        dependent: Driven,
    }
);

/// A run that a program drives.
pub struct Session {
    running: Running,
    ranks: ProgramRanks,
    /// Messages by queue pair, in their order.
    messages: Vec<Vec<Send>>,
    /// Tasks by host, in their order.
    tasks: BTreeMap<NodeId, Vec<Posted>>,
    instances: BTreeMap<String, Vec<u32>>,
    transfers: Vec<Transfer>,
    /// Messages for later times, in the order of the calls at one time.
    later: BinaryHeap<Reverse<(Time, u64, Send)>>,
    calls: u64,
    due: VecDeque<Event>,
    now: Time,
    watch: Watch,
    setup_s: f64,
    since: Stopwatch,
    kind: engine::Kind,
}

/// A function that returns true to end a run early.
type Asked = Box<dyn FnMut() -> bool + std::marker::Send>;

/// Watches the run of a session.
struct Watch {
    stop: Arc<AtomicBool>,
    /// Asked every few dozen windows.
    ask: Option<Asked>,
    headroom: Headroom,
}

impl engine::Observer for Watch {
    fn on_progress(&mut self, _: engine::Progress) -> bool {
        !self.stop.load(Ordering::Relaxed) && !self.ask.as_mut().is_some_and(|ask| ask())
    }

    fn room(&mut self) -> u64 {
        self.headroom.left()
    }
}

impl Session {
    /// Opens a scenario, a path or the name of a built-in one, with `KEY=VALUE` changes. Unless one of its workloads is
    /// `program`, the program takes the place of all of them.
    ///
    /// # Errors
    /// The first mistake in the scenario or in a change.
    pub fn open(scenario: &str, set: &[String]) -> Result<Self, Failure> {
        let watch = Stopwatch::start();
        let checked = scenario::load_program(scenario, set)?;
        Self::start(checked, engine::Kind::Window, watch.cpu_s())
    }

    /// Opens a scenario from a text, as [`Session::open`] does.
    ///
    /// # Errors
    /// The first mistake in the scenario or in a change.
    pub fn open_source(source: &Source, set: &[String]) -> Result<Self, Failure> {
        let watch = Stopwatch::start();
        let checked = scenario::check_program(source, set)?;
        Self::start(checked, engine::Kind::Window, watch.cpu_s())
    }

    /// Starts the run of a checked scenario, whose preparation took so many CPU seconds.
    pub(crate) fn start(checked: Checked, kind: engine::Kind, setup_s: f64) -> Result<Self, Failure> {
        let Some(ranks) = checked.program() else {
            return Err(Failure::Asked("the scenario has no workload `program`".to_owned()));
        };
        let qps = checked.plan.qps.len();
        let stop = Arc::new(AtomicBool::new(false));
        let watching = Watch { stop, ask: None, headroom: Headroom::new(&checked.plan) };
        let running = Running::new(checked, |checked| {
            let Checked { plan, schemes, nics, .. } = checked;
            Some(sim::live(plan, schemes, nics, kind))
        });
        Ok(Session {
            running,
            ranks,
            messages: vec![Vec::new(); qps],
            tasks: BTreeMap::new(),
            instances: BTreeMap::new(),
            transfers: Vec::new(),
            later: BinaryHeap::new(),
            calls: 0,
            due: VecDeque::new(),
            now: Time::ZERO,
            watch: watching,
            setup_s,
            since: Stopwatch::start(),
            kind,
        })
    }

    /// The scenario.
    pub fn checked(&self) -> &Checked {
        self.running.borrow_owner()
    }

    /// Number of ranks: GPUs, or hosts of a fabric without servers.
    pub fn ranks(&self) -> u32 {
        self.ranks.count()
    }

    /// Time of the last event, or the time up to which the run has gone without any.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Calls `ask` every few dozen windows, and ends the run early when `ask` returns true.
    pub fn stop_if(&mut self, ask: impl FnMut() -> bool + std::marker::Send + 'static) {
        self.watch.ask = Some(Box::new(ask));
    }

    /// Ends the run early: no event comes any more.
    pub(crate) fn stop(&mut self) {
        self.watch.stop.store(true, Ordering::Relaxed);
    }

    /// Sends a message from one rank to another now. `id` comes back in its events.
    ///
    /// # Errors
    /// [`Failure::Asked`] if a rank does not exist, the pair has no queue pair, or the size is beyond 2^50 B.
    pub fn send(&mut self, id: u64, pair: (u32, u32), bytes: u64, tag: u32) -> Result<(), Failure> {
        let send = self.checked_send(id, pair, bytes, tag)?;
        self.post(send);
        Ok(())
    }

    /// Sends a message at a time that is now or later.
    ///
    /// # Errors
    /// As for [`Session::send`], and if the time has passed or is beyond the end of time.
    pub fn send_at(
        &mut self,
        at: Time,
        id: u64,
        pair: (u32, u32),
        bytes: u64,
        tag: u32,
    ) -> Result<(), Failure> {
        self.check(at)?;
        let send = self.checked_send(id, pair, bytes, tag)?;
        self.calls += 1;
        self.later.push(Reverse((at, self.calls, send)));
        Ok(())
    }

    /// Gives a name to the ranks of an instance.
    ///
    /// # Errors
    /// [`Failure::Asked`] if there are none, or one does not exist or stands twice.
    pub fn name_instance(&mut self, name: &str, ranks: &[u32]) -> Result<(), Failure> {
        let last = self.ranks().saturating_sub(1);
        if ranks.is_empty() {
            return Err(Failure::Asked(format!("the instance \"{name}\" has no ranks")));
        }
        for (i, rank) in ranks.iter().enumerate() {
            if *rank > last {
                return Err(Failure::Asked(format!("rank {rank} does not exist; the ranks are 0 to {last}")));
            }
            if ranks[..i].contains(rank) {
                return Err(Failure::Asked(format!("rank {rank} stands twice in the instance \"{name}\"")));
            }
        }
        self.instances.insert(name.to_owned(), ranks.to_vec());
        Ok(())
    }

    /// The ranks of an instance.
    ///
    /// # Errors
    /// [`Failure::Asked`] if it has no name.
    pub fn instance(&self, name: &str) -> Result<&[u32], Failure> {
        self.instances.get(name).map(Vec::as_slice).ok_or_else(|| {
            let names: Vec<&str> = self.instances.keys().map(String::as_str).collect();
            Failure::Asked(format!("there is no instance \"{name}\"; {}", scenario::suggestion(name, &names)))
        })
    }

    /// Sends bytes from one instance to another now, such as keys and values from the ranks that computed them to those that decode. Each
    /// rank of the larger instance sends or receives an equal part. One event comes when all bytes have arrived.
    ///
    /// # Errors
    /// As for [`Session::send`], and if an instance has no ranks.
    pub fn transfer(&mut self, id: u64, (from, to): (&[u32], &[u32]), bytes: u64) -> Result<(), Failure> {
        let Some(&rank) = to.first().filter(|_| !from.is_empty()) else {
            return Err(Failure::Asked("an instance has no ranks".to_owned()));
        };
        let parts = from.len().max(to.len()) as u64;
        let number = self.transfers.len() as u64;
        let pairs = (0..).zip(pairs(from.len() as u64, to.len() as u64));
        let sends: Result<Vec<Send>, Failure> = pairs
            .map(|(i, (a, b))| {
                self.checked_send(number, (from[a as usize], to[b as usize]), part(bytes, i, parts), 0)
            })
            .collect();
        let sends = sends?;
        self.transfers.push(Transfer { id, rank, left: parts as u32 });
        for send in sends {
            self.post(Send { part: true, ..send });
        }
        Ok(())
    }

    /// Sets a timer of a rank, which fires `after` now: after all else that happens at its time, if `after` is 0.
    ///
    /// # Errors
    /// [`Failure::Asked`] if the rank does not exist or the time is out of range.
    pub fn timer(&mut self, id: u64, rank: u32, after: Time) -> Result<(), Failure> {
        self.check(Time(self.now.ps().saturating_add(after.ps())))?;
        let task = self.ranks.timer(rank, after).map_err(Failure::Asked)?;
        self.post_task(task, Posted::Timer { id, rank });
        Ok(())
    }

    /// The check of every time that a program gives: it has not passed, and it is not beyond the end of time.
    fn check(&self, at: Time) -> Result<(), Failure> {
        if at > LATEST {
            return Err(Failure::Asked(format!("the time {at} is beyond the end of time, {LATEST}")));
        }
        if at < self.now {
            return Err(Failure::Asked(format!("the time {at} has passed: it is {}", self.now)));
        }
        Ok(())
    }

    fn checked_send(&self, id: u64, (from, to): (u32, u32), bytes: u64, tag: u32) -> Result<Send, Failure> {
        if bytes > MOST_BYTES {
            return Err(Failure::Asked(format!("a message has at most 1024TiB, found {bytes} B")));
        }
        // A message without bytes takes a packet all the same.
        let bytes = bytes.max(1);
        self.ranks.way(from, to, bytes, tag).map_err(Failure::Asked)?;
        Ok(Send { id, from, to, bytes, tag, part: false })
    }

    fn post(&mut self, send: Send) {
        let Send { from, to, bytes, tag, .. } = send;
        match self.ranks.way(from, to, bytes, tag) {
            Ok(Way::Message(qp)) => {
                self.drive(|live, _| {
                    live.post(qp, bytes);
                });
                self.messages[qp.index()].push(send);
            }
            Ok(Way::Task(task)) => self.post_task(task, Posted::Copy(send)),
            Err(_) => {}
        }
    }

    fn post_task(&mut self, task: model::plan::Task, posted: Posted) {
        self.tasks.entry(task.node).or_default().push(posted);
        self.drive(|live, _| {
            live.post_task(task);
        });
    }

    /// Calls a function of the run, which exists until [`Session::finish`] takes it.
    fn drive<R>(&mut self, call: impl FnOnce(&mut dyn Live, &mut Watch) -> R) -> Option<R> {
        let watch = &mut self.watch;
        self.running.with_dependent_mut(|_, live| live.as_deref_mut().map(|live| call(live, watch)))
    }

    /// The next event up to `until`, if there is such a bound.
    ///
    /// # Errors
    /// [`Failure::Asked`] if the time has passed or is beyond the end of time.
    pub fn next(&mut self, until: Option<Time>) -> Result<Next, Failure> {
        until.map_or(Ok(()), |until| self.check(until))?;
        Ok(self.play(until.unwrap_or(Time::NEVER)))
    }

    /// The next event up to `until`; [`Time::NEVER`] sets no bound.
    fn play(&mut self, until: Time) -> Next {
        loop {
            if let Some(event) = self.due.pop_front() {
                return Next::Event(event);
            }
            let later = self.later.peek().map(|Reverse((at, ..))| *at).filter(|at| *at <= until);
            let stop = later.unwrap_or(until);
            let next = self.drive(|live, watch| (live.next(stop, watch), live.now()));
            let Some((next, now)) = next else { return Next::Ended };
            self.now = now;
            match next {
                live::Next::Event(event) => self.take(event),
                live::Next::Ended => return Next::Ended,
                live::Next::Until | live::Next::Idle if later.is_some() => {
                    while let Some(Reverse((_, _, send))) =
                        self.later.peek().copied().filter(|next| next.0.0 <= stop)
                    {
                        self.later.pop();
                        self.post(send);
                    }
                }
                live::Next::Idle if self.later.is_empty() => return Next::Idle,
                live::Next::Until | live::Next::Idle => return Next::Until,
            }
        }
    }

    /// Converts an event of the engine.
    fn take(&mut self, event: live::Event) {
        let at = event.at;
        match event.what {
            Ended::Acked(qp, number) => self.sent(at, self.messages[qp.index()][number as usize]),
            Ended::Received(qp, number) => self.received(at, self.messages[qp.index()][number as usize]),
            Ended::Task(number) => match self.tasks.get(&event.node).map(|tasks| tasks[number as usize]) {
                Some(Posted::Timer { id, rank }) => {
                    self.due.push_back(Event { at, rank, kind: Kind::Timer, id });
                }
                Some(Posted::Copy(send)) => {
                    self.received(at, send);
                    self.sent(at, send);
                }
                None => {}
            },
        }
    }

    fn sent(&mut self, at: Time, send: Send) {
        if !send.part {
            self.due.push_back(Event { at, rank: send.from, kind: Kind::Sent, id: send.id });
        }
    }

    fn received(&mut self, at: Time, send: Send) {
        let Send { id, to: rank, part, .. } = send;
        if !part {
            self.due.push_back(Event { at, rank, kind: Kind::Received, id });
            return;
        }
        let transfer = &mut self.transfers[id as usize];
        transfer.left -= 1;
        if transfer.left == 0 {
            let Transfer { id, rank, .. } = *transfer;
            self.due.push_back(Event { at, rank, kind: Kind::Transferred, id });
        }
    }

    /// Plays everything sent to its end, and returns the run. Its plan holds all messages.
    pub fn finish(mut self) -> Run {
        while let Next::Event(_) | Next::Until = self.play(Time::NEVER) {}
        let watch = &mut self.watch;
        let finished = self.running.with_dependent_mut(|_, live| live.take().map(|live| live.finish(watch)));
        let spent = Spent {
            wall_s: self.since.wall_s(),
            cpu_s: self.since.cpu_s(),
            setup_s: self.setup_s,
            kind: self.kind,
        };
        let room = self.watch.headroom.room();
        let mut checked = self.running.into_owner();
        let Some((plan, outcome)) = finished else { unreachable!("only this function takes the run") };
        checked.plan = plan;
        conclude(checked, outcome, spent, room)
    }
}

impl Line for Session {
    fn next(&mut self, until: Option<Time>) -> Result<Next, Failure> {
        Session::next(self, until)
    }

    fn send(&mut self, id: u64, pair: (u32, u32), bytes: u64, tag: u32) -> Result<(), Failure> {
        Session::send(self, id, pair, bytes, tag)
    }

    fn queue_pair(&self, (from, to): (u32, u32), tag: u32) -> Option<QpId> {
        match self.ranks.way(from, to, 1, tag) {
            Ok(Way::Message(qp)) => Some(qp),
            _ => None,
        }
    }

    fn forgets(&mut self, qp: QpId, at: Time) -> bool {
        self.drive(|live, _| live.forgets(qp, at)).unwrap_or(false)
    }
}

/// Largest message, bytes: as in scenarios.
const MOST_BYTES: u64 = 1 << 50;

/// Latest time that a program may give, as for starts in scenarios.
pub(crate) const LATEST: Time = Time::from_ms(1_000_000_000);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Prepared;

    const FABRIC: &str =
        "[topology.leaf-spine]\nleaves = 2\nspines = 2\nhosts-per-leaf = 4\n[scheme.themis]\n";

    fn ring_pairs(n: u32) -> String {
        let pairs: Vec<_> = (0..n).map(|rank| format!("[{rank}, {}]", (rank + 1) % n)).collect();
        format!("[[workload]]\nprogram = {{ pairs = [{}] }}\n", pairs.join(", "))
    }

    fn open(text: &str) -> Result<Session, Failure> {
        Session::open_source(&Source::new("session.toml", text), &[])
    }

    /// Plays a ring all-reduce: every rank passes a chunk on to the next when it has arrived, 2 (n - 1) times.
    fn ring(session: &mut Session, chunk: u64) {
        let n = session.ranks();
        let steps = 2 * (n - 1);
        for rank in 0..n {
            session.send(rank.into(), (rank, (rank + 1) % n), chunk, 0).unwrap();
        }
        let mut now = Time::ZERO;
        while let Next::Event(event) = session.next(None).unwrap() {
            assert!(event.at >= now, "time goes back");
            now = event.at;
            let step = event.id / u64::from(n);
            if event.kind == Kind::Received && step + 1 < steps.into() {
                let next = (event.rank + 1) % n;
                let id = (step + 1) * u64::from(n) + u64::from(event.rank);
                session.send(id, (event.rank, next), chunk, 0).unwrap();
            }
        }
    }

    #[test]
    fn a_driven_ring_has_the_digest_of_the_all_reduce_in_the_scenario() {
        let (n, chunk) = (8, 143_800);
        let native = format!(
            "{FABRIC}[[workload]]\nall-reduce = {{ bytes = \"{}B\", groups = \"all\" }}\n",
            n * chunk
        );
        let native = scenario::check(&Source::new("native.toml", native), &[]).unwrap();
        let native = crate::run(Prepared { checked: native, setup_s: 0.0 });
        let mut session = open(&(FABRIC.to_owned() + &ring_pairs(8))).unwrap();
        ring(&mut session, chunk);
        let run = session.finish();
        assert_eq!(run.faults(), [""; 0]);
        assert_eq!(run.summary.digest, native.summary.digest);
    }

    #[test]
    fn messages_for_later_start_at_their_time_and_timers_fire_after_theirs() {
        let mut session = open(FABRIC).unwrap();
        session.send_at(Time::from_us(9), 1, (0, 7), 1438, 0).unwrap();
        assert_eq!(
            session.next(Some(Time::from_us(2))).unwrap(),
            Next::Until,
            "the message is still to come"
        );
        session.timer(2, 3, Time::from_us(2)).unwrap();
        assert_eq!(session.next(Some(Time::from_us(3))).unwrap(), Next::Until);
        assert_eq!(session.now(), Time::from_us(3));
        let timer = Event { at: Time::from_us(4), rank: 3, kind: Kind::Timer, id: 2 };
        assert_eq!(session.next(None).unwrap(), Next::Event(timer));
        let Next::Event(received) = session.next(None).unwrap() else { panic!("the message arrives") };
        assert_eq!((received.rank, received.kind, received.id), (7, Kind::Received, 1));
        let Next::Event(sent) = session.next(None).unwrap() else { panic!("the acknowledgement arrives") };
        assert_eq!((sent.rank, sent.kind, sent.id), (0, Kind::Sent, 1));
        assert_eq!(session.next(None).unwrap(), Next::Idle);
        let run = session.finish();
        assert_eq!(run.outcome.messages[0].start, Time::from_us(9));
        assert_eq!(run.outcome.messages[0].received, received.at);
    }

    #[test]
    fn messages_for_later_leave_in_the_order_of_time_then_of_the_calls() {
        let mut session = open(FABRIC).unwrap();
        for (us, id) in [(400, 9), (5, 8), (400, 2), (5, 3)] {
            session.send_at(Time::from_us(us), id, (0, 7), 1438, 0).unwrap();
        }
        let mut arrived = Vec::new();
        while let Next::Event(event) = session.next(None).unwrap() {
            if event.kind == Kind::Received {
                arrived.push((event.id, event.at >= Time::from_us(400)));
            }
        }
        assert_eq!(arrived, [(8, false), (3, false), (9, true), (2, true)]);
    }

    #[test]
    fn a_message_without_bytes_takes_as_long_as_one_of_a_byte() {
        let took = |bytes| {
            let mut session = open(FABRIC).unwrap();
            session.send(1, (0, 7), bytes, 0).unwrap();
            let Next::Event(received) = session.next(None).unwrap() else { panic!("it arrives") };
            received.at
        };
        assert_eq!(took(0), took(1));
        assert!(took(1000) > took(1));
    }

    #[test]
    fn ranks_of_a_server_copy_over_nvlink() {
        let text = "[server]\ngpus = 2\nnvlink = { rate = \"3600Gbps\", delay = \"500ns\" }\n[topology.rails]\nservers = 2\nspines = 1\n";
        let mut session = open(text).unwrap();
        assert_eq!(session.ranks(), 4);
        session.send(1, (2, 3), 450_000, 0).unwrap();
        session.send(2, (1, 1), 450_000, 0).unwrap();
        let of = |next| match next {
            Next::Event(Event { at, rank, kind, id }) => (at, rank, kind, id),
            other => panic!("{other:?}"),
        };
        let local = Time::from_ns(1);
        assert_eq!(of(session.next(None).unwrap()), (local, 1, Kind::Received, 2));
        assert_eq!(of(session.next(None).unwrap()), (local, 1, Kind::Sent, 2));
        let copied = Time::from_ns(1500);
        assert_eq!(of(session.next(None).unwrap()), (copied, 3, Kind::Received, 1));
        assert_eq!(of(session.next(None).unwrap()), (copied, 2, Kind::Sent, 1));
        assert_eq!(session.next(None).unwrap(), Next::Idle);
    }

    /// Four GPUs with a NIC each hand keys and values to two: two messages share each receiver's NIC.
    #[test]
    fn a_transfer_takes_as_long_as_its_messages_and_has_one_event() {
        let text = "[server]\ngpus = 4\n[topology.rails]\nservers = 2\nspines = 1\n[scheme.themis]\n";
        let took = |from: &[u32], to: &[u32], bytes: u64| {
            let mut session = open(text).unwrap();
            session.transfer(9, (from, to), bytes).unwrap();
            let Next::Event(event) = session.next(None).unwrap() else { panic!("it arrives") };
            assert_eq!((event.kind, event.id, event.rank), (Kind::Transferred, 9, to[0]));
            assert_eq!(session.next(None).unwrap(), Next::Idle, "one event");
            assert_eq!(session.finish().faults(), [""; 0]);
            event.at
        };
        let message = |bytes: u64| {
            let mut session = open(text).unwrap();
            session.send(1, (0, 4), bytes, 0).unwrap();
            let Next::Event(event) = session.next(None).unwrap() else { panic!("it arrives") };
            event.at
        };
        let all = [0, 1, 2, 3];
        assert_eq!(took(&all, &[4, 5, 6, 7], 4_000_000), message(1_000_000));
        let half = took(&all, &[4, 5], 4_000_000).ps() as f64 / message(2_000_000).ps() as f64;
        assert!((0.95..1.1).contains(&half), "{half}");
        let mut session = open(text).unwrap();
        session.name_instance("decode0", &[4, 5]).unwrap();
        assert_eq!(session.instance("decode0").unwrap(), [4, 5]);
        let unknown = session.instance("decode1").unwrap_err().to_string();
        assert!(unknown.contains("no instance \"decode1\"") && unknown.contains("decode0"), "{unknown}");
        let text = |result: Result<(), Failure>| result.unwrap_err().to_string();
        assert_eq!(text(session.name_instance("p", &[1, 1])), "rank 1 stands twice in the instance \"p\"");
        assert!(text(session.name_instance("p", &[8])).contains("rank 8 does not exist"));
        assert_eq!(text(session.transfer(1, (&[], &[4]), 1)), "an instance has no ranks");
        assert_eq!(text(session.transfer(1, (&[0], &[9]), 1)), "rank 9 does not exist; the ranks are 0 to 7");
        assert_eq!(session.next(None).unwrap(), Next::Idle);
    }

    #[test]
    fn mistakes_of_a_program_are_refused_and_change_nothing() {
        let mut session = open(&(FABRIC.to_owned() + &ring_pairs(8))).unwrap();
        let text = |result: Result<(), Failure>| result.unwrap_err().to_string();
        assert_eq!(text(session.send(1, (0, 8), 1, 0)), "rank 8 does not exist; the ranks are 0 to 7");
        let missing = "rank 0 has no queue pair to rank 2; add [0, 2] to `program.pairs`";
        assert_eq!(text(session.send(1, (0, 2), 1, 0)), missing);
        assert_eq!(
            text(session.send(1, (0, 1), 1 << 51, 0)),
            "a message has at most 1024TiB, found 2251799813685248 B"
        );
        assert_eq!(session.next(Some(Time::from_us(5))).unwrap(), Next::Idle);
        let passed = "the time 4us has passed: it is 5us";
        assert_eq!(text(session.send_at(Time::from_us(4), 1, (0, 1), 1, 0)), passed);
        assert_eq!(text(session.next(Some(Time::from_us(4))).map(drop)), passed);
        assert_eq!(session.finish().outcome.messages.len(), 0);
    }

    /// Times near 2^64 ps would wrap in the engine.
    #[test]
    fn times_beyond_the_end_of_time_are_refused() {
        let mut session = open(FABRIC).unwrap();
        let text = |result: Result<(), Failure>| result.unwrap_err().to_string();
        for over in [0, 1, 1_000_000, 1_000_000_000_000] {
            let wrong = [Time(u64::MAX - over), Time(LATEST.ps() + 1)];
            for at in wrong {
                let told = format!("the time {at} is beyond the end of time, 1000000s");
                assert_eq!(text(session.send_at(at, 1, (0, 1), 1, 0)), told);
                assert_eq!(text(session.next(Some(at)).map(drop)), told);
                assert_eq!(text(session.timer(1, 0, at)), told);
            }
        }
        session.send_at(LATEST, 1, (0, 1), 1, 0).unwrap();
        session.timer(2, 0, LATEST).unwrap();
        assert_eq!(session.next(Some(Time::from_us(5))).unwrap(), Next::Until);
        assert!(text(session.timer(3, 0, LATEST)).contains("beyond the end of time"), "it counts from now");
        let mut last = Time::ZERO;
        while let Next::Event(event) = session.next(None).unwrap() {
            last = event.at;
        }
        assert!(last > LATEST && last < Time(LATEST.ps() + 1_000_000_000), "{last}");
        assert_eq!(session.finish().faults(), [""; 0]);
    }
}
