//! Nodes, links and equal-cost routes.
//!
//! Routes are kept per (switch, rack), not per pair of hosts, and switches with the same routes share them: a k = 32 fat
//! tree of 8192 hosts needs 70 kB of routes.
//!
//! Each file uses the files above it only:
//!
//! | file | what it defines |
//! |---|---|
//! | `topology.rs` | [`Topology`]: nodes, links, racks |
//! | `groups.rs` | the groups of a Dragonfly |
//! | `graph.rs` | switches as a graph, and distances in it |
//! | `port_sets.rs` | sets of equal-cost ports, each stored once |
//! | `gateways.rs` | ports by which packets leave a group |
//! | `routes.rs` | routes of all switches |
//! | `surviving.rs` | routes around dead links in a fabric of groups |
//! | `router.rs` | [`Router`]: look-ups at one switch |
//! | `detours.rs` | [`Detours`]: non-minimal paths in a fabric of groups |
//! | this file | [`Fabric`]: a topology and its routes |
//! | `reroute.rs` | [`Rerouter`]: routes around dead links |
//! | `builder.rs` | [`FabricBuilder`] |

mod builder;
mod detours;
mod gateways;
mod graph;
mod groups;
mod names;
mod port_sets;
mod reroute;
mod router;
mod routes;
mod surviving;
#[cfg(test)]
mod tests;
mod topology;

pub use builder::FabricBuilder;
pub use detours::Detours;
pub use groups::{MOST_CHANNELS, MinimalPaths};
pub use reroute::{Rerouter, Routing};
pub use router::Router;
pub use topology::{FabricError, Link, Topology};

use crate::{HostId, NodeId, PortIndex, Rate};
use gateways::Gateways;
use groups::Groups;
use router::{Damage, Grouped};
use routes::Routes;
use std::ops::Deref;
use surviving::SurvivingRoutes;

/// A [`Topology`], checked, and the routes in it.
#[derive(Clone, Debug)]
pub struct Fabric {
    topology: Topology,
    routes: Routes,
    groups: Option<Groups>,
    /// In a fabric of groups.
    gateways: Option<Gateways>,
}

impl Deref for Fabric {
    type Target = Topology;

    #[inline]
    fn deref(&self) -> &Topology {
        &self.topology
    }
}

impl Fabric {
    /// Lowers the rate at which an endpoint sends; its link keeps its rate towards it.
    pub fn limit_uplink(&mut self, host: HostId, rate: Rate) {
        self.topology.limit_uplink(host, rate);
    }

    /// The switch's distance from its nearest host, in links: 1 for a ToR, 2 for the switches above ToRs, and so on. It is
    /// 0 for a host, and for a switch that no host reaches.
    pub fn tier(&self, node: NodeId) -> usize {
        if self.is_host(node) { 0 } else { self.routes.tier(self.switch_number(node)) }
    }

    /// How much more traffic hosts can send than the tiers above them can carry: for each tier with switches above, the
    /// largest ratio of a switch's links downwards to its links upwards, by rate; the product over all tiers, and at least
    /// 1 for each.
    pub fn oversubscription(&self) -> f64 {
        let mut of_tier: Vec<f64> = Vec::new();
        for node in self.switches() {
            let tier = self.tier(node);
            let rates = |up: bool| {
                let links = self.ports(node).iter().filter(|link| (self.tier(link.to) > tier) == up);
                links.map(|link| link.rate.bps() as f64).sum::<f64>()
            };
            let up = rates(true);
            if up > 0.0 {
                of_tier.resize(of_tier.len().max(tier + 1), 1.0);
                of_tier[tier] = of_tier[tier].max(rates(false) / up);
            }
        }
        of_tier.iter().product()
    }

    /// Number of groups; 0 if the fabric has none.
    pub fn groups(&self) -> usize {
        self.groups.as_ref().map_or(0, Groups::count)
    }

    /// The group of a switch; `None` for hosts, and in a fabric without groups.
    pub fn group(&self, node: NodeId) -> Option<usize> {
        let groups = self.groups.as_ref().filter(|_| !self.is_host(node))?;
        Some(usize::from(groups.of(self.switch_number(node)).group))
    }

    /// Virtual channels of every link between switches; 1 in a fabric without groups. A packet is in the channel of its
    /// leg, or in the last channel if there are fewer channels than legs (see [`crate::RouteState`]).
    #[inline]
    pub fn channels(&self) -> u8 {
        self.groups.as_ref().map_or(1, |groups| groups.channels)
    }

    /// Virtual channels that packets may use on `link`: a host sends on its first leg only.
    pub fn channels_on(&self, link: &Link) -> u8 {
        if self.is_host(link.from) { 1 } else { self.channels() }
    }

    /// The routes of one switch, for many look-ups.
    ///
    /// # Panics
    /// If `node` is a host.
    #[inline]
    pub fn router(&self, node: NodeId) -> Router<'_> {
        self.router_of(&self.routes, None, node)
    }

    #[inline]
    fn router_of<'a>(
        &'a self,
        routes: &'a Routes,
        surviving: Option<&'a SurvivingRoutes>,
        node: NodeId,
    ) -> Router<'a> {
        let switch = self.switch_number(node);
        let grouped = self.groups.as_ref().zip(self.gateways.as_ref()).map(|(groups, gateways)| Grouped {
            groups,
            gateways,
            switch,
            damage: surviving.map(|surviving| Damage { surviving, whole: &self.routes }),
        });
        Router {
            rack_of: self.rack_of(),
            own: routes.rack_at(switch),
            row: routes.row(switch),
            down: self.down(),
            pool: routes.pool(),
            grouped,
        }
    }

    /// Ports of `node` on shortest paths (fewest hops) to host `to`; empty if there is none. A host with several ports
    /// sends by the port of the endpoint that sends, see [`Topology::uplink`].
    #[inline]
    pub fn route(&self, node: NodeId, to: HostId) -> &[PortIndex] {
        if self.attachment(to) == node {
            return std::slice::from_ref(&self.down()[to.index()]);
        }
        if self.is_host(node) {
            return if node == self.node_of(to) { &[] } else { const { &[PortIndex(0)] } };
        }
        self.route_to_rack(node, self.rack(to))
    }

    /// Ports of the switch `node` on shortest paths to the switch of another rack; empty if there is none.
    ///
    /// # Panics
    /// If `node` is a host.
    #[inline]
    pub fn route_to_rack(&self, node: NodeId, rack: usize) -> &[PortIndex] {
        port_sets::set(self.routes.pool(), self.routes.row(self.switch_number(node))[rack])
    }

    /// Number of the set of ports that [`Fabric::route_to_rack`] returns; equal numbers stand for equal sets.
    ///
    /// # Panics
    /// If `node` is a host.
    #[inline]
    pub fn route_number(&self, node: NodeId, rack: usize) -> u32 {
        self.routes.row(self.switch_number(node))[rack]
    }

    /// True if packets from `from` reach `to`.
    pub fn reaches(&self, from: HostId, to: HostId) -> bool {
        let up = self.uplink(from);
        match self.is_host(up.to) {
            true => self.endpoint(up.to, up.peer_port) == to,
            false => !self.route(up.to, to).is_empty(),
        }
    }
}
