//! What one fault does to a job: a ring all-reduce across two leaves, of whose kind and place all faults share the outcome.

use super::kinds::Kind;
use crate::seen::completion;
use crate::site::Site;
use crate::traffic::{jobs, names, quoted, ring};
use engine::outcome::Ending;
use lab::Run;
use model::{HostId, Time};

/// Buffer of the all-reduce. Our choice: some hundred microseconds.
const BYTES: u64 = 4_000_000;
/// Runs without a fault and of each degraded fabric: hashes place queue pairs by the seed. Our choice.
const SEEDS: u64 = 3;
/// Time for which a simulated flap takes the link down; that of a drawn flap is added in its place. Our choice.
const FLAP: Time = Time::from_us(5_000);
/// Loss of a gray link, as in docs/failures.md. Our choice.
const LOSS: f64 = 1e-3;

/// What a trial shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shows {
    /// The time without a fault.
    Whole,
    /// The time on the degraded fabric.
    Degraded(Kind),
    /// The start of a fault that lasts.
    Lasting(Kind),
    /// A short flap.
    Flap(Kind),
}

/// A run.
pub(super) struct Trial {
    shows: Shows,
    /// Start of the fault.
    at: Time,
    pub(super) sets: Vec<String>,
}

/// What a run showed.
pub(super) struct Measured {
    /// Time of the job, s; `None` if it did not end.
    seconds: Option<f64>,
    /// Time down that a queue pair just survives, s; `None` if it has no limit of retries.
    gave_up: Option<f64>,
}

impl Measured {
    pub(super) fn of(run: &Run, trial: &Trial) -> Self {
        let gave_up = match &run.outcome.ending {
            Ending::RetryExceeded(exceeded) => {
                Some(exceeded.at.as_secs() - trial.at.as_secs() - last_timer(run))
            }
            _ => None,
        };
        Measured { seconds: completion(run, "ring").map(|us| us / 1e6), gave_up }
    }
}

/// The last timer of a queue pair, s: a link that is back before it starts saves the job, and the error comes at its end.
fn last_timer(run: &Run) -> f64 {
    let nic = &run.checked.scenario.nic;
    let mut fewer = nic.clone();
    fewer.retries = nic.retries.and_then(|retries| retries.checked_sub(1));
    let all = nic.gives_up_after().map_or(0.0, |time| time.as_secs());
    all - fewer.gives_up_after().map_or(0.0, |time| time.as_secs())
}

/// What a fault of a kind does to the job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    pub(crate) kind: Kind,
    /// Time down beyond which the job is dead, s; infinite if it waits or goes on.
    pub(crate) patience: f64,
    /// Time that the job stands, s.
    pub(crate) stall: f64,
    /// True if it stands for as long as the part is down, besides.
    pub(crate) waits: bool,
    /// Time of the job on the degraded fabric over that on the whole one.
    pub(crate) slowdown: f64,
}

/// The runs on a site.
pub(super) fn trials(site: &Site) -> Result<Vec<Trial>, String> {
    let (a, b) = match site.two_leaves() {
        Ok((a, b)) => (a.to_vec(), b.to_vec()),
        Err(_) => (site.leaf().to_vec(), Vec::new()),
    };
    let hosts: Vec<HostId> = match b.len() {
        0 => a,
        _ => a.iter().zip(&b).flat_map(|(a, b)| [*a, *b]).collect(),
    };
    if hosts.len() < 2 {
        return Err("the fabric has fewer than two hosts that reach each other".to_owned());
    }
    let job = ring("ring", &names(site, &hosts), BYTES, "");
    let line = site.payload(site.rate(hosts[0]), Time::from_us(1)).max(1);
    let middle = Time::from_us(BYTES / line);
    let mut trials = Vec::new();
    let mut add = |shows: Shows, at: Time, seed: u64, failure: Option<String>| {
        let mut sets = vec![jobs(std::slice::from_ref(&job)), format!("seed={seed}")];
        sets.extend(failure.map(|failure| format!("failure=[{{ {failure}, at = \"{at}\" }}]")));
        trials.push(Trial { shows, at, sets });
    };
    for seed in 1..=SEEDS {
        add(Shows::Whole, Time::ZERO, seed, None);
    }
    let fabric = &site.plan.fabric;
    let link = |from, to| {
        format!("links = [[{}, {}]], random = 1", quoted(fabric.name(from)), quoted(fabric.name(to)))
    };
    let nic = fabric.uplink(hosts[0]);
    let nic = link(nic.from, nic.to);
    add(Shows::Lasting(Kind::NicLink), middle, 1, Some(nic.clone()));
    let until = Time(middle.ps() + FLAP.ps());
    add(Shows::Flap(Kind::NicFlap), middle, 1, Some(format!("{nic}, until = \"{until}\"")));
    let leaf = fabric.attachment(hosts[0]);
    add(Shows::Lasting(Kind::Leaf), middle, 1, Some(format!("switch = {}", quoted(fabric.name(leaf)))));
    if let Some((_, up)) = site.uplinks().first().filter(|_| site.two_leaves().is_ok()) {
        let cable = link(up.from, up.to);
        let spine = format!("switch = {}", quoted(fabric.name(up.to)));
        for (kind, failure) in [(Kind::FabricFlap, &cable), (Kind::Spine, &spine)] {
            add(Shows::Lasting(kind), middle, 1, Some(failure.clone()));
            for seed in 1..=SEEDS {
                add(Shows::Degraded(kind), Time::ZERO, seed, Some(failure.clone()));
            }
        }
        for seed in 1..=SEEDS {
            add(Shows::Degraded(Kind::Gray), Time::ZERO, seed, Some(format!("{cable}, loss = {LOSS}")));
        }
    }
    Ok(trials)
}

/// The outcome of each kind that the fabric can have.
pub(super) fn of(trials: &[Trial], measured: &[Measured]) -> Vec<Outcome> {
    let all: Vec<(&Trial, &Measured)> = trials.iter().zip(measured).collect();
    let find =
        |shows: Shows| all.iter().find(|(trial, _)| trial.shows == shows).map(|(_, measured)| *measured);
    let mean = |shows: Shows| {
        let of = all.iter().filter(|(trial, _)| trial.shows == shows);
        let times: Option<Vec<f64>> = of.map(|(_, measured)| measured.seconds).collect();
        times.filter(|times| !times.is_empty()).map(|times| times.iter().sum::<f64>() / times.len() as f64)
    };
    let Some(whole) = mean(Shows::Whole) else { return Vec::new() };
    let first = find(Shows::Whole).and_then(|measured| measured.seconds).unwrap_or(whole);
    let mut outcomes = Vec::new();
    let flap = find(Shows::Flap(Kind::NicFlap)).and_then(|measured| measured.seconds);
    // Senders that wait for a link go on some time after its return.
    let after = flap.map_or(0.0, |seconds| (seconds - first - FLAP.as_secs()).max(0.0));
    for kind in [Kind::NicLink, Kind::NicFlap, Kind::Leaf] {
        let lasting = match kind {
            Kind::Leaf => find(Shows::Lasting(kind)),
            _ => find(Shows::Lasting(Kind::NicLink)),
        };
        let Some(lasting) = lasting else { continue };
        outcomes.push(match lasting.seconds {
            // Other ports carry the job on.
            Some(seconds) => Outcome {
                kind,
                patience: f64::INFINITY,
                stall: (seconds - first).max(0.0),
                waits: false,
                slowdown: (seconds / first).max(1.0),
            },
            None => {
                let patience = lasting.gave_up.unwrap_or(f64::INFINITY);
                Outcome { kind, patience, stall: after, waits: true, slowdown: 1.0 }
            }
        });
    }
    for kind in [Kind::FabricFlap, Kind::Gray, Kind::Spine] {
        let Some(degraded) = all
            .iter()
            .any(|(trial, _)| trial.shows == Shows::Degraded(kind))
            .then(|| mean(Shows::Degraded(kind)))
        else {
            continue;
        };
        let lasting = find(Shows::Lasting(kind));
        let patience = lasting.map_or(f64::INFINITY, |lasting| match lasting.seconds {
            Some(_) => f64::INFINITY,
            None => lasting.gave_up.unwrap_or(f64::INFINITY),
        });
        let stall =
            lasting.and_then(|lasting| lasting.seconds).map_or(0.0, |seconds| (seconds - first).max(0.0));
        let waits = degraded.is_none() || lasting.is_some_and(|lasting| lasting.seconds.is_none());
        let slowdown = degraded.map_or(1.0, |seconds| (seconds / whole).max(1.0));
        outcomes.push(Outcome { kind, patience, stall, waits, slowdown });
    }
    outcomes
}
