//! Random damage to traces that are right: no panic, every error has its byte in the file, and no more nodes than the file justifies.

use super::*;
use ::files::damage::Draws;
use std::collections::BTreeSet;

/// Damaged files per run of the test.
const FILES: u64 = 20_000;

/// A trace with all types of nodes.
fn whole() -> Vec<u8> {
    let mut metadata = Writer::node(1, "init", 1, &[]);
    let inputs = Writer::default().bytes(1, b"['[{\"pg_name\":\"3\",\"ranks\":[0,1]}]']").0.clone();
    metadata.bytes(8, &inputs);
    let mut memory = Writer::node(2, "load", 2, &[1]);
    memory.attribute("tensor_size", 13, 1 << 20).bytes(4, &[1, 9]);
    let mut compute = Writer::compute(3, 12, &[2]);
    compute.attribute("num_ops", 9, 1 << 30).attribute("is_cpu_op", 27, 1).text("rf", "é");
    trace(&[
        metadata,
        memory,
        compute,
        Writer::collective(4, 7, 1 << 20, "3", &[3]),
        Writer::message(5, 5, 1, 4096, 7, &[4]),
        Writer::message(6, 6, 1, 4096, 7, &[4, 300]),
    ])
}

/// Damages `files` traces; returns the kinds of errors.
fn damage(files: u64) -> BTreeSet<String> {
    let mut draws = Draws(2);
    let mut kinds = BTreeSet::new();
    let samples = [whole(), bytes(SENDER), bytes(RECEIVER)];
    for number in 0..files {
        let mut file = samples[draws.below(samples.len())].clone();
        for _ in 0..=draws.below(3) {
            draws.damage(&mut file);
        }
        match read(&file) {
            Ok(program) => {
                assert!(program.nodes.len() <= file.len(), "{number}");
                let edges: usize = program.nodes.iter().map(|node| node.dependencies.len()).sum();
                assert!(edges as u64 + program.notes.dangling <= file.len() as u64, "{number}");
                // What an import writes of it decides the same run.
                let Program { nodes, groups, .. } = read(&write::plain(&program)).unwrap();
                assert_eq!((nodes, groups), (program.nodes, program.groups), "{number}");
            }
            Err((at, text)) => {
                assert!(at <= file.len() as u64, "{number}: byte {at} of {}: {text}", file.len());
                kinds.insert(text.chars().filter(|c| !c.is_ascii_digit()).take(40).collect());
            }
        }
    }
    kinds
}

#[test]
fn damaged_traces_give_nodes_or_an_error_with_its_byte() {
    let kinds = damage(FILES);
    assert!(kinds.len() > 30, "{kinds:#?}");
}

/// Run it by `cargo test --release -p scenario --lib -- --ignored a_million_damaged_traces`.
#[test]
#[ignore = "takes a minute"]
fn a_million_damaged_traces() {
    damage(1_000_000);
}

#[test]
fn damaged_traces_never_panic_on_their_way_to_a_plan() {
    let folder = tempfile::tempdir().unwrap();
    let mut draws = Draws(4);
    let (mut right, mut wrong) = (0, 0);
    let other = trace(&[
        Writer::collective(1, 7, 1 << 20, "3", &[]),
        Writer::message(2, 6, 0, 4096, 7, &[]),
        Writer::message(3, 5, 0, 4096, 7, &[]),
    ]);
    for number in 0..1_000 {
        let mut files = [whole(), other.clone()];
        draws.damage(&mut files[number % 2]);
        let groups = if number % 3 > 0 { ", groups = \"g.json\"" } else { "" };
        match super::workload::checked(folder.path(), &files, groups) {
            Ok(_) => right += 1,
            Err(_) => wrong += 1,
        }
    }
    assert!(right > 50 && wrong > 50, "{right} right, {wrong} wrong");
}
