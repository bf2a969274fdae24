//! Traces of requests to language models: when they came, and how many tokens went in and out.
//!
//! | format | file | time | prefixes |
//! |---|---|---|---|
//! | `mooncake` | lines of JSON (kvcache-ai/Mooncake, `FAST25-release/traces`) | ms | ids of blocks of 512 tokens |
//! | `azure` | CSV (Azure/AzurePublicDataset, LLM inference 2023 and 2024) | date and time | none |
//! | `burstgpt` | CSV (HPMLL/BurstGPT) | s | none |

mod azure;
mod burstgpt;
mod mooncake;
mod rows;

use finding::Finding;

/// Tokens of a block that has an id in Mooncake's traces (Qin et al., FAST'25, section 4.1).
pub const BLOCK: u64 = 512;

/// Most tokens of one request. Our choice: far more than any published context.
const MOST_TOKENS: u64 = 100_000_000;

/// A format of traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Mooncake's traces.
    Mooncake,
    /// Microsoft Azure's traces.
    Azure,
    /// BurstGPT.
    BurstGpt,
}

/// A request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Line of the file, from 1.
    pub line: usize,
    /// Time since the first request of the file, ps.
    pub at: u64,
    /// Tokens of the prompt, at least 1.
    pub input: u64,
    /// Tokens of the answer, at least 1.
    pub output: u64,
    /// Ids of the blocks of [`BLOCK`] tokens of the prompt; equal ids at the start of two prompts are a common prefix.
    pub blocks: Vec<u64>,
}

/// A trace, in the order of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// Requests.
    pub requests: Vec<Request>,
    /// Requests without tokens in or out, which failed and are left out.
    pub failed: u64,
}

/// Reads a trace; messages call it `file`.
///
/// # Errors
/// The first line that is damaged, or whose time lies before that of the line above.
pub fn read(format: Format, file: &str, text: &str) -> Result<Trace, Finding> {
    match format {
        Format::Mooncake => mooncake::read(file, text),
        Format::Azure => azure::read(file, text),
        Format::BurstGpt => burstgpt::read(file, text),
    }
}

impl Trace {
    /// True if prompts have ids of blocks.
    pub fn has_blocks(&self) -> bool {
        self.requests.iter().any(|request| !request.blocks.is_empty())
    }

    /// Number of different times.
    pub fn times(&self) -> usize {
        self.requests.chunk_by(|a, b| a.at == b.at).count()
    }

    /// The usual step from one time to the next, ps, if most requests share their time with another one.
    pub fn step_of_shared_times(&self) -> Option<u64> {
        if 2 * self.times() > self.requests.len() {
            return None;
        }
        let firsts: Vec<u64> = self.requests.chunk_by(|a, b| a.at == b.at).map(|chunk| chunk[0].at).collect();
        let mut steps: Vec<u64> = firsts.windows(2).map(|two| two[1] - two[0]).collect();
        steps.sort_unstable();
        // The most frequent step, the smallest of equals.
        let usual = steps.chunk_by(|a, b| a == b).rev().max_by_key(|chunk| chunk.len())?;
        usual.first().copied()
    }

    /// Adds a request, or counts it among those that failed.
    fn add(&mut self, request: Request) {
        match request.input == 0 || request.output == 0 {
            true => self.failed += 1,
            false => self.requests.push(request),
        }
    }
}

#[cfg(test)]
mod tests;
