//! `ropewalk study faults`: what a month's failures cost a fabric, in GPU-hours and dead jobs.
//!
//! | file | content |
//! |---|---|
//! | [`kinds`] | kinds of faults with their rates and sources |
//! | `outcome` | what one fault of a kind does to a job, from a few runs |
//! | [`month`] | months drawn by a seed |
//! | [`mod@text`] | the answer as text |

pub mod kinds;
pub mod month;
mod outcome;
pub mod text;

pub use month::{Answer, Spread};
pub use text::text;

use crate::site::Site;
use lab::{Crew, Failure, Progress};
use model::Time;
use outcome::{Measured, Trial};

/// A question.
#[derive(Clone, Debug)]
pub struct Request {
    /// Path of a scenario, or name of a built-in one.
    pub site: String,
    /// `KEY=VALUE` changes of it.
    pub set: Vec<String>,
    /// Days of a month.
    pub days: f64,
    /// Months to draw.
    pub months: u64,
    /// Root of the draws.
    pub seed: u64,
    /// Time from a job's end until it has started again.
    pub restart: Time,
    /// Time between checkpoints; a dead job loses half of it.
    pub checkpoint: Time,
    /// Time until a part that is down has been replaced.
    pub repair: Time,
    /// Median of the time for which a flap takes a link down, and the standard deviation of its logarithm.
    pub flap: (Time, f64),
}

impl Default for Request {
    /// Assumed, because no operator has published them: 10 minutes, 30 minutes, 4 hours; flaps with a median of 1 s.
    fn default() -> Self {
        let seconds = |s: u64| Time(s * 1_000_000_000_000);
        Request {
            site: String::new(),
            set: Vec::new(),
            days: 30.0,
            months: 1_000,
            seed: 1,
            restart: seconds(600),
            checkpoint: seconds(1_800),
            repair: seconds(14_400),
            flap: (seconds(1), 1.5),
        }
    }
}

/// The runs of a study, ready to start.
pub struct Work {
    request: Request,
    site: Site,
    trials: Vec<Trial>,
}

impl Work {
    /// Lays out the runs.
    ///
    /// # Errors
    /// If the scenario is wrong, or the fabric has too few hosts.
    pub fn new(request: Request) -> Result<Self, Failure> {
        let site = Site::new(&request.site, &request.set)?;
        let trials =
            outcome::trials(&site).map_err(|why| Failure::Asked(format!("{}: {why}", request.site)))?;
        Ok(Work { request, site, trials })
    }

    /// Number of runs.
    pub fn runs(&self) -> usize {
        self.trials.len()
    }

    /// Runs one fault of each kind on the threads of `crew`, and draws the months.
    ///
    /// # Errors
    /// If a scenario is refused, the user interrupts it, or memory runs out.
    pub fn run(self, crew: Crew, progress: &Progress<'_>) -> Result<Answer, Failure> {
        let Work { request, site, trials } = self;
        let one = |trial: &Trial, _| -> Result<Measured, Failure> {
            Ok(Measured::of(&site.run(&trial.sets, progress)??, trial))
        };
        let measured: Result<Vec<Measured>, Failure> =
            crew.side_by_side(trials.iter().collect(), one)?.into_iter().collect();
        let outcomes = outcome::of(&trials, &measured?);
        Ok(month::draw(&request, &site, &outcomes))
    }
}
