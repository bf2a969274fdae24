//! Fabrics of groups (Dragonfly): the switches of a group are fully meshed, and every two groups share a link.
//!
//! A *local* link joins two switches of one group, a *global* link joins two groups. A path inside a group is one local
//! link. A path to another group is minimal if it crosses one global link, with at most one local link before it and
//! one after it (Kim, Dally, Scott and Abts, "Technology-Driven, Highly-Scalable Dragonfly Topology", ISCA 2008, section
//! 4.1). A minimal path never enters a third group. Fewest hops alone would allow a third group where two global links
//! meet at one switch.
//!
//! # Why three virtual channels are free of deadlock
//!
//! A packet waits, and is paused, in the channel of its leg ([`crate::RouteState::leg`]). Order the buffers at the
//! receiving ends of links: local links on leg 0, global links on leg 0, then the same for leg 1 and for leg 2. A packet
//! always waits for a buffer that comes later in this order than the buffer it occupies:
//!
//! * The packet came over a local link. If its next link is local, too, a detour has ended here, and a leg with it: the
//!   next link belongs to the next leg. Otherwise the packet leaves the group by a global link on the same leg
//!   ([`super::Router::onward`] offers nothing else), or it goes to its host.
//! * The packet came over a global link. A leg has ended, and the next link belongs to the next leg.
//!
//! The last buffers in the order wait for hosts only, which accept every packet. Every other buffer waits for later ones,
//! so there is no cycle. The argument needs channels that cannot take space from each other. Each channel of a port has
//! headroom of its own, and it is resumed as soon as it is empty, whatever the other channels hold.
//!
//! A packet takes at most one detour, so a path has at most three legs: source group, intermediate group, destination
//! group. Minimal paths alone need two channels.

use super::topology::{FabricError, NONE, Topology};
use crate::{NodeId, PortIndex, RouteState};

/// Most virtual channels of a link: a path has at most three legs.
pub const MOST_CHANNELS: u8 = 3;

/// Where a port of a switch leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PortKind {
    /// To a host.
    Host,
    /// To a switch of the same group.
    Local,
    /// To another group.
    Global,
}

/// The paths to another group that packets may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MinimalPaths {
    /// The minimal paths with the fewest links.
    #[default]
    FewestHops,
    /// All minimal paths.
    AnyLink,
}

/// What a builder knows about groups.
#[derive(Clone, Debug, Default)]
pub(super) struct GroupSpec {
    /// Group, by switch.
    pub(super) of: Vec<u16>,
    /// Virtual channels of links between switches.
    pub(super) channels: u8,
    pub(super) minimal: MinimalPaths,
}

/// A switch as a member of its group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) group: u16,
    /// Number of the switch within its group.
    pub(super) number: u16,
}

/// The groups of a fabric.
#[derive(Clone, Debug)]
pub(super) struct Groups {
    pub(super) channels: u8,
    pub(super) minimal: MinimalPaths,
    /// By switch.
    of: Vec<Member>,
    /// By rack: the membership of its switch.
    of_rack: Vec<Member>,
    /// By group: the racks of its switches, by their number in the group.
    racks: Vec<Vec<u16>>,
    /// Start of every switch's ports in `kinds`.
    base: Vec<u32>,
    /// By port of a switch.
    kinds: Vec<PortKind>,
}

impl Groups {
    /// The groups of a topology by their specification.
    pub(super) fn new(topology: &Topology, spec: GroupSpec) -> Result<Self, FabricError> {
        let name = |switch: usize| topology.name(topology.switch(switch)).to_owned();
        let rack_at = topology.rack_at();
        if spec.of.len() < rack_at.len() {
            return Err(FabricError::NoGroup(name(spec.of.len())));
        }
        let count = spec.of.iter().max().map_or(0, |&last| usize::from(last) + 1);
        let mut racks = vec![Vec::new(); count];
        let mut of = Vec::with_capacity(rack_at.len());
        let mut of_rack = vec![Member::default(); topology.racks().len()];
        for ((switch, &group), &rack) in spec.of.iter().enumerate().zip(&rack_at) {
            if rack == NONE {
                return Err(FabricError::NoHosts(name(switch)));
            }
            let members: &mut Vec<u16> = &mut racks[usize::from(group)];
            let member = Member { group, number: members.len() as u16 };
            of.push(member);
            of_rack[rack as usize] = member;
            members.push(rack as u16);
        }
        if count.max(racks.iter().map(Vec::len).max().unwrap_or(0)) > RouteState::MOST {
            return Err(FabricError::TooManyGroups);
        }
        let kinds = topology.switch_links().iter().map(|link| {
            let group = |node: NodeId| of[topology.switch_number(node)].group;
            match () {
                () if topology.is_host(link.to) => PortKind::Host,
                () if group(link.to) == group(link.from) => PortKind::Local,
                () => PortKind::Global,
            }
        });
        let kinds = kinds.collect();
        let GroupSpec { channels, minimal, .. } = spec;
        Ok(Groups {
            channels: channels.clamp(1, MOST_CHANNELS),
            minimal,
            of,
            of_rack,
            racks,
            base: topology.switch_bases(),
            kinds,
        })
    }

    /// Number of groups.
    pub(super) fn count(&self) -> usize {
        self.racks.len()
    }

    /// Number of switches in a group.
    pub(super) fn size(&self, group: u16) -> usize {
        self.racks[usize::from(group)].len()
    }

    /// Number of switches in all groups.
    pub(super) fn switches(&self) -> usize {
        self.of.len()
    }

    /// The membership of a switch.
    #[inline]
    pub(super) fn of(&self, switch: usize) -> Member {
        self.of[switch]
    }

    /// The membership of a rack's switch.
    #[inline]
    pub(super) fn of_rack(&self, rack: usize) -> Member {
        self.of_rack[rack]
    }

    /// The rack of a member; `None` if its group has fewer switches.
    #[inline]
    pub(super) fn rack(&self, member: Member) -> Option<usize> {
        let racks = &self.racks[usize::from(member.group)];
        racks.get(usize::from(member.number)).map(|&rack| usize::from(rack))
    }

    /// Number of a port among all ports of switches.
    #[inline]
    pub(super) fn port(&self, switch: usize, port: PortIndex) -> usize {
        self.base[switch] as usize + port.index()
    }

    /// Where a port leads. A number beyond all ports counts as a port to a host: packets that a switch makes itself
    /// enter at [`PortIndex::VIRTUAL`].
    #[inline]
    pub(super) fn kind(&self, switch: usize, port: PortIndex) -> PortKind {
        self.kinds.get(self.port(switch, port)).copied().unwrap_or(PortKind::Host)
    }
}
