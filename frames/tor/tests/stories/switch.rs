//! The ToR as a switch: what SONiC's test plans for RoCEv2 demand, on virtual time. Four ports of one ToR, classes 3 and 4
//! lossless, classes 0 and 1 lossy, ACKs in class 6, CNPs in class 5.

use crate::lab::{self, Lab, Transfer, mac};
use tor::{Buffer, Chance, Classes, Event, MarkAt, Marking, PortId, Rate, Settings, Span, Spine, Time};
use wire::ecn::Ecn;

const LINE: u64 = 10_000_000_000;

fn line() -> Rate {
    Rate::from_bits(LINE).unwrap()
}

fn at(millis: u64) -> Time {
    Time::ZERO + Span::from_millis(millis)
}

/// DSCP of each class: eight times its number; CNPs have 48.
fn dscp(class: u8) -> u8 {
    8 * class
}

fn classes() -> Classes {
    let mut map = [0; 64];
    for class in 0..8u8 {
        for low in 0..8 {
            map[usize::from(8 * class + low)] = class;
        }
    }
    map[48] = 5;
    map[50] = 6;
    let mut lossless = [false; 8];
    (lossless[3], lossless[4]) = (true, true);
    let mut strict = [false; 8];
    (strict[5], strict[6]) = (true, true);
    Classes {
        dscp: map,
        lossless,
        strict,
        weights: [1, 1, 1, 2, 4, 1, 1, 1],
        buffer: Buffer { size: 4 << 20, alpha_percent: 25, xoff: 150_000, xon: 100_000 },
        ..Classes::default()
    }
}

/// Four hosts on one ToR, or on four ToRs with spines between them.
fn tor(classes: Classes, spines: usize) -> Settings {
    let mut settings = Settings::of_ports(4);
    settings.classes = classes;
    for port in &mut settings.ports {
        port.rate = Some(line());
        port.last_hop = Span::from_micros(1);
        if spines == 0 {
            port.leaf = 0;
        }
    }
    settings.spines = (0..spines as u64)
        .map(|i| Spine { delay: Span::from_micros(5 + 3 * i), ..Spine::default() })
        .collect();
    settings.themis.mode = if spines == 0 { tor::Mode::Off } else { tor::Mode::Sound };
    settings
}

fn transfer(from: usize, to: usize, class: u8, n: u32) -> Transfer {
    Transfer {
        from,
        to,
        qps: (100 + n, 200 + n),
        source_port: 0xC000 + n as u16,
        dscp: dscp(class),
        packets: u64::MAX / 2,
        window: 512,
        timeout: Span::from_millis(500),
        reply_delay: Span::from_micros(1),
        ..Transfer::default()
    }
}

/// TC1: without congestion nothing is lost, marked, paused or NACKed, and every class counts its own packets.
#[test]
fn without_congestion_nothing_happens_to_packets() {
    for spines in [0, 4] {
        let marking =
            Marking { kmin: 100_000, kmax: 400_000, pmax: Chance::new(0.2).unwrap(), at: MarkAt::Dequeue };
        let settings = tor(Classes { marking: [Some(marking); 8], ..classes() }, spines);
        let of = |(n, class): (u32, u8)| Transfer {
            packets: 5_000,
            window: 16,
            ecn: Ecn::Ect0,
            ..transfer(0, 1 + n as usize % 3, class, n)
        };
        let transfers: Vec<Transfer> = (0..).zip([0, 1, 3, 4]).map(of).collect();
        let mut lab = Lab::new(&settings, line(), &transfers);
        lab.run(at(60_000));
        assert!(lab.done());
        lab.run_on(lab.now + Span::from_millis(1));
        let counters = lab.tor.counters().clone();
        for (n, transfer) in transfers.iter().enumerate() {
            let counts = lab.counts(n);
            assert_eq!((counts.sent, counts.nacks, counts.delivered), (5_000, 0, 5_000));
            assert_eq!((counts.marked, counts.cnps_sent), (0, 0));
            // A NACK that Themis has blocked reaches the sender as an ACK.
            assert_eq!(counts.acks_sent + counts.nacks_sent, counts.acks);
            assert!(spines > 0 || counts.nacks_sent == 0);
            // Data and its ACKs have one class here.
            let class = usize::from(transfer.dscp / 8);
            assert_eq!(lab.received(transfer.to, class), 5_000);
            assert_eq!(lab.received(0, class), counts.acks);
        }
        let received: u64 = counters.ports.iter().map(|port| port.in_frames).sum();
        let sent: u64 = counters.ports.iter().map(|port| port.out_frames).sum();
        assert_eq!(received, sent);
        let all = counters.ports.iter().flat_map(|port| port.classes);
        assert!(all.clone().all(|c| c.marked == 0 && c.dropped == 0 && c.pfc_in == 0 && c.pfc_out == 0));
    }
}

/// TC2: three hosts send to the fourth at line rate. Lossless classes lose nothing and are paused; lossy ones lose and are
/// not; the classes share the port by their weights.
#[test]
fn pauses_protect_lossless_classes_only() {
    let settings = tor(classes(), 0);
    let of = |n: u32| transfer(n as usize % 3, 3, [0, 1, 3, 4][n as usize / 3], n);
    let transfers: Vec<Transfer> = (0..12).map(of).collect();
    let mut lab = Lab::new(&settings, line(), &transfers);
    lab.run_on(at(5));
    let before: Vec<u64> = (0..8).map(|class| lab.received(3, class)).collect();
    lab.run_on(at(25));
    let got: Vec<f64> = (0..8).map(|class| (lab.received(3, class) - before[class]) as f64).collect();
    let port = &lab.tor.counters().ports[3];
    for (n, transfer) in transfers.iter().enumerate() {
        let (class, counts) = (usize::from(transfer.dscp / 8), lab.counts(n));
        if settings.classes.lossless[class] {
            assert_eq!((counts.nacks, counts.timeouts, counts.marked), (0, 0, 0));
            assert!(lab.pauses(transfer.from, class) > 0, "class {class} of host {}", transfer.from);
        } else {
            assert_eq!(lab.pauses(transfer.from, class), 0);
        }
    }
    for class in [3, 4] {
        assert_eq!(port.classes[class].dropped, 0);
    }
    assert!(port.classes[0].dropped + port.classes[1].dropped > 0);
    assert_eq!(port.classes.iter().map(|class| class.marked).sum::<u64>(), 0);
    // Classes 3 and 4 have data at all times; their weights are 2 and 4.
    let ratio = got[4] / got[3];
    assert!((ratio / 2.0 - 1.0).abs() < 0.05, "{got:?}");
}

/// TC3: with ECN and senders that obey CNPs, marks keep the queues below the thresholds of PFC.
#[test]
fn marks_come_before_pauses() {
    for (ecn, spines) in [(Ecn::Ect0, 0), (Ecn::Ect1, 0), (Ecn::Ect0, 4)] {
        let marking =
            Marking { kmin: 20_000, kmax: 80_000, pmax: Chance::new(0.5).unwrap(), at: MarkAt::Dequeue };
        let settings = tor(Classes { marking: [Some(marking); 8], ..classes() }, spines);
        let of = |n: u32| Transfer {
            ecn,
            controlled: true,
            window: 64,
            ..transfer(n as usize % 3, 3, 3 + n as u8 / 3, n)
        };
        let transfers: Vec<Transfer> = (0..6).map(of).collect();
        let mut lab = Lab::new(&settings, line(), &transfers);
        lab.run_on(at(30));
        let port = &lab.tor.counters().ports[3];
        let (mut sent, mut got) = (0, 0);
        for n in 0..6 {
            let counts = lab.counts(n);
            assert_eq!((counts.nacks, counts.timeouts), (0, 0), "{counts:?}");
            assert!(counts.marked > 0 && counts.cnps > 0, "{counts:?}");
            sent += counts.cnps_sent;
            got += counts.cnps;
        }
        assert!(sent - got <= 6, "{sent} {got}");
        let of_class: u64 = (0..3).map(|host| lab.received(host, 5)).sum();
        assert_eq!(of_class, got);
        for class in [3, 4] {
            let own = port.classes[class];
            assert!(own.dropped == 0 && own.marked > 0);
            let pauses: u64 = (0..3).map(|host| lab.pauses(host, class)).sum();
            assert!(pauses <= 100, "{pauses}");
        }
    }
}

/// TC3: the buffer marks before it pauses. The first mark of a lossless class leaves before the first pause frame does.
#[test]
fn the_first_mark_comes_before_the_first_pause() {
    let marking =
        Marking { kmin: 20_000, kmax: 80_000, pmax: Chance::new(0.5).unwrap(), at: MarkAt::Dequeue };
    let settings = tor(Classes { marking: [Some(marking); 8], ..classes() }, 0);
    // Senders that do not slow down, so that pauses come as well.
    let of = |n: u32| Transfer { ecn: Ecn::Ect0, packets: 2_000, ..transfer(n as usize, 3, 3, n) };
    let transfers: Vec<Transfer> = (0..3).map(of).collect();
    let mut lab = Lab::new(&settings, line(), &transfers);
    lab.seen = Some(Vec::new());
    lab.run(at(1_000));
    assert!(lab.done());
    lab.run_on(lab.now + Span::from_millis(1));
    let seen = lab.seen.take().unwrap();
    let leaves = |test: &dyn Fn(&[u8]) -> bool| {
        seen.iter().filter(|frame| frame.leaves && test(&frame.bytes)).map(|frame| frame.at).min()
    };
    let is_pause = |bytes: &[u8]| bytes[12..14] == [0x88, 0x08];
    let is_marked = |bytes: &[u8]| !is_pause(bytes) && bytes[15] & 3 == 3;
    let (mark, pause) = (leaves(&is_marked).unwrap(), leaves(&is_pause).unwrap());
    assert!(mark < pause, "{mark:?} {pause:?}");
    let marked: u64 = lab.tor.counters().ports[3].classes.iter().map(|class| class.marked).sum();
    let with_ce = seen.iter().filter(|frame| frame.leaves && is_marked(&frame.bytes)).count();
    assert_eq!(marked, with_ce as u64, "the counter is what leaves with CE");
}

/// TC4: storage traffic, three hosts that write to one. Without DCQCN, PFC alone keeps it lossless; with DCQCN, far fewer pauses
/// do, and the link stays as busy.
#[test]
fn congestion_control_replaces_most_pauses() {
    let phase = |controlled: bool| {
        let marking =
            Marking { kmin: 20_000, kmax: 80_000, pmax: Chance::new(0.5).unwrap(), at: MarkAt::Dequeue };
        let marking = [Some(marking).filter(|_| controlled); 8];
        let settings = tor(Classes { marking, ..classes() }, 0);
        let ecn = if controlled { Ecn::Ect0 } else { Ecn::NotEct };
        let of = |n: u32| Transfer { ecn, controlled, window: 128, ..transfer(n as usize % 3, 3, 3, n) };
        let transfers: Vec<Transfer> = (0..6).map(of).collect();
        let mut lab = Lab::new(&settings, line(), &transfers);
        lab.run_on(at(10));
        let before = lab.received(3, 3);
        lab.run_on(at(40));
        for n in 0..6 {
            let counts = lab.counts(n);
            assert_eq!((counts.nacks, counts.timeouts), (0, 0), "{counts:?}");
            assert_eq!(counts.cnps > 0, controlled);
        }
        assert_eq!(lab.tor.counters().ports[3].classes[3].dropped, 0);
        let pauses: u64 = (0..3).map(|host| lab.pauses(host, 3)).sum();
        (pauses, lab.received(3, 3) - before)
    };
    let ((pauses, carried), (fewer, beside)) = (phase(false), phase(true));
    assert!(pauses > 0 && fewer * 10 <= pauses, "{pauses} {fewer}");
    // The test NICs' own reaction (0.6 of the rate per CNP) costs some of the link.
    assert!(beside * 10 >= carried * 7, "{carried} {beside}");
}

/// TC6: six queue pairs of three hosts share a port. Their shares are within 30 % of the mean, sequence errors stay below 1 %, and
/// no message fails, with one ToR and with sprayed paths.
#[test]
fn queue_pairs_share_a_port_fairly() {
    for spines in [0, 4] {
        let marking =
            Marking { kmin: 20_000, kmax: 80_000, pmax: Chance::new(0.5).unwrap(), at: MarkAt::Dequeue };
        let settings = tor(Classes { marking: [Some(marking); 8], ..classes() }, spines);
        let of = |n: u32| Transfer {
            ecn: Ecn::Ect0,
            controlled: true,
            window: 64,
            ..transfer(n as usize % 3, 3, 3, n)
        };
        let transfers: Vec<Transfer> = (0..6).map(of).collect();
        let mut lab = Lab::new(&settings, line(), &transfers);
        lab.run_on(at(20));
        let before: Vec<u64> = (0..6).map(|n| lab.counts(n).delivered).collect();
        lab.run_on(at(120));
        let got: Vec<u64> = (0..6).map(|n| lab.counts(n).delivered - before[n]).collect();
        let mean = got.iter().sum::<u64>() as f64 / 6.0;
        assert!(got.iter().all(|&own| (own as f64 / mean - 1.0).abs() <= 0.3), "{got:?}");
        for n in 0..6 {
            let counts = lab.counts(n);
            assert_eq!(counts.timeouts, 0);
            // Sequence errors are NACKs at the sender.
            assert!(counts.nacks * 100 <= counts.sent, "{counts:?}");
        }
    }
}

/// A storm of pauses on the lossless classes: lossy ones lose nothing, and their rate is within 2 % of what it was.
#[test]
fn a_storm_of_pauses_leaves_lossy_classes_alone() {
    let run = |storm: bool| {
        let settings = tor(classes(), 0);
        // Together they leave a tenth of the line free, so that neither needs what the other one has.
        let of = |class: u8, n: u32| Transfer { most: 45, ..transfer(n as usize, 3, class, n) };
        let mut lab = Lab::new(&settings, line(), &[of(3, 0), of(0, 1)]);
        for micros in (0..20_000).step_by(100) {
            if storm {
                // Longer than the time to the next one.
                lab.enter(PortId(3), pause(3, 3, u16::MAX));
                lab.enter(PortId(3), pause(3, 4, u16::MAX));
            }
            lab.run_on(Time::ZERO + Span::from_micros(micros + 100));
        }
        let port = &lab.tor.counters().ports[3];
        assert_eq!(port.classes[0].dropped, 0);
        assert_eq!(lab.counts(1).nacks, 0);
        (lab.received(3, 0), lab.received(3, 3))
    };
    let ((calm, lossless), (stormy, stopped)) = (run(false), run(true));
    assert!(lossless > 1_000 && stopped < 20, "{lossless} {stopped}");
    assert!((stormy as f64 / calm as f64 - 1.0).abs() <= 0.02, "{calm} {stormy}");
}

/// A burst to a port that is paused, then released: no mark up to kmin, a linear chance up to kmax, and always above it.
#[test]
fn marks_follow_the_depth_of_the_queue() {
    let (kmin, kmax, pmax) = (100_000u64, 600_000u64, 0.5);
    for (at_, seeds) in [(MarkAt::Dequeue, 20), (MarkAt::Enqueue, 20)] {
        // By bucket of a tenth between kmin and kmax, with one below and one above: packets, marks.
        let mut buckets = [(0u64, 0u64); 12];
        for seed in 1..=seeds {
            let marking = Marking { kmin, kmax, pmax: Chance::new(pmax).unwrap(), at: at_ };
            let mut settings = tor(Classes { marking: [Some(marking); 8], ..classes() }, 0);
            settings.seed = seed;
            let template = Transfer { ecn: Ecn::Ect0, ..transfer(0, 3, 3, 0) };
            let mut lab = Lab::new(&settings, line(), &[]);
            lab.enter(PortId(3), pause(3, 3, u16::MAX));
            let frame = template.frame(
                true,
                wire::bth::Opcode::SendOnly,
                0,
                wire::roce::Extension::None,
                1024,
                false,
                24,
                Ecn::Ect0,
            );
            let count = 750u64;
            for _ in 0..count {
                lab.enter(PortId(0), frame.clone());
            }
            let marks = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
            let seen = marks.clone();
            lab.tap = Some(Box::new(move |_, port, bytes| {
                if port == PortId(3) {
                    seen.borrow_mut().push(bytes[15] & 3 == 3);
                    // The checksum still holds, and so does the ICRC.
                    assert!(lab::parse(bytes).is_some());
                }
                false
            }));
            lab.enter(PortId(3), pause(3, 3, 0));
            lab.run_on(lab.now + Span::from_millis(5));
            let len = frame.len() as u64;
            assert_eq!(marks.borrow().len() as u64, count);
            for (i, marked) in (0u64..).zip(marks.borrow().iter()) {
                let depth = match at_ {
                    MarkAt::Dequeue => (count - 1 - i) * len,
                    MarkAt::Enqueue => (i + 1) * len,
                };
                let bucket = if depth <= kmin {
                    0
                } else if depth > kmax {
                    11
                } else {
                    1 + (depth - kmin - 1) * 10 / (kmax - kmin)
                };
                let own = &mut buckets[bucket as usize];
                *own = (own.0 + 1, own.1 + u64::from(*marked));
            }
            let all = marks.borrow().iter().filter(|marked| **marked).count() as u64;
            assert_eq!(lab.tor.counters().ports[3].classes[3].marked, all);
        }
        assert_eq!((buckets[0].1, buckets[11].1), (0, buckets[11].0), "{buckets:?}");
        for (n, (packets, marks)) in buckets.iter().enumerate().take(11).skip(1) {
            let expected = pmax * (n as f64 - 0.5) / 10.0;
            let share = *marks as f64 / *packets as f64;
            // Within 10 % or, where few marks fall, four standard deviations.
            let deviation = 4.0 * (expected * (1.0 - expected) / *packets as f64).sqrt();
            assert!(
                (share - expected).abs() < (0.1 * expected).max(deviation),
                "{at_:?} {n}: {share} {expected}"
            );
        }
    }
}

/// Packets whose ends do not support ECN are never marked.
#[test]
fn packets_without_ect_are_never_marked() {
    let marking = Marking { kmin: 0, kmax: 1, pmax: Chance::ALWAYS, at: MarkAt::Enqueue };
    let settings = tor(Classes { marking: [Some(marking); 8], ..classes() }, 0);
    for (ecn, marked) in [(Ecn::NotEct, 0), (Ecn::Ce, 500), (Ecn::Ect0, 500), (Ecn::Ect1, 500)] {
        let mut lab = Lab::new(&settings, line(), &[Transfer { packets: 500, ecn, ..transfer(0, 3, 3, 0) }]);
        lab.run(at(1000));
        assert!(lab.done());
        assert_eq!(lab.counts(0).marked, marked, "{ecn:?}");
        let own = u64::from(ecn == Ecn::Ect0 || ecn == Ecn::Ect1) * 500;
        assert_eq!(lab.tor.counters().ports[3].classes[3].marked, own);
    }
}

/// A pause frame for a class.
fn pause(host: usize, class: u8, quanta: u16) -> Vec<u8> {
    control(host, |bytes| {
        wire::pfc::Repr::of(class, quanta).emit(&mut wire::pfc::View::new(bytes).unwrap());
    })
}

fn control(host: usize, fill: impl Fn(&mut [u8])) -> Vec<u8> {
    let mut bytes = vec![0; 60];
    let link = wire::ethernet::Repr {
        destination: wire::pfc::DESTINATION,
        source: mac(host),
        ether_type: wire::ethernet::EtherType::MAC_CONTROL,
    };
    link.emit(&mut wire::ethernet::View::new(&mut bytes[..]).unwrap());
    fill(&mut bytes[14..]);
    bytes
}

/// A host pauses a lossless class: its packets stop, those of other classes do not. Pauses of no class, of lossy classes and
/// of all classes change nothing.
#[test]
fn a_port_obeys_pauses_of_lossless_classes_only() {
    let settings = tor(classes(), 0);
    let transfers = [transfer(0, 3, 3, 0), transfer(1, 3, 0, 1)];
    let mut lab = Lab::new(&settings, line(), &transfers);
    lab.run_on(at(2));
    for frame in [
        pause(3, 0, u16::MAX),
        control(3, |bytes| bytes[1] = 1), // a pause of all classes
        control(3, |bytes| (bytes[0], bytes[1]) = (1, 1)), // a vector without a class
    ] {
        lab.enter(PortId(3), frame);
    }
    let before = [lab.received(3, 0), lab.received(3, 3)];
    lab.run_on(at(4));
    assert!(lab.received(3, 0) > before[0] + 500 && lab.received(3, 3) > before[1] + 500);
    let port = &lab.tor.counters().ports[3];
    assert_eq!((port.global_pauses, port.control_ignored), (1, 1));
    assert_eq!((port.classes[0].pfc_in, port.classes[3].pfc_in), (1, 0));

    lab.enter(PortId(3), pause(3, 3, u16::MAX));
    lab.run_on(lab.now + Span::from_micros(10)); // what is on the last hop still arrives
    let before = [lab.received(3, 0), lab.received(3, 3)];
    lab.run_on(lab.now + Span::from_millis(2));
    assert_eq!(lab.received(3, 3), before[1]);
    assert!(lab.received(3, 0) > before[0] + 500);
    lab.enter(PortId(3), pause(3, 3, 0));
    lab.run_on(lab.now + Span::from_millis(1));
    assert!(lab.received(3, 3) > before[1] + 100);

    // 65,535 quanta are 3.36 ms here; the pause ends by itself.
    lab.enter(PortId(3), pause(3, 3, u16::MAX));
    lab.run_on(lab.now + Span::from_micros(3_300));
    let before = lab.received(3, 3);
    lab.run_on(lab.now + Span::from_millis(1));
    assert!(lab.received(3, 3) > before + 100);
    assert_eq!(lab.counts(0).nacks, 0);
}

/// A host that pauses for ever has its class drained after the watchdog's time, so its ToR's buffer is free again.
#[test]
fn a_class_that_is_paused_for_too_long_is_drained() {
    let settings = tor(classes(), 0);
    let mut lab = Lab::new(&settings, line(), &[transfer(0, 3, 3, 0)]);
    for millis in 0..205 {
        lab.enter(PortId(3), pause(3, 3, u16::MAX));
        lab.enter(PortId(3), pause(3, 2, 0)); // that another class may go on changes nothing
        lab.run_on(at(millis + 1));
    }
    let drained = lab.tor.counters().ports[3].classes[3].watchdog;
    assert!(drained > 100, "{drained}");
    assert_eq!(
        lab.noted(|e| matches!(e, Event::Dropped { why: tor::out::Drop::Watchdog, .. })) as u64,
        drained
    );
}
