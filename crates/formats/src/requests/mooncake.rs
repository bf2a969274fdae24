//! Mooncake's traces: a JSON object for each request.

use super::rows::Clock;
use super::trace::{MOST_TOKENS, Request, Trace};
use crate::words::Word;
use finding::Finding;
use serde::Deserialize;

/// A line. Other keys are ignored.
#[derive(Deserialize)]
struct Line {
    /// ms.
    timestamp: u64,
    input_length: u64,
    output_length: u64,
    #[serde(default)]
    hash_ids: Vec<u64>,
}

const EXPECTED: &str =
    "{\"timestamp\": MS, \"input_length\": TOKENS, \"output_length\": TOKENS, \"hash_ids\": [IDS]}";

pub(super) fn read(file: &str, text: &str) -> Result<Trace, Finding> {
    let (mut trace, mut clock) = (Trace::default(), Clock::default());
    for (number, line) in (1..).zip(text.split('\n')).filter(|(_, line)| !line.trim().is_empty()) {
        let start = line.as_ptr() as usize - text.as_ptr() as usize;
        let at = |at: usize| {
            let at = (0..=at.min(line.len())).rev().find(|at| line.is_char_boundary(*at)).unwrap_or(0);
            Word {
                file,
                text,
                at: start + at,
                word: &line[at..at + line[at..].chars().next().map_or(0, char::len_utf8)],
            }
        };
        let read: Line = serde_json::from_str(line).map_err(|e| {
            let full = e.to_string();
            let why = full.split(" at line ").next().unwrap_or_default();
            at(e.column().saturating_sub(1)).error(format!("expected {EXPECTED}, found: {why}"))
        })?;
        for tokens in [read.input_length, read.output_length] {
            if tokens > MOST_TOKENS {
                return Err(at(0).error(format!("expected at most {MOST_TOKENS} tokens, found {tokens}")));
            }
        }
        let word = Word { word: line.trim(), ..at(0) };
        let ps = read.timestamp.checked_mul(1_000_000_000);
        let ps = ps.ok_or_else(|| at(0).error(format!("expected a time in ms, found {}", read.timestamp)))?;
        let since = clock.since_first(word, ps).map_err(|_| {
            at(0).error(format!(
                "times must not decrease; found timestamp {} after a later one",
                read.timestamp
            ))
        })?;
        trace.add(Request {
            line: number,
            at: since,
            input: read.input_length,
            output: read.output_length,
            blocks: read.hash_ids,
        });
    }
    Ok(trace)
}
