//! Output of the bench: a JSON file, and a table for the terminal.

use crate::worker::Sample;
use comfy_table::{CellAlignment, Table, TableStyle};
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

/// The figures of a bench.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    /// Machine, day, version and commit.
    pub(crate) machine: Machine,
    /// Runs of each kind; medians count.
    pub(crate) runs: usize,
    /// Figures by workload.
    pub(crate) workloads: Vec<Figures>,
}

/// Machine, day, version and commit of a bench.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Machine {
    /// Model of the CPU.
    pub(crate) cpu: String,
    /// Cores that this process may use.
    pub(crate) cores: usize,
    /// Day, UTC.
    pub(crate) date: String,
    /// Version of the program. `scripts/dist --release` compares it with the changelog's.
    pub(crate) version: String,
    /// Commit, with `-dirty` if files are changed.
    pub(crate) commit: String,
}

impl Machine {
    /// This one.
    pub(crate) fn this() -> Self {
        let said = |program: &str, args: &[&str]| {
            let output = Command::new(program).args(args).current_dir(env!("CARGO_MANIFEST_DIR")).output();
            let text = output.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned());
            text.ok().filter(|text| !text.is_empty()).unwrap_or_else(|| "unknown".into())
        };
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = info.lines().find(|line| line.starts_with("model name"));
        let model = model.and_then(|line| line.split(':').nth(1)).map(|name| name.trim().to_owned());
        Machine {
            cpu: model.unwrap_or_else(|| format!("a CPU of {}", std::env::consts::ARCH)),
            cores: std::thread::available_parallelism().map_or(1, Into::into),
            date: said("date", &["-u", "+%F"]),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: said("git", &["describe", "--always", "--dirty"]),
        }
    }
}

/// The figures of one workload.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Figures {
    /// Name.
    pub(crate) name: String,
    /// Description.
    pub(crate) what: String,
    /// Hosts of the fabric.
    pub(crate) hosts: usize,
    /// Link crossings of data and control packets.
    pub(crate) hops: u64,
    /// CPU seconds in the engine, one thread.
    pub(crate) cpu_s: f64,
    /// Link crossings per CPU second, one thread.
    pub(crate) hops_per_cpu_s: f64,
    /// Link crossings per wall second, one thread.
    pub(crate) hops_per_wall_s: f64,
    /// Link crossings per wall second, two threads.
    pub hops_per_wall_s_2: f64,
    /// Instructions per link crossing; null without valgrind.
    pub(crate) instructions_per_hop: Option<f64>,
    /// Peak memory above that of a bare process, bytes per host.
    pub(crate) bytes_per_host: f64,
    /// CPU seconds of the set-up.
    pub(crate) setup_cpu_s: f64,
    /// Wall seconds of the set-up.
    pub(crate) setup_wall_s: f64,
    /// True if every packet arrived.
    pub(crate) complete: bool,
    /// Digest of the outcome, the same on one thread and on two.
    pub(crate) digest: String,
}

impl Figures {
    /// Figures from samples on one thread and on two, and from the peak memory of a bare process.
    pub(crate) fn new(
        (name, what): (&str, &str),
        one: &[Sample],
        two: &[Sample],
        bare: f64,
        instructions: Option<f64>,
    ) -> Result<Self, String> {
        let mid = |samples: &[Sample], of: fn(&Sample) -> f64| {
            let mut all: Vec<f64> = samples.iter().map(of).collect();
            all.sort_by(f64::total_cmp);
            all[all.len() / 2]
        };
        let first = &one[0];
        if let Some(other) = one.iter().chain(two).find(|s| s.digest != first.digest) {
            return Err(format!("{}: digests differ: {} and {}", name, first.digest, other.digest));
        }
        let (hops, cpu_s) = (first.hops as f64, mid(one, |s| s.cpu_s));
        Ok(Figures {
            name: name.into(),
            what: what.into(),
            hosts: first.hosts,
            hops: first.hops,
            cpu_s,
            hops_per_cpu_s: hops / cpu_s,
            hops_per_wall_s: hops / mid(one, |s| s.wall_s),
            hops_per_wall_s_2: hops / mid(two, |s| s.wall_s),
            instructions_per_hop: instructions,
            bytes_per_host: (mid(one, |s| s.peak_bytes) - bare) / first.hosts as f64,
            setup_cpu_s: mid(one, |s| s.setup_cpu_s),
            setup_wall_s: mid(one, |s| s.setup_wall_s),
            complete: first.complete,
            digest: first.digest.clone(),
        })
    }

    /// Speed on two threads divided by that on one.
    fn gain(&self) -> f64 {
        self.hops_per_wall_s_2 / self.hops_per_wall_s
    }
}

impl Report {
    /// Reads a bench from a file.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        serde_json::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))
    }

    /// Writes the bench to a file.
    pub(crate) fn write(&self, path: &Path) -> Result<(), String> {
        let text = serde_json::to_string_pretty(self).map_err(|e| e.to_string())? + "\n";
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        }
        std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
    }

    /// The table for a terminal, with ratios to `release` in brackets.
    pub(crate) fn table(&self, release: Option<&Report>) -> String {
        let mut table = Table::new();
        table.load_style(TableStyle::new());
        table.set_header([
            "workload",
            "M hops",
            "M hops\n/ CPU s",
            "M hops / wall s\n1 thread",
            "\n2 threads",
            "\nratio",
            "instr\n/ hop",
            "KB\n/ host",
            "set-up\nCPU ms",
            "\nwall ms",
            "",
        ]);
        for f in &self.workloads {
            let then = release.and_then(|r| r.workloads.iter().find(|then| then.name == f.name));
            let than =
                |now: f64, then: Option<f64>| then.map_or(String::new(), |t| format!(" ({:.2}x)", now / t));
            let counted = f.instructions_per_hop.map_or("-".into(), |now| {
                format!("{now:.0}{}", than(now, then.and_then(|then| then.instructions_per_hop)))
            });
            table.add_row([
                f.name.clone(),
                format!("{:.1}", f.hops as f64 / 1e6),
                format!(
                    "{:.1}{}",
                    f.hops_per_cpu_s / 1e6,
                    than(f.hops_per_cpu_s, then.map(|t| t.hops_per_cpu_s))
                ),
                format!("{:.1}", f.hops_per_wall_s / 1e6),
                format!("{:.1}", f.hops_per_wall_s_2 / 1e6),
                format!("{:.2}", f.gain()),
                counted,
                format!(
                    "{:.1}{}",
                    f.bytes_per_host / 1e3,
                    than(f.bytes_per_host, then.map(|t| t.bytes_per_host))
                ),
                format!("{:.1}", f.setup_cpu_s * 1e3),
                format!("{:.1}", f.setup_wall_s * 1e3),
                if f.complete { String::new() } else { "NOT complete".into() },
            ]);
        }
        for column in 1..10 {
            if let Some(column) = table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let mut text = format!("{}\n{table}\n", self.source());
        if let Some(release) = release {
            let _ = writeln!(text, "In brackets: against the last release, {}", release.source());
        }
        text
    }

    fn source(&self) -> String {
        let Machine { cpu, cores, date, version, commit } = &self.machine;
        format!(
            "{cpu}, {cores} cores, {date}, version {version}, commit {commit}; medians of {} runs.",
            self.runs
        )
    }
}
