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
//! per path and packet length, computed beforehand by [`port_deltas`], is enough to repair an ICRC.

use crate::icrc::{Layout, read_at, write_at};
use crate::view::{get16, put};
use crate::{Error, udp};

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

/// Number of covered bytes behind the source port in a datagram of this length.
const fn port_tail(length: u16) -> usize {
    (length as usize).saturating_sub(size_of::<u16>() + crate::icrc::LEN)
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
        fn two_updates_add_up(a: u16, b: u16, length in 8..9000u16) {
            let [of_a, of_b, of_both] = port_deltas([a, b, a ^ b], length);
            prop_assert_eq!(of_a ^ of_b, of_both);
        }
    }
}
