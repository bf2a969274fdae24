//! Equal-cost multi-path: every packet takes its flow's base path.
//!
//! The base path is a hash of the 5-tuple with the switch's own salt, reduced to the equal-cost ports (RFC 2992, Hopps,
//! compares such methods). A flow keeps its path and its order; two large flows on one path share it until they end.

use crate::{Facts, Feedback, Recipe};
use model::{Cx, Interest, Packet, PortIndex, Scheme, Site, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[scheme.ecmp]`: nothing to set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SchemeEcmp")]
pub struct Config {}

/// The scheme; it has no state.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ecmp;

impl Recipe for Config {
    type Scheme = Ecmp;

    fn facts(&self) -> Facts {
        Facts { sprays: false, feedback: Feedback::Passed, tags: false, signal: 0, view: None, nic: None }
    }

    fn build(&self, _site: Site<'_>) -> Ecmp {
        Ecmp
    }
}

impl Scheme for Ecmp {
    #[inline]
    fn interest(&self) -> Interest {
        Interest { local: true, ..Interest::default() }
    }

    #[inline]
    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &mut Packet, ports: &[PortIndex]) -> Verdict {
        Verdict::Forward(cx.base_path(pkt, ports))
    }
}

#[cfg(test)]
mod tests {
    use crate::SchemeConfig;
    use crate::bench::{Bench, leaf_spine};
    use model::{Psn, QpId};
    use std::collections::BTreeSet;

    #[test]
    fn a_flow_keeps_its_path_and_many_flows_use_every_path() {
        let plan = leaf_spine(2, 4, 8);
        let mut bench = Bench::new(&plan, "leaf0", &SchemeConfig::default());
        let mut used = BTreeSet::new();
        for (i, qp) in (0..).map(QpId).zip(&plan.qps) {
            if qp.from.0 >= 8 || qp.to.0 < 8 {
                continue;
            }
            let mut ports = BTreeSet::new();
            for psn in 0..20 {
                let pkt = bench.data(i, Psn::new(psn));
                ports.insert(format!("{:?}", bench.see(pkt).verdict));
            }
            assert_eq!(ports.len(), 1, "qp {i} moved");
            used.append(&mut ports);
        }
        assert_eq!(used.len(), 4);
    }
}
