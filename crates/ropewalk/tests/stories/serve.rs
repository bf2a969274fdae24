//! A program drives `ropewalk serve`: a ring all-reduce has the digest of the all-reduce in a scenario.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

const FABRIC: &str = "[topology.leaf-spine]\nleaves = 2\nspines = 2\nhosts-per-leaf = 4\n[scheme.themis]\n";
const RANKS: u64 = 8;
const CHUNK: u64 = 143_800;

/// The serving process, and its two pipes.
struct Serving {
    process: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Serving {
    fn start(scenario: &str) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_ropewalk"))
            .args(["serve", scenario])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("ropewalk starts");
        let requests = process.stdin.take().expect("standard input");
        let answers = BufReader::new(process.stdout.take().expect("standard output"));
        let mut serving = Serving { process, requests, answers };
        assert_eq!(serving.answer()["ranks"], RANKS);
        serving
    }

    fn answer(&mut self) -> Value {
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("an answer");
        serde_json::from_str(&line).expect("JSON")
    }

    fn ask(&mut self, request: &Value) -> Value {
        writeln!(self.requests, "{request}").expect("ropewalk reads");
        self.answer()
    }

    fn send(&mut self, step: u64, from: u64) {
        let id = step * RANKS + from;
        let request = json!({"do": "send", "id": id, "from": from, "to": (from + 1) % RANKS, "bytes": CHUNK});
        assert!(self.ask(&request).get("error").is_none());
    }
}

#[test]
fn a_served_ring_has_the_digest_of_the_all_reduce_in_the_scenario() {
    let dir = tempfile::tempdir().expect("a directory");
    let write = |name: &str, workload: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, format!("{FABRIC}[[workload]]\n{workload}\n")).expect("a file");
        path.to_str().expect("a path of text").to_owned()
    };
    let pairs: Vec<_> = (0..RANKS).map(|rank| json!([rank, (rank + 1) % RANKS])).collect();
    let served = write("served.toml", &format!("program = {{ pairs = {} }}", json!(pairs)));
    let bytes = RANKS * CHUNK;
    let native = write("native.toml", &format!("all-reduce = {{ bytes = \"{bytes}B\", groups = \"all\" }}"));

    let mut serving = Serving::start(&served);
    for rank in 0..RANKS {
        serving.send(0, rank);
    }
    loop {
        let event = serving.ask(&json!({"do": "next"}));
        if event["state"] == "idle" {
            break;
        }
        let (id, rank) = (event["id"].as_u64().expect("an id"), event["rank"].as_u64().expect("a rank"));
        let step = id / RANKS + 1;
        if event["event"] == "received" && step < 2 * (RANKS - 1) {
            serving.send(step, rank);
        }
    }
    let finished = serving.ask(&json!({"do": "finish"}));
    assert!(serving.process.wait().expect("an end").success());
    assert_eq!(finished["faults"], json!([]));

    let run = Command::new(env!("CARGO_BIN_EXE_ropewalk"))
        .args(["run", &native, "--json", "-o"])
        .arg(dir.path().join("results"))
        .output()
        .expect("ropewalk runs");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let summary: Value = serde_json::from_slice(&run.stdout).expect("JSON");
    assert_eq!(finished["digest"], summary["digest"]);
}
