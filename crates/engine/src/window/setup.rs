//! The window engine's own set-up: the constants of the run, and what only windows need.

use super::line::cost;
use super::tie::Tie;
use crate::setup;
use model::Plan;
use model::draw::{Key, Purpose};
use std::ops::{Deref, DerefMut};

/// Constants of a run for the window engine.
pub(super) struct Setup<'a> {
    run: setup::Setup<'a>,
    /// Transmission times as differences of departure keys, see [`cost`], by row of a rate and frame size.
    costs: Vec<u64>,
    /// Bytes of the largest frame.
    pub(super) largest_frame: u32,
    /// Longest transmission time of any frame, ps.
    pub(super) longest_time: u64,
    /// More packets than any port sends in two windows: frames of one byte at the highest rate.
    pub(super) most_departures: usize,
    /// Key of every node for the order of simultaneous arrivals.
    ties: Vec<u64>,
}

impl<'a> Setup<'a> {
    pub(super) fn new(plan: &'a Plan) -> Self {
        let run = setup::Setup::new(plan);
        let key = |node| Key::new(plan.seed, Purpose::Tie, node as u64).salt();
        let shortest = run.rows().map(|row| u64::from(row[1])).min().unwrap_or(1).max(1);
        let costs =
            |row: &[u32]| (0..).zip(row).map(|(frame, time)| cost((*time).into(), frame)).collect::<Vec<_>>();
        Setup {
            costs: run.rows().flat_map(costs).collect(),
            largest_frame: plan.wire.max_frame().max(plan.wire.ack).max(plan.wire.cnp),
            longest_time: run.rows().flatten().copied().max().unwrap_or(0).into(),
            most_departures: (2 * run.window / shortest + 2) as usize,
            ties: (0..plan.fabric.nodes()).map(key).collect(),
            run,
        }
    }

    /// Transmission times at the rate of `row` as differences of keys, by frame size.
    #[inline(always)]
    pub(super) fn costs(&self, row: u32) -> &[u64] {
        &self.costs[row as usize..]
    }

    /// The order of packets that reach `node` at the same time, in a window that opened at `opened`.
    #[inline]
    pub(super) fn tie(&self, node: u32, opened: u64) -> Tie {
        Tie::new(self.ties[node as usize], self.by_run(opened))
    }
}

impl<'a> Deref for Setup<'a> {
    type Target = setup::Setup<'a>;

    #[inline(always)]
    fn deref(&self) -> &Self::Target {
        &self.run
    }
}

impl DerefMut for Setup<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.run
    }
}
