//! What an import has to say beside the scenario.

/// Remarks on an import.
#[derive(Debug, Default)]
pub(super) struct Notes {
    pub(super) warnings: Vec<String>,
    pub(super) notes: Vec<String>,
}
