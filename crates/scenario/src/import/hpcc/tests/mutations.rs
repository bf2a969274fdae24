//! Random damage to files that are right: no panic, and every error names a line.

use super::servers::RAILS;
use super::*;
use files::damage::Draws;
use std::collections::BTreeSet;

/// Imports per run of the test.
const IMPORTS: u64 = 20_000;

/// A configuration with many keys, of which only those of its program and its congestion control are read.
const CONFIG: &str = "CC_MODE 1\nENABLE_QCN 1\nPACKET_PAYLOAD_SIZE 1000\nRP_TIMER 300.0\nRATE_AI 40Mb/s\nRATE_HAI 100Mb/s\n\
                      MIN_RATE 100Mb/s\nEWMA_GAIN 0.00390625\nKMAX_MAP 1 100000000000 1600\nKMIN_MAP 1 100000000000 400\n\
                      PMAX_MAP 1 100000000000 0.2\nBUFFER_SIZE 32\nENABLE_PFC 1\nHAS_WIN 1\nVAR_WIN 1\nU_TARGET 0.95\n\
                      MI_THRESH 5\nALPHA_RESUME_INTERVAL 1\nRATE_DECREASE_INTERVAL 4\nFAST_RECOVERY_TIMES 1\n\
                      ENABLE_IRN 1\nLINK_DOWN 9 4 6\nL2_ACK_INTERVAL 1\nSIMULATOR_STOP_TIME 4.00\nERROR_RATE_PER_LINK 0.0\n\
                      GLOBAL_T 1\nMULTI_RATE 0\nACK_HIGH_PRIO 1\nFLOWGEN_START_TIME 2.0\nFLOWGEN_STOP_TIME 2.1\n\
                      RANDOM_SEED 1\nTOPOLOGY_FILE config/leaf_spine_128_100G_OS2.txt\nCONWEAVE_TX_EXPIRY_TIME 300\n\
                      CONWEAVE_REPLY_TIMEOUT_EXTRA 5\nCONWEAVE_PATH_PAUSE_TIME 16\nCONWEAVE_EXTRA_VOQ_FLUSH_TIME 16\n\
                      CONWEAVE_DEFAULT_VOQ_WAITING_TIME 200 {a comment}\n";

/// Words that parsers may trip over.
const WORDS: [&str; 24] = [
    "0",
    "1",
    "2",
    "3",
    "7",
    "8",
    "-1",
    "1e3",
    "nan",
    "inf",
    "-0.0",
    "0.5",
    "4294967296",
    "18446744073709551616",
    "1Gbps",
    "0Gbps",
    "1Tb/s",
    "1us",
    "0us",
    "9999999s",
    "é",
    "\u{0}",
    "CC_MODE",
    "n0",
];

/// Damages so many sets of files; returns the kinds of errors, and their number.
fn damage_sets(imports: u64) -> (BTreeSet<String>, u64) {
    let samples = [
        (PLAIN.to_owned(), SIX),
        (PLAIN.to_owned(), "2\n0 2 3 1000 2\n1 3 3 0 2.5\n"),
        (PLAIN.replace("8 4 8", "8 4 10") + "4 4 1600Gbps 100ns 0\n0 5 100Gbps 1us 0\n", SIX),
        (PLAIN.replace("4 6 100Gbps 1us", "4 6 100Gbps 1ms"), SIX),
        (TORS.to_owned(), "1\n0 2 3 1000 2.000000001\n"),
        (NV.to_owned(), "1\n0 3 3 1000 0\n"),
        (DIRECT.to_owned(), "1\n0 1 3 1000 0\n"),
    ];
    let programs = ["CC_MODE 1", "CC_MODE 3", "CC_MODE 7", "CC_MODE 8", "CC_MODE 10"]
        .into_iter()
        .chain(["LB_MODE 0", "LB_MODE 2", "LB_MODE 3", "LB_MODE 6", "LB_MODE 9"])
        .collect::<Vec<_>>();
    let mut draws = Draws(1);
    let (mut errors, mut kinds) = (0, BTreeSet::new());
    for number in 0..imports {
        let (topology, flows) = &samples[draws.below(samples.len())];
        let mut files = [topology.clone(), (*flows).to_owned(), CONFIG.to_owned()];
        if !topology.starts_with('8') {
            // The small topologies have no such link.
            files[2] = files[2].replacen("LINK_DOWN 9 4 6", "LINK_DOWN 9 0 1", 1);
        }
        files[2] = files[2].replacen("CC_MODE 1", programs[draws.below(programs.len())], 1);
        for _ in 0..=draws.below(3) {
            let which = draws.below(3);
            files[which] = draws.change(&files[which], &WORDS);
        }
        let Err(error) = run(&files[0], &files[1], Some(&files[2])) else { continue };
        errors += 1;
        let place =
            error.place.as_ref().unwrap_or_else(|| panic!("import {number}: no line: {error:?}\n{files:#?}"));
        let which = ["t.txt", "f.txt", "c.txt"].iter().position(|name| *name == place.file);
        let text = &files[which.unwrap_or_else(|| panic!("import {number}: no file of the user: {error:?}"))];
        let line = text.split('\n').nth(place.line - 1);
        let columns = line.map(|line| line.chars().count() + 1);
        assert!(
            columns.is_some_and(|columns| place.column <= columns),
            "import {number}: {}",
            error.located()
        );
        kinds.insert(error.text.chars().filter(|c| !c.is_ascii_digit()).take(60).collect::<String>());
    }
    (kinds, errors)
}

#[test]
fn randomly_changed_files_give_a_scenario_or_an_error_with_a_line() {
    let (kinds, errors) = damage_sets(IMPORTS);
    assert!(errors > IMPORTS / 4 && errors < IMPORTS, "{errors} errors");
    assert!(kinds.len() > 60, "{kinds:#?}");
}

/// Run it by `cargo test --release -p scenario --lib -- --ignored --nocapture a_million_damaged_sets`.
#[test]
#[ignore = "takes ten minutes"]
fn a_million_damaged_sets() {
    let (kinds, errors) = damage_sets(1_000_000);
    println!("{errors} of 1000000 imports end with an error, of {} kinds", kinds.len());
}

/// Damages so many topologies of SimAI; returns the kinds of errors, and the number of fabrics that the rest gives.
fn damage(files: u64) -> (BTreeSet<String>, u64) {
    let mut draws = Draws(4);
    let (mut kinds, mut fabrics) = (BTreeSet::new(), 0);
    for number in 0..files {
        let mut text = RAILS.to_owned();
        for _ in 0..=draws.below(3) {
            text = draws.change(&text, &WORDS);
        }
        match crate::import::fabric("topo", &text) {
            Some(Ok((toml, _))) => {
                fabrics += 1;
                // The fabric may have GPUs that no path joins, which the check finds; it must not panic.
                let job = "[[workload]]\ncollective = { kind = \"all-reduce\", bytes = \"8B\" }\n";
                let checked = crate::check(&Source::new("t.toml", toml + job), &[]);
                if let Err(error) = checked {
                    assert!(error.place.is_some(), "file {number}: {error:?}\n{text}");
                }
            }
            Some(Err(error)) => {
                let place =
                    error.place.as_ref().unwrap_or_else(|| panic!("file {number}: {error:?}\n{text}"));
                let columns = text.split('\n').nth(place.line - 1).map_or(0, |line| line.chars().count() + 1);
                assert!(place.file == "topo" && place.column <= columns, "file {number}: {error:?}\n{text}");
                kinds.insert(error.text.chars().filter(|c| !c.is_ascii_digit()).take(60).collect());
            }
            // The first line does not have its six words any more.
            None => {}
        }
    }
    (kinds, fabrics)
}

#[test]
fn damaged_topologies_of_simai_give_a_fabric_or_an_error_with_its_place() {
    let (kinds, fabrics) = damage(IMPORTS);
    assert!(fabrics > IMPORTS / 100, "{fabrics} fabrics");
    assert!(kinds.len() > 25, "{}: {kinds:#?}", kinds.len());
}

/// Run it by `cargo test --release -p scenario --lib -- --ignored a_million_damaged_rails`.
#[test]
#[ignore = "takes ten minutes"]
fn a_million_damaged_rails() {
    damage(1_000_000);
}
