//! The order of departures among a switch's ports: a tournament among the ports whose departures must be computed
//! in order of time.

/// A tournament. The winner is the port with the earliest start, and among several with that start the lowest
/// number.
#[derive(Debug, Default)]
pub(super) struct DepartureOrder {
    /// Node `i` has the children `2 i` and `2 i + 1`, and the leaves are the ports. A key holds the time since the
    /// window's start and, in its low bits, the port.
    keys: Vec<u64>,
    leaves: usize,
}

/// Number of bits of a port number.
const PORT: u32 = 10;
/// Key of a port that starts nothing in this window.
const NOT: u64 = u64::MAX;

impl DepartureOrder {
    /// Restarts the tournament with `ports` ports.
    #[inline]
    pub(super) fn clear(&mut self, ports: usize) {
        self.leaves = ports.next_power_of_two().max(2);
        self.keys.clear();
        self.keys.resize(2 * self.leaves, NOT);
    }

    /// Sets the start of port `p` to `after` ps from the window's start; a start from `length` on is in a later
    /// window.
    #[inline]
    pub(super) fn set(&mut self, p: usize, after: u64, length: u64) {
        let key = if after < length { after << PORT | p as u64 } else { NOT };
        let mut i = self.leaves + p;
        self.keys[i] = key;
        while i > 1 {
            i /= 2;
            let winner = self.keys[2 * i].min(self.keys[2 * i + 1]);
            if self.keys[i] == winner {
                break;
            }
            self.keys[i] = winner;
        }
    }

    /// The earliest start, in ps from the window's start, and its port.
    #[inline(always)]
    pub(super) fn first(&self) -> Option<(u64, usize)> {
        match self.keys.get(1) {
            None | Some(&NOT) => None,
            Some(&key) => Some((key >> PORT, (key & ((1 << PORT) - 1)) as usize)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_departure_wins_and_of_two_the_lower_port() {
        let mut order = DepartureOrder::default();
        order.clear(37);
        assert_eq!(order.first(), None);
        for (p, after) in [(36, 500), (3, 700), (20, 500), (7, 999_999)] {
            order.set(p, after, 1_000_000);
        }
        let mut seen = Vec::new();
        while let Some((after, p)) = order.first() {
            seen.push((after, p));
            order.set(p, u64::MAX, 1_000_000);
        }
        assert_eq!(seen, [(500, 20), (500, 36), (700, 3), (999_999, 7)]);
        order.set(5, 1_000_000, 1_000_000);
        assert_eq!(order.first(), None, "it starts in the next window");
    }
}
