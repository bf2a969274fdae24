//! Claim: a READ takes the time of its request and of its data, and a limit of n READs per queue pair gives n times their size in a round
//! trip. The engines agree on the outcome.

use crate::lab::{agreed_on, lay};
use engine::outcome::{Ending, Outcome};
use model::{MessageId, Plan, Time};

/// READs of a host by another over one switch, at 100 Gb/s and 1 us per link.
fn run(nic: &str, bytes: u64, times: u64) -> (Plan, Outcome) {
    let text = format!(
        "[topology.links]\nhosts = 2\nswitches = [\"s\"]\nrate = \"100Gbps\"\ndelay = \"1us\"\n\
         links = [[\"host0\", \"s\"], [\"host1\", \"s\"]]\n[switch]\necn = \"off\"\n[nic]\n{nic}\n[nic.congestion.none]\n\
         [[workload]]\nverb = \"read\"\nflows = {{ list = [{{ from = \"host0\", to = \"host1\", bytes = \"{bytes}B\", \
         again = {{ times = {times}, every = \"0us\" }} }}] }}\n"
    );
    let checked = lay(&text);
    let run = agreed_on(&checked, nic);
    assert_eq!(run.ending, Ending::Finished);
    (checked.plan, run)
}

/// Start of the request and arrival of the data, in the order of READs.
fn times(plan: &Plan, run: &Outcome) -> Vec<(Time, Time)> {
    let record = |id: MessageId| &run.messages[id.index()];
    let of = |whole: &model::plan::Whole| {
        (record(whole.request.unwrap()).start, record(whole.subflows[0]).received)
    };
    plan.wholes.iter().map(of).collect()
}

/// Time of a frame on the wire with its gap, ps.
const fn wire(frame: u64) -> u64 {
    (frame + 20) * 80
}

#[test]
fn one_read_takes_the_time_of_its_request_and_of_its_data() {
    let (plan, run) = run("", 1000, 1);
    let [(start, end)] = times(&plan, &run)[..] else { panic!("one READ") };
    // The request has 78 B: the headers of a data packet and a RETH of 16 B. Its ACK leaves before the data.
    let ideal = 2 * (wire(78) + wire(1062)) + 4_000_000;
    assert_eq!((start, end), (Time::ZERO, Time(ideal + wire(66))));
    assert_eq!(scenario::ideal::of_flows(&plan).last(), Some(&Time(ideal)));
    assert_eq!((plan.flows(), plan.messages.len(), run.data.accepted), (1, 2, 2));
}

#[test]
fn reads_under_way_limit_the_rate_to_their_size_per_round_trip() {
    let size = 4000;
    let (plan, alone) = run("", size, 1);
    let trip = times(&plan, &alone)[0].1.ps();
    let data = 2 * wire(1500) + wire(4000 - 2 * 1438 + 62);
    for (limit, rounds) in [(1, 20), (4, 16), (8, 30)] {
        let (plan, run) = run(&format!("reads = {limit}"), size, limit * rounds);
        let times = times(&plan, &run);
        let last = times.iter().map(|(_, end)| end.ps()).max().unwrap();
        let expected = rounds * trip + (limit - 1) * data;
        assert!(last.abs_diff(expected) < expected / 100, "{limit}: {last} for {expected}");
        // At any time at most so many are under way.
        for (i, (start, _)) in times.iter().enumerate() {
            let under_way = times[..i].iter().filter(|(_, end)| end > start).count() as u64;
            assert!(under_way < limit, "{under_way} before READ {i}");
        }
    }
}

#[test]
fn a_lost_request_and_a_lost_response_come_again() {
    let lost = "lose = [{ from = \"host1\", to = \"host0\", psns = [0] }, { from = \"host0\", to = \"host1\", psns = [1] }]";
    for mode in ["nic-sr", "go-back-n"] {
        let (_, run) = run(
            &format!("timeout = {{ fixed = \"50us\" }}\n[nic.transport.{mode}]\n[links]\n{lost}"),
            4000,
            2,
        );
        // The request comes again; of the data one packet does, or all that follow the lost one.
        let least = if mode == "nic-sr" { 2 } else { 6 };
        assert!(run.data.retransmitted >= least && run.data.dropped_link == 2, "{mode}: {:?}", run.data);
    }
}
