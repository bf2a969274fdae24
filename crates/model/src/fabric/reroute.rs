//! Routes around dead links.

use super::routes::{Routes, Shape};
use super::surviving::{SurvivingRoutes, fails};
use super::{Fabric, FabricError, Router};
use crate::{HostId, LinkId, NodeId, PortIndex, RouteState};
use std::collections::BTreeSet;

/// The links that all switches hold to be dead, and their routes around these links.
#[derive(Clone, Debug)]
pub struct Routing {
    /// Both directions of every dead link, in ascending order.
    dead: Vec<LinkId>,
    routes: Routes,
    /// In a fabric of groups.
    surviving: Option<SurvivingRoutes>,
}

/// Finds routes around dead links of one fabric.
///
/// * Where every link between switches joins neighbouring tiers (leaf-spine, fat trees), a route goes up, then down, and
///   never up again. Shortest paths alone would lead around a dead link through other leaves, which no fabric of this
///   kind does (RFC 7938, section 5.2.1), and which can deadlock under PFC.
/// * In a fabric of groups, a route avoids dead links inside a group over other switches of it, and leads over a third
///   group where two groups have lost all their links.
/// * In any other graph, a route takes shortest paths.
///
/// A switch without any route to a host keeps its route in the whole fabric. Its packets are then lost on the dead link,
/// and the results show them there.
#[derive(Clone, Debug)]
pub struct Rerouter<'a> {
    fabric: &'a Fabric,
    shape: Shape,
    /// In a fabric of groups, by switch: local links that fail at any time.
    fails: Vec<u32>,
}

impl Fabric {
    /// Finds routes around dead links, all of which are in `ever`. Knowing all failures of the run lets the rerouter
    /// prefer switches that never fail, so that routes inside groups change as little as possible.
    pub fn rerouter(&self, ever: &[LinkId]) -> Rerouter<'_> {
        match &self.groups {
            None => Rerouter { fabric: self, shape: self.routes.shape(self), fails: Vec::new() },
            Some(groups) => Rerouter { fabric: self, shape: Shape::Graph, fails: fails(self, groups, ever) },
        }
    }

    /// The routes of one switch by a routing; `None` stands for the whole fabric. See [`Fabric::router`].
    ///
    /// # Panics
    /// If `node` is a host.
    #[inline]
    pub fn router_by<'a>(&'a self, routing: Option<&'a Routing>, node: NodeId) -> Router<'a> {
        match routing {
            None => self.router(node),
            Some(routing) => self.router_of(&routing.routes, routing.surviving.as_ref(), node),
        }
    }

    /// True if packets from `from` reach `to` by a routing, over links that it does not hold to be dead.
    pub fn reaches_by(&self, routing: Option<&Routing>, from: HostId, to: HostId) -> bool {
        let Some(routing) = routing else { return self.reaches(from, to) };
        let (mut link, mut state) = (self.uplink(from), RouteState::default());
        if routing.is_dead(LinkId(from.0)) {
            return false;
        }
        // A route visits no node twice.
        for _ in 0..=self.nodes() {
            let (at, ingress) = (link.to, link.peer_port);
            if self.is_host(at) {
                return self.endpoint(at, ingress) == to;
            }
            let alive = |port: &&PortIndex| !routing.is_dead(self.link(at, **port));
            let router = self.router_by(Some(routing), at);
            state = router.arrived(state, ingress);
            let Some(port) = router.onward(state, ingress, to).0.iter().find(alive) else { return false };
            link = &self.ports(at)[port.index()];
        }
        false
    }

    /// True if a path of the whole fabric's routes leads from `from` to `to` without these dead links. In a fabric of groups
    /// this looks at minimal paths only.
    pub(crate) fn reaches_over(&self, dead: &BTreeSet<LinkId>, from: HostId, to: HostId) -> bool {
        let first = self.uplink(from);
        if dead.contains(&LinkId(from.0)) {
            return false;
        }
        let mut seen = vec![(first.to, first.peer_port, RouteState::default())];
        let mut next = 0;
        while let Some(&(at, ingress, state)) = seen.get(next) {
            next += 1;
            if self.is_host(at) {
                if self.endpoint(at, ingress) == to {
                    return true;
                }
                continue;
            }
            let router = self.router(at);
            let state = router.arrived(state, ingress);
            for port in router.onward(state, ingress, to).0 {
                let link = &self.ports(at)[port.index()];
                let there = (link.to, link.peer_port, state);
                if !dead.contains(&self.link(at, *port)) && !seen.contains(&there) {
                    seen.push(there);
                }
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
    /// The routing around these dead links: both directions of each, in ascending order.
    ///
    /// # Errors
    /// If the routes do not fit into their table.
    pub fn around(&self, dead: Vec<LinkId>) -> Result<Routing, FabricError> {
        let Rerouter { fabric, shape, fails } = self;
        let (routes, surviving) = match &fabric.groups {
            None => (fabric.routes.around(fabric, &dead, *shape)?, None),
            Some(groups) => {
                let (routes, surviving) =
                    SurvivingRoutes::find(fabric, &fabric.routes, groups, fails, &dead)?;
                (routes, Some(surviving))
            }
        };
        Ok(Routing { dead, routes, surviving })
    }
}
