//! The work of tasks: streams and engines, by the rules of the engine (`engine/src/tasks.rs`).

use super::state::Free;
use super::{Director, Kind, Who};
use model::plan::{SliceTimes, Work};
use model::{NodeId, Time};

/// A task's work, and where it stands.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    pub(super) work: Work,
    pub(super) node: NodeId,
    /// Times of a slice.
    pub(super) times: SliceTimes,
    pub(super) order: u64,
    pub(super) who: Who,
    pub(super) error: f64,
}

impl Director<'_> {
    pub(super) fn stream(&self, node: NodeId, stream: u32) -> usize {
        node.index() * self.streams_each + stream as usize
    }

    pub(super) fn occupy(&mut self, stream: usize, now: u64, time: Time, error: f64) -> (u64, f64) {
        book(&mut self.streams[stream], now, time, error)
    }

    /// Starts a piece that is ready; returns its start.
    pub(super) fn start(&mut self, piece: Piece) -> u64 {
        let (now, node) = (self.now, piece.node);
        match piece.work {
            Work::Free { time } => {
                self.goes_on(piece, now + time.ps(), Kind::End, piece.error);
                now
            }
            Work::On { stream, time } => {
                let (start, error) = self.occupy(self.stream(node, stream), now, time, piece.error);
                self.goes_on(piece, start + time.ps(), Kind::End, error);
                start
            }
            Work::Copy { from, time, delay, .. } => {
                let (start, error) = self.occupy(self.stream(node, from), now, time, piece.error);
                self.goes_on(piece, start + delay.ps(), Kind::Enter, error);
                start
            }
            Work::Slice { engine, from, .. } => {
                let (start, error) = match engine {
                    Work::NONE => (now, piece.error),
                    engine => {
                        let engine = engine as usize;
                        if self.engines.len() <= engine {
                            self.engines.resize(engine + 1, Free::default());
                        }
                        book(&mut self.engines[engine], now, piece.times.busy, piece.error)
                    }
                };
                if from == Work::NONE {
                    self.goes_on(piece, start + piece.times.lasts.ps(), Kind::End, error);
                } else if start > now {
                    self.goes_on(piece, start, Kind::Leave, error);
                } else {
                    self.leave(Piece { error, ..piece });
                }
                start
            }
        }
    }

    /// Lets the bytes of a slice leave.
    pub(super) fn leave(&mut self, piece: Piece) {
        if let Work::Slice { from, .. } = piece.work {
            let from = self.stream(piece.node, from);
            let (left, error) = self.occupy(from, self.now, piece.times.out, piece.error);
            self.goes_on(piece, left + piece.times.delay.ps(), Kind::Enter, error);
        }
    }

    /// Lets the bytes of a copy or slice enter; an engine started the slice at `start`.
    pub(super) fn enters(&mut self, piece: Piece, start: u64) {
        let now = self.now;
        let (to, time) = match piece.work {
            Work::Copy { to, time, .. } => (to, time),
            Work::Slice { to, .. } => (to, piece.times.enter),
            Work::Free { .. } | Work::On { .. } => return,
        };
        let (entered, error) = self.occupy(self.stream(piece.node, to), now, time, piece.error);
        let end = match piece.work {
            Work::Slice { .. } => piece.times.end(start, now - piece.times.delay.ps(), entered),
            _ => entered + time.ps(),
        };
        self.goes_on(piece, end, Kind::End, error);
    }

    fn goes_on(&mut self, piece: Piece, at: u64, kind: Kind, error: f64) {
        self.push(at, kind, piece.order, piece.who, error);
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
