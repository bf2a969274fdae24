//! Congestion control: rate and window of one queue pair.

use crate::telemetry::Trail;
use crate::{Advice, Pace, Time};

/// Effect of a reply on the bytes of a sender that counts bytes. Bytes are those of frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivery {
    /// Bytes that the reply reports as arrived for the first time.
    pub arrived: u64,
    /// Bytes in flight after the reply.
    pub flight: u64,
    /// Bytes of the packet that a switch has cut, if the sender will send it again; else 0.
    pub cut: u64,
    /// True if the receiver's own switch has cut it.
    pub last_hop: bool,
    /// Bytes of packets that the sender now takes for lost.
    pub lost: u64,
    /// [`crate::annex::Sack::penalty`].
    pub penalty: u8,
    /// [`crate::annex::Sack::restore`].
    pub restore: bool,
}

/// Limits on what a queue pair may send now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// Most packets that may be unacknowledged, or most bytes in flight for a sender that counts bytes.
    pub window: u64,
    /// Spacing of packets.
    pub pace: Pace,
    /// Earliest time of the next packet, for NICs that stall after a NACK.
    pub not_before: Time,
}

/// What a data packet tells its receiver about credit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// Running sum for the receiver's [`crate::Granter`].
    pub total: u64,
    /// True if the packet has spent all credit, so that none may follow before a reply or a grant. It then asks for an ACK.
    pub exhausted: bool,
}

/// A reply's information for a congestion control, in runs with telemetry or SACKs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Feedback {
    /// Packets that the reply acknowledges for the first time.
    pub acked: u64,
    /// True if the reply carries a mark.
    pub echo: bool,
    /// True for a NACK.
    pub nack: bool,
    /// Number of the oldest unacknowledged packet.
    pub una: u64,
    /// Number of the first packet that has never been sent.
    pub high: u64,
    /// Time since the data packet was sent that the reply answers.
    pub round_trip: Time,
    /// Records of switches on this data packet.
    pub trail: Trail,
    /// Effect on bytes; all 0 if the sender does not count bytes.
    pub delivery: Delivery,
}

/// A congestion control: a pure state machine, one per sending queue pair. It keeps its own timers. Every call passes the
/// time, and the control catches up first, so idle queue pairs cost nothing.
pub trait Congestion {
    /// Reads a word of each cache line that the next packet or reply will need. This only saves time; the default reads none.
    #[inline]
    fn fetch(&self) {}

    /// Shares constants with the control of another queue pair of the host, if they are the same. This only saves memory and time; the
    /// default shares none.
    fn share(&mut self, _other: &Self)
    where
        Self: Sized,
    {
    }

    /// Limits on what the queue pair may send now.
    fn allowance(&mut self, now: Time) -> Allowance;

    /// Handles an ACK that acknowledges `packets` packets for the first time; `echo` is true if it carries a mark.
    fn on_ack(&mut self, _now: Time, _packets: u64, _echo: bool) {}

    /// Time before which the last allowance holds, with any window and at any time, unless another event than an ACK without
    /// a mark comes first. Zero if ACKs change the allowance; otherwise the caller may leave out ACKs without a mark.
    fn steady_until(&self) -> Time {
        Time::ZERO
    }

    /// True if neither time nor [`Congestion::on_sent`] changes the allowance, and the control leaves [`Congestion::on_send`] as it is: the
    /// allowance holds until the next other event.
    fn is_still(&self) -> bool {
        false
    }

    /// True if neither time, nor what is sent, nor an ACK without a mark changes the control: whenever another event comes, it does the
    /// same. The default is false.
    fn is_at_rest(&self) -> bool {
        false
    }

    /// True if nothing that is sent from `now` on, nor its ACKs without a mark, would change what the control does at any later time. Unlike
    /// one at rest it may go by the clock. The default is [`Congestion::is_at_rest`].
    fn forgets_sending(&self, _now: Time) -> bool {
        self.is_at_rest()
    }

    /// Handles the acknowledgements of a NACK, by default like those of an ACK.
    fn on_nacked(&mut self, now: Time, packets: u64, echo: bool) {
        self.on_ack(now, packets, echo);
    }

    /// Handles a reply in runs with telemetry or SACKs, instead of [`Congestion::on_ack`] and
    /// [`Congestion::on_nacked`].
    fn on_feedback(&mut self, now: Time, feedback: &Feedback) {
        match feedback.nack {
            true => self.on_nacked(now, feedback.acked, feedback.echo),
            false => self.on_ack(now, feedback.acked, feedback.echo),
        }
    }

    /// Handles the start of a data packet, in runs with SACKs: its frame, the bytes that wait behind it, and
    /// the number of queue pairs of the NIC that may send, this one included.
    fn on_send(&mut self, _now: Time, _frame: u32, _backlog: u64, _active: u64) -> Demand {
        Demand::default()
    }

    /// Time from the start of a packet of `bytes` at `now` to the start of the next one, where `pace` is that of the last allowance.
    fn gap(&self, now: Time, pace: Pace, bytes: u64) -> Time {
        let gap = pace.gap(bytes);
        // Within the steady time the pace does not change before the next packet.
        if now.ps().saturating_add(gap.ps()) < self.steady_until().ps() {
            return gap;
        }
        self.gap_ahead(now, bytes).unwrap_or(gap)
    }

    /// The same, with the changes that the control's own timers make to its rate before the next packet. `None`, the default, if the
    /// rate at the start of a packet decides.
    fn gap_ahead(&self, _now: Time, _bytes: u64) -> Option<Time> {
        None
    }

    /// Bytes that the queue pair may send before [`Congestion::on_sent`] can change the allowance.
    fn bytes_left(&self) -> u64 {
        u64::MAX
    }

    /// Counts the bytes of data that the queue pair has just begun to send; returns whether the allowance may have changed. The
    /// caller may leave out what it sends at line rate.
    fn on_sent(&mut self, _now: Time, _bytes: u64) -> bool {
        false
    }

    /// Handles a CNP, or a reply that the queue pair's steering counts as a CNP ([`crate::Steering::on_reply`]).
    fn on_cnp(&mut self, _now: Time) {}

    /// Lowers the rate to `share` of line rate if it is higher, as the setting `nic.on-nack` or `nic.on-timeout` asks; 0 is the control's
    /// minimum. The default, for controls without a rate, does nothing.
    fn lower_to(&mut self, _now: Time, _share: f64) {}

    /// Handles a CNP with content, which a switch made; by default like any CNP.
    fn on_advice(&mut self, now: Time, _advice: Advice) {
        self.on_cnp(now);
    }

    /// Handles a grant: the total that the receiver's [`crate::Granter`] lets the queue pair send.
    fn on_grant(&mut self, _now: Time, _total: u64) {}

    /// Queueing delay that the sender is to assume for the answer to a probe which is not its latest one; `None`, the default, if
    /// the answer's own round trip counts.
    fn assumed_delay(&self) -> Option<Time> {
        None
    }

    /// Handles a NACK that the sender acts on.
    fn on_nack(&mut self, _now: Time) {}

    /// Handles the expiry of the retransmission timer.
    fn on_timeout(&mut self, _now: Time) {}
}
