//! Programs in C and C++ drive runs: each has the digest of the same run without them.

use lab::Session;
use lab::session::{Kind, Next};
use model::Time;
use std::collections::{BTreeMap, VecDeque};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

const FABRIC: &str = "[topology.leaf-spine]\nleaves = 2\nspines = 2\nhosts-per-leaf = 4\n[scheme.themis]\n";
const RANKS: u32 = 8;
const CHUNK: u64 = 143_800;

/// A scenario whose ranks send to the next one only.
fn ring_scenario(dir: &Path) -> String {
    let pairs: Vec<_> = (0..RANKS).map(|rank| format!("[{rank}, {}]", (rank + 1) % RANKS)).collect();
    let text = format!("{FABRIC}[[workload]]\nprogram = {{ pairs = [{}] }}\n", pairs.join(", "));
    let path = dir.join("ring.toml");
    std::fs::write(&path, text).expect("a file");
    path.to_str().expect("a path of text").to_owned()
}

fn library() -> PathBuf {
    let exe = std::env::current_exe().expect("the test's path");
    exe.parent().expect("the directory of test programs").to_owned()
}

fn here(path: &str) -> String {
    format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))
}

/// Compiles a program and links it with the library; `None` if the machine has no such compiler.
fn compile(dir: &Path, compiler: &str, standard: &str, source: &str) -> Option<PathBuf> {
    if Command::new(compiler).arg("--version").output().is_err() {
        // A test that passes does not show what `eprintln!` writes.
        let line = format!("LEFT OUT: {source}: the machine has no {compiler}\n");
        std::io::stderr().write_all(line.as_bytes()).expect("an open standard error");
        return None;
    }
    let program = dir.join("program");
    let library = library();
    let library = library.to_str().expect("a path of text");
    let out = Command::new(compiler)
        .args([standard, "-Wall", "-Wextra", "-Werror", "-pedantic", "-g"])
        .args(["-I", &here("include"), "-I", &here("astra-sim"), "-I", &here("tests/fake")])
        .arg(here(source))
        .args(["-o", program.to_str().expect("a path of text")])
        .args(["-L", library, "-lropewalk", &format!("-Wl,-rpath,{library}")])
        .output()
        .expect("the compiler runs");
    assert!(out.status.success(), "{source}:\n{}", String::from_utf8_lossy(&out.stderr));
    Some(program)
}

/// What a program prints, if it succeeds.
fn output(program: &Path, arguments: &[&str]) -> String {
    // cargo's LD_LIBRARY_PATH would find the library of an older `cargo build` first.
    let out = Command::new(program).args(arguments).env_remove("LD_LIBRARY_PATH").output();
    let out = out.expect("the program runs");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).expect("text").trim_end().to_owned()
}

#[test]
fn a_ring_in_c_has_the_digest_of_the_all_reduce_in_the_scenario() {
    let dir = tempfile::tempdir().expect("a directory");
    let Some(program) = compile(dir.path(), "cc", "-std=c99", "tests/ring.c") else { return };
    let results = dir.path().join("results");
    let arguments = [&*ring_scenario(dir.path()), &CHUNK.to_string(), results.to_str().expect("text")];
    let driven = output(&program, &arguments);

    let bytes = u64::from(RANKS) * CHUNK;
    let text = format!("{FABRIC}[[workload]]\nall-reduce = {{ bytes = \"{bytes}B\", groups = \"all\" }}\n");
    let checked = scenario::check(&scenario::Source::new("native.toml", text), &[]).expect("a scenario");
    let native = lab::run(lab::Prepared { checked, setup_s: 0.0 });
    assert_eq!(driven, native.summary.digest);
    let summary = std::fs::read_to_string(results.join("summary.json")).expect("results");
    let summary: serde_json::Value = serde_json::from_str(&summary).expect("JSON");
    assert_eq!(summary["digest"], driven);
}

#[test]
fn mistakes_in_c_get_an_answer_each() {
    let dir = tempfile::tempdir().expect("a directory");
    let Some(program) = compile(dir.path(), "cc", "-std=c99", "tests/mistakes.c") else { return };
    let answers = output(&program, &[]);
    let expected = [
        "open: there is neither a file nor a built-in scenario \"no-such-file.toml\"",
        "open: the scenario is NULL",
        "cut to 7 bytes",
        "no place for the reason",
        "open: the scenario is not UTF-8",
        "ranks 4",
        "send -1 rank 4 does not exist; the ranks are 0 to 3",
        "send -1 a message has at most 1024TiB, found 18446744073709551615 B",
        "timer -1 rank 9 does not exist; the ranks are 0 to 3",
        "next -1 the place of the event is NULL",
        "next 2 ",
        "late -1 the time 4ns has passed: it is 5ns",
        "far -1 the time 18446744073709551614ps is beyond the end of time, 1000000s",
        "far -1 the time 18446744073709551614ps is beyond the end of time, 1000000s",
        "far -1 the time 1000000000000005ns is beyond the end of time, 1000000s",
        "send 0 ",
        "next 0 ",
        "next 1 ",
        "event 2 of 1 at rank 1, 2066800 ps",
        "directory -1 /dev/null exists and does not look like results of ropewalk (it is a file): not replaced; choose another directory with -o, or remove it",
        "digest ''",
        "finish 0 ",
        "send -1 the run is finished",
        "null -1 the run is NULL",
    ];
    assert_eq!(answers.lines().collect::<Vec<_>>(), expected);
}

/// The ring all-reduce of `system.cc`, driven without C: returns the digest.
struct Ring {
    session: Session,
    half: u64,
    fresh: u64,
    /// Timers by number: the rank, and what it does then.
    timers: BTreeMap<u64, (u32, Action)>,
    /// Messages by number: sender, and step.
    messages: BTreeMap<u64, (u32, u32)>,
    ranks: Vec<Rank>,
}

#[derive(Clone, Copy)]
enum Action {
    Begin,
    Post,
    Receive,
}

#[derive(Default)]
struct Rank {
    step: u32,
    received: u32,
    /// Receives that wait for their message.
    waiting: u32,
    /// Steps of messages that wait for their receive.
    arrived: VecDeque<u32>,
    sent: u32,
}

impl Ring {
    const STEPS: u32 = 2 * (RANKS - 1);

    fn play(scenario: &str, half: u64) -> String {
        let session = Session::open(scenario, &[]).expect("a session");
        let ranks = (0..RANKS).map(|_| Rank::default()).collect();
        let mut ring =
            Ring { session, half, fresh: 0, timers: BTreeMap::new(), messages: BTreeMap::new(), ranks };
        for rank in 0..RANKS {
            ring.later(rank, Time::ZERO, Action::Begin);
        }
        while ring.ranks.iter().any(|rank| rank.step < Self::STEPS || rank.sent < 2 * Self::STEPS) {
            let Next::Event(event) = ring.session.next(None).unwrap() else { panic!("the ring ends") };
            match event.kind {
                Kind::Timer => {
                    let (rank, action) = ring.timers[&event.id];
                    match action {
                        Action::Begin => ring.begin(rank),
                        Action::Post => ring.post(rank),
                        Action::Receive => ring.receive(rank),
                    }
                }
                Kind::Transferred => unreachable!("the ring transfers nothing"),
                Kind::Sent => ring.ranks[event.rank as usize].sent += 1,
                Kind::Received => {
                    let (_, step) = ring.messages[&event.id];
                    let rank = &mut ring.ranks[event.rank as usize];
                    if rank.waiting > 0 && rank.step == step {
                        rank.waiting -= 1;
                        ring.receive(event.rank);
                    } else {
                        rank.arrived.push_back(step);
                    }
                }
            }
        }
        ring.session.finish().summary.digest
    }

    fn later(&mut self, rank: u32, after: Time, action: Action) {
        self.timers.insert(self.fresh, (rank, action));
        self.session.timer(self.fresh, rank, after).expect("a timer");
        self.fresh += 1;
    }

    fn begin(&mut self, rank: u32) {
        let step = self.ranks[rank as usize].step;
        for _ in 0..2 {
            self.messages.insert(self.fresh, (rank, step));
            self.session.send(self.fresh, (rank, (rank + 1) % RANKS), self.half, step).expect("a message");
            self.fresh += 1;
        }
        self.ranks[rank as usize].received = 0;
        if rank.is_multiple_of(2) {
            self.post(rank);
        } else {
            self.later(rank, Time::from_us(60), Action::Post);
        }
    }

    fn post(&mut self, rank: u32) {
        for _ in 0..2 {
            let here = &mut self.ranks[rank as usize];
            if here.arrived.front() == Some(&here.step) {
                here.arrived.pop_front();
                self.later(rank, Time::ZERO, Action::Receive);
            } else {
                here.waiting += 1;
            }
        }
    }

    fn receive(&mut self, rank: u32) {
        let here = &mut self.ranks[rank as usize];
        here.received += 1;
        if here.received == 2 {
            here.step += 1;
            if here.step < Self::STEPS {
                self.begin(rank);
            }
        }
    }
}

#[test]
fn the_shim_for_astra_sim_keeps_its_rules_and_the_digest_of_the_same_ring() {
    let dir = tempfile::tempdir().expect("a directory");
    let Some(program) = compile(dir.path(), "c++", "-std=c++17", "tests/system.cc") else { return };
    let scenario = ring_scenario(dir.path());
    let digest = output(&program, &[&scenario, &(CHUNK / 2).to_string()]);
    assert_eq!(digest, Ring::play(&scenario, CHUNK / 2));
}
