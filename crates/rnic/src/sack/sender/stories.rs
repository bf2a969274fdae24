use super::*;
use crate::sack::ring::State;
use crate::tests::SenderCalls as _;
use crate::timeout::{Backoff, Timeout};

const US: fn(u64) -> Time = Time::from_us;

/// A sender of ten frames of 1000 B, all sent at time 0, whose timer of 50 us doubles with each timeout.
fn sender(infer: Option<Infer>) -> Sender {
    sender_of(10, infer)
}

/// A sender of so many such frames.
fn sender_of(frames: u32, infer: Option<Infer>) -> Sender {
    let timing = Timing::new(Timeout::Fixed(US(50)), Some(Backoff { factor: 2, cap: Time::from_ms(10) }));
    let mut sender = Sender::new(Arc::new(Rules { timing, reach: 100, ask_below: 0, infer }));
    sender.post_message(frames.into(), 1000, 1000);
    (0..frames).for_each(|_| assert!(sender.next(Time::ZERO, u64::MAX).is_some()));
    sender
}

/// An ACK before `expected` with the receiver's count of packets.
fn ack(sender: &mut Sender, us: u64, expected: u64, arrived: u32) -> Delivery {
    let sack = Sack { arrived: 1000 * arrived, ..Sack::default() };
    let reply = Reply::Ack(Psn::from_seq(expected.wrapping_sub(1)));
    sender.on_sack(US(us), reply, &sack, u64::MAX).1
}

/// A receiver that reports more bytes is alive, even if the first packet is still missing. The timer then has its first length
/// again, and a report that tells nothing new leaves it.
#[test]
fn any_progress_ends_the_backoff() {
    // (ePSN, packets that have arrived), and the length of the timer afterwards.
    for (expected, arrived, length) in [(0, 0, 200), (0, 1, 50), (1, 1, 50), (1, 0, 50)] {
        let mut sender = sender(None);
        sender.on_timeout(US(50));
        assert_eq!(
            (sender.timer.fired(), sender.deadline()),
            (1, Time::NEVER),
            "all packets wait to be sent again"
        );
        (0..10).for_each(|_| assert!(sender.next(US(60), u64::MAX).is_some()));
        assert_eq!(sender.deadline(), US(160));
        sender.on_timeout(US(160));
        (0..10).for_each(|_| assert!(sender.next(US(170), u64::MAX).is_some()));
        assert_eq!(sender.deadline(), US(370));
        ack(&mut sender, 180, expected, arrived);
        assert_eq!(sender.deadline(), US(170 + length), "{expected} {arrived}");
    }
}

/// A forged ACK, or one of another queue pair, must not complete a message.
#[test]
fn an_ack_of_a_packet_that_was_never_sent_changes_nothing() {
    let mut sender = sender(None);
    assert_eq!(ack(&mut sender, 5, 11, 10), Delivery::default());
    assert_eq!((sender.flight.bytes(), sender.deadline()), (10_000, US(50)));
    assert_eq!(ack(&mut sender, 6, 10, 10).arrived, 10_000);
    assert_eq!((sender.flight.bytes(), sender.deadline()), (0, Time::NEVER));
}

/// A report has 64 bits, for as many packets as may be in flight.
#[test]
fn a_report_may_be_about_64_packets_in_flight() {
    let mut sender = sender_of(64, Some(Infer::Age(3)));
    let sack = Sack { base: Psn::new(0), bits: !1, arrived: 63_000, ahead: 63, ..Sack::default() };
    let none = Reply::Ack(Psn::new(u32::MAX));
    sender.on_sack(US(1), none, &sack, u64::MAX);
    let flying: Vec<u64> = (0..64).filter(|&seq| sender.flight.ring()[seq].state == State::Flying).collect();
    assert_eq!(flying, [0]);
}
