//! Claim: a NIC begins as many messages per second as its limits allow, and no fewer. The engines agree on the outcome.

use crate::lab::{agreed_on, lay, leaf_spine};
use crate::servers::planes;
use engine::outcome::Outcome;
use model::Time;

/// Messages of one host, each to the given number of its peers, on queue pairs of these settings.
fn messages(nic: &str, peers: usize, bytes: u64, count: usize, qp: &str) -> Outcome {
    let flow = |i| format!("{{ from = \"host0\", to = \"host{}\", bytes = \"{bytes}B\" }}", 1 + i % peers);
    let list: Vec<String> = (0..count).map(flow).collect();
    let text = leaf_spine(1, 1, peers + 1, "rate = \"100Gbps\"\ndelay = \"1us\"")
        + &format!("[nic]\n{nic}\n[[workload]]\nqp = \"{qp}\"\nflows = {{ list = [{}] }}\n", list.join(", "));
    agreed_on(&lay(&text), &text)
}

/// Time from the start to the last ACK, ps.
fn time(run: &Outcome) -> u64 {
    run.messages.iter().map(|m| m.acked.ps()).max().unwrap_or(0)
}

#[test]
fn n_messages_take_n_gaps_and_the_latency_of_one() {
    let alone = time(&messages("", 1, 64, 1, "persistent"));
    let (per_qp, per_nic) = (258_398, 59_880);
    for (keys, qp, gap) in [
        ("per-qp = \"3.87M/s\"", "persistent", per_qp),
        ("per-nic = \"16.7M/s\"", "persistent", per_nic),
        ("per-nic = \"16.7M/s\"", "per-message", per_nic),
        ("per-qp = \"3.87M/s\", per-nic = \"16.7M/s\"", "persistent", per_qp),
        ("per-qp = \"3.87M/s\", per-nic = \"16.7M/s\"", "per-message", per_nic),
    ] {
        let run = messages(&format!("messages = {{ {keys} }}"), 1, 64, 100, qp);
        assert_eq!(time(&run), alone + 99 * gap, "{keys}, {qp}");
    }
    // Queue pairs do not wait for each other's limit.
    let run = messages("messages = { per-qp = \"3.87M/s\" }", 1, 64, 100, "per-message");
    assert!(time(&run) < alone + 100 * 12_000, "{}", time(&run));
}

#[test]
fn messages_longer_than_the_gap_take_their_time_on_the_wire() {
    let of = |nic: &str, qp: &str| time(&messages(nic, 3, 14_380, 60, qp));
    for qp in ["persistent", "per-message"] {
        let limited = of("messages = { per-qp = \"2M/s\", per-nic = \"4M/s\" }", qp);
        // Ten packets take 1.2 us, and the limits 0.5 us.
        assert_eq!(limited, of("", qp), "{qp}");
    }
}

#[test]
fn a_long_message_sends_while_others_wait_for_their_turns() {
    let text = |more: &str| {
        leaf_spine(1, 1, 3, "rate = \"100Gbps\"\ndelay = \"1us\"")
            + "[nic]\nmessages.per-nic = \"100k/s\"\n[[workload]]\nqp = \"per-message\"\n"
            + &format!(
                "flows = {{ list = [{{ from = \"host0\", to = \"host1\", bytes = \"1MB\" }}{}] }}\n",
                more.repeat(9)
            )
    };
    let short = ", { from = \"host0\", to = \"host2\", bytes = \"64B\" }";
    let run = |more: &str| agreed_on(&lay(&text(more)), more);
    let (alone, beside) = (run(""), run(short));
    let delay = beside.messages[0].acked - alone.messages[0].acked;
    // The long message takes 84 us, in which eight short ones leave.
    assert!(delay > Time::ZERO && delay < Time::from_ns(8 * 12 + 10), "{delay}");
    assert!(time(&beside) > Time::from_us(90).ps(), "{}", time(&beside));
}

#[test]
fn a_connectx_5_reaches_its_measured_rates() {
    // Measured: 3.87 million messages of 1 KiB per second on one queue pair; 67.9 Gb/s in messages of 512 B on 32.
    let goodput = |run: &Outcome, bytes: u64| {
        run.messages.len() as f64 * bytes as f64 * 8e3 / (time(run) - 4_500_000) as f64
    };
    let one = goodput(&messages("model = \"connectx-5\"", 1, 1024, 1000, "persistent"), 1024);
    assert!((one / 31.7 - 1.0).abs() < 0.05, "{one} Gb/s");
    let many = goodput(&messages("model = \"connectx-5\"", 32, 512, 3200, "persistent"), 512);
    assert!((many / 67.9 - 1.0).abs() < 0.05, "{many} Gb/s");
}

#[test]
fn ports_that_share_a_nic_share_its_limit() {
    let flow = "{ from = \"s0g0p0\", to = \"s4g0p0\", bytes = \"64B\" }, ";
    let work = format!("[[workload]]\nqp = \"per-message\"\nflows = {{ list = [{}] }}\n", flow.repeat(80));
    for (use_, scheme) in [("\"spread\"", "mrc"), ("\"own\"", "ecmp"), ("\"spread\"", "ecmp")] {
        let of = |nic: &str| {
            let text = planes(scheme, &format!("{nic}[nic.transport.mrc]\n[nic.congestion.nscc]"), &work)
                .replace("port-use = \"spread\"", &format!("port-use = {use_}"));
            time(&agreed_on(&lay(&text), &text))
        };
        let (free, limited) = (of(""), of("messages = { per-nic = \"5M/s\" }\n"));
        // 79 gaps of 200 ns.
        assert!(
            limited > 15_800_000 && limited < free + 15_800_000,
            "{use_}, {scheme}: {free} and {limited}"
        );
    }
}
