//! The parts of queue pairs: what all those of a NIC have in common exists once, so that tens of thousands of
//! queue pairs fit the caches of the machine that simulates them.

use crate::ack::AckRules;
use crate::notification::MarkRules;
use crate::receiver::{self, Answers};
use crate::scoreboard;
use crate::selective::{self, Report};
use crate::sender::{self, Sender};
use crate::transport::{go_back_n, mp_rdma};
use crate::{AnyCongestion, CongestionConfig, NicConfig, Reacting};
use model::annex::{Notice, NoticeRules, Selective};
use model::draw::below;
use model::transport::{Progress, Reception, Reply};
use model::{Psn, Rate, Time};
use std::sync::Arc;

/// What a congestion control may want to know of the way between its hosts, on an idle fabric.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    /// From the start of a full packet to the arrival of its ACK.
    pub base_rtt: Time,
    /// The longest such time of any two hosts.
    pub longest_rtt: Time,
    /// Full packets that line rate sends in that time, rounded up.
    pub bdp: u32,
    /// Switches on the way.
    pub hops: u8,
    /// Payload of a full packet, bytes.
    pub payload: u32,
    /// A full packet on the wire, preamble and gap included, bytes.
    pub frame: u32,
    /// The rates of all links, as telemetry numbers them ([`model::Plan::rates`]).
    pub rates: Arc<[Rate]>,
}

impl Path {
    /// For a NIC of `line_rate` on a fabric that nobody knows: our choice, about that of three tiers with links of 1 us.
    pub(crate) fn unknown(line_rate: Rate) -> Self {
        let rtt = Time::from_us(10);
        let bdp = (line_rate.bps() / 1_000_000 * 10 / 8 / 1500) as u32 + 1;
        let rates = Arc::from([line_rate]);
        Path { base_rtt: rtt, longest_rtt: rtt, bdp, hops: 5, payload: 1438, frame: 1520, rates }
    }
}

/// Makes the ends of queue pairs and their controls, as one `[nic]` table says.
#[derive(Clone, Debug, PartialEq)]
pub struct Nic {
    config: NicConfig,
    /// One, or as many as the timer has ways to run.
    sending: Box<[Sending]>,
    receiving: Receiving,
}

/// The kind of sender, and what all those of a NIC have in common.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Sending {
    Counting(Arc<sender::Rules>),
    Scoreboard(Arc<scoreboard::Rules>),
    MpRdma(Arc<mp_rdma::Rules>),
}

/// The kind of receiver, and what all those of a NIC have in common.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Receiving {
    Keeping(Arc<receiver::Rules>),
    GoBackN(Arc<go_back_n::Rules>),
    Selective(Arc<selective::Rules>),
}

impl Nic {
    pub(crate) fn new(config: &NicConfig) -> Self {
        let timings = config.timeout.timings(config.backoff);
        // The last packet of a message is always acknowledged.
        let every = if config.ack_per_message { u32::MAX } else { config.ack_every };
        let answers = Answers {
            acks: AckRules { every, duplicates: config.ack_duplicates },
            marks: MarkRules { cnp: config.cnp, interval: config.cnp_interval },
        };
        Nic {
            sending: timings.into_iter().map(|timing| config.transport.sending(timing)).collect(),
            receiving: config.transport.receiving(answers),
            config: config.clone(),
        }
    }

    /// The sending end of one queue pair, with the first of the timers if a preset draws one.
    pub fn sender(&self) -> AnySender {
        self.sender_by(0)
    }

    /// The sending end of one queue pair, with the timer that a uniform `draw` decides on.
    pub fn sender_by(&self, draw: u64) -> AnySender {
        match &self.sending[below(draw, self.sending.len())] {
            Sending::Counting(rules) => AnySender::Counting(Sender::new(rules.clone())),
            Sending::Scoreboard(rules) => {
                AnySender::Scoreboard(Box::new(scoreboard::Sender::new(rules.clone())))
            }
            Sending::MpRdma(rules) => AnySender::MpRdma(Box::new(mp_rdma::Sender::new(rules.clone()))),
        }
    }

    /// The receiving end of one queue pair.
    pub fn receiver(&self) -> AnyReceiver {
        self.receiver_with(None)
    }

    /// The same for a sender that sends notices. Recovery modes whose receivers know none ignore them, see
    /// [`Nic::hears_notices`].
    pub fn receiver_with(&self, notices: Option<NoticeRules>) -> AnyReceiver {
        match &self.receiving {
            Receiving::Keeping(rules) => AnyReceiver::Keeping(receiver::Receiver::new(rules.clone())),
            Receiving::GoBackN(rules) => AnyReceiver::GoBackN(go_back_n::Receiver::new(rules.clone())),
            Receiving::Selective(rules) => {
                let mut rules = rules.clone();
                if notices.is_some() {
                    Arc::make_mut(&mut rules).notices = notices;
                }
                AnyReceiver::Selective(Box::new(selective::Receiver::new(rules)))
            }
        }
    }

    /// Whether its ends speak of single packets, which takes an annex ([`model::annex`]).
    pub fn is_selective(&self) -> bool {
        matches!(self.receiving, Receiving::Selective(_))
    }

    /// Whether its receivers know what to do with notices ([`model::annex::Notice`]).
    pub fn hears_notices(&self) -> bool {
        matches!(&self.receiving, Receiving::Selective(rules) if rules.report == Report::Missing)
    }

    /// See [`NicConfig::telemetry`].
    pub fn telemetry(&self) -> Option<u8> {
        self.config.telemetry()
    }

    /// Whether its congestion control wants to know the path of its queue pair, see [`Nic::congestion_over`].
    pub fn wants_path(&self) -> bool {
        match &self.config.congestion {
            CongestionConfig::MpRdma(config) => config.initial.is_none(),
            CongestionConfig::Hpcc(_) | CongestionConfig::Swift(_) => true,
            _ => self.config.window.is_some(),
        }
    }

    /// The same as [`Nic::congestion`], for controls that want to know the path of their queue pair.
    pub fn congestion_over(&self, line_rate: Rate, path: &Path) -> Reacting {
        let NicConfig { congestion, on_nack, on_timeout, window, window_scales_with_rate, .. } = &self.config;
        let control = match congestion {
            CongestionConfig::MpRdma(config) => {
                AnyCongestion::MpRdma(config.or_initial(path.bdp).control(line_rate))
            }
            CongestionConfig::Hpcc(config) => AnyCongestion::Hpcc(config.control_over(line_rate, path)),
            CongestionConfig::Swift(config) => AnyCongestion::Swift(config.control_over(line_rate, path)),
            other => other.control(line_rate),
        };
        let reacting = Reacting::new(control, *on_nack, *on_timeout);
        match window {
            Some(window) => reacting.within(window.cap(line_rate, path, *window_scales_with_rate)),
            None => reacting,
        }
    }

    /// The congestion control of one queue pair of a NIC of `line_rate`, with its reactions.
    pub fn congestion(&self, line_rate: Rate) -> Reacting {
        let NicConfig { congestion, on_nack, on_timeout, .. } = &self.config;
        Reacting::new(congestion.control(line_rate), *on_nack, *on_timeout)
    }
}

/// The sending end of any recovery mode.
pub enum AnySender {
    /// Counts what it has sent; of most modes in the list.
    Counting(Sender),
    /// Knows of single packets.
    Scoreboard(Box<scoreboard::Sender>),
    /// Counts what is under way; of `mp-rdma`.
    MpRdma(Box<mp_rdma::Sender>),
    /// One from elsewhere.
    Custom(Box<dyn model::Sender + Send>),
}

impl model::Sender for AnySender {
    #[inline]
    fn post(&mut self, packets: u64) {
        match self {
            Self::Counting(s) => s.post(packets),
            Self::Scoreboard(s) => s.post(packets),
            Self::MpRdma(s) => s.post(packets),
            Self::Custom(s) => s.post(packets),
        }
    }

    #[inline]
    fn next(&mut self, now: Time, window: u64) -> Option<(u64, bool)> {
        match self {
            Self::Counting(s) => s.next(now, window),
            Self::Scoreboard(s) => s.next(now, window),
            Self::MpRdma(s) => s.next(now, window),
            Self::Custom(s) => s.next(now, window),
        }
    }

    #[inline]
    fn ready(&self, window: u64) -> bool {
        match self {
            Self::Counting(s) => s.ready(window),
            Self::Scoreboard(s) => s.ready(window),
            Self::MpRdma(s) => s.ready(window),
            Self::Custom(s) => s.ready(window),
        }
    }

    fn room(&self, window: u64) -> u64 {
        match self {
            Self::Counting(s) => s.room(window),
            Self::Scoreboard(s) => s.room(window),
            Self::MpRdma(s) => s.room(window),
            Self::Custom(s) => s.room(window),
        }
    }

    #[inline]
    fn on_reply(&mut self, now: Time, reply: Reply) -> Progress {
        match self {
            Self::Counting(s) => s.on_reply(now, reply),
            Self::Scoreboard(s) => s.on_reply(now, reply),
            Self::MpRdma(s) => s.on_reply(now, reply),
            Self::Custom(s) => s.on_reply(now, reply),
        }
    }

    #[inline]
    fn on_selective(&mut self, now: Time, reply: Reply, selective: Selective) -> Progress {
        match self {
            Self::Counting(s) => s.on_reply(now, reply),
            Self::Scoreboard(s) => s.on_selective(now, reply, selective),
            Self::MpRdma(s) => s.on_selective(now, reply, selective),
            Self::Custom(s) => s.on_selective(now, reply, selective),
        }
    }

    #[inline]
    fn una(&self) -> u64 {
        match self {
            Self::Counting(s) => s.una(),
            Self::Scoreboard(s) => s.una(),
            Self::MpRdma(s) => s.una(),
            Self::Custom(s) => s.una(),
        }
    }

    fn high(&self) -> u64 {
        match self {
            Self::Counting(s) => s.high(),
            Self::Scoreboard(s) => s.high(),
            Self::MpRdma(s) => s.high(),
            Self::Custom(s) => s.high(),
        }
    }

    #[inline]
    fn deadline(&self) -> Time {
        match self {
            Self::Counting(s) => s.deadline(),
            Self::Scoreboard(s) => s.deadline(),
            Self::MpRdma(s) => s.deadline(),
            Self::Custom(s) => s.deadline(),
        }
    }

    fn on_timeout(&mut self, now: Time) {
        match self {
            Self::Counting(s) => s.on_timeout(now),
            Self::Scoreboard(s) => s.on_timeout(now),
            Self::MpRdma(s) => s.on_timeout(now),
            Self::Custom(s) => s.on_timeout(now),
        }
    }
}

/// The receiving end of any recovery mode.
pub enum AnyReceiver {
    /// Keeps what comes out of order.
    Keeping(receiver::Receiver),
    /// Drops it.
    GoBackN(go_back_n::Receiver),
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
            Self::GoBackN(r) => r.on_data(now, psn, marked, last),
            Self::Selective(r) => r.on_data(now, psn, marked, last),
            Self::Custom(r) => r.on_data(now, psn, marked, last),
        }
    }

    #[inline]
    fn expected(&self) -> u64 {
        match self {
            Self::Keeping(r) => r.expected(),
            Self::GoBackN(r) => r.expected(),
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
            Self::GoBackN(r) => r.on_notice(now, notice, marked),
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
            Self::GoBackN(r) => r.held(),
            Self::Selective(r) => r.held(),
            Self::Custom(r) => r.held(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A host keeps the state of a queue pair in one cache line where it receives and in two where it sends.
    #[test]
    fn a_queue_pair_is_small() {
        assert_eq!(size_of::<AnySender>(), 48);
        assert_eq!(size_of::<AnyReceiver>(), 48);
        assert_eq!(size_of::<Reacting>(), 24);
    }
}
