//! `ropewalk tor`.

use crate::cli::{ExpectArg, TorArgs, TorCheckArgs, TorCommand};
use crate::failure::Failure;
use checkers::{Capture, Expect, Log, SwitchRule, Way};
use ports::pcap::{Captured, Direction};
use scenario::file::{self, Reading};
use scenario::terminal::{note, out};
use std::fmt::Write;
use std::io::Read;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;
use tor::config::{Config, Link};
use tor::{Mode, PortId, Rate, Span, Time, Told};

/// Works with the software ToR.
///
/// # Errors
/// A file cannot be read, or it has a mistake.
pub fn run(args: &TorArgs) -> Result<(), Failure> {
    match &args.command {
        None => carry(args),
        Some(TorCommand::Check(args)) => check(args),
        Some(TorCommand::Replay { file, pcap, decisions }) => {
            let config = load(file)?;
            let frames = match pcap {
                Some(capture) => recorded(capture, &config)?,
                None => fed(file, &config)?,
            };
            replay(&config, frames, *decisions)
        }
    }
}

/// Checks a fabric's file, or the frames of a capture.
fn check(args: &TorCheckArgs) -> Result<(), Failure> {
    let mut first = Vec::new();
    let head = std::fs::File::open(&args.file).and_then(|file| file.take(4).read_to_end(&mut first));
    head.map_err(|e| unreadable(&args.file, &e))?;
    if ports::pcap::is_capture(&first) {
        return check_capture(args);
    }
    if args.expect.is_some() || args.log.is_some() {
        let name = args.file.display();
        return Err(Failure::Asked(format!(
            "{name} is no capture: its first bytes are not those of pcapng or pcap"
        )));
    }
    let config = load(&args.file)?;
    for warning in &config.warnings {
        note(&format!("warning: {warning}"));
    }
    out(&summary(&args.file.display().to_string(), &config)).map_err(Failure::Output)
}

fn unreadable(path: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::Asked(format!("cannot read {}: {error}", path.display()))
}

/// Reads a capture; returns its frames and the names of its interfaces.
fn captured(path: &Path) -> Result<(Vec<Captured>, Vec<String>), Failure> {
    let mut frames = Vec::new();
    let file = std::fs::File::open(path).map_err(|e| unreadable(path, &e))?;
    let names = ports::pcap::read(std::io::BufReader::new(file), |frame| frames.push(frame));
    Ok((frames, names.map_err(|e| unreadable(path, &e))?))
}

fn check_capture(args: &TorCheckArgs) -> Result<(), Failure> {
    let expect = args.expect.map(|expect| match expect {
        ExpectArg::GoBackN => Expect::GoBackN,
        ExpectArg::NicSr => Expect::NicSr,
        ExpectArg::Themis => Expect::Themis,
    });
    if expect == Some(Expect::Themis) && args.paths.is_none() {
        return Err(Failure::Asked(
            "--expect themis needs --paths N: the number of paths over which the switch sprays".into(),
        ));
    }
    let paths = args.paths.unwrap_or(1);
    let rule = if args.literal {
        SwitchRule::literal(paths, args.ring)
    } else {
        SwitchRule::sound(paths, args.ring)
    };
    let interval = model::Time::from_str(&args.cnp_interval)
        .map_err(|e| Failure::Asked(format!("--cnp-interval {}: {e}", args.cnp_interval)))?;
    let read = |path: &std::path::PathBuf| {
        let text = file::read(path, Reading::LOG);
        text.map_err(|e| Failure::Asked(e.about(&path.display().to_string())))
    };
    let log = args.log.as_ref().map(read).transpose()?.map(|text| Log::parse(&text));
    let (frames, ports) = captured(&args.file)?;
    let frames = frames.into_iter().map(|frame| checkers::Frame {
        at: instant(frame.at).nanos(),
        port: frame.interface,
        way: match frame.direction {
            Some(Direction::In) => Way::In,
            Some(Direction::Out) => Way::Out,
            None => Way::Through,
        },
        number: frame.number,
        bytes: frame.bytes,
    });
    let capture = Capture { ports, frames: frames.collect() };
    let settings = checkers::Settings {
        expect,
        rule,
        cnp_interval: interval.ps() / 1000,
        under_way: args.under_way,
        ack_timeout: args.ack_timeout,
        log,
    };
    let report = checkers::check(&capture, &settings).map_err(|e| Failure::Asked(e.to_string()))?;
    out(&report.to_string()).map_err(Failure::Output)?;
    if report.holds() { Ok(()) } else { Err(Failure::Broken) }
}

/// Carries frames between real ports until a signal ends it.
#[cfg(target_os = "linux")]
fn carry(args: &TorArgs) -> Result<(), Failure> {
    crate::live::tor::run(args.file.as_deref().unwrap_or_default(), args)
}

/// Real frames need Linux.
#[cfg(not(target_os = "linux"))]
fn carry(_: &TorArgs) -> Result<(), Failure> {
    Err(Failure::Asked("`ropewalk tor FILE` needs Linux".to_owned()))
}

/// The frames that the captures of a fabric's ports have, with times from the first one on.
fn fed(file: &Path, config: &Config) -> Result<Vec<(Time, PortId, Vec<u8>)>, Failure> {
    let mut frames = Vec::new();
    for (link, n) in config.links.iter().zip(0..) {
        let Link::Pcap(name) = link else { continue };
        // A capture is beside the fabric's file, unless its path is absolute.
        let path = file.parent().unwrap_or(Path::new("")).join(name);
        frames.extend(captured(&path)?.0.into_iter().map(|frame| (frame.at, PortId(n), frame.bytes)));
    }
    if frames.is_empty() {
        let name = file.display();
        return Err(Failure::Asked(format!("{name}: no port has frames to replay: give one a key `pcap`")));
    }
    frames.sort_by_key(|(at, port, _)| (*at, *port));
    let start = frames[0].0;
    Ok(frames.into_iter().map(|(at, port, bytes)| (instant(at.saturating_sub(start)), port, bytes)).collect())
}

/// The frames that came in at the ports of a running ToR, at their times.
fn recorded(path: &Path, config: &Config) -> Result<Vec<(Time, PortId, Vec<u8>)>, Failure> {
    let (frames, names) = captured(path)?;
    let place = |name: &String| config.settings.ports.iter().position(|port| port.name == *name);
    let places: Vec<Option<usize>> = names.iter().map(place).collect();
    let mut inwards = Vec::new();
    for frame in frames.into_iter().filter(|frame| frame.direction == Some(Direction::In)) {
        let interface = frame.interface as usize;
        let Some(place) = places.get(interface).copied().flatten() else {
            let name = names.get(interface).map_or("", String::as_str);
            return Err(Failure::Asked(format!("{}: the fabric has no port {name}", path.display())));
        };
        inwards.push((instant(frame.at), PortId(place as u16), frame.bytes));
    }
    if inwards.is_empty() {
        return Err(Failure::Asked(format!(
            "{}: no frame came in: is it a capture of `ropewalk tor`?",
            path.display()
        )));
    }
    Ok(inwards)
}

/// Lets frames pass the ToR, and prints its decisions and its counters.
fn replay(config: &Config, frames: Vec<(Time, PortId, Vec<u8>)>, decisions: bool) -> Result<(), Failure> {
    let mut lines = String::new();
    let counters = tor::replay(&config.settings, frames, |told| {
        if let Told::Note(note) = told {
            let _ = writeln!(lines, "{note}");
        }
    });
    if !decisions {
        counters.each(|name, labels, value| {
            if value > 0 {
                let _ = writeln!(lines, "{name}{{{labels}}} {value}");
            }
        });
    }
    out(&lines).map_err(Failure::Output)
}

fn instant(since: Duration) -> Time {
    Time::from_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

/// Reads a fabric.
fn load(path: &Path) -> Result<Config, Failure> {
    let name = path.display().to_string();
    let text = file::read(path, Reading::SCENARIO).map_err(|e| Failure::Asked(e.about(&name)))?;
    tor::config::parse(&name, &text).map_err(|e| match scenario::unread(&name, text.as_bytes()) {
        Some(unread) => Failure::Input(unread),
        None => Failure::Asked(e.to_string()),
    })
}

/// The fabric in words, a line for each port and spine.
fn summary(name: &str, config: &Config) -> String {
    let settings = &config.settings;
    let themis = match settings.themis.mode {
        Mode::Off => "off".to_owned(),
        mode => {
            let mode = if mode == Mode::Sound { "sound" } else { "literal" };
            format!(
                "{mode}, rings of {} for {} connections",
                settings.themis.ring, settings.themis.connections
            )
        }
    };
    let mut text = format!(
        "# {name}: {} ports on {} ToRs, {} spines; Themis: {themis}\n",
        settings.ports.len(),
        settings.leaves(),
        settings.spines.len()
    );
    for (port, link) in settings.ports.iter().zip(&config.links) {
        let link = match link {
            Link::None => "joined to nothing".into(),
            Link::Unix { bind, peer } => format!("unix {bind} to {peer}"),
            Link::Packet(name) => format!("packet {name}"),
            Link::Tap(name) => format!("tap {name}"),
            Link::Pcap(file) => format!("pcap {file}"),
        };
        let kind = if port.uplink { "uplink" } else { "port" };
        let (rate, last_hop) = (rate(port.rate), amount(port.last_hop));
        // Writing to a string cannot fail.
        let _ =
            writeln!(text, "{kind} {}: ToR {}, {rate}, last hop {last_hop}, {link}", port.name, port.leaf);
    }
    for (n, spine) in settings.spines.iter().enumerate() {
        let (delay, jitter, rate) = (amount(spine.delay), amount(spine.jitter), rate(spine.rate));
        let _ = write!(
            text,
            "spine {n}: delay {delay}, jitter up to {jitter}, {rate}, loss {:.4}",
            spine.loss.value()
        );
        for (from, to) in &spine.down {
            let _ = write!(text, ", down from {from} s to {to} s");
        }
        text.push('\n');
    }
    if !settings.events.is_empty() {
        let _ = writeln!(text, "{} injected events: runs are not clean", settings.events.len());
    }
    text
}

fn rate(rate: Option<Rate>) -> String {
    rate.map_or("no rate limit".into(), |rate| match rate.bits() {
        bits if bits.is_multiple_of(1_000_000_000) => format!("{} Gbit/s", bits / 1_000_000_000),
        bits if bits.is_multiple_of(1_000_000) => format!("{} Mbit/s", bits / 1_000_000),
        bits => format!("{bits} bit/s"),
    })
}

fn amount(span: Span) -> String {
    match span.nanos() {
        nanos if nanos.is_multiple_of(1_000_000) => format!("{} ms", nanos / 1_000_000),
        nanos if nanos.is_multiple_of(1_000) => format!("{} us", nanos / 1_000),
        nanos => format!("{nanos} ns"),
    }
}
