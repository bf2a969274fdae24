//! All-reduce: the ranks of a group reduce their buffers.

use super::Generate;
use super::draft::{Draft, StartOn, some_bytes};
use super::groups::{Groups, Members};
use super::laid::part;
use finding::{Finding, code};
use model::{Bytes, HostId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// All ranks of a group reduce a buffer of `bytes` and end with the whole result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct AllReduce {
    /// Algorithm. `"ring"`: every rank sends bytes / n to the next rank in each of 2 (n - 1) steps; a rank starts step k
    /// when step k - 1 has arrived. Default `"ring"` (our choice: collective libraries use it for large buffers; the
    /// Themis paper names no algorithm).
    #[serde(default)]
    pub algorithm: Algorithm,
    /// Buffer of each rank. Default 300 MB (Themis paper, section 5).
    #[serde(default = "bytes")]
    pub bytes: Bytes,
    /// Number of parts of the buffer. A rank starts the next part when it has finished the one before. Default 1 (our
    /// choice).
    #[serde(default = "whole")]
    pub splits: usize,
    /// Hosts that form a group: `"one-host-per-leaf"` (group g has the g-th host of every leaf), `"contiguous"` or
    /// `"drawn"` (in a random order; both need `group-size`), `"all"`, or a list of lists of host names. Default
    /// `"one-host-per-leaf"` (Themis paper, section 5).
    #[serde(default)]
    pub groups: Groups,
    /// Number of hosts in each contiguous or drawn group. No default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_size: Option<usize>,
    /// Number of groups that take part, from the first one on. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_limit: Option<usize>,
}

/// Algorithm of an all-reduce.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// Reduce-scatter and all-gather around a ring.
    #[default]
    Ring,
}

fn whole() -> usize {
    1
}

fn bytes() -> Bytes {
    Bytes(300_000_000)
}

impl Generate for AllReduce {
    fn generate(&self, draft: &mut Draft<'_>) -> Result<usize, Finding> {
        let bytes = some_bytes(self.bytes, "bytes")?;
        let members = Members { groups: &self.groups, size: self.group_size, limit: self.group_limit };
        let groups = members.resolve(draft)?;
        let ranks = groups.iter().map(|ranks| ranks.len() as u64);
        if self.splits == 0 || self.splits > 1024 {
            return Err(code::RANGE.at("splits", format!("expected 1 to 1024 parts, found {}", self.splits)));
        }
        let messages = ranks.clone().map(|n| n * 2 * (n - 1)).sum::<u64>() * self.splits as u64;
        draft.reserve(messages, ranks.sum(), members.key())?;
        for (g, ranks) in groups.iter().enumerate() {
            match self.algorithm {
                Algorithm::Ring => ring(draft, g, ranks, bytes, self.splits),
            }
        }
        Ok(groups.len())
    }
}

/// In step k rank r sends chunk r - k (mod n): partial sums before step n - 1, complete sums from then on.
fn ring(draft: &mut Draft<'_>, group: usize, ranks: &[HostId], bytes: u64, splits: usize) {
    let n = ranks.len();
    let mut before: Vec<u32> = Vec::new();
    let steps = 2 * (n - 1);
    for (split, step) in (0..splits).flat_map(|split| (0..steps).map(move |step| (split, step))) {
        let bytes = part(bytes, splits, split);
        let now: Vec<u32> = (0..n)
            .map(|r| {
                let chunk = (r + 2 * n - step) % n;
                draft.send(group, ranks[r], ranks[(r + 1) % n], part(bytes, n, chunk))
            })
            .collect();
        for r in 0..before.len() {
            draft.after(before[r], StartOn::Received, now[(r + 1) % n]);
        }
        before = now;
    }
}
