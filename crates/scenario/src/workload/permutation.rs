//! Permutations: every host sends one message and receives one.

use super::Generate;
use super::draft::{Draft, some_bytes};
use super::host_sample::HostSample;
use super::peers::Peers;
use finding::{Finding, code};
use model::draw::below;
use model::{Bytes, HostId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A permutation of all hosts: every host sends one message and receives one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Permutation {
    /// Payload of each message. Default 1 MB (our choice).
    #[serde(default = "bytes")]
    pub bytes: Bytes,
    /// Kind of permutation. `"random"`: the seed draws one in which no host sends to itself. `"cross-rack"`: the same,
    /// and no host sends inside its rack. `"cross-pod"`: the same, and no host sends inside its pod, or on a Dragonfly
    /// inside its group. `"shift"`: host h sends to host h + `shift`. Default `"random"` (our choice).
    #[serde(default)]
    pub kind: Kind,
    /// Distance of `"shift"`, in hosts. Default: half of the hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shift: Option<usize>,
    /// Hosts that take part, unless the kind is `"shift"`: a part of a random order that all jobs share. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<HostSample>,
}

/// Kind of permutation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Drawn by the seed.
    #[default]
    Random,
    /// Drawn by the seed; every host sends to another rack.
    CrossRack,
    /// Drawn by the seed; every host sends to another pod, so that all traffic crosses the aggregation switches.
    CrossPod,
    /// Host h to host h + shift.
    Shift,
}

fn bytes() -> Bytes {
    Bytes(1_000_000)
}

impl Generate for Permutation {
    fn generate(&self, draft: &mut Draft<'_>) -> Result<usize, Finding> {
        let bytes = some_bytes(self.bytes, "bytes")?;
        let hosts = draft.fabric.hosts();
        if hosts < 2 {
            return Err(code::FIT.at("", format!("a permutation needs at least 2 hosts, found {hosts}")));
        }
        if self.shift.is_some() && self.kind != Kind::Shift {
            return Err(code::NEEDS.at("shift", "`shift` needs kind = \"shift\""));
        }
        let mut from: Vec<HostId> = (0..hosts as u32).map(HostId).collect();
        if let Some(sample) = &self.hosts {
            if self.kind == Kind::Shift {
                return Err(code::NEEDS.at("hosts", "a shift is one of all hosts"));
            }
            from = sample.hosts(draft, 2)?;
        }
        let to = match self.kind {
            Kind::Shift => {
                let shift = self.shift.unwrap_or(hosts / 2);
                if shift.is_multiple_of(hosts) {
                    let text = format!(
                        "a shift of {shift} among {hosts} hosts would send every message to its sender"
                    );
                    return Err(code::TO_ITSELF.at("shift", text));
                }
                (0..hosts).map(|h| (h + shift % hosts) % hosts).collect()
            }
            Kind::Random => draw(draft, from.len(), |a, b| a != b),
            Kind::CrossRack => apart(draft, &from, Peers::CrossRack)?,
            Kind::CrossPod => apart(draft, &from, Peers::CrossPod)?,
        };
        draft.reserve(from.len() as u64, from.len() as u64, "")?;
        for (host, to) in from.iter().zip(to) {
            draft.send(0, *host, from[to], bytes);
        }
        Ok(1)
    }
}

/// A random permutation in which no host sends into its own part of the fabric.
fn apart(draft: &Draft<'_>, from: &[HostId], peers: Peers) -> Result<Vec<usize>, Finding> {
    let hosts = from.len();
    let all = peers.parts(draft.fabric, "kind")?;
    let parts: Vec<usize> = from.iter().map(|host| all[host.index()]).collect();
    let mut sizes = vec![0; draft.fabric.hosts()];
    parts.iter().for_each(|part| sizes[*part] += 1);
    let largest = sizes.iter().max().copied().unwrap_or(0);
    if 2 * largest > hosts {
        let what = peers.part(draft.fabric);
        let text =
            format!("one {what} has {largest} of the {hosts} hosts, which cannot all send to other {what}s");
        return Err(code::FIT.at("kind", text));
    }
    Ok(draw(draft, hosts, |a, b| parts[a] != parts[b]))
}

/// A random permutation of `n` numbers, repaired by swaps where it joins two hosts that `may` forbids. A swap exists as long as no part
/// of the fabric has more than half of the hosts.
fn draw(draft: &Draft<'_>, n: usize, may: impl Fn(usize, usize) -> bool) -> Vec<usize> {
    let mut to: Vec<usize> = (0..n).collect();
    for i in (1..n).rev() {
        to.swap(i, below(draft.key.draw(i as u64), i + 1));
    }
    for i in 0..n {
        if may(i, to[i]) {
            continue;
        }
        let first = below(draft.key.draw((n + i) as u64), n);
        let other = (0..n).map(|k| (first + k) % n).find(|&j| may(i, to[j]) && may(j, to[i]));
        if let Some(j) = other {
            to.swap(i, j);
        }
    }
    to
}
