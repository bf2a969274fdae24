//! The table of MAC addresses: behind which port each station is.

use crate::units::{PortId, Span, Time};
use wire::ethernet::Address;

/// Learnt addresses per port. Our choice (the tables of small switches): a host has few, and a flood must not fill memory.
pub const PER_PORT: usize = 1024;
/// Age at which an unused address is forgotten (IEEE 802.1Q, table 8-6: 300 s).
pub const AGE: Span = Span::from_secs(300);

/// Time between two searches for the aged addresses of a port. Our choice: a flood costs one search per second.
const CLEANING: Span = Span::from_secs(1);

/// Slots that a look-up examines before it gives up.
const PROBES: usize = 16;

#[derive(Clone, Copy, Debug)]
struct Entry {
    address: Address,
    port: PortId,
    /// Last frame from the address; `None` for an address that an operator has fixed.
    seen: Option<Time>,
}

impl Entry {
    fn has_aged(&self, now: Time) -> bool {
        self.seen.is_some_and(|seen| now.since(seen) > AGE)
    }
}

/// A table of fixed size.
#[derive(Debug)]
pub struct Stations {
    slots: Box<[Option<Entry>]>,
    ports: Box<[Port]>,
}

/// Learnt addresses of a port.
#[derive(Clone, Copy, Debug, Default)]
struct Port {
    learnt: usize,
    /// Last search for its aged addresses.
    cleaned: Option<Time>,
}

impl Stations {
    /// An empty table for so many ports.
    pub fn new(ports: usize) -> Self {
        let slots = (2 * PER_PORT * ports.max(1)).next_power_of_two();
        Stations { slots: vec![None; slots].into(), ports: vec![Port::default(); ports].into() }
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
        let old = match &mut self.slots[slot] {
            Some(Entry { seen: None, .. }) => return number,
            Some(entry) if entry.address == address && entry.port == port => {
                entry.seen = Some(now);
                return number;
            }
            // The station has moved, or another address has aged.
            Some(entry) if entry.address == address || entry.has_aged(now) => Some(entry.port),
            Some(_) => return None,
            None => None,
        };
        // A station that the port has no room for stays where it was learnt: its frame may be forged.
        if old != Some(port) && self.ports[port.index()].learnt >= PER_PORT && !self.clean(now, port) {
            return None;
        }
        // The search may have emptied the slot.
        if let Some(entry) = self.slots[slot].replace(Entry { address, port, seen: Some(now) }) {
            self.ports[entry.port.index()].learnt -= 1;
        }
        self.ports[port.index()].learnt += 1;
        number
    }

    /// Forgets the aged addresses of a full port, at most once per [`CLEANING`]. Returns true if there were any.
    #[cold]
    fn clean(&mut self, now: Time, port: PortId) -> bool {
        let own = &mut self.ports[port.index()];
        if own.cleaned.is_some_and(|at| now.since(at) < CLEANING) {
            return false;
        }
        own.cleaned = Some(now);
        let before = own.learnt;
        for slot in &mut self.slots {
            if slot.take_if(|entry| entry.port == port && entry.has_aged(now)).is_some() {
                own.learnt -= 1;
            }
        }
        own.learnt < before
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
        (!entry.has_aged(now)).then_some(entry.port)
    }

    /// Number of addresses learnt at a port.
    pub fn learnt(&self, port: PortId) -> usize {
        self.ports.get(port.index()).map_or(0, |own| own.learnt)
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

    /// A table whose port 0 has as many addresses as it may have.
    fn with_a_full_port(ports: usize) -> Stations {
        let mut stations = Stations::new(ports);
        let mut n = 0;
        while stations.learnt(PortId(0)) < PER_PORT {
            n += 1;
            stations.learn(Time::ZERO, Address::local(1_000 + n), PortId(0));
        }
        stations
    }

    #[test]
    fn a_full_port_takes_no_station_from_another() {
        let mut stations = with_a_full_port(2);
        assert!(stations.learn(Time::ZERO, A, PortId(1)));
        for _ in 0..3 {
            assert!(!stations.learn(Time::ZERO, A, PortId(0)), "the port has no room");
            assert_eq!(stations.port(Time::ZERO, A), Some(PortId(1)));
            assert_eq!((stations.learnt(PortId(0)), stations.learnt(PortId(1))), (PER_PORT, 1));
        }
        assert!(stations.learn(Time::ZERO, Address::local(2), PortId(1)));
        assert_eq!(stations.learnt(PortId(1)), 2);
    }

    #[test]
    fn a_full_port_learns_again_when_its_addresses_have_aged() {
        let mut stations = with_a_full_port(2);
        let late = Time::ZERO + AGE + Span::from_nanos(1);
        assert!(!stations.learn(Time::ZERO + AGE, A, PortId(0)));
        assert!(!stations.learn(late, A, PortId(0)), "the last search is less than a second ago");
        assert!(stations.learn(late + CLEANING, A, PortId(0)));
        assert_eq!(stations.port(late + CLEANING, A), Some(PortId(0)));
        assert_eq!(stations.learnt(PortId(0)), 1);
    }

    /// The counters say what the table holds, whatever frames come in.
    #[test]
    fn counters_and_table_agree() {
        let mut stations = Stations::new(3);
        let mut now = Time::ZERO;
        for step in 0..60_000u32 {
            // A multiplicative generator (Lehmer, 1951); its high bits draw address, port and time.
            let draw = (u64::from(step) + 1).wrapping_mul(0x5851_F42D_4C95_7F2D) >> 32;
            let port = PortId((draw % 3) as u16);
            now += Span::from_nanos(draw % 40_000_000);
            stations.learn(now, Address::local((draw >> 3) as u32 % 5_000), port);
            assert!(stations.learnt(port) <= PER_PORT);
        }
        for n in 0..3 {
            let port = PortId(n);
            let held = stations.slots.iter().flatten().filter(|entry| entry.port == port).count();
            assert_eq!(stations.learnt(port), held, "port {n}");
        }
    }
}
