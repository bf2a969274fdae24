//! A scenario's fabric as a graph of InfraGraph (version 3) in YAML.

use model::NodeId;
use scenario::Checked;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The fabric of a scenario: a device for each kind of host and of switch, an instance for each node, and an edge for each link.
pub fn graph(checked: &Checked) -> String {
    let fabric = &checked.plan.fabric;
    let all = (0..fabric.nodes()).map(|i| node(checked, i));
    // Nodes with as many ports and one role are instances of one device.
    let mut kinds: BTreeMap<(bool, String, usize), Vec<usize>> = BTreeMap::new();
    for (i, node) in all.enumerate() {
        let role = if node.is_host { "host".to_owned() } else { node.role.clone() };
        kinds.entry((node.is_host, role, node.ports)).or_default().push(i);
    }
    let mut names: BTreeMap<usize, (String, usize)> = BTreeMap::new();
    let (mut devices, mut instances) = (String::new(), String::new());
    let mut used: BTreeSet<String> = BTreeSet::new();
    for ((is_host, role, ports), nodes) in &kinds {
        let base = word(role);
        let mut names_of_role = std::iter::once(base.clone()).chain((2..).map(|n| format!("{base}-{n}")));
        let Some(name) = names_of_role.find(|name| !used.contains(name)) else { continue };
        used.insert(name.clone());
        let (component, choice) = if *is_host { ("nic", "nic") } else { ("port", "port") };
        // A host is a port of a server's NIC.
        let server = checked.scenario.server.and_then(|server| server.server().ok());
        let gpus = server.map_or(1, |server| (server.gpus / server.ports().max(1)).max(1));
        let _ = writeln!(devices, "  - name: {name}-device\n    components:");
        if *is_host {
            let _ = writeln!(devices, "      - {{ name: xpu, count: {gpus}, choice: xpu }}");
        } else {
            let _ = writeln!(devices, "      - {{ name: asic, count: 1, choice: switch }}");
        }
        let inner = if *is_host { "xpu" } else { "asic" };
        let _ = writeln!(
            devices,
            "      - {{ name: {component}, count: {ports}, choice: {choice} }}\n    links:\n      - {{ name: inside }}\n    edges:\n      \
             - {{ ep1: {{ component: {inner} }}, ep2: {{ component: {component} }}, scheme: many2many, link: inside }}"
        );
        let _ = writeln!(instances, "  - {{ name: {name}, device: {name}-device, count: {} }}", nodes.len());
        for (number, node) in nodes.iter().enumerate() {
            names.insert(*node, (name.clone(), number));
        }
    }
    let mut links: BTreeMap<(u64, u64), String> = BTreeMap::new();
    let mut edges = String::new();
    for link in links_of(checked) {
        let next = format!("link{}", links.len());
        let name = links.entry((link.bps, link.ps)).or_insert(next).clone();
        let end = |(i, port): (usize, usize)| {
            let (name, number) = &names[&i];
            let component = if node(checked, i).is_host { "nic" } else { "port" };
            format!("{{ instance: \"{name}[{number}]\", component: \"{component}[{port}]\" }}")
        };
        let _ = writeln!(
            edges,
            "  - {{ ep1: {}, ep2: {}, scheme: one2one, link: {name} }}",
            end(link.ends[0]),
            end(link.ends[1])
        );
    }
    let mut out = format!(
        "# Made by `ropewalk export infragraph` from {}.\nname: {}\ndevices:\n{devices}instances:\n{instances}links:\n",
        files::printable::on_one_line(&checked.name),
        word(&checked.name)
    );
    for ((bps, ps), name) in &links {
        let (gbps, ns) = (*bps as f64 / 1e9, *ps as f64 / 1e3);
        let _ = writeln!(
            out,
            "  - name: {name}\n    physical:\n      bandwidth: {{ choice: gigabits_per_second, gigabits_per_second: {gbps} }}\n      latency: \
             {{ choice: ns, ns: {ns} }}"
        );
    }
    out + "edges:\n" + &edges
}

/// A name without signs that slices and YAML use.
fn word(text: &str) -> String {
    let word: String = text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let word = word.trim_matches('-');
    if word.is_empty() { "fabric".to_owned() } else { word.to_owned() }
}

fn node(checked: &Checked, i: usize) -> Node {
    let (fabric, id) = (&checked.plan.fabric, NodeId(i as u32));
    Node { is_host: fabric.is_host(id), role: fabric.role(id).to_owned(), ports: fabric.ports(id).len() }
}

fn links_of(checked: &Checked) -> impl Iterator<Item = Link> + '_ {
    let both = checked.plan.fabric.links().iter().map(|link| Link {
        ends: [
            (link.from.index(), usize::from(link.port.0)),
            (link.to.index(), usize::from(link.peer_port.0)),
        ],
        bps: link.rate.bps(),
        ps: link.delay.ps(),
    });
    // Each cable has two directions.
    both.filter(|link| link.ends[0] < link.ends[1])
}

/// A node of the plan.
struct Node {
    is_host: bool,
    role: String,
    ports: usize,
}

/// A link of the plan, once.
struct Link {
    ends: [(usize, usize); 2],
    bps: u64,
    ps: u64,
}
