//! Series: what is counted in a run, looked at whenever a bin of time has ended.
//!
//! A bin is a whole number of windows, so no window lies in two bins, and what nodes have counted between two windows is
//! what happened before that instant, in every engine. When a track's bins are full, pairs of them are merged and
//! bins are twice as wide from then on.

use super::counts::{Arrivals, Sends};
use crate::outcome::{LinkBin, QpBin, Recording};
use crate::setup::Setup;
use model::plan::Plan;
use model::{NodeId, Time};
use std::collections::BTreeMap;

/// Bins of one thing.
#[derive(Debug)]
struct Track<C, B> {
    /// What had been counted when the last bin ended.
    before: C,
    /// What has been counted in the bin that ends.
    open: B,
    bins: Vec<B>,
}

impl<C: Default, B: Default> Track<C, B> {
    fn many(n: usize) -> Vec<Self> {
        (0..n).map(|_| Track { before: C::default(), open: B::default(), bins: Vec::new() }).collect()
    }
}

/// What a port has counted since the start of the run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Port {
    /// Frames, and their bytes, preambles and gaps not counted.
    pub(crate) frames: u64,
    pub(crate) bytes: u64,
    pub(crate) marks: u64,
    /// Lost on the link, or dropped before it.
    pub(crate) lost: u64,
    /// Times that it was paused.
    pub(crate) pauses: u64,
    /// Bytes of data that wait before it.
    pub(crate) waits: u64,
}

/// Makes series.
#[derive(Debug)]
pub(crate) struct Sampler {
    width: u64,
    limit: usize,
    /// Link time around a frame, bytes.
    gap: u64,
    /// Nothing is recorded over time.
    blind: bool,
    /// When the open bin ends; [`u64::MAX`] if it is none that time ends.
    due: u64,
    /// Bins that have ended.
    ended: usize,
    qps: Vec<Track<(Sends, Arrivals), QpBin>>,
    links: Vec<Track<Port, LinkBin>>,
    /// Bytes in use, by switch: at the end of the last bin, and at most.
    switches: Vec<Track<u64, u64>>,
    counters: BTreeMap<&'static str, Track<(), u64>>,
}

impl Sampler {
    pub(crate) fn new(setup: &Setup<'_>) -> Self {
        let (plan, fabric) = (&setup.plan.record, setup.fabric());
        let windows = plan.width.ps().div_ceil(setup.window).max(1);
        let width = windows.saturating_mul(setup.window);
        let switches = if plan.switches { fabric.nodes() - fabric.hosts() } else { 0 };
        Sampler {
            width,
            limit: plan.bins.max(2) & !1,
            gap: setup.plan.wire.gap.into(),
            blind: plan.is_blind(),
            due: if plan.is_blind() { u64::MAX } else { width },
            ended: 0,
            qps: Track::many(plan.qps.len()),
            links: Track::many(plan.links.len()),
            switches: Track::many(switches),
            counters: BTreeMap::new(),
        }
    }

    /// A bin has ended by `now`: everything must be looked at before anything else happens.
    #[inline]
    pub(crate) fn is_due(&self, now: u64) -> bool {
        now >= self.due
    }

    /// Nothing is recorded over time.
    pub(crate) fn is_blind(&self) -> bool {
        self.blind
    }

    pub(crate) fn sends(&mut self, track: u32, now: &Sends) {
        let Track { before: (before, _), open, .. } = &mut self.qps[track as usize];
        open.bytes = now.bytes - before.bytes;
        open.packets = now.packets - before.packets;
        open.retransmitted = now.retransmitted - before.retransmitted;
        open.nacks = now.nacks - before.nacks;
        open.cnps = now.cnps - before.cnps;
        open.timeouts = now.timeouts - before.timeouts;
        *before = *now;
    }

    pub(crate) fn arrivals(&mut self, track: u32, now: &mut Arrivals) {
        let Track { before: (_, before), open, .. } = &mut self.qps[track as usize];
        open.arrived = now.packets - before.packets;
        open.out_of_order = now.out_of_order - before.out_of_order;
        open.expected = now.expected;
        open.ahead = std::mem::take(&mut now.ahead);
        *before = *now;
    }

    /// A link; `queue` is the longest queue before it since it was looked at.
    pub(crate) fn link(&mut self, track: u32, now: Port, queue: u64) {
        let Track { before, open, .. } = &mut self.links[track as usize];
        let frames = now.frames - before.frames;
        *open = LinkBin {
            bytes: now.bytes - before.bytes + frames * self.gap,
            frames,
            marks: now.marks - before.marks,
            lost: now.lost - before.lost,
            pauses: now.pauses - before.pauses,
            max_queue: queue,
        };
        *before = now;
    }

    /// The buffer of a switch: the bytes in use, and the most since it was looked at.
    pub(crate) fn buffer(&mut self, switch: usize, now: u64, most: u64) {
        if let Some(track) = self.switches.get_mut(switch) {
            (track.before, track.open) = (now, most.max(now));
        }
    }

    /// Part of what is counted under a name.
    pub(crate) fn counter(&mut self, name: &'static str, value: u64) {
        let ended = self.ended;
        let new = || Track { before: (), open: 0, bins: vec![0; ended] };
        self.counters.entry(name).or_insert_with(new).open += value;
    }

    /// All has been looked at: closes the bins that have ended by `now`. Nothing has happened after the first of them.
    ///
    /// When the run is `over`, only timers that nobody needs any more are left, maybe for long: no bin gets wider for them.
    pub(crate) fn close(&mut self, now: u64, over: bool) {
        if over {
            self.step(false);
            self.due = u64::MAX;
        }
        let mut idle = false;
        while now >= self.due {
            self.step(idle);
            idle = true;
        }
        self.counters.values_mut().for_each(|track| track.open = 0);
    }

    /// All has been looked at, and the run has ended.
    pub(crate) fn finish(mut self, plan: &Plan, end: Time) -> Recording {
        let hosts = plan.fabric.hosts();
        if !self.is_blind() {
            self.last(end.ps());
        }
        Recording {
            width: Time(self.width),
            bins: self.ended,
            qps: plan.record.qps.iter().copied().zip(self.qps.into_iter().map(|t| t.bins)).collect(),
            links: plan.record.links.iter().copied().zip(self.links.into_iter().map(|t| t.bins)).collect(),
            switches: (hosts..)
                .map(|n| NodeId(n as u32))
                .zip(self.switches.into_iter().map(|t| t.bins))
                .collect(),
            counters: self.counters.into_iter().map(|(name, t)| (name, t.bins)).collect(),
        }
    }

    /// Closes the bins up to the one in which `end` lies, whole or not. It is the last: what timers that nobody needed did
    /// after the end is in it, too.
    fn last(&mut self, end: u64) {
        self.step(false);
        while end >= self.ended as u64 * self.width {
            self.step(true);
        }
        self.merge((end / self.width) as usize, usize::MAX);
    }

    fn step(&mut self, idle: bool) {
        self.push(idle);
        if self.ended == self.limit {
            self.widen();
        }
        self.due = (self.ended as u64 + 1).saturating_mul(self.width);
    }

    /// Closes a bin in which all that was looked at has happened, or nothing.
    fn push(&mut self, idle: bool) {
        for track in &mut self.qps {
            let quiet = QpBin { expected: track.open.expected, ..QpBin::default() };
            track.bins.push(if idle { quiet } else { track.open });
        }
        for track in &mut self.links {
            let quiet = LinkBin { max_queue: track.before.waits, ..LinkBin::default() };
            track.bins.push(if idle { quiet } else { track.open });
        }
        for track in &mut self.switches {
            track.bins.push(if idle { track.before } else { track.open });
        }
        for track in self.counters.values_mut() {
            track.bins.push(track.open);
        }
        self.ended += 1;
    }

    fn widen(&mut self) {
        self.merge(0, 2);
        self.width *= 2;
    }

    /// Makes one bin of every `size`, beginning with bin `first`.
    fn merge(&mut self, first: usize, size: usize) {
        fn tracks<C, B: Copy>(
            tracks: &mut [Track<C, B>],
            first: usize,
            size: usize,
            take_in: impl Fn(&mut B, &B),
        ) {
            for track in tracks {
                let later = track.bins.split_off(first.min(track.bins.len()));
                let merged = |some: &[B]| {
                    let (first, rest) = some.split_first()?;
                    let mut sum = *first;
                    rest.iter().for_each(|later| take_in(&mut sum, later));
                    Some(sum)
                };
                track.bins.extend(later.chunks(size).filter_map(merged));
            }
        }
        tracks(&mut self.qps, first, size, QpBin::merge);
        tracks(&mut self.links, first, size, LinkBin::merge);
        tracks(&mut self.switches, first, size, |most, later| *most = (*most).max(*later));
        for track in self.counters.values_mut() {
            tracks(std::slice::from_mut(track), first, size, |sum, later| *sum = *later); // what has been counted so far
        }
        self.ended = first + self.ended.saturating_sub(first).div_ceil(size);
    }
}
