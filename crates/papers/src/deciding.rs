//! What decides an experiment: the rankings among its cases.

use crate::experiment::Runs;
use explain::deciding::{self, Asked, Contender, Entry, Verdict, apart, chosen, hops, named};
use lab::{Crew, Failure, Progress, Run};
use results::Results;
use std::collections::{BTreeMap, BTreeSet};

/// A time of runs, us, and its name.
pub type Measure = (&'static str, fn(&Results) -> Option<f64>);
/// Chooses the time that ranks runs; `None` if they have none in common.
pub type Ranker = fn(&[Results]) -> Option<Measure>;

/// Tables of a scenario in which cases that compete may differ: the scheme and the seed alone, or else the parts of the fabric, too.
const DIFFER: [&[&str]; 2] = [
    &["scheme", "seed", "record"],
    &["scheme", "seed", "record", "feedback", "nic", "switch", "switch-role"],
];

/// Cases that compete.
struct Ranking<'a> {
    place: String,
    measure: Measure,
    contenders: Vec<Contender<'a>>,
    seeded: bool,
}

/// What decides an experiment; empty if none of its cases compete.
pub(crate) fn of(
    runs: &Runs,
    ranker: Ranker,
    crew: Crew,
    progress: &Progress<'_>,
) -> Result<Vec<Verdict>, Failure> {
    let all = DIFFER.iter().map(|differ| rankings(runs, ranker, differ)).find(|all| !all.is_empty());
    let all = all.unwrap_or_default();
    let entries: Vec<(&Ranking<'_>, &Contender<'_>)> =
        all.iter().flat_map(|ranking| ranking.contenders.iter().map(move |of| (ranking, of))).collect();
    let entry = |(ranking, of): &(&Ranking<'_>, &Contender<'_>)| Entry {
        place: ranking.place.clone(),
        name: of.name.clone(),
        us: of.us,
    };
    let mut verdicts = Vec::new();
    for chosen in chosen(&entries.iter().map(entry).collect::<Vec<_>>()) {
        let Ranking { place, measure: (what, measure), seeded, .. } = entries[chosen[0]].0;
        let asked = Asked {
            contenders: chosen.iter().map(|&i| entries[i].1.clone()).collect(),
            baseline: None,
            place: Some((place.clone(), (*what).to_owned())),
            measure: &|run| measure(&run.outline()),
            hops: hops(runs.0.iter().map(|(_, run)| run)),
            seeded: *seeded,
            crew,
        };
        verdicts.extend(deciding::of(&asked, progress)?);
    }
    Ok(verdicts)
}

/// The rankings among cases that are alike but for these tables.
fn rankings<'a>(runs: &'a Runs, ranker: Ranker, differ: &[&str]) -> Vec<Ranking<'a>> {
    let mut alike: BTreeMap<String, Vec<(&str, &Run)>> = BTreeMap::new();
    // Some experiments have a case under two labels.
    let mut seen = BTreeSet::new();
    for (case, run) in runs.0.iter().filter(|(_, run)| seen.insert(run.checked.hash())) {
        alike.entry(run.checked.to_toml_without(differ)).or_default().push((&case.label, run));
    }
    let ranking = |cases: Vec<(&'a str, &'a Run)>| {
        let labels: Vec<&str> = cases.iter().map(|(label, _)| *label).collect();
        let different: BTreeSet<&str> = labels.iter().copied().collect();
        if different.len() < 2 {
            return None;
        }
        let outlines: Vec<Results> = cases.iter().map(|(_, run)| run.outline()).collect();
        let measure = ranker(&outlines)?;
        let (place, names) = apart(&labels);
        let schemes: BTreeSet<&str> = cases.iter().map(|(_, run)| run.summary.scheme.as_str()).collect();
        let name = |(name, (_, run)): (String, &(&str, &'a Run))| match schemes.len() == different.len() {
            true => (run.summary.scheme.clone(), *run),
            false => (name, *run),
        };
        let contenders = named(names.into_iter().zip(&cases).map(name), &|run| measure.1(&run.outline()));
        let seeded = contenders.len() < cases.len();
        (contenders.len() > 1).then_some(Ranking { place, measure, contenders, seeded })
    };
    alike.into_values().filter_map(ranking).collect()
}
