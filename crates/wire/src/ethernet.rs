//! Ethernet II (IEEE 802.3, clause 3): addresses, type, and the frame check sequence.

use crate::view::{get16, put};
use crate::{Error, Layer, enough};
use core::fmt;

/// Length of the header, bytes.
pub const LEN: usize = 14;
/// Length of the frame check sequence, bytes.
pub const FCS_LEN: usize = 4;
/// Length of the shortest frame with header and FCS, bytes; shorter frames are padded.
pub const MIN_FRAME: usize = 64;

/// A MAC address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(pub [u8; 6]);

impl Address {
    /// The locally administered unicast address that consists of 02:00 and this number.
    pub const fn local(number: u32) -> Self {
        let [a, b, c, d] = number.to_be_bytes();
        Address([2, 0, a, b, c, d])
    }

    /// True for the address of a group of stations.
    pub const fn is_multicast(&self) -> bool {
        self.0[0] & 1 != 0
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// EtherType: protocol of the payload (IEEE registry).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EtherType(pub u16);

impl EtherType {
    /// IPv4.
    pub const IPV4: EtherType = EtherType(0x0800);
    /// IPv6.
    pub const IPV6: EtherType = EtherType(0x86DD);
    /// MAC control, to which PFC belongs.
    pub const MAC_CONTROL: EtherType = EtherType(0x8808);
    /// Experiments within one site (IEEE 802, 9.2.4).
    pub const LOCAL_EXPERIMENT: EtherType = EtherType(0x88B5);
}

view! {
    /// A view of an Ethernet header.
    Ethernet
}

impl<T: AsRef<[u8]>> View<T> {
    /// Destination address.
    pub fn destination(&self) -> Address {
        Address(self.address(0))
    }

    /// Source address.
    pub fn source(&self) -> Address {
        Address(self.address(6))
    }

    /// Protocol of the payload.
    pub fn ether_type(&self) -> EtherType {
        EtherType(get16(self.bytes(), 12))
    }

    fn address(&self, at: usize) -> [u8; 6] {
        let mut address = [0; 6];
        address.copy_from_slice(&self.bytes()[at..at + 6]);
        address
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> View<T> {
    /// Sets the destination address.
    pub fn set_destination(&mut self, to: Address) {
        put(self.bytes_mut(), 0, to.0);
    }

    /// Sets the source address.
    pub fn set_source(&mut self, from: Address) {
        put(self.bytes_mut(), 6, from.0);
    }

    /// Sets the protocol of the payload.
    pub fn set_ether_type(&mut self, kind: EtherType) {
        put(self.bytes_mut(), 12, kind.0.to_be_bytes());
    }
}

/// An Ethernet header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Destination address.
    pub destination: Address,
    /// Source address.
    pub source: Address,
    /// Protocol of the payload.
    pub ether_type: EtherType,
}

impl Repr {
    /// Reads the header.
    pub fn parse<T: AsRef<[u8]>>(view: &View<T>) -> Self {
        Repr { destination: view.destination(), source: view.source(), ether_type: view.ether_type() }
    }

    /// Writes the header.
    pub fn emit<T: AsRef<[u8]> + AsMut<[u8]>>(&self, view: &mut View<T>) {
        view.set_destination(self.destination);
        view.set_source(self.source);
        view.set_ether_type(self.ether_type);
    }
}

/// The frame check sequence of a frame, which covers it from destination address to padding. Its bytes are in the order of
/// transmission.
pub fn fcs(frame: &[u8]) -> [u8; FCS_LEN] {
    crc32fast::hash(frame).to_le_bytes()
}

/// Completes a frame whose first `len` bytes are written: pads it with zeros to the shortest length and appends the FCS.
/// Returns the length of the whole frame.
///
/// # Errors
/// The frame does not fit into `frame`.
pub fn seal(frame: &mut [u8], len: usize) -> Result<usize, Error> {
    let padded = len.max(MIN_FRAME - FCS_LEN);
    enough(Layer::Ethernet, padded.saturating_add(FCS_LEN), frame.len())?;
    frame[len..padded].fill(0);
    let fcs = fcs(&frame[..padded]);
    put(frame, padded, fcs);
    Ok(padded + FCS_LEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_it_was_written() {
        let repr = Repr {
            destination: Address::local(7),
            source: Address([0xFF; 6]),
            ether_type: EtherType::MAC_CONTROL,
        };
        let mut bytes = [0; LEN + 2];
        repr.emit(&mut View::new(&mut bytes[..]).unwrap());
        let view = View::new(&bytes[..]).unwrap();
        assert_eq!((Repr::parse(&view), view.payload()), (repr, &[0, 0][..]));
        assert!(repr.source.is_multicast() && !repr.destination.is_multicast());
        assert_eq!(std::format!("{}", repr.destination), "02:00:00:00:00:07");
        assert_eq!(View::new(&bytes[..13]), Err(Error::Short { layer: Layer::Ethernet, needs: 14, has: 13 }));
    }

    /// CRC-32 over a frame and its own FCS is 0x2144DF1C, which is how a receiver checks the FCS (IEEE 802.3, 3.2.9).
    #[test]
    fn a_frame_and_its_fcs_have_a_constant_crc() {
        for (len, sealed) in [(20, 64), (60, 64), (61, 65), (1496, 1500)] {
            let mut frame = [0x5A; 1500];
            assert_eq!(seal(&mut frame, len), Ok(sealed));
            assert_eq!(crc32fast::hash(&frame[..sealed]), 0x2144_DF1C);
        }
        assert_eq!(seal(&mut [0; 63], 20), Err(Error::Short { layer: Layer::Ethernet, needs: 64, has: 63 }));
    }
}
