//! Routes around dead links.

use super::routes::{Routes, Shape};
use super::{Fabric, FabricError, Router};
use crate::{HostId, LinkId, NodeId, PortIndex};

/// What all switches hold to be dead, and their routes around it.
#[derive(Clone, Debug)]
pub struct Routing {
    /// Both directions of every dead link, in ascending order.
    dead: Vec<LinkId>,
    routes: Routes,
}

/// Finds routes around dead links of one fabric.
///
/// Where every link between switches joins neighbouring tiers (leaf-spine, fat trees) a route goes up, then down, and
/// never up again: shortest paths alone would lead around a dead link through other leaves, which no fabric of this
/// kind does (RFC 7938, section 5.2.1), and which can deadlock under PFC. Any other graph takes shortest paths.
///
/// A switch to which no route is left keeps the one that it has in the whole fabric: its packets are lost on the dead
/// link, which is where the results then show them.
#[derive(Clone, Copy, Debug)]
pub struct Rerouter<'a> {
    fabric: &'a Fabric,
    shape: Shape,
}

impl Fabric {
    /// Finds routes around dead links.
    pub fn rerouter(&self) -> Rerouter<'_> {
        Rerouter { fabric: self, shape: Routes::shape(self) }
    }

    /// The routes of one switch by a routing, or those of the whole fabric. See [`Fabric::router`].
    ///
    /// # Panics
    /// If `node` is a host.
    #[inline]
    pub fn router_by<'a>(&'a self, routing: Option<&'a Routing>, node: NodeId) -> Router<'a> {
        match routing {
            None => self.router(node),
            Some(routing) => self.router_of(&routing.routes, node),
        }
    }

    /// True if packets from `from` reach `to` by a routing, over links that it does not hold to be dead.
    pub fn reaches_by(&self, routing: Option<&Routing>, from: HostId, to: HostId) -> bool {
        let Some(routing) = routing else { return self.reaches(from, to) };
        let mut at = from.node();
        // A route takes no node twice.
        for _ in 0..=self.nodes() {
            if at == to.node() {
                return true;
            }
            let alive = |port: &&PortIndex| !routing.is_dead(self.link(at, **port));
            let first = match self.is_host(at) {
                true => [PortIndex(0)].iter().find(alive).copied(),
                false => self.router_of(&routing.routes, at).ports(to).0.iter().find(alive).copied(),
            };
            match first {
                Some(port) if at == from.node() || !self.is_host(at) => at = self.ports(at)[port.index()].to,
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
        // Ways between groups are not found anew: what takes a dead link is lost there.
        let routes = match self.fabric.groups() {
            0 => Routes::around(self.fabric, &dead, self.shape)?,
            _ => self.fabric.routes.clone(),
        };
        Ok(Routing { dead, routes })
    }
}
