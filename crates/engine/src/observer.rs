//! Observation of a run while it goes on.

use crate::cut::Cutter;
use crate::outcome::Frame;
use model::Time;

/// Progress of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Simulated time.
    pub now: Time,
    /// Foreground messages delivered and acknowledged.
    pub finished: u64,
    /// Foreground messages and tasks in all.
    pub messages: u64,
    /// Data packets accepted.
    pub accepted: u64,
    /// Link crossings so far.
    pub hops: u64,
}

/// Watches a run. It is called with the run's progress every few dozen windows, and by the reference engine every
/// 65,536 events.
pub trait Observer {
    /// Takes note that the engine's state is built and the first event comes next. The default does nothing.
    fn on_start(&mut self) {}

    /// Returns false to interrupt the run.
    fn on_progress(&mut self, progress: Progress) -> bool;

    /// Memory that the run may still take, bytes. The engine asks when its state is built and after every
    /// [`Observer::on_progress`]. The less memory is left, the sooner it asks again, and it ends the run while enough is left
    /// to close the books. The default sets no limit.
    fn room(&mut self) -> u64 {
        u64::MAX
    }

    /// True if the observer takes the frames at taps while the run goes on. If not, they all stay in the outcome's notes.
    fn takes_frames(&self) -> bool {
        false
    }

    /// Takes the frames at taps since the last call, by time and link; called before [`Observer::on_progress`]. Every later
    /// frame starts at `until` or later. The frames after the last call are in the outcome's notes. The default does nothing.
    fn on_frames(&mut self, frames: &[Frame], until: Time) {
        let _ = (frames, until);
    }

    /// What cuts the run; `None`, the default, for a run that sends everything. The plan then has taps at all links, and the run one thread.
    fn cutter(&mut self) -> Option<&mut dyn Cutter> {
        None
    }

    /// An action that each thread of a run takes at its end, such as reading its own CPU clock: the engine itself
    /// reads no clock. The default does nothing.
    fn at_thread_end(&self) -> Box<dyn Fn() + Send + Sync> {
        Box::new(|| ())
    }
}

/// An observer that ignores everything.
impl Observer for () {
    fn on_progress(&mut self, _: Progress) -> bool {
        true
    }
}
