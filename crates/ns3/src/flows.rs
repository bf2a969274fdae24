//! Flow files: the number of flows, then one flow per line, `from to class port bytes start`; the port may be missing.
//! Starts are in seconds and ascend. As the programs do, the import reads so many flows and not what follows them.

use super::ends::Ends;
use super::file::{File, hinted};
use super::notes::Notes;
use super::servers::Servers;
use super::tokens::{Token, end, lines, word};
use super::topology::{Dialect, Graph};
use finding::Finding;
use model::{Bytes, Time};
use std::collections::BTreeSet;
use std::fmt::Write;

/// The flows of a file.
pub(super) struct Flows<'a> {
    file: File<'a>,
    /// Words per flow.
    fields: usize,
    list: Vec<Flow>,
    /// True if hosts have several links.
    several: bool,
}

/// A flow.
struct Flow {
    /// Names of its ends.
    from: String,
    to: String,
    bytes: u64,
    start: Time,
    /// Destination port; `None` if the file has no ports, or no port with this number exists.
    port: Option<u16>,
    /// Position of its first word in the file.
    at: usize,
}

/// The lines before the first flow in the text of [`Flows::write`].
const HEAD: &str = "[[workload]]\nname = \"flows\"\nqp = \"per-message\"\n[workload.flows]\nlist = [\n";

pub(super) fn read<'a>(
    file: File<'a>,
    graph: &Graph<'_>,
    servers: Option<&Servers<'_>>,
    notes: &mut Notes,
) -> Result<Flows<'a>, Finding> {
    let mut lines = lines(file);
    let Some(first) = lines.next() else {
        return Err(end(file, "the flow file is empty; expected the number of flows"));
    };
    let count: u64 = first[0].number("the number of flows").map_err(|e| hinted(file, e))?;
    if let Some(word) = first.get(1) {
        return Err(hinted(file, word.error("expected only the number of flows in the first line")));
    }
    let mut flows: Vec<Flow> = Vec::new();
    let mut ends = Ends::new(graph, servers);
    let several = ends.several();
    let (parts, mut fields, mut inside, mut groups) = (graph.parts(), 0, 0u64, BTreeSet::new());
    while (flows.len() as u64) < count {
        let Some(line) = lines.next() else {
            let text = format!("the file ends after {} flows; its first line states {count}", flows.len());
            return Err(end(file, text));
        };
        if fields == 0 {
            fields = line.len();
            if !(5..=6).contains(&fields) {
                let text = format!(
                    "expected 6 words, \"from to class port bytes start\", or 5 without the port; found {fields}"
                );
                return Err(line[0].error(text));
            }
        }
        if line.len() != fields {
            let text = format!("expected {fields} words as in the first flow, found {}", line.len());
            let last = line[line.len() - 1];
            let word = if line.len() > fields { line[fields] } else { last };
            let cut = if line.len() < fields { "; is the file cut off?" } else { "" };
            return Err(word.error(format!("{text}{cut}")));
        }
        let (from, to) = (graph.host(&line[0])?, graph.host(&line[1])?);
        if from == to {
            return Err(line[1].error(format!("host {to} cannot send to itself")));
        }
        if parts[from as usize] != parts[to as usize] {
            return Err(line[1].error(format!("no path leads from host {from} to host {to}")));
        }
        inside += u64::from(servers.is_some_and(|servers| servers.joins(from, to)));
        groups.insert(line[2].text);
        let (size, begin) = (line[fields - 2], line[fields - 1]);
        let mut bytes: u64 = size.number("a size in bytes")?;
        if bytes == 0 {
            // HPCC's program never ends such a flow.
            if fields == 6 {
                return Err(size.error("expected at least 1 byte, found 0"));
            }
            bytes = 1;
        }
        let mut start = begin.time()?;
        if let Some(Flow { start: before, .. }) = flows.last().filter(|last| last.start > start) {
            if graph.dialect != Dialect::Tors {
                let text = format!(
                    "flows must be in order of their starts; found a start at {start} after {before}"
                );
                return Err(begin.error(text));
            }
            // inet-tub's programs start a late flow at once.
            start = *before;
        }
        let port = if fields == 6 { line[3].text.parse().ok() } else { None };
        let (from, to) = ends.of(from, to, flows.len());
        flows.push(Flow { from, to, bytes, start, port, at: line[0].at });
    }
    let rest = lines.count();
    if rest > 0 {
        let text =
            format!("the first line states {count} flows, so the {rest} lines behind them are not read");
        notes.warnings.push(first[0].error(text).located());
    }
    if groups.len() > 1 {
        let text = format!(
            "flows have {} priority groups, which have queues of their own there; here all flows share one queue of data",
            groups.len()
        );
        notes.warnings.push(first[0].error(text).located());
    }
    if inside > 0 {
        let text = format!(
            "{inside} flows join GPUs of one server: the program sends them over NVLink, and the scenario through NICs"
        );
        notes.warnings.push(first[0].error(text).located());
    }
    if several > 0 && count > 0 {
        notes.notes.push(format!(
            "{}: {several} hosts have several links; every flow keeps one link at either end, which a hash of ropewalk chooses",
            graph.file.name
        ));
    }
    Ok(Flows { file, fields, list: flows, several: several > 0 })
}

impl<'a> Flows<'a> {
    /// The word that caused a value in the text of [`Flows::write`]: the value in this line, after the text `before`.
    pub(super) fn origin(&self, line: usize, before: &str) -> Token<'a> {
        let flow = line.checked_sub(HEAD.matches('\n').count()).and_then(|row| self.list.get(row));
        let Some(flow) = flow else { return word(self.file, 0, 0) };
        let n = match before.matches(',').count() {
            n @ (0 | 1) => n,
            2 => self.fields - 2,
            _ => self.fields - 1,
        };
        word(self.file, flow.at, n)
    }

    /// The settings of ECMP that give every flow its path in the simulator: flow files of HPCC's program have a column of
    /// destination ports, those of ConWeave's have none.
    pub(super) fn hash(&self, notes: &mut Notes) -> String {
        if self.several || self.list.is_empty() {
            return "{}".into();
        }
        if self.fields == 5 {
            return "{ hash = \"conweave\" }".into();
        }
        notes.notes.push(
            "HPCC's program orders equal paths by addresses in memory, so single flows may take other paths there: compare \
             distributions, not flows"
                .into(),
        );
        let port = self.list.first().and_then(|flow| flow.port).unwrap_or(100);
        if let Some(other) = self.list.iter().find(|flow| flow.port != Some(port)) {
            let text =
                format!("the hash that selects paths takes the destination port {port} for every flow");
            notes.warnings.push(word(self.file, other.at, 3).error(text).located());
        }
        format!("{{ hash = \"hpcc\", destination-port = {port} }}")
    }

    /// The first flow that starts after a time.
    pub(super) fn after(&self, stop: Time) -> Option<Token<'a>> {
        self.list.iter().find(|flow| flow.start > stop).map(|flow| word(self.file, flow.at, self.fields - 1))
    }

    /// True if there is no flow.
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(super) fn write(&self, toml: &mut String) {
        if self.list.is_empty() {
            return;
        }
        toml.push_str(HEAD);
        for Flow { from, to, bytes, start, .. } in &self.list {
            let bytes = Bytes(*bytes);
            let _ = writeln!(
                toml,
                "  {{ from = \"{from}\", to = \"{to}\", bytes = \"{bytes}\", start = \"{start}\" }},"
            );
        }
        toml.push_str("]\n");
    }
}
