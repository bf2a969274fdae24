//! One port of a switch in a light visit: all that happens at it in a stretch of time, in one go.
//!
//! In a light visit ports do not concern each other. So the switch only notes which of its arrivals go to a port,
//! as a chain in their order; what they meet is found out later, when the port is played forward over all that
//! has been noted. The result is that of taking every event at its time: a packet that finds the wire free starts
//! at once, others wait by class and order, marks are decided by the queue at that instant.

use super::lanes::add;
use super::out::Out;
use super::port::{NOBODY, Port, WATCHED};
use super::ring::Ring;
use super::switch::mark;
use model::{Kind, Packet, PortIndex};

/// The arrivals of a visit, and of each the next one that goes to the same port.
#[derive(Debug, Default)]
pub(super) struct Chain {
    next: Vec<u32>,
}

impl Chain {
    /// Makes room for so many arrivals. Old links stay: a port follows its chain no further than its last.
    #[inline]
    pub(super) fn make_room(&mut self, arrivals: usize) {
        if self.next.len() < arrivals {
            self.next.resize(arrivals.next_power_of_two(), NOBODY);
        }
    }

    /// Arrival `i` goes to this port, after all that were noted there. True if it is the first.
    #[inline(always)]
    pub(super) fn note(&mut self, port: &mut Port, i: u32) -> bool {
        let first = port.first == NOBODY;
        if first {
            port.first = i;
        } else {
            self.next[port.last_to_come as usize] = i;
        }
        port.last_to_come = i;
        first
    }
}

/// Plays port `p` forward over everything that starts before `limit`; all that has been noted there arrives
/// before that. `departed` is told of data that starts at watched ports.
///
/// Times are counted from the window's start. What the loop uses is taken out of its place and put back at the
/// end, so that it can stay in registers.
#[inline]
pub(super) fn forward(
    port: &mut Port,
    out: &mut Out<'_>,
    p: usize,
    limit: u64,
    (arrivals, chain, one_class): (&[Packet], &Chain, bool),
    mut departed: impl FnMut(u64, &Packet),
) {
    let opened = out.span.opened;
    let limit = limit - opened;
    let watched = port.is(WATCHED);
    let mut queues = Queues {
        data: std::mem::take(&mut port.data),
        replies: std::mem::take(&mut port.replies),
        paused: port.paused(),
        unmarked: port.unmarked,
        waiting: port.waiting,
        most: port.most_waiting,
    };
    let mut wire = Wire {
        free: port.busy.saturating_sub(opened),
        lane: out.open_lane(p),
        times: out.setup.times_on_wire(port.row),
        reach: port.delay.wrapping_sub(out.span.length),
        length: out.span.length,
        peer_port: port.peer_port,
        room: out.room,
        sums: Sums::default(),
    };
    let mut i = port.first;
    loop {
        let (start, pkt);
        if i != NOBODY {
            let coming = arrivals[i as usize];
            let at = coming.offset() as u64;
            let waits = if wire.free <= at { queues.next(port, out, p, wire.free) } else { None };
            if let Some(next) = waits {
                (start, pkt) = (wire.free, next);
            } else {
                i = if i == port.last_to_come { NOBODY } else { chain.next[i as usize] };
                let data = one_class || coming.is_data();
                if wire.free > at || data && queues.paused {
                    queues.join(port, out, p, coming, data);
                    continue;
                }
                (start, pkt) = (at, coming);
            }
        } else if wire.free < limit
            && let Some(next) = queues.next(port, out, p, wire.free)
        {
            (start, pkt) = (wire.free, next);
        } else {
            break;
        }
        if let Some((after, sent)) = wire.launch(start, pkt) {
            out.send_far(p, port, after, sent);
        }
        if watched && pkt.is_data() {
            departed(opened + start, &pkt);
        }
    }
    port.first = NOBODY;
    let Wire { free, lane, sums, .. } = wire;
    out.close_lane(p, lane);
    let Queues { data, replies, waiting, most, .. } = queues;
    (port.data, port.replies, port.waiting, port.most_waiting) = (data, replies, waiting, most);
    if sums.frames > 0 {
        port.busy = opened + free;
        port.last = port.busy;
        port.frames += sums.frames;
        port.bytes += sums.bytes;
        port.busy_for += sums.time;
        out.tally.control_hops += sums.control;
    }
    port.recount();
}

/// What waits at a port; CNPs, which are rare, stay where they are.
struct Queues {
    data: Ring,
    replies: Ring,
    paused: bool,
    unmarked: u32,
    waiting: u32,
    most: u32,
}

impl Queues {
    /// The packet that starts at `free`, if one waits that may.
    #[inline(always)]
    fn next(&mut self, port: &mut Port, out: &mut Out<'_>, p: usize, free: u64) -> Option<Packet> {
        if let Some(pkt) = port.cnps.pop().or_else(|| self.replies.pop()) {
            return Some(pkt);
        }
        if self.paused {
            return None;
        }
        let pkt = self.data.pop()?;
        self.waiting -= pkt.frame();
        Some(match self.waiting > self.unmarked && pkt.is_data() {
            true => mark::<false>(out, p, out.span.opened + free, self.waiting, pkt),
            false => pkt,
        })
    }

    /// A packet that must wait joins its queue; data may be marked.
    #[inline(always)]
    fn join(&mut self, port: &mut Port, out: &mut Out<'_>, p: usize, pkt: Packet, data: bool) {
        if data {
            let pkt = match self.waiting > self.unmarked {
                true => mark::<true>(out, p, out.span.opened + pkt.offset() as u64, self.waiting, pkt),
                false => pkt,
            };
            self.waiting += pkt.frame();
            self.most = self.most.max(self.waiting);
            self.data.push(pkt);
        } else if pkt.kind() == Kind::Cnp {
            port.cnps.push(pkt);
        } else {
            self.replies.push(pkt);
        }
    }
}

/// The wire of a port.
struct Wire<'t> {
    /// When it is free.
    free: u64,
    /// What arrives in the next window.
    lane: Vec<Packet>,
    times: &'t [u32],
    /// From the end of a frame to its arrival, counted from the next window's start: a little below zero where
    /// the window is longer than the delay, so it wraps.
    reach: u64,
    length: u64,
    peer_port: PortIndex,
    room: u32,
    sums: Sums,
}

#[derive(Default)]
struct Sums {
    frames: u64,
    bytes: u64,
    time: u64,
    control: u64,
}

impl Wire<'_> {
    /// Puts a packet on the wire; gives it back with its time if it arrives after the next window.
    #[inline(always)]
    fn launch(&mut self, start: u64, pkt: Packet) -> Option<(u64, Packet)> {
        let frame = pkt.frame();
        let time = self.times[frame as usize] as u64;
        self.free = start + time;
        self.sums.frames += 1;
        self.sums.bytes += frame as u64;
        self.sums.time += time;
        self.sums.control += !pkt.is_data() as u64;
        let after = self.free.wrapping_add(self.reach);
        let sent = pkt.arriving(after as u32, self.peer_port);
        if after < self.length {
            add(&mut self.lane, sent, self.room);
            return None;
        }
        Some((after, sent))
    }
}
