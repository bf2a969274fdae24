//! Claim: a host that grants credit shares its link among its senders and keeps the queue before it short. The engines
//! agree on the outcome.
//!
//! The granter, the controls that obey it and the annex's demands are a test's own; the rest is a scenario's.

use crate::lab::{agreed, agreed_on, lay, leaf_spine};
use engine::outcome::{Ending, Outcome};
use model::granter::{Arrival, Grant};
use model::steering::Sent;
use model::{
    Allowance, Congestion, Granter, HostId, Pace, Parts, Plan, QpId, QpSite, Site, Stamp, Steering, Time,
};
use rnic::{CongestionConfig, TransportConfig};
use sim::RealParts;
use std::collections::{BTreeMap, VecDeque};

type Real = RealParts<'static, Stamp>;

/// Packets that a sender may send without a grant.
const FREE: u64 = 8;
/// Packets of a grant.
const QUANTUM: u64 = 4;

/// Grants packets to one queue pair after the other, a packet per `spacing`.
struct Pacer {
    spacing: Time,
    /// Packets demanded and granted, by queue pair.
    sums: BTreeMap<QpId, (u64, u64)>,
    /// Queue pairs whose demand exceeds their grants, in the order of their turns.
    ring: VecDeque<QpId>,
    next: Time,
}

impl Granter for Pacer {
    fn demand(&mut self, _: Time, qp: QpId, total: u64) {
        let (demanded, granted) = self.sums.entry(qp).or_insert((0, FREE));
        *demanded = total.max(*demanded);
        if *demanded > *granted && !self.ring.contains(&qp) {
            self.ring.push_back(qp);
        }
    }

    fn arrived(&mut self, _: Time, arrival: Arrival) {
        assert!(!arrival.cut && arrival.frame > 0 && self.sums.contains_key(&arrival.qp));
    }

    fn deadline(&self) -> Time {
        if self.ring.is_empty() { Time::NEVER } else { self.next }
    }

    fn grant(&mut self, now: Time) -> Option<Grant> {
        if now < self.next {
            return None;
        }
        let qp = self.ring.pop_front()?;
        let (demanded, granted) = self.sums.get_mut(&qp)?;
        let packets = QUANTUM.min(*demanded - *granted);
        *granted += packets;
        self.next = Time(now.ps() + packets * self.spacing.ps());
        if *demanded > *granted {
            self.ring.push_back(qp);
        }
        Some(Grant { qp, total: *granted, entropy: 0 })
    }
}

/// Sends as many packets as are granted.
struct Credited {
    granted: u64,
    acked: u64,
}

impl Congestion for Credited {
    fn allowance(&mut self, _: Time) -> Allowance {
        Allowance { window: self.granted - self.acked, pace: Pace::UNPACED, not_before: Time::ZERO }
    }

    fn on_ack(&mut self, _: Time, packets: u64, _: bool) {
        self.acked += packets;
    }

    fn on_grant(&mut self, _: Time, total: u64) {
        self.granted = self.granted.max(total);
    }
}

/// Writes the length of the message on every packet.
struct Demanding;

impl Steering for Demanding {
    type Annex = Stamp;

    fn on_send(&mut self, now: Time, sent: Sent) -> Stamp {
        let mut stamp = Stamp::new(0, now);
        stamp.set_tag(sent.seq + 1 + sent.left);
        stamp
    }
}

/// A scenario's parts with credit; without a pacer, all packets may leave at once.
struct WithCredit {
    parts: Real,
    spacing: Option<Time>,
}

impl Parts for WithCredit {
    type Scheme = <Real as Parts>::Scheme;
    type Sender = <Real as Parts>::Sender;
    type Receiver = <Real as Parts>::Receiver;
    type Congestion = Credited;
    type Annex = Stamp;
    type Steering = Demanding;
    type Granter = Pacer;

    fn scheme(&self, site: Site<'_>) -> Self::Scheme {
        self.parts.scheme(site)
    }

    fn sender(&self, plan: &Plan, qp: QpId) -> Self::Sender {
        self.parts.sender(plan, qp)
    }

    fn receiver(&self, plan: &Plan, qp: QpId) -> Self::Receiver {
        self.parts.receiver(plan, qp)
    }

    fn congestion(&self, _: &Plan, _: QpId) -> Credited {
        Credited { granted: if self.spacing.is_some() { FREE } else { u64::MAX }, acked: 0 }
    }

    fn steering(&self, _: QpSite<'_>) -> Demanding {
        Demanding
    }

    fn granter(&self, _: &Plan, _: HostId) -> Pacer {
        let (sums, ring) = (BTreeMap::new(), VecDeque::new());
        let next = if self.spacing.is_some() { Time::ZERO } else { Time::NEVER };
        Pacer { spacing: self.spacing.unwrap_or(Time::ZERO), sums, ring, next }
    }
}

/// Packets of each message.
const PACKETS: u64 = 700;

/// Two senders of equal messages to one host, over a switch.
fn two_to_one(switch: &str) -> String {
    format!(
        "[topology.links]\nhosts = 3\nswitches = [\"s\"]\nrate = \"100Gbps\"\n\
         links = [[\"host0\", \"s\"], [\"host1\", \"s\"], [\"host2\", \"s\"]]\n{switch}\n[nic.transport.ideal]\n\
         [[workload]]\nincast = {{ receiver = \"host0\", senders = 2, bytes = \"{}B\" }}\n",
        PACKETS * 1438
    )
}

fn run(text: &str, spacing: Option<Time>) -> Outcome {
    let checked = Box::leak(Box::new(lay(text)));
    let parts = WithCredit { parts: RealParts::new(&checked.schemes, &checked.nics), spacing };
    agreed(&checked.plan, &parts, text)
}

/// Time of a full frame with its gap at 100 Gb/s: 1520 bytes.
const FRAME: Time = Time::from_ps(121_600);

#[test]
fn a_pacer_shares_the_link_and_keeps_its_queue_short() {
    for switch in
        ["", "[switch]\nclasses = \"one\"", "[switch]\nclasses = \"cnp-first\"\necn = { mark = \"enqueue\" }"]
    {
        let text = two_to_one(switch);
        let (paced, free) = (run(&text, Some(FRAME)), run(&text, None));
        let longest = |run: &Outcome| run.links.iter().map(|l| l.max_queue).max().unwrap_or(0);
        assert!(longest(&free) > PACKETS * 1500 / 2, "two senders at line rate fill the queue");
        // The free packets of both senders, and a grant of each.
        assert!(longest(&paced) <= (2 * FREE + 2 * QUANTUM) * 1500, "{} B", longest(&paced));
        assert_eq!(paced.control.grants, 2 * (PACKETS - FREE).div_ceil(QUANTUM));
        assert_eq!(free.control.grants, 0);
        // The senders take turns, so both messages end within a few grants of each other, and the link is never
        // idle for longer than the round trip before the first grants take effect.
        let [a, b] = [paced.messages[0].received, paced.messages[1].received];
        assert!(a.since(b) + b.since(a) <= Time(3 * QUANTUM * FRAME.ps()), "{a} and {b}");
        let busy = Time(2 * PACKETS * FRAME.ps());
        assert!(paced.end.since(busy) < Time::from_us(20), "{} for {busy} of frames", paced.end);
    }
}

#[test]
fn half_the_grants_make_half_the_rate() {
    let text = two_to_one("");
    let run = run(&text, Some(Time(2 * FRAME.ps())));
    let granted = 2 * (PACKETS - FREE) - QUANTUM;
    let least = Time(granted * 2 * FRAME.ps());
    assert!(run.end > least && run.end.since(least) < Time::from_us(20), "{} after {least}", run.end);
}

/// A link dies for a while, and takes with it the packets that ask for credit and the credit that is on its way.
#[test]
fn credit_that_is_lost_holds_no_message_forever() {
    let modes = || TransportConfig::all().filter(|mode| mode.facts().sacks);
    let controls = CongestionConfig::all().filter(|control| control.facts().grants.is_some());
    let pairs: Vec<_> =
        controls.flat_map(|control| modes().map(move |mode| (mode, control.clone()))).collect();
    assert!(pairs.len() >= 9);
    for (mode, control) in pairs {
        let text = format!(
            "{}[[failure]]\nlinks = [[\"host0\", \"*\"]]\nat = \"9us\"\nuntil = \"40us\"\n\
             [nic]\ntimeout = {{ fixed = \"60us\" }}\n[nic.transport.{}]\n[nic.congestion.{}]\n\
             [[workload]]\nflows = {{ list = [{{ from = \"host0\", to = \"host3\", bytes = \"300kB\" }}] }}\n",
            leaf_spine(2, 2, 2, "rate = \"100Gbps\"\ndelay = \"500ns\""),
            mode.name(),
            control.name(),
        );
        let run = agreed_on(&lay(&text), &text);
        assert_eq!(run.ending, Ending::Finished, "{text}");
    }
}
