//! Packets that arrive after the next window: the link is long, or they left late in their window.

use super::lanes::{add_all, add_copy};
use crate::gentle::Gentle;
use model::{Annex, Parcel, PortIndex};
use std::collections::VecDeque;

/// Packets of a port that arrive after the span of its open lane, in order of arrival. Packets of further lanes are rare, so
/// they come last.
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct Far<A> {
    /// Packets of the next lane, with their times on it.
    soon: Vec<Parcel<A>>,
    /// Start of the times on the next lane, ps.
    from: u64,
    /// Packets of further lanes, with their times of arrival, ps.
    later: VecDeque<(u64, Parcel<A>)>,
}

impl<A: Annex> Far<A> {
    pub(super) const fn new() -> Self {
        Far { soon: Vec::new(), from: 0, later: VecDeque::new() }
    }

    /// True if there are packets of the next lane.
    #[inline(always)]
    pub(super) fn has_soon(&self) -> bool {
        !self.soon.is_empty()
    }

    /// True if there are packets of further lanes.
    #[inline(always)]
    pub(super) fn has_later(&self) -> bool {
        !self.later.is_empty()
    }

    /// Time at which the first packet arrives, ps.
    pub(super) fn first(&self) -> Option<u64> {
        match self.soon.first() {
            Some(pkt) => Some(self.from + u64::from(pkt.offset())),
            None => self.later.front().map(|(at, _)| *at),
        }
    }

    /// All packets.
    pub(super) fn packets(&self) -> impl Iterator<Item = &Parcel<A>> {
        self.soon.iter().chain(self.later.iter().map(|(_, pkt)| pkt))
    }

    /// Memory of the buffers, bytes.
    pub(super) fn memory(&self) -> u64 {
        let later = self.later.capacity() * size_of::<(u64, Parcel<A>)>();
        (self.soon.capacity() * size_of::<Parcel<A>>() + later) as u64
    }

    /// Adds a packet of the next lane. It arrives there at `offset`, by the far end's port `peer`. The times on this lane start
    /// at `from`.
    #[inline(always)]
    pub(super) fn add_soon(&mut self, from: u64, offset: u64, peer: PortIndex, pkt: &Parcel<A>) {
        self.from = from;
        // Mostly one packet of a window.
        add_copy(&mut self.soon, pkt, pkt.label.arriving(offset as u32, peer), 2);
    }

    /// Adds a packet of another lane, which arrives at `at`, ps.
    pub(super) fn add_later(&mut self, at: u64, pkt: &Parcel<A>) {
        self.later.make_room();
        self.later.push_back((at, *pkt));
    }

    /// True if there are packets of the lane whose times start at `from`.
    #[inline(always)]
    pub(super) fn is_due(&self, from: u64) -> bool {
        self.has_soon() && self.from == from
    }

    /// True if the first packet of further lanes arrives before `end`, ps.
    pub(super) fn is_near(&self, end: u64) -> bool {
        self.later.front().is_some_and(|(at, _)| *at < end)
    }

    /// Moves all packets of the lane whose times start at `from` there. The lane grows by `unit` packets.
    #[inline(always)]
    pub(super) fn bring(&mut self, lane: &mut Vec<Parcel<A>>, unit: u32) {
        add_all(lane, &self.soon, unit);
        self.soon.clear();
    }

    /// Moves all packets before `end` to their lane, whose times start at `from`. They arrive by the far end's port `peer`.
    pub(super) fn bring_later(
        &mut self,
        lane: &mut Vec<Parcel<A>>,
        (from, end): (u64, u64),
        peer: PortIndex,
        unit: u32,
    ) {
        while let Some((at, pkt)) = self.later.front()
            && *at < end
        {
            add_copy(lane, pkt, pkt.label.arriving((at - from) as u32, peer), unit);
            self.later.pop_front();
        }
    }
}
