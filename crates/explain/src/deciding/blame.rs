//! Where the time of a run went, by cause, summed over the flows that lost most or over the critical path of the longest step.
//!
//! A flow's account names what held it up: a rate, a pause, a queue, a NACK. Two corrections lead from there to the cause:
//!
//! * While a link that the flow needs is busy for others, no control could have sent more. This share of the time below line rate,
//!   paused or queued belongs to the link. The busy time of the links is that of the whole run, or of the flow's time if it was recorded.
//! * A pause belongs to the port that was full, at the end of the chain of pauses.

use super::root::{self, Root};
use crate::account::Account;
use crate::cause::Cause;
use crate::cuts;
use crate::flow::{Flow, find};
use crate::history::History;
use crate::links::{self, Loads, Pauses};
use crate::packets::Packets;
use crate::step::{Spent, Step};
use crate::trace;
use engine::outcome::LossCause;
use lab::Failure;
use lab::execute::{Prepared, Run};
use model::{LinkId, Plan, Time};
use results::Results;
use results::text::number;
use scenario::{Checked, Source};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Most queue pairs whose events are recorded. Our choice: those that lost most hold most of the time.
const QUEUE_PAIRS: usize = 32;
/// Most packets of these queue pairs, unless the first has more. Our choice: about a hundred megabytes of events.
const PACKETS: u64 = 100_000;
/// Most flows of them that are explained. Our choice.
const FLOWS: usize = 200;
/// Most links whose busy time is recorded over time. Our choice.
const LINKS: usize = 4096;
/// Smallest ratio of a link's busy time to the mean of those beside it at which flows collide. Our choice.
const UNEVEN: f64 = 1.4;
/// Smallest share of the run for which a link that counts as paused was paused. Our choice.
const OFTEN_PAUSED: f64 = 0.05;

/// A cause's share of the time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Share {
    /// Cause.
    pub cause: Root,
    /// Time, us, over all flows or over the step.
    pub us: f64,
    /// Its share.
    pub share: f64,
    /// The cause in words.
    pub what: String,
}

/// Where the time of a run went.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Blame {
    /// Scheme.
    pub scheme: String,
    /// True if the time is that of a step; false if it is the time that flows took beyond their ideals.
    pub of_step: bool,
    /// Number of flows that were looked at.
    pub flows: usize,
    /// The time, us, over these flows.
    pub us: f64,
    /// Causes, the largest first.
    pub causes: Vec<Share>,
}

/// Time by cause and subject, us.
#[derive(Default)]
struct Sum {
    of: BTreeMap<Root, BTreeMap<String, f64>>,
    flows: usize,
}

impl Sum {
    fn add(&mut self, root: Root, subject: String, us: f64) {
        if us > 0.0 {
            *self.of.entry(root).or_default().entry(subject).or_default() += us;
        }
    }

    fn total(&self) -> f64 {
        self.of.values().flat_map(BTreeMap::values).sum()
    }

    fn scaled(&self, factor: f64) -> Self {
        let each = |subjects: &BTreeMap<String, f64>| {
            subjects.iter().map(|(subject, us)| (subject.clone(), us * factor)).collect()
        };
        Sum {
            of: self.of.iter().map(|(root, subjects)| (*root, each(subjects))).collect(),
            flows: self.flows,
        }
    }

    fn take(&mut self, other: Sum) {
        self.flows += other.flows;
        for (root, subjects) in other.of {
            subjects.into_iter().for_each(|(subject, us)| self.add(root, subject, us));
        }
    }

    /// The time of a queue pair whose messages take `ideal` us alone. A message that waits for an earlier one also waits for what holds
    /// that one up.
    fn without_order(mut self, ideal: f64) -> Self {
        let order: f64 = self.of.remove(&Root::Order).into_iter().flat_map(BTreeMap::into_values).sum();
        let lost = self.total();
        let passed_on = order * lost / (ideal + lost).max(1e-9);
        let factor = if lost > 0.0 { 1.0 + passed_on / lost } else { 1.0 };
        self.of.values_mut().flat_map(BTreeMap::values_mut).for_each(|us| *us *= factor);
        self.add(Root::Order, String::new(), order - passed_on);
        self
    }

    fn blame(self, scheme: &str, of_step: bool) -> Blame {
        let total = self.total();
        let share = |(cause, subjects): (Root, BTreeMap<String, f64>)| {
            let us = subjects.values().sum();
            let most = subjects.iter().rev().max_by(|a, b| a.1.total_cmp(b.1));
            let subject = most.map_or("", |(subject, _)| subject);
            Share { cause, us, share: us / total.max(1e-9), what: cause.phrase(subject) }
        };
        let mut causes: Vec<Share> = self.of.into_iter().map(share).collect();
        causes.sort_by(|a, b| b.us.total_cmp(&a.us).then(a.cause.cmp(&b.cause)));
        Blame { scheme: scheme.to_owned(), of_step, flows: self.flows, us: total, causes }
    }
}

impl Blame {
    /// The cause with more than half of the time, if there is one.
    pub fn dominant(&self) -> Option<&Share> {
        self.causes.first().filter(|share| share.share >= super::DOMINANT)
    }
}

/// The settings of a second run of `run` that records the events of the queue pairs that lost most.
pub(super) fn recording(run: &Run) -> Option<Prepared> {
    let plan = &run.checked.plan;
    let on_path = path_flows(run);
    let lost = |m: usize| lost(run, m).map_or(0, Time::ps);
    let mut of_qps: BTreeMap<usize, (u64, usize, u64)> = BTreeMap::new();
    for (m, message) in plan.messages.iter().enumerate() {
        let packets = plan.wire.packets(message.bytes);
        let entry = of_qps.entry(message.qp.index()).or_insert((0, m, 0));
        entry.2 += packets;
        let background = plan.jobs[usize::from(message.job)].background;
        entry.0 += match &on_path {
            Some(late) => late.get(&(m as u64)).copied().unwrap_or(0),
            None if background => 0,
            None => lost(m),
        };
    }
    let mut qps: Vec<(u64, usize, u64)> = of_qps.into_values().filter(|(lost, ..)| *lost > 0).collect();
    qps.sort_by_key(|(lost, first, _)| (std::cmp::Reverse(*lost), *first));
    let mut packets = 0;
    let mut follow = Vec::new();
    for (_, first, of_qp) in qps.into_iter().take(QUEUE_PAIRS) {
        packets += of_qp;
        if packets > PACKETS && !follow.is_empty() {
            break;
        }
        follow.push(first.to_string());
    }
    let links = if plan.fabric.links().len() <= LINKS { "all" } else { "0" };
    let sets = [
        format!("record.follow=[{}]", follow.join(",")),
        format!("record.links={links}"),
        "record.flows=0".to_owned(),
        "record.events=0".to_owned(),
        "record.taps=[]".to_owned(),
        "record.most-events=2000000".to_owned(),
        "record.switches=false".to_owned(),
        "record.counters=false".to_owned(),
    ];
    changed(&run.checked, &sets)
}

/// The scenario of `checked` with changes; `None` if they do not fit.
pub(super) fn changed(checked: &Checked, sets: &[String]) -> Option<Prepared> {
    let source = Source::new(format!("{}.toml", checked.name), checked.to_toml());
    Prepared::by(|| scenario::check(&source, sets)).ok()
}

/// Time of a message beyond its ideal; `None` if it never began.
fn lost(run: &Run, message: usize) -> Option<Time> {
    let record = &run.outcome.messages[message];
    if record.start == Time::NEVER {
        return None;
    }
    let end = if record.acked == Time::NEVER { run.outcome.end } else { record.acked };
    Some(end.since(record.start).since(run.ideal[message]))
}

/// Flows on the critical path of the longest step, with the time by which they were late, ps; `None` without steps.
fn path_flows(run: &Run) -> Option<BTreeMap<u64, u64>> {
    let step = longest_step(&run.checked, &run.results(Vec::new()))?;
    let late = step.path.iter().filter_map(|leg| Some((leg.flow?, leg.late_ps)));
    Some(late.fold(BTreeMap::new(), |mut all, (flow, ps)| {
        *all.entry(flow).or_default() += ps;
        all
    }))
}

fn longest_step(checked: &Checked, results: &Results) -> Option<Step> {
    if checked.plan.operations.is_empty() {
        return None;
    }
    Step::of(checked, results, "step").ok()
}

/// Where the time of `run` went; the run recorded what [`recording`] asks for.
///
/// # Errors
/// If the run did not reach its end.
pub(super) fn of(run: &Run) -> Result<Option<Blame>, Failure> {
    run.ran_to_its_end()?;
    let results = run.results(Vec::new());
    let Some(judge) = Judge::new(run, &results) else { return Ok(None) };
    let scheme = &run.summary.scheme;
    if let Some(step) = longest_step(&run.checked, &results) {
        return Ok(Some(of_step(&judge, &step).blame(scheme, true)));
    }
    let mut sum = Sum::default();
    for of_qp in judge.by_queue_pair(&judge.flows()).into_values() {
        sum.take(of_qp);
    }
    Ok((sum.flows > 0).then(|| sum.blame(scheme, false)))
}

/// The pieces of a step. The time by which messages were late is divided as that of the flows on the path.
fn of_step(judge: &Judge<'_>, step: &Step) -> Sum {
    let mut late_flows: BTreeMap<u64, f64> = BTreeMap::new();
    for leg in &step.path {
        if let Some(flow) = leg.flow {
            *late_flows.entry(flow).or_default() += leg.late_ps as f64 / 1e6;
        }
    }
    let flows = judge.flows();
    let of_qps = judge.by_queue_pair(&flows);
    let mut of_late = Sum::default();
    for (flow, steps) in &flows {
        let Some(us) = late_flows.get(&flow.flow) else { continue };
        let mut own = judge.divided(flow, steps);
        // What holds the earlier messages of its queue pair up holds up a message that waits for them.
        let order: f64 = own.of.remove(&Root::Order).into_iter().flat_map(BTreeMap::into_values).sum();
        match of_qps.get(&flow.qp).filter(|of_qp| of_qp.total() > 0.0) {
            Some(of_qp) => own.take(Sum { flows: 0, ..of_qp.scaled(order / of_qp.total()) }),
            None => own.add(Root::Order, String::new(), order),
        }
        if own.total() > 0.0 {
            of_late.take(own.scaled(us / own.total()));
        }
    }
    let mut sum = Sum { flows: of_late.flows, ..Sum::default() };
    let known = of_late.total();
    let mut computed = 0.0;
    for piece in &step.account {
        let us = piece.ps as f64 / 1e6;
        match piece.spent {
            Spent::Compute | Spent::Bubble => computed += us,
            Spent::Messages => sum.add(Root::Alone, String::new(), us),
            Spent::Copies => sum.add(Root::Server, String::new(), us),
            Spent::Scheduled => sum.add(Root::Schedule, String::new(), us),
            Spent::Late if known > 0.0 => sum.take(Sum { flows: 0, ..of_late.scaled(us / known) }),
            Spent::Late => sum.add(Root::Uplinks, String::new(), us),
        }
    }
    for (server, us) in judge.stragglers(step) {
        let us = us.min(computed);
        sum.add(Root::Straggler, server, us);
        computed -= us;
    }
    sum.add(Root::Computation, String::new(), computed);
    sum
}

/// A recorded run, and what its links did.
struct Judge<'a> {
    run: &'a Run,
    plan: &'a Plan,
    results: &'a Results,
    loads: Loads,
}

/// A flow's time at a link, or the reason for it.
type Place = (Root, String);

impl<'a> Judge<'a> {
    fn new(run: &'a Run, results: &'a Results) -> Option<Self> {
        let plan = &run.checked.plan;
        Some(Judge { run, plan, results, loads: Loads::of(plan, results)? })
    }

    /// The recorded flows that lost time, with the events of their queue pairs: those that lost most.
    fn flows(&self) -> Vec<(Flow, std::rc::Rc<Vec<trace::Step>>)> {
        let Some(table) = self.results.table("events") else { return Vec::new() };
        let followed: BTreeSet<usize> = self.plan.record.follow.iter().map(|qp| qp.index()).collect();
        let mut mine: Vec<(u64, usize)> = Vec::new();
        for (m, message) in self.plan.messages.iter().enumerate() {
            if followed.contains(&message.qp.index())
                && let Some(lost) = lost(self.run, m).filter(|lost| lost.ps() > 0)
            {
                mine.push((lost.ps(), m));
            }
        }
        mine.sort_by_key(|(lost, m)| (std::cmp::Reverse(*lost), *m));
        let mut steps: BTreeMap<u64, Option<std::rc::Rc<Vec<trace::Step>>>> = BTreeMap::new();
        let mut seen = BTreeSet::new();
        let flow = |(_, m): (u64, usize)| {
            let flow = find(self.results, self.plan, &m.to_string()).ok()?;
            if !seen.insert(flow.flow) {
                return None;
            }
            let read = || trace::read(table, flow.qp).map(std::rc::Rc::new);
            let steps = steps.entry(flow.qp).or_insert_with(read).clone()?;
            Some((flow, steps))
        };
        mine.into_iter().take(FLOWS).filter_map(flow).collect()
    }

    /// Time on the path by which slow servers computed longer than others, us.
    fn stragglers(&self, step: &Step) -> Vec<(String, f64)> {
        let workload = &self.run.checked.scenario.workload;
        let mine = workload.iter().find(|entry| entry.name.as_deref() == Some(step.job.as_str()));
        let Some(slow) = mine.and_then(|entry| entry.slow.as_ref()) else { return Vec::new() };
        let job = self.plan.jobs.iter().position(|job| job.name == step.job);
        let of_job = self.plan.tasks.iter().filter(|task| Some(usize::from(task.job)) == job);
        let nodes: BTreeMap<u64, u32> = of_job.map(|task| (task.rank.into(), task.node.0)).collect();
        let lost = |slow: &scenario::placement::Slow| {
            let there = step
                .path
                .iter()
                .filter(|leg| leg.kind == "compute" && nodes.get(&leg.rank) == Some(&slow.server));
            let us: f64 = there.map(|leg| (leg.to_ps - leg.from_ps) as f64 / 1e6).sum();
            (
                self.plan.fabric.name(model::NodeId(slow.server)).to_owned(),
                us * (1.0 - 1.0 / slow.factor).max(0.0),
            )
        };
        slow.all().iter().map(lost).collect()
    }

    /// The time of each queue pair by cause, over these flows.
    fn by_queue_pair(&self, flows: &[(Flow, std::rc::Rc<Vec<trace::Step>>)]) -> BTreeMap<u64, Sum> {
        let mut of_qps: BTreeMap<u64, (f64, Sum)> = BTreeMap::new();
        for (flow, steps) in flows {
            let (ideal, of_qp) = of_qps.entry(flow.qp).or_default();
            *ideal += flow.ideal_fct_us.unwrap_or(0.0);
            of_qp.take(self.divided(flow, steps));
        }
        of_qps.into_iter().map(|(qp, (ideal, of_qp))| (qp, of_qp.without_order(ideal))).collect()
    }

    /// A flow's delays by cause.
    fn divided(&self, flow: &Flow, steps: &[trace::Step]) -> Sum {
        let mut sum = Sum::default();
        let checked = &self.run.checked;
        let Ok(qp) = u32::try_from(flow.qp) else { return sum };
        let in_replies = checked.nics.of(model::QpId(qp)).evidence().is_in_replies();
        let cuts = if in_replies { Vec::new() } else { cuts::cuts(steps) };
        let end = self.results.summary.sim_time_us;
        let Some(history) = History::new(self.plan, flow, steps, cuts, end) else { return sum };
        let account = Account::of(&history);
        let packets = Packets::of(&history, self.results);
        let mut places: BTreeMap<Place, f64> = BTreeMap::new();
        self.divide(&history, &account, &packets, in_replies, &mut places);
        places.into_iter().for_each(|((root, subject), us)| sum.add(root, subject, us));
        sum.flows = usize::from(sum.total() > 0.0);
        sum
    }

    fn divide(
        &self,
        history: &History<'_>,
        account: &Account,
        packets: &Packets,
        in_replies: bool,
        places: &mut BTreeMap<Place, f64>,
    ) {
        let mut add = |(root, subject): Place, us: f64| {
            if us > 0.0 {
                *places.entry((root, subject)).or_default() += us;
            }
        };
        let spent = |cause: Cause| {
            account.delays.iter().find(|delay| delay.cause == cause).map_or(0.0, |delay| delay.us.max(0.0))
        };
        // Time in which the sender held back, which a busy link may account for.
        let held = [Cause::CnpCut, Cause::Pace, Cause::Window, Cause::Paused, Cause::Network];
        let pool: f64 = held.iter().map(|cause| spent(*cause)).sum();
        let (shared, place) = self.busy_for_others(history);
        let shared = shared.min(pool);
        let left = if pool > 0.0 { 1.0 - shared / pool } else { 0.0 };
        if let Some(place) = place {
            add(place, shared);
        }
        let control = (Root::Control, root::control(&self.run.checked));
        let losses = self.losses(history, packets);
        for delay in account.delays.iter().filter(|delay| delay.us > 0.0) {
            let us = delay.us;
            match delay.cause {
                Cause::CnpCut | Cause::Pace => add(control.clone(), us * left),
                Cause::Window if in_replies => add(control.clone(), us * left),
                Cause::Window => add((Root::Window, String::new()), us * left),
                Cause::Paused => {
                    let uplink = LinkId(self.plan.qps[history.qp.index()].from.0);
                    add(self.paused(uplink), us * left);
                }
                Cause::Network => {
                    for (place, part) in self.queues(history, packets) {
                        add(place, us * left * part);
                    }
                }
                Cause::Port => {
                    let uplink = LinkId(self.plan.qps[history.qp.index()].from.0);
                    add((Root::Sender, links::name(&self.plan.fabric, uplink)), us);
                }
                Cause::SlowPort => {
                    let uplink = LinkId(self.plan.qps[history.qp.index()].from.0);
                    add((Root::SlowLink, links::name(&self.plan.fabric, uplink)), us);
                }
                Cause::NackCut | Cause::UntilNack | Cause::Resent => add(losses.clone(), us),
                Cause::UntilTimeout | Cause::TimeoutCut => {
                    let waits = account.waits.iter().filter(|(.., why)| *why == Cause::UntilTimeout);
                    let longest = waits.map(|(from, to, _)| to.since(*from)).max().unwrap_or(Time::ZERO);
                    let after = match &losses {
                        (Root::Loss, link) if !link.is_empty() => format!(", after losses on {link}"),
                        (Root::Drops, link) if !link.is_empty() => format!(", after drops before {link}"),
                        _ => String::new(),
                    };
                    add((Root::Timer, format!(" (up to {} us each{after})", number(longest.as_us()))), us);
                }
                Cause::Behind => add((Root::Order, String::new()), us),
                Cause::Copies => add((Root::Copies, String::new()), us),
                Cause::AckBack => add((Root::Acks, String::new()), us),
                Cause::RunEnded => add((Root::RunEnded, String::new()), us),
                Cause::InIdeal => {}
            }
        }
    }

    /// What retransmissions and NACKs are due to.
    fn losses(&self, history: &History<'_>, packets: &Packets) -> Place {
        let fabric = &self.plan.fabric;
        let resent = packets.resent;
        let link = |found: Option<LinkId>| found.map_or_else(String::new, |link| links::name(fabric, link));
        if resent.lost > 0 || packets.lost > 0 {
            // Noise may hit every link of a path, so that no single one decides.
            let noise = [LossCause::Codeword, LossCause::Burst];
            if let Some(most) = packets.lost_on.first().filter(|most| noise.contains(&most.cause)) {
                let noisy = match (self.plan.noise.links.as_slice(), most.link) {
                    ([_] | [_, _], Some(link)) => format!("the noisy link {}", links::name(fabric, link)),
                    _ => "noisy links".to_owned(),
                };
                return (Root::Loss, noisy);
            }
            let gray = (0..fabric.links().len() as u32)
                .map(LinkId)
                .filter(|link| self.loads.get(*link).lost > 0 && self.plan.failures.is_gray(*link))
                .max_by_key(|link| self.loads.get(*link).lost);
            let name = match gray {
                Some(gray) => format!("the gray link {}", links::name(fabric, gray)),
                None => link(self.loads.most(|load| load.lost)),
            };
            return (Root::Loss, name);
        }
        if resent.dropped + resent.cut > 0 || packets.dropped + packets.cut > 0 {
            let queue = self.loads.most(|load| load.drops).or_else(|| self.loads.most(|load| load.queue));
            return (Root::Drops, link(queue));
        }
        let behind = self.taken(history).into_iter().find(|(link, _)| self.slowed(history, *link));
        let slow = behind.map(|(link, _)| format!(", behind the slow link {}", links::name(fabric, link)));
        (Root::Reordering, slow.unwrap_or_default())
    }

    /// Links of switches that the flow's packets took, with their numbers, and the link of its sender.
    fn taken(&self, history: &History<'_>) -> Vec<(LinkId, f64)> {
        let uplink = LinkId(self.plan.qps[history.qp.index()].from.0);
        let hops = self.run.outcome.notes.hops.iter().filter(|hop| hop.qp == history.qp);
        let mut taken: Vec<(LinkId, f64)> = hops.map(|hop| (hop.link, hop.packets as f64)).collect();
        let all = taken.iter().map(|(_, n)| *n).fold(1.0, f64::max);
        taken.push((uplink, all));
        taken
    }

    fn slowed(&self, history: &History<'_>, link: LinkId) -> bool {
        let nominal = self.plan.fabric.links()[link.index()].rate.bps() as f64;
        self.plan.failures.mean_rate(&self.plan.fabric, link, history.start, history.end) < nominal * 0.999
    }

    /// Time between start and end in which the wire was busy, us.
    fn busy_us(&self, link: LinkId, start: Time, end: Time) -> f64 {
        let recording = &self.run.outcome.recording;
        let width = recording.width.ps();
        let whole = end.since(start).as_us();
        let bins = recording.links.iter().find(|(id, _)| *id == link).map(|(_, bins)| bins);
        let Some(bins) = bins.filter(|_| width > 0) else { return self.loads.get(link).busy * whole };
        let rate = self.plan.failures.mean_rate(&self.plan.fabric, link, start, end).max(1.0);
        let mut bytes = 0.0;
        for (i, bin) in bins.iter().enumerate() {
            let (from, to) = (i as u64 * width, (i as u64 + 1) * width);
            let common = to.min(end.ps()).saturating_sub(from.max(start.ps()));
            bytes += bin.bytes as f64 * common as f64 / width as f64;
        }
        (bytes * 8e6 / rate).min(whole)
    }

    /// The longest time for which links that the flow needs were busy with other packets, and what that is called.
    fn busy_for_others(&self, history: &History<'_>) -> (f64, Option<Place>) {
        let fabric = &self.plan.fabric;
        // Links of one tier share the packets of a flow that is sprayed.
        let mut tiers: BTreeMap<(&str, &str), Vec<(LinkId, f64)>> = BTreeMap::new();
        for (link, packets) in self.taken(history) {
            let ends = &fabric.links()[link.index()];
            tiers.entry((fabric.role(ends.from), fabric.role(ends.to))).or_default().push((link, packets));
        }
        let own = |link: LinkId| {
            let rate = self.plan.failures.mean_rate(fabric, link, history.start, history.end).max(1.0);
            history.flow.bytes as f64 * 8e6 / rate
        };
        let mut most: (f64, Option<LinkId>) = (0.0, None);
        for links in tiers.values() {
            let all: f64 = links.iter().map(|(_, n)| n).sum();
            let mean = |value: &dyn Fn(LinkId) -> f64| {
                links.iter().map(|(link, n)| value(*link) * n).sum::<f64>() / all.max(1.0)
            };
            let busy = mean(&|link| self.busy_us(link, history.start, history.end));
            let others = busy - mean(&own) / links.len() as f64;
            let busiest = links.iter().rev().max_by(|a, b| {
                self.busy_us(a.0, history.start, history.end).total_cmp(&self.busy_us(
                    b.0,
                    history.start,
                    history.end,
                ))
            });
            if others > most.0 {
                most = (others, busiest.map(|(link, _)| *link));
            }
        }
        (most.0, most.1.map(|link| self.full(history, link)))
    }

    /// What a full link is called.
    fn full(&self, history: &History<'_>, link: LinkId) -> Place {
        let fabric = &self.plan.fabric;
        let ends = &fabric.links()[link.index()];
        let name = links::name(fabric, link);
        let (root, subject) = if self.slowed(history, link) {
            (Root::SlowLink, name)
        } else if fabric.is_host(ends.to) {
            (Root::Receiver, name)
        } else if fabric.is_host(ends.from) {
            (Root::Sender, name)
        } else {
            let busy = |link: LinkId| self.busy_us(link, history.start, history.end);
            let beside = self.beside(history, link);
            let mean = beside.iter().map(|link| busy(*link)).sum::<f64>() / beside.len().max(1) as f64;
            match busy(link) / mean.max(1e-9) {
                ratio if beside.len() > 1 && ratio >= UNEVEN => {
                    let text = format!("{name} carried {} times the mean of those beside it", number(ratio));
                    (Root::Collisions, text)
                }
                _ => (Root::Uplinks, name),
            }
        };
        (root, subject)
    }

    /// The links that could have taken the packets of `link`: those of its tier on the shortest paths of the flow.
    fn beside(&self, history: &History<'_>, link: LinkId) -> Vec<LinkId> {
        let fabric = &self.plan.fabric;
        let roles = |link: &LinkId| {
            let ends = &fabric.links()[link.index()];
            (fabric.role(ends.from), fabric.role(ends.to))
        };
        let qp = &self.plan.qps[history.qp.index()];
        let paths = links::between(fabric, qp.from, qp.to);
        paths.into_iter().filter(|other| roles(other) == roles(&link)).collect()
    }

    /// The reason for which a port was paused.
    fn paused(&self, link: LinkId) -> Place {
        let Some(pauses) = Pauses::of(self.plan, &self.loads, link) else {
            return (Root::Pauses, String::new());
        };
        match pauses.slow_host {
            true => (Root::SlowHost, pauses.to),
            false => (Root::Pauses, format!("the port {} was full", pauses.cause)),
        }
    }

    /// Where the flow's packets waited in the network, and each place's share of the wait.
    fn queues(&self, history: &History<'_>, packets: &Packets) -> Vec<(Place, f64)> {
        let waited = |link: &crate::packets::Link| link.mean_wait_us * link.packets as f64;
        let all: f64 = packets.links.iter().map(waited).sum();
        let fabric = &self.plan.fabric;
        let mut places = Vec::new();
        for link in &packets.links {
            let named = |id: &LinkId| {
                let ends = &fabric.links()[id.index()];
                (fabric.name(ends.from), fabric.name(ends.to)) == (link.from.as_str(), link.to.as_str())
            };
            let Some((id, _)) = self.taken(history).into_iter().find(|(id, _)| named(id)) else { continue };
            let load = self.loads.get(id);
            let place = match load.paused >= OFTEN_PAUSED && load.paused > load.busy * 0.5 {
                true => self.paused(id),
                false => self.full(history, id),
            };
            places.push((place, waited(link) / all.max(1e-9)));
        }
        match places.is_empty() {
            true => vec![((Root::Uplinks, String::new()), 1.0)],
            false => places,
        }
    }
}
