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
pub(crate) mod rows;
pub mod times;
mod trace;

use finding::Finding;
pub use trace::{BLOCK, Request, Trace};

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

#[cfg(test)]
mod tests;
