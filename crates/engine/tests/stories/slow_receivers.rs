//! Claim: a NIC whose host takes data slowly pauses its link, one hop away, or discards what does not fit; data moves at the rate
//! at which the host takes it. The engines agree on the outcome.

use crate::lab::{agreed_on, lay, leaf_spine, total};
use crate::servers::planes;
use engine::outcome::{Ending, Outcome};
use model::{HostId, Plan, Time};

/// One flow of 4 MB, in packets of 1500 B, beside a flow to another host of the same rack.
fn flow(receive: &str, more: &str) -> (Plan, Outcome) {
    let text = leaf_spine(2, 2, 3, "rate = \"100Gbps\"\ndelay = \"1us\"")
        + &format!("[nic]\n{receive}\n[nic.congestion.none]\n{more}\n[[workload]]\n")
        + "flows = { list = [{ from = \"host0\", to = \"host3\", bytes = \"4MB\" }, \
           { from = \"host1\", to = \"host4\", bytes = \"4MB\" }] }\n";
    let checked = lay(&text);
    let run = agreed_on(&checked, &text);
    (checked.plan, run)
}

/// Bytes of the flow.
const FLOW: u64 = 4_000_000;

#[test]
fn a_nic_that_pauses_gets_data_as_fast_as_its_host_takes_it_and_pauses_one_hop_away() {
    for (rate, bps) in [("40Gbps", 40), ("10Gbps", 10)] {
        let receive = format!("receive = {{ rate = \"{rate}\", buffer = \"100kB\", hosts = [\"host3\"] }}");
        let (plan, run) = flow(&receive, "[switch]\nbuffer = \"100MB\"");
        let (_, free) = flow("", "");
        // When the last packet arrives, at most the buffer is left to take, and what came after the pause.
        let all = FLOW * 8_000 / bps;
        let left = 140_000 * 8_000 / bps;
        let took = run.messages[0].received.ps();
        assert!(took > all - left && took < all + 20_000_000, "{rate}: {took}, {all}");
        assert_eq!(run.messages[1].received, free.messages[1].received, "another host of the rack");
        assert!(run.control.pause > 0 && run.data.discarded == 0 && run.data.retransmitted == 0);
        for (link, record) in plan.fabric.links().iter().zip(&run.links) {
            let to_receiver = link.to == plan.fabric.node_of(HostId(3));
            assert_eq!(record.pauses > 0, to_receiver, "{link:?}");
        }
    }
}

#[test]
fn a_nic_that_does_not_pause_discards_and_its_sender_repeats() {
    let receive = "receive = { rate = \"80Gbps\", buffer = \"100kB\", pause = false, hosts = [\"host3\"] }";
    let (_, run) = flow(receive, "[switch]\npfc = \"off\"");
    assert_eq!(run.ending, Ending::Finished);
    let discards = run.counters.iter().find(|(name, _)| *name == "receive_discards").map(|c| c.1);
    assert!(discards.is_some_and(|n| n > 0 && n <= run.data.discarded), "{discards:?}");
    assert_eq!((run.data.dropped_buffer, run.control.pause), (0, 0));
    assert!(run.messages[0].received > Time((FLOW - 100_000) * 100), "{}", run.messages[0].received);
}

#[test]
fn a_host_that_takes_data_at_the_rate_of_its_link_changes_nothing() {
    let (_, fast) = flow("receive = { rate = \"100Gbps\", buffer = \"3kB\" }", "");
    let (_, free) = flow("", "");
    assert_eq!(fast.messages, free.messages);
    assert_eq!(fast.control.pause, 0);
}

/// Payload per second of one flow of 4 MB, in Gb/s, between its start and the arrival of its last packet.
fn goodput(run: &Outcome) -> f64 {
    let message = &run.messages[0];
    (FLOW * 8) as f64 / (message.received.since(message.start).as_us() * 1000.0)
}

#[test]
fn a_flow_is_as_fast_as_the_narrower_of_link_and_pcie() {
    // Links of 100 Gb/s carry 94.5 Gb/s of payload in packets of 1,438 B.
    let link = goodput(&flow("", "").1);
    let cases = [
        ("rate = \"96Gbps\"", link),
        ("rate = \"384Gbps\", gdr = false", link),
        ("rate = \"48Gbps\"", 48.0),
        ("rate = \"48Gbps\", hosts = [\"host0\"]", 48.0),
    ];
    for (pcie, limit) in cases {
        let got = goodput(&flow(&format!("pcie = {{ {pcie} }}"), "").1);
        assert!((got / limit - 1.0).abs() < 0.01, "{pcie}: {got} of {limit}");
    }
    // The last 256 kB, and what came after the pause, wait in the receiver's NIC when the flow has arrived.
    let got = goodput(&flow("pcie = { rate = \"48Gbps\", hosts = [\"host3\"] }", "").1);
    assert!(got > 48.0 && got < 48.0 * 4.0 / 3.7, "{got}");
}

#[test]
fn a_nic_pauses_all_its_ports() {
    let work = "[[workload]]\nflows = { list = [{ from = \"s0g0p0\", to = \"s4g0p0\", bytes = \"4MB\" }] }\n";
    let text = planes("mrc", "receive.rate = \"100Gbps\"\n[nic.transport.mrc]\n[nic.congestion.none]", work)
        .replace(
            "pfc = \"off\"\ncut = \"on\"\nqueue-cap = \"30kB\"\nqueue-cap-to-hosts = \"40kB\"",
            "pfc = \"on\"",
        );
    let run = agreed_on(&lay(&text), &text);
    assert!(run.control.pause > 0 && run.control.pause.is_multiple_of(4), "{}", run.control.pause);
    assert!(run.messages[0].received > Time((FLOW - 500_000) * 80), "{}", run.messages[0].received);
    assert_eq!(total(&run, |link| link.drops), 0);
}
