//! Claim: a fast run that serves requests leaves out messages which meet nobody, and every request fares as in the full run, to the
//! picosecond.

use engine::Kind;
use lab::fast::{Leave, run_on};
use lab::{Progress, Run};
use model::draw::{Key, Purpose, below};
use results::summary::Serving;
use scenario::{Resolved, Source};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

fn resolved(text: &str) -> Resolved {
    Resolved::of(&Source::new("lone.toml", text), &[]).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn fast_on(text: &str, kind: Kind) -> Run {
    let stop = AtomicBool::new(false);
    let run = run_on(resolved(text), Leave::asked(Some(0.01), None), kind, &Progress::silent(&stop));
    run.unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn full(text: &str) -> Run {
    lab::run(lab::Prepared { checked: resolved(text).lay().unwrap(), setup_s: 0.0 })
}

/// What a run left out, once it is known that its requests fare as in the full run.
fn compared(text: &str, kind: Kind) -> results::summary::Fast {
    let (fast, full) = (fast_on(text, kind), full(text));
    // Short timeouts may keep both from their end.
    assert_eq!(fast.faults(), full.faults(), "{text}");
    assert_eq!(fast.served, full.served, "{text}");
    assert_eq!(fast.outcome.end, full.outcome.end, "{text}");
    let told = |run: &Run| run.summary.serving.clone().map(|told| Serving { loads: BTreeMap::new(), ..told });
    assert_eq!(told(&fast), told(&full), "{text}");
    fast.summary.fast.unwrap()
}

/// Servers of two GPUs, of which the first half computes prompts.
fn served(head: &str, nics: u64, servers: u64, work: &str) -> String {
    let (half, last) = (servers / 2, servers - 1);
    format!(
        "{head}\n[server]\ngpus = 2\nnics = {nics}\nnvlink = \"off\"\n[wire]\npayload = \"4KiB\"\n[class.kv]\n[[workload]]\n\
         name = \"chat\"\nclass = \"kv\"\n[workload.serving]\nmodel = \"qwen3-8b\"\n\
         prefill = {{ servers = \"0..{}\", compute = {{ flops = \"4000TFLOPS\" }} }}\n\
         decode = {{ servers = \"{half}..{last}\", memory = \"9GB\", compute = {{ hbm = \"3.35TB/s\" }} }}\n{work}\n",
        half - 1
    )
}

/// Queues grow at leaves, so no transfer takes its closed form whatever its size.
const SLOWER: &str = "uplink-rate = \"50Gbps\"";

fn drawn(seed: u64) -> String {
    let number = |tag: u64, from: u64, to: u64| {
        from + below(Key::new(seed, Purpose::Workload, 0).draw(tag), (to - from + 1) as usize) as u64
    };
    let pick = |tag: u64, all: &[&str]| all[number(tag, 0, all.len() as u64 - 1) as usize].to_owned();
    let (servers, nics) = (2 * number(1, 2, 3), number(2, 0, 2).max(1));
    let (wiring, spines) = (pick(3, &["rail-optimised", "per-server"]), number(4, 1, 3));
    let uplink = pick(15, &["", "", "", "", SLOWER, "uplink-rate = \"800Gbps\""]);
    // With slow links, short timeouts would keep a run from its end.
    let nic = pick(
        17,
        &[
            "",
            "",
            "window = { bytes = \"100kB\" }",
            "timeout = { fixed = \"100us\" }\non-timeout = { stall = \"1ms\" }",
            "timeout = { fixed = \"100us\" }",
        ],
    );
    let head = format!(
        "seed = {seed}\n[topology.rails]\nkind = \"{wiring}\"\nservers = {servers}\nservers-per-segment = 2\nspines = {spines}\nrate = \"{}\"\n{}\n\
         [switch]\n{}\n[nic]\nack-every = {}\n{}\n{}\n[scheme.ecmp]\n",
        pick(5, &["100Gbps", "400Gbps"]),
        uplink,
        pick(
            16,
            &[
                "",
                "classes = \"one\"",
                "pfc = \"off\"",
                "pfc = \"off\"\nbuffer = \"500kB\"\nclasses = \"one\""
            ]
        ),
        pick(6, &["1", "8"]),
        if uplink == SLOWER { String::new() } else { nic },
        pick(
            7,
            &[
                "[nic.congestion.none]",
                "[nic.congestion.dcqcn]",
                "model = \"connectx-7\"",
                "model = \"connectx-5\""
            ]
        ),
    );
    let host =
        pick(8, &["", ", host = \"300us\"", ", rate = \"70Gbps\"", ", host = \"1ms\", rate = \"33Gbps\""]);
    let transfer = format!(
        "{{ way = \"{}\", rails = \"{}\", qps = {}, reserve = \"early\"{host} }}",
        pick(9, &["push", "push", "push", "push", "pull", "layers"]),
        pick(10, &["own", "own", "round-robin", "least-inflight"]),
        pick(11, &["1", "1", "1", "1", "1", "2"]),
    );
    let rate = number(12, 2, 30);
    let work = format!(
        "arrivals = {{ rate = {rate}.0, count = 30, input = {{ min = 20, max = {} }}, output = {{ min = 1, max = 4 }} }}\n\
         transfer = {transfer}\nplace = {{ decode = \"{}\", refresh = \"20ms\" }}\nslo = {{ ttft = \"60ms\" }}",
        number(13, 100, 800),
        pick(14, &["round-robin", "least-loaded", "network-aware", "oracle", "same-tier"]),
    );
    served(&head, nics, servers, &work)
}

#[test]
fn requests_of_random_scenarios_fare_as_if_every_message_was_sent() {
    let cases = std::env::var("ROPEWALK_LONE_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(16);
    let (mut left_out, mut sent) = (0, 0);
    for seed in 0..cases {
        let kind = if seed % 4 == 3 { Kind::Reference } else { Kind::Window };
        let fast = compared(&drawn(seed), kind);
        let slower = fast.reason.is_some_and(|reason| reason.contains("a link is slower than a NIC"));
        assert_eq!(slower, drawn(seed).contains(SLOWER), "{}", drawn(seed));
        (left_out, sent) = (left_out + fast.left_out, sent + fast.sent);
    }
    assert!(left_out > sent / 10, "{left_out} packets left out, {sent} sent");
}

/// A small group of layers goes out within its NIC's window, and a large one waits for ACKs.
#[test]
fn a_small_message_says_nothing_of_a_large_one() {
    let head = "[topology.rails]\nservers = 4\nservers-per-segment = 2\nspines = 2\n[nic]\nwindow = { bytes = \"100kB\" }\n\
                [nic.congestion.none]\n[scheme.ecmp]\n";
    let work = "arrivals = { rate = 10.0, count = 20, input = { min = 20, max = 100 }, output = 2 }\n\
                transfer = { way = \"layers\", groups = 36, reserve = \"early\" }";
    let text = served(head, 2, 4, work).replace("4000TFLOPS", "1TFLOPS");
    let fast = compared(&text, Kind::Window);
    assert!(fast.alone > 0, "{fast:?}");
}

/// A message of many round trips that took its closed form speaks for all longer ones, if no window holds it: only the KV of a queue pair's
/// first request is sent. Where an ACK waits for a thousand packets, each KV that is longer than those before is sent, too.
#[test]
fn a_message_of_many_round_trips_speaks_for_longer_ones() {
    let head = |nic: &str| {
        format!(
            "[topology.rails]\nservers = 2\nservers-per-segment = 2\nspines = 1\n[nic]\n{nic}\n[nic.congestion.none]\n[scheme.ecmp]\n"
        )
    };
    let work = "arrivals = { rate = 1.0, count = 12, input = { min = 40, max = 200 }, output = 2 }\n\
                transfer = { reserve = \"early\" }";
    let alone =
        ["", "ack-every = 1000"].map(|nic| compared(&served(&head(nic), 2, 2, work), Kind::Window).alone);
    assert_eq!(alone, [22, 20], "of 24");
}

/// Spraying keeps no path, and a checkpoint is another job.
#[test]
fn what_cannot_be_exact_is_sent_and_the_answer_says_why() {
    let head = |scheme: &str| {
        format!("[topology.rails]\nservers = 4\nservers-per-segment = 2\nspines = 2\n[scheme.{scheme}]\n")
    };
    let work = "arrivals = { rate = 40.0, count = 6, input = 300, output = 2 }";
    let beside = format!(
        "{work}\n[[workload]]\nflows = {{ list = [{{ from = \"s0g0\", to = \"s1g0\", bytes = \"1MB\" }}] }}"
    );
    for (scheme, work, why) in [
        ("rps", work, "switches do more than to hash flows"),
        ("ecmp", &*beside, "other jobs share the fabric"),
    ] {
        let fast = compared(&served(&head(scheme), 2, 4, work), Kind::Window);
        assert!(fast.reason.as_ref().is_some_and(|reason| reason.contains(why)), "{:?}", fast.reason);
        assert_eq!((fast.left_out, fast.alone), (0, 0));
    }
}
