//! Claim: whatever a user writes, ropewalk refuses it with the place of the mistake, or runs it and keeps every rule.

use farm::panics::Silence;
use farm::{Farm, Tally};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// Makes trials on all cores, at most for so many seconds, and fails with the rules that were broken.
fn make(trials: std::ops::Range<u64>, seed: u64, seconds: f64, commands: bool) -> Tally {
    static STOP: AtomicBool = AtomicBool::new(false);
    let silence = Silence::begin();
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let program = Some(PathBuf::from(env!("CARGO_BIN_EXE_ropewalk")));
    let tally = Farm { seed, trials, seconds, threads, program, commands }.run(&STOP, &mut |_| ());
    drop(silence);
    let broken: Vec<String> = tally
        .broken
        .iter()
        .map(|b| {
            format!(
                "{}\n{}\n{}\nropewalk-workshop fuzz --seed {seed} --trial {}\n",
                b.rule, b.detail, b.text, b.trial
            )
        })
        .collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    tally
}

/// The same trials every time on every machine, so that a failure belongs to the change that caused it.
#[test]
fn a_thousand_random_trials_break_no_rule() {
    let tally = make(0..1000, 1, f64::INFINITY, false);
    assert!(tally.scenarios > 100 && tally.refused > 100, "{tally:?}");
}

/// The next of these trials.
#[test]
#[ignore = "takes minutes: make exhaustive"]
fn two_thousand_more_trials_break_no_rule() {
    let tally = make(1000..3000, 1, f64::INFINITY, false);
    assert!(tally.scenarios > 100 && tally.refused > 100, "{tally:?}");
}

/// The program is interrupted, short of memory, given damaged results and attacked. Trials of the first test are seldom such.
#[test]
fn sixty_trials_of_commands_break_no_rule() {
    let tally = make(0..60, 2, f64::INFINITY, true);
    assert_eq!(tally.commands, 60);
}

/// Other trials every time, by the clock.
#[test]
#[ignore = "takes 20 minutes: make exhaustive"]
fn twenty_minutes_of_new_trials_break_no_rule() {
    let since = std::time::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_secs());
    let tally = make(0..u64::MAX, since, 20.0 * 60.0, false);
    println!("seed {since}: {tally:?}");
}
