//! The invariant CRC (InfiniBand Architecture Specification, 7.8.1 and A17.3.3): four bytes at the end of a packet, which
//! cover all fields that switches do not change.
//!
//! It is a CRC-32 with Ethernet's polynomial, initial value and order of bits. It covers eight bytes of ones, which stand for
//! InfiniBand's local route header, and the packet from its IP header to the end of its payload. Fields that switches may
//! change count as ones:
//!
//! | header | fields that count as ones |
//! |---|---|
//! | IPv4 | type of service, time to live, header checksum |
//! | IPv6 | traffic class, flow label, hop limit |
//! | UDP | checksum |
//! | BTH | the fifth byte: FECN, BECN, six reserved bits |
//!
//! The ICRC covers the UDP source port. A switch that changes the port, to move a packet to another path, must update the
//! ICRC as well ([`crate::patch`]), or the receiver drops the packet.
//!
//! In this file a *packet* begins with its IP header, and padding may follow it.

use crate::view::put;
use crate::{Error, Layer, bth, enough, ipv4, ipv6, udp};

/// Length of the ICRC, bytes.
pub const LEN: usize = 4;

/// Length of the longest headers with masked fields: IPv6, UDP, BTH.
const MOST_MASKED: usize = ipv6::LEN + udp::LEN + bth::LEN;
/// Number of bytes of ones that stand for InfiniBand's local route header.
const ONES: usize = 8;

/// Positions of the parts of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// Length of the IP header.
    pub(crate) ip: usize,
    /// Start of the ICRC.
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

    /// Start of the BTH.
    pub(crate) const fn bth(&self) -> usize {
        self.ip + udp::LEN
    }

    /// Offsets of the bytes that count as ones.
    fn masked(&self) -> [usize; 7] {
        let (udp, bth) = (self.ip, self.bth());
        match self.ip {
            // Type of service; time to live; checksum.
            ipv4::LEN => [1, 8, 10, 11, udp + 6, udp + 7, bth + 4],
            // The lower half of byte 0 counts as ones, too, see `compute`.
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

/// Computes the ICRC of a packet. The packet ends with four bytes for the ICRC, whose value has no influence.
///
/// # Errors
/// The packet is not RoCEv2: IP without options, UDP, and room for a BTH and an ICRC.
pub fn compute(packet: &[u8]) -> Result<u32, Error> {
    Ok(Layout::of(packet)?.compute(packet))
}

/// Reads the ICRC that a packet carries.
///
/// # Errors
/// The packet is not RoCEv2.
pub fn read(packet: &[u8]) -> Result<u32, Error> {
    Ok(read_at(packet, Layout::of(packet)?.icrc))
}

/// Checks the ICRC of a packet, as its receiver does.
///
/// # Errors
/// The ICRC is wrong, or the packet is not RoCEv2.
pub fn check(packet: &[u8]) -> Result<(), Error> {
    let layout = Layout::of(packet)?;
    let (found, right) = (read_at(packet, layout.icrc), layout.compute(packet));
    if found == right { Ok(()) } else { Err(Error::Checksum { layer: Layer::Icrc, found, right }) }
}

/// Writes the correct ICRC at the end of a packet.
///
/// # Errors
/// The packet is not RoCEv2.
pub fn fill(packet: &mut [u8]) -> Result<(), Error> {
    let layout = Layout::of(packet)?;
    let right = layout.compute(packet);
    write_at(packet, layout.icrc, right);
    Ok(())
}

/// Reads an ICRC; its lowest byte comes first.
pub(crate) fn read_at(packet: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([packet[at], packet[at + 1], packet[at + 2], packet[at + 3]])
}

pub(crate) fn write_at(packet: &mut [u8], at: usize, icrc: u32) {
    put(packet, at, icrc.to_le_bytes());
}
