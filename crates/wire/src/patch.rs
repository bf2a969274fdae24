//! Update of an ICRC after a change of some bytes, without reading the other bytes of the packet.
//!
//! A CRC is linear: the XOR of the CRCs of two messages of equal length is the remainder of the messages' XOR. If the bytes
//! change by `delta` (old xor new), and `tail` unchanged bytes follow them,
//!
//! ```text
//! crc' = crc ^ L(delta) * x^(8 * tail) mod P
//! ```
//!
//! where L(delta) is the remainder of `delta` and P is the polynomial of CRC-32. The product takes about thirty steps, for
//! packets of any length.
//!
//! A switch that sprays by XOR on the UDP source port needs even less. Its `delta` depends only on the path, so one number
//! per path and packet length, computed beforehand by [`port_deltas`], is enough to repair an ICRC. [`PortCache`] keeps the
//! tables of the lengths in use.

use crate::ecn::{Ecn, TrafficClass};
use crate::icrc::{Layout, read_at, write_at};
use crate::view::{get16, put};
use crate::{Error, Layer, enough, ipv4, udp};

/// Polynomial of CRC-32 (IEEE 802.3, 3.2.9); the lowest bit stands for x^31.
const P: u32 = 0xEDB8_8320;
/// The polynomial 1; the highest bit stands for x^0.
const ONE: u32 = 1 << 31;
/// The polynomial x^8.
const X8: u32 = 1 << 23;

/// a * b mod P.
const fn product(a: u32, mut b: u32) -> u32 {
    let (mut sum, mut bit) = (0, ONE);
    while bit != 0 {
        if a & bit != 0 {
            sum ^= b;
        }
        // b * x
        b = b >> 1 ^ if b & 1 != 0 { P } else { 0 };
        bit >>= 1;
    }
    sum
}

/// x^(8 * n) mod P for n below `FINE`, and x^(8 * FINE * n): the power of any tail of a datagram is one product of two of
/// them.
const FINE: usize = 128;
const COARSE: usize = (1 << 16) / FINE;
const FINE_POWERS: [u32; FINE] = powers(X8);
const COARSE_POWERS: [u32; COARSE] = powers(stepped_power(FINE));

/// The first powers of `base`.
const fn powers<const N: usize>(base: u32) -> [u32; N] {
    let (mut powers, mut n) = ([ONE; N], 1);
    while n < N {
        powers[n] = product(powers[n - 1], base);
        n += 1;
    }
    powers
}

/// x^(8 * bytes) mod P.
const fn power(bytes: usize) -> u32 {
    if bytes < FINE * COARSE {
        product(FINE_POWERS[bytes % FINE], COARSE_POWERS[bytes / FINE])
    } else {
        stepped_power(bytes)
    }
}

/// x^(8 * bytes) mod P for any number of bytes, by repeated squares.
const fn stepped_power(mut bytes: usize) -> u32 {
    let (mut result, mut square) = (ONE, X8);
    while bytes > 0 {
        if bytes & 1 != 0 {
            result = product(result, square);
        }
        square = product(square, square);
        bytes >>= 1;
    }
    result
}

/// Remainder of `bytes`: the CRC register after these bytes, from an initial value of 0.
const fn remainder(bytes: &[u8]) -> u32 {
    let (mut register, mut i) = (0, 0);
    while i < bytes.len() {
        register = product(register ^ bytes[i] as u32, X8);
        i += 1;
    }
    register
}

/// The bits of an ICRC that flip when covered bytes change by `delta` (old xor new), and `tail` covered bytes follow them.
pub const fn delta(delta: &[u8], tail: usize) -> u32 {
    product(remainder(delta), power(tail))
}

/// By path: the bits of an ICRC that flip when the UDP source port changes by XOR with `xors`. A switch stores this table for
/// packets with UDP length `length`.
pub const fn port_deltas<const N: usize>(xors: [u16; N], length: u16) -> [u32; N] {
    let shift = power(port_tail(length));
    let (mut deltas, mut path) = ([0; N], 0);
    while path < N {
        deltas[path] = product(remainder(&xors[path].to_be_bytes()), shift);
        path += 1;
    }
    deltas
}

/// The bits of an ICRC that flip with each bit of the UDP source port, for packets with one UDP length. The flips of any
/// change of the port are the sum of those of its bits, so 64 bytes serve all 65,536 changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortDeltas {
    by_bit: [u32; 16],
}

impl PortDeltas {
    /// The table for UDP length `length`.
    pub const fn new(length: u16) -> Self {
        // CRC-32 takes the lowest bit of each byte first, so bit 7 of the port's lower byte comes last: it has the lowest
        // order. Every other bit is one factor x above its neighbour.
        let mut order = product(remainder(&[0x00, 0x80]), power(port_tail(length)));
        let (mut by_bit, mut i) = ([0; 16], 0);
        while i < 16 {
            // Orders 0 to 7 are bits 7 to 0; orders 8 to 15 are bits 15 to 8.
            by_bit[if i < 8 { 7 - i } else { 23 - i }] = order;
            order = order >> 1 ^ if order & 1 != 0 { P } else { 0 };
            i += 1;
        }
        PortDeltas { by_bit }
    }

    /// The bits of the ICRC that flip when the port changes by XOR with `xor`.
    #[inline]
    pub const fn of(&self, xor: u16) -> u32 {
        let (mut sum, mut bit) = (0, 0);
        while bit < 16 {
            // All ones if the bit changes: no branch, so that compilers vectorise the loop.
            sum ^= self.by_bit[bit] & 0u32.wrapping_sub((xor >> bit & 1) as u32);
            bit += 1;
        }
        sum
    }
}

/// Number of UDP lengths that a [`PortCache`] holds. Our choice: a NIC uses a handful, and 64 take 4 kB.
const CACHED: usize = 64;

/// [`PortDeltas`] of the UDP lengths used last, for a switch that moves packets by rewriting their source port.
#[derive(Clone, Debug)]
pub struct PortCache {
    /// UDP length of each table; 0 for none.
    lengths: [u16; CACHED],
    tables: [PortDeltas; CACHED],
}

impl Default for PortCache {
    fn default() -> Self {
        PortCache::new()
    }
}

impl PortCache {
    /// An empty cache.
    pub const fn new() -> Self {
        PortCache { lengths: [0; CACHED], tables: [PortDeltas { by_bit: [0; 16] }; CACHED] }
    }

    /// The bits of an ICRC that flip when the source port changes by XOR with `xor` in a packet with UDP length `length`.
    #[inline]
    pub fn delta(&mut self, xor: u16, length: u16) -> u32 {
        // RoCEv2 pads payloads to four bytes, so the two lowest bits of all lengths are the same.
        let slot = usize::from(length / 4) % CACHED;
        if self.lengths[slot] != length {
            (self.lengths[slot], self.tables[slot]) = (length, PortDeltas::new(length));
        }
        self.tables[slot].of(xor)
    }

    /// [`set_source_port`] in a frame whose parts are known: its UDP header starts at `udp`, and its ICRC at `icrc`. The
    /// UDP checksum must be 0. A frame that ends earlier stays as it is.
    #[inline]
    pub fn set_source_port(&mut self, frame: &mut [u8], udp: usize, icrc: usize, port: u16) {
        let end = icrc.saturating_add(crate::icrc::LEN);
        if end > frame.len() || icrc < udp.saturating_add(udp::LEN) || end - udp > usize::from(u16::MAX) {
            return;
        }
        let change = self.delta(get16(frame, udp) ^ port, (end - udp) as u16);
        put(frame, udp, port.to_be_bytes());
        let old = read_at(frame, icrc);
        write_at(frame, icrc, old ^ change);
    }
}

/// Number of covered bytes behind the source port in a datagram of this length.
const fn port_tail(length: u16) -> usize {
    (length as usize).saturating_sub(size_of::<u16>() + crate::icrc::LEN)
}

/// Changes the ECN field of an IP packet, and IPv4's checksum by the difference alone (RFC 1624, equation 3): a checksum
/// that was wrong stays wrong. The ICRC does not cover these fields.
///
/// # Errors
/// The bytes are neither IPv4 nor IPv6, or they end within the header.
pub fn set_ecn(packet: &mut [u8], ecn: Ecn) -> Result<(), Error> {
    enough(Layer::Ipv4, ipv4::LEN, packet.len())?;
    match packet[0] >> 4 {
        4 => {
            let old = get16(packet, 0);
            packet[1] = TrafficClass(packet[1]).with_ecn(ecn).0;
            let sum = u32::from(!get16(packet, 10)) + u32::from(!old) + u32::from(get16(packet, 0));
            let sum = (sum & 0xFFFF) + (sum >> 16);
            put(packet, 10, (!((sum & 0xFFFF) + (sum >> 16)) as u16).to_be_bytes());
            Ok(())
        }
        6 => {
            // The two lowest bits of the traffic class are bits 4 and 5 of byte 1.
            packet[1] = packet[1] & !0x30 | (ecn as u8) << 4;
            Ok(())
        }
        version => Err(Error::Field { layer: Layer::Ipv4, field: "version", value: version.into() }),
    }
}

/// Changes the UDP source port of a RoCEv2 packet, which begins with its IP header, and updates the ICRC. A wrong ICRC stays
/// wrong. The UDP checksum, which RoCEv2 does not use, becomes 0.
///
/// # Errors
/// The packet is not RoCEv2.
pub fn set_source_port(packet: &mut [u8], port: u16) -> Result<(), Error> {
    let layout = Layout::of(packet)?;
    let old = get16(packet, layout.ip);
    let length = (layout.icrc - layout.ip + crate::icrc::LEN) as u16;
    let [change] = port_deltas([old ^ port], length);
    put(packet, layout.ip, port.to_be_bytes());
    put(packet, layout.ip + udp::LEN - 2, [0, 0]);
    let icrc = read_at(packet, layout.icrc);
    write_at(packet, layout.icrc, icrc ^ change);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    #[test]
    fn a_power_equals_steps_over_zero_bytes() {
        // A zero byte multiplies the register by x^8.
        for n in 0..20 {
            let stepped = (0..n).fold(0x1234_5678, |register, _| product(register, X8));
            assert_eq!(product(0x1234_5678, power(n)), stepped, "{n}");
        }
        for n in [127, 128, 129, 1066, 65_535, 65_536, 1 << 20] {
            assert_eq!(power(n), stepped_power(n), "{n}");
        }
        assert_eq!(product(0xCAFE_F00D, ONE), 0xCAFE_F00D);
    }

    proptest! {
        #[test]
        fn an_update_equals_a_full_crc(
            message in prop::collection::vec(any::<u8>(), 1..300),
            change in prop::collection::vec(any::<u8>(), 1..40),
            at in any::<prop::sample::Index>(),
        ) {
            let at = at.index(message.len());
            let change = &change[..change.len().min(message.len() - at)];
            let mut changed: Vec<u8> = message.clone();
            for (byte, by) in changed[at..].iter_mut().zip(change) {
                *byte ^= by;
            }
            let tail = message.len() - at - change.len();
            prop_assert_eq!(
                crc32fast::hash(&changed),
                crc32fast::hash(&message) ^ delta(change, tail)
            );
        }

        #[test]
        fn a_table_by_bits_equals_the_table_by_paths(xor: u16, other: u16, lengths in prop::collection::vec(8..9000u16, 1..20)) {
            let mut cache = PortCache::new();
            for length in lengths {
                let right = port_deltas([xor, other], length);
                let table = PortDeltas::new(length);
                prop_assert_eq!([table.of(xor), table.of(other)], right, "{}", length);
                prop_assert_eq!([cache.delta(xor, length), cache.delta(other, length)], right, "{}", length);
            }
        }

        #[test]
        fn a_mark_changes_the_checksum_by_the_difference(mut header: [u8; 20], ecn in 0..4u8) {
            header[0] = 0x45;
            let ecn = TrafficClass(ecn).ecn();
            let mut view = ipv4::View::new(&mut header[..]);
            if let Ok(view) = &mut view {
                view.fill_checksum();
            }
            let was_right = view.is_ok();
            set_ecn(&mut header, ecn).unwrap();
            prop_assert_eq!(TrafficClass(header[1]).ecn(), ecn);
            if was_right {
                let view = ipv4::View::new(&header[..]).unwrap();
                // Ones' complement has two zeros; a receiver accepts both.
                let (found, right) = (view.checksum(), view.right_checksum());
                prop_assert!(found == right || found ^ right == 0xFFFF && (found == 0 || right == 0));
            }
        }

        #[test]
        fn two_updates_add_up(a: u16, b: u16, length in 8..9000u16) {
            let [of_a, of_b, of_both] = port_deltas([a, b, a ^ b], length);
            prop_assert_eq!(of_a ^ of_b, of_both);
        }
    }
}
