//! The list of parts that this program adds to ropewalk's. Leave out what you do not need, with its file.

pub mod control;
pub mod scheme;
pub mod transport;

use strand::Entry;

/// Names as a scenario spells them: `[scheme.mine]`, `[nic.congestion.mine]`, `[nic.transport.mine]`.
pub const PARTS: &[Entry] = &[
    Entry::in_switches::<scheme::Config>(
        "mine",
        "The shorter of a few random queues, for every data packet.",
    ),
    Entry::control::<control::Config>("mine", "A window that a mark halves, at most once per round trip."),
    Entry::transport::<transport::Config>(
        "mine",
        "Selective repeat whose receiver asks for a packet once several later ones have arrived.",
    ),
];
