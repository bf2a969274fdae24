//! A sweep whose points were all checked.

use super::point::Point;
use crate::crew::Crew;
use crate::failure::Failure;
use crate::progress::Progress;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A sweep whose points were all checked.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// The sweep's file.
    pub spec: scenario::sweep::Sweep,
    /// Ids of the runs by point; points with equal configurations have one id.
    ids: Vec<String>,
    /// Settings that are valid but probably not intended. Each warning stands here once, with its first point.
    pub warnings: Vec<String>,
}

impl Sweep {
    /// Reads a sweep, a path or the name of a built-in one, with `KEY=VALUE` changes, and checks all of its points.
    ///
    /// # Errors
    /// The error of the first faulty point; [`Failure::Interrupted`].
    pub fn load(sweep: &str, set: &[String], crew: Crew, progress: &Progress<'_>) -> Result<Self, Failure> {
        Self::check(scenario::sweep::load(sweep, set)?, crew, progress)
    }

    /// Checks all points of a sweep, each as if it were to run.
    ///
    /// # Errors
    /// See [`Sweep::load`].
    pub fn check(spec: scenario::sweep::Sweep, crew: Crew, progress: &Progress<'_>) -> Result<Self, Failure> {
        // Points are taken in order, so all points before a faulty one are checked: the first error is always the same.
        let first_wrong = AtomicUsize::new(usize::MAX);
        let one = |number: usize, _| {
            if progress.stopped() || number > first_wrong.load(Ordering::Relaxed) {
                return None;
            }
            let checked = spec.point(number).and_then(|resolved| {
                let id = Point::new(&resolved, spec.flows).id;
                Ok((id, resolved.lay()?.warnings()))
            });
            if checked.is_err() {
                first_wrong.fetch_min(number, Ordering::Relaxed);
            }
            progress.one_done("points checked");
            Some(checked.map_err(|e| spec.blame(number, e)))
        };
        let checked = crew.side_by_side((0..spec.len()).collect(), one)?;
        let mut ids = Vec::with_capacity(checked.len());
        let mut warnings: BTreeMap<String, usize> = BTreeMap::new();
        for (number, checked) in checked.into_iter().enumerate() {
            let Some(checked) = checked else { return Err(Failure::Interrupted) };
            let (id, all) = checked?;
            ids.push(id);
            for warning in all {
                warnings.entry(warning).or_insert(number);
            }
        }
        let at = |(warning, number)| match spec.label(number) {
            label if label.is_empty() => warning,
            label => format!("{warning} (first at point {number}: {label})"),
        };
        let warnings = warnings.into_iter().map(at).collect();
        Ok(Sweep { spec, ids, warnings })
    }

    /// The number of points.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Always false, as a sweep has at least one point.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Ids of the runs by point: 16 hexadecimal digits (XXH3 of the resolved configuration, the scenario's name, the kept
    /// tables and the version).
    pub fn ids(&self) -> &[String] {
        &self.ids
    }

    /// A point that can run, here or elsewhere.
    ///
    /// # Errors
    /// If there is no such point, or a file that its scenario names has changed since the check.
    pub fn point(&self, number: usize) -> Result<Point, Failure> {
        let Some(id) = self.ids.get(number) else {
            return Err(Failure::Asked(format!("there is no point {number}: the sweep has {}", self.len())));
        };
        let resolved = self.spec.point(number).map_err(|e| self.spec.blame(number, e))?;
        let mut point = Point::new(&resolved, self.spec.flows);
        if point.id != *id {
            let text = format!("a file that the scenario names has changed since point {number} was checked");
            return Err(Failure::Asked(text));
        }
        point.label = self.spec.label(number);
        Ok(point)
    }

    /// The first point of every run; points with equal configurations are run once.
    pub fn runs(&self) -> Vec<usize> {
        let mut first: BTreeMap<&str, usize> = BTreeMap::new();
        for (number, id) in self.ids.iter().enumerate() {
            first.entry(id).or_insert(number);
        }
        let mut runs: Vec<usize> = first.into_values().collect();
        runs.sort_unstable();
        runs
    }
}
