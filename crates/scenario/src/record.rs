//! `[record]`: what a run records besides its results.

use crate::error::Fault;
use crate::tap::{self, Tap};
use crate::values::{Amount, LATEST};
use model::plan::{Message, Qp};
use model::record::RecordPlan;
use model::{Fabric, LinkId, QpId, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What is recorded over time, and of single packets. Tracks are chosen evenly over all queue pairs and over all links
/// between switches, and the number of bins is bounded, so the size of the output is, too. Nothing of it changes what
/// happens: the digest stays the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct RecordConfig {
    /// Queue pairs to record over time: a number, or "all". Default 8 (our choice).
    pub flows: Amount,
    /// Links to record over time, each one direction: a number, or "all". Default 8 (our choice); a number means links
    /// between switches.
    pub links: Amount,
    /// Whether the buffers of all switches are recorded over time. Default false (our choice).
    pub switches: bool,
    /// Whether what the scheme counts is recorded over time. Default false (our choice).
    pub counters: bool,
    /// Most bins per track, an even number; fewer where there are so many tracks that a million rows would not do.
    /// Default 256 (our choice).
    pub bins: usize,
    /// Width of the first bins; it doubles whenever the bins are full. It is rounded up to whole windows of the engine,
    /// each about as long as the shortest link. Default 1 us (our choice).
    pub width: Time,
    /// Queue pairs of which single events are recorded: packets sent and arrived, NACKs, CNPs, timeouts, what the scheme
    /// blocks, and the queues that they meet. A number, or "all". Default 0 (our choice: each costs time and room).
    pub events: Amount,
    /// Flows (numbers as in flows.parquet) whose queue pairs are recorded likewise. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub follow: Vec<u32>,
    /// Most events of one queue pair: so many of packets that set out or arrive, and so many of all else; the first ones are
    /// kept. Default 20000 (our choice).
    pub most_events: usize,
    /// Ports whose frames are captured, in both directions: "HOST", "SWITCH:PORT" or "SWITCH:NEIGHBOUR". Default:
    /// none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub taps: Vec<String>,
    /// Most frames of one tap in one direction; the first ones are kept. Default 1000000 (our choice).
    pub most_frames: usize,
}

impl Default for RecordConfig {
    fn default() -> Self {
        RecordConfig {
            flows: Amount::Some(8),
            links: Amount::Some(8),
            switches: false,
            counters: false,
            bins: 256,
            width: Time::from_us(1),
            events: Amount::Some(0),
            follow: Vec::new(),
            most_events: 20_000,
            taps: Vec::new(),
            most_frames: 1_000_000,
        }
    }
}

/// Most rows of the table of series: a table of the size of that of flows. Our choice.
const MOST_ROWS: usize = 1_000_000;

impl RecordConfig {
    /// What it comes to on a fabric with these queue pairs and messages.
    pub(crate) fn plan(
        &self,
        fabric: &Fabric,
        qps: &[Qp],
        messages: &[Message],
    ) -> Result<RecordPlan, Fault> {
        if !(2..=65_536).contains(&self.bins) || !self.bins.is_multiple_of(2) {
            let text = format!("{} bins; an even number between 2 and 65536 is possible", self.bins);
            return Err(Fault::new("record.bins", text));
        }
        if self.width == Time::ZERO || self.width > LATEST {
            let text = format!("a bin's width must be above 0 and at most {LATEST}");
            return Err(Fault::new("record.width", text));
        }
        for (key, n) in [("most-events", self.most_events), ("most-frames", self.most_frames)] {
            if n > 100_000_000 {
                let text = format!("{n} are too many; at most 100000000 are possible");
                return Err(Fault::new(&format!("record.{key}"), text));
            }
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
                let text = format!("there is no flow {flow}; the scenario has {}, from 0", messages.len());
                Fault::new(&format!("record.follow.{i}"), text)
            })?;
            follow.insert(message.qp);
        }
        let mut qps: BTreeSet<QpId> = evenly(qps.len(), self.flows).map(|i| QpId(i as u32)).collect();
        qps.extend(&follow);
        let links: Vec<LinkId> = evenly(links.len(), self.links).map(|i| links[i]).collect();
        let switches = if self.switches { fabric.nodes() - fabric.hosts() } else { 0 };
        let tracks = qps.len() + links.len() + switches;
        if tracks > MOST_ROWS / 2 {
            let text = format!("{tracks} tracks; at most {} are possible", MOST_ROWS / 2);
            return Err(Fault::new("record", text));
        }
        Ok(RecordPlan {
            bins: self.bins.min((MOST_ROWS / tracks.max(1)).max(2) & !1),
            qps: qps.into_iter().collect(),
            links,
            switches: self.switches,
            counters: self.counters,
            width: self.width,
            follow: follow.into_iter().collect(),
            events: self.most_events,
            taps: self.taps(fabric)?,
            frames: self.most_frames,
        })
    }

    /// The ports that are tapped.
    pub(crate) fn ports(&self, fabric: &Fabric) -> Result<Vec<Tap>, Fault> {
        tap::find_all(fabric, &self.taps).map_err(|(i, text)| Fault::new(&format!("record.taps.{i}"), text))
    }

    /// The links that are tapped, in order.
    fn taps(&self, fabric: &Fabric) -> Result<Vec<LinkId>, Fault> {
        let both = self.ports(fabric)?.into_iter().flat_map(|tap| [tap.link, fabric.reverse(tap.link)]);
        Ok(both.collect::<BTreeSet<_>>().into_iter().collect())
    }
}

/// So many of `0..len`, evenly spread.
fn evenly(len: usize, amount: Amount) -> impl Iterator<Item = usize> {
    let n = amount.of(len);
    (0..n).map(move |i| i * len / n)
}
