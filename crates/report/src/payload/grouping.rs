//! Which runs are one row, and what the rows are called.

use super::question::settings;
use super::{Group, config, text};
use results::Results;
use std::collections::{BTreeMap, BTreeSet};

/// Groups of runs by scheme, and by scenario where there are several; runs of a group differ by their seed at most.
pub(crate) fn grouped(runs: &[Results]) -> Vec<Group<'_>> {
    let scenarios: BTreeSet<&str> = runs.iter().map(|r| &*r.summary.scenario).collect();
    let unseeded = |run: &Results| {
        let mut settings = settings(run);
        settings.remove("seed");
        settings.to_string()
    };
    let mut groups: Vec<(String, Group<'_>)> = Vec::new();
    for run in runs {
        let scheme = &run.summary.scheme;
        let name = match scenarios.len() {
            0 | 1 => scheme.clone(),
            _ => format!("{}: {scheme}", run.summary.scenario),
        };
        let key = unseeded(run);
        match groups.iter_mut().find(|(known, _)| *known == key) {
            // A directory that was given twice is no second seed.
            Some((_, group)) if group.runs.iter().any(|known| same(known, run)) => {}
            Some((_, group)) => group.runs.push(run),
            None => groups.push((key, Group { name, runs: vec![run] })),
        }
    }
    let mut groups: Vec<Group<'_>> = groups.into_iter().map(|(_, group)| group).collect();
    let names: Vec<String> = groups.iter().map(|group| group.name.clone()).collect();
    for name in names.iter().collect::<BTreeSet<_>>() {
        let alike: Vec<usize> = (0..names.len()).filter(|&i| names[i] == *name).collect();
        if alike.len() > 1 {
            let suffixes = told_apart(&alike.iter().map(|&i| &groups[i]).collect::<Vec<_>>());
            alike.iter().zip(suffixes).for_each(|(&i, suffix)| groups[i].name.push_str(&suffix));
        }
    }
    groups
}

/// Whether two runs with the same settings, but perhaps for the seed, are one.
fn same(a: &Results, b: &Results) -> bool {
    let names = |run: &Results| (run.summary.digest.clone(), run.summary.seed, run.summary.scheme.clone());
    names(a) == names(b)
}

/// Most keys in a name. Our choice: more make no name.
const KEYS: usize = 2;

/// What tells runs of one scheme apart: the settings in which they differ, where these are few, else a number.
fn told_apart(groups: &[&Group<'_>]) -> Vec<String> {
    let flat = |group: &&Group<'_>| {
        config::flat(group.runs.first().map_or("", |run| text(&run.manifest, "/config")))
    };
    let flat: Vec<_> = groups.iter().map(flat).collect();
    let keys: Vec<&String> = config::differing(&flat).into_iter().filter(|key| *key != "seed").collect();
    let setting = |of: &BTreeMap<String, String>, key: &&String| {
        let short = key.rsplit('.').next().unwrap_or(key);
        format!(", {short} {}", of.get(*key).map_or("-", String::as_str))
    };
    if (1..=KEYS).contains(&keys.len()) {
        return flat.iter().map(|of| keys.iter().map(|key| setting(of, key)).collect()).collect();
    }
    // Each goes by what is not as in most of them.
    let rare = |of: &BTreeMap<String, String>| -> Vec<&String> {
        let as_here = |key: &&&String| flat.iter().filter(|other| other.get(**key) == of.get(**key)).count();
        keys.iter().filter(|key| 2 * as_here(key) <= flat.len()).copied().collect()
    };
    let named: Vec<(usize, String)> = flat
        .iter()
        .map(|of| (rare(of).len(), rare(of).iter().map(|key| setting(of, key)).collect()))
        .collect();
    let names: BTreeSet<&String> = named.iter().map(|(_, name)| name).collect();
    if names.len() == groups.len() && named.iter().all(|(keys, _)| *keys <= KEYS) {
        return named.into_iter().map(|(_, name)| name).collect();
    }
    (1..=groups.len()).map(|n| format!(" ({n})")).collect()
}
