//! Scenes at single switches.

use super::*;
use crate::SchemeConfig;
use crate::bench::{Bench, Seen, leaf_spine, leaf_spine_at, qp};
use model::{HostId, Psn, QpId, Rate};

fn bench(plan: &Plan, switch: &str) -> Bench {
    Bench::new(plan, switch, &SchemeConfig::Conga(Config::default()))
}

fn port(seen: &Seen) -> PortIndex {
    match seen.verdict {
        Verdict::Forward(port) => port,
        other => panic!("{other:?}"),
    }
}

/// A packet of the flow arrives with this tag.
fn data(bench: &mut Bench, flow: QpId, tag: u64) -> Seen {
    bench.tag = tag;
    bench.see(bench.data(flow, Psn::new(0)))
}

/// The far leaf sends this feedback in a signal.
fn hear(bench: &mut Bench, flow: QpId, feedback: PathFeedback) {
    let to = bench.site().qp(flow).to;
    let rack = bench.site().fabric().rack(to) as u16;
    bench.tag = feedback.tag_from(rack);
    let sender = bench.site().qp(flow).from;
    let seen = bench.see(Packet::new(Kind::Signal, flow, sender, Psn::new(0), 64));
    assert_eq!(seen.verdict, Verdict::Drop, "the signal ends here");
}

#[test]
fn a_flow_leaves_a_congested_path_only_after_a_pause() {
    let plan = leaf_spine(2, 4, 1);
    let flow = qp(&plan, 0, 1);
    let mut near = bench(&plan, "leaf0");
    let first = port(&data(&mut near, flow, 0));
    hear(&mut near, flow, PathFeedback { port: first, level: 5 });
    for _ in 0..4 {
        near.now += Time::from_us(99);
        assert_eq!(port(&data(&mut near, flow, 0)), first, "the flow has not paused for 100 us");
    }
    near.now += Time::from_us(100);
    let second = port(&data(&mut near, flow, 0));
    assert_ne!(second, first);
    assert_eq!((near.counter("flowlets"), near.counter("flowlets_moved")), (2, 1));
}

#[test]
fn among_equal_paths_a_flow_stays_and_new_flows_spread() {
    let plan = leaf_spine(9, 4, 1);
    let mut near = bench(&plan, "leaf0");
    let flow = qp(&plan, 0, 1);
    let first = port(&data(&mut near, flow, 0));
    for _ in 0..20 {
        near.now += Time::from_us(200);
        assert_eq!(port(&data(&mut near, flow, 0)), first);
    }
    assert_eq!((near.counter("flowlets"), near.counter("flowlets_moved")), (21, 0));
    let others = (2..9).map(|to| port(&data(&mut near, qp(&plan, 0, to), 0)));
    assert!(others.collect::<std::collections::BTreeSet<_>>().len() > 1);
}

#[test]
fn a_new_flow_avoids_a_full_uplink() {
    let plan = leaf_spine(2, 4, 2);
    let (elephant, mouse) = (qp(&plan, 0, 2), qp(&plan, 1, 3));
    let mut near = bench(&plan, "leaf0");
    let filled = port(&data(&mut near, elephant, 0));
    // A frame every 100 ns is more than 100 Gb/s, and 1.5 ms are six time constants.
    for _ in 0..15_000 {
        data(&mut near, elephant, 0);
    }
    let seen = data(&mut near, elephant, 0);
    let header = Header::read(seen.tag);
    assert_eq!((header.lb_tag, header.ce), (filled, 7), "the leaf's own link counts, too");
    assert_ne!(port(&data(&mut near, mouse, 0)), filled);
}

#[test]
fn a_slow_link_behind_a_spine_is_measured_reported_and_avoided() {
    // Spine 1 has links of 10 Gb/s.
    let plan = leaf_spine_at(2, 2, 1, |spine| Rate::from_gbps(if spine == 1 { 10 } else { 100 }));
    let flow = qp(&plan, 0, 1);
    let mut spine = bench(&plan, "spine1");
    let uplink = PortIndex(2);
    let sent = Header { lb_tag: uplink, ce: 0, feedback: None };
    // 12 Gb/s for longer than the estimator's time constant.
    let mut tag = 0;
    for _ in 0..600 {
        spine.now += Time::from_ns(900);
        tag = data(&mut spine, flow, sent.tag()).tag;
    }
    assert_eq!(Header::read(tag), Header { ce: 7, ..sent });
    let mut far = bench(&plan, "leaf1");
    let made = data(&mut far, flow, tag).made;
    assert_eq!(made.len(), 1, "no data in the reverse direction could carry the feedback");
    assert_eq!(made[0].packet.to(), HostId(0));
    let (rack, feedback) = PathFeedback::read_from(made[0].tag);
    assert_eq!((rack, feedback), (1, PathFeedback { port: uplink, level: 7 }));
    let mut near = bench(&plan, "leaf0");
    hear(&mut near, flow, feedback);
    assert_eq!(port(&data(&mut near, flow, 0)), PortIndex(1));
}

#[test]
fn data_in_the_reverse_direction_carries_feedback_and_signals_are_rare() {
    let plan = leaf_spine(2, 4, 1);
    let (there, back) = (qp(&plan, 0, 1), qp(&plan, 1, 0));
    let mut far = bench(&plan, "leaf1");
    let sent = |ce| Header { lb_tag: PortIndex(3), ce, feedback: None }.tag();
    assert_eq!(data(&mut far, there, sent(4)).made.len(), 1);
    assert!(data(&mut far, there, sent(5)).made.is_empty(), "no second signal within 10 us");
    let feedback = Header::read(data(&mut far, back, 0).tag).feedback;
    assert_eq!(feedback, Some(PathFeedback { port: PortIndex(3), level: 5 }));
    far.now += Time::from_ns(9_000);
    assert!(data(&mut far, there, sent(6)).made.is_empty(), "no signal within 10 us of carried feedback");
    far.now += Time::from_ns(1_000);
    assert_eq!(data(&mut far, there, sent(6)).made.len(), 1);
    assert_eq!((far.counter("feedback_signals"), far.counter("feedback_carried")), (2, 1));
    // The other leaf takes feedback from data as it takes feedback from a signal.
    let mut near = bench(&plan, "leaf0");
    let riding = Header { lb_tag: PortIndex(1), ce: 0, feedback };
    data(&mut near, back, riding.tag());
    let taken: Vec<_> = (0..40)
        .map(|_| {
            near.now += Time::from_us(1_000);
            data(&mut near, back, riding.tag());
            port(&data(&mut near, there, 0))
        })
        .collect();
    assert!(!taken.contains(&PortIndex(3)), "{taken:?}");
}

#[test]
fn impossible_settings_are_refused() {
    let plan = leaf_spine(2, 2, 1);
    let field = |config: Config| config.validate(&plan).unwrap_err().path();
    let default = Config::default;
    assert_eq!(field(Config { flowlet_gap: Time::ZERO, ..default() }), "flowlet-gap");
    assert_eq!(field(Config { dre_period: Time::ZERO, ..default() }), "dre-period");
    assert_eq!(field(Config { ageing: Time::ZERO, ..default() }), "ageing");
    assert_eq!(field(Config { dre_alpha: 0.0, ..default() }), "dre-alpha");
    assert_eq!(field(Config { dre_alpha: f64::NAN, ..default() }), "dre-alpha");
    assert_eq!(field(Config { quantisation_bits: 0, ..default() }), "quantisation-bits");
    assert_eq!(field(Config { quantisation_bits: 7, ..default() }), "quantisation-bits");
    assert_eq!(field(Config { feedback_interval: Time::from_us(500), ..default() }), "feedback-interval");
    assert_eq!(field(Config { signal_size: Bytes(0), ..default() }), "signal-size");
    assert_eq!(field(Config { signal_size: Bytes(9000), ..default() }), "signal-size");
    assert_eq!(default().validate(&plan), Ok(vec![]));
}
