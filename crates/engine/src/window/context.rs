//! What the visits of nodes share: the open window, and working memory.

use super::lanes::{Board, Mail, Outbox, Pool};
use super::out::Window;
use super::setup::Setup;
use super::sort::Sorter;
use super::step::PortEvents;
use super::switch::Scratch;
use crate::live::Report;
use model::{Annex, Parcel};

/// Working memory that one thread uses for all nodes in turn, so that it stays in the caches.
#[derive(Debug, Default)]
pub(super) struct Workspace<A: Annex> {
    /// Packets of the lanes that reach the node.
    pub(super) incoming: Vec<Vec<Parcel<A>>>,
    pub(super) pool: Pool<A>,
    pub(super) sorter: Sorter<A>,
    pub(super) scratch: Scratch<A>,
    pub(super) port_events: Vec<PortEvents>,
    pub(super) reports: Vec<Report>,
    /// Arrivals at one port.
    pub(super) row: Vec<Parcel<A>>,
}

/// The read-only state that all visits of a window share.
pub(super) struct Context<'s, A> {
    pub(super) setup: &'s Setup<'s>,
    pub(super) window: Window,
    pub(super) board: &'s Board<A>,
    pub(super) mail: &'s Mail,
    /// The visiting thread's part of `mail`.
    pub(super) outbox: &'s Outbox,
    /// The known view of all queues.
    pub(super) view: &'s [u32],
}

impl<A> Clone for Context<'_, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A> Copy for Context<'_, A> {}
