//! A sender that knows the fate of every packet, and counts the bytes in flight.

use super::age::Ages;
pub(crate) use super::beyond::Beyond;
use super::beyond::{Recovery, Room};
use super::flight::Flight;
use super::map::Map;
use super::messages::Messages;
use super::probe::{FIRST_PROBE, Probe};
use super::rack::{self, Rack};
use super::ring::State;
use super::timer::Timer;
use super::trips::Trips;
use crate::timeout::Timing;
use model::Sender as _;
use model::annex::Sack;
use model::transport::{Departure, Due, Heard, Position, Progress, Reply, Sacked};
use model::{Delivery, Kind, Psn, Time};
use std::sync::Arc;

/// Settings that all senders of a NIC share.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(test, derive(Hash))]
pub struct Rules {
    pub(crate) timing: Timing,
    /// Number of packets from the oldest unacknowledged one on that may have been sent.
    pub(crate) reach: u32,
    /// A packet asks for an ACK if it leaves less than this window, bytes.
    pub(crate) ask_below: u64,
    /// Whether packets are taken for lost when many later ones have arrived.
    pub(crate) infer: Option<Infer>,
}

/// Rule by which packets are taken for lost although no switch reports it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Infer {
    /// Once so much has arrived beyond ePSN. Probes find losses after which nothing arrives.
    Beyond(Beyond),
    /// Once they are so many least round trips old, and a packet that was sent later has arrived.
    Age(u32),
    /// Once they are a round trip and a bit old, and a packet that was sent later has arrived. Probes find lost tails.
    Rack(rack::Rule),
}

#[cfg(test)]
impl std::hash::Hash for Infer {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        match *self {
            Infer::Beyond(Beyond { windows, least }) => (windows.to_bits(), u32::from(least)).hash(state),
            Infer::Age(times) => times.hash(state),
            Infer::Rack(rule) => rule.hash(state),
        }
    }
}

/// The sender of a queue pair, in four cache lines: a host may have thousands of queue pairs and serve another one with every packet.
/// So state that few packets or few queue pairs need stands apart.
#[derive(Clone, Debug)]
#[cfg_attr(test, derive(Hash))]
#[repr(C, align(64))]
pub struct Sender {
    flight: Flight,
    messages: Messages,
    map: Map,
    ages: Ages,
    timer: Timer,
    trips: Trips,
    /// Under [`Infer::Rack`].
    rack: Option<Box<Rack>>,
    /// Under [`Infer::Beyond`].
    recovery: Option<Box<Recovery>>,
    rules: Arc<Rules>,
    probe: Probe,
    /// True if the last packet sent asks for an ACK.
    asks: bool,
}

impl Sender {
    pub(crate) fn new(rules: Arc<Rules>) -> Self {
        Sender {
            flight: Flight::new(),
            messages: Messages::default(),
            map: Map::default(),
            ages: Ages::default(),
            timer: Timer::new(),
            trips: Trips::new(),
            rack: matches!(rules.infer, Some(Infer::Rack(_))).then(|| Box::new(Rack::new())),
            recovery: matches!(rules.infer, Some(Infer::Beyond(_))).then(Box::default),
            rules,
            probe: Probe::new(),
            asks: false,
        }
    }

    /// Notes the longest trip of an idle fabric, if the sender probes when it hears nothing.
    pub(crate) fn expect(&mut self, longest: Time) {
        if self.probes_when_silent() {
            self.trips.expect(longest);
        }
    }

    /// True under [`Infer::Beyond`].
    fn probes_when_silent(&self) -> bool {
        matches!(self.rules.infer, Some(Infer::Beyond(_)))
    }

    /// True under [`Infer::Age`].
    #[inline(always)]
    fn infers_by_age(&self) -> bool {
        matches!(self.rules.infer, Some(Infer::Age(_)))
    }

    /// True during a recovery.
    #[inline(always)]
    fn recovers(&self) -> bool {
        self.recovery.as_ref().is_some_and(|recovery| recovery.is_open(self.flight.ring().una()))
    }

    /// Takes packets for lost by the rule of the NIC; returns their bytes.
    fn infer(&mut self, now: Time, ahead: u16, window: u64) -> u64 {
        match self.rules.infer {
            None => 0,
            Some(Infer::Beyond(rule)) => {
                let room = Room { window, frame: self.messages.full_frame() };
                let recovery = self.recovery.as_mut();
                recovery.map_or(0, |recovery| recovery.infer(&mut self.flight, rule, ahead, room))
            }
            Some(Infer::Age(times)) => {
                let end = self.ages.lost_before(now, self.trips.times(times.into()));
                self.ages.infer(&mut self.flight, end)
            }
            Some(Infer::Rack(_)) => {
                let Some(rack) = &mut self.rack else { return 0 };
                self.ages.infer(&mut self.flight, rack.lost_before(now)) + rack.take_lost()
            }
        }
    }

    /// Sets the time of the next probe after an ACK, and begins a recovery if the ACK answers a probe without delay: what was
    /// sent before is no longer on its way.
    fn plan_probe(&mut self, now: Time, sack: &Sack) {
        if !self.probes_when_silent() {
            return;
        }
        if sack.probe
            && self.probe.answered() < self.trips.prompt()
            && let Some(recovery) = &mut self.recovery
        {
            recovery.begin(&self.flight);
        }
        let patience = match self.messages.unsent() {
            0 => self.trips.prompt(),
            _ => self.trips.times(FIRST_PROBE),
        };
        let open = self.flight.ring().len() > 0 || self.messages.unsent() > 0;
        match open && self.trips.least() != Time::NEVER {
            true => self.probe.plan(now, patience),
            false => self.probe.drop_plan(),
        }
    }

    /// Drops the probe of a sender that its window holds back.
    #[inline]
    fn drop_request(&mut self) {
        if self.probe.at() != Time::NEVER && !self.probes_when_silent() {
            self.probe.drop_plan();
        }
    }

    /// True if a new packet may be sent under some window.
    #[inline]
    fn has_new(&self) -> bool {
        self.messages.unsent() > 0 && self.flight.ring().len() < u64::from(self.rules.reach)
    }

    /// True if a full frame more may be in flight. Packets to send again pass during a recovery.
    #[inline(always)]
    fn fits(&self, window: u64) -> bool {
        if self.recovers() && self.flight.misses() && window > 0 {
            return true;
        }
        self.flight.fits(self.messages.full_frame(), window)
    }

    /// Notes that a packet has arrived.
    fn note_arrival(&mut self, now: Time, seq: u64) {
        let packet = self.flight.arrive(seq);
        if packet.state == State::Flying && self.rules.infer.is_some() {
            // The news may concern an earlier transmission of a packet that was sent again.
            if !packet.again {
                self.trips.sample(Time(now.ps().saturating_sub(packet.at.ps())));
            }
            self.ages.note_arrival(packet.at);
        }
        if packet.state == State::Missing && self.backlog() == 0 {
            self.timer.release();
        }
    }

    /// Notes the packets of a report's map.
    #[inline]
    fn note_map(&mut self, now: Time, sack: &Sack) {
        let ring = self.flight.ring();
        let (first, mut new) = self.map.replace(sack, ring.una(), ring.next());
        while new != 0 {
            self.note_arrival(now, first + u64::from(new.trailing_zeros()));
            new &= new - 1;
        }
    }

    /// The packet in flight whose last transmission is the oldest, and the time of that transmission.
    #[inline]
    fn oldest(&self) -> Option<(Time, u64)> {
        self.ages.oldest(self.flight.ring())
    }

    /// Sets the timer.
    #[inline(never)]
    fn set_timer(&mut self) {
        let oldest = self.oldest().map(|(at, _)| at);
        self.timer.set(&self.rules.timing, oldest);
    }

    /// Finds the oldest packet in flight.
    fn tidy(&mut self) {
        let recovery = self.recovery.as_ref().map_or(0, |recovery| recovery.end());
        self.ages.tidy(self.flight.ring(), recovery);
    }

    /// The packet to send now: its number, and whether it was sent before.
    #[inline(always)]
    fn next(&mut self, now: Time, window: u64) -> Option<(u64, bool)> {
        if !self.ready(window) {
            return None;
        }
        let again = self.flight.misses();
        let seq = match again {
            true => self.repeat(now)?,
            false => {
                let seq = self.flight.ring().next();
                self.flight.launch(now, self.messages.take(seq));
                seq
            }
        };
        if self.timer.due() == Time::NEVER || self.timer.held() != Time::NEVER {
            self.timer.release();
            self.set_timer();
        }
        self.asks = again || self.must_ask(window);
        if self.asks {
            self.probe.note_request(now, seq);
        }
        self.drop_request();
        self.plan_tail(now);
        self.messages.skip_sent(self.flight.ring().next());
        Some((seq, again))
    }

    /// Plans the next probe of the tail under [`Infer::Rack`].
    #[inline(always)]
    fn plan_tail(&mut self, now: Time) {
        if let Some(Infer::Rack(rule)) = self.rules.infer {
            let oldest = self.oldest().map(|(at, _)| at);
            if let Some(rack) = &mut self.rack {
                rack.plan(rule, now, oldest);
            }
        }
    }

    /// Time of the next loss or probe of the tail under [`Infer::Rack`]; [`Time::NEVER`] if none is due.
    #[inline(always)]
    fn silent_at(&self) -> Time {
        self.rack.as_ref().map_or(Time::NEVER, |rack| rack.due())
    }

    /// Takes packets for lost that have come of age without a reply, and probes the tail: its first packet is sent again, which
    /// asks for an ACK. The probe says nothing about the path of that packet.
    #[cold]
    fn on_silence(&mut self, now: Time) {
        let bytes = self.infer(now, 0, 0);
        let ring = self.flight.ring();
        if self.rack.as_mut().is_some_and(|rack| rack.take_probe(now))
            && !self.flight.misses()
            && let Some(seq) = (ring.una()..ring.next()).find(|seq| ring[*seq].state == State::Flying)
        {
            self.flight.give_up(seq);
        }
        self.tidy();
        let oldest = self.oldest().map(|(at, _)| at);
        if let Some(rack) = &mut self.rack {
            rack.note_lost(bytes, oldest);
        }
        self.set_timer();
    }

    /// Sends the first packet that waits to be sent again.
    #[cold]
    fn repeat(&mut self, now: Time) -> Option<u64> {
        let seq = self.flight.repeat(now)?;
        self.ages.note_repeat(now, seq);
        Some(seq)
    }

    /// True if the packet just sent under that window may be the last one for a while.
    #[inline(always)]
    fn must_ask(&self, window: u64) -> bool {
        self.backlog() == 0
            || window.saturating_sub(self.flight.bytes()) < u64::from(self.messages.full_frame())
            || window < self.rules.ask_below
            || self.flight.ring().len() >= u64::from(self.rules.reach)
    }

    #[inline(always)]
    fn on_sack(&mut self, now: Time, reply: Reply, sack: &Sack, window: u64) -> (Progress, Delivery) {
        let (expected, is_nack) = match reply {
            Reply::Ack(psn) => (psn.next(), false),
            Reply::Nack(psn) => (psn, true),
        };
        let una = self.flight.ring().una();
        let acked = u64::try_from(expected.distance_from(Psn::from_seq(una))).unwrap_or(0);
        if acked > self.flight.ring().len() {
            return Default::default(); // the packet was never sent
        }
        let more = self.flight.report(sack.arrived);
        let mut delivery = Delivery { arrived: more, ..Delivery::default() };
        if let Some(recovery) = &mut self.recovery {
            recovery.note_window(window);
        }
        self.drop_request();
        self.sample_trip(now, sack);
        // What has arrived matters for packets that wait to be sent again, and for round trips.
        if self.flight.misses() || self.infers_by_age() {
            (una..una + acked).for_each(|seq| self.note_arrival(now, seq));
        }
        self.flight.acknowledge(acked);
        self.note_map(now, sack);
        if is_nack
            && sack.cut
            && let Some(seq) = self.flight.ring().outstanding(sack.cause)
            && self.flight.ring()[seq].state == State::Flying
        {
            (delivery.cut, delivery.last_hop) = (self.flight.give_up(seq), sack.last_hop);
        }
        if acked > 0 || more > 0 {
            self.timer.progress();
        }
        if !is_nack {
            self.plan_probe(now, sack);
        }
        delivery.lost = self.infer(now, sack.ahead, window);
        self.tidy();
        self.set_timer();
        self.plan_tail(now);
        delivery.flight = self.flight.bytes();
        (delivery.penalty, delivery.restore) = (sack.penalty, sack.restore);
        (Progress { acked, nack: delivery.cut > 0 }, delivery)
    }

    /// Samples the round trip of the packet that caused a report, which is news of its arrival unless packets count by age.
    #[inline(always)]
    fn sample_trip(&mut self, now: Time, sack: &Sack) {
        if !self.infers_by_age()
            && !sack.probe
            && let Some(seq) = self.flight.ring().outstanding(sack.cause)
            && let packet = &self.flight.ring()[seq]
            && !packet.again
        {
            self.trips.sample(Time(now.ps() - packet.at.ps()));
        }
    }

    #[inline(always)]
    fn backlog(&self) -> u64 {
        self.messages.unsent() + self.flight.again()
    }

    /// A probe that is to tell whether the queues on the way are empty waits in those of data. A mere request for an ACK does not.
    fn take_probe(&mut self, now: Time) -> Option<Kind> {
        let kind = if self.probes_when_silent() { Kind::Probe } else { Kind::Control };
        self.probe.take(now, &self.trips).then_some(kind)
    }

    fn on_timeout(&mut self, now: Time) {
        let fired = self.timer.fired();
        if self.oldest().is_none() && self.timer.held() != Time::NEVER {
            self.timer.hold(now);
            self.timer.fire(fired);
        }
        while let Some((at, seq)) = self.oldest()
            && self.rules.timing.deadline(at, fired) <= now
        {
            self.flight.lose(seq);
            self.timer.fire(fired);
            self.tidy();
        }
        self.set_timer();
    }

    /// Starts the timer of a sender that a window of 0 holds back; false if it runs.
    fn hold(&mut self, now: Time) -> bool {
        let starts = self.oldest().is_none() && self.timer.held() == Time::NEVER && self.backlog() > 0;
        if starts {
            self.timer.hold(now);
            self.set_timer();
        }
        starts
    }

    /// Plans a probe, if packets in flight may all have arrived without an ACK: a window that shrinks can hold the sender back
    /// before any of them has asked for one.
    fn request(&mut self, now: Time) -> bool {
        let starts = self.oldest().is_some()
            && self.trips.least() != Time::NEVER
            && self.probe.at() == Time::NEVER
            && !self.probes_when_silent()
            && self.backlog() > 0
            && !self.probe.awaits_ack(self.flight.ring());
        if starts {
            self.probe.plan(now, self.trips.times(FIRST_PROBE));
        }
        starts
    }
}

impl model::Sender for Sender {
    #[inline]
    fn fetch(&self) {
        let counts = (self.flight.bytes(), self.messages.unsent(), self.trips.least(), self.asks);
        std::hint::black_box((self.oldest(), counts, self.position().deadline));
    }

    fn post_message(&mut self, packets: u64, full: u32, last: u32) {
        self.messages.post(packets, full, last, self.flight.ring().next());
    }

    #[inline(always)]
    fn send(&mut self, now: Time, window: u64) -> Option<Departure> {
        let (seq, again) = self.next(now, window)?;
        let Position { deadline, .. } = self.position();
        let (asks, backlog, goes_on) = (self.asks, self.backlog(), self.ready(window));
        Some(Departure { seq, again, asks, backlog, deadline, goes_on, ..Departure::default() })
    }

    #[inline(always)]
    fn ready(&self, window: u64) -> bool {
        (self.has_new() || self.flight.misses()) && self.fits(window)
    }

    fn take_lost(&mut self) -> Option<u64> {
        self.flight.take_lost()
    }

    fn on_held(&mut self, now: Time, window: u64) -> bool {
        match window {
            0 => self.hold(now),
            _ => self.request(now),
        }
    }

    #[inline(always)]
    fn hear(&mut self, now: Time, heard: &Heard) -> (Progress, Delivery) {
        match *heard {
            Heard::Sacked(reply, Sacked { ref sack, trip, assumed, window, .. }) => {
                match (self.rules.infer, &mut self.rack) {
                    _ if sack.probe => self.probe.note_answer(now, trip, assumed, &self.trips),
                    // A NACK that a switch has made tells no time, and its map is empty.
                    (Some(Infer::Rack(rule)), Some(rack)) if *sack != Sack::default() => {
                        rack.note_trip(rule, now, trip);
                    }
                    _ => {}
                }
                self.on_sack(now, reply, sack, window)
            }
            Heard::Reply(reply) | Heard::Named(reply, _) => {
                self.on_sack(now, reply, &Sack::default(), u64::MAX)
            }
            Heard::Returned(_) => Default::default(),
        }
    }

    #[inline]
    fn position(&self) -> Position {
        let ring = self.flight.ring();
        let deadline = self.timer.due().min(self.probe.at()).min(self.silent_at());
        Position { una: ring.una(), high: ring.next(), deadline }
    }

    fn on_deadline(&mut self, now: Time) -> Due {
        let probe = self.take_probe(now);
        if self.silent_at() <= now {
            self.on_silence(now);
        }
        let timeout = self.position().deadline <= now;
        let in_flight = timeout && self.oldest().is_some();
        if timeout {
            self.on_timeout(now);
        }
        Due { probe, timeout, fired: if in_flight { self.timer.fired() } else { 0 } }
    }
}

#[cfg(test)]
mod inference;
#[cfg(test)]
mod stories;
#[cfg(test)]
mod tests;
