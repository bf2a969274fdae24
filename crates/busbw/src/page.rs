//! The answer as a page: the curve with its expected band, the suspects, and the evidence.

use crate::answer::{Answer, Row, Verdict};
use crate::suspects::bytes;
use results::text::number;
use std::fmt::Write;

/// Size of the picture, and the margins for its axes.
const WIDTH: f64 = 820.0;
const HEIGHT: f64 = 340.0;
const LEFT: f64 = 60.0;
const BOTTOM: f64 = 40.0;
const TOP: f64 = 12.0;

/// Colours of simulated curves (Okabe and Ito, for all kinds of sight).
const COLOURS: [&str; 7] = ["#009e73", "#d55e00", "#cc79a7", "#e69f00", "#56b4e9", "#999999", "#882255"];

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}\
    h1{font-size:1.4rem}table{border-collapse:collapse;width:100%;margin:1rem 0}td,th{padding:.25rem .6rem;border-bottom:1px solid #ddd;\
    text-align:right;vertical-align:top}td.l,th.l{text-align:left}tr.below td{background:#fdecea}code{font-size:.85rem;overflow-wrap:anywhere}svg{max-width:100%}\
    .small{color:#555;font-size:.9rem}";

/// The page, without the mark that a report of ropewalk begins with.
pub fn page(answer: &Answer) -> String {
    let test = answer.test.map_or("a collective", |test| test.name());
    let title = format!("{test}, {}", answer.cluster);
    let mut out = format!(
        "<html lang=\"en\"><head><meta charset=\"utf-8\"><meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'\"><meta name=\"viewport\" content=\"width=device-width\"><title>{0}</title><style>{STYLE}</style></head><body>\
         <h1>{1}</h1>",
        escape(&title),
        escape(&answer.headline)
    );
    for note in &answer.notes {
        let _ = write!(out, "<p>{}</p>", escape(note));
    }
    let _ = write!(out, "<p class=\"small\">{}: {}.", escape(&answer.log), escape(&title));
    if !answer.assumed.is_empty() {
        let _ = write!(out, " Assumed: {}.", escape(&answer.assumed.join("; ")));
    }
    out += "</p>";
    for missing in &answer.missing {
        let _ = write!(out, "<p>Missing: {}.</p>", escape(missing));
    }
    out += &picture(answer);
    out += &sizes(&answer.rows);
    if let Some(together) = &answer.together {
        out += "<h2>Several logs</h2><ul>";
        for words in &together.words {
            let _ = write!(out, "<li>{}</li>", escape(words));
        }
        out += "</ul>";
    }
    out += &suspects(answer);
    if !answer.unread.is_empty() {
        out += "<h2>Lines that could not be read</h2><ul>";
        for unread in answer.unread.iter().take(20) {
            let _ = write!(
                out,
                "<li>{}:{}: {}<br><code>{}</code></li>",
                escape(&unread.file),
                unread.line,
                escape(&unread.why),
                escape(&unread.text)
            );
        }
        out += "</ul>";
    }
    out + "</body></html>\n"
}

/// A text as HTML.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Places of sizes and bandwidths in the picture.
struct Axes {
    first: f64,
    last: f64,
    most: f64,
}

impl Axes {
    fn x(&self, bytes: u64) -> f64 {
        let share = ((bytes.max(1) as f64).log2() - self.first) / (self.last - self.first).max(1.0);
        LEFT + share * (WIDTH - LEFT - 10.0)
    }

    fn y(&self, busbw: f64) -> f64 {
        HEIGHT - BOTTOM - (busbw / self.most).clamp(0.0, 1.0) * (HEIGHT - BOTTOM - TOP)
    }

    fn line(&self, points: impl Iterator<Item = (u64, f64)>) -> String {
        points.map(|(bytes, busbw)| format!("{:.1},{:.1} ", self.x(bytes), self.y(busbw))).collect()
    }

    /// The outline of a band.
    fn band(&self, points: &[(u64, f64, f64)]) -> String {
        let up = points.iter().map(|(bytes, _, most)| (*bytes, *most));
        let down = points.iter().rev().map(|(bytes, least, _)| (*bytes, *least));
        self.line(up.chain(down))
    }
}

fn picture(answer: &Answer) -> String {
    let rows: Vec<&Row> = answer.rows.iter().filter(|row| row.verdict != Verdict::Latency).collect();
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return String::new() };
    let highest = rows
        .iter()
        .map(|row| row.measured.max(row.expected.map_or(0.0, |range| range.most)))
        .fold(1e-3, f64::max);
    let axes =
        Axes { first: (first.bytes as f64).log2(), last: (last.bytes as f64).log2(), most: 1.05 * highest };
    let mut out = format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"Bus bandwidth by size\" font-size=\"12\">"
    );
    for i in 0..=4 {
        let busbw = axes.most * f64::from(i) / 4.0;
        let y = axes.y(busbw);
        let _ = write!(
            out,
            "<path d=\"M{LEFT} {y:.1}H{WIDTH}\" stroke=\"#ddd\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            LEFT - 6.0,
            y + 4.0,
            number(busbw)
        );
    }
    let each = rows.len().div_ceil(8);
    for row in rows.iter().step_by(each) {
        let _ = write!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            axes.x(row.bytes),
            HEIGHT - BOTTOM + 18.0,
            bytes(row.bytes)
        );
    }
    let band: Vec<(u64, f64, f64)> = rows
        .iter()
        .filter_map(|row| row.expected.map(|range| (row.bytes, range.least, range.most)))
        .collect();
    let _ = write!(out, "<polygon points=\"{}\" fill=\"#0072b2\" fill-opacity=\"0.18\"/>", axes.band(&band));
    let suspect = answer.suspects.first().filter(|suspect| !suspect.curve.is_empty());
    if let Some(suspect) = suspect {
        let _ = write!(
            out,
            "<polygon points=\"{}\" fill=\"#d55e00\" fill-opacity=\"0.15\"/>",
            axes.band(&suspect.curve)
        );
    }
    for (simulated, colour) in answer.simulated.iter().zip(COLOURS) {
        let line = axes.line(simulated.points.iter().map(|(bytes, _, busbw)| (*bytes, *busbw)));
        let _ = write!(
            out,
            "<polyline points=\"{line}\" fill=\"none\" stroke=\"{colour}\" stroke-dasharray=\"5 3\"/>"
        );
    }
    let line = axes.line(rows.iter().map(|row| (row.bytes, row.measured)));
    let _ = write!(out, "<polyline points=\"{line}\" fill=\"none\" stroke=\"#000\" stroke-width=\"2\"/>");
    for row in &rows {
        let _ = write!(
            out,
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\"/>",
            axes.x(row.bytes),
            axes.y(row.measured)
        );
    }
    out += "</svg><p class=\"small\">GB/s on the bus by size. Black: measured. Blue: expected.";
    if let Some(suspect) = suspect {
        let _ = write!(out, " Orange: with suspect 1, {}.", escape(&suspect.title));
    }
    for (simulated, colour) in answer.simulated.iter().zip(COLOURS) {
        let _ = write!(out, " <span style=\"color:{colour}\">Dashed: {}, simulated.</span>", simulated.name);
    }
    out + "</p>"
}

fn sizes(rows: &[Row]) -> String {
    let mut out = "<table><tr><th>size</th><th>measured GB/s</th><th>expected</th><th class=\"l\">verdict</th><th class=\"l\">NCCL's choice, near-ties</th></tr>".to_owned();
    for row in rows.iter().filter(|row| row.verdict != Verdict::Latency) {
        let class = if row.verdict == Verdict::Below { " class=\"below\"" } else { "" };
        let expected = row
            .expected
            .map_or("-".to_owned(), |range| format!("{} to {}", number(range.least), number(range.most)));
        let _ = write!(
            out,
            "<tr{class}><td>{}</td><td>{}</td><td>{expected}</td><td class=\"l\">{}</td><td class=\"l\">{}</td></tr>",
            bytes(row.bytes),
            number(row.measured),
            row.verdict.words(),
            row.how.join(", ")
        );
    }
    out + "</table>"
}

fn suspects(answer: &Answer) -> String {
    if answer.suspects.is_empty() {
        return String::new();
    }
    let mut out = "<h2>Suspects</h2><table><tr><th class=\"l\">suspect</th><th>probability</th><th class=\"l\">for</th><th class=\"l\">against</th><th class=\"l\">next</th></tr>".to_owned();
    for suspect in &answer.suspects {
        let list = |lines: &[String]| lines.iter().map(|line| escape(line)).collect::<Vec<_>>().join("<br>");
        let command = suspect
            .simulated_by
            .as_ref()
            .map_or(String::new(), |command| format!("<br><code>{}</code>", escape(command)));
        let _ = write!(
            out,
            "<tr><td class=\"l\">{}</td><td>{:.0} %</td><td class=\"l\">{}</td><td class=\"l\">{}</td><td class=\"l\">{}{command}</td></tr>",
            escape(&suspect.title),
            100.0 * suspect.probability,
            list(&suspect.evidence_for),
            list(&suspect.evidence_against),
            list(&suspect.next)
        );
    }
    let _ = write!(
        out,
        "</table><p class=\"small\">An unknown cause: {:.0} %.</p>",
        100.0 * answer.unknown_cause
    );
    out
}

#[cfg(test)]
mod tests {
    use crate::{Input, Request, answer};

    #[test]
    fn a_page_is_small_and_holds_no_markup_of_the_log() {
        let rows: String = (20..=30)
            .map(|bits| {
                format!(
                    "{} {} float sum -1 {:.1} 10.00 18.75 0\n",
                    1u64 << bits,
                    1u64 << (bits - 2),
                    (1u64 << bits) as f64 / 1e4
                )
            })
            .collect();
        let logs = vec![Input {
            name: "<script>".into(),
            text: format!("# Collective test starting: all_reduce_perf\n{rows}1048576 1 float <b> x\n"),
        }];
        let cluster = Some("2 nodes, 8 h100, 8x400G".into());
        let page = super::page(&answer(&Request { logs, cluster, ..Request::default() }).unwrap());
        assert!(page.len() < 40_000 && page.contains("<svg") && page.contains("Suspects"), "{}", page.len());
        assert!(!page.contains("<script") && !page.contains("<b>"));
    }
}
