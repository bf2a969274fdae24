//! The director: it drives a run whose exchanges are laid out when their first member enters.
//!
//! The engine has the packets. Tasks are the director's own: computations, copies inside servers, and the tasks of exchanges, with the
//! rules of the engine. An exchange that is left out has neither: its members leave when a record says.

mod exchanges;
mod lanes;
mod leap;
mod packets;
mod state;
mod work;

use crate::footprint::{Footprints, Shape};
use crate::memo::Memo;
use crate::series::Class;
use crate::told::Told;
use engine::Observer;
use engine::live::{Live, Next};
use engine::outcome::Recording;
use finding::Finding;
use model::plan::{SliceTimes, Work};
use model::{Plan, Time};
use scenario::outlined::{Cause, Effect, Nature, Outline, Outlined};
use state::{Exchange, Free, Lane, Learned, NEVER, NONE, Posted, Series, Usage};
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap};
use std::path::PathBuf;
use work::Piece;

/// Least error of the end of a run that has left something out, as a share of the end, if it is not asked for less. Fitted: of 500 random
/// steps, 3 ended 0.03 to 0.04 % off, where audits knew of less than 0.005 %.
const LEAST: f64 = 5e-4;

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
    /// Those that the memo knew.
    pub remembered: u64,
    /// Audits, and their largest difference as a share of the exchange.
    pub audits: (u64, f64),
    /// Cells of ranks that are told, and all of them.
    pub cells: (u32, u32),
    /// Audits that met exchanges that were left out, and do not count.
    pub unclean: u64,
    /// The end, ps, and the bound on its error.
    pub end: u64,
    /// See `end`.
    pub error: f64,
    /// Part of the error that comes once: by how much members may differ from what was predicted for them, ps.
    apart: f64,
}

/// How a run went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Everything has ended.
    Ended,
    /// It stopped before.
    Stopped,
    /// A leap waits for what the engine would have to do.
    Stuck,
}

pub(crate) struct Director<'a> {
    outlined: &'a mut Outlined,
    plan: &'a Plan,
    live: Box<dyn Live + 'a>,
    footprints: Footprints<'a>,
    /// Largest error of any time, as a share of it; `None` to leave nothing out.
    tolerance: Option<f64>,
    cells: u32,
    stride: u32,
    now: u64,
    /// By how much the engine's clock is behind.
    behind: u64,
    leap: Option<Box<leap::Leap>>,
    may_leap: bool,
    /// Exchanges under way over NICs.
    over_nics: u32,
    /// By exchange: how many of the same track follow it in its lane, before one of another track.
    following: Vec<u32>,
    due: BinaryHeap<Reverse<Due>>,
    /// By task and cell, and by member and cell: events still to come.
    tasks: Vec<u32>,
    members: Vec<u32>,
    /// By the same: the latest time to which an event that has come may be off, ps.
    tasks_by: Vec<f32>,
    members_by: Vec<f32>,
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
    /// By kind of exchange, shape and load: the class of all lanes.
    shared: BTreeMap<(u32, u32, u32), u32>,
    /// By track and cell.
    learned: Vec<Learned>,
    /// By number of a shape.
    shapes: Vec<Vec<Shape>>,
    memo: Option<&'a Memo>,
    /// Classes with a file in the memo.
    files: Vec<(u32, PathBuf)>,
    links: Vec<Usage>,
    pub(crate) told: Told,
    pub(crate) books: Books,
}

impl<'a> Director<'a> {
    pub(crate) fn new(
        outlined: &'a mut Outlined,
        (plan, footprints): (&'a Plan, Footprints<'a>),
        live: Box<dyn Live + 'a>,
        tolerance: Option<f64>,
        (memo, may_leap): (Option<&'a Memo>, bool),
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
        let count = |of: &dyn Fn(&Outline) -> u32| {
            exchanges.iter().map(of).max().map_or(0, |last| last as usize + 1) * cells as usize
        };
        let (lanes, series) = (count(&|x| x.lane), 2 * count(&|x| x.track));
        let mut before = Vec::with_capacity(outlined.tasks().len());
        let mut laid = 0;
        for t in 0..outlined.tasks().len() as u32 {
            while exchanges.get(laid as usize).is_some_and(|exchange| exchange.tasks_before <= t) {
                laid += 1;
            }
            before.push(laid);
        }
        let streams_each = outlined.streams() as usize;
        Director {
            told: Told::new(outlined),
            streams: vec![Free::default(); plan.fabric.servers() * streams_each],
            streams_each,
            engines: Vec::new(),
            links: (0..footprints.links()).map(|_| Usage::default()).collect(),
            footprints,
            plan,
            live,
            tolerance,
            cells,
            stride,
            now: 0,
            behind: 0,
            leap: None,
            may_leap,
            over_nics: 0,
            following: following(exchanges),
            due: BinaryHeap::new(),
            tasks_by: vec![0.0; tasks.len()],
            members_by: vec![0.0; members.len()],
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
            shared: BTreeMap::new(),
            learned: Vec::new(),
            shapes: Vec::new(),
            memo,
            files: Vec::new(),
            books: Books::default(),
            outlined,
        }
    }

    /// Runs to the end.
    pub(crate) fn run(&mut self, observer: &mut dyn Observer) -> Result<Way, Finding> {
        self.learn()?;
        self.begin();
        loop {
            let until = self.due.peek().map_or(NEVER, |Reverse(due)| due.at);
            if self.leap.is_some() {
                // What is due at the end of a leap comes before the engine goes on.
                if let Some(end) = self.leaps_until().filter(|end| *end < until) {
                    self.now = self.now.max(end);
                    self.land();
                    continue;
                }
                if until == NEVER {
                    return Ok(Way::Stuck);
                }
            } else if self.in_flight > 0 || until == NEVER {
                let engine = Time(if until == NEVER { NEVER } else { until - self.behind });
                match self.live.next(engine, observer) {
                    Next::Event(event) => {
                        self.now = event.at.ps() + self.behind;
                        self.take(event.what)?;
                        continue;
                    }
                    Next::Ended => return Ok(Way::Stopped),
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
        Ok(Way::Ended)
    }

    /// Adds up the books, also those of a run that ended early.
    fn add_up(&mut self) {
        let known = |class: &&Class| class.sent > 0 || class.before > 0;
        for class in self.classes.iter().filter(known) {
            self.books.audits.0 += class.audited();
            if class.left_out > 0 {
                self.books.audits.1 = self.books.audits.1.max(class.audits.worst);
            }
        }
        self.books.error += self.books.apart;
        if self.books.left_out > 0 {
            let least = LEAST.min(self.tolerance.unwrap_or(0.0)) * self.books.end as f64;
            self.books.error = self.books.error.max(least);
        }
        self.books.cells = (self.told.cells, self.cells);
        self.books.situations = self.classes.iter().filter(known).count() as u64;
    }

    /// The plan of everything posted, and the outcome.
    pub(crate) fn finish(mut self, observer: &mut dyn Observer) -> (Plan, engine::Outcome, Told, Books) {
        self.add_up();
        let (mut plan, mut outcome) = self.live.finish(observer);
        for (qp, posted) in plan.qps.iter().zip(&self.posted) {
            for (m, posted) in qp.messages.clone().zip(posted) {
                let message = &mut plan.messages[m as usize];
                (message.group, message.operation) = (posted.group, posted.operation);
                let record = &mut outcome.messages[m as usize];
                for time in
                    [&mut record.start, &mut record.received, &mut record.acked, &mut record.last_sent]
                {
                    if *time != Time::NEVER {
                        *time = Time(time.ps() + posted.behind);
                    }
                }
            }
        }
        outcome.end = Time(outcome.end.ps() + self.behind);
        if self.behind > 0 {
            // Its bins are of the engine's time, in which no leap takes any.
            let width = outcome.recording.width;
            outcome.recording = Recording { width, ..Recording::default() };
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

    /// Plays what is due.
    fn play(&mut self, due: Due) -> Result<(), Finding> {
        let Due { at, kind, order, who, error } = due;
        match who {
            Who::Member(x, member, cell) => self.enter(x, member, cell, error),
            Who::Left(slot, n) => self.absent_left(slot, n),
            Who::Task(t, cell) => {
                let node = self.outlined.node(self.rank_of(t, cell));
                let work = self.outlined.tasks()[t as usize].work;
                let piece = Piece { work, node, times: SliceTimes::default(), order, who, error };
                match kind {
                    Kind::Ready => {
                        let start = self.start(piece);
                        self.told.started(t, cell, at, start);
                    }
                    Kind::End => {
                        self.told.ended(t, cell, at);
                        self.ends(error);
                        return self.fire(Cause::Done(t), cell, error);
                    }
                    Kind::Enter => self.enters(piece, at),
                    Kind::Leave => {}
                }
                Ok(())
            }
            Who::Slice(x, member, cell) => match kind {
                Kind::Enter => {
                    let (times, _, into) = self.slice_of(x, member, cell);
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
                    Work::Slice { times, .. } => sent.laid.slices[times as usize],
                    _ => SliceTimes::default(),
                };
                let (began, piece) = (sent.start[t as usize], Piece { work, node, times, order, who, error });
                match kind {
                    Kind::Ready => {
                        let start = self.start(piece);
                        let engine = matches!(work, Work::Slice { engine, .. } if engine != Work::NONE);
                        if let Some(sent) = self.sent(slot) {
                            sent.start[t as usize] = if engine { start } else { at };
                        }
                    }
                    Kind::Leave => self.leave(piece),
                    Kind::Enter => self.enters(piece, began),
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

    /// Fires an event of the outline in a cell.
    fn fire(&mut self, cause: Cause, cell: u32, error: f64) -> Result<(), Finding> {
        let count = self.outlined.effects(cause).len();
        for i in 0..count {
            match self.outlined.effects(cause)[i] {
                Effect::Task(t) => {
                    let place = t as usize * self.cells as usize + cell as usize;
                    self.tasks[place] -= 1;
                    let error = latest(&mut self.tasks_by[place], self.now, error);
                    if self.tasks[place] == 0 {
                        let at = self.now.max(self.outlined.tasks()[t as usize].start.ps());
                        self.push(at, Kind::Ready, self.order_of(t), Who::Task(t, cell), error);
                    }
                }
                Effect::Enter(x, member) => {
                    let first = self.outlined.needs().first_member[x as usize];
                    let place = (first + member) as usize * self.cells as usize + cell as usize;
                    self.members[place] -= 1;
                    let error = latest(&mut self.members_by[place], self.now, error);
                    if self.members[place] == 0 {
                        self.enter(x, member, cell, error)?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// By exchange: how many of the same track follow it in its lane, before one of another track.
fn following(exchanges: &[Outline]) -> Vec<u32> {
    let mut next: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
    let mut following = vec![0; exchanges.len()];
    for (exchange, following) in exchanges.iter().zip(&mut following).rev() {
        let after = next.get(&exchange.lane).filter(|(track, _)| *track == exchange.track);
        *following = after.map_or(0, |(_, more)| more + 1);
        next.insert(exchange.lane, (exchange.track, *following));
    }
    following
}

/// Notes an event with its error. Returns the error of what waits for it and for those before it: each of them may come later.
fn latest(by: &mut f32, now: u64, error: f64) -> f64 {
    // A float of 32 bits tells times of a second to 0.1 us, so one without error is not noted.
    if error > 0.0 {
        *by = by.max((now as f64 + error) as f32);
    }
    (f64::from(*by) - now as f64).max(error)
}

fn order(position: u32, number: u32) -> u64 {
    u64::from(position) << 32 | u64::from(number)
}
