//! MP-RDMA: ACKs tell a sender where there is room for its packets (Lu et al., "Multi-Path Transport for RDMA in
//! Datacenters", NSDI'18).
//!
//! A virtual path is a UDP source port; switches need nothing new. The sender keeps no state per path:
//!
//! 1. *Multi-path ACK-clocking.* When an ACK opens the window, up to two of the released packets take the path of that
//!    ACK. On a congested path ACKs carry marks, which close the window, and then the ACKs of other paths open it.
//! 2. *Out-of-order-aware path selection.* If an ACK is for a packet more than Delta behind the furthest acknowledged
//!    packet, the sender gives up its path: this ACK releases nothing, and the window closes by the packet that it would
//!    have released, as in public simulators of MP-RDMA. ACKs of retransmissions do not count.
//! 3. *Probing.* Once per round trip, a packet takes a new source port with a small probability.
//!
//! The rest is a recovery mode and a congestion control of the same name. The scheme needs both, and a scenario puts them
//! into the NICs of its queue pairs. docs/mp-rdma.md lists the parts that come from the paper.

use crate::entropies::{Entropies, Mapping};
use crate::{Facts, Recipe, Steers, palette::Look};
use finding::{Finding, code};
use model::annex::Selective;
use model::draw::{Key, below};
use model::steering::{Room, Sent};
use model::{Plan, Probability, Psn, QpSite, Site, Stamp, Time};
use rnic::congestion::mp_rdma::MARKS_PER_PACKET;
use rnic::{CongestionConfig, NicConfig, OwnNic, TransportConfig};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Most packets that one ACK clocks onto its path (the paper).
const BURST: u64 = 2;

/// `[scheme.mp-rdma]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "SchemeMpRdma")]
pub struct Config {
    /// Delta: most packets that the acknowledged packet may be behind the furthest one for the sender to keep its path.
    /// It must be less than `bitmap` of `[nic.transport.mp-rdma]`. Default 32 (the paper).
    pub delta: u32,
    /// Probability of a probe of a new path, once per round trip, 0 to 1. Default 0.01 (the paper).
    pub probe: f64,
    /// Source ports to draw from, 1 to 65535. Default 16384 (the dynamic ports 49152 to 65535, RFC 6335, as `rps-nic`).
    pub entropies: u16,
}

impl Default for Config {
    fn default() -> Self {
        Config { delta: 32, probe: 0.01, entropies: 16384 }
    }
}

/// Sending part of the scheme, in the NIC.
#[derive(Clone, Debug)]
pub struct MpRdma {
    key: Key,
    drawn: u64,
    entropies: u16,
    delta: u64,
    probe: Probability,
    /// First packet that was never sent.
    next: u64,
    /// Furthest packet that was acknowledged.
    furthest: u64,
    /// Paths of ACKs that have released packets which have not started yet.
    clocked: VecDeque<u16>,
    /// The round trip ends when all packets before this one are acknowledged.
    round_end: u64,
    /// True if the next packet takes a new path.
    probing: bool,
    counters: Counters,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    clocked: u64,
    unclocked: u64,
    probed: u64,
    given_up: u64,
}

impl Recipe for Config {
    type Scheme = Entropies;
    const LOOK: Option<Look> = Some(Look::new(2, 2));
    const TRIALS: &'static [&'static str] = &["delta = 6\nprobe = 0.2\nentropies = 8"];

    fn facts(&self) -> Facts {
        // As in the paper, every packet is acknowledged.
        let nic = OwnNic {
            transport: TransportConfig::MpRdma(Default::default()),
            congestion: CongestionConfig::MpRdma(Default::default()),
            ack_every: 1,
        };
        Facts { nic: Some(nic), ..Facts::plain(true) }
    }

    fn build(&self, site: Site<'_>) -> Entropies {
        Entropies::new(Mapping::Hash, site)
    }

    fn validate(&self, plan: &Plan) -> Result<Vec<Finding>, Finding> {
        if self.delta == 0 {
            return Err(
                code::RANGE.at("delta", "must be at least 1: the delays of two paths always differ a little")
            );
        }
        if !(0.0..=1.0).contains(&self.probe) {
            let text = format!("a probability of {}; it must be between 0 and 1", self.probe);
            return Err(code::RANGE.at("probe", text));
        }
        if self.entropies == 0 {
            return Err(code::RANGE.at("entropies", "at least one source port is needed"));
        }
        let mut warnings = Vec::new();
        if plan.ports.iter().all(|port| port.marking.is_none()) {
            let text = "no switch marks packets, so the window of `mp-rdma` never closes";
            warnings.push(code::NO_MARKS.plain(text));
        }
        Ok(warnings)
    }

    fn validate_nic(&self, nic: &NicConfig, _plan: &Plan) -> Result<Vec<Finding>, Finding> {
        if let TransportConfig::MpRdma(transport) = &nic.transport
            && self.delta >= transport.bitmap
        {
            let text = format!(
                "a path may be {} packets behind another, but the receiver's bitmap holds {}: it would \
                 drop packets that are in time",
                self.delta, transport.bitmap
            );
            let help = "`delta` must be less than `bitmap` of `nic.transport.mp-rdma`";
            return Err(code::FIT.at("delta", text).with_help(help));
        }
        Ok(Vec::new())
    }
}

impl Steers for Config {
    type Steering = MpRdma;

    fn steer(&self, site: QpSite<'_>) -> MpRdma {
        MpRdma {
            key: site.key(),
            drawn: 0,
            entropies: self.entropies.max(1),
            delta: self.delta.into(),
            probe: Probability::new(self.probe),
            next: 0,
            furthest: 0,
            clocked: VecDeque::new(),
            round_end: 0,
            probing: false,
            counters: Counters::default(),
        }
    }
}

impl MpRdma {
    fn draw(&mut self) -> u64 {
        self.drawn += 1;
        self.key.draw(self.drawn)
    }

    fn any_path(&mut self) -> u16 {
        below(self.draw(), self.entropies.into()) as u16
    }

    /// Notes the packet that a reply acknowledges; true if it is more than Delta behind the furthest acknowledged packet.
    fn falls_behind(&mut self, una: u64, annex: &Stamp) -> bool {
        let (Selective::Arrived(psn), false) = (annex.selective(), annex.resent()) else { return false };
        let seq = una.saturating_add_signed(psn.distance_from(Psn::from_seq(una)).into());
        self.furthest = self.furthest.max(seq);
        self.furthest - seq > self.delta
    }
}

impl model::Steering for MpRdma {
    type Annex = Stamp;

    /// Packets that no ACK has released take any path: the first window, and packets posted or retransmitted after a pause.
    fn on_send(&mut self, now: Time, Sent { seq, again, .. }: Sent) -> Stamp {
        self.next = self.next.max(seq + 1);
        let clocked = self.clocked.pop_front();
        let path = if std::mem::take(&mut self.probing) {
            self.counters.probed += 1;
            self.any_path()
        } else if let Some(path) = clocked {
            self.counters.clocked += 1;
            path
        } else {
            self.counters.unclocked += 1;
            self.any_path()
        };
        Stamp::new(path, now).again(again)
    }

    fn on_reply(&mut self, _now: Time, una: u64, annex: &Stamp, room: Room<'_>) -> u32 {
        if una >= self.round_end {
            self.round_end = self.next.max(una + 1);
            self.probing = self.probe.hits(self.draw());
        }
        if self.falls_behind(una, annex) {
            self.counters.given_up += 1;
            return MARKS_PER_PACKET;
        }
        let free = room().saturating_sub(self.clocked.len() as u64).min(BURST);
        self.clocked.extend((0..free).map(|_| annex.entropy()));
        0
    }

    /// Forgets clocked paths, since the packets behind those ACKs may have been lost there.
    fn on_timeout(&mut self, _now: Time) {
        self.clocked.clear();
    }

    fn counters(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("packets_clocked", self.counters.clocked);
        sink("packets_unclocked", self.counters.unclocked);
        sink("paths_probed", self.counters.probed);
        sink("paths_given_up", self.counters.given_up);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::leaf_spine;
    use model::Dialogue as _;
    use model::transport::Telling;
    use model::{QpId, Steering as _};

    fn steering(config: Config) -> MpRdma {
        config.steer(QpSite { plan: &leaf_spine(2, 4, 1), qp: QpId(0) })
    }

    fn quiet() -> MpRdma {
        steering(Config { probe: 0.0, ..Config::default() })
    }

    fn send(s: &mut MpRdma, seq: u64) -> u16 {
        s.on_send(Time::ZERO, Sent { seq, again: false, left: 0, frame: 1500 }).entropy()
    }

    /// The ACK of packet `seq`, which was sent on `path`, when `una` is acknowledged and the window has `room`.
    fn ack(s: &mut MpRdma, path: u16, seq: u64, una: u64, room: u64, again: bool) -> bool {
        let selective = Selective::Arrived(Psn::from_seq(seq));
        let sent = Stamp::new(path, Time::ZERO).again(again);
        let annex = sent.answer(Time::ZERO, false, || Telling { selective, ..Telling::default() });
        let cnps = s.on_reply(Time::ZERO, una, &annex, &mut || room);
        assert!([0, MARKS_PER_PACKET].contains(&cnps));
        cnps > 0
    }

    #[test]
    fn an_ack_clocks_up_to_two_packets_onto_its_path() {
        let mut s = quiet();
        for seq in 0..8 {
            send(&mut s, seq);
        }
        ack(&mut s, 7, 0, 1, 1, false);
        ack(&mut s, 8, 1, 2, 5, false); // one of the five packets is clocked already
        ack(&mut s, 9, 2, 3, 3, false); // all three packets are clocked already
        assert_eq!([send(&mut s, 8), send(&mut s, 9), send(&mut s, 10)], [7, 8, 8]);
        assert_eq!((s.counters.clocked, s.counters.unclocked), (3, 8));
    }

    #[test]
    fn an_ack_that_does_not_open_the_window_clocks_no_packet() {
        let mut s = quiet();
        ack(&mut s, 7, 0, 1, 0, false); // a marked ACK, which closes the window
        ack(&mut s, 8, 1, 2, 1, false);
        assert_eq!(send(&mut s, 2), 8);
    }

    #[test]
    fn the_first_window_goes_over_many_paths() {
        let mut s = quiet();
        let mut paths: Vec<u16> = (0..100).map(|seq| send(&mut s, seq)).collect();
        paths.sort_unstable();
        paths.dedup();
        assert!(paths.len() > 90, "{}", paths.len());
    }

    #[test]
    fn a_path_more_than_delta_behind_is_given_up() {
        let mut s = quiet();
        assert!(!ack(&mut s, 7, 50, 10, 1, false));
        assert!(!ack(&mut s, 8, 18, 10, 1, false)); // 32 packets behind
        assert!(ack(&mut s, 9, 17, 10, 1, false)); // 33 packets behind
        assert!(!ack(&mut s, 9, 10, 18, 1, true)); // the ACK of a retransmission does not count
        assert_eq!([send(&mut s, 51), s.counters.given_up as u16], [7, 1]);
    }

    #[test]
    fn psns_wrap_without_a_path_being_given_up() {
        let mut s = quiet();
        let far = (1 << 24) - 2;
        for seq in far..far + 10 {
            assert!(!ack(&mut s, 7, seq, seq + 1, 1, false));
        }
        assert!(ack(&mut s, 8, far - 30, far + 10, 1, false));
    }

    #[test]
    fn once_per_round_trip_a_packet_may_probe() {
        let mut s = steering(Config { probe: 1.0, ..Config::default() });
        let mut probed = Vec::new();
        for round in 0..3u64 {
            for seq in round * 10..round * 10 + 10 {
                send(&mut s, seq);
            }
            for seq in round * 10..round * 10 + 10 {
                ack(&mut s, 7, seq, seq + 1, 1, false);
            }
            probed.push(s.counters.probed);
        }
        // The first ACK of a round begins it.
        assert_eq!(probed, [0, 1, 2]);
        let mut s = quiet();
        for seq in 0..500 {
            send(&mut s, seq);
            ack(&mut s, 7, seq, seq + 1, 1, false);
        }
        assert_eq!(s.counters.probed, 0);
    }

    #[test]
    fn a_timeout_forgets_clocked_paths() {
        let mut s = quiet();
        ack(&mut s, 7, 0, 1, 2, false);
        s.on_timeout(Time::ZERO);
        send(&mut s, 1);
        assert_eq!((s.counters.clocked, s.counters.unclocked), (0, 1));
    }

    #[test]
    fn impossible_settings_are_refused() {
        let field = |config: Config| config.validate(&leaf_spine(2, 2, 1)).unwrap_err().path();
        assert_eq!(field(Config { delta: 0, ..Config::default() }), "delta");
        assert_eq!(field(Config { probe: f64::NAN, ..Config::default() }), "probe");
        assert_eq!(field(Config { entropies: 0, ..Config::default() }), "entropies");
    }
}
