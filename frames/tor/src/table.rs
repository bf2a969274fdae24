//! A hash table of fixed size: it allocates at its start only, and refuses a key when it is full.

/// A key of a [`Table`].
pub(crate) trait Key: Copy + Eq {
    /// A hash of the key. `seed` differs from run to run, so that nobody can choose keys that collide.
    fn hash(&self, seed: u64) -> u64;
}

impl Key for u64 {
    #[inline]
    fn hash(&self, seed: u64) -> u64 {
        mix(*self ^ seed)
    }
}

/// The finaliser of MurmurHash3 (Appleby, public domain): every bit of the result depends on every bit of `x`.
#[inline]
pub(crate) const fn mix(mut x: u64) -> u64 {
    x ^= x >> 33;
    x = x.wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    x ^= x >> 33;
    x = x.wrapping_mul(0xC4CE_B9FE_1A85_EC53);
    x ^ x >> 33
}

/// Marks an empty slot of the index.
const EMPTY: u32 = u32::MAX;

/// Keys with numbers from 0 to the capacity. The caller keeps the values in arrays by these numbers.
#[derive(Debug)]
pub(crate) struct Table<K> {
    /// Open addressing with linear probes; at most half full.
    index: Box<[u32]>,
    keys: Box<[Option<K>]>,
    free: Vec<u32>,
    seed: u64,
}

impl<K: Key> Table<K> {
    pub(crate) fn new(capacity: usize, seed: u64) -> Self {
        let slots = (2 * capacity.max(1)).next_power_of_two();
        Table {
            index: vec![EMPTY; slots].into(),
            keys: vec![None; capacity].into(),
            free: (0..capacity as u32).rev().collect(),
            seed,
        }
    }

    /// Number of keys in the table.
    pub(crate) fn len(&self) -> usize {
        self.keys.len() - self.free.len()
    }

    pub(crate) fn capacity(&self) -> usize {
        self.keys.len()
    }

    /// The key with this number.
    pub(crate) fn key(&self, number: u32) -> Option<K> {
        self.keys.get(number as usize).copied().flatten()
    }

    /// The number of a key.
    #[inline]
    pub(crate) fn find(&self, key: &K) -> Option<u32> {
        let mask = self.index.len() - 1;
        let mut slot = key.hash(self.seed) as usize & mask;
        loop {
            let number = self.index[slot];
            if number == EMPTY {
                return None;
            }
            if self.keys[number as usize].as_ref() == Some(key) {
                return Some(number);
            }
            slot = (slot + 1) & mask;
        }
    }

    /// Adds a key that is not in the table; `None` if the table is full.
    pub(crate) fn insert(&mut self, key: K) -> Option<u32> {
        let number = self.free.pop()?;
        self.keys[number as usize] = Some(key);
        let mask = self.index.len() - 1;
        let mut slot = key.hash(self.seed) as usize & mask;
        while self.index[slot] != EMPTY {
            slot = (slot + 1) & mask;
        }
        self.index[slot] = number;
        Some(number)
    }

    /// Removes the key with this number, if there is one.
    pub(crate) fn remove(&mut self, number: u32) {
        let Some(key) = self.keys.get_mut(number as usize).and_then(Option::take) else { return };
        self.free.push(number);
        let mask = self.index.len() - 1;
        let mut hole = key.hash(self.seed) as usize & mask;
        while self.index[hole] != number {
            hole = (hole + 1) & mask;
        }
        // Later keys of the same run of slots move up, unless that would take them before their own first slot.
        let mut slot = hole;
        loop {
            slot = (slot + 1) & mask;
            let other = self.index[slot];
            let Some(key) = self.key(other) else { break };
            let first = key.hash(self.seed) as usize & mask;
            if slot.wrapping_sub(first) & mask >= slot.wrapping_sub(hole) & mask {
                self.index[hole] = other;
                hole = slot;
            }
        }
        self.index[hole] = EMPTY;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// A key whose hash collides often.
    impl Key for u8 {
        fn hash(&self, _: u64) -> u64 {
            u64::from(self / 8)
        }
    }

    proptest! {
        #[test]
        fn the_table_answers_like_a_map(steps in prop::collection::vec((any::<bool>(), 0..40u8), 0..200)) {
            let (mut table, mut map) = (Table::new(16, 0), BTreeMap::new());
            for (add, key) in steps {
                let number = table.find(&key);
                prop_assert_eq!(number, map.get(&key).copied());
                match (add, number) {
                    (true, None) => match table.insert(key) {
                        Some(number) => _ = map.insert(key, number),
                        None => prop_assert_eq!(map.len(), 16),
                    },
                    (false, Some(number)) => {
                        table.remove(number);
                        map.remove(&key);
                    }
                    _ => {}
                }
                prop_assert_eq!(table.len(), map.len());
                prop_assert!((0..40).all(|key| table.find(&key) == map.get(&key).copied()));
            }
        }
    }
}
