use super::*;
use crate::notification::Cnp;
use crate::tests::ReceiverCalls as _;
use model::Receiver as _;
use model::annex::Envelope;
use proptest::prelude::*;
use std::collections::BTreeSet;

const US: fn(u64) -> Time = Time::from_us;

/// A receiver that notes 256 packets and acknowledges every 4000 B.
fn receiver_with(reply_paths: ReplyPaths, penalties: &[Penalty]) -> Receiver {
    waiting(reply_paths, penalties, Time::NEVER)
}

/// The same, which acknowledges a packet after `ack_wait` at the latest.
fn waiting(reply_paths: ReplyPaths, penalties: &[Penalty], ack_wait: Time) -> Receiver {
    let marks = MarkRules { cnp: Cnp::Flag, interval: Time::ZERO };
    let rules = Rules {
        marks,
        window: 256,
        ack_bytes: 4000,
        least: 1000,
        ack_wait,
        reply_paths,
        penalties: penalties.to_vec(),
    };
    Receiver::new(Arc::new(rules))
}

/// The same after packet 0, which is always acknowledged.
fn receiver() -> Receiver {
    let mut receiver = receiver_with(ReplyPaths::Flow, &[]);
    assert_eq!(reply(&mut receiver, packet(0)), Some(1), "the first packet");
    receiver
}

fn packet(psn: u32) -> Arrived {
    let envelope = Envelope::default();
    Arrived { psn: Psn::new(psn), frame: 1000, marked: false, last: false, asks: false, envelope }
}

/// ePSN by the ACK that answers a packet, if there is one.
fn reply(receiver: &mut Receiver, packet: Arrived) -> Option<u32> {
    match receiver.on_arrived(Time::ZERO, packet).reply? {
        Reply::Ack(psn) => Some(psn.next().value()),
        Reply::Nack(_) => panic!("data is not refused"),
    }
}

#[test]
fn an_ack_is_due_after_so_many_bytes_of_which_a_small_frame_counts_some() {
    let mut receiver = receiver();
    let mut acks = |frame, psns: std::ops::RangeInclusive<u32>| -> Vec<_> {
        psns.map(|psn| reply(&mut receiver, Arrived { frame, ..packet(psn) })).collect()
    };
    assert_eq!(acks(1000, 1..=5), [None, None, None, Some(5), None]);
    assert_eq!(acks(64, 6..=8), [None, None, Some(9)], "three small frames count 1000 B each");
    assert_eq!(acks(2000, 9..=11), [None, Some(11), None]);
    assert_eq!(receiver.sack().arrived, 6000 + 3 * 64 + 4000, "bytes as they are");
}

#[test]
fn an_ack_that_waits_for_more_packets_goes_out_after_a_time() {
    let mut receiver = waiting(ReplyPaths::OfPacket, &[], US(8));
    let at = |receiver: &mut Receiver, us, psn| receiver.on_arrived(US(us), packet(psn)).reply.is_some();
    assert!(at(&mut receiver, 1, 0) && receiver.deadline() == Time::NEVER);
    assert!(!at(&mut receiver, 2, 1) && !at(&mut receiver, 3, 4) && receiver.deadline() == US(10));
    assert_eq!(receiver.on_deadline(Time(US(10).ps() - 1)), Overdue::default());
    let reply = Some((Reply::Ack(Psn::new(1)), false));
    assert_eq!(receiver.on_deadline(US(10)), Overdue { probe: None, reply });
    assert_eq!(
        (receiver.sack().cause, receiver.sack().ahead, receiver.deadline()),
        (Psn::new(4), 1, Time::NEVER)
    );
    assert!(!at(&mut receiver, 11, 5) && receiver.deadline() == US(19));
    assert!(receiver.on_arrived(US(12), Arrived { asks: true, ..packet(6) }).reply.is_some());
    assert_eq!(receiver.deadline(), Time::NEVER, "the packet has asked for the ACK");
}

#[test]
fn a_duplicate_is_acknowledged_at_once_and_counts_no_bytes() {
    // The ACK of the first copy may be lost, and the sender would wait for its timer.
    let mut receiver = receiver();
    assert_eq!(reply(&mut receiver, packet(0)), Some(1), "below ePSN");
    assert_eq!(
        (reply(&mut receiver, packet(2)), reply(&mut receiver, packet(2))),
        (None, Some(1)),
        "beyond it"
    );
    assert_eq!((receiver.sack().arrived, receiver.held()), (2000, 1));
    let fates = [0, 2, 3].map(|psn| receiver.on_arrived(Time::ZERO, packet(psn)).fate);
    assert_eq!(fates, [Fate::Duplicate, Fate::Duplicate, Fate::Accepted]);
}

#[test]
fn a_mark_and_a_request_are_answered_at_once() {
    let mut receiver = receiver();
    let marked = receiver.on_arrived(Time::ZERO, Arrived { marked: true, ..packet(1) });
    assert!(marked.reply.is_some() && marked.echo && !marked.out_of_order);
    assert_eq!(reply(&mut receiver, Arrived { asks: true, ..packet(2) }), Some(3));
    assert_eq!(reply(&mut receiver, packet(3)), None);
    assert!(receiver.on_arrived(Time::ZERO, packet(9)).out_of_order);
    // Other senders ask with the last packet of a message.
    assert!(receiver.on_data(Time::ZERO, Psn::new(4), false, true).reply.is_some());
    assert!(receiver.on_data(Time::ZERO, Psn::new(5), false, false).reply.is_none());
}

#[test]
fn a_request_that_came_before_missing_packets_is_answered_again_when_they_are_there() {
    let mut receiver = receiver();
    assert_eq!(reply(&mut receiver, Arrived { asks: true, ..packet(3) }), Some(1));
    assert_eq!((reply(&mut receiver, packet(2)), reply(&mut receiver, packet(1))), (None, Some(4)));
    assert_eq!(reply(&mut receiver, packet(4)), None, "it was answered once");
    // Without a request nothing is owed.
    assert_eq!((reply(&mut receiver, packet(6)), reply(&mut receiver, packet(5))), (None, None));
}

#[test]
fn packets_beyond_the_window_are_discarded_without_a_word() {
    let mut receiver = receiver();
    let last = receiver.on_arrived(Time::ZERO, Arrived { asks: true, ..packet(256) });
    assert_eq!((last.fate, last.reply.is_some()), (Fate::Accepted, true), "256 packets from ePSN 1 on");
    let beyond = receiver.on_arrived(Time::ZERO, Arrived { asks: true, ..packet(257) });
    assert_eq!((beyond.fate, beyond.reply), (Fate::Discarded, None));
    assert_eq!((receiver.held(), receiver.expected(), receiver.sack().arrived), (1, 1, 2000));
}

#[test]
fn a_cut_packet_is_asked_for_by_its_psn_unless_it_has_arrived() {
    let mut receiver = receiver();
    receiver.on_arrived(Time::ZERO, packet(2));
    for (psn, known) in [(0, true), (1, false), (2, true), (3, false), (300, false)] {
        for last_hop in [false, true] {
            let got = receiver.on_cut(Time::ZERO, Psn::new(psn), true, last_hop);
            let expected = if known { Reply::Ack(Psn::new(0)) } else { Reply::Nack(Psn::new(1)) };
            assert_eq!((got.reply, got.fate, got.echo), (Some(expected), Fate::Discarded, true), "{psn}");
            let sack = receiver.sack();
            assert_eq!((sack.cut, sack.last_hop, sack.cause), (!known, !known && last_hop, Psn::new(psn)));
            assert_eq!((sack.arrived, sack.ahead), (2000, 1), "headers bring no bytes");
        }
    }
}

#[test]
fn the_answer_to_a_probe_tells_of_the_packets_after_epsn() {
    let mut receiver = receiver();
    receiver.on_arrived(Time::ZERO, packet(3));
    assert_eq!(receiver.on_probe(), Reply::Ack(Psn::new(0)));
    let sack = receiver.sack();
    assert_eq!((sack.base, sack.bits, sack.cause), (Psn::new(2), 0b10, Psn::new(1)));
    assert!(sack.probe && !sack.cut && !sack.last_hop);
    // It is an ACK, so the count of bytes for the next one starts anew.
    assert_eq!([4, 5, 6].map(|psn| reply(&mut receiver, packet(psn))), [None; 3]);
    assert!(reply(&mut receiver, packet(7)).is_some() && !receiver.sack().probe);
}

#[test]
fn replies_carry_the_penalty_of_their_time_and_answers_to_probes_that_of_the_last_packet() {
    let penalty = Penalty { share: 9, at: US(10), until: Some(US(20)) };
    let mut receiver = receiver_with(ReplyPaths::Flow, &[penalty]);
    let mut data = |us, psn| {
        receiver.on_arrived(US(us), Arrived { asks: true, ..packet(psn) });
        let data = (receiver.sack().penalty, receiver.sack().restore);
        receiver.on_probe();
        assert_eq!((receiver.sack().penalty, receiver.sack().restore), data);
        data
    };
    assert_eq!([data(9, 0), data(10, 1), data(20, 2)], [(0, false), (9, false), (0, true)]);
    let mut cut = receiver_with(ReplyPaths::Flow, &[penalty]);
    cut.on_cut(US(15), Psn::new(0), false, false);
    assert_eq!(cut.sack().penalty, 9);
}

#[test]
fn replies_take_the_entropy_of_the_packet_none_or_one_that_a_probe_has_tried() {
    let port = PortIndex(1);
    let entropy = |receiver: &Receiver| receiver.reply_entropy(77, port);
    assert_eq!(entropy(&receiver_with(ReplyPaths::OfPacket, &[])), 77);
    let mut flow = receiver_with(ReplyPaths::Flow, &[]);
    flow.on_probed(5, US(1), port);
    assert_eq!((entropy(&flow), flow.deadline(), flow.on_deadline(US(9)).probe), (0, Time::NEVER, None));
    let mut probed = receiver_with(ReplyPaths::Probed, &[]);
    assert_eq!((entropy(&probed), probed.deadline()), (77, Time::NEVER), "no data yet");
    probed.on_arrived(US(1), packet(0));
    assert_eq!(probed.deadline(), Time::ZERO, "a probe is due");
    let tried = probed.on_deadline(US(1)).probe.unwrap();
    assert_eq!(probed.deadline(), Time::NEVER);
    probed.on_probed(tried, US(3), port);
    assert_eq!((entropy(&probed), probed.reply_entropy(77, PortIndex(0))), (tried, 77));
    probed.on_cut(US(2), Psn::new(1), false, false);
    assert_eq!(probed.deadline(), US(4), "headers are a sign of life, too");
}

proptest! {
    /// Whatever arrives in whatever order, ePSN, the map and the counts are those of the set of packets.
    #[test]
    fn reports_describe_the_set_of_packets_that_have_arrived(
        wrap in any::<bool>(),
        steps in prop::collection::vec((0..300u64, any::<bool>()), 1..300),
    ) {
        let first = if wrap { (1 << 24) - 40 } else { 0 };
        let mut receiver = receiver_with(ReplyPaths::OfPacket, &[]);
        receiver.expected = first;
        let mut set = BTreeSet::new();
        for (seq, near) in steps {
            let expected = (0..).find(|seq| !set.contains(seq)).unwrap_or(0);
            // Half of the packets come from around ePSN.
            let seq = if near { (expected + seq % 6).saturating_sub(2) } else { seq };
            let (new, fits) = (!set.contains(&seq), seq < expected + 256);
            let psn = Psn::from_seq(first + seq);
            let got = receiver.on_arrived(Time::ZERO, Arrived { asks: true, psn, ..packet(0) });
            let fate = if !fits { Fate::Discarded } else if new { Fate::Accepted } else { Fate::Duplicate };
            prop_assert_eq!((got.fate, got.out_of_order), (fate, seq > expected));
            prop_assert_eq!(got.reply.is_some(), fits);
            if !fits {
                continue;
            }
            set.insert(seq);
            let expected = (0..).find(|seq| !set.contains(seq)).unwrap_or(0);
            let held = set.range(expected..).count();
            prop_assert_eq!((receiver.expected() - first, receiver.held()), (expected, held as u64));
            let (_, standing) = receiver.clone().on_arrival(Time::ZERO, Inbound::Data(Arrived { psn, ..packet(0) }));
            prop_assert_eq!(standing, receiver.standing());
            let sack = receiver.sack();
            prop_assert_eq!((sack.arrived, usize::from(sack.ahead)), (1000 * set.len() as u32, held));
            prop_assert_eq!((sack.cause, sack.cut, sack.last_hop, sack.probe), (psn, false, false, false));
            // The map ends with this packet, or begins behind ePSN.
            let base = (seq as i64 - 63).max(expected as i64 + 1) as u64;
            prop_assert_eq!(sack.base, Psn::from_seq(first + base));
            let bits = (0..64).filter(|bit| set.contains(&(base + bit))).map(|bit| 1u64 << bit).sum::<u64>();
            prop_assert_eq!(sack.bits, bits);
        }
    }
}
