//! The time of a job, and two jobs beside each other.

use crate::acceptance::case::{Case, Found, Part, Seen, Traffic, each, less};
use crate::seen::{completion, counts};
use crate::site::Site;
use crate::traffic::{jobs, names, ring};
use lab::Run;
use model::{HostId, Time};

/// Size of the collectives of A12, and the computation beside them: a quarter of BMWG's smallest, 256 MB and 10 ms.
const STEP: (u64, f64) = (64_000_000, 2_500.0);

/// The time of a job.
pub(crate) const A12: Case = Case {
    id: "a12",
    plan: "BMWG 5, job completion time",
    about: "a ring all-reduce of 64 MB between computations of 2.5 ms, a quarter of BMWG's least; the ideal has line rate and no \
            latency; 1.05 is excellent and 1.15 poor",
    metrics: &[less("unfinished", "messages").ours(0.0), less("jct-ratio", "").reference(1.15)],
    parts: |site| {
        let hosts = spread(site);
        let n = hosts.len() as f64;
        let line = site.payload(site.rate(hosts[0]), Time::from_us(1)) as f64;
        let ideal = STEP.0 as f64 * 2.0 * (n - 1.0) / n / line;
        let see = move |run: &Run| {
            let mut values = counts(run);
            if let Some(us) = completion(run, "ring") {
                values.insert("jct-ratio", (STEP.1 + us) / (STEP.1 + ideal));
            }
            Ok(values)
        };
        let sets = vec![jobs(&[ring("ring", &names(site, &hosts), STEP.0, "")])];
        Ok(vec![Part::Run(Traffic { label: format!("{n} ranks"), sets, see: Box::new(see) })])
    },
    rows: each,
};

/// Hosts of two leaves in turn, or those of the only one.
fn spread(site: &Site) -> Vec<HostId> {
    match site.two_leaves() {
        Ok((a, b)) => a.iter().chain(b).copied().collect(),
        Err(_) => site.leaf().to_vec(),
    }
}

/// Size of the collectives of A13. Our choice: some hundred microseconds.
const BESIDE: u64 = 4_000_000;
/// Seeds of each time: hashes place queue pairs on uplinks by the seed. Our choice.
const SEEDS: u64 = 10;
const ALONE: &str = "alone";

/// Two jobs that share uplinks.
pub(crate) const A13: Case = Case {
    id: "a13",
    plan: "BMWG 5.3, interference of jobs",
    about: "a ring all-reduce across two leaves, alone and beside another one of which 0 to 75 % of the steps cross them; means of 10 seeds",
    metrics: &[less("unfinished", "messages").ours(0.0), less("interference", "times alone")],
    parts: beside,
    rows: interference,
};

fn beside(site: &Site) -> Result<Vec<Part>, String> {
    let (a, b) = site.two_leaves()?;
    let half = a.len() / 2;
    if half < 2 {
        return Err("a leaf has fewer than four hosts".to_owned());
    }
    let half = half / 2 * 2;
    let first: Vec<HostId> = a[..half].iter().zip(&b[..half]).flat_map(|(a, b)| [*a, *b]).collect();
    let (left, right) = (&a[half..2 * half], &b[half..2 * half]);
    let one = ring("one", &names(site, &first), BESIDE, "");
    let part = |label: String, all: &[String]| {
        let of = |seed: u64| {
            let see = |run: &Run| {
                let mut values = counts(run);
                values.extend(completion(run, "one").map(|us| ("us", us)));
                Ok(values)
            };
            Part::Run(Traffic {
                label: label.clone(),
                sets: vec![jobs(all), format!("seed={seed}")],
                see: Box::new(see),
            })
        };
        (1..=SEEDS).map(of).collect::<Vec<_>>()
    };
    let mut parts = part(ALONE.to_owned(), std::slice::from_ref(&one));
    let inside = format!("{}, {}", names(site, left), names(site, right));
    parts.extend(part("0 % shared".to_owned(), &[one.clone(), ring("other", &inside, BESIDE, "")]));
    // Blocks of a leaf's hosts in turn: a ring of `2 x half` steps crosses the leaves twice for each block.
    for blocks in 1..half.min(4) {
        let cut = |hosts: &[HostId], i: usize| {
            hosts[i * hosts.len() / blocks..(i + 1) * hosts.len() / blocks].to_vec()
        };
        let order: Vec<HostId> = (0..blocks).flat_map(|i| [cut(left, i), cut(right, i)].concat()).collect();
        let label = format!("{:.0} % shared", 100.0 * blocks as f64 / half as f64);
        parts.extend(part(label, &[one.clone(), ring("other", &names(site, &order), BESIDE, "")]));
    }
    Ok(parts)
}

/// The mean time of all seeds beside the mean time alone, and what did not finish.
fn interference(all: &[Seen]) -> Vec<Found> {
    let mean = |seeds: &[Seen]| {
        let times: Option<Vec<f64>> = seeds.iter().map(|seen| seen.get("us")).collect();
        times.filter(|times| !times.is_empty()).map(|times| times.iter().sum::<f64>() / times.len() as f64)
    };
    let mut found = Vec::new();
    let mut alone = None;
    for seeds in all.chunk_by(|a, b| a.label == b.label) {
        let left = seeds.iter().filter_map(|seen| seen.get("unfinished")).reduce(|a, b| a + b);
        found.extend(left.map(|left| Found::of(&seeds[0], "unfinished", left)));
        match mean(seeds) {
            mean if seeds[0].label == ALONE => alone = mean,
            mean => found
                .extend(mean.zip(alone).map(|(us, alone)| Found::of(&seeds[0], "interference", us / alone))),
        }
    }
    found
}
