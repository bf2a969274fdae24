//! All that the ToR counts.

use crate::frame::{Kind, Roce};
use crate::guard::place;
use crate::out::Drop;
use crate::qp::Unknown;
use crate::queues::CLASSES;
use crate::settings::Settings;
use crate::units::PortId;
use themis::{Reason, Verdict};

/// Counters of everything, from the start of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counters {
    /// By port.
    pub ports: Vec<PortCounters>,
    /// By spine.
    pub paths: Vec<PathCounters>,
    /// NACKs forwarded, by the place of their reason in [`Reason::ALL`].
    pub forwarded: [u64; 6],
    /// NACKs blocked, by the place of their reason in [`Reason::ALL`].
    pub blocked: [u64; 6],
    /// NACKs that the ToR sent itself.
    pub compensated: u64,
    /// Connections learnt.
    pub learnt: u64,
    /// Connections that were learnt and then turned out to be others.
    pub unlearnt: u64,
    /// Queue pairs that were set up again.
    pub again: u64,
    /// Receivers that throw away packets out of order.
    pub go_back_n: u64,
    /// Connections whose paths are no FIFOs.
    pub breaches: u64,
    /// Packets that Themis let pass unjudged, by the place of their cause in [`FailOpen::ALL`].
    pub failed_open: [u64; FailOpen::ALL.len()],
    /// NACKs among them.
    pub nacks_passed: u64,
    /// Injected events.
    pub injected: u64,
    /// Addresses for which the table of stations had no room.
    pub stations_refused: u64,
}

/// Counters of a port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// The port's name.
    pub name: String,
    /// Frames that came in.
    pub in_frames: u64,
    /// Bytes that came in.
    pub in_bytes: u64,
    /// Frames that left, with pause frames.
    pub out_frames: u64,
    /// Bytes that left.
    pub out_bytes: u64,
    /// RoCEv2 packets that came in.
    pub received: KindCounters,
    /// RoCEv2 packets that left.
    pub sent: KindCounters,
    /// By class.
    pub classes: [ClassCounters; CLASSES],
    /// Frames that came in here and were dropped, by [`Drop`].
    pub dropped: [u64; Drop::ALL.len()],
    /// Pauses of all classes (IEEE 802.3, annex 31B), which are ignored.
    pub global_pauses: u64,
    /// Other MAC control frames that are ignored, such as pauses of no class.
    pub control_ignored: u64,
}

/// RoCEv2 packets by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindCounters {
    /// Packets of request streams.
    pub requests: u64,
    /// Responses to reads and atomic operations.
    pub responses: u64,
    /// ACKs.
    pub acks: u64,
    /// NACKs for missing packets.
    pub nacks: u64,
    /// Other replies.
    pub replies: u64,
    /// Congestion notification packets.
    pub cnps: u64,
    /// Packets of other services.
    pub unknown: u64,
    /// Packets with a mark.
    pub marked: u64,
}

/// Counters of a class of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassCounters {
    /// Frames that came in.
    pub received: u64,
    /// Frames that left.
    pub sent: u64,
    /// Packets marked.
    pub marked: u64,
    /// Frames dropped for lack of room.
    pub dropped: u64,
    /// Frames dropped because the class was paused for too long.
    pub watchdog: u64,
    /// Pauses and resumptions received.
    pub pfc_in: u64,
    /// Pauses and resumptions sent.
    pub pfc_out: u64,
}

/// Counters of a spine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathCounters {
    /// Frames that entered.
    pub frames: u64,
    /// Packets of request streams among them.
    pub sprayed: u64,
    /// Frames lost at random.
    pub lost: u64,
    /// Frames lost because the spine was down.
    pub lost_down: u64,
}

/// Why Themis lets a packet pass unjudged, or unrecorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailOpen {
    /// Its ICRC is wrong.
    Icrc,
    /// It is longer than a NACK can be.
    TooLong,
    /// Its flow is unknown.
    Unknown(Unknown),
    /// There is no room for its flow.
    Refused,
    /// It has a UDP checksum, so its source port stays.
    Checksum,
    /// The paths of its flow are no FIFOs.
    Breach,
}

impl FailOpen {
    /// All causes.
    pub const ALL: [FailOpen; 11] = [
        FailOpen::Icrc,
        FailOpen::TooLong,
        FailOpen::Unknown(Unknown::NoFlow),
        FailOpen::Unknown(Unknown::Ambiguous),
        FailOpen::Unknown(Unknown::Elsewhere),
        FailOpen::Unknown(Unknown::Implausible),
        FailOpen::Unknown(Unknown::Incomplete),
        FailOpen::Unknown(Unknown::Full),
        FailOpen::Refused,
        FailOpen::Checksum,
        FailOpen::Breach,
    ];

    /// The cause's name in counters and logs.
    pub const fn name(self) -> &'static str {
        match self {
            FailOpen::Icrc => "wrong-icrc",
            FailOpen::TooLong => "too-long",
            FailOpen::Unknown(why) => why.name(),
            FailOpen::Refused => "refused",
            FailOpen::Checksum => "udp-checksum",
            FailOpen::Breach => "no-fifo",
        }
    }
}

impl KindCounters {
    fn count(&mut self, roce: &Roce) {
        if roce.is_request() {
            self.requests += 1;
        } else {
            self.count_other(roce);
        }
        self.marked += u64::from(roce.traffic_class.ecn() == wire::ecn::Ecn::Ce);
    }

    fn count_other(&mut self, roce: &Roce) {
        *match roce.kind {
            Kind::Request { .. } => &mut self.requests,
            Kind::Response => &mut self.responses,
            Kind::Ack { .. } => &mut self.acks,
            Kind::Nack => &mut self.nacks,
            Kind::Reply => &mut self.replies,
            Kind::Cnp => &mut self.cnps,
            Kind::Unknown => &mut self.unknown,
        } += 1;
    }
}

impl Counters {
    pub(crate) fn new(settings: &Settings) -> Self {
        let port =
            |port: &crate::settings::Port| PortCounters { name: port.name.clone(), ..Default::default() };
        Counters {
            ports: settings.ports.iter().map(port).collect(),
            paths: vec![PathCounters::default(); settings.spines.len()],
            forwarded: [0; 6],
            blocked: [0; 6],
            compensated: 0,
            learnt: 0,
            unlearnt: 0,
            again: 0,
            go_back_n: 0,
            breaches: 0,
            failed_open: [0; FailOpen::ALL.len()],
            nacks_passed: 0,
            injected: 0,
            stations_refused: 0,
        }
    }

    pub(crate) fn arrived(&mut self, port: PortId, class: u8, roce: Option<&Roce>) {
        let own = &mut self.ports[port.index()];
        own.classes[usize::from(class)].received += 1;
        if let Some(roce) = roce {
            own.received.count(roce);
        }
    }

    pub(crate) fn departed(&mut self, port: PortId, class: usize, roce: Option<&Roce>) {
        let own = &mut self.ports[port.index()];
        own.classes[class].sent += 1;
        if let Some(roce) = roce {
            own.sent.count(roce);
        }
    }

    pub(crate) fn judged(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Forward(reason) => self.forwarded[place(reason)] += 1,
            Verdict::Block(reason) => self.blocked[place(reason)] += 1,
        }
    }

    pub(crate) fn fail_open(&mut self, cause: FailOpen, nack: bool) {
        if let Some(at) = FailOpen::ALL.iter().position(|&other| other == cause) {
            self.failed_open[at] += 1;
        }
        self.nacks_passed += u64::from(nack);
    }

    /// Number of packets that passed unjudged for this cause.
    pub fn passed(&self, cause: FailOpen) -> u64 {
        FailOpen::ALL.iter().position(|&other| other == cause).map_or(0, |at| self.failed_open[at])
    }

    /// NACKs blocked, of all reasons.
    pub fn all_blocked(&self) -> u64 {
        self.blocked.iter().sum()
    }

    /// NACKs judged and forwarded, of all reasons.
    pub fn all_forwarded(&self) -> u64 {
        self.forwarded.iter().sum()
    }

    /// Calls `row` with the name, the labels and the value of every counter. Labels are in the text format of Prometheus.
    pub fn each(&self, mut row: impl FnMut(&str, &str, u64)) {
        for port in &self.ports {
            let at = format!("port=\"{}\"", port.name);
            row("in_frames", &at, port.in_frames);
            row("in_bytes", &at, port.in_bytes);
            row("out_frames", &at, port.out_frames);
            row("out_bytes", &at, port.out_bytes);
            for (way, kinds) in [("in", &port.received), ("out", &port.sent)] {
                let KindCounters { requests, responses, acks, nacks, replies, cnps, unknown, marked } =
                    *kinds;
                for (kind, value) in [
                    ("request", requests),
                    ("response", responses),
                    ("ack", acks),
                    ("nack", nacks),
                    ("reply", replies),
                    ("cnp", cnps),
                    ("unknown", unknown),
                ] {
                    row("roce_packets", &format!("{at},way=\"{way}\",kind=\"{kind}\""), value);
                }
                row("ce_packets", &format!("{at},way=\"{way}\""), marked);
            }
            for (class, counters) in port.classes.iter().enumerate() {
                let at = format!("{at},class=\"{class}\"");
                row("class_in_frames", &at, counters.received);
                row("class_out_frames", &at, counters.sent);
                row("class_marked", &at, counters.marked);
                row("class_dropped", &at, counters.dropped);
                row("class_watchdog", &at, counters.watchdog);
                row("pfc_in", &at, counters.pfc_in);
                row("pfc_out", &at, counters.pfc_out);
            }
            for (why, count) in Drop::ALL.iter().zip(port.dropped) {
                row("dropped", &format!("{at},why=\"{}\"", why.name()), count);
            }
            row("global_pauses", &at, port.global_pauses);
            row("control_ignored", &at, port.control_ignored);
        }
        for (n, path) in self.paths.iter().enumerate() {
            let at = format!("path=\"{n}\"");
            row("path_frames", &at, path.frames);
            row("path_sprayed", &at, path.sprayed);
            row("path_lost", &format!("{at},why=\"random\""), path.lost);
            row("path_lost", &format!("{at},why=\"down\""), path.lost_down);
        }
        for (n, reason) in Reason::ALL.iter().enumerate() {
            let why = format!("reason=\"{}\"", reason.name());
            row("nacks_forwarded", &why, self.forwarded[n]);
            row("nacks_blocked", &why, self.blocked[n]);
        }
        for (cause, count) in FailOpen::ALL.iter().zip(self.failed_open) {
            row("failed_open", &format!("cause=\"{}\"", cause.name()), count);
        }
        for (name, value) in [
            ("nacks_compensated", self.compensated),
            ("nacks_passed", self.nacks_passed),
            ("connections_learnt", self.learnt),
            ("connections_unlearnt", self.unlearnt),
            ("connections_again", self.again),
            ("receivers_go_back_n", self.go_back_n),
            ("connections_no_fifo", self.breaches),
            ("injected", self.injected),
            ("stations_refused", self.stations_refused),
        ] {
            row(name, "", value);
        }
    }
}
