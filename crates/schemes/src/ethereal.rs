//! Ethereal: flows are split so that every uplink of a source carries the same bytes, and each subflow keeps one path
//! (Addanki, Goyal, Marinos and Schmid, "Ethereal: Divide and Conquer Network Load Balancing in Large-Scale Distributed
//! Training", arXiv 2407.00550).
//!
//! The scenario splits messages and pins queue pairs to paths, see [`Facts::pinned`]. What is left for the sender is failures:
//! a queue pair whose timer expires moves to another path.
//!
//! # Counters
//!
//! | counter | meaning |
//! |---|---|
//! | `paths_moved` | timeouts after which a queue pair moved to another path |

use crate::pinned::{HASHED, Pinned, entropy};
use crate::{Facts, Recipe, Steers, entropies, palette::Look};
use finding::{Finding, code};
use model::draw::{Key, below};
use model::steering::Sent;
use model::{Plan, QpSite, Site, Stamp, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[scheme.ethereal]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "SchemeEthereal")]
pub struct Config {
    /// Whether a queue pair moves to another path, drawn from all others, after a timeout. Default true (the paper moves it;
    /// the draw is our choice).
    pub moves: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config { moves: true }
    }
}

/// Sending part of the scheme, in the NIC.
#[derive(Clone, Debug)]
pub struct Ethereal {
    key: Key,
    entropy: u16,
    /// Number of paths to choose from after a timeout.
    paths: u16,
    moved: u64,
}

impl Recipe for Config {
    type Scheme = Pinned;
    const LOOK: Option<Look> = Some(Look::new(0, 1));

    fn facts(&self) -> Facts {
        Facts { pinned: true, ..Facts::plain(false) }
    }

    fn build(&self, site: Site<'_>) -> Pinned {
        Pinned::new(site)
    }

    fn validate(&self, plan: &Plan) -> Result<Vec<Finding>, Finding> {
        let mut warnings = Vec::new();
        if !plan.qps.is_empty() && plan.qps.iter().all(|qp| qp.path.is_none()) {
            let text = "no message is split or pinned to a path, so `ethereal` is ECMP until a timeout; messages inside a rack, \
                        over a single path and of programs never are";
            warnings.push(code::NO_EFFECT.plain(text));
        }
        Ok(warnings)
    }
}

impl Steers for Config {
    type Steering = Ethereal;

    fn steer(&self, site: QpSite<'_>) -> Ethereal {
        let path = site.plan.qps[site.qp.index()].path;
        Ethereal {
            key: site.key(),
            entropy: path.map_or(HASHED, entropy),
            paths: if self.moves { entropies::paths(site) } else { 1 },
            moved: 0,
        }
    }
}

impl model::Steering for Ethereal {
    type Annex = Stamp;

    #[inline]
    fn on_send(&mut self, now: Time, _: Sent) -> Stamp {
        Stamp::new(self.entropy, now)
    }

    fn on_timeout(&mut self, _now: Time) {
        if self.paths < 2 {
            return;
        }
        self.moved += 1;
        let draw = self.key.draw(self.moved);
        // A path beyond those to this destination wraps around, as in switches.
        let path = self.entropy.checked_sub(entropy(0)).map(|path| path % self.paths);
        self.entropy = entropy(match path {
            Some(old) => {
                let other = below(draw, usize::from(self.paths) - 1) as u16;
                other + u16::from(other >= old)
            }
            None => below(draw, self.paths.into()) as u16,
        });
    }

    fn counters(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("paths_moved", self.moved);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::{leaf_spine, qp};
    use model::Steering as _;
    use std::collections::BTreeSet;

    fn send(e: &mut Ethereal) -> u16 {
        e.on_send(Time::ZERO, Sent { seq: 0, again: false, left: 0, frame: 1500 }).entropy()
    }

    #[test]
    fn a_queue_pair_keeps_its_path_until_a_timeout_moves_it_to_another() {
        let mut plan = leaf_spine(2, 4, 1);
        let across = qp(&plan, 0, 1);
        plan.qps[across.index()].path = Some(2);
        let mut e = Config::default().steer(QpSite { plan: &plan, qp: across });
        assert_eq!([send(&mut e), send(&mut e)], [3, 3]);
        let mut seen = BTreeSet::new();
        for _ in 0..100 {
            let before = send(&mut e);
            e.on_timeout(Time::from_us(7));
            let after = send(&mut e);
            assert!(after != before && (1..=4).contains(&after), "{before} and {after}");
            assert_eq!(send(&mut e), after);
            seen.insert(after);
        }
        assert_eq!(seen.len(), 4);
        let stays = Config { moves: false };
        let mut e = stays.steer(QpSite { plan: &plan, qp: across });
        e.on_timeout(Time::from_us(7));
        assert_eq!(send(&mut e), 3);
    }

    #[test]
    fn a_queue_pair_without_a_path_takes_its_base_path_first() {
        let plan = leaf_spine(2, 4, 2);
        let mut e = Config::default().steer(QpSite { plan: &plan, qp: qp(&plan, 0, 2) });
        assert_eq!(send(&mut e), HASHED);
        e.on_timeout(Time::ZERO);
        assert_ne!(send(&mut e), HASHED);
        let mut inside = Config::default().steer(QpSite { plan: &plan, qp: qp(&plan, 0, 1) });
        inside.on_timeout(Time::ZERO);
        assert_eq!(send(&mut inside), HASHED, "inside a rack there is one path");
    }
}
