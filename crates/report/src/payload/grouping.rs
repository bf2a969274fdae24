//! Groups of runs that share a row, and their names.

use super::question::settings;
use super::{Group, config, text};
use results::Results;
use std::collections::{BTreeMap, BTreeSet};

/// Groups the runs: those of a group differ only in their seeds. A group is named after its scheme, and after its
/// scenario if there are several scenarios.
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
            // A directory that is given twice counts once.
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
            let suffixes = suffixes(&alike.iter().map(|&i| &groups[i]).collect::<Vec<_>>());
            alike.iter().zip(suffixes).for_each(|(&i, suffix)| groups[i].name.push_str(&suffix));
        }
    }
    groups
}

/// True if two runs of one group are the same run.
fn same(a: &Results, b: &Results) -> bool {
    let names = |run: &Results| (run.summary.digest.clone(), run.summary.seed, run.summary.scheme.clone());
    names(a) == names(b)
}

/// Most keys in a name. Our choice.
const KEYS: usize = 2;

/// Suffixes that distinguish groups of one scheme: the settings in which they differ if these are few, else numbers.
fn suffixes(groups: &[&Group<'_>]) -> Vec<String> {
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
    // Name each group after the settings that it shares with at most half of the groups.
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
