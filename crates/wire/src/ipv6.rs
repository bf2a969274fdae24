//! IPv6 (RFC 8200), without extension headers.

use crate::ecn::TrafficClass;
use crate::view::{get16, get32, put};
use crate::{Error, Layer, enough};
use core::net::Ipv6Addr;

/// Length of the header, bytes.
pub const LEN: usize = 40;

const FLOW_LABEL: u32 = (1 << 20) - 1;

/// A view of an IPv6 packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View<T>(T);

impl<T: AsRef<[u8]>> View<T> {
    /// A view of bytes that begin with a packet.
    ///
    /// # Errors
    /// The bytes are not IPv6, or they end within the packet.
    pub fn new(bytes: T) -> Result<Self, Error> {
        let has = bytes.as_ref().len();
        enough(Layer::Ipv6, LEN, has)?;
        let view = View(bytes);
        let version = get32(view.bytes(), 0) >> 28;
        if version != 6 {
            return Err(Error::Field { layer: Layer::Ipv6, field: "version", value: version });
        }
        enough(Layer::Ipv6, LEN + usize::from(view.payload_len()), has)?;
        Ok(view)
    }

    /// DSCP and ECN.
    pub fn traffic_class(&self) -> TrafficClass {
        TrafficClass((get32(self.bytes(), 0) >> 20) as u8)
    }

    /// Flow label, 20 bits. The ICRC does not cover it.
    pub fn flow_label(&self) -> u32 {
        get32(self.bytes(), 0) & FLOW_LABEL
    }

    /// Length of the payload, bytes.
    pub fn payload_len(&self) -> u16 {
        get16(self.bytes(), 4)
    }

    /// Protocol of the payload.
    pub fn next_header(&self) -> u8 {
        self.bytes()[6]
    }

    /// Number of hops that are left.
    pub fn hop_limit(&self) -> u8 {
        self.bytes()[7]
    }

    /// Source address.
    pub fn source(&self) -> Ipv6Addr {
        self.address(8)
    }

    /// Destination address.
    pub fn destination(&self) -> Ipv6Addr {
        self.address(24)
    }

    /// Payload, as long as the payload length demands.
    pub fn payload(&self) -> &[u8] {
        let end = self.end();
        &self.bytes()[LEN..end]
    }

    fn end(&self) -> usize {
        // `new` has checked the length. The bytes may have changed since, so it is limited again.
        (LEN + usize::from(self.payload_len())).min(self.bytes().len())
    }

    fn address(&self, at: usize) -> Ipv6Addr {
        let mut octets = [0; 16];
        octets.copy_from_slice(&self.bytes()[at..at + 16]);
        octets.into()
    }

    fn bytes(&self) -> &[u8] {
        self.0.as_ref()
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> View<T> {
    /// Sets DSCP and ECN.
    pub fn set_traffic_class(&mut self, class: TrafficClass) {
        let word = get32(self.bytes(), 0) & !(0xFF << 20) | u32::from(class.0) << 20;
        put(self.0.as_mut(), 0, word.to_be_bytes());
    }

    /// Sets the flow label to the lowest 20 bits of `label`.
    pub fn set_flow_label(&mut self, label: u32) {
        let word = get32(self.bytes(), 0) & !FLOW_LABEL | label & FLOW_LABEL;
        put(self.0.as_mut(), 0, word.to_be_bytes());
    }

    /// Payload, as long as the payload length demands.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        let end = self.end();
        &mut self.0.as_mut()[LEN..end]
    }
}

/// An IPv6 header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// DSCP and ECN.
    pub traffic_class: TrafficClass,
    /// Flow label, 20 bits.
    pub flow_label: u32,
    /// Protocol of the payload.
    pub next_header: u8,
    /// Number of hops that are left.
    pub hop_limit: u8,
    /// Source address.
    pub source: Ipv6Addr,
    /// Destination address.
    pub destination: Ipv6Addr,
    /// Length of the payload, bytes.
    pub payload_len: u16,
}

impl Repr {
    /// Reads the header.
    pub fn parse<T: AsRef<[u8]>>(view: &View<T>) -> Self {
        Repr {
            traffic_class: view.traffic_class(),
            flow_label: view.flow_label(),
            next_header: view.next_header(),
            hop_limit: view.hop_limit(),
            source: view.source(),
            destination: view.destination(),
            payload_len: view.payload_len(),
        }
    }

    /// Writes the header at the start of `bytes`.
    ///
    /// # Errors
    /// Header and payload do not fit into `bytes`.
    pub fn emit(&self, bytes: &mut [u8]) -> Result<(), Error> {
        enough(Layer::Ipv6, LEN + usize::from(self.payload_len), bytes.len())?;
        let word = 6 << 28 | u32::from(self.traffic_class.0) << 20 | self.flow_label & FLOW_LABEL;
        put(bytes, 0, word.to_be_bytes());
        put(bytes, 4, self.payload_len.to_be_bytes());
        put(bytes, 6, [self.next_header, self.hop_limit]);
        put(bytes, 8, self.source.octets());
        put(bytes, 24, self.destination.octets());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ecn::Ecn;

    #[test]
    fn a_header_is_read_as_it_was_written_and_setters_change_one_field() {
        let repr = Repr {
            traffic_class: TrafficClass::new(26, Ecn::Ect0),
            flow_label: 0xA_BCDE,
            next_header: crate::ipv4::UDP,
            hop_limit: 64,
            source: Ipv6Addr::new(0xFD00, 0, 0, 0, 0, 0, 0, 1),
            destination: Ipv6Addr::new(0xFD00, 0, 0, 0, 0, 0, 0, 2),
            payload_len: 4,
        };
        let mut bytes = [7; 50];
        repr.emit(&mut bytes).unwrap();
        let mut view = View::new(&mut bytes[..]).unwrap();
        assert_eq!((Repr::parse(&view), view.payload()), (repr, &[7; 4][..]));
        view.set_traffic_class(TrafficClass(0xFF));
        assert_eq!(view.flow_label(), 0xA_BCDE);
        view.set_flow_label(u32::MAX);
        assert_eq!((view.flow_label(), view.traffic_class().0), (FLOW_LABEL, 0xFF));
        assert!(View::new(&bytes[..]).is_ok());
        assert_eq!(View::new(&bytes[..43]), Err(Error::Short { layer: Layer::Ipv6, needs: 44, has: 43 }));
        bytes[0] = 0x45;
        assert_eq!(
            View::new(&bytes[..]),
            Err(Error::Field { layer: Layer::Ipv6, field: "version", value: 4 })
        );
    }
}
