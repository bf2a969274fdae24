//! Themis-D, the destination ToR: which NACKs to believe, and which to send in the RNIC's place.
//!
//! # The evidence
//!
//! All packets of one slot (PSN mod N) travel one FIFO path. So if packet q > e of e's slot reaches the
//! ToR and e has not, e is lost; a packet of another slot says nothing (Themis, APNET'25, Eq. 3). The ToR
//! therefore records the PSNs that it sends to the RNIC, in a ring per QP, and searches it when
//! a NACK(e) comes up. An RNIC does not repeat a NACK, so after a block the ToR remembers e (BePSN, Valid) and
//! sends the NACK itself once later evidence shows that e is lost: the *compensation*.
//!
//! # Two modes
//!
//! [`Mode::Literal`] follows the paper's text: dequeue until the first PSN > e, the packet that triggered the
//! NACK (tPSN). Same slot as e: forward. Other slot: block and arm, without a further look. That is not sound:
//! e may have left the ToR while the NACK was on its way, and then the next packet of e's slot sets off a
//! NACK for a packet that is not lost. On a fast last hop that is the common case, not a rare race.
//!
//! [`Mode::Sound`] looks at the whole ring and asks, in this order:
//!
//! | the ring shows | e is | verdict |
//! |---|---|---|
//! | e before the trigger | overtaken on a FIFO link: lost on the last hop | forward, [`Reason::SeenBefore`] |
//! | e, and more than the last hop's round trip of packets after it | lost on the last hop | forward, [`Reason::OldEntry`] |
//! | e | on the wire to the RNIC | block, [`Reason::OnTheWire`]; watch it |
//! | no e, but a later packet of its slot | lost in the fabric | forward, [`Reason::SamePath`] |
//! | nothing later than e at all | unknown: the ring is too short | forward, [`Reason::NoTrigger`] |
//! | only later packets of other slots | unknown | block, [`Reason::OtherPath`]; arm |
//!
//! What must hold for "never a NACK for a packet that is not lost": the ring and the age limit cover the last
//! hop's round trip ([`crate::memory::sound_ring_entries`]) counted in the smallest packets the QP sends
//! back to back; the last hop is FIFO; ACK and NACK are not held back by more than that (no PFC pause of
//! their class). What is never caught: a loss with no later packet of its slot behind it (the tail of a message),
//! and the loss of a retransmission in the fabric. Both are left to the sender's timeout.
//!
//! # Choices where the paper is silent
//!
//! Ours; each is repeated at its line. Record a PSN when its transmission *starts* (a packet dropped in
//! the ToR's own queue is then an ordinary loss). A full ring overwrites its oldest entry. A scan that
//! finds no trigger fails open when sound, blocks and arms when literal. Retransmissions are recorded like
//! any packet: they have the PSN, so the slot, so the path. The newest NACK owns BePSN. The ring holds truncated
//! PSNs; BePSN and the PSNs of passing packets are whole, as in the paper's 3-byte BePSN.

use crate::{Mode, Psn, Rule};

/// Why a NACK was let through or blocked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// A later packet of the same slot has passed and the packet itself has not: lost in the fabric.
    SamePath,
    /// The packet passed before the one that triggered the NACK: lost on the last hop.
    SeenBefore,
    /// The packet passed longer ago than the last hop's round trip: lost on the last hop.
    OldEntry,
    /// The ring holds nothing that could have triggered this NACK. Literal blocks and arms, sound forwards.
    /// Count these: with a ring that is long enough there are none.
    NoTrigger,
    /// The packet passed a moment ago and is on its way to the RNIC.
    OnTheWire,
    /// Only packets of other slots were seen, which prove nothing. Armed: see [`Rule::on_depart`].
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

/// What to do with a NACK on its way up to the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub enum Verdict {
    /// Pass it on: the packet it names is lost (or the switch cannot tell).
    Forward(Reason),
    /// Keep it from the sender. It still acknowledges everything before its PSN: a caller may turn it into
    /// that ACK instead of dropping it.
    Block(Reason),
}

/// What the flow waits for after a blocked NACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
enum Wait {
    /// Nothing (the paper's Valid = 0).
    #[default]
    Idle,
    /// A packet that shows whether the named one is lost (Valid = 1).
    Armed,
    /// A reply to the named packet, which is on the last hop.
    Watching,
}

/// The state of one QP at its destination ToR; the ring is beside it, in the caller's storage.
///
/// When a QP starts anew, start from [`Flow::new`] again; the ring need not be cleared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Flow {
    /// The PSN of the blocked NACK (BePSN). Meaningless while idle.
    blocked: Psn,
    /// Ring index of the next write.
    next: u16,
    /// Entries written, up to the ring's length.
    len: u16,
    /// Newest entries that no scan has dequeued, up to the ring's length.
    live: u16,
    /// While watching: departures left until the watched packet is as old as the age limit.
    left: u16,
    wait: Wait,
}

impl Flow {
    /// A QP of which nothing has been seen.
    pub const fn new() -> Self {
        Self { blocked: Psn::new(0), next: 0, len: 0, live: 0, left: 0, wait: Wait::Idle }
    }

    /// The PSN of the blocked NACK that may yet be owed, if there is one.
    pub const fn pending(&self) -> Option<Psn> {
        match self.wait {
            Wait::Idle => None,
            Wait::Armed | Wait::Watching => Some(self.blocked),
        }
    }

    /// How many departures may pass before one of them can make the switch owe a NACK, whatever their PSNs, if
    /// no reply passes up meanwhile.
    pub const fn patience(&self) -> u32 {
        match self.wait {
            Wait::Idle => u32::MAX,
            Wait::Armed => 0,
            Wait::Watching => self.left.saturating_sub(1) as u32,
        }
    }

    /// Ring index of the next write.
    pub const fn place(&self) -> usize {
        self.next as usize
    }

    fn arm(&mut self, psn: Psn) {
        (self.blocked, self.wait) = (psn, Wait::Armed);
    }

    /// Waits for `left` more departures; with 0 the next departure ends the wait.
    fn watch(&mut self, psn: Psn, left: u16) {
        (self.blocked, self.left, self.wait) = (psn, left, Wait::Watching);
    }
}

impl Rule {
    /// A data packet starts its transmission to the RNIC. Returns the PSN of a NACK that the
    /// switch now owes the sender (compensation), if any.
    ///
    /// `ring` is the QP's storage, [`Rule::ring_len`] long. Packets of the QP that do not go through here
    /// make the verdicts worthless.
    #[inline]
    pub fn on_depart(&self, flow: &mut Flow, ring: &mut [u32], psn: Psn) -> Option<Psn> {
        debug_assert_eq!(ring.len(), self.ring_len(), "the ring's storage has the rule's length");
        if let Some(entry) = ring.get_mut(usize::from(flow.next)) {
            *entry = psn.value() & self.mask;
        }
        let length = self.settings.ring;
        flow.next += 1;
        if flow.next >= length {
            flow.next = 0;
        }
        // A full ring has just overwritten its oldest entry (our choice: new evidence beats old).
        flow.len += u16::from(flow.len < length);
        flow.live += u16::from(flow.live < length);
        match flow.wait {
            Wait::Idle => None,
            Wait::Armed | Wait::Watching => self.on_awaited(flow, psn),
        }
    }

    /// The rest of [`Rule::on_depart`] for a flow that waits.
    #[inline(never)]
    fn on_awaited(&self, flow: &mut Flow, psn: Psn) -> Option<Psn> {
        let blocked = flow.blocked;
        if psn == blocked {
            // The late packet passes; or, when watching, a second copy of it, which restarts the watch.
            flow.wait = Wait::Idle;
            if self.watches() {
                // Our choice: its NACK was blocked and will not be repeated, so see it over the last hop.
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

    /// An ACK passes up from the RNIC; `acked` is its PSN, the newest one that it acknowledges (cumulative: ePSN - 1).
    ///
    /// Only a rule that watches ([`crate::Settings::watch`]) needs this call. Such a rule follows a packet whose
    /// NACK it blocked over the last hop: if the age limit's number of later packets leaves without an
    /// ACK or NACK that covers it, it was lost there and its NACK is owed.
    #[inline]
    pub fn on_ack(&self, flow: &mut Flow, acked: Psn) {
        // An ACK that covers an armed packet, too, says that the RNIC has it (the ring was too short to know).
        if self.watches() && flow.wait != Wait::Idle && !flow.blocked.is_after(acked) {
            flow.wait = Wait::Idle;
        }
    }

    /// A NACK for `expected` (ePSN) comes up from the RNIC: believe it or not.
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
        // An emptied ring (overflow, or the trigger was dequeued before) is not in the text: not proven valid.
        let mut reason = Reason::NoTrigger;
        for seen in newest(flow, ring, self.settings.ring, flow.live).into_iter().flatten().copied() {
            flow.live -= 1;
            if self.is_later(seen, expected) {
                if self.same_slot(seen, expected) {
                    // Nor does the text say what a valid NACK does to BePSN: leave it.
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
        // The newest NACK owns BePSN: an RNIC that expects `expected` has everything before it.
        flow.wait = Wait::Idle;
        if let Some(trigger_age) = found.trigger {
            // Dequeue up to the trigger. Every later NACK has a later trigger, since the last hop is FIFO; only the
            // search for a trigger starts behind this one, evidence counts for as long as the ring remembers it.
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
            // Fail open: a false NACK costs a retransmission, a missing one a timeout.
            Scan { later: false, .. } => Verdict::Forward(Reason::NoTrigger),
            Scan { .. } => {
                flow.arm(expected);
                Verdict::Block(Reason::OtherPath)
            }
        }
    }

    /// Looks through the newest entries, oldest first.
    fn scan(&self, flow: &Flow, ring: &[u32], expected: Psn) -> Scan {
        // The slot of a sum is that of the distance where their number divides the PSN space.
        let low = u32::from(self.slots.count()) - 1;
        if self.slots.count().is_power_of_two() {
            self.scan_by(flow, ring, expected, |_, distance| distance & low == 0)
        } else {
            self.scan_by(flow, ring, expected, |seen, _| self.same_slot(seen, expected))
        }
    }

    /// Written so that a compiler can look at several entries at once.
    #[inline]
    fn scan_by(&self, flow: &Flow, ring: &[u32], expected: Psn, same: impl Fn(u32, u32) -> bool) -> Scan {
        let mut found = Scan::default();
        let mut age = flow.len.min(self.reach());
        for part in newest(flow, ring, self.settings.ring, age) {
            let (mut later, mut same_slot, mut copies) = (0u32, 0u32, 0u32);
            for &seen in part {
                let distance = seen.wrapping_sub(expected.value()) & self.mask;
                let is_later = (distance != 0) & (distance <= self.half);
                later += u32::from(is_later);
                same_slot += u32::from(is_later & same(seen, distance));
                copies += u32::from(distance == 0);
            }
            found.later |= later > 0;
            found.same_slot |= same_slot > 0;
            if copies > 0
                && let Some(newest) = part.iter().rposition(|&seen| seen == expected.value() & self.mask)
            {
                found.age = Some(age - 1 - newest as u16); // the newest copy, if a retransmission has passed as well
            }
            // Entries that no scan has dequeued are the last ones.
            let dequeued = age.saturating_sub(flow.live).min(part.len() as u16);
            if later > 0
                && found.trigger.is_none()
                && let Some(live) = part.get(usize::from(dequeued)..)
                && let Some(oldest) = live.iter().position(|&seen| self.is_later(seen, expected))
            {
                found.trigger = Some(age - 1 - dequeued - oldest as u16);
            }
            age -= part.len() as u16;
        }
        found
    }

    const fn watches(&self) -> bool {
        self.settings.watch && matches!(self.settings.mode, Mode::Sound)
    }

    /// Serial comparison in the bits that the ring keeps.
    #[inline]
    const fn is_later(&self, seen: u32, expected: Psn) -> bool {
        let distance = seen.wrapping_sub(expected.value()) & self.mask;
        (distance != 0) & (distance <= self.half)
    }

    /// Truncated PSNs have the slot of whole ones, because N divides 2^width (checked by [`Rule::new`]).
    #[inline]
    const fn same_slot(&self, seen: u32, expected: Psn) -> bool {
        self.slots.modulo(seen) == self.slots.of(expected)
    }
}

/// What the ring says about an expected PSN. An age is the number of entries written since: the newest has 0.
#[derive(Clone, Copy, Default)]
struct Scan {
    /// Age of the newest copy of the expected packet.
    age: Option<u16>,
    /// Age of the oldest entry not yet dequeued that is later than expected: the trigger, or one before it.
    trigger: Option<u16>,
    /// Any entry is later than expected.
    later: bool,
    /// One of those has the expected packet's slot.
    same_slot: bool,
}

/// The newest `count` entries, oldest first, in two parts; `count` is at most `flow.len`.
///
/// Storage shorter than the rule's ring gives no entries, not a panic.
#[inline]
fn newest<'a>(flow: &Flow, ring: &'a [u32], length: u16, count: u16) -> [&'a [u32]; 2] {
    let part = |from: u16, to: u16| ring.get(usize::from(from)..usize::from(to)).unwrap_or_default();
    match flow.next.checked_sub(count) {
        Some(start) => [&[], part(start, flow.next)],
        None => [part(length - (count - flow.next), length), part(0, flow.next)],
    }
}
