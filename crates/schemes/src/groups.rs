//! ECMP groups of a switch: the different sets of ports by which it reaches other racks on the whole fabric.

use model::{HostId, PortIndex, Site};
use std::collections::BTreeMap;

/// Group of a rack that one port alone leads to.
const ALONE: u16 = u16::MAX;

/// Groups of one switch.
#[derive(Clone, Debug)]
pub(crate) struct Groups {
    /// Rack of every host.
    rack_of: Vec<u16>,
    /// Group of every rack.
    group_of: Vec<u16>,
    /// Members of every group, at least two.
    members: Vec<Box<[PortIndex]>>,
}

impl Groups {
    pub(crate) fn of(site: Site<'_>) -> Self {
        let fabric = site.fabric();
        let mut members = Vec::new();
        let mut numbers = BTreeMap::new();
        let mut group = |rack| {
            let ports = fabric.route_to_rack(site.node, rack);
            if ports.len() < 2 {
                return ALONE;
            }
            *numbers.entry(fabric.route_number(site.node, rack)).or_insert_with(|| {
                members.push(ports.into());
                (members.len() - 1) as u16
            })
        };
        let group_of: Vec<u16> = (0..fabric.racks().len()).map(&mut group).collect();
        // Numbers of racks are below `Topology::MOST_RACKS`.
        let hosts = if members.is_empty() { 0 } else { fabric.hosts() as u32 };
        let rack_of = (0..hosts).map(|host| fabric.rack(HostId(host)) as u16).collect();
        Groups { rack_of, group_of, members }
    }

    /// Members of every group.
    pub(crate) fn members(&self) -> &[Box<[PortIndex]>] {
        &self.members
    }

    /// Rack of a host; `None` in a switch without groups.
    #[inline]
    pub(crate) fn rack(&self, host: HostId) -> Option<usize> {
        self.rack_of.get(host.index()).map(|&rack| usize::from(rack))
    }

    /// Group by which the switch reaches a host; `None` if a single port leads there.
    #[inline]
    pub(crate) fn to(&self, host: HostId) -> Option<usize> {
        let group = *self.group_of.get(self.rack(host)?)?;
        (group != ALONE).then_some(group.into())
    }
}
