//! Random samples of hosts.

use super::draft::Draft;
use finding::{Finding, code};
use model::HostId;
use model::draw::below;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A part of a random order of all hosts. The seed draws the order, which all jobs share: parts that do not overlap have
/// no host in common.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct HostSample {
    /// Number of hosts to skip at the beginning of the order. Default 0 (our choice).
    pub skip: usize,
    /// Number of hosts to take after the skipped ones. Default: all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub take: Option<usize>,
}

impl HostSample {
    /// The hosts of this part; refuses fewer than `least`.
    pub(crate) fn hosts(&self, draft: &Draft<'_>, least: usize) -> Result<Vec<HostId>, Finding> {
        let all = order(draft);
        let Some(left) = all.len().checked_sub(self.skip) else {
            let text = format!(
                "expected to skip at most {} hosts, the whole fabric; found {}",
                all.len(),
                self.skip
            );
            return Err(code::FIT.at("hosts.skip", text));
        };
        let take = self.take.unwrap_or(left);
        if take > left {
            let (skip, all) = (self.skip, all.len());
            let text = format!("expected at most {left} hosts after the first {skip} of {all}, found {take}");
            return Err(code::FIT.at("hosts", text));
        }
        if take < least {
            return Err(code::RANGE.at("hosts", format!("expected at least {least} hosts, found {take}")));
        }
        Ok(all[self.skip..self.skip + take].to_vec())
    }
}

/// All hosts in the random order (Fisher and Yates).
pub(crate) fn order(draft: &Draft<'_>) -> Vec<HostId> {
    let mut hosts: Vec<HostId> = (0..draft.fabric.hosts()).map(|h| HostId(h as u32)).collect();
    for i in (1..hosts.len()).rev() {
        hosts.swap(i, below(draft.common.draw(i as u64), i + 1));
    }
    hosts
}
