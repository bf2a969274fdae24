//! Numbers and tables as people read them.

use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};

/// Most columns of a terminal that a table takes.
pub const WIDTH: usize = 100;

/// A line below the header and no lines between rows.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// A table with a header line; all columns but the first `left` are aligned to the right.
pub fn table(header: &[String], left: usize) -> Table {
    let mut table = Table::new();
    table.load_style(STYLE).set_header(header.iter().map(String::as_str));
    for (i, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if i >= left {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// A number with about three significant digits and commas between thousands.
pub fn number(x: f64) -> String {
    match x.abs() {
        0.0 => "0".into(),
        a if a >= 100.0 => group(&format!("{x:.0}")),
        a if a >= 10.0 => format!("{x:.1}"),
        a if a >= 0.1 => format!("{x:.2}"),
        _ => format!("{x:.4}"),
    }
}

/// A number, or `-` if it is missing.
pub fn maybe(x: Option<f64>) -> String {
    x.map_or_else(|| "-".into(), number)
}

/// A count with commas.
pub fn count(n: u64) -> String {
    group(&n.to_string())
}

/// A share as per cent.
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".into(),
        p if p < 0.01 => "<0.01 %".into(),
        p if p < 10.0 => format!("{p:.2} %"),
        p => format!("{p:.1} %"),
    }
}

/// Bytes with a decimal unit.
pub fn bytes(n: u64) -> String {
    match n {
        0..10_000 => format!("{n} B"),
        10_000..10_000_000 => format!("{} kB", number(n as f64 / 1e3)),
        10_000_000..10_000_000_000 => format!("{} MB", number(n as f64 / 1e6)),
        _ => format!("{} GB", number(n as f64 / 1e9)),
    }
}

/// Breaks a text into lines of a terminal's width.
pub fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.chars().count() + 1 + word.chars().count() <= WIDTH => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}

fn group(digits: &str) -> String {
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |d| ("-", d));
    let mut text = String::from(sign);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_readable() {
        assert_eq!(number(1_234_567.8), "1,234,568");
        assert_eq!(number(-1234.0), "-1,234");
        assert_eq!(number(71.46), "71.5");
        assert_eq!(number(0.034), "0.0340");
        assert_eq!(count(999), "999");
        assert_eq!(count(1000), "1,000");
        assert_eq!(percent(0.161), "16.1 %");
        assert_eq!(percent(0.00001), "<0.01 %");
        assert_eq!(bytes(192_512), "193 kB");
        assert_eq!(maybe(None), "-");
    }
}
