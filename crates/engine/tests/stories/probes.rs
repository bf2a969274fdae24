//! Claim: where switches drop data without a word, a sender's probes find the losses long before its timers.

use crate::lab::{agreed_on, lay};
use engine::Outcome;

/// Twelve senders at line rate send 200 kB each to one host. Its switch holds ten frames and drops the rest, so most of the
/// first windows is lost, and too little arrives behind the losses to infer them from data alone.
fn incast(infer: bool, more: &str) -> Outcome {
    let text = format!(
        "[topology.leaf-spine]\nleaves = 1\nspines = 1\nhosts-per-leaf = 13\nrate = \"100Gbps\"\n\
         [wire]\nframe = \"4158B\"\n[switch]\npfc = \"off\"\nqueue-cap = \"41700B\"\n\
         [nic]\ntimeout = {{ fixed = \"500us\" }}\n[nic.transport.uec]\ninfer-loss = {infer}\n\
         [nic.congestion.nscc]\n{more}\n[[workload]]\nincast = {{ senders = 12, bytes = \"200kB\" }}\n"
    );
    let run = agreed_on(&lay(&text), &text);
    assert_eq!(run.data.accepted, 12 * 49, "every packet once");
    run
}

fn last(run: &Outcome) -> u64 {
    run.messages.iter().map(|message| message.acked.ps()).max().unwrap() / 1_000_000
}

#[test]
fn probes_end_an_incast_that_would_wait_for_timers() {
    let (waits, probes) = (incast(false, ""), incast(true, ""));
    assert!(waits.control.probes == 0 && waits.control.timeout > 0);
    assert!(probes.control.probes > 0);
    // All bytes at line rate take 196 us.
    assert!(last(&waits) > 500 && last(&probes) < 400, "{} us, {} us", last(&waits), last(&probes));
}

/// Twelve first windows wait behind each other for several round trips, so senders get no ACK for three, and probe. Their
/// probes wait behind the data, and tell that it is on its way: whoever asked past the queue would send it all again.
#[test]
fn a_long_queue_that_loses_nothing_is_not_taken_for_a_loss() {
    let deep = |classes: &str| {
        let text = format!(
            "[topology.leaf-spine]\nleaves = 1\nspines = 1\nhosts-per-leaf = 13\nrate = \"100Gbps\"\n\
             [wire]\nframe = \"4158B\"\n[switch]\npfc = \"off\"\nqueue-cap = \"3MB\"\n{classes}\n\
             [nic]\ntimeout = {{ fixed = \"500us\" }}\n[nic.transport.uec]\ninfer-loss = true\n\
             [nic.congestion.nscc]\n[[workload]]\nincast = {{ senders = 12, bytes = \"200kB\" }}\n"
        );
        agreed_on(&lay(&text), &text)
    };
    let run = deep("");
    assert_eq!((run.data.accepted, run.data.retransmitted), (12 * 49, 0));
    assert!(run.control.probes > 0);
    // Operators may let probes leave before data, as other control messages.
    let first = "{ kinds = [\"ack\", \"nack\", \"cnp\", \"control\", \"probe\"] }";
    let run = deep(&format!("classes = [{first}, {{ kinds = [\"data\"] }}]"));
    assert!(run.data.spurious > 0 && run.data.dropped_buffer == 0);
}

#[test]
fn lost_probes_and_lost_answers_are_followed_by_others() {
    let run = incast(true, "[links]\nloss = 0.02\nlose-replies = true");
    assert!(run.control.probes > 0 && run.control.dropped > 0);
}
