//! `switch.dscp-map`: the queue of a packet by the DSCP that its NIC gives it.

use finding::{Finding, code};
use model::plan::Service;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Queues by DSCP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected \"sonic\", or a list of queues such as `{ dscp = [26], lossless = true }`"
)]
pub enum DscpMap {
    /// A map with a name.
    Named(Named),
    /// The queues.
    Queues(Vec<DscpQueue>),
}

/// A map with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Named {
    /// The map that SONiC delivers: DSCP 3 and 4 are lossless, 5, 8, 46 and 48 have lossy queues of their own, and all others share
    /// one. Weights are 15 for lossless queues and 14 for all others.
    Sonic,
}

/// A queue of a port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct DscpQueue {
    /// DSCPs of its packets. Default: all that no other queue has; exactly one queue takes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dscp: Vec<u8>,
    /// Whether `pfc` of the switches protects its data, and `ecn` marks it. Data of all other queues is dropped beyond `drop-alpha`, and
    /// never marked. Default false (our choice).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lossless: bool,
    /// Weight among the queues with a weight, by deficit round robin. Default: none, and the queue leaves before all below it and before
    /// all with a weight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
}

/// Largest DSCP: it has six bits.
pub(crate) const MOST: u8 = 63;

/// Weights of lossy and of lossless queues. Vendor: scheduler.0 and scheduler.1 of sonic-net/sonic-buildimage,
/// files/build_templates/qos_config.j2.
const SONIC_WEIGHTS: [u32; 2] = [14, 15];

/// DSCPs with queues of their own, in the order of SONiC's traffic classes 0 to 6, and the two that are lossless. Vendor: the same file.
const SONIC_QUEUES: [Option<u8>; 7] = [Some(8), None, Some(5), Some(3), Some(4), Some(46), Some(48)];
const SONIC_LOSSLESS: [u8; 2] = [3, 4];

impl DscpMap {
    /// The queues of the map.
    pub fn queues(&self) -> Cow<'_, [DscpQueue]> {
        match self {
            DscpMap::Queues(queues) => Cow::Borrowed(queues),
            DscpMap::Named(Named::Sonic) => SONIC_QUEUES
                .iter()
                .map(|dscp| {
                    let lossless = dscp.is_some_and(|dscp| SONIC_LOSSLESS.contains(&dscp));
                    let weight = Some(SONIC_WEIGHTS[usize::from(lossless)]);
                    DscpQueue { dscp: dscp.iter().copied().collect(), lossless, weight }
                })
                .collect(),
        }
    }

    /// The map as people write it.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            DscpMap::Named(Named::Sonic) => "`switch.dscp-map = \"sonic\"`",
            DscpMap::Queues(_) => "`switch.dscp-map`",
        }
    }

    pub(crate) fn check(&self) -> Result<(), Finding> {
        let DscpMap::Queues(queues) = self else { return Ok(()) };
        let mut taken = BTreeSet::new();
        for (i, queue) in queues.iter().enumerate() {
            let wrong =
                |key: &str, text: String| Err(code::RANGE.at(&format!("switch.dscp-map.{i}.{key}"), text));
            for (n, dscp) in queue.dscp.iter().enumerate() {
                if *dscp > MOST {
                    return wrong(
                        &format!("dscp.{n}"),
                        format!("expected a DSCP from 0 to {MOST}, found {dscp}"),
                    );
                }
                if !taken.insert(*dscp) {
                    return wrong(&format!("dscp.{n}"), format!("a queue has DSCP {dscp} already"));
                }
            }
            if queue.weight.is_some_and(|weight| !(1..=Service::MOST_WEIGHT).contains(&weight)) {
                return wrong("weight", format!("expected a weight from 1 to {}", Service::MOST_WEIGHT));
            }
        }
        match queues.iter().filter(|queue| queue.dscp.is_empty()).count() {
            1 => Ok(()),
            found => Err(code::MISSING.at(
                "switch.dscp-map",
                format!("expected exactly one queue without `dscp`, for all other DSCPs, found {found}"),
            )),
        }
    }

    /// Number of the queue of packets with this DSCP.
    pub fn queue(queues: &[DscpQueue], dscp: u8) -> usize {
        let listed = queues.iter().position(|queue| queue.dscp.contains(&dscp));
        listed.or_else(|| queues.iter().position(|queue| queue.dscp.is_empty())).unwrap_or_default()
    }
}
