//! Claim: a queue pair survives as many timeouts in a row as `nic.retries` says. One more ends the run at that picosecond, and the
//! outcome names the queue pair and the link that lost its packets.

use crate::lab::{agreed_on, lay, leaf_spine};
use engine::Outcome;
use engine::outcome::{Ending, Exceeded};
use model::{LinkId, Plan, QpId, Time};

/// The timer, and the time of the failure.
const TIMER: u64 = 200_000_000;
const DOWN: u64 = 5_000_000;

/// One link of 100 Gb/s and 1 us that fails at 5 us. Three retries, and more keys of `[nic]`.
fn cable(failure: &str, nic: &str, stop: &str) -> (Plan, Outcome) {
    let text = format!(
        "[topology.links]\nhosts = [\"a\", \"b\"]\nlinks = [[\"a\", \"b\"]]\n[nic]\ntimeout = {{ fixed = \"200us\" }}\n\
         retries = 3\n{nic}[nic.transport.ideal]\n[nic.congestion.none]\n{stop}[[failure]]\nat = \"5us\"\n{failure}\n\
         [[workload]]\nflows = {{ list = [{{ from = \"a\", to = \"b\", bytes = \"1MB\" }}] }}\n"
    );
    let checked = lay(&text);
    let outcome = agreed_on(&checked, &text);
    (checked.plan, outcome)
}

/// The link goes down for good.
const DEAD: &str = "links = [[\"a\", \"b\"]]";

/// The link goes down until this time, ps.
fn down_until(until: u64) -> String {
    format!("{DEAD}\nuntil = \"{until}ps\"")
}

/// Arrival of the last ACK before the failure, ps. Packet k starts at k x 121.6 ns, and an ACK arrives a round trip later.
fn last_ack(plan: &Plan) -> u64 {
    let rate = plan.fabric.links()[0].rate;
    let [frame, ack] =
        [plan.wire.max_frame(), plan.wire.ack].map(|size| plan.wire.transmission(rate, size).ps());
    let trip = frame + 1_000_000 + ack + 1_000_000;
    trip + (DOWN - trip) / frame * frame
}

#[test]
fn one_timeout_more_than_the_retries_ends_the_run() {
    let (plan, run) = cable(DEAD, "", "");
    let at = last_ack(&plan) + 4 * TIMER;
    assert_eq!(
        run.ending,
        Ending::RetryExceeded(Exceeded { at: Time(at), qp: QpId(0), link: Some(LinkId(0)) })
    );
    assert!(run.end.ps() > at && run.end.ps() <= at + engine::window(&plan), "{}", run.end);
    assert_eq!((run.control.timeout, run.messages[0].acked), (4, Time::NEVER));
    assert_eq!(run.data.retransmitted, 3, "the last timeout sends nothing");
}

#[test]
fn a_link_that_is_back_at_the_last_retry_saves_the_job() {
    let plan = cable(DEAD, "", "").0;
    let retry = last_ack(&plan) + 3 * TIMER;
    assert_eq!(cable(&down_until(retry), "", "").1.ending, Ending::Finished);
    let late = cable(&down_until(retry + 1), "", "").1;
    assert!(matches!(late.ending, Ending::RetryExceeded(_)), "{:?}", late.ending);
}

#[test]
fn lost_acks_name_the_way_back() {
    let (_, run) = cable("links = [[\"b\", \"a\"]]\none-way = true", "", "");
    let Ending::RetryExceeded(Exceeded { link, .. }) = run.ending else { panic!("{:?}", run.ending) };
    assert_eq!(link, Some(LinkId(1)));
}

#[test]
fn without_a_limit_the_sender_goes_on() {
    let until = DOWN + 20 * TIMER;
    let run = cable(&down_until(until), "on-retry-exceeded = \"never\"\n", "").1;
    assert!(run.ending == Ending::Finished && run.control.timeout >= 20);
}

/// The engines agree wherever a run is stopped, before or after the failure of the queue pair or in its window.
#[test]
fn a_run_that_stops_first_did_not_end_by_a_failure() {
    let (plan, run) = cable(DEAD, "", "");
    let at = last_ack(&plan) + 4 * TIMER;
    for (after, stopped) in
        [(at - 1, true), (at, true), (at + 1, false), (run.end.ps(), false), (2 * at, false)]
    {
        let cut = cable(DEAD, "", &format!("[stop]\nafter = \"{after}ps\"\n")).1;
        assert_eq!(cut.ending == Ending::Stopped, stopped, "{after}: {:?}", cut.ending);
        assert_eq!(cut.end, Time(after.min(run.end.ps())));
    }
}

/// Random losses on every link, in runs that two sides of the fabric may compute in turns.
#[test]
fn the_first_of_many_queue_pairs_ends_the_run() {
    let mut ended = 0;
    for seed in 0..6 {
        let text = format!(
            "seed = {seed}\n{}[links]\nloss = 0.4\n[nic]\ntimeout = {{ fixed = \"50us\" }}\nretries = 1\n[[workload]]\n\
             permutation = {{ bytes = \"60kB\" }}\n",
            leaf_spine(4, 4, 2, "")
        );
        let run = agreed_on(&lay(&text), &text);
        if let Ending::RetryExceeded(Exceeded { link, .. }) = run.ending {
            assert!(link.is_some());
            ended += 1;
        }
    }
    assert!(ended > 0);
}
