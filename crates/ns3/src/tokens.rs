//! Words of a file with their positions.

use super::file::File;
use finding::{Finding, code};
use model::{Rate, Time};
use std::ops::Range;
use std::str::FromStr;

/// A word of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    file: File<'a>,
    pub(super) text: &'a str,
    /// Position in the file, bytes.
    pub(super) at: usize,
    /// Length in the file, bytes.
    length: usize,
}

impl<'a> Token<'a> {
    /// A word of the file's text.
    fn new(file: File<'a>, text: &'a str) -> Self {
        // The word is a slice of the text, so its position is the difference of the two addresses.
        Token { file, text, at: text.as_ptr() as usize - file.text.as_ptr() as usize, length: text.len() }
    }

    /// A word that stands for another one at its place, such as the value of a key that a file lacks.
    pub(super) fn saying(&self, text: &'a str) -> Self {
        Token { text, length: 0, ..*self }
    }

    pub(super) fn error(&self, message: impl Into<String>) -> Finding {
        let span: Range<usize> = self.at..self.at + self.length;
        code::CONTENT.inside(self.file.name, self.file.text, span, message)
    }

    /// Reads the word as a number; messages call it `what`.
    pub(super) fn number<T: FromStr>(&self, what: &str) -> Result<T, Finding> {
        self.text.parse().map_err(|_| {
            let large = !self.text.is_empty() && self.text.bytes().all(|b| b.is_ascii_digit());
            let why = if large { ", which is too large" } else { "" };
            self.error(format!("expected {what}, a number, found \"{}\"{why}", self.text))
        })
    }

    /// Reads the word as a rate, as ns-3 does: a bare number, with or without a fraction, is in bits per second.
    pub(super) fn rate(&self) -> Result<Rate, Finding> {
        let unit = if self.is_bare() { "bps" } else { "" };
        format!("{}{unit}", self.text)
            .parse()
            .map_err(|e: model::quantity::QuantityError| self.error(e.to_string()))
    }

    /// Reads the word as a time, as ns-3 does: a bare number is in seconds.
    pub(super) fn time(&self) -> Result<Time, Finding> {
        let text = if self.is_bare() { format!("{}s", cut(self.text, 12)) } else { self.text.to_owned() };
        text.parse().map_err(|e: model::quantity::QuantityError| self.error(e.to_string()))
    }

    /// Reads the word as a bare number of microseconds.
    pub(super) fn micros(&self) -> Result<Time, Finding> {
        let text = format!("{}us", cut(self.text, 6));
        text.parse()
            .map_err(|_| self.error(format!("expected a number of microseconds, found \"{}\"", self.text)))
    }

    /// Reads the word as a share between 0 and 1.
    pub(super) fn share(&self, what: &str) -> Result<f64, Finding> {
        let share: f64 = self.number(what)?;
        if (0.0..=1.0).contains(&share) {
            Ok(share)
        } else {
            Err(self.error(format!("expected {what} between 0 and 1, found {share}")))
        }
    }

    fn is_bare(&self) -> bool {
        self.text.parse::<f64>().is_ok()
    }
}

/// A decimal number with at most `digits` digits after the point; floats printed in full have more digits than a clock
/// resolves.
fn cut(number: &str, digits: usize) -> &str {
    match number.split_once('.') {
        Some((whole, fraction)) if fraction.bytes().all(|b| b.is_ascii_digit()) => {
            &number[..whole.len() + 1 + fraction.len().min(digits)]
        }
        _ => number,
    }
}

/// The words of each line of a file; empty lines are skipped.
pub(super) fn lines<'a>(file: File<'a>) -> impl Iterator<Item = Vec<Token<'a>>> {
    let mut start = 0;
    file.text.split_inclusive('\n').filter_map(move |line| {
        let base = start;
        start += line.len();
        let words: Vec<Token<'a>> = line.split_whitespace().map(|text| Token::new(file, text)).collect();
        debug_assert!(words.iter().all(|w| w.at >= base));
        (!words.is_empty()).then_some(words)
    })
}

/// The `n`-th word at or after a position of a file; the end of the file if there are fewer words.
pub(super) fn word(file: File<'_>, at: usize, n: usize) -> Token<'_> {
    let text = file.text.get(at..).and_then(|rest| rest.split_whitespace().nth(n));
    match text {
        Some(text) => Token::new(file, text),
        None => Token { file, text: "", at: file.text.trim_end().len(), length: 0 },
    }
}

/// An error after the last word of a file.
pub(super) fn end(file: File<'_>, message: impl Into<String>) -> Finding {
    let at = file.text.trim_end().len();
    code::CONTENT.inside(file.name, file.text, at..at, message)
}
