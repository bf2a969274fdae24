//! Claim: a fast run that leaves out the middle of long messages ends each message at the picosecond at which it would have ended, and
//! sends what it cannot leave out exactly.

use engine::Kind;
use lab::fast::{Leave, run_on};
use lab::{Progress, Run};
use scenario::{Resolved, Source};
use std::sync::atomic::AtomicBool;

const HEAD: &str = "[wire]\npayload = \"4KiB\"\n[scheme.ecmp]\n";

/// Two racks of four hosts, all links at 400 Gb/s, and messages of so many bytes between named hosts.
fn racks(head: &str, flows: &[(usize, usize, &str)]) -> String {
    let list: Vec<String> = flows
        .iter()
        .map(|(from, to, bytes)| format!("{{ from = \"host{from}\", to = \"host{to}\", bytes = \"{bytes}\" }}"))
        .collect();
    format!(
        "{head}\n{HEAD}[topology.leaf-spine]\nleaves = 2\nspines = 4\nhosts-per-leaf = 4\nrate = \"400Gbps\"\n\
         [[workload]]\n[workload.flows]\nlist = [{}]\n",
        list.join(", ")
    )
}

fn fast_on(text: &str, kind: Kind) -> Run {
    let stop = AtomicBool::new(false);
    let resolved = Resolved::of(&Source::new("cut.toml", text), &[]).unwrap_or_else(|e| panic!("{e}\n{text}"));
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

/// Packets sent, and why nothing was left out.
fn sent(run: &Run) -> (u64, String) {
    let fast = run.summary.fast.as_ref().unwrap();
    assert_eq!(fast.cuts == 0, fast.reason.is_some(), "{fast:?}");
    (fast.sent, fast.reason.clone().unwrap_or_default())
}

#[test]
fn one_flow_takes_its_closed_form_from_a_megabyte_to_a_terabyte() {
    for bytes in ["1MB", "20MB", "1GB", "1000000000001B", "1TB"] {
        let run = fast(&racks("", &[(0, 4, bytes)]));
        assert_eq!(run.outcome.messages[0].acked, run.ideal[0], "{bytes}");
        assert_eq!(run.outcome.end, run.ideal[0]);
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
        ("[nic.congestion.none]", vec![(0, 4, "40MB"), (1, 2, "30MB"), (5, 3, "80MB")]),
        ("[nic]\nack-every = 4", vec![(0, 4, "40MB")]),
    ] {
        let text = racks(head, &flows);
        let (fast, full) = (fast(&text), full(&text));
        assert_eq!(times(&fast), times(&full), "{text}");
        assert_eq!(fast.outcome.end, full.outcome.end);
        let bytes = |run: &Run| run.outcome.messages.iter().map(|m| m.wire_bytes).collect::<Vec<_>>();
        assert_eq!(bytes(&fast), bytes(&full));
        let books = fast.summary.fast.unwrap();
        assert!(books.share() < 0.5, "{text}{books:?}");
    }
}

#[test]
fn dbg() {
    for bytes in ["40960001B", "4096001B","4097B","8193B","409600B"] {
        let run = full(&racks("", &[(0, 4, bytes)]));
        eprintln!("{bytes} {:?} {:?}", run.outcome.messages[0], run.ideal[0]);
    }
}
