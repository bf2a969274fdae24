//! The table of metrics: one entry for each number that a run comes to.
//!
//! An entry stands in the section of the summary that holds the number. It gives the number's name, meaning, unit and
//! label, and how it is read from the outcome of a run. Everything else follows from the entry: the field of the summary and
//! its description, the word in the digest, the column of a sweep, the columns of tables and pages, the lists in Python and in
//! the documentation. A new metric is one new entry.
//!
//! | file | section |
//! |---|---|
//! | [`packets`], [`control`], [`hops`] | counts of packets and of link crossings |
//! | [`flows`], [`jobs`], [`rates`] | completion times of flows and groups, goodput |
//! | [`timing`] | what the run cost |
//! | [`section`] | the macro that turns entries into a section |
//! | [`tell`] | the walk over all metrics, with or without a summary |
//! | [`mod@table`] | the list of metrics as columns |
//! | [`unit`] | units |

#[macro_use]
mod section;
pub mod control;
pub mod flows;
pub mod hops;
pub mod jobs;
pub mod packets;
pub mod rates;
mod table;
mod tell;
pub mod timing;
mod unit;

use crate::Summary;
use serde::{Serialize, Serializer};
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

/// What a section declares of a metric. What an entry leaves out is as in [`Entry::NEW`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// Last part of the key.
    pub name: &'static str,
    /// The doc comment of the field.
    pub meaning: &'static str,
    /// What tables and pages call it; the name if empty.
    pub label: &'static str,
    /// Heading in a terminal's tables, two lines.
    pub heading: &'static str,
    pub unit: Unit,
    pub better: Better,
    pub shown: Shown,
    /// Key of the number of which it is a share; empty if a share of it would mean nothing.
    pub share_of: &'static str,
    /// Tables show the share, in per cent.
    pub percent: bool,
    pub digest: Digest,
    /// It differs from one run to the next.
    pub varies: bool,
    /// Of a group of metrics: the part of the run that they describe.
    pub part: &'static str,
    /// Of a group of metrics: they describe a part of what others describe as a whole.
    pub again: bool,
    /// Of a spread: the statistics that tables show, with their headings.
    pub statistics: &'static [(&'static str, Shown, &'static str)],
}

impl Entry {
    pub(crate) const NEW: Entry = Entry {
        name: "",
        meaning: "",
        label: "",
        heading: "",
        unit: Unit::Count,
        better: Better::Neither,
        shown: Shown::Listed,
        share_of: "",
        percent: false,
        digest: Digest::Absent,
        varies: false,
        part: "",
        again: false,
        statistics: &[],
    };
}

/// A row of the table of metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Metric {
    /// Its keys in `summary.json` with dots between them.
    #[serde(rename = "name")]
    pub key: String,
    /// What tables and pages call it.
    pub label: String,
    /// Its unit.
    pub unit: Unit,
    /// Its meaning in a sentence.
    pub meaning: String,
    /// Key of the number of which it is a share; `None` if a share of it would mean nothing.
    pub share_of: Option<&'static str>,
    /// Which way is better.
    pub better: Better,
    /// True if it differs from one run to the next.
    pub varies: bool,
    /// Heading in a terminal's tables, two lines.
    #[serde(skip)]
    pub heading: String,
    /// The smallest table that shows it.
    #[serde(skip)]
    pub shown: Shown,
    /// True if tables show its share in per cent.
    #[serde(skip)]
    pub percent: bool,
    /// Its place in the digest of a run.
    #[serde(skip)]
    pub digest: Digest,
    /// True if it describes a part of the flows and another metric describes all of them.
    #[serde(skip)]
    pub again: bool,
    #[serde(skip)]
    part: String,
    /// Label and meaning without the statistic and the part of the run.
    #[serde(skip)]
    quantity: Option<(String, String)>,
    #[serde(skip)]
    statistics: &'static [(&'static str, Shown, &'static str)],
}

impl Metric {
    /// The metric of all groups' completion; a table shows it first if the job is clear.
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

    /// Metrics of a run as a whole, without those of a part of its flows.
    pub fn listed() -> impl Iterator<Item = &'static Metric> {
        METRICS.iter().filter(|metric| !metric.again)
    }

    /// Its number in a summary.
    pub fn read(&self, summary: &Summary) -> Option<f64> {
        summary.number(&self.key)
    }

    /// Its share of the whole, from 0 to 1; `None` if there is no whole. `number` reads a metric by its key.
    pub fn share(&self, number: impl Fn(&str) -> Option<f64>) -> Option<f64> {
        let (own, whole) = (number(&self.key)?, number(self.share_of?)?);
        Some(if whole > 0.0 { own / whole } else { 0.0 })
    }

    /// Its number as tables show it: a share in per cent, or the number itself. `number` reads a metric by its key.
    pub fn in_table(&self, number: impl Fn(&str) -> Option<f64>) -> Option<f64> {
        if self.percent { Some(100.0 * self.share(number)?) } else { number(&self.key) }
    }

    /// Label and meaning without the statistic and the part of the run: `FCT` for a percentile of the FCT of a class.
    pub fn term(&self) -> (&str, &str) {
        let own = (self.label.as_str(), self.meaning.as_str());
        self.quantity.as_ref().map_or(own, |(label, meaning)| (label, meaning))
    }

    /// The unit that tables show.
    pub fn shown_unit(&self) -> &'static str {
        if self.percent { "%" } else { self.unit.shown() }
    }
}

/// Which way a metric is better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Better {
    /// A larger number is better.
    More,
    /// A smaller number is better.
    Less,
    /// The number alone is neither good nor bad.
    #[default]
    Neither,
}

impl Better {
    /// 1 where more is better, -1 where less is, 0 where neither.
    pub const fn sign(self) -> i8 {
        match self {
            Better::More => 1,
            Better::Less => -1,
            Better::Neither => 0,
        }
    }
}

impl Serialize for Better {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Better::More => to.serialize_str("more"),
            Better::Less => to.serialize_str("less"),
            Better::Neither => to.serialize_none(),
        }
    }
}

/// The tables that show a metric. Each table also shows the metrics of all later ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shown {
    /// The summary and the columns of a sweep only.
    #[default]
    Listed,
    /// Pages.
    Page,
    /// A comparison in a terminal.
    Comparison,
    /// A sweep in a terminal, whose axes leave room for few columns.
    Sweep,
}

/// The place of a metric in the digest of a run. The order of words never changes, so that equal runs have equal digests
/// under all versions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Digest {
    /// It follows from other numbers, or differs from run to run.
    #[default]
    Absent,
    /// The n-th word of its section, in every digest.
    Always(u8),
    /// The n-th of the words of its section that stand together at its end, unless all of them are 0.
    Together(u8),
    /// Its key and its number at the end of the digest unless it is 0: the place of every metric that is added.
    Named,
}
