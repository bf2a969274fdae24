//! Claim: a listed packet is lost on its link as often as listed, equally in every engine, and the recovery mode
//! retransmits it.

use crate::lab::{agreed_on, lay, leaf_spine, total};
use engine::outcome::{Ending, Outcome};
use model::Time;

/// One message of 8 packets from host0 to host1 in another rack, without congestion control.
fn message(lose: &str, nic: &str) -> Outcome {
    let text = format!(
        "{}[nic]\ntimeout = {{ fixed = \"100us\" }}\n[nic.congestion.none]\n[nic.transport.{nic}]\n{lose}\n\
         [[workload]]\nflows = {{ list = [{{ from = \"host0\", to = \"host1\", bytes = \"11504B\" }}] }}\n",
        leaf_spine(2, 2, 1, "rate = \"100Gbps\"\ndelay = \"500ns\"")
    );
    let checked = lay(&text);
    let run = agreed_on(&checked, &text);
    assert_eq!((run.ending.clone(), run.data.accepted), (Ending::Finished, 8), "{text}");
    run
}

fn lose(more: &str) -> String {
    format!("[[links.lose]]\nfrom = \"host0\"\nto = \"host1\"\n{more}")
}

#[test]
fn a_listed_packet_is_lost_once_and_comes_back_by_a_nack() {
    let run = message(&lose("psns = [2]"), "nic-sr");
    assert_eq!((run.data.dropped_link, run.control.nack, run.data.retransmitted), (1, 1, 1));
    assert_eq!(run.control.timeout, 0);
    let run = message(&lose("psns = [2]"), "go-back-n");
    assert_eq!((run.data.dropped_link, run.control.nack, run.data.discarded), (1, 1, 5));
}

#[test]
fn a_retransmission_that_is_lost_too_waits_for_the_timer() {
    let run = message(&lose("psns = [2]\ntimes = 2"), "nic-sr");
    assert_eq!((run.data.dropped_link, run.control.nack, run.control.timeout), (2, 1, 1));
    assert!(run.end > Time::from_us(100));
}

#[test]
fn in_adaptive_routing_mode_a_loss_costs_a_timeout_and_no_nack() {
    let run = message(&lose("psns = [2]"), "adaptive-routing");
    assert_eq!((run.data.dropped_link, run.control.nack, run.control.timeout), (1, 0, 1));
    // The sender goes back to the gap, and the receiver drops the packets that it already has.
    assert_eq!(run.data.retransmitted, 1 + run.data.duplicate);
    // Both gaps are known to the receiver when the timer fires. The round trip is longer than the message, so one
    // timeout repairs both.
    let run = message(&lose("psns = [2, 5]"), "adaptive-routing");
    assert_eq!((run.data.dropped_link, run.control.timeout), (2, 1));
}

#[test]
fn a_window_of_two_packets_waits_at_every_gap() {
    let run = message(&lose("psns = [2, 5]"), "adaptive-routing]\nreorder-window = 2\n[record");
    assert_eq!((run.data.dropped_link, run.control.timeout, run.data.discarded), (2, 2, 0));
}

#[test]
fn replies_are_lost_by_their_own_psn() {
    // If the NACK of ePSN 2 is lost, only the timer helps. If the last ACK is lost, the duplicate that the timer
    // sends brings another ACK.
    let run = message(&(lose("psns = [2]\n") + &lose("psns = [2]\nkind = \"nack\"")), "nic-sr");
    assert_eq!((run.data.dropped_link, run.control.dropped, run.control.timeout), (1, 1, 1));
    let run = message(&lose("psns = [7]\nkind = \"ack\""), "nic-sr");
    assert_eq!((run.control.dropped, run.control.timeout, run.data.duplicate), (1, 1, 1));
}

#[test]
fn a_list_on_an_inner_link_applies_to_packets_that_cross_it() {
    // Under ECMP all packets take one of two spines, so one of the two lists applies to all packets and the other
    // to none.
    let through = |spine: &str| {
        let run = message(&lose(&format!("psns = [1, 3]\nlink = [\"leaf0\", \"{spine}\"]")), "nic-sr");
        assert_eq!(total(&run, |l| l.lost), run.data.dropped_link);
        run.data.dropped_link
    };
    let mut lost = [through("spine0"), through("spine1")];
    lost.sort_unstable();
    assert_eq!(lost, [0, 2]);
    // The last hop carries every packet.
    assert_eq!(message(&lose("psns = [1, 3]\nlink = [\"leaf1\", \"host1\"]"), "nic-sr").data.dropped_link, 2);
}

#[test]
fn every_pattern_of_losses_among_eight_packets_ends_with_delivery() {
    for nic in ["go-back-n", "nic-sr", "adaptive-routing", "ideal"] {
        for pattern in (1..256u32).step_by(7) {
            let psns: Vec<u32> = (0..8).filter(|bit| pattern >> bit & 1 != 0).collect();
            let run = message(&lose(&format!("psns = {psns:?}")), nic);
            assert_eq!(run.data.dropped_link, u64::from(pattern.count_ones()), "{nic}, {psns:?}");
        }
    }
}

#[test]
fn messages_back_to_back_start_when_the_one_before_is_acknowledged() {
    let text = format!(
        "{}[[workload]]\nqp = \"per-message\"\nback-to-back = {{ bytes = \"50kB\", messages = 5 }}\n\
         [[links.lose]]\nfrom = \"host0\"\nto = \"host3\"\npsns = [4]\n",
        leaf_spine(2, 2, 2, "")
    );
    let checked = lay(&text);
    let run = agreed_on(&checked, &text);
    assert!(run.messages.windows(2).all(|pair| pair[1].start == pair[0].acked));
    // PSNs of every queue pair start at 0, so every queue pair loses its PSN 4.
    assert_eq!((run.data.dropped_link, run.data.retransmitted), (5, 5));
}
