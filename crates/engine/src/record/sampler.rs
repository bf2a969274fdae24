//! Series: counts of a run, sampled at the end of each bin of time.
//!
//! A bin is a whole number of windows, so no window lies in two bins. The counts between two windows include
//! everything before that instant, in every engine. When a track has as many bins as the plan allows, pairs of bins
//! are merged, and bins are twice as wide from then on.

use super::counts::{Arrivals, Sends};
use crate::buffer::BufferUse;
use crate::outcome::{LinkBin, QpBin, Recording};
use crate::setup::Setup;
use model::plan::Plan;
use model::{NodeId, Time};
use std::collections::BTreeMap;

/// The bins of a queue pair, link, switch or counter.
#[derive(Debug)]
struct Track<C, B> {
    /// Counts at the end of the last bin.
    before: C,
    /// Values of the bin that is being closed.
    open: B,
    bins: Vec<B>,
}

impl<C: Default, B: Default> Track<C, B> {
    fn many(n: usize) -> Vec<Self> {
        (0..n).map(|_| Track { before: C::default(), open: B::default(), bins: Vec::new() }).collect()
    }
}

/// Counts of a port since the start of the run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Port {
    /// Frames and their bytes; preambles and gaps excluded.
    pub(crate) frames: u64,
    pub(crate) bytes: u64,
    pub(crate) marks: u64,
    /// Packets lost on the link, or dropped before it.
    pub(crate) lost: u64,
    /// Pauses of the port.
    pub(crate) pauses: u64,
    /// Bytes of data in its queue.
    pub(crate) waits: u64,
}

/// Collects all series of a run.
#[derive(Debug)]
pub(crate) struct Sampler {
    width: u64,
    limit: usize,
    /// Preamble and gap around a frame, bytes.
    gap: u64,
    /// True if the run records no series.
    blind: bool,
    /// End of the open bin, ps; [`u64::MAX`] if time does not end it.
    due: u64,
    /// Number of bins closed.
    ended: usize,
    qps: Vec<Track<(Sends, Arrivals), QpBin>>,
    links: Vec<Track<Port, LinkBin>>,
    /// By switch: bytes in use at the end of the last bin, and most bytes in use.
    switches: Vec<Track<u64, u64>>,
    counters: BTreeMap<&'static str, Track<(), u64>>,
}

impl Sampler {
    pub(crate) fn new(setup: &Setup<'_>) -> Self {
        let (plan, fabric) = (&setup.plan.record, setup.fabric());
        let windows = plan.width.ps().div_ceil(setup.window).max(1);
        let width = windows.saturating_mul(setup.window);
        let switches = if plan.switches { fabric.switch_count() } else { 0 };
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

    /// True if a bin has ended by `now`; everything must then be sampled before anything else happens.
    #[inline]
    pub(crate) fn is_due(&self, now: u64) -> bool {
        now >= self.due
    }

    /// Memory of all bins, bytes.
    pub(crate) fn memory(&self) -> u64 {
        let rows = |tracks: usize, row: usize| tracks * self.ended * row;
        let all = rows(self.qps.len(), size_of::<QpBin>())
            + rows(self.links.len(), size_of::<LinkBin>())
            + rows(self.switches.len() + self.counters.len(), size_of::<u64>());
        all as u64
    }

    /// True if the run records no series.
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

    /// Samples a link; `queue` is its longest queue since the last sample.
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

    /// Samples a switch's buffer.
    pub(crate) fn buffer(&mut self, switch: usize, used: BufferUse) {
        if let Some(track) = self.switches.get_mut(switch) {
            (track.before, track.open) = (used.now, used.most.max(used.now));
        }
    }

    /// Adds one node's part of a counter.
    pub(crate) fn counter(&mut self, name: &'static str, value: u64) {
        let ended = self.ended;
        let new = || Track { before: (), open: 0, bins: vec![0; ended] };
        self.counters.entry(name).or_insert_with(new).open += value;
    }

    /// Closes the bins that have ended by `now`, after everything has been sampled. Only the first of them can have
    /// any events.
    ///
    /// When all foreground traffic is `over`, only unused timers remain, possibly for long: bins no longer widen
    /// for them.
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

    /// Ends all series after the last sample of the run.
    pub(crate) fn finish(mut self, plan: &Plan, end: Time) -> Recording {
        let hosts = plan.fabric.servers();
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

    /// Closes all bins up to the one that contains `end`. This last bin may be cut short, and it includes unused
    /// timers that fired after the end.
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

    /// Closes a bin: with the sampled values, or empty if it is `idle`.
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

    /// Merges every `size` bins into one, from bin `first` on.
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
            tracks(std::slice::from_mut(track), first, size, |sum, later| *sum = *later); // counters are cumulative
        }
        self.ended = first + self.ended.saturating_sub(first).div_ceil(size);
    }
}
