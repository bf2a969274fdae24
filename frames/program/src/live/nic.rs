//! `ropewalk nic`: the reliability of RNICs in front of hosts that lack it.

use super::carry::{Carrier, Machine, Wish};
use super::failed;
use super::io::{Io, Open};
use crate::cli::NicArgs;
use crate::failure::Failure;
use bump::{Bump, Face, Out, Personality, Settings, Side};
use model::{Rate, Time};
use ports::signals::Signals;
use rnic::NicConfig;
use scenario::terminal::note;
use scenario::{Finding, TableFile};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value as Json;
use std::sync::OnceLock;
use std::time::Duration;

/// The file of `ropewalk nic`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct File {
    /// The NICs. Put those of both ends of a connection into one file if possible: the receiving one then knows where a
    /// connection starts.
    pub bump: Vec<Entry>,
    /// The kind of all NICs: loss recovery and congestion control, with the keys of a scenario's `[nic]`. The retransmission
    /// timer is the host's.
    #[serde(default)]
    pub nic: NicConfig,
}

/// A NIC.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Entry {
    /// Name in logs and counters.
    pub name: String,
    /// The port to the host.
    pub host: Io,
    /// The port to the network.
    pub network: Io,
    /// Rate of the line. Default: none; packets then leave at once. A congestion control that has a rate needs it.
    pub rate: Option<Rate>,
}

/// The JSON Schema of [`File`].
pub fn schema() -> &'static Json {
    static SCHEMA: OnceLock<Json> = OnceLock::new();
    SCHEMA.get_or_init(scenario::schema_of::<File>)
}

/// Reads and checks a file.
///
/// # Errors
/// The first mistake, with its position.
pub fn read(file: &TableFile) -> Result<(File, Personality), Finding> {
    let mut read: File = file.read()?;
    file.fill_nic(&mut read.nic)?;
    let personality = Personality::new(&read.nic)
        .map_err(|unfit| file.wrong(&format!("nic.{}", unfit.field), &unfit.reason))?;
    if read.bump.is_empty() {
        return Err(file.wrong("bump", "expected at least one [[bump]]"));
    }
    for (i, entry) in read.bump.iter().enumerate() {
        if let Some(c) = entry.name.chars().find(|c| "\"\\".contains(*c)) {
            let text = format!("expected a name without `{c}`, found `{}`", entry.name);
            return Err(file.wrong(&format!("bump.{i}.name"), &text));
        }
        if let Some(j) = read.bump[..i].iter().position(|other| other.name == entry.name) {
            let text = format!("the name `{}` is that of entry {} already", entry.name, j + 1);
            return Err(file.wrong(&format!("bump.{i}.name"), &text));
        }
        if entry.rate.is_none() && personality.has_rate() {
            let name = read.nic.congestion.name();
            let text =
                format!("the key `rate` is missing: `congestion.{name}` must know the rate of the line");
            return Err(file.wrong(&format!("bump.{i}"), &text));
        }
    }
    Ok((read, personality))
}

/// Runs until SIGTERM.
///
/// # Errors
/// If the file is wrong, or the system refuses.
pub fn run(name: &str, args: &NicArgs) -> Result<(), Failure> {
    let (file, personality) = read(&TableFile::open(name)?)?;
    if args.check {
        return Ok(());
    }
    let signals = Signals::listen().map_err(|e| failed("signals cannot be taken", &e))?;
    let mut ports = Vec::new();
    for entry in &file.bump {
        ports.push(Open::new(format!("{}-host", entry.name), &entry.host)?);
        ports.push(Open::new(format!("{}-network", entry.name), &entry.network)?);
    }
    let nics = file.bump.iter().map(|entry| entry.rate).collect();
    let nics = Nics {
        file: name.to_owned(),
        names: file.bump.into_iter().map(|entry| entry.name).collect(),
        bump: Bump::new(&Settings { nics, personality }),
    };
    Carrier::new(nics, ports, &args.live)?.run(signals)
}

/// The NICs: the port to the host of NIC n is 2n, that to the network 2n + 1.
struct Nics {
    /// Path of their settings.
    file: String,
    names: Vec<String>,
    bump: Bump,
}

impl Machine for Nics {
    const METRICS: &'static str = "ropewalk_nic";

    fn frame(&mut self, now: Duration, port: usize, bytes: &[u8]) {
        let side = if port.is_multiple_of(2) { Side::Host } else { Side::Network };
        self.bump.frame(time(now), Face { nic: port / 2, side }, bytes.to_vec());
    }

    fn tick(&mut self, now: Duration) {
        self.bump.tick(time(now));
    }

    fn due(&mut self) -> Option<Duration> {
        self.bump.poll_at().map(|at| Duration::from_nanos(at.ps().div_ceil(1000)))
    }

    fn wish<R>(&mut self, grant: impl FnOnce(Wish<'_>) -> R) -> Option<R> {
        Some(match self.bump.poll()? {
            Out::Send { face, frame } => {
                let port = 2 * face.nic + usize::from(face.side == Side::Network);
                grant(Wish::Send { port, at: None, bytes: &frame })
            }
            Out::Note(note) => grant(Wish::Note(&note)),
        })
    }

    fn hang_up(&mut self) {
        match TableFile::open(&self.file).and_then(|file| read(&file)) {
            Ok((_, personality)) => {
                self.bump.set_personality(&personality);
                note("new connections get the settings of [nic] as they are now");
            }
            Err(error) => note(&format!("{}; the old settings stay", error.located())),
        }
    }

    fn each(&self, mut row: impl FnMut(&str, &str, &str, u64)) {
        for (n, name) in self.names.iter().enumerate() {
            let counters = self.bump.counters(n).copied().unwrap_or_default();
            for (counter, help, value) in counters.all() {
                row(counter, help, &format!("nic=\"{name}\""), value);
            }
        }
    }
}

fn time(since: Duration) -> Time {
    Time::from_ns(since.as_nanos() as u64)
}
