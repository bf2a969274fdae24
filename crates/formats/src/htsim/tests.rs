use super::*;
use files::damage::Draws;
use finding::Finding;
use scenario::{Source, check};
use std::path::Path;

fn matrix(text: &str) -> Result<Matrix, Finding> {
    read("s.cm", text)
}

/// All kinds of lines.
const ALL: &str = "Nodes 4\nConnections 6\nTriggers 3\nFailures 1\n0->1 id 1 start 0 size 100000 recv_done_trigger 1\n\
                   1->2 id 2 trigger 1 size 100000 send_done_trigger 2 prio 3\n1->3 id 3 trigger 2 size 7 addon\n\
                   2->3 id 9 msg start 5.000 size 8\n2->3 id 9 msg 4 start 6 size 9 recv_done_trigger 3\n\
                   3->0 id 4 trigger 3 size 1\ntrigger id 1 oneshot\ntrigger id 2 barrier count 1\n\
                   trigger id 3 multishot\nfailure switch_type TOR switch_id 0 link_id 1\n";

/// Checks a matrix on four hosts; returns its error or its warnings.
fn checked(folder: &Path, text: &str, settings: &str) -> Result<Vec<String>, String> {
    std::fs::write(folder.join("s.cm"), text).unwrap();
    let scenario = format!(
        "[topology.leaf-spine]\nleaves = 1\nspines = 1\nhosts-per-leaf = 4\n[[workload]]\n\
         htsim = {{ file = \"s.cm\"{settings} }}\n"
    );
    let source = Source::new(folder.join("s.toml").display().to_string(), scenario);
    let folder = folder.display().to_string() + "/";
    check(&source, &[]).map(|checked| checked.warnings()).map_err(|e| e.located().replace(&folder, ""))
}

#[test]
fn every_line_is_read_and_what_has_no_effect_is_said() {
    let all = matrix(ALL).unwrap();
    assert_eq!((all.nodes, all.flows.len(), all.triggers.len(), all.failures), (4, 6, 3, 1));
    assert_eq!(all.flows[0].recv_done, Some(1));
    assert_eq!((all.flows[1].start, all.flows[1].send_done), (Start::On(1), Some(2)));
    assert_eq!((all.flows[3].start, all.flows[3].message), (Start::At(5), true));
    assert_eq!(all.triggers[&2], Trigger::Barrier(1));
    let folder = tempfile::tempdir().unwrap();
    let warnings = checked(folder.path(), ALL, "").unwrap();
    let says = |text: &str| assert!(warnings.iter().any(|w| w.contains(text)), "{text}: {warnings:#?}");
    says("`prio` has no effect on the flows of s.cm: 1");
    says("`addon` has no effect on the flows of s.cm: 1");
    says("failures of s.cm that are left out: 1");
    says("`start` counts picoseconds in the `msg` lines of s.cm");
    assert_eq!(warnings.len(), 4, "{warnings:#?}");
    assert_eq!(checked(folder.path(), ALL, ", msg-start = \"us\", strict = true").unwrap().len(), 3);
}

#[test]
fn wrong_matrices_are_refused_with_line_and_column() {
    let with = |lines: &str| format!("Nodes 4\nConnections 1\n{lines}\n");
    for (wrong, message) in [
        (String::new(), "1:1: the line `Nodes N` is missing at the start of the file"),
        (
            "Nodes 4\n0->1 start 0 size 1\n".into(),
            "2:1: the line `Connections N` is missing at the start of the file",
        ),
        ("Nodes\n".into(), "1:6: expected the number after `Nodes`, found ``"),
        ("Nodes 4\nNodes 4\n".into(), "2:1: `Nodes` stands twice"),
        ("Nodes 99999999999\nConnections 0\n".into(), "1:7: expected fewer nodes, found 99999999999"),
        (
            "Nodes 4\nConnections 4000000000\n0->1 start 0 size 1\n".into(),
            "2:13: `Connections 4000000000`, but the file has 1",
        ),
        (
            with("0->1 id 1 start 0 size 1\n0->2 id 1 start 0 size 1"),
            "4:9: line 3 has the id 1, too; only `msg` lines of one pair share an id",
        ),
        (with("0->4 start 0 size 1"), "3:4: there is no host 4; with `Nodes 4` there are 4"),
        (with("a->1 start 0 size 1"), "3:1: expected the number of a host, found `a`"),
        (with("1->1 start 0 size 1"), "3:1: host 1 cannot send to itself"),
        (with("0->1 size 1"), "3:12: the flow has neither `start` nor `trigger`"),
        (
            with("0->1 id 1 start 0 trigger 1 size 1"),
            "3:17: a flow has either `start` or `trigger`, not both",
        ),
        (
            with("0->1 trigger 1 id 1 size 1"),
            "3:6: a flow with a trigger has an id, and `id` comes before `trigger`",
        ),
        (with("0->1 start 0"), "3:13: the flow has no `size`"),
        (with("0->1 start 0 size 0"), "3:19: expected a size in bytes above 0, found 0"),
        (with("0->1 start -1 size 1"), "3:12: expected a time, found `-1`"),
        (
            with("0->1 start 18446744073709551616 size 1"),
            "3:12: expected a time, found `18446744073709551616`, which is too large",
        ),
        (with("0->1 id 0 start 0 size 1"), "3:9: expected the id of a flow above 0, found 0"),
        (with("0->1 start 0 sise 1"), "3:14: unknown key `sise`; did you mean `size`?"),
        (with("0->1 start 0 start 0 size 1"), "3:14: `start` stands twice in one flow"),
        (with("0->1 msg start 0 size 1"), "3:1: a flow with `msg` has an id, which names its connection"),
        (
            with("0->1 id 1 trigger 7 size 1"),
            "3:19: the trigger 7 is not declared; expected a line `trigger id 7 oneshot`",
        ),
        (
            with("0->1 start 0 size 1\ntrigger id 1 oneshot"),
            "2:13: the file has 1 lines that a line `Triggers 1` must announce",
        ),
        (
            with("0->1 id 1 trigger 7 size 1").replace("Connections 1", "Connections 2"),
            "2:13: `Connections 2`, but the file has 1",
        ),
        (with("trigger 1 oneshot"), "3:9: expected `id`, found `1`"),
        (with("trigger id 0 oneshot"), "3:12: expected the id of a trigger above 0, found 0"),
        (with("trigger id 1 onshot"), "3:14: unknown kind of trigger `onshot`; did you mean `oneshot`?"),
        (with("trigger id 1 barrier 2"), "3:22: expected `count`, found `2`"),
        (with("trigger id 1 oneshot\ntrigger id 1 oneshot"), "4:12: the trigger 1 is declared twice"),
        (with("trigger id 1 oneshot 1"), "3:22: expected the end of the line, found `1`"),
        (with("flow 1"), "3:1: expected a flow such as `0->1`, `trigger` or `failure`, found `flow`"),
    ] {
        let error = matrix(&wrong).unwrap_err();
        assert_eq!(error.located(), format!("s.cm:{message}"), "{wrong}");
    }
}

#[test]
fn triggers_that_never_fire_or_fire_too_often_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = |flows: &[&str], kind: &str| {
        let number = flows.len();
        format!("Nodes 4\nConnections {number}\nTriggers 1\n{}\ntrigger id 1 {kind}\n", flows.join("\n"))
    };
    let (first, other) =
        ("0->1 id 1 start 0 size 9 send_done_trigger 1", "2->3 id 2 start 0 size 9 recv_done_trigger 1");
    let (effect, far) = ("0->2 id 3 trigger 1 size 9", "3->2 id 4 trigger 1 size 9");
    let circle = "0->2 id 3 trigger 1 size 9 send_done_trigger 1";
    for (text, message) in [
        (
            file(&[effect], "oneshot"),
            "trigger 1, which starts the flow of line 4, needs 1 activations and gets 0, so flows never start",
        ),
        (
            file(&[first, other, effect], "oneshot"),
            "trigger 1, which starts the flow of line 6, gets 2 activations and allows 1",
        ),
        (
            file(&[first, other, effect], "barrier count 3"),
            "trigger 1, which starts the flow of line 6, needs 3 activations and gets 2, so flows never start",
        ),
        (
            file(&[first, effect, far], "multishot"),
            "trigger 1, which starts the flow of line 5, needs 2 activations and gets 1, so flows never start",
        ),
        (
            file(&[first, far], "oneshot"),
            "the flow of line 4 ends at host 0, and starts the flow of line 5 at host 3",
        ),
    ] {
        let found = checked(folder.path(), &text, ", strict = true").unwrap_err();
        assert_eq!(found, format!("s.toml:6:18: s.cm: {message}"));
    }
    let found = checked(folder.path(), &file(&[circle], "oneshot"), "").unwrap_err();
    assert_eq!(found, "s.toml:6:18: flows of s.cm wait for each other: line 4 -> line 4");
    // Without `strict`, a message goes to the other host.
    let warnings = checked(folder.path(), &file(&[first, far], "oneshot"), "").unwrap();
    assert!(warnings[0].contains("fire at another host than the one that they start: 1;"), "{warnings:?}");
    let warnings = checked(folder.path(), &file(&[first, other, effect, far], "multishot"), "").unwrap();
    assert!(warnings[0].contains("multishot triggers of s.cm, such as 1:"), "{warnings:?}");
}

/// All-to-all of 16 hosts, one message after another: 2 MB to every other host.
fn serial_all_to_all() -> String {
    let (mut flows, mut triggers, mut id) = (String::new(), String::new(), 0);
    for from in 0..16u32 {
        for i in 1..16 {
            id += 1;
            let to = (from + i) % 16;
            let trigger = id - 1 - from;
            let start = if i == 1 { "start 0".into() } else { format!("trigger {trigger}") };
            let done = if i < 15 { format!(" send_done_trigger {}", trigger + 1) } else { String::new() };
            flows += &format!("{from}->{to} id {id} {start} size 2000000{done}\n");
            if i < 15 {
                triggers += &format!("trigger id {} oneshot\n", trigger + 1);
            }
        }
    }
    format!("Nodes 16\nConnections 240\nTriggers 224\n{flows}{triggers}")
}

#[test]
fn a_serial_all_to_all_is_sixteen_chains_of_fifteen_flows() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("s.cm"), serial_all_to_all()).unwrap();
    let text = "[topology.leaf-spine]\nleaves = 2\nspines = 2\nhosts-per-leaf = 8\n[[workload]]\n\
                htsim = { file = \"s.cm\", strict = true }\n";
    let plan =
        check(&Source::new(folder.path().join("s.toml").display().to_string(), text), &[]).unwrap().plan;
    assert_eq!((plan.messages.len(), plan.qps.len(), plan.triggers.len()), (240, 240, 224));
    assert_eq!(plan.messages.iter().filter(|m| m.needs == 0).count(), 16);
    assert_eq!(plan.messages.iter().map(|m| m.bytes).sum::<u64>(), 480_000_000);
    let mut longest = 0;
    for root in plan.messages.iter().filter(|m| m.needs == 0) {
        let (mut at, mut length) = (root, 1);
        while let Some(model::plan::Trigger::Message(next)) = plan.triggers.get(at.on_acked.start as usize)
            && !at.on_acked.is_empty()
        {
            (at, length) = (&plan.messages[next.index()], length + 1);
        }
        longest = longest.max(length);
    }
    assert_eq!(longest, 15);
}

const WORDS: [&str; 18] = [
    "0",
    "1",
    "4",
    "-1",
    "1.5",
    "4294967296",
    "18446744073709551616",
    "id",
    "start",
    "trigger",
    "size",
    "msg",
    "prio",
    "barrier",
    "count",
    "0->1",
    "Triggers",
    "é",
];

/// Damages so many files; returns the kinds of errors.
fn damage(files: u64) -> std::collections::BTreeSet<String> {
    let mut draws = Draws(2);
    let mut kinds = std::collections::BTreeSet::new();
    for number in 0..files {
        let mut text = ALL.to_owned();
        for _ in 0..=draws.below(3) {
            text = draws.change(&text, &WORDS);
        }
        match matrix(&text) {
            Ok(matrix) => assert!(matrix.flows.len() <= text.lines().count(), "file {number}"),
            Err(error) => {
                assert!(error.place.is_some(), "file {number}: {error:?}");
                kinds.insert(error.text.chars().filter(|c| !c.is_ascii_digit()).take(40).collect());
            }
        }
    }
    kinds
}

#[test]
fn damaged_files_give_a_matrix_or_an_error_with_its_place() {
    let kinds = damage(20_000);
    assert!(kinds.len() > 40, "{kinds:#?}");
}

/// Run it by `cargo test -p scenario --lib -- --ignored a_million_damaged_matrices`.
#[test]
#[ignore = "takes a minute"]
fn a_million_damaged_matrices() {
    damage(1_000_000);
}
