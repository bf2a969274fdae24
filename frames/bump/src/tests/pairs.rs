//! Which replies answer which flow.

use super::{Lab, frame, psn};
use crate::Side;
use wire::Psn;
use wire::aeth::{self, Syndrome};
use wire::bth::{self, Opcode, Qpn};
use wire::roce::Extension;

fn data(qp: u32, port: u16, psn: u32) -> Vec<u8> {
    let bth = bth::Repr::new(Opcode::SendOnly, Qpn::new(qp), Psn::new(psn));
    frame(1, 2, port, bth, Extension::None, &[0; 16])
}

fn reply(qp: u32, port: u16, psn: u32, syndrome: Syndrome) -> Vec<u8> {
    let bth = bth::Repr::new(Opcode::Acknowledge, Qpn::new(qp), Psn::new(psn));
    frame(2, 1, port, bth, Extension::Aeth(aeth::Repr { syndrome, msn: 0 }), &[])
}

/// PSN of what host 1 hears, and PSNs of what it sends, for a reply that arrives.
fn hear(lab: &mut Lab, reply: Vec<u8>) -> (u32, Vec<u32>) {
    let (host, network) = lab.give(0, Side::Network, reply);
    (psn(&host[0]), network.iter().map(|f| psn(f)).collect())
}

#[test]
fn equal_ports_tell_two_flows_with_equal_psns_apart() {
    let mut lab = Lab::new("", None);
    for n in 0..4 {
        lab.give(0, Side::Host, data(0x20, 50_000, n));
        lab.give(0, Side::Host, data(0x21, 50_001, n));
    }
    assert_eq!(hear(&mut lab, reply(0x31, 50_001, 2, Syndrome::PSN_SEQUENCE)), (1, vec![2]));
    assert_eq!(lab.counters(0).learnt, 1);
}

#[test]
fn flows_with_one_port_and_equal_psns_stay_unknown_until_a_reply_decides() {
    let mut lab = Lab::new("", None);
    for n in 0..4 {
        lab.give(0, Side::Host, data(0x20, 50_000, n));
    }
    for n in 0..8 {
        lab.give(0, Side::Host, data(0x21, 50_000, n));
    }
    // Both flows have a packet 2, so the NACK is the host's to answer.
    assert_eq!(hear(&mut lab, reply(0x31, 50_000, 2, Syndrome::PSN_SEQUENCE)), (2, vec![]));
    assert_eq!((lab.counters(0).nacks_unknown, lab.counters(0).learnt), (1, 0));
    // Only the second flow has a packet 6; the other flow is then known by elimination.
    assert_eq!(hear(&mut lab, reply(0x31, 50_000, 6, Syndrome::PSN_SEQUENCE)), (5, vec![6]));
    assert_eq!(hear(&mut lab, reply(0x30, 50_000, 3, Syndrome::PSN_SEQUENCE)), (2, vec![3]));
    assert_eq!(lab.counters(0).learnt, 2);
}

#[test]
fn a_reply_to_a_packet_that_was_never_sent_ends_a_pair() {
    let mut lab = Lab::new("", None);
    lab.give(0, Side::Host, data(0x20, 50_000, 0));
    hear(&mut lab, reply(0x30, 50_000, 0, Syndrome::ACK));
    assert_eq!(lab.counters(0).learnt, 1);
    assert_eq!(hear(&mut lab, reply(0x30, 50_000, 900, Syndrome::PSN_SEQUENCE)), (900, vec![]));
    assert_eq!(lab.counters(0).unlearnt, 1);
}
