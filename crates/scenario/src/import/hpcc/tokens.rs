//! Words of a file, each with its place.

use super::File;
use crate::Error;
use model::{Rate, Time};
use std::ops::Range;
use std::str::FromStr;

/// A word.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    file: File<'a>,
    pub(super) text: &'a str,
    at: usize,
}

impl<'a> Token<'a> {
    pub(super) fn error(&self, message: impl Into<String>) -> Error {
        let span: Range<usize> = self.at..self.at + self.text.len();
        Error::at(self.file.name, self.file.text, span, message)
    }

    /// Reads it as a number; `what` says what it is.
    pub(super) fn number<T: FromStr>(&self, what: &str) -> Result<T, Error> {
        self.text
            .parse()
            .map_err(|_| self.error(format!("expected {what}, a number, found \"{}\"", self.text)))
    }

    /// A rate as ns-3 reads it: a bare number is bits per second, with or without a fraction.
    pub(super) fn rate(&self) -> Result<Rate, Error> {
        let unit = if self.is_bare() { "bps" } else { "" };
        format!("{}{unit}", self.text)
            .parse()
            .map_err(|e: model::quantity::QuantityError| self.error(e.to_string()))
    }

    /// A time as ns-3 reads it: a bare number is seconds.
    pub(super) fn time(&self) -> Result<Time, Error> {
        let text = if self.is_bare() { format!("{}s", cut(self.text, 12)) } else { self.text.to_owned() };
        text.parse().map_err(|e: model::quantity::QuantityError| self.error(e.to_string()))
    }

    /// A bare number of microseconds.
    pub(super) fn micros(&self) -> Result<Time, Error> {
        let text = format!("{}us", cut(self.text, 6));
        text.parse()
            .map_err(|_| self.error(format!("expected a number of microseconds, found \"{}\"", self.text)))
    }

    /// A share between 0 and 1.
    pub(super) fn share(&self, what: &str) -> Result<f64, Error> {
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

/// A decimal number with at most `digits` digits after the point: floats printed in full have more than any
/// clock.
fn cut(number: &str, digits: usize) -> &str {
    match number.split_once('.') {
        Some((whole, fraction)) if fraction.bytes().all(|b| b.is_ascii_digit()) => {
            &number[..whole.len() + 1 + fraction.len().min(digits)]
        }
        _ => number,
    }
}

/// The lines of a file that have words, as words.
pub(super) fn lines<'a>(file: File<'a>) -> impl Iterator<Item = Vec<Token<'a>>> {
    let mut start = 0;
    file.text.split_inclusive('\n').filter_map(move |line| {
        let base = start;
        start += line.len();
        let words: Vec<Token<'a>> = line
            .split_whitespace()
            // Every word is a slice of the text, so its place is its address less the text's.
            .map(|text| Token { file, text, at: text.as_ptr() as usize - file.text.as_ptr() as usize })
            .collect();
        debug_assert!(words.iter().all(|w| w.at >= base));
        (!words.is_empty()).then_some(words)
    })
}

/// The place behind the last word.
pub(super) fn end(file: File<'_>, message: impl Into<String>) -> Error {
    let at = file.text.trim_end().len();
    Error::at(file.name, file.text, at..at, message)
}
