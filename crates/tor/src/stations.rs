//! The table of MAC addresses: behind which port each station is.

use crate::units::{PortId, Span, Time};
use wire::ethernet::Address;

/// Learnt addresses per port. Our choice (the tables of small switches): a host has few, and a flood must not fill memory.
pub const PER_PORT: usize = 1024;
/// Age at which an unused address is forgotten (IEEE 802.1Q, table 8-6: 300 s).
pub const AGE: Span = Span::from_secs(300);

/// Slots that a look-up examines before it gives up.
const PROBES: usize = 16;

#[derive(Clone, Copy, Debug)]
struct Entry {
    address: Address,
    port: PortId,
    /// Last frame from the address; `None` for an address that an operator has fixed.
    seen: Option<Time>,
}

/// A table of fixed size.
#[derive(Debug)]
pub struct Stations {
    slots: Box<[Option<Entry>]>,
    learnt: Box<[usize]>,
}

impl Stations {
    /// An empty table for so many ports.
    pub fn new(ports: usize) -> Self {
        let slots = (2 * PER_PORT * ports.max(1)).next_power_of_two();
        Stations { slots: vec![None; slots].into(), learnt: vec![0; ports].into() }
    }

    /// Fixes an address to a port. A frame that carries it elsewhere does not move it.
    pub fn fix(&mut self, address: Address, port: PortId) {
        if let Some(slot) = self.place(address) {
            self.slots[slot] = Some(Entry { address, port, seen: None });
        }
    }

    /// Learns from a frame's source address. Returns false if the table has no room for it.
    pub fn learn(&mut self, now: Time, address: Address, port: PortId) -> bool {
        self.learn_slot(now, address, port).is_some()
    }

    /// [`Stations::learn`] that returns the slot of the address.
    pub(crate) fn learn_slot(&mut self, now: Time, address: Address, port: PortId) -> Option<u32> {
        let slot = self.place(address)?;
        let number = Some(slot as u32);
        match &mut self.slots[slot] {
            Some(Entry { seen: None, .. }) => return number,
            Some(entry) if entry.address == address && entry.port == port => {
                entry.seen = Some(now);
                return number;
            }
            // Another address has aged, or the station has moved.
            Some(entry)
                if entry.address == address || entry.seen.is_some_and(|seen| now.since(seen) > AGE) =>
            {
                self.learnt[entry.port.index()] -= 1;
            }
            Some(_) => return None,
            None => {}
        }
        if self.learnt[port.index()] >= PER_PORT {
            self.slots[slot] = self.slots[slot].filter(|entry| entry.address == address);
            return None;
        }
        self.learnt[port.index()] += 1;
        self.slots[slot] = Some(Entry { address, port, seen: Some(now) });
        number
    }

    /// Learns an address that is in this slot and at this port already. Returns false if it is not, or not at this port.
    #[inline]
    pub(crate) fn learn_at(&mut self, now: Time, slot: u32, address: Address, port: PortId) -> bool {
        match self.slots.get_mut(slot as usize) {
            Some(Some(entry)) if entry.address == address => match &mut entry.seen {
                None => true,
                Some(seen) if entry.port == port => {
                    *seen = now;
                    true
                }
                Some(_) => false,
            },
            _ => false,
        }
    }

    /// The port of an address, if it is known.
    pub fn port(&self, now: Time, address: Address) -> Option<PortId> {
        self.port_at(now, self.slot(address)?, address)
    }

    /// The slot of an address, if it is in the table.
    pub(crate) fn slot(&self, address: Address) -> Option<u32> {
        let mut probes = self.probes(address);
        probes.find(|&slot| self.slots[slot].is_some_and(|e| e.address == address)).map(|slot| slot as u32)
    }

    /// The port of an address, if it is in this slot and has not aged.
    #[inline]
    pub(crate) fn port_at(&self, now: Time, slot: u32, address: Address) -> Option<PortId> {
        let entry = self.slots.get(slot as usize)?.as_ref().filter(|entry| entry.address == address)?;
        entry.seen.is_none_or(|seen| now.since(seen) <= AGE).then_some(entry.port)
    }

    /// Number of addresses learnt at a port.
    pub fn learnt(&self, port: PortId) -> usize {
        self.learnt.get(port.index()).copied().unwrap_or(0)
    }

    /// The slot of an address, or the one that it may take: a free one, or the one unused for longest.
    fn place(&self, address: Address) -> Option<usize> {
        let own = self.probes(address).find(|&slot| self.slots[slot].is_some_and(|e| e.address == address));
        own.or_else(|| self.probes(address).find(|&slot| self.slots[slot].is_none())).or_else(|| {
            let learnt = self.probes(address).filter_map(|slot| Some((self.slots[slot]?.seen?, slot)));
            learnt.min().map(|(_, slot)| slot)
        })
    }

    fn probes(&self, address: Address) -> impl Iterator<Item = usize> + use<> {
        let [a, b, c, d, e, f] = address.0;
        let number = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
        // Fibonacci hashing: the high bits of the product with 2^64 divided by the golden ratio.
        let start = (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize;
        let mask = self.slots.len() - 1;
        (0..PROBES).map(move |i| (start + i) & mask)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Address = Address::local(1);

    #[test]
    fn a_station_is_learnt_moves_and_ages() {
        let mut stations = Stations::new(2);
        assert_eq!(stations.port(Time::ZERO, A), None);
        assert!(stations.learn(Time::ZERO, A, PortId(0)));
        assert_eq!(stations.port(Time::ZERO, A), Some(PortId(0)));
        assert!(stations.learn(Time::ZERO, A, PortId(1)));
        assert_eq!(stations.port(Time::ZERO + AGE, A), Some(PortId(1)));
        assert_eq!((stations.learnt(PortId(0)), stations.learnt(PortId(1))), (0, 1));
        assert_eq!(stations.port(Time::ZERO + AGE + Span::from_nanos(1), A), None);
    }

    /// Those who remember the slot of a station may find another one there.
    #[test]
    fn a_slot_answers_for_its_own_station_only() {
        let mut stations = Stations::new(2);
        stations.learn(Time::ZERO, A, PortId(1));
        let slot = stations.slot(A).unwrap();
        assert_eq!(stations.port_at(Time::ZERO, slot, A), Some(PortId(1)));
        assert_eq!(stations.port_at(Time::ZERO, slot, Address::local(2)), None);
        assert_eq!(
            (stations.port_at(Time::ZERO, slot ^ 1, A), stations.slot(Address::local(2))),
            (None, None)
        );
    }

    #[test]
    fn a_fixed_station_stays() {
        let mut stations = Stations::new(2);
        stations.fix(A, PortId(1));
        assert!(stations.learn(Time::ZERO, A, PortId(0)));
        assert_eq!(stations.port(Time::ZERO + AGE + AGE, A), Some(PortId(1)));
    }

    #[test]
    fn a_flood_of_addresses_fills_its_port_only() {
        let mut stations = Stations::new(2);
        stations.fix(A, PortId(1));
        let taken =
            (100..100_100).filter(|n| stations.learn(Time::ZERO, Address::local(*n), PortId(0))).count();
        assert_eq!((taken, stations.learnt(PortId(0))), (PER_PORT, PER_PORT));
        assert!(stations.learn(Time::ZERO, Address::local(7), PortId(1)));
        assert_eq!(stations.port(Time::ZERO, A), Some(PortId(1)));
    }
}
