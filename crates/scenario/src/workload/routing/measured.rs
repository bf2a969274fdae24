//! Measured routing, from a file.

use super::exchange::Sent;
use crate::workload::digest;
use files::file::{self, Reading};
use finding::{Finding, code};
use formats::routing::{self, Layer};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// The layers of a file, once it is read.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Measured(Arc<BTreeMap<u32, Layer>>);

impl super::Routing {
    /// Reads the file of measured routing, if there is one; paths start at `routing`.
    pub(in crate::workload) fn read(&mut self, folder: &Path) -> Result<(), Finding> {
        let Some(file) = &self.file else { return Ok(()) };
        let path = folder.join(file);
        let name = path.display().to_string();
        let text =
            file::read(&path, Reading::import(8)).map_err(|e| code::FILE.at("file", e.about(&name)))?;
        digest::keep(&mut self.digest, file, digest::of(&text))?;
        self.read = Some(Measured(Arc::new(routing::read(&name, &text)?)));
        Ok(())
    }

    /// What ranks send in each of the file's layers, in ascending order, if there is a file: `tokens` tokens of each rank to `top_k` of so
    /// many experts.
    pub(in crate::workload) fn measured(
        &self,
        (ranks, experts): (u32, u64),
        (tokens, top_k): (u64, u64),
    ) -> Result<Option<Vec<Sent>>, Finding> {
        let Some(file) = &self.file else { return Ok(None) };
        let Some(Measured(layers)) = &self.read else {
            return Err(code::FILE.at("file", format!("{file} was not read")));
        };
        let wrong = |line: usize, text: String| Err(code::FIT.at("file", format!("{file}:{line}: {text}")));
        let mut all = Vec::new();
        for layer in layers.values() {
            let mut rows = vec![vec![0; experts as usize]; ranks as usize];
            for (&(rank, expert), &(count, line)) in layer {
                if rank >= ranks {
                    return wrong(line, format!("there is no rank {rank}; the last one is {}", ranks - 1));
                }
                if u64::from(expert) >= experts {
                    return wrong(
                        line,
                        format!("there is no expert {expert}; the last one is {}", experts - 1),
                    );
                }
                if count > tokens {
                    let text = format!(
                        "rank {rank} sends {count} tokens to expert {expert}, and has {tokens} (`tokens`)"
                    );
                    return wrong(line, text);
                }
                let row: &mut Vec<u64> = &mut rows[rank as usize];
                row[expert as usize] = count;
                let sum: u64 = row.iter().sum();
                if sum > tokens * top_k {
                    let text = format!(
                        "rank {rank} sends {sum} times a token up to here, and has {tokens} tokens with {top_k} experts each"
                    );
                    return wrong(line, text);
                }
            }
            all.push(Sent::by_rank(rows));
        }
        Ok(Some(all))
    }
}
