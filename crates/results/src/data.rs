//! The raw material of summaries and tables.

use engine::Outcome;
use engine::outcome::MessageRecord;
use model::plan::{Job, Message};
use model::{Plan, Time};

/// The raw material of the summary and of all tables.
#[derive(Clone, Copy, Debug)]
pub struct RunData<'a> {
    /// The plan of the run.
    pub plan: &'a Plan,
    /// Ideal FCT by message.
    pub ideal: &'a [Time],
    /// The outcome of the run.
    pub outcome: &'a Outcome,
}

impl<'a> RunData<'a> {
    /// Messages with their records and ideal FCT, of the jobs that `pick` takes.
    pub(crate) fn flows(
        self,
        pick: impl Fn(&Job) -> bool,
    ) -> impl Iterator<Item = (&'a Message, &'a MessageRecord, Time)> {
        let records = self.plan.messages.iter().zip(&self.outcome.messages).zip(self.ideal);
        let picked = records.filter(move |((m, _), _)| pick(&self.plan.jobs[m.job as usize]));
        picked.map(|((m, r), &ideal)| (m, r, ideal))
    }

    /// Traffic classes that jobs use, with their names.
    pub(crate) fn classes(self) -> impl Iterator<Item = (u8, &'a String)> {
        let named = (0u8..).zip(&self.plan.traffic_classes);
        named.filter(move |(class, _)| self.plan.jobs.iter().any(|job| job.class == *class))
    }
}
