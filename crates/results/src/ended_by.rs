//! The queue pair that ended a run, as it had no retries left.

use crate::stall::{ends, flow};
use engine::Outcome;
use engine::outcome::{Ending, Exceeded};
use model::{MessageId, Plan, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The failure of a queue pair (`RETRY_EXC_ERR`) that ended the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EndedBy {
    /// Time of the failure.
    pub at_us: f64,
    /// Number of the flow, the oldest of the queue pair that was not acknowledged.
    pub flow: u32,
    /// Sending host.
    pub from: String,
    /// Receiving host.
    pub to: String,
    /// Link that lost its last packet or reply, such as `host0 -> leaf0`; null if no link lost any.
    pub link: Option<String>,
}

/// The oldest message of the queue pair that is not acknowledged.
fn message(plan: &Plan, outcome: &Outcome, exceeded: Exceeded) -> MessageId {
    let mut of_qp = plan.qps[exceeded.qp.index()].messages.clone();
    let open = of_qp.find(|&m| outcome.messages[m as usize].acked == Time::NEVER);
    MessageId(open.unwrap_or_default())
}

impl EndedBy {
    /// The queue pair that ended this run, if one did.
    pub(crate) fn of(plan: &Plan, outcome: &Outcome) -> Option<Self> {
        let Ending::RetryExceeded(exceeded) = outcome.ending else { return None };
        let qp = &plan.qps[exceeded.qp.index()];
        Some(EndedBy {
            at_us: exceeded.at.as_us(),
            flow: message(plan, outcome, exceeded).0,
            from: plan.fabric.host_name(qp.from).into_owned(),
            to: plan.fabric.host_name(qp.to).into_owned(),
            link: exceeded.link.map(|link| ends(plan, link)),
        })
    }
}

/// The end of the run in words.
pub(crate) fn in_words(plan: &Plan, outcome: &Outcome, exceeded: Exceeded) -> String {
    let by = flow(plan, message(plan, outcome, exceeded));
    let retries = plan.retries_of(exceeded.qp).unwrap_or_default();
    let lost = match exceeded.link {
        Some(link) => format!("{} lost its last packet", ends(plan, link)),
        None => "no link lost its packets".to_owned(),
    };
    let at = exceeded.at.as_us();
    format!("the job ended at {at:.3} us: {by} had no answer to {retries} retries (RETRY_EXC_ERR); {lost}")
}
