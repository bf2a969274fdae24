//! What the rest of the workspace gets from a NIC: every call reaches the part, and the facts of the parts reach the caller.

use super::nic;
use super::{ReceiverCalls as _, SenderCalls as _};
use crate::congestion::{dcqcn, hpcc, swift};
use crate::notification::Cnp;
use crate::transport::{ideal, nic_sr};
use crate::{
    AnyReceiver, AnySender, CongestionConfig, Evidence, Nic, NicConfig, Nics, OwnNic, Path, Reaction,
    SackingReceiver, SackingSender, TransportConfig,
};
use model::annex::{Envelope, Notice, NoticeRules, Selective};
use model::transport::{
    Departure, Due, Heard, Inbound, Overdue, Plain, Position, Progress, Reception, Reply, Standing, Telling,
};
use model::{Congestion as _, Delivery, Kind, PortIndex, Psn, QpId, Rate, Sender as _, Time};
use std::sync::Arc;

/// A sender and receiver whose answers differ from all defaults.
struct Odd(u64);

impl model::Sender for Odd {
    fn post_message(&mut self, packets: u64, full: u32, last: u32) {
        self.0 += packets + u64::from(full + last);
    }
    fn send(&mut self, _: Time, window: u64) -> Option<Departure> {
        Some(Departure { seq: window, again: true, backlog: 29, ..Departure::default() })
    }
    fn ready(&self, _: u64) -> bool {
        true
    }
    fn room(&self, window: u64) -> u64 {
        window + 7
    }
    fn hear(&mut self, _: Time, heard: &Heard) -> (Progress, Delivery) {
        let acked = match heard {
            Heard::Reply(_) => 5,
            Heard::Named(..) => 6,
            Heard::Sacked(..) => 7,
            Heard::Returned(returned) => returned.window,
        };
        (Progress { acked, nack: true }, Delivery { lost: 9, ..Delivery::default() })
    }
    fn position(&self) -> Position {
        Position { una: self.0, high: 13, deadline: Time::from_us(17) }
    }
    fn on_deadline(&mut self, _: Time) -> Due {
        self.0 += 10_000;
        Due { probe: Some(Kind::Probe), timeout: true, fired: 3 }
    }
    fn row(&self) -> u64 {
        11
    }
    fn send_row(&mut self, packets: u64) {
        self.0 += 100 * packets;
    }
    fn on_free_ack(&mut self, _: Time, _: Psn, burst: u32) -> bool {
        burst == 3
    }
    fn on_held(&mut self, _: Time, window: u64) -> bool {
        window == 31
    }
    fn take_lost(&mut self) -> Option<u64> {
        Some(37)
    }
}

impl model::Receiver for Odd {
    fn on_plain(&mut self, psn: Psn) -> Option<Plain> {
        Some(Plain { psn, nack: true, out_of_order: true })
    }
    fn on_arrival(&mut self, _: Time, inbound: Inbound) -> (Reception, Standing) {
        let got = match inbound {
            Inbound::Data(_) => Reception { cnp: true, ..Reception::IGNORED },
            Inbound::Notice { marked, .. } => Reception { echo: marked, ..Reception::IGNORED },
            Inbound::Headers { last_hop, .. } => Reception { out_of_order: last_hop, ..Reception::IGNORED },
            Inbound::Probe => Reception { reply: Some(Reply::Nack(Psn::new(4))), ..Reception::IGNORED },
        };
        (got, self.standing())
    }
    fn standing(&self) -> Standing {
        Standing { expected: 5, completed: 7, held: 23, deadline: Time::from_us(19) }
    }
    fn telling(&self, of_packet: u16, port: PortIndex) -> Telling {
        Telling { crowded: true, entropy: of_packet + port.0, ..Telling::default() }
    }
    fn on_deadline(&mut self, _: Time) -> Overdue {
        Overdue { probe: Some(41), reply: Some((Reply::Ack(Psn::new(2)), true)) }
    }
    fn on_probed(&mut self, entropy: u16, _: Time, _: PortIndex) {
        self.0 += u64::from(entropy);
    }
    fn returns_headers(&self) -> bool {
        self.0 == 43
    }
}

/// Calls every method of a sender that wraps [`Odd`].
fn reaches_the_sender(mut sender: impl model::Sender) {
    let (now, ack) = (Time::ZERO, Reply::Ack(Psn::new(0)));
    sender.post_message(2, 3, 4);
    assert_eq!(sender.una(), 9);
    let sent = sender.send(now, 4).unwrap();
    assert_eq!((sent.seq, sent.again, sent.backlog), (4, true, 29));
    assert_eq!((sender.ready(0), sender.room(4)), (true, 11));
    assert_eq!(sender.on_reply(now, ack).acked, 5);
    assert_eq!(sender.on_selective(now, ack, Selective::Nothing).acked, 6);
    let sack = (&Default::default(), Time::ZERO);
    let (progress, delivery) = sender.on_sack(now, ack, Selective::Nothing, sack, 0);
    assert_eq!((progress, delivery.lost), (Progress { acked: 7, nack: true }, 9));
    assert_eq!(sender.on_returned(now, Psn::new(0), Envelope::default(), true, 31).0.acked, 31);
    assert!(sender.on_free_ack(now, Psn::new(0), 3) && !sender.on_free_ack(now, Psn::new(0), 4));
    assert!(sender.on_held(now, 31) && !sender.on_held(now, 30));
    sender.send_row(3);
    assert_eq!(sender.on_deadline(now), Due { probe: Some(Kind::Probe), timeout: true, fired: 3 });
    assert_eq!((sender.una(), sender.row(), sender.take_lost()), (10_309, 11, Some(37)));
    assert_eq!((sender.high(), sender.deadline()), (13, Time::from_us(17)));
}

#[test]
fn every_call_reaches_a_sender_from_outside() {
    let odd = || AnySender::Custom(Box::new(Odd(0)));
    reaches_the_sender(odd());
    reaches_the_sender(SackingSender::from(odd()));
}

/// Calls every method of a receiver that wraps [`Odd`].
fn reaches_the_receiver(mut receiver: impl model::Receiver) {
    let (now, psn) = (Time::ZERO, Psn::new(1));
    assert_eq!(receiver.on_plain(psn), Some(Plain { psn, nack: true, out_of_order: true }));
    assert!(receiver.on_data(now, psn, false, false).cnp);
    assert!(receiver.on_notice(now, Notice { first: psn, count: 1 }, true).echo);
    assert!(receiver.on_cut(now, psn, false, true).out_of_order);
    let (got, standing) = receiver.on_arrival(now, Inbound::Probe);
    assert_eq!((got.reply, standing), (Some(Reply::Nack(Psn::new(4))), receiver.standing()));
    assert_eq!((receiver.expected(), receiver.completed(), receiver.held()), (5, 7, 23));
    let telling = receiver.telling(3, PortIndex(2));
    assert_eq!((receiver.deadline(), telling.crowded, telling.entropy), (Time::from_us(19), true, 5));
    let overdue = Overdue { probe: Some(41), reply: Some((Reply::Ack(Psn::new(2)), true)) };
    assert_eq!((receiver.on_deadline(now), receiver.returns_headers()), (overdue, false));
    receiver.on_probed(43, now, PortIndex(0));
    assert!(receiver.returns_headers());
}

#[test]
fn every_call_reaches_a_receiver_from_outside() {
    let odd = || AnyReceiver::Custom(Box::new(Odd(0)));
    reaches_the_receiver(odd());
    reaches_the_receiver(SackingReceiver::from(odd()));
}

#[test]
fn a_sender_of_this_crate_takes_rows_only_if_it_counts() {
    for (transport, row) in [("nic-sr", 7), ("go-back-n", 7), ("irn", 0), ("mp-rdma", 0)] {
        let config: NicConfig = toml::from_str(&format!("[transport.{transport}]")).unwrap();
        let mut sender = config.build().sender();
        sender.post(10);
        sender.next(Time::ZERO, u64::MAX);
        sender.next(Time::ZERO, u64::MAX);
        assert_eq!((sender.row(), sender.high()), (row, 2), "{transport}");
        sender.send_row(row);
        assert_eq!(sender.high(), 2 + row, "{transport}");
        let free = sender.on_free_ack(Time::ZERO, Psn::new(0), 1);
        assert_eq!((free, sender.una()), (row > 0, u64::from(row > 0)), "{transport}");
    }
}

/// NIC with this congestion control.
fn controlled(congestion: CongestionConfig) -> Nic {
    NicConfig { congestion, ..NicConfig::default() }.build()
}

#[test]
fn a_control_gets_the_evidence_that_it_declares() {
    for config in CongestionConfig::all() {
        let (name, facts, nic) = (config.name(), config.facts(), controlled(config));
        let hops = match facts.evidence {
            Evidence::Telemetry { hops, .. } => hops,
            _ => 0,
        };
        assert_eq!(nic.telemetry(), facts.needs_feedback.then_some(hops), "{name}");
        assert_eq!((nic.evidence(), nic.wants_path()), (facts.evidence, facts.needs_path), "{name}");
        assert!(!facts.needs_feedback || facts.evidence.is_in_replies(), "{name} reads replies for nothing");
    }
    let windowed = NicConfig { window: Some(crate::window::Window::Bdp), ..NicConfig::default() };
    assert!(windowed.build().wants_path(), "a window depends on the path, too");
}

#[test]
fn a_control_puts_no_more_time_between_packets_than_its_least_rate_allows() {
    let mut seen = 0;
    for control in CongestionConfig::all() {
        let mut table = serde_json::to_value(&control).unwrap();
        let Some(least) = table[control.name()].get_mut("min-rate") else { continue };
        *least = "1Gbps".into();
        let control: CongestionConfig = serde_json::from_value(table).unwrap();
        let gap = control.longest_gap(1500, Time::from_us(10));
        assert_eq!(gap, Time::from_us(12), "{}", control.name());
        seen += 1;
    }
    assert!(seen > 0);
}

#[test]
fn only_irn_has_a_timeout_of_its_own() {
    let irn: NicConfig = toml::from_str("[transport.irn]\nlow-timeout = \"7us\"").unwrap();
    let own: Vec<_> = TransportConfig::all().filter(|mode| mode.other_timeout().is_some()).collect();
    assert_eq!((own.len(), own[0].name()), (1, "irn"));
    let (key, time) = irn.transport.other_timeout().unwrap();
    assert!(key.ends_with("low-timeout") && time == Time::from_us(7), "{key}");
    let never: NicConfig = toml::from_str("[transport.irn]\nfew = 0").unwrap();
    assert_eq!(never.transport.other_timeout(), None, "senders never have so few packets outstanding");
}

#[test]
fn some_recovery_modes_name_packets_and_one_heeds_notices() {
    let of = |pick: fn(&Nic) -> bool| -> Vec<&str> {
        TransportConfig::all()
            .filter(|mode| pick(&nic(mode.clone()).build()))
            .map(|mode| mode.name())
            .collect()
    };
    assert_eq!(of(Nic::is_selective), ["sr-sack", "irn", "mp-rdma"]);
    assert_eq!(of(Nic::hears_notices), ["sr-sack"]);
}

#[test]
fn receivers_are_crowded_by_the_rules_of_their_sender() {
    let rules = NoticeRules { patience: Time::from_us(1), high: 2, low: 1 };
    let nics = Nics::new(vec![nic(TransportConfig::SrSack(Default::default())).build()], Arc::default());
    for (notices, crowded) in [(Some(rules), true), (None, false)] {
        let mut receiver = nics.receiver(QpId(0), notices);
        for psn in 1..4 {
            receiver.on_data(Time::ZERO, Psn::new(psn), false, false);
        }
        assert_eq!((receiver.held(), receiver.crowded()), (3, crowded));
    }
}

#[test]
fn a_nic_keeps_its_settings_of_parts_that_a_scheme_brings_again() {
    let own = |transport, congestion| OwnNic { transport, congestion, ack_every: 4 };
    let mine = ideal::Config { max_outstanding: 9, ..ideal::Config::default() };
    let config = NicConfig {
        on_nack: Reaction::To(0.5),
        on_timeout: Reaction::ToMinRate,
        congestion: CongestionConfig::Dcqcn(dcqcn::Config { gain: 0.25, ..Default::default() }),
        ..nic(TransportConfig::Ideal(mine.clone()))
    };
    let same = config
        .with(own(TransportConfig::Ideal(Default::default()), CongestionConfig::Dcqcn(Default::default())));
    assert_eq!(same, NicConfig { ack_every: 4, ..config.clone() });
    let (transport, congestion) = (
        TransportConfig::NicSr(nic_sr::Config::default()),
        CongestionConfig::Swift(swift::Config::default()),
    );
    let other = config.with(own(transport.clone(), congestion.clone()));
    // Swift has no rate to lower, and reads no CNPs.
    let (cnp, reaction) = (Cnp::None, Reaction::AsCnp);
    let wanted = NicConfig {
        ack_every: 4,
        transport,
        congestion,
        cnp,
        on_nack: reaction,
        on_timeout: reaction,
        ..config.clone()
    };
    assert_eq!(other, wanted);
    let stall = NicConfig { on_nack: Reaction::Stall(Time::from_us(3)), ..config };
    assert_eq!(stall.with(own(stall.transport.clone(), wanted.congestion)).on_nack, stall.on_nack);
}

/// A path of this round trip at 100 Gb/s; the bandwidth-delay product is `packets`.
fn path(us: u64, packets: u32) -> Path {
    Path { base_rtt: Time::from_us(us), bdp: packets, ..Path::unknown(Rate::from_gbps(100)) }
}

#[test]
fn an_unknown_path_holds_ten_microseconds_of_packets() {
    let path = Path::unknown(Rate::from_gbps(100));
    // 125,000 bytes in packets of 1500 bytes, rounded up.
    assert_eq!((path.bdp, path.base_rtt, path.longest_rtt), (84, Time::from_us(10), Time::from_us(10)));
    assert_eq!(Path::unknown(Rate::from_gbps(400)).bdp, 334);
    let swift = CongestionConfig::Swift(swift::Config::default());
    assert_eq!(swift.control(Rate::from_gbps(100), None).allowance(Time::ZERO).window, 84);
}

#[test]
fn queue_pairs_have_their_own_nics_and_paths() {
    let swift = || controlled(CongestionConfig::Swift(swift::Config::default()));
    let irn: NicConfig = toml::from_str("[transport.irn]").unwrap();
    let hpcc = || controlled(CongestionConfig::Hpcc(hpcc::Config::default()));
    let plain = NicConfig::default().build();
    let kinds = |kinds: &[&Nic]| Nics::new(kinds.iter().copied().cloned().collect(), Arc::default());
    for (nics, paths, names, telemetry) in [
        (kinds(&[&plain]), false, false, false),
        (kinds(&[&plain, &swift()]), true, false, true),
        (kinds(&[&plain, &irn.build()]), false, true, false),
        (kinds(&[&hpcc(), &plain]), true, false, true),
    ] {
        assert_eq!(
            (nics.wants_paths(), nics.are_selective(), nics.read_telemetry()),
            (paths, names, telemetry)
        );
    }
    let nics = Nics::new(vec![plain.clone(), swift()], Arc::from([0, 1, 1]));
    assert_eq!([0, 1, 2, 3].map(|qp| nics.of(QpId(qp)) == &plain), [true, false, false, true]);
    let nics = nics.over(vec![path(10, 7), path(10, 20)], vec![0, 1, 0]);
    let window = |qp: u32| {
        let path = nics.path(QpId(qp));
        nics.of(QpId(qp)).congestion_over(Rate::from_gbps(100), path.unwrap()).allowance(Time::ZERO).window
    };
    assert_eq!([window(1), window(2)], [20, 7]);
    assert_eq!(nics.path(QpId(3)), None);
}
