//! BurstGPT's traces.

use super::rows::{decimal, read_csv};
use super::trace::Trace;
use finding::Finding;

const NAMES: [&str; 3] = ["Timestamp", "Request tokens", "Response tokens"];

pub(super) fn read(file: &str, text: &str) -> Result<Trace, Finding> {
    read_csv((file, text), NAMES, 1, |word| {
        decimal(word.word, 12).ok_or_else(|| {
            let most = u64::MAX / 1_000_000_000_000;
            word.error(format!("expected a time in seconds, below {most}, found `{}`", word.word))
        })
    })
}
