//! Words of text files with their positions.

use finding::{Finding, code};
use std::ops::Range;

/// A word of the file with its position.
#[derive(Clone, Copy)]
pub(super) struct Word<'a> {
    pub(super) file: &'a str,
    pub(super) text: &'a str,
    pub(super) at: usize,
    pub(super) word: &'a str,
}

impl<'a> Word<'a> {
    /// An empty word at the end of a text.
    pub(super) fn end(file: &'a str, text: &'a str) -> Self {
        Word { file, text, at: text.trim_end().len(), word: "" }
    }

    pub(super) fn error(&self, message: impl Into<String>) -> Finding {
        let span: Range<usize> = self.at..self.at + self.word.len();
        code::CONTENT.inside(self.file, self.text, span, message)
    }

    /// A whole number; messages call it `what`.
    pub(super) fn number(&self, what: &str) -> Result<u64, Finding> {
        let digits = !self.word.is_empty() && self.word.bytes().all(|b| b.is_ascii_digit());
        self.word.parse().ok().filter(|_| digits).ok_or_else(|| {
            let why = if digits { ", which is too large" } else { "" };
            self.error(format!("expected {what}, found `{}`{why}", self.word))
        })
    }

    /// The number of a flow or a trigger, which is not 0.
    pub(super) fn id(&self, what: &str) -> Result<u64, Finding> {
        match self.number(what)? {
            0 => Err(self.error(format!("expected {what} above 0, found 0"))),
            id => Ok(id),
        }
    }
}

/// The words of a line.
pub(super) struct Line<'a> {
    pub(super) number: usize,
    pub(super) words: Vec<Word<'a>>,
    /// An empty word behind the last one.
    pub(super) end: Word<'a>,
    next: usize,
}

impl<'a> Line<'a> {
    /// The next word; the end of the line if there is none.
    pub(super) fn take(&mut self) -> Word<'a> {
        self.next += 1;
        self.words.get(self.next - 1).copied().unwrap_or(self.end)
    }

    pub(super) fn peek(&self) -> Option<Word<'a>> {
        self.words.get(self.next).copied()
    }

    pub(super) fn finish(&self) -> Result<(), Finding> {
        match self.peek() {
            Some(word) => Err(word.error(format!("expected the end of the line, found `{}`", word.word))),
            None => Ok(()),
        }
    }
}

/// The lines of a file that have words.
pub(super) fn lines<'a>(file: &'a str, text: &'a str) -> impl Iterator<Item = Line<'a>> {
    let word = move |word: &'a str| {
        // Every word is a slice of the text, so its position is the difference of the two addresses.
        Word { file, text, at: word.as_ptr() as usize - text.as_ptr() as usize, word }
    };
    (1..).zip(text.split('\n')).filter_map(move |(number, line)| {
        let words: Vec<Word<'a>> = line.split_whitespace().map(word).collect();
        let end = word(&line[line.trim_end().len()..][..0]);
        (!words.is_empty()).then_some(Line { number, words, end, next: 0 })
    })
}
