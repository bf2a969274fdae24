//! A table of flows for schemes that keep state for each: it holds those that the switch has seen, and no others.
//!
//! Open addressing, a place per flow, doubled when it is three quarters full. Nobody asks for its order, so results do
//! not depend on it.

use model::QpId;

/// Places of the first allocation. Our choice: a kilobyte or so, as most switches see tens of flows.
const FIRST: usize = 64;
/// Stands for a free place: queue pairs have 24 bits.
const FREE: u32 = u32::MAX;

/// What a switch knows of each flow that it has seen.
#[derive(Clone, Debug, Default)]
pub struct Flows<T> {
    /// A power of two of places, or none.
    places: Vec<(u32, T)>,
    held: usize,
}

impl<T: Copy + Default> Flows<T> {
    /// A table of nobody.
    pub fn new() -> Self {
        Flows { places: Vec::new(), held: 0 }
    }

    /// Flows that it holds.
    pub fn len(&self) -> usize {
        self.held
    }

    /// True if it holds none.
    pub fn is_empty(&self) -> bool {
        self.held == 0
    }

    /// What is known of a flow; `T::default()` if it was not there, which it is now.
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

    /// The place of a flow, or the free one where it belongs. There is at least one free place.
    #[inline]
    fn place(&self, qp: QpId) -> usize {
        let mask = self.places.len() - 1;
        // Fibonacci hashing: neighbouring numbers go far apart.
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
    fn every_flow_finds_its_own_entry_again_however_many_there_are() {
        let mut flows = Flows::<u64>::new();
        let mut list = BTreeMap::new();
        assert!(flows.is_empty());
        for i in 0..20_000u32 {
            // Numbers in a row, as a rack's, and far ones.
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
