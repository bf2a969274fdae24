//! Claim: a fast run that leaves out the middle of long messages ends each message at the picosecond at which it would have ended, and
//! sends what it cannot leave out exactly.

use engine::Kind;
use lab::fast::{Leave, run_on};
use lab::{Progress, Run};
use model::Rate;
use model::draw::{Key, Purpose, below};
use scenario::{Resolved, Source};
use std::sync::atomic::AtomicBool;

const HEAD: &str = "[wire]\npayload = \"4KiB\"\n[scheme.ecmp]\n";

/// Two racks of four hosts, all links at 400 Gb/s, and messages of so many bytes between named hosts.
fn racks(head: &str, flows: &[(usize, usize, &str)]) -> String {
    let list: Vec<String> = flows
        .iter()
        .map(|(from, to, bytes)| {
            format!("{{ from = \"host{from}\", to = \"host{to}\", bytes = \"{bytes}\" }}")
        })
        .collect();
    format!(
        "{head}\n{HEAD}[topology.leaf-spine]\nleaves = 2\nspines = 4\nhosts-per-leaf = 4\nrate = \"400Gbps\"\n\
         [[workload]]\n[workload.flows]\nlist = [{}]\n",
        list.join(", ")
    )
}

fn fast_on(text: &str, kind: Kind) -> Run {
    let stop = AtomicBool::new(false);
    let resolved =
        Resolved::of(&Source::new("cut.toml", text), &[]).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let run = run_on(resolved, Leave::asked(Some(0.01), None), kind, &Progress::silent(&stop));
    let run = run.unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(run.faults(), [""; 0], "{text}");
    run
}

/// The fast run, which both engines agree on.
fn fast(text: &str) -> Run {
    let (window, reference) = (fast_on(text, Kind::Window), fast_on(text, Kind::Reference));
    assert_eq!(window.summary.fast, reference.summary.fast, "{text}");
    assert_eq!(window.summary.digest, reference.summary.digest, "{text}");
    window
}

/// The run that sends everything.
fn full(text: &str) -> Run {
    let checked = Resolved::of(&Source::new("cut.toml", text), &[]).unwrap().lay().unwrap();
    lab::run(lab::Prepared { checked, setup_s: 0.0 })
}

/// Start, arrival, acknowledgement and last transmission of all messages, ps.
fn times(run: &Run) -> Vec<[u64; 4]> {
    let of = |m: &engine::outcome::MessageRecord| [m.start, m.received, m.acked, m.last_sent].map(|t| t.ps());
    run.outcome.messages.iter().map(of).collect()
}

/// The times of all messages, and for how long each link's wire was busy, ps.
fn told(run: &Run) -> (Vec<[u64; 4]>, Vec<u64>) {
    (times(run), run.outcome.links.iter().map(|link| link.busy.ps()).collect())
}

/// Packets sent, and why nothing was left out.
fn sent(run: &Run) -> (u64, String) {
    let fast = run.summary.fast.as_ref().unwrap();
    assert_eq!(fast.cuts == 0, fast.left_out == 0, "{fast:?}");
    (fast.sent, fast.reason.clone().unwrap_or_default())
}

#[test]
fn one_flow_takes_its_closed_form_from_a_megabyte_to_a_terabyte() {
    // Each further packet takes its time on the wire.
    let short = full(&racks("", &[(0, 4, "1000001B")]));
    let wire = &short.checked.plan.wire;
    let each = wire.transmission(Rate::from_gbps(400), wire.max_frame()).ps();
    let packets = |bytes: u64| wire.packets(bytes);
    for bytes in
        [1_000_001, 20_000_001 / 4_096 * 4_096 + 577, 1_000_000 * 4_096 + 577, 250_000_000 * 4_096 + 577]
    {
        let run = fast(&racks("", &[(0, 4, &format!("{bytes}B"))]));
        let more = packets(bytes) - packets(1_000_001);
        let [_, received, acked, last] = times(&run)[0];
        assert_eq!([received, acked, last].map(|at| at - more * each), times(&short)[0][1..], "{bytes}");
        assert!(sent(&run).0 <= 5_000, "{bytes}: {:?}", run.summary.fast);
    }
    for bytes in ["1GB", "1TB"] {
        let run = fast(&racks("", &[(0, 4, bytes)]));
        assert_eq!((run.outcome.messages[0].acked, run.outcome.end), (run.ideal[0], run.ideal[0]), "{bytes}");
        assert!(sent(&run).0 <= 5_000, "{bytes}: {:?}", run.summary.fast);
    }
}

#[test]
fn disjoint_flows_take_their_closed_forms() {
    // In one rack and between racks.
    let run = fast(&racks("", &[(0, 1, "1GB"), (2, 4, "3GB"), (5, 6, "2GB")]));
    assert_eq!(run.outcome.messages.iter().map(|m| m.acked).collect::<Vec<_>>(), run.ideal);
    assert!(sent(&run).0 <= 3 * 5_000, "{:?}", run.summary.fast);
}

#[test]
fn a_fast_run_has_the_times_of_the_full_run() {
    for (head, flows) in [
        ("", vec![(0, 4, "40MB"), (1, 2, "60MB")]),
        ("[nic.congestion.none]", vec![(0, 4, "40MB"), (1, 2, "30MB"), (5, 6, "80MB")]),
        ("[nic]\nack-every = 4", vec![(0, 4, "40MB")]),
    ] {
        let text = racks(head, &flows);
        let (fast, full) = (fast(&text), full(&text));
        assert_eq!(told(&fast), told(&full), "{text}");
        assert_eq!(fast.outcome.end, full.outcome.end);
        let bytes = |run: &Run| run.outcome.messages.iter().map(|m| m.wire_bytes).collect::<Vec<_>>();
        assert_eq!(bytes(&fast), bytes(&full));
        let books = fast.summary.fast.unwrap();
        assert!(books.share() < 0.5, "{text}{books:?}");
    }
}

/// A run that sends everything, for a reason.
fn refused(text: &str, reason: &str) {
    let (fast, full) = (fast(text), full(text));
    assert_eq!(fast.summary.digest, full.summary.digest, "{text}");
    let (sent, why) = sent(&fast);
    assert!(why.contains(reason), "{why}");
    let packets = |m: &model::plan::Message| full.checked.plan.wire.packets(m.bytes);
    assert_eq!(sent, full.checked.plan.messages.iter().map(packets).sum::<u64>());
}

#[test]
fn dcqcn_is_cut_until_its_first_cnp_and_then_no_more() {
    let alone = racks("[nic.congestion.dcqcn]", &[(0, 4, "40MB")]);
    assert!(fast(&alone).summary.fast.unwrap().share() < 0.1);
    // A short flow meets a long one, whose window is below the round trip. So the queue goes when the long one is alone.
    let window = "[nic]\nwindow = { bytes = \"300kB\" }\n[switch.ecn]\nkmin = \"10kB\"\n";
    for control in ["none", "dcqcn"] {
        let head = format!("{window}[nic.congestion.{control}]");
        refused(&racks(&head, &[(0, 4, "100MB"), (1, 4, "2MB")]), "CNPs");
    }
}

#[test]
fn a_link_that_slows_down_and_recovers_does_so_on_the_clock_of_the_run() {
    let failure =
        "[[failure]]\nlinks = [[\"host0\", \"leaf0\"]]\nrate = 0.25\nat = \"200us\"\nuntil = \"500us\"\n";
    let text = format!("{}{failure}", racks("", &[(0, 4, "400MB")]));
    let (fast, full) = (fast(&text), full(&text));
    assert_eq!(told(&fast), told(&full));
    assert!(fast.summary.fast.unwrap().share() < 0.1);
}

#[test]
fn a_start_to_come_is_on_the_clock_of_the_run() {
    let text =
        racks("", &[(0, 4, "400MB"), (1, 5, "40MB")]).replace("\"40MB\" }", "\"40MB\", start = \"300us\" }");
    let (fast, full) = (fast(&text), full(&text));
    assert_eq!(told(&fast), told(&full));
    assert!(fast.summary.fast.unwrap().share() < 0.2);
}

/// Two flows to one host, each with a window of half the round trip's bytes or more, so that a queue stands.
fn at_one_port(kmin: &str) -> String {
    let head = format!("[nic]\nwindow = {{ bytes = \"300kB\" }}\n[switch.ecn]\nkmin = \"{kmin}\"\n");
    racks(&head, &[(0, 4, "81920000B"), (1, 4, "81920000B")])
}

#[test]
fn two_flows_at_one_port_get_half_each_within_a_packet() {
    let text = at_one_port("300kB");
    let (fast, full) = (fast(&text), full(&text));
    assert_eq!(told(&fast), told(&full));
    assert!(fast.summary.fast.as_ref().unwrap().share() < 0.2, "{:?}", fast.summary.fast);
    let [one, two] = [0, 1].map(|m| times(&fast)[m][1]);
    assert!(one.abs_diff(two) <= 84_000, "{one} and {two}");
}

#[test]
fn a_queue_beyond_kmin_is_not_cut() {
    refused(&at_one_port("10kB"), "kmin");
}

#[test]
fn a_queue_that_grows_slowly_is_never_jumped() {
    // One packet of 4 KiB per millisecond more than the last link carries.
    let text = format!(
        "{HEAD}[topology.links]\nhosts = [\"a\", \"b\"]\nswitches = [\"s\"]\nrate = \"400Gbps\"\n\
         links = [[\"a\", \"s\"], [\"s\", \"b\", \"399966Mbps\"]]\n[[workload]]\n[workload.flows]\n\
         list = [{{ from = \"a\", to = \"b\", bytes = \"80MB\" }}]\n"
    );
    refused(&text, "does not repeat");
}

#[test]
fn a_loss_at_a_packet_is_drawn_as_in_the_full_run() {
    for loss in
        ["[links]\nloss = 1e-5\n", "[links]\nlose = [{ from = \"host0\", to = \"host4\", psns = [5000] }]\n"]
    {
        refused(&racks(loss, &[(0, 4, "40MB")]), "lose");
    }
}

#[test]
fn a_ring_leaves_out_most_of_each_step() {
    let text = format!(
        "{HEAD}[topology.leaf-spine]\nleaves = 1\nspines = 1\nhosts-per-leaf = 8\nrate = \"400Gbps\"\n[[workload]]\n\
         collective = {{ kind = \"all-reduce\", algorithm = \"ring\", bytes = \"320MB\", tuning = {{ channels = 1 }}, groups = \"all\" }}\n"
    );
    let (fast, full) = (fast(&text), full(&text));
    assert_eq!(told(&fast), told(&full));
    assert!(fast.summary.fast.as_ref().unwrap().share() < 0.5, "{:?}", fast.summary.fast);
}

/// Long flows, some of them at the same hosts, and rings, over a random fabric with random NICs.
fn random(key: Key) -> String {
    let pick = |ordinal: u64, of: &[&str]| of[below(key.draw(ordinal), of.len())].to_owned();
    let number = |ordinal: u64, least: usize, most: usize| least + below(key.draw(ordinal), most - least + 1);
    let (leaves, per_leaf) = (number(1, 1, 3), number(2, 2, 4));
    let hosts = leaves * per_leaf;
    let window =
        pick(3, &["", "window = \"bdp\"", "window = { bytes = \"150kB\" }", "window = { bytes = \"1MB\" }"]);
    let acks = pick(4, &["", "ack-every = 4", "ack-every = 16"]);
    let mut flows = Vec::new();
    for n in 0..number(5, 1, 5) as u64 {
        let (from, to) = (number(100 + n, 0, hosts - 1), number(200 + n, 1, hosts - 1));
        let (bytes, start) =
            (number(300 + n, 1, 60_000_000), number(400 + n, 0, 3) * number(500 + n, 0, 300));
        let to = (from + to) % hosts;
        flows.push(format!(
            "{{ from = \"host{from}\", to = \"host{to}\", bytes = \"{bytes}B\", start = \"{start}us\" }}"
        ));
    }
    let ring = "collective = { kind = \"all-reduce\", algorithm = \"ring\", bytes = \"100MB\", groups = \"all\", tuning = { channels = 1 } }";
    let work = match number(6, 0, 3) {
        0 => ring.to_owned(),
        1 => format!("permutation = {{ bytes = \"{}B\" }}", number(7, 17_000_000, 40_000_000)),
        _ => format!("[workload.flows]\nlist = [{}]", flows.join(", ")),
    };
    format!(
        "seed = {}\n[wire]\npayload = \"{}\"\n[switch]\npfc = {}\n[switch.ecn]\nkmin = \"{}\"\n\
         [nic]\n{window}\n{acks}\n[nic.transport.{}]\n[nic.congestion.{}]\n[scheme.ecmp]\n\
         [topology.leaf-spine]\nleaves = {leaves}\nspines = {}\nhosts-per-leaf = {per_leaf}\nrate = \"{}\"\n[[workload]]\n{work}\n",
        number(8, 1, 1000),
        pick(9, &["4KiB", "1KiB", "1437B"]),
        pick(10, &["{}", "\"off\""]),
        pick(11, &["100kB", "20kB", "400kB"]),
        pick(12, &["nic-sr", "go-back-n", "irn", "ideal", "adaptive-routing"]),
        pick(13, &["none", "dcqcn", "dcqcn", "dctcp", "swift"]),
        number(14, 1, 4),
        pick(15, &["400Gbps", "100Gbps", "73Gbps"]),
    )
}

/// `ROPEWALK_CUT_CASES=500` tries more.
#[test]
fn random_runs_of_long_flows_end_as_in_the_full_run() {
    let cases = std::env::var("ROPEWALK_CUT_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(12);
    let mut cut = 0;
    for case in 0..cases {
        let text = random(Key::new(case, Purpose::Workload, 78));
        let (fast, full) = (fast(&text), full(&text));
        assert_eq!(told(&fast), told(&full), "case {case}: {:?}\n{text}", fast.summary.fast);
        cut += u64::from(fast.summary.fast.is_some_and(|fast| fast.cuts > 0));
    }
    assert!(cut * 5 > cases, "{cut} of {cases} were cut");
}
