//! The bench, `make bench`: packet hops per second, instructions per hop, memory and set-up time of named workloads.
//!
//! A hop is one packet crossing one link; ACKs count. CPU time is that of the engine, from the plan to the outcome.
//! *Set-up* is reading and checking the scenario, making its plan, and building the engine's state; the CPU time of the
//! engine contains the latter, too. Writing results is in neither. Every run has its own process. The bench asserts
//! nothing about times, which depend on the machine and its other users.

#![expect(clippy::print_stdout, reason = "a table is what it is for")]
#![expect(clippy::print_stderr, reason = "and errors have their place")]

mod report;
mod worker;
#[expect(dead_code, reason = "small forms are for tests/stories/twins.rs")]
mod workloads;

use clap::Parser;
use report::{Figures, Machine, Report};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use workloads::{ALL, FAST, Fast, Length, Workload};

/// Speed, memory and set-up of ropewalk on named workloads.
#[derive(Debug, Parser)]
struct Args {
    /// Workloads [default: all except long ones].
    names: Vec<String>,
    /// Also run long workloads.
    #[arg(long)]
    full: bool,
    /// Runs of each kind; the median counts.
    #[arg(long, default_value = "3")]
    runs: NonZeroUsize,
    /// Do not count instructions; counting takes most of the time.
    #[arg(long)]
    no_instructions: bool,
    /// File for the figures [default: bench.json in the target directory].
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Store the figures as those of this release, for later comparisons.
    #[arg(long, conflicts_with_all = ["json", "names"])]
    release: bool,
    /// Flag that cargo passes to every bench; ignored.
    #[arg(long, hide = true)]
    bench: bool,
    #[arg(long, hide = true)]
    worker: Option<String>,
    #[arg(long, hide = true, default_value = "whole")]
    length: String,
    #[arg(long, hide = true, default_value = "1")]
    threads: NonZeroUsize,
}

/// Name of the workload that does nothing.
const BARE: &str = "bare";

fn main() -> ExitCode {
    match bench(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn bench(args: &Args) -> Result<(), String> {
    if let Some(fast) = args.worker.as_deref().and_then(find_fast) {
        let sample = worker::run_fast(fast)?;
        println!("{}", serde_json::to_string(&sample).map_err(|e| e.to_string())?);
        return Ok(());
    }
    if let Some(name) = &args.worker {
        let workload = (name != BARE).then(|| find(name)).transpose()?;
        let length = match args.length.as_str() {
            "short" => Length::Short,
            "long" => Length::Long,
            _ => Length::Whole,
        };
        let sample = worker::run(workload, length, args.threads)?;
        println!("{}", serde_json::to_string(&sample).map_err(|e| e.to_string())?);
        return Ok(());
    }
    let release = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/release.json");
    let json = if args.release { release.clone() } else { args.json.clone().map_or_else(target, Ok)? };
    let names = args.names.as_slice();
    let chosen: Vec<&Workload> = match names {
        [] => ALL.iter().filter(|w| args.full || !w.on_demand).collect(),
        names => {
            let whole = names.iter().filter(|name| find_fast(name).is_none());
            whole.map(|name| find(name)).collect::<Result<_, _>>()?
        }
    };
    let fast: Vec<&Fast> = match names {
        [] => FAST.iter().filter(|w| args.full || !w.on_demand).collect(),
        names => names.iter().filter_map(|name| find_fast(name)).collect(),
    };
    let mut report = Report { machine: Machine::this(), runs: args.runs.get(), workloads: Vec::new() };
    for workload in chosen {
        report.workloads.push(measure(workload, args)?);
    }
    for fast in fast {
        report.workloads.push(measure_fast(fast, args.runs.get())?);
    }
    let before = release.is_file().then(|| Report::read(&release)).transpose()?;
    print!("{}", report.table(before.as_ref()));
    report.write(&json)?;
    println!("Figures in {}", json.display());
    Ok(())
}

fn measure(workload: &Workload, args: &Args) -> Result<Figures, String> {
    let name = workload.name;
    let runs = args.runs.get();
    eprintln!("{name}: {}", workload.what);
    let bare = worker::spawn(BARE, Length::Whole, 1)?.peak_bytes;
    let spawn = |threads| (0..runs).map(|_| worker::spawn(name, Length::Whole, threads)).collect();
    let (one, two): (Result<Vec<_>, _>, Result<Vec<_>, _>) = (spawn(1), spawn(2));
    let instructions = match args.no_instructions {
        true => None,
        false => {
            let counted = worker::instructions_per_hop(name)?;
            if counted.is_none() {
                eprintln!("  valgrind is not installed: instructions not counted");
            }
            counted
        }
    };
    Figures::new((name, workload.what), &one?, &two?, bare, instructions)
}

/// A fast run has one thread, and its hops are those of the packets that it sends.
fn measure_fast(fast: &Fast, runs: usize) -> Result<Figures, String> {
    eprintln!("{}: {}", fast.name, fast.what);
    let bare = worker::spawn(BARE, Length::Whole, 1)?.peak_bytes;
    let all: Vec<_> =
        (0..runs).map(|_| worker::spawn(fast.name, Length::Whole, 1)).collect::<Result<_, _>>()?;
    Figures::new((fast.name, fast.what), &all, &all, bare, None)
}

fn find_fast(name: &str) -> Option<&'static Fast> {
    FAST.iter().find(|fast| fast.name == name)
}

fn find(name: &str) -> Result<&'static Workload, String> {
    let names =
        || ALL.iter().map(|w| w.name).chain(FAST.iter().map(|w| w.name)).collect::<Vec<_>>().join(", ");
    ALL.iter().find(|w| w.name == name).ok_or_else(|| format!("no workload `{name}`; there are {}", names()))
}

/// Path of `bench.json` in the target directory. This program is in release/deps below it.
fn target() -> Result<PathBuf, String> {
    let program = std::env::current_exe().map_err(|e| format!("where is this program? {e}"))?;
    let target = program.ancestors().nth(3).ok_or("this program is in no target directory")?;
    Ok(target.join("bench.json"))
}
