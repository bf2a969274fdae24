//! Minimal routing: the hash of a flow selects one of the minimal paths.
//!
//! On a Dragonfly, a minimal path crosses one link between groups (Kim et al., ISCA 2008, section 4.1); the setting
//! `minimal` of the topology says which paths count as minimal. On any other fabric this is ECMP.

use crate::ecmp::Ecmp;
use crate::{Facts, Golden, Recipe, palette::Look};
use model::{Cx, Interest, Packet, PortIndex, Scheme, Site, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[scheme.minimal]`: nothing to set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SchemeMinimal")]
pub struct Config {}

/// The scheme; it has no state.
#[derive(Clone, Debug, Default)]
pub struct Minimal(Ecmp);

impl Recipe for Config {
    type Scheme = Minimal;
    const LOOK: Option<Look> = Some(Look::new(6, 0));
    const GOLDEN: Golden = Golden::Dragonfly(&[("", "")]);

    fn facts(&self) -> Facts {
        Facts::plain(false)
    }

    fn build(&self, _site: Site<'_>) -> Minimal {
        Minimal::default()
    }
}

impl Scheme for Minimal {
    #[inline]
    fn interest(&self) -> Interest {
        self.0.interest()
    }

    #[inline]
    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &mut Packet, ports: &[PortIndex]) -> Verdict {
        self.0.on_packet(cx, pkt, ports)
    }
}

#[cfg(test)]
mod tests {
    use crate::SchemeConfig;
    use crate::bench::{Bench, dragonfly, leaf_spine};
    use model::{Psn, QpId};

    #[test]
    fn a_flow_keeps_its_path_and_takes_no_detour() {
        for (plan, switch) in [(dragonfly(4, 3, 2), "g0r1"), (leaf_spine(3, 4, 2), "leaf0")] {
            let [mut minimal, mut ecmp] = ["minimal", "ecmp"]
                .map(|name| Bench::new(&plan, switch, &SchemeConfig::named(name).unwrap()));
            for qp in (0..plan.qps.len() as u32).map(QpId) {
                for psn in 0..3 {
                    let seen = minimal.see(minimal.data(qp, Psn::new(psn)));
                    assert_eq!(seen.via, None);
                    assert_eq!(seen.verdict, ecmp.see(ecmp.data(qp, Psn::new(psn))).verdict);
                }
            }
        }
    }
}
