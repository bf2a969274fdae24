//! CPU time per frame of the ToR in memory, without ports: `cargo bench -p tor`. It prints; no test asserts a time.
//! `cargo bench -p tor -- "Themis, xor-icrc"` runs one case alone, for example under `valgrind --tool=callgrind`, which counts
//! instructions on a machine that is busy.
#![allow(clippy::print_stdout)]

#[path = "../tests/lab/mod.rs"]
mod lab;

use std::collections::VecDeque;
use std::hint::black_box;
use tor::{Mode, Out, Pool, PortId, Rate, Settings, Span, Spine, Steer, Time, Tor};
use wire::bth::Opcode;
use wire::ecn::Ecn;
use wire::roce::Extension;

const FRAMES: u32 = 2_000_000;
/// Connections, as many as stand in one table of a host.
const CONNECTIONS: u32 = 64;

/// CPU time of this process in nanoseconds (Linux).
fn cpu() -> u64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// True if no case is named on the command line, or this one is. Cargo adds options.
fn is_asked(name: &str) -> bool {
    let mut asked = std::env::args().skip(1).filter(|word| !word.starts_with('-')).peekable();
    asked.peek().is_none() || asked.any(|word| word == name)
}

/// Nanoseconds of CPU time per call.
fn time(count: u32, mut work: impl FnMut(u32)) -> f64 {
    let start = cpu();
    (0..count).for_each(&mut work);
    (cpu() - start) as f64 / f64::from(count)
}

fn frame(connection: u32, payload: usize) -> Vec<u8> {
    let qps = (17 + connection, 1000 + connection);
    let transfer = lab::Transfer { qps, first_psn: 0, ..lab::Transfer::default() };
    transfer.frame(true, Opcode::SendMiddle, 0, Extension::None, payload, false, 0, Ecn::NotEct)
}

/// Forwards frames of 1 kB from one host to another, with rising PSNs. No frame is copied.
fn forward(name: &str, spines: usize, mode: Mode, steer: Steer, slow: bool) {
    if !is_asked(name) {
        return;
    }
    let mut settings = Settings::of_ports(2);
    let delay = if slow { Span::from_micros(5) } else { Span::ZERO };
    settings.spines = vec![Spine { delay, ..Spine::default() }; spines];
    settings.themis.mode = mode;
    settings.steer = steer;
    for (n, port) in settings.ports.iter_mut().enumerate() {
        port.stations.push(lab::mac(n));
        port.rate = Rate::from_bits(100_000_000_000).filter(|_| slow);
    }
    let (mut tor, mut pool) = (Tor::new(&settings), Pool::new(1024, 2048));
    let mut free: VecDeque<_> = (0..CONNECTIONS).filter_map(|n| pool.copy_of(&frame(n, 1024))).collect();
    let nanos = time(FRAMES, |i| {
        let Some(handle) = free.pop_front() else { return };
        // The PSN behind Ethernet, IPv4 and UDP. The ToR does not check the ICRC of data.
        pool.bytes_mut(&handle)[51..54].copy_from_slice(&(i / CONNECTIONS).to_be_bytes()[1..]);
        tor.frame(Time::from_nanos(u64::from(i) * 100), PortId(0), handle, &mut pool);
        while let Some(out) = tor.poll() {
            if let Out::Send { frame, .. } = out {
                free.push_back(frame);
            }
        }
        if free.is_empty() {
            while free.is_empty()
                && let Some(at) = tor.poll_at()
            {
                tor.tick(at, &mut pool);
                while let Some(out) = tor.poll() {
                    if let Out::Send { frame, .. } = out {
                        free.push_back(frame);
                    }
                }
            }
        }
    });
    println!("{name:<32} {nanos:>7.1} ns per frame");
}

fn main() {
    forward("plain switch", 0, Mode::Off, Steer::Port, false);
    forward("four spines", 4, Mode::Off, Steer::Port, false);
    forward("Themis", 4, Mode::Sound, Steer::Port, false);
    forward("Themis, xor-icrc", 4, Mode::Sound, Steer::XorIcrc, false);
    forward("Themis, delays and rates", 4, Mode::Sound, Steer::Port, true);
    if !is_asked("ports") {
        return;
    }
    for payload in [4, 1024, 4096] {
        let mut bytes = frame(0, payload);
        let (len, icrc) = (bytes.len(), bytes.len() - 4);
        let port = |i: u32| 0xC000 | (i as u16 & 7);
        let plain = time(FRAMES, |i| {
            let _ = black_box(wire::patch::set_source_port(&mut bytes[14..], port(i)));
        });
        let mut cache = wire::patch::PortCache::new();
        let cached = time(FRAMES, |i| cache.set_source_port(black_box(&mut bytes), 34, icrc, port(i)));
        println!("a new source port in {len:>4} bytes: {plain:.1} ns, from the cache {cached:.1} ns");
    }
}
