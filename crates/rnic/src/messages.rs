//! Limits on the messages that a NIC begins.

use finding::{Finding, code};
use model::{MessageGaps, MessageRate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most messages that a NIC begins per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Messages {
    /// Most messages per second of one queue pair. Default: no limit (our choice; measured: "3.87M/s" on a ConnectX-5).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_qp: Option<MessageRate>,
    /// Most messages per second of all queue pairs of a NIC, over all its ports if it shares them. Default: no limit (our
    /// choice; measured: "16.7M/s" on a ConnectX-5).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_nic: Option<MessageRate>,
}

impl Messages {
    /// Least times between the starts of two messages.
    pub(crate) fn gaps(self) -> MessageGaps {
        let gap = |rate: Option<MessageRate>| rate.map_or(Time::ZERO, MessageRate::gap);
        MessageGaps { queue_pair: gap(self.per_qp), nic: gap(self.per_nic) }
    }

    /// Checks whether the values are possible.
    pub(crate) fn validate(self) -> Result<(), Finding> {
        for (field, rate) in [("messages.per-qp", self.per_qp), ("messages.per-nic", self.per_nic)] {
            if rate == Some(MessageRate(0)) {
                return Err(code::RANGE.at(field, "must be more than 0"));
            }
        }
        Ok(())
    }
}
