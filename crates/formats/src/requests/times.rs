//! Tables of measured times: of prefills (`tokens,cached,ms`) and of steps of decoding (`batch,context,ms`).

use super::rows::{Row, columns, decimal, rows};
use crate::words::Word;
use finding::Finding;

/// A row: two numbers and a time in ps.
pub type Timed = (u64, u64, u64);

/// Reads the table of prefills: tokens of a prompt, those of them that are cached, and the time. Messages call it `file`.
///
/// # Errors
/// The first wrong row, or a table without rows.
pub fn prefills(file: &str, text: &str) -> Result<Vec<Timed>, Finding> {
    read(file, text, ["tokens", "cached", "ms"])
}

/// Reads the table of steps: requests of a step, their mean tokens of context, and the time. Messages call it `file`.
///
/// # Errors
/// The first wrong row, or a table without rows.
pub fn steps(file: &str, text: &str) -> Result<Vec<Timed>, Finding> {
    read(file, text, ["batch", "context", "ms"])
}

fn read(file: &str, text: &str, names: [&str; 3]) -> Result<Vec<Timed>, Finding> {
    let mut rows = rows(file, text);
    let places = columns(file, text, rows.next(), names)?;
    let timed = |row: Row<'_>| {
        let [first, second] = [0, 1].map(|i| row.tokens(places[i], names[i]));
        let word = row.field(places[2])?;
        let ps = decimal(word.word, 9)
            .ok_or_else(|| word.error(format!("expected a time in ms, found `{}`", word.word)))?;
        match (first?, second?) {
            (0, _) => {
                Err(row.fields[places[0]].error(format!("expected at least 1 (`{}`), found 0", names[0])))
            }
            (first, second) => Ok((first, second, ps)),
        }
    };
    let all: Vec<Timed> = rows.map(timed).collect::<Result<_, _>>()?;
    match all.is_empty() {
        true => Err(Word::end(file, text).error("expected rows with times, found none")),
        false => Ok(all),
    }
}
