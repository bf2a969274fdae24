//! A scheme of one's own, outside ropewalk's repository.
//!
//! `ropewalk new-scheme NAME DIR` writes a crate that uses this one. Its program is the whole command line with one more scheme:
//! `compare --schemes NAME,themis`, sweeps, reports, `explain` and `schema` know it.
//!
//! # Parts of a scheme
//!
//! 1. **Settings**: a type with `Default`, serde's derives and [`JsonSchema`], one field per key of `[scheme.NAME]`. A comment at a field says its
//!    meaning, unit, default and source; `check` and the schema print it.
//! 2. **A state machine** for each switch: a [`Scheme`]. [`Scheme::on_packet`] gets a packet and the ports that lead to its destination, and
//!    answers with a [`Verdict`]. [`Scheme::interest`] says what it wants to see: no run pays for what its scheme does not ask for.
//! 3. **A recipe**: [`Recipe`] for the settings builds the state of a switch and tells the [`Facts`] that others must know. A scheme
//!    in the sending NIC also has [`Steers`] with a [`Steering`].
//! 4. **An entry**: [`Entry::in_switches`] or [`Entry::in_senders`] gives it a name and a sentence, and [`main`] takes all entries.
//!
//! Time and randomness are arguments. [`Cx::pick`] draws by seed, purpose, switch and packet, so a draw does not depend on the order in
//! which an engine visits switches, and every engine gives the same digest. [`choice`] chooses the least loaded port, for a packet or a flow.
//!
//! # Tests
//!
//! [`hold::contract`] hands a scheme random packets and checks what it may do with them. [`hold::twins`] runs it on every engine, with failures
//! and small buffers, and checks that all agree and that no packet is lost without a cause. [`hold::fuzz`] does so with random scenarios.
//!
//! # What may change
//!
//! This crate is the face: what it exports has the version of ropewalk. Within a minor version nothing that it exports is renamed, removed or
//! given another meaning; methods with defaults may be added to traits. Everything else in the repository may change at any time.

#![forbid(unsafe_code)]

pub mod hold;

pub use finding::{Finding, code};
pub use model::draw;
pub use model::fabric::Detours;
pub use model::scheme::{Acks, Arrived, Emitted};
pub use model::steering::{Aside, AsideKind, Room, Sent};
pub use model::{
    Bytes, Cx, Detour, Fabric, HostId, Interest, Kind, NodeId, Packet, Plan, PortIndex, Psn, QpId, QpSite,
    Rate, Reroute, Scheme, Site, Stamp, Steering, Time, Verdict,
};
pub use schemars::{self, JsonSchema};
pub use schemes::look::Look;
pub use schemes::own::Entry;
pub use schemes::{Facts, Golden, Recipe, Steers, choice, entropies, flows};
pub use serde;

use clap::Parser;
use command_line::{cli::Cli, commands};
use std::process::ExitCode;

/// The command line of ropewalk with more schemes.
///
/// # Panics
/// If two schemes have one name, or a name is no name.
pub fn main(schemes: &[Entry]) -> ExitCode {
    schemes::own::add(schemes);
    commands::dispatch(Cli::parse())
}
