//! `ropewalk busbw` as an operator meets it: with nothing but a log, with a description, and with several logs.

use assert_cmd::Command;
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;
use serde_json::Value;
use std::fs;
use tempfile::TempDir;

/// A log of all-reduces on two nodes of eight H100.
fn log(hosts: [&str; 2], busbw: f64) -> String {
    let mut text = "# Collective test starting: all_reduce_perf\n".to_owned();
    for rank in 0..16 {
        text += &format!(
            "#  Rank {rank:>2} Group  0 Pid   1 on {} device {} [0x07] NVIDIA H100 80GB HBM3\n",
            hosts[rank / 8],
            rank % 8
        );
    }
    text += "# size count type redop root time algbw busbw #wrong\n";
    for bits in 26..=30 {
        let (bytes, algbw) = (1u64 << bits, busbw / 1.875);
        text += &format!(
            "{bytes} {} float sum -1 {:.1} {algbw:.2} {busbw:.2} 0\n",
            bytes / 4,
            bytes as f64 / algbw / 1e3
        );
    }
    text
}

struct Sandbox(TempDir);

impl Sandbox {
    fn new() -> Self {
        let sandbox = Sandbox(TempDir::new().unwrap());
        for (name, hosts, busbw) in
            [("low.log", ["a", "b"], 44.0), ("good.log", ["c", "d"], 340.0), ("mixed.log", ["b", "c"], 345.0)]
        {
            fs::write(sandbox.0.path().join(name), log(hosts, busbw)).unwrap();
        }
        sandbox
    }

    fn busbw(&self, args: &[&str]) -> Command {
        let mut command = Command::cargo_bin("ropewalk").unwrap();
        command.arg("busbw").args(args).current_dir(self.0.path()).env("NO_COLOR", "1");
        command
    }
}

#[test]
fn a_log_alone_gives_a_verdict_with_what_was_assumed() {
    let sandbox = Sandbox::new();
    let low = sandbox.busbw(&["low.log"]).assert().code(1);
    low.stdout(contains("Suspect 1: one of 8 NICs").and(contains("Assumed: NICs of 400 Gb/s")));
    sandbox
        .busbw(&["-"])
        .write_stdin(log(["a", "b"], 340.0))
        .assert()
        .code(0)
        .stdout(contains("as expected"));
}

#[test]
fn json_has_rows_suspects_and_the_exit_code() {
    let sandbox = Sandbox::new();
    let output = sandbox
        .busbw(&["low.log", "--cluster", "8x400G, roce", "--json"])
        .assert()
        .code(1)
        .get_output()
        .stdout
        .clone();
    let answer: Value = serde_json::from_slice(&output).unwrap();
    assert_eq!((&answer["verdict"], &answer["exit_code"]), (&"below".into(), &1.into()));
    assert_eq!(
        (answer["rows"].as_array().unwrap().len(), &answer["suspects"][0]["name"]),
        (5, &"few-nics".into())
    );
    // The same answer, to the byte: nothing depends on the clock.
    let again = sandbox
        .busbw(&["low.log", "--cluster", "8x400G, roce", "--json"])
        .assert()
        .get_output()
        .stdout
        .clone();
    assert_eq!(output, again);
}

#[test]
fn wrong_input_is_named() {
    let sandbox = Sandbox::new();
    sandbox.busbw(&["none.log"]).assert().code(2).stderr(contains("none.log"));
    let described = sandbox.busbw(&["low.log", "--cluster", "8x400G, rocee"]).assert().code(2);
    described.stderr(contains("--cluster:1:9").and(contains("did you mean `roce`?")));
    sandbox
        .busbw(&["low.log", "--collective", "all_redce"])
        .assert()
        .code(2)
        .stderr(contains("did you mean `all_reduce`?"));
    fs::write(sandbox.0.path().join("empty.log"), "").unwrap();
    sandbox.busbw(&["empty.log"]).assert().code(2).stderr(contains("expected a row of nccl-tests"));
}

#[test]
fn pairs_of_nodes_find_the_slow_one() {
    let sandbox = Sandbox::new();
    let all = sandbox.busbw(&["low.log", "good.log", "mixed.log"]).assert().code(1);
    all.stdout(contains("a is slow: it is in 1 of 1 slow logs").and(contains("b is fast elsewhere")));
}

#[test]
fn a_page_and_a_scenario_are_taken() {
    let sandbox = Sandbox::new();
    let args = ["low.log", "--fabric", "cluster-h100", "--report", "busbw.html"];
    sandbox.busbw(&args).assert().code(1).stdout(contains("busbw.html"));
    let page = fs::read_to_string(sandbox.0.path().join("busbw.html")).unwrap();
    assert!(page.starts_with("<!doctype html><!-- a report of ropewalk -->") && page.len() < 100_000);
}

#[test]
fn suspects_are_simulated_beside_the_measured_curve() {
    let sandbox = Sandbox::new();
    let output =
        sandbox.busbw(&["low.log", "--simulate", "--json"]).assert().code(1).get_output().stdout.clone();
    let answer: Value = serde_json::from_slice(&output).unwrap();
    let last = |name: &str| {
        let of = answer["simulated"].as_array().unwrap().iter().find(|of| of["name"] == name).unwrap();
        of["points"].as_array().unwrap().last().unwrap()[2].as_f64().unwrap()
    };
    // One NIC of eight has the measured 44 GB/s by packets as well.
    assert!(last("healthy") > 280.0 && (last("few-nics") - 44.0).abs() < 5.0, "{answer:#}");
}
