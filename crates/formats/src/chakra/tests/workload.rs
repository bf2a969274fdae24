//! Traces as workloads of scenarios.

use super::*;
use scenario::{Checked, Source, check};
use std::path::Path;

/// A scenario whose GPUs run the trace in `t.RANK.et`, with more keys of the workload.
fn scenario(folder: &Path, gpus: usize, files: &[Vec<u8>], settings: &str) -> Result<Checked, String> {
    for (rank, file) in files.iter().enumerate() {
        std::fs::write(folder.join(format!("t.{rank}.et")), file).unwrap();
    }
    std::fs::write(folder.join("g.json"), "{\"1\": [0, 1], \"2\": [2, 3], \"3\": [0, 1]}").unwrap();
    let text = format!(
        "[topology.leaf-spine]\nleaves = 1\nspines = 1\nhosts-per-leaf = {gpus}\n[[workload]]\nchakra = {{ file = \"t.0.et\"{settings} }}\n"
    );
    let source = Source::new(folder.join("s.toml").display().to_string(), text);
    let folder = folder.display().to_string() + "/";
    check(&source, &[]).map_err(|e| e.located().replace(&folder, ""))
}

/// The number of messages and the warnings of a trace on four GPUs.
pub(super) fn checked(
    folder: &Path,
    files: &[Vec<u8>],
    settings: &str,
) -> Result<(usize, Vec<String>), String> {
    let checked = scenario(folder, 4, files, settings)?;
    Ok((checked.plan.messages.len(), checked.warnings()))
}

fn bytes_of(checked: &Checked) -> u64 {
    checked.plan.messages.iter().map(|message| message.bytes).sum()
}

fn refused(files: &[Vec<u8>], settings: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    checked(folder.path(), files, settings).unwrap_err()
}

#[test]
fn a_message_runs_from_rank_to_rank() {
    let folder = tempfile::tempdir().unwrap();
    let found = scenario(folder.path(), 2, &[SENDER, RECEIVER].map(bytes), "").unwrap();
    assert_eq!((found.plan.messages.len(), bytes_of(&found)), (1, 8192));
    assert_eq!(found.warnings(), Vec::<String>::new());
    let computations = found.plan.tasks.iter().filter(|task| task.role == model::plan::Role::Compute);
    assert_eq!(computations.map(|task| task.work).collect::<Vec<_>>().len(), 1);
}

#[test]
fn collectives_send_what_their_sizes_say() {
    let folder = tempfile::tempdir().unwrap();
    // By type: bytes of all messages among four ranks of 4,000 B each. An all-gather counts the contribution of a rank.
    for (kind, bytes) in
        [(0, 24_000), (2, 48_000), (6, 12_000), (7, 12_000), (8, 12_000), (5, 12_000), (1, 12_000)]
    {
        let files = vec![trace(&[Writer::collective(1, kind, 4_000, "", &[])]); 4];
        let found = scenario(folder.path(), 4, &files, "").unwrap();
        assert_eq!(bytes_of(&found), bytes, "type {kind}");
    }
    let barrier = vec![trace(&[Writer::collective(1, 9, 0, "", &[])]); 4];
    assert!(bytes_of(&scenario(folder.path(), 4, &barrier, "").unwrap()) <= 24);
}

#[test]
fn groups_come_from_a_file_or_from_the_trace() {
    let folder = tempfile::tempdir().unwrap();
    let in_group = |group: &str| trace(&[Writer::collective(1, 0, 4_000, group, &[])]);
    let files = ["1", "1", "2", "2"].map(in_group);
    let found = scenario(folder.path(), 4, &files, ", groups = \"g.json\"").unwrap();
    assert_eq!((found.plan.messages.len(), bytes_of(&found)), (8, 16_000));
    let text = "s.toml:6:19: t.0.et: rank 0 node 1 `coll`: its group \"1\" is not defined; `groups` names a JSON file with the groups of the trace";
    assert_eq!(refused(&files, ""), text);
}

#[test]
fn a_trace_of_one_rank_runs_on_all_ranks_in_groups_of_its_shape() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("h.json"), "{\"1\": [0, 1], \"2\": [0, 2, 4, 6]}").unwrap();
    let file =
        trace(&[Writer::collective(1, 0, 4_000, "1", &[]), Writer::collective(2, 0, 4_000, "2", &[1])]);
    let settings = ", groups = \"h.json\", replicate = \"spmd\"";
    let found = scenario(folder.path(), 8, std::slice::from_ref(&file), settings).unwrap();
    let mut groups: Vec<(u32, u32)> = Vec::new();
    for message in &found.plan.messages {
        let qp = &found.plan.qps[message.qp.index()];
        let (low, high) = (qp.from.0.min(qp.to.0), qp.from.0.max(qp.to.0));
        groups.push((low, high));
    }
    groups.sort_unstable();
    groups.dedup();
    let ring = [(0, 2), (2, 4), (4, 6), (0, 6), (1, 3), (3, 5), (5, 7), (1, 7)];
    let mut expected: Vec<(u32, u32)> = [(0, 1), (2, 3), (4, 5), (6, 7)].into_iter().chain(ring).collect();
    expected.sort_unstable();
    assert_eq!(groups, expected);
    let alone = refused(&[file], ", groups = \"g.json\"");
    assert!(alone.ends_with("needs several; `replicate = \"spmd\"` runs the file on all GPUs"), "{alone}");
}

#[test]
fn traces_that_cannot_run_are_refused() {
    let pair = |zero: &[Writer], one: &[Writer]| [trace(zero), trace(one)];
    let collective = |kind, data: &[u64]| Writer::collective(1, kind, 8, "", data);
    for (files, message) in [
        (
            pair(&[Writer::compute(1, 1, &[2]), Writer::compute(2, 1, &[1])], &[]),
            "nodes of t.0.et wait for each other: rank 0 node 1 `c` -> rank 0 node 2 `c` -> rank 0 node 1 `c`",
        ),
        (
            pair(
                &[Writer::message(1, 6, 1, 8, 0, &[]), Writer::message(2, 5, 1, 8, 0, &[1])],
                &[Writer::message(1, 6, 0, 8, 0, &[]), Writer::message(2, 5, 0, 8, 0, &[1])],
            ),
            "nodes of t.0.et wait for each other: rank 0 node 1 `m` -> rank 0 node 2 `m` -> rank 1 node 1 `m` -> rank 1 node 2 `m` -> rank 0 node 1 `m`",
        ),
        (
            pair(&[Writer::message(1, 6, 1, 8, 5, &[])], &[Writer::message(1, 5, 0, 8, 6, &[])]),
            "t.0.et: rank 0 node 1 `m`: rank 1 sends no message with tag 5 for it",
        ),
        (
            pair(&[Writer::message(1, 5, 2, 8, 5, &[])], &[]),
            "t.0.et: rank 0 node 1 `m`: there is no rank 2; the last one is 1",
        ),
        (
            pair(&[collective(0, &[])], &[collective(2, &[])]),
            "t.0.et: rank 0 node 1 `coll`: the ranks of a group do collectives in the same order, but this is a all-reduce and rank 1 node 1 `coll` is a all-gather",
        ),
        (
            pair(&[collective(0, &[]), Writer::collective(2, 0, 8, "", &[1])], &[collective(0, &[])]),
            "t.0.et: the ranks of the group \"\" do different numbers of collectives: rank 0 does 2, rank 1 does 1",
        ),
        (
            pair(&[Writer::compute(1, u64::MAX, &[])], &[]),
            "t.0.et: rank 0 node 1 `c`: a duration of 18446744073709551615 us is longer than 1000000s, the longest possible",
        ),
        (
            pair(
                &[Writer::collective(1, 2, 1 << 50, "", &[])],
                &[Writer::collective(1, 2, 1 << 50, "", &[])],
            ),
            "t.0.et: rank 0 node 1 `coll`: expected at most 1 PiB, found 2251799813685248 B",
        ),
        (
            pair(&[Writer::collective(1, 0, 8, "9", &[])], &[]),
            "t.0.et: rank 0 node 1 `coll`: its group \"9\" is not defined; `groups` names a JSON file with the groups of the trace",
        ),
        (pair(&[], &[]), "t.0.et has no nodes"),
    ] {
        assert_eq!(refused(&files, ""), format!("s.toml:6:19: {message}"));
    }
    let five = vec![trace(&[Writer::compute(1, 1, &[])]); 5];
    assert_eq!(refused(&five, ""), "s.toml:6:19: t.0.et has 5 ranks; the fabric has 4 GPUs");
    let cut = [bytes(SENDER)[..30].to_vec(), bytes(RECEIVER)];
    let text = "s.toml:6:19: t.0.et: byte 16: rank 0: expected a message of 54 bytes, and 13 bytes are left";
    assert_eq!(refused(&cut, ""), text);
    let far = [trace(&[Writer::collective(1, 0, 8, "2", &[])])];
    let text = "s.toml:6:19: t.0.et: rank 0 node 1 `coll`: its group \"2\" does not have the rank 0";
    assert_eq!(refused(&far, ", groups = \"g.json\", replicate = \"spmd\""), text);
    let send = [trace(&[Writer::message(1, 5, 1, 8, 0, &[])])];
    assert!(refused(&send, ", replicate = \"spmd\"").contains("does not tell the peers of the other ranks"));
    assert!(refused(&[bytes(SENDER), bytes(RECEIVER)], ", digest = \"00\"").contains("t.0.et has changed"));
}

#[test]
fn traces_that_may_mean_something_else_run_with_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    for (nodes, warning) in [
        (
            vec![Writer::compute(1, 1, &[7, 8])],
            "dependencies of t.0.et on nodes that do not exist are dropped: 4; the first: node 1 of rank 0 waits for node 7",
        ),
        (
            vec![Writer::compute(1, 1, &[]).attribute("rf_id", 9, 4).clone()],
            "attributes of t.0.et that have no effect, with their numbers of nodes: `rf_id` (2)",
        ),
        (vec![Writer::node(1, "", 0, &[])], "nodes of the type INVALID_NODE, which take no time (t.0.et): 2"),
    ] {
        let file = trace(&nodes);
        let (_, warnings) = checked(folder.path(), &[file.clone(), file], "").unwrap();
        assert_eq!(warnings, [warning]);
    }
    let uneven = [4_000, 8_000].map(|size| trace(&[Writer::collective(1, 6, size, "", &[])]));
    let (_, warnings) = checked(folder.path(), &uneven, "").unwrap();
    assert!(
        warnings[0].starts_with("collectives of t.0.et whose ranks differ in `comm_size`: 1; the largest"),
        "{warnings:?}"
    );
    let unread = [trace(&[Writer::message(1, 5, 1, 8, 0, &[])]), trace(&[])];
    let (_, warnings) = checked(folder.path(), &unread, "").unwrap();
    assert_eq!(warnings, ["messages of t.0.et that are never received: 1; the first is rank 0 node 1 `m`"]);
}

#[test]
fn a_rank_does_one_message_or_collective_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    // Rank 0 has two messages for rank 1 that do not depend on each other: the second leaves when the first is acknowledged.
    let sends = trace(&[Writer::message(1, 5, 1, 9_000, 0, &[]), Writer::message(2, 5, 1, 9_000, 0, &[])]);
    let receives = trace(&[Writer::message(1, 6, 0, 9_000, 0, &[]), Writer::message(2, 6, 0, 9_000, 0, &[])]);
    let found = scenario(folder.path(), 2, &[sends, receives], "").unwrap();
    let waiting =
        found.plan.messages.iter().filter(|message| message.on_acked.start < message.on_acked.end).count();
    assert_eq!(waiting, 1);
}

#[test]
fn control_dependencies_can_be_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let file = trace(&[Writer::compute(1, 1, &[]), Writer::node(2, "c", 4, &[]).number(4, 1).clone()]);
    let files = [file.clone(), file];
    let triggers = |settings: &str| scenario(folder.path(), 2, &files, settings).unwrap().plan.triggers.len();
    assert_eq!((triggers(""), triggers(", deps = \"data\"")), (2, 0));
}

#[test]
fn control_dependencies_that_contradict_those_of_data_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let called = Writer::compute(1, 1, &[]).number(4, 2).clone();
    let file =
        trace(&[called, Writer::compute(2, 1, &[1]), Writer::node(3, "c", 4, &[]).number(4, 2).clone()]);
    let found = scenario(folder.path(), 2, &[file.clone(), file], "").unwrap();
    // Node 2 waits for node 1, on each of two ranks.
    assert_eq!(found.plan.triggers.len(), 2);
    let cycle = "rank 0 node 1 `c` -> rank 0 node 2 `c` -> rank 0 node 1 `c`";
    let warning = format!(
        "nodes of t.0.et wait for each other: {cycle}; so dependencies of control are left out, as by `deps = \"data\"`"
    );
    assert_eq!(found.warnings(), [warning]);
}

#[test]
fn a_roofline_replaces_recorded_durations() {
    let folder = tempfile::tempdir().unwrap();
    let mut node = Writer::compute(1, 7, &[]);
    node.attribute("num_ops", 9, 1_000_000_000).attribute("tensor_size", 13, 1_000_000);
    let files = vec![trace(&[node]); 2];
    let time = |settings: &str| {
        let found = scenario(folder.path(), 2, &files, settings).unwrap();
        match found.plan.tasks[0].work {
            model::plan::Work::On { time, .. } => time.ps() / 1_000_000,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(time(""), 7);
    assert_eq!(
        time(", roofline = { flops = \"100TFLOPS\", memory = \"8Tbps\" }"),
        10,
        "limited by operations"
    );
    assert_eq!(time(", roofline = { flops = \"100TFLOPS\", memory = \"400Gbps\" }"), 20, "limited by memory");
}
