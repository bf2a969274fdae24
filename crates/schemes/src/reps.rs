//! REPS: recycled entropies (Bonato et al., "REPS: Recycled Entropy Packet Spraying for Adaptive Load Balancing
//! and Failure Mitigation", arXiv 2407.21625).
//!
//! The sender first sprays over random source ports. An ACK without a mark returns its source port: that path is good, and
//! the next packet takes it again. Each ACK allows one reuse of its port, or more where ACKs are coalesced. After a timeout
//! the sender stops exploring for a while and cycles through the ports that worked ("freezing"), so that it avoids a failed
//! path.
//!
//! We know version 6 of the paper by a summary, and the authors' code in uet-htsim (`buffer_reps`). `like-htsim` has the places in
//! which that code differs from the defaults here.

use crate::entropies::{Entropies, Mapping};
use crate::{Facts, Recipe, Steers, palette::Look};
use finding::{Finding, code};
use model::draw::{Key, below};
use model::steering::{Room, Sent};
use model::{Plan, QpSite, Site, Stamp, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most entries of the buffer of source ports; our choice.
const MOST: u16 = 1024;

/// `[scheme.reps]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "SchemeReps")]
pub struct Config {
    /// Source ports to draw from, 1 to 65535. Default 16384 (as `rps-nic`).
    pub entropies: u16,
    /// Source ports that a sender remembers, 1 to 1024. Default 8 (the simulator of the Ultra Ethernet Consortium,
    /// htsim, `buffer_reps`).
    pub buffer: u16,
    /// Time after a timeout during which the sender does not explore. Default "10ms" (htsim, `exit_freeze_after`).
    pub freeze: Time,
    /// Packets that explore after a freeze ends. Default 16 (htsim).
    pub explore: u16,
    /// Packets that may take the source port of one ACK, 1 to 255, for coalesced ACKs. Default 1 (htsim,
    /// `repsMaxLifetimeEntropy`).
    pub lifetime: u8,
    /// Whether to differ where htsim does: ports of ACKs enter the cycle of a frozen sender, too; a timeout of a sender that
    /// explores after a freeze freezes nothing; and the port of a packet that the receiver's own switch has cut is good.
    /// Default false (our choice: a frozen sender keeps the ports of the time before the failure).
    pub like_htsim: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            entropies: 16384,
            buffer: 8,
            freeze: Time::from_ms(10),
            explore: 16,
            lifetime: 1,
            like_htsim: false,
        }
    }
}

/// Sending part of the scheme, in the NIC.
#[derive(Clone, Debug)]
pub struct Reps {
    key: Key,
    drawn: u64,
    entropies: u16,
    /// Source ports that worked, and the packets that may still take each; a new one overwrites the oldest.
    buffer: Vec<(u16, u8)>,
    size: usize,
    /// Place of the next write.
    head: usize,
    /// Place of the next port in the cycle of a frozen sender.
    cycle: usize,
    /// Number of unused source ports; they stand before `head`.
    fresh: usize,
    /// Number of packets that still explore: they draw their source ports.
    explore: u16,
    frozen_until: Option<Time>,
    freeze: Time,
    explore_again: u16,
    lifetime: u8,
    like_htsim: bool,
    recycled: u64,
    explored: u64,
}

impl Recipe for Config {
    type Scheme = Entropies;
    const LOOK: Option<Look> = Some(Look::new(3, 0));
    const TRIALS: &'static [&'static str] = &[
        "entropies = 5\nfreeze = \"100us\"",
        "buffer = 4\nlifetime = 2\nlike-htsim = true\nfreeze = \"40us\"",
    ];

    fn facts(&self) -> Facts {
        Facts::plain(true)
    }

    fn build(&self, site: Site<'_>) -> Entropies {
        Entropies::new(Mapping::Hash, site)
    }

    fn validate(&self, _plan: &Plan) -> Result<Vec<Finding>, Finding> {
        if self.entropies == 0 {
            return Err(code::RANGE.at("entropies", "at least one source port is needed"));
        }
        if !(1..=MOST).contains(&self.buffer) {
            return Err(
                code::RANGE.at("buffer", format!("{} entries; 1 to {MOST} are possible", self.buffer))
            );
        }
        if self.lifetime == 0 {
            return Err(code::RANGE.at("lifetime", "at least one packet must take the port of an ACK"));
        }
        Ok(Vec::new())
    }
}

impl Steers for Config {
    type Steering = Reps;

    fn steer(&self, site: QpSite<'_>) -> Reps {
        Reps {
            key: site.key(),
            drawn: 0,
            entropies: self.entropies.max(1),
            buffer: Vec::new(),
            size: usize::from(self.buffer.clamp(1, MOST)),
            head: 0,
            cycle: 0,
            fresh: 0,
            explore: 0,
            frozen_until: None,
            freeze: self.freeze,
            explore_again: self.explore,
            lifetime: self.lifetime.max(1),
            like_htsim: self.like_htsim,
            recycled: 0,
            explored: 0,
        }
    }
}

impl Reps {
    fn draw(&mut self) -> u16 {
        self.drawn += 1;
        self.explored += 1;
        below(self.key.draw(self.drawn), self.entropies.into()) as u16
    }

    /// The oldest unused source port.
    fn recycle(&mut self) -> u16 {
        let n = self.buffer.len();
        let (entropy, left) = &mut self.buffer[(self.head + n - self.fresh) % n];
        *left -= 1;
        self.fresh -= usize::from(*left == 0);
        self.recycled += 1;
        *entropy
    }

    /// The next source port in a cycle through the buffer, used or not.
    fn go_round(&mut self) -> u16 {
        let (entropy, _) = self.buffer[self.cycle % self.buffer.len()];
        self.cycle = (self.cycle + 1) % self.buffer.len();
        self.recycled += 1;
        entropy
    }

    fn thaw(&mut self, now: Time) {
        if self.frozen_until.is_some_and(|until| now >= until) {
            self.frozen_until = None;
            self.buffer.clear();
            (self.head, self.fresh) = (0, 0);
            self.explore = self.explore_again;
        }
    }
}

impl model::Steering for Reps {
    type Annex = Stamp;

    fn on_send(&mut self, now: Time, _: Sent) -> Stamp {
        self.thaw(now);
        let entropy = if self.explore > 0 {
            self.explore -= 1;
            self.draw()
        } else if self.frozen_until.is_some() && !self.buffer.is_empty() {
            self.fresh = 0;
            self.go_round()
        } else if self.fresh > 0 {
            self.recycle()
        } else {
            self.draw()
        };
        Stamp::new(entropy, now)
    }

    fn on_reply(&mut self, now: Time, _una: u64, annex: &Stamp, _room: Room<'_>) -> u32 {
        self.thaw(now);
        let cut = match annex.cut() {
            Some(last_hop) => !(last_hop && self.like_htsim),
            None => false,
        };
        if annex.marked() || cut || self.frozen_until.is_some() && !self.like_htsim {
            return 0;
        }
        let entry = (annex.entropy(), self.lifetime);
        if self.buffer.len() < self.size {
            self.buffer.push(entry);
            self.head = self.buffer.len() % self.size;
        } else {
            self.buffer[self.head] = entry;
            self.head = (self.head + 1) % self.size;
        }
        self.fresh = (self.fresh + 1).min(self.buffer.len());
        0
    }

    fn on_timeout(&mut self, now: Time) {
        let explores = self.like_htsim && self.explore > 0;
        if self.frozen_until.is_none() && !explores {
            self.cycle = self.head;
            self.frozen_until = Some(Time(now.ps().saturating_add(self.freeze.ps())));
        }
    }

    fn counters(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("entropies_recycled", self.recycled);
        sink("entropies_explored", self.explored);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::leaf_spine;
    use model::annex::SackStamp;
    use model::transport::Telling;
    use model::{Dialogue as _, QpId, Steering as _};

    fn reps(config: Config) -> Reps {
        config.steer(QpSite { plan: &leaf_spine(2, 4, 1), qp: QpId(0) })
    }

    fn answer(steering: &mut Reps, entropy: u16, marked: bool) {
        let sent = Stamp::new(entropy, Time::ZERO);
        let reply = sent.answer(Time::from_us(2), marked, Telling::default);
        steering.on_reply(Time::from_us(5), 1, &reply, &mut || 0);
    }

    fn send(steering: &mut Reps, us: u64) -> u16 {
        steering.on_send(Time::from_us(us), Sent { seq: 0, again: false, left: 0, frame: 1500 }).entropy()
    }

    #[test]
    fn good_paths_come_back_once_and_in_order() {
        let mut r = reps(Config::default());
        for entropy in [7, 8, 9] {
            answer(&mut r, entropy, entropy == 8);
        }
        assert_eq!([send(&mut r, 6), send(&mut r, 6)], [7, 9]);
        let drawn = send(&mut r, 6);
        assert!(![7, 8, 9].contains(&drawn), "{drawn}");
    }

    #[test]
    fn the_newest_eight_are_kept() {
        let mut r = reps(Config::default());
        for entropy in 1..=11 {
            answer(&mut r, entropy, false);
        }
        assert_eq!((0..8).map(|_| send(&mut r, 6)).collect::<Vec<_>>(), [4, 5, 6, 7, 8, 9, 10, 11]);
    }

    #[test]
    fn after_a_timeout_good_paths_are_cycled_and_then_it_explores() {
        let mut r = reps(Config { buffer: 2, explore: 3, ..Config::default() });
        answer(&mut r, 20, false);
        answer(&mut r, 21, false);
        assert_eq!([send(&mut r, 6), send(&mut r, 6)], [20, 21]);
        r.on_timeout(Time::from_us(100));
        assert_eq!([send(&mut r, 101), send(&mut r, 102), send(&mut r, 103)], [20, 21, 20]);
        let after = 100 + 10_000;
        let drawn: Vec<u16> = (0..3).map(|_| send(&mut r, after)).collect();
        assert!(drawn.iter().all(|e| ![20, 21].contains(e)), "{drawn:?}");
        answer(&mut r, 22, false);
        assert_eq!(send(&mut r, after), 22);
    }

    #[test]
    fn a_port_is_taken_as_often_as_packets_share_an_ack() {
        let mut r = reps(Config { lifetime: 3, ..Config::default() });
        answer(&mut r, 7, false);
        answer(&mut r, 8, false);
        let taken: Vec<u16> = (0..6).map(|_| send(&mut r, 6)).collect();
        assert_eq!(taken, [7, 7, 7, 8, 8, 8]);
        assert!(![7, 8].contains(&send(&mut r, 6)));
    }

    #[test]
    fn ports_of_acks_enter_the_cycle_of_a_frozen_sender_as_in_htsim() {
        let cycle = |like_htsim| {
            let mut r = reps(Config { buffer: 3, like_htsim, ..Config::default() });
            answer(&mut r, 20, false);
            answer(&mut r, 21, false);
            r.on_timeout(Time::from_us(4));
            answer(&mut r, 22, false);
            (0..4).map(|_| send(&mut r, 6)).collect::<Vec<_>>()
        };
        assert_eq!(cycle(false), [20, 21, 20, 21]);
        let mut learned = cycle(true);
        learned.sort_unstable();
        learned.dedup();
        assert_eq!(learned, [20, 21, 22]);
    }

    #[test]
    fn a_sender_that_explores_after_a_freeze_does_not_freeze_again_as_in_htsim() {
        for like_htsim in [false, true] {
            let mut r = reps(Config { explore: 3, like_htsim, ..Config::default() });
            answer(&mut r, 20, false);
            r.on_timeout(Time::from_us(10));
            send(&mut r, 20_000);
            answer(&mut r, 21, false);
            r.on_timeout(Time::from_us(20_001));
            assert_eq!(r.frozen_until.is_none(), like_htsim);
        }
    }

    #[test]
    fn a_cut_by_the_receivers_switch_says_nothing_against_the_path_in_htsim() {
        for like_htsim in [false, true] {
            let mut r = reps(Config { like_htsim, ..Config::default() });
            for last_hop in [false, true] {
                let sent = SackStamp::new(Stamp::new(if last_hop { 9 } else { 8 }, Time::ZERO), Time::ZERO);
                let returned = sent.returned(Time::from_us(2), false, last_hop);
                r.on_reply(Time::from_us(5), 1, &returned.stamp, &mut || 0);
            }
            assert_eq!((r.fresh, send(&mut r, 6) == 9), (usize::from(like_htsim), like_htsim));
        }
    }
}
