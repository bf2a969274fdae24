//! Those that compete, each with a run and a time.

use lab::Run;

/// One of those that compete: a scheme, or a choice of settings.
#[derive(Clone, Debug)]
pub struct Contender<'a> {
    /// Name.
    pub name: String,
    /// Its run with the first seed.
    pub run: &'a Run,
    /// The time that ranks it, us: the mean over its seeds.
    pub us: f64,
}

/// Packet-hops of runs.
pub fn hops<'a>(runs: impl IntoIterator<Item = &'a Run>) -> u64 {
    runs.into_iter().map(|run| run.outcome.data_hops + run.outcome.control_hops).sum()
}

/// The schemes of a comparison; empty if a run has no time.
pub fn schemes<'a>(runs: &'a [Run], measure: &dyn Fn(&Run) -> Option<f64>) -> Vec<Contender<'a>> {
    named(runs.iter().map(|run| (run.summary.scheme.clone(), run)), measure)
}

/// Contenders of named runs: those of one name differ in their seeds. Empty if a run has no time.
pub fn named<'a>(
    runs: impl Iterator<Item = (String, &'a Run)>,
    measure: &dyn Fn(&Run) -> Option<f64>,
) -> Vec<Contender<'a>> {
    let mut of_names: Vec<(String, &Run, Vec<f64>)> = Vec::new();
    for (name, run) in runs {
        let Some(us) = run.summary.complete.then(|| measure(run)).flatten() else { return Vec::new() };
        match of_names.iter_mut().find(|(known, ..)| *known == name) {
            Some((.., times)) => times.push(us),
            None => of_names.push((name, run, vec![us])),
        }
    }
    let mean = |times: &[f64]| times.iter().sum::<f64>() / times.len() as f64;
    of_names.into_iter().map(|(name, run, times)| Contender { name, run, us: mean(&times) }).collect()
}
