//! Flowcut's headers: the tag of a data packet, the ACK of a switch, and an order to a source.
//!
//! The paper's ACK has 13 bytes of flow key, 2 bytes of timestamp, 4 bits of hops, and the size. Here the key is the
//! packet's queue pair, and the rest is its tag. The bit that tells to which count a packet belongs is ours; the
//! paper's ACK has four spare bits beside its hops.

use model::Bytes;

/// Largest number of hops in four bits.
pub(super) const MOST_HOPS: usize = 15;
const HOPS: u32 = 16;
const SIZE: u32 = 20;
const SIZE_BITS: u32 = 18;
const WHAT: u32 = SIZE + SIZE_BITS;
/// Flag on data: the packet belongs to an odd count.
const ODD: u32 = SIZE;

/// Header that switches write on data: the timestamp of the sender's switch, the links crossed since, and the count of bytes
/// in flight to which the packet belongs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Journey {
    pub(super) stamp: u16,
    pub(super) hops: u8,
    /// True in every second count of a flow, see [`super::switch`].
    pub(super) odd: bool,
}

impl Journey {
    /// Reads a data packet's tag.
    pub(super) fn read(tag: u64) -> Self {
        Journey { odd: tag >> ODD & 1 == 1, ..Journey::bare(tag) }
    }

    /// Tag of a data packet.
    pub(super) fn tag(self) -> u64 {
        self.bare_tag() | (self.odd as u64) << ODD
    }

    /// Part that data and ACKs have in common.
    fn bare(tag: u64) -> Self {
        Journey { stamp: tag as u16, hops: (tag >> HOPS) as u8 & MOST_HOPS as u8, odd: false }
    }

    fn bare_tag(self) -> u64 {
        self.stamp as u64 | (self.hops as u64).min(MOST_HOPS as u64) << HOPS
    }

    /// The header after one more link.
    pub(super) fn further(self) -> Self {
        Journey { hops: self.hops.saturating_add(1), ..self }
    }
}

/// Signal of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    /// Data has left for its receiver.
    Ack {
        /// Header of the last packet.
        journey: Journey,
        /// Bytes of all packets that the ACK answers.
        bytes: u32,
    },
    /// The source must stop after this many more bytes (XOFF).
    Off(Bytes),
    /// The source may go on (XON).
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
