//! Declarations of every recovery mode and every congestion control. Other code reads these facts and never asks for a
//! part by name.

use crate::ack::Answers;
use crate::ends::{Receiving, Sending};
use crate::notification::{Cnp, CnpScope};
use crate::path::Path;
use crate::reaction::Reaction;
use crate::timeout::Timing;
use crate::verb::Verb;
use finding::Finding;
use model::digest::Code;
use model::{Congestion, Rate, Time};

/// The table `[nic.transport.NAME]`: every file of `transport` implements it for its `Config`.
pub(crate) trait Recovery {
    /// Settings with which tests run the mode: texts that follow the head of its table, and may open other tables. Small
    /// numbers make rare events happen in short runs. Default: its defaults.
    const TRIALS: &'static [&'static str] = &[""];

    /// Rows of the golden tables. Default: none.
    const GOLDEN: Option<Golden> = None;

    /// Facts that the rest of the workspace must know of the mode.
    fn facts(&self) -> TransportFacts;

    /// A timeout that may apply in place of `nic.timeout`, and the key of its setting. Default: none.
    fn other_timeout(&self) -> Option<(&'static str, Time)> {
        None
    }

    /// Time from a change of a port of the NIC to the report that its peers get, if they get one. Default: none.
    fn port_notice(&self) -> Option<Time> {
        None
    }

    /// Whether receivers ask for smaller windows ([`model::annex::Sack::penalty`]). Default: they do not.
    fn penalises(&self) -> bool {
        false
    }

    /// Whether senders probe whether missing packets are still on their way ([`model::Kind::Probe`]). Default: they do not.
    fn probes(&self) -> bool {
        false
    }

    /// Checks whether the values are possible.
    fn validate(&self) -> Result<(), Finding>;

    /// Settings that the senders of a NIC share, with this retransmission timer.
    fn sending(&self, timing: Timing) -> Sending;

    /// Settings that the receivers of a NIC share.
    fn receiving(&self, answers: Answers) -> Receiving;
}

/// Rows of the golden tables, one for each scheme: their title, and settings of the scenario.
pub type Golden = (&'static str, &'static [&'static str]);

/// Facts about a recovery mode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TransportFacts {
    /// Whether receivers keep packets that arrive out of order. If not, reordering costs retransmissions.
    pub keeps_out_of_order: bool,
    /// Allowed values of `nic.on-nack`.
    pub on_nack: OnNack,
    /// Whether replies name single packets besides ePSN, which takes an annex ([`model::annex`]).
    pub names_packets: bool,
    /// Whether receivers act on notices ([`model::annex::Notice`]).
    pub heeds_notices: bool,
    /// Whether replies carry a [`model::annex::Sack`], and windows count bytes in flight. Packets then have an annex of 48 B.
    pub sacks: bool,
    /// How receivers report trimmed packets.
    pub cuts: CutReport,
    /// How senders find packets that were lost without headers, before the timer fires.
    pub silent: SilentLoss,
    /// When a receiver owes an ACK.
    pub acks: Acks,
    /// Operations whose losses the mode repairs as its file describes. Every mode carries WRITEs.
    pub verbs: &'static [Verb],
}

impl TransportFacts {
    /// A receiver that keeps packets in any order and answers each, and a sender that finds all losses.
    pub const KEEPING: Self = TransportFacts {
        keeps_out_of_order: true,
        on_nack: OnNack::Default(Reaction::AsCnp),
        names_packets: false,
        heeds_notices: false,
        sacks: false,
        cuts: CutReport::None,
        silent: SilentLoss::Found,
        acks: Acks::Packets,
        verbs: &[Verb::Write],
    };

    /// The same with maps of what has arrived, and NACKs for trimmed packets alone.
    pub const SACKING: Self = TransportFacts {
        on_nack: OnNack::Default(Reaction::None),
        sacks: true,
        cuts: CutReport::Nack,
        ..Self::KEEPING
    };
}

/// When a receiver owes an ACK that the sender has not asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acks {
    /// After packets, as `nic.ack-every` and `nic.ack-per-message` say.
    Packets,
    /// After so many bytes of frames, each of which counts as `least` bytes at least.
    Bytes {
        /// Bytes.
        owed: u64,
        /// Bytes.
        least: u64,
    },
    /// After a message of at most so many packets.
    Messages(u32),
}

impl Acks {
    /// Most packets whose frames have `frame` bytes that a receiver leaves without an ACK, if its NIC answers every `every`
    /// packets.
    pub fn packets(self, every: u64, frame: u64) -> u64 {
        match self {
            Acks::Packets => every,
            Acks::Bytes { owed, least } => owed.div_ceil(frame.max(least).max(1)).max(1),
            Acks::Messages(packets) => packets.into(),
        }
    }
}

/// How receivers report trimmed packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutReport {
    /// Not at all.
    None,
    /// By a NACK.
    Nack,
    /// They send the headers back.
    Headers,
}

/// How a sender finds a packet that was lost without headers, before its timer fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SilentLoss {
    /// By packets that arrive after it.
    Found,
    /// Not at all.
    Unfound,
    /// Not at all; this setting of the mode would find it by later packets.
    FoundWith(&'static str),
    /// By packets that arrive after it, as this setting of the mode asks.
    FoundBy(&'static str),
}

/// Allowed values of the setting `nic.on-nack` under a recovery mode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OnNack {
    /// Any reaction; this one is the default.
    Default(Reaction),
    /// Only `none`: receivers send no NACK.
    Unused,
}

/// The table `[nic.congestion.NAME]`: every file of `congestion` implements it for its `Config`.
pub trait Control {
    /// State of one queue pair.
    type State: Congestion;

    /// Settings with which tests run the control: texts that follow the head of its table, and may open other tables. Small
    /// numbers make rare events happen in short runs. Default: its defaults.
    const TRIALS: &'static [&'static str] = &[""];

    /// Rows of the golden tables. Default: none.
    const GOLDEN: Option<Golden> = None;

    /// Keys of the table that decide how far rates fall and how fast they recover, the most telling first. Default: none.
    const DECISIVE: &'static [&'static str] = &[];

    /// Other values of these keys with which a comparison tries whether its answer holds. Default: none.
    const VARIATIONS: &'static [Variation] = &[];

    /// Facts that the rest of the workspace must know of the control.
    fn facts(&self) -> ControlFacts;

    /// Checks whether the values are possible.
    ///
    /// # Errors
    /// The first impossible value.
    fn validate(&self) -> Result<(), Finding>;

    /// State of one queue pair of a NIC of `line_rate`. Without `path` the control assumes a path.
    fn control(&self, line_rate: Rate, path: Option<&Path>) -> Self::State;

    /// Longest time that the control puts between two packets of `bytes` on a path with this round trip. A run in which
    /// nothing moves for so long need not have stalled. Default: zero, for controls that send a packet per round trip.
    fn longest_gap(&self, _bytes: u64, _rtt: Time) -> Time {
        Time::ZERO
    }

    /// Content of CNPs that the control heeds; it takes other CNPs with content for plain ones. Default: none.
    fn advised(&self) -> Advised {
        Advised::default()
    }

    /// Default of `nic.cnp-interval-per`. Default: ports, as on NICs.
    fn cnp_scope(&self) -> CnpScope {
        CnpScope::Port
    }

    /// Whether the window shrinks when receivers ask for it ([`model::annex::Sack::penalty`]). Default: no.
    fn heeds_penalties(&self) -> bool {
        false
    }

    /// Fills in the values that other values of the table decide.
    fn resolve(&mut self) {}

    /// A warning about a fabric whose links have these rates.
    fn warning(&self, _rates: &[Rate]) -> Option<Finding> {
        None
    }
}

/// Other values of some settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variation {
    /// Name for readers, such as "min-rate 1 Gb/s".
    pub name: &'static str,
    /// Keys of the table of the control, and their values.
    pub changes: &'static [(&'static str, &'static str)],
}

/// Content of CNPs ([`model::Advice`]) that a control heeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Advised {
    /// QCN's feedback.
    pub feedback: bool,
    /// Rates.
    pub rate: bool,
}

/// Facts about a congestion control.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ControlFacts {
    /// Evidence of congestion that the control uses.
    pub evidence: Evidence,
    /// Whether the control needs all of a reply's [`model::Feedback`], not only the number of acknowledged packets and the
    /// mark. Packets then carry an annex of 88 bytes.
    pub needs_feedback: bool,
    /// Whether it has a rate that [`Reaction::To`] and [`Reaction::ToMinRate`] can lower.
    pub has_rate: bool,
    /// Whether it needs the [`Path`] of its queue pair.
    pub needs_path: bool,
    /// Unit of its window.
    pub window: Unit,
    /// Credit that its receivers must grant; `None` if it needs none.
    pub grants: Option<Grants>,
}

impl ControlFacts {
    /// A control with this evidence that counts packets, and needs whole replies and its path. The facts of a control are those in
    /// which it differs.
    pub const fn of(evidence: Evidence) -> Self {
        ControlFacts {
            evidence,
            needs_feedback: true,
            has_rate: false,
            needs_path: true,
            window: Unit::Packets,
            grants: None,
        }
    }

    /// A control that reads the telemetry of so many hops, which its setting `int-hops` states.
    pub const fn of_telemetry(hops: u8) -> Self {
        let evidence = Evidence::Telemetry { hops, setting: "int-hops" };
        ControlFacts { has_rate: true, ..ControlFacts::of(evidence) }
    }
}

/// Credit that receivers grant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grants {
    /// Bytes of a grant; `None` for a full packet.
    pub quantum: Option<u64>,
    /// Share of the link's rate.
    pub share: f64,
    /// Whether receivers lower it by marks and trimmed packets on an oversubscribed fabric.
    pub throttles: bool,
    /// What entitles a sender to a grant.
    pub due: Due,
}

/// What entitles a sender to a grant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Due {
    /// Its demand. While no demand is open, it gets grants unasked, up to so many bandwidth-delay products of the longest path.
    Demand(f64),
    /// Each arrival of a packet while its demand is open, and each trimmed packet.
    Arrival,
}

/// Unit of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Packets from the oldest unacknowledged one on; also of controls without a window.
    Packets,
    /// Bytes of frames in flight.
    Bytes,
}

/// Evidence of congestion that a control uses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Evidence {
    /// None: it ignores congestion.
    None,
    /// CNPs, as frames or as flags on replies.
    Cnps,
    /// The share of replies with a mark: every reply must tell whether its packet was marked.
    Marks,
    /// Round-trip times, by the sender's own clock.
    RoundTrips {
        /// Bytes of a time stamp that packets and their replies carry; 0 if senders keep the times of their packets.
        stamp: u8,
    },
    /// Telemetry that switches write on data packets. The control compares the records of two successive packets.
    Telemetry {
        /// Hops for which frames have room.
        hops: u8,
        /// The control's setting for that number.
        setting: &'static str,
    },
    /// The largest code of the links of a packet's path ([`model::digest`]).
    Digest(Digested),
}

/// The digest that a control reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Digested {
    /// Base and resolution of its code, see [`model::digest::Code`].
    pub base: f64,
    /// Units of a full link.
    pub resolution: u32,
    /// Share of the packets that carry a code.
    pub share: f64,
    /// Time over which switches average; `None` for the longest round trip of any two hosts.
    pub period: Option<Time>,
}

impl Evidence {
    /// Bytes that the control adds to the headers of packets and replies, besides the area of telemetry: a time stamp or a
    /// code.
    pub fn stamp(self) -> u8 {
        match self {
            Evidence::RoundTrips { stamp } => stamp,
            Evidence::Digest(Digested { base, resolution, .. }) => {
                Code::new(base, resolution).map_or(0, |code| code.bytes())
            }
            _ => 0,
        }
    }

    /// True if the evidence is in replies alone: CNPs then explain no change of the rate.
    pub const fn is_in_replies(self) -> bool {
        match self {
            Evidence::Marks
            | Evidence::RoundTrips { .. }
            | Evidence::Telemetry { .. }
            | Evidence::Digest(_) => true,
            Evidence::None | Evidence::Cnps => false,
        }
    }

    /// Report of marks that the evidence requires; `None` if the user may choose.
    pub const fn cnp(self) -> Option<Cnp> {
        match self {
            Evidence::None | Evidence::Cnps => None,
            Evidence::Marks => Some(Cnp::Flag),
            Evidence::RoundTrips { .. } | Evidence::Telemetry { .. } | Evidence::Digest(_) => Some(Cnp::None),
        }
    }
}
