//! What becomes of an ICRC when some bytes of its packet change, without reading the others.
//!
//! A CRC is linear: the CRCs of two messages of one length differ by what the difference of the messages alone leaves in a
//! register that began with 0. If the bytes `delta` (old xor new) are followed by `tail` bytes that stay, that is
//!
//! ```text
//! crc' = crc ^ L(delta) * x^(8 * tail) mod P
//! ```
//!
//! where L(delta) is the remainder of `delta` and P is the polynomial of CRC-32. The product takes some thirty steps,
//! however long the packet is.
//!
//! A switch that sprays by exclusive or on the UDP source port needs less: its `delta` depends on the path alone, so that
//! one number for each path and length of packets, made beforehand by [`port_deltas`], is all that it takes to repair an ICRC.

use crate::icrc::{Layout, read_at, write_at};
use crate::view::{get16, put};
use crate::{Error, udp};

/// The polynomial of CRC-32 (IEEE 802.3, 3.2.9), x^31 in the lowest bit.
const P: u32 = 0xEDB8_8320;
/// 1 and x^8: x^0 is the highest bit.
const ONE: u32 = 1 << 31;
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

/// x^(8 * bytes) mod P.
const fn power(mut bytes: usize) -> u32 {
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

/// What `bytes` leave in a register that began with 0.
const fn remainder(bytes: &[u8]) -> u32 {
    let (mut register, mut i) = (0, 0);
    while i < bytes.len() {
        register = product(register ^ bytes[i] as u32, X8);
        i += 1;
    }
    register
}

/// By what (exclusive or) an ICRC changes when covered bytes change by `delta` (old xor new), and `tail` covered bytes
/// follow them.
pub const fn delta(delta: &[u8], tail: usize) -> u32 {
    product(remainder(delta), power(tail))
}

/// The same for an exclusive or on the UDP source port, for each of `N` paths: the table that a switch keeps for packets whose
/// UDP length is `length`.
pub const fn port_deltas<const N: usize>(xors: [u16; N], length: u16) -> [u32; N] {
    let shift = power(port_tail(length));
    let (mut deltas, mut path) = ([0; N], 0);
    while path < N {
        deltas[path] = product(remainder(&xors[path].to_be_bytes()), shift);
        path += 1;
    }
    deltas
}

/// Covered bytes behind the source port in a datagram of this length.
const fn port_tail(length: u16) -> usize {
    (length as usize).saturating_sub(size_of::<u16>() + crate::icrc::LEN)
}

/// Changes the UDP source port of a RoCEv2 packet, which begins with its IP header, and its ICRC with it. An ICRC that was
/// wrong stays wrong. A UDP checksum, which RoCEv2 does without, is taken away.
///
/// # Errors
/// If it is no RoCEv2 packet.
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
    fn powers_are_what_zeros_do_to_a_register() {
        // A CRC of bytes and of the same with a zero behind differ by one step of the register.
        for n in 0..20 {
            let stepped = (0..n).fold(0x1234_5678, |register, _| product(register, X8));
            assert_eq!(product(0x1234_5678, power(n)), stepped, "{n}");
        }
        assert_eq!(product(0xCAFE_F00D, ONE), 0xCAFE_F00D);
    }

    proptest! {
        #[test]
        fn any_change_anywhere_is_what_a_full_crc_says(
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
        fn two_changes_come_to_their_sum(a: u16, b: u16, length in 8..9000u16) {
            let [of_a, of_b, of_both] = port_deltas([a, b, a ^ b], length);
            prop_assert_eq!(of_a ^ of_b, of_both);
        }
    }
}
