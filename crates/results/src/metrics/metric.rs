//! A row of the table of metrics, and its declaration.

use super::unit::Unit;
use serde::{Serialize, Serializer};

/// Declaration of a metric in its section. A field that the section leaves out has its value in [`Entry::NEW`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// Last part of the key.
    pub name: &'static str,
    /// The doc comment of the field.
    pub meaning: &'static str,
    /// Name in tables and on pages; if empty, `name`.
    pub label: &'static str,
    /// Heading in a terminal's tables, two lines.
    pub heading: &'static str,
    pub unit: Unit,
    pub better: Better,
    pub shown: Shown,
    /// Key of the number of which this metric is a share; empty if a share has no meaning.
    pub share_of: &'static str,
    /// True if tables show the share in percent instead of the number.
    pub percent: bool,
    pub digest: Digest,
    /// True if the summary leaves the number out when it is 0. Tables then show 0, and leave a column of zeros out.
    pub rare: bool,
    /// True if two runs of the same scenario and seed may differ in it.
    pub varies: bool,
    /// For a group of metrics: the part of the run that the group describes.
    pub part: &'static str,
    /// For a group of metrics: true if other metrics describe the same quantities for the whole run.
    pub again: bool,
    /// For a spread: the statistics that tables show, with their headings.
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
        rare: false,
        varies: false,
        part: "",
        again: false,
        statistics: &[],
    };
}

/// A row of the table of metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Metric {
    /// Keys in `summary.json` that lead to the number, with dots between them.
    #[serde(rename = "name")]
    pub key: String,
    /// Name in tables and on pages.
    pub label: String,
    /// Unit of the number.
    pub unit: Unit,
    /// Meaning in a sentence.
    pub meaning: String,
    /// Key of the number of which this metric is a share; `None` if a share has no meaning.
    pub share_of: Option<&'static str>,
    /// Direction in which the number improves.
    pub better: Better,
    /// True if two runs of the same scenario and seed may differ in it.
    pub varies: bool,
    /// Heading in a terminal's tables, two lines.
    #[serde(skip)]
    pub heading: String,
    /// The smallest table that shows the metric.
    #[serde(skip)]
    pub shown: Shown,
    /// True if tables show the share in percent.
    #[serde(skip)]
    pub percent: bool,
    /// Place in the digest of a run.
    #[serde(skip)]
    pub digest: Digest,
    /// True if the summary leaves the number out when it is 0.
    #[serde(skip)]
    pub rare: bool,
    /// True if the metric describes a part of the flows and another metric describes all flows.
    #[serde(skip)]
    pub again: bool,
    #[serde(skip)]
    pub(super) part: String,
    /// Label and meaning without the statistic and the part of the run.
    #[serde(skip)]
    pub(super) quantity: Option<(String, String)>,
    #[serde(skip)]
    pub(super) statistics: &'static [(&'static str, Shown, &'static str)],
}

impl Metric {
    /// The metric's share of the whole, from 0 to 1; `None` without a whole. `number` reads a metric by its key.
    pub fn share(&self, number: impl Fn(&str) -> Option<f64>) -> Option<f64> {
        let (own, whole) = (number(&self.key)?, number(self.share_of?)?);
        Some(if whole > 0.0 { own / whole } else { 0.0 })
    }

    /// The value that tables show: a share in percent, or the number itself. `number` reads a metric by its key.
    pub fn in_table(&self, number: impl Fn(&str) -> Option<f64>) -> Option<f64> {
        let zero = |key: &str| (self.rare && key == self.key).then_some(0.0);
        let number = |key: &str| number(key).or_else(|| zero(key));
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

/// Direction in which a metric improves.
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
    /// 1 if more is better, -1 if less is better, 0 if neither is.
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
    /// No place: the number follows from other numbers, or differs from run to run.
    #[default]
    Absent,
    /// The n-th word of its section, in every digest.
    Always(u8),
    /// The n-th word of a block at the end of its section. A digest leaves the block out if all its words are 0.
    Together(u8),
    /// Key and number at the end of the digest, unless the number is 0. Every new metric gets this place.
    Named,
}
