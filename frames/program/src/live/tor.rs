//! `ropewalk tor`: a software ToR, or a whole two-tier fabric, between real ports.

use super::carry::{Carrier, Machine, Wish};
use super::failed;
use super::io::{Io, Open, Sockets};
use crate::cli::TorArgs;
use crate::failure::Failure;
use ports::signals::Signals;
use scenario::terminal::note;
use scenario::{Finding, TableFile};
use std::time::Duration;
use tor::config::{Config, Link};
use tor::{Out, Pool, PortId, Time, Tor};

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
        note(&format!("warning: {warning}"));
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
            note(&format!("this run is not clean: {events} rules inject events into its frames"));
        }
        _ => {
            let text = "the file injects events, which damage frames on purpose: say --allow-inject, or remove [[event]]";
            return Err(Failure::Asked(format!("{name}: {text}")));
        }
    }
    let args = &args.live;
    let signals = Signals::listen().map_err(|e| failed("signals cannot be taken", &e))?;
    let tor = Tor::new(&config.settings);
    let switch = Switch { tor, pool: Pool::new(BUFFERS, tor::frame::LONGEST), no_buffer: 0 };
    Carrier::new(switch, open(&config)?, args)?.run(signals)
}

/// A ToR with its frames.
struct Switch {
    tor: Tor,
    pool: Pool,
    /// Frames for which no buffer was free.
    no_buffer: u64,
}

impl Machine for Switch {
    const METRICS: &'static str = "ropewalk_tor";

    fn frame(&mut self, now: Duration, port: usize, bytes: &[u8]) {
        match self.pool.copy_of(bytes) {
            Some(frame) => self.tor.frame(time(now), PortId(port as u16), frame, &mut self.pool),
            None => self.no_buffer += 1,
        }
    }

    fn tick(&mut self, now: Duration) {
        self.tor.tick(time(now), &mut self.pool);
    }

    fn due(&mut self) -> Option<Duration> {
        self.tor.poll_at().map(|at| Duration::from_nanos(at.nanos()))
    }

    fn wish<R>(&mut self, grant: impl FnOnce(Wish<'_>) -> R) -> Option<R> {
        Some(match self.tor.poll()? {
            Out::Send { started, port, frame, .. } => {
                let (at, bytes) = (Some(Duration::from_nanos(started.nanos())), self.pool.bytes(&frame));
                let done = grant(Wish::Send { port: port.index(), at, bytes });
                self.pool.put_back(frame);
                done
            }
            Out::Note(note) => grant(Wish::Note(&note)),
        })
    }

    fn hang_up(&mut self) {
        note("the settings of a running ToR cannot change yet");
    }

    fn each(&self, mut row: impl FnMut(&str, &str, &str, u64)) {
        self.tor.counters().each(|name, labels, value| row(name, "", labels, value));
        row("no_buffer", "Frames for which no buffer was free.", "", self.no_buffer);
    }
}

fn time(since: Duration) -> Time {
    Time::from_nanos(since.as_nanos() as u64)
}
