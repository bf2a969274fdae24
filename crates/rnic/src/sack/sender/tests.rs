//! The bytes in flight, the timer, and requests for an ACK.

use super::*;
use crate::sack::ring::State;
use crate::tests::SenderCalls as _;
use crate::timeout::Timeout;

const US: fn(u64) -> Time = Time::from_us;

/// A sender of frames of 1000 B that has sent `sent` of `posted` packets at time 0.
pub(super) fn sender(posted: u64, sent: usize, infer: Option<Infer>) -> Sender {
    let timing = Timing::new(Timeout::Fixed(US(50)), None);
    let mut sender = Sender::new(Arc::new(Rules { timing, reach: 100, ask_below: 0, infer }));
    sender.post_message(posted, 1000, 300);
    (0..sent).for_each(|_| assert!(sender.next(Time::ZERO, 1 << 40).is_some()));
    sender
}

/// A reply with this ePSN and these packets beyond it; all of them count as arrived.
pub(super) fn reply(sender: &mut Sender, expected: u32, beyond: &[u32]) -> Delivery {
    reply_in(sender, expected, beyond, u64::MAX)
}

pub(super) fn reply_in(sender: &mut Sender, expected: u32, beyond: &[u32], window: u64) -> Delivery {
    let sack = Sack {
        base: Psn::new(expected + 1),
        bits: beyond.iter().map(|packet| 1 << (packet - expected - 1)).sum(),
        arrived: 1000 * (expected + beyond.len() as u32),
        ahead: beyond.len() as u16,
        ..Sack::default()
    };
    sender.on_sack(US(1), Reply::Ack(Psn::new(expected.wrapping_sub(1))), &sack, window).1
}

fn cut(sender: &mut Sender, expected: u32, cause: u32) -> Delivery {
    let sack = Sack { cause: Psn::new(cause), cut: true, ..Sack::default() };
    sender.on_sack(US(1), Reply::Nack(Psn::new(expected)), &sack, u64::MAX).1
}

#[test]
fn bytes_in_flight_are_those_sent_less_those_reported() {
    let mut sender = sender(9, 9, None);
    assert_eq!((sender.flight.bytes(), sender.backlog()), (8_300, 0));
    let delivery = reply(&mut sender, 2, &[4, 5]);
    assert_eq!((delivery.arrived, delivery.flight, sender.una()), (4_000, 4_300, 2));
    assert_eq!(reply(&mut sender, 1, &[]), Delivery { flight: 4_300, ..Delivery::default() }, "a late reply");
}

#[test]
fn a_cut_packet_is_sent_again_once_per_cut_and_before_new_ones() {
    let mut sender = sender(9, 6, None);
    assert_eq!(cut(&mut sender, 0, 3), Delivery { cut: 1000, flight: 5_000, ..Delivery::default() });
    assert_eq!(cut(&mut sender, 0, 3).cut, 0, "it waits to be sent again");
    assert_eq!(sender.next(US(2), 1 << 40), Some((3, true)));
    assert!(sender.asks, "a repeated packet asks for an ACK");
    assert_eq!(cut(&mut sender, 0, 3).cut, 1000, "it was cut again");
    // The packet has arrived after all: the receiver's count has it.
    assert_eq!(reply(&mut sender, 4, &[]).flight, 2_000);
    assert_eq!(sender.next(US(2), 1 << 40), Some((6, false)));
}

/// The packets from ePSN on that are neither missing nor in flight, after these maps: a first packet, and bits.
fn noted(maps: &[(u32, u64)]) -> Vec<u64> {
    let mut sender = sender(99, 90, None);
    for &(base, bits) in maps {
        let sack = Sack { base: Psn::new(base), bits, ..Sack::default() };
        let una = u32::try_from(sender.flight.ring().una()).unwrap();
        sender.on_sack(US(1), Reply::Ack(Psn::new(una.wrapping_sub(1))), &sack, u64::MAX);
    }
    let una = sender.flight.ring().una();
    (una..90).filter(|seq| sender.flight.ring()[*seq].state == State::Arrived).collect()
}

#[test]
fn maps_that_overlap_note_every_packet_however_they_follow_each_other() {
    assert_eq!(noted(&[(5, 0b101)]), [5, 7]);
    assert_eq!(noted(&[(5, 0b101), (6, 0b1010)]), [5, 7, 9], "a later map");
    assert_eq!(noted(&[(6, 0b1010), (3, 0b1_0001)]), [3, 7, 9], "an earlier map");
    assert_eq!(noted(&[(2, 1), (70, 0b11), (2, 0b11)]), [2, 3, 70, 71], "maps without common packets");
    assert_eq!(noted(&[(80, u64::MAX)]), (80..90).collect::<Vec<_>>(), "packets that were never sent");
    assert_eq!(noted(&[(1, u64::MAX), (2, u64::MAX)]), (1..66).collect::<Vec<_>>());
}

#[test]
fn a_map_may_begin_before_the_first_open_packet() {
    let mut sender = sender(99, 20, None);
    reply(&mut sender, 10, &[12]);
    let sack = Sack { base: Psn::new(7), bits: 0b1_0000_1011, arrived: 11_000, ..Sack::default() };
    sender.on_sack(US(2), Reply::Ack(Psn::new(9)), &sack, u64::MAX);
    let states: Vec<_> = (10..17).map(|seq| sender.flight.ring()[seq].state).collect();
    let arrived = |seq: usize| states[seq - 10] == State::Arrived;
    assert!(arrived(10) && arrived(12) && arrived(15) && !arrived(11) && !arrived(13) && !arrived(14));
}

#[test]
fn a_window_of_bytes_and_the_reach_bound_new_packets() {
    let mut few = sender(9, 2, None);
    assert!(!few.ready(2_999) && few.ready(3_000));
    assert!(few.next(US(1), 3_500).is_some() && few.asks, "less than a frame is left of the window");
    let full = sender(500, 100, None);
    assert!(!full.ready(u64::MAX), "the receiver can note 100 packets");
    assert!(full.asks && !sender(500, 99, None).asks, "the last of them asks, or nobody would send again");
}

#[test]
fn the_timer_runs_for_each_packet_from_its_last_transmission() {
    let mut sender = sender(3, 2, None);
    assert!(sender.next(US(20), 1 << 40).is_some());
    sender.on_timeout(US(50));
    assert_eq!((sender.take_lost(), sender.take_lost(), sender.take_lost()), (Some(0), Some(1), None));
    assert_eq!((sender.flight.bytes(), sender.deadline()), (300, US(70)));
    assert_eq!(sender.next(US(60), 1 << 40), Some((0, true)));
    reply(&mut sender, 0, &[2]);
    assert_eq!(sender.deadline(), US(110));
}

#[test]
fn a_sender_without_credit_and_packets_in_flight_has_a_timer_all_the_same() {
    let mut sender = sender(3, 2, None);
    reply(&mut sender, 2, &[]);
    assert_eq!(sender.deadline(), Time::NEVER);
    sender.on_held(US(5), 0);
    assert_eq!(sender.deadline(), US(55));
    sender.on_timeout(US(55));
    assert_eq!((sender.deadline(), sender.take_lost()), (US(105), None));
}

#[test]
fn the_timer_stops_when_the_last_packet_that_a_closed_window_held_back_has_arrived() {
    let mut sender = sender(2, 2, None);
    sender.on_timeout(US(50));
    sender.on_held(US(50), 0);
    assert_eq!((sender.backlog(), sender.deadline()), (1_300, US(100)));
    reply(&mut sender, 1, &[]);
    assert_eq!((sender.backlog(), sender.deadline()), (300, US(100)), "packet 1 still waits");
    sender.on_sack(US(60), Reply::Ack(Psn::new(1)), &Sack::default(), 0);
    assert_eq!((sender.backlog(), sender.deadline()), (0, Time::NEVER));
}

/// A sender of 20 packets that has sent four of them at time 0 under a large window, and whose window then shrinks to two.
fn held_back(asks: bool) -> Sender {
    let mut sender = sender(20, 4, None);
    if asks {
        sender.probe.note_request(Time::ZERO, 3);
    }
    reply_in(&mut sender, 1, &[], 2_000);
    assert!(!sender.ready(2_000), "three packets are in flight");
    sender
}

#[test]
fn a_window_that_shrinks_before_any_packet_has_asked_for_an_ack_makes_the_sender_ask() {
    let mut sender = held_back(false);
    assert!(sender.on_held(US(1), 2_000));
    assert_eq!(sender.deadline(), US(4), "three round trips of 1 us");
    assert!(!sender.on_held(US(2), 2_000) && sender.deadline() == US(4));
    assert_eq!((sender.take_probe(US(3)), sender.take_probe(US(4))), (None, Some(Kind::Control)));
    assert_eq!(sender.deadline(), US(9), "the probe may be lost");
    // The answer reports that all have arrived.
    let sack = Sack { cause: Psn::new(4), arrived: 4_000, probe: true, ..Sack::default() };
    sender.on_sack(US(5), Reply::Ack(Psn::new(3)), &sack, 2_000);
    assert!(sender.ready(2_000) && sender.deadline() == Time::NEVER);
}

#[test]
fn a_sender_that_awaits_an_ack_does_not_ask_again() {
    let mut sender = held_back(true);
    assert!(!sender.on_held(US(1), 2_000));
    assert_eq!(sender.deadline(), US(50), "the timer of the oldest packet");
}
