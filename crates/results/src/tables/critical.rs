//! `critical.parquet`: the critical path of every step, in order of time.

use crate::critical::{Leg, Path, paths};
use crate::data::RunData;
use crate::flows::fct;
use crate::table::{Column, Table};
use model::plan::Operation;

struct Row<'a> {
    path: &'a Path,
    leg: &'a Leg,
    operation: Option<&'a Operation>,
}

impl Row<'_> {
    fn of_operation(&self, read: impl Fn(&Operation) -> u32) -> Option<u64> {
        self.operation.map(|operation| read(operation).into())
    }
}

/// The table of critical paths; `None` in a run without steps that ended.
pub fn table(run: RunData<'_>) -> Option<Table> {
    let plan = run.plan;
    let paths = paths(run);
    if paths.is_empty() {
        return None;
    }
    let rows = || {
        paths.iter().flat_map(|path| path.legs.iter().map(move |leg| (path, leg))).map(|(path, leg)| Row {
            path,
            leg,
            operation: plan.operations.get(leg.operation as usize),
        })
    };
    let slowest = |row: &Row<'_>| row.leg.slowest.map(|(number, _)| number as usize);
    let host = |row: &Row<'_>, receives: bool| {
        slowest(row).map_or_else(String::new, |number| {
            let qp = &plan.qps[plan.messages[number].qp.index()];
            plan.fabric.host_name(if receives { qp.to } else { qp.from }).into_owned()
        })
    };
    let text = |read: fn(&Operation) -> &'static str| {
        rows().map(move |row| row.operation.map_or_else(String::new, |operation| read(operation).to_owned()))
    };
    let columns = vec![
        Column::text(
            "job",
            "job: the entry of the workload",
            rows().map(|row| plan.jobs[usize::from(row.path.job)].name.clone()),
        ),
        Column::count("step", "-", "training step, from 0", rows().map(|row| row.path.step.into())),
        Column::count("from_ps", "ps", "start of this leg of the path", rows().map(|row| row.leg.from.ps())),
        Column::count(
            "to_ps",
            "ps",
            "end of this leg: the start of the next",
            rows().map(|row| row.leg.to.ps()),
        ),
        Column::text(
            "kind",
            "compute, communication, or scheduled: work that was to start at this time at the earliest",
            rows().map(|row| row.leg.kind.name().to_owned()),
        ),
        Column::count("rank", "-", "GPU on which the path goes on", rows().map(|row| row.leg.rank.into())),
        Column::maybe(
            "operation",
            "-",
            "number of the operation in operations.parquet",
            rows().map(|row| row.operation.map(|_| row.leg.operation.into())),
        ),
        Column::text("name", "what is done", text(|operation| operation.name)),
        Column::text("dimension", "kind of parallelism", text(|operation| operation.dimension)),
        Column::maybe(
            "micro_batch",
            "-",
            "micro-batch, from 0",
            rows().map(|row| row.of_operation(|o| o.micro_batch)),
        ),
        Column::maybe(
            "layer",
            "-",
            "layer or bucket, from 0",
            rows().map(|row| row.of_operation(|o| o.layer)),
        ),
        Column::count(
            "messages",
            "-",
            "messages over the fabric, one after the other",
            rows().map(|row| row.leg.messages.into()),
        ),
        Column::count("network_ps", "ps", "time of these messages", rows().map(|row| row.leg.network.ps())),
        Column::count(
            "late_ps",
            "ps",
            "time by which these messages took longer than alone on the fabric",
            rows().map(|row| row.leg.late.ps()),
        ),
        Column::maybe(
            "flow",
            "-",
            "number of the message that was late by most",
            rows().map(|row| row.leg.slowest.map(|(number, _)| number.into())),
        ),
        Column::text("flow_from", "sending host of this message", rows().map(|row| host(&row, false))),
        Column::text("flow_to", "receiving host of this message", rows().map(|row| host(&row, true))),
        Column::real(
            "flow_fct_us",
            "us",
            "completion time of this message",
            rows().map(|row| fct(&run.outcome.messages[slowest(&row)?]).map(model::Time::as_us)),
        ),
        Column::real(
            "flow_ideal_us",
            "us",
            "completion time of this message alone on the fabric",
            rows().map(|row| Some(run.ideal[slowest(&row)?].as_us())),
        ),
    ];
    Some(Table::new(columns, 1))
}
