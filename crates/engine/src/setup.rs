//! Constants that both engines derive from a plan before the first packet: transmission times, port facts, keys.

use crate::credits::{Grant, Grants};
use crate::division;
use crate::failing::{Failing, LinkLoss, fastest};
use crate::listed::Listed;
use crate::noisy::Noisy;
use crate::posted::{AnyMessage, Posted, PostedMessage};
use model::digest::{Digest, Sight};
use model::draw::{Key, Purpose};
use model::fabric::{Link, Router};
use model::packet::Kinds;
use model::plan::{Class, Marking, Overflow, PortSettings, SwitchSettings};
use model::telemetry::TracedLink;
use model::{
    Annex, Fabric, HostId, Kind, LinkId, NodeId, Packet, Parcel, Plan, PortChoice, PortIndex, PortSharing,
    Probability, QpId, Routing, Time,
};
use std::sync::atomic::{AtomicU64, Ordering};

/// Constants of a port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PortFacts {
    /// Propagation delay of its link, ps.
    pub(crate) delay: u64,
    /// Start of its rate's row in [`Setup::transmission`].
    pub(crate) row: u32,
    /// Node at the far end.
    pub(crate) peer: u32,
    /// Port at the far end.
    pub(crate) peer_port: PortIndex,
    /// True if the far end is a host.
    pub(crate) to_host: bool,
    /// Number of virtual channels of its link.
    pub(crate) channels: u8,
    /// Loss probability of the link while no failure changes it.
    pub(crate) loss: Probability,
    /// True if the plan lists losses on the link.
    listed: bool,
    /// True if the link is ever down.
    fails: bool,
    /// True if the loss probability of the link changes.
    gray: bool,
    /// True if the link is noisy.
    noisy: bool,
    /// Track of the link in the series, or [`NO_TRACK`].
    pub(crate) track: u32,
    /// True if its frames are recorded.
    pub(crate) tapped: bool,
}

impl PortFacts {
    /// True if the link can lose packets.
    pub(crate) fn lossy(&self) -> bool {
        self.listed || self.fails || self.gray || self.noisy || !self.loss.is_zero()
    }
}

/// The number of no track: the link or queue pair is not in the series.
pub(crate) const NO_TRACK: u32 = u32::MAX;

/// All constants of a run.
#[derive(Debug)]
pub(crate) struct Setup<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) ports: Vec<PortFacts>,
    /// Transmission time in ps, by row of a rate and frame size.
    transmission: Vec<u32>,
    /// Numbers of the rates in telemetry, by row; empty without telemetry.
    rate_numbers: Vec<u8>,
    /// Number of frame sizes in a row.
    row_length: u32,
    /// Length of the longest window that the links between groups allow, ps.
    pub(crate) window: u64,
    pub(crate) reach: Reach,
    /// Number of each queue pair among those of its sender.
    pub(crate) sender_slot: Vec<u32>,
    /// Number of queue pairs that each host sends.
    pub(crate) sends: Vec<u32>,
    /// By queue pair, whether the run follows it; empty if it follows none.
    followed: Vec<bool>,
    /// True if the plan's jobs belong to several traffic classes.
    pub(crate) several_classes: bool,
    /// Key of every link for losses.
    losses: Vec<Key>,
    listed: Listed,
    noisy: Noisy,
    pub(crate) failing: Failing,
    marks: Vec<Key>,
    /// Numbers of the kinds' classes in the plan's table.
    class_of: [u8; Kind::ALL.len()],
    /// The traffic class of every queue pair, if flows have queues of their own; else empty.
    own_queues: Vec<u8>,
    /// Number of the class of data in the plan's table, for flows without a class of their own.
    pub(crate) data_class: usize,
    /// True if this class is marked.
    marks_data: bool,
    /// True if all marks go by the length of a queue alone, and by the settings of the port.
    pub(crate) marks_by_length: bool,
    /// [`Plan::has_plain_queues`].
    pub(crate) plain_queues: bool,
    /// Kinds of packets in the class of data.
    pub(crate) with_data: Kinds,
    /// True if CNPs wait in the class of ACKs.
    pub(crate) cnps_with_acks: bool,
    /// Kinds of replies that leave a host before all others; `None` if its replies wait in more than two classes, or if pauses stop
    /// others than the class of data.
    first_replies: Option<Kinds>,
    /// Kinds of packets that are charged and paused.
    pub(crate) charged: Kinds,
    /// Messages that a program posts; `None` if no program drives the run.
    pub(crate) posted: Option<Posted>,
    /// By how much the engine's clock is behind that of the run after cuts, ps. Draws go by the run's.
    behind: AtomicU64,
    has_loops: bool,
    /// What links may use of the buffers at their far ends.
    pub(crate) grants: Grants,
}

/// How a packet crosses a link.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Crossing {
    pub(crate) lost: Option<LinkLoss>,
    /// Time by which its last start is later than its first, ps.
    pub(crate) late: u64,
    /// Number of starts after the first.
    pub(crate) replays: u64,
}

/// Size of the control word by which a receiver asks for a replay, bytes: a block of 64b/66b (Ultra Ethernet 1.0.2, section 5).
const CONTROL_WORD: u64 = 8;

/// Number of the switch that drops a packet: the default TTL of Linux (`IPDEFTTL`).
const HOP_LIMIT: u16 = 64;

/// Longest window, ps. Packets carry times inside a window in 29 bits. Half of their range keeps the number above the
/// largest offset free: light visits add 1 to the offsets of arrivals.
pub(crate) const LONGEST_WINDOW: u64 = Packet::OFFSETS / 2;

impl<'a> Setup<'a> {
    pub(crate) fn new(plan: &'a Plan) -> Self {
        let (fabric, record) = (&plan.fabric, &plan.record);
        let row_length =
            (plan.wire.max_frame().max(plan.wire.cnp).max(plan.wire.ack).max(plan.wire.pfc) + 1) as usize;
        let mut rates: Vec<model::Rate> = Vec::new();
        let mut transmission = Vec::new();
        let listed = Listed::new(&plan.lost);
        let mut row_of = |rate: model::Rate| {
            let row = rates.iter().position(|r| *r == rate).unwrap_or_else(|| {
                rates.push(rate);
                let time = |frame| plan.wire.transmission(rate, frame).ps() as u32;
                transmission.extend((0..row_length as u32).map(time));
                rates.len() - 1
            });
            (row * row_length) as u32
        };
        let mut ports = Vec::with_capacity(fabric.links().len());
        for (index, link) in fabric.links().iter().enumerate() {
            let id = LinkId(index as u32);
            ports.push(PortFacts {
                delay: link.delay.ps(),
                row: row_of(link.rate),
                peer: link.to.0,
                peer_port: link.peer_port,
                to_host: fabric.is_host(link.to),
                channels: fabric.channels_on(link),
                loss: link.loss,
                listed: listed.concerns(id),
                fails: false,
                gray: false,
                noisy: plan.noise.links.binary_search(&id).is_ok(),
                track: record.links.binary_search(&id).map_or(NO_TRACK, |t| t as u32),
                tapped: record.taps.binary_search(&id).is_ok(),
            });
        }
        let failing = Failing::new(plan, &mut row_of);
        for (link, port) in (0..).map(LinkId).zip(&mut ports) {
            port.fails = failing.concerns(link);
            port.gray = plan.failures.is_gray(link);
        }
        let known = if plan.wire.hops > 0 || plan.digest.is_some() { plan.rates() } else { Vec::new() };
        let number = |rate: &model::Rate| known.binary_search(rate).ok().map(|n| n as u8);
        let rate_numbers = rates.iter().filter_map(number).collect();
        let mut sends = vec![0u32; fabric.hosts()];
        let sender_slot = plan
            .qps
            .iter()
            .map(|qp| {
                let home = plan.sharing.map_or(qp.from, |sharing| sharing.home(qp.from));
                let count = &mut sends[home.index()];
                *count += 1;
                *count - 1
            })
            .collect();
        // An even length splits into two halves.
        let window = (window(plan) & !1).max(1);
        let key = |purpose, n: usize| -> Vec<Key> {
            (0..n).map(|i| Key::new(plan.seed, purpose, i as u64)).collect()
        };
        Setup {
            plan,
            ports,
            transmission,
            rate_numbers,
            row_length: row_length as u32,
            window,
            reach: Reach::new(plan),
            sender_slot,
            sends,
            followed: match plan.record.follow.is_empty() {
                true => Vec::new(),
                false => (0..plan.qps.len()).map(|qp| plan.record.follows(QpId(qp as u32))).collect(),
            },
            several_classes: plan.jobs.windows(2).any(|pair| pair[0].class != pair[1].class),
            losses: key(Purpose::Loss, fabric.links().len()),
            listed,
            noisy: Noisy::new(plan),
            failing,
            marks: key(Purpose::Mark, fabric.links().len()),
            class_of: Kind::ALL.map(|kind| plan.classes.of(kind) as u8),
            own_queues: match plan.own_queues.is_empty() {
                true => Vec::new(),
                false => (0..plan.qps.len()).map(|qp| plan.class_of(QpId(qp as u32))).collect(),
            },
            data_class: plan.classes.of(Kind::Data),
            marks_data: plan.classes.data().marked,
            marks_by_length: plan.own_queues.is_empty()
                && !plan.ports.iter().any(|port| port.marking.is_some_and(|marking| marking.weight > 0)),
            plain_queues: plan.has_plain_queues(),
            with_data: plan.classes.with_data(),
            cnps_with_acks: plan.classes.of(Kind::Cnp) == plan.classes.of(Kind::Ack),
            first_replies: first_replies(plan),
            charged: plan.classes.charged(),
            posted: None,
            behind: AtomicU64::new(0),
            has_loops: plan.failures.is_by_switch(),
            grants: Grants::new(plan),
        }
    }

    /// Message `i` of a queue pair.
    #[inline]
    pub(crate) fn message(&self, qp: QpId, i: u32) -> AnyMessage<'_> {
        let planned = &self.plan.qps[qp.index()].messages;
        match &self.posted {
            Some(posted) if planned.is_empty() => AnyMessage::Posted(&posted.of(qp)[i as usize]),
            _ => AnyMessage::Planned(&self.plan.messages[(planned.start + i) as usize]),
        }
    }

    /// The number of each queue pair's first message in the plan with all posted messages, see [`Posted::added_to`].
    pub(crate) fn first_messages(&self) -> Vec<u32> {
        let planned = self.plan.qps.iter().map(|qp| &qp.messages);
        let Some(posted) = self.posted.as_ref().filter(|_| self.plan.posted.is_some()) else {
            return planned.map(|messages| messages.start).collect();
        };
        let mut next = 0;
        (0..)
            .map(QpId)
            .zip(planned)
            .map(|(qp, planned)| {
                let first = next;
                next += planned.len() as u32 + posted.of(qp).len() as u32;
                first
            })
            .collect()
    }

    /// The posted messages of a queue pair; `None` if its messages are in the plan.
    #[inline]
    pub(crate) fn posted(&self, qp: QpId) -> Option<&[PostedMessage]> {
        let posted = self.posted.as_ref()?;
        self.plan.qps[qp.index()].messages.is_empty().then(|| posted.of(qp))
    }

    pub(crate) fn fabric(&self) -> &'a Fabric {
        &self.plan.fabric
    }

    /// The link in the opposite direction of link `gp`.
    pub(crate) fn feeding(&self, gp: usize) -> usize {
        self.fabric().reverse(LinkId(gp as u32)).index()
    }

    /// Largest queue of data at a port whose switch caps queues, bytes.
    #[inline(always)]
    pub(crate) fn cap(&self, gp: usize) -> u64 {
        self.plan.ports[gp].cap.get()
    }

    /// Transmission time of a frame at the rate of `row`, ps.
    #[inline]
    pub(crate) fn time_on_wire(&self, row: u32, frame: u32) -> u64 {
        self.transmission[(row + frame) as usize] as u64
    }

    /// Transmission times at the rate of `row`, by frame size.
    #[inline]
    pub(crate) fn times_on_wire(&self, row: u32) -> &[u32] {
        &self.transmission[row as usize..]
    }

    /// Transmission times by frame size, for each rate.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &[u32]> {
        self.transmission.chunks(self.row_length as usize)
    }

    /// The fields of INT records of port `gp` at the rate of `row`, in runs with telemetry.
    #[inline(always)]
    pub(crate) fn hop<A: Annex>(&self, gp: usize, row: u32) -> TracedLink {
        match A::TELEMETRY && !self.rate_numbers.is_empty() {
            true => {
                let rate = self.rate_numbers[(row / self.row_length) as usize];
                TracedLink::new(gp as u32, rate, self.plan.wire.hops)
            }
            false => TracedLink::default(),
        }
    }

    /// Writes an INT record, or the code of a digest, on data whose frame starts at a switch, in runs with telemetry.
    /// `meters` are those of the port.
    #[inline(always)]
    pub(crate) fn trace<A: Annex>(&self, pkt: &mut Parcel<A>, link: LinkState, meters: &mut A::Meters) {
        if A::TELEMETRY && pkt.is_data() {
            match &self.plan.digest {
                None => pkt.annex.trace(&link.hop, Time(link.at), link.sent, link.queue),
                Some(digest) => self.fold(digest, pkt, &link, meters),
            }
        }
    }

    /// Folds a link into the digest on a data packet.
    #[inline(never)]
    fn fold<A: Annex>(&self, digest: &Digest, pkt: &mut Parcel<A>, link: &LinkState, meters: &mut A::Meters) {
        for meter in meters.as_mut() {
            let sight = Sight { link: &link.hop, at: Time(link.at), sent: link.sent, queue: link.queue };
            if let Some(code) = digest.see(meter, &sight, &pkt.label) {
                pkt.annex.fold(code);
            }
        }
    }

    /// How a packet crosses a link that may lose it, if it starts at `at` and takes `time` on the wire.
    ///
    /// With link-level retry, the receiver sees the gap when the next frame arrives, and asks for all frames from the lost one on. What
    /// was sent meanwhile is sent again. So the wire is lost from the start of the frame until the request has arrived, whether or
    /// not other frames were there to send, and then the frame starts anew. An outage of the link is no gap.
    #[inline(never)]
    pub(crate) fn crosses(&self, gp: usize, at: u64, time: u64, pkt: &Packet) -> Crossing {
        let delay = self.ports[gp].delay;
        let mut crossing = Crossing::default();
        loop {
            let start = at + crossing.late;
            crossing.lost = self.loses(gp, start, start + time + delay, pkt);
            let again = match (crossing.lost, self.plan.noise.llr) {
                (Some(LinkLoss::Outage { .. }) | None, _) | (_, None) => false,
                (_, Some(most)) => crossing.replays < u64::from(most),
            };
            if !again {
                return crossing;
            }
            let link = &self.fabric().links()[gp];
            let next = self.plan.wire.transmission(link.rate, self.plan.wire.max_frame()).ps();
            crossing.replays += 1;
            crossing.late += time + next + link.rate.time_for(CONTROL_WORD).ps() + 2 * delay;
        }
    }

    /// How the link loses a packet that starts at `at` and would arrive at `arrival`, if it does. Called once for every
    /// start.
    #[inline]
    pub(crate) fn loses(&self, gp: usize, at: u64, arrival: u64, pkt: &Packet) -> Option<LinkLoss> {
        let PortFacts { loss, listed, fails, gray, noisy, delay, .. } = self.ports[gp];
        if fails && let Some(outage) = self.failing.loses(gp, at, arrival) {
            return Some(outage);
        }
        // A bad link turns good with whatever frame, so this comes first.
        let noise = if noisy { self.noisy.loses(gp, at..arrival - delay) } else { None };
        if let Some(noise) = noise.filter(|_| !matches!(pkt.kind(), Kind::Cnp | Kind::Signal)) {
            return Some(noise);
        }
        if listed && self.listed.loses(gp, pkt) {
            return Some(LinkLoss::Chance);
        }
        let change = if gray { self.plan.failures.loss(LinkId(gp as u32), Time(at)) } else { None };
        let (how, loss) = match change {
            Some(change) if change.loss != loss => (LinkLoss::Gray { since: change.at.ps() }, change.loss),
            _ => (LinkLoss::Chance, loss),
        };
        let lost = !loss.is_zero()
            && (pkt.is_data() || self.plan.lose_replies && !matches!(pkt.kind(), Kind::Cnp | Kind::Signal))
            && loss.hits(self.losses[gp].draw(at));
        lost.then_some(how)
    }

    /// Time at which a pause or resume frame, made at `now`, has left a port whose wire is free from `free` on. It waits for the frame on
    /// the wire. Link-level retry repeats no such frames, so they leave while it waits for a request: after one frame at most.
    pub(crate) fn pause_leaves(&self, row: u32, free: u64, now: u64) -> u64 {
        let wire = &self.plan.wire;
        if wire.pfc == 0 {
            return now;
        }
        let one_frame = now + self.time_on_wire(row, wire.max_frame());
        let free = if self.plan.noise.llr.is_some() { free.min(one_frame) } else { free };
        free.max(now) + self.time_on_wire(row, wire.pfc)
    }

    /// True if a pause frame is lost that port `gp` makes at `at` and that would arrive at `arrival`.
    #[inline]
    pub(crate) fn loses_pause(&self, gp: usize, at: u64, arrival: u64) -> bool {
        if self.failing.is_empty() {
            return false;
        }
        let reverse = self.fabric().reverse(LinkId(gp as u32)).index();
        self.failing.loses_pause([gp, reverse], at, arrival)
    }

    /// The routes of a switch after a change of routes; `None` stands for the first routes.
    #[inline]
    pub(crate) fn router(&self, node: NodeId, route_change: Option<usize>) -> Router<'a> {
        let failures = &self.plan.failures;
        let routing =
            route_change.and_then(|route_change| failures.routing(failures.change_at_switch(route_change)));
        self.fabric().router_by(routing, node)
    }

    /// Counts the switch at which a packet arrives; true if the packet has run in circles. Only where packets can
    /// ([`Setup::has_loops`]).
    #[inline]
    pub(crate) fn counts_out<A: Annex>(&self, pkt: &mut Parcel<A>) -> bool {
        let (state, switches) = pkt.annex.route_state().counted();
        pkt.annex.set_route_state(state);
        switches >= HOP_LIMIT
    }

    /// True if switches change their routes at different times, so that packets can run in circles.
    #[inline]
    pub(crate) fn has_loops(&self) -> bool {
        self.has_loops
    }

    /// The endpoint whose host has the queue pairs of `host`: itself, unless its NIC shares its ports.
    #[inline]
    pub(crate) fn home(&self, host: HostId) -> HostId {
        self.plan.sharing.map_or(host, |sharing| sharing.home(host))
    }

    /// The routing that applies at `now`.
    fn routing_at(&self, now: u64) -> Option<&'a Routing> {
        let failures = &self.plan.failures;
        let changes = failures.route_changes();
        let last = changes[..changes.partition_point(|change| change.at.ps() <= now)].last()?;
        failures.routing(last)
    }

    /// The own port and the destination by which packets of a bond travel at `now`, see [`PortSharing::joined`]; those of a queue pair
    /// on its own device.
    pub(crate) fn joined(&self, sharing: PortSharing, from: HostId, to: HostId, now: u64) -> (usize, HostId) {
        let (from, to) = match sharing.choice {
            PortChoice::Devices(_) => (from, to),
            _ => sharing.joined(self.fabric(), self.routing_at(now), from, to),
        };
        (sharing.place(from), to)
    }

    /// True if packets may travel between two ports at `now`: their links work, and routes join them.
    pub(crate) fn connects(&self, from: HostId, to: HostId, now: u64) -> bool {
        let links = [from, to].map(|host| LinkId(host.0));
        links.iter().all(|&link| !self.is_dead(link, now) && !self.is_dead(self.fabric().reverse(link), now))
            && self.fabric().reaches_by(self.routing_at(now), from, to)
    }

    /// True if a link is dead at `now`.
    pub(crate) fn is_dead(&self, link: LinkId, now: u64) -> bool {
        let changes = self.plan.failures.of(link);
        let last = changes[..changes.partition_point(|change| change.at.ps() <= now)].last();
        last.is_some_and(|change| change.rate.is_none())
    }

    /// The ports by which packets may travel at `now`, see [`PortSharing::open`].
    pub(crate) fn open(&self, sharing: PortSharing, from: HostId, to: HostId, now: u64) -> u8 {
        sharing.open(self.fabric(), self.routing_at(now), from, to) as u8
    }

    /// The toss of a coin at port `gp` at `at`.
    pub(crate) fn coin(&self, gp: usize, at: u64) -> bool {
        Key::new(self.plan.seed, Purpose::Cut, gp as u64).draw(self.by_run(at)) >> 63 != 0
    }

    /// The marking of a port's queue of data.
    #[inline]
    pub(crate) fn marking(&self, gp: usize) -> Option<&'a Marking> {
        self.plan.ports[gp].marking.as_ref().filter(|_| self.marks_data)
    }

    /// The marking of a port's queue of a class in the plan's table.
    pub(crate) fn marking_in(&self, class: usize, gp: usize) -> Option<&'a Marking> {
        let marked = self.plan.classes.all()[class].marked;
        self.port_settings(class, gp).marking.as_ref().filter(|_| marked)
    }

    /// The settings of a port for a class in the plan's table.
    pub(crate) fn port_settings(&self, class: usize, gp: usize) -> &'a PortSettings {
        match self.plan.classes.all()[class].group {
            0 => &self.plan.ports[gp],
            group => &self.plan.own_queues.groups[usize::from(group) - 1].ports[gp],
        }
    }

    /// True if port `gp` marks a packet at `at` when its queue has `queue` bytes.
    #[inline]
    pub(crate) fn marks(&self, marking: &Marking, gp: usize, at: u64, queue: u64) -> bool {
        marking.marks(queue, || self.marks[gp].draw(self.by_run(at)))
    }

    /// A time by the engine's clock as one by the run's, ps.
    #[inline]
    pub(crate) fn by_run(&self, at: u64) -> u64 {
        at + self.behind.load(Ordering::Relaxed)
    }

    /// The run's clock jumps by `span`, ps.
    pub(crate) fn jump(&self, span: u64) {
        self.behind.fetch_add(span, Ordering::Relaxed);
    }

    /// Keys of a switch: one for its scheme's random draws, and its hash salt.
    pub(crate) fn scheme_keys(&self, node: NodeId) -> (Key, u64) {
        (Key::new(self.plan.seed, Purpose::Scheme, node.0 as u64), self.plan.salt(node))
    }

    /// True if single events of a queue pair are recorded.
    #[inline]
    pub(crate) fn follows(&self, qp: QpId) -> bool {
        self.followed.get(qp.index()).copied().unwrap_or(false)
    }

    /// True if the run follows any queue pair.
    #[inline]
    pub(crate) fn follows_any(&self) -> bool {
        !self.followed.is_empty()
    }

    /// Kinds of replies that leave a host before all others, if its port keeps replies in the same way as with plain classes.
    #[inline]
    pub(crate) fn first_replies<A: Annex>(&self) -> Option<Kinds> {
        // Without SACKs, hosts expect that all their NACKs wait with ACKs.
        self.first_replies.filter(|first| A::SACKS || !first.has(Kind::Nack))
    }

    /// The class in which a packet waits if the plan's classes are plain; class 0 leaves first.
    #[inline]
    pub(crate) fn class(&self, pkt: &Packet) -> usize {
        match pkt.kind() {
            _ if self.with_data.take(pkt) => DATA,
            Kind::Cnp if !self.cnps_with_acks => 0,
            _ => 1,
        }
    }

    /// Number of the class in which a packet waits, in the plan's table.
    #[inline]
    pub(crate) fn class_in_table(&self, pkt: &Packet) -> usize {
        match self.own_queues.get(pkt.qp().index()) {
            None => self.class_of[pkt.kind() as usize].into(),
            Some(class) => self.plan.own_queues.rows[usize::from(*class)][pkt.kind() as usize].into(),
        }
    }

    /// True if data waits in a class of the plan's table.
    #[inline]
    pub(crate) fn has_data(&self, class: usize) -> bool {
        self.plan.classes.all()[class].kinds.has(Kind::Data)
    }

    /// Group of the class in which a packet waits, see [`model::plan::Class::group`].
    #[inline]
    pub(crate) fn group(&self, pkt: &Packet) -> u8 {
        match self.has_own_queues() {
            false => 0,
            true => self.plan.classes.all()[self.class_in_table(pkt)].group,
        }
    }

    /// True if some flows have queues of their own.
    #[inline]
    pub(crate) fn has_own_queues(&self) -> bool {
        !self.own_queues.is_empty()
    }

    /// Number of bits in masks of pauses: the virtual channels of each group of classes.
    pub(crate) fn priorities(&self) -> u8 {
        self.fabric().channels() * (1 + self.plan.own_queues.groups.len() as u8)
    }

    /// The lossless priorities of port `gp` of a switch, as a mask of pauses: only these can be paused.
    pub(crate) fn lossless_priorities(&self, gp: usize) -> u8 {
        let (fabric, plan) = (self.fabric(), self.plan);
        let switch = fabric.switch_number(fabric.links()[gp].from);
        let of_link = u8::MAX >> (u8::BITS - u32::from(self.ports[gp].channels));
        let groups = (0u8..).zip(plan.settings_of_groups());
        let lossless = groups.filter(|(_, switches)| switches[switch].flow_control.is_lossless());
        lossless.fold(0, |mask, (group, _)| mask | of_link << (group * fabric.channels()))
    }

    /// True if a port of a host with these paused priorities may start no data. If flows have queues of their own, the host holds
    /// back each queue pair by itself.
    #[inline]
    pub(crate) fn holds_data(&self, paused: u8) -> bool {
        paused != 0 && !self.has_own_queues() && self.plan.classes.data().charged
    }

    /// The bits of pauses that hold back the data of a queue pair at its host, where links have one channel.
    pub(crate) fn holding(&self, qp: QpId) -> u8 {
        let class = match self.own_queues.get(qp.index()) {
            None => self.data_class,
            Some(class) => self.plan.own_queues.rows[usize::from(*class)][Kind::Data as usize].into(),
        };
        let class = &self.plan.classes.all()[class];
        match (class.charged, self.has_own_queues()) {
            (false, _) => 0,
            (true, false) => u8::MAX,
            (true, true) => 1 << (class.group * self.fabric().channels()),
        }
    }
}

impl Setup<'_> {
    /// What link `gp` may use of a priority.
    pub(crate) fn grant(&self, gp: usize, priority: u8) -> Option<Grant> {
        self.grants.of(gp, priority / self.fabric().channels())
    }

    /// What a packet takes of the credits of link `gp`, and its priority.
    #[inline]
    pub(crate) fn taken<A: Annex>(&self, gp: usize, pkt: &Parcel<A>) -> Option<(u8, Grant)> {
        if !self.grants.any() {
            return None;
        }
        let class = &self.plan.classes.all()[self.class_in_table(pkt)];
        let grant = self.grants.of(gp, class.group).filter(|_| class.charged)?;
        let leg = pkt.annex.route_state().leg();
        Some((class.group * self.fabric().channels() + channel(leg, self.ports[gp].channels), grant))
    }
}

/// [`Setup::first_replies`] of a plan.
fn first_replies(plan: &Plan) -> Option<Kinds> {
    let classes = &plan.classes;
    let (data, acks) = (classes.of(Kind::Data), classes.of(Kind::Ack));
    let is_usual = |(number, class): (usize, &Class)| class.group == 0 && class.charged == (number == data);
    let usual = classes.all().iter().enumerate().all(is_usual) && plan.own_queues.is_empty();
    let of_others = [Kind::Nack, Kind::Cnp, Kind::Control, Kind::Probe].map(|kind| classes.of(kind));
    let mut others = of_others.into_iter().filter(|class| *class != acks);
    match others.next() {
        _ if !usual || plan.has_credits() => None,
        None => Some(Kinds::of(&[])),
        Some(first) if first < acks && first != data && others.all(|class| class == first) => {
            Some(classes.all()[first].kinds)
        }
        Some(_) => None,
    }
}

/// The virtual channel of a leg: the leg's own, or the last one.
#[inline(always)]
pub(crate) fn channel(leg: u8, channels: u8) -> u8 {
    leg.min(channels - 1)
}

/// The state of a switch's link at the start of a frame, for telemetry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkState {
    /// Fields that do not change from frame to frame.
    pub(crate) hop: TracedLink,
    pub(crate) at: u64,
    /// Bytes sent before the frame.
    pub(crate) sent: u64,
    /// Bytes that wait in the class of data.
    pub(crate) queue: u64,
}

/// The class of data if classes are plain. PFC pauses only this class, and buffers charge only this class.
pub(crate) const DATA: usize = 2;
/// Number of plain classes.
pub(crate) const CLASSES: usize = 3;

/// The least time from the start of a packet or a pause frame to its arrival, by link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach {
    /// Size of the smallest packet, bytes; `None` if switches send pause frames, which take no transmission time.
    smallest: Option<u32>,
}

impl Reach {
    fn new(plan: &Plan) -> Self {
        let switches = || plan.settings_of_groups().flatten();
        let lossless = switches().any(|s| s.flow_control.is_lossless());
        let cut = |s: &SwitchSettings| match s.overflow {
            Overflow::Cut(cut) => cut.frame,
            Overflow::Drop => u32::MAX,
        };
        let cut = switches().map(cut).min().unwrap_or(u32::MAX);
        Reach { smallest: (!lossless).then(|| plan.wire.smallest_frame().min(cut)) }
    }

    /// The reach of a link, ps.
    pub(crate) fn of(self, plan: &Plan, link: &Link) -> u64 {
        let rate = fastest(&plan.failures, plan.fabric.link(link.from, link.port), link.rate);
        let frame = self.smallest.map_or(Time::ZERO, |frame| plan.wire.transmission(rate, frame));
        link.delay.ps() + frame.ps()
    }
}

/// Most times by which the window is longer than the shortest reach of any link. Buffers are sampled and runs are
/// checked once per window, so it must not be much longer than the shortest link. Our choice.
const MOST_STEPS: u64 = 16;

/// The least reach of any link, ps.
pub(crate) fn least_reach(plan: &Plan) -> u64 {
    let reach = Reach::new(plan);
    let all = plan.fabric.links().iter().map(|link| reach.of(plan, link));
    all.min().unwrap_or(LONGEST_WINDOW)
}

/// Length of the longest window that a plan's links allow: no group of nodes affects another one within it. Links inside
/// groups may be shorter: their groups step through the window.
pub fn window(plan: &Plan) -> u64 {
    let (fabric, reach) = (&plan.fabric, Reach::new(plan));
    let of = |link: &Link| reach.of(plan, link).min(LONGEST_WINDOW);
    let least = fabric.links().iter().map(of).min().unwrap_or(LONGEST_WINDOW);
    let group = division::group_of_each_node(fabric);
    let leaves = |link: &&Link| group[link.from.index()] != group[link.to.index()];
    let between = fabric.links().iter().filter(leaves).map(of).min();
    // Two nodes of one kind inside a group need at least 2 ps.
    if least < 2 {
        return least;
    }
    between.unwrap_or(least).min(MOST_STEPS * least).min(LONGEST_WINDOW)
}

/// Most windows that make up a full one. With more of them, the reference engine is about as fast. Our choice.
const MOST_PARTS: u64 = 64;

/// Length of the windows of a run that a program drives; `None` if no window fits the plan's links.
pub(crate) fn live_window(setup: &Setup<'_>) -> Option<u64> {
    length(setup.window, least_reach(setup.plan))
}

/// Length of windows in which no node affects another one: the longest part of a full window that the least reach of any
/// link allows. The checks between full windows need whole parts.
fn length(full: u64, reach: u64) -> Option<u64> {
    let parts = (full.div_ceil(reach.max(1))..=MOST_PARTS).find(|parts| full.is_multiple_of(*parts))?;
    Some(full / parts)
}
