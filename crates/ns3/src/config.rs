//! Configuration files, read as the programs read them: a stream of words. A known key takes its words, on this line or the
//! next; other words are skipped; the last value of a key holds.

use super::file::{File, hinted};
use super::keys::{self, Fate, Key, Of, Takes};
use super::tokens::{Token, lines, word};
use finding::{Finding, nearest};
use std::collections::{BTreeMap, BTreeSet};

/// The values of a configuration file.
#[derive(Debug)]
pub(super) struct Config<'a> {
    pub(super) file: File<'a>,
    values: BTreeMap<&'static str, Vec<Token<'a>>>,
    /// Column of the keys' defaults: 1 for ConWeave's program, else 0.
    program: usize,
    /// Keys that were asked for and that the file lacks.
    absent: BTreeSet<&'static str>,
}

/// Most letters in which a mistyped key differs from the right one. Our choice.
const MOST_SLIPS: usize = 2;

pub(super) fn read<'a>(file: File<'a>, warnings: &mut Vec<String>) -> Result<Config<'a>, Finding> {
    let mut values = BTreeMap::new();
    let (mut odd, mut skipped) = (Vec::new(), 0);
    let mut words = lines(file).flat_map(|line| line.into_iter().enumerate());
    // Whether the words that follow belong to a key that no program has.
    let mut is_odd = false;
    while let Some((place, token)) = words.next() {
        let Some(key) = keys::find(token.text) else {
            is_odd = place == 0 && looks_like_a_key(token.text) || place > 0 && is_odd;
            match is_odd {
                true if place == 0 => odd.push(token),
                true => {}
                false => skipped += 1,
            }
            continue;
        };
        is_odd = false;
        let Some((_, first)) = words.next() else {
            return Err(hinted(file, token.error(format!("the key {} has no value", key.name))));
        };
        let more = match key.takes {
            Takes::Words(n) => n - 1,
            Takes::Pairs => first.number::<usize>("a number of pairs")?.saturating_mul(2),
        };
        let mut taken = vec![first];
        taken.extend(words.by_ref().take(more).map(|(_, token)| token));
        if let Some(next) = taken.iter().skip(1).find(|token| keys::find(token.text).is_some())
            && key.takes == Takes::Pairs
        {
            return Err(next.error(format!(
                "expected {} pairs of rate and value after {}, found the key {}",
                first.text, key.name, next.text
            )));
        }
        if taken.len() <= more {
            let text = match key.takes {
                Takes::Words(n) => format!("expected {n} words after {}, found {}", key.name, taken.len()),
                Takes::Pairs => format!(
                    "expected {} pairs of rate and value after {}, found {} words",
                    first.text,
                    key.name,
                    taken.len() - 1
                ),
            };
            return Err(first.error(text));
        }
        values.insert(key.name, taken);
    }
    if values.is_empty()
        && let Some(token) = lines(file).next().and_then(|line| line.first().copied())
    {
        return Err(hinted(file, token.error("the file has no key that one of the programs reads")));
    }
    let mut unknown = Vec::new();
    for token in odd {
        // The keys of other programs share words with ours: `FLOW_ON_PATH_FILE` is no slip of `FLOW_INPUT_FILE`.
        let slip = |near: &&str| strsim::damerau_levenshtein(near, token.text) <= MOST_SLIPS;
        match nearest(token.text, keys::KEYS.iter().map(|key| key.name)).filter(slip) {
            Some(near) => {
                let text = format!("the key {} is not used; did you mean {near}?", token.text);
                warnings.push(token.error(text).located());
            }
            None => unknown.push(token.text),
        }
    }
    if !unknown.is_empty() {
        warnings.push(format!("{}: keys that are not used: {}", file.name, unknown.join(", ")));
    }
    if skipped > 0 {
        let words = if skipped == 1 { "1 word".to_owned() } else { format!("{skipped} words") };
        warnings.push(format!("{}: {words} behind values are skipped, as the programs skip them", file.name));
    }
    let program = usize::from(values.contains_key("LB_MODE"));
    Ok(Config { file, values, program, absent: BTreeSet::new() })
}

/// True for words such as `KMAX_MAP`.
fn looks_like_a_key(word: &str) -> bool {
    word.len() > 2 && word.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
}

impl<'a> Config<'a> {
    /// Whether the file belongs to ConWeave's program: no other has the key `LB_MODE`.
    pub(super) fn is_conweave(&self) -> bool {
        self.program == 1
    }

    /// The first word of the file.
    pub(super) fn start(&self) -> Token<'a> {
        word(self.file, 0, 0)
    }

    /// All words of a key.
    pub(super) fn all(&self, key: &'static str) -> Option<&[Token<'a>]> {
        debug_assert!(keys::find(key).is_some(), "{key}");
        self.values.get(key).map(Vec::as_slice)
    }

    /// The word that the file has for a key.
    pub(super) fn given(&self, key: &'static str) -> Option<Token<'a>> {
        self.all(key).map(|words| words[0])
    }

    /// The word of a key, or the one that the program has without the key.
    pub(super) fn get(&mut self, key: &'static str) -> Option<Token<'a>> {
        let given = self.given(key);
        if given.is_some() {
            return given;
        }
        self.absent.insert(key);
        let text = keys::find(key).map_or("", |key| key.absent[self.program]);
        (!text.is_empty()).then(|| self.start().saying(text))
    }

    /// The value of a key that switches something on.
    pub(super) fn flag(&mut self, key: &'static str) -> Result<bool, Finding> {
        let number = self.get(key).map(|word| word.number::<f64>("0 or 1")).transpose()?;
        Ok(number.is_some_and(|n| n != 0.0))
    }

    /// The keys whose value is not possible here, under this value of CC_MODE, and the consequence.
    pub(super) fn impossible(&self, control: u32) -> Result<Vec<String>, Finding> {
        let mut found = Vec::new();
        for key in keys::KEYS {
            let Fate::Only { value, under, consequence } = key.fate else { continue };
            if !under.is_empty() && !under.contains(&control) {
                continue;
            }
            let (number, place) = match self.given(key.name) {
                Some(word) => (word.number::<f64>(&format!("a value of {}", key.name))?, Some(word)),
                None => (key.absent[self.program].parse().unwrap_or(value), None),
            };
            if number == value {
                continue;
            }
            found.push(match place {
                Some(word) => {
                    word.error(format!("{} {number} is not available: {consequence}", key.name)).located()
                }
                None => format!(
                    "{}: the file lacks {}, which is {number} then: {consequence}",
                    self.file.name, key.name
                ),
            });
        }
        Ok(found)
    }

    /// The keys that were asked for and are absent, with the values that hold.
    pub(super) fn absent(&self) -> Option<String> {
        let mut lacking: Vec<&Key> = keys::KEYS.iter().filter(|key| self.absent.contains(key.name)).collect();
        lacking.retain(|key| key.of != Of::Conweave || self.program == 1);
        lacking.retain(|key| key.of != Of::Hpcc || self.program == 0);
        if lacking.is_empty() {
            return None;
        }
        let of = |key: &Key| match key.absent[self.program] {
            "" => format!("{} (ropewalk's default)", key.name),
            value => format!("{} {value}", key.name),
        };
        let list: Vec<String> = lacking.into_iter().map(of).collect();
        Some(format!(
            "{}: the file lacks these keys, so the program's values hold: {}",
            self.file.name,
            list.join(", ")
        ))
    }
}
