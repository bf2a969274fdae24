//! The causes that a flow's time is divided among.

use serde::Serialize;

/// A cause of delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// Earlier messages of the queue pair were sent first.
    Behind,
    /// The sender's port was paused.
    Paused,
    /// The sender's port sent other packets.
    Port,
    /// A failure had slowed the sender's port.
    SlowPort,
    /// CNPs had cut the rate below line rate.
    CnpCut,
    /// NACKs had cut the rate below line rate.
    NackCut,
    /// Timeouts had cut the rate below line rate.
    TimeoutCut,
    /// The rate was below line rate without a cut by a single event.
    Pace,
    /// The sender waited for ACKs: its window was full, or its scheme or NIC held it back.
    Window,
    /// The sender had nothing to send until a NACK reported a missing packet.
    UntilNack,
    /// The sender had nothing to send until its retransmission timer fired.
    UntilTimeout,
    /// Packets were retransmitted.
    Resent,
    /// The scheme sent copies of packets.
    Copies,
    /// Packets waited in switches, or took a longer path.
    Network,
    /// The last ACK waited on its way back, or was sent late.
    AckBack,
    /// The run ended before the flow.
    RunEnded,
    /// Waits that the ideal FCT includes, because a later link is slower than the sender's; the value is negative.
    InIdeal,
}
