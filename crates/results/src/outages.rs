//! Packets that failures cost.

use engine::{Outcome, outcome};
use model::Plan;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Data packets that an entry of `[[failure]]` cost: on its dead links, in circles between switches that had not all learned of it, and by
/// the chance of loss that it gave links.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FailureLosses {
    /// Number of the entry, counted from 0.
    pub failure: u32,
    /// Data packets lost.
    pub lost: u64,
    /// Packets among these that started on a link that was down already.
    pub black_hole: u64,
    /// Packets among these that ran in circles.
    pub in_loops: u64,
    /// Time of the first loss: the start of the packet on the link, or its arrival at the last switch.
    pub first_us: f64,
    /// Time of the last loss.
    pub last_us: f64,
}

impl FailureLosses {
    /// The losses of all entries that cost any, by number. Where failures of a link overlap, the earlier one counts.
    pub(crate) fn all(plan: &Plan, outcome: &Outcome) -> Vec<Self> {
        let mut all: BTreeMap<u32, FailureLosses> = BTreeMap::new();
        for losses in &outcome.losses {
            let outcome::Losses { link, since, gray, packets, black_hole, first, last } = *losses;
            let failure = plan.failures.entry_of(link, gray, since);
            let (first_us, last_us) = (first.as_us(), last.as_us());
            let new = FailureLosses { failure, first_us, last_us, ..Self::default() };
            let sum = all.entry(failure).or_insert(new);
            sum.lost += packets;
            sum.black_hole += black_hole;
            sum.in_loops += if link.is_none() { packets } else { 0 };
            sum.first_us = sum.first_us.min(first_us);
            sum.last_us = sum.last_us.max(last_us);
        }
        all.into_values().collect()
    }
}
