//! Properties of every congestion control under any sequence of events.

use crate::{AnyCongestion, CongestionConfig};
use model::{Advice, Congestion as _, Feedback, Rate, Time};
use proptest::prelude::*;

/// An event that a control receives.
#[derive(Clone, Copy, Debug)]
enum Event {
    Reply { acked: u64, echo: bool, sent: u64, round_trip: Time },
    Ack { acked: u64, echo: bool },
    Cnp,
    Advice(Advice),
    Nack,
    Timeout,
    LowerTo(f64),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (0..9u64, any::<bool>(), 0..9u64, 1..100u64).prop_map(|(acked, echo, sent, us)| {
            Event::Reply { acked, echo, sent, round_trip: Time::from_us(us) }
        }),
        2 => (0..9u64, any::<bool>()).prop_map(|(acked, echo)| Event::Ack { acked, echo }),
        1 => Just(Event::Cnp),
        1 => (1..64u8).prop_map(|feedback| Event::Advice(Advice::Feedback(feedback))),
        1 => (1..200u64).prop_map(|gbps| Event::Advice(Advice::Rate(Rate::from_gbps(gbps)))),
        1 => Just(Event::Nack),
        1 => Just(Event::Timeout),
        1 => (0.0..1.0).prop_map(Event::LowerTo),
    ]
}

/// A control and the counters of its sender.
struct Story {
    control: AnyCongestion,
    una: u64,
    high: u64,
}

impl Story {
    fn handle(&mut self, now: Time, event: Event) {
        match event {
            Event::Reply { acked, echo, sent, round_trip } => {
                self.high += acked + sent;
                self.una += acked;
                let (una, high) = (self.una, self.high);
                let feedback = Feedback { acked, echo, una, high, round_trip, ..Feedback::default() };
                self.control.on_feedback(now, &feedback);
            }
            Event::Ack { acked, echo } => self.control.on_ack(now, acked, echo),
            Event::Cnp => self.control.on_cnp(now),
            Event::Advice(advice) => self.control.on_advice(now, advice),
            Event::Nack => self.control.on_nack(now),
            Event::Timeout => self.control.on_timeout(now),
            Event::LowerTo(share) => self.control.lower_to(now, share),
        }
    }
}

proptest! {
    #[test]
    fn every_control_allows_packets_up_to_line_rate_however_often_one_asks(
        events in prop::collection::vec((0..50u64, event()), 0..200),
    ) {
        for config in CongestionConfig::all() {
            let line = Rate::from_gbps(100);
            let new = || Story { control: config.control(line, None), una: 0, high: 100 };
            let (mut asked, mut left_alone) = (new(), new());
            let mut now = Time::ZERO;
            for &(us, event) in &events {
                now = Time(now.ps() + Time::from_us(us).ps());
                asked.handle(now, event);
                left_alone.handle(now, event);
                let allowance = asked.control.allowance(now);
                let waits_for_credit = config.facts().grants.is_some();
                prop_assert!(allowance.window >= 1 || waits_for_credit, "{}: {allowance:?}", config.name());
                prop_assert!(allowance.pace.bps() > 0.0, "{}: {allowance:?}", config.name());
                prop_assert!(allowance.pace.bps() <= 1.000_1 * line.bps() as f64, "{}: {allowance:?}", config.name());
                prop_assert_eq!(allowance, asked.control.allowance(now), "{}", config.name());
            }
            prop_assert_eq!(asked.control.allowance(now), left_alone.control.allowance(now), "{}", config.name());
        }
    }

    /// A served run leaves out messages that are alone while their control would forget them. Their time passes all the same.
    #[test]
    fn a_control_that_forgets_does_not_know_what_it_has_sent(
        events in prop::collection::vec((0..50u64, 0..3_000u64, event()), 0..60), pause in 0..400_000u64,
    ) {
        for config in CongestionConfig::all() {
            let new = || Story { control: config.control(Rate::from_gbps(100), None), una: 0, high: 100 };
            let (mut one, mut other) = (new(), new());
            let mut now = Time::ZERO;
            for (i, &(us, sent, event)) in events.iter().enumerate() {
                now = Time(now.ps() + Time::from_us(us + if i % 7 == 6 { pause } else { 0 }).ps());
                if one.control.forgets_sending(now) {
                    other.control.allowance(now);
                    other.control.on_sent(now, 1_000 * sent);
                    other.control.on_ack(now, sent, false);
                }
                one.handle(now, event);
                other.handle(now, event);
                let (one, other) = (one.control.allowance(now), other.control.allowance(now));
                prop_assert_eq!((one.window, one.pace), (other.window, other.pace), "{}", config.name());
            }
        }
    }

    /// A cut leaves out packets and ACKs while a control is at rest.
    #[test]
    fn a_control_at_rest_does_not_know_how_long_it_has_rested(
        events in prop::collection::vec((0..50u64, 0..3_000u64, event()), 0..60),
    ) {
        for config in CongestionConfig::all() {
            let new = || Story { control: config.control(Rate::from_gbps(100), None), una: 0, high: 100 };
            let (mut one, mut other) = (new(), new());
            let (mut now, mut later) = (Time::ZERO, Time::ZERO);
            for &(us, rest, event) in &events {
                now = Time(now.ps() + Time::from_us(us).ps());
                later = Time(later.ps() + Time::from_us(us).ps());
                if one.control.is_at_rest() {
                    later = Time(later.ps() + Time::from_us(rest).ps());
                    other.control.allowance(later);
                    other.control.on_sent(later, 1_000 * rest);
                    other.control.on_ack(later, rest, false);
                }
                one.handle(now, event);
                other.handle(later, event);
                let (one, other) = (one.control.allowance(now), other.control.allowance(later));
                prop_assert_eq!((one.window, one.pace), (other.window, other.pace), "{}", config.name());
            }
        }
    }
}
