//! Cabling and graphs of other tools, and settings of NICs.

use crate::common::{self, GOOD, accepted, file, of_rule, row, site, value};
use scenario::{Source, check};
use site::{Input, import};

/// Two leaves and two hosts each as a list of cables in one of the formats.
fn fabric(name: &str, text: &str) -> site::Answer {
    let answer = accepted(&[file(name, text)]);
    assert_eq!((answer.hosts, answer.switches), (4, 3), "{name}\n{}", answer.toml);
    assert_eq!(answer.links, 6, "{name}\n{}", answer.toml);
    answer
}

#[test]
fn one_fabric_in_many_formats() {
    let cables = [
        ("host1", "eth0", "leaf1", "swp1"),
        ("host2", "eth0", "leaf1", "swp2"),
        ("host3", "eth0", "leaf2", "swp1"),
        ("host4", "eth0", "leaf2", "swp2"),
        ("leaf1", "swp9", "spine1", "swp1"),
        ("leaf2", "swp9", "spine1", "swp2"),
    ];
    type Cable<'a> = (&'a str, &'a str, &'a str, &'a str);
    let lines = |line: &dyn Fn(Cable<'_>) -> String| {
        cables.iter().map(|cable| line(*cable)).collect::<Vec<_>>().join("\n")
    };
    let netbox = lines(&|(a, ap, b, bp)| format!("{a},{ap},{b},{bp},connected,3,m"));
    let answer = fabric(
        "cables.csv",
        &format!("side_a_device,side_a_name,side_b_device,side_b_name,status,length,length_unit\n{netbox}\n"),
    );
    assert_eq!(value(&answer, &["topology", "links", "links", "0", "3"]).unwrap().as_str(), Some("15000ps"));
    assert_eq!(row(&answer.ignored, "status").values, 6);
    let lab = lines(&|(a, ap, b, bp)| format!("{a},{ap},{b},{bp},400000"));
    let answer = fabric("links.csv", &format!("StartDevice,StartPort,EndDevice,EndPort,BandWidth\n{lab}\n"));
    assert_eq!(value(&answer, &["topology", "links", "links", "0", "2"]).unwrap().as_str(), Some("400Gbps"));
    let dot = lines(&|(a, ap, b, bp)| format!("  \"{a}\":\"{ap}\" -- \"{b}\":\"{bp}\" [speed=\"200G\"];"));
    let answer = fabric("plan.dot", &format!("graph \"plan\" {{ // cables\n{dot}\n}}\n"));
    assert_eq!(value(&answer, &["topology", "links", "links", "0", "2"]).unwrap().as_str(), Some("200Gbps"));
    let clab = lines(&|(a, ap, b, bp)| format!("    - endpoints: [\"{a}:{ap}\", \"{b}:{bp}\"]"));
    let kinds = "leaf1: {kind: ceos}\n    leaf2: {kind: ceos}\n    spine1: {kind: ceos}";
    let hosts = lines(&|(a, ..)| {
        if a.starts_with("host") { format!("    {a}: {{kind: linux}}") } else { String::new() }
    });
    let answer = fabric(
        "lab.clab.yml",
        &format!("name: lab\ntopology:\n  nodes:\n    {kinds}\n{hosts}\n  links:\n{clab}\n"),
    );
    assert!(
        answer.assumed.iter().any(|text| text.contains("6 links without a rate")),
        "{:?}",
        answer.assumed
    );
}

#[test]
fn a_subnet_of_infiniband_has_its_rates() {
    let text = "#\n# Topology file\n\nvendid=0x2c9\nswitchguid=0x10(10)\n\
        Switch\t40 \"S-0010\"\t\t# \"MF0;ibsw1:MQM8700/U1\" enhanced port 0 lid 1 lmc 0\n\
        [1]\t\"H-0021\"[1](22) \t\t# \"node1 mlx5_0\" lid 2 4xHDR\n\
        [2]\t\"H-0031\"[1](32) \t\t# \"node2 mlx5_0\" lid 3 4xHDR\n\n\
        caguid=0x21\nCa\t1 \"H-0021\"\t\t# \"node1 mlx5_0\"\n[1](22) \t\"S-0010\"[1]\t\t# lid 2 lmc 0 \"MF0;ibsw1:MQM8700/U1\" lid 1 4xHDR\n\n\
        caguid=0x31\nCa\t1 \"H-0031\"\t\t# \"node2 mlx5_0\"\n[1](32) \t\"S-0010\"[2]\t\t# lid 3 lmc 0 \"MF0;ibsw1:MQM8700/U1\" lid 1 4xHDR\n";
    let answer = accepted(&[file("ib.txt", text)]);
    assert_eq!((answer.hosts, answer.switches, answer.links), (2, 1, 2), "{}", answer.toml);
    assert!(answer.toml.contains("\"ibsw1\"") && answer.toml.contains("\"200Gbps\""), "{}", answer.toml);
}

#[test]
fn tables_of_lldp_join_switches_with_their_configuration() {
    let config = r#"{ "DEVICE_METADATA": { "localhost": { "hostname": "leaf1" } },
        "PORT": { "Ethernet0": { "alias": "etp1", "speed": "100000" }, "Ethernet4": { "alias": "etp2", "speed": "200000" } } }"#;
    let table = "admin@leaf1:~$ show lldp table\n\
        Capability codes: (R) Router, (B) Bridge, (O) Other\n\
        LocalPort    RemoteDevice       RemotePortID    Capability    RemotePortDescr\n\
        -----------  -----------------  --------------  ------------  -----------------\n\
        etp1         host1              e4:1d:2d:00:00  O             eth2\n\
        Ethernet4    host2.dc.example   eth3            O             eth3\n\
        --------------------------------------------------\nTotal entries displayed:  2\n";
    let answer = accepted(&[file("x/leaf1/config_db.json", config), file("x/lldp.txt", table)]);
    assert_eq!((answer.hosts, answer.links), (2, 2), "{}", answer.toml);
    assert!(
        answer.toml.contains("[\"host1\", \"leaf1\", \"100Gbps\""),
        "the alias is the port\n{}",
        answer.toml
    );
    assert!(answer.toml.contains("\"200Gbps\""), "{}", answer.toml);
    let blocks = "admin@leaf1:~$ lldpcli show neighbors\nLLDP neighbors:\nInterface:    Ethernet0, via: LLDP\n  \
        SysName:      host1\n    PortID:       ifname eth2\nInterface:    Ethernet4, via: LLDP\n    SysName:      host2\n";
    assert_eq!(accepted(&[file("x/leaf1/config_db.json", config), file("x/lldp.txt", blocks)]).links, 2);
}

#[test]
fn two_files_with_two_cables_for_one_port_contradict() {
    let mut files = site();
    files.push(file(
        "site/cables.csv",
        "device_a,port_a,device_b,port_b\ntor1,Ethernet0,gpu9,eth0\ntor1,Ethernet8,gpu2,eth0\n",
    ));
    let answer = accepted(&files);
    assert_eq!(of_rule(&answer, "two-cables").len(), 1, "{:?}", answer.contradicts);
    assert_eq!(answer.links, 6, "the list and the neighbours describe one cable of Ethernet8");
}

/// Two servers of two GPUs, a leaf each, one spine, as the newest version has it.
const GRAPH: &str = "
name: small
devices:
  - name: server
    components:
      - {name: xpu, count: 2, choice: xpu}
      - {name: nic, count: 2, choice: nic}
      - {name: nvsw, count: 1, choice: switch}
    links:
      - {name: pcie}
      - name: nvlink
        physical: {bandwidth: {choice: gigabytes_per_second, gigabytes_per_second: 450}}
    edges:
      - {ep1: {component: xpu}, ep2: {component: nvsw}, scheme: many2many, link: nvlink}
      - {ep1: {component: xpu}, ep2: {component: nic}, scheme: one2one, link: pcie}
  - name: box
    components:
      - {name: port, count: 4, choice: port}
    links: []
    edges: []
instances:
  - {name: host, device: server, count: 2}
  - {name: leaf, device: box, count: 2}
  - {name: spine, device: box, count: 1}
links:
  - name: down
    physical: {bandwidth: {choice: gigabits_per_second, gigabits_per_second: 100}, latency: {choice: ns, ns: 50}}
  - name: up
    physical: {bandwidth: {choice: gigabytes_per_second, gigabytes_per_second: 50}}
edges:
  - {ep1: {instance: 'host[0]', component: nic}, ep2: {instance: 'leaf[0]', component: 'port[0:2]'}, scheme: one2one, link: down}
  - {ep1: {instance: 'host[1]', component: nic}, ep2: {instance: 'leaf[1]', component: 'port[0:2]'}, scheme: one2one, link: down}
  - {ep1: {instance: 'leaf[0:2]', component: 'port[3]'}, ep2: {instance: spine, component: 'port[0:2]'}, scheme: one2one, link: up}
";

#[test]
fn graphs_of_infragraph_become_fabrics_with_servers() {
    let answer = accepted(&[file("graph.yaml", GRAPH)]);
    assert_eq!((answer.hosts, answer.switches, answer.links), (2, 3, 6), "{}", answer.toml);
    assert_eq!(value(&answer, &["server", "gpus"]).unwrap().as_integer(), Some(2));
    assert_eq!(value(&answer, &["server", "nvlink", "rate"]).unwrap().as_str(), Some("3600Gbps"));
    assert!(answer.toml.contains("\"400Gbps\"") && answer.toml.contains("\"50000ps\""), "{}", answer.toml);
    assert!(row(&answer.ignored, "an edge in a device").what.contains("PCIe"));
    let json = serde_json::json!({ "devices": [{ "name": "d", "components": [{ "name": "xpu", "choice": "xpu", "count": 1 }] }],
        "instances": [{ "name": "n", "device": "d", "count": 4 }], "links": [{ "name": "l" }],
        "edges": [{ "ep1": { "instance": "n[0:4]", "component": "xpu[0]" }, "ep2": { "instance": "n[0:4]", "component": "xpu[0]" },
        "scheme": "ring", "link": "l" }] });
    let answer = accepted(&[file("ring.json", json.to_string())]);
    assert_eq!(
        (answer.hosts, answer.switches, answer.links),
        (4, 0, 4),
        "a ring joins neighbours\n{}",
        answer.toml
    );
}

#[test]
fn a_fabric_comes_back_from_infragraph() {
    for scenario in [
        "[topology.leaf-spine]\nleaves = 3\nspines = 2\nhosts-per-leaf = 2\nuplink-rate = \"800Gbps\"\n",
        "[topology.fat-tree]\n",
    ] {
        let text = format!("{scenario}[[workload]]\npermutation = {{}}\n");
        let checked = check(&Source::new("f.toml", text), &[]).unwrap();
        let graph = site::infragraph::graph(&checked);
        let answer = accepted(&[file("f.yaml", graph)]);
        let back = check(&Source::new("b.toml", answer.toml.clone()), &[]).unwrap();
        let count = |checked: &scenario::Checked| {
            let fabric = &checked.plan.fabric;
            let mut links: Vec<_> = fabric.links().iter().map(|link| (link.rate, link.delay)).collect();
            links.sort();
            (fabric.hosts(), fabric.switch_count(), links)
        };
        assert_eq!(count(&checked), count(&back), "{}", answer.toml);
    }
}

#[test]
fn settings_of_nics_are_those_of_dcqcn() {
    let mut files: Vec<Input> = site();
    files.push(file(
        "site/gpu1/ecn.txt",
        "/sys/class/net/eth0/ecn/roce_rp/rpg_time_reset:55\n/sys/class/net/eth0/ecn/roce_rp/rpg_gd:11\n\
         /sys/class/net/eth0/ecn/roce_rp/enable/3:1\n/sys/class/net/eth0/ecn/roce_np/cnp_dscp:48\n",
    ));
    files.push(file("site/gpu1/traffic_class", "Global tclass=96\n"));
    files.push(file("site/gpu1/min_time_between_cnps", "2\n"));
    files.push(file("site/gpu1/mlnx_qos.txt",
        "DCBX mode: OS controlled\nPriority trust state: pcp\nCable len: 7\nPFC configuration:\n\tpriority    0   1   2   3   4   5   6   7\n\
         \tenabled     0   0   0   0   1   0   0   0\ntc: 0 ratelimit: unlimited, tsa: vendor\n"));
    files.push(file("site/gpu2/mlxconfig.txt",
        "Device #1:\n----------\nDevice type:    ConnectX7\nConfigurations:      Default    Current    Next Boot\n\
         \tRPG_AI_RATE_P1    5    10    20\n*\tCLAMP_TGT_RATE_P1   False(0)   True(1)   True(1)\n\tNUM_OF_VFS   0  0  0\n\
         \tRPG_TIME_RESET_P1   300  300  300\n"));
    let answer = accepted(&files);
    let nic = value(&answer, &["nic"]).unwrap();
    let dcqcn = &nic["congestion"]["dcqcn"];
    assert_eq!(nic["model"].as_str(), Some("connectx-7"));
    assert_eq!(nic["cnp-interval"].as_str(), Some("2us"));
    assert_eq!(dcqcn["rate-increase-timer"].as_str(), Some("55us"), "the first file counts");
    assert_eq!(
        (dcqcn["additive-increase"].as_str(), dcqcn["clamp-target-rate"].as_bool()),
        (Some("10Mbps"), Some(true))
    );
    let rules = common::rules(&answer);
    assert_eq!(rules, ["neighbours", "nics-differ", "trust"], "{:#?}", answer.contradicts);
    assert_eq!(nic["cnp-dscp"].as_integer(), Some(48));
}

#[test]
fn nvue_says_rates_and_roce() {
    let leaf = "- header:\n    model: x\n- set:\n    system:\n      hostname: leaf1\n    interface:\n      swp1-2:\n        type: swp\n        link:\n          speed: 400G\n\
        \x20   qos:\n      roce:\n        mode: lossless\n    router:\n      adaptive-routing:\n        enable: on\n";
    let answer = accepted(&[
        file("n/leaf1.yaml", leaf),
        file("n/cables.csv", "device_a,port_a,device_b,port_b\nleaf1,swp1,host1,e\nleaf1,swp2,host2,e\n"),
    ]);
    assert!(
        answer.toml.contains("\"400Gbps\"") && answer.toml.contains("kmin = \"150000B\""),
        "{}",
        answer.toml
    );
    assert_eq!(
        value(&answer, &["scheme", "ars", "profile"]).unwrap().as_str(),
        Some("spectrum"),
        "{}",
        answer.toml
    );
    let again = accepted(&[file("n/leaf1.yaml", leaf), file("o/leaf1.yaml", leaf)]);
    let of_second = |rows: &[site::Row]| {
        rows.iter().filter(|row| row.file == "o/leaf1.yaml").map(|row| row.field.clone()).collect::<Vec<_>>()
    };
    assert_eq!(
        (of_second(&again.read), of_second(&again.ignored)),
        (vec![], vec![site::WHOLE_FILE.to_owned()])
    );
}

#[test]
fn every_line_of_lldp_is_in_one_of_the_lists() {
    let plain = "-------\nLLDP neighbors:\n-------\nInterface:    swp1, via: LLDP, RID: 1, Time: 0 day, 00:05:49\n  Chassis:\n    ChassisID:    mac 00:01:02:03:04:05\n    \
                 SysName:      host1\n    Capability:   Bridge, on\n  Port:\n    PortID:       ifname eth0\n    TTL:          120\n\
                 Interface:    swp2, via: LLDP, RID: 2, Time: 0 day, 00:05:49\n  Port:\n    PortID:       mac 00:01:02:03:04:06\n    PortDescr:    eth1\n";
    let keys = "lldp.swp1.via=LLDP\nlldp.swp1.chassis.name=host1\nlldp.swp1.port.ifname=eth1\nlldp.swp3.1.chassis.name=host3\nlldp.swp3.1.port.descr=eth2\n";
    let answer = accepted(&[file("l/leaf1/lldp.txt", plain), file("l/leaf2/lldp.txt", keys)]);
    assert_eq!((answer.hosts, answer.links), (2, 3), "{}", answer.toml);
    let values = |file: &str| -> usize {
        let rows = answer.read.iter().chain(&answer.ignored).filter(|row| row.file == file);
        rows.filter(|row| row.field != site::WHOLE_FILE).map(|row| row.values).sum()
    };
    // A neighbour is one row of several lines: two of the plain ones make a cable, and one has no name.
    assert_eq!(values("l/leaf1/lldp.txt"), 9, "{:#?} {:#?}", answer.read, answer.ignored);
    assert_eq!(values("l/leaf2/lldp.txt"), 3);
    assert!(row(&answer.ignored, "TTL").what.contains("no name and no port"));
    assert!(answer.ignored.iter().any(|row| row.field == "neighbour" && row.what.contains("no name")));
}

/// Lists of many cables between two switches are merged without comparing each line with all others, which would take minutes.
#[test]
fn long_lists_of_cables_are_read_at_once() {
    let lines: String =
        (0..20_000).map(|i| format!("leaf1,{},spine1,{}\n", i % 15_000, i % 16_000)).collect();
    let hosts = "leaf1,x,host1,e\nleaf1,y,host2,e\n";
    let csv = |extra: &str| format!("device_a,port_a,device_b,port_b\n{lines}{extra}");
    let answer = import(&[file("a.csv", csv(hosts)), file("b.csv", csv(""))]).unwrap();
    assert_eq!(answer.links, 15_002);
}

#[test]
fn lists_of_other_cables_are_named() {
    let answer = accepted(&[
        file("s/config_db.json", GOOD.config()),
        file("s/consoles.csv", "StartDevice,StartPort,EndDevice,Console_type\nc,1,d,ssh\n"),
        file("s/power.csv", "StartDevice,StartPort,EndDevice,EndPort,EndFeed\np,1,d,PSU1,A\n"),
    ]);
    let whole: Vec<&str> = answer
        .ignored
        .iter()
        .filter(|row| row.field == site::WHOLE_FILE)
        .map(|row| row.what.as_str())
        .collect();
    assert!(whole[0].contains("consoles") && whole[1].contains("power"), "{whole:?}");
}
