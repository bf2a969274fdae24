//! Scenes at one external switch.

use super::{Circuit, CnpTable, Collision, Config, Notification, Ramp, ReactionMode, Recovery, RecoveryMode};
use crate::bench::{Bench, datacentres, qp, reply};
use crate::feedback::FeedbackConfig;
use model::plan::{MarkAt, Marking};
use model::scheme::Handle;
use model::{Bytes, Kind, Plan, Probability, Psn, QpId, Time, Verdict};

/// Two datacentres of two racks with one host each: hosts 0 and 1 in the first, 2 and 3 in the second.
fn plan() -> Plan {
    let mut plan = datacentres(2);
    let marking = Marking {
        kmin: Bytes(10_000),
        kmax: Bytes(20_000),
        pmax: Probability::new(0.2),
        at: MarkAt::Dequeue,
        weight: 0,
    };
    plan.ports.iter_mut().for_each(|port| port.marking = Some(marking));
    plan
}

fn bench(plan: &Plan, node: &str, config: Config) -> Bench {
    Bench::telling(plan, node, &FeedbackConfig::LongHaul(config))
}

const PSN: Psn = Psn::new(0);

#[test]
fn marked_data_that_leaves_is_unmarked_and_causes_one_cnp_per_interval() {
    let plan = plan();
    let out = qp(&plan, 0, 2);
    // Of the times below, only 51 us is more than 50 us after the first CNP. The prototype sends a CNP for every mark, and
    // one more per interval.
    for (notification, times) in [
        (Notification::Paper, &[0, 51][..]),
        (Notification::Prototype, &[0, 0, 20, 40, 50, 51, 51]),
        (Notification::Off, &[]),
    ] {
        let mut bench = bench(&plan, "external0", Config { notification, ..Config::default() });
        let mut cnps = Vec::new();
        for us in [0, 20, 40, 50, 51] {
            bench.now = Time::from_us(us);
            let mut pkt = bench.data(out, PSN);
            pkt.mark();
            let seen = bench.see(pkt);
            assert_eq!(seen.pkt.marked(), notification == Notification::Off);
            assert!(seen.emitted.iter().all(|cnp| cnp.kind() == Kind::Cnp && cnp.to().0 == 0));
            cnps.extend(seen.emitted.iter().map(|_| us));
        }
        assert_eq!(cnps, times, "{notification:?}");
    }
}

#[test]
fn remote_cnps_share_the_interval_and_flags_are_cleared_like_frames() {
    let plan = plan();
    let out = qp(&plan, 0, 2);
    let mut bench = bench(&plan, "external0", Config::default());
    let mut marked = bench.data(out, PSN);
    marked.mark();
    assert_eq!(bench.see(marked).emitted.len(), 1);
    bench.now = Time::from_us(30);
    assert_eq!(bench.see(reply(&plan, Kind::Cnp, out, PSN)).verdict, Verdict::Drop);
    let flagged = reply(&plan, Kind::Ack, out, PSN).with_echo(true);
    let seen = bench.see(flagged);
    assert!(
        matches!(seen.verdict, Verdict::Forward(_)) && !seen.pkt.echo(),
        "the ACK continues without its flag"
    );
    bench.now = Time::from_us(60);
    assert!(matches!(bench.see(reply(&plan, Kind::Cnp, out, PSN)).verdict, Verdict::Forward(_)));
    assert!(!bench.see(flagged).pkt.echo(), "the forwarded CNP counts");
}

#[test]
fn a_local_cnp_carries_a_note_and_delays_its_flow_in_order() {
    let plan = plan();
    let into = qp(&plan, 2, 0);
    for reaction in [ReactionMode::Rate, ReactionMode::Delay] {
        let mut bench = bench(&plan, "external0", Config { reaction, ..Config::default() });
        let pass = bench.data(into, PSN);
        assert!(matches!(bench.see(pass).verdict, Verdict::Forward(_)), "nothing is held without a CNP");
        bench.now = Time::from_us(100);
        let cnp = bench.see(reply(&plan, Kind::Cnp, into, PSN));
        assert!(cnp.pkt.reacted() && matches!(cnp.verdict, Verdict::Forward(_)));
        let mut held = Vec::new();
        for n in 1..6 {
            bench.now = Time::from_ns(100_000 + 120 * n);
            let pkt = bench.data(into, Psn::new(n as u32));
            let seen = bench.see(pkt);
            assert_eq!(seen.verdict, Verdict::Hold, "{reaction:?}");
            held.extend(bench.held.keys().last().copied());
        }
        let mut left = Vec::new();
        let first = bench.alarm.unwrap();
        assert!(first >= Time::from_ns(108_120), "T_block is 8 us: {first}");
        while let Some(at) = bench.alarm {
            bench.now = at;
            left.extend(bench.woken().released.iter().map(|(handle, _)| *handle));
        }
        assert_eq!(left, held, "{reaction:?}");
        // After ten spans of 55 us T_block is 0, and DCQCN's rate leaves room for one packet.
        bench.now += Time::from_us(10_000);
        let pkt = bench.data(into, Psn::new(6));
        assert!(matches!(bench.see(pkt).verdict, Verdict::Forward(_)), "{reaction:?}");
    }
}

#[test]
fn frequent_cnps_double_the_delay_and_silence_halves_it() {
    let plan = plan();
    let into = qp(&plan, 2, 0);
    let config = Config { reaction: ReactionMode::Delay, ..Config::default() };
    // Time for which a packet is held that comes `after` the last of `cnps` CNPs, which are 50 us apart.
    let held = |cnps: u64, after: Time| {
        let mut bench = bench(&plan, "external0", config.clone());
        for n in 0..cnps {
            bench.now = Time::from_us(100 + 50 * n);
            bench.see(reply(&plan, Kind::Cnp, into, PSN));
        }
        bench.now += after;
        let pkt = bench.data(into, PSN);
        match bench.see(pkt).verdict {
            Verdict::Hold => bench.alarm.unwrap() - bench.now,
            _ => Time::ZERO,
        }
    };
    let soon = Time::from_us(1);
    // T_block is rounded up to whole passes of the pipeline, and a pass of this packet takes 7.5 ns at 1600 Gb/s.
    let near = |time: Time, us: u64| time >= Time::from_us(us) && time < Time::from_ns(1000 * us + 8);
    assert!(near(held(1, soon), 8) && near(held(2, soon), 16) && near(held(4, soon), 64));
    assert!(near(held(20, soon), 1000), "the long round trip: {}", held(20, soon));
    assert!(near(held(4, Time::from_us(56)), 32) && near(held(4, Time::from_us(111)), 16));
    assert_eq!(held(4, Time::from_us(56 * 5)), Time::ZERO);
}

#[test]
fn a_full_stash_releases_the_oldest_packets() {
    let plan = plan();
    let into = qp(&plan, 2, 0);
    let config = Config { flow_stash: Some(Bytes(4500)), ..Config::default() };
    let mut bench = bench(&plan, "external0", config);
    bench.see(reply(&plan, Kind::Cnp, into, PSN));
    let (mut held, mut released) = (Vec::new(), Vec::new());
    for n in 0..5 {
        let pkt = bench.data(into, Psn::new(n));
        let seen = bench.see(pkt);
        assert_eq!(seen.verdict, Verdict::Hold);
        released.extend(seen.released.iter().map(|(handle, _)| *handle));
        held.extend(bench.held.keys().last().copied());
    }
    assert_eq!(released, held[..2], "three frames of 1500 B fit");
}

#[test]
fn it_stands_in_switches_with_a_long_link() {
    let plan = plan();
    let feedback = FeedbackConfig::LongHaul(Config::default());
    let [external, tor] = ["external0", "tor0"].map(|name| plan.fabric.find(name).unwrap());
    assert!(feedback.place(&plan, &[external], false).is_ok());
    let wrong = feedback.place(&plan, &[external, tor], false).unwrap_err();
    assert!(wrong.text.contains("`tor0` has no long link"), "{wrong}");
    assert!(feedback.place(&plan, &[external, tor], true).is_ok());
    assert!(feedback.place(&plan, &[tor], true).unwrap_err().text.contains("no switch has a long link"));
    let built = |node| feedback.build(model::Site { plan: &plan, node }).is_some();
    assert!(built(external) && !built(tor));
}

#[test]
fn a_port_of_the_prototype_stands_still_without_further_packets() {
    let plan = plan();
    let into = qp(&plan, 2, 0);
    let config = Config { reaction: ReactionMode::Prototype, ..Config::default() };
    let mut bench = bench(&plan, "external0", config);
    bench.see(reply(&plan, Kind::Cnp, into, PSN));
    let pkt = bench.data(into, Psn::new(1));
    let seen = bench.see(pkt);
    assert_eq!(
        (seen.verdict, seen.released.len(), bench.alarm),
        (Verdict::Hold, 0, None),
        "the port stands still without an alarm"
    );
    // The next packet wakes the port: the first one has gone round and leaves.
    bench.now = Time::from_us(1);
    let pkt = bench.data(into, Psn::new(2));
    let seen = bench.see(pkt);
    assert_eq!((seen.verdict, seen.released.len()), (Verdict::Hold, 1));
}

#[test]
fn a_proactive_notification_clears_every_mark_and_its_cnp_leaves_after_a_delay() {
    let plan = plan();
    let (out, into) = (qp(&plan, 0, 2), qp(&plan, 2, 0));
    let config =
        Config { notification: Notification::Proactive, reaction: ReactionMode::Off, ..Config::default() };
    let mut bench = bench(&plan, "external0", config);
    let mut cnps = Vec::new();
    // The CNP for the mark at 0 leaves at 2 us, and 5 us have to pass from then on.
    for (us, flow) in [(0, out), (1, out), (3, out), (6, out), (7, out), (8, into)] {
        bench.now = Time::from_us(us);
        let mut pkt = bench.data(flow, PSN);
        assert!(!bench.start(pkt).0.marked());
        pkt.mark();
        let (after, made) = bench.start(pkt);
        assert!(!after.marked() && made.is_empty(), "the mark is cleared, and the CNP takes its time");
        while let Some(at) = bench.alarm.filter(|at| *at < bench.now + Time::from_us(3)) {
            bench.now = at;
            cnps.extend(bench.woken().emitted.iter().map(|cnp| (us, cnp.packet.to().0)));
        }
    }
    // Data in either direction counts: marks of this switch on data from the long link are answered over that link.
    assert_eq!(cnps, [(0, 0), (7, 0), (8, 2)]);
}

#[test]
fn a_cnp_may_draw_its_delay() {
    let plan = plan();
    let out = qp(&plan, 0, 2);
    let config = Config {
        notification: Notification::Proactive,
        cnp_delay: Some(Time::from_us(3)),
        cnp_delay_most: Some(Time::from_us(53)),
        ..Config::default()
    };
    let mut bench = bench(&plan, "external0", config);
    let mut delays = Vec::new();
    for n in 1..50 {
        bench.now = Time::from_us(100 * n);
        let mut pkt = bench.data(out, PSN);
        pkt.mark();
        bench.start(pkt);
        delays.push(bench.alarm.unwrap() - bench.now);
        bench.pass(Time::NEVER);
    }
    let (least, most) = (delays.iter().min().unwrap(), delays.iter().max().unwrap());
    assert!(*least >= Time::from_us(3) && *least < Time::from_us(10), "{least}");
    assert!(*most <= Time::from_us(53) && *most > Time::from_us(45), "{most}");
}

#[test]
fn without_an_entry_in_the_table_there_is_no_cnp() {
    let plan = plan();
    let (one, two) = (qp(&plan, 0, 2), qp(&plan, 1, 3));
    let table = CnpTable { entries: 1, install_delay: Time::from_us(10), removal_delay: Time::from_us(3) };
    let config = Config { cnp_table: Some(table), interval: Some(Time::ZERO), ..Config::default() };
    let mut bench = bench(&plan, "external0", config);
    let mut cnps = |us: u64, flow: QpId, psn: u32, last: bool| {
        bench.now = Time::from_us(us);
        let mut pkt = bench.data(flow, Psn::new(psn)).with_last(last);
        pkt.mark();
        bench.see(pkt).emitted.len()
    };
    assert_eq!(
        (cnps(0, one, 0, false), cnps(9, one, 1, false), cnps(11, one, 2, false)),
        (0, 0, 1),
        "it takes 10 us"
    );
    assert_eq!((cnps(12, two, 0, false), cnps(30, two, 1, false)), (0, 0), "the table is full");
    assert_eq!(cnps(31, one, 5, true), 1);
    assert_eq!(
        (cnps(33, one, 4, false), cnps(35, one, 3, false)),
        (1, 0),
        "removed after 3 us; late packets change nothing"
    );
    assert_eq!((cnps(36, two, 2, false), cnps(47, two, 3, true)), (0, 1), "now it has room");
    assert_eq!((cnps(48, two, 4, false), cnps(60, two, 5, true)), (1, 1), "the next message keeps the entry");
    assert_eq!((cnps(64, one, 6, false), cnps(75, one, 7, false)), (0, 1), "and a message brings it back");
    assert_eq!((bench.counter("cnps_unaddressed"), bench.counter("cnp_table_peak")), (7, 1));
}

/// A switch with `reaction = "loop"` and a loop of 10 us, so that the times of the test bench do not matter.
fn looped(plan: &Plan, circuit: Circuit) -> Bench {
    let circuit = Circuit { delay: Time::from_us(10), ..circuit };
    bench(plan, "external0", Config { reaction: ReactionMode::Loop, circuit, ..Config::default() })
}

/// Sends `cnps` CNPs of a flow.
fn report(plan: &Plan, bench: &mut Bench, flow: QpId, cnps: u32) {
    (0..cnps).for_each(|_| {
        let seen = bench.see(reply(plan, Kind::Cnp, flow, PSN));
        assert!(matches!(seen.verdict, Verdict::Forward(_)) && !seen.pkt.reacted());
    });
}

/// Data of a flow arrives; its handle if it is held.
fn enter(bench: &mut Bench, flow: QpId, psn: u32) -> Option<Handle> {
    let pkt = bench.data(flow, Psn::new(psn));
    match bench.see(pkt).verdict {
        Verdict::Hold => bench.held.keys().last().copied(),
        _ => None,
    }
}

/// Packets in the order in which they leave, with the time, us.
fn leave(bench: &mut Bench) -> Vec<(Handle, u64)> {
    let mut left = Vec::new();
    while let Some(at) = bench.alarm {
        bench.now = at;
        let released = bench.woken().released;
        left.extend(released.into_iter().map(|(handle, _)| (handle, at.ps() / 1_000_000)));
    }
    left
}

/// Passes of a packet after so many CNPs, read from the time that it stays in the loop.
fn passes(circuit: &Circuit, cnps: u32) -> u64 {
    let plan = plan();
    let into = qp(&plan, 2, 0);
    let mut bench = looped(&plan, circuit.clone());
    assert_eq!(enter(&mut bench, into, 0), None, "no pass without a CNP");
    report(&plan, &mut bench, into, cnps);
    let from = bench.now.ps() / 1_000_000;
    let handle = enter(&mut bench, into, 1).unwrap();
    let left = leave(&mut bench);
    assert_eq!(left[0].0, handle);
    assert_eq!((left.len() as u64, bench.counter("stash_left")), (1, 0));
    assert_eq!(bench.counter("resubmissions"), (left[0].1 - from) / 10);
    (left[0].1 - from) / 10
}

#[test]
fn passes_grow_about_as_twice_the_root_of_the_cnps() {
    let none = Recovery { mode: RecoveryMode::None, ..Recovery::default() };
    let circuit = Circuit { recovery: none, ..Circuit::default() };
    // The second CNP makes the second pass and raises the threshold from 5 to 6, which the seventh CNP reaches. The next
    // one begins a new count.
    let got: Vec<u64> = [1, 2, 6, 7, 8, 14, 15].map(|cnps| passes(&circuit, cnps)).to_vec();
    assert_eq!(got, [1, 2, 2, 3, 4, 4, 5]);
    let many = passes(&circuit, 1000);
    assert!((58..=66).contains(&many), "{many}");
    let bounded = Circuit { most_passes: 4, ..circuit.clone() };
    assert_eq!(passes(&bounded, 1000), 4);
    let twenty = Circuit { ramp: Ramp::Twenty, ..circuit };
    let got: Vec<u64> = [1, 2, 10, 11, 19, 20, 40].map(|cnps| passes(&twenty, cnps)).to_vec();
    assert_eq!(got, [1, 2, 10, 10, 10, 11, 12]);
}

#[test]
fn packets_of_the_loop_share_its_rate() {
    let plan = plan();
    let into = qp(&plan, 2, 0);
    let stay = |background: u32, packets: u32| {
        let circuit = Circuit { rate: model::Rate::from_gbps(1), background, ..Circuit::default() };
        let mut bench = looped(&plan, circuit);
        report(&plan, &mut bench, into, 1);
        let from = bench.now.ps() / 1_000_000;
        (0..packets).for_each(|psn| assert!(enter(&mut bench, into, psn).is_some()));
        leave(&mut bench).last().unwrap().1 - from
    };
    // A frame takes 12.3 us at 1 Gb/s, and the loop has a delay of 10 us.
    assert_eq!(stay(0, 1), 22);
    assert!((130..140).contains(&stay(0, 10)), "{}", stay(0, 10));
    // Ten packets that circle for ever make a pass as long as eleven frames.
    let full = stay(10, 1);
    assert!((115..=136).contains(&full), "{full}");
}

#[test]
fn recovery_keeps_the_order_or_gives_it_up() {
    let plan = plan();
    let into = qp(&plan, 2, 0);
    for (mode, orderly, passes) in
        [(RecoveryMode::Ordered, true, 20), (RecoveryMode::Direct, false, 20), (RecoveryMode::None, true, 50)]
    {
        let recovery = Recovery { after: Time::from_us(105), mode };
        let circuit = Circuit { passes: 50, recovery, ..Circuit::default() };
        let mut bench = looped(&plan, circuit);
        report(&plan, &mut bench, into, 1);
        // Packets enter all over a pass, so that recovery begins while some of them are half round.
        let entered: Vec<Handle> = (0..8)
            .map(|psn| {
                bench.now += Time::from_us(1);
                enter(&mut bench, into, psn).unwrap()
            })
            .collect();
        let left: Vec<Handle> = leave(&mut bench).into_iter().map(|(handle, _)| handle).collect();
        assert_eq!(left == entered, orderly, "{mode:?}: {left:?}");
        assert_eq!(left.len(), 8);
        let (made, early) = (bench.counter("resubmissions"), bench.counter("left_early"));
        assert!(made <= 8 * passes, "{mode:?}: {made} passes");
        assert_eq!(early, if mode == RecoveryMode::None { 0 } else { 8 });
    }
}

#[test]
fn flows_compete_for_places_and_a_processor_is_late() {
    let plan = plan();
    let (one, two) = (qp(&plan, 2, 0), qp(&plan, 3, 1));
    for (on_collision, held) in [(Collision::Ignore, false), (Collision::Share, true)] {
        let mut bench = looped(&plan, Circuit { slots: Some(1), on_collision, ..Circuit::default() });
        report(&plan, &mut bench, one, 1);
        report(&plan, &mut bench, two, 1);
        assert!(enter(&mut bench, one, 0).is_some());
        assert_eq!(enter(&mut bench, two, 0).is_some(), held, "{on_collision:?}");
        assert_eq!(bench.counter("collisions"), 1);
    }
    let mut bench = looped(&plan, Circuit { cpu_delay: Time::from_ms(2), ..Circuit::default() });
    report(&plan, &mut bench, one, 1);
    assert!(enter(&mut bench, one, 0).is_none());
    bench.now += Time::from_ms(2);
    assert!(enter(&mut bench, one, 1).is_some());
}

#[test]
fn a_cnp_of_a_local_receiver_may_pause_the_long_link() {
    let plan = plan();
    let into = qp(&plan, 2, 0);
    let config =
        Config { reaction: ReactionMode::Pause, pause: Some(Time::from_us(30)), ..Config::default() };
    let mut bench = bench(&plan, "external0", config);
    let mut pauses = Vec::new();
    for us in [0, 10, 20] {
        bench.now = Time::from_us(us);
        pauses.extend(bench.see(reply(&plan, Kind::Cnp, into, PSN)).pauses);
    }
    let long = plan.fabric.route(bench.node, model::HostId(2))[0];
    assert_eq!(pauses, [(long, true)], "one pause for all");
    while let Some(at) = bench.alarm {
        bench.now = at;
        pauses.extend(bench.woken().pauses);
    }
    assert_eq!(pauses, [(long, true), (long, false)]);
    assert!(bench.now > Time::from_us(50), "it ends 30 us after the last CNP");
}
