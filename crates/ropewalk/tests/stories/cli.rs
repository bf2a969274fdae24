//! The command as a user sees it: exit codes, messages, files.

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::contains;
use results::Results;
use results::directory::Target;
use serde_json::Value;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// A temporary directory in which commands run.
struct Sandbox(TempDir);

impl Sandbox {
    fn new() -> Self {
        Sandbox(TempDir::new().unwrap())
    }

    fn ropewalk(&self, args: &[&str]) -> Command {
        let mut command = Command::cargo_bin("ropewalk").unwrap();
        command
            .args(args)
            .current_dir(self.0.path())
            .env("NO_COLOR", "1")
            .timeout(std::time::Duration::from_secs(120));
        command
    }

    fn json(&self, args: &[&str]) -> Value {
        let output = self.ropewalk(args).assert().code(0).get_output().stdout.clone();
        serde_json::from_slice(&output).unwrap()
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

const SMALL: &str = "workload.0.bytes=200kB";

#[test]
fn a_run_prints_its_summary_and_writes_results() {
    let sandbox = Sandbox::new();
    let assert = sandbox.ropewalk(&["run", "quickstart", "--set", SMALL]).assert().code(0);
    assert.stdout(contains("complete").and(contains("slowdown")).and(contains("results/quickstart")));
    for name in ["summary.json", "manifest.json", "flows.parquet", "links.parquet", "series.parquet"] {
        assert!(sandbox.path("results/quickstart").join(name).is_file(), "{name}");
    }
}

#[test]
fn the_same_scenario_and_seed_give_the_same_bytes() {
    let sandbox = Sandbox::new();
    let run = |dir: &str| sandbox.json(&["run", "quickstart", "--set", SMALL, "--csv", "--json", "-o", dir]);
    let (mut a, mut b) = (run("a"), run("b"));
    for summary in [&mut a, &mut b] {
        assert!(summary.as_object_mut().unwrap().remove("timing").is_some());
    }
    assert_eq!(a, b);
    for name in ["manifest.json", "flows.parquet", "links.parquet", "series.parquet", "flows.csv"] {
        let read = |dir: &str| fs::read(sandbox.path(dir).join(name)).unwrap();
        assert!(read("a") == read("b"), "{name} differs");
    }
    let other = sandbox.json(&["run", "quickstart", "--set", SMALL, "--seed", "2", "--json", "-o", "c"]);
    assert_ne!(other["digest"], a["digest"]);
    assert_eq!(other["seed"], 2);
}

#[test]
fn both_engines_agree() {
    let sandbox = Sandbox::new();
    let run =
        |engine: &str| sandbox.json(&["run", "quickstart", "--set", SMALL, "--json", "--engine", engine]);
    let (window, reference) = (run("window"), run("reference"));
    assert_eq!(window["digest"], reference["digest"]);
    assert_eq!(window["timing"]["engine"], "window");
    assert_eq!(reference["timing"]["engine"], "reference");
}

#[test]
fn threads_change_only_the_time_of_a_run() {
    let sandbox = Sandbox::new();
    let run =
        |threads: &str| sandbox.json(&["run", "quickstart", "--set", SMALL, "--json", "--threads", threads]);
    let (mut one, mut three) = (run("1"), run("3"));
    for (summary, threads) in [(&mut one, 1), (&mut three, 3)] {
        let timing = summary.as_object_mut().unwrap().remove("timing").unwrap();
        assert_eq!((&timing["threads"], &timing["engine"]), (&Value::from(threads), &Value::from("window")));
        assert!(timing["cpu_s"].as_f64().unwrap() > 0.0);
    }
    assert_eq!(one, three);
    // A single run gets both threads; two runs get one thread each.
    let compare = |schemes: &str| {
        let args =
            ["compare", "quickstart", "--schemes", schemes, "--set", SMALL, "--json", "--threads", "2"];
        let rows = sandbox.json(&args)["rows"].as_array().unwrap().clone();
        (rows[0]["timing"]["threads"].clone(), rows[0]["digest"].clone())
    };
    let ((split, alone), (whole, beside)) = (compare("themis"), compare("themis,ecmp"));
    assert_eq!((split, whole), (Value::from(2), Value::from(1)));
    assert_eq!((&alone, &beside), (&one["digest"], &one["digest"]));
}

#[test]
fn a_manifest_repeats_its_run() {
    let sandbox = Sandbox::new();
    sandbox.ropewalk(&["run", "quickstart", "--set", SMALL, "--seed", "5", "-o", "a", "-q"]).assert().code(0);
    let read = |dir: &str| -> Value {
        serde_json::from_str(&fs::read_to_string(sandbox.path(dir).join("manifest.json")).unwrap()).unwrap()
    };
    let first = read("a");
    sandbox.write("again.toml", first["config"].as_str().unwrap());
    sandbox.ropewalk(&["run", "again.toml", "-o", "b", "-q"]).assert().code(0);
    let second = read("b");
    assert_eq!(first["digest"], second["digest"]);
    assert_eq!(first["config_hash"], second["config_hash"]);
}

#[test]
fn wrong_input_ends_with_2_and_a_reason_and_writes_nothing() {
    let bad = "[topology.leaf-spine]\nleafs = 4\n";
    let cases: &[(&[&str], &str)] = &[
        (&["run", "no-such-scenario"], "no-such-scenario"),
        (&["run", "quickstrat"], "quickstart"),
        (&["run", "bad.toml"], "leaves"),
        (&["check", "bad.toml"], "bad.toml:2:1"),
        (&["run", "quickstart", "--set", "seed"], "KEY=VALUE"),
        (&["run", "quickstart", "--set", "switch.bufer=1MB"], "buffer"),
        (&["run", "quickstart", "--set", "switch.buffer=64"], "unit"),
        (&["run", "quickstart", "--threads", "0"], "at least 1"),
        (&["run", "quickstart", "--threads", "two"], "whole number of 1 or more"),
        (&["run", "quickstart", "--threads", "99"], "99 threads are too many: the nodes of this fabric form"),
        (
            &["run", "quickstart", "--threads", "2", "--engine", "reference"],
            "reference engine runs on 1 thread",
        ),
        (&["compare", "quickstart", "--schemes", "ecmp,ar", "--threads", "999"], "2 runs of at most"),
        (&["compare", "quickstart", "--schemes", "ecmp", "--threads", "0"], "at least 1"),
        (&["reproduce", "themis-memory", "--threads", "x"], "whole number of 1 or more"),
        (&["run", "quickstart", "--engine", "steam"], "steam"),
        (&["run"], "SCENARIO"),
        (&["compare", "quickstart"], "--schemes"),
        (&["compare", "quickstart", "--schemes", "ecmp,spray"], "spray"),
        (&["compare", "quickstart", "--schemes", "ecmp", "--class", "bulk"], "bulk"),
        (&["compare", "quickstart", "--schemes", "ecmp", "--seeds", "5..1"], "empty"),
        (&["compare", "quickstart", "--schemes", "ecmp", "--jobs", "0"], "at least 1"),
        (&["reproduce"], "--all"),
        (&["reproduce", "themis-fig9"], "themis-fig1"),
        (&["memory", "ecmp"], "ecmp"),
        (&["memory", "themis", "--set", "nics=many"], "nics = many"),
        (&["memory", "themis", "--set", "knob=1"], "qps-per-nic"),
        (&["new", "../x"], "../x"),
        (&["compare", "quickstart", "--schemes", "ecmp,ar,ecmp"], "scheme `ecmp` is repeated"),
        (&["compare", "quickstart", "--schemes", "ecmp", "--seeds", "1,2,1"], "seed 1 is repeated"),
        (&["run", "quickstart", "--pcap", "host0", "--pcap", "host99"], "--pcap:1:1"),
        (&["run", "quickstart", "--set", "record.taps=[\"host99\"]"], "--set:1:13"),
        (&["frobnicate"], "frobnicate"),
        (&["fuzz", "--minutes", "1"], "ropewalk-workshop"),
        (&["tune", "site.toml", "--trials", "3"], "a command of the Python package"),
    ];
    for (args, message) in cases {
        let sandbox = Sandbox::new();
        sandbox.write("bad.toml", bad);
        let assert = sandbox.ropewalk(args).assert().code(2).stdout("");
        let text = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        assert!(text.contains(message), "{args:?} does not say {message:?}:\n{text}");
        assert_eq!(sandbox.names(), ["bad.toml"], "{args:?} wrote something");
    }
}

#[test]
fn a_directory_without_results_is_not_replaced() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("thesis")).unwrap();
    sandbox.write("thesis/chapter1.tex", "Once upon a time");
    let assert = sandbox.ropewalk(&["run", "quickstart", "--set", SMALL, "-o", "thesis"]).assert().code(2);
    assert.stderr(contains("does not look like results"));
    assert_eq!(sandbox.names(), ["thesis"]);
    assert!(Path::new(&sandbox.path("thesis/chapter1.tex")).is_file());
}

#[test]
fn a_stalled_run_ends_with_3_and_prints_its_summary() {
    let sandbox = Sandbox::new();
    // Every packet is lost.
    let args = [
        "run",
        "quickstart",
        "--set",
        SMALL,
        "--set",
        "links.loss=1.0",
        "--set",
        "stop.no-progress=5ms",
        "--json",
    ];
    let assert =
        sandbox.ropewalk(&args).assert().code(3).stderr(contains("flows wait").and(contains("flow 0")));
    let summary: Value = serde_json::from_slice(&assert.get_output().stdout).unwrap();
    assert_eq!((&summary["complete"], &summary["ending"]), (&false.into(), &"stalled".into()));
    assert_eq!(summary["flows"]["finished"], 0);
    assert_eq!(summary["flows"]["fct_us"], Value::Null);
}

#[test]
fn a_run_whose_retries_are_used_up_ends_with_3_and_names_flow_and_link() {
    let sandbox = Sandbox::new();
    let down = "failure=[{links=[[\"host0\",\"*\"]],at=\"1us\"}]";
    let args = ["run", "quickstart", "--set", SMALL, "--set", down, "--set", "nic.retries=7"];
    sandbox.ropewalk(&args).assert().code(3).stdout(contains(
        "ended by          flow 0 (host12 -> host0) at 8000.000 us   last packet lost on leaf0 -> host0",
    ));
    let assert = sandbox.ropewalk(&[&args[..], &["--json"]].concat()).assert().code(3).stderr(
        contains("the job ended at 8000.000 us: flow 0 (host12 -> host0, job all-reduce) had no answer to 7 retries")
            .and(contains("(RETRY_EXC_ERR); leaf0 -> host0 lost its last packet")),
    );
    let summary: Value = serde_json::from_slice(&assert.get_output().stdout).unwrap();
    assert_eq!((&summary["complete"], &summary["ending"]), (&false.into(), &"retry-exceeded".into()));
    let by = &summary["ended_by"];
    assert_eq!((&by["from"], &by["link"]), (&"host12".into(), &"leaf0 -> host0".into()));
    assert_eq!((by["flow"].as_u64(), by["at_us"].as_f64()), (Some(0), Some(8000.0)));
    assert!(summary["flows"]["finished"].as_u64() < summary["flows"]["count"].as_u64());
}

/// Two servers with a NIC of two ports, each in a plane of its own. Cables die and come back.
const DEVICES: &str = "[server]\ngpus = 1\nports-per-nic = 2\nbond-failover = \"wait\"\n[topology.links]\nhosts = [\"a\", \"b\"]\n\
    switches = [\"x\", \"y\"]\nlinks = [[\"a\", \"x\"], [\"a\", \"y\"], [\"b\", \"x\"], [\"b\", \"y\"]]\n[nic]\nretries = 7\n\
    on-retry-exceeded = \"nccl-failover\"\n[[workload]]\nflows = { list = [{ from = \"ap0\", to = \"bp0\", bytes = \"10MB\" }] }\n\
    [[failure]]\nlinks = [[\"a\", \"x\"]]\nat = \"1us\"\n";

#[test]
fn a_queue_pair_that_fails_over_is_named_and_a_second_dead_port_ends_the_job_with_3() {
    let sandbox = Sandbox::new();
    sandbox.write("devices.toml", DEVICES);
    let summary = sandbox.json(&["run", "devices.toml", "--json"]);
    let moved = &summary["failovers"][0];
    assert_eq!(
        (&moved["from"], &moved["to"], &moved["back_us"]),
        (&"ap0".into(), &"ap1".into(), &Value::Null)
    );
    assert_eq!((moved["at_us"].as_f64(), &summary["counters"]["failovers"]), (Some(8000.0), &1.into()));
    sandbox
        .ropewalk(&["run", "devices.toml"])
        .assert()
        .success()
        .stdout(contains("moved             flow 0 from ap0 to ap1 at 8000.000 us"));
    let both = "failure=[{links=[[\"a\",\"x\"],[\"b\",\"y\"]],at=\"1us\"}]";
    let ended = sandbox.ropewalk(&["run", "devices.toml", "--set", both, "--json"]).assert().code(3);
    let summary: Value = serde_json::from_slice(&ended.get_output().stdout).unwrap();
    assert_eq!(
        (&summary["ended_by"]["link"], &summary["ending"]),
        (&"y -> b".into(), &"retry-exceeded".into())
    );
    assert_eq!(summary["failovers"].as_array().unwrap().len(), 1);
}

#[test]
fn the_summary_separates_near_and_far_flows() {
    let sandbox = Sandbox::new();
    let edge = "switch-role.external.feedback.long-haul={interval=\"4us\"}";
    let plain = sandbox.json(&["run", "long-haul-near-destination", "--json"]);
    let fair = sandbox.json(&["run", "long-haul-near-destination", "--json", "--set", edge]);
    let of = |json: &Value| {
        let parts = &json["flows"]["by_distance"];
        assert_eq!((&parts["near"]["count"], &parts["far"]["count"]), (&40.into(), &2.into()));
        let mean = |part: &str| parts[part]["slowdown"]["mean"].as_f64().unwrap();
        let ratio = parts["unfairness"].as_f64().unwrap();
        assert!((mean("near") / mean("far") / ratio - 1.0).abs() < 1e-3, "{parts}");
        ratio
    };
    assert!(of(&fair) < of(&plain));
    assert_eq!(sandbox.json(&["run", "quickstart", "--json"])["flows"]["by_distance"], Value::Null);
    // The feedback works only at the ends of a long link.
    let everywhere = ["check", "long-haul", "--set", "switch-role.tor.feedback.long-haul={}"];
    sandbox.ropewalk(&everywhere).assert().code(2).stderr(contains("has no long link"));
    let never = ["check", "long-haul", "--set", "switch-role.external.feedback.long-haul={step=\"0us\"}"];
    sandbox.ropewalk(&never).assert().code(2).stderr(contains("it must be longer than 0"));
}

#[test]
fn compare_swaps_the_scheme_of_all_classes_if_none_has_its_own() {
    let sandbox = Sandbox::new();
    let waves = "[topology.leaf-spine]\nleaves = 2\nspines = 4\nhosts-per-leaf = 4\n[class.first]\n[class.second]\n\
                 [[workload]]\nname = \"a\"\nclass = \"first\"\npermutation = { bytes = \"50kB\", kind = \"cross-rack\" }\n\
                 [[workload]]\nname = \"b\"\nclass = \"second\"\npermutation = { bytes = \"50kB\", kind = \"cross-rack\" }\n";
    sandbox.write("waves.toml", waves);
    let json = sandbox.json(&["compare", "waves.toml", "--schemes", "ecmp,rps", "--json"]);
    let disorder = |row: usize| json["rows"][row]["packets"]["out_of_order"].as_u64();
    assert_eq!(disorder(0), Some(0));
    assert!(disorder(1) > Some(0), "all classes must be sprayed");
}

#[test]
fn flows_cut_off_by_a_failure_are_named_before_and_after_the_run() {
    let sandbox = Sandbox::new();
    let cut = "[topology.leaf-spine]\nleaves = 2\nspines = 2\nhosts-per-leaf = 2\n[stop]\nno-progress = \"5ms\"\n\
               [[failure]]\nlinks = [[\"leaf1\", \"spine*\"]]\nat = \"2us\"\n[[workload]]\nname = \"job\"\n\
               flows = { list = [{ from = \"host0\", to = \"host1\", bytes = \"1MB\" }, \
               { from = \"host1\", to = \"host2\", bytes = \"1MB\" }] }\n";
    sandbox.write("cut.toml", cut);
    sandbox
        .ropewalk(&["check", "cut.toml"])
        .assert()
        .code(0)
        .stderr(contains("warning: failures cut off host1 from host2 (job job)"));
    let told = contains("cut off: no path is left").and(contains("(host1 -> host2, job job)\n"));
    let assert = sandbox.ropewalk(&["run", "cut.toml", "--json"]).assert().code(3).stderr(told);
    let summary: Value = serde_json::from_slice(&assert.get_output().stdout).unwrap();
    assert_eq!((&summary["complete"], &summary["flows"]["finished"]), (&false.into(), &1.into()));
    // With a repair, the run completes, although no packet moved for longer than `no-progress`.
    sandbox.write("mended.toml", &cut.replace("at = \"2us\"", "at = \"2us\"\nuntil = \"20ms\""));
    let summary = sandbox.json(&["run", "mended.toml", "--json"]);
    assert_eq!(summary["complete"], true);
}

#[test]
#[cfg(target_os = "linux")]
fn output_that_cannot_be_written_is_an_error() {
    let sandbox = Sandbox::new();
    for args in [&["run", "quickstart", "--set", SMALL, "--json"][..], &["schema"], &["memory", "themis"]] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_ropewalk"));
        let output = command.args(args).current_dir(sandbox.0.path()).stdout(full).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
        assert!(stderr.contains("cannot write to standard output: No space left"), "{args:?}: {stderr}");
    }
}

#[test]
fn a_run_stopped_by_its_scenario_succeeds_but_is_not_complete() {
    let sandbox = Sandbox::new();
    let summary = sandbox.json(&["run", "quickstart", "--set", "stop.after=20us", "--json"]);
    assert_eq!((&summary["complete"], &summary["ending"]), (&false.into(), &"stopped".into()));
    assert_eq!(summary["sim_time_us"], 20.0);
}

/// Runs a command, sends it a signal some seconds after it began to listen, and requires that it ends soon with 130.
#[cfg(unix)]
fn interrupt(sandbox: &Sandbox, args: &[&str], signal: &str, after: f64) {
    use std::process::Stdio;
    use std::time::{Duration, Instant};
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin("ropewalk"))
        .args(args)
        .current_dir(sandbox.0.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    #[cfg(target_os = "linux")]
    while !handles_sigint(child.id()) {
        assert!(child.try_wait().unwrap().is_none(), "{args:?}: ended before it listened");
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_secs_f64(after));
    std::process::Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    #[expect(clippy::disallowed_methods, reason = "the test measures wall time")]
    let asked = Instant::now();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{args:?}");
    // The target is one second. A busy machine may be thirty times as slow, and the command itself would take longer still.
    assert!(asked.elapsed() < Duration::from_secs(30), "{args:?}: {:?}", asked.elapsed());
}

/// True once a process has a handler for SIGINT, which has the number 2.
#[cfg(target_os = "linux")]
fn handles_sigint(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    u64::from_str_radix(caught.trim(), 16).unwrap() & 1 << (2 - 1) != 0
}

#[cfg(unix)]
#[test]
fn ctrl_c_stops_a_run_soon_and_writes_nothing() {
    let sandbox = Sandbox::new();
    interrupt(&sandbox, &["run", "themis-fig5-allreduce", "--json"], "-INT", 3.0);
    // The files of a capture grow while the run goes on.
    interrupt(&sandbox, &["run", "themis-fig5-allreduce", "--pcap", "host0", "-o", "a/b"], "-INT", 3.0);
    assert!(sandbox.names().is_empty(), "{:?}", sandbox.names());
}

#[cfg(unix)]
#[test]
fn ctrl_c_and_sigterm_are_heard_while_a_file_is_read() {
    let sandbox = Sandbox::new();
    // Nobody writes to the pipe, so that the read blocks for ever.
    let pipe = sandbox.0.path().join("pipe.toml");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    interrupt(&sandbox, &["check", "pipe.toml"], "-INT", 0.5);
    interrupt(&sandbox, &["run", "pipe.toml"], "-TERM", 0.5);
    interrupt(&sandbox, &["compare", "pipe.toml", "--schemes", "ecmp"], "-TERM", 0.5);
    interrupt(&sandbox, &["sweep", "pipe.toml"], "-INT", 0.5);
    interrupt(
        &sandbox,
        &["import", "hpcc", "--topology", "pipe.toml", "--flows", "pipe.toml", "-o", "new.toml"],
        "-INT",
        0.5,
    );
    assert_eq!(sandbox.names(), ["pipe.toml"]);
}

#[cfg(unix)]
#[test]
fn ctrl_c_is_heard_while_a_large_scenario_is_checked() {
    let sandbox = Sandbox::new();
    let flow =
        |i: u32| format!("{{ from = \"host{}\", to = \"host{}\", bytes = \"1MB\" }},\n", i % 16, i % 16 + 1);
    let flows: String = (0..200_000).map(flow).collect();
    sandbox.write(
        "many.toml",
        &format!(
            "[topology.leaf-spine]\nleaves = 4\nspines = 4\nhosts-per-leaf = 8\nrate = \"100Gbps\"\n\
             [[workload]]\nflows = {{ list = [\n{flows}] }}\n"
        ),
    );
    interrupt(&sandbox, &["check", "many.toml"], "-INT", 1.0);
}

#[cfg(unix)]
#[test]
fn an_endless_file_ends_with_an_error() {
    let sandbox = Sandbox::new();
    let check = sandbox.ropewalk(&["check", "/dev/zero"]).assert();
    check.code(2).stderr(contains("it has more than 268435456 bytes"));
}

#[test]
fn a_comparison_has_a_row_per_scheme_and_seed() {
    let sandbox = Sandbox::new();
    let args = ["compare", "quickstart", "--schemes", "ecmp,themis", "--seeds", "1..3", "--set", SMALL];
    let json = sandbox.json(&[&args[..], &["--json"]].concat());
    let rows = json["rows"].as_array().unwrap();
    let of = |row: &Value| (row["scheme"].as_str().unwrap().to_owned(), row["seed"].as_u64().unwrap());
    let expected: Vec<_> =
        ["ecmp", "themis"].iter().flat_map(|s| (1..=3).map(move |n| ((*s).to_owned(), n))).collect();
    assert_eq!(rows.iter().map(of).collect::<Vec<_>>(), expected);
    let alone = sandbox.json(&["run", "quickstart", "--set", SMALL, "--seed", "2", "--json"]);
    assert_eq!(rows[4]["digest"], alone["digest"], "a run gives the same result alone and in a comparison");
    let text = sandbox.ropewalk(&args).assert().code(0).get_output().stdout.clone();
    let text = String::from_utf8(text).unwrap();
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    assert!(text.contains("themis") && text.contains("least"), "{text}");
}

#[test]
fn cut_packets_are_in_the_text_of_a_run_and_a_column_of_a_comparison() {
    let sandbox = Sandbox::new();
    let small = ["--set", "workload.permutation.bytes=40kB", "--set", "workload.incast.bytes=100kB"];
    let args = [&["run", "ndp", "-o", "out"], &small[..]].concat();
    let text =
        String::from_utf8(sandbox.ropewalk(&args).assert().code(0).get_output().stdout.clone()).unwrap();
    let cut = Results::read(&sandbox.path("out")).unwrap().summary.packets.cut.unwrap().packets;
    assert!(text.contains(&format!("dropped 0 (0 %)   cut {} (", results::text::count(cut))), "{text}");
    let table = |scenario: &str, set: &[&str]| {
        let args = [&["compare", scenario, "--schemes", "ecmp,oblivious"], set].concat();
        let text = sandbox.ropewalk(&args).assert().code(0).get_output().stdout.clone();
        String::from_utf8(text).unwrap()
    };
    let text = table("ndp", &small);
    assert!(text.lines().any(|line| line.starts_with("scheme ") && line.contains(" cut ")), "{text}");
    let text = table("quickstart", &["--set", SMALL]);
    assert!(!text.contains("cut"), "{text}");
}

/// A pipeline of two stages on two servers, with two replicas of tensor parallelism in each.
const STEP: &str = "[server]\ngpus = 4\n[topology.rails]\nservers = 2\nspines = 2\n[[workload]]\nname = \"step\"\n\
    [workload.training]\nmodel = { hidden = 512, layers = 4, heads = 8, ffn = 2048, vocab = 1000 }\n\
    parallel = { tp = 2, pp = 2 }\nbatch = { global = 8, sequence = 256 }\ncompute = { flops = \"400TFLOPS\" }\n";

#[test]
fn a_comparison_keeps_its_runs_for_explain_and_report() {
    let sandbox = Sandbox::new();
    let args = ["compare", "quickstart", "--schemes", "ecmp,ar", "--seeds", "1,2", "--set", SMALL];
    let mine = |more: &[&'static str]| sandbox.ropewalk(&[&args[..], more].concat());
    let said = mine(&["-o", "out", "--record", "--csv"]).assert().code(0);
    said.stdout(
        contains("ecmp, the baseline, is fastest")
            .and(contains("± 95 %"))
            .and(contains("results           out")),
    );
    let names = ["ar-1", "ar-2", "comparison.json", "ecmp-1", "ecmp-2"];
    let mut found: Vec<_> =
        fs::read_dir(sandbox.path("out")).unwrap().map(|e| e.unwrap().file_name()).collect();
    found.sort();
    assert_eq!(found, names);
    // A run of the comparison is what `ropewalk run` writes, and can be explained.
    let alone = [
        "run",
        "quickstart",
        "--set",
        SMALL,
        "--set",
        "scheme.ar={}",
        "--seed",
        "2",
        "--record",
        "-o",
        "alone",
    ];
    sandbox.ropewalk(&alone).assert().code(0);
    for name in ["flows.parquet", "events.parquet"] {
        let read = |dir: &str| fs::read(sandbox.path(dir).join(name)).unwrap();
        assert_eq!(read("out/ar-2"), read("alone"), "{name}");
    }
    assert!(sandbox.path("out/ar-2/flows.csv").is_file());
    sandbox.ropewalk(&["explain", "slowest", "out/ar-2"]).assert().code(0).stdout(contains("took"));
    sandbox.ropewalk(&["explain", "slowest", "out"]).assert().code(2).stderr(contains("out/ecmp-1"));
    sandbox.ropewalk(&["report", "out"]).assert().code(0).stdout(contains("out/report.html"));
    // The statistics are those of the rows.
    let kept: Value =
        serde_json::from_slice(&fs::read(sandbox.path("out/comparison.json")).unwrap()).unwrap();
    assert_eq!((&kept["baseline"], &kept["scenario"]), (&"ecmp".into(), &"quickstart".into()));
    let p99 = |seed: &str| {
        Results::read(&sandbox.path("out").join(format!("ar-{seed}")))
            .unwrap()
            .summary
            .flows
            .fct_us
            .unwrap()
            .p99
    };
    let (a, b) = (p99("1"), p99("2"));
    let said = &kept["schemes"][1]["metrics"]["flows.fct_us.p99"];
    assert!((said["mean"].as_f64().unwrap() - f64::midpoint(a, b)).abs() < 1e-6, "{said}");
    // Two values: half of their distance, times Student's t for one degree of freedom.
    assert!((said["margin"].as_f64().unwrap() - 12.706 * (a - b).abs() / 2.0).abs() < 1e-3, "{said}");
    // An older comparison is replaced as a whole, and nothing else is.
    mine(&["-o", "out", "--schemes", "ecmp"]).assert().code(2);
    sandbox
        .ropewalk(&["compare", "quickstart", "--schemes", "ecmp", "--set", SMALL, "-o", "out"])
        .assert()
        .code(0);
    assert!(!sandbox.path("out/ar-1").exists() && sandbox.path("out/ecmp-1/summary.json").is_file());
    sandbox.write("out/mine.txt", "");
    let again = ["compare", "quickstart", "--schemes", "ecmp", "--set", SMALL, "-o", "out"];
    sandbox.ropewalk(&again).assert().code(2).stderr(contains("mine.txt is not one"));
    assert!(sandbox.names().iter().all(|name| !name.starts_with('.')), "{:?}", sandbox.names());
}

#[test]
fn the_answer_is_relative_to_the_baseline() {
    let sandbox = Sandbox::new();
    let args = ["compare", "quickstart", "--schemes", "rps,ecmp,themis", "--set", SMALL];
    let said = |more: &[&'static str]| {
        let output =
            sandbox.ropewalk(&[&args[..], more].concat()).assert().code(0).get_output().stdout.clone();
        String::from_utf8(output).unwrap().split("\n\n").next().unwrap().replace('\n', " ")
    };
    let usual = said(&[]);
    assert!(usual.starts_with("themis is fastest: ") && usual.contains("ecmp (slowest group "), "{usual}");
    assert!(said(&["--baseline", "rps"]).contains("rps (slowest group "));
    assert!(said(&["--baseline", "themis"]).starts_with("themis, the baseline, is fastest: slowest group "));
}

#[test]
fn a_setting_that_every_run_replaces_is_an_error() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "s.toml",
        "scenario = \"quickstart\"\nseeds = \"1..2\"\n[[axis]]\nschemes = [\"ecmp\", \"themis\"]\n[[axis]]\n\"workload.0.bytes\" = \
         [\"64kB\", \"128kB\"]\n\"switch.pfc.alpha\" = [\"1/8\", \"1/4\"]\n",
    );
    let compare = |set: &'static str| vec!["compare", "quickstart", "--schemes", "ecmp,themis", "--set", set];
    let sweep = |set: &'static str| vec!["sweep", "s.toml", "--dry-run", "--set", set];
    let cases: [(Vec<&str>, Option<&str>); 11] = [
        (compare("scheme.ar={}"), Some("`--schemes` chooses the schemes, and `ar` is not among them")),
        (compare("scheme=rps"), Some("`rps` is not among them")),
        (compare("scheme.themis.mode=literal"), None),
        ([compare("seed=3"), vec!["--seeds", "1..2"]].concat(), Some("set either `--seeds` or `seed`")),
        (
            [compare("scheme.themis.mode=literal"), vec!["--set", "scheme.ecmp={}"]].concat(),
            Some("a later change configures `ecmp`, which removes the settings of `themis`"),
        ),
        (
            sweep("workload.all-reduce.bytes=1MB"),
            Some("the axis `workload.0.bytes` sets this at every point"),
        ),
        (sweep("switch.pfc.alpha=1/2"), Some("the axis `switch.pfc.alpha` sets this")),
        (sweep("switch.buffer=32MB"), None),
        (sweep("scheme.ar={}"), Some("`schemes` chooses the schemes, and `ar` is not among them")),
        (sweep("scheme.themis.mode=literal"), None),
        (sweep("seed=7"), Some("set either `seeds` or `seed`, not both")),
    ];
    for (mut args, wrong) in cases {
        args.push("--quiet");
        if args[0] == "compare" {
            args.extend(["--set", SMALL]);
        }
        let assert = sandbox.ropewalk(&args).assert().code(if wrong.is_some() { 2 } else { 0 });
        // Errors are broken into lines.
        let said = String::from_utf8_lossy(&assert.get_output().stderr).replace("\n  │", "");
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(wrong.is_none_or(|wrong| said.contains(wrong)), "{args:?}: {said}");
    }
}

#[test]
fn list_shows_every_kind_and_unknown_names_get_the_nearest() {
    let sandbox = Sandbox::new();
    let all = sandbox.json(&["list", "--json"]);
    let kinds = [
        "schemes",
        "transports",
        "controls",
        "topologies",
        "workloads",
        "nics",
        "switches",
        "scenarios",
        "experiments",
    ];
    for kind in kinds {
        assert!(all[kind].as_array().is_some_and(|list| list.len() > 2), "{kind}");
    }
    let schemes = sandbox.ropewalk(&["list", "schemes"]).assert().code(0);
    schemes.stdout(contains("  themis ").and(contains("transports").not()));
    sandbox
        .ropewalk(&["list", "presets"])
        .assert()
        .code(0)
        .stdout(contains("connectx-7").and(contains("tomahawk-5")));
    sandbox.ropewalk(&["list", "sceme"]).assert().code(2).stderr(contains("did you mean `schemes`?"));
    let wrong = sandbox.ropewalk(&["compare", "quickstart", "--schemes", "qqq"]).assert().code(2);
    wrong.stderr(contains("nearest").and(contains("`ugal-l`, `ugal-g`").not()));
}

#[test]
fn a_training_step_is_shown_before_it_runs_and_told_after_it() {
    let sandbox = Sandbox::new();
    sandbox.write("step.toml", STEP);
    let shown = sandbox.json(&["workload", "show", "step.toml", "--json"]);
    let of = |name: &str, dimension: &str| {
        let rows = shown["operations"].as_array().unwrap();
        rows.iter().find(|row| row["operation"] == name && row["dimension"] == dimension).unwrap().clone()
    };
    // Activations of 256 tokens x 512 x 2 B, half of them on each rank of a pair, for 4 micro-batches in both directions
    // over the 4 NICs of a server.
    let send = of("send", "pp");
    assert_eq!((&send["bytes"][0], &send["nic_bytes"]), (&131_072.into(), &(4 * 2 * 4 * 131_072).into()));
    let gather = of("all-gather", "tp");
    assert_eq!((&gather["bytes"][0], &gather["nic_bytes"]), (&262_144.into(), &0.into()));
    sandbox.ropewalk(&["workload", "show", "step.toml"]).assert().code(0).stdout(contains("step: pp send"));

    let run = sandbox.json(&["run", "step.toml", "--json"]);
    let steps = &run["jobs"]["step"]["steps"];
    let us = |key: &str| steps[key].as_f64().unwrap();
    assert!((us("compute_us") + us("exposed_us") + us("bubble_us") - us("time_us")).abs() < 1e-6);
    assert!(steps["exposed"]["pp"]["us"].as_f64().unwrap() > 0.0);
    let page = sandbox.ropewalk(&["run", "step.toml", "--quiet", "-o", "out"]).assert().code(0);
    page.stdout(contains("step of step").and(contains("tp all-gather")));
    assert!(sandbox.path("out/operations.parquet").exists() && sandbox.path("out/tasks.parquet").exists());
    let table = sandbox.ropewalk(&["compare", "step.toml", "--schemes", "ecmp,ar"]).assert().code(0);
    table.stdout(contains("exposed"));
    sandbox.write("bad.toml", &STEP.replace("pp = 2", "pp = 3"));
    sandbox.ropewalk(&["check", "bad.toml"]).assert().code(2).stderr(contains("of 8 GPUs"));
}

#[test]
fn reproduce_lists_experiments_and_prints_stable_json() {
    let sandbox = Sandbox::new();
    let list = sandbox.ropewalk(&["reproduce", "--list"]).assert().code(0).stdout(contains("themis-fig1"));
    list.stdout(contains("themis-memory").and(contains("loss-recovery")));
    let json = sandbox.json(&["reproduce", "themis-memory", "--json"]);
    let experiment = &json["experiments"][0];
    assert_eq!(experiment["name"], "themis-memory");
    assert_eq!(experiment["quick"], false);
    let row = &experiment["rows"][2];
    assert_eq!(row["measured"], 192_512.0);
    let keys: Vec<&str> = row.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["case", "metric", "unit", "paper", "measured", "deviation", "note"]);
    for row in experiment["rows"].as_array().unwrap() {
        assert!(!row["paper"].is_null() || row["note"] != "", "{row}");
    }
}

#[test]
fn each_recovery_mode_of_the_802_1_scenarios_recovers_its_own_way() {
    let sandbox = Sandbox::new();
    let run = |scenario: &str| {
        let small = ["--set", "workload.0.messages=5", "--json"];
        let json = sandbox.json(&[&["run", scenario][..], &small].concat());
        assert_eq!(json["flows"]["finished"], 5, "{scenario}");
        assert!(json["packets"]["dropped_link"].as_u64() > Some(0), "{scenario}");
        json
    };
    assert!(run("loss-recovery-go-back-n")["packets"]["discarded"].as_u64() > Some(0));
    assert!(run("loss-recovery-nic-sr")["control"]["nack"].as_u64() > Some(0));
    let ar = run("loss-recovery-adaptive-routing");
    assert_eq!(ar["control"]["nack"], 0);
    assert!(ar["control"]["timeout"].as_u64() > Some(0) && ar["packets"]["duplicate"].as_u64() > Some(0));
}

#[test]
fn themis_over_go_back_n_gives_a_warning() {
    let sandbox = Sandbox::new();
    let args = ["run", "quickstart", "--set", SMALL, "--set", "nic.transport.go-back-n={}"];
    sandbox.ropewalk(&args).assert().code(0).stderr(contains("warning: themis over `transport.go-back-n`"));
}

/// The larger message has the wider lead, so the sweep asks what decides there. Its schemes compete; a sweep of a setting has choices of it.
#[test]
fn sweeps_and_experiments_say_what_decides_them() {
    let sandbox = Sandbox::new();
    let sweep =
        |axes: &str| format!("scenario = \"quickstart\"\n[set]\nworkload.0.bytes = \"400kB\"\n{axes}");
    sandbox.write(
        "grid.toml",
        &sweep(
            "[[axis]]\nworkload.0.bytes = [\"200kB\", \"1MB\"]\n[[axis]]\nschemes = [\"ecmp\", \"themis\"]\n",
        )
        .replace("[set]\nworkload.0.bytes = \"400kB\"\n", ""),
    );
    let json = sandbox.json(&["sweep", "grid.toml", "--json"]);
    let decides = &json["decides"][0];
    assert_eq!(
        (&decides["place"], &decides["fastest"]),
        (&"bytes 1MB".into(), &"themis".into()),
        "{decides}"
    );
    assert!(decides["survives"]["tried"].as_array().is_some_and(|tried| tried.len() > 2), "{decides}");
    let again = sandbox.json(&["sweep", "grid.toml", "--json", "-o", "again", "--no-check"]);
    assert!(again["decides"].is_null());
    assert_eq!(again["rows"], json["rows"]);
    sandbox.write("marks.toml", &sweep("[[axis]]\nswitch.ecn.kmin = [\"5kB\", \"100kB\"]\n"));
    let marks = sandbox.ropewalk(&["sweep", "marks.toml", "-q"]).assert().code(0);
    let text = String::from_utf8_lossy(&marks.get_output().stdout).into_owned();
    assert!(text.contains("With kmin "), "{text}");
    let formulas = sandbox.json(&["reproduce", "themis-memory", "--json"]);
    assert_eq!(formulas["experiments"][0]["decides"].as_array().map(Vec::len), Some(0), "they have no runs");
}

#[test]
fn a_rate_that_decides_the_answer_gives_a_warning() {
    let sandbox = Sandbox::new();
    let held = [
        "quickstart",
        "--set",
        SMALL,
        "--set",
        "nic.on-nack=to-min-rate",
        "--set",
        "nic.congestion.dcqcn-hpcc={}",
    ];
    let run = [
        &["run"][..],
        &held,
        &["--set", "scheme.rps={}", "--set", "nic.congestion.dcqcn-hpcc.min-rate=1Mbps"],
    ]
    .concat();
    let said = "of their time (under rps): `nic.congestion` and its settings decide their completion times";
    sandbox
        .ropewalk(&run)
        .assert()
        .code(0)
        .stderr(contains("warning: a rate below a hundredth of line rate held"));
    let compare = [&["compare"][..], &run[1..], &["--schemes", "rps,themis"]].concat();
    sandbox.ropewalk(&compare).assert().code(0).stderr(contains(said));
    sandbox
        .ropewalk(&["run", "quickstart", "--set", SMALL])
        .assert()
        .code(0)
        .stderr(contains("hundredth").not());
}

#[test]
fn memory_prints_the_papers_example() {
    let sandbox = Sandbox::new();
    sandbox
        .ropewalk(&["memory", "themis"])
        .assert()
        .code(0)
        .stdout(contains("192,512").and(contains("0.30 %")));
    assert_eq!(sandbox.json(&["memory", "themis", "--json"])["total_bytes"], 192_512);
    let wide = sandbox.json(&["memory", "themis", "--set", "psn-bits=16", "--json"]);
    assert_eq!(wide["total_bytes"], 352_512);
}

#[test]
fn a_comparison_says_what_decides_it_and_whether_it_survives() {
    let sandbox = Sandbox::new();
    let args = ["compare", "quickstart", "--schemes", "ecmp,ar,themis", "--json", "-o", "out"];
    let json = sandbox.json(&args);
    let decides = &json["decides"];
    assert_eq!((&decides["fastest"], &decides["against"]), (&"themis".into(), &"ecmp".into()), "{decides}");
    assert_eq!(decides["cause"], "collisions", "{decides}");
    let rests_on = decides["rests_on"].as_array().unwrap();
    assert!(rests_on.iter().any(|setting| setting["key"] == "nic.congestion.dcqcn.min-rate"), "{decides}");
    let survives = &decides["survives"];
    assert_eq!(survives["contenders"], serde_json::json!(["themis", "ar", "ecmp"]));
    let tried = survives["tried"].as_array().unwrap();
    assert!(tried.len() >= 6 && tried.iter().all(|one| one["holds"] == true), "{survives}");
    // Each variation is a run that the user can repeat.
    let one = tried.iter().find(|one| one["name"] == "min-rate 1 Gb/s").unwrap();
    let set = one["set"][0].as_str().unwrap();
    let again = sandbox.json(&[
        "compare",
        "quickstart",
        "--schemes",
        "themis,ar,ecmp",
        "--set",
        set,
        "--json",
        "--no-check",
    ]);
    assert!(again["decides"].is_null());
    let us =
        |row: usize| again["rows"][row]["jobs"]["all-reduce"]["groups"]["completion_us"]["slowest"].clone();
    assert_eq!(one["us"], serde_json::json!([us(0), us(1), us(2)]));
    let kept: serde_json::Value =
        serde_json::from_slice(&fs::read(sandbox.path("out/comparison.json")).unwrap()).unwrap();
    assert_eq!(kept["decides"], *decides);
    let text = sandbox.ropewalk(&args[..4]).assert().code(0).get_output().stdout.clone();
    let text = String::from_utf8(text).unwrap().replace('\n', " ");
    for part in ["Under ecmp, ", "That rests on defaults: ", "The order holds in "] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
}

#[test]
fn a_slice_of_a_cluster_keeps_its_oversubscription() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "rails.toml",
        "[server]\npreset = \"hgx-h100\"\n[topology.rails]\nservers = 32\nservers-per-segment = 4\nspines = 4\n[[workload]]\n\
         collective = { kind = \"all-to-all\", bytes = \"8MB\" }\n",
    );
    let shown = sandbox.ropewalk(&["check", "rails.toml", "--slice", "70"]).assert().code(0);
    let shown = String::from_utf8(shown.get_output().stdout.clone()).unwrap();
    assert!(shown.contains("slice     --set topology.rails.servers=8\n"), "{shown}");
    let line = |name: &str| shown.lines().find(|line| line.contains(name)).unwrap_or_default();
    assert!(
        line("oversubscription").ends_with("kept") && line("ports of a ToR").ends_with("kept"),
        "{shown}"
    );
    assert!(line("GPUs").contains("256") && line("GPUs").contains("64"), "{shown}");
    assert!(line("queue pairs of a NIC port").ends_with("differs"), "{shown}");
    let whole = ["check", "rails.toml", "--slice", "4000"];
    sandbox.ropewalk(&whole).assert().code(2).stderr(contains("at least 2 of them"));
    let other = ["check", "which-scheme", "--slice", "64"];
    sandbox.ropewalk(&other).assert().code(2).stderr(contains("another topology"));
}

#[test]
fn check_schema_completions_and_help_print_their_texts() {
    let sandbox = Sandbox::new();
    sandbox
        .ropewalk(&["check", "quickstart", "--full"])
        .assert()
        .code(0)
        .stdout(contains("# default").and(contains("16 hosts")));
    // A screen: oversubscription by tier, thresholds in bytes, parts with their costs, and what a run takes.
    sandbox.write("costs.toml", "[switch]\nleaf = 10\nspine = 20\n[cable]\n\"100Gbps\" = 1\n[optic]\n\"100Gbps\" = 2\n[nic]\n\"100Gbps\" = 3\n");
    let sheet = ["check", "quickstart", "--set", "topology.leaf-spine.spines=2", "--costs", "costs.toml"];
    let shown = sandbox.ropewalk(&sheet).assert().code(0).get_output().stdout.clone();
    let shown = String::from_utf8(shown).unwrap();
    assert!(shown.lines().count() <= 40, "{shown}");
    for part in
        ["2:1", "100 kB", "400 kB", "16 optic.100Gbps (32)", "cost      184", "packet-hops", "MB of memory"]
    {
        assert!(shown.contains(part), "{part} is missing in\n{shown}");
    }
    sandbox.write("wrong.toml", "[swich]\nleaf = 10\n");
    let wrong = ["check", "quickstart", "--costs", "wrong.toml"];
    sandbox.ropewalk(&wrong).assert().code(2).stderr(contains("did you mean `switch`?"));
    assert!(sandbox.json(&["schema"])["properties"]["topology"].is_object());
    sandbox.ropewalk(&["completions", "bash"]).assert().code(0).stdout(contains("ropewalk"));
    sandbox.ropewalk(&["--help"]).assert().code(0).stdout(contains("Examples:").and(contains("Exit codes")));
}

#[test]
fn check_estimates_memory_within_a_factor_of_two() {
    let sandbox = Sandbox::new();
    let fabric = |hosts| format!("[topology.leaf-spine]\nhosts-per-leaf = {hosts}\n[[workload]]\n");
    for (name, text) in [
        ("queue-pairs", fabric(12) + "all-to-all = { per-pair = \"1kB\", groups = \"all\" }"),
        ("messages", fabric(12) + "all-reduce = { bytes = \"192kB\", groups = \"all\" }"),
        ("packets", fabric(64) + "permutation = { bytes = \"200kB\", kind = \"cross-rack\" }"),
    ] {
        let file = format!("{name}.toml");
        sandbox.write(&file, &text);
        let check = sandbox.ropewalk(&["check", &file]).assert().code(0).get_output().stdout.clone();
        let check = String::from_utf8(check).unwrap();
        let (before, _) = check.split_once(" MB of memory").unwrap();
        let estimate: f64 = before.rsplit(' ').next().unwrap().parse().unwrap();
        let took = sandbox.json(&["run", &file, "--json"])["timing"]["peak_rss_mb"].as_f64().unwrap();
        assert!((0.5..2.0).contains(&(estimate / took)), "{name}: estimate {estimate} MB, used {took} MB");
        println!("{name}: estimate {estimate} MB, used {took} MB");
    }
}

#[test]
fn the_slowest_flow_of_a_stopped_run_has_begun() {
    let sandbox = Sandbox::new();
    // Later steps of the ring have not begun at 120 us.
    sandbox.ropewalk(&["run", "quickstart", "--set", "stop.after=120us", "-q", "-o", "cut"]).assert().code(0);
    let answer = sandbox.json(&["explain", "slowest", "cut", "--json"]);
    assert!(answer["flow"]["start_us"].is_number() && answer["flow"]["fct_us"].is_null(), "{answer}");
    sandbox
        .ropewalk(&["explain", "5", "cut"])
        .assert()
        .code(2)
        .stderr(contains("the flow had not begun when the run ended"));
}

#[test]
fn recorded_events_and_a_second_run_give_the_same_explanation() {
    let sandbox = Sandbox::new();
    let run = |dir: &str, more: &[&str]| {
        let args = ["run", "quickstart", "--set", SMALL, "--set", "scheme.ar={}", "-q", "-o", dir];
        sandbox.ropewalk(&[&args, more].concat()).assert().code(0);
    };
    run("plain", &[]);
    run("recorded", &["--set", "record.events=all"]);
    let explain = |of: &[&str]| sandbox.json(&[&["explain"], of, &["--json"]].concat());
    let before = fs::read_dir(sandbox.path("plain")).unwrap().count();
    let (mut again, mut recorded) = (explain(&["slowest", "plain"]), explain(&["slowest", "recorded"]));
    assert_eq!(fs::read_dir(sandbox.path("plain")).unwrap().count(), before, "nothing is written");
    let run_again = |answer: &mut Value| answer.as_object_mut().unwrap().remove("run_again").unwrap();
    assert_eq!((run_again(&mut again), run_again(&mut recorded)), (Value::from(true), Value::from(false)));
    assert_eq!(again, recorded);
    // A flow of a scenario is recorded in the first run if it is given by number, else in a second run.
    let number = again["flow"]["flow"].to_string();
    for flow in ["slowest", &number] {
        let args = [flow, "quickstart", "--set", SMALL, "--set", "scheme.ar={}"];
        let mut fresh = explain(&args);
        run_again(&mut fresh);
        assert_eq!(fresh, again);
    }
    sandbox.ropewalk(&["explain", "slowest", "plain"]).assert().code(0).stdout(
        contains("times its ideal").and(contains("what happened")).and(contains("the digest is the same")),
    );
    assert_eq!(sandbox.names(), ["plain", "recorded"]);
}

#[test]
fn a_flow_that_cannot_be_explained_gives_an_error() {
    let sandbox = Sandbox::new();
    sandbox.ropewalk(&["run", "quickstart", "--set", SMALL, "-q", "-o", "out"]).assert().code(0);
    fs::create_dir(sandbox.path("empty")).unwrap();
    fs::create_dir(sandbox.path("cut")).unwrap();
    for entry in fs::read_dir(sandbox.path("out")).unwrap().flatten() {
        fs::copy(entry.path(), sandbox.path("cut").join(entry.file_name())).unwrap();
    }
    let whole = fs::read(sandbox.path("cut/flows.parquet")).unwrap();
    fs::write(sandbox.path("cut/flows.parquet"), &whole[..whole.len() / 2]).unwrap();
    let cases: &[(&[&str], &str)] = &[
        (&["96", "out"], "there is no flow 96; there are 96 flows, from 0"),
        (&["host3->hots7", "out"], "there is no host hots7"),
        (&["quick", "out"], "expected a flow, found `quick`"),
        (&["0", "empty"], "manifest.json"),
        (&["0", "cut"], "flows.parquet is cut short: expected"),
        (&["0", "quickstrat"], "quickstart"),
        (&["0"], "manifest.json"),
        (&["0", "out", "--set", "seed=2"], "--set changes a scenario"),
    ];
    for (args, message) in cases {
        let output =
            sandbox.ropewalk(&[&["explain"], *args].concat()).assert().code(2).get_output().stderr.clone();
        // Error messages are wrapped.
        let text = String::from_utf8(output).unwrap().replace(['│', '×'], " ");
        let text: Vec<&str> = text.split_whitespace().collect();
        assert!(text.join(" ").contains(message), "{args:?}: {}", text.join(" "));
    }
    // Results of another version, with another digest.
    let mut other = Results::read(&sandbox.path("out")).unwrap();
    other.summary.digest = "0".repeat(32);
    other.manifest["digest"] = other.summary.digest.clone().into();
    other.write(&Target::at(sandbox.path("out")).unwrap(), false).unwrap();
    sandbox.ropewalk(&["explain", "0", "out"]).assert().code(2).stderr(contains("differently"));
}

#[test]
fn a_new_scenario_is_valid_and_is_not_overwritten() {
    let sandbox = Sandbox::new();
    sandbox.ropewalk(&["new", "mine"]).assert().code(0).stdout(contains("mine.toml"));
    sandbox.ropewalk(&["check", "mine.toml"]).assert().code(0);
    sandbox.ropewalk(&["new", "mine"]).assert().code(2).stderr(contains("exists already"));
    let next = contains("ropewalk check 'our fabric.toml'; ropewalk run 'our fabric.toml'");
    sandbox.ropewalk(&["new", "our fabric"]).assert().code(0).stdout(next);
}

#[test]
fn imported_hpcc_files_give_a_scenario_that_runs() {
    let sandbox = Sandbox::new();
    // Two hosts, one switch; one flow of 10 kB.
    sandbox.write("topology.txt", "3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n");
    sandbox.write("flow.txt", "1\n0 1 3 100 10000 2\n");
    let args = ["import", "hpcc", "--topology", "topology.txt", "--flows", "flow.txt", "-o", "mine.toml"];
    sandbox.ropewalk(&args).assert().code(0).stdout(contains("mine.toml written"));
    let summary = sandbox.json(&["run", "mine.toml", "--json"]);
    assert_eq!(summary["flows"]["finished"], 1);
    sandbox.ropewalk(&args).assert().code(2).stderr(contains("exists already"));
    sandbox.write("flow.txt", "1\n0 7 3 100 10000 2\n");
    let args = ["import", "hpcc", "--topology", "topology.txt", "--flows", "flow.txt", "-o", "other.toml"];
    sandbox.ropewalk(&args).assert().code(2).stderr(contains("flow.txt:2"));
    assert!(!sandbox.path("other.toml").exists());
}

#[test]
fn a_goal_schedule_runs_on_the_fabric_of_a_scenario() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "two.goal",
        "num_ranks 2\nrank 0 {\na: calc 5000\nb: send 8192b to 1\nb requires a\n}\nrank 1 {\nrecv 8192b from 0\n}\n",
    );
    let on = |file: &str| sandbox.json(&["run", file, "--topology", "quickstart", "--json", "-o", "out"]);
    let summary = on("two.goal");
    assert_eq!((&summary["scenario"], &summary["flows"]["finished"]), (&"two".into(), &1.into()));
    // The import writes the same schedule as a binary file, and a scenario beside it.
    let import = ["import", "goal", "two.goal", "--topology", "quickstart", "-o", "imported"];
    sandbox.ropewalk(&import).assert().code(0).stdout(contains("two.toml written"));
    for again in [on("imported/two.bin"), sandbox.json(&["run", "imported/two.toml", "--json"])] {
        assert_eq!(again["digest"], summary["digest"]);
    }
    sandbox.ropewalk(&["check", "two.goal", "--topology", "quickstart"]).assert().code(0);
    sandbox.ropewalk(&import).assert().code(2).stderr(contains("exists already"));
    sandbox.ropewalk(&["import", "goal", "two.goal", "-o", "star"]).assert().code(0);
    sandbox.ropewalk(&["run", "star/two.toml"]).assert().code(0).stdout(contains("1 of 1 flow finished"));
    // Without a fabric, the error names the option.
    for file in ["two.goal", "imported/two.bin"] {
        sandbox.ropewalk(&["run", file]).assert().code(2).stderr(contains("--topology SCENARIO"));
    }
    sandbox.ropewalk(&["run", "star/two.toml", "--topology", "quickstart"]).assert().code(2);
    sandbox.write("two.goal", "num_ranks 2\nrank 0 {\nsend 8192b to 2\n}\n");
    let run = ["run", "two.goal", "--topology", "quickstart"];
    sandbox.ropewalk(&run).assert().code(2).stderr(contains("two.goal:3:15"));
    sandbox.ropewalk(&["import", "goal", "two.goal", "-o", "wrong"]).assert().code(2);
    assert!(!sandbox.path("wrong").exists());
}

#[test]
fn a_chakra_trace_runs_on_the_fabric_of_a_scenario() {
    let sandbox = Sandbox::new();
    let attribute = |name: &str, value: &[u8]| {
        let inner = [&[0x0a, name.len() as u8], name.as_bytes(), value].concat();
        [&[0x52, inner.len() as u8], &*inner].concat()
    };
    // An all-reduce of 65,536 B among all ranks.
    let fields = [b"\x08\x01\x12\x01a\x18\x07".to_vec(), attribute("comm_type", &[0x48, 0])].concat();
    let node = [fields, attribute("comm_size", &[0x48, 0x80, 0x80, 0x04])].concat();
    let trace = [&b"\x07\x0a\x050.0.4"[..], &[node.len() as u8], &node].concat();
    for rank in 0..4 {
        std::fs::write(sandbox.path(&format!("t.{rank}.et")), &trace).unwrap();
    }
    let on = |file: &str| sandbox.json(&["run", file, "--topology", "quickstart", "--json", "-o", "out"]);
    let summary = on("t.0.et");
    // A ring of four ranks: six steps of each.
    assert_eq!((&summary["scenario"], &summary["flows"]["finished"]), (&"t.0".into(), &24.into()));
    assert_eq!(on("t")["digest"], summary["digest"]);
    sandbox.ropewalk(&["check", ".", "--topology", "quickstart"]).assert().code(0);
    sandbox.ropewalk(&["run", "t.0.et"]).assert().code(2).stderr(contains("--topology SCENARIO"));
    std::fs::write(sandbox.path("t.2.et"), &trace[..20]).unwrap();
    let run = ["run", "t.0.et", "--topology", "quickstart"];
    sandbox.ropewalk(&run).assert().code(2).stderr(contains("t.2.et: byte 8: rank 2: expected a message"));
}

#[test]
fn a_connection_matrix_runs_on_the_fabric_of_a_scenario() {
    let sandbox = Sandbox::new();
    let matrix = "Nodes 4\nConnections 2\nTriggers 1\n0->1 id 1 start 0 size 100000 recv_done_trigger 1\n\
                  1->2 id 2 trigger 1 size 100000\ntrigger id 1 oneshot\n";
    sandbox.write("chain.cm", matrix);
    let summary = sandbox.json(&["run", "chain.cm", "--topology", "quickstart", "--json"]);
    assert_eq!((&summary["scenario"], &summary["flows"]["finished"]), (&"chain".into(), &2.into()));
    sandbox.ropewalk(&["run", "chain.cm"]).assert().code(2).stderr(contains("--topology SCENARIO"));
    sandbox.write("chain.cm", &matrix.replace("1->2", "1->9"));
    let run = ["run", "chain.cm", "--topology", "quickstart"];
    sandbox.ropewalk(&run).assert().code(2).stderr(contains("chain.cm:5:4"));
}

#[test]
fn a_quick_experiment_is_labelled_and_explains_every_row() {
    let sandbox = Sandbox::new();
    // A formula has no smaller version.
    let memory = sandbox.json(&["reproduce", "themis-memory", "--quick", "--json"]);
    assert_eq!(memory["experiments"][0]["quick"], false);
    let json = sandbox.json(&["reproduce", "themis-fig1", "--quick", "--json"]);
    let experiment = &json["experiments"][0];
    assert_eq!(experiment["quick"], true);
    let rows = experiment["rows"].as_array().unwrap();
    for row in rows {
        assert!(!row["paper"].is_null() || row["note"].as_str().unwrap().contains("expected"), "{row}");
        assert!(row["measured"].is_number(), "{row}");
    }
    let find = |case: &str| rows.iter().find(|row| row["case"] == case).unwrap();
    assert_eq!(find("themis")["measured"], 0.0, "Themis passes no needless NACK");
    assert_eq!(find("ecmp")["measured"], 0.0, "ECMP keeps the order");
}

/// A frame that is on the wire at the end of a run counts up to the end.
#[test]
fn no_wire_is_busy_for_longer_than_the_run() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "short.toml",
        "[topology.leaf-spine]\nleaves = 2\nspines = 2\nhosts-per-leaf = 4\nrate = \"10Gbps\"\ndelay = \"10ns\"\n\
         [wire]\npayload = \"1024B\"\n[[workload]]\nincast = { senders = 2, bytes = \"1B\" }\n\
         [[workload]]\nbackground = true\nall-to-all = { bytes = \"50kB\", groups = \"all\" }\n",
    );
    for engine in ["window", "reference"] {
        sandbox
            .ropewalk(&["run", "short.toml", "--csv", "-q", "-o", "o", "--engine", engine])
            .assert()
            .code(0);
        let table = fs::read_to_string(sandbox.path("o/links.csv")).unwrap();
        let mut lines = table.lines();
        let column = lines.next().unwrap().split(',').position(|name| name == "busy_share").unwrap();
        let shares: Vec<f64> =
            lines.map(|line| line.split(',').nth(column).unwrap().parse().unwrap()).collect();
        assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)), "{engine}: {shares:?}");
        assert!(shares.iter().any(|share| *share > 0.9), "{engine}: no wire is busy at the end: {shares:?}");
    }
}

/// A name reaches terminals, pages and tables.
#[test]
fn control_characters_in_names_are_refused_and_never_printed() {
    let sandbox = Sandbox::new();
    let raw = |c: char| (c.is_control() && c != '\n') || ('\u{202a}'..='\u{202e}').contains(&c);
    for name in ["a\\u001b[31m", "b\\u202egnp", "c\\nd", "e\u{1b}[2J"] {
        sandbox.write(
            "names.toml",
            &format!("[topology.leaf-spine]\n[[workload]]\nname = \"{name}\"\npermutation = {{ bytes = \"1kB\" }}\n"),
        );
        for command in
            [&["run", "names.toml"][..], &["explain", "slowest", "names.toml"], &["sweep", "names.toml"]]
        {
            let output = sandbox.ropewalk(command).assert().code(2).get_output().clone();
            let told = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
            assert!(!told.contains(raw), "{name:?} {command:?}: {told:?}");
            assert!(told.contains("names.toml:3:"), "{name:?} {command:?}: {told}");
        }
    }
    let missing = sandbox.ropewalk(&["run", "\u{1b}[31mred"]).assert().code(2).get_output().stderr.clone();
    assert!(!String::from_utf8(missing).unwrap().contains(raw));
}

#[test]
fn a_check_as_json_has_findings_with_codes_and_places() {
    let sandbox = Sandbox::new();
    let asked = ["check", "quickstart", "--json", "--set"];
    let twice = "topology.leaf-spine.rate=200Gbps";
    let answer = sandbox.json(&[&asked[..], &["nic.model=connectx-5", "--set", twice]].concat());
    let Some([warning]) = answer["findings"].as_array().map(Vec::as_slice) else { panic!("{answer:#}") };
    let of = |finding: &Value| {
        Value::from(
            ["severity", "code", "key", "file", "line", "column"].map(|key| finding[key].clone()).to_vec(),
        )
    };
    assert_eq!(of(warning), serde_json::json!(["warning", "hardware", "nic.model", "--set", 1, 11]));
    assert!(answer["hosts"].is_u64() && answer["configuration"].is_string(), "{answer:#}");
    sandbox.write("bad.toml", "[topology.leaf-spine]\nleavs = 2\n");
    let wrong = sandbox.ropewalk(&["check", "bad.toml", "--json"]).assert().code(2).stderr("");
    let answer: Value = serde_json::from_slice(&wrong.get_output().stdout).unwrap();
    let error = &answer["findings"][0];
    let key = "topology.leaf-spine.leavs";
    assert_eq!(of(error), serde_json::json!(["error", "unknown-key", key, "bad.toml", 2, 1]));
    assert_eq!(answer.as_object().map(serde_json::Map::len), Some(1));
}
