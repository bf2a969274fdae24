//! The answer as text.

use super::month::{Answer, Spread};
use comfy_table::CellAlignment;
use results::text::{count, number, table, wrapped};
use std::fmt::Write;

/// The answer as text, with a line break at its end.
pub fn text(answer: &Answer) -> String {
    let headline = format!(
        "{}: {} GPU-hours in {} days, {} % of a job on {} GPUs, and {} dead jobs",
        answer.site,
        spread(&answer.gpu_hours),
        number(answer.days),
        number(answer.share_percent),
        count(answer.gpus as u64),
        spread(&answer.dead_jobs)
    );
    let mut out = format!("{}\n\n", wrapped(&headline));
    let header = ["fault", "parts", "in a month", "the job", "dead jobs", "GPU-hours"].map(str::to_owned);
    let mut rows = table(&header, 1);
    if let Some(column) = rows.column_mut(3) {
        column.set_cell_alignment(CellAlignment::Left);
    }
    for row in &answer.rows {
        let parts = count(row.parts as u64);
        let (faults, dead, cost) =
            (number(row.faults.mean), number(row.dead_jobs.mean), spread(&row.gpu_hours));
        rows.add_row([row.fault, &parts, &faults, &row.outcome, &dead, &cost]);
    }
    rows.lines().for_each(|line| out += &format!("{}\n", line.trim_end()));
    out.push('\n');
    for name in &answer.left_out {
        let _ = writeln!(out, "{name}: the fabric has no such part");
    }
    let flaps = match answer.gives_up_s {
        Some(_) => {
            format!(
                "{} % of the flaps of NIC links last longer than all retries.",
                number(answer.long_flaps_percent)
            )
        }
        None => {
            "Senders have no limit of retries (`nic.nccl`, `nic.retries`), so no flap ends a job.".to_owned()
        }
    };
    let _ = writeln!(
        out,
        "{}",
        wrapped(&format!(
            "{flaps} Means of {} months with seed {}; in parentheses the 5th and 95th percentile.",
            count(answer.months),
            answer.seed
        ))
    );
    let assumed = &answer.assumed;
    let _ = writeln!(
        out,
        "{}",
        wrapped(&format!(
            "Assumed: {} s until a dead job runs again, {} s between checkpoints, {} s until a part is replaced, flaps with a median of \
             {} s and a sigma of {}.",
            number(assumed.restart_s),
            number(assumed.checkpoint_s),
            number(assumed.repair_s),
            number(assumed.flap_s),
            number(assumed.flap_sigma)
        ))
    );
    for row in &answer.rows {
        let _ = writeln!(
            out,
            "{}",
            wrapped(&format!("{}: {:.1e} per part and day, {}", row.fault, row.per_day, row.source))
        );
    }
    out
}

fn spread(of: &Spread) -> String {
    format!("{} ({} to {})", number(of.mean), number(of.p5), number(of.p95))
}
