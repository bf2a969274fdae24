//! Receiver of the recovery modes that keep packets which arrive out of order.

use crate::ack::{Acks, Answers};
use crate::bitmap::{Bitmap, Insert};
use crate::notification::Marks;
use model::transport::{Arrived, Fate, Inbound, Plain, Reception, Reply, Standing};
use model::{Psn, Time};
use std::sync::Arc;

/// Settings that all receivers of a NIC share.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(test, derive(Hash))]
pub(crate) struct Rules {
    pub(crate) answers: Answers,
    /// Number of packets from ePSN on that can be noted; packets beyond are discarded.
    pub(crate) window: u32,
    /// True if the first packet ahead of an ePSN is answered with a NACK.
    pub(crate) nack: bool,
}

/// Keeps packets that arrive out of order and notes them in a bitmap. NACKs each ePSN once, or never.
#[derive(Clone, Debug)]
#[cfg_attr(test, derive(Hash))]
pub struct Receiver {
    expected: u64,
    ahead: Bitmap,
    marks: Marks,
    rules: Arc<Rules>,
    acks: Acks,
    /// True if `expected` was NACKed.
    nacked: bool,
}

impl Receiver {
    pub(crate) fn new(rules: Arc<Rules>) -> Self {
        Receiver {
            expected: 0,
            ahead: Bitmap::default(),
            marks: Marks::default(),
            rules,
            acks: Acks::default(),
            nacked: false,
        }
    }

    /// Takes a packet `ahead` of ePSN; returns its fate and the reply.
    fn on_ahead(&mut self, ahead: u32, last: bool) -> (Fate, Option<Reply>) {
        let fate = if ahead >= self.rules.window {
            Fate::Discarded
        } else {
            match self.ahead.insert(self.expected, ahead) {
                Insert::New => Fate::Accepted,
                Insert::Present => Fate::Duplicate,
            }
        };
        let acks = &self.rules.answers.acks;
        let reply = if self.rules.nack && !self.nacked {
            self.nacked = true;
            Some(self.acks.nack(self.expected))
        } else if !self.rules.nack && fate == Fate::Duplicate {
            self.acks.on_duplicate(acks, self.expected)
        } else {
            self.acks.on_packet(acks, self.expected, last)
        };
        (fate, reply)
    }

    /// Handles a data packet.
    #[inline]
    fn take(&mut self, now: Time, Arrived { psn, marked, last, .. }: Arrived) -> Reception {
        let distance = psn.distance_from(Psn::from_seq(self.expected));
        let (fate, reply) = if distance == 0 {
            let next = self.expected.wrapping_add(1);
            self.expected = self.ahead.advance(self.expected);
            self.nacked = false;
            let urgent = last || self.expected != next;
            (Fate::Accepted, self.acks.on_packet(&self.rules.answers.acks, self.expected, urgent))
        } else if distance < 0 {
            (Fate::Duplicate, self.acks.on_duplicate(&self.rules.answers.acks, self.expected))
        } else {
            self.on_ahead(distance as u32, last)
        };
        self.marks.reception(&self.rules.answers.marks, now, marked, fate, distance > 0, reply)
    }
}

impl model::Receiver for Receiver {
    #[inline]
    fn on_plain(&mut self, psn: Psn) -> Option<Plain> {
        let Rules { answers, window, nack: nacks } = &*self.rules;
        let distance = psn.distance_from(Psn::from_seq(self.expected));
        if !answers.acks.each() {
            return None;
        }
        if distance == 0 {
            self.expected = self.ahead.advance_near(self.expected)?;
        } else if distance < 0 || distance as u32 >= *window || !self.ahead.insert_near(distance as u32) {
            return None;
        }
        let out_of_order = distance > 0;
        let nack = out_of_order && *nacks && !self.nacked;
        self.nacked = out_of_order && *nacks;
        // A NACK names ePSN, and an ACK the packet before.
        let psn = Psn::from_seq(self.expected.wrapping_sub(u64::from(!nack)));
        Some(Plain { psn, nack, out_of_order })
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
        self.ahead.reach()
    }
}
