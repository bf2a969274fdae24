//! Claim: flows with a queue of their own have the service, the bounds, the pauses and the marks of that queue, and neither
//! wait behind other flows nor make them wait.

use crate::lab::{agreed_on, lay, run_on, total};
use engine::outcome::{EventKind, Outcome, Passed};
use model::record::RecordPlan;
use model::{LinkId, NodeId, QpId};
use scenario::Checked;

/// Hosts on one switch. Jobs of `new` and `old` send lists of (sender, receiver, bytes, start); those of `old` belong to the
/// traffic class `legacy`.
fn star(hosts: usize, switch: &str, nic: &str, new: &[Flow], old: &[Flow]) -> String {
    let links: String = (0..hosts).map(|host| format!("[\"host{host}\", \"s\"], ")).collect();
    let list = |flows: &[Flow]| -> String {
        let one = |(from, to, bytes, start): &Flow| {
            format!(
                "{{ from = \"host{from}\", to = \"host{to}\", bytes = \"{bytes}\", start = \"{start}\" }}, "
            )
        };
        flows.iter().map(one).collect()
    };
    let job = |name: &str, class: &str, flows: &[Flow]| match flows {
        [] => String::new(),
        flows => format!(
            "[[workload]]\nname = \"{name}\"\nclass = \"{class}\"\nflows = {{ list = [{}] }}\n",
            list(flows)
        ),
    };
    format!(
        "[topology.links]\nhosts = {hosts}\nswitches = [\"s\"]\nrate = \"100Gbps\"\ndelay = \"1us\"\nlinks = [{links}]\n\
         [wire]\nframe = \"1500B\"\n[switch]\n{switch}\n{nic}\n[class.legacy]\n{}{}",
        job("new", "foreground", new),
        job("old", "legacy", old)
    )
}

type Flow<'f> = (usize, usize, &'f str, &'f str);

const CONTROL: &str = "{ kinds = [\"ack\", \"nack\", \"cnp\", \"control\", \"trimmed\", \"signal\"] }";
/// Weighted queues of data: for all flows, and for those of `legacy`.
fn halves(own: &str) -> String {
    format!(
        "classes = [{CONTROL}, {{ kinds = [\"data\"], weight = 1 }}, \
         {{ kinds = [\"data\"], of = [\"legacy\"], weight = 1{own} }}]"
    )
}

/// Flows of 3 MB from these hosts to host 0.
fn incast(senders: std::ops::Range<usize>) -> Vec<Flow<'static>> {
    senders.map(|from| (from, 0, "3MB", "0us")).collect()
}

/// True if a queue pair belongs to `legacy`.
fn is_old(checked: &Checked, qp: QpId) -> bool {
    checked.plan.traffic_classes[usize::from(checked.plan.class_of(qp))] == "legacy"
}

#[test]
fn two_queues_of_equal_weight_share_a_link_half_and_half() {
    // Twelve senders of one side, and two of the other.
    let switch = format!("pfc = \"off\"\nbuffer = \"60MB\"\n{}", halves(""));
    let text = star(
        15,
        &switch,
        "[nic.congestion.none]\n[stop]\nafter = \"200us\"",
        &incast(1..13),
        &incast(13..15),
    );
    let mut checked = lay(&text);
    assert!(!checked.plan.classes.is_plain());
    agreed_on(&checked, &text);
    let plan = &mut checked.plan;
    let down = plan.fabric.reverse(LinkId(plan.fabric.base(NodeId(0))));
    plan.record = RecordPlan { taps: vec![down], ..plan.record.clone() };
    let run = run_on(&checked);
    let mut sums = [0u64; 2];
    let mut seen = 0;
    // Both queues have filled by 20 us.
    for frame in run.notes.frames.iter().filter(|frame| frame.at.ps() > 20_000_000) {
        if let Passed::Packet(packet, _) = frame.what {
            assert!(packet.is_data());
            sums[usize::from(is_old(&checked, packet.qp()))] += u64::from(packet.frame());
            seen += 1;
            assert!(sums[0].abs_diff(sums[1]) <= 1500, "{sums:?}");
        }
    }
    assert!(seen > 1000);
}

/// Time until the ACK of the last message of `legacy`, in us.
fn last_old(checked: &Checked, run: &Outcome) -> f64 {
    let messages = checked.plan.messages.iter().zip(&run.messages);
    let old = messages.filter(|(message, _)| is_old(checked, message.qp));
    old.map(|(_, record)| (record.acked.ps() - record.start.ps()) as f64 / 1e6).fold(0.0, f64::max)
}

#[test]
fn a_queue_of_its_own_does_not_wait_behind_the_other() {
    // Ten packets to a receiver whose queue has 4 MB and more.
    let fct = |own: bool| {
        let classes = match own {
            true => halves(""),
            false => format!("classes = [{CONTROL}, {{ kinds = [\"data\"] }}]"),
        };
        let switch = format!("pfc = \"off\"\nbuffer = \"60MB\"\n{classes}");
        let few = [(13, 0, "14380B", "100us")];
        let text = star(14, &switch, "[nic.congestion.none]", &incast(1..13), &few);
        let checked = lay(&text);
        let run = agreed_on(&checked, &text);
        assert_eq!(run.ending.name(), "finished");
        last_old(&checked, &run)
    };
    let (own, shared) = (fct(true), fct(false));
    // Idle: 4 delays of 1 us, eleven frames of 0.12 us and an ACK. Each frame may wait for one of the other queue, and for
    // the frame that is on the wire.
    let idle = 4.0 + 11.0 * 0.1216 + 2.0 * 0.01;
    assert!(own <= idle + 11.0 * 0.1216, "{own} us");
    assert!(shared > 100.0, "{shared} us");
}

/// Runs a scenario that follows all queue pairs, and counts the events of `legacy` and of all other flows.
fn events(checked: &mut Checked, what: EventKind) -> [usize; 2] {
    let all: Vec<QpId> = (0..checked.plan.qps.len() as u32).map(QpId).collect();
    let record = &mut checked.plan.record;
    (record.follow, record.qps) = (all.clone(), all);
    let run = run_on(checked);
    let mut counts = [0; 2];
    for event in run.notes.events.iter().filter(|event| event.what == what) {
        counts[usize::from(is_old(checked, event.qp))] += 1;
    }
    counts
}

#[test]
fn lossless_data_beside_a_queue_that_cuts_is_paused_and_never_cut() {
    let switch = |own: &str| {
        format!(
            "pfc = \"off\"\nbuffer = \"900kB\"\nqueue-cap = \"60kB\"\ncut = \"on\"\n{}",
            halves(&format!(", {own}"))
        )
    };
    let nic = "[nic.transport.uec]\n[class.legacy.nic]\n[class.legacy.nic.congestion.none]";
    for (own, cut, pauses) in [("pfc = \"on\"", [true, false], true), ("cut = \"on\"", [true, true], false)] {
        let text = star(17, &switch(own), nic, &incast(1..9), &incast(9..17));
        let mut checked = lay(&text);
        let run = agreed_on(&checked, &text);
        assert_eq!((run.ending.name(), run.control.pause > 0), ("finished", pauses), "{own}");
        assert_eq!(run.broke_lossless, [], "{own}");
        assert_eq!(run.data.dropped_buffer, 0, "{own}");
        let seen = events(&mut checked, EventKind::Cut).map(|count| count > 0);
        assert_eq!(seen, cut, "{own}");
    }
}

#[test]
fn a_pause_of_one_queue_lets_the_other_flows_of_the_host_go_on() {
    // Eight hosts send to host 0, which pauses them; one of them also sends to host 9, whose link is free.
    let both = |own: bool, pfc_of_new: &str| {
        let classes = match own {
            true => halves(", pfc = \"on\""),
            false => format!("classes = [{CONTROL}, {{ kinds = [\"data\"] }}]"),
        };
        let switch = format!("{pfc_of_new}\nbuffer = \"1200kB\"\n{classes}");
        let text = star(10, &switch, "[nic.congestion.none]", &[(1, 9, "600kB", "20us")], &incast(1..9));
        let checked = lay(&text);
        let run = agreed_on(&checked, &text);
        assert!(run.control.pause > 0 && run.ending.name() == "finished");
        let record = (checked.plan.messages.iter().zip(&run.messages))
            .find(|(message, _)| !is_old(&checked, message.qp))
            .map(|(_, record)| (record.acked.ps() - record.start.ps()) as f64 / 1e6);
        record.unwrap()
    };
    // Alone, 418 frames take 51 us. Beside a legacy flow that may send an eighth of the time, a bit longer.
    for pfc in ["pfc = \"on\"", "pfc = \"off\""] {
        let time = both(true, pfc);
        assert!(time < 1.3 * 51.0 + 4.0, "{pfc}: {time} us");
    }
    let shared = both(false, "pfc = \"on\"");
    assert!(shared > 3.0 * 51.0, "{shared} us");
}

#[test]
fn each_queue_marks_by_its_own_thresholds() {
    let marks = |base: &str, own: &str| {
        let switch =
            format!("pfc = \"off\"\nbuffer = \"60MB\"\necn = {base}\n{}", halves(&format!(", ecn = {own}")));
        let text = star(
            9,
            &switch,
            "[nic.congestion.none]\n[stop]\nafter = \"100us\"",
            &incast(1..5),
            &incast(5..9),
        );
        let mut checked = lay(&text);
        let run = agreed_on(&checked, &text);
        let cnps = run.control.cnp;
        let seen = events(&mut checked, EventKind::FeedbackReceived).map(|count| count > 0);
        assert_eq!(cnps > 0, total(&run, |link| link.marks) > 0);
        seen
    };
    let early = "{ kmin = \"3kB\", kmax = \"9kB\" }";
    let late = "{ kmin = \"9MB\", kmax = \"9MB\" }";
    assert_eq!(marks(early, late), [true, false]);
    assert_eq!(marks(late, early), [false, true]);
    assert_eq!(marks(early, "\"off\""), [true, false]);
    assert_eq!(marks("\"off\"", "{ kmin = \"3kB\", kmax = \"9kB\", mark = \"enqueue\" }"), [false, true]);
}

#[test]
fn a_link_that_fails_while_both_queues_are_paused_comes_back_for_both() {
    let switch = format!("buffer = \"1200kB\"\n{}", halves(""));
    let text = star(10, &switch, "[nic.congestion.none]", &incast(1..5), &incast(4..9))
        + "[[failure]]\nlinks = [[\"host4\", \"s\"]]\nat = \"60us\"\nuntil = \"90us\"\n";
    let text = text
        .replace("[nic.congestion.none]", "[nic]\ntimeout = { fixed = \"200us\" }\n[nic.congestion.none]");
    let checked = lay(&text);
    let run = agreed_on(&checked, &text);
    assert!(run.control.pause > 0 && run.data.dropped_link > 0);
    assert_eq!(run.ending.name(), "finished");
}
