//! Cuts: the middle of long messages is left out of a run whose state repeats.
//!
//! A program watches the frames of all links, and finds that the run's state of a moment is that of one period before: the same packets
//! are under way, and every sender has only gone on by whole packets. Then each further period is alike. The engine shortens the
//! messages under way by what they would send in some periods. Its clock stands still, so nothing else changes: the run is that of a
//! plan with shorter messages.

use crate::outcome::Frame;
use model::{MessageId, Plan, QpId, Time};
use std::collections::BTreeMap;

/// Finds periods, and learns what was cut.
pub trait Cutter {
    /// Takes frames at taps that have started since the last call, in any order. All that start before `now` have come, and no event at
    /// `now` or later. Called before the first event of every full window ([`crate::window`]).
    fn look(&mut self, now: Time, frames: Vec<Frame>) -> Look;

    /// Takes note of what became of the cut that [`Cutter::look`] has asked for.
    fn made(&mut self, made: Result<Made, Refusal>);

    /// By how many packets every message is shorter so far.
    fn shorter(&self) -> &BTreeMap<MessageId, u64>;
}

/// What a [`Cutter`] asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    /// The run goes on.
    Nothing,
    /// From now on, frames at taps are recorded, or no longer.
    Record(bool),
    /// The run repeats.
    Cut(Period),
}

/// The time after which a run's state repeats, and what the queue pairs under way send in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Period {
    /// The time.
    pub time: Time,
    /// Packets by queue pair, each above 0.
    pub packets: BTreeMap<QpId, u64>,
}

/// What was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// Number of periods.
    pub periods: u64,
    /// Packets by message.
    pub packets: Vec<(MessageId, u64)>,
}

/// Why a cut was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// A message under way ends too soon.
    Short,
    /// A message waits without sending anything.
    Waits,
    /// A task is under way.
    Tasks,
    /// A congestion control goes by time, by what is sent, or by plain ACKs.
    Control,
    /// There were CNPs, NACKs or timeouts, and NICs may remember when.
    History,
    /// A sender keeps more of its packets than their number.
    Sender,
    /// A sender chooses paths by what it has heard.
    Steering,
    /// A NIC has a state that frames do not show.
    Nic,
}

/// The plan that the engine has run, if a cutter has shortened its messages.
pub(crate) fn shorter(plan: &Plan, cutter: Option<&mut dyn Cutter>) -> Option<Plan> {
    let shorter = cutter?.shorter();
    if shorter.is_empty() {
        return None;
    }
    let mut plan = plan.clone();
    for (message, packets) in shorter {
        plan.messages[message.index()].bytes -= packets * u64::from(plan.wire.payload);
    }
    Some(plan)
}
