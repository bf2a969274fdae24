//! Spraying by the sender over entropies that have just worked, and else over those without penalties: the default of the Ultra
//! Ethernet Consortium's simulator (uet-htsim, `uec_mp.cpp`, "mixed").
//!
//! An ACK without a mark puts its entropy into a queue, and the next packet takes it from there; so does the NACK of an unmarked
//! packet that the receiver's own switch has cut, where all paths end. With an empty queue the sender goes through all entropies
//! as under `entropy-bitmap`.

use crate::entropies::{Entropies, Mapping};
use crate::entropy_bitmap::{self, Penalties, Verdict};
use crate::{Facts, Golden, Recipe, Steers, palette::Look};
use finding::Finding;
use model::steering::{Room, Sent};
use model::{Plan, QpSite, Site, Stamp, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// `[scheme.entropy-mixed]`: the keys of `entropy-bitmap`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(rename = "SchemeEntropyMixed")]
pub struct Config(entropy_bitmap::Config);

/// Sending part of the scheme, in the NIC.
#[derive(Clone, Debug)]
pub struct EntropyMixed {
    penalties: Penalties,
    good: VecDeque<u16>,
    recycled: u64,
}

impl Recipe for Config {
    type Scheme = Entropies;
    const LOOK: Option<Look> = Some(Look::new(4, 2));
    const TRIALS: &'static [&'static str] = &["entropies = 32", "entropies = 4"];
    const GOLDEN: Golden = Golden::None;

    fn facts(&self) -> Facts {
        self.0.facts()
    }

    fn build(&self, site: Site<'_>) -> Entropies {
        Entropies::new(Mapping::Hash, site)
    }

    fn validate(&self, plan: &Plan) -> Result<Vec<Finding>, Finding> {
        self.0.validate(plan)
    }
}

impl Steers for Config {
    type Steering = EntropyMixed;

    fn steer(&self, site: QpSite<'_>) -> EntropyMixed {
        let penalties = Penalties::new(site.key(), &self.0);
        EntropyMixed { penalties, good: VecDeque::new(), recycled: 0 }
    }
}

impl model::Steering for EntropyMixed {
    type Annex = Stamp;

    #[inline]
    fn on_send(&mut self, now: Time, _: Sent) -> Stamp {
        let entropy = match self.good.pop_front() {
            Some(entropy) => {
                self.recycled += 1;
                entropy
            }
            None => self.penalties.next(),
        };
        Stamp::new(entropy, now)
    }

    fn on_reply(&mut self, _now: Time, _una: u64, annex: &Stamp, _room: Room<'_>) -> u32 {
        match Verdict::of(annex) {
            Verdict::Good => self.good.push_back(annex.entropy()),
            verdict => self.penalties.judge(annex.entropy(), verdict),
        }
        0
    }

    fn counters(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("entropies_passed_over", self.penalties.passed_over());
        sink("entropies_recycled", self.recycled);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::leaf_spine;
    use model::Dialogue as _;
    use model::transport::Telling;
    use model::{QpId, Steering as _};

    #[test]
    fn good_entropies_come_back_once_and_before_all_others() {
        let mut mixed = Config::default().steer(QpSite { plan: &leaf_spine(2, 4, 1), qp: QpId(0) });
        let send = |mixed: &mut EntropyMixed| {
            let sent = Sent { seq: 0, again: false, left: 0, frame: 1500 };
            mixed.on_send(Time::ZERO, sent).entropy()
        };
        for (entropy, marked) in [(7, false), (8, true), (9, false)] {
            let reply = Stamp::new(entropy, Time::ZERO).answer(Time::ZERO, marked, Telling::default);
            mixed.on_reply(Time::ZERO, 0, &reply, &mut || 0);
        }
        assert_eq!([send(&mut mixed), send(&mut mixed)], [7, 9]);
        // The first round has all entropies but the marked one.
        let round: Vec<u16> = (0..63).map(|_| send(&mut mixed)).collect();
        assert!(!round.contains(&8), "{round:?}");
    }
}
