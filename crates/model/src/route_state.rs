//! State of a packet's route across a fabric of groups: its detour and its leg.

/// Intermediate stop of a packet on the path to its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Detour {
    /// Any switch of this group.
    Group(u16),
    /// The switch of this number in the packet's present group.
    Member(u16),
}

/// State of a packet's route in 16 bits, which the packet carries in its annex.
///
/// A path has *legs*. A leg ends where the packet enters another group, or where a detour inside a group ends. A packet
/// takes at most one detour, so a path has at most three legs. The leg is the packet's virtual channel, see
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

    /// The packet's detour, until it has reached it.
    #[inline]
    pub const fn detour(self) -> Option<Detour> {
        match (self.0 >> NUMBER_SHIFT, self.0 & MEMBER) {
            (0, _) => None,
            (number, 0) => Some(Detour::Group(number - 1)),
            (number, _) => Some(Detour::Member(number - 1)),
        }
    }

    /// This state with a detour from here on; the detour's number must be below [`RouteState::MOST`].
    #[inline]
    #[must_use]
    pub const fn with_detour(self, detour: Detour) -> RouteState {
        let (number, member) = match detour {
            Detour::Group(number) => (number, 0),
            Detour::Member(number) => (number, MEMBER),
        };
        RouteState(self.0 & (LEG | ENDED) | member | (number + 1) << NUMBER_SHIFT)
    }

    /// The state at the next switch. `ended`: a leg ends there. `there`: the detour ends there.
    #[inline]
    #[must_use]
    pub const fn next(self, ended: bool, there: bool) -> RouteState {
        let bits = if there { self.0 & LEG } else { self.0 & !ENDED };
        match ended && bits & LEG < LEG {
            true => RouteState((bits + 1) | ENDED),
            false => RouteState(bits),
        }
    }

    /// In a fabric without groups: the state at the next switch, and the number of switches so far.
    #[inline]
    #[must_use]
    pub const fn counted(self) -> (RouteState, u16) {
        let switches = (self.0 >> NUMBER_SHIFT) + 1;
        (RouteState(self.0 & (LEG | ENDED | MEMBER) | switches << NUMBER_SHIFT), switches)
    }

    /// The leg on which the packet leaves the present switch; the first leg is 0.
    #[inline]
    pub const fn leg(self) -> u8 {
        (self.0 & LEG) as u8
    }

    /// The leg on which the packet came to the present switch.
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
        let sent = at_source.with_detour(Detour::Group(4094));
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
    fn switches_are_counted_beside_the_leg() {
        let mut state = RouteState::default();
        for number in 1..=64 {
            let (next, switches) = state.counted();
            assert_eq!((switches, next.leg(), next.came_on()), (number, 0, 0));
            state = next;
        }
    }

    #[test]
    fn packing_keeps_every_detour_number() {
        for number in 0..RouteState::MOST as u16 {
            for detour in [Detour::Group(number), Detour::Member(number)] {
                let state = RouteState::default().next(true, false).with_detour(detour);
                assert_eq!((state.detour(), state.leg(), state.came_on()), (Some(detour), 1, 0));
            }
        }
    }
}
