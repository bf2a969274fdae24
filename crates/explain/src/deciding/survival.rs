//! Whether a ranking survives other values of the settings that it rests on: the contenders run again with each of them.

use super::blame::changed;
use super::contender::{Contender, hops};
use super::root::{Change, Root, row};
use lab::execute::{Prepared, Run, execute, window_on};
use lab::{Crew, Failure, Progress};
use results::text::number;
use scenario::Checked;
use serde::Serialize;
use std::collections::BTreeSet;

/// Lead below which two times are a tie, as in the headline.
pub(super) const TIE: f64 = 1.02;
/// Packet-hops that the variations may always take; beyond them, they take at most as many as the comparison. Our choice: 10 to 20
/// seconds of a core.
const FREE_HOPS: u64 = 400_000_000;

/// A variation and its times.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tried {
    /// What differs, such as "min-rate 1 Gb/s".
    pub name: String,
    /// The changes, as `--set` takes them.
    pub set: Vec<String>,
    /// Times of the contenders, us, in the order of [`Survival::contenders`]; null if a run was not complete.
    pub us: Vec<Option<f64>>,
    /// True if the winner is still ahead of the next by more than a tie.
    pub holds: bool,
}

/// Whether a ranking survives.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Survival {
    /// Names of what ran again: the winner, the next, and the baseline if that is another one.
    pub contenders: Vec<String>,
    /// Their times as compared, us.
    pub us: Vec<f64>,
    /// Variations, each with its times.
    pub tried: Vec<Tried>,
    /// Variations for which there was no time.
    pub left_out: usize,
    /// True if a congestion control dominates, and without it or with other values of its settings the ranking or most of the lead is
    /// gone.
    pub control_decides: bool,
}

/// Changes that leave out recordings.
const QUIET: [&str; 7] = [
    "record.flows=0",
    "record.links=0",
    "record.events=0",
    "record.follow=[]",
    "record.taps=[]",
    "record.switches=false",
    "record.counters=false",
];

/// A ranking to vary.
pub(super) struct Ranking<'a> {
    /// Winner, next, and baseline.
    pub(super) contenders: Vec<&'a Contender<'a>>,
    pub(super) root: Root,
    /// Packet-hops that the variations may take, see [`FREE_HOPS`].
    pub(super) hops: u64,
    /// True if the contenders have several seeds.
    pub(super) seeded: bool,
}

/// A variation before it runs: name, changes, and scenarios by contender.
struct Trial {
    name: String,
    set: Vec<String>,
    runs: Vec<Prepared>,
}

/// A quantity such as "100kB", multiplied; `None` if the text is none.
fn times(text: &str, factor: f64) -> Option<String> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (digits, unit) = text.split_at(end);
    let scaled = digits.parse::<f64>().ok()? * factor;
    // The smallest units have no fractions.
    let whole = ["B", "ps", "bps"].contains(&unit);
    Some(format!("{}{unit}", if whole { scaled.round() } else { (scaled * 1e6).round() / 1e6 }))
}

/// The changes of settings that a variation makes of `checked`; `None` if one does not apply.
fn sets(checked: &Checked, changes: &[Change]) -> Option<Vec<String>> {
    let mut sets = Vec::new();
    let mut scale = |key: &str, factor: f64| {
        let scaled = checked.setting(key).and_then(|setting| times(&setting.value, factor));
        let found = scaled.is_some();
        sets.extend(scaled.map(|value| format!("{key}={value}")));
        found
    };
    let mut others = Vec::new();
    for change in changes {
        let applies = match *change {
            Change::Times(key, factor) => scale(key, factor),
            Change::Computing(factor) => (0..checked.scenario.workload.len()).fold(false, |any, i| {
                let key = |key: &str| format!("workload.{i}.training.compute.{key}");
                let flops = scale(&key("flops"), 1.0 / factor);
                let times = scale(&key("forward"), factor) && scale(&key("backward"), factor);
                any || flops || times
            }),
            Change::Set(key, value) => {
                others.push(format!("{key}={value}"));
                true
            }
            Change::NoControl => {
                let none = scenario::no_control();
                others.push(format!("nic.congestion.{none}={{}}"));
                checked.scenario.nic.congestion.name() != none
            }
            Change::NextSeed => {
                others.push(format!("seed={}", checked.scenario.seed.wrapping_add(1)));
                true
            }
            Change::OfControl => false,
        };
        if !applies {
            return None;
        }
    }
    sets.extend(others);
    Some(sets)
}

/// All variations of a cause: name and changes.
fn variations(ranking: &Ranking<'_>) -> Vec<(String, Vec<String>)> {
    let checked = &ranking.contenders[0].run.checked;
    let Some(row) = row(ranking.root) else { return Vec::new() };
    let mut all = Vec::new();
    for (name, changes) in row.variations {
        match changes {
            [Change::OfControl] => {
                all.extend(checked.scenario.nic.congestion.variations().into_iter().map(
                    |(name, changes)| {
                        let set = |(key, value): (String, &str)| format!("nic.{key}={value}");
                        (name.to_owned(), changes.into_iter().map(set).collect())
                    },
                ));
            }
            // The seeds of a comparison are variations already.
            [Change::NextSeed] if ranking.seeded => {}
            changes => all.extend(sets(checked, changes).map(|sets| ((*name).to_owned(), sets))),
        }
    }
    all
}

fn trials(ranking: &Ranking<'_>) -> Vec<Trial> {
    let trial = |(name, set): (String, Vec<String>)| {
        // Recordings cost time and change nothing.
        let quiet: Vec<String> = QUIET.iter().map(|set| (*set).to_owned()).collect();
        let one = |contender: &&Contender<'_>| {
            let as_compared = changed(&contender.run.checked, &quiet)?;
            let prepared = changed(&contender.run.checked, &[&quiet[..], &set].concat())?;
            (prepared.checked.hash() != as_compared.checked.hash()).then_some(prepared)
        };
        let runs = ranking.contenders.iter().map(one).collect::<Option<Vec<_>>>()?;
        // A variation of the very settings that contenders differ in makes them alike.
        let hashes: BTreeSet<String> = runs.iter().map(|run| run.checked.hash()).collect();
        (hashes.len() == runs.len()).then_some(Trial { name, set, runs })
    };
    variations(ranking).into_iter().filter_map(trial).collect()
}

/// Runs the variations of a ranking.
///
/// # Errors
/// If the user interrupted it, or there are no threads.
pub(super) fn of(
    ranking: &Ranking<'_>,
    measure: &(dyn Fn(&Run) -> Option<f64> + Sync),
    crew: Crew,
    progress: &Progress<'_>,
) -> Result<Survival, Failure> {
    let mut trials = trials(ranking);
    let each = hops(ranking.contenders.iter().map(|of| of.run));
    let most = (FREE_HOPS.max(ranking.hops) / each.max(1)) as usize;
    let left_out = trials.len().saturating_sub(most);
    trials.truncate(most);
    let jobs: Vec<Prepared> = trials.iter_mut().flat_map(|trial| std::mem::take(&mut trial.runs)).collect();
    let one = |prepared: Prepared, threads| {
        if progress.stopped() {
            return Err(Failure::Interrupted);
        }
        let kind = window_on(threads, &prepared.checked.plan);
        let run = execute(prepared, kind, progress);
        run.ran_to_its_end()?;
        Ok(if run.summary.complete { measure(&run) } else { None })
    };
    progress.expect(jobs.len());
    let times = crew.side_by_side(jobs, one)?.into_iter().collect::<Result<Vec<_>, _>>()?;
    let n = ranking.contenders.len();
    let tried = trials.into_iter().zip(times.chunks(n)).map(|(trial, us)| Tried {
        name: trial.name,
        set: trial.set,
        holds: holds(us),
        us: us.to_vec(),
    });
    let mut survival = Survival {
        contenders: ranking.contenders.iter().map(|of| of.name.clone()).collect(),
        us: ranking.contenders.iter().map(|of| of.us).collect(),
        tried: tried.collect(),
        left_out,
        control_decides: false,
    };
    survival.control_decides = ranking.root == Root::Control && survival.is_shaken();
    Ok(survival)
}

/// True if the first is ahead of all others by more than a tie.
fn holds(us: &[Option<f64>]) -> bool {
    match us {
        [Some(first), rest @ ..] => rest.iter().all(|us| us.is_some_and(|us| us > first * TIE)),
        _ => false,
    }
}

impl Survival {
    /// The lead of the winner over the last contender: the baseline, or the next.
    fn lead(us: &[Option<f64>]) -> Option<f64> {
        Some((*us.last()?)? / (*us.first()?)?)
    }

    /// True if a variation breaks the ranking, or takes more than half of the lead (of its logarithm).
    fn is_shaken(&self) -> bool {
        let as_compared: Vec<Option<f64>> = self.us.iter().copied().map(Some).collect();
        let lead = Self::lead(&as_compared).map_or(0.0, f64::ln);
        self.tried
            .iter()
            .any(|tried| !tried.holds || Self::lead(&tried.us).is_some_and(|other| other.ln() < lead * 0.5))
    }

    /// The result in sentences; empty if nothing was tried.
    pub(super) fn sentences(&self, control: &str) -> Vec<String> {
        if self.tried.is_empty() {
            return Vec::new();
        }
        let held = self.tried.iter().filter(|tried| tried.holds).count();
        let mut text = match (held, self.tried.len()) {
            (1, 1) => "The order holds in the one variation that was tried".to_owned(),
            (held, all) => format!("The order holds in {held} of {all} variations"),
        };
        let broken: Vec<&Tried> = self.tried.iter().filter(|tried| !tried.holds).collect();
        for tried in broken.iter().take(2) {
            text += &format!("; with {} {}", tried.name, self.instead(tried));
        }
        if broken.len() > 2 {
            text += &format!("; and {} more break it", broken.len() - 2);
        }
        let mut sentences = vec![text + "."];
        let leads: Vec<f64> = self.tried.iter().filter_map(|tried| Self::lead(&tried.us)).collect();
        let (least, most) = leads.iter().fold((f64::INFINITY, 0.0_f64), |(a, b), x| (a.min(*x), b.max(*x)));
        if let Some(last) = self.contenders.last()
            && most > 0.0
        {
            sentences.push(format!(
                "{} takes {} to {} times as long as {} in them.",
                last,
                number(least),
                number(most),
                self.contenders[0]
            ));
        }
        if self.left_out > 0 {
            sentences.push(format!("{} variations were left out to save time.", self.left_out));
        }
        if self.control_decides {
            sentences.push(format!("{control} decides this ranking."));
        }
        sentences
    }

    /// What a variation that breaks the ranking gives instead.
    fn instead(&self, tried: &Tried) -> String {
        let Some(us) = tried.us.iter().copied().collect::<Option<Vec<f64>>>() else {
            return "a run does not finish".to_owned();
        };
        let least = us.iter().copied().fold(f64::INFINITY, f64::min);
        let most = us.iter().copied().fold(0.0, f64::max);
        if most <= least * 1.1 {
            return format!("all are within {} %", number(((most / least - 1.0) * 100.0).max(0.1)));
        }
        let first = us.iter().position(|us| *us <= least).unwrap_or(0);
        match first {
            0 => format!("{} is as fast", self.contenders[1]),
            first => format!("{} is fastest", self.contenders[first]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_scaled_in_their_unit() {
        assert_eq!(times("100kB", 4.0).as_deref(), Some("400kB"));
        assert_eq!(times("32767B", 0.25).as_deref(), Some("8192B"));
        assert_eq!(times("1.5us", 2.0).as_deref(), Some("3us"));
        assert_eq!(times("400TFLOPS", 1.25).as_deref(), Some("500TFLOPS"));
        assert_eq!(times("on", 2.0), None);
    }

    fn survival(us: &[f64], tried: &[(&str, [f64; 3])]) -> Survival {
        let tried = tried.iter().map(|(name, us)| {
            let us: Vec<Option<f64>> = us.iter().copied().map(Some).collect();
            Tried { name: (*name).to_owned(), set: Vec::new(), holds: holds(&us), us }
        });
        Survival {
            contenders: ["flowcut", "themis", "ecmp"].map(str::to_owned).to_vec(),
            us: us.to_vec(),
            tried: tried.collect(),
            left_out: 0,
            control_decides: false,
        }
    }

    /// The times of an all-to-all of 256 GPUs, with the floor of DCQCN at 1 Mb/s, at 1 Gb/s, and without control.
    #[test]
    fn a_ranking_that_other_values_break_is_called_so() {
        let tried =
            [("min-rate 1 Gb/s", [527.0, 531.0, 562.0]), ("no congestion control", [288.0, 261.0, 295.0])];
        let mut survival = survival(&[2922.0, 3270.0, 12_075.0], &tried);
        assert!(survival.is_shaken());
        survival.control_decides = true;
        assert_eq!(
            survival.sentences("DCQCN"),
            [
                "The order holds in 0 of 2 variations; with min-rate 1 Gb/s all are within 6.64 %; with no congestion control themis is \
                 fastest.",
                "ecmp takes 1.02 to 1.07 times as long as flowcut in them.",
                "DCQCN decides this ranking."
            ]
        );
    }

    #[test]
    fn a_lead_that_stays_is_not_shaken() {
        let survival = survival(&[100.0, 200.0, 300.0], &[("another seed", [100.0, 190.0, 280.0])]);
        assert!(!survival.is_shaken());
        assert!(survival.sentences("DCQCN")[0].starts_with("The order holds in the one variation"));
    }
}
