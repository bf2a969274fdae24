//! Claim: a NIC whose port is nearly full loses data in bursts of the length and at the share that its settings give, and none below its
//! threshold. The engines agree on the outcome.

use crate::lab::{agreed_on, lay, leaf_spine};
use engine::outcome::Outcome;

/// One flow of 20 MB at 100 Gb/s, whose sender goes back to each gap and never slows down for it.
fn flow(nic: &str) -> Outcome {
    let text = leaf_spine(1, 1, 2, "rate = \"100Gbps\"\ndelay = \"10ns\"")
        + &format!("[nic]\non-nack = \"none\"\non-timeout = \"none\"\n{nic}\n")
        + "[nic.transport.go-back-n]\nrenack-after-rewind = true\n[[workload]]\n"
        + "flows = { list = [{ from = \"host0\", to = \"host1\", bytes = \"20MB\" }] }\n";
    agreed_on(&lay(&text), nic)
}

fn counter(run: &Outcome, name: &str) -> u64 {
    run.counters.iter().find(|(counter, _)| *counter == name).map_or(0, |(_, count)| *count)
}

/// Losses of a port that takes in more than this rate.
fn above(gbps: f64) -> String {
    format!("ingress = {{ above = \"{gbps}Gbps\", loss = 0.2, burst = 4, interval = \"10us\" }}")
}

#[test]
fn a_lone_flow_loses_the_share_that_was_asked_for_in_bursts_of_the_length_that_was_asked_for() {
    let run = flow(&format!("{}\n[nic.congestion.none]", above(94.0)));
    let (lost, bursts) = (counter(&run, "ingress_losses"), counter(&run, "ingress_bursts"));
    // A burst is over when the sender waits for its timer.
    assert!(lost <= 4 * bursts && lost + run.control.timeout >= 4 * bursts, "{lost} in {bursts} bursts");
    // Three standard deviations of some 4900 bursts are 4.3 %.
    let share = lost as f64 / run.data.sent as f64;
    assert!(bursts > 4000 && (share / 0.2 - 1.0).abs() < 0.045, "{share} in {bursts} bursts");
    assert_eq!((run.data.dropped_buffer, run.data.dropped_link), (0, 0));
}

#[test]
fn a_flow_below_the_threshold_loses_nothing() {
    let slow = "[nic.congestion.dcqcn]\nmax-rate = \"90Gbps\"";
    let (run, free) = (flow(&format!("{}\n{slow}", above(94.0))), flow(slow));
    assert_eq!((run.data.discarded, &run.messages), (0, &free.messages));
    let full = flow(&format!("{}\n[nic.congestion.none]", above(101.0)));
    assert_eq!(full.data.discarded, 0, "no port gets more than its line rate, and one frame per interval");
}
