//! The command line: what can be asked, in clap's words.

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use std::num::NonZeroUsize;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  ropewalk run themis-fig1                          a built-in scenario
  ropewalk run my.toml --set scheme.themis={} --seed 7 -o out
  ropewalk compare my.toml --schemes ecmp,ar,themis --seeds 1..5
  ropewalk reproduce themis-fig1                    a paper's numbers beside ours
  ropewalk new my && ropewalk check my.toml         a scenario of your own

A SCENARIO is a path to a TOML file or the name of a built-in one.
Exit codes: 0 done; 2 the input is wrong; 3 the simulation failed; 130 interrupted.";

/// A packet-level lab for RDMA fabrics.
#[derive(Debug, Parser)]
#[command(name = "ropewalk", version, about, after_help = EXAMPLES, max_term_width = 100)]
#[command(propagate_version = true, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a scenario and write its results
    Run(RunArgs),
    /// Run a scenario with several load-balancing schemes and seeds, one row each
    Compare(CompareArgs),
    /// Run a paper's experiment: its number beside ours, with the deviation
    Reproduce(ReproduceArgs),
    /// Switch memory of a scheme by its paper's formula
    Memory(MemoryArgs),
    /// Check a scenario and print its full configuration with defaults; no run
    Check(CheckArgs),
    /// Make a scenario from another tool's files
    Import(ImportArgs),
    /// Print the JSON Schema of scenarios, for editors
    Schema,
    /// Print shell completions
    #[command(
        after_help = "Example:\n  ropewalk completions bash > ~/.local/share/bash-completion/completions/ropewalk"
    )]
    Completions {
        /// Shell.
        shell: Shell,
    },
    /// Write a commented scenario to start from, NAME.toml
    New {
        /// Name of the scenario; the file is NAME.toml.
        name: String,
    },
    /// Print what the documentation is made from, as JSON
    #[command(hide = true)]
    Reference,
}

/// Which scenario, and what to change in it.
#[derive(Args, Clone, Debug)]
pub struct ScenarioArgs {
    /// Path of a TOML file, or name of a built-in scenario.
    pub scenario: String,
    /// Change a value: a dotted key (arrays by index or name), and TOML or a plain string. Repeatable.
    ///
    /// Examples: scheme.themis.mode=literal, workload.0.bytes=64MB, scheme.ecmp={} (replaces the scheme).
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

/// Which engine.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum EngineArg {
    /// Window by window without an event queue: fast.
    #[default]
    Window,
    /// One event heap: slow, plain, gives the same results.
    Reference,
}

/// `ropewalk run`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  ropewalk run themis-fig1
  ropewalk run my.toml --set nic.congestion.dcqcn.rate-increase-timer=300us -o out/t300
  ropewalk run my.toml --json | jq .flows.fct_us.p99
  ropewalk run my.toml --threads 2

Writes summary.json, manifest.json, flows.parquet, links.parquet and series.parquet. A directory with older
results is replaced as a whole or not at all; a directory with anything else is not touched.")]
pub struct RunArgs {
    #[command(flatten)]
    #[expect(missing_docs, reason = "clap would take it for help text")]
    pub scenario: ScenarioArgs,
    /// Directory for the results [default: results/SCENARIO].
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Root of every random draw; the same as --set seed=N.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub seed: Option<u64>,
    /// Threads that the run is split over; the results stay the same.
    #[arg(long, value_name = "N", default_value = "1", value_parser = count)]
    pub threads: NonZeroUsize,
    /// Which engine; both give the same results.
    #[arg(long, value_enum, default_value_t)]
    pub engine: EngineArg,
    /// Write the tables as CSV too.
    #[arg(long)]
    pub csv: bool,
    /// Print summary.json on standard output and nothing else.
    #[arg(long)]
    pub json: bool,
    /// No progress.
    #[arg(long, short)]
    pub quiet: bool,
}

/// `ropewalk compare`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  ropewalk compare themis-fig1 --schemes ecmp,ar,themis
  ropewalk compare my.toml --schemes ar,themis --seeds 1..5 --set workload.0.bytes=30MB
  ropewalk compare my.toml --schemes ar,themis --seeds 1,7 --json > rows.json

A scheme that the scenario configures keeps its settings; the others have their defaults.
With several seeds a row shows the means, and below them the least and the most.")]
pub struct CompareArgs {
    #[command(flatten)]
    #[expect(missing_docs, reason = "clap would take it for help text")]
    pub scenario: ScenarioArgs,
    /// Schemes, separated by commas.
    #[arg(long, value_delimiter = ',', required = true, value_name = "NAMES")]
    pub schemes: Vec<String>,
    /// Traffic class whose scheme is swapped [default: foreground; all, if none has a scheme of its own].
    #[arg(long, value_name = "NAME")]
    pub class: Option<String>,
    /// Seeds: a list (1,2,7) or a range with both ends (1..5) [default: the scenario's].
    #[arg(long, value_parser = seeds)]
    pub seeds: Option<Seeds>,
    /// Threads in all: whole runs side by side, and a run is split when fewer are left [default: all cores].
    #[arg(long, value_name = "N", value_parser = count)]
    pub threads: Option<NonZeroUsize>,
    /// Most runs side by side; fewer need less memory [default: as many as threads].
    #[arg(long, value_name = "N", value_parser = count)]
    pub jobs: Option<NonZeroUsize>,
    /// Which engine; both give the same results.
    #[arg(long, value_enum, default_value_t)]
    pub engine: EngineArg,
    /// Print the rows as JSON on standard output and nothing else.
    #[arg(long)]
    pub json: bool,
    /// No progress.
    #[arg(long, short)]
    pub quiet: bool,
}

/// `ropewalk reproduce`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  ropewalk reproduce --list
  ropewalk reproduce themis-fig1 themis-memory
  ropewalk reproduce --all --quick

--quick runs a smaller version, and says so; its numbers are not the paper's.")]
pub struct ReproduceArgs {
    /// Experiments.
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// List the experiments.
    #[arg(long, conflicts_with_all = ["all", "names"])]
    pub list: bool,
    /// All experiments.
    #[arg(long, conflicts_with = "names")]
    pub all: bool,
    /// Scaled down: a first look in less time.
    #[arg(long)]
    pub quick: bool,
    /// Most runs side by side; fewer need less memory [default: as many as threads].
    #[arg(long, value_name = "N", value_parser = count)]
    pub jobs: Option<NonZeroUsize>,
    /// Threads in all: whole runs side by side, and a run is split when fewer are left [default: all cores].
    #[arg(long, value_name = "N", value_parser = count)]
    pub threads: Option<NonZeroUsize>,
    /// Print JSON on standard output and nothing else.
    #[arg(long)]
    pub json: bool,
    /// No progress.
    #[arg(long, short)]
    pub quiet: bool,
}

/// `ropewalk memory`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  ropewalk memory themis                            the paper's example
  ropewalk memory themis --set psn-bits=16 --set qps-per-nic=1000
  ropewalk memory themis --json
  ropewalk memory flowcut --set hosts=16384 --set rate=800Gbps

Keys of themis: paths, qps-per-nic, nics, rate, last-hop-delay, factor, frame, psn-bits, ring, sram.
Keys of flowcut: hosts, hosts-per-tor, flows, rate, rtt, packet, payload, sram.")]
pub struct MemoryArgs {
    /// Scheme.
    pub scheme: String,
    /// Change a value of the formula. Repeatable.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Print JSON on standard output and nothing else.
    #[arg(long)]
    pub json: bool,
}

/// `ropewalk check`.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  ropewalk check my.toml\n  ropewalk check themis-fig1 --set scheme.ar={}"
)]
pub struct CheckArgs {
    #[command(flatten)]
    #[expect(missing_docs, reason = "clap would take it for help text")]
    pub scenario: ScenarioArgs,
}

/// `ropewalk import`.
#[derive(Args, Debug)]
pub struct ImportArgs {
    /// Whose files.
    #[command(subcommand)]
    pub from: ImportFrom,
}

/// Whose files.
#[derive(Debug, Subcommand)]
pub enum ImportFrom {
    /// Topology, flow and configuration files of the HPCC simulator (ns-3)
    #[command(
        after_help = "Example:\n  ropewalk import hpcc --topology topology.txt --flows flow.txt -o my.toml"
    )]
    Hpcc {
        /// Topology file.
        #[arg(long, value_name = "FILE")]
        topology: PathBuf,
        /// Flow file.
        #[arg(long, value_name = "FILE")]
        flows: PathBuf,
        /// Configuration file.
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
        /// Scenario to write; it must not exist.
        #[arg(short, long, value_name = "SCENARIO")]
        output: PathBuf,
    },
}

/// A list of seeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seeds(pub Vec<u64>);

/// Most seeds of one comparison.
const MOST_SEEDS: u64 = 10_000;

fn seeds(text: &str) -> Result<Seeds, String> {
    let number =
        |s: &str| s.trim().parse::<u64>().map_err(|_| format!("`{s}` is not a seed (a whole number)"));
    if let Some((first, last)) = text.split_once("..") {
        let (first, last) = (number(first)?, number(last.trim_start_matches('='))?);
        if first > last {
            return Err(format!("the range {text} is empty"));
        }
        if last - first >= MOST_SEEDS {
            return Err(format!("at most {MOST_SEEDS} seeds are possible"));
        }
        return Ok(Seeds((first..=last).collect()));
    }
    text.split(',').map(number).collect::<Result<_, _>>().map(Seeds)
}

/// A number of threads or runs.
fn count(text: &str) -> Result<NonZeroUsize, String> {
    match text.trim().parse::<usize>() {
        Ok(n) => NonZeroUsize::new(n).ok_or_else(|| "at least 1 is needed".into()),
        Err(_) => Err(format!("expected a whole number of 1 or more, found `{text}`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn seeds_are_lists_or_ranges_with_both_ends() {
        assert_eq!(seeds("1..5"), Ok(Seeds(vec![1, 2, 3, 4, 5])));
        assert_eq!(seeds("3..=4"), Ok(Seeds(vec![3, 4])));
        assert_eq!(seeds("7"), Ok(Seeds(vec![7])));
        assert_eq!(seeds("1,9"), Ok(Seeds(vec![1, 9])));
        for wrong in ["5..1", "a", "1..", "", "0..18446744073709551615"] {
            assert!(seeds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn threads_are_counted_from_one() {
        assert_eq!(count("1"), Ok(NonZeroUsize::MIN));
        assert_eq!(count("64").map(NonZeroUsize::get), Ok(64));
        assert!(count("0").unwrap_err().contains("at least 1"));
        for wrong in ["two", "", "-1", "1.5", "99999999999999999999999"] {
            assert!(count(wrong).unwrap_err().contains(wrong), "{wrong}");
        }
    }
}
