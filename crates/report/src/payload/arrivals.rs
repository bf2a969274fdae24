//! Packets of chosen queue pairs by time and PSN, which show reordering.

use super::super::frame::{Frame, short};
use super::flows;
use results::Results;
use serde::Serialize;
use std::collections::BTreeMap;

/// Most queue pairs in the menu. Our choice.
const QUEUE_PAIRS: usize = 6;
/// Number of events shown before the first one that `is_notable`, if not all events are shown. Our choice.
const RUN_UP: usize = 200;
/// Most links in the table of queues that a queue pair's packets met. Our choice.
const LINKS: usize = 24;

/// Events by queue pair.
#[derive(Debug, Serialize)]
pub(super) struct Arrivals {
    /// Names of events; [`Track::event`] is an index of this list.
    names: Vec<String>,
    tracks: Vec<Track>,
    /// Number of queue pairs with events.
    recorded: usize,
}

/// Events of a queue pair. Times and PSNs are differences from the event before, which makes them short.
#[derive(Debug, Serialize)]
struct Track {
    qp: u64,
    from: String,
    to: String,
    time_ns: Vec<i64>,
    psn: Vec<i64>,
    event: Vec<usize>,
    /// Number of all recorded events of this queue pair.
    of: usize,
    /// Links that its packets took, with the queues that they met.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    links: Vec<Link>,
}

#[derive(Debug, Serialize)]
struct Link {
    from: String,
    port: u64,
    to: String,
    packets: u64,
    /// Mean queue of data that its packets met.
    mean_queue_bytes: Option<f64>,
    max_queue_bytes: Option<f64>,
    /// Time that the link needs to send the mean queue.
    drains_us: Option<f64>,
}

/// True unless the event, given by its name, is part of an undisturbed flow.
fn is_notable(event: &str) -> bool {
    !matches!(event, "arrived" | "sent" | "paused" | "resumed")
}

/// The events of a run, at most `most`.
pub(super) fn of(run: &Results, most: usize) -> Option<Arrivals> {
    let table = Frame::new(run.table("events")?);
    let (qps, events) = (table.counts("qp"), table.texts("event"));
    let mut rows: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (row, qp) in qps.iter().enumerate() {
        rows.entry(*qp).or_default().push(row);
    }
    let recorded = rows.len();
    let mut names: Vec<String> = Vec::new();
    let (time, psn) = (table.reals("time_us"), table.counts("psn"));
    let slow = flows::slow_queue_pairs(run);
    // The first one is the most reordered, the first of equals among the slowest.
    let reordered = |qp: &u64| {
        let late = |row: &&usize| matches!(events[**row], "ahead" | "discarded");
        rows.get(qp).map_or(0, |rows| rows.iter().filter(late).count())
    };
    let mut chosen: Vec<u64> = slow.into_iter().filter(|qp| rows.contains_key(qp)).collect();
    if let Some(most) = (0..chosen.len()).rev().max_by_key(|&i| reordered(&chosen[i])) {
        let first = chosen.remove(most);
        chosen.insert(0, first);
    }
    chosen.truncate(QUEUE_PAIRS);
    let each = most / chosen.len().max(1);
    let ends = ends(run);
    let mut tracks = Vec::new();
    for qp in chosen {
        let all = &rows[&qp];
        let first = all.iter().position(|&row| is_notable(events[row])).unwrap_or(0);
        let first = first.saturating_sub(RUN_UP).min(all.len().saturating_sub(each));
        let (mut last_time, mut last_psn) = (0, 0);
        let (from, to) = ends.get(&qp).cloned().unwrap_or_default();
        let links = links(run, qp);
        let mut track =
            Track { qp, from, to, time_ns: vec![], psn: vec![], event: vec![], of: all.len(), links };
        for &row in all.iter().skip(first).take(each) {
            let at = (time[row] * 1000.0).round() as i64;
            let number = psn[row] as i64;
            let name = names.iter().position(|name| name == events[row]).unwrap_or_else(|| {
                names.push(events[row].to_owned());
                names.len() - 1
            });
            // The difference wraps only in a damaged file, where a wrong number is better than no page.
            track.time_ns.push(at.wrapping_sub(last_time));
            track.psn.push(number.wrapping_sub(last_psn));
            track.event.push(name);
            (last_time, last_psn) = (at, number);
        }
        tracks.push(track);
    }
    (!tracks.is_empty()).then_some(Arrivals { names, tracks, recorded })
}

/// Sender and receiver of each queue pair.
fn ends(run: &Results) -> BTreeMap<u64, (String, String)> {
    let Some(table) = run.table("flows").map(Frame::new) else { return BTreeMap::new() };
    let ends = table.texts("from").into_iter().zip(table.texts("to"));
    let names = ends.map(|(from, to)| (from.to_owned(), to.to_owned()));
    table.counts("qp").into_iter().zip(names).collect()
}

/// Links that packets of `qp` took, those with the longest waits first.
fn links(run: &Results, qp: u64) -> Vec<Link> {
    let Some(table) = run.table("paths").map(Frame::new) else { return Vec::new() };
    let qps = table.counts("qp");
    let (from, port, to) = (table.texts("from"), table.counts("port"), table.texts("to"));
    let (packets, rate) = (table.counts("packets"), table.reals("rate_gbps"));
    let (mean, max) = (table.reals("mean_queue_bytes"), table.reals("max_queue_bytes"));
    let drains_us = |row: usize| 8e-3 * mean[row] / rate[row];
    let mut rows: Vec<usize> = (0..table.rows()).filter(|&row| qps[row] == qp).collect();
    rows.sort_by(|&a, &b| drains_us(b).total_cmp(&drains_us(a)));
    let link = |&i: &usize| Link {
        from: from[i].to_owned(),
        port: port[i],
        to: to[i].to_owned(),
        packets: packets[i],
        mean_queue_bytes: short(mean[i]),
        max_queue_bytes: short(max[i]),
        drains_us: short(drains_us(i)),
    };
    rows.iter().take(LINKS).map(link).collect()
}
