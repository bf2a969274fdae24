//! The events of one queue pair, read from `events.parquet`, with PSNs unwrapped.

use arrow_array::Array;
use engine::outcome::{EventKind, LossCause};
use model::{Kind, Psn, Time};
use results::table::Table;
use results::tables::event_names;

/// An event.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) at: Time,
    pub(crate) what: EventKind,
    /// True if the event sends a packet that was sent before, as a deliberate copy rather than as a retransmission.
    pub(crate) copy: bool,
    /// Kind of the packet that the event concerns.
    pub(crate) kind: Kind,
    /// Unwrapped PSN of the packet: the count of packets of the queue pair before it.
    pub(crate) seq: u64,
    /// Host or switch where the event happened.
    pub(crate) node: String,
    /// Distance of the PSN from the ePSN, in packets.
    pub(crate) ahead: u64,
    /// Rate that congestion control allows after the event, Gb/s.
    pub(crate) gbps: Option<f64>,
    /// Earliest time at which rate and window allowed the packet to start; from then on it waited for its port.
    pub(crate) ready: Time,
    /// Of a loss on a link, the node at its other end and the cause.
    pub(crate) lost: Option<(String, LossCause)>,
}

impl Step {
    /// True if a data packet starts on its sender's wire.
    pub(crate) fn starts(&self) -> bool {
        matches!(self.what, EventKind::Sent | EventKind::Resent)
    }

    /// True if a data packet starts for the first time.
    pub(crate) fn starts_first(&self) -> bool {
        self.what == EventKind::Sent && !self.copy
    }
}

/// The events of a queue pair, by time; `None` if the table has no event of it, or lacks a column because an older version
/// of ropewalk wrote it.
pub(crate) fn read(table: &Table, qp: u64) -> Option<Vec<Step>> {
    let (qps, times) = (table.counts("qp")?, table.counts("time_ps")?);
    let (names, psns, nodes) = (table.texts("event")?, table.counts("psn")?, table.texts("at")?);
    let (ahead, rates) = (table.counts("ahead_of_epsn")?, table.reals("allowed_gbps")?);
    let ready = table.reals("ready_us")?;
    let lost = table.texts("lost_to").zip(table.texts("lost_by"));
    let mut steps = Vec::new();
    // The first packet that has not been sent so far.
    let mut high = 0;
    for row in (0..table.rows()).filter(|&row| qps.value(row) == qp) {
        let Some((what, kind)) = event_names::parse(names.value(row)) else { continue };
        // A PSN has 24 bits; `Psn::new` drops any higher bits of a damaged file.
        let seq = Psn::new(psns.value(row) as u32).unwrap_near(high);
        let copy = what == EventKind::Sent && seq < high;
        if what == EventKind::Sent {
            high = high.max(seq + 1);
        }
        let at = Time(times.value(row));
        let since = |us: f64| Time((us * 1e6).round() as u64).min(at);
        steps.push(Step {
            at,
            what,
            copy,
            kind,
            seq,
            node: nodes.value(row).to_owned(),
            ahead: if ahead.is_null(row) { 0 } else { ahead.value(row) },
            gbps: rates.is_valid(row).then(|| rates.value(row)),
            ready: if ready.is_valid(row) { since(ready.value(row)) } else { at },
            lost: lost.as_ref().filter(|_| what == EventKind::Lost).and_then(|(to, by)| {
                let cause = LossCause::ALL.into_iter().find(|cause| cause.name() == by.value(row))?;
                Some((to.value(row).to_owned(), cause))
            }),
        });
    }
    (!steps.is_empty()).then_some(steps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::table::Column;

    /// A table of events of queue pair 7, given by name and PSN, one microsecond apart.
    fn table(events: &[(&str, u64)]) -> Table {
        let rows = events.iter();
        let us = |n: usize| Some(n as f64);
        Table::new(
            vec![
                Column::count("qp", "-", "", rows.clone().map(|_| 7)),
                Column::count("time_ps", "ps", "", (0..events.len()).map(|n| n as u64 * 1_000_000)),
                Column::text("event", "", rows.clone().map(|(name, _)| (*name).to_owned())),
                Column::count("psn", "-", "", rows.clone().map(|(_, psn)| *psn)),
                Column::text("at", "", rows.clone().map(|_| "host0".to_owned())),
                Column::maybe("ahead_of_epsn", "packets", "", rows.clone().map(|_| None)),
                Column::real("allowed_gbps", "Gb/s", "", rows.map(|_| None)),
                Column::real("ready_us", "us", "", (0..events.len()).map(us)),
            ],
            1,
        )
    }

    #[test]
    fn repeated_sendings_are_copies_and_psns_are_unwrapped() {
        const LAST: u64 = (1 << 24) - 1;
        let all: Vec<(&str, u64)> = (0..=LAST).step_by(1 << 22).map(|psn| ("sent", psn)).collect();
        let mut events = all.clone();
        events.extend([("sent", LAST), ("sent", LAST), ("sent", 0), ("resent", LAST), ("nack-received", 1)]);
        let steps = read(&table(&events), 7).unwrap();
        let tail: Vec<_> = steps[all.len()..].iter().map(|s| (s.what, s.copy, s.kind, s.seq)).collect();
        let data = Kind::Data;
        assert_eq!(
            tail,
            [
                (EventKind::Sent, false, data, LAST),
                (EventKind::Sent, true, data, LAST),
                (EventKind::Sent, false, data, LAST + 1),
                (EventKind::Resent, false, data, LAST),
                (EventKind::FeedbackReceived, false, Kind::Nack, LAST + 2),
            ]
        );
    }

    #[test]
    fn a_missing_queue_pair_or_column_gives_no_events() {
        let whole = table(&[("sent", 0)]);
        assert!(read(&whole, 8).is_none());
        let old = Table::new(vec![Column::count("qp", "-", "", std::iter::once(7))], 1);
        assert!(read(&old, 7).is_none());
    }
}
