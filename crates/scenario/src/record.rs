//! `[record]`: time series, packet events and captures.

use crate::tap::{self, Tap};
use crate::values::{Amount, LATEST};
use finding::{Finding, code};
use model::plan::{Message, Qp};
use model::record::RecordPlan;
use model::{Bytes, Fabric, Failures, LinkId, QpId, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Time series, packet events and captures to record. Recording never changes a result: the digest stays the same.
/// Recorded queue pairs and links are spread evenly over all of them. The number of bins is bounded, and with it the
/// size of the output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct RecordConfig {
    /// Number of queue pairs to record over time, or "all". Default 8 (our choice).
    pub flows: Amount,
    /// Number of links to record over time, or "all"; each direction counts as one link. A number selects links between
    /// switches only, and adds at most 16 links that fail. Default 8 (our choice).
    pub links: Amount,
    /// Whether to record the buffers of all switches over time. Default false (our choice).
    pub switches: bool,
    /// Whether to record the scheme's counters over time. Default false (our choice).
    pub counters: bool,
    /// Whether to count frames, drops and marks of each queue of the ports of switches, for queues.parquet. Default false (our choice:
    /// it costs time).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub queues: bool,
    /// Most bins of a time series, an even number. A run with many series gets fewer bins, so that all of them fit into
    /// a million rows. Default 256 (our choice).
    pub bins: usize,
    /// Width of the first bins; it doubles whenever the bins are full. The width is rounded up to whole windows of the
    /// engine, each about as long as the delay of the shortest link between racks. Default 1 us (our choice).
    pub width: Time,
    /// Number of queue pairs whose events are recorded, or "all": packets sent and received, NACKs, CNPs, timeouts,
    /// packets that the scheme blocks, and queue lengths on the way. Default 0 (our choice: events cost time and memory).
    pub events: Amount,
    /// Flows whose queue pairs' events are recorded, too, by their number in flows.parquet. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub follow: Vec<u32>,
    /// Most events of one queue pair, counted separately for packets sent or received and for all other events. Only the
    /// first events are kept. Default 20000 (our choice).
    pub most_events: usize,
    /// Ports whose frames are captured in both directions: "HOST", "SWITCH:PORT" or "SWITCH:NEIGHBOUR". Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub taps: Vec<String>,
    /// Snap length: the bytes of each frame that a capture stores, from its first byte on, beside the frame's original
    /// length. "0B" stores whole frames; in shorter ones, programs that compare lengths, such as tshark 4.0, call data frames
    /// malformed. Default 0 B (our choice: captures without such complaints; 128 B hold all headers).
    pub snap_length: Bytes,
}

impl Default for RecordConfig {
    fn default() -> Self {
        RecordConfig {
            flows: Amount::Some(8),
            links: Amount::Some(8),
            switches: false,
            counters: false,
            queues: false,
            bins: 256,
            width: Time::from_us(1),
            events: Amount::Some(0),
            follow: Vec::new(),
            most_events: 20_000,
            taps: Vec::new(),
            snap_length: Bytes(0),
        }
    }
}

/// Most failing links that are recorded beside those that were asked for (our choice).
const FAILING: usize = 16;

/// Most rows of the table of time series (our choice).
const MOST_ROWS: usize = 1_000_000;

impl RecordConfig {
    /// The queue pairs, links and ports to record on a fabric.
    pub(crate) fn plan(
        &self,
        fabric: &Fabric,
        qps: &[Qp],
        messages: &[Message],
        failures: &Failures,
    ) -> Result<RecordPlan, Finding> {
        if !(2..=65_536).contains(&self.bins) || !self.bins.is_multiple_of(2) {
            let text = format!("expected an even number of bins between 2 and 65536, found {}", self.bins);
            return Err(code::RANGE.at("record.bins", text));
        }
        if self.width == Time::ZERO || self.width > LATEST {
            let text = format!("expected a width above 0 and at most {LATEST}, found {}", self.width);
            return Err(code::RANGE.at("record.width", text));
        }
        if self.most_events > 100_000_000 {
            let text = format!("expected at most 100000000, found {}", self.most_events);
            return Err(code::RANGE.at("record.most-events", text));
        }
        let all = (0..fabric.links().len() as u32).map(LinkId);
        let between = |l: &LinkId| {
            let link = &fabric.links()[l.index()];
            !fabric.is_host(link.from) && !fabric.is_host(link.to)
        };
        let mut links: Vec<LinkId> = match self.links {
            Amount::All => all.clone().collect(),
            Amount::Some(_) => all.clone().filter(between).collect(),
        };
        if links.is_empty() {
            links = all.collect();
        }
        let mut follow: BTreeSet<QpId> = evenly(qps.len(), self.events).map(|i| QpId(i as u32)).collect();
        for (i, flow) in self.follow.iter().enumerate() {
            let message = messages.get(*flow as usize).ok_or_else(|| {
                let text =
                    format!("there is no flow {flow}; the scenario has {} flows, from 0", messages.len());
                code::UNKNOWN_NAME.at(&format!("record.follow.{i}"), text)
            })?;
            follow.insert(message.qp);
        }
        let mut qps: BTreeSet<QpId> = evenly(qps.len(), self.flows).map(|i| QpId(i as u32)).collect();
        qps.extend(&follow);
        let mut links: BTreeSet<LinkId> = evenly(links.len(), self.links).map(|i| links[i]).collect();
        if let Amount::Some(1..) = self.links {
            links.extend(failures.changed_links().into_iter().take(FAILING));
        }
        let switches = if self.switches { fabric.switch_count() } else { 0 };
        let tracks = qps.len() + links.len() + switches;
        if tracks > MOST_ROWS / 2 {
            let text = format!("expected at most {} time series, found {tracks}", MOST_ROWS / 2);
            return Err(code::RANGE.at("record", text));
        }
        Ok(RecordPlan {
            bins: self.bins.min((MOST_ROWS / tracks.max(1)).max(2) & !1),
            qps: qps.into_iter().collect(),
            links: links.into_iter().collect(),
            switches: self.switches,
            counters: self.counters,
            queues: self.queues,
            width: self.width,
            follow: follow.into_iter().collect(),
            events: self.most_events,
            taps: self.taps(fabric)?,
        })
    }

    /// The tapped ports.
    pub(crate) fn ports(&self, fabric: &Fabric) -> Result<Vec<Tap>, Finding> {
        tap::find_all(fabric, &self.taps)
            .map_err(|(i, text)| code::RANGE.at(&format!("record.taps.{i}"), text))
    }

    /// The tapped links in both directions, in ascending order.
    fn taps(&self, fabric: &Fabric) -> Result<Vec<LinkId>, Finding> {
        let both = self.ports(fabric)?.into_iter().flat_map(|tap| [tap.link, fabric.reverse(tap.link)]);
        Ok(both.collect::<BTreeSet<_>>().into_iter().collect())
    }
}

/// `amount` numbers from `0..len`, evenly spread.
fn evenly(len: usize, amount: Amount) -> impl Iterator<Item = usize> {
    let n = amount.of(len);
    (0..n).map(move |i| i * len / n)
}
