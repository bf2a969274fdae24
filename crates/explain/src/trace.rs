//! What `events.parquet` says of one queue pair, with PSNs unwrapped.

use arrow_array::Array;
use model::{Kind, Psn, Time};
use results::table::Table;

/// What happened; see [`engine::outcome::EventKind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// Sent for the first time.
    Sent,
    /// Sent on purpose though it was sent before, and not for a loss.
    Copy,
    Resent,
    Arrived,
    Ahead,
    Duplicate,
    Discarded,
    /// A NACK or a CNP, by its receiver.
    Answered,
    /// A NACK or a CNP, at its sender.
    Heard,
    TimedOut,
    Paused,
    Resumed,
    Blocked,
    Made,
    Dropped,
    Lost,
}

/// An event.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) at: Time,
    pub(crate) what: What,
    /// Of which kind of packet.
    pub(crate) kind: Kind,
    /// Its PSN, not wrapped: packets of the queue pair before it.
    pub(crate) seq: u64,
    /// Host or switch.
    pub(crate) node: String,
    /// Distance from ePSN.
    pub(crate) ahead: u64,
    /// Rate that congestion control allows after it.
    pub(crate) gbps: Option<f64>,
    /// Since when a packet that starts might have done so but for its port.
    pub(crate) ready: Time,
}

impl Step {
    /// A packet of data starts.
    pub(crate) fn starts(&self) -> bool {
        matches!(self.what, What::Sent | What::Copy | What::Resent)
    }
}

/// The events of a queue pair, by time; `None` if there are none, or if a column is missing that an older version did not
/// write.
pub(crate) fn read(table: &Table, qp: u64) -> Option<Vec<Step>> {
    let (qps, times) = (table.counts("qp")?, table.counts("time_ps")?);
    let (names, psns, nodes) = (table.texts("event")?, table.counts("psn")?, table.texts("at")?);
    let (ahead, rates) = (table.counts("ahead_of_epsn")?, table.reals("allowed_gbps")?);
    let ready = table.reals("ready_us")?;
    let mut steps = Vec::new();
    // The first packet that was never sent.
    let mut high = 0;
    for row in (0..table.rows()).filter(|&row| qps.value(row) == qp) {
        let Some((mut what, kind)) = meaning(names.value(row)) else { continue };
        // A 24-bit column: what is beyond is no PSN, and wraps.
        let seq = Psn::new(psns.value(row) as u32).unwrap_near(high);
        match what {
            What::Sent if seq < high => what = What::Copy,
            What::Sent => high = seq + 1,
            _ => {}
        }
        let at = Time(times.value(row));
        let since = |us: f64| Time((us * 1e6).round() as u64).min(at);
        steps.push(Step {
            at,
            what,
            kind,
            seq,
            node: nodes.value(row).to_owned(),
            ahead: if ahead.is_null(row) { 0 } else { ahead.value(row) },
            gbps: rates.is_valid(row).then(|| rates.value(row)),
            ready: if ready.is_valid(row) { since(ready.value(row)) } else { at },
        });
    }
    (!steps.is_empty()).then_some(steps)
}

/// What a name in the table means; `None` if it is from another version.
fn meaning(name: &str) -> Option<(What, Kind)> {
    let of_data = |what| Some((what, Kind::Data));
    match name {
        "sent" => return of_data(What::Sent),
        "resent" => return of_data(What::Resent),
        "arrived" => return of_data(What::Arrived),
        "ahead" => return of_data(What::Ahead),
        "duplicate" => return of_data(What::Duplicate),
        "discarded" => return of_data(What::Discarded),
        "timeout" => return of_data(What::TimedOut),
        "paused" => return of_data(What::Paused),
        "resumed" => return of_data(What::Resumed),
        _ => {}
    }
    let (kind, what) = name.split_once('-')?;
    let kind = match kind {
        "data" => Kind::Data,
        "ack" => Kind::Ack,
        "nack" => Kind::Nack,
        "cnp" => Kind::Cnp,
        "signal" => Kind::Signal,
        _ => return None,
    };
    let what = match what {
        "sent" => What::Answered,
        "received" => What::Heard,
        "blocked" => What::Blocked,
        "made" => What::Made,
        "dropped" => What::Dropped,
        "lost" => What::Lost,
        _ => return None,
    };
    Some((what, kind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::table::Column;

    /// A table of events of queue pair 7: name and PSN, a microsecond apart.
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
    fn a_packet_sent_before_is_a_copy_and_psns_go_on_after_the_wrap() {
        const LAST: u64 = (1 << 24) - 1;
        let all: Vec<(&str, u64)> = (0..=LAST).step_by(1 << 22).map(|psn| ("sent", psn)).collect();
        let mut events = all.clone();
        events.extend([("sent", LAST), ("sent", LAST), ("sent", 0), ("resent", LAST), ("nack-received", 1)]);
        let steps = read(&table(&events), 7).unwrap();
        let tail: Vec<_> = steps[all.len()..].iter().map(|s| (s.what, s.kind, s.seq)).collect();
        let data = Kind::Data;
        assert_eq!(
            tail,
            [
                (What::Sent, data, LAST),
                (What::Copy, data, LAST),
                (What::Sent, data, LAST + 1),
                (What::Resent, data, LAST),
                (What::Heard, Kind::Nack, LAST + 2),
            ]
        );
    }

    #[test]
    fn without_events_of_it_or_without_a_column_there_is_nothing() {
        let whole = table(&[("sent", 0)]);
        assert!(read(&whole, 8).is_none());
        let old = Table::new(vec![Column::count("qp", "-", "", std::iter::once(7))], 1);
        assert!(read(&old, 7).is_none());
    }
}
