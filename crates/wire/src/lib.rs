//! RoCEv2 packets as bytes.
//!
//! RDMA over converged Ethernet, version 2 (InfiniBand Architecture Specification, Annex A17), carries InfiniBand's transport
//! in UDP datagrams to port 4791. Each header has one file:
//!
//! | file | header |
//! |---|---|
//! | [`ethernet`] | Ethernet, and its frame check sequence |
//! | [`ipv4`], [`ipv6`] | IP; [`ecn`] is the byte that both versions share |
//! | [`udp`] | UDP |
//! | [`bth`] | base transport header: opcode, queue pair, PSN |
//! | [`reth`] | RDMA extended transport header: memory of a Write or a Read |
//! | [`aeth`] | ACK extended transport header: ACK, NAK, receiver not ready |
//! | [`cnp`] | congestion notification packet |
//! | [`icrc`] | the invariant CRC at the end of a packet; [`patch`] updates it when a header changes |
//! | [`pfc`] | pause frames of priority flow control (IEEE 802.1Qbb) |
//! | [`roce`] | a whole RoCEv2 frame |
//!
//! Every header has two forms. A *view* wraps bytes and reads and writes single fields in place, as a switch does; its
//! constructor checks that there are enough bytes. A *repr* is a plain struct of all fields with `parse` and `emit`, as an
//! end host needs it. No input makes this crate panic. The crate allocates nothing and does without the standard library.
//!
//! # Example: a NIC sends a NAK, and a switch reads it
//!
//! ```
//! use wire::{Psn, aeth, bth, ecn, ethernet, icrc, ipv4, roce, udp};
//!
//! let nak = roce::Repr {
//!     destination: ethernet::Address::local(1),
//!     source: ethernet::Address::local(2),
//!     ip: roce::Ip::V4(ipv4::Repr {
//!         traffic_class: ecn::TrafficClass::new(26, ecn::Ecn::Ect0),
//!         identification: 0,
//!         dont_fragment: true,
//!         time_to_live: 64,
//!         protocol: ipv4::UDP,
//!         source: [10, 0, 0, 2].into(),
//!         destination: [10, 0, 0, 1].into(),
//!         payload_len: 0,
//!     }),
//!     source_port: udp::FIRST_DYNAMIC,
//!     bth: bth::Repr::new(bth::Opcode::Acknowledge, bth::Qpn::new(0x11), Psn::new(77)),
//!     extension: roce::Extension::Aeth(aeth::Repr { syndrome: aeth::Syndrome::PSN_SEQUENCE, msn: 3 }),
//! };
//! let mut frame = [0; 128];
//! let len = nak.emit(&[], &mut frame)?;
//!
//! let frame = ethernet::View::new(&frame[..len])?;
//! icrc::check(frame.payload())?;
//! let ip = ipv4::View::new(frame.payload())?;
//! let datagram = udp::View::new(ip.payload())?;
//! let bth = bth::View::new(datagram.payload())?;
//! let aeth = aeth::View::new(bth.payload())?;
//! assert_eq!(aeth.syndrome(), aeth::Syndrome::Nak(aeth::Nak::PsnSequence));
//! assert_eq!(bth.psn(), Psn::new(77)); // the missing packet
//! # Ok::<(), wire::Error>(())
//! ```
#![forbid(unsafe_code)]
#![no_std]

#[cfg(test)]
extern crate std;

#[macro_use]
mod view;

pub mod aeth;
pub mod bth;
pub mod cnp;
pub mod ecn;
pub mod ethernet;
pub mod icrc;
pub mod ipv4;
pub mod ipv6;
pub mod patch;
pub mod pfc;
pub mod reth;
pub mod roce;
pub mod udp;

pub use themis::Psn;

use core::fmt;

/// A header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layer {
    /// Ethernet.
    Ethernet,
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
    /// UDP.
    Udp,
    /// Base transport header.
    Bth,
    /// RDMA extended transport header.
    Reth,
    /// ACK extended transport header.
    Aeth,
    /// Payload of a congestion notification packet.
    Cnp,
    /// Invariant CRC.
    Icrc,
    /// Priority flow control.
    Pfc,
    /// Bytes behind all headers.
    Payload,
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Layer::Ethernet => "Ethernet",
            Layer::Ipv4 => "IPv4",
            Layer::Ipv6 => "IPv6",
            Layer::Udp => "UDP",
            Layer::Bth => "BTH",
            Layer::Reth => "RETH",
            Layer::Aeth => "AETH",
            Layer::Cnp => "CNP",
            Layer::Icrc => "ICRC",
            Layer::Pfc => "PFC",
            Layer::Payload => "payload",
        })
    }
}

/// Why bytes cannot be read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// There are fewer bytes than a header has, or fewer than its length field demands.
    Short {
        /// The header.
        layer: Layer,
        /// Required number of bytes.
        needs: usize,
        /// Actual number of bytes.
        has: usize,
    },
    /// A field has a value that is not allowed here.
    Field {
        /// The header.
        layer: Layer,
        /// The field, by its name in the standard.
        field: &'static str,
        /// Value of the field.
        value: u32,
    },
    /// A checksum is wrong.
    Checksum {
        /// The header.
        layer: Layer,
        /// Checksum in the packet.
        found: u32,
        /// Correct checksum.
        right: u32,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Short { layer, needs, has } => {
                write!(f, "{layer}: {needs} bytes are needed, {has} are there")
            }
            Error::Field { layer, field, value } => write!(f, "{layer}: {field} cannot be {value:#x} here"),
            Error::Checksum { layer, found, right } => {
                write!(f, "{layer}: the checksum is {found:#x} and should be {right:#x}")
            }
        }
    }
}

impl core::error::Error for Error {}

/// Fails if there are fewer than `needs` bytes.
pub(crate) const fn enough(layer: Layer, needs: usize, has: usize) -> Result<(), Error> {
    if has < needs { Err(Error::Short { layer, needs, has }) } else { Ok(()) }
}
