//! A sweep as a user sees it: killed, resumed, wrong, failing.

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::contains;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// 24 points of some tenths of a second each.
const SWEEP: &str = "scenario = \"quickstart\"\nseeds = \"1..4\"\nflows = true\n[set]\nworkload.0.bytes = \"5MB\"\n\
                     [[axis]]\nschemes = [\"ecmp\", \"ar\", \"themis\"]\n\
                     [[axis]]\nnic.congestion.dcqcn.rate-increase-timer = [\"55us\", \"900us\"]\n";

struct Sandbox(TempDir);

impl Sandbox {
    fn new(sweep: &str) -> Self {
        let sandbox = Sandbox(TempDir::new().unwrap());
        fs::write(sandbox.path("s.toml"), sweep).unwrap();
        sandbox
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn ropewalk(&self, args: &[&str]) -> Command {
        let mut command = Command::cargo_bin("ropewalk").unwrap();
        command.args(args).current_dir(self.0.path()).env("NO_COLOR", "1").timeout(Duration::from_secs(180));
        command
    }

    /// Begins a sweep into `dir` and returns when at least `points` points are done.
    fn begin(&self, dir: &str, points: usize) -> std::process::Child {
        let mut child = Process::new(assert_cmd::cargo::cargo_bin("ropewalk"))
            .args(["sweep", "s.toml", "-o", dir, "--threads", "2"])
            .current_dir(self.0.path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        while done(&self.path(&format!("{dir}.part/points"))) < points {
            assert!(child.try_wait().unwrap().is_none(), "it ended before {points} points were done");
            std::thread::sleep(Duration::from_millis(2));
        }
        child
    }
}

fn done(points: &Path) -> usize {
    let is_point = |file: &fs::DirEntry| file.path().extension().is_some_and(|ending| ending == "json");
    fs::read_dir(points).map_or(0, |dir| dir.flatten().filter(is_point).count())
}

/// All files of a dataset, except the one with the timing.
fn files(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => files.extend(self::files(&path)),
            false if path.ends_with("timing.parquet") => {}
            false => files.push((entry.file_name().into(), fs::read(&path).unwrap())),
        }
    }
    files.sort();
    files
}

#[test]
fn a_killed_and_resumed_sweep_equals_an_uninterrupted_one() {
    let sandbox = Sandbox::new(SWEEP);
    sandbox
        .ropewalk(&["sweep", "s.toml", "-o", "whole", "-q"])
        .assert()
        .code(0)
        .stdout(contains("24 points"));
    let mut child = sandbox.begin("broken", 6);
    child.kill().unwrap();
    child.wait().unwrap();
    let kept = done(&sandbox.path("broken.part/points"));
    assert!((6..24).contains(&kept), "{kept}");
    assert!(!sandbox.path("broken").exists(), "nothing looks finished");
    sandbox.ropewalk(&["sweep", "s.toml", "-o", "broken"]).assert().code(2).stderr(contains("--resume"));
    let resumed = sandbox.ropewalk(&["sweep", "s.toml", "-o", "broken", "--resume"]).assert().code(0);
    resumed.stderr(contains(format!("{kept} of 24 runs are already done")));
    assert!(!sandbox.path("broken.part").exists());
    let (whole, broken) = (files(&sandbox.path("whole")), files(&sandbox.path("broken")));
    assert_eq!(whole.len(), 3 + 24, "sweep.json, points, configs, and the flows of each");
    assert!(whole == broken);
    let again = sandbox.ropewalk(&["sweep", "s.toml", "-o", "broken", "--resume"]).assert().code(0);
    again.stderr(contains("already finished"));
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_a_sweep_within_a_second_and_prints_how_to_continue() {
    let sandbox = Sandbox::new(SWEEP);
    let child = sandbox.begin("out", 2);
    let pid = child.id().to_string();
    let sent = Process::new("kill").args(["-INT", &pid]).status().unwrap();
    assert!(sent.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        text.contains("of 24 runs are done and kept; continue with: ropewalk sweep s.toml -o out --resume"),
        "{text}"
    );
    assert!(sandbox.path("out.part/unfinished.json").is_file() && !sandbox.path("out").exists());
}

#[test]
fn a_failed_point_has_a_row_and_the_others_run() {
    // Every packet is lost, so the run stalls.
    let sandbox = Sandbox::new(
        "scenario = \"quickstart\"\n[set]\nworkload.0.bytes = \"20kB\"\nstop.no-progress = \"5ms\"\n\
         [[axis]]\nlinks.loss = [0.0, 1.0]\n",
    );
    let assert = sandbox
        .ropewalk(&["sweep", "s.toml", "--json"])
        .assert()
        .code(3)
        .stderr(contains("at point 1 (links.loss = 1.0)"));
    let page: serde_json::Value = serde_json::from_slice(&assert.get_output().stdout).unwrap();
    let rows = &page["rows"];
    assert_eq!((&rows[0]["complete"], &rows[1]["complete"]), (&true.into(), &false.into()));
    assert_eq!(rows[0]["failure"], "");
    assert!(
        rows[1]["failure"].as_str().unwrap().contains("nothing has moved since"),
        "{}",
        rows[1]["failure"]
    );
    let again = sandbox.ropewalk(&["sweep", "s.toml", "--json", "--resume"]).assert().code(3);
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&again.get_output().stdout).unwrap(), page);
}

#[test]
fn only_the_first_failed_points_are_printed_in_full() {
    let sandbox = Sandbox::new(
        "scenario = \"quickstart\"\nseeds = \"1..5\"\n[set]\nworkload.0.bytes = \"20kB\"\nstop.no-progress = \"5ms\"\n\
         [[axis]]\nlinks.loss = [1, 0, 1]\n",
    );
    let assert = sandbox.ropewalk(&["sweep", "s.toml", "-q", "-o", "out"]).assert().code(3);
    let told = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    assert_eq!(told.matches("\n  at point ").count(), 3, "{told}");
    let table = sandbox.path("out/points.parquet");
    let rest = "error: 7 more points (3, 4, 10 to 14) failed; column `failure` in out/points.parquet gives the reasons";
    assert!(told.trim_end().ends_with(rest) && table.is_file(), "{told}");
}

#[test]
fn wrong_input_ends_with_2_and_its_position_and_writes_nothing() {
    let cases = [
        ("scenario = \"quickstart\"\n[[axis]]\n\"switch.bufer\" = [\"1MB\"]\n", "s.toml:3:1"),
        ("scenario = \"quickstart\"\n[[axis]]\n\"switch.bufer\" = [\"1MB\"]\n", "`buffer`?"),
        (
            "scenario = \"quickstart\"\n[[axis]]\nswitch.buffer = [\"1MB\", \"2\"]\n",
            "axis `switch.buffer`, value \"2\"",
        ),
        ("scenario = \"quickstrat\"\n", "quickstart"),
        ("scenario = ", "s.toml:1:12"),
    ];
    for (text, message) in cases {
        let sandbox = Sandbox::new(text);
        let assert = sandbox.ropewalk(&["sweep", "s.toml"]).assert().code(2).stdout("");
        let told = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        assert!(told.contains(message), "{message}:\n{told}");
        assert_eq!(fs::read_dir(sandbox.0.path()).unwrap().count(), 1, "{text}");
    }
    let sandbox = Sandbox::new(SWEEP);
    sandbox.ropewalk(&["sweep", "themis-timer"]).assert().code(2).stderr(contains("themis-timers"));
    fs::create_dir(sandbox.path("thesis")).unwrap();
    fs::write(sandbox.path("thesis/chapter1.tex"), "Once upon a time").unwrap();
    let refused = sandbox.ropewalk(&["sweep", "s.toml", "-o", "thesis"]).assert().code(2);
    refused.stderr(contains("does not look like a sweep"));
    assert!(!sandbox.path("thesis.part").exists());
}

#[test]
fn a_dry_run_lists_the_points_and_runs_none() {
    let sandbox = Sandbox::new(SWEEP);
    let assert = sandbox.ropewalk(&["sweep", "s.toml", "--dry-run"]).assert().code(0);
    assert.stdout(contains("24 points of quickstart").and(contains("rate-increase-")));
    assert!(!sandbox.path("results").exists());
    let schema = sandbox.ropewalk(&["schema", "sweep"]).assert().code(0);
    schema.stdout(contains("\"seeds\"").and(contains("draft-07")));
}
