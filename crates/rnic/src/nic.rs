//! Parts of queue pairs. Settings that all queue pairs of a NIC share exist once, so that tens of thousands of queue pairs
//! fit the caches of the machine that simulates them.

use crate::ends::{AnyReceiver, AnySender, Receiving, Sending};
use crate::ingress::Ingress;
use crate::messages::Messages;
use crate::notification::{Cnp, CnpScope, SelfCnp};
use crate::or_off::OrOff;
use crate::path::Path;
use crate::window::Window;
use crate::{Evidence, Grants, NicConfig, Reacting, Unit};
use model::annex::NoticeRules;
use model::draw::below;
use model::{IngressLosses, MessageGaps, Rate, Time};

/// Builds the ends of queue pairs and their congestion controls from one `[nic]` table.
#[derive(Clone, Debug, PartialEq)]
pub struct Nic {
    config: NicConfig,
    /// One entry, or one for each timing of the timer.
    sending: Box<[Sending]>,
    receiving: Receiving,
}

impl Nic {
    pub(crate) fn new(config: &NicConfig) -> Self {
        let timings = config.timeout.timings(config.backoff);
        Nic {
            sending: timings.into_iter().map(|timing| config.transport.sending(timing)).collect(),
            receiving: config.transport.receiving(config.answers()),
            config: config.clone(),
        }
    }

    /// Sender of one queue pair, with the first of the timings if a preset has several.
    pub fn sender(&self) -> AnySender {
        self.sender_by(0)
    }

    /// Sender of one queue pair, with the timing that the uniform `draw` selects.
    pub fn sender_by(&self, draw: u64) -> AnySender {
        self.sending[below(draw, self.sending.len())].sender()
    }

    /// Receiver of one queue pair.
    pub fn receiver(&self) -> AnyReceiver {
        self.receiver_with(None)
    }

    /// Receiver of one queue pair whose sender sends notices. Recovery modes without notices ignore them, see
    /// [`Nic::hears_notices`].
    pub fn receiver_with(&self, notices: Option<NoticeRules>) -> AnyReceiver {
        self.receiving.receiver(notices)
    }

    /// Most packets of `payload` bytes that one queue pair has outstanding by its recovery mode, and by `window` if its size is
    /// fixed. The congestion control may allow fewer.
    pub fn most_outstanding(&self, payload: u32) -> u64 {
        let most = self.sending.iter().map(Sending::most_outstanding).max().unwrap_or(0).into();
        match self.config.window {
            Some(Window::Bytes(bytes)) => bytes.get().div_ceil(payload.max(1).into()).min(most),
            _ => most,
        }
    }

    /// Data packets per ACK, [`u32::MAX`] if it acknowledges whole messages.
    pub fn per_ack(&self) -> u32 {
        self.config.answers().ack_every()
    }

    /// True if replies name single packets, which takes an annex ([`model::annex`]).
    pub fn is_selective(&self) -> bool {
        self.config.transport.facts().names_packets
    }

    /// True if replies carry SACKs ([`model::annex::Sack`]).
    pub fn sacks(&self) -> bool {
        self.config.transport.facts().sacks
    }

    /// Time from a change of one of its ports to its report, if it exchanges port status with its peers.
    pub fn port_notice(&self) -> Option<Time> {
        self.config.transport.port_notice()
    }

    /// Shortest time between two CNPs of a port, if its ports count CNPs over all queue pairs.
    pub fn cnp_interval_of_port(&self) -> Option<Time> {
        (self.config.cnp_interval_per == CnpScope::Port).then_some(self.config.cnp_interval)
    }

    /// Least times between the starts of two messages, if a rate limits them.
    pub fn message_gaps(&self) -> Option<MessageGaps> {
        OrOff::get(self.config.messages).map(Messages::gaps)
    }

    /// CNPs that receivers send without marks.
    pub fn self_cnp(&self) -> Option<SelfCnp> {
        OrOff::get(self.config.self_cnp).filter(|_| self.config.cnp == Cnp::Frame)
    }

    /// Losses of receivers whose port is nearly full.
    pub fn ingress_losses(&self) -> Option<IngressLosses> {
        OrOff::get(self.config.ingress).map(Ingress::losses)
    }

    /// Credit that receivers grant, see [`crate::ControlFacts::grants`].
    pub fn grants(&self) -> Option<Grants> {
        self.config.congestion.facts().grants
    }

    /// True if receivers act on notices ([`model::annex::Notice`]).
    pub fn hears_notices(&self) -> bool {
        self.config.transport.facts().heeds_notices
    }

    /// Evidence of congestion that the congestion control uses.
    pub fn evidence(&self) -> Evidence {
        self.config.congestion.facts().evidence
    }

    /// Hops of the telemetry area, see [`NicConfig::telemetry`].
    pub fn telemetry(&self) -> Option<u8> {
        self.config.telemetry()
    }

    /// True if the parts of a queue pair depend on its path, see [`Nic::congestion_over`].
    pub fn wants_path(&self) -> bool {
        let facts = self.config.congestion.facts();
        facts.needs_path
            || self.config.window.is_some()
            || facts.window != self.unit()
            || self.config.transport.probes()
    }

    /// [`Nic::congestion`] for a queue pair with a known path, within the limit of `window`.
    pub fn congestion_over(&self, line_rate: Rate, path: &Path) -> Reacting {
        let NicConfig { congestion, on_nack, on_timeout, window, window_scales_with_rate, .. } = &self.config;
        let reacting = Reacting::new(congestion.control(line_rate, Some(path)), *on_nack, *on_timeout)
            .counting(congestion.facts().window, self.unit(), path.mtu);
        match window {
            Some(window) => {
                let packet = if self.unit() == Unit::Bytes { path.mtu } else { 1 };
                reacting.within(window.cap(line_rate, path, *window_scales_with_rate, packet))
            }
            None => reacting,
        }
    }

    /// Unit in which the senders count their windows.
    fn unit(&self) -> Unit {
        if self.sacks() { Unit::Bytes } else { Unit::Packets }
    }

    /// Congestion control of one queue pair of a NIC of `line_rate`, with its reactions.
    pub fn congestion(&self, line_rate: Rate) -> Reacting {
        let NicConfig { congestion, on_nack, on_timeout, .. } = &self.config;
        Reacting::new(congestion.control(line_rate, None), *on_nack, *on_timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selective::receiver::Report;
    use crate::tests::ReceiverCalls as _;
    use crate::{OnNack, SackingReceiver, SackingSender, TransportConfig};
    use model::transport::{Fate, Reply};
    use model::{Psn, Time};

    /// A host keeps the state of a queue pair in one cache line where it receives and in two where it sends.
    #[test]
    fn a_queue_pair_is_small() {
        assert_eq!(size_of::<AnySender>(), 48);
        assert_eq!(size_of::<AnyReceiver>(), 48);
        assert_eq!(size_of::<Reacting>(), 24);
    }

    /// With SACKs a host keeps pointers there. The ends and the control take few cache lines of their own.
    #[test]
    fn a_queue_pair_with_sacks_takes_few_cache_lines() {
        assert_eq!((size_of::<SackingSender>(), size_of::<SackingReceiver>()), (16, 16));
        assert_eq!(size_of::<crate::sack::sender::Sender>(), 256);
        assert_eq!(size_of::<crate::sack::receiver::Receiver>(), 128);
        assert_eq!(size_of::<crate::sack::reply_paths::Probed>(), 64);
        assert!(size_of::<crate::congestion::nscc::Nscc>() <= 128);
    }

    #[test]
    fn every_mode_has_the_ends_that_it_declares() {
        for transport in TransportConfig::all() {
            let (name, facts) = (transport.name(), transport.facts());
            let nic = Nic::new(&NicConfig { transport, ..NicConfig::default() });
            let (mut names_packets, mut heeds_notices) = (false, false);
            if let Receiving::Selective(rules) = &nic.receiving {
                (names_packets, heeds_notices) = (true, rules.report == Report::Missing);
            }
            assert_eq!((facts.names_packets, facts.heeds_notices), (names_packets, heeds_notices), "{name}");
            let mut receiver = nic.receiver();
            let ahead = receiver.on_data(Time::ZERO, Psn::new(1), false, false);
            assert_eq!(facts.keeps_out_of_order, ahead.fate == Fate::Accepted, "{name}");
            if facts.on_nack == OnNack::Unused {
                assert!(!matches!(ahead.reply, Some(Reply::Nack(_))), "{name}");
            }
        }
    }
}
