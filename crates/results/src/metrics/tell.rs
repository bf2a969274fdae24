//! The walk over all metrics: of one summary with its numbers, or of no summary in particular.

use super::{Entry, Metric, Shown};
use crate::stats::Spread;
use serde_json::Value;
use std::collections::BTreeMap;

/// Is told every metric with its number; `null` if the number is missing, or if there is no summary.
pub(crate) type Ear<'a> = &'a mut dyn FnMut(Metric, Value);

/// A number of the summary, or a group of numbers.
pub(crate) trait Measured {
    /// Tells all metrics of `of`; without it, all that there may be, with `*` for names.
    fn tell(of: Option<&Self>, at: Metric, ear: Ear<'_>);

    /// Tells what stands for a missing value: a single number is `null`, a group has no metrics.
    fn tell_missing(_at: Metric, _ear: Ear<'_>) {}
}

impl Metric {
    /// A metric, or a group of metrics, below this group.
    pub(crate) fn below(&self, entry: Entry) -> Metric {
        let again = self.again || entry.again;
        let mut part = self.part.clone();
        if !entry.part.is_empty() {
            part += "; ";
            part += entry.part;
        }
        Metric {
            key: self.joined(entry.name),
            label: if entry.label.is_empty() { entry.name.replace('_', " ") } else { entry.label.to_owned() },
            unit: entry.unit,
            meaning: entry.meaning.trim().trim_end_matches('.').to_owned(),
            share_of: Some(entry.share_of).filter(|key| !key.is_empty()),
            better: entry.better,
            varies: self.varies || entry.varies,
            heading: entry.heading.to_owned(),
            shown: if again { Shown::Listed } else { entry.shown },
            percent: entry.percent,
            digest: entry.digest,
            rare: entry.rare,
            again,
            part,
            quantity: None,
            statistics: entry.statistics,
        }
    }

    /// One of several that bear names: `*` becomes the name wherever it stands.
    fn named(&self, key: &str, name: &str) -> Metric {
        let put = |text: &str| text.replace('*', name);
        Metric {
            key: self.joined(key),
            label: put(&self.label).replace('_', " "),
            meaning: put(&self.meaning),
            part: put(&self.part),
            ..self.clone()
        }
    }

    /// The metric of `key`, with the name in place of `*`; `None` if `key` does not match this metric's key.
    pub fn named_by(&self, key: &str) -> Option<Metric> {
        let Some((before, after)) = self.key.split_once('*') else {
            return (self.key == key).then(|| self.clone());
        };
        let name = key.strip_prefix(before)?.strip_suffix(after)?;
        let put = |text: &str| text.replace('*', name);
        let label = put(&self.label).replace('_', " ");
        Some(Metric { key: key.to_owned(), label, meaning: put(&self.meaning), ..self.clone() })
    }

    fn joined(&self, name: &str) -> String {
        if self.key.is_empty() { name.to_owned() } else { format!("{}.{name}", self.key) }
    }

    /// The finished row.
    fn row(mut self) -> Metric {
        if self.quantity.is_none() {
            self.quantity = Some((self.label.clone(), self.meaning.clone()));
        }
        self.meaning += &std::mem::take(&mut self.part);
        self
    }
}

macro_rules! number {
    ($($type:ty)*) => {$(
        impl Measured for $type {
            fn tell(of: Option<&Self>, at: Metric, ear: Ear<'_>) {
                ear(at.row(), of.map_or(Value::Null, |number| number.clone().into()));
            }

            fn tell_missing(at: Metric, ear: Ear<'_>) {
                ear(at.row(), Value::Null);
            }
        }
    )*};
}

number!(u64 usize f64 String);

impl<T: Measured> Measured for Option<T> {
    fn tell(of: Option<&Self>, at: Metric, ear: Ear<'_>) {
        match of {
            Some(None) => T::tell_missing(at, ear),
            Some(Some(value)) => T::tell(Some(value), at, ear),
            None => T::tell(None, at, ear),
        }
    }
}

impl<T: Measured> Measured for BTreeMap<String, T> {
    fn tell(of: Option<&Self>, at: Metric, ear: Ear<'_>) {
        match of {
            Some(all) => {
                all.iter().for_each(|(name, value)| T::tell(Some(value), at.named(name, name), ear));
            }
            None => T::tell(None, at.named("*", "*"), ear),
        }
    }
}

/// A value of a list that has a name.
pub(crate) trait Named {
    /// What all names begin with.
    const BEFORE: &'static str;

    /// The rest of its name.
    fn name(&self) -> String;
}

impl<T: Measured + Named> Measured for Vec<T> {
    fn tell(of: Option<&Self>, at: Metric, ear: Ear<'_>) {
        let key = |name: &str| format!("{}{name}", T::BEFORE);
        match of {
            Some(all) => {
                for value in all {
                    let name = value.name();
                    T::tell(Some(value), at.named(&key(&name), &name), ear);
                }
            }
            None => T::tell(None, at.named(&key("*"), "*"), ear),
        }
    }
}

impl Measured for Spread {
    fn tell(of: Option<&Self>, at: Metric, ear: Ear<'_>) {
        for (name, label, meaning, read) in Spread::STATISTICS {
            let shown = at.statistics.iter().find(|(statistic, ..)| *statistic == name && !at.again);
            let metric = Metric {
                key: at.joined(name),
                label: format!("{}, {label}", at.label),
                meaning: format!("{}: {meaning}", at.meaning),
                quantity: Some((at.label.clone(), at.meaning.clone())),
                shown: shown.map_or(Shown::Listed, |(_, shown, _)| *shown),
                heading: shown.map_or_else(String::new, |(.., heading)| (*heading).to_owned()),
                ..at.clone()
            };
            ear(metric.row(), of.and_then(read).map_or(Value::Null, Value::from));
        }
    }
}
