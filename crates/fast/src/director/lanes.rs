//! Lanes: the links that exchanges of the same ranks use, and who else uses them.

use super::{Director, Exchange, Learned, NONE, Series};
use crate::footprint::Shape;
use crate::memo;
use crate::series::Class;
use finding::Finding;
use scenario::outlined::{Nature, Outline};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::rc::Rc;

/// An exchange that met what was left out for more than this part of its time is no audit. Our choice.
const MOST_ABSENT: u64 = 8;

impl Director<'_> {
    /// Learns the links of all lanes, and what their exchanges are like.
    pub(super) fn learn(&mut self) -> Result<(), Finding> {
        let mut shapes: BTreeMap<Vec<Shape>, u32> = BTreeMap::new();
        let mut loads: BTreeMap<(u32, u32), u32> = BTreeMap::new();
        let mut between = Vec::new();
        let tracks = self.outlined.exchanges().iter().map(|x| x.track + 1).max().unwrap_or(0);
        self.learned = vec![Learned::default(); (tracks * self.cells) as usize];
        let mut seen = vec![false; tracks as usize];
        for x in 0..self.outlined.exchanges().len() as u32 {
            let Outline { nature, lane, track, alike, spans, .. } = self.outlined.exchanges()[x as usize];
            if nature == Nature::Gated || std::mem::replace(&mut seen[track as usize], true) {
                continue;
            }
            for cell in 0..if spans { 1 } else { self.cells } {
                let messages = self.outlined.messages(x, cell)?;
                let packets =
                    messages.iter().map(|&(_, bytes, times)| self.plan.wire.packets(bytes) * times).sum();
                let footprint = self.footprints.of(&messages);
                let next = shapes.len() as u32;
                let shape = *shapes.entry(footprint.shapes).or_insert(next);
                let (place, lane) = (track * self.cells + cell, lane * self.cells + cell);
                self.learned[place as usize] = Learned { packets, shape, load: 0 };
                let links = &mut self.lanes[lane as usize].links;
                let all: BTreeSet<u32> = links.iter().chain(&footprint.links).copied().collect();
                *links = all.into_iter().collect();
                footprint.between.iter().for_each(|&link| *loads.entry((alike, link)).or_default() += 1);
                between.push((place, alike, footprint.between));
            }
        }
        for (place, alike, links) in between {
            let load = links.iter().map(|&link| loads[&(alike, link)]).max().unwrap_or(0);
            self.learned[place as usize].load = load;
        }
        let mut shapes: Vec<(Vec<Shape>, u32)> = shapes.into_iter().collect();
        shapes.sort_by_key(|(_, number)| *number);
        self.shapes = shapes.into_iter().map(|(shape, _)| shape).collect();
        Ok(())
    }

    /// Prepares a series for its next exchange, which is `x`. Returns its round.
    pub(super) fn next_round(
        &mut self,
        (series, lane): (u32, u32),
        (x, in_a_row): (u32, u32),
        learned: Learned,
    ) -> Result<u32, Finding> {
        if !self.series[series as usize].known {
            let next = self.classes.len() as u32;
            let alike = 2 * self.outlined.exchanges()[x as usize].alike + in_a_row;
            let class = *self.shared.entry((alike, learned.shape, learned.load)).or_insert(next);
            if class == next {
                let (class, file) = self.remember(x, in_a_row, learned)?;
                self.books.remembered += u64::from(class.before > 0);
                self.files.extend(file.map(|file| (next, file)));
                self.classes.push(class);
            }
            self.lanes[lane as usize].series.push(series);
            self.series[series as usize] = Series { class, own: NONE, known: true, ..Series::default() };
        }
        let contended = learned.load > 1 || self.lanes[lane as usize].touched;
        let state = &mut self.series[series as usize];
        if state.own == NONE && contended {
            (state.own, state.before_own) = (self.classes.len() as u32, state.rounds);
            self.classes.push(Class::default());
            self.classes[state.class as usize].contend();
        }
        state.rounds += 1;
        let class = &mut self.classes[state.class as usize];
        class.rounds = class.rounds.max(state.rounds);
        Ok(state.rounds)
    }

    /// The class of an exchange as the memo knows it, and its file. Exchanges that may share links with their like have none.
    fn remember(&self, x: u32, in_a_row: u32, learned: Learned) -> Result<(Class, Option<PathBuf>), Finding> {
        let Some(memo) = self.memo.filter(|_| learned.packets > 0 && learned.load <= 1) else {
            return Ok((Class::default(), None));
        };
        let Some(content) = self.outlined.content(x) else { return Ok((Class::default(), None)) };
        let outline = &self.outlined.exchanges()[x as usize];
        let cells = if outline.spans { self.cells } else { 1 };
        let shape = &self.shapes[learned.shape as usize];
        let file = memo.file(&format!("{content} {in_a_row} {cells} {shape:?}"));
        let kept = memo::read(&file)?
            .filter(|kept| kept.fits((outline.members * cells) as usize, (outline.leaves * cells) as usize));
        Ok((kept.map_or_else(Class::default, Class::of), Some(file)))
    }

    /// Writes what is known to the memo.
    pub(crate) fn keep(&self) -> Result<(), Finding> {
        for (class, file) in &self.files {
            if let Some(kept) = self.classes[*class as usize].kept() {
                memo::write(file, &kept)?;
            }
        }
        Ok(())
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

    pub(super) fn learned_of(&self, exchange: &Exchange) -> Learned {
        let track = self.outlined.exchanges()[exchange.number as usize].track;
        self.learned[(track * self.cells + exchange.cell) as usize]
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
        if !self.lanes[lane as usize].others.iter().any(meets) {
            return 0.0;
        }
        match record {
            Some(record) => record.duration() as f64 / MOST_ABSENT as f64,
            None if self.memo.is_none() => 0.0,
            // It is the first of its kind, and what a memo left out might have delayed it to its end.
            None => {
                let others = self.lanes[lane as usize].others.iter().filter(|other| meets(other));
                let classes = others.flat_map(|&other| &self.lanes[other as usize].series);
                let records = classes.filter_map(|&series| {
                    self.classes[self.series[series as usize].class as usize].record.as_ref()
                });
                records.map(|record| record.duration()).max().unwrap_or(0) as f64
            }
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
