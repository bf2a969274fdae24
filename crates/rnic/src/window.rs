//! Limit on a queue pair's outstanding packets, in addition to its congestion control's own.

use crate::path::Path;
use finding::{Finding, code};
use model::{Allowance, Bytes, Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Size of the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Window {
    /// The bandwidth-delay product of the queue pair's hosts.
    Bdp,
    /// The largest bandwidth-delay product of any two hosts, at the line rate of the sender.
    LongestBdp,
    /// Fixed size.
    Bytes(Bytes),
}

impl Window {
    pub(crate) fn validate(&self) -> Result<(), Finding> {
        match self {
            Window::Bytes(Bytes(0)) => Err(code::RANGE.at("window.bytes", "must be above 0")),
            _ => Ok(()),
        }
    }

    /// Packets of the limit of a queue pair of a NIC of `line_rate` that sends at line rate.
    pub fn packets(&self, line_rate: Rate, path: &Path) -> u64 {
        whole_packets(self.cap(line_rate, path, false, 1).packets)
    }

    /// Limit of a queue pair of a NIC of `line_rate`, whose sender counts a packet as `packet` in its window.
    pub(crate) fn cap(&self, line_rate: Rate, path: &Path, scales: bool, packet: u32) -> Cap {
        let line = (line_rate.bps() as f64).max(1.0);
        let bdp = |rtt: Time| line * rtt.ps() as f64 / 8e12;
        let bytes = match self {
            Window::Bdp => bdp(path.base_rtt),
            Window::LongestBdp => bdp(path.longest_rtt),
            Window::Bytes(bytes) => bytes.get() as f64,
        };
        Cap { packets: bytes / f64::from(path.payload.max(1)), packet, line: scales.then_some(line) }
    }
}

/// Limit of one queue pair.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cap {
    packets: f64,
    /// A packet in the unit of the sender's window: 1, or the bytes of a full frame.
    packet: u32,
    /// Line rate, if the limit shrinks with the rate.
    line: Option<f64>,
}

impl Cap {
    /// Reduces the control's allowance to the limit.
    pub(crate) fn limit(&self, allowance: &mut Allowance) {
        let share = self.line.map_or(1.0, |line| (allowance.pace.bps() / line).min(1.0));
        let most = whole_packets(self.packets * share).saturating_mul(self.packet.into());
        allowance.window = allowance.window.min(most);
    }
}

/// Whole packets of a window, rounded up and at least one: a packet may start while less than the window is outstanding.
pub(crate) fn whole_packets(window: f64) -> u64 {
    let whole = window as u64;
    whole.saturating_add(u64::from((whole as f64) < window)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NicConfig;
    use model::{Congestion as _, Pace};

    fn config(toml: &str) -> NicConfig {
        toml::from_str(toml).unwrap()
    }

    /// A control at 100 Gb/s with a round trip of 10 us to its host and 1 ms to the furthest host.
    fn control(toml: &str) -> crate::Reacting {
        let (line, longest_rtt) = (Rate::from_gbps(100), Time::from_ms(1));
        config(toml)
            .build()
            .congestion_over(line, &Path { longest_rtt, payload: 1000, ..Path::unknown(line) })
    }

    #[test]
    fn a_window_is_bytes_or_a_bandwidth_delay_product() {
        for (toml, packets) in [
            ("window = \"bdp\"", 125),
            ("window = \"longest-bdp\"", 12_500),
            ("window = { bytes = \"12654562B\" }", 12_655),
            ("window = { bytes = \"1B\" }", 1),
            ("", u64::MAX),
        ] {
            let mut control = control(toml);
            assert_eq!(control.allowance(Time::ZERO).window, packets, "{toml}");
            // A second call and a mark change nothing, since the window does not depend on the rate.
            control.on_cnp(Time::ZERO);
            assert_eq!(control.allowance(Time::from_us(9)).window, packets, "{toml}");
        }
    }

    #[test]
    fn a_sender_that_counts_bytes_gets_the_bytes_of_full_frames() {
        for mode in ["uec", "dcp"] {
            let toml = format!("window = \"bdp\"\n[transport.{mode}]");
            let frame = u64::from(Path::unknown(Rate::from_gbps(100)).mtu);
            assert_eq!(control(&toml).allowance(Time::ZERO).window, 125 * frame, "{mode}");
        }
    }

    #[test]
    fn the_window_may_shrink_with_the_rate() {
        let mut control = control("window = \"bdp\"\nwindow-scales-with-rate = true\non-nack = { to = 0.1 }");
        assert_eq!(control.allowance(Time::ZERO).window, 125);
        control.on_nack(Time::ZERO);
        let allowance = control.allowance(Time::ZERO);
        // The NACK has also started DCQCN's timers, but the rate is still 10 Gb/s.
        assert_eq!((allowance.pace, allowance.window), (Pace::from_bps(10e9), 13));
    }
}
