//! Claim: a receiver that pulls a packet for each one that arrives keeps a bounded number of packets in flight, and its link
//! busy. Lost packets and lost pulls cost time only.

use crate::lab::{agreed_on, lay, leaf_spine};
use engine::outcome::Outcome;

/// NDP's switch: headers first, queues of eight frames of 1500 B, and a coin that decides which packet is cut.
const SWITCH: &str =
    "[switch]\npfc = \"off\"\nbuffer = \"10MB\"\nqueue-cap = \"12kB\"\ncut = { victim = \"even\" }\n";

/// A NIC that answers every packet by an ACK, with this congestion control.
fn nic(control: &str) -> String {
    format!("[nic.transport.uec]\nack-bytes = \"1B\"\n[nic.congestion.{control}\n")
}

fn play(text: &str) -> Outcome {
    let run = agreed_on(&lay(text), text);
    assert_eq!(run.ending.name(), "finished", "{text}");
    run
}

/// Time in microseconds from the start of a flow in a rack at 100 Gb/s to the arrival of its last byte.
fn alone(bytes: u64, control: &str) -> f64 {
    let text = leaf_spine(1, 1, 2, "rate = \"100Gbps\"\ndelay = \"1us\"")
        + SWITCH
        + &nic(control)
        + &format!("[[workload]]\nincast = {{ senders = 1, bytes = \"{bytes}B\" }}\n");
    play(&text).messages[0].received.as_us()
}

/// Four links of 1 us and 100 Gb/s: the round trip of a packet of 1500 B and its ACK is 4.25 us, or 35 packets.
#[test]
fn one_sender_has_line_rate_if_its_first_window_covers_the_round_trip() {
    let time = |control: &str| alone(1_438_000, control);
    assert_eq!(time("ndp]\nfirst-window = 38"), time("none]"));
    // With 12 packets in flight, 1000 packets take 83 rounds and a third.
    let rounds = time("ndp]\nfirst-window = 12") / (4.25 * 1000.0 / 12.0);
    assert!((rounds - 1.0).abs() < 0.02, "{rounds}");
}

/// One packet, reply, header, pull or grant in five hundred is lost on every link.
#[test]
fn lost_packets_and_lost_pulls_cost_time_only() {
    for control in ["ndp]", "eqds]", "rccc]"] {
        let text = leaf_spine(4, 2, 4, "rate = \"100Gbps\"\ndelay = \"200ns\"")
            + SWITCH
            + &nic(control)
            + "[links]\nloss = 0.002\nlose-replies = true\n[nic]\ntimeout = { fixed = \"60us\" }\n[scheme.oblivious]\n\
               [[workload]]\nall-to-all = { per-pair = \"20kB\", groups = \"all\" }\n";
        let run = play(&text);
        assert!(run.data.cut > 100 && run.data.dropped_link > 0 && run.control.timeout > 0, "{:?}", run.data);
        assert_eq!(run.data.accepted, 16 * 15 * 14);
    }
}
