//! Claim: on an idle fabric, collectives take the times of their closed forms.

use crate::lab::{agreed_on, lay};
use engine::Outcome;
use model::plan::Role;
use model::{Plan, Rate, Time};

/// Servers of one GPU on one switch: 400 Gb/s, 1 us. Frames carry 1438 B of payload, and messages are whole.
fn star(hosts: usize, kind: &str, bytes: u64, algorithm: &str) -> String {
    format!(
        "[topology.leaf-spine]\nleaves = 1\nspines = 1\nhosts-per-leaf = {hosts}\n\
         [[workload]]\ncollective = {{ kind = \"{kind}\", bytes = \"{bytes}B\", algorithm = \"{algorithm}\", \
         tuning = {{ message = \"1GB\" }} }}\n"
    )
}

/// Servers of GPUs with NVLink on rails.
fn rails(servers: usize, kind: &str, bytes: u64, more: &str) -> String {
    format!(
        "[server]\n[topology.rails]\nservers = {servers}\nspines = 4\n[[workload]]\n\
         collective = {{ kind = \"{kind}\", bytes = \"{bytes}B\", {more} }}\n"
    )
}

/// Time from the start of the run until the last rank has left.
fn time(plan: &Plan, run: &Outcome) -> Time {
    let leaves = plan.tasks.iter().zip(&run.tasks).filter(|(task, _)| task.role == Role::Leave);
    leaves.map(|(_, record)| record.end).max().unwrap()
}

fn run(text: &str) -> (Plan, Outcome) {
    let checked = lay(text);
    let outcome = agreed_on(&checked, text);
    (checked.plan, outcome)
}

/// Arrival of the last byte of a message of full frames over two links of 400 Gb/s and 1 us.
fn arrival(plan: &Plan, bytes: u64) -> u64 {
    let frame = plan.wire.transmission(model::Rate::from_gbps(400), plan.wire.max_frame()).ps();
    assert_eq!(bytes % u64::from(plan.wire.payload), 0, "full frames");
    (plan.wire.packets(bytes) + 1) * frame + 2_000_000
}

#[test]
fn rings_and_halving_take_their_steps_one_after_another() {
    for n in [2u64, 4, 8, 16] {
        let bytes = 1438 * 64 * n;
        for (kind, algorithm, steps) in [
            ("all-reduce", "ring", (0..2 * (n - 1)).map(|_| bytes / n).collect::<Vec<_>>()),
            ("all-gather", "ring", vec![bytes / n; n as usize - 1]),
            ("reduce-scatter", "ring", vec![bytes / n; n as usize - 1]),
            (
                "all-reduce",
                "halving-doubling",
                (1..=n.ilog2()).flat_map(|j| [(1438 * 128) >> j; 2]).collect(),
            ),
            ("all-reduce", "recursive-doubling", vec![1438 * 64; n.ilog2() as usize]),
            ("broadcast", "chain", vec![bytes; n as usize - 1]),
        ] {
            // While a message is on its way, no ACK of the opposite direction takes time from it: messages end before the first
            // ACK comes back.
            let bytes = match algorithm {
                "recursive-doubling" => 1438 * 64,
                "halving-doubling" => 1438 * 128,
                _ => bytes,
            };
            let text = star(n as usize, kind, bytes, algorithm);
            let (plan, run) = run(&text);
            // Every later step starts behind the ACK of the message that it waited for.
            let ack = plan.wire.transmission(model::Rate::from_gbps(400), plan.wire.ack).ps();
            let arrivals: u64 = steps.iter().map(|&bytes| arrival(&plan, bytes)).sum();
            let expected = arrivals + (steps.len() as u64 - 1) * ack;
            // The root of a broadcast leaves later, when its bytes are acknowledged.
            let last = run.messages.iter().map(|record| record.received).max().unwrap();
            assert_eq!(last, Time(expected), "{kind} by {algorithm} among {n}");
        }
    }
}

#[test]
fn nvls_in_a_server_takes_one_and_an_eighth_of_the_buffer_at_the_rate_of_nvlink() {
    let (plan, outcome) =
        run(&rails(2, "all-reduce", 450_000_000, "groups = \"server\", algorithm = \"nvls\""));
    // 506.25 MB at 85 % of 370.8 GB/s, and 500 ns to the switch and back.
    let port = Rate(2_966_400_000_000 / 100 * 85).time_for(506_250_000);
    assert_eq!(time(&plan, &outcome), port + Time::from_us(1));
    assert!(plan.messages.is_empty());
}

#[test]
fn rings_over_rails_never_cross_a_spine_and_use_every_nic_alike() {
    let (plan, outcome) = run(&rails(2, "all-reduce", 8_000_000, "algorithm = \"ring\""));
    let to_spines =
        plan.fabric.links().iter().zip(&outcome.links).filter(|(link, _)| plan.fabric.tier(link.to) == 2);
    assert_eq!(to_spines.map(|(_, record)| record.bytes).sum::<u64>(), 0);
    let mut by_nic = vec![0; plan.fabric.hosts()];
    for message in &plan.messages {
        by_nic[plan.qps[message.qp.index()].from.index()] += message.bytes;
    }
    // 2 (n - 1) / n of the buffer crosses between the servers in each direction; every NIC has an eighth.
    assert_eq!(by_nic, vec![2 * 15 * 8_000_000 / 16 / 8; 16]);
}

#[test]
fn on_one_tor_per_server_the_same_ring_crosses_spines() {
    let text = rails(2, "all-reduce", 8_000_000, "algorithm = \"ring\"")
        .replace("spines = 4", "spines = 4\nkind = \"per-server\"\nservers-per-segment = 1");
    let (plan, outcome) = run(&text);
    let up =
        plan.fabric.links().iter().zip(&outcome.links).filter(|(link, _)| plan.fabric.tier(link.to) == 2);
    let frames = |bytes: u64| {
        let wire = &plan.wire;
        (0..wire.packets(bytes)).map(|i| u64::from(wire.data_frame(wire.payload_of(bytes, i)))).sum::<u64>()
    };
    let data: u64 = plan.messages.iter().map(|message| frames(message.bytes)).sum();
    let all: u64 = up.map(|(_, record)| record.bytes).sum();
    assert!(all > data && all < data + data / 10, "{all} B with ACKs, {data} B of data");
}

#[test]
fn without_spines_between_rails_an_all_to_all_needs_the_nics_of_the_receivers_rails() {
    let text = |nic: &str| {
        rails(2, "all-to-all", 1_600_000, &format!("tuning = {{ nic = \"{nic}\" }}"))
            .replace("spines = 4", "spines = 0\nkind = \"rail-only\"")
    };
    let (plan, outcome) = run(&text("pxn"));
    // Eight GPUs of the other server: 100 kB each.
    let sent: u64 = plan.messages.iter().map(|message| message.bytes).sum();
    assert_eq!(sent, 16 * 8 * 100_000);
    assert!(outcome.messages.iter().all(|record| record.acked < Time::NEVER));
    let refused =
        format!("{:?}", scenario::check(&scenario::Source::new("story.toml", text("own")), &[]).unwrap_err());
    assert!(refused.contains("no path leads from"), "{refused}");
}

#[test]
fn a_tree_is_not_a_ring() {
    for (kind, servers) in [("ring", 4u64), ("tree", 4)] {
        let (plan, _) = run(&star(servers as usize, "all-reduce", 1_438_000, kind));
        let mut sent = vec![0; 4];
        for message in &plan.messages {
            sent[plan.qps[message.qp.index()].from.index()] += message.bytes;
        }
        match kind {
            "ring" => assert_eq!(sent, [2_157_000; 4]),
            // Parents in the first tree: none, 2, 0, 2; in the second: 1, 3, 1, none. Every edge carries half of the buffer in
            // each direction.
            _ => assert_eq!(sent, [2, 4, 4, 2].map(|edges| edges * 719_000)),
        }
    }
}

#[test]
fn without_nvlink_gpus_of_a_server_meet_at_their_tors_or_in_the_nic_that_they_share() {
    let ring = "[[workload]]\ncollective = { kind = \"all-reduce\", bytes = \"8MB\" }\n";
    let apart =
        format!("[server]\ngpus = 4\nnvlink = \"off\"\n[topology.rails]\nservers = 2\nspines = 2\n{ring}");
    let (plan, _) = run(&apart);
    let inside = plan.messages.iter().filter(|message| {
        let qp = &plan.qps[message.qp.index()];
        plan.fabric.node_of(qp.from) == plan.fabric.node_of(qp.to)
    });
    assert!(inside.count() > 0 && plan.qps.iter().all(|qp| qp.from != qp.to));
    let shared = apart.replace("nvlink", "nics = 1\nnvlink");
    let (plan, outcome) = run(&shared);
    assert!(plan.tasks.iter().any(|task| matches!(task.work, model::plan::Work::Copy { .. })));
    assert!(outcome.messages.iter().all(|record| record.acked < Time::NEVER));
}

#[test]
fn a_double_binary_tree_takes_the_time_of_its_ports() {
    // Each tree carries one half: 4 d - 2 halves pass one after another through a port, and 2 d latencies, for 2^d servers.
    for d in 1..=4u64 {
        let n = 1 << d;
        let half = 1438 * 64;
        let text = star(n, "all-reduce", 2 * half, "tree");
        let (plan, outcome) = run(&text);
        let frame = plan.wire.transmission(model::Rate::from_gbps(400), plan.wire.max_frame()).ps();
        let on_port = 64 * frame;
        let latency = 2_000_000 + frame;
        let expected = (4 * d - 2) * on_port + 2 * d * latency;
        let last = outcome.messages.iter().map(|record| record.received.ps()).max().unwrap();
        // ACKs of the opposite direction take less than four frames.
        assert!(last.abs_diff(expected) < 4 * frame, "{n} servers: {last} ps, {expected} ps");
    }
}

/// Time of an all-reduce among the GPUs of one server, whose NVLink has this delay and 400 Gb/s.
fn over_nvlink(gpus: u64, bytes: u64, delay_us: u64, algorithm: &str) -> Time {
    let (plan, outcome) = run(&format!(
        "[server]\ngpus = {gpus}\nnvlink = {{ rate = \"400Gbps\", delay = \"{delay_us}us\" }}\n\
         [topology.rails]\nservers = 1\nspines = 0\n[[workload]]\n\
         collective = {{ kind = \"all-reduce\", bytes = \"{bytes}B\", algorithm = \"{algorithm}\", tuning = {{ channels = 1 }} }}\n"
    ));
    time(&plan, &outcome)
}

#[test]
fn between_gpus_of_a_server_a_step_takes_a_latency_and_its_bytes() {
    // 2 (n - 1) steps of 1 us and an n-th of 8 MiB at 50 B/ns.
    for (gpus, ps) in [(2, 169_772_160), (4, 257_658_240), (8, 307_601_280), (16, 344_572_800)] {
        assert_eq!(over_nvlink(gpus, 8 << 20, 1, "ring"), Time(ps), "{gpus} GPUs");
    }
    // 1 GiB among 8 GPUs with 5 us per step: 14 steps around the ring, 6 steps by halving and doubling.
    assert_eq!(over_nvlink(8, 1 << 30, 5, "ring"), Time(37_650_963_840));
    assert_eq!(over_nvlink(8, 1 << 30, 5, "halving-doubling"), Time(37_610_963_840));
}

#[test]
fn an_all_reduce_of_1_gb_by_the_nvswitch_has_490_gbs_on_the_bus() {
    let text = "[server]\nnvlink = { delay = \"0us\" }\n[topology.rails]\nservers = 1\nspines = 0\n[[workload]]\n\
        collective = { kind = \"all-reduce\", bytes = \"1GB\", algorithm = \"nvls\" }\n";
    let (plan, outcome) = run(text);
    // (1 + 1/8) GB at 85 % of 370.8 GB/s take 3.57 ms; 480 GB/s were measured (NVIDIA/nccl#1374).
    let took = time(&plan, &outcome);
    assert_eq!(took, Rate(2_966_400_000_000 / 100 * 85).time_for(1_125_000_000));
    assert_eq!((1e6 / took.as_us() * 2.0 * 7.0 / 8.0).round(), 490.0);
    let (factor, divisor) = plan.operations[0].bus;
    assert_eq!(factor * 8, divisor * 2 * 7);
}

#[test]
fn striped_messages_load_both_planes_alike() {
    let text = rails(4, "all-reduce", 8_000_011, "algorithm = \"ring\", tuning = { ports = \"stripe\" }")
        .replace("[server]", "[server]\nports-per-nic = 2")
        .replace("spines = 4", "spines = 2\nplanes = 2\nservers-per-segment = 2");
    let plan = lay(&text).plan;
    let mut planes = [(0u64, 0u64); 2];
    for message in &plan.messages {
        let qp = &plan.qps[message.qp.index()];
        let [from, to] = [qp.from, qp.to].map(|end| plan.fabric.host_name(end));
        let plane = usize::from(from.ends_with("p1"));
        assert_eq!(from.ends_with("p1"), to.ends_with("p1"), "{from} to {to}");
        planes[plane] = (planes[plane].0 + message.bytes, planes[plane].1 + 1);
    }
    let [(first, count), (second, same)] = planes;
    // The parts of a message differ by at most a byte.
    assert!(count == same && count > 0 && first - second <= count, "{planes:?}");
}

/// Time of a ring all-reduce of 8 MiB among eight GPUs of one server, whose NVLink moves packets: hosts on a switch.
fn over_a_switch_of_nvlinks(message: &str) -> (Plan, Time) {
    let links: String = (0..8).map(|gpu| format!("[\"host{gpu}\", \"nvswitch\"], ")).collect();
    let text = format!(
        "[server]\ngpus = 1\n[topology.links]\nhosts = 8\nswitches = [\"nvswitch\"]\nrate = \"3600Gbps\"\n\
         delay = \"250ns\"\nlinks = [{links}]\n[wire]\npayload = \"4096B\"\n[nic.congestion.none]\n[[workload]]\n\
         collective = {{ kind = \"all-reduce\", bytes = \"8MiB\", algorithm = \"ring\"{message} }}\n"
    );
    let (plan, outcome) = run(&text);
    let time = time(&plan, &outcome);
    (plan, time)
}

/// NVLink as ports of servers has no packets. The same server as a small fabric has, and needs its headers, its ACKs and a
/// stored frame per step in addition.
#[test]
fn nvlink_as_ports_takes_what_packets_take_but_headers_acks_and_a_frame_per_step() {
    let text = "[server]\nnvlink = { rate = \"3600Gbps\", delay = \"500ns\" }\n[topology.rails]\nservers = 1\n\
                spines = 0\n[[workload]]\ncollective = { kind = \"all-reduce\", bytes = \"8MiB\", algorithm = \"ring\", \
                tuning = { channels = 1 } }\n";
    let (plan, outcome) = run(text);
    let ports = time(&plan, &outcome).ps();
    let (plan, packets) = over_a_switch_of_nvlinks(", tuning = { channels = 1 }");
    let rate = Rate::from_gbps(3600);
    let of = |frame| plan.wire.transmission(rate, frame).ps();
    // 14 steps of 256 frames; every frame of a step has an ACK on the same link at most, and the switch stores one frame.
    let bytes = rate.time_for(4096).ps();
    let (full, ack) = (of(plan.wire.max_frame()), of(plan.wire.ack));
    let least = ports + 14 * (256 * (full - bytes) + full);
    let most = least + 14 * 257 * ack;
    assert!(
        (least..=most).contains(&packets.ps()),
        "{ports} ps by ports, {packets} by packets, {least} to {most}"
    );
    assert!(packets.ps() < ports * 105 / 100, "{packets} against {ports} ps");
}
