//! The arguments of all commands, as clap reads them.

use crate::typed::Typed;
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use std::ffi::OsString;
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
    /// Command to run.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a scenario and write its results
    Run(Typed<RunArgs>),
    /// Run a scenario with several load-balancing schemes and seeds, one row each
    Compare(Typed<CompareArgs>),
    /// Run a scenario at many points: combinations of schemes, seeds and any other settings
    Sweep(SweepArgs),
    /// Run a paper's experiment and print the paper's numbers beside ours
    Reproduce(ReproduceArgs),
    /// Make a page from results: one HTML file that works offline
    Report(ReportArgs),
    /// Explain one flow or one step of training: where its time went, and what happened when
    Explain(ExplainArgs),
    /// Print the counts of a run under the names of a NIC's or a switch's counters, and a dump of counters beside them
    Counters(CountersArgs),
    /// Say whether the bus bandwidth of nccl-tests is what it should be, and if not, why
    Busbw(BusbwArgs),
    /// Study a site's fabric before it is built or changed
    Study(StudyArgs),
    /// Compute a scheme's switch memory by its paper's formula
    Memory(MemoryArgs),
    /// Show what a workload sends, before anything runs
    Workload(WorkloadArgs),
    /// Let a program drive a run over standard input and output
    Serve(Typed<ServeArgs>),
    /// Emulate RNIC loss recovery in front of hosts that lack it, over real frames
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Nic(PassedArgs),
    /// Check a scenario without a run, and print its size, capacities, thresholds and parts, or all settings
    Check(CheckArgs),
    /// List what there is: schemes, NICs, topologies, workloads, presets, scenarios, experiments
    List(ListArgs),
    /// Convert another tool's files to a scenario
    Import(ImportArgs),
    /// Write a scenario's fabric in another tool's format
    Export(ExportArgs),
    /// Work with the software ToR, which runs Themis on real RoCEv2 frames
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Tor(PassedArgs),
    /// Print the JSON Schema of scenarios, or of sweeps, for editors
    Schema {
        /// Kind of file.
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
    /// Write NAME.toml, a commented scenario to start from
    New {
        /// Name of the scenario; the file is NAME.toml.
        name: String,
    },
    /// Write a crate with a scheme, a congestion control and a recovery mode of your own, which inherits this command line
    #[command(after_help = "\
Example:
  ropewalk new-scheme two-choices ~/two-choices
  cd ~/two-choices
  cargo test
  cargo run --release -- compare quickstart --schemes two-choices,themis")]
    NewScheme {
        /// Name of the parts, which no part of ropewalk has, as scenarios spell it.
        name: String,
        /// Directory for the crate.
        dir: PathBuf,
        /// Folder of ropewalk's sources [default: that of this program, or the public repository].
        #[arg(long, value_name = "DIR")]
        sources: Option<PathBuf>,
    },
    /// The command of the Python package
    #[command(hide = true, disable_help_flag = true, disable_version_flag = true)]
    Tune(PassedArgs),
    /// Commands of the program `ropewalk-workshop`
    #[command(hide = true, disable_help_flag = true, disable_version_flag = true, aliases = ["reference"])]
    Fuzz(PassedArgs),
}

/// A scenario, and changes to it.
#[derive(Args, Clone, Debug)]
pub struct ScenarioArgs {
    /// Path of a TOML file, or name of a built-in scenario; with --topology, a workload file.
    pub scenario: String,
    /// Scenario whose fabric, NICs and scheme the workload file runs on; its own workload is left out.
    ///
    /// A workload file is a Chakra trace (one of its files, or their folder), a GOAL schedule, as text or binary, a workload of
    /// SimAI or AICB, or a connection matrix of htsim. SCENARIO may be a topology file of htsim, SimAI or ns-3.
    #[arg(long, value_name = "SCENARIO")]
    pub topology: Option<String>,
    /// Change a setting: a dotted key (array entries by index or name) and a value, as TOML or a plain string. Repeatable.
    ///
    /// Examples: scheme.themis.mode=literal, workload.0.bytes=64MB, scheme.ecmp={} (replaces the scheme).
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

impl ScenarioArgs {
    /// The scenario with everything recorded. These changes come first, so that an explicit `--set` wins.
    #[must_use]
    pub fn with_everything_recorded(&self) -> Self {
        let mut all = self.clone();
        all.set.splice(..0, lab::RECORD_EVERYTHING.map(str::to_owned));
        all
    }
}

/// The engines.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum EngineArg {
    /// Fast: works window by window, without a global queue of events.
    #[default]
    Window,
    /// Slow and simple: one heap of events.
    Reference,
}

/// `ropewalk run`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  ropewalk run themis-fig1
  ropewalk run my.toml --set nic.congestion.dcqcn.rate-increase-timer=55us -o out/t55
  ropewalk run my.toml --json | jq .flows.fct_us.p99
  ropewalk run my.toml --threads 2
  ropewalk run my.toml --record --report            record all, and write a page: DIR/report.html
  ropewalk run llama.goal --topology my.toml        a GOAL schedule on the fabric of my.toml
  ropewalk run trace.0.et --topology my.toml        a Chakra trace, one file per rank
  ropewalk run my.toml --pcap host0                 the frames of host0 for Wireshark: DIR/capture-host0.pcapng
  ropewalk run my.toml --pcap host0 --snap-length 128 the same with headers alone

Writes summary.json, manifest.json, flows.parquet, links.parquet, nics.parquet and series.parquet. --record, or [record] in the
scenario, adds counters.parquet, events.parquet and paths.parquet. A directory with older results is replaced as
a whole or not at all. A directory with other files is an error, and stays as it is.")]
pub struct RunArgs {
    #[command(flatten)]
    #[expect(missing_docs, reason = "clap would take it for help text")]
    pub scenario: ScenarioArgs,
    /// Directory for the results [default: results/SCENARIO].
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Seed of all random draws; the same as --set seed=N.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub seed: Option<u64>,
    /// Threads that share the run, at most one per group of nodes; the results are the same for any number.
    #[arg(long, value_name = "N", default_value = "1", value_parser = count)]
    pub threads: NonZeroUsize,
    /// Engine; both give the same results.
    #[arg(long, value_enum, default_value_t)]
    pub engine: EngineArg,
    /// Leave out exchanges that repeat, with an error of the end of at most so many per cent [default: 1%].
    ///
    /// The run prints how much it sent, and a bound on the error of its end.
    #[arg(long, value_name = "PERCENT", num_args = 0..=1, default_missing_value = "1%", value_parser = tolerance,
          conflicts_with_all = ["threads", "engine", "record", "pcap"])]
    pub fast: Option<f64>,
    /// With --fast: keep what repeats in this directory, so that later runs leave it out from the beginning.
    #[arg(long, value_name = "DIR", requires = "fast")]
    pub memo: Option<PathBuf>,
    /// With --fast: also run with everything sent, and print the error.
    #[arg(long, value_name = "all", requires = "fast", value_parser = ["all"])]
    pub audit: Option<String>,
    /// Record everything over time, and every event of eight queue pairs; [record] in the scenario selects parts.
    ///
    /// The same as --set record.flows=all, record.links=all, record.switches=true, record.counters=true,
    /// record.events=8. An explicit --set of one of these keys wins.
    #[arg(long)]
    pub record: bool,
    /// Capture the frames of a port in both directions, for Wireshark. Repeatable.
    ///
    /// A port is named by HOST, SWITCH:PORT or SWITCH:NEIGHBOUR, such as host0, leaf0:3 or leaf0:spine1. The file is
    /// DIR/capture-PORT.pcapng. The same as --set record.taps=[...].
    #[arg(long, value_name = "HOST|SWITCH:PORT")]
    pub pcap: Vec<String>,
    /// Bytes of each frame that a capture stores, 0 for all; 128 hold all headers [default: 0].
    ///
    /// The file keeps the frame's original length beside these bytes. The same as --set record.snap-length=NB.
    #[arg(long, value_name = "BYTES", requires = "pcap")]
    pub snap_length: Option<u32>,
    /// Also write the tables as CSV.
    #[arg(long)]
    pub csv: bool,
    /// Also write a page: one HTML file that works offline [default FILE: DIR/report.html].
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    pub report: Option<Option<PathBuf>>,
    /// Print summary.json on standard output and nothing else.
    #[arg(long)]
    pub json: bool,
    /// Do not show progress.
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
  ropewalk compare my.toml --schemes ecmp+none,ecmp+long-haul,themis+long-haul
  ropewalk compare my.toml --schemes ecmp,ar -o out && ropewalk explain slowest out/ar-1

A scheme that the scenario configures keeps its settings; all others use their defaults.
SCHEME+FEEDBACK has this feedback alone, and SCHEME+none has none; a scheme by itself has the scenario's feedback.
With several seeds, a row shows the means. The rows below it show half of the 95 % confidence interval of the
mean, and the range.

-o, --record and --csv keep the runs: DIR/SCHEME-SEED has the results of a run, as `ropewalk run` writes them, and
DIR/comparison.json says what was compared. `ropewalk report DIR` makes their page.")]
pub struct CompareArgs {
    #[command(flatten)]
    #[expect(missing_docs, reason = "clap would take it for help text")]
    pub scenario: ScenarioArgs,
    /// Schemes, each with a feedback if you like (ar+bicc), separated by commas.
    #[arg(long, value_delimiter = ',', required = true, value_name = "NAMES")]
    pub schemes: Vec<String>,
    /// Traffic class whose scheme changes [default: foreground, or all if no class has its own scheme].
    #[arg(long, value_name = "NAME")]
    pub class: Option<String>,
    /// Seeds: a list (1,2,7) or a range with both ends (1..5) [default: the scenario's].
    #[arg(long, value_parser = seeds)]
    pub seeds: Option<Seeds>,
    /// Scheme with which the answer compares the fastest one [default: ecmp, if it is compared].
    #[arg(long, value_name = "NAME")]
    pub baseline: Option<String>,
    /// Keep the runs in this directory [default with --record or --csv: results/SCENARIO-compare].
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Leave out exchanges that repeat, as `ropewalk run --fast` does; what decides the answer is not looked for.
    #[arg(long, value_name = "PERCENT", num_args = 0..=1, default_missing_value = "1%", value_parser = tolerance,
          conflicts_with_all = ["engine", "record"])]
    pub fast: Option<f64>,
    /// With --fast: keep what repeats in this directory, so that later runs leave it out from the beginning.
    #[arg(long, value_name = "DIR", requires = "fast")]
    pub memo: Option<PathBuf>,
    /// Record everything over time, as `ropewalk run --record` does, and keep the runs.
    #[arg(long)]
    pub record: bool,
    /// Keep the runs with their tables as CSV, too.
    #[arg(long)]
    pub csv: bool,
    /// Threads for all runs together; a run gets several if fewer runs than threads are left [default: all cores].
    #[arg(long, value_name = "N", value_parser = count)]
    pub threads: Option<NonZeroUsize>,
    /// Most runs at the same time; fewer need less memory [default: as many as threads].
    #[arg(long, value_name = "N", value_parser = count)]
    pub jobs: Option<NonZeroUsize>,
    /// Engine; both give the same results.
    #[arg(long, value_enum, default_value_t)]
    pub engine: EngineArg,
    /// Do not run the contenders again for the answer's cause, and for whether it survives other values of the settings it rests on.
    #[arg(long)]
    pub no_check: bool,
    /// Also write a page: one HTML file that works offline [default FILE: results/SCENARIO.html, or DIR/report.html].
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    pub report: Option<Option<PathBuf>>,
    /// Print the rows as JSON on standard output and nothing else.
    #[arg(long)]
    pub json: bool,
    /// Do not show progress.
    #[arg(long, short)]
    pub quiet: bool,
}

/// A kind of file that has a JSON Schema.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum SchemaOf {
    /// A scenario, for `ropewalk run`.
    #[default]
    Scenario,
    /// A sweep, for `ropewalk sweep`.
    Sweep,
}

/// `ropewalk list`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  ropewalk list                                     everything, a line each
  ropewalk list schemes controls
  ropewalk list presets                             published NICs, NCCL, switches, servers and clusters
  ropewalk list --json | jq -r .schemes[].name")]
pub struct ListArgs {
    /// Kinds to list, such as schemes or presets [default: all].
    #[arg(value_name = "KIND")]
    pub kinds: Vec<String>,
    /// Print JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// `ropewalk sweep`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  ropewalk sweep themis-timers --dry-run            list the points of a built-in sweep
  ropewalk sweep my-sweep.toml -o results/my-sweep
  ropewalk sweep my-sweep.toml --resume             continue after an interruption
  ropewalk sweep my-sweep.toml --report             also write a page: DIR/report.html
  ropewalk sweep my-sweep.toml --set workload.0.bytes=1MB --json | jq '.rows[][\"flows.fct_us.p99\"]'

A sweep's file names a scenario and has axes:
  scenario = \"quickstart\"
  seeds = \"1..3\"
  [[axis]]
  schemes = [\"ecmp\", \"themis\"]
  [[axis]]
  \"nic.congestion.dcqcn.rate-increase-timer\" = [\"55us\", \"300us\", \"900us\"]
Axes are crossed; the keys of one axis change together. docs/sweeps.md explains more.

Writes sweep.json, points.parquet, timing.parquet and configs.parquet, and flows/ID.parquet with `flows = true`.
Until the sweep is finished, its points are kept in DIR.part.")]
pub struct SweepArgs {
    /// Path of a TOML file, or name of a built-in sweep.
    pub sweep: String,
    /// Directory for the results [default: results/NAME].
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Change a setting at all points: a dotted key and a value, as TOML or a plain string. Repeatable.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Continue an interrupted sweep; finished runs are not repeated.
    #[arg(long)]
    pub resume: bool,
    /// Check all points and list them; run nothing.
    #[arg(long, conflicts_with_all = ["resume", "report"])]
    pub dry_run: bool,
    /// Leave out exchanges that repeat, as `ropewalk run --fast` does; what decides the answer is not looked for.
    #[arg(long, value_name = "PERCENT", num_args = 0..=1, default_missing_value = "1%", value_parser = tolerance)]
    pub fast: Option<f64>,
    /// With --fast: keep what repeats in this directory, so that later runs leave it out from the beginning.
    #[arg(long, value_name = "DIR", requires = "fast")]
    pub memo: Option<PathBuf>,
    /// Threads for all runs together; a run gets several if fewer runs than threads are left [default: all cores].
    #[arg(long, value_name = "N", value_parser = count)]
    pub threads: Option<NonZeroUsize>,
    /// Most runs at the same time; fewer need less memory [default: as many as threads].
    #[arg(long, value_name = "N", value_parser = count)]
    pub jobs: Option<NonZeroUsize>,
    /// Do not run points again for what decides the answer, and for whether it survives other values of the settings it rests on.
    #[arg(long)]
    pub no_check: bool,
    /// Also write a page: one HTML file that works offline [default FILE: DIR/report.html].
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    pub report: Option<Option<PathBuf>>,
    /// Print the points as JSON on standard output and nothing else.
    #[arg(long)]
    pub json: bool,
    /// Do not show progress.
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

--quick runs a scaled-down version and labels it; its numbers cannot be compared with the paper's.")]
pub struct ReproduceArgs {
    /// Names of experiments.
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// List the experiments.
    #[arg(long, conflicts_with_all = ["all", "names"])]
    pub list: bool,
    /// Run all experiments.
    #[arg(long, conflicts_with = "names")]
    pub all: bool,
    /// Run scaled-down versions, in less time.
    #[arg(long)]
    pub quick: bool,
    /// With `hardware`: run the collectives that this folder's files `*.csv` have, in place of ours.
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Most runs at the same time; fewer need less memory [default: as many as threads].
    #[arg(long, value_name = "N", value_parser = count)]
    pub jobs: Option<NonZeroUsize>,
    /// Threads for all runs together; a run gets several if fewer runs than threads are left [default: all cores].
    #[arg(long, value_name = "N", value_parser = count)]
    pub threads: Option<NonZeroUsize>,
    /// Do not run cases again for what decides the answer, and for whether it survives other values of the settings it rests on.
    #[arg(long)]
    pub no_check: bool,
    /// Also write a page: one HTML file that works offline [default FILE: results/NAME.html].
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    pub report: Option<Option<PathBuf>>,
    /// Print JSON on standard output and nothing else.
    #[arg(long)]
    pub json: bool,
    /// Do not show progress.
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

Runs that differ only in their seed share a row. Every file is compared with its checksum in the manifest; results
that are damaged or mixed are refused with exit code 2.")]
pub struct ReportArgs {
    /// Result directories of `ropewalk run` or `ropewalk compare`, or one of `ropewalk sweep`.
    #[arg(required = true, value_name = "DIR")]
    pub dirs: Vec<PathBuf>,
    /// The page to write [default: DIR/report.html, or results/report.html for several DIRs].
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Write the timeline of a run for Perfetto (ui.perfetto.dev), and a page only if -o names one.
    #[arg(long, value_name = "FILE")]
    pub perfetto: Option<PathBuf>,
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
  ropewalk explain step results/gpt-13b             the critical path of its longest step

The explanation of a step comes from critical.parquet, which every run with steps has.

The explanation of a flow comes from events.parquet. If the run did not record the flow's events (--record, or record.follow
in the scenario), the scenario in the directory's manifest runs again and records them. Its digest must be the
same. ropewalk explain writes no results, also if it runs a SCENARIO. Damaged or mixed results are refused, as in
ropewalk report.")]
pub struct ExplainArgs {
    /// Flow: its number, `slowest`, or FROM->TO (the slowest flow between these hosts). Step: `step` (the longest), `step:N`,
    /// `step:JOB` or `step:JOB:N`.
    #[arg(value_name = "FLOW")]
    pub flow: String,
    /// Result directory, or a scenario: a TOML file or the name of a built-in one.
    #[arg(value_name = "DIR|SCENARIO", default_value = ".")]
    pub of: String,
    /// Change a setting of the scenario: a dotted key and a value, as TOML or a plain string. Repeatable.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Threads that share a run; the results are the same for any number.
    #[arg(long, value_name = "N", default_value = "1", value_parser = count)]
    pub threads: NonZeroUsize,
    /// Print JSON on standard output and nothing else.
    #[arg(long)]
    pub json: bool,
    /// Do not show progress.
    #[arg(long, short)]
    pub quiet: bool,
}

/// `ropewalk counters`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  ropewalk counters results/quickstart --as mlx5
  ropewalk counters results/quickstart --as sonic --at leaf0
  ropewalk counters results/quickstart --as mlx5 --compare ethtool.txt --interval 10
  ropewalk counters results/quickstart --as mlx5 --json | jq '.counters[] | {name, total}'

With `record.queues = true` in the run, sonic and junos have a table by queue and one by priority
group, too. A dump is what `ethtool -S`, `rdma statistic`, `show pfc counters` and `show queue
counters` of SONiC, or `show interfaces queue` of Junos print, once or, one after the other in one
file, twice. Runs last milliseconds and polls seconds, so shares and rates are compared, never
counts. docs/counters.md has all names.")]
pub struct CountersArgs {
    /// Result directory.
    #[arg(value_name = "DIR", default_value = ".")]
    pub dir: PathBuf,
    /// Whose names: mlx5 (NICs), sonic or junos (switches).
    #[arg(long = "as", value_name = "NAMES", default_value = "mlx5")]
    pub names: String,
    /// Only the ports of this host or switch.
    #[arg(long, value_name = "NODE")]
    pub at: Option<String>,
    /// Dump of counters to compare with.
    #[arg(long, value_name = "FILE")]
    pub compare: Option<PathBuf>,
    /// Seconds between the two readings of the dump, for rates.
    #[arg(long, value_name = "SECONDS", requires = "compare")]
    pub interval: Option<f64>,
    /// Print JSON on standard output and nothing else, with the counts of every port.
    #[arg(long)]
    pub json: bool,
}

/// `ropewalk busbw`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  ropewalk busbw all_reduce.log
  ropewalk busbw all_reduce.log --cluster \"8 nodes, 8 h100, 8x400G, roce, 4 per tor\"
  ropewalk busbw all_reduce.log sendrecv.log perftest.log --nccl-log nccl.log --topo topo.xml
  ropewalk busbw pair-*.log --racks \"node1 node2 / node3 node4\"    the slow node by elimination
  ropewalk busbw monday.log tuesday.log                             before and after
  ropewalk busbw all_reduce.log --json | jq .suspects[0].name

LOG is what nccl-tests or rccl-tests print, or their JSON (-J), with NCCL's own lines between them if you like. What the log
does not tell, --cluster describes, in parts between commas: `8 nodes`, `8 h100`, `8x400G`, `bond of 2x200G`, `1 of 4x200G`,
`roce` or `ib`, `4 per tor`, `2 racks`, `2 sites`, `400us` (the round trip between sites), `nvls off`, `pcie gen4`, `amd`,
`nccl 2.27`.
Exit codes: 0 as expected, or not known; 1 a size from 64 MiB on is below the expected range; 2 the input is wrong.")]
pub struct BusbwArgs {
    /// Logs with measurements, `-` for standard input; several are compared.
    #[arg(required = true, value_name = "LOG")]
    pub logs: Vec<String>,
    /// The cluster, such as "8 nodes, 8 h100, 8x400G".
    #[arg(long, value_name = "TEXT")]
    pub cluster: Option<String>,
    /// Scenario whose servers and links are the cluster.
    #[arg(long, value_name = "SCENARIO", conflicts_with = "cluster")]
    pub fabric: Option<String>,
    /// NCCL's own log (NCCL_DEBUG=INFO), if LOG does not have it. Repeatable.
    #[arg(long, value_name = "FILE")]
    pub nccl_log: Vec<String>,
    /// NCCL's topology as XML (NCCL_TOPO_DUMP_FILE). Repeatable.
    #[arg(long, value_name = "FILE")]
    pub topo: Vec<String>,
    /// The test, if LOG does not name it: all_reduce, all_gather, reduce_scatter, alltoall, broadcast, reduce, sendrecv.
    #[arg(long, value_name = "NAME")]
    pub collective: Option<String>,
    /// Time that the program adds to a call, us: least and most [default: 10..60, as nccl-tests].
    #[arg(long, value_name = "US..US", value_parser = span)]
    pub call: Option<(f64, f64)>,
    /// Hosts below each ToR, with a slash between ToRs: "a b / c d".
    #[arg(long, value_name = "HOSTS")]
    pub racks: Option<String>,
    /// Simulate the healthy cluster and each suspect, beside the measured curve.
    #[arg(long)]
    pub simulate: bool,
    /// Also write a page: one HTML file that works offline [default FILE: results/busbw.html].
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    pub report: Option<Option<PathBuf>>,
    /// Print JSON on standard output and nothing else.
    #[arg(long)]
    pub json: bool,
}

/// Reads `10..60`, or one number.
fn span(text: &str) -> Result<(f64, f64), String> {
    let (least, most) = text.split_once("..").unwrap_or((text, text));
    let number = |text: &str| {
        text.trim().trim_end_matches("us").parse::<f64>().ok().filter(|us| (0.0..=1e6).contains(us))
    };
    match (number(least), number(most)) {
        (Some(least), Some(most)) if least <= most => Ok((least, most)),
        _ => Err("expected microseconds such as 10..60, the lesser first".to_owned()),
    }
}

/// `ropewalk study`.
#[derive(Args, Debug)]
pub struct StudyArgs {
    /// Question to study.
    #[command(subcommand)]
    pub what: StudyOf,
}

/// Questions about a site's fabric.
#[derive(Debug, Subcommand)]
pub enum StudyOf {
    /// Play the acceptance plans of operators on a site's fabric, and judge them by their limits
    #[command(after_help = "\
Examples:
  ropewalk study acceptance site.toml               all cases
  ropewalk study acceptance site.toml --cases a2,a7 the lossless queues and their headroom
  ropewalk study acceptance site.toml --limits mine.toml
  ropewalk study acceptance site.toml --json | jq '.rows[] | select(.verdict == \"fail\")'

The workload of SITE is replaced by that of each case; its failures are left out. docs/acceptance.md has the cases.
Exit codes: 0 no case fails; 2 the input is wrong; 3 a case fails; 130 interrupted.")]
    Acceptance {
        /// Path of a scenario, such as `ropewalk import site` writes, or name of a built-in one.
        #[arg(value_name = "SITE")]
        site: String,
        /// Change a setting of the site: a dotted key and a value, as TOML or a plain string. Repeatable.
        #[arg(long, value_name = "KEY=VALUE")]
        set: Vec<String>,
        /// Cases, separated by commas, such as a1,a9 [default: all].
        #[arg(long, value_delimiter = ',', value_name = "NAMES")]
        cases: Vec<String>,
        /// Limits of your own: a TOML file with a table for each case, such as `[a1]` with `mean-latency = 3`, or rccl_config.json of ROCm/cvs.
        #[arg(long, value_name = "FILE")]
        limits: Option<String>,
        /// Threads for all runs together [default: all cores].
        #[arg(long, value_name = "N", value_parser = count)]
        threads: Option<NonZeroUsize>,
        /// Print JSON on standard output and nothing else.
        #[arg(long)]
        json: bool,
        /// Do not show progress.
        #[arg(long, short)]
        quiet: bool,
    },
    /// Draw a month's flaps, gray links and failures, and say what they cost in GPU-hours and dead jobs
    #[command(after_help = "\
Examples:
  ropewalk study faults site.toml
  ropewalk study faults site.toml --set nic.nccl=2.14.3   seven retries of 1.07 s
  ropewalk study faults site.toml --flap 10s --repair 86400s --json | jq .gpu_hours

One job runs on all GPUs. A few runs show what a fault of each kind and place does to it; months of faults are then drawn.
docs/failures.md has the rates and what is assumed.")]
    Faults(FaultsArgs),
}

/// `ropewalk study faults`.
#[derive(Args, Debug)]
pub struct FaultsArgs {
    /// Path of a scenario, such as `ropewalk import site` writes, or name of a built-in one.
    #[arg(value_name = "SITE")]
    pub site: String,
    /// Change a setting of the site: a dotted key and a value, as TOML or a plain string. Repeatable.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Days of a month.
    #[arg(long, value_name = "N", default_value = "30", value_parser = clap::value_parser!(u32).range(1..=3_660))]
    pub days: u32,
    /// Months to draw.
    #[arg(long, value_name = "N", default_value = "1000", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub months: u64,
    /// Seed of the months.
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
    /// Time from a job's end until it runs again.
    #[arg(long, value_name = "TIME", default_value = "600s")]
    pub restart: model::Time,
    /// Time between checkpoints; a dead job loses half of it.
    #[arg(long, value_name = "TIME", default_value = "1800s")]
    pub checkpoint: model::Time,
    /// Time until a part that is down has been replaced, or a gray link noticed.
    #[arg(long, value_name = "TIME", default_value = "14400s")]
    pub repair: model::Time,
    /// Median of the time for which a flap takes a link down.
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub flap: model::Time,
    /// Standard deviation of the logarithm of that time.
    #[arg(long, value_name = "NUMBER", default_value = "1.5")]
    pub flap_sigma: f64,
    /// Threads for all runs together [default: all cores].
    #[arg(long, value_name = "N", value_parser = count)]
    pub threads: Option<NonZeroUsize>,
    /// Print JSON on standard output and nothing else.
    #[arg(long)]
    pub json: bool,
    /// Do not show progress.
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
    /// Scheme: themis or flowcut.
    pub scheme: String,
    /// Change an input of the formula. Repeatable.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Print JSON on standard output and nothing else.
    #[arg(long)]
    pub json: bool,
}

/// `ropewalk serve`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  ropewalk serve quickstart                         the fabric of quickstart, a rank per host
  ropewalk serve my.toml -o results/driven

The program writes a request per line and reads an answer per line; docs/programs.md has all of them:
  {\"do\": \"send\", \"id\": 1, \"from\": 0, \"to\": 5, \"bytes\": 1000000}
  {\"do\": \"timer\", \"id\": 2, \"rank\": 0, \"after_ps\": 5000000}
  {\"do\": \"next\"}                                  the next event
  {\"do\": \"finish\"}                                play the rest, write the results, end

Unless a workload of the scenario is `program`, the program takes the place of all workloads.")]
pub struct ServeArgs {
    /// Path of a TOML file, or name of a built-in scenario.
    pub scenario: String,
    /// Change a setting: a dotted key and a value, as TOML or a plain string. Repeatable.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Directory for the results; none are written without it.
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Frames instead of lines: the length of the JSON object as 32 bits, big-endian, then the object.
    #[arg(long)]
    pub frames: bool,
}

/// `ropewalk check`.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  ropewalk check my.toml\n  ropewalk check themis-fig1 --set scheme.ar={}\n  ropewalk check my.toml --json"
)]
pub struct CheckArgs {
    #[command(flatten)]
    #[expect(missing_docs, reason = "clap would take it for help text")]
    pub scenario: ScenarioArgs,
    /// Print every setting with its default and the source of the default; the output is a scenario.
    #[arg(long, conflicts_with = "json")]
    pub full: bool,
    /// Prices: a TOML file with tables `switch`, `cable`, `optic` and `nic`, each with a price for a role or a rate.
    #[arg(long, value_name = "FILE", conflicts_with = "full")]
    pub costs: Option<PathBuf>,
    /// Name a smaller cluster of about N GPUs, or hosts, that stands for this one, and say what it keeps.
    #[arg(long, value_name = "N", conflicts_with_all = ["full", "json"])]
    pub slice: Option<u64>,
    /// Print errors, warnings, and the sheet as JSON; docs/findings.md describes the keys.
    #[arg(long)]
    pub json: bool,
}

/// The arguments of a command of another program, as they are.
#[derive(Args, Debug)]
pub struct PassedArgs {
    /// Arguments for the program of real frames; --help lists them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    pub rest: Vec<OsString>,
}

/// `ropewalk workload`.
#[derive(Args, Debug)]
pub struct WorkloadArgs {
    /// What to do with the workload.
    #[command(subcommand)]
    pub command: WorkloadCommand,
}

/// What to do with a workload.
#[derive(Debug, Subcommand)]
pub enum WorkloadCommand {
    /// Print the collectives, their sizes, and the bytes that each rank sends over NICs and NVLink
    #[command(
        after_help = "Examples:\n  ropewalk workload show gpt-13b\n  ropewalk workload show my.toml --json"
    )]
    Show {
        #[command(flatten)]
        #[expect(missing_docs, reason = "clap would take it for help text")]
        scenario: ScenarioArgs,
        /// Print JSON on standard output and nothing else.
        #[arg(long)]
        json: bool,
    },
}

/// `ropewalk import`.
#[derive(Args, Debug)]
pub struct ImportArgs {
    /// Tool that wrote the files.
    #[command(subcommand)]
    pub from: ImportFrom,
}

/// Tools whose files can be imported.
#[derive(Debug, Subcommand)]
pub enum ImportFrom {
    /// Chakra execution trace of MLCommons and ASTRA-sim
    #[command(after_help = "\
Examples:
  ropewalk import chakra traces --topology my-fabric.toml -o llama
  ropewalk import chakra llama.*.et --groups groups.json -o llama
  ropewalk import chakra spmd.0.et --spmd --topology my-fabric.toml -o spmd

Writes the trace without what has no effect, a file per rank, to DIR, and DIR/NAME.toml, a scenario that runs it.")]
    Chakra {
        /// Files of all ranks, or one of them, the start of their names, or their folder.
        #[arg(required = true, value_name = "DIR-or-FILE")]
        files: Vec<PathBuf>,
        /// JSON file with the groups of ranks [default: the groups that the trace defines itself].
        #[arg(long, value_name = "FILE")]
        groups: Option<PathBuf>,
        /// Run the trace of one rank on all GPUs.
        #[arg(long)]
        spmd: bool,
        /// Scenario whose fabric, NICs and scheme the trace runs on [default: one switch with a host per rank].
        #[arg(long, value_name = "SCENARIO")]
        topology: Option<String>,
        /// Directory for the files.
        #[arg(short, long, value_name = "DIR")]
        output: PathBuf,
    },
    /// GOAL schedule of LogGOPSim, as text or binary
    #[command(after_help = "\
Examples:
  ropewalk import goal llama.goal -o llama
  ropewalk import goal llama.bin --topology my-fabric.toml -o llama

Writes DIR/NAME.bin, the schedule, and DIR/NAME.toml, a scenario that runs it.")]
    Goal {
        /// Schedule.
        file: PathBuf,
        /// Scenario whose fabric, NICs and scheme the schedule runs on [default: one switch with a host per rank].
        #[arg(long, value_name = "SCENARIO")]
        topology: Option<String>,
        /// Directory for the two files.
        #[arg(short, long, value_name = "DIR")]
        output: PathBuf,
    },
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
    /// Connection matrix and topology of htsim
    #[command(after_help = "\
Example:
  ropewalk import htsim --cm alltoall.cm --topo tree.topo -o alltoall.toml

The scenario lists flows that only have start times, in their order. For all other matrices it names the file.")]
    Htsim {
        /// Connection matrix.
        #[arg(long, value_name = "FILE")]
        cm: PathBuf,
        /// Topology file, or a scenario whose fabric, NICs and scheme count [default: one switch with a host per node].
        #[arg(long, value_name = "FILE")]
        topo: Option<String>,
        /// Scenario to write; it must not exist.
        #[arg(short, long, value_name = "SCENARIO")]
        output: PathBuf,
    },
    /// Traffic patterns of NIXL's sequential-ct-perftest
    #[command(after_help = "\
Example:
  ropewalk import ctp patterns.yaml --topology rails.toml -o patterns.toml

Matrices are looked for beside the list. The ranks of a pattern meet, sleep and send.")]
    Ctp {
        /// List of patterns, YAML.
        file: PathBuf,
        /// Scenario whose fabric, NICs and scheme count [default: one switch with a host per rank].
        #[arg(long, value_name = "SCENARIO")]
        topology: Option<String>,
        /// Scenario to write; it must not exist.
        #[arg(short, long, value_name = "SCENARIO")]
        output: PathBuf,
    },
    /// Workload and topology of SimAI or AICB
    #[command(after_help = "\
Example:
  ropewalk import simai step.txt --topology rails.simai -o step.toml

The scenario names the file of the workload, which stays where it is.")]
    Simai {
        /// Workload.
        workload: PathBuf,
        /// Topology file, or a scenario whose fabric, NICs and scheme count [default: one switch with a host per GPU].
        #[arg(long, value_name = "FILE")]
        topology: Option<String>,
        /// Scenario to write; it must not exist.
        #[arg(short, long, value_name = "SCENARIO")]
        output: PathBuf,
    },
    /// A site's own files: configurations of switches and NICs, cabling, graphs of other tools
    #[command(after_help = "\
Examples:
  ropewalk import site configs -o site.toml         config_db.json of every switch, one folder each
  ropewalk import site leaf1.json spine1.json cables.csv -o site.toml
  ropewalk import site configs --json -o site.toml | jq .contradicts

Reads config_db.json of SONiC and its parts, pg_profile_lookup.ini, settings of NICs (sysfs, mlnx_qos, mlxconfig, NCCL's
variables), cabling (LLDP tables, CSV, DOT, containerlab, ibnetdiscover), InfraGraph, and NVUE in part. The content of a
file tells what it is. Writes one scenario, and prints what was read, what was ignored and why, and what contradicts.")]
    Site {
        /// Files, or folders with files.
        #[arg(required = true, value_name = "DIR-or-FILE")]
        paths: Vec<PathBuf>,
        /// Scenario to write; it must not exist.
        #[arg(short, long, value_name = "SCENARIO")]
        output: PathBuf,
        /// Print the lists as JSON on standard output and nothing else.
        #[arg(long)]
        json: bool,
    },
}

/// `ropewalk export`.
#[derive(Args, Debug)]
pub struct ExportArgs {
    /// Format to write.
    #[command(subcommand)]
    pub to: ExportTo,
}

/// Formats of other tools that a scenario's fabric can be written in.
#[derive(Debug, Subcommand)]
pub enum ExportTo {
    /// Traffic patterns of NIXL's sequential-ct-perftest: a list in YAML, and matrices
    #[command(after_help = "\
Example:
  ropewalk export ctp serving -o patterns

The scenario runs, and messages of a job that start together become a pattern. A pattern sleeps as long as its ranks had nothing to do.")]
    Ctp {
        #[command(flatten)]
        #[expect(missing_docs, reason = "clap would take it for help text")]
        scenario: ScenarioArgs,
        /// Directory to make; it must not exist.
        #[arg(short, long, value_name = "DIR")]
        output: PathBuf,
    },
    /// Graph of InfraGraph, as YAML
    #[command(after_help = "\
Examples:
  ropewalk export infragraph themis-fig1 -o fabric.yaml
  ropewalk export infragraph my.toml --set topology.leaf-spine.spines=8 -o fabric.yaml")]
    Infragraph {
        #[command(flatten)]
        #[expect(missing_docs, reason = "clap would take it for help text")]
        scenario: ScenarioArgs,
        /// File to write; it must not exist.
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
    },
}

/// A list of seeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seeds(pub Vec<u64>);

fn seeds(text: &str) -> Result<Seeds, String> {
    scenario::sweep::seeds(text).map(Seeds)
}

/// A share in per cent, such as `1%`.
fn tolerance(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim();
    match number.parse::<f64>() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("expected per cent, such as 1%".to_owned()),
    }
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
