//! Under all faults of the line, every packet arrives exactly once and the sender finishes.

use super::{Fault, Pair, acking, nic};
use super::{ReceiverCalls as _, SenderCalls as _};
use crate::facts::Acks;
use crate::psn::sender::Resend;
use crate::timeout::{Backoff, Timeout};
use crate::transport::{adaptive_routing, dcp, go_back_n, ideal, irn, mp_rdma, nic_sr, sr_sack};
use crate::{NicConfig, TransportConfig};
use model::annex::{Notice, Selective};
use model::transport::{Fate, Reply};
use model::{Psn, Time};
use proptest::prelude::*;

fn transports() -> impl Strategy<Value = TransportConfig> {
    let limits = || (prop_oneof![Just(1 << 15), 1..40u32], prop_oneof![Just(1 << 15), 1..40u32]);
    let resend = || prop_oneof![Just(Resend::Oldest), Just(Resend::All)];
    prop_oneof![
        (limits(), prop::option::of(1..9u64), any::<bool>()).prop_map(
            |((max_outstanding, _), us, renack_after_rewind)| {
                let renack_interval = us.map(Time::from_us);
                TransportConfig::GoBackN(go_back_n::Config {
                    max_outstanding,
                    renack_interval,
                    renack_after_rewind,
                })
            }
        ),
        (limits(), resend()).prop_map(|((max_outstanding, reorder_window), resend)| {
            TransportConfig::NicSr(nic_sr::Config { max_outstanding, reorder_window, resend })
        }),
        (limits(), resend()).prop_map(|((max_outstanding, reorder_window), resend)| {
            TransportConfig::Ideal(ideal::Config { max_outstanding, reorder_window, resend })
        }),
        (limits(), resend()).prop_map(|((max_outstanding, reorder_window), resend)| {
            TransportConfig::SrSack(sr_sack::Config { max_outstanding, reorder_window, resend })
        }),
        (1..60u32, 1..50u64, 0..9u32, resend(), resend()).prop_map(
            |(bdp_cap, us, few, on_gap, on_timeout)| {
                let low_timeout = Time::from_us(us);
                TransportConfig::Irn(irn::Config { bdp_cap, low_timeout, few, on_gap, on_timeout })
            }
        ),
        (1..70u32).prop_map(|bitmap| TransportConfig::MpRdma(mp_rdma::Config { bitmap })),
        (1..40u32).prop_map(|message_packets| TransportConfig::Dcp(dcp::Config { message_packets })),
        limits().prop_map(|(a, b)| {
            let max_outstanding = Some(a.min(b));
            TransportConfig::AdaptiveRouting(adaptive_routing::Config {
                reorder_window: a.max(b),
                max_outstanding,
            })
        }),
    ]
}

fn faults() -> impl Strategy<Value = Vec<(u64, Fault)>> {
    let late = || (1..60_000_000u64).prop_map(Time);
    let fault = prop_oneof![
        3 => Just(Fault::Lose),
        3 => late().prop_map(Fault::Delay),
        1 => late().prop_map(Fault::Copy),
    ];
    prop::collection::vec((0..300u64, fault), 0..80)
}

proptest! {
    #[test]
    fn everything_arrives_exactly_once(
        transport in transports(),
        (data, replies) in (faults(), faults()),
        (packets, message) in (1..200u64, 1..50u64),
        (ack_every, window) in (1..6u32, prop_oneof![Just(u64::MAX), 1..30u64]),
        (rto_us, backoff) in (3..50u64, any::<bool>()),
    ) {
        let config = NicConfig {
            ack_every,
            timeout: Timeout::Fixed(Time::from_us(rto_us)),
            backoff: backoff.then_some(Backoff { factor: 2, cap: Time::from_ms(1) }),
            ..nic(transport)
        };
        prop_assert_eq!(config.validate(), Ok(()));
        let mut pair = Pair::new(&config);
        // A network that copies packets would break the count of `dcp`, and ropewalk's fabrics copy none.
        let counts = matches!(config.transport.facts().acks, Acks::Messages(_));
        let possible = |fault: &Fault| !(counts && matches!(fault, Fault::Copy(_)));
        pair.data_faults.extend(data.into_iter().filter(|(_, fault)| possible(fault)));
        pair.reply_faults.extend(replies);
        (pair.window, pair.message) = (window, message);
        pair.run(packets);
        pair.run(packets); // the same queue pair sends again
    }

    #[test]
    fn no_reply_and_no_packet_causes_a_panic(
        transport in transports(),
        steps in prop::collection::vec((0..9u8, any::<u32>(), any::<u64>()), 0..300),
    ) {
        let config = nic(transport);
        let (mut sender, mut receiver) = (config.build().sender(), config.build().receiver());
        for (what, psn, time) in steps {
            let (now, psn) = (Time(time), Psn::new(psn));
            match what {
                0 => sender.post(u64::from(psn.value())),
                1 => drop(sender.next(now, time)),
                2 => drop(sender.on_reply(now, Reply::Ack(psn))),
                3 => drop(sender.on_reply(now, Reply::Nack(psn))),
                4 => sender.on_timeout(now),
                5 => {
                    let selective = Selective::Missing { first: psn, count: time as u16 };
                    sender.on_selective(now, Reply::Nack(Psn::new(time as u32 >> 3)), selective);
                }
                6 => drop(sender.on_selective(now, Reply::Nack(psn), Selective::Arrived(Psn::new(time as u32)))),
                7 => drop(receiver.on_notice(now, Notice { first: psn, count: time as u16 }, time % 2 == 0)),
                _ => drop(receiver.on_data(now, psn, time % 2 == 0, time % 3 == 0)),
            }
        }
    }
}

/// Sends 2^24 packets and a few more: the PSN wraps, with a loss at that point.
#[test]
fn psns_wrap_without_effect() {
    const WRAP: u64 = 1 << 24;
    for name in TransportConfig::NAMES {
        let config: NicConfig = toml::from_str(&acking(name)).unwrap();
        let (mut sender, mut receiver) = (config.build().sender(), config.build().receiver());
        sender.post(WRAP + 100);
        for seq in 0..WRAP - 2 {
            assert_eq!(sender.next(Time::ZERO, u64::MAX), Some((seq, false)));
            let answer = receiver.on_data(Time::ZERO, Psn::from_seq(seq), false, false);
            assert_eq!(sender.on_reply(Time::ZERO, answer.reply.unwrap()).acked, 1);
        }
        // The last PSN before the wrap is lost, and the following packets arrive.
        let mut replies = Vec::new();
        for seq in WRAP - 2..WRAP + 6 {
            assert_eq!(sender.next(Time::ZERO, u64::MAX), Some((seq, false)));
            if seq != WRAP - 1 {
                replies.extend(receiver.on_data(Time::ZERO, Psn::from_seq(seq), false, false).reply);
            }
        }
        for reply in replies {
            sender.on_reply(Time::ZERO, reply);
        }
        assert_eq!((sender.una(), receiver.expected()), (WRAP - 1, WRAP - 1), "{name}");
        sender.on_timeout(sender.deadline());
        while let Some((seq, _)) = sender.next(Time::ZERO, u64::MAX) {
            let answer = receiver.on_data(Time::ZERO, Psn::from_seq(seq), false, false);
            if let Some(reply) = answer.reply {
                sender.on_reply(Time::ZERO, reply);
            }
        }
        assert_eq!((sender.una(), receiver.expected()), (WRAP + 100, WRAP + 100), "{name}");
        let late = receiver.on_data(Time::ZERO, Psn::from_seq(WRAP - 1), false, false);
        assert_eq!(late.fate, Fate::Duplicate);
    }
}

#[test]
fn without_faults_no_mode_retransmits() {
    for name in TransportConfig::NAMES {
        let config: NicConfig = toml::from_str(&format!("ack-every = 4\n[transport.{name}]")).unwrap();
        let mut pair = Pair::new(&config);
        pair.run(1003);
        // Receivers that count bytes acknowledge the first packet at once; a packet has 1 B here.
        let acks = config.transport.facts().acks;
        let first = u64::from(matches!(acks, Acks::Bytes { .. }));
        let replies = first + (1003 - first).div_ceil(acks.packets(4, 1));
        assert_eq!((pair.retransmitted, pair.nacks, pair.timeouts, pair.replies), (0, 0, 0, replies));
        // The last ACK comes after one spacing per packet and a round trip.
        assert_eq!(pair.finished, Time::from_ns(1002 * 100 + 1000));
    }
}

#[test]
fn a_duplicate_repeats_a_lost_last_ack() {
    for name in TransportConfig::NAMES {
        let config: NicConfig = toml::from_str(&acking(name)).unwrap();
        let mut pair = Pair::new(&config);
        pair.lose_reply(9);
        pair.run(10);
        assert_eq!((pair.timeouts, pair.retransmitted, pair.duplicate), (1, 1, 1), "{name}");
    }
}

#[test]
fn a_filled_gap_is_acknowledged_at_once_however_rare_acks_are() {
    for name in ["nic-sr", "sr-sack", "irn", "mp-rdma", "ideal"] {
        let config: NicConfig = toml::from_str(&format!("ack-every = 16\n[transport.{name}]")).unwrap();
        let mut receiver = config.build().receiver();
        let mut reply = |psn| receiver.on_data(Time::ZERO, Psn::new(psn), false, false).reply;
        assert_eq!(reply(0), None);
        reply(2);
        assert_eq!(reply(1), Some(Reply::Ack(Psn::new(2))), "{name}");
        assert_eq!(reply(3), None);
    }
}

#[test]
fn every_mode_reports_marks_by_its_settings() {
    for name in TransportConfig::NAMES {
        for (cnp, frame) in [("frame", true), ("flag", false)] {
            let toml = format!(
                "cnp = \"{cnp}\"\ncnp-interval = \"10us\"\ncnp-interval-per = \"queue-pair\"\n[transport.{name}]"
            );
            let config: NicConfig = toml::from_str(&toml).unwrap();
            let mut receiver = config.build().receiver();
            let mut marked = |us, psn| {
                let answer = receiver.on_data(Time::from_us(us), Psn::new(psn), true, false);
                (answer.cnp, answer.echo)
            };
            // The three packets arrive in order, ahead of a gap, and as a duplicate.
            assert_eq!(marked(0, 0), (frame, !frame));
            assert_eq!(marked(9, 2), (false, !frame));
            assert_eq!(marked(10, 0), (frame, !frame));
        }
    }
}
