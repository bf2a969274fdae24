//! Kinds of faults with their rates.

use crate::site::Site;
use model::NodeId;

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A link between a NIC and its switch is down until it is replaced.
    NicLink,
    /// A link between a NIC and its switch flaps.
    NicFlap,
    /// A link between switches flaps.
    FabricFlap,
    /// A link between switches loses packets until somebody notices.
    Gray,
    /// A switch with hosts is down until it is replaced.
    Leaf,
    /// A switch without hosts is down until it is replaced.
    Spine,
}

/// Days of the months that rates speak of.
const MONTH: f64 = 30.0;

/// A kind with its rate.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    /// The kind.
    pub kind: Kind,
    /// Its name.
    pub name: &'static str,
    /// Faults of a part per day.
    pub per_day: f64,
    /// The source of the rate.
    pub source: &'static str,
}

/// All kinds. CorrOpt counts gray links, but publishes no rate of new ones.
pub const RATES: [Rate; 6] = [
    Rate {
        kind: Kind::NicLink,
        name: "NIC link down",
        per_day: 0.00057 / MONTH,
        source: "0.057 % of links per month (Alibaba, in arXiv 2603.03736)",
    },
    Rate {
        kind: Kind::NicFlap,
        name: "NIC link flaps",
        per_day: 1.8e-4,
        source: "arXiv 2603.03736, extrapolated there",
    },
    Rate {
        kind: Kind::FabricFlap,
        name: "fabric link flaps",
        per_day: 1.8e-4,
        source: "arXiv 2603.03736, extrapolated there",
    },
    Rate {
        kind: Kind::Gray,
        name: "gray link",
        per_day: 1e-5,
        source: "our choice; loss of 0.1 %, noticed after the time of a repair",
    },
    Rate {
        kind: Kind::Leaf,
        name: "leaf down",
        per_day: 0.02 / (3.0 * MONTH),
        source: "2 % of switches in three months (Singh et al., CCR 2021)",
    },
    Rate {
        kind: Kind::Spine,
        name: "spine down",
        per_day: 0.02 / (3.0 * MONTH),
        source: "2 % of switches in three months (Singh et al., CCR 2021)",
    },
];

/// Number of parts of a fabric that may have a fault of this kind.
pub(crate) fn parts(site: &Site, kind: Kind) -> usize {
    let fabric = &site.plan.fabric;
    let cable = |link: &&model::fabric::Link| !fabric.is_host(link.from) && !fabric.is_host(link.to);
    let switches = |leaf: bool| fabric.switches().filter(|node| is_leaf(site, *node) == leaf).count();
    match kind {
        Kind::NicLink | Kind::NicFlap => fabric.hosts(),
        Kind::FabricFlap | Kind::Gray => fabric.links().iter().filter(cable).count() / 2,
        Kind::Leaf => switches(true),
        Kind::Spine => switches(false),
    }
}

fn is_leaf(site: &Site, node: NodeId) -> bool {
    site.plan.fabric.tier(node) == 1
}
