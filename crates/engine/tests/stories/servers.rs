//! Claim: a host may have several ports. They share nothing but triggers, which cross from port to port in no time.

use crate::lab::{agreed_on, lay, nic_beside, nics, schemes, suited};
use engine::outcome::Ending;
use model::plan::Trigger;
use model::{MessageId, Plan, Site, Time};
use scenario::{Source, check};

/// Makes message `then` wait until message `first` has arrived.
fn after(plan: &mut Plan, first: usize, then: usize) {
    let trigger = plan.triggers.len() as u32;
    plan.triggers.push(Trigger::Message(MessageId(then as u32)));
    plan.messages[first].on_received = trigger..trigger + 1;
    plan.messages[then].needs += 1;
    scenario::plan_check(plan).unwrap();
}

/// The number of the message from one endpoint to another.
fn message(plan: &Plan, from: &str, to: &str) -> usize {
    let end = |name| plan.fabric.find_host(name).unwrap();
    let (from, to) = (end(from), end(to));
    let found =
        plan.messages.iter().map(|m| &plan.qps[m.qp.index()]).position(|qp| (qp.from, qp.to) == (from, to));
    found.unwrap()
}

/// Two planes, each with a switch of its own, and two hosts with a port to each; 400 Gb/s, 1 us.
const PLANES: &str = "[topology.links]\nhosts = [\"a\", \"b\"]\nswitches = [\"x\", \"y\"]\nrate = \"400Gbps\"\n\
    links = [[\"a\", \"x\"], [\"a\", \"y\"], [\"b\", \"x\"], [\"b\", \"y\"]]\n";

fn flows(list: &[(&str, &str, u64)]) -> String {
    let flow = |(from, to, bytes): &(&str, &str, u64)| {
        format!("{{ from = \"{from}\", to = \"{to}\", bytes = \"{bytes}B\" }}")
    };
    let list: Vec<String> = list.iter().map(flow).collect();
    format!("[[workload]]\nflows = {{ list = [{}] }}\n", list.join(", "))
}

#[test]
fn a_message_leaves_by_one_port_at_the_instant_when_another_arrives_at_the_other_port() {
    let fabric = "[topology.links]\nhosts = [\"a\", \"s\", \"b\"]\nswitches = [\"x\", \"y\"]\nrate = \"400Gbps\"\n\
        links = [[\"a\", \"x\"], [\"s\", \"x\"], [\"s\", \"y\"], [\"b\", \"y\"]]\n";
    for classes in [
        "\"strict\"",
        "[{ kinds = [\"ack\", \"nack\", \"cnp\"], weight = 1 }, { kinds = [\"data\"], weight = 3 }]",
    ] {
        let text = format!(
            "{fabric}[switch]\nclasses = {classes}\n{}",
            flows(&[("a", "sp0", 14_380), ("sp1", "b", 1_438), ("sp1", "b", 143_800)])
        );
        let mut checked = lay(&text);
        let (first, then) = (message(&checked.plan, "a", "sp0"), message(&checked.plan, "sp1", "b"));
        after(&mut checked.plan, first, then);
        let run = agreed_on(&checked, &text);
        // Ten frames of 30.4 ns and one more hop, over two links of 1 us.
        assert_eq!(run.messages[first].received, Time(11 * 30_400 + 2_000_000));
        assert_eq!(run.messages[then].start, run.messages[first].received);
        assert_eq!(run.messages[then].received, run.messages[then].start + Time(2 * 30_400 + 2_000_000));
    }
}

#[test]
fn two_planes_carry_twice_the_load_in_the_same_time() {
    let bytes = 1_438_000;
    let one = format!("{PLANES}{}", flows(&[("ap0", "bp0", bytes)]));
    let both = format!("{PLANES}{}", flows(&[("ap0", "bp0", bytes), ("ap1", "bp1", bytes)]));
    let alone = agreed_on(&lay(&one), &one).messages[0].acked;
    let run = agreed_on(&lay(&both), &both);
    assert_eq!((run.messages[0].acked, run.messages[1].acked), (alone, alone));
}

#[test]
fn a_switch_knows_the_queue_pairs_that_end_at_its_own_ports_of_hosts() {
    let text =
        format!("{PLANES}{}", flows(&[("ap0", "bp0", 1_438), ("ap1", "bp1", 1_438), ("bp1", "ap1", 1_438)]));
    let plan = &lay(&text).plan;
    for (id, qp) in (0..).zip(&plan.qps) {
        let site = Site { plan, node: plan.fabric.attachment(qp.to) };
        assert!(site.incoming().contains(&id), "queue pair {id} to endpoint {}", qp.to);
    }
}

#[test]
fn no_packet_crosses_a_host_from_plane_to_plane() {
    let text = format!("{PLANES}{}", flows(&[("ap0", "bp1", 1_438)]));
    let error = check(&Source::new("story.toml", text), &[]).unwrap_err().to_string();
    assert!(error.contains("ap0") && error.contains("bp1"), "{error}");
    let text = format!("{PLANES}{}", flows(&[("a", "bp1", 1_438)]));
    let error = check(&Source::new("story.toml", text), &[]).unwrap_err().to_string();
    assert!(error.contains("the host `a` has several ports; did you mean `ap0` or `ap1`?"), "{error}");
}

#[test]
fn a_port_that_dies_leaves_the_other_port_working() {
    let bytes = 1_438_000;
    let flows = flows(&[("ap0", "bp0", bytes), ("ap1", "bp1", bytes)]);
    let whole = format!("{PLANES}{flows}");
    let failing = format!(
        "{PLANES}[[failure]]\nlinks = [[\"b\", \"x\"]]\ndown = true\nat = \"10us\"\n[stop]\nafter = \"1ms\"\n{flows}"
    );
    let before = agreed_on(&lay(&whole), &whole);
    let checked = lay(&failing);
    let after = agreed_on(&checked, &failing);
    let (dead, alive) = (message(&checked.plan, "ap0", "bp0"), message(&checked.plan, "ap1", "bp1"));
    assert_eq!(after.messages[dead].acked, Time::NEVER);
    assert_eq!(after.messages[alive].acked, before.messages[alive].acked);
}

/// Two servers of two GPUs with dual-port NICs. Channel 0 of a ring uses the first ports, which are attached to tor0 and
/// tor1; channel 1 uses the second ports, at tor2 and tor3.
fn pair_of_tors(failover: &str, failure: &str) -> String {
    format!(
        "[server]\ngpus = 2\nports-per-nic = 2\nbond-failover = \"{failover}\"\n[topology.rails]\nservers = 2\nspines = 0\n\
         [nic]\ntimeout = {{ fixed = \"200us\" }}\n[stop]\nno-progress = \"20ms\"\n{failure}[[workload]]\n\
         collective = {{ kind = \"all-reduce\", bytes = \"1438kB\", algorithm = \"ring\", tuning = {{ ports = \"round-robin\" }} }}\n"
    )
}

/// The last arrival of the messages of the first ports and of the second ports, and the ending, in all engines.
fn last_arrivals(text: &str) -> (Time, Time, Ending) {
    let checked = lay(text);
    let outcome = agreed_on(&checked, text);
    let port = |m: &model::plan::Message| checked.plan.fabric.host_name(checked.plan.qps[m.qp.index()].from);
    let of_port = |end: &str| {
        let ends =
            checked.plan.messages.iter().zip(&outcome.messages).filter(|(m, _)| port(m).ends_with(end));
        ends.map(|(_, record)| record.received).max().unwrap()
    };
    (of_port("p0"), of_port("p1"), outcome.ending)
}

const TOR3_DIES: &str = "[[failure]]\nswitch = \"tor3\"\nat = \"5us\"\n";

#[test]
fn without_failover_the_messages_of_a_dead_tor_wait_for_its_repair_and_those_of_the_other_tor_do_not() {
    let (first, second, ending) = last_arrivals(&pair_of_tors("wait", ""));
    assert_eq!(ending, Ending::Finished);
    assert!(first < Time::from_ms(1) && second < Time::from_ms(1));
    let repaired = format!("{TOR3_DIES}until = \"3ms\"\n");
    let (same, late, ending) = last_arrivals(&pair_of_tors("wait", &repaired));
    assert_eq!((same, &ending), (first, &Ending::Finished));
    assert!(late > Time::from_ms(3), "{late}");
    let (same, never, ending) = last_arrivals(&pair_of_tors("wait", TOR3_DIES));
    assert_eq!((same, never), (first, Time::NEVER));
    assert!(matches!(ending, Ending::Stalled(_)), "{ending:?}");
}

#[test]
fn a_bond_moves_the_queue_pairs_of_a_dead_tor_to_the_other_tor() {
    let (_, whole, ending) = last_arrivals(&pair_of_tors("resend", ""));
    assert_eq!(ending, Ending::Finished);
    let failure = |detection: &str| format!("{TOR3_DIES}[routing]\ndetection = \"{detection}\"\n");
    // The packets in flight are lost. The timer resends them 200 us later at most; by then they use the other port.
    let (_, second, ending) = last_arrivals(&pair_of_tors("resend", &failure("20us")));
    assert_eq!(ending, Ending::Finished);
    assert!(second.ps() < 2 * whole.ps() + Time::from_us(200 + 20).ps(), "{second} after {whole}");
    // As long as routes are old, the queue pairs of the dead ToR send in vain.
    let (_, second, ending) = last_arrivals(&pair_of_tors("resend", &failure("2ms")));
    assert_eq!(ending, Ending::Finished);
    assert!(second > Time::from_ms(2) && second < Time::from_ms(4), "{second}");
}

#[test]
fn a_bond_returns_to_its_own_ports_after_the_repair() {
    // When the second ToR is back, the first one dies, and its queue pairs move the other way.
    let repaired = format!("{TOR3_DIES}until = \"100us\"\n[routing]\ndetection = \"20us\"\n");
    let second_failure = "[[failure]]\nswitch = \"tor1\"\nat = \"300us\"\n";
    let long = pair_of_tors("resend", &format!("{repaired}{second_failure}")).replace("1438kB", "50MB");
    let (first, _, ending) = last_arrivals(&long);
    assert_eq!(ending, Ending::Finished);
    assert!(first > Time::from_us(320 + 200), "{first}");
}

#[test]
fn under_any_scheme_a_bond_outlives_failures_of_its_ports() {
    bonds(&|turn, victim| turn % 3 == victim);
}

#[test]
#[ignore = "every failure under every scheme, of which the test above has a third: a minute"]
fn under_any_scheme_a_bond_outlives_every_failure_of_its_ports() {
    bonds(&|_, _| true);
}

/// Runs those pairs of a scheme's turn and of a victim, by their numbers, that are `chosen`.
fn bonds(chosen: &dyn Fn(usize, usize) -> bool) {
    let (schemes, nics) = (schemes(), nics());
    let pairs = schemes.iter().enumerate().flat_map(|(i, scheme)| [(i, scheme), (i + 7, scheme)]);
    for (turn, scheme) in pairs {
        let nic = nic_beside(scheme, &nics[turn % nics.len()]);
        let planes = 1 + turn % 2;
        let victims =
            ["switch = \"tor0\"", "switch = \"tor7\"", "links = [[\"s1\", \"tor4\"], [\"s2\", \"tor2\"]]"];
        for (_, victim) in victims.iter().enumerate().filter(|(v, _)| chosen(turn, *v)) {
            let text = format!(
                "[server]\ngpus = 2\nports-per-nic = 2\n[topology.rails]\nservers = 4\nservers-per-segment = 2\nspines = 2\n\
                 planes = {planes}\n[[failure]]\n{victim}\nat = \"20us\"\nuntil = \"900us\"\n[routing]\n\
                 detection = \"50us\"\n{scheme}{nic}\n\
                 [[workload]]\ncollective = {{ kind = \"all-to-all\", bytes = \"4MB\" }}\n"
            );
            let Some(checked) = suited(&text) else { continue };
            assert!(checked.plan.sharing.is_some());
            let outcome = agreed_on(&checked, &text);
            assert_eq!(outcome.ending, Ending::Finished, "{text}");
        }
    }
}

/// Four servers with NICs of four ports in four planes, whose packets spread over them. The switches cut packets.
pub(crate) fn planes(scheme: &str, nic: &str, rest: &str) -> String {
    format!(
        "[server]\ngpus = 1\nports-per-nic = 4\nport-use = \"spread\"\n[topology.rails]\nkind = \"per-server\"\nservers = 6\n\
         servers-per-segment = 3\nspines = 2\nplanes = 4\nrate = \"100Gbps\"\ndelay = \"500ns\"\n\
         [switch]\npfc = \"off\"\ncut = \"on\"\nqueue-cap = \"30kB\"\nqueue-cap-to-hosts = \"40kB\"\n\
         classes = [{{ kinds = [\"ack\", \"nack\", \"cnp\", \"control\", \"trimmed\"] }}, {{ kinds = [\"data\"] }}]\n\
         ecn = {{ kmin = \"9kB\", kmax = \"30kB\", pmax = 1.0 }}\n\
         [scheme.{scheme}]\n[nic]\ntimeout = {{ fixed = \"100us\" }}\n{nic}\n{rest}"
    )
}

const SPREADING: [&str; 4] = ["mrc", "oblivious", "entropy-mixed", "ecmp"];
const TWO_ENDS: [&str; 3] = [
    "[nic.transport.mrc]\n[nic.congestion.nscc]",
    "[nic.transport.uec]\n[nic.congestion.rccc]",
    "[nic.transport.uec]\n[nic.congestion.none]",
];

/// A sender whose frames are all data: the receiver sends no probes, so there are no answers to them.
const QUIET: &str = "[nic.transport.mrc]\nreply-paths = \"of-packet\"\n[nic.congestion.none]";

#[test]
fn packets_that_spread_over_planes_arrive_once_whatever_fails() {
    let all_to_all = "[[workload]]\ncollective = { kind = \"all-to-all\", bytes = \"3MB\" }\n";
    let failures = [
        "",
        "[[failure]]\nswitch = \"spine1\"\nat = \"20us\"\n[routing]\ndetection = \"50us\"\n",
        "[[failure]]\nswitch = \"tor2\"\nat = \"20us\"\nuntil = \"400us\"\n[routing]\ndetection = \"30us\"\n",
        "[[failure]]\nlinks = [[\"s1\", \"tor0\"], [\"s4\", \"tor7\"]]\nat = \"10us\"\n[routing]\ndetection = \"30us\"\n",
        "[links]\nloss = 0.002\nlose-replies = true\n",
        "[[failure]]\nlinks = [[\"s1\", \"tor0\"], [\"s4\", \"tor7\"]]\nat = \"10us\"\nuntil = \"90us\"\n\
         [routing]\ndetection = \"never\"\n",
    ];
    for (i, scheme) in SPREADING.iter().enumerate() {
        for (k, failure) in failures.iter().enumerate() {
            let text = planes(scheme, TWO_ENDS[(i + k) % 3], &format!("{failure}{all_to_all}"));
            let checked = lay(&text);
            let outcome = agreed_on(&checked, &text);
            assert_eq!(outcome.ending, Ending::Finished, "{text}");
        }
    }
}

#[test]
fn one_message_spreads_evenly_over_four_planes_and_fills_them() {
    let flow =
        "[[workload]]\n[workload.flows]\nlist = [{ from = \"s0g0p0\", to = \"s4g0p0\", bytes = \"10MB\" }]\n";
    let text = planes("mrc", QUIET, flow);
    let checked = lay(&text);
    let outcome = agreed_on(&checked, &text);
    let sent: Vec<u64> = outcome.links[..4].iter().map(|link| link.frames).collect();
    assert!(sent.iter().max().unwrap() - sent.iter().min().unwrap() <= 1, "{sent:?}");
    let fct = outcome.messages[0].acked.ps() as f64;
    // 10 MB take 200 us at 400 Gb/s.
    assert!(fct < 1.1 * 200e6, "{fct}");
}

#[test]
fn two_messages_of_one_nic_share_every_plane() {
    for (scheme, nic) in [("oblivious", TWO_ENDS[2]), ("mrc", QUIET)] {
        let flow = |to: usize| format!("{{ from = \"s0g0p0\", to = \"s{to}g0p0\", bytes = \"10MB\" }}");
        let list = [3, 4].map(flow);
        let flows = format!("[[workload]]\nflows = {{ list = [{}] }}\n", list.join(", "));
        let text = planes(scheme, nic, &flows);
        let checked = lay(&text);
        let outcome = agreed_on(&checked, &text);
        assert_eq!(outcome.ending, Ending::Finished);
        let fabric = &checked.plan.fabric;
        for server in [3, 4] {
            let arrived = |port: usize| {
                let up = &fabric.links()[4 * server + port];
                let down = fabric.reverse(fabric.link(up.from, up.port));
                outcome.links[down.index()].frames
            };
            let planes = [0, 1, 2, 3].map(arrived);
            let mean = planes.iter().sum::<u64>() / 4;
            // The mean is 1738. In strict turns, each message would leave two planes to the other.
            assert!(planes.iter().all(|frames| frames.abs_diff(mean) < 150), "{scheme}: {planes:?}");
        }
    }
}

/// A receiver's probes find paths for its ACKs. So a spine that carries ACKs of a plane carries many at a time.
#[test]
fn the_acks_of_every_nic_of_a_server_take_paths_that_were_probed() {
    let largest_share = |nic: usize, paths: &str| {
        let flow = format!("{{ from = \"s0g{nic}p0\", to = \"s3g{nic}p0\", bytes = \"2MB\" }}");
        let transport = format!("[nic.transport.mrc]\nreply-paths = \"{paths}\"\n[nic.congestion.none]");
        let text = planes("mrc", &transport, &format!("[[workload]]\nflows = {{ list = [{flow}] }}\n"))
            .replace("gpus = 1", "gpus = 3")
            .replace("spines = 2", "spines = 16");
        let checked = lay(&text);
        let (outcome, fabric) = (agreed_on(&checked, &text), &checked.plan.fabric);
        let tor = fabric.attachment(fabric.find_host(&format!("s3g{nic}p0")).unwrap());
        let ups = fabric.ports(tor).iter().filter(|link| !fabric.is_host(link.to));
        let frames: Vec<u64> =
            ups.map(|link| outcome.links[fabric.link(tor, link.port).index()].frames).collect();
        *frames.iter().max().unwrap() as f64 / frames.iter().sum::<u64>() as f64
    };
    for nic in 0..3 {
        let [probed, of_packet] = ["probed", "of-packet"].map(|paths| largest_share(nic, paths));
        assert!(of_packet < 0.15 && probed > 0.2, "NIC {nic}: {probed} and {of_packet}");
    }
}

/// A message between two ports of a bond meets both of its ends at one NIC: grants must reach the sending end.
#[test]
fn the_ports_of_a_bond_grant_each_other_credit() {
    let of = |to: &str, control: &str| {
        let text = format!(
            "[server]\ngpus = 1\nports-per-nic = 2\n[topology.rails]\nkind = \"per-server\"\nservers = 4\nrate = \"100Gbps\"\n\
             [[failure]]\nlinks = [[\"s3\", \"tor0\"]]\nat = \"1us\"\n[nic.transport.uec]\n[nic.congestion.{control}]\n\
             [[workload]]\nflows = {{ list = [{{ from = \"s0g0p0\", to = \"{to}\", bytes = \"5MB\" }}] }}\n"
        );
        let checked = lay(&text);
        assert!(checked.plan.sharing.is_some());
        let run = agreed_on(&checked, &text);
        assert_eq!((run.ending, run.control.timeout), (Ending::Finished, 0), "{to}, {control}");
        run.messages[0].acked.ps() as f64
    };
    for control in ["rccc", "ndp"] {
        let (within, apart) = (of("s0g0p1", control), of("s1g0p1", control));
        assert!((within / apart - 1.0).abs() < 0.05, "{control}: {within} and {apart} ps");
    }
}

/// Frames that four ports of a server carry while it sends 10 MB, with these denied planes.
fn frames_with_denied(denied: &str) -> Vec<u64> {
    let flow =
        "[[workload]]\n[workload.flows]\nlist = [{ from = \"s0g0p0\", to = \"s4g0p0\", bytes = \"10MB\" }]\n";
    let text =
        planes("mrc", QUIET, flow).replace("[scheme.mrc]\n", &format!("[scheme.mrc]\ndenied = [{denied}]\n"));
    let outcome = agreed_on(&lay(&text), &text);
    assert_eq!(outcome.ending, Ending::Finished);
    outcome.links[..4].iter().map(|link| link.frames).collect()
}

#[test]
fn a_denied_plane_carries_nothing_and_the_others_keep_equal_shares() {
    let sent = frames_with_denied("{ plane = 2 }");
    assert_eq!(sent[2], 0);
    let others = [sent[0], sent[1], sent[3]];
    assert!(others.iter().max().unwrap() - others.iter().min().unwrap() <= 1, "{sent:?}");
    // The flow takes 200 us over four planes. A plane that is denied for 100 us of them carries about half its share.
    let sent = frames_with_denied("{ plane = 1, at = \"40us\", until = \"140us\" }");
    let half = sent[1] as f64 / sent[0] as f64;
    assert!((0.4..0.6).contains(&half), "{sent:?}");
}

/// A denied port is always free. Queue pairs that could not use it once lost their places in line, and the last ones starved.
#[test]
fn queue_pairs_keep_their_turns_while_a_plane_is_denied() {
    let flows: Vec<String> =
        (1..6).map(|to| format!("{{ from = \"s0g0p0\", to = \"s{to}g0p0\", bytes = \"2MB\" }}")).collect();
    let work = format!("[[workload]]\n[workload.flows]\nlist = [{}]\n", flows.join(",\n"));
    for denied in ["{ plane = 3 }, { plane = 1 }", "{ plane = 3 }, { plane = 1 }, { plane = 0 }"] {
        let text = planes("mrc", QUIET, &work)
            .replace("[scheme.mrc]\n", &format!("[scheme.mrc]\ndenied = [{denied}]\n"));
        let outcome = agreed_on(&lay(&text), &text);
        let ends: Vec<f64> = outcome.messages.iter().map(|message| message.received.as_us()).collect();
        let (first, last) =
            (ends.iter().copied().fold(f64::MAX, f64::min), ends.iter().copied().fold(0.0, f64::max));
        assert!(first > 0.9 * last, "{denied}: {ends:?}");
    }
}

#[test]
fn a_nic_leaves_a_dead_path_by_itself_when_routes_stay_frozen() {
    let flow = "[[workload]]\n[workload.flows]\nlist = [{ from = \"s0g0p0\", to = \"s4g0p0\", bytes = \"40MB\" }]\n\
                [[failure]]\nswitch = \"spine0\"\nat = \"50us\"\n[routing]\ndetection = \"100ms\"\n";
    let lost = |scheme: &str| {
        let text = planes(scheme, "[nic.transport.mrc]\n[nic.congestion.nscc]", flow);
        let checked = lay(&text);
        let outcome = agreed_on(&checked, &text);
        assert_eq!(outcome.ending, Ending::Finished);
        outcome.data.dropped_link
    };
    // An eighth of the paths leads over the dead spine: half of a plane.
    let (mrc, oblivious) = (lost("mrc"), lost("oblivious"));
    assert!(mrc * 4 < oblivious, "{mrc} {oblivious}");
}

#[test]
fn a_ring_over_the_ports_of_its_hosts_waits_for_no_port() {
    // Twelve ports at three hosts pass one message on from host to host: it arrives at port p and leaves by port p + 1.
    let links: Vec<String> =
        (0..3).flat_map(|h| (0..4).map(move |p| format!("[\"h{h}\", \"s{}\"]", (h + p) % 2))).collect();
    let mut list = String::new();
    let name = |i: usize| format!("h{}p{}", i % 3, i % 4);
    for i in 0..12 {
        let leaves = format!("h{}p{}", i % 3, (i + 1) % 4);
        list += &format!("{{ from = \"{leaves}\", to = \"{}\", bytes = \"5752B\" }},", name(i + 1));
    }
    let text = format!(
        "[topology.links]\nhosts = [\"h0\", \"h1\", \"h2\"]\nswitches = [\"s0\", \"s1\"]\nlinks = [{}, [\"s0\", \"s1\"]]\n\
         [[workload]]\nqp = \"per-message\"\nflows = {{ list = [{list}] }}\n",
        links.join(", ")
    );
    let mut checked = lay(&text);
    let plan = &mut checked.plan;
    let order: Vec<usize> =
        (0..12).map(|i| message(plan, &format!("h{}p{}", i % 3, (i + 1) % 4), &name(i + 1))).collect();
    for pair in order.windows(2) {
        after(plan, pair[0], pair[1]);
    }
    let run = agreed_on(&checked, &text);
    for pair in order.windows(2) {
        assert_eq!(run.messages[pair[1]].start, run.messages[pair[0]].received);
    }
}
