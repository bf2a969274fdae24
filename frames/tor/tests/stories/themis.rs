//! Themis on whole frames: stories on virtual time.

use crate::lab::{self, Lab, Recovery, Transfer};
use tor::{Chance, Event, Mode, Rate, Settings, Span, Spine, Spray, Time};

/// Two hosts behind two ToRs and four spines, path i later than path 0 by i thirds of 2 ms.
fn fabric(spray: Spray, mode: Mode) -> Settings {
    let mut settings = Settings::of_ports(2);
    let spine = |i: u64| Spine { delay: Span::from_micros(200 + 2000 * i / 3), ..Spine::default() };
    settings.spines = (0..4).map(spine).collect();
    settings.spray = spray;
    settings.themis.mode = mode;
    if mode == Mode::Literal {
        settings.themis.ring = 128;
    }
    for port in &mut settings.ports {
        port.rate = Rate::from_bits(40_000_000);
        port.last_hop = Span::from_micros(100);
    }
    settings
}

fn line() -> Rate {
    Rate::from_bits(40_000_000).unwrap()
}

fn run(settings: &Settings, transfers: &[Transfer]) -> Lab {
    let mut lab = Lab::new(settings, line(), transfers);
    lab.run(Time::ZERO + Span::from_secs(120));
    assert!(lab.done(), "{:?}", (0..transfers.len()).map(|n| lab.counts(n)).collect::<Vec<_>>());
    // What is still under way arrives.
    lab.run_on(lab.now + Span::from_millis(60));
    assert_eq!(lab.pool.free(), lab.pool.count(), "a buffer is lost");
    lab
}

/// A2: random spraying causes NACKs, and each of them a retransmission in vain.
#[test]
fn random_spraying_causes_spurious_retransmissions() {
    let lab = run(&fabric(Spray::Rps, Mode::Off), &[Transfer::default()]);
    let counts = lab.counts(0);
    assert!(counts.nacks > 50, "{counts:?}");
    assert_eq!((counts.sent, counts.duplicates), (2000 + counts.resent, counts.resent), "{counts:?}");
}

/// A3: under Themis no NACK reaches the sender, and every slot carries its share.
#[test]
fn themis_blocks_every_false_nack() {
    for v6 in [false, true] {
        let lab = run(&fabric(Spray::Psn, Mode::Sound), &[Transfer { v6, ..Transfer::default() }]);
        let counts = lab.counts(0);
        assert_eq!((counts.sent, counts.nacks, counts.duplicates, counts.delivered), (2000, 0, 0, 2000));
        let counters = lab.tor.counters();
        assert!(counters.all_blocked() > 50, "{counters:?}");
        assert_eq!((counters.all_forwarded(), counters.compensated), (0, 0));
        assert_eq!(counters.all_blocked(), counts.nacks_sent);
        let sprayed: Vec<u64> = counters.paths.iter().map(|path| path.sprayed).collect();
        assert_eq!(sprayed, [500; 4]);
    }
}

/// A4: the letter of the paper makes the ToR send NACKs for packets that have arrived.
#[test]
fn the_letter_of_the_paper_sends_spurious_nacks() {
    let lab = run(&fabric(Spray::Psn, Mode::Literal), &[Transfer::default()]);
    let counts = lab.counts(0);
    let compensated = lab.tor.counters().compensated;
    assert!(compensated > 0);
    assert_eq!((counts.nacks, counts.duplicates), (compensated, compensated), "{counts:?}");
}

/// A5: with losses, only lost packets are sent again, except after a timeout.
#[test]
fn lost_packets_are_nacked_and_late_ones_are_not() {
    for seed in 1..=5 {
        let mut settings = fabric(Spray::Psn, Mode::Sound);
        settings.seed = seed;
        for spine in &mut settings.spines {
            spine.loss = Chance::new(0.01).unwrap();
        }
        let lab = run(&settings, &[Transfer::default()]);
        let (counts, counters) = (lab.counts(0), lab.tor.counters());
        let lost: u64 = counters.paths.iter().map(|path| path.lost).sum();
        assert!(lost > 5, "{lost}");
        assert_eq!(counts.delivered, 2000);
        // The NACKs themselves may be lost, too.
        assert!(counts.nacks <= counters.all_forwarded() + counters.compensated);
        // Every packet was sent once, and once more for each loss; ACKs may be lost, too, and a timeout may be in vain.
        assert!(counts.resent <= lost, "{counts:?}, lost {lost}");
        assert!(counts.duplicates <= counts.timeouts, "{counts:?}, lost {lost}");
    }
}

/// Eight queue pairs between two hosts, all of which start at PSN 0.
fn eight(template: &Transfer, port: impl Fn(u32, u32) -> u16, gap: Span) -> Vec<Transfer> {
    let start = |n: u64| Time::ZERO + Span::from_nanos(n * gap.nanos());
    let transfer = |n: u32| Transfer {
        qps: (17 + n, 100 + n),
        first_psn: 0,
        packets: 500,
        source_port: port(17 + n, 100 + n),
        start: start(n.into()),
        ..template.clone()
    };
    (0..8).map(transfer).collect()
}

/// A7: queue pairs with Linux's source ports are all learnt at their first reply; with one port for all, as UCX may have,
/// each is learnt as soon as it is ahead of the others that are unknown.
#[test]
fn many_queue_pairs_that_start_at_the_same_psn_are_learnt() {
    let fold = |a, b| tor::fold(wire::bth::Qpn::new(a), wire::bth::Qpn::new(b));
    let (v6, vlan) =
        (Transfer { v6: true, ..Transfer::default() }, Transfer { vlan: Some(7), ..Transfer::default() });
    let untagged = Transfer { vlan: Some(0), ..Transfer::default() };
    for (transfers, folds) in [
        (eight(&v6, fold, Span::ZERO), true),
        (eight(&vlan, fold, Span::ZERO), true),
        (eight(&v6, |_, _| 0xC000, Span::from_millis(20)), false),
        (eight(&untagged, |_, _| 0xC000, Span::from_millis(20)), false),
    ] {
        let lab = run(&fabric(Spray::Psn, Mode::Sound), &transfers);
        let counters = lab.tor.counters();
        assert_eq!((counters.learnt, counters.unlearnt), (8, 0));
        let nacks_sent: u64 = (0..8).map(|n| lab.counts(n).nacks_sent).sum();
        assert_eq!(counters.all_blocked() + counters.all_forwarded() + counters.nacks_passed, nacks_sent);
        assert_eq!(counters.all_forwarded(), 0);
        assert!(!folds || counters.nacks_passed == 0, "{counters:?}");
        let by_flow: u64 = lab.tor.flows().map(|flow| u64::from(flow.blocked)).sum();
        assert_eq!(by_flow, counters.all_blocked());
        assert!(
            lab.tor.flows().all(|flow| flow.requester_qp.map(|qp| qp.value() + 83) == Some(flow.qp.value()))
        );
    }
}

/// Eight queue pairs in lock-step, with one port and one first PSN, cannot be told apart. Then all NACKs pass, and none is
/// judged by another connection's ring.
#[test]
fn queue_pairs_in_lock_step_fail_open() {
    let transfers = eight(&Transfer::default(), |_, _| 0xC000, Span::ZERO);
    let lab = run(&fabric(Spray::Psn, Mode::Sound), &transfers);
    let counters = lab.tor.counters();
    let nacks: u64 = (0..8).map(|n| lab.counts(n).nacks).sum();
    assert_eq!(counters.nacks_passed + counters.all_forwarded() + counters.compensated, nacks);
    assert_eq!(
        (counters.unlearnt, counters.all_forwarded(), counters.compensated),
        (0, 0, 0),
        "{counters:?}"
    );
    let fixed = Settings {
        themis: tor::Themis { fixed: fixed(&transfers), ..Default::default() },
        ..fabric(Spray::Psn, Mode::Sound)
    };
    let lab = run(&fixed, &transfers);
    let nacks: u64 = (0..8).map(|n| lab.counts(n).nacks).sum();
    assert_eq!((nacks, lab.tor.counters().nacks_passed), (0, 0));
}

/// The connections as an operator would list them.
fn fixed(transfers: &[Transfer]) -> Vec<tor::Connection> {
    let end = |ip: [u8; 4], qp| tor::End { ip: std::net::IpAddr::from(ip), qp: wire::bth::Qpn::new(qp) };
    let connection =
        |t: &Transfer| tor::Connection { a: end([10, 0, 0, 1], t.qps.0), b: end([10, 0, 0, 2], t.qps.1) };
    transfers.iter().map(connection).collect()
}

/// A8: go-back-N receivers gain nothing. The ToR says so, and the transfer completes.
#[test]
fn a_go_back_n_receiver_is_noticed() {
    let transfer = Transfer { recovery: Recovery::GoBackN, packets: 500, ..Transfer::default() };
    let lab = run(&fabric(Spray::Psn, Mode::Sound), &[transfer]);
    let counts = lab.counts(0);
    assert!(counts.sent > 1000 && counts.delivered == 500, "{counts:?}");
    assert_eq!(lab.noted(|event| matches!(event, Event::DropsOutOfOrder { .. })), 1);
    // A receiver that keeps packets causes no such warning.
    let lab = run(&fabric(Spray::Psn, Mode::Sound), &[Transfer::default()]);
    assert_eq!(lab.noted(|event| matches!(event, Event::DropsOutOfOrder { .. })), 0);
}

/// A9: responses to reads stay on one path and in order.
#[test]
fn read_responses_stay_in_order() {
    let transfer = Transfer { read: true, window: 1, packets: 500, ..Transfer::default() };
    let lab = run(&fabric(Spray::Psn, Mode::Sound), &[transfer]);
    let counts = lab.counts(0);
    assert_eq!((counts.sent, counts.nacks, counts.nacks_sent), (500, 0, 0));
    let counters = lab.tor.counters();
    assert_eq!(counters.ports[1].received.responses, 500);
    // The requests are sprayed, and all 500 responses take one path.
    let other: Vec<u64> = counters.paths.iter().map(|path| path.frames - path.sprayed).collect();
    assert_eq!((other.iter().max(), other.iter().sum()), (Some(&500), 500), "{other:?}");
}

/// A10: a path fails for a while and its slots move; each move can cost one false NACK.
#[test]
fn a_failed_path_costs_at_most_a_nack_per_slot_that_moves() {
    for detection in [Span::ZERO, Span::from_millis(5)] {
        let mut settings = fabric(Spray::Psn, Mode::Sound);
        settings.detection = detection;
        let at = |millis| Time::ZERO + Span::from_millis(millis);
        settings.spines[2].down = vec![(at(100), at(300))];
        let lab = run(&settings, &[Transfer::default()]);
        let (counts, counters) = (lab.counts(0), lab.tor.counters());
        assert_eq!(counts.delivered, 2000);
        assert!(counters.paths[2].lost_down > 0, "{counters:?}");
        let moved: u16 = lab
            .log
            .iter()
            .filter_map(|note| match note.event {
                Event::SlotsMoved { moved, .. } => Some(moved),
                _ => None,
            })
            .sum();
        assert_eq!(moved, 2);
        let lost: u64 = counters.paths.iter().map(|path| path.lost_down).sum();
        let spurious = counts.resent.saturating_sub(lost);
        assert!(
            spurious <= u64::from(moved) && counts.duplicates <= u64::from(moved) + counts.timeouts,
            "{counts:?} {lost}"
        );
    }
}

/// A12: a ToR that starts in the middle of a transfer learns the connection.
#[test]
fn a_restarted_tor_learns_anew() {
    let settings = fabric(Spray::Psn, Mode::Sound);
    let mut lab = Lab::new(&settings, line(), &[Transfer::default()]);
    lab.run(Time::ZERO + Span::from_millis(200));
    assert!(!lab.done());
    lab.restart(&settings);
    lab.run(Time::ZERO + Span::from_secs(100));
    assert!(lab.done() && lab.tor.counters().learnt == 1);
    assert_eq!(lab.counts(0).delivered, 2000);
}

/// Blocked NACKs that are dropped instead of turned into ACKs: the same counts.
#[test]
fn a_dropped_nack_serves_as_well_as_an_ack() {
    let mut settings = fabric(Spray::Psn, Mode::Sound);
    settings.themis.on_block = tor::OnBlock::Drop;
    let lab = run(&settings, &[Transfer::default()]);
    let counts = lab.counts(0);
    assert_eq!((counts.sent, counts.nacks, counts.duplicates), (2000, 0, 0));
    assert!(lab.tor.counters().all_blocked() > 50);
}

/// The source port is rewritten by slot; the NIC accepts the packets, because the port is restored or the ICRC updated.
#[test]
fn rewritten_source_ports_leave_the_icrc_right() {
    for steer in [tor::Steer::XorUndo, tor::Steer::XorIcrc] {
        let mut settings = fabric(Spray::Psn, Mode::Sound);
        settings.steer = steer;
        let mut lab = Lab::new(&settings, line(), &[Transfer::default()]);
        let ports = std::rc::Rc::new(std::cell::RefCell::new(std::collections::BTreeSet::new()));
        let seen = ports.clone();
        lab.tap = Some(Box::new(move |_, port, bytes| {
            // `parse` checks the ICRC.
            let (repr, _) = lab::parse(bytes).expect("a right ICRC");
            if port == tor::PortId(1) {
                seen.borrow_mut().insert(repr.source_port);
            }
            true
        }));
        lab.run(Time::ZERO + Span::from_secs(100));
        let counts = lab.counts(0);
        assert_eq!((counts.sent, counts.nacks, counts.delivered), (2000, 0, 2000));
        assert_eq!(ports.borrow().len(), if steer == tor::Steer::XorUndo { 1 } else { 4 });
    }
}

/// A6 in small: with a NIC that a NACK slows down, spraying alone is slow, and Themis keeps the rate of one path.
#[test]
fn themis_keeps_the_rate_of_a_nic_that_nacks_slow_down() {
    let time = |spray, mode| {
        let transfer = Transfer { packets: 6000, window: 512, nack_cut: 50, ..Transfer::default() };
        let lab = run(&fabric(spray, mode), &[transfer]);
        lab.counts(0).finished.unwrap().nanos() as f64
    };
    let ecmp = time(Spray::Ecmp, Mode::Off);
    assert!(time(Spray::Psn, Mode::Sound) < 1.1 * ecmp);
    assert!(time(Spray::Rps, Mode::Off) > 3.0 * ecmp);
}

/// Injected events: each of them once, and what comes of it.
#[test]
fn injected_events_happen_once_and_are_counted() {
    use tor::events::{Action, Matched, Rule};
    let on = |psn, action| Rule { psn: Some(psn), from: Some(tor::PortId(0)), ..Rule::new(action) };
    for (action, nacks, duplicates) in [
        (Action::Drop, 1, 0),
        (Action::Corrupt(3), 1, 0),
        (Action::Mark, 0, 0),
        (Action::Duplicate, 0, 1),
        // Late on its own path, the packet looks lost, and Themis cannot know better.
        (Action::Delay(Span::from_millis(8)), 1, 1),
        (Action::Reorder(3), 0, 0),
    ] {
        let mut settings = fabric(Spray::Psn, Mode::Sound);
        settings.events = vec![on(50, action)];
        let transfer = Transfer { ecn: wire::ecn::Ecn::Ect0, ..Transfer::default() };
        let lab = run(&settings, &[transfer]);
        let counts = lab.counts(0);
        assert_eq!(lab.tor.counters().injected, 1, "{action:?}");
        assert_eq!(
            (counts.nacks, counts.duplicates, counts.delivered),
            (nacks, duplicates, 2000),
            "{action:?}"
        );
        assert_eq!(counts.marked, u64::from(action == Action::Mark));
    }
    let mut settings = fabric(Spray::Rps, Mode::Off);
    settings.events = vec![Rule { kind: Matched::Nack, nth: (1, u64::MAX), ..Rule::new(Action::Stop) }];
    let counts = run(&settings, &[Transfer::default()]).counts(0);
    assert!(counts.nacks == 0 && counts.nacks_sent > 50, "{counts:?}");
}

/// The log and the frames depend on the frames that came in and their times, not on how often the ToR is called.
#[test]
fn a_replay_makes_the_same_decisions() {
    let mut settings = fabric(Spray::Psn, Mode::Sound);
    settings.spines[1].loss = Chance::new(0.02).unwrap();
    settings.spines[2].jitter = Span::from_micros(300);
    let mut lab = Lab::new(&settings, line(), &[Transfer::default()]);
    let record = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let into = record.clone();
    lab.up = Some(Box::new(move |at, port, bytes| into.borrow_mut().push((at, port, bytes.clone()))));
    lab.run(Time::ZERO + Span::from_secs(100));
    lab.run_on(lab.now + Span::from_millis(60));
    let live: Vec<String> = lab.log.iter().map(ToString::to_string).collect();
    assert!(live.len() > 50);

    for (n, port) in settings.ports.iter_mut().enumerate() {
        port.stations.push(lab::mac(n));
    }
    let mut log = Vec::new();
    let counters = tor::replay(&settings, record.borrow().iter().cloned(), |told| {
        if let tor::Told::Note(note) = told {
            log.push(note.to_string());
        }
    });
    assert_eq!(log, live);
    assert_eq!(&counters, lab.tor.counters());
}

use proptest::prelude::*;

/// Transfers between four hosts over random fabrics, without loss.
fn worlds() -> impl Strategy<Value = (Settings, Vec<Transfer>)> {
    let spine = (0..3_000u64, 0..400u64).prop_map(|(delay, jitter)| Spine {
        delay: Span::from_micros(delay),
        jitter: Span::from_micros(jitter),
        ..Spine::default()
    });
    let transfer = (
        0..4usize,
        1..4usize,
        1..400u64,
        8..200u64,
        1..9u64,
        0..3_000u64,
        0..20u64,
        any::<bool>(),
        4..1024usize,
    )
        .prop_map(|(from, other, packets, window, message, reply, start, v6, payload)| Transfer {
            from,
            to: (from + other) % 4,
            packets,
            window,
            message,
            payload: payload / 4 * 4,
            reply_delay: Span::from_micros(reply),
            start: Time::ZERO + Span::from_millis(start),
            timeout: Span::from_millis(400),
            v6,
            ..Transfer::default()
        });
    let first = prop_oneof![Just(0u32), Just(0xFF_FFF0), 0..1u32 << 24];
    let ports = (any::<bool>(), any::<bool>());
    (
        prop::collection::vec(spine, 1..9),
        prop::collection::vec((transfer, first), 1..8),
        ports,
        any::<u64>(),
        any::<bool>(),
    )
        .prop_map(|(spines, transfers, (same_port, same_first), seed, drop)| {
            let mut settings = Settings::of_ports(4);
            settings.spines = spines;
            settings.seed = seed;
            settings.themis.mode = Mode::Sound;
            // The last hop's round trip in small packets, with the slowest reply.
            settings.themis.ring = 1024;
            settings.themis.on_block = if drop { tor::OnBlock::Drop } else { tor::OnBlock::Ack };
            for port in &mut settings.ports {
                port.rate = Rate::from_bits(40_000_000);
                port.last_hop = Span::from_micros(100);
            }
            let transfers = (0u32..).zip(transfers).map(|(n, (transfer, first_psn))| Transfer {
                qps: (100 + n, 200 + n),
                source_port: 0xC000 + if same_port { 0 } else { n as u16 },
                first_psn: if same_first { 0 } else { first_psn },
                ..transfer
            });
            (settings, transfers.collect())
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// Without loss, no NACK that Themis judges reaches a sender, whatever the fabric and the connections are. The only
    /// NACKs that pass are those of connections not yet known.
    #[test]
    fn no_judged_nack_is_false((settings, transfers) in worlds()) {
        let mut lab = Lab::new(&settings, line(), &transfers);
        lab.run(Time::ZERO + Span::from_secs(100));
        prop_assert!(lab.done());
        let counters = lab.tor.counters();
        prop_assert_eq!((counters.all_forwarded(), counters.compensated, counters.unlearnt), (0, 0, 0), "{:?}", counters);
        let nacks: u64 = (0..transfers.len()).map(|n| lab.counts(n).nacks).sum();
        prop_assert!(nacks <= counters.nacks_passed);
    }

    /// With loss, every transfer completes, and all that is sent again in vain comes of timeouts and of connections not yet
    /// known.
    #[test]
    fn losses_are_repaired((settings, transfers) in worlds(), loss in 0.0..0.03f64) {
        let mut settings = settings;
        for spine in &mut settings.spines {
            spine.loss = Chance::new(loss).unwrap();
        }
        let mut lab = Lab::new(&settings, line(), &transfers);
        lab.run(Time::ZERO + Span::from_secs(1000));
        prop_assert!(lab.done());
        let counters = lab.tor.counters();
        let sum = |of: fn(&lab::Counts) -> u64| (0..transfers.len()).map(|n| of(&lab.counts(n))).sum::<u64>();
        let allowed = sum(|c| c.timeouts) + counters.nacks_passed;
        prop_assert!(sum(|c| c.duplicates) <= allowed, "{:?}", (0..transfers.len()).map(|n| lab.counts(n)).collect::<Vec<_>>());
    }
}

/// The ToR jumps over the looks for idle connections in a long gap. It forgets what it forgets with every look.
#[test]
fn a_gap_of_any_length_takes_no_time_and_forgets_idle_connections() {
    let fold = |a, b| tor::fold(wire::bth::Qpn::new(a), wire::bth::Qpn::new(b));
    let lab = || {
        let transfers = eight(&Transfer::default(), fold, Span::from_millis(700));
        run(&fabric(Spray::Psn, Mode::Sound), &transfers)
    };
    let mut left = Vec::new();
    for secs in [1, 30, 57, 59, 61, 62, 64, 66, 68, 75, 200] {
        let (mut jumps, mut steps) = (lab(), lab());
        let end = jumps.now + Span::from_secs(secs);
        jumps.tor.tick(end, &mut jumps.pool);
        while steps.now < end {
            steps.now = (steps.now + Span::from_millis(7)).min(end);
            steps.tor.tick(steps.now, &mut steps.pool);
        }
        assert!(jumps.tor.flows().eq(steps.tor.flows()), "after {secs} s");
        assert_eq!(jumps.tor.poll_at(), steps.tor.poll_at());
        left.push(jumps.tor.flows().count());
    }
    assert!(
        left[0] == 8 && left.is_sorted_by(|a, b| a >= b) && left.iter().any(|n| (1..8).contains(n)),
        "{left:?}"
    );
    let mut lab = lab();
    lab.tor.tick(lab.now + Span::from_secs(10_000_000_000), &mut lab.pool);
    assert_eq!(lab.tor.flows().count(), 0);
}
