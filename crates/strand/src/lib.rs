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
pub use finding::{Finding, code};
pub use model::annex::Envelope;
pub use model::draw;
pub use model::fabric::Detours;
pub use model::scheme::{Acks, Arrived, Emitted};
pub use model::steering::{Aside, AsideKind, Room, Sent};
pub use model::transport::{
    Arrived as ArrivedData, Departure, Due, Fate, Heard, Inbound, Overdue, Plain, Position, Progress,
    Reception, Reply, Standing, Telling,
};
pub use model::{
    Advice, Allowance, Bytes, Congestion, Cx, Delivery, Demand, Detour, Fabric, Feedback, HostId, Interest,
    Kind, NodeId, Pace, Packet, Plan, PortIndex, Psn, QpId, QpSite, Rate, Receiver, Reroute, Scheme, Sender,
    Site, Stamp, Steering, Time, Verdict,
};
pub use rnic::own::Transport;
pub use rnic::{
    Answers, AnyCongestion, AnyReceiver, AnySender, CongestionConfig, Control, ControlFacts, Evidence,
    OnNack, Path, Reaction, SilentLoss, Timing, TransportConfig, TransportFacts, Unit, Variation, Verb,
};
pub use schemars::{self, JsonSchema};
pub use schemes::look::Look;
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
