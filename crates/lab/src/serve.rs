//! A run whose messages inference serving posts: the program beside a session of the engine.

use crate::execute::{Prepared, Run};
use crate::progress::Progress;
use crate::session::{Event, Kind, LATEST, Next, Session};
use crate::tape::Tape;
use model::plan::Work;
use model::{HostId, Plan, Rate, Time};
use results::summary::Serving;
use scenario::ideal::Ideals;
use scenario::program::{ProgramRanks, Way};
use scenario::workload::serving::Laid;
use serving::{Message, Network, Program, Served};
use std::collections::BTreeMap;

/// Serves the requests of a scenario on this thread.
pub(crate) fn run(
    prepared: Prepared,
    serving: Laid,
    kind: engine::Kind,
    progress: &Progress<'_>,
    tape: Option<&mut dyn Tape>,
) -> Run {
    let Prepared { checked, setup_s } = prepared;
    let plan = checked.plan.clone();
    // A program has its own thread alone.
    let kind = if let engine::Kind::Threads(_) = kind { engine::Kind::Window } else { kind };
    let (Some(ranks), Ok(mut session)) = (checked.program(), Session::start(checked, kind, setup_s)) else {
        unreachable!("a checked scenario that serves has ranks");
    };
    let idle = Idle { ideals: Ideals::new(&plan), plan: &plan, ranks, pace: pace(&plan) };
    let Laid { spec, assumed, .. } = serving;
    let program = drive(Program::new(spec, idle), &mut session, progress);
    let mut run = session.finish();
    if let Some(tape) = tape {
        let frames = std::mem::take(&mut run.outcome.notes.frames);
        tape.add(&run.checked.plan, &frames, Time::NEVER);
    }
    let served = Served { assumed, job: plan.posted, ..program.finish() };
    run.served = Some(served);
    let section = run.served.as_ref().map(|served| Serving::of(served, run.data()));
    run.summary.complete &= section.as_ref().is_none_or(|told| told.finished == told.requests);
    run.summary.serving = section;
    run
}

/// Plays the program and the engine until all requests have ended, or the run ends early.
fn drive<'p>(
    mut program: Program<Idle<'p>>,
    session: &mut Session,
    progress: &Progress<'_>,
) -> Program<Idle<'p>> {
    let mut told = 0;
    loop {
        if progress.stopped() {
            session.stop();
        }
        let until = program.next().filter(|until| *until <= LATEST);
        let messages = match session.next(until) {
            Ok(Next::Event(Event { at, kind: Kind::Received, id, .. })) => program.received(at, id),
            Ok(Next::Event(_)) => continue,
            Ok(Next::Until | Next::Idle) => match until {
                Some(until) => program.wake(until),
                None => break,
            },
            Ok(Next::Ended) | Err(_) => break,
        };
        for Message { id, from, to, bytes, tag } in messages {
            if let Err(failure) = session.send(id, (from, to), bytes, tag) {
                unreachable!("the plan has queue pairs for all pairs of instances: {failure}");
            }
        }
        let (ended, all) = program.progress();
        progress.part_done(&mut told, ended, all, "requests");
    }
    progress.run_done(told);
    program
}

/// The most that NICs send of the job's traffic class.
fn pace(plan: &Plan) -> Option<Rate> {
    let job = &plan.jobs[usize::from(plan.posted?)];
    let class = *plan.nic_classes.of.get(usize::from(job.class))?;
    plan.nic_classes.table.get(usize::from(class))?.rate
}

/// The fabric without any load.
struct Idle<'p> {
    ideals: Ideals<'p>,
    plan: &'p Plan,
    ranks: ProgramRanks,
    pace: Option<Rate>,
}

impl Network for Idle<'_> {
    /// The time of the busiest port: the bytes of all its messages cross as if they were one.
    fn alone(&mut self, messages: &[Message]) -> Time {
        let (mut sent, mut taken) = (BTreeMap::new(), BTreeMap::new());
        let mut longest = Time::ZERO;
        for &Message { from, to, bytes, tag, .. } in messages {
            match self.ranks.way(from, to, bytes, tag) {
                Ok(Way::Message(qp)) => {
                    let qp = &self.plan.qps[qp.index()];
                    let add = |ports: &mut BTreeMap<HostId, (HostId, HostId, u64)>, port: HostId| {
                        ports.entry(port).or_insert((qp.from, qp.to, 0)).2 += bytes;
                    };
                    add(&mut sent, qp.from);
                    add(&mut taken, qp.to);
                }
                Ok(Way::Task(task)) => {
                    if let Work::Copy { time, delay, .. } = task.work {
                        longest = longest.max(time + delay);
                    }
                }
                Err(_) => {}
            }
        }
        for (from, to, bytes) in sent.into_values().chain(taken.into_values()) {
            longest = longest.max(self.ideals.arrival(from, to, bytes, self.pace));
        }
        longest
    }

    /// The receiver acknowledges each request before it answers.
    fn asked(&mut self, requests: &[Message]) -> Time {
        let mut acks: BTreeMap<HostId, u64> = BTreeMap::new();
        for &Message { from, to, bytes, tag, .. } in requests {
            if let Ok(Way::Message(qp)) = self.ranks.way(from, to, bytes, tag) {
                let (port, wire) = (self.plan.qps[qp.index()].to, &self.plan.wire);
                *acks.entry(port).or_default() += wire.transmission(self.plan.line(port), wire.ack).ps();
            }
        }
        self.alone(requests) + Time(acks.into_values().max().unwrap_or(0))
    }

    fn switches(&mut self, from: u32, to: u32) -> u32 {
        match self.ranks.way(from, to, 1, 0) {
            Ok(Way::Message(qp)) => {
                let qp = &self.plan.qps[qp.index()];
                self.ideals.switches(qp.from, qp.to).unwrap_or(0) as u32
            }
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests;
