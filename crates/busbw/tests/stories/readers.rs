//! What readers find in logs of all versions, and that no damaged log causes a panic.

use busbw::log::{Log, Test};
use busbw::read::read;
use busbw::{Input, Request, answer};
use collective::Kind;
use proptest::prelude::*;

fn log(text: &str) -> Log {
    read(&Input { name: "x.log".to_owned(), text: text.to_owned() })
}

/// Sizes and times of the first run.
fn rows(log: &Log) -> Vec<(u64, f64)> {
    log.curves
        .first()
        .map(|curve| curve.points.iter().map(|point| (point.bytes, point.us)).collect())
        .unwrap_or_default()
}

const NOW: &str = "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong\n";

#[test]
fn rows_of_every_version_are_read() {
    let group = "120.0 8.74 16.38 0";
    let with =
        |header: &str, row: &str| format!("# Collective test starting: all_reduce_perf\n{header}{row}\n");
    let versions = [
        // 2.13 and later, and 2.0 with floats for errors.
        (NOW, format!("     1048576        262144     float     sum      -1 {group} {group}")),
        (
            "#  size count type redop time algbw busbw error time algbw busbw error\n",
            "1048576 262144 float sum 120.0 8.74 16.38 1e-06 121.0 8.67 16.25 1e-06".to_owned(),
        ),
        // 2.19: four columns per iteration, and a time stamp.
        (
            "# size count type redop root time algbw busbw #wrong i_min i_max i_p99 i_cv% time algbw busbw #wrong i_min i_max i_p99 i_cv% timestamp\n",
            format!(
                "1048576 262144 float sum -1 {group} 118.0 130.1 129.0 2.1 {group} 118.0 130.1 129.0 2.1 2026-01-02 03:04:05"
            ),
        ),
        // rccl-tests: in place alone, or with what RCCL chose.
        (
            "#  size count type redop root time algbw busbw #wrong\n",
            format!("1048576 262144 float sum -1 {group}"),
        ),
        (
            "#  size count type redop root algo proto nchannels time algbw busbw #wrong time algbw busbw #wrong\n",
            format!("1048576 262144 float sum -1 Ring LL128 16 {group} {group}"),
        ),
        // The first version prints milliseconds.
        (
            "#  bytes N type op time algbw busbw res time algbw busbw res\n",
            "1048576 262144 float sum 0.120 8.74 16.38 1e-7 0.121 8.67 16.2 1e-7".to_owned(),
        ),
        // No header, as in an excerpt; no check of results.
        ("", format!("1048576 262144 float sum -1 {group} {group}")),
        (NOW, "1048576 262144 float sum -1 120.0 8.74 16.38 N/A 121.0 8.67 16.25 N/A".to_owned()),
        // Prefixes of mpirun, srun and log collectors.
        (NOW, format!("[1,0]<stdout>:     1048576 262144 float sum -1 {group} {group}")),
        (NOW, format!("[1,0]<stdout>:1048576 262144 float sum -1 {group} {group}")),
        (NOW, format!("2026-01-02 03:04:05.678 host0 0: 1048576 262144 bfloat16 sum -1 {group} {group}")),
    ];
    for (header, row) in versions {
        let log = log(&with(header, &row));
        assert_eq!(log.curves.len(), 1, "{row}: {:?}", log.unread);
        let (bytes, us) = rows(&log)[0];
        assert!(bytes == 1 << 20 && (us - 120.0).abs() < 1e-9, "{row}: {us}");
        assert_eq!(log.curves[0].test, Some(Test::Of(Kind::AllReduce)));
        assert!(log.unread.is_empty(), "{row}: {:?}", log.unread);
    }
}

#[test]
fn torn_rows_are_quoted_with_their_line() {
    let text = format!(
        "{NOW}1048576 262144 float sum -1 120.0 8.74 16.38 0 121.0 8.67 16.25 0\n\
         2097152 524288 float sum -1 200.0 10.host:1:2 [0] NCCL INFO Channel 00/0\n\
         4194304 1048576 float sum -1 300.0 13.98 26.2\n\
         8388608 2097152 float sum -1 500.0 99.00 26.2 0 500.0 16.78 31.46 0\n"
    );
    let log = log(&text);
    assert_eq!(rows(&log), [(1 << 20, 120.0)]);
    let told: Vec<_> = log.unread.iter().map(|unread| (unread.line, unread.why.as_str())).collect();
    assert_eq!(told[0], (4, "expected 8 results in this row, found 3"));
    assert!(told[1].0 == 5 && told[1].1.contains("do not fit"), "{told:?}");
}

#[test]
fn json_is_read_whole_and_up_to_a_break() {
    let row = |bytes: u64, us: f64| {
        let algbw = bytes as f64 / us / 1e3;
        format!(
            "{{\"size\": {bytes}, \"count\": 1, \"type\": \"float\", \"redop\": \"sum\", \"root\": \"    -1\", \"out_of_place\": {{\"time\": {us}, \
             \"alg_bw\": {algbw}, \"bus_bw\": {algbw}, \"nwrong\": 0.0}}, \"in_place\": null}}"
        )
    };
    let whole = format!(
        "{{\"version\": 1, \"args\": [\"build/all_gather_perf\", \"-g\", \"1\"], \"env\": [\"HOME=/\", \"NCCL_ALGO=Ring\"], \"nccl_version\": 22705, \
         \"devices\": [{{\"rank\": 0, \"hostname\": \"n1\", \"device_info\": \"NVIDIA H100\"}}, {{\"rank\": 1, \"hostname\": \"n2\"}}], \"results\": \
         [{}, {}]}}",
        row(1 << 20, 100.0),
        row(2 << 20, 150.0)
    );
    let read = log(&whole);
    assert_eq!(rows(&read), [(1 << 20, 100.0), (2 << 20, 150.0)]);
    assert_eq!(read.curves[0].test, Some(Test::Of(Kind::AllGather)));
    let facts = &read.facts;
    assert_eq!(
        (facts.hosts.len(), facts.var("NCCL_ALGO"), facts.version.as_ref().unwrap().value.as_str()),
        (2, Some("Ring"), "2.27")
    );
    let torn = log(&whole[..whole.len() - 30]);
    assert_eq!(rows(&torn), [(1 << 20, 100.0)]);
    assert!(torn.unread[0].why.contains("the JSON breaks off"));
}

#[test]
fn nccls_own_lines_tell_the_cluster() {
    let read = log("n1:10:20 [0] NCCL INFO NCCL_IB_HCA set by environment to mlx5_0,mlx5_1.\n\
         NCCL version 2.21.5+cuda12.4\n\
         n1:10:20 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_bond_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>\n\
         n1:10:20 [0] NCCL INFO comm 0x1 rank 0 nRanks 16 nNodes 2 localRanks 8 localRank 0 MNNVL 0\n\
         n1:10:20 [0] NCCL INFO Pattern 4, crossNic 0, nChannels 8, bw 40.000000/40.000000, type NVL/PHB, sameChannels 1\n\
         n1:10:20 [0] NCCL INFO Channel 00/16 :    0   7   6\n\
         n1:10:20 [0] NCCL INFO Channel 00/0 : 8[0] -> 0[0] [receive] via NET/IB/1(3)/GDRDMA\n\
         n1:10:20 [0] NCCL INFO Channel 01/0 : 8[0] -> 0[0] [receive] via NET/IB/0\n\
         n1:10:20 [0] NCCL INFO Connected all rings, use ring PXN 0 GDR 1\n\
         n1:10:20 [0] NCCL INFO 16 coll channels, 0 collnet channels, 0 nvls channels, 16 p2p channels, 2 p2p channels per peer\n\
         n1:10:20 [0] NCCL INFO AllReduce: 1048576 Bytes -> Algo 1 proto 2 time 120.0\n\
         n1:10:20 [0] NCCL INFO AllReduce: 2097152 Bytes -> Algo RING proto LL128 channel{Lo..Hi}={0..15}\n\
         n1:10:20 [0] NCCL WARN NET/IB : Got completion from peer 10.0.0.2<1> with status=12 opcode=0 len=0 vendor err 129\n");
    let facts = &read.facts;
    assert_eq!(facts.version.as_ref().unwrap().value, "2.21");
    assert_eq!(facts.devices.as_ref().unwrap().value[1], ("mlx5_bond_1:1".to_owned(), "RoCE".to_owned()));
    assert_eq!((facts.ranks.as_ref().unwrap().value, facts.nodes.as_ref().unwrap().value), (16, 2));
    assert_eq!(
        (facts.channels.as_ref().unwrap().value, facts.nvls_channels.as_ref().unwrap().value),
        (16, 0)
    );
    assert_eq!((facts.gdr_links, facts.plain_links.as_ref().unwrap().value), (1, 1));
    assert_eq!(
        (facts.gdr.as_ref().unwrap().value, facts.path.as_ref().unwrap().value.as_str()),
        (true, "PHB")
    );
    assert_eq!(facts.tuned[&(1 << 20)], ("ring".to_owned(), "simple".to_owned()));
    assert_eq!(facts.tuned[&(2 << 20)], ("ring".to_owned(), "ll128".to_owned()));
    assert_eq!(facts.retry_exceeded.as_ref().unwrap().value, 1);
    assert_eq!(facts.var("NCCL_IB_HCA"), Some("mlx5_0,mlx5_1"));
    assert!(read.unread.is_empty());
}

const TOPOLOGY: &str = r#"<system version="1">
  <cpu numaid="0" arch="x86_64" vendor="GenuineIntel">
    <pci busid="0000:10:00.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">
      <pci busid="0000:11:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16"><gpu dev="0" sm="90" rank="0" gdr="1"/></pci>
      <pci busid="0000:12:00.0" class="0x020000" link_speed="16.0 GT/s PCIe" link_width="16">
        <nic><net name="mlx5_0" dev="0" speed="400000" port="1" gdr="1"/></nic>
      </pci>
    </pci>
    <pci busid="0000:20:00.0" class="0x020000" link_speed="32.0 GT/s PCIe" link_width="16">
      <nic><net name="mlx5_1" dev="1" speed="400000" port="1" gdr="0"/></nic>
    </pci>
  </cpu>
</system>
"#;

#[test]
fn a_topology_tells_nics_and_their_pcie_links() {
    for text in [
        TOPOLOGY.to_owned(),
        format!("some line\n{TOPOLOGY}1048576 262144 float sum -1 120.0 8.74 16.38 0\n"),
    ] {
        let nets = log(&text).facts.nets;
        assert_eq!(
            (nets[0].name.as_str(), nets[0].gbps, nets[0].gdr, nets[0].near_gpu),
            ("mlx5_0", 400.0, Some(true), true)
        );
        assert_eq!(
            (nets[0].pcie, nets[1].pcie, nets[1].near_gpu, nets[1].gdr),
            (Some(24.0), Some(48.0), false, Some(false))
        );
    }
}

#[test]
fn a_topology_of_endless_depth_is_refused() {
    let depth = 100_000;
    for open in ["<pci>", "<pci b=\"/>\">", "<!-- </pci></pci> --><pci>"] {
        let text = format!("<system>{}{}</system>\n", open.repeat(depth), "</pci>".repeat(depth));
        for text in [text.clone(), format!("a line\n{text}")] {
            assert!(log(&text).unread[0].why.contains("200 elements"), "{:?}", log(&text).unread);
        }
    }
    let json = format!("{{\"results\": {}{}}}", "[".repeat(depth), "]".repeat(depth));
    assert!(log(&json).unread[0].why.contains("breaks off"));
}

#[test]
fn perftest_and_counters_are_read() {
    let read = log(
        "initializing CUDA\n                    RDMA_Write BW Test\n Dual-port       : OFF\t\tDevice         : mlx5_3\n Number of qps   : 4\t\tTransport type : IB\n \
         #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n 65536      5000             46739.0            46000.0 \
         0.7\n------\n np_cnp_sent: 1234\n rx_prio3_pause 0\n",
    );
    let test = &read.perftest[0];
    assert_eq!(
        (test.device.as_deref(), test.qps, test.gpu_memory, test.bytes),
        (Some("mlx5_3"), Some(4), true, 65536)
    );
    assert!((test.gbps - 46000.0 * 1.048_576 * 8e-3).abs() < 1e-6);
    let counters: Vec<_> = read.facts.counters.iter().map(|told| told.value.clone()).collect();
    assert_eq!(counters, [("np_cnp_sent".to_owned(), 1234), ("rx_prio3_pause".to_owned(), 0)]);
}

#[test]
fn a_log_without_a_name_tells_its_collective_and_its_ranks() {
    let rows: String = (26..=30)
        .map(|bits| {
            let (bytes, algbw) = (1u64 << bits, 170.0);
            format!(
                "{bytes} {} float sum -1 {:.1} {algbw:.2} {:.2} 0\n",
                bytes / 4,
                bytes as f64 / algbw / 1e3,
                algbw * 1.875
            )
        })
        .collect();
    let request = Request {
        logs: vec![Input {
            name: "x".into(),
            text: NOW.replacen("     time   algbw   busbw  #wrong\n", "\n", 1) + &rows,
        }],
        cluster: Some("8 h100, 8x400G".into()),
        ..Request::default()
    };
    let told = answer(&request).unwrap();
    assert_eq!(told.test, Some(Test::Of(Kind::AllReduce)));
    assert!(told.cluster.starts_with("2 x 8 H100"), "{}", told.cluster);
}

#[test]
fn what_is_missing_is_said_and_nothing_is_guessed() {
    let ask = |text: String, cluster: Option<&str>| {
        let logs = vec![Input { name: "x".into(), text }];
        answer(&Request { logs, cluster: cluster.map(str::to_owned), ..Request::default() })
    };
    let row =
        format!("{NOW}1073741824 268435456 float none -1 5000.0 214.75 187.9 0 5000.0 214.75 187.9 0\n");
    let told = ask(row.clone(), None).unwrap();
    assert_eq!((told.verdict, told.exit_code), (busbw::Verdict::CannotTell, 0));
    assert!(told.missing[0].contains("--collective"), "{:?}", told.missing);
    let small = format!("{NOW}1048576 262144 float sum -1 120.0 8.74 16.38 0 121.0 8.67 16.25 0\n");
    let told = ask(small, Some("2 nodes, 8 h100, 8x400G")).unwrap();
    assert!(told.missing[0].contains("sizes from 64 MiB on"), "{:?}", told.missing);
    let error = ask("nothing here\n".into(), None).unwrap_err();
    assert!(error.text.contains("expected a row of nccl-tests"), "{}", error.text);
}

/// Logs to damage, one of each format.
fn originals() -> Vec<String> {
    let row = "1073741824 268435456 float sum -1 5000.0 214.75 402.6 0 5000.0 214.75 402.6 0\n";
    vec![
        format!("# Collective test starting: all_reduce_perf\n#  Rank  0 Group  0 Pid   1 on n1 device  0 [0x1b] NVIDIA H100 80GB HBM3\n{NOW}{row}"),
        format!("[1,0]<stdout>:{row}n1:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:1<0>\nn1:1:2 [0] NCCL INFO comm 0x1 rank 0 nRanks 16 nNodes 2 localRanks 8 localRank 0\nn1:1:2 [0] NCCL INFO Channel 01/0 : 8[0] -> 0[0] via NET/IB/0/GDRDMA\nn1:1:2 [0] NCCL INFO AllReduce: 1073741824 Bytes -> Algo 1 proto 2 time 1\n"),
        "{\"args\": [\"all_reduce_perf\"], \"env\": [\"NCCL_PROTO=LL\"], \"results\": [{\"size\": 1073741824, \"out_of_place\": {\"time\": 5000.0, \"alg_bw\": 214.7, \"bus_bw\": 402.6}}]}".to_owned(),
        TOPOLOGY.to_owned() + row,
        format!("RDMA_Write BW Test\n Number of qps : 1\n #bytes #iterations BW peak[Gb/sec] BW average[Gb/sec] MsgRate[Mpps]\n 65536 5000 392.0 391.0 0.7\n{NOW}{row}"),
    ]
}

/// What is put into a log in place of a piece of it.
const SPLINTERS: [&str; 16] = [
    "",
    "0",
    "-1",
    "99999999999999999999",
    "1e308",
    "nan",
    "é",
    "\u{0}",
    "\n",
    " ",
    "#",
    "{",
    "<system>",
    "[",
    "NCCL INFO ",
    "NCCL_ALGO=x",
];

proptest! {
    // 2,000 damaged logs; PROPTEST_CASES=1000000 tries more.
    #![proptest_config(ProptestConfig { cases: std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(0).max(2000), ..ProptestConfig::default() })]
    #[test]
    fn no_damaged_log_causes_a_panic(
        which in 0usize..5,
        damage in prop::collection::vec((any::<prop::sample::Index>(), 0usize..40, 0usize..SPLINTERS.len()), 1..6),
        cluster in prop::sample::select(vec![None, Some("2 nodes, 8 h100, 8x400G, roce"), Some("1 nodes, 8 a100"), Some("8 gpus")]),
    ) {
        let mut text = originals()[which].clone();
        for (at, length, splinter) in damage {
            let start = at.index(text.len().max(1));
            let start = (0..=start.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            let end = (start + length).min(text.len());
            let end = (end..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
            text.replace_range(start..end, SPLINTERS[splinter]);
        }
        let logs = vec![Input { name: "x".into(), text }];
        if let Ok(told) = answer(&Request { logs, cluster: cluster.map(str::to_owned), ..Request::default() }) {
            busbw::text(&told);
        }
    }
}
