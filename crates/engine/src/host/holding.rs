//! Queue pairs that a pause holds back while others of their host go on: those whose data has a queue of its own in the fabric.

use super::ready::Turn;
use crate::setup::Setup;
use model::QpId;

/// The pauses of a host's port, and the turns that they hold back.
#[derive(Debug, Default)]
pub(super) struct Holding {
    /// A bit for each paused priority.
    paused: u8,
    /// The priority of each queue pair of the sender, as a bit; empty if all flows share the queues of a port.
    priorities: Vec<u8>,
    /// Turns of held queue pairs, in any order.
    turns: Vec<Turn>,
}

impl Holding {
    /// Adds the next queue pair of the sender.
    pub(super) fn add(&mut self, setup: &Setup<'_>, qp: QpId) {
        if setup.has_own_queues() {
            self.priorities.push(setup.holding(qp));
        }
    }

    fn holds(&self, slot: u32) -> bool {
        self.priorities.get(slot as usize).is_some_and(|priority| priority & self.paused != 0)
    }

    /// Keeps a turn whose queue pair is held; false if it is not held.
    #[inline]
    pub(super) fn keep(&mut self, turn: Turn) -> bool {
        let held = self.paused != 0 && self.holds(turn.slot);
        if held {
            self.turns.push(turn);
        }
        held
    }

    /// Sets the paused priorities; returns the turns that were held.
    pub(super) fn pause(&mut self, paused: u8) -> Vec<Turn> {
        self.paused = paused;
        std::mem::take(&mut self.turns)
    }
}
