//! Congestion notification packet (InfiniBand Architecture Specification, A17.9.3): a BTH with opcode 0x81 and BECN set,
//! and 16 reserved bytes.

use crate::Psn;
use crate::bth::{self, Opcode, Qpn};

/// Number of reserved bytes after the BTH.
pub const LEN: usize = 16;

view! {
    /// A view of the reserved bytes of a CNP.
    Cnp
}

impl<T: AsRef<[u8]>> View<T> {
    /// True if all reserved bytes are 0, as senders set them.
    pub fn is_zero(&self) -> bool {
        self.bytes()[..LEN].iter().all(|&byte| byte == 0)
    }
}

/// The reserved bytes of a CNP, which carry no information.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repr;

impl Repr {
    /// The BTH of a CNP to the queue pair whose data was marked. Its PSN is 0.
    pub const fn bth(to: Qpn) -> bth::Repr {
        bth::Repr { becn: true, ..bth::Repr::new(Opcode::Cnp, to, Psn::new(0)) }
    }

    /// Reads the reserved bytes, which receivers ignore.
    pub fn parse<T: AsRef<[u8]>>(_: &View<T>) -> Self {
        Repr
    }

    /// Writes the reserved bytes.
    pub fn emit<T: AsRef<[u8]> + AsMut<[u8]>>(&self, view: &mut View<T>) {
        view.bytes_mut()[..LEN].fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cnp_is_a_bth_with_becn_and_sixteen_zeros() {
        let mut bytes = [1; LEN];
        assert!(!View::new(&bytes[..]).unwrap().is_zero());
        Repr.emit(&mut View::new(&mut bytes[..]).unwrap());
        assert!(View::new(&bytes[..]).unwrap().is_zero());
        assert!(View::new(&bytes[..15]).is_err());
        let bth = Repr::bth(Qpn::new(5));
        assert!(bth.becn && !bth.fecn && !bth.ack_request);
        assert_eq!((u8::from(bth.opcode), bth.psn.value()), (0x81, 0));
    }
}
