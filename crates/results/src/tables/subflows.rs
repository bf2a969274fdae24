//! `subflows.parquet`: one row per subflow of the flows that were split.

use crate::data::RunData;
use crate::flows::{fct, set};
use crate::table::{Column, Table};
use model::{MessageId, Time};

/// Most rows of the table; with more subflows, every second, third, ... subflow is kept.
const MOST_ROWS: usize = 1_000_000;

/// The table of subflows; `None` if no flow was split.
pub fn table(run: RunData<'_>) -> Option<Table> {
    let plan = run.plan;
    let split = || plan.wholes.iter().filter(|whole| whole.request.is_none());
    let count: usize = split().map(|whole| whole.subflows.len()).sum();
    if count == 0 {
        return None;
    }
    let every = count.div_ceil(MOST_ROWS);
    let all = split().flat_map(|whole| whole.subflows.iter().map(|subflow| (whole.subflows[0], *subflow)));
    let rows: Vec<(MessageId, MessageId)> = all.step_by(every).collect();
    let rows = || rows.iter();
    let message = |subflow: &MessageId| &plan.messages[subflow.index()];
    let record = |subflow: &MessageId| &run.outcome.messages[subflow.index()];
    let qp = |subflow: &MessageId| &plan.qps[message(subflow).qp.index()];
    let us = |time: Time| set(time).map(Time::as_us);
    let columns = vec![
        Column::count(
            "flow",
            "-",
            "number of the flow, as in flows.parquet",
            rows().map(|(flow, _)| flow.0.into()),
        ),
        Column::count(
            "subflow",
            "-",
            "number of the subflow, from the numbers of flows",
            rows().map(|(_, p)| p.0.into()),
        ),
        Column::count("qp", "-", "queue pair that carried it", rows().map(|(_, p)| message(p).qp.0.into())),
        Column::maybe(
            "path",
            "-",
            "path to which the queue pair was pinned at first, from 0; null if to none",
            rows().map(|(_, p)| qp(p).path.map(u64::from)),
        ),
        Column::count("bytes", "B", "payload", rows().map(|(_, p)| message(p).bytes)),
        Column::real(
            "start_us",
            "us",
            "time at which the subflow was posted",
            rows().map(|(_, p)| us(record(p).start)),
        ),
        Column::real(
            "received_us",
            "us",
            "time at which all of its bytes had arrived",
            rows().map(|(_, p)| us(record(p).received)),
        ),
        Column::real(
            "acked_us",
            "us",
            "time at which the ACK of its last byte reached the sender",
            rows().map(|(_, p)| us(record(p).acked)),
        ),
        Column::real(
            "fct_us",
            "us",
            "acked_us - start_us",
            rows().map(|(_, p)| fct(record(p)).map(Time::as_us)),
        ),
        Column::real(
            "ideal_fct_us",
            "us",
            "FCT of the subflow alone on the fabric",
            rows().map(|(_, p)| us(run.ideal[p.index()])),
        ),
        Column::count(
            "wire_bytes",
            "B",
            "bytes put on the wire, including retransmissions, preambles and gaps",
            rows().map(|(_, p)| record(p).wire_bytes),
        ),
        Column::count(
            "retransmitted",
            "packets",
            "retransmissions",
            rows().map(|(_, p)| record(p).retransmitted),
        ),
    ];
    Some(Table::new(columns, every))
}
