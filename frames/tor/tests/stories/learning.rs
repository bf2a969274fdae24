//! How the ToR learns connections when it has no room, how long it remembers that the paths of one are no FIFOs, and what it
//! does to the packets of injected events.

use crate::lab::{self, Lab, Transfer};
use tor::{Event, Mode, PortId, Rate, Settings, Span, Spine, Time, Unknown};
use wire::aeth::{self, Syndrome};
use wire::bth::Opcode;
use wire::ecn::Ecn;
use wire::roce::Extension;

/// Three hosts behind ToRs of their own, with two spines and room for so many connections. Frames need less than 10 us.
fn fabric(connections: usize) -> Lab {
    let mut settings = Settings::of_ports(3);
    settings.spines = vec![Spine::default(); 2];
    settings.themis.mode = Mode::Sound;
    settings.themis.connections = connections;
    lab(&settings)
}

fn lab(settings: &Settings) -> Lab {
    Lab::new(settings, Rate::from_bits(1_000_000_000).unwrap(), &[])
}

/// A connection of these queue pairs, all of which have one source port.
fn connection(requester: u32, responder: u32) -> Transfer {
    Transfer { qps: (requester, responder), first_psn: 0, ..Transfer::default() }
}

impl Lab {
    /// Packets of a connection arrive, one after another, and leave.
    fn data(&mut self, of: &Transfer, psns: &[u64]) {
        for psn in psns {
            let frame = of.frame(true, Opcode::SendOnly, *psn, Extension::None, 4, false, 0, Ecn::NotEct);
            self.enter(PortId(of.from as u16), frame);
            self.run_on(self.now + Span::from_micros(10));
        }
    }

    fn reply(&mut self, of: &Transfer, syndrome: Syndrome, psn: u64) {
        let aeth = Extension::Aeth(aeth::Repr { syndrome, msn: 0 });
        let frame = of.frame(false, Opcode::Acknowledge, psn, aeth, 0, false, 0, Ecn::NotEct);
        self.enter(PortId(of.to as u16), frame);
    }

    /// Reasons for which NACKs passed.
    fn passed(&self) -> Vec<Unknown> {
        let why = |note: &tor::Note| match note.event {
            Event::Passed { why, .. } => Some(why),
            _ => None,
        };
        self.log.iter().filter_map(why).collect()
    }
}

/// The table holds one connection. A second one between the same hosts has no room, so a reply may be its own, although it
/// would fit the first one.
#[test]
fn after_a_connection_had_no_room_nothing_is_learnt_between_its_hosts_for_100_ms() {
    for (syndrome, psn) in [(Syndrome::PSN_SEQUENCE, 2), (Syndrome::ACK, 1)] {
        let (known, refused) = (connection(17, 18), connection(27, 28));
        let mut lab = fabric(1);
        lab.data(&known, &[0, 1, 3]);
        let before = lab.now;
        lab.data(&refused, &[0]); // it leaves within 10 us
        lab.run_on(before + Span::from_millis(100));
        lab.reply(&known, syndrome, psn);
        assert_eq!((lab.tor.counters().learnt, lab.tor.counters().all_blocked()), (0, 0), "{syndrome:?}");
        let nacks = usize::from(syndrome == Syndrome::PSN_SEQUENCE);
        assert_eq!(lab.passed(), vec![Unknown::Incomplete; nacks]);
        lab.run_on(before + Span::from_micros(100_011));
        lab.reply(&known, syndrome, psn);
        assert_eq!((lab.tor.counters().learnt, lab.tor.counters().all_blocked()), (1, nacks as u64));
    }
}

/// A flood of queue pair numbers from one host: its port brings 64 connections at once and one more per millisecond. The other
/// hosts' connections are not affected.
#[test]
fn a_port_brings_64_new_connections_at_once_and_then_one_per_millisecond() {
    let mut lab = fabric(4096);
    let mut number = 0;
    let mut flood = |lab: &mut Lab, count: u32| {
        let before = lab.tor.occupancy().0;
        for _ in 0..count {
            number += 1;
            let of = connection(1, 1000 + number);
            let frame = of.frame(true, Opcode::SendOnly, 0, Extension::None, 4, false, 0, Ecn::NotEct);
            lab.enter(PortId(0), frame);
        }
        lab.tor.occupancy().0 - before
    };
    lab.run_on(Time::ZERO + Span::from_secs(1));
    assert_eq!(flood(&mut lab, 70), 64);
    assert_eq!(flood(&mut lab, 10), 0, "nothing is earned within a millisecond");
    lab.data(&Transfer { from: 2, ..connection(5, 6) }, &[0]);
    assert_eq!(lab.tor.occupancy().0, 65, "another port has its own");
    lab.run_on(lab.now + Span::from_micros(3_500));
    assert_eq!(flood(&mut lab, 10), 3);
    // The burst is the most that a port saves up.
    lab.run_on(lab.now + Span::from_secs(3));
    assert_eq!(flood(&mut lab, 70), 64);
}

/// A read takes a PSN for each response, as many as the smallest MTU makes. Replies may name all of these, and none after them.
#[test]
fn a_read_takes_the_psns_of_its_responses() {
    let of = connection(17, 18);
    let read = |lab: &mut Lab, psn, length| {
        let reth = Extension::Reth(wire::reth::Repr { address: 0, key: 1, length });
        let frame = of.frame(true, Opcode::ReadRequest, psn, reth, 0, true, 0, Ecn::NotEct);
        lab.enter(PortId(0), frame);
        lab.run_on(lab.now + Span::from_micros(10));
    };
    let learnt = |lab: &mut Lab, psn| {
        lab.reply(&of, Syndrome::ACK, psn);
        (lab.tor.counters().learnt, lab.tor.counters().unlearnt)
    };
    for after_another in [false, true] {
        let mut lab = fabric(16);
        let first = if after_another { 1 } else { 0 };
        lab.data(&of, &[0][..first]);
        read(&mut lab, first as u64, 1000); // four responses of 256 B
        let last = first as u64 + 3;
        assert_eq!(learnt(&mut lab, last + 1), (0, 0), "no packet of the flow has this PSN");
        assert_eq!(learnt(&mut lab, last), (1, 0));
        assert_eq!(learnt(&mut lab, last + 1), (1, 1), "so it was another flow");
    }
}

/// A ToR between one host and two uplinks, to which packets of one slot come out of order.
fn uplinks() -> Lab {
    let mut settings = Settings::of_ports(3);
    settings.ports.iter_mut().for_each(|port| port.leaf = 0);
    (settings.ports[1].uplink, settings.ports[2].uplink) = (true, true);
    settings.themis.mode = Mode::Sound;
    lab(&settings)
}

/// Seven breaches within a second are fewer than eight. Seven more a while later are, too: only breaches within a second count
/// together, whatever a connection does over hours.
#[test]
fn breaches_count_together_for_a_second() {
    let of = Transfer { from: 1, to: 0, ..connection(17, 18) };
    let breaches = |lab: &mut Lab, from: u64, count: u64| {
        for n in from..from + count {
            lab.data(&of, &[4 * n, 4 * n - 2]);
        }
    };
    for (pause, noted) in [(Span::from_millis(990), 1), (Span::from_millis(1_010), 0)] {
        let mut lab = uplinks();
        lab.data(&of, &[0]);
        breaches(&mut lab, 1, 7);
        lab.run_on(lab.now + pause);
        breaches(&mut lab, 8, 7);
        assert_eq!(lab.noted(|event| matches!(event, Event::NoFifo { .. })), noted, "after {pause:?}");
        // A new second begins with its first breach: an eighth one in it is one too many.
        breaches(&mut lab, 15, 1);
        assert_eq!(lab.noted(|event| matches!(event, Event::NoFifo { .. })), 1);
    }
}

/// A late packet behind packets of the other slot is what spraying does, and no breach.
#[test]
fn packets_that_other_slots_overtake_are_no_breach() {
    let mut lab = uplinks();
    let of = Transfer { from: 1, to: 0, ..connection(17, 18) };
    lab.data(&of, &[0]);
    (1..20).for_each(|n| lab.data(&of, &[4 * n, 4 * n - 1]));
    assert_eq!((lab.log.len(), lab.tor.counters().breaches), (0, 0));
}

/// A packet that an event holds back leaves behind exactly so many later ones of its port.
#[test]
fn a_reordered_packet_leaves_behind_as_many_packets_as_the_event_says() {
    use tor::events::{Action, Rule};
    for behind in [1, 2, 4] {
        let mut settings = Settings::of_ports(3);
        settings.events = vec![Rule { psn: Some(1), ..Rule::new(Action::Reorder(behind)) }];
        let mut lab = lab(&settings);
        lab.seen = Some(Vec::new());
        let other = Transfer { from: 2, ..connection(5, 6) };
        lab.data(&connection(17, 18), &[0, 1]);
        lab.data(&other, &[100, 101, 102]); // another port's packets do not count
        lab.data(&connection(17, 18), &[2, 3, 4, 5, 6]);
        let left = lab.seen.iter().flatten().filter(|frame| frame.leaves && frame.port == PortId(1));
        let psns: Vec<u32> = left.map(|frame| lab::parse(&frame.bytes).unwrap().0.bth.psn.value()).collect();
        let of_port: Vec<u32> = psns.into_iter().filter(|psn| *psn < 100).collect();
        let at = 1 + behind as usize;
        assert_eq!((of_port.len(), of_port[at]), (7, 1), "{of_port:?}");
    }
}
