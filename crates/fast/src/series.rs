//! What is known about exchanges that repeat: their records, the audits of these, and the bound on the error.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// An exchange that was sent: when its members entered and left.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Record {
    /// By member: time of its entry, ps from the first one.
    pub(crate) entries: Vec<u64>,
    /// By event: its time, ps from the first entry.
    pub(crate) left: Vec<u64>,
}

/// Where an exchange stands in the time of a record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fit {
    /// Time of the record's beginning.
    pub(crate) start: u64,
    /// By how much the entries of members that are late differ from those of the record, at most the time of the exchange.
    pub(crate) late: u64,
    /// By how much the entries of members differ that take turns to be late. From round to round this does not add up.
    pub(crate) turns: u64,
}

/// Largest spread of entries, as a part of an exchange's duration, that is taken for the rhythm of a chain: where every member enters when
/// it has left the exchange before, members take turns to be late. Our choice.
const RHYTHM: u64 = 4;

impl Record {
    /// The fit of entries to those of the record. In the rhythm of a chain their mean counts; else the latest member decides, as no member
    /// leaves before all have entered.
    pub(crate) fn fit(&self, entries: &[u64]) -> Fit {
        let starts = || entries.iter().zip(&self.entries).map(|(entry, known)| entry.saturating_sub(*known));
        let (least, most) = (starts().min().unwrap_or(0), starts().max().unwrap_or(0));
        let spread = most - least;
        if spread > self.duration() / RHYTHM {
            let last = |entries: &[u64]| entries.iter().max().copied().unwrap_or(0);
            let start = last(entries).saturating_sub(last(&self.entries));
            return Fit { start, late: spread.min(self.duration()), turns: 0 };
        }
        let above: u64 = starts().map(|start| start - least).sum();
        Fit { start: least + above / entries.len().max(1) as u64, late: 0, turns: spread }
    }

    /// Time from the last entry to the last event, or what is longest of an exchange that ends before.
    pub(crate) fn duration(&self) -> u64 {
        let last = self.left.iter().max().copied().unwrap_or(0);
        let entered = self.entries.iter().max().copied().unwrap_or(0);
        last.saturating_sub(entered).max(1)
    }

    /// Time from one round of a chain to the next; `None` if members do not leave it one by one.
    pub(crate) fn period(&self) -> Option<u64> {
        let period = mean(&self.left).checked_sub(mean(&self.entries))?;
        (self.left.len() == self.entries.len() && period > 0).then_some(period)
    }

    /// Differences of the events' times from what this record predicts, for an exchange whose first member entered at `first`: their mean
    /// as a share of the duration, and the largest one from the mean, ps. What differs between members alone does not add up from
    /// round to round.
    fn differs(&self, actual: &Record, first: u64) -> (f64, f64) {
        let entries: Vec<u64> = actual.entries.iter().map(|entry| entry + first).collect();
        let start = self.fit(&entries).start;
        let of = |(known, left): (&u64, &u64)| (first + left) as f64 - (start + known) as f64;
        let all: Vec<f64> = self.left.iter().zip(&actual.left).map(of).collect();
        let mean = all.iter().sum::<f64>() / all.len().max(1) as f64;
        let apart = all.iter().fold(0.0, |most: f64, one| most.max((one - mean).abs()));
        (mean / self.duration() as f64, apart)
    }

    /// Largest difference of an entry or event from that of another record, ps, if the means of entries are equal.
    fn apart(&self, other: &Record) -> u64 {
        let (own, others) = (mean(&self.entries), mean(&other.entries));
        let of = |(one, two): (&u64, &u64)| (one + others).abs_diff(two + own);
        let entries = self.entries.iter().zip(&other.entries).map(of);
        entries.chain(self.left.iter().zip(&other.left).map(of)).max().unwrap_or(0)
    }

    /// The mean of records, which begin at the mean of their entries.
    fn mean(all: &[Rc<Record>]) -> Record {
        let latest = all.iter().map(|record| mean(&record.entries)).max().unwrap_or(0);
        // Times from the beginning that makes the means of entries equal.
        let sum = |of: &dyn Fn(&Record) -> &Vec<u64>, i: usize| {
            let shifted = all.iter().map(|record| of(record)[i] + latest - mean(&record.entries));
            shifted.sum::<u64>() / all.len() as u64
        };
        let first = &all[0];
        Record {
            entries: (0..first.entries.len()).map(|i| sum(&|record| &record.entries, i)).collect(),
            left: (0..first.left.len()).map(|i| sum(&|record| &record.left, i)).collect(),
        }
    }
}

fn mean(times: &[u64]) -> u64 {
    times.iter().sum::<u64>() / times.len().max(1) as u64
}

/// Exchanges that do the same: of one lane, or of all lanes that touch no others.
#[derive(Debug, Default)]
pub(crate) struct Class {
    /// What the newest rounds were like.
    pub(crate) record: Option<Rc<Record>>,
    /// Their records.
    newest: VecDeque<Rc<Record>>,
    /// By round: the lane whose exchange is sent for all lanes, or was.
    pub(crate) leaders: BTreeMap<u32, (u32, Leader)>,
    pub(crate) audits: Audits,
    /// Largest difference between members beside that, ps.
    pub(crate) apart: f64,
    /// Exchanges sent.
    pub(crate) sent: u32,
    /// Exchanges left out.
    pub(crate) left_out: u32,
    /// Rounds of this run, and of those before it that are known from a memo.
    pub(crate) rounds: u32,
    pub(crate) before: u32,
    /// Audits of runs before this one.
    audits_before: u64,
    /// Records of the first rounds, which begin on an idle fabric.
    opening: BTreeMap<u32, Rc<Record>>,
    /// Whether its lanes share links with others, so that its records hold for this run alone.
    pub(crate) contended: bool,
}

/// What a memo keeps of a class.
#[derive(Deserialize, Serialize)]
pub(crate) struct Kept {
    rounds: u32,
    opening: BTreeMap<u32, Rc<Record>>,
    newest: VecDeque<Rc<Record>>,
    audits: Audits,
    apart: f64,
}

impl Kept {
    /// Whether the records tell the same members.
    pub(crate) fn check(&self) -> Result<(), String> {
        let all = || self.newest.iter().chain(self.opening.values());
        let Some(first) = self.newest.front() else { return Err("`newest` is empty".into()) };
        let like = |one: &Rc<Record>| {
            let of = |record: &Record| (record.entries.len(), record.left.len());
            of(one) == of(first) && one.entries.iter().chain(&one.left).all(|time| *time < LATEST)
        };
        if first.entries.is_empty() || !all().all(like) {
            return Err("its records have different members, or times beyond 1,000 s".into());
        }
        let opening = self.opening.keys().all(|round| (1..=OPENING).contains(round));
        if self.newest.len() > TURNS || !opening {
            return Err("it has too many records".into());
        }
        let finite = |x: &f64| x.is_finite() && *x >= 0.0;
        let audits = self.audits.mean.is_finite() && finite(&self.audits.squares);
        if finite(&self.apart)
            && finite(&self.audits.worst)
            && audits
            && self.audits.count < 1 << 40
            && self.rounds < 1 << 30
        {
            return Ok(());
        }
        Err("a number is out of range".into())
    }

    /// Whether the record has `members` members and `events` events.
    pub(crate) fn fits(&self, members: usize, events: usize) -> bool {
        self.newest.iter().all(|record| (record.entries.len(), record.left.len()) == (members, events))
    }
}

/// Latest time of a record, ps: 1,000 s. A later one is damage.
const LATEST: u64 = 1_000_000_000_000_000;

/// Differences of audits from the record before them, as shares of the exchange.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Audits {
    pub(crate) count: u64,
    mean: f64,
    /// Sum of the squares about the mean.
    squares: f64,
    /// The largest one.
    pub(crate) worst: f64,
}

impl Audits {
    fn add(&mut self, difference: f64) {
        self.count += 1;
        let from = difference - self.mean;
        self.mean += from / self.count as f64;
        self.squares += from * (difference - self.mean);
        self.worst = self.worst.max(difference.abs());
    }

    /// The bound of a single difference at 95 %; infinite before there are two.
    fn bound(&self) -> f64 {
        if self.count < 2 {
            return f64::INFINITY;
        }
        let t = STUDENT.get(self.count as usize - 2).copied().unwrap_or(1.96);
        self.mean.abs() + t * (self.squares / (self.count - 1) as f64).sqrt()
    }
}

/// The error of an exchange that is left out, ps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Error {
    /// Every such exchange adds it.
    pub(crate) each: f64,
    /// By how much members may differ from their mean, which does not add up.
    pub(crate) once: f64,
}

/// An exchange that is sent for others, too.
#[derive(Clone, Debug)]
pub(crate) enum Leader {
    /// It is under way.
    UnderWay(u32),
    /// It has ended.
    Ended(Rc<Record>),
}

/// The first difference that counts is that of this round: the rounds before it begin on an idle fabric.
const FIRST_AUDIT: u32 = 3;

/// Quantiles of Student's t at 97.5 %, by degrees of freedom from 1 on, from the usual tables.
const STUDENT: [f64; 10] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];

/// The rounds that a memo keeps one by one.
const OPENING: u32 = 4;

/// The lane of a leader of an earlier run.
pub(crate) const NOBODY: u32 = u32::MAX;

/// Whether a round is sent although it is known: 1 to 4, 8, 32, 128 and so on.
fn is_audit(round: u32) -> bool {
    round <= 4 || (round.is_power_of_two() && round.trailing_zeros() % 2 == 1)
}

impl Class {
    /// A class that a memo knows. Its first rounds are led by those of an earlier run.
    pub(crate) fn of(kept: Kept) -> Self {
        let mut newest = kept.newest;
        let record = Some(Rc::new(Record::mean(newest.make_contiguous())));
        let leader =
            |(&round, record): (&u32, &Rc<Record>)| (round, (NOBODY, Leader::Ended(Rc::clone(record))));
        Class {
            leaders: kept.opening.iter().map(leader).collect(),
            opening: kept.opening,
            newest,
            record,
            audits_before: kept.audits.count,
            audits: kept.audits,
            apart: kept.apart,
            before: kept.rounds,
            ..Class::default()
        }
    }

    /// What a memo keeps of it; `None` if it does not say more than before, or would never be left out.
    pub(crate) fn kept(&self) -> Option<Kept> {
        (!self.contended && self.rounds > 0 && self.audits.count >= 2).then(|| Kept {
            rounds: self.before + self.rounds,
            opening: self.opening.clone(),
            newest: self.newest.clone(),
            audits: self.audits.clone(),
            apart: self.apart,
        })
    }

    /// Notes that its lanes share links with others: what a memo knows does not hold here.
    pub(crate) fn contend(&mut self) {
        if self.before > 0 {
            *self =
                Class { sent: self.sent, left_out: self.left_out, rounds: self.rounds, ..Class::default() };
        }
        self.contended = true;
    }

    /// Audits of this run.
    pub(crate) fn audited(&self) -> u64 {
        self.audits.count - self.audits_before
    }

    /// Whether a round is sent although it is known.
    pub(crate) fn audits(&self, round: u32) -> bool {
        is_audit(self.before + round)
    }

    /// Lets an exchange of a lane lead a round, unless another one does.
    pub(crate) fn lead(&mut self, round: u32, lane: u32, slot: u32) {
        let leader = self.leaders.entry(round).or_insert((NOBODY, Leader::UnderWay(slot)));
        if leader.0 == NOBODY {
            *leader = (lane, Leader::UnderWay(slot));
        }
    }

    /// Takes the record of a round whose first member entered at `first`. One that met what was left out is no audit. If lanes differ,
    /// the first rounds of lanes count, too.
    pub(crate) fn take(&mut self, round: u32, record: Rc<Record>, first: u64, clean: bool, differ: bool) {
        // The first rounds of a later run are like those of the earlier one.
        let opening = self.opening.get(&round).filter(|_| self.before > 0);
        if let (Some(before), true) =
            (opening.or(self.record.as_ref()), clean && (differ || self.before > 0 || round >= FIRST_AUDIT))
        {
            let (mean, apart) = before.differs(&record, first);
            self.audits.add(mean);
            self.apart = self.apart.max(apart);
        }
        if opening.is_none() && (clean || self.record.is_none()) {
            // The first round begins on an idle fabric, or with members that come from elsewhere.
            if round == 2 && self.before == 0 && !differ {
                self.newest.clear();
            }
            self.newest.push_back(Rc::clone(&record));
            if self.newest.len() > TURNS {
                self.newest.pop_front();
            }
            let mean = Record::mean(self.newest.make_contiguous());
            // What is left out may begin and end at any turn of the rhythm.
            let turns = self.newest.iter().map(|record| record.apart(&mean)).max();
            self.apart = self.apart.max(2.0 * turns.unwrap_or(0) as f64);
            self.record = Some(Rc::new(mean));
        }
        if clean && round <= OPENING {
            self.opening.entry(round).or_insert_with(|| Rc::clone(&record));
        }
        if let Some((_, leader)) = self.leaders.get_mut(&round) {
            *leader = Leader::Ended(record);
        }
        // Later rounds have records of their own.
        while self.leaders.len() > MOST_LEADERS {
            self.leaders.pop_first();
        }
    }

    /// The error of an exchange that is left out; infinite before it is known. Audits hold for single exchanges: what follows in a row
    /// may be off in one direction, so a bound below the tolerance counts as the tolerance.
    pub(crate) fn error(&self, tolerance: f64) -> Error {
        let share = self.audits.bound().max(tolerance);
        let each = self.record.as_ref().map_or(f64::INFINITY, |record| share * record.duration() as f64);
        Error { each, once: self.apart }
    }

    /// The error of an exchange that is left out because another lane does the same at about the same time.
    pub(crate) fn mirrored(&self, record: &Record, tolerance: f64) -> Error {
        Error { each: tolerance * record.duration() as f64, once: self.apart }
    }

    /// Whether an exchange that begins at a time with an error may be left out: the error of all times stays within the tolerance.
    pub(crate) fn may_leave_out(&self, now: u64, error: f64, tolerance: f64) -> bool {
        let duration = self.record.as_ref().map_or(0, |record| record.duration());
        error + self.error(tolerance).each <= tolerance * (now + duration) as f64
    }
}

/// Rounds of which the mean is taken. Our choice: members of chains were late by turns of two and four rounds.
const TURNS: usize = 4;

/// Most leaders that a class remembers: lanes in lock-step are a few rounds apart. Our choice.
const MOST_LEADERS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn record(left: u64) -> Rc<Record> {
        Rc::new(Record { entries: vec![0, 0], left: vec![left, left] })
    }

    #[test]
    fn audits_come_at_the_first_rounds_and_then_four_times_as_late() {
        let audits: Vec<u32> = (1..3000).filter(|&round| is_audit(round)).collect();
        assert_eq!(audits, [1, 2, 3, 4, 8, 32, 128, 512, 2048]);
    }

    #[test]
    fn a_late_member_delays_all_and_small_spreads_are_the_rhythm_of_a_chain() {
        let known = Record { entries: vec![0, 100], left: vec![2_100, 2_100] };
        let (late, rhythm) = (known.fit(&[1000, 2000]), known.fit(&[1000, 1120]));
        assert_eq!((late.start, late.late, late.turns), (1900, 900, 0));
        assert_eq!((rhythm.start, rhythm.late, rhythm.turns), (1010, 0, 20));
        // Another member is the latest one, by more than an exchange takes.
        let other = known.fit(&[9000, 1000]);
        assert_eq!((other.start, other.late), (8900, 2000));
    }

    #[test]
    fn members_that_are_late_by_turns_give_a_steady_mean() {
        let turn = |entries: [u64; 2], left: [u64; 2]| {
            Rc::new(Record { entries: entries.to_vec(), left: left.to_vec() })
        };
        let mean = Record::mean(&[turn([0, 20], [1_020, 1_000]), turn([20, 0], [1_000, 1_020])]);
        assert_eq!((mean.entries, mean.left), (vec![10, 10], vec![1_010, 1_010]));
    }

    #[test]
    fn the_bound_needs_two_audits_and_shrinks_with_more_of_them() {
        let mut class = Class::default();
        for (round, left) in [(1, 9_000), (2, 1_000), (3, 1_004)] {
            class.take(round, record(left), 0, true, false);
            assert_eq!(class.audits.bound(), f64::INFINITY);
        }
        class.take(4, record(1_001), 0, true, false);
        let two = class.audits.bound();
        assert!(two > 0.01 && two < 0.1, "{two}");
        for round in 5..9 {
            class.take(round, record(1_001), 0, true, false);
        }
        assert!(class.audits.bound() < two / 4.0, "{}", class.audits.bound());
        class.take(9, record(2_000), 0, false, false);
        assert_eq!(class.audits.count, 6, "a round that met what was left out is no audit");
    }
}
