//! Scenarios in which one thing delays a flow. The explanation must name the cause, and its pieces must add up.

use crate::*;
use lab::Prepared;
use scenario::Source;

/// Runs a scenario with every queue pair followed, and explains a flow.
fn explained(text: &str, flow: &str) -> Explanation {
    let source = Source::new("story.toml", format!("{text}\n[record]\nevents = \"all\"\n"));
    let prepared = match Prepared::by(|| scenario::check(&source, &[])) {
        Ok(prepared) => prepared,
        Err(e) => panic!("{e}\nin:\n{text}"),
    };
    let checked = prepared.checked.clone();
    let results = lab::run(prepared).results(vec![]);
    let flow = find(&results, &checked.plan, flow).unwrap();
    let explanation = Explanation::of(&checked, &results, &flow).unwrap();
    let parts: f64 = explanation.account.delays.iter().map(|delay| delay.us).sum();
    let base = explanation.account.ideal_us.or(explanation.account.sending_us).unwrap();
    let wrong = base + parts - explanation.account.elapsed_us;
    assert!(wrong.abs() < 2e-6, "the pieces add up to {wrong} us too much in\n{}", explanation.text());
    explanation
}

/// Hosts `a`, `b`, `c`, `d` at a switch, 100 Gb/s and 1 us each; flows as a list.
fn star(keys: &str, flows: &[(&str, &str, &str)]) -> String {
    let flows: Vec<String> = flows
        .iter()
        .map(|(from, to, bytes)| format!("{{ from = \"{from}\", to = \"{to}\", bytes = \"{bytes}\" }}"))
        .collect();
    format!(
        "{keys}\n[topology.links]\nhosts = [\"a\", \"b\", \"c\", \"d\"]\nswitches = [\"s\"]\nrate = \"100Gbps\"\ndelay = \"1us\"\n\
         links = [[\"a\", \"s\"], [\"b\", \"s\"], [\"c\", \"s\"], [\"d\", \"s\"]]\n\
         [[workload]]\n[workload.flows]\nlist = [{}]\n",
        flows.join(", ")
    )
}

/// Delay with this cause, us.
fn spent(e: &Explanation, cause: Cause) -> f64 {
    e.account.delays.iter().find(|delay| delay.cause == cause).map_or(0.0, |delay| delay.us)
}

/// A full frame at 100 Gb/s, us: 1520 B on the wire.
const FRAME: f64 = 0.121_6;

fn close(got: f64, wanted: f64) -> bool {
    (got - wanted).abs() < 2e-6
}

#[test]
fn a_flow_alone_is_not_delayed() {
    for bytes in ["1B", "1439B", "1MB"] {
        let e = explained(&star("", &[("a", "b", bytes)]), "0");
        assert_eq!(e.account.delays, [], "{}", e.text());
        assert!(e.answer.ends_with("1.00 times its ideal: nothing slowed it."), "{}", e.answer);
        assert!(e.timeline.len() <= 4, "{}", e.text());
    }
}

#[test]
fn a_message_waits_behind_the_one_before_it_on_its_queue_pair() {
    let e = explained(&star("", &[("a", "b", "143800B"), ("a", "b", "14380B")]), "1");
    // Both flows were posted at 0, and a hundred frames of the first go first.
    assert!(close(spent(&e, Cause::Behind), 100.0 * FRAME), "{}", e.text());
    assert_eq!(e.account.delays.len(), 1, "{}", e.text());
    let line = e.timeline.iter().find(|line| line.what.contains("waiting behind flow 0")).unwrap();
    assert!(close(line.from_us, 0.0) && close(line.to_us, 100.0 * FRAME));
    assert!(e.answer.contains("behind other messages of its queue pair"), "{}", e.answer);
}

#[test]
fn a_lost_packet_costs_one_frame_and_a_round_trip() {
    let lose = "[[links.lose]]\nfrom = \"a\"\nto = \"b\"\npsns = [8]\n[nic.congestion.none]\n";
    let e = explained(&star(lose, &[("a", "b", "14380B")]), "0");
    assert_eq!(e.packets.resent, Resends { total: 1, lost: 1, ..Resends::default() }, "{}", e.text());
    assert_eq!((e.packets.lost, e.packets.ahead, e.packets.most_ahead), (1, 1, 1));
    // PSN 9 arrives, the NACK goes back, PSN 8 is sent again.
    let nack_back = 2.0 * (1.0 + 86.0 * 8e-5);
    let waited = spent(&e, Cause::UntilNack);
    assert!(close(waited, 2.0 * (1.0 + FRAME) + nack_back - FRAME), "{waited}\n{}", e.text());
    assert!(close(spent(&e, Cause::Resent), FRAME), "{}", e.text());
    let has = |part: &str| e.timeline.iter().any(|line| line.what.contains(part));
    assert!(
        has("1 packet lost on a -> s, PSN 8") && has("1 packet sent again, PSN 8 (lost before)"),
        "{}",
        e.text()
    );
    assert!(has("1 NACK reached the sender for PSN 8"), "{}", e.text());
}

/// A cable loses frames in bursts. The explanation names the cable and the noise.
#[test]
fn a_noisy_cable_is_named_as_the_cause() {
    let noise = "[links]\ngilbert = { good-to-bad = 0.02, bad-to-good = 0.2, loss-in-bad = 0.7 }\nnoisy = [[\"a\", \"s\"]]\n\
                 [nic.congestion.none]\n";
    let e = explained(&star(noise, &[("a", "b", "1MB")]), "0");
    let [lost] = &e.packets.lost_on[..] else { panic!("{:?}", e.packets.lost_on) };
    assert_eq!((lost.from.as_str(), lost.to.as_str(), lost.packets), ("a", "s", e.packets.lost));
    assert!(e.answer.contains("(lost on a -> s, in bursts of noise)"), "{}", e.answer);
    assert!(e.text().contains("losses "), "{}", e.text());
}

#[test]
fn the_loss_of_the_last_packet_costs_a_timeout() {
    let lose = "[[links.lose]]\nfrom = \"a\"\nto = \"b\"\npsns = [9]\n[nic.congestion.none]\n";
    let e = explained(&star(lose, &[("a", "b", "14380B")]), "0");
    assert_eq!((e.packets.timeouts, e.packets.resent.lost), (1, 1));
    // The timer of 1 ms starts at the last ACK, which acknowledges PSN 8.
    let waited = spent(&e, Cause::UntilTimeout);
    assert!((1000.0..1005.0).contains(&waited), "{}", e.text());
    assert!(e.answer.contains("until the retransmission timer fired"), "{}", e.answer);
}

#[test]
fn marks_cut_the_rate_and_cnps_are_the_cause() {
    let ecn = "[nic.congestion.dcqcn-hpcc]\n[switch.ecn]\nkmin = \"5kB\"\nkmax = \"20kB\"\npmax = 1.0\n";
    let e = explained(&star(ecn, &[("a", "c", "2MB"), ("b", "c", "2MB")]), "slowest");
    assert!(e.packets.cnps.received > 0 && e.packets.nacks == Default::default());
    assert_eq!(e.account.delays[0].cause, Cause::CnpCut, "{}", e.text());
    assert!(e.account.delays[0].measured);
    let cuts = &e.packets.rate.cuts;
    assert_eq!(cuts.iter().map(|cuts| cuts.by).collect::<Vec<_>>(), [Cause::CnpCut]);
    assert!(cuts[0].times <= e.packets.cnps.received);
    assert!(e.packets.rate.least_gbps.unwrap() < 100.0);
    assert!(
        e.timeline.iter().any(|line| line.what.contains("CNPs reached the sender: 100 to")),
        "{}",
        e.text()
    );
    assert!(spent(&e, Cause::Paused) < 1e-9);
}

#[test]
fn a_small_buffer_pauses_the_sender() {
    // Three senders send to one receiver without congestion control.
    let keys = "[switch]\nbuffer = \"200kB\"\n[nic.congestion.none]\n";
    let e = explained(&star(keys, &[("a", "d", "1MB"), ("b", "d", "1MB"), ("c", "d", "1MB")]), "slowest");
    assert_eq!(e.account.delays[0].cause, Cause::Paused, "{}", e.text());
    // The flow takes three times its ideal, and waits at the paused port or in the switch's queue.
    let waited = spent(&e, Cause::Paused) + spent(&e, Cause::Network);
    assert!(waited > 0.99 * (e.account.elapsed_us - e.account.ideal_us.unwrap()), "{}", e.text());
    assert!(e.packets.pauses > 0);
    let paused: Vec<_> = e.timeline.iter().filter(|line| line.what.contains("port was paused")).collect();
    assert!(!paused.is_empty(), "{}", e.text());
    assert_eq!((e.packets.links[0].from.as_str(), e.packets.links[0].to.as_str()), ("s", "d"));
}

/// Three hosts fill the port of host0. Its leaf pauses the spine, and a flow to another host of the leaf waits there.
#[test]
fn a_victim_of_pauses_learns_whose_port_was_full() {
    let text = "[topology.leaf-spine]\nleaves = 2\nspines = 1\nhosts-per-leaf = 4\nrate = \"100Gbps\"\nuplink-rate = \"400Gbps\"\n\
                [switch]\nbuffer = \"300kB\"\n[nic.congestion.none]\n[[workload]]\n[workload.flows]\nlist = [\
                { from = \"host4\", to = \"host0\", bytes = \"2MB\" }, { from = \"host5\", to = \"host0\", bytes = \"2MB\" }, \
                { from = \"host6\", to = \"host0\", bytes = \"2MB\" }, { from = \"host7\", to = \"host1\", bytes = \"100kB\" }]\n";
    let e = explained(text, "host7->host1");
    let pauses = &e.packets.held_up[0];
    assert_eq!((pauses.cause.as_str(), pauses.slow_host), ("leaf0 -> host0", false), "{}", e.text());
    assert_eq!(pauses.paused.last().map(String::as_str), Some("spine0 -> leaf0"), "{}", e.text());
    assert!(e.answer.contains("because the port leaf0 -> host0 was full"), "{}", e.answer);
    let text = e.text();
    assert!(text.contains("pauses") && text.contains(", so spine0 -> leaf0 was paused for "), "{text}");
}

#[test]
fn a_victim_of_a_slow_host_learns_its_name() {
    let slow = "[nic]\nreceive = { rate = \"10Gbps\", pause = true }\n[nic.congestion.none]\n[switch]\nbuffer = \"300kB\"\n";
    let e = explained(&star(slow, &[("a", "b", "1MB")]), "0");
    assert!(e.packets.held_up.iter().any(|pauses| pauses.slow_host && pauses.to == "b"), "{}", e.text());
    assert!(e.text().contains("b took data too slowly, so s -> b was paused for"), "{}", e.text());
}

#[test]
fn two_queue_pairs_share_the_port_of_their_sender() {
    let e = explained(&star("[nic.congestion.none]", &[("a", "b", "1MB"), ("a", "c", "1MB")]), "1");
    let port = spent(&e, Cause::Port);
    assert!(port > 0.99 * (e.account.elapsed_us - e.account.ideal_us.unwrap()), "{}", e.text());
    assert!(e.answer.contains("for its sender's port, which sent other packets"), "{}", e.answer);
}

#[test]
fn reordered_packets_cause_nacks_that_cut_the_rate() {
    // One of two uplinks is slow, so every second packet is late, and the receiver discards the packets that overtake it.
    let text = "[topology.leaf-spine]\nleaves = 2\nspines = 2\nhosts-per-leaf = 1\nrate = \"100Gbps\"\n\
                [[failure]]\nlinks = [[\"leaf0\", \"spine1\"]]\nrate = 0.3\nat = \"0us\"\n\
                [scheme.rps]\n[nic.transport.go-back-n]\n[nic.congestion.dcqcn-hpcc]\n\
                [[workload]]\n[workload.flows]\nlist = [{ from = \"host0\", to = \"host1\", bytes = \"500kB\" }]\n";
    let e = explained(text, "0");
    assert!(e.packets.nacks.received > 0 && e.packets.cnps.received == 0, "{}", e.text());
    let resent = e.packets.resent;
    assert_eq!((resent.lost, resent.dropped), (0, 0), "nothing was lost");
    assert!(resent.discarded > 0, "{}", e.text());
    assert_eq!(resent.total, resent.discarded + resent.spurious, "{}", e.text());
    assert!(spent(&e, Cause::NackCut) > 0.0 && spent(&e, Cause::Resent) > 0.0, "{}", e.text());
    assert!(e.packets.rate.cuts.iter().all(|cuts| cuts.by == Cause::NackCut));
    assert!(
        e.timeline.iter().any(|line| line.what.contains("arrived ahead of ePSN, discarded by the receiver"))
    );
    assert!(e.timeline.len() <= 40 && e.timeline.windows(2).all(|two| two[0].from_us <= two[1].from_us));
}

#[test]
fn a_single_packet_meets_a_queue() {
    let e = explained(&star("", &[("a", "c", "1kB"), ("b", "c", "1kB"), ("d", "c", "1kB")]), "slowest");
    assert!(e.text().contains("s -> c: 1 packet met a queue of"), "{}", e.text());
}

#[test]
fn packets_that_a_switch_cut_are_not_called_dropped() {
    let keys = "switch = { cut = {}, queue-cap = \"10kB\", pfc = \"off\", ecn = \"off\" }\n\
                [nic.transport.uec]\n[nic.congestion.none]\n";
    let e = explained(&star(keys, &[("a", "c", "50kB"), ("b", "c", "50kB")]), "slowest");
    let (resent, text) = (e.packets.resent, e.text());
    assert!(e.packets.cut > 0 && e.packets.dropped == 0, "{text}");
    assert!(resent.cut > 0 && resent.dropped == 0, "{text}");
    assert!(text.contains(&format!("{} trimmed by a switch", resent.cut)), "{text}");
    assert!(text.contains("(trimmed before)") && !text.contains("dropped"), "{text}");
}

#[test]
fn blocked_nacks_are_in_the_timeline() {
    let text = "[topology.leaf-spine]\nleaves = 2\nspines = 2\nhosts-per-leaf = 1\nrate = \"100Gbps\"\n\
                [[failure]]\nlinks = [[\"leaf0\", \"spine1\"]]\nrate = 0.7\nat = \"0us\"\n[scheme.themis]\n\
                [[workload]]\n[workload.flows]\nlist = [{ from = \"host0\", to = \"host1\", bytes = \"200kB\" }]\n";
    let e = explained(text, "host0->host1");
    let nacks = e.packets.nacks;
    assert!(nacks.blocked > 0 && nacks.sent + nacks.made >= nacks.blocked + nacks.received, "{nacks:?}");
    assert!(e.timeline.iter().any(|line| line.what.starts_with("leaf1 blocked ")), "{}", e.text());
}

#[test]
fn a_congestion_control_that_reads_acks_has_no_cuts() {
    // Every second packet is late and causes NACKs, but HPCC reacts to INT alone.
    let text = "[topology.leaf-spine]\nleaves = 2\nspines = 2\nhosts-per-leaf = 1\nrate = \"100Gbps\"\n\
                [[failure]]\nlinks = [[\"leaf0\", \"spine1\"]]\nrate = 0.3\nat = \"0us\"\n\
                [scheme.rps]\n[nic.congestion.hpcc]\n\
                [[workload]]\n[workload.flows]\nlist = [{ from = \"host0\", to = \"host1\", bytes = \"500kB\" }]\n";
    let e = explained(text, "0");
    assert!(e.packets.nacks.received > 0, "{}", e.text());
    assert_eq!((spent(&e, Cause::NackCut), e.packets.rate.cuts.len()), (0.0, 0));
    assert!(spent(&e, Cause::Pace) + spent(&e, Cause::Window) > 0.0, "{}", e.text());
}

#[test]
fn an_unfinished_flow_is_explained_up_to_the_end_of_the_run() {
    let text = star("[stop]\nafter = \"20us\"\n[nic.congestion.none]\n", &[("a", "b", "1MB")]);
    let e = explained(&text, "0");
    assert_eq!((e.flow.fct_us, e.account.ideal_us), (None, None));
    assert!(
        e.answer.contains("was not finished when the run ended, 20.0 us after its start"),
        "{}",
        e.answer
    );
}

#[test]
fn a_flow_is_found_by_number_hosts_or_slowness() {
    let source =
        Source::new("story.toml", star("", &[("a", "c", "1MB"), ("b", "c", "1kB"), ("a", "c", "1kB")]));
    let prepared = Prepared::by(|| scenario::check(&source, &[])).unwrap();
    let checked = prepared.checked.clone();
    let results = lab::run(prepared).results(vec![]);
    let number = |name: &str| find(&results, &checked.plan, name).map(|flow| flow.flow);
    assert_eq!(number("1"), Ok(1));
    // The slowest flow sends a kilobyte behind a megabyte; flows are numbered by queue pair.
    assert_eq!((number("slowest"), number(" a -> c ")), (Ok(1), Ok(1)));
    for (name, wrong) in [
        ("3", "there is no flow 3; there are 3 flows, from 0"),
        ("a->d", "there is no flow from a to d"),
        ("a->e", "there is no host e"),
        ("fast", "expected a flow, found `fast`"),
        ("-1", "expected a flow, found `-1`"),
    ] {
        assert!(number(name).unwrap_err().contains(wrong), "{:?}", number(name));
    }
    // No queue pair was followed, so there are no events.
    let flow = find(&results, &checked.plan, "1").unwrap();
    assert_eq!(Explanation::of(&checked, &results, &flow), Err(Unexplained::NotFollowed));
}

/// The subflow on the dead path ends last.
#[test]
fn a_flow_that_is_split_is_explained_by_the_subflow_that_ends_last() {
    let text = "[topology.leaf-spine]\nleaves = 2\nspines = 4\nhosts-per-leaf = 1\n[nic]\ntimeout = { fixed = \"1ms\" }\n\
                [routing]\ndetection = \"never\"\n[[failure]]\nlinks = [[\"leaf0\", \"spine1\"]]\n[scheme.ethereal]\n\
                [[workload]]\nflows = { list = [{ from = \"host0\", to = \"host1\", bytes = \"100kB\" }] }\n";
    // Queue pairs, and so subflows, are numbered by path.
    let last = explained(text, "0");
    assert!(
        last.answer.starts_with("Subflow 1 of flow 0, 25.0 kB from host0 to host1, took 1,0"),
        "{}",
        last.answer
    );
    assert!(spent(&last, Cause::UntilTimeout) > 900.0, "{}", last.text());
    assert_eq!(explained(text, "slowest").answer, last.answer);
    let other = explained(text, "2");
    assert!(
        other.answer.starts_with("Subflow 2 of flow 0, 25.0 kB from host0 to host1, took"),
        "{}",
        other.answer
    );
}

#[test]
fn a_link_that_fails_under_a_flow_is_in_its_timeline() {
    let failing = "[[failure]]\nlinks = [[\"c\", \"s\"]]\n[[failure]]\nlinks = [[\"d\", \"s\"]]\nat = \"30us\"\nuntil = \"50us\"\n\
                   [[failure]]\nlinks = [[\"b\", \"s\"]]\nat = \"20us\"\nuntil = \"40us\"\nrate = \"10Gbps\"";
    let e = explained(&star(failing, &[("a", "b", "1MB")]), "0");
    let failures: Vec<(f64, f64, &str)> = e
        .timeline
        .iter()
        .filter_map(|l| Some((l.from_us, l.to_us, l.what.strip_prefix("on the fabric, ")?)))
        .collect();
    assert_eq!(
        failures,
        [
            (0.0, e.account.elapsed_us, "links between c and s: down"),
            (20.0, 40.0, "links between b and s: slowed to 10 Gb/s"),
            (30.0, 50.0, "links between d and s: down"),
        ],
        "{}",
        e.text()
    );
}

/// A port that a failure slows sends nothing else, so its time is not that of other packets.
#[test]
fn a_slow_port_of_the_sender_is_named() {
    let slow = "[[failure]]\nlinks = [[\"a\", \"s\"]]\none-way = true\nrate = 0.25\nat = \"0us\"\n\
                [nic.congestion.none]";
    let e = explained(&star(slow, &[("a", "b", "100kB")]), "0");
    let packets = e.flow.packets as f64;
    // Each frame takes three frames' times more than at the line rate; the last packet is short.
    assert!((spent(&e, Cause::SlowPort) / (3.0 * FRAME * packets) - 1.0).abs() < 0.02, "{}", e.text());
    assert_eq!(spent(&e, Cause::Port), 0.0, "{}", e.text());
    assert!(e.answer.contains("for its sender's port, which a failure slowed"), "{}", e.answer);
    let text = e.text();
    assert!(text.contains("on the fabric, link a -> s: slowed to 25 Gb/s"), "{text}");
}

/// The wait at a slowed link is its queue at the rate of the time.
#[test]
fn a_queue_before_a_slow_link_drains_at_the_rate_of_the_time() {
    let slow = "[[failure]]\nlinks = [[\"s\", \"b\"]]\none-way = true\nrate = 0.25\nat = \"0us\"\n\
                [nic.congestion.none]\n[switch]\necn = \"off\"";
    let e = explained(&star(slow, &[("a", "b", "100kB")]), "0");
    let link = &e.packets.links[0];
    // The last of n packets waits behind the 3/4 of the packets that came before it, each for four frames' times.
    let most = 3.0 * FRAME * (e.flow.packets as f64 - 2.0);
    assert!((link.most_wait_us / most - 1.0).abs() < 0.1, "{most}: {}", e.text());
}

#[test]
fn many_flaps_share_a_line() {
    let flap =
        |i: u32| format!("[[failure]]\nlinks = [[\"c\", \"s\"]]\nat = \"{i}1us\"\nuntil = \"{i}2us\"\n");
    let e = explained(&star(&(1..7).map(flap).collect::<String>(), &[("a", "b", "1MB")]), "0");
    let flaps: Vec<_> = e.timeline.iter().filter(|l| l.what.starts_with("on the fabric")).collect();
    assert_eq!(flaps.len(), 1, "{}", e.text());
    assert_eq!((flaps[0].from_us, flaps[0].to_us), (11.0, 62.0));
    assert_eq!(flaps[0].what, "on the fabric, links between c and s: down 6 times");
}

/// The ACKs are lost, and not the data: the timer repeats what had arrived.
#[test]
fn packets_that_had_arrived_before_they_were_sent_again_are_not_called_late() {
    let deaf = "[links]\nlose-replies = true\n[nic]\ntimeout = { fixed = \"100us\" }\n[[failure]]\n\
                links = [[\"b\", \"s\"]]\none-way = true\nloss = 1.0\nuntil = \"90us\"";
    let e = explained(&star(deaf, &[("a", "b", "100kB")]), "0");
    let resent = e.packets.resent;
    assert!(
        resent.total > 0 && resent.arrived == resent.total && resent.spurious == resent.total,
        "{}",
        e.text()
    );
    let text = e.text();
    assert!(text.contains("had arrived already: spurious") && !text.contains("only late"), "{text}");
}
