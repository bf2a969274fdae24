//! Claim: one flow on an idle fabric takes its closed-form time, to the picosecond. Every packet is sent when the
//! NIC has finished the one before, is stored and forwarded at every hop, and is acknowledged.

use crate::lab::{agreed_on, lay};
use engine::outcome::Ending;
use model::{HostId, Time, Wire};

/// Hosts `a` and `b` with `switches` between them in a row; all links are equal.
fn row(switches: usize, rate: &str, delay: &str, bytes: u64, more: &str) -> String {
    let names: Vec<String> = (0..switches).map(|s| format!("s{s}")).collect();
    let nodes: Vec<&str> = ["a"].into_iter().chain(names.iter().map(String::as_str)).chain(["b"]).collect();
    let links: Vec<[&str; 2]> = nodes.windows(2).map(|pair| [pair[0], pair[1]]).collect();
    format!(
        "{more}\n[topology.links]\nhosts = [\"a\", \"b\"]\nswitches = {names:?}\nrate = \"{rate}\"\ndelay = \"{delay}\"\n\
         links = {links:?}\n[[workload]]\n[workload.flows]\nlist = [{{ from = \"a\", to = \"b\", bytes = \"{bytes}B\" }}]\n"
    )
}

/// Arrival of a message's last byte at the receiver, and of its ACK at the sender, ps.
#[derive(Debug, PartialEq)]
struct Arrivals {
    last_byte: u64,
    ack: u64,
}

/// The expected arrivals, by an independent recursion.
///
/// `at[i]` is the time at which packet i has fully arrived at a node. The packet leaves when it has arrived and the
/// packet before it has left.
fn expected_times(wire: &Wire, hops: usize, bps: u64, delay: u64, bytes: u64) -> Arrivals {
    // Transmission time in ps, including preamble and gap (20 B), rounded to the nearest.
    let time = |frame: u64| {
        let bits = u128::from(frame + u64::from(wire.gap)) * 8;
        ((bits * 1_000_000_000_000 * 2 + u128::from(bps)) / (2 * u128::from(bps))) as u64
    };
    let payload = u64::from(wire.max_frame()) - 62;
    let packets = bytes.div_ceil(payload);
    let size = |i: u64| (62 + payload.min(bytes - i * payload)).max(64);
    let mut at: Vec<u64> = vec![0; packets as usize];
    for _ in 0..hops {
        let mut free = 0;
        for (i, at) in at.iter_mut().enumerate() {
            free = free.max(*at) + time(size(i as u64));
            *at = free + delay;
        }
    }
    let last_byte = at[packets as usize - 1];
    for _ in 0..hops {
        let mut free = 0;
        for at in &mut at {
            free = free.max(*at) + time(66);
            *at = free + delay;
        }
    }
    Arrivals { last_byte, ack: at[packets as usize - 1] }
}

/// Runs one flow on both engines; returns the arrival of its last byte and of its ACK.
fn alone(text: &str) -> Arrivals {
    let checked = lay(text);
    let run = agreed_on(&checked, text);
    let m = run.messages[0];
    assert_eq!((m.start, m.retransmitted, run.end), (Time::ZERO, 0, m.acked));
    let ideal =
        scenario::ideal::ideal_fct(&checked.plan, HostId(0), HostId(1), checked.plan.messages[0].bytes);
    assert_eq!(m.acked, ideal, "the ideal FCT of the slowdown; in: {text}");
    Arrivals { last_byte: m.received.ps(), ack: m.acked.ps() }
}

const SIZES: [u64; 9] = [1, 2, 3, 1_437, 1_438, 1_439, 4_097, 100_000, 3_000_001];

#[test]
fn one_flow_takes_its_closed_form_time() {
    // At 73 Gb/s no frame takes a whole number of picoseconds.
    for (rate, bps) in
        [("100Gbps", 100), ("200Gbps", 200), ("400Gbps", 400), ("800Gbps", 800), ("73Gbps", 73)]
    {
        for switches in [1, 3] {
            for frame in [1500, 4158] {
                for bytes in SIZES {
                    let text = row(switches, rate, "1us", bytes, &format!("wire.frame = \"{frame}B\""));
                    let expected = expected_times(
                        &Wire::roce(frame),
                        switches + 1,
                        bps * 1_000_000_000,
                        1_000_000,
                        bytes,
                    );
                    assert_eq!(alone(&text), expected, "{text}");
                }
            }
        }
    }
}

#[test]
fn the_closed_form_holds_for_short_links_long_links_and_a_single_cable() {
    for (delay, ps) in [("1ps", 1), ("17ns", 17_000), ("50us", 50_000_000), ("5ms", 5_000_000_000)] {
        for switches in [0, 1, 2] {
            for bytes in [1, 50_000] {
                let text =
                    row(switches, "400Gbps", delay, bytes, "nic.timeout = \"none\"\nswitch.pfc = \"off\"");
                let expected = expected_times(&Wire::roce(1500), switches + 1, 400_000_000_000, ps, bytes);
                assert_eq!(alone(&text), expected, "{text}");
            }
        }
    }
}

#[test]
fn settings_that_an_idle_fabric_never_uses_change_nothing() {
    // Settings that do not affect a single flow on an idle fabric. In one class, replies meet no data.
    let text = row(3, "400Gbps", "1us", 200_000, "");
    let expected = alone(&text);
    for more in [
        "switch.pfc = \"off\"",
        "switch.classes = \"one\"",
        "nic.transport.go-back-n = {}",
        "nic.congestion.none = {}",
        "scheme.themis = {}",
        "scheme.drill = {}",
    ] {
        assert_eq!(alone(&row(3, "400Gbps", "1us", 200_000, more)), expected, "{more}");
    }
}

/// An all-to-all of 2 B among six hosts has empty messages, and no other frames are as small as theirs.
#[test]
fn empty_messages_are_no_faster_than_a_window() {
    let text = "topology = { links = { hosts = 6, switches = [\"s0\", \"s1\", \"s2\"], rate = \"1Gbps\", links = [\n\
                [\"host0\", \"s0\"], [\"host1\", \"s0\"], [\"host2\", \"s2\", \"100Gbps\"], [\"host3\", \"s0\"],\n\
                [\"host4\", \"s1\", \"100Gbps\"], [\"host5\", \"s1\"], [\"host5\", \"s1\"], [\"host5\", \"s0\"],\n\
                [\"s1\", \"s0\", \"1Gbps\", \"3us\"], [\"s0\", \"s1\"], [\"s2\", \"s1\"]] } }\n\
                workload = [{ all-to-all = { bytes = \"2B\", groups = \"all\" } }]\n\
                switch = { pfc = \"off\" }\ncompat = \"ns3\"\n";
    assert_eq!(agreed_on(&lay(text), text).ending, Ending::Finished);
}

#[test]
fn the_ns3_family_has_its_own_numbers() {
    // Figures from runs of that family: 1000 B payload, 48 B of headers, four links of 100 Gb/s and 1 us.
    for (bytes, ns) in [(10_000_000, 838_265), (1_000, 8_348)] {
        // A rate-paced sender at line rate also uses the truncating clock: 1048 B take 83 ns, not 83.84.
        for congestion in ["none", "dcqcn"] {
            let more = format!("compat = \"ns3\"\nswitch.ecn = \"off\"\nnic.congestion.{congestion} = {{}}");
            let Arrivals { ack: acked, .. } = alone(&row(3, "100Gbps", "1us", bytes, &more));
            assert_eq!(Time(acked), Time::from_ns(ns), "{congestion}");
        }
    }
}

#[test]
fn a_sender_is_done_when_its_last_frame_has_left() {
    // A frame with 1438 B of payload takes 30.4 ns, one with the last byte 1.68 ns.
    let checked = lay(&row(1, "400Gbps", "1us", 1_439, ""));
    let run = agreed_on(&checked, "two packets");
    assert_eq!(run.messages[0].last_sent, Time(30_400 + 1_680));
    assert_eq!(run.messages[0].wire_bytes, 1_520 + 84);
}
