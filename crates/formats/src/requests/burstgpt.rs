//! BurstGPT's traces.

use super::rows::{Clock, columns, decimal, rows};
use super::trace::{Request, Trace};
use finding::Finding;

const NAMES: [&str; 3] = ["Timestamp", "Request tokens", "Response tokens"];

pub(super) fn read(file: &str, text: &str) -> Result<Trace, Finding> {
    let (mut trace, mut clock) = (Trace::default(), Clock::default());
    let mut rows = rows(file, text);
    let [time, input, output] = columns(file, text, rows.next(), NAMES)?;
    for row in rows {
        let word = row.field(time)?;
        let at = decimal(word.word, 12).ok_or_else(|| {
            let most = u64::MAX / 1_000_000_000_000;
            word.error(format!("expected a time in seconds, below {most}, found `{}`", word.word))
        })?;
        trace.add(Request {
            line: row.line,
            at: clock.since_first(word, at)?,
            input: row.tokens(input, NAMES[1])?,
            output: row.tokens(output, NAMES[2])?,
            blocks: Vec::new(),
        });
    }
    Ok(trace)
}
