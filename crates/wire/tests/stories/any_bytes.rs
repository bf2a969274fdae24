//! Arbitrary bytes: no input panics, and frames are read as they were written.

use proptest::prelude::*;
use std::net::{Ipv4Addr, Ipv6Addr};
use wire::roce::{Extension, Ip, Repr};
use wire::{Psn, aeth, bth, cnp, ecn, ethernet, icrc, ipv4, ipv6, patch, pfc, reth, udp};

/// Random bytes, or a valid frame that was truncated or in which some bytes were changed.
fn frames() -> impl Strategy<Value = Vec<u8>> {
    let noise = prop::collection::vec(any::<u8>(), 0..200);
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6);
    let broken = (reprs(), payloads(), changes, any::<prop::sample::Index>(), any::<bool>());
    let broken = broken.prop_map(|(repr, payload, changes, cut, cuts)| {
        let mut frame = written(&repr, &payload);
        for (at, value) in changes {
            let at = at.index(frame.len());
            frame[at] = value;
        }
        if cuts {
            frame.truncate(cut.index(frame.len() + 1));
        }
        frame
    });
    prop_oneof![noise, broken]
}

fn payloads() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..100)
}

fn reprs() -> impl Strategy<Value = Repr> {
    let v4 = (any::<u8>(), any::<u16>(), any::<bool>(), any::<u8>(), any::<u32>(), any::<u32>());
    let v4 = v4.prop_map(|(class, identification, dont_fragment, time_to_live, from, to)| {
        Ip::V4(ipv4::Repr {
            traffic_class: ecn::TrafficClass(class),
            identification,
            dont_fragment,
            time_to_live,
            protocol: ipv4::UDP,
            source: Ipv4Addr::from(from),
            destination: Ipv4Addr::from(to),
            payload_len: 0,
        })
    });
    let v6 = (any::<u8>(), 0..1u32 << 20, any::<u8>(), any::<u128>(), any::<u128>());
    let v6 = v6.prop_map(|(class, flow_label, hop_limit, from, to)| {
        Ip::V6(ipv6::Repr {
            traffic_class: ecn::TrafficClass(class),
            flow_label,
            next_header: ipv4::UDP,
            hop_limit,
            source: Ipv6Addr::from(from),
            destination: Ipv6Addr::from(to),
            payload_len: 0,
        })
    });
    let header = (any::<u8>(), any::<[bool; 5]>(), 0..4u8, any::<u16>(), any::<u32>(), any::<u32>());
    let header = header.prop_map(|(opcode, flags, pad, partition, qp, psn)| {
        let [solicited, migrated, fecn, becn, ack_request] = flags;
        let plain = bth::Repr::new(opcode.into(), bth::Qpn::new(qp), Psn::new(psn));
        bth::Repr { solicited, migrated, pad, partition, fecn, becn, ack_request, ..plain }
    });
    let extra = (any::<u64>(), any::<u32>(), any::<u32>(), any::<u8>());
    (prop_oneof![v4, v6], header, extra, any::<u16>(), any::<[u8; 6]>()).prop_map(
        |(ip, bth, (address, key, length, syndrome), source_port, mac)| {
            let extension = match bth.opcode {
                bth::Opcode::Cnp => Extension::Cnp,
                opcode if opcode.has_reth() => Extension::Reth(reth::Repr { address, key, length }),
                opcode if opcode.has_aeth() => {
                    Extension::Aeth(aeth::Repr { syndrome: syndrome.into(), msn: key >> 8 })
                }
                _ => Extension::None,
            };
            let (destination, source) = (ethernet::Address(mac), ethernet::Address::local(key));
            Repr { destination, source, ip, source_port, bth, extension }
        },
    )
}

fn written(repr: &Repr, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0xA5; 400];
    let len = repr.emit(payload, &mut frame).expect("the frame fits");
    frame.truncate(len);
    frame
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_input_panics(mut bytes in frames(), port: u16) {
        let _ = Repr::parse(&bytes);
        let _ = ethernet::View::new(&bytes).map(|view| ethernet::Repr::parse(&view));
        for at in [0, ethernet::LEN.min(bytes.len())] {
            let bytes = &mut bytes[at..];
            let _ = icrc::compute(bytes);
            let _ = icrc::check(bytes);
            let _ = icrc::fill(bytes);
            let _ = patch::set_source_port(bytes, port);
            if let Ok(mut view) = ipv4::View::new(&mut *bytes) {
                let _ = ipv4::Repr::parse(&view);
                view.fill_checksum();
                view.payload_mut().fill(1);
            }
            if let Ok(mut view) = ipv6::View::new(&mut *bytes) {
                let _ = ipv6::Repr::parse(&view);
                view.payload_mut().fill(1);
            }
            if let Ok(mut view) = udp::View::new(&mut *bytes) {
                let _ = udp::Repr::parse(&view);
                view.payload_mut().fill(1);
            }
            let _ = bth::View::new(&*bytes).map(|view| bth::Repr::parse(&view));
            let _ = reth::View::new(&*bytes).map(|view| reth::Repr::parse(&view));
            let _ = aeth::View::new(&*bytes).map(|view| aeth::Repr::parse(&view));
            let _ = cnp::View::new(&*bytes).map(|view| view.is_zero());
            let _ = pfc::View::new(&*bytes).map(|view| pfc::Repr::parse(&view));
        }
    }

    #[test]
    fn a_frame_is_read_as_it_was_written(repr in reprs(), payload in payloads(), behind in payloads()) {
        let frame = written(&repr, &payload);
        let padded = [frame.as_slice(), &behind].concat();
        let (read, body) = Repr::parse(&padded).expect("a frame");
        prop_assert_eq!(body, payload);
        prop_assert_eq!((read.bth, read.extension, read.source_port), (repr.bth, repr.extension, repr.source_port));
        prop_assert_eq!(written(&read, body), frame);
    }

    #[test]
    fn emit_refuses_a_buffer_that_is_too_short(repr in reprs(), payload in payloads(), room in any::<prop::sample::Index>()) {
        let len = repr.frame_len(payload.len());
        let mut frame = vec![0; room.index(len)];
        prop_assert!(repr.emit(&payload, &mut frame).is_err());
    }

    #[test]
    fn a_new_source_port_keeps_an_icrc_valid_or_invalid(
        repr in reprs(), payload in payloads(), port: u16, wrong: u32,
    ) {
        let mut frame = written(&repr, &payload);
        let icrc_at = frame.len() - icrc::LEN;
        for (byte, by) in frame[icrc_at..].iter_mut().zip(wrong.to_le_bytes()) {
            *byte ^= by;
        }
        let packet = &mut frame[ethernet::LEN..];
        prop_assert!(patch::set_source_port(packet, port).is_ok());
        prop_assert_eq!(icrc::check(packet).is_ok(), wrong == 0);
        if wrong == 0 {
            prop_assert_eq!(Repr::parse(&frame).map(|(read, _)| read.source_port), Ok(port));
        }
    }
}
