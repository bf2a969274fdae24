//! Counts by port, from the tables of a run.

use finding::{Finding, code};
use results::Results;
use results::table::Table;
use std::collections::BTreeMap;

/// A port and its counts.
#[derive(Clone, Debug)]
pub(crate) struct Port {
    /// `leaf0:3`, or the name of a NIC's port.
    pub(crate) name: String,
    pub(crate) node: String,
    /// By path, such as `out.pauses`. Of a switch's pool, every port has those of its switch.
    counts: BTreeMap<String, f64>,
}

impl Port {
    pub(crate) fn count(&self, path: &str) -> f64 {
        self.counts.get(path).copied().unwrap_or(0.0)
    }
}

fn table<'r>(results: &'r Results, name: &str) -> Result<&'r Table, Finding> {
    let text = || {
        format!("the results have no table `{name}`: they are of an older version; run the scenario again")
    };
    results.table(name).ok_or_else(|| code::MISSING.plain(text()))
}

/// The numbers of a row under their columns, with `start` before them.
fn numbers(table: &Table, row: usize, start: &str, into: &mut BTreeMap<String, f64>) {
    for field in table.schema().fields() {
        let count = table.counts(field.name()).map(|column| column.value(row) as f64);
        let value = count.or_else(|| Some(table.reals(field.name())?.value(row)));
        into.extend(value.map(|value| (format!("{start}.{}", field.name()), value)));
    }
}

/// The ports of hosts, or those of switches.
pub(crate) fn of(results: &Results, at_hosts: bool) -> Result<Vec<Port>, Finding> {
    let (nics, links) = (table(results, "nics")?, table(results, "links")?);
    let older = || code::MISSING.plain("the results are of an older version: run the scenario again");
    let (hosts, nodes, nic_ports) = (
        nics.texts("host").ok_or_else(older)?,
        nics.texts("node").ok_or_else(older)?,
        nics.counts("port").ok_or_else(older)?,
    );
    let (from, to) = (links.texts("from").ok_or_else(older)?, links.texts("to").ok_or_else(older)?);
    let (port, peer) =
        (links.counts("port").ok_or_else(older)?, links.counts("peer_port").ok_or_else(older)?);
    let mut nic_of: BTreeMap<(&str, u64), usize> = BTreeMap::new();
    for row in 0..nics.rows() {
        nic_of.insert((nodes.value(row), nic_ports.value(row)), row);
    }
    let mut into: BTreeMap<(&str, u64), usize> = BTreeMap::new();
    for row in 0..links.rows() {
        into.insert((to.value(row), peer.value(row)), row);
    }
    let (groups, pools) = (most_by_port(results), most_by_switch(results));
    let mut all = Vec::new();
    for row in 0..links.rows() {
        let key = (from.value(row), port.value(row));
        let nic = nic_of.get(&key).copied();
        if nic.is_some() != at_hosts {
            continue;
        }
        let mut counts = BTreeMap::new();
        numbers(links, row, "out", &mut counts);
        if let Some(back) = into.get(&key) {
            numbers(links, *back, "in", &mut counts);
        }
        if let Some(nic) = nic {
            numbers(nics, nic, "nics", &mut counts);
        }
        counts.extend(groups.get(&(key.0.to_owned(), key.1)).into_iter().flatten().cloned());
        counts.extend(pools.get(key.0).into_iter().flatten().cloned());
        let name = nic.map_or_else(|| format!("{}:{}", key.0, key.1), |nic| hosts.value(nic).to_owned());
        all.push(Port { name, node: key.0.to_owned(), counts });
    }
    Ok(all)
}

/// Counts under their paths.
type Counts = Vec<(String, f64)>;

/// The most room that a priority group of each port has taken; none if the run has not recorded queues.
fn most_by_port(results: &Results) -> BTreeMap<(String, u64), Counts> {
    let mut all: BTreeMap<(String, u64), Counts> = BTreeMap::new();
    let Some(table) = results.table("priority_groups") else { return all };
    let (Some(nodes), Some(ports)) = (table.texts("node"), table.counts("port")) else { return all };
    for row in 0..table.rows() {
        let own = room(table, row, "groups");
        all.entry((nodes.value(row).to_owned(), ports.value(row)))
            .and_modify(|most| most.iter_mut().zip(&own).for_each(|(most, own)| most.1 = most.1.max(own.1)))
            .or_insert(own);
    }
    all
}

/// The most room that the pool of each switch has given; none if the run has not recorded queues.
fn most_by_switch(results: &Results) -> BTreeMap<String, Counts> {
    let Some(table) = results.table("pools") else { return BTreeMap::new() };
    let Some(nodes) = table.texts("node") else { return BTreeMap::new() };
    (0..table.rows()).map(|row| (nodes.value(row).to_owned(), room(table, row, "pools"))).collect()
}

fn room(table: &Table, row: usize, start: &str) -> Counts {
    let count = |name: &str| Some((format!("{start}.{name}"), table.counts(name)?.value(row) as f64));
    ["max_shared_bytes", "max_headroom_bytes"].into_iter().filter_map(count).collect()
}
