//! Numbers and variables in lines.

use crate::log::Log;

/// A number of the start of a text, and the rest.
pub(crate) fn leading(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number = text[..end].parse().ok()?;
    Some((number, &text[end..]))
}

/// The text behind a word, if the text has the word.
pub(crate) fn behind<'t>(text: &'t str, word: &str) -> Option<&'t str> {
    text.find(word).map(|at| &text[at + word.len()..])
}

/// The number directly behind a word and blanks.
pub(crate) fn number_behind(text: &str, word: &str) -> Option<u64> {
    leading(behind(text, word)?.trim_start()).map(|(number, _)| number)
}

/// The number directly before a word and blanks.
pub(crate) fn number_before(text: &str, word: &str) -> Option<u64> {
    let before = text[..text.find(word)?].trim_end();
    let start = before
        .rfind(|c: char| !c.is_ascii_digit())
        .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
    before[start..].parse().ok()
}

/// Enters a variable such as `NCCL_ALGO=Ring`.
pub(crate) fn variable(text: &str, line: usize, log: &mut Log) {
    let Some((name, value)) = text.split_once('=') else { return };
    let is_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    if name.starts_with("NCCL_") && name.chars().all(is_name) {
        let value = value.trim_matches(['"', '\'']).to_owned();
        if let Some(told) = log.told(line, value) {
            log.facts.env.entry(name.to_owned()).or_insert(told);
        }
    }
}
