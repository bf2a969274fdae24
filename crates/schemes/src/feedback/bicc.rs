//! BiCC: both ends of a long link take part in congestion control.
//!
//! Wan et al., INFOCOM'24, as the public artefact of the long-haul paper (ICNP'25) compares it, and with a credit for every
//! receiver. It stands in the *external* switches of datacentres, like `long-haul`.
//!
//! * **Near the source**, the switch turns marks into CNPs at once: [`super::long_haul`]'s proactive notification, without an
//!   interval.
//! * **Near the destination**, the switch gives credit to receivers. Data from the long link that goes to a receiver counts
//!   as outstanding from the moment that it enters the datacentre until the receiver acknowledges it. While its outstanding
//!   bytes reach `credit`, later data for it waits in the switch, in a virtual queue of that receiver, and occupies the
//!   buffer.
//!
//! The artefact has one credit for the whole switch, 208 MB, which counts data in both directions; `per = "switch"` does the
//! same. Data to the long link is counted there, but never waits (in the artefact it would; the credit hardly ever binds).
//!
//! A lost packet would never return its credit if its sender waits behind full queues. So a credit that gets no
//! acknowledgement for `forget` while data waits for it counts as unused.
//!
//! # Counters
//!
//! | name | counts |
//! |---|---|
//! | `marks_seen` | marked data packets that started on a wire of the switch |
//! | `cnps_made` | CNPs to their senders |
//! | `cnps_passed` | CNPs from a long link that were forwarded |
//! | `cnps_gated` | CNPs from a long link that ended here; always 0 |
//! | `holds` | packets that waited for credit |
//! | `voq_peak` | most bytes that waited for one receiver, summed over switches |
//! | `stash_peak` | most bytes that waited at one time, summed over switches |
//! | `stash_left` | bytes that wait at the end of the run |
//! | `blocked_us` | time for which data waited for a receiver, summed over receivers, microseconds |
//! | `credits_forgotten` | credits that counted as unused after `forget` |

use super::long_haul::{self, MOST, Notification, Notifier, long_by_port};
use super::{Feedback, FeedbackRecipe, Needs};
use crate::palette::Look;
use finding::{Finding, code};
use model::scheme::Handle;
use model::{Bytes, Cx, HostId, Kind, Packet, Plan, PortIndex, Psn, QpId, Reroute, Site, Time, Verdict};
use rnic::NicConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// `[switch-role.external.feedback.bicc]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "FeedbackBicc")]
pub struct Config {
    /// Shortest time between two CNPs to one flow's sender. Default 0 (ICNP'25 artefact: a CNP for every mark).
    pub interval: Time,
    /// Time from a marked packet until its CNP leaves. Default 2 us (ICNP'25 artefact).
    pub cnp_delay: Time,
    /// Bytes that may be outstanding. Default 13 MB for every receiver (the bandwidth-delay product of the long-haul paper's
    /// longest path, after the artefact), 208 MB for a switch (ICNP'25 artefact).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credit: Option<Bytes>,
    /// Who has a credit: every `"receiver"`, or the whole `"switch"` one for all. Default `"receiver"` (BiCC's virtual
    /// queues; the artefact has one per switch).
    pub per: Per,
    /// Time without acknowledgement after which a credit counts as unused while data waits for it. Default 5 ms (our choice:
    /// five long round trips).
    pub forget: Time,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            interval: Time::ZERO,
            cnp_delay: Time::from_us(2),
            credit: None,
            per: Per::Receiver,
            forget: Time::from_ms(5),
        }
    }
}

/// Who has a credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "BiccPer")]
pub enum Per {
    /// Every receiver.
    Receiver,
    /// The whole switch.
    Switch,
}

impl Config {
    fn credit(&self) -> u64 {
        self.credit.map_or(if self.per == Per::Receiver { 13_000_000 } else { 208_000_000 }, Bytes::get)
    }
}

impl FeedbackRecipe for Config {
    type Feedback = Bicc;
    const LOOK: Look = Look::new(5, 2);
    const TRIALS: &'static [&'static str] = &[
        "credit = \"9kB\"\nforget = \"70us\"",
        "per = \"switch\"\ncredit = \"30kB\"\nforget = \"90us\"\ninterval = \"1us\"",
    ];

    fn build(&self, site: Site<'_>) -> Bicc {
        let plan = site.plan;
        let notification = long_haul::Config {
            notification: Notification::Proactive,
            interval: Some(self.interval),
            cnp_delay: Some(self.cnp_delay),
            ..long_haul::Config::default()
        };
        Bicc {
            long: long_by_port(plan, site.node),
            notifier: Notifier::new(&notification, plan),
            credit: self.credit(),
            per: self.per,
            forget: self.forget.clamp(Time(1), MOST),
            receivers: plan.qps.iter().map(|qp| qp.to).collect(),
            flows: BTreeMap::new(),
            accounts: BTreeMap::new(),
            outstanding: 0,
            deadlines: BTreeSet::new(),
            turn: None,
            bytes: 0,
            counts: Counts::default(),
        }
    }

    fn validate(&self, _: &Plan) -> Result<Vec<Finding>, Finding> {
        if self.credit == Some(Bytes(0)) {
            return Err(code::RANGE.at("credit", "it must be above 0, or no data would ever leave"));
        }
        Ok(Vec::new())
    }

    fn validate_nic(&self, nic: &NicConfig) -> Result<Vec<Finding>, Finding> {
        let text = "bicc waits for acknowledgements, and with `nic.ack-per-message` a message larger than `credit` gets none until \
                    `forget` has passed";
        Ok(if nic.ack_per_message { vec![code::FEW_ACKS.plain(text)] } else { Vec::new() })
    }

    fn needs_long_link(&self) -> bool {
        true
    }
}

/// A packet that waits for credit.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    handle: Handle,
    port: PortIndex,
    to: HostId,
    qp: QpId,
    psn: Psn,
    frame: u32,
}

/// Credit of a receiver, or of the switch, and the data that waits for it.
#[derive(Clone, Debug, Default)]
struct Account {
    outstanding: u64,
    waiting: VecDeque<Waiting>,
    bytes: u64,
    /// Time of the last acknowledgement, or of the last departure if none was outstanding.
    heard: Time,
    /// Time at which data began to wait.
    since: Time,
    /// Deadline after which the credit counts as unused.
    deadline: Option<Time>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    holds: u64,
    voq_peak: u64,
    peak: u64,
    blocked: u64,
    forgotten: u64,
}

/// The feedback of one external switch.
#[derive(Clone, Debug)]
pub struct Bicc {
    /// True for long ports, by port.
    long: Vec<bool>,
    notifier: Notifier,
    credit: u64,
    per: Per,
    forget: Time,
    /// Receiver of every queue pair.
    receivers: Vec<HostId>,
    /// Outstanding packets of every flow: PSN and bytes, in the order of departure.
    flows: BTreeMap<QpId, VecDeque<(Psn, u32)>>,
    /// Accounts by receiver.
    accounts: BTreeMap<HostId, Account>,
    /// Outstanding bytes of all accounts.
    outstanding: u64,
    /// Deadlines of accounts with waiting data.
    deadlines: BTreeSet<(Time, HostId)>,
    /// The receiver whose data left last, where all receivers share a credit.
    turn: Option<HostId>,
    bytes: u64,
    counts: Counts,
}

impl Bicc {
    fn is_long(&self, port: PortIndex) -> bool {
        self.long.get(usize::from(port.0)).copied().unwrap_or(false)
    }

    /// Bytes outstanding against the credit of a receiver.
    fn outstanding(&self, host: HostId) -> u64 {
        match self.per {
            Per::Receiver => self.accounts.get(&host).map_or(0, |account| account.outstanding),
            Per::Switch => self.outstanding,
        }
    }

    /// Counts a packet that leaves.
    fn charge(&mut self, now: Time, host: HostId, (qp, psn, frame): (QpId, Psn, u32)) {
        let account = self.accounts.entry(host).or_default();
        if account.outstanding == 0 {
            account.heard = now;
        }
        account.outstanding += u64::from(frame);
        self.outstanding += u64::from(frame);
        self.flows.entry(qp).or_default().push_back((psn, frame));
    }

    /// Data from the long link; `port` leads to its receiver.
    fn arrive(&mut self, cx: &mut Cx<'_>, pkt: &Packet, port: PortIndex) -> Verdict {
        let (host, frame) = (pkt.to(), pkt.frame());
        let packet = (pkt.qp(), pkt.psn(), frame);
        let waits = self.accounts.get(&host).is_some_and(|account| !account.waiting.is_empty());
        if !waits && self.outstanding(host) < self.credit {
            self.charge(cx.now, host, packet);
            return Verdict::Forward(port);
        }
        let account = self.accounts.entry(host).or_default();
        if account.waiting.is_empty() {
            account.since = cx.now;
        }
        let (qp, psn, _) = packet;
        account.waiting.push_back(Waiting { handle: cx.handle(), port, to: host, qp, psn, frame });
        account.bytes += u64::from(frame);
        self.bytes += u64::from(frame);
        self.counts.holds += 1;
        self.counts.voq_peak = self.counts.voq_peak.max(account.bytes);
        self.counts.peak = self.counts.peak.max(self.bytes);
        self.set_deadline(host);
        self.alarm(cx);
        Verdict::Hold
    }

    /// Sets the deadline of an account whose data waits, if it has none.
    fn set_deadline(&mut self, host: HostId) {
        let Some(account) = self.accounts.get_mut(&host) else { return };
        if account.deadline.is_none() && !account.waiting.is_empty() {
            let at = account.heard.max(account.since) + self.forget;
            account.deadline = Some(at);
            self.deadlines.insert((at, host));
        }
    }

    /// An ACK or a NACK of a receiver: all packets before `psn` have arrived.
    fn acknowledge(&mut self, cx: &mut Cx<'_>, qp: QpId, psn: Psn) {
        let Some(&host) = self.receivers.get(qp.index()) else { return };
        let Some(flow) = self.flows.get_mut(&qp) else { return };
        let mut bytes = 0;
        while let Some(&(sent, frame)) = flow.front()
            && psn.is_after(sent)
        {
            bytes += u64::from(frame);
            flow.pop_front();
        }
        if flow.is_empty() {
            self.flows.remove(&qp);
        }
        if let Some(account) = self.accounts.get_mut(&host) {
            let bytes = bytes.min(account.outstanding);
            account.outstanding -= bytes;
            self.outstanding -= bytes;
            account.heard = cx.now;
        }
        self.let_out(cx, host);
    }

    /// Lets out the data that credit allows: of this receiver, or of all receivers in turn where they share a credit.
    fn let_out(&mut self, cx: &mut Cx<'_>, host: HostId) {
        let mut host = host;
        while self.outstanding(host) < self.credit {
            if self.per == Per::Switch {
                let waits =
                    |(host, account): (&HostId, &Account)| (!account.waiting.is_empty()).then_some(*host);
                let after = self.turn.map_or(HostId(0), |turn| HostId(turn.0 + 1));
                let next = self.accounts.range(after..).find_map(waits);
                let Some(next) = next.or_else(|| self.accounts.iter().find_map(waits)) else { break };
                (self.turn, host) = (Some(next), next);
            }
            let Some(account) = self.accounts.get_mut(&host) else { break };
            let Some(first) = account.waiting.pop_front() else { break };
            account.bytes -= u64::from(first.frame);
            self.bytes -= u64::from(first.frame);
            if account.waiting.is_empty() {
                self.counts.blocked += cx.now.ps() - account.since.ps();
                if let Some(at) = account.deadline.take() {
                    self.deadlines.remove(&(at, host));
                }
            }
            cx.release(first.handle, first.port);
            self.charge(cx.now, host, (first.qp, first.psn, first.frame));
        }
    }

    fn alarm(&self, cx: &mut Cx<'_>) {
        if let Some(&(at, _)) = self.deadlines.first() {
            cx.wake_at(at.max(Time(cx.now.ps() + 1)));
        }
    }

    /// Counts credits as unused that have had no acknowledgement for too long.
    fn give_up(&mut self, cx: &mut Cx<'_>) {
        while let Some(&(at, host)) = self.deadlines.first()
            && at <= cx.now
        {
            self.deadlines.pop_first();
            let Some(account) = self.accounts.get_mut(&host) else { continue };
            account.deadline = None;
            let heard = match self.per {
                Per::Receiver => account.heard,
                Per::Switch => self.accounts.values().map(|account| account.heard).max().unwrap_or_default(),
            };
            if heard + self.forget > cx.now {
                self.accounts.entry(host).or_default().heard = heard;
                self.set_deadline(host);
                continue;
            }
            self.counts.forgotten += 1;
            let all = self.per == Per::Switch;
            for (other, account) in &mut self.accounts {
                if all || *other == host {
                    self.outstanding -= account.outstanding;
                    account.outstanding = 0;
                    account.heard = cx.now;
                }
            }
            let receivers = &self.receivers;
            self.flows.retain(|qp, _| !all && receivers.get(qp.index()) != Some(&host));
            self.let_out(cx, host);
            self.set_deadline(host);
        }
    }
}

impl Feedback for Bicc {
    fn needs(&self) -> Needs {
        Needs { replies: true, departures: true, ..Needs::default() }
    }

    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &mut Packet, port: PortIndex) -> Verdict {
        let (came, leaves) = (self.is_long(cx.ingress), self.is_long(port));
        match pkt.kind() {
            Kind::Data if came && !leaves => return self.arrive(cx, pkt, port),
            Kind::Data if self.per == Per::Switch && leaves => {
                self.charge(cx.now, pkt.to(), (pkt.qp(), pkt.psn(), pkt.frame()));
            }
            // An ACK has the PSN of the last packet received in order, a NACK that of the next one.
            Kind::Ack => self.acknowledge(cx, pkt.qp(), pkt.psn().add(1)),
            Kind::Nack => self.acknowledge(cx, pkt.qp(), pkt.psn()),
            Kind::Cnp if came => {
                self.notifier.passes(cx.now, pkt);
            }
            _ => {}
        }
        Verdict::Forward(port)
    }

    fn on_start(&mut self, cx: &mut Cx<'_>, pkt: &mut Packet, _: PortIndex) {
        if pkt.marked() {
            self.notifier.start(cx, pkt);
        }
    }

    fn on_wake(&mut self, cx: &mut Cx<'_>) {
        self.notifier.wake(cx);
        self.give_up(cx);
        self.alarm(cx);
    }

    fn on_routes_change(&mut self, news: &Reroute<'_>) {
        let router = news.router();
        for waiting in self.accounts.values_mut().flat_map(|account| &mut account.waiting) {
            if news.is_dead(waiting.port)
                && let Some(&port) = router.ports(waiting.to).0.first()
            {
                waiting.port = port;
            }
        }
    }

    fn counters(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        self.notifier.counters(sink);
        let Counts { holds, voq_peak, peak, blocked, forgotten } = self.counts;
        for (name, count) in [
            ("holds", holds),
            ("voq_peak", voq_peak),
            ("stash_peak", peak),
            ("stash_left", self.bytes),
            ("blocked_us", blocked / 1_000_000),
            ("credits_forgotten", forgotten),
        ] {
            sink(name, count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::{Bench, datacentres, qp, reply};
    use crate::feedback::FeedbackConfig;

    fn bench(plan: &Plan, config: Config) -> Bench {
        Bench::telling(plan, "external0", &FeedbackConfig::Bicc(config))
    }

    /// Data of a flow arrives; true if it waits.
    fn waits(bench: &mut Bench, flow: QpId, psn: u32) -> bool {
        let pkt = bench.data(flow, Psn::new(psn));
        bench.see(pkt).verdict == Verdict::Hold
    }

    #[test]
    fn data_waits_for_the_credit_of_its_receiver() {
        let plan = datacentres(2);
        let (one, two) = (qp(&plan, 2, 0), qp(&plan, 3, 1));
        for (per, both) in [(Per::Receiver, false), (Per::Switch, true)] {
            let mut bench = bench(&plan, Config { credit: Some(Bytes(3_000)), per, ..Config::default() });
            let first: Vec<bool> = (0..5).map(|psn| waits(&mut bench, one, psn)).collect();
            assert_eq!(first, [false, false, true, true, true], "two frames of 1500 B fill the credit");
            assert_eq!(waits(&mut bench, two, 0), both, "{per:?}");
            // The ACK of the first packet lets out one more, in order.
            let seen = bench.see(reply(&plan, Kind::Ack, one, Psn::new(0)));
            assert_eq!(seen.released.iter().map(|(handle, _)| handle.0).collect::<Vec<_>>(), [0]);
            assert!(matches!(seen.verdict, Verdict::Forward(_)));
            // A NACK for packet 2 acknowledges packet 1, and one more leaves; receivers take turns.
            let seen = bench.see(reply(&plan, Kind::Nack, one, Psn::new(2)));
            let expected = if both { 3 } else { 1 };
            assert_eq!(seen.released.iter().map(|(handle, _)| handle.0).collect::<Vec<_>>(), [expected]);
            assert_eq!(bench.counter("holds"), 3 + u64::from(both));
            assert_eq!(bench.counter("voq_peak"), 4_500);
            bench.pass(Time::NEVER);
            assert_eq!(bench.counter("stash_left"), 0);
        }
    }

    #[test]
    fn a_credit_without_acknowledgements_counts_as_unused_after_a_while() {
        let plan = datacentres(2);
        let one = qp(&plan, 2, 0);
        let mut bench = bench(&plan, Config { credit: Some(Bytes(1_500)), ..Config::default() });
        assert_eq!((waits(&mut bench, one, 0), waits(&mut bench, one, 1)), (false, true));
        let at = bench.alarm.unwrap();
        assert!(at > Time::from_ms(4) && at < Time::from_us(5_010), "{at}");
        bench.now = at;
        assert_eq!(bench.woken().released.len(), 1);
        assert_eq!((bench.counter("credits_forgotten"), bench.counter("blocked_us")), (1, 5_000));
    }

    #[test]
    fn every_mark_becomes_a_cnp() {
        let plan = datacentres(2);
        let out = qp(&plan, 0, 2);
        let mut bench = bench(&plan, Config::default());
        let mut made = 0;
        for psn in 0..10 {
            let mut pkt = bench.data(out, Psn::new(psn));
            assert!(!waits(&mut bench, out, psn));
            pkt.mark();
            assert!(!bench.start(pkt).0.marked());
            bench.now += Time::from_ns(100);
        }
        // The first CNP has not left yet: each takes 2 us.
        while let Some(at) = bench.alarm {
            bench.now = at;
            made += bench.woken().emitted.len();
        }
        assert_eq!(made, 10);
    }
}
