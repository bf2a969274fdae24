//! A group of runs.

use results::Results;

/// Runs that differ only in their seeds.
#[derive(Debug)]
pub(crate) struct Group<'a> {
    /// Name on the page.
    pub name: String,
    /// The runs, at least one.
    pub runs: Vec<&'a Results>,
}

impl Group<'_> {
    /// Name of the scheme.
    pub(super) fn scheme(&self) -> &str {
        self.runs.first().map_or("", |run| &run.summary.scheme)
    }

    /// True if every run of the group is complete.
    pub(super) fn complete(&self) -> bool {
        self.runs.iter().all(|run| run.summary.complete)
    }
}

/// A text in a manifest.
pub(super) fn text<'a>(json: &'a serde_json::Value, path: &str) -> &'a str {
    json.pointer(path).and_then(serde_json::Value::as_str).unwrap_or_default()
}
