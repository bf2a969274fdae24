//! `ropewalk tor`.

use crate::cli::{TorArgs, TorCommand};
use crate::print;
use lab::failure::Failure;
use pcap_file::PcapError;
use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::{Block, PcapNgReader};
use std::fmt::Write;
use std::path::Path;
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
        Some(TorCommand::Check { file }) => {
            let config = load(file)?;
            for warning in &config.warnings {
                print::note(&format!("warning: {warning}"));
            }
            print::out(&summary(&file.display().to_string(), &config))
        }
        Some(TorCommand::Replay { file }) => replay(file, &load(file)?),
    }
}

/// Carries frames between real ports until a signal ends it.
#[cfg(target_os = "linux")]
fn carry(args: &TorArgs) -> Result<(), Failure> {
    crate::live::tor::run(args.file.as_deref().unwrap_or_default(), &args.live)
}

/// Real frames need Linux.
#[cfg(not(target_os = "linux"))]
fn carry(_: &TorArgs) -> Result<(), Failure> {
    Err(Failure::Asked("`ropewalk tor FILE` needs Linux".to_owned()))
}

/// Lets captured frames pass the ToR, and prints its decisions and its counters.
fn replay(file: &Path, config: &Config) -> Result<(), Failure> {
    let mut frames = Vec::new();
    for (link, n) in config.links.iter().zip(0..) {
        let Link::Pcap(name) = link else { continue };
        // A capture is beside the fabric's file, unless its path is absolute.
        let path = file.parent().unwrap_or(Path::new("")).join(name);
        let failed =
            |e: &dyn std::fmt::Display| Failure::Asked(format!("cannot read {}: {e}", path.display()));
        let bytes = std::fs::read(&path).map_err(|e| failed(&e))?;
        captured(&bytes, PortId(n), &mut frames).map_err(|e| failed(&e))?;
    }
    if frames.is_empty() {
        let name = file.display();
        return Err(Failure::Asked(format!("{name}: no port has frames to replay: give one a key `pcap`")));
    }
    frames.sort_by_key(|(at, port, _)| (*at, *port));
    let start = frames[0].0;
    let frames = frames.into_iter().map(|(at, port, bytes)| (instant(at.saturating_sub(start)), port, bytes));
    let mut lines = String::new();
    let counters = tor::replay(&config.settings, frames, |told| {
        if let Told::Note(note) = told {
            let _ = writeln!(lines, "{note}");
        }
    });
    counters.each(|name, labels, value| {
        if value > 0 {
            let _ = writeln!(lines, "{name}{{{labels}}} {value}");
        }
    });
    print::out(&lines)
}

fn instant(since: Duration) -> Time {
    Time::from_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

/// Reads the frames of a pcap or a pcapng file.
fn captured(
    bytes: &[u8],
    port: PortId,
    frames: &mut Vec<(Duration, PortId, Vec<u8>)>,
) -> Result<(), PcapError> {
    /// Type of the block with which a pcapng file begins.
    const SECTION: &[u8] = &[0x0A, 0x0D, 0x0D, 0x0A];
    if bytes.starts_with(SECTION) {
        let mut file = PcapNgReader::new(bytes)?;
        while let Some(block) = file.next_block() {
            if let Block::EnhancedPacket(packet) = block? {
                frames.push((packet.timestamp, port, packet.data.into_owned()));
            }
        }
    } else {
        let mut file = PcapReader::new(bytes)?;
        while let Some(packet) = file.next_packet() {
            let packet = packet?;
            frames.push((packet.timestamp, port, packet.data.into_owned()));
        }
    }
    Ok(())
}

/// Reads a fabric.
fn load(file: &Path) -> Result<Config, Failure> {
    let name = file.display().to_string();
    let text =
        std::fs::read_to_string(file).map_err(|e| Failure::Asked(format!("cannot read {name}: {e}")))?;
    tor::config::parse(&name, &text).map_err(|e| Failure::Asked(e.to_string()))
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
            Link::Xdp(name) => format!("xdp {name}"),
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
