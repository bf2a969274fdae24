//! Lanes: the links that exchanges of the same ranks use, and who else uses them.

use super::{Director, Exchange, Series};
use crate::series::Class;
use finding::Finding;
use std::rc::Rc;

/// An exchange that met what was left out for more than this part of its time is no audit. Our choice.
const MOST_ABSENT: u64 = 8;

impl Director<'_> {
    /// Learns the links of a lane, and what its exchanges are like.
    pub(super) fn learn(
        &mut self,
        x: u32,
        cell: u32,
        (series, lane): (u32, u32),
        alike: u32,
    ) -> Result<(), Finding> {
        let pairs = self.outlined.pairs(x, cell)?;
        let (links, shapes) = self.footprints.of(&pairs);
        let packets = pairs.iter().map(|&(_, _, bytes, times)| self.plan.wire.packets(bytes) * times).sum();
        self.widen(lane, &links);
        self.lanes[lane as usize].series.push(series);
        let next = self.classes.len() as u32;
        let class = *self.solo.entry((alike, shapes)).or_insert(next);
        if class == next {
            self.classes.push(Class::default());
        }
        self.series[series as usize] = Series { class, packets, known: true, ..Series::default() };
        Ok(())
    }

    /// Adds links to those of a lane, which may be busy: its exchanges need not use the same ones.
    fn widen(&mut self, lane: u32, links: &[u32]) {
        let state = &mut self.lanes[lane as usize];
        let known = Rc::clone(&state.links);
        let new: Vec<u32> = links.iter().copied().filter(|link| known.binary_search(link).is_err()).collect();
        let mut all: Vec<u32> = known.iter().chain(&new).copied().collect();
        all.sort_unstable();
        state.links = all.into();
        if state.busy > 0 {
            self.occupy_links(lane, &new);
        }
    }

    fn occupy_links(&mut self, lane: u32, links: &[u32]) {
        for &link in links {
            let (busy, last) = &mut self.links[link as usize];
            (*busy, *last) = (*busy + 1, lane);
        }
    }

    /// Notes which other lanes have exchanges under way on the links of a lane.
    pub(super) fn touch(&mut self, lane: u32) {
        let links = Rc::clone(&self.lanes[lane as usize].links);
        let mut met: Vec<u32> = links
            .iter()
            .map(|&link| self.links[link as usize])
            .filter(|&(busy, last)| busy > 0 && last != lane)
            .map(|(_, last)| last)
            .collect();
        met.sort_unstable();
        met.dedup();
        for other in met {
            for (one, two) in [(lane, other), (other, lane)] {
                let state = &mut self.lanes[one as usize];
                state.touched = true;
                if let Err(place) = state.others.binary_search(&two) {
                    state.others.insert(place, two);
                }
            }
        }
    }

    pub(super) fn occupies(&mut self, lane: u32) {
        let state = &mut self.lanes[lane as usize];
        state.busy += 1;
        if state.busy == 1 {
            let links = Rc::clone(&state.links);
            self.occupy_links(lane, &links);
        }
    }

    pub(super) fn frees(&mut self, lane: u32) {
        let state = &mut self.lanes[lane as usize];
        state.busy -= 1;
        if state.busy == 0 {
            let links = Rc::clone(&state.links);
            links.iter().for_each(|&link| self.links[link as usize].0 -= 1);
        }
    }

    pub(super) fn lane_of(&self, exchange: &Exchange) -> u32 {
        self.outlined.exchanges()[exchange.number as usize].lane * self.cells + exchange.cell
    }

    /// Whether the exchanges of other lanes on the same links were sent, too, during a span.
    pub(super) fn is_clean(&self, lane: u32, span: (u64, u64)) -> bool {
        let most = (span.1 - span.0) / MOST_ABSENT;
        self.lanes[lane as usize].others.iter().all(|&other| {
            let absent = self.lanes[other as usize].absent;
            absent.1.min(span.1).saturating_sub(absent.0.max(span.0)) <= most
        })
    }

    /// Error of an exchange that is sent while exchanges of other lanes on its links are left out, ps.
    pub(super) fn missed(&self, lane: u32, series: u32) -> f64 {
        let meets = |&other: &u32| self.lanes[other as usize].left_out > 0;
        let record = &self.classes[self.series[series as usize].class as usize].record;
        match record {
            Some(record) if self.lanes[lane as usize].others.iter().any(meets) => {
                record.duration() as f64 / MOST_ABSENT as f64
            }
            _ => 0.0,
        }
    }

    /// Lets a lane and those that it meets send their next two rounds.
    pub(super) fn hold(&mut self, series: u32, lane: u32) {
        let others = self.lanes[lane as usize].others.iter();
        let theirs = others.flat_map(|&other| &self.lanes[other as usize].series);
        for &series in theirs.chain([&series]) {
            let state = &mut self.series[series as usize];
            state.hold = state.rounds + 2;
        }
    }
}
