//! The lists as text.

use crate::{Answer, Row};
use std::fmt::Write;

/// Most rows of a list of the text; `--json` has all. Our choice: three screens.
const MOST_ROWS: usize = 60;

/// Widest line.
const WIDTH: usize = 110;

/// One table of what was read, what was ignored and what contradicts, with a line break at its end.
pub fn text(answer: &Answer) -> String {
    let mut out = String::new();
    rows(&mut out, "read", &answer.read);
    rows(&mut out, "ignored", &answer.ignored);
    let _ = writeln!(out, "contradicts ({})", answer.contradicts.len());
    for it in &answer.contradicts {
        let places: Vec<String> = it.places.iter().map(ToString::to_string).collect();
        let more = match it.cases {
            0 | 1 => String::new(),
            cases => format!(" ({cases} cases)"),
        };
        wrapped(&mut out, "  ", &format!("{}{more}", it.text));
        wrapped(&mut out, "    at  ", &places.join("; "));
        wrapped(&mut out, "    do  ", &it.advice);
    }
    if !answer.assumed.is_empty() {
        let _ = writeln!(out, "assumed ({})", answer.assumed.len());
        answer.assumed.iter().for_each(|text| wrapped(&mut out, "  ", text));
    }
    out
}

fn rows(out: &mut String, name: &str, rows: &[Row]) {
    let values: usize = rows.iter().map(|row| row.values).sum();
    let _ = writeln!(out, "{name} ({values} values)");
    let shown = &rows[..rows.len().min(MOST_ROWS)];
    for of_file in shown.chunk_by(|a, b| a.file == b.file) {
        let _ = writeln!(out, "  {}", of_file[0].file);
        let mut table = comfy_table::Table::new();
        table.load_style(comfy_table::presets::NOTHING);
        table.set_content_arrangement(comfy_table::ContentArrangement::Dynamic).set_width(WIDTH as u16);
        for row in of_file {
            let line = format!("   line {}", row.line);
            table.add_row([line, row.field.clone(), row.values.to_string(), row.what.clone()]);
        }
        for line in table.lines() {
            let _ = writeln!(out, "{}", line.trim_end());
        }
    }
    if rows.len() > shown.len() {
        let _ = writeln!(out, "  and {} more rows; --json has all", rows.len() - shown.len());
    }
}

/// Words in lines that start with `indent`, or with as many blanks.
fn wrapped(out: &mut String, indent: &str, text: &str) {
    let blanks = " ".repeat(indent.len());
    let mut line = indent.to_owned();
    let mut is_new = true;
    for word in text.split_whitespace() {
        if !is_new && line.chars().count() + word.chars().count() + 1 > WIDTH {
            let _ = writeln!(out, "{line}");
            line = blanks.clone();
            is_new = true;
        }
        if !is_new {
            line.push(' ');
        }
        line += word;
        is_new = false;
    }
    let _ = writeln!(out, "{line}");
}
