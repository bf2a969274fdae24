//! Claim: where receivers send the headers of cut packets back, every cut packet is sent again once per cut. Messages complete
//! by the count of their packets, whatever is cut or lost, and in any order of arrival.

use crate::lab::{agreed_on, lay, leaf_spine};
use engine::outcome::Outcome;

/// Classes: all control before data; headers and ACKs in turn with data; a queue for two dozen headers, and ACKs that may be
/// dropped with data.
const CLASSES: [&str; 3] = [
    "\"strict\"",
    "[{ kinds = [\"trimmed\", \"control\", \"cnp\", \"ack\"], weight = 1 }, { kinds = [\"data\"], weight = 1 }]",
    "[{ kinds = [\"trimmed\", \"control\", \"cnp\"], weight = 1, cap = \"1400B\" }, { kinds = [\"data\", \"ack\"], weight = 3 }]",
];

/// Sixteen hosts, each of which sends 20 kB to all others, on a fabric that cuts packets everywhere.
fn everywhere(classes: &str, scheme: &str, keys: &str) -> String {
    leaf_spine(4, 2, 4, "rate = \"100Gbps\"\ndelay = \"200ns\"")
        + &format!(
            "[switch]\npfc = \"off\"\nbuffer = \"1MB\"\nqueue-cap = \"8kB\"\nqueue-cap-to-hosts = \"4kB\"\n\
             cut = {{ frame = \"57B\" }}\nclasses = {classes}\n[scheme.{scheme}]\n{keys}\n\
             [[workload]]\nall-to-all = {{ per-pair = \"20kB\", groups = \"all\" }}\n"
        )
}

fn play(text: &str) -> Outcome {
    let run = agreed_on(&lay(text), text);
    assert_eq!(run.ending.name(), "finished", "{text}");
    let inside = run.data.cut - run.data.cut_last_hop;
    assert!(inside > 10 && run.data.cut_last_hop > 0, "{:?}\nin {text}", run.data);
    run
}

#[test]
fn every_cut_packet_is_sent_again_once_per_cut() {
    for classes in &CLASSES[..2] {
        for (scheme, victim) in [("ar", "arriving"), ("rps", "even")] {
            for control in ["none", "dcqcn", "nscc"] {
                let keys = format!("[nic.transport.dcp]\n[nic.congestion.{control}]");
                let frame = format!("57B\", victim = \"{victim}");
                let run = play(&everywhere(classes, scheme, &keys).replace("57B", &frame));
                assert_eq!(run.data.headers_lost, 0);
                assert_eq!((run.data.retransmitted, run.control.returned), (run.data.cut, run.data.cut));
                assert_eq!((run.control.timeout, run.data.duplicate, run.control.nack), (0, 0, 0));
            }
        }
    }
}

#[test]
fn only_whole_messages_are_acknowledged_unless_a_window_needs_more() {
    let acks = |keys: &str| {
        play(&everywhere(CLASSES[1], "ar", &format!("{keys}\n[nic.congestion.none]"))).control.ack
    };
    assert_eq!(acks("[nic.transport.dcp]"), 16 * 15);
    // Twenty kilobytes are fourteen packets.
    let halves = acks("[nic.transport.dcp]\nmessage-packets = 7");
    assert!((470..=480).contains(&halves), "an ACK may cover both halves: {halves}");
    assert_eq!(acks("[nic]\nwindow = { bytes = \"5kB\" }\n[nic.transport.dcp]"), 14 * 16 * 15);
}

/// One packet, reply or header in a thousand is lost on every link, and headers are lost for lack of room.
#[test]
fn every_byte_arrives_once_through_cuts_losses_and_lost_headers() {
    for classes in CLASSES {
        for control in ["none", "dcqcn", "nscc"] {
            let keys = format!(
                "[links]\nloss = 0.001\nlose-replies = true\n[nic]\ntimeout = {{ fixed = \"100us\" }}\non-timeout = \"none\"\n\
                 [nic.transport.dcp]\n[nic.congestion.{control}]"
            );
            let run = play(&everywhere(classes, "rps", &keys));
            assert!(run.data.dropped_link > 0 && run.control.timeout > 0, "{:?}", run.data);
            assert_eq!(run.data.accepted, 16 * 15 * 14);
        }
    }
}

/// The first message loses one packet, and the messages behind it arrive meanwhile. Only the first is sent anew.
#[test]
fn a_lost_packet_costs_a_timeout_and_its_message() {
    let list = "{ from = \"host0\", to = \"host1\", bytes = \"14380B\" }, ".repeat(3);
    let text = leaf_spine(1, 1, 2, "")
        + "[nic.transport.dcp]\n[nic.congestion.none]\n[[links.lose]]\nfrom = \"host0\"\nto = \"host1\"\n\
           psns = [4]\n"
        + &format!("[[workload]]\nflows = {{ list = [{list}] }}\n");
    let run = agreed_on(&lay(&text), &text);
    assert_eq!((run.control.timeout, run.data.retransmitted, run.data.duplicate), (1, 10, 9));
    let received: Vec<_> = run.messages.iter().map(|message| message.received).collect();
    assert!(received.iter().all(|at| *at == received[0]), "messages complete in order: {received:?}");
    assert!(received[0].as_us() > 1000.0, "the timer is coarse: {received:?}");
}
