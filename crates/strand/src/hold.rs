//! Rules that every part must keep, as functions for tests.

use crate::Entry;
use farm::Farm;
use farm::trial::{Verdict, of_text};
use rnic::{CongestionConfig, TransportConfig};
use schemes::SchemeConfig;
use toml::{Table, Value};

/// Fabrics and troubles that every part meets.
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

/// Holds the parts of this name against the contracts between parts and engines: see [`schemes::contract`] and [`rnic::contract`].
///
/// # Panics
/// If a part breaks a rule, or if there is none of that name.
pub fn contract(parts: &[Entry], name: &str) {
    for part in named(parts, name) {
        match part.table() {
            "scheme" => schemes::contract::hold(name),
            "nic.congestion" => rnic::contract::hold_control(name),
            _ => rnic::contract::hold_transport(name),
        }
    }
}

/// Runs the parts of this name, with each of their trials ([`crate::Recipe::TRIALS`], [`crate::Control::TRIALS`],
/// [`crate::Transport::TRIALS`]), on both engines and with half windows. Checks that they agree, that each packet is accounted for, and that
/// no flow is faster than light.
///
/// # Panics
/// If a rule is broken, or if a trial runs nowhere.
pub fn twins(parts: &[Entry], name: &str) {
    for part in named(parts, name) {
        for (number, trial) in trials(part).iter().enumerate() {
            let ran = PLACES.iter().filter(|(place, text)| passes(place, text, trial)).count();
            assert!(ran > 0, "trial {number} of `{}.{name}` suits none of the scenarios", part.table());
        }
    }
}

/// Runs random scenarios with the parts of this name, and checks the same rules. `TRIALS=1000` in the environment makes a thousand in place
/// of 40.
///
/// # Panics
/// If a rule is broken; the text says which, and has the scenario.
pub fn fuzz(parts: &[Entry], name: &str) {
    let count = std::env::var("TRIALS").ok().and_then(|n| n.parse().ok()).unwrap_or(40_u64);
    for part in named(parts, name) {
        let trials = trials(part);
        let (mut ran, mut number) = (0, 0);
        while ran < count && number < 20 * count {
            if let Some(text) = Farm::scenario(7, number) {
                let trial = &trials[number as usize % trials.len()];
                ran += u64::from(passes(&format!("trial {number}"), &text, trial));
            }
            number += 1;
        }
        let table = part.table();
        assert!(ran >= count.min(10), "only {ran} of {number} random scenarios suit `{table}.{name}`");
    }
}

/// Adds the parts, and returns those of this name.
fn named<'a>(parts: &'a [Entry], name: &str) -> Vec<&'a Entry> {
    crate::add(parts);
    let named: Vec<_> = parts.iter().filter(|part| part.name() == name).collect();
    assert!(!named.is_empty(), "there is no part `{name}`");
    named
}

/// The texts of a part's trials as tables: its own, and what follows it.
fn trials(part: &Entry) -> Vec<Table> {
    let (table, name) = (part.table(), part.name());
    let texts = match table {
        "scheme" => SchemeConfig::named(name).map(|scheme| scheme.trials()),
        "nic.congestion" => CongestionConfig::named(name).map(|control| control.trials()),
        _ => TransportConfig::named(name).map(|mode| mode.trials()),
    };
    let read = |text: &&str| format!("[{table}.{name}]\n{text}").parse().expect("a trial is TOML");
    let trials: Vec<Table> = texts.unwrap_or_default().iter().map(read).collect();
    assert!(
        !trials.is_empty(),
        "`{table}.{name}` has no trials: its settings with their defaults are the trial \"\""
    );
    trials
}

/// Whether a scenario with this trial of a part runs; false if a part does not suit another part.
fn passes(what: &str, text: &str, trial: &Table) -> bool {
    let mut scenario: Table = text.parse().expect("a scenario is TOML");
    scenario.remove("class");
    scenario.remove("switch-role");
    for (key, value) in trial {
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
