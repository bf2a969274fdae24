//! `ropewalk workload show`.

use crate::cli::{WorkloadArgs, WorkloadCommand};
use crate::print;
use comfy_table::CellAlignment;
use lab::failure::Failure;
use results::text;
use scenario::traffic::Traffic;

/// Prints who sends how much to whom, before anything runs.
///
/// # Errors
/// The first error of the scenario.
pub fn run(args: &WorkloadArgs) -> Result<(), Failure> {
    let WorkloadCommand::Show { scenario, json } = &args.command;
    let survey = crate::input::survey(scenario)?;
    print::warnings(survey.findings());
    if *json {
        return print::out(&print::json(&survey.traffic));
    }
    let served = survey.checked().serving().map(|laid| crate::serving::text(&laid));
    let others = survey.checked().scenario.workload.len() > usize::from(served.is_some());
    let mut shown = served.map_or_else(String::new, |served| format!("{}\n\n{served}", survey.name()));
    if others {
        shown += &page(&survey.traffic, survey.name());
    }
    print::out(&shown)
}

/// What a workload sends, as a page.
fn page(traffic: &Traffic, name: &str) -> String {
    let mut page = format!("{name}\n\n");
    if !traffic.operations.is_empty() {
        let header =
            ["", "by", "operations", "ranks", "size", "NIC bytes\nper rank", "NVLink bytes\nper rank"];
        let mut table = text::table(&header.map(str::to_owned), 1);
        for column in 0..2 {
            if let Some(words) = table.column_mut(column) {
                words.set_cell_alignment(CellAlignment::Left);
            }
        }
        for row in &traffic.operations {
            let dimension =
                if row.dimension.is_empty() { String::new() } else { format!("{} ", row.dimension) };
            let by = match row.algorithm.as_str() {
                "" => String::new(),
                algorithm => format!("{algorithm} {} {}", row.protocol, row.channels),
            };
            let per_rank = |bytes: u64| text::count(bytes / row.members.max(1));
            table.add_row([
                format!("{}: {dimension}{}", row.job, row.operation),
                by,
                text::count(row.count),
                range(row.ranks.0.into(), row.ranks.1.into()),
                range(row.bytes.0, row.bytes.1),
                per_rank(row.nic_bytes),
                per_rank(row.nvlink_bytes),
            ]);
        }
        page += &format!("{table}\n\n");
        for row in &traffic.operations {
            if let Some(tie) = &row.near_tie {
                let (job, name, size) = (&row.job, &row.operation, range(row.bytes.0, row.bytes.1));
                page += &format!("A near-tie by NCCL's model: {job}: {name} of {size} B by {tie}.\n\n");
            }
        }
    }
    if let Some((least, most)) = traffic.compute_us {
        let (least, most) = (text::number(least / 1000.0), text::number(most / 1000.0));
        page += &match least == most {
            true => format!("Every rank computes for {least} ms.\n\n"),
            false => format!("Ranks compute for {least} to {most} ms.\n\n"),
        };
    }
    let mut table = text::table(&["messages", "number", "bytes"].map(str::to_owned), 0);
    for way in &traffic.ways {
        table.add_row([way.way.to_owned(), text::count(way.messages), text::count(way.bytes)]);
    }
    let (least, most) = (text::count(traffic.sent_per_port.0), text::count(traffic.sent_per_port.1));
    page + &format!("{table}\n\nA NIC port sends {least} to {most} B.\n")
}

/// One number, or two if they differ.
fn range(least: u64, most: u64) -> String {
    if least == most {
        text::count(least)
    } else {
        format!("{} to {}", text::count(least), text::count(most))
    }
}
