//! Values of a run.

use engine::outcome::Ending;
use lab::Run;
use model::Time;
use std::collections::BTreeMap;

/// Values of a run by metric.
pub(crate) type Values = BTreeMap<&'static str, f64>;

/// Counts that most cases judge.
pub(crate) fn counts(run: &Run) -> Values {
    let data = &run.outcome.data;
    let control = &run.outcome.control;
    let marked: u64 = run.outcome.nics.iter().map(|nic| nic.marked).sum();
    let lost = data.dropped() + data.cut;
    let share = |part: u64, all: u64| 100.0 * part as f64 / all.max(1) as f64;
    Values::from([
        ("loss", lost as f64),
        ("naks", control.nack as f64),
        ("ce", marked as f64),
        ("cnps", control.cnp as f64),
        ("cnps-lost", control.dropped as f64),
        ("pauses", control.pause as f64),
        ("timeouts", control.timeout as f64),
        ("reordered", share(data.out_of_order, data.sent)),
        ("unfinished", unfinished(run) as f64),
    ])
}

/// Foreground messages that did not finish, unless the run was to end before.
fn unfinished(run: &Run) -> usize {
    if run.outcome.ending == Ending::Stopped {
        return 0;
    }
    let plan = &run.checked.plan;
    let counts = |job: u16| !plan.jobs[usize::from(job)].background;
    let records = plan.messages.iter().zip(&run.outcome.messages);
    records.filter(|(message, record)| counts(message.job) && record.acked == Time::NEVER).count()
}

/// These values alone.
pub(crate) fn only(values: Values, keys: &[&str]) -> Values {
    values.into_iter().filter(|(key, _)| keys.contains(key)).collect()
}

/// Number of the job with this name.
pub(crate) fn job(run: &Run, name: &str) -> Option<u16> {
    run.checked.plan.jobs.iter().position(|job| job.name == name).map(|number| number as u16)
}

/// Time from a job's first post to its last byte, us; `None` if it did not finish.
pub(crate) fn completion(run: &Run, name: &str) -> Option<f64> {
    let job = job(run, name)?;
    let records = run.checked.plan.messages.iter().zip(&run.outcome.messages);
    let mine: Vec<_> = records.filter(|(message, _)| message.job == job).map(|(_, record)| record).collect();
    let start = mine.iter().map(|record| record.start).min()?;
    let end = mine.iter().map(|record| record.received).max()?;
    (end != Time::NEVER).then(|| end.as_us() - start.as_us())
}
