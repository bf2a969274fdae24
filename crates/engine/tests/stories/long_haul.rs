//! Claim: at the edge of a datacentre, a switch that answers for the far end spares local flows the late reactions
//! of remote ones.
//!
//! Two small built-in scenarios: congestion near the source of two flows over 100 km, and near their destination.
//! Times and thresholds are those of 100 Gb/s, 1 us per link and 500 us between the datacentres.

use crate::lab::{check_books, run_on, total};
use engine::outcome::{Ending, Outcome};
use model::Plan;
use scenario::{Checked, load};

const EDGE: &str = "switch-role.external.feedback.long-haul";

fn laid(name: &str, sets: &[&str]) -> Checked {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    load(name, &sets).unwrap_or_else(|e| panic!("{e}"))
}

fn run(name: &str, sets: &[&str]) -> (Checked, Outcome) {
    let checked = laid(name, sets);
    let outcome = run_on(&checked);
    (checked, outcome)
}

/// Mean FCT of a job's flows, us.
fn mean_fct(plan: &Plan, run: &Outcome, job: &str) -> f64 {
    let mine = |m: &usize| plan.jobs[usize::from(plan.messages[*m].job)].name == job;
    let fct: Vec<f64> = (0..plan.messages.len())
        .filter(mine)
        .map(|m| (run.messages[m].acked.ps() - run.messages[m].start.ps()) as f64 / 1e6)
        .collect();
    fct.iter().sum::<f64>() / fct.len() as f64
}

fn counter(run: &Outcome, name: &str) -> u64 {
    run.counters.iter().find(|(n, _)| *n == name).map_or(0, |c| c.1)
}

/// Sum of the completion times of flows inside a datacentre of 16 hosts, ps.
fn local_time(plan: &Plan, run: &Outcome) -> u64 {
    let stays = |m: &usize| {
        let qp = &plan.qps[plan.messages[*m].qp.index()];
        (qp.from.0 < 16) == (qp.to.0 < 16)
    };
    let fct = |m: usize| run.messages[m].acked.ps() - run.messages[m].start.ps();
    (0..plan.messages.len()).filter(stays).map(fct).sum()
}

/// Bytes that the remote flows have put on the wire.
fn sent(plan: &Plan, run: &Outcome) -> u64 {
    let remote =
        (0..plan.messages.len()).filter(|&m| plan.jobs[usize::from(plan.messages[m].job)].name == "remote");
    remote.map(|m| run.messages[m].wire_bytes).sum()
}

/// Longest queue of a port, bytes.
fn queue(plan: &Plan, run: &Outcome, from: &str, to: &str) -> u64 {
    let node = |name: &str| plan.fabric.find(name).unwrap();
    let (from, to) = (node(from), node(to));
    let link = plan.fabric.links().iter().position(|l| l.from == from && l.to == to).unwrap();
    run.links[link].max_queue
}

/// Settings of a run that stops after `us` microseconds.
fn until(us: u64) -> String {
    format!("stop.after={us}us")
}

#[test]
fn senders_learn_of_congestion_near_the_source_within_microseconds_and_local_flows_are_spared() {
    let on = format!("{EDGE}={{interval=\"4us\"}}");
    let (name, with, without) = ("long-haul-near-source", &[on.as_str()][..], &[][..]);
    // (a) After half a millisecond, the two senders have long been notified with the scheme, and have received
    // nothing without it.
    let cut = until(500);
    let early = |sets: &[&str]| {
        let mut sets = sets.to_vec();
        sets.push(&cut);
        let (checked, outcome) = run(name, &sets);
        sent(&checked.plan, &outcome)
    };
    let (told, untold) = (early(with), early(without));
    // 2 x 100 Gb/s for 500 us, less the bytes that PFC has delayed.
    assert!(untold > 11_500_000, "{untold} B sent without");
    assert!(told < 7_500_000, "{told} B sent with: more than the bottleneck carries");
    // (b) to (f), over the whole runs.
    let ((checked, plain), (_, notified)) = (run(name, without), run(name, with));
    let plan = &checked.plan;
    let bottleneck = |outcome: &Outcome| queue(plan, outcome, "dc0-tor0", "dc0-spine0");
    assert!(
        bottleneck(&notified) * 2 < bottleneck(&plain),
        "{} of {}",
        bottleneck(&notified),
        bottleneck(&plain)
    );
    assert!(plain.control.pause > 50 && notified.control.pause == 0);
    let small = |outcome: &Outcome| mean_fct(plan, outcome, "local-100kB");
    assert!(small(&notified) * 4.0 < small(&plain), "{} of {} us", small(&notified), small(&plain));
    assert!(counter(&notified, "marks_seen") > 0 && counter(&notified, "reactions") == 0);
    assert_eq!(
        (counter(&notified, "holds"), counter(&notified, "cnps_passed")),
        (0, 0),
        "no mark crossed the long link"
    );
    for outcome in [&plain, &notified] {
        assert_eq!((&outcome.ending, outcome.data.out_of_order), (&Ending::Finished, 0));
        check_books(plan, outcome);
    }
}

#[test]
fn an_interval_longer_than_the_receivers_makes_local_flows_give_way() {
    let slow = format!("{EDGE}={{interval=\"50us\"}}");
    let ((checked, plain), (_, notified)) =
        (run("long-haul-near-source", &[]), run("long-haul-near-source", &[&slow]));
    let small = |outcome: &Outcome| mean_fct(&checked.plan, outcome, "local-100kB");
    // Local senders receive a CNP for every mark, remote ones one in 50 us: worse than without the scheme.
    assert!(small(&notified) > 1.5 * small(&plain), "{} and {} us", small(&notified), small(&plain));
}

#[test]
fn congestion_near_the_destination_is_held_back_there_and_every_flow_finishes() {
    let on = format!("{EDGE}={{interval=\"4us\"}}");
    let name = "long-haul-near-destination";
    let ((checked, plain), (_, held)) = (run(name, &[]), run(name, &[&on]));
    let plan = &checked.plan;
    let small = |outcome: &Outcome| mean_fct(plan, outcome, "local-100kB");
    let remote = |outcome: &Outcome| mean_fct(plan, outcome, "remote");
    assert!(small(&held) * 3.0 < small(&plain), "{} of {} us", small(&held), small(&plain));
    assert!(remote(&held) < 1.5 * remote(&plain), "{} and {} us", remote(&held), remote(&plain));
    assert_eq!((plain.data.dropped_buffer, plain.data.out_of_order), (0, 0), "the fabric is lossless");
    assert_eq!((&held.ending, held.data.out_of_order, held.control.nack), (&Ending::Finished, 0, 0));
    assert_eq!((held.control.pause, counter(&held, "stash_left")), (0, 0));
    // At most the bytes of a round trip at line rate are held.
    let most = counter(&held, "stash_flow_peak");
    assert!(most > 1_000_000 && most <= 12_700_000, "{most} B");
    // The switch near the senders sees that the far switch has reacted, and notifies no sender itself.
    assert!(counter(&held, "reacted_before") > 0);
    assert_eq!((counter(&held, "marks_seen"), counter(&held, "cnps_made")), (0, 0));
    // (a) Packets are held within 20 us of the first mark, which is made when 400 kB are queued.
    let first =
        (500..600).find(|us| total(&run(name, &[&on, &until(*us)]).1, |link| link.marks) > 0).unwrap();
    let holds = |us: u64| counter(&run(name, &[&on, &until(us)]).1, "holds");
    assert!(holds(first - 1) == 0 && holds(first + 20) > 0, "the first mark is made before {first} us");
    check_books(plan, &held);
}

#[test]
fn two_bottlenecks_in_a_row_are_notified_once_by_the_edge_and_twice_by_direct_cnps() {
    // Two bottlenecks: the uplink of the flows' rack, and the link from the spine to the edge at half its rate.
    let narrow = "topology.datacentres.external-rate=60Gbps";
    let cnps = |sets: &[&str]| {
        let mut sets = sets.to_vec();
        sets.extend([narrow, "nic.cnp=\"none\"", "stop.after=1ms"]);
        let (_, outcome) = run("long-haul-near-source", &sets);
        counter(&outcome, "cnps_made")
    };
    let edge = cnps(&[&format!("{EDGE}={{interval=\"50us\",reaction=\"off\"}}")]);
    let direct = "{interval=\"50us\",beyond=\"100us\"}";
    let tor = format!("switch-role.tor.feedback.direct-cnp={direct}");
    let spine = format!("switch-role.spine.feedback.direct-cnp={direct}");
    let (tors, both) = (cnps(&[&tor]), cnps(&[&tor, &spine]));
    // Two flows with at most one CNP in 50 us each: 40 in a millisecond.
    assert!(edge > 5 && edge <= 40, "{edge}");
    // Two switches that act independently notify the same senders.
    assert!(both > tors && tors > 0, "{both} of both, {tors} of the ToR alone");
}

#[test]
fn the_full_versions_notification_spares_local_flows_near_the_source() {
    let on = format!("{EDGE}={{notification=\"proactive\",reaction=\"off\"}}");
    let name = "long-haul-near-source";
    let ((checked, plain), (_, notified)) = (run(name, &[]), run(name, &[&on]));
    let plan = &checked.plan;
    let small = |outcome: &Outcome| mean_fct(plan, outcome, "local-100kB");
    assert!(small(&notified) * 4.0 < small(&plain), "{} of {} us", small(&notified), small(&plain));
    assert!(plain.control.pause > 10 * notified.control.pause);
    // At most one CNP per flow in 7 us: 5 us after the one before has left, which takes 2 us.
    let (made, us) = (counter(&notified, "cnps_made"), notified.end.ps() / 1_000_000);
    assert!(made > 10 && made <= 2 * (us / 7 + 1), "{made} CNPs in {us} us");
    assert!(counter(&notified, "marks_seen") > made);
    check_books(plan, &notified);
}

#[test]
fn a_loop_holds_remote_flows_back_near_their_destination_and_recovery_decides_about_order() {
    let name = "long-haul-near-destination";
    let looped = |recovery: &str| {
        format!("{EDGE}={{notification=\"off\",reaction=\"loop\",loop={{recovery={{{recovery}}}}}}}")
    };
    let (checked, plain) = run(name, &[]);
    let plan = &checked.plan;
    let small = |outcome: &Outcome| mean_fct(plan, outcome, "local-100kB");
    for (recovery, orderly) in [
        ("", true),
        ("after=\"20us\"", true),
        ("after=\"20us\",mode=\"direct\"", false),
        ("mode=\"none\"", true),
    ] {
        let (_, held) = run(name, &[&looped(recovery)]);
        assert_eq!(held.ending, Ending::Finished, "{recovery}");
        assert_eq!(held.data.out_of_order == 0, orderly, "{recovery}: {}", held.data.out_of_order);
        // Out of order, the senders' go-back-N sends much again, and local flows pay for it.
        if orderly {
            assert!(small(&held) < small(&plain), "{recovery}: {} of {} us", small(&held), small(&plain));
        }
        assert!(counter(&held, "resubmissions") > counter(&held, "holds"), "packets make several passes");
        assert_eq!(counter(&held, "stash_left"), 0);
        // Held packets occupy the buffer of the edge, which is sampled once a microsecond.
        let edge = plan.fabric.switch_number(plan.fabric.find("dc1-external0").unwrap());
        let occupied = held.max_buffer[edge].get();
        assert!(occupied > counter(&held, "stash_peak") / 2, "{occupied} B");
        check_books(plan, &held);
    }
}

#[test]
fn spraying_inside_the_datacentres_and_fairness_between_them_go_together() {
    let sets = |edge: bool| {
        let mut sets = vec!["scheme.themis={}", "nic.transport.nic-sr={}", "workload.0.poisson.duration=1ms"];
        if edge {
            sets.push("switch-role.external.feedback.long-haul={interval=\"4us\"}");
        }
        sets
    };
    let ((checked, plain), (_, fair)) = (run("long-haul", &sets(false)), run("long-haul", &sets(true)));
    for outcome in [&plain, &fair] {
        assert_eq!(outcome.ending, Ending::Finished);
        assert!(counter(outcome, "nacks_blocked") > 0 && outcome.data.out_of_order > 0, "it sprays");
        check_books(&checked.plan, outcome);
    }
    assert!(counter(&fair, "cnps_made") + counter(&fair, "reactions") > 0);
    let local = |outcome: &Outcome| local_time(&checked.plan, outcome);
    assert!(local(&fair) < local(&plain), "local flows gain");
}

#[test]
fn themis_and_long_haul_in_the_same_switches_spare_local_flows_more_than_either_alone() {
    let local = |sets: &[&str]| {
        let (checked, outcome) = run("long-haul-sprayed", sets);
        local_time(&checked.plan, &outcome)
    };
    let both = local(&[]);
    for other in [&["scheme=ecmp", "feedback=none"][..], &["feedback=none"], &["scheme=ecmp"]] {
        assert!(both * 10 < local(other) * 9, "{other:?}");
    }
}

#[test]
fn a_switch_sprays_and_answers_for_the_far_end_at_once() {
    // An edge has a long link and four spines, among which `rps` chooses there, too.
    let agreed = |more: &str| {
        let checked = laid("long-haul-sprayed", &["workload.0.poisson.duration=600us", more]);
        let outcome = crate::lab::agreed_on(&checked, "long-haul-sprayed");
        check_books(&checked.plan, &outcome);
        (checked.scheme_name(), outcome)
    };
    let acts = |outcome: &Outcome| counter(outcome, "cnps_made") + counter(outcome, "reactions") > 0;
    for scheme in ["themis", "rps"] {
        let (name, both) = agreed(&format!("scheme={scheme}"));
        assert_eq!(name, format!("{scheme}+long-haul"));
        assert!(acts(&both) && both.data.out_of_order > 0, "{scheme}: it answers, and it sprays");
        assert_eq!((&both.ending, counter(&both, "stash_left")), (&Ending::Finished, 0));
    }
    let (name, alone) = agreed("feedback=none");
    assert!(name == "themis" && !acts(&alone) && counter(&alone, "nacks_blocked") > 0);
}
