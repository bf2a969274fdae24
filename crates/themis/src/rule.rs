//! The settings that all QPs of a switch share, checked once.

use crate::Slots;
use core::fmt;

/// How a destination ToR judges NACKs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// The text of Themis (APNET'25) to the letter: it arms a compensation on every block, so it also
    /// sends NACKs for packets that were only late (see [`crate::filter`]).
    Literal,
    /// Ours: the same evidence, but a packet that is still on the last hop is not held to be missing.
    Sound,
}

/// How many low bits of each PSN the ring keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    /// 1 byte, as in Themis (APNET'25), Eq. 4. Sequence numbers 128 or more apart are mistaken for others.
    W8,
    /// 2 bytes: our choice where memory matters; right for up to 32,767 packets in flight.
    W16,
    /// 3 bytes, the whole PSN.
    W24,
}

impl Width {
    /// Bits kept: 8, 16 or 24.
    pub const fn bits(self) -> u32 {
        match self {
            Self::W8 => 8,
            Self::W16 => 16,
            Self::W24 => 24,
        }
    }

    /// Bytes of switch memory per ring entry: 1, 2 or 3.
    pub const fn bytes(self) -> u64 {
        self.bits() as u64 / 8
    }

    pub(crate) const fn mask(self) -> u32 {
        (1 << self.bits()) - 1
    }
}

/// What to build a [`Rule`] from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The judging mode.
    pub mode: Mode,
    /// Slots N over which the source ToR deals this QP's PSNs (Themis, Eq. 1); at least 1.
    pub slots: u16,
    /// Entries of the ring per QP; at least 1. [`crate::memory`] has the paper's length and the length that
    /// [`Mode::Sound`] needs.
    pub ring: u16,
    /// Bits of the PSN in the ring.
    pub width: Width,
    /// [`Mode::Sound`]: a packet after which this many others of its QP have left, and which the RNIC
    /// has not received, was lost on the last hop. In packets: the last hop's round trip at line rate,
    /// [`crate::memory::sound_ring_entries`]. If the RNIC sends one ACK per k packets, add k - 1
    /// (the ring need not grow with it); then a loss among those k on the last hop can still cost a false NACK.
    pub age_limit: u16,
    /// [`Mode::Sound`] only: see [`crate::Rule::on_ack`]. Needs to see every ACK that passes upward.
    pub watch: bool,
}

impl Settings {
    /// The paper's own: literal, 1-byte entries.
    pub const fn literal(slots: u16, ring: u16) -> Self {
        Self { mode: Mode::Literal, slots, ring, width: Width::W8, age_limit: ring, watch: false }
    }

    /// Ours: sound, whole PSNs, the whole ring as age limit, last-hop watch on.
    pub const fn sound(slots: u16, ring: u16) -> Self {
        Self { mode: Mode::Sound, slots, ring, width: Width::W24, age_limit: ring, watch: true }
    }
}

/// The checked form of [`Settings`]; one copy serves all QPs with the same N.
///
/// What it does with packets is in [`crate::filter`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    pub(crate) settings: Settings,
    pub(crate) slots: Slots,
    /// Low bits that the ring keeps.
    pub(crate) mask: u32,
    /// Largest difference that counts as "after" at this width.
    pub(crate) half: u32,
}

impl Rule {
    /// Checks the settings.
    ///
    /// # Errors
    /// No slot, no ring, or a number of slots whose remainder the kept bits cannot tell.
    pub const fn new(settings: Settings) -> Result<Self, RuleError> {
        let Some(slots) = Slots::new(settings.slots) else { return Err(RuleError::NoSlots) };
        if settings.ring == 0 {
            return Err(RuleError::NoRing);
        }
        let Settings { width, .. } = settings;
        // PSN mod N from the low w bits is right only if N divides 2^w. Whole PSNs need no such rule.
        if !matches!(width, Width::W24) && (width.mask() + 1) % settings.slots as u32 != 0 {
            return Err(RuleError::SlotsDoNotFitWidth { slots: settings.slots, bits: width.bits() });
        }
        let mask = width.mask();
        Ok(Self { settings, slots, mask, half: mask >> 1 })
    }

    /// The settings this rule was made from.
    pub const fn settings(&self) -> Settings {
        self.settings
    }

    /// Entries of one QP's ring: the length of the slice to hand to [`Rule::on_depart`] and [`Rule::on_nack`].
    pub const fn ring_len(&self) -> usize {
        self.settings.ring as usize
    }

    /// True if the ring remembers as many packets as leave in the last hop's round trip,
    /// [`crate::memory::sound_ring_entries`]. If not, a sound rule lets NACKs through for packets that are
    /// only late; whoever reads a configuration should warn.
    pub const fn ring_covers(&self, round_trip: u64) -> bool {
        self.reach() as u64 >= round_trip
    }

    /// How many of the newest entries a sound rule looks at. Our choice: no further back than PSNs of
    /// this width can be ordered (127 entries at 8 bits), since an older entry would look like a newer one.
    pub(crate) const fn reach(&self) -> u16 {
        let ring = self.settings.ring;
        if self.half < ring as u32 { self.half as u16 } else { ring }
    }
}

/// Why settings make no rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleError {
    /// N is 0.
    NoSlots,
    /// The ring has no entry.
    NoRing,
    /// N does not divide 2^bits, so PSN mod N cannot be told from the bits kept.
    SlotsDoNotFitWidth {
        /// N.
        slots: u16,
        /// Bits of the PSN that the ring keeps.
        bits: u32,
    },
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSlots => f.write_str("the number of slots must be at least 1"),
            Self::NoRing => f.write_str("the ring must have at least 1 entry"),
            Self::SlotsDoNotFitWidth { slots, bits } => write!(
                f,
                "{slots} slots cannot be told apart by {bits}-bit PSNs: use a power of two up to 2^{bits}, or 24 bits"
            ),
        }
    }
}

impl core::error::Error for RuleError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_psns_need_a_slot_count_that_divides_their_range() {
        let with = |slots, width| Rule::new(Settings { width, ..Settings::sound(slots, 100) });
        assert!(
            with(256, Width::W8).is_ok() && with(512, Width::W16).is_ok() && with(12, Width::W24).is_ok()
        );
        for (slots, width, bits) in [(512, Width::W8, 8), (12, Width::W8, 8), (12, Width::W16, 16)] {
            assert_eq!(with(slots, width), Err(RuleError::SlotsDoNotFitWidth { slots, bits }));
        }
        assert_eq!(with(0, Width::W24), Err(RuleError::NoSlots));
        assert_eq!(Rule::new(Settings::sound(4, 0)), Err(RuleError::NoRing));
    }

    #[test]
    fn a_ring_shorter_than_the_last_hop_is_told() {
        let covers = |settings, round_trip| Rule::new(settings).unwrap().ring_covers(round_trip);
        assert!(covers(Settings::sound(4, 19), 19) && !covers(Settings::sound(4, 19), 20));
        assert!(!covers(Settings { width: Width::W8, ..Settings::sound(4, 128) }, 128));
    }
}
