//! A run whose messages inference serving posts: the program beside a session of the engine.

mod lone;

use crate::execute::{Prepared, Run};
use crate::progress::Progress;
use crate::session::{Event, Kind, LATEST, Next, Session};
use crate::tape::Tape;
use engine::outcome::{Ending, Recording};
use lone::Lone;
use model::plan::Work;
use model::{HostId, Plan, Rate, Time};
use results::summary::{Fast, Serving};
use scenario::ideal::Ideals;
use scenario::program::{ProgramRanks, Way};
use scenario::workload::serving::Laid;
use serving::{Message, Network, Program, Served};
use std::collections::BTreeMap;

/// Serves the requests of a scenario on this thread. With `leave`, messages that meet nobody are left out if that is exact.
pub(crate) fn run(
    prepared: Prepared,
    serving: Laid,
    (kind, leave): (engine::Kind, bool),
    progress: &Progress<'_>,
    tape: Option<&mut dyn Tape>,
) -> Run {
    let spare = leave.then(|| (prepared.checked.clone(), serving.clone()));
    let Prepared { checked, setup_s } = prepared;
    let plan = checked.plan.clone();
    // A program has its own thread alone.
    let kind = if let engine::Kind::Threads(_) = kind { engine::Kind::Window } else { kind };
    let (Some(ranks), Ok(mut session)) = (checked.program(), Session::start(checked, kind, setup_s)) else {
        unreachable!("a checked scenario that serves has ranks");
    };
    let idle = Idle { ideals: Ideals::new(&plan), plan: &plan, ranks, pace: pace(&plan) };
    let Laid { spec, assumed, .. } = serving;
    let reason = if leave { fast::cut::met(session.checked()) } else { None };
    let mut lone = (leave && reason.is_none())
        .then(|| Lone::new(&plan, idle.pace, session.checked().nics.most_per_ack()));
    let (program, stopped) = drive(Program::new(spec, idle), (&mut session, &mut lone), progress);
    let mut run = session.finish();
    if stopped {
        run.outcome.ending = Ending::Interrupted;
        run.summary.ending = run.outcome.ending.name().to_owned();
    }
    if let (Some((checked, serving)), true) = (spare, lone.as_ref().is_some_and(|lone| lone.is_wrong)) {
        let mut run = self::run(Prepared { checked, setup_s }, serving, (kind, false), progress, tape);
        run.summary.fast = Some(left_out(None, Some("one of them took longer than it should"), &run));
        return run;
    }
    if leave {
        run.summary.fast = Some(left_out(lone.as_ref(), reason, &run));
    }
    let partial = lone.filter(|lone| lone.sent != lone.all);
    if let Some(lone) = &partial {
        run.outcome.end = run.outcome.end.max(lone.end);
        run.summary.sim_time_us = run.outcome.end.as_us();
        // Its bins have only what was sent.
        run.outcome.recording = Recording { width: run.outcome.recording.width, ..Recording::default() };
    }
    if let Some(tape) = tape {
        let frames = std::mem::take(&mut run.outcome.notes.frames);
        tape.add(&run.checked.plan, &frames, Time::NEVER);
    }
    let served = Served { assumed, job: plan.posted, ..program.finish() };
    run.served = Some(served);
    let mut section = run.served.as_ref().map(|served| Serving::of(served, run.data()));
    if let (Some(section), Some(_)) = (&mut section, partial) {
        section.loads.clear();
    }
    run.summary.complete &= section.as_ref().is_none_or(|told| told.finished == told.requests);
    run.summary.serving = section;
    run
}

/// What a run left out.
fn left_out(lone: Option<&Lone<'_>>, reason: Option<&str>, run: &Run) -> Fast {
    let plan = &run.checked.plan;
    let sent: u64 = plan.messages.iter().map(|message| plan.wire.packets(message.bytes)).sum();
    let Some(Lone { sent, all, .. }) = lone else {
        let reason = reason.map(|reason| {
            format!("each transfer is another one, and those alone are not left out: {reason}")
        });
        return Fast { reason, sent, ..Fast::default() };
    };
    let reason =
        (sent == all).then(|| "every message met another, or its time alone was not known".to_owned());
    Fast { reason, sent: sent.1, left_out: all.1 - sent.1, alone: all.0 - sent.0, ..Fast::default() }
}

/// Plays the program and the engine until all requests have ended, or the run ends early. Also returns true if the user stopped it.
fn drive<'p>(
    mut program: Program<Idle<'p>>,
    (session, lone): (&mut Session, &mut Option<Lone<'p>>),
    progress: &Progress<'_>,
) -> (Program<Idle<'p>>, bool) {
    let (mut told, mut stopped) = (0, false);
    loop {
        if progress.stopped() {
            // An engine with nothing under way would not ask.
            session.stop();
            stopped = true;
            break;
        }
        let until = program.next().filter(|until| *until <= LATEST);
        let next = match lone {
            Some(lone) => lone.next(session, until),
            None => session.next(until),
        };
        let (now, messages) = match next {
            Ok(Next::Event(Event { at, kind: Kind::Received, id, .. })) => (at, program.received(at, id)),
            Ok(Next::Event(_)) => continue,
            Ok(Next::Until | Next::Idle) => match until {
                Some(until) => (until, program.wake(until)),
                None => break,
            },
            Ok(Next::Ended) | Err(_) => break,
        };
        let sent = match lone {
            Some(lone) => lone.send(session, now, &messages),
            None => messages.iter().try_for_each(|&Message { id, from, to, bytes, tag }| {
                session.send(id, (from, to), bytes, tag)
            }),
        };
        if let Err(failure) = sent {
            unreachable!("the plan has queue pairs for all pairs of instances: {failure}");
        }
        if lone.as_ref().is_some_and(|lone| lone.is_wrong) {
            break;
        }
        let (ended, all) = program.progress();
        progress.part_done(&mut told, ended, all, "requests");
    }
    progress.run_done(told);
    (program, stopped)
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
