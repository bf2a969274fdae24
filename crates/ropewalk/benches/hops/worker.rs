//! One run in its own process, so that its memory can be measured. The process prints a line of JSON.

use crate::workloads::{Fast, Length, Workload};
use engine::Kind;
use lab::clock::{Stopwatch, peak_rss_mb};
use lab::{Prepared, Progress};
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;
use std::process::Command;
use std::sync::atomic::AtomicBool;

/// Figures of one run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Sample {
    /// Hosts of the fabric.
    pub(crate) hosts: usize,
    /// Link crossings.
    pub(crate) hops: u64,
    /// CPU seconds in the engine.
    pub(crate) cpu_s: f64,
    /// Wall seconds in the engine.
    pub(crate) wall_s: f64,
    /// CPU seconds of the set-up.
    pub(crate) setup_cpu_s: f64,
    /// Wall seconds of the set-up.
    pub(crate) setup_wall_s: f64,
    /// Most memory held, bytes.
    pub(crate) peak_bytes: f64,
    /// True if every packet arrived.
    pub(crate) complete: bool,
    /// Digest of the outcome.
    pub(crate) digest: String,
}

/// Runs the workload in this process; without a workload the process is bare.
pub(crate) fn run(
    workload: Option<&Workload>,
    length: Length,
    threads: NonZeroUsize,
) -> Result<Sample, String> {
    let Some(workload) = workload else {
        return Ok(Sample { peak_bytes: peak_rss_mb() * 1e6, ..Sample::default() });
    };
    let watch = Stopwatch::start();
    let prepared = Prepared::by(|| workload.checked(length)).map_err(|e| format!("{e:?}"))?;
    let (read_wall_s, read_cpu_s) = (watch.wall_s(), prepared.setup_s);
    let kind = match threads {
        NonZeroUsize::MIN => Kind::Window,
        threads => Kind::Threads(threads),
    };
    let stop = AtomicBool::new(false);
    let run = lab::execute(prepared, kind, &Progress::silent(&stop));
    // The engine builds its state on one thread, which does not wait.
    let setup_wall_s = read_wall_s + run.summary.timing.setup_s - read_cpu_s;
    Ok(Sample { setup_wall_s, ..figures(&run) })
}

/// Runs a workload that leaves out what repeats.
pub(crate) fn run_fast(workload: &Fast) -> Result<Sample, String> {
    let resolved = workload.resolved().map_err(|e| format!("{e:?}"))?;
    let stop = AtomicBool::new(false);
    let leave = lab::fast::Leave::asked(Some(0.01), None);
    let run = lab::fast::run(resolved, leave, &Progress::silent(&stop)).map_err(|e| format!("{e:?}"))?;
    Ok(figures(&run))
}

fn figures(run: &lab::Run) -> Sample {
    let timing = &run.summary.timing;
    Sample {
        hosts: run.checked.plan.fabric.hosts(),
        hops: run.outcome.data_hops + run.outcome.control_hops,
        cpu_s: timing.cpu_s,
        wall_s: timing.wall_s,
        setup_cpu_s: timing.setup_s,
        setup_wall_s: timing.setup_s,
        peak_bytes: timing.peak_rss_mb * 1e6,
        complete: run.summary.complete,
        digest: run.summary.digest.clone(),
    }
}

/// Runs the workload in another process.
pub(crate) fn spawn(name: &str, length: Length, threads: usize) -> Result<Sample, String> {
    let program = std::env::current_exe().map_err(|e| format!("where is this program? {e}"))?;
    let mut command = Command::new(program);
    command.args(arguments(name, length, threads));
    sample(&mut command).map(|(sample, _)| sample)
}

/// Instructions per hop, from two runs of different lengths, so that set-up and tear-down cancel. `None` without valgrind.
pub(crate) fn instructions_per_hop(name: &str) -> Result<Option<f64>, String> {
    if Command::new("valgrind").arg("--version").output().is_err() {
        return Ok(None);
    }
    let program = std::env::current_exe().map_err(|e| format!("where is this program? {e}"))?;
    let counted = |length| {
        let mut command = Command::new("valgrind");
        command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(&program);
        command.args(arguments(name, length, 1));
        let (sample, stderr) = sample(&mut command)?;
        let line = stderr.lines().rev().find(|line| line.contains("Collected :"));
        let number = line.and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        number.map(|n| (n, sample.hops as f64)).ok_or_else(|| format!("callgrind says:\n{stderr}"))
    };
    let ((short, few), (long, many)) = (counted(Length::Short)?, counted(Length::Long)?);
    Ok(Some((long - short) / (many - few)))
}

fn arguments(name: &str, length: Length, threads: usize) -> Vec<String> {
    let length = match length {
        Length::Short => "--length=short",
        Length::Long => "--length=long",
        Length::Whole | Length::Small | Length::SmallOf(_) => "--length=whole",
    };
    vec![format!("--worker={name}"), length.to_owned(), format!("--threads={threads}")]
}

fn sample(command: &mut Command) -> Result<(Sample, String), String> {
    let output = command.output().map_err(|e| format!("{command:?}: {e}"))?;
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let parsed = out.lines().last().and_then(|line| serde_json::from_str(line).ok());
    parsed
        .map(|sample| (sample, err.clone().into_owned()))
        .ok_or_else(|| format!("{command:?} fails:\n{err}"))
}
