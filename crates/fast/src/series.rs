//! What is known about exchanges that repeat: their records, the audits of these, and the bound on the error.

use std::collections::BTreeMap;
use std::rc::Rc;

/// An exchange that was sent: when its members entered and left.
#[derive(Debug)]
pub(crate) struct Record {
    /// By member: time of its entry, ps from the first one.
    pub(crate) entries: Vec<u64>,
    /// By event: its time, ps from the first entry.
    pub(crate) left: Vec<u64>,
}

/// Where an exchange stands in the time of a record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fit {
    /// Time of the record's first entry, if the last member's entry decides.
    pub(crate) start: u64,
    /// By how much the entries of other members fit another start, ps.
    pub(crate) spread: u64,
}

/// The fit of entries to those of a record: later entries delay what follows, as the rings of collectives do.
pub(crate) fn fit(entries: &[u64], known: &[u64]) -> Fit {
    let starts = || entries.iter().zip(known).map(|(entry, known)| entry.saturating_sub(*known));
    let (least, most) = (starts().min().unwrap_or(0), starts().max().unwrap_or(0));
    Fit { start: most, spread: most - least }
}

impl Record {
    /// Time from the last entry to the last event, or what is longest of an exchange that ends before.
    pub(crate) fn duration(&self) -> u64 {
        let last = self.left.iter().max().copied().unwrap_or(0);
        let entered = self.entries.iter().max().copied().unwrap_or(0);
        last.saturating_sub(entered).max(1)
    }

    /// Largest difference of an event's time from what this record predicts, with its sign, as a share of the duration; for an exchange
    /// whose first member entered at `first`.
    fn differs(&self, actual: &Record, first: u64) -> f64 {
        let entries: Vec<u64> = actual.entries.iter().map(|entry| entry + first).collect();
        let start = fit(&entries, &self.entries).start;
        let difference = |(known, left): (&u64, &u64)| (first + left) as f64 - (start + known) as f64;
        let worst = self.left.iter().zip(&actual.left).map(difference);
        worst.fold(0.0, |worst: f64, d| if d.abs() > worst.abs() { d } else { worst })
            / self.duration() as f64
    }
}

/// Exchanges that do the same: of one lane, or of all lanes that touch no others.
#[derive(Debug, Default)]
pub(crate) struct Class {
    /// The newest record.
    pub(crate) record: Option<Rc<Record>>,
    /// By round: the exchange that is sent for all lanes, or was.
    pub(crate) leaders: BTreeMap<u32, Leader>,
    /// Differences of audits from the record before them.
    differences: Vec<f64>,
    /// Exchanges sent.
    pub(crate) sent: u32,
    /// Exchanges left out.
    pub(crate) left_out: u32,
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

/// Quantiles of Student's t at 97.5 %, by degrees of freedom from 1 on.
const STUDENT: [f64; 10] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];

/// Whether a round is sent although it is known: 1 to 4, 8, 32, 128 and so on.
pub(crate) fn is_audit(round: u32) -> bool {
    round <= 4 || (round.is_power_of_two() && round.trailing_zeros() % 2 == 1)
}

impl Class {
    /// Takes the record of a round whose first member entered at `first`. One that met what was left out is no audit.
    pub(crate) fn take(&mut self, round: u32, record: Rc<Record>, first: u64, clean: bool) {
        if let (Some(before), true) = (&self.record, clean && round >= FIRST_AUDIT) {
            self.differences.push(before.differs(&record, first));
        }
        if clean || self.record.is_none() {
            self.record = Some(Rc::clone(&record));
        }
        self.leaders.insert(round, Leader::Ended(record));
        // Later rounds have records of their own.
        while self.leaders.len() > MOST_LEADERS {
            self.leaders.pop_first();
        }
    }

    /// The error of an exchange that is left out, as a share of its duration, at 95 %; infinite before there are two audits.
    pub(crate) fn bound(&self) -> f64 {
        let n = self.differences.len();
        if n < 2 {
            return f64::INFINITY;
        }
        let count = n as f64;
        let mean = self.differences.iter().sum::<f64>() / count;
        let squares: f64 = self.differences.iter().map(|d| (d - mean).powi(2)).sum();
        let deviation = (squares / (count - 1.0)).sqrt();
        mean.abs() + STUDENT.get(n - 2).copied().unwrap_or(1.96) * deviation / count.sqrt()
    }

    /// Number of audits, and the largest difference.
    pub(crate) fn audits(&self) -> (usize, f64) {
        let worst = self.differences.iter().fold(0.0, |worst: f64, d| worst.max(d.abs()));
        (self.differences.len(), worst)
    }
}

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
    fn a_late_member_delays_all_and_the_spread_tells() {
        let fitted = fit(&[1000, 1300], &[0, 100]);
        assert_eq!((fitted.start, fitted.spread), (1200, 200));
    }

    #[test]
    fn the_bound_needs_two_audits_and_shrinks_with_more_of_them() {
        let mut class = Class::default();
        for (round, left) in [(1, 2_000), (2, 1_000), (3, 1_001)] {
            class.take(round, record(left), 0, true);
            assert_eq!(class.bound(), f64::INFINITY);
        }
        class.take(4, record(1_000), 0, true);
        // Differences of +0.1 and -0.1 %.
        let two = class.bound();
        assert!((two - 12.706 * 0.001).abs() < 1e-4, "{two}");
        class.take(5, record(1_001), 0, true);
        class.take(6, record(1_000), 0, true);
        assert!(class.bound() < two / 6.0, "{}", class.bound());
        class.take(7, record(2_000), 0, false);
        assert_eq!(class.audits().0, 4, "a round that met what was left out is no audit");
    }
}
