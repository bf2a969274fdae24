//! The annexes of the packets that a switch moves in a visit.
//!
//! A large annex stays in the lane that brought it, and the packet's entry on a line has only its place. Annexes that have
//! no lane lie on a list of the visit: those of queued replies, and those that the scheme makes or changes.

use super::line;
use super::tie::Tie;
use model::{Annex, Parcel};

/// The annexes of a visit by place. A place is the number of a lane and a slot in the lane.
pub(super) struct Shelf<'v, A> {
    lanes: &'v [Vec<Parcel<A>>],
    own: &'v mut Vec<Parcel<A>>,
}

/// Bits of a slot. A lane of 2^22 packets would need frames of 64 ps in the longest window.
const SLOT_BITS: u32 = 22;
/// The lane in the place of an annex that has none. The number of a lane is less than that of the virtual port.
const OWN: u32 = u32::MAX >> SLOT_BITS;

impl<'v, A: Annex> Shelf<'v, A> {
    /// The shelf of a visit with these lanes; `own` takes the annexes that have no lane.
    pub(super) fn new(lanes: &'v [Vec<Parcel<A>>], own: &'v mut Vec<Parcel<A>>) -> Self {
        Shelf { lanes, own }
    }

    /// This shelf, to be lent.
    #[inline(always)]
    pub(super) fn reborrow(&mut self) -> Shelf<'_, A> {
        Shelf { lanes: self.lanes, own: self.own }
    }

    /// Removes the annexes without a lane.
    pub(super) fn clear(&mut self) {
        self.own.clear();
    }

    /// Puts an annex without a lane onto the shelf.
    #[inline(always)]
    pub(super) fn put(&mut self, annex: &A) -> A::Held {
        put(self.own, annex)
    }

    /// A packet of a line with its annex.
    #[inline(always)]
    pub(super) fn parcel(&self, laid: &Parcel<A::Held>) -> Parcel<A> {
        Parcel { label: laid.label, annex: *self.annex(&laid.annex) }
    }

    /// A packet that stays in its queue, see [`line::unkeyed`].
    #[inline(always)]
    pub(super) fn unkeyed(&self, laid: &Parcel<A::Held>, tie: Tie) -> Parcel<A> {
        Parcel { label: line::unkeyed(laid.label, tie), annex: *self.annex(&laid.annex) }
    }

    /// The annex of a packet.
    #[inline(always)]
    pub(super) fn annex<'s>(&'s self, held: &'s A::Held) -> &'s A {
        A::held(held, |place| &self.at(place).annex)
    }

    /// The annex of a packet, and the packet that has it if it is large.
    #[inline(always)]
    pub(super) fn holder<'s>(&'s self, held: &'s A::Held) -> (&'s A, Option<&'s Parcel<A>>) {
        let mut holder = None;
        let annex = A::held(held, |place| {
            let parcel = self.at(place);
            holder = Some(parcel);
            &parcel.annex
        });
        (annex, holder)
    }

    #[inline(always)]
    fn at(&self, place: u32) -> &Parcel<A> {
        let slot = (place & ((1 << SLOT_BITS) - 1)) as usize;
        match self.lanes.get((place >> SLOT_BITS) as usize) {
            Some(lane) => &lane[slot],
            None => &self.own[slot],
        }
    }
}

/// The form on a line of the annex of the packet in this slot of a lane.
#[inline(always)]
pub(super) fn in_lane<A: Annex>(annex: &A, lane: usize, slot: usize) -> A::Held {
    annex.hold(|| place_of(lane, slot))
}

/// The place of the packet in this slot of a lane.
#[inline(always)]
pub(super) fn place_of(lane: usize, slot: usize) -> u32 {
    debug_assert!(lane < OWN as usize && slot < 1 << SLOT_BITS, "a lane or a slot without a place");
    (lane << SLOT_BITS | slot) as u32
}

/// The packet in a place that some lane has.
#[inline(always)]
pub(super) fn in_lanes<A>(lanes: &[Vec<Parcel<A>>], place: u32) -> &Parcel<A> {
    &lanes[(place >> SLOT_BITS) as usize][(place & ((1 << SLOT_BITS) - 1)) as usize]
}

/// [`Shelf::put`] for a shelf that is not yet there.
#[inline(always)]
pub(super) fn put<A: Annex>(own: &mut Vec<Parcel<A>>, annex: &A) -> A::Held {
    annex.hold(|| {
        own.push(Parcel { annex: *annex, ..Parcel::default() });
        OWN << SLOT_BITS | (own.len() as u32 - 1)
    })
}
