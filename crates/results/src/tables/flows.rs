//! `flows.parquet`: one row per flow.

use crate::data::RunData;
use crate::flows::{fct, gbps, set};
use crate::table::{Column, Table};
use engine::outcome::MessageRecord;
use model::plan::{Message, Qp};
use model::{HostId, Time};

/// Most rows of the table; with more flows, every second, third, ... flow is kept.
const MOST_ROWS: usize = 1_000_000;

struct Row<'a> {
    id: usize,
    message: &'a Message,
    record: &'a MessageRecord,
    qp: &'a Qp,
    ideal: Time,
}

/// The table of flows.
pub fn table(run: RunData<'_>) -> Table {
    let plan = run.plan;
    let every = plan.messages.len().div_ceil(MOST_ROWS).max(1);
    let rows = || {
        (0..plan.messages.len()).step_by(every).map(|id| {
            let message = &plan.messages[id];
            let (record, qp) = (&run.outcome.messages[id], &plan.qps[message.qp.index()]);
            Row { id, message, record, qp, ideal: run.ideal[id] }
        })
    };
    let host = |h: HostId| plan.fabric.host_name(h).into_owned();
    let job = |r: &Row<'_>| &plan.jobs[r.message.job as usize];
    let class = |r: Row<'_>| run.plan.traffic_classes[usize::from(job(&r).class)].clone();
    let us = |time: Time| set(time).map(Time::as_us);
    let columns = vec![
        Column::count("flow", "-", "number of the flow (message), from 0", rows().map(|r| r.id as u64)),
        Column::count("qp", "-", "queue pair that carried it", rows().map(|r| r.message.qp.0.into())),
        Column::text("from", "sending host", rows().map(|r| host(r.qp.from))),
        Column::text("to", "receiving host", rows().map(|r| host(r.qp.to))),
        Column::text("job", "job: the entry of the workload", rows().map(|r| job(&r).name.clone())),
        Column::count(
            "group",
            "-",
            "group (communicator) in the job",
            rows().map(|r| r.message.group.into()),
        ),
        Column::text("class", "traffic class", rows().map(class)),
        Column::count("bytes", "B", "payload", rows().map(|r| r.message.bytes)),
        Column::real(
            "start_us",
            "us",
            "time at which the flow was posted",
            rows().map(|r| us(r.record.start)),
        ),
        Column::real(
            "received_us",
            "us",
            "time at which all of its bytes had arrived",
            rows().map(|r| us(r.record.received)),
        ),
        Column::real(
            "acked_us",
            "us",
            "time at which the ACK of its last byte reached the sender",
            rows().map(|r| us(r.record.acked)),
        ),
        Column::real(
            "last_sent_us",
            "us",
            "time at which its last packet or retransmission had left the NIC",
            rows().map(|r| us(r.record.last_sent)),
        ),
        Column::real("fct_us", "us", "acked_us - start_us", rows().map(|r| fct(r.record).map(Time::as_us))),
        Column::real(
            "ideal_fct_us",
            "us",
            "FCT of the flow alone on the fabric",
            rows().map(|r| us(r.ideal)),
        ),
        Column::real(
            "slowdown",
            "-",
            "fct_us / ideal_fct_us",
            rows().map(|r| fct(r.record).map(|t| t.ps() as f64 / r.ideal.ps().max(1) as f64)),
        ),
        Column::real(
            "goodput_gbps",
            "Gb/s",
            "payload bits / fct_us",
            rows().map(|r| fct(r.record).map(|t| gbps(r.message.bytes, t))),
        ),
        Column::count(
            "wire_bytes",
            "B",
            "bytes put on the wire, including retransmissions, preambles and gaps",
            rows().map(|r| r.record.wire_bytes),
        ),
        Column::count("retransmitted", "packets", "retransmissions", rows().map(|r| r.record.retransmitted)),
    ];
    Table::new(columns, every)
}
