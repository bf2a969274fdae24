//! What no input may do: panic, change a byte that the ToR has no business with, grow the tables, or multiply frames.

use crate::lab::{self, Transfer, mac};
use proptest::prelude::*;
use tor::{Event, Mode, Out, Pool, PortId, Rate, Settings, Span, Spine, Steer, Time, Tor};
use wire::aeth::{self, Syndrome};
use wire::bth::Opcode;
use wire::ecn::Ecn;
use wire::roce::Extension;

/// Four hosts behind three ToRs and three spines; every feature is on.
fn fabric(steer: Steer) -> Settings {
    let mut settings = Settings::of_ports(4);
    settings.ports[3].leaf = 0;
    settings.spines =
        (1..4).map(|i| Spine { delay: Span::from_micros(10 * i), ..Spine::default() }).collect();
    settings.steer = steer;
    settings.themis.mode = Mode::Sound;
    settings.themis.connections = 64;
    for port in &mut settings.ports {
        port.rate = Rate::from_bits(1_000_000_000);
        port.last_hop = Span::from_micros(5);
    }
    let marking =
        tor::Marking { kmin: 0, kmax: 3_000, pmax: tor::Chance::new(0.5).unwrap(), at: tor::MarkAt::Dequeue };
    settings.classes.marking = [Some(marking); 8];
    settings.classes.lossless[3] = true;
    settings.classes.buffer.xoff = 4_000;
    settings.classes.buffer.xon = 2_000;
    settings
}

/// A ToR with a pool, which takes frames and gives them back in the order in which they leave.
struct Box_ {
    tor: Tor,
    pool: Pool,
    now: Time,
    notes: Vec<Event>,
}

impl Box_ {
    fn new(settings: &Settings) -> Self {
        Box_ { tor: Tor::new(settings), pool: Pool::new(256, 2048), now: Time::ZERO, notes: Vec::new() }
    }

    fn enter(&mut self, port: u16, bytes: &[u8]) -> Vec<(PortId, Vec<u8>)> {
        let frame = self.pool.copy_of(bytes).expect("a buffer");
        self.tor.frame(self.now, PortId(port), frame, &mut self.pool);
        self.poll()
    }

    fn poll(&mut self) -> Vec<(PortId, Vec<u8>)> {
        let mut sent = Vec::new();
        while let Some(out) = self.tor.poll() {
            match out {
                Out::Send { port, frame, .. } => {
                    sent.push((port, self.pool.bytes(&frame).to_vec()));
                    self.pool.put_back(frame);
                }
                Out::Note(note) => self.notes.push(note.event),
            }
        }
        sent
    }

    /// Lets time pass.
    fn pass(&mut self, span: Span) -> Vec<(PortId, Vec<u8>)> {
        self.now += span;
        self.tor.tick(self.now, &mut self.pool);
        self.poll()
    }

    /// Everything that comes of one frame.
    fn all(&mut self, port: u16, bytes: &[u8]) -> Vec<(PortId, Vec<u8>)> {
        let mut sent = self.enter(port, bytes);
        sent.extend(self.pass(Span::from_millis(2)));
        sent
    }
}

/// A packet of each kind, on one of some connections.
fn packets() -> impl Strategy<Value = (usize, Vec<u8>)> {
    let opcode = prop_oneof![
        4 => Just(0x02u8),
        3 => Just(0x11),
        1 => Just(0x81),
        1 => Just(0x0C),
        1 => any::<u8>(),
    ];
    let syndrome = prop_oneof![Just(0x1Fu8), Just(0x60), any::<u8>()];
    let vlan = prop_oneof![3 => Just(None), 1 => (0..4096u16).prop_map(Some)];
    (
        0..4usize,
        0..4usize,
        opcode,
        syndrome,
        0..40u64,
        0..3u32,
        any::<bool>(),
        vlan,
        0..64u8,
        0..4u8,
        0..300usize,
    )
        .prop_map(|(from, to, opcode, syndrome, psn, qp, v6, vlan, dscp, ecn, payload)| {
            let transfer = Transfer {
                from,
                to,
                qps: (10 + qp, 20 + qp),
                v6,
                vlan,
                first_psn: 0xFF_FFF0,
                ..Transfer::default()
            };
            let opcode = Opcode::from(opcode);
            let extension = match opcode {
                Opcode::Cnp => Extension::Cnp,
                opcode if opcode.has_aeth() => {
                    Extension::Aeth(aeth::Repr { syndrome: Syndrome::from(syndrome), msn: 1 })
                }
                opcode if opcode.has_reth() => {
                    Extension::Reth(wire::reth::Repr { address: 0, key: 0, length: payload as u32 })
                }
                _ => Extension::None,
            };
            let ecn = wire::ecn::TrafficClass(ecn).ecn();
            let payload = if opcode.has_aeth() { 0 } else { payload / 4 * 4 };
            (from, transfer.frame(true, opcode, psn, extension, payload, false, dscp, ecn))
        })
}

/// Frames of all kinds, damaged ones among them, with their ports.
fn frames() -> impl Strategy<Value = (u16, Vec<u8>)> {
    let damaged = (
        packets(),
        prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        any::<prop::sample::Index>(),
        0..4u8,
    )
        .prop_map(|((from, mut bytes), changes, cut, how)| {
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            match how {
                0 => bytes.truncate(cut.index(bytes.len() + 1)),
                1 => bytes.extend([0; 20]),
                _ => {}
            }
            (from as u16, bytes)
        });
    prop_oneof![
        4 => packets().prop_map(|(from, bytes)| (from as u16, bytes)),
        4 => damaged,
        1 => (0..4u16, prop::collection::vec(any::<u8>(), 0..200)),
        1 => (0..4u16, 0..4u32, prop::collection::vec(any::<u8>(), 0..60)).prop_map(|(port, from, rest)| {
            let mut bytes = [wire::pfc::DESTINATION.0, wire::ethernet::Address::local(from + 1).0].concat();
            bytes.extend([0x88, 0x08]);
            bytes.extend(rest);
            (port, bytes)
        }),
    ]
}

/// Bytes of a frame that the ToR may change, by the frame that came in: ECN, IP checksum, and with XOR the port and ICRC.
fn may_change(bytes: &[u8], steer: Steer) -> Vec<usize> {
    let Some(link) = tor::frame::Link::of(bytes) else { return vec![] };
    let mut may = Vec::new();
    match tor::frame::classify(&link, bytes) {
        tor::frame::Class::Roce(roce) => {
            may.extend([roce.ip + 1]);
            if bytes[roce.ip] >> 4 == 4 {
                may.extend([roce.ip + 10, roce.ip + 11]);
            }
            if steer != Steer::Port {
                may.extend([roce.udp, roce.udp + 1]);
                may.extend(roce.icrc..roce.icrc + 4);
            }
            if roce.kind == tor::frame::Kind::Nack {
                // A blocked NACK becomes an ACK: PSN, syndrome, ICRC.
                may.extend(roce.bth() + 9..roce.bth() + 13);
                may.extend(roce.icrc..roce.icrc + 4);
            }
        }
        _ if tor::frame::traffic_class(&link, bytes).is_some() => {
            may.extend([link.payload + 1, link.payload + 10, link.payload + 11]);
        }
        _ => {}
    }
    may
}

/// Feeds frames, and checks that all that leaves came in.
fn check(settings: &Settings, input: &[(u16, Vec<u8>)]) -> Result<(), TestCaseError> {
    let mut own = Box_::new(settings);
    for (port, bytes) in input {
        let before = own.tor.counters().compensated;
        let sent = own.all(*port, bytes);
        let copies = own.tor.counters().compensated - before;
        let mut unlike = 0;
        for (to, out) in &sent {
            if out.get(12..14) == Some(&[0x88, 0x08]) {
                continue; // a pause of the ToR's own
            }
            prop_assert_ne!(to.0, *port, "a frame went back");
            let may = may_change(bytes, settings.steer);
            let same = out.len() == bytes.len()
                && out.iter().zip(bytes).enumerate().all(|(at, (a, b))| a == b || may.contains(&at));
            unlike += u64::from(!same);
        }
        // Only a kept NACK leaves beside the frame itself, and frames are copied only to flood them.
        prop_assert!(unlike <= copies, "{:02x?} became {:02x?}", bytes, sent);
        prop_assert!(sent.len() as u64 <= 4 + copies + 8);
    }
    own.pass(Span::from_millis(500));
    prop_assert_eq!(own.pool.free(), own.pool.count(), "a buffer is lost");
    prop_assert!(own.tor.occupancy().0 <= settings.themis.connections);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn frames_leave_as_they_came(
        steer in prop::sample::select(vec![Steer::Port, Steer::XorUndo, Steer::XorIcrc]),
        input in prop::collection::vec(frames(), 1..60),
    ) {
        check(&fabric(steer), &input)?;
    }
}

/// Feeds frames to a ToR that remembers connections, and to one that forgets them all the time: both do the same.
fn compare(settings: &Settings, input: &[(u16, Vec<u8>, u64)]) -> Result<(), TestCaseError> {
    let (mut own, mut other) = (Box_::new(settings), Box_::new(settings));
    for (port, bytes, micros) in input {
        other.tor.forget_recent();
        prop_assert_eq!(own.enter(*port, bytes), other.enter(*port, bytes));
        other.tor.forget_recent();
        prop_assert_eq!(own.pass(Span::from_micros(*micros)), other.pass(Span::from_micros(*micros)));
        prop_assert_eq!(own.tor.counters(), other.tor.counters());
        prop_assert_eq!(&own.notes, &other.notes);
    }
    prop_assert!(own.tor.flows().eq(other.tor.flows()));
    Ok(())
}

/// The frames of some connections between hosts that stay where they are, and some that move.
fn conversations() -> impl Strategy<Value = Vec<(u16, Vec<u8>, u64)>> {
    // Time passes a little, or so much that stations and connections are forgotten.
    let micros = prop_oneof![20 => 0..30u64, 1 => Just(70_000_000), 1 => Just(301_000_000)];
    let moves = prop_oneof![30 => Just(None), 1 => (0..4u16).prop_map(Some)];
    let packet = (packets(), micros, moves)
        .prop_map(|((from, bytes), micros, moved)| (moved.unwrap_or(from as u16), bytes, micros));
    prop::collection::vec(packet, 1..200)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_remembered_changes_nothing(
        steer in prop_oneof![4 => Just(Steer::Port), 1 => Just(Steer::XorUndo), 1 => Just(Steer::XorIcrc)],
        fast in prop_oneof![3 => Just(true), 1 => Just(false)],
        uplinks in prop_oneof![3 => Just(false), 1 => Just(true)],
        input in conversations(),
    ) {
        let mut settings = fabric(steer);
        if fast {
            // Most frames then pass in one go.
            settings.spines.iter_mut().for_each(|spine| spine.delay = Span::ZERO);
            settings.ports.iter_mut().for_each(|port| (port.rate, port.last_hop) = (None, Span::ZERO));
            settings.classes.marking = [None; 8];
        }
        if uplinks {
            settings.spines.clear();
            settings.ports[2].uplink = true;
            settings.ports[3].uplink = true;
        }
        compare(&settings, &input)?;
    }
}

/// Numbers from a seed (xorshift, Marsaglia 2003), for tests that need millions.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

/// Hashes of the frames that came in last and are no RoCEv2, without the bytes that a mark changes. At least the last
/// [`Kept::SOME`] of them are kept, more than can wait for the end of a pause.
struct Kept {
    young: Vec<u64>,
    old: Vec<u64>,
    count: usize,
}

impl Kept {
    const SOME: usize = 1 << 16;
    const PLACES: usize = 4 * Self::SOME;

    fn new() -> Self {
        Kept { young: vec![0; Self::PLACES], old: vec![0; Self::PLACES], count: 0 }
    }

    /// The hash of a frame (FNV-1a, by words), and nothing for frames of which the ToR may change more than a mark.
    fn hash(bytes: &[u8]) -> Option<u64> {
        let link = tor::frame::Link::of(bytes)?;
        if tor::frame::classify(&link, bytes) != tor::frame::Class::Other {
            return None;
        }
        let marks = tor::frame::traffic_class(&link, bytes).is_some();
        let mut hash = 0xCBF2_9CE4_8422_2325 ^ bytes.len() as u64;
        let mut add = |bytes: &[u8]| {
            for part in bytes.chunks(8) {
                let word = part.iter().fold(0u64, |word, byte| word << 8 | u64::from(*byte));
                hash = (hash ^ word).wrapping_mul(0x0000_0100_0000_01B3);
                hash ^= hash >> 29;
            }
        };
        if marks {
            let rest = &bytes[link.payload..];
            add(&bytes[..link.payload]);
            add(&rest[..1]);
            add(rest.get(2..10).unwrap_or_default());
            add(rest.get(12..).unwrap_or_default());
        } else {
            add(bytes);
        }
        Some(hash | 1)
    }

    fn place(set: &[u64], hash: u64) -> usize {
        let mut at = (hash >> 32) as usize % Self::PLACES;
        while set[at] != 0 && set[at] != hash {
            at = (at + 1) % Self::PLACES;
        }
        at
    }

    fn add(&mut self, hash: u64) {
        if self.count == Self::SOME {
            std::mem::swap(&mut self.young, &mut self.old);
            self.young.fill(0);
            self.count = 0;
        }
        let at = Self::place(&self.young, hash);
        self.count += usize::from(self.young[at] == 0);
        self.young[at] = hash;
    }

    fn has(&self, hash: u64) -> bool {
        [&self.young, &self.old].into_iter().any(|set| set[Self::place(set, hash)] == hash)
    }
}

/// Resident memory of this process in kB (Linux).
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = text.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
    4 * pages
}

/// Frames made from a few good ones by damage: none panics, no buffer is lost, what is no RoCEv2 leaves as it came, and
/// memory stays as it is.
#[allow(clippy::print_stdout)] // what a long campaign has reached
fn fuzz(count: u64, seed: u64) {
    let mut numbers = Numbers(0x9E37_79B9_7F4A_7C15 ^ seed);
    let mut good = Vec::new();
    for (from, to) in [(0, 1), (1, 0), (2, 3), (0, 2)] {
        for v6 in [false, true] {
            let t = Transfer { from, to, v6, first_psn: 0, ..Transfer::default() };
            for psn in 0..6 {
                good.push((
                    from,
                    t.frame(true, Opcode::SendOnly, psn, Extension::None, 64, true, 24, Ecn::Ect0),
                ));
                for syndrome in [Syndrome::ACK, Syndrome::PSN_SEQUENCE] {
                    let aeth = Extension::Aeth(aeth::Repr { syndrome, msn: 0 });
                    good.push((
                        to,
                        t.frame(false, Opcode::Acknowledge, psn, aeth, 0, false, 24, Ecn::NotEct),
                    ));
                }
            }
        }
    }
    let (mut own, mut kept, mut bytes) = (Box_::new(&fabric(Steer::XorIcrc)), Kept::new(), Vec::new());
    let (mut others, mut sent, mut first) = (0u64, 0u64, 0);
    for n in 0..count {
        let (from, template) = &good[numbers.below(good.len())];
        bytes.clone_from(template);
        for _ in 0..numbers.below(4) {
            let at = numbers.below(bytes.len());
            bytes[at] = numbers.next() as u8;
        }
        if numbers.below(8) == 0 {
            let len = numbers.below(bytes.len() + 1);
            bytes.truncate(len);
        }
        if numbers.below(3) == 0
            && let Some(packet) = bytes.get_mut(14..)
        {
            // A right ICRC lets damage pass the first check.
            let _ = wire::icrc::fill(packet);
        }
        let port = if numbers.below(16) == 0 { numbers.below(4) } else { *from };
        if let Some(hash) = Kept::hash(&bytes) {
            kept.add(hash);
        }
        let frame = own.pool.copy_of(&bytes).expect("a buffer");
        own.tor.frame(own.now, PortId(port as u16), frame, &mut own.pool);
        own.now += Span::from_micros(numbers.below(30) as u64);
        own.tor.tick(own.now, &mut own.pool);
        while let Some(out) = own.tor.poll() {
            let Out::Send { frame, .. } = out else { continue };
            let bytes = own.pool.bytes(&frame);
            if let Some(hash) = Kept::hash(bytes) {
                assert!(kept.has(hash), "frame {n}: {bytes:02x?} never came in");
                others += 1;
            }
            sent += 1;
            own.pool.put_back(frame);
        }
        if n == count / 10 {
            first = resident();
        }
        if n > 0 && n % 100_000_000 == 0 {
            println!("{n} frames, {sent} sent, {others} of them no RoCEv2, {} kB", resident());
        }
    }
    own.pass(Span::from_secs(1));
    assert_eq!(own.pool.free(), own.pool.count());
    let (blocked, learnt) = (own.tor.counters().all_blocked(), own.tor.counters().learnt);
    let last = resident();
    println!(
        "{count} frames, seed {seed}: {sent} sent, {others} of them no RoCEv2, {blocked} NACKs blocked, {learnt} connections learnt"
    );
    println!("memory {last} kB, {first} kB after a tenth");
    assert!(blocked > 0 && learnt > 0 && others > 0);
    // Our choice: other tests may run in this process; a leak of one byte per frame would be 10 MB.
    assert!(last <= first + 4096, "memory grew from {first} to {last} kB");
}

#[test]
fn damaged_frames_do_no_harm() {
    fuzz(20_000, 0);
}

/// More frames, and others: `TOR_FUZZ="1000000000 7"` gives their number and a seed.
#[test]
#[ignore = "takes a minute: make exhaustive"]
fn ten_million_damaged_frames_do_no_harm() {
    let asked = std::env::var("TOR_FUZZ").unwrap_or_default();
    let mut numbers = asked.split(' ').map_while(|word| word.parse().ok());
    fuzz(numbers.next().unwrap_or(10_000_000), numbers.next().unwrap_or(0));
}

/// A ToR that has seen a late packet, so that the next NACK is blocked.
fn armed(settings: &Settings, t: &Transfer) -> Box_ {
    let mut own = Box_::new(settings);
    own.enter(1, &t.frame(false, Opcode::SendOnly, 0, Extension::None, 4, false, 0, Ecn::NotEct));
    own.pass(Span::from_millis(1));
    for psn in [0, 1, 3] {
        own.all(0, &t.frame(true, Opcode::SendOnly, psn, Extension::None, 64, true, 0, Ecn::NotEct));
    }
    own
}

/// A NACK with one byte changed gets the same verdict, or passes.
#[test]
fn a_damaged_nack_is_judged_alike_or_passes() {
    let settings = fabric(Steer::Port);
    let t = Transfer { first_psn: 500, ..Transfer::default() };
    let aeth = Extension::Aeth(aeth::Repr { syndrome: Syndrome::PSN_SEQUENCE, msn: 0 });
    let nack = t.frame(false, Opcode::Acknowledge, 2, aeth, 0, false, 0, Ecn::NotEct);
    assert_eq!(nack.len(), 62);
    let mut own = armed(&settings, &t);
    let sent = own.all(1, &nack);
    assert_eq!((own.tor.counters().all_blocked(), sent.len()), (1, 1));
    let ack = lab::parse(&sent[0].1).unwrap().0;
    assert_eq!(ack.extension, Extension::Aeth(aeth::Repr { syndrome: Syndrome::ACK, msn: 0 }));
    assert_eq!(ack.bth.psn.value(), 501);
    for at in 0..nack.len() {
        for bit in 0..8 {
            let mut own = armed(&settings, &t);
            let mut damaged = nack.clone();
            damaged[at] ^= 1 << bit;
            let sent = own.all(1, &damaged);
            let blocked = own.tor.counters().all_blocked();
            if blocked == 0 {
                // It passed, or was flooded, or the switch itself had no use for it.
                assert!(sent.iter().all(|(_, bytes)| *bytes == damaged), "byte {at} bit {bit}");
            } else {
                let masked = |at| at < 14 || [15, 22, 24, 25, 40, 41, 46].contains(&at);
                assert!(blocked == 1 && masked(at), "byte {at} bit {bit}");
            }
            assert_eq!(own.tor.counters().unlearnt, 0);
        }
    }
}

/// NACKs from elsewhere neither arm nor unlearn: from another port, from another address, and for packets not expected.
#[test]
fn spoofed_nacks_are_not_judged() {
    let settings = fabric(Steer::Port);
    let t = Transfer { first_psn: 500, ..Transfer::default() };
    let nack = |t: &Transfer, psn| {
        let aeth = Extension::Aeth(aeth::Repr { syndrome: Syndrome::PSN_SEQUENCE, msn: 0 });
        t.frame(false, Opcode::Acknowledge, psn, aeth, 0, false, 0, Ecn::NotEct)
    };
    let ack = t.frame(
        false,
        Opcode::Acknowledge,
        1,
        Extension::Aeth(aeth::Repr { syndrome: Syndrome::ACK, msn: 0 }),
        0,
        false,
        0,
        Ecn::NotEct,
    );
    let mut own = armed(&settings, &t);
    own.all(1, &ack);
    assert_eq!(own.tor.counters().learnt, 1);
    let mut from_other_mac = nack(&t, 2);
    from_other_mac[6..12].copy_from_slice(&mac(2).0);
    for (port, bytes) in [
        (2, nack(&t, 2)),
        (1, from_other_mac),
        (1, nack(&t, 1)), // acknowledged
        (1, nack(&t, 5)), // not sent: 4 could be expected
        (1, nack(&Transfer { qps: (99, 18), ..t.clone() }, 2)),
    ] {
        own.all(port, &bytes);
        let counters = own.tor.counters();
        assert_eq!(
            (counters.all_blocked() + counters.all_forwarded(), counters.unlearnt, own.tor.occupancy().1),
            (0, 0, 0)
        );
    }
    assert_eq!(own.tor.counters().nacks_passed, 5);
    own.all(1, &nack(&t, 2));
    assert_eq!(own.tor.counters().all_blocked(), 1);
}

/// A queue pair that is set up again before its replies are known does not hide the other flows between its hosts.
#[test]
fn a_flow_that_starts_anew_hides_no_other() {
    let mut own = Box_::new(&fabric(Steer::Port));
    let of = |requester, responder, first_psn| Transfer {
        qps: (requester, responder),
        first_psn,
        ..Transfer::default()
    };
    let data = |t: &Transfer| t.frame(true, Opcode::SendOnly, 0, Extension::None, 4, true, 0, Ecn::NotEct);
    let ack = |t: &Transfer| {
        let aeth = Extension::Aeth(aeth::Repr { syndrome: Syndrome::ACK, msn: 0 });
        t.frame(false, Opcode::Acknowledge, 0, aeth, 0, false, 0, Ecn::NotEct)
    };
    let (first, second) = (of(17, 18, 500), of(27, 28, 500));
    own.all(1, &ack(&of(99, 98, 0))); // the ToR learns where host 1 is
    own.all(0, &data(&first));
    own.all(0, &data(&second));
    // Further away than any window.
    own.all(0, &data(&of(27, 28, 500_000)));
    assert_eq!((own.tor.counters().again, own.tor.counters().learnt), (1, 0));
    own.all(1, &ack(&first));
    assert_eq!(own.tor.counters().learnt, 1);
}

/// A flood of queue pair numbers fills the table and no more; a connection that was there before keeps its place.
#[test]
fn a_flood_of_queue_pairs_does_not_push_out_connections() {
    let settings = fabric(Steer::Port);
    let t = Transfer { first_psn: 500, ..Transfer::default() };
    let mut own = armed(&settings, &t);
    let flood = Transfer { from: 2, ..Transfer::default() };
    for n in 0..20_000u32 {
        let transfer = Transfer { qps: (1, n + 100), ..flood.clone() };
        own.enter(2, &transfer.frame(true, Opcode::SendOnly, 0, Extension::None, 4, false, 0, Ecn::NotEct));
        own.pass(Span::from_micros(20));
    }
    assert!(own.tor.occupancy().0 <= 64);
    let aeth = Extension::Aeth(aeth::Repr { syndrome: Syndrome::PSN_SEQUENCE, msn: 0 });
    own.all(1, &t.frame(false, Opcode::Acknowledge, 2, aeth, 0, false, 0, Ecn::NotEct));
    assert_eq!(own.tor.counters().all_blocked(), 1);
    // The flood is forgotten when it has been idle.
    for _ in 0..700 {
        own.pass(Span::from_millis(100));
    }
    assert_eq!(own.tor.occupancy(), (0, 0));
}

/// Two ToRs in a loop of two links: a broadcast is not multiplied. Each is a leaf with two uplinks and one host.
#[test]
fn two_tors_in_a_loop_do_not_multiply_frames() {
    let mut settings = Settings::of_ports(3);
    for port in &mut settings.ports {
        port.leaf = 0;
    }
    (settings.ports[1].uplink, settings.ports[2].uplink) = (true, true);
    let mut tors = [Box_::new(&settings), Box_::new(&settings)];
    let mut broadcast = [[0xFF; 6], mac(0).0].concat();
    broadcast.resize(60, 0);
    let mut open = vec![(0, 0, broadcast)];
    let (mut steps, mut delivered) = (0, [0, 0]);
    while let Some((at, port, bytes)) = open.pop() {
        steps += 1;
        assert!(steps < 10);
        for (PortId(out), bytes) in tors[at].all(port, &bytes) {
            match out {
                0 => delivered[at] += 1,
                uplink => open.push((1 - at, uplink, bytes)),
            }
        }
    }
    assert_eq!((steps, delivered), (2, [0, 1]));
}

/// On real uplinks, packets of one slot may overtake each other. Then the ToR stops judging, and says so once. A packet
/// that a NACK has asked for may come late.
#[test]
fn a_path_that_is_no_fifo_is_noticed() {
    let mut settings = Settings::of_ports(3);
    for port in &mut settings.ports {
        port.leaf = 0;
    }
    (settings.ports[1].uplink, settings.ports[2].uplink) = (true, true);
    settings.ports[0].stations = vec![mac(1)];
    settings.ports[1].stations = vec![mac(0)];
    settings.themis.mode = Mode::Sound;
    let t = Transfer { first_psn: 0, ..Transfer::default() };
    let data = |psn| t.frame(true, Opcode::SendOnly, psn, Extension::None, 4, false, 0, Ecn::NotEct);
    let nack = |psn| {
        let aeth = Extension::Aeth(aeth::Repr { syndrome: Syndrome::PSN_SEQUENCE, msn: 0 });
        t.frame(false, Opcode::Acknowledge, psn, aeth, 0, false, 0, Ecn::NotEct)
    };
    // Two slots. Packet 2n + 2 comes before 2n, on the same uplink.
    let mut own = Box_::new(&settings);
    own.all(1, &data(0));
    for n in 1..9 {
        own.all(1, &data(4 * n));
        own.all(1, &data(4 * n - 2));
    }
    assert_eq!(own.notes.iter().filter(|event| matches!(event, Event::NoFifo { .. })).count(), 1);
    own.all(1, &data(41));
    let sent = own.all(0, &nack(40));
    assert_eq!((sent.len(), own.tor.counters().passed(tor::FailOpen::Breach)), (1, 1));
    // Lost packets that NACKs ask for are no breach: 4n is lost, 4n + 2 proves it, and 4n comes again.
    let mut own = Box_::new(&settings);
    own.all(1, &data(0));
    for n in 1..20 {
        own.all(1, &data(4 * n + 2));
        own.all(0, &nack(4 * n));
        own.all(1, &data(4 * n));
    }
    assert_eq!((own.tor.counters().all_forwarded(), own.tor.counters().breaches), (19, 0));
}

/// With `verify`, a request with a wrong ICRC goes its way and is not recorded.
#[test]
fn a_wrong_icrc_is_not_recorded_if_requests_are_verified() {
    for (verify, flows) in [(false, 1), (true, 0)] {
        let mut settings = fabric(Steer::Port);
        settings.themis.verify = verify;
        settings.ports[1].stations = vec![mac(1)];
        let t = Transfer::default();
        let mut frame = t.frame(true, Opcode::SendOnly, 0, Extension::None, 64, false, 0, Ecn::NotEct);
        frame[80] ^= 1;
        let mut own = Box_::new(&settings);
        let sent = own.all(0, &frame);
        assert_eq!(sent, [(PortId(1), frame)]);
        assert_eq!(own.tor.occupancy().0, flows);
        assert_eq!(own.tor.counters().passed(tor::FailOpen::Icrc), u64::from(verify));
    }
}
