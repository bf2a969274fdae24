//! ACK extended transport header (InfiniBand Architecture Specification, 9.7.5.1 and 9.7.5.2).

use crate::view::{get24, put24};

/// Length of the header, bytes.
pub const LEN: usize = 4;

/// Reason for refusing a request (table 45).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Nak {
    /// A packet is missing. The BTH carries the expected PSN.
    PsnSequence,
    /// The request violates the protocol.
    InvalidRequest,
    /// The request may not access the memory.
    RemoteAccess,
    /// The responder cannot complete the request.
    RemoteOperation,
    /// The request violates the protocol of reliable datagrams.
    InvalidRdRequest,
    /// A reserved code, 5 bits.
    Reserved(u8),
}

/// Meaning of an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Syndrome {
    /// All packets up to the PSN have arrived. The 5-bit code grants credits.
    Ack(u8),
    /// The receiver is not ready. The 5-bit code is the time after which the sender retries.
    ReceiverNotReady(u8),
    /// All packets before the PSN have arrived, and the request is refused.
    Nak(Nak),
    /// A reserved syndrome.
    Reserved(u8),
}

impl Syndrome {
    /// ACK of a responder without credits: code 31 (9.7.7.2).
    pub const ACK: Syndrome = Syndrome::Ack(31);
    /// NAK for a missing packet.
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
    /// A view of an AETH.
    Aeth
}

impl<T: AsRef<[u8]>> View<T> {
    /// Meaning of the acknowledgement.
    pub fn syndrome(&self) -> Syndrome {
        self.bytes()[0].into()
    }

    /// Message sequence number: number of messages that the responder has completed, modulo 2^24.
    pub fn msn(&self) -> u32 {
        get24(self.bytes(), 1)
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> View<T> {
    /// Sets the meaning of the acknowledgement.
    pub fn set_syndrome(&mut self, syndrome: Syndrome) {
        self.bytes_mut()[0] = syndrome.into();
    }

    /// Sets the message sequence number to the lowest 24 bits of `msn`.
    pub fn set_msn(&mut self, msn: u32) {
        put24(self.bytes_mut(), 1, msn);
    }
}

/// An AETH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Meaning of the acknowledgement.
    pub syndrome: Syndrome,
    /// Number of messages that the responder has completed, modulo 2^24.
    pub msn: u32,
}

impl Repr {
    /// Reads the header.
    pub fn parse<T: AsRef<[u8]>>(view: &View<T>) -> Self {
        Repr { syndrome: view.syndrome(), msn: view.msn() }
    }

    /// Writes the header.
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
        // Linux's rdma_rxe sends these values.
        assert_eq!((u8::from(Syndrome::ACK), u8::from(Syndrome::PSN_SEQUENCE)), (0x1F, 0x60));
        assert_eq!(Syndrome::from(0x61), Syndrome::Nak(Nak::InvalidRequest));
        assert_eq!(Syndrome::from(0x2C), Syndrome::ReceiverNotReady(12));
    }

    #[test]
    fn a_header_is_read_as_it_was_written() {
        let repr = Repr { syndrome: Syndrome::PSN_SEQUENCE, msn: 0xFF_FFFF };
        let mut bytes = [0; LEN];
        repr.emit(&mut View::new(&mut bytes[..]).unwrap());
        assert_eq!((bytes, Repr::parse(&View::new(&bytes[..]).unwrap())), ([0x60, 0xFF, 0xFF, 0xFF], repr));
    }
}
