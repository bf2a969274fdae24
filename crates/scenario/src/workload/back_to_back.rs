//! Messages from one host to another, one at a time.

use super::Generate;
use super::draft::{Draft, StartOn, some_bytes};
use finding::{Finding, code};
use model::{Bytes, HostId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One host sends equal messages to another. Each message starts when the last byte of the one before is acknowledged,
/// as in perftest with one outstanding message. With `qp = "per-message"` each message has a new queue pair, and only
/// the fabric carries state from one message to the next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct BackToBack {
    /// Host that sends. Default: the first host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Host that receives. Default: the last host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Payload of each message. Default 1 MB (our choice).
    #[serde(default = "bytes")]
    pub bytes: Bytes,
    /// Number of messages. Default 100 (our choice).
    #[serde(default = "messages")]
    pub messages: u32,
}

fn bytes() -> Bytes {
    Bytes(1_000_000)
}

fn messages() -> u32 {
    100
}

impl Generate for BackToBack {
    fn generate(&self, draft: &mut Draft<'_>) -> Result<usize, Finding> {
        let bytes = some_bytes(self.bytes, "bytes")?;
        if self.messages == 0 {
            return Err(code::RANGE.at("messages", "expected at least 1 message, found 0"));
        }
        let named = |name: &Option<String>, path, default: usize| match name {
            Some(name) => draft.host(name, path),
            None => Ok(HostId(default as u32)),
        };
        let (from, to) = (named(&self.from, "from", 0)?, named(&self.to, "to", draft.fabric.hosts() - 1)?);
        if from == to {
            let name = draft.fabric.host_name(to);
            return Err(code::TO_ITSELF.at("to", format!("`{name}` cannot send to itself")));
        }
        draft.reserve(self.messages.into(), 1, "messages")?;
        let mut before = None;
        for _ in 0..self.messages {
            let message = draft.send(0, from, to, bytes);
            if let Some(before) = before {
                draft.after(before, StartOn::Acked, message);
            }
            before = Some(message);
        }
        Ok(1)
    }
}
