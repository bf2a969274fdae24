//! Receiver of the recovery modes that drop packets which arrive out of order.

use crate::ack::{Acks, Answers};
use crate::notification::Marks;
use model::transport::{Arrived, Fate, Inbound, Plain, Reception, Standing};
use model::{Psn, Time};
use std::sync::Arc;

/// Settings that all receivers of a NIC share.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(test, derive(Hash))]
pub(crate) struct Rules {
    pub(crate) answers: Answers,
    /// Time between two NACKs of the same gap.
    pub(crate) renack: Time,
    /// Whether a packet that has been sent again causes another NACK while the gap is still open.
    pub(crate) renack_after_rewind: bool,
}

/// Receiver of one queue pair. The first packet after a gap causes a NACK in place of its ACK; later packets are silently
/// dropped until the gap is closed, or until one of them shows that the sender has gone back.
#[derive(Clone, Debug)]
#[cfg_attr(test, derive(Hash))]
pub struct Receiver {
    expected: u64,
    /// Earliest time of the next NACK for the gap at `expected`.
    nack_after: Time,
    marks: Marks,
    rules: Arc<Rules>,
    acks: Acks,
    /// Distance of the last dropped packet from the gap; unused before the gap's first NACK.
    ahead: u32,
}

impl Receiver {
    pub(crate) fn new(rules: Arc<Rules>) -> Self {
        let (marks, acks) = (Marks::default(), Acks::default());
        Receiver { expected: 0, nack_after: Time::ZERO, marks, rules, acks, ahead: 0 }
    }

    /// Handles a data packet.
    #[inline]
    fn take(&mut self, now: Time, Arrived { psn, marked, last, .. }: Arrived) -> Reception {
        let acks = &self.rules.answers.acks;
        let distance = psn.distance_from(Psn::from_seq(self.expected));
        let (fate, reply) = if distance == 0 {
            self.expected = self.expected.wrapping_add(1);
            self.nack_after = Time::ZERO;
            (Fate::Accepted, self.acks.on_packet(acks, self.expected, last))
        } else if distance < 0 {
            (Fate::Duplicate, self.acks.on_duplicate(acks, self.expected))
        } else {
            let ahead = distance as u32;
            // Only a sender that has gone back sends a packet that is no later than the one before it.
            let rewound = self.rules.renack_after_rewind && ahead <= self.ahead;
            let nack = now >= self.nack_after || rewound;
            self.ahead = ahead;
            if nack {
                self.nack_after = Time(now.ps().saturating_add(self.rules.renack.ps()));
            }
            (Fate::Discarded, nack.then(|| self.acks.nack(self.expected)))
        };
        self.marks.reception(&self.rules.answers.marks, now, marked, fate, distance > 0, reply)
    }
}

impl model::Receiver for Receiver {
    #[inline]
    fn on_plain(&mut self, psn: Psn) -> Option<Plain> {
        if psn != Psn::from_seq(self.expected) || !self.rules.answers.acks.each() {
            return None;
        }
        self.expected = self.expected.wrapping_add(1);
        self.nack_after = Time::ZERO;
        Some(Plain { psn, nack: false, out_of_order: false })
    }

    #[inline]
    fn on_arrival(&mut self, now: Time, inbound: Inbound) -> (Reception, Standing) {
        let got = match inbound {
            Inbound::Data(packet) => self.take(now, packet),
            _ => Reception::IGNORED,
        };
        (got, self.standing())
    }

    #[inline]
    fn standing(&self) -> Standing {
        Standing::at(self.expected)
    }

    #[inline]
    fn kept(&self) -> u64 {
        0
    }
}
