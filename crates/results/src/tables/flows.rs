//! `flows.parquet`: one row per flow.

use crate::data::{Flow, RunData};
use crate::flows::{fct, gbps, set};
use crate::table::{Column, Table};
use model::{HostId, Time};

/// Most rows of the table; with more flows, every second, third, ... flow is kept.
const MOST_ROWS: usize = 1_000_000;

/// The table of flows.
pub fn table(run: RunData<'_>) -> Table {
    let plan = run.plan;
    let every = plan.flows().div_ceil(MOST_ROWS).max(1);
    let flows: Vec<Flow<'_>> = run.flows(|_| true).step_by(every).collect();
    let rows = || flows.iter();
    let qp = |r: &Flow<'_>| &plan.qps[r.message.qp.index()];
    let host = |h: HostId| plan.fabric.host_name(h).into_owned();
    let job = |r: &Flow<'_>| &plan.jobs[r.message.job as usize];
    let class = |r: &Flow<'_>| run.plan.traffic_classes[usize::from(job(r).class)].clone();
    let us = |time: Time| set(time).map(Time::as_us);
    let mut columns = vec![
        Column::count("flow", "-", "number of the flow (message), from 0", rows().map(|r| r.number.into())),
        Column::count("qp", "-", "queue pair that carried it", rows().map(|r| r.message.qp.0.into())),
        Column::text("from", "sending host", rows().map(|r| host(qp(r).from))),
        Column::text("to", "receiving host", rows().map(|r| host(qp(r).to))),
        Column::text("job", "job: the entry of the workload", rows().map(|r| job(r).name.clone())),
        Column::count(
            "group",
            "-",
            "group (communicator) in the job",
            rows().map(|r| r.message.group.into()),
        ),
        Column::text("class", "traffic class", rows().map(class)),
        Column::count("bytes", "B", "payload", rows().map(|r| r.bytes)),
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
            "time at which the ACK of its last byte reached the sender; of a READ, received_us",
            rows().map(|r| us(r.record.acked)),
        ),
        Column::real(
            "last_sent_us",
            "us",
            "time at which its last packet or retransmission had left the NIC",
            rows().map(|r| us(r.record.last_sent)),
        ),
        Column::real("fct_us", "us", "acked_us - start_us", rows().map(|r| fct(&r.record).map(Time::as_us))),
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
            rows().map(|r| fct(&r.record).map(|t| t.ps() as f64 / r.ideal.ps().max(1) as f64)),
        ),
        Column::real(
            "goodput_gbps",
            "Gb/s",
            "payload bits / fct_us",
            rows().map(|r| fct(&r.record).map(|t| gbps(r.bytes, t))),
        ),
        Column::count(
            "wire_bytes",
            "B",
            "bytes put on the wire, including retransmissions, preambles and gaps",
            rows().map(|r| r.record.wire_bytes),
        ),
        Column::count("retransmitted", "packets", "retransmissions", rows().map(|r| r.record.retransmitted)),
    ];
    if flows.iter().any(|r| r.record.slow > Time::ZERO) {
        let about = "time for which a rate below a hundredth of line rate held it";
        columns.push(Column::real("throttled_us", "us", about, rows().map(|r| Some(r.record.slow.as_us()))));
    }
    if flows.iter().any(|flow| flow.subflows > 1) {
        let about =
            "subflows into which it was split, see subflows.parquet; flow and qp are those of the first";
        columns.push(Column::count("subflows", "-", about, rows().map(|r| r.subflows.into())));
    }
    Table::new(columns, every)
}
