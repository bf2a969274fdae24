//! `links.parquet`: one row per direction of a link.

use crate::data::RunData;
use crate::table::{Column, Table};
use engine::outcome::{LinkRecord, LossCause};
use model::{LinkId, Time};

/// The table of links.
pub fn table(run: RunData<'_>) -> Table {
    let (fabric, failures) = (&run.plan.fabric, &run.plan.failures);
    let rows = || fabric.links().iter().zip(&run.outcome.links);
    let ids = || (0..fabric.links().len() as u32).map(LinkId);
    let end = run.outcome.end;
    let mean_rate = |link| failures.mean_rate(fabric, link, Time::ZERO, end) / 1e9;
    let lost_by = |what: &str, help: &str, count: fn(&LinkRecord) -> u64| {
        Column::count(what, "packets", help, rows().map(|(_, r)| count(r)))
    };
    let columns = vec![
        Column::text("from", "node that sends", rows().map(|(l, _)| fabric.name(l.from).to_owned())),
        Column::count("port", "-", "port of the sending node", rows().map(|(l, _)| l.port.0.into())),
        Column::text("to", "node that receives", rows().map(|(l, _)| fabric.name(l.to).to_owned())),
        Column::text(
            "role",
            "role of the node that sends",
            rows().map(|(l, _)| fabric.role(l.from).to_owned()),
        ),
        Column::real(
            "rate_gbps",
            "Gb/s",
            "rate; the mean over the run if a failure slows the link",
            ids().map(|link| Some(mean_rate(link))),
        ),
        Column::real(
            "nominal_gbps",
            "Gb/s",
            "rate without failures",
            rows().map(|(l, _)| Some(l.rate.as_gbps())),
        ),
        Column::text(
            "failures",
            "what failures did to the link, and when; empty if nothing",
            ids().map(|link| failures.words_of(fabric, link, end)),
        ),
        Column::count("frames", "packets", "frames sent, of all kinds", rows().map(|(_, r)| r.frames)),
        Column::count("bytes", "B", "bytes sent without preambles and gaps", rows().map(|(_, r)| r.bytes)),
        Column::real(
            "busy_share",
            "-",
            "share of the simulated time that the wire was busy, at most 1; a frame on the wire at the end counts in full",
            rows().map(|(_, r)| (end.ps() > 0).then(|| r.busy.min(end).ps() as f64 / end.ps() as f64)),
        ),
        Column::count(
            "max_queue_bytes",
            "B",
            "longest queue of data at the port, without the frame on the wire",
            rows().map(|(_, r)| r.max_queue),
        ),
        Column::count("marks", "packets", "packets that the port marked", rows().map(|(_, r)| r.marks)),
        Column::count(
            "drops",
            "packets",
            "data packets dropped at the port for lack of buffer",
            rows().map(|(_, r)| r.drops),
        ),
        Column::count("lost", "packets", "packets lost on the link", rows().map(|(_, r)| r.lost)),
        Column::count(
            "pauses",
            "frames",
            "pause frames that its receiver sent back; with `switch.cbfc`, times without credits are counted here, too",
            rows().map(|(_, r)| r.pauses),
        ),
        Column::real(
            "paused_us",
            "us",
            "time for which the port stood paused, or without credits",
            rows().map(|(_, r)| Some(r.paused.as_us())),
        ),
        // New columns are the last ones, so that the others keep their places for scripts that count columns.
        Column::count(
            "peer_port",
            "-",
            "port of the receiving node",
            rows().map(|(l, _)| l.peer_port.0.into()),
        ),
        Column::count(
            "replays",
            "frames",
            "times that link-level retry sent a frame again",
            rows().map(|(_, r)| r.replays),
        ),
        Column::count(
            "storms",
            "storms",
            "storms of pauses that the watchdog found at the port",
            rows().map(|(_, r)| r.storms),
        ),
        Column::count(
            "storms_restored",
            "storms",
            "storms among these whose end the watchdog saw",
            rows().map(|(_, r)| r.storms_restored),
        ),
        Column::count(
            "storm_drops",
            "packets",
            "packets that the watchdog dropped before the link",
            rows().map(|(_, r)| r.storm_drops),
        ),
        Column::count(
            "storm_drops_in",
            "packets",
            "packets that the watchdog dropped when they came in by the port",
            rows().map(|(_, r)| r.storm_drops_in),
        ),
        lost_by("lost_by_chance", "packets lost on the link by its chance of loss, or by a list", |r| {
            r.lost_by(LossCause::Chance)
        }),
        lost_by("lost_codeword", "packets lost with codewords that cannot be repaired", |r| {
            r.lost_by(LossCause::Codeword)
        }),
        lost_by("lost_burst", "packets lost in bursts", |r| r.lost_by(LossCause::Burst)),
        lost_by("lost_outage", "packets lost while the link was down", |r| {
            r.lost_by(LossCause::Outage) + r.lost_by(LossCause::BlackHole)
        }),
        lost_by("lost_black_hole", "packets among these that started on a link that was down already", |r| {
            r.lost_by(LossCause::BlackHole)
        }),
        Column::count(
            "resumes",
            "pauses",
            "ends of pauses, as resume frames or the link's failure or return bring them",
            {
                let mut ends = vec![0; fabric.links().len()];
                run.outcome.priorities.iter().for_each(|one| ends[one.link.index()] += one.resumes);
                ends.into_iter()
            },
        ),
    ];
    // Where only one priority can be paused, `pauses` has all.
    let priorities = usize::from(fabric.channels()) * (1 + run.plan.own_queues.groups.len());
    let of = |priority: usize| {
        let own = run.outcome.priorities.iter().filter(move |one| usize::from(one.priority) == priority);
        own.map(|one| (one.link.index(), *one))
    };
    let by_priority = (0..priorities).filter(|_| priorities > 1).map(|priority| {
        let mut pauses = vec![0; fabric.links().len()];
        of(priority).for_each(|(link, one)| pauses[link] = one.pauses);
        let help =
            "pauses of this priority: virtual channels of the first lossless queue, then those of the next";
        Column::count(&format!("pauses_p{priority}"), "frames", help, pauses.into_iter())
    });
    let time_by_priority = (0..priorities).filter(|_| priorities > 1).map(|priority| {
        let mut paused = vec![Some(0.0); fabric.links().len()];
        of(priority).for_each(|(link, one)| paused[link] = Some(one.paused.as_us()));
        let help =
            "time for which this priority of the port stood paused; `paused_us` counts times of several once";
        Column::real(&format!("paused_us_p{priority}"), "us", help, paused.into_iter())
    });
    let columns = columns.into_iter().chain(by_priority).chain(time_by_priority).collect();
    Table::new(columns, 1)
}
