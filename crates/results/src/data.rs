//! The raw material of summaries and tables.

use engine::Outcome;
use engine::outcome::MessageRecord;
use model::plan::{Job, Message, Whole};
use model::{MessageId, Plan, Time};
use serving::Served;

/// The raw material of the summary and of all tables.
#[derive(Clone, Copy, Debug)]
pub struct RunData<'a> {
    /// The plan of the run.
    pub plan: &'a Plan,
    /// Ideal FCT by message, and after the messages those of [`Plan::wholes`].
    pub ideal: &'a [Time],
    /// The outcome of the run.
    pub outcome: &'a Outcome,
    /// What became of requests, if the run served any.
    pub served: Option<&'a Served>,
}

impl<'a> RunData<'a> {
    /// The flows of the jobs that `pick` takes, by number.
    pub(crate) fn flows(self, pick: impl Fn(&Job) -> bool) -> impl Iterator<Item = Flow<'a>> {
        let subflows = self.subflows();
        let records = self.plan.messages.iter().zip(&self.outcome.messages).zip(self.ideal).zip(0..);
        let picked = records.filter(move |(((m, _), _), _)| pick(&self.plan.jobs[m.job as usize]));
        picked.filter_map(move |(((message, &record), &ideal), number)| {
            match subflows.get(number as usize).copied().flatten() {
                Some((whole, 0)) => Some(self.whole(whole as usize, number, message)),
                Some(_) => None,
                None => Some(Flow { number, message, bytes: message.bytes, subflows: 1, record, ideal }),
            }
        })
    }

    /// For every message, the number of its whole and its place in it; empty if there is none.
    fn subflows(self) -> Vec<Option<(u32, u32)>> {
        let wholes = &self.plan.wholes;
        let mut subflows = vec![None; if wholes.is_empty() { 0 } else { self.plan.messages.len() }];
        for (whole, number) in wholes.iter().zip(0..) {
            for (part, place) in whole.subflows.iter().chain(&whole.request).zip(0..) {
                subflows[part.index()] = Some((number, place));
            }
        }
        subflows
    }

    /// The flow of a whole, of which `message` is the first subflow.
    fn whole(self, whole: usize, number: u32, message: &'a Message) -> Flow<'a> {
        let Whole { subflows, request } = &self.plan.wholes[whole];
        let mut all = self.outcome.messages[number as usize];
        for subflow in &subflows[1..] {
            let record = &self.outcome.messages[subflow.index()];
            // A time that was not reached is later than all others.
            all.start = all.start.min(record.start);
            all.received = all.received.max(record.received);
            all.acked = all.acked.max(record.acked);
            all.last_sent = all.last_sent.max(record.last_sent);
            all.wire_bytes += record.wire_bytes;
            all.retransmitted += record.retransmitted;
            all.slow = all.slow.max(record.slow);
        }
        if let Some(request) = request {
            let record = &self.outcome.messages[request.index()];
            all.start = record.start;
            all.acked = all.received; // the requester knows that it has the data
            all.wire_bytes += record.wire_bytes;
            all.retransmitted += record.retransmitted;
        }
        Flow {
            number,
            message,
            bytes: subflows.iter().map(|subflow| self.message(*subflow).bytes).sum(),
            subflows: subflows.len() as u32,
            record: all,
            ideal: self.ideal[self.plan.messages.len() + whole],
        }
    }

    fn message(self, id: MessageId) -> &'a Message {
        &self.plan.messages[id.index()]
    }

    /// Traffic classes that jobs use, with their names.
    pub(crate) fn classes(self) -> impl Iterator<Item = (u8, &'a String)> {
        let named = (0u8..).zip(&self.plan.traffic_classes);
        named.filter(move |(class, _)| self.plan.jobs.iter().any(|job| job.class == *class))
    }
}

/// A flow: a message of a workload, as a whole even if it travels in subflows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flow<'a> {
    /// Number of the message, or of its first subflow.
    pub(crate) number: u32,
    /// The message, or its first subflow.
    pub(crate) message: &'a Message,
    /// Payload of all subflows.
    pub(crate) bytes: u64,
    /// Number of subflows.
    pub(crate) subflows: u32,
    /// From the start of the first subflow to the end of the last, and the sums of the subflows.
    pub(crate) record: MessageRecord,
    /// FCT alone on the fabric, over all paths.
    pub(crate) ideal: Time,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn a_message_in_parts_is_one_flow_from_the_first_start_to_the_last_end() {
        // Message i takes 10 x (i + 1) us. Messages 1 and 3 are subflows of one.
        let mut plan = testing::plan(4);
        plan.wholes = vec![Whole { subflows: [MessageId(1), MessageId(3)].into(), request: None }];
        let mut outcome = testing::outcome(4);
        outcome.messages[1].start = Time::from_us(3);
        outcome.messages[3].start = Time::from_us(2);
        let ideal = [1, 2, 3, 4, 5].map(Time::from_us);
        let run = RunData { plan: &plan, ideal: &ideal, outcome: &outcome, served: None };
        let seen: Vec<_> = run.flows(|_| true).map(|flow| (flow.number, flow.subflows, flow.bytes)).collect();
        assert_eq!(seen, [(0, 1, 12_500), (1, 2, 25_000), (2, 1, 12_500)]);
        assert_eq!(plan.flows(), 3);
        let whole = run.flows(|_| true).nth(1).unwrap();
        assert_eq!((whole.record.start, whole.record.acked), (Time::from_us(2), Time::from_us(40)));
        assert_eq!((whole.record.wire_bytes, whole.ideal), (40_000, Time::from_us(5)));
        // Unless all subflows end, the flow does not.
        outcome.messages[1].acked = Time::NEVER;
        let run = RunData { plan: &plan, ideal: &ideal, outcome: &outcome, served: None };
        assert_eq!(run.flows(|_| true).nth(1).unwrap().record.acked, Time::NEVER);
    }
}
