//! Messages that a program posts while the run goes on.

use super::Generate;
use super::draft::Draft;
use crate::program::{self, Line};
use finding::{Finding, code};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Messages come from a program that drives the run: over `ropewalk serve`, from Python's `Session`, or over the C interface.
/// The program needs queue pairs before it sends: name the pairs of ranks that will send.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Program {
    /// Pairs of ranks between which the program may send, `"all"` or a list such as `[[0, 1], [1, 0]]`. A rank is a GPU of
    /// `[server]`, or a host. Default `"all"` (our choice).
    #[serde(default)]
    pub pairs: Pairs,
    /// Queue pairs of every pair of ranks. A message with tag t takes queue pair t modulo this number. Messages of one queue
    /// pair arrive in their order. Default 1 (our choice).
    #[serde(default = "one")]
    pub qps: u32,
}

/// Pairs of ranks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pairs {
    /// All ranks send to all others.
    #[default]
    All,
    /// Sender and receiver of each pair.
    #[serde(untagged)]
    List(Vec<[u32; 2]>),
}

fn one() -> u32 {
    1
}

impl Default for Program {
    fn default() -> Self {
        Program { pairs: Pairs::All, qps: one() }
    }
}

impl Program {
    /// Sender and receiver of each pair, among so many ranks.
    pub(crate) fn pairs(&self, ranks: u32) -> Box<dyn Iterator<Item = (u32, u32)> + '_> {
        match &self.pairs {
            Pairs::All => Box::new(
                (0..ranks).flat_map(move |a| (0..ranks).filter(move |b| *b != a).map(move |b| (a, b))),
            ),
            Pairs::List(list) => Box::new(list.iter().map(|&[a, b]| (a, b))),
        }
    }
}

impl Generate for Program {
    /// Adds one message for each queue pair, see [`program::open`].
    fn generate(&self, draft: &mut Draft<'_>) -> Result<usize, Finding> {
        if !(1..=1024).contains(&self.qps) {
            return Err(code::RANGE.at("qps", format!("expected 1 to 1024, found {}", self.qps)));
        }
        let ranks = draft.ranks.count() as u32;
        if let Pairs::List(list) = &self.pairs {
            for (i, pair) in list.iter().enumerate() {
                if let Some(rank) = pair.iter().find(|rank| **rank >= ranks) {
                    let text = format!("rank {rank} does not exist; the ranks are 0 to {}", ranks - 1);
                    return Err(code::NO_NODE.at(&format!("pairs.{i}"), text));
                }
            }
            let mut sorted = list.clone();
            sorted.sort_unstable();
            if let Some([a, b]) = sorted.windows(2).find(|two| two[0] == two[1]).map(|two| two[0]) {
                return Err(code::TWICE.at("pairs", format!("the pair [{a}, {b}] is listed twice")));
            }
        }
        let lines = program::lines(self, draft.ranks);
        draft.reserve(lines.len() as u64, lines.len() as u64, "pairs")?;
        for (lane, Line { from, to, .. }) in (0..).zip(lines) {
            let message = draft.send(0, from, to, 1) as usize;
            (draft.outline.messages[message].lane, draft.outline.messages[message].fresh_qp) = (lane, false);
        }
        Ok(1)
    }
}
