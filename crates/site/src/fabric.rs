//! The fabric: cables of all files joined to one graph of hosts, switches and links.

use crate::facts::{Edge, End, Facts, Known};
use crate::said::{Place, Said};
use crate::sonic::{Port, Switch};
use crate::view::Whole;
use finding::{Finding, code};
use scenario::headroom::METRE;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// The graph.
#[derive(Debug, Default)]
pub(crate) struct Fabric {
    pub(crate) hosts: Vec<String>,
    /// Names and roles of the switches.
    pub(crate) switches: Vec<(String, String)>,
    pub(crate) links: Vec<Edge>,
}

impl Fabric {
    /// The ports of all nodes that have links, by node, with the rates of these in bits per second.
    pub(crate) fn ports(&self) -> BTreeMap<String, BTreeMap<String, u64>> {
        let mut all: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
        for link in &self.links {
            let rate = link.rate.as_ref().map_or(0, |rate| rate.value);
            for end in &link.ends {
                let own = all.entry(end.node.clone()).or_default();
                own.extend(end.port.clone().map(|port| (port, rate)));
            }
        }
        all
    }

    /// What settings of a switch need to know of all links.
    pub(crate) fn whole(&self) -> Whole {
        let switches: BTreeSet<&str> = self.switches.iter().map(|(name, _)| name.as_str()).collect();
        let rates = self.links.iter().filter_map(|link| Some(link.rate.as_ref()?.value)).collect();
        let mut degrees: BTreeMap<&str, usize> = BTreeMap::new();
        for link in &self.links {
            let ends = link.ends.each_ref().map(|end| end.node.as_str());
            if ends.iter().all(|node| switches.contains(node)) {
                ends.iter().for_each(|node| *degrees.entry(node).or_default() += 1);
            }
        }
        Whole { rates, next_hops: degrees.into_values().max().unwrap_or(0) }
    }
}

/// A port of a switch by its name or its alias.
pub(crate) fn port<'a>(switch: &'a Switch, name: &str) -> Option<(&'a String, &'a Port)> {
    let by_alias = || switch.ports.iter().find(|(_, port)| port.alias.as_deref() == Some(name));
    switch.ports.get_key_value(name).or_else(by_alias)
}

/// Joins the edges of all files.
///
/// # Errors
/// If the files join fewer than two hosts.
pub(crate) fn build(facts: &mut Facts) -> Result<Fabric, Finding> {
    let mut edges = neighbours(facts);
    edges.append(&mut facts.edges);
    edges.retain(|edge| {
        let is_other = edge.ends.iter().any(is_management);
        if is_other {
            facts.ledger.ignored(&edge.at, "cable", "it is in the network of management, by its name");
        }
        !is_other
    });
    let names: BTreeMap<String, usize> =
        facts.switches.iter().enumerate().map(|(i, switch)| (switch.name.clone(), i)).collect();
    for edge in &mut edges {
        for end in &mut edge.ends {
            // LLDP has the name with its domain.
            if let Some((short, _)) = end.node.split_once('.')
                && !names.contains_key(&end.node)
                && names.contains_key(short)
            {
                end.node = short.to_owned();
            }
            let known = names.get(&end.node).map(|i| &facts.switches[*i]);
            if let (Some(switch), Some(name)) = (known, &end.port)
                && let Some((name, port)) = port(switch, name)
            {
                end.port = Some(name.clone());
                let length = port.length.as_ref().and_then(|said| said.read(|m| m.checked_mul(METRE)));
                edge.rate = edge.rate.take().or_else(|| port.speed.clone());
                edge.delay = match (edge.delay.take(), length) {
                    // The longer of two statements: a cable has one length, and the shorter one is often a default.
                    (Some(one), Some(other)) if other.value > one.value => Some(other),
                    (one, other) => one.or(other),
                };
            }
        }
    }
    let mut links = merged(edges, facts);
    links.retain(|link| link.ends[0].node != link.ends[1].node);
    alone(facts, &mut links);
    links = largest_part(links, facts);
    let roles = roles(facts, &links);
    let mut fabric = Fabric { links, ..Fabric::default() };
    for (name, role) in roles {
        match role {
            None => fabric.hosts.push(name),
            Some(role) => fabric.switches.push((name, role)),
        }
    }
    add_hosts(facts, &mut fabric);
    if fabric.hosts.len() < 2 {
        return Err(code::MISSING
            .plain("the files describe no cable and no port, so there is nothing to simulate")
            .with_help("add a config_db.json with PORT, a table of LLDP neighbours or a list of cables"));
    }
    fill(facts, &mut fabric);
    count_nics(facts, &fabric);
    Ok(fabric)
}

/// True for an end in the network of management, such as `oob-mgmt-switch` of Cumulus.
fn is_management(end: &End) -> bool {
    let name = end.node.to_lowercase();
    name.contains("mgmt") || name.starts_with("oob")
}

/// The edges that switches name as their neighbours.
fn neighbours(facts: &mut Facts) -> Vec<Edge> {
    let mut edges = Vec::new();
    for switch in &facts.switches {
        for neighbour in switch.neighbours.iter().filter(|it| !it.name.value.is_empty()) {
            let down = switch.ports.get(&neighbour.port).is_some_and(|port| port.is_down);
            if down {
                facts.ledger.ignored(
                    &neighbour.name.at,
                    "DEVICE_NEIGHBOR name",
                    "the port is down (admin_status)",
                );
                continue;
            }
            edges.push(Edge {
                ends: [
                    End::new(&switch.name, Some(&neighbour.port)),
                    End::new(&neighbour.name.value, neighbour.peer_port.as_deref()),
                ],
                rate: None,
                delay: None,
                at: neighbour.name.at.clone(),
            });
        }
    }
    edges
}

fn fits(one: &End, other: &End) -> bool {
    one.node == other.node && (one.port == other.port || one.port.is_none() || other.port.is_none())
}

/// Links between two nodes whose ends lack a port, so that a line of another file may be about the same cable: by which ends have ports,
/// and by file.
type Open = [BTreeMap<Rc<str>, BTreeSet<usize>>; 4];

/// Which ends have a port, as bits.
fn shape(edge: &Edge) -> usize {
    usize::from(edge.ends[0].port.is_some()) | usize::from(edge.ends[1].port.is_some()) << 1
}

/// The first link of another file that may be the same cable: at each end, one of both says no port.
fn without_ports(open: &Open, edge: &Edge) -> Option<usize> {
    let shapes = (0..4).filter(|other| other & shape(edge) == 0);
    let first = |other: usize| {
        let files = open[other].iter().filter(|(file, all)| **file != edge.at.file && !all.is_empty());
        files.map(|(_, all)| all.first().copied()).next().flatten()
    };
    shapes.filter_map(first).min()
}

/// One edge for each cable, whichever files and ends describe it.
fn merged(edges: Vec<Edge>, facts: &mut Facts) -> Vec<Edge> {
    let mut links: Vec<Edge> = Vec::new();
    let mut by_pair: BTreeMap<[String; 2], Open> = BTreeMap::new();
    let mut by_port: BTreeMap<End, usize> = BTreeMap::new();
    for mut edge in edges {
        if edge.ends[0].node > edge.ends[1].node {
            edge.ends.swap(0, 1);
        }
        let pair = edge.ends.each_ref().map(|end| end.node.clone());
        let open = by_pair.entry(pair).or_default();
        // Two lines of one file without ports in common are two cables.
        let mut of_ports =
            edge.ends.iter().filter(|end| end.port.is_some()).filter_map(|end| by_port.get(end));
        let all_fit = |i: &&usize| links[**i].ends.iter().zip(&edge.ends).all(|(a, b)| fits(a, b));
        let same = of_ports.find(all_fit).copied().or_else(|| without_ports(open, &edge));
        if let Some(i) = same {
            let link = &mut links[i];
            open[shape(link)].entry(link.at.file.clone()).or_default().remove(&i);
            for (own, other) in link.ends.iter_mut().zip(edge.ends) {
                own.port = own.port.take().or(other.port);
                if own.port.is_some() {
                    by_port.insert(own.clone(), i);
                }
            }
            open[shape(link)].entry(link.at.file.clone()).or_default().insert(i);
            link.rate = link.rate.take().or(edge.rate);
            link.delay = link.delay.take().or(edge.delay);
            continue;
        }
        let taken = edge.ends.iter().find_map(|end| by_port.get(end).filter(|_| end.port.is_some()));
        if let Some(taken) = taken {
            let link = &links[*taken];
            let text =
                format!("{} and {} cannot both be true: a port has one cable", cable(link), cable(&edge));
            let advice = "correct one of the files; the first one counts here";
            facts.ledger.contradicts("two-cables", text, advice, vec![link.at.clone(), edge.at]);
            continue;
        }
        open[shape(&edge)].entry(edge.at.file.clone()).or_default().insert(links.len());
        for end in edge.ends.iter().filter(|end| end.port.is_some()) {
            by_port.insert(end.clone(), links.len());
        }
        links.push(edge);
    }
    links
}

fn cable(edge: &Edge) -> String {
    let end = |end: &End| match &end.port {
        Some(port) => format!("{}:{port}", end.node),
        None => end.node.clone(),
    };
    format!("{} - {}", end(&edge.ends[0]), end(&edge.ends[1]))
}

/// Most hosts that are added to a switch of which no file says what its ports are joined with. Our choice: a tray of NICs.
const MOST_ADDED: usize = 128;

/// If no file has a cable, a host at each port of every switch.
fn alone(facts: &mut Facts, links: &mut Vec<Edge>) {
    if !links.is_empty() {
        return;
    }
    let Some(switch) = facts.switches.iter().max_by_key(|switch| switch.ports.len()) else { return };
    let ports = switch.ports.iter().filter(|(_, port)| !port.is_down).take(MOST_ADDED);
    let edges: Vec<Edge> = ports.map(|(name, port)| added(switch, name, port)).collect();
    let text = format!(
        "no file says what the ports of {} are joined with: a host at each of {} ports",
        switch.name,
        edges.len()
    );
    let hosts = edges.iter().map(|edge| edge.ends[1].node.clone());
    facts.nodes.extend(hosts.map(|name| Known { name, is_host: true, role: None }));
    facts.ledger.assumed(text);
    links.extend(edges);
}

fn added(switch: &Switch, name: &str, port: &Port) -> Edge {
    let places = [
        port.speed.as_ref().map(|said| &said.at),
        port.length.as_ref().map(|said| &said.at),
        port.pfc.as_ref().map(|said| &said.at),
        port.groups.first().map(|(_, said)| &said.at),
        port.queues.values().next().and_then(|queue| queue.at.as_ref()),
        port.dscp_map.as_ref().map(|said| &said.at),
    ];
    let of_port = places.into_iter().flatten().next().cloned();
    let at = of_port.unwrap_or_else(|| Place::line(&switch.cells[0].at.file, switch.cells[0].at.line));
    let length = port.length.as_ref().and_then(|said| said.read(|m| m.checked_mul(METRE)));
    let host = End { node: format!("{}-{name}", switch.name), port: None };
    Edge {
        ends: [End { node: switch.name.clone(), port: Some(name.to_owned()) }, host],
        rate: port.speed.clone(),
        delay: length,
        at,
    }
}

/// The number that stands for the part of `i`.
pub(crate) fn root(parent: &mut [usize], mut i: usize) -> usize {
    while parent[i] != i {
        parent[i] = parent[parent[i]];
        i = parent[i];
    }
    i
}

/// The links of the part that has most of them.
fn largest_part(links: Vec<Edge>, facts: &mut Facts) -> Vec<Edge> {
    let mut part: BTreeMap<String, usize> = BTreeMap::new();
    let mut parent: Vec<usize> = Vec::new();
    for link in &links {
        let ends = [0, 1].map(|e| {
            *part.entry(link.ends[e].node.clone()).or_insert_with(|| {
                parent.push(parent.len());
                parent.len() - 1
            })
        });
        let (a, b) = (root(&mut parent, ends[0]), root(&mut parent, ends[1]));
        parent[a] = b;
    }
    let mut sizes: BTreeMap<usize, usize> = BTreeMap::new();
    let tops: Vec<usize> = links.iter().map(|link| root(&mut parent, part[&link.ends[0].node])).collect();
    tops.iter().for_each(|top| *sizes.entry(*top).or_default() += 1);
    let Some((largest, _)) = sizes.into_iter().max_by_key(|(top, size)| (*size, std::cmp::Reverse(*top)))
    else {
        return links;
    };
    let (kept, lost): (Vec<_>, Vec<_>) = links.into_iter().zip(tops).partition(|(_, top)| *top == largest);
    for (link, _) in lost {
        facts.ledger.ignored(&link.at, "cable", "it is not joined with the largest part of the fabric");
    }
    kept.into_iter().map(|(link, _)| link).collect()
}

/// Words with which names of hosts begin, and those of switches. Our choice: what public examples have.
const HOST_WORDS: &[&str] = &[
    "host", "server", "srv", "node", "gpu", "dgx", "hgx", "compute", "client", "worker", "h1", "h2", "vm",
    "pc",
];
const SWITCH_WORDS: &[&str] =
    &["leaf", "spine", "tor", "switch", "sw", "core", "agg", "super", "router", "fanout"];

/// The nodes; a switch has a role, a host none.
fn roles(facts: &mut Facts, links: &[Edge]) -> BTreeMap<String, Option<String>> {
    let mut peers: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for link in links {
        let [a, b] = &link.ends;
        peers.entry(&a.node).or_default().insert(&b.node);
        peers.entry(&b.node).or_default().insert(&a.node);
    }
    let mut stated: BTreeMap<String, Option<String>> = BTreeMap::new();
    for switch in &facts.switches {
        for (name, kind) in &switch.neighbour_kinds {
            let is_host = kind.value.contains("Server") || kind.value.contains("Host");
            stated.insert(name.clone(), (!is_host).then(|| role_of(&kind.value)));
            facts.ledger.read(&kind.at, "DEVICE_NEIGHBOR_METADATA type", "roles of [topology.links]");
        }
    }
    for known in &facts.nodes {
        let role = known.role.as_deref().map_or_else(|| "switch".to_owned(), role_of);
        stated.insert(known.name.clone(), (!known.is_host).then_some(role));
    }
    for switch in &facts.switches {
        let role = switch.kind.as_ref().map_or_else(|| "switch".to_owned(), |kind| role_of(&kind.value));
        stated.insert(switch.name.clone(), Some(role));
    }
    let (mut guessed_hosts, mut guessed_switches) = (Vec::new(), Vec::new());
    let mut roles = BTreeMap::new();
    for (name, peers) in peers {
        let role = match stated.get(name) {
            Some(role) => role.clone(),
            None => {
                let lower = name.to_lowercase();
                let starts = |words: &[&str]| words.iter().any(|word| lower.starts_with(word));
                let is_host = starts(HOST_WORDS) || !starts(SWITCH_WORDS) && peers.len() < 2;
                if is_host { &mut guessed_hosts } else { &mut guessed_switches }.push(name.to_owned());
                (!is_host).then(|| "switch".to_owned())
            }
        };
        roles.insert(name.to_owned(), role);
    }
    for (kind, guessed) in [("hosts", guessed_hosts), ("switches", guessed_switches)] {
        if !guessed.is_empty() {
            let more =
                if guessed.len() > 4 { format!(" and {} more", guessed.len() - 4) } else { String::new() };
            let named = guessed.iter().take(4).cloned().collect::<Vec<_>>().join(", ");
            facts.ledger.assumed(format!(
                "{named}{more} are {kind}, by their names and numbers of neighbours; no file says what they are"
            ));
        }
    }
    roles
}

/// A role from a type of SONiC, such as `tor` from `ToRRouter`.
fn role_of(kind: &str) -> String {
    let lower = kind.to_lowercase();
    let short = lower.strip_suffix("router").filter(|short| !short.is_empty()).unwrap_or(&lower);
    let word: String = short.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let word = word.trim_matches('-').to_owned();
    if word.is_empty() { "switch".to_owned() } else { word }
}

/// Hosts at free ports, if the cables join fewer than two hosts: at the switches of the lowest tier.
fn add_hosts(facts: &mut Facts, fabric: &mut Fabric) {
    if fabric.hosts.len() >= 2 || fabric.switches.is_empty() {
        return;
    }
    let lowest = |role: &str| ["tor", "leaf"].iter().position(|low| role.contains(low)).unwrap_or(2);
    let low = fabric.switches.iter().map(|(_, role)| lowest(role)).min().unwrap_or(2);
    let mut new = Vec::new();
    let mut ports = fabric.ports();
    let mut first: BTreeMap<&str, &Place> = BTreeMap::new();
    for link in &fabric.links {
        for end in &link.ends {
            first.entry(&end.node).or_insert(&link.at);
        }
    }
    for (name, _) in fabric.switches.iter().filter(|(_, role)| lowest(role) == low) {
        let used = ports.remove(name).unwrap_or_default();
        let Some(at) = first.get(name.as_str()).map(|at| (*at).clone()) else { continue };
        let switch = facts.switches.iter().find(|switch| switch.name == *name);
        let free: Vec<Edge> = switch.map_or(Vec::new(), |switch| {
            let free =
                switch.ports.iter().filter(|(port, it)| !it.is_down && !used.contains_key(port.as_str()));
            free.take(MOST_ADDED).map(|(name, port)| added(switch, name, port)).collect()
        });
        match free.is_empty() {
            false => new.extend(free),
            true => new.push(Edge {
                ends: [
                    End { node: name.clone(), port: None },
                    End { node: format!("{name}-host"), port: None },
                ],
                rate: None,
                delay: None,
                at,
            }),
        }
    }
    let hosts: BTreeSet<String> = new.iter().map(|edge| edge.ends[1].node.clone()).collect();
    if fabric.hosts.len() + hosts.len() < 2 {
        let more = new.first().map(|edge| Edge {
            ends: [
                End { node: edge.ends[0].node.clone(), port: None },
                End { node: format!("{}-host-2", edge.ends[0].node), port: None },
            ],
            ..edge.clone()
        });
        fabric.hosts.extend(more.iter().map(|edge| edge.ends[1].node.clone()));
        new.extend(more);
    }
    facts.ledger.assumed(format!(
        "the files join {} hosts: {} are added at free ports of the lowest switches",
        fabric.hosts.len(),
        hosts.len()
    ));
    fabric.hosts.extend(hosts);
    fabric.links.extend(new);
}

/// The NICs of servers, if all have as many; else each host is a server with one GPU.
fn count_nics(facts: &mut Facts, fabric: &Fabric) {
    let Some(servers) = &mut facts.servers else { return };
    let mut counts: BTreeMap<&str, usize> = fabric.hosts.iter().map(|host| (host.as_str(), 0)).collect();
    for end in fabric.links.iter().flat_map(|link| &link.ends) {
        counts.entry(&end.node).and_modify(|count| *count += 1);
    }
    let all: BTreeSet<usize> = counts.into_values().collect();
    let nics = all.first().copied().filter(|_| all.len() == 1);
    match nics.filter(|nics| servers.gpus.is_multiple_of(*nics) || nics.is_multiple_of(servers.gpus)) {
        Some(nics) => servers.nics = Some(nics),
        None => {
            let text = "servers have different numbers of NICs, or no multiple of their GPUs: each host is a server with one GPU";
            facts.ledger.assumed(text);
            facts.servers = None;
        }
    }
}

/// The rate of links of which no file says one, if no link has a rate. Our choice: that of `[topology.links]`.
const RATE: u64 = 100_000_000_000;

/// The length of cables of which no file says one, metres. Our choice: the middle one of SONiC's three lengths.
const LENGTH: u64 = 40;

/// Gives every link a rate and a delay.
fn fill(facts: &mut Facts, fabric: &mut Fabric) {
    let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
    for rate in fabric.links.iter().filter_map(|link| link.rate.as_ref()) {
        *counts.entry(rate.value).or_default() += 1;
    }
    let usual = counts.into_iter().max_by_key(|(rate, count)| (*count, *rate)).map_or(RATE, |(rate, _)| rate);
    let (mut rates, mut lengths) = (0, 0);
    for link in &mut fabric.links {
        let assumed = |value, at: &Place| Some(Said { value, at: at.clone() });
        if link.rate.is_none() {
            rates += 1;
            link.rate = assumed(usual, &link.at);
        }
        if link.delay.is_none() {
            lengths += 1;
            link.delay = assumed(LENGTH * METRE, &link.at);
        }
    }
    if rates > 0 {
        let text = format!("{rates} links without a rate have {}", crate::said::rate_text(usual));
        facts.ledger.assumed(text);
    }
    if lengths > 0 {
        facts.ledger.assumed(format!("{lengths} cables without a length have {LENGTH} m"));
    }
    facts.ledger.assumed(
        "the delay inside switches is in none of these files; add it to the delays of the links if you know it",
    );
}
