//! Claim: where routes stay frozen after a cable has died, a NIC whose replies have entropies of their own goes on; one whose
//! replies keep the base path waits for the repair.

use crate::lab::{agreed_on, lay, leaf_spine};
use engine::Outcome;
use engine::outcome::Ending;

/// Repair of the cable, us. The slowest NIC that goes on takes 2.2 ms: its window shrinks with every packet that a timer finds.
const REPAIR: u64 = 10_000;

/// Eight flows of 2 MB from rack to rack over four spines. The cable between the second leaf and a spine dies in both
/// directions, and no switch notices.
fn dead_cable(scheme: &str, nic: &str) -> Outcome {
    let text = format!(
        "{}[switch]\npfc = \"off\"\ncut = \"on\"\nqueue-cap = \"70kB\"\n\
         classes = [{{ kinds = [\"ack\", \"nack\", \"cnp\", \"control\", \"trimmed\"] }}, {{ kinds = [\"data\"] }}]\n\
         ecn = {{ kmin = \"17kB\", kmax = \"58kB\", pmax = 1.0 }}\n\
         [routing]\ndetection = \"never\"\n\
         [[failure]]\nlinks = [[\"leaf1\", \"spine0\"]]\nat = \"20us\"\nuntil = \"{REPAIR}us\"\n\
         [nic]\ntimeout = {{ fixed = \"50us\" }}\n{nic}\n[scheme.{scheme}]\n\
         [[workload]]\npermutation = {{ bytes = \"2MB\", kind = \"shift\" }}\n",
        leaf_spine(2, 4, 8, "rate = \"100Gbps\"\ndelay = \"500ns\"")
    );
    let run = agreed_on(&lay(&text), &text);
    assert_eq!(run.ending, Ending::Finished);
    run
}

fn last(run: &Outcome) -> u64 {
    run.messages.iter().map(|message| message.acked.ps()).max().unwrap() / 1_000_000
}

/// NICs that spread their replies. 16 MB per rack take 320 us over four uplinks, and 427 us over three.
const SPREAD: [(&str, &str); 5] = [
    ("entropy-mixed", "[nic.transport.uec]\n[nic.congestion.nscc]"),
    ("reps", "[nic.transport.uec]\n[nic.congestion.nscc]"),
    ("entropy-mixed", "[nic.transport.uec]\n[nic.congestion.rccc]"),
    ("mrc", "[nic.transport.mrc]\n[nic.congestion.nscc]"),
    ("mrc", "[nic.transport.mrc]\nreply-paths = \"of-packet\"\n[nic.congestion.nscc]"),
];

#[test]
fn replies_with_entropies_of_their_own_outlive_a_dead_cable() {
    for (scheme, nic) in SPREAD {
        let run = dead_cable(scheme, nic);
        assert!(last(&run) < REPAIR / 2, "{scheme}, {nic}: {} us", last(&run));
        assert!(run.control.dropped > 0, "some replies met the cable");
    }
}

#[test]
fn replies_on_the_base_path_wait_for_the_repair() {
    for transport in ["uec", "mrc"] {
        let nic = format!("[nic.transport.{transport}]\nreply-paths = \"flow\"\n[nic.congestion.nscc]");
        let run = dead_cable(if transport == "mrc" { "mrc" } else { "entropy-mixed" }, &nic);
        assert!(last(&run) > REPAIR, "{transport}: {} us", last(&run));
    }
}
