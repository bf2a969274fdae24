//! The messages of a run as traffic patterns of NIXL's `sequential-ct-perftest`: those that start together are a matrix.

use engine::Outcome;
use model::{Plan, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Most patterns (our choice): a folder that tools still list.
const MOST: usize = 10_000;
/// Most ranks: as many as `ropewalk import ctp` reads (`formats::ctp::MOST_RANKS`).
const MOST_RANKS: usize = 2048;
/// Most cells of all matrices (our choice): at least 1 GB of text.
const MOST_CELLS: usize = 500_000_000;

/// Bytes by sender and receiver.
type Cells = BTreeMap<(u32, u32), u64>;

/// A pattern.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Pattern {
    /// Time that its ranks have nothing to do before it.
    sleep: Time,
    cells: Cells,
}

/// Patterns in the order of their starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traffic {
    ranks: u32,
    patterns: Vec<Pattern>,
    overlapping: u64,
    unstarted: u64,
    lost: u64,
}

impl Traffic {
    /// The messages of a run; a rank is a host.
    ///
    /// # Errors
    /// If there are too many ranks, messages start at very many times, the matrices would be very large, or nothing was sent.
    pub fn of(plan: &Plan, outcome: &Outcome) -> Result<Self, String> {
        let ranks = plan.fabric.hosts();
        if ranks > MOST_RANKS {
            return Err(format!(
                "the scenario has {ranks} ranks; expected at most {MOST_RANKS} for matrices"
            ));
        }
        let mut groups: BTreeMap<(Time, u16), (Time, Cells)> = BTreeMap::new();
        let (mut unstarted, mut lost) = (0, 0);
        for (message, done) in plan.messages.iter().zip(&outcome.messages) {
            if message.bytes == 0 {
                continue;
            }
            if done.start == Time::NEVER {
                unstarted += 1;
                continue;
            }
            lost += u64::from(done.received == Time::NEVER);
            let qp = &plan.qps[message.qp.index()];
            let group = groups.entry((done.start, message.job)).or_default();
            // A message that has not arrived keeps its ranks no longer than others.
            let end = if done.received == Time::NEVER { done.start } else { done.received };
            group.0 = group.0.max(end);
            *group.1.entry((qp.from.0, qp.to.0)).or_default() += message.bytes;
        }
        match groups.len() {
            0 => return Err("the scenario sends no messages".to_owned()),
            many if many > MOST => {
                return Err(format!("messages start at {many} different times; expected at most {MOST}"));
            }
            _ => {}
        }
        let mut free: BTreeMap<u32, Time> = BTreeMap::new();
        let (mut patterns, mut overlapping) = (Vec::new(), 0);
        for ((start, _), (end, cells)) in groups {
            let ranks: BTreeSet<u32> = cells.keys().flat_map(|(from, to)| [*from, *to]).collect();
            let ready = ranks.iter().filter_map(|rank| free.get(rank)).max().copied().unwrap_or(Time::ZERO);
            overlapping += u64::from(ready > start);
            patterns.push(Pattern { sleep: start.since(ready.min(start)), cells });
            let until = end.max(ready);
            free.extend(ranks.into_iter().map(|rank| (rank, until)));
        }
        let different = patterns.iter().map(|pattern| &pattern.cells).collect::<BTreeSet<_>>().len();
        fits(different, ranks)?;
        Ok(Traffic { ranks: ranks as u32, patterns, overlapping, unstarted, lost })
    }

    /// Number of ranks.
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Number of patterns.
    pub fn patterns(&self) -> usize {
        self.patterns.len()
    }

    /// Patterns that start before a rank of theirs has ended an earlier one.
    pub fn overlapping(&self) -> u64 {
        self.overlapping
    }

    /// Messages that the run never started, which no pattern has.
    pub fn unstarted(&self) -> u64 {
        self.unstarted
    }

    /// Messages of the patterns that did not arrive.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// The matrices and then the list, by their names. Each is made when it is asked for, so only one is held at a time.
    pub fn files(&self) -> impl Iterator<Item = (String, String)> {
        let mut list = "traffic_patterns:\n".to_owned();
        let mut numbers: BTreeMap<&Cells, usize> = BTreeMap::new();
        let mut matrices: Vec<&Cells> = Vec::new();
        for Pattern { sleep, cells } in &self.patterns {
            let number = *numbers.entry(cells).or_insert_with(|| {
                matrices.push(cells);
                matrices.len() - 1
            });
            let _ = writeln!(
                list,
                "- matrix_file: {}\n  mem_type: cuda\n  xfer_op: WRITE\n  sleep_before_launch_sec: {:.12}",
                matrix_file(number),
                sleep.as_secs()
            );
        }
        let matrices = matrices.into_iter().enumerate();
        matrices
            .map(|(number, cells)| (matrix_file(number), self.matrix(cells)))
            .chain([("patterns.yaml".to_owned(), list)])
    }

    fn matrix(&self, cells: &Cells) -> String {
        let mut text = String::new();
        for from in 0..self.ranks {
            for to in 0..self.ranks {
                let space = if to == 0 { "" } else { " " };
                let _ = write!(text, "{space}{}", cells.get(&(from, to)).copied().unwrap_or(0));
            }
            text.push('\n');
        }
        text
    }
}

fn matrix_file(number: usize) -> String {
    format!("matrix_{number}.txt")
}

/// Refuses matrices that would fill a disk.
fn fits(matrices: usize, ranks: usize) -> Result<(), String> {
    match matrices * ranks * ranks {
        cells if cells > MOST_CELLS => Err(format!(
            "{matrices} matrices of {ranks} ranks have {cells} cells; expected at most {MOST_CELLS}"
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{outcome, plan};

    #[test]
    fn messages_that_start_together_are_a_matrix_and_ranks_sleep_between() {
        let (plan, mut outcome) = (plan(2), outcome(2));
        let ms = Time::from_ms;
        for (message, (start, received)) in outcome.messages.iter_mut().zip([(0, 2), (5, 6)]) {
            (message.start, message.received) = (ms(start), ms(received));
        }
        let traffic = Traffic::of(&plan, &outcome).unwrap();
        let files: Vec<(String, String)> = traffic.files().collect();
        let (name, list) = files.last().unwrap();
        assert_eq!((name.as_str(), traffic.patterns(), traffic.overlapping()), ("patterns.yaml", 2, 0));
        assert!(list.contains("sleep_before_launch_sec: 0.000000000000"), "{list}");
        let sent: u64 = files[..files.len() - 1]
            .iter()
            .flat_map(|(_, text)| text.split_whitespace().map(|cell| cell.parse::<u64>().unwrap()))
            .sum();
        let distinct: u64 = plan.messages.iter().map(|message| message.bytes).sum();
        assert!(sent > 0 && sent <= distinct);
        assert_eq!((traffic.unstarted(), traffic.lost()), (0, 0));
        outcome.messages[1].received = Time::NEVER;
        let traffic = Traffic::of(&plan, &outcome).unwrap();
        assert_eq!(
            (traffic.patterns(), traffic.unstarted(), traffic.lost()),
            (2, 0, 1),
            "sent, and not arrived"
        );
        outcome.messages[1].start = Time::NEVER;
        let traffic = Traffic::of(&plan, &outcome).unwrap();
        assert_eq!((traffic.patterns(), traffic.unstarted(), traffic.lost()), (1, 1, 0), "never sent");
        outcome.messages[1].start = ms(1);
        assert_eq!(Traffic::of(&plan, &outcome).unwrap().overlapping(), 1);
        outcome.messages.iter_mut().for_each(|message| message.start = Time::NEVER);
        assert_eq!(Traffic::of(&plan, &outcome).unwrap_err(), "the scenario sends no messages");
    }

    #[test]
    fn matrices_that_would_fill_a_disk_are_refused() {
        assert_eq!(fits(119, MOST_RANKS), Ok(()));
        let told = "120 matrices of 2048 ranks have 503316480 cells; expected at most 500000000";
        assert_eq!(fits(120, MOST_RANKS).unwrap_err(), told);
    }
}
