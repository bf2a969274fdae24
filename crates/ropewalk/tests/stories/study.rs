//! `ropewalk study` before hardware arrives: the acceptance of a fabric of two leaves as it should be and with single wrong settings, and
//! a month of its faults.

use assert_cmd::Command;
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;
use serde_json::Value;
use std::fs;
use tempfile::TempDir;

/// Two leaves with four hosts each, two spines, 100 Gb/s. With NVIDIA's default of 32,767 B, the byte counter would raise rates every 2.6 us.
const SITE: &str = r#"
[topology.leaf-spine]
leaves = 2
spines = 2
hosts-per-leaf = 4
rate = "100Gbps"
delay = "200ns"

[switch]
buffer = "6MB"
pfc = { alpha = "1", headroom = { xoff = "60kB", shared-pool = "600kB" } }
ecn = { at-rate = [{ rate = "100Gbps", kmin = "100kB", kmax = "400kB", pmax = 0.1 }] }
dscp-map = [{ dscp = [48] }, { dscp = [26], lossless = true, weight = 3 }, { weight = 1 }]

[nic]
dscp = 26
cnp-interval = "2us"
congestion = { dcqcn = { byte-reset = "1MB" } }

[[workload]]
all-to-all = { groups = "all", bytes = "1MB" }
"#;

struct Site(TempDir);

impl Site {
    fn new() -> Self {
        let site = Site(TempDir::new().unwrap());
        fs::write(site.0.path().join("site.toml"), SITE).unwrap();
        site
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::cargo_bin("ropewalk").unwrap();
        command.args(["study", "acceptance", "site.toml"]).args(args).current_dir(self.0.path());
        command
    }

    /// The answer as JSON, and the names of the cases that failed.
    fn answer(&self, args: &[&str], code: i32) -> (Value, Vec<String>) {
        let done = self.command(args).arg("--json").assert().code(code);
        let answer: Value = serde_json::from_slice(&done.get_output().stdout).unwrap();
        let cases = answer["cases"].as_array().unwrap();
        let failed = cases.iter().filter(|case| case["verdict"] == "fail");
        (answer.clone(), failed.map(|case| case["case"].as_str().unwrap().to_owned()).collect())
    }
}

/// Cases whose runs take a moment each; the collectives of A9 and A12 take a minute here.
const QUICK: &str = "a1,a2,a3,a4,a6,a7,a8,a14";

#[test]
fn a_good_fabric_passes_and_what_was_not_tested_is_said() {
    let (answer, failed) = Site::new().answer(&["--cases", QUICK], 0);
    assert!(failed.is_empty(), "{failed:?}: {:#?}", answer["rows"]);
    assert_eq!(answer["accepted"], true);
    let verdict = |id: &str| {
        let cases = answer["cases"].as_array().unwrap();
        cases.iter().find(|case| case["case"] == id).unwrap()["verdict"].as_str().unwrap().to_owned()
    };
    for id in ["a1", "a2", "a3", "a4", "a6", "a7", "a14"] {
        assert_eq!(verdict(id), "pass", "{id}");
    }
    assert_eq!(verdict("a8"), "not-applicable", "there is no watchdog");
    let rows = answer["rows"].as_array().unwrap();
    let two = rows.iter().find(|row| row["traffic"] == "two queues").unwrap();
    assert_eq!(two["verdict"], "not-applicable", "the map has one lossless queue");
    assert!(two["why"].as_str().unwrap().contains("second lossless queue"), "{two}");
}

#[test]
fn a_watchdog_finds_long_storms_and_no_short_ones() {
    for action in ["drop", "forward"] {
        let times = "detection-time = \"4ms\", restoration-time = \"4ms\", poll-interval = \"2ms\"";
        let watchdog = format!("switch.pfc.watchdog={{ {times}, action = \"{action}\" }}");
        let (answer, failed) = Site::new().answer(&["--cases", "a8", "--set", &watchdog], 0);
        let rows = answer["rows"].as_array().unwrap();
        let value =
            |metric: &str| rows.iter().find(|row| row["metric"] == metric).unwrap()["measured"].as_f64();
        assert!(failed.is_empty(), "{rows:#?}");
        let of = ["storms", "restored", "storms-if-short", "loss-beside"].map(value);
        assert_eq!(of, [Some(1.0), Some(1.0), Some(0.0), Some(0.0)], "{action}");
        assert_eq!(value("loss").unwrap() > 0.0, action == "drop", "{rows:#?}");
    }
}

/// SONiC's counter of the CNPs' queue must be what the NICs have sent, which needs a queue without data and ACKs.
#[test]
fn the_queue_of_cnps_has_counted_them_all() {
    let of = |more: &[&str]| {
        let (answer, failed) = Site::new().answer(&[&["--cases", "a3"], more].concat(), 0);
        assert!(failed.is_empty(), "{answer:#}");
        answer["rows"].as_array().unwrap().clone()
    };
    let rows = of(&[]);
    let share = rows.iter().find(|row| row["metric"] == "cnps-in-own-queue").unwrap();
    assert_eq!((&share["measured"], &share["limit_by"]), (&100.0.into(), &"plan".into()));
    let shared = of(&["--set", "nic.ack-dscp=48"]);
    assert!(shared.iter().all(|row| row["metric"] != "cnps-in-own-queue"));
    let why = shared.iter().find(|row| row["traffic"] == "CNPs' queue").unwrap();
    assert_eq!(why["verdict"], "not-applicable", "{why}");
}

/// A ring of n hosts moves 2 (n - 1) / n of its size by each: so much larger is its bus bandwidth.
#[test]
fn algorithm_bandwidth_is_the_size_over_the_time() {
    // 100 Gb/s carry 12.5 GB/s, less headers.
    let (answer, _) = Site::new().answer(&["--cases", "a9", "--set", "topology.leaf-spine.leaves=1"], 0);
    let rows = answer["rows"].as_array().unwrap();
    let value = |traffic: &str, metric: &str| {
        let row = rows.iter().find(|row| row["traffic"] == traffic && row["metric"] == metric);
        row.and_then(|row| row["measured"].as_f64())
    };
    let (alg, bus) = (value("leaf, ring", "algbw").unwrap(), value("leaf, ring", "busbw").unwrap());
    let ratio = bus / 100.0 * 12.5 / alg;
    assert!(ratio > 1.5 && ratio < 1.7, "6 / 4 and the headers of packets of 1 kB and 4 kB: {ratio}");
    assert_eq!(value("leaf, M to N", "algbw"), None, "it is no collective");
}

#[test]
fn data_in_a_lossy_queue_fails_in_the_case_of_pfc() {
    // NCCL's default DSCP.
    let (answer, failed) = Site::new().answer(&["--cases", "a2,a7", "--set", "nic.dscp=0"], 3);
    assert_eq!(failed, ["a2"], "{answer:#}");
    let rows = answer["rows"].as_array().unwrap();
    let of = |metric: &str| rows.iter().find(|row| row["metric"] == metric).unwrap();
    assert_eq!(
        (&of("loss")["verdict"], &of("pauses-of-each-priority")["verdict"]),
        (&"fail".into(), &"fail".into())
    );
    assert!(rows.iter().any(|row| row["case"] == "a7" && row["verdict"] == "not-applicable"));
}

#[test]
fn an_xoff_that_is_too_small_fails_in_the_case_of_headroom() {
    let small = "switch.pfc.headroom={ xoff = \"4kB\", shared-pool = \"600kB\" }";
    let (answer, failed) = Site::new().answer(&["--cases", "a1,a3,a7", "--set", small], 3);
    assert_eq!(failed, ["a7"], "{:#}", answer["rows"]);
}

#[test]
fn switches_that_do_not_mark_fail_in_the_cases_of_marks() {
    let (answer, failed) = Site::new().answer(&["--cases", "a1,a2,a3,a4,a6", "--set", "switch.ecn=off"], 3);
    assert_eq!(failed, ["a3", "a4", "a6"], "{:#}", answer["rows"]);
}

#[test]
fn a_fabric_with_one_leaf_has_no_verdict_on_what_crosses_leaves() {
    let sets = ["--set", "topology.leaf-spine.leaves=1", "--cases", "a10,a13,a15"];
    let (answer, failed) = Site::new().answer(&sets, 0);
    assert!(failed.is_empty());
    for row in answer["rows"].as_array().unwrap() {
        assert_eq!(
            (&row["verdict"], &row["why"]),
            (&"not-applicable".into(), &"the fabric has one leaf".into())
        );
    }
}

#[test]
fn the_users_own_limits_count_and_their_mistakes_have_a_place() {
    let site = Site::new();
    fs::write(site.0.path().join("mine.toml"), "[a1]\nmean-latency = 0.1\n").unwrap();
    site.command(&["--cases", "A1", "--limits", "mine.toml"])
        .assert()
        .code(3)
        .stdout(contains("NOT accepted, a1 fails").and(contains("FAIL (yours)")));
    fs::write(site.0.path().join("mine.toml"), "[a1]\nmean-latencies = 0.1\n").unwrap();
    site.command(&["--limits", "mine.toml"])
        .assert()
        .code(2)
        .stderr(contains("mine.toml:2").and(contains("did you mean `mean-latency`?")));
    site.command(&["--cases", "a1,a99"]).assert().code(2).stderr(contains("there is no case `a99`"));
}

/// AMD's file expects 300 GB/s of an all-reduce over 16 NICs of 400 Gb/s. Two spines carry a quarter of the leaves' hosts.
#[test]
fn amds_expected_bandwidths_find_a_fabric_with_too_few_spines() {
    let site = Site::new();
    let file = r#"{ "rccl": { "no_of_nodes": "2", "results": { "all_reduce_perf": { "bus_bw": { "8589934592": "300.00" } } } } }"#;
    fs::write(site.0.path().join("rccl_config.json"), file).unwrap();
    let spines = |number: u32, code: i32| {
        let fabric = format!(
            "topology.leaf-spine={{ leaves = 2, spines = {number}, hosts-per-leaf = 8, rate = \"400Gbps\" }}"
        );
        let parts =
            ["--set", "scheme.rps={}", "--set", "nic.transport.ideal={}", "--set", "switch.buffer=64MB"];
        let all =
            [&["--cases", "a16", "--limits", "rccl_config.json", "--set", &fabric][..], &parts].concat();
        let all = [&all[..], &["--set", "nic.congestion={ none = {} }", "--set", "switch.pfc.headroom=1MB"]]
            .concat();
        site.answer(&all, code).1
    };
    assert_eq!(spines(8, 0), [""; 0]);
    assert_eq!(spines(2, 3), ["a16"]);
    fs::write(site.0.path().join("rccl_config.json"), "{ \"rccl\": 3 }").unwrap();
    site.command(&["--limits", "rccl_config.json"]).assert().code(2).stderr(contains("rccl_config.json:1:"));
}

/// A month of faults on the site with further settings.
fn month(site: &Site, more: &[&str]) -> Value {
    let mut command = Command::cargo_bin("ropewalk").unwrap();
    let done = command
        .args(["study", "faults", "site.toml", "--json", "--set", "topology.leaf-spine.hosts-per-leaf=2"])
        .args(more)
        .current_dir(site.0.path())
        .assert()
        .code(0);
    serde_json::from_slice(&done.get_output().stdout).unwrap()
}

// Three months of faults on three settings, of 16 runs each: about 4 s of CPU.
#[test]
fn a_months_faults_kill_more_jobs_the_shorter_the_senders_try() {
    let site = Site::new();
    let of = |nccl: &str| month(&site, &["--set", &format!("nic.nccl={nccl}")]);
    let (waits, short, long) = (month(&site, &[]), of("2.3.5"), of("2.23.4"));
    let dead = |answer: &Value| answer["dead_jobs"]["mean"].as_f64().unwrap();
    assert_eq!(
        (dead(&waits), &waits["long_flaps_percent"]),
        (0.0, &0.0.into()),
        "without a limit nobody gives up"
    );
    let gives_up = |answer: &Value| answer["gives_up_s"].as_f64();
    assert!(
        gives_up(&waits).is_none() && gives_up(&long) > gives_up(&short) && gives_up(&short) > Some(0.47)
    );
    assert!(dead(&short) > dead(&long) && dead(&long) > 0.0, "{} and {}", dead(&short), dead(&long));
    // Seven timers of 67 ms: a flap of half of a second ends the job. A log-normal of median 1 s and sigma 1.5 is longer with 69 %.
    let flaps = &short["rows"].as_array().unwrap()[1];
    assert_eq!(flaps["fault"], "NIC link flaps");
    let patience = flaps["patience_s"].as_f64().unwrap();
    assert!((patience / 0.47 - 1.0).abs() < 0.02, "{patience}");
    assert!(
        (short["long_flaps_percent"].as_f64().unwrap() - 69.0).abs() < 20.0,
        "{}",
        short["long_flaps_percent"]
    );
    let spine = waits["rows"].as_array().unwrap().iter().find(|row| row["fault"] == "spine down").unwrap();
    assert!(spine["slowdown"].as_f64().unwrap() > 1.0, "one of two spines carries all: {spine}");
    assert_eq!(of("2.3.5"), short, "the same seed draws the same months");
}
