//! Valiant's routing: every packet goes over a random group first, whatever the queues.
//!
//! Valiant, "A Scheme for Fast Parallel Communication", SIAM J. Computing 11(2), 1982; on Dragonfly Kim et al., ISCA 2008,
//! section 4.1. Data to another group goes over a third group and then takes minimal paths. Data inside a group goes over
//! a third router (SST's merlin). Where there is no third group or router, data takes minimal paths.

use crate::{Facts, Golden, Recipe, needs_groups, palette::Look};
use finding::Finding;
use model::{Cx, Interest, Packet, Plan, PortIndex, Scheme, Site, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[scheme.valiant]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "SchemeValiant")]
pub struct Config {
    /// Unit that draws a group: every `"packet"`, or every `"flow"`, which keeps the flow in order. Default `"packet"`
    /// (SST's merlin).
    pub per: Per,
}

/// Unit that draws a group for its detour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Per {
    /// Every packet.
    #[default]
    Packet,
    /// Every flow.
    Flow,
}

/// The scheme of one switch.
#[derive(Clone, Copy, Debug)]
pub struct Valiant {
    per: Per,
}

impl Recipe for Config {
    type Scheme = Valiant;
    const LOOK: Option<Look> = Some(Look::new(1, 1));
    const TRIALS: &'static [&'static str] = &["", "per = \"flow\""];
    const GOLDEN: Golden = Golden::Dragonfly(&[("valiant per flow", "per = \"flow\""), ("", "")]);

    fn facts(&self) -> Facts {
        Facts::plain(self.per == Per::Packet)
    }

    fn build(&self, _site: Site<'_>) -> Valiant {
        Valiant { per: self.per }
    }

    fn validate(&self, plan: &Plan) -> Result<Vec<Finding>, Finding> {
        needs_groups(plan)
    }
}

/// Separates the hash that selects a flow's detour from the hash that selects its port.
const GROUP: u64 = 1;

impl Scheme for Valiant {
    #[inline]
    fn interest(&self) -> Interest {
        Interest { detours: true, plain_replies: true, ..Interest::default() }
    }

    #[inline]
    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &mut Packet, ports: &[PortIndex]) -> Verdict {
        let n = cx.detours.len();
        if n == 0 || !pkt.is_data() {
            return Verdict::Forward(cx.base_path(pkt, ports));
        }
        let lot = match self.per {
            Per::Packet => cx.pick(n),
            Per::Flow => cx.hash_for(pkt, GROUP, n),
        };
        match cx.detours.get(lot) {
            None => Verdict::Forward(cx.base_path(pkt, ports)),
            Some((detour, around)) => {
                cx.via = Some(detour);
                Verdict::Forward(match self.per {
                    Per::Packet => around[cx.pick(around.len())],
                    Per::Flow => cx.base_path(pkt, around),
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::SchemeConfig;
    use crate::bench::{Bench, dragonfly, leaf_spine, qp};
    use model::{Detour, Psn};
    use std::collections::BTreeMap;

    fn vias(per: &str, to: u32) -> BTreeMap<String, usize> {
        let plan = dragonfly(5, 4, 2);
        let config: SchemeConfig = toml::from_str(&format!("[valiant]\nper = \"{per}\"")).unwrap();
        let mut bench = Bench::new(&plan, "g0r0", &config);
        let mut seen = BTreeMap::new();
        for psn in 0..3_000 {
            let via = bench.see(bench.data(qp(&plan, 0, to), Psn::new(psn))).via;
            *seen.entry(format!("{via:?}")).or_insert(0) += 1;
        }
        seen
    }

    #[test]
    fn packets_draw_intermediate_groups_and_inside_a_group_intermediate_routers() {
        let over = |groups: &[u16]| {
            groups.iter().map(|&g| format!("{:?}", Some(Detour::Group(g)))).collect::<Vec<_>>()
        };
        let seen = vias("packet", 2 * 4); // a host in group 2
        assert_eq!(seen.keys().cloned().collect::<Vec<_>>(), over(&[1, 3, 4]));
        assert!(seen.values().all(|&n| (900..1100).contains(&n)), "{seen:?}");
        let seen = vias("packet", 3); // a host at the fourth router of the same group
        let members = [1, 2].map(|m| format!("{:?}", Some(Detour::Member(m))));
        assert_eq!(seen.keys().cloned().collect::<Vec<_>>(), members);
    }

    #[test]
    fn a_flow_keeps_its_drawn_group() {
        assert_eq!(vias("flow", 2 * 4).len(), 1);
    }

    #[test]
    fn without_groups_it_is_refused() {
        let config = SchemeConfig::named("valiant").unwrap();
        let error = config.validate(&leaf_spine(2, 2, 1)).unwrap_err();
        assert!(error.text.contains("Dragonfly"), "{error}");
        assert_eq!(config.validate(&dragonfly(3, 2, 1)), Ok(vec![]));
    }
}
