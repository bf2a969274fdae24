//! The invariant CRC (InfiniBand Architecture Specification, 7.8.1 and A17.3.3): four bytes at the end of a packet that
//! cover all that no switch changes on its way.
//!
//! It is a CRC-32 (the polynomial, initial value and order of bits of Ethernet's) over eight bytes of ones, where InfiniBand
//! has its local header, and the packet from its IP header to the end of its payload. What switches may change counts as
//! ones:
//!
//! | header | fields that count as ones |
//! |---|---|
//! | IPv4 | type of service, time to live, header checksum |
//! | IPv6 | traffic class, flow label, hop limit |
//! | UDP | checksum |
//! | BTH | its fifth byte: FECN, BECN, six reserved bits |
//!
//! The UDP source port is no such field: a switch that changes it, to send a packet another way, must change the ICRC
//! with it ([`crate::patch`]), or every receiver drops the packet.
//!
//! A *packet* here begins with its IP header and may be followed by padding.

use crate::view::put;
use crate::{Error, Layer, bth, enough, ipv4, ipv6, udp};

/// Length of the ICRC, bytes.
pub const LEN: usize = 4;

/// Longest headers that contain masked fields: IPv6, UDP, BTH.
const MOST_MASKED: usize = ipv6::LEN + udp::LEN + bth::LEN;
/// Ones in place of InfiniBand's local route header.
const ONES: usize = 8;

/// Where the parts of a packet are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// Length of the IP header.
    pub(crate) ip: usize,
    /// Where the ICRC begins.
    pub(crate) icrc: usize,
}

impl Layout {
    /// Finds the parts of a RoCEv2 packet.
    pub(crate) fn of(packet: &[u8]) -> Result<Self, Error> {
        enough(Layer::Ipv4, ipv4::LEN, packet.len())?;
        let (ip, protocol, carried) = match packet[0] >> 4 {
            6 => {
                let view = ipv6::View::new(packet)?;
                (ipv6::LEN, view.next_header(), usize::from(view.payload_len()))
            }
            _ => {
                let view = ipv4::View::new(packet)?;
                ipv4::plain(&view)?;
                (ipv4::LEN, view.protocol(), view.payload().len())
            }
        };
        let layer = if ip == ipv6::LEN { Layer::Ipv6 } else { Layer::Ipv4 };
        if protocol != ipv4::UDP {
            return Err(Error::Field { layer, field: "protocol", value: protocol.into() });
        }
        let datagram = udp::View::new(&packet[ip..ip + carried])?;
        if usize::from(datagram.length()) != carried {
            let value = datagram.length().into();
            return Err(Error::Field { layer: Layer::Udp, field: "length", value });
        }
        enough(Layer::Bth, bth::LEN + LEN, datagram.payload().len())?;
        Ok(Layout { ip, icrc: ip + carried - LEN })
    }

    /// Where the BTH begins.
    pub(crate) const fn bth(&self) -> usize {
        self.ip + udp::LEN
    }

    /// Offsets of the bytes that count as ones.
    fn masked(&self) -> [usize; 7] {
        let (udp, bth) = (self.ip, self.bth());
        match self.ip {
            // Type of service; time to live; checksum.
            ipv4::LEN => [1, 8, 10, 11, udp + 6, udp + 7, bth + 4],
            // Of the first byte the lower half only: see `compute`.
            _ => [1, 2, 3, 7, udp + 6, udp + 7, bth + 4],
        }
    }

    fn compute(&self, packet: &[u8]) -> u32 {
        let covered = self.bth() + bth::LEN;
        let mut head = [0xFF; ONES + MOST_MASKED];
        head[ONES..ONES + covered].copy_from_slice(&packet[..covered]);
        if self.ip == ipv6::LEN {
            head[ONES] |= 0x0F; // the upper half of the traffic class; the version stays
        }
        for at in self.masked() {
            head[ONES + at] = 0xFF;
        }
        let mut crc = crc32fast::Hasher::new();
        crc.update(&head[..ONES + covered]);
        crc.update(&packet[covered..self.icrc]);
        crc.finalize()
    }
}

/// What the ICRC of a packet should be. The packet has room for one at its end; what stands there does not count.
///
/// # Errors
/// If it is no RoCEv2 packet: IP without options, UDP, and room for a BTH and an ICRC.
pub fn compute(packet: &[u8]) -> Result<u32, Error> {
    Ok(Layout::of(packet)?.compute(packet))
}

/// The ICRC that stands in a packet.
///
/// # Errors
/// If it is no RoCEv2 packet.
pub fn read(packet: &[u8]) -> Result<u32, Error> {
    Ok(read_at(packet, Layout::of(packet)?.icrc))
}

/// Looks whether the ICRC of a packet is right, as its receiver does.
///
/// # Errors
/// If it is not, or it is no RoCEv2 packet.
pub fn check(packet: &[u8]) -> Result<(), Error> {
    let layout = Layout::of(packet)?;
    let (found, right) = (read_at(packet, layout.icrc), layout.compute(packet));
    if found == right { Ok(()) } else { Err(Error::Checksum { layer: Layer::Icrc, found, right }) }
}

/// Puts the right ICRC at the end of a packet.
///
/// # Errors
/// If it is no RoCEv2 packet.
pub fn fill(packet: &mut [u8]) -> Result<(), Error> {
    let layout = Layout::of(packet)?;
    let right = layout.compute(packet);
    write_at(packet, layout.icrc, right);
    Ok(())
}

/// Reads an ICRC: its lowest byte comes first.
pub(crate) fn read_at(packet: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([packet[at], packet[at + 1], packet[at + 2], packet[at + 3]])
}

pub(crate) fn write_at(packet: &mut [u8], at: usize, icrc: u32) {
    put(packet, at, icrc.to_le_bytes());
}
