//! Topology files. The words of the first line distinguish four dialects: `nodes switches links`, also with 0 switches;
//! `nodes switches tors links`, also with two rates behind it; `nodes gpus-per-server nvswitches switches links gpu-type`. The
//! other lines are a stream of words: ids of switches, then `from to rate delay error` per link.

use super::file::{File, hinted};
use super::tokens::{Token, end, lines, word};
use finding::Finding;
use model::{Rate, Time};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write;

/// Form of the first line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// That of HPCC's program, of ConWeave's, and of both long-haul artefacts.
    Plain,
    /// That of inet-tub's programs, which state the number of ToRs, too.
    Tors,
    /// That of SimAI, with servers.
    Servers,
}

/// Nodes and links.
#[derive(Debug)]
pub(super) struct Graph<'a> {
    pub(super) file: File<'a>,
    pub(super) dialect: Dialect,
    pub(super) nodes: u32,
    /// GPUs of a server, and the word that says so; only in the dialect of SimAI.
    pub(super) gpus: Option<(u32, usize)>,
    /// Switches with the positions of their ids in the file.
    pub(super) switches: BTreeMap<u32, usize>,
    pub(super) nvswitches: BTreeSet<u32>,
    pub(super) links: Vec<Link>,
    /// Links of a switch with itself, which the scenario leaves out.
    pub(super) loops: usize,
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
/// Most packets that a queue pair may have outstanding: half of the PSNs.
const MOST_PACKETS: u64 = (1 << 23) - 1;

pub(super) fn read<'a>(file: File<'a>, warnings: &mut Vec<String>) -> Result<Graph<'a>, Finding> {
    let mut lines = lines(file);
    let Some(first) = lines.next() else {
        return Err(end(file, "the topology file is empty; expected \"nodes switches links\""));
    };
    let (dialect, nv, switches, links) = match *first {
        [_, switches, links] => (Dialect::Plain, 0u32, switches, links),
        [_, switches, _, links] => (Dialect::Tors, 0, switches, links),
        // The rates of links to hosts and of links between switches, in bit/s.
        [_, switches, _, links, _, last] if last.text.parse::<f64>().is_ok() => {
            (Dialect::Tors, 0, switches, links)
        }
        [_, _, nv, switches, links, _] => {
            (Dialect::Servers, nv.number("the number of NVSwitches")?, switches, links)
        }
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
        [_, gpus, _, _, _, _] if dialect == Dialect::Servers => {
            Some((gpus.number("the number of GPUs of a server")?, gpus.at))
        }
        _ => None,
    };
    let mut graph = Graph {
        file,
        dialect,
        nodes,
        gpus,
        switches: BTreeMap::new(),
        nvswitches: BTreeSet::new(),
        links: Vec::new(),
        loops: 0,
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
    graph.drop_loops(warnings);
    graph.drop_parallel_links(warnings);
    Ok(graph)
}

impl<'a> Graph<'a> {
    /// Leaves out the links of a switch with itself.
    fn drop_loops(&mut self, warnings: &mut Vec<String>) {
        let is_loop =
            |link: &Link, graph: &Self| link.from == link.to && graph.switches.contains_key(&link.from);
        let Some(first) = self.links.iter().find(|link| is_loop(link, self)) else { return };
        let (id, place) = (first.from, word(self.file, first.at, 0));
        let all = self.links.len();
        let links = std::mem::take(&mut self.links);
        self.links = links.into_iter().filter(|link| !is_loop(link, self)).collect();
        self.loops = all - self.links.len();
        let text = format!(
            "links of a switch with itself ({}, the first at node {id}) are left out: only programs that circulate packets use them; \
             here `[feedback.long-haul]` with `reaction = \"loop\"` brings loop ports of its own",
            self.loops
        );
        warnings.push(place.error(text).located());
    }

    /// Of parallel links, routes use the last one.
    fn drop_parallel_links(&mut self, warnings: &mut Vec<String>) {
        let mut last = BTreeMap::new();
        let ends = |link: &Link| (link.from.min(link.to), link.from.max(link.to));
        for (i, link) in self.links.iter().enumerate() {
            last.insert(ends(link), i);
        }
        let unused = |i: usize, link: &Link| link.from != link.to && last[&ends(link)] != i;
        let Some((_, first)) = self.links.iter().enumerate().find(|(i, link)| unused(*i, link)) else {
            return;
        };
        let (from, to, place) = (first.from, first.to, word(self.file, first.at, 0));
        let all = self.links.len();
        let links = std::mem::take(&mut self.links);
        self.links = links
            .into_iter()
            .enumerate()
            .filter(|(i, link)| !unused(*i, link))
            .map(|(_, link)| link)
            .collect();
        let text = format!(
            "parallel links ({}, the first between nodes {from} and {to}) are left out: routes there use the last one of them",
            all - self.links.len()
        );
        warnings.push(place.error(text).located());
    }

    /// Rate of the first link of the first host, which the programs take for that of all NICs.
    pub(super) fn first_host_rate(&self) -> Option<Rate> {
        let host = (0..self.nodes).find(|id| !self.switches.contains_key(id))?;
        self.links.iter().find(|link| link.from == host || link.to == host).map(|link| link.rate)
    }

    pub(super) fn node(&self, word: &Token<'_>) -> Result<u32, Finding> {
        let id: u32 = word.number("the id of a node")?;
        if id >= self.nodes {
            let text = format!("there is no node {id}; the first line states {} nodes, from 0", self.nodes);
            return Err(word.error(text));
        }
        Ok(id)
    }

    /// The host that a word of a flow file names.
    pub(super) fn host(&self, word: &Token<'_>) -> Result<u32, Finding> {
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

    /// Name of a node in the scenario, unless it belongs to a server.
    pub(super) fn name(&self, id: u32) -> String {
        format!("n{id}")
    }

    /// Neighbours of every node, in the order of links.
    pub(super) fn neighbours(&self) -> Vec<Vec<u32>> {
        let mut neighbours = vec![Vec::new(); self.nodes as usize];
        for link in &self.links {
            neighbours[link.from as usize].push(link.to);
            neighbours[link.to as usize].push(link.from);
        }
        neighbours
    }

    /// Hops from a node to every other one; hosts do not relay. [`u32::MAX`] for a node that is out of reach.
    pub(super) fn hops(&self, neighbours: &[Vec<u32>], from: u32) -> Vec<u32> {
        let mut hops = vec![u32::MAX; self.nodes as usize];
        hops[from as usize] = 0;
        let mut queue = VecDeque::from([from]);
        while let Some(node) = queue.pop_front() {
            if node != from && !self.switches.contains_key(&node) {
                continue;
            }
            for &next in &neighbours[node as usize] {
                if hops[next as usize] == u32::MAX {
                    hops[next as usize] = hops[node as usize] + 1;
                    queue.push_back(next);
                }
            }
        }
        hops
    }

    /// Most hops between two switches with hosts.
    pub(super) fn longest_between_tors(&self) -> u64 {
        let neighbours = self.neighbours();
        let is_host = |id: &u32| !self.switches.contains_key(id);
        let tors: Vec<u32> =
            self.switches.keys().copied().filter(|id| neighbours[*id as usize].iter().any(is_host)).collect();
        let mut most = 0;
        for &tor in &tors {
            let hops = self.hops(&neighbours, tor);
            let reached = tors.iter().map(|other| hops[*other as usize]).filter(|hops| *hops != u32::MAX);
            most = most.max(reached.max().unwrap_or(0));
        }
        most.into()
    }

    /// The largest bandwidth-delay product of two hosts in packets of 1000 B, if all links are like that of the first host.
    pub(super) fn longest_bdp(&self) -> u64 {
        let Some(link) = self.links.first() else { return 1 };
        let (bps, ps) = (u128::from(link.rate.bps()), u128::from(link.delay.ps()));
        let hops = u128::from(self.longest_between_tors()) + 2;
        let bits = hops * (2 * ps * bps / 1_000_000_000_000 + 8_000);
        u64::try_from(bits.div_ceil(8_000)).unwrap_or(u64::MAX).clamp(1, MOST_PACKETS)
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

    /// Writes nodes and links; `roles` has those of switches with a role of their own.
    pub(super) fn write(&self, toml: &mut String, roles: &BTreeMap<u32, String>) {
        let quoted = |ids: &mut dyn Iterator<Item = u32>| {
            ids.map(|id| format!("\"n{id}\"")).collect::<Vec<_>>().join(", ")
        };
        let hosts = quoted(&mut (0..self.nodes).filter(|id| !self.switches.contains_key(id)));
        let _ = writeln!(toml, "[topology.links]\nhosts = [{hosts}]");
        let switches = self.switches.keys().map(|id| match roles.get(id) {
            _ if self.nvswitches.contains(id) => format!("{{ name = \"n{id}\", role = \"nvswitch\" }}"),
            Some(role) => format!("{{ name = \"n{id}\", role = \"{role}\" }}"),
            None => format!("\"n{id}\""),
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
