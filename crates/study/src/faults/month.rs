//! Months drawn by a seed, and what their faults cost.

use super::Request;
use super::kinds::{Kind, RATES, parts};
use super::outcome::Outcome;
use crate::site::Site;
use model::draw::{Key, Purpose};
use scenario::rounded::{exponential, log_normal};
use serde::Serialize;

/// Mean and 5th and 95th percentile over the months.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Spread {
    /// Mean.
    pub mean: f64,
    /// 5th percentile.
    pub p5: f64,
    /// 95th percentile.
    pub p95: f64,
}

impl Spread {
    fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let n = values.len().max(1);
        let at = |share: f64| {
            values.get(((share * n as f64).ceil() as usize).clamp(1, n) - 1).copied().unwrap_or(0.0)
        };
        Spread { mean: values.iter().sum::<f64>() / n as f64, p5: at(0.05), p95: at(0.95) }
    }
}

/// The cost of a kind of fault.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Name of the kind.
    pub fault: &'static str,
    /// Parts that may have it.
    pub parts: usize,
    /// Faults of a part per day.
    pub per_day: f64,
    /// Source of the rate.
    pub source: &'static str,
    /// Faults in a month.
    pub faults: Spread,
    /// What one does to the job.
    pub outcome: String,
    /// Time of the job on the degraded fabric over that on the whole one.
    pub slowdown: f64,
    /// Time down beyond which the job is dead, s; null if none is.
    pub patience_s: Option<f64>,
    /// Dead jobs in a month.
    pub dead_jobs: Spread,
    /// GPU-hours in a month.
    pub gpu_hours: Spread,
}

/// Times that are assumed unless the user sets them, s.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Assumed {
    /// From a job's end until it has started again.
    pub restart_s: f64,
    /// Between checkpoints; a dead job loses half of it.
    pub checkpoint_s: f64,
    /// Until a part that is down has been replaced.
    pub repair_s: f64,
    /// Median of the time for which a flap takes a link down.
    pub flap_s: f64,
    /// Standard deviation of the logarithm of that time.
    pub flap_sigma: f64,
}

/// The answer.
#[derive(Clone, Debug, Serialize)]
pub struct Answer {
    /// The scenario.
    pub site: String,
    /// GPUs of the job, which is on all of them.
    pub gpus: usize,
    /// Days of a month.
    pub days: f64,
    /// Months drawn.
    pub months: u64,
    /// Seed of the draws.
    pub seed: u64,
    /// All faults together.
    pub gpu_hours: Spread,
    /// Share of the month's GPU-hours, %.
    pub share_percent: f64,
    /// Dead jobs in a month.
    pub dead_jobs: Spread,
    /// Flaps of NIC links that last longer than all retries, %.
    pub long_flaps_percent: f64,
    /// Time after which a sender gives up, s; null without a limit of retries.
    pub gives_up_s: Option<f64>,
    /// What decides the costs and is published nowhere.
    pub assumed: Assumed,
    /// By kind.
    pub rows: Vec<Row>,
    /// Kinds that the fabric cannot have.
    pub left_out: Vec<&'static str>,
}

/// Draws in one month.
struct Draws {
    key: Key,
    next: u64,
}

impl Draws {
    fn draw(&mut self) -> u64 {
        self.next += 1;
        self.key.draw(self.next)
    }

    /// A number of events with this mean: those whose gaps, exponential with mean 1, add up to less.
    fn events(&mut self, mean: f64) -> u64 {
        let mut at = exponential(self.draw());
        let mut events = 0;
        while at < mean {
            events += 1;
            at += exponential(self.draw());
        }
        events
    }

    /// A log-normal number with this median.
    fn log_normal(&mut self, median: f64, sigma: f64) -> f64 {
        let key = Key::new(self.draw(), Purpose::Flap, 0);
        median * log_normal(sigma, |ordinal| key.draw(ordinal))
    }
}

/// Draws the months.
pub(super) fn draw(request: &Request, site: &Site, outcomes: &[Outcome]) -> Answer {
    let gpus = site.gpus();
    let hours = |seconds: f64| seconds / 3_600.0;
    let dead_s = request.restart.as_secs() + request.checkpoint.as_secs() / 2.0;
    let months = request.months.max(1);
    let (mut totals, mut deaths) = (vec![0.0; months as usize], vec![0.0; months as usize]);
    let (mut flaps, mut long) = (0u64, 0u64);
    let mut rows = Vec::new();
    let mut left_out = Vec::new();
    for (number, rate) in RATES.iter().enumerate() {
        let Some(outcome) = outcomes.iter().find(|outcome| outcome.kind == rate.kind) else {
            left_out.push(rate.name);
            continue;
        };
        let parts = parts(site, rate.kind);
        let mean = rate.per_day * parts as f64 * request.days;
        let is_flap = matches!(rate.kind, Kind::NicFlap | Kind::FabricFlap);
        let (mut faults, mut dead, mut cost) = (Vec::new(), Vec::new(), Vec::new());
        for month in 0..months {
            let key = Key::new(request.seed, Purpose::Flap, month << 8 | number as u64);
            let mut draws = Draws { key, next: 0 };
            let count = draws.events(mean);
            let (mut lost, mut ended) = (0.0, 0.0);
            for _ in 0..count {
                let down = match is_flap {
                    true => draws.log_normal(request.flap.0.as_secs(), request.flap.1),
                    false => request.repair.as_secs(),
                };
                let dies = down > outcome.patience;
                if rate.kind == Kind::NicFlap {
                    flaps += 1;
                    long += u64::from(dies);
                }
                ended += f64::from(u8::from(dies));
                let waits = if outcome.waits { down } else { 0.0 };
                // The part of the time by which a job on the degraded fabric is late.
                let late = down * (1.0 - 1.0 / outcome.slowdown);
                lost += if dies { dead_s } else { outcome.stall + waits + late };
            }
            totals[month as usize] += hours(lost) * gpus as f64;
            deaths[month as usize] += ended;
            faults.push(count as f64);
            dead.push(ended);
            cost.push(hours(lost) * gpus as f64);
        }
        rows.push(Row {
            fault: rate.name,
            parts,
            per_day: rate.per_day,
            source: rate.source,
            faults: Spread::of(faults),
            outcome: words(outcome),
            slowdown: outcome.slowdown,
            patience_s: Some(outcome.patience).filter(|patience| patience.is_finite()),
            dead_jobs: Spread::of(dead),
            gpu_hours: Spread::of(cost),
        });
    }
    let gpu_hours = Spread::of(totals);
    Answer {
        site: site.name.clone(),
        gpus,
        days: request.days,
        months,
        seed: request.seed,
        share_percent: 100.0 * gpu_hours.mean / (gpus as f64 * request.days * 24.0).max(f64::MIN_POSITIVE),
        gpu_hours,
        dead_jobs: Spread::of(deaths),
        long_flaps_percent: 100.0 * long as f64 / flaps.max(1) as f64,
        gives_up_s: site.scenario.nic.gives_up_after().map(|time| time.as_secs()),
        assumed: Assumed {
            restart_s: request.restart.as_secs(),
            checkpoint_s: request.checkpoint.as_secs(),
            repair_s: request.repair.as_secs(),
            flap_s: request.flap.0.as_secs(),
            flap_sigma: request.flap.1,
        },
        rows,
        left_out,
    }
}

/// An outcome in words.
fn words(outcome: &Outcome) -> String {
    let number = results::text::number;
    if outcome.patience.is_finite() {
        return format!("dead after {} s", number(outcome.patience));
    }
    match (outcome.waits, outcome.slowdown > 1.005) {
        (true, _) => "waits".to_owned(),
        (false, true) => format!("{} times as slow", number(outcome.slowdown)),
        (false, false) => "goes on".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_the_moments_of_their_laws() {
        let mut draws = Draws { key: Key::new(1, Purpose::Flap, 0), next: 0 };
        for mean in [0.02, 3.0, 250.0] {
            let n = 4_000;
            let events: Vec<f64> = (0..n).map(|_| draws.events(mean) as f64).collect();
            let average = events.iter().sum::<f64>() / f64::from(n);
            assert!((average - mean).abs() < 4.0 * (mean / f64::from(n)).sqrt(), "{average} of {mean}");
        }
        let mut times: Vec<f64> = (0..4_001).map(|_| draws.log_normal(2.0, 1.5)).collect();
        times.sort_by(f64::total_cmp);
        assert!((times[2_000] / 2.0 - 1.0).abs() < 0.1, "median {}", times[2_000]);
        // One standard deviation above the median is the 84th percentile.
        assert!((times[3_365] / (2.0 * 1.5f64.exp()) - 1.0).abs() < 0.15, "{}", times[3_365]);
    }
}
