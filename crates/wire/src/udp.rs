//! UDP (RFC 768). RoCEv2 uses destination port 4791. Its source port serves as entropy for the hashes of switches.

use crate::view::{get16, put};
use crate::{Error, Layer, enough};

/// Length of the header, bytes.
pub const LEN: usize = 8;
/// Destination port of RoCEv2 (IANA; InfiniBand Architecture, A17.3.1.2).
pub const ROCE: u16 = 4791;
/// First port of the dynamic range, from which NICs choose source ports (RFC 6335).
pub const FIRST_DYNAMIC: u16 = 0xC000;

/// A view of a UDP datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View<T>(T);

impl<T: AsRef<[u8]>> View<T> {
    /// A view of bytes that begin with a datagram.
    ///
    /// # Errors
    /// The bytes end within the datagram, or its length is less than that of its header.
    pub fn new(bytes: T) -> Result<Self, Error> {
        let has = bytes.as_ref().len();
        enough(Layer::Udp, LEN, has)?;
        let view = View(bytes);
        let length = view.length();
        if usize::from(length) < LEN {
            return Err(Error::Field { layer: Layer::Udp, field: "length", value: length.into() });
        }
        enough(Layer::Udp, length.into(), has)?;
        Ok(view)
    }

    /// Source port.
    pub fn source_port(&self) -> u16 {
        get16(self.0.as_ref(), 0)
    }

    /// Destination port.
    pub fn destination_port(&self) -> u16 {
        get16(self.0.as_ref(), 2)
    }

    /// Length of header and payload, bytes.
    pub fn length(&self) -> u16 {
        get16(self.0.as_ref(), 4)
    }

    /// Checksum; 0 means no checksum.
    pub fn checksum(&self) -> u16 {
        get16(self.0.as_ref(), 6)
    }

    /// Payload, as long as the length demands.
    pub fn payload(&self) -> &[u8] {
        // `new` has checked the length. The bytes may have changed since, so it is limited again.
        let bytes = self.0.as_ref();
        &bytes[LEN..usize::from(self.length()).clamp(LEN, bytes.len())]
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> View<T> {
    /// Sets the source port. The ICRC of a RoCEv2 packet covers it, see [`crate::patch`].
    pub fn set_source_port(&mut self, port: u16) {
        put(self.0.as_mut(), 0, port.to_be_bytes());
    }

    /// Payload, as long as the length demands.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        let end = usize::from(self.length());
        let bytes = self.0.as_mut();
        let end = end.clamp(LEN, bytes.len());
        &mut bytes[LEN..end]
    }
}

/// A UDP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Length of the payload, bytes.
    pub payload_len: u16,
}

impl Repr {
    /// Reads the header without its checksum: RoCEv2 senders set it to 0 and rely on the ICRC.
    pub fn parse<T: AsRef<[u8]>>(view: &View<T>) -> Self {
        Repr {
            source_port: view.source_port(),
            destination_port: view.destination_port(),
            payload_len: view.length().saturating_sub(LEN as u16),
        }
    }

    /// Writes the header at the start of `bytes`, without a checksum.
    ///
    /// # Errors
    /// Header and payload do not fit into `bytes`, or the payload is longer than a datagram can be.
    pub fn emit(&self, bytes: &mut [u8]) -> Result<(), Error> {
        let Some(length) = self.payload_len.checked_add(LEN as u16) else {
            return Err(Error::Field { layer: Layer::Udp, field: "length", value: self.payload_len.into() });
        };
        enough(Layer::Udp, length.into(), bytes.len())?;
        put(bytes, 0, self.source_port.to_be_bytes());
        put(bytes, 2, self.destination_port.to_be_bytes());
        put(bytes, 4, length.to_be_bytes());
        put(bytes, 6, [0, 0]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_field_ends_a_datagram() {
        let repr = Repr { source_port: 49_200, destination_port: ROCE, payload_len: 3 };
        let mut bytes = [9; 20];
        repr.emit(&mut bytes).unwrap();
        let view = View::new(&bytes[..]).unwrap();
        assert_eq!((Repr::parse(&view), view.payload().len(), view.checksum()), (repr, 3, 0));
        assert_eq!(View::new(&bytes[..10]), Err(Error::Short { layer: Layer::Udp, needs: 11, has: 10 }));
        bytes[5] = 7;
        assert_eq!(View::new(&bytes[..]), Err(Error::Field { layer: Layer::Udp, field: "length", value: 7 }));
        let long = Repr { payload_len: u16::MAX - 7, ..repr };
        assert!(matches!(long.emit(&mut [0; 70_000]), Err(Error::Field { .. })));
        assert_eq!(repr.emit(&mut bytes[..10]), Err(Error::Short { layer: Layer::Udp, needs: 11, has: 10 }));
    }
}
