//! A scenario's text with `--set` changes on top: a table of values, and the position in the text of every path.

use crate::overlay::{AppliedChange, Change};
use crate::reader::Reader;
use crate::source::Source;
use files::printable;
use finding::{Finding, Place, code, suggestion};
use formats::foreign;
use formats::unread;
use schemes::{FeedbackConfig, SchemeConfig};
use serde::de::DeserializeOwned;
use std::ops::Range;
use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

/// A source with its changes.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    source: Source,
    sets: Vec<AppliedChange>,
    table: Table,
}

impl Document {
    pub(crate) fn new(source: &Source, changes: &[Change]) -> Result<Self, Finding> {
        let syntax = |e: toml::de::Error| {
            if let Some(unread) = unread::of(source.text.as_bytes()) {
                let message = format!("this looks like {}, which ropewalk does not read", unread.name);
                return code::SYNTAX
                    .inside(&source.file, &source.text, 0..0, message)
                    .with_help(unread.way_out);
            }
            let span = e.span().unwrap_or(0..0);
            let message = match e.message() {
                "u64 value was too large" => too_large(&source.text[span.clone()]),
                other => match bare_word(&source.text, span.start) {
                    Some(word) if GUESSES.contains(&other) => {
                        format!("expected a value, found {word}; a text stands in quotes: \"{word}\"")
                    }
                    _ => other.to_owned(),
                },
            };
            let error = code::SYNTAX.inside(&source.file, &source.text, span, message);
            match foreign::help(&source.text) {
                Some(help) => error.with_help(help),
                None => error,
            }
        };
        let table: Table = toml::from_str(&source.text).map_err(syntax)?;
        let mut document = Document { source: source.clone(), sets: Vec::new(), table };
        crate::overlay::normalise(&mut document.table);
        for change in changes {
            let set = AppliedChange::apply(change, &mut document.table)?;
            crate::overlay::normalise(&mut document.table);
            document.sets.push(set);
        }
        printable::refuse(&document.table).map_err(|error| document.locate(error))?;
        Ok(document)
    }

    /// Adds a change that was made to the scenario after the table was read.
    pub(crate) fn note(&mut self, set: AppliedChange) {
        self.sets.push(set);
    }

    /// The changes, in their order.
    pub(crate) fn changes(&self) -> &[AppliedChange] {
        &self.sets
    }

    /// Reads the table into `T`.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, Finding> {
        let mut table = self.table.clone();
        crate::topology::presets::fill(&mut table);
        crate::vendor::translate(&mut table).map_err(|error| self.locate(error))?;
        crate::nccl::fill(&mut table);
        crate::hardware::fill(&mut table).map_err(|error| self.locate(error))?;
        T::deserialize(Reader(Value::Table(table)))
            .map_err(|misfit| self.locate(self.explain(misfit.path(), &misfit.message)))
    }

    /// True if the user wrote the value at this path, or something inside it.
    pub(crate) fn is_explicit(&self, path: &[String]) -> bool {
        let mut at: Option<&Value> = None;
        for (i, part) in path.iter().enumerate() {
            at = match (i, at) {
                (0, _) => self.table.get(part),
                // The user named a file, and the path leads to a value that the file contains.
                (_, Some(Value::String(file))) => return file.contains(['.', '/']),
                (_, Some(value)) => step(value, part),
                _ => None,
            };
            if at.is_none() {
                return false;
            }
        }
        true
    }

    /// Finds the position of an error: that of the value, of the table around it, or of the change that made this table.
    pub(crate) fn locate(&self, error: Finding) -> Finding {
        if error.place.is_some() {
            return error;
        }
        let last =
            |concerns: &dyn Fn(&AppliedChange) -> bool| self.sets.iter().rev().find(|set| concerns(set));
        if let Some(set) = last(&|set| set.concerns(&error.key)) {
            return set.place(error);
        }
        let span = self.span(&error.key, error.at_key);
        match last(&|set| set.is_inside(&error.key)).filter(|_| span.is_empty()) {
            Some(set) => set.place(Finding { at_key: true, ..error }),
            None => error.placed(Place::new(&self.source.file, &self.source.text, span)),
        }
    }

    /// Finds the position of a warning. A value that the scenario leaves to its default has none.
    pub(crate) fn locate_warning(&self, warning: Finding) -> Finding {
        let written = self.sets.iter().any(|set| set.concerns(&warning.key))
            || !self.span(&warning.key, warning.at_key).is_empty();
        if !written {
            return warning;
        }
        // The label of a sweep's axis would make different warnings of equal ones.
        let text = warning.text.clone();
        Finding { text, ..self.locate(warning) }
    }

    /// The byte range of the value at `path` or of its key; if the text has neither, that of the innermost table around it.
    fn span(&self, path: &[String], key: bool) -> Range<usize> {
        let Ok(root) = DeTable::parse(&self.source.text) else { return 0..0 };
        let mut span = 0..0;
        let mut at: Option<&Spanned<DeValue<'_>>> = None;
        for (i, part) in path.iter().enumerate() {
            let table = match at {
                None if i == 0 => Some(root.get_ref()),
                Some(value) => value.get_ref().as_table(),
                None => break,
            };
            let found = match (table, at.map(Spanned::get_ref)) {
                (Some(table), _) => table.get_key_value(part.as_str()),
                (None, Some(DeValue::Array(array))) => {
                    match part.parse::<usize>().ok().and_then(|index| array.get(index)) {
                        Some(value) => {
                            span = value.span();
                            at = Some(value);
                            continue;
                        }
                        None => break,
                    }
                }
                _ => None,
            };
            let Some((name, value)) = found else { break };
            let last = i + 1 == path.len();
            // The range of a table is its header; it is empty for a table of dotted keys, which has only its key.
            span = if last && key || value.get_ref().is_table() && value.span().is_empty() {
                name.span()
            } else {
                value.span()
            };
            at = Some(value);
        }
        span
    }

    /// Turns serde's message into ours: with the nearest right word and the expected kind of value.
    fn explain(&self, mut path: Vec<String>, message: &str) -> Finding {
        // The settings of a part of one's own are read apart, so the text has the last part of the path.
        if let Some((place, rest)) = schemes::own::place(message).or_else(|| rnic::own::place(message)) {
            path.extend(place);
            return self.explain(path, rest);
        }
        let mut quoted = message.split('`').skip(1).step_by(2);
        let first = quoted.next().unwrap_or_default().to_owned();
        let rest: Vec<&str> = quoted.collect();
        let mut key = false;
        let mut kind = code::WRONG_TYPE;
        let text = if message.starts_with("unknown field") {
            (key, kind) = (true, code::UNKNOWN_KEY);
            if path.last() != Some(&first) {
                path.push(first.clone());
            }
            match &*path {
                [class, _, key] if class == "class" && key == "feedback" => {
                    "a feedback serves the packets of all classes: write `[feedback.NAME]`".to_owned()
                }
                _ => format!("unknown key `{first}`; {}", suggestion(&first, &rest)),
            }
        } else if message.starts_with("unknown variant") {
            kind = code::UNKNOWN_NAME;
            // If the variant is a key of a table, its path is one step longer than serde's.
            if path.last() != Some(&first) {
                path.push(first.clone());
            }
            key = self.is_explicit(&path);
            if !key {
                path.pop();
            }
            let mut variant = path.clone();
            if !key {
                variant.push(first.clone());
            }
            if let Some(slot) = other_slot(&variant) {
                slot
            } else if rest.contains(&"fixed") && first.parse::<model::Time>().is_ok() {
                format!("unknown name `{first}`; did you mean `{{ fixed = \"{first}\" }}`?")
            } else {
                format!("unknown name `{first}`; {}", suggestion(&first, &rest))
            }
        } else if message.starts_with("missing field") {
            kind = code::MISSING;
            format!("the key `{first}` is missing")
        } else if message.starts_with("wanted exactly 1 element") {
            let what = path.last().cloned().unwrap_or_default();
            let found = if message.contains("found 0") { "none" } else { "several" };
            format!("expected exactly one `{what}`, found {found}")
        } else {
            let found =
                message.strip_prefix("invalid type: ").or_else(|| message.strip_prefix("invalid value: "));
            match found.and_then(|found| found.split_once(", expected ")) {
                Some((found, _)) if is_too_large(plainly(found).trim_matches('"')) => {
                    too_large(plainly(found).trim_matches('"'))
                }
                Some((found, expected)) => {
                    let found = plainly(found);
                    format!("expected {}, found {found}", wanted(expected, &found))
                }
                None => message.to_owned(),
            }
        };
        Finding { key: path, at_key: key, ..kind.plain(text) }
    }
}

/// What to write for a part in the wrong slot: a feedback among the schemes, or a scheme among the feedbacks.
fn other_slot(path: &[String]) -> Option<String> {
    let [around @ .., slot, name] = path else { return None };
    let around = around.iter().map(|part| format!("{part}.")).collect::<String>();
    match slot.as_str() {
        "scheme" if FeedbackConfig::NAMES.contains(&name.as_str()) && around.starts_with("class.") => {
            Some(format!(
                "`{name}` is a feedback, which serves the packets of all classes: write `[feedback.{name}]`"
            ))
        }
        "scheme" if FeedbackConfig::NAMES.contains(&name.as_str()) => Some(format!(
            "`{name}` is a feedback, which stands beside a scheme: write `[{around}feedback.{name}]`"
        )),
        "feedback" if SchemeConfig::names().contains(&name.as_str()) => {
            Some(format!("`{name}` is a scheme: write `[{around}scheme.{name}]`"))
        }
        _ => None,
    }
}

/// True for a whole number that TOML cannot write.
fn is_too_large(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty() && text.parse::<i64>().is_err()
}

/// The message about a number that TOML cannot write.
fn too_large(number: &str) -> String {
    format!("expected a number of at most {}, found {number}", i64::MAX)
}

/// What `toml` says of a value that begins like one of its words, such as `never`, which begins like `nan`.
const GUESSES: [&str; 4] = [
    "invalid float, expected `nan`",
    "invalid float, expected `inf`",
    "invalid boolean, expected `true`",
    "invalid boolean, expected `false`",
];

/// The word without quotes at this byte of a text, if there is one.
fn bare_word(text: &str, at: usize) -> Option<&str> {
    let rest = text.get(at..)?;
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !"-_".contains(c)).unwrap_or(rest.len());
    Some(&rest[..end]).filter(|word| !word.is_empty())
}

/// The expected kind of value in the words of TOML. A number that is too large for its kind is told the range.
fn wanted(kind: &str, found: &str) -> String {
    let most: u64 = match kind {
        "u8" => u8::MAX.into(),
        "u16" => u16::MAX.into(),
        "u32" => u32::MAX.into(),
        _ => return plainly(kind),
    };
    match kind != "u32" || found.parse::<u64>().is_ok_and(|number| number > most) {
        true => format!("a whole number from 0 to {most}"),
        false => plainly(kind),
    }
}

/// A kind of value in the words of TOML.
fn plainly(kind: &str) -> String {
    match kind {
        "a sequence" | "sequence" => "an array".into(),
        "a map" | "map" => "a table".into(),
        "a boolean" => "true or false".into(),
        "a string" => "a string in quotes".into(),
        "usize" | "u64" | "u32" | "u16" | "u8" => "a whole number that is not negative".into(),
        "f64" => "a number".into(),
        _ if kind.starts_with("struct ") => "a table".into(),
        _ => match kind.split_once('`') {
            // "integer `-1`", "floating point `0.5`", "boolean `true`"
            Some((_, value)) if !kind.contains(' ') || kind.ends_with('`') => {
                value.trim_end_matches('`').into()
            }
            _ => kind.strip_prefix("string ").unwrap_or(kind).into(),
        },
    }
}

/// The value inside `value` at the next part of a path.
fn step<'a>(value: &'a Value, part: &str) -> Option<&'a Value> {
    match value {
        Value::Table(table) => table.get(part),
        Value::Array(array) => array.get(part.parse::<usize>().ok()?),
        _ => None,
    }
}
