//! Scenes at one external switch.

use super::{Config, Notification, ReactionMode};
use crate::SchemeConfig;
use crate::bench::{Bench, datacentres, qp, reply};
use model::plan::{MarkAt, Marking};
use model::{Bytes, Kind, Plan, Probability, Psn, Time, Verdict};

/// Two datacentres of two racks with one host each: hosts 0 and 1 in the first, 2 and 3 in the second.
fn plan() -> Plan {
    let mut plan = datacentres(2);
    let marking = Marking {
        kmin: Bytes(10_000),
        kmax: Bytes(20_000),
        pmax: Probability::new(0.2),
        at: MarkAt::Dequeue,
    };
    plan.ports.iter_mut().for_each(|port| port.marking = Some(marking));
    plan
}

fn bench(plan: &Plan, node: &str, config: Config) -> Bench {
    Bench::new(plan, node, &SchemeConfig::LongHaul(config))
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
fn the_scheme_needs_a_long_link() {
    let plan = plan();
    let scheme = SchemeConfig::LongHaul(Config::default());
    let external = plan.fabric.find("external0").unwrap();
    assert!(scheme.place(&plan, &[external]).is_ok());
    let tor = plan.fabric.find("tor0").unwrap();
    let wrong = scheme.place(&plan, &[external, tor]).unwrap_err();
    assert!(wrong.message.contains("`tor0` has no long link"), "{wrong}");
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
