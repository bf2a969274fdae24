//! What the ToR remembers of the connections whose frames came last, so that a frame costs one look-up instead of one for
//! each table. All of it is a hint: whoever uses it checks that it still holds, or looks up the table. So decisions do not
//! depend on what is remembered.

use crate::frame::{Link, Roce};
use crate::spray;
use crate::units::PortId;
use std::net::IpAddr;
use wire::bth::Qpn;
use wire::ethernet::Address;

/// Number of entries. Our choice: more than the connections of a few hosts that are active at once, and the second level
/// of a processor's cache holds them.
const ENTRIES: usize = 1024;

/// No slot of the table of stations.
pub(crate) const NO_SLOT: u32 = u32::MAX;

/// The fields by which frames of one direction of a connection are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    qp: Qpn,
    source_port: u16,
    ingress: PortId,
    source: IpAddr,
    destination: IpAddr,
    tag: Option<u16>,
    source_mac: Address,
    destination_mac: Address,
}

/// The number of a flow, and the age of the table of flows in which it had this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlowHint {
    pub(crate) number: u32,
    pub(crate) removals: u64,
}

/// One direction of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    key: Key,
    /// Tells this entry from earlier ones in its place; 0 for none.
    id: u64,
    /// Slots of the two addresses in the table of stations.
    pub(crate) source_slot: u32,
    pub(crate) destination_slot: u32,
    /// [`spray::base`] of its requests.
    pub(crate) base: u16,
    /// [`spray::flow_hash`] of its other packets.
    pub(crate) hash: u64,
    pub(crate) flow: Option<FlowHint>,
}

impl Entry {
    /// MAC addresses of the sender and of the receiver.
    pub(crate) fn addresses(&self) -> (Address, Address) {
        (self.key.source_mac, self.key.destination_mac)
    }
}

/// A frame's way to its entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    at: u32,
    id: u64,
}

impl Ticket {
    /// The ticket of a frame without an entry.
    pub(crate) const NONE: Ticket = Ticket { at: 0, id: u64::MAX };
}

/// The entries.
#[derive(Debug)]
pub(crate) struct Recent {
    entries: Box<[Entry]>,
    seed: u64,
    last: u64,
}

impl Recent {
    pub(crate) fn new(seed: u64) -> Self {
        let nobody = IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED);
        let key = Key {
            qp: Qpn::new(0),
            source_port: 0,
            ingress: PortId(0),
            source: nobody,
            destination: nobody,
            tag: None,
            source_mac: Address([0; 6]),
            destination_mac: Address([0; 6]),
        };
        let entry = Entry {
            key,
            id: 0,
            source_slot: NO_SLOT,
            destination_slot: NO_SLOT,
            base: 0,
            hash: 0,
            flow: None,
        };
        Recent { entries: vec![entry; ENTRIES].into(), seed, last: 0 }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.entries.iter_mut().for_each(|entry| entry.id = 0);
    }

    /// The entry of a packet, which may be new.
    #[inline]
    pub(crate) fn find(&mut self, link: &Link, roce: &Roce, ingress: PortId) -> Ticket {
        let at = place(roce);
        let entry = &self.entries[at];
        if entry.id != 0 && entry.key.is_of(link, roce, ingress) {
            return Ticket { at: at as u32, id: entry.id };
        }
        self.replace(at, link, roce, ingress)
    }

    #[cold]
    fn replace(&mut self, at: usize, link: &Link, roce: &Roce, ingress: PortId) -> Ticket {
        let key = Key {
            qp: roce.qp,
            source_port: roce.source_port,
            ingress,
            source: roce.source,
            destination: roce.destination,
            tag: link.tag,
            source_mac: link.source,
            destination_mac: link.destination,
        };
        self.last += 1;
        self.entries[at] = Entry {
            key,
            id: self.last,
            source_slot: NO_SLOT,
            destination_slot: NO_SLOT,
            base: spray::base(roce, self.seed),
            hash: spray::flow_hash(roce),
            flow: None,
        };
        Ticket { at: at as u32, id: self.last }
    }

    /// The entry of a frame, if another connection has not taken its place.
    #[inline]
    pub(crate) fn entry(&mut self, ticket: Ticket) -> Option<&mut Entry> {
        self.entries.get_mut(ticket.at as usize).filter(|entry| entry.id == ticket.id)
    }
}

impl Key {
    /// True if it is the key of this packet.
    #[inline]
    fn is_of(&self, link: &Link, roce: &Roce, ingress: PortId) -> bool {
        self.qp == roce.qp
            && self.source_port == roce.source_port
            && self.ingress == ingress
            && self.source == roce.source
            && self.destination == roce.destination
            && self.tag == link.tag
            && self.source_mac == link.source
            && self.destination_mac == link.destination
    }
}

/// The place of a packet's entry. Packets that share their place cost time and nothing else, so a weak hash is enough.
#[inline]
fn place(roce: &Roce) -> usize {
    let word = |address| match address {
        IpAddr::V4(v4) => u64::from(u32::from(v4)),
        IpAddr::V6(v6) => {
            let bits = u128::from(v6);
            bits as u64 ^ ((bits >> 64) as u64).rotate_left(7)
        }
    };
    let hosts = word(roce.source) ^ word(roce.destination).rotate_left(29);
    let ports = u64::from(roce.qp.value()) ^ u64::from(roce.source_port) << 24;
    // Fibonacci hashing: the high bits of the product with 2^64 divided by the golden ratio.
    let product = (hosts.rotate_left(17) ^ ports).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (product >> (64 - ENTRIES.ilog2())) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Kind;
    use wire::Psn;
    use wire::ecn::TrafficClass;
    use wire::ethernet::EtherType;

    fn packet(qp: u32) -> (Link, Roce) {
        let link = Link {
            destination: Address::local(2),
            source: Address::local(1),
            tag: None,
            ether_type: EtherType::IPV4,
            payload: 14,
        };
        let roce = Roce {
            kind: Kind::Request { span: 1 },
            source: [10, 0, 0, 1].into(),
            destination: [10, 0, 0, 2].into(),
            source_port: 0xC000,
            opcode: 1,
            qp: Qpn::new(qp),
            psn: Psn::new(0),
            traffic_class: TrafficClass(0),
            ip: 14,
            udp: 34,
            icrc: 100,
        };
        (link, roce)
    }

    #[test]
    fn every_field_of_the_key_makes_another_entry() {
        let mut recent = Recent::new(1);
        let (link, roce) = packet(7);
        let first = recent.find(&link, &roce, PortId(0));
        assert_eq!(recent.find(&link, &Roce { psn: Psn::new(9), ..roce }, PortId(0)), first);
        let others = [
            (Link { destination: Address::local(3), ..link }, roce, PortId(0)),
            (Link { source: Address::local(3), ..link }, roce, PortId(0)),
            (Link { tag: Some(5), ..link }, roce, PortId(0)),
            (link, Roce { source: [10, 0, 0, 3].into(), ..roce }, PortId(0)),
            (link, Roce { destination: [10, 0, 0, 3].into(), ..roce }, PortId(0)),
            (link, Roce { source_port: 0xC001, ..roce }, PortId(0)),
            (link, Roce { qp: Qpn::new(8), ..roce }, PortId(0)),
            (link, roce, PortId(1)),
        ];
        for (link, roce, ingress) in others {
            assert_ne!(recent.find(&link, &roce, ingress), first);
        }
    }

    #[test]
    fn an_entry_that_was_replaced_is_gone() {
        let mut recent = Recent::new(1);
        let tickets: Vec<Ticket> = (0..4 * ENTRIES as u32)
            .map(|qp| {
                let (link, roce) = packet(qp);
                recent.find(&link, &roce, PortId(0))
            })
            .collect();
        let held = tickets.iter().filter(|&&ticket| recent.entry(ticket).is_some()).count();
        assert!((ENTRIES / 2..=ENTRIES).contains(&held), "{held}");
        assert!(recent.entry(Ticket::NONE).is_none());
    }
}
