//! The list of schemes that this program adds to ropewalk's.

pub mod scheme;

use strand::Entry;

/// Names as a scenario spells them: `[scheme.mine]`, `--schemes mine`.
pub const SCHEMES: &[Entry] = &[Entry::in_switches::<scheme::Config>(
    "mine",
    "The shorter of a few random queues, for every data packet.",
)];
