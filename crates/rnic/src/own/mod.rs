//! Parts of one's own: a program gives them names, and scenarios use them as any other part.
//!
//! Schemes, recovery modes and congestion controls are listed alike. A [`List`] has the names of one kind of part: those of a crate and
//! those that the program has added. An [`Entry`] does at run time what the list of a crate does by its macro.
//!
//! | file | content |
//! |---|---|
//! | `list` | entries, lists, and a part with its settings |
//! | `control` | congestion controls |
//! | `transport` | recovery modes |

mod control;
mod list;
mod transport;

pub use control::{ControlEntry, ControlParts};
pub use list::{Entry, List, Maker, Own, Settings, Written, changes, schema_of, unfit};
pub use transport::{Transport, TransportEntry, TransportParts};

pub(crate) use control::{CONTROLS, listed as listed_controls};
pub(crate) use transport::{TRANSPORTS, listed as listed_transports};

/// The place that an error in the settings of a part names, below the table of its kind, and the rest of the text; `None` for other errors.
pub fn place(text: &str) -> Option<(Vec<String>, &str)> {
    CONTROLS.place(text).or_else(|| TRANSPORTS.place(text))
}

/// Adds congestion controls to those of this crate. A program does so before it reads a scenario; an entry may be added again.
///
/// # Panics
/// If a name is taken or is no name.
pub fn add_controls(entries: &[ControlEntry]) {
    entries.iter().for_each(|entry| CONTROLS.add(entry.0));
}

/// Adds recovery modes, as [`add_controls`] does.
///
/// # Panics
/// If a name is taken or is no name.
pub fn add_transports(entries: &[TransportEntry]) {
    entries.iter().for_each(|entry| TRANSPORTS.add(entry.0));
}
