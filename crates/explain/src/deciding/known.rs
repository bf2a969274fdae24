//! Scenarios whose cause is known, because it is the only thing that is wrong with them.

use super::blame::{self, Blame};
use super::root::Root;
use lab::Prepared;
use scenario::Source;

/// A scenario, the cause, and a word that its phrase must have.
struct Case {
    name: &'static str,
    text: String,
    cause: &'static [Root],
    word: &'static str,
}

/// Smallest share of cases whose largest cause is the right one: 27 of 30.
const RIGHT: f64 = 0.9;

fn blame(case: &Case) -> Blame {
    let prepared = Prepared::by(|| scenario::check(&Source::new("known.toml", case.text.clone()), &[]));
    let run = lab::run(prepared.unwrap_or_else(|e| panic!("{}: {e}\nin:\n{}", case.name, case.text)));
    let again = lab::run(blame::recording(&run).unwrap());
    assert_eq!(run.summary.digest, again.summary.digest, "{}", case.name);
    blame::of(&again).unwrap().unwrap_or_else(|| panic!("{}: no flow lost time", case.name))
}

/// Two leaves with `hosts` hosts each and `spines` spines, at 100 Gb/s.
fn fabric(hosts: u32, spines: u32) -> String {
    format!(
        "[topology.leaf-spine]\nleaves = 2\nspines = {spines}\nhosts-per-leaf = {hosts}\nrate = \"100Gbps\"\ndelay = \"1us\"\n"
    )
}

/// Flows as a list of sender, receiver and bytes, in a job of their own.
fn flows(flows: &[(u32, u32, &str)]) -> String {
    let of = |(from, to, bytes): &(u32, u32, &str)| {
        format!("{{ from = \"host{from}\", to = \"host{to}\", bytes = \"{bytes}\" }}")
    };
    format!(
        "[[workload]]\n[workload.flows]\nlist = [{}]\n",
        flows.iter().map(of).collect::<Vec<_>>().join(", ")
    )
}

const NONE: &str = "[nic.congestion.none]\n";
const INCAST: [(u32, u32, &str); 4] = [(0, 7, "1MB"), (1, 7, "1MB"), (2, 7, "1MB"), (4, 7, "1MB")];
/// Servers of one GPU and a step of training, whose computation and messages are set by the case.
const STEP: &str = "[server]\ngpus = 1\n[topology.rails]\nservers = 4\nspines = 1\n[nic.congestion.none]\n[[workload]]\n[workload.training]\n\
                    model = { hidden = 256, layers = 2, heads = 4, ffn = 1024, vocab = 1000 }\n\
                    batch = { global = 4, sequence = 128 }\n";

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut case = |name, text: String, cause: &'static [Root], word| {
        cases.push(Case { name, text, cause, word });
    };
    let slow = "[[failure]]\nlinks = [[\"leaf0\", \"spine0\"]]\nrate = 0.2\n";
    case(
        "a slow link",
        format!("{NONE}{}{slow}{}", fabric(2, 1), flows(&[(0, 2, "1MB")])),
        &[Root::SlowLink],
        "leaf0",
    );
    let slow = "[[failure]]\nlinks = [[\"host0\", \"leaf0\"]]\nrate = 0.2\n";
    case(
        "a slow port",
        format!("{NONE}{}{slow}{}", fabric(2, 1), flows(&[(0, 2, "1MB")])),
        &[Root::SlowLink],
        "host0",
    );
    let slow = "[[failure]]\nlinks = [[\"leaf1\", \"host2\"]]\none-way = true\nrate = 0.2\n";
    case(
        "a slow link to the receiver, under DCQCN",
        format!("{}{slow}{}", fabric(2, 1), flows(&[(0, 2, "4MB")])),
        &[Root::SlowLink, Root::Control],
        "",
    );
    let gray = "[[failure]]\nlinks = [[\"leaf0\", \"spine0\"]]\nloss = 0.02\n";
    case(
        "a gray link",
        format!("{NONE}{}{gray}{}", fabric(2, 1), flows(&[(0, 2, "2MB"), (1, 3, "2MB")])),
        &[Root::Loss, Root::Timer],
        "spine0",
    );
    let noise = "[links]\ngilbert = { good-to-bad = 0.01, bad-to-good = 0.3, loss-in-bad = 0.5 }\nnoisy = [[\"leaf0\", \"spine0\"]]\n";
    case(
        "a noisy link",
        format!("{NONE}{}{noise}{}", fabric(2, 1), flows(&[(0, 2, "2MB"), (1, 3, "2MB")])),
        &[Root::Loss, Root::Timer],
        "the noisy link leaf0 -> spine0",
    );
    let lose = "[links]\nloss = 0.01\n";
    case(
        "links that all lose packets",
        format!("{NONE}{}{lose}{}", fabric(2, 1), flows(&[(0, 2, "2MB")])),
        &[Root::Loss, Root::Timer],
        "",
    );
    let last = "[[links.lose]]\nfrom = \"host0\"\nto = \"host2\"\npsns = [69]\n";
    case(
        "the last packet lost",
        format!("{NONE}{}{last}{}", fabric(2, 1), flows(&[(0, 2, "100kB")])),
        &[Root::Timer],
        "",
    );
    let down = "[routing]\ndetection = \"never\"\n[nic]\ntimeout = { fixed = \"5ms\" }\n[[failure]]\nlinks = [[\"leaf0\", \"spine0\"]]\n\
                at = \"0us\"\nuntil = \"1ms\"\n";
    case(
        "a timer of 5 ms",
        format!("{NONE}{}{down}{}", fabric(2, 1), flows(&[(0, 2, "100kB")])),
        &[Root::Timer],
        "4,99",
    );
    case("an incast", format!("{NONE}{}{}", fabric(4, 4), flows(&INCAST)), &[Root::Receiver], "host7");
    let small = "[switch]\nbuffer = \"300kB\"\n";
    case(
        "an incast that pauses its senders",
        format!("{NONE}{}{small}{}", fabric(4, 4), flows(&INCAST)),
        &[Root::Receiver],
        "host7",
    );
    case(
        "an incast under HPCC",
        format!("[nic.congestion.hpcc]\n{}{}", fabric(4, 4), flows(&INCAST)),
        &[Root::Receiver],
        "host7",
    );
    case(
        "an incast under Swift",
        format!("[nic.congestion.swift]\n{}{}", fabric(4, 4), flows(&INCAST)),
        &[Root::Receiver],
        "host7",
    );
    let lossy = "[switch]\nbuffer = \"300kB\"\npfc = \"off\"\n";
    case(
        "a lossy class",
        format!("{NONE}{}{lossy}{}", fabric(4, 4), flows(&INCAST)),
        &[Root::Drops, Root::Timer],
        "",
    );
    let cut = "[switch]\ncut = {}\nqueue-cap = \"50kB\"\npfc = \"off\"\necn = \"off\"\n[nic.transport.uec]\n";
    case(
        "an incast whose packets are trimmed",
        format!("{NONE}{}{cut}{}", fabric(4, 4), flows(&INCAST)),
        &[Root::Drops, Root::Receiver],
        "",
    );
    let harsh = "[nic.congestion.dcqcn]\nbyte-reset = \"0B\"\nrate-increase-timer = \"3ms\"\n\
                 [switch.ecn]\nkmin = \"1kB\"\nkmax = \"5kB\"\npmax = 1.0\n";
    case("a harsh control", format!("{}{harsh}{}", fabric(4, 4), flows(&INCAST)), &[Root::Control], "DCQCN");
    let nvidia =
        "[nic.congestion.dcqcn]\nbyte-reset = \"0B\"\n[switch.ecn]\nkmin = \"5kB\"\nkmax = \"20kB\"\n";
    case(
        "a control without a byte counter",
        format!("{}{nvidia}{}", fabric(4, 4), flows(&[(0, 7, "1MB"), (1, 7, "1MB")])),
        &[Root::Control],
        "DCQCN",
    );
    case(
        "a limit on the rate",
        format!("[nic.congestion.dcqcn]\nmax-rate = \"10Gbps\"\n{}{}", fabric(2, 1), flows(&[(0, 2, "1MB")])),
        &[Root::Control],
        "",
    );
    let window = "[nic]\nwindow = { bytes = \"10kB\" }\n";
    case(
        "a small window",
        format!("{window}{NONE}{}{}", fabric(2, 1), flows(&[(0, 2, "1MB")])),
        &[Root::Window],
        "",
    );
    // The incast fills host0, the spine stands paused, and the victim goes to a free host.
    let beside = "uplink-rate = \"400Gbps\"\n[switch]\nbuffer = \"300kB\"\n[[workload]]\nbackground = true\n[workload.flows]\nlist = [\
                  { from = \"host4\", to = \"host0\", bytes = \"4MB\" }, { from = \"host5\", to = \"host0\", bytes = \"4MB\" }, \
                  { from = \"host6\", to = \"host0\", bytes = \"4MB\" }]\n";
    case(
        "a paused neighbour",
        format!("{NONE}{}{beside}{}", fabric(4, 1), flows(&[(7, 1, "200kB")])),
        &[Root::Pauses],
        "leaf0 -> host0",
    );
    let slow_host = "[nic]\nreceive = { rate = \"10Gbps\", pause = true }\n";
    case(
        "a host that takes data slowly",
        format!("{slow_host}{NONE}{}{}", fabric(2, 1), flows(&[(0, 2, "1MB")])),
        &[Root::SlowHost, Root::Receiver],
        "host2",
    );
    let all: Vec<(u32, u32, &str)> = (0..8).map(|i| (i, i + 8, "1MB")).collect();
    case(
        "hashes that collide",
        format!("{NONE}{}{}", fabric(8, 8), flows(&all)),
        &[Root::Collisions],
        "times the mean",
    );
    case(
        "four hosts for an uplink",
        format!("{NONE}{}{}", fabric(8, 1), flows(&all)),
        &[Root::Uplinks],
        "spine0",
    );
    case(
        "oversubscription, sprayed",
        format!("{NONE}{}[nic.transport.ideal]\n[scheme.rps]\n{}", fabric(8, 2), flows(&all)),
        &[Root::Uplinks],
        "spine",
    );
    let fat = "[topology.fat-tree]\nk = 4\nrate = \"100Gbps\"\ndelay = \"1us\"\n";
    case(
        "collisions in a fat tree",
        format!("{NONE}{fat}[[workload]]\npermutation = {{ bytes = \"1MB\", kind = \"cross-pod\" }}\n"),
        &[Root::Collisions],
        "times the mean",
    );
    case(
        "one sender for all",
        format!(
            "{NONE}{}{}",
            fabric(4, 4),
            flows(&[(0, 4, "1MB"), (0, 5, "1MB"), (0, 6, "1MB"), (0, 7, "1MB")])
        ),
        &[Root::Sender],
        "host0",
    );
    case(
        "messages on one queue pair",
        format!("{NONE}{}{}", fabric(4, 4), flows(&[(0, 4, "1MB"), (0, 4, "1MB"), (0, 4, "1MB")])),
        &[Root::Order],
        "",
    );
    let late = "[scheme.rps]\n[nic.transport.go-back-n]\n[[failure]]\nlinks = [[\"leaf0\", \"spine1\"]]\nrate = 0.5\n";
    case(
        "reordering behind a slow link",
        format!("{NONE}{}{late}{}", fabric(1, 2), flows(&[(0, 1, "500kB")])),
        &[Root::Reordering, Root::SlowLink],
        "spine1",
    );
    let sprayed = "[scheme.rps]\n[nic.transport.go-back-n]\n";
    case(
        "reordering by spraying",
        format!(
            "{NONE}{}{sprayed}{}",
            fabric(4, 4),
            flows(&[(0, 4, "1MB"), (1, 5, "1MB"), (2, 6, "1MB"), (3, 7, "1MB")])
        ),
        &[Root::Reordering],
        "",
    );
    case(
        "computation",
        format!("{STEP}compute = {{ forward = \"5ms\", backward = \"10ms\" }}\n"),
        &[Root::Computation],
        "computation",
    );
    let straggler = STEP.replace("[[workload]]\n", "[[workload]]\nslow = { server = 2, factor = 4.0 }\n");
    case(
        "a straggler",
        format!("{straggler}compute = {{ forward = \"5ms\", backward = \"10ms\" }}\n"),
        &[Root::Straggler],
        "s2",
    );
    case(
        "messages alone",
        format!("{STEP}compute = {{ forward = \"1us\", backward = \"1us\" }}\n"),
        &[Root::Alone],
        "",
    );
    let dead = "[routing]\ndetection = \"never\"\n[[failure]]\nlinks = [[\"leaf0\", \"spine0\"]]\nat = \"10us\"\nuntil = \"20ms\"\n";
    case(
        "a link that is down unseen",
        format!("{NONE}{}{dead}{}", fabric(2, 1), flows(&[(0, 2, "1MB")])),
        &[Root::Timer],
        "",
    );
    cases
}

#[test]
fn the_named_cause_is_the_right_one() {
    let cases = cases();
    assert!(cases.len() >= 30);
    let (mut wrong, mut certain) = (Vec::new(), Vec::new());
    for case in &cases {
        let blame = blame(case);
        let most = &blame.causes[0];
        let right = case.cause.contains(&most.cause) && most.what.contains(case.word);
        println!("{}: {:.0} % {}", case.name, 100.0 * most.share, most.what);
        if !right {
            wrong.push(format!("{}: {:#?}", case.name, blame.causes));
            if blame.dominant().is_some() {
                certain.push(case.name);
            }
        }
    }
    assert!(certain.is_empty(), "wrong, and stated as certain: {certain:?}\n{}", wrong.join("\n"));
    let right = (cases.len() - wrong.len()) as f64 / cases.len() as f64;
    assert!(right >= RIGHT, "{}", wrong.join("\n"));
}
