//! Topology files. The number of words in the first line distinguishes three dialects: `nodes switches links`, also
//! with 0 switches; `nodes switches tors links`; `nodes gpus-per-server nvswitches switches links gpu-type`. The other
//! lines are a stream of words: ids of switches, then `from to rate delay error` per link.

use super::File;
use super::tokens::{Token, end, lines};
use crate::Error;
use model::{Rate, Time};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Nodes and links.
#[derive(Debug)]
pub(super) struct Graph {
    nodes: u32,
    switches: BTreeSet<u32>,
    nvswitches: BTreeSet<u32>,
    links: Vec<(u32, u32, Rate, Time, f64)>,
}

/// Most nodes (our choice): every node takes memory, and real fabrics have far fewer.
const MOST_NODES: u32 = 1 << 20;

pub(super) fn read(file: File<'_>, warnings: &mut Vec<String>) -> Result<Graph, Error> {
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
            return Err(first[0].error(text));
        }
    };
    let nodes: u32 = first[0].number("the number of nodes")?;
    if nodes > MOST_NODES {
        return Err(first[0].error(format!("expected at most {MOST_NODES} nodes, found {nodes}")));
    }
    let count: u32 = switches.number("the number of switches")?;
    let expected: u32 = links.number("the number of links")?;
    let mut graph =
        Graph { nodes, switches: BTreeSet::new(), nvswitches: BTreeSet::new(), links: Vec::new() };
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
        if !graph.switches.insert(id) {
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
        let (from, to) = (graph.node(&from)?, graph.node(&to)?);
        let loss = error.share("an error rate")?;
        graph.links.push((from, to, rate.rate()?, delay.time()?, loss));
    }
    if let Some(word) = words.next() {
        let text = format!("{} continues after the {expected} links that its first line states", file.name);
        let place = word.error(text).located();
        warnings.push(place);
    }
    Ok(graph)
}

impl Graph {
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
        if self.switches.contains(&id) {
            return Err(word.error(format!("node {id} is a switch; flows go from host to host")));
        }
        Ok(id)
    }

    pub(super) fn write(&self, toml: &mut String) {
        let quoted = |ids: &mut dyn Iterator<Item = u32>| {
            ids.map(|id| format!("\"n{id}\"")).collect::<Vec<_>>().join(", ")
        };
        let hosts = quoted(&mut (0..self.nodes).filter(|id| !self.switches.contains(id)));
        let _ = writeln!(toml, "[topology.links]\nhosts = [{hosts}]");
        let switches = self.switches.iter().map(|id| match self.nvswitches.contains(id) {
            true => format!("{{ name = \"n{id}\", role = \"nvswitch\" }}"),
            false => format!("\"n{id}\""),
        });
        let _ = writeln!(toml, "switches = [{}]\nlinks = [", switches.collect::<Vec<_>>().join(", "));
        for (from, to, rate, delay, loss) in &self.links {
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
