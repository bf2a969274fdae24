//! Schedules: the steps of a collective, without times and without a fabric.

use std::ops::Range;

/// What a step of a schedule waits for. The event happens at the step's own rank, or for a step over the NVSwitch in its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum After {
    /// The bytes of that step have arrived here.
    Arrived(u32),
    /// The bytes of that step have left here, and are acknowledged.
    Sent(u32),
    /// That member of the same server has entered the collective.
    Entered(u32),
}

/// The way of the bytes of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    /// From `from` to `to`, which adds them to its own.
    Reduce,
    /// From `from` to `to`, which keeps them.
    Copy,
    /// Over the NVSwitch of the server of `from`, which equals `to`: all bytes leave it, and the switch returns their sums.
    Switch,
    /// As `Switch`, but the switch returns the sums of `data` alone.
    SwitchReduce,
    /// As `Switch`, but only `data` leaves, and the switch returns all bytes.
    SwitchCopy,
}

/// A step: bytes that move from one member to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The member that sends.
    pub from: u32,
    /// The member that receives.
    pub to: u32,
    /// The bytes of the buffer that move.
    pub data: Range<u64>,
    /// Further bytes of the buffer that move with them.
    pub more: Vec<Range<u64>>,
    /// The channel whose connections carry it.
    pub channel: u32,
    /// What moves them, and what the receiver does with them.
    pub way: Way,
    /// A step that waits for nothing waits for `from` to enter.
    pub after: Vec<After>,
}

impl Step {
    /// All ranges of bytes that move.
    pub fn ranges(&self) -> impl Iterator<Item = &Range<u64>> {
        std::iter::once(&self.data).chain(&self.more)
    }

    /// Whether the NVSwitch moves the bytes.
    pub fn over_switch(&self) -> bool {
        matches!(self.way, Way::Switch | Way::SwitchReduce | Way::SwitchCopy)
    }

    /// Number of bytes that move.
    pub fn bytes(&self) -> u64 {
        self.ranges().map(|range| range.end - range.start).sum()
    }
}

/// The steps of a collective, and when its members leave it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// The steps; each waits for earlier ones only.
    pub steps: Vec<Step>,
    /// What each member waits for before it leaves.
    pub leave: Vec<Vec<After>>,
}

/// Builds a schedule.
#[derive(Debug)]
pub struct Builder(Schedule);

impl Builder {
    /// An empty schedule of so many members.
    pub fn new(members: u32) -> Self {
        Builder(Schedule { steps: Vec::new(), leave: vec![Vec::new(); members as usize] })
    }

    /// Adds a step that moves one range of bytes; returns its number.
    pub fn step(
        &mut self,
        (from, to): (u32, u32),
        data: Range<u64>,
        way: Way,
        channel: u32,
        after: Vec<After>,
    ) -> u32 {
        self.push(Step { from, to, data, more: Vec::new(), channel, way, after })
    }

    /// Adds a step; returns its number.
    pub fn push(&mut self, step: Step) -> u32 {
        self.0.steps.push(step);
        self.0.steps.len() as u32 - 1
    }

    /// Lets a member leave only after this event.
    pub fn leave(&mut self, member: u32, after: After) {
        self.0.leave[member as usize].push(after);
    }

    /// The schedule.
    pub fn done(self) -> Schedule {
        self.0
    }
}
