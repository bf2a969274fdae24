//! Claim: the engines agree and the books add up on random fabrics, settings and workloads.
//!
//! Random trees of switches with a few more links, hosts with one port or several anywhere, links from 1 ns to 3 ms and from 1 to 400 Gb/s,
//! losses, failures, small buffers, every NIC, scheme and feedback, and runs that are cut short. Deadlocks may occur.
//! `PROPTEST_CASES=10000` tries more; each fault that was found has a file in `found/`, or a story of its own.

use crate::lab::{compared_on, feedbacks, nic_beside, nics, run_on, schemes, suited, without_pauses};
use crate::live::difference;
use engine::outcome::Ending;
use model::plan::Trigger;
use model::{Bytes, MessageId, Plan, Time};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;
use proptest::test_runner::{TestCaseError, TestRunner};
use scenario::{Checked, plan_check};
use std::fmt::{self, Debug, Formatter, Write};

const RATES: [&str; 6] = ["100Gbps", "400Gbps", "40Gbps", "25Gbps", "73Gbps", "1Gbps"];
const DELAYS: [&str; 9] = ["1us", "1ns", "10ns", "100ns", "333ns", "5us", "50us", "50001ps", "3ms"];
/// Settings of a NIC that belong to no part of it.
const PLAIN: [&str; 15] = [
    "",
    "[nic]\nack-every = 3\non-nack = { stall = \"3us\" }\ntimeout = { fixed = \"90us\" }\nbackoff = { cap = \"1ms\" }",
    "[nic]\ntimeout = { adp = 14 }",
    "[nic]\ntimeout = { fixed = \"90us\" }\nretries = 1",
    "[nic]\ntimeout = \"none\"\n[nic.congestion.none]",
    "[nic]\nack-per-message = true\nwindow = { bytes = \"9kB\" }\nwindow-scales-with-rate = true",
    "[nic.transport.go-back-n]\n[nic.congestion.none]",
    "[nic]\nreceive = { rate = \"9Gbps\", buffer = \"6kB\" }",
    "[nic]\nreceive = { rate = \"500Mbps\", buffer = \"20kB\", pause = false }",
    "[nic]\nreceive = { rate = \"30Gbps\", buffer = \"2kB\" }\n[nic.transport.uec]\n[nic.congestion.none]",
    "[nic]\ningress = { above = \"700Mbps\", loss = 0.2, burst = 3, interval = \"2us\" }",
    "[nic]\ningress = { above = \"1Mbps\", loss = 0.05, burst = 7, interval = \"10us\" }\ncnp = \"frame\"\n\
     self-cnp = { interval = \"5us\", above = \"1Gbps\" }\n[nic.transport.go-back-n]",
    "[nic]\nreads = 2",
    "[nic]\nmessages = { per-qp = \"300k/s\", per-nic = \"700k/s\" }",
    "[nic]\nmessages.per-nic = \"200k/s\"\nwindow = { bytes = \"9kB\" }\n[nic.transport.uec]\n[nic.congestion.none]",
];
const ECN: [&str; 6] = [
    "ecn = \"off\"",
    "",
    "ecn = { kmin = \"1kB\", kmax = \"9kB\" }",
    "ecn = { kmin = \"1kB\", kmax = \"30kB\", mark = \"enqueue\" }",
    "ecn = { kmin = \"1kB\", kmax = \"9kB\", weight = 2 }",
    "ecn = { kmin = \"1kB\", kmax = \"9kB\", mark = \"enqueue\", weight = 6 }",
];
const CLASSES: [&str; 13] = [
    "\"strict\"",
    "\"one\"",
    "\"cnp-first\"",
    // Plain tables that are no presets.
    "[{ kinds = [\"ack\", \"nack\", \"cnp\", \"control\", \"trimmed\"] }, { kinds = [\"data\"] }]",
    "[{ kinds = [\"ack\", \"nack\", \"cnp\", \"control\", \"signal\"] }, { kinds = [\"data\"], marked = false }]",
    "[{ kinds = [\"cnp\"] }, { kinds = [\"ack\", \"nack\", \"control\"] }, { kinds = [\"data\"] }]",
    "[{ kinds = [\"cnp\", \"control\"] }, { kinds = [\"trimmed\"], weight = 1, cap = \"2kB\" }, \
     { kinds = [\"ack\", \"nack\"], weight = 2, cap = \"1kB\" }, { kinds = [\"data\"], weight = 5 }]",
    "[{ kinds = [\"data\"], weight = 3, cap = \"9kB\", charged = false }, \
     { kinds = [\"ack\", \"nack\", \"signal\", \"cnp\"], weight = 1, charged = true }, { kinds = [\"trimmed\", \"control\"] }]",
    "[{ kinds = [\"trimmed\"], cap = \"700B\" }, { kinds = [\"data\"], weight = 1, cap = \"30kB\" }, \
     { kinds = [\"ack\"], weight = 40 }]",
    // Queues of some flows alone.
    "[{ kinds = [\"cnp\", \"ack\", \"nack\"] }, { kinds = [\"data\"], weight = 1 }, \
     { kinds = [\"data\"], of = [\"background\"], weight = 2 }]",
    "[{ kinds = [\"data\"] }, { kinds = [\"data\", \"trimmed\"], of = [\"foreground\"], weight = 1, pfc = \"on\", \
     ecn = { kmin = \"2kB\", kmax = \"4kB\", mark = \"enqueue\" } }]",
    "[{ kinds = [\"data\"], weight = 1, charged = false, cap = \"20kB\" }, \
     { kinds = [\"data\", \"cnp\"], of = [\"background\"], weight = 1, pfc = { alpha = \"1/2\" } }]",
    // Two of them; with three virtual channels there may be one.
    "[{ kinds = [\"data\"], weight = 1 }, { kinds = [\"data\"], of = [\"background\"], weight = 1, cap = \"7kB\", \
     pfc = \"off\", cut = { victim = \"even\" }, ecn = \"off\" }, \
     { kinds = [\"ack\", \"nack\"], of = [\"background\", \"foreground\"], weight = 3, cap = \"1kB\" }]",
];
/// Classes of NICs.
const NIC_CLASSES: [&str; 6] = [
    "",
    "",
    "[[nic.classes]]\nof = [\"background\"]\n[[nic.classes]]\n",
    "[[nic.classes]]\nrate = \"730Mbps\"\n[[nic.classes]]\nof = [\"background\"]\n",
    "[[nic.classes]]\nweight = 3\n[[nic.classes]]\nof = [\"background\"]\nweight = 40\n",
    "[[nic.classes]]\nweight = 7\nrate = \"9Gbps\"\n[[nic.classes]]\nof = [\"background\"]\nweight = 1\nrate = \"30Gbps\"\n",
];
const READS: &str = "verb = \"read\"\n";
/// Settings of PFC; the empty one stands for none.
const PFC: [&str; 11] = [
    "",
    "",
    "",
    "\"on\"",
    "{ alpha = \"1/9\", alpha-at-rate = [{ rate = \"100Gbps\", alpha = \"1/2\" }, { rate = \"400Gbps\", alpha = \"1/1\" }], \
     headroom = { delays = 3 } }",
    "{ alpha = \"1/2\", xon-offset = \"500B\", headroom = { xoff = \"20kB\", shared-pool = \"30kB\" } }",
    "{ watchdog = { detection-time = \"20us\", restoration-time = \"15us\", poll-interval = \"10us\" } }",
    "{ alpha = \"1/3\", watchdog = { detection-time = \"1us\", restoration-time = \"3us\", action = \"forward\" } }",
    "{ alpha = \"1/3\", watchdog = { detection-time = \"9us\", restoration-time = \"5us\", poll-interval = \"4us\", detection = \"nvidia\" } }",
    "\"on\"\ncbfc = \"on\"",
    "\"on\"\ncbfc = { credits = \"10kB\", credit-size = \"64B\", spacing = \"2kB\" }",
];
/// Settings of switches without PFC.
const OVERFLOWS: [&str; 5] = [
    "",
    "queue-cap = \"9kB\"\nqueue-cap-to-hosts = \"5kB\"",
    "cut = \"on\"",
    "queue-cap = \"6kB\"\nqueue-cap-at-rate = [{ rate = \"100Gbps\", cap = \"5kB\" }]\ncut = { frame = \"100B\", victim = \"even\" }",
    "drop-alpha = \"1/8\"\ncut = { frame = \"300B\", victim = \"even\" }",
];
const WIRES: [&str; 4] = ["", "[wire]\nframe = \"4158B\"", "[wire]\nframe = \"300B\"", "ns3"];

const NOISE: [&str; 7] = [
    "",
    "",
    "codeword-loss = 0.01",
    "codeword-loss = 0.01\nllr = \"on\"",
    "gilbert = { good-to-bad = 0.02, bad-to-good = 0.3, loss-in-bad = 0.5 }\nllr = { replays = 1 }",
    "gilbert = { good-to-bad = 0.02, bad-to-good = 0.3, loss-in-bad = 0.5 }",
    "codeword-loss = { ber = 1.2e-3 }\ngilbert = \"dirty\"\nnoisy = [[\"s0\", \"*\"]]",
];

/// A storm of pauses, where switches have PFC.
const STORM: &str = "storm";
const FAILURES: [&str; 8] = [
    "down = true",
    STORM,
    "",
    "rate = 1",
    "rate = 0.7",
    "rate = \"400Gbps\"",
    "loss = 0.3",
    "loss = 0.1\nrate = 0.7",
];

const DETECTIONS: [&str; 8] = [
    "\"0us\"",
    "\"1ns\"",
    "\"700ns\"",
    "\"20us\"",
    "\"1ms\"",
    "{ local = \"1us\", per-hop = \"3us\", install = \"20us\" }",
    "{ local = \"0us\", per-hop = \"40us\", install = \"0us\" }",
    "{ local = \"5us\", per-hop = \"0us\", install = \"300us\" }",
];

/// Rate and delay of a link, as indices into the lists above; small indices are more frequent.
fn cable() -> impl Strategy<Value = (usize, usize)> {
    (0..RATES.len() * 2, 0..DELAYS.len() * 2).prop_map(|(r, d)| (r % 8 % RATES.len(), d % 11 % DELAYS.len()))
}

/// Units and parts of buffers.
const CELLS: [&str; 6] = [
    "",
    "",
    "",
    "cell = \"254B\"\n",
    "cell = \"600B\"\nguarantee = \"3kB\"\n",
    "cell = \"80B\"\nguarantee = \"500B\"\nslices = 1\n",
];

/// A scenario, and the buffer that its switches share beside their headroom.
#[derive(Clone)]
struct Story {
    text: String,
    shared: u64,
    /// True if messages wait for others that their host receives, at any port.
    chained: bool,
}

impl Debug for Story {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} B shared in:\n{}", self.shared, self.text)
    }
}

/// NICs of random fabrics: the trials of all parts, and settings that belong to none.
pub(crate) fn any_nic() -> impl Strategy<Value = String> {
    select([PLAIN.map(str::to_owned).to_vec(), nics()].concat())
}

/// The trials of all schemes that can run on this fabric.
fn any_scheme_on(fabric: &str) -> impl Strategy<Value = String> {
    let flow = "[[workload]]\nflows = { list = [{ from = \"host0\", to = \"host1\", bytes = \"1B\" }] }\n";
    let mut all = schemes();
    all.retain(|scheme| suited(&format!("{fabric}{scheme}{flow}")).is_some());
    select(all)
}

fn story() -> impl Strategy<Value = Story> {
    let tree = prop::collection::vec((0..4usize, cable()), 0..4);
    let extra = prop::collection::vec((0..4usize, 0..4usize, cable()), 0..5);
    let hosts = prop::collection::vec((0..4usize, cable(), prop::bool::weighted(0.3)), 2..7);
    let flow = (0..6usize, 0..6usize, 1..50_000u32, 0..20_000u32, prop::bool::weighted(0.2));
    let flows = prop::collection::vec(flow, 1..12);
    let told = prop::option::weighted(0.3, select(feedbacks()));
    let two = "[topology.links]\nhosts = 2\nswitches = [\"s0\"]\nlinks = [[\"host0\", \"s0\"], [\"host1\", \"s0\"]]\n";
    let world = (any_scheme_on(two), told, any_nic(), select(&ECN[..]), select(&WIRES[..]));
    let loss = (select(&[0.0, 0.0, 0.01, 0.2][..]), any::<bool>(), select(&NOISE[..]));
    let switch = (
        select(&PFC[..]),
        select(&CLASSES[..]),
        5_000..200_000u64,
        select(&OVERFLOWS[..]),
        select(&CELLS[..]),
    );
    let stop = prop::option::weighted(0.4, 1..60_000_000u64);
    let failure = (
        0..8usize,
        select(&FAILURES[..]),
        0..60_000_000u64,
        prop::option::of(1..80_000_000u64),
        any::<bool>(),
    );
    let failures = (prop::collection::vec(failure, 0..4), select(&DETECTIONS[..]));
    let verb = prop::bool::weighted(0.3).prop_map(|reads| if reads { READS } else { "" });
    let run = (
        0..1000u32,
        stop,
        any::<bool>(),
        prop::bool::weighted(0.3),
        failures,
        select(&NIC_CLASSES[..]),
        verb,
    );
    (tree, extra, hosts, flows, world, loss, switch, run).prop_map(
        |(
            tree,
            extra,
            hosts,
            flows,
            (scheme, feedback, nic, ecn, wire),
            (loss, replies, noise),
            (pfc, classes, shared, overflow, cells),
            run,
        )| {
            let (seed, stop, per_message, chained, (failures, detection), nic_classes, verb) = run;
            let nic = nic_beside(&scheme, &nic);
            let scheme = if pfc.is_empty() { without_pauses(&scheme) } else { scheme };
            let mut text = format!("seed = {seed}\n");
            let wire = if wire == "ns3" {
                text += "compat = \"ns3\"\n";
                ""
            } else {
                wire
            };
            let switches = tree.len() + 1;
            // Some feedbacks need a link between two switches.
            let feedback = feedback.filter(|_| switches > 1).unwrap_or_default();
            let names: Vec<String> = (0..switches).map(|s| format!("s{s}")).collect();
            // Every entry of `hosts` is a port: of the host before it, or of a new host.
            let begins = |h: usize| h == 0 || !hosts[h].2;
            let host_of = |h: usize| (1..=h).filter(|&h| begins(h)).count();
            let count = host_of(hosts.len() - 1) + 1;
            let endpoint = |h: usize| match (0..hosts.len()).filter(|&i| host_of(i) == host_of(h)).count() {
                1 => format!("host{}", host_of(h)),
                _ => format!("host{}p{}", host_of(h), (0..h).filter(|&i| host_of(i) == host_of(h)).count()),
            };
            writeln!(text, "[topology.links]\nhosts = {count}\nswitches = {names:?}\nlinks = [").unwrap();
            let mut link = |a: String, b: String, (r, d): (usize, usize)| {
                writeln!(text, "  [\"{a}\", \"{b}\", \"{}\", \"{}\"],", RATES[r], DELAYS[d]).unwrap();
            };
            for (h, (s, cable, _)) in hosts.iter().enumerate() {
                link(format!("host{}", host_of(h)), format!("s{}", s % switches), *cable);
            }
            for (i, (parent, cable)) in tree.iter().enumerate() {
                link(format!("s{}", i + 1), format!("s{}", parent % (i + 1)), *cable);
            }
            for (a, b, cable) in &extra {
                let (a, b) = (a % switches, b % switches);
                if a != b {
                    link(format!("s{a}"), format!("s{b}"), *cable);
                }
            }
            let pfc =
                if pfc.is_empty() { format!("pfc = \"off\"\n{overflow}") } else { format!("pfc = {pfc}") };
            writeln!(text, "]\n{wire}\n[links]\nloss = {loss:?}\nlose-replies = {replies}\n{noise}").unwrap();
            let cells = if pfc.contains("cbfc") { "" } else { cells };
            writeln!(text, "[switch]\nbuffer = \"100GB\"\n{cells}{pfc}\nclasses = {classes}\n{ecn}").unwrap();
            let queues = seed % 8 == 0;
            writeln!(text, "[record]\nwidth = \"100ns\"\nbins = 8\nqueues = {queues}\n{scheme}{nic}\n{nic_classes}{feedback}")
                .unwrap();
            writeln!(text, "[stop]\nno-progress = \"8ms\"").unwrap();
            if let Some(after) = stop {
                writeln!(text, "after = \"{after}ps\"").unwrap();
            }
            writeln!(text, "[routing]\ndetection = {detection}").unwrap();
            for (which, what, at, span, one_way) in failures {
                if what == STORM {
                    if pfc.starts_with("pfc = \"off\"") || pfc.contains("cbfc") {
                        continue;
                    }
                    writeln!(text, "[[failure]]\nstorm = [\"host{}\"]\nat = \"{at}ps\"", which % count).unwrap();
                    if let Some(span) = span {
                        writeln!(text, "until = \"{}ps\"", at + span).unwrap();
                    }
                    continue;
                }
                // Either a host's link, or some links of a switch.
                let ends = match which {
                    0 | 1 => format!("[\"host{}\", \"*\"]", which % count),
                    which => format!("[\"s{}\", \"*\"]", which % switches),
                };
                writeln!(text, "[[failure]]\nlinks = [{ends}]\nrandom = 1\n{what}\nat = \"{at}ps\"").unwrap();
                writeln!(text, "one-way = {one_way}").unwrap();
                if let Some(span) = span {
                    writeln!(text, "until = \"{}ps\"", at + span).unwrap();
                }
            }
            for background in [false, true] {
                let mut list = String::new();
                for (i, (from, to, bytes, start, back)) in flows.iter().enumerate() {
                    let from = from % hosts.len();
                    let to = (from + 1 + to % (hosts.len() - 1)) % hosts.len();
                    if (*back && i > 0) == background {
                        writeln!(
                            list,
                            "  {{ from = {:?}, to = {:?}, bytes = \"{bytes}B\", start = \"{start}ns\" }},",
                            endpoint(from),
                            endpoint(to)
                        )
                        .unwrap();
                    }
                }
                if !list.is_empty() {
                    let qp = if per_message { "per-message" } else { "persistent" };
                    writeln!(
                        text,
                        "[[workload]]\nname = \"{background}\"\nbackground = {background}\nqp = \"{qp}\"\n{verb}"
                    )
                    .unwrap();
                    writeln!(text, "[workload.flows]\nlist = [\n{list}]").unwrap();
                }
            }
            // Some parts carry no READs.
            if !verb.is_empty() && suited(&text).is_none() {
                text = text.replace(verb, "");
            }
            Story { text, shared, chained }
        },
    )
}

/// A random scenario on a small Dragonfly.
fn groups() -> impl Strategy<Value = Story> {
    let shape = (1..5usize, 1..4usize, 1..3usize, 1..4usize, any::<bool>(), 1..4u8);
    let cables = [cable(), cable(), cable()];
    let flows = prop::collection::vec((0..40usize, 0..40usize, 1..50_000u32, 0..20_000u32), 1..16);
    let way =
        any_scheme_on("[topology.dragonfly]\ngroups = 2\nrouters-per-group = 2\nhosts-per-router = 2\n");
    let world = (way, any_nic(), select(&ECN[..]), select(&WIRES[..3]));
    let loss = select(&[0.0, 0.0, 0.01][..]);
    let classes = select(&CLASSES[..CLASSES.len() - 1]);
    let switch = (select(&PFC[..]), classes, 5_000..100_000u64, select(&OVERFLOWS[..]), select(&CELLS[..]));
    let stop = prop::option::weighted(0.3, 1..60_000_000u64);
    (shape, cables, flows, world, loss, switch, (0..1000u32, stop)).prop_map(
        |(shape, cables, flows, (scheme, nic, ecn, wire), loss, (pfc, classes, shared, overflow, cells), (seed, stop))| {
            let nic = nic_beside(&scheme, &nic);
            let scheme = if pfc.is_empty() { without_pauses(&scheme) } else { scheme };
            let (groups, routers, hosts, links, any, channels) = shape;
            let mut text = format!(
                "seed = {seed}\n[topology.dragonfly]\ngroups = {groups}\nrouters-per-group = {routers}\n\
                 hosts-per-router = {hosts}\nlinks-per-pair = {links}\nchannels = {channels}\nminimal = \"{}\"\n",
                if any { "any-link" } else { "fewest-hops" }
            );
            for (which, (r, d)) in ["", "local-", "global-"].iter().zip(cables) {
                writeln!(text, "{which}rate = \"{}\"\n{which}delay = \"{}\"", RATES[r], DELAYS[d]).unwrap();
            }
            let pfc = if pfc.is_empty() { format!("pfc = \"off\"\n{overflow}") } else { format!("pfc = {pfc}") };
            writeln!(text, "{wire}\n[links]\nloss = {loss:?}").unwrap();
            let cells = if pfc.contains("cbfc") { "" } else { cells };
            writeln!(text, "[switch]\nbuffer = \"100GB\"\n{cells}{pfc}\nclasses = {classes}\n{ecn}").unwrap();
            writeln!(text, "[record]\nwidth = \"100ns\"\nbins = 8\n{scheme}{nic}").unwrap();
            writeln!(text, "[stop]\nno-progress = \"8ms\"").unwrap();
            if let Some(after) = stop {
                writeln!(text, "after = \"{after}ps\"").unwrap();
            }
            let all = groups * routers * hosts;
            writeln!(text, "[[workload]]\n[workload.flows]\nlist = [").unwrap();
            for (from, to, bytes, start) in flows {
                let from = from % all.max(2);
                let to = (from + 1 + to % (all.max(2) - 1)) % all.max(2);
                writeln!(
                    text,
                    "  {{ from = \"host{from}\", to = \"host{to}\", bytes = \"{bytes}B\", start = \"{start}ns\" }},"
                )
                .unwrap();
            }
            text += "]\n";
            // A single host has no peer.
            let text = if all < 2 { text.replace("hosts-per-router = 1", "hosts-per-router = 2") } else { text };
            Story { text, shared, chained: false }
        },
    )
}

/// Four servers whose NICs have two ports each, which are devices, with repairs and messages over twenty seconds.
fn devices() -> impl Strategy<Value = Story> {
    let head = |planes: usize| {
        format!(
            "[server]\ngpus = 1\nports-per-nic = 2\nbond-failover = \"wait\"\n[topology.rails]\nkind = \"per-server\"\n\
             servers = 4\nservers-per-segment = 2\nspines = 2\nplanes = {planes}\n"
        )
    };
    let flow = "[[workload]]\nflows = { list = [{ from = \"s0g0p0\", to = \"s1g0p0\", bytes = \"1B\" }] }\n";
    let settings = |retries: usize| {
        format!(
            "[nic]\ntimeout = {{ fixed = \"60us\" }}\nretries = {retries}\non-retry-exceeded = \"nccl-failover\"\n"
        )
    };
    let mut nics = nics();
    nics.retain(|nic| !nic.contains("[nic]"));
    nics.retain(|nic| suited(&format!("{}{}{nic}{flow}", head(1), settings(1))).is_some());
    let mut schemes = schemes();
    schemes.retain(|scheme| !scheme.contains("[nic"));
    schemes.retain(|scheme| suited(&format!("{}{scheme}{flow}", head(1))).is_some());
    let starts = select(&["0us", "3us", "9us", "15ms", "900ms", "5300ms", "11s", "16s"][..]);
    let flows = prop::collection::vec((0..4usize, 1..4usize, 0..2usize, 1..60_000u32, starts), 1..10);
    let at = select(&[0, 4, 12, 16_000, 1_000_000, 7_000_000_u64][..]);
    let span = select(&[0, 10, 8_000, 300_000, 2_000_000, 6_000_000, 14_000_000_u64][..]);
    let failure = (0..4usize, at, span, any::<bool>());
    let failures = prop::collection::vec(failure, 1..5);
    let detection = select(&["never", "0us", "20us", "1s"][..]);
    let loss = select(&[0.0, 0.0, 0.01, 0.3][..]);
    let world = (select(schemes), select(nics), 1..3usize, 1..3usize, detection, loss);
    (flows, world, failures, 0..1000u32, 5_000..100_000u64).prop_map(
        move |(flows, (scheme, nic, planes, retries, detection, loss), failures, seed, shared)| {
            let mut text = format!("seed = {seed}\n{}{scheme}{}{nic}\n", head(planes), settings(retries));
            writeln!(text, "[links]\nloss = {loss:?}\nlose-replies = true\n[stop]\nno-progress = \"90ms\"").unwrap();
            writeln!(text, "[switch]\nbuffer = \"100GB\"\n[routing]\ndetection = \"{detection}\"").unwrap();
            for (server, at, span, one_way) in failures {
                writeln!(text, "[[failure]]\nlinks = [[\"s{server}\", \"*\"]]\nrandom = 1\nat = \"{at}us\"").unwrap();
                writeln!(text, "one-way = {one_way}").unwrap();
                if span > 0 {
                    writeln!(text, "until = \"{}us\"", at + span).unwrap();
                }
            }
            writeln!(text, "[[workload]]\n[workload.flows]\nlist = [").unwrap();
            for (from, to, port, bytes, start) in flows {
                let to = (from + to) % 4;
                writeln!(
                    text,
                    "  {{ from = \"s{from}g0p{port}\", to = \"s{to}g0p{port}\", bytes = \"{bytes}B\", start = \"{start}\" }},"
                )
                .unwrap();
            }
            text += "]\n";
            Story { text, shared, chained: false }
        },
    )
}

/// Makes messages wait for messages that their host receives, where this closes no cycle.
fn chain(plan: &mut Plan) {
    let ends = |plan: &Plan, m: usize| {
        let qp = &plan.qps[plan.messages[m].qp.index()];
        (plan.fabric.node_of(qp.from), plan.fabric.node_of(qp.to))
    };
    for first in 0..plan.messages.len() {
        let waits = |&then: &usize| {
            then != first && plan.messages[then].needs == 0 && ends(plan, then).0 == ends(plan, first).1
        };
        let Some(then) = (0..plan.messages.len()).find(waits) else { continue };
        let mut more = plan.clone();
        let trigger = more.triggers.len() as u32;
        more.triggers.push(Trigger::Message(MessageId(then as u32)));
        more.messages[first].on_received = trigger..trigger + 1;
        more.messages[then].needs = 1;
        if plan_check(&more).is_ok() {
            *plan = more;
        }
    }
}

/// The scenario of a story, with its buffers and its chains of messages; `None` if its parts do not suit each other.
fn scenario_of(story: &Story) -> Option<Checked> {
    let mut checked = suited(&story.text)?;
    let plan = &mut checked.plan;
    for (i, node) in plan.fabric.switches().enumerate() {
        let fabric = &plan.fabric;
        if plan.switches[i].memory.headroom_beside {
            plan.switches[i].buffer = Bytes(story.shared);
            continue;
        }
        let kept = fabric.ports(node).iter().map(|link| {
            let came = &fabric.links()[fabric.reverse(fabric.link(link.from, link.port)).index()];
            let headroom = plan.ports[fabric.link(link.from, link.port).index()].headroom;
            let gp = fabric.link(link.from, link.port).index();
            let own = plan.own_queues.groups.iter().map(|group| group.ports[gp].headroom.get());
            (headroom.get() + own.sum::<u64>()) * u64::from(fabric.channels_on(came))
        });
        plan.switches[i].buffer = Bytes(kept.sum::<u64>() + story.shared);
    }
    if story.chained {
        chain(plan);
    }
    assert!(plan.no_progress < Time::from_ms(100));
    Some(checked)
}

/// True if no message follows one that waits for others on its queue pair. A program posts the two one after the other, and the first
/// packet may leave in between. A plan posts both at once, so the first packet can already tell the receiver of the second message.
fn posts_one_message_an_event(plan: &Plan) -> bool {
    plan.qps.iter().all(|qp| {
        let messages = &plan.messages[qp.messages.start as usize..qp.messages.end as usize];
        messages.iter().rev().skip(1).all(|message| message.needs == 0)
    })
}

/// Runs a story on all engines, and fails with their differences.
fn check_engines(story: &Story) -> Result<(), TestCaseError> {
    let Some(checked) = scenario_of(story) else { return Err(TestCaseError::reject("unsuited")) };
    match compared_on(&checked) {
        Ok(_) => Ok(()),
        Err(difference) => Err(TestCaseError::fail(difference)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn on_any_fabric_the_engines_agree(story in story()) {
        check_engines(&story)?;
    }

    #[test]
    fn on_any_fabric_a_program_gets_the_run_of_its_plan(story in story()) {
        let Some(checked) = scenario_of(&story) else { return Err(TestCaseError::reject("unsuited")) };
        let plan = &checked.plan;
        // Programs post messages of one foreground job. Themis and ns-3's hashes read messages before they start.
        let comparable = plan.stop_after.is_none()
            && plan.jobs.iter().all(|job| !job.background && job.class == plan.jobs[0].class)
            && posts_one_message_an_event(plan)
            && !["[scheme.themis]", "hash ="].iter().any(|word| story.text.contains(word));
        if comparable && run_on(&checked).ending == Ending::Finished {
            difference(&checked).map_err(TestCaseError::fail)?;
        }
    }
}

proptest! {
    // A Dragonfly takes twice the time of other fabrics.
    #![proptest_config({
        let usual = ProptestConfig::default();
        ProptestConfig { failure_persistence: None, cases: usual.cases / 2, ..usual }
    })]

    #[test]
    fn on_any_dragonfly_the_engines_agree(story in groups()) {
        check_engines(&story)?;
    }

    #[test]
    fn with_any_failover_the_engines_agree(story in devices()) {
        check_engines(&story)?;
    }
}

#[test]
fn stories_have_failovers_returns_and_second_dead_ports() {
    let mut runner = TestRunner::deterministic();
    let (mut moved, mut back, mut ended) = (0, 0, 0);
    for _ in 0..150 {
        let Some(checked) = scenario_of(&devices().new_tree(&mut runner).unwrap().current()) else {
            continue;
        };
        let run = run_on(&checked);
        moved += u32::from(!run.failovers.is_empty());
        back += u32::from(run.failovers.iter().any(|failover| failover.back != Time::NEVER));
        ended += u32::from(!run.failovers.is_empty() && matches!(run.ending, Ending::RetryExceeded(_)));
    }
    assert!(moved > 40 && back > 5 && ended > 5, "{moved} {back} {ended}");
}

#[test]
fn stories_have_hosts_with_several_ports_cut_packets_and_weighted_classes() {
    let mut runner = TestRunner::deterministic();
    let (mut several_ports, mut weighted, mut cuts) = (0, 0, 0);
    for _ in 0..250 {
        let story = story().new_tree(&mut runner).unwrap().current();
        let Some(checked) = scenario_of(&story) else { continue };
        several_ports += u32::from(checked.plan.fabric.servers() < checked.plan.fabric.hosts());
        weighted += u32::from(story.text.contains("weight"));
        cuts += u32::from(run_on(&checked).data.cut > 0);
    }
    assert!(several_ports > 100 && weighted > 75 && cuts > 20, "{several_ports} {weighted} {cuts}");
}

/// Every fault that was found has a file in `found/`: the scenario, below what went wrong and the buffer that switches share.
#[test]
fn faults_that_were_found_stay_mended() {
    let mut files = 0;
    for file in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/found")).unwrap() {
        let path = file.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let shared = text.lines().find_map(|line| line.strip_prefix("# shared = "));
        let shared = shared.unwrap_or_else(|| panic!("{} has no line `# shared = BYTES`", path.display()));
        let shared = shared.replace('_', "").parse().unwrap();
        let done = check_engines(&Story { text, shared, chained: false });
        assert!(done.is_ok(), "{}: {done:?}", path.display());
        files += 1;
    }
    assert!(files > 0);
}
