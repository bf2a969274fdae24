//! REPS: recycled entropies (Bonato et al., "REPS: Recycled Entropy Packet Spraying for Adaptive Load Balancing
//! and Failure Mitigation", arXiv 2407.21625).
//!
//! The sender first sprays over random source ports. An ACK without a mark returns its source port: that path is good, and
//! the next packet takes it again. Each ACK allows one reuse of its port. After a timeout the sender stops exploring for a
//! while and cycles through the ports that worked ("freezing"), so that it avoids a failed path.

use crate::entropies::{Entropies, Mapping};
use crate::{ConfigError, Facts, Recipe, Steers};
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
}

impl Default for Config {
    fn default() -> Self {
        Config { entropies: 16384, buffer: 8, freeze: Time::from_ms(10), explore: 16 }
    }
}

/// Sending part of the scheme, in the NIC.
#[derive(Clone, Debug)]
pub struct Reps {
    key: Key,
    drawn: u64,
    entropies: u16,
    /// Source ports that worked; a new one overwrites the oldest.
    buffer: Vec<u16>,
    size: usize,
    /// Place of the next write.
    head: usize,
    /// Number of unused source ports; they stand before `head`.
    fresh: usize,
    /// Number of packets that still explore: they draw their source ports.
    explore: u16,
    frozen_until: Option<Time>,
    freeze: Time,
    explore_again: u16,
    recycled: u64,
    explored: u64,
}

impl Recipe for Config {
    type Scheme = Entropies;

    fn facts(&self) -> Facts {
        Facts::of_sender(true)
    }

    fn build(&self, site: Site<'_>) -> Entropies {
        Entropies::new(Mapping::Hash, site)
    }

    fn validate(&self, _plan: &Plan) -> Result<Vec<String>, ConfigError> {
        if self.entropies == 0 {
            return Err(ConfigError::new("entropies", "at least one source port is needed"));
        }
        if !(1..=MOST).contains(&self.buffer) {
            return Err(ConfigError::new(
                "buffer",
                format!("{} entries; 1 to {MOST} are possible", self.buffer),
            ));
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
            fresh: 0,
            explore: 0,
            frozen_until: None,
            freeze: self.freeze,
            explore_again: self.explore,
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
        let at = (self.head + n - self.fresh) % n;
        self.fresh -= 1;
        self.recycled += 1;
        self.buffer[at]
    }

    /// The next source port in a cycle through the buffer, used or not.
    fn go_round(&mut self) -> u16 {
        let entropy = self.buffer[self.head % self.buffer.len()];
        self.head = (self.head + 1) % self.buffer.len();
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
        if annex.marked() || annex.cut().is_some() || self.frozen_until.is_some() {
            return 0;
        }
        let entry = model::Annex::entropy(annex);
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
        if self.frozen_until.is_none() {
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
    use model::annex::Answer;
    use model::{Annex as _, QpId, Steering as _};

    fn reps(config: Config) -> Reps {
        config.steer(QpSite { plan: &leaf_spine(2, 4, 1), qp: QpId(0) })
    }

    fn answer(steering: &mut Reps, entropy: u16, marked: bool) {
        let sent = Stamp::new(entropy, Time::ZERO);
        let answer = Answer { marked, ..Answer::default() };
        steering.on_reply(Time::from_us(5), 1, &sent.answer(Time::from_us(2), answer), &mut || 0);
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
}
