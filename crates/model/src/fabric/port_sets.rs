//! Sets of equal-cost ports, each stored once and named by a 32-bit entry.

use super::topology::FabricError;
use crate::PortIndex;
use std::collections::BTreeMap;

/// Lowest bits of an entry: the length of its set. The bits above are the start of the set in the pool.
const LENGTH_BITS: u32 = 10;

/// The ports that an entry names; the entry 0 is the empty set.
#[inline]
pub(super) fn set(pool: &[PortIndex], entry: u32) -> &[PortIndex] {
    let start = (entry >> LENGTH_BITS) as usize;
    &pool[start..start + (entry & ((1 << LENGTH_BITS) - 1)) as usize]
}

/// A pool of sets under construction.
#[derive(Default)]
pub(super) struct PortSets {
    pool: Vec<PortIndex>,
    known: BTreeMap<Vec<PortIndex>, u32>,
    /// Scratch space for the set being added.
    set: Vec<PortIndex>,
}

impl PortSets {
    /// The entry for a set of ports in ascending order.
    pub(super) fn entry(&mut self, ports: impl Iterator<Item = PortIndex>) -> Result<u32, FabricError> {
        self.set.clear();
        self.set.extend(ports);
        if self.set.is_empty() {
            return Ok(0);
        }
        if let Some(&entry) = self.known.get(&self.set) {
            return Ok(entry);
        }
        if self.pool.len() >= 1 << (32 - LENGTH_BITS) {
            return Err(FabricError::TooManyRoutes);
        }
        let entry = (self.pool.len() as u32) << LENGTH_BITS | self.set.len() as u32;
        self.pool.extend_from_slice(&self.set);
        self.known.insert(self.set.clone(), entry);
        Ok(entry)
    }

    /// The finished pool.
    pub(super) fn into_pool(self) -> Vec<PortIndex> {
        self.pool
    }
}
