//! The shortcuts of senders and receivers have the effect of the calls that they replace.

use crate::sender::{Resend, Rules, Sender};
use crate::tests::nic;
use crate::timeout::{Timeout, Timing};
use crate::{AnyReceiver, TransportConfig};
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
        AnyReceiver::Selective(_) | AnyReceiver::Custom(_) => 0,
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
            Step::Timeout => sender.on_timeout(sender.deadline()),
        }
    }
    sender
}

proptest! {
    #[test]
    fn a_plain_packet_leaves_the_receiver_as_any_other_call_would(
        packets in prop::collection::vec((0..90u32, any::<bool>()), 1..300),
        mode in 0..3usize,
    ) {
        let mode = [
            TransportConfig::NicSr(Default::default()),
            TransportConfig::Ideal(Default::default()),
            TransportConfig::GoBackN(Default::default()),
        ][mode].clone();
        let nic = nic(mode).build();
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
