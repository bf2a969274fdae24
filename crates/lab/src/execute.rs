//! A checked scenario through the engine, with a stopwatch.

use crate::clock::{Stopwatch, peak_rss_mb};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::serve;
use crate::tape::{Tape, Taped};
use engine::outcome::Ending;
use engine::{Kind, Outcome};
use model::{Plan, Time};
use results::manifest::Config;
use results::summary::{Summary, Timing, Title};
use results::text::bytes;
use results::{Results, RunData};
use scenario::Checked;
use scenario::ideal;
use scenario::room::Room;
use serving::Served;
use std::num::NonZeroUsize;

/// A checked scenario, and the CPU time of its preparation.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The scenario.
    pub checked: Checked,
    /// CPU seconds that reading and laying it out took.
    pub setup_s: f64,
}

impl Prepared {
    /// Calls `make` and measures its CPU time.
    ///
    /// # Errors
    /// The errors of `make`.
    pub fn by(make: impl FnOnce() -> Result<Checked, scenario::Finding>) -> Result<Self, scenario::Finding> {
        let watch = Stopwatch::start();
        Ok(Prepared { checked: make()?, setup_s: watch.cpu_s() })
    }
}

/// A run with its scenario and its results.
#[derive(Clone, Debug)]
pub struct Run {
    /// The scenario.
    pub checked: Checked,
    /// The outcome.
    pub outcome: Outcome,
    /// Ideal FCT by message.
    pub ideal: Vec<Time>,
    /// The summary.
    pub summary: Summary,
    /// Memory that was left when the run ended; `None` if the system does not report it.
    pub room: Option<Room>,
    /// What became of requests, if the run served any.
    pub served: Option<Served>,
}

impl Run {
    /// The raw material of its tables.
    pub fn data(&self) -> RunData<'_> {
        RunData {
            plan: &self.checked.plan,
            ideal: &self.ideal,
            outcome: &self.outcome,
            served: self.served.as_ref(),
        }
    }

    /// The results as a directory holds them; `command` started the run.
    pub fn results(&self, command: Vec<String>) -> Results {
        let config = Config { text: self.checked.to_toml(), hash: self.checked.hash() };
        Results::new(&self.summary, self.data(), config, command)
    }

    /// The results without tables, for readers of summary and configuration.
    pub fn outline(&self) -> Results {
        let config = Config { text: self.checked.to_toml(), hash: self.checked.hash() };
        Results::outline(&self.summary, &config)
    }

    /// The reasons why the simulation failed; empty if it did not fail, or was stopped.
    pub fn faults(&self) -> Vec<String> {
        let left = match self.room {
            Some(Room { left, limit }) => format!(": {limit} has {} left", bytes(left)),
            None => String::new(),
        };
        let mut faults = results::faults::of(&self.checked.plan, &self.outcome, &left);
        faults.extend(self.unserved());
        faults
    }

    /// How many requests did not finish, although nothing ended the run before its time.
    pub fn unserved(&self) -> Option<String> {
        let told = self.summary.serving.as_ref().filter(|_| self.outcome.ending == Ending::Finished)?;
        let left = told.requests - told.finished;
        (left > 0).then(|| format!("{left} of {} requests did not finish", told.requests))
    }

    /// Refuses a run that ended before its scenario says.
    ///
    /// # Errors
    /// [`Failure::Interrupted`] or [`Failure::Memory`].
    pub fn ran_to_its_end(&self) -> Result<(), Failure> {
        match self.outcome.ending {
            Ending::Interrupted => Err(Failure::Interrupted),
            Ending::Memory(_) => Err(Failure::Memory(self.faults().join("\n"))),
            Ending::Finished | Ending::Stopped | Ending::Stalled(_) | Ending::RetryExceeded(_) => Ok(()),
        }
    }

    /// Simulated time to the end of the slowest group over all foreground jobs, in ms; `None` if one did not
    /// finish.
    pub fn slowest_group_ms(&self) -> Option<f64> {
        let foreground = self.checked.plan.jobs.iter().filter(|job| !job.background);
        let slowest = foreground.map(|job| self.summary.jobs.get(&job.name)?.groups.completion_us.slowest);
        slowest.collect::<Option<Vec<_>>>()?.into_iter().max_by(f64::total_cmp).map(|us| us / 1000.0)
    }
}

/// The window engine on `threads` threads, at most as many as the plan can be split over.
pub fn window_on(threads: NonZeroUsize, plan: &Plan) -> Kind {
    let most = NonZeroUsize::new(engine::groups(&plan.fabric)).unwrap_or(NonZeroUsize::MIN);
    match threads.min(most) {
        NonZeroUsize::MIN => Kind::Window,
        threads => Kind::Threads(threads),
    }
}

/// Runs a scenario on this thread and on the additional threads of `kind`.
pub fn execute(prepared: Prepared, kind: Kind, progress: &Progress<'_>) -> Run {
    execute_on(prepared, kind, progress, None)
}

/// [`execute`], with the frames at taps handed to a tape instead of kept in memory.
pub fn execute_on(
    prepared: Prepared,
    kind: Kind,
    progress: &Progress<'_>,
    tape: Option<&mut dyn Tape>,
) -> Run {
    if let Some(serving) = prepared.checked.serving() {
        return serve::run(prepared, serving, (kind, false), progress, tape);
    }
    let Prepared { checked, setup_s } = prepared;
    let Checked { plan, schemes, nics, .. } = &checked;
    let watch = Stopwatch::start();
    let mut observer = progress.watch(plan);
    let outcome = match tape {
        None => sim::run(plan, schemes, nics, kind, &mut observer),
        Some(tape) => {
            let mut taped = Taped { watch: observer, plan, tape, ended: false };
            let mut outcome = sim::run(plan, schemes, nics, kind, &mut taped);
            let rest = std::mem::take(&mut outcome.notes.frames);
            taped.tape.add(plan, &rest, Time::NEVER);
            observer = taped.watch;
            outcome
        }
    };
    let (wall_s, cpu_s) = (watch.wall_s(), watch.cpu_s() + observer.others_cpu_s());
    let setup_s = setup_s + observer.built_s;
    let room = observer.headroom.room();
    drop(observer);
    conclude(checked, outcome, Spent { wall_s, cpu_s, setup_s, kind }, room)
}

/// The cost of a run.
pub(crate) struct Spent {
    pub(crate) wall_s: f64,
    pub(crate) cpu_s: f64,
    pub(crate) setup_s: f64,
    /// The engine.
    pub(crate) kind: Kind,
}

/// Adds the summary to an outcome; `room` is the memory that was left at the end.
pub(crate) fn conclude(checked: Checked, outcome: Outcome, spent: Spent, room: Option<Room>) -> Run {
    let Spent { wall_s, cpu_s, setup_s, kind } = spent;
    let hops = outcome.data_hops + outcome.control_hops;
    let timing = Timing {
        wall_s,
        cpu_s,
        setup_s,
        threads: match kind {
            Kind::Threads(threads) => threads.get(),
            Kind::Window | Kind::HalfWindow | Kind::Reference => 1,
        },
        engine: match kind {
            Kind::Window | Kind::Threads(_) => "window",
            Kind::Reference => "reference",
            Kind::HalfWindow => "half-window",
        }
        .to_owned(),
        hops_per_cpu_s: if cpu_s > 0.0 { hops as f64 / cpu_s } else { 0.0 },
        peak_rss_mb: peak_rss_mb(),
    };
    let ideal = ideal::of_flows(&checked.plan);
    let title = Title { scenario: &checked.name, scheme: &checked.scheme_name() };
    let summary = Summary::new(title, &checked.plan, &ideal, &outcome, timing);
    Run { checked, outcome, ideal, summary, room, served: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn a_split_run_gives_the_same_and_counts_the_cpu_time_of_all_its_threads() {
        let sets = ["workload.0.bytes=200kB".to_owned()];
        let of = |threads: usize| {
            let prepared = crate::load("quickstart", &sets).unwrap();
            let kind = window_on(NonZeroUsize::new(threads).unwrap(), &prepared.checked.plan);
            let stop = AtomicBool::new(false);
            execute(prepared, kind, &Progress::silent(&stop))
        };
        let (one, two) = (of(1), of(2));
        assert_eq!(two.summary.digest, one.summary.digest);
        assert_eq!((one.summary.timing.threads, two.summary.timing.threads), (1, 2));
        let checked = crate::load("quickstart", &sets).unwrap().checked;
        let stop = AtomicBool::new(false);
        let progress = Progress::silent(&stop);
        let mut watch = progress.watch(&checked.plan);
        let kind = Kind::Threads(NonZeroUsize::new(2).unwrap());
        sim::run(&checked.plan, &checked.schemes, &checked.nics, kind, &mut watch);
        assert!(watch.others_cpu_s() > 0.0, "the second thread's");
        let most = engine::groups(&checked.plan.fabric);
        assert_eq!(of(1000).summary.timing.threads, most, "no more than there are groups");
    }

    /// Ethereal splits each message into four subflows.
    #[test]
    fn results_speak_of_whole_messages_however_they_travel() {
        let run = |scheme: &str| {
            let sets = ["workload=[{permutation={bytes='400kB',kind='shift'}}]".to_owned()];
            let checked =
                crate::load("quickstart", &sets).unwrap().checked.with_scheme(None, scheme).unwrap();
            let stop = AtomicBool::new(false);
            execute(Prepared { checked, setup_s: 0.0 }, Kind::Window, &Progress::silent(&stop))
        };
        let (whole, split) = (run("ecmp"), run("ethereal"));
        assert_eq!((whole.checked.plan.messages.len(), split.checked.plan.messages.len()), (16, 64));
        let (a, b) = (&whole.summary.flows, &split.summary.flows);
        assert_eq!((a.count, a.finished, a.bytes), (b.count, b.finished, b.bytes));
        assert_eq!((b.count, b.bytes), (16, 16 * 400_000));
        let results = split.results(Vec::new());
        let (flows, subflows) = (results.table("flows").unwrap(), results.table("subflows").unwrap());
        assert_eq!((flows.rows(), subflows.rows()), (16, 64));
        assert!(whole.results(Vec::new()).table("subflows").is_none());
        let column = |table: &results::table::Table, name: &str| table.reals(name).unwrap().values().to_vec();
        for row in 0..16 {
            let flow = flows.counts("flow").unwrap().value(row);
            let mine = (0..64).filter(|&subflow| subflows.counts("flow").unwrap().value(subflow) == flow);
            let ends: Vec<f64> = mine.map(|subflow| column(subflows, "acked_us")[subflow]).collect();
            assert_eq!(ends.len(), 4);
            assert_eq!(column(flows, "acked_us")[row], ends.into_iter().fold(0.0, f64::max));
            assert!(column(flows, "slowdown")[row] >= 1.0, "the ideal is that of the whole message");
        }
    }
}
