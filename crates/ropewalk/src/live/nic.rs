//! `ropewalk nic`: the reliability of RNICs in front of hosts that lack it.

use super::clock::Clock;
use super::io::{Io, Open};
use super::keep::Keep;
use super::status::{Reports, Row};
use super::{DRAIN, STATUS, TURN, failed};
use crate::cli::{LiveArgs, NicArgs};
use bump::{Bump, Face, Out, Personality, Settings, Side};
use lab::failure::Failure;
use model::{Rate, Time};
use ports::pcap::Direction;
use ports::signals::{Signal, Signals};
use rnic::NicConfig;
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
    let mut signals = Signals::listen().map_err(|e| failed("signals cannot be taken", &e))?;
    let mut nics = Nics::open(&file, &personality, &args.live)?;
    let mut report_at = Duration::ZERO;
    let mut end_at = None;
    while end_at.is_none_or(|at| nics.clock.now() < at) {
        if nics.clock.now() >= report_at {
            nics.report()?;
            report_at = nics.clock.now() + STATUS;
        }
        nics.wait(&signals, end_at.unwrap_or(report_at).min(report_at))?;
        while let Some(signal) = signals.take().map_err(|e| failed("signals cannot be read", &e))? {
            match signal {
                Signal::End => end_at = Some(nics.clock.now() + DRAIN),
                Signal::HangUp => match TableFile::open(name).and_then(|file| read(&file)) {
                    Ok((_, personality)) => {
                        nics.bump.set_personality(&personality);
                        crate::print::note("new connections get the settings of [nic] as they are now");
                    }
                    Err(error) => crate::print::note(&format!("{}; the old settings stay", error.located())),
                },
            }
        }
        nics.turn(end_at.is_none())?;
    }
    nics.report()?;
    match &mut nics.keep {
        Some(keep) => keep.write(nics.ports.iter().map(|port| port.name.as_str())),
        None => Ok(()),
    }
}

/// The NICs with their ports: the port to the host of NIC n is 2n, that to the network 2n + 1.
struct Nics {
    names: Vec<String>,
    ports: Vec<Open>,
    bump: Bump,
    clock: Clock,
    reports: Reports,
    keep: Option<Keep>,
}

impl Nics {
    fn open(file: &File, personality: &Personality, args: &LiveArgs) -> Result<Self, Failure> {
        let mut ports = Vec::new();
        for entry in &file.bump {
            ports.push(Open::new(format!("{}-host", entry.name), &entry.host)?);
            ports.push(Open::new(format!("{}-network", entry.name), &entry.network)?);
        }
        let nics = file.bump.iter().map(|entry| entry.rate).collect();
        Ok(Nics {
            names: file.bump.iter().map(|entry| entry.name.clone()).collect(),
            ports,
            bump: Bump::new(&Settings { nics, personality: personality.clone() }),
            clock: Clock::start(),
            reports: Reports::new(args)?,
            keep: args.pcap.as_deref().map(|path| Keep::new(path, args.pcap_frames)),
        })
    }

    fn now(&self) -> Time {
        Time::from_ns(self.clock.now().as_nanos() as u64)
    }

    /// Waits until a frame, a signal, or a time at which something is due.
    fn wait(&mut self, signals: &Signals, until: Duration) -> Result<(), Failure> {
        let due = self.bump.poll_at().map(|at| Duration::from_nanos(at.ps().div_ceil(1000)));
        let until = due.map_or(until, |due| due.min(until));
        let limit = Some(until.saturating_sub(self.clock.now()));
        ports::wait(self.ports.iter().map(|open| &open.port), signals, limit)
            .map_err(|e| failed("ports cannot be awaited", &e))
    }

    /// Carries the frames that have come, unless the command is about to end, and those that are due.
    fn turn(&mut self, reads: bool) -> Result<(), Failure> {
        for n in 0..self.ports.len() {
            let side = if n % 2 == 0 { Side::Host } else { Side::Network };
            let face = Face { nic: n / 2, side };
            let (clock, bump, keep) = (self.clock, &mut self.bump, &mut self.keep);
            if reads {
                self.ports[n].receive(TURN, |frame| {
                    let now = clock.now();
                    if let Some(keep) = keep {
                        keep.add(n, now, Direction::In, frame);
                    }
                    bump.frame(Time::from_ns(now.as_nanos() as u64), face, frame.to_vec());
                })?;
            }
            self.send()?;
        }
        self.bump.tick(self.now());
        self.send()?;
        self.ports.iter_mut().try_for_each(Open::flush)
    }

    /// Does what the NICs want done.
    fn send(&mut self) -> Result<(), Failure> {
        while let Some(out) = self.bump.poll() {
            match out {
                Out::Send { face, frame } => {
                    let n = 2 * face.nic + usize::from(face.side == Side::Network);
                    if let Some(keep) = &mut self.keep {
                        keep.add(n, self.clock.now(), Direction::Out, &frame);
                    }
                    self.ports[n].send(&frame)?;
                }
                Out::Note(note) => self.reports.note(&note)?,
            }
        }
        Ok(())
    }

    fn report(&mut self) -> Result<(), Failure> {
        let mut rows = Vec::new();
        for (n, name) in self.names.iter().enumerate() {
            let counters = self.bump.counters(n).copied().unwrap_or_default();
            rows.extend(counters.all().into_iter().map(|(counter, help, value)| Row {
                name: counter.to_owned(),
                help: help.to_owned(),
                labels: format!("nic=\"{name}\""),
                value,
            }));
        }
        for port in &mut self.ports {
            port.each(|name, help, labels, value| {
                let [name, help, labels] = [name, help, labels].map(str::to_owned);
                rows.push(Row { name, help, labels, value });
            });
        }
        // The text format wants all rows of a name together.
        rows.sort_by(|a, b| a.name.cmp(&b.name));
        self.reports.write("ropewalk_nic", self.clock.now().as_secs_f64(), &rows)
    }
}
