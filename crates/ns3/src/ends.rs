//! Names of the ends of flows: a host, or the port of a host with several links.

use super::servers::Servers;
use super::topology::Graph;
use std::collections::BTreeMap;

/// Most distances that are kept, in nodes (our choice: 64 MB).
const KEPT: usize = 1 << 24;

/// The ends of a topology's hosts.
pub(super) struct Ends<'g> {
    graph: &'g Graph<'g>,
    servers: Option<&'g Servers<'g>>,
    /// By node, without NVSwitches.
    neighbours: Vec<Vec<u32>>,
    hops: BTreeMap<u32, Vec<u32>>,
}

impl<'g> Ends<'g> {
    pub(super) fn new(graph: &'g Graph<'g>, servers: Option<&'g Servers<'g>>) -> Self {
        let mut neighbours = graph.neighbours();
        if servers.is_some() {
            neighbours.iter_mut().for_each(|ends| ends.retain(|end| !graph.nvswitches.contains(end)));
        }
        Ends { graph, servers, neighbours, hops: BTreeMap::new() }
    }

    /// Hosts with several links.
    pub(super) fn several(&self) -> u64 {
        let is_host = |id: &u32| !self.graph.switches.contains_key(id);
        (0..self.graph.nodes).filter(is_host).filter(|id| self.neighbours[*id as usize].len() > 1).count()
            as u64
    }

    /// The ends of flow number `n`. As in the programs, a hash chooses among the links of a host by which it has the shortest
    /// paths; the hash itself is ours.
    pub(super) fn of(&mut self, from: u32, to: u32, n: usize) -> (String, String) {
        let ports = |ends: &Self, id: u32| ends.neighbours[id as usize].len();
        if ports(self, from) <= 1 && ports(self, to) <= 1 {
            return (self.name(from, 0), self.name(to, 0));
        }
        let draw = hash(from, to, n);
        let near = self.closest(to, from);
        let Some(&out) = pick(&near, draw) else { return (self.name(from, 0), self.name(to, 0)) };
        let via = self.neighbours[from as usize][out];
        let near = match via == to {
            true => self.places(to, from),
            false => self.closest(via, to),
        };
        let entry = pick(&near, draw >> 32).copied().unwrap_or(0);
        (self.name(from, out), self.name(to, entry))
    }

    /// Links of `host` that lie on shortest paths to `node`.
    fn closest(&mut self, node: u32, host: u32) -> Vec<usize> {
        if self.hops.len() * self.neighbours.len() > KEPT {
            self.hops.clear();
        }
        let (graph, neighbours) = (self.graph, &self.neighbours);
        let hops = self.hops.entry(node).or_insert_with(|| graph.hops(neighbours, node));
        let own = &neighbours[host as usize];
        // Other hosts do not relay.
        let open = |end: &u32| *end == node || graph.switches.contains_key(end);
        let least =
            own.iter().filter(|end| open(end)).map(|end| hops[*end as usize]).min().unwrap_or(u32::MAX);
        if least == u32::MAX {
            return Vec::new();
        }
        (0..own.len()).filter(|i| open(&own[*i]) && hops[own[*i] as usize] == least).collect()
    }

    /// Links of `host` to `node`.
    fn places(&self, host: u32, node: u32) -> Vec<usize> {
        let own = &self.neighbours[host as usize];
        (0..own.len()).filter(|i| own[*i] == node).collect()
    }

    fn name(&self, id: u32, port: usize) -> String {
        match self.servers {
            Some(servers) => servers.name(id, port),
            None if self.neighbours[id as usize].len() > 1 => format!("n{id}p{port}"),
            None => self.graph.name(id),
        }
    }
}

fn pick(places: &[usize], draw: u64) -> Option<&usize> {
    places.get((draw & u64::from(u32::MAX)) as usize % places.len().max(1))
}

/// A number for a flow: Fibonacci hashing (Knuth, The Art of Computer Programming 3, 6.4) and a final mix of its halves.
fn hash(from: u32, to: u32, n: usize) -> u64 {
    let key = (u64::from(from) << 32 | u64::from(to)) ^ (n as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = key.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9)
}
