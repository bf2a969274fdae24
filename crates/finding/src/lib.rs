//! What is wrong or doubtful in an input: errors and warnings, each with a code, a key, a place, a text and advice.
//!
//! A part that checks its settings knows the key alone: [`Code::at`]. Whoever has read the text finds the place.

#![forbid(unsafe_code)]

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use std::fmt;
use std::ops::Range;

pub mod code;
mod words;

pub use code::Code;
pub use words::{nearest, suggestion};

/// Whether an input can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// It cannot.
    Error,
    /// It can, but hardly as intended.
    Warning,
}

impl Severity {
    /// `error` or `warning`.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        }
    }
}

/// An error or a warning about an input.
///
/// [`fmt::Display`] prints the text, [`Finding::located`] the text after `file:line:column`, [`Finding::on_one_line`]
/// the text before it, and [`Finding::drawn`] the text above the line with a mark.
#[derive(Clone, PartialEq, Eq)]
pub struct Finding {
    /// Whether the input can be used.
    pub severity: Severity,
    /// Name of the [`Code`], which the documentation explains.
    pub code: &'static str,
    /// Parts of the key, such as `workload`, `0` and `bytes`; empty if it concerns no key.
    pub key: Vec<String>,
    /// The place, once it is known.
    pub place: Option<Box<Place>>,
    /// One sentence.
    pub text: String,
    /// What would be right, if the text has no suggestion.
    pub help: Option<String>,
    /// Whether the place is the key instead of the value.
    pub at_key: bool,
    /// Whether the key starts at the top of the scenario, so that [`Finding::within`] leaves it alone.
    pub rooted: bool,
}

/// A place in a file. Lines and columns count from 1; columns count characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Name of the file, or `--set`.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The whole input.
    text: String,
    /// Byte range in the text.
    span: Range<usize>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

impl Place {
    /// The place of a byte range of `text`, the content of `file`.
    pub fn new(file: &str, text: &str, span: Range<usize>) -> Self {
        let start = floor(text, span.start);
        let end = floor(text, span.end).max(start);
        let before = &text[..start];
        // A mark over several lines hides the text, so only the first line is marked.
        let shown = text[start..end].split('\n').next().map_or(0, |first| first.trim_end().len());
        Place {
            file: file.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before.chars().rev().take_while(|c| *c != '\n').count() + 1,
            text: text.to_owned(),
            span: start..start + shown,
        }
    }
}

/// The last start of a character at or before the byte index `at`.
fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

impl Code {
    /// A finding at a dotted path such as `workload.0.incast.senders`.
    pub fn at(self, path: &str, text: impl Into<String>) -> Finding {
        Finding {
            severity: self.severity,
            code: self.name,
            key: path.split('.').filter(|part| !part.is_empty()).map(str::to_owned).collect(),
            place: None,
            text: text.into(),
            help: None,
            at_key: false,
            rooted: false,
        }
    }

    /// A finding without a key.
    pub fn plain(self, text: impl Into<String>) -> Finding {
        self.at("", text)
    }

    /// A finding at a byte range of `text`, the content of `file`.
    pub fn inside(self, file: &str, text: &str, span: Range<usize>, message: impl Into<String>) -> Finding {
        self.plain(message).placed(Place::new(file, text, span))
    }
}

impl Finding {
    /// Adds a suggestion of what would be right.
    #[must_use]
    pub fn with_help(self, help: impl Into<String>) -> Self {
        Finding { help: Some(help.into()), ..self }
    }

    /// Puts the finding at a place.
    #[must_use]
    pub fn placed(self, place: Place) -> Self {
        Finding { place: Some(Box::new(place)), ..self }
    }

    /// Sets [`Finding::rooted`](field@Finding::rooted).
    #[must_use]
    pub fn rooted(self) -> Self {
        Finding { rooted: true, ..self }
    }

    /// Puts `prefix` before the path, unless it is [rooted](Finding::rooted).
    #[must_use]
    pub fn within(mut self, prefix: &str) -> Self {
        if !self.rooted {
            self.key.splice(0..0, prefix.split('.').map(str::to_owned));
        }
        self
    }

    /// The dotted key.
    pub fn path(&self) -> String {
        self.key.join(".")
    }

    /// Calls the file of the place `name`.
    #[must_use]
    pub fn renamed(mut self, name: &str) -> Self {
        if let Some(place) = &mut self.place {
            name.clone_into(&mut place.file);
        }
        self
    }

    /// Moves an error in a `--set` that an option stands for to the option, whose value is `text`. For example
    /// `--seed 1` stands for `--set seed=1`. Other errors stay as they are.
    #[must_use]
    pub fn of_option(self, set: &str, option: &str, text: &str) -> Self {
        match &self.place {
            Some(place) if place.file == "--set" && place.text == set => {
                self.placed(Place::new(option, text, 0..text.len()))
            }
            _ => self,
        }
    }

    /// The text above the line, with a mark below the place.
    pub fn drawn(&self) -> String {
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let mut report = Group::with_title(level.primary_title(&self.text));
        if let Some(Place { file, text, span, .. }) = self.place.as_deref() {
            let mark = AnnotationKind::Primary.span(span.clone());
            report = report.element(Snippet::source(text).path(file).annotation(mark));
        }
        if let Some(help) = &self.help {
            report = report.element(Level::HELP.message(help));
        }
        Renderer::plain().render(&[report])
    }

    /// Severity and text on one line, with the place in parentheses.
    pub fn on_one_line(&self) -> String {
        let place = self.place.as_ref().map_or_else(String::new, |place| format!(" ({place})"));
        format!("{}: {}{place}", self.severity.name(), self.text)
    }

    /// `file:line:column: text`.
    pub fn located(&self) -> String {
        match &self.place {
            Some(place) => format!("{place}: {}", self.text),
            None => self.text.clone(),
        }
    }
}

impl std::error::Error for Finding {}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `main` and `unwrap` print errors with `Debug`, so this is the report for users.
        f.write_str(&self.drawn())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_count_characters_from_one() {
        let at = |text, span| Place::new("f.toml", text, span);
        let text = "a = 1\nµ = \"x\"\n";
        assert_eq!(code::RANGE.inside("f.toml", text, 11..14, "wrong").located(), "f.toml:2:5: wrong");
        assert_eq!(at(text, 7..9).column, 1, "in the middle of a character");
        assert_eq!(at(text, 900..901).line, 3, "behind the end");
    }

    #[test]
    fn a_line_ends_with_the_place() {
        let warning = code::NO_EFFECT.at("a.b", "`b` has no effect");
        assert_eq!(warning.on_one_line(), "warning: `b` has no effect");
        let placed = warning.placed(Place::new("f.toml", "[a]\nb = 1\n", 8..9));
        assert_eq!(placed.on_one_line(), "warning: `b` has no effect (f.toml:2:5)");
    }
}
