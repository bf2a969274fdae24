//! The links that messages between two hosts may take.

use model::{Fabric, HostId, NodeId};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Links between pairs of hosts.
#[derive(Debug)]
pub(crate) struct Footprints<'a> {
    fabric: &'a Fabric,
    /// Links between two switches that hosts hang on, by all shortest paths.
    between: BTreeMap<(NodeId, NodeId), Rc<BTreeSet<u32>>>,
}

impl<'a> Footprints<'a> {
    pub(crate) fn new(fabric: &'a Fabric) -> Self {
        Footprints { fabric, between: BTreeMap::new() }
    }

    /// Number of links.
    pub(crate) fn links(&self) -> usize {
        self.fabric.links().len()
    }

    /// The links of all pairs, each once, and the shape of the paths: equal shapes take as long on an idle fabric.
    pub(crate) fn of(&mut self, pairs: &[(HostId, HostId, u64, u64)]) -> (Box<[u32]>, Vec<Shape>) {
        let mut links = BTreeSet::new();
        let mut shapes = Vec::with_capacity(pairs.len());
        for &(from, to, bytes, times) in pairs {
            let (up, down) = (self.fabric.uplink(from), self.fabric.uplink(to));
            let out = self.fabric.link(up.from, up.port).0;
            let into = self.fabric.reverse(self.fabric.link(down.from, down.port)).0;
            links.extend([out, into]);
            let (start, end) = (self.fabric.attachment(from), self.fabric.attachment(to));
            let mut hops = 0;
            if start != end {
                let between = self.between(start, end, to);
                hops = between.len() as u32;
                links.extend(between.iter().copied());
            }
            shapes.push(Shape {
                messages: (bytes, times),
                rates: (up.rate.bps(), down.rate.bps()),
                links: hops,
            });
        }
        (links.into_iter().collect(), shapes)
    }

    fn between(&mut self, start: NodeId, end: NodeId, to: HostId) -> Rc<BTreeSet<u32>> {
        if let Some(known) = self.between.get(&(start, end)) {
            return Rc::clone(known);
        }
        let fabric = self.fabric;
        let mut links = BTreeSet::new();
        if fabric.groups() > 0 {
            // Schemes of such fabrics may take other paths than the shortest ones.
            links.extend(0..fabric.links().len() as u32);
        } else {
            let (mut seen, mut next) = (BTreeSet::from([start]), vec![start]);
            while let Some(node) = next.pop() {
                for &port in fabric.route(node, to) {
                    let link = fabric.link(node, port);
                    let reached = fabric.ports(node)[port.index()].to;
                    links.insert(link.0);
                    if reached != end && !fabric.is_host(reached) && seen.insert(reached) {
                        next.push(reached);
                    }
                }
            }
        }
        let links = Rc::new(links);
        self.between.insert((start, end), Rc::clone(&links));
        links
    }
}

/// What a message's time on an idle fabric depends on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Shape {
    messages: (u64, u64),
    rates: (u64, u64),
    /// Number of links between the switches of the two hosts.
    links: u32,
}
