//! Warnings of what a trace has and the simulation leaves out.

use super::{Notes, Program, Work};
use std::collections::BTreeMap;

/// Warnings about the programs of a trace, whose first rank is `first`; they call the trace `file`.
pub(crate) fn warnings(file: &str, first: u32, programs: &[Program]) -> Vec<String> {
    let mut warnings = Vec::new();
    let sum = |of: fn(&Notes) -> u64| programs.iter().map(|program| of(&program.notes)).sum::<u64>();
    if let Some(schema) = programs.iter().find_map(|program| program.notes.schema.as_ref()) {
        let found = if schema.is_empty() {
            "no schema version".to_owned()
        } else {
            format!("the schema version `{schema}`")
        };
        warnings.push(format!(
            "{file} has {found}; ropewalk reads it as the versions 0.0.4 and 1.0.0, which have the same fields"
        ));
    }
    let dangling = sum(|notes| notes.dangling);
    let first = programs.iter().zip(first..).find_map(|(program, rank)| {
        program
            .notes
            .first_dangling
            .map(|(node, missing)| format!("node {node} of rank {rank} waits for node {missing}"))
    });
    if let Some(first) = first {
        warnings.push(format!(
            "dependencies of {file} on nodes that do not exist are dropped: {dangling}; the first: {first}"
        ));
    }
    let sends = |program: &&Program| {
        let moves = |work: &Work| matches!(work, Work::Send(_) | Work::Receive(_) | Work::Collective { .. });
        program.nodes.iter().any(|node| moves(&node.work))
    };
    let silent =
        programs.iter().filter(|program| !sends(program)).map(|program| program.notes.launches).sum();
    for (count, what) in [
        (
            silent,
            "launches of communication on the CPU for which the GPU of the rank has no kernel, so that nothing is sent",
        ),
        (
            sum(|notes| notes.unknown_fields),
            "fields of nodes that the schema does not have, and that have no effect",
        ),
        (
            sum(|notes| notes.partial),
            "collectives with a false entry in `involved_dim`, which has no effect: all ranks of the group take part",
        ),
        (sum(|notes| notes.on_cpu), "messages and collectives with `is_cpu_op`, which run as those of GPUs"),
        (sum(|notes| notes.invalid), "nodes of the type INVALID_NODE, which take no time"),
        (sum(|notes| notes.bad_groups), "metadata nodes whose process groups are no JSON and are left out"),
    ] {
        if count > 0 {
            warnings.push(format!("{what} ({file}): {count}"));
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
        warnings.push(format!(
            "attributes of {file} that have no effect, with their numbers of nodes: {}",
            names.join(", ")
        ));
    }
    warnings
}
