//! Ranks: the GPUs of the fabric, as collectives count them.

use crate::server::{Nvlink, Server};
use finding::{Finding, code};
use model::{Fabric, HostId, NodeId, PortIndex};

/// The GPUs of the fabric, numbered server by server.
#[derive(Clone, Debug)]
pub(crate) struct Ranks {
    /// The node and the place in its server of every rank.
    places: Vec<(NodeId, u32)>,
    /// NIC ports of each rank.
    ports: Vec<Vec<HostId>>,
    per_server: usize,
    /// Numbers of a server's GPUs, in ascending order; empty for all.
    gpus: Vec<u32>,
    server: Option<Server>,
}

/// A stream of a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    /// Computation.
    Compute,
    /// NVLink port by which pieces leave.
    Out,
    /// NVLink port by which pieces enter.
    In,
}

/// Streams of a GPU.
const STREAMS: u32 = 3;

impl Ranks {
    /// The ranks of a fabric: the GPUs of its servers, or every host.
    pub(crate) fn new(fabric: &Fabric, server: Option<Server>) -> Result<Self, Finding> {
        let Some(server) = server else {
            let hosts = (0..fabric.hosts() as u32).map(HostId);
            let place = |host| (fabric.node_of(host), u32::from(fabric.uplink(host).port.0));
            let places = hosts.clone().map(place).collect();
            return Ok(Ranks {
                places,
                ports: hosts.map(|h| vec![h]).collect(),
                per_server: 1,
                gpus: Vec::new(),
                server: None,
            });
        };
        let nodes = (0..fabric.servers() as u32).map(NodeId);
        if let Some(node) = nodes.clone().find(|&node| fabric.ports(node).len() != server.ports()) {
            let text = format!(
                "the host `{}` has {} links; a server has {} NIC ports",
                fabric.name(node),
                fabric.ports(node).len(),
                server.ports()
            );
            return Err(code::FIT.at("server", text));
        }
        let gpus = nodes.flat_map(|node| (0..server.gpus).map(move |gpu| (node, gpu)));
        let each = server.ports_per_nic;
        let ports = |(node, gpu)| {
            let nics = server.nics_of(gpu);
            let ports = nics.start * each..nics.end * each;
            ports.map(|port| fabric.endpoint(node, PortIndex(port as u16))).collect()
        };
        Ok(Ranks {
            places: gpus.clone().map(|(node, gpu)| (node, gpu as u32)).collect(),
            ports: gpus.map(ports).collect(),
            per_server: server.gpus,
            gpus: Vec::new(),
            server: Some(server),
        })
    }

    /// The ranks of these servers, numbered in their order.
    pub(crate) fn on(&self, servers: &[NodeId]) -> Self {
        let mine = |server: &NodeId| {
            let ranks = self.places.iter().zip(&self.ports).filter(|((node, _), _)| node == server);
            ranks.map(|(place, ports)| (*place, ports.clone())).collect::<Vec<_>>()
        };
        let (places, ports) = servers.iter().flat_map(mine).unzip();
        Ranks { places, ports, ..self.clone() }
    }

    /// The ranks at these places of their servers, in ascending order.
    pub(crate) fn at_places(&self, gpus: Vec<u32>) -> Self {
        let mine = self.places.iter().zip(&self.ports).filter(|((_, place), _)| gpus.contains(place));
        let (places, ports) = mine.map(|(place, ports)| (*place, ports.clone())).unzip();
        Ranks { places, ports, per_server: gpus.len(), gpus, server: self.server }
    }

    /// Where a place stands among those of the job's ranks in a server.
    fn order(&self, place: u32) -> u32 {
        self.gpus.iter().position(|&gpu| gpu == place).map_or(place, |order| order as u32)
    }

    /// The servers of the fabric, if it has any.
    pub(crate) fn server(&self) -> Option<Server> {
        self.server
    }

    /// Number of ranks.
    pub(crate) fn count(&self) -> usize {
        self.places.len()
    }

    /// Number of ranks of a server.
    pub(crate) fn per_server(&self) -> usize {
        self.per_server
    }

    /// Whether all servers have their ranks at the same places, and all NIC ports the same rate and delay.
    pub(crate) fn are_alike(&self, fabric: &Fabric) -> bool {
        let at_place =
            |(rank, place): (usize, &(NodeId, u32))| self.order(place.1) as usize == rank % self.per_server;
        if !self.places.iter().enumerate().all(at_place) {
            return false;
        }
        let link = |port: &HostId| (fabric.uplink(*port).rate, fabric.uplink(*port).delay);
        let mut links = self.ports.iter().flatten().map(link);
        links.next().is_none_or(|first| links.all(|link| link == first))
    }

    /// The host of a rank.
    pub(crate) fn node(&self, rank: u32) -> NodeId {
        self.places[rank as usize].0
    }

    /// The number of a rank in its server.
    pub(crate) fn place(&self, rank: u32) -> usize {
        self.places[rank as usize].1 as usize
    }

    /// The rank at a place of the same server as another rank.
    pub(crate) fn beside(&self, rank: u32, place: usize) -> u32 {
        rank - self.order(self.places[rank as usize].1) + self.order(place as u32)
    }

    /// The NIC ports of a rank: one or several.
    pub(crate) fn ports(&self, rank: u32) -> &[HostId] {
        &self.ports[rank as usize]
    }

    /// The NVLink between two ranks, if they share a server that has it.
    pub(crate) fn nvlink(&self, a: u32, b: u32) -> Option<Nvlink> {
        self.server?.nvlink.filter(|_| self.node(a) == self.node(b))
    }

    /// Number of streams of a host that all jobs share.
    pub(crate) fn streams(&self) -> u32 {
        self.places.iter().map(|place| place.1 + 1).max().unwrap_or(0) * STREAMS
    }

    /// The number of a rank's stream in its host.
    pub(crate) fn stream(&self, rank: u32, stream: Stream) -> u32 {
        let number = match stream {
            Stream::Compute => 0,
            Stream::Out => 1,
            Stream::In => 2,
        };
        self.places[rank as usize].1 * STREAMS + number
    }
}
