//! UGAL-L: every packet takes a minimal path or a detour over a random group, by the queues of its first switch.
//!
//! Universal globally-adaptive load-balanced routing with local information (Kim et al., ISCA 2008, section 4.1). The form
//! is that of SST's merlin, which the Flowcut authors used. It compares the shortest queue of the minimal ports with twice
//! the shortest queue towards one random group, plus a bias. Later switches on the path only choose among the ports of
//! the chosen path, and take the shortest queue.

use crate::choice::{Chosen, Ugal};
use crate::{Facts, Golden, Recipe, needs_groups, palette::Look};
use finding::Finding;
use model::fabric::Detours;
use model::{Bytes, Cx, Interest, Packet, Plan, PortIndex, Scheme, Site, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[scheme.ugal-l]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "SchemeUgalL")]
pub struct Config {
    /// Weight of a byte that waits on a detour, relative to a byte on a minimal path. Default 2 (SST's merlin).
    pub weight: u32,
    /// Bytes added to a detour's weighted queue. Default 3200 B (SST's merlin: 50 flits, of 64 B in the Flowcut authors'
    /// runs).
    pub bias: Bytes,
}

impl Default for Config {
    fn default() -> Self {
        let Ugal { weight, bias } = Ugal::default();
        Config { weight, bias }
    }
}

/// The scheme of one switch.
#[derive(Clone, Debug)]
pub struct UgalL {
    ugal: Ugal,
    chosen: Chosen,
}

impl Recipe for Config {
    type Scheme = UgalL;
    const LOOK: Option<Look> = Some(Look::new(0, 2));
    const TRIALS: &'static [&'static str] = &["", "bias = \"0B\""];
    const GOLDEN: Golden = Golden::Dragonfly(&[("", "")]);

    fn facts(&self) -> Facts {
        Facts::plain(true)
    }

    fn build(&self, _site: Site<'_>) -> UgalL {
        UgalL { ugal: Ugal { weight: self.weight, bias: self.bias }, chosen: Chosen::default() }
    }

    fn validate(&self, plan: &Plan) -> Result<Vec<Finding>, Finding> {
        needs_groups(plan)
    }
}

impl Scheme for UgalL {
    #[inline]
    fn interest(&self) -> Interest {
        Interest { queues: true, plain_replies: true, detours: true, ..Interest::default() }
    }

    #[inline]
    fn reads_queues(&self, pkt: &Packet, ports: &[PortIndex], detours: &Detours<'_>) -> bool {
        pkt.is_data() && (ports.len() > 1 || !detours.is_empty())
    }

    #[inline]
    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &mut Packet, ports: &[PortIndex]) -> Verdict {
        if !pkt.is_data() {
            return Verdict::Forward(cx.base_path(pkt, ports));
        }
        let choice = self.ugal.choose_locally(cx, ports);
        self.chosen.take(cx, choice)
    }

    fn counters(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        self.chosen.counters(sink);
    }
}

#[cfg(test)]
mod tests {
    use crate::SchemeConfig;
    use crate::bench::{Bench, Seen, dragonfly, qp};
    use model::{Detour, PortIndex, Psn, Verdict};

    /// A switch in a fabric of five groups of three routers with one link between any two groups. Its ports: the
    /// host, two routers, and the links to other groups that end here.
    fn bench(plan: &model::Plan) -> Bench {
        Bench::new(plan, "g0r0", &SchemeConfig::named("ugal-l").unwrap())
    }

    fn next(bench: &mut Bench, plan: &model::Plan, queues: &[u32], psn: u32) -> Seen {
        bench.queued[..queues.len()].copy_from_slice(queues);
        bench.see(bench.data(qp(plan, 0, 3), Psn::new(psn))) // to the first router of group 1
    }

    #[test]
    fn a_detour_wins_if_twice_its_queue_plus_the_bias_is_shorter() {
        let plan = dragonfly(5, 3, 1);
        let mut bench = bench(&plan);
        let minimal = bench.see(bench.data(qp(&plan, 0, 3), Psn::new(0))).ports;
        let [PortIndex(short)] = minimal[..] else { panic!("{minimal:?}") };
        let busy = |bytes: u32| {
            let mut queues = [1_000; 5];
            queues[usize::from(short)] = bytes;
            queues
        };
        // The threshold is 2 x 1000 B + 3200 B.
        for psn in 0..50 {
            let seen = next(&mut bench, &plan, &busy(5_200), psn);
            assert_eq!((seen.via, seen.verdict), (None, Verdict::Forward(PortIndex(short))));
        }
        let mut over = [0; 5];
        for psn in 0..300 {
            let seen = next(&mut bench, &plan, &busy(5_201), psn);
            match seen.via {
                Some(Detour::Group(g)) => over[usize::from(g)] += 1,
                // One group lies behind the busy port, too.
                None => over[0] += 1,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(over[1], 0, "no detour over the destination's own group");
        assert!(over.iter().filter(|&&n| n > 60).count() >= 3, "{over:?}");
        assert_eq!(bench.counter("ways_minimal") + bench.counter("ways_detour"), 351);
    }
}
