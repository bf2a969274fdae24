//! Frames built by scapy, which shares no code with this crate.

use std::collections::BTreeMap;
use wire::aeth::{Nak, Syndrome};
use wire::bth::Opcode;
use wire::ecn::Ecn;
use wire::roce::{Extension, Ip, Repr};
use wire::{Error, Layer, ethernet, icrc, patch};

fn vectors() -> BTreeMap<&'static str, Vec<u8>> {
    let lines = include_str!("../../vectors/scapy.txt").lines().filter(|line| !line.starts_with('#'));
    let frame = |line: &'static str| {
        let (name, hex) = line.split_once(' ').expect("a name and bytes");
        let bytes = (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).expect("hex"));
        (name, bytes.collect())
    };
    lines.map(frame).collect()
}

#[test]
fn our_icrcs_equal_scapys() {
    let vectors = vectors();
    assert_eq!(vectors.len(), 13);
    for (name, frame) in vectors {
        let packet = &frame[ethernet::LEN..];
        let theirs = frame[frame.len() - icrc::LEN..].try_into().expect("four bytes");
        assert_eq!(icrc::compute(packet), Ok(u32::from_le_bytes(theirs)), "{name}");
        assert_eq!(icrc::check(packet), Ok(()), "{name}");
        // The ICRC does not cover Ethernet padding.
        assert_eq!(icrc::check(&[packet, &[0xEE; 9]].concat()), Ok(()), "{name}");
    }
}

#[test]
fn reading_and_writing_a_frame_yields_the_same_bytes() {
    for (name, frame) in vectors() {
        let (repr, payload) = Repr::parse(&frame).unwrap_or_else(|e| panic!("{name}: {e}"));
        let mut again = [0xA5; 2048];
        let len = repr.emit(payload, &mut again).expect("the frame fits");
        assert_eq!(again[..len], frame, "{name}");
        assert_eq!(len, repr.frame_len(payload.len()), "{name}");
    }
}

#[test]
fn fields_have_the_values_that_scapy_was_given() {
    let vectors = vectors();
    let read = |name: &str| Repr::parse(&vectors[name]).expect("a frame");
    let (nak, payload) = read("nak");
    let Extension::Aeth(aeth) = nak.extension else { panic!("{nak:?}") };
    assert_eq!((aeth.syndrome, aeth.msn), (Syndrome::Nak(Nak::PsnSequence), 0xFF_FFFF));
    assert_eq!((nak.bth.opcode, nak.bth.psn.value(), payload.len()), (Opcode::Acknowledge, 77, 0));
    let (first, payload) = read("write-first");
    let Extension::Reth(reth) = first.extension else { panic!("{first:?}") };
    assert_eq!((reth.address, reth.key, reth.length), (0x7F00_0102_0304, 0xBEEF, 2048));
    assert_eq!((payload.len(), first.bth.psn.value(), first.bth.ack_request), (1024, 0xFF_FFFF, false));
    let (last, payload) = read("write-last-padded");
    assert_eq!((payload, last.bth.pad, last.bth.ack_request), (&[0, 7, 14, 21, 28][..], 3, true));
    let (cnp, payload) = read("v6-cnp");
    assert_eq!((cnp.extension, cnp.bth.becn, payload.len()), (Extension::Cnp, true, 0));
    let Ip::V6(ip) = cnp.ip else { panic!("{cnp:?}") };
    assert_eq!((ip.flow_label, ip.traffic_class.dscp(), ip.traffic_class.ecn()), (0xA_BCDE, 26, Ecn::Ect0));
}

/// Flips single bits: the ICRC ignores exactly the fields that Linux's rdma_rxe ignores.
#[test]
fn the_icrc_covers_what_switches_must_not_change() {
    let vectors = vectors();
    let (udp, bth) = (20, 28);
    let free_v4 = [1, 8, 10, 11, udp + 6, udp + 7, bth + 4];
    let (udp, bth) = (40, 48);
    let free_v6 = [0, 1, 2, 3, 7, udp + 6, udp + 7, bth + 4];
    for (name, free) in [("write-only", &free_v4[..]), ("v6-write-middle", &free_v6)] {
        let packet = &vectors[name][ethernet::LEN..];
        for at in 0..packet.len() - icrc::LEN {
            let mut flipped = packet.to_vec();
            flipped[at] ^= 1;
            match icrc::check(&flipped) {
                Ok(()) => assert!(free.contains(&at), "{name}: the ICRC covers byte {at}"),
                // A wrong length or protocol: the packet is no longer RoCEv2.
                Err(Error::Short { .. } | Error::Field { .. }) => assert!(!free.contains(&at)),
                Err(error) => {
                    assert!(matches!(error, Error::Checksum { layer: Layer::Icrc, .. }));
                    assert!(!free.contains(&at), "{name}: the ICRC does not cover byte {at}");
                }
            }
        }
    }
}

/// A ToR that sprays over 16 paths by source port needs one number per path and packet length.
#[test]
fn a_table_of_sixteen_numbers_keeps_icrcs_of_sprayed_packets_valid() {
    for (name, frame) in vectors() {
        let packet = &frame[ethernet::LEN..];
        let udp = if packet[0] >> 4 == 6 { 40 } else { 20 };
        let length = (packet.len() - udp) as u16;
        let xors: [u16; 16] = std::array::from_fn(|path| (path as u16).wrapping_mul(0x1235));
        let table = patch::port_deltas(xors, length);
        let old = icrc::read(packet).expect("a packet");
        for (xor, delta) in xors.into_iter().zip(table) {
            let port = u16::from_be_bytes([packet[udp], packet[udp + 1]]) ^ xor;
            let mut sprayed = packet.to_vec();
            sprayed[udp..udp + 2].copy_from_slice(&port.to_be_bytes());
            assert_eq!(icrc::check(&sprayed).is_ok(), xor == 0, "{name}: the ICRC covers the port");
            assert_eq!(icrc::compute(&sprayed), Ok(old ^ delta), "{name}");
            let mut patched = packet.to_vec();
            patch::set_source_port(&mut patched, port).expect("a packet");
            assert_eq!(icrc::check(&patched), Ok(()), "{name}");
            assert_eq!(patched[..packet.len() - 4], sprayed[..packet.len() - 4], "{name}");
        }
    }
}
