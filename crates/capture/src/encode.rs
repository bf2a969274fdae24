//! Simulated packets as the bytes of real frames.
//!
//! | simulated | on the wire |
//! |---|---|
//! | data | RDMA Write First, Middle, Last or Only by its position in its message, RETH in the first; payload of zeros |
//! | mark | ECN: CE; other data is ECT(0) |
//! | ACK | Acknowledge, AETH with syndrome 0x1F and the number of complete messages |
//! | NACK | Acknowledge, AETH with syndrome 0x60: NAK, PSN sequence error |
//! | echo of a mark on a reply | BECN in its BTH, as in InfiniBand (9.2.3); RoCEv2 sends CNPs instead |
//! | CNP | opcode 0x81, BECN, sixteen zero bytes |
//! | signal of a scheme | an Ethernet frame of the type for local experiments; RoCEv2 has no such packet |
//! | pause, resume | IEEE 802.1Qbb, priority 3, with the longest time or with time 0; priority 4, 2 or 1 for a queue of some flows alone |
//!
//! **Lengths.** A frame has the length that the simulator counts, FCS included: a 1500-byte frame is 14 bytes of
//! Ethernet, 20 of IPv4, 8 of UDP, 12 of BTH, 1438 of payload, 4 of ICRC and 4 of FCS. The simulator does not count
//! the RETH; its 16 bytes replace payload if there is enough. Payload is not padded to a multiple of four bytes,
//! because the simulator does not count padding either. If the headers alone exceed the counted length (frames as in
//! ns-3, small messages), the frame is longer. In-band telemetry and selective acknowledgements have no encoding in
//! RoCEv2: they are left out, and the frame is shorter.

use super::addresses::{End, ip, mac, qpn, source_port};
use engine::outcome::{Frame, Passed};
use model::plan::Qp;
use model::{HostId, Kind, NodeId, Packet, Plan, Psn, QpId};
use std::collections::BTreeMap;
use wire::bth::{self, Opcode};
use wire::ecn::{Ecn, TrafficClass};
use wire::ethernet::{self, Address, EtherType};
use wire::roce::{Extension, Ip};
use wire::{aeth, cnp, ipv4, pfc, reth, roce};

/// Priority of data, which pause frames stop, by group of classes: of all flows, then of each queue of some flows alone. The
/// first, its code point and that of CNPs are NVIDIA's recommendation for RoCE networks; the others are our choice.
const DATA_PRIORITY: [u8; 4] = [3, 4, 2, 1];
/// Code points of data. The priority is DSCP / 8, which is the default mapping of switches.
const DATA_DSCP: [u8; 4] = [26, 34, 18, 10];
/// Code point of CNPs, priority 6.
const CNP_DSCP: u8 = 48;
/// Code point of ACKs that do not share the queue of data, priority 5 (our choice).
const ACK_DSCP: u8 = 40;
/// Time to live, the initial value in Linux. Simulated switches bridge, so it stays the same on the path.
const TIME_TO_LIVE: u8 = 64;
/// Address of the first message of every queue pair in its receiver's memory (our choice: it looks like an address).
const MEMORY: u64 = 0x7F00_0000_0000;
/// Buffer size: the longest frame, and room for headers that the simulator does not count.
const ROOM: usize = Packet::MAX_FRAME as usize + 256;

/// Payload of all data packets.
static ZEROS: [u8; Packet::MAX_FRAME as usize] = [0; Packet::MAX_FRAME as usize];

/// Encodes frames. The frames of a link must come in order of time.
#[derive(Debug)]
pub struct Encoder<'a> {
    plan: &'a Plan,
    memory: Memory,
}

/// What an encoder keeps from frame to frame.
#[derive(Debug)]
pub struct Memory {
    streams: BTreeMap<QpId, Stream>,
    frame: Box<[u8; ROOM]>,
}

impl Default for Memory {
    fn default() -> Self {
        Memory { streams: BTreeMap::new(), frame: Box::new([0; ROOM]) }
    }
}

/// A frame as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoded<'a> {
    /// The frame from the destination address to the FCS.
    pub bytes: &'a [u8],
    /// A fact that the bytes cannot express.
    pub comment: Option<&'static str>,
}

/// A queue pair's messages as a stream of packets.
#[derive(Debug)]
struct Stream {
    /// End of each message: packets and bytes of the queue pair up to there.
    ends: Vec<(u64, u64)>,
    /// Unwrapped PSN of a recent packet; the next PSN is near it.
    near: u64,
}

/// The part of a message that a packet carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    first: bool,
    last: bool,
    /// Payload of the packet, bytes.
    payload: u32,
    /// Bytes of the queue pair before the message.
    offset: u64,
    /// Bytes of the message.
    length: u64,
}

impl Stream {
    fn new(plan: &Plan, qp: &Qp) -> Self {
        let (mut packets, mut bytes) = (0, 0);
        let messages = &plan.messages[qp.messages.start as usize..qp.messages.end as usize];
        let ends = messages.iter().map(|message| {
            packets += plan.wire.packets(message.bytes);
            bytes += message.bytes;
            (packets, bytes)
        });
        Stream { ends: ends.collect(), near: 0 }
    }

    /// Number of messages that end before the packet of this PSN.
    fn whole_before(&mut self, psn: Psn) -> usize {
        self.near = psn.unwrap_near(self.near);
        self.ends.partition_point(|&(end, _)| end <= self.near)
    }

    /// The segment of this PSN; `None` if no message contains it.
    fn segment(&mut self, plan: &Plan, psn: Psn) -> Option<Segment> {
        let message = self.whole_before(psn);
        let &(end, bytes) = self.ends.get(message)?;
        let (start, offset) = message.checked_sub(1).map_or((0, 0), |before| self.ends[before]);
        let (index, length) = (self.near - start, bytes - offset);
        let payload = plan.wire.payload_of(length, index);
        Some(Segment { first: index == 0, last: self.near + 1 == end, payload, offset, length })
    }
}

impl<'a> Encoder<'a> {
    /// An encoder for frames of a run of this plan.
    pub fn new(plan: &'a Plan) -> Self {
        Self::resume(plan, Memory::default())
    }

    /// An encoder for the frames after those that left this memory.
    pub fn resume(plan: &'a Plan, memory: Memory) -> Self {
        Encoder { plan, memory }
    }

    /// The memory with which [`Encoder::resume`] goes on.
    pub fn into_memory(self) -> Memory {
        self.memory
    }

    /// The bytes of a frame.
    ///
    /// # Errors
    /// None for frames that an engine captured in a run of the plan.
    pub fn encode(&mut self, frame: &Frame) -> Result<Encoded<'_>, wire::Error> {
        let sender = self.plan.fabric.links()[frame.link.index()].from;
        let (len, comment) = match frame.what {
            Passed::Pause { channel, on } => (self.pause(sender, channel, on)?, None),
            Passed::Packet(packet, _) => {
                let len = match packet.kind() {
                    Kind::Signal | Kind::Control | Kind::Probe => self.signal(sender, packet)?,
                    _ => self.roce(packet)?,
                };
                (len, comment(packet))
            }
        };
        let len = ethernet::seal(&mut self.memory.frame[..], len)?;
        Ok(Encoded { bytes: &self.memory.frame[..len], comment })
    }

    fn pause(&mut self, sender: NodeId, priority: u8, paused: bool) -> Result<usize, wire::Error> {
        let group = usize::from(priority / self.plan.fabric.channels());
        let quanta = if paused { pfc::LONGEST } else { 0 };
        self.ethernet(pfc::DESTINATION, sender, EtherType::MAC_CONTROL)?;
        pfc::Repr::of(DATA_PRIORITY[group], quanta)
            .emit(&mut pfc::View::new(&mut self.memory.frame[ethernet::LEN..])?);
        Ok(ethernet::LEN + pfc::LEN)
    }

    fn signal(&mut self, sender: NodeId, packet: Packet) -> Result<usize, wire::Error> {
        self.ethernet(mac(packet.to().0), sender, EtherType::LOCAL_EXPERIMENT)?;
        let len = (packet.frame() as usize).saturating_sub(ethernet::FCS_LEN).max(ethernet::LEN);
        self.memory.frame[ethernet::LEN..len].fill(0);
        Ok(len)
    }

    fn ethernet(&mut self, to: Address, from: NodeId, kind: EtherType) -> Result<(), wire::Error> {
        let fabric = &self.plan.fabric;
        let number = match fabric.is_host(from) {
            true => fabric.base(from) as usize,
            false => fabric.hosts() + fabric.switch_number(from),
        };
        let header = ethernet::Repr { destination: to, source: mac(number as u32), ether_type: kind };
        header.emit(&mut ethernet::View::new(&mut self.memory.frame[..])?);
        Ok(())
    }

    fn roce(&mut self, packet: Packet) -> Result<usize, wire::Error> {
        let (plan, id) = (self.plan, packet.qp());
        let qp = &plan.qps[id.index()];
        let stream = self.memory.streams.entry(id).or_insert_with(|| Stream::new(plan, qp));
        let (from, to, sender, receiver) = match packet.kind() {
            Kind::Data | Kind::Trimmed => (qp.from, qp.to, End::Requester, End::Responder),
            _ => (qp.to, qp.from, End::Responder, End::Requester),
        };
        let peer = qpn(id, receiver);
        let (mut bth, extension, payload) = match packet.kind() {
            Kind::Data | Kind::Trimmed => match stream.segment(plan, packet.psn()) {
                Some(segment) => data(id, packet, segment),
                None => (bth::Repr::new(Opcode::WriteMiddle, peer, packet.psn()), Extension::None, 0),
            },
            Kind::Cnp => (cnp::Repr::bth(peer), Extension::Cnp, 0),
            kind => {
                let (syndrome, expected) = match kind {
                    Kind::Nack => (aeth::Syndrome::PSN_SEQUENCE, packet.psn()),
                    _ => (aeth::Syndrome::ACK, packet.psn().next()),
                };
                let msn = stream.whole_before(expected) as u32;
                let bth = bth::Repr::new(Opcode::Acknowledge, peer, packet.psn());
                (bth, Extension::Aeth(aeth::Repr { syndrome, msn }), 0)
            }
        };
        bth.becn |= packet.echo() && !packet.kind().is_forward();
        let repr = roce::Repr {
            destination: mac(to.0),
            source: mac(from.0),
            ip: Ip::V4(self.ip(packet, from, to)),
            source_port: source_port(qpn(id, sender)),
            bth,
            extension,
        };
        let room = (packet.frame() as usize).saturating_sub(repr.frame_len(0) + ethernet::FCS_LEN);
        repr.emit(&ZEROS[..(payload as usize).min(room)], &mut self.memory.frame[..])
    }

    fn ip(&self, packet: Packet, from: HostId, to: HostId) -> ipv4::Repr {
        let kind = packet.kind();
        let class = self.plan.port_class(packet.qp(), kind);
        let dscp = match kind {
            _ if class.kinds.has(Kind::Data) => DATA_DSCP[usize::from(class.group)],
            Kind::Cnp => CNP_DSCP,
            _ => ACK_DSCP,
        };
        let ecn = match kind {
            _ if packet.marked() => Ecn::Ce,
            Kind::Data | Kind::Trimmed => Ecn::Ect0,
            _ => Ecn::NotEct,
        };
        ipv4::Repr {
            traffic_class: TrafficClass::new(dscp, ecn),
            // Packets with "don't fragment" need no number (RFC 6864). A constant keeps the bytes reproducible.
            identification: 0,
            dont_fragment: true,
            time_to_live: TIME_TO_LIVE,
            protocol: ipv4::UDP,
            source: ip(from),
            destination: ip(to),
            payload_len: 0,
        }
    }
}

/// BTH, extension header and payload length of a data packet.
fn data(id: QpId, packet: Packet, segment: Segment) -> (bth::Repr, Extension, u32) {
    let opcode = Opcode::write(segment.first, segment.last);
    let peer = qpn(id, End::Responder);
    let bth = bth::Repr { ack_request: packet.last(), ..bth::Repr::new(opcode, peer, packet.psn()) };
    let extension = if opcode.has_reth() {
        Extension::Reth(reth::Repr {
            address: MEMORY.wrapping_add(segment.offset),
            key: peer.value(),
            // InfiniBand messages have at most 2^31 bytes.
            length: segment.length.try_into().unwrap_or(u32::MAX),
        })
    } else {
        Extension::None
    };
    (bth, extension, segment.payload)
}

/// Facts about a packet that its bytes cannot express.
fn comment(packet: Packet) -> Option<&'static str> {
    match packet.kind() {
        Kind::Signal => Some("a signal of the simulated scheme; RoCEv2 has no such packet"),
        Kind::Control | Kind::Probe => {
            Some("a control message of the simulated transport; RoCEv2 has no such packet")
        }
        Kind::Trimmed => Some("cut by a switch"),
        Kind::Data if packet.retransmission() => Some("retransmission"),
        // Wireshark up to 4.0 has no name for the opcode.
        Kind::Cnp if packet.reacted() => Some("CNP; a switch on its path has reacted to it"),
        Kind::Cnp => Some("CNP"),
        _ if packet.reacted() => Some("echoes a mark; a switch on its path has reacted to it"),
        _ if packet.echo() => Some("echoes a mark, in place of a CNP"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::packet::Kinds;
    use model::plan::{Class, Classes};
    use model::{LinkId, Time, Wire};
    use results::testing;
    use wire::Error;
    use wire::aeth::Syndrome;

    /// Host a's link to the switch, and back.
    const UP: LinkId = LinkId(0);
    const DOWN: LinkId = LinkId(2);
    const QP: QpId = QpId(0);

    fn packet(kind: Kind, psn: u32, frame: u32) -> Packet {
        let to = if kind == Kind::Data { HostId(1) } else { HostId(0) };
        Packet::new(kind, QP, to, Psn::new(psn), frame)
    }

    fn sent(encoder: &mut Encoder<'_>, link: LinkId, what: Passed) -> (Vec<u8>, Option<&'static str>) {
        let encoded = encoder.encode(&Frame { at: Time::ZERO, link, what }).unwrap();
        (encoded.bytes.to_vec(), encoded.comment)
    }

    /// The frame as its receiver parses it, with all checks, and the length of the payload.
    fn received(encoder: &mut Encoder<'_>, packet: Packet) -> (roce::Repr, usize) {
        let link = if packet.is_data() { UP } else { DOWN };
        let (bytes, _) = sent(encoder, link, Passed::Packet(packet, false));
        let (frame, fcs) = bytes.split_at(bytes.len() - ethernet::FCS_LEN);
        assert_eq!(ethernet::fcs(frame), fcs);
        let (repr, payload) = roce::Repr::parse(frame).unwrap();
        (repr, payload.len())
    }

    /// 12,500 bytes are nine packets: eight of 1438 bytes, and one of 996.
    #[test]
    fn a_message_has_first_middle_and_last_frames_of_the_counted_length() {
        let plan = testing::plan(2);
        let mut encoder = Encoder::new(&plan);
        let opcodes: Vec<Opcode> = (0..18)
            .map(|psn| {
                let last = psn % 9 == 8;
                let frame = plan.wire.data_frame(if last { 996 } else { 1438 });
                let data = packet(Kind::Data, psn, frame).with_last(last);
                let (bytes, _) = sent(&mut encoder, UP, Passed::Packet(data, false));
                assert_eq!(bytes.len(), frame as usize, "packet {psn}");
                let (repr, payload) = received(&mut encoder, data);
                assert_eq!((repr.bth.psn.value(), repr.bth.ack_request), (psn, last));
                let right = if last { 996 } else { 1438 } - repr.extension.len();
                assert_eq!(payload, right, "packet {psn}");
                repr.bth.opcode
            })
            .collect();
        let message = [&[Opcode::WriteFirst][..], &[Opcode::WriteMiddle; 7], &[Opcode::WriteLast]].concat();
        assert_eq!(opcodes, [message.clone(), message].concat());
        let (second, _) = received(&mut encoder, packet(Kind::Data, 9, 1500));
        let Extension::Reth(reth) = second.extension else { panic!("{second:?}") };
        assert_eq!((reth.address - MEMORY, reth.length), (12_500, 12_500));
    }

    #[test]
    fn the_two_ends_of_a_queue_pair_have_distinct_numbers_ports_and_addresses() {
        let plan = testing::plan(1);
        let mut encoder = Encoder::new(&plan);
        let (data, _) = received(&mut encoder, packet(Kind::Data, 0, 1500));
        let (ack, _) = received(&mut encoder, packet(Kind::Ack, 0, 66));
        assert_eq!((data.bth.destination_qp.value(), ack.bth.destination_qp.value()), (3, 2));
        assert_ne!(data.source_port, ack.source_port);
        assert_eq!((data.source, data.destination), (ack.destination, ack.source));
        let (Ip::V4(there), Ip::V4(back)) = (data.ip, ack.ip) else { panic!("IPv4") };
        assert_eq!((there.source, there.destination), (back.destination, back.source));
        assert_eq!(there.source.to_string(), "10.0.0.1");
    }

    #[test]
    fn replies_count_complete_messages() {
        let plan = testing::plan(3);
        let mut encoder = Encoder::new(&plan);
        let mut msn = |kind, psn| {
            let (reply, payload) = received(&mut encoder, packet(kind, psn, plan.wire.ack));
            let Extension::Aeth(aeth) = reply.extension else { panic!("{reply:?}") };
            assert_eq!((reply.bth.opcode, payload, reply.bth.psn.value()), (Opcode::Acknowledge, 0, psn));
            let right = if kind == Kind::Nack { Syndrome::PSN_SEQUENCE } else { Syndrome::ACK };
            assert_eq!(aeth.syndrome, right);
            aeth.msn
        };
        // An ACK of the PSN before 0 acknowledges nothing. Packet 8 is the first message's last.
        assert_eq!([msn(Kind::Ack, 0xFF_FFFF), msn(Kind::Ack, 7), msn(Kind::Ack, 8)], [0, 0, 1]);
        assert_eq!([msn(Kind::Nack, 8), msn(Kind::Nack, 9), msn(Kind::Ack, 26)], [0, 1, 3]);
    }

    #[test]
    fn messages_continue_across_a_wrap_of_the_psn() {
        let mut plan = testing::plan(2);
        // 2^24 - 1 packets, so that the second message's first one has the last PSN.
        plan.messages[0].bytes = u64::from(Wire::roce(1500).payload) * 0xFF_FFFF;
        let mut encoder = Encoder::new(&plan);
        let mut opcode = |psn| received(&mut encoder, packet(Kind::Data, psn, 1500)).0.bth.opcode;
        assert_eq!([opcode(0), opcode(5_000_000)], [Opcode::WriteFirst, Opcode::WriteMiddle]);
        assert_eq!([opcode(10_000_000), opcode(0xFF_FFFE)], [Opcode::WriteMiddle, Opcode::WriteLast]);
        assert_eq!(
            [opcode(0xFF_FFFF), opcode(0), opcode(7)],
            [Opcode::WriteFirst, Opcode::WriteMiddle, Opcode::WriteLast]
        );
    }

    #[test]
    fn marks_cnps_and_echoes_are_in_the_standard_fields() {
        let plan = testing::plan(1);
        let mut encoder = Encoder::new(&plan);
        let ecn = |repr: roce::Repr| match repr.ip {
            Ip::V4(ip) => (ip.traffic_class.dscp(), ip.traffic_class.ecn()),
            Ip::V6(_) => panic!("IPv4"),
        };
        let mut data = packet(Kind::Data, 3, 1500);
        assert_eq!(ecn(received(&mut encoder, data).0), (26, Ecn::Ect0));
        data.mark();
        assert_eq!(ecn(received(&mut encoder, data).0), (26, Ecn::Ce));
        let (cnp, _) = received(&mut encoder, packet(Kind::Cnp, 3, plan.wire.cnp));
        assert_eq!((ecn(cnp), cnp.bth.opcode, cnp.bth.becn), ((48, Ecn::NotEct), Opcode::Cnp, true));
        for echo in [false, true] {
            let (ack, _) = received(&mut encoder, packet(Kind::Ack, 3, 66).with_echo(echo));
            assert_eq!((ecn(ack), ack.bth.becn), ((40, Ecn::NotEct), echo));
        }
    }

    #[test]
    fn a_queue_of_some_flows_has_a_priority_of_its_own() {
        let mut plan = testing::plan(1);
        let data = Class::strict(Kinds::of(&[Kind::Data])).of_data();
        plan.classes = Classes::new(&[
            Class::strict(Kinds::of(&[Kind::Data]).others()),
            data,
            Class { group: 1, ..data },
        ]);
        // Kinds by their numbers: data of the foreground waits in the third class.
        let row = Kind::ALL.map(|kind| if kind == Kind::Data { 2 } else { 0 });
        plan.own_queues.rows = vec![row; plan.traffic_classes.len()];
        let mut encoder = Encoder::new(&plan);
        let (repr, _) = received(&mut encoder, packet(Kind::Data, 3, 1500));
        let Ip::V4(ip) = repr.ip else { panic!("IPv4") };
        assert_eq!(ip.traffic_class.dscp(), 34);
        for (channel, priority) in [(0, 3), (1, 4)] {
            let (bytes, _) = sent(&mut encoder, DOWN, Passed::Pause { channel, on: true });
            let view = ethernet::View::new(&bytes[..]).unwrap();
            let pause = pfc::Repr::parse(&pfc::View::new(view.payload()).unwrap());
            assert_eq!(pause, Ok(pfc::Repr::of(priority, 0xFFFF)));
        }
    }

    #[test]
    fn comments_name_facts_without_an_encoding() {
        let plan = testing::plan(1);
        let mut encoder = Encoder::new(&plan);
        let mut comment = |packet| sent(&mut encoder, UP, Passed::Packet(packet, false)).1;
        let data = packet(Kind::Data, 3, 1500);
        assert_eq!(comment(data), None);
        assert_eq!(comment(data.with_retransmission(true)), Some("retransmission"));
        assert!(comment(packet(Kind::Ack, 3, 66).with_echo(true)).unwrap().contains("echoes a mark"));
        let mut cnp = packet(Kind::Cnp, 3, 78);
        assert_eq!(comment(cnp), Some("CNP"));
        cnp.react();
        assert!(comment(cnp).unwrap().contains("reacted"));
        assert!(comment(packet(Kind::Signal, 0, 64)).unwrap().contains("no such packet"));
    }

    #[test]
    fn a_pause_stops_priority_three_and_a_resume_restarts_it() {
        let plan = testing::plan(1);
        let mut encoder = Encoder::new(&plan);
        for (class_paused, quanta) in [(true, 0xFFFF), (false, 0)] {
            let (bytes, _) = sent(&mut encoder, DOWN, Passed::Pause { channel: 0, on: class_paused });
            assert_eq!(bytes.len(), 64);
            let view = ethernet::View::new(&bytes[..]).unwrap();
            let header = ethernet::Repr::parse(&view);
            assert_eq!((header.destination, header.ether_type), (pfc::DESTINATION, EtherType::MAC_CONTROL));
            assert_eq!(header.source, mac(2), "the switch");
            let pause = pfc::Repr::parse(&pfc::View::new(view.payload()).unwrap());
            assert_eq!(pause, Ok(pfc::Repr::of(3, quanta)));
        }
    }

    #[test]
    fn signals_are_not_encoded_as_roce_packets() {
        let plan = testing::plan(1);
        let mut encoder = Encoder::new(&plan);
        let (bytes, _) = sent(&mut encoder, UP, Passed::Packet(packet(Kind::Signal, 0, 96), false));
        assert_eq!(bytes.len(), 96);
        let parsed = roce::Repr::parse(&bytes[..92]);
        assert!(matches!(parsed, Err(Error::Field { field: "EtherType", value: 0x88B5, .. })));
    }

    /// ns-3 counts 48 bytes of headers, and 60 bytes for an ACK; real ones are longer.
    #[test]
    fn short_counted_lengths_are_kept_as_long_as_the_headers_fit() {
        let mut plan = testing::plan(1);
        plan.wire = Wire::ns3(1000);
        let mut encoder = Encoder::new(&plan);
        let (data, payload) = received(&mut encoder, packet(Kind::Data, 1, 1048));
        assert_eq!((data.bth.opcode, payload), (Opcode::WriteMiddle, 1048 - 62));
        let (ack, _) = sent(&mut encoder, DOWN, Passed::Packet(packet(Kind::Ack, 1, 60), false));
        assert_eq!(ack.len(), 66);
        plan.wire = Wire::roce(1500);
        plan.messages[0].bytes = 1;
        let mut encoder = Encoder::new(&plan);
        let only = packet(Kind::Data, 0, plan.wire.data_frame(1)).with_last(true);
        let (repr, payload) = received(&mut encoder, only);
        assert_eq!((repr.bth.opcode, payload), (Opcode::WriteOnly, 0));
    }
}
