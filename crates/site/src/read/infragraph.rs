//! Graphs of InfraGraph, as YAML or JSON: devices with components, instances of them, and edges between slices.

use super::File;
use crate::facts::{Edge, End, Facts, Known, Servers};
use crate::said::{Place, Said};
use files::tree::Node;
use std::collections::{BTreeMap, BTreeSet};

/// Most ends that an edge's slices may have together. Our choice: the ports of the largest fabrics.
const MOST: usize = 100_000;

/// A device by its components.
#[derive(Default)]
struct Device<'a> {
    /// Count and kind of each component.
    components: BTreeMap<&'a str, (usize, &'a str)>,
    node: Option<&'a Node>,
}

pub(super) fn read(facts: &mut Facts, file: &File<'_>, root: &Node) {
    let graph = root.get("infrastructure").filter(|inner| !inner.entries().is_empty()).unwrap_or(root);
    let mut devices: BTreeMap<&str, Device<'_>> = BTreeMap::new();
    for device in list(graph, &["devices", "device"]) {
        let mut own = Device { node: Some(device), ..Device::default() };
        for component in list(device, &["components"]) {
            let count = component.word("count").and_then(|count| count.parse().ok()).unwrap_or(1);
            let kind = component.word("choice").or(component.word("type")).unwrap_or("custom");
            if let Some(name) = component.word("name") {
                own.components.insert(name, (count, kind));
            }
        }
        let name = device.word("name").unwrap_or_default();
        let place = at(file, device, &format!("devices.{name}"));
        facts.ledger.read(&place, "a device", "hosts and switches of [topology.links], [server]");
        for edge in list(device, &["edges", "connections"]) {
            let place = at(file, edge, &format!("devices.{name}.edges"));
            let link = edge.word("link").unwrap_or_default().to_lowercase();
            match link.contains("nv") || link.contains("xgmi") || link.contains("infinity") {
                true => facts.ledger.read(&place, "an edge in a device", "server.nvlink"),
                false => facts.ledger.ignored(
                    &place,
                    "an edge in a device",
                    "the inside of a device (PCIe, ASIC) is not modelled",
                ),
            }
        }
        devices.insert(name, own);
    }
    let links: BTreeMap<&str, &Node> =
        list(graph, &["links"]).filter_map(|link| Some((link.word("name")?, link))).collect();
    let mut instances: BTreeMap<&str, (usize, &str)> = BTreeMap::new();
    for instance in list(graph, &["instances"]) {
        let (Some(name), Some(device)) = (instance.word("name"), instance.word("device")) else { continue };
        let count = instance.word("count").and_then(|count| count.parse().ok()).unwrap_or(1);
        instances.insert(name, (count, device));
        facts.ledger.read(
            &at(file, instance, &format!("instances.{name}")),
            "an instance",
            "names of hosts and switches",
        );
    }
    if instances.is_empty() {
        let why = "it describes devices and no fabric of them: [server] alone comes from it";
        facts.ledger.ignored(&at(file, graph, "instances"), "instances", why);
    }
    for (i, edge) in list(graph, &["edges"]).enumerate() {
        let place = at(file, edge, &format!("edges.{i}"));
        match expanded(edge, &instances, &devices) {
            Ok(pairs) => {
                facts.ledger.read(&place, "an edge", "links of [topology.links]");
                let (rate, delay) =
                    edge.word("link").map_or((None, None), |link| physical(file, &links, link));
                let pair = |(a, b)| Edge {
                    ends: [a, b],
                    rate: rate.clone(),
                    delay: delay.clone(),
                    at: place.clone(),
                };
                facts.edges.extend(pairs.into_iter().map(pair));
            }
            Err(why) => facts.ledger.ignored(&place, "an edge", &why),
        }
    }
    for (i, connection) in list(graph, &["connections"]).enumerate() {
        let place = at(file, connection, &format!("connections.{i}"));
        // Files of before version 3: node.index.component.index.link.node.index.component.index.
        let parts: Vec<&str> = connection.text().unwrap_or_default().split('.').collect();
        let [a, ai, ac, aci, link, b, bi, bc, bci] = parts[..] else {
            facts.ledger.ignored(
                &place,
                "a connection",
                "expected NODE.INDEX.COMPONENT.INDEX.LINK.NODE.INDEX.COMPONENT.INDEX",
            );
            continue;
        };
        let end = |node: &str, i: &str, component: &str, ci: &str| {
            End::new(&format!("{node}{i}"), Some(&format!("{component}.{ci}")))
        };
        let (rate, delay) = physical(file, &links, link);
        facts.ledger.read(&place, "a connection", "links of [topology.links]");
        facts.edges.push(Edge { ends: [end(a, ai, ac, aci), end(b, bi, bc, bci)], rate, delay, at: place });
    }
    known(facts, file, &instances, &devices);
}

/// The items of the first of these keys that there is; a device may be written in parts of its own.
fn list<'a>(node: &'a Node, keys: &[&str]) -> impl Iterator<Item = &'a Node> + use<'a> {
    keys.iter().find_map(|key| node.get(key)).map_or(&[][..], Node::items).iter()
}

fn at(file: &File<'_>, node: &Node, path: &str) -> Place {
    Place { file: file.name.clone(), line: node.line(), path: files::printable::on_one_line(path) }
}

/// Hosts, switches, and what a server has.
fn known(
    facts: &mut Facts,
    file: &File<'_>,
    instances: &BTreeMap<&str, (usize, &str)>,
    devices: &BTreeMap<&str, Device<'_>>,
) {
    let of_kind = |device: &Device<'_>, kind: &str| -> usize {
        let all = device
            .components
            .iter()
            .filter(|(name, (_, own))| *own == kind || kind == "xpu" && **name == "xpu");
        all.map(|(_, (count, _))| *count).sum()
    };
    for (name, (count, device)) in instances {
        let Some(device) = devices.get(device) else { continue };
        let gpus = of_kind(device, "xpu");
        for i in 0..(*count).min(MOST) {
            facts.nodes.push(Known {
                name: format!("{name}{i}"),
                is_host: gpus > 0,
                role: (gpus == 0).then(|| (*name).to_owned()),
            });
        }
        let Some(node) = device.node.filter(|_| gpus > 0 && facts.servers.is_none()) else { continue };
        let inner = list(node, &["links"])
            .filter(|link| link.word("name").is_some_and(|name| name.to_lowercase().contains("nv")));
        let links: BTreeMap<&str, &Node> =
            inner.filter_map(|link| Some((link.word("name")?, link))).collect();
        let nvlink = links.keys().next().and_then(|name| physical(file, &links, name).0);
        let at = at(file, node, "devices");
        facts.servers = Some(Servers { gpus, nvlink: nvlink.map(|said| said.value), nics: None, at });
    }
}

/// Bandwidth in bits per second and latency in picoseconds of a link.
fn physical(
    file: &File<'_>,
    links: &BTreeMap<&str, &Node>,
    name: &str,
) -> (Option<Said<u64>>, Option<Said<u64>>) {
    let Some(link) = links.get(name) else { return (None, None) };
    let physical = link.get("physical").unwrap_or(link);
    let number = |table: &str, range: std::ops::RangeInclusive<f64>, units: &[(&str, f64)]| {
        let table = physical.get(table)?;
        units.iter().find_map(|(unit, factor)| {
            let value: f64 = table.word(unit)?.parse().ok()?;
            let value = value * factor;
            let said = Said { value: value as u64, at: at(file, table, &format!("links.{name}")) };
            range.contains(&value).then_some(said)
        })
    };
    let bandwidth = number(
        "bandwidth",
        // What links of ropewalk can have.
        1e8..=1e14,
        &[
            ("gigabits_per_second", 1e9),
            ("gigabytes_per_second", 8e9),
            ("giga_bits_per_second", 1e9),
            ("giga_bytes_per_second", 8e9),
        ],
    );
    (bandwidth, number("latency", 1.0..=1e13, &[("ns", 1e3), ("us", 1e6), ("ms", 1e9)]))
}

/// The pairs of ends of an edge by its scheme.
fn expanded(
    edge: &Node,
    instances: &BTreeMap<&str, (usize, &str)>,
    devices: &BTreeMap<&str, Device<'_>>,
) -> Result<Vec<(End, End)>, String> {
    let side = |key: &str| ends(edge.get(key).ok_or_else(|| format!("it has no {key}"))?, instances, devices);
    let (one, other) = (side("ep1")?, side("ep2")?);
    let apart = |(a, b): &(End, End)| a != b;
    match edge.word("scheme").unwrap_or("one2one") {
        "one2one" => Ok(one.into_iter().zip(other).filter(apart).collect()),
        "many2many" => {
            if one.len().saturating_mul(other.len()) > MOST {
                return Err(format!("its slices have more than {MOST} pairs"));
            }
            // A port has one cable, so that ports do not count where all are joined with all.
            let free = |end: &End| End { node: end.node.clone(), port: None };
            let pairs = one.iter().flat_map(|a| other.iter().map(move |b| (free(a), free(b))));
            Ok(pairs.filter(|(a, b)| a.node != b.node).collect())
        }
        "ring" => {
            let mut seen = BTreeSet::new();
            let ends = one.into_iter().chain(other).filter(|end| seen.insert(end.node.clone()));
            let all: Vec<End> = ends.map(|end| End { node: end.node, port: None }).collect();
            let next = all.iter().cycle().skip(1);
            let links = if all.len() == 2 { 1 } else { all.len() };
            Ok(all.iter().cloned().zip(next.cloned()).take(links).collect())
        }
        other => Err(format!("the scheme {other} is none of one2one, many2many and ring")),
    }
}

/// The ends of one side: every instance of the slice with every component of the slice.
fn ends(
    endpoint: &Node,
    instances: &BTreeMap<&str, (usize, &str)>,
    devices: &BTreeMap<&str, Device<'_>>,
) -> Result<Vec<End>, String> {
    let word = |key: &str| endpoint.word(key).ok_or_else(|| format!("an end has no {key}"));
    let (instance, component) = (word("instance").or_else(|_| word("device"))?, word("component")?);
    let name = instance.split(['[', '.']).next().unwrap_or(instance);
    let (count, device) = instances.get(name).ok_or_else(|| format!("there is no instance {name}"))?;
    let numbers = slice(instance, *count)?;
    let mut parts: Vec<String> = vec![String::new()];
    let mut inside = devices.get(device);
    for element in component.split('.') {
        let name = element.split('[').next().unwrap_or(element);
        let count = inside.and_then(|device| device.components.get(name)).map_or(1, |(count, _)| *count);
        let all = slice(element, count)?;
        if parts.len().saturating_mul(all.len()) > MOST {
            return Err(format!("its slices have more than {MOST} ends"));
        }
        parts =
            parts.iter().flat_map(|before| all.iter().map(move |i| format!("{before}.{name}.{i}"))).collect();
        inside = devices.get(name);
    }
    if parts.len().saturating_mul(numbers.len()) > MOST {
        return Err(format!("its slices have more than {MOST} ends"));
    }
    let end = |i: &usize, part: &String| End::new(&format!("{name}{i}"), Some(part.trim_start_matches('.')));
    Ok(numbers.iter().flat_map(|i| parts.iter().map(move |part| end(i, part))).collect())
}

/// The numbers of `name`, `name[3]`, `name[0:4]` or `name[0:8:2]`, as slices of Python.
fn slice(text: &str, count: usize) -> Result<Vec<usize>, String> {
    let wrong = || format!("{text} is no slice such as nic[0:4]");
    let Some((_, rest)) = text.split_once('[') else { return Ok((0..count.min(MOST)).collect()) };
    let inside = rest.split(']').next().unwrap_or(rest);
    let parts: Vec<&str> = inside.split(':').map(str::trim).collect();
    let number = |i: usize, default: usize| match parts.get(i) {
        None | Some(&"") => Ok(default),
        Some(text) => text.parse::<usize>().map_err(|_| wrong()),
    };
    let (start, stop, step) = match parts.len() {
        1 if !parts[0].is_empty() => (number(0, 0)?, number(0, 0)?.saturating_add(1), 1),
        1..=3 => (number(0, 0)?, number(1, count)?, number(2, 1)?),
        _ => return Err(wrong()),
    };
    if step == 0 || stop.saturating_sub(start) > MOST {
        return Err(wrong());
    }
    Ok((start..stop).step_by(step).collect())
}
