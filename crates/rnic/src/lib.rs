//! An RDMA NIC with reliable connections (queue pairs). It decides which packet to send next, how to answer an arriving
//! packet, when to retransmit, and how fast to send.
//!
//! Everything here is a pure state machine behind a trait of [`model`]: time is an argument, and an answer is a return
//! value. This crate sends no packet, reads no clock, and knows neither ports nor the way in which a host shares its link
//! among queue pairs. Only [`Nics`] draws, by key: the timer of a queue pair.
//!
//! | file | content |
//! |---|---|
//! | [`transport`] | loss recovery, one file per mode: the differences between senders and receivers |
//! | `ends` | the kinds of sender and receiver that the modes choose from |
//! | [`psn`] | the ends of modes with cumulative PSNs alone |
//! | [`selective`] | the ends of modes that name single packets |
//! | [`sack`] | the ends of modes with maps of arrived packets |
//! | [`counted`] | the ends of modes that count the packets of each message |
//! | [`congestion`] | rate and window, one file per control |
//! | [`pacer`] | the credit of a receiving host |
//! | [`reaction`] | the effect of a NACK or a timeout on the rate, for every control |
//! | [`timeout`] | the retransmission timer and its presets |
//! | [`window`] | a limit on outstanding packets, for every control |
//! | [`vendor`] | NVIDIA's names of settings |
//! | [`notification`] | reports of marks by receivers (CNP) |
//! | `classes` | classes of queue pairs that take turns |
//! | `messages` | limits on the messages that a NIC begins |
//! | `receive` | PCIe, and the queue of a NIC for arriving data |
//! | `limits` | values that a setting may not have |
//! | `path` | the path of a queue pair |
//! | `paced` | a rate between two bounds, for controls that pace packets |
//! | `facts` | declarations of every mode and every control for other code |
//! | [`config`] | the `[nic]` table of a scenario |
//! | `contract` | what an engine expects of every mode and every control, as tests |
//! | [`own`] | parts that a program adds |
//! | [`Nic`] | builds the parts of queue pairs; shared settings exist once |
//! | [`Nics`] | the NIC and the path of each queue pair of a run |
//!
//! To add a recovery mode or a control, write one file in its folder and one line in the list below. Its `facts` declare
//! what other code must know.

#![forbid(unsafe_code)]

mod ack;
mod bitmap;
mod classes;
mod ends;
mod facts;
mod family;
mod ingress;
mod limits;
mod messages;
mod nic;
mod nics;
mod or_off;
mod paced;
mod path;
mod receive;
mod retries;
mod verb;

pub mod config;
#[cfg(any(test, feature = "contract"))]
pub mod contract;
pub mod counted;
pub mod notification;
pub mod own;
pub mod pacer;
pub mod psn;
pub mod reaction;
pub mod sack;
pub mod selective;
pub mod timeout;
pub mod vendor;
pub mod window;

#[cfg(test)]
mod tests;

pub use ack::Answers;
pub use classes::NicClass;
pub use config::{NicConfig, OwnNic};
pub use ends::{AnyReceiver, AnySender, SackingReceiver, SackingSender};
pub use facts::{
    Acks, Advised, Control, ControlFacts, CutReport, Digested, Due, Evidence, Golden, Grants, OnNack,
    SilentLoss, TransportFacts, Unit, Variation,
};
pub use ingress::Ingress;
pub use messages::Messages;
pub use nic::Nic;
pub use nics::Nics;
pub use or_off::OrOff;
pub use path::Path;
pub use reaction::{Reacting, Reaction};
pub use receive::{Pcie, Receive};
pub use retries::{NCCL, OnRetryExceeded};
pub use timeout::Timing;
pub use verb::Verb;

use facts::Recovery;

family::transports! {
    /// Go-back-N: the receiver drops packets that arrive out of order, and the sender restarts from the gap
    /// (ConnectX-4 and -5).
    go_back_n: GoBackN = "go-back-n",
    /// Selective repeat of commodity NICs: the receiver keeps out-of-order packets, and one NACK per ePSN brings one
    /// packet back (ConnectX-6 and -7, BlueField-3).
    nic_sr: NicSr = "nic-sr",
    /// Selective repeat with NACKs that name the missing packets (DLBF's NIC).
    sr_sack: SrSack = "sr-sack",
    /// IRN: the receiver NACKs every packet that arrives out of order, and the sender keeps a scoreboard.
    irn: Irn = "irn",
    /// MP-RDMA: the receiver acknowledges every packet by itself and NACKs packets beyond its small bitmap; the sender
    /// then goes once through all unacknowledged packets.
    mp_rdma: MpRdma = "mp-rdma",
    /// Free reordering of any extent: the receiver keeps out-of-order packets and never NACKs; lost packets wait for the
    /// timer, one packet per timeout.
    ideal: Ideal = "ideal",
    /// Adaptive-routing mode: the receiver places out-of-order packets within a bounded window and never NACKs; the timer
    /// alone finds lost packets (NICs that accept packets in any order).
    adaptive_routing: AdaptiveRouting = "adaptive-routing",
    /// Ultra Ethernet's unordered delivery: ACKs with maps of arrived packets, and a NACK for every packet that a switch has
    /// cut.
    uec: Uec = "uec",
    /// DCP: the receiver counts the packets of each message and sends the headers of trimmed packets back to their sender.
    dcp: Dcp = "dcp",
    /// MRC: as `uec`; besides, a packet is lost if it is old and a later one has been acknowledged.
    mrc: Mrc = "mrc",
    /// Falcon: a packet is lost if a later one has arrived, and a round trip and a quarter have passed; silence is probed.
    falcon: Falcon = "falcon",
}

family::congestions! {
    /// DCQCN, the rate control of RoCEv2, as NVIDIA's NICs have it: a timer and a byte counter raise rates.
    dcqcn: Dcqcn = "dcqcn",
    /// DCQCN as the HPCC family of ns-3 simulators has it: a timer alone raises rates.
    dcqcn_hpcc: DcqcnHpcc = "dcqcn-hpcc",
    /// Annulus: DCQCN, and a second rate for notifications from switches near the source; the smaller one counts.
    annulus: Annulus = "annulus",
    /// DCTCP as a rate control: the share of marked packets decides the depth of a cut.
    dctcp: Dctcp = "dctcp",
    /// HPCC: switches report the load of their links, and the window follows the busiest link.
    hpcc: Hpcc = "hpcc",
    /// HPCC-PINT: HPCC with one number per packet, the code of the busiest link's load.
    pint: Pint = "pint",
    /// PowerTCP: switches report the load of their links, and the window follows the power of the busiest link.
    powertcp: PowerTcp = "powertcp",
    /// TIMELY: a rate that follows the slope of round-trip times.
    timely: Timely = "timely",
    /// Swift: a window that keeps round trips near a target.
    swift: Swift = "swift",
    /// MP-RDMA: every ACK opens the window a little or, if it carries a mark, closes it a little.
    mp_rdma: MpRdma = "mp-rdma",
    /// NSCC of Ultra Ethernet: a window of bytes in flight, moved by marks and queueing delay.
    nscc: Nscc = "nscc",
    /// RCCC of Ultra Ethernet: the receiver grants credit to its senders in turn.
    rccc: Rccc = "rccc",
    /// EQDS: a first window, then credit of the receiver, a packet at a time.
    eqds: Eqds = "eqds",
    /// NDP: a first window, then a packet for each pull of the receiver, which pulls once for each packet that arrives.
    ndp: Ndp = "ndp",
    /// STrack: a window of bytes in flight, moved by the average queueing delay.
    strack: Strack = "strack",
    /// SMaRTT: the ancestor of `nscc`, whose window moves with every reply.
    smartt: Smartt = "smartt",
    /// No control: line rate at all times.
    none: Unlimited = "none",
}
