//! Golden tables: exact results of small, fast scenarios under every scheme. A difference means that simulation
//! results have changed. Review it as such, then rewrite the tables with `make golden`.

use rnic::{CongestionConfig, TransportConfig};
use schemes::{Golden, SchemeConfig};
use std::fmt::Write;
use std::path::PathBuf;

/// A fabric of four leaves and four spines at 100 Gb/s with two jobs: an all-reduce and an incast.
const FABRIC: &str = r#"
[topology.leaf-spine]
leaves = 4
spines = 4
hosts-per-leaf = 4
rate = "100Gbps"
delay = "1us"

[[workload]]
name = "all-reduce"
all-reduce = { bytes = "1MB", groups = "one-host-per-leaf" }

[[workload]]
name = "incast"
incast = { bytes = "100kB", receiver = "host3" }
"#;

/// Groups of routers, with the same two jobs.
const DRAGONFLY: &str = r#"
[topology.dragonfly]
groups = 4
routers-per-group = 4
hosts-per-router = 2
links-per-pair = 2
rate = "100Gbps"
delay = "1us"

[switch]
buffer = "2MB"

[[workload]]
name = "permutation"
permutation = { bytes = "1MB" }

[[workload]]
name = "incast"
incast = { bytes = "100kB", receiver = "host3" }
"#;

/// Two datacentres of six hosts, 20 us apart, with flows within and between them.
const DATACENTRES: &str = r#"
[topology.datacentres]
tors = 2
hosts-per-tor = 3
spines = 2
long-delay = "20us"
spine-rate = "100Gbps"
external-rate = "200Gbps"
long-rate = "400Gbps"

[switch]
buffer = "1MB"
ecn = { kmin = "20kB", kmax = "80kB" }

[switch-role.external]
buffer = "20MB"

[nic]
cnp-interval = "4us"

[[workload]]
poisson = { sizes = { fixed = "300kB" }, load = 0.9, count = 120 }
"#;

/// What acts at the edges of datacentres, or near their sources.
const EDGES: [(&str, &[&str]); 9] = [
    ("no edge", &[]),
    ("long-haul", &["switch-role.external.feedback.long-haul={interval='4us'}"]),
    (
        "long-haul full",
        &["switch-role.external.feedback.long-haul={notification='proactive',reaction='loop'}"],
    ),
    ("long-haul pause", &["switch-role.external.feedback.long-haul={notification='off',reaction='pause'}"]),
    ("direct-cnp", &["switch-role.tor.feedback.direct-cnp={interval='4us',beyond='10us',from-hosts=true}"]),
    ("annulus", &["switch-role.tor.feedback.annulus={queue='5kB'}", "nic.congestion.annulus={}"]),
    ("bicc", &["switch-role.external.feedback.bicc={credit='100kB'}"]),
    ("bicc switch", &["switch-role.external.feedback.bicc={per='switch',credit='500kB'}"]),
    ("fair-rate", &["switch-role.external.feedback.fair-rate={}"]),
];

/// Title of a block of rows, and settings that are a step or two away from the defaults.
type Setting = (&'static str, &'static [&'static str]);

/// Fabrics and jobs; the NICs' parts have settings of their own.
const SETTINGS: [Setting; 6] = [
    ("defaults", &[]),
    ("tight buffer", &["switch.buffer=1MB"]),
    ("lossy, tight buffer", &["switch.pfc=off", "switch.buffer=300kB"]),
    ("0.1 % of packets lost", &["links.loss=0.001"]),
    (
        "web search, 60 % load",
        &[
            "workload=[{poisson={sizes='web-search',clamp={max='300kB'},load=0.6,count=150,peers='cross-rack'}}]",
        ],
    ),
    (
        "a dead and a slow link",
        &["failure=[{random=1,at='100us'},{random=1,rate=0.1}]", "routing.detection=100us"],
    ),
];

fn table() -> String {
    let mut text = String::from(
        "setting                scheme           end us    p99 us  sent     retx  spurious  ooo    nack   cnp   pause  drops  timeouts  digest\n",
    );
    let modes = TransportConfig::all().filter_map(|mode| mode.golden());
    let controls = CongestionConfig::all().filter_map(|control| control.golden());
    for (setting, sets) in SETTINGS.into_iter().chain(modes).chain(controls) {
        for (name, scheme) in schemes(|golden| matches!(golden, Golden::LeafSpine(_))) {
            row(&mut text, setting, (&name, &scheme), FABRIC, sets);
        }
    }
    for (name, scheme) in schemes(|golden| matches!(golden, Golden::Dragonfly(_))) {
        row(&mut text, "Dragonfly", (&name, &scheme), DRAGONFLY, &[]);
    }
    for (edge, sets) in EDGES {
        row(&mut text, "two datacentres", (edge, "ecmp"), DATACENTRES, sets);
    }
    text
}

/// Names and settings of the rows on one kind of fabric.
fn schemes(on: fn(Golden) -> bool) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    for scheme in SchemeConfig::names() {
        let golden = SchemeConfig::named(scheme).expect("a scheme of the list").golden();
        let (Golden::LeafSpine(own) | Golden::Dragonfly(own)) = golden else { continue };
        for (name, keys) in own.iter().filter(|_| on(golden)) {
            let name = if name.is_empty() { scheme } else { name };
            rows.push(((*name).to_owned(), format!("{{ {scheme} = {{ {keys} }} }}")));
        }
    }
    rows
}

/// Adds the results of a fabric under a scheme.
fn row(text: &mut String, setting: &str, (name, scheme): (&str, &str), fabric: &str, sets: &[&str]) {
    let mut sets: Vec<String> = sets.iter().map(|s| (*s).to_owned()).collect();
    sets.push(format!("scheme={scheme}"));
    let source = scenario::Source::new("golden", fabric);
    let checked = scenario::check(&source, &sets);
    if checked.as_ref().is_err_and(|error| error.code == "unsuited") {
        return; // Such as a scheme that needs another NIC.
    }
    let prepared = lab::Prepared::by(|| checked);
    let run = lab::run(prepared.unwrap_or_else(|e| panic!("{setting}, {scheme}: {e:?}")));
    assert_eq!(run.outcome.violations, Vec::<String>::new(), "{setting}, {scheme}");
    let (s, d, c) = (&run.summary, &run.outcome.data, &run.outcome.control);
    let p99 = s.flows.fct_us.as_ref().map_or(0.0, |f| f.p99);
    let _ = writeln!(
        text,
        "{setting:<22} {name:<16} {:<9.2} {p99:<7.2} {:<8} {:<5} {:<9} {:<6} {:<6} {:<5} {:<6} {:<6} {:<9} {}",
        s.sim_time_us,
        d.sent,
        d.retransmitted,
        d.spurious,
        d.out_of_order,
        c.nack,
        c.cnp,
        c.pause,
        d.dropped_buffer + d.dropped_link,
        c.timeout,
        &s.digest[..12],
    );
}

#[test]
fn every_scheme_gives_its_golden_results() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../golden/schemes.txt");
    let now = table();
    if std::env::var_os("GOLDEN").is_some() {
        std::fs::write(&path, now).expect("golden/ can be written");
        return;
    }
    let golden = std::fs::read_to_string(&path).expect("golden/schemes.txt; write it with `make golden`");
    for (line, (was, is)) in golden.lines().zip(now.lines()).enumerate() {
        assert_eq!(is, was, "golden/schemes.txt, line {}; if it is meant, `make golden`", line + 1);
    }
    assert_eq!(golden.lines().count(), now.lines().count());
}
