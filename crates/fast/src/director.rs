//! The director: it drives a run whose exchanges are laid out when their first member enters.
//!
//! The engine has the packets. Tasks are the director's own: computations, copies inside servers, and the tasks of exchanges, with the
//! rules of the engine. An exchange that is left out has neither: its members leave when a record says.

use crate::footprint::{Footprints, Shape};
use crate::series::{Class, Leader, Record, fit, is_audit};
use crate::told::Told;
use engine::Observer;
use engine::live::{Ended, Live, Next};
use finding::Finding;
use model::plan::{SliceTimes, Work};
use model::{Plan, QpId, Time};
use scenario::outlined::{Cause, Effect, Laid, Nature, Outlined, Trigger};
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap};
use std::rc::Rc;

/// What is due; at one instant the engine's order of a task's events holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    End,
    Enter,
    Leave,
    Ready,
}

/// Who is due.
#[derive(Clone, Copy, Debug)]
enum Who {
    /// A task of the outline, in a cell.
    Task(u32, u32),
    /// A task of an exchange under way.
    Inner(u32, u32),
    /// A member's slice of a gated exchange, in a cell.
    Slice(u32, u32, u32),
    /// A member that waits for nothing enters an exchange of a cell.
    Member(u32, u32, u32),
    /// An event of an exchange that is left out.
    Left(u32, u32),
}

struct Due {
    at: u64,
    kind: Kind,
    order: u64,
    who: Who,
    error: f64,
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.kind, self.order).cmp(&(other.at, other.kind, other.order))
    }
}

/// How an exchange under way is done.
enum Mode {
    /// By packets, or by copies inside servers.
    Sent(Box<Sent>),
    /// It is left out, and its events come when this record says.
    Replayed(Rc<Record>),
    /// It is left out, and its events come when those of another exchange do, which is under way.
    Follows(u32),
}

/// The messages and tasks of an exchange that is sent.
struct Sent {
    laid: Laid,
    messages: Vec<u32>,
    tasks: Vec<u32>,
    /// By message: the one before it on its queue pair, whether it is ready, and whether it is posted.
    before: Vec<u32>,
    after: Vec<u32>,
    ready: Vec<bool>,
    posted: Vec<bool>,
    /// Start of tasks that an engine starts, and readiness, ps.
    start: Vec<u64>,
    /// Events of messages and tasks that are still to come.
    open: u32,
    round: u32,
    class: u32,
}

/// An exchange under way.
struct Exchange {
    number: u32,
    cell: u32,
    mode: Mode,
    series: u32,
    /// By member, ps; [`NEVER`] before.
    entries: Vec<u64>,
    entered: u32,
    /// By event, ps; [`NEVER`] before.
    left: Vec<u64>,
    gone: u32,
    error: f64,
    /// Exchanges that follow this one.
    followers: Vec<u32>,
    /// Time of the record's first entry, once all members have entered.
    start: Option<u64>,
}

const NEVER: u64 = u64::MAX;
const NONE: u32 = u32::MAX;

/// Exchanges of one kind in one lane.
#[derive(Default)]
struct Series {
    class: u32,
    rounds: u32,
    /// Packets of an exchange over NICs.
    packets: u64,
    /// Rounds up to this one are sent.
    hold: u32,
    /// Whether its class is its own.
    own: bool,
    known: bool,
}

/// The exchanges of the same ranks of one communicator.
#[derive(Default)]
struct Lane {
    links: Rc<[u32]>,
    /// Exchanges under way over NICs.
    busy: u32,
    /// Whether others have used its links at the same time.
    touched: bool,
    /// Lanes that have.
    others: Vec<u32>,
    /// The last time for which its exchanges were left out.
    absent: (u64, u64),
    /// Series of this lane that have been opened.
    series: Vec<u32>,
}

/// A message that was posted.
#[derive(Clone, Copy)]
struct Posted {
    /// Where its exchange is under way.
    slot: u32,
    /// Its number in the exchange.
    message: u32,
    group: u16,
    /// Its operation in the results.
    operation: u32,
}

/// A stream or an engine: the time from which it is free, and the error of that time.
#[derive(Clone, Copy, Default)]
struct Free {
    at: u64,
    error: f64,
}

/// What a fast run did.
#[derive(Clone, Debug, Default)]
pub struct Books {
    /// Packets of exchanges that were sent, and that were left out.
    pub sent: u64,
    /// See `sent`.
    pub left_out: u64,
    /// Exchanges over NICs, and those of them that were sent.
    pub exchanges: (u64, u64),
    /// Situations: classes of exchanges that repeat.
    pub situations: u64,
    /// Audits, and their largest difference as a share of the exchange.
    pub audits: (u64, f64),
    /// Cells of ranks that are told, and all of them.
    pub cells: (u32, u32),
    /// Audits that met exchanges that were left out, and do not count.
    pub unclean: u64,
    /// The end, ps, and its error at 95 %.
    pub end: u64,
    /// See `end`.
    pub error: f64,
}

pub(crate) struct Director<'a> {
    outlined: &'a mut Outlined,
    plan: &'a Plan,
    live: Box<dyn Live + 'a>,
    footprints: Footprints<'a>,
    /// Largest error of an exchange that may be left out, as a share; `None` to leave nothing out.
    tolerance: Option<f64>,
    cells: u32,
    stride: u32,
    now: u64,
    due: BinaryHeap<Reverse<Due>>,
    /// By task and cell, and by member and cell: events still to come.
    tasks: Vec<u32>,
    members: Vec<u32>,
    /// By exchange and cell: where it is under way; of a gated one, the members that have not entered.
    under_way: Vec<u32>,
    exchanges: Vec<Option<Box<Exchange>>>,
    unused: Vec<u32>,
    /// By queue pair: what was posted, in order.
    posted: Vec<Vec<Posted>>,
    in_flight: u64,
    streams: Vec<Free>,
    streams_each: usize,
    engines: Vec<Free>,
    /// By task: exchanges before it.
    before: Vec<u32>,
    lanes: Vec<Lane>,
    series: Vec<Series>,
    classes: Vec<Class>,
    solo: BTreeMap<(u32, Vec<Shape>), u32>,
    /// By link: exchanges under way, and the lane that used it last.
    links: Vec<(u32, u32)>,
    pub(crate) told: Told,
    pub(crate) books: Books,
}

impl<'a> Director<'a> {
    pub(crate) fn new(
        outlined: &'a mut Outlined,
        plan: &'a Plan,
        live: Box<dyn Live + 'a>,
        tolerance: Option<f64>,
    ) -> Self {
        let (cells, stride) = outlined.cells();
        let each = |needs: &[u32]| needs.iter().flat_map(|&n| (0..cells).map(move |_| n)).collect::<Vec<_>>();
        let needs = outlined.needs();
        let (tasks, members) = (each(&needs.tasks), each(&needs.members));
        let exchanges = outlined.exchanges();
        let under_way = exchanges.iter().flat_map(|exchange| {
            let waits = if exchange.nature == Nature::Gated { exchange.members } else { NONE };
            (0..cells).map(move |_| waits)
        });
        let under_way = under_way.collect();
        let count = |of: &dyn Fn(&scenario::outlined::Outline) -> u32| {
            exchanges.iter().map(of).max().map_or(0, |last| last as usize + 1) * cells as usize
        };
        let (lanes, series) = (count(&|x| x.lane), count(&|x| x.track));
        let mut before = Vec::with_capacity(outlined.tasks().len());
        let mut laid = 0;
        for t in 0..outlined.tasks().len() as u32 {
            while exchanges.get(laid as usize).is_some_and(|exchange| exchange.tasks_before <= t) {
                laid += 1;
            }
            before.push(laid);
        }
        let footprints = Footprints::new(&plan.fabric);
        let streams_each = outlined.streams() as usize;
        Director {
            told: Told::new(outlined),
            streams: vec![Free::default(); plan.fabric.servers() * streams_each],
            streams_each,
            engines: Vec::new(),
            links: vec![(0, NONE); footprints.links()],
            footprints,
            plan,
            live,
            tolerance,
            cells,
            stride,
            now: 0,
            due: BinaryHeap::new(),
            tasks,
            members,
            under_way,
            exchanges: Vec::new(),
            unused: Vec::new(),
            posted: vec![Vec::new(); plan.qps.len()],
            in_flight: 0,
            before,
            lanes: (0..lanes).map(|_| Lane::default()).collect(),
            series: (0..series).map(|_| Series::default()).collect(),
            classes: Vec::new(),
            solo: BTreeMap::new(),
            books: Books::default(),
            outlined,
        }
    }

    /// Runs to the end. Returns true if everything has ended.
    pub(crate) fn run(&mut self, observer: &mut dyn Observer) -> Result<bool, Finding> {
        self.begin();
        loop {
            let until = self.due.peek().map_or(NEVER, |Reverse(due)| due.at);
            if self.in_flight > 0 || until == NEVER {
                match self.live.next(Time(until), observer) {
                    Next::Event(event) => {
                        self.now = event.at.ps();
                        self.take(event.what)?;
                        continue;
                    }
                    Next::Ended => return Ok(false),
                    Next::Until | Next::Idle if until == NEVER => break,
                    Next::Until | Next::Idle => {}
                }
            }
            self.now = until;
            while self.due.peek().is_some_and(|Reverse(due)| due.at == until) {
                if let Some(Reverse(due)) = self.due.pop() {
                    self.play(due)?;
                }
            }
        }
        for class in &self.classes {
            let (audits, worst) = class.audits();
            self.books.audits.0 += audits as u64;
            if class.left_out > 0 {
                self.books.audits.1 = self.books.audits.1.max(worst);
            }
        }
        self.books.cells = (self.told.cells, self.cells);
        self.books.situations = self.classes.iter().filter(|class| class.sent > 0).count() as u64;
        Ok(true)
    }

    /// The plan of everything posted, and the outcome.
    pub(crate) fn finish(self, observer: &mut dyn Observer) -> (Plan, engine::Outcome, Told, Books) {
        let (mut plan, outcome) = self.live.finish(observer);
        for (qp, posted) in plan.qps.iter().zip(&self.posted) {
            for (m, posted) in qp.messages.clone().zip(posted) {
                let message = &mut plan.messages[m as usize];
                (message.group, message.operation) = (posted.group, posted.operation);
            }
        }
        (plan, outcome, self.told, self.books)
    }

    fn begin(&mut self) {
        for t in 0..self.outlined.tasks().len() as u32 {
            let task = &self.outlined.tasks()[t as usize];
            if self.outlined.needs().tasks[t as usize] == 0 {
                let at = task.start.ps();
                for cell in 0..self.cells {
                    self.push(at, Kind::Ready, self.order_of(t), Who::Task(t, cell), 0.0);
                }
            }
        }
        let start = self.plan.jobs[0].start.ps();
        for x in 0..self.outlined.exchanges().len() as u32 {
            let first = self.outlined.needs().first_member[x as usize];
            for member in 0..self.outlined.exchanges()[x as usize].members {
                if self.outlined.needs().members[(first + member) as usize] == 0 {
                    for cell in 0..self.cells {
                        self.push(start, Kind::Ready, order(2 * x + 1, 0), Who::Member(x, member, cell), 0.0);
                    }
                }
            }
        }
    }

    /// Notes the end of something, with the error of its time.
    fn ends(&mut self, error: f64) {
        if self.now > self.books.end {
            (self.books.end, self.books.error) = (self.now, error);
        }
    }

    fn order_of(&self, t: u32) -> u64 {
        order(2 * self.before[t as usize], t)
    }

    fn push(&mut self, at: u64, kind: Kind, order: u64, who: Who, error: f64) {
        self.due.push(Reverse(Due { at, kind, order, who, error }));
    }

    /// Takes an event of the engine.
    fn take(&mut self, ended: Ended) -> Result<(), Finding> {
        let (qp, number, acked) = match ended {
            Ended::Received(qp, number) => (qp, number, false),
            Ended::Acked(qp, number) => (qp, number, true),
            Ended::Task(_) => return Ok(()),
        };
        self.in_flight -= u64::from(acked);
        let Posted { slot, message: m, .. } = self.posted[qp.index()][number as usize];
        let Some(sent) = self.sent(slot) else { return Ok(()) };
        let message = &sent.laid.messages[m as usize];
        let range = if acked { message.on_acked.clone() } else { message.on_received.clone() };
        self.trigger(slot, range)?;
        self.close(slot);
        Ok(())
    }

    fn sent(&mut self, slot: u32) -> Option<&mut Sent> {
        match self.exchanges.get_mut(slot as usize)?.as_deref_mut()?.mode {
            Mode::Sent(ref mut sent) => Some(sent),
            _ => None,
        }
    }

    /// Fires triggers inside an exchange.
    fn trigger(&mut self, slot: u32, range: std::ops::Range<u32>) -> Result<(), Finding> {
        for i in range {
            let Some(sent) = self.sent(slot) else { return Ok(()) };
            match sent.laid.triggers[i as usize] {
                Trigger::Message(m) => {
                    sent.messages[m as usize] -= 1;
                    if sent.messages[m as usize] == 0 {
                        sent.ready[m as usize] = true;
                        self.post_ready(slot, m);
                    }
                }
                Trigger::Task(t) => {
                    sent.tasks[t as usize] -= 1;
                    if sent.tasks[t as usize] == 0 {
                        self.inner_ready(slot, t);
                    }
                }
                Trigger::Left(n) => self.leaves(slot, n)?,
            }
        }
        Ok(())
    }

    fn inner_ready(&mut self, slot: u32, t: u32) {
        if let Some(exchange) = self.exchanges[slot as usize].as_deref() {
            let (at, error) = (self.now, exchange.error);
            self.push(at, Kind::Ready, order(2 * exchange.number + 1, t), Who::Inner(slot, t), error);
        }
    }

    /// Posts a message and those after it on its queue pair that are ready.
    fn post_ready(&mut self, slot: u32, mut m: u32) {
        let now = self.now;
        self.sync(now);
        loop {
            let Some(sent) = self.sent(slot) else { return };
            let (before, group) = (sent.before[m as usize], sent.laid.group);
            if !sent.ready[m as usize]
                || sent.posted[m as usize]
                || before != NONE && !sent.posted[before as usize]
            {
                return;
            }
            sent.posted[m as usize] = true;
            let (qp, bytes, after) = (
                sent.laid.messages[m as usize].qp,
                sent.laid.messages[m as usize].bytes,
                sent.after[m as usize],
            );
            self.live.post(qp, bytes);
            let operation =
                self.told.operation_at(self.exchanges[slot as usize].as_deref().map(|e| (e.number, e.cell)));
            self.posted[qp.index()].push(Posted { slot, message: m, group, operation });
            self.in_flight += 1;
            if after == NONE {
                return;
            }
            m = after;
        }
    }

    /// Brings the engine's clock to `now` if nothing is under way.
    fn sync(&mut self, now: u64) {
        if self.in_flight == 0 && self.live.now().ps() < now {
            let next = self.live.next(Time(now), &mut ());
            debug_assert!(!matches!(next, Next::Event(_)), "nothing is under way");
        }
    }

    /// Plays what is due.
    fn play(&mut self, due: Due) -> Result<(), Finding> {
        let Due { at, kind, order, who, error } = due;
        match who {
            Who::Member(x, member, cell) => self.enter(x, member, cell, error),
            Who::Left(slot, n) => self.absent_left(slot, n),
            Who::Task(t, cell) => {
                let node = self.outlined.node(self.rank_of(t, cell));
                let work = self.outlined.tasks()[t as usize].work;
                match kind {
                    Kind::Ready => {
                        let (start, error) = self.start(work, node, order, who, error, None);
                        self.told.started(t, cell, at, start);
                        let _ = error;
                        Ok(())
                    }
                    Kind::End => {
                        self.told.ended(t, cell, at);
                        self.ends(error);
                        self.fire(Cause::Done(t), cell, error)
                    }
                    Kind::Enter => {
                        self.enters(work, node, order, who, error, (at, None));
                        Ok(())
                    }
                    Kind::Leave => Ok(()),
                }
            }
            Who::Slice(x, member, cell) => match kind {
                Kind::Enter => {
                    let (times, into) = self.slice_of(x, member, cell);
                    let (entered, error) = self.occupy(into, at, times.enter, error);
                    let end = times.end(at, at - times.delay.ps(), entered);
                    self.push(end, Kind::End, order, who, error);
                    Ok(())
                }
                _ => {
                    let exchange = &self.outlined.exchanges()[x as usize];
                    let left = exchange.left + member;
                    self.told.left(x, member, cell, at);
                    self.ends(error);
                    self.fire(Cause::Left(left), cell, error)
                }
            },
            Who::Inner(slot, t) => {
                let Some(sent) = self.sent(slot) else { return Ok(()) };
                let task = &sent.laid.tasks[t as usize];
                let (work, node, on_done) = (task.work, task.node, task.on_done.clone());
                let times = match work {
                    Work::Slice { times, .. } => Some(sent.laid.slices[times as usize]),
                    _ => None,
                };
                match kind {
                    Kind::Ready => {
                        let (start, _) = self.start(work, node, order, who, error, times);
                        let engine = matches!(work, Work::Slice { engine, .. } if engine != Work::NONE);
                        if let Some(sent) = self.sent(slot) {
                            sent.start[t as usize] = if engine { start } else { at };
                        }
                    }
                    Kind::Leave => self.leave(work, node, order, who, error, times),
                    Kind::Enter => {
                        let start = sent.start[t as usize];
                        self.enters(work, node, order, who, error, (start, times));
                    }
                    Kind::End => {
                        self.trigger(slot, on_done)?;
                        self.close(slot);
                    }
                }
                Ok(())
            }
        }
    }

    fn rank_of(&self, t: u32, cell: u32) -> u32 {
        self.outlined.tasks()[t as usize].rank + cell * self.stride
    }

    fn stream(&self, node: model::NodeId, stream: u32) -> usize {
        node.index() * self.streams_each + stream as usize
    }

    fn occupy(&mut self, stream: usize, now: u64, time: Time, error: f64) -> (u64, f64) {
        book(&mut self.streams[stream], now, time, error)
    }

    /// Starts work that is ready; returns its start.
    fn start(
        &mut self,
        work: Work,
        node: model::NodeId,
        order: u64,
        who: Who,
        error: f64,
        times: Option<SliceTimes>,
    ) -> (u64, f64) {
        let now = self.now;
        match work {
            Work::Free { time } => {
                self.push(now + time.ps(), Kind::End, order, who, error);
                (now, error)
            }
            Work::On { stream, time } => {
                let (start, error) = self.occupy(self.stream(node, stream), now, time, error);
                self.push(start + time.ps(), Kind::End, order, who, error);
                (start, error)
            }
            Work::Copy { from, time, delay, .. } => {
                let (start, error) = self.occupy(self.stream(node, from), now, time, error);
                self.push(start + delay.ps(), Kind::Enter, order, who, error);
                (start, error)
            }
            Work::Slice { engine, from, .. } => {
                let times = times.unwrap_or_default();
                let (start, error) = if engine == Work::NONE {
                    (now, error)
                } else {
                    let engine = engine as usize;
                    if self.engines.len() <= engine {
                        self.engines.resize(engine + 1, Free::default());
                    }
                    book(&mut self.engines[engine], now, times.busy, error)
                };
                if from == Work::NONE {
                    self.push(start + times.lasts.ps(), Kind::End, order, who, error);
                } else if start > now {
                    self.push(start, Kind::Leave, order, who, error);
                } else {
                    self.leave(work, node, order, who, error, Some(times));
                }
                (start, error)
            }
        }
    }

    /// Lets the bytes of a slice leave.
    fn leave(
        &mut self,
        work: Work,
        node: model::NodeId,
        order: u64,
        who: Who,
        error: f64,
        times: Option<SliceTimes>,
    ) {
        if let (Work::Slice { from, .. }, Some(times)) = (work, times) {
            let (left, error) = self.occupy(self.stream(node, from), self.now, times.out, error);
            self.push(left + times.delay.ps(), Kind::Enter, order, who, error);
        }
    }

    /// Lets the bytes of a copy or slice enter.
    fn enters(
        &mut self,
        work: Work,
        node: model::NodeId,
        order: u64,
        who: Who,
        error: f64,
        (start, times): (u64, Option<SliceTimes>),
    ) {
        let now = self.now;
        match (work, times) {
            (Work::Copy { to, time, .. }, _) => {
                let (entered, error) = self.occupy(self.stream(node, to), now, time, error);
                self.push(entered + time.ps(), Kind::End, order, who, error);
            }
            (Work::Slice { to, .. }, Some(times)) => {
                let (entered, error) = self.occupy(self.stream(node, to), now, times.enter, error);
                let end = times.end(start, now - times.delay.ps(), entered);
                self.push(end, Kind::End, order, who, error);
            }
            _ => {}
        }
    }

    /// Fires an event of the outline in a cell.
    fn fire(&mut self, cause: Cause, cell: u32, error: f64) -> Result<(), Finding> {
        let count = self.outlined.effects(cause).len();
        for i in 0..count {
            match self.outlined.effects(cause)[i] {
                Effect::Task(t) => {
                    let needs = &mut self.tasks[t as usize * self.cells as usize + cell as usize];
                    *needs -= 1;
                    if *needs == 0 {
                        let at = self.now.max(self.outlined.tasks()[t as usize].start.ps());
                        self.push(at, Kind::Ready, self.order_of(t), Who::Task(t, cell), error);
                    }
                }
                Effect::Enter(x, member) => {
                    let first = self.outlined.needs().first_member[x as usize];
                    let place = (first + member) as usize * self.cells as usize + cell as usize;
                    self.members[place] -= 1;
                    if self.members[place] == 0 {
                        self.enter(x, member, cell, error)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// A member of a cell enters an exchange.
    fn enter(&mut self, x: u32, member: u32, cell: u32, error: f64) -> Result<(), Finding> {
        let exchange = &self.outlined.exchanges()[x as usize];
        let (nature, members) = (exchange.nature, exchange.members);
        self.told.entered(x, member, cell, self.now);
        let (at_cell, member) = if exchange.spans { (0, cell * members + member) } else { (cell, member) };
        let place = x as usize * self.cells as usize + at_cell as usize;
        if nature == Nature::Gated {
            self.under_way[place] -= 1;
            if self.under_way[place] == 0 {
                self.through_the_gate(x, cell, error);
            }
            return Ok(());
        }
        if self.under_way[place] == NONE {
            self.open(x, at_cell)?;
        }
        let (slot, now) = (self.under_way[place], self.now);
        let Some(exchange) = self.exchanges[slot as usize].as_deref_mut() else { return Ok(()) };
        exchange.entries[member as usize] = now;
        exchange.entered += 1;
        exchange.error = exchange.error.max(error);
        let all = exchange.entered as usize == exchange.entries.len();
        match &exchange.mode {
            Mode::Sent(sent) => {
                let t = sent.laid.enter[member as usize];
                self.inner_ready(slot, t);
                if all {
                    self.entered_all(slot);
                }
            }
            _ if all => self.entered_all(slot),
            _ => {}
        }
        Ok(())
    }

    /// All members of a gated collective have entered.
    fn through_the_gate(&mut self, x: u32, cell: u32, error: f64) {
        let members = self.outlined.exchanges()[x as usize].members;
        for member in 0..members {
            let rank = self.outlined.first_ranks(x)[member as usize] + cell * self.stride;
            let (times, out, _) = self.outlined.slice(&self.outlined.exchanges()[x as usize], member, rank);
            let out = self.stream(self.outlined.node(rank), out);
            let (left, error) = self.occupy(out, self.now, times.out, error);
            let who = Who::Slice(x, member, cell);
            self.push(left + times.delay.ps(), Kind::Enter, order(2 * x + 1, member), who, error);
        }
    }

    /// Times of a member's slice, and the stream by which it enters.
    fn slice_of(&self, x: u32, member: u32, cell: u32) -> (SliceTimes, usize) {
        let rank = self.outlined.first_ranks(x)[member as usize] + cell * self.stride;
        let (times, _, into) = self.outlined.slice(&self.outlined.exchanges()[x as usize], member, rank);
        (times, self.stream(self.outlined.node(rank), into))
    }

    /// Opens an exchange: it is sent or left out.
    fn open(&mut self, x: u32, cell: u32) -> Result<(), Finding> {
        let outline = self.outlined.exchanges()[x as usize].clone();
        let (series, lane) = (outline.track * self.cells + cell, outline.lane * self.cells + cell);
        if !self.series[series as usize].known {
            self.learn(x, cell, (series, lane), outline.alike)?;
        }
        let over_nics = self.series[series as usize].packets > 0;
        if over_nics {
            self.touch(lane);
        }
        let repeats = matches!(outline.nature, Nature::Transfer | Nature::Collective { coupled: true });
        let state = &mut self.series[series as usize];
        state.rounds += 1;
        let (mut round, packets) = (state.rounds, state.packets);
        let mut mode = None;
        if let Some(tolerance) = self.tolerance.filter(|_| repeats && over_nics) {
            if self.lanes[lane as usize].touched && !state.own {
                // From now on its times are its own.
                (state.own, state.rounds) = (true, 1);
                round = 1;
                state.class = self.classes.len() as u32;
                self.classes.push(Class::default());
            }
            let class = &self.classes[state.class as usize];
            let due = is_audit(round) || round <= state.hold || class.bound() > tolerance;
            let leader = class.leaders.get(&round);
            mode = match (due, &class.record, leader) {
                (_, _, Some(Leader::Ended(record))) => Some(Mode::Replayed(Rc::clone(record))),
                (_, _, Some(Leader::UnderWay(leader))) => Some(Mode::Follows(*leader)),
                (false, Some(record), _) => Some(Mode::Replayed(Rc::clone(record))),
                _ => None,
            };
        }
        let slot = self.unused.pop().unwrap_or_else(|| {
            self.exchanges.push(None);
            self.exchanges.len() as u32 - 1
        });
        if over_nics {
            self.books.exchanges.0 += 1;
            let class = self.series[series as usize].class as usize;
            match mode {
                None => {
                    (self.books.sent, self.books.exchanges.1) =
                        (self.books.sent + packets, self.books.exchanges.1 + 1);
                    if repeats && self.tolerance.is_some() {
                        self.classes[class].leaders.insert(round, Leader::UnderWay(slot));
                    }
                    self.classes[class].sent += 1;
                }
                Some(_) => {
                    self.books.left_out += packets;
                    self.classes[class].left_out += 1;
                }
            }
        }
        let mode = match mode {
            Some(mode) => mode,
            None => Mode::Sent(Box::new(self.lay(x, cell, round, series)?)),
        };
        if let Mode::Follows(leader) = mode
            && let Some(leader) = self.exchanges[leader as usize].as_deref_mut()
        {
            leader.followers.push(slot);
        }
        let members = outline.members * if outline.spans { self.cells } else { 1 };
        let leaves = outline.leaves * if outline.spans { self.cells } else { 1 };
        self.exchanges[slot as usize] = Some(Box::new(Exchange {
            number: x,
            cell,
            mode,
            series,
            entries: vec![NEVER; members as usize],
            entered: 0,
            left: vec![NEVER; leaves as usize],
            gone: 0,
            error: 0.0,
            followers: Vec::new(),
            start: None,
        }));
        self.under_way[x as usize * self.cells as usize + cell as usize] = slot;
        if over_nics {
            self.occupies(lane);
        }
        Ok(())
    }

    /// Learns the links of a lane, and what its exchanges are like.
    fn learn(&mut self, x: u32, cell: u32, (series, lane): (u32, u32), alike: u32) -> Result<(), Finding> {
        let pairs = self.outlined.pairs(x, cell)?;
        let (links, shapes) = self.footprints.of(&pairs);
        let packets = pairs.iter().map(|&(_, _, bytes, times)| self.plan.wire.packets(bytes) * times).sum();
        let state = &mut self.lanes[lane as usize];
        if state.links.len() < links.len() {
            state.links = links.into();
        }
        state.series.push(series);
        let next = self.classes.len() as u32;
        let class = *self.solo.entry((alike, shapes)).or_insert(next);
        if class == next {
            self.classes.push(Class::default());
        }
        self.series[series as usize] = Series { class, packets, known: true, ..Series::default() };
        Ok(())
    }

    /// Notes which other lanes have exchanges under way on the links of a lane.
    fn touch(&mut self, lane: u32) {
        let links = Rc::clone(&self.lanes[lane as usize].links);
        let mut met: Vec<u32> = links
            .iter()
            .map(|&link| self.links[link as usize])
            .filter(|&(busy, last)| busy > 0 && last != lane)
            .map(|(_, last)| last)
            .collect();
        met.sort_unstable();
        met.dedup();
        for other in met {
            for (one, two) in [(lane, other), (other, lane)] {
                let state = &mut self.lanes[one as usize];
                state.touched = true;
                if let Err(place) = state.others.binary_search(&two) {
                    state.others.insert(place, two);
                }
            }
        }
    }

    fn occupies(&mut self, lane: u32) {
        let state = &mut self.lanes[lane as usize];
        state.busy += 1;
        if state.busy == 1 {
            let links = Rc::clone(&state.links);
            for &link in links.iter() {
                let (busy, last) = &mut self.links[link as usize];
                (*busy, *last) = (*busy + 1, lane);
            }
        }
    }

    fn frees(&mut self, lane: u32) {
        let state = &mut self.lanes[lane as usize];
        state.busy -= 1;
        if state.busy == 0 {
            let links = Rc::clone(&state.links);
            links.iter().for_each(|&link| self.links[link as usize].0 -= 1);
        }
    }

    fn lay(&mut self, x: u32, cell: u32, round: u32, series: u32) -> Result<Sent, Finding> {
        let laid = self.outlined.lay(x, cell)?;
        let (messages, tasks) = (laid.messages.len(), laid.tasks.len());
        let (mut before, mut after) = (vec![NONE; messages], vec![NONE; messages]);
        let mut last: BTreeMap<QpId, u32> = BTreeMap::new();
        for (m, message) in (0..).zip(&laid.messages) {
            if let Some(earlier) = last.insert(message.qp, m) {
                (before[m as usize], after[earlier as usize]) = (earlier, m);
            }
        }
        Ok(Sent {
            messages: laid.messages.iter().map(|message| message.needs).collect(),
            tasks: laid.tasks.iter().map(|task| task.needs).collect(),
            before,
            after,
            ready: vec![false; messages],
            posted: vec![false; messages],
            start: vec![0; tasks],
            open: (2 * messages + tasks) as u32,
            round,
            class: self.series[series as usize].class,
            laid,
        })
    }

    /// All members have entered.
    fn entered_all(&mut self, slot: u32) {
        let Some(exchange) = self.exchanges[slot as usize].as_deref_mut() else { return };
        match &exchange.mode {
            Mode::Sent(_) => {
                exchange.start = exchange.entries.iter().min().copied();
                let followers = exchange.followers.clone();
                followers.into_iter().for_each(|follower| self.follow(follower));
            }
            Mode::Replayed(record) => {
                let record = Rc::clone(record);
                self.replay(slot, &record);
            }
            Mode::Follows(_) => self.follow(slot),
        }
    }

    /// Lets the members of an exchange leave when a record says.
    fn replay(&mut self, slot: u32, record: &Record) {
        let Some(exchange) = self.exchanges[slot as usize].as_deref_mut() else { return };
        let fitted = fit(&exchange.entries, &record.entries);
        exchange.start = Some(fitted.start);
        let bound = self.classes[self.series[exchange.series as usize].class as usize].bound();
        let share = if bound.is_finite() { bound } else { self.tolerance.unwrap_or(0.0) };
        exchange.error += share * record.duration() as f64 + fitted.spread as f64;
        let (number, error) = (exchange.number, exchange.error);
        for (n, &left) in (0..).zip(&record.left) {
            let at = (fitted.start + left).max(self.now);
            self.push(at, Kind::End, order(2 * number + 1, n), Who::Left(slot, n), error);
        }
    }

    /// Lets the members of an exchange leave that have left the one that it follows.
    fn follow(&mut self, slot: u32) {
        let Some(exchange) = self.exchanges[slot as usize].as_deref() else { return };
        let Mode::Follows(leader) = exchange.mode else { return };
        if exchange.entered as usize != exchange.entries.len() || exchange.start.is_some() {
            return;
        }
        let Some(first) = self.exchanges[leader as usize].as_deref() else { return };
        let Some(begin) = first.start else { return };
        let known: Vec<u64> = first.entries.iter().map(|entry| entry - begin).collect();
        let fitted = fit(&exchange.entries, &known);
        let left: Vec<(u32, u64)> = (0..).zip(&first.left).map(|(n, &left)| (n, left)).collect();
        if let Some(exchange) = self.exchanges[slot as usize].as_deref_mut() {
            exchange.start = Some(fitted.start);
            exchange.error += fitted.spread as f64;
        }
        for (n, left) in left.into_iter().filter(|(_, left)| *left != NEVER) {
            self.mirror(slot, n, left - begin);
        }
    }

    /// Lets an event of an exchange come as long after its start as that of its leader.
    fn mirror(&mut self, slot: u32, n: u32, after: u64) {
        let Some(exchange) = self.exchanges[slot as usize].as_deref() else { return };
        let Some(start) = exchange.start else { return };
        let (number, error) = (exchange.number, exchange.error);
        let at = (start + after).max(self.now);
        self.push(at, Kind::End, order(2 * number + 1, n), Who::Left(slot, n), error);
    }

    /// An event of an exchange that is left out.
    fn absent_left(&mut self, slot: u32, n: u32) -> Result<(), Finding> {
        self.leaves(slot, n)?;
        let Some(exchange) = self.exchanges[slot as usize].as_deref() else { return Ok(()) };
        if exchange.gone as usize == exchange.left.len() {
            let lane = self.lane_of(exchange);
            let began = exchange.entries.iter().min().copied().unwrap_or(0);
            let absent = &mut self.lanes[lane as usize].absent;
            // Exchanges that follow each other are one absence.
            absent.0 = if absent.1 >= began { absent.0 } else { began };
            absent.1 = self.now;
            self.forget(slot);
        }
        Ok(())
    }

    fn lane_of(&self, exchange: &Exchange) -> u32 {
        self.outlined.exchanges()[exchange.number as usize].lane * self.cells + exchange.cell
    }

    /// An event of an exchange: a member leaves, or bytes have arrived or are sent.
    fn leaves(&mut self, slot: u32, n: u32) -> Result<(), Finding> {
        let Some(exchange) = self.exchanges[slot as usize].as_deref_mut() else { return Ok(()) };
        exchange.left[n as usize] = self.now;
        exchange.gone += 1;
        let (number, cell, error) = (exchange.number, exchange.cell, exchange.error);
        if let Some(begin) = exchange.start {
            let after = self.now - begin;
            for follower in exchange.followers.clone() {
                self.mirror(follower, n, after);
            }
        }
        let outline = &self.outlined.exchanges()[number as usize];
        let (cell, local) = if outline.spans { (n / outline.leaves, n % outline.leaves) } else { (cell, n) };
        let left = outline.left + local;
        self.told.left(number, local, cell, self.now);
        self.ends(error);
        self.fire(Cause::Left(left), cell, error)
    }

    /// Notes the end of a message or task of an exchange, which may be its last one.
    fn close(&mut self, slot: u32) {
        let Some(sent) = self.sent(slot) else { return };
        sent.open -= 1;
        if sent.open > 0 {
            return;
        }
        let (round, class) = (sent.round, sent.class);
        let Some(exchange) = self.exchanges[slot as usize].as_deref() else { return };
        let series = exchange.series;
        if self.tolerance.is_some() && self.series[series as usize].packets > 0 {
            let first = exchange.entries.iter().min().copied().unwrap_or(0);
            let since = |times: &[u64]| times.iter().map(|time| time - first).collect();
            let record = Record { entries: since(&exchange.entries), left: since(&exchange.left) };
            let (lane, span) =
                (self.lane_of(exchange), (first, first + record.left.iter().max().copied().unwrap_or(0)));
            let clean = self.is_clean(lane, span);
            if !clean {
                self.books.unclean += 1;
                self.hold(series, lane);
            }
            let record = Rc::new(record);
            self.classes[class as usize].take(round, Rc::clone(&record), first, clean);
            let followers =
                self.exchanges[slot as usize].as_deref().map_or_else(Vec::new, |e| e.followers.clone());
            for follower in followers {
                let waits = self.exchanges[follower as usize].as_deref_mut().filter(|f| f.start.is_none());
                if let Some(exchange) = waits {
                    exchange.mode = Mode::Replayed(Rc::clone(&record));
                }
            }
        }
        self.forget(slot);
    }

    /// Whether the exchanges of other lanes on the same links were sent, too, during a span.
    fn is_clean(&self, lane: u32, span: (u64, u64)) -> bool {
        let most = (span.1 - span.0) / MOST_ABSENT;
        self.lanes[lane as usize].others.iter().all(|&other| {
            let absent = self.lanes[other as usize].absent;
            absent.1.min(span.1).saturating_sub(absent.0.max(span.0)) <= most
        })
    }

    /// Lets a lane and those that it meets send their next two rounds.
    fn hold(&mut self, series: u32, lane: u32) {
        let state = &mut self.series[series as usize];
        state.hold = state.rounds + 2;
        let others = self.lanes[lane as usize].others.clone();
        for other in others {
            for i in 0..self.lanes[other as usize].series.len() {
                let series = self.lanes[other as usize].series[i];
                let state = &mut self.series[series as usize];
                state.hold = state.rounds + 2;
            }
        }
    }

    fn forget(&mut self, slot: u32) {
        let Some(exchange) = self.exchanges[slot as usize].take() else { return };
        if self.series[exchange.series as usize].packets > 0 {
            let lane = self.lane_of(&exchange);
            self.frees(lane);
        }
        self.under_way[exchange.number as usize * self.cells as usize + exchange.cell as usize] = NONE;
        self.unused.push(slot);
    }
}

/// An exchange that met what was left out for more than this part of its time is no audit. Our choice.
const MOST_ABSENT: u64 = 20;

fn order(position: u32, number: u32) -> u64 {
    u64::from(position) << 32 | u64::from(number)
}

/// Occupies what is free from some time on. Returns the start, and the error of what decides it.
fn book(free: &mut Free, now: u64, time: Time, error: f64) -> (u64, f64) {
    let (start, error) = if free.at > now { (free.at, free.error) } else { (now, error) };
    *free = Free { at: start + time.ps(), error };
    (start, error)
}
