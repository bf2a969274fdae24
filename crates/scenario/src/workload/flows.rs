//! Lists of messages.

use super::Generate;
use super::draft::{Draft, some_bytes};
use finding::{Finding, code};
use model::{Bytes, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A list of messages. Messages between the same two hosts share a queue pair and are sent in the order of their starts,
/// unless `qp = "per-message"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Flows {
    /// The messages. No default.
    pub list: Vec<Flow>,
}

/// A message of the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Flow {
    /// Host that sends. No default.
    pub from: String,
    /// Host that receives. No default.
    pub to: String,
    /// Payload. No default.
    pub bytes: Bytes,
    /// Start of the message, after the start of the job. Default 0 (our choice).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub start: Time,
    /// Repetition of the message. Default: the message is sent once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<Again>,
}

/// Repetition of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Again {
    /// Number of times that the message is sent in all, at least 1. No default.
    pub times: u64,
    /// Time from one start to the next. No default.
    pub every: Time,
}

fn is_zero(time: &Time) -> bool {
    *time == Time::ZERO
}

impl Generate for Flows {
    fn generate(&self, draft: &mut Draft<'_>) -> Result<usize, Finding> {
        if self.list.is_empty() {
            return Err(code::MISSING.at("list", "expected at least 1 flow, found none"));
        }
        let (mut kinds, mut pairs, mut number) = (Vec::new(), Vec::new(), 0u64);
        for (i, flow) in self.list.iter().enumerate() {
            let at = |key: &str| format!("list.{i}.{key}");
            let (from, to) = (draft.host(&flow.from, &at("from"))?, draft.host(&flow.to, &at("to"))?);
            if from == to {
                return Err(code::TO_ITSELF.at(&at("to"), format!("`{}` cannot send to itself", flow.to)));
            }
            let bytes = some_bytes(flow.bytes, &at("bytes"))?;
            let Again { times, every } = flow.again.clone().unwrap_or(Again { times: 1, every: Time::ZERO });
            if times == 0 {
                return Err(code::RANGE.at(&at("again.times"), "expected at least 1, found 0"));
            }
            number = number.saturating_add(times);
            pairs.push((from, to));
            kinds.push((flow.start, every, times, from, to, bytes));
        }
        pairs.sort_unstable();
        pairs.dedup();
        draft.reserve(number, pairs.len() as u64, "list")?;
        let mut flows = Vec::with_capacity(number as usize);
        for (start, every, times, from, to, bytes) in kinds {
            let start = |n: u64| Time(start.ps().saturating_add(every.ps().saturating_mul(n)));
            flows.extend((0..times).map(|n| (start(n), from, to, bytes)));
        }
        flows.sort_by_key(|flow| flow.0);
        for (start, from, to, bytes) in flows {
            draft.send_at(0, from, to, bytes, start);
        }
        Ok(1)
    }
}
