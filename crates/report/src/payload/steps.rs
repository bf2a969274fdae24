//! What the GPUs of a job did over time: computation, waits and communication under way.

use super::super::frame::Frame;
use super::config;
use results::Results;
use results::tables::steps::KINDS;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Most GPUs with a row of their own; with more, blocks of GPUs share rows. Our choice: rows that a screen can show.
const SINGLE: usize = 32;
/// Most blocks of GPUs. Our choice.
const BLOCKS: usize = 16;
/// Most jobs. Our choice.
const JOBS: usize = 4;
/// Fewest parts of the time in a row. Our choice.
const FEWEST_PARTS: usize = 50;
/// Shares are whole numbers from 0 to this number, one character each. A page cannot show smaller parts of a row.
const WHOLE: f64 = 60.0;
/// Characters of a track for each number of another section: a number takes about four characters.
const CHARACTERS: usize = 4;

/// The jobs with GPUs of a run.
#[derive(Debug, Serialize)]
pub(super) struct Steps {
    jobs: Vec<Job>,
    /// Number of jobs that are not shown.
    left_out: usize,
}

/// A job.
#[derive(Debug, Serialize)]
struct Job {
    name: String,
    start_us: f64,
    end_us: f64,
    /// Ends of its steps.
    steps: Vec<f64>,
    /// Number of GPUs.
    ranks: usize,
    /// GPUs in a block; 1 if each has a row of its own.
    block: usize,
    /// Name of the time without computation and without communication under way: only a pipeline has a bubble.
    rest: &'static str,
    /// Parts of the time in a row.
    parts: usize,
    rows: Vec<Row>,
}

/// A GPU, or the mean of a block of GPUs.
#[derive(Debug, Serialize)]
struct Row {
    name: String,
    /// First and last GPU.
    ranks: (u64, u64),
    /// Share of the time that is spent on computation, exposed communication and the rest, by name.
    shares: Vec<(String, f64)>,
    /// End of the last task.
    last_us: f64,
    /// Shares by part: `compute`, `exposed KIND`, `under way KIND`. Each character is a number of sixtieths, from `0` on.
    tracks: BTreeMap<String, String>,
}

/// The numbers of one GPU.
#[derive(Clone, Debug, Default)]
struct Gpu {
    /// Times by part, by track, us.
    tracks: BTreeMap<String, Vec<f64>>,
    last_us: f64,
}

impl Gpu {
    fn total(&self, what: impl Fn(&str) -> bool) -> f64 {
        self.tracks.iter().filter(|(name, _)| what(name)).flat_map(|(_, times)| times).sum()
    }

    fn exposed(&self) -> f64 {
        self.total(|name| name.starts_with("exposed"))
    }

    fn compute(&self) -> f64 {
        self.total(|name| name == "compute")
    }

    /// Time without computation or exposed communication of `all`.
    fn rest(&self, all: f64) -> f64 {
        (all - self.compute() - self.exposed()).max(0.0)
    }
}

/// The timelines of a run, of at most about `cells` numbers.
pub(super) fn of(run: &Results, cells: usize) -> Option<Steps> {
    let table = Frame::new(run.table("timeline")?);
    let names = table.texts("job");
    let mut jobs: Vec<&str> = names.clone();
    jobs.dedup();
    let unique: BTreeSet<&str> = jobs.iter().copied().collect();
    let left_out = unique.len().saturating_sub(JOBS);
    let shown: Vec<&str> = unique.into_iter().take(JOBS).collect();
    let each = cells / shown.len().max(1);
    let jobs: Vec<Job> = shown.into_iter().filter_map(|name| job(run, table, name, each)).collect();
    (!jobs.is_empty()).then_some(Steps { jobs, left_out })
}

fn job(run: &Results, table: Frame<'_>, name: &str, cells: usize) -> Option<Job> {
    let (jobs, ranks, part) = (table.texts("job"), table.counts("rank"), table.counts("part"));
    let (starts, ends) = (table.reals("start_us"), table.reals("end_us"));
    let rows: Vec<usize> = (0..table.rows()).filter(|&row| jobs[row] == name).collect();
    let recorded = rows.iter().map(|&row| part[row] as usize + 1).max()?;
    let (start_us, end_us) = (starts[*rows.first()?], ends[*rows.last()?]);
    let mut gpus: BTreeMap<u64, Gpu> = BTreeMap::new();
    let columns: Vec<(String, Vec<f64>)> = tracks()
        .map(|(track, column)| (track, table.reals(&column)))
        .filter(|(_, times)| rows.iter().any(|&row| times[row] > 0.0))
        .collect();
    for (track, times) in &columns {
        for &row in &rows {
            let gpu = gpus.entry(ranks[row]).or_default();
            let mine = gpu.tracks.entry(track.clone()).or_insert_with(|| vec![0.0; recorded]);
            mine[part[row] as usize] = times[row];
        }
    }
    let steps = ends_of_steps(run, name, &mut gpus);
    let block = if gpus.len() <= SINGLE { 1 } else { gpus.len().div_ceil(BLOCKS).next_power_of_two() };
    let all = end_us - start_us;
    let pipeline = columns.iter().any(|(track, _)| track.ends_with(" pp"));
    let rest = if pipeline { "bubble" } else { "idle" };
    let mut chosen = special(&gpus, all, block, rest);
    chosen.extend(blocks(&gpus, block, &stages(run, name, gpus.len())));
    let most = cells * CHARACTERS / (chosen.len() * columns.len()).max(1);
    let merged = recorded.div_ceil(most.max(FEWEST_PARTS));
    let rows =
        chosen.into_iter().map(|(name, ranks, gpu)| row(name, ranks, &gpu, rest, (all, recorded, merged)));
    Some(Job {
        name: name.to_owned(),
        start_us,
        end_us,
        steps,
        ranks: gpus.len(),
        block,
        rest,
        parts: recorded.div_ceil(merged),
        rows: rows.collect(),
    })
}

/// Tracks with their columns in `timeline.parquet`.
fn tracks() -> impl Iterator<Item = (String, String)> {
    let of = |what: &'static str, column: &'static str| {
        KINDS.iter().map(move |kind| (format!("{what} {kind}"), format!("{column}_{kind}_us")))
    };
    std::iter::once(("compute".to_owned(), "compute_us".to_owned()))
        .chain(of("exposed", "exposed"))
        .chain(of("under way", "under_way"))
}

/// Ends of the steps of a job. Sets the end of the last task of each GPU.
fn ends_of_steps(run: &Results, job: &str, gpus: &mut BTreeMap<u64, Gpu>) -> Vec<f64> {
    let Some(table) = run.table("steps").map(Frame::new) else { return Vec::new() };
    let (jobs, ranks, steps) = (table.texts("job"), table.counts("rank"), table.counts("step"));
    let (ends, last) = (table.reals("end_us"), table.reals("last_us"));
    let mut of_steps: BTreeMap<u64, f64> = BTreeMap::new();
    for row in (0..table.rows()).filter(|&row| jobs[row] == job) {
        of_steps.insert(steps[row], ends[row]);
        if let Some(gpu) = gpus.get_mut(&ranks[row]) {
            gpu.last_us = gpu.last_us.max(last[row]);
        }
    }
    of_steps.into_values().collect()
}

/// Number of GPUs of a pipeline's stage, from the configuration; `None` without a pipeline.
fn stages(run: &Results, job: &str, ranks: usize) -> Option<usize> {
    let config = config::flat(super::text(&run.manifest, "/config"));
    let of = |i: usize, key: &str| config.get(&format!("workload.{i}.{key}"));
    let named = |i: &usize| of(*i, "name").is_some_and(|name| name.trim_matches('"') == job);
    let entry = (0..).take_while(|&i| config.keys().any(|key| key.starts_with(&format!("workload.{i}."))));
    let stages: usize = of(entry.into_iter().find(named)?, "training.parallel.pp")?.parse().ok()?;
    (stages > 1 && ranks.is_multiple_of(stages)).then(|| ranks / stages)
}

/// A row before it is written: its name, its first and last GPU, and its numbers.
type Chosen = (String, (u64, u64), Gpu);

/// GPUs with a row of their own beside the blocks: the extremes, and the GPU nearest to the mean.
fn special(gpus: &BTreeMap<u64, Gpu>, all: f64, block: usize, rest: &str) -> Vec<Chosen> {
    if block == 1 {
        return Vec::new();
    }
    let of = |measure: &dyn Fn(&Gpu) -> f64| {
        // The first of equal GPUs wins. Where the most is nothing, no GPU stands out.
        let most = gpus.iter().rev().max_by(|a, b| measure(a.1).total_cmp(&measure(b.1)));
        most.filter(|(_, gpu)| measure(gpu) != 0.0).map(|(rank, _)| *rank)
    };
    let n = gpus.len() as f64;
    let mean = |measure: &dyn Fn(&Gpu) -> f64| gpus.values().map(measure).sum::<f64>() / n;
    let (compute, exposed) = (mean(&Gpu::compute), mean(&Gpu::exposed));
    let far = |gpu: &Gpu| (gpu.compute() - compute).abs() + (gpu.exposed() - exposed).abs();
    let longest = if rest == "bubble" { "longest bubble" } else { "longest idle" };
    let extremes = [
        ("ends last", of(&|gpu| gpu.last_us)),
        ("waits most", of(&Gpu::exposed)),
        (longest, of(&|gpu| gpu.rest(all))),
        ("computes most", of(&Gpu::compute)),
        ("nearest to the mean", of(&|gpu| 1.0 / (1.0 + far(gpu)))),
    ];
    let mut chosen: Vec<(Vec<&str>, u64)> = Vec::new();
    for (why, rank) in extremes {
        let Some(rank) = rank else { continue };
        match chosen.iter_mut().find(|(_, known)| *known == rank) {
            Some((reasons, _)) => reasons.push(why),
            None => chosen.push((vec![why], rank)),
        }
    }
    let row = |(why, rank): (Vec<&str>, u64)| {
        (format!("{rank}: {}", why.join(", ")), (rank, rank), gpus[&rank].clone())
    };
    chosen.into_iter().map(row).collect()
}

/// Each GPU, or means of blocks of consecutive GPUs.
fn blocks(gpus: &BTreeMap<u64, Gpu>, block: usize, stage: &Option<usize>) -> Vec<Chosen> {
    let all: Vec<(&u64, &Gpu)> = gpus.iter().collect();
    let mut chosen = Vec::new();
    for (number, members) in all.chunks(block).enumerate() {
        let (Some(first), Some(last)) = (members.first(), members.last()) else { continue };
        let place = number * block;
        // A block within one stage carries the number of the stage.
        let stage = stage.filter(|stage| place / stage == (place + members.len() - 1) / stage);
        let stage = stage.map_or_else(String::new, |stage| format!(", stage {}", place / stage));
        let name = if block == 1 {
            format!("{}{stage}", first.0)
        } else {
            format!("{}–{}{stage}", first.0, last.0)
        };
        chosen.push((name, (*first.0, *last.0), mean(members)));
    }
    chosen
}

fn mean(members: &[(&u64, &Gpu)]) -> Gpu {
    let mut all = Gpu::default();
    let n = members.len() as f64;
    for (_, gpu) in members {
        all.last_us = all.last_us.max(gpu.last_us);
        for (track, times) in &gpu.tracks {
            let sums = all.tracks.entry(track.clone()).or_insert_with(|| vec![0.0; times.len()]);
            sums.iter_mut().zip(times).for_each(|(sum, time)| *sum += time / n);
        }
    }
    all
}

/// A row of parts that each merge `merged` of the `recorded` parts of the time `all`.
fn row(
    name: String,
    ranks: (u64, u64),
    gpu: &Gpu,
    rest: &str,
    (all, recorded, merged): (f64, usize, usize),
) -> Row {
    let part_us = all / recorded as f64;
    let character = |parts: &[f64]| {
        let share = parts.iter().sum::<f64>() / (part_us * parts.len() as f64).max(f64::MIN_POSITIVE);
        let sixtieths = (share * WHOLE).round().clamp(0.0, WHOLE) as u8;
        // The 61 characters from `0` on have no quotation mark; the backslash takes two bytes in JSON.
        char::from(b'0' + sixtieths)
    };
    let mut shares: Vec<(String, f64)> = gpu
        .tracks
        .iter()
        .filter(|(track, _)| !track.starts_with("under way"))
        .map(|(track, times)| (track.clone(), times.iter().sum::<f64>() / all.max(f64::MIN_POSITIVE)))
        .collect();
    shares.push((rest.into(), gpu.rest(all) / all.max(f64::MIN_POSITIVE)));
    let tracks = gpu
        .tracks
        .iter()
        .map(|(track, times)| (track.clone(), times.chunks(merged).map(character).collect()));
    Row { name, ranks, shares, last_us: gpu.last_us, tracks: tracks.collect() }
}
