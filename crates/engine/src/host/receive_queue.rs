//! The queue of a NIC whose host takes data slowly.
//!
//! Data counts as received when it is in the queue, as a NIC acknowledges it before the host has it. So only the length of the
//! queue matters, which is known from the time at which it will be empty.

use crate::setup::Setup;
use model::plan;

/// The queue of a NIC. Lengths are times, ps: until the host has taken the data.
#[derive(Debug)]
pub(super) struct ReceiveQueue {
    settings: plan::ReceiveQueue,
    /// Longest queue.
    limit: u64,
    /// Time at which the queue will be empty.
    empty_at: u64,
    pause: Pause,
    /// The pause (true) or resume frame that the engine has to send.
    frame: Option<bool>,
    /// Frames that pause all links of the NIC.
    frames: u64,
    /// Packets that did not fit.
    discards: u64,
}

/// Whether the NIC pauses its links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pause {
    Off,
    /// The pause frame leaves when the timer fires.
    Due,
    On,
}

/// What becomes of a packet that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    Kept,
    /// It is kept, and the NIC pauses its links.
    Pauses,
    Discarded,
}

impl ReceiveQueue {
    /// The queue of the NIC of `host`, if it has one.
    pub(super) fn new(setup: &Setup<'_>, host: model::HostId) -> Option<Box<Self>> {
        let settings = setup.plan.receive.get(host.index()).copied().flatten()?;
        Some(Box::new(ReceiveQueue {
            settings,
            limit: settings.rate.time_for(settings.buffer.get()).ps(),
            empty_at: 0,
            pause: Pause::Off,
            frame: None,
            frames: setup.plan.sharing.map_or(1, |sharing| sharing.ports.into())
                * u64::from(setup.priorities()),
            discards: 0,
        }))
    }

    /// Takes a packet with this payload into the queue, if it fits.
    pub(super) fn take(&mut self, now: u64, payload: u32) -> Arrival {
        let end = self.empty_at.max(now) + self.settings.rate.time_for(payload.into()).ps();
        let exceeds = end - now > self.limit;
        if exceeds && !self.settings.pause {
            self.discards += 1;
            return Arrival::Discarded;
        }
        self.empty_at = end;
        if exceeds && self.pause == Pause::Off {
            self.pause = Pause::Due;
            return Arrival::Pauses;
        }
        Arrival::Kept
    }

    /// Pauses or resumes the links. Returns the time of the next timer, if there is one.
    pub(super) fn on_timer(&mut self, now: u64) -> Option<u64> {
        let resumes_at = self.empty_at.saturating_sub(self.limit / 2);
        let paused = resumes_at > now;
        if paused != (self.pause == Pause::On) {
            self.frame = Some(paused);
        }
        self.pause = if paused { Pause::On } else { Pause::Off };
        paused.then_some(resumes_at)
    }

    /// Takes the pause (true) or resume frame that the last timer has made for all links of the NIC.
    #[inline]
    pub(super) fn take_frame(&mut self) -> Option<bool> {
        self.frame.take()
    }

    /// Reports what the NIC has discarded, and the pauses of links that it has not taken back.
    pub(super) fn counters(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("receive_discards", self.discards);
        sink("links_still_paused", if self.pause == Pause::On { self.frames } else { 0 });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Bytes, Rate};

    /// A queue of 4000 B at 8 Gb/s, so 1 ns per byte.
    fn queue(pause: bool) -> ReceiveQueue {
        let settings = plan::ReceiveQueue { rate: Rate::from_gbps(8), buffer: Bytes(4000), pause };
        let (limit, empty_at) = (4_000_000, 0);
        ReceiveQueue { settings, limit, empty_at, pause: Pause::Off, frame: None, frames: 1, discards: 0 }
    }

    #[test]
    fn a_queue_discards_what_does_not_fit() {
        let mut queue = queue(false);
        for _ in 0..4 {
            assert_eq!(queue.take(0, 1000), Arrival::Kept);
        }
        assert_eq!(queue.take(999_000, 1000), Arrival::Discarded);
        assert_eq!((queue.take(1_000_000, 1000), queue.discards), (Arrival::Kept, 1));
    }

    #[test]
    fn a_queue_pauses_once_above_its_limit_and_resumes_at_half_of_it() {
        let mut queue = queue(true);
        let arrivals: Vec<Arrival> = (0..6).map(|_| queue.take(0, 1000)).collect();
        assert_eq!(arrivals[3..], [Arrival::Kept, Arrival::Pauses, Arrival::Kept]);
        assert_eq!((queue.on_timer(0), queue.frame.take()), (Some(4_000_000), Some(true)));
        assert_eq!(queue.take(1_000_000, 1000), Arrival::Kept, "it was on its way");
        assert_eq!((queue.on_timer(4_000_000), queue.frame), (Some(5_000_000), None));
        assert_eq!((queue.on_timer(5_000_000), queue.frame), (None, Some(false)));
        assert_eq!(queue.take(5_000_000, 2001), Arrival::Pauses);
    }
}
