//! How a packet crosses a fabric of groups: where it goes first, and how far it has come.

/// Where a packet goes before it goes on to its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Detour {
    /// To any switch of this group.
    Group(u16),
    /// To this switch of the group in which it is, by its number there.
    Member(u16),
}

/// What a packet carries of its way: 16 bits.
///
/// A way has *legs*. One ends where the packet enters another group, or where it ends a detour inside a group: three
/// legs at most, as a detour is taken once. The leg is the packet's virtual channel, see
/// [`crate::Fabric::channels`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RouteState(u16);

// From the lowest bit: leg (2), a leg has ended here (1), the detour leads to a member (1), its number plus 1 (12).
const LEG: u16 = 0b11;
const ENDED: u16 = 1 << 2;
const MEMBER: u16 = 1 << 3;
const NUMBER_SHIFT: u32 = 4;

impl RouteState {
    /// Most groups, and most switches in a group, that a detour can name.
    pub const MOST: usize = (1 << (u16::BITS - NUMBER_SHIFT)) - 1;

    pub(crate) const fn bits(self) -> u16 {
        self.0
    }

    pub(crate) const fn from_bits(bits: u16) -> RouteState {
        RouteState(bits)
    }

    /// Where it goes first.
    #[inline]
    pub const fn detour(self) -> Option<Detour> {
        match (self.0 >> NUMBER_SHIFT, self.0 & MEMBER) {
            (0, _) => None,
            (number, 0) => Some(Detour::Group(number - 1)),
            (number, _) => Some(Detour::Member(number - 1)),
        }
    }

    /// The same with a detour from here on; the number must be below [`RouteState::MOST`].
    #[inline]
    #[must_use]
    pub const fn by(self, detour: Detour) -> RouteState {
        let (number, member) = match detour {
            Detour::Group(number) => (number, 0),
            Detour::Member(number) => (number, MEMBER),
        };
        RouteState(self.0 & (LEG | ENDED) | member | (number + 1) << NUMBER_SHIFT)
    }

    /// The same at the next switch. `ended`: a leg ends there; `there`: so does the detour.
    #[inline]
    #[must_use]
    pub const fn next(self, ended: bool, there: bool) -> RouteState {
        let way = if there { self.0 & LEG } else { self.0 & !ENDED };
        match ended && way & LEG < LEG {
            true => RouteState((way + 1) | ENDED),
            false => RouteState(way),
        }
    }

    /// The leg on which it leaves the switch where it is, 0 the first.
    #[inline]
    pub const fn leg(self) -> u8 {
        (self.0 & LEG) as u8
    }

    /// The leg on which it came there.
    #[inline]
    pub const fn came_on(self) -> u8 {
        (self.0 & LEG) as u8 - (self.0 & ENDED != 0) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_detour_over_a_group_takes_three_legs() {
        let at_source = RouteState::default().next(false, false);
        assert_eq!((at_source.leg(), at_source.detour()), (0, None));
        let sent = at_source.by(Detour::Group(4094));
        let gateway = sent.next(false, false);
        assert_eq!((gateway.leg(), gateway.detour()), (0, Some(Detour::Group(4094))));
        let between = gateway.next(true, true);
        assert_eq!((between.came_on(), between.leg(), between.detour()), (0, 1, None));
        let out = between.next(false, false);
        assert_eq!((out.came_on(), out.leg()), (1, 1));
        let last = out.next(true, false);
        assert_eq!((last.came_on(), last.leg()), (1, 2));
    }

    #[test]
    fn every_number_survives_the_packing() {
        for number in 0..RouteState::MOST as u16 {
            for detour in [Detour::Group(number), Detour::Member(number)] {
                let way = RouteState::default().next(true, false).by(detour);
                assert_eq!((way.detour(), way.leg(), way.came_on()), (Some(detour), 1, 0));
            }
        }
    }
}
