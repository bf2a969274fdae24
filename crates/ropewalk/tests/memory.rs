//! The command on a machine with little memory: it refuses a run that cannot fit at the line that asks for the memory, stops a
//! run that grows too large with a summary, and never aborts. The memory limit is that of `ulimit -v`.

#![cfg(target_os = "linux")]

use serde_json::Value;
use std::process::{Command, Output};
use tempfile::TempDir;

/// A directory with the scenario `s.toml`.
struct Case(TempDir);

impl Case {
    fn new(scenario: &str) -> Self {
        let dir = TempDir::new().unwrap();
        std::fs::write(dir.path().join("s.toml"), scenario).unwrap();
        Case(dir)
    }

    /// Runs `ropewalk` with `args` and at most this much address space, KiB.
    fn within(&self, kib: &str, args: &[&str]) -> (i32, String, String) {
        let program = ["-c", "ulimit -v $0 && exec \"$@\"", kib, env!("CARGO_BIN_EXE_ropewalk")];
        let mut command = Command::new("sh");
        command.args(program).args(args).current_dir(self.0.path()).env("NO_COLOR", "1");
        let Output { status, stdout, stderr } = command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (status.code().expect("no signal ends the command"), text(stdout), text(stderr))
    }

    fn summary(&self) -> Value {
        serde_json::from_str(&std::fs::read_to_string(self.0.path().join("o/summary.json")).unwrap()).unwrap()
    }
}

/// An incast whose senders ignore congestion, into a buffer without end. Small packets fill memory fast.
fn incast(more: &str) -> String {
    format!(
        "[topology.leaf-spine]\nleaves = 1\nspines = 1\nhosts-per-leaf = 32\n[wire]\npayload = \"128B\"\n\
         [nic.congestion.none]\n[switch]\nbuffer = \"1000GB\"\npfc = \"off\"\necn = \"off\"\n\
         [[workload]]\nincast = {{ bytes = \"1GB\", senders = 31 }}\n{more}"
    )
}

#[test]
fn a_million_flows_that_do_not_fit_are_refused_at_their_line() {
    let case = Case::new(
        "[topology.leaf-spine]\nleaves = 32\nspines = 32\nhosts-per-leaf = 32\n\
         [[workload]]\nall-to-all = { per-pair = \"1kB\", groups = \"all\" }\n",
    );
    for command in ["check", "run"] {
        let (code, stdout, stderr) = case.within("700000", &[command, "s.toml"]);
        assert_eq!((code, &*stdout), (2, ""), "{command}: {stderr}");
        for part in [
            "the run needs at least 1.3 GB of memory",
            "for 1047552 messages on 1047552 queue pairs; the address space of this process (ulimit -v) has",
            "--> s.toml:6:43",
        ] {
            assert!(stderr.contains(part), "{command}: {part} is not in {stderr}");
        }
    }
}

#[test]
fn a_collective_of_messages_of_one_byte_is_refused_before_it_is_laid_out() {
    let servers = "[server]\ngpus = 8\n[topology.rails]\nservers = 4\nspines = 2\n[[workload]]\n";
    let tuning = "tuning = { message = \"1B\" }";
    for (workload, part) in [
        (format!("collective = {{ kind = \"all-reduce\", bytes = \"1GB\", {tuning} }}"), "62000000000 steps"),
        (
            format!(
                "[workload.training]\nmodel = \"gpt-13b\"\nparallel = {{ tp = 8 }}\nbatch = {{ global = 32, sequence = 2048 }}\n\
                 compute = {{ flops = \"400TFLOPS\" }}\ncollectives = {{ dp = {{ {tuning} }} }}"
            ),
            "steps, which take",
        ),
    ] {
        let (code, _, stderr) =
            Case::new(&format!("{servers}{workload}\n")).within("3000000", &["check", "s.toml"]);
        assert!(code == 2 && stderr.contains(part) && stderr.contains("--> s.toml:"), "{code}: {stderr}");
    }
}

#[test]
fn files_whose_content_does_not_fit_are_refused_before_they_are_parsed() {
    let case = Case::new("[topology.leaf-spine]\nleaves = 2\nspines = 1\nhosts-per-leaf = 2\n");
    let write = |name: &str, text: Vec<u8>| std::fs::write(case.0.path().join(name), text).unwrap();
    write("topology.txt", b"3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n".to_vec());
    let flows = "0 1 3 100 1000 2.0\n".repeat(200_000);
    write("flows.txt", format!("200000\n{flows}").into_bytes());
    let layers = "a -1 1 NONE 0 1 NONE 0 1 NONE 0 1\n".repeat(200_000);
    let simai = "HYBRID_TRANSFORMER model_parallel_NPU_group: 2 ep: 1 pp: 1 all_gpus: 4\n200000\n";
    write("simai.txt", format!("{simai}{layers}").into_bytes());
    // Five million nodes without content, in 45 kB.
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    let node = [6, 8, 1, 24, 4, 48, 1].repeat(5_000_000);
    std::io::Write::write_all(&mut bomb, &[&[7, 10, 5, 48, 46, 48, 46, 52][..], &node].concat()).unwrap();
    write("trace.0.et", bomb.finish().unwrap());
    for args in [
        "import hpcc --topology topology.txt --flows flows.txt -o o.toml",
        "import chakra trace.0.et --topology s.toml -o o.toml",
        "import simai simai.txt --topology s.toml -o o.toml",
        "run trace.0.et --topology s.toml",
    ] {
        let (code, _, stderr) = case.within("330000", &args.split(' ').collect::<Vec<_>>());
        let refused =
            stderr.contains("cannot be read: it takes at least") && stderr.contains("(ulimit -v) has");
        assert!(code == 2 && refused, "{args}: {code}: {stderr}");
        assert!(!case.0.path().join("o.toml").exists());
    }
}

#[test]
fn an_incast_into_an_endless_buffer_stops_with_a_summary_before_memory_runs_out() {
    let case = Case::new(&incast("[nic.transport.ideal]\n"));
    for engine in [&["--threads", "1"][..], &["--engine", "reference"]] {
        let args = [&["run", "s.toml", "-o", "o", "--quiet"], engine].concat();
        let (code, stdout, stderr) = case.within("300000", &args);
        assert_eq!(code, 3, "{engine:?}: {stdout}{stderr}");
        assert!(stdout.contains("stopped: memory   0 of 31 flows finished"), "{stdout}");
        for part in [
            "for lack of memory: the address space of this process (ulimit -v) has ",
            "memory is taken by packets in queues (",
            " of them leaf0 -> host0), packets on links (",
            "`[switch] buffer` or `queue-cap`",
            "`[stop] after`",
        ] {
            assert!(stderr.contains(part), "{engine:?}: {part} is not in {stderr}");
        }
        let summary = case.summary();
        assert_eq!((&summary["complete"], &summary["ending"]), (&false.into(), &"memory".into()));
        assert!(summary["packets"]["in_flight"].as_u64().unwrap() > 1_000_000, "{}", summary["packets"]);
    }
}

#[test]
fn packets_on_a_long_link_count_too() {
    let case = Case::new(&format!(
        "{}[nic.transport.ideal]\nmax-outstanding = 8000000\nreorder-window = 8000000\n",
        incast("").replace("hosts-per-leaf = 32\n", "hosts-per-leaf = 32\ndelay = \"100ms\"\n")
    ));
    let (code, _, stderr) = case.within("300000", &["run", "s.toml", "-o", "o", "--quiet"]);
    assert_eq!(code, 3, "{stderr}");
    assert!(stderr.contains("memory is taken by packets on links ("), "{stderr}");
    assert!(stderr.contains("reduce the packets in flight by `[nic] window`"), "{stderr}");
}

#[test]
fn events_that_do_not_fit_are_refused() {
    let case = Case::new(&incast("[record]\nevents = \"all\"\nmost-events = 10000000\n"));
    let (code, _, stderr) = case.within("700000", &["run", "s.toml"]);
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("events of 31") && stderr.contains("s.toml:14:1"), "{stderr}");
}

#[test]
fn check_shows_how_much_memory_full_queues_may_take() {
    let case = Case::new(&incast("[nic.transport.ideal]\n"));
    let (code, stdout, stderr) = case.within("300000", &["check", "s.toml"]);
    assert_eq!(code, 0, "{stderr}");
    let (sure, rest) = stdout.split_once(" MB of memory, and up to ").expect(&stdout);
    assert!(rest.contains(" more if queues and links fill"), "{rest}");
    assert!(sure.ends_with("about 23"), "{sure}");
    assert!(stderr.contains("note: ") && stderr.contains(" for packets in queues"), "{stderr}");
    let (_, stdout, stderr) = case.within("unlimited", &["check", "quickstart"]);
    assert!(!stdout.contains(" and up to ") && stderr.is_empty(), "{stdout}{stderr}");
}

/// Claim: the estimate with full queues is 1 to 2.2 times the measured peak, above the memory of a run without queues.
#[test]
fn the_estimate_of_full_queues_is_close_to_the_measured_peak() {
    for keys in ["[nic.transport.ideal]\n", "[nic.transport.sr-sack]\nmax-outstanding = 100000\n"] {
        let text = incast(keys).replace("1GB", "6MB");
        let estimate = |text: &str| {
            let checked = scenario::check(&scenario::Source::new("s.toml", text.to_owned()), &[]).unwrap();
            (checked.memory + checked.possible.total) as f64 / 1e6
        };
        let peak = |text: &str| {
            let (code, stdout, stderr) = Case::new(text).within("unlimited", &["run", "s.toml", "--json"]);
            assert_eq!(code, 0, "{stderr}");
            let summary: Value = serde_json::from_str(&stdout).unwrap();
            summary["timing"]["peak_rss_mb"].as_f64().unwrap()
        };
        let small = text.replace("6MB", "1kB");
        let (estimated, measured) = (estimate(&text) - estimate(&small), peak(&text) - peak(&small));
        assert!((1.0..2.2).contains(&(estimated / measured)), "{keys}: {estimated} MB for {measured} MB");
    }
}
