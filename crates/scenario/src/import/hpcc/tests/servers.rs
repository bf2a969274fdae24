//! Servers of SimAI's topology files.

use super::*;
use crate::import;
use finding::Finding;

/// Two servers of two GPUs, each with an NVSwitch, two ToRs (one per rail) and two spines.
pub(super) const RAILS: &str = "10 2 2 4 12 H100\n4 5 6 7 8 9\n\
    0 4 2880Gbps 0.000025ms 0\n0 6 400Gbps 0.0005ms 0\n1 4 2880Gbps 0.000025ms 0\n1 7 400Gbps 0.0005ms 0\n\
    2 5 2880Gbps 0.000025ms 0\n2 6 400Gbps 0.0005ms 0\n3 5 2880Gbps 0.000025ms 0\n3 7 400Gbps 0.0005ms 0\n\
    6 8 400Gbps 0.0005ms 0\n6 9 400Gbps 0.0005ms 0\n7 8 400Gbps 0.0005ms 0\n7 9 400Gbps 0.0005ms 0\n";

fn fabric(text: &str) -> Result<(String, Vec<Finding>), Finding> {
    import::fabric("topo", text).expect("a topology")
}

fn laid(text: &str) -> crate::Checked {
    let (toml, _) = fabric(text).unwrap();
    let job = "[[workload]]\ncollective = { kind = \"all-reduce\", bytes = \"1MB\" }\n";
    crate::check(&Source::new("t.toml", toml + job), &[]).unwrap()
}

#[test]
fn gpus_get_nvlink_and_the_ports_of_their_nics() {
    let (toml, warnings) = fabric(RAILS).unwrap();
    assert!(warnings.is_empty());
    assert!(toml.contains(
        "gpus = 2\nnics = 2\nports-per-nic = 1\nnvlink = { rate = \"2880Gbps\", delay = \"50ns\" }"
    ));
    let plan = laid(RAILS).plan;
    let names: Vec<_> = (0..4).map(|host| plan.fabric.host_name(HostId(host))).collect();
    assert_eq!(names, ["s0p0", "s0p1", "s1p0", "s1p1"], "port g of a server is that of its GPU g");
    let tor = |host| plan.fabric.name(plan.fabric.attachment(HostId(host))).to_owned();
    assert_eq!([tor(0), tor(1), tor(2), tor(3)], ["n6", "n7", "n6", "n7"]);
}

#[test]
fn two_nic_links_of_a_gpu_are_two_ports() {
    let dual = RAILS
        .replacen("12 H100", "16 H100", 1)
        .replace("0 6 400Gbps 0.0005ms 0\n", "0 6 200Gbps 0.0005ms 0\n0 7 200Gbps 0.0005ms 0\n")
        .replace("1 7 400Gbps 0.0005ms 0\n", "1 6 200Gbps 0.0005ms 0\n1 7 200Gbps 0.0005ms 0\n")
        .replace("2 6 400Gbps 0.0005ms 0\n", "2 6 200Gbps 0.0005ms 0\n2 7 200Gbps 0.0005ms 0\n")
        .replace("3 7 400Gbps 0.0005ms 0\n", "3 6 200Gbps 0.0005ms 0\n3 7 200Gbps 0.0005ms 0\n");
    let plan = laid(&dual).plan;
    assert_eq!(plan.fabric.hosts(), 8);
    assert!(fabric(&dual).unwrap().0.contains("nics = 2\nports-per-nic = 2"));
    assert_eq!(plan.fabric.uplink(HostId(0)).rate, Rate::from_gbps(200));
}

#[test]
fn flows_between_gpus_take_the_ports_of_their_nics() {
    // GPUs 0 and 2 have the ToR n6 in common, 1 and 3 the ToR n7.
    let got = run(RAILS, "2\n0 2 3 100 1000 2\n1 3 3 100 1000 2\n", None).unwrap();
    assert_eq!(got.warnings, [""; 0]);
    assert!(
        got.toml.contains("from = \"s0p0\", to = \"s1p0\"")
            && got.toml.contains("from = \"s0p1\", to = \"s1p1\"")
    );
    plan(&got);
    // NVLinks need no thresholds.
    let maps = MAPS.replace("100000000000", "400000000000");
    let marked = run(RAILS, "1\n0 2 3 100 1000 2\n", Some(&maps)).unwrap();
    assert_eq!(marked.warnings, [""; 0]);
    let uneven =
        run(&RAILS.replacen("1 7 400Gbps", "0 7 400Gbps", 1), "1\n0 2 3 100 1000 2\n", None).unwrap();
    assert!(
        uneven.warnings[0].ends_with("GPUs are hosts, and NVSwitches are switches"),
        "{:?}",
        uneven.warnings
    );
    plan(&uneven);
}

#[test]
fn uneven_servers_are_refused_with_line_and_column() {
    for (old, new, message) in [
        ("10 2 2", "10 3 2", "topo:1:4: 4 GPUs do not fill servers of 3"),
        ("1 7 400Gbps", "1 4 400Gbps", "this link to an NVSwitch differs from the first"),
        ("1 7 400Gbps", "0 7 400Gbps", "GPU 1 has 0 links to switches; the first GPU has 2"),
        ("1 7 400Gbps", "1 0 400Gbps", "topo:6:1: a link joins the GPUs 1 and 0"),
        ("4 5 6 7 8 9", "4 5 6 7 8 0", "the switch 0 stands between GPUs"),
    ] {
        let error = fabric(&RAILS.replacen(old, new, 1)).unwrap_err().located();
        assert!(error.contains(message), "{new}: {error}");
    }
}

#[test]
fn files_without_servers_make_a_fabric_of_hosts() {
    let (toml, _) = fabric(PLAIN).unwrap();
    assert!(toml.contains("[topology.links]") && !toml.contains("[server]"));
    assert!(import::fabric("s.toml", "[topology.leaf-spine]\nleaves = 2\n").is_none());
    assert!(import::fabric("s.toml", "2 3\n").is_none());
}
