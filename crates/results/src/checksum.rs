//! Sizes and checksums of files, taken while the files are written.
//!
//! A checksum is XXH3 with 128 bits, the hash of the [digest](crate::digest). It finds mixed, cut and edited files at the speed
//! of memory. It is no signature: whoever edits a file on purpose can also compute its checksum.

use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use xxhash_rust::xxh3::Xxh3;

/// Bytes that are read at one time. Our choice: larger blocks are no faster.
const BLOCK: usize = 1 << 18;

/// Size and checksum of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checksum {
    /// Size in bytes.
    pub bytes: u64,
    /// XXH3 with 128 bits, 32 hexadecimal digits.
    pub xxh3: String,
}

impl Checksum {
    /// Checksum of a text or of the content of a file.
    pub fn of(content: &[u8]) -> Self {
        let mut sum = Summing::new(io::sink());
        sum.count(content);
        sum.checksum()
    }

    /// Checksum of a file.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn of_file(path: &Path) -> io::Result<Self> {
        let (mut file, mut sum) = (File::open(path)?, Summing::new(io::sink()));
        let mut block = vec![0; BLOCK];
        loop {
            match file.read(&mut block) {
                Ok(0) => return Ok(sum.checksum()),
                Ok(n) => sum.count(&block[..n]),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }
}

/// A writer that computes the checksum of all bytes that pass.
pub struct Summing<W> {
    to: W,
    hash: Xxh3,
    bytes: u64,
}

impl<W: Write> Summing<W> {
    /// A writer in front of `to`.
    pub fn new(to: W) -> Self {
        Summing { to, hash: Xxh3::new(), bytes: 0 }
    }

    /// Size and checksum of the bytes so far.
    pub fn checksum(&self) -> Checksum {
        Checksum { bytes: self.bytes, xxh3: crate::digest::hex(self.hash.digest128()) }
    }

    fn count(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
        self.bytes += bytes.len() as u64;
    }
}

impl<W: Write> Write for Summing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.count(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_checksum_is_the_same_in_one_piece_in_pieces_and_from_a_file() {
        let content: Vec<u8> = (0..3 * BLOCK + 7).map(|i| (i % 251) as u8).collect();
        let whole = Checksum::of(&content);
        let mut pieces = Summing::new(Vec::new());
        content.chunks(1000).for_each(|piece| pieces.write_all(piece).unwrap());
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), &content).unwrap();
        assert_eq!((pieces.checksum(), pieces.to), (whole.clone(), content));
        assert_eq!(Checksum::of_file(file.path()).unwrap(), whole);
        // The test vector of XXH3 with 128 bits for no input (xxHash, version 0.8).
        assert_eq!(Checksum::of(b"").xxh3, "99aa06d3014798d86001c324468d497f");
    }

    /// Prints the speed of the check that docs/results.md states.
    #[test]
    #[ignore = "a measurement of the machine, not a test: --ignored --nocapture prints it"]
    #[expect(clippy::disallowed_methods, reason = "it measures the time of a check")]
    fn speed_of_a_check() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), vec![7; 1 << 30]).unwrap();
        for _ in 0..3 {
            let begin = Instant::now();
            let checksum = Checksum::of_file(file.path()).unwrap();
            let speed = checksum.bytes as f64 / begin.elapsed().as_secs_f64() / 1e9;
            println!("{speed:.1} GB/s from the page cache");
        }
    }
}
