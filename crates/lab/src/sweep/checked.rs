//! A sweep whose points were all checked.

use super::point::Point;
use crate::crew::Crew;
use crate::failure::Failure;
use crate::fast::Leave;
use crate::progress::Progress;
use scenario::sheet::oversubscription;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A sweep whose points were all checked.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// The sweep's file.
    pub spec: scenario::sweep::Sweep,
    /// How much the runs may leave out; `None` to send everything.
    pub fast: Option<Leave>,
    /// Ids of the runs by point; points with equal configurations have one id.
    ids: Vec<String>,
    may_change: bool,
    /// Settings that are valid but probably not intended. Each warning stands here once, with its first point.
    pub warnings: Vec<String>,
}

impl Sweep {
    /// Reads a sweep, a path or the name of a built-in one, with `KEY=VALUE` changes, and checks all of its points.
    ///
    /// # Errors
    /// The error of the first faulty point; [`Failure::Interrupted`].
    pub fn load(sweep: &str, set: &[String], crew: Crew, progress: &Progress<'_>) -> Result<Self, Failure> {
        Self::check(scenario::sweep::load(sweep, set)?, None, crew, progress)
    }

    /// Checks all points of a sweep, each as if it were to run: whole, or fast.
    ///
    /// # Errors
    /// See [`Sweep::load`].
    pub fn check(
        spec: scenario::sweep::Sweep,
        fast: Option<Leave>,
        crew: Crew,
        progress: &Progress<'_>,
    ) -> Result<Self, Failure> {
        // Points are taken in order, so all points before a faulty one are checked: the first error is always the same.
        let first_wrong = AtomicUsize::new(usize::MAX);
        let may_change = AtomicBool::new(false);
        let one = |number: usize, _| {
            if progress.stopped() || number > first_wrong.load(Ordering::Relaxed) {
                return None;
            }
            let checked = spec.point(number).and_then(|resolved| {
                let id = Point::new(&resolved, spec.flows, fast.clone()).id;
                may_change.fetch_or(resolved.may_change(), Ordering::Relaxed);
                let checked = crate::fast::check(resolved, fast.as_ref())?;
                Ok((id, checked.warnings(), oversubscription(&checked.plan.fabric)))
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
        let mut capacities: Vec<(String, usize)> = Vec::new();
        for (number, checked) in checked.into_iter().enumerate() {
            let Some(checked) = checked else { return Err(Failure::Interrupted) };
            let (id, all, capacity) = checked?;
            ids.push(id);
            if capacities.iter().all(|(known, _)| *known != capacity) {
                capacities.push((capacity, number));
            }
            for warning in all {
                warnings.entry(warning).or_insert(number);
            }
        }
        let at = |(warning, number)| match spec.label(number) {
            label if label.is_empty() => warning,
            label => format!("{warning} (first at point {number}: {label})"),
        };
        let changes = changing(&capacities, &|number| spec.label(number));
        let warnings = changes.into_iter().chain(warnings.into_iter().map(at)).collect();
        Ok(Sweep { spec, fast, ids, may_change: may_change.into_inner(), warnings })
    }

    /// The number of points.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// True if the code of a part can change while the program runs, see [`scenario::Resolved::may_change`].
    pub fn may_change(&self) -> bool {
        self.may_change
    }

    /// Always false, as a sweep has at least one point.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Ids of the runs by point: 16 hexadecimal digits (XXH3 of the resolved configuration, the scenario's name, the kept
    /// tables, the version, and the code of parts of one's own).
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
        let mut point = Point::new(&resolved, self.spec.flows, self.fast.clone());
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

/// Most capacities that a warning names. Our choice.
const MOST_NAMED: usize = 4;

/// A warning if points differ in what their fabrics can carry, which no axis says: each oversubscription with its first point.
fn changing(capacities: &[(String, usize)], label: &dyn Fn(usize) -> String) -> Option<String> {
    let named = |(capacity, number): &(String, usize)| {
        let none = if capacity.is_empty() { "none" } else { capacity };
        format!("{none} (first at point {number}: {})", label(*number))
    };
    let mut all: Vec<String> = capacities.iter().take(MOST_NAMED).map(named).collect();
    if capacities.len() > MOST_NAMED {
        all.push(format!("{} others", capacities.len() - MOST_NAMED));
    }
    (capacities.len() > 1).then(|| {
        format!("oversubscription changes from point to point, so fabrics are not alike: {}", all.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_oversubscription_is_told() {
        let of = |all: &[&str]| {
            let all: Vec<(String, usize)> =
                all.iter().enumerate().map(|(i, of)| ((*of).to_owned(), i)).collect();
            changing(&all, &|number| format!("spines = {number}"))
        };
        assert_eq!(of(&["leaf 2:1"]), None);
        assert_eq!(
            of(&["leaf 2:1", "leaf 16:1"]).unwrap(),
            "oversubscription changes from point to point, so fabrics are not alike: leaf 2:1 (first at point 0: spines = 0), leaf \
             16:1 (first at point 1: spines = 1)"
        );
        assert!(of(&["a", "b", "c", "d", "e"]).unwrap().ends_with(", 1 others"));
    }
}
