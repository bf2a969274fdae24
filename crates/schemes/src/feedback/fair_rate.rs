//! Fair rates: the edge of a datacentre tells senders the rate that they should not exceed.
//!
//! A generic model of LSCC and LRCC, for which no public code exists: a switch at the edge knows what the receivers drain,
//! divides it by the active flows, and puts the result into a CNP. It stands in the *external* switches of
//! datacentres, like `long-haul`.
//!
//! * Every `period` the switch counts, for each receiver, bytes and active flows. For receivers in its own datacentre these
//!   are the bytes that they acknowledge, for others the bytes on their way to them. Bytes per period and flow are the
//!   receiver's *fair rate*.
//! * Data that was marked in its own datacentre and is about to leave loses its mark, and its sender gets a CNP with the fair
//!   rate of its receiver, at most one per `interval`.
//! * A CNP of a local receiver that is about to leave becomes a CNP with the fair rate of that receiver, at most one per
//!   `interval`; others end here. A congestion flag on a reply counts as a CNP.
//!
//! The control in the NIC takes the smaller of its rate and the fair rate, and recovers as after a cut of its own (DCQCN).
//! Controls without a rate take the message for a plain CNP.
//!
//! # Counters
//!
//! | name | counts |
//! |---|---|
//! | `marks_seen` | marked data packets that were about to leave their sender's datacentre |
//! | `cnps_made` | CNPs with a fair rate |
//! | `cnps_absorbed` | CNPs and flags of local receivers that ended here |

use super::long_haul::{long_by_port, reports};
use super::{Feedback, FeedbackRecipe, Needs};
use crate::flows::Flows;
use crate::palette::Look;
use finding::{Finding, code};
use model::{Advice, Cx, HostId, Kind, Packet, Plan, PortIndex, Psn, QpId, Rate, Site, Time, Verdict};
use rnic::NicConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `[switch-role.external.feedback.fair-rate]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "FeedbackFairRate")]
pub struct Config {
    /// Time over which the switch counts bytes and flows. Default 10 us (our choice: a round trip within the long-haul
    /// paper's datacentre).
    pub period: Time,
    /// Shortest time between two CNPs to one flow's sender. Default 50 us (our choice: the usual interval of receivers).
    pub interval: Time,
}

impl Default for Config {
    fn default() -> Self {
        Config { period: Time::from_us(10), interval: Time::from_us(50) }
    }
}

impl FeedbackRecipe for Config {
    type Feedback = FairRate;
    const LOOK: Look = Look::new(4, 3);
    const TRIALS: &'static [&'static str] = &["period = \"3us\"\ninterval = \"2us\""];

    fn build(&self, site: Site<'_>) -> FairRate {
        let plan = site.plan;
        FairRate {
            long: long_by_port(plan, site.node),
            period: self.period.max(Time(1)),
            interval: self.interval,
            full: plan.wire.max_frame(),
            ends: plan.qps.iter().map(|qp| (qp.from, qp.to)).collect(),
            frame: plan.wire.cnp,
            receivers: BTreeMap::new(),
            flows: Flows::new(),
            seen: 0,
            made: 0,
            absorbed: 0,
        }
    }

    fn validate(&self, _: &Plan) -> Result<Vec<Finding>, Finding> {
        if self.period == Time::ZERO {
            return Err(code::RANGE.at("period", "it must be longer than 0, or it would count no bytes"));
        }
        Ok(Vec::new())
    }

    fn validate_nic(&self, nic: &NicConfig) -> Result<Vec<Finding>, Finding> {
        let text = "the congestion control takes a fair rate for a plain CNP: it has no rate that a switch can lower";
        Ok(if nic.congestion.advised().rate { Vec::new() } else { vec![code::READ_AS.plain(text)] })
    }

    fn needs_long_link(&self) -> bool {
        true
    }
}

/// Bytes and flows of one receiver.
#[derive(Clone, Copy, Debug, Default)]
struct Receiver {
    /// Number of the open period, and its counts.
    period: u64,
    bytes: u64,
    flows: u64,
    /// Fair rate of the last period that had bytes.
    rate: Option<Rate>,
}

/// State of a flow.
#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    /// Last period in which the flow counted, plus 1.
    counted: u64,
    /// PSN after the last acknowledged packet.
    acked: Option<Psn>,
    last_cnp: Option<Time>,
}

/// The feedback of one external switch.
#[derive(Clone, Debug)]
pub struct FairRate {
    /// True for long ports, by port.
    long: Vec<bool>,
    period: Time,
    interval: Time,
    /// Frame of a full packet, for acknowledged packets.
    full: u32,
    /// Sender and receiver of every queue pair.
    ends: Vec<(HostId, HostId)>,
    frame: u32,
    receivers: BTreeMap<HostId, Receiver>,
    flows: Flows<Flow>,
    seen: u64,
    made: u64,
    absorbed: u64,
}

impl FairRate {
    fn is_long(&self, port: PortIndex) -> bool {
        self.long.get(usize::from(port.0)).copied().unwrap_or(false)
    }

    /// Counts bytes of a flow to its receiver.
    fn count(&mut self, now: Time, host: HostId, qp: QpId, bytes: u64) {
        let (period, length) = (now.ps() / self.period.ps(), self.period);
        let receiver = self.receivers.entry(host).or_default();
        receiver.roll(period, length);
        receiver.bytes += bytes;
        let flow = self.flows.entry(qp);
        if flow.counted != period + 1 {
            flow.counted = period + 1;
            receiver.flows += 1;
        }
    }

    /// Packets that a reply acknowledges for the first time; `psn` is the next one.
    fn newly_acked(&mut self, qp: QpId, psn: Psn) -> u64 {
        let flow = self.flows.entry(qp);
        let before = flow.acked.unwrap_or(Psn::new(0));
        let more = psn.distance_from(before).max(0);
        if more > 0 || flow.acked.is_none() {
            flow.acked = Some(psn);
        }
        more as u64
    }

    /// Sends the flow's sender the fair rate of its receiver, if there is one and the interval has passed.
    fn advise(&mut self, cx: &mut Cx<'_>, qp: QpId) {
        let Some(&(sender, host)) = self.ends.get(qp.index()) else { return };
        let (period, length) = (cx.now.ps() / self.period.ps(), self.period);
        let receiver = self.receivers.entry(host).or_default();
        receiver.roll(period, length);
        let Some(rate) = receiver.rate else { return };
        let flow = self.flows.entry(qp);
        if flow.last_cnp.is_none_or(|at| cx.now.ps() - at.ps() >= self.interval.ps()) {
            flow.last_cnp = Some(cx.now);
            self.made += 1;
            cx.emit(Advice::Rate(rate).cnp(qp, sender, self.frame));
        }
    }
}

impl Receiver {
    /// Opens a period, and computes the fair rate of the one before.
    fn roll(&mut self, period: u64, length: Time) {
        if period == self.period {
            return;
        }
        if self.flows > 0 {
            let bits = u128::from(self.bytes) * 8_000_000_000_000 / u128::from(length.ps());
            self.rate = Some(Rate(u64::try_from(bits / u128::from(self.flows)).unwrap_or(u64::MAX)));
        }
        (self.period, self.bytes, self.flows) = (period, 0, 0);
    }
}

impl Feedback for FairRate {
    fn needs(&self) -> Needs {
        Needs { replies: true, ..Needs::default() }
    }

    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &mut Packet, port: PortIndex) -> Verdict {
        let (came, leaves) = (self.is_long(cx.ingress), self.is_long(port));
        let (now, qp, local) = (cx.now, pkt.qp(), leaves && !came);
        match pkt.kind() {
            Kind::Data if local => {
                self.count(now, pkt.to(), qp, pkt.frame().into());
                if pkt.marked() {
                    self.seen += 1;
                    self.advise(cx, qp);
                    pkt.unmark();
                }
            }
            Kind::Ack | Kind::Nack if local => {
                let next = if pkt.kind() == Kind::Ack { pkt.psn().add(1) } else { pkt.psn() };
                let bytes = self.newly_acked(qp, next) * u64::from(self.full);
                if let Some(&(_, host)) = self.ends.get(qp.index()).filter(|_| bytes > 0) {
                    self.count(now, host, qp, bytes);
                }
            }
            _ => {}
        }
        if local && reports(pkt) {
            self.absorbed += 1;
            self.advise(cx, qp);
            if pkt.kind() == Kind::Cnp {
                return Verdict::Drop;
            }
            *pkt = pkt.with_echo(false);
        }
        Verdict::Forward(port)
    }

    fn counters(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("marks_seen", self.seen);
        sink("cnps_made", self.made);
        sink("cnps_absorbed", self.absorbed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::{Bench, datacentres, qp, reply};
    use crate::feedback::FeedbackConfig;

    fn gbps(cnp: &Packet) -> f64 {
        match Advice::of(cnp) {
            Some(Advice::Rate(rate)) => rate.as_gbps(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_marked_flow_learns_its_share_of_what_goes_to_its_receiver() {
        let plan = datacentres(2);
        let flows = [qp(&plan, 0, 2), qp(&plan, 1, 2)];
        let mut bench = Bench::telling(&plan, "external0", &FeedbackConfig::FairRate(Config::default()));
        // Twenty packets of 1500 B of two flows in a period of 10 us: 24 Gb/s.
        for n in 0..20 {
            bench.now = Time::from_ns(20_000 + 400 * n);
            let pkt = bench.data(flows[n as usize % 2], Psn::new(n as u32));
            assert!(bench.see(pkt).emitted.is_empty());
        }
        let mut made = Vec::new();
        for us in [31, 35, 79, 82] {
            bench.now = Time::from_us(us);
            let mut pkt = bench.data(flows[0], Psn::new(99));
            pkt.mark();
            let seen = bench.see(pkt);
            assert!(!seen.pkt.marked());
            made.extend(seen.emitted.iter().map(|cnp| (us, cnp.to().0, gbps(cnp))));
        }
        // At 82 us the last period with bytes is that of the packet at 79 us: one packet in 10 us.
        assert_eq!(made, [(31, 0, 12.0), (82, 0, 1.2)]);
    }

    #[test]
    fn a_cnp_of_a_local_receiver_becomes_a_rate_for_the_remote_sender() {
        let plan = datacentres(2);
        let into = qp(&plan, 2, 0);
        let mut bench = Bench::telling(&plan, "external0", &FeedbackConfig::FairRate(Config::default()));
        let early = bench.see(reply(&plan, Kind::Cnp, into, Psn::new(0)));
        assert_eq!((early.verdict, early.emitted.len()), (Verdict::Drop, 0), "nothing has been counted yet");
        bench.now = Time::from_us(20);
        bench.see(reply(&plan, Kind::Ack, into, Psn::new(9)));
        bench.now = Time::from_us(31);
        let flagged = reply(&plan, Kind::Ack, into, Psn::new(9)).with_echo(true);
        let seen = bench.see(flagged);
        assert!(matches!(seen.verdict, Verdict::Forward(_)) && !seen.pkt.echo());
        // Ten packets of 1500 B in 10 us.
        assert_eq!(seen.emitted.iter().map(|cnp| (cnp.to().0, gbps(cnp))).collect::<Vec<_>>(), [(2, 12.0)]);
        let cnp = bench.see(reply(&plan, Kind::Cnp, into, Psn::new(0)));
        assert_eq!((cnp.verdict, cnp.emitted.len()), (Verdict::Drop, 0), "within the interval");
        let remote = bench.see(reply(&plan, Kind::Cnp, qp(&plan, 0, 2), Psn::new(0)));
        assert!(matches!(remote.verdict, Verdict::Forward(_)), "CNPs for local senders pass");
    }
}
