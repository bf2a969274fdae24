//! Fabrics of groups (Dragonfly): all switches of a group are joined with each other, and every two groups are.
//!
//! A way inside a group is one link. A way to another group is minimal if it crosses one link between groups, with at
//! most one link inside either group before and after it (Kim, Dally, Scott and Abts, "Technology-Driven,
//! Highly-Scalable Dragonfly Topology", ISCA 2008, section 4.1). Such a way never goes through a third group, which fewest hops
//! alone would allow where two links between groups meet at one switch.
//!
//! # Why three channels are free of deadlock
//!
//! A packet waits, and is paused, in the channel of its leg ([`crate::RouteState::leg`]). Order the buffers at the ends of
//! links: those at a link inside a group, on leg 0; those at a link between groups, on leg 0; the same for leg 1, and for
//! leg 2. What a packet waits for always comes later in this order than where it is:
//!
//! * It came over a link inside a group. If it stays in the group beyond its next link, then because a detour ended here,
//!   and a leg with it: the next link belongs to the next leg. Otherwise it leaves the group now, by a link between
//!   groups on the same leg ([`Router::onward`] offers nothing else), or it goes to its host.
//! * It came over a link between groups: a leg has ended, and whatever follows belongs to the next leg.
//!
//! So the last buffers in the order wait for hosts alone, which take all that comes, and every other buffer for later
//! ones: there is no cycle. That holds if no channel can take the room of another. Each channel of a port has headroom of
//! its own, and is let go as soon as it holds nothing, whatever others hold.
//!
//! A detour is taken once, so there are at most three legs: source group, intermediate group, destination group. With
//! minimal ways alone two channels do.

use super::routes::{Routes, set};
use super::surviving::SurvivingRoutes;
use super::{Fabric, FabricError, Router};
use crate::{Detour, HostId, PortIndex, RouteState};

/// Where a port of a switch leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortKind {
    /// To a host.
    Host,
    /// To a switch of the same group.
    Local,
    /// To another group.
    Global,
}

/// The ways among which packets choose that go to another group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MinimalPaths {
    /// Those with the fewest links.
    #[default]
    FewestHops,
    /// All that cross one link between groups.
    AnyLink,
}

/// What a builder is told of groups.
#[derive(Clone, Debug, Default)]
pub(super) struct GroupSpec {
    /// By switch: its group.
    pub(super) of: Vec<u16>,
    pub(super) channels: u8,
    pub(super) minimal: MinimalPaths,
}

/// Groups, and the ways between them.
#[derive(Clone, Debug)]
pub(super) struct Groups {
    pub(super) channels: u8,
    pub(super) minimal: MinimalPaths,
    /// How many there are.
    pub(super) count: usize,
    /// By switch: its group, and its number there.
    pub(super) of: Vec<(u16, u16)>,
    /// By rack: the same of its switch.
    of_rack: Vec<(u16, u16)>,
    /// The racks of each group's switches, by number there.
    racks: Vec<Vec<u16>>,
    /// By switch: the start of its ports in `reach`.
    pub(super) base: Vec<u32>,
    pub(super) reach: Vec<PortKind>,
    /// By switch and group: entries, like those of a row of routes, of the ports that lead there.
    toward: Vec<u32>,
    /// Of these the ones that cross over at once.
    across: Vec<u32>,
}

impl Groups {
    /// Groups of a fabric whose links and racks are laid; their ways come from [`Groups::find_ways`].
    pub(super) fn new(fabric: &Fabric, draft: GroupSpec, names: &[usize]) -> Result<Self, FabricError> {
        let name = |switch: usize| fabric.names.get(fabric.hosts + switch).to_owned();
        let switches = fabric.nodes() - fabric.hosts;
        if draft.of.len() < switches {
            return Err(FabricError::NoGroup(name(draft.of.len())));
        }
        let count = draft.of.iter().max().map_or(0, |&last| usize::from(last) + 1);
        let mut racks = vec![Vec::new(); count];
        let mut of = Vec::with_capacity(switches);
        let mut of_rack = vec![(0, 0); fabric.racks.len()];
        for (switch, &group) in draft.of.iter().enumerate() {
            let members: &mut Vec<u16> = &mut racks[usize::from(group)];
            let place = (group, members.len() as u16);
            of.push(place);
            let Some(slot) = names.get(switch).and_then(|&rack| of_rack.get_mut(rack)) else {
                return Err(FabricError::NoHosts(name(switch)));
            };
            *slot = place;
            members.push(names[switch] as u16);
        }
        if count.max(racks.iter().map(Vec::len).max().unwrap_or(0)) > RouteState::MOST {
            return Err(FabricError::TooManyGroups);
        }
        let first = fabric.base[fabric.hosts];
        let base = fabric.base[fabric.hosts..].iter().map(|b| b - first).collect();
        let reach = fabric.links[first as usize..].iter().map(|link| {
            let place = |node: crate::NodeId| of[node.index() - fabric.hosts].0;
            match () {
                () if fabric.is_host(link.to) => PortKind::Host,
                () if place(link.to) == place(link.from) => PortKind::Local,
                () => PortKind::Global,
            }
        });
        let reach = reach.collect();
        let GroupSpec { channels, minimal, .. } = draft;
        Ok(Groups {
            channels: channels.clamp(1, crate::fabric::MOST_CHANNELS),
            minimal,
            count,
            of,
            of_rack,
            racks,
            base,
            reach,
            toward: Vec::new(),
            across: Vec::new(),
        })
    }

    /// Finds the ports that lead from every switch to every other group; `entry` keeps a set of ports.
    pub(super) fn find_ways(
        &mut self,
        fabric: &Fabric,
        mut entry: impl FnMut(&[PortIndex]) -> Result<u32, FabricError>,
    ) -> Result<(), FabricError> {
        let links = |switch: usize| fabric.ports(crate::NodeId((fabric.hosts + switch) as u32));
        let place = |node: crate::NodeId| self.of[node.index() - fabric.hosts];
        let between = |link: &&super::Link| !fabric.is_host(link.to);
        let name = |switch: usize| fabric.names.get(fabric.hosts + switch).to_owned();
        // By switch and group: the ports that cross over.
        let mut crossing = vec![Vec::new(); self.of.len() * self.count];
        for switch in 0..self.of.len() {
            let (own, _) = self.of[switch];
            let mut met = vec![false; self.racks[usize::from(own)].len()];
            for link in links(switch).iter().filter(between) {
                let (group, member) = place(link.to);
                match group == own {
                    true => met[usize::from(member)] = true,
                    false => crossing[switch * self.count + usize::from(group)].push(link.port),
                }
            }
            met[usize::from(self.of[switch].1)] = true;
            if let Some(member) = met.iter().position(|met| !met) {
                let other = self.of.iter().position(|&place| place == (own, member as u16)).unwrap_or(switch);
                return Err(FabricError::NotMeshed(name(switch), name(other)));
            }
        }
        for switch in 0..self.of.len() {
            let (own, _) = self.of[switch];
            for group in 0..self.count {
                let at = |switch: usize| &crossing[switch * self.count + group];
                let mut ports = at(switch).clone();
                let across = entry(&ports)?;
                if group != usize::from(own) && (ports.is_empty() || self.minimal == MinimalPaths::AnyLink) {
                    let gateways = links(switch).iter().filter(between).filter(|link| {
                        place(link.to).0 == own && !at(link.to.index() - fabric.hosts).is_empty()
                    });
                    ports.extend(gateways.map(|link| link.port));
                    ports.sort_unstable();
                    if ports.is_empty() {
                        return Err(FabricError::GroupsApart(usize::from(own), group));
                    }
                }
                self.toward.push(entry(&ports)?);
                self.across.push(across);
            }
        }
        Ok(())
    }
}

impl Fabric {
    /// Number of groups; 0 if the fabric has none.
    pub fn groups(&self) -> usize {
        self.groups.as_ref().map_or(0, |groups| groups.count)
    }

    /// The group of a switch; `None` for hosts, and in a fabric without groups.
    pub fn group(&self, node: crate::NodeId) -> Option<usize> {
        let switch = node.index().checked_sub(self.hosts)?;
        self.groups.as_ref().map(|groups| usize::from(groups.of[switch].0))
    }

    /// Virtual channels of every link between switches, see [`groups`](self); 1 in a fabric without groups. A packet is
    /// in the channel of its leg, or in the last one if there are fewer channels than legs.
    #[inline]
    pub fn channels(&self) -> u8 {
        self.groups.as_ref().map_or(1, |groups| groups.channels)
    }

    /// Virtual channels that packets may be in on `link`: a host sends on its first leg alone.
    pub fn channels_on(&self, link: &super::Link) -> u8 {
        if self.is_host(link.from) { 1 } else { self.channels() }
    }
}

/// The groups as one switch sees them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Here<'a> {
    pub(super) groups: &'a Groups,
    pub(super) switch: usize,
    /// When links are dead: the ways that are left, and the routes of the whole fabric.
    pub(super) left: Option<(&'a SurvivingRoutes, &'a Routes)>,
}

impl<'a> Here<'a> {
    #[inline]
    fn place(self) -> (u16, u16) {
        self.groups.of[self.switch]
    }

    #[inline]
    fn reach(self, port: PortIndex) -> PortKind {
        let at = self.groups.base[self.switch] as usize + port.index();
        // Packets of the switch's own have no port.
        self.groups.reach.get(at).copied().unwrap_or(PortKind::Host)
    }

    /// The ports that lead to another group, for a packet that came in at `ingress`.
    #[inline]
    fn leave(self, group: u16, ingress: PortIndex) -> u32 {
        let at = self.switch * self.groups.count + usize::from(group);
        match (self.reach(ingress), self.groups.across[at]) {
            // A packet that finds none has been sent here around a dead link, and that is back now; or it is a signal that
            // goes back the way of a detour, by ports.
            (PortKind::Local, across) if across != 0 => across,
            _ => self.groups.toward[at],
        }
    }

    /// How a packet stands here, for [`SurvivingRoutes`].
    #[inline]
    fn stand(self, way: RouteState, ingress: PortIndex) -> (RouteState, usize, PortKind) {
        (way, self.groups.base[self.switch] as usize + ingress.index(), self.reach(ingress))
    }

    /// The entry of the ports to another group for a packet that begins here, in the whole fabric or what is left.
    #[inline]
    fn begin(self, group: u16) -> u32 {
        match self.left {
            None => self.leave(group, PortIndex::VIRTUAL),
            Some((left, _)) => {
                let stand = self.stand(RouteState::default(), PortIndex::VIRTUAL);
                left.to_group(self.switch, stand, usize::from(group))
            }
        }
    }

    /// The rack of a switch of this group.
    fn member(self, member: u16) -> Option<usize> {
        let racks = &self.groups.racks[usize::from(self.place().0)];
        racks.get(usize::from(member)).map(|&rack| usize::from(rack))
    }

    /// Whether a packet that begins here may take a detour to a rack, by what is left.
    fn leads(self, left: &SurvivingRoutes, detour: Detour, rack: usize) -> bool {
        match detour {
            Detour::Group(group) => left.leads_over(self.switch, usize::from(group), rack),
            Detour::Member(member) => left.leads_inside(self.switch, usize::from(member), rack),
        }
    }
}

impl<'a> Router<'a> {
    /// True in a fabric of groups.
    #[inline]
    pub fn is_grouped(&self) -> bool {
        self.here.is_some()
    }

    /// The way of a packet that has arrived here at `ingress`.
    #[inline]
    pub fn arrived(&self, way: RouteState, ingress: PortIndex) -> RouteState {
        let Some(here) = self.here else { return way };
        let (group, member) = here.place();
        let over = here.reach(ingress) == PortKind::Global;
        let there = match way.detour() {
            None => false,
            Some(Detour::Group(to)) => to == group,
            Some(Detour::Member(to)) => to == member,
        };
        way.next(over || there, there)
    }

    /// Ports by which a packet goes on that came in at `ingress`, and whether they lead to its host: towards its detour
    /// if it has one, else on minimal ways. In a fabric without groups these are the shortest paths.
    #[inline]
    pub fn onward(&self, way: RouteState, ingress: PortIndex, to: HostId) -> (&'a [PortIndex], bool) {
        let Some(here) = self.here else { return self.ports(to) };
        let rack = self.rack_of[to.index()];
        let own = here.place().0;
        if let Some((left, _)) = here.left {
            return self.onward_by(here, left, way, ingress, to);
        }
        let entry = match way.detour() {
            Some(Detour::Group(group)) => here.leave(group, ingress),
            Some(Detour::Member(member)) => self.member_ways(here, member),
            None if u32::from(rack) == self.own => return self.ports(to),
            None => match here.groups.of_rack[usize::from(rack)].0 {
                group if group != own && here.groups.minimal == MinimalPaths::AnyLink => {
                    here.leave(group, ingress)
                }
                _ => self.row[usize::from(rack)],
            },
        };
        (set(self.pool, entry), false)
    }

    /// The same by what is left of all ways.
    #[cold]
    fn onward_by(
        &self,
        here: Here<'a>,
        left: &'a SurvivingRoutes,
        way: RouteState,
        ingress: PortIndex,
        to: HostId,
    ) -> (&'a [PortIndex], bool) {
        let (stand, rack) = (here.stand(way, ingress), self.rack_of[to.index()]);
        let entry = match way.detour() {
            Some(Detour::Group(group)) => left.to_group(here.switch, stand, usize::from(group)),
            Some(Detour::Member(member)) => {
                here.member(member).map_or(0, |rack| left.to_member(here.switch, stand, rack))
            }
            None if u32::from(rack) == self.own => return self.ports(to),
            None => left.to_rack(here.switch, stand, usize::from(rack)),
        };
        match entry {
            0 => self.whole().onward(way, ingress, to),
            _ => (set(self.pool, entry), false),
        }
    }

    /// The routes of this switch in the whole fabric.
    fn whole(&self) -> Router<'a> {
        match self.here {
            Some(here @ Here { left: Some((_, whole)), .. }) => Router {
                row: whole.row(here.switch),
                pool: whole.pool(),
                here: Some(Here { left: None, ..here }),
                ..*self
            },
            _ => *self,
        }
    }

    #[inline]
    fn member_ways(&self, here: Here<'a>, member: u16) -> u32 {
        let racks = &here.groups.racks[usize::from(here.place().0)];
        racks.get(usize::from(member)).map_or(0, |&rack| self.row[usize::from(rack)])
    }

    /// The detours of a packet that starts here on its way to `to`.
    #[inline]
    pub fn detours(&self, to: HostId) -> Detours<'a> {
        let Some(here) = self.here else { return Detours::default() };
        let rack = self.rack_of[to.index()];
        if u32::from(rack) == self.own {
            return Detours::default();
        }
        let ((own, me), (group, member)) = (here.place(), here.groups.of_rack[usize::from(rack)]);
        let inside = own == group;
        let (a, b) = if inside { (me, member) } else { (own, group) };
        let rack = usize::from(rack);
        let all = if inside { here.groups.racks[usize::from(own)].len() } else { here.groups.count };
        let around = Around { router: *self, here, inside, rack, low: a.min(b), high: a.max(b), all };
        let count = match here.left {
            None => all.saturating_sub(2),
            Some((left, _)) => around.those_left(left).count(),
        };
        Detours { around: Some(around), count }
    }
}

/// The detours that a packet may take where it starts: over any group but its own and its destination's; if these are one,
/// over any switch of the group but its own and its destination's.
#[derive(Clone, Copy, Debug, Default)]
pub struct Detours<'a> {
    around: Option<Around<'a>>,
    count: usize,
}

#[derive(Clone, Copy, Debug)]
struct Around<'a> {
    router: Router<'a>,
    here: Here<'a>,
    inside: bool,
    /// The rack of its destination.
    rack: usize,
    /// Groups, or switches of the group.
    all: usize,
    /// The two numbers that are left out.
    low: u16,
    high: u16,
}

impl<'a> Around<'a> {
    fn ports(&self, number: u16) -> &'a [PortIndex] {
        let Around { router, here, .. } = *self;
        let entry = match self.inside {
            true => router.member_ways(here, number),
            false => here.begin(number),
        };
        set(router.pool, entry)
    }

    fn detour(&self, number: u16) -> Detour {
        if self.inside { Detour::Member(number) } else { Detour::Group(number) }
    }

    /// Numbers of the detours that dead links have left.
    fn those_left(self, left: &SurvivingRoutes) -> impl Iterator<Item = u16> {
        let others = (0..self.all as u16).filter(move |&number| number != self.low && number != self.high);
        others.filter(move |&number| self.here.leads(left, self.detour(number), self.rack))
    }
}

impl<'a> Detours<'a> {
    /// How many there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.count
    }

    /// True if there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// One of them, and the ports that lead there; `None` from [`Detours::len`] on.
    #[inline]
    pub fn get(&self, i: usize) -> Option<(Detour, &'a [PortIndex])> {
        let around = self.around.filter(|_| i < self.count)?;
        let number = match around.here.left {
            None => {
                let mut number = i as u16;
                number += (number >= around.low) as u16;
                number + (number >= around.high) as u16
            }
            Some((left, _)) => around.those_left(left).nth(i)?,
        };
        Some((around.detour(number), around.ports(number)))
    }

    /// The ports that lead to one of them; none if it is not among them.
    pub fn toward(&self, detour: Detour) -> &'a [PortIndex] {
        let Some(around) = self.around else { return &[] };
        let (inside, number) = match detour {
            Detour::Group(number) => (false, number),
            Detour::Member(number) => (true, number),
        };
        let known = usize::from(number) < around.all && number != around.low && number != around.high;
        let leads = || around.here.left.is_none_or(|(left, _)| around.here.leads(left, detour, around.rack));
        if inside == around.inside && known && leads() { around.ports(number) } else { &[] }
    }
}
