//! Checks of RoCEv2 captures: what senders, receivers and a switch with Themis did, told from the frames alone.
//!
//! A capture has frames with times, and preferably the side of the switch at which each was seen. [`check`] sorts the frames
//! into connections, lets every checker look at them, and gives a verdict per connection. The crate does no I/O.
//!
//! | file | checker |
//! |---|---|
//! | [`integrity`] | 1: the capture is whole, and every frame that went into the switch came out or is accounted for |
//! | [`icrc`] | 2: checksums; a corrupted packet counts as lost |
//! | [`go_back_n`] | 3: senders and receivers that go back |
//! | [`read`] | 4: reads go back, too |
//! | [`nic_sr`] | 5: selective repeat with NACKs |
//! | [`cnp`] | 6: CNPs follow marks, at their pace |
//! | [`themis`](mod@themis) | 7: a NACK leaves only with proof; the crate `themis` is replayed over the capture |
//! | [`latency`] | 8: how fast NACKs and retransmissions come; timeouts |
//!
//! A capture without anything to judge breaks the rule `nothing-to-check` if something is expected of it.
//!
//! [`connections`] sorts the frames, and [`log`] reads the decision log of `ropewalk tor --record`, which explains frames that
//! the switch lost on purpose.

#![forbid(unsafe_code)]

pub mod capture;
pub mod cnp;
pub mod connections;
pub mod go_back_n;
pub mod icrc;
pub mod integrity;
pub mod latency;
pub mod log;
pub mod nic_sr;
pub mod read;
pub mod report;
pub mod themis;

/// The rule of a switch with Themis.
pub use ::themis::Settings as SwitchRule;
pub use capture::{Capture, Frame, Way};
pub use connections::{Connection, Connections, Step};
pub use log::Log;
pub use report::{Breach, Report, Verdict};

/// What the ends, or the switch, are expected to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// NICs that go back to the first missing packet.
    GoBackN,
    /// NICs that keep packets out of order, and retransmit what a NACK names.
    NicSr,
    /// A switch that runs Themis.
    Themis,
}

impl Expect {
    /// All expectations.
    pub const ALL: [Expect; 3] = [Expect::GoBackN, Expect::NicSr, Expect::Themis];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Expect::GoBackN => "go-back-n",
            Expect::NicSr => "nic-sr",
            Expect::Themis => "themis",
        }
    }
}

/// Default of [`Settings::under_way`]. Our choice: more than NICs keep in their pipes.
pub const UNDER_WAY: u32 = 64;

/// What the checkers need to know beside the capture.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The expectation; without one, only the general checkers run: 1, 2, 6 and 8.
    pub expect: Option<Expect>,
    /// The rule of the switch, for [`Expect::Themis`].
    pub rule: SwitchRule,
    /// Least time between two CNPs, ns. Lumina's default, that of ConnectX NICs, is 4 us.
    pub cnp_interval: u64,
    /// Packets that may be on their way through a sender when it hears a NACK.
    pub under_way: u32,
    /// Exponent of the senders' timeout: 4.096 us times two to this power. `None` if it is not known.
    pub ack_timeout: Option<u8>,
    /// The decision log of the switch, if there is one.
    pub log: Option<Log>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            expect: None,
            rule: SwitchRule::sound(1, 256),
            cnp_interval: 4_000,
            under_way: UNDER_WAY,
            ack_timeout: None,
            log: None,
        }
    }
}

/// Checks a capture.
///
/// # Errors
/// If the rule of the switch is not one that the crate `themis` accepts.
pub fn check(capture: &Capture, settings: &Settings) -> Result<Report, ::themis::RuleError> {
    let rule = ::themis::Rule::new(settings.rule)?;
    let connections = Connections::of(capture);
    let log = settings.log.as_ref();
    let mut report = Report::new(capture, &connections);
    let judged = |connection: &Connection| {
        settings.expect != Some(Expect::Themis) || connection.requester_qp.is_some()
    };
    if settings.expect.is_some() && !connections.all.iter().any(judged) {
        let text = "no reliable connection with replies that can be told apart";
        report.whole.breach_at_end("nothing-to-check", text.to_owned());
    }
    integrity::check(capture, &connections, log, &mut report);
    icrc::check(&connections, log, &mut report);
    cnp::check(&connections, settings.cnp_interval, &mut report);
    for (connection, verdict) in connections.all.iter().zip(&mut report.verdicts) {
        icrc::check_connection(connection, verdict);
        latency::check(connection, settings.ack_timeout, verdict);
        match settings.expect {
            Some(Expect::GoBackN) => {
                go_back_n::check(connection, settings.under_way, verdict);
                read::check(connection, verdict);
            }
            Some(Expect::NicSr) => nic_sr::check(connection, settings.under_way, verdict),
            Some(Expect::Themis) => themis::check(connection, &rule, log, verdict),
            None => {}
        }
    }
    Ok(report)
}
