//! Types of a case.

pub(crate) use crate::seen::Values;
use crate::site::Site;
use lab::Run;
use serde::Serialize;

/// The better direction of a metric, and so the sense of its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// The limit is the largest value that passes.
    AtMost,
    /// The limit is the smallest value that passes.
    AtLeast,
}

/// The author of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// The plan states it.
    Plan,
    /// The plan states none, and this one is our choice.
    OurChoice,
    /// A target of the plan that is no limit.
    Reference,
    /// The user's file.
    Yours,
}

/// A metric of a case.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Metric {
    pub(crate) key: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) bound: Bound,
    pub(crate) limit: Option<(f64, By)>,
}

/// A metric that is better if it is small.
pub(crate) const fn less(key: &'static str, unit: &'static str) -> Metric {
    Metric { key, unit, bound: Bound::AtMost, limit: None }
}

/// A metric that is better if it is large.
pub(crate) const fn more(key: &'static str, unit: &'static str) -> Metric {
    Metric { key, unit, bound: Bound::AtLeast, limit: None }
}

impl Metric {
    /// With the plan's limit.
    pub(crate) const fn plan(self, limit: f64) -> Self {
        Metric { limit: Some((limit, By::Plan)), ..self }
    }

    /// With a limit of our choice.
    pub(crate) const fn ours(self, limit: f64) -> Self {
        Metric { limit: Some((limit, By::OurChoice)), ..self }
    }

    /// With a target of the plan that is no limit.
    pub(crate) const fn reference(self, target: f64) -> Self {
        Metric { limit: Some((target, By::Reference)), ..self }
    }
}

/// A case of a plan.
pub(crate) struct Case {
    /// Name on the command line.
    pub(crate) id: &'static str,
    /// The plan's own name.
    pub(crate) plan: &'static str,
    /// What is played, and how it differs from the plan.
    pub(crate) about: &'static str,
    pub(crate) metrics: &'static [Metric],
    /// The traffic on a site, or why the case is not applicable.
    pub(crate) parts: fn(&Site) -> Result<Vec<Part>, String>,
    /// Rows from the values of all parts.
    pub(crate) rows: fn(&[Seen]) -> Vec<Found>,
}

/// Measures a run; the error says why it shows nothing.
pub(crate) type See = Box<dyn Fn(&Run) -> Result<Values, String> + Send + Sync>;

/// A run of a case.
pub(crate) struct Traffic {
    pub(crate) label: String,
    pub(crate) sets: Vec<String>,
    pub(crate) see: See,
}

/// A part of a case.
pub(crate) enum Part {
    /// A run.
    Run(Traffic),
    /// What the fabric cannot show, and why.
    Not {
        /// Name of the part.
        label: String,
        /// The reason.
        why: String,
    },
}

impl Part {
    pub(crate) fn not(label: &str, why: &str) -> Self {
        Part::Not { label: label.to_owned(), why: why.to_owned() }
    }
}

/// A part of a case that has been played.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) label: String,
    /// Its values, or why it has none.
    pub(crate) values: Result<Values, String>,
    /// The command that repeats the run.
    pub(crate) command: String,
}

impl Seen {
    pub(crate) fn not(label: &str, why: String) -> Self {
        Seen { label: label.to_owned(), values: Err(why), command: String::new() }
    }

    pub(crate) fn get(&self, key: &str) -> Option<f64> {
        self.values.as_ref().ok()?.get(key).copied()
    }
}

/// The value of a metric for a row.
pub(crate) struct Found {
    pub(crate) traffic: String,
    pub(crate) metric: &'static str,
    pub(crate) value: f64,
    /// The command that repeats it.
    pub(crate) command: String,
}

impl Found {
    pub(crate) fn of(seen: &Seen, metric: &'static str, value: f64) -> Self {
        Found { traffic: seen.label.clone(), metric, value, command: seen.command.clone() }
    }
}

/// Every value of every part.
pub(crate) fn each(all: &[Seen]) -> Vec<Found> {
    let of = |seen: &Seen| -> Vec<Found> {
        let values = seen.values.iter().flatten();
        values.map(|(metric, value)| Found::of(seen, metric, *value)).collect()
    };
    all.iter().flat_map(of).collect()
}
