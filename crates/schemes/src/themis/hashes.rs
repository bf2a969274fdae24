//! Hashes of switches, as far as Themis depends on them.

use ::themis::path_map::PortHash;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Header bits after the UDP source port in the hashed 5-tuple, in the order of the headers: those of the destination
/// port.
const AFTER: u32 = 16;

/// Hash of the switches of one tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "SwitchHash")]
pub struct Hash {
    /// Hash function.
    pub algorithm: Algorithm,
    /// Number of bits by which the 16-bit hash is rotated right, 0 to 15. A switch with 2^b ports to choose from takes the
    /// lowest b bits. Default 0 (our choice).
    #[serde(default)]
    pub offset: u8,
}

/// Hash functions of switch chips that are linear in the source port. The names are those of the Switch Abstraction
/// Interface (SAI, `sai_hash_algorithm_t`). Vendors do not publish the order of bits; here it is that of the headers (our
/// choice).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Algorithm {
    /// CRC-16, polynomial 0x8005 (CRC-16-BISYNC).
    #[serde(rename = "crc")]
    Crc,
    /// CRC-16, polynomial 0x1021 (CRC-16-CCITT).
    #[serde(rename = "crc-ccitt")]
    CrcCcitt,
    /// The lower 16 bits of the CRC-32 of Ethernet (polynomial 0x04C11DB7).
    #[serde(rename = "crc-32lo")]
    Crc32Lo,
    /// The upper 16 bits of the CRC-32 of Ethernet.
    #[serde(rename = "crc-32hi")]
    Crc32Hi,
    /// XOR of all 16-bit words.
    #[serde(rename = "xor")]
    Xor,
}

impl Hash {
    /// Dependence of the hash on the source port.
    pub(super) const fn of_port(self) -> PortHash {
        const BISYNC: u32 = 0x8005;
        const CCITT: u32 = 0x1021;
        const ETHERNET: u32 = 0x04C1_1DB7;
        let whole = match self.algorithm {
            Algorithm::Crc => PortHash::crc(16, BISYNC, 0, AFTER),
            Algorithm::CrcCcitt => PortHash::crc(16, CCITT, 0, AFTER),
            Algorithm::Crc32Lo => PortHash::crc(32, ETHERNET, 0, AFTER),
            Algorithm::Crc32Hi => PortHash::crc(32, ETHERNET, 16, AFTER),
            Algorithm::Xor => PortHash::xor(),
        };
        whole.rotated(self.offset as u32)
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.algorithm {
            Algorithm::Crc => "crc",
            Algorithm::CrcCcitt => "crc-ccitt",
            Algorithm::Crc32Lo => "crc-32lo",
            Algorithm::Crc32Hi => "crc-32hi",
            Algorithm::Xor => "xor",
        })?;
        if self.offset > 0 { write!(f, " (offset {})", self.offset) } else { Ok(()) }
    }
}

/// Hashes of tiers 1, 2 and 3: those of the three stages of Google's fabrics in its SAI program for P4, each with a
/// function and an offset of its own (`sai_p4`, hashing.p4).
pub(super) fn default() -> Vec<Hash> {
    let hash = |algorithm, offset| Hash { algorithm, offset };
    vec![hash(Algorithm::Crc32Lo, 0), hash(Algorithm::CrcCcitt, 4), hash(Algorithm::Crc, 8)]
}
