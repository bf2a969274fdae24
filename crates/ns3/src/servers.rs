//! Servers of SimAI's topology files: GPUs with NVSwitches and NICs.

use super::tokens::word;
use super::topology::{Graph, Link};
use finding::Finding;
use model::{Rate, Time};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The servers of a topology, and the links of its fabric.
pub(super) struct Servers<'g> {
    gpus: u32,
    count: u32,
    /// Ports of each GPU's NIC.
    ports: usize,
    nvlink: Option<(Rate, Time)>,
    /// Links of the ports, by server, GPU and place in the file.
    nics: Vec<(u32, &'g Link)>,
    graph: &'g Graph<'g>,
}

/// Finds the servers; `None` for a file without the sizes of servers.
pub(super) fn read<'g>(graph: &'g Graph<'g>) -> Result<Option<Servers<'g>>, Finding> {
    let Some((gpus, at)) = graph.gpus else { return Ok(None) };
    let wrong = |at: usize, text: String| Err(word(graph.file, at, 0).error(text));
    let hosts = graph.nodes - graph.switches.len() as u32;
    if gpus == 0 || !hosts.is_multiple_of(gpus) {
        return wrong(at, format!("{hosts} GPUs do not fill servers of {gpus}"));
    }
    if let Some((id, at)) = graph.switches.iter().find(|(id, _)| **id < hosts) {
        return wrong(
            *at,
            format!("the switch {id} stands between GPUs; GPUs have the numbers 0 to {}", hosts - 1),
        );
    }
    let mut nvlink: Option<(Rate, Time)> = None;
    let mut nvlinks: BTreeMap<u32, u64> = BTreeMap::new();
    let mut nics: Vec<(u32, &Link)> = Vec::new();
    for link in &graph.links {
        let ends = [link.from, link.to];
        let gpu = ends.into_iter().find(|id| *id < hosts);
        let Some(gpu) = gpu else { continue };
        let other = if gpu == link.from { link.to } else { link.from };
        if other < hosts {
            return wrong(
                link.at,
                format!("a link joins the GPUs {gpu} and {other}; GPUs have links to switches"),
            );
        }
        if !graph.nvswitches.contains(&other) {
            nics.push((gpu, link));
            continue;
        }
        // Two hops between two GPUs.
        let figures = (link.rate, Time(link.delay.ps().saturating_mul(2)));
        if nvlink.is_some_and(|nvlink| nvlink != figures) {
            return wrong(
                link.at,
                "this link to an NVSwitch differs from the first; all NVLinks are equal".to_owned(),
            );
        }
        nvlink = Some(figures);
        *nvlinks.entry(gpu).or_default() += 1;
    }
    let lanes = nvlinks.values().next().copied().unwrap_or(0);
    if let Some((gpu, links)) = nvlinks.iter().find(|(_, links)| **links != lanes) {
        return wrong(at, format!("GPU {gpu} has {links} links to NVSwitches; the first GPU has {lanes}"));
    }
    if lanes > 0 && nvlinks.len() as u32 != hosts {
        return wrong(at, format!("{} of {hosts} GPUs have links to NVSwitches", nvlinks.len()));
    }
    nics.sort_by_key(|(gpu, link)| (*gpu, link.at));
    let ports = nics.iter().take_while(|(gpu, _)| *gpu == 0).count();
    for gpu in 0..hosts {
        let start = nics.partition_point(|(other, _)| *other < gpu);
        let found = nics[start..].iter().take_while(|(other, _)| *other == gpu).count();
        if found != ports || found == 0 {
            return wrong(at, format!("GPU {gpu} has {found} links to switches; the first GPU has {ports}"));
        }
    }
    let nvlink = nvlink.map(|(rate, delay)| (Rate(rate.bps().saturating_mul(lanes)), delay));
    Ok(Some(Servers { gpus, count: hosts / gpus, ports, nvlink, nics, graph }))
}

impl Servers<'_> {
    /// Name of a port of a GPU's NIC: a server's ports are those of its GPUs in turn.
    pub(super) fn name(&self, gpu: u32, port: usize) -> String {
        let (server, place) = (gpu / self.gpus, (gpu % self.gpus) as usize * self.ports + port);
        if self.gpus as usize * self.ports > 1 { format!("s{server}p{place}") } else { format!("s{server}") }
    }

    /// True if both GPUs belong to one server.
    pub(super) fn joins(&self, a: u32, b: u32) -> bool {
        self.nvlink.is_some() && a / self.gpus == b / self.gpus
    }

    /// Writes servers, switches and links; `roles` has those of switches with a role of their own.
    pub(super) fn write(&self, out: &mut String, roles: &BTreeMap<u32, String>) {
        let Servers { gpus, count, ports, .. } = *self;
        let _ = write!(out, "[server]\ngpus = {gpus}\nnics = {gpus}\nports-per-nic = {ports}\nnvlink = ");
        let _ = match self.nvlink {
            Some((rate, delay)) => writeln!(out, "{{ rate = \"{rate}\", delay = \"{delay}\" }}\n"),
            None => writeln!(out, "\"off\"\n"),
        };
        let _ = writeln!(out, "[topology.links]");
        let hosts: Vec<String> = (0..count).map(|server| format!("\"s{server}\"")).collect();
        let _ = writeln!(out, "hosts = [{}]", hosts.join(", "));
        let graph = self.graph;
        let switches = graph.switches.keys().filter(|id| !graph.nvswitches.contains(id));
        let switches: Vec<String> = switches
            .map(|id| match roles.get(id) {
                Some(role) => format!("{{ name = \"n{id}\", role = \"{role}\" }}"),
                None => format!("\"n{id}\""),
            })
            .collect();
        let _ = writeln!(out, "switches = [{}]\nlinks = [", switches.join(", "));
        let mut write = |from: String, to: String, Link { rate, delay, loss, .. }: &Link| {
            let _ = if *loss > 0.0 {
                let loss = toml::Value::Float(*loss);
                writeln!(
                    out,
                    "  {{ from = \"{from}\", to = \"{to}\", rate = \"{rate}\", delay = \"{delay}\", loss = {loss} }},"
                )
            } else {
                writeln!(out, "  [\"{from}\", \"{to}\", \"{rate}\", \"{delay}\"],")
            };
        };
        for &(gpu, link) in &self.nics {
            let switch = if link.from == gpu { link.to } else { link.from };
            write(format!("s{}", gpu / gpus), format!("n{switch}"), link);
        }
        let gpus = gpus * count;
        let is_switch = |id: u32| id >= gpus && !graph.nvswitches.contains(&id);
        for link in graph.links.iter().filter(|link| is_switch(link.from) && is_switch(link.to)) {
            write(format!("n{}", link.from), format!("n{}", link.to), link);
        }
        out.push_str("]\n");
    }
}
