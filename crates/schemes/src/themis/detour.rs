//! Slots on the remaining paths: the ports that a switch could choose from before links died.
//!
//! A NACK is judged by PSN mod N alone, so all packets of a slot must take one path. Therefore N does not change. Every slot
//! whose path remains stays on it, and the other slots take a path by their number. Two slots on one path make proofs of
//! loss rarer, but never wrong. While packets of a moved slot are in flight on both its old and its new path, an old packet
//! may look overtaken: then a NACK or two pass without need.

use model::{HostId, PortIndex, Reroute};

/// Equal-cost ports of one switch in the whole fabric, where the current ports differ.
#[derive(Clone, Debug)]
pub(super) struct Detours {
    /// Rack of every host.
    rack_of: Vec<u16>,
    /// Index of a set plus one, by rack; 0 where nothing has changed.
    set_of: Vec<u16>,
    sets: Vec<Vec<PortIndex>>,
}

impl Detours {
    /// `None` if the routes of the switch are those of the whole fabric.
    pub(super) fn new(news: &Reroute<'_>) -> Option<Self> {
        let (fabric, node) = (news.site.fabric(), news.site.node);
        let (whole, left) = (fabric.router(node), news.router());
        let mut sets: Vec<Vec<PortIndex>> = Vec::new();
        let mut set_of = |(rack, &tor): (usize, &model::NodeId)| {
            let ports = whole.to_rack(rack);
            if tor == node || left.to_rack(rack) == ports {
                return 0;
            }
            let known = sets.iter().position(|set| set == ports).unwrap_or_else(|| {
                sets.push(ports.to_vec());
                sets.len() - 1
            });
            known as u16 + 1
        };
        let set_of: Vec<u16> = fabric.racks().iter().enumerate().map(&mut set_of).collect();
        if sets.is_empty() {
            return None;
        }
        let rack_of = (0..fabric.hosts()).map(|host| fabric.rack(HostId(host as u32)) as u16).collect();
        Some(Detours { rack_of, set_of, sets })
    }

    /// Ports towards a host in the whole fabric, if the current ports differ.
    pub(super) fn of(&self, host: HostId) -> Option<&[PortIndex]> {
        let set = *self.set_of.get(usize::from(*self.rack_of.get(host.index())?))?;
        self.sets.get(usize::from(set).checked_sub(1)?).map(Vec::as_slice)
    }
}
