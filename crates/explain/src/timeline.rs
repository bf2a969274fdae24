//! What happened to a flow and when. Events of one kind that follow each other closely share a line, so that a
//! timeline has some dozens of lines.

use crate::account::Account;
use crate::cause::Cause;
use crate::failed::failed;
use crate::history::History;
use crate::packets::{Reason, is_ahead, reasons};
use crate::pauses::pauses;
use crate::trace::Step;
use engine::outcome::EventKind;
use model::{Kind, Psn, Time};
use results::text::{count, number};
use serde::Serialize;
use std::collections::BTreeMap;

/// Most lines: about one screen. Our choice.
const LINES: usize = 40;
/// Events of a kind share a line if they are closer than the flow's time divided by this number. The distance is
/// doubled while there are too many lines. Our choice.
const CLOSE: u64 = 100;
/// The shortest wait in the timeline is the flow's time divided by this number. Our choice.
const LONG: u64 = 50;

/// Most failures of the fabric that have lines. Our choice: with those of flaps, half of the screen.
const FAILURES: usize = 10;

/// A line of the timeline.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    /// Start, in simulated time.
    pub from_us: f64,
    /// End; the same as the start for a single event.
    pub to_us: f64,
    /// What happened.
    pub what: String,
}

/// Kind of a line. Lines that begin at the same time stand in this order: causes before effects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Topic {
    Heard(u8),
    TimedOut,
    Paused,
    Resent,
    Lost(String),
    Dropped(String),
    Cut(String),
    Ahead,
    Discarded,
    Duplicate,
    Sent(u8),
    Blocked(u8, String),
    Made(u8, String),
}

/// Events of a kind that share a line.
struct Bunch<'a> {
    from: Time,
    to: Time,
    events: Vec<(&'a Step, Note)>,
}

/// Facts about an event that the event does not carry itself.
#[derive(Clone, Copy, Default)]
struct Note {
    /// Rate before and after the cuts that the event caused, Gb/s.
    cut: Option<(f64, f64)>,
    /// Reason of a retransmission.
    reason: Option<Reason>,
    /// End of a pause.
    until: Option<Time>,
}

/// The timeline of a flow.
pub(crate) fn of(history: &History<'_>, account: &Account) -> Vec<Line> {
    let topics = topics(history);
    let all = history.end.since(history.start).ps();
    let mut close = (all / CLOSE).max(history.crossing(history.wire().max_frame()).ps().min(all));
    let fixed = fixed(history, account);
    let mut lines;
    loop {
        lines = fixed.clone();
        for (topic, events) in &topics {
            lines.extend(bunches(events, close).iter().map(|bunch| line(history, topic, bunch)));
        }
        if lines.len() <= LINES || close > all {
            break;
        }
        close = close.saturating_mul(2).max(1);
    }
    // Lines that begin at the same time stand in the order of their ends.
    lines.sort_by(|a, b| a.from_us.total_cmp(&b.from_us).then(a.to_us.total_cmp(&b.to_us)));
    lines
}

/// Events by topic, in order of time, each with its note.
fn topics<'a>(history: &History<'a>) -> BTreeMap<Topic, Vec<(&'a Step, Note)>> {
    let mut topics: BTreeMap<Topic, Vec<(&Step, Note)>> = BTreeMap::new();
    let (mut reasons, paused) = (reasons(history), pauses(history));
    // By index of the triggering event: rate before and after.
    let mut cut_by: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
    for cut in &history.cuts {
        if let Some(trigger) = cut.trigger {
            cut_by.entry(trigger).or_insert((cut.from, cut.to)).1 = cut.to;
        }
    }
    for (i, step) in history.steps.iter().enumerate() {
        if !(history.start..=history.end).contains(&step.at) {
            continue;
        }
        let mine = history.own.contains(&step.seq);
        let mut note = Note { cut: cut_by.get(&i).copied(), ..Note::default() };
        let kind = step.kind as u8;
        let topic = match step.what {
            EventKind::Resent if mine => {
                let left = reasons.get_mut(&step.seq).filter(|left| !left.is_empty());
                note.reason = left.map(|left| left.remove(0));
                Topic::Resent
            }
            EventKind::Lost if mine || step.kind != Kind::Data => Topic::Lost(match &step.lost {
                Some((to, _)) => format!("on {} -> {to}", step.node),
                None => format!("after {}", step.node),
            }),
            EventKind::Dropped if mine || step.kind != Kind::Data => Topic::Dropped(step.node.clone()),
            EventKind::Cut if mine => Topic::Cut(step.node.clone()),
            EventKind::Discarded if mine => Topic::Discarded,
            EventKind::Ahead if is_ahead(history, step) => Topic::Ahead,
            EventKind::Duplicate if mine => Topic::Duplicate,
            // A CNP reaches its sender unless another event reports the opposite, so its sending needs no line.
            EventKind::FeedbackSent if step.kind != Kind::Cnp => Topic::Sent(kind),
            EventKind::Made if step.kind != Kind::Signal => Topic::Made(kind, step.node.clone()),
            EventKind::Blocked if step.kind != Kind::Signal => Topic::Blocked(kind, step.node.clone()),
            EventKind::FeedbackReceived => Topic::Heard(kind),
            EventKind::TimedOut => Topic::TimedOut,
            EventKind::Paused => {
                let span = paused.binary_search_by_key(&step.at, |(from, _)| *from);
                note.until = Some(span.map_or(step.at, |span| paused[span].1).min(history.end));
                Topic::Paused
            }
            _ => continue,
        };
        topics.entry(topic).or_default().push((step, note));
    }
    topics
}

fn bunches<'a>(events: &[(&'a Step, Note)], close: u64) -> Vec<Bunch<'a>> {
    let mut bunches: Vec<Bunch<'_>> = Vec::new();
    for &(step, note) in events {
        let end = note.until.unwrap_or(step.at);
        match bunches.last_mut() {
            Some(last) if step.at.since(last.to).ps() <= close => {
                last.to = last.to.max(end);
                last.events.push((step, note));
            }
            _ => bunches.push(Bunch { from: step.at, to: end, events: vec![(step, note)] }),
        }
    }
    bunches
}

fn line(history: &History<'_>, topic: &Topic, bunch: &Bunch<'_>) -> Line {
    Line { from_us: bunch.from.as_us(), to_us: bunch.to.as_us(), what: words(history, topic, bunch) }
}

fn words(history: &History<'_>, topic: &Topic, bunch: &Bunch<'_>) -> String {
    let n = bunch.events.len();
    let packets = if n == 1 { "1 packet".to_owned() } else { format!("{} packets", count(n as u64)) };
    let ahead = bunch.events.iter().map(|(step, _)| step.ahead).max().unwrap_or(0);
    let psns = psns(bunch);
    match topic {
        Topic::Resent => format!("{packets} sent again, {psns}{}", why(bunch)),
        Topic::Lost(place) => format!("{} lost {place}, {psns}", many(bunch, n)),
        Topic::Dropped(node) => format!("{} dropped at {node} for lack of buffer, {psns}", many(bunch, n)),
        Topic::Cut(node) => format!("{} trimmed at {node} for lack of buffer, {psns}", many(bunch, n)),
        Topic::Ahead => format!("{packets} arrived ahead of ePSN, up to {} ahead", count(ahead)),
        Topic::Discarded => {
            format!(
                "{packets} arrived ahead of ePSN, discarded by the receiver, up to {} ahead",
                count(ahead)
            )
        }
        Topic::Duplicate => format!("{packets} arrived again, {psns}"),
        Topic::Sent(_) => format!("the receiver sent {}{}", many(bunch, n), nack_psns(bunch, &psns)),
        Topic::Made(_, node) => format!("{node} made {}{}", many(bunch, n), nack_psns(bunch, &psns)),
        Topic::Blocked(_, node) => format!("{node} blocked {}{}", many(bunch, n), nack_psns(bunch, &psns)),
        Topic::Heard(_) => {
            format!("{} reached the sender{}{}", many(bunch, n), nack_psns(bunch, &psns), rates(bunch))
        }
        Topic::TimedOut => {
            let times = if n == 1 { String::new() } else { format!(" {n} times") };
            format!("the retransmission timer fired{times}, {psns} unacknowledged{}", rates(bunch))
        }
        Topic::Paused => {
            let paused: u64 = bunch
                .events
                .iter()
                .map(|(step, note)| note.until.map_or(0, |until| until.since(step.at).ps()))
                .sum();
            let times = if n == 1 { String::new() } else { format!(" {n} times") };
            format!(
                "{}'s port was paused{times}, {} us in all",
                history.flow.from,
                number(paused as f64 / 1e6)
            )
        }
    }
}

/// Count and kind of the packets, such as `3 NACKs`.
fn many(bunch: &Bunch<'_>, n: usize) -> String {
    let kind = match bunch.events[0].0.kind {
        Kind::Data => "packet",
        Kind::Ack => "ACK",
        Kind::Nack => "NACK",
        Kind::Cnp => "CNP",
        Kind::Signal => "signal",
        Kind::Trimmed => "trimmed packet",
        Kind::Control => "control message",
        Kind::Probe => "probe",
    };
    let plural = if n == 1 { "" } else { "s" };
    format!("{} {kind}{plural}", count(n as u64))
}

/// Range of the PSNs.
fn psns(bunch: &Bunch<'_>) -> String {
    let seqs = || bunch.events.iter().map(|(step, _)| step.seq);
    let (least, most) = (seqs().min().unwrap_or(0), seqs().max().unwrap_or(0));
    let psn = |seq| Psn::from_seq(seq).value();
    if least == most { format!("PSN {}", psn(least)) } else { format!("PSN {}-{}", psn(least), psn(most)) }
}

/// PSNs of NACKs, which name missing packets; the PSN of a CNP has no meaning.
fn nack_psns(bunch: &Bunch<'_>, psns: &str) -> String {
    if bunch.events[0].0.kind == Kind::Nack { format!(" for {psns}") } else { String::new() }
}

/// Rates before the first and after the last cut.
fn rates(bunch: &Bunch<'_>) -> String {
    let mut cuts = bunch.events.iter().filter_map(|(_, note)| note.cut);
    let Some(first) = cuts.next() else { return String::new() };
    let n = 1 + cuts.clone().count();
    let last = cuts.next_back().unwrap_or(first);
    // The rate may have risen between cuts.
    let cuts = if n == 1 { String::new() } else { format!(" in {n} cuts") };
    format!(": {} to {} Gb/s{cuts}", number(first.0), number(last.1))
}

/// Reasons of the retransmissions.
fn why(bunch: &Bunch<'_>) -> String {
    let mut counted: BTreeMap<Reason, usize> = BTreeMap::new();
    for reason in bunch.events.iter().filter_map(|(_, note)| note.reason) {
        *counted.entry(reason).or_default() += 1;
    }
    let text = |reason: &Reason| match reason {
        Reason::Lost => "lost before",
        Reason::Dropped => "dropped before",
        Reason::Cut => "trimmed before",
        Reason::Discarded => "discarded before",
        Reason::Late => "only late: spurious",
        Reason::Arrived => "had arrived already: spurious",
        Reason::Open => "reason unknown",
    };
    match counted.len() {
        0 => String::new(),
        1 => format!(" ({})", counted.keys().map(text).collect::<String>()),
        _ => {
            let parts: Vec<String> =
                counted.iter().map(|(reason, n)| format!("{} {}", count(*n as u64), text(reason))).collect();
            format!(" ({})", parts.join(", "))
        }
    }
}

/// Milestones, and long waits.
fn fixed(history: &History<'_>, account: &Account) -> Vec<Line> {
    let at = |time: Time, what: String| Line { from_us: time.as_us(), to_us: time.as_us(), what };
    let mut lines = vec![at(history.start, "posted".to_owned())];
    let sent = || {
        history.during().filter(|s| s.starts_first() && history.own.contains(&s.seq)).map(|s| (s.at, s.seq))
    };
    let psn = |seq| Psn::from_seq(seq).value();
    if let Some((first, seq)) = sent().next() {
        match first == history.start {
            true => lines[0].what = format!("posted; its first packet, PSN {}, is sent at once", psn(seq)),
            false => lines.push(at(first, format!("its first packet, PSN {}, is sent", psn(seq)))),
        }
    }
    if let Some((last, seq)) = sent().last().filter(|(_, seq)| seq + 1 == history.own.end) {
        lines.push(at(last, format!("its last packet, PSN {}, is sent for the first time", psn(seq))));
    }
    lines.extend(history.received.map(|time| at(time, "all of it has arrived".into())));
    lines
        .extend(history.acked.map(|time| at(time, "the ACK of its last byte has reached the sender".into())));
    if history.acked.is_none() {
        lines.push(at(history.end, "the run ended before the flow".into()));
    }
    let long = history.end.since(history.start).ps() / LONG;
    for &(from, to, cause) in account.waits.iter().filter(|(from, to, _)| to.since(*from).ps() >= long) {
        let what = match cause {
            Cause::Behind => behind(history, from, to),
            Cause::Window => "nothing sent: waiting for ACKs".to_owned(),
            Cause::UntilNack => "nothing to send until a NACK came".to_owned(),
            Cause::UntilTimeout => "nothing to send until the retransmission timer fired".to_owned(),
            _ => continue,
        };
        lines.push(Line { from_us: from.as_us(), to_us: to.as_us(), what });
    }
    let (start, end) = (history.start, history.end);
    let failed = failed(history.plan, start, end, |_| true);
    lines.extend(failed.iter().take(FAILURES).flat_map(|failed| failed.lines(start, end)));
    if let Some(more) = failed.len().checked_sub(FAILURES).filter(|more| *more > 0) {
        lines.push(at(end, format!("on the fabric, {} more failures in this time", count(more as u64))));
    }
    lines
}

/// Which flows of the queue pair were sent first.
fn behind(history: &History<'_>, from: Time, to: Time) -> String {
    let others = history.steps.iter().filter(|s| s.starts() && (from..to).contains(&s.at));
    let mut flows: Vec<u32> = others.filter_map(|s| history.message_of(s.seq)).collect();
    flows.dedup();
    flows.sort_unstable();
    flows.dedup();
    match flows.as_slice() {
        [] => "waiting behind other messages of its queue pair".to_owned(),
        [one] => format!("waiting behind flow {one} on its queue pair"),
        [first, .., last] => {
            format!("waiting behind {} flows on its queue pair, {first} to {last}", flows.len())
        }
    }
}
