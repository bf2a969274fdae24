//! `ropewalk list`: the parts of the program by name. Names and descriptions come from the code's own lists and doc comments.

use crate::cli::ListArgs;
use crate::print;
use lab::failure::Failure;
use papers::ALL;
use scenario::workload::Workload;
use scenario::{builtin, choices, hardware, keys, sweep};
use serde::Serialize;
use serde_json::{Map, json};
use std::borrow::Cow;

/// Names of one kind.
struct Kind {
    /// Name of the kind, as the command takes it.
    name: &'static str,
    /// Where a name of this kind is written.
    place: &'static str,
    entries: Vec<Entry>,
}

/// A name.
#[derive(Debug, Serialize)]
struct Entry {
    name: Cow<'static, str>,
    about: String,
}

/// The kinds that [`PRESETS`] stands for.
const PRESET_KINDS: [&str; 7] = ["nics", "nccl", "costs", "switches", "sonic", "servers", "clusters"];
/// Name of all kinds of presets together.
const PRESETS: &str = "presets";

/// Prints the names of some kinds, or of all.
///
/// # Errors
/// If there is no such kind.
pub fn run(args: &ListArgs) -> Result<(), Failure> {
    let all = all();
    let known: Vec<&str> = all.iter().map(|kind| kind.name).chain([PRESETS]).collect();
    if let Some(wrong) = args.kinds.iter().find(|kind| !known.contains(&kind.as_str())) {
        let near = scenario::suggestion(wrong, &known);
        return Err(Failure::Asked(format!("there is no kind `{wrong}`; {near}")));
    }
    let asked = |kind: &&Kind| {
        let named = |name: &str| args.kinds.iter().any(|asked| asked == name);
        args.kinds.is_empty() || named(kind.name) || named(PRESETS) && PRESET_KINDS.contains(&kind.name)
    };
    let shown: Vec<&Kind> = all.iter().filter(asked).collect();
    if args.json {
        let pairs = shown.iter().map(|kind| (kind.name.to_owned(), json!(kind.entries)));
        return print::out(&print::json(&pairs.collect::<Map<_, _>>()));
    }
    let sections: Vec<String> = shown.iter().map(|kind| section(kind)).collect();
    print::out(&sections.join("\n"))
}

fn section(kind: &Kind) -> String {
    let width = kind.entries.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
    let lines = kind.entries.iter().map(|entry| format!("  {:width$}  {}\n", entry.name, entry.about));
    format!("{} ({})\n{}", kind.name, kind.place, lines.collect::<String>())
}

fn all() -> Vec<Kind> {
    let of = |name, place, path: &[&str]| Kind { name, place, entries: entries(choices(path)) };
    let mut workloads = keys(&["workload"]);
    workloads.retain(|(key, _)| Workload::KINDS.contains(key));
    let builtin = |all: &[builtin::Builtin]| {
        all.iter().map(|b| Entry { name: b.name.into(), about: b.about().to_owned() }).collect()
    };
    let experiment =
        |e: &papers::Experiment| Entry { name: e.name.into(), about: format!("{} ({})", e.about, e.source) };
    let sonic = hardware::of_sonic_all().into_iter();
    vec![
        of("schemes", "[scheme.NAME], --schemes", &["scheme"]),
        of("feedbacks", "[feedback.NAME], --schemes SCHEME+NAME", &["feedback"]),
        of("transports", "[nic.transport.NAME]", &["nic", "transport"]),
        of("controls", "[nic.congestion.NAME]", &["nic", "congestion"]),
        of("topologies", "[topology.NAME]", &["topology"]),
        Kind { name: "workloads", place: "[[workload]] NAME = { ... }", entries: entries(workloads) },
        of("collectives", "[[workload]] collective = { kind = NAME }", &["workload", "collective", "kind"]),
        Kind { name: "nics", place: "nic.model", entries: builtin(hardware::NICS) },
        Kind { name: "nccl", place: "nic.nccl", entries: builtin(hardware::NCCL) },
        Kind { name: "costs", place: "server.cost", entries: builtin(hardware::COSTS) },
        Kind { name: "switches", place: "switch.model", entries: builtin(hardware::SWITCHES) },
        Kind {
            name: "sonic",
            place: "switch.model",
            entries: sonic.map(|(name, about)| Entry { name: name.into(), about }).collect(),
        },
        of("servers", "server.preset", &["server", "preset"]),
        of("clusters", "topology.rails.preset", &["topology", "rails", "preset"]),
        Kind { name: "scenarios", place: "ropewalk run NAME", entries: builtin(builtin::ALL) },
        Kind { name: "sweeps", place: "ropewalk sweep NAME", entries: builtin(sweep::BUILTIN) },
        Kind {
            name: "experiments",
            place: "ropewalk reproduce NAME",
            entries: ALL.iter().map(experiment).collect(),
        },
    ]
}

fn entries(named: Vec<(&'static str, String)>) -> Vec<Entry> {
    named.into_iter().map(|(name, about)| Entry { name: name.into(), about }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_names_and_every_name_a_line() {
        for kind in all() {
            assert!(!kind.entries.is_empty(), "{}", kind.name);
            for Entry { name, about } in &kind.entries {
                assert!(
                    !name.is_empty() && about.len() > 10 && !about.contains('\n'),
                    "{}: {name}: {about}",
                    kind.name
                );
            }
        }
    }
}
