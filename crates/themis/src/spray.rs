//! Themis-S, the source ToR: the PSN alone chooses the path, so the destination ToR can recompute the choice.

use crate::Psn;

/// Number of slots N, at least 1: the modulus of Themis (APNET'25), Eq. 1.
///
/// A power of two costs a mask, any other number a division. If N does not divide 2^24, the round of slots has a seam at
/// each PSN wrap: consecutive PSNs may get slots that are not consecutive. The slot stays a function of the PSN, so the
/// destination ToR's test holds across the seam.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slots {
    count: u16,
    /// `count - 1` for a power of two, else 0. It is 0 for a single slot, too.
    mask: u16,
}

impl Slots {
    /// `count` slots; `None` for 0.
    #[inline]
    pub const fn new(count: u16) -> Option<Self> {
        match count {
            0 => None,
            n if n.is_power_of_two() => Some(Self { count: n, mask: n - 1 }),
            n => Some(Self { count: n, mask: 0 }),
        }
    }

    /// The number of slots, N.
    #[inline]
    pub const fn count(self) -> u16 {
        self.count
    }

    /// The slot of a PSN: PSN mod N.
    #[inline]
    pub const fn of(self, psn: Psn) -> u16 {
        self.modulo(psn.value())
    }

    /// `value` mod N, also for a truncated PSN.
    #[inline]
    pub(crate) const fn modulo(self, value: u32) -> u16 {
        if self.mask != 0 || self.count == 1 {
            value as u16 & self.mask
        } else {
            (value % self.count as u32) as u16
        }
    }
}

/// Path of a packet, 0 to N - 1: (PSN mod N + base) mod N, Themis (APNET'25), Eq. 1.
///
/// `base` is any 16 bits of the flow's ECMP hash, so that flows start on different paths; this function takes it mod N.
///
/// ```
/// use themis::{Psn, Slots, path};
/// let four = Slots::new(4).unwrap();
/// let paths: Vec<u16> = (0..6).map(|n| path(Psn::new(n), four, 3)).collect();
/// assert_eq!(paths, [3, 0, 1, 2, 3, 0]);
/// ```
#[inline]
pub const fn path(psn: Psn, slots: Slots, base: u16) -> u16 {
    // Both residues are below 2^16, so the sum fits into 32 bits.
    slots.modulo(slots.of(psn) as u32 + slots.modulo(base as u32) as u32)
}

/// The path of each slot, in storage that the caller owns (`&mut [u16]`, `[u16; N]`, a vector).
///
/// This is our choice; the paper falls back to ECMP when a link fails (Themis §6). The destination ToR only needs all
/// packets of one slot on one FIFO path. So a slot may move when its path fails, and two slots may share a path: proofs of
/// loss become rarer, but stay true. While packets are still in flight on the old path, a slot has two paths and can cause
/// at most one false NACK. Unequal numbers of slots give paths of unequal capacity their weights.
///
/// An entry need not be the number of an uplink. A three-tier fabric stores the 16 bits to XOR into the UDP source port
/// (the paper's PathMap, 2 bytes per entry; see [`crate::path_map`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotTable<T> {
    slots: Slots,
    paths: T,
}

impl<T: AsRef<[u16]>> SlotTable<T> {
    /// A table with one slot per element: slot i uses path `paths[i]`. `None` if `paths` is empty or has more than 65,535
    /// elements.
    #[inline]
    pub fn new(paths: T) -> Option<Self> {
        let slots = u16::try_from(paths.as_ref().len()).ok().and_then(Slots::new)?;
        Some(Self { slots, paths })
    }

    /// The number of slots.
    #[inline]
    pub const fn slots(&self) -> Slots {
        self.slots
    }

    /// The entry for a packet of a flow with this base. The identity table yields the same as [`path`].
    #[inline]
    pub fn path(&self, psn: Psn, base: u16) -> u16 {
        // The rotation comes before the look-up, so PSNs with equal residues use one entry.
        let slot = path(psn, self.slots, base);
        // The index is out of range only if the storage has changed its length; then the slot number is the path.
        self.paths.as_ref().get(usize::from(slot)).copied().unwrap_or(slot)
    }
}

impl<T: AsRef<[u16]> + AsMut<[u16]>> SlotTable<T> {
    /// The identity table: one slot per element of `storage`, slot i on path i. `None` as in [`SlotTable::new`].
    pub fn identity(storage: T) -> Option<Self> {
        let mut table = Self::new(storage)?;
        for (path, slot) in table.paths.as_mut().iter_mut().zip(0..) {
            *path = slot;
        }
        Some(table)
    }

    /// Moves a slot to a path. A slot beyond the table is ignored.
    pub fn assign(&mut self, slot: u16, path: u16) {
        if let Some(entry) = self.paths.as_mut().get_mut(usize::from(slot)) {
            *entry = path;
        }
    }

    /// Moves the slots of a failed path to `others` in turn; returns the number of slots moved, 0 if `others` is empty.
    pub fn vacate(&mut self, failed: u16, others: &[u16]) -> usize {
        let on_failed = self.paths.as_mut().iter_mut().filter(|path| **path == failed);
        on_failed.zip(others.iter().cycle()).map(|(path, other)| *path = *other).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PSN_SPACE;

    #[test]
    fn consecutive_packets_visit_every_path_once_per_round() {
        for n in [1, 2, 3, 4, 7, 16, 48, 256, 65535] {
            let slots = Slots::new(n).unwrap();
            for base in [0, 1, 5, 65535] {
                let first = path(Psn::new(0), slots, base);
                assert_eq!(first, base % n);
                for i in 0..u32::from(n).min(600) {
                    let expected = (u32::from(first) + i) % u32::from(n);
                    assert_eq!(u32::from(path(Psn::new(i), slots, base)), expected, "N {n} base {base}");
                }
            }
        }
        assert_eq!(Slots::new(0), None);
    }

    #[test]
    fn the_wrap_has_a_seam_unless_the_slots_divide_the_psn_space() {
        let last = Psn::new(PSN_SPACE - 1);
        let seamless = |n| {
            let slots = Slots::new(n).unwrap();
            path(last.next(), slots, 0) == (path(last, slots, 0) + 1) % n
        };
        assert!(seamless(8) && !seamless(7));
    }

    #[test]
    fn the_slots_of_a_failed_path_move_to_the_other_paths_in_turn() {
        let mut storage = [9; 8];
        let mut table = SlotTable::identity(&mut storage[..]).unwrap();
        assert_eq!(table.path(Psn::new(6), 0), 6);
        assert_eq!(table.vacate(6, &[]), 0);
        assert_eq!(table.vacate(6, &[1, 2]), 1);
        table.assign(7, 1);
        table.assign(8, 1);
        assert_eq!(table.vacate(1, &[3, 4]), 3);
        assert_eq!(storage, [0, 3, 2, 3, 4, 5, 4, 3]);
        assert!(SlotTable::new([0u16; 0]).is_none());
    }
}
