//! The summary of a run: the JSON contract, and how each number comes about.
//!
//! | term | meaning |
//! |---|---|
//! | flow | one message |
//! | FCT | from the flow's start to the arrival of the ACK of its last byte at the sender |
//! | slowdown | FCT / ideal FCT (the flow alone on the fabric) |
//! | goodput | payload bits / FCT, over flows that are not background |
//! | sending-rate fraction | wire bytes sent, retransmissions included, / (NIC rate x (last byte sent - start)), over the same flows |
//! | by distance | the same over flows that go short ways and flows that go more than ten times as far, where there are both |
//! | by size | the same over flows of similar size: more than one power of ten of bytes, up to the next; where flows fall into several |
//! | p50, p99 | percentiles by nearest rank |
//! | tail mean | mean of what ranks above the 99th percentile; it is not the percentile, which papers may call it |
//! | group completion | from the job's start until the last rank of the group has received its last byte |
//!
//! Flows that did not finish have no FCT and stand in no mean; `count` beside `finished` shows them. A group
//! that did not finish has no completion time, and then its job has no slowest and no mean.

use crate::digest;
use crate::stats::{Spread, extremes, mean};
use engine::Outcome;
use engine::outcome::{Ending, MessageRecord};
use model::plan::{Job, Message};
use model::{HostId, Plan, Time};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// What is known of a run besides its plan.
#[derive(Clone, Copy, Debug)]
pub struct Title<'a> {
    /// The scenario's name.
    pub scenario: &'a str,
    /// The scheme's name.
    pub scheme: &'a str,
}

/// What a run cost; the only part of the results that differs from one run to the next.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Timing {
    /// Seconds of wall time in the engine.
    pub wall_s: f64,
    /// Seconds of CPU time in the engine: of all threads of this run together, and of nothing that runs beside
    /// it.
    pub cpu_s: f64,
    /// Seconds of CPU time to read, check and lay out the scenario.
    pub setup_s: f64,
    /// Threads that the run was split over.
    pub threads: usize,
    /// `window` or `reference`.
    pub engine: &'static str,
    /// Link crossings of data and control packets per CPU second (of `cpu_s`).
    pub hops_per_cpu_s: f64,
    /// Most memory that the process held, 10^6 bytes. Runs side by side share it.
    pub peak_rss_mb: f64,
}

/// Link crossings.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Hops {
    /// Of data.
    pub data: u64,
    /// Of ACKs, NACKs and CNPs.
    pub control: u64,
}

/// A set of flows.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Flows {
    /// All of them.
    pub count: u64,
    /// Those that finished.
    pub finished: u64,
    /// Payload of all of them.
    pub bytes: u64,
    /// Flow completion time of those that finished, us.
    pub fct_us: Option<Spread>,
    /// Slowdown of those that finished.
    pub slowdown: Option<Spread>,
    /// The same by size, from small to large; only where flows fall into several of these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub by_size: Vec<SizeBucket>,
    /// The same by distance; only where some flows go more than ten times as far as others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by_distance: Option<ByDistance>,
}

/// Flows over short and over long paths. A path is long if it takes more than ten times the propagation delay of the
/// longest one that is not: our choice, so that the tiers of one datacentre are alike and two datacentres are not.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ByDistance {
    /// Over short paths.
    pub near: Distance,
    /// Over long ones.
    pub far: Distance,
    /// Mean slowdown of the former to that of the latter (the long-haul paper's unfairness).
    pub unfairness: Option<f64>,
}

/// Flows of one kind of path.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Distance {
    /// All of them.
    pub count: u64,
    /// Those that finished.
    pub finished: u64,
    /// Payload of all of them.
    pub bytes: u64,
    /// Flow completion time of those that finished, us.
    pub fct_us: Option<Spread>,
    /// Slowdown of those that finished.
    pub slowdown: Option<Spread>,
}

/// Flows of similar size. Buckets end at powers of ten of bytes (our choice; figures of flow-size distributions have a
/// logarithmic axis); those without a flow are left out.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SizeBucket {
    /// All of them are larger than this.
    pub over_bytes: u64,
    /// None is larger than this.
    pub up_to_bytes: u64,
    /// All of them.
    pub count: u64,
    /// Those that finished.
    pub finished: u64,
    /// Payload of all of them.
    pub bytes: u64,
    /// Flow completion time of those that finished, us.
    pub fct_us: Option<Spread>,
    /// Slowdown of those that finished.
    pub slowdown: Option<Spread>,
}

/// Completion of a job's groups.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Groups {
    /// All groups.
    pub count: u64,
    /// When they completed.
    pub completion_us: Completion,
}

/// Completion times of groups since their job's start, us.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Completion {
    /// The last group; null if one did not complete.
    pub slowest: Option<f64>,
    /// The mean over all groups; null if one did not complete.
    pub mean: Option<f64>,
    /// The first group that completed.
    pub fastest: Option<f64>,
}

/// One job.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct JobSummary {
    /// Its groups.
    pub groups: Groups,
}

/// Goodput, Gb/s.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Goodput {
    /// Mean over flows.
    pub mean: Option<f64>,
    /// Of the slowest flow.
    pub min: Option<f64>,
}

/// Sending rate as a fraction of the NIC's.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SendingRate {
    /// Mean over flows.
    pub mean: Option<f64>,
}

/// Data packets. `sent` = `accepted` + `duplicate` + `discarded` + all that was dropped + `held` + `in_flight`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Packets {
    /// Put on the wire by hosts: retransmissions, copies and notices included.
    pub sent: u64,
    /// Accepted by a receiver.
    pub accepted: u64,
    /// Sent again.
    pub retransmitted: u64,
    /// Retransmissions that arrived although an earlier copy had.
    pub spurious: u64,
    /// Copies that a scheme made on purpose.
    pub duplicated: u64,
    /// Arrivals of a PSN that was there already.
    pub duplicate: u64,
    /// Arrivals that the receiver threw away (go-back-N: what came out of order).
    pub discarded: u64,
    /// Arrivals with a PSN above ePSN.
    pub out_of_order: u64,
    /// The same by traffic class, where there are several.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub out_of_order_by_class: BTreeMap<String, u64>,
    /// Dropped for lack of buffer.
    pub dropped_buffer: u64,
    /// Lost on a link.
    pub dropped_link: u64,
    /// Dropped by a scheme; only where there were any.
    #[serde(skip_serializing_if = "is_zero")]
    pub dropped_scheme: u64,
    /// Still held by schemes at the end.
    pub held: u64,
    /// Still on a wire or in a queue at the end.
    pub in_flight: u64,
    /// Notices that arrived: packets without payload that a scheme sent in the class of data; only where there were any.
    #[serde(skip_serializing_if = "is_zero")]
    pub noticed: u64,
    /// Packets that wait at a receiver for a gap to be filled; only in runs in which somebody looks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reorder_buffer: Option<ReorderBuffer>,
}

/// Packets that wait at a receiver for a gap to be filled, per queue pair.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ReorderBuffer {
    /// Mean over the arrivals of data.
    pub mean: f64,
    /// Most at once.
    pub max: u64,
}

/// Control packets.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Control {
    /// ACKs sent by receivers.
    pub ack: u64,
    /// NACKs sent by receivers.
    pub nack: u64,
    /// CNPs sent by receivers.
    pub cnp: u64,
    /// Pause frames.
    pub pause: u64,
    /// Resume frames.
    pub resume: u64,
    /// Retransmission timers that fired.
    pub timeout: u64,
    /// ACKs, NACKs and CNPs that a scheme ended on their way.
    pub blocked: u64,
    /// Packets by which schemes tell each other something; only where there were any.
    #[serde(skip_serializing_if = "is_zero")]
    pub signals: u64,
    /// ACKs, NACKs and CNPs made, by receivers and by schemes, and signals.
    pub created: u64,
    /// Lost on a link or for lack of buffer.
    pub dropped: u64,
}

/// The summary of a run, key for key what `summary.json` holds.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Summary {
    /// Name of the scenario.
    pub scenario: String,
    /// Name of the load-balancing scheme.
    pub scheme: String,
    /// Root of every random draw.
    pub seed: u64,
    /// One number for everything that happened.
    pub digest: String,
    /// Every flow that counts finished, and no lossless fabric dropped a packet.
    pub complete: bool,
    /// `finished` when every flow that counts was, `stopped` by `[stop]`, `interrupted` by the user, or `stalled`.
    pub ending: &'static str,
    /// Simulated time at the end.
    pub sim_time_us: f64,
    /// What the run cost.
    pub timing: Timing,
    /// Link crossings.
    pub packet_hops: Hops,
    /// All flows.
    pub flows: Flows,
    /// Flows by traffic class.
    pub classes: BTreeMap<String, Flows>,
    /// Jobs by name.
    pub jobs: BTreeMap<String, JobSummary>,
    /// Goodput of foreground flows.
    pub goodput_gbps: Goodput,
    /// Sending rate of foreground flows.
    pub sending_rate_fraction: SendingRate,
    /// Data packets.
    pub packets: Packets,
    /// Control packets.
    pub control: Control,
    /// The scheme's own counters.
    pub counters: BTreeMap<&'static str, u64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// A time that was set.
pub fn set(time: Time) -> Option<Time> {
    (time != Time::NEVER).then_some(time)
}

/// The flow's completion time if it finished.
pub fn fct(record: &MessageRecord) -> Option<Time> {
    set(record.acked).map(|acked| acked.since(record.start))
}

/// Payload bits over `time`, Gb/s.
pub fn gbps(bytes: u64, time: Time) -> f64 {
    bytes as f64 * 8000.0 / time.ps() as f64
}

impl Summary {
    /// Derives it. `ideal` holds the ideal FCT by message.
    pub fn new(title: Title<'_>, plan: &Plan, ideal: &[Time], outcome: &Outcome, timing: Timing) -> Self {
        let view = View { plan, ideal, outcome };
        let used = || {
            let named = (0u8..).zip(&plan.traffic_classes);
            named.filter(|(i, _)| plan.jobs.iter().any(|job| job.class == *i))
        };
        let classes: BTreeMap<_, _> =
            used().map(|(i, name)| (name.clone(), view.flows(|job| job.class == i))).collect();
        let mut out_of_order_by_class = BTreeMap::new();
        if classes.len() > 1 {
            let of = |i: u8| outcome.out_of_order.get(usize::from(i)).copied().unwrap_or(0);
            out_of_order_by_class.extend(used().map(|(i, name)| (name.clone(), of(i))));
        }
        let (d, c) = (&outcome.data, &outcome.control);
        Summary {
            scenario: title.scenario.to_owned(),
            scheme: title.scheme.to_owned(),
            seed: plan.seed,
            digest: digest::of_outcome(outcome),
            complete: is_complete(plan, outcome),
            ending: outcome.ending.name(),
            sim_time_us: outcome.end.as_us(),
            timing,
            packet_hops: Hops { data: outcome.data_hops, control: outcome.control_hops },
            flows: view.flows(|_| true),
            classes,
            jobs: view.jobs(),
            goodput_gbps: view.goodput(),
            sending_rate_fraction: view.sending_rate(),
            packets: Packets {
                sent: d.sent,
                accepted: d.accepted,
                retransmitted: d.retransmitted,
                spurious: d.spurious,
                duplicated: d.duplicated,
                duplicate: d.duplicate,
                discarded: d.discarded,
                out_of_order: d.out_of_order,
                out_of_order_by_class,
                dropped_buffer: d.dropped_buffer,
                dropped_link: d.dropped_link,
                dropped_scheme: d.dropped_scheme,
                held: d.held,
                in_flight: d.in_flight,
                noticed: d.noticed,
                reorder_buffer: (d.reorder_sum > 0).then(|| ReorderBuffer {
                    mean: d.reorder_sum as f64 / (d.accepted + d.duplicate + d.discarded).max(1) as f64,
                    max: d.reorder_peak,
                }),
            },
            control: Control {
                ack: c.ack,
                nack: c.nack,
                cnp: c.cnp,
                pause: c.pause,
                resume: c.resume,
                timeout: c.timeout,
                blocked: c.blocked,
                signals: c.signals,
                created: c.created,
                dropped: c.dropped,
            },
            counters: outcome.counters.iter().copied().collect(),
        }
    }

    /// The JSON text of `summary.json`.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }
}

/// Every flow that counts finished, nothing was dropped on a lossless fabric, and the books balance.
pub fn is_complete(plan: &Plan, outcome: &Outcome) -> bool {
    let counts = |m: &Message| !plan.jobs[m.job as usize].background;
    let mut records = plan.messages.iter().zip(&outcome.messages);
    records.all(|(m, r)| !counts(m) || r.acked != Time::NEVER) && !failed(outcome)
}

/// The simulation itself failed, as against: was stopped.
pub fn failed(outcome: &Outcome) -> bool {
    let stalled = matches!(outcome.ending, Ending::Stalled(_));
    stalled || !outcome.broke_lossless.is_empty() || !outcome.violations.is_empty()
}

struct View<'a> {
    plan: &'a Plan,
    ideal: &'a [Time],
    outcome: &'a Outcome,
}

impl<'a> View<'a> {
    /// Messages with their records and ideal FCT, of the jobs that `pick` takes.
    fn of(
        &self,
        pick: impl Fn(&Job) -> bool,
    ) -> impl Iterator<Item = (&'a Message, &'a MessageRecord, Time)> {
        let (plan, ideal) = (self.plan, self.ideal);
        let records = plan.messages.iter().zip(&self.outcome.messages).zip(ideal);
        records.filter(move |((m, _), _)| pick(&plan.jobs[m.job as usize])).map(|((m, r), &i)| (m, r, i))
    }

    fn flows(&self, pick: impl Fn(&Job) -> bool) -> Flows {
        let mut all = Sample::default();
        let mut decades: BTreeMap<u32, Sample> = BTreeMap::new();
        let long = long_paths(self.plan);
        let mut distances = [Sample::default(), Sample::default()];
        for (message, record, ideal) in self.of(pick) {
            all.add(message.bytes, fct(record), ideal);
            decades.entry(decade(message.bytes)).or_default().add(message.bytes, fct(record), ideal);
            if let Some(far) = long.get(message.qp.index()) {
                distances[usize::from(*far)].add(message.bytes, fct(record), ideal);
            }
        }
        if decades.len() < 2 {
            decades.clear();
        }
        let bucket = |(decade, sample): (u32, Sample)| {
            let (count, finished, bytes) = (sample.count, sample.times.len() as u64, sample.bytes);
            let (fct_us, slowdown) = sample.spreads();
            let up_to_bytes = 10u64.saturating_pow(decade);
            let over_bytes = if decade == 0 { 0 } else { 10u64.saturating_pow(decade - 1) };
            SizeBucket { over_bytes, up_to_bytes, count, finished, bytes, fct_us, slowdown }
        };
        let by_size = decades.into_iter().map(bucket).collect();
        let (count, finished, bytes) = (all.count, all.times.len() as u64, all.bytes);
        let (fct_us, slowdown) = all.spreads();
        let by_distance = ByDistance::of(distances);
        Flows { count, finished, bytes, fct_us, slowdown, by_size, by_distance }
    }

    fn goodput(&self) -> Goodput {
        let rate = |(m, r, _): (&Message, &MessageRecord, Time)| fct(r).map(|t| gbps(m.bytes, t));
        let rates: Vec<f64> = self.of(|job| !job.background).filter_map(rate).collect();
        Goodput { mean: mean(&rates), min: extremes(&rates).map(|(least, _)| least) }
    }

    fn sending_rate(&self) -> SendingRate {
        let fraction = |(m, r, _): (&Message, &MessageRecord, Time)| {
            fct(r)?;
            let sender = self.plan.qps[m.qp.index()].from;
            let line = self.plan.fabric.ports(sender.node())[0].rate;
            Some(gbps(r.wire_bytes, r.last_sent.since(r.start)) / line.as_gbps())
        };
        let fractions: Vec<f64> = self.of(|job| !job.background).filter_map(fraction).collect();
        SendingRate { mean: mean(&fractions) }
    }

    fn jobs(&self) -> BTreeMap<String, JobSummary> {
        let none = Some(Time::ZERO);
        let mut last: Vec<Vec<Option<Time>>> =
            self.plan.jobs.iter().map(|job| vec![none; job.groups.into()]).collect();
        for (message, record, _) in self.of(|_| true) {
            let group = &mut last[message.job as usize][message.group as usize];
            *group = group.zip(set(record.received)).map(|(a, b)| a.max(b));
        }
        let summaries = self.plan.jobs.iter().zip(&last);
        summaries.map(|(job, last)| (job.name.clone(), JobSummary { groups: groups(job, last) })).collect()
    }
}

/// Flows as they are gathered.
#[derive(Default)]
struct Sample {
    count: u64,
    bytes: u64,
    times: Vec<f64>,
    slowdowns: Vec<f64>,
}

impl Sample {
    fn add(&mut self, bytes: u64, fct: Option<Time>, ideal: Time) {
        self.count += 1;
        self.bytes += bytes;
        if let Some(fct) = fct {
            self.times.push(fct.as_us());
            self.slowdowns.push(fct.ps() as f64 / ideal.ps().max(1) as f64);
        }
    }

    /// FCT, slowdown.
    fn spreads(self) -> (Option<Spread>, Option<Spread>) {
        (Spread::of(self.times), Spread::of(self.slowdowns))
    }
}

/// By queue pair, whether its path is a long one; empty if none is, or all are alike.
fn long_paths(plan: &Plan) -> Vec<bool> {
    let fabric = &plan.fabric;
    let mut known: BTreeMap<(usize, usize), u64> = BTreeMap::new();
    let mut delay = |from: HostId, to: HostId| {
        let ends = (fabric.rack(from), fabric.rack(to));
        *known.entry(ends).or_insert_with(|| {
            let (mut node, mut sum) = (fabric.attachment(from), 0u64);
            // A path visits no node twice.
            for _ in 0..fabric.nodes() {
                let Some(port) = fabric.route(node, to).first() else { break };
                let link = fabric.ports(node)[usize::from(port.0)];
                sum = sum.saturating_add(link.delay.ps());
                if link.to == to.node() {
                    break;
                }
                node = link.to;
            }
            sum
        })
    };
    let delays: Vec<u64> = plan.qps.iter().map(|qp| delay(qp.from, qp.to)).collect();
    let mut sorted: Vec<u64> = known.into_values().collect();
    sorted.sort_unstable();
    let Some(gap) = sorted.windows(2).find(|pair| pair[1] / 10 > pair[0]) else { return Vec::new() };
    delays.into_iter().map(|delay| delay > gap[0]).collect()
}

impl ByDistance {
    fn of([near, far]: [Sample; 2]) -> Option<Self> {
        if near.count == 0 || far.count == 0 {
            return None;
        }
        let of = |sample: Sample| {
            let (count, finished, bytes) = (sample.count, sample.times.len() as u64, sample.bytes);
            let (fct_us, slowdown) = sample.spreads();
            Distance { count, finished, bytes, fct_us, slowdown }
        };
        let (near, far) = (of(near), of(far));
        let unfairness = near.slowdown.zip(far.slowdown).map(|(near, far)| near.mean / far.mean);
        Some(ByDistance { near, far, unfairness })
    }
}

/// The least power of ten that is not below `bytes`, as an exponent.
fn decade(bytes: u64) -> u32 {
    bytes.saturating_sub(1).checked_ilog10().map_or(0, |log| log + 1)
}

fn groups(job: &Job, last: &[Option<Time>]) -> Groups {
    let times: Vec<f64> = last.iter().flatten().map(|t| t.since(job.start).as_us()).collect();
    let all = times.len() == last.len();
    let (fastest, slowest) = extremes(&times).unzip();
    let completion_us =
        Completion { slowest: slowest.filter(|_| all), mean: mean(&times).filter(|_| all), fastest };
    Groups { count: last.len() as u64, completion_us }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn summary(plan: &Plan, outcome: &Outcome) -> Summary {
        let ideal = vec![Time::from_us(5); plan.messages.len()];
        let title = Title { scenario: "test", scheme: "ecmp" };
        Summary::new(title, plan, &ideal, outcome, Timing::default())
    }

    #[test]
    fn three_flows_by_hand() {
        // 12,500 B in 10, 20 and 30 us: 10, 5 and 3.33 Gb/s.
        let s = summary(&testing::plan(3), &testing::outcome(3));
        assert!(s.complete);
        assert_eq!(s.flows.count, 3);
        assert_eq!(s.flows.bytes, 37_500);
        assert_eq!(
            s.flows.fct_us,
            Some(Spread { mean: 20.0, p50: 20.0, p99: 30.0, max: 30.0, tail_mean: None })
        );
        assert_eq!(
            s.flows.slowdown,
            Some(Spread { mean: 4.0, p50: 4.0, p99: 6.0, max: 6.0, tail_mean: None })
        );
        let goodput = s.goodput_gbps.mean.unwrap();
        assert!((goodput - (10.0 + 5.0 + 10.0 / 3.0) / 3.0).abs() < 1e-9, "{goodput}");
        assert!((s.goodput_gbps.min.unwrap() - 10.0 / 3.0).abs() < 1e-9);
        // 20,000 wire bytes until 8, 18, 28 us at 100 Gb/s.
        let fraction = s.sending_rate_fraction.mean.unwrap();
        assert!((fraction - (0.2 + 0.16 / 1.8 + 0.16 / 2.8) / 3.0).abs() < 1e-9, "{fraction}");
        assert_eq!(s.classes.keys().collect::<Vec<_>>(), ["foreground"]);
    }

    #[test]
    fn a_group_is_done_when_its_last_rank_has_received() {
        // Flow 0 and 2 form group 0, flow 1 group 1; received 1 us before acknowledged.
        let s = summary(&testing::plan(3), &testing::outcome(3));
        let times = s.jobs["job"].groups.completion_us;
        assert_eq!(times, Completion { slowest: Some(29.0), mean: Some(24.0), fastest: Some(19.0) });
    }

    #[test]
    fn flows_of_different_sizes_are_told_apart_by_powers_of_ten() {
        let mut plan = testing::plan(5);
        for (message, bytes) in plan.messages.iter_mut().zip([1, 1_000, 1_001, 10_000, 10_001]) {
            message.bytes = bytes;
        }
        let mut outcome = testing::outcome(5);
        outcome.messages[2].acked = Time::NEVER;
        let s = summary(&plan, &outcome);
        let edges = |b: &SizeBucket| (b.over_bytes, b.up_to_bytes, b.count, b.finished, b.bytes);
        assert_eq!(
            s.flows.by_size.iter().map(edges).collect::<Vec<_>>(),
            [
                (0, 1, 1, 1, 1),
                (100, 1_000, 1, 1, 1_000),
                (1_000, 10_000, 2, 1, 11_001),
                (10_000, 100_000, 1, 1, 10_001)
            ]
        );
        // Message 3 took 40 us, eight times its ideal; message 2, beside it, never finished.
        let third = &s.flows.by_size[2];
        assert_eq!((third.fct_us.unwrap().mean, third.slowdown.unwrap().mean), (40.0, 8.0));
        let json: serde_json::Value = serde_json::from_str(&s.to_json()).unwrap();
        let keys: Vec<&String> = json["flows"]["by_size"][0].as_object().unwrap().keys().collect();
        assert_eq!(keys, ["over_bytes", "up_to_bytes", "count", "finished", "bytes", "fct_us", "slowdown"]);
        let alike = summary(&testing::plan(5), &testing::outcome(5));
        assert!(alike.flows.by_size.is_empty() && !alike.to_json().contains("by_size"));
    }

    #[test]
    fn every_size_has_its_decade() {
        let decades = [0, 1, 2, 10, 11, 100, 101, 1_000_000, u64::MAX].map(decade);
        assert_eq!(decades, [0, 0, 1, 1, 2, 2, 3, 6, 20]);
    }

    #[test]
    fn an_unfinished_flow_is_never_passed_off() {
        let mut outcome = testing::outcome(3);
        outcome.messages[2] = MessageRecord { start: Time::ZERO, ..MessageRecord::default() };
        let s = summary(&testing::plan(3), &outcome);
        assert!(!s.complete);
        assert_eq!((s.flows.count, s.flows.finished), (3, 2));
        let times = s.jobs["job"].groups.completion_us;
        assert_eq!((times.slowest, times.mean, times.fastest), (None, None, Some(19.0)));
    }

    #[test]
    fn background_flows_do_not_count_for_completeness() {
        let mut plan = testing::plan(3);
        plan.jobs.push(Job { name: "bg".into(), start: Time::ZERO, groups: 1, background: true, class: 1 });
        (plan.messages[2].job, plan.messages[2].group) = (1, 0);
        let mut outcome = testing::outcome(3);
        outcome.messages[2].acked = Time::NEVER;
        let s = summary(&plan, &outcome);
        assert!(s.complete);
        assert_eq!(s.classes["background"].finished, 0);
        assert_eq!(s.classes["foreground"].finished, 2);
        assert!((s.goodput_gbps.mean.unwrap() - 7.5).abs() < 1e-9);
    }

    #[test]
    fn a_drop_on_a_lossless_fabric_makes_a_run_incomplete() {
        let mut outcome = testing::outcome(3);
        outcome.broke_lossless.push(model::NodeId(2));
        assert!(!summary(&testing::plan(3), &outcome).complete);
    }

    #[test]
    fn disorder_is_told_apart_by_class_where_there_are_several() {
        let mut plan = testing::plan(3);
        let mut outcome = testing::outcome(3);
        assert!(summary(&plan, &outcome).packets.out_of_order_by_class.is_empty());
        plan.jobs.push(model::plan::Job { name: "noise".into(), class: 1, ..plan.jobs[0].clone() });
        outcome.out_of_order = vec![4, 9];
        let by_class = summary(&plan, &outcome).packets.out_of_order_by_class;
        assert_eq!(by_class, BTreeMap::from([("background".into(), 9), ("foreground".into(), 4)]));
    }

    #[test]
    fn the_keys_are_the_contract() {
        let s = summary(&testing::plan(3), &testing::outcome(3));
        let json: serde_json::Value = serde_json::from_str(&s.to_json()).unwrap();
        let keys =
            |v: &serde_json::Value| v.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
        assert_eq!(
            keys(&json),
            "scenario scheme seed digest complete ending sim_time_us timing packet_hops flows classes jobs goodput_gbps \
             sending_rate_fraction packets control counters"
        );
        assert_eq!(keys(&json["timing"]), "wall_s cpu_s setup_s threads engine hops_per_cpu_s peak_rss_mb");
        assert_eq!(keys(&json["flows"]), "count finished bytes fct_us slowdown");
        assert_eq!(keys(&json["classes"]["foreground"]), keys(&json["flows"]));
        assert_eq!(keys(&json["flows"]["fct_us"]), "mean p50 p99 max tail_mean");
        assert_eq!(keys(&json["jobs"]["job"]["groups"]["completion_us"]), "slowest mean fastest");
        assert_eq!(
            keys(&json["packets"]),
            "sent accepted retransmitted spurious duplicated duplicate discarded out_of_order dropped_buffer \
             dropped_link held in_flight"
        );
        assert_eq!(keys(&json["control"]), "ack nack cnp pause resume timeout blocked created dropped");
    }
}
