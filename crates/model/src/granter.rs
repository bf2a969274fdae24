//! Credit: the part of a receiving host that decides when its senders may send.

use crate::{QpId, Time};

/// Grants credit to the queue pairs that send to one host. A pure state machine, one per host; `()` grants nothing.
///
/// Demands and grants are running sums per queue pair, so a lost or overtaken message does no harm. Their unit is that of
/// the run's parts, such as bytes or packets.
pub trait Granter {
    /// False for `()` only, whose methods are never called.
    const GRANTS: bool = true;

    /// True if it grants nothing in this run, whatever arrives. Its other methods need not be called then.
    #[inline(always)]
    fn is_idle(&self) -> bool {
        !Self::GRANTS
    }

    /// The sender of `qp` demands `total` in all: the amount of a data packet or of a control message
    /// ([`crate::Dialogue::amount`]).
    fn demand(&mut self, now: Time, qp: QpId, total: u64);

    /// A data packet has arrived, or the headers of one that a switch has cut. The call follows that of
    /// [`Granter::demand`] for the same packet.
    fn arrived(&mut self, now: Time, arrival: Arrival);

    /// Time of the next [`Granter::grant`]; [`Time::NEVER`] if none is due. It may become later at any time, but earlier
    /// only in a handler.
    fn deadline(&self) -> Time;

    /// The next grant at the time of [`Granter::deadline`]. The host asks until there is none. Each grant leaves at once as a
    /// control message to the sender.
    fn grant(&mut self, now: Time) -> Option<Grant>;
}

/// Credit for the sender of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The queue pair.
    pub qp: QpId,
    /// What its sender may send in all.
    pub total: u64,
    /// Entropy of the control message.
    pub entropy: u16,
}

/// The arrival of a data packet at a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Its queue pair.
    pub qp: QpId,
    /// Length of the frame, bytes.
    pub frame: u32,
    /// True if a switch marked it.
    pub marked: bool,
    /// True if a switch cut it, so that only its headers have arrived.
    pub cut: bool,
    /// True if the host's own switch cut it.
    pub last_hop: bool,
}

/// No credit: senders need no grants.
impl Granter for () {
    const GRANTS: bool = false;

    #[inline(always)]
    fn demand(&mut self, _: Time, _: QpId, _: u64) {}

    #[inline(always)]
    fn arrived(&mut self, _: Time, _: Arrival) {}

    #[inline(always)]
    fn deadline(&self) -> Time {
        Time::NEVER
    }

    #[inline(always)]
    fn grant(&mut self, _: Time) -> Option<Grant> {
        None
    }
}
