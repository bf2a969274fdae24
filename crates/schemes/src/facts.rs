//! What every scheme declares about itself. Other code reads these facts and never asks for a scheme by name.

use model::scheme::QueueView;
use rnic::OwnNic;

/// Facts about a scheme with its settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// Whether packets of one queue pair take several paths at a time, and so overtake each other.
    pub sprays: bool,
    /// Whether its switches may block a NACK, and send one of their own.
    pub judges_nacks: bool,
    /// Whether its switches write on packets ([`model::Cx::tag`]), which then need room for that.
    pub tags: bool,
    /// Frame of the smallest signal that its switches send ([`model::Cx::signal`]), bytes; 0 if they send none.
    pub signal: u32,
    /// The view of all queues that its switches ask for ([`model::Interest::view`]).
    pub view: Option<QueueView>,
    /// The NIC that its queue pairs have in place of the scenario's.
    pub nic: Option<OwnNic>,
    /// Whether queue pairs follow the paths to which the plan pins them ([`model::plan::Qp::path`]). Messages are then split
    /// over such paths, unless the workload says otherwise.
    pub pinned: bool,
}

impl Facts {
    /// Facts of a scheme that chooses paths, and does nothing else of which others must know.
    pub fn plain(sprays: bool) -> Self {
        Facts { sprays, judges_nacks: false, tags: false, signal: 0, view: None, nic: None, pinned: false }
    }
}
