//! RoCEv2 packets as bytes.
//!
//! RDMA over converged Ethernet, version 2 (InfiniBand Architecture Specification, Annex A17), is the transport of
//! InfiniBand in UDP datagrams to port 4791. One file per header:
//!
//! | file | header |
//! |---|---|
//! | [`ethernet`] | Ethernet, and its frame check sequence |
//! | [`ipv4`], [`ipv6`] | IP; [`ecn`] has the byte that both share |
//! | [`udp`] | UDP |
//! | [`bth`] | base transport header: opcode, queue pair, PSN |
//! | [`reth`] | RDMA extended transport header: where a Write goes, what a Read wants |
//! | [`aeth`] | ACK extended transport header: ACK, NAK, receiver not ready |
//! | [`cnp`] | congestion notification packet |
//! | [`icrc`] | the invariant CRC at a packet's end; [`patch`] keeps it right when a header changes |
//! | [`pfc`] | pause frames of priority flow control (IEEE 802.1Qbb) |
//! | [`roce`] | all of a RoCEv2 frame at once |
//!
//! Every header comes in two forms. A *view* lies over bytes, has checked on creation that they are enough, and
//! reads and writes single fields in place: what a switch needs. A *repr* is a plain struct of what a header means, with
//! `parse` and `emit`: what an end needs. Nothing here panics, whatever the bytes; nothing allocates, and there is no
//! standard library.
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
//! assert_eq!(bth.psn(), Psn::new(77)); // the packet that is missing
//! # Ok::<(), wire::Error>(())
//! ```
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
    /// What the headers carry.
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

/// Why bytes are not what they should be, or do not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// There are fewer bytes than a header takes, or than it says that there are.
    Short {
        /// Where.
        layer: Layer,
        /// Bytes that it takes.
        needs: usize,
        /// Bytes that there are.
        has: usize,
    },
    /// A field has a value that it cannot have here.
    Field {
        /// Where.
        layer: Layer,
        /// The field, by its name in the standard.
        field: &'static str,
        /// What it says.
        value: u32,
    },
    /// A checksum is wrong.
    Checksum {
        /// Where.
        layer: Layer,
        /// What stands there.
        found: u32,
        /// What should.
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

/// Succeeds if there are at least so many bytes.
pub(crate) const fn enough(layer: Layer, needs: usize, has: usize) -> Result<(), Error> {
    if has < needs { Err(Error::Short { layer, needs, has }) } else { Ok(()) }
}
