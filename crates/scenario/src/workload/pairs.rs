//! Flows between randomly drawn pairs of hosts.

use super::Generate;
use super::draft::{Draft, some_bytes};
use super::host_sample::HostSample;
use finding::{Finding, code};
use model::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Pairs of hosts, drawn at random. The first host of a pair sends one message to the second; no host is in two pairs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Pairs {
    /// Number of pairs. Default 20 (DLBF paper, motivation: background flows).
    pub count: usize,
    /// Payload of each message. Default 100 MB (DLBF paper, motivation: background flows).
    pub bytes: Bytes,
    /// Hosts to draw from: a part of a random order that all jobs share. Default: all.
    pub hosts: HostSample,
}

impl Default for Pairs {
    fn default() -> Self {
        Pairs { count: 20, bytes: Bytes(100_000_000), hosts: HostSample::default() }
    }
}

impl Generate for Pairs {
    fn generate(&self, draft: &mut Draft<'_>) -> Result<usize, Finding> {
        let bytes = some_bytes(self.bytes, "bytes")?;
        if self.count == 0 {
            return Err(code::RANGE.at("count", "expected at least 1 pair, found 0"));
        }
        let hosts = self.hosts.hosts(draft, self.count.saturating_mul(2))?;
        draft.reserve(self.count as u64, self.count as u64, "count")?;
        for pair in hosts.chunks_exact(2).take(self.count) {
            draft.send(0, pair[0], pair[1], bytes);
        }
        Ok(1)
    }
}
