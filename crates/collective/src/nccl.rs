//! NCCL's choice of algorithm and protocol: the least time by its cost model (NCCL, `tuning.cc`).
//!
//! The model estimates `latency + bytes / bandwidth` for each algorithm and protocol. It is a model of NCCL's, not of this
//! simulator: the simulated time of a collective need not equal it. Rates per channel and caps are those of Hopper GPUs and
//! Intel CPUs.

use super::{Algorithm, Call, Kind, Protocol, Schedule};

/// Latency of a protocol, us: (LL, LL128, Simple).
type ByProtocol = [f64; 3];

const PROTOCOLS: [Protocol; 3] = [Protocol::Ll, Protocol::Ll128, Protocol::Simple];

/// Latencies of an algorithm, us: base, per hop over NVLink, per hop over the network.
struct Latency {
    base: ByProtocol,
    nvlink: ByProtocol,
    network: ByProtocol,
}

const TREE: Latency = Latency { base: [6.8, 14.0, 8.4], nvlink: [0.6, 1.25, 4.0], network: [5.0, 8.5, 14.0] };
const RING: Latency = Latency { base: [6.6, 14.0, 8.4], nvlink: [0.6, 1.9, 3.4], network: [2.7, 4.0, 14.0] };

/// Factors on the bandwidth of tree all-reduces by the binary logarithm of bytes / 64: LL, LL128, Simple.
const TREE_CORRECTION: [[f64; 24]; 3] = [
    [
        1., 1., 1., 1., 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5, 0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1., 1.,
        1., 1., 1.,
    ],
    [
        1., 1., 1., 1., 1., 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.8, 0.9, 0.9, 0.9, 0.9,
        1., 1., 1.,
    ],
    [
        0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5, 0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.7, 0.7,
        0.8, 0.9, 0.9, 0.9,
    ],
];

/// Attainable share of NVLink's rate, as NCCL counts it: 20.6 GB/s of 25 GB/s per link of Hopper.
const NVLINK_SHARE: f64 = 20.6 / 25.0;

/// The algorithm and protocol with the least estimated time; `None` if no algorithm of NCCL's can do the call.
pub(super) fn choice(call: &Call) -> Option<(Algorithm, Protocol)> {
    let single = |algorithm| Some((algorithm, Protocol::Simple));
    match call.kind {
        Kind::AllToAll => return single(Algorithm::Direct),
        Kind::Broadcast | Kind::Reduce => return single(Algorithm::Chain),
        Kind::AllReduce | Kind::AllGather | Kind::ReduceScatter => {}
    }
    let candidates = [Algorithm::Ring, Algorithm::Tree, Algorithm::Nvls, Algorithm::Pat];
    let all = candidates.into_iter().flat_map(|algorithm| PROTOCOLS.map(|protocol| (algorithm, protocol)));
    let timed =
        all.filter_map(|(algorithm, protocol)| Some((time(call, algorithm, protocol)?, algorithm, protocol)));
    timed.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, algorithm, protocol)| (algorithm, protocol))
}

/// Estimated time, us; `None` if the pair does not exist.
fn time(call: &Call, algorithm: Algorithm, protocol: Protocol) -> Option<f64> {
    if !algorithm.kinds().contains(&call.kind) {
        return None;
    }
    let (n, servers) = (f64::from(call.ranks()), call.servers.len() as u32);
    let each = call.per_server()?;
    let (nodes, log_nodes) = (f64::from(servers), f64::from(servers.ilog2()));
    let p = PROTOCOLS.iter().position(|&q| q == protocol)?;
    let all_reduce = call.kind == Kind::AllReduce;
    let steps = if all_reduce { 2.0 * (n - 1.0) } else { n - 1.0 };
    let inter = (nodes - 1.0) * if all_reduce { 2.0 } else { 1.0 };
    let network = if each == 1 { TREE.network[p] } else { RING.network[p] };
    // GB/s of all channels: over NVLink for up to two servers, else over all NICs that the group has in a server.
    let nvlink = call.rates.1 as f64 / 8e9 * NVLINK_SHARE;
    let nics = call.rates.0 as f64 / 8e9 * f64::from(each);
    let bus = if servers <= 2 && each > 1 && call.nvlink { nvlink } else { nics };
    let channels = f64::from(call.channels.max(1));
    let (latency, bandwidth) = match algorithm {
        Algorithm::Ring => {
            let post = 1.0 * if protocol == Protocol::Simple { 3.0 } else { 1.0 };
            let mut latency = RING.base[p] + (steps - inter) * RING.nvlink[p].max(post) + inter * network;
            let per_rank = call.bytes as f64 / (channels * n);
            if protocol == Protocol::Simple && servers > 1 && per_rank >= 64.0 {
                latency *= 1.4;
            }
            let cap = if servers == 1 {
                141.0
            } else if servers == 2 {
                39.0
            } else {
                20.4
            };
            let bus = match protocol {
                Protocol::Ll => (bus * 0.5).min(cap),
                Protocol::Ll128 => (bus * 0.92).min(channels * 36.7),
                Protocol::Simple => bus,
            };
            (latency, bus * n / steps)
        }
        Algorithm::Tree => {
            let hops = f64::from(each) - 1.0;
            let latency = TREE.base[p] + 2.0 * (hops * TREE.nvlink[p] + log_nodes * TREE.network[p]);
            let bus = bus * 0.92;
            let bus = match protocol {
                Protocol::Ll => bus / 3.8,
                Protocol::Ll128 => bus * if servers == 1 { 7.0 / 9.0 } else { 120.0 / 128.0 },
                Protocol::Simple => bus,
            };
            let size = (call.bytes / 64).max(1).ilog2().min(23) as usize;
            (latency, bus / 2.0 * TREE_CORRECTION[p][size])
        }
        Algorithm::Nvls if protocol == Protocol::Simple && call.nvlink && each > 1 => {
            let rate = nvlink * 0.85;
            match (servers, all_reduce) {
                (1, true) => (25.0, 2.0 * rate * n / steps),
                (1, false) => (25.0, rate),
                (_, true) => (25.0 + 2.0 * log_nodes * 20.9, bus.min(rate) * n / steps),
                (_, false) => return None,
            }
        }
        Algorithm::Pat if protocol == Protocol::Simple && each == 1 && servers > 1 => {
            (8.0 + log_nodes * 14.0 / 3.5 + 2.8 * n, nics * 0.75)
        }
        _ => return None,
    };
    (bandwidth > 0.0).then(|| latency + call.bytes as f64 / (bandwidth * 1000.0))
}

/// The algorithm that NCCL takes, and the call with the protocol and the messages that it takes.
pub(super) fn chosen(call: &Call) -> Option<(Algorithm, Call)> {
    let (algorithm, protocol) = choice(call)?;
    Some((algorithm, Call { protocol, chunk: call.chunk.min(protocol.message()), ..call.clone() }))
}

pub(super) fn schedule(call: &Call) -> Result<Schedule, String> {
    let Some((algorithm, call)) = chosen(call) else {
        let servers = call.servers.len();
        return Err(format!("NCCL has no algorithm for {} over these {servers} servers", call.kind.name()));
    };
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
        let large = of(8 << 30);
        assert!(matches!(large, (Algorithm::Ring | Algorithm::Nvls, Protocol::Simple)), "{large:?}");
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

    /// NCCL's base latency, and a hop for each step, of 1 us at least with LL and LL128.
    #[test]
    fn a_short_ring_takes_its_hops_inside_servers_and_between_them() {
        let of = |servers: usize, protocol| {
            let call = Call { nvlink: true, channels: 8, ..call(Kind::AllReduce, vec![8; servers], 0) };
            time(&call, Algorithm::Ring, protocol).unwrap()
        };
        for (servers, protocol, expected) in [
            (1, Protocol::Ll, 6.6 + 14.0),
            (1, Protocol::Ll128, 14.0 + 14.0 * 1.9),
            (1, Protocol::Simple, 8.4 + 14.0 * 3.4),
            (2, Protocol::Ll, 6.6 + 28.0 + 2.0 * 2.7),
        ] {
            let took = of(servers, protocol);
            assert!((took - expected).abs() < 1e-9, "{servers} {protocol:?}: {took} for {expected}");
        }
    }

    #[test]
    fn pat_is_only_for_one_rank_per_server() {
        let alone = crate::tests::call(Kind::AllGather, vec![1], 1 << 20);
        assert_eq!(time(&alone, Algorithm::Pat, Protocol::Simple), None);
        let call = Call { nvlink: true, ..call(Kind::AllGather, vec![8; 4], 1 << 20) };
        assert_eq!(time(&call, Algorithm::Pat, Protocol::Simple), None);
        assert!(
            time(&crate::tests::call(Kind::AllGather, vec![1; 4], 1 << 20), Algorithm::Pat, Protocol::Simple)
                .is_some()
        );
    }
}
