//! RCCC, the receiver-credit congestion control of Ultra Ethernet (Ultra Ethernet Specification 1.0.3, section 3.6.14; after
//! EQDS, NSDI 2022): a sender sends what its receiver has granted.
//!
//! The first window goes out unasked. It ends with the first reply or grant. From then on, each packet spends its bytes of
//! credit. Every packet demands credit for the bytes behind it, and the receiver's [`crate::pacer`] grants its link's rate to
//! all its senders in turn. Demands and grants are running sums, so lost ones do no harm.
//!
//! * With `nscc`, a packet needs both credit and room in the window of [`super::nscc`].
//! * A sender divides its demand by the number of queue pairs of its NIC that may send, and rounds it up to the unit of credit, as
//!   in uet-htsim.
//! * Our choice: after a timeout a sender without credit may send one packet, which carries its demand. In Ultra Ethernet it
//!   sends a request. The timer also runs while no packet is in flight and credit is missing, as grants may be lost.
//! * On an oversubscribed fabric the pacer lowers its rate by marks and trimmed packets, unless senders have windows, as in
//!   uet-htsim.

use super::nscc;
use crate::facts::{Control, ControlFacts, Due, Evidence, Grants, Unit};
use crate::path::Path;
use finding::{Finding, code};
use model::{Allowance, Bytes, Congestion, Demand, Feedback, Pace, Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[nic.congestion.rccc]`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[schemars(rename = "CongestionRccc")]
pub struct Config {
    /// Bytes that may go out unasked, and largest credit, in bandwidth-delay products of the longest path. Default 1.5
    /// (uet-htsim).
    pub window: f64,
    /// Bytes of a grant. Default 16 KiB (uet-htsim).
    pub quantum: Bytes,
    /// Share of the link's rate that the receiver grants. Default 0.99 (uet-htsim).
    pub share: f64,
    /// Whether the receiver lowers this share by marks and by packets that are trimmed before the last hop, where the hosts of a
    /// fabric send more than its uplinks carry and senders have no window. Default true (uet-htsim).
    pub throttle: bool,
    /// The sender's own window beside the credit, `{}` for its defaults. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nscc: Option<nscc::Config>,
}

impl Default for Config {
    fn default() -> Self {
        Config { window: 1.5, quantum: Bytes(16 << 10), share: 0.99, throttle: true, nscc: None }
    }
}

/// Grants beyond the demand, in bandwidth-delay products of the longest path. Our choice: the first window of the defaults.
const AHEAD: f64 = 1.5;
/// Unit of credit, bytes (the field for demands and credit has 24 bits; uet-htsim).
pub(crate) const UNIT: u64 = 256;

impl Control for Config {
    type State = Rccc;
    const TRIALS: &'static [&'static str] = &[
        "nscc = {}\n[nic]\ntimeout = { fixed = \"80us\" }\n[nic.transport.uec]",
        "quantum = \"3kB\"\n[nic]\ntimeout = { fixed = \"70us\" }\n[nic.transport.uec]",
        "window = 0.3\nnscc = {}\n[nic]\ntimeout = { fixed = \"90us\" }\n[nic.transport.uec]",
        "quantum = \"3kB\"\n[nic]\ntimeout = { fixed = \"80us\" }\n[nic.transport.dcp]",
    ];

    fn facts(&self) -> ControlFacts {
        let grants = Grants {
            quantum: Some(self.quantum.get()),
            share: self.share,
            throttles: self.throttle && self.nscc.is_none(),
            due: Due::Demand(AHEAD),
        };
        ControlFacts { window: Unit::Bytes, grants: Some(grants), ..ControlFacts::of(Evidence::Marks) }
    }

    fn heeds_penalties(&self) -> bool {
        self.nscc.is_some()
    }

    fn validate(&self) -> Result<(), Finding> {
        if !(self.window > 0.0 && self.window <= 1e6) {
            return Err(code::RANGE.at("window", "must be above 0 and at most 1000000"));
        }
        if !(self.share > 0.0 && self.share <= 1.0) {
            return Err(code::RANGE.at("share", "must be above 0 and at most 1"));
        }
        if !(1 << 8..=1 << 24).contains(&self.quantum.get()) {
            return Err(code::RANGE.at("quantum", "must be between 256 B and 16 MiB"));
        }
        self.nscc.as_ref().map_or(Ok(()), |nscc| nscc.validate().map_err(|e| e.within("nscc")))
    }

    fn control(&self, line_rate: Rate, path: Option<&Path>) -> Rccc {
        let known = Path::or_guess(path, line_rate);
        let most = self.window * line_rate.bps() as f64 / 8e12 * known.longest_rtt.ps() as f64;
        let most = (most as i64).max(known.mtu.into());
        Rccc {
            credit: most,
            most,
            granted: 0,
            unasked: true,
            frame: known.mtu.into(),
            pace: Pace::from_bps(line_rate.bps() as f64),
            nscc: self.nscc.as_ref().map(|nscc| Box::new(nscc.control(line_rate, path))),
        }
    }
}

/// State of one queue pair; amounts in bytes.
#[derive(Clone, Debug)]
pub struct Rccc {
    /// Bytes that may be sent; the last packet may take it below 0.
    credit: i64,
    most: i64,
    /// Running sum of grants.
    granted: u64,
    /// True until the first reply or grant.
    unasked: bool,
    frame: i64,
    pace: Pace,
    nscc: Option<Box<nscc::Nscc>>,
}

impl Rccc {
    /// No effect: it has no rate to lower.
    pub(crate) fn lower_to(&mut self, _now: Time, _share: f64) {}

    /// Zero: every packet spends credit.
    pub(crate) const fn steady_until(&self) -> Time {
        Time::ZERO
    }

    /// Ends the first window.
    fn begin(&mut self) {
        if std::mem::take(&mut self.unasked) {
            self.credit = self.credit.min(0);
        }
    }

    /// The window of the sender's own control.
    fn window(&mut self, now: Time) -> u64 {
        self.nscc.as_mut().map_or(u64::MAX, |nscc| nscc.allowance(now).window)
    }
}

impl Congestion for Rccc {
    #[inline]
    fn fetch(&self) {
        std::hint::black_box(self.credit);
        self.nscc.iter().for_each(|nscc| nscc.fetch());
    }

    fn share(&mut self, other: &Self) {
        if let (Some(nscc), Some(other)) = (&mut self.nscc, &other.nscc) {
            nscc.share(other);
        }
    }

    fn allowance(&mut self, now: Time) -> Allowance {
        let window = if self.credit > 0 { self.window(now) } else { 0 };
        Allowance { window, pace: self.pace, not_before: Time::ZERO }
    }

    fn on_feedback(&mut self, now: Time, feedback: &Feedback) {
        self.begin();
        // The receiver's credit answers packets that its own switch cuts.
        let answered = feedback.delivery.last_hop && feedback.delivery.cut > 0;
        if let Some(nscc) = self.nscc.as_mut().filter(|_| !answered) {
            nscc.on_feedback(now, feedback);
        }
    }

    fn on_send(&mut self, now: Time, frame: u32, backlog: u64, active: u64) -> Demand {
        self.credit -= i64::from(frame);
        let most =
            self.most.min(i64::try_from(self.window(now)).unwrap_or(i64::MAX).saturating_add(self.frame));
        let wanted = i64::try_from(backlog).unwrap_or(i64::MAX).min(most) - self.credit.max(0);
        // The first window may end at any reply, so a sender never relies on it alone.
        let least = if self.unasked && backlog > 0 { self.frame } else { 0 };
        // Credit below 0 was spent before it was granted.
        let owed = (-self.credit).max(0);
        let more = (wanted.max(least) + owed) as u64 / active.max(1);
        Demand { total: (self.granted + more).next_multiple_of(UNIT), exhausted: self.credit <= 0 }
    }

    fn assumed_delay(&self) -> Option<Time> {
        self.nscc.as_ref().and_then(|nscc| nscc.assumed_delay())
    }

    fn on_grant(&mut self, _now: Time, total: u64) {
        self.begin();
        let more = total.saturating_sub(self.granted);
        self.granted += more;
        self.credit = self.credit.saturating_add(i64::try_from(more).unwrap_or(i64::MAX)).min(self.most);
    }

    fn on_timeout(&mut self, now: Time) {
        self.begin();
        self.credit = self.credit.max(1);
        if let Some(nscc) = &mut self.nscc {
            nscc.on_timeout(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::ZERO;

    fn control(nscc: Option<nscc::Config>) -> Rccc {
        let config = Config { nscc, ..Config::default() };
        let mut control = config.control(Rate::from_gbps(400), None);
        (control.most, control.credit, control.frame) = (10_000, 10_000, 4_000);
        control
    }

    /// Sends a frame; returns the demand, which is at least `demand` and less than a unit above it.
    fn sends(control: &mut Rccc, frame: u32, backlog: u64, active: u64, demand: u64) -> bool {
        let sent = control.on_send(NOW, frame, backlog, active);
        assert_eq!(sent.total, demand.next_multiple_of(UNIT));
        sent.exhausted
    }

    #[test]
    fn the_first_window_goes_out_unasked_and_ends_with_the_first_reply() {
        let mut control = control(None);
        assert_eq!(control.allowance(NOW).window, u64::MAX);
        // 30,000 B wait behind the packet; 6,000 B of credit are left.
        assert!(!sends(&mut control, 4_000, 30_000, 1, 4_000));
        control.on_feedback(NOW, &Feedback::default());
        assert_eq!(control.allowance(NOW).window, 0);
        control.on_grant(NOW, 5_000);
        assert_eq!(control.allowance(NOW).window, u64::MAX);
        // The packet spends 4,000 B, and the rest counts towards the largest credit.
        assert!(!sends(&mut control, 4_000, 26_000, 1, 5_000 + 10_000 - 1_000));
    }

    #[test]
    fn grants_are_sums_so_lost_and_late_ones_do_no_harm() {
        let mut control = control(None);
        control.on_grant(NOW, 3_000);
        control.on_grant(NOW, 9_000);
        control.on_grant(NOW, 6_000);
        assert_eq!((control.credit, control.granted), (9_000, 9_000));
        control.on_grant(NOW, 30_000);
        assert_eq!((control.credit, control.granted), (10_000, 30_000), "at most the largest credit");
    }

    #[test]
    fn a_packet_that_spends_all_credit_asks_for_an_ack_and_debts_are_demanded() {
        let mut control = control(None);
        control.on_feedback(NOW, &Feedback::default());
        control.on_grant(NOW, 1_000);
        assert!(sends(&mut control, 4_000, 2_000, 1, 1_000 + 2_000 + 3_000));
        assert_eq!(control.allowance(NOW).window, 0);
        control.on_grant(NOW, 7_000);
        assert!(!sends(&mut control, 2_000, 0, 1, 7_000), "the last packet leaves 1,000 B of credit");
        assert!(sends(&mut control, 1_500, 0, 1, 7_500), "it owes 500 B");
    }

    #[test]
    fn queue_pairs_that_share_the_nic_demand_their_parts() {
        let mut control = control(None);
        control.on_feedback(NOW, &Feedback::default());
        control.on_grant(NOW, 5_000);
        // 1,000 B of credit are left of the largest credit, 10,000 B.
        sends(&mut control, 4_000, 26_000, 3, 5_000 + 3_000);
        sends(&mut control, 900, 26_000, 1_000, 5_009);
    }

    #[test]
    fn a_timeout_lets_one_packet_out_with_its_demand() {
        let mut control = control(None);
        control.on_feedback(NOW, &Feedback::default());
        control.on_timeout(NOW);
        assert_eq!(control.allowance(NOW).window, u64::MAX);
        assert!(sends(&mut control, 4_000, 4_000, 1, 4_000 + 3_999));
        assert_eq!(control.allowance(NOW).window, 0);
    }

    #[test]
    fn with_a_window_a_packet_needs_both() {
        let mut control = control(Some(nscc::Config::default()));
        let window = control.allowance(NOW).window;
        assert!(window > 0 && window < u64::MAX);
        control.on_feedback(NOW, &Feedback::default());
        assert_eq!(control.allowance(NOW).window, 0, "no credit");
    }
}
