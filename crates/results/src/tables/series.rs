//! `series.parquet`: queue pairs, links and switches over time, one row per bin. A column is empty in the rows of subjects
//! that it does not apply to.

use crate::data::RunData;
use crate::flows::gbps;
use crate::table::{Column, Table};
use engine::outcome::{LinkBin, QpBin};
use model::{LinkId, NodeId, Plan, QpId, Time};

/// Subject of a row, with its counts in the row's bin.
enum Subject<'r> {
    Qp(QpId, &'r QpBin),
    Link(LinkId, &'r LinkBin),
    /// The number is the most bytes of the buffer in use.
    Switch(NodeId, u64),
}

/// The rows of the table. Each column is made from them.
struct Rows<'r> {
    plan: &'r Plan,
    /// Width of a bin.
    width: Time,
    /// Number of the bin, and the subject.
    rows: Vec<(usize, Subject<'r>)>,
}

/// The table of series.
pub fn table(run: RunData<'_>) -> Table {
    let rows = Rows::of(run);
    let mut columns = rows.place();
    columns.extend(rows.traffic());
    columns.extend(rows.of_queue_pairs());
    columns.extend(rows.of_links_and_switches());
    Table::new(columns, 1)
}

impl<'r> Subject<'r> {
    fn kind(&self) -> &'static str {
        match self {
            Subject::Qp(..) => "qp",
            Subject::Link(..) => "link",
            Subject::Switch(..) => "switch",
        }
    }

    fn id(&self) -> u32 {
        match self {
            Subject::Qp(qp, _) => qp.0,
            Subject::Link(link, _) => link.0,
            Subject::Switch(node, _) => node.0,
        }
    }

    fn qp(&self) -> Option<&'r QpBin> {
        if let Subject::Qp(_, bin) = self { Some(bin) } else { None }
    }

    fn link(&self) -> Option<&'r LinkBin> {
        if let Subject::Link(_, bin) = self { Some(bin) } else { None }
    }

    fn bytes(&self) -> Option<u64> {
        self.qp().map(|bin| bin.bytes).or_else(|| self.link().map(|bin| bin.bytes))
    }

    fn packets(&self) -> Option<u64> {
        self.qp().map(|bin| bin.packets).or_else(|| self.link().map(|bin| bin.frames))
    }

    fn buffer(&self) -> Option<u64> {
        if let Subject::Switch(_, bytes) = self { Some(*bytes) } else { None }
    }
}

impl<'r> Rows<'r> {
    fn of(run: RunData<'r>) -> Self {
        let recording = &run.outcome.recording;
        let qps = recording
            .qps
            .iter()
            .flat_map(|(qp, bins)| bins.iter().map(|bin| Subject::Qp(*qp, bin)).enumerate());
        let links = recording
            .links
            .iter()
            .flat_map(|(link, bins)| bins.iter().map(|bin| Subject::Link(*link, bin)).enumerate());
        let switches = recording
            .switches
            .iter()
            .flat_map(|(node, bins)| bins.iter().map(|bin| Subject::Switch(*node, *bin)).enumerate());
        let rows = qps.chain(links).chain(switches).collect();
        Rows { plan: run.plan, width: recording.width, rows }
    }

    fn subjects(&self) -> impl Iterator<Item = &Subject<'r>> {
        self.rows.iter().map(|(_, subject)| subject)
    }

    /// A column of counts, empty where `value` is `None`.
    fn counts(
        &self,
        name: &str,
        unit: &str,
        about: &str,
        value: impl Fn(&Subject<'r>) -> Option<u64>,
    ) -> Column {
        Column::maybe(name, unit, about, self.subjects().map(value))
    }

    /// The nodes at which the subject begins and ends.
    fn ends(&self, subject: &Subject<'_>) -> (NodeId, NodeId) {
        match subject {
            Subject::Qp(qp, _) => {
                let qp = &self.plan.qps[qp.index()];
                (self.plan.fabric.node_of(qp.from), self.plan.fabric.node_of(qp.to))
            }
            Subject::Link(link, _) => {
                let link = &self.plan.fabric.links()[link.index()];
                (link.from, link.to)
            }
            Subject::Switch(node, _) => (*node, *node),
        }
    }

    /// Bytes over the width of the bin, Gb/s.
    fn rate(&self, subject: &Subject<'_>) -> Option<f64> {
        subject.bytes().filter(|_| self.width > Time::ZERO).map(|bytes| gbps(bytes, self.width))
    }

    /// Share of what the link could send in the bin.
    fn utilisation(&self, bin: usize, subject: &Subject<'_>) -> Option<f64> {
        let Subject::Link(link, _) = subject else { return None };
        let (plan, from) = (self.plan, self.start(bin));
        let capacity = plan.failures.mean_rate(&plan.fabric, *link, from, from + self.width);
        self.rate(subject).map(|gbps| gbps / (capacity / 1e9))
    }

    /// Start of a bin.
    fn start(&self, bin: usize) -> Time {
        Time(self.width.ps() * bin as u64)
    }

    /// Columns that name the subject and the bin.
    fn place(&self) -> Vec<Column> {
        let name = |node| self.plan.fabric.name(node).to_owned();
        vec![
            Column::text("kind", "qp, link or switch", self.subjects().map(|s| s.kind().to_owned())),
            Column::count(
                "id",
                "-",
                "number of the queue pair, of the link (its row in links.parquet) or of the node",
                self.subjects().map(|s| s.id().into()),
            ),
            Column::text(
                "from",
                "sending host or node; the switch",
                self.subjects().map(|s| name(self.ends(s).0)),
            ),
            Column::text(
                "to",
                "receiving host or node; the switch",
                self.subjects().map(|s| name(self.ends(s).1)),
            ),
            Column::real(
                "start_us",
                "us",
                "start of the bin",
                self.rows.iter().map(|(bin, _)| Some(self.start(*bin).as_us())),
            ),
            Column::real(
                "width_us",
                "us",
                "width of the bin; the run may end in the last one",
                self.rows.iter().map(|_| Some(self.width.as_us())),
            ),
        ]
    }

    /// Columns of traffic on queue pairs and links.
    fn traffic(&self) -> Vec<Column> {
        vec![
            self.counts("bytes", "B", "put on the wire, preambles and gaps included", Subject::bytes),
            Column::real(
                "rate_gbps",
                "Gb/s",
                "bytes over the width of the bin; a frame counts in the bin in which it starts, so a bin may show a little more than the link carries",
                self.subjects().map(|s| self.rate(s)),
            ),
            Column::real(
                "utilisation",
                "-",
                "rate_gbps over the mean of the link's rate in the bin; may be a little above 1, as rate_gbps says (links)",
                self.rows.iter().map(|(bin, s)| self.utilisation(*bin, s)),
            ),
            self.counts(
                "packets",
                "packets",
                "put on the wire: data (queue pairs), frames (links)",
                Subject::packets,
            ),
        ]
    }

    /// Columns of queue pairs alone.
    fn of_queue_pairs(&self) -> Vec<Column> {
        let qp = |name: &str, unit: &str, about: &str, value: fn(&QpBin) -> u64| {
            self.counts(name, unit, about, |s| s.qp().map(value))
        };
        vec![
            qp("retransmitted", "packets", "of these sent again (queue pairs)", |bin| bin.retransmitted),
            qp("arrived", "packets", "data that reached the receiver (queue pairs)", |bin| bin.arrived),
            qp("out_of_order", "packets", "of these with a PSN above ePSN (queue pairs)", |bin| {
                bin.out_of_order
            }),
            qp(
                "out_of_order_depth",
                "packets",
                "most packets between ePSN and one that arrived (queue pairs)",
                |bin| bin.ahead,
            ),
            qp(
                "epsn",
                "packets",
                "ePSN at the end of the bin, counted from the start of the run and not wrapped (queue pairs)",
                |bin| bin.expected,
            ),
            qp("nacks", "packets", "NACKs that reached the sender (queue pairs)", |bin| bin.nacks),
            qp("cnps", "packets", "CNPs that reached the sender (queue pairs)", |bin| bin.cnps),
            qp("timeouts", "-", "retransmission timers that fired (queue pairs)", |bin| bin.timeouts),
        ]
    }

    /// Columns of links alone, and of switches alone.
    fn of_links_and_switches(&self) -> Vec<Column> {
        let link = |name: &str, unit: &str, about: &str, value: fn(&LinkBin) -> u64| {
            self.counts(name, unit, about, |s| s.link().map(value))
        };
        vec![
            link("max_queue_bytes", "B", "longest queue of data before it (links)", |bin| bin.max_queue),
            link("marks", "packets", "packets marked before it (links)", |bin| bin.marks),
            link("lost", "packets", "lost on it, or dropped before it for lack of buffer (links)", |bin| {
                bin.lost
            }),
            link("pauses", "-", "times that it was paused (links)", |bin| bin.pauses),
            self.counts(
                "max_buffer_bytes",
                "B",
                "most bytes of the buffer in use, seen once per window of the engine (switches)",
                Subject::buffer,
            ),
        ]
    }
}
