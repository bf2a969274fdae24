//! The limit on retransmissions by timeout.

use model::{Resilience, Time};
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
    /// The queue pair moves to the next port of its NIC, as under NCCL's port failover, and returns by its port recovery. A second dead
    /// port ends the job.
    NcclFailover,
    /// Nothing: the sender goes on for ever.
    Never,
}

/// NCCL's port failover and port recovery, from 2.30 on (`p2p_resiliency.cc` and `p2p_resiliency_recovery.cc` of `net_ib`). Both
/// are off by default.
pub const NCCL: Resilience = Resilience {
    // NCCL_IB_RESILIENCY_PORT_FAILOVER_PROBE_DELAY. The read that follows takes a round trip, which we leave out.
    probe: Time::from_ms(10),
    // NCCL_IB_RESILIENCY_PORT_RECOVERY_START_DELAY
    recovery: Time::from_ms(200),
    // NCCL_IB_RESILIENCY_PORT_RECOVERY_ACK_TIMEOUT. The sender asks again when no ACK has come for so long; the least time between two
    // batches, 500 ms, is shorter. A receiver answers after more than five messages in order, and a batch has five, so two batches in
    // a row must arrive.
    interval: Time::from_ms(5000),
    // NCCL_IB_RESILIENCY_PORT_RECOVERY_ATTEMPTS_MAX
    attempts: 5,
};

#[cfg(test)]
mod tests {
    use crate::timeout::{Timeout, Timing};
    use crate::{Nic, NicConfig};
    use model::transport::{Heard, Reply};
    use model::{Psn, Sender as _, Time};

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

    /// A sender that begins anew sends what is not acknowledged once more, and counts timeouts from 0.
    #[test]
    fn a_sender_of_queue_pairs_that_move_begins_anew() {
        for transport in crate::TransportConfig::all().filter(|transport| !transport.facts().sacks) {
            let name = transport.name();
            let nic = Nic::new(&NicConfig { transport, ..NicConfig::default() });
            let mut sender = nic.sender();
            sender.post_message(4, 1500, 1500);
            let sent = |sender: &mut crate::AnySender, now| {
                std::iter::from_fn(|| sender.send(now, 1 << 20)).map(|packet| packet.seq).collect::<Vec<_>>()
            };
            assert_eq!(sent(&mut sender, Time::ZERO), [0, 1, 2, 3], "{name}");
            sender.hear(Time(1), &Heard::Reply(Reply::Ack(Psn::new(0))));
            for fired in 1..=3 {
                let now = sender.position().deadline;
                assert_eq!(sender.on_deadline(now).fired, fired, "{name}");
            }
            sender.restart();
            assert_eq!(sender.position().deadline, Time::NEVER, "{name}");
            assert_eq!(sent(&mut sender, Time::from_ms(50)), [1, 2, 3], "{name}");
            let now = sender.position().deadline;
            assert!(now > Time::from_ms(50) && now < Time::from_ms(52), "{name}: {now}");
            assert_eq!(sender.on_deadline(now).fired, 1, "{name}");
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
