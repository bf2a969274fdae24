//! Exchanges from the entry of their first member to the exit of the last: sent, replayed by a record, or led by another one.

use super::lanes::MOST;
use super::leap::During;
use super::state::{Exchange, Mode, NEVER, NONE};
use super::{Director, Kind, Who, order};
use crate::series::{Class, Error, Leader, NOBODY, Record};
use finding::Finding;
use model::plan::SliceTimes;
use scenario::outlined::{Cause, Nature};
use std::rc::Rc;

/// Error of an exchange that follows another one, as a share of the time between them. Our choice: isomorphic rails differed by 0.013 %.
const MIRROR: f64 = 0.001;

/// Duration that an exchange under way has at least, ps. Our choice: 1 us.
const RHYTHM_LEAST: u64 = 1_000_000;

impl Director<'_> {
    /// A member of a cell enters an exchange.
    pub(super) fn enter(&mut self, x: u32, member: u32, cell: u32, error: f64) -> Result<(), Finding> {
        let exchange = &self.outlined.exchanges()[x as usize];
        let (nature, members) = (exchange.nature, exchange.members);
        self.told.entered(x, member, cell, self.now);
        let (at_cell, member) = if exchange.spans { (0, cell * members + member) } else { (cell, member) };
        let place = x as usize * self.cells as usize + at_cell as usize;
        if nature == Nature::Gated {
            self.under_way[place] -= 1;
            if self.under_way[place] == 0 {
                self.through_the_gate(x, cell, error);
            }
            return Ok(());
        }
        if self.under_way[place] == NONE {
            self.open(x, at_cell, error)?;
        }
        let (slot, now) = (self.under_way[place], self.now);
        let Some(exchange) = self.exchanges[slot as usize].as_deref_mut() else { return Ok(()) };
        exchange.entries[member as usize] = now;
        exchange.entered += 1;
        exchange.error = exchange.error.max(error);
        if self.enters_again(slot, member) {
            return Ok(());
        }
        let Some(exchange) = self.exchanges[slot as usize].as_deref_mut() else { return Ok(()) };
        let all = exchange.entered as usize == exchange.entries.len();
        match &exchange.mode {
            Mode::Sent(sent) => {
                let t = sent.laid.enter[member as usize];
                self.inner_ready(slot, t);
                if all {
                    self.entered_all(slot);
                }
            }
            _ if all => self.entered_all(slot),
            _ => {}
        }
        Ok(())
    }

    /// All members of a gated collective have entered.
    pub(super) fn through_the_gate(&mut self, x: u32, cell: u32, error: f64) {
        let members = self.outlined.exchanges()[x as usize].members;
        for member in 0..members {
            let (times, out, _) = self.slice_of(x, member, cell);
            let (left, error) = self.occupy(out, self.now, times.out, error);
            let who = Who::Slice(x, member, cell);
            self.push(left + times.delay.ps(), Kind::Enter, order(2 * x + 1, member), who, error);
        }
    }

    /// Times of a member's slice, and the streams by which it leaves and enters.
    pub(super) fn slice_of(&self, x: u32, member: u32, cell: u32) -> (SliceTimes, usize, usize) {
        let rank = self.outlined.first_ranks(x)[member as usize] + cell * self.stride;
        let (times, out, into) = self.outlined.slice(&self.outlined.exchanges()[x as usize], member, rank);
        let node = self.outlined.node(rank);
        (times, self.stream(node, out), self.stream(node, into))
    }

    /// Opens an exchange, whose first member comes with an error: it is sent or left out.
    pub(super) fn open(&mut self, x: u32, cell: u32, error: f64) -> Result<(), Finding> {
        let outline = self.outlined.exchanges()[x as usize].clone();
        let lane = outline.lane * self.cells + cell;
        let in_a_row = u32::from(self.lanes[lane as usize].busy > 0);
        let place = outline.track * self.cells + cell;
        let (series, learned) = (2 * place + in_a_row, self.learned[place as usize]);
        let over_nics = learned.packets > 0;
        let members = outline.members * if outline.spans { self.cells } else { 1 };
        if over_nics {
            self.touch(lane, learned.packets);
        }
        let repeats = matches!(outline.nature, Nature::Transfer | Nature::Collective { coupled: true });
        let round = self.next_round((series, lane), (x, in_a_row), learned)?;
        let mut mode = match self.tolerance {
            Some(tolerance) if repeats && over_nics && self.leap.is_none() => {
                self.choose((series, lane), round, error, tolerance)
            }
            _ => None,
        };
        if mode.is_some() && in_a_row == 1 && self.series[series as usize].own != NONE {
            // Lanes that meet leave out nothing one by one.
            mode = mode.filter(|_| self.leap(lane, error) != Some(false));
        }
        if over_nics && self.leap.is_some() {
            match self.during_leap(lane, place) {
                During::LeftOut(record) => mode = Some(record),
                During::Sent => mode = None,
                During::TakesOver(slot) => {
                    self.count(series, learned.packets, true);
                    self.take_over(slot, (x, series), lane);
                    return Ok(());
                }
            }
        }
        if over_nics {
            self.count(series, learned.packets, mode.is_some());
        }
        let leads = over_nics && repeats && mode.is_none() && self.tolerance.is_some();
        let mode = match mode {
            Some(mode) => mode,
            None => Mode::Sent(Box::new(self.lay(x, cell, round, series)?)),
        };
        let follows = match mode {
            Mode::Follows(leader) => Some(leader),
            _ => None,
        };
        let left_out = over_nics && !matches!(mode, Mode::Sent(_));
        let meters = if over_nics { self.meters(lane) } else { Box::default() };
        let leaves = outline.leaves * if outline.spans { self.cells } else { 1 };
        let exchange = Exchange {
            number: x,
            cell,
            mode,
            series,
            entries: vec![NEVER; members as usize],
            entered: 0,
            left: vec![NEVER; leaves as usize],
            gone: 0,
            error: 0.0,
            followers: Vec::new(),
            opened: self.now,
            meters,
            absent: self.lanes[lane as usize].absent.at(self.now),
            start: None,
            taken_over: None,
        };
        let slot = self.place_exchange(exchange);
        self.under_way[x as usize * self.cells as usize + cell as usize] = slot;
        if leads {
            self.classes[self.series[series as usize].class as usize].lead(round, lane, slot);
        }
        if let Some(leader) = follows.and_then(|leader| self.exchanges[leader as usize].as_deref_mut()) {
            leader.followers.push(slot);
        }
        if over_nics {
            let state = &self.lanes[lane as usize];
            self.occupy_links(lane, (state.busy + 1, state.left_out + u32::from(left_out)));
        }
        Ok(())
    }

    /// Counts an exchange over NICs in the books.
    fn count(&mut self, series: u32, packets: u64, left_out: bool) {
        let class = &mut self.classes[self.series[series as usize].class as usize];
        self.books.exchanges.0 += 1;
        if left_out {
            self.books.left_out += packets;
            class.left_out += 1;
        } else {
            self.books.sent += packets;
            self.books.exchanges.1 += 1;
            class.sent += 1;
        }
    }

    /// Puts an exchange into a free slot.
    pub(super) fn place_exchange(&mut self, exchange: Exchange) -> u32 {
        let slot = self.unused.pop().unwrap_or_else(|| {
            self.exchanges.push(None);
            self.exchanges.len() as u32 - 1
        });
        self.exchanges[slot as usize] = Some(Box::new(exchange));
        slot
    }

    /// Its place among exchanges and cells.
    pub(super) fn place_of(&self, exchange: &Exchange) -> usize {
        exchange.number as usize * self.cells as usize + exchange.cell as usize
    }

    /// How an exchange that repeats is done; `None` if it is sent.
    fn choose(&self, (series, lane): (u32, u32), round: u32, error: f64, tolerance: f64) -> Option<Mode> {
        let state = &self.series[series as usize];
        let (class, held) = (&self.classes[state.class as usize], round <= state.hold);
        let replay = |class: &Class| -> Option<Mode> {
            let may = class.may_leave_out(self.now, error, tolerance);
            let record = class.record.as_ref().filter(|_| may)?;
            Some(Mode::Replayed(Rc::clone(record), class.error(tolerance)))
        };
        let audit = class.audits(round) || held;
        let leader = class.leaders.get(&round).filter(|(lane, _)| *lane != NOBODY || !audit);
        if state.own == NONE {
            return match leader {
                Some((NOBODY, Leader::Ended(record))) => {
                    let may = class.may_leave_out(self.now, error, tolerance);
                    may.then(|| Mode::Replayed(Rc::clone(record), class.error(tolerance)))
                }
                Some((_, Leader::Ended(record))) => {
                    Some(Mode::Replayed(Rc::clone(record), class.mirrored(record, tolerance)))
                }
                Some((_, Leader::UnderWay(leader))) => Some(Mode::Follows(*leader)),
                None if audit => None,
                None => replay(class),
            };
        }
        let own = &self.classes[state.own as usize];
        if held || own.audits(round - state.before_own) && own.may_leave_out(self.now, error, tolerance) {
            return None;
        }
        // An audit of the class of all lanes is sent together with those that it meets.
        let leads = match leader {
            None => class.audits(round),
            Some((first, _)) => {
                *first == lane || self.lanes[lane as usize].others.binary_search(first).is_ok()
            }
        };
        replay(own).or_else(|| replay(class).filter(|_| !leads))
    }

    /// All members have entered.
    pub(super) fn entered_all(&mut self, slot: u32) {
        let Some(exchange) = self.exchanges[slot as usize].as_deref_mut() else { return };
        match &exchange.mode {
            Mode::Sent(_) => {
                exchange.start = exchange.entries.iter().min().copied();
                let followers = exchange.followers.clone();
                followers.into_iter().for_each(|follower| self.follow(follower));
            }
            Mode::Replayed(record, error) => {
                let (record, error) = (Rc::clone(record), *error);
                self.replay(slot, &record, error);
            }
            Mode::Follows(_) => self.follow(slot),
        }
    }

    /// Lets the members of an exchange leave when a record says.
    pub(super) fn replay(&mut self, slot: u32, record: &Record, error: Error) {
        let Some(exchange) = self.exchanges[slot as usize].as_deref_mut() else { return };
        let fitted = record.fit(&exchange.entries);
        exchange.start = Some(fitted.start);
        exchange.error += error.each + self.series[exchange.series as usize].late(fitted) as f64;
        self.books.apart = self.books.apart.max(error.once);
        // Some members of an exchange that a leap leaves out have left it.
        let all = (0..).zip(exchange.left.iter().zip(&record.left));
        let to_come: Vec<(u32, u64)> =
            all.filter(|(_, (left, _))| **left == NEVER).map(|(n, (_, &after))| (n, after)).collect();
        for (n, after) in to_come {
            self.mirror(slot, n, after);
        }
    }

    /// Lets the members of an exchange leave that have left the one that it follows.
    pub(super) fn follow(&mut self, slot: u32) {
        let Some(exchange) = self.exchanges[slot as usize].as_deref() else { return };
        let Mode::Follows(leader) = exchange.mode else { return };
        if exchange.entered as usize != exchange.entries.len() || exchange.start.is_some() {
            return;
        }
        let Some(first) = self.exchanges[leader as usize].as_deref() else { return };
        let Some(begin) = first.start else { return };
        // The leader's members have all entered, and perhaps not left.
        let known = Record {
            entries: first.entries.iter().map(|entry| entry - begin).collect(),
            left: vec![first.entries.iter().max().map_or(0, |last| 2 * (last - begin)) + RHYTHM_LEAST],
        };
        let fitted = known.fit(&exchange.entries);
        let left: Vec<(u32, u64)> = (0..).zip(&first.left).map(|(n, &left)| (n, left)).collect();
        if let Some(exchange) = self.exchanges[slot as usize].as_deref_mut() {
            exchange.start = Some(fitted.start);
            exchange.error += MIRROR * (self.now.saturating_sub(fitted.start)) as f64
                + self.series[exchange.series as usize].late(fitted) as f64;
        }
        for (n, left) in left.into_iter().filter(|(_, left)| *left != NEVER) {
            self.mirror(slot, n, left - begin);
        }
    }

    /// Lets an event of an exchange that is left out come so long after its start.
    pub(super) fn mirror(&mut self, slot: u32, n: u32, after: u64) {
        let Some(exchange) = self.exchanges[slot as usize].as_deref() else { return };
        let Some(start) = exchange.start else { return };
        let (number, error) = (exchange.number, exchange.error);
        let at = (start + after).max(self.now);
        self.push(at, Kind::End, order(2 * number + 1, n), Who::Left(slot, n), error);
    }

    /// An event of an exchange that is left out.
    pub(super) fn absent_left(&mut self, slot: u32, n: u32) -> Result<(), Finding> {
        self.leaves(slot, n)?;
        let Some(exchange) = self.exchanges[slot as usize].as_deref() else { return Ok(()) };
        if exchange.gone as usize == exchange.left.len() && exchange.taken_over.is_none() {
            self.series[exchange.series as usize].met |=
                self.met(exchange).0 > (self.now - exchange.opened) / MOST;
            self.forget(slot);
        }
        Ok(())
    }

    /// An event of an exchange: a member leaves, or bytes have arrived or are sent.
    pub(super) fn leaves(&mut self, slot: u32, n: u32) -> Result<(), Finding> {
        self.disturb(slot);
        let Some(exchange) = self.exchanges[slot as usize].as_deref_mut() else { return Ok(()) };
        exchange.left[n as usize] = self.now;
        exchange.gone += 1;
        let (number, cell, error) = (exchange.number, exchange.cell, exchange.error);
        if let Some(begin) = exchange.start {
            let after = self.now - begin;
            for follower in exchange.followers.clone() {
                self.mirror(follower, n, after);
            }
        }
        let outline = &self.outlined.exchanges()[number as usize];
        let (cell, local) = if outline.spans { (n / outline.leaves, n % outline.leaves) } else { (cell, n) };
        let left = outline.left + local;
        self.told.left(number, local, cell, self.now);
        self.ends(error);
        self.fire(Cause::Left(left), cell, error)
    }

    /// Adds to the error of an exchange, where its first member leaves, what others may have delayed it by that its packets or its record
    /// do not know. Those that follow it may not have met them.
    fn disturb(&mut self, slot: u32) {
        let Some(exchange) = self.exchanges[slot as usize].as_deref() else { return };
        if exchange.gone > 0
            || exchange.taken_over.is_some()
            || self.tolerance.is_none()
            || self.learned_of(exchange).packets == 0
        {
            return;
        }
        let (used, absent) = self.met(exchange);
        let alone = self.series[exchange.series as usize].own == NONE;
        let (own, theirs) = match exchange.mode {
            Mode::Sent(_) => (absent, used),
            _ if alone => (used, used),
            _ => (0, 0),
        };
        let followers = exchange.followers.clone();
        for (slots, delay) in [(&vec![slot], own), (&followers, theirs)] {
            for &slot in slots {
                if let Some(exchange) = self.exchanges[slot as usize].as_deref_mut() {
                    exchange.error += delay as f64;
                }
            }
        }
    }

    /// Notes the end of a message or task of an exchange, which may be its last one.
    pub(super) fn close(&mut self, slot: u32) {
        let Some(sent) = self.sent(slot) else { return };
        sent.open -= 1;
        if sent.open > 0 {
            return;
        }
        let (round, class, own) = (sent.round, sent.class, sent.own);
        let Some(exchange) = self.exchanges[slot as usize].as_deref() else { return };
        let series = exchange.series;
        if self.tolerance.is_some() && self.learned_of(exchange).packets > 0 {
            let first = exchange.entries.iter().min().copied().unwrap_or(0);
            let since = |times: &[u64]| times.iter().map(|time| time - first).collect();
            let record = Record { entries: since(&exchange.entries), left: since(&exchange.left) };
            let (lane, most) = (self.lane_of(exchange), (self.now - exchange.opened) / MOST);
            let (used, absent) = self.met(exchange);
            self.series[series as usize].met |= used > most;
            // An exchange that others met unforeseen is no audit of those that meet none.
            let clean = if own.0 == NONE { used } else { absent } <= most;
            if !clean {
                self.books.unclean += 1;
                self.hold(series, lane);
            }
            let record = Rc::new(record);
            self.classes[class as usize].take(round, Rc::clone(&record), first, clean, own.0 != NONE);
            if own.0 != NONE {
                self.classes[own.0 as usize].take(own.1, Rc::clone(&record), first, clean, false);
            }
            let error = self.classes[class as usize].mirrored(&record, self.tolerance.unwrap_or(0.0));
            let followers =
                self.exchanges[slot as usize].as_deref().map_or_else(Vec::new, |e| e.followers.clone());
            for follower in followers {
                let waits = self.exchanges[follower as usize].as_deref_mut().filter(|follower| {
                    follower.start.is_none()
                        && matches!(follower.mode, Mode::Follows(leader) if leader == slot)
                });
                if let Some(exchange) = waits {
                    exchange.mode = Mode::Replayed(Rc::clone(&record), error);
                }
            }
        }
        self.forget(slot);
    }

    pub(super) fn forget(&mut self, slot: u32) {
        let Some(exchange) = self.exchanges[slot as usize].take() else { return };
        if self.learned_of(&exchange).packets > 0 {
            let lane = self.lane_of(&exchange);
            let state = &self.lanes[lane as usize];
            let left_out = state.left_out - u32::from(!matches!(exchange.mode, Mode::Sent(_)));
            self.occupy_links(lane, (state.busy - 1, left_out));
        }
        let place = self.place_of(&exchange);
        self.under_way[place] = NONE;
        self.unused.push(slot);
    }
}
