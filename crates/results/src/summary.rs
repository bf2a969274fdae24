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

use crate::data::RunData;
use crate::digest;
use crate::flows::Samples;
use crate::metrics::{Measured, Metric, Shown, Unit, jobs};
use engine::Outcome;
use engine::outcome::Ending;
use model::plan::Message;
use model::{Plan, Time};
use serde_json::Value;
use std::collections::BTreeMap;

pub use crate::ended_by::EndedBy;
pub use crate::failovers::Failover;
pub use crate::metrics::control::Control;
pub use crate::metrics::fast::Fast;
pub use crate::metrics::flows::{ByDistance, Distance, Flows, SizeBucket};
pub use crate::metrics::hops::Hops;
pub use crate::metrics::jobs::{Completion, Groups, JobSummary};
pub use crate::metrics::packets::{Packets, ReorderBuffer};
pub use crate::metrics::rates::{Goodput, SendingRate};
pub use crate::metrics::serving::Serving;
pub use crate::metrics::steps::{Bus, Exposed, Steps};
pub use crate::metrics::timing::Timing;
pub use crate::outages::FailureLosses;

/// What is known of a run besides its plan.
#[derive(Clone, Copy, Debug)]
pub struct Title<'a> {
    /// The scenario's name.
    pub scenario: &'a str,
    /// The names of the scheme and of feedbacks, `themis+long-haul`.
    pub scheme: &'a str,
}

/// A run that has ended: the source of its summary.
pub(crate) struct Ended<'a> {
    title: Title<'a>,
    data: RunData<'a>,
    timing: Timing,
}

section! {
    /// The summary of a run, key for key what `summary.json` holds.
    pub struct Summary read from run: Ended<'_>;

    /// Name of the scenario.
    scenario: String = run.title.scenario.to_owned();

    /// Name of the load-balancing scheme.
    scheme: String = run.title.scheme.to_owned();

    /// Root of every random draw.
    seed: u64 = run.data.plan.seed;

    /// Digest of all results of the run; equal digests mean equal runs.
    digest: String = digest::of(run.data);

    /// True if every foreground flow finished, no lossless fabric dropped a packet, and every packet is accounted for.
    complete: bool = is_complete(run.data.plan, run.data.outcome);

    /// `finished` if every foreground flow finished, `stopped` by `[stop]`, `interrupted` by the user, `stalled`, `retry-exceeded` if a queue pair had no retries left, or `memory` if memory ran out.
    ending: String = run.data.outcome.ending.name().to_owned();

    /// The queue pair that had no retries left; left out if none ended the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_by: Option<EndedBy> = EndedBy::of(run.data.plan, run.data.outcome);

    /// Queue pairs that left a port by which their retries were used up, by time; left out if none did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failovers: Vec<Failover> = Failover::all(run.data.plan, run.data.outcome);

    /// What failures that take links down cost, by their number; left out if they cost no packet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failures: Vec<FailureLosses> = FailureLosses::all(run.data.plan, run.data.outcome);

    /// What a run with `--fast` left out; left out for all other runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    fast: Option<Fast> = None => {};

    /// Requests of inference serving; left out for runs that serve none.
    #[serde(skip_serializing_if = "Option::is_none")]
    serving: Option<Serving> = None => {};

    /// Simulated time at the end.
    sim_time_us: f64 = run.data.outcome.end.as_us() => { label: "simulated time", unit: Unit::Microseconds };

    /// The cost of the run.
    timing: Timing = run.timing => { varies: true };

    /// Link crossings.
    packet_hops: Hops = Hops::read(run.data) => {};

    /// All flows.
    flows: Flows = Flows::read(&Samples::of(run.data, |_| true)) => {};

    /// Flows by traffic class.
    classes: BTreeMap<String, Flows> = classes(run.data) => { part: "traffic class *", again: true };

    /// Jobs by name.
    jobs: BTreeMap<String, JobSummary> = jobs::of(run.data) => { part: "job *" };

    /// Goodput of foreground flows.
    goodput_gbps: Goodput = Goodput::of(run.data) => {};

    /// Sending rate of foreground flows.
    sending_rate_fraction: SendingRate = SendingRate::of(run.data) => {};

    /// Data packets.
    packets: Packets = Packets::read(run.data) => {};

    /// Control packets.
    control: Control = Control::read(run.data) => {};

    /// Counter `*` of the scheme.
    counters: BTreeMap<String, u64> = counters(run.data.outcome) => { label: "*", shown: Shown::Page };
}

fn classes(run: RunData<'_>) -> BTreeMap<String, Flows> {
    let flows = |class| Flows::read(&Samples::of(run, |job| job.class == class));
    run.classes().map(|(class, name)| (name.clone(), flows(class))).collect()
}

fn counters(outcome: &Outcome) -> BTreeMap<String, u64> {
    outcome.counters.iter().map(|&(name, count)| (name.to_owned(), count)).collect()
}

impl Summary {
    /// Derives the summary of a run. `ideal` holds the ideal FCT by message, then by whole.
    pub fn new(title: Title<'_>, plan: &Plan, ideal: &[Time], outcome: &Outcome, timing: Timing) -> Self {
        Summary::read(Ended { title, data: RunData { plan, ideal, outcome, served: None }, timing })
    }

    /// True if `[stop]` ended the run.
    pub fn stopped(&self) -> bool {
        self.ending == Ending::Stopped.name()
    }

    /// Every metric of this run with its number, in the order of the summary. A number that does not exist is null.
    pub fn numbers(&self) -> Vec<(Metric, Value)> {
        let mut all = Vec::new();
        Summary::tell(Some(self), Metric::default(), &mut |metric, value| all.push((metric, value)));
        all
    }

    /// The number of the metric with this key.
    pub fn number(&self, key: &str) -> Option<f64> {
        let (_, value) = self.numbers().into_iter().find(|(metric, _)| metric.key == key)?;
        value.as_f64()
    }

    /// The JSON text of `summary.json`.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }
}

/// True if every foreground flow finished and the simulation did not fail.
pub fn is_complete(plan: &Plan, outcome: &Outcome) -> bool {
    let counts = |m: &Message| !plan.jobs[m.job as usize].background;
    let mut records = plan.messages.iter().zip(&outcome.messages);
    records.all(|(m, r)| !counts(m) || r.acked != Time::NEVER) && !failed(outcome)
}

/// True if the simulation failed rather than being stopped.
pub fn failed(outcome: &Outcome) -> bool {
    let cut_off = matches!(outcome.ending, Ending::Stalled(_) | Ending::RetryExceeded(_) | Ending::Memory(_));
    cut_off || !outcome.broke_lossless.is_empty() || !outcome.violations.is_empty()
}

#[cfg(test)]
mod tests;
