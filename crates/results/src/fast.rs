//! What a fast run left out, and the error of its end.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a run with `--fast` left out. Counters of such a run are those of what it sent; its times are estimated.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Fast {
    /// Why nothing was left out; null if the run could leave something out.
    pub reason: Option<String>,
    /// Largest error of the end that was allowed, as a share of it.
    pub tolerance: f64,
    /// Data packets sent, retransmissions not counted.
    pub sent: u64,
    /// Data packets left out.
    pub left_out: u64,
    /// Exchanges over NICs: collectives and transfers.
    pub exchanges: u64,
    /// Exchanges over NICs that were sent.
    pub exchanges_sent: u64,
    /// Situations: exchanges that do the same count as one.
    pub situations: u64,
    /// Exchanges that were sent although they were known, and compared with what was known.
    pub audits: u64,
    /// Largest difference of an audit, as a share of the time of its exchange.
    pub worst_audit: f64,
    /// Audits that do not count, because others on the same links were left out meanwhile.
    pub unclean_audits: u64,
    /// Bound on the error of the end, us: the errors of all exchanges along the critical path that were left out, and what else may be off.
    pub error_us: f64,
    /// Cells of ranks that the tables tell, and all of them.
    pub cells: (u32, u32),
}

impl Fast {
    /// The share of the packets that was sent.
    pub fn share(&self) -> f64 {
        match self.sent + self.left_out {
            0 => 1.0,
            all => self.sent as f64 / all as f64,
        }
    }
}
