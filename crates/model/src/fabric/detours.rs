//! The detours that a packet may take in a fabric of groups.

use super::port_sets::set;
use super::router::{Grouped, Router};
use super::surviving::SurvivingRoutes;
use crate::{Detour, HostId, PortIndex};

/// The detours of a packet at its source switch: over any group but its source's and its destination's. If both are one
/// group, over any switch of this group but its source's and its destination's.
#[derive(Clone, Copy, Debug, Default)]
pub struct Detours<'a> {
    candidates: Option<Candidates<'a>>,
    count: usize,
}

#[derive(Clone, Copy, Debug)]
struct Candidates<'a> {
    router: Router<'a>,
    grouped: Grouped<'a>,
    /// Source and destination are in one group.
    inside: bool,
    /// Rack of the destination.
    rack: usize,
    /// Number of groups, or of switches in the group.
    all: usize,
    /// Numbers of source and destination, which are no candidates; the lower one.
    low: u16,
    /// The higher one.
    high: u16,
}

impl Detours<'_> {
    /// No detours.
    pub const NONE: &'static Detours<'static> = &Detours { candidates: None, count: 0 };
}

impl<'a> Router<'a> {
    /// The detours of a packet that starts here on its way to `to`.
    #[inline]
    pub fn detours(&self, to: HostId) -> Detours<'a> {
        let Some(grouped) = self.grouped else { return Detours::default() };
        let rack = self.rack_of[to.index()];
        if u32::from(rack) == self.own {
            return Detours::default();
        }
        let rack = usize::from(rack);
        let (own, there) = (grouped.own(), grouped.groups.of_rack(rack));
        let inside = own.group == there.group;
        let (a, b) = if inside { (own.number, there.number) } else { (own.group, there.group) };
        let all = if inside { grouped.groups.size(own.group) } else { grouped.groups.count() };
        let (low, high) = (a.min(b), a.max(b));
        let candidates = Candidates { router: *self, grouped, inside, rack, low, high, all };
        let count = match grouped.damage {
            None => all.saturating_sub(2),
            Some(damage) => candidates.surviving(damage.surviving).count(),
        };
        Detours { candidates: Some(candidates), count }
    }
}

impl<'a> Candidates<'a> {
    fn ports(&self, number: u16) -> &'a [PortIndex] {
        let Candidates { router, grouped, .. } = *self;
        let entry = match self.inside {
            true => router.member_entry(grouped, number),
            false => grouped.begin(number),
        };
        set(router.pool, entry)
    }

    fn detour(&self, number: u16) -> Detour {
        if self.inside { Detour::Member(number) } else { Detour::Group(number) }
    }

    /// Numbers of the detours that dead links have left.
    fn surviving(self, routes: &SurvivingRoutes) -> impl Iterator<Item = u16> {
        let others = (0..self.all as u16).filter(move |&number| number != self.low && number != self.high);
        others.filter(move |&number| self.survives(routes, number))
    }

    /// Whether dead links have left the detour of this number.
    fn survives(&self, routes: &SurvivingRoutes, number: u16) -> bool {
        let (switch, number) = (self.grouped.switch, usize::from(number));
        match self.inside {
            true => routes.leads_inside(switch, number, self.rack),
            false => routes.leads_over(switch, number, self.rack),
        }
    }
}

impl<'a> Detours<'a> {
    /// Number of detours.
    #[inline]
    pub fn len(&self) -> usize {
        self.count
    }

    /// True if there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// A detour and the ports that lead to it; `None` from [`Detours::len`] on.
    #[inline]
    pub fn get(&self, i: usize) -> Option<(Detour, &'a [PortIndex])> {
        let candidates = self.candidates.filter(|_| i < self.count)?;
        let number = match candidates.grouped.damage {
            None => {
                let mut number = i as u16;
                number += (number >= candidates.low) as u16;
                number + (number >= candidates.high) as u16
            }
            Some(damage) => candidates.surviving(damage.surviving).nth(i)?,
        };
        Some((candidates.detour(number), candidates.ports(number)))
    }

    /// The ports that lead to a detour; empty if the packet cannot take it.
    pub fn toward(&self, detour: Detour) -> &'a [PortIndex] {
        let Some(candidates) = self.candidates else { return &[] };
        let (inside, number) = match detour {
            Detour::Group(number) => (false, number),
            Detour::Member(number) => (true, number),
        };
        let Candidates { all, low, high, .. } = candidates;
        let known = usize::from(number) < all && number != low && number != high;
        let damage = candidates.grouped.damage;
        let survives = || damage.is_none_or(|damage| candidates.survives(damage.surviving, number));
        if inside == candidates.inside && known && survives() { candidates.ports(number) } else { &[] }
    }
}
