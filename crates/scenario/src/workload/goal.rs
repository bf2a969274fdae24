//! GOAL schedules of LogGOPSim.

use super::digest;
use super::draft::Draft;
use super::laid::Item;
use super::outline::Event;
use super::ranks::Stream;
use super::{Generate, QpUse};
use crate::values::LATEST;
use finding::{Finding, code};
use formats::goal::matching::{Place, matching};
use formats::goal::{self, Kind, On, Operation, Schedule};
use formats::order::order;
use model::plan::{self, Role, Work};
use model::{Bytes, HostId, NodeId, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// A GOAL schedule: per rank, operations that send, receive and compute, and their dependencies. The receives are matched when
/// the scenario is read, by source and tag in the order of the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Goal {
    /// The file, text or binary: a path relative to the scenario's file. No default.
    pub file: String,
    /// End of a send, for operations that require it. `"acked"`: its last byte is acknowledged; `"delivered"`: the receiver
    /// has matched the message, and its answer of 1 B has arrived; `"eager"`: a message up to `eager-limit` ends when it
    /// starts, a longer one when it is acknowledged. Default `"acked"` (the completion of RDMA).
    #[serde(default)]
    pub send_done: SendDone,
    /// Longest message that ends when it starts with `send-done = "eager"`. Default 65535 B (`S` of LogGOPSim).
    #[serde(default = "eager_limit")]
    pub eager_limit: Bytes,
    /// What a rank of the file is. `"gpu"`: rank r is GPU r, and NIC k is the k-th port of the GPU; `"server"`: rank r is
    /// server r, and NIC k is the first port of the server's GPU k (ATLAHS, one NIC per GPU). Default `"gpu"` (our
    /// choice).
    #[serde(default)]
    pub ranks: RankIs,
    /// Digest of the schedule, which the results record. A scenario with a digest refuses a file that has changed. Default: the
    /// digest of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The schedule, once the file is read, and warnings about it.
    #[serde(skip)]
    schedule: Option<Arc<Schedule>>,
    #[serde(skip)]
    warnings: Vec<Finding>,
}

/// End of a send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SendDone {
    /// The last byte is acknowledged.
    #[default]
    Acked,
    /// The receiver's answer has arrived.
    Delivered,
    /// At once if the message is short.
    Eager,
}

/// What a rank of the file is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RankIs {
    /// A GPU.
    #[default]
    Gpu,
    /// A server.
    Server,
}

fn eager_limit() -> Bytes {
    Bytes(65_535)
}

impl Generate for Goal {
    fn generate(&self, draft: &mut Draft<'_>) -> Result<usize, Finding> {
        let Some(schedule) = &self.schedule else {
            return Err(code::FILE.at("file", format!("{} was not read", self.file)));
        };
        draft.warnings.extend(self.warnings.iter().cloned());
        let layer = Layer::new(self, schedule, draft)?;
        layer.lay()?;
        Ok(1)
    }

    fn read_files(&mut self, folder: &Path) -> Result<(), Finding> {
        self.warnings.clear();
        let schedule = goal::read(&folder.join(&self.file), &mut self.warnings)?;
        digest::keep(&mut self.digest, &self.file, goal::digest(&schedule))?;
        self.schedule = Some(Arc::new(schedule));
        Ok(())
    }

    /// A queue pair for every message: on a shared one, messages would wait for each other in the order of the file.
    fn usual_qp(&self) -> QpUse {
        QpUse::PerMessage
    }
}

/// Number of an operation among those of all ranks.
type Number = usize;

/// A schedule on its way into the draft.
struct Layer<'l, 'd> {
    settings: &'l Goal,
    draft: &'l mut Draft<'d>,
    /// All operations with their places, rank by rank.
    operations: Vec<(Place, Operation)>,
    /// Dependencies (first, then, on), sorted by the operation that waits.
    dependencies: Vec<(Number, Number, On)>,
    /// The receive of every send and the send of every receive; `Number::MAX` for none.
    partner: Vec<Number>,
    /// Operations for whose start, and for whose end, others wait.
    start_counts: Vec<bool>,
    end_counts: Vec<bool>,
    /// Sends by rank and NIC.
    sends: BTreeMap<(u32, u8), u32>,
    /// Start and end of the operations laid so far; `None` is the start of the job.
    starts: Vec<Option<Event>>,
    ends: Vec<Option<Event>>,
    /// Time of all computations and of all messages on their NICs so far, ps.
    total: u64,
    /// Arrivals of messages.
    arrivals: Vec<Option<Event>>,
    streams: Streams,
    /// Operations of the plan under which the results show computations and receives.
    shown: (u32, u32),
}

/// Numbers of the streams: for every rank of a host its cpus, then its NICs. No other job uses them.
struct Streams {
    base: u32,
    cpus: u32,
    nics: u32,
}

impl<'l, 'd> Layer<'l, 'd> {
    fn new(settings: &'l Goal, schedule: &Schedule, draft: &'l mut Draft<'d>) -> Result<Self, Finding> {
        let there = match settings.ranks {
            RankIs::Gpu => draft.ranks.count(),
            RankIs::Server => draft.ranks.count() / draft.ranks.per_server(),
        };
        if schedule.ranks as usize > there {
            let what = if settings.ranks == RankIs::Gpu { "GPUs" } else { "servers" };
            let text =
                format!("{} has {} ranks; the fabric has {there} {what}", settings.file, schedule.ranks);
            return Err(code::FIT.at("file", text));
        }
        let count: usize = schedule.programs.values().map(|program| program.operations.len()).sum();
        if count == 0 {
            return Err(code::CONTENT.at("file", format!("{} has no operations", settings.file)));
        }
        let (mut operations, mut dependencies) = (Vec::with_capacity(count), Vec::new());
        let mut firsts = BTreeMap::new();
        for (&rank, program) in &schedule.programs {
            let first = operations.len();
            firsts.insert(rank, first);
            operations.extend((0..).zip(&program.operations).map(|(index, o)| ((rank, index), *o)));
            let number = |index: u32| first + index as usize;
            dependencies.extend(program.dependencies.iter().map(|d| (number(d.first), number(d.then), d.on)));
        }
        dependencies.sort_by_key(|&(_, then, _)| then);
        let number = |(rank, index): Place| firsts[&rank] + index as usize;
        let partner = partners(settings, schedule, draft, &number)?;
        let (mut start_counts, mut end_counts) = (vec![false; count], vec![false; count]);
        for &(first, _, on) in &dependencies {
            if on == On::Start { start_counts[first] = true } else { end_counts[first] = true }
        }
        let mut sends = BTreeMap::new();
        for ((rank, _), o) in operations.iter().filter(|(_, o)| o.kind == Kind::Send) {
            *sends.entry((*rank, o.nic)).or_insert(0) += 1;
        }
        let messages = sends.values().map(|&n: &u32| u64::from(n)).sum::<u64>();
        let answers = if settings.send_done == SendDone::Delivered { messages } else { 0 };
        draft.reserve(messages + answers, messages + answers, "file")?;
        draft.reserve_tasks(2 * count as u64, "file")?;
        let most =
            |of: fn(&Operation) -> u8| operations.iter().map(|(_, o)| of(o)).max().map_or(0, u32::from);
        let used = draft.streams;
        let streams = Streams {
            base: used.max(draft.ranks.streams()),
            cpus: most(|o| o.cpu) + 1,
            nics: most(|o| o.nic) + 1,
        };
        let shown =
            |draft: &mut Draft<'_>, name| draft.operation(plan::Operation { name, ..Default::default() });
        let shown = (shown(draft, "calc"), shown(draft, "recv"));
        Ok(Layer {
            settings,
            draft,
            operations,
            dependencies,
            partner,
            start_counts,
            end_counts,
            sends,
            starts: vec![None; count],
            ends: vec![None; count],
            total: 0,
            arrivals: vec![None; count],
            streams,
            shown,
        })
    }

    /// Adds all messages and tasks to the draft, causes before effects.
    fn lay(mut self) -> Result<(), Finding> {
        let (start, end) = (|i: Number| 2 * i as u32, |i: Number| 2 * i as u32 + 1);
        let mut edges: Vec<(u32, u32)> = (0..self.operations.len()).map(|i| (start(i), end(i))).collect();
        edges.extend(self.dependencies.iter().map(|&(first, then, on)| match on {
            On::Finish => (end(first), start(then)),
            On::Start => (start(first), start(then)),
        }));
        for (i, &to) in self.partner.iter().enumerate().filter(|&(_, &to)| to != Number::MAX) {
            if self.operations[i].1.kind == Kind::Send {
                edges.push((start(i), end(to)));
                if self.settings.send_done == SendDone::Delivered {
                    edges.push((end(to), end(i)));
                }
            }
        }
        let order = order(2 * self.operations.len(), &edges).map_err(|cycle| self.cycle(&cycle, &edges))?;
        drop(edges);
        for node in order {
            let i = node as Number / 2;
            match (self.operations[i].1.kind, node % 2 == 0) {
                (Kind::Compute, true) => self.compute(i)?,
                (Kind::Send, true) => self.send(i)?,
                (Kind::Receive, true) if self.start_counts[i] => self.starts[i] = self.moment(i),
                (Kind::Receive, false) => self.receive(i),
                (Kind::Send, false) => self.answer(i),
                _ => {}
            }
        }
        Ok(())
    }

    /// The error about operations that wait for each other.
    fn cycle(&self, cycle: &[usize], edges: &[(u32, u32)]) -> Finding {
        let name = |i: Number| {
            let ((rank, index), o) = &self.operations[i];
            format!("rank {rank} operation {index} `{o}`")
        };
        let mut numbers: Vec<Number> = cycle.iter().map(|&e| edges[e].0 as Number / 2).collect();
        numbers.extend(numbers.first().copied());
        numbers.dedup();
        let names = goal::chain(numbers.into_iter().map(name).collect());
        let text = format!("operations of {} wait for each other: {names}", self.settings.file);
        let error = code::CYCLE.at("file", text);
        match self
            .operations
            .iter()
            .any(|(_, o)| o.kind == Kind::Receive && (o.peer == goal::ANY || o.tag == goal::ANY))
        {
            true => error.with_help("receives of any source or tag take messages in the order of the file"),
            false => error,
        }
    }

    /// Events for which an operation waits before it starts.
    fn causes(&self, i: Number) -> Vec<Event> {
        let from = self.dependencies.partition_point(|&(_, then, _)| then < i);
        let mine = self.dependencies[from..].iter().take_while(|&&(_, then, _)| then == i);
        mine.filter_map(|&(first, _, on)| if on == On::Start { self.starts[first] } else { self.ends[first] })
            .collect()
    }

    /// The host of an operation's rank.
    fn node(&self, i: Number) -> NodeId {
        let rank = self.operations[i].0.0;
        match self.settings.ranks {
            RankIs::Gpu => self.draft.ranks.node(rank),
            RankIs::Server => NodeId(rank),
        }
    }

    /// The port of an operation's NIC.
    fn port(&self, i: Number) -> Result<HostId, Finding> {
        let ((rank, _), o) = &self.operations[i];
        let (ranks, nic) = (self.draft.ranks, usize::from(o.nic));
        let (port, most) = match self.settings.ranks {
            RankIs::Gpu => (ranks.ports(*rank).get(nic), ranks.ports(*rank).len()),
            RankIs::Server => {
                let each = ranks.per_server();
                let gpu = (nic < each).then_some(*rank as usize * each + nic);
                (gpu.and_then(|gpu| ranks.ports(gpu as u32).first()), each)
            }
        };
        port.copied().ok_or_else(|| {
            let text =
                format!("rank {rank} of {}: `{o}` takes NIC {nic}; the rank has {most}", self.settings.file);
            code::CONTENT.at("file", text)
        })
    }

    /// A stream of an operation's rank: its cpu, or its NIC.
    fn stream(&self, i: Number, of_nic: bool) -> u32 {
        let ((rank, _), o) = &self.operations[i];
        let place = match self.settings.ranks {
            RankIs::Gpu => self.draft.ranks.place(*rank) as u32,
            RankIs::Server => 0,
        };
        let Streams { base, cpus, nics } = self.streams;
        base + place * (cpus + nics) + if of_nic { cpus + u32::from(o.nic) } else { o.cpu.into() }
    }

    /// Adds a task of an operation's rank.
    fn task(&mut self, i: Number, work: Work, causes: &[Event]) -> Event {
        let task = self.draft.task(self.node(i), work);
        self.draft.outline.tasks[task as usize].rank = self.operations[i].0.0;
        causes.iter().for_each(|&cause| self.draft.join(cause, Item::Task(task)));
        Event::Done(task)
    }

    /// Shows the last task in the results.
    fn show(&mut self, role: Role, operation: u32) {
        if let Some(task) = self.draft.outline.tasks.last_mut() {
            (task.role, task.operation) = (role, operation);
        }
    }

    /// The moment at which an operation may start; `None` for the start of the job.
    fn moment(&mut self, i: Number) -> Option<Event> {
        let causes = self.causes(i);
        match *causes {
            [] => None,
            [cause] => Some(cause),
            _ => Some(self.task(i, Work::Free { time: Time::ZERO }, &causes)),
        }
    }

    /// Adds work on a stream, and its start if others wait for it or `marked`. A task of no time takes the same place in the
    /// stream's queue right before the work, so it ends when the work starts.
    fn on_stream(&mut self, i: Number, stream: u32, work: Work, marked: bool) -> Event {
        let causes = self.causes(i);
        if marked || self.start_counts[i] {
            self.starts[i] = Some(self.task(i, Work::On { stream, time: Time::ZERO }, &causes));
        }
        self.task(i, work, &causes)
    }

    fn compute(&mut self, i: Number) -> Result<(), Finding> {
        let ns = self.operations[i].1.size.max(1);
        if ns > LATEST.ps() / 1000 {
            return Err(self.too_large(i, &LATEST.to_string()));
        }
        let time = Time::from_ns(ns);
        self.add_time(i, time)?;
        let stream = self.stream(i, false);
        let end = self.on_stream(i, stream, Work::On { stream, time }, false);
        self.show(Role::Compute, self.shown.0);
        self.ends[i] = Some(end);
        Ok(())
    }

    /// Refuses a schedule whose times, one after another, exceed what 64 bits of picoseconds hold.
    fn add_time(&mut self, i: Number, time: Time) -> Result<(), Finding> {
        let most = Time(LATEST.ps() * 8);
        self.total = self.total.saturating_add(time.ps());
        match self.total > most.ps() {
            true => Err(self.too_large(i, &format!("{most} for all operations together"))),
            false => Ok(()),
        }
    }

    fn too_large(&self, i: Number, most: &str) -> Finding {
        let ((rank, index), o) = &self.operations[i];
        let file = &self.settings.file;
        code::RANGE
            .at("file", format!("rank {rank} of {file}: operation {index}, `{o}`: expected at most {most}"))
    }

    fn send(&mut self, i: Number) -> Result<(), Finding> {
        let ((rank, _), o) = self.operations[i];
        let bytes = o.size.max(1);
        if bytes > 1 << 50 {
            return Err(self.too_large(i, "1 PiB"));
        }
        if o.peer == rank {
            let stream = self.stream(i, false);
            let time = Time::from_ns(1);
            self.ends[i] = Some(self.on_stream(i, stream, Work::On { stream, time }, false));
            self.arrivals[i] = self.ends[i];
            return Ok(());
        }
        let of_gpus = self.settings.ranks == RankIs::Gpu;
        let eager = self.settings.send_done == SendDone::Eager && bytes <= self.settings.eager_limit.get();
        if let Some(nvlink) = self.draft.ranks.nvlink(rank, o.peer).filter(|_| of_gpus) {
            let (from, to) =
                (self.draft.ranks.stream(rank, Stream::Out), self.draft.ranks.stream(o.peer, Stream::In));
            let work = Work::Copy { from, to, time: nvlink.rate.time_for(bytes), delay: nvlink.delay };
            self.add_time(i, nvlink.rate.time_for(bytes))?;
            let end = self.on_stream(i, from, work, eager);
            self.arrivals[i] = Some(end);
            self.ends[i] = if eager { self.starts[i] } else { Some(end) };
            return Ok(());
        }
        let from = self.port(i)?;
        let to = match self.partner[i] {
            Number::MAX => self.any_port(o.peer),
            receive => self.port(receive)?,
        };
        // Messages of one NIC leave one after another: each occupies the NIC for the time that its frames take.
        let causes = if self.sends[&(rank, o.nic)] > 1 {
            let stream = self.stream(i, true);
            let time = self.on_wire(from, bytes);
            self.add_time(i, time)?;
            self.on_stream(i, stream, Work::On { stream, time }, true);
            self.starts[i].into_iter().collect()
        } else {
            if self.start_counts[i] || eager {
                self.starts[i] = self.moment(i);
            }
            self.causes(i)
        };
        let message = self.draft.send(0, from, to, bytes);
        causes.iter().for_each(|&cause| self.draft.join(cause, Item::Message(message)));
        self.arrivals[i] = Some(Event::Received(message));
        self.ends[i] = if eager { self.starts[i] } else { Some(Event::Acked(message)) };
        Ok(())
    }

    /// The first port of a rank.
    fn any_port(&self, rank: u32) -> HostId {
        let ranks = self.draft.ranks;
        let gpu = if self.settings.ranks == RankIs::Gpu { rank } else { rank * ranks.per_server() as u32 };
        ranks.ports(gpu)[0]
    }

    /// Time that a message's frames take on a host's link.
    fn on_wire(&self, from: HostId, bytes: u64) -> Time {
        let (wire, rate) = (self.draft.wire, self.draft.fabric.uplink(from).rate);
        let full = wire.packets(bytes) - 1;
        let last = wire.data_frame(wire.payload_of(bytes, full));
        let frames = wire.transmission(rate, wire.max_frame()).ps().saturating_mul(full);
        Time(frames.saturating_add(wire.transmission(rate, last).ps()))
    }

    fn receive(&mut self, i: Number) {
        let mut causes = self.causes(i);
        causes.extend(self.arrivals[self.partner[i]]);
        self.ends[i] = Some(self.task(i, Work::Free { time: Time::ZERO }, &causes));
        self.show(Role::Leave, self.shown.1);
    }

    /// With `send-done = "delivered"`, ends a send for which others wait when the receiver's answer arrives.
    fn answer(&mut self, i: Number) {
        let receive = self.partner[i];
        if self.settings.send_done != SendDone::Delivered || !self.end_counts[i] || receive == Number::MAX {
            return;
        }
        let Some(Event::Received(message)) = self.arrivals[i] else {
            self.ends[i] = self.ends[receive];
            return;
        };
        let (from, to) = {
            let message = &self.draft.outline.messages[message as usize];
            (message.from, message.to)
        };
        let answer = self.draft.send(0, to, from, 1);
        if let Some(cause) = self.ends[receive] {
            self.draft.join(cause, Item::Message(answer));
        }
        self.ends[i] = Some(Event::Received(answer));
    }
}

/// The partner of every operation; warns of messages and receives that do not fit.
fn partners(
    settings: &Goal,
    schedule: &Schedule,
    draft: &mut Draft<'_>,
    number: &dyn Fn(Place) -> Number,
) -> Result<Vec<Number>, Finding> {
    let file = &settings.file;
    let count = schedule.programs.values().map(|program| program.operations.len()).sum();
    let matching = matching(schedule);
    let name = |(rank, index): Place| {
        let operation = &schedule.programs[&rank].operations[index as usize];
        format!("rank {rank} operation {index} `{operation}`")
    };
    if let Some(&first) = matching.starving.first() {
        let (first, all) = (name(first), matching.starving.len());
        let text = format!("no message matches {first}; receives of {file} without a message: {all}");
        return Err(code::CONTENT.at("file", text));
    }
    if let Some(&first) = matching.unread.first() {
        let (first, all) = (name(first), matching.unread.len());
        if settings.send_done == SendDone::Delivered {
            let text = format!("{first} of {file} is never received, so it never ends");
            return Err(code::CONTENT
                .at("file", text)
                .with_help("`send-done = \"acked\"` runs such a schedule"));
        }
        let text = format!("messages of {file} that are never received: {all}; the first is {first}");
        draft.warnings.push(code::UNMATCHED.at("file", text));
    }
    if let Some(&(send, receive)) = matching.unequal.first() {
        let (send, receive, all) = (name(send), name(receive), matching.unequal.len());
        let text = format!("receives of {file} that get a message of another size: {all}");
        let text = format!("{text}; the first is {receive}, which gets {send}");
        draft.warnings.push(code::UNMATCHED.at("file", text));
    }
    if let Some(&first) = matching.ambiguous.first() {
        let (first, all) = (name(first), matching.ambiguous.len());
        let text = format!(
            "receives of {file} that take any source or tag and find several: {all}; they get messages in the order of the \
             file, which may differ from the order of arrival; the first is {first}"
        );
        draft.warnings.push(code::UNMATCHED.at("file", text));
    }
    let mut partners = vec![Number::MAX; count];
    for (send, receive) in matching.pairs {
        partners[number(send)] = number(receive);
        partners[number(receive)] = number(send);
    }
    Ok(partners)
}
