//! Checks PathMaps against `vectors/path-map/hashes.toml`, whose hashes other code computed from whole headers.

use serde::Deserialize;
use themis::path_map::{Choice, PathMap, PortHash};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    hash: Vec<Hash>,
    map: Vec<Map>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Hash {
    name: String,
    width: u32,
    polynomial: u32,
    first: u32,
    value: u16,
    flips: Vec<(u16, u16)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Map {
    choices: Vec<Chooses>,
    deltas: Vec<u16>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Chooses {
    hash: String,
    offset: u32,
    bits: u8,
}

fn file() -> File {
    toml::from_str(include_str!("../../vectors/path-map/hashes.toml")).unwrap()
}

impl Hash {
    fn of_port(&self) -> PortHash {
        PortHash::crc(self.width, self.polynomial, self.first, 16)
    }

    /// The hash of a whole 5-tuple, by the definition of a CRC.
    fn of_header(&self, source_port: u16) -> u16 {
        let mut header = vec![10, 0, 0, 1, 10, 0, 1, 2, 17];
        header.extend(source_port.to_be_bytes());
        header.extend(4791u16.to_be_bytes());
        let bits = header.iter().flat_map(|byte| (0..8).rev().map(move |i| u64::from(byte >> i & 1)));
        let crc = bits.fold(0u64, |crc, bit| {
            let out = crc >> (self.width - 1) & 1;
            let shifted = crc << 1 & ((1 << self.width) - 1);
            if out ^ bit == 1 { shifted ^ u64::from(self.polynomial) } else { shifted }
        });
        (crc >> self.first) as u16
    }
}

#[test]
fn a_change_of_the_port_flips_the_same_bits_of_every_headers_hash() {
    for hash in file().hash {
        assert_eq!(hash.of_header(0xC000), hash.value, "{}", hash.name);
        for &(delta, flips) in &hash.flips {
            assert_eq!(hash.of_port().flips(delta), flips, "{} by {delta:#06x}", hash.name);
            for port in [0xC000, 0, 1, 0x1234, 0xFFFF] {
                assert_eq!(hash.of_header(port) ^ hash.of_header(port ^ delta), flips, "{}", hash.name);
            }
        }
    }
}

#[test]
fn every_slot_takes_its_own_path_by_the_hash_of_whole_headers() {
    let File { hash: hashes, map: maps } = file();
    for map in &maps {
        let find = |name: &str| hashes.iter().find(|h| h.name == name).unwrap();
        let choices: Vec<_> = map
            .choices
            .iter()
            .map(|c| Choice { hash: find(&c.hash).of_port().rotated(c.offset), bits: c.bits })
            .collect();
        let built = PathMap::new(&choices).unwrap();
        let mut table = vec![0; map.deltas.len()];
        built.fill(&mut table);
        assert_eq!((built.paths() as usize, &table), (map.deltas.len(), &map.deltas));
        for source_port in [0xC000, 0xC0DE] {
            let path = |port: u16| {
                let bits = |c: &Chooses| {
                    let hash = find(&c.hash).of_header(port).rotate_right(c.offset);
                    (hash & ((1 << c.bits) - 1), u32::from(c.bits))
                };
                map.choices.iter().map(bits).rfold(0, |path, (own, bits)| path << bits | own)
            };
            for (slot, delta) in (0..).zip(&map.deltas) {
                assert_eq!(path(source_port ^ delta), path(source_port) ^ slot, "slot {slot}");
            }
        }
    }
    assert_eq!(maps.len(), 2);
}
