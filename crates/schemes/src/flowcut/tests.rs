//! Scenes at single switches and NICs.

use super::signal::{Journey, Signal};
use super::*;
use crate::SchemeConfig;
use crate::bench::{Bench, Seen, dragonfly, leaf_spine, pods, qp};
use model::scheme::Emitted;
use model::steering::Sent;
use model::{HostId, Kind, Packet, PortIndex, Psn, QpId, Stamp, Steering as _, Verdict};

fn config(deployment: Deployment) -> Config {
    Config { deployment, alpha: 1.0, ratio: 2.0, ..Config::default() }
}

fn bench(plan: &Plan, switch: &str, config: &Config) -> Bench {
    Bench::new(plan, switch, &SchemeConfig::Flowcut(config.clone()))
}

fn port(verdict: Verdict) -> usize {
    match verdict {
        Verdict::Forward(port) => port.index(),
        other => panic!("{other:?}"),
    }
}

/// A packet of the flow comes from its host; returns its egress port and its tag.
fn send(bench: &mut Bench, flow: QpId) -> (usize, u64) {
    let packet = bench.data(flow, Psn::new(0));
    let seen = post(bench, packet);
    (port(seen.verdict), seen.tag)
}

fn post(bench: &mut Bench, packet: Packet) -> Seen {
    (bench.tag, bench.ingress) = (0, None);
    bench.see(packet)
}

/// A short packet that ends its message comes from its host; returns its tag.
fn send_short(bench: &mut Bench, flow: QpId, frame: u32) -> u64 {
    let to = bench.site().qp(flow).to;
    post(bench, Packet::new(Kind::Data, flow, to, Psn::new(0), frame).with_last(true)).tag
}

/// The ACK of the far switch for a full packet with this tag arrives `ns` after the packet was stamped.
fn answer(bench: &mut Bench, flow: QpId, tag: u64, ns: u64) -> Seen {
    let full = bench.site().plan.wire.max_frame();
    answer_to(bench, flow, (tag, full), ns)
}

/// The ACK for `bytes` in all, of which the last packet has this tag, arrives `ns` after that packet was stamped.
fn answer_to(bench: &mut Bench, flow: QpId, (tag, bytes): (u64, u32), ns: u64) -> Seen {
    let stamp = Journey::read(tag).stamp;
    bench.tag = Signal::Ack { journey: Journey { stamp, hops: 2, odd: Journey::read(tag).odd }, bytes }.tag();
    // The test switch lets 100 ns pass before every event.
    bench.now = Time::from_ns(u64::from(stamp) + ns - 100);
    let sender = bench.site().qp(flow).from;
    bench.see(Packet::new(Kind::Signal, flow, sender, Psn::new(0), 20))
}

fn orders(made: &[Emitted]) -> Vec<Signal> {
    made.iter().filter_map(|e| Signal::read(e.tag)).collect()
}

#[test]
fn a_flow_moves_to_the_shortest_queue_only_when_nothing_is_in_flight() {
    let plan = leaf_spine(2, 4, 1);
    let flow = qp(&plan, 0, 1);
    for deployment in [Deployment::Full, Deployment::Ingress] {
        let mut bench = bench(&plan, "leaf0", &config(deployment));
        bench.queued.copy_from_slice(&[0, 9, 9, 0, 9]);
        let (first, tag) = send(&mut bench, flow);
        assert_eq!(first, 3);
        bench.queued.copy_from_slice(&[0, 0, 9, 9, 9]);
        assert_eq!(send(&mut bench, flow).0, 3, "a packet is in flight");
        bench.ingress = Some(PortIndex(3));
        assert_eq!(answer(&mut bench, flow, tag, 6_000).verdict, Verdict::Drop, "the ACK ends here");
        assert_eq!(send(&mut bench, flow).0, 3, "the second packet still is in flight");
        bench.ingress = Some(PortIndex(3));
        (0..2).for_each(|_| drop(answer(&mut bench, flow, tag, 6_000)));
        assert_eq!(bench.counter("entries_left"), 0);
        assert_eq!(send(&mut bench, flow).0, 1);
        assert_eq!((bench.counter("flowcuts"), bench.counter("drains")), (2, 0));
    }
}

#[test]
fn a_slow_path_is_drained_and_the_next_packet_chooses_again() {
    let plan = leaf_spine(2, 4, 1);
    let flow = qp(&plan, 0, 1);
    let mut bench = bench(&plan, "leaf0", &config(Deployment::Ingress));
    let (_, tag) = send(&mut bench, flow);
    let (_, late) = send(&mut bench, flow);
    let (_, later) = send(&mut bench, flow);
    // Two links at 100 Gb/s take 2 x 121.6 ns for 1520 bytes, and 2 x 3.2 ns for the ACK's 40.
    assert!(answer(&mut bench, flow, tag, 4_249).made.is_empty(), "the least round-trip time: 4006 ns");
    let seen = answer(&mut bench, flow, late, 8_256);
    assert_eq!(orders(&seen.made), [Signal::Off(Bytes(0))], "8013 ns is more than twice the least");
    let order = seen.made[0];
    assert_eq!((order.port, order.packet.to(), order.packet.qp()), (Some(PortIndex(0)), HostId(0), flow));
    let seen = answer(&mut bench, flow, later, 9_000);
    assert_eq!(orders(&seen.made), [Signal::On]);
    bench.queued.copy_from_slice(&[0, 9, 0, 9, 9]);
    assert_eq!(send(&mut bench, flow).0, 2);
    assert_eq!((bench.counter("flowcuts"), bench.counter("drains")), (2, 1));
}

#[test]
fn a_wrapped_timestamp_does_not_spoil_the_minimum() {
    let plan = leaf_spine(2, 4, 1);
    let flow = qp(&plan, 0, 1);
    let mut bench = bench(&plan, "leaf0", &config(Deployment::Ingress));
    let tags: Vec<u64> = (0..4).map(|_| send(&mut bench, flow).1).collect();
    let seen = answer(&mut bench, flow, tags[0], 65_536 + 300);
    assert!(seen.made.is_empty(), "the paper's timestamps wrap at 65.5 us");
    let seen = answer(&mut bench, flow, tags[1], 8_255);
    assert!(seen.made.is_empty(), "twice the idle round trip, whatever the wrapped timestamp");
    let seen = answer(&mut bench, flow, tags[2], 8_256);
    assert_eq!(orders(&seen.made).len(), 1);
}

#[test]
fn short_packets_do_not_make_full_ones_look_slow() {
    // The path is idle: round-trip times differ by the serialisation of a full or a short packet alone.
    let mut plan = leaf_spine(2, 4, 1);
    let full = plan.wire.max_frame();
    for every in [1, 4] {
        let flow = qp(&plan, 0, 1);
        let mut bench = bench(&plan, "leaf0", &Config { ack_every: every, ..config(Deployment::Ingress) });
        let tag = send_short(&mut bench, flow, 64);
        // 2 x 6.7 ns for 84 bytes.
        answer_to(&mut bench, flow, (tag, 64), 4_020);
        let tags: Vec<u64> = (0..9).map(|_| send(&mut bench, flow).1).collect();
        for tag in tags {
            assert!(answer(&mut bench, flow, tag, 4_250).made.is_empty());
        }
        // One ACK answers three full packets and a short one: the measured time is that of the short one.
        let tags: Vec<u64> = (0..3).map(|_| send(&mut bench, flow).1).collect();
        let last = send_short(&mut bench, flow, 64);
        let more = send(&mut bench, flow).1;
        answer_to(&mut bench, flow, (last, 3 * full + 64), 4_020);
        assert!(answer(&mut bench, flow, more, 4_250).made.is_empty());
        assert_eq!((bench.counter("drains"), bench.counter("entries_left")), (0, 0), "{}", tags.len());
        plan.seed += 1;
    }
}

#[test]
fn lost_packets_no_longer_count_after_a_drain_ends_by_the_timer() {
    let plan = leaf_spine(2, 4, 1);
    let flow = qp(&plan, 0, 1);
    for deployment in [Deployment::Full, Deployment::Ingress] {
        let mut bench = bench(&plan, "leaf0", &config(deployment));
        bench.queued.copy_from_slice(&[0, 0, 9, 9, 9]);
        let quick = send(&mut bench, flow).1;
        let tags: Vec<u64> = (0..3).map(|_| send(&mut bench, flow).1).collect();
        bench.ingress = Some(PortIndex(1));
        answer(&mut bench, flow, quick, 4_250);
        // The first ACK is slow, the second packet is lost, and the third ACK arrives after the timer has ended the drain.
        assert_eq!(orders(&answer(&mut bench, flow, tags[0], 20_000).made), [Signal::Off(Bytes(0))]);
        bench.queued.copy_from_slice(&[0, 9, 0, 9, 9]);
        bench.now += Time::from_ms(1);
        let (way, again) = send(&mut bench, flow);
        assert_eq!(way, 1, "the source resumes on the old path");
        bench.ingress = Some(PortIndex(1));
        assert!(answer(&mut bench, flow, tags[2], 2_000_000).made.is_empty());
        assert_eq!(send(&mut bench, flow).0, 1, "the ACK belongs to the old count");
        bench.ingress = Some(PortIndex(1));
        answer(&mut bench, flow, again, 4_250);
        answer(&mut bench, flow, again, 4_250);
        assert_eq!(bench.counter("entries_left"), 0);
        assert_eq!(send(&mut bench, flow).0, 2);
    }
}

#[test]
fn switches_further_up_follow_the_count_of_the_first() {
    let plan = pods(2, 1, &[2, 2]);
    let flow = qp(&plan, 0, 1);
    let mut up = bench(&plan, "up0.0", &config(Deployment::Full));
    let full = plan.wire.max_frame();
    let journey = |odd| Journey { stamp: 0, hops: 0, odd };
    let pass = |up: &mut Bench, odd| {
        (up.tag, up.ingress) = (journey(odd).tag(), None);
        port(up.see(up.data(flow, Psn::new(0))).verdict)
    };
    let hear = |up: &mut Bench, odd, came: usize| {
        up.tag = Signal::Ack { journey: journey(odd), bytes: full }.tag();
        up.ingress = Some(PortIndex(came as u16));
        let seen = up.see(Packet::new(Kind::Signal, flow, HostId(0), Psn::new(0), 20));
        assert_eq!(seen.verdict, Verdict::Forward(PortIndex(0)), "the ACK is forwarded in any case");
    };
    let way = pass(&mut up, false);
    assert_eq!([pass(&mut up, false), pass(&mut up, true)], [way; 2]);
    hear(&mut up, false, way);
    assert_eq!(up.counter("entries_left"), 1, "one packet of the new count is in flight");
    hear(&mut up, true, way);
    assert_eq!(up.counter("entries_left"), 0, "two packets of the old count are lost");
}

#[test]
fn a_full_count_stays_full_and_the_source_is_stopped_again() {
    let plan = leaf_spine(2, 4, 1);
    let flow = qp(&plan, 0, 1);
    let mut bench = bench(&plan, "leaf0", &Config { ratio: 1e9, ..config(Deployment::Ingress) });
    bench.queued.copy_from_slice(&[0, 0, 9, 9, 9]);
    let start = bench.now;
    let (mut off, mut tags) = (Vec::new(), Vec::new());
    for _ in 0..40_000 {
        let packet = bench.data(flow, Psn::new(0));
        let seen = post(&mut bench, packet);
        tags.push(seen.tag);
        if !orders(&seen.made).is_empty() {
            assert_eq!(orders(&seen.made), [Signal::Off(Bytes(0))]);
            off.push((bench.now - start).ps() / 1_000_000);
        }
    }
    // 12 MiB are sent after 8389 packets, at 100 ns each. The source ignores the XOFF and goes on. A millisecond later a
    // second count begins and exceeds its limit after as many packets. A millisecond later it still does: nothing of it has
    // been answered, so no third count begins.
    assert_eq!(off, [838, 2677, 3677]);
    let (first, second) = (tags[0], tags[39_999]);
    let all_but_one =
        |bench: &mut Bench, tag| (0..20_000).for_each(|_| drop(answer(bench, flow, tag, 4_250)));
    all_but_one(&mut bench, first);
    // The count is at its maximum, so its true value is unknown; 16 MiB would be 11,185 packets.
    all_but_one(&mut bench, second);
    assert_eq!(bench.counter("entries_left"), 1, "packets of the second count may be in flight");
    bench.queued.copy_from_slice(&[0, 9, 9, 9, 0]);
    let (way, third) = send(&mut bench, flow);
    assert_eq!(way, 1);
    answer(&mut bench, flow, second, 4_250);
    assert_eq!(bench.counter("entries_left"), 1, "that ACK belonged to the second count");
    answer(&mut bench, flow, third, 4_250);
    assert_eq!(bench.counter("entries_left"), 0, "the third count is settled and empty");
    assert_eq!(send(&mut bench, flow).0, 4);
}

#[test]
fn an_infinite_timeout_does_not_overflow() {
    let plan = leaf_spine(2, 4, 1);
    let flow = qp(&plan, 0, 1);
    let never = Time(u64::MAX - 1);
    let mut far = bench(
        &plan,
        "leaf1",
        &Config { ack_every: 3, ack_delay: never, drain_timeout: never, ..config(Deployment::Ingress) },
    );
    far.now = Time::from_us(1);
    assert!(far.depart_as(far.data(flow, Psn::new(0))).is_empty());
    far.pass(Time::from_ms(1));
    assert!(far.depart_as(far.data(flow, Psn::new(0))).is_empty());
    assert_eq!(far.depart_as(far.data(flow, Psn::new(0))).len(), 1);
}

#[test]
fn with_an_overlap_a_flow_resumes_while_so_many_are_in_flight() {
    let plan = leaf_spine(2, 4, 1);
    let flow = qp(&plan, 0, 1);
    let mut bench = bench(&plan, "leaf0", &Config { overlap: 2, ..config(Deployment::Ingress) });
    bench.queued.copy_from_slice(&[0, 0, 9, 9, 9]);
    let tags: Vec<u64> = (0..5).map(|_| send(&mut bench, flow).1).collect();
    answer(&mut bench, flow, tags[0], 4_242);
    assert_eq!(orders(&answer(&mut bench, flow, tags[1], 20_000).made), [Signal::Off(Bytes(0))]);
    bench.queued.copy_from_slice(&[0, 9, 9, 9, 0]);
    assert_eq!(send(&mut bench, flow).0, 1, "a packet sent before the XOFF arrived takes the old path");
    assert!(answer(&mut bench, flow, tags[2], 20_000).made.is_empty(), "three packets are in flight");
    assert_eq!(
        orders(&answer(&mut bench, flow, tags[3], 20_000).made),
        [Signal::On],
        "two packets are in flight"
    );
    assert_eq!(send(&mut bench, flow).0, 4);
}

#[test]
fn a_class_is_paused_while_any_flow_of_its_host_drains() {
    let plan = leaf_spine(3, 4, 1);
    let (one, two) = (qp(&plan, 0, 1), qp(&plan, 0, 2));
    let config = Config { backpressure: Backpressure::Class, ..config(Deployment::Ingress) };
    let mut bench = bench(&plan, "leaf0", &config);
    let tags: Vec<u64> = (0..3).map(|_| send(&mut bench, one).1).collect();
    let others: Vec<u64> = (0..3).map(|_| send(&mut bench, two).1).collect();
    answer(&mut bench, one, tags[0], 4_242);
    let seen = answer(&mut bench, one, tags[1], 20_000);
    assert_eq!((seen.made, seen.pauses), (vec![], vec![(PortIndex(0), true)]));
    assert!(answer(&mut bench, two, others[0], 20_000).pauses.is_empty(), "the port is paused already");
    assert!(answer(&mut bench, one, tags[2], 20_000).pauses.is_empty(), "the other flow still drains");
    answer(&mut bench, two, others[1], 20_000);
    let seen = answer(&mut bench, two, others[2], 20_000);
    assert_eq!(seen.pauses, [(PortIndex(0), false)]);
}

#[test]
fn the_switchs_timer_resumes_a_class_after_a_loss() {
    let plan = leaf_spine(2, 4, 1);
    let flow = qp(&plan, 0, 1);
    let mut bench =
        bench(&plan, "leaf0", &Config { backpressure: Backpressure::Class, ..config(Deployment::Ingress) });
    bench.queued.copy_from_slice(&[0, 0, 9, 9, 9]);
    let quick = send(&mut bench, flow).1;
    let tags: Vec<u64> = (0..2).map(|_| send(&mut bench, flow).1).collect();
    answer(&mut bench, flow, quick, 4_250);
    let seen = answer(&mut bench, flow, tags[0], 20_000);
    assert_eq!(seen.pauses, [(PortIndex(0), true)]);
    bench.now = bench.alarm.unwrap();
    assert_eq!(bench.woken().pauses, [(PortIndex(0), false)]);
    assert_eq!(bench.counter("drains_ended_by_timer"), 1);
    // A lost packet does not delay the end of the next drain, which depends on the new count alone.
    bench.queued.copy_from_slice(&[0, 9, 9, 9, 0]);
    let tags: Vec<(usize, u64)> = (0..2).map(|_| send(&mut bench, flow)).collect();
    assert_eq!(tags[0].0, 1);
    assert_eq!(answer(&mut bench, flow, tags[0].1, 40_000).pauses, [(PortIndex(0), true)]);
    assert_eq!(answer(&mut bench, flow, tags[1].1, 41_000).pauses, [(PortIndex(0), false)]);
    assert_eq!(send(&mut bench, flow).0, 4);
}

#[test]
fn in_a_full_deployment_the_ack_retraces_the_path_of_the_data() {
    let plan = pods(2, 1, &[2, 2]);
    let flow = qp(&plan, 0, 1);
    let full = config(Deployment::Full);
    let mut up = bench(&plan, "up0.0", &full);
    let seen = up.see(up.data(flow, Psn::new(0)));
    let hops = Journey::read(seen.tag).hops;
    assert_eq!(hops, 1, "one link since the sender's switch");
    up.tag = Signal::Ack { journey: Journey::default(), bytes: plan.wire.max_frame() }.tag();
    up.ingress = Some(PortIndex(port(seen.verdict) as u16));
    let back = up.see(Packet::new(Kind::Signal, flow, HostId(0), Psn::new(0), 20));
    assert_eq!(back.verdict, Verdict::Forward(PortIndex(0)), "down to the edge switch");
    assert_eq!(up.counter("entries_left"), 0);
    // The receiver's switch sends the ACK when the packet leaves, by the port at which the packet came in.
    let mut edge = bench(&plan, "edge1.0", &full);
    edge.tag = Journey { stamp: 77, hops: 3, odd: false }.tag();
    edge.see(edge.data(flow, Psn::new(0)));
    edge.tag = Journey { stamp: 77, hops: 4, odd: false }.tag();
    let made = edge.depart_as(edge.data(flow, Psn::new(0)));
    let journey = Journey { stamp: 77, hops: 4, odd: false };
    assert_eq!(orders(&made), [Signal::Ack { journey, bytes: plan.wire.max_frame() }]);
    assert!(made[0].port.is_some() && made[0].packet.to() == HostId(0));
    assert_eq!(edge.counter("entries_left"), 0);
}

#[test]
fn coalesced_acks_go_out_by_count_by_time_and_at_the_end_of_a_message() {
    let plan = leaf_spine(2, 4, 1);
    let flow = qp(&plan, 0, 1);
    let mut far = bench(&plan, "leaf1", &Config { ack_every: 3, ..config(Deployment::Ingress) });
    let frame = plan.wire.max_frame();
    let leave = |far: &mut Bench| orders(&far.depart_as(far.data(flow, Psn::new(0))));
    assert!(leave(&mut far).is_empty() && leave(&mut far).is_empty());
    assert!(matches!(leave(&mut far)[..], [Signal::Ack { bytes, .. }] if bytes == 3 * frame));
    assert!(leave(&mut far).is_empty());
    far.now = Time(far.now.ps() + 900_000);
    assert!(matches!(orders(&far.wake())[..], [Signal::Ack { bytes, .. }] if bytes == frame));
    let made = far.depart_as(far.data(flow, Psn::new(0)).with_last(true));
    assert_eq!(orders(&made).len(), 1);
}

fn gate(plan: &Plan, config: &Config) -> Gate {
    config.steer(QpSite { plan, qp: qp(plan, 0, 1) })
}

fn start(gate: &mut Gate, us: u64, seq: u64) -> u16 {
    start_of(gate, us, seq, 1500)
}

fn start_of(gate: &mut Gate, us: u64, seq: u64, frame: u32) -> u16 {
    gate.on_send(Time::from_us(us), Sent { seq, again: false, left: 100, frame }).entropy()
}

#[test]
fn a_nic_subtracts_each_packets_own_serialisation() {
    let plan = leaf_spine(2, 4, 1);
    let mut gate = gate(&plan, &Config { ratio: 1.0, ..config(Deployment::Nic) });
    // Four links of 1 us at 100 Gb/s: 4 x (1520 + 84) B for a full packet, or 4 x (84 + 84) B for a short one.
    let (full, short) = (Time(8_000_000 + 4 * 128_320), Time(8_000_000 + 4 * 13_440));
    start_of(&mut gate, 0, 0, 64);
    start_of(&mut gate, 0, 1, 1500);
    start_of(&mut gate, 0, 2, 1500);
    gate.on_reply(short, 1, &Stamp::default(), &mut || 0);
    assert!(!gate.holds());
    gate.on_reply(full, 2, &Stamp::default(), &mut || 0);
    assert!(!gate.holds(), "the path is idle to the picosecond");
}

#[test]
fn a_nic_draws_a_new_port_only_when_everything_is_acknowledged() {
    let plan = leaf_spine(2, 4, 1);
    let mut gate = gate(&plan, &config(Deployment::Nic));
    let old = start(&mut gate, 0, 0);
    assert_eq!((start(&mut gate, 1, 1), start(&mut gate, 2, 2)), (old, old));
    let quiet = Stamp::default();
    gate.on_reply(Time::from_us(9), 1, &quiet, &mut || 0);
    assert!(!gate.holds(), "an idle path takes 8 us of propagation and about 1 us of serialisation");
    gate.on_reply(Time::from_us(40), 2, &quiet, &mut || 0);
    assert!(gate.holds(), "more than twice 8 us");
    gate.on_reply(Time::from_us(41), 3, &quiet, &mut || 0);
    assert!(!gate.holds());
    assert_ne!(start(&mut gate, 42, 3), old);
}

#[test]
fn a_kept_average_drains_the_flow_again_on_an_idle_path() {
    let plan = leaf_spine(2, 4, 1);
    let drained_again = |keep_average| {
        let config = Config { keep_average, alpha: 0.5, ..config(Deployment::Nic) };
        let mut gate = gate(&plan, &config);
        let quiet = Stamp::default();
        (0..3).for_each(|seq| assert_eq!(start(&mut gate, 0, seq), 0, "the first path"));
        // A normalised round trip of about 10 makes an average of 5.5, and the second sample one of more than 7.
        gate.on_reply(Time::from_us(81), 1, &quiet, &mut || 0);
        assert!(gate.holds(), "the average exceeds 2");
        gate.on_reply(Time::from_us(81), 3, &quiet, &mut || 0);
        assert!(!gate.holds(), "nothing is in flight");
        // Round trips on the new path are those of an idle one: 8 us of propagation and about 1 us of serialisation.
        (3..6).for_each(|seq| assert_ne!(start(&mut gate, 100, seq), 0, "another path"));
        gate.on_reply(Time::from_us(109), 4, &quiet, &mut || 0);
        gate.holds()
    };
    assert!(drained_again(true), "the average halves its distance from 1, and still exceeds 2");
    assert!(!drained_again(false), "the average of a new path starts at 1");
}

#[test]
fn a_nic_resumes_on_the_old_path_by_the_timer_after_a_loss() {
    let plan = leaf_spine(2, 4, 1);
    let mut gate = gate(&plan, &config(Deployment::Nic));
    let old = start(&mut gate, 0, 0);
    for seq in 1..4 {
        start(&mut gate, 0, seq);
    }
    gate.on_reply(Time::from_us(40), 1, &Stamp::default(), &mut || 0);
    assert!(gate.holds());
    gate.on_timeout(Time::from_us(1040));
    assert!(!gate.holds());
    assert_eq!(start(&mut gate, 1041, 4), old);
}

#[test]
fn an_almost_finished_flow_is_not_drained() {
    let plan = leaf_spine(2, 4, 1);
    let enough = Bytes(101 * u64::from(plan.wire.payload));
    let mut gate = gate(&plan, &Config { drain_if_left: enough, ..config(Deployment::Nic) });
    for seq in 0..3 {
        start(&mut gate, 0, seq);
    }
    gate.on_reply(Time::from_us(40), 1, &Stamp::default(), &mut || 0);
    assert!(!gate.holds(), "100 packets are unsent");
}

#[test]
fn credit_allows_some_packets_after_xoff() {
    let plan = leaf_spine(2, 4, 1);
    let mut gate = gate(&plan, &config(Deployment::Ingress));
    gate.on_signal(Time::from_us(1), Signal::Off(Bytes(2000)).tag());
    assert!(!gate.holds());
    start(&mut gate, 1, 0);
    assert!(!gate.holds(), "500 B of credit are left");
    start(&mut gate, 1, 1);
    assert!(gate.holds());
    gate.on_signal(Time::from_us(9), Signal::On.tag());
    assert!(!gate.holds());
}

#[test]
fn impossible_settings_are_refused() {
    let plan = leaf_spine(2, 2, 1);
    let field = |config: Config| config.validate(&plan).unwrap_err().path();
    let default = Config::default;
    assert_eq!(field(Config { alpha: 0.0, ..default() }), "alpha");
    assert_eq!(field(Config { alpha: f64::NAN, ..default() }), "alpha");
    assert_eq!(field(Config { ratio: 0.9, ..default() }), "ratio");
    assert_eq!(field(Config { gradient: Some(0.0), ..default() }), "gradient");
    assert_eq!(field(Config { timestamp_bits: 17, ..default() }), "timestamp-bits");
    assert_eq!(field(Config { ack_every: 0, ..default() }), "ack-every");
    assert_eq!(field(Config { entropies: 0, ..default() }), "entropies");
    assert_eq!(field(Config { credit: Bytes(3_000_000), ..default() }), "credit");
    assert_eq!(field(Config { ack_size: Bytes(0), ..default() }), "ack-size");
    assert_eq!(field(Config { overlap: 1, ..config(Deployment::Full) }), "overlap");
    assert_eq!(field(Config { drain_if_left: Bytes(1), ..config(Deployment::Ingress) }), "drain-if-left");
    assert_eq!(field(Config { keep_average: true, ..config(Deployment::Full) }), "keep-average");
    assert_eq!(Config { keep_average: true, ..default() }.validate(&plan), Ok(vec![]));
    let warned = Config { ack_every: 2, ..default() }.validate(&plan).unwrap();
    assert!(warned.len() == 1 && warned[0].text.contains("ack-every"), "{warned:?}");
    let warned = Config { ratio: 17.0, ..config(Deployment::Full) }.validate(&plan).unwrap();
    assert!(warned.len() == 1 && warned[0].text.contains("no flow is drained"), "{warned:?}");
    assert_eq!(Config { ratio: 16.0, ..config(Deployment::Full) }.validate(&plan), Ok(vec![]));
    assert_eq!(config(Deployment::Full).validate(&plan), Ok(vec![]));
}

/// A flow from g0r0 that goes by g0r1, because its own router's link to group 1 was dead; the link has come back.
fn led_around(config: &Config) -> (Bench, QpId, [usize; 2], Vec<u64>) {
    let plan = dragonfly(4, 2, 2);
    let fabric = &plan.fabric;
    let here = fabric.find("g0r0").unwrap();
    let port = |group: usize| {
        let leads = |l: &&model::fabric::Link| !fabric.is_host(l.to) && fabric.group(l.to) == Some(group);
        *fabric.ports(here).iter().find(leads).unwrap()
    };
    let (own, beside) = (port(1), port(0));
    // The receiver is at the far end of the router's own link.
    let to = (0..8u32).map(HostId).find(|&host| fabric.attachment(host) == own.to).unwrap();
    let flow = qp(&plan, 0, to.0);
    let mut bench = bench(&plan, "g0r0", config);
    bench.reroute(&[("g0r0", fabric.name(own.to))]);
    let sent: Vec<(usize, u64)> = (0..2).map(|_| send(&mut bench, flow)).collect();
    assert!(sent.iter().all(|&(port, _)| port == beside.port.index()), "{sent:?}");
    bench.reroute(&[]);
    (bench, flow, [own, beside].map(|link| link.port.index()), sent.into_iter().map(|(_, tag)| tag).collect())
}

#[test]
fn a_flow_drains_a_longer_path_before_it_takes_a_shorter_one() {
    for deployment in [Deployment::Full, Deployment::Ingress] {
        let (mut bench, flow, [own, beside], mut tags) = led_around(&config(deployment));
        bench.tag = 0;
        let seen = bench.see(bench.data(flow, Psn::new(0)));
        assert_eq!((port(seen.verdict), orders(&seen.made)), (beside, vec![Signal::Off(Bytes(0))]));
        tags.push(seen.tag);
        let (by, tag) = send(&mut bench, flow);
        assert_eq!(by, beside, "the packet was sent before the XOFF arrived");
        tags.push(tag);
        // ACKs retrace the path of the data that they answer.
        bench.ingress = Some(PortIndex(beside as u16));
        let mut made = Vec::new();
        for tag in tags {
            made = answer(&mut bench, flow, tag, 6_000).made;
        }
        bench.ingress = None;
        assert_eq!(orders(&made), [Signal::On]);
        assert_eq!(send(&mut bench, flow).0, own);
    }
}

#[test]
fn the_timer_bounds_the_wait_for_lost_packets() {
    let (mut bench, flow, [own, beside], _) = led_around(&config(Deployment::Full));
    assert_eq!(send(&mut bench, flow).0, beside);
    bench.now += Time::from_ms(1);
    assert_eq!(send(&mut bench, flow).0, own, "the source resumes");
}

#[test]
fn packets_sent_by_a_dead_port_are_not_waited_for() {
    let plan = dragonfly(4, 2, 2);
    let fabric = &plan.fabric;
    let own =
        *fabric.ports(fabric.find("g0r0").unwrap()).iter().find(|l| fabric.group(l.to) == Some(1)).unwrap();
    let to = (0..8u32).map(HostId).find(|&host| fabric.attachment(host) == own.to).unwrap();
    let flow = qp(&plan, 0, to.0);
    let mut bench = bench(&plan, "g0r0", &config(Deployment::Full));
    assert_eq!(send(&mut bench, flow).0, own.port.index());
    bench.reroute(&[("g0r0", fabric.name(own.to))]);
    bench.tag = 0;
    let seen = bench.see(bench.data(flow, Psn::new(1)));
    assert!(port(seen.verdict) != own.port.index() && seen.made.is_empty());
}
