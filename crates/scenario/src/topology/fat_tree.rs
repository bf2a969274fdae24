//! Fat trees of two or three tiers: k-port switches, equal-cost paths everywhere (Al-Fares et al., SIGCOMM 2008).

use super::links::{possible_delay, possible_rate};
use super::{Ground, Layout};
use crate::footprint::Size;
use crate::values::{Chance, Oversubscription};
use finding::{Finding, code};
use model::{Fabric, HostId, NodeId, Packet, Probability, Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A fat tree of k-port switches. With three tiers it has k pods of k/2 edge switches and k/2 aggregation switches.
/// Every edge switch has a link to every aggregation switch of its pod. Aggregation switch j of every pod has links to
/// the same k/2 core switches. The tree has k^3/4 hosts, and (k/2)^2 paths between two pods. With two tiers it has
/// k edge switches, k/2 core switches, a link between every two of them, and k^2/2 hosts. Oversubscription removes
/// uplinks and the switches at their upper ends.
///
/// Nodes are named `host0`, `host1`, ... (rack by rack, pod by pod), `pod0-edge0`, ..., `pod0-aggregation0`, ...,
/// `core0`, ...; with two tiers `edge0`, ..., `core0`, .... The roles of switches are `edge`, `aggregation` and
/// `core`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct FatTree {
    /// Number of ports of a switch; it is even. Default 8 (our choice: 128 hosts with three tiers).
    pub k: usize,
    /// Number of tiers of switches: 2 or 3. Default 3 (Al-Fares et al., SIGCOMM 2008).
    pub tiers: usize,
    /// Number of hosts on each edge switch. Default k/2, as many as uplinks (Al-Fares et al., SIGCOMM 2008).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts_per_edge: Option<usize>,
    /// Bandwidth of an edge switch's links to hosts, relative to its uplinks, such as `"2:1"`; sets the number of
    /// uplinks. Default: k/2 uplinks (Al-Fares et al., SIGCOMM 2008).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edge_oversubscription: Option<Oversubscription>,
    /// Bandwidth of an aggregation switch's links to edge switches, relative to its uplinks, such as `"2:1"`; sets the
    /// number of uplinks. Three tiers only. Default: k/2 uplinks (Al-Fares et al., SIGCOMM 2008).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aggregation_oversubscription: Option<Oversubscription>,
    /// Rate of the links to hosts. Default 400 Gb/s (Themis paper, section 5).
    pub rate: Rate,
    /// Propagation delay of the links to hosts. Default 1 us (Themis paper, section 5).
    pub delay: Time,
    /// Probability that a link to a host loses a packet. Default: `loss` of `[links]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<Chance>,
    /// Rate of the links between edge and aggregation switches. Three tiers only. Default: `rate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aggregation_rate: Option<Rate>,
    /// Propagation delay of the links between edge and aggregation switches. Three tiers only. Default: `delay`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aggregation_delay: Option<Time>,
    /// Probability that a link between edge and aggregation switches loses a packet. Three tiers only. Default:
    /// `loss` of `[links]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aggregation_loss: Option<Chance>,
    /// Rate of the links to core switches. Default: `aggregation-rate`, and with two tiers `rate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub core_rate: Option<Rate>,
    /// Propagation delay of the links to core switches. Default: `aggregation-delay`, and with two tiers `delay`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub core_delay: Option<Time>,
    /// Probability that a link to a core switch loses a packet. Default: `loss` of `[links]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub core_loss: Option<Chance>,
}

impl Default for FatTree {
    fn default() -> Self {
        FatTree {
            k: 8,
            tiers: 3,
            hosts_per_edge: None,
            edge_oversubscription: None,
            aggregation_oversubscription: None,
            rate: Rate::from_gbps(400),
            delay: Time::from_us(1),
            loss: None,
            aggregation_rate: None,
            aggregation_delay: None,
            aggregation_loss: None,
            core_rate: None,
            core_delay: None,
            core_loss: None,
        }
    }
}

/// Numbers of switches, hosts and links. A tree of two tiers counts as one pod whose aggregation switches have no
/// uplinks and are its core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counts {
    pods: usize,
    /// Edge switches of a pod.
    edges: usize,
    /// Hosts of an edge switch.
    hosts: usize,
    /// Uplinks of an edge switch.
    edge_up: usize,
    /// Uplinks of an aggregation switch.
    aggregation_up: usize,
}

/// The links of one tier.
#[derive(Clone, Copy)]
struct Tier {
    rate: Rate,
    delay: Time,
    loss: Probability,
}

impl FatTree {
    fn two_tiers(&self) -> bool {
        self.tiers == 2
    }

    /// Links between edge and aggregation switches, and to core switches.
    fn tiers_above(&self, loss: Probability) -> (Tier, Tier) {
        let chance = |own: Option<Chance>| own.map_or(loss, Chance::probability);
        let aggregation = Tier {
            rate: self.aggregation_rate.unwrap_or(self.rate),
            delay: self.aggregation_delay.unwrap_or(self.delay),
            loss: chance(self.aggregation_loss),
        };
        let core = Tier {
            rate: self.core_rate.unwrap_or(aggregation.rate),
            delay: self.core_delay.unwrap_or(aggregation.delay),
            loss: chance(self.core_loss),
        };
        (aggregation, core)
    }

    /// Checks each setting by itself.
    fn possible(&self) -> Result<(), Finding> {
        let k = self.k;
        if k < 2 || !k.is_multiple_of(2) {
            let help = match k {
                0 => "set k = 4, 8, 16, ...".to_owned(),
                1 => "set k = 2 or 4".to_owned(),
                k => format!("set k = {} or {}", k - 1, k.saturating_add(1)),
            };
            let text = format!("expected an even number of ports, half of them down and half up; found {k}");
            return Err(code::RANGE.at("k", text).with_help(help));
        }
        if !matches!(self.tiers, 2 | 3) {
            return Err(code::RANGE.at("tiers", format!("expected 2 or 3 tiers, found {}", self.tiers)));
        }
        if self.hosts_per_edge == Some(0) {
            return Err(
                code::RANGE.at("hosts-per-edge", "a fat tree needs at least 1 host on every edge switch")
            );
        }
        if self.two_tiers() {
            for (key, set) in [
                ("aggregation-oversubscription", self.aggregation_oversubscription.is_some()),
                ("aggregation-rate", self.aggregation_rate.is_some()),
                ("aggregation-delay", self.aggregation_delay.is_some()),
                ("aggregation-loss", self.aggregation_loss.is_some()),
            ] {
                if set {
                    let text = "a fat tree of 2 tiers has no aggregation switches; use the `core-` keys";
                    return Err(code::CONFLICT.at(key, text));
                }
            }
        }
        for (key, rate) in [
            ("rate", Some(self.rate)),
            ("aggregation-rate", self.aggregation_rate),
            ("core-rate", self.core_rate),
        ] {
            rate.map_or(Ok(()), |rate| possible_rate(key, rate))?;
        }
        for (key, delay) in [
            ("delay", Some(self.delay)),
            ("aggregation-delay", self.aggregation_delay),
            ("core-delay", self.core_delay),
        ] {
            delay.map_or(Ok(()), |delay| possible_delay(key, delay))?;
        }
        Ok(())
    }

    /// Checks all settings and returns the numbers of switches, hosts and links.
    fn counts(&self) -> Result<Counts, Finding> {
        self.possible()?;
        let half = self.k / 2;
        let hosts = self.hosts_per_edge.unwrap_or(half);
        let (pods, edges) = if self.two_tiers() { (1, self.k) } else { (self.k, half) };
        let (aggregation, core) = self.tiers_above(Probability::ZERO);
        let above = if self.two_tiers() { core } else { aggregation };
        let edge_up = match self.edge_oversubscription {
            Some(ratio) => uplinks(ratio, (hosts, self.rate), above.rate, "hosts", "edge")?,
            None => half,
        };
        let aggregation_up = match self.aggregation_oversubscription {
            _ if self.two_tiers() => 0,
            Some(ratio) => uplinks(ratio, (edges, above.rate), core.rate, "edge switches", "aggregation")?,
            None => half,
        };
        let most = Packet::MAX_PORTS;
        let crossed = if self.two_tiers() { "core" } else { "aggregation" };
        for (key, ports, what) in [
            ("k", self.k, "core"),
            ("hosts-per-edge", hosts, "edge"),
            ("edge-oversubscription", hosts.saturating_add(edge_up), "edge"),
            ("aggregation-oversubscription", edges.saturating_add(aggregation_up), crossed),
        ] {
            if ports > most {
                // The error points at a key that the user set, or at `k`.
                let own = |set: bool, key, other| if set { key } else { other };
                let hosts = own(self.hosts_per_edge.is_some(), "hosts-per-edge", "k");
                let key = match key {
                    "edge-oversubscription" => own(self.edge_oversubscription.is_some(), key, hosts),
                    "aggregation-oversubscription" => {
                        own(self.aggregation_oversubscription.is_some(), key, "k")
                    }
                    key => key,
                };
                let text =
                    format!("a switch of the role `{what}` needs {ports} ports; a switch has at most {most}");
                return Err(code::FIT.at(key, text));
            }
        }
        let all = pods * edges * hosts;
        if all > HostId::MOST {
            let key = if self.hosts_per_edge.is_some() { "hosts-per-edge" } else { "k" };
            let edges = pods * edges;
            let text = format!(
                "expected at most {} hosts, found {all} ({hosts} on each of {edges} edge switches)",
                HostId::MOST
            );
            return Err(code::RANGE.at(key, text));
        }
        Ok(Counts { pods, edges, hosts, edge_up, aggregation_up })
    }
}

/// Number of uplinks at an oversubscription; `below` is the number and rate of the switch's links down.
fn uplinks(
    ratio: Oversubscription,
    below: (usize, Rate),
    up: Rate,
    what: &str,
    role: &str,
) -> Result<usize, Finding> {
    let (count, rate) = below;
    let down = count as u128 * u128::from(rate.bps()) * u128::from(ratio.up);
    let one = u128::from(up.bps()) * u128::from(ratio.down);
    if down >= one && down.is_multiple_of(one) {
        return Ok(usize::try_from(down / one).unwrap_or(usize::MAX));
    }
    let found = match down / one {
        0 => "none".to_owned(),
        n => format!("between {n} and {}", n + 1),
    };
    let text = format!(
        "expected a whole number of uplinks of {up} for {count} {what} of {rate} at {ratio}, found {found}"
    );
    Err(code::FIT.at(&format!("{role}-oversubscription"), text))
}

impl Layout for FatTree {
    fn size(&self, _: &Ground<'_>) -> Result<Size, Finding> {
        let Counts { pods, edges, hosts, edge_up, aggregation_up } = self.counts()?;
        let (edges, above) = (pods * edges, pods * edge_up);
        Ok(Size {
            hosts: edges * hosts,
            switches: edges + above + edge_up * aggregation_up,
            links: edges * hosts + edges * edge_up + above * aggregation_up,
            racks: edges,
            key: if self.hosts_per_edge.is_some() { "hosts-per-edge" } else { "k" },
        })
    }

    fn lay(&self, ground: &Ground<'_>) -> Result<Fabric, Finding> {
        let Counts { pods, edges, hosts, edge_up, aggregation_up } = self.counts()?;
        let own = Tier {
            rate: self.rate,
            delay: self.delay,
            loss: self.loss.map_or(ground.loss, Chance::probability),
        };
        let (aggregation, core) = self.tiers_above(ground.loss);
        let mut builder = ground.builder();
        let all_hosts: Vec<NodeId> =
            (0..pods * edges * hosts).map(|h| builder.host(format!("host{h}"))).collect();
        let mut switches = |count: usize, per_pod: usize, role: &str, in_pods: bool| -> Vec<NodeId> {
            let name = |i: usize| match in_pods {
                true => format!("pod{}-{role}{}", i / per_pod, i % per_pod),
                false => format!("{role}{i}"),
            };
            (0..count).map(|i| builder.switch(name(i), role)).collect()
        };
        let in_pods = !self.two_tiers();
        let edge = switches(pods * edges, edges, "edge", in_pods);
        let role = if in_pods { "aggregation" } else { "core" };
        let above = switches(pods * edge_up, edge_up, role, in_pods);
        let cores = switches(edge_up * aggregation_up, 1, "core", false);
        let mut join = |a: NodeId, b: NodeId, Tier { rate, delay, loss }: Tier| {
            builder.connect(a, b, rate, delay, loss);
        };
        for (h, &host) in all_hosts.iter().enumerate() {
            join(host, edge[h / hosts], own);
        }
        for (e, &edge) in edge.iter().enumerate() {
            let pod = e / edges;
            for &up in &above[pod * edge_up..(pod + 1) * edge_up] {
                join(edge, up, if in_pods { aggregation } else { core });
            }
        }
        for (a, &switch) in above.iter().enumerate() {
            let first = a % edge_up * aggregation_up;
            for &up in &cores[first..first + aggregation_up] {
                join(switch, up, core);
            }
        }
        builder.build().map_err(|e| code::RANGE.at("", e.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{HostId, PortIndex};

    fn lay(tree: FatTree) -> Fabric {
        tree.lay(&Ground::plain()).unwrap()
    }

    /// Number of different paths from a switch to a host.
    fn paths(f: &Fabric, from: NodeId, to: HostId) -> usize {
        let next = |port: &PortIndex| match f.ports(from)[port.index()].to {
            node if node == f.node_of(to) => 1,
            node => paths(f, node, to),
        };
        f.route(from, to).iter().map(next).sum()
    }

    fn of_role(f: &Fabric, role: &str) -> Vec<NodeId> {
        f.switches().filter(|&node| f.role(node) == role).collect()
    }

    #[test]
    fn a_k_ary_tree_has_the_counts_of_the_textbook() {
        for k in [2, 4, 6, 8] {
            let f = lay(FatTree { k, ..FatTree::default() });
            assert_eq!(f.hosts(), k * k * k / 4);
            let counts = ["edge", "aggregation", "core"].map(|role| of_role(&f, role).len());
            assert_eq!(counts, [k * k / 2, k * k / 2, k * k / 4]);
            assert!(f.switches().all(|node| f.ports(node).len() == k));
            let edge = f.find("pod0-edge0").unwrap();
            let last = HostId(f.hosts() as u32 - 1);
            assert_eq!(paths(&f, edge, last), (k / 2) * (k / 2), "between pods");
            if k > 2 {
                assert_eq!(paths(&f, edge, HostId(k as u32 / 2)), k / 2, "inside a pod");
            }
            let tiers =
                ["pod0-edge0", "pod1-aggregation0", "core0"].map(|name| f.tier(f.find(name).unwrap()));
            assert_eq!(tiers, [1, 2, 3]);
            let flat = lay(FatTree { k, tiers: 2, ..FatTree::default() });
            assert_eq!((flat.hosts(), of_role(&flat, "core").len()), (k * k / 2, k / 2));
            assert!(flat.switches().all(|node| flat.ports(node).len() == k));
            let last = HostId(flat.hosts() as u32 - 1);
            assert_eq!(paths(&flat, flat.find("edge0").unwrap(), last), k / 2);
        }
    }

    #[test]
    fn every_host_reaches_every_other_and_every_path_goes_straight_up_and_down() {
        let f = lay(FatTree { k: 4, ..FatTree::default() });
        let all = || (0..f.hosts() as u32).map(HostId);
        for (a, b) in all().flat_map(|a| all().map(move |b| (a, b))).filter(|(a, b)| a != b) {
            assert!(f.reaches(a, b));
            // Always the first of the equal-cost ports, then always the last.
            for last in [false, true] {
                let (mut at, mut tiers) = (f.attachment(a), vec![]);
                while at != f.node_of(b) {
                    tiers.push(f.tier(at));
                    let ports = f.route(at, b);
                    at = f.ports(at)[ports[if last { ports.len() - 1 } else { 0 }].index()].to;
                }
                let expected: &[usize] = match (f.same_rack(a, b), a.0 / 4 == b.0 / 4) {
                    (true, _) => &[1],
                    (_, true) => &[1, 2, 1],
                    _ => &[1, 2, 3, 2, 1],
                };
                assert_eq!(tiers, expected, "{a} to {b}");
            }
        }
    }

    #[test]
    fn oversubscription_is_bandwidth_down_to_bandwidth_up() {
        let ratio = |text: &str| Some(text.parse().unwrap());
        // 48 hosts of 25 Gb/s on 4 uplinks of 100 Gb/s, of which 8 switches share 4 uplinks each.
        let tree = FatTree {
            k: 16,
            hosts_per_edge: Some(48),
            edge_oversubscription: ratio("3:1"),
            aggregation_oversubscription: ratio("2:1"),
            rate: Rate::from_gbps(25),
            aggregation_rate: Some(Rate::from_gbps(100)),
            ..FatTree::default()
        };
        let f = lay(tree);
        let ports = |name: &str| f.ports(f.find(name).unwrap());
        let bandwidth = |name: &str, up: bool| -> u64 {
            let here = f.tier(f.find(name).unwrap());
            ports(name).iter().filter(|l| (f.tier(l.to) > here) == up).map(|l| l.rate.bps()).sum()
        };
        assert_eq!(ports("pod15-edge7").len(), 48 + 4);
        assert_eq!(bandwidth("pod3-edge2", false), 3 * bandwidth("pod3-edge2", true));
        assert_eq!(bandwidth("pod3-aggregation1", false), 2 * bandwidth("pod3-aggregation1", true));
        assert_eq!(of_role(&f, "aggregation").len(), 16 * 4);
        assert_eq!(of_role(&f, "core").len(), 4 * 4);
        assert_eq!(paths(&f, f.find("pod0-edge0").unwrap(), HostId(f.hosts() as u32 - 1)), 16);
        let flat = lay(FatTree { tiers: 2, edge_oversubscription: ratio("4:1"), ..FatTree::default() });
        assert_eq!(of_role(&flat, "core").len(), 1);
    }

    #[test]
    fn every_tier_has_its_own_links() {
        let f = lay(FatTree {
            k: 4,
            core_rate: Some(Rate::from_gbps(800)),
            aggregation_delay: Some(Time::from_us(2)),
            core_loss: Some(Chance::new(0.5)),
            ..FatTree::default()
        });
        for link in f.links() {
            let (rate, delay) = (link.rate.bps() / 1_000_000_000, link.delay.ps() / 1_000_000);
            let expected = match f.tier(link.from).max(f.tier(link.to)) {
                1 => (400, 1, false),
                2 => (400, 2, false),
                _ => (800, 2, true),
            };
            assert_eq!((rate, delay, !link.loss.is_zero()), expected);
        }
    }
}
