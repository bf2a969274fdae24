//! One port of a switch in a light visit: all that happens at it in a stretch of time, in one go.
//!
//! In a light visit ports do not concern each other. So a packet that the switch sends to a port is only noted
//! there, with the time of its arrival; what it meets is found out later, when the port is played forward over
//! everything that has been noted. The result is that of taking every event at its time: a packet that finds
//! the wire free starts at once, others wait by class and order, marks are decided by the queue at that instant.

use super::out::Out;
use super::port::{Port, WATCHED};
use super::ring::Ring;
use super::switch::mark;
use crate::setup::Tie;
use model::Packet;

/// Plays port `p` forward over everything that starts before `limit`; all that has been noted there arrives
/// before that. `departed` is told of data that starts at watched ports.
#[inline(always)]
pub(super) fn forward(
    port: &mut Port,
    out: &mut Out<'_>,
    p: usize,
    limit: u64,
    tie: Tie,
    departed: impl FnMut(u64, &Packet),
) {
    match port.cnps.is_empty() {
        true => run::<false>(port, out, p, limit, tie, departed),
        false => run::<true>(port, out, p, limit, tie, departed),
    }
}

/// Times are counted from the window's start. What the loop uses is taken out of its place and put back at the
/// end, so that it can stay in registers.
#[inline]
fn run<const CNPS: bool>(
    port: &mut Port,
    out: &mut Out<'_>,
    p: usize,
    limit: u64,
    tie: Tie,
    mut departed: impl FnMut(u64, &Packet),
) {
    let (opened, length) = (out.span.opened, out.span.length);
    let limit = limit - opened;
    let (paused, watched, unmarked, peer_port) =
        (port.paused(), port.is(WATCHED), port.unmarked, port.peer_port);
    let (mut data, mut replies) = (std::mem::take(&mut port.data), std::mem::take(&mut port.replies));
    let mut lane = out.open_lane(p);
    let times = out.setup.times_on_wire(port.row);
    // From the end of a frame on the wire to its arrival, counted from the next window's start.
    let reach = port.delay.wrapping_sub(length);
    let mut free = port.busy.saturating_sub(opened);
    let (mut waiting, mut most_waiting) = (port.waiting, port.most_waiting);
    let (mut frames, mut bytes, mut busy_for, mut control) = (0u64, 0u64, 0u64, 0u64);
    loop {
        while let Some(pkt) = data.next_to_come()
            && (pkt.offset() as u64) < free
        {
            join(pkt, &mut waiting, &mut most_waiting, unmarked, out, p);
            data.arrive();
        }
        comes(&mut replies, free);
        if CNPS {
            comes(&mut port.cnps, free);
        }
        let mut start = free;
        let pkt = if CNPS && port.cnps.waits() {
            if free >= limit {
                break;
            }
            port.cnps.take()
        } else if replies.waits() {
            if free >= limit {
                break;
            }
            replies.take()
        } else if !paused && data.waits() {
            if free >= limit {
                break;
            }
            let pkt = data.take();
            waiting -= pkt.frame();
            match waiting > unmarked && pkt.is_data() {
                true => mark::<false>(out, p, opened + start, waiting, pkt),
                false => pkt,
            }
        } else {
            // The wire is free, and who comes next starts at once.
            let cnp = if CNPS { port.cnps.peek_next_to_come() } else { None };
            let datum = if paused { None } else { data.peek_next_to_come() };
            let ring = match first(replies.peek_next_to_come(), datum, cnp, tie) {
                First::Reply => &mut replies,
                First::Data => &mut data,
                First::Cnp => &mut port.cnps,
                First::Nobody => break,
            };
            let pkt = ring.take();
            start = pkt.offset() as u64;
            pkt
        };
        let frame = pkt.frame();
        let time = times[frame as usize] as u64;
        free = start + time;
        frames += 1;
        bytes += frame as u64;
        busy_for += time;
        control += !pkt.is_data() as u64;
        let after = free.wrapping_add(reach);
        let sent = pkt.arriving(after as u32, peer_port);
        if after < length {
            lane.push(sent);
        } else {
            out.send_far(p, port, after, sent);
        }
        if watched && pkt.is_data() {
            departed(opened + start, &pkt);
        }
    }
    while let Some(pkt) = data.next_to_come() {
        join(pkt, &mut waiting, &mut most_waiting, unmarked, out, p);
        data.arrive();
    }
    comes(&mut replies, u64::MAX);
    comes(&mut port.cnps, u64::MAX);
    out.close_lane(p, lane);
    (port.data, port.replies) = (data, replies);
    (port.waiting, port.most_waiting) = (waiting, most_waiting);
    if frames > 0 {
        port.busy = opened + free;
        port.last = port.busy;
        port.frames += frames;
        port.bytes += bytes;
        port.busy_for += busy_for;
        out.tally.control_hops += control;
    }
    port.recount();
}

/// What comes before `free` must wait.
#[inline(always)]
fn comes(ring: &mut Ring, free: u64) {
    while ring.next_to_come().is_some_and(|pkt| (pkt.offset() as u64) < free) {
        ring.arrive();
    }
}

/// Data that must wait joins its queue, and may be marked.
#[inline(always)]
fn join(pkt: &mut Packet, waiting: &mut u32, most: &mut u32, unmarked: u32, out: &mut Out<'_>, p: usize) {
    if *waiting > unmarked {
        let at = out.span.opened + pkt.offset() as u64;
        *pkt = mark::<true>(out, p, at, *waiting, *pkt);
    }
    *waiting += pkt.frame();
    *most = (*most).max(*waiting);
}

/// Which packet comes first.
enum First {
    Reply,
    Data,
    Cnp,
    Nobody,
}

/// Of the packets that come next the one that comes first; of two at the same instant the one that the switch has
/// taken first.
#[inline(always)]
fn first(reply: Option<&Packet>, data: Option<&Packet>, cnp: Option<&Packet>, tie: Tie) -> First {
    let at = |pkt: Option<&Packet>| pkt.map_or(u64::MAX, |p| p.offset() as u64);
    let (r, d, c) = (at(reply), at(data), at(cnp));
    let soonest = r.min(d).min(c);
    if soonest == u64::MAX {
        return First::Nobody;
    }
    if (r == soonest) as u8 + (d == soonest) as u8 + (c == soonest) as u8 > 1 {
        let rank = |pkt: Option<&Packet>| match pkt {
            Some(p) if p.offset() as u64 == soonest => tie.rank(p.offset(), p.ingress()) as u32,
            _ => u32::MAX,
        };
        let (r, d, c) = (rank(reply), rank(data), rank(cnp));
        return if r < d && r < c {
            First::Reply
        } else if d < c {
            First::Data
        } else {
            First::Cnp
        };
    }
    if r == soonest {
        First::Reply
    } else if d == soonest {
        First::Data
    } else {
        First::Cnp
    }
}
