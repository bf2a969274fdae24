//! Flow files: the number of flows, then one flow per line, `from to class port bytes start`; the port may be missing.
//! Starts are in seconds and ascend.

use super::File;
use super::tokens::{end, lines};
use super::topology::Graph;
use crate::Error;
use model::{Bytes, Time};
use std::fmt::Write;

/// A flow: from, to, bytes, start.
pub(super) type Flow = (u32, u32, u64, Time);

pub(super) fn read(file: File<'_>, graph: &Graph, warnings: &mut Vec<String>) -> Result<Vec<Flow>, Error> {
    let mut lines = lines(file);
    let Some(first) = lines.next() else {
        return Err(end(file, "the flow file is empty; expected the number of flows"));
    };
    let count: u64 = first[0].number("the number of flows")?;
    if let Some(word) = first.get(1) {
        return Err(word.error("expected only the number of flows in the first line"));
    }
    let mut flows: Vec<Flow> = Vec::new();
    let mut fields = 0;
    for line in lines {
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
        let (size, begin) = (line[fields - 2], line[fields - 1]);
        let bytes: u64 = size.number("a size in bytes")?;
        if bytes == 0 {
            return Err(size.error("expected at least 1 byte, found 0"));
        }
        let start = begin.time()?;
        if let Some(&(_, _, _, before)) = flows.last().filter(|last| last.3 > start) {
            let text =
                format!("flows must be in order of their starts; found a start at {start} after {before}");
            return Err(begin.error(text));
        }
        flows.push((from, to, bytes, start));
    }
    if (flows.len() as u64) < count {
        let text = format!("the file ends after {} flows; its first line states {count}", flows.len());
        return Err(end(file, text));
    }
    if flows.len() as u64 > count {
        warnings.push(
            first[0]
                .error(format!("the first line states {count} flows; there are {}", flows.len()))
                .located(),
        );
    }
    Ok(flows)
}

pub(super) fn write(flows: &[Flow], toml: &mut String) {
    toml.push_str("[[workload]]\nname = \"flows\"\nqp = \"per-message\"\n[workload.flows]\nlist = [\n");
    for (from, to, bytes, start) in flows {
        let bytes = Bytes(*bytes);
        let _ = writeln!(
            toml,
            "  {{ from = \"n{from}\", to = \"n{to}\", bytes = \"{bytes}\", start = \"{start}\" }},"
        );
    }
    toml.push_str("]\n");
}
