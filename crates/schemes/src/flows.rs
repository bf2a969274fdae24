//! A hash table of the flows that a switch has seen, for schemes that keep state per flow.
//!
//! Open addressing with one slot per flow; the table doubles when it is three quarters full. No caller iterates over it,
//! so results do not depend on the order of its slots.

use model::QpId;

/// Slots of the first allocation. Our choice: about a kilobyte, since most switches see tens of flows.
const FIRST: usize = 64;
/// Key of a free slot: queue pair numbers have 24 bits.
const FREE: u32 = u32::MAX;

/// State of each flow that a switch has seen.
#[derive(Clone, Debug, Default)]
pub struct Flows<T> {
    /// Slots; their number is a power of two, or zero.
    places: Vec<(u32, T)>,
    held: usize,
}

impl<T: Default> Flows<T> {
    /// An empty table.
    pub fn new() -> Self {
        Flows { places: Vec::new(), held: 0 }
    }

    /// Number of flows in the table.
    pub fn len(&self) -> usize {
        self.held
    }

    /// True if the table is empty.
    pub fn is_empty(&self) -> bool {
        self.held == 0
    }

    /// State of a flow that is in the table.
    #[inline]
    pub fn get(&self, qp: QpId) -> Option<&T> {
        if self.held == 0 {
            return None;
        }
        let (key, value) = &self.places[self.place(qp)];
        (*key != FREE).then_some(value)
    }

    /// Mutable state of a flow that is in the table.
    #[inline]
    pub fn get_mut(&mut self, qp: QpId) -> Option<&mut T> {
        if self.held == 0 {
            return None;
        }
        let place = self.place(qp);
        let (key, value) = &mut self.places[place];
        (*key != FREE).then_some(value)
    }

    /// Sets the state of a flow.
    #[inline]
    pub fn insert(&mut self, qp: QpId, value: T) {
        *self.entry(qp) = value;
    }

    /// Removes a flow.
    pub fn remove(&mut self, qp: QpId) {
        if self.held == 0 {
            return;
        }
        let mask = self.places.len() - 1;
        let mut hole = self.place(qp);
        if self.places[hole].0 == FREE {
            return;
        }
        self.held -= 1;
        // Flows behind the hole move back, unless they would leave the stretch of slots that their search covers.
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let key = self.places[at].0;
            if key == FREE {
                break;
            }
            let (from_first, from_hole) = (at.wrapping_sub(self.first(key)), at.wrapping_sub(hole));
            if from_first & mask >= from_hole & mask {
                self.places.swap(hole, at);
                hole = at;
            }
        }
        self.places[hole] = (FREE, T::default());
    }

    /// State of a flow; inserts `T::default()` if the flow is new.
    #[inline]
    pub fn entry(&mut self, qp: QpId) -> &mut T {
        self.entry_or(qp, T::default)
    }

    /// State of a flow; inserts the result of `new` if the flow is new.
    #[inline]
    pub fn entry_or(&mut self, qp: QpId, new: impl FnOnce() -> T) -> &mut T {
        if self.places.len() * 3 <= self.held * 4 {
            self.grow();
        }
        let place = self.place(qp);
        let (key, value) = &mut self.places[place];
        if *key == FREE {
            (*key, *value) = (qp.0, new());
            self.held += 1;
        }
        value
    }

    /// Slot of a flow, or the free slot where it belongs. The table has at least one free slot.
    #[inline]
    fn place(&self, qp: QpId) -> usize {
        let mask = self.places.len() - 1;
        let mut at = self.first(qp.0);
        while self.places[at].0 != FREE && self.places[at].0 != qp.0 {
            at = (at + 1) & mask;
        }
        at
    }

    /// Slot where the search for a flow begins. Fibonacci hashing spreads neighbouring numbers.
    #[inline]
    fn first(&self, key: u32) -> usize {
        (u64::from(key).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize & (self.places.len() - 1)
    }

    #[cold]
    fn grow(&mut self) {
        let size = (self.places.len() * 2).max(FIRST);
        let new = std::iter::repeat_with(|| (FREE, T::default())).take(size);
        let old = std::mem::replace(&mut self.places, new.collect());
        for (key, value) in old.into_iter().filter(|(key, _)| *key != FREE) {
            let place = self.place(QpId(key));
            self.places[place] = (key, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn every_flow_finds_its_entry_in_a_large_table() {
        let mut flows = Flows::<u64>::new();
        let mut list = BTreeMap::new();
        assert!(flows.is_empty());
        for i in 0..20_000u32 {
            // Alternate consecutive numbers, as in one rack, with scattered ones.
            let qp = if i % 2 == 0 { i / 8 } else { i.wrapping_mul(2_654_435_761) & 0xFF_FFFF };
            *flows.entry(QpId(qp)) += u64::from(i);
            *list.entry(qp).or_insert(0) += u64::from(i);
        }
        assert_eq!(flows.len(), list.len());
        for (qp, sum) in list {
            assert_eq!(*flows.entry(QpId(qp)), sum, "{qp}");
        }
    }

    #[test]
    fn removed_flows_leave_the_others_in_their_places() {
        let (mut flows, mut list) = (Flows::<u32>::new(), BTreeMap::new());
        for i in 0..50_000u32 {
            // A few hundred flows come and go, many of them with equal slots.
            let qp = i.wrapping_mul(2_654_435_761) >> 23;
            if list.contains_key(&qp) && i % 3 != 0 {
                flows.remove(QpId(qp));
                list.remove(&qp);
            } else {
                flows.insert(QpId(qp), i);
                list.insert(qp, i);
            }
            assert_eq!((flows.len(), flows.get(QpId(qp))), (list.len(), list.get(&qp)));
        }
        for qp in 0..512 {
            assert_eq!(flows.get_mut(QpId(qp)).copied(), list.get(&qp).copied(), "{qp}");
        }
    }
}
