//! Themis-D, the destination ToR: which NACKs to forward, which to block, and which to send itself.
//!
//! # The evidence
//!
//! All packets of one slot (PSN mod N) travel one FIFO path. Let the RNIC expect packet e. If a packet q > e of e's slot
//! has reached the ToR and e has not, e is lost. A packet of another slot proves nothing (Themis, APNET'25, Eq. 3). The
//! ToR therefore records the PSNs that it sends to the RNIC, in a ring per QP, and searches the ring when NACK(e) comes
//! up. An RNIC does not repeat a NACK. After a block the ToR remembers e (the paper's BePSN and Valid), and it sends the
//! NACK itself once a later packet proves that e is lost: the *compensation*.
//!
//! # Two modes
//!
//! [`Mode::Literal`] follows the paper's text. It dequeues PSNs up to the first one above e, which it takes for the packet
//! that triggered the NACK (tPSN). If that packet has e's slot, it forwards the NACK; if not, it blocks the NACK and arms
//! without looking further. This is not sound: e may have left the ToR while the NACK was coming up, and then the next
//! packet of e's slot sets off a NACK for a packet that is not lost. On a fast last hop this is the common case.
//!
//! [`Mode::Sound`] searches the whole ring. The first row that applies gives the verdict:
//!
//! | the ring shows | state of e | verdict |
//! |---|---|---|
//! | e before the trigger | lost on the last hop, since that link is FIFO | forward, [`Reason::SeenBefore`] |
//! | e, and as many later entries as the age limit | lost on the last hop | forward, [`Reason::OldEntry`] |
//! | e | on the wire to the RNIC | block, [`Reason::OnTheWire`]; watch e |
//! | not e, but a later packet of its slot | lost in the fabric | forward, [`Reason::SamePath`] |
//! | no packet later than e | unknown: the ring is too short | forward, [`Reason::NoTrigger`] |
//! | only later packets of other slots | unknown | block, [`Reason::OtherPath`]; arm |
//!
//! A sound rule never forwards or sends a NACK for a packet that is not lost, if three conditions hold:
//!
//! * The ring and the age limit cover the last hop's round trip ([`crate::memory::sound_ring_entries`]), counted in the
//!   smallest packets that the QP sends back to back.
//! * The last hop is FIFO.
//! * ACKs and NACKs are not delayed beyond that round trip, for example by a PFC pause of their class.
//!
//! Two losses leave no evidence, and only the sender's timeout repairs them: a loss without a later packet of its slot
//! (the tail of a message), and the loss of a retransmission in the fabric.
//!
//! # Choices where the paper is silent
//!
//! These are ours; comments in the code repeat each of them.
//!
//! * The ToR records a PSN when the packet's transmission *starts*. A packet that the ToR's own queue drops is then an
//!   ordinary loss.
//! * A full ring overwrites its oldest entry.
//! * If the ring holds no trigger, a sound rule forwards the NACK; a literal rule blocks it and arms.
//! * Retransmissions are recorded like any packet: the same PSN has the same slot and the same path.
//! * A new NACK replaces the remembered one (BePSN).
//! * The ring holds truncated PSNs. BePSN and the PSNs of passing packets are whole, as in the paper's 3-byte BePSN.

use crate::{Mode, Psn, Rule};

#[cfg(test)]
mod tests;

/// Why a NACK was forwarded or blocked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// A later packet of the same slot has passed and the named packet has not: it was lost in the fabric.
    SamePath,
    /// The named packet passed before the packet that triggered the NACK: it was lost on the last hop.
    SeenBefore,
    /// The named packet passed longer ago than the last hop's round trip: it was lost on the last hop.
    OldEntry,
    /// No packet in the ring could have triggered this NACK. A literal rule blocks and arms, a sound rule forwards.
    /// A ring that is long enough makes this count 0.
    NoTrigger,
    /// The named packet passed a moment ago and is on its way to the RNIC.
    OnTheWire,
    /// Only packets of other slots have passed, which prove nothing. The flow is armed, see [`Rule::on_depart`].
    OtherPath,
}

impl Reason {
    /// All reasons, in the order of their discriminants.
    pub const ALL: [Self; 6] =
        [Self::SamePath, Self::SeenBefore, Self::OldEntry, Self::NoTrigger, Self::OnTheWire, Self::OtherPath];

    /// The reason's name in results and test vectors, such as `same-path`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SamePath => "same-path",
            Self::SeenBefore => "seen-before",
            Self::OldEntry => "old-entry",
            Self::NoTrigger => "no-trigger",
            Self::OnTheWire => "on-the-wire",
            Self::OtherPath => "other-path",
        }
    }
}

/// Decision on a NACK that comes up from the RNIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub enum Verdict {
    /// Send the NACK on: its packet is lost, or the switch cannot tell.
    Forward(Reason),
    /// Keep the NACK from the sender. It still acknowledges all packets before its PSN, so a caller may turn it into an ACK
    /// instead of dropping it.
    Block(Reason),
}

/// State of a flow after a blocked NACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
enum Wait {
    /// Waits for nothing (the paper's Valid = 0).
    #[default]
    Idle,
    /// Waits for a packet that proves the named packet lost or late (Valid = 1).
    Armed,
    /// Waits for a reply to the named packet, which is on the last hop.
    Watching,
}

/// State of one QP at its destination ToR, without its ring, which the caller stores.
///
/// A QP that is set up again needs a [`Flow::new`]; its ring may keep old entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Flow {
    /// PSN of the blocked NACK (BePSN). Meaningless while idle.
    blocked: Psn,
    /// Ring index of the next write.
    next: u16,
    /// Number of entries written, up to the ring's length.
    len: u16,
    /// Number of the newest entries that no scan has dequeued, up to the ring's length.
    live: u16,
    /// While watching: departures until the watched packet is as old as the age limit.
    left: u16,
    wait: Wait,
}

impl Flow {
    /// The state of a QP without any packet so far.
    pub const fn new() -> Self {
        Self { blocked: Psn::new(0), next: 0, len: 0, live: 0, left: 0, wait: Wait::Idle }
    }

    /// PSN of the blocked NACK that the switch may still have to send, if there is one.
    pub const fn pending(&self) -> Option<Psn> {
        match self.wait {
            Wait::Idle => None,
            Wait::Armed | Wait::Watching => Some(self.blocked),
        }
    }

    /// Ring index of the next write.
    pub const fn next_index(&self) -> usize {
        self.next as usize
    }

    fn arm(&mut self, psn: Psn) {
        (self.blocked, self.wait) = (psn, Wait::Armed);
    }

    /// Watches a packet for `left` more departures; 0 ends the wait at the next departure.
    fn watch(&mut self, psn: Psn, left: u16) {
        (self.blocked, self.left, self.wait) = (psn, left, Wait::Watching);
    }
}

impl Rule {
    /// Records that a data packet starts its transmission to the RNIC. Returns the PSN of the NACK that the switch must now
    /// send to the sender (compensation), if any.
    ///
    /// `ring` is the QP's storage, [`Rule::ring_len`] long. Every data packet of the QP must be recorded; otherwise the
    /// verdicts are worthless.
    #[inline]
    pub fn on_depart(&self, flow: &mut Flow, ring: &mut [u32], psn: Psn) -> Option<Psn> {
        self.record(flow, ring, psn);
        match flow.wait {
            Wait::Idle => None,
            Wait::Armed | Wait::Watching => self.on_awaited(flow, psn),
        }
    }

    /// [`Rule::on_depart`] for a packet that changes nothing but the ring, whatever replies have come up meanwhile. Returns
    /// false, and does nothing, for all other packets.
    #[inline(always)]
    pub fn on_plain_depart(&self, flow: &mut Flow, ring: &mut [u32], psn: Psn) -> bool {
        match flow.wait {
            Wait::Idle => {}
            _ if psn == flow.blocked => return false,
            Wait::Armed
                if psn.is_after(flow.blocked) && self.slots.of(psn) == self.slots.of(flow.blocked) =>
            {
                return false;
            }
            Wait::Armed => {}
            Wait::Watching if flow.left > 1 => flow.left -= 1,
            Wait::Watching => return false,
        }
        self.record(flow, ring, psn);
        true
    }

    /// Records a departure in the ring.
    #[inline(always)]
    fn record(&self, flow: &mut Flow, ring: &mut [u32], psn: Psn) {
        debug_assert_eq!(ring.len(), self.ring_len(), "the ring's storage has the rule's length");
        if let Some(entry) = ring.get_mut(usize::from(flow.next)) {
            *entry = psn.value() & self.mask;
        }
        let length = self.settings.ring;
        flow.next += 1;
        if flow.next >= length {
            flow.next = 0;
        }
        // A full ring has just overwritten its oldest entry (our choice: new evidence is worth more than old).
        flow.len += u16::from(flow.len < length);
        flow.live += u16::from(flow.live < length);
    }

    /// The rest of [`Rule::on_depart`] for a flow that is armed or watching.
    #[inline(never)]
    fn on_awaited(&self, flow: &mut Flow, psn: Psn) -> Option<Psn> {
        let blocked = flow.blocked;
        if psn == blocked {
            // The late packet passes. While watching, this is a second copy of the packet, and the watch starts anew.
            flow.wait = Wait::Idle;
            if self.watches() {
                // Our choice: the RNIC will not repeat the blocked NACK, so follow the packet over the last hop.
                flow.watch(psn, self.settings.age_limit);
            }
            return None;
        }
        let lost = match flow.wait {
            Wait::Idle => false,
            Wait::Armed => psn.is_after(blocked) && self.slots.of(psn) == self.slots.of(blocked),
            Wait::Watching => {
                flow.left = flow.left.saturating_sub(1);
                flow.left == 0
            }
        };
        if lost {
            flow.wait = Wait::Idle;
        }
        lost.then_some(blocked)
    }

    /// Records that an ACK passes up from the RNIC. `acked` is its PSN, the last packet that it acknowledges (cumulative:
    /// ePSN - 1).
    ///
    /// Only a rule with [`crate::Settings::watch`] needs this call. Such a rule follows a packet over the last hop after it
    /// has blocked the packet's NACK. If as many later packets leave as the age limit says, and no ACK or NACK covers the
    /// packet, it was lost there, and the switch sends its NACK.
    #[inline]
    pub fn on_ack(&self, flow: &mut Flow, acked: Psn) {
        // An ACK may also cover an armed packet: the RNIC has it, and the ring was too short to show that.
        if self.watches() && flow.wait != Wait::Idle && !flow.blocked.is_after(acked) {
            flow.wait = Wait::Idle;
        }
    }

    /// Judges a NACK for `expected` (ePSN) that comes up from the RNIC.
    ///
    /// `ring` is the QP's storage as in [`Rule::on_depart`].
    pub fn on_nack(&self, flow: &mut Flow, ring: &[u32], expected: Psn) -> Verdict {
        debug_assert_eq!(ring.len(), self.ring_len(), "the ring's storage has the rule's length");
        match self.settings.mode {
            Mode::Literal => self.judge_literally(flow, ring, expected),
            Mode::Sound => self.judge(flow, ring, expected),
        }
    }

    fn judge_literally(&self, flow: &mut Flow, ring: &[u32], expected: Psn) -> Verdict {
        // The paper does not cover a ring without a trigger (overwritten, or dequeued before). Our choice: no proof, so block.
        let mut reason = Reason::NoTrigger;
        for seen in newest(flow, ring, self.settings.ring, flow.live).into_iter().flatten().copied() {
            flow.live -= 1;
            if self.is_later(seen, expected) {
                if self.same_slot(seen, expected) {
                    // The paper does not say what a valid NACK does to BePSN. Our choice: leave it.
                    return Verdict::Forward(Reason::SamePath);
                }
                reason = Reason::OtherPath;
                break;
            }
        }
        flow.arm(expected);
        Verdict::Block(reason)
    }

    fn judge(&self, flow: &mut Flow, ring: &[u32], expected: Psn) -> Verdict {
        let found = self.scan(flow, ring, expected);
        // A new NACK replaces BePSN: an RNIC that expects `expected` has all packets before it.
        flow.wait = Wait::Idle;
        if let Some(trigger_age) = found.trigger {
            // Dequeue up to the trigger. Every later NACK has a later trigger, since the last hop is FIFO. Only the search for
            // a trigger skips dequeued entries; evidence counts as long as the ring holds it.
            flow.live = trigger_age;
        }
        match found {
            Scan { age: Some(age), trigger: Some(trigger), .. } if trigger < age => {
                Verdict::Forward(Reason::SeenBefore)
            }
            Scan { age: Some(age), .. } if age >= self.settings.age_limit => {
                Verdict::Forward(Reason::OldEntry)
            }
            Scan { age: Some(age), .. } => {
                if self.settings.watch {
                    // Our choice: count from the packet's own departure, not from its NACK.
                    flow.watch(expected, self.settings.age_limit - age);
                }
                Verdict::Block(Reason::OnTheWire)
            }
            Scan { same_slot: true, .. } => Verdict::Forward(Reason::SamePath),
            // Our choice: forward in doubt. A false NACK costs a retransmission, a missing NACK costs a timeout.
            Scan { later: false, .. } => Verdict::Forward(Reason::NoTrigger),
            Scan { .. } => {
                flow.arm(expected);
                Verdict::Block(Reason::OtherPath)
            }
        }
    }

    /// Searches the newest entries for evidence. What a verdict does not need is not searched for: the slots of later
    /// packets if the expected packet has passed, and dequeued entries if there is a trigger.
    fn scan(&self, flow: &Flow, ring: &[u32], expected: Psn) -> Scan {
        let count = flow.len.min(self.reach());
        let parts = newest(flow, ring, self.settings.ring, count);
        let copy = newest_copy(parts[1], expected.value() & self.mask)
            .or_else(|| Some(newest_copy(parts[0], expected.value() & self.mask)? + parts[1].len()));
        let trigger =
            self.oldest_later(newest(flow, ring, self.settings.ring, count.min(flow.live)), expected);
        let mut found =
            Scan { age: copy.map(|age| age as u16), trigger, later: trigger.is_some(), same_slot: false };
        if found.age.is_none() {
            (found.later, found.same_slot) = self.later(parts, expected);
        }
        found
    }

    /// Age of the oldest entry that is later than expected.
    fn oldest_later(&self, parts: [&[u32]; 2], expected: Psn) -> Option<u16> {
        let mut age = parts[0].len() + parts[1].len();
        for part in parts {
            if let Some(oldest) = part.iter().position(|&seen| self.is_later(seen, expected)) {
                return Some((age - 1 - oldest) as u16);
            }
            age -= part.len();
        }
        None
    }

    /// True if any entry is later than expected, and true if any of these has the slot of the expected packet. The loops
    /// have no branches, so that compilers vectorise them.
    fn later(&self, parts: [&[u32]; 2], expected: Psn) -> (bool, bool) {
        // A power of two divides the PSN space, so equal slots mean that N divides the distance.
        let low = u32::from(self.slots.count()) - 1;
        let by_distance = self.slots.count().is_power_of_two();
        let (mut later, mut same_slot) = (0u32, 0u32);
        for &seen in parts.into_iter().flatten() {
            let distance = seen.wrapping_sub(expected.value()) & self.mask;
            let is_later = u32::from((distance != 0) & (distance <= self.half));
            later |= is_later;
            let same = if by_distance { distance & low == 0 } else { self.same_slot(seen, expected) };
            same_slot |= is_later & u32::from(same);
        }
        (later > 0, same_slot > 0)
    }

    const fn watches(&self) -> bool {
        self.settings.watch && matches!(self.settings.mode, Mode::Sound)
    }

    /// Serial-number comparison in the bits that the ring keeps.
    #[inline]
    const fn is_later(&self, seen: u32, expected: Psn) -> bool {
        let distance = seen.wrapping_sub(expected.value()) & self.mask;
        (distance != 0) & (distance <= self.half)
    }

    /// Truncated PSNs have the slots of whole PSNs, because N divides 2^width (checked by [`Rule::new`]).
    #[inline]
    const fn same_slot(&self, seen: u32, expected: Psn) -> bool {
        self.slots.modulo(seen) == self.slots.of(expected)
    }
}

/// Evidence in the ring about an expected PSN. An age is the number of entries written since; the newest entry has age 0.
#[derive(Clone, Copy, Default)]
struct Scan {
    /// Age of the newest copy of the expected packet.
    age: Option<u16>,
    /// Age of the oldest entry, not yet dequeued, that is later than expected: the trigger or a packet before it.
    trigger: Option<u16>,
    /// True if any entry is later than expected; not searched for beyond `trigger` if `age` is known.
    later: bool,
    /// True if a later entry has the expected packet's slot; not searched for if `age` is known.
    same_slot: bool,
}

/// Age of the newest entry with this value. Sixteen entries at a time are compared without branches.
fn newest_copy(entries: &[u32], value: u32) -> Option<usize> {
    let (rest, chunks) = entries.as_rchunks::<16>();
    let in_chunk = |chunk: &[u32]| chunk.iter().rev().position(|&seen| seen == value);
    for (i, chunk) in chunks.iter().rev().enumerate() {
        if chunk.iter().fold(false, |any, &seen| any | (seen == value)) {
            return Some(16 * i + in_chunk(chunk)?);
        }
    }
    Some(16 * chunks.len() + in_chunk(rest)?)
}

/// The newest `count` entries, oldest first, in two parts; `count` is at most `flow.len`.
///
/// Storage that is shorter than the rule's ring yields no entries instead of a panic.
#[inline]
fn newest<'a>(flow: &Flow, ring: &'a [u32], length: u16, count: u16) -> [&'a [u32]; 2] {
    let part = |from: u16, to: u16| ring.get(usize::from(from)..usize::from(to)).unwrap_or_default();
    match flow.next.checked_sub(count) {
        Some(start) => [&[], part(start, flow.next)],
        None => [part(length - (count - flow.next), length), part(0, flow.next)],
    }
}
