//! The work of tasks: streams and engines, by the rules of the engine (`engine/src/tasks.rs`).

use super::{Director, Free, Kind, Who};
use model::plan::{SliceTimes, Work};
use model::{NodeId, Time};

impl Director<'_> {
    pub(super) fn stream(&self, node: NodeId, stream: u32) -> usize {
        node.index() * self.streams_each + stream as usize
    }

    pub(super) fn occupy(&mut self, stream: usize, now: u64, time: Time, error: f64) -> (u64, f64) {
        book(&mut self.streams[stream], now, time, error)
    }

    /// Starts work that is ready; returns its start.
    pub(super) fn start(
        &mut self,
        work: Work,
        node: NodeId,
        order: u64,
        who: Who,
        error: f64,
        times: Option<SliceTimes>,
    ) -> (u64, f64) {
        let now = self.now;
        match work {
            Work::Free { time } => {
                self.push(now + time.ps(), Kind::End, order, who, error);
                (now, error)
            }
            Work::On { stream, time } => {
                let (start, error) = self.occupy(self.stream(node, stream), now, time, error);
                self.push(start + time.ps(), Kind::End, order, who, error);
                (start, error)
            }
            Work::Copy { from, time, delay, .. } => {
                let (start, error) = self.occupy(self.stream(node, from), now, time, error);
                self.push(start + delay.ps(), Kind::Enter, order, who, error);
                (start, error)
            }
            Work::Slice { engine, from, .. } => {
                let times = times.unwrap_or_default();
                let (start, error) = if engine == Work::NONE {
                    (now, error)
                } else {
                    let engine = engine as usize;
                    if self.engines.len() <= engine {
                        self.engines.resize(engine + 1, Free::default());
                    }
                    book(&mut self.engines[engine], now, times.busy, error)
                };
                if from == Work::NONE {
                    self.push(start + times.lasts.ps(), Kind::End, order, who, error);
                } else if start > now {
                    self.push(start, Kind::Leave, order, who, error);
                } else {
                    self.leave(work, node, order, who, error, Some(times));
                }
                (start, error)
            }
        }
    }

    /// Lets the bytes of a slice leave.
    pub(super) fn leave(
        &mut self,
        work: Work,
        node: NodeId,
        order: u64,
        who: Who,
        error: f64,
        times: Option<SliceTimes>,
    ) {
        if let (Work::Slice { from, .. }, Some(times)) = (work, times) {
            let (left, error) = self.occupy(self.stream(node, from), self.now, times.out, error);
            self.push(left + times.delay.ps(), Kind::Enter, order, who, error);
        }
    }

    /// Lets the bytes of a copy or slice enter.
    pub(super) fn enters(
        &mut self,
        work: Work,
        node: NodeId,
        order: u64,
        who: Who,
        error: f64,
        (start, times): (u64, Option<SliceTimes>),
    ) {
        let now = self.now;
        match (work, times) {
            (Work::Copy { to, time, .. }, _) => {
                let (entered, error) = self.occupy(self.stream(node, to), now, time, error);
                self.push(entered + time.ps(), Kind::End, order, who, error);
            }
            (Work::Slice { to, .. }, Some(times)) => {
                let (entered, error) = self.occupy(self.stream(node, to), now, times.enter, error);
                let end = times.end(start, now - times.delay.ps(), entered);
                self.push(end, Kind::End, order, who, error);
            }
            _ => {}
        }
    }
}

/// Occupies what is free from some time on. Returns the start, and the error of what decides it.
fn book(free: &mut Free, now: u64, time: Time, error: f64) -> (u64, f64) {
    let start = now.max(free.at);
    // Both may come later than they did.
    let error = (now as f64 + error).max(free.at as f64 + free.error) - start as f64;
    let error = error.max(0.0);
    *free = Free { at: start + time.ps(), error };
    (start, error)
}
