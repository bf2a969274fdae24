//! Claim: a host may have several ports. They share nothing but triggers, which cross from port to port in no time.

use crate::lab::{agreed_on, lay};
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
    assert!(error.contains("the host `a` has several ports; did you mean `ap0`?"), "{error}");
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

#[test]
fn if_a_tor_of_a_pair_dies_its_messages_wait_for_its_repair_and_those_of_the_other_tor_do_not() {
    // Channel 0 uses the first ports, which are attached to tor0; channel 1 uses the second ports, at tor3.
    let ring = |failure: &str| {
        format!(
            "[server]\ngpus = 2\nports-per-nic = 2\n[topology.rails]\nservers = 2\nspines = 0\n\
             [nic]\ntimeout = {{ fixed = \"200us\" }}\n[stop]\nno-progress = \"20ms\"\n{failure}[[workload]]\n\
             collective = {{ kind = \"all-reduce\", bytes = \"1438kB\", algorithm = \"ring\", tuning = {{ ports = \"round-robin\" }} }}\n"
        )
    };
    let dead = "[[failure]]\nswitch = \"tor3\"\nat = \"5us\"\n";
    let run = |text: &str| {
        let checked = lay(text);
        let outcome = agreed_on(&checked, text);
        let port =
            |m: &model::plan::Message| checked.plan.fabric.host_name(checked.plan.qps[m.qp.index()].from);
        let of_port = |end: &str| {
            let ends =
                checked.plan.messages.iter().zip(&outcome.messages).filter(|(m, _)| port(m).ends_with(end));
            ends.map(|(_, record)| record.received).max().unwrap()
        };
        (of_port("p0"), of_port("p1"), outcome.ending)
    };
    let (first, second, ending) = run(&ring(""));
    assert_eq!(ending, Ending::Finished);
    assert!(first < Time::from_ms(1) && second < Time::from_ms(1));
    let (same, late, ending) = run(&ring(&format!("{dead}until = \"3ms\"\n")));
    assert_eq!((same, &ending), (first, &Ending::Finished));
    assert!(late > Time::from_ms(3), "{late}");
    let (same, never, ending) = run(&ring(dead));
    assert_eq!((same, never), (first, Time::NEVER));
    assert!(matches!(ending, Ending::Stalled(_)), "{ending:?}");
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
