//! All-to-all: every rank of a group sends to every other rank.

use super::Generate;
use super::draft::{Draft, StartOn, some_bytes};
use super::groups::{Groups, Members};
use super::laid::part;
use finding::{Finding, code};
use model::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Every rank of a group sends a share of its buffer to every other rank.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct AllToAll {
    /// Buffer of each rank, of which each of the n ranks, the sender included, gets bytes / n. Default 300 MB (Themis
    /// paper, section 5) if `per-pair` is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Bytes>,
    /// Payload from each rank to each other rank, instead of `bytes`. Default: not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_pair: Option<Bytes>,
    /// Order of the messages of a rank. `"at-once"`: all of them start together. `"staggered"`: rank r sends to r + 1,
    /// and to r + k + 1 when its message to r + k is acknowledged. Default `"at-once"` (our choice: the Themis paper
    /// names no order).
    #[serde(default)]
    pub schedule: Schedule,
    /// Number of peers to which a rank sends at a time. Rank r starts with r + 1 to r + `window`; its message to
    /// r + k + `window` starts when its message to r + k is acknowledged. `window = 1` means `"staggered"`. Default: no
    /// limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<usize>,
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

/// Order of the messages of a rank.
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
    fn generate(&self, draft: &mut Draft<'_>) -> Result<usize, Finding> {
        let per_pair = self.per_pair.map(|bytes| some_bytes(bytes, "per-pair")).transpose()?;
        let total = match (self.bytes, per_pair) {
            (Some(_), Some(_)) => {
                return Err(
                    code::CONFLICT.at("per-pair", "set either `bytes` (per rank) or `per-pair`, not both")
                );
            }
            (bytes, _) => some_bytes(bytes.unwrap_or(Bytes(300_000_000)), "bytes")?,
        };
        let window = match (self.schedule, self.window) {
            (_, Some(0)) => {
                return Err(code::RANGE.at("window", "expected at least 1 message at a time, found 0"));
            }
            (Schedule::Staggered, Some(_)) => {
                return Err(code::NEEDS
                    .at("window", "`window` needs schedule = \"at-once\"; \"staggered\" means window = 1"));
            }
            (Schedule::Staggered, None) => 1,
            (Schedule::AtOnce, window) => window.unwrap_or(usize::MAX),
        };
        let members = Members { groups: &self.groups, size: self.group_size, limit: self.group_limit };
        let groups = members.resolve(draft)?;
        let pairs = groups.iter().map(|ranks| ranks.len() as u64 * (ranks.len() as u64 - 1)).sum();
        draft.reserve(pairs, pairs, members.key())?;
        for (g, ranks) in groups.iter().enumerate() {
            let n = ranks.len();
            for r in 0..n {
                for k in 1..n {
                    let peer = (r + k) % n;
                    let bytes = per_pair.unwrap_or_else(|| part(total, n, peer));
                    let message = draft.send(g, ranks[r], ranks[peer], bytes);
                    if k > window {
                        // The messages of a rank have consecutive numbers.
                        draft.after(message - window as u32, StartOn::Acked, message);
                    }
                }
            }
        }
        Ok(groups.len())
    }
}
