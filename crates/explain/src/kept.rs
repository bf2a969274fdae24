//! The causes that a flow's time is divided among.

use serde::Serialize;

/// A cause of delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kept {
    /// Other messages of its queue pair went first.
    Behind,
    /// The port of its sender was paused.
    Paused,
    /// The port of its sender sent something else.
    Port,
    /// A rate below line rate, cut by CNPs.
    CnpCut,
    /// A rate below line rate, cut by NACKs.
    NackCut,
    /// A rate below line rate, cut by timeouts.
    TimeoutCut,
    /// A rate below line rate that no single event has cut.
    Pace,
    /// It waited for ACKs: its window was full, or its scheme or NIC held it back.
    Window,
    /// It waited until a NACK told of a packet that was missing.
    UntilNack,
    /// It waited until its retransmission timer fired.
    UntilTimeout,
    /// Packets were sent again.
    Resent,
    /// Copies that its scheme made.
    Copies,
    /// Packets waited in switches, or went a longer way.
    Network,
    /// The last ACK waited on its way back, or was not the first.
    AckBack,
    /// The run ended before the flow did.
    RunEnded,
    /// What its ideal has of such waits, too, where a link on the way is slower than its own; below zero.
    InIdeal,
}
