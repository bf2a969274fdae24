//! Claim: a switch whose packets take whole cells pauses a port, and drops, at the cell that the law of its buffer gives; slices,
//! guarantees and shared headroom hold, and all engines agree.

use crate::lab::{agreed_on, lay, total};
use engine::Outcome;

/// Two hosts send `packets` packets each to a third one, which is as fast: a packet waits for each that has come. Frames have 1,500 B.
fn two_to_one(packets: u64, delay: &str, switch: &str) -> String {
    format!(
        "[topology.links]\nhosts = 4\nswitches = [\"s0\"]\nlinks = [\n[\"host0\", \"s0\", \"100Gbps\", \"{delay}\"], \
         [\"host1\", \"s0\", \"100Gbps\", \"{delay}\"],\n[\"host2\", \"s0\", \"100Gbps\", \"{delay}\"], \
         [\"host3\", \"s0\", \"100Gbps\", \"{delay}\"]]\n[wire]\nframe = \"1500B\"\n[switch]\necn = \"off\"\n{switch}\n[scheme.ecmp]\n\
         [nic.congestion.none]\n[[workload]]\nflows = {{ list = [{{ from = \"host0\", to = \"host2\", bytes = \"{0}B\" }}, {{ from = \"host1\", to = \"host2\", bytes = \"{0}B\" }}] }}\n",
        packets * 1_438
    )
}

/// The least number of packets of each sender with which something happens.
fn first(most: u64, happens: impl Fn(u64) -> bool) -> u64 {
    let (mut no, mut yes) = (0, most);
    assert!(happens(most), "it never happens");
    while yes - no > 1 {
        let middle = no.midpoint(yes);
        if happens(middle) { yes = middle } else { no = middle }
    }
    yes
}

/// The law: packets of six cells that one of `holders` ports of a slice holds when it is paused.
fn law(pool: u64, slices: u64, guarantee: u64, (num, den): (u64, u64), holders: u64) -> u64 {
    (pool / slices * num / (den + holders * num) + guarantee) / (6 * 254)
}

#[test]
fn a_two_to_one_run_is_first_paused_where_the_law_says() {
    // Ports 0 and 1 send. With two slices they share the first one.
    for (slices, alpha, guarantee, holders) in
        [(1, (1, 1), 0, 2), (2, (1, 1), 2_540, 2), (2, (1, 4), 18_796, 2), (4, (2, 1), 1_000, 1)]
    {
        let switch = format!(
            "buffer = \"2MB\"\ncell = \"254B\"\nslices = {slices}\nguarantee = \"{guarantee}B\"\n\
             pfc = {{ alpha = \"{}/{}\", xon-offset = \"3556B\", headroom = {{ xoff = \"300kB\" }} }}",
            alpha.0, alpha.1
        );
        let run = |packets| agreed_on(&lay(&two_to_one(packets, "1us", &switch)), &switch);
        let paused = |run: &Outcome| total(run, |link| link.pauses) > 0;
        let packets = first(3_000, |packets| paused(&run(packets)));
        // When each sender has sent so many packets, half of them have left.
        let held = packets / 2;
        let expected = law(2_000_000, slices, guarantee, alpha, holders);
        assert!(held.abs_diff(expected) <= 2, "{switch}: {held} packets, not {expected}");
        let calm = run(packets - 1);
        assert_eq!((calm.control.pause, calm.data.dropped_buffer), (0, 0));
    }
}

#[test]
fn a_two_to_one_run_first_drops_where_the_law_says() {
    // The pause comes too late for senders 200 us away: they have sent all.
    let switch = "buffer = \"2MB\"\ncell = \"254B\"\nslices = 2\nguarantee = \"2540B\"\n\
                  pfc = { alpha = \"1/4\", headroom = { xoff = \"152400B\" } }";
    let run = |packets| agreed_on(&lay(&two_to_one(packets, "200us", switch)), switch);
    let packets = first(1_500, |packets| run(packets).data.dropped_buffer > 0);
    let expected = law(2_000_000, 2, 2_540, (1, 4), 2) + 152_400 / (6 * 254);
    assert!((packets / 2).abs_diff(expected) <= 2, "{} packets, not {expected}", packets / 2);
    assert_eq!(run(packets).broke_lossless.len(), 1, "the run names the switch");
}

#[test]
fn with_the_headroom_of_the_rule_no_packet_is_lost() {
    for (cell, rate) in [(192, "400Gbps"), (254, "400Gbps"), (420, "800Gbps")] {
        let switch =
            format!("buffer = \"200kB\"\ncell = \"{cell}B\"\npfc = {{ headroom = {{ xoff = \"auto\" }} }}");
        let text = two_to_one(2_000, "750ns", &switch).replace("100Gbps", rate);
        let run = agreed_on(&lay(&text), &text);
        assert!(run.control.pause > 0 && run.control.pause == run.control.resume);
        assert_eq!((run.data.dropped_buffer, run.violations.len()), (0, 0));
    }
}

#[test]
fn frames_of_a_byte_more_than_a_cell_take_two_and_are_paused_sooner() {
    let pauses = |cell: &str| {
        let switch = format!("buffer = \"1MB\"\n{cell}\npfc = {{ headroom = {{ xoff = \"300kB\" }} }}");
        let text = two_to_one(120, "1us", &switch);
        total(&agreed_on(&lay(&text), &text), |link| link.pauses)
    };
    assert_eq!((pauses(""), pauses("cell = \"1500B\"")), (0, 0));
    assert!(pauses("cell = \"1499B\"") > 0, "3 kB a packet");
}

#[test]
fn a_port_that_averages_marks_a_lasting_queue_and_spares_a_burst() {
    let marks = |packets: u64, weight: u8| {
        let ecn = format!("ecn = {{ weight = {weight}, kmin = \"30kB\", kmax = \"30kB\", pmax = 1 }}");
        let text = two_to_one(packets, "1us", "").replace("ecn = \"off\"", &ecn);
        total(&agreed_on(&lay(&text), &text), |link| link.marks)
    };
    // A burst: 60 packets of 1.5 kB wait at most. Its average over 2^10 packets stays below 30 kB.
    assert!(marks(60, 0) > 40);
    assert_eq!(marks(60, 10), 0);
    assert!(marks(3_000, 10) > 1_000, "a queue that lasts");
}

/// NCCL sends DSCP 0, and SONiC has 3 and 4 in its lossless classes.
#[test]
fn a_job_with_nccls_dscp_loses_packets_on_sonics_classes() {
    let run = |dscp: u8| {
        let switch = "buffer = \"1MB\"\ndscp-map = \"sonic\"";
        let text = two_to_one(1_000, "1us", switch).replace("[nic.", &format!("[nic]\ndscp = {dscp}\n[nic."));
        agreed_on(&lay(&text), &text)
    };
    let (lossy, lossless) = (run(0), run(3));
    assert!(lossy.data.dropped_buffer > 0 && lossy.control.pause == 0);
    assert!(lossless.data.dropped_buffer == 0 && lossless.control.pause > 0);
}
