//! What a log should look like: a range of bus bandwidth per size, with the algorithms and protocols behind it.
//!
//! The slow end is the longest time of NCCL's near-ties by their closed forms, with the measured costs of H100; the fast end is the
//! shortest. NICs and NVLink carry a share of their rate.

use crate::cluster::Cluster;
use crate::log::{Facts, Test};
use collective::{Algorithm, Kind, Protocol};
use scenario::candidates::{self, Candidate};
use serde::Serialize;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Share of a link's rate that payload gets: `docs/nics/clusters.md` has 46 to 49 GB/s per NIC of 400 Gb/s as measured; 0.90 leaves room
/// for smaller MTUs.
pub const EFFICIENCY: (f64, f64) = (0.90, 0.98);

/// Time that nccl-tests add to a call, us. Our choice around 20 us (NVIDIA/nccl-tests#293).
pub const CALL: (f64, f64) = (10.0, 60.0);

/// Share by which measured times may differ from the closed forms. Our choice: with it, the range holds 168 of the 180 measured cells of
/// `docs/nics/clusters.md` (`tests/stories/measured.rs`).
const ERROR: f64 = 0.12;

/// Share by which a rank is faster with more channels than NCCL takes by itself, where bandwidth decides: 380 in place of 366 GB/s
/// (measured, NVIDIA/nccl-tests#309), and the NICs of the measured tables carried less than those of others.
const MORE_CHANNELS: f64 = 0.10;

/// As [`ERROR`], for clusters unlike those to which the costs were fitted: one server, and servers of one GPU. Our choice: twice as much.
const ERROR_ELSEWHERE: f64 = 0.24;

/// As [`EFFICIENCY`], for NVLink in one server (measured: 323 to 370 of 370.8 GB/s on eight H100).
const EFFICIENCY_INSIDE: (f64, f64) = (0.83, 1.0);

/// As the lesser of [`EFFICIENCY`], for a NIC whose node has one GPU in the test (measured: 36 to 46 of 50 GB/s with one H100).
const EFFICIENCY_ALONE: f64 = 0.72;

/// A second choice of NCCL's within this share of the first counts as well.
const NEAR: f64 = 1.10;

/// A protocol that a cluster may take in NCCL's place: its estimate is at most this much longer. Our choice; NCCL's constants differ
/// by version and vendor.
const OTHER: f64 = 1.25;

/// Bus bandwidths, GB/s.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Range {
    /// Least.
    pub least: f64,
    /// Most.
    pub most: f64,
}

/// What is expected for a size.
#[derive(Clone, Debug)]
pub struct Expected {
    /// The range.
    pub range: Range,
    /// The range with the protocols and algorithms that NCCL's model rejects narrowly.
    pub other: Range,
    /// How NCCL does it: its choice and near-ties.
    pub how: Vec<String>,
}

/// Times of a size, us: shortest and longest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span(pub(crate) f64, pub(crate) f64);

/// A test on a cluster.
pub struct Model<'c> {
    pub(crate) cluster: &'c Cluster,
    pub(crate) facts: &'c Facts,
    pub(crate) test: Test,
    /// Time that the program adds to a call, us.
    pub(crate) call: (f64, f64),
    pub(crate) nodes: u32,
    pub(crate) gpus: u32,
    /// NICs that are expected to be in use.
    pub(crate) nics: u32,
    /// Rate of a NIC, GB/s.
    pub(crate) nic: f64,
    known: RefCell<BTreeMap<(u32, u64), Vec<Candidate>>>,
}

impl<'c> Model<'c> {
    /// The model of a test; else what is missing.
    ///
    /// # Errors
    /// What is missing, with how to tell it.
    pub fn new(
        cluster: &'c Cluster,
        facts: &'c Facts,
        test: Option<Test>,
        call: (f64, f64),
    ) -> Result<Self, Vec<String>> {
        let mut missing = Vec::new();
        let mut need = |there: bool, what: &str| {
            if !there {
                missing.push(what.to_owned());
            }
        };
        need(test.is_some(), "the collective: add its command line to the log, or --collective all_reduce");
        need(
            test != Some(Test::Other),
            "a closed form of this test: all-reduce, all-gather, reduce-scatter, all-to-all, broadcast, reduce and sendrecv have one",
        );
        need(
            cluster.nodes.is_some(),
            "the number of nodes: add --cluster \"N nodes\", or the `# Rank` lines of the log",
        );
        need(
            cluster.gpus.is_some(),
            "the GPUs of a node: add --cluster \"8 h100\", or the `# Rank` lines of the log",
        );
        if cluster.nodes != Some(1) {
            let what = "the NICs of a node and their rate: add --cluster \"8x400G\", or --topo with NCCL's topology (NCCL_TOPO_DUMP_FILE)";
            need(cluster.nics.is_some() && cluster.gbps.is_some(), what);
        } else {
            need(cluster.model.is_some(), "the model of the GPUs: add --cluster \"8 h100\"");
        }
        need(cluster.ranks() != Some(1), "a second rank: one rank alone moves nothing");
        let (Some(test), Some(nodes), Some(gpus)) = (test, cluster.nodes, cluster.gpus) else {
            return Err(missing);
        };
        if !missing.is_empty() {
            return Err(missing);
        }
        let reachable = cluster.reachable().unwrap_or(1).max(1);
        let nic = cluster.gbps.unwrap_or(400.0) / 8.0;
        Ok(Model { cluster, facts, test, call, nodes, gpus, nics: reachable, nic, known: RefCell::default() })
    }

    /// The same test with so many NICs in use.
    pub(crate) fn with(&self, nics: u32) -> Model<'c> {
        Model { nics: nics.max(1), known: RefCell::default(), ..*self }
    }

    pub(crate) fn ranks(&self) -> u32 {
        self.nodes.saturating_mul(self.gpus)
    }

    /// The rate of the NICs of a node, GB/s.
    pub(crate) fn network(&self) -> f64 {
        f64::from(self.nics) * self.nic
    }

    /// Payload of a GPU's NVLink port, GB/s; that of an H100 if the GPUs are unknown.
    fn nvlink(&self) -> f64 {
        self.cluster.model.map_or(370.8, |model| model.nvlink)
    }

    /// GB/s on the bus of a size and a time.
    pub(crate) fn busbw(&self, bytes: u64, us: f64) -> f64 {
        bytes as f64 / us.max(1e-3) / 1e3 * self.test.factor(self.ranks())
    }

    /// Bytes over the NICs of a node.
    pub(crate) fn traffic(&self, algorithm: Algorithm, bytes: u64) -> f64 {
        let (bytes, nodes, gpus) = (bytes as f64, f64::from(self.nodes), f64::from(self.gpus));
        if self.nodes < 2 {
            return 0.0;
        }
        let ring = bytes * self.test.factor(self.ranks());
        match (self.test, algorithm) {
            // The inner nodes of one of the two trees send down twice; of two nodes, each is the root of a tree.
            (Test::Of(Kind::AllReduce), Algorithm::Tree | Algorithm::Nvls) => {
                bytes * if self.nodes == 2 { 1.0 } else { 2.0 }
            }
            (Test::Of(Kind::AllToAll), _) => bytes * gpus * (nodes - 1.0) / nodes,
            // One rank of a node sends over the network.
            (Test::SendRecv, _) => bytes * f64::from(self.nics),
            _ => ring,
        }
    }

    /// Bytes over the busiest NVLink port.
    fn inside(&self, algorithm: Algorithm, bytes: u64) -> f64 {
        if self.gpus < 2 {
            return 0.0;
        }
        let (each, bytes) = (f64::from(self.gpus), bytes as f64);
        match (self.test, algorithm) {
            (Test::Of(Kind::AllReduce), Algorithm::Nvls) => bytes * (each + 1.0) / each,
            (Test::Of(Kind::AllReduce), Algorithm::Tree) => bytes * 2.0,
            (Test::Of(Kind::AllToAll), _) => bytes * (each - 1.0) / f64::from(self.ranks()),
            // A ring through several servers leaves each server by one GPU's NIC, which differs from ring to ring.
            _ if self.nodes > 1 => bytes * self.test.factor(self.ranks()) * (each - 1.0) / each,
            _ => bytes * self.test.factor(self.ranks()),
        }
    }

    fn candidates(&self, bytes: u64) -> Vec<Candidate> {
        let Test::Of(kind) = self.test else { return Vec::new() };
        let key = (self.nics, bytes);
        if let Some(known) = self.known.borrow().get(&key) {
            return known.clone();
        }
        let choice = self.cluster.choice(self.facts, self.nics);
        let plain = |mut choice: candidates::Cluster| {
            choice.env.clear();
            choice.candidates(kind, bytes).unwrap_or_default()
        };
        // A variable that NCCL's model does not know restricts nothing.
        let found = choice
            .map_or_else(Vec::new, |choice| choice.candidates(kind, bytes).unwrap_or_else(|_| plain(choice)));
        self.known.borrow_mut().insert(key, found.clone());
        found
    }

    /// The candidates within a share of NCCL's first choice. A tuning line decides, if the log has one for the size.
    fn near(&self, bytes: u64, share: f64) -> Vec<Candidate> {
        let all = self.candidates(bytes);
        if let Some((algorithm, protocol)) = self.facts.tuned.get(&bytes) {
            let named =
                |of: &Candidate| algorithm.starts_with(of.algorithm.name()) && protocol == of.protocol.name();
            if let Some(tuned) = all.iter().find(|of| named(of)) {
                return vec![*tuned];
            }
        }
        let best = all.first().map_or(0.0, |first| first.nccl_us);
        // Without a word about NVLS, both with and without it are possible: many clusters turn it off.
        let open = self.nodes > 1 && self.cluster.nvls.is_none() && self.facts.nvls_channels.is_none();
        let other = all
            .iter()
            .filter(|of| of.algorithm != Algorithm::Nvls)
            .map(|of| of.nccl_us)
            .fold(f64::MAX, f64::min);
        // On two nodes a ring is healthy as well: it has the NICs' rate, and a tree up to twice of it.
        let two = self.nodes == 2 && self.test == Test::Of(Kind::AllReduce);
        let rings = all.iter().filter(|of| of.algorithm == Algorithm::Ring);
        let ring = rings.map(|of| of.nccl_us).fold(f64::MAX, f64::min);
        let near = |of: &&Candidate| {
            of.nccl_us <= share * best
                || (open && of.nccl_us <= share * other)
                || (two && of.algorithm == Algorithm::Ring && of.nccl_us <= share * ring)
        };
        all.iter().filter(near).copied().collect()
    }

    /// The same algorithms with the protocols that NCCL's model rejects narrowly.
    fn protocols(&self, bytes: u64, near: &[Candidate]) -> Vec<Candidate> {
        let same = |of: &Candidate| near.iter().any(|near| near.algorithm == of.algorithm);
        self.near(bytes, OTHER).into_iter().filter(same).collect()
    }

    /// Time of a candidate, us, without what the program adds.
    fn times(&self, of: &Candidate, bytes: u64) -> Span {
        let measured = self.cluster.model.is_none_or(|model| model.measured);
        let share = of.protocol.wire(1 << 20) as f64 / f64::from(1 << 20);
        let us = |bytes: f64, rate: f64| bytes * share / rate.max(1e-6) / 1e3;
        let network = us(self.traffic(of.algorithm, bytes), self.network());
        let port = match (of.algorithm, self.cluster.model) {
            (Algorithm::Nvls, Some(model)) if model.nvls > 0.0 => self.nvlink() * model.nvls,
            (Algorithm::Nvls, _) => self.nvlink() * 0.85,
            _ => self.nvlink(),
        };
        let nvlink = us(self.inside(of.algorithm, bytes), port);
        let alone = if self.gpus == 1 { EFFICIENCY_ALONE } else { EFFICIENCY.0 };
        let within =
            if of.algorithm == Algorithm::Nvls || self.nodes > 1 { EFFICIENCY } else { EFFICIENCY_INSIDE };
        let ideal = (network / EFFICIENCY.1).max(nvlink / within.1);
        let loaded = (network / alone).max(nvlink / within.0);
        let error = if self.nodes == 1 || self.gpus == 1 { ERROR_ELSEWHERE } else { ERROR };
        match of.closed_form_us {
            // The bytes of an all-to-all move as fast as NICs do in other harnesses (48 to 49 GB/s, NVIDIA/nccl-tests#267); in the
            // measured tables they do not.
            Some(form) if self.test == Test::Of(Kind::AllToAll) => {
                Span(ideal, (form * (1.0 + error)).max(loaded))
            }
            // How fast LL moves many bytes was not measured (docs/nics/clusters.md).
            Some(form) if measured && of.protocol == Protocol::Ll => {
                Span((form * 0.25).max(ideal), (form * (1.0 + error)).max(loaded))
            }
            Some(form) if measured => {
                let bound = (ideal / form.max(1e-3)).min(1.0);
                Span(
                    (form * (1.0 - error - MORE_CHANNELS * bound)).max(ideal),
                    (form * (1.0 + error)).max(loaded),
                )
            }
            // The steps of other GPUs cost between nothing and what they cost H100.
            Some(form) => Span(ideal.max(of.nccl_us.min(form) * 0.5), (form * (1.0 + error)).max(loaded)),
            // NCCL expects a third to a fifth of the measured time of a step.
            None => Span(ideal.max(of.nccl_us * 0.5), loaded * 1.06 + self.steps(of)),
        }
    }

    /// Most time that the steps of an algorithm without a closed form take, us.
    fn steps(&self, of: &Candidate) -> f64 {
        // A hop of the protocol Simple takes 25 us on H100, and that of LL128 14 us over the network (docs/nics/clusters.md).
        let hop = if of.protocol == Protocol::Simple { 25.0 } else { 14.0 };
        let nodes = f64::from(self.nodes.next_power_of_two().ilog2());
        match of.algorithm {
            Algorithm::Nvls => hop * (2.0 + 2.0 * nodes * 2.0),
            Algorithm::Chain => hop * f64::from(self.ranks()),
            _ => hop * (2.0 * nodes + f64::from(self.gpus)),
        }
    }

    /// Shortest and longest time of a size over candidates, us.
    fn span(&self, bytes: u64, candidates: &[Candidate]) -> Span {
        let all = candidates.iter().map(|of| self.times(of, bytes));
        let found = all.reduce(|a, b| Span(a.0.min(b.0), a.1.max(b.1)));
        // Sendrecv, and what NCCL does not choose: the links alone. A GPU has at least eight chunks of 128 KiB under way.
        let Span(least, most) = found.unwrap_or_else(|| {
            let us = |bytes: f64, rate: f64| bytes / rate.max(1e-6) / 1e3;
            let links = us(self.traffic(Algorithm::Ring, bytes), self.network())
                .max(us(self.inside(Algorithm::Ring, bytes), self.nvlink()));
            Span(links / EFFICIENCY.1, links / EFFICIENCY.0 * 1.1 + 60.0)
        });
        Span(least + self.call.0, most + self.call.1)
    }

    /// What is expected for a size.
    pub fn expected(&self, bytes: u64) -> Expected {
        let near = self.near(bytes, NEAR);
        let more = self.protocols(bytes, &near);
        let how = near.iter().map(|of| format!("{} {}", of.algorithm.name(), of.protocol.name())).collect();
        Expected {
            range: self.range(bytes, self.span(bytes, &near)),
            other: self.range(bytes, self.span(bytes, &more)),
            how,
        }
    }

    pub(crate) fn range(&self, bytes: u64, Span(least, most): Span) -> Range {
        Range { least: self.busbw(bytes, most), most: self.busbw(bytes, least) }
    }

    /// The range if the NICs of a node carry at most so many GB/s together. `scale` is the share of NICs that it concerns.
    pub(crate) fn limited(&self, bytes: u64, rate: (f64, f64)) -> Range {
        let near = self.near(bytes, NEAR);
        let Span(least, most) = self.span(bytes, &near);
        let usual = if self.test == Test::Of(Kind::AllToAll) { Algorithm::Direct } else { Algorithm::Ring };
        let us = |rate: f64| self.traffic(usual, bytes) / rate.max(1e-6) / 1e3;
        self.range(bytes, Span(least.max(us(rate.1) + self.call.0), most.max(us(rate.0) + self.call.1)))
    }

    /// The range with other candidates than NCCL's own.
    pub(crate) fn rejected(&self, bytes: u64) -> Range {
        let near = self.near(bytes, NEAR);
        let more = self.protocols(bytes, &near);
        let rest: Vec<Candidate> = more.iter().filter(|of| !near.contains(of)).copied().collect();
        self.range(bytes, self.span(bytes, if rest.is_empty() { &more } else { &rest }))
    }

    /// True if a ring's steps alone take longer than this time, us: each of them at least what the protocol's hop costs.
    pub(crate) fn ring_steps(&self) -> f64 {
        match self.test {
            Test::Of(Kind::AllReduce) => 2.0 * (f64::from(self.ranks()) - 1.0),
            _ => f64::from(self.ranks()) - 1.0,
        }
    }

    /// Least time of a ring for a size, us: the best of its protocols.
    pub(crate) fn ring_us(&self, bytes: u64) -> Option<f64> {
        let rings = self.candidates(bytes).into_iter().filter(|of| of.algorithm == Algorithm::Ring);
        rings.filter_map(|of| of.closed_form_us).reduce(f64::min)
    }

    /// What NICs, or NVLink in one node, carry at best, on the bus: with its computation.
    pub fn ceiling(&self) -> (f64, String) {
        let each = EFFICIENCY.1 * self.nic;
        match self.test {
            _ if self.nodes < 2 => {
                let port = EFFICIENCY.1 * self.nvlink();
                (port, format!("{port:.0} GB/s of payload per NVLink port"))
            }
            Test::Of(Kind::AllToAll) => {
                let (ranks, gpus) = (f64::from(self.ranks()), f64::from(self.gpus));
                let share = each * f64::from(self.nics) / gpus;
                let most = share * (ranks - 1.0) / (ranks - gpus).max(1.0);
                (most, format!("{}/{} x {share:.0} GB/s per GPU's NIC", self.nodes, self.nodes - 1))
            }
            Test::SendRecv => (each, format!("one NIC of {each:.0} GB/s")),
            _ => {
                let total = each * f64::from(self.nics);
                (total, format!("{} x {each:.0} GB/s per NIC", self.nics))
            }
        }
    }
}
