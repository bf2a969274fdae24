//! Queue pairs that left a port by which their retries were used up.

use engine::{Outcome, outcome};
use model::{Plan, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A queue pair that left a port by which its retries were used up (`nic.on-retry-exceeded = "nccl-failover"`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Failover {
    /// Time of the last timeout.
    pub at_us: f64,
    /// Number of the flow, the oldest of the queue pair that was not acknowledged.
    pub flow: u32,
    /// Port that it left.
    pub from: String,
    /// Port to which it moved.
    pub to: String,
    /// Time of its return; null if it did not return.
    pub back_us: Option<f64>,
}

impl Failover {
    /// All moves of a run, by time.
    pub(crate) fn all(plan: &Plan, outcome: &Outcome) -> Vec<Self> {
        outcome.failovers.iter().map(|failover| Failover::of(plan, outcome, *failover)).collect()
    }

    fn of(plan: &Plan, outcome: &Outcome, failover: outcome::Failover) -> Self {
        let outcome::Failover { at, qp, from, to, back } = failover;
        let mut of_qp = plan.qps[qp.index()].messages.clone();
        let flow = of_qp.find(|&m| outcome.messages[m as usize].acked > at).unwrap_or_default();
        let name = |host| plan.fabric.host_name(host).into_owned();
        let back_us = (back != Time::NEVER).then(|| back.as_us());
        Failover { at_us: at.as_us(), flow, from: name(from), to: name(to), back_us }
    }
}
