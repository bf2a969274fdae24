//! The time between two windows: hands lanes over, finds the next window with anything to do, and decides whether
//! the run has ended.

use super::group::Group;
use super::lanes::{Board, Mail};
use super::out::Window;
use super::setup::Setup;
use super::turns;
use crate::books::closing;
use crate::cutting;
use crate::observer::{Observer, Progress};
use crate::record::hand_over;
use crate::record::sampler::Sampler;
use crate::setup::PortFacts;
use crate::stall::is_stalled;
use crate::view::Views;
use model::{Parts, Time};
use std::ops::DerefMut;

/// The next step of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The next window to visit.
    Visit(Window),
    /// The run has ended.
    End(End),
}

/// The end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    pub(super) cause: Cause,
    /// Time at which the run was cut off; `None` if the run ended with its last event.
    pub(super) at: Option<Time>,
}

/// The reason why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    Finished,
    Stopped,
    Interrupted,
    Stalled,
    Memory,
    /// A run in turns may stall in the next turn.
    Quiet,
}

/// The run's clock.
#[derive(Debug)]
pub(super) struct Clock {
    length: u64,
    horizon: u64,
    background: bool,
    /// True while a program may post more messages.
    open_ended: bool,
    /// Lowest possible number of the next window.
    number: u64,
    /// Time of the next checks; they take place once per full window length.
    boundary: u64,
    /// Number of the last window visited; [`u64::MAX`] before the first.
    pub(super) last: u64,
    pub(super) windows: u64,
    /// Number of foreground messages, once it is known.
    total: Option<u64>,
    /// Windows until the next call of the observer.
    until_observer: u64,
    /// Most bytes of packets that all hosts send in a window.
    growth: u64,
    /// Views of all queues.
    pub(super) views: Views,
    pub(super) sampler: Sampler,
    /// True if two sides take turns. Windows then have the numbers of turns.
    in_turns: bool,
}

/// Windows between two calls of the observer: some tens of milliseconds in a large fabric. Our choice.
const OBSERVE: u64 = 64;

/// Part of the remaining memory that packets may take before the observer is called again: buffers are larger than the packets
/// in them, and grow by a quarter. Our choice.
const PART: u64 = 8;

impl Clock {
    /// The clock of a run whose packets take `parcel` bytes each.
    pub(super) fn new(setup: &Setup<'_>, length: u64, views: Views, parcel: usize) -> Self {
        // Frames may be smaller, but then their messages take more memory than their packets, and the plan has counted it.
        let frame = setup.plan.wire.max_frame();
        let sent = |port: &PortFacts| length / setup.time_on_wire(port.row, frame).max(1) + 1;
        let packets: u64 = setup.ports[..setup.fabric().hosts()].iter().map(sent).sum();
        Clock {
            length,
            horizon: setup.plan.stop_after.map_or(u64::MAX, Time::ps),
            background: setup.plan.jobs.iter().any(|j| j.background),
            open_ended: setup.posted.is_some(),
            number: 0,
            boundary: 0,
            last: u64::MAX,
            windows: 0,
            total: None,
            until_observer: OBSERVE,
            growth: packets.saturating_mul(parcel as u64).max(1),
            views,
            sampler: Sampler::new(setup),
            in_turns: false,
        }
    }

    /// The clock of a run in which two sides take turns.
    pub(super) fn in_turns(self) -> Self {
        // A turn spans two windows.
        Clock { growth: 2 * self.growth, in_turns: true, ..self }
    }

    /// The program that drives the run posts no more messages.
    pub(super) fn end_posts(&mut self) {
        self.open_ended = false;
    }

    /// True while a program may post more messages.
    pub(super) fn is_open_ended(&self) -> bool {
        self.open_ended
    }

    /// Start of the first window that has not been visited, ps.
    pub(super) fn reached(&self) -> u64 {
        self.number * self.length
    }

    /// Start of the next window in a run whose next event without mail comes at `next`; [`u64::MAX`] for none.
    pub(super) fn next_window(&self, mail: &Mail, next: u64) -> u64 {
        match mail.awaits(self.number) {
            true => self.number * self.length,
            false if next == u64::MAX => u64::MAX,
            false => self.number.max(next / self.length) * self.length,
        }
    }

    /// Closes the window and opens the next one.
    pub(super) fn advance<P: Parts, G: DerefMut<Target = Group<P>>>(
        &mut self,
        setup: &Setup<'_>,
        groups: &mut [G],
        board: &mut Board<P::Annex>,
        mail: &Mail,
        observer: &mut dyn Observer,
    ) -> Step {
        for (group, written) in groups.iter_mut().zip(board.iter_mut()) {
            group.hand_lanes_over(self.last, written);
        }
        if self.until_observer == 0 {
            let recorders = groups.iter_mut().flat_map(|group| group.recorders());
            hand_over(observer, recorders, self.number * self.length);
            let cause = match observer.on_progress(self.progress(groups)) {
                false => Some(Cause::Interrupted),
                true => (!self.has_room(setup, groups, observer)).then_some(Cause::Memory),
            };
            if let Some(cause) = cause {
                let at = Some(Time((self.number * self.length).min(self.horizon)));
                return Step::End(End { cause, at });
            }
        }
        let awaited = mail.awaits(self.number);
        if !awaited {
            let next = groups.iter_mut().map(|group| group.next()).min().unwrap_or(u64::MAX);
            if next == u64::MAX {
                return match unfinished(groups) {
                    0 => Step::End(End { cause: Cause::Finished, at: self.end_of_background() }),
                    // The last window was cut short, and later arrivals in it remain in flight.
                    _ if groups.iter().any(|group| group.cut_short()) => {
                        Step::End(End { cause: Cause::Stopped, at: setup.plan.stop_after })
                    }
                    // A turn may have gone beyond the window in which a queue pair failed.
                    _ if self.in_turns => Step::End(End { cause: Cause::Quiet, at: None }),
                    _ => Step::End(End { cause: Cause::Stalled, at: None }),
                };
            }
            self.number = self.number.max(next / self.length);
        }
        if self.in_turns {
            return self.next_turn(setup, groups);
        }
        if self.stops_before_an_event(groups, board) {
            return self.stop(setup, groups);
        }
        if !awaited && self.stalls_before_an_event(setup, groups) {
            return Step::End(End { cause: Cause::Stalled, at: None });
        }
        let opened = self.number * self.length;
        if opened >= self.boundary
            && let Some(end) = self.check(setup, groups, opened, observer)
        {
            return end;
        }
        if self.sampler.is_due(opened) {
            self.sample(setup, groups);
            self.sampler.close(opened, unfinished(groups) == 0 && !self.open_ended);
        }
        self.views.advance(opened, |all| groups.iter().for_each(|group| group.write_queues(all)));
        let close = (opened + self.length).min(self.horizon);
        let (number, length, next) = (self.number, self.length, opened + self.length);
        let window = Window { number, opened, close, length, next, span: length, again: next };
        self.last = self.number;
        self.number += 1;
        self.windows += 1;
        self.until_observer -= 1;
        Step::Visit(window)
    }

    /// The next turn, unless the run may stall in it.
    fn next_turn<P: Parts, G: DerefMut<Target = Group<P>>>(
        &mut self,
        setup: &Setup<'_>,
        groups: &[G],
    ) -> Step {
        let turn = turns::turn(self.number, self.length);
        if unfinished(groups) > 0
            && is_stalled(setup, turn.close, groups.iter().map(|group| group.liveness()))
        {
            return Step::End(End { cause: Cause::Quiet, at: None });
        }
        self.last = self.number;
        self.number += 1;
        self.windows += 1;
        self.until_observer -= 1;
        Step::Visit(turn)
    }

    /// True if enough memory is left. Decides when the observer is called next.
    pub(super) fn has_room<P: Parts, G: DerefMut<Target = Group<P>>>(
        &mut self,
        setup: &Setup<'_>,
        groups: &[G],
        observer: &mut dyn Observer,
    ) -> bool {
        let room = observer.room();
        self.until_observer = OBSERVE;
        if room == u64::MAX {
            return true;
        }
        let records = groups.iter().map(|group| group.records()).sum::<u64>() + self.sampler.memory();
        let left = room.saturating_sub(closing(setup.plan, records));
        self.until_observer = (left / PART / self.growth).clamp(1, OBSERVE);
        left > 0
    }

    /// Samples all series.
    pub(super) fn sample<P: Parts, G: DerefMut<Target = Group<P>>>(
        &mut self,
        setup: &Setup<'_>,
        groups: &mut [G],
    ) {
        groups.iter_mut().for_each(|group| group.sample(setup, &mut self.sampler));
    }

    /// Checks that take place once per full window length, so that the result does not depend on the length in use.
    fn check<P: Parts, G: DerefMut<Target = Group<P>>>(
        &mut self,
        setup: &Setup<'_>,
        groups: &mut [G],
        opened: u64,
        observer: &mut dyn Observer,
    ) -> Option<Step> {
        let quantum = setup.window;
        let crossed = opened / quantum * quantum;
        let unfinished = unfinished(groups);
        if unfinished == 0 && self.background && !self.open_ended {
            return Some(Step::End(End { cause: Cause::Finished, at: self.end_of_background() }));
        }
        if unfinished > 0 && is_stalled(setup, crossed, groups.iter().map(|group| group.liveness())) {
            return Some(Step::End(End { cause: Cause::Stalled, at: None }));
        }
        if let Some(cutter) = observer.cutter() {
            let frames = cutting::frames(groups.iter_mut().flat_map(|group| group.recorders()));
            let tasks_rest = groups.iter().all(|group| group.tasks_rest());
            let hosts = groups.iter_mut().flat_map(|group| group.hosts_mut());
            if let Some(on) = cutting::between(setup, crossed, cutter, frames, (hosts, tasks_rest)) {
                groups.iter_mut().for_each(|group| group.tap(on));
            }
        }
        self.boundary = crossed + quantum;
        None
    }

    /// The end of a run that has no further event before it stops.
    fn stop<P: Parts, G: DerefMut<Target = Group<P>>>(&self, setup: &Setup<'_>, groups: &[G]) -> Step {
        Step::End(match unfinished(groups) {
            0 => End { cause: Cause::Finished, at: self.end_of_background() },
            _ => End { cause: Cause::Stopped, at: setup.plan.stop_after },
        })
    }

    /// End of the last window in which a packet arrives that the next window hands on to a lane, ps.
    fn latest_arrival(&self) -> u64 {
        (self.number + 2) * self.length
    }

    /// True if the run stops before its next event. A window that only hands packets on to lanes is then not opened,
    /// because it would look for stalls and sample the series.
    fn stops_before_an_event<P: Parts, G: DerefMut<Target = Group<P>>>(
        &self,
        groups: &[G],
        board: &mut Board<P::Annex>,
    ) -> bool {
        if self.latest_arrival() <= self.horizon {
            return false;
        }
        let opened = self.number * self.length;
        let events = groups.iter().map(|group| group.next_event().min(group.next_carried(opened)));
        let lanes = board.iter_mut().flatten().filter(|lane| lane.window.wrapping_add(1) == self.number);
        let mail = lanes.map(|lane| lane.next_event(opened));
        events.chain(mail).min().unwrap_or(u64::MAX) >= self.horizon
    }

    /// True if the run is stalled when its next event comes, in a run without mail. A window that only hands packets on
    /// to lanes is then not opened, because it would sample the series.
    fn stalls_before_an_event<P: Parts, G: DerefMut<Target = Group<P>>>(
        &self,
        setup: &Setup<'_>,
        groups: &[G],
    ) -> bool {
        let quantum = setup.window;
        let is_stalled =
            |now| is_stalled(setup, now / quantum * quantum, groups.iter().map(|group| group.liveness()));
        if unfinished(groups) == 0 || !is_stalled(self.latest_arrival()) {
            return false;
        }
        is_stalled(groups.iter().map(|group| group.next_event()).min().unwrap_or(u64::MAX))
    }

    /// A run with background traffic ends at the close of the full window in which the last foreground message
    /// finishes.
    pub(super) fn end_of_background(&self) -> Option<Time> {
        self.background.then_some(Time(self.boundary.min(self.horizon)))
    }

    fn progress<P: Parts, G: DerefMut<Target = Group<P>>>(&mut self, groups: &[G]) -> Progress {
        let hosts = || groups.iter().flat_map(|group| group.hosts());
        let finished = hosts().map(|h| h.finished).sum();
        let messages = *self.total.get_or_insert_with(|| finished + unfinished(groups));
        Progress {
            now: Time((self.number * self.length).min(self.horizon)),
            finished,
            messages,
            accepted: hosts().map(|h| h.data.accepted).sum(),
            hops: groups.iter().map(|group| group.hops()).sum(),
        }
    }
}

fn unfinished<P: Parts, G: DerefMut<Target = Group<P>>>(groups: &[G]) -> u64 {
    groups.iter().map(|group| group.unfinished()).sum()
}
