//! One plan on every engine: equal outcomes, or their first differences.

use crate::books::{mistakes, unlike_totals};
use engine::{Kind, Outcome, link_name};
use model::record::RecordPlan;
use model::{LinkId, Plan, QpId, Time};
use std::fmt::Debug;
use std::num::NonZeroUsize;

/// The outcome of a plan on which the reference engine and the window engine agree: with whole and half windows and, if
/// the run is short, on each of these numbers of `threads`. The engines must also agree on all records, recording must change nothing else,
/// and the books must add up.
///
/// # Errors
/// The first differences between two engines, or the first mistake in the books.
pub fn compare(
    plan: &Plan,
    threads: &[usize],
    run: &dyn Fn(&Plan, Kind) -> Outcome,
) -> Result<Outcome, String> {
    let plain = run(plan, Kind::Window);
    let plan = &recorded(plan);
    let reference = run(plan, Kind::Reference);
    let (recording, notes) = (plain.recording.clone(), plain.notes.clone());
    let (queues, watermarks) = (plain.queues.clone(), plain.watermarks.clone());
    if let Some(difference) =
        difference(plan, &Outcome { recording, notes, queues, watermarks, ..reference.clone() }, &plain)
    {
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
        kinds.extend(threads.iter().copied().filter_map(NonZeroUsize::new).map(Kind::Threads));
    }
    for kind in kinds {
        let other = run(plan, kind);
        if let Some(difference) = difference(plan, &reference, &other) {
            return Err(format!("{kind:?} differs from Reference:\n{difference}"));
        }
    }
    Ok(reference)
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
        // Ports with plain queues would lose their own code.
        queues: !plan.has_plain_queues(),
        width: Time::from_us(2),
        bins: 16,
        follow,
        events: 300,
        taps,
    };
    Plan { record, ..plan.clone() }
}

/// The differences between two outcomes of a plan except in `effort`: every part that differs, with its first difference.
pub fn difference(plan: &Plan, a: &Outcome, b: &Outcome) -> Option<String> {
    let fabric = &plan.fabric;
    let message = |i: usize| {
        let qp = &plan.qps[plan.messages[i].qp.index()];
        format!("message {i} ({} -> {})", fabric.host_name(qp.from), fabric.host_name(qp.to))
    };
    let link = |i: usize| link_name(fabric, LinkId(i as u32));
    let switch = |i: usize| fabric.name(fabric.switch(i)).to_owned();
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
    first(&mut found, "tasks", &a.tasks, &b.tasks, &plain);
    first(&mut found, "links", &a.links, &b.links, &link);
    one(&mut found, "pauses by priority", &a.priorities, &b.priorities);
    one(&mut found, "queues", &a.queues, &b.queues);
    first(&mut found, "watermarks", &a.watermarks, &b.watermarks, &switch);
    one(&mut found, "losses by failure", &a.losses, &b.losses);
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
    one(&mut found, "events left out", &a.notes.more_events, &b.notes.more_events);
    one(&mut found, "violations", &a.violations, &b.violations);
    one(&mut found, "broke_lossless", &a.broke_lossless, &b.broke_lossless);
    let same = Outcome { effort: a.effort, ..b.clone() } == *a;
    if same != found.is_empty() {
        found.push("  this comparison misses a part of the outcome".to_owned());
    }
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
            text += &format!("\n    {side:?}");
        }
        found.push(text);
    }
}
