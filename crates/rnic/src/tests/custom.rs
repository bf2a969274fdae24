//! Parts from outside this crate.

use crate::{AnyCongestion, AnyReceiver, AnySender, NicConfig, Reacting, Reaction};
use model::{Allowance, Congestion, Pace, Receiver as _, Sender as _, Time};

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
