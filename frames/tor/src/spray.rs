//! Themis-S, the source ToR: which path a packet takes.

use crate::draw::Draw;
use crate::frame::Roce;
use crate::table::mix;
use std::net::IpAddr;
use themis::{Psn, SlotTable, Slots};

/// How packets of the request stream choose their path. All other frames stay on their flow's base path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spray {
    /// By PSN, as Themis-S does (Themis, APNET'25, Eq. 1).
    #[default]
    Psn,
    /// At random: random packet spraying.
    Rps,
    /// Not at all: every flow has one path, by a hash.
    Ecmp,
}

/// How the chosen path gets into a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Steer {
    /// Not at all: the ToR picks the uplink. This is enough in two tiers.
    #[default]
    Port,
    /// The source ToR changes the UDP source port by XOR with the slot, and the destination ToR undoes it. The ICRC stays.
    XorUndo,
    /// The source ToR changes the UDP source port by XOR with the slot, and updates the ICRC.
    XorIcrc,
}

/// The paths of one ToR.
#[derive(Debug)]
pub(crate) struct Sprayer {
    spray: Spray,
    table: SlotTable<Box<[u16]>>,
    /// Paths that are up, in order.
    up: Vec<u16>,
    paths: u16,
    draw: Draw,
}

/// A packet's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) path: u16,
    /// Slot of a packet that was sprayed by PSN.
    pub(crate) slot: Option<u16>,
}

impl Sprayer {
    /// `paths` is at least 1.
    pub(crate) fn new(spray: Spray, paths: u16, seed: u64) -> Self {
        let paths = paths.max(1);
        let storage: Box<[u16]> = (0..paths).collect();
        let table = SlotTable::new(storage).expect("there is a path");
        Sprayer { spray, table, up: (0..paths).collect(), paths, draw: Draw::new(seed, 0x5B7A) }
    }

    /// The path of a packet of the request stream, with the [`base`] of its flow.
    #[inline]
    pub(crate) fn request(&mut self, psn: Psn, base: u16) -> Choice {
        match self.spray {
            Spray::Psn => {
                let slot = themis::path(psn, self.table.slots(), base);
                Choice { path: self.table.path(psn, base), slot: Some(slot) }
            }
            Spray::Rps => {
                let most = (self.up.len() as u64).saturating_sub(1);
                let n = self.draw.up_to(most);
                Choice { path: self.nth_up(n), slot: None }
            }
            Spray::Ecmp => self.base(u64::from(base)),
        }
    }

    /// The base path of a flow with this hash.
    #[inline]
    pub(crate) fn base(&mut self, hash: u64) -> Choice {
        // A multiplication maps the upper half of a hash onto the number of paths.
        let n = mix(hash) >> 32;
        let most = self.up.len().max(1) as u64;
        Choice { path: self.nth_up((n * most) >> 32), slot: None }
    }

    fn nth_up(&self, n: u64) -> u16 {
        self.up.get(n as usize).copied().unwrap_or(0)
    }

    pub(crate) fn slots(&self) -> Slots {
        self.table.slots()
    }

    /// Takes note that a path has failed or has come back. Returns the number of slots that moved.
    pub(crate) fn set_up(&mut self, path: u16, up: bool) -> usize {
        self.up.retain(|&other| other != path);
        if up {
            let at = self.up.partition_point(|&other| other < path);
            self.up.insert(at, path);
        }
        // The identity first, then each failed path's slots onto the others: the table depends only on which paths are up.
        let before = |slot| self.table.path(Psn::new(u32::from(slot)), 0);
        let old: Vec<u16> = (0..self.paths).map(before).collect();
        for slot in 0..self.paths {
            self.table.assign(slot, slot);
        }
        for failed in 0..self.paths {
            if !self.up.contains(&failed) {
                self.table.vacate(failed, &self.up);
            }
        }
        let after = |slot| self.table.path(Psn::new(u32::from(slot)), 0);
        (0..self.paths).zip(old).filter(|(slot, old)| after(*slot) != *old).count()
    }
}

/// The slot of a packet, as the source ToR computes it.
pub(crate) fn slot(roce: &Roce, slots: Slots, seed: u64) -> u16 {
    themis::path(roce.psn, slots, base(roce, seed))
}

/// The base of a flow: 16 bits that both ToRs can compute, so it leaves out the source port.
#[inline]
pub(crate) fn base(roce: &Roce, seed: u64) -> u16 {
    (mix(addresses(roce) ^ u64::from(roce.qp.value()) ^ seed) >> 48) as u16
}

/// A hash of a packet's flow, with its source port.
#[inline]
pub(crate) fn flow_hash(roce: &Roce) -> u64 {
    mix(addresses(roce) ^ u64::from(roce.source_port) << 32 ^ u64::from(roce.qp.value()))
}

#[inline]
fn addresses(roce: &Roce) -> u64 {
    word(roce.source).rotate_left(17) ^ word(roce.destination)
}

#[inline]
fn word(address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(address) => mix(u64::from(u32::from(address))),
        IpAddr::V6(address) => {
            let bits = u128::from(address);
            mix(bits as u64 ^ mix((bits >> 64) as u64))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_of_a_failed_path_move_and_return() {
        let mut sprayer = Sprayer::new(Spray::Psn, 4, 1);
        let paths = |sprayer: &Sprayer| -> Vec<u16> {
            (0..4).map(|psn| sprayer.table.path(Psn::new(psn), 0)).collect()
        };
        assert_eq!(sprayer.set_up(2, false), 1);
        assert_eq!(paths(&sprayer), [0, 1, 0, 3]);
        assert_eq!(sprayer.set_up(0, false), 2);
        assert_eq!(paths(&sprayer), [1, 1, 1, 3]);
        sprayer.set_up(0, true);
        assert_eq!(sprayer.set_up(2, true), 1);
        assert_eq!(paths(&sprayer), [0, 1, 2, 3]);
    }

    #[test]
    fn base_paths_avoid_failed_ones_and_reach_all_others() {
        let mut sprayer = Sprayer::new(Spray::Psn, 4, 1);
        sprayer.set_up(1, false);
        let mut seen = [0; 4];
        for hash in 0..1000 {
            seen[usize::from(sprayer.base(hash).path)] += 1;
        }
        assert!(seen[1] == 0 && [0, 2, 3].iter().all(|&path| seen[path] > 250), "{seen:?}");
    }
}
