//! A switch in one window: all its events, in order of time. The order at one instant is: failures and repairs,
//! pause and resume frames, rulings of the watchdog, departures, arrivals, wake-ups.
//!
//! A visit is *light* if the buffer cannot reach any threshold in the window. The engine then computes each port by
//! itself, when an event concerns it and when the window closes, and sums up the buffer at the end.
//!
//! Otherwise the visit is *heavy*. The engine then takes all departures in order of time and keeps every buffer
//! account at every instant, so that pauses and drops get their exact times.
//!
//! A *capped* visit is one of a switch whose classes are not plain, where the caps of queues are all that bounds them. Each
//! port then refuses and cuts packets by itself. So the engine computes its events one by one, but needs no order among the
//! ports, and sums up the buffer at the end.
//!
//! Light visits also take departures in order of time at ports where the scheme watches them.
//!
//! Most light visits need no order among the ports at all: see [`super::local`].

use super::classed::Queues;
use super::decide::{REPLIES, base_path};
use super::lanes::{Pause, bits};
use super::line::{self, place};
use super::local::{self, Floor, LineOf};
use super::order::DepartureOrder;
use super::out::{LinkEvent, LinkEvents, Out, Window};
use super::play::{self, Joining};
use super::port::{LOSSY, PARTLY_PAUSED, Port, TAPPED, TO_HOST, UNCHARGED, WATCHED};
use super::sums::{recount, settle};
use super::tie::Tie;
use crate::books::Lost;
use crate::buffer::{Admission, Caps};
use crate::cells::Place;
use crate::failing::FailureEvent;
use crate::outcome::EventKind;
use crate::setup::LinkState;
use crate::switch::{Arrival, Egress, Switch, may_be_victim};
use crate::view::shown;
use crate::watchdog::Ruling;
use model::fabric::{Detours, Router};
use model::packet::Kinds;
use model::plan::{Overflow, Victim};
use model::scheme::{Arrived, Effects, flow_of, flow_tuple};
use model::{
    Annex, Interest, Kind, NodeId, Packet, Parcel, Parts, PortIndex, Scheme, Stamped, Switched, Time, Verdict,
};

/// Working memory that all switches of a thread use in turn.
#[derive(Debug, Default)]
pub(super) struct Scratch<A: Annex> {
    pub(super) events: LinkEvents,
    /// Arrivals to play, by port; empty between visits.
    joining: Vec<Joining<A>>,
    /// Bytes queued at the ports that the scheme may read now, and those ports.
    queued: Vec<u32>,
    read: Vec<PortIndex>,
    order: DepartureOrder,
    pub(super) effects: Effects,
    /// Lines of capped visits by port, empty between visits, and room to sort them.
    pub(super) lines: Vec<Vec<Parcel<u32>>>,
    pub(super) room: Vec<Parcel<u32>>,
    pub(super) floor: Floor<A>,
}

/// The state of a switch, borrowed from its group for a visit.
pub(super) struct SwitchState<'v, P: Parts> {
    pub(super) node: NodeId,
    pub(super) switch: &'v mut Switch<P>,
    pub(super) ports: &'v mut [Port<P::Annex>],
    /// Queues of all ports, if the plan's classes are not plain. The visit is then heavy or capped.
    pub(super) classed: &'v mut [Queues<P::Annex>],
    /// A bit for every port with a queue.
    pub(super) backlog: &'v mut [u64],
    pub(super) scratch: &'v mut Scratch<P::Annex>,
    pub(super) with_data: Kinds,
    pub(super) line_of: LineOf,
}

impl<'v, P: Parts> SwitchState<'v, P> {
    /// The state that a visit port by port needs.
    pub(super) fn by_port(self) -> local::State<'v, P> {
        let SwitchState { node, switch, ports, backlog, scratch, line_of, .. } = self;
        let Scratch { floor, events, effects, .. } = scratch;
        local::State { node, switch, ports, backlog, floor, events, effects, line_of }
    }
}

/// The visit of one switch in one window.
///
/// A visit keeps exact account of the buffer if it is [`HEAVY`]. With `FOLLOWS`, it records the queues that followed packets
/// meet; runs that follow no queue pair use code without these checks.
pub(super) struct Visit<'v, P: Parts, const WEIGHT: u8, const FOLLOWS: bool> {
    pub(super) node: NodeId,
    pub(super) switch: &'v mut Switch<P>,
    pub(super) ports: &'v mut [Port<P::Annex>],
    pub(super) classed: &'v mut [Queues<P::Annex>],
    pub(super) backlog: &'v mut [u64],
    pub(super) out: Out<'v, P::Annex>,
    pub(super) scratch: &'v mut Scratch<P::Annex>,
    pub(super) router: Router<'v>,
    /// The caps, if the visit is [`CAPPED`].
    pub(super) caps: Caps,
    /// True if routes go by group, or packets can run in circles.
    special_ways: bool,
    pub(super) interest: Interest,
    pub(super) tie: Tie,
    /// Kinds of packets in the class of data.
    with_data: Kinds,
    /// Kinds of packets that take a hashed path unseen, see [`Interest::plain_replies`].
    plain: Kinds,
    /// Earliest time of the next event other than an arrival, ps.
    next_own: u64,
    /// True if the switch has a watchdog of PFC.
    pub(super) guarded: bool,
    /// True if the visit notes all charges for the buffer's ledger, see [`super::ledger`].
    notes: bool,
    /// Time of the last packet that the switch made and that is to be played, ps.
    made_at: u64,
    /// Place of the present event in the order of all, in a visit that notes.
    place: u64,
}

/// Weights of visits: no queue can reach a bound, caps alone bound the queues, or the buffer decides.
pub(super) const LIGHT: u8 = 0;
pub(super) const CAPPED: u8 = 1;
pub(super) const HEAVY: u8 = 2;

/// Flags of ports that even light visits compute event by event. A port has no packets to play when it gets one of
/// these flags.
const IMMEDIATE: u8 = WATCHED | LOSSY | TAPPED | UNCHARGED | PARTLY_PAUSED;

impl<'v, P: Parts, const WEIGHT: u8, const FOLLOWS: bool> Visit<'v, P, WEIGHT, FOLLOWS> {
    const LIGHT: bool = WEIGHT == LIGHT;
    pub(super) const CAPPED: bool = WEIGHT == CAPPED;
    const HEAVY: bool = WEIGHT == HEAVY;

    pub(super) fn new(state: SwitchState<'v, P>, out: Out<'v, P::Annex>) -> Self {
        let SwitchState { node, switch, ports, classed, backlog, scratch, with_data, .. } = state;
        let (router, interest) = (out.setup.router(node, switch.route_change), switch.interest);
        let guarded = switch.watchdog.is_some();
        Visit {
            node,
            switch,
            ports,
            classed,
            backlog,
            scratch,
            router,
            caps: Caps { overflow: Overflow::Drop, least: 0 },
            special_ways: router.is_grouped() || out.setup.has_loops(),
            interest,
            tie: out.setup.tie(node.0, out.window.opened),
            out,
            with_data,
            plain: if interest.plain_replies { REPLIES } else { Kinds::of(&[]) },
            next_own: 0,
            guarded,
            notes: false,
            made_at: u64::MAX,
            place: 0,
        }
    }

    /// This visit, computed as a light one, with all charges noted for the buffer. The ledger must have begun.
    pub(super) fn noting(self) -> Self {
        Visit { notes: true, ..self }
    }

    /// Computes the window with these arrivals, in their order. Returns the time of the switch's next event of its
    /// own, ps.
    pub(super) fn run(mut self, arrivals: &[Parcel<P::Annex>]) -> u64 {
        let Window { opened, close, .. } = self.out.window;
        if self.scratch.joining.len() < self.ports.len() {
            self.scratch.joining.resize_with(self.ports.len(), Joining::default);
            self.scratch.queued.resize(self.ports.len(), 0);
        }
        if Self::HEAVY {
            recount(self.switch, (self.ports, self.classed), self.out.setup);
        }
        if Self::HEAVY || self.interest.watches() {
            self.scratch.order.clear(self.ports.len());
            self.each_backlogged(|visit, p| visit.note_start(p));
        }
        self.look_ahead();
        for &pkt in arrivals {
            let now = opened + pkt.offset() as u64;
            if self.next_own <= now {
                self.catch_up(now + 1, now);
            }
            if self.notes {
                self.place = line::keyed(pkt.label, self.tie).word() & !line::LOW;
            }
            self.forward(now, pkt);
        }
        self.catch_up(close, close);
        self.end()
    }

    /// Computes the rest of the window at each port. Returns the time of the switch's next event of its own, ps.
    fn end(self) -> u64 {
        let close = self.out.window.close;
        self.close_ports(|visit, p| {
            if !Self::HEAVY {
                visit.serve(p, close);
            }
        })
    }

    /// Closes the visit, after `serve` has computed the rest of the window at each port. Returns the time of the switch's next
    /// event of its own, ps.
    #[inline(always)]
    pub(super) fn close_ports(mut self, mut serve: impl FnMut(&mut Self, usize)) -> u64 {
        let (mut next, mut waiting) = (self.switch.wake, 0);
        self.each_backlogged(|visit, p| {
            serve(visit, p);
            next = next.min(visit.ports[p].due);
            waiting += visit.charged(p);
            visit.note_backlog(p);
        });
        if self.notes {
            self.scratch.floor.ledger.show(self.switch, self.ports, &mut self.out, true);
        } else if !Self::HEAVY {
            settle(self.switch, self.ports, waiting, self.out.setup);
        }
        next
    }

    #[inline(always)]
    fn each_backlogged(&mut self, mut act: impl FnMut(&mut Self, usize)) {
        for word in 0..self.backlog.len() {
            for p in bits(self.backlog[word], word << 6) {
                act(self, p);
            }
        }
    }

    /// Time and port of the earliest departure that must be computed in order.
    #[inline(always)]
    fn first_ordered(&self) -> (u64, usize) {
        if Self::CAPPED || Self::LIGHT && !self.interest.watches() {
            return (u64::MAX, 0);
        }
        self.scratch.order.first().map_or((u64::MAX, 0), |(after, p)| (self.out.window.opened + after, p))
    }

    #[inline(always)]
    fn look_ahead(&mut self) {
        // At one instant, wake-ups come after arrivals.
        let wake = self.switch.wake.saturating_add(1);
        self.next_own =
            self.first_ordered().0.min(self.scratch.events.next()).min(wake).min(self.next_ruling());
    }

    /// Time of the watchdog's next ruling, ps. A visit with a ruling or a pause is heavy.
    #[inline(always)]
    fn next_ruling(&self) -> u64 {
        if Self::HEAVY && self.guarded { self.switch.next_ruling() } else { u64::MAX }
    }

    /// Computes all events of the switch's own before `limit`, and wake-ups before `wake_limit`.
    #[inline(never)]
    fn catch_up(&mut self, limit: u64, wake_limit: u64) {
        loop {
            let (due, p) = self.first_ordered();
            let (frame, wake) = (self.scratch.events.next(), self.switch.wake);
            let ruling = self.next_ruling();
            self.next_own = due.min(frame).min(wake.saturating_add(1)).min(ruling);
            if frame < limit && frame <= due && frame <= wake && frame <= ruling {
                self.on_link_event(frame);
            } else if ruling < limit && ruling <= due && ruling <= wake {
                self.on_ruling(ruling);
            } else if due < limit && due <= wake {
                self.depart(p, due);
            } else if wake < wake_limit {
                for p in 0..self.ports.len() {
                    if self.interest.queues || self.ports[p].is(WATCHED) {
                        self.read_queue(p, wake + 1);
                    }
                }
                self.place = line::after_arrivals(wake - self.out.window.opened) & !line::LOW;
                self.switch.woken(wake, &self.scratch.queued, &mut self.scratch.effects);
                self.carry_out(wake);
            } else {
                return;
            }
        }
    }

    #[cold]
    fn on_link_event(&mut self, at: u64) {
        match self.scratch.events.take() {
            Some(LinkEvent::Pause(word)) if word.freed > 0 => self.on_word(word),
            Some(LinkEvent::Pause(Pause { port, channel, on, .. })) => {
                self.on_pause(at, port.0 as usize, channel, on);
            }
            Some(LinkEvent::Failure(FailureEvent::Reset { port, whole })) => {
                let (p, priorities) = (port.0 as usize, self.out.setup.priorities());
                for priority in 0..priorities {
                    if whole && self.switch.pauses(port, priority) {
                        self.out.send_pause(p, &self.ports[p], self.ports[p].busy, at, priority, true);
                    }
                    if whole {
                        // Words may have been lost.
                        self.return_credits(p, priority, at);
                    }
                }
                for priority in 0..priorities {
                    self.on_pause(at, p, priority, false);
                }
            }
            Some(LinkEvent::Failure(FailureEvent::Storm { port, on })) => {
                let (p, setup) = (port.index(), self.out.setup);
                let priorities = if on { setup.lossless_priorities(self.out.gp + p) } else { 0 };
                self.repause(at, p, |port| port.storm(priorities));
            }
            Some(LinkEvent::Failure(FailureEvent::Rate { port, row })) => {
                let p = port.0 as usize;
                self.serve(p, at); // earlier starts have the old rate
                self.ports[p].row = row;
            }
            Some(LinkEvent::Failure(FailureEvent::RouteChange(route_change))) => {
                self.reroute(at, route_change)
            }
            None => {}
        }
    }

    /// Pauses or resumes a channel of port `p`.
    fn on_pause(&mut self, at: u64, p: usize, channel: u8, on: bool) {
        self.serve(p, at); // earlier starts come first
        let news = self.out.paused(p, &mut self.ports[p], at, channel, on);
        self.after_pause(at, p, news && !on);
    }

    /// Takes in credits of a port.
    fn on_word(&mut self, word: Pause) {
        let p = word.port.index();
        self.serve(p, word.at); // earlier starts come first
        let Some(queues) = self.classed.get_mut(p) else { return };
        let changed = self.out.take_word(p, &mut self.ports[p], &mut queues.ledgers, word);
        self.after_pause(word.at, p, changed != 0);
    }

    /// Tells the neighbour at port `p` what was freed of a priority, if this switch grants it credits.
    #[inline(never)]
    fn return_credits(&mut self, p: usize, priority: u8, at: u64) {
        let setup = self.out.setup;
        let Some(grant) = setup.grant(setup.feeding(self.out.gp + p), priority) else { return };
        if let Some(returned) = self.switch.returned(PortIndex(p as u16), priority) {
            let word = returned.word(at, &grant);
            self.out.send_word(p, &self.ports[p], word, priority);
        }
    }

    /// Sets the books right after a packet has become one of another kind.
    #[inline(never)]
    fn rebook(&mut self, before: &Parcel<P::Annex>, pkt: &mut Parcel<P::Annex>, at: u64) {
        if let Some((p, priority)) = self.switch.rebook(self.out.setup, before, pkt) {
            self.return_credits(p, priority, at);
        }
    }

    /// Returns the credits of a packet that this switch does not keep.
    #[cold]
    fn refund(&mut self, pkt: &Parcel<P::Annex>, at: u64) {
        if let Some((p, priority)) = self.switch.refund(self.out.setup, pkt) {
            self.return_credits(p, priority, at);
        }
    }

    /// Lets `change` change the pauses of port `p`.
    #[cold]
    fn repause(&mut self, at: u64, p: usize, change: impl FnOnce(&mut Port<P::Annex>)) {
        self.serve(p, at); // earlier starts come first
        let ((), changed) = self.out.repaused(p, &mut self.ports[p], at, change);
        self.after_pause(at, p, changed & !self.ports[p].paused_channels() != 0);
    }

    /// Tells the watchdog of a change of pauses at port `p`, and starts what waits if it may leave now.
    fn after_pause(&mut self, at: u64, p: usize, resumed: bool) {
        if let Some(dog) = &mut self.switch.watchdog {
            dog.hear(at, p, self.ports[p].asked());
        }
        if self.is_classed() {
            self.schedule_classed(p);
            if resumed && self.ports[p].due <= at {
                self.depart(p, at);
            }
            return self.note_start(p);
        }
        let port = &mut self.ports[p];
        if resumed && port.busy <= at {
            let noted = self.scratch.floor.ledger.len();
            if Self::LIGHT && !port.is(IMMEDIATE) {
                // A waiting packet starts at once, even if another frame of this instant pauses the port again.
                port.busy = at;
                self.serve(p, at + 1);
            } else if port.open() != 0 {
                self.depart(p, at);
            }
            if self.notes {
                self.scratch.floor.ledger.start_at_resume(noted, p, at - self.out.window.opened);
            }
        }
        self.note_start(p);
    }

    /// Lets the watchdog look into the queues, if it polls now.
    fn look(&mut self, at: u64) {
        let Some(mut dog) = self.switch.watchdog.take() else { return };
        dog.look(at, |p, priority| {
            let channels = self.ports[p].channels();
            let of = |pkt| self.switch.priority_out(self.out.setup, pkt, channels) == Some(priority);
            self.classed.get(p).is_some_and(|queues| queues.queued().any(of))
        });
        self.switch.watchdog = Some(dog);
    }

    /// Carries out a ruling of the watchdog.
    #[cold]
    fn on_ruling(&mut self, at: u64) {
        self.look(at);
        let Some(ruling) = self.switch.watchdog.as_mut().and_then(|dog| dog.decide(at)) else { return };
        let Ruling { port, priority, stormed, drops } = ruling;
        let p = port.index();
        self.serve(p, at);
        self.out.recorder.rulings.push((at, self.out.gp + p, stormed));
        if stormed && drops {
            while let Some(pkt) = self.take_of(p, priority) {
                self.discard_queued(p, at, &pkt);
            }
        }
        self.repause(at, p, |port| port.deafen(priority, stormed));
    }

    /// Takes the next packet of a paused priority out of its queue at port `p`.
    fn take_of(&mut self, p: usize, priority: u8) -> Option<Parcel<P::Annex>> {
        if !self.is_classed() {
            return self.ports[p].take_of(priority);
        }
        let (setup, channels) = (self.out.setup, self.ports[p].channels());
        let all = setup.plan.classes.all().iter().enumerate().filter(|(_, class)| class.charged);
        let (class, pkt) = all.into_iter().find_map(|class| {
            let pkt = self.classed[p].take_of(class, channels, priority)?;
            Some((class.0, pkt))
        })?;
        if setup.has_data(class) {
            self.ports[p].waiting -= u64::from(pkt.frame());
        }
        Some(pkt)
    }

    /// Releases the buffer of a packet that the watchdog drops at port `p`, and counts it.
    fn discard_queued(&mut self, p: usize, at: u64, pkt: &Parcel<P::Annex>) {
        let setup = self.out.setup;
        if pkt.ingress() != PortIndex::VIRTUAL {
            let (account, from) = (self.switch.account(setup, pkt), pkt.ingress().index());
            let place = Place::new(p, setup.class_in_table(pkt));
            if self.switch.buffer.release(account, pkt.frame().into(), place) {
                let priority = self.switch.priority_of(account);
                self.out.send_pause(from, &self.ports[from], self.ports[from].busy, at, priority, false);
            }
        } else if !self.is_classed() {
            self.switch.uncharged -= u64::from(pkt.frame());
        }
        self.out.links[p].storm_drops += 1;
        self.discard(at, pkt);
    }

    /// Counts a packet that the watchdog drops.
    fn discard(&mut self, at: u64, pkt: &Parcel<P::Annex>) {
        self.out.tally.lost(pkt, Lost::Watchdog);
        self.out.note(at, EventKind::Lost, pkt);
    }

    /// True if the watchdog drops a packet that has just come in, which is then counted.
    #[inline(never)]
    fn discards(&mut self, now: u64, pkt: &Parcel<P::Annex>) -> bool {
        let discards = self.switch.discards_in(self.out.setup, pkt);
        if discards {
            self.out.links[pkt.ingress().index()].storm_drops_in += 1;
            self.discard(now, pkt);
        }
        discards
    }

    /// Changes the routes.
    #[inline(never)]
    fn reroute(&mut self, at: u64, route_change: usize) {
        // The scheme must learn of all earlier departures first.
        (0..self.ports.len()).for_each(|p| self.serve(p, at));
        self.router = self.out.setup.router(self.node, Some(route_change));
        self.switch.rerouted(self.out.setup, self.node, at, route_change, &mut self.scratch.effects);
        self.carry_out(at);
    }

    /// Forwards a packet that has arrived.
    #[inline(always)]
    fn forward(&mut self, now: u64, pkt: Parcel<P::Annex>) {
        if P::Annex::CARRIES && self.special_ways {
            return self.forward_specially(now, pkt);
        }
        self.forward_plainly(now, pkt);
    }

    /// Forwards a packet whose route goes by group, or that may have run in circles.
    #[inline(never)]
    fn forward_specially(&mut self, now: u64, mut pkt: Parcel<P::Annex>) {
        if self.router.is_grouped() {
            return self.forward_by_group(now, pkt);
        }
        if self.out.setup.counts_out(&mut pkt) {
            self.out.tally.lost(&pkt, Lost::Loop);
            self.out.recorder.lost_in_loop(self.out.setup, now, &pkt);
            self.refund(&pkt, now);
            return self.out.note(now, EventKind::Lost, &pkt);
        }
        self.forward_plainly(now, pkt);
    }

    #[inline(always)]
    fn forward_plainly(&mut self, now: u64, pkt: Parcel<P::Annex>) {
        if Self::HEAVY && self.guarded && self.discards(now, &pkt) {
            return;
        }
        let (ports, to_host) = self.router.ports(pkt.to());
        match ports {
            _ if self.plain.take(&pkt) => self.pass_reply(ports, now, pkt),
            [port] if !self.interest.every_packet => self.pass(port.0 as usize, now, pkt),
            _ => self.steer(now, pkt, (ports, to_host), Detours::NONE),
        }
    }

    /// Forwards a packet in a fabric whose routes go by group.
    #[inline(never)]
    fn forward_by_group(&mut self, now: u64, mut pkt: Parcel<P::Annex>) {
        let ingress = pkt.ingress();
        let route = self.router.arrived(pkt.annex.route_state(), ingress);
        pkt.annex.set_route_state(route);
        if Self::HEAVY && self.guarded && self.discards(now, &pkt) {
            return;
        }
        let (ports, to_host) = self.router.onward(route, ingress, pkt.to());
        let starts = self.interest.detours && pkt.is_data() && self.ports[ingress.0 as usize].is(TO_HOST);
        let detours = if starts { self.router.detours(pkt.to()) } else { Detours::default() };
        match ports {
            _ if self.plain.take(&pkt) => self.pass_reply(ports, now, pkt),
            [port] if !self.interest.every_packet && detours.is_empty() => {
                self.pass(port.0 as usize, now, pkt);
            }
            _ => self.steer(now, pkt, (ports, to_host), &detours),
        }
    }

    /// Forwards a reply on the path of its flow, or on that of its own entropy.
    #[inline(always)]
    fn pass_reply(&mut self, ports: &[PortIndex], now: u64, pkt: Parcel<P::Annex>) {
        let port = base_path(self.switch, &pkt, ports);
        if self.interest.every_packet {
            self.switch.scheme.note_reply(Time(now), &pkt, port);
        }
        self.pass(port.0 as usize, now, pkt);
    }

    /// Forwards a packet by the scheme's decision.
    #[inline]
    fn steer(
        &mut self,
        now: u64,
        mut pkt: Parcel<P::Annex>,
        (ports, to_host): (&[PortIndex], bool),
        detours: &Detours<'_>,
    ) {
        let ingress = pkt.ingress();
        let from_host = self.ports[ingress.0 as usize].is(TO_HOST);
        if self.interest.queues && self.switch.scheme.reads_queues(&pkt, ports, detours) {
            self.read_queues((now, from_host), &pkt, ports, detours);
        }
        let arrival = Arrival { now, ingress, from_host, to_host, detours, view: self.out.view };
        let Scratch { queued, effects, .. } = &mut *self.scratch;
        let before = self.out.setup.grants.any().then_some(pkt);
        let verdict = self.switch.judge(arrival, queued, &mut pkt, ports, effects);
        if let Some(before) = before.filter(|before| before.kind() != pkt.kind()) {
            self.rebook(&before, &mut pkt, now);
        }
        match verdict {
            Verdict::Forward(port) if self.scratch.effects.is_empty() => {
                return self.pass(port.0 as usize, now, pkt);
            }
            Verdict::Forward(port) => {
                self.observe(port.0 as usize, now, &pkt);
                // The packet joins its port first, and effects of that step come before the effects of this decision.
                let effects = std::mem::take(&mut self.scratch.effects);
                self.enqueue_now(port.0 as usize, now, pkt, false);
                self.scratch.effects = effects;
            }
            Verdict::Drop => {
                self.out.tally.dropped_by_scheme(&pkt);
                self.refund(&pkt, now);
                if FOLLOWS {
                    self.out.note(now, EventKind::Blocked, &pkt);
                }
            }
            Verdict::Hold => self.hold(now, pkt),
        }
        self.carry_out(now);
    }

    #[cold]
    fn hold(&mut self, now: u64, pkt: Parcel<P::Annex>) {
        if self.notes && self.with_data.take(&pkt) {
            self.scratch.floor.ledger.charge(self.place, &pkt);
        }
        let room = match WEIGHT {
            LIGHT => true,
            CAPPED => self.has_room_to_hold(&pkt),
            _ => self.admit(&pkt, now, None) != Admission::Dropped,
        };
        if !room {
            self.out.tally.lost(&pkt, Lost::Buffer);
            self.refund(&pkt, now);
            self.out.note(now, EventKind::Dropped, &pkt);
        }
        self.switch.hold(room.then_some(pkt));
    }

    /// Queues an arrival at port `p`.
    #[inline(always)]
    fn pass(&mut self, p: usize, now: u64, pkt: Parcel<P::Annex>) {
        self.observe(p, now, &pkt);
        self.enqueue(p, now, pkt);
    }

    /// Records the queue that an arrival meets at port `p`, in runs that follow queue pairs.
    #[inline(always)]
    fn observe(&mut self, p: usize, now: u64, pkt: &Parcel<P::Annex>) {
        if FOLLOWS && pkt.is_data() {
            self.record_hop(p, now, pkt);
        }
    }

    #[inline(never)]
    fn record_hop(&mut self, p: usize, now: u64, pkt: &Parcel<P::Annex>) {
        let setup = self.out.setup;
        if setup.follows(pkt.qp()) && pkt.ingress() != PortIndex::VIRTUAL {
            self.serve(p, now + 1);
            self.out.recorder.hop(setup, self.out.gp + p, pkt, self.queue_of(p, pkt));
        }
    }

    /// Queues a packet at port `p`, mostly to be played later.
    #[inline(always)]
    fn enqueue(&mut self, p: usize, now: u64, pkt: Parcel<P::Annex>) {
        if Self::CAPPED {
            return self.enqueue_capped(p, now, &pkt);
        }
        let port = &mut self.ports[p];
        if Self::HEAVY || port.is(IMMEDIATE) || now == self.made_at {
            return self.enqueue_now(p, now, pkt, false);
        }
        let joining = &mut self.scratch.joining[p];
        let line = if self.with_data.take(&pkt) {
            if self.notes {
                self.scratch.floor.ledger.charge(self.place, &pkt);
            }
            &mut joining.data
        } else if pkt.kind() == Kind::Cnp {
            return self.enqueue_now(p, now, pkt, false);
        } else {
            &mut joining.replies
        };
        if line.is_empty() {
            self.backlog[p >> 6] |= 1 << (p & 63);
        }
        line.push(pkt);
    }

    /// Queues a packet that the switch has made at port `p`. A reply is mostly played later. It has no rank among the arrivals of the
    /// instant, so the port is played before it meets one.
    #[inline(always)]
    fn enqueue_made(&mut self, p: usize, now: u64, pkt: Parcel<P::Annex>) {
        let after = (now - self.out.window.opened) as u32;
        let joining = &mut self.scratch.joining[p];
        let meets_one = joining.data.last().is_some_and(|last| last.offset() == after);
        let is_reply = !self.with_data.take(&pkt) && pkt.kind() != Kind::Cnp;
        if !Self::LIGHT || FOLLOWS || self.notes || !is_reply || meets_one || self.ports[p].is(IMMEDIATE) {
            return self.enqueue_now(p, now, pkt, false);
        }
        self.made_at = now;
        if joining.replies.is_empty() {
            self.backlog[p >> 6] |= 1 << (p & 63);
        }
        joining.replies.push(pkt.arriving(after, PortIndex::VIRTUAL));
    }

    /// Queues or starts a packet at port `p` at once: in a heavy visit, or at a port that needs exact times.
    /// `charged` is true if the buffer has already charged it.
    #[inline(never)]
    pub(super) fn enqueue_now(&mut self, p: usize, now: u64, mut pkt: Parcel<P::Annex>, charged: bool) {
        if Self::CAPPED {
            return match charged {
                true => self.rejoin_capped(p, now, &pkt),
                false => self.enqueue_capped(p, now, &pkt),
            };
        }
        self.serve(p, now + 1);
        if Self::HEAVY
            && self.guarded
            && self.switch.discards_out(self.out.setup, &pkt, (p, self.ports[p].channels()))
        {
            return self.discard_arriving(p, now, &pkt, charged);
        }
        if self.is_classed() {
            return self.enqueue_classed(p, now, pkt, charged);
        }
        let data = self.with_data.take(&pkt);
        let charges = data && pkt.ingress() != PortIndex::VIRTUAL;
        if self.notes && charges && !charged {
            self.scratch.floor.ledger.charge(self.place, &pkt);
        }
        let counts = Self::HEAVY && charges;
        if counts && !charged && !self.has_room(p, now, self.ports[p].waiting, &pkt) {
            return;
        }
        let port = &mut self.ports[p];
        if port.busy <= now && !(data && port.must_wait(&pkt)) {
            if counts {
                self.release(&pkt, p, now);
            }
            let others = P::Annex::CARRIES && data && self.ports[p].waiting > 0;
            if others {
                pkt.label = self.overtake(p, now, pkt.label);
            }
            self.start(p, now, pkt);
            return;
        }
        if port.is_empty() {
            self.backlog[p >> 6] |= 1 << (p & 63);
        }
        if data {
            self.join(p, now, pkt);
        } else {
            port.push_reply(self.out.setup.class(&pkt), pkt);
        }
        self.note_start(p);
    }

    /// Drops a packet that the watchdog keeps out of the queue of port `p`.
    #[cold]
    fn discard_arriving(&mut self, p: usize, now: u64, pkt: &Parcel<P::Annex>, charged: bool) {
        if charged {
            return self.discard_queued(p, now, pkt);
        }
        self.out.links[p].storm_drops += 1;
        self.discard(now, pkt);
    }

    /// Marks data that starts at once although data of paused channels waits at port `p`, if that queue requires it.
    #[cold]
    fn overtake(&mut self, p: usize, now: u64, pkt: Packet) -> Packet {
        let (port, waiting) = (&self.ports[p], self.ports[p].waiting);
        if waiting <= port.unmarked.into() {
            return pkt;
        }
        // The packet joins and leaves the queue at once, so the queue is the same both times.
        let pkt = self.out.mark::<true>(p, now, waiting, pkt);
        self.out.mark::<false>(p, now, waiting, pkt)
    }

    /// Adds data to the queue of port `p`.
    fn join(&mut self, p: usize, now: u64, mut pkt: Parcel<P::Annex>) {
        let port = &mut self.ports[p];
        if port.waiting > port.unmarked.into() {
            pkt.label = self.out.mark::<true>(p, now, port.waiting, pkt.label);
        }
        if pkt.ingress() == PortIndex::VIRTUAL {
            port.set(UNCHARGED, true);
            self.switch.uncharged += pkt.frame() as u64;
        }
        port.push_data(pkt);
    }

    /// Notes the start of a port's next packet, if departures must be computed in order of time.
    #[inline(always)]
    pub(super) fn note_start(&mut self, p: usize) {
        let port = &self.ports[p];
        if Self::HEAVY || Self::LIGHT && port.is(WATCHED) {
            let Window { opened, length, .. } = self.out.window;
            self.scratch.order.set(p, port.due.saturating_sub(opened), length);
            self.next_own = self.next_own.min(port.due);
        }
    }

    /// Starts all packets of port `p` that start before `limit`.
    #[inline(always)]
    fn serve(&mut self, p: usize, limit: u64) {
        let port = &mut self.ports[p];
        if Self::CAPPED && port.due >= limit {
            return;
        } else if Self::CAPPED {
            return self.serve_capped(p, limit);
        }
        if Self::HEAVY || port.is(IMMEDIATE) {
            return self.serve_in_order(p, limit);
        }
        let Scratch { joining, floor, .. } = &mut *self.scratch;
        let joining = (&mut joining[p], self.tie);
        if self.notes {
            play::forward(port, &mut self.out, p, limit, joining, |key, pkt, data| {
                floor.ledger.start(place(key, p), pkt, data, p);
            });
        } else {
            play::forward(port, &mut self.out, p, limit, joining, |_, _, _| {});
        }
    }

    /// Reads the queues that the scheme may need for its decision on a packet that arrives now.
    #[inline]
    fn read_queues(
        &mut self,
        (now, from_host): (u64, bool),
        pkt: &Parcel<P::Annex>,
        ports: &[PortIndex],
        detours: &Detours<'_>,
    ) {
        if !detours.is_empty() {
            return (0..self.ports.len()).for_each(|p| self.read_queue(p, now + 1));
        }
        let mut read = std::mem::take(&mut self.scratch.read);
        read.clear();
        let (key, salt) = self.switch.hash_keys();
        let flow = flow_of(salt, flow_tuple(pkt, pkt.annex.path_entropy(pkt.is_forward())));
        let arrived = Arrived { now: Time(now), ingress: pkt.ingress(), from_host, key, flow };
        self.switch.scheme.queues_read(arrived, pkt, ports, &mut read);
        read.iter().for_each(|port| self.read_queue(port.index(), now + 1));
        self.scratch.read = read;
    }

    /// Starts all packets of port `p` that start before `limit`, and reads its queue for the scheme.
    #[inline(always)]
    fn read_queue(&mut self, p: usize, limit: u64) {
        self.scratch.queued[p] = match self.backlog[p >> 6] >> (p & 63) & 1 {
            0 => 0,
            _ => self.read_backlog(p, limit),
        };
    }

    #[inline(never)]
    fn read_backlog(&mut self, p: usize, limit: u64) -> u32 {
        if self.ports[p].due < limit || !self.scratch.joining[p].is_empty() {
            self.serve(p, limit);
            self.note_backlog(p);
        }
        shown(match self.is_classed() {
            true => self.classed[p].queued_bytes(),
            false => self.ports[p].queued_bytes(),
        })
    }

    /// Clears the bit of port `p` among the ports with a queue if its queue is empty.
    #[inline(always)]
    fn note_backlog(&mut self, p: usize) {
        if self.ports[p].is_empty() && (!self.is_classed() || self.classed[p].is_empty()) {
            self.backlog[p >> 6] &= !(1 << (p & 63));
            self.ports[p].set(UNCHARGED, false);
        }
    }

    #[inline(never)]
    fn serve_in_order(&mut self, p: usize, limit: u64) {
        debug_assert!(self.scratch.joining[p].is_empty(), "arrivals must be played first");
        while self.ports[p].due < limit {
            self.depart(p, self.ports[p].due);
        }
    }

    /// Starts the next packet of port `p` at `at`.
    #[inline(never)]
    fn depart(&mut self, p: usize, at: u64) {
        if self.is_classed() {
            return self.depart_classed(p, at);
        }
        let port = &mut self.ports[p];
        let Some(mut pkt) = port.pop() else { return };
        if self.with_data.take(&pkt) {
            if port.waiting > port.unmarked.into() {
                pkt.label = self.out.mark::<false>(p, at, port.waiting, pkt.label);
            }
            if pkt.ingress() == PortIndex::VIRTUAL {
                self.switch.uncharged -= pkt.frame() as u64;
            } else if Self::HEAVY {
                self.release(&pkt, p, at);
            }
        }
        // The event in which the port is computed has another place.
        let present = self.place;
        if self.notes {
            self.place = place(line::departure(at - self.out.window.opened), p);
        }
        self.start(p, at, pkt);
        self.place = present;
        self.note_start(p);
    }

    /// Puts a packet on the wire of port `p` at `at`; true if it arrives.
    #[inline(always)]
    pub(super) fn start(&mut self, p: usize, at: u64, mut pkt: Parcel<P::Annex>) -> bool {
        if self.interest.departures && pkt.is_data() {
            let port = PortIndex(p as u16);
            self.switch.starting(at, &mut pkt, port, &mut self.scratch.effects);
        }
        if self.notes {
            let data = self.with_data.take(&pkt);
            self.scratch.floor.ledger.start(self.place, &pkt, data, p);
        }
        let queue = if P::Annex::TELEMETRY { self.queue_of(p, &pkt) } else { 0 };
        let port = &mut self.ports[p];
        let sent = port.bytes;
        let hop = self.out.setup.hop::<P::Annex>(self.out.gp + p, port.row);
        let link = LinkState { hop, at, sent, queue };
        self.out.setup.trace(&mut pkt, link, &mut port.meters);
        let arrives = match port.is(LOSSY | TAPPED) {
            true => self.out.launch_special(p, port, at, pkt),
            false => self.out.launch(p, port, at, pkt),
        };
        if self.ports[p].is(WATCHED) && pkt.is_data() {
            if self.interest.host_departures && self.ports[p].is(TO_HOST) {
                let port = PortIndex(p as u16);
                self.switch.departed(at, &pkt, port, &mut self.scratch.effects);
            }
            self.carry_out(at);
        }
        arrives
    }

    /// Carries out the effects that a scheme has requested.
    #[inline(always)]
    fn carry_out(&mut self, now: u64) {
        if !self.scratch.effects.is_empty() {
            self.carry_out_some(now);
        }
    }

    #[cold]
    #[inline(never)]
    fn carry_out_some(&mut self, now: u64) {
        let mut effects = std::mem::take(&mut self.scratch.effects);
        for emitted in effects.emitted.drain(..) {
            let (port, pkt) = self.switch.made(self.out.setup, self.node, emitted);
            self.out.tally.made(&pkt);
            self.out.note(now, EventKind::Made, &pkt);
            self.enqueue_made(port.0 as usize, now, pkt);
        }
        for (handle, port) in effects.released.drain(..) {
            if let Some(pkt) = self.switch.unhold(handle) {
                if Self::HEAVY {
                    self.switch.join(self.out.setup, &pkt, port.index());
                }
                self.enqueue_now(port.0 as usize, now, pkt, true);
            }
        }
        if self.notes && !effects.pauses.is_empty() {
            self.show_notes(now);
        }
        for (port, on) in effects.pauses.drain(..) {
            let p = port.0 as usize;
            for priority in 0..self.out.setup.priorities() {
                if self.switch.set_scheme_pause(port, priority, on) {
                    self.out.send_pause(p, &self.ports[p], self.ports[p].busy, now, priority, on);
                }
            }
        }
        if let Some(at) = effects.wake.take()
            && at.ps() < self.switch.wake
        {
            self.switch.wake = at.ps().max(now + 1);
            self.next_own = self.next_own.min(self.switch.wake + 1);
        }
        if self.scratch.effects.is_empty() {
            self.scratch.effects = effects; // its memory serves the next requests
        }
    }

    /// Shows the buffer all that has happened up to `now`.
    #[cold]
    fn show_notes(&mut self, now: u64) {
        self.each_backlogged(|visit, p| visit.serve(p, now + 1));
        self.scratch.floor.ledger.show(self.switch, self.ports, &mut self.out, false);
    }

    /// Asks for room for a packet that is to join a queue of `queue` bytes at port `p`; false if it does not join, as it is
    /// dropped or cut.
    #[inline(always)]
    pub(super) fn has_room(&mut self, p: usize, now: u64, queue: u64, pkt: &Parcel<P::Annex>) -> bool {
        let (setup, gp) = (self.out.setup, self.out.gp + p);
        let cap = match self.is_classed() && setup.has_own_queues() {
            true => setup.port_settings(setup.class_in_table(pkt), gp).cap.get(),
            false => setup.cap(gp),
        };
        let egress = Egress { queue, cap, place: Some(Place::new(p, setup.class_in_table(pkt))) };
        let admission = self.admit(pkt, now, Some(egress));
        let joins = matches!(admission, Admission::Admitted | Admission::AdmittedPause);
        if !joins {
            self.refuse(p, now, *pkt, admission);
        }
        joins
    }

    /// Asks for room, and sends a pause frame if the buffer requires one.
    fn admit(&mut self, pkt: &Parcel<P::Annex>, now: u64, egress: Option<Egress>) -> Admission {
        let admission = self.switch.admit(self.out.setup, pkt, egress);
        if admission == Admission::AdmittedPause {
            let account = self.switch.account(self.out.setup, pkt);
            let (p, priority) = (pkt.ingress().0 as usize, self.switch.priority_of(account));
            self.out.send_pause(p, &self.ports[p], self.ports[p].busy, now, priority, true);
        }
        admission
    }

    /// Drops or cuts a packet that does not fit into its queue. In place of the arriving packet, a waiting one may be cut.
    #[cold]
    fn refuse(&mut self, p: usize, now: u64, pkt: Parcel<P::Annex>, admission: Admission) {
        let Admission::Cut(rule) = admission else {
            self.out.links[p].drops += 1;
            if let Some(queues) = self.classed.get_mut(p) {
                queues.counts[self.out.setup.class_in_table(&pkt)].drops += 1;
            }
            self.out.tally.lost(&pkt, Lost::Buffer);
            self.refund(&pkt, now);
            return self.out.note(now, EventKind::Dropped, &pkt);
        };
        let setup = self.out.setup;
        let suitable = |waiting: &Parcel<P::Annex>| may_be_victim(waiting, &pkt);
        let waiting = match rule.victim {
            Victim::Even if setup.coin(self.out.gp + p, now) => match self.classed.get_mut(p) {
                None => self.ports[p].take_newest(suitable),
                Some(queues) => queues.take_newest(setup.class_in_table(&pkt), suitable).inspect(|waiting| {
                    self.ports[p].waiting -= u64::from(waiting.frame());
                }),
            },
            _ => None,
        };
        let mut victim = waiting.unwrap_or(pkt);
        let last_hop = self.ports[p].is(TO_HOST);
        self.out.tally.cut(last_hop);
        self.out.note(now, EventKind::Cut, &victim);
        if waiting.is_some() {
            self.switch.replace(setup, &victim, &pkt, p);
            self.enqueue_now(p, now, pkt, true);
        }
        let before = victim;
        victim.label = victim.cut(rule.frame, last_hop);
        if setup.grants.any() {
            self.rebook(&before, &mut victim, now);
        }
        self.enqueue_now(p, now, victim, false);
    }

    /// Releases the buffer of a packet that starts at port `from` at `at`.
    #[inline(always)]
    pub(super) fn release(&mut self, pkt: &Parcel<P::Annex>, from: usize, at: u64) {
        let account = self.switch.account(self.out.setup, pkt);
        let place = Place::new(from, self.out.setup.class_in_table(pkt));
        if self.switch.buffer.release(account, pkt.frame() as u64, place) {
            let p = pkt.ingress().0 as usize;
            if self.out.setup.grants.any() && self.switch.buffer.returned(account).is_some() {
                return self.return_credits(p, self.switch.priority_of(account), at);
            }
            let free = self.out.free_beside(p, &self.ports[p], (from, at), pkt.frame());
            self.out.send_pause(p, &self.ports[p], free, at, self.switch.priority_of(account), false);
        }
    }

    /// Bytes in the queue of port `p` in which such data waits.
    #[inline(always)]
    fn queue_of(&self, p: usize, pkt: &Packet) -> u64 {
        match self.is_classed() {
            true => self.classed[p].bytes(self.out.setup.class_in_table(pkt)),
            false => self.ports[p].waiting,
        }
    }

    /// True if the plan's classes are not plain.
    #[inline(always)]
    fn is_classed(&self) -> bool {
        Self::CAPPED || Self::HEAVY && !self.classed.is_empty()
    }
}
