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

/// The port with its lane and the like, and how it stands.
struct Play<'p, 'v> {
    port: &'p mut Port,
    out: &'p mut Out<'v>,
    p: usize,
    /// When the wire is free; this and all other times here are counted from the window's start.
    free: u64,
    /// Time on the wire, frames, control frames, bytes.
    sums: (u64, u64, u64, u64),
}

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

#[inline(always)]
fn run<const CNPS: bool>(
    port: &mut Port,
    out: &mut Out<'_>,
    p: usize,
    limit: u64,
    tie: Tie,
    mut departed: impl FnMut(u64, &Packet),
) {
    let opened = out.span.opened;
    let limit = limit - opened;
    let (paused, watched) = (port.paused(), port.is(WATCHED));
    let mut play = Play { free: port.busy.saturating_sub(opened), port, out, p, sums: (0, 0, 0, 0) };
    loop {
        play.data_comes(play.free);
        comes(&mut play.port.replies, play.free);
        if CNPS {
            comes(&mut play.port.cnps, play.free);
        }
        let port = &mut *play.port;
        let (start, mut pkt);
        if CNPS && port.cnps.waits() {
            if play.free >= limit {
                break;
            }
            (start, pkt) = (play.free, port.cnps.take());
        } else if port.replies.waits() {
            if play.free >= limit {
                break;
            }
            (start, pkt) = (play.free, port.replies.take());
        } else if !paused && port.data.waits() {
            if play.free >= limit {
                break;
            }
            (start, pkt) = (play.free, port.data.take());
            port.waiting -= pkt.frame();
            if port.waiting > port.unmarked {
                pkt = mark::<false>(play.out, p, opened + start, port.waiting, pkt);
            }
        } else {
            // The wire is free, and who comes next starts at once.
            match port.next_to_come::<CNPS>(paused, tie) {
                None => break,
                Some(ring) => pkt = ring.take(),
            }
            start = pkt.offset() as u64;
        }
        play.launch(start, pkt);
        if watched && pkt.is_data() {
            departed(opened + start, &pkt);
        }
    }
    play.data_comes(u64::MAX);
    comes(&mut play.port.replies, u64::MAX);
    comes(&mut play.port.cnps, u64::MAX);
    play.finish();
}

/// What comes before `free` must wait.
#[inline(always)]
fn comes(ring: &mut Ring, free: u64) {
    while ring.next_to_come().is_some_and(|pkt| (pkt.offset() as u64) < free) {
        ring.arrive();
    }
}

impl Play<'_, '_> {
    /// Data that comes before `free` must wait, and may be marked.
    #[inline(always)]
    fn data_comes(&mut self, free: u64) {
        let Port { data, waiting, most_waiting, unmarked, .. } = &mut *self.port;
        while let Some(pkt) = data.next_to_come()
            && (pkt.offset() as u64) < free
        {
            if *waiting > *unmarked {
                let at = self.out.span.opened + pkt.offset() as u64;
                *pkt = mark::<true>(self.out, self.p, at, *waiting, *pkt);
            }
            *waiting += pkt.frame();
            *most_waiting = (*most_waiting).max(*waiting);
            data.arrive();
        }
    }

    /// Puts a packet on the wire at `start`.
    #[inline(always)]
    fn launch(&mut self, start: u64, pkt: Packet) {
        let (port, out) = (&mut *self.port, &mut *self.out);
        let time = out.setup.time_on_wire(port.row, pkt.frame());
        self.free = start + time;
        self.sums.0 += time;
        self.sums.1 += 1;
        self.sums.2 += !pkt.is_data() as u64;
        self.sums.3 += pkt.frame() as u64;
        out.send(self.p, port, self.free + port.delay - out.span.length, pkt);
    }

    #[inline(always)]
    fn finish(self) {
        let (port, (time, frames, control, bytes)) = (self.port, self.sums);
        if frames > 0 {
            port.busy = self.out.span.opened + self.free;
            port.last = port.busy;
            port.busy_for += time;
            port.frames += frames;
            port.bytes += bytes;
            self.out.tally.control_hops += control;
        }
        port.recount();
    }
}

impl Port {
    /// The queue of the packet that comes next, of those that may start.
    #[inline(always)]
    fn next_to_come<const CNPS: bool>(&mut self, paused: bool, tie: Tie) -> Option<&mut Ring> {
        let key = |ring: &mut Ring| {
            // Of two that come at the same instant the switch has taken one first.
            ring.next_to_come().map_or(u64::MAX, |p| (p.offset() as u64) << 10)
        };
        let (mut reply, mut data) =
            (key(&mut self.replies), if paused { u64::MAX } else { key(&mut self.data) });
        let mut cnp = if CNPS { key(&mut self.cnps) } else { u64::MAX };
        let first = reply.min(data).min(cnp);
        if first == u64::MAX {
            return None;
        }
        if (reply == first) as u8 + (data == first) as u8 + (cnp == first) as u8 > 1 {
            let rank = |ring: &mut Ring, key: &mut u64| {
                if *key == first
                    && let Some(p) = ring.next_to_come()
                {
                    *key |= tie.rank(p.offset(), p.ingress()) as u64;
                }
            };
            rank(&mut self.replies, &mut reply);
            rank(&mut self.data, &mut data);
            rank(&mut self.cnps, &mut cnp);
        }
        let first = reply.min(data).min(cnp);
        Some(match first {
            _ if reply == first => &mut self.replies,
            _ if data == first => &mut self.data,
            _ => &mut self.cnps,
        })
    }
}
