//! Claim: with `nic.on-retry-exceeded = "nccl-failover"` a queue pair whose retries are used up moves to the next port of its NIC, and
//! returns when NCCL's port recovery says so. The times are closed forms, to the picosecond.

use crate::lab::{agreed_on, lay};
use engine::Outcome;
use engine::outcome::{Ending, Exceeded, Failover};
use model::{HostId, Plan, QpId, Time};

/// The time of the failure.
const DOWN: u64 = 50_000_000;
const MS: u64 = 1_000_000_000;

/// A timer of InfiniBand with this exponent.
const fn timer(exponent: u64) -> u64 {
    4_096_000 << exponent
}

/// Two servers with a NIC of two ports, each in a plane of its own, at 100 Gb/s and 1 us. Seven retries.
fn devices(exponent: u64, then: &str, rest: &str) -> (Plan, Outcome) {
    let text = format!(
        "[server]\ngpus = 1\nports-per-nic = 2\nbond-failover = \"wait\"\n[topology.links]\nhosts = [\"a\", \"b\"]\n\
         switches = [\"x\", \"y\"]\nlinks = [[\"a\", \"x\"], [\"a\", \"y\"], [\"b\", \"x\"], [\"b\", \"y\"]]\nrate = \"100Gbps\"\n\
         [nic]\ntimeout = {{ ib = {exponent} }}\nretries = 7\non-retry-exceeded = \"{then}\"\n[nic.transport.ideal]\n\
         [nic.congestion.none]\n{rest}"
    );
    let checked = lay(&text);
    let outcome = agreed_on(&checked, &text);
    (checked.plan, outcome)
}

/// Messages of `packets` full packets from the first port of `a` to that of `b`, at these times, ps.
fn flows(packets: u64, starts: &[u64]) -> String {
    let bytes = packets * 1438;
    let flow =
        |at: &u64| format!("{{ from = \"ap0\", to = \"bp0\", bytes = \"{bytes}B\", start = \"{at}ps\" }}");
    let list: Vec<String> = starts.iter().map(flow).collect();
    format!("[[workload]]\nflows = {{ list = [{}] }}\n", list.join(", "))
}

/// A failure of the links between these nodes.
fn failure(links: &str, until: Option<u64>) -> String {
    let until = until.map(|until| format!("until = \"{until}ps\"\n")).unwrap_or_default();
    format!("[[failure]]\nat = \"{DOWN}ps\"\nlinks = [{links}]\n{until}")
}

const FIRST_CABLE: &str = "[\"a\", \"x\"]";

/// Time of a full frame, and from the start of a packet to the arrival of its ACK over two links.
fn times(plan: &Plan) -> (u64, u64) {
    let rate = plan.fabric.links()[0].rate;
    let [frame, ack] =
        [plan.wire.max_frame(), plan.wire.ack].map(|size| plan.wire.transmission(rate, size).ps());
    (frame, 2 * (frame + ack + 2_000_000))
}

/// Number of packets whose ACKs arrive before the failure, and the arrival of the last one, ps.
fn last_ack(plan: &Plan) -> (u64, u64) {
    let (frame, trip) = times(plan);
    let before = (DOWN - trip) / frame;
    (before + 1, trip + before * frame)
}

const PACKETS: u64 = 2000;

#[test]
fn a_flow_whose_cable_dies_finishes_by_the_other_port() {
    for exponent in [14, 18, 20] {
        for detection in ["never", "100us"] {
            let routing = format!("[routing]\ndetection = \"{detection}\"\n");
            let rest = [failure(FIRST_CABLE, None), routing, flows(PACKETS, &[0])].concat();
            let (plan, run) = devices(exponent, "nccl-failover", &rest);
            let ((frame, trip), (acked, last)) = (times(&plan), last_ack(&plan));
            let error = last + 8 * timer(exponent);
            let end = error + 10 * MS + (PACKETS - acked - 1) * frame + trip;
            assert_eq!((run.ending, run.messages[0].acked), (Ending::Finished, Time(end)), "{exponent}");
            let (from, to, back) = (HostId(0), HostId(1), Time::NEVER);
            assert_eq!(run.failovers, [Failover { at: Time(error), qp: QpId(0), from, to, back }]);
            assert_eq!(run.counters, [("failovers", 1), ("recoveries", 0)]);
            let (_, ended) = devices(exponent, "job-ends", &rest);
            let Ending::RetryExceeded(Exceeded { at, .. }) = ended.ending else {
                panic!("{:?}", ended.ending)
            };
            assert_eq!((at, ended.failovers.len()), (Time(error), 0));
        }
    }
}

/// A flap of 1, 10 or 40 s under each of NCCL's timers. It ends the job if it outlasts seven retries: 0.47 s, 7.5 s or 30 s. Else
/// the flow goes on with the first retry after it. With failover no flap ends the job.
#[test]
fn a_flap_ends_the_jobs_whose_seven_retries_it_outlasts() {
    for (exponent, dies) in [(14, [true, true, true]), (18, [false, true, true]), (20, [false, false, true])]
    {
        for (seconds, dies) in [1, 10, 40].into_iter().zip(dies) {
            let back = DOWN + seconds * 1000 * MS;
            let rest = [failure(FIRST_CABLE, Some(back)), flows(PACKETS, &[0])].concat();
            let (plan, alone) = devices(exponent, "job-ends", &rest);
            let last = last_ack(&plan).1;
            let error = Time(last + 8 * timer(exponent));
            match alone.ending {
                Ending::RetryExceeded(Exceeded { at, .. }) => {
                    assert!(dies && at == error, "{exponent}, {seconds} s")
                }
                Ending::Finished => {
                    let retries = (back - last).div_ceil(timer(exponent));
                    let retry = Time(last + retries * timer(exponent));
                    let acked = alone.messages[0].acked;
                    // The `ideal` NIC needs a timer for every lost packet.
                    assert!(!dies && acked > retry, "{exponent}, {seconds} s: {acked}");
                }
                other => panic!("{other:?}"),
            }
            let (_, moves) = devices(exponent, "nccl-failover", &rest);
            assert_eq!(moves.ending, Ending::Finished);
            let moved: Vec<Time> = moves.failovers.iter().map(|failover| failover.at).collect();
            assert_eq!(moved, if dies { vec![error] } else { Vec::new() }, "{exponent}, {seconds} s");
        }
    }
}

/// It does not matter at which end a cable dies, or whether only the ACKs are lost.
#[test]
fn a_dead_cable_of_the_receiver_and_lost_acks_move_a_queue_pair_as_well() {
    for links in ["[\"b\", \"x\"]", "[\"x\", \"b\"]", "[\"x\", \"a\"]"] {
        let one_way = format!("{}one-way = true\n", failure(links, None));
        for failing in [failure(links, None), one_way] {
            let (_, run) = devices(14, "nccl-failover", &[failing, flows(PACKETS, &[0])].concat());
            assert_eq!((run.ending, run.failovers.len()), (Ending::Finished, 1), "{links}");
            assert!(run.messages[0].acked < Time(8 * timer(14) + 11 * MS));
        }
    }
}

#[test]
fn a_second_dead_port_ends_the_job() {
    let both = failure(&format!("{FIRST_CABLE}, [\"b\", \"y\"]"), None);
    let (plan, run) = devices(14, "nccl-failover", &[both, flows(PACKETS, &[0])].concat());
    let at = Time(last_ack(&plan).1 + 10 * MS + 16 * timer(14));
    let Ending::RetryExceeded(exceeded) = run.ending else { panic!("{:?}", run.ending) };
    let link = plan.fabric.reverse(plan.fabric.link(plan.fabric.node_of(HostId(3)), model::PortIndex(1)));
    assert_eq!(exceeded, Exceeded { at, qp: QpId(0), link: Some(link) });
    assert_eq!(run.failovers.len(), 1);
}

/// A cable that is back at this time, ps, where a message starts every second of 25, and routes do not change.
fn with_repair(until: u64) -> (Plan, Outcome) {
    let starts: Vec<u64> = (0..25).map(|second| second * 1000 * MS).collect();
    let frozen = "[routing]\ndetection = \"never\"\n".to_owned();
    let rest = [failure(FIRST_CABLE, Some(until)), frozen, flows(PACKETS, &starts)].concat();
    devices(14, "nccl-failover", &rest)
}

#[test]
fn a_queue_pair_returns_after_two_batches_in_a_row_or_never() {
    let error = {
        let (plan, _) = devices(14, "job-ends", &flows(PACKETS, &[0]));
        last_ack(&plan).1 + 8 * timer(14)
    };
    // Batch k leaves 200 ms + k x 5 s after the error, and there are five.
    let batch = |k: u64| error + 200 * MS + k * 5000 * MS;
    let cases = [
        (600 * MS, Some(batch(1))),
        (batch(0), Some(batch(1))),
        (1000 * MS, Some(batch(2))),
        (batch(3), Some(batch(4))),
        (batch(3) + 1, None),
    ];
    for (until, back) in cases {
        let (_, run) = with_repair(until);
        assert_eq!(run.ending, Ending::Finished);
        assert_eq!(run.failovers.len(), 1);
        assert_eq!(run.failovers[0].back, back.map_or(Time::NEVER, Time), "{until}");
        // Messages leave by the second port until the return: all of them but the first packets of the first message.
        let by_second =
            (0..25).filter(|second| back.is_none_or(|back| second * 1000 * MS < back)).count() as u64;
        assert_eq!(run.links[1].frames / PACKETS, by_second - 1, "{until}");
    }
}

#[test]
fn a_port_that_is_back_may_die_again() {
    let again = format!("[[failure]]\nat = \"12s\"\nlinks = [{FIRST_CABLE}]\n");
    let flows = flows(PACKETS, &[0, 1000 * MS, 12_000 * MS]);
    let rest = [failure(FIRST_CABLE, Some(600 * MS)), again, flows].concat();
    let (_, run) = devices(14, "nccl-failover", &rest);
    assert_eq!((run.ending, run.failovers.len()), (Ending::Finished, 2));
    assert_eq!([0, 1].map(|i| run.failovers[i].back != Time::NEVER), [true, false]);
}

/// Queue pairs of one NIC find out for themselves: those that still get answers stay.
#[test]
fn only_queue_pairs_without_answers_move() {
    let text = "[[workload]]\nflows = { list = [{ from = \"ap0\", to = \"bp0\", bytes = \"2876kB\" }, \
        { from = \"ap1\", to = \"bp1\", bytes = \"2876kB\" }, { from = \"bp0\", to = \"ap0\", bytes = \"2876kB\" }] }\n";
    let (plan, run) = devices(14, "nccl-failover", &[failure(FIRST_CABLE, None), text.to_owned()].concat());
    assert_eq!(run.ending, Ending::Finished);
    let moved: Vec<HostId> = run.failovers.iter().map(|failover| failover.from).collect();
    assert_eq!(moved, [HostId(0), HostId(2)], "both directions of the first plane");
    assert!(run.failovers.iter().all(|failover| plan.qps[failover.qp.index()].from == failover.from));
}
