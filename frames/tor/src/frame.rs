//! One look at a frame: what it is, and where its fields are.
//!
//! The look never fails. A frame that is not exactly a RoCEv2 packet of a known kind is [`Class::Other`], and the ToR
//! forwards it unaltered.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use wire::bth::Qpn;
use wire::ethernet::{Address, EtherType};
use wire::{Psn, bth, icrc, ipv4, ipv6, udp};

/// Longest frame in bytes, without FCS: IB's MTU of 4096 in a frame with two VLAN tags and IPv6, rounded up to the usual
/// size of a jumbo frame.
pub const LONGEST: usize = 9216;

/// VLAN tag types: IEEE 802.1Q customer tag, and 802.1ad service tag.
const TAGS: [u16; 2] = [0x8100, 0x88A8];
/// Length of a VLAN tag.
const TAG: usize = 4;
/// Smallest MTU of InfiniBand, bytes (InfiniBand Architecture Specification, 9.4.3). A read has at most one response per
/// so many bytes.
const SMALLEST_MTU: u32 = 256;
/// Most PSNs that one read can take, so that serial numbers keep their order. Our choice: a quarter of the space.
const MOST_RESPONSES: u32 = 1 << 22;

/// The Ethernet header with up to two VLAN tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Destination address.
    pub destination: Address,
    /// Source address.
    pub source: Address,
    /// Tag control information of the outer tag, if the frame has one.
    pub tag: Option<u16>,
    /// Type of the payload behind the tags.
    pub ether_type: EtherType,
    /// Start of the payload.
    pub payload: usize,
}

impl Link {
    /// Reads the header; `None` for a runt.
    #[inline]
    pub fn of(frame: &[u8]) -> Option<Self> {
        let view = wire::ethernet::View::new(frame).ok()?;
        let mut link = Link {
            destination: view.destination(),
            source: view.source(),
            tag: None,
            ether_type: view.ether_type(),
            payload: wire::ethernet::LEN,
        };
        for _ in 0..2 {
            if !TAGS.contains(&link.ether_type.0) {
                break;
            }
            let Some(&[a, b, c, d]) = frame.get(link.payload..).and_then(|rest| rest.first_chunk()) else {
                break;
            };
            link.tag = link.tag.or(Some(u16::from_be_bytes([a, b])));
            link.ether_type = EtherType(u16::from_be_bytes([c, d]));
            link.payload += TAG;
        }
        Some(link)
    }

    /// True if the source address is one that a station can have.
    pub fn source_is_station(&self) -> bool {
        !self.source.is_multicast() && self.source.0 != [0; 6]
    }

    /// VLAN of the outer tag, 0 for an untagged frame. A tag with number 0 carries a priority only.
    pub fn vlan(&self) -> u16 {
        self.tag.map_or(0, |tag| tag & 0xFFF)
    }

    /// Priority of the outer tag.
    pub fn priority(&self) -> Option<u8> {
        self.tag.map(|tag| (tag >> 13) as u8)
    }
}

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// MAC control: pause frames, which a switch takes for itself.
    Control,
    /// A RoCEv2 packet.
    Roce(Roce),
    /// Anything else, which is forwarded unaltered.
    Other,
}

/// What a RoCEv2 packet is to Themis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A packet of the request stream of a reliable connection, which a responder expects in the order of PSNs. It takes
    /// `span` PSNs at most: a read takes as many as it has responses, at least one.
    Request {
        /// Largest number of PSNs that the request can take.
        span: u32,
    },
    /// A response to a read or to an atomic operation.
    Response,
    /// An acknowledgement of all packets up to its PSN. The five bits are the syndrome's credits.
    Ack {
        /// Code of the credits, 31 for none.
        credits: u8,
    },
    /// A NACK for a missing packet, syndrome 0x60.
    Nack,
    /// Another reply: receiver not ready, or an error.
    Reply,
    /// A congestion notification packet.
    Cnp,
    /// A packet of a service that has no NACKs, or of an unknown one.
    Unknown,
}

/// Fields of a RoCEv2 packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Roce {
    /// Meaning to Themis.
    pub kind: Kind,
    /// IP address of the sender.
    pub source: IpAddr,
    /// IP address of the receiver.
    pub destination: IpAddr,
    /// UDP source port.
    pub source_port: u16,
    /// Opcode of the BTH.
    pub opcode: u8,
    /// Queue pair at the receiver.
    pub qp: Qpn,
    /// Packet sequence number.
    pub psn: Psn,
    /// DSCP and ECN.
    pub traffic_class: wire::ecn::TrafficClass,
    /// Start of the IP header in the frame.
    pub ip: usize,
    /// Start of the UDP header in the frame.
    pub udp: usize,
    /// Start of the ICRC in the frame. Ethernet padding may follow the ICRC.
    pub icrc: usize,
}

impl Roce {
    /// Start of the BTH in the frame.
    pub const fn bth(&self) -> usize {
        self.udp + udp::LEN
    }

    /// True for packets of the request stream.
    pub const fn is_request(&self) -> bool {
        matches!(self.kind, Kind::Request { .. })
    }

    /// Checks the ICRC of the packet.
    pub fn icrc_is_right(&self, frame: &[u8]) -> bool {
        frame.get(self.ip..self.icrc + icrc::LEN).is_some_and(|packet| icrc::check(packet).is_ok())
    }
}

/// A frame's class, from its link header.
pub fn classify(link: &Link, frame: &[u8]) -> Class {
    match roce_of(link, frame) {
        Some(roce) => Class::Roce(roce),
        None if link.ether_type == EtherType::MAC_CONTROL => Class::Control,
        None => Class::Other,
    }
}

/// The RoCEv2 packet in a frame, if it has one.
#[inline(always)] // the result is large, and would be copied from call to call
pub(crate) fn roce_of(link: &Link, frame: &[u8]) -> Option<Roce> {
    match link.ether_type {
        EtherType::IPV4 => roce_v4(link.payload, frame),
        EtherType::IPV6 => roce_v6(link.payload, frame),
        _ => None,
    }
}

/// DSCP and ECN of an IP packet, whether it is RoCEv2 or not.
pub fn traffic_class(link: &Link, frame: &[u8]) -> Option<wire::ecn::TrafficClass> {
    let &[a, b] = frame.get(link.payload..)?.first_chunk()?;
    match (link.ether_type, a >> 4) {
        (EtherType::IPV4, 4) => Some(wire::ecn::TrafficClass(b)),
        (EtherType::IPV6, 6) => Some(wire::ecn::TrafficClass(a << 4 | b >> 4)),
        _ => None,
    }
}

/// A RoCEv2 packet over IPv4: no options, no fragment, lengths that agree.
#[inline(always)]
fn roce_v4(ip: usize, frame: &[u8]) -> Option<Roce> {
    let header: &[u8; ipv4::LEN] = frame.get(ip..)?.first_chunk()?;
    // Version 4, IHL 5; neither "more fragments" nor an offset; UDP.
    if header[0] != 0x45 || header[6] & 0x3F != 0 || header[7] != 0 || header[9] != ipv4::UDP {
        return None;
    }
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let [sa, sb, sc, sd, da, db, dc, dd] = *header[12..].first_chunk()?;
    let source = Ipv4Addr::new(sa, sb, sc, sd).into();
    let destination = Ipv4Addr::new(da, db, dc, dd).into();
    let class = wire::ecn::TrafficClass(header[1]);
    roce(ip, ip + ipv4::LEN, ip + total, source, destination, class, frame)
}

/// A RoCEv2 packet over IPv6: no extension header, lengths that agree.
#[inline(always)]
fn roce_v6(ip: usize, frame: &[u8]) -> Option<Roce> {
    let header: &[u8; ipv6::LEN] = frame.get(ip..)?.first_chunk()?;
    if header[0] >> 4 != 6 || header[6] != ipv4::UDP {
        return None;
    }
    let carried = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let source = Ipv6Addr::from(*header[8..].first_chunk::<16>()?).into();
    let destination = Ipv6Addr::from(*header[24..].first_chunk::<16>()?).into();
    let class = wire::ecn::TrafficClass(header[0] << 4 | header[1] >> 4);
    roce(ip, ip + ipv6::LEN, ip + ipv6::LEN + carried, source, destination, class, frame)
}

/// The rest, from the UDP header to `end`, the end of the IP packet.
#[inline(always)]
fn roce(
    ip: usize,
    udp: usize,
    end: usize,
    source: IpAddr,
    destination: IpAddr,
    traffic_class: wire::ecn::TrafficClass,
    frame: &[u8],
) -> Option<Roce> {
    let datagram = frame.get(udp..end)?;
    let head: &[u8; udp::LEN + bth::LEN] = datagram.first_chunk()?;
    let two = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let three = |at: usize| u32::from_be_bytes([0, head[at], head[at + 1], head[at + 2]]);
    let fits = usize::from(two(4)) == datagram.len() && datagram.len() >= udp::LEN + bth::LEN + icrc::LEN;
    let version = head[udp::LEN + 1] & 0xF;
    if two(2) != udp::ROCE || !fits || version != 0 {
        return None;
    }
    let opcode = head[udp::LEN];
    let icrc = end - icrc::LEN;
    let kind = kind(opcode, &frame[udp + udp::LEN + bth::LEN..icrc]);
    Some(Roce {
        kind,
        source,
        destination,
        source_port: two(0),
        opcode,
        qp: Qpn::new(three(udp::LEN + 5)),
        psn: Psn::new(three(udp::LEN + 9)),
        traffic_class,
        ip,
        udp,
        icrc,
    })
}

/// Meaning of an opcode (InfiniBand Architecture Specification, table 38); `rest` is what follows the BTH.
#[inline]
fn kind(opcode: u8, rest: &[u8]) -> Kind {
    match opcode {
        // A read's RETH: address, key, length.
        0x0C => match rest.get(12..16) {
            Some(&[a, b, c, d]) => {
                let responses = u32::from_be_bytes([a, b, c, d]).div_ceil(SMALLEST_MTU);
                Kind::Request { span: responses.clamp(1, MOST_RESPONSES) }
            }
            _ => Kind::Unknown,
        },
        0x00..=0x0B | 0x13 | 0x14 | 0x16 | 0x17 => Kind::Request { span: 1 },
        0x0D..=0x10 | 0x12 => Kind::Response,
        0x11 => match rest.first() {
            Some(0x60) => Kind::Nack,
            Some(&credits @ 0x00..=0x1F) => Kind::Ack { credits },
            Some(_) => Kind::Reply,
            None => Kind::Unknown,
        },
        0x81 => Kind::Cnp,
        _ => Kind::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outer_tag_counts_and_a_third_is_not_read() {
        let mut frame = vec![0; 12];
        for tag in [[0x88, 0xA8, 0x60, 0x05], [0x81, 0x00, 0x00, 0x07], [0x81, 0x00, 0x00, 0x09]] {
            frame.extend(tag);
        }
        frame.extend([0x08, 0x00, 0x45]);
        let link = Link::of(&frame).unwrap();
        assert_eq!((link.vlan(), link.priority(), link.ether_type.0), (5, Some(3), 0x8100));
        assert_eq!(classify(&link, &frame), Class::Other);
        assert_eq!(Link::of(&frame[..13]), None);
    }

    #[test]
    fn opcodes_have_the_meaning_of_the_standard() {
        let request = Kind::Request { span: 1 };
        for opcode in (0x00..=0x0B).chain([0x13, 0x14, 0x16, 0x17]) {
            assert_eq!(kind(opcode, &[]), request, "{opcode:#x}");
        }
        let mut reth = [0; 16];
        reth[14] = 2; // 512 bytes
        assert_eq!(kind(0x0C, &reth), Kind::Request { span: 2 });
        assert_eq!(kind(0x0C, &[]), Kind::Unknown);
        for (syndrome, kind_of) in [
            (0x1F, Kind::Ack { credits: 31 }),
            (0x02, Kind::Ack { credits: 2 }),
            (0x20, Kind::Reply),
            (0x60, Kind::Nack),
            (0x61, Kind::Reply),
            (0xFF, Kind::Reply),
        ] {
            assert_eq!(kind(0x11, &[syndrome, 0, 0, 0]), kind_of);
        }
        for opcode in [0x15, 0x18, 0x24, 0x64, 0xA0, 0xFF] {
            assert_eq!(kind(opcode, &[0; 40]), Kind::Unknown);
        }
    }
}
