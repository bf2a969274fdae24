//! Tools of the stories: check a scenario, run it on every engine, compare the outcomes, and check the books
//! independently.

use engine::outcome::{Ending, Outcome};
use engine::{Kind, link_name};
use model::record::RecordPlan;
use model::{LinkId, MessageId, Parts, Plan, QpId, Time};
use scenario::{Checked, Source, check};
use std::fmt::{Debug, Write};
use std::num::NonZeroUsize;

/// A checked scenario from its text; the test fails with the user's error message.
pub(crate) fn lay(text: &str) -> Checked {
    match check(&Source::new("story.toml", text), &[]) {
        Ok(checked) => checked,
        Err(e) => panic!("{e}\nin:\n{text}"),
    }
}

/// Runs a scenario on the window engine and checks its books.
pub(crate) fn run(text: &str) -> (Checked, Outcome) {
    let checked = lay(text);
    let outcome = run_on(&checked);
    (checked, outcome)
}

/// Runs a checked scenario on the window engine and checks its books.
pub(crate) fn run_on(checked: &Checked) -> Outcome {
    let outcome = simulate(&checked.plan, checked, Kind::Window);
    check_books(&checked.plan, &outcome);
    outcome
}

/// Runs a plan with the schemes and NICs of a scenario.
fn simulate(plan: &Plan, checked: &Checked, kind: Kind) -> Outcome {
    sim::run(plan, &checked.schemes, &checked.nics, kind, &mut ())
}

/// The outcome on which the reference engine and the window engine agree: with whole and half windows and, if the
/// run is short, on several threads. Checks its books, and panics with the first difference.
pub(crate) fn agreed(plan: &Plan, parts: &impl Parts, story: &str) -> Outcome {
    unanimous(compare(plan, &|plan, kind| engine::run(plan, parts, kind, &mut ())), story)
}

fn unanimous(compared: Result<Outcome, String>, story: &str) -> Outcome {
    match compared {
        Ok(outcome) => outcome,
        Err(difference) => panic!("{difference}\nin: {story}"),
    }
}

/// The agreed outcome of a scenario with its own parts.
pub(crate) fn agreed_on(checked: &Checked, story: &str) -> Outcome {
    unanimous(compared_on(checked), story)
}

/// The plan with all series recorded, and single events of some queue pairs.
fn recorded(plan: &Plan) -> Plan {
    let some = |n: usize| (0..n.min(3)).map(move |i| i * n / n.min(3));
    let (qps, links) = (plan.qps.len(), plan.fabric.links().len());
    let follow = some(qps).map(|i| QpId(i as u32)).collect();
    let taps = some(links).map(|i| LinkId(i as u32)).collect();
    let record = RecordPlan {
        qps: (0..qps as u32).map(QpId).collect(),
        links: (0..links as u32).map(LinkId).collect(),
        switches: true,
        counters: true,
        width: Time::from_us(2),
        bins: 16,
        follow,
        events: 300,
        taps,
        frames: 100,
    };
    Plan { record, ..plan.clone() }
}

/// [`agreed_on`], with a `Result` in place of a panic.
pub(crate) fn compared_on(checked: &Checked) -> Result<Outcome, String> {
    compare(&checked.plan, &|plan, kind| simulate(plan, checked, kind))
}

/// Runs a plan on all engines. Checks that they also agree on all records, and that recording changes nothing else.
fn compare(plan: &Plan, run: &dyn Fn(&Plan, Kind) -> Outcome) -> Result<Outcome, String> {
    let plain = run(plan, Kind::Window);
    let plan = &recorded(plan);
    let reference = run(plan, Kind::Reference);
    let (recording, notes) = (plain.recording.clone(), plain.notes.clone());
    if let Some(difference) = difference(plan, &Outcome { recording, notes, ..reference.clone() }, &plain) {
        return Err(format!("Window, not recorded, differs from Reference:\n{difference}"));
    }
    if let Some(wrong) = unlike_totals(&reference).first() {
        return Err(format!("the series of Reference: {wrong}"));
    }
    if let Some(wrong) = mistakes(plan, &reference).first() {
        return Err(format!("the books of Reference: {wrong}"));
    }
    let mut kinds = vec![Kind::Window, Kind::HalfWindow];
    // Threads meet in every window, which takes time on a busy machine, so long runs are left out.
    if reference.end.ps() / engine::window(plan).max(1) < 500 {
        kinds.extend([2, 3].into_iter().filter_map(NonZeroUsize::new).map(Kind::Threads));
    }
    for kind in kinds {
        let other = run(plan, kind);
        if let Some(difference) = difference(plan, &reference, &other) {
            return Err(format!("{kind:?} differs from Reference:\n{difference}"));
        }
    }
    Ok(reference)
}

/// Series whose sums differ from the totals of the run.
fn unlike_totals(run: &Outcome) -> Vec<String> {
    let mut wrong = Vec::new();
    let qps = || run.recording.qps.iter().flat_map(|(_, bins)| bins);
    let mut check = |what: &str, series: u64, total: u64| {
        if series != total {
            wrong.push(format!("{what}: {series} in the series, {total} in the run"));
        }
    };
    check("retransmitted", qps().map(|b| b.retransmitted).sum(), run.data.retransmitted);
    check("packets", qps().map(|b| b.packets).sum(), run.data.sent);
    check("out of order", qps().map(|b| b.out_of_order).sum(), run.data.out_of_order);
    check("timeouts", qps().map(|b| b.timeouts).sum(), run.control.timeout);
    let arrived = run.data.accepted + run.data.duplicate + run.data.discarded;
    check("arrived", qps().map(|b| b.arrived).sum(), arrived);
    for ((link, bins), record) in run.recording.links.iter().zip(&run.links) {
        check(&format!("frames of link {link}"), bins.iter().map(|b| b.frames).sum(), record.frames);
        check(&format!("marks of link {link}"), bins.iter().map(|b| b.marks).sum(), record.marks);
        let longest = bins.iter().map(|b| b.max_queue).max().unwrap_or(0);
        check(&format!("longest queue of link {link}"), longest, record.max_queue);
    }
    for ((node, bins), most) in run.recording.switches.iter().zip(&run.max_buffer) {
        check(&format!("buffer of node {node}"), bins.iter().copied().max().unwrap_or(0), most.get());
    }
    for ((name, bins), (_, total)) in run.recording.counters.iter().zip(&run.counters) {
        check(name, bins.last().copied().unwrap_or(0), *total);
    }
    if let Some(end) = run.end.ps().checked_div(run.recording.width.ps()) {
        check("bins up to the end", run.recording.bins as u64, end + 1);
    }
    wrong
}

/// The differences between two outcomes except in `effort`: every part that differs, with its first difference.
fn difference(plan: &Plan, a: &Outcome, b: &Outcome) -> Option<String> {
    let fabric = &plan.fabric;
    let message = |i: usize| {
        let qp = &plan.qps[plan.messages[i].qp.index()];
        format!("message {i} ({} -> {})", fabric.host_name(qp.from), fabric.host_name(qp.to))
    };
    let link = |i: usize| link_name(fabric, LinkId(i as u32));
    let switch = |i: usize| fabric.name(fabric.switches().nth(i).unwrap()).to_owned();
    let qp_track = |i: usize| format!("track of qp {}", a.recording.qps[i].0);
    let link_track = |i: usize| format!("track of {}", link_name(fabric, a.recording.links[i].0));
    let buffer = |i: usize| format!("buffer of {}", fabric.name(a.recording.switches[i].0));
    let plain = |i: usize| i.to_string();
    let mut found = Vec::new();
    one(&mut found, "ending", &a.ending, &b.ending);
    one(&mut found, "end", &a.end, &b.end);
    one(&mut found, "data", &a.data, &b.data);
    one(&mut found, "control", &a.control, &b.control);
    one(&mut found, "out_of_order", &a.out_of_order, &b.out_of_order);
    one(&mut found, "hops", &(a.data_hops, a.control_hops), &(b.data_hops, b.control_hops));
    first(&mut found, "messages", &a.messages, &b.messages, &message);
    first(&mut found, "links", &a.links, &b.links, &link);
    first(&mut found, "max_buffer", &a.max_buffer, &b.max_buffer, &switch);
    one(&mut found, "counters", &a.counters, &b.counters);
    let bins = |o: &Outcome| (o.recording.width, o.recording.bins);
    one(&mut found, "bins", &bins(a), &bins(b));
    first(&mut found, "series of queue pairs", &a.recording.qps, &b.recording.qps, &qp_track);
    first(&mut found, "series of links", &a.recording.links, &b.recording.links, &link_track);
    first(&mut found, "series of switches", &a.recording.switches, &b.recording.switches, &buffer);
    first(&mut found, "series of counters", &a.recording.counters, &b.recording.counters, &plain);
    first(&mut found, "events", &a.notes.events, &b.notes.events, &plain);
    first(&mut found, "hops", &a.notes.hops, &b.notes.hops, &plain);
    first(&mut found, "frames", &a.notes.frames, &b.notes.frames, &plain);
    let left_out = |o: &Outcome| (o.notes.more_events, o.notes.more_frames);
    one(&mut found, "left out", &left_out(a), &left_out(b));
    one(&mut found, "violations", &a.violations, &b.violations);
    one(&mut found, "broke_lossless", &a.broke_lossless, &b.broke_lossless);
    let same = Outcome { effort: a.effort, ..b.clone() } == *a;
    assert_eq!(same, found.is_empty(), "this comparison misses a part of the outcome");
    if same { None } else { Some(found.join("\n")) }
}

fn one<T: PartialEq + Debug>(found: &mut Vec<String>, part: &str, a: &T, b: &T) {
    if a != b {
        found.push(format!("  {part}:\n    {a:?}\n    {b:?}"));
    }
}

fn first<T: PartialEq + Debug>(
    found: &mut Vec<String>,
    part: &str,
    a: &[T],
    b: &[T],
    name: &dyn Fn(usize) -> String,
) {
    let mut differing = (0..a.len().max(b.len())).filter(|&i| a.get(i) != b.get(i));
    if let Some(i) = differing.next() {
        let mut text = format!("  {part}: {} differ; the first is {}", 1 + differing.count(), name(i));
        for side in [a.get(i), b.get(i)] {
            write!(text, "\n    {side:?}").unwrap();
        }
        found.push(text);
    }
}

/// Checks the books of a run independently; the test fails with all mistakes.
pub(crate) fn check_books(plan: &Plan, run: &Outcome) {
    assert_eq!(mistakes(plan, run), [""; 0]);
}

/// Mistakes in the books of a run, found independently of the engine's own check.
pub(crate) fn mistakes(plan: &Plan, run: &Outcome) -> Vec<String> {
    let mut wrong = run.violations.clone();
    let mut equal = |what: &str, a: u64, b: u64| {
        if a != b {
            wrong.push(format!("{what}: {a} != {b}"));
        }
    };
    let (d, c) = (&run.data, &run.control);
    let ends = [
        d.accepted,
        d.duplicate,
        d.discarded,
        d.noticed,
        d.dropped_buffer,
        d.dropped_link,
        d.dropped_scheme,
        d.cut,
        d.held,
        d.in_flight,
    ];
    equal("data packets sent and ended", d.sent, ends.iter().sum());
    equal("packets cut, and their headers", d.cut, d.headers_arrived + d.headers_lost + d.headers_in_flight);
    equal(
        "control packets made, by kind",
        c.created,
        c.ack + c.nack + c.cnp + c.grants + c.forged + c.signals,
    );
    equal(
        "control packets made and ended",
        c.created,
        c.arrived + c.heard + c.blocked + c.dropped + c.in_flight,
    );
    equal("packets out of order, by class", d.out_of_order, run.out_of_order.iter().sum());
    let over_links = |f: fn(&engine::outcome::LinkRecord) -> u64| run.links.iter().map(f).sum::<u64>();
    equal("hops and frames on links", run.data_hops + run.control_hops, over_links(|l| l.frames));
    let retransmitted = run.messages.iter().map(|m| m.retransmitted).sum();
    equal("retransmissions in all and by message", d.retransmitted, retransmitted);
    // Without deliberate copies, every duplicate is a spurious retransmission.
    if d.duplicated == 0 {
        equal("spurious retransmissions and duplicates", d.spurious, d.duplicate);
    }
    let notices = run.counters.iter().find(|(name, _)| *name == "notifications_sent").map_or(0, |c| c.1);
    let finished = run.messages.iter().all(|m| m.acked != Time::NEVER);
    if finished {
        // Every packet of every message once, then retransmissions, copies and notices.
        let packets: u64 = plan.messages.iter().map(|m| plan.wire.packets(m.bytes)).sum();
        equal("packets accepted and packets of all messages", d.accepted, packets);
        equal("packets sent", d.sent, packets + d.retransmitted + d.duplicated + notices);
    }
    let drained = d.in_flight + d.headers_in_flight + d.held + c.in_flight == 0;
    if drained {
        let lost = d.dropped_buffer + d.dropped_link + d.headers_lost + c.dropped;
        let of_links = over_links(|l| l.drops + l.lost);
        // A packet without room to be held is dropped before it has a link.
        let held = run.counters.iter().any(|(name, _)| *name == "holds");
        equal(
            "packets dropped or lost on links and in all",
            of_links,
            if held { of_links.min(lost) } else { lost },
        );
        // A link that comes back forgets its pauses, and a switch then sends new ones. A scheme may also have
        // paused a port for a background job that waits for its timers when the run ends.
        let all_resumed = plan.failures.is_empty() && finished;
        let forgotten = if all_resumed { 0 } else { c.pause.saturating_sub(c.resume) };
        equal("pauses, and resumes plus forgotten pauses", c.pause, c.resume + forgotten);
        // Bytes that hosts put on their wires are those of messages, replies and notices.
        let gap = u64::from(plan.wire.gap);
        let sent: u64 = run.links[..plan.fabric.hosts()].iter().map(|l| l.bytes + l.frames * gap).sum();
        let data: u64 = run.messages.iter().map(|m| m.wire_bytes).sum();
        let replies = (c.ack + c.nack + c.grants) * (u64::from(plan.wire.ack) + gap)
            + c.cnp * (u64::from(plan.wire.cnp) + gap);
        let notices = notices * (u64::from(plan.wire.ack) + gap);
        equal(
            "bytes sent by NICs, and bytes of messages, replies and notices",
            sent,
            data + replies + notices,
        );
    }
    check_each(plan, run, &mut wrong);
    let waits = run
        .messages
        .iter()
        .enumerate()
        .any(|(i, m)| m.acked == Time::NEVER && !plan.job(MessageId(i as u32)).background);
    if waits == (run.ending == Ending::Finished) {
        wrong.push(format!("it ended as {:?}", run.ending));
    }
    wrong
}

/// Adds mistakes of single messages, links and switches to `wrong`.
fn check_each(plan: &Plan, run: &Outcome, wrong: &mut Vec<String>) {
    for (i, m) in run.messages.iter().enumerate() {
        let in_order = m.start <= m.received && m.received <= m.acked;
        if !in_order || m.acked != Time::NEVER && (m.acked > run.end) {
            wrong.push(format!("message {i} in the wrong order: {m:?}, end {}", run.end));
        }
        let least = plan.messages[i].bytes;
        if m.acked != Time::NEVER && m.wire_bytes < least {
            wrong.push(format!("message {i}: {least} bytes acknowledged, {} sent", m.wire_bytes));
        }
    }
    for (i, l) in run.links.iter().enumerate() {
        // A frame on the wire counts in full when a run is cut.
        let changes = plan.failures.of(LinkId(i as u32)).iter().filter_map(|change| change.rate);
        let rate = changes.fold(plan.fabric.links()[i].rate, model::Rate::min);
        let frame = plan.wire.transmission(rate, plan.wire.max_frame().max(plan.wire.cnp));
        if l.busy > run.end + frame || l.paused > run.end {
            let name = link_name(&plan.fabric, LinkId(i as u32));
            wrong.push(format!("{name}: busy {}, paused {} of {}", l.busy, l.paused, run.end));
        }
    }
    for (i, most) in run.max_buffer.iter().enumerate() {
        if *most > plan.switches[i].buffer {
            wrong.push(format!("switch {i} used {most} of a buffer of {}", plan.switches[i].buffer));
        }
    }
}

/// A topology of two tiers with `hosts` on each of `leaves`; `keys` adds keys of the topology.
pub(crate) fn leaf_spine(leaves: usize, spines: usize, hosts: usize, keys: &str) -> String {
    format!("[topology.leaf-spine]\nleaves = {leaves}\nspines = {spines}\nhosts-per-leaf = {hosts}\n{keys}\n")
}

/// Sum of a column over all links.
pub(crate) fn total(run: &Outcome, column: fn(&engine::outcome::LinkRecord) -> u64) -> u64 {
    run.links.iter().map(column).sum()
}
