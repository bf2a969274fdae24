//! Parts of one's own for ropewalk, outside its repository: load-balancing schemes, congestion controls and recovery modes.
//!
//! `ropewalk new-scheme NAME DIR` writes a crate that uses this one, with an example of each part. Its program is the whole command line
//! with these parts: `compare --schemes NAME,themis`, `--set nic.congestion=NAME`, sweeps, reports, `explain` and `schema` know them.
//!
//! The [`book`] has a chapter for each kind of part, one on [tests](book::checks), and one on [what may change](book::changes). In short:
//!
//! 1. **Settings**: a type with `Default`, serde's derives and [`JsonSchema`], one field per key of the part's table.
//! 2. **A state machine**: a [`Scheme`] for each switch, a [`Steering`] or a [`Congestion`] for each queue pair, a [`Sender`] and a
//!    [`Receiver`] for its ends.
//! 3. **What others must know**: [`Recipe`], [`Steers`], [`Control`] or [`Transport`] for the settings builds the state and tells facts.
//! 4. **An entry**: an [`Entry`] gives it a name and a sentence, and [`main`] takes all entries.
//! 5. **Tests**: [`hold`] has the rules that every part keeps.

#![forbid(unsafe_code)]

pub mod book;
mod entry;
pub mod hold;

pub use entry::{Entry, add};
#[doc(inline)]
pub use finding::{Finding, code};
#[doc(inline)]
pub use model::annex::{Envelope, Notice, Sack, Selective};
#[doc(inline)]
pub use model::draw;
#[doc(inline)]
pub use model::fabric::Detours;
#[doc(inline)]
pub use model::scheme::{Acks, Arrived, Emitted};
#[doc(inline)]
pub use model::steering::{Aside, AsideKind, Room, Sent};
#[doc(inline)]
pub use model::transport::{
    Arrived as ArrivedData, Departure, Due, Fate, Heard, Inbound, Overdue, Plain, Position, Progress,
    Reception, Reply, Returned, Sacked, Standing, Telling,
};
#[doc(inline)]
pub use model::{
    Advice, Allowance, Bytes, Congestion, Cx, Delivery, Demand, Detour, Fabric, Feedback, HostId, Interest,
    Kind, NodeId, Pace, Packet, Plan, PortIndex, Psn, QpId, QpSite, Rate, Receiver, Reroute, Scheme, Sender,
    Site, Stamp, Steering, Time, Verdict,
};
#[doc(inline)]
pub use rnic::notification::{Cnp, CnpScope};
#[doc(inline)]
pub use rnic::own::Transport;
#[doc(inline)]
pub use rnic::{
    Acks as OwedAcks, Advised, Answers, AnyCongestion, AnyReceiver, AnySender, CongestionConfig, Control,
    ControlFacts, CutReport, Digested, Due as GrantDue, Evidence, Grants, OnNack, Path, Reaction, SilentLoss,
    Timing, TransportConfig, TransportFacts, Unit, Variation, Verb,
};
pub use schemars::{self, JsonSchema};
#[doc(inline)]
pub use schemes::look::Look;
#[doc(inline)]
pub use schemes::{Facts, Golden, Recipe, Steers, choice, entropies, flows};
pub use serde;

use clap::Parser;
use command_line::{cli::Cli, commands};
use std::process::ExitCode;

/// The command line of ropewalk with more parts.
///
/// # Panics
/// If two parts of one kind have one name, or a name is no name.
pub fn main(parts: &[Entry]) -> ExitCode {
    add(parts);
    commands::dispatch(Cli::parse())
}
