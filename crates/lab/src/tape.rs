//! Frames at taps, handed over while their run goes on.

use crate::progress::Watch;
use engine::Progress;
use engine::outcome::Frame;
use model::{Plan, Time};

/// Takes the frames at taps while a run goes on, so that they need no memory.
pub trait Tape {
    /// Takes frames by time and link. Every later frame starts at `until` or later. Returns false to end the run.
    fn add(&mut self, plan: &Plan, frames: &[Frame], until: Time) -> bool;
}

/// Watches a run, and hands its frames to a tape.
pub(crate) struct Taped<'r> {
    pub(crate) watch: Watch<'r>,
    pub(crate) plan: &'r Plan,
    pub(crate) tape: &'r mut dyn Tape,
    /// True once the tape takes no more.
    pub(crate) ended: bool,
}

impl engine::Observer for Taped<'_> {
    fn on_start(&mut self) {
        self.watch.on_start();
    }

    fn on_progress(&mut self, progress: Progress) -> bool {
        self.watch.on_progress(progress) && !self.ended
    }

    fn room(&mut self) -> u64 {
        self.watch.room()
    }

    fn takes_frames(&self) -> bool {
        true
    }

    fn on_frames(&mut self, frames: &[Frame], until: Time) {
        self.ended |= !self.tape.add(self.plan, frames, until);
    }

    fn at_thread_end(&self) -> Box<dyn Fn() + Send + Sync> {
        self.watch.at_thread_end()
    }
}
