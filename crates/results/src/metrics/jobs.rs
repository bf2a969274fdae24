//! Completion of the groups of each job.

use super::steps::{self, Steps};
use super::{Better, Shown, Unit};
use crate::data::{Flow, RunData};
use crate::flows::set;
use crate::operations;
use crate::stats::{extremes, mean};
use model::Time;
use model::plan::Job;
use std::collections::BTreeMap;

/// Key of the completion of a job's last group.
pub(crate) const SLOWEST: &str = "jobs.*.groups.completion_us.slowest";

/// Completion times of the groups of a job, since the job's start.
pub(crate) struct GroupTimes {
    groups: usize,
    /// Of groups that completed, us.
    times: Vec<f64>,
    steps: Option<Steps>,
}

impl GroupTimes {
    fn new(job: &Job, last: &[Option<Time>], steps: Option<Steps>) -> Self {
        let times = last.iter().flatten().map(|t| t.since(job.start).as_us()).collect();
        GroupTimes { groups: last.len(), times, steps }
    }

    /// The times if all groups completed.
    fn all(&self) -> Option<&[f64]> {
        (self.times.len() == self.groups).then_some(&self.times)
    }
}

section! {
    /// One job.
    pub struct JobSummary read from job: &GroupTimes;

    /// The groups (communicators) of the job.
    groups: Groups = Groups::read(job) => {};

    /// Steps of a job that computes or does collectives of GPUs; null for other jobs.
    steps: Option<Steps> = job.steps.clone() => {};
}

section! {
    /// The groups of a job.
    pub struct Groups read from job: &GroupTimes;

    /// Groups (communicators) of the job.
    count: u64 = job.groups as u64 => { label: "groups" };

    /// Time from the job's start until a group has received its last byte.
    completion_us: Completion = Completion::read(job) => {};
}

section! {
    /// Completion times of groups since their job's start, us.
    pub struct Completion read from job: &GroupTimes;

    /// Time from the job's start until the last rank of its slowest group has received its last byte; null if a group did
    /// not complete.
    slowest: Option<f64> = job.all().and_then(extremes).map(|(_, slowest)| slowest) => {
        label: "slowest group", heading: "slowest\ngroup us", unit: Unit::Microseconds, better: Better::Less,
        shown: Shown::Sweep,
    };

    /// Time from the job's start until a group has received its last byte, mean over the job's groups; null if a group did
    /// not complete.
    mean: Option<f64> = job.all().and_then(mean) => {
        label: "mean group", unit: Unit::Microseconds, better: Better::Less,
    };

    /// Time from the job's start until its first group has received its last byte.
    fastest: Option<f64> = extremes(&job.times).map(|(fastest, _)| fastest) => {
        label: "fastest group", unit: Unit::Microseconds, better: Better::Less,
    };
}

/// All jobs by name.
pub(crate) fn of(run: RunData<'_>) -> BTreeMap<String, JobSummary> {
    let jobs = &run.plan.jobs;
    let mut last: Vec<Vec<Option<Time>>> =
        jobs.iter().map(|job| vec![Some(Time::ZERO); job.groups.into()]).collect();
    for Flow { message, record, .. } in run.flows(|_| true) {
        let group = &mut last[message.job as usize][message.group as usize];
        *group = group.zip(set(record.received)).map(|(a, b)| a.max(b));
    }
    let spans = operations::spans(run);
    let summaries = (0..).zip(jobs.iter().zip(&last));
    summaries
        .map(|(number, (job, last))| {
            let times = GroupTimes::new(job, last, steps::of(run, number, &spans));
            (job.name.clone(), JobSummary::read(&times))
        })
        .collect()
}
