//! Claim: DCQCN's rates rise by a timer and by the bytes that were sent; a packet waits for the rate of the time; a port counts
//! the CNPs of all its queue pairs. The engines agree on the outcome.

use crate::lab::{agreed_on, lay, leaf_spine, total};
use engine::outcome::Outcome;
use model::Time;

/// Eight senders at one receiver, 400 kB each, with marks from 20 kB on.
fn incast(keys: &str) -> Outcome {
    let text = leaf_spine(
        2,
        4,
        8,
        "rate = \"100Gbps\"\ndelay = \"1us\"\n[switch.ecn]\nkmin = \"20kB\"\nkmax = \"80kB\"",
    ) + &format!("[nic]\nmodel = \"connectx-7\"\n{keys}\n[[workload]]\n")
        + "incast = { senders = 8, receiver = \"host0\", bytes = \"400kB\" }\n";
    agreed_on(&lay(&text), keys)
}

#[test]
fn a_port_sends_one_cnp_per_interval_for_all_its_queue_pairs() {
    let of = |per: &str| incast(&format!("cnp-interval = \"4us\"\ncnp-interval-per = \"{per}\""));
    let (port, each) = (of("port"), of("queue-pair"));
    let intervals = port.end.ps() / Time::from_us(4).ps();
    assert!(port.control.cnp > intervals / 4 && port.control.cnp <= intervals + 1, "{}", port.control.cnp);
    assert!(each.control.cnp > 2 * port.control.cnp, "{} and {}", each.control.cnp, port.control.cnp);
    assert!(total(&port, |link| link.marks) > port.control.cnp, "most marks are not told");
}

/// One flow of 3 MB whose packet 500 is lost once; the time from its start to its last ACK, and the time at a slow rate.
fn one_loss(keys: &str) -> (Time, Time) {
    let lost = "[[links.lose]]\nfrom = \"host0\"\nto = \"host1\"\npsns = [500]\n";
    let text = leaf_spine(2, 1, 1, "rate = \"100Gbps\"\ndelay = \"1us\"")
        + lost
        + keys
        + "\n[[workload]]\nflows = { list = [{ from = \"host0\", to = \"host1\", bytes = \"3MB\" }] }\n";
    let run = agreed_on(&lay(&text), keys);
    assert_eq!(run.data.retransmitted, 1);
    (run.messages[0].acked, run.messages[0].slow)
}

#[test]
fn a_byte_counter_ends_in_microseconds_what_takes_a_timer_300() {
    let after = |control: &str| one_loss(&format!("[nic]\non-nack = {{ to = 0.5 }}\n{control}")).0.as_us();
    let ideal = one_loss("[nic.congestion.none]").0.as_us();
    // Events come every 32,767 B, and each halves what is missing to line rate. At half of line rate that costs 2.6 us, at three
    // quarters 0.9 us, and so on.
    let counted = after("[nic.congestion.dcqcn]") - ideal;
    assert!((3.5..5.5).contains(&counted), "{counted} us");
    // The rest of the message, 2.2 MB, leaves at half of line rate before the timer fires.
    let timed = after("[nic.congestion.dcqcn]\nbyte-reset = \"0B\"") - ideal;
    assert!((130.0..200.0).contains(&timed), "{timed} us");
}

#[test]
fn a_cut_to_the_least_rate_costs_one_timer_and_no_packet_time_at_this_rate() {
    // One NACK takes the only flow to 1 Mb/s, where a packet of 1500 B takes 12 ms. The timer fires after 300 us.
    let cut = |control: &str| one_loss(&format!("[nic]\non-nack = \"to-min-rate\"\n{control}"));
    let (took, slow) = cut("[nic.congestion.dcqcn]");
    assert!(took > Time::from_us(550) && took < Time::from_us(900), "{took}");
    assert!(slow > Time::from_us(290) && slow < Time::from_us(310), "{slow}");
    let (took, slow) = cut("[nic.congestion.dcqcn-hpcc]\nmin-rate = \"1Mbps\"");
    assert!(took > Time::from_ms(12) && slow > Time::from_ms(12), "{took}, {slow}");
}
