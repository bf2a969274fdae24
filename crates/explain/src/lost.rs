//! The links that lost a flow's packets, and why.

use crate::history::History;
use crate::trace::Step;
use engine::outcome::{EventKind, LossCause};
use model::{Fabric, Kind, LinkId, Plan};
use serde::Serialize;
use std::collections::BTreeMap;

/// Packets of a flow that one link lost for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LostOn {
    /// Node that sent them onto the link.
    pub from: String,
    /// Node that they did not reach.
    pub to: String,
    /// Why the link lost them, in words.
    pub why: &'static str,
    /// Number of packets.
    pub packets: u64,
    /// Number of the link.
    #[serde(skip)]
    pub(crate) link: Option<LinkId>,
    /// Why the link lost them.
    #[serde(skip)]
    pub(crate) cause: LossCause,
}

impl LostOn {
    /// The losses of a flow, those with the most packets first. Empty if a version of ropewalk wrote the events that did not tell the link.
    pub(crate) fn all(history: &History<'_>) -> Vec<Self> {
        let lost = |s: &&Step| s.what == EventKind::Lost && s.kind == Kind::Data;
        let own = history.during().filter(lost).filter(|s| history.own.contains(&s.seq));
        let mut counts: BTreeMap<(&str, &str, LossCause), u64> = BTreeMap::new();
        for step in own {
            if let Some((to, cause)) = &step.lost {
                *counts.entry((&step.node, to, *cause)).or_default() += 1;
            }
        }
        let (plan, fabric) = (history.plan, &history.plan.fabric);
        let mut all: Vec<LostOn> = counts
            .into_iter()
            .map(|((from, to, cause), packets)| {
                let link = link_between(fabric, from, to);
                let why = why(plan, link, cause);
                LostOn { from: from.to_owned(), to: to.to_owned(), why, packets, link, cause }
            })
            .collect();
        all.sort_by_key(|lost| std::cmp::Reverse(lost.packets));
        all
    }

    /// The link and the reason: `leaf0 -> spine1, which is gray`.
    pub(crate) fn place(&self) -> String {
        format!("{} -> {}, {}", self.from, self.to, self.why)
    }
}

/// A link from one node to another; parallel links share their names.
fn link_between(fabric: &Fabric, from: &str, to: &str) -> Option<LinkId> {
    let (from, to) = (fabric.find(from)?, fabric.find(to)?);
    let base = fabric.base(from);
    let links = (base..base + fabric.ports(from).len() as u32).map(LinkId);
    links.into_iter().find(|link| fabric.links()[link.index()].to == to)
}

/// Why the link lost packets, as the end of a sentence about it.
fn why(plan: &Plan, link: Option<LinkId>, cause: LossCause) -> &'static str {
    match cause {
        LossCause::Chance if link.is_some_and(|link| plan.failures.is_gray(link)) => "which is gray",
        LossCause::Chance => "by its chance of loss or a list",
        LossCause::Codeword => "in codewords that FEC could not repair",
        LossCause::Burst => "in bursts of noise",
        LossCause::Outage => "which went down",
        LossCause::BlackHole => "which was down",
    }
}
