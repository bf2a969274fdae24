//! Random packet spraying: every data packet draws its path.
//!
//! The choice is uniform over the equal-cost ports, at every switch that has more than one (Dixit et al., "On the impact
//! of packet spraying in data center networks", INFOCOM'13). Load is even; order is lost.

use crate::{Facts, Recipe, palette::Look};
use model::scheme::Arrived;
use model::{Cx, Interest, Packet, PortIndex, Scheme, Site, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[scheme.rps]`: nothing to set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SchemeRps")]
pub struct Config {}

/// The scheme; it has no state.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rps;

impl Recipe for Config {
    type Scheme = Rps;
    const LOOK: Option<Look> = Some(Look::new(1, 2));

    fn facts(&self) -> Facts {
        Facts::plain(true)
    }

    fn build(&self, _site: Site<'_>) -> Rps {
        Rps
    }
}

impl Scheme for Rps {
    #[inline]
    fn interest(&self) -> Interest {
        Interest { local: true, ..Interest::default() }
    }

    #[inline]
    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &mut Packet, ports: &[PortIndex]) -> Verdict {
        Verdict::Forward(self.choose(cx.arrived(pkt), pkt, ports))
    }

    #[inline]
    fn choose(&self, arrived: Arrived, pkt: &Packet, ports: &[PortIndex]) -> PortIndex {
        match pkt.is_data() && ports.len() > 1 {
            true => ports[arrived.pick(ports.len())],
            false => arrived.base_path(ports),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::SchemeConfig;
    use crate::bench::{Bench, leaf_spine, qp};
    use model::{Psn, Verdict};

    #[test]
    fn one_flow_loads_all_paths_equally() {
        let plan = leaf_spine(2, 4, 1);
        let mut bench = Bench::new(&plan, "leaf0", &SchemeConfig::named("rps").unwrap());
        let mut loads = [0; 5];
        for psn in 0..8_000 {
            let pkt = bench.data(qp(&plan, 0, 1), Psn::new(psn));
            let Verdict::Forward(port) = bench.see(pkt).verdict else { panic!() };
            loads[port.index()] += 1;
        }
        assert_eq!(loads[0], 0);
        assert!(loads[1..].iter().all(|n| (1_880..2_120).contains(n)), "{loads:?}");
    }
}
