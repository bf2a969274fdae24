//! `events.parquet`: events of the followed queue pairs, by queue pair and time.

use crate::data::RunData;
use crate::table::{Column, Table};
use crate::tables::event_names;
use engine::outcome::{Event, EventKind};
use model::{LinkId, Time};

/// The table of events; `None` if no queue pair was followed.
pub fn table(run: RunData<'_>) -> Option<Table> {
    let (plan, events) = (run.plan, &run.outcome.notes.events);
    if plan.record.follow.is_empty() {
        return None;
    }
    let distance = |e: &Event| matches!(e.what, EventKind::Ahead | EventKind::Discarded).then_some(e.value);
    let starts = |e: &Event| matches!(e.what, EventKind::Sent | EventKind::Resent);
    let rate = |e: &Event| {
        (starts(e) || matches!(e.what, EventKind::FeedbackReceived | EventKind::TimedOut))
            .then_some(e.value as f64 / 1e9)
    };
    let peer = |link: LinkId| {
        let to = plan.fabric.links()[link.index()].to;
        plan.fabric.name(to).to_owned()
    };
    let columns = vec![
        Column::count("qp", "-", "queue pair", events.iter().map(|e| e.qp.0.into())),
        Column::real("time_us", "us", "time of the event", events.iter().map(|e| Some(e.at.as_us()))),
        Column::count("time_ps", "ps", "exact time of the event", events.iter().map(|e| Time::ps(e.at))),
        Column::text(
            "event",
            "sent, resent (by the sender); arrived (as expected), ahead (kept), duplicate, discarded (at the receiver); \
             nack-sent, cnp-sent (by the receiver); nack-received, cnp-received, timeout (at the sender); \
             paused, resumed (the sender's port); KIND-blocked, KIND-made (by the scheme); KIND-dropped (for lack of buffer), KIND-lost (on a link)",
            events.iter().map(|e| event_names::name(e.what, e.kind)),
        ),
        Column::count("psn", "-", "PSN of the packet, 24 bits", events.iter().map(|e| e.psn.value().into())),
        Column::text("at", "host or switch", events.iter().map(|e| plan.fabric.name(e.node).to_owned())),
        Column::maybe(
            "ahead_of_epsn",
            "packets",
            "distance from ePSN (ahead, discarded)",
            events.iter().map(distance),
        ),
        Column::real(
            "allowed_gbps",
            "Gb/s",
            "rate that congestion control allows the sender after the event (sent, resent, nack-received, cnp-received, timeout)",
            events.iter().map(rate),
        ),
        Column::real(
            "ready_us",
            "us",
            "time from which the packet's own rate and window allowed it; from then until time_us it waited for its port (sent, resent)",
            events.iter().map(|e| starts(e).then(|| e.ready.as_us())),
        ),
        Column::text(
            "lost_to",
            "node at the other end of the link that lost the packet (KIND-lost)",
            events.iter().map(|e| e.loss().map_or_else(String::new, |(link, _)| peer(link))),
        ),
        Column::text(
            "lost_by",
            "why the link lost the packet (KIND-lost): chance, codeword, burst, outage, black-hole (it was down already)",
            events.iter().map(|e| e.loss().map_or_else(String::new, |(_, cause)| cause.name().to_owned())),
        ),
    ];
    Some(Table::new(columns, 1))
}
