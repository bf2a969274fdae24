//! Under cuts, losses and any order of arrival, a receiver that counts packets counts every packet of a message exactly once in
//! the attempt that completes it, and its sender repeats a cut packet once per cut.

use super::{ReceiverCalls as _, SenderCalls as _};
use crate::timeout::Timeout;
use crate::transport::dcp;
use crate::{NicConfig, TransportConfig};
use model::annex::{Envelope, Sack, Selective};
use model::transport::{Arrived, Departure, Reply};
use model::{Psn, Sender as _, Time};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Fate of a transmission: its class, and its delay.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Arrives,
    /// Cut; the headers come back.
    Cut,
    /// Cut; the headers are lost.
    CutAndLost,
    Lost,
}

#[derive(Clone, Copy)]
enum Event {
    Data(u64, Envelope, bool),
    Header(u64, Envelope),
    Reply(Reply, Sack),
}

/// What happened to the packets of a queue pair.
#[derive(Debug, Default)]
struct Tally {
    sent: u64,
    again: u64,
    /// Cuts whose headers reached the sender while it had use for them.
    returned: u64,
    timeouts: u64,
}

/// Plays messages of these lengths; the fate and the delay of transmission n are entry n of the list, and then all arrive.
fn play(
    config: &NicConfig,
    messages: &[u64],
    fates: &[(Fate, u64)],
    lost_replies: &BTreeSet<u64>,
    window: u64,
) -> Tally {
    let nic = config.build();
    let (mut sender, mut receiver) = (nic.sender(), nic.receiver());
    let total: u64 = messages.iter().sum();
    messages.iter().for_each(|packets| sender.post(*packets));
    let mut events: BTreeMap<(Time, u64), Event> = BTreeMap::new();
    let (mut tally, mut now, mut replies) = (Tally::default(), Time::ZERO, 0);
    // Packets that have arrived, by message and attempt.
    let mut counted: BTreeMap<(u64, u8), Vec<u64>> = BTreeMap::new();
    let mut ends = BTreeMap::new();
    for step in 0.. {
        assert!(step < 200_000, "the exchange does not end: {} of {total}", sender.una());
        let arrival = events.first_key_value().map_or(Time::NEVER, |(key, _)| key.0);
        if let Some(Departure { seq, again, asks, envelope, .. }) = sender.send(now, window) {
            assert!(
                envelope.first.value() as u64 <= seq
                    && seq < u64::from(envelope.first.value() + envelope.packets)
            );
            let (fate, delay) = fates.get(tally.sent as usize).copied().unwrap_or((Fate::Arrives, 1));
            (tally.sent, tally.again) = (tally.sent + 1, tally.again + u64::from(again));
            now = Time(now.ps() + 1000);
            let event = match fate {
                Fate::Arrives => Some(Event::Data(seq, envelope, asks)),
                Fate::Cut => Some(Event::Header(seq, envelope)),
                Fate::CutAndLost | Fate::Lost => None,
            };
            events.extend(event.map(|event| ((Time(now.ps() + 1000 * delay), step), event)));
        } else if sender.una() == total {
            break;
        } else if arrival <= sender.deadline() {
            let Some(((at, _), event)) = events.pop_first() else {
                panic!("the sender is stuck without a timer")
            };
            now = now.max(at);
            match event {
                Event::Data(seq, envelope, asks) => {
                    let (first, packets) = (u64::from(envelope.first.value()), u64::from(envelope.packets));
                    let open = receiver.completed() <= seq;
                    let packet = Arrived {
                        psn: Psn::from_seq(seq),
                        frame: 1,
                        marked: false,
                        last: false,
                        asks,
                        envelope,
                    };
                    let got = receiver.on_arrived(now, packet);
                    if open {
                        counted.entry((first, envelope.attempt)).or_default().push(seq);
                        ends.insert(first, first + packets);
                    }
                    if let Some(reply) = got.reply {
                        if !lost_replies.contains(&replies) {
                            events
                                .insert((Time(now.ps() + 1000), step), Event::Reply(reply, receiver.sack()));
                        }
                        replies += 1;
                    }
                }
                Event::Header(seq, envelope) => {
                    let (progress, _) = sender.on_returned(now, Psn::from_seq(seq), envelope, false, window);
                    tally.returned += u64::from(progress.nack);
                }
                Event::Reply(reply, sack) => {
                    _ = sender.on_sack(now, reply, Selective::Nothing, (&sack, Time::ZERO), window)
                }
            }
        } else {
            now = now.max(sender.deadline());
            sender.on_timeout(now);
            tally.timeouts += 1;
        }
    }
    assert_eq!((receiver.completed(), receiver.expected()), (total, total));
    for (&first, &end) in &ends {
        let newest = counted.range((first, 0)..=(first, u8::MAX)).next_back().map(|(_, seqs)| seqs.clone());
        let mut seqs = newest.unwrap_or_default();
        seqs.sort_unstable();
        assert_eq!(
            seqs,
            (first..end).collect::<Vec<_>>(),
            "each packet of the message once in its last attempt"
        );
    }
    tally
}

/// Fates of transmissions; without losses, cuts take their place.
fn fates(lossy: bool) -> impl Strategy<Value = Vec<(Fate, u64)>> {
    let lost = |fate| if lossy { fate } else { Fate::Cut };
    let fate = prop_oneof![
        6 => Just(Fate::Arrives),
        4 => Just(Fate::Cut),
        1 => Just(lost(Fate::CutAndLost)),
        1 => Just(lost(Fate::Lost)),
    ];
    prop::collection::vec((fate, 1..40u64), 0..250)
}

fn config(message_packets: u32) -> NicConfig {
    let transport = TransportConfig::Dcp(dcp::Config { message_packets });
    NicConfig { transport, timeout: Timeout::Fixed(Time::from_us(1)), ..NicConfig::default() }
}

proptest! {
    #[test]
    fn the_count_is_the_length_of_the_message_whatever_the_retries(
        messages in prop::collection::vec(1..40u64, 1..6),
        fates in fates(true),
        lost_replies in prop::collection::btree_set(0..40u64, 0..10),
        most in prop_oneof![Just(1000u32), 1..12u32],
        window in prop_oneof![Just(u64::MAX), 1..20u64],
    ) {
        play(&config(most), &messages, &fates, &lost_replies, window);
    }

    #[test]
    fn a_cut_packet_is_sent_again_once_per_cut_and_no_timer_fires(
        messages in prop::collection::vec(1..40u64, 1..6),
        fates in fates(false),
        window in prop_oneof![Just(u64::MAX), 1..20u64],
    ) {
        let tally = play(&config(1000), &messages, &fates, &BTreeSet::new(), window);
        let cuts = fates.iter().take(tally.sent as usize).filter(|(fate, _)| matches!(fate, Fate::Cut)).count();
        prop_assert_eq!((tally.returned, tally.again, tally.timeouts), (cuts as u64, cuts as u64, 0));
    }
}
