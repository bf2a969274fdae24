//! Positions in a sweep's file.

use crate::overlay::Origin;
use crate::source::Source;
use finding::{Finding, code};
use std::ops::Range;
use std::sync::Arc;
use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

/// The text of a sweep's file, which is TOML.
pub(super) struct SweepText {
    file: Arc<str>,
    text: Arc<str>,
    table: Table,
}

/// A dotted key with its value.
pub(super) struct Assignment {
    /// The key.
    pub(super) key: String,
    /// Byte range of the key.
    pub(super) at: Range<usize>,
    /// The value.
    pub(super) value: Value,
    /// Byte range of the value.
    pub(super) value_at: Range<usize>,
    /// Byte ranges of the items of an array; empty for other values.
    pub(super) items: Vec<Range<usize>>,
}

impl SweepText {
    pub(super) fn new(file: &Source) -> Self {
        let table = toml::from_str(&file.text).unwrap_or_default();
        SweepText { file: file.file.as_str().into(), text: file.text.as_str().into(), table }
    }

    pub(super) fn at(&self, span: Range<usize>, message: impl Into<String>) -> Finding {
        code::RANGE.inside(&self.file, &self.text, span, message)
    }

    pub(super) fn origin(&self, key: Range<usize>, value: Range<usize>) -> Origin {
        Origin {
            file: Arc::clone(&self.file),
            text: Arc::clone(&self.text),
            key,
            value,
            label: String::new(),
        }
    }

    /// An error at the value at `path`, or at the innermost value around it that exists.
    pub(super) fn error(&self, path: &[&str], message: impl Into<String>) -> Finding {
        let mut span = 0..0;
        if let Ok(root) = DeTable::parse(&self.text) {
            let mut at: Option<&DeValue<'_>> = None;
            for part in path {
                let Some(found) = step(at, root.get_ref(), part) else { break };
                (at, span) = (Some(found.get_ref()), found.span());
            }
        }
        self.at(span, message)
    }

    /// The entries of the table at `path` as dotted keys. A table in braces is a value; any other table is part of a key.
    pub(super) fn entries(&self, path: &[&str]) -> Vec<Assignment> {
        let mut entries = Vec::new();
        let Ok(root) = DeTable::parse(&self.text) else { return entries };
        let mut places: Option<&DeValue<'_>> = None;
        let mut value: Option<&Value> = None;
        for part in path {
            places = step(places, root.get_ref(), part).map(Spanned::get_ref);
            value = match value {
                None => self.table.get(*part),
                Some(Value::Array(array)) => part.parse::<usize>().ok().and_then(|i| array.get(i)),
                Some(value) => value.get(*part),
            };
        }
        if let (Some(DeValue::Table(places)), Some(Value::Table(table))) = (places, value) {
            self.walk("", places, table, &mut entries);
        }
        entries
    }

    fn walk(&self, prefix: &str, places: &DeTable<'_>, table: &Table, entries: &mut Vec<Assignment>) {
        for (name, place) in places {
            let Some(value) = table.get(name.get_ref().as_ref()) else { continue };
            let key = format!("{prefix}{}", name.get_ref());
            match (place.get_ref(), value) {
                (DeValue::Table(inner), Value::Table(table)) if !self.is_in_braces(place) => {
                    self.walk(&format!("{key}."), inner, table, entries);
                }
                (places, value) => {
                    let items = places.as_array().into_iter().flat_map(|items| items.iter());
                    entries.push(Assignment {
                        key,
                        at: name.span(),
                        value: value.clone(),
                        value_at: place.span(),
                        items: items.map(Spanned::span).collect(),
                    });
                }
            }
        }
    }

    fn is_in_braces(&self, place: &Spanned<DeValue<'_>>) -> bool {
        self.text.get(place.span()).is_some_and(|text| text.starts_with('{'))
    }
}

/// The value at the next part of a path; `at` is `None` at the start.
fn step<'a, 'i>(
    at: Option<&'a DeValue<'i>>,
    root: &'a DeTable<'i>,
    part: &str,
) -> Option<&'a Spanned<DeValue<'i>>> {
    match at {
        None => root.get(part),
        Some(DeValue::Table(table)) => table.get(part),
        Some(DeValue::Array(array)) => array.get(part.parse::<usize>().ok()?),
        Some(_) => None,
    }
}
