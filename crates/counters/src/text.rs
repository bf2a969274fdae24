//! Counters and comparisons as text.

use crate::{Comparison, Details, View};
use comfy_table::CellAlignment;
use results::text::{maybe, number, table};
use std::ops::Range;

/// A table; only the columns `right` hold numbers.
fn drawn(header: &[&str], rows: impl Iterator<Item = Vec<String>>, right: Range<usize>) -> String {
    let header: Vec<String> = header.iter().map(|&word| word.to_owned()).collect();
    let mut table = table(&header, right.start);
    table.column_iter_mut().skip(right.end).for_each(|words| words.set_cell_alignment(CellAlignment::Left));
    table.add_rows(rows);
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// A share, or `-`. Those of a fabric in operation may be a few in a million.
fn share(share: Option<f64>) -> String {
    match share {
        Some(0.0) => "0".to_owned(),
        Some(share) if share < 0.001 => format!("{share:.2e}"),
        Some(share) => format!("{share:.4}"),
        None => "-".to_owned(),
    }
}

impl View {
    /// The counters as a table, and below it why some are missing.
    pub fn text(&self) -> String {
        let rows = self.counters.iter().filter(|counter| counter.total.is_some()).map(|counter| {
            let per = counter.per.map_or_else(String::new, |per| format!("of {per}"));
            let most = counter
                .most
                .as_ref()
                .map_or_else(String::new, |(port, count)| format!("{port} {}", number(*count)));
            vec![
                counter.name.to_owned(),
                maybe(counter.total),
                counter.unit.to_owned(),
                maybe(counter.rate),
                share(counter.share),
                per,
                most,
            ]
        });
        let ports = self.ports.len();
        let mut out = format!("{ports} ports over {:.3} ms\n", self.seconds * 1e3);
        out += &drawn(&["counter", "total", "unit", "per s and port", "share", "", "most"], rows, 1..5);
        let missing = self.counters.iter().filter(|counter| counter.total.is_none());
        let missing =
            missing.map(|counter| vec![counter.name.to_owned(), "-".to_owned(), counter.source.to_owned()]);
        for details in &self.details {
            out += &format!("\n{}", details.text());
        }
        out + "\n" + &drawn(&["not counted", "", "why"], missing, 3..3)
    }
}

impl Details {
    /// The counters as a table; beside the most bytes stands their port.
    fn text(&self) -> String {
        let has_kinds = self.rows.iter().any(|row| !row.kinds.is_empty());
        let is_peak = |column: usize| self.rows.iter().any(|row| row.counts[column].at.is_some());
        let mut header = vec![self.by];
        header.extend(has_kinds.then_some("packets of"));
        for (column, name) in self.counters.iter().enumerate() {
            header.push(name);
            header.extend(is_peak(column).then_some("at"));
        }
        let rows = self.rows.iter().map(|row| {
            let mut cells = vec![row.number.to_string()];
            cells.extend(has_kinds.then(|| row.kinds.clone()));
            for (column, count) in row.counts.iter().enumerate() {
                cells.push(number(count.total));
                cells.extend(is_peak(column).then(|| count.at.clone().unwrap_or_default()));
            }
            cells
        });
        let first = 1 + usize::from(has_kinds);
        drawn(&header, rows, first..header.len())
    }
}

impl Comparison {
    /// The comparison as a table.
    pub fn text(&self) -> String {
        let rows = self.counters.iter().map(|one| {
            vec![
                one.name.to_owned(),
                one.unit.to_owned(),
                share(one.run_share),
                share(one.dump_share),
                maybe(one.run_rate),
                maybe(one.dump_rate),
                one.note.clone(),
            ]
        });
        let since = match self.readings {
            0 | 1 => "one reading: its values are those since the counters were zero".to_owned(),
            n => format!("{n} readings: their growth is compared"),
        };
        let devices = if self.devices == 1 { "device" } else { "devices" };
        format!("dump: {} {devices}, {since}\n", self.devices)
            + &drawn(
                &["counter", "", "share, run", "share, dump", "per s, run", "per s, dump", ""],
                rows,
                2..6,
            )
    }
}
