//! Chakra execution traces.

mod graph;
mod lay;

use super::digest;
use super::draft::Draft;
use super::training::Dimension;
use super::{Generate, QpUse};
use crate::values::Flops;
use finding::{Finding, code};
use formats::chakra::{self, Groups, Program};
use model::Rate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;

/// A Chakra execution trace: per rank, a graph of computations, messages and collectives. Computations take their recorded time,
/// and communication runs on the fabric. Rank r of the trace is GPU r.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Chakra {
    /// The files: one of them (`trace.0.et`), the start of their names (`trace`), a name with the rank's place (`trace.{rank}.et`), or a
    /// folder that holds one trace. A path relative to the scenario's file. No default.
    pub file: String,
    /// Groups of ranks: a JSON file such as `{"1": [0, 1], "2": [2, 3]}`. Default: the groups that the trace defines itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<String>,
    /// Ranks that run a trace of one rank. `"off"`: that rank; `"spmd"`: all GPUs, each with its own group of the same
    /// shape. Default `"off"` (our choice).
    #[serde(default)]
    pub replicate: Replicate,
    /// Dependencies that count. `"all"`: those of data and those of control; `"data"`: those of data (older versions of
    /// ASTRA-sim). Default `"all"` (ASTRA-sim today).
    #[serde(default)]
    pub deps: Deps,
    /// Algorithm and tuning of the collectives. An algorithm that cannot do a collective leaves it to the default one. Default:
    /// the defaults of the workload `collective`.
    #[serde(default)]
    pub collectives: Dimension,
    /// Time of GPU computations from their operations (`num_ops`) and bytes (`tensor_size`). Default: the recorded durations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roofline: Option<Roofline>,
    /// Rate of the remote memory, which determines the time of nodes that load and store. Default: such nodes take no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote_memory: Option<Rate>,
    /// Digest of the trace, which the results record. A scenario with a digest refuses files that have changed. Default: the digest
    /// of the files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The trace, once the files are read.
    #[serde(skip)]
    trace: Option<Arc<Trace>>,
}

/// Ranks that run a trace of one rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Replicate {
    /// The rank of the file.
    #[default]
    Off,
    /// All GPUs: single program, multiple data.
    Spmd,
}

/// Dependencies that count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Deps {
    /// Of data and of control.
    #[default]
    All,
    /// Of data.
    Data,
}

/// Limits of a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Roofline {
    /// Most operations per second. No default.
    pub flops: Flops,
    /// Rate of the GPU's own memory. No default.
    pub memory: Rate,
}

/// A trace that has been read.
#[derive(Debug, PartialEq)]
struct Trace {
    /// Rank of the first program: above 0 only if it is the only one.
    first: u32,
    /// Programs of the ranks, in their order.
    programs: Vec<Program>,
    /// Groups of the JSON file.
    groups: Groups,
}

impl Generate for Chakra {
    fn generate(&self, draft: &mut Draft<'_>) -> Result<usize, Finding> {
        let Some(trace) = &self.trace else {
            return Err(code::FILE.at("file", format!("{} was not read", self.file)));
        };
        draft.warnings.extend(chakra::warnings(&self.file, trace.first, &trace.programs));
        let mut graph = graph::Graph::new(self, trace, draft)?;
        graph.leave_out_callers(&mut draft.warnings);
        lay::lay(self, &graph, draft)
    }

    fn read_files(&mut self, folder: &Path) -> Result<(), Finding> {
        let path = folder.join(&self.file);
        let spmd = self.replicate == Replicate::Spmd;
        let files = match spmd && path.is_file() {
            true => vec![(chakra::rank_of(&path), path)],
            false => chakra::rank_files(&path)?,
        };
        if spmd && files.len() > 1 {
            let text = format!(
                "`replicate = \"spmd\"` takes the file of one rank; {} has {}",
                self.file,
                files.len()
            );
            return Err(code::FIT.at("replicate", text));
        }
        let mut hash = xxhash_rust::xxh3::Xxh3::new();
        let mut trace = Trace {
            first: files.first().map_or(0, |file| file.0),
            programs: Vec::new(),
            groups: Groups::new(),
        };
        for (rank, path) in &files {
            let (program, digest) = chakra::read_file(path, *rank)?;
            hash.update(&digest.to_le_bytes());
            trace.programs.push(program);
        }
        if let Some(groups) = &self.groups {
            let (groups, digest) = chakra::groups_file(&folder.join(groups))?;
            hash.update(&digest.to_le_bytes());
            trace.groups = groups;
        }
        digest::keep(&mut self.digest, &self.file, digest::written(hash.digest()))?;
        self.trace = Some(Arc::new(trace));
        Ok(())
    }

    /// A queue pair per pair of GPUs and group, as collective libraries keep them.
    fn usual_qp(&self) -> QpUse {
        QpUse::Persistent
    }
}
