//! Effect of a NACK or a timeout on the rate. NIC vendors do not document this effect, so it is a setting. It stands apart
//! from the congestion controls, because all of them use it.

use crate::AnyCongestion;
use crate::Unit;
use crate::window::Cap;
use finding::{Finding, code};
use model::{Advice, Allowance, Congestion, Demand, Feedback, Pace, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Effect on the congestion control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reaction {
    /// The effect of one CNP: under DCQCN any number of them cut the rate at most once per `rate-decrease-interval`.
    #[default]
    AsCnp,
    /// No effect (the HPCC family of ns-3 simulators).
    None,
    /// No packet for this long, including the retransmission; the rate stays.
    Stall(Time),
    /// The rate drops to this share of line rate, above 0 and at most 1, if it is higher. Only with a control that has a
    /// rate.
    To(f64),
    /// The rate drops to the control's minimum, such as `min-rate` of `dcqcn`. Only with a control that has a rate.
    ToMinRate,
}

impl Reaction {
    /// Time during which no packet may start.
    pub const fn stall(&self) -> Time {
        match *self {
            Reaction::Stall(time) => time,
            _ => Time::ZERO,
        }
    }

    /// Checks whether the value is possible; `field` names the setting.
    pub fn validate(&self, field: &str, has_rate: bool) -> Result<(), Finding> {
        match *self {
            Reaction::Stall(Time::ZERO) => {
                Err(code::RANGE.at(&format!("{field}.stall"), "must be longer than 0"))
            }
            Reaction::To(share) if !(share > 0.0 && share <= 1.0) => {
                Err(code::RANGE.at(&format!("{field}.to"), "must be above 0 and at most 1"))
            }
            Reaction::To(_) if !has_rate => {
                Err(code::CONFLICT.at(&format!("{field}.to"), "this congestion control has no rate to lower"))
            }
            Reaction::ToMinRate if !has_rate => Err(code::CONFLICT
                .at(field, "cannot be to-min-rate: this congestion control has no rate to lower")),
            _ => Ok(()),
        }
    }
}

/// A congestion control with its reactions to NACKs and timeouts. The control itself also receives both events.
///
/// A host asks for the pace before every packet, and the answer rarely changes. This struct therefore caches the answer and
/// the time until which it holds. The control is stored apart, so that a host without congestion never touches its memory.
pub struct Reacting {
    pace: Pace,
    /// Before this time the control allows exactly `pace`, unless an event reaches it. Zero if the control must be asked
    /// every time and receive every event: a custom control, or a stall.
    steady_until: Time,
    inner: Box<Inner>,
}

/// What a control is asked after an event, in one call.
pub(crate) struct State {
    pub(crate) allowance: Allowance,
    /// Time until which the control allows any window and the same pace if it receives nothing but ACKs without a mark, which it
    /// ignores. Zero if this is unknown.
    pub(crate) steady_until: Time,
    /// [`Congestion::is_still`].
    pub(crate) is_still: bool,
}

/// What every packet needs comes first, and shares cache lines with the control.
#[repr(C, align(64))]
struct Inner {
    /// The window of the last answer, as long as it holds in any case.
    window: Option<u64>,
    stalled_until: Time,
    factor: Factor,
    cap: Option<Box<Cap>>,
    control: AnyCongestion,
    on_nack: Reaction,
    on_timeout: Reaction,
}

/// Conversion of the control's window to the sender's unit, with the bytes of a full frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Factor {
    One,
    ToBytes(u32),
    ToPackets(u32),
}

impl Factor {
    /// A window in the sender's unit. A window of less than a packet stays one packet.
    fn convert(self, window: u64) -> u64 {
        match self {
            Factor::ToBytes(frame) if window != u64::MAX => window.saturating_mul(frame.into()),
            Factor::ToPackets(frame) if window != u64::MAX => match window {
                0 => 0,
                _ => (window / u64::from(frame.max(1))).max(1),
            },
            _ => window,
        }
    }
}

impl Inner {
    fn react(&mut self, now: Time, reaction: Reaction) {
        match reaction {
            Reaction::AsCnp => self.control.on_cnp(now),
            Reaction::None => {}
            Reaction::Stall(span) => {
                self.stalled_until = self.stalled_until.max(Time(now.ps().saturating_add(span.ps())));
            }
            Reaction::To(share) => self.control.lower_to(now, share),
            Reaction::ToMinRate => self.control.lower_to(now, 0.0),
        }
    }
}

impl Reacting {
    /// Adds reactions to a control.
    pub fn new(control: AnyCongestion, on_nack: Reaction, on_timeout: Reaction) -> Self {
        let inner = Box::new(Inner {
            control,
            stalled_until: Time::ZERO,
            on_nack,
            on_timeout,
            cap: None,
            factor: Factor::One,
            window: None,
        });
        Reacting { pace: Pace::UNPACED, steady_until: Time::ZERO, inner }
    }

    /// Converts windows from the control's unit to the sender's; a full frame has `frame` bytes.
    pub(crate) fn counting(mut self, control: Unit, sender: Unit, frame: u32) -> Self {
        self.inner.factor = match (control, sender) {
            (Unit::Packets, Unit::Bytes) => Factor::ToBytes(frame),
            (Unit::Bytes, Unit::Packets) => Factor::ToPackets(frame),
            _ => Factor::One,
        };
        self
    }

    /// Limits the outstanding packets to `cap`.
    pub(crate) fn within(mut self, cap: Cap) -> Self {
        self.inner.cap = Some(Box::new(cap));
        self
    }

    /// The control, without its reactions.
    pub const fn control(&self) -> &AnyCongestion {
        &self.inner.control
    }

    /// The window, and the time before which no packet may start.
    #[inline]
    fn answer(&mut self, now: Time) -> (u64, Time) {
        match self.inner.window {
            Some(window) => (window, Time::ZERO),
            None => self.ask(now),
        }
    }

    /// Asks the control and keeps the pace; returns the window, and the time before which no packet may start.
    fn ask(&mut self, now: Time) -> (u64, Time) {
        let State { mut allowance, steady_until, is_still } = self.inner.control.state(now);
        allowance.not_before = allowance.not_before.max(self.inner.stalled_until);
        allowance.window = self.inner.factor.convert(allowance.window);
        self.pace = allowance.pace;
        let stalled = allowance.not_before > now;
        if let Some(cap) = &self.inner.cap {
            cap.limit(&mut allowance);
        }
        self.steady_until = if stalled || self.inner.cap.is_some() { Time::ZERO } else { steady_until };
        let still = !stalled && self.inner.cap.is_none() && is_still;
        self.inner.window = still.then_some(allowance.window);
        (allowance.window, allowance.not_before)
    }

    /// Passes on an acknowledgement. A control that is not steady is asked at the next call of `allowance` in any case.
    #[inline]
    fn acknowledge(&mut self, now: Time, echo: bool, event: impl FnOnce(&mut Inner)) {
        if self.steady_until == Time::ZERO {
            event(&mut self.inner);
            self.inner.window = None;
        } else if echo {
            self.tell(now, event);
        }
    }

    #[cold]
    fn tell(&mut self, now: Time, event: impl FnOnce(&mut Inner)) {
        event(&mut self.inner);
        self.ask(now);
    }
}

impl Congestion for Reacting {
    #[inline]
    fn fetch(&self) {
        std::hint::black_box(self.inner.window);
        self.inner.control.fetch();
    }

    fn share(&mut self, other: &Self) {
        self.inner.control.share(&other.inner.control);
    }

    #[inline]
    fn allowance(&mut self, now: Time) -> Allowance {
        let steady = now < self.steady_until;
        let (window, not_before) = if steady { (u64::MAX, Time::ZERO) } else { self.answer(now) };
        Allowance { window, pace: self.pace, not_before }
    }

    #[inline]
    fn on_ack(&mut self, now: Time, packets: u64, echo: bool) {
        self.acknowledge(now, echo, move |inner| inner.control.on_ack(now, packets, echo));
    }

    #[inline]
    fn steady_until(&self) -> Time {
        self.steady_until
    }

    #[inline]
    fn on_nacked(&mut self, now: Time, packets: u64, echo: bool) {
        self.acknowledge(now, echo, move |inner| inner.control.on_nacked(now, packets, echo));
    }

    fn on_feedback(&mut self, now: Time, feedback: &Feedback) {
        self.acknowledge(now, feedback.echo, |inner| inner.control.on_feedback(now, feedback));
    }

    #[inline(always)]
    fn on_send(&mut self, now: Time, frame: u32, backlog: u64, active: u64) -> Demand {
        match self.inner.window {
            // A window is kept for controls alone that tell nothing when a packet starts.
            Some(_) => Demand::default(),
            None => self.inner.control.on_send(now, frame, backlog, active),
        }
    }

    fn is_at_rest(&self) -> bool {
        self.inner.control.is_at_rest()
    }

    fn forgets_sending(&self, now: Time) -> bool {
        now >= self.inner.stalled_until && self.inner.control.forgets_sending(now)
    }

    fn gap_ahead(&self, now: Time, bytes: u64) -> Option<Time> {
        self.inner.control.gap_ahead(now, bytes)
    }

    fn bytes_left(&self) -> u64 {
        self.inner.control.bytes_left()
    }

    fn on_sent(&mut self, now: Time, bytes: u64) -> bool {
        let changed = self.inner.control.on_sent(now, bytes);
        if changed {
            self.ask(now);
        }
        changed
    }

    fn assumed_delay(&self) -> Option<Time> {
        self.inner.control.assumed_delay()
    }

    fn on_grant(&mut self, now: Time, total: u64) {
        self.tell(now, |inner| inner.control.on_grant(now, total));
    }

    fn on_cnp(&mut self, now: Time) {
        self.tell(now, |inner| inner.control.on_cnp(now));
    }

    fn on_advice(&mut self, now: Time, advice: Advice) {
        self.tell(now, |inner| inner.control.on_advice(now, advice));
    }

    fn on_nack(&mut self, now: Time) {
        self.tell(now, |inner| {
            inner.control.on_nack(now);
            inner.react(now, inner.on_nack);
        });
    }

    fn on_timeout(&mut self, now: Time) {
        self.tell(now, |inner| {
            inner.control.on_timeout(now);
            inner.react(now, inner.on_timeout);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NicConfig;
    use model::Rate;

    fn after_nack(on_nack: Reaction) -> (Allowance, Allowance) {
        let config = NicConfig { on_nack, on_timeout: Reaction::None, ..NicConfig::default() };
        let mut control = config.build().congestion(Rate::from_gbps(100));
        let before = control.allowance(Time::from_us(1));
        control.on_timeout(Time::from_us(1));
        assert_eq!(control.allowance(Time::from_us(1)), before);
        control.on_nack(Time::from_us(1));
        (before, control.allowance(Time::from_us(6)))
    }

    #[test]
    fn as_cnp_cuts_the_rate() {
        let (before, after) = after_nack(Reaction::AsCnp);
        assert!(after.pace > before.pace && after.not_before == Time::ZERO);
    }

    #[test]
    fn none_changes_nothing() {
        let (before, after) = after_nack(Reaction::None);
        assert_eq!(after, before);
    }

    #[test]
    fn a_stall_holds_the_packets_and_keeps_the_rate() {
        let (before, after) = after_nack(Reaction::Stall(Time::from_us(17)));
        assert_eq!((after.pace, after.not_before), (before.pace, Time::from_us(18)));
    }

    #[test]
    fn a_stalled_control_forgets_nothing() {
        let config = NicConfig { on_timeout: Reaction::Stall(Time::from_us(17)), ..NicConfig::default() };
        let mut control = config.build().congestion(Rate::from_gbps(100));
        control.on_timeout(Time::from_us(1));
        assert!(!control.forgets_sending(Time::from_us(17)));
        assert!(control.forgets_sending(Time::from_us(18)));
    }

    #[test]
    fn a_control_that_time_does_not_change_is_asked_after_every_event() {
        struct Counted(u64);
        impl Congestion for Counted {
            fn allowance(&mut self, _: Time) -> Allowance {
                Allowance { window: self.0, pace: Pace::UNPACED, not_before: Time::ZERO }
            }

            fn is_still(&self) -> bool {
                true
            }

            fn on_ack(&mut self, _: Time, _: u64, _: bool) {
                self.0 += 1;
            }

            fn on_cnp(&mut self, _: Time) {
                self.0 += 10;
            }

            fn on_timeout(&mut self, _: Time) {
                self.0 += 100;
            }
        }
        let control = AnyCongestion::Custom(Box::new(Counted(5)));
        let mut control = Reacting::new(control, Reaction::Stall(Time::from_us(17)), Reaction::None);
        let window = |control: &mut Reacting| control.allowance(Time::from_us(1)).window;
        assert_eq!((window(&mut control), window(&mut control)), (5, 5));
        control.on_ack(Time::from_us(1), 1, false);
        assert_eq!(window(&mut control), 6);
        control.on_cnp(Time::from_us(1));
        assert_eq!(window(&mut control), 16);
        control.on_timeout(Time::from_us(1));
        assert_eq!(window(&mut control), 116);
        control.on_nack(Time::from_us(1));
        let not_before = |control: &mut Reacting, us| control.allowance(Time::from_us(us)).not_before;
        assert_eq!(not_before(&mut control, 2), Time::from_us(18), "a stall ends with time");
        assert!(not_before(&mut control, 18) <= Time::from_us(18));
    }

    #[test]
    fn to_a_share_sets_the_rate_at_once() {
        let (_, after) = after_nack(Reaction::To(0.5));
        assert_eq!(after.pace, Pace::from_bps(50e9));
    }

    #[test]
    fn to_min_rate_is_the_controls_minimum() {
        let (_, after) = after_nack(Reaction::ToMinRate);
        assert_eq!(after.pace, Pace::from_bps(1e6));
        assert!(Reaction::ToMinRate.validate("on-nack", false).is_err());
    }

    #[test]
    fn a_control_without_a_rate_refuses_a_share() {
        assert!(Reaction::To(0.5).validate("on-nack", true).is_ok());
        let error = Reaction::To(0.5).validate("on-nack", false).unwrap_err();
        assert_eq!(
            (&*error.path(), &*error.text),
            ("on-nack.to", "this congestion control has no rate to lower")
        );
        assert!(Reaction::To(f64::NAN).validate("on-nack", true).is_err());
    }
}
