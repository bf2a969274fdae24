//! Two engines behind one face.
//!
//! [`Kind::Window`] cuts time into windows shorter than any link's delay and takes the nodes one after the
//! other inside each window: no global event queue. [`Kind::Reference`] is one heap of events, plain enough to
//! be obviously right. Both give the same [`Outcome`], bit for bit; tests hold them to it.
//!
//! The engine knows no scheme, transport or congestion control by name: it is generic over [`model::Parts`].
//! It reads no clock and draws no number but by key, so a run depends on its plan and parts alone.

use std::num::NonZeroUsize;

mod books;
mod buffer;
mod failing;
mod host;
mod listed;
mod merge;
pub mod outcome;
mod record;
mod reference;
mod setup;
mod stall;
mod switch;
mod view;
mod window;

pub use outcome::Outcome;
pub use setup::window;
pub use stall::link_name;

/// How many groups of nodes there are to share out among threads: more threads than these have nothing to do.
pub fn groups(fabric: &model::Fabric) -> usize {
    window::groups(fabric)
}

/// Runs a plan with the given parts to its end.
///
/// `observer` is called every so often and may interrupt the run. The outcome says how it ended; a broken rule
/// of conservation stands in [`Outcome::violations`].
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

/// Which engine runs a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// Window by window, node by node, on one thread.
    #[default]
    Window,
    /// The same on several threads; no more than there are [`groups`] are used.
    Threads(NonZeroUsize),
    /// One event heap.
    Reference,
    /// The window engine with windows of half the length: a check, never faster.
    HalfWindow,
}

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Simulated time.
    pub now: model::Time,
    /// Messages delivered and acknowledged that count.
    pub finished: u64,
    /// Messages that count.
    pub messages: u64,
    /// Data packets accepted.
    pub accepted: u64,
    /// Link crossings so far.
    pub hops: u64,
}

/// Whoever watches a run: called every few dozen windows (the reference: every 65,536 events) with how far it is.
pub trait Observer {
    /// Returns false to interrupt the run.
    fn on_progress(&mut self, progress: Progress) -> bool;

    /// What each thread that the engine starts for a run does last, such as reading its own CPU clock: the
    /// engine reads none. Nothing by default.
    fn at_thread_end(&self) -> Box<dyn Fn() + Send + Sync> {
        Box::new(|| ())
    }
}

/// Nobody watches.
impl Observer for () {
    fn on_progress(&mut self, _: Progress) -> bool {
        true
    }
}
