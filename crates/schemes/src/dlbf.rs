//! DLBF: a flow stays on one path until that path is congested. Then the sender moves it and hides the move.
//!
//! The scheme sits in the sending NIC, and a path is a UDP source port. Each of its three mechanisms can be switched off:
//!
//! 1. *Adaptive path switching.* A path is available (a recent ACK had no mark), unavailable (a recent ACK echoed a
//!    mark), or unprobed; the first two states expire. When its path becomes unavailable, a flow takes an available
//!    path, else an unprobed one, else it stays.
//! 2. *Selective duplicates.* Every ACK carries the one-way delay of its packet. If the new path is faster than the old
//!    one by some time, new packets would overtake the packets sent within that time. So the sender sends those again on
//!    the new path, in order, before anything new. The receiver silently drops copies.
//! 3. *Notifications.* The delay of an unprobed path is unknown. So a packet without payload goes ahead and names the
//!    packets in flight on the old path. If the notification arrives marked, the receiver waits for those packets.
//!    Otherwise it asks at once for the missing ones. A receiver that holds too many packets reports so, and gets
//!    duplicates instead.
//!
//! The paper leaves most parameters open; docs/dlbf.md lists our choices.

use crate::entropies::{Entropies, Mapping};
use crate::{Facts, Recipe, Steers, palette::Look};
use finding::{Finding, code};
use model::annex::{Notice, NoticeRules};
use model::draw::{Key, below};
use model::steering::{Aside, AsideKind, Room, Sent};
use model::{Plan, Psn, QpSite, Site, Stamp, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// `[scheme.dlbf]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "SchemeDlbf")]
pub struct Config {
    /// Source ports that a flow uses, 1 to 4096. Default 16 (our choice, since the paper gives none: the paths
    /// between two pods of its fabric).
    pub ports: u16,
    /// Mapping from source ports to paths in switches: `map` (port k leads over the k-th path) or `hash`. Default `map`
    /// (our choice: the paper takes a port for a path).
    pub mapping: Mapping,
    /// Time for which a path stays unavailable after a mark. Default: the time to drain a queue that marks every packet,
    /// Kmax / line rate (our choice; not given in the paper).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<Time>,
    /// Time for which a path stays available after an ACK without a mark. Default: the value of `unavailable` (our
    /// choice; not given in the paper).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available: Option<Time>,
    /// Whether an ACK without a mark makes an unavailable path available again. Default true (our choice, since the
    /// paper is silent: otherwise a flow would never know the delay of a path that it could take).
    pub recovers: bool,
    /// Consecutive marked ACKs that make a path unavailable. Default 1 (the paper's state machine; its text speaks of
    /// "persistent congestion").
    pub marks: u16,
    /// Weight of a new delay in a path's moving average, above 0 and up to 1. Default 1, so that only the newest delay
    /// counts (our choice; the paper does not say).
    pub delay_weight: f64,
    /// Whether flows change paths. Default true (the paper).
    pub switching: bool,
    /// Whether the sender sends duplicates. Default true (the paper).
    pub duplicates: bool,
    /// Most duplicates per move. Default 256 (our choice, about 1 MB of 4 KB packets; the paper has no bound).
    pub most_duplicates: u16,
    /// Whether the sender sends notifications. Default true (the paper).
    pub notifications: bool,
    /// Time for which a receiver waits for the packets that a marked notification names (the paper's theta). It must be
    /// shorter than the retransmission timeout. Default: twice Kmax / line rate (our choice; not given in the paper).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub theta: Option<Time>,
    /// Packets held by a receiver, per queue pair, above which it suspends notifications. Default 64 (our choice; not
    /// given in the paper).
    pub suspend: u32,
    /// Packets held by a receiver at or below which it accepts notifications again. Default 32 (our choice).
    pub resume: u32,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            ports: 16,
            mapping: Mapping::Map,
            unavailable: None,
            available: None,
            recovers: true,
            marks: 1,
            delay_weight: 1.0,
            switching: true,
            duplicates: true,
            most_duplicates: 256,
            notifications: true,
            theta: None,
            suspend: 64,
            resume: 32,
        }
    }
}

/// Most source ports: our choice, far beyond the paths of any fabric here.
const MOST: u16 = 4096;

/// Kmax over line rate of the first port that marks: the time to drain a queue that marks every packet. Without marking
/// there is no congestion to see, and any time will do.
fn drain_time(plan: &Plan) -> Time {
    let port = plan.ports.iter().zip(plan.fabric.links()).find_map(|(p, l)| Some((p.marking?, l.rate)));
    port.map_or(Time::from_us(32), |(marking, rate)| rate.time_for(marking.kmax.get()))
}

impl Config {
    fn unavailable(&self, plan: &Plan) -> Time {
        self.unavailable.unwrap_or_else(|| drain_time(plan))
    }

    /// Patience of a receiver for the packets that a marked notification names (the paper's theta).
    pub fn theta(&self, plan: &Plan) -> Time {
        self.theta.unwrap_or_else(|| Time(2 * drain_time(plan).ps()))
    }
}

impl Recipe for Config {
    type Scheme = Entropies;
    const LOOK: Option<Look> = Some(Look::new(5, 0));
    const TRIALS: &'static [&'static str] =
        &["ports = 4\nunavailable = \"20us\"\nsuspend = 3\nresume = 2\ntheta = \"5us\"\n[nic]\n\
         timeout = { fixed = \"100us\" }\n[nic.transport.sr-sack]\nreorder-window = 40"];

    fn facts(&self) -> Facts {
        Facts::plain(true)
    }

    fn build(&self, site: Site<'_>) -> Entropies {
        Entropies::new(self.mapping, site)
    }

    fn validate(&self, plan: &Plan) -> Result<Vec<Finding>, Finding> {
        if !(1..=MOST).contains(&self.ports) {
            let text = format!("{} source ports; 1 to {MOST} are possible", self.ports);
            return Err(code::RANGE.at("ports", text));
        }
        if self.marks == 0 {
            return Err(code::RANGE.at("marks", "at least one mark must make a path unavailable"));
        }
        if !(self.delay_weight > 0.0 && self.delay_weight <= 1.0) {
            let text = format!("a weight of {}; it must be above 0 and at most 1", self.delay_weight);
            return Err(code::RANGE.at("delay-weight", text));
        }
        if self.resume > self.suspend {
            let text = format!(
                "notifications resume at {} packets, which is more than the {} at which they are suspended",
                self.resume, self.suspend
            );
            return Err(code::FIT.at("resume", text));
        }
        for (field, time) in
            [("unavailable", self.unavailable), ("available", self.available), ("theta", self.theta)]
        {
            if time == Some(Time::ZERO) {
                return Err(code::RANGE.at(field, "must be longer than 0"));
            }
        }
        let mut warnings = Vec::new();
        if plan.ports.iter().all(|port| port.marking.is_none()) {
            let text = "no switch marks packets, so `dlbf` never sees congestion and never moves a flow";
            warnings.push(code::NO_MARKS.plain(text));
        }
        Ok(warnings)
    }
}

impl Steers for Config {
    type Steering = Dlbf;

    fn steer(&self, site: QpSite<'_>) -> Dlbf {
        let unavailable = self.unavailable(site.plan);
        Dlbf {
            paths: vec![Path::default(); usize::from(self.ports.clamp(1, MOST))],
            current: None,
            una: 0,
            sent: VecDeque::new(),
            asides: VecDeque::new(),
            crowded: false,
            key: site.key(),
            drawn: 0,
            unavailable,
            available: self.available.unwrap_or(unavailable),
            config: self.clone(),
            counters: Counters::default(),
        }
    }

    fn notices(&self, plan: &Plan) -> Option<NoticeRules> {
        let rules = NoticeRules { patience: self.theta(plan), high: self.suspend, low: self.resume };
        self.notifications.then_some(rules)
    }
}

/// `now` plus `span`, saturating.
fn later(now: Time, span: Time) -> Time {
    Time(now.ps().saturating_add(span.ps()))
}

/// State of a path at its sender.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Path {
    state: State,
    /// End of the state; afterwards the path is unprobed.
    until: Time,
    /// One-way delay, ps. It includes the difference of the two clocks, which is the same for all paths.
    delay: Option<i64>,
    /// Consecutive marked ACKs.
    marks: u16,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Unprobed,
    Available,
    Unavailable,
}

impl Path {
    fn state(&self, now: Time) -> State {
        if now < self.until { self.state } else { State::Unprobed }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    moves: u64,
    copies: u64,
    notices: u64,
    suspended: u64,
}

/// Sending part of the scheme, in the NIC.
#[derive(Clone, Debug)]
pub struct Dlbf {
    paths: Vec<Path>,
    /// Current path; `None` before the first packet.
    current: Option<u16>,
    una: u64,
    /// Time and path of the latest transmission of every packet from `una` on.
    sent: VecDeque<(Time, u16)>,
    asides: VecDeque<AsideKind>,
    /// True while the receiver holds too many packets for notifications.
    crowded: bool,
    key: Key,
    drawn: u64,
    unavailable: Time,
    available: Time,
    config: Config,
    counters: Counters,
}

impl Dlbf {
    /// A random path in this state.
    fn any(&mut self, state: State, now: Time) -> Option<u16> {
        let count = self.paths.iter().filter(|p| p.state(now) == state).count();
        if count == 0 {
            return None;
        }
        self.drawn += 1;
        let pick = below(self.key.draw(self.drawn), count);
        let mut of_state = (0..).zip(&self.paths).filter(|(_, p)| p.state(now) == state);
        of_state.nth(pick).map(|(i, _)| i)
    }

    /// Path to take, in strict order of preference: the old one unless it is unavailable, an available one, an unprobed
    /// one, the old one.
    fn choose(&mut self, now: Time) -> u16 {
        let old = self.current;
        if let Some(old) = old
            && (self.paths[usize::from(old)].state(now) != State::Unavailable || !self.config.switching)
        {
            return old;
        }
        let new = self.any(State::Available, now).or_else(|| self.any(State::Unprobed, now));
        new.or(old).unwrap_or_default()
    }

    /// Leaves path `old` if there is a better one, and hides the move from the receiver.
    fn leave(&mut self, now: Time, old: u16) {
        let new = self.choose(now);
        if new == old {
            return;
        }
        self.current = Some(new);
        self.counters.moves += 1;
        self.asides.clear(); // they belong to an earlier move
        let probed = self.paths[usize::from(new)].state(now) == State::Available;
        if !probed && self.config.notifications {
            if !self.crowded {
                return self.notify(new);
            }
            self.counters.suspended += 1;
        }
        let expected = if probed {
            self.paths[usize::from(new)].delay
        } else if self.config.notifications {
            // Notifications are suspended, and the delay of the new path is unknown: assume the shortest
            // known delay. Our choice; the paper says only that duplicates replace notifications.
            self.paths.iter().filter_map(|p| p.delay).min()
        } else {
            None
        };
        if let (Some(fast), true) = (expected, self.config.duplicates) {
            self.duplicate(now, new, fast);
        }
    }

    /// Queues copies, in order, of the packets that a packet sent now on path `new` with delay `fast` would overtake.
    fn duplicate(&mut self, now: Time, new: u16, fast: i64) {
        let overtaken = |&(at, path): &(Time, u16)| {
            let lead = self.paths[usize::from(path)].delay.map(|slow| slow - fast);
            path != new && lead.is_some_and(|lead| ((now.ps() - at.ps()) as i64) < lead)
        };
        let of = (self.una..).zip(&self.sent).filter(|(_, sent)| overtaken(sent)).map(|(seq, _)| seq);
        self.asides.extend(of.take(usize::from(self.config.most_duplicates)).map(AsideKind::Copy));
    }

    /// Queues a notification that names the packets in flight on other paths than `new`.
    fn notify(&mut self, new: u16) {
        let mut in_flight =
            (self.una..).zip(&self.sent).filter(|(_, (_, path))| *path != new).map(|(seq, _)| seq);
        let Some(first) = in_flight.next() else { return };
        let last = in_flight.last().unwrap_or(first);
        let count = (last - first + 1).min(u64::from(u16::MAX)) as u16;
        self.asides.push_back(AsideKind::Notice(Notice { first: Psn::from_seq(first), count }));
    }
}

impl model::Steering for Dlbf {
    type Annex = Stamp;

    fn on_send(&mut self, now: Time, Sent { seq, .. }: Sent) -> Stamp {
        // A flow moves only when a mark comes back.
        let path = self.current.unwrap_or_else(|| self.choose(now));
        self.current = Some(path);
        let at = (seq - self.una) as usize;
        if at < self.sent.len() {
            self.sent[at] = (now, path);
        } else {
            self.sent.push_back((now, path));
        }
        Stamp::new(path, now)
    }

    fn on_reply(&mut self, now: Time, una: u64, annex: &Stamp, _room: Room<'_>) -> u32 {
        let acked = ((una - self.una) as usize).min(self.sent.len());
        self.sent.drain(..acked);
        self.una = una;
        self.crowded = annex.crowded();
        let entropy = annex.entropy();
        let Some(path) = self.paths.get_mut(usize::from(entropy)) else { return 0 };
        let (weight, new) = (self.config.delay_weight, annex.delay());
        path.delay = Some(match path.delay {
            Some(old) if weight < 1.0 => old + ((new - old) as f64 * weight) as i64,
            _ => new,
        });
        if !annex.marked() {
            path.marks = 0;
            if self.config.recovers || path.state(now) != State::Unavailable {
                (path.state, path.until) = (State::Available, later(now, self.available));
            }
            return 0;
        }
        path.marks = path.marks.saturating_add(1);
        if path.marks >= self.config.marks {
            (path.state, path.until) = (State::Unavailable, later(now, self.unavailable));
            if self.current == Some(entropy) {
                self.leave(now, entropy);
            }
        }
        0
    }

    fn has_aside(&self) -> bool {
        !self.asides.is_empty()
    }

    fn aside(&mut self, now: Time) -> Option<Aside<Stamp>> {
        let path = self.current?;
        let stamp = Stamp::new(path, now);
        while let Some(kind) = self.asides.pop_front() {
            match kind {
                AsideKind::Copy(seq) if seq < self.una => {} // the packet is acknowledged meanwhile
                AsideKind::Copy(seq) => {
                    if let Some(sent) = self.sent.get_mut((seq - self.una) as usize) {
                        *sent = (now, path);
                    }
                    self.counters.copies += 1;
                    return Some(Aside { kind, annex: stamp.copy() });
                }
                AsideKind::Notice(notice)
                    if notice.first.distance_from(Psn::from_seq(self.una)) + i32::from(notice.count) <= 0 => {
                }
                AsideKind::Probe => {}
                AsideKind::Notice(notice) => {
                    self.counters.notices += 1;
                    return Some(Aside { kind, annex: stamp.with_notice(notice) });
                }
            }
        }
        None
    }

    fn counters(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("path_moves", self.counters.moves);
        sink("duplicates_sent", self.counters.copies);
        sink("notifications_sent", self.counters.notices);
        sink("notifications_suspended", self.counters.suspended);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::leaf_spine;
    use model::Dialogue as _;
    use model::transport::Telling;
    use model::{QpId, Steering as _};

    fn us(n: u64) -> Time {
        Time::from_us(n)
    }

    fn dlbf(config: Config) -> Dlbf {
        let config = Config { unavailable: Some(us(30)), available: Some(us(30)), ..config };
        config.steer(QpSite { plan: &leaf_spine(2, 4, 1), qp: QpId(0) })
    }

    fn send(d: &mut Dlbf, at: Time, seq: u64) -> u16 {
        d.on_send(at, Sent { seq, again: false, left: 0, frame: 1500 }).entropy()
    }

    /// The ACK of a packet that took `delay` on `path`; the receiver's clock is `ahead` of the sender's.
    fn ack(d: &mut Dlbf, at: Time, una: u64, path: u16, delay: Time, marked: bool, ahead: Time) {
        let sent = Stamp::new(path, us(1));
        let reply = sent.answer(us(1) + delay + ahead, marked, Telling::default);
        d.on_reply(at, una, &reply, &mut || 0);
    }

    fn asides(d: &mut Dlbf, at: Time) -> Vec<AsideKind> {
        std::iter::from_fn(|| d.aside(at)).map(|a| a.kind).collect()
    }

    /// A flow on a path with a delay of 10 us at 113 us, when `una` is 4. Packets 4 to 13 were sent 1 us apart, the last
    /// one just now. Another path has the known delay `other`.
    fn in_flight(config: Config, other: Time, ahead: Time) -> (Dlbf, u16) {
        let mut d = dlbf(config);
        let old = send(&mut d, us(100), 0);
        let new = (old + 1) % 4;
        for seq in 1..4 {
            send(&mut d, us(100), seq);
        }
        ack(&mut d, us(101), 4, new, other, false, ahead);
        for seq in 4..14 {
            send(&mut d, us(100 + seq), seq);
        }
        ack(&mut d, us(113), 4, old, us(10), true, ahead);
        (d, old)
    }

    #[test]
    fn a_flow_keeps_its_path_until_a_mark_comes_back() {
        let mut d = dlbf(Config::default());
        let path = send(&mut d, us(100), 0);
        for seq in 1..20 {
            assert_eq!(send(&mut d, us(100 + seq), seq), path);
            ack(&mut d, us(100 + seq), seq, path, us(3), false, us(0));
        }
        ack(&mut d, us(120), 20, path, us(3), true, us(0));
        assert_ne!(send(&mut d, us(121), 20), path);
    }

    #[test]
    fn packets_that_the_faster_path_would_overtake_are_duplicated() {
        // 10 us against 7 us: packets sent less than 3 us ago are overtaken, which are those of 111, 112 and 113 us.
        for ahead in [us(0), us(5_000)] {
            let (mut d, old) = in_flight(Config::default(), us(7), ahead);
            assert_eq!(
                asides(&mut d, us(113)),
                [AsideKind::Copy(11), AsideKind::Copy(12), AsideKind::Copy(13)]
            );
            assert_ne!(send(&mut d, us(114), 14), old);
        }
    }

    #[test]
    fn a_slower_path_needs_no_duplicates() {
        for other in [us(10), us(12)] {
            let (mut d, _) = in_flight(Config::default(), other, us(0));
            assert_eq!((d.counters.moves, asides(&mut d, us(113))), (1, vec![]));
        }
    }

    #[test]
    fn an_unprobed_path_gets_a_notification() {
        let mut d = dlbf(Config::default());
        let old = send(&mut d, us(100), 0);
        for seq in 1..10 {
            send(&mut d, us(100 + seq), seq);
        }
        ack(&mut d, us(110), 3, old, us(10), true, us(0));
        let notice = Notice { first: Psn::new(3), count: 7 };
        assert_eq!(asides(&mut d, us(110)), [AsideKind::Notice(notice)]);
    }

    #[test]
    fn a_notification_names_no_packets_of_the_path_that_the_flow_moves_to() {
        let mut d = dlbf(Config { ports: 2, ..Config::default() });
        let first = send(&mut d, us(100), 0);
        for seq in 1..5 {
            send(&mut d, us(100), seq);
        }
        ack(&mut d, us(101), 1, first, us(10), true, us(0));
        let notice = Notice { first: Psn::new(1), count: 4 };
        assert_eq!(asides(&mut d, us(101)), [AsideKind::Notice(notice)]);
        let second = send(&mut d, us(101), 5);
        for seq in 6..8 {
            send(&mut d, us(101), seq);
        }
        // After 30 us the flow has forgotten the first path's marks. The second path marks now, so the flow moves back.
        // The packets on the first path stay ahead of all new ones.
        ack(&mut d, us(140), 2, second, us(10), true, us(0));
        let notice = Notice { first: Psn::new(5), count: 3 };
        assert_eq!(asides(&mut d, us(140)), [AsideKind::Notice(notice)]);
        assert_eq!(send(&mut d, us(141), 8), first);
    }

    #[test]
    fn a_crowded_receiver_gets_duplicates_instead() {
        let mut d = dlbf(Config::default());
        let old = send(&mut d, us(100), 0);
        for seq in 1..10 {
            send(&mut d, us(100 + seq), seq);
        }
        ack(&mut d, us(103), 2, old, us(8), false, us(0));
        let sent = Stamp::new(old, us(1));
        let crowded = || Telling { crowded: true, ..Telling::default() };
        d.on_reply(us(110), 3, &sent.answer(us(1) + us(10), true, crowded), &mut || 0);
        // The shortest known delay was 8 us and is now 10 us, so no path is known to be faster.
        assert_eq!((d.counters.suspended, asides(&mut d, us(110))), (1, vec![]));
    }

    #[test]
    fn a_flow_without_a_better_path_stays() {
        let mut d = dlbf(Config { ports: 2, ..Config::default() });
        let path = send(&mut d, us(100), 0);
        for p in [1 - path, path] {
            ack(&mut d, us(101), 0, p, us(3), true, us(0));
        }
        assert_eq!(send(&mut d, us(102), 1), path);
        // Both marks arrived at the same time, so the states expire together.
        assert_eq!(d.counters.moves, 0);
    }

    #[test]
    fn each_mechanism_can_be_switched_off() {
        let off = |config| asides(&mut in_flight(config, us(7), us(0)).0, us(113));
        assert_eq!(off(Config { duplicates: false, ..Config::default() }), []);
        assert_eq!(off(Config { switching: false, ..Config::default() }), []);
        assert_eq!(
            off(Config { most_duplicates: 2, ..Config::default() }),
            [AsideKind::Copy(11), AsideKind::Copy(12)]
        );
        let mut d = dlbf(Config { notifications: false, ..Config::default() });
        let old = send(&mut d, us(100), 0);
        send(&mut d, us(100), 1);
        ack(&mut d, us(101), 1, old, us(10), true, us(0));
        assert_eq!((d.counters.moves, asides(&mut d, us(101))), (1, vec![]));
    }

    #[test]
    fn packets_acknowledged_meanwhile_are_not_duplicated() {
        let (mut d, old) = in_flight(Config::default(), us(7), us(0));
        ack(&mut d, us(114), 13, old, us(10), false, us(0));
        assert_eq!(asides(&mut d, us(114)), [AsideKind::Copy(13)]);
    }
}
