//! Inference serving on the command line.

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::contains;
use std::fs;
use tempfile::TempDir;

/// Two servers of one GPU; requests of about 300 tokens, whose KV is 44 MB.
const SCENARIO: &str = "[topology.leaf-spine]\nleaves = 2\nspines = 1\nhosts-per-leaf = 1\nrate = \"100Gbps\"\n\
    [wire]\npayload = \"4KiB\"\n[class.kv]\n[[workload]]\nname = \"chat\"\nclass = \"kv\"\n[workload.serving]\n\
    trace = { file = \"requests.csv\", format = \"azure\" }\nmodel = \"qwen3-8b\"\n\
    prefill = { servers = \"0\", compute = { flops = \"400TFLOPS\" } }\n\
    decode = { servers = \"1\", memory = \"10GB\", compute = { hbm = \"3.35TB/s\" } }\nslo = { ttft = \"1s\" }\n";
const REQUESTS: &str = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:00:00.0000000,300,3\n\
    2023-11-16 18:00:00.0100000,280,2\n2023-11-16 18:00:00.0900000,310,0\n2023-11-16 18:00:00.1000000,320,1\n";

struct Sandbox(TempDir);

impl Sandbox {
    fn new() -> Self {
        let sandbox = Sandbox(TempDir::new().unwrap());
        fs::write(sandbox.0.path().join("chat.toml"), SCENARIO).unwrap();
        fs::write(sandbox.0.path().join("requests.csv"), REQUESTS).unwrap();
        sandbox
    }

    fn ropewalk(&self, line: &str) -> assert_cmd::assert::Assert {
        let mut command = Command::cargo_bin("ropewalk").unwrap();
        command.args(line.split_whitespace()).current_dir(self.0.path()).env("NO_COLOR", "1").assert()
    }
}

#[test]
fn a_run_says_where_the_time_goes_and_what_the_network_caused() {
    let sandbox = Sandbox::new();
    let run = sandbox.ropewalk("run chat.toml -o out --csv").code(0);
    run.stdout(
        contains("3 of 3 finished")
            .and(contains("KV transfers took 1.00 times their time alone; no request missed its limits."))
            .and(contains("host software costs nothing")),
    )
    .stderr(contains(
        "of 4 requests of requests.csv, 1 without tokens in or out are left out (chat.toml:13:",
    ));
    let table = fs::read_to_string(sandbox.0.path().join("out/requests.csv")).unwrap();
    let mut rows = table.lines();
    let head: Vec<&str> = rows.next().unwrap().split(',').collect();
    let column = |name: &str| head.iter().position(|column| *column == name).unwrap();
    let parts = ["queue", "prefill", "memory", "host", "alone", "excess", "wait", "first_step"];
    let mut count = 0;
    for row in rows {
        let cells: Vec<&str> = row.split(',').collect();
        let of = |name: &str| cells[column(name)].parse::<u64>().unwrap();
        let sum: u64 = parts.iter().map(|part| of(&format!("{part}_ps"))).sum();
        assert_eq!(sum, of("ttft_ps"), "{row}");
        count += 1;
    }
    assert_eq!(count, 3);
}

#[test]
fn results_are_read_again_and_a_second_run_with_their_settings_is_the_same() {
    let sandbox = Sandbox::new();
    sandbox.ropewalk("run chat.toml -o out").code(0);
    let digest = |folder: &str| {
        let text = fs::read_to_string(sandbox.0.path().join(folder).join("summary.json")).unwrap();
        let summary: serde_json::Value = serde_json::from_str(&text).unwrap();
        (summary["digest"].clone(), summary["serving"].clone())
    };
    let shown = sandbox.ropewalk("check chat.toml --full").code(0).get_output().stdout.clone();
    fs::write(sandbox.0.path().join("full.toml"), shown).unwrap();
    sandbox.ropewalk("run full.toml -o again --engine reference").code(0);
    assert_eq!(digest("out"), digest("again"));
    assert_eq!(digest("out").1["requests"], 3);
    sandbox.ropewalk("explain slowest out").code(2).stderr(contains("begin as the run goes on"));
    sandbox.ropewalk("report out").code(0);
}

#[test]
fn a_check_and_a_comparison_speak_of_requests() {
    let sandbox = Sandbox::new();
    let about = || contains("147,456 B per token on the wire").and(contains("3 requests up to 100 ms"));
    sandbox.ropewalk("check chat.toml").code(0).stdout(about());
    sandbox.ropewalk("workload show chat.toml").code(0).stdout(about());
    let compared = sandbox.ropewalk("compare chat.toml --schemes ecmp,ar --no-check --quiet").code(0);
    let text = String::from_utf8(compared.get_output().stdout.clone()).unwrap();
    assert!(
        text.contains("P99 of the TTFT") && text.contains("transfer") && !text.contains("slowdown"),
        "{text}"
    );
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let fast = sandbox.ropewalk("run chat.toml -o fast --fast 1%").code(0);
    fast.stdout(
        contains("2 messages met nobody, and take their closed form").and(contains("3 of 3 finished")),
    );
    let sprayed = sandbox.ropewalk("run chat.toml -o sprayed --fast 1% --set scheme.rps={}").code(0);
    sprayed.stdout(contains("everything was sent").and(contains("switches do more than to hash flows")));
}

/// A checkpoint's end is that of its last reply, and the kernels' constants have a source.
#[test]
fn the_answer_has_a_checkpoints_own_end_and_says_what_kernels_are_fitted_to() {
    let sandbox = Sandbox::new();
    let scenario = "[server]\ngpus = 2\nnvlink = { rate = \"1280Gbps\", delay = \"500ns\" }\n[topology.rails]\nservers = 3\n\
        [[workload]]\nname = \"ep\"\nservers = \"0..1\"\n\
        experts = { model = \"deepseek-v3\", tokens = 8, routing = { kernel = \"deepep-low-latency\", message = \"pair\" } }\n\
        [[workload]]\nname = \"store\"\ncheckpoint = { bytes = \"1MB\", storage = [\"s2g0\"], writers = [\"s1g0\"] }\n";
    fs::write(sandbox.0.path().join("beside.toml"), scenario).unwrap();
    sandbox.ropewalk("run beside.toml -o out").code(0).stdout(
        contains("checkpoint written 2")
            .and(contains("with its copies and replies"))
            .and(contains("ep: two constants")),
    );
}

/// What a scenario sends goes to NIXL's benchmark and comes back: the same bytes between the same ranks, and at the same
/// times but for the meetings before the second and the third pattern.
#[test]
fn traffic_goes_to_nixls_benchmark_and_comes_back() {
    let sandbox = Sandbox::new();
    sandbox.ropewalk("export ctp chat.toml -o patterns").code(0).stdout(contains("3 patterns of 2 ranks"));
    sandbox.ropewalk("export ctp chat.toml -o patterns").code(2).stderr(contains("cannot create patterns"));
    let imported = sandbox.ropewalk("import ctp patterns/patterns.yaml --topology chat.toml -o again.toml");
    imported.code(0).stdout(contains("again.toml written"));
    sandbox.ropewalk("run again.toml -o again --csv").code(0);
    sandbox.ropewalk("run chat.toml -o out --csv").code(0);
    let large = |folder: &str| {
        let table = fs::read_to_string(sandbox.0.path().join(folder).join("flows.csv")).unwrap();
        let mut rows = table.lines().map(|row| row.split(',').collect::<Vec<_>>());
        let head = rows.next().unwrap();
        let column = |name: &str| head.iter().position(|column| *column == name).unwrap();
        let (from, to, bytes, start) = (column("from"), column("to"), column("bytes"), column("start_us"));
        let all = rows.map(|row| {
            let message = (row[from].to_owned(), row[to].to_owned(), row[bytes].parse::<u64>().unwrap());
            (message, row[start].parse::<f64>().unwrap())
        });
        all.filter(|((_, _, bytes), _)| *bytes > 1000).unzip::<_, _, Vec<_>, Vec<_>>()
    };
    let ((messages, starts), (sent, sent_at)) = (large("again"), large("out"));
    assert_eq!(messages, sent);
    assert_eq!(messages.len(), 3);
    for (start, sent_at) in starts.iter().zip(&sent_at) {
        assert!((0.0..10.0).contains(&(start - sent_at)), "{starts:?} {sent_at:?}");
    }
    fs::write(sandbox.0.path().join("wrong.yaml"), "traffic_patterns:\n- matrix: a\n").unwrap();
    let wrong = sandbox.ropewalk("import ctp wrong.yaml -o wrong.toml").code(2);
    wrong.stderr(contains("wrong.yaml:2:3").and(contains("unknown key `matrix`")));
}

#[test]
fn what_cannot_be_is_refused_with_its_place() {
    let sandbox = Sandbox::new();
    sandbox.ropewalk("run chat.toml --threads 2").code(2).stderr(contains("runs on one thread"));
    let damaged = REQUESTS.replace("280", "many");
    fs::write(sandbox.0.path().join("requests.csv"), damaged).unwrap();
    sandbox.ropewalk("check chat.toml").code(2).stderr(
        contains("requests.csv:3:29")
            .and(contains("expected a number of tokens (`ContextTokens`), found `many`")),
    );
}

#[test]
fn requests_that_never_finish_are_named_and_fail_the_run_and_the_comparison() {
    let sandbox = Sandbox::new();
    // The first prompt computes for longer than any run lasts.
    fs::write(sandbox.0.path().join("chat.toml"), SCENARIO.replace("400TFLOPS", "1MFLOPS")).unwrap();
    let fault = || contains("error: 3 of 3 requests did not finish");
    let run = sandbox.ropewalk("run chat.toml -o out").code(3).stderr(fault());
    run.stdout(contains("NOT complete: requests did not finish"));
    sandbox.ropewalk("compare chat.toml --schemes ecmp,themis").code(3).stderr(fault());
}

#[test]
fn the_load_counts_from_the_start_of_the_job() {
    let sandbox = Sandbox::new();
    let load = || {
        let shown = sandbox.ropewalk("workload show chat.toml").code(0).get_output().stdout.clone();
        let shown = String::from_utf8(shown).unwrap();
        shown.lines().find(|line| line.contains("instances compute for")).unwrap().to_owned()
    };
    let at_once = load();
    let later = SCENARIO.replace("name = \"chat\"", "name = \"chat\"\nstart = \"10s\"");
    fs::write(sandbox.0.path().join("chat.toml"), later).unwrap();
    assert_eq!(load(), at_once);
}

#[test]
fn messages_that_stand_for_queue_pairs_are_no_traffic() {
    let sandbox = Sandbox::new();
    let beside = format!("{SCENARIO}[[workload]]\nneighbour-ring = {{ bytes = \"1MB\" }}\n");
    fs::write(sandbox.0.path().join("chat.toml"), beside).unwrap();
    let shown = sandbox.ropewalk("workload show chat.toml --json").code(0).get_output().stdout.clone();
    let shown: serde_json::Value = serde_json::from_slice(&shown).unwrap();
    let ways = shown["ways"].as_array().unwrap();
    let sum = |key: &str| ways.iter().map(|way| way[key].as_u64().unwrap()).sum::<u64>();
    assert_eq!((sum("messages"), sum("bytes")), (2, 2_000_000), "the ring's messages alone");
    assert_eq!(shown["sent_per_port"], serde_json::json!([1_000_000, 1_000_000]));
}

/// A link dies for good before the first transfer: what the benchmark cannot meet is named.
#[test]
fn an_export_of_a_run_with_faults_says_what_it_leaves_out() {
    let sandbox = Sandbox::new();
    let failure = "[[failure]]\nlinks = [[\"leaf0\", \"spine0\"]]\nat = \"3500us\"\n";
    fs::write(sandbox.0.path().join("broken.toml"), SCENARIO.to_owned() + failure).unwrap();
    let notes = contains("the run had a fault, which the patterns do not have")
        .and(contains("3 messages did not arrive"))
        .and(contains("failures and losses of links are left out"));
    sandbox
        .ropewalk("export ctp broken.toml -o patterns")
        .code(0)
        .stdout(contains("3 patterns"))
        .stderr(notes);
    let healthy = sandbox.ropewalk("export ctp chat.toml -o healthy").code(0);
    healthy.stderr(contains("fault").not().and(contains("failures").not()));
}
