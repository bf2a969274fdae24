//! The answer as text.

use super::answer::{Answer, Row, Verdict};
use super::case::{Bound, By};
use comfy_table::CellAlignment;
use results::text::{number, table, wrapped};
use std::fmt::Write;

/// The answer as text, with a line break at its end.
pub fn text(answer: &Answer) -> String {
    let mut out = format!("{}\n\n", wrapped(&headline(answer)));
    let mut rows =
        table(&["case", "traffic", "metric", "measured", "limit", "", "verdict"].map(str::to_owned), 3);
    for left in [5, 6] {
        if let Some(column) = rows.column_mut(left) {
            column.set_cell_alignment(CellAlignment::Left);
        }
    }
    let mut last = ("", "");
    for row in answer.rows.iter().filter(|row| row.why.is_none()) {
        let case = if last.0 == row.case { "" } else { row.case };
        let traffic = if last == (row.case, row.traffic.as_str()) { "" } else { row.traffic.as_str() };
        last = (row.case, row.traffic.as_str());
        rows.add_row([case, traffic, row.metric, &value(row.measured), &limit(row), row.unit, &verdict(row)]);
    }
    if rows.row_count() > 0 {
        rows.lines().for_each(|line| out += &format!("{}\n", line.trim_end()));
        out.push('\n');
    }
    for row in &answer.rows {
        if let Some(why) = &row.why {
            let traffic = if row.traffic.is_empty() { String::new() } else { format!(", {}", row.traffic) };
            let _ = writeln!(
                out,
                "{}",
                wrapped(&format!("{}{traffic}: {}: {why}", row.case, row.verdict.name()))
            );
        }
    }
    out.push('\n');
    for case in &answer.cases {
        let _ = writeln!(out, "{}", wrapped(&format!("{}  {}: {}", case.case, case.plan, case.about)));
    }
    let notes: Vec<&str> = [
        (By::OurChoice, "ours: the plan states no limit, so this one is our choice."),
        (By::Reference, "target: of the plan, and no limit."),
    ]
    .into_iter()
    .filter(|(by, _)| answer.rows.iter().any(|row| row.limit_by == Some(*by)))
    .map(|(_, note)| note)
    .collect();
    if !notes.is_empty() {
        let _ = writeln!(out, "\n{}", notes.join(" "));
    }
    out
}

fn headline(answer: &Answer) -> String {
    let of = |verdict: Verdict| answer.with(verdict);
    let named = |verdict: Verdict| of(verdict).join(", ");
    let failed = of(Verdict::Fail);
    let passed = of(Verdict::Pass).len();
    let pass = if passed == 1 { "1 case passes".to_owned() } else { format!("{passed} cases pass") };
    let mut parts = vec![match (failed.len(), passed) {
        (0, 0) => format!("{}: no case has a verdict", answer.site),
        (0, _) => format!("{}: accepted, {pass}", answer.site),
        (1, _) => format!("{}: NOT accepted, {} fails; {pass}", answer.site, failed[0]),
        _ => format!("{}: NOT accepted, {} fail; {pass}", answer.site, failed.join(", ")),
    }];
    for (verdict, words) in [
        (Verdict::Reported, "without a limit"),
        (Verdict::NotApplicable, "not applicable"),
        (Verdict::NotTested, "not tested"),
    ] {
        if !of(verdict).is_empty() {
            parts.push(format!("{words}: {}", named(verdict)));
        }
    }
    parts.join("; ")
}

fn value(measured: Option<f64>) -> String {
    measured.map_or_else(|| "never".to_owned(), number)
}

fn limit(row: &Row) -> String {
    let Some((limit, bound)) = row.limit.zip(row.bound) else { return String::new() };
    let sign = match bound {
        Bound::AtMost => "<=",
        Bound::AtLeast => ">=",
    };
    format!("{sign} {}", number(limit))
}

fn verdict(row: &Row) -> String {
    match row.limit_by {
        Some(By::OurChoice) => format!("{} (ours)", row.verdict.name()),
        Some(By::Reference) => format!("target {}", row.verdict.name()),
        Some(By::Yours) => format!("{} (yours)", row.verdict.name()),
        Some(By::Plan) | None => row.verdict.name().to_owned(),
    }
}
