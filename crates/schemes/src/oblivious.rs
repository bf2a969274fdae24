//! Oblivious spraying by the sender: every packet takes the next entropy of a fixed set, in an order that changes every round
//! (Ultra Ethernet Specification 1.0.3, section 3.6.16; the consortium's simulator, uet-htsim).
//!
//! The set is passed through once per round, xor a random mask. So every entropy has the same share of the packets, unlike
//! under `rps-nic`. Replies change nothing.

use crate::entropies::{Entropies, Mapping};
use crate::{Facts, Golden, Recipe, Steers, palette::Look};
use finding::{Finding, code};
use model::draw::Key;
use model::steering::Sent;
use model::{Plan, QpSite, Site, Stamp, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[scheme.oblivious]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "SchemeOblivious")]
pub struct Config {
    /// Entropies of a queue pair, a power of two up to 32768. Default 64 (uet-htsim; Ultra Ethernet suggests 64 to 256).
    pub entropies: u16,
}

impl Default for Config {
    fn default() -> Self {
        Config { entropies: ENTROPIES }
    }
}

/// Default number of entropies.
pub(crate) const ENTROPIES: u16 = 64;

/// Checks the number of entropies.
pub(crate) fn check(entropies: u16) -> Result<(), Finding> {
    match entropies.is_power_of_two() {
        true => Ok(()),
        false => {
            let text = format!("expected a power of two from 1 to 32768, found {entropies}");
            Err(code::RANGE.at("entropies", text))
        }
    }
}

/// The entropies of a set, round after round.
#[derive(Clone, Debug)]
pub(crate) struct Rounds {
    key: Key,
    size: u16,
    mask: u16,
    /// Entropies taken so far.
    taken: u64,
}

impl Rounds {
    /// Rounds through entropies 0 to `size` - 1.
    pub(crate) fn new(key: Key, size: u16) -> Self {
        let size = if size.is_power_of_two() { size } else { ENTROPIES };
        Rounds { key, size, mask: 0, taken: 0 }
    }

    /// The next entropy.
    pub(crate) fn next(&mut self) -> u16 {
        // The size is a power of two, and a division takes long.
        let at = self.taken as u16 & (self.size - 1);
        if at == 0 {
            self.mask = self.key.draw(self.taken >> self.size.trailing_zeros()) as u16;
        }
        self.taken += 1;
        (at ^ self.mask) & (self.size - 1)
    }

    /// Number of entropies.
    pub(crate) fn size(&self) -> u16 {
        self.size
    }
}

/// Sending part of the scheme, in the NIC.
#[derive(Clone, Debug)]
pub struct Oblivious {
    rounds: Rounds,
}

impl Recipe for Config {
    type Scheme = Entropies;
    const LOOK: Option<Look> = Some(Look::new(1, 0));
    const TRIALS: &'static [&'static str] = &["entropies = 16"];
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
    type Steering = Oblivious;

    fn steer(&self, site: QpSite<'_>) -> Oblivious {
        Oblivious { rounds: Rounds::new(site.key(), self.entropies) }
    }
}

impl model::Steering for Oblivious {
    type Annex = Stamp;

    #[inline]
    fn on_send(&mut self, now: Time, _: Sent) -> Stamp {
        Stamp::new(self.rounds.next(), now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::leaf_spine;
    use model::QpId;
    use std::collections::BTreeSet;

    #[test]
    fn every_round_takes_every_entropy_once_in_another_order() {
        let plan = leaf_spine(2, 4, 1);
        let mut rounds = Rounds::new(QpSite { plan: &plan, qp: QpId(0) }.key(), 64);
        let mut round = || (0..64).map(|_| rounds.next()).collect::<Vec<_>>();
        let (first, second) = (round(), round());
        for round in [&first, &second] {
            assert_eq!(round.iter().copied().collect::<BTreeSet<_>>(), (0..64).collect());
        }
        assert_ne!(first, second);
    }

    #[test]
    fn only_powers_of_two_are_possible() {
        assert!(check(1).is_ok() && check(1 << 15).is_ok());
        assert!(check(0).is_err() && check(48).is_err());
    }
}
