//! Base transport header (InfiniBand Architecture Specification, 9.2).

use crate::view::{get16, get24, put, put_bits, put24};
use crate::{Error, Layer, Psn};
use core::fmt;

/// Length of the header, bytes.
pub const LEN: usize = 12;
/// Partition key of a full member of the default partition (10.9.1.2).
pub const DEFAULT_PARTITION: u16 = 0xFFFF;

macro_rules! opcodes {
    ($($code:literal $name:ident $doc:literal,)*) => {
        /// Type of a packet. Opcodes of reliable connections are below 0x20 (table 38); the CNP belongs to RoCEv2 (A17.9.3).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Opcode {
            $(#[doc = $doc] $name,)*
            /// An opcode without a name here.
            Other(u8),
        }

        impl From<u8> for Opcode {
            fn from(code: u8) -> Self {
                match code {
                    $($code => Opcode::$name,)*
                    other => Opcode::Other(other),
                }
            }
        }

        impl From<Opcode> for u8 {
            fn from(opcode: Opcode) -> u8 {
                match opcode {
                    $(Opcode::$name => $code,)*
                    Opcode::Other(code) => code,
                }
            }
        }
    };
}

opcodes! {
    0x00 SendFirst "First packet of a Send.",
    0x01 SendMiddle "Packet of a Send that is neither first nor last.",
    0x02 SendLast "Last packet of a Send.",
    0x04 SendOnly "Only packet of a Send.",
    0x06 WriteFirst "First packet of an RDMA Write.",
    0x07 WriteMiddle "Packet of an RDMA Write that is neither first nor last.",
    0x08 WriteLast "Last packet of an RDMA Write.",
    0x0A WriteOnly "Only packet of an RDMA Write.",
    0x0C ReadRequest "RDMA Read request.",
    0x0D ReadResponseFirst "First packet of an RDMA Read response.",
    0x0E ReadResponseMiddle "Packet of an RDMA Read response that is neither first nor last.",
    0x0F ReadResponseLast "Last packet of an RDMA Read response.",
    0x10 ReadResponseOnly "Only packet of an RDMA Read response.",
    0x11 Acknowledge "ACK or NAK; the AETH tells which.",
    0x81 Cnp "Congestion notification packet.",
}

impl Opcode {
    /// The Write opcode of a packet by its position in its message.
    pub const fn write(first: bool, last: bool) -> Self {
        match (first, last) {
            (true, true) => Opcode::WriteOnly,
            (true, false) => Opcode::WriteFirst,
            (false, false) => Opcode::WriteMiddle,
            (false, true) => Opcode::WriteLast,
        }
    }

    /// True if a RETH follows the BTH.
    pub const fn has_reth(self) -> bool {
        matches!(self, Opcode::WriteFirst | Opcode::WriteOnly | Opcode::ReadRequest)
    }

    /// True if an AETH follows the BTH.
    pub const fn has_aeth(self) -> bool {
        matches!(
            self,
            Opcode::Acknowledge
                | Opcode::ReadResponseFirst
                | Opcode::ReadResponseLast
                | Opcode::ReadResponseOnly
        )
    }
}

/// Number of a queue pair in its NIC, 24 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Qpn(u32);

impl Qpn {
    /// The queue pair number that the lowest 24 bits of `number` form.
    pub const fn new(number: u32) -> Self {
        Qpn(number & 0xFF_FFFF)
    }

    /// The number as an integer.
    pub const fn value(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Qpn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#08x}", self.0)
    }
}

view! {
    /// A view of a BTH.
    Bth
}

const SOLICITED: u8 = 1 << 7;
const MIGRATED: u8 = 1 << 6;
const PAD: u8 = 0b11 << 4;
const VERSION: u8 = 0xF;
const FECN: u8 = 1 << 7;
const BECN: u8 = 1 << 6;
const ACK_REQUEST: u8 = 1 << 7;

impl<T: AsRef<[u8]>> View<T> {
    /// Type of the packet.
    pub fn opcode(&self) -> Opcode {
        self.bytes()[0].into()
    }

    /// SE: the sender requests an event at the receiver.
    pub fn solicited(&self) -> bool {
        self.bytes()[1] & SOLICITED != 0
    }

    /// M: the connection has migrated to its alternate path.
    pub fn migrated(&self) -> bool {
        self.bytes()[1] & MIGRATED != 0
    }

    /// Number of bytes that pad the payload to a multiple of four.
    pub fn pad(&self) -> u8 {
        (self.bytes()[1] & PAD) >> 4
    }

    /// Version of the transport header, which is 0.
    pub fn version(&self) -> u8 {
        self.bytes()[1] & VERSION
    }

    /// Partition key.
    pub fn partition(&self) -> u16 {
        get16(self.bytes(), 2)
    }

    /// Forward explicit congestion notification.
    pub fn fecn(&self) -> bool {
        self.bytes()[4] & FECN != 0
    }

    /// Backward explicit congestion notification, which is set in a CNP.
    pub fn becn(&self) -> bool {
        self.bytes()[4] & BECN != 0
    }

    /// Queue pair at the destination.
    pub fn destination_qp(&self) -> Qpn {
        Qpn::new(get24(self.bytes(), 5))
    }

    /// A: the sender requests an acknowledgement.
    pub fn ack_request(&self) -> bool {
        self.bytes()[8] & ACK_REQUEST != 0
    }

    /// Packet sequence number.
    pub fn psn(&self) -> Psn {
        Psn::new(get24(self.bytes(), 9))
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> View<T> {
    /// Sets the type of the packet.
    pub fn set_opcode(&mut self, opcode: Opcode) {
        self.bytes_mut()[0] = opcode.into();
    }

    /// Sets the number of padding bytes to the lowest two bits of `pad`.
    pub fn set_pad(&mut self, pad: u8) {
        put_bits(self.bytes_mut(), 1, PAD, pad << 4);
    }

    /// Sets FECN. The ICRC does not cover it.
    pub fn set_fecn(&mut self, on: bool) {
        put_bits(self.bytes_mut(), 4, FECN, if on { FECN } else { 0 });
    }

    /// Sets BECN. The ICRC does not cover it.
    pub fn set_becn(&mut self, on: bool) {
        put_bits(self.bytes_mut(), 4, BECN, if on { BECN } else { 0 });
    }

    /// Sets the queue pair at the destination.
    pub fn set_destination_qp(&mut self, qp: Qpn) {
        put24(self.bytes_mut(), 5, qp.value());
    }

    /// Sets whether the sender requests an acknowledgement.
    pub fn set_ack_request(&mut self, on: bool) {
        put_bits(self.bytes_mut(), 8, ACK_REQUEST, if on { ACK_REQUEST } else { 0 });
    }

    /// Sets the packet sequence number.
    pub fn set_psn(&mut self, psn: Psn) {
        put24(self.bytes_mut(), 9, psn.value());
    }
}

/// A BTH. Reserved bits and the version are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Type of the packet.
    pub opcode: Opcode,
    /// True if the sender requests an event at the receiver.
    pub solicited: bool,
    /// True if the connection has migrated to its alternate path.
    pub migrated: bool,
    /// Number of bytes that pad the payload to a multiple of four, 0 to 3.
    pub pad: u8,
    /// Partition key.
    pub partition: u16,
    /// Forward explicit congestion notification.
    pub fecn: bool,
    /// Backward explicit congestion notification.
    pub becn: bool,
    /// Queue pair at the destination.
    pub destination_qp: Qpn,
    /// True if the sender requests an acknowledgement.
    pub ack_request: bool,
    /// Packet sequence number.
    pub psn: Psn,
}

impl Repr {
    /// A header with these fields in the default partition, and no flag set.
    pub const fn new(opcode: Opcode, destination_qp: Qpn, psn: Psn) -> Self {
        Repr {
            opcode,
            solicited: false,
            migrated: false,
            pad: 0,
            partition: DEFAULT_PARTITION,
            fecn: false,
            becn: false,
            destination_qp,
            ack_request: false,
            psn,
        }
    }

    /// Reads the header.
    ///
    /// # Errors
    /// The version is not 0.
    pub fn parse<T: AsRef<[u8]>>(view: &View<T>) -> Result<Self, Error> {
        if view.version() != 0 {
            return Err(Error::Field { layer: Layer::Bth, field: "TVer", value: view.version().into() });
        }
        Ok(Repr {
            opcode: view.opcode(),
            solicited: view.solicited(),
            migrated: view.migrated(),
            pad: view.pad(),
            partition: view.partition(),
            fecn: view.fecn(),
            becn: view.becn(),
            destination_qp: view.destination_qp(),
            ack_request: view.ack_request(),
            psn: view.psn(),
        })
    }

    /// Writes the header.
    pub fn emit<T: AsRef<[u8]> + AsMut<[u8]>>(&self, view: &mut View<T>) {
        view.bytes_mut()[..LEN].fill(0);
        view.set_opcode(self.opcode);
        put_bits(view.bytes_mut(), 1, SOLICITED, if self.solicited { SOLICITED } else { 0 });
        put_bits(view.bytes_mut(), 1, MIGRATED, if self.migrated { MIGRATED } else { 0 });
        view.set_pad(self.pad);
        put(view.bytes_mut(), 2, self.partition.to_be_bytes());
        view.set_fecn(self.fecn);
        view.set_becn(self.becn);
        view.set_destination_qp(self.destination_qp);
        view.set_ack_request(self.ack_request);
        view.set_psn(self.psn);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_it_was_written() {
        let plain = Repr::new(Opcode::WriteFirst, Qpn::new(0x12_3456), Psn::new(0xFF_FFFF));
        let full = Repr {
            solicited: true,
            migrated: true,
            pad: 3,
            fecn: true,
            becn: true,
            ack_request: true,
            partition: 1,
            ..plain
        };
        for repr in [plain, full] {
            let mut bytes = [0x55; LEN];
            repr.emit(&mut View::new(&mut bytes[..]).unwrap());
            assert_eq!(Repr::parse(&View::new(&bytes[..]).unwrap()), Ok(repr));
        }
        let mut bytes = [0; LEN];
        bytes[1] = 1;
        let parsed = Repr::parse(&View::new(&bytes[..]).unwrap());
        assert_eq!(parsed, Err(Error::Field { layer: Layer::Bth, field: "TVer", value: 1 }));
    }

    #[test]
    fn a_setter_changes_only_its_own_bits() {
        for fill in [0x00, 0xFF] {
            let mut bytes = [fill; LEN];
            let mut view = View::new(&mut bytes[..]).unwrap();
            view.set_psn(Psn::new(0x01_0203));
            view.set_ack_request(fill == 0);
            view.set_becn(fill == 0);
            view.set_pad(2);
            view.set_destination_qp(Qpn::new(9));
            assert_eq!((view.psn().value(), view.destination_qp().value(), view.pad()), (0x01_0203, 9, 2));
            assert_eq!((view.ack_request(), view.becn(), view.fecn()), (fill == 0, fill == 0, fill != 0));
            let reserved = (view.bytes()[4] & 0x3F, view.bytes()[8] & 0x7F, view.version());
            assert_eq!(reserved, (fill & 0x3F, fill & 0x7F, fill & 0xF));
        }
    }

    #[test]
    fn every_opcode_keeps_its_number() {
        for code in 0..=255u8 {
            assert_eq!(u8::from(Opcode::from(code)), code);
        }
        let place = |first, last| u8::from(Opcode::write(first, last));
        let places = [place(true, false), place(false, false), place(false, true), place(true, true)];
        assert_eq!(places, [0x06, 0x07, 0x08, 0x0A]);
        assert!(Opcode::WriteOnly.has_reth() && !Opcode::WriteLast.has_reth());
        assert!(Opcode::Acknowledge.has_aeth() && !Opcode::ReadResponseMiddle.has_aeth());
    }
}
