//! The frames of a run, from which periods are found.

use super::period::{self, Seen};
use super::words;
use engine::cut::{Cutter, Look, Made, Period, Refusal};
use engine::outcome::Frame;
use engine::{Observer, Progress};
use model::{MessageId, Plan, Time};
use std::collections::BTreeMap;

/// Frames after which a period is looked for first, and from then on at each doubling. Our choice: a round trip of one flow in a rack.
const FIRST: usize = 256;

/// Frames after which the search pauses. Our choice: a round trip of a thousand flows at 400 Gb/s, in 32 MB.
const MOST: usize = 1 << 20;

/// First pause of a search, in times of the search; each one without a cut in between is twice as long. What records nothing is as fast as
/// other runs. Our choice.
const PAUSE: u64 = 4;

/// An observer that cuts its run.
pub(super) struct Cutting<'o> {
    pub(super) observer: &'o mut dyn Observer,
    pub(super) watch: Watch<'o>,
}

impl Observer for Cutting<'_> {
    fn on_start(&mut self) {
        self.observer.on_start();
    }

    fn on_progress(&mut self, progress: Progress) -> bool {
        self.observer.on_progress(progress)
    }

    fn room(&mut self) -> u64 {
        self.observer.room()
    }

    fn cutter(&mut self) -> Option<&mut dyn Cutter> {
        Some(&mut self.watch)
    }

    fn at_thread_end(&self) -> Box<dyn Fn() + Send + Sync> {
        self.observer.at_thread_end()
    }
}

/// What is known of a run.
pub(super) struct Watch<'p> {
    plan: &'p Plan,
    /// Recorded frames since the last cut.
    seen: Vec<Seen>,
    /// Number of frames at which a period is looked for next.
    next: usize,
    records: bool,
    /// Frames are recorded from this time on, ps.
    from: u64,
    /// Length of the next pause, in times of the search before it.
    pause: u64,
    /// Length of the cut that the engine is asked for, ps, and the time of the last frame before it.
    asked: (u64, u64),
    /// Time for which each link's wire would have been busy with what was left out, ps.
    pub(super) busy: Vec<u64>,
    /// Cuts: time by the engine's clock, and length, ps.
    pub(super) jumps: Vec<(u64, u64)>,
    pub(super) shorter: BTreeMap<MessageId, u64>,
    /// Why the last search found nothing.
    pub(super) reason: &'static str,
}

impl<'p> Watch<'p> {
    /// Nothing is cut before `from`, ps.
    pub(super) fn new(plan: &'p Plan, from: u64) -> Self {
        Watch {
            plan,
            seen: Vec::new(),
            next: FIRST,
            records: true,
            from,
            pause: PAUSE,
            asked: (0, 0),
            busy: vec![0; plan.fabric.links().len()],
            jumps: Vec::new(),
            shorter: BTreeMap::new(),
            reason: "the messages are over before anything repeats",
        }
    }

    fn forget(&mut self) {
        self.seen.clear();
        self.next = FIRST;
    }

    /// Pauses the search at `now`, once it has taken its time.
    fn rest(&mut self, now: u64) {
        if self.seen.len() >= MOST {
            self.from = now.saturating_add(self.pause.saturating_mul(now - self.seen[0].at));
            self.pause = self.pause.saturating_mul(2);
        }
    }
}

impl Cutter for Watch<'_> {
    fn look(&mut self, now: Time, frames: Vec<Frame>) -> Look {
        let now = now.ps();
        if now <= self.from {
            self.forget();
            return if std::mem::take(&mut self.records) { Look::Record(false) } else { Look::Nothing };
        }
        if !self.records {
            self.records = true;
            return Look::Record(true);
        }
        self.seen.extend(frames.iter().map(Seen::of));
        if self.seen.len() < self.next {
            return Look::Nothing;
        }
        self.next = 2 * self.seen.len();
        self.seen.sort_unstable_by_key(|seen| (seen.at, seen.link));
        match period::find(self.plan, &self.seen) {
            Ok((time, packets)) => {
                self.asked = (time, self.seen.last().map_or(now, |seen| seen.at));
                Look::Cut(Period { time: Time(time), packets })
            }
            Err(why) => {
                self.reason = why.words();
                self.rest(now);
                Look::Nothing
            }
        }
    }

    fn made(&mut self, made: Result<Made, Refusal>) {
        match made {
            Ok(Made { periods, packets }) => {
                let (time, at) = self.asked;
                self.jumps.push((at, periods * time));
                for frame in self.seen.iter().filter(|frame| frame.at + time > at) {
                    self.busy[frame.link as usize] += periods * period::on_wire(self.plan, frame);
                }
                packets.into_iter().for_each(|(message, n)| *self.shorter.entry(message).or_default() += n);
                self.pause = PAUSE;
                self.forget();
            }
            Err(refusal) => {
                self.reason = words(refusal);
                match refusal {
                    Refusal::Short | Refusal::Waits | Refusal::Tasks => self.rest(self.asked.1),
                    // These stay as they are.
                    Refusal::Control
                    | Refusal::History
                    | Refusal::Sender
                    | Refusal::Steering
                    | Refusal::Nic => self.from = u64::MAX,
                }
            }
        }
    }

    fn shorter(&self) -> &BTreeMap<MessageId, u64> {
        &self.shorter
    }
}
