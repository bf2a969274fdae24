//! `ibnetdiscover`: switches and adapters of an InfiniBand subnet with their ports.

use super::File;
use crate::facts::{Edge, End, Facts, Known};
use crate::said::{Said, rate};
use std::collections::BTreeMap;

pub(super) fn read(facts: &mut Facts, file: &File<'_>) {
    // A node's own line has its name; lines of ports name the other end by its GUID.
    let mut names: BTreeMap<&str, String> = BTreeMap::new();
    for (line, text) in file.lines() {
        let Some((kind, _, id, description)) = node(text) else { continue };
        let base = match kind {
            "Ca" => description.split_whitespace().next().unwrap_or(id),
            _ => description.split(':').next().unwrap_or(description).trim_start_matches("MF0;"),
        };
        let name = files::printable::name(base.trim());
        // Switches of one kind often have one description, and the NICs of a server have its name: a host of several ports.
        let taken = names.values().any(|other| *other == name);
        let name = if name.is_empty() || kind != "Ca" && taken { id.to_owned() } else { name };
        facts.ledger.read(&file.line(line), kind, "hosts and switches of [topology.links]");
        facts.nodes.push(Known { name: name.clone(), is_host: kind == "Ca", role: None });
        names.insert(id, name);
    }
    let mut current: Option<&str> = None;
    let mut seen: BTreeMap<(String, String), ()> = BTreeMap::new();
    for (line, text) in file.lines() {
        if let Some((_, _, id, _)) = node(text) {
            current = Some(id);
            continue;
        }
        let at = file.line(line);
        if !text.trim_start().starts_with('[') {
            if let Some((field, _)) = text.split_once('=') {
                let field = files::printable::on_one_line(field.trim());
                facts.ledger.ignored(&at, &field, "an identifier");
            } else {
                facts.ledger.ignored(&at, "a line", "it is no node and no port");
            }
            continue;
        }
        let (Some(own), Some((port, peer, peer_port))) = (current, joined(text)) else {
            facts.ledger.ignored(&at, "a port", "expected [PORT] \"GUID\"[PORT] behind a node");
            continue;
        };
        let id = |guid: &str, port: &str| (guid.to_owned(), port.to_owned());
        // Both ends list a link.
        if seen.contains_key(&id(peer, peer_port)) {
            continue;
        }
        seen.insert(id(own, port), ());
        let (Some(a), Some(b)) = (names.get(own), names.get(peer)) else {
            facts.ledger.ignored(&at, "a port", "no line describes the node at its other end");
            continue;
        };
        // The rate stands behind the names: `4xNDR`.
        let speed = text.rsplit_once('x').and_then(|(before, lane)| {
            let lanes = before.rsplit(|c: char| !c.is_ascii_digit()).next()?;
            rate(&format!("{lanes}x{}", lane.split_whitespace().next()?))
        });
        facts.ledger.read(&at, "a port", "links and rates of [topology.links]");
        // Ports of several adapters of one host have equal numbers.
        let end = |guid: &str, name: &str, port: &str| End::new(name, Some(&format!("{guid}[{port}]")));
        facts.edges.push(Edge {
            ends: [end(own, a, port), end(peer, b, peer_port)],
            rate: speed.map(|value| Said { value, at: at.clone() }),
            delay: None,
            at,
        });
    }
    facts
        .ledger
        .assumed("an InfiniBand subnet runs here as RoCE with PFC: credits of links are not modelled");
}

/// Kind, number of ports, GUID and description of a node's line.
fn node(text: &str) -> Option<(&str, &str, &str, &str)> {
    let text = text.trim_start();
    let kind = ["Switch", "Ca", "Rt"]
        .into_iter()
        .find(|kind| text.strip_prefix(kind).is_some_and(|rest| rest.starts_with([' ', '\t'])))?;
    let rest = text[kind.len()..].trim_start();
    let (ports, rest) = rest.split_once(char::is_whitespace)?;
    let mut quoted = rest.split('"');
    let id = quoted.nth(1)?;
    let description = quoted.nth(1).unwrap_or(id);
    Some((kind, ports, id, description))
}

/// Own port, GUID and port of the other end: `[1](guid) "H-0002"[1](guid) # "node1 mlx5_0" lid 4 4xHDR`.
fn joined(text: &str) -> Option<(&str, &str, &str)> {
    let (port, rest) = text.trim_start().strip_prefix('[')?.split_once(']')?;
    let (_, rest) = rest.split_once('"')?;
    let (guid, rest) = rest.split_once('"')?;
    let (peer_port, _) = rest.strip_prefix('[')?.split_once(']')?;
    Some((port, guid, peer_port))
}
