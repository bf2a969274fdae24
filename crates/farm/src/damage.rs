//! Damaged texts: scenarios with mistakes, and files of other tools.

use crate::draws::Draws;

/// Tokens that texts are spoilt with.
const TOKENS: &[&str] = &[
    "",
    " ",
    "\n",
    "\t",
    "\r\n",
    "=",
    "\"",
    "'",
    "[",
    "]",
    "[[",
    "{",
    "}",
    ",",
    ".",
    "#",
    "-1",
    "0",
    "1",
    "1e999",
    "nan",
    "inf",
    "true",
    "\"\"",
    "\u{0}",
    "\u{feff}",
    "ü",
    "\u{202e}",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551616",
    "-0.0",
    "1_000",
    "0x10",
    "\"0us\"",
    "\"1e99s\"",
    "\"-1us\"",
    "\"0Gbps\"",
    "\"1e30Gbps\"",
    "\"99999TB\"",
    "[[workload]]",
    "[topology]",
    "..",
    "host0",
    "*",
];

/// The text with some mistakes.
pub(crate) fn spoilt(draws: &mut Draws, text: &str) -> String {
    let mut text = text.to_owned();
    for _ in 0..=draws.below(4) {
        text = once(draws, &text);
    }
    text
}

fn once(draws: &mut Draws, text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    if lines.is_empty() {
        return (*draws.pick(TOKENS)).to_owned();
    }
    let (one, other) = (draws.below(lines.len()), draws.below(lines.len()));
    match draws.below(8) {
        0 => drop(lines.remove(one)),
        1 => lines.insert(one, lines[other]),
        2 => lines.swap(one, other),
        3 => return cut(draws, text, ""),
        4 => return word(draws, text),
        _ => {
            let token = *draws.pick(TOKENS);
            return cut(draws, text, token);
        }
    }
    lines.join("\n") + "\n"
}

/// The text with `token` in place of a few characters, or without the rest if there is no token.
fn cut(draws: &mut Draws, text: &str, token: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    let at = draws.below(letters.len());
    let end = if token.is_empty() && draws.chance(0.3) { letters.len() } else { at + draws.below(6) };
    let tail = letters.get(end.min(letters.len())..).unwrap_or_default();
    letters[..at].iter().copied().chain(token.chars()).chain(tail.iter().copied()).collect()
}

/// The text with one word replaced by a token, or by another word of the text.
fn word(draws: &mut Draws, text: &str) -> String {
    let is_part = |c: char| c.is_alphanumeric() || "-_\".".contains(c);
    let words: Vec<&str> = text.split(|c| !is_part(c)).filter(|word| !word.is_empty()).collect();
    if words.is_empty() {
        return text.to_owned();
    }
    let old = *draws.pick(&words);
    let new = if draws.chance(0.5) { *draws.pick(&words) } else { *draws.pick(TOKENS) };
    let nth = draws.below(3);
    let at = text.match_indices(old).nth(nth).or_else(|| text.match_indices(old).next());
    at.map_or_else(|| text.to_owned(), |(at, _)| format!("{}{new}{}", &text[..at], &text[at + old.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_texts_change_and_none_is_too_short_to_spoil() {
        let text = "seed = 1\n[topology.leaf-spine]\nleaves = 2\n";
        let changed = (0..200).filter(|&n| spoilt(&mut Draws::new(1, n), text) != text).count();
        assert!(changed > 180, "{changed}");
        for short in ["", "\n", "a", "ü\n"] {
            for n in 0..200 {
                spoilt(&mut Draws::new(2, n), short);
            }
        }
    }
}
