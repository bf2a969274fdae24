//! The error type of all inputs: position, message, what was expected, and the nearest right word.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use std::fmt;
use std::ops::Range;

/// A mistake in an input.
///
/// [`fmt::Display`] prints the message, [`Error::located`] the message after `file:line:column`, and [`Error::drawn`] the message
/// above the line with a mark.
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    message: String,
    help: Option<String>,
    place: Option<Place>,
}

/// A mistake's place in an input.
#[derive(Clone)]
struct Place {
    location: Location,
    /// The whole input.
    text: String,
    /// Byte range of the mistake in the text.
    span: Range<usize>,
}

/// A position in a file. Lines and columns count from 1; columns count characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// Name of the file, or `--set`.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

impl Error {
    /// An error without a position, such as a file that cannot be read.
    pub fn new(message: impl Into<String>) -> Self {
        Error(Box::new(Inner { message: message.into(), help: None, place: None }))
    }

    /// An error at a byte range of `text`, the content of `file`.
    pub(crate) fn at(file: &str, text: &str, span: Range<usize>, message: impl Into<String>) -> Self {
        let mut error = Error::new(message);
        let start = floor(text, span.start);
        let end = floor(text, span.end).max(start);
        let before = &text[..start];
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        // A mark over several lines hides the text, so only the first line is marked.
        let shown = text[start..end].split('\n').next().map_or(0, |first| first.trim_end().len());
        error.0.place = Some(Place {
            location: Location { file: file.to_owned(), line, column },
            text: text.to_owned(),
            span: start..start + shown,
        });
        error
    }

    /// Adds a suggestion of what would be right.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.0.help = Some(help.into());
        self
    }

    /// Adds `more` to the end of the message.
    #[must_use]
    pub(crate) fn with_more(mut self, more: &str) -> Self {
        self.0.message.push_str(more);
        self
    }

    /// Calls the file of the error `name`.
    #[must_use]
    pub(crate) fn renamed(mut self, name: &str) -> Self {
        if let Some(place) = &mut self.0.place {
            name.clone_into(&mut place.location.file);
        }
        self
    }

    /// Moves an error in a `--set` that an option stands for to the option, whose value is `text`. For example
    /// `--seed 1` stands for `--set seed=1`. Other errors stay as they are.
    #[must_use]
    pub fn of_option(self, set: &str, option: &str, text: &str) -> Self {
        let is_set = |place: &Place| place.location.file == "--set" && place.text == set;
        if !self.0.place.as_ref().is_some_and(is_set) {
            return self;
        }
        let new = Error::at(option, text, 0..text.len(), self.message());
        match self.help() {
            Some(help) => new.with_help(help),
            None => new,
        }
    }

    /// The message.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// A suggestion of what would be right, if the message has none.
    pub fn help(&self) -> Option<&str> {
        self.0.help.as_deref()
    }

    /// The position of the mistake.
    pub fn location(&self) -> Option<&Location> {
        self.0.place.as_ref().map(|place| &place.location)
    }

    /// The message above the line, with a mark below the mistake.
    pub fn drawn(&self) -> String {
        let mut report = Group::with_title(Level::ERROR.primary_title(&self.0.message));
        if let Some(Place { location, text, span }) = &self.0.place {
            let mark = AnnotationKind::Primary.span(span.clone());
            report = report.element(Snippet::source(text).path(&location.file).annotation(mark));
        }
        if let Some(help) = &self.0.help {
            report = report.element(Level::HELP.message(help));
        }
        Renderer::plain().render(&[report])
    }

    /// `file:line:column: message`.
    pub fn located(&self) -> String {
        match self.location() {
            Some(place) => format!("{place}: {}", self.0.message),
            None => self.0.message.clone(),
        }
    }
}

impl std::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `main` and `unwrap` print errors with `Debug`, so this is the report for users.
        f.write_str(&self.drawn())
    }
}

/// A mistake by the path of its key, before [`Document::locate`](crate::document::Document::locate) finds its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyError {
    pub(crate) path: Vec<String>,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
    /// Whether the error points at the key instead of the value.
    pub(crate) key: bool,
    /// Whether the path starts at the top of the scenario.
    rooted: bool,
    /// Position of a mistake in a file that the scenario names.
    pub(crate) elsewhere: Option<Box<OtherFile>>,
}

/// A position in a file that the scenario names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OtherFile {
    /// Name of the file.
    pub(crate) file: String,
    /// Content of the file.
    pub(crate) text: String,
    /// Byte range of the mistake.
    pub(crate) span: Range<usize>,
}

impl KeyError {
    /// An error at a dotted path such as `workload.0.incast.senders`.
    pub(crate) fn new(path: &str, message: impl Into<String>) -> Self {
        let path = path.split('.').filter(|p| !p.is_empty()).map(str::to_owned).collect();
        KeyError { path, message: message.into(), help: None, key: false, rooted: false, elsewhere: None }
    }

    /// An error at a byte range of `text`, the content of a file that the scenario names.
    pub(crate) fn elsewhere(file: &str, text: &str, span: Range<usize>, message: impl Into<String>) -> Self {
        KeyError {
            elsewhere: Some(Box::new(OtherFile { file: file.to_owned(), text: text.to_owned(), span })),
            ..KeyError::new("", message)
        }
    }

    /// An error whose path starts at the top of the scenario: [`KeyError::within`] leaves it alone.
    pub(crate) fn rooted(path: &str, message: impl Into<String>) -> Self {
        KeyError { rooted: true, ..KeyError::new(path, message) }
    }

    pub(crate) fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The error with `prefix` before its path, unless it is [rooted](KeyError::rooted).
    pub(crate) fn within(mut self, prefix: &str) -> Self {
        if !self.rooted {
            self.path.splice(0..0, prefix.split('.').map(str::to_owned));
        }
        self
    }
}

/// The last start of a character at or before the byte index `at`.
fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// The word of `words` that is nearest to `wrong`, if it is near enough to be a typing error.
pub(crate) fn nearest<'a>(wrong: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wrong = simple(wrong);
    let mut all: Vec<(Distance, &str)> =
        words.into_iter().map(|word| (distance(&wrong, word), word)).collect();
    all.sort_by_key(|(distance, _)| *distance);
    let near =
        |&&(Distance { errors, .. }, word): &&(Distance, &str)| errors <= 1 + word.len().min(wrong.len()) / 3;
    match all.iter().take_while(near).collect::<Vec<_>>()[..] {
        [] => None,
        // A part of several words may mean any of them.
        [(one, _), (other, _), ..] if one.part && other.part => None,
        [(_, word), ..] => Some(word),
    }
}

/// A word as [`distance`] compares it.
fn simple(word: &str) -> String {
    word.to_lowercase().replace('_', "-")
}

/// How far a word is from another one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Distance {
    /// Number of typing errors between them; 1 if one of them begins with the other, [`PART`] if it is a part of the other.
    errors: usize,
    /// True if it counts as a part of the other word.
    part: bool,
    /// Number of letters to change.
    letters: usize,
}

/// Typing errors for which a part of a word counts, such as `mixed` of `entropy-mixed`. Our choice: most words are so near
/// to their parts that the user means them, but one with a single typing error is nearer.
const PART: usize = 2;

/// How far `word` is from a wrong one.
fn distance(wrong: &str, word: &str) -> Distance {
    let word = word.to_lowercase();
    let letters = strsim::damerau_levenshtein(&word, wrong);
    let begins = !wrong.is_empty() && (word.starts_with(wrong) || wrong.starts_with(&word));
    let part = !begins && letters > PART && word.split('-').any(|part| part == wrong);
    let errors = if begins {
        letters.min(1)
    } else if part {
        PART
    } else {
        letters
    };
    Distance { errors, part, letters }
}

/// "did you mean ...?" with the nearest word. If none is near, the words if they are few, else the nearest three of them.
pub fn suggestion(wrong: &str, words: &[&str]) -> String {
    const FEW: usize = 3;
    let quoted = |words: &[&str]| words.iter().map(|w| format!("`{w}`")).collect::<Vec<_>>().join(", ");
    match nearest(wrong, words.iter().copied()) {
        Some(word) => format!("did you mean `{word}`?"),
        None if words.is_empty() => "no name is possible here".into(),
        None if words.len() <= FEW => format!("expected one of {}", quoted(words)),
        None => {
            let mut by_distance = words.to_vec();
            by_distance.sort_by_key(|word| distance(&simple(wrong), word));
            by_distance.truncate(FEW);
            format!("the nearest of {} names are {}", words.len(), quoted(&by_distance))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_count_characters_from_one() {
        let text = "a = 1\nµ = \"x\"\n";
        let error = Error::at("f.toml", text, 11..14, "wrong");
        assert_eq!(error.located(), "f.toml:2:5: wrong");
        assert_eq!(Error::at("f", text, 7..9, "in the middle of a character").location().unwrap().column, 1);
        assert_eq!(Error::at("f", text, 900..901, "behind the end").location().unwrap().line, 3);
    }

    #[test]
    fn the_nearest_word_is_near() {
        let words = ["leaves", "spines", "hosts-per-leaf", "rate"];
        assert_eq!(nearest("leafs", words), Some("leaves"));
        assert_eq!(nearest("hosts_per_leaf", words), Some("hosts-per-leaf"));
        assert_eq!(nearest("hosts", words), Some("hosts-per-leaf"));
        let caps = ["queue-cap", "queue-cap-to-hosts", "queue-cap-at-rate"];
        assert_eq!(nearest("queue-cap-to-host", caps), Some("queue-cap-to-hosts"));
        assert_eq!(nearest("mixed", ["bicc", "entropy-mixed", "mixer"]), Some("mixer"));
        assert_eq!(nearest("mixed", ["bicc", "mrc", "entropy-mixed"]), Some("entropy-mixed"));
        assert_eq!(nearest("mixed", ["class-mixed", "mrc", "entropy-mixed"]), None);
        assert_eq!(nearest("xyz", words), None);
        assert_eq!(nearest("", words), None);
    }

    #[test]
    fn a_name_that_is_far_from_all_gets_the_nearest_three() {
        let words = ["ecmp", "rps", "ar", "drill", "themis"];
        assert_eq!(suggestion("themiss", &words), "did you mean `themis`?");
        assert_eq!(suggestion("xmxp", &words), "the nearest of 5 names are `ecmp`, `rps`, `ar`");
        assert_eq!(suggestion("zzzzzz", &words[..3]), "expected one of `ecmp`, `rps`, `ar`");
        assert_eq!(suggestion("x", &[]), "no name is possible here");
        let nics = ["ecmp", "rps", "rps-nic", "flowlet-nic"];
        assert_eq!(suggestion("nic", &nics), "the nearest of 4 names are `rps-nic`, `flowlet-nic`, `rps`");
    }
}
