//! Carries frames between real ports and what stands between them, until a signal ends it.

use super::clock::Clock;
use super::failed;
use super::io::Open;
use super::keep::Keep;
use super::status::{Reports, Row};
use crate::cli::LiveArgs;
use crate::failure::Failure;
use ports::pcap::Direction;
use ports::signals::{Signal, Signals};
use std::fmt::Display;
use std::time::Duration;

/// Time after SIGTERM in which frames that are under way still leave. Our choice: longer than any path of a lab.
const DRAIN: Duration = Duration::from_millis(100);
/// Time between two writes of the status.
const STATUS: Duration = Duration::from_secs(1);
/// Most frames that are read from one port before the others have their turn.
const TURN: usize = 64;

/// What stands between the ports: a pure state machine, whose times count from the start.
pub trait Machine {
    /// Start of the names of its metrics.
    const METRICS: &'static str;

    /// Takes a frame that has come in at a port.
    fn frame(&mut self, now: Duration, port: usize, bytes: &[u8]);

    /// Does what is due.
    fn tick(&mut self, now: Duration);

    /// The time of the next [`Machine::tick`].
    fn due(&mut self) -> Option<Duration>;

    /// Hands its next wish to `grant`, and returns what that has returned; `None` if there is no wish.
    fn wish<R>(&mut self, grant: impl FnOnce(Wish<'_>) -> R) -> Option<R>;

    /// Reads its settings anew.
    fn hang_up(&mut self);

    /// Calls `row` with name, meaning, labels and value of every counter.
    fn each(&self, row: impl FnMut(&str, &str, &str, u64));
}

/// What a [`Machine`] wants done.
pub enum Wish<'m> {
    /// Send a frame from a port.
    Send {
        /// Number of the port.
        port: usize,
        /// Start of its transmission, if that is not now.
        at: Option<Duration>,
        /// The frame.
        bytes: &'m [u8],
    },
    /// Add a line to the decision log.
    Note(&'m dyn Display),
}

/// A machine between open ports.
pub struct Carrier<M> {
    machine: M,
    ports: Vec<Open>,
    clock: Clock,
    reports: Reports,
    keep: Option<Keep>,
}

impl<M: Machine> Carrier<M> {
    /// A machine between these ports.
    ///
    /// # Errors
    /// If the decision log cannot be created.
    pub fn new(machine: M, ports: Vec<Open>, args: &LiveArgs) -> Result<Self, Failure> {
        let keep = args.pcap.as_deref().map(|path| Keep::new(path, args.pcap_frames));
        Ok(Carrier { machine, ports, clock: Clock::start(), reports: Reports::new(args)?, keep })
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
                    Signal::HangUp => self.machine.hang_up(),
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
        let until = self.machine.due().map_or(until, |due| due.min(until));
        let limit = Some(until.saturating_sub(self.clock.now()));
        ports::wait(self.ports.iter().map(|open| &open.port), signals, limit)
            .map_err(|e| failed("ports cannot be awaited", &e))
    }

    /// Carries the frames that have come, unless the command is about to end, and those that are due.
    fn turn(&mut self, reads: bool) -> Result<(), Failure> {
        for port in 0..self.ports.len() {
            let Carrier { machine, ports, clock, keep, .. } = self;
            if reads {
                ports[port].receive(TURN, |bytes| {
                    let now = clock.now();
                    if let Some(keep) = keep {
                        keep.add(port, now, Direction::In, bytes);
                    }
                    machine.frame(now, port, bytes);
                })?;
            }
            self.grant()?;
        }
        self.machine.tick(self.clock.now());
        self.grant()?;
        self.ports.iter_mut().try_for_each(Open::flush)
    }

    /// Does what the machine wants done.
    fn grant(&mut self) -> Result<(), Failure> {
        let Carrier { machine, ports, clock, reports, keep } = self;
        while let Some(done) = machine.wish(|wish| match wish {
            Wish::Send { port, at, bytes } => {
                if let Some(keep) = keep {
                    keep.add(port, at.unwrap_or_else(|| clock.now()), Direction::Out, bytes);
                }
                ports[port].send(bytes)
            }
            Wish::Note(note) => reports.note(note),
        }) {
            done?;
        }
        Ok(())
    }

    fn report(&mut self) -> Result<(), Failure> {
        let mut rows = Vec::new();
        let mut add = |name: &str, help: &str, labels: &str, value| {
            let [name, help, labels] = [name, help, labels].map(str::to_owned);
            rows.push(Row { name, help, labels, value });
        };
        self.machine.each(&mut add);
        for port in &mut self.ports {
            port.each(&mut add);
        }
        // The text format wants all rows of a name together.
        rows.sort_by(|a, b| a.name.cmp(&b.name));
        self.reports.write(M::METRICS, self.clock.now().as_secs_f64(), &rows)
    }
}
