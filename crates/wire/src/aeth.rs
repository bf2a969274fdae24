//! ACK extended transport header (InfiniBand Architecture Specification, 9.7.5.1 and 9.7.5.2).

use crate::view::{get24, put24};

/// Length of the header, bytes.
pub const LEN: usize = 4;

/// Why a request is refused (table 45).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Nak {
    /// A packet is missing: the BTH names the PSN that is expected.
    PsnSequence,
    /// The request is against the rules.
    InvalidRequest,
    /// It asks for memory that it may not touch.
    RemoteAccess,
    /// The responder cannot do it.
    RemoteOperation,
    /// The request is against the rules of reliable datagrams.
    InvalidRdRequest,
    /// A code that has no meaning yet, 5 bits.
    Reserved(u8),
}

/// What an acknowledgement says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Syndrome {
    /// All up to the packet's PSN has arrived. The responder grants credits by this code, 5 bits.
    Ack(u8),
    /// The receiver is not ready: try again after the time of this code, 5 bits.
    ReceiverNotReady(u8),
    /// All before the packet's PSN has arrived, and the request is refused.
    Nak(Nak),
    /// A syndrome that has no meaning yet.
    Reserved(u8),
}

impl Syndrome {
    /// ACK of a responder that grants no credits: code 31 (9.7.7.2).
    pub const ACK: Syndrome = Syndrome::Ack(31);
    /// NAK of a responder that misses a packet.
    pub const PSN_SEQUENCE: Syndrome = Syndrome::Nak(Nak::PsnSequence);
}

const CODE: u8 = 0x1F;

impl From<u8> for Syndrome {
    fn from(byte: u8) -> Self {
        let code = byte & CODE;
        match byte >> 5 {
            0b000 => Syndrome::Ack(code),
            0b001 => Syndrome::ReceiverNotReady(code),
            0b011 => Syndrome::Nak(match code {
                0 => Nak::PsnSequence,
                1 => Nak::InvalidRequest,
                2 => Nak::RemoteAccess,
                3 => Nak::RemoteOperation,
                4 => Nak::InvalidRdRequest,
                other => Nak::Reserved(other),
            }),
            _ => Syndrome::Reserved(byte),
        }
    }
}

impl From<Syndrome> for u8 {
    fn from(syndrome: Syndrome) -> u8 {
        match syndrome {
            Syndrome::Ack(credits) => credits & CODE,
            Syndrome::ReceiverNotReady(timer) => 0b001 << 5 | timer & CODE,
            Syndrome::Nak(nak) => {
                0b011 << 5
                    | match nak {
                        Nak::PsnSequence => 0,
                        Nak::InvalidRequest => 1,
                        Nak::RemoteAccess => 2,
                        Nak::RemoteOperation => 3,
                        Nak::InvalidRdRequest => 4,
                        Nak::Reserved(code) => code & CODE,
                    }
            }
            Syndrome::Reserved(byte) => byte,
        }
    }
}

view! {
    /// An AETH over bytes.
    Aeth
}

impl<T: AsRef<[u8]>> View<T> {
    /// What it says.
    pub fn syndrome(&self) -> Syndrome {
        self.bytes()[0].into()
    }

    /// Message sequence number: how many messages the responder has completed, modulo 2^24.
    pub fn msn(&self) -> u32 {
        get24(self.bytes(), 1)
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> View<T> {
    /// Sets what it says.
    pub fn set_syndrome(&mut self, syndrome: Syndrome) {
        self.bytes_mut()[0] = syndrome.into();
    }

    /// Sets the message sequence number; bits above the 24 are dropped.
    pub fn set_msn(&mut self, msn: u32) {
        put24(self.bytes_mut(), 1, msn);
    }
}

/// An AETH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// What it says.
    pub syndrome: Syndrome,
    /// How many messages the responder has completed, modulo 2^24.
    pub msn: u32,
}

impl Repr {
    /// Reads a header.
    pub fn parse<T: AsRef<[u8]>>(view: &View<T>) -> Self {
        Repr { syndrome: view.syndrome(), msn: view.msn() }
    }

    /// Writes it.
    pub fn emit<T: AsRef<[u8]> + AsMut<[u8]>>(&self, view: &mut View<T>) {
        view.set_syndrome(self.syndrome);
        view.set_msn(self.msn);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_syndrome_keeps_its_number() {
        for byte in 0..=255u8 {
            assert_eq!(u8::from(Syndrome::from(byte)), byte);
        }
        // As Linux's rdma_rxe sends them.
        assert_eq!((u8::from(Syndrome::ACK), u8::from(Syndrome::PSN_SEQUENCE)), (0x1F, 0x60));
        assert_eq!(Syndrome::from(0x61), Syndrome::Nak(Nak::InvalidRequest));
        assert_eq!(Syndrome::from(0x2C), Syndrome::ReceiverNotReady(12));
    }

    #[test]
    fn a_header_survives_being_written_and_read() {
        let repr = Repr { syndrome: Syndrome::PSN_SEQUENCE, msn: 0xFF_FFFF };
        let mut bytes = [0; LEN];
        repr.emit(&mut View::new(&mut bytes[..]).unwrap());
        assert_eq!((bytes, Repr::parse(&View::new(&bytes[..]).unwrap())), ([0x60, 0xFF, 0xFF, 0xFF], repr));
    }
}
