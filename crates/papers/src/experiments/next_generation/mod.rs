//! NICs made for spraying beside Themis on today's NICs: does a ToR that filters NACKs do what a new NIC does, and where not?
//!
//! No paper has this comparison. Every system gets the same links, the same buffer per switch, and the marks, caps and timers
//! that its authors want. Every number is a mean over seeds with its 95 % interval.
//!
//! | file | content |
//! |---|---|
//! | `contenders` | the systems, as settings of the scenario `next-generation` |
//! | `settings` | the questions, with their workloads and faults |
//! | `measure` | the numbers read from a run |

mod contenders;
mod measure;
mod settings;

use crate::experiment::{Case, Experiment, Runs};
use crate::row::Row;
use crate::seeds::over_seeds;
use contenders::Contender;
use results::stats::{margin, mean};
use results::text;
use settings::{Question, Setting};

macro_rules! parts {
    ($($(#[$doc:meta])* $part:ident = $name:literal, $about:literal, $questions:expr;)+) => {
        $(
            $(#[$doc])*
            pub(crate) const $part: Experiment = {
                const QUESTIONS: &[Question] = $questions;
                Experiment {
                    name: $name,
                    source: "ours: Ultra Ethernet, MRC, DCP, Ethereal and REPS beside Themis",
                    about: $about,
                    cases: |quick| cases(QUESTIONS, quick),
                    rows: |runs, _| rows(QUESTIONS, runs),
                    curves: |_| Vec::new(),
                    more: |runs| more(QUESTIONS, runs),
                    picture: |_| crate::picture::Picture::default(),
                }
            };
        )+

        #[cfg(test)]
        const PARTS: &[Experiment] = &[$($part),+];
    };
}

parts! {
    /// The headline.
    HEADLINE = "next-generation",
        "does a ToR that filters NACKs do what a new NIC does: collectives, incast",
        &[settings::COLLECTIVES, settings::INCASTS];
    /// Packets lost at random, dead links, slow links.
    FAULTS = "next-generation-faults",
        "the same systems with random loss, dead links and spines, and slow links",
        &[settings::LOSSES, settings::FAILURES, settings::SLOW_LINKS];
    /// Goodput over time.
    RECOVERY = "next-generation-recovery",
        "how far goodput falls when a link or a spine dies, and when it is back",
        &[settings::RECOVERY];
    /// Other traffic beside.
    MIXED = "next-generation-mixed",
        "the same systems beside legacy flows, and small messages beside bulk",
        &[settings::LEGACY, settings::LEGACY_APART, settings::SMALL];
    /// One port, or eight planes.
    PLANES = "next-generation-planes",
        "one port of 800 Gb/s or eight planes of 100 Gb/s, and a plane that dies or is slow",
        &[settings::PLANES];
    /// What the settings move.
    SENSITIVITY = "next-generation-sensitivity",
        "half and twice the buffer, other timers and marks of DCQCN, an ACK per packet, equal headers, starts within a round trip",
        &[settings::BUFFERS, settings::PRESETS, settings::ACKS, settings::STARTS];
    /// More hosts and longer messages.
    LARGE = "next-generation-large",
        "the same systems on 256 hosts, with larger messages",
        &[settings::LARGE];
}

/// Number of seeds. Our choice: the smallest number whose interval is of use.
fn seeds(quick: bool) -> std::ops::RangeInclusive<u32> {
    if quick { 1..=1 } else { 1..=5 }
}

/// Label of the runs of a contender under a setting, which differ in their seeds.
fn label(question: &Question, setting: &Setting, contender: &Contender) -> String {
    format!("{}, {}: {}", question.name, setting.name, contender.name)
}

fn cases(questions: &[Question], quick: bool) -> Vec<Case> {
    let mut cases = Vec::new();
    for question in questions {
        let settings = if quick { &question.settings[..1] } else { question.settings };
        for (setting, contender) in
            settings.iter().flat_map(|s| question.contenders.iter().map(move |c| (s, c)))
        {
            for seed in seeds(quick) {
                let mut case = Case::new(label(question, setting, contender), "next-generation", &[]);
                case.set.extend(contender.sets(setting.speed));
                case.set.extend(setting.set.iter().map(|set| (*set).to_owned()));
                if setting.planes {
                    case.set.extend(contender.planes());
                }
                if setting.own_queue {
                    case.set.push(contender.legacy_queue());
                }
                cases.push(case.and(format!("seed={seed}")));
            }
        }
    }
    cases
}

/// A mean with its interval; without one if the values do not differ.
fn with_interval(values: &[f64]) -> String {
    match (mean(values), margin(values)) {
        (Some(mean), Some(half)) if half > 0.0 => format!("{} ±{}", text::number(mean), text::number(half)),
        (mean, _) => text::maybe(mean),
    }
}

fn rows(questions: &[Question], runs: &Runs) -> Vec<Row> {
    let mut rows = Vec::new();
    for question in questions {
        for (setting, contender) in
            question.settings.iter().flat_map(|s| question.contenders.iter().map(move |c| (s, c)))
        {
            let label = label(question, setting, contender);
            if runs.every(&label).next().is_none() {
                continue;
            }
            for (title, unit, metric) in question.read {
                let values = over_seeds(runs, &label, *metric);
                let note = format!("{} over {} seeds", with_interval(&values), values.len());
                rows.push(Row::ours(&label, *title, unit, mean(&values), note).tabled());
            }
        }
    }
    rows
}

/// A table per question and number: contenders by settings.
fn more(questions: &[Question], runs: &Runs) -> String {
    let mut all = String::from(
        "Means over seeds with 95 % intervals; - where a run did not finish or has no such value.\n",
    );
    for question in questions {
        let ran = |setting: &&Setting| {
            question.contenders.iter().any(|c| runs.every(&label(question, setting, c)).next().is_some())
        };
        let settings: Vec<&Setting> = question.settings.iter().filter(ran).collect();
        for (title, _, metric) in question.read {
            let mut header = vec![String::new()];
            header.extend(settings.iter().map(|setting| setting.name.replacen(", ", "\n", 1)));
            let mut table = text::table(&header, 1);
            for contender in question.contenders {
                let cells = settings.iter().map(|setting| {
                    with_interval(&over_seeds(runs, &label(question, setting, contender), *metric))
                });
                table.add_row(std::iter::once(contender.name.to_owned()).chain(cells));
            }
            all.push_str(&format!("\n{}: {title}\n{table}\n", question.name));
        }
    }
    all.push_str("\nWhat must change:\n");
    for contender in &contenders::ALL {
        all.push_str(&format!("  {}: {}\n", contender.name, contender.changes));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Every setting with one of its contenders in turn, and every contender with the first setting of its questions.
    #[test]
    fn cases_are_valid_scenarios() {
        for part in PARTS {
            let mut labels = BTreeSet::new();
            let mut seen = BTreeSet::new();
            for (i, case) in
                (part.cases)(false).into_iter().filter(|case| labels.insert(case.label.clone())).enumerate()
            {
                let (setting, contender) = case.label.split_once(": ").unwrap();
                let (setting, contender) = (setting.to_owned(), contender.to_owned());
                let new = seen.insert(setting) | (part.name != LARGE.name && seen.insert(contender));
                if new || i % 23 == 0 && part.name != LARGE.name {
                    scenario::load(case.scenario, &case.set)
                        .unwrap_or_else(|e| panic!("{}: {e:?}", case.label));
                }
            }
        }
    }

    #[test]
    fn a_mean_stands_with_its_interval() {
        assert_eq!(with_interval(&[1.0, 2.0, 3.0, 4.0, 5.0]), "3.00 ±1.96");
        assert_eq!(with_interval(&[1.0]), "1.00");
        assert_eq!(with_interval(&[2.0, 2.0]), "2.00");
    }
}
