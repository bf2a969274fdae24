//! What decides a sweep. Its schemes compete at each choice of the other axes, or without such an axis the settings of NICs and switches.

use super::contender::{Contender, hops};
use super::places::{Entry, chosen};
use super::verdict::{Asked, Verdict, of};
use arrow_array::Array;
use lab::execute::{Prepared, Run, execute, window_on};
use lab::sweep::Sweep;
use lab::{Crew, Failure, Progress};
use results::Metric;
use results::metrics::{Better, Shown};
use results::table::Table;

/// Tables of settings whose values compete in a sweep without schemes: parts of the same fabric, with the same work to do.
const PARTS: [&str; 4] = ["nic", "switch", "switch-role", "feedback"];

/// What decides a finished sweep, from its `points.parquet`. The points that are looked into run again; those of a sweep of fast runs are
/// not, as these cannot record where time goes.
///
/// # Errors
/// If the user interrupted it, or a point cannot run again.
pub fn of_sweep(
    sweep: &Sweep,
    points: &Table,
    crew: Crew,
    progress: &Progress<'_>,
) -> Result<Vec<Verdict>, Failure> {
    if sweep.fast.is_some() {
        return Ok(Vec::new());
    }
    let seeds = sweep.spec.seeds.as_ref().map_or(1, Vec::len).max(1);
    let Some((metric, entries)) = entries(sweep, points, seeds) else { return Ok(Vec::new()) };
    let measure = |run: &Run| metric.in_table(|key| run.summary.number(key));
    let mut verdicts = Vec::new();
    for chosen in chosen(&entries.iter().map(|(_, entry)| entry.clone()).collect::<Vec<_>>()) {
        let one = |i: usize, threads| -> Result<Run, Failure> {
            if progress.stopped() {
                return Err(Failure::Interrupted);
            }
            let point = sweep.spec.point(entries[i].0)?;
            let prepared = Prepared::by(|| point.lay())?;
            let kind = window_on(threads, &prepared.checked.plan);
            let run = execute(prepared, kind, progress);
            run.ran_to_its_end().map(|()| run)
        };
        progress.expect(chosen.len());
        let runs = crew.side_by_side(chosen.clone(), one)?.into_iter().collect::<Result<Vec<_>, _>>()?;
        let contender = |(&i, run): (&usize, _)| {
            let Entry { name, us, .. } = &entries[i].1;
            Contender { name: name.clone(), run, us: *us }
        };
        let asked = Asked {
            contenders: chosen.iter().zip(&runs).map(contender).collect(),
            baseline: None,
            place: Some((entries[chosen[0]].1.place.clone(), metric.label.clone())),
            measure: &measure,
            // As many as the whole sweep took, if its points are like these.
            hops: hops(&runs) / runs.len().max(1) as u64 * sweep.runs().len() as u64,
            seeded: seeds > 1,
            crew,
        };
        verdicts.extend(of(&asked, progress)?);
    }
    Ok(verdicts)
}

/// The metric that ranks the points, and each choice of values with its first point; `None` if there is no such metric.
fn entries(sweep: &Sweep, points: &Table, seeds: usize) -> Option<(Metric, Vec<(usize, Entry)>)> {
    let whole = points.flags("complete")?;
    let metric = metric(points)?;
    let number = |row: usize| {
        let value = metric.in_table(|key| {
            points.reals(key).filter(|cells| cells.is_valid(row)).map(|cells| cells.value(row))
        });
        value.filter(|_| whole.value(row))
    };
    let competing = competing(sweep);
    let entry = |first: usize| {
        let all = (first..points.rows().min(first + seeds)).map(number).collect::<Option<Vec<f64>>>()?;
        let (mut place, mut name) = (Vec::new(), Vec::new());
        for ((key, value), competes) in sweep.spec.keys().zip(sweep.spec.values(first)).zip(&competing) {
            match (key, competes) {
                ("schemes", _) => name.push(value),
                (key, true) => name.push(said(key, &value)),
                (key, false) => place.push(said(key, &value)),
            }
        }
        let us = all.iter().sum::<f64>() / all.len().max(1) as f64;
        Some((first, Entry { place: place.join(", "), name: name.join(", "), us }))
    };
    let entries = (0..points.rows()).step_by(seeds).filter_map(entry).collect();
    Some((metric, entries))
}

/// The first time that tables of sweeps show: that of the slowest group of a single job, or else of flows.
fn metric(points: &Table) -> Option<Metric> {
    let schema = points.schema();
    let slowest = Metric::slowest_group();
    let of_jobs: Vec<Metric> =
        schema.fields().iter().filter_map(|field| slowest.named_by(field.name())).collect();
    // A mean over jobs has no meaning.
    let single = if let [job] = of_jobs.as_slice() { Some(job.clone()) } else { None };
    let has = |metric: &Metric| points.reals(&metric.key).is_some_and(|cells| cells.null_count() == 0);
    let times = Metric::shown_in(Shown::Sweep).filter(|metric| metric.better == Better::Less).cloned();
    single.into_iter().chain(times).find(has)
}

/// By key: true if its values compete.
fn competing(sweep: &Sweep) -> Vec<bool> {
    let of_scheme = |key: &str| key == "schemes" || key == "scheme" || key.starts_with("scheme.");
    let of_part = |key: &str| PARTS.contains(&key.split('.').next().unwrap_or_default());
    let axes: Vec<Vec<&str>> =
        sweep.spec.axes.iter().map(|axis| axis.keys.iter().map(|key| key.name.as_str()).collect()).collect();
    let schemes = axes.iter().flatten().any(|key| of_scheme(key));
    let competes = |key: &&str| if schemes { of_scheme(key) } else { of_part(key) };
    // Keys of one axis change together.
    axes.iter().flat_map(|axis| vec![axis.iter().any(competes); axis.len()]).collect()
}

/// A key and its value for readers.
fn said(key: &str, value: &str) -> String {
    format!("{} {value}", key.rsplit('.').next().unwrap_or(key))
}
