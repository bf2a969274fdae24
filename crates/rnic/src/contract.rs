//! What an engine expects of a recovery mode and of a congestion control, as tests that any of them can be held against.

use crate::timeout::{Timeout, Timing};
use crate::{Answers, AnyCongestion, AnyReceiver, AnySender, CongestionConfig, Path, TransportConfig};
use model::annex::{Sack, Selective};
use model::draw::{Key, Purpose, below};
use model::transport::{Arrived, Fate, Heard, Inbound, Reply, Sacked};
use model::{
    Allowance, Congestion as _, Demand, Feedback, PortIndex, Psn, Rate, Receiver as _, Sender as _, Time,
};
use std::collections::BTreeMap;

/// Stories with different draws.
const STORIES: u64 = 20;

/// Holds a congestion control with its defaults against the contract. It always allows a packet, unless it waits for credit, and at most
/// line rate. Asking changes nothing, and what it promises of the time to come is true.
///
/// # Panics
/// If the control breaks a rule, and if there is none of that name.
pub fn hold_control(name: &str) {
    let Some(config) = CongestionConfig::named(name) else { panic!("there is no control `{name}`") };
    let line = Rate::from_gbps(100);
    let path = Path::or_guess(None, line).into_owned();
    for seed in 0..STORIES {
        let key = Key::new(seed, Purpose::Nic, 0);
        let new = || Story::new(config.control(line, (seed % 2 == 0).then_some(&path)));
        let (mut asked, mut left_alone) = (new(), new());
        let mut now = Time::ZERO;
        for step in 0..300 {
            now += Time::from_ns(below(key.draw(3 * step), 50_000) as u64);
            let event = (key.draw(3 * step + 1), key.draw(3 * step + 2));
            asked.handle(now, event);
            left_alone.handle(now, event);
            let allowance = asked.control.allowance(now);
            let Allowance { window, pace, .. } = allowance;
            let waits_for_credit = config.facts().grants.is_some();
            assert!(
                window >= 1 || waits_for_credit,
                "`{name}` allows no packet, so its queue pair never sends again"
            );
            assert!(pace.bps() > 0.0, "`{name}` has a rate of 0, so its queue pair never sends again");
            assert!(pace.bps() <= 1.000_1 * line.bps() as f64, "`{name}` exceeds line rate: {allowance:?}");
            assert_eq!(allowance, asked.control.allowance(now), "`{name}` changes because it is asked");
            let state = asked.control.state(now);
            if state.is_still {
                let later = asked.control.allowance(now + Time::from_us(7));
                assert_eq!(
                    (window, pace),
                    (later.window, later.pace),
                    "`{name}` is still, and time changes it"
                );
                let told = asked.control.on_send(now, 1_500, 9_000, 2);
                assert_eq!(told, Demand::default(), "`{name}` is still, and tells of the start of a packet");
            }
            if now < state.steady_until {
                assert_eq!(window, u64::MAX, "`{name}` is steady, and limits its window");
            }
        }
        let both = (asked.control.allowance(now), left_alone.control.allowance(now));
        assert_eq!(both.0, both.1, "`{name}` depends on how often it was asked");
    }
}

/// A control and the counters of its sender.
struct Story {
    control: AnyCongestion,
    una: u64,
    high: u64,
}

impl Story {
    fn new(control: AnyCongestion) -> Self {
        Story { control, una: 0, high: 100 }
    }

    /// An event by two draws: mostly replies.
    fn handle(&mut self, now: Time, (kind, size): (u64, u64)) {
        let (acked, echo) = (size % 9, size >> 8 & 3 == 0);
        match below(kind, 10) {
            0..5 => {
                self.high += acked + (size >> 16) % 9;
                self.una += acked;
                let round_trip = Time::from_ns(1_000 + (size >> 32) % 99_000);
                let feedback = Feedback {
                    acked,
                    echo,
                    una: self.una,
                    high: self.high,
                    round_trip,
                    ..Feedback::default()
                };
                self.control.on_feedback(now, &feedback);
            }
            5 | 6 => self.control.on_ack(now, acked, echo),
            7 => self.control.on_cnp(now),
            8 => self.control.on_nack(now),
            _ => self.control.on_timeout(now),
        }
    }
}

/// Holds a recovery mode with its defaults against the contract: over a line that loses and delays packets and replies, each packet is
/// delivered once, the sender ends, and equal draws give equal exchanges.
///
/// # Panics
/// If the mode breaks a rule, and if there is none of that name.
pub fn hold_transport(name: &str) {
    let Some(mode) = TransportConfig::named(name) else { panic!("there is no recovery mode `{name}`") };
    let sacks = mode.facts().sacks;
    for seed in 0..STORIES {
        let log = Line::run(name, &mode, sacks, seed);
        assert_eq!(log, Line::run(name, &mode, sacks, seed), "`{name}` is not reproducible");
    }
}

/// Packets of a story, in messages of 8.
const PACKETS: u64 = 400;
const MESSAGE: u64 = 8;
/// Time between the starts of two packets, and one-way delay.
const SPACING: Time = Time::from_ns(100);
const DELAY: Time = Time::from_us(1);

enum Event {
    Data(Arrived, Time),
    Reply(Heard),
}

/// Two ends and the line between them.
struct Line<'a> {
    name: &'a str,
    key: Key,
    drawn: u64,
    sacks: bool,
    sender: AnySender,
    receiver: AnyReceiver,
    now: Time,
    events: BTreeMap<(Time, u64), Event>,
    /// How often each packet was sent, and accepted.
    sent: Vec<u32>,
    accepted: Vec<u32>,
    /// Each packet sent, with its time.
    log: Vec<(u64, Time)>,
}

impl<'a> Line<'a> {
    fn run(name: &'a str, mode: &TransportConfig, sacks: bool, seed: u64) -> Vec<(u64, Time)> {
        let mut line = Line {
            name,
            key: Key::new(seed, Purpose::Loss, 0),
            drawn: 0,
            sacks,
            sender: mode.sender(&Timing::new(Timeout::Fixed(Time::from_us(50)), None)),
            receiver: mode.receiver(&Answers::default()),
            now: Time::ZERO,
            events: BTreeMap::new(),
            sent: vec![0; PACKETS as usize],
            accepted: vec![0; PACKETS as usize],
            log: Vec::new(),
        };
        (0..PACKETS / MESSAGE).for_each(|_| line.sender.post_message(MESSAGE, 1_500, 1_500));
        let mut line_free = Time::ZERO;
        for step in 0.. {
            assert!(
                step < 200_000,
                "`{name}` does not end: packet {} is missing",
                line.sender.position().una
            );
            let arrival = line.events.first_key_value().map_or(Time::NEVER, |(key, _)| key.0);
            let timers = (line.sender.position().deadline, line.receiver.standing().deadline);
            let ready = line.sender.ready(u64::MAX);
            let start = if ready { line.now.max(line_free) } else { Time::NEVER };
            let next = arrival.min(timers.0).min(timers.1).min(start);
            if next == Time::NEVER {
                break;
            }
            // A deadline may have passed when an event sets it.
            let next = next.max(line.now);
            line.now = next;
            if next == arrival {
                line.arrive();
            } else if timers.0 <= next {
                line.sender.on_deadline(next);
                assert!(line.sender.position().deadline > next, "`{name}` keeps a deadline that has passed");
            } else if timers.1 <= next {
                let overdue = line.receiver.on_deadline(next);
                overdue.reply.into_iter().for_each(|(reply, _)| line.reply(reply, next));
            } else {
                line_free = next + SPACING;
                line.send();
            }
        }
        assert!(line.accepted.iter().all(|n| *n == 1), "`{name}` accepts a packet twice, or never");
        assert_eq!(line.sender.position().una, PACKETS, "the sender of `{name}` is stuck");
        assert_eq!(line.receiver.standing().completed, PACKETS, "`{name}` does not complete its messages");
        line.log
    }

    fn draw(&mut self, bound: usize) -> usize {
        self.drawn += 1;
        below(self.key.draw(self.drawn), bound)
    }

    fn send(&mut self) {
        let name = self.name;
        let Some(sent) = self.sender.send(self.now, u64::MAX) else {
            panic!("`{name}` is ready, and sends nothing")
        };
        let count = &mut self.sent[sent.seq as usize];
        assert_eq!(sent.again, *count > 0, "`{name}` takes a packet for another one");
        *count += 1;
        self.log.push((sent.seq, self.now));
        let last = (sent.seq + 1).is_multiple_of(MESSAGE);
        let packet = Arrived {
            psn: Psn::from_seq(sent.seq),
            frame: 1_500,
            marked: self.draw(10) == 0,
            last,
            asks: sent.asks,
            envelope: sent.envelope,
        };
        self.travel(Event::Data(packet, self.now));
    }

    /// One in 25 is lost, and one in 5 is late.
    fn travel(&mut self, event: Event) {
        if self.draw(25) == 0 {
            return;
        }
        let late = Time::from_ns(if self.draw(5) == 0 { self.draw(5_000) as u64 } else { 0 });
        self.drawn += 1;
        self.events.insert((self.now + DELAY + late, self.drawn), event);
    }

    fn reply(&mut self, reply: Reply, sent: Time) {
        let telling = self.receiver.telling(0, PortIndex(0));
        let heard = match (self.sacks, telling.selective) {
            (true, selective) => {
                let trip = Time(self.now.ps() + DELAY.ps() - sent.ps());
                let sack: Sack = telling.sack;
                Heard::Sacked(reply, Sacked { selective, sack, trip, assumed: None, window: u64::MAX })
            }
            (false, Selective::Nothing) => Heard::Reply(reply),
            (false, selective) => Heard::Named(reply, selective),
        };
        self.travel(Event::Reply(heard));
    }

    fn arrive(&mut self) {
        let (now, name) = (self.now, self.name);
        match self.events.pop_first().map(|(_, event)| event) {
            Some(Event::Data(packet, sent)) => {
                let before = self.receiver.standing();
                let (got, after) = self.receiver.on_arrival(now, Inbound::Data(packet));
                assert_eq!(after, self.receiver.standing(), "`{name}` stands elsewhere than it says");
                assert!(after.expected >= before.expected, "ePSN of `{name}` goes back");
                if got.fate == Fate::Accepted {
                    let seq = packet.psn.distance_from(Psn::new(0)) as usize;
                    self.accepted[seq] += 1;
                }
                got.reply.into_iter().for_each(|reply| self.reply(reply, sent));
            }
            Some(Event::Reply(heard)) => {
                let before = self.sender.position().una;
                let (progress, _) = self.sender.hear(now, &heard);
                let una = self.sender.position().una;
                assert_eq!(una, before + progress.acked, "`{name}` miscounts what a reply acknowledges");
                let arrived = self.accepted[before as usize..una as usize].iter().all(|n| *n > 0);
                assert!(
                    arrived,
                    "the sender of `{name}` takes a packet for acknowledged that has not arrived"
                );
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_control_keeps_the_contract() {
        CongestionConfig::NAMES.iter().for_each(|name| hold_control(name));
    }

    #[test]
    fn every_recovery_mode_keeps_the_contract() {
        TransportConfig::NAMES.iter().for_each(|name| hold_transport(name));
    }
}
