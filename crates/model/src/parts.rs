//! The pluggable parts of a run.

use crate::{
    Annex, Congestion, Granter, HostId, Plan, Probability, QpId, QpSite, Rate, Receiver, Scheme, Sender,
    Site, Steering, Time,
};

/// Least times between the starts of two messages at their sender; zero for no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageGaps {
    /// Between two messages of one queue pair.
    pub queue_pair: Time,
    /// Between two messages of all queue pairs of a NIC.
    pub nic: Time,
}

/// Losses of a receiving NIC: in each interval after one in which a port received more than a rate, bursts of losses begin at random.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IngressLosses {
    /// Length of an interval.
    pub interval: Time,
    /// Rate of data packets, preamble and gap included, that an interval must exceed.
    pub above: Rate,
    /// Probability that a burst begins with a packet that belongs to none.
    pub begins: Probability,
    /// Packets of a burst.
    pub burst: u32,
}

/// The parts of a run: their types, and a constructor for each. The engine is generic over this trait and names no part.
pub trait Parts {
    /// Load balancing of a switch.
    type Scheme: Scheme + Send;
    /// Sending end of a queue pair.
    type Sender: Sender + Send;
    /// Receiving end of a queue pair.
    type Receiver: Receiver + Send;
    /// Congestion control of a queue pair.
    type Congestion: Congestion + Send;
    /// Further fields of packets.
    type Annex: Annex;
    /// Load balancing at the sender of a queue pair.
    type Steering: Steering<Annex = Self::Annex> + Send;
    /// Credit that a host grants to its senders; `()` for none.
    type Granter: Granter + Send;

    /// The scheme of a switch.
    fn scheme(&self, site: Site<'_>) -> Self::Scheme;

    /// The sending end of a queue pair.
    fn sender(&self, plan: &Plan, qp: QpId) -> Self::Sender;

    /// The receiving end of a queue pair.
    fn receiver(&self, plan: &Plan, qp: QpId) -> Self::Receiver;

    /// The congestion control of a queue pair.
    fn congestion(&self, plan: &Plan, qp: QpId) -> Self::Congestion;

    /// The steering of a queue pair.
    fn steering(&self, site: QpSite<'_>) -> Self::Steering;

    /// Time from a change of a NIC's port to the NIC's report on it, if the ends of this queue pair exchange port status; only in
    /// runs with SACKs whose queue pairs spread over ports. By default they do not.
    fn port_notice(&self, _qp: QpId) -> Option<Time> {
        None
    }

    /// Shortest time between two CNPs that a port of the receiving host sends, if the ports of this queue pair's NIC count their CNPs
    /// over all queue pairs. By default each queue pair counts for itself, in its [`Receiver`].
    fn cnp_interval_of_port(&self, _qp: QpId) -> Option<Time> {
        None
    }

    /// Limits on the messages that the sender of this queue pair begins. By default there are none.
    fn message_gaps(&self, _qp: QpId) -> Option<MessageGaps> {
        None
    }

    /// Interval and threshold of the CNPs that the receiver of this queue pair sends without marks: one in each interval after one in
    /// which its port received more. By default there are none.
    fn self_cnp(&self, _qp: QpId) -> Option<(Time, Rate)> {
        None
    }

    /// Losses of the receiver of this queue pair while its port is nearly full. By default there are none.
    fn ingress_losses(&self, _qp: QpId) -> Option<IngressLosses> {
        None
    }

    /// The granter of a host.
    fn granter(&self, plan: &Plan, host: HostId) -> Self::Granter;
}
