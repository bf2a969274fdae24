//! Two engines with one interface.
//!
//! [`Kind::Window`] cuts time into windows shorter than any link's delay and computes the nodes of a window one
//! after the other, without a global event queue. [`Kind::Reference`] is one heap of events, simple enough to check
//! by reading. Both give the same [`Outcome`], bit for bit, which tests verify.
//!
//! The engine knows no scheme, transport or congestion control by name: it is generic over [`model::Parts`]. It
//! reads no clock, and every random number is a function of a key. So a run depends only on its plan and its parts.

#![forbid(unsafe_code)]

use std::num::NonZeroUsize;

mod average;
mod books;
mod buffer;
mod cells;
mod credits;
pub mod cut;
mod cutting;
mod division;
mod failing;
mod gentle;
mod host;
mod listed;
pub mod live;
mod merge;
mod noisy;
mod observer;
pub mod outcome;
mod posted;
mod record;
mod reference;
mod service;
mod setup;
mod stall;
mod switch;
mod tasks;
mod view;
mod watchdog;
mod watermarks;
mod window;

pub use observer::{Observer, Progress};
pub use outcome::Outcome;
pub use setup::window;
pub use stall::link_name;

/// Number of groups of nodes that threads can share. More threads than groups have nothing to do.
pub fn groups(fabric: &model::Fabric) -> usize {
    division::groups(fabric).len()
}

/// Runs a plan with the given parts to its end.
///
/// The engine calls `observer` regularly, and the observer may interrupt the run. The outcome reports how the run
/// ended; [`Outcome::violations`] lists broken rules of conservation.
pub fn run<P: model::Parts>(
    plan: &model::Plan,
    parts: &P,
    kind: Kind,
    observer: &mut dyn Observer,
) -> Outcome {
    match kind {
        Kind::Reference => reference::run(plan, parts, observer),
        Kind::Window => window::run(plan, parts, 1, 1, observer),
        Kind::Threads(threads) => window::run(plan, parts, threads.get(), 1, observer),
        Kind::HalfWindow => window::run(plan, parts, 1, 2, observer),
    }
}

/// Starts a run that a program drives, see [`live::Live`]. The plan's [`model::Plan::posted`] names the job of its messages.
///
/// The window engine uses one thread here. If no window fits the plan's links, the reference engine takes its place.
pub fn live<'p, P: model::Parts + 'p>(
    plan: &'p model::Plan,
    parts: &P,
    kind: Kind,
) -> Box<dyn live::Live + 'p> {
    let window = match kind {
        Kind::Reference => None,
        Kind::Window | Kind::Threads(_) | Kind::HalfWindow => window::live(plan, parts),
    };
    window.unwrap_or_else(|| reference::live(plan, parts))
}

/// The engine that runs a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// The window engine on one thread.
    #[default]
    Window,
    /// The window engine on several threads; at most [`groups`] of them are used.
    Threads(NonZeroUsize),
    /// The reference engine: one event heap.
    Reference,
    /// The window engine with windows of half the length; a check of exactness, never faster.
    HalfWindow,
}
