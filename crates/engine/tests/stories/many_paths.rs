//! Claim: flowlets switch paths in their pauses, flowcells take paths in turns, and MP-RDMA follows its ACKs.

use crate::lab::{agreed_on, lay};
use engine::Outcome;
use scenario::Checked;

fn counter(run: &Outcome, name: &str) -> u64 {
    run.counters.iter().find(|(n, _)| *n == name).map_or(0, |c| c.1)
}

/// Two paths from a to b: over m0 in 1 us, and over m1 in `other`, each as fast as a's own link. `keys` adds tables
/// to the scenario.
fn two_paths(other: &str, keys: &str) -> (Checked, Outcome) {
    let text = format!(
        "[topology.links]\nhosts = [\"a\", \"b\", \"c\", \"d\"]\nswitches = [\"s\", \"m0\", \"m1\", \"t\"]\n\
         rate = \"100Gbps\"\nlinks = [[\"a\", \"s\"], [\"s\", \"m0\"], [\"s\", \"m1\"], [\"m0\", \"t\"],\n\
         [\"m1\", \"t\", \"100Gbps\", \"{other}\"], [\"t\", \"b\", \"400Gbps\"], [\"c\", \"m1\", \"90Gbps\"],\n\
         [\"t\", \"d\"]]\n{keys}"
    );
    let checked = lay(&text);
    let run = agreed_on(&checked, &text);
    (checked, run)
}

/// Bytes sent from one node to a neighbour.
fn bytes(checked: &Checked, run: &Outcome, from: &str, to: &str) -> u64 {
    let fabric = &checked.plan.fabric;
    let (from, to) = (fabric.find(from).unwrap(), fabric.find(to).unwrap());
    let port = fabric.ports(from).iter().position(|l| l.to == to).unwrap();
    run.links[fabric.base(from) as usize + port].bytes
}

/// The share of a's bytes that took m1.
fn share(checked: &Checked, run: &Outcome) -> f64 {
    let over = |m| bytes(checked, run, "s", m) as f64;
    over("m1") / (over("m0") + over("m1"))
}

/// Forty messages of ten packets, 1.2 us each, from a to b, at intervals of `apart` microseconds.
fn bursts(apart: u32) -> String {
    let list: String = (0..40)
        .map(|i| format!("{{ from = \"a\", to = \"b\", bytes = \"14380B\", start = \"{}us\" }},", i * apart))
        .collect();
    format!(
        "[nic.transport.ideal]\n[nic.congestion.none]\n[[workload]]\nqp = \"persistent\"\nflows = {{ list = [{list}] }}\n"
    )
}

#[test]
fn flowlets_further_apart_than_paths_differ_keep_their_order() {
    for scheme in ["flowlet", "flowlet-nic"] {
        let run = |gap: &str, apart| {
            let (checked, run) =
                two_paths("7us", &format!("[scheme.{scheme}]\ngap = \"{gap}\"\n{}", bursts(apart)));
            (share(&checked, &run), run.data.out_of_order, counter(&run, "flowlets"))
        };
        // A pause of 29 us follows each message, and path delays differ by 6 us.
        let (share, out_of_order, flowlets) = run("20us", 30);
        assert!((0.2..0.8).contains(&share), "{scheme}: {share}");
        assert_eq!((out_of_order, flowlets), (0, 40), "{scheme}");
        // Pauses are shorter than the gap: one flowlet, one path.
        let (share, out_of_order, flowlets) = run("31us", 30);
        assert!(share == 0.0 || share == 1.0, "{scheme}: {share}");
        assert_eq!((out_of_order, flowlets), (0, 1), "{scheme}");
        // The gap is shorter than the difference of path delays, so packets on the fast path overtake others.
        let (_, out_of_order, flowlets) = run("1us", 3);
        assert!(out_of_order > 0 && flowlets == 40, "{scheme}: {out_of_order} of {flowlets} flowlets");
    }
}

#[test]
fn flowcells_take_paths_in_turns_and_overtake_each_other() {
    let job = "[nic.transport.ideal]\n[nic.congestion.none]\n[scheme.flowcell]\n[[workload]]\n\
               flows = { list = [{ from = \"a\", to = \"b\", bytes = \"4MB\" }] }\n";
    let (checked, run) = two_paths("7us", job);
    // 2782 packets make 62 flowcells of 45.
    assert_eq!(counter(&run, "flowcells"), 62);
    assert!((0.49..0.51).contains(&share(&checked, &run)));
    assert!(run.data.out_of_order > 0);
}

/// MP-RDMA's flow from a to b, with further settings in `keys`.
fn mp_rdma(other: &str, keys: &str) -> (Checked, Outcome) {
    let job = "[[workload]]\nflows = { list = [{ from = \"a\", to = \"b\", bytes = \"8MB\" }] }\n";
    two_paths(other, &format!("[scheme.mp-rdma]\n{keys}\n{job}"))
}

#[test]
fn mp_rdma_spreads_over_paths_that_are_alike() {
    // Path delays differ by 1 us, which is 8 packets.
    let (checked, run) = mp_rdma("2us", "");
    assert!((0.25..0.75).contains(&share(&checked, &run)), "{}", share(&checked, &run));
    assert!(run.data.out_of_order > 0 && run.data.reorder_peak <= 32, "{:?}", run.data);
    assert_eq!((counter(&run, "paths_given_up"), run.data.discarded, run.data.retransmitted), (0, 0, 0));
    assert_eq!((run.control.nack, run.control.cnp, run.control.timeout), (0, 0, 0));
    // Every packet after the first window went where an ACK had led it.
    let (clocked, free) = (counter(&run, "packets_clocked"), counter(&run, "packets_unclocked"));
    assert!(clocked > 40 * free, "{clocked} clocked, {free} not");
}

#[test]
fn mp_rdma_leaves_a_path_that_is_more_than_delta_behind() {
    // Path delays differ by 6 us, which is 49 packets: more than Delta (32), less than the bitmap (64).
    let (checked, run) = mp_rdma("7us", "");
    assert!(share(&checked, &run) < 0.1, "{}", share(&checked, &run));
    assert!(counter(&run, "paths_given_up") > 0);
    let (patient_checked, patient) = mp_rdma("7us", "delta = 60");
    assert!((0.25..0.75).contains(&share(&patient_checked, &patient)));
    assert_eq!(counter(&patient, "paths_given_up"), 0);
    // Fewer packets are reordered, and the receiver drops none.
    assert!(run.data.out_of_order < patient.data.out_of_order / 4);
    for run in [run, patient] {
        assert!(run.data.reorder_peak < 64 && run.data.discarded == 0 && run.data.retransmitted == 0);
    }
}

#[test]
fn mp_rdma_leaves_a_path_whose_packets_are_marked() {
    // c sends at 90 of m1's 100 Gb/s and never slows down.
    let noise = "[switch.ecn]\nkmin = \"20kB\"\nkmax = \"20kB\"\n[nic.congestion.none]\n[class.noise.scheme.ecmp]\n\
                 [[workload]]\nname = \"noise\"\nclass = \"noise\"\nbackground = true\n\
                 flows = { list = [{ from = \"c\", to = \"d\", bytes = \"100MB\" }] }";
    let (checked, run) = mp_rdma("1us", noise);
    assert!(share(&checked, &run) < 0.1, "{}", share(&checked, &run));
    // Other classes keep their NIC: marks on c's packets return as CNPs, marks on a's packets as flags.
    assert!(run.control.cnp > 0 && run.data.retransmitted == 0);
    let job = "[[workload]]\nflows = { list = [{ from = \"a\", to = \"b\", bytes = \"8MB\" }] }\n";
    let (checked, sprayed) =
        two_paths("1us", &format!("[nic.transport.ideal]\n[scheme.rps-nic]\n{noise}\n{job}"));
    assert!((0.45..0.55).contains(&share(&checked, &sprayed)));
    let done = |run: &Outcome| run.messages[0].acked;
    assert!(done(&run) < done(&sprayed), "{} and {}", done(&run), done(&sprayed));
}

#[test]
fn mp_rdma_sends_everything_however_many_packets_are_lost() {
    for loss in [0.01, 0.1] {
        let text = format!(
            "[topology.leaf-spine]\nleaves = 2\nspines = 4\nhosts-per-leaf = 4\nrate = \"100Gbps\"\n\
             [links]\nloss = {loss}\nlose-replies = true\n[nic]\ntimeout = {{ fixed = \"200us\" }}\n[scheme.mp-rdma]\n\
             [[workload]]\npermutation = {{ bytes = \"600kB\", kind = \"shift\" }}\n"
        );
        let run = agreed_on(&lay(&text), &text);
        assert!(run.messages.iter().all(|m| m.acked != model::Time::NEVER));
        assert!(run.data.dropped_link > 50 && run.control.dropped > 50 && run.control.nack > 0);
    }
}
