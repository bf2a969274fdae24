//! A part that a program adds.

use rnic::Control;
use rnic::own::{ControlEntry, Settings, Transport, TransportEntry};
use schemes::{Recipe, Steers};

/// A part that a program adds: its name as a scenario spells it, and a sentence that tells what it is.
///
/// Parts of different kinds may have one name, as the built-in `mp-rdma` do.
#[derive(Clone, Copy, Debug)]
pub struct Entry(Kind);

#[derive(Clone, Copy, Debug)]
enum Kind {
    Scheme(schemes::own::Entry),
    Control(ControlEntry),
    Transport(TransportEntry),
}

impl Entry {
    /// A scheme that sits in switches: `[scheme.NAME]`.
    pub const fn in_switches<C>(name: &'static str, about: &'static str) -> Entry
    where
        C: Recipe<Scheme: Send + 'static> + Settings,
    {
        Entry(Kind::Scheme(schemes::own::Entry::in_switches::<C>(name, about)))
    }

    /// A scheme that sits in sending NICs, with a part in switches or without: `[scheme.NAME]`.
    pub const fn in_senders<C>(name: &'static str, about: &'static str) -> Entry
    where
        C: Steers<Scheme: Send + 'static, Steering: Send + 'static> + Settings,
    {
        Entry(Kind::Scheme(schemes::own::Entry::in_senders::<C>(name, about)))
    }

    /// A congestion control: `[nic.congestion.NAME]`.
    pub const fn control<C>(name: &'static str, about: &'static str) -> Entry
    where
        C: Control<State: Send + 'static> + Settings,
    {
        Entry(Kind::Control(ControlEntry::new::<C>(name, about)))
    }

    /// A recovery mode: `[nic.transport.NAME]`.
    pub const fn transport<C: Transport + Settings>(name: &'static str, about: &'static str) -> Entry {
        Entry(Kind::Transport(TransportEntry::new::<C>(name, about)))
    }

    /// The name.
    pub const fn name(&self) -> &'static str {
        match self.0 {
            Kind::Scheme(entry) => entry.name(),
            Kind::Control(entry) => entry.name(),
            Kind::Transport(entry) => entry.name(),
        }
    }

    /// The table of a scenario that has the tables of all parts of this kind.
    pub(crate) const fn table(&self) -> &'static str {
        match self.0 {
            Kind::Scheme(_) => "scheme",
            Kind::Control(_) => "nic.congestion",
            Kind::Transport(_) => "nic.transport",
        }
    }
}

/// Adds parts to the lists of the program. A program does so before it reads a scenario; a part may be added again.
///
/// # Panics
/// If a name is taken or is no name.
pub fn add(parts: &[Entry]) {
    for part in parts {
        match part.0 {
            Kind::Scheme(entry) => schemes::own::add(&[entry]),
            Kind::Control(entry) => rnic::own::add_controls(&[entry]),
            Kind::Transport(entry) => rnic::own::add_transports(&[entry]),
        }
    }
}
