//! Limits of a user's own: a TOML file with a table for a case and a key for a metric, or a file of expected bandwidths of AMD's
//! cluster validation suite (ROCm/cvs), which is JSON.

use super::case::Metric;
use super::plans::CASES;
use super::plans::rccl;
use lab::Failure;
use scenario::{TableFile, suggestion};
use std::collections::BTreeMap;
use std::path::Path;

/// Limits by case and metric.
#[derive(Clone, Debug, Default)]
pub struct Limits(BTreeMap<String, BTreeMap<String, f64>>);

impl Limits {
    /// Reads a file; without one there are no limits.
    ///
    /// # Errors
    /// If the file cannot be read, or names a case or a metric that does not exist.
    pub fn read(path: Option<&str>) -> Result<Self, Failure> {
        let Some(path) = path else { return Ok(Limits::default()) };
        if Path::new(path).extension().is_some_and(|end| end.eq_ignore_ascii_case("json")) {
            let of_case = rccl::limits(path)?;
            return Ok(Limits(BTreeMap::from([(rccl::A16.id.to_owned(), of_case)])));
        }
        let file = TableFile::open(path)?;
        let all: BTreeMap<String, BTreeMap<String, f64>> = file.read()?;
        for (id, of_case) in &all {
            let Some(case) = CASES.iter().find(|case| case.id == *id) else {
                let ids: Vec<&str> = CASES.iter().map(|case| case.id).collect();
                let text = format!("there is no case `{id}`; {}", suggestion(id, &ids));
                return Err(file.wrong(id, &text).into());
            };
            for (key, limit) in of_case {
                let place = format!("{id}.{key}");
                if !case.metrics.iter().any(|metric| metric.key == key) {
                    let keys: Vec<&str> = case.metrics.iter().map(|metric| metric.key).collect();
                    let text = format!("`{id}` has no metric `{key}`; {}", suggestion(key, &keys));
                    return Err(file.wrong(&place, &text).into());
                }
                if !limit.is_finite() {
                    return Err(file.wrong(&place, "expected a finite number").into());
                }
            }
        }
        Ok(Limits(all))
    }

    /// The user's limit of a metric.
    pub(crate) fn of(&self, case: &str, metric: &Metric) -> Option<f64> {
        self.0.get(case)?.get(metric.key).copied()
    }
}
