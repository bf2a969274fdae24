//! Random damage to files that are right: no panic, every error has its place, and no more memory than the file justifies.

use super::*;
use files::damage::Draws;

/// Damaged files of each form per run of the test.
const FILES: u64 = 20_000;

const WORDS: [&str; 20] = [
    "0",
    "1",
    "2",
    "-1",
    "4294967295",
    "18446744073709551616",
    "num_ranks",
    "rank",
    "send",
    "recv",
    "calc",
    "requires",
    "irequires",
    "l1",
    "l2",
    "{",
    "}",
    "/*",
    "é",
    "\r",
];

/// Damages `files` texts and as many binary files; returns the kinds of errors.
fn damage(files: u64) -> std::collections::BTreeSet<String> {
    let mut draws = Draws(1);
    let mut kinds = std::collections::BTreeSet::new();
    let samples = [TEXT, ALL].map(|sample| text(sample).unwrap());
    for number in 0..files {
        let which = draws.below(2);
        let mut words = [TEXT, ALL][which].to_owned();
        let mut file = encoded(&samples[which]);
        for _ in 0..=draws.below(3) {
            words = draws.change(&words, &WORDS);
            draws.damage(&mut file);
        }
        for (result, is_text) in [(text(&words), true), (binary(&file), false)] {
            match result {
                Ok(schedule) => {
                    let operations: usize = schedule.programs.values().map(|p| p.operations.len()).sum();
                    assert!(operations <= if is_text { words.len() } else { file.len() / 39 }, "{number}");
                    let again = encoded(&schedule);
                    assert_eq!(encoded(&binary(&again).unwrap()), again, "file {number}");
                }
                Err(error) => {
                    assert_eq!(error.place.is_some(), is_text, "file {number}: {error:?}");
                    assert!(is_text || error.text.starts_with("s.bin: byte "), "file {number}: {error}");
                    kinds.insert(error.text.chars().filter(|c| !c.is_ascii_digit()).take(50).collect());
                }
            }
        }
    }
    kinds
}

#[test]
fn damaged_files_give_a_schedule_or_an_error_with_its_place() {
    let kinds = damage(FILES);
    assert!(kinds.len() > 60, "{kinds:#?}");
}

/// Run it by `cargo test --release -p scenario --lib -- --ignored a_million_damaged_files`.
#[test]
#[ignore = "takes a minute"]
fn a_million_damaged_files() {
    damage(1_000_000);
}
