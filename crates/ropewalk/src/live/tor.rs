//! `ropewalk tor`: a software ToR, or a whole two-tier fabric, between real ports.

use super::clock::Clock;
use super::io::{Io, Open, Sockets};
use super::keep::Keep;
use super::status::{Reports, Row};
use super::{DRAIN, STATUS, TURN, failed};
use crate::cli::{LiveArgs, TorArgs};
use lab::failure::Failure;
use ports::pcap::Direction;
use ports::signals::{Signal, Signals};
use scenario::{Finding, TableFile};
use std::time::Duration;
use tor::config::{Config, Link};
use tor::{Out, Pool, PortId, Settings, Time, Tor};

/// Buffers of frames. Our choice: 4096 frames wait at most, which is 1 s of a lab's links.
const BUFFERS: u32 = 4096;

/// Reads and checks a file.
///
/// # Errors
/// The first mistake, with its position.
pub fn read(name: &str) -> Result<Config, Finding> {
    let file = TableFile::open(name)?;
    let config =
        tor::config::parse(name, file.text()).map_err(|e| file.wrong_at(e.line, e.column, &e.message))?;
    for warning in &config.warnings {
        crate::print::note(&format!("warning: {warning}"));
    }
    Ok(config)
}

/// Opens what the ports are joined to.
fn open(config: &Config) -> Result<Vec<Open>, Failure> {
    let ports = config.settings.ports.iter().zip(&config.links);
    ports
        .map(|(port, link)| {
            let none = |what: &str| Failure::Asked(format!("port {}: {what}", port.name));
            let io = match link {
                Link::Unix { bind, peer } => Io::Unix(Sockets { bind: bind.into(), peer: peer.into() }),
                Link::Packet(name) => Io::Packet(name.clone()),
                Link::Tap(name) => Io::Tap(name.clone()),
                Link::Pcap(_) => return Err(none("`pcap` is for `ropewalk tor replay`")),
                Link::None => return Err(none("it is joined to nothing: add `unix`, `packet` or `tap`")),
            };
            Open::new(port.name.clone(), &io)
        })
        .collect()
}

/// Runs until SIGTERM.
///
/// # Errors
/// If the file is wrong, or the system refuses.
pub fn run(name: &str, args: &TorArgs) -> Result<(), Failure> {
    let config = read(name)?;
    match config.settings.events.len() {
        0 => {}
        events if args.allow_inject => {
            crate::print::note(&format!(
                "this run is not clean: {events} rules inject events into its frames"
            ));
        }
        _ => {
            let text = "the file injects events, which damage frames on purpose: say --allow-inject, or remove [[event]]";
            return Err(Failure::Asked(format!("{name}: {text}")));
        }
    }
    let args = &args.live;
    let signals = Signals::listen().map_err(|e| failed("signals cannot be taken", &e))?;
    Switch::new(&config.settings, open(&config)?, args)?.run(signals)
}

/// A ToR between open ports.
pub struct Switch {
    tor: Tor,
    pool: Pool,
    ports: Vec<Open>,
    clock: Clock,
    reports: Reports,
    keep: Option<Keep>,
    /// Frames for which no buffer was free.
    no_buffer: u64,
}

impl Switch {
    /// A ToR with these settings between as many ports.
    ///
    /// # Errors
    /// If the decision log cannot be created.
    pub fn new(settings: &Settings, ports: Vec<Open>, args: &LiveArgs) -> Result<Self, Failure> {
        Ok(Switch {
            tor: Tor::new(settings),
            pool: Pool::new(BUFFERS, tor::frame::LONGEST),
            ports,
            clock: Clock::start(),
            reports: Reports::new(args)?,
            keep: args.pcap.as_deref().map(|path| Keep::new(path, args.pcap_frames)),
            no_buffer: 0,
        })
    }

    /// Runs until SIGTERM.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn run(mut self, mut signals: Signals) -> Result<(), Failure> {
        let mut report_at = Duration::ZERO;
        let mut end_at = None;
        while end_at.is_none_or(|at| self.clock.now() < at) {
            if self.clock.now() >= report_at {
                self.report()?;
                report_at = self.clock.now() + STATUS;
            }
            self.wait(&signals, end_at.unwrap_or(report_at).min(report_at))?;
            while let Some(signal) = signals.take().map_err(|e| failed("signals cannot be read", &e))? {
                match signal {
                    Signal::End => end_at = Some(self.clock.now() + DRAIN),
                    Signal::HangUp => crate::print::note("the settings of a running ToR cannot change yet"),
                }
            }
            self.turn(end_at.is_none())?;
        }
        self.report()?;
        match &mut self.keep {
            Some(keep) => keep.write(self.ports.iter().map(|port| port.name.as_str())),
            None => Ok(()),
        }
    }

    /// Waits until a frame, a signal, or a time at which something is due.
    fn wait(&mut self, signals: &Signals, until: Duration) -> Result<(), Failure> {
        let due = self.tor.poll_at().map(|at| Duration::from_nanos(at.nanos()));
        let until = due.map_or(until, |due| due.min(until));
        let limit = Some(until.saturating_sub(self.clock.now()));
        ports::wait(self.ports.iter().map(|open| &open.port), signals, limit)
            .map_err(|e| failed("ports cannot be awaited", &e))
    }

    /// Carries the frames that have come, unless the command is about to end, and those that are due.
    fn turn(&mut self, reads: bool) -> Result<(), Failure> {
        for n in 0..self.ports.len() {
            let Switch { tor, pool, ports, clock, keep, no_buffer, .. } = self;
            if reads {
                ports[n].receive(TURN, |bytes| {
                    let now = clock.now();
                    if let Some(keep) = keep {
                        keep.add(n, now, Direction::In, bytes);
                    }
                    match pool.copy_of(bytes) {
                        Some(frame) => tor.frame(time(now), PortId(n as u16), frame, pool),
                        None => *no_buffer += 1,
                    }
                })?;
            }
            self.send()?;
        }
        self.tor.tick(time(self.clock.now()), &mut self.pool);
        self.send()?;
        self.ports.iter_mut().try_for_each(Open::flush)
    }

    /// Does what the ToR wants done.
    fn send(&mut self) -> Result<(), Failure> {
        while let Some(out) = self.tor.poll() {
            match out {
                Out::Send { started, port, frame, .. } => {
                    let bytes = self.pool.bytes(&frame);
                    if let Some(keep) = &mut self.keep {
                        keep.add(port.index(), Duration::from_nanos(started.nanos()), Direction::Out, bytes);
                    }
                    let sent = self.ports[port.index()].send(bytes);
                    self.pool.put_back(frame);
                    sent?;
                }
                Out::Note(note) => self.reports.note(&note)?,
            }
        }
        Ok(())
    }

    fn report(&mut self) -> Result<(), Failure> {
        let mut rows = Vec::new();
        let mut add = |name: &str, help: &str, labels: &str, value| {
            let [name, help, labels] = [name, help, labels].map(str::to_owned);
            rows.push(Row { name, help, labels, value });
        };
        self.tor.counters().each(|name, labels, value| add(name, "", labels, value));
        for port in &mut self.ports {
            port.each(&mut add);
        }
        add("no_buffer", "Frames for which no buffer was free.", "", self.no_buffer);
        // The text format wants all rows of a name together.
        rows.sort_by(|a, b| a.name.cmp(&b.name));
        self.reports.write("ropewalk_tor", self.clock.now().as_secs_f64(), &rows)
    }
}

fn time(since: Duration) -> Time {
    Time::from_nanos(since.as_nanos() as u64)
}
