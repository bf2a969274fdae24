//! The wire of a port while a visit puts packets on it. The port's own fields are copied here and written back at
//! the end, so that the compiler can keep them in registers.

use super::lanes::add;
use super::out::Out;
use super::port::Port;
use model::{Annex, Parcel, PortIndex};

/// The wire of a port. All its times count from `origin`: 0, or the start of the window.
pub(super) struct Wire<'v, A> {
    origin: u64,
    /// When the wire is free.
    pub(super) free: u64,
    /// Packets that arrive in the lane's span, mostly the next window.
    lane: Vec<Parcel<A>>,
    times: &'v [u32],
    /// Time from the end of a frame to its arrival, less the time from `origin` to the start of the lane's times. It is
    /// negative where the delay is shorter, so additions wrap.
    reach: u64,
    span: u64,
    peer_port: PortIndex,
    unit: u32,
    /// Frames sent since the wire was taken, their bytes, and their time on the wire.
    frames: u64,
    bytes: u64,
    time: u64,
    /// Control packets sent since the wire was taken. Callers count them, as most callers test a packet's kind anyway.
    pub(super) control: u64,
}

impl<'v, A: Annex> Wire<'v, A> {
    /// Takes the wire of port `p`, and its lane.
    #[inline(always)]
    pub(super) fn take(port: &Port<A>, out: &mut Out<'v, A>, p: usize, origin: u64) -> Self {
        let lane = out.open_lane(p);
        let (from, span) = out.lane_span(p);
        Wire {
            origin,
            free: port.busy.saturating_sub(origin),
            lane,
            times: out.setup.times_on_wire(port.row),
            reach: port.delay.wrapping_add(origin).wrapping_sub(from),
            span,
            peer_port: port.peer_port,
            unit: out.unit,
            frames: 0,
            bytes: 0,
            time: 0,
            control: 0,
        }
    }

    /// Bytes sent since the wire was taken.
    #[inline(always)]
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Puts a packet on the wire. Returns it with its time after the start of the lane's times if it arrives after the
    /// lane's span.
    #[inline(always)]
    pub(super) fn launch(&mut self, start: u64, pkt: Parcel<A>) -> Option<(u64, Parcel<A>)> {
        let time = self.times[pkt.frame() as usize] as u64;
        self.launch_for(time, pkt.frame(), start, pkt)
    }

    /// [`Wire::launch`] of a frame with this time on the wire and this length.
    #[inline(always)]
    pub(super) fn launch_for(
        &mut self,
        time: u64,
        frame: u32,
        start: u64,
        pkt: Parcel<A>,
    ) -> Option<(u64, Parcel<A>)> {
        self.free = start + time;
        self.frames += 1;
        self.bytes += frame as u64;
        self.time += time;
        let after = self.free.wrapping_add(self.reach);
        let sent = pkt.arriving(after as u32, self.peer_port);
        if after < self.span {
            add(&mut self.lane, sent, self.unit);
            return None;
        }
        Some((after, sent))
    }

    /// Writes lane, times and counts back to port `p`.
    #[inline(always)]
    pub(super) fn put_back(&mut self, port: &mut Port<A>, out: &mut Out<'_, A>, p: usize) {
        out.close_lane(p, std::mem::take(&mut self.lane));
        if self.frames > 0 {
            port.busy = self.origin + self.free;
            port.last = port.busy;
            port.frames += self.frames;
            port.bytes += self.bytes;
            port.busy_for += self.time;
            out.tally.control_hops += self.control;
        }
    }
}
