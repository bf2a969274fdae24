//! Members of ECMP groups with weights, and resilient hashing: buckets that keep their member while it lives.
//!
//! A flow hashes to a bucket, and each bucket has an owner. If the owner is dead, the bucket goes to another member: its
//! owner's buckets are dealt to the others in turn, and further failures move a bucket only if they hit the member that has it.
//! A member that returns gets its own buckets back, evenly from all others. SONiC's fine-grained groups behave so
//! (`doc/ecmp/fine_grained_next_hop_hld.md`). Which member gets a bucket after several failures is our choice.

use super::{Config, Weights};
use crate::groups::Groups;
use model::draw::{Key, Purpose};
use model::{HostId, PortIndex, Site};

/// Groups of one switch with their weights and buckets.
#[derive(Clone, Debug)]
pub(super) struct Members {
    groups: Groups,
    tables: Vec<Table>,
}

#[derive(Clone, Debug)]
struct Table {
    /// Weight of every port of the switch, divided by the greatest common divisor of the group's.
    weights: Box<[u32]>,
    /// Owner of every bucket, as a position in the group, and the bucket's number among its owner's; empty without buckets.
    buckets: Box<[(u16, u16)]>,
}

impl Members {
    /// Members with weights or buckets; `None` if the settings have neither, or the switch has no choice.
    pub(super) fn of(config: &Config, site: Site<'_>) -> Option<Box<Members>> {
        if config.buckets.is_none() && config.weights == Weights::Equal {
            return None;
        }
        let groups = Groups::of(site);
        let tables = groups.members().iter().map(|members| Table::new(config, site, members)).collect();
        (!groups.members().is_empty()).then(|| Box::new(Members { groups, tables }))
    }

    /// The port of a flow with this hash among the live `ports`.
    #[inline]
    pub(super) fn choose(&self, hash: u32, to: HostId, ports: &[PortIndex]) -> PortIndex {
        let plain = || ports[hash as usize % ports.len()];
        let Some(group) = self.groups.to(to) else { return plain() };
        let (table, members) = (&self.tables[group], &self.groups.members()[group]);
        if table.buckets.is_empty() {
            return table.by_weight(hash, ports);
        }
        let bucket = hash as usize % table.buckets.len();
        let (owner, rank) = table.buckets[bucket];
        let owner = usize::from(owner);
        if **members == *ports || ports.contains(&members[owner]) {
            return members[owner];
        }
        let next = usize::from(rank) % (members.len() - 1);
        let next = members[next + usize::from(next >= owner)];
        if ports.contains(&next) {
            return next;
        }
        let key = Key::from_salt(bucket as u64);
        ports.iter().copied().max_by_key(|port| key.draw(port.0.into())).unwrap_or(ports[0])
    }
}

impl Table {
    fn new(config: &Config, site: Site<'_>, members: &[PortIndex]) -> Self {
        let ports = site.fabric().ports(site.node);
        let rate = |port: &PortIndex| match config.weights {
            Weights::Equal => 1,
            Weights::LinkRate => ports.get(port.index()).map_or(1, |link| link.rate.bps().max(1)),
        };
        let rates: Vec<u64> = members.iter().map(rate).collect();
        let divisor = rates.iter().copied().fold(0, gcd).max(1);
        let mut weights = vec![1; ports.len()];
        for (port, rate) in members.iter().zip(&rates) {
            weights[port.index()] = u32::try_from(rate / divisor).unwrap_or(u32::MAX);
        }
        let buckets = config.buckets.map_or_else(Vec::new, |count| deal(&shares(&rates, count)));
        Table { weights: weights.into(), buckets: buckets.into() }
    }

    /// The port of a flow, in proportion to the weights of the live ports.
    fn by_weight(&self, hash: u32, ports: &[PortIndex]) -> PortIndex {
        let weight = |port: &PortIndex| u64::from(self.weights[port.index()]);
        let total: u64 = ports.iter().map(weight).sum();
        // Large totals would waste the low bits of a remainder, so the hash is spread over 64 bits first.
        let mut left = match total <= 1 << 16 {
            true => u64::from(hash) % total,
            false => Key::new(0, Purpose::Salt, 0).draw(hash.into()) % total,
        };
        for port in ports {
            match left.checked_sub(weight(port)) {
                Some(rest) => left = rest,
                None => return *port,
            }
        }
        ports[0]
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Divides `count` buckets in proportion to weights, by largest remainders; of equal remainders the first wins.
fn shares(weights: &[u64], count: u32) -> Vec<u32> {
    let total: u128 = weights.iter().map(|&w| u128::from(w)).sum::<u128>().max(1);
    let exact = |w: u64| u128::from(w) * u128::from(count);
    let mut shares: Vec<u32> = weights.iter().map(|&w| (exact(w) / total) as u32).collect();
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by_key(|&i| std::cmp::Reverse(exact(weights[i]) % total));
    let left = count - shares.iter().sum::<u32>();
    order.into_iter().take(left as usize).for_each(|i| shares[i] += 1);
    shares
}

/// Deals buckets to members in turn, each as often as its share says: the owner, and the number among the owner's.
fn deal(shares: &[u32]) -> Vec<(u16, u16)> {
    let total: i64 = shares.iter().map(|&s| i64::from(s)).sum();
    let (mut credit, mut dealt) = (vec![0i64; shares.len()], vec![0u16; shares.len()]);
    let mut next = || {
        for (credit, &share) in credit.iter_mut().zip(shares) {
            *credit += i64::from(share);
        }
        let owner = (0..shares.len()).max_by_key(|&i| (credit[i], std::cmp::Reverse(i))).unwrap_or(0);
        credit[owner] -= total;
        dealt[owner] = dealt[owner].wrapping_add(1);
        (owner as u16, dealt[owner].wrapping_sub(1))
    };
    (0..total).map(|_| next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SchemeConfig;
    use crate::bench::{Bench, leaf_spine, leaf_spine_at};
    use model::{Plan, Psn, QpId, Rate, Verdict};
    use std::collections::BTreeMap;

    /// Uplink of every flow from rack 0 to rack 1.
    fn uplinks(bench: &mut Bench, plan: &Plan) -> BTreeMap<u32, usize> {
        let across = (0..)
            .zip(&plan.qps)
            .filter(|(_, qp)| plan.fabric.rack(qp.from) == 0 && plan.fabric.rack(qp.to) == 1);
        let port = |(i, _): (u32, &model::plan::Qp)| match bench.see(bench.data(QpId(i), Psn::new(0))).verdict
        {
            Verdict::Forward(port) => (i, port.index()),
            other => panic!("{other:?}"),
        };
        across.map(port).collect()
    }

    fn moved(before: &BTreeMap<u32, usize>, after: &BTreeMap<u32, usize>) -> f64 {
        before.iter().filter(|(qp, port)| after[qp] != **port).count() as f64 / before.len() as f64
    }

    #[test]
    fn one_dead_member_of_eight_moves_an_eighth_of_the_flows_with_buckets_and_seven_eighths_without() {
        let plan = leaf_spine(2, 8, 64);
        let dead =
            plan.fabric.find("leaf0").map(|leaf| plan.fabric.ports(leaf)[64 + 3].port.index()).unwrap();
        let mut shares = Vec::new();
        for buckets in [Some(4096), None] {
            let config = SchemeConfig::Ecmp(Config {
                function: super::super::Function::Crc32,
                buckets,
                ..Config::default()
            });
            let mut bench = Bench::new(&plan, "leaf0", &config);
            let before = uplinks(&mut bench, &plan);
            bench.reroute(&[("leaf0", "spine3")]);
            let after = uplinks(&mut bench, &plan);
            assert!(after.values().all(|port| *port != dead));
            if buckets.is_some() {
                let stays = |(qp, port): (&u32, &usize)| *port == dead || after[qp] == *port;
                assert!(before.iter().all(stays), "only flows of the dead member move");
            }
            shares.push(moved(&before, &after));
            bench.reroute(&[]);
            assert_eq!(uplinks(&mut bench, &plan), before, "all return");
        }
        // 4096 flows; three standard deviations are 0.016.
        assert!((shares[0] - 0.125).abs() < 0.016 && (shares[1] - 0.875).abs() < 0.016, "{shares:?}");
    }

    #[test]
    fn a_second_failure_moves_only_flows_of_its_own_member_and_dead_buckets_are_dealt_evenly() {
        let plan = leaf_spine(2, 8, 64);
        let config = SchemeConfig::Ecmp(Config { buckets: Some(4096), ..Config::default() });
        let mut bench = Bench::new(&plan, "leaf0", &config);
        let whole = uplinks(&mut bench, &plan);
        bench.reroute(&[("leaf0", "spine3")]);
        let one = uplinks(&mut bench, &plan);
        bench.reroute(&[("leaf0", "spine3"), ("leaf0", "spine5")]);
        let two = uplinks(&mut bench, &plan);
        assert!(one.iter().all(|(qp, port)| *port == 64 + 5 || two[qp] == *port));
        let mut taken = [0; 72];
        whole.iter().filter(|(_, port)| **port == 64 + 3).for_each(|(qp, _)| taken[one[qp]] += 1);
        let of_others = (64..72).filter(|port| *port != 67).map(|port| taken[port]);
        assert!(of_others.clone().all(|n| (45..105).contains(&n)), "{taken:?}");
    }

    #[test]
    fn weights_follow_the_rates_of_links_with_and_without_buckets() {
        // Two spines at 400 Gb/s and six at 100 Gb/s.
        let plan = leaf_spine_at(2, 8, 64, |spine| Rate::from_gbps(if spine < 2 { 400 } else { 100 }));
        for buckets in [None, Some(1400), Some(100)] {
            let config =
                SchemeConfig::Ecmp(Config { buckets, weights: Weights::LinkRate, ..Config::default() });
            let mut bench = Bench::new(&plan, "leaf0", &config);
            let mut flows = [0; 8];
            uplinks(&mut bench, &plan).values().for_each(|port| flows[port - 64] += 1);
            let share = |i: usize| f64::from(flows[i]) / 4096.0;
            assert!((0..2).all(|i| (share(i) - 4.0 / 14.0).abs() < 0.025), "{buckets:?}: {flows:?}");
            assert!((2..8).all(|i| (share(i) - 1.0 / 14.0).abs() < 0.02), "{buckets:?}: {flows:?}");
        }
    }

    #[test]
    fn buckets_are_shared_by_largest_remainders_and_dealt_in_turn() {
        assert_eq!(shares(&[4, 4, 1], 10), [5, 4, 1]);
        assert_eq!(shares(&[1, 1, 1], 8), [3, 3, 2]);
        assert_eq!(deal(&[2, 2]), [(0, 0), (1, 0), (0, 1), (1, 1)]);
    }
}
