//! Receiver of the recovery modes that name single packets in replies.

use crate::ack::{Acks, Answers};
use crate::bitmap::{Bitmap, Insert};
use crate::notification::Marks;
use model::annex::{Notice, NoticeRules, Selective};
use model::transport::{Arrived, Fate, Inbound, Reception, Reply, Standing, Telling};
use model::{PortIndex, Psn, Time};
use std::ops::Range;
use std::sync::Arc;

/// Packets that replies name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(Hash))]
pub(crate) enum Report {
    /// Each gap once, when a packet arrives ahead of it.
    Missing,
    /// Each packet that arrives ahead of a gap.
    Arrived,
    /// Each packet, in an ACK of its own; a NACK stands for a packet that was discarded.
    Each,
}

/// Settings that all receivers of a NIC share.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(test, derive(Hash))]
pub struct Rules {
    pub(crate) answers: Answers,
    /// Number of packets from ePSN on that can be noted; packets beyond are discarded.
    pub(crate) window: u32,
    pub(crate) report: Report,
    pub(crate) notices: Option<NoticeRules>,
}

/// Keeps packets that arrive out of order, and tells the sender which are missing or have arrived.
#[derive(Clone, Debug)]
#[cfg_attr(test, derive(Hash))]
pub struct Receiver {
    expected: u64,
    ahead: Bitmap,
    held: u32,
    crowded: bool,
    /// All gaps before this packet have been reported.
    reported: u64,
    /// Gaps among these packets, and gaps after them, are not reported before this time.
    hold: (Range<u64>, Time),
    /// Highest packet that has arrived, or ePSN if that is higher. All gaps lie before this packet.
    seen: u64,
    selective: Selective,
    marks: Marks,
    acks: Acks,
    rules: Arc<Rules>,
}

impl Receiver {
    pub(crate) fn new(rules: Arc<Rules>) -> Self {
        Receiver {
            expected: 0,
            ahead: Bitmap::default(),
            held: 0,
            crowded: false,
            reported: 0,
            hold: (0..0, Time::ZERO),
            seen: 0,
            selective: Selective::Nothing,
            marks: Marks::default(),
            acks: Acks::default(),
            rules,
        }
    }

    fn in_order(&mut self, now: Time, last: bool) -> (Fate, Option<Reply>) {
        let next = self.expected.wrapping_add(1);
        self.expected = self.ahead.advance(self.expected);
        self.held -= (self.expected - next) as u32;
        self.look_around();
        self.seen = self.seen.max(self.expected);
        // A gap that was held back because of a notice may be due.
        if self.reported < self.seen && self.rules.report == Report::Missing {
            self.selective = self.next_gap(now, self.seen);
            if self.selective != Selective::Nothing {
                return (Fate::Accepted, Some(self.acks.nack(self.expected)));
            }
        }
        let urgent = last || self.expected != next;
        (Fate::Accepted, self.acks.on_packet(&self.rules.answers.acks, self.expected, urgent))
    }

    fn on_ahead(&mut self, now: Time, ahead: u32, last: bool) -> (Fate, Option<Reply>) {
        let seq = self.expected + u64::from(ahead);
        let fate = if ahead >= self.rules.window {
            Fate::Discarded
        } else {
            match self.ahead.insert(self.expected, ahead) {
                Insert::New => Fate::Accepted,
                Insert::Present => Fate::Duplicate,
            }
        };
        self.held += u32::from(fate == Fate::Accepted);
        if fate == Fate::Accepted {
            self.seen = self.seen.max(seq);
        }
        self.look_around();
        self.selective = match self.rules.report {
            Report::Missing => self.next_gap(now, seq),
            Report::Arrived | Report::Each if fate == Fate::Discarded => Selective::Nothing,
            Report::Arrived | Report::Each => Selective::Arrived(Psn::from_seq(seq)),
        };
        let silent = match self.rules.report {
            Report::Missing | Report::Arrived => self.selective == Selective::Nothing,
            Report::Each => fate != Fate::Discarded,
        };
        let reply = match silent {
            true => self.acks.on_packet(&self.rules.answers.acks, self.expected, last),
            false => Some(self.acks.nack(self.expected)),
        };
        (fate, reply)
    }

    /// Next gap before `seq` that may be reported; marks it as reported. Further gaps are left to later packets.
    fn next_gap(&mut self, now: Time, seq: u64) -> Selective {
        let mut first = self.reported.max(self.expected);
        while first < seq && self.has(first) {
            first += 1;
        }
        self.reported = self.reported.max(first);
        let (quiet, until) = &self.hold;
        let quiet = if now < *until { quiet.clone() } else { 0..0 };
        if first >= seq || quiet.contains(&first) {
            return Selective::Nothing;
        }
        let mut most = seq.min(first + u64::from(u16::MAX));
        if first < quiet.start {
            most = most.min(quiet.start);
        }
        let mut end = first;
        while end < most && !self.has(end) {
            end += 1;
        }
        self.reported = end;
        Selective::Missing { first: Psn::from_seq(first), count: (end - first) as u16 }
    }

    fn has(&self, seq: u64) -> bool {
        seq > self.expected && self.ahead.contains(self.expected, (seq - self.expected) as u32)
    }

    fn look_around(&mut self) {
        if let Some(rules) = &self.rules.notices {
            self.crowded = self.held > if self.crowded { rules.low } else { rules.high };
        }
    }

    /// Handles a data packet.
    fn take(&mut self, now: Time, Arrived { psn, marked, last, .. }: Arrived) -> Reception {
        self.selective = Selective::Nothing;
        if self.rules.report == Report::Each {
            self.selective = Selective::Arrived(psn);
        }
        let distance = psn.distance_from(Psn::from_seq(self.expected));
        let (fate, reply) = match distance {
            0 => self.in_order(now, last),
            ahead @ 1.. => self.on_ahead(now, ahead as u32, last),
            _ => (Fate::Duplicate, self.acks.on_duplicate(&self.rules.answers.acks, self.expected)),
        };
        self.marks.reception(&self.rules.answers.marks, now, marked, fate, distance > 0, reply)
    }

    /// After a marked notice the receiver waits: the sender's new path is congested, so packets in flight on the old one may
    /// well arrive in time. After an unmarked notice they will not, so the receiver requests missing packets at once, which
    /// does not count as a loss (DLBF, notification packets).
    fn on_notice(&mut self, now: Time, notice: Notice, marked: bool) -> Reception {
        self.selective = Selective::Nothing;
        let before = notice.first.distance_from(Psn::from_seq(self.expected));
        let start = self.expected.saturating_add_signed(i64::from(before));
        let end = start + u64::from(notice.count);
        if let Some(rules) = &self.rules.notices
            && end > self.expected
            && end - self.expected <= u64::from(self.rules.window)
        {
            if !marked {
                self.hold.1 = now;
                self.selective = self.next_gap(now, end);
            } else if now < self.hold.1 {
                // Another range joins the current hold, without prolonging it.
                self.hold.0 = self.hold.0.start.min(start)..self.hold.0.end.max(end);
            } else {
                self.hold = (start..end, Time(now.ps().saturating_add(rules.patience.ps())));
            }
        }
        let reply = self.acks.on_packet(&self.rules.answers.acks, self.expected, true);
        self.marks.reception(&self.rules.answers.marks, now, marked, Fate::Discarded, false, reply)
    }
}

impl model::Receiver for Receiver {
    fn on_arrival(&mut self, now: Time, inbound: Inbound) -> (Reception, Standing) {
        let got = match inbound {
            Inbound::Data(packet) => self.take(now, packet),
            Inbound::Notice { notice, marked } => self.on_notice(now, notice, marked),
            Inbound::Headers { .. } | Inbound::Probe => Reception::IGNORED,
        };
        (got, self.standing())
    }

    #[inline]
    fn standing(&self) -> Standing {
        Standing { held: self.held.into(), ..Standing::at(self.expected) }
    }

    #[inline]
    fn kept(&self) -> u64 {
        self.held.into()
    }

    #[inline]
    fn telling(&self, _: u16, _: PortIndex) -> Telling {
        Telling { selective: self.selective, crowded: self.crowded, ..Telling::default() }
    }
}
