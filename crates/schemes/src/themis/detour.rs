//! Slots on the paths that are left: which choice of ports a switch had before links died.
//!
//! A NACK is judged by PSN mod N alone: what must hold is that all packets of a slot take one path. So N stays what it
//! was, every slot whose path is left stays on it, and the others take a path by their number. Two slots on one path
//! make proofs of loss rarer, never wrong. While packets of a moved slot are under way both by the old path and by the
//! new one, an old one may look overtaken: a NACK or two then pass that need not.

use model::{HostId, PortIndex, Reroute};

/// Of one switch: the equal-cost ports in the whole fabric, where they are others now.
#[derive(Clone, Debug)]
pub(super) struct Detours {
    /// The rack of every host.
    rack_of: Vec<u16>,
    /// By rack: number of a set and one, or 0 where nothing has changed.
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
        let rack_of = (0..fabric.hosts()).map(|host| fabric.rack(HostId(host as u16)) as u16).collect();
        Some(Detours { rack_of, set_of, sets })
    }

    /// The ports towards a host in the whole fabric, if they are others now.
    pub(super) fn of(&self, host: HostId) -> Option<&[PortIndex]> {
        let set = *self.set_of.get(usize::from(*self.rack_of.get(host.index())?))?;
        self.sets.get(usize::from(set).checked_sub(1)?).map(Vec::as_slice)
    }
}
