//! Counters and comparisons as text.

use crate::{Comparison, View};
use comfy_table::{CellAlignment, Table, presets};

/// Lines of a table without borders.
fn lines(header: &[&str], rows: impl Iterator<Item = Vec<String>>, right: std::ops::Range<usize>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(header.to_vec());
    table.add_rows(rows);
    for i in right {
        if let Some(column) = table.column_mut(i) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// A number with at most four figures behind the point, or `-`.
fn number(value: Option<f64>) -> String {
    match value {
        None => "-".to_owned(),
        Some(0.0) => "0".to_owned(),
        Some(value) if value >= 1e6 => format!("{value:.3e}"),
        Some(value) if value.fract() == 0.0 => format!("{value:.0}"),
        Some(value) if value >= 100.0 => format!("{value:.0}"),
        Some(value) if value >= 0.001 => format!("{value:.4}"),
        Some(value) => format!("{value:.2e}"),
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
                .map_or_else(String::new, |(port, count)| format!("{port} {}", number(Some(*count))));
            vec![
                counter.name.to_owned(),
                number(counter.total),
                counter.unit.to_owned(),
                number(counter.rate),
                number(counter.share.filter(|_| counter.unit != "B")),
                per,
                most,
            ]
        });
        let ports = self.ports.len();
        let mut out = format!("{ports} ports over {:.3} ms\n", self.seconds * 1e3);
        out += &lines(&["counter", "total", "unit", "per s and port", "share", "", "most"], rows, 1..5);
        let missing = self.counters.iter().filter(|counter| counter.total.is_none());
        let missing =
            missing.map(|counter| vec![counter.name.to_owned(), "-".to_owned(), counter.source.to_owned()]);
        out + "\n" + &lines(&["not counted", "", "why"], missing, 3..3)
    }
}

impl Comparison {
    /// The comparison as a table.
    pub fn text(&self) -> String {
        let rows = self.counters.iter().map(|one| {
            vec![
                one.name.to_owned(),
                number(one.run_share),
                number(one.dump_share),
                number(one.run_rate),
                number(one.dump_rate),
                one.note.clone(),
            ]
        });
        let since = match self.readings {
            0 | 1 => "one reading: its values are those since the counters were zero".to_owned(),
            n => format!("{n} readings: their growth is compared"),
        };
        format!("dump: {} devices, {since}\n", self.devices)
            + &lines(&["counter", "share, run", "share, dump", "per s, run", "per s, dump", ""], rows, 1..5)
    }
}
