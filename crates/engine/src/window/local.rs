//! A visit of a switch whose scheme acts on every port by itself.
//!
//! Such a switch needs no order among its ports. The visit lays each arrival onto a line of the port by which it leaves,
//! puts every line in order, and computes the departures of one port after the other. Where the scheme watches the
//! departures to a host, the replies that come up from this host are shown to the scheme in their places among these
//! departures. So ports to hosts come first, and the replies then join the lines of other ports.

use super::charged::Charging;
use super::departures::{Departures, Left, Lines};
use super::lanes::{Pause, bits};
use super::ledger::Ledger;
use super::line::{self, AT_DEPARTURE, NEVER};
use super::out::{LinkEvent, LinkEvents, Out, Window};
use super::port::{Port, TO_HOST, UNCHARGED, WATCHED};
use super::queue::Queue;
use super::setup::Setup;
use super::shelf::{self, Shelf};
use super::sums::{recount, settle};
use super::tie::Tie;
use super::way::Bound;
use crate::switch::Switch;
use model::draw::{Key, below};
use model::fabric::Router;
use model::scheme::{Acks, Arrived, Effects, Emitted, flow_of, flow_tuple};
use model::{Annex, Kind, NodeId, Packet, Parcel, Parts, PortIndex, Scheme, Switched, Time};

/// Classes of lines: data, replies, CNPs; each port has this many, one of them unused.
const CLASSES: usize = 4;
pub(super) const DATA: usize = 0;
pub(super) const REPLIES: usize = 1;
pub(super) const CNPS: usize = 2;

/// Working memory of these visits.
#[derive(Debug, Default)]
pub(super) struct Floor<A: Annex> {
    /// Lines by port and class; empty between visits.
    lines: Vec<[Line<A::Held>; CLASSES]>,
    /// Annexes of packets on lines that no lane has brought; empty between visits.
    shelf: Vec<Parcel<A>>,
    /// A bit for every port with anything to do; clear between visits.
    busy: Vec<u64>,
    /// NACKs that come up from hosts at watched ports, by port, and ACKs that may matter to the scheme.
    up: Vec<Parcel<A::Held>>,
    acks: Vec<Packet>,
    up_from: Vec<Up>,
    pauses: Vec<Pause>,
    made: Vec<Made>,
    room: Vec<Parcel<A::Held>>,
    sent: Vec<Parcel<A>>,
    charging: Charging,
    pub(super) ledger: Ledger,
}

/// A line of a port, and the number of queued packets at its start. `H` is [`Annex::Held`].
#[derive(Debug, Default)]
pub(super) struct Line<H> {
    pub(super) packets: Vec<Parcel<H>>,
    queued: usize,
}

/// The replies that come up from the host at a port: ranges of [`Floor::up`] and [`Floor::acks`] that end where the next
/// ones start.
#[derive(Clone, Copy, Debug)]
struct Up {
    port: usize,
    start: usize,
    acks: usize,
}

/// A packet that the scheme makes when a packet departs or arrives.
#[derive(Clone, Copy, Debug)]
pub(super) struct Made {
    /// Key of the departure or the arrival.
    pub(super) event: u64,
    pub(super) packet: Packet,
    /// Port by which the packet leaves, and its first word on the line; unknown while watched ports are computed.
    pub(super) to: Option<usize>,
    pub(super) word: u64,
}

/// The line of every kind of packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineOf([u8; 8]);

impl LineOf {
    pub(super) fn new(setup: &Setup<'_>) -> Self {
        let line = |kind| match kind {
            _ if setup.with_data.has(kind) => DATA,
            Kind::Cnp if !setup.cnps_with_acks => CNPS,
            _ => REPLIES,
        };
        let mut lines = [0; 8];
        for kind in Kind::ALL {
            lines[kind as usize] = line(kind) as u8;
        }
        LineOf(lines)
    }

    /// True if other kinds of packets share the line of data.
    fn is_mixed(&self) -> bool {
        Kind::ALL.iter().any(|kind| kind.is_control() && usize::from(self.0[*kind as usize]) == DATA)
    }

    #[inline(always)]
    fn of(&self, pkt: &Packet) -> usize {
        usize::from(self.0[pkt.kind_number() as usize % 8]) % CLASSES
    }
}

/// Lays arrivals onto lines.
pub(super) struct Layer<'v, H> {
    pub(super) lines: &'v mut [[Line<H>; CLASSES]],
    pub(super) busy: &'v mut [u64],
    line_of: &'v LineOf,
    pub(super) tie: Tie,
}

impl<H> Layer<'_, H> {
    #[inline(always)]
    pub(super) fn lay(&mut self, p: usize, pkt: Packet, annex: H) {
        self.lay_keyed(p, Parcel { label: line::keyed(pkt, self.tie), annex });
    }

    /// [`Layer::lay`] for a packet that has its key.
    #[inline(always)]
    pub(super) fn lay_keyed(&mut self, p: usize, pkt: Parcel<H>) {
        let line = &mut self.lines[p][self.line_of.of(&pkt)].packets;
        // A branch would be mispredicted in small visits.
        self.busy[p / 64] |= 1 << (p % 64);
        line.push(pkt);
    }

    #[inline(always)]
    pub(super) fn line(&self, p: usize, class: usize) -> &Line<H> {
        &self.lines[p][class]
    }

    #[inline(always)]
    pub(super) fn line_mut(&mut self, p: usize, class: usize) -> &mut Line<H> {
        &mut self.lines[p][class]
    }
}

/// The ports by which packets leave.
pub(super) struct Ways<'v> {
    router: Router<'v>,
    key: Key,
    salt: u64,
    opened: u64,
    /// [`Interest::by_flow`](model::scheme::Interest::by_flow).
    by_flow: bool,
    /// The last packets of a host, by kind: the data, and the replies of each kind.
    last: [Last<'v>; KINDS],
}

/// Places for the kinds of packets that hosts send: data has one of its own, and all others are replies and control messages.
const KINDS: usize = 4;

/// The ports of a queue pair's packets with one entropy, and their hash.
#[derive(Clone, Copy)]
struct Last<'v> {
    address: u64,
    entropy: u16,
    ports: &'v [PortIndex],
    to_host: bool,
    flow: u64,
}

impl<'v> Ways<'v> {
    pub(super) fn new<P: Parts>(switch: &Switch<P>, router: Router<'v>, opened: u64) -> Self {
        let (key, salt) = switch.hash_keys();
        let none = Last { address: u64::MAX, entropy: 0, ports: &[], to_host: false, flow: 0 };
        Ways { router, key, salt, opened, by_flow: switch.interest.by_flow, last: [none; KINDS] }
    }

    /// The port of an arrival from a switch.
    #[inline(always)]
    pub(super) fn port<S: Scheme, A: Annex>(&self, scheme: &S, pkt: &Parcel<A>) -> usize {
        match self.router.ports(pkt.to()).0 {
            [port] => port.index(),
            ports => {
                let entropy = pkt.annex.path_entropy(pkt.is_forward());
                self.choose(scheme, false, pkt, ports, self.flow(pkt, entropy))
            }
        }
    }

    /// The port of an arrival from a host, and whether it leads to the packet's host. Most packets of a host belong to the
    /// queue pairs of the packets before.
    #[inline(always)]
    pub(super) fn port_from_host<S: Scheme>(
        &mut self,
        scheme: &S,
        pkt: &Packet,
        entropy: u16,
    ) -> (usize, bool) {
        // No host sends signals or headers, so all packets of a place go the same way.
        let last = &mut self.last[pkt.kind_number() as usize % KINDS];
        let elsewhere = last.address != pkt.address();
        if elsewhere {
            last.address = pkt.address();
            (last.ports, last.to_host) = self.router.ports(pkt.to());
        }
        // Senders that choose paths change the entropy with every packet.
        if (elsewhere || last.entropy != entropy) && last.ports.len() > 1 {
            last.entropy = entropy;
            last.flow = flow_of(self.salt, flow_tuple(pkt, entropy));
        }
        let Last { ports, to_host, flow, .. } = *last;
        let port = match ports {
            [port] => port.index(),
            _ => self.choose(scheme, true, pkt, ports, flow),
        };
        (port, to_host)
    }

    #[inline(always)]
    fn flow(&self, pkt: &Packet, entropy: u16) -> u64 {
        flow_of(self.salt, flow_tuple(pkt, entropy))
    }

    #[inline(always)]
    fn choose<S: Scheme>(
        &self,
        scheme: &S,
        from_host: bool,
        pkt: &Packet,
        ports: &[PortIndex],
        flow: u64,
    ) -> usize {
        if self.by_flow {
            return ports[below(flow, ports.len())].index();
        }
        let now = Time(self.opened + u64::from(pkt.offset()));
        let arrived = Arrived { now, ingress: pkt.ingress(), from_host, key: self.key, flow };
        scheme.choose(arrived, pkt, ports).index()
    }
}

/// The state of a switch, borrowed for a visit.
pub(super) struct State<'v, P: Parts> {
    pub(super) node: NodeId,
    pub(super) switch: &'v mut Switch<P>,
    pub(super) ports: &'v mut [Port<P::Annex>],
    /// A bit for every port with a queue.
    pub(super) backlog: &'v mut [u64],
    pub(super) floor: &'v mut Floor<P::Annex>,
    pub(super) events: &'v mut LinkEvents,
    pub(super) effects: &'v mut Effects,
    pub(super) line_of: LineOf,
}

/// The arrivals of a visit: lanes, and all of them in order of time, or none.
type Arrivals<'v, A> = (&'v [Vec<Parcel<A>>], &'v [Parcel<A>]);

/// Computes the window with the arrivals of these lanes; `in_order` are all of them for a scheme that decides by the arrivals
/// alone. The buffer is sampled at `middle`. Returns the time of the switch's next event of its own, ps.
#[inline(never)]
pub(super) fn visit<P: Parts>(
    state: State<'_, P>,
    out: Out<'_, P::Annex>,
    (lanes, in_order): Arrivals<'_, P::Annex>,
    bound: Bound,
    middle: Option<u64>,
) -> u64 {
    let State { node, switch, ports, backlog, floor, events, effects, line_of } = state;
    if let Bound::Buffer = bound {
        recount(switch, (ports, &[]), out.setup);
    }
    let Window { opened, length, .. } = out.window;
    let tie = out.setup.tie(node.0, opened);
    floor.begin(ports, backlog);
    while let Some(LinkEvent::Pause(pause)) = events.take() {
        floor.busy[pause.port.index() / 64] |= 1 << (pause.port.index() % 64);
        floor.pauses.push(pause);
    }
    let Floor { lines, shelf, busy, up, acks, up_from, pauses, made, room, sent, charging, ledger } = floor;
    let mut ways = Ways::new(switch, out.setup.router(node, None), opened);
    let interest = switch.interest;
    let mut play = Play {
        layer: Layer { lines, busy, line_of: &line_of, tie },
        shelf: Shelf::new(lanes, shelf),
        ports,
        out,
        backlog,
        mixed: line_of.is_mixed(),
        room,
        sent,
        made,
        pauses,
        charging,
        ledger,
        sorted: false,
        shift: line::bin_shift(length),
        next: switch.wake,
        bytes: 0,
        middle: middle.map(|at| line::instant(at - opened)),
        bytes_before: 0,
    };
    if !interest.local {
        play.decide(switch, node, in_order, effects);
    }
    for (number, lane) in lanes.iter().enumerate().filter(|_| interest.local) {
        let Some(first) = lane.first() else { continue };
        if interest.announcements {
            lane.iter().for_each(|pkt| switch.scheme.expect(pkt));
        }
        let ingress = first.ingress().index();
        let from_host = play.ports[ingress].is(TO_HOST);
        if from_host && interest.host_departures {
            let start = up.len();
            let quiet = switch.scheme.is_quiet(PortIndex(ingress as u16));
            let acks_start = acks.len();
            play.lay_from_watched(&switch.scheme, &mut ways, (number, lane), quiet, up, acks);
            if up.len() > start || acks.len() > acks_start {
                play.layer.busy[ingress / 64] |= 1 << (ingress % 64);
                up_from.push(Up { port: ingress, start, acks: acks_start });
            }
        } else if from_host {
            for (slot, pkt) in lane.iter().enumerate() {
                let entropy = pkt.annex.path_entropy(pkt.is_forward());
                let p = ways.port_from_host(&switch.scheme, pkt, entropy).0;
                play.layer.lay(p, pkt.label, shelf::in_lane(&pkt.annex, number, slot));
            }
        } else {
            for (slot, pkt) in lane.iter().enumerate() {
                let p = ways.port(&switch.scheme, pkt);
                play.layer.lay(p, pkt.label, shelf::in_lane(&pkt.annex, number, slot));
            }
        }
    }
    if interest.host_departures {
        play.all_watched(switch, &mut ways, (up, acks), up_from);
        up.clear();
        acks.clear();
        up_from.clear();
        if !play.made.is_empty() {
            play.lay_made(switch, node);
        }
    }
    if interest.passes {
        play.pass_all(&mut switch.scheme);
    }
    match bound {
        Bound::Nothing => {}
        Bound::Caps(caps) => play.capped(caps),
        Bound::Buffer if play.charges_apart(switch) => {}
        Bound::Buffer => play.charged(switch),
    }
    for word in 0..play.layer.busy.len() {
        for p in bits(std::mem::take(&mut play.layer.busy[word]), word * 64) {
            if !play.short(p) {
                play.port(p, &mut switch.uncharged);
            }
        }
    }
    play.made.clear();
    play.pauses.clear();
    play.charging.owed.clear();
    play.shelf.clear();
    if !matches!(bound, Bound::Buffer) {
        if middle.is_some() {
            switch.buffer.sample_past(play.bytes_before);
        }
        let (bytes, setup) = (play.bytes, play.out.setup);
        settle(switch, play.ports, bytes, setup);
    }
    play.next
}

impl<A: Annex> Floor<A> {
    /// Makes room for a switch, and takes its queued replies and CNPs onto lines.
    #[inline(always)]
    fn begin(&mut self, ports: &mut [Port<A>], backlog: &[u64]) {
        if self.lines.len() < ports.len() {
            let line = || Line { packets: Vec::new(), queued: 0 };
            self.lines.resize_with(ports.len(), || std::array::from_fn(|_| line()));
            self.busy.resize(ports.len().div_ceil(64), 0);
        }
        for (word, backlogged) in backlog.iter().enumerate() {
            self.busy[word] |= backlogged;
            for p in bits(*backlogged, word * 64) {
                let port = &mut ports[p];
                if !(port.replies.is_empty() && port.cnps.is_empty()) {
                    for (queue, class) in [(&mut port.replies, REPLIES), (&mut port.cnps, CNPS)] {
                        let line = &mut self.lines[p][class];
                        line.packets.extend(queue.packets().iter().map(|pkt| Parcel {
                            label: line::queued(pkt.label),
                            annex: shelf::put(&mut self.shelf, &pkt.annex),
                        }));
                        line.queued = line.packets.len();
                        queue.keep_last(0);
                    }
                }
            }
        }
    }
}

/// The ports of a switch in a visit.
pub(super) struct Play<'v, A: Annex> {
    pub(super) layer: Layer<'v, A::Held>,
    /// Annexes of the packets on the lines.
    pub(super) shelf: Shelf<'v, A>,
    pub(super) ports: &'v mut [Port<A>],
    pub(super) out: Out<'v, A>,
    backlog: &'v mut [u64],
    /// True if other kinds of packets share the class of data.
    mixed: bool,
    pub(super) room: &'v mut Vec<Parcel<A::Held>>,
    pub(super) sent: &'v mut Vec<Parcel<A>>,
    pub(super) made: &'v mut Vec<Made>,
    pub(super) pauses: &'v mut Vec<Pause>,
    pub(super) charging: &'v mut Charging,
    pub(super) ledger: &'v mut Ledger,
    /// True if all lines are in order.
    pub(super) sorted: bool,
    /// The shift that leaves the bin of a key.
    pub(super) shift: u32,
    /// Start of the first packet after the window, ps.
    next: u64,
    /// Bytes in the queues of data.
    bytes: u64,
    /// Key of the instant at which the buffer is sampled, and the bytes in the queues of data before it.
    pub(super) middle: Option<u64>,
    pub(super) bytes_before: u64,
}

impl<A: Annex> Play<'_, A> {
    /// Lays the arrivals from a host at a watched port. NACKs to other racks are set aside in `up`, because the scheme must
    /// see them in their places among the departures to that host. ACKs pass; from the first on that may matter, they are
    /// noted in `acks`.
    #[inline(always)]
    fn lay_from_watched<S: Scheme>(
        &mut self,
        scheme: &S,
        ways: &mut Ways<'_>,
        (number, lane): (usize, &[Parcel<A>]),
        mut quiet: bool,
        up: &mut Vec<Parcel<A::Held>>,
        acks: &mut Vec<Packet>,
    ) {
        for (slot, pkt) in lane.iter().enumerate() {
            let (p, to_host) = ways.port_from_host(scheme, pkt, pkt.annex.path_entropy(pkt.is_forward()));
            let (label, annex) = (pkt.label, shelf::in_lane(&pkt.annex, number, slot));
            match pkt.kind() {
                Kind::Nack if !to_host => {
                    quiet = false;
                    up.push(Parcel { label, annex });
                    continue;
                }
                Kind::Ack if !quiet && !to_host => {
                    let label = line::keyed(label, self.layer.tie);
                    acks.push(label);
                    self.layer.lay_keyed(p, Parcel { label, annex });
                }
                _ => self.layer.lay(p, label, annex),
            }
        }
    }

    /// Computes all watched ports.
    #[inline(always)]
    fn all_watched<P: Parts<Annex = A>>(
        &mut self,
        switch: &mut Switch<P>,
        ways: &mut Ways<'_>,
        (up, acks): (&[Parcel<A::Held>], &[Packet]),
        up_from: &[Up],
    ) {
        let mut from = up_from.iter().peekable();
        for word in 0..self.layer.busy.len() {
            for p in bits(self.layer.busy[word], word * 64) {
                if !self.ports[p].is(WATCHED) {
                    continue;
                }
                self.layer.busy[word] &= !(1 << (p % 64));
                let own = from.next_if(|up| up.port == p).map(|own| match from.peek() {
                    None => (&up[own.start..], &acks[own.acks..]),
                    Some(next) => (&up[own.start..next.start], &acks[own.acks..next.acks]),
                });
                self.watched(p, switch, ways, own.unwrap_or_default());
            }
        }
    }

    /// Computes a port whose departures the scheme watches, and shows it the replies of its host.
    #[inline(never)]
    fn watched<P: Parts<Annex = A>>(
        &mut self,
        p: usize,
        switch: &mut Switch<P>,
        ways: &mut Ways<'_>,
        (up, acks): (&[Parcel<A::Held>], &[Packet]),
    ) {
        let own = PortIndex(p as u16);
        let queue = self.take_queue(p);
        let mut taken = std::mem::take(&mut self.layer.lines[p]);
        let mut lines = in_order(&mut taken, &queue, self.shelf.reborrow(), self.sent);
        let mut departures = Departures::begin(&self.ports[p], &mut self.out, p, lines.data.len());
        let (mut up, mut acks) = (up.iter(), Acks::new(acks));
        let (scheme, made) = (&mut switch.scheme, &mut *self.made);
        let mut pauses = self.pauses.iter().filter(|pause| pause.port == own).peekable();
        loop {
            let reply = up.as_slice().first().map(|pkt| line::keyed(pkt.label, self.layer.tie));
            let mut limit = reply.map_or(line::instant(self.out.window.length), |pkt| pkt.word());
            let pause = pauses.next_if(|pause| line::instant(pause.at - ways.opened) < limit);
            if let Some(pause) = pause {
                limit = line::instant(pause.at - ways.opened);
            }
            let mut departed = |event, pkt: &Packet| {
                if let Some(packet) = scheme.on_leave(pkt, own, acks.until(event)) {
                    made.push(Made { event, packet, to: None, word: 0 });
                }
            };
            departures.run::<true>(&mut self.ports[p], &mut lines, limit, &mut self.out, &mut departed);
            if let Some(pause) = pause {
                let port = &mut self.ports[p];
                self.out.paused(p, port, pause.at, pause.channel, pause.on);
                let (after, paused) = (pause.at - ways.opened, port.paused());
                departures.pause(port, &mut lines, after, paused, &mut self.out, &mut departed);
                continue;
            }
            let Some(&Parcel { label: mut reply, mut annex }) = up.next() else { break };
            let kind = reply.kind();
            if !scheme.on_nack(&mut reply, own, acks.until(limit)) {
                self.out.tally.dropped_by_scheme(&reply);
                continue;
            }
            if reply.kind() != kind {
                let overruled = lines.shelf.annex(&annex).overruled();
                annex = lines.shelf.put(&overruled);
            }
            let entropy = lines.shelf.annex(&annex).path_entropy(reply.is_forward());
            let to = ways.port_from_host(scheme, &reply, entropy).0;
            self.layer.lay(to, reply, annex);
        }
        scheme.on_acks(own, acks.until(NEVER));
        let left = departures.end(&mut self.ports[p], &mut lines, self.mixed, &mut self.out);
        self.layer.lines[p] = taken;
        self.put_back(p, queue, left, &mut switch.uncharged);
    }

    /// Computes a port whose departures nobody watches.
    #[inline(never)]
    fn port(&mut self, p: usize, uncharged: &mut u64) {
        let queue = self.take_queue(p);
        let (port, arrivals) = (&self.ports[p], self.layer.line(p, DATA).packets.len());
        let mut departures = Departures::begin(port, &mut self.out, p, arrivals);
        if self.owes(p) {
            self.send_owed(p, &mut departures, &queue);
        }
        let Play { layer, shelf, ports, out, pauses, sent, .. } = self;
        let mut lines = in_order(&mut layer.lines[p], &queue, shelf.reborrow(), sent);
        let (port, limit) = (&mut ports[p], line::instant(out.window.length));
        for limit in self.middle.into_iter().chain([limit]) {
            if !pauses.is_empty() {
                departures.run_to_pauses(port, &mut lines, (pauses, limit), out);
            }
            departures.run_unwatched(port, &mut lines, limit, out);
            if self.middle == Some(limit) {
                self.bytes_before += departures.waiting_before(&lines, limit);
            }
        }
        let left = departures.end(port, &mut lines, self.mixed, out);
        self.put_back(p, queue, left, uncharged);
    }

    /// Shows the scheme all packets that join ports, for each port in order.
    #[inline(never)]
    fn pass_all<S: Scheme>(&mut self, scheme: &mut S) {
        for word in 0..self.layer.busy.len() {
            for p in bits(self.layer.busy[word], word * 64) {
                self.sort_lines(p);
                self.pass(p, scheme);
            }
        }
        self.sorted = true;
    }

    /// Shows the scheme the packets that join a port.
    #[inline(always)]
    fn pass<S: Scheme>(&mut self, p: usize, scheme: &mut S) {
        let opened = self.out.window.opened;
        let [data, replies, cnps, _] = &mut self.layer.lines[p];
        let mut next = [data.queued, replies.queued, cnps.queued];
        loop {
            let event = |line: &Line<A::Held>, class: usize| line::key(&line.packets, next[class]);
            let events = [event(data, DATA), event(replies, REPLIES), event(cnps, CNPS)];
            let first = events[DATA].min(events[REPLIES]).min(events[CNPS]);
            let (line, class) = match first {
                NEVER => break,
                _ if first == events[DATA] => (&mut *data, DATA),
                _ if first == events[REPLIES] => (&mut *replies, REPLIES),
                _ => (&mut *cnps, CNPS),
            };
            let pkt = &mut line.packets[next[class]];
            next[class] += 1;
            let tagged = A::CARRIES && (pkt.is_data() || pkt.kind() == Kind::Signal);
            let tag = if tagged { self.shelf.annex(&pkt.annex).tag() } else { 0 };
            let now = Time(opened + line::time(first));
            let passed = scheme.on_pass(now, &pkt.label, tag, PortIndex(p as u16));
            if tagged && passed != tag {
                let mut annex = *self.shelf.annex(&pkt.annex);
                annex.set_tag(passed);
                pkt.annex = self.shelf.put(&annex);
            }
        }
    }

    /// Puts the lines of a port in order.
    #[inline(always)]
    pub(super) fn sort_lines(&mut self, p: usize) {
        if self.sorted {
            return;
        }
        for class in [DATA, REPLIES, CNPS] {
            self.layer.line_mut(p, class).sort(self.room, self.shift);
        }
    }

    /// True if a pause frame comes to port `p` in the visit, or leaves by it.
    #[inline(always)]
    pub(super) fn is_framed(&self, p: usize) -> bool {
        self.pauses.iter().any(|pause| pause.port.index() == p) || self.owes(p)
    }

    /// Puts the lines of a port in order, and takes its queue of data.
    #[inline(always)]
    fn take_queue(&mut self, p: usize) -> Queue<A> {
        if !self.gets_made(p) {
            self.sort_lines(p);
        }
        let queue = std::mem::take(&mut self.ports[p].data);
        if !A::LARGE {
            let arrivals = self.layer.lines[p].iter().map(|line| line.packets.len()).sum::<usize>();
            // A long queue cannot leave in one window.
            let most = (queue.len() as usize + arrivals).min(self.out.setup.most_departures);
            if self.sent.len() < most {
                self.sent.resize(most.next_power_of_two(), Parcel::default());
            }
        }
        queue
    }

    /// Puts the queue of data back, and what has not left of the port's lines into its queues.
    #[inline(always)]
    fn put_back(&mut self, p: usize, mut queue: Queue<A>, left: Left, uncharged: &mut u64) {
        let tie = self.layer.tie;
        let gets_made = self.queue_made(p);
        let port = &mut self.ports[p];
        let own = port.is(UNCHARGED) || gets_made;
        let shelf = &self.shelf;
        let [data, replies, cnps, _] = &mut self.layer.lines[p];
        let before = if own { made_here(queue.packets()) } else { 0 };
        queue.skip(left.queued);
        queue.extend_with(&data.packets[left.data..], |slot, pkt| {
            slot.label = line::unkeyed(pkt.label, tie);
            slot.annex = *shelf.annex(&pkt.annex);
        });
        for pkt in &replies.packets[left.replies..] {
            port.replies.push(shelf.unkeyed(pkt, tie));
        }
        for pkt in &cnps.packets[left.cnps..] {
            port.cnps.push(shelf.unkeyed(pkt, tie));
        }
        [data, replies, cnps].into_iter().for_each(Line::clear);
        if own {
            let after = made_here(queue.packets());
            *uncharged = *uncharged + after - before;
            port.set(UNCHARGED, after > 0);
        }
        port.data = queue;
        self.note_queues(p);
    }

    /// Keeps the packets of a line behind the first `left` ones in the queue of port `p`, and clears the line.
    #[inline(always)]
    pub(super) fn keep(&mut self, p: usize, class: usize, left: usize) {
        let (port, tie) = (&mut self.ports[p], self.layer.tie);
        let line = self.layer.line_mut(p, class);
        for pkt in &line.packets[left..] {
            let pkt = self.shelf.unkeyed(pkt, tie);
            match class {
                DATA => {
                    port.waiting += u64::from(pkt.frame());
                    port.data.push(pkt);
                }
                REPLIES => port.replies.push(pkt),
                _ => port.cnps.push(pkt),
            }
        }
        line.clear();
    }

    /// Notes what is left in the queues of port `p`.
    #[inline(always)]
    pub(super) fn note_queues(&mut self, p: usize) {
        let port = &mut self.ports[p];
        port.recount();
        let bit = 1 << (p % 64);
        if port.is_empty() {
            self.backlog[p / 64] &= !bit;
        } else {
            self.backlog[p / 64] |= bit;
            self.next = self.next.min(port.due);
            self.bytes += port.waiting;
        }
    }

    /// Replaces the keys of packets that the scheme has made for port `p` by first words as in its queues; false if there are none.
    #[inline(always)]
    pub(super) fn queue_made(&mut self, p: usize) -> bool {
        let gets_made = self.gets_made(p);
        if gets_made {
            let lines = self.layer.lines[p].iter_mut();
            lines.for_each(|line| queue_made(p, self.made, &mut line.packets));
        }
        gets_made
    }

    /// True if the scheme has made a packet that leaves by port `p`.
    #[inline(always)]
    fn gets_made(&self, p: usize) -> bool {
        !self.made.is_empty() && self.made.iter().any(|made| made.to == Some(p))
    }

    /// Lays the packets that the scheme has made onto the lines of their ports.
    #[cold]
    #[inline(never)]
    fn lay_made<P: Parts<Annex = A>>(&mut self, switch: &Switch<P>, node: NodeId) {
        for i in 0..self.made.len() {
            let Made { event, packet, .. } = self.made[i];
            let emitted = Emitted { packet, tag: 0, port: None };
            let (port, pkt) = switch.made(self.out.setup, node, emitted);
            self.out.tally.made(&pkt);
            let p = port.index();
            debug_assert!(!self.ports[p].is(WATCHED), "a local scheme makes packets for other ports");
            let class = self.layer.line_of.of(&pkt);
            if !self.gets_made(p) {
                // The lines are sorted before the first such packet: the order of its key is that of its event alone.
                let lines = &mut self.layer.lines[p];
                lines.iter_mut().for_each(|line| line.sort(self.room, self.shift));
            }
            let Line { packets: line, queued } = &mut self.layer.lines[p][class];
            let queued = *queued;
            // The port's own departure of that instant comes first.
            let rank = match line::is_arrival(event) {
                true => event & !line::LOW,
                false => (event & !line::LOW & !AT_DEPARTURE) + 2 * AT_DEPARTURE,
            };
            let at = queued + line[queued..].partition_point(|pkt| pkt.word() & !line::LOW <= rank);
            let word = rank | pkt.word() & line::LOW;
            (self.made[i].to, self.made[i].word) = (Some(p), word);
            let label = pkt.label.with_word(word);
            line.insert(at, Parcel { label, annex: self.shelf.put(&pkt.annex) });
            self.layer.busy[p / 64] |= 1 << (p % 64);
        }
    }
}

impl<H: Copy + Default> Line<H> {
    #[inline(always)]
    pub(super) fn clear(&mut self) {
        self.packets.clear();
        self.queued = 0;
    }

    /// Puts the arrivals in order.
    #[inline(always)]
    pub(super) fn sort(&mut self, room: &mut Vec<Parcel<H>>, shift: u32) {
        line::sort(&mut self.packets[self.queued..], room, shift);
    }
}

/// The lines of a port and its queue of data, for [`Departures`].
#[inline(always)]
pub(super) fn in_order<'l, A: Annex>(
    [data, replies, cnps, _]: &'l mut [Line<A::Held>; CLASSES],
    queue: &'l Queue<A>,
    shelf: Shelf<'l, A>,
    sent: &'l mut [Parcel<A>],
) -> Lines<'l, A> {
    let (replies, cnps) = (&replies.packets, &cnps.packets);
    Lines { queued: queue.packets(), data: &mut data.packets, replies, cnps, shelf, sent }
}

/// Replaces the keys of packets that the scheme has made for port `p` by first words as in its queues.
#[cold]
fn queue_made<H>(p: usize, made: &[Made], line: &mut [Parcel<H>]) {
    for pkt in line {
        if made.iter().any(|made| made.to == Some(p) && made.word == pkt.word()) {
            pkt.label = pkt.label.arriving(0, PortIndex::VIRTUAL);
        }
    }
}

/// Bytes of packets that the switch has made itself.
#[cold]
fn made_here<A: Annex>(packets: &[Parcel<A>]) -> u64 {
    let own = packets.iter().filter(|pkt| pkt.ingress() == PortIndex::VIRTUAL);
    own.map(|pkt| u64::from(pkt.frame())).sum()
}
