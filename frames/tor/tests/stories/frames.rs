//! Which frames are RoCEv2 packets, and what the source port of a connection says about its queue pairs.

use crate::lab::Transfer;
use tor::frame::{Class, Kind, Link, Roce, classify};
use wire::bth::{Opcode, Qpn};
use wire::ecn::Ecn;
use wire::roce::Extension;

fn packet(v6: bool, vlan: Option<u16>) -> Vec<u8> {
    let transfer = Transfer { v6, vlan, ..Transfer::default() };
    transfer.frame(true, Opcode::SendOnly, 7, Extension::None, 64, false, 10, Ecn::Ect0)
}

fn class(bytes: &[u8]) -> Class {
    classify(&Link::of(bytes).unwrap(), bytes)
}

fn roce(bytes: &[u8]) -> Option<Roce> {
    match class(bytes) {
        Class::Roce(roce) => Some(roce),
        _ => None,
    }
}

#[test]
fn the_fields_of_a_packet_are_read_behind_any_header() {
    for (v6, vlan, ip) in [(false, None, 14), (true, None, 14), (false, Some(5), 18), (true, Some(5), 18)] {
        let bytes = packet(v6, vlan);
        let found = roce(&bytes).unwrap();
        assert_eq!((found.kind, found.opcode), (Kind::Request { span: 1 }, 0x04));
        assert_eq!((found.qp, found.psn.value(), found.source_port), (Qpn::new(18), 1_007, 0xC121));
        assert_eq!((found.traffic_class.dscp(), found.traffic_class.ecn()), (10, Ecn::Ect0));
        let udp = ip + if v6 { 40 } else { 20 };
        assert_eq!((found.ip, found.udp, found.bth(), found.icrc), (ip, udp, udp + 8, bytes.len() - 4));
        assert!(found.icrc_is_right(&bytes) && found.is_request());
        // Padding behind the ICRC changes nothing; a missing byte does.
        assert_eq!(roce(&[bytes.clone(), vec![0; 6]].concat()), Some(found));
        assert_eq!(roce(&bytes[..bytes.len() - 1]), None);
    }
}

/// A change of one byte that makes the packet another kind of frame: what it is, its place, and its new value.
#[test]
fn one_wrong_field_makes_a_frame_that_themis_leaves_alone() {
    let changes = [
        (false, "no IP", 12, 0x09),
        (false, "version 6 in an IPv4 frame", 14, 0x65),
        (false, "options", 14, 0x46),
        (false, "a longer packet than the frame", 17, 0xFF),
        (false, "a shorter packet than its datagram", 17, 80),
        (false, "more fragments", 20, 0x20),
        (false, "a high part of the offset", 20, 0x01),
        (false, "a low part of the offset", 21, 0x01),
        (false, "TCP", 23, 6),
        (false, "another UDP port", 37, 0x00),
        (false, "another length of the datagram", 39, 0x10),
        (false, "a transport version other than 0", 43, 0x01),
        (true, "version 4 in an IPv6 frame", 14, 0x40),
        (true, "another length of the packet", 19, 0x50),
        (true, "an extension header", 20, 0),
    ];
    for (v6, what, at, value) in changes {
        let mut bytes = packet(v6, None);
        assert_ne!(bytes[at], value, "{what}");
        bytes[at] = value;
        assert_eq!(class(&bytes), Class::Other, "{what}");
    }
    let mut allowed = packet(false, None);
    allowed[20] = 0; // it may be fragmented, and is not
    assert!(roce(&allowed).is_some());
}

/// A datagram that ends before an ICRC can stand behind the BTH.
#[test]
fn a_packet_without_room_for_its_icrc_is_none() {
    for (cut, whole) in [(64, true), (65, false)] {
        let mut bytes = packet(false, None);
        bytes.truncate(bytes.len() - cut);
        let (total, datagram) = ((bytes.len() - 14) as u16, (bytes.len() - 34) as u16);
        bytes[16..18].copy_from_slice(&total.to_be_bytes());
        bytes[38..40].copy_from_slice(&datagram.to_be_bytes());
        assert_eq!(roce(&bytes).is_some(), whole);
    }
}

/// By hand from `include/rdma/ib_verbs.h`: 0x12345 x 0x6789A has the flow label 0x5FA4F, whose low 14 bits 0x3A4F and high bits
/// 0x17 make 0x3A58.
#[test]
fn the_source_port_is_the_fold_of_linux() {
    for (a, b, port) in [
        (1, 1, 0xC001),
        (17, 18, 0xC132),
        (0x1_2345, 0x6_789A, 0xFA58),
        (0xAB_CDEF, 0x1000, 0xDBF4),
        (0xFF_FFFF, 0xFF_FFFF, 0xFF21),
    ] {
        let (a, b) = (Qpn::new(a), Qpn::new(b));
        assert_eq!((tor::fold(a, b), tor::fold(b, a)), (port, port));
    }
}
