//! `series.parquet`: queue pairs, links and switches over time, one row per bin. What a column does not speak of has no
//! value in it.

use crate::data::RunData;
use crate::flows::gbps;
use crate::table::{Column, Table};
use engine::outcome::{LinkBin, QpBin};
use model::{LinkId, NodeId, QpId, Time};

/// What a row is about.
enum Of<'r> {
    Qp(QpId, &'r QpBin),
    Link(LinkId, &'r LinkBin),
    Switch(NodeId, u64),
}

/// The table of series.
pub fn table(run: RunData<'_>) -> Table {
    let (plan, recording) = (run.plan, &run.outcome.recording);
    let rows: Vec<(usize, Of<'_>)> = {
        let qps =
            recording.qps.iter().flat_map(|(qp, bins)| bins.iter().map(|bin| Of::Qp(*qp, bin)).enumerate());
        let links =
            recording.links.iter().flat_map(|(l, bins)| bins.iter().map(|bin| Of::Link(*l, bin)).enumerate());
        let switches = recording
            .switches
            .iter()
            .flat_map(|(n, bins)| bins.iter().map(|bin| Of::Switch(*n, *bin)).enumerate());
        qps.chain(links).chain(switches).collect()
    };
    let width = recording.width;
    let kind = |of: &Of<'_>| match of {
        Of::Qp(..) => "qp",
        Of::Link(..) => "link",
        Of::Switch(..) => "switch",
    };
    let id = |of: &Of<'_>| match of {
        Of::Qp(qp, _) => qp.0,
        Of::Link(link, _) => link.0,
        Of::Switch(node, _) => node.0,
    };
    let ends = |of: &Of<'_>| match of {
        Of::Qp(qp, _) => {
            let qp = &plan.qps[qp.index()];
            (qp.from.node(), qp.to.node())
        }
        Of::Link(link, _) => {
            let link = &plan.fabric.links()[link.index()];
            (link.from, link.to)
        }
        Of::Switch(node, _) => (*node, *node),
    };
    let name = |node| plan.fabric.name(node).to_owned();
    let whole = |f: fn(&Of<'_>) -> Option<u64>| rows.iter().map(move |(_, of)| f(of));
    let of_qp = |f: fn(&QpBin) -> u64| {
        rows.iter().map(move |(_, of)| if let Of::Qp(_, bin) = of { Some(f(bin)) } else { None })
    };
    let of_link = |f: fn(&LinkBin) -> u64| {
        rows.iter().map(move |(_, of)| if let Of::Link(_, bin) = of { Some(f(bin)) } else { None })
    };
    let bytes = |of: &Of<'_>| match of {
        Of::Qp(_, bin) => Some(bin.bytes),
        Of::Link(_, bin) => Some(bin.bytes),
        Of::Switch(..) => None,
    };
    let packets = |of: &Of<'_>| match of {
        Of::Qp(_, bin) => Some(bin.packets),
        Of::Link(_, bin) => Some(bin.frames),
        Of::Switch(..) => None,
    };
    let rate = |of: &Of<'_>| bytes(of).filter(|_| width > Time::ZERO).map(|bytes| gbps(bytes, width));
    let share = |of: &Of<'_>| match of {
        Of::Link(link, _) => rate(of).map(|gbps| gbps / plan.fabric.links()[link.index()].rate.as_gbps()),
        Of::Qp(..) | Of::Switch(..) => None,
    };
    let columns = vec![
        Column::text("kind", "qp, link or switch", rows.iter().map(|(_, of)| kind(of).to_owned())),
        Column::count(
            "id",
            "-",
            "number of the queue pair, of the link (its row in links.parquet) or of the node",
            rows.iter().map(|(_, of)| id(of).into()),
        ),
        Column::text("from", "sending host or node; the switch", rows.iter().map(|(_, of)| name(ends(of).0))),
        Column::text("to", "receiving host or node; the switch", rows.iter().map(|(_, of)| name(ends(of).1))),
        Column::real(
            "start_us",
            "us",
            "start of the bin",
            rows.iter().map(|(bin, _)| Some(Time(width.ps() * *bin as u64).as_us())),
        ),
        Column::real(
            "width_us",
            "us",
            "width of the bin; the run may end in the last one",
            rows.iter().map(|_| Some(width.as_us())),
        ),
        Column::maybe("bytes", "B", "put on the wire, preambles and gaps included", whole(bytes)),
        Column::real(
            "rate_gbps",
            "Gb/s",
            "bytes over the width of the bin; a frame counts in the bin in which it starts, so a bin may show a little more than the link carries",
            rows.iter().map(|(_, of)| rate(of)),
        ),
        Column::real(
            "utilisation",
            "-",
            "rate_gbps over the link's rate; may be a little above 1, as rate_gbps says (links)",
            rows.iter().map(|(_, of)| share(of)),
        ),
        Column::maybe(
            "packets",
            "packets",
            "put on the wire: data (queue pairs), frames (links)",
            whole(packets),
        ),
        Column::maybe(
            "retransmitted",
            "packets",
            "of these sent again (queue pairs)",
            of_qp(|bin| bin.retransmitted),
        ),
        Column::maybe(
            "arrived",
            "packets",
            "data that reached the receiver (queue pairs)",
            of_qp(|bin| bin.arrived),
        ),
        Column::maybe(
            "out_of_order",
            "packets",
            "of these with a PSN above ePSN (queue pairs)",
            of_qp(|bin| bin.out_of_order),
        ),
        Column::maybe(
            "out_of_order_depth",
            "packets",
            "most packets between ePSN and one that arrived (queue pairs)",
            of_qp(|bin| bin.ahead),
        ),
        Column::maybe(
            "epsn",
            "packets",
            "ePSN at the end of the bin, counted from the start of the run and not wrapped (queue pairs)",
            of_qp(|bin| bin.expected),
        ),
        Column::maybe(
            "nacks",
            "packets",
            "NACKs that reached the sender (queue pairs)",
            of_qp(|bin| bin.nacks),
        ),
        Column::maybe("cnps", "packets", "CNPs that reached the sender (queue pairs)", of_qp(|bin| bin.cnps)),
        Column::maybe(
            "timeouts",
            "-",
            "retransmission timers that fired (queue pairs)",
            of_qp(|bin| bin.timeouts),
        ),
        Column::maybe(
            "max_queue_bytes",
            "B",
            "longest queue of data before it (links)",
            of_link(|bin| bin.max_queue),
        ),
        Column::maybe("marks", "packets", "packets marked before it (links)", of_link(|bin| bin.marks)),
        Column::maybe(
            "lost",
            "packets",
            "lost on it, or dropped before it for lack of buffer (links)",
            of_link(|bin| bin.lost),
        ),
        Column::maybe("pauses", "-", "times that it was paused (links)", of_link(|bin| bin.pauses)),
        Column::maybe(
            "max_buffer_bytes",
            "B",
            "most bytes of the buffer in use, seen once per window of the engine (switches)",
            rows.iter().map(|(_, of)| if let Of::Switch(_, bytes) = of { Some(*bytes) } else { None }),
        ),
    ];
    Table::new(columns, 1)
}
