//! All-to-all.

use super::Generate;
use super::draft::{Draft, On, part, some_bytes};
use super::groups::{Groups, Members};
use crate::error::Fault;
use model::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Every rank of a group sends a part of its buffer to every other rank.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct AllToAll {
    /// Buffer of each rank: every one of the n ranks, itself included, gets bytes / n. Default 300 MB (Themis
    /// paper, section 5) if `per-pair` is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Bytes>,
    /// Payload from each rank to each other one, in place of `bytes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_pair: Option<Bytes>,
    /// `"at-once"`: every rank starts all its messages together; `"staggered"`: rank r sends to r + 1, and to
    /// r + k + 1 when its message to r + k is acknowledged. Default `"at-once"` (our choice: the Themis paper
    /// does not say).
    #[serde(default)]
    pub schedule: Schedule,
    /// To how many peers a rank sends at a time: rank r starts with r + 1 to r + `window`, and its message to
    /// r + k + `window` starts when that to r + k is acknowledged. 1 is `"staggered"`. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<usize>,
    /// Who takes part together: `"one-host-per-leaf"` (group g is the g-th host of every leaf), `"contiguous"`
    /// (with `group-size`), `"all"`, or a list of lists of host names. Default `"one-host-per-leaf"` (Themis
    /// paper, section 5).
    #[serde(default)]
    pub groups: Groups,
    /// Hosts in each contiguous group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_size: Option<usize>,
    /// Only the first groups. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_limit: Option<usize>,
}

/// In what order a rank sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// To all peers at the same time.
    #[default]
    AtOnce,
    /// To one peer after the other.
    Staggered,
}

impl Generate for AllToAll {
    fn generate(&self, draft: &mut Draft<'_>) -> Result<usize, Fault> {
        let per_pair = self.per_pair.map(|bytes| some_bytes(bytes, "per-pair")).transpose()?;
        let total = match (self.bytes, per_pair) {
            (Some(_), Some(_)) => {
                return Err(Fault::new("per-pair", "either `bytes` (per rank) or `per-pair`, not both"));
            }
            (bytes, _) => some_bytes(bytes.unwrap_or(Bytes(300_000_000)), "bytes")?,
        };
        let window = match (self.schedule, self.window) {
            (_, Some(0)) => return Err(Fault::new("window", "at least 1 message at a time is needed")),
            (Schedule::Staggered, Some(_)) => {
                return Err(Fault::new(
                    "window",
                    "`window` is for schedule = \"at-once\"; \"staggered\" is window = 1",
                ));
            }
            (Schedule::Staggered, None) => 1,
            (Schedule::AtOnce, window) => window.unwrap_or(usize::MAX),
        };
        let members = Members { groups: &self.groups, size: self.group_size, limit: self.group_limit };
        let groups = members.resolve(draft)?;
        let pairs = groups.iter().map(|ranks| ranks.len() as u64 * (ranks.len() as u64 - 1)).sum();
        draft.room_for(pairs, pairs, members.key())?;
        for (g, ranks) in groups.iter().enumerate() {
            let n = ranks.len();
            for r in 0..n {
                for k in 1..n {
                    let peer = (r + k) % n;
                    let bytes = per_pair.unwrap_or_else(|| part(total, n, peer));
                    let message = draft.send(g, ranks[r], ranks[peer], bytes);
                    if k > window {
                        // A rank's messages are numbered in a row.
                        draft.after(message - window as u32, On::Acked, message);
                    }
                }
            }
        }
        Ok(groups.len())
    }
}
