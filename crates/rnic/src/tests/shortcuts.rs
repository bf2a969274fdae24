//! The shortcuts of senders and receivers have the effect of the calls that they replace.

use super::{ReceiverCalls as _, SenderCalls as _};
use crate::psn::sender::{Resend, Rules, Sender};
use crate::tests::nic;
use crate::timeout::{Timeout, Timing};
use crate::{AnyReceiver, AnySender, NicConfig, TransportConfig};
use model::transport::{Fate, Plain, Reply};
use model::{Psn, Receiver as _, Sender as _, Time};
use proptest::prelude::*;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

fn state(of: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

fn state_of(receiver: &AnyReceiver) -> u64 {
    match receiver {
        AnyReceiver::Keeping(r) => state(r),
        AnyReceiver::InOrder(r) => state(r),
        AnyReceiver::Selective(_)
        | AnyReceiver::Sack(_)
        | AnyReceiver::Counted(_)
        | AnyReceiver::Custom(_) => 0,
    }
}

/// A step of a sender's past.
#[derive(Clone, Debug)]
enum Step {
    Post(u64),
    Send(u8),
    Ack(u32),
    Nack(u32),
    Timeout,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (1..20u64).prop_map(Step::Post),
        (1..12u8).prop_map(Step::Send),
        (0..30u32).prop_map(Step::Ack),
        (0..30u32).prop_map(Step::Nack),
        Just(Step::Timeout),
    ];
    prop::collection::vec(step, 0..30)
}

fn sender_after(steps: &[Step]) -> Sender {
    let timing = Timing::new(Timeout::Fixed(Time::from_ms(1)), None);
    let (on_nack, on_timeout) = (Some(Resend::Oldest), Resend::All);
    let mut sender = Sender::new(Arc::new(Rules { timing, limit: 16, on_nack, on_timeout }));
    for (now, step) in (1..).map(Time::from_us).zip(steps) {
        match *step {
            Step::Post(packets) => sender.post(packets),
            Step::Send(packets) => {
                (0..packets).for_each(|_| _ = sender.next(now, u64::MAX));
            }
            Step::Ack(psn) => _ = sender.on_reply(now, Reply::Ack(Psn::new(psn))),
            Step::Nack(psn) => _ = sender.on_reply(now, Reply::Nack(Psn::new(psn))),
            Step::Timeout => _ = sender.on_timeout(sender.deadline()),
        }
    }
    sender
}

proptest! {
    #[test]
    fn a_plain_packet_leaves_the_receiver_as_any_other_call_would(
        packets in prop::collection::vec((0..90u32, any::<bool>()), 1..300),
        mode in 0..3usize,
        ack_every in 1..3u32,
    ) {
        let mode = [
            TransportConfig::NicSr(Default::default()),
            TransportConfig::Ideal(Default::default()),
            TransportConfig::GoBackN(Default::default()),
        ][mode].clone();
        let nic = NicConfig { ack_every, ..nic(mode) }.build();
        let (mut short, mut long) = (nic.receiver(), nic.receiver());
        for (now, (distance, last)) in (1..).map(Time::from_us).zip(packets) {
            // Most packets are near ePSN; some lie before it.
            let psn = Psn::from_seq((long.expected() + u64::from(distance % 70)).saturating_sub(2));
            let plain = short.on_plain(psn);
            let got = long.on_data(now, psn, false, last);
            match plain {
                None => prop_assert_eq!(short.on_data(now, psn, false, last), got),
                Some(Plain { psn, nack, out_of_order }) => {
                    let reply = if nack { Reply::Nack(psn) } else { Reply::Ack(psn) };
                    prop_assert_eq!((Some(reply), out_of_order), (got.reply, got.out_of_order));
                    prop_assert_eq!((got.fate, got.cnp, got.echo), (Fate::Accepted, false, false));
                }
            }
            prop_assert_eq!(state_of(&short), state_of(&long));
        }
    }

    #[test]
    fn a_free_ack_may_come_before_the_packets_that_started_earlier(
        past in steps(), psn in 0..40u32, earlier in 0..6u64,
    ) {
        let mut first = sender_after(&past);
        let mut then = first.clone();
        let at = |n: u64| Time::from_us(100 + n);
        let send = |sender: &mut Sender| -> Vec<_> {
            (0..earlier).map(|n| sender.next(at(n), u64::MAX)).collect()
        };
        let before = state(&first);
        if first.on_free_ack(at(9), Psn::new(psn), 6) {
            let sent = send(&mut first);
            prop_assert_eq!(send(&mut then), sent);
            then.on_reply(at(9), Reply::Ack(Psn::new(psn)));
            prop_assert_eq!(state(&first), state(&then));
        } else {
            prop_assert_eq!(state(&first), before);
        }
    }

    #[test]
    fn a_row_is_sent_as_packet_by_packet(past in steps(), share in 0..=100u64) {
        let mut row = sender_after(&past);
        let mut single = row.clone();
        let packets = row.row() * share / 100;
        let first = row.high();
        for seq in first..first + packets {
            prop_assert_eq!(single.next(Time::from_us(100), u64::MAX), Some((seq, false)));
        }
        row.send_row(packets);
        prop_assert_eq!(state(&row), state(&single));
        prop_assert!(packets == 0 || row.ready(u64::MAX));
    }
}

/// The shortcuts exist for speed, so they must apply to undisturbed traffic.
#[test]
fn a_sender_without_losses_takes_the_shortcuts() {
    let mut sender = nic(TransportConfig::NicSr(Default::default())).build().sender();
    sender.post(40);
    assert_eq!(sender.row(), 0, "the first packet starts the timer");
    for seq in 0..5 {
        assert_eq!(sender.next(Time::ZERO, u64::MAX), Some((seq, false)));
    }
    assert_eq!(sender.row(), 34, "the last of the 35 packets to come is sent by itself");
    sender.send_row(3);
    assert_eq!((sender.high(), sender.row()), (8, 31));
    let ack = |sender: &mut AnySender, psn| sender.on_free_ack(Time::from_us(1), Psn::new(psn), 4);
    assert!(ack(&mut sender, 1) && sender.una() == 2);
    assert_eq!(sender.deadline(), Time::from_us(1001), "the timer starts anew");
    assert!(ack(&mut sender, 0) && sender.una() == 2, "an old ACK has no effect");
    assert!(!ack(&mut sender, 7), "the last ACK stops the timer");
    sender.on_timeout(sender.deadline());
    assert!(!ack(&mut sender, 3), "after a timeout an ACK resets the backoff");
    assert_eq!(sender.row(), 0, "retransmissions come first");
}

#[test]
fn a_row_and_a_free_ack_keep_the_limit_of_outstanding_packets() {
    let timing = Timing::new(Timeout::Fixed(Time::from_ms(1)), None);
    let (on_nack, on_timeout) = (Some(Resend::Oldest), Resend::All);
    let mut sender = Sender::new(Arc::new(Rules { timing, limit: 16, on_nack, on_timeout }));
    sender.post(40);
    for _ in 0..5 {
        sender.next(Time::ZERO, u64::MAX);
    }
    assert_eq!(sender.row(), 10);
    // Five packets are outstanding, and the limit has room for eleven more.
    assert!(!sender.on_free_ack(Time::ZERO, Psn::new(1), 12));
    assert!(sender.on_free_ack(Time::ZERO, Psn::new(1), 11));
}

#[test]
fn a_receiver_without_losses_takes_the_shortcut() {
    let plain = |psn, nack, out_of_order| Some(Plain { psn: Psn::new(psn), nack, out_of_order });
    let mut keeping = nic(TransportConfig::NicSr(Default::default())).build().receiver();
    assert_eq!(keeping.on_plain(Psn::new(0)), plain(0, false, false));
    assert_eq!(keeping.on_plain(Psn::new(3)), plain(1, true, true), "the first packet ahead is NACKed");
    assert_eq!(keeping.on_plain(Psn::new(65)), plain(0, false, true));
    assert_eq!(keeping.on_plain(Psn::new(66)), None, "it lies beyond the word of 64 packets");
    assert_eq!(keeping.on_plain(Psn::new(3)), None, "it is a duplicate");
    assert_eq!(keeping.on_plain(Psn::new(1)), plain(1, false, false));
    assert_eq!(keeping.on_plain(Psn::new(2)), plain(3, false, false));
    let mut in_order = nic(TransportConfig::GoBackN(Default::default())).build().receiver();
    assert_eq!(in_order.on_plain(Psn::new(0)), plain(0, false, false));
    assert_eq!(in_order.on_plain(Psn::new(2)), None);
    assert_eq!(in_order.on_plain(Psn::new(1)), plain(1, false, false));
    let mut coalescing = NicConfig { ack_every: 2, ..NicConfig::default() }.build().receiver();
    assert_eq!(coalescing.on_plain(Psn::new(0)), None, "not every packet has an ACK");
}
