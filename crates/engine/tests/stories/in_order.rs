//! Claim: under Flowcut no packet overtakes another of its flow: on any fabric, Dragonflies included, in any
//! deployment, whatever moves flows. With an overlap of n packets, at most n packets are ever late.

use crate::lab::{check_books, lay};
use engine::{Kind, Outcome};
use model::transport::{Inbound, Reception, Standing, Telling};
use model::{Parts, Plan, PortIndex, Psn, QpId, QpSite, Receiver, Site, Stamp, Time};
use proptest::prelude::*;
use proptest::sample::select;
use sim::RealParts;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A scenario's parts, with receivers that count late packets. A packet is late while one with a higher number has
/// arrived.
struct Watched<'a> {
    parts: RealParts<'a, Stamp>,
    late: Arc<AtomicU64>,
    overtaken: Arc<AtomicU64>,
}

/// Time before which nothing is retransmitted in stories with losses.
const BEFORE_TIMERS: Time = Time::from_ms(2);

struct Watching<R> {
    receiver: R,
    next: u64,
    missing: BTreeSet<u64>,
    late: Arc<AtomicU64>,
    /// Packets that arrived after one with a higher number, before any retransmission.
    overtaken: Arc<AtomicU64>,
}

impl<R: Receiver> Watching<R> {
    fn watch(&mut self, now: Time, psn: Psn) {
        let expected = self.receiver.standing().expected;
        let ahead = psn.value().wrapping_sub(Psn::from_seq(expected).value()) & 0xFF_FFFF;
        let behind = 0x100_0000 - u64::from(ahead);
        let seq =
            if behind < 0x80_0000 { expected.saturating_sub(behind) } else { expected + u64::from(ahead) };
        if seq >= self.next {
            self.missing.extend(self.next..seq);
            self.next = seq + 1;
        } else {
            self.missing.remove(&seq);
            self.overtaken.fetch_add(u64::from(now < BEFORE_TIMERS), Ordering::Relaxed);
        }
        self.late.fetch_max(self.missing.len() as u64, Ordering::Relaxed);
    }
}

impl<R: Receiver> Receiver for Watching<R> {
    fn on_arrival(&mut self, now: Time, inbound: Inbound) -> (Reception, Standing) {
        if let Inbound::Data(packet) = inbound {
            self.watch(now, packet.psn);
        }
        self.receiver.on_arrival(now, inbound)
    }

    fn standing(&self) -> Standing {
        self.receiver.standing()
    }

    fn telling(&self, of_packet: u16, port: PortIndex) -> Telling {
        self.receiver.telling(of_packet, port)
    }
}

impl Parts for Watched<'_> {
    type Scheme = <RealParts<'static, Stamp> as Parts>::Scheme;
    type Sender = <RealParts<'static, Stamp> as Parts>::Sender;
    type Receiver = Watching<<RealParts<'static, Stamp> as Parts>::Receiver>;
    type Congestion = <RealParts<'static, Stamp> as Parts>::Congestion;
    type Annex = <RealParts<'static, Stamp> as Parts>::Annex;
    type Steering = <RealParts<'static, Stamp> as Parts>::Steering;
    type Granter = ();

    fn scheme(&self, site: Site<'_>) -> Self::Scheme {
        self.parts.scheme(site)
    }

    fn sender(&self, plan: &Plan, qp: QpId) -> Self::Sender {
        self.parts.sender(plan, qp)
    }

    fn receiver(&self, plan: &Plan, qp: QpId) -> Self::Receiver {
        let receiver = self.parts.receiver(plan, qp);
        Watching {
            receiver,
            next: 0,
            missing: BTreeSet::new(),
            late: self.late.clone(),
            overtaken: self.overtaken.clone(),
        }
    }

    fn congestion(&self, plan: &Plan, qp: QpId) -> Self::Congestion {
        self.parts.congestion(plan, qp)
    }

    fn steering(&self, site: QpSite<'_>) -> Self::Steering {
        self.parts.steering(site)
    }

    fn granter(&self, _: &Plan, _: model::HostId) {}
}

/// Observations of a run.
struct Seen {
    run: Outcome,
    /// Most packets late at any time.
    late: u64,
    /// Packets overtaken; [`Watching::overtaken`] defines them.
    overtaken: u64,
    drains: u64,
}

fn watch(text: &str) -> Seen {
    let checked = lay(text);
    let (late, overtaken) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let parts = Watched {
        parts: RealParts::new(&checked.schemes, &checked.nics),
        late: late.clone(),
        overtaken: overtaken.clone(),
    };
    let run = engine::run(&checked.plan, &parts, Kind::Window, &mut ());
    check_books(&checked.plan, &run);
    assert!(run.messages.iter().all(|m| m.acked != Time::NEVER), "a flow did not finish in:\n{text}");
    let count = |name| run.counters.iter().find(|(n, _)| *n == name).map_or(0, |c| c.1);
    // Lost packets are never acknowledged.
    let lossless = run.data.dropped_link == 0;
    assert!(!lossless || count("entries_left") == 0, "nothing is in flight any more, in:\n{text}");
    let drains = count("drains");
    Seen { late: late.load(Ordering::Relaxed), overtaken: overtaken.load(Ordering::Relaxed), drains, run }
}

const DELAYS: [&str; 5] = ["100ns", "1us", "333ns", "5us", "20us"];
const RATES: [&str; 4] = ["100Gbps", "40Gbps", "10Gbps", "200Gbps"];
const DEPLOYMENTS: [&str; 5] = [
    "deployment = \"nic\"",
    "deployment = \"full\"",
    "deployment = \"ingress\"",
    "deployment = \"full\"\nbackpressure = \"class\"",
    "deployment = \"ingress\"\nack-every = 3\ncredit = \"4000B\"",
];
/// Settings for how soon a flow is drained.
const RULES: [&str; 4] =
    ["ratio = 1.0\nalpha = 1.0", "ratio = 1.5\nalpha = 0.5", "gradient = 0.2", "ratio = 4.0"];
const NICS: [&str; 4] = [
    "",
    "[nic.congestion.none]",
    "[nic.transport.go-back-n]\n[nic.congestion.none]",
    "[nic.transport.sr-sack]\n[nic.congestion.none]",
];

/// A Dragonfly or a tiered fabric whose links change their rates during the run, and flows of up to 60 packets.
/// `{}` stands for the scheme.
fn world() -> impl Strategy<Value = String> {
    let change = (1..4usize, 0..40_000u32, 1..60_000u32, select(&["0.1", "0.3", "0.7"][..]));
    let changes = prop::collection::vec(change, 0..3);
    (prop_oneof![3 => tiers().boxed(), 2 => groups().boxed()], changes).prop_map(|(fabric, changes)| {
        let mut text = fabric;
        for (links, at, span, rate) in changes {
            let until = at + span;
            write!(
                text,
                "[[failure]]\nrandom = {links}\nrate = {rate}\nat = \"{at}ns\"\nuntil = \"{until}ns\"\n"
            )
            .unwrap();
        }
        text
    })
}

/// Flows of a story; numbers stand for any hosts.
fn flows() -> impl Strategy<Value = Vec<(usize, usize, u32, u32)>> {
    prop::collection::vec((0..100usize, 0..100usize, 1..90_000u32, 0..30_000u32), 2..14)
}

/// The part of a scenario after a fabric of `count` hosts.
fn traffic(count: usize, flows: Vec<(usize, usize, u32, u32)>) -> String {
    let mut text =
        String::from("[switch]\nbuffer = \"64MB\"\n{}\n[[workload]]\n[workload.flows]\nlist = [\n");
    for (from, to, bytes, start) in flows {
        let from = from % count;
        let to = (from + 1 + to % (count - 1)) % count;
        writeln!(
            text,
            "  {{ from = \"host{from}\", to = \"host{to}\", bytes = \"{bytes}B\", start = \"{start}ns\" }},"
        )
        .unwrap();
    }
    text + "]\n"
}

/// Groups of routers with links of different lengths.
fn groups() -> impl Strategy<Value = String> {
    let shape = (2..6usize, 2..5usize, 1..3usize, 1..5usize, any::<bool>());
    let cable = || (select(&RATES[..]), select(&DELAYS[..]));
    (shape, (cable(), cable(), cable()), flows(), 0..1000u32).prop_map(
        |((groups, routers, hosts, links, any), (host, local, global), flows, seed)| {
            let minimal = if any { "any-link" } else { "fewest-hops" };
            format!(
                "seed = {seed}\n[topology.dragonfly]\ngroups = {groups}\nrouters-per-group = {routers}\n\
                 hosts-per-router = {hosts}\nlinks-per-pair = {links}\nminimal = \"{minimal}\"\nrate = \"{}\"\n\
                 delay = \"{}\"\nlocal-rate = \"{}\"\nlocal-delay = \"{}\"\nglobal-rate = \"{}\"\n\
                 global-delay = \"{}\"\n{}",
                host.0,
                host.1,
                local.0,
                local.1,
                global.0,
                global.1,
                traffic(groups * routers * hosts, flows)
            )
        },
    )
}

/// Two or three tiers, or a mesh of switches. Each link has a rate and a delay of its own, so that paths differ
/// much.
fn tiers() -> impl Strategy<Value = String> {
    let tiers = (2..5usize, 2..5usize, 1..4usize, any::<bool>());
    let cables = prop::collection::vec((select(&RATES[..]), select(&DELAYS[..])), 80);
    (tiers, cables, flows(), 0..1000u32).prop_map(|((leaves, spines, hosts, cores), cables, flows, seed)| {
        let mut text = format!("seed = {seed}\n");
        let mut cables = cables.iter().cycle();
        let mut links = String::new();
        let mut join = |a: String, b: String| {
            let (rate, delay) = cables.next().unwrap();
            writeln!(links, "  [\"{a}\", \"{b}\", \"{rate}\", \"{delay}\"],").unwrap();
        };
        let mut switches = Vec::new();
        for l in 0..leaves {
            switches.push(format!("leaf{l}"));
            (0..hosts).for_each(|h| join(format!("host{}", l * hosts + h), format!("leaf{l}")));
            // With cores each leaf has spines of its own.
            for s in 0..spines {
                let spine = if cores { format!("spine{l}.{s}") } else { format!("spine{s}") };
                join(format!("leaf{l}"), spine.clone());
                if cores {
                    join(spine.clone(), "core0".into());
                    join(spine.clone(), "core1".into());
                }
                switches.push(spine);
            }
        }
        if cores {
            switches.extend(["core0".into(), "core1".into()]);
        }
        switches.sort();
        switches.dedup();
        let count = leaves * hosts;
        write!(text, "[topology.links]\nhosts = {count}\nswitches = {switches:?}\nlinks = [\n{links}]\n")
            .unwrap();
        text + &traffic(count, flows)
    })
}

proptest! {
    // At least a thousand fabrics; PROPTEST_CASES=20000 tries more.
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse::<u32>().ok()).unwrap_or(0).max(1000),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_packet_overtakes_another(
        world in world(),
        deployment in select(&DEPLOYMENTS[..]),
        rules in select(&RULES[..]),
        nic in select(&NICS[..]),
    ) {
        let text = world.replace("{}", &format!("[scheme.flowcut]\n{deployment}\n{rules}\n{nic}"));
        let seen = watch(&text);
        prop_assert_eq!((seen.run.data.out_of_order, seen.late), (0, 0), "in:\n{}", text);
        prop_assert_eq!(seen.run.data.retransmitted, 0);
    }

    #[test]
    fn at_most_an_overlap_of_packets_is_late(
        world in world(),
        nic in any::<bool>(),
        rules in select(&RULES[..]),
        overlap in 1..6u64,
    ) {
        let deployment = if nic { "nic" } else { "ingress" };
        let scheme = format!("[scheme.flowcut]\ndeployment = \"{deployment}\"\noverlap = {overlap}\n{rules}");
        let text = world.replace("{}", &format!("{scheme}\n[nic.transport.ideal]\n[nic.congestion.none]"));
        let seen = watch(&text);
        prop_assert!(seen.late <= overlap, "{} late of {overlap} in:\n{text}", seen.late);
    }
}

/// Four hosts of a rack send to four of another over spines of different lengths and rates.
fn crowd(scheme: &str) -> Seen {
    let mut links = String::new();
    for h in 0..8 {
        write!(links, "[\"host{h}\", \"{}\"],", if h < 4 { "a" } else { "b" }).unwrap();
    }
    for (s, (rate, delay)) in
        [("100Gbps", "1us"), ("40Gbps", "9us"), ("100Gbps", "3us"), ("25Gbps", "1us")].iter().enumerate()
    {
        write!(
            links,
            "[\"a\", \"s{s}\", \"{rate}\", \"{delay}\"], [\"s{s}\", \"b\", \"{rate}\", \"{delay}\"],"
        )
        .unwrap();
    }
    watch(&format!(
        "[topology.links]\nhosts = 8\nswitches = [\"a\", \"b\", \"s0\", \"s1\", \"s2\", \"s3\"]\nlinks = [{links}]\n\
         [switch]\nbuffer = \"64MB\"\n[nic.transport.ideal]\n[nic.congestion.none]\n{scheme}\n[[workload]]\npermutation = \
         {{ bytes = \"2MB\", kind = \"cross-rack\" }}\n"
    ))
}

#[test]
fn flows_are_drained_off_crowded_paths_and_nothing_comes_out_of_order() {
    let ecmp = crowd("[scheme.flowcut]\nratio = 1000000.0");
    assert_eq!(ecmp.drains, 0, "no flow ever meets such a delay: this is ECMP");
    for deployment in DEPLOYMENTS {
        let seen = crowd(&format!("[scheme.flowcut]\n{deployment}\nratio = 3.0"));
        assert!(seen.drains > 0, "{deployment}: {:?}", seen.run.counters);
        assert_eq!((seen.run.data.out_of_order, seen.late), (0, 0), "{deployment}");
    }
    let kept = crowd("[scheme.flowcut]\nratio = 3.0\nkeep-average = true");
    assert!(kept.drains > 0, "{:?}", kept.run.counters);
    assert_eq!((kept.run.data.out_of_order, kept.late), (0, 0), "keep-average");
    // The same paths without Flowcut.
    let sprayed = crowd("[scheme.rps-nic]");
    assert!(sprayed.late > 100, "{}", sprayed.late);
}

#[test]
fn an_overlap_is_used() {
    let seen = crowd("[scheme.flowcut]\nratio = 1.2\nalpha = 1.0\noverlap = 8");
    assert!((1..=8).contains(&seen.late), "{} late, {:?}", seen.late, seen.run.counters);
}

/// An all-to-all on a Dragonfly whose links fail; nothing is retransmitted before [`BEFORE_TIMERS`].
fn failing_groups(scheme: &str, minimal: &str, failures: &str) -> Seen {
    watch(&format!(
        "[topology.dragonfly]\ngroups = 4\nrouters-per-group = 3\nhosts-per-router = 2\nlinks-per-pair = 2\n\
         rate = \"100Gbps\"\ndelay = \"1us\"\nminimal = \"{minimal}\"\n[switch]\nbuffer = \"64MB\"\n[nic]\n\
         timeout = {{ fixed = \"2ms\" }}\n[nic.transport.ideal]\nresend = \"all\"\n[nic.congestion.none]\n[routing]\n\
         detection = \"20us\"\n{scheme}\n{failures}\n[[workload]]\nall-to-all = {{ per-pair = \"60kB\", groups = \"all\" }}\n"
    ))
}

#[test]
fn a_link_that_dies_loses_packets_and_puts_none_out_of_order() {
    let deaths = [
        "links = [[\"group0-router0\", \"group1-router*\"]]",
        "links = [[\"group0-router*\", \"group1-router*\"]]",
        "links = [[\"group2-router0\", \"group2-router1\"]]",
    ];
    for minimal in ["fewest-hops", "any-link"] {
        for death in deaths {
            let failure = format!("[[failure]]\n{death}\nat = \"15us\"");
            let full = "[scheme.flowcut]\ndeployment = \"full\"";
            let seen = failing_groups(full, minimal, &failure);
            assert!(seen.run.data.dropped_link > 0, "{death} hit nothing");
            assert_eq!(seen.overtaken, 0, "{death}, {minimal}");
            // A scheme that decides for every packet reorders all the time.
            let seen = failing_groups("[scheme.ugal-l]", minimal, &failure);
            assert!(seen.overtaken > 100, "{}", seen.overtaken);
        }
        // The link is dead before the run begins, so no packet is lost or late.
        for deployment in DEPLOYMENTS {
            let failures: String = deaths.map(|death| format!("[[failure]]\n{death}\n")).concat();
            let seen = failing_groups(&format!("[scheme.flowcut]\n{deployment}"), minimal, &failures);
            assert_eq!((seen.run.data.out_of_order, seen.late, seen.run.data.dropped_link), (0, 0, 0));
        }
    }
}

#[test]
fn an_overlap_counts_packets_whatever_their_size() {
    let mut flows = "{ from = \"a\", to = \"b\", bytes = \"100B\" },\n".repeat(3000);
    for host in ["a2", "a3"] {
        writeln!(flows, "{{ from = \"{host}\", to = \"b2\", bytes = \"3MB\", start = \"2us\" }},").unwrap();
    }
    let links: String = ["\"a\", \"l\"", "\"a2\", \"l\"", "\"a3\", \"l\"", "\"b\", \"m\"", "\"b2\", \"m\""]
        .map(|ends| format!("[{ends}, \"100Gbps\", \"1us\"], "))
        .concat();
    let mut most = 0;
    for (deployment, seed) in ["ingress", "nic"].into_iter().flat_map(|d| (0..4).map(move |s| (d, s))) {
        let seen = watch(&format!(
            "seed = {seed}\n[topology.links]\nhosts = [\"a\", \"a2\", \"a3\", \"b\", \"b2\"]\n\
             switches = [\"l\", \"m\", \"s0\", \"s1\"]\nlinks = [{links}[\"l\", \"s0\", \"100Gbps\", \"1us\"], \
             [\"s0\", \"m\", \"1Gbps\", \"1us\"], [\"l\", \"s1\", \"100Gbps\", \"1us\"], [\"s1\", \"m\", \"100Gbps\", \"1us\"]]\n\
             [wire]\npayload = \"4096B\"\n[switch]\nbuffer = \"64MB\"\n[nic.transport.ideal]\n[nic.congestion.none]\n\
             [scheme.flowcut]\ndeployment = \"{deployment}\"\noverlap = 8\nratio = 1.01\nalpha = 1.0\n[[workload]]\n\
             [workload.flows]\nlist = [{flows}]\n"
        ));
        assert!(seen.late <= 8, "{deployment}, seed {seed}: {} late", seen.late);
        most = most.max(seen.late);
    }
    assert!(most > 0, "an overlap that is used");
}
