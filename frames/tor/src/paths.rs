//! Emulated spines: one FIFO per spine and destination ToR, with delay, jitter, loss, rate and failures.
//!
//! A frame leaves at `max(time at which the frame before it leaves, now + delay + jitter)`. This maximum makes the path a
//! FIFO whatever the jitter is, and Themis's proof of a loss needs FIFO paths.

use crate::draw::{Chance, Draw};
use crate::pool::Frame;
use crate::queues::WIRE_OVERHEAD;
use crate::units::{Rate, Span, Time};
use std::collections::VecDeque;

/// Settings of one spine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spine {
    /// Delay from ToR to ToR.
    pub delay: Span,
    /// Largest additional delay; each frame draws its own.
    pub jitter: Span,
    /// Probability that a frame is lost.
    pub loss: Chance,
    /// Rate of the link from the spine to each ToR; `None` for no limit.
    pub rate: Option<Rate>,
    /// Times from and to which the spine is down, in order.
    pub down: Vec<(Time, Time)>,
}

/// Why a path lost a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// A random loss.
    Random,
    /// The path is down.
    Down,
}

/// One path.
#[derive(Debug)]
pub(crate) struct Path {
    delay: Span,
    jitter: Span,
    loss: Chance,
    rate: Option<Rate>,
    draw: Draw,
    /// End of the last frame's transmission.
    free_at: Time,
    /// Instant at which the last frame leaves.
    last: Time,
    frames: VecDeque<(Time, Frame)>,
    up: bool,
}

impl Path {
    pub(crate) fn new(spine: &Spine, seed: u64, ordinal: u64) -> Self {
        Path {
            delay: spine.delay,
            jitter: spine.jitter,
            loss: spine.loss,
            rate: spine.rate,
            draw: Draw::new(seed, ordinal),
            free_at: Time::ZERO,
            last: Time::ZERO,
            frames: VecDeque::new(),
            up: true,
        }
    }

    /// Puts a frame onto the path, or returns it as lost.
    pub(crate) fn enter(&mut self, now: Time, frame: Frame) -> Result<(), (Frame, Loss)> {
        if !self.up {
            return Err((frame, Loss::Down));
        }
        if self.loss > Chance::NEVER && self.draw.happens(self.loss) {
            return Err((frame, Loss::Random));
        }
        let sent = match self.rate {
            Some(rate) => now.max(self.free_at) + rate.time_of(frame.len() as u64 + WIRE_OVERHEAD),
            None => now,
        };
        self.free_at = sent;
        let jitter = match self.jitter.nanos() {
            0 => Span::ZERO,
            most => Span::from_nanos(self.draw.up_to(most)),
        };
        self.last = self.last.max(sent + self.delay + jitter);
        self.frames.push_back((self.last, frame));
        Ok(())
    }

    /// True if the path does nothing to a frame that enters now: no delay, rate or loss, and nothing ahead of it.
    pub(crate) fn is_immediate(&self, now: Time) -> bool {
        let nothing = self.delay == Span::ZERO && self.jitter == Span::ZERO;
        self.up && nothing && self.loss == Chance::NEVER && self.rate.is_none() && self.last <= now
    }

    /// Instant at which the next frame leaves.
    pub(crate) fn due(&self) -> Option<Time> {
        self.frames.front().map(|(at, _)| *at)
    }

    /// The next frame.
    pub(crate) fn leave(&mut self) -> Option<Frame> {
        self.frames.pop_front().map(|(_, frame)| frame)
    }

    pub(crate) fn set_up(&mut self, up: bool) {
        self.up = up;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::Pool;

    #[test]
    fn frames_leave_in_order_whatever_the_jitter_is() {
        let spine = Spine {
            delay: Span::from_micros(10),
            jitter: Span::from_micros(50),
            rate: Rate::from_bits(1_000_000_000),
            ..Spine::default()
        };
        let mut path = Path::new(&spine, 1, 0);
        let mut pool = Pool::new(100, 64);
        let mut sent = Vec::new();
        for i in 0..100u8 {
            let now = Time::from_nanos(u64::from(i) * 700);
            path.enter(now, pool.copy_of(&[i; 64]).unwrap()).unwrap();
            sent.push(now);
        }
        let mut last = Time::ZERO;
        for (i, sent) in sent.into_iter().enumerate() {
            let at = path.due().unwrap();
            assert!(at >= last && at >= sent + spine.delay + Span::from_nanos(704), "{i}");
            last = at;
            assert_eq!(usize::from(pool.bytes(&path.leave().unwrap())[0]), i);
        }
        assert_eq!(path.due(), None);
    }

    #[test]
    fn a_path_that_is_down_loses_frames() {
        let mut path = Path::new(&Spine::default(), 1, 0);
        let mut pool = Pool::new(1, 64);
        path.set_up(false);
        let frame = pool.copy_of(&[0; 14]).unwrap();
        assert!(matches!(path.enter(Time::ZERO, frame), Err((_, Loss::Down))));
    }
}
