//! What a fast run left out, and the error of its end.

use super::{Better, Shown, Unit};

section! {
    /// What a run with `--fast` left out. Counters of such a run are those of what it sent; its times are estimated.
    pub struct Fast;

    /// Why nothing was left out; null if the run could leave something out.
    reason: Option<String>;

    /// Largest error of the end that was allowed, as a share of it.
    tolerance: f64;

    /// Data packets that a fast run sent, retransmissions not counted.
    sent: u64 => { label: "packets of exchanges sent", unit: Unit::Packets };

    /// Data packets that a fast run left out.
    left_out: u64 => { label: "packets left out", unit: Unit::Packets };

    /// Cuts: moments at which long messages left out their middle, as all that was under way repeated.
    cuts: u64;

    /// Messages of KV that were left out because they met nobody: each arrives at the picosecond of its closed form. If there are any, `flows` has what was sent alone, and there is
    /// no `shares.parquet`.
    alone: u64;

    /// Exchanges over NICs: collectives and transfers.
    exchanges: u64;

    /// Exchanges over NICs that were sent.
    exchanges_sent: u64;

    /// Situations: exchanges that do the same count as one.
    situations: u64;

    /// Situations that the memo knew.
    remembered: u64;

    /// Exchanges that were sent although they were known, and compared with what was known.
    audits: u64;

    /// Largest difference of an audit, as a share of the time of its exchange.
    worst_audit: f64;

    /// Audits that do not count, because others on the same links were left out meanwhile.
    unclean_audits: u64;

    /// Bound on the error of the end of a fast run: the errors of all exchanges along the critical path that were left out, and what else may be off.
    error_us: f64 => {
        label: "bound on the error of the end", heading: "end\n± us", unit: Unit::Microseconds, better: Better::Less, shown: Shown::Sweep,
        rare: true,
    };

    /// Cells of ranks that the tables tell, and all of them.
    cells: (u32, u32);
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
