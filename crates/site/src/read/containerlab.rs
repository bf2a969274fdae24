//! Topologies of containerlab: nodes with kinds, and links without rates.

use super::File;
use crate::facts::{Edge, End, Facts, Known};
use crate::said::Place;
use files::tree::Node;

/// Kinds of nodes that are hosts: containers and virtual machines without forwarding.
const HOSTS: &[&str] = &["linux", "host", "ext-container", "generic_vm", "kind", "k8s-kind"];

pub(super) fn read(facts: &mut Facts, file: &File<'_>, root: &Node) {
    // `topology-data.json`, which containerlab writes, has the nodes at its top.
    let topology = root.get("topology").unwrap_or(root);
    let default = topology.at(&["defaults", "kind"]).and_then(Node::text);
    for (name, node) in topology.get("nodes").map_or(&[][..], Node::entries) {
        let group = node.word("group").and_then(|group| topology.at(&["groups", group, "kind"])?.text());
        let kind = node.word("kind").or(group).or(default).unwrap_or("linux");
        let at = place(file, node.line(), &format!("topology.nodes.{name}"));
        facts.ledger.read(&at, "kind of a node", "hosts and switches of [topology.links]");
        let is_host = HOSTS.contains(&kind);
        facts.nodes.push(Known { name: files::printable::name(name), is_host, role: None });
        for (field, value) in node.entries().iter().filter(|(field, _)| field != "kind") {
            let at = place(file, value.line(), &format!("topology.nodes.{name}.{field}"));
            let field = format!("{} of a node", files::printable::on_one_line(field));
            facts.ledger.ignored(&at, &field, "it is about the container, not about the fabric");
        }
    }
    for (i, link) in topology.get("links").map_or(&[][..], Node::items).iter().enumerate() {
        let at = place(file, link.line(), &format!("topology.links.{i}"));
        let ends: Vec<End> = match link.get("endpoints") {
            Some(ends) => ends.items().iter().filter_map(of_endpoint).collect(),
            None => ["a", "z"].iter().filter_map(|side| of_table(link.get(side)?)).collect(),
        };
        match <[End; 2]>::try_from(ends) {
            Ok(ends) => {
                facts.ledger.read(&at, "endpoints of a link", "links of [topology.links]");
                facts.edges.push(Edge { ends, rate: None, delay: None, at });
            }
            Err(_) => facts.ledger.ignored(&at, "a link", "expected two endpoints such as \"leaf1:eth1\""),
        }
    }
    let others =
        root.entries().iter().filter(|(key, _)| !["topology", "nodes", "links"].contains(&key.as_str()));
    for (key, node) in others {
        let key = files::printable::on_one_line(key);
        facts.ledger.ignored(
            &place(file, node.line(), &key),
            &key,
            "it is about the laboratory, not about the fabric",
        );
    }
    let inside = topology.entries().iter().filter(|(key, _)| !["nodes", "links"].contains(&key.as_str()));
    for (key, node) in inside.filter(|_| root.get("topology").is_some()) {
        let key = files::printable::on_one_line(key);
        facts.ledger.ignored(
            &place(file, node.line(), &key),
            &key,
            "it is about containers, not about the fabric",
        );
    }
}

fn place(file: &File<'_>, line: usize, path: &str) -> Place {
    Place { file: file.name.clone(), line, path: files::printable::on_one_line(path) }
}

fn of_endpoint(node: &Node) -> Option<End> {
    match node.text() {
        Some(text) => {
            let (name, port) = text.split_once(':').map_or((text, None), |(name, port)| (name, Some(port)));
            Some(End::new(name, port))
        }
        // The long form: `{ node: leaf1, interface: eth1 }`.
        None => of_table(node),
    }
}

fn of_table(node: &Node) -> Option<End> {
    Some(End::new(node.word("node")?, node.word("interface").or(node.word("label"))))
}
