//! What every recovery mode and every congestion control declares about itself. Other code reads these facts and never
//! asks for a part by name.

use crate::ends::{Receiving, Sending};
use crate::limits::Invalid;
use crate::notification::Cnp;
use crate::path::Path;
use crate::reaction::Reaction;
use crate::receiver::Answers;
use crate::timeout::Timing;
use model::{Congestion, Rate};

/// The table `[nic.transport.NAME]`: every file of `transport` implements it for its `Config`.
pub(crate) trait Recovery {
    /// What the rest of the workspace must know of the mode.
    fn facts(&self) -> TransportFacts;

    /// Whether the values are possible.
    fn validate(&self) -> Result<(), Invalid>;

    /// What the senders of a NIC have in common, with this retransmission timer.
    fn sending(&self, timing: Timing) -> Sending;

    /// What the receivers of a NIC have in common.
    fn receiving(&self, answers: Answers) -> Receiving;
}

/// Facts about a recovery mode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TransportFacts {
    /// Whether receivers keep packets that arrive out of order. If not, reordering costs retransmissions.
    pub keeps_out_of_order: bool,
    /// What `nic.on-nack` may be.
    pub on_nack: OnNack,
    /// Whether replies name single packets besides ePSN, which takes an annex ([`model::annex`]).
    pub names_packets: bool,
    /// Whether receivers act on notices ([`model::annex::Notice`]).
    pub heeds_notices: bool,
}

/// What the setting `nic.on-nack` may be under a recovery mode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OnNack {
    /// Any reaction; this one if the scenario sets none.
    Default(Reaction),
    /// `none` alone: receivers send no NACK.
    Unused,
}

/// The table `[nic.congestion.NAME]`: every file of `congestion` implements it for its `Config`.
pub trait Control {
    /// The state of one queue pair.
    type State: Congestion;

    /// What the rest of the workspace must know of the control.
    fn facts(&self) -> ControlFacts;

    /// Whether the values are possible.
    ///
    /// # Errors
    /// The first value that is not.
    fn validate(&self) -> Result<(), Invalid>;

    /// The state of one queue pair of a NIC of `line_rate`. Without `path` the control works by a guess.
    fn control(&self, line_rate: Rate, path: Option<&Path>) -> Self::State;

    /// Fills in the values that other values of the table decide.
    fn resolve(&mut self) {}

    /// Warnings about a fabric whose links have these rates, one sentence each.
    fn warnings(&self, _rates: &[Rate]) -> Vec<String> {
        Vec::new()
    }
}

/// Facts about a congestion control.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ControlFacts {
    /// What tells it that there is congestion.
    pub evidence: Evidence,
    /// Whether it needs everything that a reply tells ([`model::Feedback`]) and not only how many packets it
    /// acknowledges and whether it carries a mark. Packets then carry an annex of 88 bytes.
    pub needs_feedback: bool,
    /// Whether it has a rate that [`Reaction::To`] and [`Reaction::ToMinRate`] can lower.
    pub has_rate: bool,
    /// Whether it needs the [`Path`] of its queue pair.
    pub needs_path: bool,
}

/// What tells a control that there is congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// Nothing: it ignores congestion.
    None,
    /// CNPs, as frames or as flags on replies.
    Cnps,
    /// The share of replies that carry a mark, so that every reply has to say whether its packet was marked.
    Marks,
    /// Round-trip times, by the sender's own clock.
    RoundTrips,
    /// Telemetry that switches write on data packets. It compares what two packets in a row tell of the same links.
    Telemetry {
        /// Hops for which frames have room.
        hops: u8,
        /// The control's setting of that number.
        setting: &'static str,
    },
}

impl Evidence {
    /// Whether it is found in replies alone: CNPs then explain no change of the rate.
    pub const fn is_in_replies(self) -> bool {
        matches!(self, Evidence::Marks | Evidence::RoundTrips | Evidence::Telemetry { .. })
    }

    /// How receivers should report marks, if that is not a matter of taste.
    pub const fn cnp(self) -> Option<Cnp> {
        match self {
            Evidence::None | Evidence::Cnps => None,
            Evidence::Marks => Some(Cnp::Flag),
            Evidence::RoundTrips | Evidence::Telemetry { .. } => Some(Cnp::None),
        }
    }
}
