//! Smaller scenarios that break the same rule.

use crate::draft::Draft;
use crate::trial::{Verdict, of_text};
use lab::clock::Stopwatch;
use serde_json::{Map, Value as Json, json};

/// Most seconds that shrinking takes.
const MOST_SECONDS: f64 = 20.0;

/// The smallest draft found that breaks this rule.
pub(crate) fn draft(failing: &Draft, rule: &str) -> Draft {
    smallest(failing, &|draft| match of_text("farm.toml", &draft.text()) {
        Verdict::Failed(fault) => fault.rule == rule,
        _ => false,
    })
}

/// The draft with all left out or made smaller that `breaks` does not need.
pub(crate) fn smallest(failing: &Draft, breaks: &dyn Fn(&Draft) -> bool) -> Draft {
    let watch = Stopwatch::start();
    let mut best = failing.clone();
    loop {
        let mut smaller = candidates(&best).into_iter().take_while(|_| watch.wall_s() < MOST_SECONDS);
        match smaller.find(breaks) {
            Some(draft) => best = draft,
            None => return best,
        }
    }
}

/// The smallest text found that breaks this rule: without some of its lines, then without some of their characters.
pub(crate) fn text(failing: &str, rule: &str) -> String {
    let watch = Stopwatch::start();
    let breaks = |text: &str| match of_text("farm.toml", text) {
        Verdict::Failed(fault) => fault.rule == rule,
        _ => false,
    };
    let lines: Vec<String> = failing.split_inclusive('\n').map(str::to_owned).collect();
    let lines = without(lines, &watch, &breaks);
    let letters = lines.concat().chars().map(String::from).collect();
    without(letters, &watch, &breaks).concat()
}

/// The pieces without all that can be left out, in halves, quarters and so on.
fn without(mut pieces: Vec<String>, watch: &Stopwatch, breaks: &dyn Fn(&str) -> bool) -> Vec<String> {
    let mut step = pieces.len().div_ceil(2);
    while step > 0 && watch.wall_s() < MOST_SECONDS {
        let mut at = 0;
        while at < pieces.len() && watch.wall_s() < MOST_SECONDS {
            let end = (at + step).min(pieces.len());
            let rest: Vec<String> = pieces[..at].iter().chain(&pieces[end..]).cloned().collect();
            if breaks(&rest.concat()) {
                pieces = rest;
            } else {
                at = end;
            }
        }
        step /= 2;
    }
    pieces
}

/// Drafts that are a step smaller, those with less to read first.
fn candidates(draft: &Draft) -> Vec<Draft> {
    let mut found = Vec::new();
    let whole = Json::Object(draft.0.clone());
    for topology in [
        json!({ "links": { "hosts": 2, "links": [["host0", "host1"]] } }),
        json!({ "leaf-spine": { "leaves": 2, "spines": 2, "hosts-per-leaf": 1 } }),
    ] {
        if draft.0.get("topology").is_some_and(|now| now.to_string().len() > topology.to_string().len()) {
            let mut keys = draft.0.clone();
            keys.insert("topology".to_owned(), topology);
            found.push(Draft(keys));
        }
    }
    for smaller in steps(&whole) {
        if let Json::Object(keys) = smaller {
            found.push(Draft(keys));
        }
    }
    found
}

/// Values that are a step smaller.
fn steps(value: &Json) -> Vec<Json> {
    match value {
        Json::Object(keys) => {
            let less = keys.keys().map(|gone| {
                let mut rest = keys.clone();
                rest.shift_remove(gone);
                Json::Object(rest)
            });
            let within = keys.iter().flat_map(|(key, value)| {
                steps(value).into_iter().map(move |smaller| {
                    let mut keys: Map<String, Json> = keys.clone();
                    keys.insert(key.clone(), smaller);
                    Json::Object(keys)
                })
            });
            less.chain(within).collect()
        }
        Json::Array(items) => {
            let less = (0..items.len()).map(|gone| {
                let mut rest = items.clone();
                rest.remove(gone);
                Json::Array(rest)
            });
            let within = items.iter().enumerate().flat_map(|(i, item)| {
                steps(item).into_iter().map(move |smaller| {
                    let mut items = items.clone();
                    items[i] = smaller;
                    Json::Array(items)
                })
            });
            less.chain(within).collect()
        }
        Json::Number(number) => match number.as_u64() {
            Some(n) if n > 1 => vec![json!(1), json!(n / 2), json!(n - 1)],
            _ => Vec::new(),
        },
        Json::String(text) => fewer(text).into_iter().map(Json::from).collect(),
        _ => Vec::new(),
    }
}

/// A quantity of half the size, or a rounder one: `"1234B"` gives `"617B"` and `"1000B"`.
fn fewer(text: &str) -> Vec<String> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(0);
    let (number, unit) = text.split_at(split);
    match number.parse::<u64>() {
        Ok(number) if number > 1 && !unit.is_empty() => {
            let digit = 10u64.pow(number.ilog10());
            let mut less = vec![number / 2];
            less.extend((number % digit != 0).then_some(number / digit * digit));
            less.into_iter().map(|number| format!("{number}{unit}")).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_is_smaller() {
        let value = json!({ "a": [{ "b": "1234B" }, { "c": 7 }], "d": true });
        let texts: Vec<String> = steps(&value).iter().map(Json::to_string).collect();
        for want in [
            r#"{"d":true}"#,
            r#"{"a":[{"c":7}],"d":true}"#,
            r#"{"a":[{"b":"617B"},{"c":7}],"d":true}"#,
            r#"{"a":[{"b":"1000B"},{"c":7}],"d":true}"#,
            r#"{"a":[{"b":"1234B"},{"c":3}],"d":true}"#,
        ] {
            assert!(texts.iter().any(|text| text == want), "{want} in {texts:?}");
        }
    }

    #[test]
    fn only_needed_pieces_stay() {
        let pieces = ["a", "b", "c", "d", "e"].map(str::to_owned).to_vec();
        let both = |text: &str| text.contains('b') && text.contains('e');
        assert_eq!(without(pieces, &Stopwatch::start(), &both), ["b", "e"]);
    }
}
