//! PathMap: the UDP source port as a means to choose a packet's path beyond its source ToR.
//!
//! In a fabric of three or more tiers, switches above the ToR choose among equal-cost ports, too. The ToR cannot name a
//! whole path, but it can change what these switches hash. Their hashes are XORs of header bits, or CRCs. Flipping bits of
//! the source port therefore flips bits of the hash that do not depend on the rest of the packet: H(x ^ d) = H(x) ^ L(d)
//! (RePaC, ATC'21). A PathMap holds for every slot the change d of the port that flips exactly the slot's bits in all
//! choices along the path. Slot i takes path (base path) ^ i, and N slots take N paths (Themis, APNET'25).
//!
//! This needs numbers of ports that are powers of two, and hashes that differ between tiers. If two tiers use the same
//! hash, the second choice repeats the first (polarisation); [`PathMap::new`] then returns an error.

use core::fmt;

/// Bits of a UDP source port.
pub const PORT_BITS: usize = 16;

/// The dependence of a switch's 16-bit hash on the UDP source port. Seeds and other header fields have no influence on
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortHash {
    /// Bit i of the hash flips if an odd number of these bits of the port flip.
    rows: [u16; 16],
}

impl PortHash {
    /// The hash whose bit i is the parity of the port's bits `rows[i]`.
    pub const fn new(rows: [u16; 16]) -> Self {
        Self { rows }
    }

    /// The hash that is the XOR of all 16-bit words of the header.
    pub const fn xor() -> Self {
        let mut rows = [0; 16];
        let mut i = 0;
        while i < rows.len() {
            rows[i] = 1 << i;
            i += 1;
        }
        Self { rows }
    }

    /// The hash that consists of bits `first` to `first + 15` of a CRC of `width` bits, at most 32. `polynomial` holds the
    /// CRC's lowest `width` coefficients, most significant bit first, not reflected. `after` is the number of header bits
    /// behind the source port: 16 for the destination port in the order of a UDP header. Bits beyond the CRC are 0.
    pub const fn crc(width: u32, polynomial: u32, first: u32, after: u32) -> Self {
        let mut rows = [0; 16];
        let mut bit = 0;
        while bit < PORT_BITS {
            // x^(bit + after + width) mod the polynomial: the CRC of a header in which only this bit is set.
            let mut crc = polynomial as u64;
            let top = 1u64 << width;
            let mut step = 0;
            while step < bit as u32 + after {
                crc <<= 1;
                if crc & top != 0 {
                    crc ^= top | polynomial as u64;
                }
                step += 1;
            }
            let mut row = 0;
            while row < rows.len() {
                rows[row] |= ((crc >> first >> row & 1) as u16) << bit;
                row += 1;
            }
            bit += 1;
        }
        Self { rows }
    }

    /// This hash rotated right by `offset` bits, an option of switch chips.
    pub const fn rotated(self, offset: u32) -> Self {
        let mut rows = [0; 16];
        let mut i = 0;
        while i < rows.len() {
            rows[i] = self.rows[(i + offset as usize) % rows.len()];
            i += 1;
        }
        Self { rows }
    }

    /// The bits of the hash that flip when these bits of the source port flip.
    pub const fn flips(self, delta: u16) -> u16 {
        let mut flips = 0;
        let mut i = 0;
        while i < self.rows.len() {
            flips |= ((self.rows[i] & delta).count_ones() as u16 & 1) << i;
            i += 1;
        }
        flips
    }
}

/// One choice along the path: a switch that takes the lowest `bits` bits of its hash as the number of the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Hash of the switch.
    pub hash: PortHash,
    /// Base-2 logarithm of the number of ports.
    pub bits: u8,
}

/// Why no PathMap exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathMapError {
    /// All choices together take more bits than a source port has.
    TooManyPaths {
        /// Bits of all choices.
        bits: usize,
    },
    /// A bit of one choice always flips together with bits of choices before it.
    Dependent {
        /// Number of the choice along the path, from 0.
        choice: usize,
        /// Dependent bit of the choice's hash.
        bit: u8,
        /// The bits that always flip together with it, as bits of a slot number; 0 if no source port flips the bit.
        follows: u16,
        /// Number of paths that the hashes can reach.
        reached: u32,
        /// Number of all paths.
        paths: u32,
    },
}

impl fmt::Display for PathMapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManyPaths { bits } => {
                write!(f, "2^{bits} paths are more than the 2^{PORT_BITS} source ports can tell apart")
            }
            Self::Dependent { choice, bit, reached, paths, .. } => write!(
                f,
                "bit {bit} of the hash of choice {choice} follows from the choices before it: {reached} of {paths} \
                 paths can be reached"
            ),
        }
    }
}

impl core::error::Error for PathMapError {}

/// A change of the UDP source port for every slot, in 34 bytes. [`PathMap::fill`] expands it to the table of a ToR, 2 bytes
/// per slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathMap {
    /// By bit of the slot number: the change that flips this bit and no other.
    basis: [u16; PORT_BITS],
    bits: u8,
}

impl PathMap {
    /// The map for the choices along the path, the source ToR's first. The lowest bits of a slot number belong to the first
    /// choice.
    ///
    /// # Errors
    /// If the hashes cannot reach all paths.
    ///
    /// ```
    /// use themis::path_map::{Choice, PathMap, PortHash};
    /// // ToRs and the switches above them choose among 4 ports each: 16 paths.
    /// let tor = Choice { hash: PortHash::crc(16, 0x1021, 0, 16), bits: 2 };
    /// let above = Choice { hash: PortHash::crc(16, 0x8005, 0, 16), bits: 2 };
    /// let map = PathMap::new(&[tor, above])?;
    /// assert_eq!(map.delta(0), 0); // slot 0 keeps the flow's own path
    /// for slot in 0..16 {
    ///     let d = map.delta(slot);
    ///     assert_eq!((tor.hash.flips(d) & 3, above.hash.flips(d) & 3), (slot & 3, slot >> 2));
    /// }
    /// assert!(PathMap::new(&[tor, tor]).is_err()); // the same hash twice: polarisation
    /// # Ok::<(), themis::path_map::PathMapError>(())
    /// ```
    pub fn new(choices: &[Choice]) -> Result<Self, PathMapError> {
        let bits = choices.iter().map(|choice| usize::from(choice.bits)).sum();
        if bits > PORT_BITS {
            return Err(PathMapError::TooManyPaths { bits });
        }
        let mut system = System::default();
        let mut dependent = None;
        for (number, choice) in choices.iter().enumerate() {
            for (bit, &row) in (0..choice.bits).zip(&choice.hash.rows) {
                if let Err(follows) = system.add(row) {
                    dependent.get_or_insert((number, bit, follows));
                }
            }
        }
        match dependent {
            None => Ok(Self { basis: system.solve(), bits: bits as u8 }),
            Some((choice, bit, follows)) => {
                let (reached, paths) = (1 << system.rank, 1 << bits);
                Err(PathMapError::Dependent { choice, bit, follows, reached, paths })
            }
        }
    }

    /// The number of paths, N.
    pub const fn paths(&self) -> u32 {
        1 << self.bits
    }

    /// The bits to XOR into the source port of a slot's packets. Slots N, N + 1, ... repeat slots 0, 1, ...
    pub fn delta(&self, slot: u16) -> u16 {
        let own = self.basis.iter().take(usize::from(self.bits)).enumerate();
        own.fold(0, |delta, (i, change)| if slot >> i & 1 == 1 { delta ^ change } else { delta })
    }

    /// Fills a table with the change of each slot, for example the table of a [`crate::SlotTable`].
    pub fn fill(&self, table: &mut [u16]) {
        for (entry, slot) in table.iter_mut().zip(0..=u16::MAX) {
            *entry = self.delta(slot);
        }
    }
}

/// Linear equations over GF(2), one per bit of a slot number, kept in reduced row echelon form.
#[derive(Default)]
struct System {
    /// Reduced rows; the highest bit of each is 0 in all others.
    reduced: [u16; PORT_BITS],
    /// By reduced row: the set of original rows whose sum it is.
    sums: [u16; PORT_BITS],
    rank: usize,
    rows: u32,
}

impl System {
    /// Adds a row. Fails if the row is a sum of earlier rows; the error is the set of these rows.
    fn add(&mut self, row: u16) -> Result<(), u16> {
        let own = 1 << self.rows;
        self.rows += 1;
        let (mut row, mut sum) = (row, own);
        for i in 0..self.rank {
            if row & highest(self.reduced[i]) != 0 {
                row ^= self.reduced[i];
                sum ^= self.sums[i];
            }
        }
        if row == 0 {
            return Err(sum ^ own);
        }
        for i in 0..self.rank {
            if self.reduced[i] & highest(row) != 0 {
                self.reduced[i] ^= row;
                self.sums[i] ^= sum;
            }
        }
        (self.reduced[self.rank], self.sums[self.rank]) = (row, sum);
        self.rank += 1;
        Ok(())
    }

    /// By original row: the port bits that flip this row and no other.
    fn solve(&self) -> [u16; PORT_BITS] {
        let mut basis = [0; PORT_BITS];
        for (row, change) in basis.iter_mut().enumerate() {
            let own = self.reduced.iter().zip(&self.sums).take(self.rank);
            *change = own.fold(0, |d, (&left, sum)| if sum >> row & 1 == 1 { d | highest(left) } else { d });
        }
        basis
    }
}

/// The highest bit of a row that is not 0.
fn highest(row: u16) -> u16 {
    1 << (15 - row.leading_zeros().min(15))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CCITT: PortHash = PortHash::crc(16, 0x1021, 0, 16);
    const BISYNC: PortHash = PortHash::crc(16, 0x8005, 0, 16);

    /// Checks that slot i takes path i, as the switches hash.
    fn covers(choices: &[Choice]) {
        let map = PathMap::new(choices).unwrap();
        assert_eq!(map.paths(), choices.iter().map(|c| 1 << c.bits).product());
        for slot in 0..map.paths() as u16 {
            let mut bits = slot;
            for Choice { hash, bits: own } in choices {
                let mask = ((1u32 << own) - 1) as u16;
                assert_eq!(hash.flips(map.delta(slot)) & mask, bits & mask, "slot {slot}");
                bits = bits.checked_shr((*own).into()).unwrap_or(0);
            }
        }
    }

    #[test]
    fn two_different_hashes_reach_all_paths_of_fat_trees_up_to_32_ports_per_tier() {
        for bits in 0..=5 {
            covers(&[Choice { hash: CCITT, bits }, Choice { hash: BISYNC, bits }]);
            covers(&[Choice { hash: BISYNC, bits }, Choice { hash: CCITT.rotated(4), bits }]);
        }
        covers(&[Choice { hash: PortHash::xor(), bits: 16 }]);
        covers(&[]);
    }

    #[test]
    fn the_same_hash_twice_polarises_and_other_bits_of_it_do_not() {
        let tor = Choice { hash: CCITT, bits: 3 };
        let error = PathMapError::Dependent { choice: 1, bit: 0, follows: 1, reached: 8, paths: 64 };
        assert_eq!(PathMap::new(&[tor, tor]), Err(error));
        covers(&[tor, Choice { hash: CCITT.rotated(3), bits: 3 }]);
        // A rotation by two bits leaves one of the three bits shared.
        let close = Choice { hash: CCITT.rotated(2), bits: 3 };
        let error = PathMapError::Dependent { choice: 1, bit: 0, follows: 4, reached: 32, paths: 64 };
        assert_eq!(PathMap::new(&[tor, close]), Err(error));
    }

    #[test]
    fn a_hash_that_ignores_the_source_port_reaches_one_path() {
        let blind = Choice { hash: PortHash::new([0; 16]), bits: 1 };
        let error = PathMapError::Dependent { choice: 0, bit: 0, follows: 0, reached: 1, paths: 2 };
        assert_eq!(PathMap::new(&[blind]), Err(error));
        let many = Choice { hash: PortHash::xor(), bits: 9 };
        assert_eq!(PathMap::new(&[many, many]), Err(PathMapError::TooManyPaths { bits: 18 }));
    }

    #[test]
    fn a_table_longer_than_the_number_of_paths_repeats_them() {
        let map = PathMap::new(&[Choice { hash: CCITT, bits: 2 }]).unwrap();
        let mut table = [0; 6];
        map.fill(&mut table);
        assert_eq!(table[4..], table[..2]);
    }
}
