//! Lanes: the links that exchanges of the same ranks use, and who else uses them.

use super::Director;
use super::state::{Exchange, Learned, NONE, Series};
use crate::footprint::Shape;
use crate::memo;
use crate::series::Class;
use finding::Finding;
use scenario::outlined::{Nature, Outline};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::rc::Rc;

/// An exchange that met others for more than this part of its time is not one that meets none, and no audit if they were left out. Lanes of
/// more than so many times its packets are not sent for its sake. Our choice.
pub(super) const MOST: u64 = 8;

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
        let state = &mut self.series[series as usize];
        if state.own == NONE && (learned.load > 1 || state.met) {
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

    /// Notes which other lanes have exchanges under way on the links of a lane, where one of so many packets begins.
    pub(super) fn touch(&mut self, lane: u32, packets: u64) {
        let state = &mut self.lanes[lane as usize];
        state.packets = if state.busy > 0 { state.packets.max(packets) } else { packets };
        let links = Rc::clone(&state.links);
        let under_way = links.iter().flat_map(|&link| &self.links[link as usize].lanes);
        let met: BTreeSet<u32> = under_way.copied().filter(|&other| other != lane).collect();
        for other in met {
            for (one, two) in [(lane, other), (other, lane)] {
                let others = &mut self.lanes[one as usize].others;
                if let Err(place) = others.binary_search(&two) {
                    others.insert(place, two);
                }
            }
        }
    }

    /// Lets exchanges of a lane begin or end: how many are under way, and how many of them are left out.
    pub(super) fn occupy_links(&mut self, lane: u32, (busy, left_out): (u32, u32)) {
        let (now, state) = (self.now, &mut self.lanes[lane as usize]);
        let was = (state.busy > 0, state.left_out > 0);
        self.over_nics = self.over_nics + busy - state.busy;
        (state.busy, state.left_out) = (busy, left_out);
        let is = (busy > 0, left_out > 0);
        if was == is {
            return;
        }
        state.absent.set(u32::from(is.1), now);
        let links = Rc::clone(&state.links);
        for &link in links.iter() {
            let usage = &mut self.links[link as usize];
            if is.0 && !was.0 {
                usage.lanes.push(lane);
            } else if was.0 && !is.0 {
                usage.lanes.retain(|&other| other != lane);
            }
            usage.used.set(usage.lanes.len() as u32, now);
            let absent = usage.absent.users + u32::from(is.1) - u32::from(was.1);
            usage.absent.set(absent, now);
        }
    }

    /// What the meters of a lane's links say.
    pub(super) fn meters(&self, lane: u32) -> Box<[(u64, u64)]> {
        let of = |&link: &u32| {
            let usage = &self.links[link as usize];
            (usage.used.at(self.now), usage.absent.at(self.now))
        };
        self.lanes[lane as usize].links.iter().map(of).collect()
    }

    /// For how long exchanges of other lanes have used the links of one, since it began: the longest time of a link, summed over these
    /// lanes, and that of those that were left out, ps.
    pub(super) fn met(&self, exchange: &Exchange) -> (u64, u64) {
        let lane = &self.lanes[self.lane_of(exchange) as usize];
        let (span, absent) = (self.now - exchange.opened, lane.absent.at(self.now) - exchange.absent);
        let mut most = (0, 0);
        for (&link, before) in lane.links.iter().zip(&exchange.meters) {
            let usage = &self.links[link as usize];
            let (used, left_out) = (usage.used.at(self.now) - before.0, usage.absent.at(self.now) - before.1);
            most = (most.0.max(used.saturating_sub(span)), most.1.max(left_out.saturating_sub(absent)));
        }
        most
    }

    pub(super) fn lane_of(&self, exchange: &Exchange) -> u32 {
        self.outlined.exchanges()[exchange.number as usize].lane * self.cells + exchange.cell
    }

    pub(super) fn learned_of(&self, exchange: &Exchange) -> Learned {
        let track = self.outlined.exchanges()[exchange.number as usize].track;
        self.learned[(track * self.cells + exchange.cell) as usize]
    }

    /// Lets a lane and those that it meets send their next two rounds. Lanes of much larger exchanges are not sent for its sake.
    pub(super) fn hold(&mut self, series: u32, lane: u32) {
        let state = &self.lanes[lane as usize];
        let others = state.others.iter().map(|&other| &self.lanes[other as usize]);
        let theirs =
            others.filter(|other| other.packets / MOST <= state.packets).flat_map(|other| &other.series);
        for &series in theirs.chain([&series]) {
            let state = &mut self.series[series as usize];
            state.hold = state.rounds + 2;
        }
    }
}
