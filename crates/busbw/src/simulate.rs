//! Suspects as scenarios: the measured cluster, healthy and with each suspect, by packets.

use crate::expect::Model;
use crate::log::Test;
use crate::suspects::Accused;
use collective::Gpu;
use serde::Serialize;

/// The scenario that all simulations change.
const BASE: &str = "cluster-h100";

/// Most nodes of a simulation. Our choice: a second or two per size.
const NODES: u32 = 8;

/// Most bytes over NICs in a simulation, for the same reason.
const BYTES: f64 = 6e9;

/// A size by which a suspect is simulated unless the log has better ones.
const USUAL: u64 = 256 << 20;

/// A simulated curve.
#[derive(Clone, Debug, Serialize)]
pub struct Simulated {
    /// `healthy`, or the name of a suspect.
    pub name: &'static str,
    /// What was simulated.
    pub title: String,
    /// Size, measured and simulated bus bandwidth, GB/s. Nothing is measured at a size that the log does not have.
    pub points: Vec<(u64, Option<f64>, f64)>,
    /// The command for the largest size.
    pub command: String,
    /// Why there is no curve.
    pub failed: Option<String>,
}

/// The measured cluster as a scenario.
pub(crate) struct Scene {
    nodes: u32,
    gpus: u32,
    nics: u32,
    gbps: f64,
    preset: &'static str,
    kind: &'static str,
    nvls: bool,
    /// Nodes below a ToR, where the suspect needs uplinks.
    per: u32,
}

impl Scene {
    /// The scene of a model; `None` for a test that no workload has.
    pub(crate) fn of(model: &Model<'_>) -> Option<Self> {
        let Test::Of(kind) = model.test else { return None };
        let nodes = model.nodes.min(NODES);
        let cluster = model.cluster;
        let per = cluster
            .per_tor
            .or_else(|| cluster.racks.map(|racks| model.nodes.div_ceil(racks.max(1))))
            .unwrap_or(1);
        let divides = |per: &u32| nodes.is_multiple_of(*per) && (*per < nodes || nodes == 1);
        let preset = match cluster.model.map(|model| model.gpu) {
            Some(Gpu::Ampere) => "hgx-a100",
            Some(Gpu::Blackwell) => "hgx-b200",
            Some(Gpu::Hopper) | None => "hgx-h100",
        };
        // A server's NICs are a multiple or a divisor of its GPUs.
        let fits = |nics: &u32| model.gpus.is_multiple_of(*nics) || nics.is_multiple_of(model.gpus);
        Some(Scene {
            nodes,
            gpus: model.gpus,
            nics: (1..=model.nics).rev().find(fits)?,
            gbps: model.nic * 8.0,
            preset,
            kind: kind.name(),
            nvls: nodes == 1
                && cluster.model.is_some_and(|model| model.nvls > 0.0)
                && cluster.nvls != Some(false),
            per: (1..=per.max(1)).rev().find(divides).unwrap_or(1),
        })
    }

    /// The settings of a suspect for a size, on top of [`BASE`].
    pub(crate) fn settings(&self, suspect: &[String], bytes: u64) -> Vec<String> {
        let rate = format!("{:.0}Gbps", self.gbps);
        let mut all = vec![
            format!("server.preset={}", self.preset),
            // As nccl-tests.
            "server.cost.call=20us".to_owned(),
            format!("server.gpus={}", self.gpus),
            format!("server.nics={}", self.nics),
            format!("topology.rails={{ servers = {}, spines = 0, rate = \"{rate}\" }}", self.nodes),
            format!("nccl.nvls={}", self.nvls),
            format!("workload.0.collective.kind={}", self.kind),
            format!("workload.0.collective.bytes={bytes}B"),
        ];
        for setting in suspect {
            match setting.split_once(':').unwrap_or((setting, "1us")) {
                ("@uplinks", delay) => all.push(self.uplinks(delay)),
                ("@slow-link", _) => {
                    all.push("failure=[{ links = [[\"s0\", \"*\"]], random = 1, rate = 0.25 }]".to_owned());
                }
                ("@half-rate", _) => {
                    all.push(format!("topology.rails.rate={:.0}Gbps", self.gbps / 2.0));
                }
                _ if setting.starts_with("server.nics=") => {
                    let asked =
                        setting.trim_start_matches("server.nics=").parse().unwrap_or(1).min(self.nics);
                    let fits = |nics: &u32| self.gpus.is_multiple_of(*nics) || nics.is_multiple_of(self.gpus);
                    let nics = (1..=asked).rev().find(fits).unwrap_or(1);
                    all.push(format!("server.nics={nics}"));
                }
                _ => all.push(setting.clone()),
            }
        }
        all
    }

    /// Two layers of switches with as many uplinks as downlinks.
    fn uplinks(&self, delay: &str) -> String {
        let down = self.per * self.nics;
        format!(
            "topology.leaf-spine={{ leaves = {}, spines = {down}, hosts-per-leaf = {down}, rate = \"{:.0}Gbps\", delay = \"{delay}\" }}",
            self.nodes / self.per,
            self.gbps
        )
    }

    /// Sizes to simulate: three measured ones that take seconds, else the usual one.
    fn sizes(&self, measured: &[(u64, f64)]) -> Vec<u64> {
        let bytes = |size: u64| 2.0 * size as f64 * f64::from(self.nodes);
        let fitting: Vec<u64> =
            measured.iter().map(|(size, _)| *size).filter(|size| bytes(*size) <= BYTES).collect();
        let Some(&largest) = fitting.last() else { return vec![USUAL] };
        let near = |share: u64| fitting.iter().copied().min_by_key(|size| size.abs_diff(largest / share));
        let mut sizes: Vec<u64> = [near(16), near(4), Some(largest)].into_iter().flatten().collect();
        sizes.dedup();
        sizes
    }
}

/// The command of a suspect for a size.
pub(crate) fn command(settings: &[String]) -> String {
    let words = ["ropewalk", "run", BASE].into_iter().map(str::to_owned);
    lab::shell::line(words.chain(settings.iter().flat_map(|setting| ["--set".to_owned(), setting.clone()])))
}

/// The size for which a command is told without a simulation.
pub(crate) const TOLD: u64 = USUAL;

/// Simulates the healthy cluster and suspects.
pub(crate) fn simulate(model: &Model<'_>, measured: &[(u64, f64)], suspects: &[Accused]) -> Vec<Simulated> {
    let Some(scene) = Scene::of(model) else { return Vec::new() };
    let healthy = ("healthy", "the cluster as described".to_owned(), Vec::new());
    let all = suspects
        .iter()
        .filter(|suspect| !suspect.simulate.is_empty())
        .map(|suspect| (suspect.name, suspect.title.clone(), suspect.simulate.clone()));
    let sizes = scene.sizes(measured);
    let factor = model.test.factor(scene.nodes * scene.gpus);
    std::iter::once(healthy)
        .chain(all)
        .map(|(name, title, tokens)| {
            let mut simulated =
                Simulated { name, title, points: Vec::new(), command: String::new(), failed: None };
            for &size in &sizes {
                let settings = scene.settings(&tokens, size);
                simulated.command = command(&settings);
                match lab::load(BASE, &settings) {
                    Ok(prepared) => {
                        let run = lab::run(prepared);
                        if !run.summary.complete {
                            simulated.failed = Some(format!("the run of {size} B did not finish"));
                            continue;
                        }
                        let busbw = size as f64 / run.summary.sim_time_us.max(1e-3) / 1e3 * factor;
                        let of_size =
                            measured.iter().find(|(bytes, _)| *bytes == size).map(|(_, busbw)| *busbw);
                        simulated.points.push((size, of_size, busbw));
                    }
                    Err(error) => simulated.failed = Some(error.text()),
                }
            }
            simulated
        })
        .collect()
}
