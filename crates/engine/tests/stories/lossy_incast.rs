//! Claim: two senders at one receiver behind a switch that drops. A receiver whose port is full sends each of them one CNP per
//! interval, and go-back-N needs no timeout for a lost retransmission if the receiver NACKs it. The engines agree on the outcome.

use crate::lab::{agreed_on, lay, leaf_spine};
use engine::outcome::Outcome;
use model::Time;

/// Two senders at one receiver at 100 Gb/s.
fn incast(megabytes: u32, switch: &str, nic: &str) -> Outcome {
    let text = leaf_spine(1, 1, 3, "rate = \"100Gbps\"\ndelay = \"1us\"")
        + &format!("[switch]\necn = \"off\"\n{switch}\n[nic]\n{nic}\n[[workload]]\n")
        + &format!("incast = {{ senders = 2, receiver = \"host0\", bytes = \"{megabytes}MB\" }}\n");
    agreed_on(&lay(&text), nic)
}

#[test]
fn a_full_port_sends_each_sender_one_cnp_per_interval() {
    let own = "cnp = \"frame\"\nself-cnp = { interval = \"50us\", above = \"95Gbps\" }";
    let run = incast(4, "", &format!("{own}\n[nic.congestion.none]"));
    // Every interval from the first on is full: the port gets its first packet after 4 us of 50, and both send to the end.
    let arrived = run.messages.iter().map(|message| message.received).min().unwrap();
    assert!(arrived > Time::from_us(600), "{arrived}");
    assert_eq!(run.control.cnp, 2 * (arrived.ps() / Time::from_us(50).ps()));
    let idle = incast(4, "", &format!("{}\n[nic.congestion.none]", own.replace("95Gbps", "101Gbps")));
    assert_eq!(idle.control.cnp, 0, "no port gets more than its line rate, and one frame per interval");
}

#[test]
fn a_connectx_5_that_drops_needs_no_timeout() {
    let lossy = "pfc = \"off\"\nqueue-cap = \"1MB\"";
    let run = |nic: &str| incast(10, lossy, &format!("model = \"connectx-5\"\n{nic}"));
    let again = run("");
    assert!(again.control.nack > 20 && again.control.timeout == 0, "{:?}", again.control);
    let once = run("[nic.transport.go-back-n]\nrenack-after-rewind = false");
    assert!(once.control.timeout > 0, "{:?}", once.control);
    assert!(again.end < Time::from_ms(20) && once.end > Time::from_ms(67), "{} and {}", again.end, once.end);
}
