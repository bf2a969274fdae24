//! The last run, and what the page learns of it.

use crate::ask::{Asked, mistake};
use crate::pack::Pack;
use crate::tape::Tape;
use crate::watch::{recordings, tape};
use engine::outcome::{Event, Frame, Passed};
use engine::{Kind, Observer, Outcome, Progress};
use model::{NodeId, Plan, QpId, Time};
use results::summary::{Summary, Timing, Title};
use results::tables::event_names;
use scenario::room::Room;
use scenario::{Checked, Finding, ideal};
use schemes::SchemeConfig;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Names of the kinds of packets, by their numbers in [`Played::packets`].
const KINDS: [&str; 8] = ["data", "ack", "nack", "cnp", "signal", "trimmed", "control", "probe"];

/// A run that has ended.
#[derive(Debug)]
pub struct Played {
    checked: Checked,
    outcome: Outcome,
    tape: Tape,
    summary: Summary,
}

/// Passes progress on, keeps the frames to draw, and ends a run for which the module has no memory.
struct Watch<'f> {
    progress: &'f mut dyn FnMut(Progress),
    tape: Tape,
}

impl Observer for Watch<'_> {
    fn on_progress(&mut self, progress: Progress) -> bool {
        (self.progress)(progress);
        true
    }

    fn room(&mut self) -> u64 {
        Room::now().map_or(u64::MAX, |room| room.left)
    }

    fn takes_frames(&self) -> bool {
        true
    }

    fn on_frames(&mut self, frames: &[Frame], _: Time) {
        self.tape.add(frames);
    }
}

impl Played {
    /// Runs a scenario to its end; `progress` is called every few dozen windows.
    pub fn new(mut checked: Checked, progress: &mut dyn FnMut(Progress)) -> Played {
        checked.plan.record = recordings(&checked.plan);
        let Checked { plan, schemes, nics, .. } = &checked;
        let mut watch = Watch { progress, tape: tape(plan) };
        let outcome = sim::run(plan, schemes, nics, Kind::Window, &mut watch);
        let mut tape = watch.tape;
        tape.add(&outcome.notes.frames);
        let ideal = ideal::of_flows(plan);
        let title = Title { scenario: &checked.name, scheme: &checked.scheme_name() };
        let summary = Summary::new(title, plan, &ideal, &outcome, Timing::default());
        Played { checked, outcome, tape, summary }
    }

    /// The digest of the run, the same as that of `ropewalk run`.
    pub fn digest(&self) -> &str {
        &self.summary.digest
    }

    /// Everything but single packets: fabric, summary, series and events.
    pub fn show(&self) -> Vec<u8> {
        let mut pack = Pack::default();
        let plan = &self.checked.plan;
        put_fabric(plan, &mut pack);
        self.put_series(&mut pack);
        let events = self.put_events(&mut pack);
        let recording = &self.outcome.recording;
        let head = json!({
            "scenario": self.checked.name,
            "scheme": self.summary.scheme,
            "digest": self.summary.digest,
            "toml": self.checked.to_toml(),
            "warnings": self.checked.warnings(),
            "faults": results::faults::of(plan, &self.outcome, ""),
            "end_us": self.outcome.end.as_us(),
            "nodes": nodes(plan).map(|node| plan.fabric.name(node)).collect::<Vec<_>>(),
            "jobs": plan.jobs.iter().map(|job| &job.name).collect::<Vec<_>>(),
            "failures": failures(plan),
            "losses": losses(plan),
            "width_us": recording.width.as_us(),
            "bins": recording.bins,
            "counters": recording.counters.iter().map(|(name, _)| name).collect::<Vec<_>>(),
            "events": events,
            "kinds": KINDS,
            "more_events": self.outcome.notes.more_events,
            "more_packets": self.tape.more,
            "summary": self.summary,
        });
        pack.finish(head)
    }

    /// Every start of a frame of one queue pair on any link, in order of time.
    pub fn packets(&self, qp: QpId) -> Vec<u8> {
        let plan = &self.checked.plan;
        let mine = self.tape.frames.iter().filter_map(|frame| match frame.what {
            Passed::Packet(packet, lost) if packet.qp() == qp => Some((frame, packet, lost)),
            _ => None,
        });
        let mine: Vec<_> = mine.collect();
        let mut pack = Pack::default();
        pack.column("at", mine.iter().map(|(frame, ..)| frame.at.as_us()));
        pack.column(
            "until",
            mine.iter().map(|(frame, packet, _)| {
                let rate = plan.failures.rate(&plan.fabric, frame.link, frame.at);
                let delay = plan.fabric.links()[frame.link.index()].delay;
                (frame.at + plan.wire.transmission(rate, packet.frame()) + delay).as_us()
            }),
        );
        pack.column("link", mine.iter().map(|(frame, ..)| frame.link.0));
        pack.column("psn", mine.iter().map(|(_, packet, _)| packet.psn().value()));
        pack.column("kind", mine.iter().map(|(_, packet, _)| packet.kind() as u8));
        pack.column("again", mine.iter().map(|(_, packet, _)| u8::from(packet.retransmission())));
        pack.column("lost", mine.iter().map(|(.., lost)| u8::from(*lost)));
        pack.finish(json!({ "qp": qp.0 }))
    }

    fn put_series(&self, pack: &mut Pack) {
        let recording = &self.outcome.recording;
        pack.column("track.qp", recording.qps.iter().map(|(qp, _)| qp.0));
        let qps = || recording.qps.iter().flat_map(|(_, bins)| bins);
        pack.column("qp.bytes", qps().map(|bin| bin.bytes as f64));
        pack.column("qp.resent", qps().map(|bin| bin.retransmitted as u32));
        pack.column("track.link", recording.links.iter().map(|(link, _)| link.0));
        let links = || recording.links.iter().flat_map(|(_, bins)| bins);
        pack.column("link.bytes", links().map(|bin| bin.bytes as f64));
        pack.column("link.queue", links().map(|bin| bin.max_queue as f64));
        pack.column("link.lost", links().map(|bin| bin.lost as u32));
        pack.column("link.marks", links().map(|bin| bin.marks as u32));
        pack.column(
            "counters",
            recording.counters.iter().flat_map(|(_, bins)| bins.iter().map(|&count| count as f64)),
        );
    }

    /// Puts the events' columns, and returns the names of what happened.
    fn put_events(&self, pack: &mut Pack) -> Vec<String> {
        let events = &self.outcome.notes.events;
        let kind = |event: &Event| (event.what, event.kind as u8);
        let mut kinds: BTreeMap<_, (u8, String)> = BTreeMap::new();
        for event in events {
            let name = || (0, event_names::name(event.what, event.kind));
            kinds.entry(kind(event)).or_insert_with(name);
        }
        kinds.values_mut().zip(0..).for_each(|((number, _), next)| *number = next);
        pack.column("event.qp", events.iter().map(|event| event.qp.0));
        pack.column("event.at", events.iter().map(|event| event.at.as_us()));
        pack.column("event.node", events.iter().map(|event| event.node.0));
        pack.column("event.psn", events.iter().map(|event| event.psn.value()));
        pack.column("event.value", events.iter().map(|event| event.value as f64));
        pack.column("event.what", events.iter().map(|event| kinds[&kind(event)].0));
        kinds.into_values().map(|(_, name)| name).collect()
    }
}

fn put_fabric(plan: &Plan, pack: &mut Pack) {
    let fabric = &plan.fabric;
    pack.column("node.tier", nodes(plan).map(|node| fabric.tier(node) as u32));
    pack.column("link.from", fabric.links().iter().map(|link| link.from.0));
    pack.column("link.to", fabric.links().iter().map(|link| link.to.0));
    pack.column("link.gbps", fabric.links().iter().map(|link| link.rate.as_gbps()));
    pack.column("flow.from", plan.qps.iter().map(|qp| fabric.node_of(qp.from).0));
    pack.column("flow.to", plan.qps.iter().map(|qp| fabric.node_of(qp.to).0));
    pack.column(
        "flow.job",
        plan.qps.iter().map(|qp| match plan.messages.get(qp.messages.start as usize) {
            Some(message) => u32::from(message.job),
            None => 0,
        }),
    );
}

/// All nodes, the hosts first.
fn nodes(plan: &Plan) -> impl Iterator<Item = NodeId> {
    (0..plan.fabric.nodes() as u32).map(NodeId)
}

/// The changes of links: number, time, and the new rate, which is null for a link that goes down.
fn failures(plan: &Plan) -> Vec<Value> {
    let changes = plan.failures.changes().iter();
    changes
        .map(|change| {
            json!({ "link": change.link.0, "at_us": change.at.as_us(), "gbps": change.rate.map(|rate| rate.as_gbps()) })
        })
        .collect()
}

/// The changes of links' chances of loss: number, time, and the new share of packets that the link loses.
fn losses(plan: &Plan) -> Vec<Value> {
    let changes = plan.failures.losses().iter();
    changes
        .map(|change| json!({ "link": change.link.0, "at_us": change.at.as_us(), "share": change.loss.share() }))
        .collect()
}

/// What the page must know before a run: the version, the built-in scenarios, and the schemes with those that can run in
/// `asked`.
pub fn about(asked: &Asked) -> Vec<u8> {
    let builtin = scenario::builtin::ALL.iter();
    let scenarios: Vec<Value> =
        builtin.map(|each| json!({ "name": each.name, "about": each.about(), "text": each.text })).collect();
    // The names stand in the scheme list itself: a scenario's JSON Schema would bring the description of every setting into the page.
    let schemes: Vec<Value> = SchemeConfig::names()
        .iter()
        .map(|name| {
            let mut with = asked.clone();
            with.set.push(format!("scheme.{name}={{}}"));
            json!({ "name": name, "about": SchemeConfig::about(name), "why_not": with.check().err().map(|error| error.text) })
        })
        .collect();
    Pack::default().finish(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "scenarios": scenarios,
        "schemes": schemes,
    }))
}

/// The answer to a page whose scenario has a mistake.
pub fn refused(error: &Finding) -> Vec<u8> {
    Pack::default().finish(mistake(error))
}
