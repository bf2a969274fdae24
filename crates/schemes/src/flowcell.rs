//! Flowcells: a flow takes the next path after every 64 KB, round robin, whatever the load of the paths.
//!
//! Presto (He et al., "Presto: Edge-based Load Balancing for Fast Datacenter Networks", SIGCOMM'15) balances at the soft
//! edge, so that neither the transport nor switches change. The sender deals out units of nearly equal size, as large as
//! its segmentation offload makes them and still small enough to balance. So the scheme sits in the sender here. Each
//! source port leads over a path of its own, as the labels of Presto's controller do.
//!
//! Our choices: a flowcell is counted in full packets, including retransmissions, and a flow begins on its hashed path.
//! Presto's receiver hides the reordering between flowcells in its offload engine. An RDMA NIC has no such engine, so its
//! recovery mode has to cope with the reordering.

use crate::entropies::{self, Entropies, Mapping};
use crate::{Facts, Recipe, Steers, palette::Look};
use finding::{Finding, code};
use model::steering::Sent;
use model::{Bytes, Plan, QpSite, Site, Stamp, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[scheme.flowcell]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "SchemeFlowcell")]
pub struct Config {
    /// Most payload of a flowcell, rounded down to whole packets, at least one. Default 64 KiB (Presto: the largest
    /// segment of TCP's offload).
    pub bytes: Bytes,
    /// Number of paths to cycle through. Default: the equal-cost paths between the two hosts (Presto: all of its
    /// spanning trees).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paths: Option<u16>,
}

impl Default for Config {
    fn default() -> Self {
        Config { bytes: Bytes(64 << 10), paths: None }
    }
}

/// Sending part of the scheme, in the NIC.
#[derive(Clone, Debug)]
pub struct Flowcell {
    /// Packets in a flowcell.
    size: u64,
    paths: u16,
    path: u16,
    /// Packets that the current flowcell can still take.
    left: u64,
    flowcells: u64,
}

impl Recipe for Config {
    type Scheme = Entropies;
    const LOOK: Option<Look> = Some(Look::new(7, 0));
    const TRIALS: &'static [&'static str] = &["bytes = \"4kB\""];

    fn facts(&self) -> Facts {
        Facts::plain(false)
    }

    fn build(&self, site: Site<'_>) -> Entropies {
        Entropies::new(Mapping::Map, site)
    }

    fn validate(&self, _plan: &Plan) -> Result<Vec<Finding>, Finding> {
        if self.bytes.get() == 0 {
            let text = "a flowcell of 0 bytes; it must be larger; `rps-nic` draws a path for every packet";
            return Err(code::RANGE.at("bytes", text));
        }
        match self.paths {
            Some(0) => Err(code::RANGE.at("paths", "at least one path is needed")),
            _ => Ok(Vec::new()),
        }
    }
}

impl Steers for Config {
    type Steering = Flowcell;

    fn steer(&self, site: QpSite<'_>) -> Flowcell {
        let size = (self.bytes.get() / u64::from(site.plan.wire.payload.max(1))).max(1);
        let paths = self.paths.unwrap_or_else(|| entropies::paths(site)).max(1);
        Flowcell { size, paths, path: 0, left: size, flowcells: 0 }
    }
}

impl model::Steering for Flowcell {
    type Annex = Stamp;

    #[inline]
    fn on_send(&mut self, now: Time, _: Sent) -> Stamp {
        if self.left == 0 {
            self.left = self.size;
            self.path = (self.path + 1) % self.paths;
        }
        self.flowcells += u64::from(self.left == self.size);
        self.left -= 1;
        Stamp::new(self.path, now)
    }

    fn counters(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("flowcells", self.flowcells);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::{leaf_spine, pods, qp};
    use model::Steering as _;

    /// Paths of some packets between the first host and the last.
    fn paths_of(plan: &Plan, config: Config, packets: usize) -> Vec<u16> {
        let last = plan.fabric.hosts() as u32 - 1;
        let mut cells = config.steer(QpSite { plan, qp: qp(plan, 0, last) });
        (0..packets)
            .map(|_| cells.on_send(Time::ZERO, Sent { seq: 0, again: false, left: 0, frame: 1500 }).entropy())
            .collect()
    }

    #[test]
    fn every_64_kilobytes_take_the_next_path() {
        // 64 KiB hold 45 whole packets of 1438 bytes of payload.
        let paths = paths_of(&leaf_spine(2, 3, 1), Config::default(), 200);
        let cells: Vec<(u16, usize)> =
            paths.chunk_by(|a, b| a == b).map(|cell| (cell[0], cell.len())).collect();
        assert_eq!(cells, [(0, 45), (1, 45), (2, 45), (0, 45), (1, 20)]);
    }

    #[test]
    fn a_flowcell_holds_at_least_one_packet() {
        let config = Config { bytes: Bytes(1), paths: Some(2) };
        assert_eq!(paths_of(&leaf_spine(2, 3, 1), config, 5), [0, 1, 0, 1, 0]);
    }

    #[test]
    fn on_three_tiers_paths_are_products_of_choices() {
        let paths = paths_of(&pods(2, 2, &[3, 3]), Config { bytes: Bytes(1), ..Config::default() }, 9);
        assert_eq!(paths, [0, 1, 2, 3, 4, 5, 0, 1, 2]);
    }

    #[test]
    fn impossible_settings_are_refused() {
        let field = |config: Config| config.validate(&leaf_spine(2, 2, 1)).unwrap_err().path();
        assert_eq!(field(Config { bytes: Bytes(0), paths: None }), "bytes");
        assert_eq!(field(Config { paths: Some(0), ..Config::default() }), "paths");
    }
}
