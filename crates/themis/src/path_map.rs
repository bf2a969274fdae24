//! PathMap: which path a packet takes beyond its source ToR, by way of its UDP source port.
//!
//! Where switches above the ToR choose among equal-cost ports as well, the ToR cannot name a path; it can change
//! what those switches hash. Their hashes are XORs of header bits or CRCs, so flipping bits of the source port
//! flips bits of the hash that do not depend on the rest of the packet: H(x ^ d) = H(x) ^ L(d) (RePaC, ATC'21).
//! A PathMap holds for every slot the change d of the port that flips exactly the slot's bits of all the choices
//! on the way. Slot i so takes path (base path) ^ i, and N slots take N paths (Themis, APNET'25).
//!
//! That needs numbers of ports that are powers of two, and hashes that differ from tier to tier: with the same
//! hash everywhere each choice repeats the one before (polarisation). [`PathMap::new`] finds out.

use core::fmt;

/// Bits of a UDP source port.
pub const PORT_BITS: usize = 16;

/// How a switch's hash of 16 bits depends on the UDP source port. Seeds and the other fields of the header do not
/// matter to that.
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

    /// The XOR of all 16-bit words of the header.
    pub const fn xor() -> Self {
        let mut rows = [0; 16];
        let mut i = 0;
        while i < rows.len() {
            rows[i] = 1 << i;
            i += 1;
        }
        Self { rows }
    }

    /// Bits `first` to `first + 15` of a CRC of `width` bits (at most 32; its lowest `width` coefficients in
    /// `polynomial`, most significant bit first, not reflected) over a header in which `after` bits follow the source
    /// port: 16, the destination port, in the order of a UDP header. Bits beyond the CRC are 0.
    pub const fn crc(width: u32, polynomial: u32, first: u32, after: u32) -> Self {
        let mut rows = [0; 16];
        let mut bit = 0;
        while bit < PORT_BITS {
            // x^(bit + after + width) mod the polynomial: what this bit alone leaves of a header of zeros.
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

    /// The same hash rotated right by `offset` bits, as switch chips offer it.
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

/// A choice on the way: a switch that takes the lowest `bits` bits of its hash as the number of the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Its hash.
    pub hash: PortHash,
    /// It chooses among 2^bits ports.
    pub bits: u8,
}

/// Why no PathMap exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathMapError {
    /// All choices together have more bits than a source port.
    TooManyPaths {
        /// Their bits.
        bits: usize,
    },
    /// A bit of one choice always flips together with bits of choices before it.
    Dependent {
        /// Number of the choice on the way, from 0.
        choice: usize,
        /// Bit of its hash.
        bit: u8,
        /// The bits that it follows, as bits of a slot number; 0 if no port can flip it at all.
        follows: u16,
        /// Paths that the hashes can reach, of all.
        reached: u32,
        /// All paths.
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

/// A change of the UDP source port for every slot. 34 bytes, from which [`PathMap::fill`] makes the table of a ToR (2
/// bytes a slot).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathMap {
    /// The change that flips one bit of the slot number and no other.
    basis: [u16; PORT_BITS],
    bits: u8,
}

impl PathMap {
    /// The map for the choices on the way, from the source ToR on. The lowest bits of a slot number belong to the
    /// first choice.
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

    /// What to XOR into the source port of packets of a slot. Slots N, N + 1, ... repeat the first ones.
    pub fn delta(&self, slot: u16) -> u16 {
        let own = self.basis.iter().take(usize::from(self.bits)).enumerate();
        own.fold(0, |delta, (i, change)| if slot >> i & 1 == 1 { delta ^ change } else { delta })
    }

    /// Fills a table, slot by slot, for instance one for [`crate::SlotTable`].
    pub fn fill(&self, table: &mut [u16]) {
        for (entry, slot) in table.iter_mut().zip(0..=u16::MAX) {
            *entry = self.delta(slot);
        }
    }
}

/// Linear equations over GF(2), one per bit of a slot number, kept in reduced row echelon form.
#[derive(Default)]
struct System {
    /// What is left of a row; each has a highest bit that no other row has.
    reduced: [u16; PORT_BITS],
    /// Of which rows it is the sum.
    sums: [u16; PORT_BITS],
    rank: usize,
    rows: u32,
}

impl System {
    /// Adds a row. If it is the sum of rows added before, says of which.
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

    /// For every row the port bits that flip it alone.
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

    /// The slots' paths as the switches hash: all different, and slot i on path i.
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
    fn two_hashes_steer_every_fat_tree_that_hosts_can_fill() {
        for bits in 0..=5 {
            covers(&[Choice { hash: CCITT, bits }, Choice { hash: BISYNC, bits }]);
            covers(&[Choice { hash: BISYNC, bits }, Choice { hash: CCITT.rotated(4), bits }]);
        }
        covers(&[Choice { hash: PortHash::xor(), bits: 16 }]);
        covers(&[]);
    }

    #[test]
    fn the_same_hash_twice_is_polarisation_and_other_bits_of_it_are_not() {
        let tor = Choice { hash: CCITT, bits: 3 };
        let error = PathMapError::Dependent { choice: 1, bit: 0, follows: 1, reached: 8, paths: 64 };
        assert_eq!(PathMap::new(&[tor, tor]), Err(error));
        covers(&[tor, Choice { hash: CCITT.rotated(3), bits: 3 }]);
        // Rotated by less, one bit of the three is shared.
        let close = Choice { hash: CCITT.rotated(2), bits: 3 };
        let error = PathMapError::Dependent { choice: 1, bit: 0, follows: 4, reached: 32, paths: 64 };
        assert_eq!(PathMap::new(&[tor, close]), Err(error));
    }

    #[test]
    fn a_hash_without_the_source_port_steers_nothing() {
        let blind = Choice { hash: PortHash::new([0; 16]), bits: 1 };
        let error = PathMapError::Dependent { choice: 0, bit: 0, follows: 0, reached: 1, paths: 2 };
        assert_eq!(PathMap::new(&[blind]), Err(error));
        let many = Choice { hash: PortHash::xor(), bits: 9 };
        assert_eq!(PathMap::new(&[many, many]), Err(PathMapError::TooManyPaths { bits: 18 }));
    }

    #[test]
    fn a_table_repeats_the_paths_beyond_their_number() {
        let map = PathMap::new(&[Choice { hash: CCITT, bits: 2 }]).unwrap();
        let mut table = [0; 6];
        map.fill(&mut table);
        assert_eq!(table[4..], table[..2]);
    }
}
