//! The digest of a file that a workload reads. The results record it, and a scenario that has it refuses a file that has changed.

use finding::{Finding, code};

/// The digest of a text.
pub(super) fn of(text: &str) -> String {
    written(xxhash_rust::xxh3::xxh3_64(text.as_bytes()))
}

/// A digest as results and scenarios write it.
pub(super) fn written(digest: u64) -> String {
    format!("{digest:016x}")
}

/// Keeps the digest of `file`.
///
/// # Errors
/// The scenario has another digest.
pub(super) fn keep(kept: &mut Option<String>, file: &str, digest: String) -> Result<(), Finding> {
    match kept {
        Some(other) if *other != digest => {
            let text = format!("{file} has changed: its digest is {digest}, and the scenario has {other}");
            Err(code::CHANGED.at("digest", text).with_help("remove `digest` to take what it has now"))
        }
        _ => {
            *kept = Some(digest);
            Ok(())
        }
    }
}
