use super::{Path, closed_form};
use crate::Checked;
use collective::{Algorithm, Call, Kind, Machine, Made, Protocol};
use model::HostId;

const KINDS: [Kind; 4] = [Kind::AllReduce, Kind::AllGather, Kind::ReduceScatter, Kind::AllToAll];

/// The scenario with the cluster whose collectives were measured.
fn cluster(kind: Kind, servers: usize, bytes: u64) -> Checked {
    // The harness of an all-to-all adds less.
    let harness = if kind == Kind::AllToAll { "40us" } else { "160us" };
    let set = [
        format!("topology.rails.servers={servers}"),
        format!("server.cost.call={harness}"),
        format!("workload.0.collective.kind={}", kind.name()),
        format!("workload.0.collective.bytes={bytes}B"),
    ];
    crate::load("cluster-h100", &set).unwrap()
}

/// What NCCL takes for a collective on that cluster, and its time by the closed form, us.
fn predicted(cluster: &Checked, kind: Kind, servers: usize, bytes: u64) -> (Made, f64) {
    let server = cluster.scenario.server.as_ref().unwrap().server().unwrap();
    let link = cluster.plan.fabric.uplink(HostId(0));
    let call = Call {
        kind,
        bytes,
        servers: vec![server.gpus as u32; servers],
        channels: 1,
        chunk: u64::MAX,
        slices: true,
        window: 0,
        grain: 1,
        nvlink: true,
        protocol: Protocol::Simple,
        machine: Machine {
            nics: server.nics as u32,
            nic: link.rate.bps(),
            nvlink: server.nvlink.unwrap().rate.bps(),
            // Without NVLS.
            algorithms: [true, true, false, true],
            ..Machine::default()
        },
    };
    let channels = if kind == Kind::AllToAll { 1 } else { collective::channels(&call) };
    let (algorithm, call) = Algorithm::Nccl.resolve(&Call { channels, ..call }).unwrap();
    let costs = server.cost.costs().unwrap().unwrap().costs(algorithm, &call).unwrap();
    let path = Path::over(&cluster.plan.wire, link.rate, link.delay);
    let time = closed_form(algorithm, &call, &costs, path).unwrap();
    (algorithm.made(&call), time.as_us())
}

#[test]
fn the_cluster_of_these_tests_is_that_of_the_scenario() {
    for (kind, bytes) in KINDS.into_iter().flat_map(|kind| [(kind, 1 << 20), (kind, 24 << 20)]) {
        let cluster = cluster(kind, 2, bytes);
        let laid = &cluster.plan.operations[0];
        let (made, us) = predicted(&cluster, kind, 2, bytes);
        let how = (made.algorithm.name(), made.protocol.name(), made.channels);
        assert_eq!((laid.algorithm, laid.protocol, laid.channels), how, "{kind:?} {bytes}");
        assert_eq!(laid.closed_form.unwrap().as_us(), us, "{kind:?} {bytes}");
    }
}

/// On clusters, the bandwidth on the bus of a larger buffer is less where NCCL changes its algorithm or protocol. A dip anywhere else would
/// be an artefact of our costs.
#[test]
fn bandwidth_falls_with_the_size_only_where_nccl_chooses_anew() {
    let mut dips = Vec::new();
    for (kind, servers) in KINDS.into_iter().flat_map(|kind| [(kind, 2), (kind, 4), (kind, 8)]) {
        let cluster = cluster(kind, servers, 1 << 10);
        let mut before: Option<(Made, f64)> = None;
        for bytes in (20..=30).map(|power| 1u64 << power) {
            let (made, us) = predicted(&cluster, kind, servers, bytes);
            let bandwidth = bytes as f64 / us;
            if let Some((last, _)) = before.filter(|&(_, faster)| bandwidth < faster) {
                let mib = bytes >> 20;
                assert_ne!(
                    made, last,
                    "{kind:?} of {mib} MiB on {servers} servers is slower than half of it"
                );
                assert_eq!((last.protocol, made.protocol), (Protocol::Ll128, Protocol::Simple));
                dips.push((kind, servers, mib));
            }
            before = Some((made, bandwidth));
        }
    }
    let expected = [
        (Kind::AllReduce, 4, 256),
        (Kind::AllReduce, 8, 512),
        (Kind::AllGather, 4, 128),
        (Kind::AllGather, 8, 256),
        (Kind::ReduceScatter, 4, 128),
        (Kind::ReduceScatter, 8, 256),
    ];
    assert_eq!(dips, expected);
}
