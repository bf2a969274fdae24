//! A farm of random trials, each of which must keep every rule.
//!
//! | trial | what happens | rules |
//! |---|---|---|
//! | scenario ([`trial`]) | a random scenario runs on both engines, with whole and half windows and on several threads | equal outcomes, recording changes nothing, books, closed forms, patience; tables and explanations can be made |
//! | text (`damage`) | a scenario with mistakes is checked | an error names its line; nothing panics |
//! | import (`imports`) | files of other tools with mistakes are imported | an error names its line; an imported scenario runs |
//! | command (`program`) | the program is interrupted, short of memory, or reads damaged results | exit codes; nothing left behind; damage is named |
//! | attack (`attack`) | strange outputs, times, names, captures, wrappings and sizes | exit codes; no control characters; an output stays what it is |
//!
//! Scenarios are drawn from the JSON Schema of scenarios (`values`), so new parts and keys take part at once. A trial depends
//! on the seed and its number only. A scenario that breaks a rule is made as small as possible (`shrink`).

mod attack;
mod damage;
mod draft;
mod draws;
mod graph;
mod imports;
pub mod panics;
mod program;
mod servers;
mod shrink;
mod tally;
pub mod trial;
mod values;

use crate::draft::{Drafter, Refusal};
use crate::draws::Draws;
use crate::program::Program;
use crate::trial::{Fault, Verdict};
use lab::clock::Stopwatch;
use scenario::{Source, builtin};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, sleep};
use std::time::Duration;

pub use tally::{Broken, Tally};

/// Seconds within which a trial must end.
const LONGEST_S: f64 = 300.0;

/// The trials to make.
#[derive(Clone, Debug)]
pub struct Farm {
    /// Root of all draws.
    pub seed: u64,
    /// Numbers of the trials.
    pub trials: Range<u64>,
    /// Seconds after which no trial begins.
    pub seconds: f64,
    /// Trials at the same time.
    pub threads: usize,
    /// The program for trials of commands; `None` leaves them out.
    pub program: Option<PathBuf>,
    /// Whether all trials are of commands.
    pub commands: bool,
}

/// State that the threads of a farm share.
struct Shared {
    farm: Farm,
    drafter: Drafter,
    next: AtomicU64,
    tally: Mutex<Tally>,
    since: Stopwatch,
    /// The trial of each thread, and the second at which it began.
    running: Mutex<Vec<Option<(u64, f64)>>>,
    stop: &'static AtomicBool,
}

impl Farm {
    /// Makes the trials, until `stop` is set. Calls `show` every few seconds.
    pub fn run(self, stop: &'static AtomicBool, show: &mut dyn FnMut(&Tally)) -> Tally {
        let threads = self.threads.max(1);
        let shared = Arc::new(Shared {
            next: AtomicU64::new(self.trials.start),
            farm: self,
            drafter: Drafter::new(),
            tally: Mutex::default(),
            since: Stopwatch::start(),
            running: Mutex::new(vec![None; threads]),
            stop,
        });
        let crew: Vec<_> = (0..threads)
            .map(|me| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || shared.work(me))
            })
            .collect();
        let mut shown = 0.0;
        while !crew.iter().all(thread::JoinHandle::is_finished) {
            sleep(Duration::from_millis(50));
            let now = shared.since.wall_s();
            if now - shown > 10.0 {
                shown = now;
                show(&shared.tally());
            }
            let late = |(trial, begun): &(u64, f64)| (now - begun > LONGEST_S).then_some(*trial);
            let hanging = lock(&shared.running).iter().flatten().find_map(late);
            if let Some(trial) = hanging {
                // The thread cannot be stopped, so the farm ends without it.
                let fault = Fault::new("every trial ends", format!("{LONGEST_S} s were too short"));
                shared.broken(fault, trial, String::new(), false);
                return shared.tally();
            }
        }
        shared.tally()
    }

    /// The scenario of a trial; `None` if the trial is of another kind.
    pub fn scenario(seed: u64, number: u64) -> Option<String> {
        let mut draws = Draws::new(seed, number);
        match Subject::draw(&mut draws) {
            Subject::Scenario => Some(Drafter::new().draw(&mut draws).accepted?.0.text()),
            _ => None,
        }
    }
}

/// The subject of a trial.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Subject {
    Scenario,
    Text,
    Import,
    Command,
}

impl Subject {
    /// Nine of ten trials are scenarios. Commands take a thousand times as long, so there are few.
    fn draw(draws: &mut Draws) -> Self {
        match draws.below(2000) {
            0..=2 => Subject::Command,
            3..=60 => Subject::Import,
            61..=199 => Subject::Text,
            _ => Subject::Scenario,
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn tally(&self) -> Tally {
        lock(&self.tally).clone()
    }

    fn work(&self, me: usize) {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let over = self.stop.load(Ordering::Relaxed) || self.since.wall_s() > self.farm.seconds;
            if over || number >= self.farm.trials.end {
                return;
            }
            lock(&self.running)[me] = Some((number, self.since.wall_s()));
            self.trial(number);
            lock(&self.running)[me] = None;
        }
    }

    fn trial(&self, number: u64) {
        let mut draws = Draws::new(self.farm.seed, number);
        let subject = Subject::draw(&mut draws);
        match if self.farm.commands { Subject::Command } else { subject } {
            Subject::Scenario => self.scenario(&mut draws, number),
            Subject::Text => self.text(&mut draws, number),
            Subject::Import => {
                let mut steps = String::new();
                let verdict = panics::caught(|| {
                    let (text, verdict) = imports::of(&mut draws);
                    steps = text;
                    verdict
                });
                lock(&self.tally).imports += 1;
                self.note(verdict, number, |_| (steps, false));
            }
            Subject::Command => self.command(&mut draws, number),
        }
    }

    fn scenario(&self, draws: &mut Draws, number: u64) {
        let drawn = self.drafter.draw(draws);
        lock(&self.tally).refused += drawn.refused.len() as u64;
        for Refusal { draft, verdict, .. } in drawn.refused {
            self.note(verdict, number, |rule| (shrink::draft(&draft, rule).text(), true));
        }
        let Some((draft, checked)) = drawn.accepted else { return };
        let verdict = trial::of_checked(&Source::new("farm.toml", draft.text()), &checked);
        match &verdict {
            Verdict::TooLong => lock(&self.tally).too_long += 1,
            Verdict::Passed(events) => lock(&self.tally).ran(&draft, events),
            Verdict::Failed(_) | Verdict::Refused => lock(&self.tally).ran(&draft, &[]),
        }
        self.note(verdict, number, |rule| (shrink::draft(&draft, rule).text(), true));
    }

    fn text(&self, draws: &mut Draws, number: u64) {
        let text = match draws.chance(0.5) {
            true => draws.pick(builtin::ALL).text.to_owned(),
            false => self.drafter.draw(draws).accepted.map(|(draft, _)| draft.text()).unwrap_or_default(),
        };
        let text = damage::spoilt(draws, &text);
        let verdict = panics::caught(|| match scenario::check(&Source::new("farm.toml", &*text), &[]) {
            Err(error) => trial::refused(&error),
            Ok(_) => Verdict::Passed(Vec::new()),
        });
        lock(&self.tally).damaged += 1;
        self.note(verdict, number, |rule| (shrink::text(&text, rule), true));
    }

    fn command(&self, draws: &mut Draws, number: u64) {
        let Some(path) = &self.farm.program else { return };
        let Ok(folder) = tempfile::tempdir() else { return };
        let program = Program { path, folder: folder.path().to_owned() };
        let (steps, verdict) = program.trial(&self.drafter, draws);
        lock(&self.tally).commands += 1;
        self.note(verdict, number, |_| (steps, false));
    }

    /// Notes a fault; only the first fault against a rule needs a small example.
    fn note(&self, verdict: Verdict, trial: u64, example: impl FnOnce(&str) -> (String, bool)) {
        let Verdict::Failed(fault) = verdict else { return };
        if let Some(known) = lock(&self.tally).known(&fault) {
            known.times += 1;
            return;
        }
        let (text, is_scenario) = example(&fault.rule);
        self.broken(fault, trial, text, is_scenario);
    }

    fn broken(&self, fault: Fault, trial: u64, text: String, is_scenario: bool) {
        let Fault { rule, detail } = fault;
        lock(&self.tally).broken.push(Broken { rule, detail, trial, times: 1, text, is_scenario });
    }
}
