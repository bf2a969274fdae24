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
  ropewalk explain slowest results/themis-fig1      why was a flow slow?
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
    /// Run a scenario at many points: schemes, seeds and any keys, crossed or side by side
    Sweep(SweepArgs),
    /// Run a paper's experiment: its number beside ours, with the deviation
    Reproduce(ReproduceArgs),
    /// Make a page from results: one HTML file that works offline
    Report(ReportArgs),
    /// Tell the life of one flow: where its time went, and what happened to it when
    Explain(ExplainArgs),
    /// Switch memory of a scheme by its paper's formula
    Memory(MemoryArgs),
    /// Check a scenario and print its full configuration with defaults; no run
    Check(CheckArgs),
    /// Make a scenario from another tool's files
    Import(ImportArgs),
    /// Print the JSON Schema of scenarios, or of sweeps, for editors
    Schema {
        /// Of which kind of file.
        #[arg(value_enum, default_value_t)]
        of: SchemaOf,
    },
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
  ropewalk run my.toml --record --report            a page to look at, with all that happened: DIR/report.html
  ropewalk run my.toml --pcap host0                 the frames of host0 for Wireshark: DIR/capture-host0.pcapng

Writes summary.json, manifest.json, flows.parquet, links.parquet and series.parquet; with --record, or what [record]
in the scenario asks for, counters.parquet, events.parquet and paths.parquet, too. A directory with older
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
    /// Record everything over time, and every event of eight flows; [record] in the scenario does parts of it.
    ///
    /// The same as --set record.flows=all, record.links=all, record.switches=true, record.counters=true,
    /// record.events=8; a --set of one of these has its way.
    #[arg(long)]
    pub record: bool,
    /// Capture the frames of a port in both directions, for Wireshark; may be given more than once.
    ///
    /// A port is that of a host, or SWITCH:PORT, or SWITCH:NEIGHBOUR: host0, leaf0:3, leaf0:spine1. Its file is
    /// DIR/capture-PORT.pcapng. The same as --set record.taps=[...].
    #[arg(long, value_name = "HOST|SWITCH:PORT")]
    pub pcap: Vec<String>,
    /// Write the tables as CSV too.
    #[arg(long)]
    pub csv: bool,
    /// Write a page too, one HTML file that works offline [default FILE: DIR/report.html].
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    pub report: Option<Option<PathBuf>>,
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
  ropewalk compare my.toml --schemes ecmp,themis --report

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
    /// Write a page too, one HTML file that works offline [default FILE: results/SCENARIO.html].
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    pub report: Option<Option<PathBuf>>,
    /// Print the rows as JSON on standard output and nothing else.
    #[arg(long)]
    pub json: bool,
    /// No progress.
    #[arg(long, short)]
    pub quiet: bool,
}

/// A kind of file that has a JSON Schema.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum SchemaOf {
    /// What `ropewalk run` takes.
    #[default]
    Scenario,
    /// What `ropewalk sweep` takes.
    Sweep,
}

/// `ropewalk sweep`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  ropewalk sweep themis-timers --dry-run            a built-in sweep: which points there are
  ropewalk sweep my-sweep.toml -o results/my-sweep
  ropewalk sweep my-sweep.toml --resume             after an interruption, however hard
  ropewalk sweep my-sweep.toml --report             a page to look at, too: DIR/report.html
  ropewalk sweep my-sweep.toml --set workload.0.bytes=1MB --json | jq '.rows[][\"flows.fct_us.p99\"]'

A sweep's file names a scenario and has axes:
  scenario = \"quickstart\"
  seeds = \"1..3\"
  [[axis]]
  schemes = [\"ecmp\", \"themis\"]
  [[axis]]
  \"nic.congestion.dcqcn.rate-increase-timer\" = [\"55us\", \"300us\", \"900us\"]
Axes are crossed; keys in one axis go side by side. docs/sweeps.md says more.

Writes sweep.json, points.parquet, timing.parquet and configs.parquet, and flows/ID.parquet with `flows = true`.
Under way, points are kept in DIR.part.")]
pub struct SweepArgs {
    /// Path of a TOML file, or name of a built-in sweep.
    pub sweep: String,
    /// Directory for the results [default: results/NAME].
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Change a value at all points: a dotted key, and TOML or a plain string. Repeatable.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Go on with an interrupted sweep: what was done is not run again.
    #[arg(long)]
    pub resume: bool,
    /// Check all points and list them; run nothing.
    #[arg(long, conflicts_with_all = ["resume", "report"])]
    pub dry_run: bool,
    /// Threads in all: whole runs side by side, and a run is split when fewer are left [default: all cores].
    #[arg(long, value_name = "N", value_parser = count)]
    pub threads: Option<NonZeroUsize>,
    /// Most runs side by side; fewer need less memory [default: as many as threads].
    #[arg(long, value_name = "N", value_parser = count)]
    pub jobs: Option<NonZeroUsize>,
    /// Write a page too, one HTML file that works offline [default FILE: DIR/report.html].
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    pub report: Option<Option<PathBuf>>,
    /// Print the points as JSON on standard output and nothing else.
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
  ropewalk reproduce themis-fig1 --report           the paper's figure from our data, on a page

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
    /// Write a page too, one HTML file that works offline [default FILE: results/NAME.html].
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    pub report: Option<Option<PathBuf>>,
    /// Print JSON on standard output and nothing else.
    #[arg(long)]
    pub json: bool,
    /// No progress.
    #[arg(long, short)]
    pub quiet: bool,
}

/// `ropewalk report`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  ropewalk report results/themis-fig1               results/themis-fig1/report.html
  ropewalk report out/ecmp out/themis -o page.html  several runs side by side
  ropewalk report results/themis-timers             a finished sweep

Runs that differ in nothing but their seed are one row.")]
pub struct ReportArgs {
    /// Result directories, as `ropewalk run` writes them, or one of `ropewalk sweep`.
    #[arg(required = true, value_name = "DIR")]
    pub dirs: Vec<PathBuf>,
    /// The page to write [default: report.html in the one DIR; results/report.html of several].
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `ropewalk explain`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  ropewalk explain slowest results/quickstart
  ropewalk explain 12 results/quickstart            flow 12, as in flows.parquet
  ropewalk explain 'host3->host7' results/quickstart
  ropewalk explain slowest quickstart --set scheme.ecmp={}
  ropewalk explain 12 results/quickstart --json | jq .account.causes

A flow's events are in events.parquet if the run recorded them (--record, or record.follow in the scenario). If
they are not, the scenario in the directory's manifest is run again with the events of this flow; nothing is
written, and the digest must be the same. Of a scenario that has not run, nothing is written either.")]
pub struct ExplainArgs {
    /// Which flow: its number, `slowest`, or FROM->TO (the slowest of these).
    #[arg(value_name = "FLOW")]
    pub flow: String,
    /// Result directory, or a scenario: a TOML file or the name of a built-in one.
    #[arg(value_name = "DIR|SCENARIO", default_value = ".")]
    pub of: String,
    /// Change a value of the scenario: a dotted key, and TOML or a plain string. Repeatable.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Threads that a run is split over; the results stay the same.
    #[arg(long, value_name = "N", default_value = "1", value_parser = count)]
    pub threads: NonZeroUsize,
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

fn seeds(text: &str) -> Result<Seeds, String> {
    scenario::sweep::seeds(text).map(Seeds)
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
