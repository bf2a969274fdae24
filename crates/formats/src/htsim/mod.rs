//! Connection matrices of htsim (`.cm`): flows between numbered hosts, and triggers that start flows when others end.

pub mod topo;

use super::words::{Line, Word, lines};
use finding::{Finding, suggestion};
use std::collections::BTreeMap;

/// A connection matrix. All hosts exist, and all triggers that flows name are declared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matrix {
    /// Number of hosts.
    pub nodes: u32,
    /// Flows in the order of the file.
    pub flows: Vec<Flow>,
    /// Triggers by id.
    pub triggers: BTreeMap<u64, Trigger>,
    /// Number of failures, which are left out.
    pub failures: u64,
    /// Keys that are left out, with their numbers of flows.
    pub ignored: BTreeMap<&'static str, u64>,
}

/// A flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Line of the file, from 1.
    pub line: usize,
    /// Host that sends.
    pub from: u32,
    /// Host that receives.
    pub to: u32,
    /// Bytes.
    pub size: u64,
    /// Number of the flow.
    pub id: Option<u64>,
    /// Time or trigger at which it starts.
    pub start: Start,
    /// True if it is a message of the connection with its id.
    pub message: bool,
    /// Trigger that fires when the sender has the last ACK.
    pub send_done: Option<u64>,
    /// Trigger that fires when the receiver has the last byte.
    pub recv_done: Option<u64>,
}

/// Start of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// A time in the file's unit: picoseconds, or microseconds for messages of uet-htsim.
    At(u64),
    /// A trigger.
    On(u64),
}

/// A trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The first activation starts all its flows; there must not be a second one.
    Oneshot,
    /// Each activation starts the next flow.
    Multishot,
    /// The last of so many activations starts all its flows.
    Barrier(u64),
}

/// True if a text looks like a connection matrix: its first word is `Nodes` and its third `Connections`.
pub fn is_matrix(text: &str) -> bool {
    let mut words = text.split_whitespace();
    words.next() == Some("Nodes") && words.nth(1) == Some("Connections")
}

/// Keys of a header.
const HEADER: [&str; 4] = ["Nodes", "Connections", "Triggers", "Failures"];

/// Keys of a flow.
const KEYS: [&str; 9] =
    ["id", "start", "trigger", "size", "send_done_trigger", "recv_done_trigger", "prio", "msg", "addon"];

/// Reads a connection matrix; messages call it `file`.
pub fn read(file: &str, text: &str) -> Result<Matrix, Finding> {
    let mut lines = lines(file, text).peekable();
    let mut header: BTreeMap<&str, (u64, Word<'_>)> = BTreeMap::new();
    while let Some(line) = lines.next_if(|line| HEADER.contains(&line.words[0].word)) {
        let mut line = line;
        let key = line.take();
        let value = line.take();
        let number = value.number(&format!("the number after `{}`", key.word))?;
        if header.insert(key.word, (number, value)).is_some() {
            return Err(key.error(format!("`{}` stands twice", key.word)));
        }
        line.finish()?;
    }
    for key in &HEADER[..2] {
        if !header.contains_key(key) {
            let at = lines.peek().map(|line| line.words[0]);
            let end = Word::end(file, text);
            return Err(at
                .unwrap_or(end)
                .error(format!("the line `{key} N` is missing at the start of the file")));
        }
    }
    let (nodes, word) = header["Nodes"];
    let nodes =
        u32::try_from(nodes).map_err(|_| word.error(format!("expected fewer nodes, found {nodes}")))?;
    let mut reader =
        Reader { matrix: Matrix { nodes, ..Matrix::default() }, ids: BTreeMap::new(), named: Vec::new() };
    for line in lines {
        reader.line(line)?;
    }
    let Reader { matrix, named, .. } = reader;
    let found = [0, matrix.flows.len() as u64, matrix.triggers.len() as u64, matrix.failures];
    for (key, found) in HEADER.into_iter().zip(found).skip(1) {
        match header.get(key) {
            Some((said, word)) if *said != found => {
                return Err(word.error(format!("`{key} {said}`, but the file has {found}")));
            }
            None if found > 0 => {
                let word = header["Connections"].1;
                return Err(word
                    .error(format!("the file has {found} lines that a line `{key} {found}` must announce")));
            }
            _ => {}
        }
    }
    for (trigger, word) in &named {
        if !matrix.triggers.contains_key(trigger) {
            return Err(word.error(format!(
                "the trigger {trigger} is not declared; expected a line `trigger id {trigger} oneshot`"
            )));
        }
    }
    Ok(matrix)
}

/// An error at the number of nodes that a matrix states.
pub fn at_nodes(file: &str, text: &str, message: &str) -> Finding {
    let mut lines = lines(file, text);
    let line = lines.find(|line| line.words[0].word == HEADER[0]);
    line.and_then(|line| line.words.get(1).copied()).unwrap_or(Word::end(file, text)).error(message)
}

struct Reader<'a> {
    matrix: Matrix,
    /// Flows by id.
    ids: BTreeMap<u64, usize>,
    /// Triggers that flows name.
    named: Vec<(u64, Word<'a>)>,
}

impl<'a> Reader<'a> {
    fn line(&mut self, mut line: Line<'a>) -> Result<(), Finding> {
        let first = line.words[0];
        match first.word {
            "trigger" => self.trigger(&mut line),
            "failure" => {
                self.matrix.failures += 1;
                Ok(())
            }
            word if word.contains("->") => self.flow(&mut line),
            word => Err(first
                .error(format!("expected a flow such as `0->1`, `trigger` or `failure`, found `{word}`"))
                .with_help("the lines `Nodes`, `Connections`, `Triggers` and `Failures` come first")),
        }
    }

    fn trigger(&mut self, line: &mut Line<'a>) -> Result<(), Finding> {
        line.take();
        let word = line.take();
        if word.word != "id" {
            return Err(word.error(format!("expected `id`, found `{}`", word.word)));
        }
        let word = line.take();
        let id = word.id("the id of a trigger")?;
        let kind = line.take();
        let trigger = match kind.word {
            "oneshot" => Trigger::Oneshot,
            "multishot" => Trigger::Multishot,
            "barrier" => {
                let count = line.take();
                if count.word != "count" {
                    return Err(count.error(format!("expected `count`, found `{}`", count.word)));
                }
                Trigger::Barrier(line.take().id("a number of activations")?)
            }
            other => {
                let words = ["oneshot", "multishot", "barrier"];
                return Err(
                    kind.error(format!("unknown kind of trigger `{other}`; {}", suggestion(other, &words)))
                );
            }
        };
        if self.matrix.triggers.insert(id, trigger).is_some() {
            return Err(word.error(format!("the trigger {id} is declared twice")));
        }
        line.finish()
    }

    fn flow(&mut self, line: &mut Line<'a>) -> Result<(), Finding> {
        let pair = line.take();
        let (from, to) = self.pair(pair)?;
        let mut keys: BTreeMap<&'static str, Word<'a>> = BTreeMap::new();
        while let Some(word) = line.peek() {
            line.take();
            let Some(key) = KEYS.into_iter().find(|key| *key == word.word) else {
                return Err(word.error(format!(
                    "unknown key `{}`; {}",
                    word.word,
                    suggestion(word.word, &KEYS)
                )));
            };
            let is_number = |next: &Word<'_>| next.word.starts_with(|c: char| c.is_ascii_digit());
            let value = match key {
                "addon" => word,
                "msg" if !line.peek().is_some_and(|next| is_number(&next)) => word,
                _ => line.take(),
            };
            if keys.insert(key, value).is_some() {
                return Err(word.error(format!("`{key}` stands twice in one flow")));
            }
            if key == "trigger" && !keys.contains_key("id") {
                return Err(word.error("a flow with a trigger has an id, and `id` comes before `trigger`"));
            }
        }
        let size = keys.get("size").ok_or_else(|| line.end.error("the flow has no `size`"))?;
        let bytes = size.id("a size in bytes").map_err(|error| match size.word {
            "0" => error.with_help(
                "in htsim, a flow of size 0 never ends; give it more bytes than it can send, such as 1000000000000, and end the run \
                 by `--set stop.after=10ms`",
            ),
            _ => error,
        })?;
        let optional = |key: &str, what: &str| keys.get(key).map(|word| word.id(what)).transpose();
        let start = match (keys.get("start"), optional("trigger", "the id of a trigger")?) {
            (Some(word), None) => Start::At(start(word)?),
            (None, Some(trigger)) => Start::On(trigger),
            (Some(word), Some(_)) => {
                return Err(word.error("a flow has either `start` or `trigger`, not both"));
            }
            (None, None) => return Err(line.end.error("the flow has neither `start` nor `trigger`")),
        };
        let flow = Flow {
            line: line.number,
            from,
            to,
            size: bytes,
            id: optional("id", "the id of a flow")?,
            start,
            message: keys.contains_key("msg"),
            send_done: optional("send_done_trigger", "the id of a trigger")?,
            recv_done: optional("recv_done_trigger", "the id of a trigger")?,
        };
        for (key, trigger) in [
            ("trigger", if let Start::On(trigger) = start { Some(trigger) } else { None }),
            ("send_done_trigger", flow.send_done),
            ("recv_done_trigger", flow.recv_done),
        ] {
            self.named.extend(trigger.map(|trigger| (trigger, keys[key])));
        }
        for key in ["prio", "addon"].into_iter().filter(|key| keys.contains_key(key)) {
            *self.matrix.ignored.entry(key).or_default() += 1;
        }
        self.add(flow, keys.get("id").copied().unwrap_or(pair))
    }

    /// Adds a flow. Only messages of one connection share an id.
    fn add(&mut self, flow: Flow, word: Word<'a>) -> Result<(), Finding> {
        if let Some(id) = flow.id {
            let first = *self.ids.entry(id).or_insert(self.matrix.flows.len());
            if let Some(other) = self.matrix.flows.get(first) {
                let one = (other.from, other.to, other.message) == (flow.from, flow.to, flow.message);
                if !flow.message || !one {
                    let text = format!(
                        "line {} has the id {id}, too; only `msg` lines of one pair share an id",
                        other.line
                    );
                    return Err(word.error(text));
                }
            }
        } else if flow.message {
            return Err(word.error("a flow with `msg` has an id, which names its connection"));
        }
        self.matrix.flows.push(flow);
        Ok(())
    }

    /// The hosts of a flow.
    fn pair(&self, word: Word<'a>) -> Result<(u32, u32), Finding> {
        let Some((from, to)) = word.word.split_once("->") else {
            return Err(word.error("expected a pair of hosts such as `0->1`"));
        };
        let host = |text: &'a str| -> Result<u32, Finding> {
            let at = text.as_ptr() as usize - word.text.as_ptr() as usize;
            let word = Word { at, word: text, ..word };
            let host = word.number("the number of a host")?;
            u32::try_from(host).ok().filter(|&host| host < self.matrix.nodes).ok_or_else(|| {
                word.error(format!(
                    "there is no host {host}; with `Nodes {0}` there are {0}",
                    self.matrix.nodes
                ))
            })
        };
        let (from, to) = (host(from)?, host(to)?);
        if from == to {
            return Err(word.error(format!("host {from} cannot send to itself")));
        }
        Ok((from, to))
    }
}

/// A start. Some generators write it with a fraction, which is below the clock's resolution.
fn start(word: &Word<'_>) -> Result<u64, Finding> {
    match word.word.split_once('.') {
        Some((whole, fraction)) if fraction.bytes().all(|b| b.is_ascii_digit()) => {
            Word { word: whole, ..*word }.number("a time")
        }
        _ => word.number("a time"),
    }
}

#[cfg(test)]
mod tests;
