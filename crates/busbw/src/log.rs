//! What readers find in a log: measured curves, and facts about the cluster, each with its line.

use collective::Kind;
use finding::{Finding, code};
use scenario::file::{self, ReadError, Reading};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A file that a user gives, or a part of it.
#[derive(Clone, Debug)]
pub struct Input {
    /// Name for messages.
    pub name: String,
    /// The text.
    pub text: String,
}

/// What is read of a log: the text, and its lines. The largest that we know, of 512 ranks with NCCL_DEBUG=INFO, has 200 MB (our choice).
const READING: Reading = Reading::import(4);

impl Input {
    /// Reads a file, or standard input for `-`. Bytes that are no text are replaced, because logs of many ranks may be torn anywhere.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn read(name: &str) -> Result<Self, Finding> {
        let failed = |error: ReadError| code::FILE.plain(error.about(name));
        let bytes = match name {
            "-" => file::unpacked(std::io::stdin().lock(), READING, None).map_err(failed)?,
            _ => file::bytes(Path::new(name), READING).map_err(failed)?,
        };
        Ok(Input { name: name.to_owned(), text: String::from_utf8_lossy(&bytes).into_owned() })
    }
}

/// What nccl-tests can measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Test {
    /// A collective.
    Of(Kind),
    /// Every rank sends to the next one.
    SendRecv,
    /// Another test, without a closed form.
    Other,
}

/// The names of tests in programs, logs and options.
const TESTS: [(&str, Test); 10] = [
    ("all_reduce", Test::Of(Kind::AllReduce)),
    ("all_gather", Test::Of(Kind::AllGather)),
    ("reduce_scatter", Test::Of(Kind::ReduceScatter)),
    ("alltoall", Test::Of(Kind::AllToAll)),
    ("broadcast", Test::Of(Kind::Broadcast)),
    ("reduce", Test::Of(Kind::Reduce)),
    ("sendrecv", Test::SendRecv),
    ("gather", Test::Other),
    ("scatter", Test::Other),
    ("hypercube", Test::Other),
];

impl Test {
    /// The test of a name such as `all_reduce_perf`, `AllReduce` or `all-reduce`.
    pub fn named(name: &str) -> Option<Self> {
        let plain = |name: &str| name.to_lowercase().replace(['_', '-', ' '], "");
        let wanted = plain(name.rsplit('/').next()?.trim_end_matches("_perf"));
        let wanted = if wanted == "alltoallv" { "alltoall".to_owned() } else { wanted };
        TESTS.iter().find(|(name, _)| plain(name) == wanted).map(|(_, test)| *test)
    }

    /// The names that `--collective` takes.
    pub fn names() -> Vec<&'static str> {
        TESTS.iter().filter(|(_, test)| *test != Test::Other).map(|(name, _)| *name).collect()
    }

    /// The name in answers.
    pub fn name(self) -> &'static str {
        match self {
            Test::Of(kind) => kind.name(),
            Test::SendRecv => "sendrecv",
            Test::Other => "a test without a closed form",
        }
    }

    /// Bus bandwidth over algorithm bandwidth among so many ranks.
    pub fn factor(self, ranks: u32) -> f64 {
        match self {
            Test::Of(kind) => {
                let (over, under) = kind.bus(ranks);
                f64::from(over) / f64::from(under.max(1))
            }
            Test::SendRecv | Test::Other => 1.0,
        }
    }
}

impl Serialize for Test {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

/// A size and its measured time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Line of the log, from 1.
    pub line: usize,
    /// Bytes, as nccl-tests count them.
    pub bytes: u64,
    /// Elements of the row.
    pub count: u64,
    /// Time, us.
    pub us: f64,
    /// Algorithm bandwidth, GB/s, as printed.
    pub algbw: f64,
    /// Bus bandwidth, GB/s, as printed.
    pub busbw: f64,
    /// Wrong elements, if they were counted.
    pub wrong: f64,
}

/// One run of a test.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve {
    /// The test, if the log names it.
    pub test: Option<Test>,
    /// Sizes, as they stand in the log.
    pub points: Vec<Point>,
    /// Whether a reduction is named in the rows.
    pub reduces: Option<bool>,
    /// Whether results were checked out of place and not in place, as of an all-to-all.
    pub unchecked_in_place: bool,
}

/// A measurement of perftest.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Perftest {
    /// Line of the log, from 1.
    pub line: usize,
    /// The test, such as `RDMA_Write BW Test`.
    pub test: String,
    /// The device, if it is named.
    pub device: Option<String>,
    /// Number of queue pairs.
    pub qps: Option<u32>,
    /// Whether the buffers lie in the memory of a GPU.
    pub gpu_memory: bool,
    /// Bytes of a message.
    pub bytes: u64,
    /// Bandwidth, Gb/s.
    pub gbps: f64,
}

/// A line that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unread {
    /// Name of the file.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// The line, shortened.
    pub text: String,
    /// What was expected.
    pub why: String,
}

/// A value, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Told<T> {
    /// The value.
    pub value: T,
    /// File and line.
    pub at: String,
}

/// What a log tells about the cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// Hosts in the order of ranks, with the number of ranks of each.
    pub hosts: BTreeMap<String, u32>,
    /// Number of ranks.
    pub ranks: Option<Told<u32>>,
    /// Number of nodes.
    pub nodes: Option<Told<u32>>,
    /// Ranks per node.
    pub local_ranks: Option<Told<u32>>,
    /// Name of the GPUs.
    pub gpu: Option<Told<String>>,
    /// Version of NCCL, such as `2.27`.
    pub version: Option<Told<String>>,
    /// Devices that NCCL lists, with their link layers.
    pub devices: Option<Told<Vec<(String, String)>>>,
    /// Whether NCCL uses sockets.
    pub socket: Option<Told<()>>,
    /// NICs that connections use, by number.
    pub nics_used: BTreeSet<u32>,
    /// Connections over the network with GPUDirect RDMA, and without, and the first line without.
    pub gdr_links: u32,
    /// Connections without GPUDirect RDMA.
    pub plain_links: Option<Told<u32>>,
    /// `GDR 0` or `GDR 1` of connected rings, or of devices.
    pub gdr: Option<Told<bool>>,
    /// Connections through host memory inside a server.
    pub shm: Option<Told<u32>>,
    /// Number of channels of collectives.
    pub channels: Option<Told<u32>>,
    /// Number of channels of NVLS.
    pub nvls_channels: Option<Told<u32>>,
    /// Variables of NCCL.
    pub env: BTreeMap<String, Told<String>>,
    /// The worst type of path between NIC and GPU: PIX, PXB, PHB, SYS.
    pub path: Option<Told<String>>,
    /// Algorithm and protocol by size, from tuning lines.
    pub tuned: BTreeMap<u64, (String, String)>,
    /// Errors of queue pairs that ran out of retries.
    pub retry_exceeded: Option<Told<u32>>,
    /// NICs of a topology file: name and speed, Mb/s, and whether GPUDirect RDMA works.
    pub nets: Vec<Net>,
    /// GPUs of a topology file.
    pub topology_gpus: Option<u32>,
    /// Counters with a name of interest, such as CNPs or pauses.
    pub counters: Vec<Told<(String, u64)>>,
}

/// A NIC of a topology file.
#[derive(Clone, Debug, PartialEq)]
pub struct Net {
    /// Name.
    pub name: String,
    /// Rate, Gb/s.
    pub gbps: f64,
    /// Whether GPUDirect RDMA works.
    pub gdr: Option<bool>,
    /// Rate of the slowest PCIe link above it, GB/s.
    pub pcie: Option<f64>,
    /// Whether a PCIe switch joins it with a GPU.
    pub near_gpu: bool,
    /// File and line.
    pub at: String,
}

/// All that one input tells.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Log {
    /// Name of the input.
    pub name: String,
    /// What it was taken for.
    pub kinds: BTreeSet<&'static str>,
    /// Runs of tests.
    pub curves: Vec<Curve>,
    /// Measurements of perftest.
    pub perftest: Vec<Perftest>,
    /// Facts.
    pub facts: Facts,
    /// Lines that could not be read.
    pub unread: Vec<Unread>,
}

/// Most characters of a line that are quoted. Our choice.
const QUOTED: usize = 100;

impl Log {
    /// The place of a line.
    pub(crate) fn at(&self, line: usize) -> String {
        format!("{}:{line}", self.name)
    }

    /// A value with the place of its line.
    pub(crate) fn told<T>(&self, line: usize, value: T) -> Option<Told<T>> {
        Some(Told { value, at: self.at(line) })
    }

    /// Quotes a line that could not be read.
    pub(crate) fn quote(&mut self, line: usize, text: &str, why: impl Into<String>) {
        let shown: String = text.trim_end().chars().take(QUOTED).filter(|c| !c.is_control()).collect();
        self.unread.push(Unread { file: self.name.clone(), line, text: shown, why: why.into() });
    }
}

impl Facts {
    /// Adds what another log tells; what stands here already wins.
    pub fn add(&mut self, other: &Facts) {
        fn or<T: Clone>(mine: &mut Option<T>, theirs: &Option<T>) {
            if mine.is_none() {
                mine.clone_from(theirs);
            }
        }
        if self.hosts.is_empty() {
            self.hosts.clone_from(&other.hosts);
        }
        or(&mut self.ranks, &other.ranks);
        or(&mut self.nodes, &other.nodes);
        or(&mut self.local_ranks, &other.local_ranks);
        or(&mut self.gpu, &other.gpu);
        or(&mut self.version, &other.version);
        or(&mut self.devices, &other.devices);
        or(&mut self.socket, &other.socket);
        self.nics_used.extend(&other.nics_used);
        self.gdr_links = self.gdr_links.saturating_add(other.gdr_links);
        or(&mut self.plain_links, &other.plain_links);
        or(&mut self.gdr, &other.gdr);
        or(&mut self.shm, &other.shm);
        or(&mut self.channels, &other.channels);
        or(&mut self.nvls_channels, &other.nvls_channels);
        for (name, value) in &other.env {
            self.env.entry(name.clone()).or_insert_with(|| value.clone());
        }
        or(&mut self.path, &other.path);
        for (bytes, how) in &other.tuned {
            self.tuned.entry(*bytes).or_insert_with(|| how.clone());
        }
        or(&mut self.retry_exceeded, &other.retry_exceeded);
        if self.nets.is_empty() {
            self.nets.clone_from(&other.nets);
        }
        or(&mut self.topology_gpus, &other.topology_gpus);
        self.counters.extend(other.counters.iter().cloned());
    }

    /// The value of a variable.
    pub fn var(&self, name: &str) -> Option<&str> {
        self.env.get(name).map(|told| told.value.as_str())
    }
}
