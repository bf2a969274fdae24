//! `tasks.parquet`: what every rank computed, and when it entered and left collectives and transfers.

use crate::data::RunData;
use crate::flows::set;
use crate::table::{Column, Table};
use engine::outcome::TaskRecord;
use model::Time;
use model::plan::{Operation, Role, Task};

/// Most rows of the table; with more, every second, third, ... row is kept.
const MOST_ROWS: usize = 1_000_000;

struct Row<'a> {
    task: &'a Task,
    record: &'a TaskRecord,
    operation: &'a Operation,
}

/// The table of tasks; `None` in a run without operations.
pub fn table(run: RunData<'_>) -> Option<Table> {
    let plan = run.plan;
    let all = plan.tasks.iter().zip(&run.outcome.tasks).filter(|(task, _)| task.role != Role::Inner);
    let all = all.filter_map(|(task, record)| {
        Some(Row { task, record, operation: plan.operations.get(task.operation as usize)? })
    });
    let all: Vec<Row<'_>> = all.collect();
    if all.is_empty() {
        return None;
    }
    let every = all.len().div_ceil(MOST_ROWS).max(1);
    let rows = || all.iter().step_by(every);
    let us = |time: Time| set(time).map(Time::as_us);
    let role = |row: &Row<'_>| {
        match row.task.role {
            Role::Compute => "compute",
            Role::Enter => "enter",
            Role::Leave => "leave",
            Role::Inner => "inner",
        }
        .to_owned()
    };
    let columns = vec![
        Column::count("rank", "-", "GPU", rows().map(|row| row.task.rank.into())),
        Column::text(
            "job",
            "job: the entry of the workload",
            rows().map(|row| plan.jobs[usize::from(row.task.job)].name.clone()),
        ),
        Column::text(
            "role",
            "computation, or the moment at which a rank enters or leaves an operation",
            rows().map(role),
        ),
        Column::count(
            "operation",
            "-",
            "number of the operation in operations.parquet",
            rows().map(|row| row.task.operation.into()),
        ),
        Column::text("name", "what is done", rows().map(|row| row.operation.name.to_owned())),
        Column::text(
            "dimension",
            "kind of parallelism",
            rows().map(|row| row.operation.dimension.to_owned()),
        ),
        Column::count("step", "-", "training step, from 0", rows().map(|row| row.operation.step.into())),
        Column::count(
            "micro_batch",
            "-",
            "micro-batch, from 0",
            rows().map(|row| row.operation.micro_batch.into()),
        ),
        Column::count("layer", "-", "layer or bucket, from 0", rows().map(|row| row.operation.layer.into())),
        Column::real(
            "ready_us",
            "us",
            "time at which nothing was waited for any more",
            rows().map(|row| us(row.record.ready)),
        ),
        Column::real("start_us", "us", "time at which the GPU began", rows().map(|row| us(row.record.start))),
        Column::real("end_us", "us", "time at which the task ended", rows().map(|row| us(row.record.end))),
    ];
    Some(Table::new(columns, every))
}
