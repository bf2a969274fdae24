//! The short way through the ToR: a request of a connection that came a moment ago, over a path without delay to a port
//! that is free. One comparison of the header replaces its parsing. All other frames take the usual way. Until a frame is known
//! to fit the short way, it changes only what the usual way would change, too.

use super::Tor;
use crate::frame::{Kind, Link, Roce};
use crate::out::Out;
use crate::pool::{Frame, Pool};
use crate::qp::NextPacket;
use crate::queues::MarkAt;
use crate::recent::Ticket;
use crate::settings::Settings;
use crate::spray::{Spray, Steer};
use crate::units::{PortId, Span, Time};
use themis::Psn;
use wire::ecn::Ecn;
use wire::ethernet::EtherType;

/// Number of headers. Our choice: as many as the ToR remembers connections.
const HEADERS: usize = 1024;
/// Ethernet, IPv4 and UDP headers and BTH of a frame without a VLAN tag.
const LENGTH: usize = 14 + 20 + 8 + 12;
/// Bytes of an IPv4 packet without payload: IPv4, UDP, BTH, ICRC.
const SHORTEST: u16 = 20 + 8 + 12 + 4;
/// Opcodes of requests that take one PSN, as bits.
const REQUESTS: u32 = 0xFFF | 1 << 0x13 | 1 << 0x14 | 1 << 0x16 | 1 << 0x17;

/// The parts of a header that are the same in all packets of a connection.
type Words = [u64; 6];

/// The parts of a header. All other bytes but lengths, opcode and PSN mean nothing to the ToR.
#[inline(always)]
fn words(header: &[u8; LENGTH]) -> Words {
    let word = |at: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&header[at..at + 8]);
        u64::from_be_bytes(bytes)
    };
    [
        // MAC addresses, type, version and header length, traffic class.
        word(0),
        word(8),
        // "More fragments" and offset, protocol.
        word(16) & 0x0000_0000_3FFF_00FF,
        // IP addresses.
        word(26),
        // UDP ports.
        word(34) & 0xFFFF_FFFF_0000_0000,
        // Version of the BTH, queue pair.
        word(42) & 0x000F_0000_00FF_FFFF,
    ]
}

#[inline(always)]
fn place(words: &Words) -> usize {
    // Fibonacci hashing: the high bits of the product with 2^64 divided by the golden ratio.
    let hosts = words[3] ^ words[4] ^ words[5].rotate_left(40);
    (hosts.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - HEADERS.ilog2())) as usize
}

#[derive(Clone, Copy, Debug)]
struct Header {
    words: Words,
    ingress: PortId,
    ticket: Ticket,
    class: u8,
    /// True if its packets are marked.
    marked: bool,
}

/// The headers that came last.
#[derive(Debug)]
pub(crate) struct Express {
    headers: Box<[Header]>,
}

impl Express {
    /// `None` if no frame can take the short way under these settings.
    pub(crate) fn new(settings: &Settings) -> Option<Self> {
        let spine = settings
            .spines
            .iter()
            .any(|spine| spine.delay == Span::ZERO && spine.jitter == Span::ZERO && spine.rate.is_none());
        let port = settings.ports.iter().any(|port| port.rate.is_none() && port.last_hop == Span::ZERO);
        let plain = settings.steer == Steer::Port && settings.spray == Spray::Psn;
        if !spine || !port || !plain || !settings.events.is_empty() || settings.themis.verify {
            return None;
        }
        let none =
            Header { words: [0; 6], ingress: PortId(0), ticket: Ticket::NONE, class: 0, marked: false };
        Some(Express { headers: vec![none; HEADERS].into() })
    }

    pub(crate) fn clear(&mut self) {
        self.headers.iter_mut().for_each(|header| header.ticket = Ticket::NONE);
    }

    /// Remembers the header of a packet that took the usual way.
    pub(crate) fn add(
        &mut self,
        bytes: &[u8],
        link: &Link,
        roce: &Roce,
        class: u8,
        ingress: PortId,
        ticket: Ticket,
    ) {
        let plain = link.tag.is_none() && link.ether_type == EtherType::IPV4;
        let Some(header) = bytes.first_chunk().filter(|_| plain && roce.kind == Kind::Request { span: 1 })
        else {
            return;
        };
        let words = words(header);
        let marked = roce.traffic_class.ecn() == Ecn::Ce;
        self.headers[place(&words)] = Header { words, ingress, ticket, class, marked };
    }
}

impl Tor {
    /// Lets a frame take the short way; gives it back if it cannot.
    #[inline(always)]
    pub(crate) fn express(
        &mut self,
        now: Time,
        port: PortId,
        frame: Frame,
        pool: &Pool,
    ) -> Result<(), Frame> {
        let Some(express) = &self.express else { return Err(frame) };
        let bytes = pool.bytes(&frame);
        let Some(header) = bytes.first_chunk::<LENGTH>() else { return Err(frame) };
        let two = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let (opcode, total) = (header[42], two(16));
        let words = words(header);
        let known = &express.headers[place(&words)];
        if known.words != words
            || known.ingress != port
            || opcode >= 32
            || REQUESTS >> opcode & 1 == 0
            || total < SHORTEST
            || usize::from(total) + wire::ethernet::LEN > bytes.len()
            || two(38) != total - 20
        {
            return Err(frame);
        }
        let (class, marked) = (usize::from(known.class), known.marked);
        let Some(entry) = self.recent.entry(known.ticket) else { return Err(frame) };
        let (source_mac, destination_mac) = entry.addresses();
        let from = self.places[port.index()];
        let Some(to) = self.stations.port_at(now, entry.destination_slot, destination_mac) else {
            return Err(frame);
        };
        let there = self.places[to.index()];
        if from.uplink || there.uplink || from.leaf == there.leaf {
            return Err(frame);
        }
        let psn = Psn::new(u32::from_be_bytes([0, header[51], header[52], header[53]]));
        let choice = self.sprayer.request(psn, entry.base);
        let path = usize::from(there.leaf) * self.settings.spines.len() + usize::from(choice.path);
        let (len, classes) = (frame.len() as u64, &self.settings.classes);
        let free = classes.buffer.size.saturating_sub(self.buffered[usize::from(there.leaf)]);
        let most = if classes.lossless[class] {
            free
        } else {
            free.saturating_mul(classes.buffer.alpha_percent) / 100
        };
        // Nothing is queued behind the frame, so it is not marked when it leaves.
        let unmarked = classes.marking[class].is_none_or(|marking| marking.at == MarkAt::Dequeue);
        let egress = &mut self.ports[to.index()];
        if self.paths[path].due().is_some()
            || !self.paths[path].is_immediate(now)
            || !egress.is_straight(now)
            || len > free.min(most)
            || !unmarked
            || !self.stations.learn_at(now, entry.source_slot, source_mac, from.group)
        {
            return Err(frame);
        }
        if let Some(guard) = &mut self.guard {
            let next = NextPacket { source_mac, source_port: two(34), psn, port: to };
            match entry.flow {
                Some(hint) if guard.depart_usual(now, &next, hint) => {}
                _ => return Err(frame),
            }
        }
        egress.busy = now;
        let counters = &mut self.counters.paths[usize::from(choice.path)];
        counters.frames += 1;
        counters.sprayed += 1;
        let counters = &mut self.counters.ports[port.index()];
        counters.in_frames += 1;
        counters.in_bytes += len;
        counters.classes[class].received += 1;
        counters.received.requests += 1;
        counters.received.marked += u64::from(marked);
        let counters = &mut self.counters.ports[to.index()];
        counters.out_frames += 1;
        counters.out_bytes += len;
        counters.classes[class].sent += 1;
        counters.sent.requests += 1;
        counters.sent.marked += u64::from(marked);
        self.outs.push_back(Out::Send { at: now, started: now, port: to, frame });
        Ok(())
    }
}
