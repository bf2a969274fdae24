//! All-reduce.

use super::Generate;
use super::draft::{Draft, On, part, some_bytes};
use super::groups::{Groups, Members};
use crate::error::Fault;
use model::{Bytes, HostId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// All ranks of a group reduce a buffer of `bytes` and end with the whole result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct AllReduce {
    /// How: `"ring"` takes 2 (n - 1) steps of bytes / n to the next rank; step k leaves a rank when step k - 1
    /// has arrived there. Default `"ring"` (our choice: the Themis paper does not say, and collective
    /// libraries use it for large buffers).
    #[serde(default)]
    pub algorithm: Algorithm,
    /// Buffer of each rank. Default 300 MB (Themis paper, section 5).
    #[serde(default = "bytes")]
    pub bytes: Bytes,
    /// Parts into which the buffer is split; a rank begins with the next part when it has finished the one before.
    /// Default 1 (our choice).
    #[serde(default = "whole")]
    pub splits: usize,
    /// Who takes part together: `"one-host-per-leaf"` (group g is the g-th host of every leaf), `"contiguous"` or
    /// `"drawn"` (in a random order; both with `group-size`), `"all"`, or a list of lists of host names. Default `"one-host-per-leaf"` (Themis
    /// paper, section 5).
    #[serde(default)]
    pub groups: Groups,
    /// Hosts in each contiguous or drawn group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_size: Option<usize>,
    /// Only the first groups. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_limit: Option<usize>,
}

/// An algorithm.
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
    fn generate(&self, draft: &mut Draft<'_>) -> Result<usize, Fault> {
        let bytes = some_bytes(self.bytes, "bytes")?;
        let members = Members { groups: &self.groups, size: self.group_size, limit: self.group_limit };
        let groups = members.resolve(draft)?;
        let ranks = groups.iter().map(|ranks| ranks.len() as u64);
        if self.splits == 0 || self.splits > 1024 {
            return Err(Fault::new("splits", format!("{} parts; 1 to 1024 are possible", self.splits)));
        }
        let messages = ranks.clone().map(|n| n * 2 * (n - 1)).sum::<u64>() * self.splits as u64;
        draft.room_for(messages, ranks.sum(), members.key())?;
        for (g, ranks) in groups.iter().enumerate() {
            match self.algorithm {
                Algorithm::Ring => ring(draft, g, ranks, bytes, self.splits),
            }
        }
        Ok(groups.len())
    }
}

/// In step k rank r sends chunk r - k (mod n): first partial sums, from step n - 1 on whole ones.
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
            draft.after(before[r], On::Received, now[(r + 1) % n]);
        }
        before = now;
    }
}
