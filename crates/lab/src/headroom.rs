//! Memory that a run may still take, looked at while it goes on.

use crate::clock::Stopwatch;
use model::Plan;
use scenario::room::Room;

/// Most bytes that a run takes in a second, and the bounds of the time between two looks in seconds. A look reads a few files
/// of the system, in about 0.1 ms. Our choice: a thread fills new memory at 1 to 2 GB per second.
const MOST_PER_S: f64 = 4e9;
const EVERY_S: (f64, f64) = (0.005, 0.2);

/// Bytes that remain free for the summary, the tables and their compression. Our choice: a whole run of one flow takes 21 MB,
/// the program included.
const RESULTS: u64 = 16_000_000;
/// Bytes per message that remain free for its rows. Our choice: a run of 1,047,552 messages took 55 B per message more after its
/// last event than before, its [`engine::outcome::MessageRecord`]s included.
const ROW: u64 = 100;
/// Part of the run's growth that remains free, because buffers grow by a quarter.
const NEXT_STEP: u64 = 4;

/// Memory that a run may still take.
#[derive(Debug)]
pub(crate) struct Headroom {
    /// Memory that was left when the run began; `None` if the system does not report it.
    first: Option<Room>,
    /// Memory at the last look.
    last: Option<Room>,
    since: Stopwatch,
    /// Bytes that remain free for the results.
    results: u64,
}

impl Headroom {
    pub(crate) fn new(plan: &Plan) -> Self {
        let (first, messages) = (Room::now(), plan.messages.len() as u64);
        Headroom { first, last: first, since: Stopwatch::start(), results: RESULTS + messages * ROW }
    }

    /// Bytes that the run may still take; [`u64::MAX`] if the system does not report it.
    pub(crate) fn left(&mut self) -> u64 {
        let Some(first) = self.first else { return u64::MAX };
        let left =
            |room: Option<Room>| room.map_or(u64::MAX, |now| usable(first.left, now.left, self.results));
        if self.since.wall_s() >= (left(self.last) as f64 / MOST_PER_S).clamp(EVERY_S.0, EVERY_S.1) {
            (self.since, self.last) = (Stopwatch::start(), Room::now());
        }
        left(self.last)
    }

    /// The memory at the last look.
    pub(crate) fn room(&self) -> Option<Room> {
        self.last
    }
}

/// Bytes of the `left` ones that a run may take if `first` ones were left when it began.
fn usable(first: u64, left: u64, results: u64) -> u64 {
    left.saturating_sub(results).saturating_sub(first.saturating_sub(left) / NEXT_STEP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_leaves_memory_for_its_results_and_for_the_next_step_of_its_buffers() {
        assert_eq!(usable(1000, 1000, 100), 900);
        assert_eq!(usable(1000, 600, 100), 400);
        assert_eq!(usable(1000, 280, 100), 0);
        // Other programs may return memory meanwhile.
        assert_eq!(usable(1000, 2000, 100), 1900);
    }
}
