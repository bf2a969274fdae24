//! RDMA extended transport header (InfiniBand Architecture Specification, 9.3.3): in the first packet of a Write and in a
//! Read request.

use crate::view::{get32, get64, put};

/// Length of the header, bytes.
pub const LEN: usize = 16;

view! {
    /// A RETH over bytes.
    Reth
}

impl<T: AsRef<[u8]>> View<T> {
    /// Virtual address at the responder.
    pub fn address(&self) -> u64 {
        get64(self.bytes(), 0)
    }

    /// Key of the memory there.
    pub fn key(&self) -> u32 {
        get32(self.bytes(), 8)
    }

    /// Bytes of the whole message.
    pub fn length(&self) -> u32 {
        get32(self.bytes(), 12)
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> View<T> {
    /// Sets the virtual address at the responder.
    pub fn set_address(&mut self, address: u64) {
        put(self.bytes_mut(), 0, address.to_be_bytes());
    }

    /// Sets the key of the memory there.
    pub fn set_key(&mut self, key: u32) {
        put(self.bytes_mut(), 8, key.to_be_bytes());
    }

    /// Sets the bytes of the whole message.
    pub fn set_length(&mut self, length: u32) {
        put(self.bytes_mut(), 12, length.to_be_bytes());
    }
}

/// A RETH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Virtual address at the responder.
    pub address: u64,
    /// Key of the memory there.
    pub key: u32,
    /// Bytes of the whole message.
    pub length: u32,
}

impl Repr {
    /// Reads a header.
    pub fn parse<T: AsRef<[u8]>>(view: &View<T>) -> Self {
        Repr { address: view.address(), key: view.key(), length: view.length() }
    }

    /// Writes it.
    pub fn emit<T: AsRef<[u8]> + AsMut<[u8]>>(&self, view: &mut View<T>) {
        view.set_address(self.address);
        view.set_key(self.key);
        view.set_length(self.length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_survives_being_written_and_read() {
        let repr = Repr { address: 0x7F00_0102_0304_0506, key: 0xDEAD_BEEF, length: 1 << 31 };
        let mut bytes = [0; LEN + 1];
        repr.emit(&mut View::new(&mut bytes[..]).unwrap());
        assert_eq!(bytes[..8], [0x7F, 0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(Repr::parse(&View::new(&bytes[..]).unwrap()), repr);
    }
}
