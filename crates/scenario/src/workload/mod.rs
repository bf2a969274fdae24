//! Workloads: `[[workload]]` entries, one file per kind.
//!
//! To add a kind, write a file with its settings and `impl Generate`, and add its line to the list below.

pub mod cdf;
pub(crate) mod communicator;
pub(crate) mod cost;
mod digest;
pub(crate) mod draft;
pub mod groups;
pub mod host_sample;
pub(crate) mod laid;
pub(crate) mod outline;
pub mod peers;
pub(crate) mod planned;
pub mod rank_groups;
pub(crate) mod ranks;
pub(crate) mod reads;
pub mod routing;
pub(crate) mod scene;
pub mod sizes;
pub(crate) mod split;

use crate::placement::{Servers, Stragglers};
use draft::Draft;
use finding::{Finding, code};
use model::Time;
use rnic::Verb;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
pub use split::{Paths, Split, Subflows};
use std::num::NonZeroU16;
use std::path::Path;

/// Settings of a kind of workload, which generate messages.
pub(crate) trait Generate {
    /// Adds the messages of one job and returns its number of groups (communicators). The paths of errors start at the
    /// settings.
    fn generate(&self, draft: &mut Draft<'_>) -> Result<usize, Finding>;

    /// Replaces names of files by the contents of the files; `folder` is the folder of the scenario.
    fn read_files(&mut self, _folder: &Path) -> Result<(), Finding> {
        Ok(())
    }

    /// The default of `qp`.
    fn usual_qp(&self) -> QpUse {
        QpUse::Persistent
    }
}

/// Which messages share a queue pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum QpUse {
    /// One queue pair per source, destination and job, which keeps rate and PSN from message to message.
    #[default]
    Persistent,
    /// A new queue pair for every message.
    PerMessage,
    /// So many queue pairs per source, destination, job and communicator, which whole messages take in turn.
    InTurn(NonZeroU16),
}

fn is_write(verb: &Verb) -> bool {
    *verb == Verb::Write
}

macro_rules! workloads {
    ($($(#[$doc:meta])* $file:ident: $kind:ident = $name:tt,)+) => {
        $(pub mod $file;)+

        /// A job: one kind of traffic, with its settings.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "kebab-case", deny_unknown_fields)]
        pub struct Workload {
            /// Name of the job in results and in `--set`. Default: the name of its kind, numbered if there are several.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub name: Option<String>,
            /// Start of the job. Default 0 (our choice).
            #[serde(default)]
            pub start: Time,
            /// Each host starts its part of the job up to this long after `start`, at a time that the seed draws. Default 0:
            /// all hosts start together (our choice).
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub jitter: Option<Time>,
            /// Servers on which the job runs, by number: `"0..127"` with both ends, `"0..3,8"`, or a list. Its GPUs are numbered in this
            /// order; without `[server]` every host is a server. Only of jobs of GPUs. Default: all servers.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub servers: Option<Servers>,
            /// GPUs of each of these servers that the job uses, by number: `"0..3"`, or a list. Other jobs may use the others. Only of
            /// jobs of GPUs. Default: all.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub gpus: Option<Servers>,
            /// Servers whose GPUs compute slowly in this job: `{ server = 5, factor = 1.1 }`, or a list of such. The number is that
            /// in the fabric. Default: none.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub slow: Option<Stragglers>,
            /// Jitter of computation: each computation takes up to this share of its time longer, as the seed draws: 0.1 for up to
            /// 10 %. Default: none.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub compute_jitter: Option<f64>,
            /// Whether the job is background traffic. It stops when all foreground jobs have finished, and a run is
            /// complete without it. Default false (our choice).
            #[serde(default)]
            pub background: bool,
            /// Traffic class of the job: a `[class.NAME]`, `"foreground"` or `"background"`. Default `"background"` for
            /// background traffic, else `"foreground"` (our choice).
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub class: Option<String>,
            /// Use of queue pairs. `"persistent"`: one queue pair per source, destination and job; `"per-message"`: one
            /// per message; `{ in-turn = 4 }`: so many per source, destination, job and communicator, which messages take in
            /// turn, as with NCCL's NCCL_IB_QPS_PER_CONNECTION = 4. (NCCL_IB_SPLIT_DATA_ON_QPS = 1, which gives each queue pair a part
            /// of every message, is `split = { subflows = 4, paths = "free" }`.) Default `"persistent"` (collective libraries keep their connections), for `poisson`
            /// `"per-message"` (in the HPCC family of ns-3 simulators each flow has its own queue pair), for `goal`
            /// `"per-message"` (on a shared queue pair, messages would wait for the order of the file), and for `htsim`.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub qp: Option<QpUse>,
            /// Splitting of messages into subflows on paths of their own. Default: `{}` if the scheme of the job's class follows
            /// pinned paths (`ethereal`), else messages stay whole.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub split: Option<Split>,
            /// RDMA operation of all messages: `"write"`, `"send"` or `"read"`. Data goes from sender to receiver with all of them. A READ
            /// begins with a request packet of the receiver on a queue pair of its own, and the flow ends when its last byte has arrived;
            /// `nic.reads` limits how many are under way. Responses are acknowledged as WRITEs are, and captures show both as WRITEs. A READ
            /// cannot be split, and messages cannot be READs where hosts other than their receivers start them, as in a ring.
            /// SENDs differ from WRITEs in loss recovery alone, and only modes that repair both alike carry them. Default `"write"`
            /// (collective libraries write).
            #[serde(default, skip_serializing_if = "is_write")]
            pub verb: Verb,
            $(
                $(#[$doc])*
                #[serde(rename = $name, default, skip_serializing_if = "Option::is_none")]
                pub $file: Option<$file::$kind>,
            )+
        }

        impl Workload {
            /// The names of all kinds.
            pub const KINDS: &'static [&'static str] = &[$($name),+];

            /// The kinds that are set; a checked workload has exactly one.
            pub fn kinds(&self) -> Vec<&'static str> {
                let mut kinds = Vec::new();
                $(if self.$file.is_some() { kinds.push($name); })+
                kinds
            }

            pub(crate) fn generate(&self, draft: &mut Draft<'_>) -> Result<usize, Finding> {
                $(if let Some(settings) = &self.$file {
                    return settings.generate(draft).map_err(|error| error.within($name));
                })+
                Ok(0)
            }

            pub(crate) fn read_files(&mut self, folder: &Path) -> Result<(), Finding> {
                $(if let Some(settings) = &mut self.$file {
                    return settings.read_files(folder).map_err(|error| error.within($name));
                })+
                Ok(())
            }

            pub(crate) fn usual_qp(&self) -> QpUse {
                $(if let Some(settings) = &self.$file {
                    return settings.usual_qp();
                })+
                QpUse::Persistent
            }
        }
    };
}

workloads! {
    /// Every rank of a ring sends one message to the next rank.
    neighbour_ring: NeighbourRing = "neighbour-ring",
    /// All ranks of a group reduce a buffer and share the result.
    all_reduce: AllReduce = "all-reduce",
    /// Every rank of a group sends a share of its buffer to every other rank.
    all_to_all: AllToAll = "all-to-all",
    /// A collective of GPUs, as NCCL does it.
    collective: Collective = "collective",
    /// Training steps of a language model.
    training: Training = "training",
    /// Layers whose experts are divided among GPUs.
    experts: Experts = "experts",
    /// Every host sends one message, and every host receives one.
    permutation: Permutation = "permutation",
    /// Many hosts send to one.
    incast: Incast = "incast",
    /// Several hosts receive, each from many senders of its own.
    fan_in: FanIn = "fan-in",
    /// One host sends to the other in randomly drawn pairs.
    pairs: Pairs = "pairs",
    /// One host sends messages to another, one at a time.
    back_to_back: BackToBack = "back-to-back",
    /// Flows of random sizes that arrive at random times between random hosts.
    poisson: Poisson = "poisson",
    /// Every host sends messages to random hosts, one at a time.
    random_partner: RandomPartner = "random-partner",
    /// Computations, collectives and messages that wait for each other, as written in the scenario.
    graph: Graph = "graph",
    /// A Chakra execution trace.
    chakra: Chakra = "chakra",
    /// A GOAL schedule.
    goal: Goal = "goal",
    /// A workload of SimAI or AICB.
    simai: Simai = "simai",
    /// A connection matrix of htsim.
    htsim: Htsim = "htsim",
    /// Messages that a program posts while the run goes on.
    program: Program = "program",
    /// Inference serving.
    serving: Serving = "serving",
    /// Hosts write a checkpoint to storage nodes.
    checkpoint: Checkpoint = "checkpoint",
    /// A list of messages.
    flows: Flows = "flows",
}

impl Workload {
    /// Keys of every workload, whatever its kind.
    pub(crate) const COMMON_KEYS: &'static [&'static str] = &[
        "name",
        "start",
        "jitter",
        "servers",
        "gpus",
        "slow",
        "compute-jitter",
        "background",
        "class",
        "qp",
        "split",
        "verb",
    ];

    /// The kinds whose ranks are the GPUs of servers.
    pub(crate) const OF_GPUS: &'static [&'static str] =
        &["collective", "training", "experts", "graph", "goal", "chakra", "simai"];

    /// Whether `key` is a key of the `[[workload]]` table: one that every kind has, or the name of a kind.
    pub(crate) fn has_key(key: &str) -> bool {
        Workload::COMMON_KEYS.contains(&key) || Workload::KINDS.contains(&key)
    }

    /// True if a program posts its messages while the run goes on: one outside, or that of serving.
    pub(crate) fn is_driven(&self) -> bool {
        self.program.is_some() || self.serving.is_some()
    }

    /// The name of the traffic class.
    pub(crate) fn class(&self) -> &str {
        let default = if self.background { "background" } else { "foreground" };
        self.class.as_deref().unwrap_or(default)
    }

    /// Checks that exactly one kind is chosen.
    pub(crate) fn one_kind(&self) -> Result<&'static str, Finding> {
        match *self.kinds() {
            [kind] => Ok(kind),
            [] => Err(code::MISSING
                .at("", "expected a kind of workload, found none")
                .with_help(format!("add one of {}", Workload::KINDS.join(", ")))),
            [first, second, ..] => {
                let text = format!("expected one kind of workload, found `{first}` and `{second}`");
                let mut error = code::CONFLICT
                    .at(second, text)
                    .with_help("write one [[workload]] for each; they run at the same time");
                error.at_key = true;
                Err(error)
            }
        }
    }
}

#[cfg(test)]
mod tests;
