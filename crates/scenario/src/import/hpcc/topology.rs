//! Topology files. The number of words in the first line distinguishes three dialects: `nodes switches links`, also
//! with 0 switches; `nodes switches tors links`; `nodes gpus-per-server nvswitches switches links gpu-type`. The other
//! lines are a stream of words: ids of switches, then `from to rate delay error` per link.

use super::tokens::{Token, end, lines, word};
use super::{File, hinted};
use crate::Error;
use model::{Rate, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Nodes and links.
#[derive(Debug)]
pub(super) struct Graph<'a> {
    pub(super) file: File<'a>,
    pub(super) nodes: u32,
    /// GPUs of a server, and the word that says so; only in the dialect of SimAI.
    pub(super) gpus: Option<(u32, usize)>,
    /// Switches with the positions of their ids in the file.
    pub(super) switches: BTreeMap<u32, usize>,
    pub(super) nvswitches: BTreeSet<u32>,
    pub(super) links: Vec<Link>,
}

/// A link.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) rate: Rate,
    pub(super) delay: Time,
    pub(super) loss: f64,
    /// Position of its first word in the file.
    pub(super) at: usize,
}

/// Line of the list of switches in the text of [`Graph::write`], from 0.
const SWITCHES: usize = 2;
/// Line of the first link in that text, from 0.
const LINKS: usize = 4;

/// Most nodes (our choice): every node takes memory, and real fabrics have far fewer.
const MOST_NODES: u32 = 1 << 20;

pub(super) fn read<'a>(file: File<'a>, warnings: &mut Vec<String>) -> Result<Graph<'a>, Error> {
    let mut lines = lines(file);
    let Some(first) = lines.next() else {
        return Err(end(file, "the topology file is empty; expected \"nodes switches links\""));
    };
    let (nv, switches, links) = match *first {
        [_, switches, links] => (0u32, switches, links),
        [_, switches, _, links] => (0, switches, links),
        [_, _, nv, switches, links, _] => (nv.number("the number of NVSwitches")?, switches, links),
        _ => {
            let text = format!(
                "the first line has {} words; expected \"nodes switches links\", \"nodes switches tors links\" or \
                 \"nodes gpus-per-server nvswitches switches links gpu-type\"",
                first.len()
            );
            return Err(hinted(file, first[0].error(text)));
        }
    };
    let nodes: u32 = first[0].number("the number of nodes")?;
    if nodes > MOST_NODES {
        return Err(first[0].error(format!("expected at most {MOST_NODES} nodes, found {nodes}")));
    }
    let count: u32 = switches.number("the number of switches")?;
    let expected: u32 = links.number("the number of links")?;
    let gpus = match *first {
        [_, gpus, _, _, _, _] => Some((gpus.number("the number of GPUs of a server")?, gpus.at)),
        _ => None,
    };
    let mut graph = Graph {
        file,
        nodes,
        gpus,
        switches: BTreeMap::new(),
        nvswitches: BTreeSet::new(),
        links: Vec::new(),
    };
    let mut words = lines.flatten();
    for i in 0..u64::from(nv) + u64::from(count) {
        let Some(word) = words.next() else {
            let total = u64::from(nv) + u64::from(count);
            return Err(end(
                file,
                format!("the file ends after {i} ids of switches; its first line states {total}"),
            ));
        };
        let id = graph.node(&word)?;
        if graph.switches.insert(id, word.at).is_some() {
            return Err(word.error(format!("the switch {id} is listed twice")));
        }
        if i < u64::from(nv) {
            graph.nvswitches.insert(id);
        }
    }
    for i in 0..expected {
        let link: Vec<Token<'_>> = words.by_ref().take(5).collect();
        let [from, to, rate, delay, error] = *link else {
            let text = match link.len() {
                0 => format!("the file ends after {i} links; its first line states {expected}"),
                n => format!("the file ends inside a link: {n} of the 5 words \"from to rate delay error\""),
            };
            return Err(end(file, text));
        };
        let at = from.at;
        let (from, to) = (graph.node(&from)?, graph.node(&to)?);
        let loss = error.share("an error rate")?;
        graph.links.push(Link { from, to, rate: rate.rate()?, delay: delay.time()?, loss, at });
    }
    if let Some(word) = words.next() {
        let text = format!("{} continues after the {expected} links that its first line states", file.name);
        let place = word.error(text).located();
        warnings.push(place);
    }
    Ok(graph)
}

impl<'a> Graph<'a> {
    fn node(&self, word: &Token<'_>) -> Result<u32, Error> {
        let id: u32 = word.number("the id of a node")?;
        if id >= self.nodes {
            let text = format!("there is no node {id}; the first line states {} nodes, from 0", self.nodes);
            return Err(word.error(text));
        }
        Ok(id)
    }

    /// The host that a word of a flow file names.
    pub(super) fn host(&self, word: &Token<'_>) -> Result<u32, Error> {
        let id: u32 = word.number("the id of a host")?;
        if id >= self.nodes {
            let text = format!("there is no host {id}; the topology has {} nodes, from 0", self.nodes);
            return Err(word.error(text));
        }
        if self.switches.contains_key(&id) {
            return Err(word.error(format!("node {id} is a switch; flows go from host to host")));
        }
        Ok(id)
    }

    /// A number for each node; nodes have the same number if links lead from one to the other.
    pub(super) fn parts(&self) -> Vec<u32> {
        fn top(parts: &mut [u32], mut node: u32) -> u32 {
            while parts[node as usize] != node {
                let above = parts[parts[node as usize] as usize];
                parts[node as usize] = above;
                node = above;
            }
            node
        }
        let mut parts: Vec<u32> = (0..self.nodes).collect();
        for link in &self.links {
            let (from, to) = (top(&mut parts, link.from), top(&mut parts, link.to));
            parts[from as usize] = to;
        }
        (0..self.nodes).map(|node| top(&mut parts, node)).collect()
    }

    /// The word that caused a value in the text of [`Graph::write`]: the value in this line, after the text `before`.
    pub(super) fn origin(&self, line: usize, before: &str) -> Token<'a> {
        let link = line.checked_sub(LINKS).and_then(|row| self.links.get(row));
        if let Some(link) = link {
            return word(self.file, link.at, before.matches(',').count());
        }
        let names = before.matches("\"n").count() - before.matches("\"nvswitch\"").count();
        let id = self.switches.values().nth(names).filter(|_| line == SWITCHES);
        word(self.file, id.copied().unwrap_or(0), 0)
    }

    pub(super) fn write(&self, toml: &mut String) {
        let quoted = |ids: &mut dyn Iterator<Item = u32>| {
            ids.map(|id| format!("\"n{id}\"")).collect::<Vec<_>>().join(", ")
        };
        let hosts = quoted(&mut (0..self.nodes).filter(|id| !self.switches.contains_key(id)));
        let _ = writeln!(toml, "[topology.links]\nhosts = [{hosts}]");
        let switches = self.switches.keys().map(|id| match self.nvswitches.contains(id) {
            true => format!("{{ name = \"n{id}\", role = \"nvswitch\" }}"),
            false => format!("\"n{id}\""),
        });
        let _ = writeln!(toml, "switches = [{}]\nlinks = [", switches.collect::<Vec<_>>().join(", "));
        for Link { from, to, rate, delay, loss, .. } in &self.links {
            let _ = if *loss > 0.0 {
                writeln!(
                    toml,
                    "  {{ from = \"n{from}\", to = \"n{to}\", rate = \"{rate}\", delay = \"{delay}\", loss = {} }},",
                    toml::Value::Float(*loss)
                )
            } else {
                writeln!(toml, "  [\"n{from}\", \"n{to}\", \"{rate}\", \"{delay}\"],")
            };
        }
        toml.push_str("]\n\n");
    }
}
