//! Stories about hosts whose receivers drop packets that arrive out of order, behind NICs that do not.

mod pairs;
mod world;

use crate::{Bump, Counters, Face, Out, Personality, Settings, Side};
use model::{Rate, Time};
use rnic::NicConfig;
use wire::aeth::{self, Syndrome};
use wire::bth::{self, Opcode, Qpn};
use wire::ecn::{Ecn, TrafficClass};
use wire::ethernet::Address;
use wire::roce::{Extension, Ip, Repr};
use wire::{Psn, ipv4, reth};
use world::World;

const MTU: u32 = 1024;
/// Queue pairs of the requester and the responder.
const ASKS: u32 = 0x11;
const ANSWERS: u32 = 0x12;

fn frame(from: u32, to: u32, port: u16, bth: bth::Repr, extension: Extension, payload: &[u8]) -> Vec<u8> {
    let address = |n: u32| [10, 0, 0, n as u8].into();
    let repr = Repr {
        destination: Address::local(to),
        source: Address::local(from),
        ip: Ip::V4(ipv4::Repr {
            traffic_class: TrafficClass::default(),
            identification: 7,
            dont_fragment: true,
            time_to_live: 64,
            protocol: ipv4::UDP,
            source: address(from),
            destination: address(to),
            payload_len: 0,
        }),
        source_port: port,
        bth,
        extension,
    };
    let mut bytes = vec![0; repr.frame_len(payload.len())];
    repr.emit(payload, &mut bytes).unwrap();
    bytes
}

/// Packet of a Send from host 1 to host 2.
fn data(psn: u32) -> Vec<u8> {
    let bth = bth::Repr {
        ack_request: true,
        ..bth::Repr::new(Opcode::SendMiddle, Qpn::new(ANSWERS), Psn::new(psn))
    };
    frame(1, 2, 0xC111, bth, Extension::None, &[0xAB; MTU as usize])
}

fn read_request(psn: u32, length: u32) -> Vec<u8> {
    let bth = bth::Repr::new(Opcode::ReadRequest, Qpn::new(ANSWERS), Psn::new(psn));
    frame(1, 2, 0xC111, bth, Extension::Reth(reth::Repr { address: 0, key: 1, length }), &[])
}

/// Reply of host 2 to host 1.
fn reply(psn: u32, syndrome: Syndrome) -> Vec<u8> {
    let bth = bth::Repr::new(Opcode::Acknowledge, Qpn::new(ASKS), Psn::new(psn));
    frame(2, 1, 0xC111, bth, Extension::Aeth(aeth::Repr { syndrome, msn: 0 }), &[])
}

fn psn(frame: &[u8]) -> u32 {
    Repr::parse(frame).unwrap().0.bth.psn.value()
}

fn nic(toml: &str) -> Personality {
    Personality::new(&toml::from_str::<NicConfig>(toml).unwrap()).unwrap()
}

/// The NICs of host 1 (place 0) and host 2 (place 1) in one process.
struct Lab {
    bump: Bump,
    now: Time,
}

impl Lab {
    fn new(toml: &str, line: Option<Rate>) -> Self {
        let bump = Bump::new(&Settings { nics: vec![line; 2], personality: nic(toml) });
        Lab { bump, now: Time::ZERO }
    }

    /// The frames that leave after one has come in, by side. Frames are 1 us apart.
    fn give(&mut self, nic: usize, side: Side, frame: Vec<u8>) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
        self.now = Time(self.now.ps() + Time::from_us(1).ps());
        self.bump.frame(self.now, Face { nic, side }, frame);
        self.outs()
    }

    /// Lets time pass until nothing waits; returns the times in us at which something started.
    fn starts(&mut self) -> Vec<u64> {
        let mut starts = vec![];
        while let Some(at) = self.bump.poll_at() {
            self.now = at;
            self.bump.tick(at);
            self.outs();
            starts.push(at.ps() / 1_000_000);
        }
        starts
    }

    fn outs(&mut self) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
        let (mut host, mut network) = (vec![], vec![]);
        while let Some(out) = self.bump.poll() {
            match out {
                Out::Send { face, frame } if face.side == Side::Host => host.push(frame),
                Out::Send { frame, .. } => network.push(frame),
                Out::Note(_) => {}
            }
        }
        (host, network)
    }

    /// Sends packets from host 1, and lets host 2's first reply pass, so that NACKs can be built.
    fn connected(toml: &str) -> Self {
        let mut lab = Lab::new(toml, None);
        let (_, sent) = lab.give(0, Side::Host, data(100));
        let (delivered, _) = lab.give(1, Side::Network, sent[0].clone());
        assert_eq!(delivered.len(), 1);
        let (_, acks) = lab.give(1, Side::Host, reply(100, Syndrome::ACK));
        let (heard, _) = lab.give(0, Side::Network, acks[0].clone());
        assert_eq!(heard, acks);
        lab
    }

    fn counters(&self, nic: usize) -> &Counters {
        self.bump.counters(nic).unwrap()
    }

    /// PSNs that reach host 2 for a packet that arrives, and PSNs of NACKs that leave.
    fn arrive(&mut self, frame: Vec<u8>) -> (Vec<u32>, Vec<u32>) {
        let (host, network) = self.give(1, Side::Network, frame);
        (host.iter().map(|f| psn(f)).collect(), network.iter().map(|f| psn(f)).collect())
    }
}

#[test]
fn a_receiver_gets_packets_in_order_and_one_nack_leaves_per_missing_packet() {
    let mut lab = Lab::connected("");
    for n in 101..=105 {
        let (_, sent) = lab.give(0, Side::Host, data(n));
        assert_eq!(sent.len(), 1);
    }
    assert_eq!(lab.arrive(data(102)), (vec![], vec![101]));
    assert_eq!(lab.arrive(data(104)), (vec![], vec![]));
    assert_eq!(lab.arrive(data(101)), (vec![101, 102], vec![]));
    assert_eq!(lab.arrive(data(105)), (vec![], vec![103]));
    assert_eq!(lab.arrive(data(103)), (vec![103, 104, 105], vec![]));
    // The host acknowledges a packet that it has.
    assert_eq!(lab.arrive(data(104)), (vec![104], vec![]));
    let counted = lab.counters(1);
    assert_eq!((counted.arrived, counted.out_of_order, counted.duplicates), (7, 3, 1));
    assert_eq!((counted.nacks_sent, counted.most_held), (2, 2));
}

#[test]
fn a_nack_becomes_an_ack_for_the_host_and_brings_one_packet_back() {
    let mut lab = Lab::connected("");
    for n in 101..=105 {
        lab.give(0, Side::Host, data(n));
    }
    let nack = reply(103, Syndrome::PSN_SEQUENCE);
    let (heard, sent) = lab.give(0, Side::Network, nack.clone());
    assert_eq!(heard, [reply(102, Syndrome::ACK)], "ICRC and all");
    let mut capable = data(103);
    crate::frame::Roce::of(&capable.clone()).unwrap().set_capable(&mut capable);
    assert_eq!(sent, [capable]);
    // The copies of 101 and 102 are gone, and a stale NACK brings nothing back.
    let (heard, sent) = lab.give(0, Side::Network, reply(101, Syndrome::PSN_SEQUENCE));
    assert_eq!((heard, sent), (vec![reply(100, Syndrome::ACK)], vec![]));
    assert_eq!((lab.counters(0).nacks_heard, lab.counters(0).retransmitted), (2, 1));
}

#[test]
fn a_nack_of_an_unknown_flow_passes() {
    let mut lab = Lab::new("", None);
    let nack = reply(5, Syndrome::PSN_SEQUENCE);
    let (heard, _) = lab.give(0, Side::Network, nack.clone());
    assert_eq!((heard, lab.counters(0).nacks_unknown), (vec![nack], 1));
}

#[test]
fn what_is_no_request_passes_unaltered() {
    let mut lab = Lab::connected("");
    let not_ready = reply(100, Syndrome::ReceiverNotReady(12));
    let invalid = reply(100, Syndrome::Nak(aeth::Nak::InvalidRequest));
    let datagram = {
        let mut bytes = data(9);
        bytes[14 + 28] = 0x64; // UD SEND Only, with an ICRC that does not matter to a bump
        bytes
    };
    for bytes in [vec![0xFF; 60], vec![1; 5], not_ready, invalid, datagram] {
        for (nic, side) in [(0, Side::Host), (0, Side::Network)] {
            let (host, network) = lab.give(nic, side, bytes.clone());
            let (left, other) = if side == Side::Host { (network, host) } else { (host, network) };
            assert_eq!((left, other), (vec![bytes.clone()], vec![]), "{side:?}");
        }
    }
}

#[test]
fn a_damaged_packet_never_reaches_the_host() {
    let mut lab = Lab::connected("");
    let mut bad = data(101);
    bad[80] ^= 1;
    assert_eq!(lab.arrive(bad), (vec![], vec![]));
    assert_eq!(lab.arrive(data(101)), (vec![101], vec![]));
    assert_eq!(lab.counters(1).icrc_wrong, 1);
}

#[test]
fn a_read_takes_a_psn_for_each_response() {
    let mut lab = Lab::connected("");
    // The sending side learns the path MTU from the next request, and the receiving side hears of it.
    for request in [read_request(101, 4 * MTU), data(105), read_request(106, 2 * MTU), data(108)] {
        lab.give(0, Side::Host, request);
    }
    assert_eq!(lab.arrive(data(105)), (vec![], vec![101]));
    assert_eq!(lab.arrive(read_request(101, 4 * MTU)), (vec![101, 105], vec![]));
    assert_eq!(lab.arrive(data(108)), (vec![], vec![106]));
    assert_eq!(lab.arrive(read_request(106, 2 * MTU)), (vec![106, 108], vec![]));
    // A lost read request comes back alone.
    let (_, sent) = lab.give(0, Side::Network, reply(106, Syndrome::PSN_SEQUENCE));
    assert_eq!(sent.iter().map(|f| psn(f)).collect::<Vec<_>>(), [106]);
}

#[test]
fn a_nack_waits_for_the_first_reply_of_the_host() {
    let mut lab = Lab::new("", None);
    for n in 100..=103 {
        lab.give(0, Side::Host, data(n));
    }
    assert_eq!(lab.arrive(data(102)), (vec![], vec![]));
    assert_eq!(lab.arrive(data(100)), (vec![100], vec![]));
    // 103 is ahead of a new gap.
    assert_eq!(lab.arrive(data(103)), (vec![], vec![]));
    let (_, replies) = lab.give(1, Side::Host, reply(100, Syndrome::ACK));
    let psns: Vec<u32> = replies.iter().map(|f| psn(f)).collect();
    assert_eq!(psns, [101, 100], "the NACK that was due, and the host's ACK");
    assert_eq!(lab.counters(1).nacks_late, 2);
}

#[test]
fn after_not_ready_and_after_a_nack_of_the_host_the_nic_continues_there() {
    for syndrome in [Syndrome::ReceiverNotReady(12), Syndrome::PSN_SEQUENCE] {
        let mut lab = Lab::connected("");
        for n in 101..=103 {
            lab.give(0, Side::Host, data(n));
            assert_eq!(lab.arrive(data(n)).0, [n]);
        }
        let (_, passed) = lab.give(1, Side::Host, reply(102, syndrome));
        assert_eq!(passed, [reply(102, syndrome)]);
        // The packets from 102 on arrive again, out of order.
        assert_eq!(lab.arrive(data(103)), (vec![], vec![102]));
        assert_eq!(lab.arrive(data(102)).0, [102, 103]);
    }
}

#[test]
fn the_host_may_send_again_by_its_timer() {
    let mut lab = Lab::connected("");
    for n in 101..=103 {
        lab.give(0, Side::Host, data(n));
    }
    for n in 101..=103 {
        let (_, sent) = lab.give(0, Side::Host, data(n));
        assert_eq!(sent.iter().map(|f| psn(f)).collect::<Vec<_>>(), [n]);
    }
    let counted = lab.counters(0);
    assert_eq!((counted.requests, counted.host_resent, counted.host_timeouts), (4, 3, 1));
}

#[test]
fn a_queue_pair_number_may_be_used_again() {
    let mut lab = Lab::connected("");
    let far = 5_000_000;
    for n in [far, far + 1] {
        let (_, sent) = lab.give(0, Side::Host, data(n));
        assert_eq!(sent.len(), 1);
    }
    assert_eq!(lab.arrive(data(far + 1)), (vec![], vec![]));
    assert_eq!(lab.arrive(data(far)), (vec![far, far + 1], vec![]));
}

#[test]
fn a_nic_without_a_reorder_buffer_goes_back() {
    let mut lab = Lab::connected("[transport.go-back-n]\n[congestion.none]");
    for n in 101..=104 {
        lab.give(0, Side::Host, data(n));
    }
    assert_eq!(lab.arrive(data(102)), (vec![], vec![101]));
    assert_eq!(lab.arrive(data(101)), (vec![101], vec![]));
    let (_, sent) = lab.give(0, Side::Network, reply(102, Syndrome::PSN_SEQUENCE));
    assert_eq!(sent.iter().map(|f| psn(f)).collect::<Vec<_>>(), [102, 103, 104]);
    assert_eq!(lab.counters(1).discarded, 1);
}

#[test]
fn adaptive_routing_keeps_packets_and_sends_no_nack() {
    let mut lab = Lab::connected("on-nack = \"none\"\n[transport.adaptive-routing]");
    assert_eq!(lab.arrive(data(103)), (vec![], vec![]));
    assert_eq!(lab.arrive(data(102)), (vec![], vec![]));
    assert_eq!(lab.arrive(data(101)), (vec![101, 102, 103], vec![]));
}

#[test]
fn a_line_has_a_rate_and_a_cnp_lowers_it() {
    let slow = "[congestion.dcqcn-hpcc]\nmin-rate = \"1Mbps\"\nrate-on-first-cnp = 0.5\nrate-increase-timer = \"1s\"";
    let mut lab = Lab::new(slow, Some(Rate(10_000_000)));
    for n in 100..104 {
        lab.give(0, Side::Host, data(n));
    }
    // 1082 B of frame and 24 B around it at 10 Mb/s.
    assert_eq!(lab.starts(), [885, 1770, 2655]);
    // Host 2's NIC sends a CNP for a marked packet, and host 1 never sees it.
    lab.give(1, Side::Network, data(100));
    lab.give(1, Side::Host, reply(100, Syndrome::ACK));
    lab.give(0, Side::Network, reply(100, Syndrome::ACK));
    let mut marked = data(101);
    wire::ipv4::View::new(&mut marked[14..]).unwrap().set_traffic_class(TrafficClass::new(0, Ecn::Ce));
    let (_, cnp) = lab.give(1, Side::Network, marked);
    assert_eq!(cnp.len(), 1);
    assert_eq!(Repr::parse(&cnp[0]).unwrap().0.bth.opcode, Opcode::Cnp);
    let (host, _) = lab.give(0, Side::Network, cnp[0].clone());
    assert!(host.is_empty());
    lab.give(0, Side::Host, data(104));
    lab.give(0, Side::Host, data(105));
    let starts = lab.starts();
    // Half the rate at the CNP, and nearly half of that 4 us later.
    assert_eq!(starts[1] - starts[0], 3485);
    assert_eq!((lab.counters(0).cnps_heard, lab.counters(1).cnps_sent), (1, 1));
}

#[test]
fn settings_that_real_frames_cannot_carry_are_refused() {
    let field = |toml: &str| Personality::new(&toml::from_str(toml).unwrap()).unwrap_err().field;
    assert_eq!(field("on-nack = \"none\"\n[transport.irn]"), "transport.irn");
    assert_eq!(field("[congestion.swift]"), "congestion.swift");
    assert_eq!(field("window = \"bdp\""), "window");
    assert_eq!(field("ack-every = 0"), "ack-every");
}

#[test]
fn whatever_the_order_of_paths_all_data_arrives_once_and_in_order() {
    for seed in 0..20 {
        let mut world = World::new("", seed);
        world.run(500);
        assert_eq!(world.delivered, (0..500).collect::<Vec<u32>>(), "seed {seed}");
        assert!(world.bump.counters(1).unwrap().out_of_order > 50);
    }
}

#[test]
fn lost_packets_come_back_by_nacks_or_by_the_hosts_timer() {
    for seed in 0..20 {
        let mut world = World::new("", seed);
        world.loss_per_thousand = 20;
        world.run(500);
        assert_eq!(world.delivered, (0..500).collect::<Vec<u32>>(), "seed {seed}");
        assert!(world.bump.counters(0).unwrap().retransmitted > 0);
    }
}
