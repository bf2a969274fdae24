//! The answer's foundation: dominant cause, assumed settings, survival.

use super::blame::{self, Blame};
use super::root::{self, Root, row};
use super::survival::{self, Ranking, Survival, TIE};
use lab::execute::{Prepared, Run, execute, window_on};
use lab::{Crew, Failure, Progress};
use results::text::percent;
use scenario::{Checked, Evidence, Setting};
use serde::Serialize;

/// Most settings that the answer names. Our choice.
const SETTINGS: usize = 3;
/// Smallest time that flows lost under the fastest scheme, as a share of that under the other, whose cause is named. Our choice.
const WORTH_SAYING: f64 = 0.25;
/// Most causes that are named where none dominates. Our choice.
const CAUSES: usize = 3;

/// What is asked.
pub struct Asked<'a> {
    /// The scenario as its author wrote it, which tells defaults from his values.
    pub base: &'a Checked,
    /// All runs of the comparison.
    pub runs: &'a [Run],
    /// Scheme with which the fastest is compared; `None` for the slowest.
    pub baseline: Option<&'a str>,
    /// The time that ranks runs, us.
    pub measure: &'a (dyn Fn(&Run) -> Option<f64> + Sync),
    /// Threads.
    pub crew: Crew,
}

/// What decides a comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// The fastest scheme.
    pub fastest: String,
    /// The scheme with which it is compared.
    pub against: String,
    /// Where the time went under each of the two.
    pub time: Vec<Blame>,
    /// Dominant cause under `against`; null if none dominates.
    pub cause: Option<Root>,
    /// Settings on which the cause depends and that the scenario leaves to defaults, the least certain first.
    pub rests_on: Vec<Setting>,
    /// Whether the ranking survives other values; null for a tie.
    pub survives: Option<Survival>,
    /// The answer in sentences.
    pub answer: Vec<String>,
}

/// Schemes with the means of their times, the fastest first; `None` if a run has no time, or there are not two schemes.
fn ranked(asked: &Asked<'_>) -> Option<Vec<(String, f64)>> {
    let mut of_schemes: Vec<(String, Vec<f64>)> = Vec::new();
    for run in asked.runs {
        let us = run.summary.complete.then(|| (asked.measure)(run)).flatten()?;
        match of_schemes.iter_mut().find(|(scheme, _)| *scheme == run.summary.scheme) {
            Some((_, times)) => times.push(us),
            None => of_schemes.push((run.summary.scheme.clone(), vec![us])),
        }
    }
    let mean = |times: &[f64]| times.iter().sum::<f64>() / times.len() as f64;
    let mut order: Vec<(String, f64)> =
        of_schemes.into_iter().map(|(scheme, times)| (scheme, mean(&times))).collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    (order.len() > 1).then_some(order)
}

/// What decides a comparison; `None` if its runs cannot be ranked. Two schemes run once more with events recorded, and the contenders
/// with each variation.
///
/// # Errors
/// If the user interrupted it.
pub fn of(asked: &Asked<'_>, progress: &Progress<'_>) -> Result<Option<Verdict>, Failure> {
    let Some(order) = ranked(asked) else { return Ok(None) };
    let (fastest, last) = (&order[0], &order[order.len() - 1]);
    let baseline = order[1..].iter().find(|(scheme, _)| asked.baseline == Some(scheme));
    // Schemes that tie with the fastest are not ranked against it.
    let tied = |(_, us): &&(String, f64)| *us <= fastest.1 * TIE;
    let next = order[1..].iter().find(|other| !tied(other)).unwrap_or(&order[1]);
    let against = baseline.unwrap_or(if asked.baseline == Some(&fastest.0) { next } else { last });
    let tie = last.1 <= fastest.1 * TIE;
    let run = |scheme: &str| asked.runs.iter().find(|run| run.summary.scheme == scheme);
    let (Some(slower), Some(faster)) = (run(&against.0), run(&fastest.0)) else { return Ok(None) };
    let prepared: Vec<Prepared> = [slower, faster].into_iter().filter_map(blame::recording).collect();
    let one = |prepared: Prepared, threads| {
        if progress.stopped() {
            return Err(Failure::Interrupted);
        }
        let kind = window_on(threads, &prepared.checked.plan);
        blame::of(&execute(prepared, kind, progress))
    };
    let time = asked.crew.side_by_side(prepared, one)?.into_iter().collect::<Result<Vec<_>, _>>()?;
    let time: Vec<Blame> = time.into_iter().flatten().collect();
    let Some(first) = time.iter().find(|blame| blame.scheme == against.0) else { return Ok(None) };
    let cause = first.dominant().map(|share| share.cause);
    let varied = varied(first);
    let rests_on = cause.or(varied).map_or_else(Vec::new, |root| rests_on(asked.base, slower, root));
    let control = root::control(&slower.checked);
    let survives = match varied.filter(|_| !tie) {
        None => None,
        Some(root) => {
            let mut contenders = vec![faster];
            let mut us = vec![fastest.1];
            for (scheme, mean) in [next, against] {
                if let Some(run) = run(scheme)
                    && contenders.iter().all(|known| known.summary.scheme != *scheme)
                {
                    contenders.push(run);
                    us.push(*mean);
                }
            }
            let hops = asked.runs.iter().map(|run| run.outcome.data_hops + run.outcome.control_hops).sum();
            let seeded = asked.runs.iter().any(|run| run.summary.seed != faster.summary.seed);
            let ranking = Ranking { contenders, us, root, hops, seeded };
            Some(survival::of(&ranking, asked.measure, asked.crew, progress)?)
        }
    };
    let mut answer = vec![sentence(first)];
    answer.extend(resting(&rests_on));
    let much = |blame: &&Blame| blame.scheme == fastest.0 && blame.us > first.us * WORTH_SAYING;
    if let Some(second) = time.iter().find(much)
        && let (Some(share), true) = (second.dominant(), second.dominant().map(|s| s.cause) != cause)
    {
        answer.push(format!(
            "Under {}, {} {}.",
            fastest.0,
            percent(share.share),
            of_what(second, &share.what)
        ));
    }
    let ties: Vec<&str> = order.iter().take_while(tied).map(|(scheme, _)| scheme.as_str()).collect();
    if let ([most @ .., last], false) = (&*ties, tie)
        && !most.is_empty()
    {
        answer.push(format!("{} and {last} are within 2 %: a tie.", most.join(", ")));
    }
    answer.extend(survives.iter().flat_map(|survival| survival.sentences(&control)));
    Ok(Some(Verdict {
        fastest: fastest.0.clone(),
        against: against.0.clone(),
        cause,
        rests_on,
        survives,
        answer,
        time,
    }))
}

/// The cause whose settings are varied: the largest one about which settings can say anything.
fn varied(blame: &Blame) -> Option<Root> {
    let network =
        |root: Root| !matches!(root, Root::Computation | Root::Alone | Root::Server | Root::Schedule);
    let largest = blame.causes.first()?;
    // Computation is the same under all schemes; what differs is the rest.
    let differs = blame.causes.iter().find(|share| network(share.cause));
    Some(differs.unwrap_or(largest).cause)
}

/// The settings of a cause that the scenario leaves to defaults, the least certain first.
fn rests_on(base: &Checked, run: &Run, root: Root) -> Vec<Setting> {
    let Some(row) = row(root) else { return Vec::new() };
    let control =
        || run.checked.scenario.nic.congestion.decisive().into_iter().map(|key| format!("nic.{key}"));
    let keys = row.depends.iter().flat_map(|key| match *key {
        "control" => control().collect(),
        key => vec![key.to_owned()],
    });
    let mut settings: Vec<Setting> =
        keys.filter_map(|key| base.setting(&key)).filter(|s| s.evidence != Evidence::Written).collect();
    let uncertain = |setting: &Setting| setting.evidence > Evidence::OurChoice;
    settings.sort_by_key(uncertain);
    settings.truncate(SETTINGS);
    settings
}

/// Causes in a sentence.
fn sentence(blame: &Blame) -> String {
    if let Some(share) = blame.dominant() {
        return format!("Under {}, {} {}.", blame.scheme, percent(share.share), of_what(blame, &share.what));
    }
    let parts: Vec<String> = blame
        .causes
        .iter()
        .take(CAUSES)
        .map(|share| format!("{} goes to {}", percent(share.share), share.what))
        .collect();
    let whole = if blame.of_step { "of the step" } else { "of the time that flows lost" };
    format!("Under {}, no cause has half {whole}: {}.", blame.scheme, parts.join(", "))
}

fn of_what(blame: &Blame, what: &str) -> String {
    match blame.of_step {
        true => format!("of the step's critical path goes to {what}"),
        false => format!("of the time that flows lost goes to {what}"),
    }
}

/// The settings in a sentence, with values and sources.
fn resting(settings: &[Setting]) -> Option<String> {
    let named = |setting: &Setting| {
        let short = setting.key.split('.').rev().take(2).collect::<Vec<_>>();
        let key = short.into_iter().rev().collect::<Vec<_>>().join(".");
        // The first words of a source name its kind.
        let source = setting.source.split([';', ',']).next().unwrap_or_default();
        format!("{key} = {} ({source})", setting.value)
    };
    (!settings.is_empty()).then(|| {
        format!("That rests on defaults: {}.", settings.iter().map(named).collect::<Vec<_>>().join(", "))
    })
}
