//! Schedules as workloads of scenarios.

use scenario::{Source, check};
use std::path::Path;

/// Checks a schedule on two hosts with more keys of the workload; returns the messages of its plan, or its error, and warnings.
fn checked(folder: &Path, schedule: &str, settings: &str) -> Result<(usize, Vec<String>), String> {
    std::fs::write(folder.join("s.goal"), schedule).unwrap();
    let text = format!(
        "[topology.leaf-spine]\nleaves = 1\nspines = 1\nhosts-per-leaf = 2\n[[workload]]\ngoal = {{ file = \"s.goal\"{settings} }}\n"
    );
    let source = Source::new(folder.join("s.toml").display().to_string(), text);
    let folder = folder.display().to_string() + "/";
    let checked = check(&source, &[]).map_err(|e| e.located().replace(&folder, ""))?;
    let warnings = checked.warnings().iter().map(|warning| warning.replace(&folder, "")).collect();
    Ok((checked.plan.messages.len(), warnings))
}

fn two(zero: &str, one: &str) -> String {
    format!("num_ranks 2\nrank 0 {{\n{zero}\n}}\nrank 1 {{\n{one}\n}}\n")
}

#[test]
fn schedules_that_cannot_run_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (schedule, settings, message) in [
        (two("send 8b to", ""), "", "s.goal:3:11: expected a rank, found the end of the line"),
        (
            "num_ranks 3\nrank 0 {\ncalc 1\n}\nrank 1 {\n}\nrank 2 {\n}\n".into(),
            "",
            "s.toml:6:17: s.goal has 3 ranks; the fabric has 2 GPUs",
        ),
        (two("", ""), "", "s.toml:6:17: s.goal has no operations"),
        (
            two("recv 8b from 1 tag 1", "send 8b to 0 tag 2"),
            "",
            "s.toml:6:17: no message matches rank 0 operation 0 `recv 8b from 1 tag 1`; receives of s.goal without a message: 1",
        ),
        (
            two("send 8b to 1 nic 1", "recv 8b from 0"),
            "",
            "s.toml:6:17: rank 0 of s.goal: `send 8b to 1 tag 0` takes NIC 1; the rank has 1",
        ),
        (
            two(
                "a: recv 8b from 1\nb: send 8b to 1\nb requires a",
                "a: recv 8b from 0\nb: send 8b to 0\nb requires a",
            ),
            "",
            "s.toml:6:17: operations of s.goal wait for each other: rank 0 operation 0 `recv 8b from 1 tag 0` -> rank 0 \
             operation 1 `send 8b to 1 tag 0` -> rank 1 operation 0 `recv 8b from 0 tag 0` -> rank 1 operation 1 `send 8b to \
             0 tag 0` -> rank 0 operation 0 `recv 8b from 1 tag 0`",
        ),
        (
            two(
                "a: send 8b to 1\nb: recv 8b from 1\nb requires a",
                "a: send 8b to 0\nb: recv 8b from 0\nb requires a",
            ),
            ", send-done = \"delivered\"",
            "s.toml:6:17: operations of s.goal wait for each other: rank 0 operation 0 `send 8b to 1 tag 0` -> rank 0 \
             operation 1 `recv 8b from 1 tag 0` -> rank 1 operation 0 `send 8b to 0 tag 0` -> rank 1 operation 1 `recv 8b from \
             0 tag 0` -> rank 0 operation 0 `send 8b to 1 tag 0`",
        ),
        (
            two("send 8b to 1", ""),
            ", send-done = \"delivered\"",
            "s.toml:6:17: rank 0 operation 0 `send 8b to 1 tag 0` of s.goal is never received, so it never ends",
        ),
        (
            two("calc 99999999999999999", ""),
            "",
            "s.toml:6:17: rank 0 of s.goal: operation 0, `calc 99999999999999999`: expected at most ",
        ),
        (
            two("send 9999999999999999b to 1", "recv 9999999999999999b from 0"),
            "",
            "s.toml:6:17: rank 0 of s.goal: operation 0, `send 9999999999999999b to 1 tag 0`: expected at most 1 PiB",
        ),
        (
            two("calc 1", ""),
            ", digest = \"0123456789abcdef\"",
            "s.toml:6:36: s.goal has changed: its digest is ",
        ),
    ] {
        let found = checked(folder.path(), &schedule, settings).unwrap_err();
        assert!(found.starts_with(message), "{found}\n{message}");
    }
    let text = "[topology.leaf-spine]\n[[workload]]\ngoal = { file = \"none.goal\" }\n";
    let error = check(&Source::new("s.toml", text), &[]).unwrap_err();
    assert!(error.located().starts_with("s.toml:3:17: none.goal cannot be read: "), "{error:?}");
}

#[test]
fn times_that_exceed_the_clock_together_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let each = |number: usize| two(&"calc 999999999999999\n".repeat(number), "");
    assert!(checked(folder.path(), &each(8), "").is_ok());
    let found = checked(folder.path(), &each(9), "").unwrap_err();
    assert!(found.contains("operation 8, `calc 999999999999999`: expected at most"), "{found}");
    assert!(found.ends_with("for all operations together"), "{found}");
}

#[test]
fn damaged_schedules_never_panic_on_their_way_to_a_plan() {
    let folder = tempfile::tempdir().unwrap();
    let words = [
        "0",
        "1",
        "2",
        "9",
        "-1",
        "18446744073709551615",
        "send",
        "recv",
        "calc",
        "requires",
        "irequires",
        "a",
        "b",
    ];
    let whole = two(
        "a: send 8b to 1 tag 3\nb: recv 9b from 1\nc: calc 7 cpu 1\nc irequires a\nc requires b\nd: send 8b to 0\nrecv 8b \
         from 0",
        "a: recv 8b from -1 tag -1\nb: send 9b to 0\nc: calc 0\nc requires a\nc requires b",
    );
    let mut draws = files::damage::Draws(3);
    let (mut right, mut wrong) = (0, 0);
    for number in 0..2_000 {
        let mut text = whole.clone();
        for _ in 0..=draws.below(2) {
            text = draws.change(&text, &words);
        }
        let settings = ["", ", send-done = \"delivered\"", ", send-done = \"eager\""][number % 3];
        match checked(folder.path(), &text, settings) {
            Ok(_) => right += 1,
            Err(_) => wrong += 1,
        }
    }
    assert!(right > 100 && wrong > 100, "{right} right, {wrong} wrong");
}

#[test]
fn schedules_that_may_mean_something_else_run_with_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    for (schedule, messages, warning) in [
        (
            two("send 8b to 1", "calc 1"),
            1,
            "messages of s.goal that are never received: 1; the first is rank 0 operation 0 `send 8b to 1 tag 0`",
        ),
        (
            two("send 8b to 1", "recv 9b from 0"),
            1,
            "receives of s.goal that get a message of another size: 1; the first is rank 1 operation 0 `recv 9b from 0 tag 0`, \
             which gets rank 0 operation 0 `send 8b to 1 tag 0`",
        ),
        (two("send 8b to 1 tag 1\nsend 8b to 1 tag 2", "recv 8b from 0 tag -1\nrecv 8b from 0 tag 2"), 2, ""),
        (
            two("send 8b to 1 tag 1\nsend 8b to 1 tag 2", "recv 8b from 0 tag -1\nrecv 8b from 0 tag -1"),
            2,
            "receives of s.goal that take any source or tag and find several: 1; they get messages in the order of the file, which may differ from the order of arrival; the first is rank 1 operation 0 `recv 8b from 0 tag -1`",
        ),
        (
            "num_ranks 2\nrank 0 {\nsend 8b to 1\n}\n".into(),
            1,
            "ranks without a program in s.goal: 1 of 2; they do nothing",
        ),
    ] {
        let (number, warnings) = checked(folder.path(), &schedule, "").unwrap();
        assert_eq!(number, messages);
        assert_eq!(warnings.first().map_or("", String::as_str), warning);
    }
}

#[test]
fn a_scenario_records_the_digest_of_its_schedule() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("s.goal"), two("calc 1", "")).unwrap();
    let text = "[topology.leaf-spine]\n[[workload]]\ngoal = { file = \"s.goal\" }\n";
    let read = |text: &str| {
        check(&Source::new(folder.path().join("s.toml").display().to_string(), text), &[]).unwrap()
    };
    let one = read(text);
    let resolved = one.to_toml();
    assert!(resolved.contains("digest = \""), "{resolved}");
    assert_eq!(read(&resolved).hash(), one.hash());
    std::fs::write(folder.path().join("s.goal"), two("calc 2", "")).unwrap();
    assert_ne!(read(text).hash(), one.hash());
}
