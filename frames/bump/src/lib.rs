//! A bump in the wire: the reliability of a commodity RDMA NIC in front of a host that lacks it.
//!
//! Linux's `rdma_rxe` is a complete verbs device, but its receiver drops packets that arrive out of order. A [`Bump`] stands
//! between such a host and the network. To the network it behaves like a NIC of the chosen kind: it keeps packets that
//! arrive out of order, NACKs, retransmits, reacts to CNPs and limits its rate. To the host it is an in-order network. The
//! kinds of recovery and of congestion control are those of the crate [`rnic`], driven by real frames. Applications, verbs
//! and wire format are real; only the reliability is ours.
//!
//! | the bump | the host |
//! |---|---|
//! | numbers, keeps, NACKs and orders arriving requests | executes them, and sends ACKs and responses |
//! | keeps copies of departing requests, and retransmits after NACKs | retransmits after its own timeout |
//! | turns a NACK(e) that it hears into ACK(e - 1) | learns that all before e has arrived |
//! | takes CNPs for itself | would ignore them |
//!
//! Read responses, datagrams, and all that is not RoCEv2 pass unaltered.
//!
//! A bump may stand in front of several hosts. The receiving side then knows from the sending side with which PSN a
//! connection starts. Otherwise it takes the first packet that arrives for the first one; if that was wrong, the host's own
//! NACK corrects it.
//!
//! The crate does no I/O, reads no clock and starts no thread: time is an argument, and frames to send are answers.
//!
//! ```
//! use bump::{Bump, Face, Out, Personality, Settings, Side};
//! use model::Time;
//!
//! let mut bump = Bump::new(&Settings { nics: vec![None], personality: Personality::default() });
//! // An ARP request passes unaltered.
//! let arp = [[0xFF; 6].as_slice(), &[2, 0, 0, 0, 0, 1], &[0x08, 0x06], &[0; 46]].concat();
//! bump.frame(Time::ZERO, Face { nic: 0, side: Side::Host }, arp.clone());
//! let Some(Out::Send { face, frame }) = bump.poll() else { panic!() };
//! assert_eq!((face.side, frame), (Side::Network, arp));
//! ```
//!
//! | file | content |
//! |---|---|
//! | [`bump`](mod@bump) | all NICs, and what they tell each other |
//! | `nic` | one NIC: which frame belongs to which flow, and whose turn it is to send |
//! | `sending` | the requests of one queue pair on their way out: copies, retransmissions, pace |
//! | `receiving` | the requests of one queue pair on their way in: order, NACKs |
//! | `pairing` | which reply answers which flow |
//! | `frame` | fields of a frame |
//! | `reply` | NACKs, ACKs and CNPs as frames |
//! | [`personality`] | the kind of NIC |
//! | [`counters`] | what has been counted |

#![forbid(unsafe_code)]

pub mod bump;
pub mod counters;
mod frame;
mod nic;
pub mod out;
mod pairing;
pub mod personality;
mod receiving;
mod reply;
mod sending;

#[cfg(test)]
mod tests;

pub use bump::{Bump, Settings};
pub use counters::Counters;
pub use out::{Face, Note, Out, Side, What};
pub use personality::{Personality, Unfit};
