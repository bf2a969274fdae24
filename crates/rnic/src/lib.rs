//! What an RDMA NIC does with a reliable connection (queue pair): which packet to send next, what to answer
//! to one that arrives, when to give up waiting, and how fast to go.
//!
//! Everything here is a pure state machine behind a trait of [`model`]: time is an argument, and an answer is
//! a return value. This crate sends no packet, reads no clock, and knows neither ports nor how a host shares
//! its link among queue pairs. Only [`Nics`] draws, by key: which timer a queue pair has.
//!
//! | file | what it does |
//! |---|---|
//! | [`transport`] | loss recovery, one file per mode: how its sender and its receiver differ from others |
//! | `ends` | the kinds of sender and receiver that the modes choose from |
//! | [`sender`], [`receiver`] | what most have in common |
//! | [`in_order`], [`under_way`] | the receiver of go-back-N, and the sender of MP-RDMA |
//! | [`scoreboard`], [`selective`] | what those have in common whose ends speak of single packets |
//! | [`congestion`] | rate and window, one file per control |
//! | [`reaction`] | what a NACK or a timeout does to the rate, for every control |
//! | [`timeout`] | the retransmission timer and its presets |
//! | [`window`] | a limit on what is outstanding, for every control |
//! | [`notification`] | when a receiver reports marks (CNP) |
//! | `limits` | values that a setting may not have |
//! | `path` | the path of a queue pair |
//! | `facts` | what every mode and every control declares about itself |
//! | [`config`] | the `[nic]` table of a scenario |
//! | [`Nic`] | makes the parts of queue pairs; what all have in common exists once |
//! | [`Nics`] | which NIC and which path each queue pair of a run has |
//!
//! To add a recovery mode or a control: one file in its folder, and its line in the list below. What others must know of
//! it is in its `facts`.

mod ack;
mod bitmap;
mod ends;
mod facts;
mod family;
mod limits;
mod nic;
mod nics;
mod path;

pub mod config;
pub mod in_order;
pub mod notification;
pub mod reaction;
pub mod receiver;
pub mod scoreboard;
pub mod selective;
pub mod sender;
pub mod timeout;
pub mod under_way;
pub mod window;

#[cfg(test)]
mod tests;

pub use config::{NicConfig, OwnNic};
pub use ends::{AnyReceiver, AnySender};
pub use facts::{Control, ControlFacts, Evidence, OnNack, TransportFacts};
pub use limits::Invalid;
pub use nic::Nic;
pub use nics::Nics;
pub use path::Path;
pub use reaction::{Reacting, Reaction};

use facts::Recovery as _;

family::transports! {
    /// Go-back-N: the receiver drops what comes out of order, the sender starts again from the gap
    /// (ConnectX-4 and -5).
    go_back_n: GoBackN = "go-back-n",
    /// Selective repeat as NICs do it: out-of-order packets are kept, one NACK per ePSN brings one packet back
    /// (ConnectX-6 and -7, BlueField-3).
    nic_sr: NicSr = "nic-sr",
    /// Selective repeat whose NACKs say which packets are missing (DLBF's NIC).
    sr_sack: SrSack = "sr-sack",
    /// IRN: every packet that comes out of order is NACKed, and the sender keeps a scoreboard.
    irn: Irn = "irn",
    /// MP-RDMA: every packet is acknowledged by itself, and what the receiver's small bitmap cannot note is NACKed; the
    /// sender then goes once more through what is not acknowledged.
    mp_rdma: MpRdma = "mp-rdma",
    /// Reordering costs nothing, however far: out-of-order packets are kept and never NACKed; losses wait for the
    /// timer, one packet each.
    ideal: Ideal = "ideal",
    /// Adaptive-routing mode: out-of-order packets are placed within a bounded window and never NACKed; the timer
    /// alone finds what is lost (NICs that accept packets in any order).
    adaptive_routing: AdaptiveRouting = "adaptive-routing",
}

family::congestions! {
    /// DCQCN, the rate control of RoCEv2, in the variant of Mellanox NICs.
    dcqcn: Dcqcn = "dcqcn",
    /// HPCC: switches tell how busy their links are, and the window follows the busiest one.
    hpcc: Hpcc = "hpcc",
    /// Swift: a window that keeps round trips near a target.
    swift: Swift = "swift",
    /// MP-RDMA: a window that every ACK opens or, if it carries a mark, closes a little.
    mp_rdma: MpRdma = "mp-rdma",
    /// No control: line rate always.
    none: Unlimited = "none",
}
