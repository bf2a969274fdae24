//! Runs every case of `vectors/*.toml` in both modes. `vectors/README.md` describes the format.

use serde::Deserialize;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
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

/// All cases, each with the name of its file.
fn cases() -> Vec<(String, Case)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors");
    let mut cases = vec![];
    for file in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if file.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let text = std::fs::read_to_string(&file).unwrap();
        let of_file: File =
            toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let name = file.file_name().unwrap().display().to_string();
        cases.extend(of_file.case.into_iter().map(|case| (name.clone(), case)));
    }
    cases
}

#[test]
fn every_vector_holds_in_both_modes() {
    let mut names = BTreeSet::new();
    let mut failures = String::new();
    for (file, case) in cases() {
        assert!(names.insert(case.name.clone()), "two cases are called `{}`", case.name);
        for (mode, expected) in [(Mode::Literal, &case.literal), (Mode::Sound, &case.sound)] {
            let difference = difference(expected, &case.run(mode));
            if !difference.is_empty() {
                failures += &format!("{file}: {}, {mode:?}\n  {}\n{difference}", case.name, case.story);
            }
        }
    }
    assert!(names.len() >= 40, "only {} cases were found", names.len());
    assert!(failures.is_empty(), "\n{failures}");
}

/// Entries of a ring in `ebpf/themis.h`.
const RING_OF_C: u16 = 256;

/// Lets `ebpf/vectors.c` answer lines of events; `None` if this machine has no C compiler.
fn answers_of_c(lines: &str) -> Option<Vec<String>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("ebpf");
    let made = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("vectors-{}", std::process::id()));
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&made).arg(folder.join("vectors.c"));
    match compiler.status() {
        Err(_) => return None,
        Ok(status) => assert!(status.success(), "the C file does not compile"),
    }
    let mut program = Command::new(&made).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut input, lines) = (program.stdin.take().unwrap(), lines.to_owned());
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()).unwrap());
    let output = program.wait_with_output().unwrap();
    writer.join().unwrap();
    std::fs::remove_file(made).unwrap();
    assert!(output.status.success());
    Some(String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect())
}

/// The first line of a new flow.
fn rule_of_c(settings: &Settings) -> String {
    let mask = (1u32 << settings.width.bits()) - 1;
    let Settings { slots, ring, age_limit, watch, .. } = *settings;
    format!("rule {mask} {slots} {ring} {age_limit} {}\n", u8::from(watch))
}

/// The C in `ebpf/` answers all vectors as the sound mode does, and a hundred thousand events drawn at random.
#[test]
fn the_c_for_ebpf_gives_the_same_answers() {
    let (mut lines, mut expected) = (String::new(), vec![]);
    for (_, case) in cases().into_iter().filter(|(_, case)| case.ring <= RING_OF_C) {
        lines += &rule_of_c(&case.settings(Mode::Sound));
        expected.push("rule".to_owned());
        for event in &case.events {
            let (kind, psns) = event.split_once(' ').unwrap();
            for psn in psns.split(' ').flat_map(range) {
                writeln!(lines, "{kind} {psn}").unwrap();
            }
        }
        expected.extend(case.sound);
    }
    let mut state = 1u64;
    let mut draw = |below: u32| {
        // Knuth's constants for a linear congruential generator.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) as u32) % below
    };
    for n in 0..100 {
        let width = [Width::W8, Width::W16, Width::W24][n % 3];
        // Numbers of slots that one-byte entries can tell apart, and others.
        let slots = if n % 3 == 2 { [1, 3, 6, 12][draw(4) as usize] } else { [1, 2, 4, 8][draw(4) as usize] };
        let ring = 1 + draw(u32::from(RING_OF_C)) as u16;
        let settings = Settings {
            width,
            age_limit: 1 + draw(u32::from(ring)) as u16,
            watch: draw(2) == 1,
            ..Settings::sound(slots, ring)
        };
        lines += &rule_of_c(&settings);
        expected.push("rule".to_owned());
        let rule = Rule::new(settings).unwrap();
        let (mut flow, mut ring) = (Flow::new(), vec![0; rule.ring_len()]);
        // The stream crosses the end of the PSN space.
        let mut newest = Psn::new((1 << 24) - 200);
        for _ in 0..1000 {
            let back = draw(12);
            let psn = newest.add((1 << 24) - back);
            match draw(8) {
                0 => {
                    writeln!(lines, "nack {psn}").unwrap();
                    expected.push(match rule.on_nack(&mut flow, &ring, psn) {
                        Verdict::Forward(reason) => format!("nack {psn}: forward {}", reason.name()),
                        Verdict::Block(reason) => format!("nack {psn}: block {}", reason.name()),
                    });
                }
                1 => {
                    writeln!(lines, "ack {psn}").unwrap();
                    rule.on_ack(&mut flow, psn);
                }
                kind => {
                    let psn = if kind == 2 { psn } else { newest.add(1 + draw(3)) };
                    newest = if psn.is_after(newest) { psn } else { newest };
                    writeln!(lines, "data {psn}").unwrap();
                    let owed = rule.on_depart(&mut flow, &mut ring, psn);
                    expected.extend(owed.map(|owed| format!("data {psn}: owe {owed}")));
                }
            }
        }
        let (psn, base) = (newest.value(), draw(1 << 16));
        writeln!(lines, "path {psn} {base}").unwrap();
        let path = themis::path(newest, themis::Slots::new(slots).unwrap(), base as u16);
        expected.push(format!("path {path}"));
    }
    let Some(answers) = answers_of_c(&lines) else {
        // A test that passes does not show what `println!` writes.
        std::io::stderr().write_all(b"LEFT OUT: the C for eBPF (no C compiler)\n").unwrap();
        return;
    };
    assert!(expected.len() > 10_000);
    assert_eq!(difference(&expected, &answers), "");
}
