//! Several incasts at the same time, as experts of a mixture-of-experts model receive their tokens.

use super::Generate;
use super::draft::{Draft, some_bytes};
use super::host_sample::HostSample;
use finding::{Finding, code};
use model::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Each receiver gets one message from each of its own senders, all at the same time. Receivers and senders are drawn at
/// random.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct FanIn {
    /// Number of receivers. Default 8 (DLBF paper, motivation).
    pub receivers: usize,
    /// Number of senders of each receiver. Default 32 (DLBF paper, motivation).
    pub senders: usize,
    /// Payload of each message. Default 512 kB (DLBF paper, motivation: the size in its sweep of background flows).
    pub bytes: Bytes,
    /// Hosts to draw from: a part of a random order that all jobs share. Default: all.
    pub hosts: HostSample,
}

impl Default for FanIn {
    fn default() -> Self {
        FanIn { receivers: 8, senders: 32, bytes: Bytes(512_000), hosts: HostSample::default() }
    }
}

impl Generate for FanIn {
    fn generate(&self, draft: &mut Draft<'_>) -> Result<usize, Finding> {
        let bytes = some_bytes(self.bytes, "bytes")?;
        for (key, count) in [("receivers", self.receivers), ("senders", self.senders)] {
            if count == 0 {
                return Err(code::RANGE.at(key, "expected at least 1, found 0"));
            }
        }
        let flows = self.receivers.saturating_mul(self.senders);
        let hosts = self.hosts.hosts(draft, flows.saturating_add(self.receivers))?;
        draft.reserve(flows as u64, flows as u64, "senders")?;
        let (receivers, senders) = hosts.split_at(self.receivers);
        for (r, (receiver, senders)) in receivers.iter().zip(senders.chunks(self.senders)).enumerate() {
            for sender in senders {
                draft.send(r, *sender, *receiver, bytes);
            }
        }
        Ok(self.receivers)
    }
}
