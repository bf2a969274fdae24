//! Damaged files never cause a panic, and what comes out of them is a scenario or an error.
//!
//! `PROPTEST_CASES=1000000 cargo test -p site --test stories damage` makes a million.

use crate::common::{GOOD, file, site};
use proptest::prelude::*;
use proptest::test_runner::Config;
use site::{Input, import, text};

/// A small file of each kind.
fn seeds() -> Vec<Input> {
    let mut all = site();
    all.truncate(1);
    let more = [
        ("pg.ini", "# speed cable size xon xoff threshold xon_offset\n100000 5m 1248 2288 53248 -3 2288\n"),
        (
            "llr.ini",
            "speed cable outstanding_frames outstanding_bytes replay_timer\n400000 5m 115 58768 5000\n",
        ),
        ("ecn.txt", "/sys/class/net/e/ecn/roce_rp/rpg_gd:11\nrpg_time_reset 300\n"),
        ("qos.txt", "Priority trust state: dscp\nPFC configuration:\n priority 0 1 2 3\n enabled 0 0 0 1\n"),
        ("mlx.txt", "Device type: ConnectX7\nConfigurations: Default Current Next\n RPG_GD_P1 11 11 11\n"),
        ("nccl.conf", "NCCL_IB_TC=96\nNCCL_IB_TIMEOUT=20\n"),
        (
            "lldp.txt",
            "LocalPort  RemoteDevice  RemotePortID\n---\nEthernet0  host1  eth0\nEthernet4  host2  eth0\n",
        ),
        (
            "lldp2.txt",
            "LLDP neighbors:\nInterface: Ethernet0, via: LLDP\n SysName: host1\n PortID: ifname eth0\n",
        ),
        (
            "keys.txt",
            "lldp.Ethernet0.via=LLDP\nlldp.Ethernet0.chassis.name=host1\nlldp.Ethernet0.port.ifname=eth0\n",
        ),
        (
            "ars.json",
            "{\"ARS_PROFILE\": {\"p\": {\"default_ars_object\": \"o\", \"max_flows\": \"512\", \"past_load_weight\": \"1\"}},\n\
             \"ARS_OBJECT\": {\"o\": {\"assign_mode\": \"per_packet_quality\", \"max_flows\": \"64\"}}, \"ARS_INTERFACES\": {\"Ethernet0\": {\"scaling_factor\": \"7\"}},\n\
             \"SWITCH_HASH\": {\"GLOBAL\": {\"ecmp_hash\": [\"SRC_IP\"], \"ecmp_hash_algorithm\": \"XOR\"}}, \"FG_NHG\": {\"g\": {\"bucket_size\": \"60\"}},\n\
             \"DEVICE_METADATA\": {\"localhost\": {\"hwsku\": \"ACS-SN5600\", \"type\": \"LeafRouter\"}}, \"PORT\": {\"Ethernet0\": {\"speed\": \"400000\"}}}\n",
        ),
        (
            "c.csv",
            "side_a_device,side_a_name,side_b_device,side_b_name,length\nleaf1,1,host1,1,5m\nleaf1,2,host2,1,\"5\"\n",
        ),
        (
            "c.dot",
            "graph g { a:1 -- \"b\":\"2\" [speed=\"100G\", length=\"3m\"]; a -> c /* x */ a [function=\"leaf\"] }\n",
        ),
        (
            "ib.txt",
            "switchguid=0x1\nSwitch\t4 \"S-1\"\t# \"sw;x\" base\n[1]\t\"H-2\"[1](2)\t# \"n1 mlx\" lid 2 4xNDR\n[2]\t\"H-3\"[1](3)\t# \"n2\" 2xEDR\n\
             Ca\t1 \"H-2\"\t# \"n1 mlx\"\nCa\t1 \"H-3\"\t# \"n2 mlx\"\n",
        ),
        (
            "lab.yml",
            "name: x\ntopology:\n  defaults: &d {kind: linux}\n  nodes:\n    a: *d\n    b: {kind: ceos}\n    c: {}\n  links:\n  - endpoints: [\"a:1\", \"b:1\"]\n  - endpoints: [\"c:1\", \"b:2\"]\n",
        ),
        (
            "ig.yaml",
            "devices:\n- name: d\n  components:\n  - {name: xpu, count: 2, choice: xpu}\ninstances:\n- {name: n, device: d, count: 3}\nlinks:\n- {name: l, bandwidth: {gigabits_per_second: 100}}\n\
             edges:\n- {ep1: {instance: 'n[0:3]', component: 'xpu[0:2:1]'}, ep2: {instance: n, component: xpu}, scheme: ring, link: l}\nconnections:\n- n.0.xpu.0.l.n.1.xpu.0\n",
        ),
        (
            "nv.yaml",
            "- set:\n    system: {hostname: l}\n    interface:\n      swp1-3: {link: {speed: 400G}}\n    qos: {roce: {mode: lossy}}\n",
        ),
    ];
    all.extend(more.map(|(name, text)| file(name, text)));
    all
}

/// Words that a change puts into a file.
const WORDS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    "\"",
    ":",
    ",",
    "|",
    "-",
    "--",
    "\n",
    "\t",
    " ",
    "#",
    "&a",
    "*a",
    "<<",
    "- ",
    "0",
    "-1",
    "99999999999999999999",
    "1e400",
    "NaN",
    "null",
    "\u{1b}[2J",
    "\u{202e}",
    "é",
    "\u{0}",
    "3-4",
    "7-0",
    "Ethernet0",
    "40m",
    "PORT",
    "QUEUE|",
    "0:0:0",
    "[5:1]",
    "many2many",
    "18446744073709551615",
];

/// One change of a file: a cut, a doubled part, a word in the middle, or bytes that are lost.
fn damaged(text: &str, kind: u8, at: u32, length: u16, word: usize) -> String {
    let bounds: Vec<usize> = text.char_indices().map(|(i, _)| i).chain([text.len()]).collect();
    let place = bounds[at as usize % bounds.len()];
    let end = bounds.get(at as usize % bounds.len() + usize::from(length)).copied().unwrap_or(text.len());
    let word = WORDS[word % WORDS.len()];
    match kind % 5 {
        0 => text[..place].to_owned(),
        1 => format!("{}{}{}", &text[..end], &text[place..end], &text[end..]),
        2 => format!("{}{word}{}", &text[..place], &text[place..]),
        3 => format!("{}{}", &text[..place], &text[end..]),
        _ => format!("{}{word}{}", &text[..place], &text[end..]),
    }
}

proptest! {
    #![proptest_config(Config { failure_persistence: None, ..Config::default() })]

    #[test]
    fn damaged_files_cause_no_panic(
        which in 0usize..64,
        changes in prop::collection::vec((any::<u8>(), any::<u32>(), 0u16..200, any::<usize>()), 1..4),
        other in 0usize..64,
    ) {
        thread_local!(static SEEDS: Vec<Input> = seeds());
        SEEDS.with(|seeds| {
            let mut one = seeds[which % seeds.len()].clone();
            for (kind, at, length, word) in changes {
                one.text = damaged(&one.text, kind, at, length, word);
            }
            // A whole file beside the damaged one, so that cables and switches meet.
            let second = seeds[other % seeds.len()].clone();
            if let Ok(answer) = import(&[one, second]) {
                prop_assert!(toml::from_str::<toml::Table>(&answer.toml).is_ok(), "{}", answer.toml);
                let shows_escape = text(&answer).contains('\u{1b}');
                prop_assert!(!shows_escape);
            }
            Ok(())
        })?;
    }
}

#[test]
fn the_seeds_are_whole() {
    for seed in seeds() {
        let answer = import(&[seed.clone(), file("x/config_db.json", GOOD.config())]).unwrap();
        let of =
            |rows: &[site::Row]| rows.iter().filter(|row| row.file == seed.name).cloned().collect::<Vec<_>>();
        let (read, ignored) = (of(&answer.read), of(&answer.ignored));
        let refused = ignored.iter().find(|row| row.field == site::WHOLE_FILE || row.field == "a line");
        // Link-level retry is all that is recognised and not read.
        let is_known = !read.is_empty() || ignored.iter().any(|row| row.what.contains("link-level retry"));
        let is_two = seed.name == "site/tor1/config_db.json";
        assert!(refused.is_none() && is_known || is_two, "{}: {read:#?} {ignored:#?}", seed.name);
    }
}
