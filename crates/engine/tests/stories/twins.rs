//! Claim: the window engine gives the reference engine's outcome, bit for bit, with whole and with half windows:
//! the end, every message, every link, every counter, every recorded track.
//!
//! Every scheme runs half the workloads on every world, and all of them in `make exhaustive`; its trials and NICs take turns. A
//! world is a fabric on which something particular goes wrong, and a final check makes sure that it did.

use crate::lab::{agreed_on, lay, leaf_spine, nic_beside, nics, suited, total, trials, without_pauses};
use engine::outcome::{Ending, Outcome};
use model::Time;

/// Keys of `[[workload]]` entries, at about 20 packets a message.
const WORKLOADS: [&str; 8] = [
    "permutation = { bytes = \"60kB\" }",
    "incast = { senders = 9, bytes = \"25kB\" }",
    "all-to-all = { per-pair = \"7kB\", groups = \"all\" }",
    "all-to-all = { per-pair = \"7001B\", groups = \"all\", schedule = \"staggered\" }",
    "all-reduce = { bytes = \"100kB\", groups = \"all\" }",
    "qp = \"per-message\"\nall-reduce = { bytes = \"60kB\", groups = \"all\" }",
    "poisson = { sizes = { uniform = { min = \"1B\", max = \"40kB\" } }, load = 0.8, count = 40 }",
    // Two background jobs: one that outlives the late foreground, and one that does not.
    "name = \"long\"\nbackground = true\nneighbour-ring = { bytes = \"400kB\", groups = \"all\" }\n\
     [[workload]]\nname = \"short\"\nbackground = true\nincast = { senders = 3, bytes = \"2kB\" }\n\
     [[workload]]\nstart = \"3us\"\npermutation = { bytes = \"30kB\", kind = \"shift\" }",
];

/// An event that must happen at least once on a world.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Event {
    Pause,
    Drop,
    Loss,
    ReplyLost,
    Mark,
    Timeout,
    Stop,
    Cut,
}

use Event::{Cut, Drop, Loss, Mark, Pause, ReplyLost, Stop, Timeout};

/// Fabrics of 12 hosts, with the events that must happen on each. Keys of the top level come first.
fn worlds() -> Vec<(String, &'static [Event])> {
    let fabric = |keys| leaf_spine(4, 4, 3, keys);
    let slow = fabric("rate = \"100Gbps\"\ndelay = \"200ns\"");
    let near = fabric("rate = \"100Gbps\"\ndelay = \"100ns\"\nuplink-delay = \"1us\"");
    vec![
        (fabric(""), &[]),
        (format!("{slow}[switch]\nbuffer = \"150kB\""), &[Pause]),
        (format!("{slow}[switch]\nbuffer = \"150kB\"\nclasses = \"one\""), &[Pause]),
        (
            format!(
                "{slow}[switch]\nbuffer = \"150kB\"\n[switch.ecn]\nkmin = \"3kB\"\nkmax = \"12kB\"\npmax = 0.5\n\
                 mark = \"enqueue\""
            ),
            &[Pause, Mark],
        ),
        (
            format!(
                "{}[switch]\nbuffer = \"1MB\"\n[switch.ecn]\nkmin = \"1kB\"\nkmax = \"9kB\"",
                fabric("delay = \"500ns\"")
            ),
            &[Mark],
        ),
        (format!("{slow}[switch]\npfc = \"off\"\nbuffer = \"60kB\""), &[Drop, Timeout]),
        (
            format!(
                "{slow}[switch]\npfc = \"off\"\nbuffer = \"40kB\"\nclasses = \"one\"\ndrop-alpha = \"1/2\""
            ),
            &[Drop, Timeout],
        ),
        (format!("{}[links]\nloss = 0.01", fabric("")), &[Loss]),
        (
            format!(
                "{slow}[links]\nloss = 0.02\nlose-replies = true\n[switch]\nbuffer = \"150kB\"\nclasses = \"one\""
            ),
            &[Loss, ReplyLost, Pause, Timeout],
        ),
        (
            format!(
                "compat = \"ns3\"\n{slow}[switch]\nbuffer = \"150kB\"\n[switch.ecn]\nkmin = \"3kB\"\nkmax = \"30kB\""
            ),
            &[Pause, Mark],
        ),
        (format!("{slow}[switch]\nbuffer = \"150kB\"\n[stop]\nafter = \"7654321ps\""), &[Pause, Stop]),
        (
            format!(
                "{slow}[switch]\npfc = \"off\"\nbuffer = \"60kB\"\n[links]\nloss = 0.01\n[stop]\nafter = \"8us\""
            ),
            &[Drop, Loss, Stop],
        ),
        // Two uplinks to each spine, 50 us long and slower than the hosts.
        (
            fabric(
                "rate = \"100Gbps\"\ndelay = \"100ns\"\nuplink-rate = \"40Gbps\"\nuplink-delay = \"50us\"\nuplinks-per-spine = 2",
            ),
            &[],
        ),
        // Jumbo frames over links of two metres.
        (
            format!("{}[wire]\nframe = \"4158B\"\n[switch]\nbuffer = \"130kB\"", fabric("delay = \"10ns\"")),
            &[Pause],
        ),
        (format!("{UNEVEN}[switch]\nbuffer = \"8MB\""), &[]),
        // A spine fails and comes back twice, a link to a host flaps, and others are slow for some time.
        (
            format!(
                "{slow}[switch]\nbuffer = \"150kB\"\n[routing]\ndetection = \"4us\"\n{}",
                failures(&[
                    "switch = \"spine1\"\nat = \"3us\"\nuntil = \"9us\"",
                    "switch = \"spine1\"\nat = \"12001ns\"\nuntil = \"90us\"",
                    "links = [[\"host4\", \"leaf1\"]]\nat = \"2us\"\nuntil = \"2100ns\"",
                    "links = [[\"leaf*\", \"spine3\"], [\"host2\", \"*\"]]\nrate = 0.1\nat = \"1us\"\nuntil = \"40us\"",
                ])
            ),
            &[Pause, Loss],
        ),
        // Links that are dead from the start, in one direction or both, and one that comes back at a higher rate.
        (
            format!(
                "{slow}[switch]\npfc = \"off\"\nbuffer = \"60kB\"\nclasses = \"one\"\n[routing]\ndetection = \"0us\"\n{}",
                failures(&[
                    "random = 0.2",
                    "links = [[\"leaf2\", \"spine0\"]]\none-way = true\nat = \"5us\"\nuntil = \"70us\"",
                    "links = [[\"leaf3\", \"spine*\"]]\nrate = \"400Gbps\"\nat = \"6us\"",
                ])
            ),
            &[Drop],
        ),
        (format!("{UNEVEN}[switch]\npfc = \"off\"\nbuffer = \"30kB\"\n[links]\nloss = 0.003"), &[Drop, Loss]),
        (
            format!(
                "{slow}[switch]\nbuffer = \"150kB\"\nclasses = \"cnp-first\"\n[switch.ecn]\nkmin = \"3kB\"\nkmax = \"9kB\""
            ),
            &[Pause, Mark],
        ),
        (
            format!(
                "{slow}[switch]\npfc = \"off\"\nbuffer = \"1MB\"\nqueue-cap = \"12kB\"\nqueue-cap-to-hosts = \"9kB\"\n\
                 cut = {{ victim = \"even\" }}"
            ),
            &[Cut, Timeout],
        ),
        (
            format!(
                "{slow}[switch]\npfc = \"off\"\nbuffer = \"60kB\"\ncut = \"on\"\n\
                 classes = [{{ kinds = [\"cnp\", \"signal\"] }}, {{ kinds = [\"ack\", \"nack\"], weight = 2 }}, \
                 {{ kinds = [\"trimmed\"], weight = 1, cap = \"3kB\" }}, {{ kinds = [\"data\"], weight = 5 }}]"
            ),
            &[Cut, Timeout],
        ),
        (
            format!(
                "{slow}[switch]\nbuffer = \"150kB\"\nclasses = [{{ kinds = [\"cnp\"] }}, \
                 {{ kinds = [\"ack\", \"nack\"], weight = 1 }}, {{ kinds = [\"data\"], weight = 1 }}]"
            ),
            &[Pause],
        ),
        // Queues of background flows alone: paused by themselves, or lossless beside others that are cut.
        (
            format!(
                "{slow}[switch]\nbuffer = \"230kB\"\nclasses = [{{ kinds = [\"cnp\", \"ack\", \"nack\", \"signal\"] }}, \
                 {{ kinds = [\"data\"], weight = 1 }}, {{ kinds = [\"data\"], of = [\"background\"], weight = 1 }}]"
            ),
            &[Pause],
        ),
        (
            format!(
                "{slow}[switch]\npfc = \"off\"\nbuffer = \"150kB\"\nqueue-cap = \"20kB\"\ncut = \"on\"\n\
                 classes = [{{ kinds = [\"cnp\", \"ack\", \"nack\", \"trimmed\", \"signal\"] }}, \
                 {{ kinds = [\"data\"], weight = 2 }}, {{ kinds = [\"data\"], of = [\"background\"], weight = 1, \
                 pfc = \"on\", ecn = {{ kmin = \"3kB\", kmax = \"9kB\" }} }}]"
            ),
            &[Cut],
        ),
        // Hosts near their leaves, and spines far away: racks step through the window.
        (
            format!("{near}[switch]\nbuffer = \"150kB\"\n[switch.ecn]\nkmin = \"3kB\"\nkmax = \"12kB\""),
            &[Pause, Mark],
        ),
        (
            format!(
                "{near}[switch]\npfc = \"off\"\nbuffer = \"60kB\"\nclasses = \"one\"\n[links]\nloss = 0.003\n\
                 [stop]\nafter = \"23456789ps\"\n{}",
                failures(&[
                    "links = [[\"host4\", \"leaf1\"]]\nat = \"2us\"\nuntil = \"2100ns\"",
                    "links = [[\"host2\", \"*\"]]\nrate = \"400Gbps\"\nat = \"1us\"\nuntil = \"40us\"",
                ])
            ),
            &[Drop, Loss, Stop],
        ),
        (format!("{SERVERS}[switch]\nbuffer = \"150kB\""), &[Pause]),
    ]
}

/// A rack of six hosts, and two servers of two switches each, with inner links of several lengths.
const SERVERS: &str = r#"
[topology.links]
hosts = 12
switches = ["x", "n0", "t0", "n1", "t1", "s0", "s1"]
rate = "100Gbps"
delay = "1us"
links = [
    ["host0", "x", "100Gbps", "100ns"], ["host1", "x", "100Gbps", "100ns"], ["host2", "x", "100Gbps", "90ns"],
    ["host3", "x", "100Gbps", "100ns"], ["host4", "x", "100Gbps", "100ns"], ["host5", "x", "40Gbps", "100ns"],
    ["host6", "n0", "400Gbps", "30ns"], ["host7", "n0", "400Gbps", "30ns"], ["host8", "t0", "100Gbps", "100ns"],
    ["n0", "t0", "200Gbps", "50ns"],
    ["host9", "n1", "400Gbps", "45ns"], ["host10", "n1", "400Gbps", "45ns"], ["host11", "t1", "100Gbps", "200ns"],
    ["n1", "t1", "200Gbps", "120ns"],
    ["x", "s0"], ["x", "s1"], ["t0", "s0"], ["t0", "s1"], ["t1", "s0"], ["t1", "s1"],
]
"#;

/// Entries of `[[failure]]`.
fn failures(entries: &[&str]) -> String {
    entries.iter().map(|entry| format!("[[failure]]\n{entry}\n")).collect()
}

/// Two sites 50 us apart, hosts at odd rates, parallel paths of different rates.
const UNEVEN: &str = r#"
[topology.links]
hosts = 12
switches = ["a0", "a1", "m0", "m1", "b0", "b1"]
delay = "100ns"
links = [
    ["host0", "a0"], ["host1", "a0", "40Gbps"], ["host2", "a0", "25Gbps"],
    ["host3", "a1"], ["host4", "a1", "73Gbps"], ["host5", "a1", "400Gbps"],
    ["host6", "b0"], ["host7", "b0", "10Gbps"], ["host8", "b0", "100Gbps", "1us"],
    ["host9", "b1"], ["host10", "b1"], ["host11", "b1", "200Gbps", "33ns"],
    ["a0", "m0"], ["a0", "m1", "40Gbps"], ["a1", "m0", "100Gbps", "1us"], ["a1", "m1", "25Gbps"],
    ["m0", "b0", "100Gbps", "50us"], ["m1", "b0", "100Gbps", "50us"], ["m0", "b1", "56Gbps", "50us"],
    ["m1", "b1", "100Gbps", "49us"], ["a0", "a1"], ["b0", "b1", "100Gbps", "1us"],
]
"#;

fn happened(event: Event, run: &Outcome) -> bool {
    0 < match event {
        Pause => run.control.pause,
        Drop => run.data.dropped_buffer,
        Loss => run.data.dropped_link,
        ReplyLost => run.control.dropped,
        Mark => total(run, |l| l.marks),
        Timeout => run.control.timeout,
        Cut => run.data.cut,
        Stop => u64::from(run.ending == Ending::Stopped),
    }
}

/// Runs the trials of one scheme through the matrix, with one of `share` workloads on every world; returns the number of NACKs
/// that it blocked.
///
/// The trials and the NICs take turns. Further turns follow until all events of the world have happened, so that a new NIC in the
/// list cannot take an event away from a scheme. A scheme that needs another fabric has no turn.
fn matrix(name: &str, share: usize) -> u64 {
    let (trials, nics) = (trials(name), nics());
    let mut blocked = 0;
    for (w, (world, events)) in worlds().iter().enumerate() {
        let mut missing = events.to_vec();
        let turns =
            (0..nics.len()).flat_map(|t| WORKLOADS.iter().enumerate().map(move |(k, load)| (t, k, load)));
        let mut suits = false;
        for (t, k, workload) in turns {
            if t > 0 && (missing.is_empty() || !suits) {
                break;
            }
            let turn = name.len() + 3 * w + k + t;
            if t == 0 && !turn.is_multiple_of(share) {
                continue;
            }
            let scheme = &trials[turn % trials.len()];
            let nic = nic_beside(scheme, &nics[turn % nics.len()]);
            let lossy = world.contains("pfc = \"off\"");
            let scheme = if lossy { without_pauses(scheme) } else { scheme.clone() };
            let text = format!("{world}\n{scheme}{nic}[[workload]]\n{workload}\n");
            let Some(checked) = suited(&text) else { continue };
            suits = true;
            let run = agreed_on(&checked, &text);
            blocked += run.counters.iter().find(|(name, _)| *name == "nacks_blocked").map_or(0, |c| c.1);
            missing.retain(|e| !happened(*e, &run));
            let may_stop = events.contains(&Stop);
            assert!(run.ending == Ending::Finished || may_stop, "{:?} in: {text}", run.ending);
        }
        assert!(missing.is_empty() || !suits, "{missing:?} never happened on {world}");
    }
    blocked
}

/// A test for each scheme.
mod both_engines_agree_under {
    macro_rules! matrices {
        ($($scheme:ident)+) => {
            $(
                #[test]
                fn $scheme() {
                    super::agree(stringify!($scheme), 2);
                }
            )+

            #[test]
            #[ignore = "every workload on every world, of which the tests above have half: minutes"]
            fn every_scheme_whatever_meets() {
                $(super::agree(stringify!($scheme), 1);)+
            }
        };
    }

    schemes::each_scheme!(matrices);
}

/// Holds the engines to each other under a scheme.
fn agree(scheme: &str, share: usize) {
    let name = scheme.replace('_', "-");
    assert_eq!(matrix(&name, share) > 0, name == "themis", "only Themis blocks NACKs");
}

/// Two datacentres of six hosts, 10 us apart; the links between them carry a quarter of the hosts' rates.
const FAR: &str = "[topology.datacentres]\ntors = 2\nhosts-per-tor = 3\nspines = 2\ndelay = \"200ns\"\n\
                   spine-rate = \"40Gbps\"\nexternal-rate = \"100Gbps\"\nlong-rate = \"150Gbps\"\nlong-delay = \"10us\"\n\
                   [switch]\nbuffer = \"150kB\"\nclasses = \"cnp-first\"\n[switch.ecn]\nkmin = \"3kB\"\nkmax = \"12kB\"\n\
                   [switch-role.external]\nbuffer = \"4MB\"\n";

#[test]
fn across_two_datacentres_both_engines_agree() {
    two_datacentres(&|edge, nic, scheme| (edge + nic + scheme) % 3 == 0);
}

#[test]
#[ignore = "every NIC with every scheme at every edge, of which the test above has a third: a minute"]
fn across_two_datacentres_both_engines_agree_whatever_meets() {
    two_datacentres(&|_, _, _| true);
}

/// Holds the engines to each other with those edges, NICs and schemes, by their numbers, that are `chosen`.
fn two_datacentres(chosen: &dyn Fn(usize, usize, usize) -> bool) {
    let edges = [
        ("interval = \"4us\"", "stash_peak"),
        (
            "interval = \"4us\"\nreaction = \"delay\"\nmemory = \"9us\"\nfirst-delay = \"2us\"",
            "resubmissions",
        ),
        ("interval = \"4us\"\nreaction = \"off\"", "cnps_made"),
        ("interval = \"4us\"\nstash = \"20kB\"\nnotification = \"off\"", "overflows"),
        ("interval = \"10us\"\nnotification = \"prototype\"\nreaction = \"prototype\"", "resubmissions"),
        (
            "notification = \"proactive\"\nreaction = \"loop\"\n\
             loop = { rate = \"150Gbps\", delay = \"300ns\", recovery = { after = \"30us\" } }",
            "left_early",
        ),
        (
            "notification = \"proactive\"\nreaction = \"off\"\ninterval = \"1us\"\ncnp-delay-most = \"9us\"\n\
             cnp-table = { entries = 5, install-delay = \"3us\" }",
            "cnps_unaddressed",
        ),
        (
            "notification = \"off\"\nreaction = \"loop\"\nloop = { ramp = \"twenty\", slots = 4, on-collision = \"share\", \
             cpu-delay = \"5us\", background = 30, recovery = { mode = \"direct\", after = \"20us\" } }",
            "collisions",
        ),
        ("interval = \"4us\"\nreaction = \"pause\"\npause = \"5us\"", "reactions"),
    ];
    let workload = "[[workload]]\npoisson = { load = 0.9, count = 60, sizes = { fixed = \"150kB\" }, mix = { local = 1 } }";
    for (e, (edge, counter)) in edges.into_iter().enumerate() {
        for (n, nic) in
            ["cnp = \"flag\"\n[nic.transport.go-back-n]", "cnp-interval = \"4us\""].iter().enumerate()
        {
            for (s, scheme) in ["ecmp", "rps", "flowcut"].iter().enumerate() {
                if !chosen(e, n, s) {
                    continue;
                }
                let text = format!(
                    "{FAR}[switch-role.external.feedback.long-haul]\n{edge}\n[nic]\n{nic}\n[scheme.{scheme}]\n{workload}\n"
                );
                let checked = lay(&text);
                let run = agreed_on(&checked, &text);
                assert!(
                    run.counters.iter().any(|(name, n)| *name == counter && *n > 0),
                    "no {counter} in {text}"
                );
                let stands = edge.contains("reaction = \"prototype\"");
                assert!(run.ending == Ending::Finished || stands, "{:?} in: {text}", run.ending);
                let left = run.counters.iter().find(|(name, _)| *name == "stash_left");
                assert!(
                    stands || left.is_none_or(|(_, n)| *n == 0),
                    "packets are still held at the end: {text}"
                );
            }
        }
    }
}

#[test]
fn rivals_across_two_datacentres_agree_on_both_engines() {
    let annulus =
        "[switch-role.tor.feedback.annulus]\nqueue = \"1kB\"\nsample = \"9kB\"\nleast-sample = \"2kB\"\n";
    let rivals = [
        (annulus.to_owned(), "cnps_made"),
        (
            format!(
                "{annulus}[nic.congestion.annulus]\nnear = {{ timer = \"20us\", bytes = \"9kB\", forget = \"90us\" }}\n"
            ),
            "cnps_made",
        ),
        ("[switch-role.external.feedback.bicc]\ncredit = \"20kB\"\n".to_owned(), "holds"),
        (
            "[switch-role.external.feedback.bicc]\ncredit = \"90kB\"\nper = \"switch\"\nforget = \"40us\"\n"
                .to_owned(),
            "holds",
        ),
        ("[switch-role.external.feedback.fair-rate]\ninterval = \"5us\"\n".to_owned(), "cnps_made"),
    ];
    let workload = "[[workload]]\npoisson = { load = 0.9, count = 60, sizes = { fixed = \"150kB\" }, mix = { local = 1 } }";
    for (rival, counter) in &rivals {
        for nic in ["cnp = \"flag\"\n[nic.transport.go-back-n]", "cnp-interval = \"4us\""] {
            for scheme in ["ecmp", "rps"] {
                let text = format!("{FAR}{rival}[nic]\n{nic}\n[scheme.{scheme}]\n{workload}\n");
                let checked = lay(&text);
                let run = agreed_on(&checked, &text);
                let count = |name: &str| run.counters.iter().find(|(n, _)| *n == name).map(|(_, n)| *n);
                assert!(count(counter).is_some_and(|n| n > 0), "no {counter} in {text}");
                assert_eq!(run.ending, Ending::Finished, "{text}");
                assert_eq!(count("stash_left").unwrap_or(0), 0, "packets still wait at the end: {text}");
            }
        }
    }
}

/// Runs a scenario with many seeds on all engines.
fn agreed_for_seeds(text: &str) -> Vec<Outcome> {
    let run = |seed: u64| {
        let text = format!("seed = {seed}\n{text}");
        let checked = lay(&text);
        agreed_on(&checked, &text)
    };
    (1..30).map(run).collect()
}

const CABLE: &str = "[topology.links]\nhosts = [\"a\", \"b\"]\nlinks = [[\"a\", \"b\"]]\n";

#[test]
fn a_packet_that_waits_for_an_ack_to_leave_has_a_timer() {
    // An arrival causes an ACK and then the next message, whose only packet may get lost.
    let runs = agreed_for_seeds(&format!(
        "{CABLE}[links]\nloss = 0.5\n[[workload]]\nqp = \"per-message\"\n\
         all-reduce = {{ bytes = \"2kB\", groups = \"all\" }}\n"
    ));
    assert!(runs.iter().all(|run| run.ending == Ending::Finished));
    assert!(runs.iter().any(|run| run.control.timeout > 0));
}

#[test]
fn progress_after_a_long_timeout_makes_the_next_one_short_again() {
    let runs = agreed_for_seeds(&format!(
        "{CABLE}[links]\nloss = 0.3\n[nic]\ntimeout = {{ fixed = \"100us\" }}\nbackoff = {{ cap = \"1ms\" }}\n\
         on-timeout = {{ to = 0.001 }}\n[nic.transport.go-back-n]\n[[workload]]\npermutation = {{ bytes = \"60kB\" }}\n"
    ));
    assert!(runs.iter().any(|run| run.control.timeout > 0));
}

#[test]
fn a_buffer_that_fills_in_the_first_half_of_a_window_has_the_same_peak() {
    // A frame every 5 us on a link of 1 Gb/s: most windows and half windows are empty.
    let list: String = (0..20)
        .map(|i| format!("{{ from = \"a\", to = \"b\", bytes = \"1438B\", start = \"{}ns\" }},", i * 5_013))
        .collect();
    for (rate, pfc) in [("100Gbps", "on"), ("73Gbps", "off")] {
        agreed_for_seeds(&format!(
            "[topology.links]\nhosts = [\"a\", \"b\"]\nswitches = [\"s\"]\nrate = \"{rate}\"\n\
             links = [[\"a\", \"s\"], [\"s\", \"b\", \"1Gbps\"]]\n[switch]\npfc = \"{pfc}\"\n\
             [[workload]]\n[workload.flows]\nlist = [{list}]\n"
        ));
    }
}

#[test]
fn a_run_that_stops_inside_a_window_has_the_same_peak() {
    // Only the slow link is busy when the run stops.
    for after in [3_456, 13_579, 20_001] {
        agreed_for_seeds(&format!(
            "[topology.links]\nhosts = [\"a\", \"b\"]\nswitches = [\"s\"]\n\
             links = [[\"a\", \"s\"], [\"s\", \"b\", \"1Gbps\"]]\n[stop]\nafter = \"{after}ns\"\n\
             [[workload]]\npermutation = {{ bytes = \"5kB\" }}\n"
        ));
    }
}

#[test]
fn a_stop_just_after_the_foreground_has_ended_gives_the_same_end() {
    for after in (8_000..9_400).step_by(50) {
        let text = format!(
            "{}[stop]\nafter = \"{after}ns\"\n[[workload]]\nname = \"noise\"\nbackground = true\n\
             neighbour-ring = {{ bytes = \"900kB\" }}\n[[workload]]\npermutation = {{ bytes = \"1kB\" }}\n",
            leaf_spine(2, 2, 2, "")
        );
        let checked = lay(&text);
        let run = agreed_on(&checked, &text);
        assert!(run.end.ps() <= after * 1_000);
    }
}

#[test]
fn unused_timers_widen_no_bin() {
    // 8 packets of 1500 B at 100 Gb/s arrive within 5 us; the timer of the last one would expire 10 ms later. 16
    // bins of 2 us are enough for the message; bins as wide as the timer would need show nothing of it.
    let text = format!(
        "{}[nic]\ntimeout = {{ fixed = \"10ms\" }}\n[nic.congestion.none]\n\
         [[workload]]\nflows = {{ list = [{{ from = \"host0\", to = \"host1\", bytes = \"11504B\" }}] }}\n",
        leaf_spine(2, 2, 1, "rate = \"100Gbps\"\ndelay = \"500ns\"")
    );
    let run = agreed_on(&lay(&text), &text);
    assert_eq!(
        (run.recording.width, run.recording.bins),
        (Time::from_us(2), 1 + (run.end.ps() / 2_000_000) as usize)
    );
}
