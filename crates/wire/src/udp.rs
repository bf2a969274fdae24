//! UDP (RFC 768). RoCEv2 goes to port 4791, and its source port is there for switches to hash.

use crate::view::{get16, put};
use crate::{Error, Layer, enough};

/// Length of the header, bytes.
pub const LEN: usize = 8;
/// Destination port of RoCEv2 (IANA; InfiniBand Architecture, A17.3.1.2).
pub const ROCE: u16 = 4791;
/// First of the ports from which NICs choose a source port: those that IANA leaves to everybody (RFC 6335).
pub const FIRST_DYNAMIC: u16 = 0xC000;

/// A UDP datagram over bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View<T>(T);

impl<T: AsRef<[u8]>> View<T> {
    /// Lays the view over bytes that begin with a datagram.
    ///
    /// # Errors
    /// If they end within it, or its length is less than its header's.
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

    /// Bytes of header and payload.
    pub fn length(&self) -> u16 {
        get16(self.0.as_ref(), 4)
    }

    /// Checksum; 0 stands for none.
    pub fn checksum(&self) -> u16 {
        get16(self.0.as_ref(), 6)
    }

    /// What it carries: as much as its length says.
    pub fn payload(&self) -> &[u8] {
        // The length is checked when the view is made, and cut here in case its bytes have changed since.
        let bytes = self.0.as_ref();
        &bytes[LEN..usize::from(self.length()).clamp(LEN, bytes.len())]
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> View<T> {
    /// Sets the source port. The ICRC of a RoCEv2 packet covers it: see [`crate::patch`].
    pub fn set_source_port(&mut self, port: u16) {
        put(self.0.as_mut(), 0, port.to_be_bytes());
    }

    /// What it carries.
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
    /// Bytes that it carries, the header not counted.
    pub payload_len: u16,
}

impl Repr {
    /// Reads a header. The checksum is not looked at: RoCEv2 senders put 0 there, and have the ICRC.
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
    /// If there is no room for it and what it carries, or that is more than a datagram holds.
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
    fn a_datagram_ends_where_its_length_says() {
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
