//! The answer as text.

use crate::answer::{Answer, Row, Verdict};
use crate::simulate::Simulated;
use crate::suspects::{Accused, bytes};
use results::text::{maybe, number, table, wrapped};
use std::fmt::Write;

/// Most lines that are quoted. Our choice.
const QUOTED: usize = 5;

/// Most lines of evidence and of steps of a suspect. Our choice.
const LINES: usize = 6;

/// The answer as text, with a line break at its end.
pub fn text(answer: &Answer) -> String {
    let mut out = format!("{}\n", wrapped(&answer.headline));
    for note in &answer.notes {
        let _ = writeln!(out, "{}", wrapped(note));
    }
    let test = answer.test.map_or("a collective without a name", |test| test.name());
    let _ = writeln!(out, "\n{}: {test}, {}", answer.log, answer.cluster);
    if !answer.assumed.is_empty() {
        let _ = writeln!(out, "Assumed: {}.", answer.assumed.join("; "));
    }
    for missing in &answer.missing {
        let _ = writeln!(out, "{}", wrapped(&format!("Missing: {missing}.")));
    }
    rows(&mut out, &answer.rows);
    for (test, of_test) in &answer.others {
        let _ = writeln!(out, "\n{}:", test.name());
        rows(&mut out, of_test);
    }
    if let Some(together) =
        answer.together.as_ref().filter(|together| !together.words.is_empty() || together.logs.len() > 1)
    {
        let _ = writeln!(out, "\nSeveral logs, at {}:", bytes(together.bytes));
        let mut logs = table(&["log", "nodes", "busbw GB/s", ""].map(str::to_owned), 2);
        for log in &together.logs {
            let hosts = log.hosts.iter().map(String::as_str).collect::<Vec<_>>().join(" ");
            logs.add_row([
                log.name.clone(),
                hosts,
                number(log.busbw),
                if log.slow { "slow" } else { "" }.to_owned(),
            ]);
        }
        let _ = writeln!(out, "{logs}");
        for words in &together.words {
            let _ = writeln!(out, "{}", wrapped(words));
        }
    }
    suspects(&mut out, answer);
    simulated(&mut out, answer);
    if !answer.unread.is_empty() {
        let _ = writeln!(out, "\nLines that could not be read: {}", answer.unread.len());
        for unread in answer.unread.iter().take(QUOTED) {
            let _ = writeln!(out, "  {}:{}: {}\n    {}", unread.file, unread.line, unread.why, unread.text);
        }
    }
    out
}

fn rows(out: &mut String, rows: &[Row]) {
    let mut sizes = table(
        &["size", "measured GB/s", "expected", "verdict", "NCCL's choice, near-ties"].map(str::to_owned),
        0,
    );
    for column in [3, 4] {
        if let Some(column) = sizes.column_mut(column) {
            column.set_cell_alignment(comfy_table::CellAlignment::Left);
        }
    }
    for row in rows.iter().filter(|row| row.verdict != Verdict::Latency) {
        let expected = row
            .expected
            .map_or("-".to_owned(), |range| format!("{} to {}", number(range.least), number(range.most)));
        sizes.add_row([
            bytes(row.bytes),
            number(row.measured),
            expected,
            row.verdict.words().to_owned(),
            row.how.join(", "),
        ]);
    }
    let _ = writeln!(out, "\n{sizes}");
    let small = rows.iter().filter(|row| row.verdict == Verdict::Latency).count();
    if small > 0 {
        let _ = writeln!(out, "{small} sizes below 1 MiB show latency, and are not judged.");
    }
}

fn suspects(out: &mut String, answer: &Answer) {
    if answer.suspects.is_empty() {
        return;
    }
    let _ = writeln!(out, "\nSuspects, likeliest first:");
    for (i, Accused { title, probability, evidence_for, evidence_against, next, simulated_by, .. }) in
        answer.suspects.iter().enumerate()
    {
        let _ = writeln!(out, "\n{}. {title} ({})", i + 1, percent(*probability));
        for (label, lines) in [("for", evidence_for), ("against", evidence_against), ("next", next)] {
            for line in lines.iter().take(LINES) {
                let _ = writeln!(out, "   {label:<8} {line}");
            }
        }
        if let Some(command) = simulated_by {
            let _ = writeln!(out, "   {:<8} {command}", "simulate");
        }
    }
    let _ = writeln!(out, "\nAn unknown cause: {}.", percent(answer.unknown_cause));
}

/// Measured and simulated curves side by side.
fn simulated(out: &mut String, answer: &Answer) {
    let Some(first) = answer.simulated.first() else { return };
    let header = ["size", "measured"].into_iter().chain(answer.simulated.iter().map(|of| of.name));
    let mut curves = table(&header.map(str::to_owned).collect::<Vec<_>>(), 0);
    let mut sizes: Vec<(u64, Option<f64>)> = answer
        .simulated
        .iter()
        .flat_map(|of| &of.points)
        .map(|(size, measured, _)| (*size, *measured))
        .collect();
    sizes.sort_by_key(|(size, _)| *size);
    sizes.dedup_by_key(|(size, _)| *size);
    for (size, measured) in sizes {
        let of = |of: &Simulated| of.points.iter().find(|point| point.0 == size).map(|point| point.2);
        let found = answer.simulated.iter().map(|simulated| maybe(of(simulated)));
        curves.add_row([bytes(size), maybe(measured)].into_iter().chain(found));
    }
    let _ =
        writeln!(out, "\nSimulated by packets, GB/s on the bus:\n\n{curves}\n\nhealthy: {}", first.command);
    for of in answer.simulated.iter().filter(|of| of.failed.is_some()) {
        let _ = writeln!(out, "{}: {}", of.name, of.failed.as_deref().unwrap_or_default());
    }
}

fn percent(share: f64) -> String {
    match 100.0 * share {
        percent if percent < 1.0 => "below 1 %".to_owned(),
        percent if percent > 99.0 => "above 99 %".to_owned(),
        percent => format!("{percent:.0} %"),
    }
}
