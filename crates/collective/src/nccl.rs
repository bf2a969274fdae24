//! NCCL's choice of algorithm and protocol: the least time by its cost model (NCCL, `tuning.cc` and `search.cc`, 2.18 to 2.30).
//!
//! The model estimates `latency + bytes / bandwidth` for each algorithm and protocol. It is a model of NCCL's, not of this
//! simulator: the simulated time of a collective need not equal it, nor does the time on hardware.

use super::{Algorithm, Call, Kind, Protocol, Schedule};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// By protocol: LL, LL128, Simple.
type ByProtocol = [f64; 3];

/// By number of servers: one, two, more.
type ByServers = [f64; 3];

const PROTOCOLS: [Protocol; 3] = [Protocol::Ll, Protocol::Ll128, Protocol::Simple];

/// A generation of GPUs, as far as NCCL tells them apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Gpu {
    /// A100, A800.
    Ampere,
    /// H100, H200, H800, H20.
    #[default]
    Hopper,
    /// B200, B300, GB200, GB300.
    Blackwell,
}

/// The vendor of a server's CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cpu {
    /// Intel, and all others that are not AMD.
    #[default]
    Intel,
    /// AMD.
    Amd,
}

/// What NCCL's choice knows beside the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Machine {
    /// Number of NICs that the group has in a server.
    pub nics: u32,
    /// Rate of a NIC, bits/s.
    pub nic: u64,
    /// Rate of payload of a GPU's NVLink port in each direction, bits/s.
    pub nvlink: u64,
    /// Generation of the GPUs.
    pub gpu: Gpu,
    /// Vendor of the CPUs.
    pub cpu: Cpu,
    /// Version of NCCL: the minor number of 2.x.
    pub version: u32,
    /// The algorithms that NCCL may take, by their places in [`CANDIDATES`].
    pub algorithms: [bool; 4],
    /// The protocols that NCCL may take: LL, LL128, Simple.
    pub protocols: [bool; 3],
}

impl Default for Machine {
    fn default() -> Self {
        Machine {
            nics: 1,
            nic: 0,
            nvlink: 0,
            gpu: Gpu::Hopper,
            cpu: Cpu::Intel,
            version: Machine::VERSION,
            algorithms: [true; CANDIDATES.len()],
            protocols: [true; 3],
        }
    }
}

impl Machine {
    /// Versions of NCCL 2 that the model knows, by their minor numbers.
    pub const VERSIONS: std::ops::RangeInclusive<u32> = 18..=30;
    /// The version by default: that of the published tuner tables.
    pub const VERSION: u32 = 27;
}

/// Algorithms of NCCL's that the model compares.
pub const CANDIDATES: [Algorithm; 4] = [Algorithm::Ring, Algorithm::Tree, Algorithm::Nvls, Algorithm::Pat];

/// Latencies of an algorithm, us: base, per hop over NVLink, per hop over the network.
struct Latency {
    base: ByProtocol,
    nvlink: ByProtocol,
    network: ByProtocol,
}

const RING: Latency = Latency { base: [6.6, 14.0, 8.4], nvlink: [0.6, 1.9, 3.4], network: [2.7, 4.0, 14.0] };

/// The latencies of trees, by version.
fn tree(version: u32) -> Latency {
    let (base, nvlink, network) = match version {
        ..=18 => (0.0, 4.0, 14.0),
        19..=22 => (0.0, 28.0, 28.0),
        _ => (8.4, 4.0, 14.0),
    };
    Latency { base: [6.8, 14.0, base], nvlink: [0.6, 1.25, nvlink], network: [5.0, 8.5, network] }
}

/// Figures of a generation of GPUs, GB/s.
struct Figures {
    /// Bandwidths of a channel that NCCL tries, inside a server and between servers, largest first.
    inside: &'static [f64],
    between: &'static [f64],
    /// Most bandwidth of LL in one server.
    ll: f64,
    /// Most bandwidth of a channel.
    ring_ll128: ByServers,
    tree_ll128: ByServers,
    tree: ByServers,
    nvls_tree: ByServers,
    /// Share of NVLink's rate that NVLS attains, from 2.28 on.
    nvls: f64,
}

impl Gpu {
    fn figures(self, version: u32) -> Figures {
        match self {
            Gpu::Ampere => Figures {
                inside: &[40.0, 30.0, 20.0, 18.0, 15.0, 12.0, 10.0, 9.0, 7.0, 6.0, 5.0, 4.0, 3.0],
                between: &[
                    48.0, 30.0, 28.0, 24.0, 20.0, 18.0, 15.0, 12.0, 10.0, 9.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.4,
                    1.2,
                ],
                ll: 87.7,
                ring_ll128: [20.0; 3],
                tree_ll128: [20.0; 3],
                tree: [24.0, 23.6, 17.8],
                nvls_tree: [0.0; 3],
                nvls: 0.0,
            },
            Gpu::Hopper => Figures {
                inside: &[60.0, 50.0, 40.0, 30.0, 24.0, 20.0, 15.0, 12.0, 11.0, 6.0, 3.0],
                between: &[
                    48.0, 45.0, 42.0, 40.0, 30.0, 24.0, 22.0, 20.0, 17.5, 15.0, 12.0, 6.0, 3.0, 2.4, 1.2,
                ],
                ll: if version <= 20 { 87.7 } else { 141.0 },
                ring_ll128: [36.7; 3],
                tree_ll128: [36.7, 36.7, 29.0],
                tree: [38.7, 41.4, 36.0],
                nvls_tree: [0.0, 57.7, 45.5],
                nvls: 0.85,
            },
            Gpu::Blackwell => Figures {
                inside: &[90.0, 80.0, 70.0, 60.0, 50.0, 40.0, 30.0, 24.0, 20.0, 19.0, 18.0],
                between: &[
                    48.0, 45.1, 42.0, 40.0, 30.0, 24.0, 22.0, 20.0, 17.5, 15.0, 12.0, 6.0, 3.0, 2.4, 1.2,
                ],
                ll: 282.0,
                ring_ll128: if version >= 30 { [40.0; 3] } else { [73.4; 3] },
                tree_ll128: if version >= 28 { [55.6, 31.67, 20.0] } else { [73.4, 73.4, 58.0] },
                tree: if version >= 28 { [70.0, 42.8, 24.0] } else { [77.4, 82.8, 72.0] },
                nvls_tree: [0.0, 96.0, if version >= 30 { 80.0 } else { 43.1 }],
                nvls: 0.74,
            },
        }
    }
}

/// Factors on the bandwidth of tree all-reduces by the binary logarithm of bytes / 64: LL, LL128, Simple.
const TREE_CORRECTION: [[f64; 23]; 3] = [
    [
        1., 1., 1., 1., 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5, 0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1., 1.,
        1., 1.,
    ],
    [
        1., 1., 1., 1., 1., 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.8, 0.9, 0.9, 0.9, 0.9,
        1., 1.,
    ],
    [
        0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5, 0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.7, 0.7,
        0.8, 0.9, 0.9,
    ],
];

/// What NCCL's search finds for the channels of a group.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Graph {
    /// Number of channels, before NCCL doubles them.
    channels: f64,
    /// Bandwidth of a channel between servers, and of a ring inside a server, GB/s.
    between: f64,
    /// Bandwidth of a channel of a tree inside a server.
    tree: f64,
    /// Number and bandwidth of the channels of NVLS in one server.
    nvls: (f64, f64),
}

impl Graph {
    /// The search's result on servers with an NVSwitch: the largest bandwidth in NCCL's lists that NICs and NVLink can carry.
    fn of(call: &Call, each: u32) -> Self {
        let machine = &call.machine;
        let figures = machine.gpu.figures(machine.version);
        let (nic, nvlink) = (machine.nic as f64 / 8e9, machine.nvlink as f64 / 8e9);
        let most = |speeds: &[f64], limit: f64| speeds.iter().copied().find(|&s| s <= limit).unwrap_or(limit);
        let n = f64::from(each);
        // A ring through all GPUs of a server uses all their ports but one.
        let ports = |channels: f64| {
            if each > 1 && call.nvlink { nvlink * n / (n - 1.0) / channels } else { f64::MAX }
        };
        let nvls = (n, most(figures.inside, ports(n)));
        let (mut channels, mut between) = if call.servers.len() == 1 {
            let limit = if call.nvlink { nvlink } else { nic };
            let total = |speed: f64| (limit / speed).floor().min(16.0) * speed;
            // The fastest of those with which most bandwidth is used.
            let best = figures.inside.iter().map(|&speed| total(speed)).fold(0.0, f64::max);
            let speed = figures.inside.iter().copied().find(|&speed| total(speed) >= best).unwrap_or(limit);
            ((limit / speed).floor().clamp(1.0, 16.0), speed.min(limit))
        } else {
            let per_nic = (nic / figures.between[0]).floor().max(1.0);
            let channels = f64::from(machine.nics.max(1)) * per_nic;
            (channels, most(figures.between, (nic / per_nic).min(ports(channels))))
        };
        let newer = machine.gpu != Gpu::Ampere;
        if between >= 25.0 && !(newer && between < 50.0 && channels > 4.0) {
            (channels, between) = (2.0 * channels, between / 2.0);
        }
        if call.servers.len() == 1 {
            return Graph { channels, between, tree: between, nvls };
        }
        let tree = most(figures.between, ports(channels).min(2.0 * between));
        Graph { channels, between, tree: tree.max(between), nvls }
    }
}

/// NCCL's estimate for an algorithm and a protocol.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Estimate {
    /// The algorithm.
    algorithm: Algorithm,
    /// The protocol.
    protocol: Protocol,
    /// Latency, us.
    latency: f64,
    /// Bandwidth of the size, GB/s.
    bandwidth: f64,
    /// Time, us.
    time: f64,
}

/// NCCL's estimates of all-reduce, all-gather and reduce-scatter, shortest first.
fn estimates(call: &Call) -> Vec<Estimate> {
    let pairs = CANDIDATES.into_iter().zip(call.machine.algorithms);
    let allowed = |(algorithm, may): (Algorithm, bool)| may.then_some(algorithm);
    let all = pairs.filter_map(allowed).flat_map(|algorithm| {
        PROTOCOLS
            .into_iter()
            .zip(call.machine.protocols)
            .filter_map(move |(p, may)| may.then_some((algorithm, p)))
    });
    let mut found: Vec<Estimate> =
        all.filter_map(|(algorithm, protocol)| estimate(call, algorithm, protocol)).collect();
    found.sort_by(|a, b| a.time.total_cmp(&b.time));
    found
}

/// The algorithms and protocols that NCCL compares for a call, each with the time that it estimates, us; shortest first.
pub fn compared(call: &Call) -> Vec<(Algorithm, Protocol, f64)> {
    match call.kind {
        Kind::AllReduce | Kind::AllGather | Kind::ReduceScatter => {
            estimates(call).into_iter().map(|found| (found.algorithm, found.protocol, found.time)).collect()
        }
        Kind::AllToAll | Kind::Broadcast | Kind::Reduce => {
            choice(call).into_iter().map(|(algorithm, protocol)| (algorithm, protocol, 0.0)).collect()
        }
    }
}

/// The second choice, and by how many per cent it takes longer, if that is 10 at most.
pub fn near_tie(call: &Call) -> Option<(Algorithm, Protocol, u8)> {
    let found = estimates(call);
    let [best, next, ..] = found.as_slice() else { return None };
    let more = 100.0 * (next.time / best.time - 1.0);
    (more <= 10.0).then_some((next.algorithm, next.protocol, more.round() as u8))
}

/// The algorithm and protocol with the least estimated time; `None` if no algorithm of NCCL's can do the call.
pub(super) fn choice(call: &Call) -> Option<(Algorithm, Protocol)> {
    match call.kind {
        Kind::AllToAll => Some((Algorithm::Direct, Protocol::Simple)),
        Kind::Broadcast | Kind::Reduce => Some((Algorithm::Chain, Protocol::Simple)),
        Kind::AllReduce | Kind::AllGather | Kind::ReduceScatter => {
            estimates(call).first().map(|best| (best.algorithm, best.protocol))
        }
    }
}

/// NCCL's estimate; `None` if the pair does not exist.
fn estimate(call: &Call, algorithm: Algorithm, protocol: Protocol) -> Option<Estimate> {
    if !algorithm.kinds().contains(&call.kind) {
        return None;
    }
    let machine = &call.machine;
    let version = machine.version;
    let figures = machine.gpu.figures(version);
    let (n, servers) = (f64::from(call.ranks()), call.servers.len());
    let each = call.per_server()?;
    let (nodes, log_nodes) = (servers as f64, f64::from(servers.ilog2()));
    let by_servers = servers.min(3) - 1;
    let p = PROTOCOLS.iter().position(|&q| q == protocol)?;
    let all_reduce = call.kind == Kind::AllReduce;
    let steps = if all_reduce { 2.0 * (n - 1.0) } else { n - 1.0 };
    let graph = Graph::of(call, each);
    let channels = graph.channels;
    let trees = tree(version);
    let ll = match (servers, machine.cpu) {
        (1, _) => figures.ll,
        (2, Cpu::Intel) => 39.0,
        (_, Cpu::Intel) => 20.4,
        (2, Cpu::Amd) => 22.5,
        (_, Cpu::Amd) => 19.0,
    };
    let (latency, bandwidth) = match algorithm {
        Algorithm::Ring => {
            let inter = (nodes - 1.0) * if all_reduce { 2.0 } else { 1.0 };
            // Servers of one GPU show the whole latency of the network.
            let network = if each == 1 { trees.network[p] } else { RING.network[p] };
            let post = if machine.cpu == Cpu::Amd { 2.0 } else { 1.0 };
            let post = post * if protocol == Protocol::Simple { 3.0 } else { 1.0 };
            let post = if servers > 1 { post } else { 0.0 };
            let latency = RING.base[p] + (steps - inter) * RING.nvlink[p].max(post) + inter * network;
            let bus = channels * graph.between;
            let bus = match protocol {
                Protocol::Ll => (bus * 0.5).min(ll),
                Protocol::Ll128 => {
                    let share = if version <= 22 && each == 1 { 0.7 } else { 0.92 };
                    (bus * share).min(channels * figures.ring_ll128[by_servers])
                }
                Protocol::Simple => bus,
            };
            (latency, bus * n / steps)
        }
        Algorithm::Tree => {
            let hops = f64::from(each) - 1.0;
            let latency = trees.base[p] + 2.0 * (hops * trees.nvlink[p] + log_nodes * trees.network[p]);
            let channel = if servers <= 2 { graph.tree } else { graph.between };
            let bus = (channels * channel * 0.92).min(channels * figures.tree[by_servers]);
            let bus = match protocol {
                Protocol::Ll => (bus / 3.8).min(ll),
                Protocol::Ll128 => {
                    let share = if servers == 1 { 7.0 / 9.0 } else { 120.0 / 128.0 };
                    (bus * share).min(channels * figures.tree_ll128[by_servers])
                }
                Protocol::Simple => bus,
            };
            (latency, bus * 0.85 / 2.0)
        }
        Algorithm::Nvls if protocol == Protocol::Simple && call.nvlink && each > 1 && figures.nvls > 0.0 => {
            if servers > 1 && !all_reduce {
                return None;
            }
            let base = if version <= 20 { 23.0 } else { 25.0 };
            let network = match version {
                ..=18 => 19.0,
                19..=29 => 14.0,
                _ => 20.9,
            };
            let latency = base + if servers > 1 { 2.0 * log_nodes * network } else { 0.0 };
            let (count, inside) = graph.nvls;
            let between = if servers > 1 { channels * graph.between / count } else { inside };
            let share = (f64::from(each) - 1.0) / f64::from(each);
            let bandwidth = if version >= 28 {
                // The bus of an all-reduce is twice that of its two halves, which are pipelined.
                let (two, cap) =
                    if servers == 2 { (2.0, figures.nvls_tree[1]) } else { (1.0, figures.nvls_tree[2]) };
                let cap = if servers == 1 { f64::MAX } else { cap };
                let halves = if all_reduce { 2.0 } else { share };
                let channel = (inside * figures.nvls * share * halves).min(between * two).min(cap);
                count * channel * if all_reduce { n / steps } else { 1.0 }
            } else {
                let between = if servers > 2 { between / 2.0 } else { between };
                let share = if all_reduce { 1.0 } else { share };
                let ratio = if version == 18 && servers > 1 {
                    0.7 * nodes / (2.0 * (nodes - 1.0))
                } else {
                    5.0 / 6.0
                };
                count * (inside * share).min(between) * if all_reduce { ratio } else { 1.0 }
            };
            (latency, bandwidth)
        }
        Algorithm::Pat if protocol == Protocol::Simple && each == 1 && servers > 1 && version >= 23 => {
            let share = if version == 23 { 0.85 } else { 0.75 };
            (8.0 + log_nodes * 14.0 / 3.5 + 2.8 * n, channels * graph.between * share)
        }
        _ => return None,
    };
    let long = call.bytes as f64 >= 64.0 * 2.0 * channels * n;
    let plateau =
        algorithm == Algorithm::Ring && protocol == Protocol::Simple && servers > 1 && all_reduce && long;
    let slower = if plateau { 1.4 } else { 1.0 };
    let size = (call.bytes / 64).max(1).ilog2() as usize;
    let correction = match algorithm {
        Algorithm::Tree => TREE_CORRECTION[p].get(size).copied().unwrap_or(1.0),
        _ => 1.0,
    };
    let time = latency * slower + call.bytes as f64 / (bandwidth * correction * 1000.0);
    (bandwidth > 0.0).then_some(Estimate { algorithm, protocol, latency, bandwidth, time })
}

/// Number of channels: twice those of the search, and twice as many again where NCCL finds few fast ones (`connect.cc`).
pub fn channels(call: &Call) -> u32 {
    let Some(each) = call.per_server() else { return call.channels };
    let graph = Graph::of(call, each);
    let mut channels = 2.0 * graph.channels;
    if call.machine.gpu != Gpu::Ampere && call.servers.len() > 1 && graph.between > 45.0 && channels < 16.0 {
        channels = (2.0 * channels).min(16.0);
    }
    channels.min(32.0) as u32
}

/// The algorithm that NCCL takes, and the call with the protocol and the channels that it takes: fewer for a short buffer, so
/// that every thread has something to do (`enqueue.cc`).
pub(super) fn chosen(call: &Call) -> Result<(Algorithm, Call), String> {
    let Some((algorithm, protocol)) = choice(call) else {
        let servers = call.servers.len();
        return Err(format!("NCCL has no algorithm for {} over these {servers} servers", call.kind.name()));
    };
    let ranks = if algorithm == Algorithm::Ring { u64::from(call.ranks()) } else { 1 };
    let per_channel = match protocol {
        Protocol::Ll => 512 * 8 * ranks,
        Protocol::Ll128 => 640 * 8,
        Protocol::Simple => 512 * 64,
    };
    let most = (call.bytes / per_channel).clamp(1, 64) as u32;
    let channels = match algorithm {
        Algorithm::Ring | Algorithm::Tree | Algorithm::Chain => call.channels.min(most),
        _ => call.channels,
    };
    Ok((algorithm, Call { protocol, channels, ..call.clone() }))
}

pub(super) fn schedule(call: &Call) -> Result<Schedule, String> {
    let (algorithm, call) = Algorithm::Nccl.resolve(call)?;
    algorithm.schedule(&call)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::call;

    fn chosen(kind: Kind, servers: Vec<u32>, bytes: u64) -> (Algorithm, Protocol) {
        choice(&Call { nvlink: true, channels: 8, ..call(kind, servers, bytes) }).unwrap()
    }

    #[test]
    fn small_all_reduces_over_servers_take_trees_with_ll_and_large_ones_take_bandwidth() {
        let of = |bytes| chosen(Kind::AllReduce, vec![8; 16], bytes);
        assert_eq!(of(8 << 10), (Algorithm::Tree, Protocol::Ll));
        assert_eq!(of(8 << 30), (Algorithm::Ring, Protocol::Simple));
        let in_one = chosen(Kind::AllReduce, vec![8], 1 << 30);
        assert_eq!(in_one, (Algorithm::Nvls, Protocol::Simple));
    }

    #[test]
    fn once_a_larger_buffer_has_left_a_latency_optimised_protocol_it_does_not_return() {
        for servers in [vec![8], vec![8; 4], vec![8; 32], vec![1; 16]] {
            let rank = |bytes| {
                PROTOCOLS.iter().position(|&p| p == chosen(Kind::AllReduce, servers.clone(), bytes).1)
            };
            let ranks: Vec<_> = (6..33).map(|bits| rank(1u64 << bits)).collect();
            assert!(ranks.is_sorted(), "{servers:?}: {ranks:?}");
        }
    }

    /// The estimates that NCCL 2.27.5 printed on servers of eight H100, each with a NIC of 400 Gb/s and an Intel CPU: latency in us and bandwidth
    /// in GB/s of LL, LL128 and Simple. Source: github.com/meta-pytorch/autoparallel at a54c252.
    #[test]
    fn estimates_are_those_of_nccls_own_log() {
        const RING: Algorithm = Algorithm::Ring;
        const TREE: Algorithm = Algorithm::Tree;
        type Row = (Kind, Algorithm, usize, u32, [(f64, f64); 3]);
        const ROWS: [Row; 18] = [
            (Kind::AllGather, RING, 2, 1, [(11.6, 48.0), (22.5, 88.3), (22.4, 96.0)]),
            (Kind::AllGather, RING, 2, 8, [(23.3, 41.6), (44.6, 313.2), (70.0, 409.6)]),
            (Kind::ReduceScatter, RING, 4, 1, [(21.6, 27.2), (39.5, 58.9), (50.4, 64.0)]),
            (Kind::ReduceScatter, RING, 4, 8, [(42.7, 21.1), (79.2, 303.1), (145.6, 396.4)]),
            (Kind::AllGather, RING, 8, 1, [(41.6, 23.3), (73.5, 50.5), (106.4, 54.9)]),
            (Kind::AllGather, RING, 8, 8, [(81.5, 20.7), (148.4, 298.3), (296.8, 390.1)]),
            (Kind::AllReduce, RING, 2, 1, [(16.6, 24.0), (31.0, 44.2), (36.4, 48.0)]),
            (Kind::AllReduce, RING, 2, 8, [(40.0, 20.8), (75.2, 156.6), (131.6, 204.8)]),
            (Kind::AllReduce, RING, 4, 1, [(36.6, 13.6), (65.0, 29.4), (92.4, 32.0)]),
            (Kind::AllReduce, RING, 4, 8, [(78.8, 10.5), (144.4, 151.5), (282.8, 198.2)]),
            (Kind::AllReduce, RING, 8, 1, [(76.6, 11.7), (133.0, 25.2), (204.4, 27.4)]),
            (Kind::AllReduce, RING, 8, 8, [(156.4, 10.4), (282.8, 149.1), (585.2, 195.0)]),
            (Kind::AllReduce, TREE, 2, 1, [(16.8, 9.3), (31.0, 31.2), (36.4, 35.2)]),
            (Kind::AllReduce, TREE, 2, 8, [(25.2, 16.6), (48.5, 124.8), (92.4, 140.8)]),
            (Kind::AllReduce, TREE, 4, 1, [(26.8, 4.9), (48.0, 17.6), (64.4, 18.8)]),
            (Kind::AllReduce, TREE, 4, 8, [(35.2, 8.7), (65.5, 98.6), (120.4, 122.4)]),
            (Kind::AllReduce, TREE, 8, 1, [(36.8, 4.9), (65.0, 17.6), (92.4, 18.8)]),
            (Kind::AllReduce, TREE, 8, 8, [(45.2, 8.7), (82.5, 98.6), (148.4, 122.4)]),
        ];
        for (kind, algorithm, servers, each, expected) in ROWS {
            let call = call(kind, vec![each; servers], 1 << 30);
            let nics = Machine { nics: each, ..call.machine };
            let call = Call { nvlink: true, machine: nics, ..call };
            for (protocol, (latency, bandwidth)) in PROTOCOLS.into_iter().zip(expected) {
                let found = estimate(&call, algorithm, protocol).unwrap();
                let at = format!("{kind:?} {algorithm:?} {protocol:?} {servers} x {each}: {found:?}");
                assert!((found.latency - latency).abs() < 0.051, "{at}");
                assert!((found.bandwidth - bandwidth).abs() < 0.051, "{at}");
            }
        }
    }

    /// NVIDIA/nccl#946 and #812, nccl-tests#153 and #196: where NICs are slower than NVLink, the ring is slower than a tree.
    #[test]
    fn two_servers_take_a_tree_or_nvls_for_large_buffers() {
        for nic in [100_000_000_000, 400_000_000_000] {
            let of = |algorithms| {
                let call = call(Kind::AllReduce, vec![8, 8], 256_000_000);
                let machine = Machine { nic, nvlink: 1_600_000_000_000, algorithms, ..call.machine };
                choice(&Call { nvlink: true, machine, ..call }).unwrap().0
            };
            assert_eq!(of([true; 4]), Algorithm::Nvls);
            let without = if nic == 100_000_000_000 { Algorithm::Tree } else { Algorithm::Ring };
            assert_eq!(of([true, true, false, true]), without);
        }
    }

    #[test]
    fn pat_is_only_for_one_rank_per_server_and_came_with_2_23() {
        let of = |servers, version| {
            let call = call(Kind::AllGather, servers, 1 << 20);
            let call = Call { nvlink: true, machine: Machine { version, ..call.machine }, ..call };
            estimate(&call, Algorithm::Pat, Protocol::Simple)
        };
        assert_eq!(of(vec![1], 27), None);
        assert_eq!(of(vec![8; 4], 27), None);
        assert_eq!(of(vec![1; 4], 22), None);
        assert!(of(vec![1; 4], 23).is_some());
    }
}
