//! JSON and YAML as one tree, in which every value knows its place. All scalars are texts: SONiC writes `"100000"` where others write `100000`.

use jsonc_parser::ast::Value as Json;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use saphyr_parser::{Event, Parser};
use std::collections::BTreeMap;

/// A value with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Line and column of its key, or its own; in JSON a column is a number of bytes.
    pub key: Place,
    /// Its own line and column.
    pub own: Place,
    /// The value.
    pub value: Value,
}

/// Line and column, from 1.
pub type Place = (usize, usize);

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Nothing.
    Null,
    /// A scalar.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// Keys and their values, in the order of the file.
    Map(Vec<(String, Node)>),
}

/// A text that is no JSON or no YAML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bad {
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
    /// What is wrong.
    pub text: String,
}

/// Deepest nesting. Our choice: SONiC's files have four levels, and those of containerlab six.
const DEEPEST: usize = 64;

/// Most values that the aliases of a YAML file may add. Our choice: a file that repeats itself this often is no description of a site.
const MOST_COPIES: usize = 1_000_000;

impl Node {
    /// The value of a key of a map.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entries().iter().find(|(name, _)| name == key).map(|(_, node)| node)
    }

    /// The value at a path of keys.
    pub fn at(&self, path: &[&str]) -> Option<&Node> {
        path.iter().try_fold(self, |node, key| node.get(key))
    }

    /// The entries of a map, in the order of the file; none of other values.
    pub fn entries(&self) -> &[(String, Node)] {
        match &self.value {
            Value::Map(entries) => entries,
            _ => &[],
        }
    }

    /// The items of a list; none of other values.
    pub fn items(&self) -> &[Node] {
        match &self.value {
            Value::List(items) => items,
            _ => &[],
        }
    }

    /// A scalar as text.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The text of a key.
    pub fn word(&self, key: &str) -> Option<&str> {
        self.get(key)?.text()
    }

    fn new(place: Place, value: Value) -> Self {
        Node { key: place, own: place, value }
    }

    /// The same value behind a key.
    fn behind(self, key: Place) -> Self {
        Node { key, ..self }
    }

    /// Line of its key, or its own.
    pub fn line(&self) -> usize {
        self.key.0
    }

    /// Number of values in it.
    fn size(&self) -> usize {
        let inside: usize = match &self.value {
            Value::List(items) => items.iter().map(Node::size).sum(),
            Value::Map(entries) => entries.iter().map(|(_, node)| node.size()).sum(),
            _ => 0,
        };
        inside + 1
    }
}

/// Reads JSON as its standard has it.
///
/// # Errors
/// The first mistake.
pub fn json(text: &str) -> Result<Node, Bad> {
    let strict = ParseOptions {
        allow_comments: false,
        allow_loose_object_property_names: false,
        allow_trailing_commas: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let lines = Lines::new(text);
    let read = parse_to_ast(text, &CollectOptions::default(), &strict).map_err(|error| Bad {
        line: error.line_display(),
        column: error.column_display(),
        text: error.kind().to_string(),
    })?;
    let nothing = || Bad { line: 1, column: 1, text: "Expected JSON, found nothing".to_owned() };
    of_json(read.value.ok_or_else(nothing)?, &lines, 0)
}

fn of_json(json: Json<'_>, lines: &Lines, depth: usize) -> Result<Node, Bad> {
    let range = jsonc_parser::common::Ranged::range(&json);
    let place = lines.place(range.start);
    if depth > DEEPEST {
        return Err(Bad { line: place.0, column: 1, text: format!("Nested more than {DEEPEST} deep") });
    }
    let value = match json {
        Json::StringLit(text) => Value::Text(text.value.into_owned()),
        Json::NumberLit(number) => Value::Text(number.value.to_owned()),
        Json::BooleanLit(flag) => Value::Text(flag.value.to_string()),
        Json::NullKeyword(_) => Value::Null,
        Json::Array(array) => Value::List(
            array
                .elements
                .into_iter()
                .map(|item| of_json(item, lines, depth + 1))
                .collect::<Result<_, _>>()?,
        ),
        Json::Object(object) => {
            let mut entries = Vec::with_capacity(object.properties.len());
            for property in object.properties {
                let start = jsonc_parser::common::Ranged::range(&property.name).start;
                let node = of_json(property.value, lines, depth + 1)?.behind(lines.place(start));
                entries.push((property.name.into_string(), node));
            }
            Value::Map(entries)
        }
    };
    Ok(Node::new(place, value))
}

/// The lines of a text, by the bytes at which they start.
struct Lines(Vec<usize>);

impl Lines {
    fn new(text: &str) -> Self {
        Lines(std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect())
    }

    fn place(&self, at: usize) -> Place {
        let line = self.0.partition_point(|start| *start <= at);
        (line, at + 1 - self.0[line - 1])
    }
}

/// A list or a map that is not yet complete.
struct Open {
    node: Node,
    anchor: usize,
    /// Key of a map whose value comes next.
    key: Option<(String, Place)>,
}

/// Reads the documents of a YAML file.
///
/// # Errors
/// The first mistake.
pub fn yaml(text: &str) -> Result<Vec<Node>, Bad> {
    let mut documents = Vec::new();
    let mut open: Vec<Open> = Vec::new();
    let mut anchors: BTreeMap<usize, Node> = BTreeMap::new();
    let mut copies = 0usize;
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| Bad {
            line: error.marker().line(),
            column: error.marker().col() + 1,
            text: error.info().to_owned(),
        })?;
        let place = (span.start.line(), span.start.col() + 1);
        let bad = |text: String| Bad { line: place.0, column: place.1, text };
        let (node, anchor) = match event {
            Event::Scalar(text, style, anchor, _) => {
                let plain = matches!(style, saphyr_parser::ScalarStyle::Plain);
                let value = match &*text {
                    "" | "~" | "null" if plain => Value::Null,
                    _ => Value::Text(text.into_owned()),
                };
                (Node::new(place, value), anchor)
            }
            Event::Alias(anchor) => {
                let node = anchors.get(&anchor).cloned().ok_or_else(|| bad("Unknown anchor".to_owned()))?;
                copies += node.size();
                if copies > MOST_COPIES {
                    return Err(bad(format!("The aliases of this file add more than {MOST_COPIES} values")));
                }
                (node, 0)
            }
            Event::SequenceStart(anchor, _) | Event::MappingStart(anchor, _) => {
                if open.len() > DEEPEST {
                    return Err(bad(format!("Nested more than {DEEPEST} deep")));
                }
                let value = match event {
                    Event::MappingStart(..) => Value::Map(Vec::new()),
                    _ => Value::List(Vec::new()),
                };
                open.push(Open { node: Node::new(place, value), anchor, key: None });
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(done) => (done.node, done.anchor),
                None => continue,
            },
            _ => continue,
        };
        if anchor > 0 {
            anchors.insert(anchor, node.clone());
        }
        match open.last_mut() {
            None => documents.push(node),
            Some(parent) => parent.add(node),
        }
    }
    Ok(documents)
}

impl Open {
    fn add(&mut self, mut node: Node) {
        match &mut self.node.value {
            Value::List(items) => items.push(node),
            Value::Map(entries) => match self.key.take() {
                None => self.key = Some((node.text().unwrap_or_default().to_owned(), node.own)),
                // `<<: *defaults` adds the entries that the map lacks.
                Some((key, _)) if key == "<<" => {
                    for (key, value) in std::mem::replace(&mut node.value, Value::Null).into_entries() {
                        if entries.iter().all(|(own, _)| *own != key) {
                            entries.push((key, value));
                        }
                    }
                }
                Some((key, place)) => entries.push((key, node.behind(place))),
            },
            Value::Null | Value::Text(_) => {}
        }
    }
}

impl Value {
    fn into_entries(self) -> Vec<(String, Node)> {
        match self {
            Value::Map(entries) => entries,
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_and_yaml_are_one_tree_with_lines() {
        let json = json("{\n \"PORT\": {\n  \"Ethernet0\": {\"speed\": 400000,\n \"up\": true}}}").unwrap();
        let yaml = yaml("PORT:\n  Ethernet0:\n    speed: 400000\n    up: true\n").unwrap().remove(0);
        for (tree, key, own) in [(&json, (3, 17), (3, 26)), (&yaml, (3, 5), (3, 12))] {
            let speed = tree.at(&["PORT", "Ethernet0", "speed"]).unwrap();
            assert_eq!((speed.text(), speed.line()), (Some("400000"), 3));
            assert_eq!((speed.key, speed.own), (key, own));
            assert_eq!(tree.at(&["PORT", "Ethernet0", "up"]).unwrap().text(), Some("true"));
        }
    }

    #[test]
    fn wrong_texts_have_a_place() {
        let bad = json("{\n \"a\": 1,\n}").unwrap_err();
        assert_eq!(bad.line, 2, "{bad:?}");
        assert!(json("").is_err() && json(&"[".repeat(100_000)).is_err());
        assert_eq!(yaml("a: 1\nb: [1, 2\n").unwrap_err().line, 3);
        assert!(yaml(&"- ".repeat(1_000)).unwrap_err().text.contains("deep"));
    }

    #[test]
    fn aliases_are_values_and_no_bomb() {
        let tree = yaml("base: &b {kind: ceos}\nleaf:\n  <<: *b\n  name: x\nlist: [*b]\n").unwrap().remove(0);
        assert_eq!(tree.get("leaf").unwrap().word("kind"), Some("ceos"));
        assert_eq!(tree.get("list").unwrap().items()[0].word("kind"), Some("ceos"));
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for i in 1..9 {
            let one = format!("*a{}", i - 1);
            bomb += &format!("a{i}: &a{i} [{}]\n", vec![one; 10].join(", "));
        }
        assert!(yaml(&bomb).unwrap_err().text.contains("aliases"));
    }
}
