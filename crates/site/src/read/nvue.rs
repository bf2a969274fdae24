//! NVUE of Cumulus Linux, in part: the name, interfaces, `qos roce` and adaptive routing.

use super::File;
use crate::facts::Facts;
use crate::ledger::WHOLE_FILE;
use crate::said::{Place, Said, rate};
use crate::sonic::{Cell, Switch};
use files::tree::Node;

/// Thresholds of marking that `qos roce` sets, bytes, and their probability (Cumulus Linux, RoCE page: 150 and 1,500 KB).
const ROCE_ECN: (u64, u64) = (150_000, 1_500_000);

pub(super) fn read(facts: &mut Facts, file: &File<'_>, documents: &[Node], root: &str) {
    let mut switch = Switch { name: file.device(root), folder: file.folder.clone(), ..Switch::default() };
    let mut all = Vec::new();
    for document in documents {
        let sets = document.items().iter().filter_map(|item| item.get("set")).chain(document.get("set"));
        let sets: Vec<&Node> = sets.collect();
        all.extend(if sets.is_empty() && document.items().is_empty() { vec![document] } else { sets });
    }
    let mut names = all.iter().filter_map(|set| set.at(&["system", "hostname"])?.text());
    if let Some(name) = names.next_back() {
        switch.name = files::printable::name(name);
    }
    if facts.switches.iter().any(|other| other.name == switch.name) {
        return facts.ledger.ignored(&file.line(1), WHOLE_FILE, "another file describes this switch");
    }
    let others =
        documents.iter().flat_map(Node::items).flat_map(Node::entries).filter(|(key, _)| key != "set");
    for (key, node) in others {
        let key = files::printable::on_one_line(key);
        let at = Place { file: file.name.clone(), line: node.line(), path: key.clone() };
        facts.ledger.ignored(&at, &key, "it sets nothing");
    }
    for (key, node) in all.iter().flat_map(|set| set.entries()) {
        walk(facts, &mut switch, file, key, node);
    }
    switch.cells.push(Cell {
        table: String::new(),
        field: String::new(),
        at: Place { file: file.name.clone(), line: 1, path: String::new() },
    });
    facts.switches.push(switch);
}

fn walk(facts: &mut Facts, switch: &mut Switch, file: &File<'_>, path: &str, node: &Node) {
    for (key, value) in node.entries() {
        walk(facts, switch, file, &format!("{path}.{key}"), value);
    }
    if !node.entries().is_empty() {
        return;
    }
    let at = Place { file: file.name.clone(), line: node.line(), path: files::printable::on_one_line(path) };
    let text = node.text().unwrap_or_default();
    let parts: Vec<&str> = path.split('.').collect();
    let speed = rate(text).filter(|bps| *bps >= 100_000_000);
    match (&parts[..], speed) {
        (["system", "hostname"], _) => {
            facts.ledger.read(&at, "system hostname", "switches of [topology.links]")
        }
        (["interface", ports, "link", "speed"], Some(bps)) => {
            for port in interfaces(ports) {
                let port = switch.ports.entry(port).or_default();
                port.speed = Some(Said { value: bps, at: at.clone() });
            }
            facts.ledger.read(&at, "interface link speed", "rates of [topology.links]");
        }
        (["interface", ports, "type"], _) if text == "swp" => {
            for port in interfaces(ports) {
                switch.ports.entry(port).or_default();
            }
            facts.ledger.read(&at, "interface type", "ports of the switch");
        }
        (["interface", ports, "link", "state", state], _) => {
            for port in interfaces(ports) {
                switch.ports.entry(port).or_default().is_down = *state == "down";
            }
            facts.ledger.read(&at, "interface link state", "ports of the switch");
        }
        (["qos", "roce", "enable"], _) if ["off", "disabled"].contains(&text) => {
            facts.ledger.ignored(&at, "qos roce enable", "RoCE is off")
        }
        (["qos", "roce", "mode" | "enable"], _) => {
            let said = |toml: &str| Said { value: toml.to_owned(), at: at.clone() };
            let (kmin, kmax) = ROCE_ECN;
            let ecn = |gbps: u64| {
                format!("{{ rate = \"{gbps}Gbps\", kmin = \"{kmin}B\", kmax = \"{kmax}B\", pmax = 1.0 }}")
            };
            let rates = [25, 50, 100, 200, 400, 800].map(ecn).join(", ");
            switch.direct.retain(|(key, _)| *key != "switch.pfc" && *key != "switch.ecn.at-rate");
            if text == "lossy" {
                switch.direct.push(("switch.pfc", said("\"off\"")));
            }
            switch.direct.push(("switch.ecn.at-rate", said(&format!("[{rates}]"))));
            facts.ledger.read(
                &at,
                "qos roce",
                "switch.pfc, and switch.ecn as Cumulus sets it: 150 kB to 1.5 MB",
            );
        }
        (["router", "adaptive-routing", "enable"], _) if ["on", "enabled", "true"].contains(&text) => {
            let said = Said { value: "{ profile = \"spectrum\" }".to_owned(), at: at.clone() };
            switch.direct.retain(|(key, _)| *key != "scheme.ars");
            switch.direct.push(("scheme.ars", said));
            facts.ledger.read(&at, "adaptive-routing", "scheme.ars, with the profile spectrum");
        }
        (["router", "adaptive-routing", ..], _) | (["interface", _, "router", "adaptive-routing", ..], _) => {
            let why = "adaptive routing is on for all ports of a switch, or off, with NVIDIA's defaults";
            facts.ledger.ignored(&at, "adaptive-routing", why);
        }
        (["interface", ..], _) => {
            let field = format!("interface {}", parts.get(2..).unwrap_or_default().join(" "));
            facts.ledger.ignored(
                &at,
                &files::printable::on_one_line(&field),
                "it is no speed and no state of a port",
            );
        }
        _ => {
            let field = parts.iter().take(2).copied().collect::<Vec<_>>().join(" ");
            facts.ledger.ignored(
                &at,
                &files::printable::on_one_line(&field),
                "it is no speed, RoCE setting or name",
            );
        }
    }
}

/// Most ports of a range. Our choice: more than any switch has.
const MOST: u32 = 1_024;

/// The ports of `swp1`, `swp1-4` or `swp1,swp3-5`.
fn interfaces(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    for part in text.split(',') {
        let range = part.rsplit_once('-').and_then(|(first, last)| {
            let digits = first.len() - first.trim_end_matches(|c: char| c.is_ascii_digit()).len();
            let (name, from) = first.split_at(first.len() - digits);
            let (from, to) = (from.parse::<u32>().ok()?, last.parse::<u32>().ok()?);
            (from <= to && to - from < MOST).then_some((name, from, to))
        });
        match range {
            Some((name, from, to)) => all.extend((from..=to).map(|i| format!("{name}{i}"))),
            None => all.push(part.to_owned()),
        }
    }
    all
}
