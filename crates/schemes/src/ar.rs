//! Adaptive routing: every data packet joins the shortest of the equal-cost queues.
//!
//! The papers that compare with "AR" do not define it. Our choice is the strongest local form: for every packet, each
//! switch takes the equal-cost port with the fewest bytes waiting. The frame on the wire does not count. Ties are broken
//! by a draw, since taking the first port would load low port numbers and starve high ones.

use crate::{Facts, Recipe, choice, palette::Look};
use model::fabric::Detours;
use model::{Cx, Interest, Packet, PortIndex, Scheme, Site, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[scheme.ar]`: nothing to set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SchemeAr")]
pub struct Config {}

/// The scheme; it has no state.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ar;

impl Recipe for Config {
    type Scheme = Ar;
    const LOOK: Option<Look> = Some(Look::new(0, 3));

    fn facts(&self) -> Facts {
        Facts::plain(true)
    }

    fn build(&self, _site: Site<'_>) -> Ar {
        Ar
    }
}

/// Bytes that wait at a port.
#[inline]
pub(crate) fn load(queued: &[u32], port: PortIndex) -> u32 {
    queued.get(port.index()).copied().unwrap_or(0)
}

impl Scheme for Ar {
    #[inline]
    fn interest(&self) -> Interest {
        Interest { queues: true, plain_replies: true, ..Interest::default() }
    }

    #[inline]
    fn reads_queues(&self, pkt: &Packet, ports: &[PortIndex], _: &Detours<'_>) -> bool {
        pkt.is_data() && ports.len() > 1
    }

    #[inline]
    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &mut Packet, ports: &[PortIndex]) -> Verdict {
        if !pkt.is_data() || ports.len() == 1 {
            return Verdict::Forward(cx.base_path(pkt, ports));
        }
        Verdict::Forward(choice::least(cx, ports, |cx, port| load(cx.queued, port).into()).0)
    }
}

#[cfg(test)]
mod tests {
    use crate::SchemeConfig;
    use crate::bench::{Bench, leaf_spine, qp};
    use model::{PortIndex, Psn, Verdict};

    #[test]
    fn the_shortest_queue_wins_and_ties_are_drawn() {
        let plan = leaf_spine(2, 4, 1);
        let qp = qp(&plan, 0, 1);
        let mut bench = Bench::new(&plan, "leaf0", &SchemeConfig::named("ar").unwrap());
        let mut next = |queues: [u32; 5], psn| {
            bench.queued.copy_from_slice(&queues);
            let pkt = bench.data(qp, Psn::new(psn));
            match bench.see(pkt).verdict {
                Verdict::Forward(PortIndex(port)) => port as usize,
                other => panic!("{other:?}"),
            }
        };
        // Port 0 leads to the host and is no candidate, however short its queue.
        assert_eq!(next([0, 3000, 3000, 1500, 4500], 0), 3);
        let mut loads = [0; 5];
        for psn in 0..6_000 {
            loads[next([0, 1500, 3000, 1500, 1500], psn)] += 1;
        }
        assert_eq!((loads[0], loads[2]), (0, 0));
        assert!([1, 3, 4].iter().all(|&p| (1_880..2_120).contains(&loads[p])), "{loads:?}");
    }
}
