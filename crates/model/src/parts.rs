//! The bundle of pluggable parts.

use crate::{Annex, Congestion, Plan, QpId, QpSite, Receiver, Scheme, Sender, Site, Steering};

/// What a run is made of besides its plan: the types of its parts and how to build one of each. The engine
/// is generic over this trait and names no part.
pub trait Parts {
    /// Load balancing of a switch.
    type Scheme: Scheme + Send;
    /// Sending end of a queue pair.
    type Sender: Sender + Send;
    /// Receiving end of a queue pair.
    type Receiver: Receiver + Send;
    /// Congestion control of a queue pair.
    type Congestion: Congestion + Send;
    /// What packets carry from end to end besides their labels.
    type Annex: Annex;
    /// What steers a queue pair's packets.
    type Steering: Steering<Annex = Self::Annex> + Send;

    /// The scheme of a switch.
    fn scheme(&self, site: Site<'_>) -> Self::Scheme;

    /// The sending end of a queue pair.
    fn sender(&self, plan: &Plan, qp: QpId) -> Self::Sender;

    /// The receiving end of a queue pair.
    fn receiver(&self, plan: &Plan, qp: QpId) -> Self::Receiver;

    /// The congestion control of a queue pair.
    fn congestion(&self, plan: &Plan, qp: QpId) -> Self::Congestion;

    /// The steering of a queue pair.
    fn steering(&self, site: QpSite<'_>) -> Self::Steering;
}
