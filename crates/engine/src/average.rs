//! Averages of a port's queues, by which it marks (the weight of random early detection).

use model::plan::{Classes, MarkAt, Marking};

/// Fractional bits of an average.
const FRACTION: u32 = 16;

/// The average of each class's queue at a port, bytes with [`FRACTION`] bits behind the point.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Averages([i64; Classes::MOST]);

impl Averages {
    /// The length of the queue by which a data packet is marked, at a moment at which the queue of its class has `queue` bytes. At the moment
    /// of the marking's decision, the average follows the queue: avg += (queue - avg) / 2^weight.
    #[inline]
    pub(crate) fn follow(&mut self, class: usize, marking: Option<&Marking>, at: MarkAt, queue: u64) -> u64 {
        let Some(marking) = marking.filter(|marking| marking.weight > 0 && marking.at == at) else {
            return queue;
        };
        let average = &mut self.0[class];
        let queue = i64::try_from(queue).unwrap_or(i64::MAX).min(i64::MAX >> (FRACTION + 1)) << FRACTION;
        *average += (queue - *average) >> marking.weight;
        (*average >> FRACTION).unsigned_abs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Bytes, Probability};

    #[test]
    fn an_average_comes_closer_by_the_same_share_each_time() {
        let marking = |weight| Marking {
            kmin: Bytes(0),
            kmax: Bytes(1),
            pmax: Probability::new(1.0),
            at: MarkAt::Dequeue,
            weight,
        };
        let mut averages = Averages::default();
        let mut seen = |weight, queue| averages.follow(1, Some(&marking(weight)), MarkAt::Dequeue, queue);
        assert_eq!([seen(0, 900), seen(1, 1_000), seen(1, 1_000), seen(1, 0)], [900, 500, 750, 375]);
        assert_eq!(averages.follow(1, Some(&marking(1)), MarkAt::Enqueue, 70), 70, "another moment");
        let mut averages = Averages::default();
        let mut late = (0..).map(|_| averages.follow(0, Some(&marking(15)), MarkAt::Dequeue, 1_000_000));
        assert_eq!(late.position(|seen| seen >= 500_000), Some(22_712), "ln 2 x 2^15 packets");
    }
}
