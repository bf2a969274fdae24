//! Verdicts.

use super::case::{Bound, By, Case, Found, Seen};
use super::limits::Limits;
use serde::Serialize;

/// A verdict on a value, or on a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Within its limit.
    Pass,
    /// Beyond its limit.
    Fail,
    /// Without a limit.
    Reported,
    /// Within a target that is no limit.
    Met,
    /// Beyond a target that is no limit.
    Missed,
    /// The fabric cannot show it.
    NotApplicable,
    /// The engine cannot show it.
    NotTested,
}

impl Verdict {
    /// The verdict in words.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Pass => "pass",
            Verdict::Fail => "FAIL",
            Verdict::Reported => "reported",
            Verdict::Met => "met",
            Verdict::Missed => "missed",
            Verdict::NotApplicable => "not applicable",
            Verdict::NotTested => "not tested",
        }
    }
}

/// A value with its verdict.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Case.
    pub case: &'static str,
    /// Traffic within the case.
    pub traffic: String,
    /// Metric; empty for what was not played.
    pub metric: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// The value; null if it is infinite, or nothing was played.
    pub measured: Option<f64>,
    /// The limit, or the target.
    pub limit: Option<f64>,
    /// Its sense.
    pub bound: Option<Bound>,
    /// Its author.
    pub limit_by: Option<By>,
    /// The verdict.
    pub verdict: Verdict,
    /// Why nothing was played.
    pub why: Option<String>,
    /// The command that repeats the run.
    pub command: Option<String>,
}

/// A case with its verdict.
#[derive(Clone, Debug, Serialize)]
pub struct Judged {
    /// Name.
    pub case: &'static str,
    /// The plan's own name.
    pub plan: &'static str,
    /// What was played.
    pub about: &'static str,
    /// `fail` if a value is, else `pass` if a value is, else what its rows are.
    pub verdict: Verdict,
}

/// A run with all its values.
#[derive(Clone, Debug, Serialize)]
pub struct RunValues {
    /// Case.
    pub case: &'static str,
    /// Traffic.
    pub traffic: String,
    /// Values by metric.
    pub values: std::collections::BTreeMap<&'static str, f64>,
    /// The command that repeats it.
    pub command: String,
}

/// The answer.
#[derive(Clone, Debug, Serialize)]
pub struct Answer {
    /// The scenario.
    pub site: String,
    /// True if a case passed, and none failed.
    pub accepted: bool,
    /// Cases.
    pub cases: Vec<Judged>,
    /// Values with their verdicts.
    pub rows: Vec<Row>,
    /// Every run.
    pub runs: Vec<RunValues>,
}

impl Answer {
    /// True if a case failed.
    pub fn failed(&self) -> bool {
        self.cases.iter().any(|case| case.verdict == Verdict::Fail)
    }

    /// Names of the cases with this verdict.
    pub fn with(&self, verdict: Verdict) -> Vec<&'static str> {
        self.cases.iter().filter(|case| case.verdict == verdict).map(|case| case.case).collect()
    }
}

/// A case that has been played.
pub(crate) struct Played {
    pub(crate) case: &'static Case,
    /// Its parts, or why it is not applicable.
    pub(crate) seen: Result<Vec<Seen>, String>,
}

/// The answer of these cases.
pub(crate) fn of(site: &str, played: &[Played], limits: &Limits) -> Answer {
    let mut answer = Answer {
        site: site.to_owned(),
        accepted: false,
        cases: Vec::new(),
        rows: Vec::new(),
        runs: Vec::new(),
    };
    for Played { case, seen } in played {
        let rows = rows(case, seen, limits);
        let verdict = together(&rows);
        answer.cases.push(Judged { case: case.id, plan: case.plan, about: case.about, verdict });
        answer.rows.extend(rows);
        let runs = seen.iter().flatten().filter_map(|seen| {
            let values = seen.values.clone().ok()?;
            Some(RunValues {
                case: case.id,
                traffic: seen.label.clone(),
                values,
                command: seen.command.clone(),
            })
        });
        answer.runs.extend(runs);
    }
    answer.accepted = !answer.failed() && !answer.with(Verdict::Pass).is_empty();
    answer
}

fn rows(case: &Case, seen: &Result<Vec<Seen>, String>, limits: &Limits) -> Vec<Row> {
    let seen = match seen {
        Ok(seen) => seen,
        Err(why) => return vec![not(case, "", why)],
    };
    let mut rows: Vec<Row> =
        (case.rows)(seen).into_iter().filter_map(|found| judged(case, found, limits)).collect();
    rows.sort_by_key(|row| case.metrics.iter().position(|metric| metric.key == row.metric));
    // Rows of one traffic stand together, in the order of the case.
    let order = |row: &Row| seen.iter().position(|seen| seen.label == row.traffic);
    rows.sort_by_key(order);
    let missing = seen.iter().filter_map(|seen| Some(not(case, &seen.label, seen.values.as_ref().err()?)));
    rows.extend(missing);
    rows
}

/// A row for what was not played.
fn not(case: &Case, traffic: &str, why: &str) -> Row {
    let (verdict, why) = match why.strip_prefix("not tested: ") {
        Some(why) => (Verdict::NotTested, why),
        None => (Verdict::NotApplicable, why),
    };
    Row {
        case: case.id,
        traffic: traffic.to_owned(),
        metric: "",
        unit: "",
        measured: None,
        limit: None,
        bound: None,
        limit_by: None,
        verdict,
        why: Some(why.to_owned()),
        command: None,
    }
}

/// A value with its verdict; `None` if the case does not list its metric.
fn judged(case: &Case, found: Found, limits: &Limits) -> Option<Row> {
    let metric = case.metrics.iter().find(|metric| metric.key == found.metric)?;
    let limit = limits.of(case.id, metric).map(|limit| (limit, By::Yours)).or(metric.limit);
    let within = |limit: f64| match metric.bound {
        Bound::AtMost => found.value <= limit,
        Bound::AtLeast => found.value >= limit,
    };
    let verdict = match limit {
        None => Verdict::Reported,
        Some((target, By::Reference)) if within(target) => Verdict::Met,
        Some((_, By::Reference)) => Verdict::Missed,
        Some((limit, _)) if within(limit) => Verdict::Pass,
        Some(_) => Verdict::Fail,
    };
    Some(Row {
        case: case.id,
        traffic: found.traffic,
        metric: metric.key,
        unit: metric.unit,
        measured: Some(found.value).filter(|value| value.is_finite()),
        limit: limit.map(|(limit, _)| limit),
        bound: limit.map(|_| metric.bound),
        limit_by: limit.map(|(_, by)| by),
        verdict,
        why: None,
        command: Some(found.command).filter(|command| !command.is_empty()),
    })
}

/// The verdict on a case.
fn together(rows: &[Row]) -> Verdict {
    let has = |verdict: Verdict| rows.iter().any(|row| row.verdict == verdict);
    let order =
        [Verdict::Fail, Verdict::Pass, Verdict::Missed, Verdict::Met, Verdict::Reported, Verdict::NotTested];
    match order.into_iter().find(|verdict| has(*verdict)) {
        // Values beside a target, and values alone, are no verdict on the case.
        Some(Verdict::Missed | Verdict::Met) => Verdict::Reported,
        Some(verdict) => verdict,
        None => Verdict::NotApplicable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acceptance::plans::CASES;

    fn seen(values: &[(&'static str, f64)]) -> Seen {
        Seen { label: "data".into(), values: Ok(values.iter().copied().collect()), command: String::new() }
    }

    #[test]
    fn a_value_beyond_its_limit_fails_the_case_and_a_reference_never_does() {
        let of = |id: &str, values: &[(&'static str, f64)]| {
            let case = CASES.iter().find(|case| case.id == id).unwrap();
            of("site", &[Played { case, seen: Ok(vec![seen(values)]) }], &Limits::default())
        };
        let good = of("a1", &[("loss", 0.0), ("mean-latency", 4.9)]);
        assert!(good.accepted && good.rows.iter().all(|row| row.verdict == Verdict::Pass));
        let bad = of("a1", &[("loss", 0.0), ("mean-latency", 5.1)]);
        assert!(!bad.accepted);
        assert_eq!(bad.with(Verdict::Fail), ["a1"]);
        let slow = of("a12", &[("jct-ratio", 1.3)]);
        assert!(!slow.accepted && !slow.failed(), "nothing judges");
        assert_eq!((slow.rows[0].verdict, slow.cases[0].verdict), (Verdict::Missed, Verdict::Reported));
        assert_eq!(slow.rows[0].limit_by, Some(By::Reference));
    }

    #[test]
    fn a_case_that_was_not_played_never_passes() {
        for case in CASES {
            let refused = Played { case, seen: Err("the fabric has one leaf".into()) };
            let answer = of("site", &[refused], &Limits::default());
            assert_eq!(answer.cases[0].verdict, Verdict::NotApplicable, "{}", case.id);
            let part = Seen::not("part", "the fabric has one uplink".into());
            let answer = of("site", &[Played { case, seen: Ok(vec![part]) }], &Limits::default());
            assert_eq!(answer.cases[0].verdict, Verdict::NotApplicable, "{}", case.id);
            assert!(answer.rows[0].why.as_deref().is_some_and(|why| why.contains("uplink")), "{}", case.id);
        }
    }
}
