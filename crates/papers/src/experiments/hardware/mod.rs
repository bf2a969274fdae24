//! Collectives beside measured clusters: four collectives on 2 to 8 servers of eight H100 GPUs, or on a user's own.
//!
//! A cell is a collective, a number of servers, of GPUs in each, and a size, with the time that was measured. `h100.csv` has those to which
//! the costs were fitted. They were rebuilt from figures that meta-pytorch/autoparallel publishes (commit a54c252): the least time of a
//! collective, its largest bandwidth, and a ramp between them for each number of servers.

mod dips;

use crate::experiment::{Case, Experiment, Runs};
use crate::row::Row;
use dips::Point;
use lab::Failure;
use results::text;
use std::fmt::Write;
use std::path::Path;

/// The experiment.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "hardware",
    source: "meta-pytorch/autoparallel, measured on clusters of H100 and RoCE",
    about: "four collectives of NCCL's on 2 to 8 servers, 1 MiB to 1 GiB: time by packets and by closed form",
    cases: |quick| {
        let cells = read("h100.csv", include_str!("h100.csv")).unwrap_or_default();
        cells.iter().filter(|cell| !quick || cell.bytes <= 32 << 20).map(Cell::case).collect()
    },
    rows,
    curves: |_| Vec::new(),
    more,
    picture: |_| crate::picture::Picture::default(),
};

/// A measured time.
#[derive(Clone, Debug, PartialEq)]
struct Cell {
    collective: String,
    nodes: u32,
    gpus: u32,
    bytes: u64,
    us: f64,
}

impl Cell {
    fn case(&self) -> Case {
        let Cell { collective, nodes, gpus, bytes, us } = self;
        let size = if bytes % (1 << 20) == 0 { format!("{} MiB", bytes >> 20) } else { format!("{bytes} B") };
        // An all-to-all had a harness of its own, which added less.
        let call = if collective == "all-to-all" { "40us" } else { "160us" };
        Case::new(format!("{collective}, {nodes} x {gpus}, {size}"), "cluster-h100", &[])
            .and(format!("topology.rails.servers={nodes}"))
            .and(format!("server.gpus={gpus}"))
            .and(format!("server.cost.call={call}"))
            .and(format!("workload.0.collective.kind={collective}"))
            .and(format!("workload.0.collective.bytes={bytes}B"))
            .beside(*us)
    }
}

/// The cases of a folder: the cells of all its files `*.csv`.
///
/// # Errors
/// A file that cannot be read, or a line that is no cell.
pub(crate) fn of_folder(folder: &Path) -> Result<Vec<Case>, Failure> {
    let told = |error: std::io::Error| Failure::Asked(format!("{}: {error}", folder.display()));
    let mut files: Vec<_> =
        std::fs::read_dir(folder).map_err(told)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "csv"));
    files.sort();
    let mut cases = Vec::new();
    for file in &files {
        let text = std::fs::read_to_string(file).map_err(told)?;
        let cells = read(&file.display().to_string(), &text).map_err(Failure::Asked)?;
        cases.extend(cells.iter().map(Cell::case));
    }
    if cases.is_empty() {
        return Err(Failure::Asked(format!(
            "{} has no file `*.csv` with a measured collective",
            folder.display()
        )));
    }
    Ok(cases)
}

/// The columns of a file, in any order; others are left out.
const COLUMNS: [&str; 5] = ["collective", "nodes", "gpus_per_node", "size_bytes", "time_us"];

/// The collectives that can be run.
const COLLECTIVES: [&str; 6] =
    ["all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "reduce"];

fn read(name: &str, text: &str) -> Result<Vec<Cell>, String> {
    let mut lines = text.lines().enumerate();
    let (_, header) = lines.next().ok_or_else(|| format!("{name} is empty"))?;
    let header: Vec<&str> = header.split(',').map(str::trim).collect();
    let mut places = [0; COLUMNS.len()];
    for (place, column) in places.iter_mut().zip(COLUMNS) {
        let found = header.iter().position(|title| *title == column);
        *place = found.ok_or_else(|| format!("{name}:1: expected a column `{column}`"))?;
    }
    let mut cells = Vec::new();
    for (number, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let field = |i: usize| fields.get(places[i]).copied().unwrap_or("");
        let wrong = |i: usize, what: &str| {
            let (number, column, found) = (number + 1, COLUMNS[i], field(i));
            format!("{name}:{number}: column `{column}`: expected {what}, found `{found}`")
        };
        let collective = field(0).replace('_', "-");
        if !COLLECTIVES.contains(&collective.as_str()) {
            return Err(format!(
                "{}; {}",
                wrong(0, "a collective"),
                scenario::suggestion(&collective, &COLLECTIVES)
            ));
        }
        cells.push(Cell {
            collective,
            nodes: field(1).parse().map_err(|_| wrong(1, "a number"))?,
            gpus: field(2).parse().map_err(|_| wrong(2, "a number"))?,
            bytes: field(3).parse().map_err(|_| wrong(3, "a number of bytes"))?,
            us: field(4).parse().ok().filter(|us| *us > 0.0).ok_or_else(|| wrong(4, "a time"))?,
        });
    }
    Ok(cells)
}

/// What a run says about its collective.
struct Answer {
    bytes: u64,
    /// Time by packets, us.
    packets: f64,
    /// Time by the closed form, us.
    closed_form: Option<f64>,
    how: String,
}

fn answer(runs: &Runs, label: &str) -> Option<Answer> {
    let run = runs.get(label)?;
    let operation = run.checked.plan.operations.first()?;
    Some(Answer {
        bytes: operation.bytes,
        packets: run.summary.sim_time_us,
        closed_form: operation.closed_form.map(|time| time.as_us()),
        how: format!("{} {} {}", operation.algorithm, operation.protocol, operation.channels),
    })
}

fn rows(runs: &Runs, _: bool) -> Vec<Row> {
    let row = |(case, _): &(Case, lab::Run)| {
        let answer = answer(runs, &case.label);
        let (measured, note) = match &answer {
            Some(answer) => (Some(answer.packets), answer.how.clone()),
            None => (None, String::new()),
        };
        Row::beside(case.beside.unwrap_or(0.0), &case.label, "time", "us", measured, note).tabled()
    };
    runs.0.iter().map(row).collect()
}

/// Median, 95th percentile and largest of errors, per cent.
fn spread(mut errors: Vec<f64>) -> String {
    errors.sort_by(f64::total_cmp);
    let Some(&most) = errors.last() else { return "-".to_owned() };
    let at = |percent| results::stats::nearest_rank(&errors, percent);
    format!("{:.1} %, P95 {:.0} %, largest {most:.0} %", at(50), at(95))
}

fn more(runs: &Runs) -> String {
    let header = ["collective", "by", "measured", "packets", "error", "closed form", "error"];
    let mut table = text::table(&header.map(str::to_owned), 2);
    let (mut by_packets, mut by_form) = (Vec::new(), Vec::new());
    let (mut measured_points, mut points) = (Vec::new(), Vec::new());
    for (case, _) in &runs.0 {
        let (Some(measured), Some(answer)) = (case.beside, answer(runs, &case.label)) else { continue };
        let error = |time: f64| 100.0 * (time / measured - 1.0);
        let point =
            |us| Point { label: case.label.clone(), bytes: answer.bytes, us, how: answer.how.clone() };
        measured_points.push(point(measured));
        points.push(point(answer.packets));
        by_packets.push(error(answer.packets).abs());
        by_form.extend(answer.closed_form.map(|time| error(time).abs()));
        let form = answer.closed_form.map_or(["-".to_owned(), "-".to_owned()], |time| {
            [format!("{time:.0} us"), format!("{:+.0} %", error(time))]
        });
        let [form, form_error] = form;
        table.add_row([
            case.label.clone(),
            answer.how,
            format!("{measured:.0} us"),
            format!("{:.0} us", answer.packets),
            format!("{:+.0} %", error(answer.packets)),
            form,
            form_error,
        ]);
    }
    let mut told = format!("{table}\n\n");
    let _ = writeln!(
        told,
        "Error of the time of {} cells by packets: median {}",
        by_packets.len(),
        spread(by_packets.clone())
    );
    let _ = writeln!(
        told,
        "Error of {} cells by the closed form: median {}",
        by_form.len(),
        spread(by_form.clone())
    );
    told += &dips::told("the measured bus bandwidth", measured_points);
    told += &dips::told("the bus bandwidth by packets", points);
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_of_the_table_is_read() {
        let cells = read("h100.csv", include_str!("h100.csv")).unwrap();
        assert_eq!(cells.len(), 180);
        let case = cells[0].case();
        assert_eq!((case.label.as_str(), case.beside), ("all-gather, 2 x 8, 1 MiB", Some(221.3)));
    }

    #[test]
    fn a_wrong_line_is_named() {
        let header = "time_us,collective,nodes,gpus_per_node,size_bytes,set";
        let told = |line: &str| read("own.csv", &format!("{header}\n{line}\n")).unwrap_err();
        assert_eq!(
            told("1.0,all_redice,2,8,1024,x"),
            "own.csv:2: column `collective`: expected a collective, found `all_redice`; did you mean `all-reduce`?"
        );
        assert_eq!(
            told("-1,all_reduce,2,8,1024,x"),
            "own.csv:2: column `time_us`: expected a time, found `-1`"
        );
        assert_eq!(read("own.csv", "a,b").unwrap_err(), "own.csv:1: expected a column `collective`");
    }
}
