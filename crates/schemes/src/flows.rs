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

impl<T: Copy + Default> Flows<T> {
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

    /// State of a flow; inserts `T::default()` if the flow is new.
    #[inline]
    pub fn entry(&mut self, qp: QpId) -> &mut T {
        if self.places.len() * 3 <= self.held * 4 {
            self.grow();
        }
        let place = self.place(qp);
        let (key, value) = &mut self.places[place];
        if *key == FREE {
            *key = qp.0;
            self.held += 1;
        }
        value
    }

    /// Slot of a flow, or the free slot where it belongs. The table has at least one free slot.
    #[inline]
    fn place(&self, qp: QpId) -> usize {
        let mask = self.places.len() - 1;
        // Fibonacci hashing spreads neighbouring numbers.
        let mut at = (u64::from(qp.0).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize & mask;
        while self.places[at].0 != FREE && self.places[at].0 != qp.0 {
            at = (at + 1) & mask;
        }
        at
    }

    #[cold]
    fn grow(&mut self) {
        let size = (self.places.len() * 2).max(FIRST);
        let old = std::mem::replace(&mut self.places, vec![(FREE, T::default()); size]);
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
}
