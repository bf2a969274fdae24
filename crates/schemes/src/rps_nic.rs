//! Random packet spraying by the sender: every data packet draws its UDP source port.
//!
//! Like [`crate::rps`], but switches need nothing new: their ECMP hash turns the source port into a path. DLBF's paper
//! sprays in this way ("a random source port per packet").

use crate::entropies::{Entropies, Mapping};
use crate::{Facts, Recipe, Steers, palette::Look};
use finding::{Finding, code};
use model::draw::{Key, below};
use model::steering::Sent;
use model::{Plan, QpSite, Site, Stamp, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[scheme.rps-nic]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "SchemeRpsNic")]
pub struct Config {
    /// Source ports to draw from, 1 to 65535. Default 16384: the dynamic ports 49152 to 65535 (RFC 6335), which
    /// RoCEv2 recommends (InfiniBand Architecture, Annex A17).
    pub entropies: u16,
}

impl Default for Config {
    fn default() -> Self {
        Config { entropies: 16384 }
    }
}

/// Sending part of the scheme, in the NIC.
#[derive(Clone, Debug)]
pub struct RpsNic {
    key: Key,
    drawn: u64,
    entropies: u16,
}

impl Recipe for Config {
    type Scheme = Entropies;
    const LOOK: Option<Look> = Some(Look::new(1, 3));
    const TRIALS: &'static [&'static str] = &["entropies = 7"];

    fn facts(&self) -> Facts {
        Facts::plain(true)
    }

    fn build(&self, site: Site<'_>) -> Entropies {
        Entropies::new(Mapping::Hash, site)
    }

    fn validate(&self, _plan: &Plan) -> Result<Vec<Finding>, Finding> {
        match self.entropies {
            0 => Err(code::RANGE.at("entropies", "at least one source port is needed")),
            _ => Ok(Vec::new()),
        }
    }
}

impl Steers for Config {
    type Steering = RpsNic;

    fn steer(&self, site: QpSite<'_>) -> RpsNic {
        RpsNic { key: site.key(), drawn: 0, entropies: self.entropies.max(1) }
    }
}

impl model::Steering for RpsNic {
    type Annex = Stamp;

    #[inline]
    fn on_send(&mut self, now: Time, _: Sent) -> Stamp {
        self.drawn += 1;
        Stamp::new(below(self.key.draw(self.drawn), self.entropies.into()) as u16, now)
    }
}
