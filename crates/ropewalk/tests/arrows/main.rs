//! The allowed dependencies between crates, as in the picture of ARCHITECTURE.md. Decide on a new arrow there first.

mod circles;
mod sources;

use rnic::{CongestionConfig, TransportConfig};
use schemes::{FeedbackConfig, SchemeConfig};
use sources::{Source, sources, words};
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

const ARROWS: &[(&str, &[&str])] = &[
    ("themis", &[]),
    ("finding", &[]),
    ("files", &["finding"]),
    ("collective", &[]),
    ("formats", &["collective", "files", "finding"]),
    ("ns3", &["files", "finding", "formats", "model"]),
    ("wire", &["themis"]),
    ("tor", &["themis", "wire"]),
    ("checkers", &["themis", "tor", "wire"]),
    ("model", &["themis"]),
    ("schemes", &["finding", "model", "rnic", "themis"]),
    ("rnic", &["finding", "model"]),
    ("ports", &[]),
    ("bump", &["model", "rnic", "wire"]),
    ("engine", &["model"]),
    ("audit", &["engine", "model"]),
    ("serving", &["model"]),
    (
        "scenario",
        &["collective", "files", "finding", "formats", "model", "ns3", "rnic", "schemes", "serving"],
    ),
    ("sim", &["engine", "model", "rnic", "schemes"]),
    ("results", &["engine", "model", "serving"]),
    ("fast", &["engine", "finding", "model", "scenario", "sim"]),
    ("lab", &["engine", "fast", "model", "results", "scenario", "serving", "sim"]),
    ("capture", &["engine", "lab", "model", "ports", "results", "scenario", "wire"]),
    ("busbw", &["collective", "finding", "lab", "model", "results", "scenario"]),
    ("counters", &["finding", "results"]),
    ("site", &["files", "finding", "model", "rnic", "scenario"]),
    ("study", &["engine", "files", "finding", "lab", "model", "results", "rnic", "scenario"]),
    ("explain", &["engine", "lab", "model", "results", "scenario"]),
    ("farm", &["audit", "engine", "explain", "lab", "model", "results", "scenario", "sim"]),
    ("papers", &["engine", "explain", "lab", "model", "results", "rnic", "scenario", "schemes", "themis"]),
    ("report", &["lab", "model", "papers", "results", "scenario", "schemes"]),
    (
        "ropewalk",
        &[
            "busbw", "capture", "counters", "engine", "explain", "lab", "model", "papers", "report",
            "results", "scenario", "schemes", "site", "study",
        ],
    ),
    ("workshop", &["farm", "lab", "papers", "results", "ropewalk", "scenario"]),
    ("frames", &["bump", "checkers", "model", "ports", "results", "rnic", "scenario", "tor"]),
    ("abi", &["lab", "model", "results", "scenario"]),
    // The face for schemes outside the repository, and the example that `new-scheme` writes.
    ("strand", &["farm", "finding", "model", "rnic", "ropewalk", "schemes"]),
    ("mine", &["strand"]),
    ("browser", &["engine", "model", "results", "scenario", "schemes", "sim"]),
    // Python uses the other crates; it uses `ropewalk` only for the command that the package installs.
    (
        "python",
        &[
            "busbw", "capture", "counters", "explain", "finding", "lab", "model", "papers", "report",
            "results", "rnic", "ropewalk", "scenario", "schemes",
        ],
    ),
];

#[test]
fn the_crates_use_each_other_only_as_drawn() {
    let out = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--no-deps", "--offline", "--manifest-path"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .output()
        .expect("cargo runs");
    let metadata: serde_json::Value = serde_json::from_slice(&out.stdout).expect("cargo metadata is JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let names: BTreeSet<&str> = packages.iter().filter_map(|p| p["name"].as_str()).collect();
    let drawn: BTreeMap<&str, &[&str]> = ARROWS.iter().copied().collect();
    assert_eq!(names, drawn.keys().copied().collect(), "crates of the workspace");
    for package in packages {
        let name = package["name"].as_str().expect("a name");
        let uses: BTreeSet<&str> = package["dependencies"]
            .as_array()
            .expect("dependencies")
            .iter()
            .filter(|d| d["kind"].is_null()) // tests may use any crate
            .filter_map(|d| d["name"].as_str())
            .filter(|d| names.contains(d))
            .collect();
        let allowed: BTreeSet<&str> = drawn[name].iter().copied().collect();
        assert!(uses.is_subset(&allowed), "{name} uses {uses:?}, drawn are {allowed:?}");
    }
}

#[test]
fn the_mechanism_depends_on_nothing() {
    let manifest = include_str!("../../../themis/Cargo.toml");
    let dependencies = manifest.split("[dependencies]").nth(1).expect("a table of dependencies");
    let lines = dependencies.lines().take_while(|l| !l.starts_with('[')).filter(|l| !l.trim().is_empty());
    assert_eq!(lines.count(), 0);
}

/// Files and folders below `crates` and `frames` that may name parts: the parts' own crates, and those whose subject single parts are.
const ROOMS: &[&str] = &[
    "rnic/src",
    "schemes/src",
    "themis/src",
    "checkers/src", // checks of captures, whose subjects are two ways of recovery and Themis
    "tor/src",      // the software ToR, whose subject is Themis
    "papers/src",   // the papers' experiments
    "study/src",    // studies, which compare single schemes
    "ns3/src",      // settings of another simulator, and what they are called here
    "site/src",     // settings of switches and NICs, and what they are called here
    "scenario/src/import", // the command that reads them
    "ropewalk/src/commands/memory.rs", // the formulas of two schemes
    "program/src/tor.rs", // the software ToR
];

/// Single names elsewhere: file below `crates`, name, and the reason.
const MENTIONS: &[(&str, &str, &str)] = &[
    ("busbw/src/suspects.rs", "ar", "a setting of a suspect's scenario"),
    ("busbw/src/suspects.rs", "dcqcn", "a suspect"),
    ("busbw/src/suspects.rs", "ecmp", "a suspect"),
    ("farm/src/imports.rs", "hpcc", "the simulator from which `ropewalk import` reads"),
    ("farm/src/program.rs", "ecmp", "an argument of `ropewalk compare`"),
    ("farm/src/program.rs", "hpcc", "the simulator from which `ropewalk import` reads"),
    ("farm/src/program.rs", "themis", "an argument of `ropewalk compare`"),
    ("ropewalk/src/cli.rs", "ar", "an example in the help"),
    ("ropewalk/src/cli.rs", "dcqcn", "an example in the help"),
    ("ropewalk/src/cli.rs", "ecmp", "an example in the help"),
    ("ropewalk/src/cli.rs", "flowcut", "an argument of `ropewalk memory`"),
    ("ropewalk/src/cli.rs", "hpcc", "the simulator from which `ropewalk import` reads"),
    ("ropewalk/src/cli.rs", "long-haul", "an example in the help"),
    ("ropewalk/src/cli.rs", "themis", "an example in the help"),
    ("ropewalk/src/commands/import.rs", "hpcc", "the simulator from which `ropewalk import` reads"),
    ("workshop/src/reference.rs", "hpcc", "the simulator whose keys the documentation lists"),
    ("formats/src/foreign.rs", "hpcc", "the simulator whose files it recognises"),
    ("mine/src/transport.rs", "nic-sr", "the recovery mode of which the template makes a variant"),
    ("program/src/cli.rs", "go-back-n", "what `tor check` expects"),
    ("program/src/cli.rs", "nic-sr", "what `tor check` expects"),
    ("program/src/cli.rs", "themis", "what `tor check` expects"),
    ("scenario/src/builtin.rs", "dcp", "the name of a scenario"),
    ("scenario/src/builtin.rs", "mrc", "the name of a scenario"),
    ("scenario/src/builtin.rs", "dlbf", "the name of a scenario"),
    ("scenario/src/builtin.rs", "ethereal", "the name of a scenario"),
    ("scenario/src/builtin.rs", "long-haul", "the name of a scenario"),
    ("scenario/src/builtin.rs", "ndp", "the name of a scenario"),
    ("scenario/src/builtin.rs", "strack", "the name of a scenario"),
    ("scenario/src/sweep.rs", "themis", "an example in an error message"),
];

/// Names that are English words as well. They count as a variant, or in a string behind the key of their table.
const WORDS: [&str; 3] = ["ideal", "minimal", "none"];

/// Names of a part: in a scenario, as a module, and as a variant.
struct Part {
    name: &'static str,
    module: String,
    variant: String,
}

impl Part {
    fn new(name: &'static str, config: &impl std::fmt::Debug) -> Self {
        let text = format!("{config:?}");
        let variant = text.split('(').next().unwrap_or_default().to_owned();
        Part { name, module: name.replace('-', "_"), variant }
    }

    fn all() -> Vec<Part> {
        let schemes =
            SchemeConfig::names().iter().map(|name| Part::new(name, &SchemeConfig::named(name).unwrap()));
        let feedbacks =
            FeedbackConfig::NAMES.iter().map(|name| Part::new(name, &FeedbackConfig::named(name).unwrap()));
        let transports = TransportConfig::all().map(|mode| Part::new(mode.name(), &mode));
        let controls = CongestionConfig::all().map(|control| Part::new(control.name(), &control));
        schemes.chain(feedbacks).chain(transports).chain(controls).collect()
    }

    /// True if this code or one of these strings names the part.
    fn stands_in(&self, source: &Source) -> bool {
        if WORDS.contains(&self.name) {
            let keys =
                ["scheme", "feedback", "transport", "congestion"].map(|key| format!("{key}.{}", self.name));
            return source.code.contains(&format!("Config::{}", self.variant))
                || source.strings.iter().any(|text| keys.iter().any(|key| has_word(text, key)));
        }
        let module = |word: &str, rest: &str| {
            // The crate `themis` is the mechanism; model and wire take PSNs from it.
            word == self.module && !(word == "themis" && rest.starts_with("::"))
        };
        words(&source.code).any(|(word, rest)| word == self.variant || module(word, rest))
            || source.strings.iter().any(|text| has_word(&text.to_lowercase(), self.name))
    }
}

/// True if a text contains a name, and not only as a part of a longer name.
fn has_word(text: &str, name: &str) -> bool {
    let longer = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    text.match_indices(name)
        .any(|(at, _)| !text[..at].ends_with(longer) && !text[at + name.len()..].starts_with(longer))
}

/// Comments may name a part as an example; code asks it for its facts instead.
#[test]
fn no_part_is_named_outside_its_room() {
    let parts = Part::all();
    let mut named = BTreeSet::new();
    for (path, text) in sources() {
        if !ROOMS.iter().any(|room| path.starts_with(room)) {
            let source = Source::new(&text);
            let here = parts.iter().filter(|part| part.stands_in(&source));
            named.extend(here.map(|part| (path.clone(), part.name)));
        }
    }
    let allowed = MENTIONS.iter().map(|&(path, name, _)| (path.to_owned(), name)).collect();
    assert_eq!(named, allowed, "found, and allowed");
}

#[test]
fn names_are_found_in_code_and_strings_and_not_in_comments() {
    let found = |text: &str| -> Vec<&str> {
        let source = Source::new(text);
        Part::all().iter().filter(|part| part.stands_in(&source)).map(|part| part.name).collect()
    };
    assert_eq!(found("// ecmp, \"rps\"\nlet x = 1; /* */ let minimal = None;"), [""; 0]);
    assert_eq!(found("let x = '\"'; // \"rps\""), [""; 0]);
    assert_eq!(found("let name = \"scheme.rps={}\";"), ["rps"]);
    assert_eq!(found("set(r#\"a \"go-back-n\" b\"#)"), ["go-back-n"]);
    assert_eq!(
        found("matches!(c, TransportConfig::Ideal(_) | TransportConfig::NicSr(_))"),
        ["nic-sr", "ideal"]
    );
    assert_eq!(found("use rnic::congestion::hpcc;"), ["hpcc"]);
    assert_eq!(found("use themis::Psn; let flowlets = \"themis-fig1\";"), [""; 0]);
    assert_eq!(found("let a = 1;\n#[cfg(test)]\nmod tests { const A: &str = \"ecmp\"; }"), [""; 0]);
}
