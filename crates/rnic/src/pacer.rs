//! The credit of a receiving host: it grants the rate of its link to its senders, one after the other.

use model::draw::Key;
use model::granter::{Arrival, Grant};
use model::{Granter, QpId, Rate, Time};
use std::collections::{BTreeMap, VecDeque};

/// The granter of a host, if its senders need one.
#[derive(Clone, Debug)]
pub struct AnyGranter(Option<Box<Pacer>>);

/// Grants the queue pairs of one host, a quantum at a time.
///
/// Queue pairs that are due for grants take turns. Under [`crate::Due::Demand`], those are due whose demand exceeds their grants.
/// A demand that grows takes a turn even if earlier grants have met it; that grant is empty, and takes its time (uet-htsim).
/// While nobody is due, others get grants unasked, up to the largest credit beyond their demand, so that their next bytes
/// need not wait. A queue pair joins their ring each time its demand is met and keeps its place when it asks again, so that one that asks
/// often is in the ring several times (uet-htsim). Under [`crate::Due::Arrival`], a queue pair is due for the bytes of each packet that arrives while its demand is open,
/// and of each cut one.
#[derive(Clone, Debug)]
pub struct Pacer {
    /// Time per byte of credit, ps.
    per_byte: f64,
    quantum: u64,
    /// Grants beyond the demand, bytes; `None` under [`crate::Due::Arrival`].
    ahead: Option<u64>,
    sums: BTreeMap<QpId, Sums>,
    active: VecDeque<QpId>,
    idle: VecDeque<QpId>,
    next: Time,
    throttle: Option<Throttle>,
}

/// Share of its rate that a pacer grants on a fabric whose uplinks carry less than its hosts send. Marks and packets that are cut
/// before the last hop lower it; receivers see them, and senders without a window of their own do not react.
///
/// The rule and its constants are those of uet-htsim (`oversubscribed_cc.cpp`).
#[derive(Clone, Debug)]
pub(crate) struct Throttle {
    share: f64,
    least: f64,
    /// Average share of marked packets.
    marked_share: f64,
    /// Increases in a row.
    raises: i32,
    /// Packets since the last adjustment.
    seen: Seen,
    next: Time,
    /// Mean time between adjustments, ps.
    interval: f64,
    draws: Key,
    drawn: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    packets: u32,
    marked: u32,
    /// Cut by the host's own switch, and elsewhere.
    cut_here: u32,
    cut_elsewhere: u32,
}

/// Mean time between adjustments, in base round trips.
const INTERVAL: f64 = 1.5;
/// Share that is granted at least, times the oversubscription.
const LEAST: f64 = 0.9;
/// Average share of marked packets from which on the grants shrink, and how much of the excess they lose.
const MARKED: (f64, f64) = (0.3, 0.5);
/// Step of an increase. It doubles from one to the next while no packet is marked.
const STEP: f64 = 0.01;
/// Adjustments without any packet after which nothing changes: the share is 1, and the average has gone. Our choice.
const REST: u32 = 64;

impl Throttle {
    /// A throttle for a fabric with this oversubscription and base round trip.
    pub(crate) fn new(oversubscription: f64, rtt: Time, draws: Key) -> Self {
        let mut throttle = Throttle {
            share: 1.0,
            least: (LEAST / oversubscription).clamp(STEP, 1.0),
            marked_share: 0.0,
            raises: 0,
            seen: Seen::default(),
            next: Time::ZERO,
            interval: INTERVAL * rtt.ps() as f64,
            draws,
            drawn: 0,
        };
        throttle.schedule(Time::ZERO);
        throttle
    }

    /// Draws the time of the next adjustment: 0.75 to 1.25 intervals, so that receivers do not act in step.
    fn schedule(&mut self, from: Time) {
        let unit = (self.draws.draw(self.drawn) >> 11) as f64 / (1_u64 << 53) as f64;
        self.drawn += 1;
        self.next = from + Time(((0.75 + unit / 2.0) * self.interval) as u64 + 1);
    }

    /// Makes the adjustments that are due.
    fn advance(&mut self, now: Time) {
        for _ in 0..REST {
            if now < self.next {
                return;
            }
            self.adjust();
            self.schedule(self.next);
        }
        self.schedule(now);
    }

    fn adjust(&mut self) {
        let Seen { packets, marked, cut_here, cut_elsewhere } = std::mem::take(&mut self.seen);
        let whole = packets.saturating_sub(cut_here + cut_elsewhere);
        let share = if whole > 0 { f64::from(marked) / f64::from(whole) } else { 0.0 };
        self.marked_share = (self.marked_share + share) / 2.0;
        let (most, factor) = MARKED;
        let crowded = self.marked_share > most;
        if cut_elsewhere > 0 {
            self.share -= f64::from(cut_elsewhere) / f64::from(packets);
        }
        if crowded {
            self.share *= 1.0 - factor * (self.marked_share - most);
        }
        if cut_elsewhere == 0 && !crowded {
            self.share += if marked == 0 { STEP * 2_f64.powi(self.raises) } else { STEP };
            self.raises = (self.raises + 1).min(64);
        } else {
            self.raises = 0;
        }
        self.share = self.share.clamp(self.least, 1.0);
    }

    fn count(&mut self, arrival: Arrival) {
        let seen = &mut self.seen;
        seen.packets += 1;
        match (arrival.cut, arrival.last_hop) {
            (false, _) => seen.marked += u32::from(arrival.marked),
            (true, true) => seen.cut_here += 1,
            (true, false) => seen.cut_elsewhere += 1,
        }
    }
}

/// Running sums of a queue pair, bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    demanded: u64,
    /// Demand that arrivals have answered, under [`crate::Due::Arrival`].
    answered: u64,
    /// Grants to which it is entitled.
    due: u64,
    granted: u64,
    /// Number of its grants, modulo the entropies that they take in turn.
    grants: u16,
    /// True while it is in the ring of those that are served first.
    active: bool,
}

/// Entropies that the grants of a queue pair take in turn (uet-htsim).
const ENTROPIES: u16 = 128;

/// Bytes whose time an empty grant takes (uet-htsim).
const EMPTY: u64 = 1 << 10;

impl Pacer {
    /// A pacer that grants `share` of `rate`. Without `ahead`, arrivals entitle senders to grants.
    pub(crate) fn new(rate: Rate, share: f64, quantum: u64, ahead: Option<u64>) -> Self {
        Pacer {
            per_byte: 8e12 / (rate.bps() as f64 * share),
            quantum,
            ahead,
            sums: BTreeMap::new(),
            active: VecDeque::new(),
            idle: VecDeque::new(),
            next: Time::ZERO,
            throttle: None,
        }
    }

    /// This pacer with a throttle.
    pub(crate) fn throttled(self, throttle: Option<Throttle>) -> Self {
        Pacer { throttle, ..self }
    }

    fn activate(&mut self, qp: QpId) {
        if let Some(sums) = self.sums.get_mut(&qp).filter(|sums| !sums.active) {
            sums.active = true;
            self.active.push_back(qp);
        }
    }
}

impl Granter for Pacer {
    fn demand(&mut self, _: Time, qp: QpId, total: u64) {
        let known = self.sums.contains_key(&qp);
        let sums = self.sums.entry(qp).or_default();
        let more = total > sums.demanded;
        sums.demanded = sums.demanded.max(total);
        if self.ahead.is_none() {
            return;
        }
        sums.due = sums.demanded;
        if more || sums.due > sums.granted {
            self.activate(qp);
        } else if !known {
            self.idle.push_back(qp);
        }
    }

    /// A cut packet must be sent again, so its queue pair takes a turn.
    fn arrived(&mut self, now: Time, arrival: Arrival) {
        if let Some(throttle) = &mut self.throttle {
            throttle.advance(now);
            throttle.count(arrival);
        }
        let mut takes_turn = arrival.cut;
        if self.ahead.is_none()
            && let Some(sums) = self.sums.get_mut(&arrival.qp)
        {
            // The length of a cut packet is that of its headers.
            let bytes = if arrival.cut { self.quantum } else { arrival.frame.into() };
            let asked = sums.demanded > sums.answered;
            sums.answered += if asked { bytes } else { 0 };
            takes_turn |= asked;
            sums.due += if takes_turn { bytes } else { 0 };
        }
        if takes_turn {
            self.activate(arrival.qp);
        }
    }

    fn deadline(&self) -> Time {
        match self.active.is_empty() && self.idle.is_empty() {
            true => Time::NEVER,
            false => self.next,
        }
    }

    fn grant(&mut self, now: Time) -> Option<Grant> {
        if now < self.next {
            return None;
        }
        let (qp, asked) = match self.active.pop_front() {
            Some(qp) => (qp, true),
            None => (self.idle.pop_front()?, false),
        };
        let sums = self.sums.get_mut(&qp)?;
        let ahead = sums.due + self.ahead.unwrap_or(0);
        let most = if asked { sums.due } else { ahead };
        let amount = self.quantum.min(most.saturating_sub(sums.granted));
        sums.granted += amount;
        sums.active = asked && sums.due > sums.granted;
        if sums.active {
            self.active.push_back(qp);
        } else if sums.granted < ahead {
            self.idle.push_back(qp);
        }
        let cost = if amount == 0 { EMPTY } else { amount };
        let from = now.ps().max(self.next.ps());
        let share = self.throttle.as_mut().map_or(1.0, |throttle| {
            throttle.advance(now);
            throttle.share
        });
        self.next = Time(from + (cost as f64 * self.per_byte / share).round() as u64);
        sums.grants = (sums.grants + 1) % ENTROPIES;
        Some(Grant { qp, total: sums.granted, entropy: sums.grants })
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

    fn grant(&mut self, now: Time) -> Option<Grant> {
        self.0.as_mut()?.grant(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pacer() -> Pacer {
        Pacer::new(Rate::from_gbps(400), 0.99, 16_384, Some(32_768))
    }

    /// A pacer that pulls a packet for each one that arrives: 4000 B, or 4020 B with its gap.
    fn puller() -> Pacer {
        Pacer::new(Rate::from_gbps(400), 4_000.0 / 4_020.0, 4_000, None)
    }

    /// A packet arrives with a demand, whole or cut.
    fn arrive(pacer: &mut Pacer, qp: u32, total: u64, cut: bool) {
        let (qp, frame) = (QpId(qp), if cut { 64 } else { 4_000 });
        pacer.demand(Time::ZERO, qp, total);
        pacer.arrived(Time::ZERO, Arrival { qp, frame, marked: false, cut, last_hop: cut });
    }

    /// Grants until nobody is due: queue pair and sum.
    fn all_grants(pacer: &mut Pacer) -> Vec<(u32, u64)> {
        let mut grants = Vec::new();
        while pacer.deadline() != Time::NEVER {
            let grant = pacer.grant(pacer.deadline()).unwrap();
            grants.push((grant.qp.0, grant.total));
        }
        grants
    }

    #[test]
    fn a_pull_takes_the_time_of_a_packet_on_the_wire() {
        let mut pacer = puller();
        (0..2).for_each(|_| arrive(&mut pacer, 1, 99_000, false));
        assert_eq!(pacer.grant(Time::ZERO), Some(Grant { qp: QpId(1), total: 4_000, entropy: 1 }));
        assert_eq!((pacer.grant(Time::ZERO), pacer.deadline()), (None, Time(80_400)));
    }

    #[test]
    fn each_arrival_is_due_for_one_pull_and_senders_take_turns() {
        let mut pacer = puller();
        // Five packets of queue pair 1 and two of queue pair 2, of which one is cut.
        (0..5).for_each(|_| arrive(&mut pacer, 1, 99_000, false));
        arrive(&mut pacer, 2, 99_000, true);
        arrive(&mut pacer, 2, 99_000, false);
        let expected =
            [(1, 4_000), (2, 4_000), (1, 8_000), (2, 8_000), (1, 12_000), (1, 16_000), (1, 20_000)];
        assert_eq!(all_grants(&mut pacer), expected);
    }

    #[test]
    fn a_sender_with_nothing_behind_its_packets_is_pulled_for_cut_ones_only() {
        let mut pacer = puller();
        (0..3).for_each(|_| arrive(&mut pacer, 1, 0, false));
        assert_eq!(pacer.deadline(), Time::NEVER);
        arrive(&mut pacer, 1, 0, true);
        assert_eq!(all_grants(&mut pacer), [(1, 4_000)]);
        // Two packets ask for pulls.
        (0..5).for_each(|_| arrive(&mut pacer, 1, 8_000, false));
        assert_eq!(all_grants(&mut pacer), [(1, 8_000), (1, 12_000)]);
    }

    #[test]
    fn a_grant_of_16_kib_takes_331_ns_at_400_gbps() {
        let mut pacer = pacer();
        pacer.demand(Time::ZERO, QpId(1), 100_000);
        assert_eq!(pacer.grant(Time::ZERO), Some(Grant { qp: QpId(1), total: 16_384, entropy: 1 }));
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
            let grant = pacer.grant(now).unwrap();
            grants.push((grant.qp, grant.total));
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
            sum = pacer.grant(pacer.deadline()).unwrap().total;
        }
        assert_eq!(sum, 1_000 + 32_768);
    }

    #[test]
    fn a_demand_that_grows_takes_a_turn_though_grants_have_met_it() {
        let mut pacer = pacer();
        pacer.demand(Time::ZERO, QpId(1), 4_000);
        let next = |pacer: &mut Pacer| {
            let at = pacer.deadline();
            let total = pacer.grant(at).unwrap().total;
            (total, pacer.deadline().ps() - at.ps())
        };
        assert_eq!(next(&mut pacer).0, 4_000);
        assert_eq!(next(&mut pacer), (20_384, 330_990), "unasked");
        pacer.demand(Time::ZERO, QpId(1), 8_000);
        assert_eq!(next(&mut pacer), (20_384, 20_687), "an empty grant takes the time of 1 KiB");
        assert_eq!(next(&mut pacer).0, 36_768, "unasked again");
        // The same demand takes no turn.
        pacer.demand(Time::ZERO, QpId(1), 8_000);
        assert_eq!(next(&mut pacer).0, 8_000 + 32_768);
        // It has joined the ring of unasked grants once for each turn, and its last place there is worth nothing.
        assert_eq!(next(&mut pacer).0, 8_000 + 32_768);
        assert_eq!(pacer.deadline(), Time::NEVER);
    }

    #[test]
    fn a_queue_pair_that_has_asked_twice_gets_two_of_three_unasked_grants() {
        let mut pacer = Pacer::new(Rate::from_gbps(400), 0.99, 16_384, Some(1 << 20));
        let mut next = |demands: &[(u32, u64)]| {
            demands.iter().for_each(|&(qp, total)| pacer.demand(Time::ZERO, QpId(qp), total));
            pacer.grant(pacer.deadline()).unwrap().qp.0
        };
        assert_eq!([next(&[(1, 4_000), (2, 4_000)]), next(&[]), next(&[(1, 8_000)])], [1, 2, 1], "asked");
        assert_eq!([(); 6].map(|()| next(&[])), [1, 2, 1, 1, 2, 1], "unasked");
    }

    /// Adjusts once after so many packets: whole, marked, cut by the own switch, cut elsewhere.
    fn adjusted(throttle: &mut Throttle, [whole, marked, here, elsewhere]: [u32; 4]) -> f64 {
        let arrival = |marked, cut, last_hop| Arrival { qp: QpId(0), frame: 4150, marked, cut, last_hop };
        (0..whole).for_each(|_| throttle.count(arrival(false, false, false)));
        (0..marked).for_each(|_| throttle.count(arrival(true, false, false)));
        (0..here).for_each(|_| throttle.count(arrival(true, true, true)));
        (0..elsewhere).for_each(|_| throttle.count(arrival(false, true, false)));
        throttle.advance(throttle.next);
        throttle.share
    }

    fn throttle() -> Throttle {
        Throttle::new(4.0, Time::from_us(4), Key::default())
    }

    #[test]
    fn packets_cut_in_the_fabric_and_many_marks_lower_the_grants_down_to_the_share_of_the_uplinks() {
        let mut throttle = throttle();
        assert_eq!(adjusted(&mut throttle, [90, 0, 0, 10]), 0.9);
        assert_eq!(
            adjusted(&mut throttle, [20, 20, 20, 0]),
            0.91,
            "the own switch does not count, and 0.25 is few"
        );
        let marked = adjusted(&mut throttle, [0, 60, 0, 0]);
        assert!((marked - 0.91 * (1.0 - 0.5 * (0.625 - 0.3))).abs() < 1e-9, "{marked}");
        (0..9).for_each(|_| _ = adjusted(&mut throttle, [10, 0, 0, 90]));
        assert_eq!(throttle.share, 0.225);
    }

    #[test]
    fn grants_grow_faster_and_faster_while_nothing_is_marked() {
        let mut throttle = throttle();
        throttle.share = 0.5;
        let shares: Vec<_> = (0..3).map(|_| adjusted(&mut throttle, [9, 0, 0, 0])).collect();
        assert!(shares.iter().zip([0.51, 0.53, 0.57]).all(|(a, b)| (a - b).abs() < 1e-9), "{shares:?}");
        assert!((adjusted(&mut throttle, [9, 1, 0, 0]) - 0.58).abs() < 1e-9, "a mark");
        throttle.advance(Time::from_ms(500));
        assert_eq!((throttle.share, throttle.next > Time::from_ms(500)), (1.0, true));
    }

    #[test]
    fn adjustments_come_at_three_quarters_to_five_quarters_of_one_and_a_half_round_trips() {
        let mut throttle = throttle();
        let mut gaps = Vec::new();
        for _ in 0..50 {
            let before = throttle.next;
            throttle.advance(before);
            gaps.push(throttle.next.ps() - before.ps());
        }
        assert!(gaps.iter().all(|gap| (4_500_000..=7_500_001).contains(gap)), "{gaps:?}");
        assert!(gaps.iter().max().unwrap() - gaps.iter().min().unwrap() > 2_000_000, "{gaps:?}");
    }

    #[test]
    fn a_throttled_pacer_takes_longer_between_grants() {
        let mut throttle = throttle();
        (throttle.share, throttle.next) = (0.5, Time::from_ms(1));
        let mut pacer = pacer().throttled(Some(throttle));
        pacer.demand(Time::ZERO, QpId(1), 100_000);
        pacer.grant(Time::ZERO);
        assert_eq!(pacer.deadline(), Time(661_980));
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
