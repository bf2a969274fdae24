//! The messages of a queue pair that are not wholly sent, as frames.

use std::collections::VecDeque;

/// Frames of a posted message.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(test, derive(Hash))]
struct Posted {
    /// First packet after the message.
    end: u64,
    /// Bytes of a full frame.
    full: u32,
    /// Bytes of the last frame.
    last: u32,
}

/// The queue of messages whose packets are sent one after the other.
#[derive(Clone, Debug, Default)]
#[cfg_attr(test, derive(Hash))]
pub(super) struct Messages {
    /// The message of the next new packet; empty before the first one. The last message stays after its packets were sent.
    first: Posted,
    /// Messages after it, apart since a packet needs the first one alone.
    #[expect(clippy::box_collection, reason = "a queue takes four times the room of a pointer")]
    others: Option<Box<VecDeque<Posted>>>,
    /// Bytes never sent.
    unsent: u64,
}

impl Messages {
    /// Adds a message of that number of packets, all with a full frame but for the last one. `next` is the first packet that was
    /// never sent.
    pub(super) fn post(&mut self, packets: u64, full: u32, last: u32, next: u64) {
        let others = self.others.get_or_insert_default();
        let end = others.back().map_or(self.first.end, |message| message.end) + packets;
        others.push_back(Posted { end, full, last });
        self.skip_sent(next);
        self.unsent += (packets - 1) * u64::from(full) + u64::from(last);
    }

    /// Goes on to the next message if all packets of this one were sent. `next` is the first packet that was never sent.
    #[inline]
    pub(super) fn skip_sent(&mut self, next: u64) {
        if self.first.end == next
            && let Some(message) = self.others.as_mut().and_then(|others| others.pop_front())
        {
            self.first = message;
        }
    }

    /// Takes the bytes of the frame of new packet `seq`.
    #[inline(always)]
    pub(super) fn take(&mut self, seq: u64) -> u32 {
        debug_assert!(seq < self.first.end, "the packet belongs to a later message");
        let frame = if seq + 1 == self.first.end { self.first.last } else { self.first.full };
        self.unsent -= u64::from(frame);
        frame
    }

    /// Bytes never sent.
    #[inline(always)]
    pub(super) fn unsent(&self) -> u64 {
        self.unsent
    }

    /// Bytes of a full frame of the message of the next new packet; 0 before the first message.
    #[inline(always)]
    pub(super) fn full_frame(&self) -> u32 {
        self.first.full
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_sent_in_turn_and_the_last_frame_of_each_has_its_own_size() {
        let mut messages = Messages::default();
        messages.post(2, 1000, 300, 0);
        messages.post(1, 500, 200, 0);
        assert_eq!((messages.unsent(), messages.full_frame()), (1_500, 1000));
        assert_eq!((messages.take(0), messages.take(1)), (1000, 300));
        assert_eq!(messages.full_frame(), 1000, "until the sender says that the message is sent");
        messages.skip_sent(2);
        assert_eq!((messages.full_frame(), messages.take(2), messages.unsent()), (500, 200, 0));
        messages.skip_sent(3);
        assert_eq!(messages.full_frame(), 500, "no message follows");
    }
}
