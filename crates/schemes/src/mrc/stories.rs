//! A queue pair of MRC, packet by packet.

use super::*;
use crate::bench::leaf_spine;
use model::Dialogue as _;
use model::transport::Telling;
use model::{PortSharing, QpId, Steering};

const US: fn(u64) -> Time = Time::from_us;

/// A queue pair with four active entropies and two spares in each of `planes`; without planes it has one port.
fn mrc(planes: Option<u16>) -> Mrc {
    let config = Config { entropies: 4 * planes.unwrap_or(1), spares: 2, ..Config::default() };
    let plan = leaf_spine(2, 4, 1);
    Mrc::new(QpSite { plan: &plan, qp: QpId(0) }.key(), planes, &config)
}

fn send(mrc: &mut Mrc, seq: u64, ports: u32) -> u16 {
    mrc.port(Time::ZERO, ports).unwrap();
    sent(mrc, seq)
}

fn sent(mrc: &mut Mrc, seq: u64) -> u16 {
    mrc.on_send(Time::ZERO, Sent { seq, again: false, left: 0, frame: 4000 }).entropy()
}

fn counters(mrc: &Mrc) -> [u64; 3] {
    let mut found = Vec::new();
    mrc.counters(&mut |name, count| found.push((name, count)));
    ["entropies_skipped", "entropies_replaced", "entropies_probed"]
        .map(|name| found.iter().find(|(other, _)| *other == name).unwrap().1)
}

#[test]
fn planes_take_turns_and_each_has_its_own_entropies() {
    let mut mrc = mrc(Some(2));
    let first: Vec<u16> = (0..8).map(|seq| send(&mut mrc, seq, 0b11)).collect();
    let planes: Vec<usize> = first.iter().map(|entropy| mrc.plane(*entropy)).collect();
    assert_eq!(planes, [0, 1, 0, 1, 0, 1, 0, 1]);
    let mut all: Vec<u16> = first.into_iter().chain(mrc.spares.iter().flatten().copied()).collect();
    all.sort_unstable();
    assert_eq!(all, (0..12).collect::<Vec<_>>(), "six of each plane, active or spare");
    assert_eq!([0, 5, 6, 11].map(|entropy| mrc.plane(entropy)), [0, 0, 1, 1]);
}

/// One port: nobody asks for it, so a packet chooses its entropy when it starts, and a probe needs no port.
#[test]
fn a_queue_pair_with_one_port_walks_its_ring_and_probes_without_being_asked_for_a_port() {
    let mut mrc = mrc(None);
    let first: Vec<u16> = (0..8).map(|seq| sent(&mut mrc, seq)).collect();
    assert_eq!(first[..4], first[4..]);
    mrc.on_lost(US(1), 1);
    assert_eq!(mrc.aside(US(1)), None, "no probe is due");
    mrc.on_deadline(US(101));
    let probe = mrc.aside(US(101)).unwrap();
    assert_eq!((probe.annex.entropy(), mrc.aside(US(101))), (first[1], None));
    assert_eq!(counters(&mrc), [0, 1, 1]);
}

/// Marked entropies are passed over once. A packet restores the first of them that it passes, and no more.
#[test]
fn a_packet_restores_one_entropy_at_most() {
    let mut mrc = mrc(Some(1));
    let [a, b, c, d] = [0, 1, 2, 3].map(|seq| send(&mut mrc, seq, 1));
    mrc.judge(a, Verdict::Marked);
    mrc.judge(b, Verdict::Cut);
    mrc.judge(d, Verdict::Good);
    let next = [4, 5, 6, 7, 8, 9, 10].map(|seq| send(&mut mrc, seq, 1));
    assert_eq!(next, [c, d, a, c, d, a, b], "the first packet restores a, the fourth restores b");
    assert_eq!(counters(&mrc), [2, 0, 0]);
    // With all of them marked, a packet takes the one that it restores.
    [a, b, c, d].into_iter().for_each(|entropy| mrc.judge(entropy, Verdict::Marked));
    assert_eq!(send(&mut mrc, 11, 1), c);
    // The one restored leads through a port that is busy, so another one that leads through the free port goes.
    let mut two = self::mrc(Some(2));
    let ring = [0, 1, 2, 3, 4, 5, 6, 7].map(|seq| send(&mut two, seq, 0b11));
    ring.into_iter().for_each(|entropy| two.judge(entropy, Verdict::Marked));
    assert_eq!(send(&mut two, 8, 0b10), ring[1], "the ring restores its first place, of plane 0");
}

#[test]
fn a_loss_concerns_the_entropy_of_the_last_transmission_of_its_packet() {
    let mut mrc = mrc(Some(1));
    let first = [0, 1, 2, 3].map(|seq| send(&mut mrc, seq, 1));
    let again = mrc.port(Time::ZERO, 1).map(|_| mrc.chosen).unwrap();
    mrc.on_send(US(1), Sent { seq: 2, again: true, left: 0, frame: 4000 });
    assert_eq!(again, first[0]);
    // Packets 0 and 1 are acknowledged, so packet 3 is the second one of the list.
    assert_eq!(mrc.on_reply(US(2), 2, &Stamp::new(first[1], Time::ZERO), &mut || 0), 0);
    for (seq, entropy) in [(1, None), (99, None), (3, Some(first[3])), (2, Some(again))] {
        let before = mrc.bad.len();
        mrc.on_lost(US(3), seq);
        assert_eq!(mrc.bad.get(before).map(|bad| bad.entropy), entropy, "packet {seq}");
    }
    // Late replies change nothing.
    mrc.on_reply(US(4), 1, &Stamp::new(first[1], Time::ZERO), &mut || 0);
    assert_eq!((mrc.una, mrc.sent.len()), (2, 2));
}

/// An entropy that has lost several packets is replaced once. The losses of one that has left the ring count for nothing.
#[test]
fn an_entropy_is_replaced_once_however_many_packets_it_has_lost() {
    let mut mrc = mrc(Some(1));
    let entropies: Vec<u16> = (0..5).map(|seq| send(&mut mrc, seq, 1)).collect();
    assert_eq!(entropies[0], entropies[4]);
    mrc.on_lost(US(1), 0);
    mrc.on_lost(US(2), 4);
    assert_eq!((counters(&mrc), mrc.bad.len(), mrc.spares[0].len()), ([0, 1, 0], 1, 1));
    assert_eq!(mrc.deadline(), US(101), "the second loss does not put off its probe");
}

/// Three clean answers in a row bring an entropy back. A marked one starts the count anew.
#[test]
fn a_marked_answer_to_a_probe_starts_the_count_of_clean_ones_anew() {
    let mut mrc = mrc(Some(1));
    let lost = send(&mut mrc, 0, 1);
    mrc.on_lost(Time::ZERO, 0);
    let clean = Stamp::new(lost, Time::ZERO);
    let marked = clean.answer(US(1), true, Telling::default);
    for (stamp, bad) in [(&clean, 1), (&clean, 1), (&marked, 1), (&clean, 1), (&clean, 1), (&clean, 0)] {
        mrc.on_probed(US(1), stamp);
        assert_eq!(mrc.bad.len(), bad);
    }
    mrc.on_probed(US(2), &clean); // a late answer
    assert_eq!(mrc.spares[0].len(), 2);
}

/// A probe waits for its port. If the port comes back up meanwhile, the entropy is good again and needs none.
#[test]
fn an_entropy_that_is_good_again_is_not_probed() {
    let mut mrc = mrc(Some(2));
    send(&mut mrc, 0, 0b10);
    mrc.on_lost(Time::ZERO, 0);
    mrc.on_deadline(US(100));
    mrc.on_deadline(US(300));
    assert_eq!((mrc.has_aside(), mrc.due.len()), (true, 1), "it waits once");
    assert_eq!(
        (mrc.port(US(300), 0b01), mrc.aside(US(300))),
        (Some(0), None),
        "it leads through the other port"
    );
    mrc.on_ports(0b01);
    mrc.on_ports(0b11);
    assert_eq!((mrc.has_aside(), mrc.bad.len()), (false, 0));
    // A port that stays up brings nothing back.
    send(&mut mrc, 1, 0b01);
    mrc.on_lost(US(400), 1);
    mrc.on_ports(0b01);
    assert_eq!(mrc.bad.len(), 1);
}

#[test]
fn probes_of_several_entropies_go_out_by_the_port_that_is_free() {
    let mut mrc = mrc(Some(2));
    let lost = [(0, 0b01), (1, 0b10)].map(|(seq, ports)| send(&mut mrc, seq, ports));
    (0..2).for_each(|seq| mrc.on_lost(Time::ZERO, seq));
    mrc.on_deadline(US(100));
    assert_eq!(mrc.port(US(100), 0b10), Some(1));
    assert_eq!(mrc.aside(US(100)).map(|aside| aside.annex.entropy()), Some(lost[1]));
    assert_eq!(mrc.port(US(100), 0b11), Some(0), "the other probe comes before data");
    assert_eq!(mrc.aside(US(100)).map(|aside| aside.annex.entropy()), Some(lost[0]));
    assert!(!mrc.has_aside());
}

#[test]
fn a_denial_holds_from_its_start_to_before_its_end() {
    let denied = Denied { plane: 0, at: US(2), until: Some(US(4)) };
    assert_eq!([1, 2, 3, 4].map(|us| denied.covers(US(us))), [false, true, true, false]);
    let config = Config { denied: vec![denied], entropies: 2, ..Config::default() };
    let plan = leaf_spine(2, 4, 1);
    let mut mrc = Mrc::new(QpSite { plan: &plan, qp: QpId(0) }.key(), Some(2), &config);
    assert_eq!([2, 4].map(|us| mrc.port(US(us), 0b01)), [None, Some(0)]);
}

/// A plan whose NICs have so many ports, over which queue pairs spread.
fn plan(planes: Option<u16>) -> Plan {
    let sharing = planes.map(|ports| PortSharing { ports, choice: PortChoice::Spread });
    Plan { sharing, ..leaf_spine(2, 4, 1) }
}

#[test]
fn settings_outside_their_ranges_are_refused_by_name() {
    let own = Config::default;
    let denied = |plane| vec![Denied { plane, at: Time::ZERO, until: None }];
    for (planes, config, field) in [
        (Some(4), own(), None),
        (Some(4), Config { entropies: 4, ..own() }, None),
        (Some(4), Config { entropies: 0, ..own() }, Some("entropies")),
        (Some(4), Config { entropies: 6, ..own() }, Some("entropies")),
        (Some(4), Config { entropies: 4096, ..own() }, None),
        (Some(4), Config { entropies: 4100, ..own() }, Some("entropies")),
        (Some(4), Config { spares: 256, ..own() }, None),
        (Some(4), Config { spares: 257, ..own() }, Some("spares")),
        // 4096 active entropies and 256 spares for each of 16 planes are the most.
        (Some(16), Config { entropies: 4096, spares: 256, ..own() }, None),
        (Some(32), Config { entropies: 4096, spares: 129, ..own() }, Some("spares")),
        (Some(2), Config { denied: denied(1), ..own() }, None),
        (Some(2), Config { denied: denied(2), ..own() }, Some("denied")),
        (None, Config { denied: denied(0), ..own() }, Some("denied")),
        (None, Config { first_probe: Time::ZERO, ..own() }, Some("first-probe")),
        (None, Config { last_probe: Time::ZERO, ..own() }, Some("last-probe")),
    ] {
        let refused = config.validate(&plan(planes)).err().map(|error| error.path());
        assert_eq!(refused.as_deref(), field, "{planes:?} {config:?}");
    }
    assert_eq!(Config::default().validate(&plan(Some(2))), Ok(Vec::new()));
    assert!(Config::default().validate(&plan(None)).unwrap()[0].text.contains("one plane"));
    let failover = PortSharing { ports: 2, choice: PortChoice::Failover };
    assert_eq!(planes(&Plan { sharing: Some(failover), ..plan(None) }), None, "one port at a time");
}

#[test]
fn a_queue_pair_is_built_for_the_planes_of_its_plan() {
    for (planes, active) in [(None, 128), (Some(2), 128), (Some(4), 128)] {
        let plan = plan(planes);
        let mrc = Config::default().steer(QpSite { plan: &plan, qp: QpId(0) });
        let spares: Vec<usize> = mrc.spares.iter().map(VecDeque::len).collect();
        assert_eq!((mrc.ring.len(), spares), (active, vec![16; usize::from(planes.unwrap_or(1))]));
        assert_eq!(mrc.spread, planes.is_some());
    }
}
