//! One port of a switch in a light visit: all its events in a stretch of time, computed in one pass.
//!
//! In a light visit, ports do not affect each other. So the switch only appends its arrivals to the ports that they
//! leave by, in order. Later the port is played forward over all of them, which shows the queue and the marking
//! that each packet meets. The result equals that of an event-by-event simulation: a packet that finds the wire
//! free starts at once, other packets wait by class and order, and the queue at that instant decides marks.

use super::line::{departure, keyed};
use super::out::Out;
use super::port::Port;
use super::queue::Queue;
use super::tie::Tie;
use super::wire::Wire;
use crate::setup::LinkState;
use model::{Annex, Parcel};
use std::cell::Cell;
use std::slice::Iter;

/// Arrivals of a visit that leave by one port and have not been played, by class and in order. CNPs are rare and go
/// into the port's queue at once.
#[derive(Debug, Default)]
pub(super) struct Joining<A> {
    pub(super) data: Vec<Parcel<A>>,
    pub(super) replies: Vec<Parcel<A>>,
}

impl<A> Joining<A> {
    pub(super) fn is_empty(&self) -> bool {
        self.data.is_empty() && self.replies.is_empty()
    }
}

/// Plays port `p` forward over all packets that start before `limit`; all packets of `joining` arrive before that.
///
/// Times count from the window's start. The loop works on copies of the port's fields, so that the compiler can
/// keep them in registers. Calls `started` with the key of its start, for every packet, and whether it is of the class of data.
#[inline]
pub(super) fn forward<A: Annex>(
    port: &mut Port<A>,
    out: &mut Out<'_, A>,
    p: usize,
    limit: u64,
    (joining, tie): (&mut Joining<A>, Tie),
    mut started: impl FnMut(u64, &Parcel<A>, bool),
) {
    let opened = out.window.opened;
    let limit = limit - opened;
    let hop = out.setup.hop::<A>(out.gp + p, port.row);
    let mut wire = Wire::take(port, out, p, opened);
    // CNPs go first. Each of them was queued before the arrivals in `joining`.
    while wire.free < limit
        && let Some(cnp) = port.cnps.pop()
    {
        wire.control += 1;
        started(departure(wire.free), &cnp, false);
        if let Some((after, sent)) = wire.launch(wire.free, cnp) {
            out.send_far(p, port, after, &sent);
        }
    }
    let (mut data_queue, mut reply_queue) =
        (std::mem::take(&mut port.data), std::mem::take(&mut port.replies));
    let data_arrivals = cells(&mut joining.data);
    let mut data = Cursor::new(&mut data_queue, data_arrivals);
    let mut replies = Cursor::new(&mut reply_queue, cells(&mut joining.replies));
    let mut length = QueueLength {
        joining: data_arrivals.iter(),
        unmarked: port.unmarked.into(),
        bytes: port.waiting,
        most: port.most_waiting,
    };
    if port.paused() {
        data.first = NEVER;
    }
    while wire.free < limit {
        let (start, mut pkt);
        if replies.first <= wire.free {
            (start, pkt) = (wire.free, replies.take());
            started(departure(start), &pkt, false);
        } else if data.first <= wire.free {
            length.join(wire.free, out, p);
            (start, pkt) = (wire.free, data.take());
            started(departure(start), &pkt, true);
            length.bytes -= u64::from(pkt.frame());
            if length.bytes > length.unmarked && pkt.is_data() {
                pkt.label = out.mark::<false>(p, opened + start, length.bytes, pkt.label);
            }
        } else if replies.first < data.first || replies.is_before(&data, tie) {
            (start, pkt) = (replies.first - 1, replies.take());
            started(keyed(pkt.label, tie).word(), &pkt, false);
        } else if data.first != NEVER {
            (start, pkt) = (data.first - 1, data.take());
            started(keyed(pkt.label, tie).word(), &pkt, true);
            length.joining = data.part.clone();
        } else {
            break;
        }
        let (sent, queue) = (port.bytes + wire.bytes(), length.bytes);
        let link = LinkState { hop, at: opened + start, sent, queue };
        out.setup.trace(&mut pkt, link, &mut port.meters);
        if let Some((after, sent)) = wire.launch(start, pkt) {
            out.send_far(p, port, after, &sent);
        }
        wire.control += u64::from(!pkt.is_data());
    }
    length.join(limit, out, p);
    (port.waiting, port.most_waiting) = (length.bytes, length.most);
    let (remaining_data, remaining_replies) = (data.remaining(), replies.remaining());
    port.data = remaining_data.keep(data_queue, &mut joining.data);
    port.replies = remaining_replies.keep(reply_queue, &mut joining.replies);
    wire.put_back(port, out, p);
    port.recount();
}

/// A cursor over the packets of one class: first the queue, then the arrivals.
struct Cursor<'c, A> {
    part: Iter<'c, Cell<Parcel<A>>>,
    /// The arrivals, while `part` is the queue; empty afterwards.
    arrivals: &'c [Cell<Parcel<A>>],
    /// All bits set while `part` is the arrivals, none while it is the queue.
    arrived: u64,
    /// First instant at which the first packet may start behind others: 1 ps after its arrival. It is 0 for a queued
    /// packet, and [`NEVER`] without a packet.
    first: u64,
}

fn cells<A>(packets: &mut [Parcel<A>]) -> &[Cell<Parcel<A>>] {
    Cell::from_mut(packets).as_slice_of_cells()
}

/// A time that no packet has.
const NEVER: u64 = u64::MAX;

impl<'c, A: Annex> Cursor<'c, A> {
    #[inline(always)]
    fn new(waits: &'c mut Queue<A>, arrivals: &'c [Cell<Parcel<A>>]) -> Self {
        let mut cursor = Cursor { part: cells(waits.packets_mut()).iter(), arrivals, arrived: 0, first: 0 };
        cursor.update_first();
        cursor
    }

    /// Updates `first`.
    #[inline(always)]
    fn update_first(&mut self) {
        self.first = match self.part.as_slice().first() {
            Some(pkt) => (pkt.get().offset() as u64 + 1) & self.arrived,
            None => self.take_arrivals(),
        }
    }

    /// Moves on from the empty queue to the arrivals.
    fn take_arrivals(&mut self) -> u64 {
        self.part = std::mem::take(&mut self.arrivals).iter();
        self.arrived = u64::MAX;
        self.part.as_slice().first().map_or(NEVER, |pkt| pkt.get().offset() as u64 + 1)
    }

    /// Takes the first packet, which must exist.
    #[inline(always)]
    fn take(&mut self) -> Parcel<A> {
        let pkt = self.part.as_slice()[0].get();
        self.part.next();
        self.update_first();
        pkt
    }

    /// True if the first packets of both cursors arrive at the same instant, and this cursor's packet ranks first.
    fn is_before(&self, other: &Cursor<'_, A>, tie: Tie) -> bool {
        let rank = |cursor: &Cursor<'_, A>| cursor.part.as_slice().first().map(|pkt| tie.rank(&pkt.get()));
        self.first == other.first && self.first != NEVER && rank(self) < rank(other)
    }

    fn remaining(&self) -> Remaining {
        match self.arrived {
            0 => Remaining { waiting: self.part.len(), arrivals: self.arrivals.len() },
            _ => Remaining { waiting: 0, arrivals: self.part.len() },
        }
    }
}

/// Number of queued packets, and of arrivals, that have not left.
struct Remaining {
    waiting: usize,
    arrivals: usize,
}

impl Remaining {
    /// Puts the remaining packets into their queue.
    #[inline(always)]
    fn keep<A: Annex>(self, mut queue: Queue<A>, arrivals: &mut Vec<Parcel<A>>) -> Queue<A> {
        queue.keep_last(self.waiting);
        arrivals[arrivals.len() - self.arrivals..].iter().for_each(|pkt| queue.push(*pkt));
        arrivals.clear();
        queue
    }
}

/// The length of the data queue.
struct QueueLength<'c, A> {
    /// Arrivals that had not joined the queue at the last call of [`QueueLength::join`].
    joining: Iter<'c, Cell<Parcel<A>>>,
    /// Longest queue that causes no mark, bytes.
    unmarked: u64,
    bytes: u64,
    most: u64,
}

impl<A: Annex> QueueLength<'_, A> {
    /// Adds all arrivals before `now` to the queue, and marks those that find a long queue.
    #[inline(always)]
    fn join(&mut self, now: u64, out: &mut Out<'_, A>, p: usize) {
        while let Some(cell) = self.joining.as_slice().first() {
            let pkt = cell.get();
            if pkt.offset() as u64 >= now {
                break;
            }
            if self.bytes > self.unmarked {
                let at = out.window.opened + pkt.offset() as u64;
                let label = out.mark::<true>(p, at, self.bytes, pkt.label);
                cell.set(Parcel { label, ..pkt });
            }
            self.bytes += u64::from(pkt.frame());
            self.joining.next();
        }
        self.most = self.most.max(self.bytes);
    }
}
