//! Graphs in DOT: edges of nodes with ports, as plans of cables have them, such as `"leaf1":"swp1" -- "spine1":"swp3"`.
//!
//! Libraries for DOT give no lines, which messages need, and the language of plans is small: statements of nodes and of edges.

use super::File;
use crate::facts::{Edge, End, Facts, Known};
use crate::said::{Said, metres, rate};
use scenario::headroom::METRE;

/// A token with its line.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// A name, with or without quotes.
    Word(String),
    /// `--` or `->`.
    Edge,
    Sign(char),
}

pub(super) fn read(facts: &mut Facts, file: &File<'_>) {
    let tokens = tokens(file.text);
    let mut at = 0;
    // The name of the graph ends with its first brace.
    while at < tokens.len() && tokens[at].0 != Token::Sign('{') {
        at += 1;
    }
    at += 1;
    while at < tokens.len() {
        at = statement(facts, file, &tokens, at).max(at + 1);
    }
}

/// Reads a statement; returns the token behind it.
fn statement(facts: &mut Facts, file: &File<'_>, tokens: &[(Token, usize)], mut at: usize) -> usize {
    let line = tokens[at].1;
    let Some(first) = end(tokens, &mut at) else { return at + 1 };
    let mut ends = vec![first];
    while tokens.get(at).is_some_and(|(token, _)| *token == Token::Edge) {
        at += 1;
        match end(tokens, &mut at) {
            Some(end) => ends.push(end),
            None => {
                facts.ledger.ignored(&file.line(line), "an edge", "expected a node behind -- or ->");
                return at;
            }
        }
    }
    let (attributes, at) = attributes(tokens, at);
    let place = file.line(line);
    let named = |names: &[&str]| attributes.iter().find(|(name, _)| names.contains(&name.as_str()));
    if ends.len() == 1 {
        let (name, _) = &ends[0];
        let is_default = ["graph", "node", "edge", "subgraph"].contains(&name.as_str());
        let function = named(&["function", "role", "type"]).filter(|_| !is_default);
        match function {
            Some((_, value)) => {
                let lower = value.to_lowercase();
                let is_host = ["host", "server", "gpu", "compute"].iter().any(|word| lower.contains(word));
                facts.ledger.read(&place, "function of a node", "hosts and roles of [topology.links]");
                let name = files::printable::name(name);
                facts.nodes.push(Known { name, is_host, role: (!is_host).then(|| lower.clone()) });
            }
            None if !attributes.is_empty() => {
                facts.ledger.ignored(&place, "attributes of a node", "they are about the drawing");
            }
            None => {}
        }
        return at;
    }
    let speed = named(&["speed", "bandwidth", "rate", "label"]).and_then(|(_, value)| rate(value));
    let length = named(&["length", "cable"]).and_then(|(_, value)| metres(value));
    for pair in ends.windows(2) {
        let [(a, a_port), (b, b_port)] = pair else { continue };
        facts.ledger.read(&place, "edge", "links of [topology.links]");
        facts.edges.push(Edge {
            ends: [End::new(a, a_port.as_deref()), End::new(b, b_port.as_deref())],
            rate: speed.map(|value| Said { value, at: place.clone() }),
            delay: length.map(|metres| Said { value: metres.saturating_mul(METRE), at: place.clone() }),
            at: place.clone(),
        });
    }
    let known = ["speed", "bandwidth", "rate", "label", "length", "cable"];
    for (name, _) in attributes.iter().filter(|(name, _)| !known.contains(&name.as_str())) {
        let name = files::printable::on_one_line(name);
        facts.ledger.ignored(&place, &format!("attribute {name} of an edge"), "it is no rate and no length");
    }
    at
}

/// A node with its port: `leaf1`, `leaf1:swp1`.
fn end(tokens: &[(Token, usize)], at: &mut usize) -> Option<(String, Option<String>)> {
    let Token::Word(node) = &tokens.get(*at)?.0 else { return None };
    *at += 1;
    let mut port = None;
    while tokens.get(*at).is_some_and(|(token, _)| *token == Token::Sign(':')) {
        let Some((Token::Word(word), _)) = tokens.get(*at + 1) else { break };
        port = port.or(Some(word.clone()));
        *at += 2;
    }
    Some((node.clone(), port))
}

fn attributes(tokens: &[(Token, usize)], mut at: usize) -> (Vec<(String, String)>, usize) {
    let mut all = Vec::new();
    while tokens.get(at).is_some_and(|(token, _)| *token == Token::Sign('[')) {
        at += 1;
        while at < tokens.len() && tokens[at].0 != Token::Sign(']') {
            if let [(Token::Word(name), _), (Token::Sign('='), _), (Token::Word(value), _), ..] =
                &tokens[at..]
            {
                all.push((name.to_lowercase(), value.clone()));
                at += 3;
            } else {
                at += 1;
            }
        }
        at += 1;
    }
    (all, at.min(tokens.len()))
}

fn tokens(text: &str) -> Vec<(Token, usize)> {
    let (mut all, mut line) = (Vec::new(), 1);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if c == '\n' {
            line += 1;
        }
        if let Some(comment) = rest.strip_prefix("/*") {
            let end = comment.find("*/").map_or(comment.len(), |end| end + 2);
            line += comment[..end].matches('\n').count();
            rest = &comment[end..];
        } else if rest.starts_with("//") || c == '#' {
            rest = rest.find('\n').map_or("", |end| &rest[end..]);
        } else if rest.starts_with("--") || rest.starts_with("->") {
            all.push((Token::Edge, line));
            rest = &rest[2..];
        } else if c == '"' {
            let (word, end) = quoted(&rest[1..]);
            all.push((Token::Word(word), line));
            line += rest[1..=end].matches('\n').count();
            rest = rest.get(end + 2..).unwrap_or_default();
        } else if c.is_alphanumeric() || "_.-/".contains(c) {
            let end = rest
                .char_indices()
                .find(|(i, c)| {
                    let is_edge = rest[*i..].starts_with("--") || rest[*i..].starts_with("->");
                    is_edge || !(c.is_alphanumeric() || "_.-/".contains(*c))
                })
                .map_or(rest.len(), |(i, _)| i);
            all.push((Token::Word(rest[..end].to_owned()), line));
            rest = &rest[end..];
        } else {
            if !c.is_whitespace() {
                all.push((Token::Sign(c), line));
            }
            rest = &rest[c.len_utf8()..];
        }
    }
    all
}

/// A text up to its quote, and the number of bytes before the quote.
fn quoted(text: &str) -> (String, usize) {
    let (mut word, mut escaped) = (String::new(), false);
    for (i, c) in text.char_indices() {
        match c {
            '"' if !escaped => return (word, i),
            '\\' if !escaped => escaped = true,
            c => {
                word.push(c);
                escaped = false;
            }
        }
    }
    (word, text.len())
}
