//! Rings in which every rank sends one message to the next rank (Fig. 1 of the Themis paper).

use super::Generate;
use super::draft::{Draft, some_bytes};
use super::groups::{Groups, Members};
use finding::Finding;
use model::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rank i of every group sends `bytes` to rank i + 1, and the last rank to the first; all start at the same time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct NeighbourRing {
    /// Payload of each message. Default 100 MB (Themis paper, Fig. 1).
    #[serde(default = "bytes")]
    pub bytes: Bytes,
    /// Hosts that form a ring: `"one-host-per-leaf"` (group g has the g-th host of every leaf), `"contiguous"` or
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

fn bytes() -> Bytes {
    Bytes(100_000_000)
}

impl Generate for NeighbourRing {
    fn generate(&self, draft: &mut Draft<'_>) -> Result<usize, Finding> {
        let bytes = some_bytes(self.bytes, "bytes")?;
        let members = Members { groups: &self.groups, size: self.group_size, limit: self.group_limit };
        let groups = members.resolve(draft)?;
        let ranks = groups.iter().map(|ranks| ranks.len() as u64).sum();
        draft.reserve(ranks, ranks, members.key())?;
        for (g, ranks) in groups.iter().enumerate() {
            for (i, &rank) in ranks.iter().enumerate() {
                draft.send(g, rank, ranks[(i + 1) % ranks.len()], bytes);
            }
        }
        Ok(groups.len())
    }
}
