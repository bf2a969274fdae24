//! Themis-D, the destination ToR, around [`themis::Rule`]: it records departures, judges NACKs, keeps the NACKs that it
//! has blocked, and asks for them when the rule owes one.

use crate::qp::{Answer, Connection, Connections, Departure, Evidence, NextPacket, Packet, Unknown};
use crate::recent::FlowHint;
use crate::units::{PortId, Span, Time};
use std::net::IpAddr;
use themis::{Flow, Psn, Reason, Rule, Settings, Verdict};
use wire::bth::Qpn;

/// Longest NACK that the ToR can keep: Ethernet, two VLAN tags, IPv6, UDP, BTH, AETH and ICRC take 90 bytes.
const LONGEST: usize = 96;
/// A ring's entry that no packet has.
const NO_PSN: u32 = u32::MAX;
/// Times that a receiver must throw packets away before the ToR says so. Our choice: once may be a loss.
const DROPS: u8 = 8;

/// Breaches within [`BREACH_TIME`] after which a flow's NACKs pass unjudged. Our choice: a sender that repeats packets
/// after a timeout looks like a breach or two.
const BREACHES: u8 = 8;
/// Time in which breaches count together.
const BREACH_TIME: Span = Span::from_secs(1);

/// What becomes of a blocked NACK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnBlock {
    /// It becomes the ACK that it also is: of all packets before the one that it names.
    #[default]
    Ack,
    /// It is dropped.
    Drop,
}

/// A verdict with the connection that it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judged {
    /// Number of the flow in its table.
    pub flow: u32,
    /// Queue pair at the responder, to which the data goes.
    pub responder: Qpn,
    /// PSN that the NACK names.
    pub psn: Psn,
    /// The verdict.
    pub verdict: Verdict,
}

/// What a reply means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// Send it on: it is an ACK of a known flow.
    Pass,
    /// Send it on: nothing is known.
    FailOpen(Unknown),
    /// Send it on: its flow was known, and is no longer.
    Unlearnt(u32),
    /// A NACK was judged. With `ack`, the blocked NACK becomes an ACK with these credits.
    Judged { judged: Judged, ack: Option<u8> },
    /// A NACK is too long to be kept, so it is sent on.
    TooLong,
    /// A NACK of a flow whose paths are no FIFOs is sent on.
    Breach,
}

/// What a departure means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Departed {
    /// The flow, and what lets its next packet find it at once.
    pub(crate) flow: Option<FlowHint>,
    /// A new flow, or the change of one.
    pub(crate) change: Option<Departure>,
    /// The flow whose blocked NACK must be sent now.
    pub(crate) owed: Option<u32>,
    /// The receiver of this flow throws away what arrives out of order. Said once.
    pub(crate) drops: Option<u32>,
    /// The paths of this flow are no FIFOs, so its NACKs pass from now on. Said once.
    pub(crate) breach: bool,
}

/// A flow as Themis-D knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowView {
    /// Host that sends the data.
    pub requester: IpAddr,
    /// Host that receives it.
    pub responder: IpAddr,
    /// Queue pair of the responder.
    pub qp: Qpn,
    /// Queue pair of the requester, if it has been learnt.
    pub requester_qp: Option<Qpn>,
    /// NACKs judged and forwarded.
    pub forwarded: u32,
    /// NACKs blocked.
    pub blocked: u32,
    /// NACKs that the ToR sent itself.
    pub compensated: u32,
}

impl Departed {
    /// True for the usual packet of a flow, which nobody has to hear about.
    #[inline]
    pub(crate) fn is_usual(&self) -> bool {
        self.change.is_none() && self.owed.is_none() && self.drops.is_none() && !self.breach
    }
}

#[derive(Clone, Copy, Debug)]
struct Guarded {
    flow: Flow,
    /// PSN that the kept NACK names.
    held_psn: Psn,
    held: [u8; LONGEST],
    /// Length of the kept NACK; 0 for none.
    held_len: u8,
    /// Credits of the last ACK.
    credits: u8,
    /// Times that the receiver threw packets away, up to [`DROPS`].
    drops: u8,
    /// NACKs forwarded, blocked and sent by the ToR.
    verdicts: [u32; 3],
    /// True if the receiver has been seen to keep a packet that arrived out of order.
    keeps: bool,
    /// Times that a packet came behind a later one of its own slot, up to [`BREACHES`].
    breaches: u8,
    /// Time of the first of them.
    breached: Time,
    /// PSN that the last NACK named which went to the sender: its packet may come again.
    asked: Option<Psn>,
    /// A late packet has passed, and packets up to the second PSN have passed before it. A receiver that keeps them
    /// acknowledges them together with the late one. One that drops them needs them again.
    probe: Option<(Psn, Psn)>,
}

const FRESH: Guarded = Guarded {
    flow: Flow::new(),
    held_psn: Psn::new(0),
    held: [0; LONGEST],
    held_len: 0,
    credits: 31,
    drops: 0,
    verdicts: [0; 3],
    keeps: false,
    breaches: 0,
    breached: Time::ZERO,
    asked: None,
    probe: None,
};

/// Settings of the guard.
#[derive(Clone, Debug)]
pub(crate) struct Config<'a> {
    pub(crate) settings: Settings,
    pub(crate) on_block: OnBlock,
    pub(crate) connections: usize,
    pub(crate) idle: Span,
    pub(crate) evidence: &'a [Evidence],
    pub(crate) fixed: &'a [Connection],
    pub(crate) ports: usize,
    /// Watch whether paths are FIFOs. Emulated spines are.
    pub(crate) audit: bool,
    pub(crate) seed: u64,
}

/// The state of all destination ToRs.
#[derive(Debug)]
pub(crate) struct Guard {
    rule: Rule,
    on_block: OnBlock,
    audit: bool,
    pub(crate) connections: Connections,
    guarded: Box<[Guarded]>,
    rings: Box<[u32]>,
}

impl Guard {
    pub(crate) fn new(config: &Config<'_>) -> Result<Self, themis::RuleError> {
        let rule = Rule::new(config.settings)?;
        Ok(Guard {
            rule,
            on_block: config.on_block,
            audit: config.audit,
            connections: Connections::new(
                config.connections,
                config.ports,
                config.idle,
                config.evidence,
                config.fixed,
                config.seed,
            ),
            guarded: vec![FRESH; config.connections].into(),
            rings: vec![NO_PSN; config.connections * rule.ring_len()].into(),
        })
    }

    /// Does what [`Guard::depart`] does, if that is no more than to record the packet: its flow is known by the hint, and
    /// nobody waits for anything. Otherwise it changes nothing and returns false.
    #[inline]
    pub(crate) fn depart_usual(&mut self, now: Time, next: &NextPacket, hint: FlowHint) -> bool {
        if self.audit || !self.connections.continues(next, hint) {
            return false;
        }
        let Some(guarded) = self.guarded.get_mut(hint.number as usize) else { return false };
        let ring = self.rule.ring_len();
        let Some(storage) = self.rings.get_mut(hint.number as usize * ring..).and_then(|r| r.get_mut(..ring))
        else {
            return false;
        };
        if guarded.probe.is_some() || !self.rule.on_plain_depart(&mut guarded.flow, storage, next.psn) {
            return false;
        }
        self.connections.depart_next(now, next, hint.number);
        true
    }

    /// Records that a packet of the request stream starts its transmission to `port`.
    #[inline]
    pub(crate) fn depart(
        &mut self,
        now: Time,
        packet: &Packet,
        span: u32,
        port: PortId,
        hint: Option<FlowHint>,
    ) -> Departed {
        let departure = self.connections.depart(now, packet, span, port, hint);
        let number = match departure {
            Departure::Known(number) => number,
            Departure::New(number) | Departure::Again(number, _) => {
                self.guarded[number as usize] = FRESH;
                let ring = self.rule.ring_len();
                self.rings[number as usize * ring..][..ring].fill(NO_PSN);
                number
            }
            Departure::Refused => return Departed { change: Some(departure), ..Departed::default() },
        };
        let guarded = &mut self.guarded[number as usize];
        let ring = self.rule.ring_len();
        let storage = &mut self.rings[number as usize * ring..][..ring];
        let mut drops = None;
        if let Some((late, high)) = guarded.probe
            && packet.psn.is_after(late)
            && !packet.psn.is_after(high)
            && storage.contains(&packet.psn.value())
        {
            guarded.probe = None;
            guarded.drops = guarded.drops.saturating_add(1);
            drops = (guarded.drops == DROPS && !guarded.keeps).then_some(number);
        }
        let mut breach = false;
        if self.audit && self.connections.flow(number).last().is_after(packet.psn) {
            breach = guarded.audit(now, packet.psn, self.rule.settings().slots, storage);
        }
        let awaited = guarded.flow.pending() == Some(packet.psn);
        let mut owed = None;
        if !self.rule.on_plain_depart(&mut guarded.flow, storage, packet.psn) {
            owed = self.rule.on_depart(&mut guarded.flow, storage, packet.psn);
        }
        if awaited && guarded.probe.is_none() {
            guarded.probe = Some((packet.psn, self.connections.flow(number).last()));
        }
        let owed = owed.filter(|&psn| guarded.held_len > 0 && guarded.held_psn == psn).map(|_| number);
        let change = (!matches!(departure, Departure::Known(_))).then_some(departure);
        if owed.is_some() {
            guarded.asked = Some(guarded.held_psn);
        }
        Departed { flow: Some(self.connections.hint(number)), change, owed, drops, breach }
    }

    /// Judges an ACK or a NACK whose ICRC is right. `frame` is the whole frame.
    pub(crate) fn reply(
        &mut self,
        now: Time,
        packet: &Packet,
        credits: Option<u8>,
        frame: &[u8],
    ) -> (Reply, Option<u32>) {
        let (number, learnt) = match self.connections.answer(now, packet, credits.is_none()) {
            Answer::Flow(number) => (number, None),
            Answer::Learnt(number) => (number, Some(number)),
            Answer::Unlearnt(number) => {
                self.guarded[number as usize] = FRESH;
                return (Reply::Unlearnt(number), None);
            }
            Answer::Unknown(why) => return (Reply::FailOpen(why), None),
        };
        let guarded = &mut self.guarded[number as usize];
        if let Some(credits) = credits {
            guarded.credits = credits;
            guarded.acked(&self.rule, packet.psn);
            return (Reply::Pass, learnt);
        }
        if frame.len() > LONGEST {
            return (Reply::TooLong, learnt);
        }
        if guarded.breaches >= BREACHES {
            return (Reply::Breach, learnt);
        }
        let ring = self.rule.ring_len();
        let storage = &self.rings[number as usize * ring..][..ring];
        let verdict = self.rule.on_nack(&mut guarded.flow, storage, packet.psn);
        let responder = self.connections.responder_qp(number);
        let judged = Judged { flow: number, responder, psn: packet.psn, verdict };
        let mut ack = None;
        guarded.verdicts[usize::from(matches!(verdict, Verdict::Block(_)))] += 1;
        guarded.held_len = 0;
        if let Verdict::Block(_) = verdict {
            guarded.held[..frame.len()].copy_from_slice(frame);
            (guarded.held_len, guarded.held_psn) = (frame.len() as u8, packet.psn);
            ack = (self.on_block == OnBlock::Ack).then_some(guarded.credits);
        } else {
            guarded.asked = Some(packet.psn);
        }
        (Reply::Judged { judged, ack }, learnt)
    }

    /// Takes the blocked NACK of a flow, which is sent now.
    pub(crate) fn take_held(&mut self, number: u32) -> &[u8] {
        let guarded = &mut self.guarded[number as usize];
        guarded.verdicts[2] += 1;
        let len = std::mem::take(&mut guarded.held_len);
        &guarded.held[..usize::from(len)]
    }

    /// Forgets idle flows among the `count` next ones, after as many looks that are left out.
    pub(crate) fn sweep(&mut self, now: Time, count: usize, left_out: u64) {
        let guarded = &mut self.guarded;
        self.connections.skip(left_out, count);
        self.connections.sweep(now, count, |number| guarded[number as usize] = FRESH);
    }

    /// All flows.
    pub(crate) fn flows(&self) -> impl Iterator<Item = FlowView> {
        (0..self.connections.capacity() as u32).filter_map(|number| {
            let (requester, responder, qp) = self.connections.ends(number)?;
            let [forwarded, blocked, compensated] = self.guarded[number as usize].verdicts;
            let requester_qp = self.connections.requester_qp(number);
            Some(FlowView { requester, responder, qp, requester_qp, forwarded, blocked, compensated })
        })
    }

    /// Number of kept NACKs.
    pub(crate) fn held(&self) -> usize {
        self.guarded.iter().filter(|guarded| guarded.held_len > 0).count()
    }
}

impl Guarded {
    /// A packet departs behind later ones. If one of these has its slot, and nobody has asked for the packet again, its path
    /// is no FIFO. Returns true when that has happened too often.
    fn audit(&mut self, now: Time, psn: Psn, slots: u16, ring: &[u32]) -> bool {
        let later = |seen: &u32| {
            let ahead = Psn::new(*seen).distance_from(psn);
            *seen != NO_PSN && ahead > 0 && *seen % u32::from(slots) == psn.value() % u32::from(slots)
        };
        let known = self.asked == Some(psn) || ring.contains(&psn.value());
        if known || self.breaches >= BREACHES || !ring.iter().any(later) {
            return false;
        }
        if self.breaches == 0 || now.since(self.breached) > BREACH_TIME {
            (self.breaches, self.breached) = (0, now);
        }
        self.breaches += 1;
        self.breaches == BREACHES
    }

    fn acked(&mut self, rule: &Rule, psn: Psn) {
        rule.on_ack(&mut self.flow, psn);
        if self.flow.pending().is_none() {
            self.held_len = 0;
        }
        if let Some((_, high)) = self.probe
            && !high.is_after(psn)
        {
            // The late packet was acknowledged together with those before it that were never sent again.
            (self.probe, self.keeps) = (None, true);
        }
    }
}

/// The position of a reason in [`Reason::ALL`].
pub(crate) fn place(reason: Reason) -> usize {
    Reason::ALL.iter().position(|&other| other == reason).unwrap_or(0)
}
