//! `operations.parquet`: one row per collective, transfer or computation.

use crate::data::RunData;
use crate::operations::{Span, spans};
use crate::table::{Column, Table};
use model::Time;
use model::plan::Operation;

/// Most rows of the table; with more, every second, third, ... row is kept.
const MOST_ROWS: usize = 1_000_000;

/// The table of operations; `None` in a run without.
pub fn table(run: RunData<'_>) -> Option<Table> {
    let operations = &run.plan.operations;
    if operations.is_empty() {
        return None;
    }
    let spans = spans(run);
    let every = operations.len().div_ceil(MOST_ROWS).max(1);
    let rows = || (0..operations.len()).step_by(every).map(|i| (i, &operations[i], spans[i]));
    let time = |pick: fn(Span) -> Time| rows().map(move |(.., span)| span.map(|span| pick(span).as_us()));
    let speed = |pick: fn(Span, &Operation) -> Option<f64>| {
        rows().map(move |(_, operation, span)| span.and_then(|span| pick(span, operation)))
    };
    let columns = vec![
        Column::count("operation", "-", "number of the operation, from 0", rows().map(|(i, ..)| i as u64)),
        Column::text(
            "job",
            "job: the entry of the workload",
            rows().map(|(_, o, _)| run.plan.jobs[usize::from(o.job)].name.clone()),
        ),
        Column::text("name", "what is done", rows().map(|(_, o, _)| o.name.to_owned())),
        Column::text("dimension", "kind of parallelism", rows().map(|(_, o, _)| o.dimension.to_owned())),
        Column::count("ranks", "-", "ranks of a collective", rows().map(|(_, o, _)| o.ranks.into())),
        Column::text(
            "algorithm",
            "algorithm of a collective",
            rows().map(|(_, o, _)| o.algorithm.to_owned()),
        ),
        Column::text(
            "protocol",
            "NCCL's protocol of a collective",
            rows().map(|(_, o, _)| o.protocol.to_owned()),
        ),
        Column::count("channels", "-", "channels of a collective", rows().map(|(_, o, _)| o.channels.into())),
        Column::count("bytes", "B", "size as nccl-tests count it", rows().map(|(_, o, _)| o.bytes)),
        Column::count("step", "-", "training step, from 0", rows().map(|(_, o, _)| o.step.into())),
        Column::count(
            "micro_batch",
            "-",
            "micro-batch, from 0",
            rows().map(|(_, o, _)| o.micro_batch.into()),
        ),
        Column::count("layer", "-", "layer or bucket, from 0", rows().map(|(_, o, _)| o.layer.into())),
        Column::real("start_us", "us", "time at which the first rank had entered", time(|span| span.start)),
        Column::real("end_us", "us", "time at which the last rank had left", time(|span| span.end)),
        Column::real(
            "closed_form_us",
            "us",
            "time on an idle fabric by the closed form of the costs",
            rows().map(|(_, o, _)| o.closed_form.map(Time::as_us)),
        ),
        Column::real(
            "algbw_gbs",
            "GB/s",
            "bytes per second of the operation",
            speed(Span::algorithm_bandwidth),
        ),
        Column::real(
            "busbw_gbs",
            "GB/s",
            "bandwidth on the bus as nccl-tests define it",
            speed(Span::bus_bandwidth),
        ),
    ];
    Some(Table::new(columns, every))
}
