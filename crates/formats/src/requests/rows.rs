//! Rows of a CSV file whose fields have no quotes, and the clock of a trace.

use super::trace::{MOST_TOKENS, Request, Trace};
use crate::words::Word;
use finding::{Finding, suggestion};

/// A row with its fields.
pub(crate) struct Row<'a> {
    /// Line of the file, from 1.
    pub(crate) line: usize,
    pub(crate) fields: Vec<Word<'a>>,
    /// Number of fields of the first row.
    of: usize,
}

impl<'a> Row<'a> {
    /// A field by the number of its column. A row has as many fields as the first one, so that no column is shifted.
    pub(crate) fn field(&self, column: usize) -> Result<Word<'a>, Finding> {
        let found = self.fields.len();
        if let Some(word) = self.fields.get(column).filter(|_| found == self.of) {
            return Ok(*word);
        }
        let text = format!("expected {} fields, as in the first row, found {found}", self.of);
        Err(match self.fields.get(self.of).or(self.fields.last()) {
            Some(word) => word.error(text),
            None => finding::code::CONTENT.plain(text),
        })
    }

    /// A number of tokens.
    pub(crate) fn tokens(&self, column: usize, name: &str) -> Result<u64, Finding> {
        let word = self.field(column)?;
        let tokens = word.number(&format!("a number of tokens (`{name}`)"))?;
        if tokens > MOST_TOKENS {
            return Err(
                word.error(format!("expected at most {MOST_TOKENS} tokens (`{name}`), found {tokens}"))
            );
        }
        Ok(tokens)
    }
}

/// The rows of a file that have fields.
pub(crate) fn rows<'a>(file: &'a str, text: &'a str) -> impl Iterator<Item = Row<'a>> {
    let of = text.lines().find(|line| !line.trim().is_empty()).map_or(0, |head| head.split(',').count());
    (1..).zip(text.split('\n')).filter(|(_, line)| !line.trim().is_empty()).map(move |(line, row)| {
        let field = |field: &'a str| {
            let word = field.trim();
            Word { file, text, at: word.as_ptr() as usize - text.as_ptr() as usize, word }
        };
        Row { line, fields: row.split(',').map(field).collect(), of }
    })
}

/// The numbers of the columns with these names, which the first row of a file has.
pub(crate) fn columns<'a, const N: usize>(
    file: &'a str,
    text: &'a str,
    head: Option<Row<'a>>,
    names: [&str; N],
) -> Result<[usize; N], Finding> {
    let head =
        head.ok_or_else(|| Word::end(file, text).error("expected a row of names, found an empty file"))?;
    let found: Vec<&str> = head.fields.iter().map(|field| field.word).collect();
    let mut columns = [0; N];
    for (column, name) in columns.iter_mut().zip(names) {
        *column = found.iter().position(|found| *found == name).ok_or_else(|| {
            let text = format!("the first row has no column `{name}`; {}", suggestion(name, &found));
            head.fields[0].error(text)
        })?;
    }
    Ok(columns)
}

/// Reads a trace whose rows have a time and tokens in and out, in the columns with these names. `time` reads a time, in units of so many
/// picoseconds.
pub(super) fn read_csv(
    (file, text): (&str, &str),
    names: [&str; 3],
    unit: u64,
    time: impl Fn(Word<'_>) -> Result<u64, Finding>,
) -> Result<Trace, Finding> {
    let (mut trace, mut clock) = (Trace::default(), Clock::default());
    let mut rows = rows(file, text);
    let [at, input, output] = columns(file, text, rows.next(), names)?;
    for row in rows {
        let word = row.field(at)?;
        let since = clock.since_first(word, time(word)?)?.checked_mul(unit);
        trace.add(Request {
            line: row.line,
            at: since.ok_or_else(|| word.error("expected at most 200 days in a trace"))?,
            input: row.tokens(input, names[1])?,
            output: row.tokens(output, names[2])?,
            blocks: Vec::new(),
        });
    }
    Ok(trace)
}

/// The clock of a trace, which starts with its first request and never goes back.
#[derive(Default)]
pub(super) struct Clock {
    first: Option<u64>,
    last: u64,
}

impl Clock {
    /// The time since the first request, in the unit of `at`, which is the time of the request that `word` has.
    pub(super) fn since_first(&mut self, word: Word<'_>, at: u64) -> Result<u64, Finding> {
        let first = *self.first.get_or_insert(at);
        let since = at.checked_sub(first).filter(|since| *since >= self.last).ok_or_else(|| {
            word.error(format!("times must not decrease; found {} after a later one", word.word))
        })?;
        self.last = since;
        Ok(since)
    }
}

/// A decimal number without a sign in units of 10^-`digits`; digits beyond these are cut off.
pub(super) fn decimal(text: &str, digits: u32) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(part) {
        return None;
    }
    let mut value: u64 = whole.parse().ok()?;
    let mut part = part.bytes();
    for _ in 0..digits {
        let digit = part.next().map_or(0, |byte| u64::from(byte - b'0'));
        value = value.checked_mul(10)?.checked_add(digit)?;
    }
    Some(value)
}
