//! No run gives up while its flows wait for a timer or for an ACK.

use super::case::Case;
use crate::wait::ten;
use finding::{Finding, code};

pub(super) fn judge(case: &Case<'_>) -> Vec<Finding> {
    let Some(given) = case.scenario.stop.no_progress else { return Vec::new() };
    case.of_nics(|waits| {
        let (timeouts, rtt) = (ten(waits.timeout), waits.rtt());
        let patience = timeouts.max(rtt);
        let (of, have) = match timeouts >= rtt {
            true => ("ten retransmission timeouts", "have"),
            false => ("a round trip", "has"),
        };
        let text = format!(
            "with `stop.no-progress = \"{given}\"` the run gives up before {of} ({:.1} us) {have} passed",
            patience.as_us()
        );
        (given < patience).then(|| code::PATIENCE.at("stop.no-progress", text).rooted())
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::far_apart;

    #[test]
    fn a_run_gives_up_only_after_ten_round_trips() {
        use model::Time;
        assert_eq!(far_apart("1us", "[nic.congestion.none]\n").plan.no_progress, Time::from_ms(100));
        // At 1 Mb/s, the default of DCQCN's least rate, a packet takes 12 ms.
        let slow = far_apart("1us", "").plan.no_progress;
        assert!(slow > Time::from_ms(120) && slow < Time::from_ms(125), "{slow}");
        let far = far_apart("150ms", "[nic]\ntimeout = { fixed = \"1ms\" }\n").plan.no_progress;
        assert!(far > Time::from_ms(3000) && far < Time::from_ms(3001), "{far}");
        // At its smallest window, 0.001 packets, Swift sends a packet every thousand round trips of 200 us.
        let swift = far_apart("100us", "[nic.congestion.swift]\n").plan.no_progress;
        assert!(swift > Time::from_ms(2000) && swift < Time::from_ms(2100), "{swift}");
        let slow = far_apart("1us", "[nic.congestion.dcqcn]\nmin-rate = \"10kbps\"\n").plan.no_progress;
        // 1520 B at 10 kb/s take 1.216 s.
        assert_eq!(slow, Time::from_ms(12_160));
        let short = far_apart("150ms", "[nic]\ntimeout = \"none\"\n[stop]\nno-progress = \"200ms\"\n");
        assert_eq!(short.plan.no_progress, Time::from_ms(200));
        let text = short.warnings().join("\n");
        assert!(text.contains("the run gives up before a round trip (300000.1 us)"), "{text}");
    }
}
