//! Leaps: rounds that are left out while lanes which share links stand still.
//!
//! In a chain the next exchange begins while the one before it is under way, so the fabric is never idle. If such a lane left out a round
//! by itself, its neighbours would meet an idle link. So all of them leap at once: the engine's clock stands still, the packets under way
//! stay where they are, the rounds between are left out, and a later round of each lane takes over what is under way.

use super::state::{Exchange, Mode, NEVER, NONE, Sent};
use super::{Director, Due, Kind, Who, order};
use crate::series::{Error, Leader, Record};
use model::QpId;
use scenario::outlined::Nature;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Least number of rounds that a leap leaves out. Our choice: a leap of one round saves nothing.
const LEAST: u32 = 2;

/// A leap under way.
#[derive(Default)]
pub(super) struct Leap {
    /// When it began.
    at: u64,
    lanes: BTreeMap<u32, Carried>,
    /// Exchanges that no later round has taken over yet.
    open: u32,
    /// When the engine may go on, so far.
    until: u64,
    /// Tasks of the exchanges that are carried over.
    due: Vec<Due>,
    /// Messages to be posted when the engine goes on.
    posts: Vec<(u32, u32)>,
    /// Exchanges that have taken over what was under way, by how much their time is later, ps.
    taken: Vec<(u32, u64)>,
}

/// A lane in a leap.
struct Carried {
    track: u32,
    /// Its exchanges that were under way, the oldest first.
    slots: Vec<u32>,
    /// Rounds that are left out.
    rounds: u32,
    /// Rounds that have begun meanwhile.
    begun: u32,
    record: Rc<Record>,
    error: Error,
    /// Its links' meters, and the time for which it was left out, when the leap began.
    meters: Box<[(u64, u64)]>,
    absent: u64,
}

/// How a round is done that begins during a leap.
pub(super) enum During {
    /// It is left out.
    LeftOut(Mode),
    /// It takes over this exchange.
    TakesOver(u32),
    /// It is sent when the engine goes on.
    Sent,
}

/// What a lane may leave out.
struct Chain {
    lane: u32,
    slots: Vec<u32>,
    /// The time of a round, and the most rounds.
    period: u64,
    most: u32,
    record: Rc<Record>,
    error: Error,
}

impl Director<'_> {
    /// Lets all lanes leap, where everything under way is in chains whose rounds are known. `lane` is about to begin a round. `None` if
    /// other exchanges are under way, and false if the lanes must go on.
    pub(super) fn leap(&mut self, lane: u32, error: f64) -> Option<bool> {
        let tolerance = self.tolerance.filter(|_| self.may_leap)?;
        let slots = self.company(lane)?;
        let chain = |(one, slots)| self.chain((one, lane), slots, (error, tolerance));
        let chains: Option<Vec<Chain>> = slots.into_iter().map(chain).collect();
        let Some((chains, span)) =
            chains.and_then(|chains| span(&chains, tolerance).map(|span| (chains, span)))
        else {
            return Some(false);
        };
        let mut leap = Leap { at: self.now, until: self.now, ..Leap::default() };
        let slots: BTreeSet<u32> = chains.iter().flat_map(|chain| chain.slots.iter().copied()).collect();
        // Tasks of what is under way stand still, too.
        let all = std::mem::take(&mut self.due).into_vec().into_iter();
        let (still, due): (Vec<_>, Vec<_>) =
            all.partition(|Reverse(due)| matches!(due.who, Who::Inner(slot, _) if slots.contains(&slot)));
        self.due = due.into();
        leap.due = still.into_iter().map(|Reverse(due)| due).collect();
        for Chain { lane, slots, period, record, error, .. } in chains {
            leap.open += slots.len() as u32;
            let carried = Carried {
                track: self.exchanges[slots[0] as usize].as_deref().map_or(0, |e| e.series >> 1),
                slots: slots.clone(),
                rounds: rounds(span, period),
                begun: 0,
                record,
                error,
                meters: self.meters(lane),
                absent: self.lanes[lane as usize].absent.at(self.now),
            };
            leap.lanes.insert(lane, carried);
        }
        self.leap = Some(Box::new(leap));
        slots.into_iter().for_each(|slot| self.set_aside(slot));
        Some(true)
    }

    /// By lane: the slots of what members are in over NICs; `None` if these are other lanes than this one and those that it meets.
    fn company(&self, lane: u32) -> Option<BTreeMap<u32, Vec<u32>>> {
        let lanes = || self.lanes[lane as usize].others.iter().chain([&lane]);
        if lanes().map(|&lane| self.lanes[lane as usize].busy).sum::<u32>() != self.over_nics {
            return None;
        }
        let mut slots: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (slot, exchange) in (0..).zip(&self.exchanges) {
            let Some(exchange) = exchange.as_deref() else { continue };
            // One that all members have left waits for ACKs only.
            if self.learned_of(exchange).packets > 0 && (exchange.gone as usize) < exchange.left.len() {
                slots.entry(self.lane_of(exchange)).or_default().push(slot);
            }
        }
        lanes().all(|lane| slots.contains_key(lane)).then_some(slots)
    }

    /// The chain of a lane, if what it has under way is one and its rounds are known.
    fn chain(
        &self,
        (lane, opener): (u32, u32),
        mut slots: Vec<u32>,
        (error, tolerance): (f64, f64),
    ) -> Option<Chain> {
        let of = |slot: &u32| self.exchanges[*slot as usize].as_deref();
        slots.sort_by_key(|slot| of(slot).map(|exchange| (exchange.opened, exchange.number)));
        let track = of(&slots[0])?.series >> 1;
        let alike = |slot: &u32| {
            of(slot).is_some_and(|exchange| {
                let sent = matches!(exchange.mode, Mode::Sent(_));
                sent && exchange.series >> 1 == track && exchange.followers.is_empty()
            })
        };
        let nature = self.outlined.exchanges()[of(&slots[0])?.number as usize].nature;
        if !slots.iter().all(alike) || nature != (Nature::Collective { coupled: true }) {
            return None;
        }
        // The rounds that follow are those in a row.
        let state = &self.series[(track << 1 | 1) as usize];
        if !state.known || state.own == NONE {
            return None;
        }
        let may = |class: &u32| self.classes[*class as usize].may_leave_out(self.now, error, tolerance);
        let class = &self.classes[[state.own, state.class].into_iter().find(may)? as usize];
        let (record, error_each) = (Rc::clone(class.record.as_ref()?), class.error(tolerance));
        let period = record.period()?;
        // The round before an audit, or the last one, takes over what is under way, so that the audit is whole.
        let begun = state.rounds - u32::from(lane == opener);
        let last = slots.iter().filter_map(of).map(|exchange| exchange.number).max()?;
        let own = &self.classes[state.own as usize];
        let audit = (begun + 1..).find(|&round| own.audits(round - state.before_own))?;
        let most = (audit - 1 - begun).min(self.following[last as usize]);
        let each = error_each.each - tolerance * record.duration() as f64;
        let room = tolerance * self.now as f64 - error;
        let most = if each > 0.0 { most.min((room / each) as u32) } else { most };
        (most >= LEAST && slots.len() <= LEAST as usize).then_some(Chain {
            lane,
            slots,
            period,
            most,
            record,
            error: error_each,
        })
    }

    /// Puts what an exchange has under way aside. The exchange is left out in its place.
    fn set_aside(&mut self, slot: u32) {
        let Some(exchange) = self.exchanges[slot as usize].as_deref() else { return };
        let lane = self.lane_of(exchange);
        let Some((record, error)) = self.leap.as_deref().and_then(|leap| {
            leap.lanes.get(&lane).map(|carried| (Rc::clone(&carried.record), carried.error))
        }) else {
            return;
        };
        let twin = Exchange {
            mode: Mode::Replayed(Rc::clone(&record), error),
            entries: exchange.entries.clone(),
            left: exchange.left.clone(),
            meters: exchange.meters.clone(),
            followers: Vec::new(),
            start: None,
            taken_over: None,
            ..*exchange
        };
        let (all, place) = (twin.entered as usize == twin.entries.len(), self.place_of(&twin));
        let (class, round) = match &exchange.mode {
            Mode::Sent(sent) => (sent.class, sent.round),
            _ => return,
        };
        let leaders = &mut self.classes[class as usize].leaders;
        if leaders
            .get(&round)
            .is_some_and(|(_, leader)| matches!(leader, Leader::UnderWay(own) if *own == slot))
        {
            leaders.remove(&round);
        }
        let twin_slot = self.place_exchange(twin);
        self.under_way[place] = twin_slot;
        let state = &self.lanes[lane as usize];
        self.occupy_links(lane, (state.busy, state.left_out + 1));
        if all {
            self.replay(twin_slot, &record, error);
        }
    }

    /// How a round of a lane is done that begins during a leap.
    pub(super) fn during_leap(&mut self, lane: u32, track: u32) -> During {
        let Some(carried) = self.leap.as_deref_mut().and_then(|leap| leap.lanes.get_mut(&lane)) else {
            return During::Sent;
        };
        if carried.track != track {
            return During::Sent;
        }
        carried.begun += 1;
        // The rounds under way are those before the first one that begins.
        let number = carried.begun + carried.slots.len() as u32 - 1;
        match number.checked_sub(carried.rounds) {
            None => During::LeftOut(Mode::Replayed(Rc::clone(&carried.record), carried.error)),
            Some(n) => carried.slots.get(n as usize).map_or(During::Sent, |&slot| During::TakesOver(slot)),
        }
    }

    /// A round takes over what a slot has under way.
    pub(super) fn take_over(&mut self, slot: u32, (number, series): (u32, u32), lane: u32) {
        let Some(exchange) = self.exchanges[slot as usize].as_deref_mut() else { return };
        (exchange.number, exchange.series, exchange.error) = (number, series, 0.0);
        let fresh = vec![NEVER; exchange.entries.len()];
        let entries = std::mem::replace(&mut exchange.entries, fresh);
        exchange.taken_over = Some(Box::new((entries, exchange.left.clone())));
        (exchange.entered, exchange.gone) = (0, 0);
        let place = self.exchanges[slot as usize].as_deref().map(|exchange| self.place_of(exchange));
        if let Some(place) = place {
            self.under_way[place] = slot;
        }
        let state = &self.lanes[lane as usize];
        self.occupy_links(lane, (state.busy + 1, state.left_out));
    }

    /// A member enters an exchange that has taken over what was under way. Returns whether it had entered before.
    pub(super) fn enters_again(&mut self, slot: u32, member: u32) -> bool {
        let Some(exchange) = self.exchanges[slot as usize].as_deref() else { return false };
        let Some((entries, left)) = exchange.taken_over.as_deref() else { return false };
        if entries[member as usize] == NEVER {
            return false;
        }
        let pairs = || entries.iter().zip(&exchange.entries).filter(|(before, _)| **before != NEVER);
        if pairs().any(|(_, entry)| *entry == NEVER) {
            return true;
        }
        // All have entered: what follows comes later by the mean of their differences.
        let (count, sum) = pairs().fold((0, 0), |(n, sum), (before, entry)| (n + 1, sum + (entry - before)));
        let shift = sum / u64::max(count, 1);
        let gone = (0..).zip(left).filter(|(_, left)| **left != NEVER);
        let gone: Vec<(u32, u64)> = gone.map(|(n, left)| (n, (left + shift).max(self.now))).collect();
        let (number, error) = (exchange.number, exchange.error);
        for (n, at) in gone {
            self.push(at, Kind::End, order(2 * number + 1, n), Who::Left(slot, n), error);
        }
        if let Some(leap) = self.leap.as_deref_mut() {
            leap.taken.push((slot, shift));
            leap.open -= 1;
            leap.until = leap.until.max(leap.at + shift);
        }
        true
    }

    /// When the engine may go on; `None` while a lane has not taken over what it had under way.
    pub(super) fn leaps_until(&self) -> Option<u64> {
        let leap = self.leap.as_deref().filter(|leap| leap.open == 0)?;
        Some(leap.until)
    }

    /// Posts a message when the engine goes on; returns false if it goes.
    pub(super) fn waits_for_leap(&mut self, slot: u32, message: u32) -> bool {
        self.leap.as_deref_mut().map(|leap| leap.posts.push((slot, message))).is_some()
    }

    /// Lets the engine go on.
    pub(super) fn land(&mut self) {
        let Some(leap) = self.leap.take() else { return };
        let Leap { at, lanes, due, posts, taken, .. } = *leap;
        let span = self.now - at;
        self.behind += span;
        // The time of the leap is no absence that others have met: what was under way stood still.
        for slot in 0..self.exchanges.len() as u32 {
            let Some(exchange) = self.exchanges[slot as usize].as_deref() else { continue };
            let lane = self.lane_of(exchange);
            if exchange.meters.is_empty() || !matches!(exchange.mode, Mode::Sent(_)) {
                continue;
            }
            let stood = exchange.taken_over.is_some() || exchange.opened < at;
            let mut meters = self.meters(lane);
            let mut absent = self.lanes[lane as usize].absent.at(self.now);
            if let Some(carried) = lanes.get(&lane).filter(|_| stood) {
                for ((now, own), then) in meters.iter_mut().zip(&exchange.meters).zip(&carried.meters) {
                    *now = (now.0 + own.0 - then.0, now.1 + own.1 - then.1);
                }
                absent = absent + exchange.absent - carried.absent;
            }
            let now = self.now;
            let Some(exchange) = self.exchanges[slot as usize].as_deref_mut() else { continue };
            (exchange.meters, exchange.absent) = (meters, absent);
            if stood {
                exchange.opened += span;
            } else {
                // Its packets begin now.
                exchange.error += (now - exchange.opened) as f64;
                exchange.opened = now;
                exchange.entries.iter_mut().filter(|entry| **entry != NEVER).for_each(|entry| *entry = now);
            }
        }
        for (slot, shift) in taken {
            let Some(exchange) = self.exchanges[slot as usize].as_deref_mut() else { continue };
            // It waited for lanes that came later.
            exchange.error += (span - shift) as f64;
            // Its record is that of the round which began it: the engine knows of no leap.
            if let Some((entries, left)) = exchange.taken_over.take().map(|before| *before) {
                let of = |times: &mut Vec<u64>, before: Vec<u64>| {
                    let pairs = times.iter_mut().zip(before).filter(|(_, before)| *before != NEVER);
                    pairs.for_each(|(time, before)| *time = before + span);
                };
                of(&mut exchange.entries, entries);
                of(&mut exchange.left, left);
            }
            let Mode::Sent(sent) = &mut exchange.mode else { continue };
            sent.start.iter_mut().filter(|start| **start < at).for_each(|start| *start += span);
            self.shift(slot, span);
        }
        for Due { at, kind, order, who, error } in due {
            self.push(at + span, kind, order, who, error);
        }
        for (slot, message) in posts {
            self.post_ready(slot, message);
        }
    }

    /// Notes that the messages of an exchange, as far as they are posted, belong to a later one.
    fn shift(&mut self, slot: u32, span: u64) {
        let at = self.exchanges[slot as usize].as_deref().map(|e| (e.number, e.cell));
        let operation = self.told.operation_at(at);
        let Some(Sent { laid, posted, .. }) = self.sent(slot) else { return };
        let mut mine: BTreeMap<QpId, usize> = BTreeMap::new();
        for (message, _) in laid.messages.iter().zip(posted).filter(|(_, posted)| **posted) {
            *mine.entry(message.qp).or_default() += 1;
        }
        // An earlier exchange may have had the same slot.
        for (qp, count) in mine {
            let newest = self.posted[qp.index()].iter_mut().rev().filter(|posted| posted.slot == slot);
            for posted in newest.take(count) {
                posted.behind += span;
                posted.operation = operation;
            }
        }
    }
}

/// Rounds that take about this time.
fn rounds(span: u64, period: u64) -> u32 {
    ((span + period / 2) / period) as u32
}

/// A time in which all chains do nearly whole numbers of rounds, of which none is too large; `None` if they don't fit.
fn span(chains: &[Chain], tolerance: f64) -> Option<u64> {
    let most = chains.iter().map(|chain| u64::from(chain.most) * chain.period).min()?;
    let off = |span: u64| {
        let of = |chain: &Chain| {
            let rounds = rounds(span, chain.period);
            let fits = (LEAST..=chain.most).contains(&rounds);
            fits.then(|| span.abs_diff(u64::from(rounds) * chain.period))
        };
        chains.iter().map(of).try_fold(0, |worst, off| Some(u64::max(worst, off?)))
    };
    let candidates = chains.iter().flat_map(|chain| {
        let last = (most / chain.period) as u32;
        (last.div_ceil(2).max(LEAST)..=last).map(|rounds| u64::from(rounds) * chain.period)
    });
    let fitting: Vec<(f64, u64)> =
        candidates.filter_map(|span| off(span).map(|off| (off as f64 / span as f64, span))).collect();
    let longest = fitting.iter().filter(|(off, _)| *off <= tolerance / 8.0).max_by_key(|(_, span)| *span);
    let (off, span) = *longest.or_else(|| fitting.iter().min_by(|one, two| one.0.total_cmp(&two.0)))?;
    (off <= tolerance).then_some(span)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(period: u64, most: u32) -> Chain {
        let record = Rc::new(Record { entries: vec![0], left: vec![period] });
        Chain { lane: 0, slots: vec![0], period, most, record, error: Error { each: 0.0, once: 0.0 } }
    }

    #[test]
    fn lanes_in_lock_step_leap_as_far_as_the_next_audit() {
        assert_eq!(span(&[chain(1_000, 23), chain(1_000, 24)], 0.01), Some(23_000));
        assert_eq!(
            span(&[chain(1_000, 1), chain(1_000, 24)], 0.01),
            None,
            "a leap of one round saves nothing"
        );
    }

    #[test]
    fn lanes_of_other_periods_leap_where_whole_rounds_meet() {
        // Ten rounds of one take as long as eleven of the other.
        let span = span(&[chain(1_100, 12), chain(1_000, 13)], 0.01);
        assert_eq!(span, Some(11_000));
        assert_eq!((rounds(11_000, 1_100), rounds(11_000, 1_000)), (10, 11));
        assert_eq!(super::span(&[chain(1_500, 3), chain(1_000, 3)], 0.01), Some(3_000));
        assert_eq!(super::span(&[chain(1_370, 3), chain(1_000, 3)], 0.01), None);
    }
}
