//! Flowlet switching in every switch: a flow draws a new path after every pause longer than the gap.
//!
//! LetFlow (Vanini et al., "Let It Flow: Resilient Asymmetric Load Balancing with Flowlet Switching", NSDI'17). A switch
//! remembers the port of every flow and the arrival of its last packet. A packet that comes more than `gap` after that
//! begins a flowlet, which draws one of the equal-cost ports; the following packets take the same port. Flowlets on
//! congested paths have longer pauses and leave sooner, which balances the load without any measurement.
//!
//! Our choices: every flow has an entry of its own, while LetFlow's hash table has a fixed size and flows may share an
//! entry. Entries do not age, since an old entry begins a flowlet anyway. `[scheme.flowlet-nic]` does the same in the
//! sender.

use crate::flows::Flows;
use crate::{Facts, Recipe, palette::Look};
use finding::{Finding, code};
use model::{Cx, Interest, Packet, Plan, PortIndex, Scheme, Site, Time, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[scheme.flowlet]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "SchemeFlowlet")]
pub struct Config {
    /// Pause after which a flow draws a new path. A gap longer than the difference in delay between paths keeps the
    /// order; a shorter gap balances better. Default "100us" (ConWeave's simulator, LetFlow at 100 Gb/s).
    pub gap: Time,
}

impl Default for Config {
    fn default() -> Self {
        Config { gap: Time::from_us(100) }
    }
}

/// Refuses a gap of zero; `spraying` names the scheme that such a gap would amount to.
pub(crate) fn check_gap(gap: Time, spraying: &str) -> Result<(), Finding> {
    match gap {
        Time::ZERO => Err(code::RANGE
            .at("gap", format!("a gap of 0; it must be longer; `{spraying}` draws a path for every packet"))),
        _ => Ok(()),
    }
}

/// State of a flow in a switch: 5 bytes in hardware (Flowcut switching, Table III).
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Arrival of the last packet.
    last: Time,
    /// Port of the flowlet; [`PortIndex::VIRTUAL`] before the first packet.
    port: PortIndex,
}

impl Default for Entry {
    fn default() -> Self {
        Entry { last: Time::ZERO, port: PortIndex::VIRTUAL }
    }
}

/// The scheme of one switch.
#[derive(Clone, Debug)]
pub struct Flowlet {
    gap: Time,
    flows: Flows<Entry>,
    flowlets: u64,
}

impl Recipe for Config {
    type Scheme = Flowlet;
    const LOOK: Option<Look> = Some(Look::new(7, 2));
    const TRIALS: &'static [&'static str] = &["gap = \"400ns\""];

    fn facts(&self) -> Facts {
        Facts::plain(false)
    }

    fn build(&self, _site: Site<'_>) -> Flowlet {
        Flowlet { gap: self.gap, flows: Flows::new(), flowlets: 0 }
    }

    fn validate(&self, _plan: &Plan) -> Result<Vec<Finding>, Finding> {
        check_gap(self.gap, "rps").map(|()| Vec::new())
    }
}

impl Scheme for Flowlet {
    #[inline]
    fn interest(&self) -> Interest {
        Interest { plain_replies: true, ..Interest::default() }
    }

    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &mut Packet, ports: &[PortIndex]) -> Verdict {
        if !pkt.is_data() || ports.len() == 1 {
            return Verdict::Forward(cx.base_path(pkt, ports));
        }
        let entry = self.flows.entry(pkt.qp());
        // A flow leaves a port at once that no longer leads to the host.
        if cx.now.ps() - entry.last.ps() > self.gap.ps() || !ports.contains(&entry.port) {
            entry.port = ports[cx.pick(ports.len())];
            self.flowlets += 1;
        }
        entry.last = cx.now;
        Verdict::Forward(entry.port)
    }

    fn counters(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("flowlets", self.flowlets);
        sink("flow_entries", self.flows.len() as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SchemeConfig;
    use crate::bench::{Bench, leaf_spine, qp};
    use model::{Psn, QpId};
    use std::collections::BTreeSet;

    fn port(bench: &mut Bench, qp: QpId) -> usize {
        let pkt = bench.data(qp, Psn::new(0));
        match bench.see(pkt).verdict {
            Verdict::Forward(port) => port.index(),
            other => panic!("{other:?}"),
        }
    }

    /// Four racks of one host each, and eight spines; a packet reaches the test switch every 100 ns.
    fn bench(gap: Time) -> (Bench, [QpId; 3]) {
        let plan = leaf_spine(4, 8, 1);
        let bench = Bench::new(&plan, "leaf0", &SchemeConfig::Flowlet(Config { gap }));
        (bench, [1, 2, 3].map(|to| qp(&plan, 0, to)))
    }

    #[test]
    fn a_flow_without_pauses_keeps_its_path() {
        let (mut bench, [a, ..]) = bench(Time::from_ns(100));
        let first = port(&mut bench, a);
        assert!((0..100).all(|_| port(&mut bench, a) == first));
        assert_eq!((bench.counter("flowlets"), bench.counter("flow_entries")), (1, 1));
    }

    #[test]
    fn pauses_draw_every_path_in_time() {
        let (mut bench, [a, b, _]) = bench(Time::from_ns(150));
        // Packets of a and b alternate: each flow pauses for 200 ns.
        let drawn: BTreeSet<usize> = (0..200).map(|_| (port(&mut bench, b), port(&mut bench, a)).1).collect();
        assert_eq!(drawn.len(), 8);
        assert_eq!((bench.counter("flowlets"), bench.counter("flow_entries")), (400, 2));
    }

    #[test]
    fn a_pause_equal_to_the_gap_draws_no_path() {
        let (mut bench, [a, b, _]) = bench(Time::from_ns(200));
        let first = [port(&mut bench, a), port(&mut bench, b)];
        assert!((0..50).all(|_| [port(&mut bench, a), port(&mut bench, b)] == first));
    }

    #[test]
    fn a_gap_of_zero_is_refused() {
        let error = Config { gap: Time::ZERO }.validate(&leaf_spine(2, 2, 1)).unwrap_err();
        assert!(error.path() == "gap" && error.text.contains("`rps`"), "{error}");
    }
}
