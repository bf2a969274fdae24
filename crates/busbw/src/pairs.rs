//! Several logs: the slow node and the slow path by elimination, and how repeated runs differ.

use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A log that counts as slow has less than this share of the best one's bandwidth. Our choice: runs differ by less, slow nodes by more.
const SLOW: f64 = 0.75;

/// A log, as far as it is compared.
#[derive(Clone, Debug, Serialize)]
pub struct Ran {
    /// Name of the log.
    pub name: String,
    /// Its hosts.
    pub hosts: BTreeSet<String>,
    /// Bus bandwidth of the largest common size, GB/s.
    pub busbw: f64,
    /// Whether it is slow beside the best one.
    pub slow: bool,
}

/// What several logs say together.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Together {
    /// The size that is compared, bytes.
    pub bytes: u64,
    /// The logs.
    pub logs: Vec<Ran>,
    /// Nodes that are slow, by elimination.
    pub slow_nodes: Vec<String>,
    /// Sets of nodes that are slow though each node is fast elsewhere.
    pub slow_paths: Vec<String>,
    /// Sentences.
    pub words: Vec<String>,
    /// Largest over least bandwidth of the same nodes, if they ran several times.
    pub spread: Option<f64>,
}

/// Compares logs of the same test. `racks` has the hosts below each ToR.
pub(crate) fn compare(bytes: u64, mut logs: Vec<Ran>, racks: &[Vec<String>]) -> Together {
    let best = logs.iter().map(|log| log.busbw).fold(0.0, f64::max);
    for log in &mut logs {
        log.slow = log.busbw < SLOW * best;
    }
    let mut together = Together { bytes, logs, ..Together::default() };
    together.repeated();
    let sets: BTreeSet<&BTreeSet<String>> =
        together.logs.iter().map(|log| &log.hosts).filter(|hosts| !hosts.is_empty()).collect();
    if sets.len() > 1 {
        together.eliminate();
        together.racks(racks);
    }
    together
}

impl Together {
    /// Runs of the same nodes.
    fn repeated(&mut self) {
        let mut by_hosts: BTreeMap<&BTreeSet<String>, Vec<&Ran>> = BTreeMap::new();
        for log in &self.logs {
            by_hosts.entry(&log.hosts).or_default().push(log);
        }
        let (mut spread, mut words) = (None::<f64>, Vec::new());
        for runs in by_hosts.values().filter(|runs| runs.len() > 1) {
            let least = runs.iter().map(|run| run.busbw).fold(f64::MAX, f64::min);
            let most = runs.iter().map(|run| run.busbw).fold(0.0, f64::max);
            let of_these = most / least.max(1e-9);
            spread = Some(spread.map_or(of_these, |before| before.max(of_these)));
            if let [before, after] = runs[..] {
                let change = 100.0 * (after.busbw / before.busbw.max(1e-9) - 1.0);
                let (before_gbs, after_gbs) = (before.busbw, after.busbw);
                words.push(format!(
                    "{} to {}: {before_gbs:.1} to {after_gbs:.1} GB/s, {change:+.0} %.",
                    before.name, after.name
                ));
            } else {
                words.push(format!(
                    "{} runs of the same nodes: {least:.1} to {most:.1} GB/s, a factor of {of_these:.2}.",
                    runs.len()
                ));
            }
        }
        self.spread = spread;
        self.words.extend(words);
    }

    fn eliminate(&mut self) {
        let (slow, fast): (Vec<&Ran>, Vec<&Ran>) = self.logs.iter().partition(|log| log.slow);
        if slow.is_empty() {
            self.words.push("No set of nodes is slower than the others by more than a quarter.".to_owned());
            return;
        }
        let cleared: BTreeSet<&String> = fast.iter().flat_map(|log| &log.hosts).collect();
        let in_slow =
            |host: &String, open: &[&Ran]| open.iter().filter(|log| log.hosts.contains(host)).count();
        let mut open = slow.clone();
        let (mut words, mut nodes, mut paths) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            let all: BTreeSet<&String> =
                open.iter().flat_map(|log| &log.hosts).filter(|host| !cleared.contains(host)).collect();
            let most = all.iter().map(|host| in_slow(host, &open)).max().unwrap_or(0);
            if most == 0 {
                break;
            }
            let worst: Vec<&String> = all.into_iter().filter(|host| in_slow(host, &open) == most).collect();
            let names = worst.iter().map(|host| host.as_str()).collect::<Vec<_>>();
            if worst.len() > 1 {
                let which = names.join(" and ");
                words.push(format!(
                    "One of {which} is slow: none of them is in a fast log. Run each with a fast node."
                ));
                open.retain(|log| !worst.iter().any(|host| log.hosts.contains(*host)));
                continue;
            }
            let host = worst[0];
            let partners: BTreeSet<&String> = slow
                .iter()
                .filter(|log| log.hosts.contains(host))
                .flat_map(|log| &log.hosts)
                .filter(|of| *of != host)
                .collect();
            let elsewhere: Vec<&str> =
                partners.iter().filter(|of| cleared.contains(**of)).map(|of| of.as_str()).collect();
            let mut text = format!(
                "{host} is slow: it is in {} of {} slow logs, and in no fast one",
                in_slow(host, &slow),
                slow.len()
            );
            if !elsewhere.is_empty() {
                let verb = if elsewhere.len() == 1 {
                    "its partner {} is fast elsewhere"
                } else {
                    "its partners {} are fast elsewhere"
                };
                text += &format!("; {}", verb.replace("{}", &elsewhere.join(", ")));
            }
            words.push(text + ".");
            nodes.push(host.clone());
            open.retain(|log| !log.hosts.contains(host));
        }
        for log in &open {
            let name = log.hosts.iter().map(String::as_str).collect::<Vec<_>>().join("-");
            words.push(format!(
                "{name} remains: {:.1} GB/s, though each of its nodes is fast elsewhere. The path between them is slow, or it was chance: run it again.",
                log.busbw
            ));
            paths.push(name);
        }
        self.words.extend(words);
        self.slow_nodes = nodes;
        self.slow_paths = paths;
    }

    fn racks(&mut self, racks: &[Vec<String>]) {
        let rack = |host: &String| {
            racks
                .iter()
                .position(|rack| rack.iter().any(|name| host == name || host.ends_with(name.as_str())))
        };
        let crosses = |log: &&Ran| {
            let of: BTreeSet<Option<usize>> = log.hosts.iter().map(rack).collect();
            !of.contains(&None) && of.len() > 1
        };
        if racks.len() < 2 {
            return;
        }
        let name = |log: &Ran| log.hosts.iter().map(String::as_str).collect::<Vec<_>>().join("-");
        let fast: Vec<&Ran> = self.logs.iter().filter(|log| !log.slow).filter(crosses).collect();
        let slow: Vec<&Ran> = self.logs.iter().filter(|log| log.slow).collect();
        if let Some(pair) = fast.first() {
            self.words.push(format!(
                "{} is fast across ToRs, which refutes the ToR and its uplinks as the cause.",
                name(pair)
            ));
        } else if !slow.is_empty() && slow.iter().all(crosses) {
            self.words
                .push("Every slow log crosses ToRs, and no fast one does: suspect the uplinks.".to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(hosts: &str, busbw: f64) -> Ran {
        Ran {
            name: hosts.to_owned(),
            hosts: hosts.split('-').map(str::to_owned).collect(),
            busbw,
            slow: false,
        }
    }

    #[test]
    fn a_node_without_a_fast_log_is_slow_and_a_pair_of_fast_nodes_is_a_slow_path() {
        let logs =
            vec![ran("a-b", 49.0), ran("a-c", 49.0), ran("b-c", 50.0), ran("b-d", 88.0), ran("c-e", 88.0)];
        let together = compare(1 << 30, logs, &[vec!["b".into()], vec!["d".into()]]);
        assert_eq!(
            (together.slow_nodes, together.slow_paths),
            (vec!["a".to_owned()], vec!["b-c".to_owned()])
        );
        assert!(together.words.iter().any(|word| word.contains("b-d is fast across ToRs")));
    }

    #[test]
    fn two_nodes_that_only_ran_together_cannot_be_told_apart() {
        let together = compare(1 << 30, vec![ran("a-b", 40.0), ran("c-d", 88.0)], &[]);
        assert!(together.slow_nodes.is_empty());
        assert!(together.words[0].contains("One of a and b is slow"), "{:?}", together.words);
    }

    #[test]
    fn two_runs_of_the_same_nodes_are_before_and_after() {
        let together = compare(1 << 30, vec![ran("a-b", 50.0), ran("a-b", 85.0)], &[]);
        assert_eq!(together.words, ["a-b to a-b: 50.0 to 85.0 GB/s, +70 %."]);
        assert!(together.spread.unwrap() > 1.6);
    }
}
