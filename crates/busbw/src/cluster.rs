//! The cluster of a log: what `--cluster` or a scenario describes, and what logs tell, each with its source.

use crate::log::{Curve, Facts, Test};
use collective::{Cpu, Gpu, Kind};
use finding::{Finding, code, suggestion};
use model::Rate;
use serde::Serialize;

/// A model of a GPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Model {
    /// Part of the name, in lower case.
    pub name: &'static str,
    /// Generation, as NCCL's choice knows it.
    pub gpu: Gpu,
    /// Payload of a GPU's NVLink port in each direction, GB/s (NCCL, `topo.h`: links of 20, 20.6 and 40.1 GB/s).
    pub nvlink: f64,
    /// Share of NVLink's rate that NVLS attains (NCCL, `tuning.cc`); 0 without NVLS.
    pub nvls: f64,
    /// Whether the costs of a collective's steps were measured for it.
    pub measured: bool,
    /// NICs of the vendor's server of eight, and their rate, Gb/s (data sheets of DGX and HGX servers).
    pub usual: (u32, f64),
}

/// Models, with longer names before the names in them.
const MODELS: [Model; 15] = [
    Model {
        name: "gb300",
        gpu: Gpu::Blackwell,
        nvlink: 721.8,
        nvls: 0.74,
        measured: false,
        usual: (4, 800.0),
    },
    Model {
        name: "gb200",
        gpu: Gpu::Blackwell,
        nvlink: 721.8,
        nvls: 0.74,
        measured: false,
        usual: (4, 400.0),
    },
    Model { name: "gh200", gpu: Gpu::Hopper, nvlink: 370.8, nvls: 0.85, measured: true, usual: (1, 400.0) },
    Model {
        name: "b300",
        gpu: Gpu::Blackwell,
        nvlink: 721.8,
        nvls: 0.74,
        measured: false,
        usual: (8, 800.0),
    },
    Model {
        name: "b200",
        gpu: Gpu::Blackwell,
        nvlink: 721.8,
        nvls: 0.74,
        measured: false,
        usual: (8, 400.0),
    },
    Model { name: "h100", gpu: Gpu::Hopper, nvlink: 370.8, nvls: 0.85, measured: true, usual: (8, 400.0) },
    Model { name: "h200", gpu: Gpu::Hopper, nvlink: 370.8, nvls: 0.85, measured: true, usual: (8, 400.0) },
    Model { name: "h800", gpu: Gpu::Hopper, nvlink: 164.8, nvls: 0.85, measured: true, usual: (8, 400.0) },
    Model { name: "h20", gpu: Gpu::Hopper, nvlink: 370.8, nvls: 0.85, measured: true, usual: (8, 400.0) },
    Model { name: "a100", gpu: Gpu::Ampere, nvlink: 240.0, nvls: 0.0, measured: false, usual: (8, 200.0) },
    Model { name: "a800", gpu: Gpu::Ampere, nvlink: 160.0, nvls: 0.0, measured: false, usual: (8, 200.0) },
    Model { name: "v100", gpu: Gpu::Ampere, nvlink: 120.0, nvls: 0.0, measured: false, usual: (4, 100.0) },
    Model { name: "mi300", gpu: Gpu::Hopper, nvlink: 310.0, nvls: 0.0, measured: false, usual: (8, 400.0) },
    Model { name: "mi325", gpu: Gpu::Hopper, nvlink: 310.0, nvls: 0.0, measured: false, usual: (8, 400.0) },
    Model { name: "mi250", gpu: Gpu::Ampere, nvlink: 150.0, nvls: 0.0, measured: false, usual: (4, 200.0) },
];

impl Model {
    /// The model that a name such as `NVIDIA H100 80GB HBM3` means.
    pub fn named(name: &str) -> Option<&'static Model> {
        let name = name.to_lowercase();
        MODELS.iter().find(|model| name.contains(model.name))
    }
}

/// How the network carries RDMA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Link {
    /// RoCE.
    Roce,
    /// InfiniBand.
    Ib,
}

/// A cluster, as far as it is known.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    /// Number of nodes.
    pub nodes: Option<u32>,
    /// GPUs of a node that take part.
    pub gpus: Option<u32>,
    /// Model of the GPUs.
    pub model: Option<&'static Model>,
    /// NICs of a node.
    pub nics: Option<u32>,
    /// Rate of a NIC, Gb/s.
    pub gbps: Option<f64>,
    /// Ports of a NIC that are bonded.
    pub bond: Option<u32>,
    /// NICs that are in use on purpose, if the description says so.
    pub used: Option<u32>,
    /// Link layer.
    pub link: Option<Link>,
    /// Whether rails share a ToR.
    pub rails: Option<bool>,
    /// Nodes below a ToR.
    pub per_tor: Option<u32>,
    /// Number of racks.
    pub racks: Option<u32>,
    /// Number of sites.
    pub sites: Option<u32>,
    /// Round trip between sites, us.
    pub round_trip_us: Option<f64>,
    /// Rate of a PCIe link of 16 lanes, GB/s.
    pub pcie: Option<f64>,
    /// Vendor of the CPUs.
    pub cpu: Option<Cpu>,
    /// Version of NCCL.
    pub version: Option<String>,
    /// Whether NVLS is on.
    pub nvls: Option<bool>,
    /// What is known from where, for the answer.
    pub sources: Vec<String>,
    /// What is assumed.
    pub assumed: Vec<String>,
}

/// Words of a description, for suggestions.
const WORDS: [&str; 20] = [
    "nodes",
    "servers",
    "gpus",
    "h100",
    "a100",
    "rail-optimised",
    "per tor",
    "racks",
    "sites",
    "roce",
    "infiniband",
    "nvls",
    "intel",
    "amd",
    "nccl",
    "pcie",
    "bond",
    "round trip",
    "h200",
    "b200",
];

impl Cluster {
    /// Reads a description such as `8 nodes, 8 h100, 8x400G, rail-optimised, 4 per tor`.
    ///
    /// # Errors
    /// A part that means nothing, with its place.
    pub fn described(text: &str) -> Result<Self, Finding> {
        let mut cluster = Cluster::default();
        let mut start = 0;
        for part in text.split([',', ';']) {
            let trimmed = part.trim();
            let at = start + part.len() - part.trim_start().len();
            start += part.len() + 1;
            if trimmed.is_empty() {
                continue;
            }
            let wrong = |expected: String| {
                code::OPTION.inside(
                    "--cluster",
                    text,
                    at..at + trimmed.len(),
                    format!("{expected}, found `{trimmed}`"),
                )
            };
            match cluster.part(&plain(trimmed)) {
                Ok(true) => {}
                Ok(false) => {
                    let word =
                        trimmed.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ').to_lowercase();
                    return Err(wrong(format!(
                        "expected a part such as `8 nodes`, `8 h100` or `8x400G`, {}",
                        suggestion(&word, &WORDS)
                    )));
                }
                Err(expected) => return Err(wrong(expected)),
            }
        }
        cluster.sources.push("described".to_owned());
        Ok(cluster)
    }

    /// Takes a part; false if it means nothing.
    fn part(&mut self, part: &str) -> Result<bool, String> {
        let (number, rest) = match super::read::words::leading(part) {
            Some((number, rest)) => (Some(number), rest.trim_start()),
            None => (None, part),
        };
        let count = |what: &str, most: u64| match number {
            Some(number) if (1..=most).contains(&number) => Ok(number as u32),
            _ => Err(format!("expected 1 to {most} {what}")),
        };
        let first = rest.split_whitespace().next().unwrap_or_default();
        match first {
            "node" | "nodes" | "server" | "servers" | "host" | "hosts" => {
                self.nodes = Some(count("nodes", 1 << 20)?)
            }
            "rack" | "racks" | "tors" => self.racks = Some(count("racks", 1 << 20)?),
            "site" | "sites" | "datacentres" | "datacenters" => self.sites = Some(count("sites", 64)?),
            "per" => self.per_tor = Some(count("nodes per ToR", 1 << 20)?),
            "gpu" | "gpus" => self.gpus = Some(count("GPUs", 576)?),
            "us" | "ms" => {
                let us = count("microseconds or milliseconds between sites", 1_000_000)?;
                self.round_trip_us = Some(f64::from(us) * if first == "ms" { 1e3 } else { 1.0 });
            }
            "rail-optimised" | "rail-optimized" | "rails" | "rail" => self.rails = Some(true),
            "roce" | "ethernet" | "rocev2" => self.link = Some(Link::Roce),
            "ib" | "infiniband" => self.link = Some(Link::Ib),
            "intel" => self.cpu = Some(Cpu::Intel),
            "amd" => self.cpu = Some(Cpu::Amd),
            "nvls" => self.nvls = Some(!rest.contains("off")),
            "nccl" => self.version = rest.split_whitespace().nth(1).map(minor),
            "pcie" => self.pcie = Some(pcie(rest).ok_or("expected `pcie gen3`, `gen4`, `gen5` or `gen6`")?),
            _ => return self.machine(part),
        }
        Ok(true)
    }

    /// Takes a part about GPUs or NICs.
    fn machine(&mut self, part: &str) -> Result<bool, String> {
        if let Some(model) = Model::named(part) {
            self.model = Some(model);
            // `3x8 A100` has nodes and GPUs.
            let before = &part[..part.find(model.name).unwrap_or(0)];
            let numbers: Vec<u32> = before
                .split(['x', ' '])
                .filter_map(|number| number.parse().ok())
                .filter(|n| *n > 0)
                .collect();
            match numbers[..] {
                [gpus] => self.gpus = Some(gpus.min(576)),
                [nodes, gpus] => (self.nodes, self.gpus) = (Some(nodes), Some(gpus.min(576))),
                _ => {}
            }
            return Ok(true);
        }
        self.links(part)
    }

    /// Takes NICs such as `8x400G`, `8x(2x200G)`, `1 of 4x200G`, `bond of 2x200G`, or one rate for all of them.
    fn links(&mut self, part: &str) -> Result<bool, String> {
        let bond = part.contains("bond") || part.contains('(');
        let mut text = part
            .replace("bonds", " ")
            .replace("bond", " ")
            .replace(['(', ')'], " ")
            .replace("nics", " ")
            .replace("nic", " ");
        if let Some((used, rest)) = text.clone().split_once(" of ") {
            if !bond {
                self.used = used.trim().parse().ok().filter(|used| *used > 0);
            } else if let Ok(count) = used.trim().trim_end_matches('x').trim().parse::<u32>() {
                text = format!("{count}x{rest}");
            }
            if !bond || !text.contains('x') {
                text = rest.to_owned();
            }
        }
        let words: Vec<&str> = text.split(['x', ' ', '*']).filter(|word| !word.is_empty()).collect();
        let Some((rate, counts)) = words.split_last() else { return Ok(false) };
        let number = rate
            .trim_end_matches("bps")
            .trim_end_matches("b/s")
            .trim_end_matches("bit/s")
            .trim_end_matches('g');
        let Some(gbps) = number.parse::<f64>().ok().filter(|_| rate.contains('g')) else { return Ok(false) };
        if !(1.0..=10_000.0).contains(&gbps) {
            return Err("expected 1G to 10000G".to_owned());
        }
        let mut parsed = Vec::new();
        for count in counts.iter().filter(|word| **word != "of") {
            match count.parse::<u32>() {
                Ok(count) if (1..=576).contains(&count) => parsed.push(count),
                _ => return Ok(false),
            }
        }
        match (bond, &parsed[..]) {
            (false, []) => (self.nics, self.gbps) = (self.nics.or(None), Some(gbps)),
            (false, [nics]) => (self.nics, self.gbps) = (Some(*nics), Some(gbps)),
            (true, [ports]) => {
                (self.nics, self.bond, self.gbps) = (Some(1), Some(*ports), Some(gbps * f64::from(*ports)))
            }
            (true | false, [nics, ports]) => {
                (self.nics, self.bond, self.gbps) =
                    (Some(*nics), Some(*ports), Some(gbps * f64::from(*ports)));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The cluster of a scenario.
    pub fn of_scenario(checked: &scenario::Checked) -> Self {
        let of = scenario::candidates::Cluster::of(checked);
        let model = MODELS.iter().find(|model| {
            model.gpu == of.gpu
                && of.nvlink.is_some_and(|rate| (rate.bps() as f64 / 8e9 - model.nvlink).abs() < 1.0)
        });
        Cluster {
            nodes: Some(of.servers),
            gpus: Some(of.ranks),
            model,
            nics: Some(of.nics),
            gbps: Some(of.nic.bps() as f64 / 1e9),
            cpu: Some(of.cpu),
            version: of.version,
            nvls: of.nvls,
            sources: vec!["scenario".to_owned()],
            ..Cluster::default()
        }
    }

    /// Adds what logs tell. A description wins, as the cluster that was meant.
    pub fn complete(&mut self, facts: &Facts, curve: Option<&Curve>, test: Option<Test>) {
        self.hosts(facts);
        let model = facts.gpu.as_ref().and_then(|told| Some((Model::named(&told.value)?, &told.at)));
        if let Some((model, at)) = model.filter(|_| self.model.is_none()) {
            self.model = Some(model);
            self.sources.push(format!("GPU {}: {at}", model.name.to_uppercase()));
        }
        if let Some(told) = facts.version.as_ref().filter(|_| self.version.is_none()) {
            self.version = Some(told.value.clone());
        }
        if let Some(told) = &facts.devices {
            let roce = told.value.iter().any(|(_, link)| link.eq_ignore_ascii_case("roce"));
            self.link = self.link.or(Some(if roce { Link::Roce } else { Link::Ib }));
            let bond = told.value.iter().any(|(name, _)| name.contains("bond"));
            self.bond = self.bond.or(bond.then_some(2));
        }
        let nets: Vec<_> = facts.nets.iter().filter(|net| net.gbps > 0.0).collect();
        if let Some(net) = nets.first() {
            if self.nics.is_none() {
                self.nics = Some(nets.len() as u32);
                self.sources.push(format!("{} NICs of {} Gb/s: {}", nets.len(), net.gbps, net.at));
            }
            self.gbps = self.gbps.or(Some(net.gbps));
        }
        self.count(curve, test);
        self.assume(facts);
    }

    /// Nodes and GPUs that the hosts of ranks tell.
    fn hosts(&mut self, facts: &Facts) {
        let of_ranks = (!facts.hosts.is_empty()).then_some(facts.hosts.len() as u32);
        let each = facts.hosts.values().copied().max();
        let per = facts.local_ranks.as_ref().map(|told| told.value).or(each);
        let ranks = facts.ranks.as_ref().map(|told| told.value);
        let nodes = facts.nodes.as_ref().map(|told| told.value).or(of_ranks);
        let nodes = nodes.or_else(|| Some(ranks?.div_ceil(per.or(self.gpus)?.max(1))));
        if let Some(nodes) = nodes {
            if self.nodes.is_some_and(|described| described != nodes) {
                self.sources
                    .push(format!("the log has {nodes} nodes, the description {}", self.nodes.unwrap_or(0)));
            } else if self.nodes.is_none() {
                self.sources.push(format!("{nodes} nodes: the log"));
            }
            self.nodes = Some(nodes);
        }
        let per = per.or_else(|| Some(ranks? / nodes?.max(1))).filter(|per| *per > 0);
        if let (Some(per), None) = (per, self.gpus) {
            self.gpus = Some(per);
            self.sources.push(format!("{per} GPUs per node: the log"));
        }
    }

    /// The number of ranks, from the counts of rows or the ratio of the two bandwidths.
    fn count(&mut self, curve: Option<&Curve>, test: Option<Test>) {
        let Some(curve) = curve.filter(|_| self.nodes.is_none() || self.gpus.is_none()) else { return };
        let Some(ranks) = test.and_then(|test| ranks(curve, test)) else { return };
        match (self.nodes, self.gpus) {
            (None, Some(gpus)) if ranks % gpus == 0 => {
                self.nodes = Some(ranks / gpus);
                self.sources.push(format!("{ranks} ranks: busbw over algbw of the rows"));
            }
            (Some(nodes), None) if ranks % nodes == 0 => {
                self.gpus = Some(ranks / nodes);
                self.sources.push(format!("{ranks} ranks: busbw over algbw of the rows"));
            }
            (None, None) if ranks > 1 => {
                // Our choice: servers of eight, which is what most clusters have.
                let gpus = if ranks % 8 == 0 { 8 } else { ranks };
                (self.gpus, self.nodes) = (Some(gpus), Some(ranks / gpus));
                self.sources.push(format!("{ranks} ranks: busbw over algbw of the rows"));
                self.assumed.push(format!("{gpus} GPUs per node"));
            }
            _ => {}
        }
    }

    /// Assumes the GPUs and NICs of the vendor's server, if nothing else is known.
    fn assume(&mut self, facts: &Facts) {
        let Some(model) = self.model else { return };
        if self.nodes == Some(1) || self.gbps.is_some() && self.nics.is_some() {
            return;
        }
        let (nics, gbps) = model.usual;
        if self.gbps.is_none() {
            self.gbps = Some(gbps);
            self.assumed.push(format!("NICs of {gbps} Gb/s, as in the vendor's server"));
        }
        if self.nics.is_none() {
            let listed = facts.devices.as_ref().map(|told| told.value.len() as u32);
            // A list shorter than the vendor's is a suspicion, not a fact.
            let nics = listed.map_or(nics, |listed| listed.max(nics));
            self.nics = Some(nics);
            self.assumed.push(format!("{nics} NICs per node, as in the vendor's server"));
        }
    }

    /// NICs that the ranks of a node reach at best.
    pub fn reachable(&self) -> Option<u32> {
        let nics = self.nics?;
        let (gpus, model) = (self.gpus.unwrap_or(8), self.model);
        // A job of fewer GPUs than the server has uses the NICs beside them.
        let whole = if model.is_some_and(|model| model.name.starts_with("gb") || model.name.starts_with("gh"))
        {
            gpus
        } else {
            8
        };
        if gpus >= whole || nics <= 1 {
            return Some(nics);
        }
        Some((nics * gpus).div_ceil(whole).clamp(1, nics))
    }

    /// The rate of all reachable NICs of a node, GB/s.
    pub fn network(&self) -> Option<f64> {
        Some(f64::from(self.reachable()?) * self.gbps? / 8.0)
    }

    /// Number of ranks.
    pub fn ranks(&self) -> Option<u32> {
        Some(self.nodes?.saturating_mul(self.gpus?))
    }

    /// The cluster as NCCL's choice knows it; `nics` of them in use.
    pub fn choice(&self, facts: &Facts, nics: u32) -> Option<scenario::candidates::Cluster> {
        let model = self.model;
        Some(scenario::candidates::Cluster {
            servers: self.nodes?,
            ranks: self.gpus?,
            nics,
            nic: Rate((self.gbps.unwrap_or(400.0) * 1e9) as u64),
            nvlink: match model {
                Some(model) => Some(Rate((model.nvlink * 8e9) as u64)),
                None => Some(Rate(2_966_400_000_000)),
            },
            gpu: model.map_or(Gpu::Hopper, |model| model.gpu),
            cpu: self.cpu.unwrap_or_default(),
            version: self.version.as_deref().map(known_version),
            nvls: self.nvls.or_else(|| facts.nvls_channels.as_ref().map(|told| told.value > 0)),
            // Few channels are a suspect, and do not lower the expectation.
            env: facts
                .env
                .iter()
                .filter(|(name, _)| !name.starts_with("NCCL_MAX_"))
                .map(|(name, told)| (name.clone(), told.value.clone()))
                .collect(),
            channels: None,
        })
    }

    /// One line about the cluster.
    pub fn words(&self) -> String {
        let number = |n: Option<u32>| n.map_or("?".to_owned(), |n| n.to_string());
        let gpu = self.model.map_or("GPU".to_owned(), |model| model.name.to_uppercase());
        let mut text = format!("{} x {} {gpu}", number(self.nodes), number(self.gpus));
        if self.nodes != Some(1) {
            let rate = self.gbps.map_or("?".to_owned(), |gbps| format!("{gbps}G"));
            text += &format!(", {}x{rate}", number(self.nics));
            match self.link {
                Some(Link::Roce) => text += " RoCE",
                Some(Link::Ib) => text += " InfiniBand",
                None => {}
            }
        }
        if let Some(bond) = self.bond {
            text += &format!(", bonds of {bond} ports");
        }
        text
    }
}

/// The number of ranks whose rows have these counts or this ratio of bandwidths.
fn ranks(curve: &Curve, test: Test) -> Option<u32> {
    let Test::Of(kind) = test else { return None };
    let last = curve.points.iter().rev().find(|point| point.bytes >= 1 << 20)?;
    // The ratio is 2 (n - 1) / n or (n - 1) / n; it tells n while the digits suffice.
    let (algbw, busbw) = (last.algbw, last.busbw);
    let ratio = busbw / algbw / if kind == Kind::AllReduce { 2.0 } else { 1.0 };
    let found = (1.0 / (1.0 - ratio)).round();
    let error = 0.01 / algbw.min(busbw);
    let exact = (2.0..=1024.0).contains(&found) && error * found * found < 0.4;
    if exact {
        return Some(found as u32);
    }
    // All-gathers, reduce-scatters and all-to-alls count the elements of a rank, mostly floats.
    if matches!(kind, Kind::AllGather | Kind::ReduceScatter | Kind::AllToAll) && last.count > 0 {
        let per_element = last.bytes as f64 / last.count as f64;
        let ranks = per_element / 4.0;
        if ranks >= 2.0 && (ranks - ranks.round()).abs() < 1e-3 {
            return Some(ranks.round() as u32);
        }
    }
    None
}

/// The version as NCCL's model takes it; newer and older ones become the nearest.
fn known_version(version: &str) -> String {
    let minor = version.split('.').nth(1).and_then(|minor| minor.parse::<u32>().ok()).unwrap_or(27);
    let known = collective::Machine::VERSIONS;
    format!("2.{}", minor.clamp(*known.start(), *known.end()))
}

/// A part as it is compared: small letters, a plain `x`, rates without blanks, and InfiniBand's names of rates as numbers.
fn plain(part: &str) -> String {
    let mut text = part.to_lowercase().replace('×', "x").replace(" per node", "").replace(" per server", "");
    for unit in ["gbit/s", "gb/s", "gbps", "gbe"] {
        text = text.replace(&format!(" {unit}"), "g").replace(unit, "g");
    }
    for (name, rate) in [("fdr", "56g"), ("edr", "100g"), ("hdr", "200g"), ("ndr", "400g"), ("xdr", "800g")] {
        text = text.replace(name, rate);
    }
    let numbers = [
        ("one ", "1 "),
        ("two ", "2 "),
        ("three ", "3 "),
        ("four ", "4 "),
        ("eight ", "8 "),
        ("several ", "2 "),
    ];
    for (word, number) in numbers {
        if let Some(rest) = text.strip_prefix(word) {
            text = format!("{number}{rest}");
        }
    }
    text.replace("nics of ", "x").replace("nic of ", "x").replace("hcas of ", "x")
}

/// The first two numbers of a version.
fn minor(version: &str) -> String {
    version.split('.').take(2).collect::<Vec<_>>().join(".")
}

/// The rate of 16 lanes of a generation of PCIe, GB/s (NCCL, `topo.h`).
fn pcie(text: &str) -> Option<f64> {
    let generation: u32 =
        text.trim_start_matches("pcie").trim().trim_start_matches("gen").trim().get(..1)?.parse().ok()?;
    let rate = match generation {
        3 => 12.0,
        4 => 24.0,
        5 => 48.0,
        6 => 96.0,
        _ => return None,
    };
    Some(if text.contains("x8") { rate / 2.0 } else { rate })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_are_read_as_operators_write_them() {
        let of = |text: &str| Cluster::described(text).unwrap();
        let usual = of("8 nodes, 8 h100, 8x400G, rail-optimised, 4 per tor");
        assert_eq!(
            (usual.nodes, usual.gpus, usual.nics, usual.gbps),
            (Some(8), Some(8), Some(8), Some(400.0))
        );
        assert_eq!((usual.rails, usual.per_tor, usual.model.unwrap().name), (Some(true), Some(4), "h100"));
        let short = of("3x8 A100, 4x200G, IB");
        assert_eq!(
            (short.nodes, short.gpus, short.nics, short.link),
            (Some(3), Some(8), Some(4), Some(Link::Ib))
        );
        let bond = of("2 nodes, 8 gpus, bond of 2x200G, roce");
        assert_eq!((bond.nics, bond.bond, bond.gbps), (Some(1), Some(2), Some(400.0)));
        let bonds = of("3 nodes, 8 H100 80GB, 8x(2x200G)");
        assert_eq!(
            (bonds.gpus, bonds.nics, bonds.bond, bonds.gbps),
            (Some(8), Some(8), Some(2), Some(400.0))
        );
        for text in ["8 x 400 Gb/s", "8 NICs of 400G", "8×400G", "8xNDR"] {
            assert_eq!((of(text).nics, of(text).gbps), (Some(8), Some(400.0)), "{text}");
        }
        assert_eq!(
            (of("8xH100").gpus, of("8 GPUs per node").gpus, of("DGX H100").gpus),
            (Some(8), Some(8), None)
        );
        assert_eq!((of("several racks").racks, of("one of 4x200G").used), (Some(2), Some(1)));
        assert_eq!(of("1 of 4x200G").used, Some(1));
        assert_eq!((of("2 sites, 400 us").sites, of("2 sites, 400us").round_trip_us), (Some(2), Some(400.0)));
    }

    #[test]
    fn a_wrong_part_is_named_with_its_place() {
        let error = Cluster::described("8 nodes, 8 h100, rail-optimied").unwrap_err();
        assert_eq!(error.place.as_ref().unwrap().column, 18);
        assert!(error.text.contains("did you mean `rail-optimised`?"), "{}", error.text);
        assert!(Cluster::described("0 nodes").unwrap_err().text.contains("expected 1 to"));
    }
}
