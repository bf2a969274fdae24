//! Sixteen public threads about slow collectives: their facts go in, and what experts answered must come out.
//!
//! The logs are written here from the figures of each thread; no text is copied.

use busbw::{Answer, Input, Request, answer, text};

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;

/// A log as all versions of nccl-tests write it: sizes, with bus bandwidths in GB/s.
fn log(program: &str, factor: f64, rows: &[(u64, f64)]) -> String {
    let mut text = format!(
        "# Collective test starting: {program}_perf\n#\n#       size         count      type   redop    root     time   algbw   busbw \
         #wrong     time   algbw   busbw #wrong\n#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            \
         (us)  (GB/s)  (GB/s)\n"
    );
    for (bytes, busbw) in rows {
        let algbw = busbw / factor;
        let us = *bytes as f64 / algbw / 1e3;
        let group = format!("{us:.2} {algbw:.2} {busbw:.2} 0");
        text += &format!("{bytes:>12} {:>12} float sum -1 {group} {group}\n", bytes / 4);
    }
    text += "# Avg bus bandwidth    : 1.0\n";
    text
}

fn all_reduce(ranks: u32, rows: &[(u64, f64)]) -> String {
    log("all_reduce", 2.0 * f64::from(ranks - 1) / f64::from(ranks), rows)
}

/// Doubling sizes from 64 MiB to 1 GiB with one bandwidth.
fn flat(busbw: f64) -> Vec<(u64, f64)> {
    (26..=30).map(|bits| (1 << bits, busbw)).collect()
}

fn input(name: &str, text: impl Into<String>) -> Input {
    Input { name: name.to_owned(), text: text.into() }
}

fn ask(cluster: &str, logs: &[String]) -> Answer {
    let logs = logs.iter().enumerate().map(|(i, log)| input(&format!("{i}.log"), log.clone())).collect();
    let request = Request { logs, cluster: Some(cluster.to_owned()), ..Request::default() };
    answer(&request).unwrap_or_else(|error| panic!("{error}"))
}

/// Requires that the answer says all these words, in any case.
fn says(answer: &Answer, words: &[&str]) {
    let told = text(answer);
    let flat = told.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    for word in words {
        assert!(flat.contains(&word.to_lowercase()), "expected `{word}` in:\n{told}");
    }
}

fn first(answer: &Answer) -> &'static str {
    answer.suspects.first().map_or("none", |first| first.name)
}

fn among_three(answer: &Answer, name: &str) -> bool {
    answer.suspects.iter().take(3).any(|suspect| suspect.name == name)
}

/// NVIDIA/nccl-tests#119.
#[test]
fn t1_four_nics_of_200g_carry_24_each() {
    let told = ask("3 nodes, 8 A100, 4x200G, IB", &[all_reduce(24, &[(127 * MIB, 96.5)])]);
    says(&told, &["as expected", "96.5 = 4 x 24"]);
    assert_eq!((told.exit_code, told.suspects.len()), (0, 0));
}

/// NVIDIA/nccl-tests#267: an all-to-all has the bandwidth of one NIC.
#[test]
fn t2_an_all_to_all_has_at_most_six_fifths_of_one_nic() {
    let rows: Vec<_> = (28..=33).map(|bits| (1 << bits, 55.0)).collect();
    let told = ask("6 nodes, 8 H100, 8x400G, RoCE", &[log("alltoall", 47.0 / 48.0, &rows)]);
    says(&told, &["as expected", "at most 58", "6/5 x 49"]);
    assert_eq!(told.exit_code, 0);
}

/// NVIDIA/nccl-tests#309: two nodes flatter.
#[test]
fn t4_two_nodes_exceed_their_nics_and_four_do_not() {
    let rows: Vec<_> = [(33, 365.84)].map(|(bits, busbw)| (1u64 << bits, busbw)).to_vec();
    let four = ask("4 nodes, 8 H100, 8x400G, IB", &[all_reduce(32, &rows)]);
    says(&four, &["as expected", "at most 392"]);
    assert_eq!(four.exit_code, 0);
    let two = ask("2 nodes, 8 H100, 8x400G, IB", &[all_reduce(16, &[(8 * GIB, 470.0)])]);
    says(&two, &["above the NICs' 392", "tree or NVLSTree", "NCCL_ALGO=Ring"]);
    assert_eq!(two.exit_code, 0);
}

/// NVIDIA/nccl#1412: connections without GDRDMA. Nothing tells the NICs.
#[test]
fn t7_without_gdrdma_in_the_log_gdr_is_suspect_one() {
    let nccl = (0..8)
        .map(|c| format!("swat:1:2 [0] NCCL INFO Channel {c:02}/0 : 8[0] -> 0[0] [receive] via NET/IB/{c}\n"))
        .collect::<String>();
    let told = ask("2 nodes, 8 gpus, IB", &[all_reduce(16, &[(GIB, 33.0)]) + &nccl]);
    assert_eq!(first(&told), "gdr-or-cpu");
    says(&told, &["cannot tell", "suspect 1: GDR off", "none with GDRDMA", "8x400G"]);
    let known = ask("2 nodes, 8 A100, 4x200G, IB", &[all_reduce(16, &[(GIB, 33.0)]) + &nccl]);
    assert_eq!((first(&known), known.exit_code), ("gdr-or-cpu", 1));
    let mended = nccl.replace("via NET/IB/", "via NET/IB/0/GDRDMA/");
    let later = ask("2 nodes, 8 A100, 4x200G, IB", &[all_reduce(16, &[(GIB, 93.0)]) + &mended]);
    says(&later, &["as expected", "93.0 = 4 x 23"]);
}

/// NVIDIA/nccl-tests#106: one node is slow, not the ToR.
#[test]
fn t9_elimination_finds_the_slow_node_and_refutes_the_tor() {
    let pairs =
        [("644-284", 49.3), ("644-678", 49.3), ("284-678", 49.3), ("284-311", 88.0), ("678-502", 88.0)];
    let logs = pairs.map(|(hosts, busbw)| {
        let ranks = hosts.split('-').enumerate().flat_map(|(n, host)| {
            (0..8).map(move |i| {
                format!(
                    "#  Rank {:>2} Group  0 Pid   1 on {host} device {i} [0x07] NVIDIA A100-SXM4-80GB\n",
                    8 * n + i
                )
            })
        });
        input(hosts, ranks.collect::<String>() + &all_reduce(16, &flat(busbw)))
    });
    let racks = Some("644 284 / 678 311 502".to_owned());
    let request =
        Request { logs: logs.to_vec(), cluster: Some("4x200G, IB".to_owned()), racks, ..Request::default() };
    let told = answer(&request).unwrap();
    says(
        &told,
        &[
            "644 is slow: it is in 2 of 3 slow logs",
            "284, 678 are fast elsewhere",
            "284-678 remains",
            "284-311 is fast across ToRs, which refutes the ToR",
        ],
    );
    let together = told.together.as_ref().unwrap();
    assert_eq!(
        (&together.slow_nodes[..], &together.slow_paths[..]),
        (&["644".to_owned()][..], &["284-678".to_owned()][..])
    );
}

/// NVIDIA/nccl-tests#112: one NIC of four, and ACS.
#[test]
fn t10_one_nic_and_less_than_half_of_it() {
    let env = "host:1:2 [0] NCCL INFO NCCL_IB_HCA set by environment to mlx5_0\n\
               host:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:10.0.0.1<0>\n";
    let rows: Vec<_> = (30..=33).map(|bits| (1 << bits, 9.84)).collect();
    let told = ask("2 nodes, 8 A100, 4x200G, RoCE", &[env.to_owned() + &all_reduce(16, &rows)]);
    assert_eq!((first(&told), told.suspects[1].name), ("few-nics", "pcie"));
    says(&told, &["one of 4 NICs in use", "NCCL_IB_HCA", "40 % of the NICs in use", "PCIe, ACS"]);
}

/// NVIDIA/nccl#2409: sendrecv of one rail is slow, perftest with host memory is not.
#[test]
fn t11_a_slow_sendrecv_beside_a_full_perftest_accuses_the_host() {
    let sendrecv = log("sendrecv", 1.0, &[(256 * MIB, 13.0), (GIB, 13.1)]);
    let perftest = "                    RDMA_Write BW Test\n Number of qps   : 1\t\tTransport type : IB\n \
                    #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n 131072     5000             392.2              \
                    392.1                0.373\n";
    let told = ask(
        "2 nodes, 8 H100, 8x400G, RoCE",
        &[all_reduce(16, &[(GIB, 216.5)]), sendrecv, perftest.to_owned()],
    );
    assert_eq!(first(&told), "pcie");
    says(&told, &["below", "chunk takes 80 us", "8 x 128 KiB in flight", "host", "--use_cuda=0"]);
    assert_eq!(told.exit_code, 1);
}

/// NVIDIA/nccl-tests#319.
#[test]
fn t12_the_bandwidth_of_one_nic_of_eight() {
    let told = ask("2 nodes, 8 H100, 8x400G, IB", &[all_reduce(16, &[(GIB, 44.36)])]);
    assert_eq!((first(&told), told.suspects[1].name), ("few-nics", "gdr-or-cpu"));
    says(&told, &["one of 8 NICs in use", "of 1 NIC", "at most 392"]);
}

/// NVIDIA/nccl#412.
#[test]
fn t14_sixteen_gigabytes_per_second_are_a_nic_at_the_cpu() {
    let told = ask("12 nodes, 8 A800, 1x200G, IB", &[all_reduce(96, &[(8 * GIB, 15.3)])]);
    assert_eq!(first(&told), "gdr-or-cpu");
    says(&told, &["suspect 1: NIC at the CPU", "PCIe switch", "at most 24"]);
}

/// NVIDIA/nccl-tests#265: perftest fills the bond with several queue pairs.
#[test]
fn t16_a_bond_with_one_queue_pair() {
    let perftest = " RDMA_Write BW Test\n Number of qps   : 8\n #bytes #iterations BW peak[Gb/sec] BW average[Gb/sec] MsgRate[Mpps]\n \
                    1048576 5000 395.5 395.0 0.047\n";
    let told =
        ask("2 nodes, 8 gpus, bond of 2x200G, RoCE", &[all_reduce(16, &flat(30.0)), perftest.to_owned()]);
    assert_eq!(first(&told), "bond");
    says(&told, &["bond with one QP", "NCCL_IB_QPS_PER_CONNECTION", "at most 49"]);
}

/// NVIDIA/nccl#378.
#[test]
fn t19_a_collapse_on_roce_is_a_lossy_class() {
    let rows = [(64 * MIB, 3.1), (128 * MIB, 0.8), (256 * MIB, 0.4), (512 * MIB, 0.9)];
    let told = ask("4 nodes, 8 V100, 4x100G, RoCE", &[all_reduce(32, &rows)]);
    assert_eq!(first(&told), "lossy");
    says(&told, &["lossy class", "drops packets", "NCCL_IB_TC"]);
}

/// NVIDIA/nccl#1453.
#[test]
fn t20_twice_the_bytes_take_eleven_times_as_long() {
    let rows = [(16 * MIB, 20.0), (32 * MIB, 29.5), (64 * MIB, 5.3), (128 * MIB, 5.2)];
    let told = ask("3 nodes, 8 H100, 8x(2x200G), RoCE, 2 racks", &[all_reduce(24, &rows)]);
    assert_eq!(first(&told), "lossy");
    assert!(among_three(&told, "pauses"), "{}", text(&told));
    says(&told, &["twice the bytes take 11 times as long at 64 MiB", "lossy class"]);
    let collisions = told.suspects.iter().find(|suspect| suspect.name == "collisions");
    assert!(collisions.is_none_or(|suspect| suspect.probability < 0.05));
}

/// CCI-MOC/roce-testing: the log says GDR 0.
#[test]
fn t21_gdr_0_in_the_log() {
    let nccl = "h:1:2 [0] NCCL INFO Connected all rings, use ring PXN 0 GDR 0\nh:1:2 [0] NCCL INFO 2 coll channels, 2 collnet channels, 0 nvls \
                channels, 2 p2p channels, 2 p2p channels per peer\n";
    let told = ask(
        "2 nodes, 1 H100, 1x400G, RoCE",
        &[nccl.to_owned() + &all_reduce(2, &[(GIB, 15.1), (8 * GIB, 15.1)])],
    );
    assert_eq!(first(&told), "gdr-or-cpu");
    says(&told, &["suspect 1: GDR off", "GDR 0"]);
}

/// NVIDIA/cluster-readiness-engine#287: several racks, half of the ceiling, and adaptive routing brought 70 %.
#[test]
fn t23_half_the_ceiling_over_several_racks_is_collisions() {
    let rows: Vec<_> = (31..=34).map(|bits| (1 << bits, 196.0)).collect();
    let told = ask("16 nodes, 4 GB300, 4x800G, RoCE, 4 racks", &[all_reduce(64, &rows)]);
    assert_eq!(first(&told), "collisions");
    says(&told, &["ECMP collisions", "several ToRs", "adaptive routing", "NCCL_IB_SPLIT_DATA_ON_QPS=1"]);
}

/// NVIDIA/nccl-tests#283: no ring reaches this.
#[test]
fn t28_a_ring_of_1984_ranks_cannot() {
    let told = ask("248 nodes, 8 H200, 8x400G", &[all_reduce(1984, &[(512 * MIB, 350.0)])]);
    says(&told, &["a ring cannot", "3,966 steps", "31 ms", "35 GB/s", "tree, NVLSTree or SHARP"]);
}

/// NVIDIA/nccl-tests#241: about half with several hundred microseconds between sites.
#[test]
fn t31_the_window_of_a_channel_over_the_latency() {
    let env = "h:1:2 [0] NCCL INFO NCCL_ALGO set by environment to Ring\n";
    let rows: Vec<_> = (30..=33).map(|bits| (1 << bits, 165.0)).collect();
    let told = ask("4 nodes, 8 H100, 8x400G, 2 sites, 400us", &[env.to_owned() + &all_reduce(32, &rows)]);
    assert_eq!(first(&told), "long-paths");
    says(&told, &["long paths", "4 MiB per channel", "in flight"]);
}
