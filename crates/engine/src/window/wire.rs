//! The wire of a port, taken out of its place while a visit puts packets on it, so that it can stay in registers.

use super::lanes::add;
use super::out::Out;
use super::port::Port;
use model::{Annex, Parcel, PortIndex};

/// The wire of a port.
pub(super) struct Wire<'v, A> {
    /// When it is free.
    pub(super) free: u64,
    /// What arrives in the next window.
    lane: Vec<Parcel<A>>,
    times: &'v [u32],
    /// From the end of a frame to its arrival, counted from the next window's start: below zero, so it wraps.
    reach: u64,
    length: u64,
    peer_port: PortIndex,
    unit: u32,
    sums: Sums,
}

#[derive(Default)]
struct Sums {
    bytes: u64,
    time: u64,
    frames: u32,
    control: u32,
}

impl<'v, A: Annex> Wire<'v, A> {
    /// Takes the wire of port `p`, and its lane.
    #[inline(always)]
    pub(super) fn take(port: &Port<A>, out: &mut Out<'v, A>, p: usize) -> Self {
        Wire {
            free: port.busy,
            lane: out.open_lane(p),
            times: out.setup.times_on_wire(port.row),
            reach: port.delay.wrapping_sub(out.next),
            length: out.span.length,
            peer_port: port.peer_port,
            unit: out.unit,
            sums: Sums::default(),
        }
    }

    /// Puts a packet on the wire; gives it back with its time if it arrives after the next window.
    #[inline(always)]
    pub(super) fn launch(&mut self, start: u64, pkt: Parcel<A>) -> Option<(u64, Parcel<A>)> {
        let frame = pkt.frame();
        let time = self.times[frame as usize] as u64;
        self.free = start + time;
        self.sums.frames += 1;
        self.sums.bytes += frame as u64;
        self.sums.time += time;
        self.sums.control += !pkt.is_data() as u32;
        let after = self.free.wrapping_add(self.reach);
        let sent = pkt.arriving(after as u32, self.peer_port);
        if after < self.length {
            add(&mut self.lane, sent, self.unit);
            return None;
        }
        Some((after, sent))
    }

    /// Puts it back.
    #[inline(always)]
    pub(super) fn put_back(&mut self, port: &mut Port<A>, out: &mut Out<'_, A>, p: usize) {
        out.close_lane(p, std::mem::take(&mut self.lane));
        let sums = std::mem::take(&mut self.sums);
        if sums.frames > 0 {
            port.busy = self.free;
            port.last = self.free;
            port.frames += sums.frames as u64;
            port.bytes += sums.bytes;
            port.busy_for += sums.time;
            out.tally.control_hops += sums.control as u64;
        }
    }
}
