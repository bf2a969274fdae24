//! A receiver that reports the packets that have arrived in a map, and counts their bytes.

use crate::bitmap::{Bitmap, Insert};
use crate::notification::{MarkRules, Marks};
use crate::sack::penalty::{self, Penalty};
use crate::sack::reply_paths::{Probed, ReplyPaths};
use model::annex::Sack;
use model::transport::{Arrived, Fate, Inbound, Overdue, Reception, Reply, Standing, Telling};
use model::{PortIndex, Psn, Time};
use std::sync::Arc;

/// Settings that all receivers of a NIC share.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(test, derive(Hash))]
pub struct Rules {
    pub(crate) marks: MarkRules,
    /// Number of packets from ePSN on that can be noted; packets beyond are discarded.
    pub(crate) window: u32,
    /// Bytes after which an ACK is due.
    pub(crate) ack_bytes: u32,
    /// Least number of bytes that a packet counts towards the next ACK.
    pub(crate) least: u32,
    /// Time after which a packet is acknowledged at the latest; [`Time::NEVER`] if packets wait for others.
    pub(crate) ack_wait: Time,
    pub(crate) reply_paths: ReplyPaths,
    pub(crate) penalties: Vec<Penalty>,
}

/// The receiver of a queue pair, in two cache lines.
#[derive(Clone, Debug)]
#[cfg_attr(test, derive(Hash))]
#[repr(align(64))]
pub struct Receiver {
    expected: u64,
    ahead: Bitmap,
    held: u32,
    /// Bytes of all packets, each counted once.
    bytes: u32,
    /// Bytes towards the next ACK.
    pending: u32,
    /// Time at which an ACK is due in any case; [`Time::NEVER`] without one.
    ack_at: Time,
    /// The last data packet.
    last: Psn,
    /// True before the first packet.
    fresh: bool,
    /// True if a packet has asked for an ACK while packets before it were missing.
    owed: bool,
    sack: Sack,
    marks: Marks,
    /// Under [`ReplyPaths::Probed`].
    probed: Option<Box<Probed>>,
    rules: Arc<Rules>,
}

/// Bits of the map.
const MAP: u64 = 64;

impl Receiver {
    pub(crate) fn new(rules: Arc<Rules>) -> Self {
        Receiver {
            expected: 0,
            ahead: Bitmap::default(),
            held: 0,
            bytes: 0,
            pending: 0,
            ack_at: Time::NEVER,
            last: Psn::new(0),
            fresh: true,
            owed: false,
            sack: Sack::default(),
            marks: Marks::default(),
            probed: (rules.reply_paths == ReplyPaths::Probed).then(|| Box::new(Probed::new())),
            rules,
        }
    }

    /// Notes a packet.
    #[inline(always)]
    fn insert(&mut self, ahead: i32) -> Fate {
        match ahead {
            ..0 => Fate::Duplicate,
            0 => {
                let next = self.expected.wrapping_add(1);
                self.expected = self.ahead.advance(self.expected);
                self.held -= (self.expected - next) as u32;
                Fate::Accepted
            }
            _ if ahead as u32 >= self.rules.window => Fate::Discarded,
            _ => match self.ahead.insert(self.expected, ahead as u32) {
                Insert::New => {
                    self.held += 1;
                    Fate::Accepted
                }
                Insert::Present => Fate::Duplicate,
            },
        }
    }

    /// Fills the report of a reply to this packet.
    fn report(&mut self, psn: Psn, cut: bool, last_hop: bool) {
        let ahead = psn.distance_from(Psn::from_seq(self.expected));
        // The map ends with this packet, unless it would begin before the first packet that ePSN leaves open.
        let start = (i64::from(ahead) - (MAP as i64 - 1)).max(1) as u64;
        let bits = if self.held == 0 { 0 } else { self.ahead.word(self.expected, start as u32) };
        self.sack = Sack {
            base: Psn::from_seq(self.expected + start),
            bits,
            cause: psn,
            arrived: self.bytes,
            ahead: u16::try_from(self.held).unwrap_or(u16::MAX),
            cut,
            last_hop,
            probe: false,
            // A probe gets the penalty of the last packet.
            ..self.sack
        };
    }

    /// Notes the penalty that applies now.
    #[inline]
    fn penalise(&mut self, now: Time) {
        if !self.rules.penalties.is_empty() {
            (self.sack.penalty, self.sack.restore) = penalty::at(&self.rules.penalties, now);
        }
    }

    /// Handles a data packet.
    #[inline(always)]
    fn take(&mut self, now: Time, packet: Arrived) -> Reception {
        let Arrived { psn, frame, marked, asks, .. } = packet;
        self.penalise(now);
        let ahead = psn.distance_from(Psn::from_seq(self.expected));
        if let Some(probed) = &mut self.probed {
            probed.note_data();
        }
        let fate = self.insert(ahead);
        if fate == Fate::Accepted {
            self.bytes = self.bytes.wrapping_add(frame);
            self.pending = self.pending.saturating_add(frame.max(self.rules.least));
            self.ack_at = self.ack_at.min(Time(now.ps().saturating_add(self.rules.ack_wait.ps())));
        }
        self.last = psn;
        let settled = self.owed && self.held == 0;
        self.owed = (self.owed || asks) && self.held > 0;
        let due = marked
            || asks
            || settled
            || self.fresh
            || self.pending >= self.rules.ack_bytes
            || fate == Fate::Duplicate;
        self.fresh = false;
        let reply = (due && fate != Fate::Discarded).then(|| {
            self.report(psn, false, false);
            self.ack()
        });
        self.marks.reception(&self.rules.marks, now, marked, fate, ahead > 0, reply)
    }

    fn ack(&mut self) -> Reply {
        (self.pending, self.ack_at) = (0, Time::NEVER);
        Reply::Ack(Psn::from_seq(self.expected.wrapping_sub(1)))
    }

    /// The headers of a packet ask for it at once, unless it has arrived before.
    fn on_cut(&mut self, now: Time, psn: Psn, marked: bool, last_hop: bool) -> Reception {
        self.penalise(now);
        let ahead = psn.distance_from(Psn::from_seq(self.expected));
        if let Some(probed) = &mut self.probed {
            probed.note_data();
        }
        let known = ahead < 0 || ahead > 0 && self.ahead.contains(self.expected, ahead as u32);
        self.report(psn, !known, !known && last_hop);
        let reply = match known {
            true => self.ack(),
            false => Reply::Nack(Psn::from_seq(self.expected)),
        };
        self.marks.reception(&self.rules.marks, now, marked, Fate::Discarded, false, Some(reply))
    }

    /// Answers a probe. The map of the answer begins after ePSN.
    fn on_probe(&mut self) -> Reply {
        self.report(Psn::from_seq(self.expected), false, false);
        self.sack.probe = true;
        self.ack()
    }

    /// Entropy of a reply by this port to a packet with this entropy.
    #[inline]
    fn reply_entropy(&self, of_packet: u16, port: PortIndex) -> u16 {
        match &self.probed {
            // Our choice: replies of a queue pair that knows no path yet share none, as a dead one would lose all of them.
            Some(probed) => probed.entropy(port).unwrap_or(of_packet),
            None if self.rules.reply_paths == ReplyPaths::OfPacket => of_packet,
            None => 0,
        }
    }
}

impl model::Receiver for Receiver {
    #[inline]
    fn fetch(&self) {
        let entropy = self.probed.as_ref().and_then(|probed| probed.entropy(PortIndex(0)));
        std::hint::black_box((self.expected, self.held, self.sack.bits, &self.rules, entropy));
    }

    #[inline(always)]
    fn on_arrival(&mut self, now: Time, inbound: Inbound) -> (Reception, Standing) {
        let got = match inbound {
            Inbound::Data(packet) => self.take(now, packet),
            Inbound::Headers { psn, marked, last_hop } => self.on_cut(now, psn, marked, last_hop),
            Inbound::Probe => Reception { reply: Some(self.on_probe()), ..Reception::IGNORED },
            Inbound::Notice { .. } => Reception::IGNORED,
        };
        (got, self.standing())
    }

    #[inline]
    fn standing(&self) -> Standing {
        let deadline = self.probed.as_ref().map_or(Time::NEVER, |probed| probed.deadline());
        Standing {
            held: self.held.into(),
            deadline: deadline.min(self.ack_at),
            ..Standing::at(self.expected)
        }
    }

    #[inline]
    fn telling(&self, of_packet: u16, port: PortIndex) -> Telling {
        let entropy = self.reply_entropy(of_packet, port);
        Telling { sack: self.sack, entropy, ..Telling::default() }
    }

    fn on_deadline(&mut self, now: Time) -> Overdue {
        let reply = (self.ack_at <= now).then(|| {
            self.report(self.last, false, false);
            (self.ack(), false)
        });
        Overdue { probe: self.probed.as_mut().and_then(|probed| probed.take(now)), reply }
    }

    fn on_probed(&mut self, entropy: u16, round_trip: Time, port: PortIndex) {
        if let Some(probed) = &mut self.probed {
            probed.on_answer(entropy, round_trip, port);
        }
    }
}

#[cfg(test)]
mod tests;
