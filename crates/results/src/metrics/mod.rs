//! The table of metrics: one entry for each number in the summary of a run.
//!
//! An entry stands in the section of the summary that holds the number. It gives the number's name, meaning, unit and
//! label, and how it is read from the outcome of a run. Everything else follows from the entry: the field of the summary
//! and its description, the word in the digest, the column of a sweep, the columns of tables and pages, the lists in
//! Python and in the documentation. A new metric is one new entry.
//!
//! | file | section |
//! |---|---|
//! | [`packets`], [`control`], [`hops`] | counts of packets and of link crossings |
//! | [`flows`], [`jobs`], [`rates`] | completion times of flows and groups, goodput |
//! | [`steps`] | steps of training, and collectives |
//! | [`serving`] | requests of inference serving |
//! | [`fast`] | what a fast run left out |
//! | [`timing`] | time and memory that the run took |
//! | [`section`] | the macro that turns entries into a section |
//! | [`metric`] | a row of the table, and its declaration |
//! | [`tell`] | the walk over all metrics, with or without a summary |
//! | [`mod@table`] | the list of metrics as columns |
//! | [`unit`] | units |

#[macro_use]
mod section;
pub mod control;
pub mod fast;
pub mod flows;
pub mod hops;
pub mod jobs;
mod metric;
pub mod packets;
pub mod rates;
pub mod serving;
pub mod steps;
mod table;
mod tell;
pub mod timing;
mod unit;

use crate::Summary;
pub(crate) use metric::Entry;
pub use metric::{Better, Digest, Metric, Shown};
use std::sync::LazyLock;
pub use table::table;
pub(crate) use tell::{Ear, Measured};
pub use unit::Unit;

/// All metrics in the order of the summary. A `*` in a key stands for a name, such as that of a job.
pub static METRICS: LazyLock<Vec<Metric>> = LazyLock::new(|| {
    let mut all = Vec::new();
    Summary::tell(None, Metric::default(), &mut |metric, _| all.push(metric));
    all
});

impl Metric {
    /// The completion time of a job's slowest group, with `*` for the job; tables show it first.
    ///
    /// # Panics
    /// If the section of jobs has no such entry: a fault of ropewalk.
    pub fn slowest_group() -> &'static Metric {
        let found = METRICS.iter().find(|metric| metric.key == jobs::SLOWEST);
        found.unwrap_or_else(|| unreachable!("jobs declare their slowest group"))
    }

    /// Metrics that a table of this size shows, in its order.
    pub fn shown_in(table: Shown) -> impl Iterator<Item = &'static Metric> {
        METRICS.iter().filter(move |metric| metric.shown >= table && !metric.key.contains('*'))
    }

    /// True if a table of these runs has a column for the metric: a rare one needs a run that has the number.
    pub fn is_in<'a>(&self, mut runs: impl Iterator<Item = &'a Summary>) -> bool {
        !self.rare || runs.any(|summary| self.read(summary).is_some())
    }

    /// Metrics of a run as a whole, without those of a part of its flows.
    pub fn listed() -> impl Iterator<Item = &'static Metric> {
        METRICS.iter().filter(|metric| !metric.again)
    }

    /// The metric's number in a summary.
    pub fn read(&self, summary: &Summary) -> Option<f64> {
        summary.number(&self.key)
    }
}
