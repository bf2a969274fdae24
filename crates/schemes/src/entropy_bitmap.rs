//! Spraying by the sender over the entropies that have caused no congestion lately (Ultra Ethernet Specification 1.0.3, section
//! 3.6.16; the consortium's simulator, uet-htsim, `uec_mp.cpp`).
//!
//! The sender goes through its entropies as under `oblivious`. A mark or a trimmed packet gives its entropy a penalty. An entropy
//! with a penalty is passed over and loses one of it; each packet lets one entropy pay. Packets cut by the receiver's own
//! switch say nothing about the path and give no penalty, unless they were marked before.

use crate::entropies::{Entropies, Mapping};
use crate::oblivious::{ENTROPIES, Rounds, check};
use crate::{Facts, Golden, Recipe, Steers, palette::Look};
use finding::Finding;
use model::draw::Key;
use model::steering::{Room, Sent};
use model::{Plan, QpSite, Site, Stamp, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[scheme.entropy-bitmap]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "SchemeEntropyBitmap")]
pub struct Config {
    /// Entropies of a queue pair, a power of two up to 32768. Default 64 (uet-htsim).
    pub entropies: u16,
    /// Penalty of a mark. Default 1 (uet-htsim).
    pub mark: u8,
    /// Penalty of a trimmed packet. Default 4 (uet-htsim).
    pub cut: u8,
    /// Largest penalty. Default 15 (uet-htsim).
    pub most: u8,
}

impl Default for Config {
    fn default() -> Self {
        Config { entropies: ENTROPIES, mark: 1, cut: 4, most: 15 }
    }
}

/// What a reply tells about the path of the packet that it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Good,
    Marked,
    Cut,
}

impl Verdict {
    pub(crate) fn of(reply: &Stamp) -> Self {
        match reply.cut() {
            Some(false) => Verdict::Cut,
            _ if reply.marked() => Verdict::Marked,
            _ => Verdict::Good,
        }
    }
}

/// The entropies of a queue pair with their penalties.
#[derive(Clone, Debug)]
pub(crate) struct Penalties {
    rounds: Rounds,
    penalties: Vec<u8>,
    config: Config,
    passed_over: u64,
}

impl Penalties {
    pub(crate) fn new(key: Key, config: &Config) -> Self {
        let rounds = Rounds::new(key, config.entropies);
        let penalties = vec![0; rounds.size().into()];
        Penalties { rounds, penalties, config: config.clone(), passed_over: 0 }
    }

    /// The next entropy without a penalty; any after a whole round.
    pub(crate) fn next(&mut self) -> u16 {
        let mut paid = false;
        let mut entropy = self.rounds.next();
        for _ in 1..self.rounds.size() {
            let penalty = &mut self.penalties[usize::from(entropy)];
            if *penalty == 0 {
                break;
            }
            *penalty -= u8::from(!paid);
            (paid, self.passed_over) = (true, self.passed_over + 1);
            entropy = self.rounds.next();
        }
        entropy
    }

    /// Notes what a reply tells.
    pub(crate) fn judge(&mut self, entropy: u16, verdict: Verdict) {
        let more = match verdict {
            Verdict::Good => return,
            Verdict::Marked => self.config.mark,
            Verdict::Cut => self.config.cut,
        };
        if let Some(penalty) = self.penalties.get_mut(usize::from(entropy)) {
            *penalty = penalty.saturating_add(more).min(self.config.most);
        }
    }

    pub(crate) fn passed_over(&self) -> u64 {
        self.passed_over
    }
}

/// Sending part of the scheme, in the NIC.
#[derive(Clone, Debug)]
pub struct EntropyBitmap {
    penalties: Penalties,
}

impl Recipe for Config {
    type Scheme = Entropies;
    const LOOK: Option<Look> = Some(Look::new(5, 1));
    const TRIALS: &'static [&'static str] = &["", "entropies = 16\nmark = 3"];
    const GOLDEN: Golden = Golden::None;

    fn facts(&self) -> Facts {
        Facts::plain(true)
    }

    fn build(&self, site: Site<'_>) -> Entropies {
        Entropies::new(Mapping::Hash, site)
    }

    fn validate(&self, _plan: &Plan) -> Result<Vec<Finding>, Finding> {
        check(self.entropies).map(|()| Vec::new())
    }
}

impl Steers for Config {
    type Steering = EntropyBitmap;

    fn steer(&self, site: QpSite<'_>) -> EntropyBitmap {
        EntropyBitmap { penalties: Penalties::new(site.key(), self) }
    }
}

impl model::Steering for EntropyBitmap {
    type Annex = Stamp;

    #[inline]
    fn on_send(&mut self, now: Time, _: Sent) -> Stamp {
        Stamp::new(self.penalties.next(), now)
    }

    fn on_reply(&mut self, _now: Time, _una: u64, annex: &Stamp, _room: Room<'_>) -> u32 {
        self.penalties.judge(annex.entropy(), Verdict::of(annex));
        0
    }

    fn counters(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("entropies_passed_over", self.penalties.passed_over());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::leaf_spine;
    use model::QpId;

    fn penalties(config: Config) -> Penalties {
        let plan = leaf_spine(2, 4, 1);
        Penalties::new(QpSite { plan: &plan, qp: QpId(0) }.key(), &config)
    }

    /// How often each entropy is taken in so many packets.
    fn taken(penalties: &mut Penalties, packets: u32) -> Vec<u32> {
        let mut taken = vec![0; 4];
        (0..packets).for_each(|_| taken[usize::from(penalties.next())] += 1);
        taken
    }

    #[test]
    fn a_mark_costs_an_entropy_exactly_one_turn() {
        let mut penalties = penalties(Config { entropies: 4, ..Config::default() });
        penalties.judge(2, Verdict::Marked);
        assert_eq!(taken(&mut penalties, 11), [3, 3, 2, 3]);
    }

    #[test]
    fn a_cut_packet_costs_four_turns_and_penalties_end_at_fifteen() {
        let mut cut = penalties(Config { entropies: 4, ..Config::default() });
        cut.judge(1, Verdict::Cut);
        assert_eq!(taken(&mut cut, 16), [5, 1, 5, 5]);
        let mut worst = penalties(Config { entropies: 4, ..Config::default() });
        (0..9).for_each(|_| worst.judge(3, Verdict::Cut));
        assert_eq!(taken(&mut worst, 45)[3], 0, "three packets a round for fifteen rounds");
        assert!(taken(&mut worst, 45)[3] > 0);
    }

    #[test]
    fn one_entropy_pays_per_packet_and_after_a_round_any_goes() {
        let mut all = penalties(Config { entropies: 4, ..Config::default() });
        (0..4).for_each(|entropy| all.judge(entropy, Verdict::Marked));
        all.next();
        assert_eq!(all.penalties.iter().map(|p| u32::from(*p)).sum::<u32>(), 3);
    }
}
