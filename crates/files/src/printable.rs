//! Characters that a terminal or a page does not print but obeys, and which can make a text show something else.

use finding::{Finding, code};
use std::borrow::Cow;
use std::fmt::Write;
use toml::{Table, Value};

/// True for a control character, for one that ends a line, and for one that changes the direction of the text around it.
fn is_obeyed(c: char) -> bool {
    // Line and paragraph separators; marks, embeddings, overrides and isolates (Unicode Standard Annex 9, section 2).
    c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{61c}' | '\u{200e}' | '\u{200f}')
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A text with such characters as `\u001b`, which JSON and TOML read as the character. Line breaks and tabs stay.
pub fn escaped(text: &str) -> Cow<'_, str> {
    let stays = |c: char| matches!(c, '\n' | '\t') || !is_obeyed(c);
    if text.chars().all(stays) {
        return text.into();
    }
    let mut safe = String::with_capacity(text.len() + 8);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if stays(c) || c == '\r' && chars.peek() == Some(&'\n') {
            safe.push(c);
        } else {
            // A string takes everything.
            let _ = write!(safe, "\\u{:04x}", c as u32);
        }
    }
    safe.into()
}

/// A name from another tool's file, without such characters.
pub fn name(text: &str) -> String {
    text.chars().filter(|c| !is_obeyed(*c)).collect()
}

/// A text without control characters, so that a comment with it stays on one line.
pub fn on_one_line(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

/// Refuses a text or a key with such characters: names go to terminals, pages and tables.
pub fn refuse(table: &Table) -> Result<(), Finding> {
    let mut path = Vec::new();
    match in_table(table, &mut path) {
        None => Ok(()),
        Some((c, key)) => {
            let text = format!("expected a text without control characters, found U+{:04X}", c as u32);
            let mut error = code::SYNTAX.at("", text);
            (error.key, error.at_key) = (path, key);
            Err(error)
        }
    }
}

/// The first such character, with its path, and whether it is in the key.
fn in_table(table: &Table, path: &mut Vec<String>) -> Option<(char, bool)> {
    for (key, value) in table {
        path.push(key.clone());
        let in_key = key.chars().find(|c| is_obeyed(*c)).map(|c| (c, true));
        if let Some(found) = in_key.or_else(|| in_value(value, path)) {
            return Some(found);
        }
        path.pop();
    }
    None
}

fn in_value(value: &Value, path: &mut Vec<String>) -> Option<(char, bool)> {
    match value {
        Value::String(text) => text.chars().find(|c| is_obeyed(*c)).map(|c| (c, false)),
        Value::Table(table) => in_table(table, path),
        Value::Array(array) => array.iter().enumerate().find_map(|(i, value)| {
            path.push(i.to_string());
            let found = in_value(value, path);
            if found.is_none() {
                path.pop();
            }
            found
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_text_moves_no_cursor() {
        assert_eq!(escaped("a\tb\r\nü → 10 µs\n"), "a\tb\r\nü → 10 µs\n");
        assert_eq!(escaped("\u{1b}]0;T\u{7}\r\u{9b}2J"), "\\u001b]0;T\\u0007\\u000d\\u009b2J");
        assert_eq!(escaped("\u{202e}gnp\u{2066}\u{2028}"), "\\u202egnp\\u2066\\u2028");
        let json: String = serde_json::from_str(&format!("\"{}\"", escaped("a\u{202e}\u{1b}"))).unwrap();
        assert_eq!(json, "a\u{202e}\u{1b}");
    }

    #[test]
    fn a_name_of_another_tool_loses_what_is_obeyed() {
        assert_eq!(name("aten::\u{1b}[31mmm\n\u{202e}ü"), "aten::[31mmmü");
    }
}
