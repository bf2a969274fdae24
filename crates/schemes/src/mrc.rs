//! Paths of Multipath Reliable Connection (MRC; OCP specification 1.0 and the authors' reports of 2026), in the sending NIC.
//!
//! A queue pair has a ring of active entropies, equally many per plane, and spare ones beside. Every packet walks on along
//! the ring to the next good entropy whose port is free. What the answers report moves an entropy through its states:
//!
//! | report | effect |
//! |---|---|
//! | mark, or a packet cut before the last hop | *skip*: the next packet that passes the entropy restores it without using it; a packet restores one at most |
//! | packet cut by the receiver's own switch | none |
//! | packet lost without a report | *bad*: a spare entropy of the same plane takes its place in the ring at once |
//! | probe answered without a mark | after some such answers in a row the bad entropy is a spare again |
//!
//! A controller may deny planes for a time (`denied`). Their entropies keep their places, and get no packets and no probes.
//!
//! A plane whose port is down at one of the ends gets no packets; its losses leave the entropies as they are. Once the port is up
//! again, bad entropies of the plane are good again, too.
//!
//! A plane without spares gives the place to another entropy of its ring, so that planes keep equal shares. A plane whose
//! entropies are all bad leaves the ring until a probe is answered. Probes of bad entropies are control packets. The
//! interval between them doubles, and a queue pair without packets in flight sends none.

use crate::entropies::{Entropies, Mapping};
use crate::entropy_bitmap::Verdict;
use crate::{Facts, Golden, Recipe, Steers, palette::Look};
use finding::{Finding, code};
use model::draw::Key;
use model::steering::{Aside, AsideKind, Room, Sent};
use model::{Plan, PortChoice, QpSite, Site, Stamp, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// `[scheme.mrc]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "SchemeMrc")]
pub struct Config {
    /// Active entropies of a queue pair: a multiple of the planes, up to 4096. Default 128 (MRC: 128 to 256).
    pub entropies: u16,
    /// Spare entropies of each plane, up to 256. Default 16 (our choice; MRC gives no number).
    pub spares: u16,
    /// Time from a loss to the first probe of its entropy. Default 100 us (our choice; MRC gives no time).
    pub first_probe: Time,
    /// Largest interval between probes of an entropy. Default 10 ms (our choice).
    pub last_probe: Time,
    /// Clean answers in a row that make a bad entropy a spare again. Default 3 (our choice).
    pub clean_answers: u8,
    /// Planes that a controller denies for a time: packets take the other planes. Default: none.
    pub denied: Vec<Denied>,
}

/// A plane that a controller denies, and for how long. MRC denies single entropies; a plane is what an operator takes out of
/// service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Denied {
    /// Number of the plane, from 0.
    pub plane: u16,
    /// Start, by the time of the run. Default 0 (our choice).
    #[serde(default)]
    pub at: Time,
    /// End. Default: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
}

impl Denied {
    fn covers(&self, now: Time) -> bool {
        self.at <= now && self.until.is_none_or(|until| now < until)
    }
}

/// What is wrong with a list of denied planes.
fn refusal(denied: &[Denied], planes: u16) -> Option<String> {
    for (i, Denied { plane, at, until }) in denied.iter().enumerate() {
        if *plane >= planes {
            return Some(format!("entry {i}: expected a plane from 0 to {}, found {plane}", planes - 1));
        }
        if until.is_some_and(|until| until <= *at) {
            return Some(format!("entry {i}: expected `until` after `at`"));
        }
    }
    let none_left =
        |now: Time| (0..planes).all(|plane| denied.iter().any(|d| d.plane == plane && d.covers(now)));
    let all = denied.iter().any(|denied| none_left(denied.at));
    all.then(|| "expected a plane that is not denied at any time, found none".to_owned())
}

impl Default for Config {
    fn default() -> Self {
        Config {
            entropies: 128,
            spares: 16,
            first_probe: Time::from_us(100),
            last_probe: Time::from_ms(10),
            clean_answers: 3,
            denied: Vec::new(),
        }
    }
}

/// Most entropies of a queue pair, active or spare. Our choice.
const MOST: usize = 1 << 13;

/// A place in the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    entropy: u16,
    /// Plane of the entropy, which no replacement changes.
    plane: u8,
    state: State,
}

/// State of a place in the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Good,
    Skip,
    /// The plane has no entropy for this place.
    Empty,
}

/// An entropy that has lost a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Bad {
    entropy: u16,
    next_probe: Time,
    interval: Time,
    clean: u8,
}

/// Sending part of the scheme, in the NIC. The first two cache lines have what every packet needs.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Mrc {
    /// Active entropies, planes in turn.
    ring: Vec<Place>,
    cursor: usize,
    /// Entropies of the packets from `una` on, as they were sent last.
    sent: VecDeque<u16>,
    // The second cache line begins here.
    una: u64,
    /// Entropies to probe now.
    due: VecDeque<u16>,
    /// Time of the next probe of an entropy of `bad`; [`Time::NEVER`] without any.
    next_probe: Time,
    /// Planes whose ports are up at both ends, a bit for each.
    usable: u32,
    /// Entropy of the packet that starts now, and whether a probe starts.
    chosen: u16,
    /// Entropies of a plane.
    per_plane: u16,
    probing: bool,
    /// True if the queue pair spreads over ports, so that [`model::Steering::port`] precedes each packet.
    spread: bool,
    /// True if a controller ever denies a plane.
    denies: bool,
    planes: u8,
    bad: Vec<Bad>,
    /// Spare entropies by plane.
    spares: Vec<VecDeque<u16>>,
    config: Config,
    skips: u64,
    replaced: u64,
    probes: u64,
}

impl Mrc {
    /// `planes` is `None` for a queue pair that has one port.
    fn new(key: Key, planes: Option<u16>, config: &Config) -> Self {
        let (spread, planes) = (planes.is_some(), planes.unwrap_or(1));
        let active = (config.entropies / planes).max(1);
        let per_plane = active + config.spares;
        // Our choice: the order within a plane is that of keyed draws, and planes take turns.
        let mut orders: Vec<VecDeque<u16>> = (0..planes)
            .map(|plane| {
                let mut order: Vec<u16> = (plane * per_plane..(plane + 1) * per_plane).collect();
                order.sort_by_cached_key(|entropy| key.draw((*entropy).into()));
                order.into()
            })
            .collect();
        let mut ring = Vec::with_capacity(usize::from(active * planes));
        for _ in 0..active {
            let entropies = orders.iter_mut().filter_map(VecDeque::pop_front);
            ring.extend((0..).zip(entropies).map(|(plane, entropy)| Place {
                entropy,
                plane,
                state: State::Good,
            }));
        }
        Mrc {
            ring,
            cursor: 0,
            spares: orders,
            bad: Vec::new(),
            due: VecDeque::new(),
            sent: VecDeque::new(),
            una: 0,
            chosen: 0,
            probing: !spread,
            per_plane,
            usable: u32::MAX,
            spread,
            denies: !config.denied.is_empty(),
            planes: planes as u8,
            next_probe: Time::NEVER,
            config: config.clone(),
            skips: 0,
            replaced: 0,
            probes: 0,
        }
    }

    fn plane(&self, entropy: u16) -> usize {
        usize::from(entropy / self.per_plane)
    }

    /// True if an entropy leads through one of these ports.
    fn leads(&self, entropy: u16, ports: u32) -> bool {
        ports >> self.plane(entropy) & 1 != 0
    }

    /// Those of these ports whose planes are not denied.
    fn allowed(&self, now: Time, ports: u32) -> u32 {
        if !self.denies {
            return ports;
        }
        let denied = self.config.denied.iter().filter(|denied| denied.covers(now));
        denied.fold(ports, |ports, denied| ports & !(1 << denied.plane))
    }

    /// The next entropy that leads through one of these ports.
    fn pick(&mut self, ports: u32) -> Option<u16> {
        let mut restored = None;
        for _ in 0..self.ring.len() {
            let at = self.cursor;
            self.cursor = if at + 1 < self.ring.len() { at + 1 } else { 0 };
            let Place { entropy, plane, state } = self.ring[at];
            match state {
                State::Good if ports >> plane & 1 != 0 => return Some(entropy),
                State::Skip if restored.is_none() => {
                    self.ring[at].state = State::Good;
                    restored = Some(entropy);
                }
                State::Good | State::Skip | State::Empty => {}
            }
        }
        // Without a good entropy the packet takes the one just restored, else another that was to be passed over. With
        // the whole ring bad it takes any, and finds out whether its path is back.
        let empty = self.ring.iter().all(|place| place.state == State::Empty);
        let any = || {
            let may = |place: &&Place| place.state != State::Empty || empty;
            self.ring
                .iter()
                .filter(may)
                .map(|place| place.entropy)
                .find(|entropy| self.leads(*entropy, ports))
        };
        restored.filter(|entropy| self.leads(*entropy, ports)).or_else(any)
    }

    /// Notes what the answer to a packet of this entropy reports.
    fn judge(&mut self, entropy: u16, verdict: Verdict) {
        if verdict == Verdict::Good {
            return;
        }
        // Planes take turns in the ring.
        let (plane, planes) = (self.plane(entropy), usize::from(self.planes));
        let mut places = self.ring.iter_mut().skip(plane).step_by(planes);
        if let Some(place) = places.find(|place| place.entropy == entropy && place.state == State::Good) {
            place.state = State::Skip;
            self.skips += 1;
        }
    }

    /// Replaces an entropy that has lost a packet.
    fn replace(&mut self, now: Time, entropy: u16) {
        let plane = self.plane(entropy);
        if !self.ring.iter().any(|place| place.entropy == entropy && place.state != State::Empty) {
            return;
        }
        self.replaced += 1;
        let interval = self.config.first_probe;
        self.bad.push(Bad { entropy, next_probe: now + interval, interval, clean: 0 });
        self.plan_probe();
        for at in 0..self.ring.len() {
            if self.ring[at].entropy == entropy {
                let other = self.spares[plane].pop_front().or_else(|| self.lends(plane, at));
                let place = &mut self.ring[at];
                (place.entropy, place.state) = match other {
                    Some(entropy) => (entropy, State::Good),
                    None => (entropy, State::Empty),
                };
            }
        }
    }

    /// An entropy of the plane that takes another place of the ring, too: the next one after that place.
    fn lends(&self, plane: usize, at: usize) -> Option<u16> {
        let (before, after) = self.ring.split_at(at);
        let taken = after[0].entropy;
        let usable = |place: &&Place| {
            place.state != State::Empty && place.entropy != taken && self.plane(place.entropy) == plane
        };
        after.iter().chain(before).find(usable).map(|place| place.entropy)
    }

    /// Finds the time of the next probe, after a change of the bad entropies.
    fn plan_probe(&mut self) {
        self.next_probe = self.bad.iter().map(|bad| bad.next_probe).min().unwrap_or(Time::NEVER);
    }

    /// Ends the time of a bad entropy.
    fn restore(&mut self, entropy: u16) {
        self.bad.retain(|bad| bad.entropy != entropy);
        self.plan_probe();
        self.due.retain(|due| *due != entropy);
        self.welcome(entropy);
    }

    /// Takes an entropy back whose path works again.
    fn welcome(&mut self, entropy: u16) {
        let plane = self.plane(entropy);
        let mut filled = false;
        for at in 0..self.ring.len() {
            if self.ring[at].state == State::Empty && self.plane(self.ring[at].entropy) == plane {
                self.ring[at] = Place { entropy, state: State::Good, ..self.ring[at] };
                filled = true;
            }
        }
        if filled {
            return;
        }
        // A place that another entropy holds beside its own comes first.
        let lent = |at: &usize| {
            let place = self.ring[*at];
            self.plane(place.entropy) == plane
                && self.ring[..*at].iter().any(|earlier| earlier.entropy == place.entropy)
        };
        match (0..self.ring.len()).find(lent) {
            Some(at) => self.ring[at].entropy = entropy,
            None => self.spares[plane].push_back(entropy),
        }
    }
}

impl Recipe for Config {
    type Scheme = Entropies;
    const LOOK: Option<Look> = Some(Look::new(3, 1));
    const TRIALS: &'static [&'static str] = &[
        "entropies = 12\nspares = 2\nfirst-probe = \"20us\"",
        "entropies = 6\nspares = 1\nfirst-probe = \"5us\"\nlast-probe = \"20us\"\nclean-answers = 1",
    ];
    const GOLDEN: Golden = Golden::None;

    fn facts(&self) -> Facts {
        Facts::plain(true)
    }

    fn build(&self, site: Site<'_>) -> Entropies {
        Entropies::new(Mapping::Hash, site)
    }

    fn validate(&self, plan: &Plan) -> Result<Vec<Finding>, Finding> {
        let spread = planes(plan);
        let planes = spread.unwrap_or(1);
        if self.entropies == 0 || self.entropies > 4096 || !self.entropies.is_multiple_of(planes) {
            let text = format!(
                "expected a multiple of the planes ({planes}) from {planes} to 4096, found {}",
                self.entropies
            );
            return Err(code::FIT.at("entropies", text));
        }
        if self.spares > 256 || usize::from(self.entropies + self.spares * planes) > MOST {
            return Err(code::RANGE.at("spares", format!("expected at most 256, found {}", self.spares)));
        }
        if let Some(text) = refusal(&self.denied, planes) {
            return Err(code::FIT.at("denied", text));
        }
        for (key, time) in [("first-probe", self.first_probe), ("last-probe", self.last_probe)] {
            if time == Time::ZERO {
                return Err(code::RANGE.at(key, "expected a time above 0".to_owned()));
            }
        }
        Ok(match spread.is_some() {
            true => Vec::new(),
            false => vec![code::POOR_MATCH.plain(
                "`mrc` runs over one plane here; `ports-per-nic` and `port-use = \"spread\"` of [server] give it planes",
            )],
        })
    }
}

/// Number of planes over which queue pairs spread, if they do.
fn planes(plan: &Plan) -> Option<u16> {
    let spread = plan.sharing.filter(|sharing| sharing.choice == PortChoice::Spread);
    spread.map(|sharing| sharing.ports)
}

impl Steers for Config {
    type Steering = Mrc;

    fn steer(&self, site: QpSite<'_>) -> Mrc {
        Mrc::new(site.key(), planes(site.plan), self)
    }
}

impl model::Steering for Mrc {
    type Annex = Stamp;

    #[inline]
    fn fetch(&self) {
        let (entropy, place) = (self.sent.front().copied(), self.ring.get(self.cursor).copied());
        std::hint::black_box((entropy, place, self.una));
    }

    fn port(&mut self, now: Time, ports: u32) -> Option<u8> {
        let ports = self.allowed(now, ports);
        if !self.due.is_empty()
            && let Some(place) = self.due.iter().position(|entropy| self.leads(*entropy, ports))
        {
            self.due.swap(0, place);
            self.probing = true;
            return self.due.front().map(|entropy| self.plane(*entropy) as u8);
        }
        self.probing = false;
        self.chosen = self.pick(ports)?;
        Some(self.plane(self.chosen) as u8)
    }

    /// A plane whose ports are up again gets all its entropies back.
    fn on_ports(&mut self, usable: u32) {
        let back = usable & !self.usable;
        self.usable = usable;
        let bad = self.bad.iter().map(|bad| bad.entropy).filter(|entropy| self.leads(*entropy, back));
        bad.collect::<Vec<u16>>().into_iter().for_each(|entropy| self.restore(entropy));
    }

    #[inline]
    fn on_send(&mut self, now: Time, sent: Sent) -> Stamp {
        if !self.spread {
            self.chosen = self.pick(1).unwrap_or(0);
        }
        if self.sent.is_empty() && self.next_probe < now {
            self.bad.iter_mut().for_each(|bad| bad.next_probe = bad.next_probe.max(now));
            self.plan_probe();
        }
        let place = (sent.seq - self.una.min(sent.seq)) as usize;
        if place >= self.sent.len() {
            self.sent.resize(place + 1, 0);
        }
        self.sent[place] = self.chosen;
        Stamp::new(self.chosen, now)
    }

    /// Our choice: a queue pair probes only while packets are unacknowledged, so a run can end.
    fn deadline(&self) -> Time {
        match self.sent.is_empty() {
            true => Time::NEVER,
            false => self.next_probe,
        }
    }

    fn on_deadline(&mut self, now: Time) {
        for bad in self.bad.iter_mut().filter(|bad| bad.next_probe <= now) {
            bad.interval = Time(2 * bad.interval.ps()).min(self.config.last_probe);
            bad.next_probe = now + bad.interval;
            if !self.due.contains(&bad.entropy) {
                self.due.push_back(bad.entropy);
            }
        }
        self.plan_probe();
    }

    fn has_aside(&self) -> bool {
        !self.due.is_empty()
    }

    fn aside(&mut self, now: Time) -> Option<Aside<Stamp>> {
        // The port that was asked for leads to the first entropy, or to none of them.
        let entropy = if self.probing { self.due.pop_front()? } else { return None };
        self.probes += 1;
        Some(Aside { kind: AsideKind::Probe, annex: Stamp::new(entropy, now) })
    }

    fn on_probed(&mut self, _now: Time, annex: &Stamp) {
        let Some(at) = self.bad.iter().position(|bad| bad.entropy == annex.entropy()) else { return };
        let bad = &mut self.bad[at];
        bad.clean = if annex.marked() { 0 } else { bad.clean + 1 };
        if bad.clean >= self.config.clean_answers {
            let entropy = bad.entropy;
            self.restore(entropy);
        }
    }

    fn on_reply(&mut self, _now: Time, una: u64, annex: &Stamp, _room: Room<'_>) -> u32 {
        if una > self.una {
            self.sent.drain(..self.sent.len().min((una - self.una) as usize));
            self.una = una;
        }
        self.judge(annex.entropy(), Verdict::of(annex));
        0
    }

    fn on_lost(&mut self, now: Time, seq: u64) {
        let lost = seq.checked_sub(self.una).and_then(|place| self.sent.get(place as usize)).copied();
        // Packets on a plane whose port is down are lost by its port, and say nothing about its paths.
        if let Some(entropy) = lost.filter(|entropy| self.leads(*entropy, self.usable)) {
            self.replace(now, entropy);
        }
    }

    fn counters(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("entropies_skipped", self.skips);
        sink("entropies_replaced", self.replaced);
        sink("entropies_probed", self.probes);
    }
}

#[cfg(test)]
mod stories;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::leaf_spine;
    use model::{QpId, Steering};

    /// A queue pair with four active entropies and two spares in each of `planes`.
    fn mrc(planes: u16) -> Mrc {
        let plan = leaf_spine(2, 4, 1);
        let config = Config { entropies: 4 * planes, spares: 2, ..Config::default() };
        Mrc::new(QpSite { plan: &plan, qp: QpId(0) }.key(), Some(planes), &config)
    }

    fn sent(mrc: &mut Mrc, seq: u64, ports: u32) -> u16 {
        mrc.port(Time::ZERO, ports).unwrap();
        mrc.on_send(Time::ZERO, Sent { seq, again: false, left: 0, frame: 4000 }).entropy()
    }

    #[test]
    fn planes_carry_equal_shares_and_every_entropy_has_its_turn() {
        let mut mrc = mrc(4);
        let entropies: Vec<u16> = (0..32).map(|seq| sent(&mut mrc, seq, 0b1111)).collect();
        for plane in 0..4 {
            let through = entropies.iter().filter(|entropy| mrc.plane(**entropy) == plane).count();
            assert_eq!(through, 8);
        }
        assert!(
            entropies[..16]
                .iter()
                .all(|entropy| entropies[16..].iter().filter(|e| *e == entropy).count() == 1)
        );
    }

    #[test]
    fn a_packet_leaves_by_a_free_port() {
        let mut mrc = mrc(4);
        for seq in 0..20 {
            let entropy = sent(&mut mrc, seq, 0b0100);
            assert_eq!(mrc.plane(entropy), 2);
        }
        assert_eq!(mrc.port(Time::ZERO, 0), None);
    }

    #[test]
    fn packets_and_probes_pass_over_a_denied_plane_until_the_controller_allows_it() {
        let mut mrc = mrc(2);
        let lost = sent(&mut mrc, 0, 0b10);
        mrc.on_lost(Time::ZERO, 0);
        mrc.on_deadline(mrc.deadline());
        mrc.config.denied =
            vec![Denied { plane: 1, at: Time::from_us(200), until: Some(Time::from_us(300)) }];
        mrc.denies = true;
        assert_eq!(mrc.port(Time::from_us(250), 0b11), Some(0));
        assert_eq!((mrc.aside(Time::from_us(250)), mrc.port(Time::from_us(250), 0b10)), (None, None));
        assert_eq!(mrc.port(Time::from_us(300), 0b11), Some(1));
        assert_eq!(mrc.aside(Time::from_us(300)).map(|aside| aside.annex.entropy()), Some(lost));
    }

    #[test]
    fn denials_must_name_planes_and_leave_one() {
        let refused = |denied: &[Denied]| refusal(denied, 2);
        let always = |plane| Denied { plane, at: Time::ZERO, until: None };
        assert!(refused(&[always(1)]).is_none());
        assert!(refused(&[always(2)]).unwrap().contains("entry 0: expected a plane from 0 to 1, found 2"));
        assert!(refused(&[always(0), always(1)]).unwrap().contains("found none"));
        let empty = Denied { plane: 0, at: Time::from_us(2), until: Some(Time::from_us(2)) };
        assert!(refused(&[empty]).unwrap().contains("`until` after `at`"));
        let in_turn = [
            Denied { plane: 0, at: Time::ZERO, until: Some(Time::from_us(2)) },
            Denied { at: Time::from_us(2), ..always(1) },
        ];
        assert!(refused(&in_turn).is_none());
    }

    #[test]
    fn a_skip_costs_its_entropy_exactly_one_turn() {
        let mut mrc = mrc(1);
        let first: Vec<u16> = (0..4).map(|seq| sent(&mut mrc, seq, 1)).collect();
        mrc.judge(first[2], Verdict::Marked);
        mrc.judge(first[2], Verdict::Cut);
        let next: Vec<u16> = (4..12).map(|seq| sent(&mut mrc, seq, 1)).collect();
        let turns = |entropy: u16| next.iter().filter(|taken| **taken == entropy).count();
        // Eight packets pass nine places of the ring.
        assert_eq!([0, 1, 2, 3].map(|i| turns(first[i])), [3, 2, 1, 2]);
    }

    #[test]
    fn a_loss_replaces_its_entropy_by_a_spare_of_the_same_plane() {
        let mut mrc = mrc(2);
        let lost = sent(&mut mrc, 0, 0b10);
        mrc.on_lost(Time::from_us(7), 0);
        let later: Vec<u16> = (1..17).map(|seq| sent(&mut mrc, seq, 0b11)).collect();
        assert!(!later.contains(&lost));
        assert_eq!(
            later.iter().filter(|entropy| mrc.plane(**entropy) == 1).count(),
            8,
            "the plane keeps its share"
        );
        assert_eq!(mrc.deadline(), Time::from_us(107));
    }

    /// The places of the ring that each of these entropies holds.
    fn places(mrc: &Mrc) -> Vec<usize> {
        let held = |entropy| {
            let mine = |place: &&Place| place.entropy == entropy && place.state != State::Empty;
            mrc.ring.iter().filter(mine).count()
        };
        (0..6).map(held).filter(|places| *places > 0).collect()
    }

    #[test]
    fn without_spares_another_entropy_of_the_plane_takes_the_place_until_a_path_is_back() {
        let mut mrc = mrc(1);
        let first: Vec<u16> = (0..3).map(|seq| sent(&mut mrc, seq, 1)).collect();
        (0..3).for_each(|seq| mrc.on_lost(Time::ZERO, seq));
        assert_eq!((mrc.replaced, mrc.bad.len()), (3, 3));
        let mut held = places(&mrc);
        held.sort_unstable();
        assert_eq!(held, [1, 1, 2], "three good entropies hold four places");
        for _ in 0..3 {
            mrc.on_probed(Time::ZERO, &Stamp::new(first[1], Time::ZERO));
        }
        assert_eq!(places(&mrc), [1, 1, 1, 1]);
    }

    #[test]
    fn a_plane_whose_paths_are_all_bad_leaves_the_ring_until_a_probe_is_answered() {
        let mut mrc = mrc(2);
        let mut seq = 0;
        while mrc.ring.iter().any(|place| place.state != State::Empty && mrc.plane(place.entropy) == 1) {
            sent(&mut mrc, seq, 0b10);
            mrc.on_lost(Time::ZERO, seq);
            seq += 1;
        }
        assert_eq!(seq, 6, "each entropy of the plane has lost a packet");
        assert_eq!(mrc.port(Time::ZERO, 0b10), None);
        assert!((seq..seq + 20).all(|seq| sent(&mut mrc, seq, 0b11) < 6), "all packets take the other plane");
        for _ in 0..3 {
            mrc.on_probed(Time::ZERO, &Stamp::new(9, Time::ZERO));
        }
        let through: Vec<u16> = (30..38).map(|seq| sent(&mut mrc, seq, 0b11)).collect();
        assert_eq!(through.iter().filter(|entropy| **entropy == 9).count(), 4, "{through:?}");
    }

    #[test]
    fn a_port_that_is_down_spares_the_entropies_of_its_plane_and_brings_them_back_with_it() {
        let mut mrc = mrc(2);
        let lost = sent(&mut mrc, 0, 0b10);
        mrc.on_lost(Time::ZERO, 0);
        let late = sent(&mut mrc, 1, 0b10);
        mrc.on_ports(0b01);
        mrc.on_lost(Time::ZERO, 1);
        assert_eq!((mrc.replaced, mrc.bad.len()), (1, 1), "the second loss says nothing about its path");
        assert_eq!((mrc.plane(lost), mrc.plane(late)), (1, 1));
        mrc.on_ports(0b11);
        assert_eq!((mrc.bad.len(), mrc.deadline()), (0, Time::NEVER));
        mrc.on_lost(Time::ZERO, 1);
        assert_eq!(mrc.replaced, 2);
    }

    #[test]
    fn when_every_path_is_bad_packets_try_any() {
        let mut mrc = mrc(1);
        for seq in 0..6 {
            sent(&mut mrc, seq, 1);
            mrc.on_lost(Time::ZERO, seq);
        }
        assert!(mrc.ring.iter().all(|place| place.state == State::Empty));
        assert_eq!(mrc.port(Time::ZERO, 1), Some(0));
    }

    #[test]
    fn probes_come_at_doubling_intervals_and_three_clean_answers_bring_the_entropy_back() {
        let mut mrc = mrc(1);
        let lost = sent(&mut mrc, 0, 1);
        mrc.on_lost(Time::ZERO, 0);
        let mut times = Vec::new();
        for _ in 0..9 {
            let at = mrc.deadline();
            times.push(at.ps() / Time::from_us(100).ps());
            mrc.on_deadline(at);
            assert!(mrc.has_aside());
            assert_eq!(mrc.port(Time::ZERO, 1), Some(0));
            let aside = mrc.aside(at).unwrap();
            assert_eq!((aside.kind, aside.annex.entropy()), (AsideKind::Probe, lost));
        }
        assert_eq!(times, [1, 3, 7, 15, 31, 63, 127, 227, 327]);
        for _ in 0..3 {
            assert_eq!(mrc.spares[0].len(), 1);
            mrc.on_probed(Time::ZERO, &Stamp::new(lost, Time::ZERO));
        }
        assert_eq!((mrc.spares[0].len(), mrc.deadline()), (2, Time::NEVER));
    }

    #[test]
    fn a_queue_pair_probes_only_while_packets_are_in_flight() {
        let mut mrc = mrc(1);
        let lost = sent(&mut mrc, 0, 1);
        mrc.on_lost(Time::ZERO, 0);
        assert_eq!(mrc.deadline(), Time::from_us(100));
        mrc.on_reply(Time::from_us(20), 1, &Stamp::new(lost, Time::ZERO), &mut || 0);
        assert_eq!(mrc.deadline(), Time::NEVER);
        mrc.port(Time::ZERO, 1);
        mrc.on_send(Time::from_us(900), Sent { seq: 1, again: false, left: 0, frame: 4000 });
        assert_eq!(mrc.deadline(), Time::from_us(900));
    }
}
