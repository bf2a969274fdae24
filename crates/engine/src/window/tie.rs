//! The order of packets that reach a node at one instant.

use model::Packet;

/// The order in which a node takes packets that arrive at one instant: by port number, after some of its bits have
/// been inverted. Node and time select these bits, so that of two senders in step neither is always first. (Engines
/// that break ties by order of creation starve one of them.)
#[derive(Clone, Copy, Debug)]
pub(super) struct Tie {
    key: u64,
    opened: u64,
}

impl Tie {
    /// The order at a node with that key, for times counted from `opened`.
    #[inline]
    pub(super) fn new(key: u64, opened: u64) -> Self {
        Tie { key, opened }
    }

    /// Bits of port numbers that are inverted for packets that arrive `offset` ps after the window's start.
    #[inline]
    pub(super) fn port_mask(self, offset: u32) -> u16 {
        // Fibonacci hashing (Knuth, The Art of Computer Programming 3, 6.4): 2^64 / golden ratio.
        let drawn = (self.key ^ (self.opened + offset as u64)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (drawn >> 54) as u16
    }

    /// Rank of a packet among those that arrive at the same instant; ranks of different ports differ.
    #[inline]
    pub(super) fn rank(self, pkt: &Packet) -> u16 {
        self.port_mask(pkt.offset()) ^ pkt.ingress().0
    }
}
