//! A receiver that counts the packets of each message, in any order, and knows no single packet.

use crate::ack::{AckRules, Answers};
use crate::bitmap::{Bitmap, Insert};
use crate::notification::{Cnp, Marks};
use model::annex::{Envelope, Sack};
use model::transport::{Arrived, Fate, Inbound, Reception, Reply, Standing, Telling};
use model::{PortIndex, Psn, Time};
use std::collections::VecDeque;
use std::sync::Arc;

/// Settings that all receivers of a NIC share.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(test, derive(Hash))]
pub struct Rules {
    pub(crate) answers: Answers,
}

/// A message of which packets have arrived.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(test, derive(Hash))]
struct Message {
    first: u64,
    packets: u32,
    /// Newest attempt, and its packets that have arrived.
    attempt: u8,
    count: u32,
}

impl Message {
    fn is_complete(&self) -> bool {
        self.count == self.packets
    }
}

/// The receiver of a queue pair.
#[derive(Clone, Debug)]
#[cfg_attr(test, derive(Hash))]
pub struct Receiver {
    /// First packet after the messages that are complete with all messages before them.
    done: u64,
    /// Messages from `done` on of which packets have arrived, in order.
    messages: VecDeque<Message>,
    /// Bytes of all frames.
    bytes: u32,
    sack: Sack,
    marks: Marks,
    seen: Seen,
    rules: Arc<Rules>,
}

/// The packets that have ever arrived. Only statistics read them: they tell a packet's first arrival from later ones.
#[derive(Clone, Debug, Default)]
#[cfg_attr(test, derive(Hash))]
struct Seen {
    expected: u64,
    ahead: Bitmap,
}

impl Seen {
    /// Notes a packet if the receiver counts it; tells its fate.
    fn note(&mut self, seq: u64, counted: bool) -> Fate {
        let new = if counted { Fate::Accepted } else { Fate::Discarded };
        let Some(ahead) = seq.checked_sub(self.expected) else { return Fate::Duplicate };
        if ahead == 0 {
            if counted {
                self.expected = self.ahead.advance(self.expected);
            }
            return new;
        }
        let known = match counted {
            true => self.ahead.insert(self.expected, ahead as u32) == Insert::Present,
            false => self.ahead.contains(self.expected, ahead as u32),
        };
        if known { Fate::Duplicate } else { new }
    }
}

/// Effect of a packet on its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Count {
    /// It belongs to a message that is done, with all messages before.
    Done,
    /// It was counted.
    Counted(u64),
    /// It was not: it is of an old attempt, or no part of a message.
    Passed(u64),
    /// Its fields contradict each other.
    Malformed,
}

impl Receiver {
    pub(crate) fn new(rules: Arc<Rules>) -> Self {
        Receiver {
            done: 0,
            messages: VecDeque::new(),
            bytes: 0,
            sack: Sack::default(),
            marks: Marks::default(),
            seen: Seen::default(),
            rules,
        }
    }

    /// Counts a packet in its message.
    fn count(&mut self, psn: Psn, envelope: Envelope) -> Count {
        let Envelope { first, packets, attempt } = envelope;
        let Ok(ahead) = u64::try_from(psn.distance_from(Psn::from_seq(self.done))) else {
            return Count::Done;
        };
        let seq = self.done + ahead;
        if packets == 0 {
            return Count::Passed(seq);
        }
        let offset = u32::try_from(psn.distance_from(first)).ok().filter(|offset| *offset < packets);
        let first =
            offset.and_then(|offset| seq.checked_sub(offset.into())).filter(|first| *first >= self.done);
        let Some(first) = first else { return Count::Malformed };
        let at = self.messages.partition_point(|message| message.first < first);
        if self.messages.get(at).is_none_or(|message| message.first > first) {
            self.messages.insert(at, Message { first, packets, attempt, count: 0 });
        }
        let message = &mut self.messages[at];
        if message.packets != packets {
            return Count::Malformed;
        }
        // Attempts wrap, as PSNs do.
        let newer = attempt.wrapping_sub(message.attempt) as i8;
        if newer < 0 || message.is_complete() {
            return Count::Passed(seq);
        }
        if newer > 0 {
            (message.attempt, message.count) = (attempt, 0);
        }
        message.count += 1;
        Count::Counted(seq)
    }

    /// Passes over complete messages in order; true if there were any.
    fn pass(&mut self) -> bool {
        let before = self.done;
        while let Some(message) = self.messages.front().filter(|m| m.first == self.done && m.is_complete()) {
            self.done += u64::from(message.packets);
            self.messages.pop_front();
        }
        self.done > before
    }

    /// Handles a data packet.
    fn take(&mut self, now: Time, packet: Arrived) -> Reception {
        let Arrived { psn, frame, marked, asks, envelope, .. } = packet;
        let out_of_order = psn.distance_from(Psn::from_seq(self.seen.expected)) > 0;
        let count = self.count(psn, envelope);
        let fate = match count {
            Count::Done => Fate::Duplicate,
            Count::Counted(seq) => self.seen.note(seq, true),
            Count::Passed(seq) => self.seen.note(seq, false),
            Count::Malformed => Fate::Discarded,
        };
        self.bytes = self.bytes.wrapping_add(frame);
        let Answers { acks: AckRules { duplicates, .. }, marks } = &self.rules.answers;
        let due = asks || marked && marks.cnp == Cnp::Flag || *duplicates && count == Count::Done;
        let due = self.pass() || due && count != Count::Malformed;
        let reply = due.then(|| {
            self.sack = Sack { cause: psn, arrived: self.bytes, ..Sack::default() };
            Reply::Ack(Psn::from_seq(self.done.wrapping_sub(1)))
        });
        self.marks.reception(&self.rules.answers.marks, now, marked, fate, out_of_order, reply)
    }
}

impl model::Receiver for Receiver {
    fn on_arrival(&mut self, now: Time, inbound: Inbound) -> (Reception, Standing) {
        let got = match inbound {
            Inbound::Data(packet) => self.take(now, packet),
            _ => Reception::IGNORED,
        };
        (got, self.standing())
    }

    fn standing(&self) -> Standing {
        Standing { completed: self.done, ..Standing::at(self.seen.expected) }
    }

    fn telling(&self, _: u16, _: PortIndex) -> Telling {
        Telling { sack: self.sack, ..Telling::default() }
    }

    fn returns_headers(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NicConfig;
    use crate::tests::ReceiverCalls as _;

    /// A receiver of `dcp` with these settings of `[nic]`.
    fn receiver(keys: &str) -> crate::AnyReceiver {
        let config: NicConfig = toml::from_str(&format!("{keys}\n[transport.dcp]")).unwrap();
        config.build().receiver()
    }

    fn packet(seq: u64, first: u64, packets: u32, attempt: u8) -> Arrived {
        let envelope = Envelope { first: Psn::from_seq(first), packets, attempt };
        Arrived { psn: Psn::from_seq(seq), frame: 1000, marked: false, last: false, asks: false, envelope }
    }

    /// Fate of packets of one message, and the packets that each reply acknowledges in all.
    fn arrive(
        receiver: &mut impl model::Receiver,
        seqs: &[u64],
        (first, packets): (u64, u32),
        attempt: u8,
    ) -> Vec<(Fate, u64)> {
        let each = seqs.iter().map(|&seq| {
            let got = receiver.on_arrived(Time::ZERO, packet(seq, first, packets, attempt));
            let acked = match got.reply {
                Some(Reply::Ack(psn)) => u64::from(psn.next().value()),
                Some(Reply::Nack(_)) => panic!("a receiver that counts sends no NACK"),
                None => 0,
            };
            (got.fate, acked)
        });
        each.collect()
    }

    use Fate::{Accepted, Discarded, Duplicate};

    #[test]
    fn a_message_is_complete_when_all_its_packets_are_counted_in_any_order() {
        let mut receiver = receiver("");
        assert_eq!(arrive(&mut receiver, &[3, 0, 2], (0, 4), 0), [(Accepted, 0); 3]);
        assert_eq!(receiver.completed(), 0);
        assert_eq!(arrive(&mut receiver, &[1], (0, 4), 0), [(Accepted, 4)]);
        assert_eq!((receiver.completed(), receiver.held()), (4, 0));
    }

    #[test]
    fn messages_complete_in_the_order_in_which_they_were_posted() {
        let mut receiver = receiver("");
        assert_eq!(arrive(&mut receiver, &[5, 4], (4, 2), 0), [(Accepted, 0); 2]);
        assert_eq!(arrive(&mut receiver, &[6], (6, 3), 0), [(Accepted, 0)]);
        let acks = arrive(&mut receiver, &[0, 1, 2, 3], (0, 4), 0);
        assert_eq!(acks[3], (Accepted, 6), "one ACK for the second message, too");
        assert_eq!(arrive(&mut receiver, &[8, 7], (6, 3), 0), [(Accepted, 0), (Accepted, 9)]);
    }

    #[test]
    fn only_packets_of_the_newest_attempt_count() {
        let mut receiver = receiver("");
        assert_eq!(arrive(&mut receiver, &[0, 1, 2], (0, 4), 0), [(Accepted, 0); 3]);
        // The sender begins anew. What has arrived before counts again, and a straggler does not count.
        assert_eq!(arrive(&mut receiver, &[0], (0, 4), 1), [(Duplicate, 0)]);
        assert_eq!(arrive(&mut receiver, &[3, 1], (0, 4), 0), [(Discarded, 0), (Duplicate, 0)]);
        assert_eq!(arrive(&mut receiver, &[3, 2], (0, 4), 1), [(Accepted, 0), (Duplicate, 0)]);
        assert_eq!(receiver.completed(), 0, "all packets have arrived, but not in one attempt");
        assert_eq!(arrive(&mut receiver, &[1], (0, 4), 1), [(Duplicate, 4)]);
        assert_eq!(receiver.completed(), 4);
    }

    /// A message waits for the one before it. What comes again meanwhile, of its attempt or a newer one, leaves it complete.
    #[test]
    fn a_complete_message_counts_nothing_more() {
        for attempt in [0, 1] {
            let mut receiver = receiver("");
            assert_eq!(arrive(&mut receiver, &[4, 5], (4, 2), 0), [(Accepted, 0); 2]);
            assert_eq!(arrive(&mut receiver, &[5], (4, 2), attempt), [(Duplicate, 0)]);
            assert_eq!(arrive(&mut receiver, &[0, 1, 2, 3], (0, 4), 0)[3], (Accepted, 6));
            assert_eq!(receiver.completed(), 6);
        }
    }

    #[test]
    fn attempt_numbers_wrap() {
        let mut receiver = receiver("");
        for attempt in 0..=300u32 {
            assert_eq!(arrive(&mut receiver, &[1], (0, 2), attempt as u8)[0].1, 0);
        }
        assert_eq!(arrive(&mut receiver, &[0], (0, 2), 44), [(Accepted, 2)]);
    }

    #[test]
    fn a_packet_of_a_finished_message_is_acknowledged_again_unless_duplicates_are_not() {
        for (keys, acked) in [("", 2), ("ack-duplicates = false", 0)] {
            let mut receiver = receiver(keys);
            arrive(&mut receiver, &[0, 1], (0, 2), 0);
            assert_eq!(arrive(&mut receiver, &[1], (0, 2), 1), [(Duplicate, acked)]);
        }
    }

    #[test]
    fn copies_and_contradictions_do_not_count() {
        let mut receiver = receiver("");
        assert_eq!(arrive(&mut receiver, &[0], (0, 0), 0), [(Discarded, 0)], "a copy belongs to no message");
        assert_eq!(arrive(&mut receiver, &[0, 5], (0, 2), 0), [(Accepted, 0), (Discarded, 0)]);
        assert_eq!(arrive(&mut receiver, &[1], (0, 3), 0), [(Discarded, 0)], "another length");
        assert_eq!(arrive(&mut receiver, &[0], (0, 0), 0), [(Duplicate, 0)]);
        assert_eq!(arrive(&mut receiver, &[1], (0, 2), 0), [(Accepted, 2)]);
    }

    #[test]
    fn within_a_message_acks_come_when_asked_for_and_with_marks_as_flags() {
        let mut silent = receiver("");
        let asking = |seq| Arrived { asks: true, ..packet(seq, 0, 90, 0) };
        assert_eq!(silent.on_arrived(Time::ZERO, asking(7)).reply, Some(Reply::Ack(Psn::new(0xFF_FFFF))));
        arrive(&mut silent, &[8, 9], (0, 90), 0);
        silent.on_arrived(Time::ZERO, asking(3));
        assert_eq!((silent.sack().arrived, silent.sack().cause), (4000, Psn::new(3)), "bytes of all frames");
        for (cnp, flagged) in [("flag", true), ("frame", false)] {
            let mut receiver = receiver(&format!("cnp = \"{cnp}\""));
            let got = receiver.on_arrived(Time::ZERO, Arrived { marked: true, ..packet(5, 0, 90, 0) });
            assert_eq!((got.reply.is_some(), got.echo, got.cnp), (flagged, flagged, !flagged));
        }
    }
}
