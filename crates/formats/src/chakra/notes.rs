//! Warnings of what a trace has and the simulation leaves out.

use super::{Notes, Program, Work};
use finding::{Code, Finding, code};
use std::collections::BTreeMap;

/// Warnings about the programs of a trace, whose first rank is `first`; they call the trace `file`.
pub fn warnings(file: &str, first: u32, programs: &[Program]) -> Vec<Finding> {
    let mut warnings = Vec::new();
    let mut warn = |code: Code, text: String| warnings.push(code.at("file", text));
    let sum = |of: fn(&Notes) -> u64| programs.iter().map(|program| of(&program.notes)).sum::<u64>();
    if let Some(schema) = programs.iter().find_map(|program| program.notes.schema.as_ref()) {
        let found = if schema.is_empty() {
            "no schema version".to_owned()
        } else {
            format!("the schema version `{schema}`")
        };
        let text = "ropewalk reads it as the versions 0.0.4 and 1.0.0, which have the same fields";
        warn(code::READ_AS, format!("{file} has {found}; {text}"));
    }
    let dangling = sum(|notes| notes.dangling);
    let first = programs.iter().zip(first..).find_map(|(program, rank)| {
        program
            .notes
            .first_dangling
            .map(|(node, missing)| format!("node {node} of rank {rank} waits for node {missing}"))
    });
    if let Some(first) = first {
        let text = format!("dependencies of {file} on nodes that do not exist are dropped: {dangling}");
        warn(code::LEFT_OUT, format!("{text}; the first: {first}"));
    }
    let sends = |program: &&Program| {
        let moves = |work: &Work| matches!(work, Work::Send(_) | Work::Receive(_) | Work::Collective { .. });
        program.nodes.iter().any(|node| moves(&node.work))
    };
    let silent =
        programs.iter().filter(|program| !sends(program)).map(|program| program.notes.launches).sum();
    for (code, count, what) in [
        (
            code::LEFT_OUT,
            silent,
            "launches of communication on the CPU for which the GPU of the rank has no kernel, so that nothing is sent",
        ),
        (
            code::NO_EFFECT,
            sum(|notes| notes.unknown_fields),
            "fields of nodes that the schema does not have, and that have no effect",
        ),
        (
            code::NO_EFFECT,
            sum(|notes| notes.partial),
            "collectives with a false entry in `involved_dim`, which has no effect: all ranks of the group take part",
        ),
        (
            code::READ_AS,
            sum(|notes| notes.on_cpu),
            "messages and collectives with `is_cpu_op`, which run as those of GPUs",
        ),
        (code::NO_EFFECT, sum(|notes| notes.invalid), "nodes of the type INVALID_NODE, which take no time"),
        (
            code::LEFT_OUT,
            sum(|notes| notes.bad_groups),
            "metadata nodes whose process groups are no JSON and are left out",
        ),
    ] {
        if count > 0 {
            warn(code, format!("{what} ({file}): {count}"));
        }
    }
    let mut unused: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, count) in programs.iter().flat_map(|program| &program.unused) {
        *unused.entry(name).or_default() += count;
    }
    if !unused.is_empty() {
        const MOST: usize = 12;
        let mut names: Vec<String> =
            unused.iter().take(MOST).map(|(name, n)| format!("`{name}` ({n})")).collect();
        if unused.len() > MOST {
            names.push(format!("and {} more", unused.len() - MOST));
        }
        let text = format!("attributes of {file} that have no effect, with their numbers of nodes");
        warn(code::NO_EFFECT, format!("{text}: {}", names.join(", ")));
    }
    warnings
}
