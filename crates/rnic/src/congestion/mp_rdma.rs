//! MP-RDMA's congestion control: one window for all paths (Lu et al., "Multi-Path Transport for RDMA in Datacenters",
//! NSDI'18, congestion control and multi-path ACK-clocking).
//!
//! Every ACK without a mark opens the window by 1/cwnd, and every ACK with a mark closes it by 1/2; the window is never
//! below one packet. ACKs clock packets onto the paths that they answer (`[scheme.mp-rdma]`), so a path whose ACKs are
//! marked loses packets to the others. Marks come as flags on ACKs, so the control needs `nic.cnp = "flag"`.
//!
//! Our choices, where the paper or our knowledge of it is silent: a NACK opens nothing, since its packet was dropped. A NACK
//! that begins a recovery does what `nic.on-nack` sets, and a timeout does what `nic.on-timeout` sets; `as-cnp` counts as a
//! mark. Within the window packets start at line rate.

use crate::facts::{Control, ControlFacts, Evidence};
use crate::limits::outstanding;
use crate::path::Path;
use finding::Finding;
use model::{Allowance, Congestion, Pace, Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[nic.congestion.mp-rdma]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[schemars(rename = "CongestionMpRdma")]
pub struct Config {
    /// Window of a new queue pair, in packets. Default: the bandwidth-delay product between the queue pair's hosts on an
    /// idle fabric, rounded up (our choice; the paper is said to start with one).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial: Option<u32>,
}

/// Window of a new queue pair if the fabric is unknown. Our choice: the size of the paper's bitmap.
const UNKNOWN: u32 = 64;
/// Smallest window, packets (the paper).
const LEAST: f64 = 1.0;
/// Marks that close the window by one packet (the paper).
pub const MARKS_PER_PACKET: u32 = 2;
/// Packets by which a mark closes the window.
const MARK: f64 = 1.0 / MARKS_PER_PACKET as f64;

impl Control for Config {
    type State = MpRdma;

    fn facts(&self) -> ControlFacts {
        let needs_path = self.initial.is_none();
        ControlFacts { needs_feedback: false, needs_path, ..ControlFacts::of(Evidence::Marks) }
    }

    fn validate(&self) -> Result<(), Finding> {
        self.initial.map_or(Ok(()), |initial| outstanding("initial", initial))
    }

    fn control(&self, line_rate: Rate, path: Option<&Path>) -> MpRdma {
        let initial = self.initial.or(path.map(|path| path.bdp)).unwrap_or(UNKNOWN);
        MpRdma { window: f64::from(initial).max(LEAST), pace: Pace::from_bps(line_rate.bps() as f64) }
    }
}

/// State of one queue pair.
#[derive(Clone, Debug)]
pub struct MpRdma {
    /// Window, packets.
    window: f64,
    pace: Pace,
}

impl MpRdma {
    /// No effect: it has no rate to lower.
    pub(crate) fn lower_to(&mut self, _now: Time, _share: f64) {}

    /// Zero, since every ACK changes the window.
    pub(crate) const fn steady_until(&self) -> Time {
        Time::ZERO
    }

    fn on_mark(&mut self) {
        self.window = (self.window - MARK).max(LEAST);
    }
}

impl Congestion for MpRdma {
    fn allowance(&mut self, _now: Time) -> Allowance {
        Allowance { window: self.window as u64, pace: self.pace, not_before: Time::ZERO }
    }

    fn on_ack(&mut self, _now: Time, _packets: u64, echo: bool) {
        if echo {
            self.on_mark();
        } else {
            self.window += 1.0 / self.window;
        }
    }

    fn on_nacked(&mut self, _now: Time, _packets: u64, echo: bool) {
        if echo {
            self.on_mark();
        }
    }

    fn on_cnp(&mut self, _now: Time) {
        self.on_mark();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control(initial: u32) -> MpRdma {
        Config { initial: Some(initial) }.control(Rate::from_gbps(100), None)
    }

    #[test]
    fn a_window_of_acks_opens_it_by_one_packet_and_two_marks_close_it_by_one() {
        let mut c = control(10);
        for _ in 0..11 {
            c.on_ack(Time::ZERO, 1, false);
        }
        assert_eq!(c.allowance(Time::ZERO).window, 11);
        c.on_ack(Time::ZERO, 0, true); // an ACK ahead of a gap counts like any other
        c.on_cnp(Time::ZERO);
        assert_eq!(c.allowance(Time::ZERO).window, 10);
        (0..MARKS_PER_PACKET).for_each(|_| c.on_cnp(Time::ZERO));
        assert_eq!(c.allowance(Time::ZERO).window, 9);
    }

    #[test]
    fn nacks_never_open_the_window() {
        let mut c = control(10);
        (0..100).for_each(|_| c.on_nacked(Time::ZERO, 0, false));
        assert_eq!(c.allowance(Time::ZERO).window, 10);
        c.on_nacked(Time::ZERO, 0, true);
        assert_eq!(c.allowance(Time::ZERO).window, 9, "a mark on a NACK closes the window");
    }

    #[test]
    fn there_is_always_room_for_a_packet() {
        let mut c = control(1);
        for _ in 0..9 {
            c.on_ack(Time::ZERO, 1, true);
            (0..MARKS_PER_PACKET).for_each(|_| c.on_cnp(Time::ZERO));
            assert_eq!(c.allowance(Time::ZERO).window, 1);
        }
        c.on_ack(Time::ZERO, 1, false);
        assert_eq!(c.allowance(Time::ZERO).window, 2);
    }

    #[test]
    fn packets_start_at_line_rate_however_often_one_asks() {
        let mut c = control(5);
        let first = c.allowance(Time::ZERO);
        assert_eq!(first, c.allowance(Time::from_us(7)));
        assert_eq!(first.pace.gap(1_250), Time::from_ns(100));
    }
}
