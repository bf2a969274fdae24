//! The numbers that the study reads from a run.

use lab::Run;
use model::Time;
use model::plan::Message;
use std::collections::BTreeMap;

/// Messages of a job, or of all foreground jobs, with their times of arrival.
fn messages<'a>(run: &'a Run, job: Option<&'a str>) -> impl Iterator<Item = (&'a Message, Time)> {
    let plan = &run.checked.plan;
    let wanted = move |message: &Message| {
        let of = &plan.jobs[usize::from(message.job)];
        job.map_or(!of.background, |name| of.name == name)
    };
    let all = plan.messages.iter().zip(&run.outcome.messages);
    all.filter(move |(message, _)| wanted(message)).map(|(message, record)| (message, record.received))
}

/// The NIC of a host, by the number of its first port.
fn nic(run: &Run, host: model::HostId) -> u32 {
    run.checked.plan.sharing.map_or(host.0, |sharing| sharing.home(host).0)
}

/// Payload that the busiest NIC sends or receives, divided by its rate: no system can be faster. In us.
fn bound(run: &Run, job: Option<&str>) -> Option<f64> {
    let plan = &run.checked.plan;
    let (mut out, mut into) = (BTreeMap::new(), BTreeMap::new());
    let mut line = None;
    for (message, _) in messages(run, job) {
        let qp = &plan.qps[message.qp.index()];
        line = Some(plan.line(qp.from));
        *out.entry(nic(run, qp.from)).or_insert(0) += message.bytes;
        *into.entry(nic(run, qp.to)).or_insert(0) += message.bytes;
    }
    let busiest = out.values().chain(into.values()).max()?;
    Some(8e6 * *busiest as f64 / line?.bps() as f64)
}

/// Time from 0 until the last message has arrived; `None` if one has not. In us.
fn time(run: &Run, job: Option<&str>) -> Option<f64> {
    let last = messages(run, job).map(|(_, received)| received).max()?;
    (last != Time::NEVER).then(|| last.as_us())
}

/// Time of all foreground jobs, as a multiple of the bound.
pub(super) fn stretch(run: &Run) -> Option<f64> {
    Some(time(run, None)? / bound(run, None)?)
}

/// Time of the job, as a multiple of its bound.
pub(super) fn job_stretch(run: &Run) -> Option<f64> {
    Some(time(run, Some("job"))? / bound(run, Some("job"))?)
}

/// P99 of the slowdown of flows.
pub(super) fn p99(run: &Run) -> Option<f64> {
    Some(run.summary.flows.slowdown?.p99)
}

/// Jain's index of the rates of the job's senders.
pub(super) fn jain(run: &Run) -> Option<f64> {
    let mut senders: BTreeMap<u32, (u64, Time)> = BTreeMap::new();
    for (message, received) in messages(run, Some("job")) {
        let from = nic(run, run.checked.plan.qps[message.qp.index()].from);
        let (bytes, last) = senders.entry(from).or_default();
        (*bytes, *last) = (*bytes + message.bytes, (*last).max(received));
    }
    let rates: Vec<f64> = senders.values().map(|(bytes, last)| *bytes as f64 / last.as_us()).collect();
    let (sum, squares) = (rates.iter().sum::<f64>(), rates.iter().map(|r| r * r).sum::<f64>());
    (squares > 0.0).then(|| sum * sum / (rates.len() as f64 * squares))
}

fn class_mean(run: &Run, class: &str) -> Option<f64> {
    Some(run.summary.classes.get(class)?.slowdown?.mean)
}

/// Slowdown of the victim in the receiver's rack.
pub(super) fn near(run: &Run) -> Option<f64> {
    class_mean(run, "near")
}

/// Slowdown of the victim in another rack.
pub(super) fn far(run: &Run) -> Option<f64> {
    class_mean(run, "far")
}

/// Cut or dropped packets, per cent of the packets that arrived.
pub(super) fn lost(run: &Run) -> Option<f64> {
    let packets = &run.summary.packets;
    let cut = packets.cut.as_ref().map_or(0, |cut| cut.packets);
    Some(100.0 * (cut + packets.dropped) as f64 / packets.accepted.max(1) as f64)
}

/// Packets sent again, per cent of the packets that arrived.
pub(super) fn resent(run: &Run) -> Option<f64> {
    let packets = &run.summary.packets;
    Some(100.0 * packets.retransmitted as f64 / packets.accepted.max(1) as f64)
}

/// Largest use of a switch's buffer, kB.
pub(super) fn buffer(run: &Run) -> Option<f64> {
    run.outcome.max_buffer.iter().map(|bytes| bytes.get() as f64 / 1000.0).max_by(f64::total_cmp)
}

/// Time for which PFC paused the ports of switches and hosts, per cent of their time.
pub(super) fn paused(run: &Run) -> Option<f64> {
    let ports = run.outcome.links.len() as f64;
    Some(100.0 * run.summary.control.paused_us / (ports * run.summary.sim_time_us))
}

/// Control packets per data packet that arrived.
pub(super) fn control(run: &Run) -> Option<f64> {
    Some(run.summary.control.created as f64 / run.summary.packets.accepted.max(1) as f64)
}

/// Most packets of a queue pair that waited for a gap to be filled; `None` if receivers do not count them.
pub(super) fn waiting(run: &Run) -> Option<f64> {
    Some(run.summary.packets.reorder_buffer.as_ref()?.max as f64)
}

/// Packets sent again per packet that a link lost.
pub(super) fn resent_per_loss(run: &Run) -> Option<f64> {
    let packets = &run.summary.packets;
    (packets.dropped_link > 0).then(|| packets.retransmitted as f64 / packets.dropped_link as f64)
}

/// Timers that fired per 1000 packets that a link lost.
pub(super) fn timers_per_loss(run: &Run) -> Option<f64> {
    let lost = run.summary.packets.dropped_link;
    (lost > 0).then(|| 1000.0 * run.summary.control.timeout as f64 / lost as f64)
}

/// Data packets that dead links lost.
pub(super) fn lost_on_links(run: &Run) -> Option<f64> {
    Some(run.summary.packets.dropped_link as f64)
}

/// Messages that take more than 4 ms, per cent: they wait for the repair.
pub(super) fn stuck(run: &Run) -> Option<f64> {
    let all: Vec<Time> = messages(run, None).map(|(_, received)| received).collect();
    let late = all.iter().filter(|received| **received > Time::from_ms(4)).count();
    Some(100.0 * late as f64 / all.len().max(1) as f64)
}

/// Times of the failures whose goodput is measured.
pub(super) const DIES: Time = Time::from_us(300);
pub(super) const REPAIRED: Time = Time::from_us(1300);
/// The goodput before the failure is the mean from here on, when all flows have found their rates.
const STEADY: Time = Time::from_us(150);
/// Stretch over which goodput is averaged.
const STRETCH: Time = Time::from_us(50);

/// Width of the bins of a series, up to a window more; wider ones were merged.
const WIDTH: Time = Time::from_us(10);

/// Packets delivered in order in the stretches that begin at each bin from the failure on and end before the repair, with their
/// times; and the level before the failure. All are packets per bin. `None` if a long run merged its bins.
fn goodput(run: &Run) -> Option<(f64, Vec<(Time, f64)>)> {
    let recording = &run.outcome.recording;
    if recording.width.ps() >= 2 * WIDTH.ps() {
        return None;
    }
    let bin = |at: Time| at.ps().div_ceil(recording.width.ps()) as usize;
    let delivered = |end: usize| -> Option<u64> {
        recording.qps.iter().map(|(_, bins)| Some(bins.get(end.checked_sub(1)?)?.expected)).sum()
    };
    let mean = |from: usize, to: usize| Some((delivered(to)? - delivered(from)?) as f64 / (to - from) as f64);
    let (dies, repaired, long) = (bin(DIES), bin(REPAIRED), bin(STRETCH));
    let before = mean(bin(STEADY), dies)?;
    let stretch = |first: usize| {
        let at = Time(first as u64 * recording.width.ps());
        Some((at, mean(first, first + long)?))
    };
    let after: Option<Vec<_>> = (dies..=repaired - long).map(stretch).collect();
    Some((before, after?))
}

/// The goodput before the failure, per cent of the line rate of all senders.
pub(super) fn level(run: &Run) -> Option<f64> {
    let plan = &run.checked.plan;
    let (before, _) = goodput(run)?;
    let line: f64 = plan.qps.iter().map(|qp| plan.line(qp.from).bps() as f64).sum();
    let bits = 8.0 * before * f64::from(plan.wire.payload);
    Some(100.0 * bits / (line * run.outcome.recording.width.as_secs()))
}

/// The least goodput in a stretch after the failure, per cent of the goodput before.
pub(super) fn dip(run: &Run) -> Option<f64> {
    let (before, after) = goodput(run)?;
    let least = after.into_iter().map(|(_, goodput)| goodput).min_by(f64::total_cmp)?;
    Some(100.0 * least / before)
}

/// Time from the failure to the first stretch from which on goodput is at 99 % of that before; the time of the repair if it never
/// is. In us.
pub(super) fn recovery(run: &Run) -> Option<f64> {
    let (before, after) = goodput(run)?;
    let below = after.iter().rev().position(|(_, goodput)| *goodput < 0.99 * before);
    let back = match below {
        Some(0) => REPAIRED,
        Some(later) => after[after.len() - later].0,
        None => DIES,
    };
    Some(back.since(DIES).as_us())
}

/// Goodput lost between the failure and the repair, as the time in which that before would have made up for it. In us.
pub(super) fn goodput_lost(run: &Run) -> Option<f64> {
    let (before, after) = goodput(run)?;
    let mean = after.iter().map(|(_, goodput)| goodput).sum::<f64>() / after.len() as f64;
    Some(REPAIRED.since(DIES).as_us() * (1.0 - mean / before))
}

/// Mean slowdown of the flows of the system under test.
pub(super) fn new_mean(run: &Run) -> Option<f64> {
    class_mean(run, "foreground")
}

/// P99 of the slowdown of the same flows.
pub(super) fn new_p99(run: &Run) -> Option<f64> {
    Some(run.summary.classes.get("foreground")?.slowdown?.p99)
}

/// Mean slowdown of legacy flows.
pub(super) fn legacy_mean(run: &Run) -> Option<f64> {
    class_mean(run, "legacy")
}

/// P99 of the slowdown of legacy flows.
pub(super) fn legacy_p99(run: &Run) -> Option<f64> {
    Some(run.summary.classes.get("legacy")?.slowdown?.p99)
}

/// Median FCT of small messages, us.
pub(super) fn small_p50(run: &Run) -> Option<f64> {
    Some(run.summary.classes.get("small")?.fct_us?.p50)
}

/// P99 of the FCT of small messages, us.
pub(super) fn small_p99(run: &Run) -> Option<f64> {
    Some(run.summary.classes.get("small")?.fct_us?.p99)
}
