//! Fields of a RoCEv2 frame.

use std::net::IpAddr;
use wire::aeth::{self, Nak, Syndrome};
use wire::bth::Qpn;
use wire::ecn::{Ecn, TrafficClass};
use wire::ethernet::{self, EtherType};
use wire::{Psn, bth, icrc, ipv4, ipv6, reth, udp};

/// VLAN tag types: IEEE 802.1Q customer tag, and 802.1ad service tag.
const TAGS: [u16; 2] = [0x8100, 0x88A8];
/// Length of a VLAN tag.
const TAG: usize = 4;

/// What a packet is to a NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A packet of the request stream of a reliable connection.
    Request,
    /// A read request for so many bytes; it takes a PSN for each of its responses.
    Read(u32),
    /// A response to a read or an atomic operation.
    Response,
    /// A reply with an AETH alone.
    Reply(Syndrome),
    /// A CNP.
    Cnp,
    /// A packet of another service.
    Other,
}

/// A RoCEv2 frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Roce {
    pub(crate) kind: Kind,
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    pub(crate) port: u16,
    pub(crate) qp: Qpn,
    pub(crate) psn: Psn,
    /// True if a switch has marked the packet.
    pub(crate) marked: bool,
    /// True if the sender requests an ACK.
    pub(crate) asks: bool,
    /// The path MTU, if this packet shows it: packets in front of others of their message are full.
    pub(crate) mtu: Option<u32>,
    /// Start of the IP header.
    ip: usize,
    /// Start of the BTH.
    bth: usize,
}

impl Roce {
    /// Reads a frame; `None` if it is not RoCEv2. The ICRC is not checked.
    pub(crate) fn of(frame: &[u8]) -> Option<Self> {
        let mut ether_type = ethernet::View::new(frame).ok()?.ether_type();
        let mut ip = ethernet::LEN;
        for _ in 0..2 {
            if TAGS.contains(&ether_type.0) {
                let &[a, b] = frame.get(ip + TAG - 2..)?.first_chunk()?;
                ether_type = EtherType(u16::from_be_bytes([a, b]));
                ip += TAG;
            }
        }
        let packet = frame.get(ip..)?;
        let (source, destination, header, class) = match ether_type {
            EtherType::IPV4 => {
                let view = ipv4::View::new(packet).ok()?;
                let plain =
                    view.header_len() == ipv4::LEN && !view.is_fragment() && view.protocol() == ipv4::UDP;
                let ends: (IpAddr, IpAddr) = (view.source().into(), view.destination().into());
                plain.then_some((ends.0, ends.1, ipv4::LEN, view.traffic_class()))?
            }
            EtherType::IPV6 => {
                let view = ipv6::View::new(packet).ok()?;
                let ends: (IpAddr, IpAddr) = (view.source().into(), view.destination().into());
                let plain = view.next_header() == ipv4::UDP;
                plain.then_some((ends.0, ends.1, ipv6::LEN, view.traffic_class()))?
            }
            _ => return None,
        };
        let datagram = udp::View::new(packet.get(header..)?).ok()?;
        if datagram.destination_port() != udp::ROCE {
            return None;
        }
        let transport = bth::View::new(datagram.payload()).ok()?;
        if transport.version() != 0 {
            return None;
        }
        let behind = transport.payload().len().checked_sub(icrc::LEN)?;
        let opcode = u8::from(transport.opcode());
        let kind = kind(opcode, transport.payload())?;
        let full = match opcode {
            // First and middle packets of a Send or a Write; middle packets of a response.
            0x00 | 0x01 | 0x07 | 0x0E => Some(behind),
            0x06 => behind.checked_sub(reth::LEN),
            0x0D => behind.checked_sub(aeth::LEN),
            _ => None,
        };
        Some(Roce {
            kind,
            source,
            destination,
            port: datagram.source_port(),
            qp: transport.destination_qp(),
            psn: transport.psn(),
            marked: class.ecn() == Ecn::Ce,
            asks: transport.ack_request(),
            mtu: full.and_then(|bytes| u32::try_from(bytes).ok()).filter(|mtu| MTUS.contains(mtu)),
            ip,
            bth: ip + header + udp::LEN,
        })
    }

    /// Start of the IP header.
    pub(crate) const fn ip(&self) -> usize {
        self.ip
    }

    /// Start of the BTH.
    pub(crate) const fn bth(&self) -> usize {
        self.bth
    }

    /// True if the ICRC is right.
    pub(crate) fn is_intact(&self, frame: &[u8]) -> bool {
        icrc::check(&frame[self.ip..]).is_ok()
    }

    /// Number of PSNs that the packet takes, as far as the path MTU is known.
    pub(crate) fn span(&self, mtu: Option<u32>) -> Option<u32> {
        match self.kind {
            Kind::Read(bytes) => match mtu {
                Some(mtu) => Some(bytes.div_ceil(mtu).max(1)),
                None if bytes <= MTUS[0] => Some(1),
                None => None,
            },
            _ => Some(1),
        }
    }

    /// Makes the frame ECN-capable, unless a switch has marked it already.
    pub(crate) fn set_capable(&self, frame: &mut [u8]) {
        let packet = &mut frame[self.ip..];
        if packet[0] >> 4 == 4
            && let Ok(mut view) = ipv4::View::new(&mut *packet)
        {
            let class = view.traffic_class();
            if class.ecn() == Ecn::NotEct {
                view.set_traffic_class(class.with_ecn(Ecn::Ect0));
            }
        } else if packet[0] >> 4 == 6 {
            // The traffic class lies across the first two bytes, and ECN is in the upper half of the second.
            let class = TrafficClass(packet[0] << 4 | packet[1] >> 4);
            if class.ecn() == Ecn::NotEct {
                packet[1] |= (Ecn::Ect0 as u8) << 4;
            }
        }
    }

    /// Writes another PSN and syndrome into a reply, and the right ICRC.
    pub(crate) fn rewrite(&self, frame: &mut [u8], psn: Psn, syndrome: Syndrome) {
        if let Ok(mut transport) = bth::View::new(&mut frame[self.bth..]) {
            transport.set_psn(psn);
            if let Ok(mut aeth) = aeth::View::new(transport.payload_mut()) {
                aeth.set_syndrome(syndrome);
            }
        }
        let filled = icrc::fill(&mut frame[self.ip..]);
        debug_assert!(filled.is_ok(), "{filled:?}");
    }
}

/// The path MTUs of InfiniBand, bytes (InfiniBand Architecture Specification, 9.4.3).
pub(crate) const MTUS: [u32; 5] = [256, 512, 1024, 2048, 4096];

fn kind(opcode: u8, behind: &[u8]) -> Option<Kind> {
    Some(match opcode {
        0x0C => Kind::Read(reth::Repr::parse(&reth::View::new(behind).ok()?).length),
        // Sends, Writes, atomic operations, and Sends that invalidate (table 38).
        0x00..=0x0B | 0x13 | 0x14 | 0x16 | 0x17 => Kind::Request,
        0x0D..=0x10 | 0x12 => Kind::Response,
        0x11 => Kind::Reply(aeth::View::new(behind).ok()?.syndrome()),
        0x81 => Kind::Cnp,
        _ => Kind::Other,
    })
}

/// True for a NACK of a missing packet.
pub(crate) const fn is_nack(syndrome: Syndrome) -> bool {
    matches!(syndrome, Syndrome::Nak(Nak::PsnSequence))
}
