//! Who may use whom, as ARCHITECTURE.md draws it. A new arrow is a decision: make it there first.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

const ARROWS: &[(&str, &[&str])] = &[
    ("themis", &[]),
    ("wire", &["themis"]),
    ("model", &["themis"]),
    ("schemes", &["model", "rnic", "themis"]),
    ("rnic", &["model"]),
    ("engine", &["model"]),
    ("scenario", &["model", "rnic", "schemes"]),
    ("sim", &["engine", "model", "rnic", "schemes"]),
    ("results", &["engine", "model"]),
    ("lab", &["engine", "model", "results", "scenario", "sim"]),
    ("capture", &["engine", "lab", "model", "results", "wire"]),
    ("explain", &["engine", "lab", "model", "results", "scenario"]),
    ("papers", &["engine", "lab", "model", "results", "rnic", "scenario", "schemes", "themis"]),
    ("report", &["lab", "model", "papers", "results", "scenario"]),
    (
        "ropewalk",
        &[
            "capture", "engine", "explain", "lab", "model", "papers", "report", "results", "rnic",
            "scenario", "schemes",
        ],
    ),
    // Python stands on the rooms; `ropewalk` is there for the command that the package installs.
    ("python", &["capture", "explain", "lab", "papers", "report", "results", "ropewalk", "scenario"]),
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
            .filter(|d| d["kind"].is_null()) // tests may use what they like
            .filter_map(|d| d["name"].as_str())
            .filter(|d| names.contains(d))
            .collect();
        let allowed: BTreeSet<&str> = drawn[name].iter().copied().collect();
        assert!(uses.is_subset(&allowed), "{name} uses {uses:?}, drawn are {allowed:?}");
    }
}

#[test]
fn the_mechanism_depends_on_nothing() {
    let manifest = include_str!("../../themis/Cargo.toml");
    let dependencies = manifest.split("[dependencies]").nth(1).expect("a table of dependencies");
    let lines = dependencies.lines().take_while(|l| !l.starts_with('[')).filter(|l| !l.trim().is_empty());
    assert_eq!(lines.count(), 0);
}

#[test]
fn the_engine_names_no_part() {
    let names = ["ecmp", "drill", "themis", "dcqcn", "nic_sr", "go_back_n"];
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../engine/src");
    let mut files = vec![root];
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(std::fs::read_dir(path).expect("a folder").map(|e| e.expect("an entry").path()));
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a source file").to_lowercase();
        for name in names {
            assert!(!text.contains(name), "{} names {name}", path.display());
        }
    }
}
