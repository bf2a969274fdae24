//! Parts from outside this crate.

use super::{ReceiverCalls as _, SenderCalls as _};
use crate::{AnyCongestion, AnyReceiver, AnySender, NicConfig, Reacting, Reaction};
use model::{Allowance, Congestion, Feedback, Pace, Rate, Sender as _, Time};

struct Window(u64);

impl Congestion for Window {
    fn allowance(&mut self, _now: Time) -> Allowance {
        Allowance { window: self.0, pace: Pace::UNPACED, not_before: Time::ZERO }
    }

    fn on_nack(&mut self, _now: Time) {
        self.0 = 1;
    }
}

#[test]
fn a_custom_control_receives_all_events() {
    let control = AnyCongestion::Custom(Box::new(Window(8)));
    assert_eq!(control.name(), "custom");
    let mut control = Reacting::new(control, Reaction::Stall(Time::from_us(3)), Reaction::To(0.5));
    control.on_timeout(Time::ZERO);
    assert_eq!(control.allowance(Time::ZERO).window, 8);
    control.on_nack(Time::ZERO);
    let allowance = control.allowance(Time::ZERO);
    assert_eq!((allowance.window, allowance.not_before), (1, Time::from_us(3)));
}

#[test]
fn custom_ends_receive_all_events() {
    let nic = NicConfig::default().build();
    let mut sender = AnySender::Custom(Box::new(nic.sender()));
    let mut receiver = AnyReceiver::Custom(Box::new(nic.receiver()));
    sender.post(1);
    assert!(sender.ready(1));
    assert_eq!(sender.next(Time::ZERO, 1), Some((0, false)));
    assert_eq!(sender.deadline(), Time::from_ms(1));
    let answer = receiver.on_data(Time::ZERO, model::Psn::new(0), false, true);
    assert_eq!(sender.on_reply(Time::ZERO, answer.reply.unwrap()).acked, 1);
    assert_eq!((sender.una(), receiver.expected()), (1, 1));
}

/// Counts events of each kind: ACKs, NACKs' acknowledgements, feedback, CNPs, grants, NACKs and timeouts.
#[derive(Default)]
struct Tally([u64; 7]);

impl Congestion for Tally {
    /// The counts as decimal digits, ACKs first.
    fn allowance(&mut self, _: Time) -> Allowance {
        let window = self.0.iter().fold(0, |digits, count| 10 * digits + count);
        Allowance { window, pace: Pace::UNPACED, not_before: Time::ZERO }
    }
    fn on_ack(&mut self, _: Time, packets: u64, _: bool) {
        self.0[0] += packets;
    }
    fn on_nacked(&mut self, _: Time, packets: u64, _: bool) {
        self.0[1] += packets;
    }
    fn on_feedback(&mut self, _: Time, feedback: &Feedback) {
        self.0[2] += feedback.acked;
    }
    fn on_cnp(&mut self, _: Time) {
        self.0[3] += 1;
    }
    fn on_grant(&mut self, _: Time, total: u64) {
        self.0[4] += total;
    }
    fn on_nack(&mut self, _: Time) {
        self.0[5] += 1;
    }
    fn on_timeout(&mut self, _: Time) {
        self.0[6] += 1;
    }
}

#[test]
fn a_control_that_is_not_steady_receives_every_event() {
    let now = Time::from_us(1);
    let tally = AnyCongestion::Custom(Box::new(Tally::default()));
    let mut control = Reacting::new(tally, Reaction::None, Reaction::None);
    let mut asked = |event: &dyn Fn(&mut Reacting)| {
        event(&mut control);
        (control.steady_until(), control.allowance(now).window)
    };
    assert_eq!(asked(&|c| c.on_ack(now, 1, false)), (Time::ZERO, 1_000_000));
    assert_eq!(asked(&|c| c.on_nacked(now, 2, false)), (Time::ZERO, 1_200_000));
    let feedback = Feedback { acked: 3, ..Feedback::default() };
    assert_eq!(asked(&|c| c.on_feedback(now, &feedback)), (Time::ZERO, 1_230_000));
    assert_eq!(asked(&|c| c.on_cnp(now)), (Time::ZERO, 1_231_000));
    assert_eq!(asked(&|c| c.on_grant(now, 5)), (Time::ZERO, 1_231_500));
    assert_eq!(asked(&|c| c.on_nack(now)), (Time::ZERO, 1_231_510));
    assert_eq!(asked(&|c| c.on_timeout(now)), (Time::ZERO, 1_231_511));
}

#[test]
fn a_steady_control_receives_only_replies_with_a_mark() {
    let line = Rate::from_gbps(100);
    // The first cut comes one interval of 4 us after the first CNP.
    let (now, later) = (Time::from_us(1), Time::from_us(6));
    for on_nacked in [false, true] {
        let mut control = NicConfig::default().build().congestion(line);
        let full = control.allowance(now).pace;
        assert_eq!(control.steady_until(), Time::NEVER, "DCQCN without CNPs stays at line rate");
        let mut reply = |mark| {
            match on_nacked {
                true => control.on_nacked(now, 1, mark),
                false => control.on_ack(now, 1, mark),
            }
            control.allowance(later).pace
        };
        assert_eq!(reply(false), full);
        assert!(reply(true) > full, "a mark is a CNP: the pace is longer");
    }
}
