//! A fabric on one page: tiers with their capacity, ports, thresholds in bytes, and a bill of materials.

use crate::check::Checked;
use model::plan::FlowControl;
use model::{Fabric, LinkId, NodeId, Rate};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Switches of one role.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tier {
    /// Role.
    pub role: String,
    /// Number of switches.
    pub switches: usize,
    /// Ports of a switch that are used, least and most.
    pub ports: (usize, usize),
    /// Ports that the switch's model has; null without a model.
    pub ports_of_model: Option<usize>,
    /// Capacity towards hosts, all switches together, Gb/s.
    pub down_gbps: f64,
    /// Capacity away from hosts, Gb/s; 0 at the top.
    pub up_gbps: f64,
    /// Capacity towards hosts over capacity away from them; null at the top.
    pub oversubscription: Option<f64>,
    /// Least and greatest of single switches; null at the top.
    pub range: Option<(f64, f64)>,
}

/// Thresholds of the ports of one role and rate, bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Thresholds {
    /// Role of the switch.
    pub role: String,
    /// Rate of the port, Mb/s.
    pub rate_mbps: u64,
    /// Longest queue without marks; null if the port marks nothing.
    pub kmin: Option<u64>,
    /// Queue above which every packet is marked.
    pub kmax: Option<u64>,
    /// Data from one port at which the switch pauses it, if no other port holds any; null without PFC.
    pub xoff_alone: Option<u64>,
    /// The same if all ports of the switch hold as much.
    pub xoff_all: Option<u64>,
    /// Data at which the port resumes, if no other port holds any.
    pub xon_alone: Option<u64>,
    /// Buffer reserved for packets that arrive after a pause was sent.
    pub headroom: u64,
    /// Data at which the switch drops more, if no other port or queue holds any: from one port with PFC, in one queue without.
    pub drop_alone: Option<u64>,
    /// Size of a cell of the buffer, of which packets take whole ones; null if they take bytes.
    pub cell: Option<u32>,
}

/// Parts that a fabric is built of: name, number, and price if a table has it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Part {
    /// Name: `switch.ROLE`, `optic.RATE`, `cable.RATE` or `nic.RATE`.
    pub part: String,
    /// Number.
    pub count: usize,
    /// Price of all of them.
    pub cost: Option<f64>,
}

/// Distance of every node from the nearest host, in links.
fn levels(fabric: &Fabric) -> Vec<u32> {
    let mut levels = vec![u32::MAX; fabric.nodes()];
    let mut next: Vec<NodeId> =
        (0..fabric.nodes() as u32).map(NodeId).filter(|n| fabric.is_host(*n)).collect();
    next.iter().for_each(|node| levels[node.index()] = 0);
    let mut level = 0;
    while !next.is_empty() {
        level += 1;
        let mut further = Vec::new();
        for node in next {
            for link in fabric.ports(node) {
                if levels[link.to.index()] == u32::MAX {
                    levels[link.to.index()] = level;
                    further.push(link.to);
                }
            }
        }
        next = further;
    }
    levels
}

/// The switches of a fabric by role, those next to hosts first.
pub fn tiers(fabric: &Fabric, ports_of_model: Option<usize>) -> Vec<Tier> {
    #[derive(Default)]
    struct Sums {
        ports: BTreeSet<usize>,
        switches: usize,
        down: f64,
        up: f64,
        ratios: Vec<f64>,
    }
    let levels = levels(fabric);
    let mut of: BTreeMap<(u32, &str), Sums> = BTreeMap::new();
    for node in fabric.switches() {
        let own = levels[node.index()];
        let sum = |up: bool| {
            let counts = |to: NodeId| {
                let other = levels[to.index()];
                if up { other > own } else { other < own }
            };
            let links = fabric.ports(node).iter().filter(|link| counts(link.to));
            links.map(|link| link.rate.as_gbps()).sum::<f64>()
        };
        let (down, up) = (sum(false), sum(true));
        let sums = of.entry((own, fabric.role(node))).or_default();
        sums.ports.insert(fabric.ports(node).len());
        sums.switches += 1;
        sums.down += down;
        sums.up += up;
        if up > 0.0 {
            sums.ratios.push(down / up);
        }
    }
    let tier = |((_, role), sums): ((u32, &str), Sums)| Tier {
        role: role.to_owned(),
        switches: sums.switches,
        ports: (
            sums.ports.first().copied().unwrap_or_default(),
            sums.ports.last().copied().unwrap_or_default(),
        ),
        ports_of_model,
        down_gbps: sums.down,
        up_gbps: sums.up,
        oversubscription: (sums.up > 0.0).then(|| sums.down / sums.up),
        range: (!sums.ratios.is_empty())
            .then(|| sums.ratios.iter().fold((f64::INFINITY, 0.0_f64), |(a, b), x| (a.min(*x), b.max(*x)))),
    };
    of.into_iter().map(tier).collect()
}

impl Tier {
    /// The oversubscription as readers write it: `2:1`; `-` at the top.
    pub fn ratio(&self) -> String {
        let short = |ratio: f64| {
            let rounded = (ratio * 100.0).round() / 100.0;
            format!("{rounded}:1")
        };
        match (self.oversubscription, self.range) {
            (None, _) | (_, None) => "-".to_owned(),
            (Some(_), Some((a, b))) if b > a * 1.001 => format!("{} to {}", short(a), short(b)),
            (Some(ratio), _) => short(ratio),
        }
    }
}

/// The oversubscription of all tiers, such as `leaf 2:1, spine 1:1`.
pub fn oversubscription(fabric: &Fabric) -> String {
    let tiers = tiers(fabric, None);
    let up = tiers.iter().filter(|tier| tier.oversubscription.is_some());
    up.map(|tier| format!("{} {}", tier.role, tier.ratio())).collect::<Vec<_>>().join(", ")
}

impl Checked {
    /// The switches by role.
    pub fn tiers(&self) -> Vec<Tier> {
        let model = self.scenario.switch.model.as_deref();
        tiers(&self.plan.fabric, model.and_then(crate::hardware::ports))
    }

    /// The thresholds of all ports, one entry for those of one role and rate that agree.
    pub fn thresholds(&self) -> Vec<Thresholds> {
        let (plan, fabric) = (&self.plan, &self.plan.fabric);
        let mut all = BTreeSet::new();
        for node in fabric.switches() {
            let base = fabric.base(node) as usize;
            let ports = &plan.ports[base..base + fabric.ports(node).len()];
            let settings = &plan.switches[fabric.switch_number(node)];
            let memory = settings.memory;
            let reserved: u64 = match memory.headroom_beside {
                true => 0,
                false => ports.iter().map(|port| port.headroom.get()).sum(),
            };
            let shared = settings.buffer.get().saturating_sub(reserved) / u64::from(memory.slices);
            let sharing = ports.len().div_ceil(memory.slices.into());
            for (port, link) in ports.iter().zip(fabric.ports(node)) {
                // x = a (shared - n x), the threshold that all holders have reached.
                let alone = |(num, den): (u32, u32), holders: u128| {
                    let (num, den) = (u128::from(num), u128::from(den));
                    let share = (u128::from(shared) * num / (den + holders * num)) as u64;
                    share.saturating_add(memory.guarantee.get())
                };
                let share = |holders: usize| match settings.flow_control {
                    FlowControl::Lossless(pfc) => {
                        Some(alone(port.alpha.unwrap_or(pfc.alpha), holders as u128))
                    }
                    FlowControl::Credits(_) | FlowControl::Lossy { .. } | FlowControl::Capped { .. } => None,
                };
                let offset = match settings.flow_control {
                    FlowControl::Lossless(pfc) => pfc.resume_offset.get(),
                    _ => 0,
                };
                all.insert(Thresholds {
                    role: fabric.role(node).to_owned(),
                    rate_mbps: link.rate.bps() / 1_000_000,
                    kmin: port.marking.map(|marking| marking.kmin.get()),
                    kmax: port.marking.map(|marking| marking.kmax.get()),
                    xoff_alone: share(1),
                    xoff_all: share(sharing),
                    xon_alone: share(1).map(|xoff| xoff.saturating_sub(offset)),
                    headroom: port.headroom.get(),
                    drop_alone: match settings.flow_control {
                        FlowControl::Lossy { alpha } => Some(alone(alpha, 1)),
                        FlowControl::Capped { .. } => Some(port.cap.get()),
                        FlowControl::Credits(_) => None,
                        FlowControl::Lossless(_) => share(1).map(|xoff| {
                            let all = memory.shared_headroom.unwrap_or(port.headroom);
                            xoff.saturating_add(port.headroom.min(all).get())
                        }),
                    },
                    cell: (memory.cell > 1).then_some(memory.cell),
                });
            }
        }
        all.into_iter().collect()
    }

    /// The parts of the fabric: switches, a cable per link, two optics per link between switches, and a NIC port per endpoint. `price`
    /// tells what a part costs.
    pub fn parts(&self, price: impl Fn(&str) -> Option<f64>) -> Vec<Part> {
        let fabric = &self.plan.fabric;
        let mut count: BTreeMap<String, usize> = BTreeMap::new();
        for node in fabric.switches() {
            *count.entry(format!("switch.{}", fabric.role(node))).or_default() += 1;
        }
        for (id, link) in fabric.links().iter().enumerate() {
            if fabric.reverse(LinkId(id as u32)).index() < id {
                continue;
            }
            let rate = rate(link.rate);
            *count.entry(format!("cable.{rate}")).or_default() += 1;
            match fabric.is_host(link.from) || fabric.is_host(link.to) {
                true => *count.entry(format!("nic.{rate}")).or_default() += 1,
                false => *count.entry(format!("optic.{rate}")).or_default() += 2,
            }
        }
        let part = |(part, count): (String, usize)| Part {
            cost: price(&part).map(|one| one * count as f64),
            part,
            count,
        };
        count.into_iter().map(part).collect()
    }

    /// Mean number of links between the ends of queue pairs, over at most a thousand of them.
    pub fn mean_links(&self) -> f64 {
        const MOST: usize = 1000;
        let (fabric, qps) = (&self.plan.fabric, &self.plan.qps);
        let chosen = qps.iter().step_by(qps.len().div_ceil(MOST).max(1));
        let links = |(from, to): (model::HostId, model::HostId)| {
            let (mut node, mut links) = (fabric.uplink(from).to, 1);
            while node != fabric.node_of(to) {
                let Some(&port) = fabric.route(node, to).first() else { break };
                node = fabric.links()[fabric.link(node, port).index()].to;
                links += 1;
            }
            f64::from(links)
        };
        let all: Vec<f64> = chosen.map(|qp| links((qp.from, qp.to))).collect();
        all.iter().sum::<f64>() / all.len().max(1) as f64
    }
}

/// A rate as a key of a table of costs: `400Gbps`.
fn rate(rate: Rate) -> String {
    format!("{}Gbps", rate.as_gbps())
}

#[cfg(test)]
mod tests {
    use crate::load;

    fn tiers(sets: &[&str]) -> String {
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        super::oversubscription(&load("quickstart", &sets).unwrap().plan.fabric)
    }

    #[test]
    fn oversubscription_is_told_by_tier() {
        assert_eq!(tiers(&[]), "leaf 1:1");
        assert_eq!(tiers(&["topology.leaf-spine.spines=1"]), "leaf 4:1");
        assert_eq!(tiers(&["topology.leaf-spine.uplink-rate=40Gbps"]), "leaf 2.5:1");
        let fat = load("which-scheme", &[]).unwrap();
        let tiers = fat.tiers();
        assert_eq!(tiers.iter().map(|tier| tier.switches).collect::<Vec<_>>(), [32, 32, 16]);
        assert_eq!(tiers.iter().map(super::Tier::ratio).collect::<Vec<_>>(), ["1:1", "1:1", "-"]);
        assert_eq!(fat.mean_links(), 6.0);
    }

    /// `kmin` is per 100 Gb/s of a port's rate; thresholds of PFC follow from the buffer that headroom leaves.
    #[test]
    fn thresholds_are_those_of_the_ports() {
        let sets = ["topology.leaf-spine.rate=400Gbps".to_owned()];
        let checked = load("quickstart", &sets).unwrap();
        let all = checked.thresholds();
        let leaf = all.iter().find(|of| of.role == "leaf").unwrap();
        assert_eq!((leaf.kmin, leaf.kmax), (Some(400_000), Some(1_600_000)));
        let shared = 16_000_000 - 8 * leaf.headroom;
        assert_eq!((leaf.xoff_alone, leaf.xoff_all), (Some(shared / 9), Some(shared / 16)));
        assert_eq!(leaf.xon_alone, leaf.xoff_alone.map(|xoff| xoff - 3072));
    }

    /// Vendor and measured: pools of sonic-net/sonic-buildimage, and the packets of one cell until the first pause and the first drop
    /// that the tests of sonic-net/sonic-mgmt (tests/qos/files) expect of switches.
    #[test]
    fn a_lone_queue_is_paused_and_dropped_at_the_cell_that_switches_of_four_kinds_show() {
        // Pool, slices, cell, guarantee, exponent of alpha, xoff; cells until the pause.
        let rows = [
            (10_875_072_u64, 4, 208_u64, 1_248, 0, 268_736_u64, 6_542_u64),
            (33_329_088, 4, 208, 1_248, 0, 268_736, 20_034),
            (33_169_344, 4, 208, 1_248, 0, 268_736, 19_939),
            (33_262_528, 4, 208, 1_248, 0, 268_736, 19_994),
            (33_582_016, 4, 208, 1_248, -3, 268_736, 4_490),
            (33_329_088, 4, 208, 1_248, -3, 268_736, 4_457),
            (55_921_148, 2, 254, 2_540, -2, 373_888, 22_026),
            (38_462_204, 2, 254, 2_540, -2, 373_888, 15_152),
            (121_964_196, 2, 254, 18_796, 0, 300_990, 120_117),
        ];
        for (pool, slices, cell, guarantee, exponent, xoff, expected) in rows {
            let alpha =
                if exponent < 0 { format!("1/{}", 1 << -exponent) } else { (1 << exponent).to_string() };
            let sets = [
                format!("switch.buffer={pool}B"),
                format!("switch.slices={slices}"),
                format!("switch.cell={cell}B"),
                format!("switch.guarantee={guarantee}B"),
                format!("switch.pfc.alpha={alpha}"),
                format!("switch.pfc.headroom={{ xoff = \"{xoff}B\" }}"),
            ];
            let checked = load("quickstart", &sets).unwrap();
            let all = checked.thresholds();
            let leaf = all.iter().find(|of| of.role == "leaf").unwrap();
            let [pause, drop] = [leaf.xoff_alone, leaf.drop_alone].map(|bytes| bytes.unwrap() / cell);
            assert!(pause.abs_diff(expected) <= 2, "{pool}: {pause}, expected {expected}");
            assert!(drop.abs_diff(expected + xoff / cell) <= 2, "{pool}: {drop}");
            assert_eq!(leaf.cell, Some(cell as u32));
        }
    }

    #[test]
    fn parts_are_counted_and_priced() {
        let checked = load("quickstart", &[]).unwrap();
        let price = |part: &str| (part == "cable.100Gbps").then_some(50.0);
        let parts: Vec<_> =
            checked.parts(price).into_iter().map(|part| (part.part, part.count, part.cost)).collect();
        let of = |name: &str, count, cost| (name.to_owned(), count, cost);
        assert_eq!(
            parts,
            [
                of("cable.100Gbps", 32, Some(1600.0)),
                of("nic.100Gbps", 16, None),
                of("optic.100Gbps", 32, None),
                of("switch.leaf", 4, None),
                of("switch.spine", 4, None),
            ]
        );
    }
}
