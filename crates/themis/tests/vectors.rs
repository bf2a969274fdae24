//! Runs every case of `vectors/*.toml` in both modes. `vectors/README.md` describes the format.

use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::Path;
use themis::{Flow, Mode, Psn, Rule, Settings, Verdict, Width};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    case: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    story: String,
    paths: u16,
    ring: u16,
    #[serde(default = "whole")]
    width: u32,
    age: Option<u16>,
    #[serde(default)]
    watch: bool,
    events: Vec<String>,
    literal: Vec<String>,
    sound: Vec<String>,
}

fn whole() -> u32 {
    24
}

impl Case {
    fn settings(&self, mode: Mode) -> Settings {
        let width = [Width::W8, Width::W16, Width::W24].into_iter().find(|width| width.bits() == self.width);
        Settings {
            mode,
            slots: self.paths,
            ring: self.ring,
            width: width.expect("width is 8, 16 or 24"),
            age_limit: self.age.unwrap_or(self.ring),
            watch: self.watch,
        }
    }

    /// The filter's outcomes for the case's events, as lines of the vectors' format.
    fn run(&self, mode: Mode) -> Vec<String> {
        let rule = Rule::new(self.settings(mode)).expect("settings make a rule");
        let (mut flow, mut ring) = (Flow::new(), vec![0; rule.ring_len()]);
        let mut outcomes = vec![];
        for event in &self.events {
            let (kind, psns) = event.split_once(' ').expect("an event is a kind and PSNs");
            for psn in psns.split(' ').flat_map(range) {
                match kind {
                    "data" => {
                        let owed = rule.on_depart(&mut flow, &mut ring, psn);
                        outcomes.extend(owed.map(|owed| format!("data {psn}: owe {owed}")));
                    }
                    "nack" => outcomes.push(match rule.on_nack(&mut flow, &ring, psn) {
                        Verdict::Forward(reason) => format!("nack {psn}: forward {}", reason.name()),
                        Verdict::Block(reason) => format!("nack {psn}: block {}", reason.name()),
                    }),
                    "ack" => rule.on_ack(&mut flow, psn),
                    other => panic!("no such event: {other}"),
                }
            }
        }
        outcomes
    }
}

/// The PSNs of `P` or `P-Q`.
fn range(text: &str) -> impl Iterator<Item = Psn> + use<> {
    let number = |text: &str| {
        let value = text.parse().expect("a PSN is a number");
        assert_eq!(Psn::new(value).value(), value, "a PSN has 24 bits");
        value
    };
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    (number(first)..=number(last)).map(Psn::new)
}

/// Both lists side by side, with a mark where they differ; empty if they are equal.
fn difference(expected: &[String], outcomes: &[String]) -> String {
    if expected == outcomes {
        return String::new();
    }
    let line = |list: &[String], i: usize| list.get(i).cloned().unwrap_or_else(|| "(nothing)".into());
    let rows = (0..expected.len().max(outcomes.len())).map(|i| (line(expected, i), line(outcomes, i)));
    rows.map(|(expected, outcomes)| {
        let mark = if expected == outcomes { ' ' } else { '>' };
        format!("  {mark} expected {expected:<36} got {outcomes}\n")
    })
    .collect()
}

#[test]
fn every_vector_holds_in_both_modes() {
    let mut names = BTreeSet::new();
    let mut failures = String::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors");
    for file in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if file.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let text = std::fs::read_to_string(&file).unwrap();
        let cases: File = toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        for case in cases.case {
            assert!(names.insert(case.name.clone()), "two cases are called `{}`", case.name);
            for (mode, expected) in [(Mode::Literal, &case.literal), (Mode::Sound, &case.sound)] {
                let difference = difference(expected, &case.run(mode));
                if !difference.is_empty() {
                    let file = file.file_name().unwrap().display();
                    failures += &format!("{file}: {}, {mode:?}\n  {}\n{difference}", case.name, case.story);
                }
            }
        }
    }
    assert!(names.len() >= 40, "only {} cases were found", names.len());
    assert!(failures.is_empty(), "\n{failures}");
}
