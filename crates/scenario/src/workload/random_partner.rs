//! Messages from every host to random hosts, one at a time.

use super::Generate;
use super::cdf::Cdf;
use super::draft::{Draft, StartOn, some_bytes};
use super::host_sample::HostSample;
use super::peers::{PeerSet, Peers};
use super::sizes::{Clamp, Sizes};
use finding::{Finding, code};
use model::{Bytes, HostId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Every host sends a message to a random host and draws the next one when its last byte is acknowledged (a closed loop).
/// Hosts do not wait for each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct RandomPartner {
    /// Payload of each message. Default 1 MB (our choice), if `sizes` is not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Bytes>,
    /// Distribution of message sizes, instead of `bytes`; its values are those of `poisson`. Default: not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sizes: Option<Sizes>,
    /// Limits of `sizes`, such as `{ min = "16KiB", max = "4MiB" }` (Flowcut artefact, Dragonfly). Default: no limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clamp: Option<Clamp>,
    /// Number of messages that each host sends. Default 6 (Flowcut artefact, Dragonfly: 6144 messages of 1024 hosts).
    pub iterations: u32,
    /// Hosts that may be drawn as receivers. `"any"`: any other host. `"cross-rack"`: hosts in other racks.
    /// `"cross-pod"`: hosts in other pods, or on a Dragonfly in other groups. Default `"any"` (our choice).
    pub peers: Peers,
    /// Hosts that send and receive: a part of a random order that all jobs share. Default: all.
    pub hosts: HostSample,
}

impl Default for RandomPartner {
    fn default() -> Self {
        RandomPartner {
            bytes: None,
            sizes: None,
            clamp: None,
            iterations: 6,
            peers: Peers::Any,
            hosts: HostSample::default(),
        }
    }
}

impl RandomPartner {
    fn cdf(&self) -> Result<Cdf, Finding> {
        let fixed = |bytes: Bytes| {
            some_bytes(bytes, "bytes")?;
            Sizes::Inline(super::sizes::Distribution::Fixed(bytes)).cdf()
        };
        let cdf = match (self.bytes, &self.sizes) {
            (Some(_), Some(_)) => {
                return Err(code::CONFLICT.at("sizes", "set either `bytes` or `sizes`, not both"));
            }
            (_, Some(sizes)) => sizes.cdf().map_err(|error| error.within("sizes"))?,
            (bytes, None) => fixed(bytes.unwrap_or(Bytes(1_000_000)))?,
        };
        match (&self.clamp, &self.sizes) {
            (Some(_), None) => Err(code::NEEDS.at("clamp", "`clamp` limits `sizes`, which is not set")),
            (Some(clamp), _) => clamp.of(&cdf).map_err(|error| error.within("clamp")),
            (None, _) => Ok(cdf),
        }
    }
}

impl Generate for RandomPartner {
    fn generate(&self, draft: &mut Draft<'_>) -> Result<usize, Finding> {
        let cdf = self.cdf()?;
        if self.iterations == 0 {
            return Err(code::RANGE.at("iterations", "expected at least 1 message, found 0"));
        }
        let peer_set = PeerSet::new(draft, self.hosts.hosts(draft, 0)?, self.peers)?;
        let hosts = peer_set.hosts().len() as u64;
        let messages = hosts * u64::from(self.iterations);
        draft.reserve(messages, messages.min(hosts * (hosts - 1)), "iterations")?;
        for (position, &from) in peer_set.hosts().iter().enumerate() {
            let mut before = None;
            for i in 0..u64::from(self.iterations) {
                let draw = |what| draft.key.draw2(from.0.into(), 2 * i + what);
                let (to, bytes): (HostId, u64) = (peer_set.peer(position, draw(0)), cdf.size(draw(1)));
                let message = draft.send(0, from, to, bytes);
                if let Some(before) = before {
                    draft.after(before, StartOn::Acked, message);
                }
                before = Some(message);
            }
        }
        Ok(1)
    }

    fn read_files(&mut self, folder: &Path) -> Result<(), Finding> {
        match &mut self.sizes {
            Some(sizes) => sizes.read_file(folder).map_err(|error| error.within("sizes")),
            None => Ok(()),
        }
    }
}
