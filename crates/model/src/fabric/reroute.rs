//! Routes around dead links.

use super::routes::{Routes, Shape};
use super::surviving::{SurvivingRoutes, fails};
use super::{Fabric, FabricError, Router};
use crate::{HostId, LinkId, NodeId, PortIndex, RouteState};

/// What all switches hold to be dead, and their routes around it.
#[derive(Clone, Debug)]
pub struct Routing {
    /// Both directions of every dead link, in ascending order.
    dead: Vec<LinkId>,
    routes: Routes,
    /// In a fabric of groups.
    left: Option<SurvivingRoutes>,
}

/// Finds routes around dead links of one fabric.
///
/// Where every link between switches joins neighbouring tiers (leaf-spine, fat trees) a route goes up, then down, and
/// never up again: shortest paths alone would lead around a dead link through other leaves, which no fabric of this
/// kind does (RFC 7938, section 5.2.1), and which can deadlock under PFC. In a fabric of groups it goes inside groups around
/// what is dead there, and over a third group where no link is left between two. Any other graph takes shortest paths.
///
/// A switch to which no route is left keeps the one that it has in the whole fabric: its packets are lost on the dead
/// link, which is where the results then show them.
#[derive(Clone, Debug)]
pub struct Rerouter<'a> {
    fabric: &'a Fabric,
    shape: Shape,
    /// In a fabric of groups, by switch: links inside its group that fail at any time.
    fails: Vec<u32>,
}

impl Fabric {
    /// Finds routes around dead links, all of which are among `ever`: one that knows what else fails keeps to ways inside
    /// groups that will do throughout.
    pub fn rerouter(&self, ever: &[LinkId]) -> Rerouter<'_> {
        match self.groups {
            None => Rerouter { fabric: self, shape: Routes::shape(self), fails: Vec::new() },
            Some(_) => Rerouter { fabric: self, shape: Shape::Graph, fails: fails(self, ever) },
        }
    }

    /// The routes of one switch by a routing, or those of the whole fabric. See [`Fabric::router`].
    ///
    /// # Panics
    /// If `node` is a host.
    #[inline]
    pub fn router_by<'a>(&'a self, routing: Option<&'a Routing>, node: NodeId) -> Router<'a> {
        match routing {
            None => self.router(node),
            Some(routing) => self.router_of(&routing.routes, routing.left.as_ref(), node),
        }
    }

    /// True if packets from `from` reach `to` by a routing, over links that it does not hold to be dead.
    pub fn reaches_by(&self, routing: Option<&Routing>, from: HostId, to: HostId) -> bool {
        let Some(routing) = routing else { return self.reaches(from, to) };
        let (mut at, mut ingress, mut way) = (from.node(), PortIndex::VIRTUAL, RouteState::default());
        // A route takes no node twice.
        for _ in 0..=self.nodes() {
            if at == to.node() {
                return true;
            }
            let alive = |port: &&PortIndex| !routing.is_dead(self.link(at, **port));
            let first = match self.is_host(at) {
                true => [PortIndex(0)].iter().find(alive).copied(),
                false => {
                    let router = self.router_by(Some(routing), at);
                    way = router.arrived(way, ingress);
                    router.onward(way, ingress, to).0.iter().find(alive).copied()
                }
            };
            match first {
                Some(port) if at == from.node() || !self.is_host(at) => {
                    let link = &self.ports(at)[port.index()];
                    (at, ingress) = (link.to, link.peer_port);
                }
                _ => return false,
            }
        }
        false
    }
}

impl Routing {
    /// Both directions of every link that is held to be dead, in ascending order.
    pub fn dead(&self) -> &[LinkId] {
        &self.dead
    }

    /// True if the link is held to be dead.
    pub fn is_dead(&self, link: LinkId) -> bool {
        self.dead.binary_search(&link).is_ok()
    }
}

impl Rerouter<'_> {
    /// The routing that knows of these dead links: both directions of each, in ascending order.
    ///
    /// # Errors
    /// If the routes are too many for their table.
    pub fn around(&self, dead: Vec<LinkId>) -> Result<Routing, FabricError> {
        let (routes, left) = match &self.fabric.groups {
            None => (Routes::around(self.fabric, &dead, self.shape)?, None),
            Some(groups) => {
                let (routes, left) = SurvivingRoutes::find(self.fabric, groups, &self.fails, &dead)?;
                (routes, Some(left))
            }
        };
        Ok(Routing { dead, routes, left })
    }
}
