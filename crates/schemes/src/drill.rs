//! DRILL: every data packet joins the shortest of `d` sampled queues and `m` remembered ones.
//!
//! Ghorbani et al., "DRILL: Micro Load Balancing for Low-latency Data Center Networks", SIGCOMM'17. For every data
//! packet a switch samples d of the equal-cost ports and adds the m ports that were shortest at its last decision. The
//! packet takes the shortest of them, and the switch remembers the m shortest.
//!
//! Our choices, where the paper leaves it open: the d samples are different ports. The memory is kept per destination
//! rack, because all hosts of a rack have the same equal-cost ports. The first of equal queues wins, remembered ports
//! before sampled ones, so that packets do not alternate between ports on an idle fabric.

use crate::ar::load;
use crate::{Facts, Recipe, palette::Look};
use finding::{Finding, code};
use model::fabric::Detours;
use model::scheme::Arrived;
use model::{Cx, HostId, Interest, Packet, Plan, PortIndex, Reroute, Scheme, Site, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Most samples and most remembered ports. Our choice: with more than a handful, DRILL becomes adaptive routing, which
/// `ar` does without sampling.
const MOST: u8 = 16;

/// `[scheme.drill]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "SchemeDrill")]
pub struct Config {
    /// Ports sampled for every packet, 1 to 16; a number above the count of equal-cost ports samples all of them.
    /// Default 2 (DRILL, SIGCOMM'17: DRILL(2,1)).
    pub d: u8,
    /// Ports remembered per destination rack, 0 to 16. Default 1 (DRILL, SIGCOMM'17: DRILL(2,1)).
    pub m: u8,
}

impl Default for Config {
    fn default() -> Self {
        Config { d: 2, m: 1 }
    }
}

/// The scheme of one switch.
#[derive(Clone, Debug)]
pub struct Drill {
    samples: usize,
    memory: usize,
    /// Destination rack of every host.
    rack_of: Vec<u16>,
    /// Remembered ports, `memory` for every rack; [`PortIndex::VIRTUAL`] marks an empty slot.
    remembered: Vec<PortIndex>,
    /// Candidate ports of the current packet, kept to reuse the allocation.
    candidates: Vec<PortIndex>,
}

impl Recipe for Config {
    type Scheme = Drill;
    const LOOK: Option<Look> = Some(Look::new(4, 1));

    fn facts(&self) -> Facts {
        Facts::plain(true)
    }

    fn build(&self, site: Site<'_>) -> Drill {
        let fabric = site.fabric();
        let mut number = vec![0; fabric.nodes()];
        for (i, rack) in (0..).zip(fabric.racks()) {
            number[rack.index()] = i;
        }
        let rack = |host| number[fabric.attachment(HostId(host as u32)).index()];
        let memory = usize::from(self.m.min(MOST));
        Drill {
            samples: usize::from(self.d.clamp(1, MOST)),
            memory,
            rack_of: (0..fabric.hosts()).map(rack).collect(),
            remembered: vec![PortIndex::VIRTUAL; fabric.racks().len() * memory],
            candidates: Vec::with_capacity(2 * usize::from(MOST)),
        }
    }

    fn validate(&self, _plan: &Plan) -> Result<Vec<Finding>, Finding> {
        if !(1..=MOST).contains(&self.d) {
            return Err(code::RANGE.at("d", format!("{} samples; 1 to {MOST} are possible", self.d)));
        }
        if self.m > MOST {
            return Err(code::RANGE.at("m", format!("{} ports remembered; 0 to {MOST} are possible", self.m)));
        }
        Ok(Vec::new())
    }
}

impl Drill {
    /// The slots of the ports that are remembered for the rack of a packet's receiver.
    #[inline]
    fn slots(&self, pkt: &Packet) -> Range<usize> {
        let rack = self.rack_of.get(pkt.to().index()).map_or(0, |&rack| usize::from(rack));
        rack * self.memory..(rack + 1) * self.memory
    }

    /// Adds the remembered ports to `candidates`, then samples: different ports, drawn uniformly by Floyd's method, with one draw
    /// per sample and no rejection.
    #[inline]
    fn add_candidates(
        &self,
        arrived: Arrived,
        remembered: &[PortIndex],
        ports: &[PortIndex],
        candidates: &mut Vec<PortIndex>,
    ) {
        candidates.extend(remembered.iter().filter(|port| ports.contains(port)));
        let (sampled, n) = (candidates.len(), ports.len());
        for (nth, last) in (1..).zip(n - self.samples.min(n)..n) {
            let drawn = ports[arrived.pick_nth(nth, last + 1)];
            let taken = candidates[sampled..].contains(&drawn);
            candidates.push(if taken { ports[last] } else { drawn });
        }
    }
}

impl Scheme for Drill {
    #[inline]
    fn interest(&self) -> Interest {
        Interest { queues: true, plain_replies: true, ..Interest::default() }
    }

    #[inline]
    fn reads_queues(&self, pkt: &Packet, ports: &[PortIndex], _: &Detours<'_>) -> bool {
        pkt.is_data() && ports.len() > 1
    }

    #[inline]
    fn queues_read(&self, arrived: Arrived, pkt: &Packet, ports: &[PortIndex], read: &mut Vec<PortIndex>) {
        self.add_candidates(arrived, &self.remembered[self.slots(pkt)], ports, read);
    }

    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &mut Packet, ports: &[PortIndex]) -> Verdict {
        if !pkt.is_data() || ports.len() == 1 {
            return Verdict::Forward(cx.base_path(pkt, ports));
        }
        let mut candidates = std::mem::take(&mut self.candidates);
        candidates.clear();
        let slots = self.slots(pkt);
        self.add_candidates(cx.arrived(pkt), &self.remembered[slots.clone()], ports, &mut candidates);
        let queued = cx.queued;
        candidates.sort_by_key(|&port| load(queued, port)); // a stable sort keeps the first of equals first
        let best = candidates.first().copied().unwrap_or(ports[0]);
        let slots = &mut self.remembered[slots];
        let mut kept = 0;
        for &port in &candidates {
            if kept < slots.len() && !slots[..kept].contains(&port) {
                slots[kept] = port;
                kept += 1;
            }
        }
        self.candidates = candidates;
        Verdict::Forward(best)
    }

    /// Forgets the remembered ports, since they were shortest among other routes.
    fn on_routes_change(&mut self, _: &mut Cx<'_>, _: &Reroute<'_>) {
        self.remembered.fill(PortIndex::VIRTUAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SchemeConfig;
    use crate::bench::{Bench, leaf_spine, qp};
    use model::Psn;
    use std::collections::BTreeSet;

    fn next(bench: &mut Bench, qp: model::QpId, queues: &[u32]) -> usize {
        bench.queued[1..].copy_from_slice(queues);
        let pkt = bench.data(qp, Psn::new(0));
        match bench.see(pkt).verdict {
            Verdict::Forward(port) => port.index(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_best_port_is_remembered_per_rack() {
        let plan = leaf_spine(3, 8, 1);
        let (to1, to2) = (qp(&plan, 0, 1), qp(&plan, 0, 2));
        let config = SchemeConfig::Drill(Config { d: 8, m: 1 });
        let mut bench = Bench::new(&plan, "leaf0", &config);
        assert_eq!(next(&mut bench, to1, &[9, 9, 9, 9, 1, 9, 9, 9]), 5);
        assert_eq!(next(&mut bench, to2, &[9, 1, 9, 9, 9, 9, 9, 9]), 2);
        // With equal queues each rack keeps its remembered port.
        for _ in 0..50 {
            assert_eq!(next(&mut bench, to1, &[4; 8]), 5);
            assert_eq!(next(&mut bench, to2, &[4; 8]), 2);
        }
    }

    #[test]
    fn two_samples_are_two_different_ports_and_all_ports_are_sampled() {
        let plan = leaf_spine(2, 2, 1);
        let config = SchemeConfig::Drill(Config { d: 2, m: 0 });
        let mut bench = Bench::new(&plan, "leaf0", &config);
        for _ in 0..100 {
            assert_eq!(next(&mut bench, qp(&plan, 0, 1), &[7, 3]), 2);
        }
        let plan = leaf_spine(2, 6, 1);
        let config = SchemeConfig::Drill(Config { d: 1, m: 0 });
        let mut bench = Bench::new(&plan, "leaf0", &config);
        let used: BTreeSet<_> = (0..200).map(|_| next(&mut bench, qp(&plan, 0, 1), &[0; 6])).collect();
        assert_eq!(used.len(), 6);
    }

    #[test]
    fn counts_out_of_range_are_named() {
        let plan = leaf_spine(2, 2, 1);
        assert_eq!(Config { d: 0, m: 1 }.validate(&plan).unwrap_err().path(), "d");
        assert_eq!(Config { d: 2, m: 17 }.validate(&plan).unwrap_err().path(), "m");
        assert_eq!(Config::default().validate(&plan), Ok(vec![]));
    }
}
