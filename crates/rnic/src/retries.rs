//! The limit on retransmissions by timeout.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most retries: senders count timeouts in a row up to 255.
pub(crate) const MAX_RETRIES: u8 = u8::MAX - 1;

/// What follows the last retry of a queue pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnRetryExceeded {
    /// The job ends, and with it the run.
    #[default]
    JobEnds,
    /// Nothing: the sender goes on for ever.
    Never,
}

#[cfg(test)]
mod tests {
    use crate::timeout::{Timeout, Timing};
    use crate::{Nic, NicConfig};
    use model::{Sender as _, Time};

    /// NCCL's exponents, with seven retries. A link that comes back before the seventh finds a sender that still tries, and the
    /// eighth timeout, one timer later, is `RETRY_EXC_ERR`.
    #[test]
    fn seven_retries_last_seven_timers_and_the_eighth_timeout_is_one_too_many() {
        for (exponent, retry_s, error_s) in [(14, 0.47, 0.54), (18, 7.5, 8.6), (20, 30.1, 34.4)] {
            let timing = Timing::new(Timeout::Ib(exponent), None);
            let fires: Vec<Time> = (0..8)
                .scan(Time::ZERO, |at, fired| {
                    *at = timing.deadline(*at, fired);
                    Some(*at)
                })
                .collect();
            assert_eq!(fires[6], Time(7 * (4_096_000 << exponent)));
            assert!((fires[6].as_secs() / retry_s - 1.0).abs() < 0.01, "{}", fires[6]);
            assert!((fires[7].as_secs() / error_s - 1.0).abs() < 0.01, "{}", fires[7]);
        }
    }

    /// Every recovery mode counts timeouts for packets in flight, and starts over after an ACK.
    #[test]
    fn every_sender_counts_timeouts_in_a_row() {
        for transport in crate::TransportConfig::all() {
            let name = transport.name();
            let nic = Nic::new(&NicConfig { transport, ..NicConfig::default() });
            let mut sender = nic.sender();
            sender.post_message(2, 1500, 1500);
            let mut now = Time::ZERO;
            let mut counts = Vec::new();
            while counts.len() < 3 {
                while sender.send(now, 1 << 20).is_some() {}
                let deadline = sender.position().deadline;
                assert_ne!(deadline, Time::NEVER, "{name}");
                now = deadline;
                let due = sender.on_deadline(now);
                if due.timeout {
                    counts.push(due.fired);
                }
            }
            assert_eq!(counts, [1, 2, 3], "{name}");
        }
    }
}
