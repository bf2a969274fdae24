//! Hosts by lot.

use super::draft::Draft;
use crate::error::Fault;
use model::HostId;
use model::draw::below;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A part of a random order of all hosts. The seed draws the order, and it is the same for all jobs: parts that do not
/// overlap have no host in common.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct HostSample {
    /// How many hosts of the order to leave out. Default 0.
    pub skip: usize,
    /// How many to take. Default: all that are left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub take: Option<usize>,
}

impl HostSample {
    /// The hosts of this part, of which at least `least` are needed.
    pub(crate) fn hosts(&self, draft: &Draft<'_>, least: usize) -> Result<Vec<HostId>, Fault> {
        let all = order(draft);
        let left = all.len().saturating_sub(self.skip);
        let take = self.take.unwrap_or(left);
        if take > left {
            let text = format!("{take} hosts after the first {}; the fabric has {}", self.skip, all.len());
            return Err(Fault::new("hosts", text));
        }
        if take < least {
            return Err(Fault::new("hosts", format!("{take} hosts; at least {least} are needed here")));
        }
        Ok(all[self.skip..self.skip + take].to_vec())
    }
}

/// All hosts in the random order (Fisher and Yates).
pub(crate) fn order(draft: &Draft<'_>) -> Vec<HostId> {
    let mut hosts: Vec<HostId> = (0..draft.fabric.hosts()).map(|h| HostId(h as u16)).collect();
    for i in (1..hosts.len()).rev() {
        hosts.swap(i, below(draft.common.draw(i as u64), i + 1));
    }
    hosts
}
