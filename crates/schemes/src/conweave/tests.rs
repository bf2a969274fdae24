//! Scenes at single switches.

use super::*;
use crate::SchemeConfig;
use crate::bench::{Bench, Seen, leaf_spine, pods, qp};
use model::scheme::Handle;
use model::{HostId, Psn, QpId};
use tags::{between, stamp};

fn bench(plan: &Plan, switch: &str, config: &Config) -> Bench {
    Bench::new(plan, switch, &SchemeConfig::Conweave(config.clone()))
}

/// Header on a packet that comes from a host of the near ToR.
fn send(near: &mut Bench, flow: QpId) -> Header {
    near.tag = 0;
    let seen = near.see(near.data(flow, Psn::new(0)));
    let header = Header::read(seen.tag);
    // Ports of a leaf: its one host, then the spines.
    assert_eq!(seen.verdict, Verdict::Forward(PortIndex(header.path + 1)));
    header
}

/// A signal from the far ToR arrives.
fn hear(near: &mut Bench, flow: QpId, signal: TorSignal) {
    near.tag = signal.tag();
    let sender = near.site().qp(flow).from;
    let seen = near.see(Packet::new(Kind::Signal, flow, sender, Psn::new(0), 64));
    assert_eq!(seen.verdict, Verdict::Drop, "the signal ends here");
}

/// Latest reply: 4.26 us around an idle fabric, plus 4 us.
const LATE: Time = Time::from_ns(8_257);

/// Sends the first packet of a flow and lets its reply be late; returns the header on the old path.
fn late(near: &mut Bench, flow: QpId) -> Header {
    let first = send(near, flow);
    assert!(first.request && !first.tail && !first.rerouted);
    near.now += LATE;
    first
}

#[test]
fn replies_in_time_keep_the_path_and_begin_epochs() {
    let plan = leaf_spine(2, 4, 1);
    let flow = qp(&plan, 0, 1);
    let mut near = bench(&plan, "leaf0", &Config::default());
    let first = send(&mut near, flow);
    assert!(first.request);
    for epoch in 1..10 {
        let next = send(&mut near, flow);
        assert!(!next.request && !next.tail && !next.rerouted);
        near.now += Time::from_us(7);
        hear(&mut near, flow, TorSignal::Reply((epoch - 1) % 4));
        let next = send(&mut near, flow);
        assert_eq!((next.epoch, next.request, next.path), (epoch % 4, true, first.path));
    }
    assert_eq!((near.counter("epochs"), near.counter("reroutes")), (10, 0));
}

#[test]
fn a_late_reply_reroutes_the_flow_once_until_clear() {
    let plan = leaf_spine(2, 4, 1);
    let flow = qp(&plan, 0, 1);
    let mut near = bench(&plan, "leaf0", &Config::default());
    let old = late(&mut near, flow);
    let tail = send(&mut near, flow);
    assert_eq!((tail.path, tail.epoch, tail.tail, tail.rerouted), (old.path, 0, true, false));
    let new = send(&mut near, flow);
    assert_ne!(new.path, old.path);
    assert_eq!((new.tail, new.rerouted, new.request, new.stamp), (false, true, false, tail.stamp));
    near.now += Time::from_us(50);
    hear(&mut near, flow, TorSignal::Reply(0)); // a late reply has no effect
    hear(&mut near, flow, TorSignal::Clear(3)); // CLEAR of another epoch
    assert_eq!(send(&mut near, flow), new, "no second move before CLEAR");
    hear(&mut near, flow, TorSignal::Clear(0));
    let next = send(&mut near, flow);
    assert_eq!((next.epoch, next.request, next.rerouted, next.path), (1, true, false, new.path));
    assert_eq!((near.counter("epochs"), near.counter("reroutes")), (2, 1));
}

#[test]
fn a_flow_keeps_its_path_if_all_others_are_busy() {
    let plan = leaf_spine(2, 4, 1);
    let flow = qp(&plan, 0, 1);
    let mut near = bench(&plan, "leaf0", &Config::default());
    let old = late(&mut near, flow);
    let others: Vec<u16> = (0..4).filter(|path| *path != old.path).collect();
    others.iter().for_each(|&path| hear(&mut near, flow, TorSignal::Notify(path)));
    for _ in 0..5 {
        let next = send(&mut near, flow);
        assert_eq!((next.path, next.tail, next.rerouted), (old.path, false, false));
    }
    assert_eq!((near.counter("reroutes"), near.counter("reroutes_aborted")), (0, 1));
    hear(&mut near, flow, TorSignal::Reply(0));
    assert!(send(&mut near, flow).request, "the late reply begins an epoch");
    // The other paths are busy for 16 us.
    near.now += Time::from_us(17);
    assert!(send(&mut near, flow).tail);
    assert!(others.contains(&send(&mut near, flow).path));
}

#[test]
fn a_flow_without_a_free_path_begins_a_new_epoch_if_its_reply_is_lost() {
    let plan = leaf_spine(2, 2, 1);
    let flow = qp(&plan, 0, 1);
    let mut near = bench(&plan, "leaf0", &Config::default());
    let old = late(&mut near, flow);
    hear(&mut near, flow, TorSignal::Notify(1 - old.path));
    assert!(!send(&mut near, flow).tail, "the other path is busy");
    let late = near.now;
    // The flow never pauses, and the reply is lost.
    let mut next = old;
    while !next.request || next.epoch == old.epoch {
        near.now += Time::from_ns(900);
        next = send(&mut near, flow);
        assert!(near.now - late < Time::from_us(302), "theta_inactive is 300 us");
    }
    assert_eq!((next.path, next.epoch), (old.path, 1));
    assert!(near.now - late > Time::from_us(300));
}

#[test]
fn paths_are_busy_per_destination_rack() {
    let plan = leaf_spine(3, 2, 1);
    let (one, two) = (qp(&plan, 0, 1), qp(&plan, 0, 2));
    let mut near = bench(&plan, "leaf0", &Config::default());
    let (first, second) = (send(&mut near, one), send(&mut near, two));
    near.now += LATE;
    hear(&mut near, one, TorSignal::Notify(1 - first.path));
    hear(&mut near, one, TorSignal::Notify(1 - second.path));
    assert!(!send(&mut near, one).tail);
    assert!(send(&mut near, two).tail);
}

#[test]
fn a_new_epoch_begins_after_silence_and_after_a_lost_clear() {
    let plan = leaf_spine(2, 8, 1);
    let flow = qp(&plan, 0, 1);
    let mut near = bench(&plan, "leaf0", &Config::default());
    let mut paths = std::collections::BTreeSet::new();
    for _ in 0..20 {
        let header = send(&mut near, flow);
        assert!(header.request && !header.rerouted);
        paths.insert(header.path);
        near.now += Time::from_us(301);
    }
    assert!(paths.len() > 2 && near.counter("reroutes") == 0, "{paths:?}");
    assert!(near.counter("idle_moves") > 2);
    let (mut last, mut tail) = (late(&mut near, flow), send(&mut near, flow));
    assert!(tail.tail);
    // The flow never pauses, and CLEAR never comes.
    for _ in 0..301 {
        near.now += Time::from_ns(900);
        (last, tail) = (send(&mut near, flow), last);
    }
    assert!(tail.rerouted && last.request && last.path == tail.path);
}

#[test]
fn only_flows_on_a_failed_uplink_move() {
    let plan = leaf_spine(9, 4, 1);
    let flows: Vec<QpId> = (1..9).map(|to| qp(&plan, 0, to)).collect();
    let mut near = bench(&plan, "leaf0", &Config::default());
    let before: Vec<u16> = flows.iter().map(|&flow| send(&mut near, flow).path).collect();
    near.reroute(&[("leaf0", "spine2")]);
    for (&flow, &path) in flows.iter().zip(&before) {
        let header = send(&mut near, flow);
        assert_ne!(header.path, 2);
        assert_eq!((header.path != path, header.request), (path == 2, path == 2));
    }
    let moved = before.iter().filter(|path| **path == 2).count() as u64;
    assert_eq!(near.counter("failed_paths"), moved);
    assert!(moved > 0);
    // No flow goes to the dead uplink, however late replies are.
    for _ in 0..50 {
        near.now += LATE;
        assert!(flows.iter().all(|&flow| send(&mut near, flow).path != 2));
        near.now += Time::from_us(301);
    }
    near.reroute(&[]);
    let back = (0..50).any(|_| {
        near.now += Time::from_us(301);
        send(&mut near, flows[0]).path == 2
    });
    assert!(back);
}

#[test]
fn a_single_path_needs_no_requests() {
    let plan = leaf_spine(2, 1, 1);
    let flow = qp(&plan, 0, 1);
    let mut near = bench(&plan, "leaf0", &Config::default());
    for _ in 0..5 {
        near.now += LATE;
        assert_eq!(send(&mut near, flow), Header::default());
    }
    assert_eq!(near.counter("epochs"), 0);
}

#[test]
fn on_three_tiers_a_path_is_an_uplink_and_a_core() {
    let plan = pods(2, 1, &[2, 2]);
    let flow = qp(&plan, 0, 1);
    let mut edge = bench(&plan, "edge0.0", &Config::default());
    let mut cores = std::collections::BTreeSet::new();
    for _ in 0..60 {
        edge.tag = 0;
        let seen = edge.see(edge.data(flow, Psn::new(0)));
        let Verdict::Forward(up) = seen.verdict else { panic!("{seen:?}") };
        let mut above = bench(&plan, &format!("up0.{}", up.0 - 1), &Config::default());
        above.tag = seen.tag;
        let Verdict::Forward(core) = above.see(above.data(flow, Psn::new(0))).verdict else { panic!() };
        cores.insert((Header::read(seen.tag).path, up, core));
        edge.now += Time::from_ms(2); // silence longer than `theta-inactive`
    }
    let ports: std::collections::BTreeSet<_> = cores.iter().map(|(_, up, core)| (*up, *core)).collect();
    assert_eq!((cores.len(), ports.len()), (4, 4), "{cores:?}");
}

/// A packet arrives at the receiver's ToR.
fn arrive(far: &mut Bench, flow: QpId, header: Header) -> Seen {
    far.tag = header.tag();
    far.see(far.data(flow, Psn::new(0)))
}

fn signals(seen: &Seen) -> Vec<TorSignal> {
    seen.made.iter().filter_map(|e| TorSignal::read(e.tag)).collect()
}

const PASSES: Verdict = Verdict::Forward(PortIndex(0));

/// Headers of epoch 0: on the old path, the TAIL, and on the new path. `us` is when the packet, or its TAIL, was sent.
fn old(us: u64) -> Header {
    Header { stamp: stamp(Time::from_us(us)), path: 1, ..Header::default() }
}

fn tail(us: u64) -> Header {
    Header { tail: true, ..old(us) }
}

fn new(us: u64) -> Header {
    Header { rerouted: true, path: 2, ..old(us) }
}

#[test]
fn overtaking_packets_are_held_until_the_tail_and_leave_in_order() {
    let plan = leaf_spine(2, 4, 1);
    let flow = qp(&plan, 0, 1);
    let mut far = bench(&plan, "leaf1", &Config::default());
    let asked = arrive(&mut far, flow, Header { request: true, ..old(1) });
    assert_eq!((asked.verdict, signals(&asked)), (PASSES, vec![TorSignal::Reply(0)]));
    assert_eq!((asked.made[0].packet.to(), asked.made[0].packet.frame()), (HostId(0), 64));
    for _ in 0..3 {
        assert_eq!(arrive(&mut far, flow, new(3)).verdict, Verdict::Hold);
    }
    assert_eq!(arrive(&mut far, flow, old(2)).verdict, PASSES);
    let seen = arrive(&mut far, flow, tail(3));
    assert_eq!((seen.verdict, signals(&seen)), (PASSES, vec![TorSignal::Clear(0)]));
    assert_eq!(seen.released, [0, 1, 2].map(|n| (Handle(n), PortIndex(0))));
    assert_eq!(arrive(&mut far, flow, new(3)).verdict, PASSES);
    let names = ["holds", "held_peak", "held_bytes_peak", "reorder_queues_peak", "resume_timers"];
    assert_eq!(names.map(|name| far.counter(name)), [3, 3, 3 * 1500, 1, 0]);
}

#[test]
fn without_a_tail_a_timer_releases_held_packets_at_the_expected_time() {
    let plan = leaf_spine(2, 4, 1);
    let flow = qp(&plan, 0, 1);
    let mut far = bench(&plan, "leaf1", &Config::default());
    arrive(&mut far, flow, old(10));
    let came = far.now;
    // The TAIL was sent 4 us after the newest packet of the old path, so it is expected 4 us after that packet's
    // arrival, plus 16 us.
    assert_eq!(arrive(&mut far, flow, new(14)).verdict, Verdict::Hold);
    let gap = between(stamp(Time::from_us(10)), stamp(Time::from_us(14)));
    assert_eq!(far.alarm, Some(came + gap + Time::from_us(16)));
    far.pass(came + Time::from_us(19));
    arrive(&mut far, flow, old(11));
    let resume = far.now + between(stamp(Time::from_us(11)), stamp(Time::from_us(14))) + Time::from_us(16);
    far.pass(resume - Time(1));
    assert_eq!(far.held.len(), 1, "another packet of the old path has put the timer off");
    far.pass(resume);
    assert!(far.held.is_empty());
    assert_eq!(arrive(&mut far, flow, new(14)).verdict, PASSES, "packets are no longer held");
    let seen = arrive(&mut far, flow, tail(14));
    assert_eq!((seen.verdict, signals(&seen)), (PASSES, vec![TorSignal::Clear(0)]));
    assert_eq!(far.counter("resume_timers"), 1);
}

#[test]
fn without_packets_of_the_old_path_the_timer_has_its_default() {
    let plan = leaf_spine(2, 4, 1);
    let flow = qp(&plan, 0, 1);
    let mut far = bench(&plan, "leaf1", &Config::default());
    assert_eq!(arrive(&mut far, flow, new(14)).verdict, Verdict::Hold);
    assert_eq!(far.alarm, Some(far.now + Time::from_us(200)));
}

#[test]
fn packets_pass_and_are_counted_if_every_reorder_queue_is_taken() {
    let plan = leaf_spine(4, 2, 1);
    let config = Config { reorder_queues: 2, ..Config::default() };
    let mut far = bench(&plan, "leaf1", &config);
    let flows = [0, 2, 3].map(|from| qp(&plan, from, 1));
    let verdicts = flows.map(|flow| arrive(&mut far, flow, new(5)).verdict);
    assert_eq!(verdicts, [Verdict::Hold, Verdict::Hold, PASSES]);
    arrive(&mut far, flows[0], tail(5));
    assert_eq!(arrive(&mut far, flows[2], new(5)).verdict, Verdict::Hold, "a reorder queue is free again");
    assert_eq!((far.counter("reorder_queues_full"), far.counter("reorder_queues_peak")), (1, 2));
}

#[test]
fn packets_of_an_older_epoch_pass_and_of_a_newer_one_release_the_held() {
    let plan = leaf_spine(2, 4, 1);
    let flow = qp(&plan, 0, 1);
    let mut far = bench(&plan, "leaf1", &Config::default());
    let of = |epoch, header: Header| Header { epoch, ..header };
    arrive(&mut far, flow, of(3, old(1)));
    // The first packet of epoch 0 to arrive has overtaken the rest of epoch 0 and a packet of the previous epoch.
    assert_eq!(arrive(&mut far, flow, of(0, new(9))).verdict, Verdict::Hold);
    assert_eq!(arrive(&mut far, flow, of(3, old(2))).verdict, PASSES);
    assert_eq!(far.held.len(), 1);
    let seen = arrive(&mut far, flow, of(1, old(400)));
    assert_eq!((seen.verdict, seen.released.len()), (PASSES, 1));
    assert_eq!(far.counter("held_over"), 1);
    far.pass(Time::NEVER);
    assert_eq!(far.counter("resume_timers"), 0, "the timer is cancelled");
}

#[test]
fn marked_packets_cause_rate_limited_notices() {
    let plan = leaf_spine(3, 4, 1);
    let flow = qp(&plan, 0, 1);
    let mut far = bench(&plan, "leaf1", &Config::default());
    let mut marked = |flow, header: Header, us| {
        far.now += Time::from_us(us);
        far.tag = header.tag();
        let mut pkt = far.data(flow, Psn::new(0));
        pkt.mark();
        signals(&far.see(pkt))
    };
    assert_eq!(marked(flow, old(1), 0), [TorSignal::Notify(1)]);
    assert_eq!(marked(flow, old(1), 7), []);
    assert_eq!(marked(flow, tail(1), 0), [TorSignal::Clear(0)]);
    assert_eq!(marked(flow, new(1), 0), [TorSignal::Notify(2)], "another path");
    assert_eq!(marked(qp(&plan, 2, 1), old(1), 0), [TorSignal::Notify(1)], "another rack");
    assert_eq!(marked(flow, old(1), 1), [TorSignal::Notify(1)], "8 us after the first notice");
}

#[test]
fn defaults_follow_the_tiers_and_long_links() {
    let two = distance::longest_in(&leaf_spine(2, 2, 1), 64);
    let three = distance::longest_in(&pods(2, 1, &[2, 2]), 64);
    let us = Time::from_us;
    let of = |distance, lossless| {
        let t = Config::default().thetas(distance, lossless);
        (t.inactive, t.resume_default, t.resume_extra)
    };
    assert_eq!(of(two, true), (us(300), us(200), us(16)));
    assert_eq!(of(two, false), (us(300), us(200), us(16)));
    assert_eq!(of(three, true), (us(1000), us(600), us(64)));
    assert_eq!(of(three, false), (us(1000), us(300), us(16)));
    let long = Distance { round_trip: us(200), ..two };
    assert_eq!(of(long, true), (us(1600), us(800), us(16)));
    assert_eq!(Config::default().reply(long), us(204));
}

#[test]
fn impossible_settings_are_refused() {
    let plan = leaf_spine(2, 2, 1);
    let error = |config: Config| config.validate(&plan).unwrap_err();
    let default = Config::default;
    let us = |n| Some(Time::from_us(n));
    assert_eq!(error(Config { theta_reply: us(0), ..default() }).path(), "theta-reply");
    let late = error(Config { theta_reply: us(4), ..default() });
    assert!(late.path() == "theta-reply" && late.text.contains("4256640ps"), "{late}");
    assert_eq!(error(Config { theta_path_busy: Time::ZERO, ..default() }).path(), "theta-path-busy");
    assert_eq!(error(Config { theta_inactive: us(0), ..default() }).path(), "theta-inactive");
    assert_eq!(error(Config { theta_inactive: us(200), ..default() }).path(), "theta-inactive");
    assert_eq!(error(Config { resume_default: us(300), ..default() }).path(), "resume-default");
    assert_eq!(error(Config { theta_reply: us(300), ..default() }).path(), "theta-reply");
    assert_eq!(error(Config { reorder_queues: 0, ..default() }).path(), "reorder-queues");
    assert_eq!(error(Config { reorder_queues: 1025, ..default() }).path(), "reorder-queues");
    assert_eq!(error(Config { signal_size: Bytes(1501), ..default() }).path(), "signal-size");
    let warned = default().validate(&plan).unwrap();
    assert!(warned.len() == 1 && warned[0].text.contains("no switch marks"), "{warned:?}");
    let long = Config { theta_inactive: us(5_000), ..default() }.validate(&plan).unwrap();
    assert!(long.len() == 2 && long[1].text.contains("4194304ns"), "{long:?}");
    let mut marking = plan.clone();
    let queue = Bytes(100_000);
    let marks = model::plan::Marking {
        kmin: queue,
        kmax: queue,
        pmax: model::Probability::ZERO,
        at: model::plan::MarkAt::Dequeue,
        weight: 0,
    };
    marking.ports[0].marking = Some(marks);
    assert_eq!(default().validate(&marking), Ok(vec![]));
}
