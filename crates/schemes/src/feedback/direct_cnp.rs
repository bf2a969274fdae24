//! Direct CNPs: a switch that would mark a packet also sends a CNP to its sender.
//!
//! In the ToRs of a datacentre, for flows that leave it, this is the near-source loop of Annulus (Saeed et al., "Annulus: A
//! Dual Congestion Control Loop for Datacenter and WAN Traffic Aggregates", SIGCOMM'20), whose switches send notifications
//! in the manner of QCN. In all switches, for all flows, it is what the long-haul paper calls the naive solution. Packets
//! keep their marks, so receivers report the same congestion again, and a flow that crosses several congested switches
//! gets CNPs from each of them. So senders slow down more often than they should; this part exists to show that.
//!
//! The switch decides as a packet arrives, by the marking settings of its port and the queue at that moment (QCN samples
//! at arrival, too). This draw is independent of the mark that the packet may get when it leaves.
//!
//! # Counters
//!
//! | name | counts |
//! |---|---|
//! | `cnps_due` | packets that called for a CNP |
//! | `cnps_made` | CNPs sent, for packets after which the interval had passed |

use super::{Feedback, FeedbackRecipe, Needs};
use crate::flows::Flows;
use crate::palette::Look;
use finding::{Finding, code};
use model::plan::Marking;
use model::{Cx, Fabric, HostId, Kind, Packet, Plan, PortIndex, Psn, Site, Time, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[feedback.direct-cnp]`, or `[switch-role.ROLE.feedback.direct-cnp]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "FeedbackDirectCnp")]
pub struct Config {
    /// Shortest time between two CNPs of this switch for one flow; at 0 every packet that would be marked causes one
    /// (long-haul prototype, its version in which every switch notifies). Default 50 us (our choice: the usual interval
    /// of receivers).
    pub interval: Time,
    /// Propagation delay, one way, that a flow's path must exceed for its sender to get CNPs; at 0 all senders get them.
    /// Default 0 (our choice). For Annulus, set more than any path within a datacentre has, such as 100 us.
    pub beyond: Time,
    /// Restricts CNPs to packets that come from a host of this switch, that is to the source's ToR (Annulus). Default
    /// false (our choice).
    pub from_hosts: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config { interval: Time::from_us(50), beyond: Time::ZERO, from_hosts: false }
    }
}

/// Time of the last CNP to a flow's sender, if any.
#[derive(Clone, Copy, Debug, Default)]
struct LastCnp(Option<Time>);

/// The feedback of one switch.
#[derive(Clone, Debug)]
pub struct DirectCnp {
    interval: Time,
    from_hosts: bool,
    /// Marking settings, by port.
    marking: Vec<Option<Marking>>,
    /// Sending host of every queue pair, and whether its path is longer than `beyond`.
    senders: Vec<(HostId, bool)>,
    frame: u32,
    last_cnp: Flows<LastCnp>,
    due: u64,
    made: u64,
}

/// The sending host of every queue pair, and whether its path is longer than `beyond`; every path is, if that is zero.
pub(crate) fn senders(plan: &Plan, beyond: Time) -> Vec<(HostId, bool)> {
    let far = |from, to| beyond == Time::ZERO || path_delay(&plan.fabric, from, to) > beyond;
    plan.qps.iter().map(|qp| (qp.from, far(qp.from, qp.to))).collect()
}

/// Propagation delay, one way, of a path between two hosts.
fn path_delay(fabric: &Fabric, from: HostId, to: HostId) -> Time {
    let up = fabric.uplink(from);
    let (mut node, mut sum) = (up.to, up.delay.ps());
    // A path visits no node twice, so the loop ends.
    for _ in 0..fabric.nodes() {
        if fabric.is_host(node) {
            break;
        }
        let Some(port) = fabric.route(node, to).first() else { break };
        let link = fabric.ports(node)[usize::from(port.0)];
        sum = sum.saturating_add(link.delay.ps());
        node = link.to;
    }
    Time(sum)
}

impl FeedbackRecipe for Config {
    type Feedback = DirectCnp;
    const LOOK: Look = Look::new(6, 2);
    const TRIALS: &'static [&'static str] = &["interval = \"3us\"\nbeyond = \"1us\""];

    fn build(&self, site: Site<'_>) -> DirectCnp {
        let plan = site.plan;
        let base = plan.fabric.base(site.node) as usize;
        let ports = plan.fabric.ports(site.node).len();
        DirectCnp {
            interval: self.interval,
            from_hosts: self.from_hosts,
            marking: plan.ports[base..base + ports].iter().map(|port| port.marking).collect(),
            senders: senders(plan, self.beyond),
            frame: plan.wire.cnp,
            last_cnp: Flows::new(),
            due: 0,
            made: 0,
        }
    }

    fn validate(&self, plan: &Plan) -> Result<Vec<Finding>, Finding> {
        let marks = plan.ports.iter().any(|port| port.marking.is_some());
        let text = "no switch marks packets (`ecn = \"off\"`), so no sender gets a CNP";
        Ok(if marks { Vec::new() } else { vec![code::NO_MARKS.plain(text)] })
    }
}

impl Feedback for DirectCnp {
    fn needs(&self) -> Needs {
        Needs { queues: true, ..Needs::default() }
    }

    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &mut Packet, port: PortIndex) -> Verdict {
        if pkt.is_data()
            && (cx.from_host || !self.from_hosts)
            && let Some(marking) = self.marking[usize::from(port.0)]
            && let Some(&(sender, true)) = self.senders.get(pkt.qp().index())
        {
            let queue = u64::from(cx.queued[usize::from(port.0)]);
            if marking.marks(queue, || cx.draw()) {
                self.due += 1;
                let last_cnp = self.last_cnp.entry(pkt.qp());
                if last_cnp.0.is_none_or(|at| cx.now.ps() - at.ps() >= self.interval.ps()) {
                    last_cnp.0 = Some(cx.now);
                    self.made += 1;
                    cx.emit(Packet::new(Kind::Cnp, pkt.qp(), sender, Psn::new(0), self.frame));
                }
            }
        }
        Verdict::Forward(port)
    }

    fn counters(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("cnps_due", self.due);
        sink("cnps_made", self.made);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SchemeConfig;
    use crate::bench::{Bench, leaf_spine, qp};
    use crate::feedback::FeedbackConfig;
    use model::plan::MarkAt;
    use model::{Bytes, Probability};
    use std::collections::BTreeSet;

    /// Lets all ports mark from 10 kB on, at 20 kB with this probability, and always above.
    fn mark(plan: &mut Plan, pmax: f64) {
        let (kmin, kmax, pmax) = (Bytes(10_000), Bytes(20_000), Probability::new(pmax));
        let marking = Marking { kmin, kmax, pmax, at: MarkAt::Dequeue, weight: 0 };
        plan.ports.iter_mut().for_each(|port| port.marking = Some(marking));
    }

    #[test]
    fn a_long_queue_sends_one_cnp_per_interval_and_marks_no_packet() {
        let mut plan = leaf_spine(2, 2, 2);
        mark(&mut plan, 0.2);
        let far = qp(&plan, 0, 2);
        let cases = [
            ("leaf0", Time::ZERO, false, 2),
            ("leaf0", Time::from_us(3), true, 2),
            ("leaf0", Time::from_us(4), false, 0),
            ("spine0", Time::ZERO, false, 2),
            ("spine0", Time::ZERO, true, 0),
        ];
        for (switch, beyond, from_hosts, cnps) in cases {
            let config = Config { beyond, from_hosts, ..Config::default() };
            let mut bench = Bench::telling(&plan, switch, &FeedbackConfig::DirectCnp(config));
            let mut made = 0;
            for (us, queue) in [(0, 10_000), (1, 20_001), (2, 20_001), (50, 30_000), (51, 30_000)] {
                bench.now = Time::from_us(us);
                bench.queued.iter_mut().for_each(|bytes| *bytes = queue);
                let pkt = bench.data(far, Psn::new(0));
                let seen = bench.see(pkt);
                made += seen.emitted.len();
                assert!(matches!(seen.verdict, Verdict::Forward(_)) && !seen.pkt.marked());
                assert!(seen.emitted.iter().all(|cnp| cnp.kind() == Kind::Cnp && cnp.to() == HostId(0)));
            }
            assert_eq!(made, cnps, "{switch}, flows beyond {beyond}");
        }
    }

    /// A scheme that draws a port must not decide thereby who gets a CNP.
    #[test]
    fn marks_fall_on_packets_of_all_ports_whatever_the_scheme_draws() {
        let mut plan = leaf_spine(2, 8, 1);
        mark(&mut plan, 0.25);
        let (far, node) = (qp(&plan, 0, 1), plan.fabric.find("leaf0").unwrap());
        let drill = SchemeConfig::Drill(crate::drill::Config { m: 0, ..Default::default() });
        for config in [SchemeConfig::named("rps").unwrap(), drill, SchemeConfig::named("ar").unwrap()] {
            let (name, site) = (config.name(), Site { plan: &plan, node });
            let scheme = config.build(site);
            let config = Config { interval: Time::ZERO, ..Config::default() };
            let mut bench =
                Bench::with(&plan, "leaf0", scheme.telling(FeedbackConfig::DirectCnp(config).build(site)));
            bench.queued.fill(15_000);
            let mut told = BTreeSet::new();
            for _ in 0..400 {
                let seen = bench.see(bench.data(far, Psn::new(0)));
                if let (Verdict::Forward(port), [_]) = (seen.verdict, &seen.emitted[..]) {
                    told.insert(port);
                }
            }
            // DRILL's samples leave out a port where all queues are equal.
            assert!(told.len() >= 7, "{name}: {told:?}");
        }
    }
}
