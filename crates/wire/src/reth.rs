//! RDMA extended transport header (InfiniBand Architecture Specification, 9.3.3), which the first packet of a Write and a
//! Read request carry.

use crate::view::{get32, get64, put};

/// Length of the header, bytes.
pub const LEN: usize = 16;

view! {
    /// A view of a RETH.
    Reth
}

impl<T: AsRef<[u8]>> View<T> {
    /// Virtual address of the responder's memory.
    pub fn address(&self) -> u64 {
        get64(self.bytes(), 0)
    }

    /// Remote key of the memory.
    pub fn key(&self) -> u32 {
        get32(self.bytes(), 8)
    }

    /// Length of the whole message, bytes.
    pub fn length(&self) -> u32 {
        get32(self.bytes(), 12)
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> View<T> {
    /// Sets the virtual address of the responder's memory.
    pub fn set_address(&mut self, address: u64) {
        put(self.bytes_mut(), 0, address.to_be_bytes());
    }

    /// Sets the remote key of the memory.
    pub fn set_key(&mut self, key: u32) {
        put(self.bytes_mut(), 8, key.to_be_bytes());
    }

    /// Sets the length of the whole message, bytes.
    pub fn set_length(&mut self, length: u32) {
        put(self.bytes_mut(), 12, length.to_be_bytes());
    }
}

/// A RETH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Virtual address of the responder's memory.
    pub address: u64,
    /// Remote key of the memory.
    pub key: u32,
    /// Length of the whole message, bytes.
    pub length: u32,
}

impl Repr {
    /// Reads the header.
    pub fn parse<T: AsRef<[u8]>>(view: &View<T>) -> Self {
        Repr { address: view.address(), key: view.key(), length: view.length() }
    }

    /// Writes the header.
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
    fn a_header_is_read_as_it_was_written() {
        let repr = Repr { address: 0x7F00_0102_0304_0506, key: 0xDEAD_BEEF, length: 1 << 31 };
        let mut bytes = [0; LEN + 1];
        repr.emit(&mut View::new(&mut bytes[..]).unwrap());
        assert_eq!(bytes[..8], [0x7F, 0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(Repr::parse(&View::new(&bytes[..]).unwrap()), repr);
    }
}
