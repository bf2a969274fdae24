//! The raw material of summaries and tables.

use engine::Outcome;
use model::{Plan, Time};

/// The raw material of all tables.
#[derive(Clone, Copy, Debug)]
pub struct RunData<'a> {
    /// What was run.
    pub plan: &'a Plan,
    /// Ideal FCT by message.
    pub ideal: &'a [Time],
    /// What came out.
    pub outcome: &'a Outcome,
}
