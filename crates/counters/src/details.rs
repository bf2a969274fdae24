//! Counters by queue and by priority group, if the run recorded them.

use crate::{Name, is_peak};
use results::Results;
use results::table::Table;
use serde::Serialize;
use std::collections::BTreeMap;

/// Counters by queue or by priority group, over the ports of a view.
#[derive(Clone, Debug, Serialize)]
pub struct Details {
    /// What a row is for: `queue` or `priority group`.
    pub by: &'static str,
    /// Names of the counters.
    pub counters: Vec<&'static str>,
    /// A row per queue or priority group.
    pub rows: Vec<Part>,
}

/// A queue, or a priority group.
#[derive(Clone, Debug, Serialize)]
pub struct Part {
    /// Its number.
    pub number: u64,
    /// Kinds of its packets; empty for a priority group.
    pub kinds: String,
    /// A count per counter.
    pub counts: Vec<Count>,
}

/// A count of a queue or a priority group.
#[derive(Clone, Debug, Serialize)]
pub struct Count {
    /// Sum over the ports; of the most bytes, the most.
    pub total: f64,
    /// For the most bytes, the port that had them; `None` if nothing waited.
    pub at: Option<String>,
}

/// A table of a run whose rows are parts of a port: how it names the part, its columns of node, number and kinds, and the scope of its
/// counters.
struct Kind {
    by: &'static str,
    table: &'static str,
    scope: &'static str,
    node: &'static str,
    number: &'static str,
    kinds: Option<&'static str>,
}

const KINDS: [Kind; 2] = [
    Kind {
        by: "queue",
        table: "queues",
        scope: "queue",
        node: "from",
        number: "queue",
        kinds: Some("kinds"),
    },
    Kind {
        by: "priority group",
        table: "priority_groups",
        scope: "group",
        node: "node",
        number: "priority",
        kinds: None,
    },
];

/// The details that the run has, at the ports of which `is_shown` holds.
pub(crate) fn of(results: &Results, names: &[Name], is_shown: impl Fn(&str) -> bool) -> Vec<Details> {
    KINDS.iter().filter_map(|kind| details(results.table(kind.table)?, kind, names, &is_shown)).collect()
}

fn details(table: &Table, kind: &Kind, names: &[Name], is_shown: &impl Fn(&str) -> bool) -> Option<Details> {
    let column = |name: &Name| Some((*name, name.of?.split_once('.')?.1));
    let columns: Vec<(Name, &str)> =
        names.iter().filter(|name| name.scope == kind.scope).filter_map(column).collect();
    let (nodes, ports, numbers) =
        (table.texts(kind.node)?, table.counts("port")?, table.counts(kind.number)?);
    let kinds = kind.kinds.and_then(|kinds| table.texts(kinds));
    let mut parts: BTreeMap<u64, Part> = BTreeMap::new();
    for row in 0..table.rows() {
        let port = format!("{}:{}", nodes.value(row), ports.value(row));
        if !is_shown(&port) {
            continue;
        }
        let number = numbers.value(row);
        let part = parts.entry(number).or_insert_with(|| Part {
            number,
            kinds: kinds.as_ref().map_or_else(String::new, |kinds| kinds.value(row).to_owned()),
            counts: vec![Count { total: 0.0, at: None }; columns.len()],
        });
        for (count, (name, column)) in part.counts.iter_mut().zip(&columns) {
            let own = table.counts(column)?.value(row) as f64;
            if !is_peak(name) {
                count.total += own;
            } else if own > count.total {
                *count = Count { total: own, at: Some(port.clone()) };
            }
        }
    }
    (!columns.is_empty() && !parts.is_empty()).then(|| Details {
        by: kind.by,
        counters: columns.iter().map(|(name, _)| name.counter).collect(),
        rows: parts.into_values().collect(),
    })
}
