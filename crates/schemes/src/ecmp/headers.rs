//! Hashes of header bytes, as in the ASICs of switches: CRCs and XOR over the 5-tuple of RoCEv2, with a seed.
//!
//! No vendor publishes how a hash selects a member. Ours: the seed is XORed into the first value of a CRC, or into the XOR; the
//! hash is rotated right by the offset (SAI, ECMP default hash offset); the remainder by the number of members selects one.
//!
//! A CRC is linear in its first value: two seeds give hashes that differ in the same bits for all flows of equal length. So
//! seeds alone do not keep tiers with 2, 4, 8 ... members apart; the offset does.

use super::{Config, Fields, Function, Seed, SeedRule};
use model::draw::{Key, Purpose};
use model::plan::Qp;
use model::{Fabric, HostId, NodeId, Site};

/// Destination port of RoCEv2 (IANA), and the protocol number of UDP.
const ROCE: u16 = 4791;
const UDP: u8 = 17;
/// Generators, highest power first: CRC-16/IBM-3740 ("CCITT") and the CRC-32 of Ethernet. Which CRC an ASIC has is
/// unpublished; both are our choice among the common ones.
const CRC16: u16 = 0x1021;
const CRC32: u32 = 0xEDB8_8320;

/// Seed and offset of SONiC's switches, by tier from ToRs on: `dockers/docker-orchagent/switch.json.j2` in sonic-buildimage has
/// 0 for ToRRouter, 10 and the offset 10 for LeafRouter, and 25 for SpineRouter. It tests whether the type contains
/// "SpineRouter", so FabricSpineRouter and UpperSpineRouter have 25, too, and the 40 and 50 further down never apply.
const BY_TIER: [(u32, u32); 3] = [(0, 0), (10, 10), (25, 0)];

/// Seed and offset of a switch.
fn seed_of(seed: Seed, fabric: &Fabric, node: NodeId) -> (u32, u32) {
    match seed {
        Seed::Rule(SeedRule::EachSwitch) => (node.0, 0),
        Seed::Rule(SeedRule::ByRole) => BY_TIER[fabric.tier(node).clamp(1, BY_TIER.len()) - 1],
        Seed::Number(seed) => (seed, 0),
    }
}

/// Hashes of every queue pair's data and replies in one switch.
pub(super) fn of_queue_pairs(config: &Config, site: Site<'_>) -> Box<[[u32; 2]]> {
    let (seed, offset) = seed_of(config.seed, site.fabric(), site.node);
    let key = match config.seed {
        Seed::Rule(SeedRule::EachSwitch) => Key::new(site.plan.seed, Purpose::Salt, site.node.0.into()),
        _ => Key::new(0, Purpose::Salt, seed.into()),
    };
    let both = |(number, qp): (u32, &Qp)| {
        [(qp.from, qp.to, 0), (qp.to, qp.from, 1)].map(|(from, to, end)| match config.function {
            Function::Ours => {
                let tuple = match config.fields {
                    Fields::Addresses => u64::from(from.0) << 32 | u64::from(to.0),
                    Fields::FiveTuple | Fields::FiveTupleQp => u64::from(number) << 1 | u64::from(end),
                };
                (key.draw(tuple) as u32).rotate_right(offset)
            }
            function => {
                let mut bytes = [0; MOST];
                let length = write(&mut bytes, config.fields, (from, to), number << 1 | end);
                hash(function, &bytes[..length], seed, offset)
            }
        })
    };
    (0..).zip(&site.plan.qps).map(both).collect()
}

/// Length of the longest header fields: addresses, protocol, ports and a queue pair number.
const MOST: usize = 4 + 4 + 1 + 2 + 2 + 3;

/// Writes the fields that a switch hashes; returns their length. Addresses and numbers are those of captured frames: hosts from
/// 10.0.0.1 on, queue pair numbers `own + 2` at the sender, and a UDP source port from the upper 2^14 by Fibonacci hashing of
/// the sender's number. `own` is twice the number of the queue pair, plus 1 at the receiver of data.
fn write(bytes: &mut [u8; MOST], fields: Fields, (from, to): (HostId, HostId), own: u32) -> usize {
    let address = |host: HostId| (u32::from_be_bytes([10, 0, 0, 1]).wrapping_add(host.0)).to_be_bytes();
    let number = |own: u32| own.wrapping_add(2) & 0xFF_FFFF;
    let source = match fields {
        Fields::Addresses => 0xC000,
        Fields::FiveTuple | Fields::FiveTupleQp => {
            0xC000 | (number(own).wrapping_mul(0x9E37_79B9) >> 18) as u16
        }
    };
    bytes[..4].copy_from_slice(&address(from));
    bytes[4..8].copy_from_slice(&address(to));
    bytes[8] = UDP;
    bytes[9..11].copy_from_slice(&source.to_be_bytes());
    bytes[11..13].copy_from_slice(&ROCE.to_be_bytes());
    if fields != Fields::FiveTupleQp {
        return 13;
    }
    bytes[13..].copy_from_slice(&number(own ^ 1).to_be_bytes()[1..]);
    MOST
}

fn hash(function: Function, bytes: &[u8], seed: u32, offset: u32) -> u32 {
    match function {
        Function::Crc32 => crc32(bytes, seed).rotate_right(offset),
        Function::Crc16 => crc16(bytes, seed as u16).rotate_right(offset).into(),
        Function::Xor | Function::Ours => xor(bytes, seed as u16).rotate_right(offset).into(),
    }
}

fn crc32(bytes: &[u8], seed: u32) -> u32 {
    let step = |crc: u32, _| crc >> 1 ^ if crc & 1 == 1 { CRC32 } else { 0 };
    !bytes.iter().fold(!seed, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), step))
}

fn crc16(bytes: &[u8], seed: u16) -> u16 {
    let step = |crc: u16, _| crc << 1 ^ if crc >> 15 == 1 { CRC16 } else { 0 };
    bytes.iter().fold(!seed, |crc, &byte| (0..8).fold(crc ^ u16::from(byte) << 8, step))
}

/// The XOR of all 16-bit words; an odd byte is the upper half of a word.
fn xor(bytes: &[u8], seed: u16) -> u16 {
    let word = |pair: &[u8]| u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]);
    bytes.chunks(2).fold(seed, |hash, pair| hash ^ word(pair))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_have_their_published_check_values() {
        // The check values of the CRC catalogue for "123456789".
        assert_eq!((crc32(b"123456789", 0), crc16(b"123456789", 0)), (0xCBF4_3926, 0x29B1));
        assert_eq!(xor(&[0x12, 0x34, 0x56], 0x0101), 0x1234 ^ 0x5600 ^ 0x0101);
    }

    #[test]
    fn the_fields_are_those_of_a_frame() {
        let mut bytes = [0; MOST];
        assert_eq!(write(&mut bytes, Fields::FiveTupleQp, (HostId(0), HostId(255)), 0), MOST);
        assert_eq!(bytes[..9], [10, 0, 0, 1, 10, 0, 1, 0, 17]);
        assert_eq!(bytes[11..], [0x12, 0xB7, 0, 0, 3], "port 4791, and the receiver's number");
        assert_eq!(write(&mut bytes, Fields::FiveTuple, (HostId(0), HostId(255)), 0), 13);
    }

    /// The reason for SONiC's offset.
    #[test]
    fn two_seeds_of_a_crc_differ_in_the_same_bits_for_every_flow() {
        let differ = |qp: u32, offset| {
            let mut bytes = [0; MOST];
            let length = write(&mut bytes, Fields::FiveTuple, (HostId(qp % 7), HostId(9)), qp << 1);
            hash(Function::Crc32, &bytes[..length], 0, 0)
                ^ hash(Function::Crc32, &bytes[..length], 10, offset)
        };
        assert!((0..1000).all(|qp| differ(qp, 0) == differ(0, 0)));
        assert!((1..1000).any(|qp| differ(qp, 10) % 8 != differ(0, 10) % 8));
    }
}
