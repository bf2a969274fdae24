//! The credit of a receiving host: it grants the rate of its link to its senders, one after the other.

use model::granter::Arrival;
use model::{Granter, QpId, Rate, Time};
use std::collections::{BTreeMap, VecDeque};

/// The granter of a host, if its senders need one.
#[derive(Clone, Debug)]
pub struct AnyGranter(Option<Box<Pacer>>);

/// Grants the queue pairs of one host, a quantum at a time.
///
/// Queue pairs whose demand exceeds their grants take turns. While there are none, others get grants unasked, up to the
/// largest credit beyond their demand, so that their next bytes need not wait.
#[derive(Clone, Debug)]
pub struct Pacer {
    /// Time per byte of credit, ps.
    per_byte: f64,
    quantum: u64,
    /// Grants beyond the demand, bytes.
    ahead: u64,
    sums: BTreeMap<QpId, Sums>,
    active: VecDeque<QpId>,
    idle: VecDeque<QpId>,
    next: Time,
}

/// Running sums of a queue pair, bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    demanded: u64,
    granted: u64,
    /// True while it is in the ring of those that are served first.
    active: bool,
}

/// Bytes whose time an empty grant takes (uet-htsim).
const EMPTY: u64 = 1 << 10;

impl Pacer {
    /// A pacer that grants `share` of `rate`.
    pub(crate) fn new(rate: Rate, share: f64, quantum: u64, ahead: u64) -> Self {
        Pacer {
            per_byte: 8e12 / (rate.bps() as f64 * share),
            quantum,
            ahead,
            sums: BTreeMap::new(),
            active: VecDeque::new(),
            idle: VecDeque::new(),
            next: Time::ZERO,
        }
    }

    fn activate(&mut self, qp: QpId) {
        if let Some(sums) = self.sums.get_mut(&qp).filter(|sums| !sums.active) {
            sums.active = true;
            self.active.push_back(qp);
            self.idle.retain(|idle| *idle != qp);
        }
    }
}

impl Granter for Pacer {
    fn demand(&mut self, _: Time, qp: QpId, total: u64) {
        let known = self.sums.contains_key(&qp);
        let sums = self.sums.entry(qp).or_default();
        let more = total > sums.demanded;
        sums.demanded = sums.demanded.max(total);
        if sums.demanded > sums.granted {
            self.activate(qp);
        } else if (more || !known) && !sums.active && !self.idle.contains(&qp) {
            self.idle.push_back(qp);
        }
    }

    /// A cut packet must be sent again, so its queue pair takes a turn.
    fn arrived(&mut self, _: Time, arrival: Arrival) {
        if arrival.cut {
            self.activate(arrival.qp);
        }
    }

    fn deadline(&self) -> Time {
        match self.active.is_empty() && self.idle.is_empty() {
            true => Time::NEVER,
            false => self.next,
        }
    }

    fn grant(&mut self, now: Time) -> Option<(QpId, u64)> {
        if now < self.next {
            return None;
        }
        let (qp, asked) = match self.active.pop_front() {
            Some(qp) => (qp, true),
            None => (self.idle.pop_front()?, false),
        };
        let sums = self.sums.get_mut(&qp)?;
        let most = if asked { sums.demanded } else { sums.demanded + self.ahead };
        let amount = self.quantum.min(most.saturating_sub(sums.granted));
        sums.granted += amount;
        sums.active = asked && sums.demanded > sums.granted;
        if sums.active {
            self.active.push_back(qp);
        } else if sums.granted < sums.demanded + self.ahead {
            self.idle.push_back(qp);
        }
        let cost = if amount == 0 { EMPTY } else { amount };
        let from = now.ps().max(self.next.ps());
        self.next = Time(from + (cost as f64 * self.per_byte).round() as u64);
        Some((qp, sums.granted))
    }
}

impl AnyGranter {
    pub(crate) fn new(pacer: Option<Pacer>) -> Self {
        AnyGranter(pacer.map(Box::new))
    }
}

impl Granter for AnyGranter {
    #[inline]
    fn is_idle(&self) -> bool {
        self.0.is_none()
    }

    #[inline]
    fn demand(&mut self, now: Time, qp: QpId, total: u64) {
        if let Some(pacer) = &mut self.0 {
            pacer.demand(now, qp, total);
        }
    }

    #[inline]
    fn arrived(&mut self, now: Time, arrival: Arrival) {
        if let Some(pacer) = &mut self.0 {
            pacer.arrived(now, arrival);
        }
    }

    #[inline]
    fn deadline(&self) -> Time {
        self.0.as_ref().map_or(Time::NEVER, |pacer| pacer.deadline())
    }

    fn grant(&mut self, now: Time) -> Option<(QpId, u64)> {
        self.0.as_mut()?.grant(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pacer() -> Pacer {
        Pacer::new(Rate::from_gbps(400), 0.99, 16_384, 32_768)
    }

    #[test]
    fn a_grant_of_16_kib_takes_331_ns_at_400_gbps() {
        let mut pacer = pacer();
        pacer.demand(Time::ZERO, QpId(1), 100_000);
        assert_eq!(pacer.grant(Time::ZERO), Some((QpId(1), 16_384)));
        assert_eq!((pacer.grant(Time::ZERO), pacer.deadline()), (None, Time(330_990)));
    }

    #[test]
    fn senders_take_turns_and_get_no_more_than_they_demand() {
        let mut pacer = pacer();
        let mut now = Time::ZERO;
        pacer.demand(now, QpId(1), 40_000);
        pacer.demand(now, QpId(2), 20_000);
        let mut grants = Vec::new();
        for _ in 0..5 {
            now = pacer.deadline().max(now);
            grants.push(pacer.grant(now).unwrap());
        }
        let expected = [(1, 16_384), (2, 16_384), (1, 32_768), (2, 20_000), (1, 40_000)]
            .map(|(qp, sum)| (QpId(qp), sum));
        assert_eq!(grants, expected);
    }

    #[test]
    fn unasked_grants_end_at_the_largest_credit() {
        let mut pacer = pacer();
        pacer.demand(Time::ZERO, QpId(1), 1_000);
        let mut sum = 0;
        while pacer.deadline() != Time::NEVER {
            (_, sum) = pacer.grant(pacer.deadline()).unwrap();
        }
        assert_eq!(sum, 1_000 + 32_768);
    }

    #[test]
    fn the_rate_of_all_grants_is_the_share_of_the_link() {
        let mut pacer = pacer();
        (0..9).for_each(|qp| pacer.demand(Time::ZERO, QpId(qp), 1 << 30));
        let (mut granted, mut now) = (0, Time::ZERO);
        while now < Time::from_ms(1) {
            now = pacer.deadline();
            pacer.grant(now).unwrap();
            granted += 16_384;
        }
        let rate = granted as f64 * 8.0 / now.ps() as f64 * 1e12;
        assert!((rate / 396e9 - 1.0).abs() < 1e-2, "{rate}");
    }
}
