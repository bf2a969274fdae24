//! Look-up of routes at one switch.

use super::gateways::Gateways;
use super::groups::{Groups, Member, MinimalPaths, PortKind};
use super::port_sets::set;
use super::routes::Routes;
use super::surviving::{Arrival, SurvivingRoutes};
use crate::{Detour, HostId, PortIndex, RouteState};

/// The routes of one switch.
#[derive(Clone, Copy, Debug)]
pub struct Router<'a> {
    pub(super) rack_of: &'a [u16],
    /// Rack of the switch's own hosts; no rack has the number that stands for none.
    pub(super) own: u32,
    pub(super) row: &'a [u32],
    pub(super) down: &'a [PortIndex],
    pub(super) pool: &'a [PortIndex],
    /// In a fabric of groups.
    pub(super) grouped: Option<Grouped<'a>>,
}

/// The groups as one switch sees them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grouped<'a> {
    pub(super) groups: &'a Groups,
    pub(super) gateways: &'a Gateways,
    pub(super) switch: usize,
    /// When links are dead.
    pub(super) damage: Option<Damage<'a>>,
}

/// The routes of a fabric of groups with dead links.
#[derive(Clone, Copy, Debug)]
pub(super) struct Damage<'a> {
    pub(super) surviving: &'a SurvivingRoutes,
    /// Routes of the fabric without dead links, for packets to which no route is left.
    pub(super) whole: &'a Routes,
}

impl<'a> Grouped<'a> {
    #[inline]
    pub(super) fn own(self) -> Member {
        self.groups.of(self.switch)
    }

    /// The entry of the ports that lead to another group, for a packet that came in at `ingress`.
    #[inline]
    fn leave(self, group: u16, ingress: PortIndex) -> u32 {
        match (self.groups.kind(self.switch, ingress), self.gateways.global(self.switch, group)) {
            // A packet may come over a local link to a switch without a global link to the group: it was sent around a
            // dead link that is back now, or it is a signal that returns along a detour by ports.
            (PortKind::Local, global) if global != 0 => global,
            _ => self.gateways.toward(self.switch, group),
        }
    }

    #[inline]
    fn arrival(self, state: RouteState, ingress: PortIndex) -> Arrival {
        let port = self.groups.port(self.switch, ingress);
        Arrival { switch: self.switch, port, kind: self.groups.kind(self.switch, ingress), state }
    }

    /// The entry of the ports to another group for a packet that begins here.
    #[inline]
    pub(super) fn begin(self, group: u16) -> u32 {
        match self.damage {
            None => self.leave(group, PortIndex::VIRTUAL),
            Some(damage) => {
                let arrival = self.arrival(RouteState::default(), PortIndex::VIRTUAL);
                damage.surviving.to_group(arrival, usize::from(group))
            }
        }
    }

    /// The rack of a switch of this group.
    fn member(self, number: u16) -> Option<usize> {
        self.groups.rack(Member { number, ..self.own() })
    }
}

impl<'a> Router<'a> {
    /// Ports on shortest paths to host `to`, and whether they lead to it without another switch.
    #[inline]
    pub fn ports(&self, to: HostId) -> (&'a [PortIndex], bool) {
        let rack = self.rack_of[to.index()];
        if u32::from(rack) == self.own {
            return (std::slice::from_ref(&self.down[to.index()]), true);
        }
        (set(self.pool, self.row[rack as usize]), false)
    }

    /// Ports to the switch of another rack; empty if there is none. See [`super::Fabric::route_to_rack`].
    #[inline]
    pub fn to_rack(&self, rack: usize) -> &'a [PortIndex] {
        set(self.pool, self.row[rack])
    }

    /// True in a fabric of groups.
    #[inline]
    pub fn is_grouped(&self) -> bool {
        self.grouped.is_some()
    }

    /// The route state of a packet that has arrived here at `ingress`.
    #[inline]
    pub fn arrived(&self, state: RouteState, ingress: PortIndex) -> RouteState {
        let Some(grouped) = self.grouped else { return state };
        let own = grouped.own();
        let crossed = grouped.groups.kind(grouped.switch, ingress) == PortKind::Global;
        let there = match state.detour() {
            None => false,
            Some(Detour::Group(to)) => to == own.group,
            Some(Detour::Member(to)) => to == own.number,
        };
        state.next(crossed || there, there)
    }

    /// Ports by which a packet goes on that came in at `ingress`, and whether they lead to its host. The ports lead
    /// towards the packet's detour if it has one, else along minimal paths. In a fabric without groups they are on the
    /// shortest paths.
    #[inline]
    pub fn onward(&self, state: RouteState, ingress: PortIndex, to: HostId) -> (&'a [PortIndex], bool) {
        let Some(grouped) = self.grouped else { return self.ports(to) };
        let rack = self.rack_of[to.index()];
        let own = grouped.own().group;
        if let Some(damage) = grouped.damage {
            return self.onward_around(grouped, damage, state, ingress, to);
        }
        let entry = match state.detour() {
            Some(Detour::Group(group)) => grouped.leave(group, ingress),
            Some(Detour::Member(number)) => self.member_entry(grouped, number),
            None if u32::from(rack) == self.own => return self.ports(to),
            None => match grouped.groups.of_rack(usize::from(rack)).group {
                group if group != own && grouped.groups.minimal == MinimalPaths::AnyLink => {
                    grouped.leave(group, ingress)
                }
                _ => self.row[usize::from(rack)],
            },
        };
        (set(self.pool, entry), false)
    }

    /// [`Router::onward`] by the routes that avoid dead links.
    #[cold]
    fn onward_around(
        &self,
        grouped: Grouped<'a>,
        damage: Damage<'a>,
        state: RouteState,
        ingress: PortIndex,
        to: HostId,
    ) -> (&'a [PortIndex], bool) {
        let (arrival, rack) = (grouped.arrival(state, ingress), self.rack_of[to.index()]);
        let surviving = damage.surviving;
        let entry = match state.detour() {
            Some(Detour::Group(group)) => surviving.to_group(arrival, usize::from(group)),
            Some(Detour::Member(number)) => {
                grouped.member(number).map_or(0, |rack| surviving.to_member(arrival, rack))
            }
            None if u32::from(rack) == self.own => return self.ports(to),
            None => surviving.to_rack(arrival, usize::from(rack)),
        };
        match entry {
            0 => self.in_whole_fabric(grouped, damage).onward(state, ingress, to),
            _ => (set(self.pool, entry), false),
        }
    }

    /// The routes of this switch in the fabric without dead links.
    fn in_whole_fabric(&self, grouped: Grouped<'a>, damage: Damage<'a>) -> Router<'a> {
        Router {
            row: damage.whole.row(grouped.switch),
            pool: damage.whole.pool(),
            grouped: Some(Grouped { damage: None, ..grouped }),
            ..*self
        }
    }

    /// The entry of the ports to a switch of this group.
    #[inline]
    pub(super) fn member_entry(&self, grouped: Grouped<'a>, number: u16) -> u32 {
        grouped.member(number).map_or(0, |rack| self.row[rack])
    }
}
