//! The kind of NIC that a bump plays.

use rnic::{Acks, Evidence, Nic, NicConfig};
use std::fmt;

/// Loss recovery and congestion control of a NIC, checked for use with real frames.
#[derive(Clone, Debug, PartialEq)]
pub struct Personality {
    config: NicConfig,
}

/// Why a `[nic]` table cannot describe a bump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit {
    /// The setting, relative to the table `[nic]`.
    pub field: String,
    /// What is wrong with it, as the end of a sentence that begins with the setting.
    pub reason: String,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.reason)
    }
}

impl std::error::Error for Unfit {}

impl Personality {
    /// Checks a `[nic]` table. The retransmission timer is the host's, so `timeout` has no effect.
    ///
    /// # Errors
    /// A value is impossible, or RoCEv2's ACKs, NACKs and CNPs cannot carry what the NIC needs.
    pub fn new(config: &NicConfig) -> Result<Self, Unfit> {
        let unfit = |field: String, reason: &str| Unfit { field, reason: reason.to_owned() };
        config.validate().map_err(|e| Unfit { field: e.path(), reason: e.text })?;
        let transport = config.transport.facts();
        let name = config.transport.name();
        if transport.names_packets || transport.sacks || transport.acks != Acks::Packets {
            let reason = "RoCEv2's ACKs and NACKs carry only one PSN, and this recovery mode needs more";
            return Err(unfit(format!("transport.{name}"), reason));
        }
        let control = config.congestion.facts();
        let name = config.congestion.name();
        if control.needs_path || !matches!(control.evidence, Evidence::Cnps | Evidence::None) {
            let reason = "a bump hears only CNPs and NACKs, and this congestion control needs other evidence";
            return Err(unfit(format!("congestion.{name}"), reason));
        }
        if config.window.is_some() {
            return Err(unfit("window".into(), "a bump does not know the round trip of its paths"));
        }
        Ok(Personality { config: config.clone() })
    }

    /// True if the congestion control has a rate, so that the rate of the line must be known.
    pub fn has_rate(&self) -> bool {
        self.config.congestion.facts().has_rate
    }

    /// True if packets are sent as ECN-capable, so that switches can mark them.
    pub(crate) fn hears_marks(&self) -> bool {
        self.config.congestion.facts().evidence == Evidence::Cnps
    }

    pub(crate) fn build(&self) -> Nic {
        NicConfig { timeout: rnic::timeout::Timeout::None, backoff: None, ..self.config.clone() }.build()
    }
}

/// The defaults of `[nic]`.
impl Default for Personality {
    fn default() -> Self {
        Personality { config: NicConfig::default() }
    }
}
