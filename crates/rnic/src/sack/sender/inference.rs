//! Losses inferred by age and from arrivals beyond ePSN, and probes.

use super::tests::{reply, reply_in, sender};
use super::*;
use crate::tests::SenderCalls as _;

const US: fn(u64) -> Time = Time::from_us;

/// RACK and TLP as Falcon has them, without its least silence.
const RACK: Infer =
    Infer::Rack(rack::Rule { quarters: 1, trips: 2, ack_wait: Time(8_000_000), least: Time::ZERO });

/// A sender that has sent one packet every microsecond, from 0 on.
fn one_per_us(packets: u64) -> Sender {
    let mut sender = sender(packets, 0, Some(RACK));
    (0..packets).for_each(|seq| assert_eq!(sender.next(US(seq), 1 << 40), Some((seq, false))));
    sender
}

/// The ACK that packet `cause` causes, which was sent at so many us, with what has arrived beyond packet 0.
fn answer(sender: &mut Sender, at: u64, cause: u64, bits: u64) -> Delivery {
    let (base, cause) = (Psn::new(1), Psn::from_seq(cause));
    let trip = Time(US(at).ps() - US(u64::from(cause.value())).ps());
    let sack = Sack { base, bits, cause, arrived: 1000 * bits.count_ones(), ..Sack::default() };
    let sacked = Sacked { selective: Default::default(), sack, trip, assumed: None, window: 1 << 40 };
    sender.hear(US(at), &Heard::Sacked(Reply::Ack(Psn::new(0xFF_FFFF)), sacked)).1
}

#[test]
fn under_rack_a_packet_is_lost_a_quarter_of_a_round_trip_after_its_reply_could_have_come() {
    let mut sender = one_per_us(8);
    // Packets 3 and 4 have arrived. Packet 4 took 8 us, so those are lost that were sent 10 us ago: packets 0 to 2.
    assert_eq!(answer(&mut sender, 12, 4, 0b1100).lost, 3_000);
    assert_eq!([0; 3].map(|_| sender.take_lost()), [Some(0), Some(1), Some(2)]);
    assert_eq!(sender.take_lost(), None, "packet 5 was sent later than any that has arrived");
    assert_eq!(sender.next(US(13), 1 << 40), Some((0, true)));
}

#[test]
fn under_rack_a_packet_comes_of_age_without_another_reply() {
    let mut sender = one_per_us(8);
    assert_eq!(answer(&mut sender, 9, 1, 0b1).lost, 0, "packet 0 is 9 us old");
    assert_eq!(sender.deadline(), US(10));
    let due = model::Sender::on_deadline(&mut sender, US(10));
    assert_eq!((due, sender.take_lost()), (Due::default(), Some(0)), "no timeout");
    assert_eq!(answer(&mut sender, 10, 2, 0b11).lost, 1_000, "the control hears of it by the next reply");
}

#[test]
fn under_rack_a_silent_tail_is_probed_with_its_first_packet() {
    let mut silent = one_per_us(3);
    let sack = Sack { base: Psn::new(2), cause: Psn::new(0), arrived: 1000, ..Sack::default() };
    let sacked = Sacked { selective: Default::default(), sack, trip: US(8), assumed: None, window: 1 << 40 };
    assert_eq!(silent.hear(US(8), &Heard::Sacked(Reply::Ack(Psn::new(0)), sacked)).0.acked, 1);
    assert_eq!(silent.deadline(), US(8) + US(24), "two round trips and the time of a held ACK");
    let due = model::Sender::on_deadline(&mut silent, US(32));
    assert_eq!((due, silent.take_lost()), (Due::default(), None), "the probe blames no path");
    assert_eq!(silent.next(US(32), 1 << 40), Some((1, true)));
    assert!(silent.asks, "and asks for an ACK");
}

#[test]
fn an_old_packet_is_lost_once_a_later_one_has_arrived() {
    let mut sender = sender(9, 3, Some(Infer::Age(3)));
    assert_eq!(reply(&mut sender, 0, &[1]).lost, 0, "the first round trip takes 1 us");
    let _ = sender.next(Time::from_ns(1_500), 1 << 40);
    let sack = |arrived: u32| Sack { base: Psn::new(1), bits: 0b101, arrived, ahead: 2, ..Sack::default() };
    let ack = Reply::Ack(Psn::new(u32::MAX));
    let late = |sender: &mut Sender, at: Time, bytes| sender.on_sack(at, ack, &sack(bytes), u64::MAX).1.lost;
    // Packet 3, which was sent at 1.5 us, has arrived; packets 0 and 2 were sent at 0.
    assert_eq!(late(&mut sender, US(3), 2_000), 0, "three round trips have not passed");
    assert_eq!(late(&mut sender, Time::from_ns(3_001), 2_000), 2_000);
    assert_eq!((sender.take_lost(), sender.take_lost(), sender.take_lost()), (Some(0), Some(2), None));
    assert_eq!(sender.next(US(4), 1 << 40), Some((0, true)));
}

#[test]
fn many_later_arrivals_make_missing_packets_lost_once_per_recovery() {
    let mut sender = sender(40, 20, Some(Infer::Beyond(Beyond { windows: 1.5, least: 5 })));
    reply_in(&mut sender, 0, &[], 9_000); // the window was larger before
    assert_eq!(reply_in(&mut sender, 1, &[3, 4, 5, 6, 7], 4_000).lost, 0, "six packets are 1.5 windows");
    let delivery = reply_in(&mut sender, 1, &[3, 4, 5, 6, 7, 8], 4_000);
    assert_eq!((delivery.lost, sender.take_lost()), (2_000, Some(1)), "1 and 2, within the window from 1 on");
    assert_eq!(sender.next(US(2), 1 << 40), Some((1, true)));
    assert_eq!(sender.next(US(2), 1 << 40), Some((2, true)));
    assert_eq!(reply_in(&mut sender, 1, &[3, 4, 5, 6, 7, 8], 4_000).lost, 0, "judged once");
    // The window moves on within the recovery.
    assert_eq!(reply_in(&mut sender, 9, &[], 4_000).lost, 4_000);
}

/// A sender that has sent 20 of 40 packets at time 0, and has got the ACK of the first one at 1 us, under a window of
/// 4000 B.
fn inferring() -> Sender {
    let mut sender = sender(40, 20, Some(Infer::Beyond(Beyond { windows: 1.5, least: 5 })));
    let first = Sack { cause: Psn::new(0), arrived: 1000, ..Sack::default() };
    sender.on_sack(US(1), Reply::Ack(Psn::new(0)), &first, 4_000);
    sender
}

/// Bytes that are lost by the answer to a probe that was sent `trip` before.
fn probed(sender: &mut Sender, at: Time, trip: Time) -> u64 {
    probed_assuming(sender, at, trip, None)
}

fn probed_assuming(sender: &mut Sender, at: Time, trip: Time, assumed: Option<Time>) -> u64 {
    let (cause, base) = (Psn::new(1), Psn::new(2));
    let sack = Sack { cause, base, arrived: 1000, probe: true, ..Sack::default() };
    sender.probe.note_answer(at, trip, assumed, &sender.trips);
    sender.on_sack(at, Reply::Ack(Psn::new(0)), &sack, 4_000).1.lost
}

#[test]
fn a_sender_that_hears_nothing_probes_after_three_round_trips_and_then_every_five() {
    let mut sender = inferring();
    assert_eq!(sender.deadline(), US(4));
    assert_eq!(sender.take_probe(Time::from_ns(3_999)), None);
    assert_eq!(sender.take_probe(US(4)), Some(Kind::Probe), "it waits where data waits");
    assert!(sender.take_probe(US(4)).is_none() && sender.deadline() == US(9));
    assert!(sender.take_probe(US(9)).is_some() && sender.deadline() == US(14));
    // Nothing is left to send for the first time.
    let mut last = super::tests::sender(2, 2, Some(Infer::Beyond(Beyond { windows: 1.5, least: 5 })));
    let first = Sack { cause: Psn::new(0), arrived: 1000, ..Sack::default() };
    last.on_sack(US(1), Reply::Ack(Psn::new(0)), &first, 4_000);
    assert_eq!(last.deadline(), US(3));
    last.on_sack(US(2), Reply::Ack(Psn::new(1)), &first, 4_000);
    assert_eq!(last.deadline(), Time::NEVER, "everything has arrived");
}

#[test]
fn a_probe_that_comes_back_without_delay_starts_a_recovery() {
    let mut late = inferring();
    assert!(late.take_probe(US(4)).is_some());
    assert_eq!(probed(&mut late, US(6), US(2)), 0, "data may be on its way behind other data");
    let mut prompt = inferring();
    assert!(prompt.take_probe(US(4)).is_some());
    assert_eq!(probed(&mut prompt, US(5), US(1)), 4_000, "as much as the window holds");
    let repeated: Vec<_> = (0..4).map_while(|_| prompt.next(US(6), 1_000)).collect();
    assert_eq!(repeated, [1, 2, 3, 4].map(|seq| (seq, true)), "they pass the window");
    assert!(!prompt.ready(1_000));
    // The timers of the rest of the recovery do not run, but those of repeated packets do.
    assert_eq!(prompt.timer.due(), US(56));
    // Another prompt answer starts anew.
    let again = prompt.probe.at();
    assert!(prompt.take_probe(again).is_some());
    assert_eq!(probed(&mut prompt, again, Time::ZERO), 4_000);
}

#[test]
fn an_answer_that_comes_after_the_next_probe_was_long_on_its_way_all_the_same() {
    let mut sender = inferring();
    assert!(sender.take_probe(US(4)).is_some() && sender.take_probe(US(9)).is_some());
    assert_eq!(probed(&mut sender, US(10), US(6)), 0, "the queue took five round trips");
    assert!(sender.take_probe(US(13)).is_some());
    assert_eq!(probed(&mut sender, US(14), US(1)), 4_000);
}

/// uet-htsim keeps the time of the latest probe only.
#[test]
fn a_control_may_assume_the_delay_of_an_answer_to_an_earlier_probe() {
    for (delay, lost) in [(Time(999_999), 4_000), (US(1), 0)] {
        let mut sender = inferring();
        assert!(sender.take_probe(US(4)).is_some() && sender.take_probe(US(9)).is_some());
        assert_eq!(probed_assuming(&mut sender, US(10), US(6), Some(delay)), lost);
        sender.probe.note_answer(US(11), US(2), Some(Time::ZERO), &sender.trips);
        assert_eq!(sender.probe.answered(), US(2), "it answers the latest probe, whose time is known");
    }
}

/// The first ACK of an incast may have met a full queue.
#[test]
fn a_sender_whose_first_ack_is_late_probes_after_the_round_trips_of_an_idle_fabric() {
    let mut sender = sender(40, 20, Some(Infer::Beyond(Beyond { windows: 1.5, least: 5 })));
    sender.expect(US(4));
    let first = Sack { cause: Psn::new(0), arrived: 1000, ..Sack::default() };
    sender.on_sack(US(30), Reply::Ack(Psn::new(0)), &first, 4_000);
    assert_eq!(sender.deadline(), US(42));
    assert!(sender.take_probe(US(42)).is_some() && sender.deadline() == US(50), "the timer");
    assert_eq!(probed(&mut sender, US(49), US(7)), 4_000, "below the round trip and the target");
    let mut others = super::tests::sender(40, 20, None);
    others.expect(US(4));
    assert_eq!((others.trips.least(), others.trips.longest()), (Time::NEVER, Time::ZERO));
}
