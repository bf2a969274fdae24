//! A whole RoCEv2 frame: Ethernet, IP, UDP, BTH, extension header by opcode, payload, ICRC.

use crate::bth::Opcode;
use crate::ethernet::{Address, EtherType};
use crate::{Error, Layer, aeth, bth, cnp, enough, ethernet, icrc, ipv4, ipv6, reth, udp};

/// The IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ip {
    /// Version 4.
    V4(ipv4::Repr),
    /// Version 6.
    V6(ipv6::Repr),
}

/// Extension header between BTH and payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extension {
    /// No extension header.
    None,
    /// Memory of a Write or a Read.
    Reth(reth::Repr),
    /// ACK or NAK.
    Aeth(aeth::Repr),
    /// The reserved bytes of a CNP.
    Cnp,
}

impl Extension {
    /// Length on the wire, bytes.
    pub const fn len(&self) -> usize {
        match self {
            Extension::None => 0,
            Extension::Reth(_) => reth::LEN,
            Extension::Aeth(_) => aeth::LEN,
            Extension::Cnp => cnp::LEN,
        }
    }

    /// True if there is no extension header.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True if this opcode demands this extension header.
    const fn fits(&self, opcode: Opcode) -> bool {
        match self {
            Extension::None => !opcode.has_reth() && !opcode.has_aeth() && !matches!(opcode, Opcode::Cnp),
            Extension::Reth(_) => opcode.has_reth(),
            Extension::Aeth(_) => opcode.has_aeth(),
            Extension::Cnp => matches!(opcode, Opcode::Cnp),
        }
    }
}

/// The headers of a RoCEv2 frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Destination address.
    pub destination: Address,
    /// Source address.
    pub source: Address,
    /// IP header. `emit` sets its protocol and payload length.
    pub ip: Ip,
    /// UDP source port. The destination port is [`udp::ROCE`].
    pub source_port: u16,
    /// Base transport header. `emit` writes its padding after the payload.
    pub bth: bth::Repr,
    /// Extension header that the opcode demands.
    pub extension: Extension,
}

impl Repr {
    /// Length of a frame with so many bytes of payload, from destination address to ICRC, without Ethernet padding and FCS.
    pub const fn frame_len(&self, payload: usize) -> usize {
        let ip = match self.ip {
            Ip::V4(_) => ipv4::LEN,
            Ip::V6(_) => ipv6::LEN,
        };
        ethernet::LEN + ip + self.datagram_len(payload)
    }

    const fn datagram_len(&self, payload: usize) -> usize {
        let pad = (self.bth.pad & 3) as usize;
        udp::LEN + bth::LEN + self.extension.len() + payload + pad + icrc::LEN
    }

    /// Reads a frame, which Ethernet padding may follow. Returns the headers, and the payload without the BTH's padding.
    ///
    /// # Errors
    /// The frame is not RoCEv2, or a checksum is wrong.
    pub fn parse(frame: &[u8]) -> Result<(Self, &[u8]), Error> {
        let link = ethernet::View::new(frame)?;
        let packet = &frame[ethernet::LEN..];
        let ip = match link.ether_type() {
            EtherType::IPV4 => Ip::V4(ipv4::Repr::parse(&ipv4::View::new(packet)?)?),
            EtherType::IPV6 => Ip::V6(ipv6::Repr::parse(&ipv6::View::new(packet)?)),
            other => {
                let (layer, field) = (Layer::Ethernet, "EtherType");
                return Err(Error::Field { layer, field, value: other.0.into() });
            }
        };
        let layout = icrc::Layout::of(packet)?;
        let datagram = udp::View::new(&packet[layout.ip..])?;
        if datagram.destination_port() != udp::ROCE {
            let value = datagram.destination_port().into();
            return Err(Error::Field { layer: Layer::Udp, field: "destination port", value });
        }
        icrc::check(packet)?;
        let transport = bth::View::new(&packet[layout.bth()..layout.icrc])?;
        let bth = bth::Repr::parse(&transport)?;
        let rest = &packet[layout.bth() + bth::LEN..layout.icrc];
        let extension = match bth.opcode {
            Opcode::Cnp => {
                cnp::View::new(rest)?;
                Extension::Cnp
            }
            opcode if opcode.has_reth() => Extension::Reth(reth::Repr::parse(&reth::View::new(rest)?)),
            opcode if opcode.has_aeth() => Extension::Aeth(aeth::Repr::parse(&aeth::View::new(rest)?)),
            _ => Extension::None,
        };
        let rest = &rest[extension.len()..];
        let pad = usize::from(bth.pad);
        enough(Layer::Payload, pad, rest.len())?;
        let repr = Repr {
            destination: link.destination(),
            source: link.source(),
            ip,
            source_port: datagram.source_port(),
            bth,
            extension,
        };
        Ok((repr, &rest[..rest.len() - pad]))
    }

    /// Writes the frame at the start of `frame` with all checksums and the ICRC, and returns its length, see
    /// [`Repr::frame_len`]. [`ethernet::seal`] adds Ethernet padding and FCS.
    ///
    /// # Errors
    /// The frame does not fit, the payload is longer than a datagram can be, or opcode and extension contradict each other.
    pub fn emit(&self, payload: &[u8], frame: &mut [u8]) -> Result<usize, Error> {
        if !self.extension.fits(self.bth.opcode) {
            let value = u8::from(self.bth.opcode).into();
            return Err(Error::Field { layer: Layer::Bth, field: "OpCode", value });
        }
        let len = self.frame_len(payload.len());
        enough(Layer::Ethernet, len, frame.len())?;
        let frame = &mut frame[..len];
        let Ok(carried) = u16::try_from(self.datagram_len(payload.len())) else {
            let (layer, field) = (Layer::Payload, "length");
            return Err(Error::Field { layer, field, value: payload.len().try_into().unwrap_or(u32::MAX) });
        };
        let ether_type = match self.ip {
            Ip::V4(_) => EtherType::IPV4,
            Ip::V6(_) => EtherType::IPV6,
        };
        let link = ethernet::Repr { destination: self.destination, source: self.source, ether_type };
        link.emit(&mut ethernet::View::new(&mut *frame)?);
        let packet = &mut frame[ethernet::LEN..];
        let datagram = match self.ip {
            Ip::V4(ip) => {
                ipv4::Repr { protocol: ipv4::UDP, payload_len: carried, ..ip }.emit(packet)?;
                &mut packet[ipv4::LEN..]
            }
            Ip::V6(ip) => {
                ipv6::Repr { next_header: ipv4::UDP, payload_len: carried, ..ip }.emit(packet)?;
                &mut packet[ipv6::LEN..]
            }
        };
        let udp = udp::Repr {
            source_port: self.source_port,
            destination_port: udp::ROCE,
            payload_len: carried - udp::LEN as u16,
        };
        udp.emit(datagram)?;
        let mut transport = bth::View::new(&mut datagram[udp::LEN..])?;
        self.bth.emit(&mut transport);
        let rest = transport.payload_mut();
        match self.extension {
            Extension::None => {}
            Extension::Reth(reth) => reth.emit(&mut reth::View::new(&mut *rest)?),
            Extension::Aeth(aeth) => aeth.emit(&mut aeth::View::new(&mut *rest)?),
            Extension::Cnp => cnp::Repr.emit(&mut cnp::View::new(&mut *rest)?),
        }
        let (body, pad) = rest[self.extension.len()..].split_at_mut(payload.len());
        body.copy_from_slice(payload);
        pad.fill(0);
        icrc::fill(&mut frame[ethernet::LEN..])?;
        Ok(len)
    }
}
