//! The order of departures among a switch's ports whose departures must be computed in order of time.

/// The earliest start among the ports, and of several ports with that start the one with the lowest number.
#[derive(Debug)]
pub(super) struct DepartureOrder {
    /// By port: the time since the window's start and, in the low bits, the port.
    keys: Vec<u64>,
    /// The least key of every eight ports.
    least: Vec<u64>,
    first: u64,
}

impl Default for DepartureOrder {
    fn default() -> Self {
        DepartureOrder { keys: Vec::new(), least: Vec::new(), first: NOT }
    }
}

/// Number of bits of a port number.
const PORT: u32 = 10;
/// Key of a port that starts nothing in this window.
const NOT: u64 = u64::MAX;

impl DepartureOrder {
    /// Restarts with `ports` ports, none of which starts anything.
    #[inline]
    pub(super) fn clear(&mut self, ports: usize) {
        let eights = ports.div_ceil(8);
        self.keys.clear();
        self.keys.resize(8 * eights, NOT);
        self.least.clear();
        self.least.resize(eights, NOT);
        self.first = NOT;
    }

    /// Sets the start of port `p` to `after` ps from the window's start; a start from `length` on is in a later
    /// window.
    #[inline]
    pub(super) fn set(&mut self, p: usize, after: u64, length: u64) {
        let key = if after < length { after << PORT | p as u64 } else { NOT };
        let before = std::mem::replace(&mut self.keys[p], key);
        if key == before {
            return;
        }
        let eight = self.keys.as_chunks::<8>().0[p / 8];
        self.least[p / 8] = eight.into_iter().fold(NOT, u64::min);
        self.first = match key < self.first {
            true => key,
            false if before > self.first => return,
            false => self.least.iter().copied().fold(NOT, u64::min),
        };
    }

    /// The earliest start, in ps from the window's start, and its port.
    #[inline(always)]
    pub(super) fn first(&self) -> Option<(u64, usize)> {
        match self.first {
            NOT => None,
            key => Some((key >> PORT, (key & ((1 << PORT) - 1)) as usize)),
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
