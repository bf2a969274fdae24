//! The links that messages may take.

use model::scheme::flow_hash;
use model::{HostId, Kind, NodeId, Packet, Plan, Psn, QpId};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Links between pairs of hosts.
#[derive(Debug)]
pub struct Footprints<'a> {
    plan: &'a Plan,
    /// Whether the data of a queue pair takes one path.
    by_flow: bool,
    /// Links between two switches that hosts hang on, by all shortest paths.
    between: BTreeMap<(NodeId, NodeId), Rc<BTreeSet<u32>>>,
}

/// The links of an exchange.
#[derive(Debug)]
pub(crate) struct Footprint {
    /// All links, each once, in order.
    pub(crate) links: Box<[u32]>,
    /// Those between switches.
    pub(crate) between: BTreeSet<u32>,
    /// By message: equal shapes take as long on an idle fabric.
    pub(crate) shapes: Vec<Shape>,
}

impl<'a> Footprints<'a> {
    /// The links of a plan; `by_flow` if the data of each queue pair takes one path.
    pub fn new(plan: &'a Plan, by_flow: bool) -> Self {
        Footprints { plan, by_flow, between: BTreeMap::new() }
    }

    /// The links of a queue pair's data and of its ACKs, each once, in order.
    pub fn both_ways(&mut self, qp: QpId) -> Vec<u32> {
        let fabric = &self.plan.fabric;
        let (from, to) = (self.plan.qps[qp.index()].from, self.plan.qps[qp.index()].to);
        let mut links = BTreeSet::new();
        for host in [from, to] {
            let up = fabric.uplink(host);
            let out = fabric.link(up.from, up.port);
            links.extend([out.0, fabric.reverse(out).0]);
        }
        for (kind, from, to) in [(Kind::Data, from, to), (Kind::Ack, to, from)] {
            let (start, end) = (fabric.attachment(from), fabric.attachment(to));
            if start == end {
                continue;
            }
            if self.by_flow && fabric.groups() == 0 {
                links.extend(path(self.plan, (kind, qp), to, (start, end)));
            } else {
                links.extend(self.between(start, end, to).iter().copied());
            }
        }
        links.into_iter().collect()
    }

    /// Number of links.
    pub(crate) fn links(&self) -> usize {
        self.plan.fabric.links().len()
    }

    /// The footprint of messages: queue pair, size and number.
    pub(crate) fn of(&mut self, messages: &[(QpId, u64, u64)]) -> Footprint {
        let fabric = &self.plan.fabric;
        let (mut links, mut all) = (BTreeSet::new(), BTreeSet::new());
        let mut shapes = Vec::with_capacity(messages.len());
        for &(qp, bytes, times) in messages {
            let (from, to) = (self.plan.qps[qp.index()].from, self.plan.qps[qp.index()].to);
            let (up, down) = (fabric.uplink(from), fabric.uplink(to));
            let out = fabric.link(up.from, up.port).0;
            let into = fabric.reverse(fabric.link(down.from, down.port)).0;
            links.extend([out, into]);
            let (start, end) = (fabric.attachment(from), fabric.attachment(to));
            let hops = if start == end {
                0
            } else if self.by_flow && fabric.groups() == 0 {
                let path = path(self.plan, (Kind::Data, qp), to, (start, end));
                all.extend(path.iter().copied());
                path.len()
            } else {
                let between = self.between(start, end, to);
                all.extend(between.iter().copied());
                between.len()
            };
            shapes.push(Shape {
                messages: (bytes, times),
                rates: (up.rate.bps(), down.rate.bps()),
                links: hops as u32,
            });
        }
        links.extend(all.iter().copied());
        Footprint { links: links.into_iter().collect(), between: all, shapes }
    }

    fn between(&mut self, start: NodeId, end: NodeId, to: HostId) -> Rc<BTreeSet<u32>> {
        if let Some(known) = self.between.get(&(start, end)) {
            return Rc::clone(known);
        }
        let fabric = &self.plan.fabric;
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

/// The base path of a queue pair's packets of a kind between two switches.
fn path(plan: &Plan, (kind, qp): (Kind, QpId), to: HostId, (start, end): (NodeId, NodeId)) -> Vec<u32> {
    let packet = Packet::new(kind, qp, to, Psn::new(0), 0);
    let (mut node, mut links) = (start, Vec::new());
    while node != end {
        let ports = plan.fabric.route(node, to);
        let port = match ports {
            [port] => *port,
            _ => ports[flow_hash(plan.salt(node), &packet, ports.len())],
        };
        links.push(plan.fabric.link(node, port).0);
        node = plan.fabric.ports(node)[port.index()].to;
    }
    links
}

/// What a message's time on an idle fabric depends on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Shape {
    messages: (u64, u64),
    rates: (u64, u64),
    /// Number of links between the switches of the two hosts.
    links: u32,
}
