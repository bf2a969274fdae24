//! The settings that all QPs of a switch share, checked once.

use crate::Slots;
use core::fmt;

/// The way a destination ToR judges NACKs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// The text of Themis (APNET'25) to the letter. It arms on every block, so it also sends NACKs for packets that were
    /// merely late (see [`crate::filter`]).
    Literal,
    /// Our refinement: the same evidence, but a packet that is still on the last hop does not count as missing.
    Sound,
}

/// Number of low bits of each PSN that the ring keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    /// 1 byte, as in Themis (APNET'25), Eq. 4. The order of two PSNs that are 128 or more apart comes out wrong.
    W8,
    /// 2 bytes: our choice where memory matters. The order is right for up to 32,767 packets in flight.
    W16,
    /// 3 bytes: the whole PSN.
    W24,
}

impl Width {
    /// Bits per ring entry: 8, 16 or 24.
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

/// Settings of a [`Rule`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The judging mode.
    pub mode: Mode,
    /// Number of slots N by which the source ToR sprays this QP (Themis, Eq. 1); at least 1.
    pub slots: u16,
    /// Entries of the ring per QP; at least 1. [`crate::memory`] computes the paper's length and the length that
    /// [`Mode::Sound`] needs.
    pub ring: u16,
    /// Bits of the PSN in the ring.
    pub width: Width,
    /// [`Mode::Sound`] only: number of later packets of a QP after whose departure a packet that the RNIC still misses
    /// counts as lost on the last hop. Use the last hop's round trip at line rate, [`crate::memory::sound_ring_entries`].
    /// If the RNIC sends one ACK per k packets, add k - 1; the ring may stay as it is. A loss among these k packets on the
    /// last hop can then still cause a false NACK.
    pub age_limit: u16,
    /// [`Mode::Sound`] only: follow a packet over the last hop after its NACK was blocked. The rule must then see every
    /// ACK that comes up, see [`crate::Rule::on_ack`].
    pub watch: bool,
}

impl Settings {
    /// The paper's settings: literal, 1-byte entries.
    pub const fn literal(slots: u16, ring: u16) -> Self {
        Self { mode: Mode::Literal, slots, ring, width: Width::W8, age_limit: ring, watch: false }
    }

    /// Our settings: sound, whole PSNs, the ring's length as age limit, last-hop watch on.
    pub const fn sound(slots: u16, ring: u16) -> Self {
        Self { mode: Mode::Sound, slots, ring, width: Width::W24, age_limit: ring, watch: true }
    }
}

/// Checked [`Settings`]; one copy serves all QPs with the same N. [`crate::filter`] has its methods for packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    pub(crate) settings: Settings,
    pub(crate) slots: Slots,
    /// Mask of the bits that the ring keeps.
    pub(crate) mask: u32,
    /// Largest distance that counts as "after" at this width.
    pub(crate) half: u32,
}

impl Rule {
    /// Checks the settings.
    ///
    /// # Errors
    /// There is no slot or no ring entry, or the ring keeps too few bits to compute a slot.
    pub const fn new(settings: Settings) -> Result<Self, RuleError> {
        let Some(slots) = Slots::new(settings.slots) else { return Err(RuleError::NoSlots) };
        if settings.ring == 0 {
            return Err(RuleError::NoRing);
        }
        let Settings { width, .. } = settings;
        // The low w bits yield PSN mod N only if N divides 2^w. Whole PSNs have no such limit.
        if !matches!(width, Width::W24) && (width.mask() + 1) % settings.slots as u32 != 0 {
            return Err(RuleError::SlotsDoNotFitWidth { slots: settings.slots, bits: width.bits() });
        }
        let mask = width.mask();
        Ok(Self { settings, slots, mask, half: mask >> 1 })
    }

    /// The settings of this rule.
    pub const fn settings(&self) -> Settings {
        self.settings
    }

    /// Entries of one QP's ring: the length of the slice that [`Rule::on_depart`] and [`Rule::on_nack`] take.
    pub const fn ring_len(&self) -> usize {
        self.settings.ring as usize
    }

    /// Number of the newest entries that a sound rule examines. Our choice: only as many as PSNs of this width can be
    /// ordered (127 entries at 8 bits), since an older entry would look like a newer one.
    pub(crate) const fn reach(&self) -> u16 {
        let ring = self.settings.ring;
        if self.half < ring as u32 { self.half as u16 } else { ring }
    }
}

/// Why settings are not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleError {
    /// N is 0.
    NoSlots,
    /// The ring has no entry.
    NoRing,
    /// N does not divide 2^bits, so the ring's bits do not yield PSN mod N.
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

    /// With 8 bits only 127 entries can be ordered, so an older one would look like a newer one.
    #[test]
    fn a_rule_looks_no_further_back_than_psns_can_be_ordered() {
        let reach = |settings| Rule::new(settings).unwrap().reach();
        assert_eq!(reach(Settings::sound(4, 19)), 19);
        assert_eq!(reach(Settings { width: Width::W8, ..Settings::sound(4, 128) }), 127);
    }
}
