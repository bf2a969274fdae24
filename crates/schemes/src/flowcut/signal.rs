//! What Flowcut writes on packets: a data packet's tag, an ACK of a switch, an order to a source.
//!
//! The paper's ACK has 13 bytes of flow key, 2 of timestamp, 4 bits of hops, and the size; here the key is the packet's
//! queue pair, the rest its tag. The bit that says to which count a packet belongs is ours; the paper's ACK has four bits to
//! spare beside its hops.

use model::Bytes;

/// Most hops that four bits count.
pub(super) const MOST_HOPS: usize = 15;
const HOPS: u32 = 16;
const SIZE: u32 = 20;
const SIZE_BITS: u32 = 18;
const WHAT: u32 = SIZE + SIZE_BITS;
/// On data: it belongs to an odd count.
const ODD: u32 = SIZE;

/// What the sender's switch and those after it write on data: its timestamp, links crossed since, and to which count of the
/// bytes in flight it belongs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Journey {
    pub(super) stamp: u16,
    pub(super) hops: u8,
    /// Counts of one flow are even and odd in turn, see [`super::switch`].
    pub(super) odd: bool,
}

impl Journey {
    /// What a data packet's tag says.
    pub(super) fn read(tag: u64) -> Self {
        Journey { odd: tag >> ODD & 1 == 1, ..Journey::bare(tag) }
    }

    /// A data packet's tag.
    pub(super) fn tag(self) -> u64 {
        self.bare_tag() | (self.odd as u64) << ODD
    }

    /// The part that stands at the same place on data and in an ACK.
    fn bare(tag: u64) -> Self {
        Journey { stamp: tag as u16, hops: (tag >> HOPS) as u8 & MOST_HOPS as u8, odd: false }
    }

    fn bare_tag(self) -> u64 {
        self.stamp as u64 | (self.hops as u64).min(MOST_HOPS as u64) << HOPS
    }

    /// One link further.
    pub(super) fn further(self) -> Self {
        Journey { hops: self.hops.saturating_add(1), ..self }
    }
}

/// A signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    /// Data has left towards its receiver.
    Ack {
        /// Of the last packet.
        journey: Journey,
        /// Bytes, of all packets that it answers.
        bytes: u32,
    },
    /// The source shall stop when it has sent this much.
    Off(Bytes),
    /// The source may go on.
    On,
}

impl Signal {
    pub(super) fn tag(self) -> u64 {
        match self {
            Signal::Ack { journey, bytes } => {
                let what = if journey.odd { 3 } else { 0 };
                what << WHAT | (bytes as u64) << SIZE | journey.bare_tag()
            }
            Signal::Off(credit) => 1 << WHAT | credit.get() & ((1 << 24) - 1),
            Signal::On => 2 << WHAT,
        }
    }

    pub(super) fn read(tag: u64) -> Option<Signal> {
        match tag >> WHAT {
            what @ (0 | 3) => {
                let bytes = (tag >> SIZE & ((1 << SIZE_BITS) - 1)) as u32;
                Some(Signal::Ack { journey: Journey { odd: what == 3, ..Journey::bare(tag) }, bytes })
            }
            1 => Some(Signal::Off(Bytes(tag & ((1 << 24) - 1)))),
            2 => Some(Signal::On),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Packet;
    use model::annex::TAG_BITS;

    #[test]
    fn sixteen_of_the_largest_frames_fit_into_one_ack() {
        let bytes = 16 * Packet::MAX_FRAME;
        for signal in [
            Signal::Ack { journey: Journey { stamp: u16::MAX, hops: 15, odd: true }, bytes },
            Signal::Ack { journey: Journey { stamp: u16::MAX, hops: 15, odd: false }, bytes },
            Signal::Ack { journey: Journey::default(), bytes: 0 },
            Signal::Off(Bytes((1 << 24) - 1)),
            Signal::Off(Bytes(0)),
            Signal::On,
        ] {
            assert!(signal.tag() >> TAG_BITS == 0);
            assert_eq!(Signal::read(signal.tag()), Some(signal));
        }
    }

    #[test]
    fn four_bits_of_hops_stay_at_fifteen() {
        let mut journey = Journey { stamp: 9, hops: 0, odd: true };
        (0..40).for_each(|_| journey = Journey::read(journey.further().tag()));
        assert_eq!(journey, Journey { stamp: 9, hops: 15, odd: true });
    }
}
