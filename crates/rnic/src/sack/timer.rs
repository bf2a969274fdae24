//! The retransmission timer (RTO) of a sender.

use crate::timeout::Timing;
use model::Time;

/// The timer runs for the oldest packet in flight, or while a window of 0 holds packets back.
#[derive(Clone, Debug)]
#[cfg_attr(test, derive(Hash))]
pub(super) struct Timer {
    /// Time at which the timer fires.
    due: Time,
    /// Timeouts in a row without progress.
    fired: u8,
    /// Time since which a window of 0 has held packets back while none is in flight; [`Time::NEVER`] if it has not.
    held: Time,
}

impl Timer {
    pub(super) const fn new() -> Self {
        Timer { due: Time::NEVER, fired: 0, held: Time::NEVER }
    }

    /// Time at which the timer fires; [`Time::NEVER`] if it does not run.
    #[inline(always)]
    pub(super) fn due(&self) -> Time {
        self.due
    }

    /// Timeouts in a row without progress.
    pub(super) fn fired(&self) -> u8 {
        self.fired
    }

    /// Time since which a window of 0 has held packets back; [`Time::NEVER`] if it has not.
    #[inline(always)]
    pub(super) fn held(&self) -> Time {
        self.held
    }

    /// Notes that a window of 0 holds packets back.
    pub(super) fn hold(&mut self, now: Time) {
        self.held = now;
    }

    /// Notes that nothing is held back.
    #[inline(always)]
    pub(super) fn release(&mut self) {
        self.held = Time::NEVER;
    }

    /// Notes that the receiver has got more.
    #[inline(always)]
    pub(super) fn progress(&mut self) {
        self.fired = 0;
    }

    /// Notes a timeout after `before` others in a row.
    pub(super) fn fire(&mut self, before: u8) {
        self.fired = before.saturating_add(1);
    }

    /// Sets the timer, where `oldest` is the last transmission of the oldest packet in flight.
    #[inline(always)]
    pub(super) fn set(&mut self, timing: &Timing, oldest: Option<Time>) {
        self.due = match oldest.unwrap_or(self.held) {
            Time::NEVER => Time::NEVER,
            since => timing.deadline(since, self.fired),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeout::{Backoff, Timeout};

    const US: fn(u64) -> Time = Time::from_us;

    #[test]
    fn the_timer_runs_for_a_packet_or_for_a_held_sender_and_backs_off() {
        let backoff = Backoff { factor: 2, cap: Time::from_ms(10) };
        let (timing, mut timer) = (Timing::new(Timeout::Fixed(US(50)), Some(backoff)), Timer::new());
        timer.set(&timing, None);
        assert_eq!(timer.due(), Time::NEVER);
        timer.hold(US(5));
        timer.set(&timing, None);
        assert_eq!(timer.due(), US(55));
        timer.set(&timing, Some(US(1)));
        assert_eq!(timer.due(), US(51), "a packet in flight counts first");
        timer.fire(0);
        timer.set(&timing, Some(US(1)));
        assert_eq!((timer.fired(), timer.due()), (1, US(101)));
        timer.progress();
        timer.release();
        timer.set(&timing, None);
        assert_eq!((timer.fired(), timer.due()), (0, Time::NEVER));
        timer.fire(u8::MAX);
        assert_eq!(timer.fired(), u8::MAX);
    }
}
