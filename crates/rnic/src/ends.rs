//! The two ends of a queue pair: the kinds of sender and receiver that recovery modes choose from.

use crate::sender::{self, Sender};
use crate::{in_order, receiver, scoreboard, selective, under_way};
use model::annex::{Notice, NoticeRules, Selective};
use model::transport::{Progress, Reception, Reply};
use model::{Psn, Time};
use std::sync::Arc;

/// The kind of sender, and what all those of a NIC have in common.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Sending {
    Counting(Arc<sender::Rules>),
    Scoreboard(Arc<scoreboard::Rules>),
    UnderWay(Arc<under_way::Rules>),
}

/// The kind of receiver, and what all those of a NIC have in common.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Receiving {
    Keeping(Arc<receiver::Rules>),
    InOrder(Arc<in_order::Rules>),
    Selective(Arc<selective::Rules>),
}

impl Sending {
    /// The sending end of one queue pair.
    pub(crate) fn sender(&self) -> AnySender {
        match self {
            Self::Counting(rules) => AnySender::Counting(Sender::new(rules.clone())),
            Self::Scoreboard(rules) => {
                AnySender::Scoreboard(Box::new(scoreboard::Sender::new(rules.clone())))
            }
            Self::UnderWay(rules) => AnySender::UnderWay(Box::new(under_way::Sender::new(rules.clone()))),
        }
    }
}

impl Receiving {
    /// The receiving end of one queue pair; only a [`Receiving::Selective`] one acts on `notices`.
    pub(crate) fn receiver(&self, notices: Option<NoticeRules>) -> AnyReceiver {
        match self {
            Self::Keeping(rules) => AnyReceiver::Keeping(receiver::Receiver::new(rules.clone())),
            Self::InOrder(rules) => AnyReceiver::InOrder(in_order::Receiver::new(rules.clone())),
            Self::Selective(rules) => {
                let mut rules = rules.clone();
                if notices.is_some() {
                    Arc::make_mut(&mut rules).notices = notices;
                }
                AnyReceiver::Selective(Box::new(selective::Receiver::new(rules)))
            }
        }
    }
}

/// The sending end of any recovery mode.
pub enum AnySender {
    /// Counts what it has sent; of most modes in the list.
    Counting(Sender),
    /// Knows of single packets.
    Scoreboard(Box<scoreboard::Sender>),
    /// Bounds the packets under way; of `mp-rdma`.
    UnderWay(Box<under_way::Sender>),
    /// One from elsewhere.
    Custom(Box<dyn model::Sender + Send>),
}

impl model::Sender for AnySender {
    #[inline]
    fn post(&mut self, packets: u64) {
        match self {
            Self::Counting(s) => s.post(packets),
            Self::Scoreboard(s) => s.post(packets),
            Self::UnderWay(s) => s.post(packets),
            Self::Custom(s) => s.post(packets),
        }
    }

    #[inline]
    fn next(&mut self, now: Time, window: u64) -> Option<(u64, bool)> {
        match self {
            Self::Counting(s) => s.next(now, window),
            Self::Scoreboard(s) => s.next(now, window),
            Self::UnderWay(s) => s.next(now, window),
            Self::Custom(s) => s.next(now, window),
        }
    }

    #[inline]
    fn ready(&self, window: u64) -> bool {
        match self {
            Self::Counting(s) => s.ready(window),
            Self::Scoreboard(s) => s.ready(window),
            Self::UnderWay(s) => s.ready(window),
            Self::Custom(s) => s.ready(window),
        }
    }

    fn room(&self, window: u64) -> u64 {
        match self {
            Self::Counting(s) => s.room(window),
            Self::Scoreboard(s) => s.room(window),
            Self::UnderWay(s) => s.room(window),
            Self::Custom(s) => s.room(window),
        }
    }

    #[inline]
    fn on_reply(&mut self, now: Time, reply: Reply) -> Progress {
        match self {
            Self::Counting(s) => s.on_reply(now, reply),
            Self::Scoreboard(s) => s.on_reply(now, reply),
            Self::UnderWay(s) => s.on_reply(now, reply),
            Self::Custom(s) => s.on_reply(now, reply),
        }
    }

    #[inline]
    fn on_selective(&mut self, now: Time, reply: Reply, selective: Selective) -> Progress {
        match self {
            Self::Counting(s) => s.on_reply(now, reply),
            Self::Scoreboard(s) => s.on_selective(now, reply, selective),
            Self::UnderWay(s) => s.on_selective(now, reply, selective),
            Self::Custom(s) => s.on_selective(now, reply, selective),
        }
    }

    #[inline]
    fn una(&self) -> u64 {
        match self {
            Self::Counting(s) => s.una(),
            Self::Scoreboard(s) => s.una(),
            Self::UnderWay(s) => s.una(),
            Self::Custom(s) => s.una(),
        }
    }

    fn high(&self) -> u64 {
        match self {
            Self::Counting(s) => s.high(),
            Self::Scoreboard(s) => s.high(),
            Self::UnderWay(s) => s.high(),
            Self::Custom(s) => s.high(),
        }
    }

    #[inline]
    fn deadline(&self) -> Time {
        match self {
            Self::Counting(s) => s.deadline(),
            Self::Scoreboard(s) => s.deadline(),
            Self::UnderWay(s) => s.deadline(),
            Self::Custom(s) => s.deadline(),
        }
    }

    fn on_timeout(&mut self, now: Time) {
        match self {
            Self::Counting(s) => s.on_timeout(now),
            Self::Scoreboard(s) => s.on_timeout(now),
            Self::UnderWay(s) => s.on_timeout(now),
            Self::Custom(s) => s.on_timeout(now),
        }
    }
}

/// The receiving end of any recovery mode.
pub enum AnyReceiver {
    /// Keeps what comes out of order.
    Keeping(receiver::Receiver),
    /// Drops it.
    InOrder(in_order::Receiver),
    /// Speaks of single packets.
    Selective(Box<selective::Receiver>),
    /// One from elsewhere.
    Custom(Box<dyn model::Receiver + Send>),
}

impl model::Receiver for AnyReceiver {
    #[inline]
    fn on_data(&mut self, now: Time, psn: Psn, marked: bool, last: bool) -> Reception {
        match self {
            Self::Keeping(r) => r.on_data(now, psn, marked, last),
            Self::InOrder(r) => r.on_data(now, psn, marked, last),
            Self::Selective(r) => r.on_data(now, psn, marked, last),
            Self::Custom(r) => r.on_data(now, psn, marked, last),
        }
    }

    #[inline]
    fn expected(&self) -> u64 {
        match self {
            Self::Keeping(r) => r.expected(),
            Self::InOrder(r) => r.expected(),
            Self::Selective(r) => r.expected(),
            Self::Custom(r) => r.expected(),
        }
    }

    #[inline]
    fn selective(&self) -> Selective {
        match self {
            Self::Selective(r) => r.selective(),
            Self::Custom(r) => r.selective(),
            _ => Selective::Nothing,
        }
    }

    fn on_notice(&mut self, now: Time, notice: Notice, marked: bool) -> Reception {
        match self {
            Self::Keeping(r) => r.on_notice(now, notice, marked),
            Self::InOrder(r) => r.on_notice(now, notice, marked),
            Self::Selective(r) => r.on_notice(now, notice, marked),
            Self::Custom(r) => r.on_notice(now, notice, marked),
        }
    }

    fn crowded(&self) -> bool {
        match self {
            Self::Selective(r) => r.crowded(),
            Self::Custom(r) => r.crowded(),
            _ => false,
        }
    }

    fn held(&self) -> u64 {
        match self {
            Self::Keeping(r) => r.held(),
            Self::InOrder(r) => r.held(),
            Self::Selective(r) => r.held(),
            Self::Custom(r) => r.held(),
        }
    }
}
