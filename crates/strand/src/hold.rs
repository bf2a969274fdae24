//! Rules that every scheme must keep, as functions for tests.

use crate::Entry;
use farm::Farm;
use farm::trial::{Verdict, of_text};
use schemes::SchemeConfig;
use toml::{Table, Value};

/// Fabrics and troubles that every scheme meets.
const PLACES: &[(&str, &str)] = &[
    (
        "leaves and spines",
        "[topology.leaf-spine]\nleaves = 4\nspines = 4\nhosts-per-leaf = 4\n[[workload]]\npermutation = { bytes = \"200KB\" }",
    ),
    ("a fat tree", "[topology.fat-tree]\nk = 4\n[[workload]]\nall-to-all = { bytes = \"20KB\" }"),
    (
        "small buffers",
        "[topology.leaf-spine]\nleaves = 3\nspines = 3\nhosts-per-leaf = 3\n[switch]\nbuffer = \"200KB\"\n[[workload]]\nincast = { bytes = \"100KB\", senders = 6 }",
    ),
    (
        "a link that fails and comes back",
        "[topology.leaf-spine]\nleaves = 3\nspines = 3\nhosts-per-leaf = 3\n[[failure]]\nlinks = [\"leaf0 - spine1\"]\nat = \"10us\"\nuntil = \"60us\"\n[[workload]]\npermutation = { bytes = \"200KB\" }",
    ),
];

/// Holds a scheme against the contract between schemes and engines: see [`schemes::contract`].
///
/// # Panics
/// If the scheme breaks a rule.
pub fn contract(schemes: &[Entry], name: &str) {
    schemes::own::add(schemes);
    schemes::contract::hold(name);
}

/// Runs every [`crate::Recipe::TRIALS`] of a scheme on both engines, with half windows, and checks that they agree, that each packet is
/// accounted for, and that no flow is faster than light.
///
/// # Panics
/// If a rule is broken, or if the scheme runs nowhere.
pub fn twins(schemes: &[Entry], name: &str) {
    schemes::own::add(schemes);
    for (number, scheme) in trials(name).iter().enumerate() {
        let ran = PLACES.iter().filter(|(place, text)| passes(place, text, scheme)).count();
        assert!(ran > 0, "trial {number} of `{name}` suits none of the scenarios");
    }
}

/// Runs random scenarios with a scheme, and checks the same rules. `TRIALS=1000` in the environment makes a thousand in place of 40.
///
/// # Panics
/// If a rule is broken; the text says which, and has the scenario.
pub fn fuzz(schemes: &[Entry], name: &str) {
    schemes::own::add(schemes);
    let count = std::env::var("TRIALS").ok().and_then(|n| n.parse().ok()).unwrap_or(40_u64);
    let trials = trials(name);
    let (mut ran, mut number) = (0, 0);
    while ran < count && number < 20 * count {
        if let Some(text) = Farm::scenario(7, number) {
            ran +=
                u64::from(passes(&format!("trial {number}"), &text, &trials[number as usize % trials.len()]));
        }
        number += 1;
    }
    assert!(ran >= count.min(10), "only {ran} of {number} random scenarios suit `{name}`");
}

/// The texts of a scheme's trials as tables: `[scheme.NAME]`, and what follows it.
fn trials(name: &str) -> Vec<Table> {
    let Some(scheme) = SchemeConfig::named(name) else { panic!("there is no scheme `{name}`") };
    let read = |text: &&str| format!("[scheme.{name}]\n{text}").parse().expect("a trial is TOML");
    let trials: Vec<Table> = scheme.trials().iter().map(read).collect();
    assert!(
        !trials.is_empty(),
        "`{name}` has no trials: its settings with their defaults are the trial \"\""
    );
    trials
}

/// Whether a scenario with this scheme runs; false if a part does not suit another part.
fn passes(what: &str, text: &str, scheme: &Table) -> bool {
    let mut scenario: Table = text.parse().expect("a scenario is TOML");
    scenario.remove("class");
    scenario.remove("switch-role");
    for (key, value) in scheme {
        match (scenario.get_mut(key), value) {
            (Some(Value::Table(known)), Value::Table(more)) if key != "scheme" => known.extend(more.clone()),
            _ => drop(scenario.insert(key.clone(), value.clone())),
        }
    }
    let text = scenario.to_string();
    match of_text(&format!("{what}.toml"), &text) {
        Verdict::Passed(_) => true,
        Verdict::Refused | Verdict::TooLong => false,
        Verdict::Failed(fault) => panic!("{what}: {}: {}\n\n{text}", fault.rule, fault.detail),
    }
}
