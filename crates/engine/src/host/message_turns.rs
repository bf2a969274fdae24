//! Turns of queue pairs to begin a message, where a rate limits the messages that a NIC begins.

use super::nic::Host;
use model::transport::Sender;
use model::{MessageGaps, Parts};

/// The turns of a NIC's queue pairs.
#[derive(Debug, Default)]
pub(super) struct MessageTurns {
    /// Earliest turn of the next queue pair that asks for one, ps.
    free: u64,
    /// By slot; queue pairs at the end may be missing.
    queue_pairs: Vec<MessageTurn>,
}

/// What a queue pair has to wait for before it begins its next message.
#[derive(Clone, Copy, Debug, Default)]
struct MessageTurn {
    gaps: MessageGaps,
    /// Earliest start of its next message, ps.
    free: u64,
    /// Its turn among the queue pairs of the NIC, ps, if it has asked for one.
    turn: Option<u64>,
}

impl MessageTurns {
    /// Limits the messages of a queue pair of the sender.
    pub(super) fn add(&mut self, slot: usize, gaps: MessageGaps) {
        self.queue_pairs.resize(slot + 1, MessageTurn::default());
        self.queue_pairs[slot].gaps = gaps;
    }

    /// Time at which a queue pair that asks at `now` may begin its next message. It begins the message if the time is `now`.
    fn begin(&mut self, now: u64, slot: u32) -> u64 {
        let Some(queue_pair) = self.queue_pairs.get_mut(slot as usize) else { return now };
        if queue_pair.free > now {
            return queue_pair.free;
        }
        let turn = *queue_pair.turn.get_or_insert_with(|| {
            let turn = self.free.max(now);
            self.free = turn.saturating_add(queue_pair.gaps.nic.ps());
            turn
        });
        if turn > now {
            return turn;
        }
        queue_pair.turn = None;
        queue_pair.free = now.saturating_add(queue_pair.gaps.queue_pair.ps());
        now
    }
}

impl<P: Parts> Host<P> {
    /// True if the first queue pair in line need not wait before it sends at `now` under this window. It waits if it is between two
    /// messages and its turn comes later; it then goes back in line.
    ///
    /// Turns are given in the order in which queue pairs could send. Waiting for a common time instead would let the first one go
    /// first each time.
    #[cold]
    #[inline(never)]
    pub(super) fn may_begin(&mut self, now: u64, slot: u32, window: u64) -> bool {
        let out = &self.outgoing[slot as usize];
        let Some(turns) = &mut self.message_turns else { return true };
        let sent = out.sender.position().high;
        if sent > 0 && sent < out.current_end || !out.sender.ready(window) {
            return true;
        }
        let begins = turns.begin(now, slot);
        if begins > now {
            self.ready.replace_first(begins, now);
        }
        begins == now
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Time;

    fn turns(queue_pair: u64, nic: u64) -> MessageTurns {
        let mut turns = MessageTurns::default();
        (0..3).for_each(|slot| turns.add(slot, MessageGaps { queue_pair: Time(queue_pair), nic: Time(nic) }));
        turns
    }

    #[test]
    fn queue_pairs_get_turns_in_the_order_in_which_they_ask() {
        let mut turns = turns(0, 60);
        assert_eq!([2, 0, 1].map(|slot| turns.begin(5, slot)), [5, 65, 125]);
        assert_eq!(turns.begin(70, 2), 185, "others wait");
        assert_eq!([turns.begin(70, 0), turns.begin(125, 1), turns.begin(300, 2)], [70, 125, 300]);
        assert_eq!(turns.begin(300, 0), 300, "the next turn was at 245");
        assert_eq!(turns.begin(300, 0), 360);
    }

    #[test]
    fn a_queue_pair_asks_for_a_turn_when_its_own_gap_is_over() {
        let mut turns = turns(250, 60);
        assert_eq!([turns.begin(0, 0), turns.begin(10, 0)], [0, 250]);
        assert_eq!(turns.begin(60, 1), 60, "nobody else has asked");
        assert_eq!([turns.begin(250, 0), turns.begin(250, 2)], [250, 310]);
        assert_eq!(turns.begin(0, 9), 0, "a queue pair without a limit");
    }
}
