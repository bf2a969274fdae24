//! Checker 1: the capture is whole, and the switch loses and makes no RoCEv2 frame without a reason.
//!
//! * `sequence-gap`: the switch numbers its frames, and a number is missing.
//! * `time-backwards`: the times of a port and side run backwards.
//! * `frame-lost`: a frame went in, did not come out, and the decision log does not tell why. Without a log, such frames are
//!   counted only. A NACK that came out as an ACK is accounted for.
//! * `frame-made`: a frame came out that had not gone in. Switches with Themis make ACKs of NACKs, and send NACKs again.
//!
//! A capture of one port has no frame on both sides, so the last two rules are left out, and the verdict says so.

use crate::capture::{Capture, Way};
use crate::connections::{Connections, Packet};
use crate::log::Log;
use crate::report::{Report, span};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use tor::frame::Kind;

/// Fields that a switch leaves as they are.
type Same = (IpAddr, IpAddr, u8, u32, u32, u32, usize);

fn same(packet: &Packet) -> Same {
    let roce = &packet.roce;
    let len = roce.icrc - roce.ip;
    (roce.source, roce.destination, roce.opcode, roce.qp.value(), roce.psn.value(), packet.icrc, len)
}

/// Hosts, queue pair and PSN of a NACK.
type Named = (IpAddr, IpAddr, u32, u32);

/// Runs the checker.
pub fn check(capture: &Capture, connections: &Connections, log: Option<&Log>, report: &mut Report) {
    let verdict = &mut report.whole;
    let mut last: Option<u64> = None;
    let mut times: BTreeMap<(u32, Way), u64> = BTreeMap::new();
    for (n, frame) in capture.frames.iter().enumerate() {
        if let (Some(number), Some(before)) = (frame.number, last)
            && number != before + 1
        {
            verdict.breach("sequence-gap", n, format!("number {number} follows {before}"));
        }
        last = frame.number.or(last);
        let latest = times.entry((frame.port, frame.way)).or_default();
        if frame.at < *latest {
            let early = span(*latest - frame.at);
            let port = capture.ports.get(frame.port as usize).map_or("", String::as_str);
            verdict.breach("time-backwards", n, format!("{early} before the frame in front of it at {port}"));
        }
        *latest = frame.at.max(*latest);
    }
    // The first frames may have left a ring of the last ones.
    let cut = capture.frames.first().and_then(|frame| frame.number).unwrap_or(0);
    verdict.count("earlier frames left out", cut);
    if !capture.has_sides() || capture.frames.is_empty() {
        return verdict.fact("sides", "unknown");
    }
    if is_one_port(connections) {
        return verdict
            .fact("sides", "those of one port, so the capture does not show what a switch lost or made");
    }
    balance(connections, cut == 0, log, report);
}

/// True if there are frames of both sides, and none of them was seen on both: a capture of one port, such as the simulator's.
fn is_one_port(connections: &Connections) -> bool {
    let of = |way: Way| connections.packets.iter().filter(move |packet| packet.way == way).map(same);
    let inside: BTreeSet<Same> = of(Way::In).collect();
    let mut out = of(Way::Out).peekable();
    !inside.is_empty() && out.peek().is_some() && !out.any(|packet| inside.contains(&packet))
}

/// Every frame that goes in comes out, once.
fn balance(connections: &Connections, from_start: bool, log: Option<&Log>, report: &mut Report) {
    let verdict = &mut report.whole;
    let mut inside: BTreeMap<Same, Vec<usize>> = BTreeMap::new();
    // NACKs apart, by hosts, queue pair and PSN: they may come out as ACKs, and again.
    let mut nacks: BTreeMap<Named, Nacks> = BTreeMap::new();
    let (mut became, mut again, mut duplicates) = (0, 0, 0);
    for packet in &connections.packets {
        let roce = &packet.roce;
        let to = |psn: u32| (roce.source, roce.destination, roce.qp.value(), psn);
        let psn = roce.psn.value();
        let nack = roce.kind == Kind::Nack;
        if packet.way == Way::In {
            if nack {
                let nacks = nacks.entry(to(psn)).or_default();
                nacks.inside.push(packet.frame);
                nacks.known = true;
            } else {
                inside.entry(same(packet)).or_default().push(packet.frame);
            }
            continue;
        }
        let named = if nack { to(psn) } else { to(roce.psn.next().value()) };
        let of_nack = nacks.get_mut(&named);
        if nack {
            match of_nack {
                Some(nacks) if !nacks.inside.is_empty() => {
                    nacks.inside.remove(0);
                    nacks.passed += 1;
                }
                Some(nacks) if nacks.known => again += 1,
                _ if from_start => made(packet, verdict),
                _ => {}
            }
            continue;
        }
        let waiting = inside.entry(same(packet)).or_default();
        if !waiting.is_empty() {
            waiting.remove(0);
            continue;
        }
        match (roce.kind, of_nack) {
            (Kind::Ack { .. }, Some(nacks)) if !nacks.inside.is_empty() => {
                nacks.inside.remove(0);
                became += 1;
            }
            // The switch sent a NACK of its own before the ACK that it made of the NACK that had gone in.
            (Kind::Ack { .. }, Some(nacks)) if nacks.passed > 0 => {
                nacks.passed -= 1;
                again += 1;
                became += 1;
            }
            _ if log.is_some_and(|log| log.duplicated.contains_key(&(roce.qp.value(), roce.opcode, psn))) => {
                duplicates += 1;
            }
            _ if from_start => made(packet, verdict),
            _ => {}
        }
    }
    verdict.count("NACKs that came out as ACKs", became);
    verdict.count("NACKs sent by the switch", again);
    verdict.count("duplicated by events", duplicates);
    let mut left = Vec::new();
    for ((.., opcode, qp, psn, _, _), frames) in &inside {
        left.extend(frames.iter().map(|frame| (*frame, *opcode, *qp, *psn)));
    }
    for ((.., qp, psn), nacks) in &nacks {
        left.extend(nacks.inside.iter().map(|frame| (*frame, 0x11, *qp, *psn)));
    }
    left.sort_unstable();
    verdict.count("frames that did not come out", left.len() as u64);
    let Some(log) = log else { return };
    let (mut explained, mut dropped) = (log.lost.clone(), log.dropped);
    for (frame, opcode, qp, psn) in left {
        let count = explained.entry((qp, opcode, psn)).or_default();
        let blocked = || {
            let mut decisions = log.decisions.values().flatten();
            opcode == 0x11 && decisions.any(|made| made.what == "blocked" && made.psn.value() == psn)
        };
        if *count > 0 {
            *count -= 1;
        } else if !blocked() {
            if dropped == 0 {
                verdict.breach(
                    "frame-lost",
                    frame,
                    format!("opcode {opcode:#04x} qp {qp} psn {psn} did not come out"),
                );
            }
            dropped = dropped.saturating_sub(1);
        }
    }
}

/// NACKs of a queue pair with the same PSN.
#[derive(Default)]
struct Nacks {
    /// Frames that went in and have not come out.
    inside: Vec<usize>,
    /// Number of those that came out as NACKs.
    passed: usize,
    /// True once one has gone in.
    known: bool,
}

fn made(packet: &Packet, verdict: &mut crate::Verdict) {
    let roce = &packet.roce;
    let text = format!("opcode {:#04x} qp {} psn {} had not gone in", roce.opcode, roce.qp.value(), roce.psn);
    verdict.breach("frame-made", packet.frame, text);
}
