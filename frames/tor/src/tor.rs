//! The state machine: the life of a frame from port to port.
//!
//! ```text
//!  port ─► parse ─► pause frame? ─► events ─► Themis-D judges replies ─► destination by MAC
//!                                                                             │
//!                                   same ToR ◄────────────────────────────────┤
//!                                      │                                      ▼
//!                                      │                       Themis-S picks the path: spine or uplink
//!                                      │                                      │
//!                                      ▼                                      ▼
//!          port ◄─ last hop ◄─ Themis-D records ◄─ class queue of the far ToR, ECN, PFC
//! ```
//!
//! Everything that takes time is a FIFO with a due time: the paths, the ports and their last hops. [`Tor::tick`] takes what
//! is due in order of time, and does it at its own time even if the call came late. So the outcome depends on frames and
//! their times only, and not on how often the surroundings call.

mod egress;
mod express;

use self::express::Express;
use crate::counters::{Counters, FailOpen};
use crate::draw::{Chance, Draw};
use crate::events::{Action, Injector};
use crate::frame::{self, Kind, Link, Roce};
use crate::guard::{Config, FlowView, Guard, Reply};
use crate::out::{Drop, Event, Note, Out};
use crate::paths::{Loss, Path};
use crate::pool::{Frame, Pool};
use crate::qp::Packet;
use crate::queues::{self, CLASSES, Control, Egress, Trust};
use crate::recent::{NO_SLOT, Recent, Ticket};
use crate::settings::Settings;
use crate::spray::{self, Choice, Sprayer, Steer};
use crate::stations::Stations;
use crate::units::{PortId, Span, Time};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use themis::Verdict;
use wire::ecn::Ecn;
use wire::ethernet::{Address, EtherType};

/// Time between two looks for idle connections. Each look examines one part in [`SWEEPS`] of the table.
const SWEEP: Span = Span::from_millis(100);
/// Number of looks that examine the whole table. Our choice: 64 looks take 6.4 s, a tenth of the usual idle time.
const SWEEPS: usize = 64;
/// First number of the ToR's own MAC addresses, which pause frames carry. Locally administered; our choice.
const OWN_ADDRESS: u32 = 0xFFFF_0000;

/// Something that has a time at which it is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    /// A spine fails or comes back, or ToRs notice it.
    Failure,
    /// A path to a ToR.
    Path(u32),
    /// A port's next transmission.
    Egress(u16),
    /// The end of a port's last hop.
    Line(u16),
    /// A pause that must be sent again.
    Refresh(u16),
    /// A frame that an injected event holds up.
    Held,
    /// A look for idle connections.
    Sweep,
}

/// A frame that an injected event holds up.
#[derive(Debug)]
struct Held {
    until: Until,
    meta: Meta,
    frame: Frame,
}

#[derive(Clone, Copy, Debug)]
enum Until {
    Time(Time),
    /// Until so many more frames have come in at the port.
    After(PortId, u32),
}

/// A change of a spine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Change {
    at: Time,
    spine: u16,
    up: bool,
    /// False for the change of the link itself, true for that of the routes.
    routes: bool,
}

/// What the ToR knows about a frame in a buffer.
#[derive(Clone, Copy, Debug)]
struct Meta {
    link: Link,
    roce: Option<Roce>,
    /// Port at which the frame came in.
    ingress: PortId,
    /// Port to which it goes.
    egress: PortId,
    class: u8,
    /// True if the frame came from another ToR, so that Themis-D records it.
    crossed: bool,
    /// True if Themis-D must not record the frame: its ICRC is known to be wrong, or it goes to all ports.
    unrecorded: bool,
    /// Change of the UDP source port that the far ToR must undo.
    undo: u16,
    /// What is remembered of its connection.
    ticket: Ticket,
}

const BLANK: Meta = Meta {
    link: Link {
        destination: Address([0; 6]),
        source: Address([0; 6]),
        tag: None,
        ether_type: wire::ethernet::EtherType(0),
        payload: 0,
    },
    roce: None,
    ingress: PortId(0),
    egress: PortId(0),
    class: 0,
    crossed: false,
    unrecorded: false,
    undo: 0,
    ticket: Ticket::NONE,
};

/// What the settings say of a port, for the way of every frame.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// The port by which it is known: all uplinks count as the first of them.
    group: PortId,
    leaf: u16,
    uplink: bool,
}

/// A port's side towards its host, as PFC sees it: what its host has sent and still occupies the buffer.
#[derive(Debug, Default)]
struct Ingress {
    bytes: [u64; CLASSES],
    /// Time at which the pause of a class must be sent again; `None` if the class is not paused.
    paused: [Option<Time>; CLASSES],
}

/// A fabric of ToRs and spines.
#[derive(Debug)]
pub struct Tor {
    settings: Settings,
    places: Box<[Place]>,
    stations: Stations,
    recent: Recent,
    express: Option<Express>,
    /// The paths to each ToR, one after the other.
    paths: Vec<Path>,
    sprayer: Sprayer,
    ports: Vec<Egress>,
    ingress: Vec<Ingress>,
    /// Bytes in the buffer of each ToR.
    buffered: Vec<u64>,
    guard: Option<Guard>,
    cache: wire::patch::PortCache,
    injector: Option<Injector>,
    held: Vec<Held>,
    meta: Vec<Meta>,
    agenda: BinaryHeap<Reverse<(Time, Source)>>,
    changes: Vec<Change>,
    next_change: usize,
    outs: VecDeque<Out>,
    counters: Counters,
    /// Time of each port's request to be called.
    wakes: Vec<Time>,
    now: Time,
}

impl Tor {
    /// A ToR that has seen nothing yet.
    pub fn new(settings: &Settings) -> Self {
        let settings = settings.clone();
        let mut stations = Stations::new(settings.ports.len());
        for (port, n) in settings.ports.iter().zip(0..) {
            for address in &port.stations {
                stations.fix(*address, PortId(n));
            }
        }
        let leaves = settings.leaves();
        let (mut paths, mut changes) = (Vec::new(), Vec::new());
        for leaf in 0..leaves {
            for (spine, n) in settings.spines.iter().zip(0u64..) {
                paths.push(Path::new(spine, settings.seed, u64::from(leaf) << 32 | n));
            }
        }
        for (spine, n) in settings.spines.iter().zip(0..) {
            for &(from, to) in &spine.down {
                for (at, up) in [(from, false), (to, true)] {
                    changes.push(Change { at, spine: n, up, routes: false });
                    changes.push(Change { at: at + settings.detection, spine: n, up, routes: true });
                }
            }
        }
        changes.sort_unstable();
        let ways =
            if settings.spines.is_empty() { settings.uplinks().count() } else { settings.spines.len() };
        let themis = &settings.themis;
        let guard = themis.rule(ways.max(1) as u16).and_then(|rule| {
            Guard::new(&Config {
                settings: rule,
                on_block: themis.on_block,
                connections: themis.connections,
                idle: themis.idle,
                evidence: &themis.learning,
                fixed: &themis.fixed,
                ports: settings.ports.len(),
                audit: settings.uplinks().next().is_some(),
                seed: settings.seed,
            })
            .ok()
        });
        let egress = |(port, n): (&crate::settings::Port, u64)| {
            Egress::new(port.rate, port.last_hop, settings.seed, 1 << 62 | n)
        };
        let first_uplink = settings.uplinks().next();
        let place = |(port, n): (&crate::settings::Port, u16)| Place {
            group: first_uplink.filter(|_| port.uplink).unwrap_or(PortId(n)),
            leaf: port.leaf,
            uplink: port.uplink,
        };
        let mut tor = Tor {
            places: settings.ports.iter().zip(0..).map(place).collect(),
            recent: Recent::new(settings.seed),
            express: Express::new(&settings),
            stations,
            paths,
            sprayer: Sprayer::new(settings.spray, ways.max(1) as u16, settings.seed),
            ports: settings.ports.iter().zip(0..).map(egress).collect(),
            ingress: settings.ports.iter().map(|_| Ingress::default()).collect(),
            buffered: vec![0; usize::from(leaves)],
            guard,
            cache: wire::patch::PortCache::new(),
            injector: (!settings.events.is_empty()).then(|| Injector::new(&settings.events)),
            held: Vec::new(),
            meta: Vec::new(),
            agenda: BinaryHeap::with_capacity(1024),
            changes,
            next_change: 0,
            outs: VecDeque::with_capacity(1024),
            counters: Counters::new(&settings),
            wakes: vec![Time::ZERO; settings.ports.len()],
            now: Time::ZERO,
            settings,
        };
        tor.schedule_change();
        if tor.guard.is_some() {
            tor.agenda.push(Reverse((Time::ZERO + SWEEP, Source::Sweep)));
        }
        tor
    }

    /// What the ToR was built from.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// All counters.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Number of flows that Themis-D knows, and of NACKs that it keeps.
    pub fn occupancy(&self) -> (usize, usize) {
        self.guard.as_ref().map_or((0, 0), |guard| (guard.connections.len(), guard.held()))
    }

    /// The flows that Themis-D knows, with their verdicts.
    pub fn flows(&self) -> impl Iterator<Item = FlowView> {
        self.guard.iter().flat_map(Guard::flows)
    }

    /// Takes a frame that has arrived at a port. Times never run backwards: an earlier `now` counts as the latest one. A
    /// frame of a port that the settings do not have is dropped.
    pub fn frame(&mut self, now: Time, port: PortId, frame: Frame, pool: &mut Pool) {
        self.tick(now, pool);
        let now = self.now;
        if port.index() >= self.ports.len() {
            return pool.put_back(frame);
        }
        if let Err(frame) = self.express(now, port, frame, pool) {
            self.arrive_at(now, port, frame, pool);
        }
    }

    /// A frame has arrived at a port that exists.
    fn arrive_at(&mut self, now: Time, port: PortId, frame: Frame, pool: &mut Pool) {
        if self.meta.len() < pool.count() {
            self.meta.resize(pool.count(), BLANK);
        }
        let bytes = pool.bytes(&frame);
        self.counters.ports[port.index()].in_frames += 1;
        self.counters.ports[port.index()].in_bytes += bytes.len() as u64;
        let Some(link) = Link::of(bytes) else { return self.drop_frame(now, port, frame, Drop::Runt, pool) };
        if !link.source_is_station() {
            return self.drop_frame(now, port, frame, Drop::Source, pool);
        }
        if link.ether_type == EtherType::MAC_CONTROL {
            return self.control(now, port, &link, frame, pool);
        }
        let roce = frame::roce_of(&link, bytes);
        let class = match &roce {
            Some(roce) => self.roce_class(&link, roce),
            None => self.class(&link, bytes),
        };
        self.counters.arrived(port, class, roce.as_ref());
        let verify = self.settings.themis.verify && self.guard.is_some();
        let wrong = verify && roce.is_some_and(|roce| roce.is_request() && !roce.icrc_is_right(bytes));
        if wrong {
            self.counters.fail_open(FailOpen::Icrc, false);
        }
        let ticket = roce.as_ref().map_or(Ticket::NONE, |roce| self.recent.find(&link, roce, port));
        if let (Some(express), Some(roce)) = (&mut self.express, &roce) {
            express.add(bytes, &link, roce, class, port, ticket);
        }
        let mut meta = Meta {
            link,
            roce,
            ingress: port,
            egress: port,
            class,
            crossed: false,
            unrecorded: wrong,
            undo: 0,
            ticket,
        };
        match (&mut self.injector, &meta.roce) {
            (Some(_), Some(_)) => self.inject(now, meta, frame, pool),
            _ => self.enter_here(now, &mut meta, frame, pool),
        }
    }

    /// The next instant at which [`Tor::tick`] has something to do. With Themis-D there always is one: the next look for
    /// idle connections.
    pub fn poll_at(&self) -> Option<Time> {
        self.agenda.peek().map(|Reverse((at, _))| *at)
    }

    /// Does everything that is due by `now`.
    #[inline]
    pub fn tick(&mut self, now: Time, pool: &mut Pool) {
        while let Some(&Reverse((at, source))) = self.agenda.peek()
            && at <= now
        {
            self.act(at, source, now, pool);
        }
        self.now = self.now.max(now);
    }

    /// Does the first thing of the agenda. All that is due by `until` follows without a frame in between.
    fn act(&mut self, at: Time, source: Source, until: Time, pool: &mut Pool) {
        self.agenda.pop();
        self.now = self.now.max(at);
        match source {
            Source::Failure => self.change(at, pool),
            Source::Path(path) => self.leave(at, path, pool),
            Source::Egress(port) => self.transmit(at, PortId(port), pool),
            Source::Line(port) => self.arrive(at, PortId(port)),
            Source::Refresh(port) => self.refresh(at, PortId(port), pool),
            Source::Held => self.release_held(at, pool),
            Source::Sweep => self.sweep(at, until),
        }
    }

    /// The next thing for the surroundings to do. Call it until it returns `None`, after every [`Tor::frame`] and
    /// [`Tor::tick`].
    #[inline]
    pub fn poll(&mut self) -> Option<Out> {
        self.outs.pop_front()
    }

    /// Forgets what saves look-ups. This changes nothing but the time that the next frames take, and tests check that.
    pub fn forget_recent(&mut self) {
        self.recent.clear();
        if let Some(express) = &mut self.express {
            express.clear();
        }
    }

    /// Lets all frames that are under way leave at once, without their delays, as at the end of a program.
    pub fn drain(&mut self, pool: &mut Pool) {
        let mut last = self.now;
        // Pauses may come again for ever, so the number of steps has a limit.
        for _ in 0..16 * pool.count().max(1) {
            if pool.free() == pool.count() {
                break;
            }
            let Some(at) = self.poll_at() else { break };
            last = last.max(at);
            self.tick(last, pool);
        }
    }

    /// A RoCEv2 frame that came in, while events are injected.
    fn inject(&mut self, now: Time, mut meta: Meta, frame: Frame, pool: &mut Pool) {
        let port = meta.ingress;
        // Frames that wait for later ones of this port have one less to wait for.
        for held in &mut self.held {
            if let Until::After(after, left) = &mut held.until
                && *after == port
            {
                *left = left.saturating_sub(1);
            }
        }
        let action = match (&mut self.injector, &meta.roce) {
            (Some(injector), Some(roce)) => injector.judge(port, roce),
            _ => None,
        };
        if let Some(action) = action {
            self.counters.injected += 1;
            self.outs.push_back(note(now, Event::Injected { action, packet: label(&meta) }));
        }
        match action {
            None => self.enter(now, &mut meta, frame, pool),
            Some(Action::Drop | Action::Stop) => self.drop_frame(now, port, frame, Drop::Injected, pool),
            Some(Action::Mark) => {
                mark(&mut Draw::new(0, 0), Chance::ALWAYS, &mut meta, &frame, pool);
                self.enter(now, &mut meta, frame, pool);
            }
            Some(Action::Corrupt(bit)) => {
                if let Some(roce) = &meta.roce {
                    let end = roce.icrc + wire::icrc::LEN;
                    let at = end.saturating_sub(16).max(roce.bth()) + usize::from(bit / 8);
                    if let Some(byte) = pool.bytes_mut(&frame).get_mut(at) {
                        *byte ^= 1 << (bit % 8);
                    }
                }
                self.enter(now, &mut meta, frame, pool);
            }
            Some(Action::Delay(span)) => {
                self.held.push(Held { until: Until::Time(now + span), meta, frame });
                self.agenda.push(Reverse((now + span, Source::Held)));
            }
            Some(Action::Duplicate) => {
                let copy = pool.duplicate(&frame);
                self.enter(now, &mut { meta }, frame, pool);
                match copy {
                    Some(copy) => self.enter(now, &mut meta, copy, pool),
                    None => self.count_drop(now, port, Drop::NoBuffer),
                }
            }
            Some(Action::Reorder(frames)) => {
                self.held.push(Held { until: Until::After(port, frames), meta, frame });
            }
        }
        self.release_held(now, pool);
    }

    /// Lets held frames in whose time has come, the oldest first.
    fn release_held(&mut self, now: Time, pool: &mut Pool) {
        let due = |held: &Held| match held.until {
            Until::Time(at) => at <= now,
            Until::After(_, left) => left == 0,
        };
        while let Some(at) = self.held.iter().position(due) {
            let Held { mut meta, frame, .. } = self.held.remove(at);
            self.enter(now, &mut meta, frame, pool);
        }
    }

    /// The class of a frame.
    fn class(&self, link: &Link, bytes: &[u8]) -> u8 {
        let classes = &self.settings.classes;
        match (classes.trust, link.priority()) {
            (Trust::Pcp, Some(priority)) => priority,
            _ => frame::traffic_class(link, bytes).map_or(0, |class| classes.dscp[usize::from(class.dscp())]),
        }
    }

    /// The class of a RoCEv2 packet.
    #[inline]
    fn roce_class(&self, link: &Link, roce: &Roce) -> u8 {
        let classes = &self.settings.classes;
        match (classes.trust, link.priority()) {
            (Trust::Pcp, Some(priority)) => priority,
            _ => classes.dscp[usize::from(roce.traffic_class.dscp())],
        }
    }

    /// Learns behind which port the sender of a frame is.
    #[inline]
    fn learn(&mut self, now: Time, meta: &Meta) {
        let (port, address) = (self.group(meta.ingress), meta.link.source);
        let known = self.recent.entry(meta.ticket);
        if let Some(entry) = &known
            && self.stations.learn_at(now, entry.source_slot, address, port)
        {
            return;
        }
        let slot = self.stations.learn_slot(now, address, port);
        self.counters.stations_refused += u64::from(slot.is_none());
        if let Some(entry) = known {
            entry.source_slot = slot.unwrap_or(NO_SLOT);
        }
    }

    /// The port of a frame's receiver, if it is known.
    #[inline]
    fn destination(&mut self, now: Time, meta: &Meta) -> Option<PortId> {
        let address = meta.link.destination;
        if address.is_multicast() {
            return None;
        }
        let known = self.recent.entry(meta.ticket);
        if let Some(entry) = &known
            && let Some(port) = self.stations.port_at(now, entry.destination_slot, address)
        {
            return Some(port);
        }
        let slot = self.stations.slot(address)?;
        if let Some(entry) = known {
            entry.destination_slot = slot;
        }
        self.stations.port_at(now, slot, address)
    }

    /// A frame that an injected event has touched comes in.
    fn enter(&mut self, now: Time, meta: &mut Meta, frame: Frame, pool: &mut Pool) {
        self.enter_here(now, meta, frame, pool);
    }

    /// A frame comes in. The way of most frames is one function, from here to the queue.
    #[inline(always)]
    fn enter_here(&mut self, now: Time, meta: &mut Meta, frame: Frame, pool: &mut Pool) {
        self.learn(now, meta);
        if let Some(roce) = &meta.roce
            && self.guard.is_some()
            && matches!(roce.kind, Kind::Ack { .. } | Kind::Nack)
            && !self.reply(now, meta, roce, &frame, pool)
        {
            return pool.put_back(frame);
        }
        self.forward_here(now, meta, frame, pool);
    }

    /// Themis-D upward: judges an ACK or a NACK. Returns false if the frame must not go on.
    fn reply(&mut self, now: Time, meta: &Meta, roce: &Roce, frame: &Frame, pool: &mut Pool) -> bool {
        let Some(guard) = &mut self.guard else { return true };
        let bytes = pool.bytes_mut(frame);
        let nack = roce.kind == Kind::Nack;
        if !roce.icrc_is_right(bytes) {
            self.counters.fail_open(FailOpen::Icrc, nack);
            return true;
        }
        let credits = match roce.kind {
            Kind::Ack { credits } => Some(credits),
            _ => None,
        };
        let (reply, learnt) = guard.reply(now, &packet(meta, roce), credits, bytes);
        if let Some(number) = learnt {
            let flow = guard.connections.responder_qp(number);
            self.counters.learnt += 1;
            self.outs.push_back(note(now, Event::Learnt { requester: roce.qp, responder: flow }));
        }
        match reply {
            Reply::Pass => true,
            Reply::Breach => {
                self.counters.fail_open(FailOpen::Breach, nack);
                true
            }
            Reply::TooLong => {
                self.counters.fail_open(FailOpen::TooLong, nack);
                true
            }
            Reply::FailOpen(why) => {
                self.counters.fail_open(FailOpen::Unknown(why), nack);
                if nack {
                    self.outs.push_back(note(now, Event::Passed { requester: roce.qp, psn: roce.psn, why }));
                }
                true
            }
            Reply::Unlearnt(number) => {
                let responder = guard.connections.responder_qp(number);
                self.counters.unlearnt += 1;
                self.outs.push_back(note(now, Event::Unlearnt { requester: roce.qp, responder }));
                true
            }
            Reply::Judged { judged, ack } => {
                self.counters.judged(judged.verdict);
                self.outs.push_back(note(now, Event::Judged(judged)));
                match (judged.verdict, ack) {
                    (Verdict::Forward(_), _) => true,
                    (Verdict::Block(_), None) => false,
                    (Verdict::Block(_), Some(credits)) => {
                        become_ack(bytes, roce, credits);
                        true
                    }
                }
            }
        }
    }

    /// Sends on a frame that the ToR has made.
    #[inline(never)]
    fn forward(&mut self, now: Time, meta: &mut Meta, frame: Frame, pool: &mut Pool) {
        self.forward_here(now, meta, frame, pool);
    }

    /// Sends a frame on towards its destination address.
    #[inline(always)]
    fn forward_here(&mut self, now: Time, meta: &mut Meta, frame: Frame, pool: &mut Pool) {
        match self.destination(now, meta) {
            Some(port) if port == self.group(meta.ingress) => {
                self.drop_frame(now, meta.ingress, frame, Drop::SamePort, pool);
            }
            Some(port) => {
                meta.egress = port;
                self.deliver_here(now, meta, frame, pool);
            }
            None => self.flood(now, meta, frame, pool),
        }
    }

    /// Sends copies to all other ports: one to the uplinks together, and none from an uplink to another.
    #[inline(never)]
    fn flood(&mut self, now: Time, meta: &Meta, frame: Frame, pool: &mut Pool) {
        let from = self.group(meta.ingress);
        for n in 0..self.settings.ports.len() as u16 {
            let port = PortId(n);
            if port == from || port != self.group(port) {
                continue;
            }
            match pool.duplicate(&frame) {
                Some(copy) => {
                    let mut meta = Meta { egress: port, unrecorded: true, ..*meta };
                    self.deliver(now, &mut meta, copy, pool);
                }
                None => self.count_drop(now, meta.ingress, Drop::NoBuffer),
            }
        }
        pool.put_back(frame);
    }

    /// The port by which a port is known: all uplinks count as the first of them.
    fn group(&self, port: PortId) -> PortId {
        self.places[port.index()].group
    }

    fn is_uplink(&self, port: PortId) -> bool {
        self.places[port.index()].uplink
    }

    fn leaf(&self, port: PortId) -> u16 {
        self.places[port.index()].leaf
    }

    /// Brings a copy of a frame to the ToR of its port.
    fn deliver(&mut self, now: Time, meta: &mut Meta, frame: Frame, pool: &mut Pool) {
        self.deliver_here(now, meta, frame, pool);
    }

    /// Brings a frame to the ToR of its port: it is there already, or a spine or an uplink takes it.
    #[inline(always)]
    fn deliver_here(&mut self, now: Time, meta: &mut Meta, frame: Frame, pool: &mut Pool) {
        if self.is_uplink(meta.egress) {
            let choice = self.choose(meta);
            self.rewrite(meta, choice, &frame, pool);
            let uplink = self.settings.uplinks().nth(choice.path.into());
            meta.egress = uplink.unwrap_or(meta.egress);
            return self.enqueue(now, meta, frame, pool);
        }
        if self.is_uplink(meta.ingress) {
            meta.crossed = true;
            if self.settings.steer == Steer::XorUndo
                && let Some(roce) = meta.roce
                && roce.is_request()
            {
                meta.undo = spray::slot(&roce, self.sprayer.slots(), self.settings.seed);
            }
            return self.enqueue(now, meta, frame, pool);
        }
        let leaf = self.leaf(meta.egress);
        if self.settings.spines.is_empty() || self.leaf(meta.ingress) == leaf {
            return self.enqueue(now, meta, frame, pool);
        }
        let choice = self.choose(meta);
        self.rewrite(meta, choice, &frame, pool);
        meta.crossed = true;
        let path = usize::from(leaf) * self.settings.spines.len() + usize::from(choice.path);
        let idle = self.paths[path].due().is_none();
        if idle && self.paths[path].is_immediate(now) {
            let counters = &mut self.counters.paths[usize::from(choice.path)];
            counters.frames += 1;
            counters.sprayed += u64::from(meta.roce.as_ref().is_some_and(Roce::is_request));
            return self.enqueue(now, meta, frame, pool);
        }
        self.meta[frame.slot()] = *meta;
        match self.paths[path].enter(now, frame) {
            Ok(()) => {
                let counters = &mut self.counters.paths[usize::from(choice.path)];
                counters.frames += 1;
                counters.sprayed += u64::from(meta.roce.as_ref().is_some_and(Roce::is_request));
                if idle && let Some(at) = self.paths[path].due() {
                    self.agenda.push(Reverse((at, Source::Path(path as u32))));
                }
            }
            Err((frame, loss)) => {
                let counters = &mut self.counters.paths[usize::from(choice.path)];
                match loss {
                    Loss::Random => counters.lost += 1,
                    Loss::Down => counters.lost_down += 1,
                }
                self.outs.push_back(note(now, Event::Lost { path: choice.path, packet: label(meta), loss }));
                pool.put_back(frame);
            }
        }
    }

    #[inline(always)]
    fn choose(&mut self, meta: &Meta) -> Choice {
        match &meta.roce {
            Some(roce) => {
                let (base, hash) = match self.recent.entry(meta.ticket) {
                    Some(entry) => (entry.base, entry.hash),
                    None => (spray::base(roce, self.settings.seed), spray::flow_hash(roce)),
                };
                if roce.is_request() { self.sprayer.request(roce.psn, base) } else { self.sprayer.base(hash) }
            }
            None => {
                let word =
                    |address: Address| address.0.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
                self.sprayer.base(word(meta.link.source) ^ word(meta.link.destination).rotate_left(13))
            }
        }
    }

    /// Writes the slot into the source port, if the fabric beyond the ToR hashes it.
    #[inline]
    fn rewrite(&mut self, meta: &mut Meta, choice: Choice, frame: &Frame, pool: &mut Pool) {
        let (Some(roce), Some(slot)) = (&meta.roce, choice.slot) else { return };
        if self.settings.steer == Steer::Port {
            return;
        }
        let bytes = pool.bytes_mut(frame);
        // A datagram with a checksum would need a second update; RoCEv2 NICs send none.
        let without_checksum = bytes.get(roce.udp + 6..roce.udp + 8) == Some(&[0, 0]);
        match self.settings.steer {
            Steer::Port => {}
            _ if !without_checksum => self.counters.fail_open(FailOpen::Checksum, false),
            Steer::XorUndo => {
                write_port(bytes, roce.udp, roce.source_port ^ slot);
                // In the emulated fabric this box is also the far ToR.
                meta.undo = slot;
            }
            Steer::XorIcrc => {
                self.cache.set_source_port(bytes, roce.udp, roce.icrc, roce.source_port ^ slot);
            }
        }
    }

    /// A frame is at the end of its path.
    fn leave(&mut self, now: Time, path: u32, pool: &mut Pool) {
        let own = &mut self.paths[path as usize];
        let Some(frame) = own.leave() else { return };
        if let Some(at) = own.due() {
            self.agenda.push(Reverse((at, Source::Path(path))));
        }
        let mut meta = self.meta[frame.slot()];
        self.enqueue(now, &mut meta, frame, pool);
    }

    /// A MAC control frame, which no switch forwards.
    fn control(&mut self, now: Time, port: PortId, link: &Link, frame: Frame, pool: &mut Pool) {
        let payload = &pool.bytes(&frame)[link.payload..];
        let counters = &mut self.counters.ports[port.index()];
        match queues::control(payload) {
            Control::Pfc(pause) => {
                for (class, quanta) in pause.quanta.iter().enumerate() {
                    let Some(quanta) = *quanta else { continue };
                    counters.classes[class].pfc_in += 1;
                    if self.settings.classes.lossless[class] {
                        self.ports[port.index()].pause(now, class, quanta);
                    }
                }
            }
            Control::Ignored if queues::is_global_pause(payload) => counters.global_pauses += 1,
            Control::Ignored => counters.control_ignored += 1,
        }
        pool.put_back(frame);
        self.transmit(now, port, pool);
    }

    /// Spines fail or come back.
    fn change(&mut self, now: Time, pool: &mut Pool) {
        while let Some(change) = self.changes.get(self.next_change).copied().filter(|c| c.at <= now) {
            self.next_change += 1;
            if change.routes {
                let moved = self.sprayer.set_up(change.spine, change.up);
                let moved = moved as u16;
                self.outs
                    .push_back(note(now, Event::SlotsMoved { path: change.spine, up: change.up, moved }));
                continue;
            }
            let spines = self.settings.spines.len();
            for path in (usize::from(change.spine)..self.paths.len()).step_by(spines) {
                self.paths[path].set_up(change.up);
                while !change.up
                    && let Some(frame) = self.paths[path].leave()
                {
                    self.counters.paths[usize::from(change.spine)].lost_down += 1;
                    let packet = label(&self.meta[frame.slot()]);
                    let lost = Event::Lost { path: change.spine, packet, loss: Loss::Down };
                    self.outs.push_back(note(now, lost));
                    pool.put_back(frame);
                }
            }
        }
        self.schedule_change();
    }

    fn schedule_change(&mut self) {
        if let Some(change) = self.changes.get(self.next_change) {
            self.agenda.push(Reverse((change.at, Source::Failure)));
        }
    }

    /// Looks for idle connections. Of the looks before the next thing on the agenda, the last ones examine every connection;
    /// the others would find no more than these, and are left out. So a gap of months in a capture takes no time.
    fn sweep(&mut self, now: Time, until: Time) {
        let Some(guard) = &mut self.guard else { return };
        let next = self.agenda.peek().map_or(until, |Reverse((at, _))| until.min(*at));
        let looks = next.since(now).nanos() / SWEEP.nanos();
        let spare = looks.saturating_sub(SWEEPS as u64);
        let now = now + Span::from_nanos(spare * SWEEP.nanos());
        guard.sweep(now, guard.connections.capacity().div_ceil(SWEEPS), spare);
        self.agenda.push(Reverse((now + SWEEP, Source::Sweep)));
    }

    fn drop_frame(&mut self, now: Time, port: PortId, frame: Frame, why: Drop, pool: &mut Pool) {
        pool.put_back(frame);
        self.count_drop(now, port, why);
    }

    fn count_drop(&mut self, at: Time, port: PortId, why: Drop) {
        self.counters.ports[port.index()].dropped[why as usize] += 1;
        self.outs.push_back(note(at, Event::Dropped { port, why }));
    }
}

const fn note(at: Time, event: Event) -> Out {
    Out::Note(Note { at, event })
}

/// The fields by which connections are told apart.
fn packet(meta: &Meta, roce: &Roce) -> Packet {
    Packet {
        vlan: meta.link.vlan(),
        source: roce.source,
        destination: roce.destination,
        source_mac: meta.link.source,
        destination_mac: meta.link.destination,
        source_port: roce.source_port,
        qp: roce.qp,
        psn: roce.psn,
        ingress: meta.ingress,
    }
}

/// Queue pair, opcode and PSN of a RoCEv2 packet, for notes.
fn label(meta: &Meta) -> Option<crate::out::Label> {
    meta.roce.map(|roce| crate::out::Label { qp: roce.qp, opcode: roce.opcode, psn: roce.psn })
}

fn write_port(bytes: &mut [u8], udp: usize, port: u16) {
    if let Some(field) = bytes.get_mut(udp..udp + 2) {
        field.copy_from_slice(&port.to_be_bytes());
    }
}

/// Marks a packet that allows it, with a chance. Returns true if the packet is newly marked.
fn mark(draw: &mut Draw, chance: Chance, meta: &mut Meta, frame: &Frame, pool: &mut Pool) -> bool {
    if chance == Chance::NEVER {
        return false;
    }
    let bytes = pool.bytes_mut(frame);
    let Some(class) = frame::traffic_class(&meta.link, bytes) else { return false };
    if !matches!(class.ecn(), Ecn::Ect0 | Ecn::Ect1) || !draw.happens(chance) {
        return false;
    }
    let Some(packet) = bytes.get_mut(meta.link.payload..) else { return false };
    if let Some(roce) = &mut meta.roce {
        roce.traffic_class = class.with_ecn(Ecn::Ce);
    }
    wire::patch::set_ecn(packet, Ecn::Ce).is_ok()
}

/// Turns a NACK into the ACK of all packets before the one that it names.
fn become_ack(bytes: &mut [u8], roce: &Roce, credits: u8) {
    let psn = roce.psn.add(themis::PSN_SPACE - 1);
    let (bth, aeth) = (roce.bth(), roce.bth() + wire::bth::LEN);
    if let Some(field) = bytes.get_mut(bth + 9..bth + 12) {
        field.copy_from_slice(&psn.value().to_be_bytes()[1..]);
    }
    if let Some(syndrome) = bytes.get_mut(aeth) {
        *syndrome = credits & 0x1F;
    }
    if let Some(packet) = bytes.get_mut(roce.ip..roce.icrc + wire::icrc::LEN) {
        // The packet was parsed, so it has a place for its ICRC.
        let _ = wire::icrc::fill(packet);
    }
}
