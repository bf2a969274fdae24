//! Load balancing inside a switch.

use crate::draw::{Key, Purpose, below};
use crate::fabric::{Detours, Router};
use crate::plan::{Plan, Qp};
use crate::{Detour, Fabric, HostId, Kind, LinkId, NodeId, Packet, PortIndex, QpId, Routing, Time};
use std::ops::Range;

/// A scheme's decision on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The packet leaves by this port.
    Forward(PortIndex),
    /// The engine keeps the packet, still charged to the buffer, until the scheme releases it by its [`Cx::handle`].
    Hold,
    /// The packet ends here. A dropped ACK, NACK or CNP counts as blocked, a dropped signal as received.
    Drop,
}

/// The inputs and abilities that a scheme needs. Inputs that no scheme needs cost nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interest {
    /// The scheme reads [`Cx::queued`].
    pub queues: bool,
    /// The scheme needs `on_packet` also for packets with only one possible port.
    pub every_packet: bool,
    /// The scheme sends every ACK, NACK and CNP unchanged on the base path, or on that of its own entropy. An engine then
    /// calls [`Scheme::note_reply`] in place of `on_packet` for them.
    pub plain_replies: bool,
    /// The scheme needs `on_depart` for data that leaves towards a host.
    pub host_departures: bool,
    /// The scheme needs `on_start` for data that starts on the wire of any port, towards a host or a switch. It excludes
    /// [`Interest::local`].
    pub departures: bool,
    /// The scheme makes replies or signals ([`Cx::emit`]). An engine needs this to bound the queues of a lossy switch.
    pub makes_replies: bool,
    /// The scheme makes data packets. An engine needs this to bound the queues of a lossy switch.
    pub makes_data: bool,
    /// The scheme may send data over a detour ([`Cx::detours`]). It needs `on_packet` for all data from a host that has a
    /// detour.
    pub detours: bool,
    /// The scheme reads [`Cx::view`]. A run has one view, the first switch's; `scenario` refuses switches with different
    /// views. If any switch needs a view, all switches must set [`Interest::queues`].
    pub view: Option<QueueView>,
    /// The scheme acts on every port by itself, so that an engine may compute one port after the other instead of one event
    /// after the other: [`Scheme::choose`], [`Scheme::on_nack`] and [`Scheme::on_leave`] do all that [`Scheme::on_packet`]
    /// and [`Scheme::on_depart`] do, until routes change. An engine calls the former in any order of ports, but for each
    /// port in the order of events there. The scheme never asks to be woken.
    pub local: bool,
    /// With [`Interest::local`]: [`Scheme::choose`] returns [`Arrived::base_path`] for every packet, so an engine need not ask.
    pub by_flow: bool,
    /// With [`Interest::local`]: the scheme also needs [`Scheme::on_pass`], and watches no departures.
    pub passes: bool,
    /// The scheme decides by the arrivals alone, in order of time: it reads no queues, watches no departures, holds no packets,
    /// pauses nothing and never asks to be woken. What it makes leaves by another port than the packet that causes it. An
    /// engine may then decide on all arrivals of a stretch of time first, and compute the ports afterwards.
    pub by_arrivals: bool,
    /// The scheme has so much state per packet that the engine should call [`Scheme::expect`].
    pub announcements: bool,
}

impl Interest {
    /// True if the scheme watches departures at some port.
    pub fn watches(&self) -> bool {
        self.host_departures || self.departures
    }
}

/// A delayed view of all switches' queues, see [`Cx::view`].
///
/// It models what a network could report to its switches: a snapshot at multiples of `period`, which reaches all switches
/// after `delay`. Both are rounded up to whole windows of the engine, since no information crosses the fabric faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueView {
    /// Time between two snapshots.
    pub period: Time,
    /// Time from a snapshot until every switch has it.
    pub delay: Time,
}

/// Number of a held packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Handle(pub u32);

/// A packet that a switch makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Emitted {
    /// The packet.
    pub packet: Packet,
    /// Tag of the packet.
    pub tag: u64,
    /// Egress port; `None` stands for the base path to the packet's host.
    pub port: Option<PortIndex>,
}

/// Requests of a handler, which the engine carries out after the handler has returned.
#[derive(Debug, Default)]
pub struct Effects {
    /// Packets that the switch makes.
    pub emitted: Vec<Emitted>,
    /// Held packets to send, each with its egress port.
    pub released: Vec<(Handle, PortIndex)>,
    /// Ports whose far ends pause (true) or resume (false).
    pub pauses: Vec<(PortIndex, bool)>,
    /// Time of the next `on_wake`; the earliest request counts.
    pub wake: Option<Time>,
}

impl Effects {
    /// True if there is no request.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.emitted.is_empty() && self.released.is_empty() && self.pauses.is_empty() && self.wake.is_none()
    }
}

/// Context of a handler: the present state of its own switch, and nothing else.
#[derive(Debug)]
pub struct Cx<'a> {
    /// Present time.
    pub now: Time,
    /// Port at which the packet came in; [`PortIndex::VIRTUAL`] in `on_depart` and `on_wake`.
    pub ingress: PortIndex,
    /// True if the packet came from a host of this switch.
    pub from_host: bool,
    /// True if the packet goes to a host of this switch. If `from_host` holds as well, it stays inside the rack.
    pub to_host: bool,
    /// Queue length of every port of this switch in bytes, without the frame on the wire. With [`Interest::queues`] it is
    /// exact for [`Scheme::queues_read`] if [`Scheme::reads_queues`] agrees, and in `on_wake` for all ports. Other values have no meaning.
    /// Empty in `on_depart`.
    /// A queue beyond 4 GiB counts as 4 GiB.
    pub queued: &'a [u32],
    /// Queue length of every port of every switch in bytes, by [`crate::LinkId`], in the latest [`QueueView`] that has
    /// arrived; all 0 before the first. Empty outside `on_packet` and without [`Interest::view`].
    pub view: &'a [u32],
    /// The entropy by which the packet's path is chosen ([`crate::Annex::path_entropy`]).
    pub entropy: u16,
    /// The entropy of the packet that an ACK or a NACK answers. It is 0 for all other packets, and for replies that switches
    /// make.
    pub echoed: u16,
    /// Tag of a data packet or a signal ([`crate::Annex::tag`]). A value that `on_packet` writes here travels with the
    /// packet. It is always 0 in runs whose packets have no annex.
    pub tag: u64,
    /// Detours that the packet may take, in a fabric of groups, for data from a host of this switch. [`Cx::queued`] is
    /// then exact for all ports.
    pub detours: &'a Detours<'a>,
    /// Detour that the scheme chooses for the packet, one of `detours`; the port of the verdict must lead there. Schemes in
    /// later switches then get the ports towards the detour.
    pub via: Option<Detour>,
    keys: SwitchKeys,
    draws: u64,
    effects: &'a mut Effects,
}

/// A packet's arrival, as far as a scheme with [`Interest::local`] may know it.
#[derive(Clone, Copy, Debug)]
pub struct Arrived {
    /// Present time.
    pub now: Time,
    /// Port at which the packet came in.
    pub ingress: PortIndex,
    /// True if the packet came from a host of this switch.
    pub from_host: bool,
    /// Key of the switch's draws for [`crate::draw::Purpose::Scheme`].
    pub key: Key,
    /// The switch's hash of the packet's 5-tuple, see [`Cx::hash`].
    pub flow: u64,
}

impl Arrived {
    /// A uniform number below `n`, like the first [`Cx::pick`] of this arrival.
    #[inline]
    pub fn pick(&self, n: usize) -> usize {
        self.pick_nth(1, n)
    }

    /// A uniform number below `n`, like [`Cx::pick`] number `nth` of this arrival, which counts from 1.
    #[inline]
    pub fn pick_nth(&self, nth: u64, n: usize) -> usize {
        below(self.key.draw2(self.now.ps(), (self.ingress.0 as u64) << 32 | nth), n)
    }

    /// The switch's hash of the packet, reduced to `0..n`, as in [`Cx::hash`].
    #[inline(always)]
    pub fn hash(&self, n: usize) -> usize {
        below(self.flow, n)
    }

    /// The base path, as in [`Cx::base_path`].
    #[inline(always)]
    pub fn base_path(&self, ports: &[PortIndex]) -> PortIndex {
        if ports.len() == 1 { ports[0] } else { ports[self.hash(ports.len())] }
    }
}

/// ACKs from one host to other racks, in order, of which a scheme has not seen any. A scheme may leave them until they
/// matter.
#[derive(Clone, Copy, Debug)]
pub struct Acks<'a> {
    acks: &'a [Packet],
    /// The first word of later packets.
    limit: u64,
}

impl<'a> Acks<'a> {
    /// ACKs in the order of their first words.
    pub fn new(acks: &'a [Packet]) -> Self {
        Acks { acks, limit: 0 }
    }

    /// From now on, yields the ACKs whose first word is below `limit`.
    #[inline(always)]
    pub fn until(&mut self, limit: u64) -> &mut Self {
        self.limit = limit;
        self
    }

    /// Leaves out the ACKs that would come next, because none of them matters.
    #[inline]
    pub fn skip(&mut self) {
        self.acks = &self.acks[self.acks.partition_point(|ack| ack.word() < self.limit)..];
    }
}

impl Iterator for Acks<'_> {
    type Item = Packet;

    #[inline]
    fn next(&mut self) -> Option<Packet> {
        let (first, rest) = self.acks.split_first()?;
        (first.word() < self.limit).then(|| self.acks = rest)?;
        Some(*first)
    }
}

/// Keys of one switch for draws, hashes and held packets.
#[derive(Clone, Copy, Debug)]
pub struct SwitchKeys {
    /// Key of the switch's draws for [`crate::draw::Purpose::Scheme`].
    pub key: Key,
    /// Salt of the switch's hashes.
    pub salt: u64,
    /// Handle of the next held packet.
    pub handle: Handle,
}

impl<'a> Cx<'a> {
    /// A context without a packet, for engines and for tests of schemes.
    #[inline]
    pub fn new(now: Time, keys: SwitchKeys, effects: &'a mut Effects) -> Self {
        Cx {
            now,
            ingress: PortIndex::VIRTUAL,
            from_host: false,
            to_host: false,
            queued: &[],
            view: &[],
            entropy: 0,
            echoed: 0,
            tag: 0,
            detours: Detours::NONE,
            via: None,
            keys,
            draws: 0,
            effects,
        }
    }

    /// This context with a packet's ingress port.
    #[inline]
    #[must_use]
    pub fn with_ingress(self, ingress: PortIndex) -> Self {
        Cx { ingress, ..self }
    }

    /// This context with [`Cx::from_host`] and [`Cx::to_host`] of a packet.
    #[inline]
    #[must_use]
    pub fn with_hosts(self, from_host: bool, to_host: bool) -> Self {
        Cx { from_host, to_host, ..self }
    }

    /// This context with the queues of the switch.
    #[inline]
    #[must_use]
    pub fn with_queued(self, queued: &'a [u32]) -> Self {
        Cx { queued, ..self }
    }

    /// This context with the detours that a packet may take, and a view of all queues.
    #[inline]
    #[must_use]
    pub fn with_detours(self, detours: &'a Detours<'a>, view: &'a [u32]) -> Self {
        Cx { detours, view, ..self }
    }

    /// This context with the entropy of a data packet.
    #[inline]
    #[must_use]
    pub fn with_entropy(self, entropy: u16) -> Self {
        Cx { entropy, ..self }
    }

    /// This context with the tag of a packet.
    #[inline]
    #[must_use]
    pub fn with_tag(self, tag: u64) -> Self {
        Cx { tag, ..self }
    }

    /// From here on, draws are other ones than before, whether those came from the context or from [`Cx::arrived`].
    #[inline]
    pub fn draw_anew(&mut self) {
        // Our choice: no decision draws as often.
        self.draws = 1 << 16;
    }

    /// A uniform 64-bit number: a new one at every call, and the same sequence in every run.
    #[inline]
    pub fn draw(&mut self) -> u64 {
        self.draws += 1;
        self.keys.key.draw2(self.now.ps(), (self.ingress.0 as u64) << 32 | self.draws)
    }

    /// A uniform number below `n`.
    #[inline]
    pub fn pick(&mut self, n: usize) -> usize {
        below(self.draw(), n)
    }

    /// The switch's hash of a packet's 5-tuple, reduced to `0..n`. All packets of one direction of a queue pair with the
    /// same entropy have the same hash.
    #[inline]
    pub fn hash(&self, pkt: &Packet, n: usize) -> usize {
        below(flow_of(self.keys.salt, flow_tuple(pkt, self.entropy)), n)
    }

    /// A hash like [`Cx::hash`], independent for every value of `what`.
    #[inline]
    pub fn hash_for(&self, pkt: &Packet, what: u64, n: usize) -> usize {
        below(Key::from_salt(self.keys.salt).draw2(tuple(pkt) ^ (self.entropy as u64) << 32, what), n)
    }

    /// The base path: the port to which the packet's flow hashes.
    #[inline]
    pub fn base_path(&self, pkt: &Packet, ports: &[PortIndex]) -> PortIndex {
        if ports.len() == 1 { ports[0] } else { ports[self.hash(pkt, ports.len())] }
    }

    /// The arrival of this packet.
    #[inline(always)]
    pub fn arrived(&self, pkt: &Packet) -> Arrived {
        let Cx { now, ingress, from_host, entropy, keys, .. } = *self;
        Arrived { now, ingress, from_host, key: keys.key, flow: flow_of(keys.salt, flow_tuple(pkt, entropy)) }
    }

    /// Sends a packet that this switch makes, such as a NACK. The packet takes the base path and skips this switch's
    /// scheme.
    pub fn emit(&mut self, packet: Packet) {
        self.effects.emitted.push(Emitted { packet, tag: 0, port: None });
    }

    /// Sends a signal with this tag by `port`, or on the base path. The schemes of other switches get it if they set
    /// [`Interest::every_packet`], or if several ports lead to its host.
    pub fn signal(&mut self, packet: Packet, tag: u64, port: Option<PortIndex>) {
        self.effects.emitted.push(Emitted { packet, tag, port });
    }

    /// The handle under which the engine keeps this packet if the verdict is [`Verdict::Hold`].
    pub fn handle(&self) -> Handle {
        self.keys.handle
    }

    /// Sends a held packet by `port`.
    pub fn release(&mut self, handle: Handle, port: PortIndex) {
        self.effects.released.push((handle, port));
    }

    /// Sends a PFC frame that pauses data at the far end of `port`, or ends this pause; a pause by the buffer stays.
    /// Only for lossless fabrics: elsewhere an engine window may be too long for a pause.
    pub fn pause(&mut self, port: PortIndex, on: bool) {
        self.effects.pauses.push((port, on));
    }

    /// Requests `on_wake` at `at`, which must be after [`Cx::now`].
    pub fn wake_at(&mut self, at: Time) {
        self.effects.wake = Some(self.effects.wake.map_or(at, |w| w.min(at)));
    }
}

/// A switch's hash, by its `salt`, of the 5-tuple of a packet without entropy, reduced to `0..n`.
#[inline]
pub fn flow_hash(salt: u64, pkt: &Packet, n: usize) -> usize {
    below(Key::from_salt(salt).draw(tuple(pkt)), n)
}

/// Number that stands for the 5-tuple of a packet.
#[inline(always)]
pub fn flow_tuple(pkt: &Packet, entropy: u16) -> u64 {
    tuple(pkt) ^ (entropy as u64) << 32
}

/// A switch's hash, by its `salt`, of a [`flow_tuple`].
#[inline]
pub fn flow_of(salt: u64, tuple: u64) -> u64 {
    Key::from_salt(salt).draw(tuple)
}

/// Number that stands for the 5-tuple of a packet without entropy; it differs between the directions of a queue pair.
#[inline]
fn tuple(pkt: &Packet) -> u64 {
    (pkt.qp().0 as u64) << 1 | !pkt.is_forward() as u64
}

/// A load-balancing scheme: a pure state machine, one instance per switch.
pub trait Scheme {
    /// Inputs that the scheme needs; constant for the run.
    fn interest(&self) -> Interest;

    /// Announces a packet that will arrive soon, so that the scheme can prefetch its state into the processor's cache. It
    /// changes no state, and the engine may skip it.
    fn expect(&self, _pkt: &Packet) {}

    /// True if `on_packet` may read [`Cx::queued`] for this packet with these ports and detours. An engine asks before it
    /// computes the queues, and only schemes with [`Interest::queues`].
    fn reads_queues(&self, _pkt: &Packet, _ports: &[PortIndex], _detours: &Detours<'_>) -> bool {
        true
    }

    /// Adds to `read` the ports whose queues `on_packet` may read for this packet, which has no detours. An engine asks after
    /// [`Scheme::reads_queues`] has agreed; other queues in [`Cx::queued`] then have no meaning.
    fn queues_read(&self, _arrived: Arrived, _pkt: &Packet, ports: &[PortIndex], read: &mut Vec<PortIndex>) {
        read.extend_from_slice(ports);
    }

    /// Handles a packet that has arrived. `ports` are the equal-cost ports towards its host, at least one.
    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &mut Packet, ports: &[PortIndex]) -> Verdict;

    /// Notes a reply that leaves on the base path by `port`. Only for schemes with [`Interest::plain_replies`] and
    /// [`Interest::every_packet`].
    #[inline]
    fn note_reply(&mut self, _now: Time, _pkt: &Packet, _port: PortIndex) {}

    /// Handles a data packet that starts on the wire towards a host.
    fn on_depart(&mut self, _cx: &mut Cx<'_>, _pkt: &Packet, _port: PortIndex) {}

    /// Handles a data packet that starts on the wire of `port`, after the switch's own marking. The scheme may mark or unmark
    /// the packet. Only for schemes with [`Interest::departures`].
    fn on_start(&mut self, _cx: &mut Cx<'_>, _pkt: &mut Packet, _port: PortIndex) {}

    /// The port of a packet that may leave by any of `ports`. Only for schemes with [`Interest::local`].
    #[inline(always)]
    fn choose(&self, arrived: Arrived, _pkt: &Packet, ports: &[PortIndex]) -> PortIndex {
        arrived.base_path(ports)
    }

    /// Handles a packet that joins `port`, with the tag of data or of a signal. Returns its new tag. Only for schemes with
    /// [`Interest::local`] and [`Interest::passes`].
    #[inline]
    fn on_pass(&mut self, _now: Time, _pkt: &Packet, tag: u64, _port: PortIndex) -> u64 {
        tag
    }

    /// Handles a NACK from the host at `port` to another rack; false if it ends here. `acks` are the ACKs from this host
    /// that came before. Only for schemes with [`Interest::local`] and [`Interest::host_departures`].
    #[inline]
    fn on_nack(&mut self, _pkt: &mut Packet, _port: PortIndex, _acks: &mut Acks<'_>) -> bool {
        true
    }

    /// Handles a data packet that starts on the wire to the host at `port`; `acks` are the ACKs from this host that came
    /// before. Returns the packet that the switch makes, if any, which takes the base path to another rack. Only for schemes
    /// with [`Interest::local`] and [`Interest::host_departures`].
    #[inline]
    fn on_leave(&mut self, _pkt: &Packet, _port: PortIndex, _acks: &mut Acks<'_>) -> Option<Packet> {
        None
    }

    /// Handles the ACKs from the host at `port` that no other call has taken, when no earlier departure is left. They pass
    /// unchanged. Only for schemes with [`Interest::local`] and [`Interest::host_departures`].
    #[inline]
    fn on_acks(&mut self, _port: PortIndex, _acks: &mut Acks<'_>) {}

    /// True if no ACK from the host at `port` matters before its next NACK. Only for schemes with [`Interest::local`].
    #[inline]
    fn is_quiet(&self, _port: PortIndex) -> bool {
        false
    }

    /// Handles the time that [`Cx::wake_at`] requested.
    fn on_wake(&mut self, _cx: &mut Cx<'_>) {}

    /// Handles a change of routes after links have failed or come back. From now on [`Scheme::on_packet`] gets the new
    /// ports, so table entries with other ports are stale. [`Cx::queued`] is empty.
    fn on_routes_change(&mut self, _cx: &mut Cx<'_>, _news: &Reroute<'_>) {}

    /// Reports the scheme's counters by name; the results sum them over all switches.
    fn counters(&self, _sink: &mut dyn FnMut(&'static str, u64)) {}
}

/// The switch that an instance of a scheme is made for, and the facts that the scheme may use when it is built.
#[derive(Clone, Copy, Debug)]
pub struct Site<'a> {
    /// The whole plan (fabric, frame sizes, queue pairs), as a controller that configures switches knows it.
    pub plan: &'a Plan,
    /// The switch.
    pub node: NodeId,
}

impl<'a> Site<'a> {
    /// The fabric.
    pub fn fabric(&self) -> &'a Fabric {
        &self.plan.fabric
    }

    /// True if hosts are attached to this switch.
    pub fn is_tor(&self) -> bool {
        self.fabric().ports(self.node).iter().any(|l| self.fabric().is_host(l.to))
    }

    /// Range of queue pairs that end at hosts of this switch, for tables of their state. It may include queue pairs of other
    /// switches if hosts are not numbered rack by rack.
    pub fn incoming(&self) -> Range<u32> {
        let fabric = self.fabric();
        let links = fabric.ports(self.node).iter().filter(|l| fabric.is_host(l.to));
        let hosts = links.map(|l| fabric.endpoint(l.to, l.peer_port).0);
        let (low, high) = hosts.fold((u32::MAX, 0), |(low, high), host| (low.min(host), high.max(host)));
        // Queue pairs are sorted by destination.
        let before = |host: u32| self.plan.qps.partition_point(|qp| qp.to.0 < host) as u32;
        if low <= high { before(low)..before(high + 1) } else { 0..0 }
    }

    /// A queue pair.
    pub fn qp(&self, id: QpId) -> &'a Qp {
        &self.plan.qps[id.index()]
    }
}

/// News for a switch after a change of routes.
#[derive(Clone, Copy, Debug)]
pub struct Reroute<'a> {
    /// The switch.
    pub site: Site<'a>,
    /// The new routing; `None` stands for the whole fabric.
    pub routing: Option<&'a Routing>,
}

impl<'a> Reroute<'a> {
    /// True if routing considers no link between two switches dead.
    pub fn whole(&self) -> bool {
        let fabric = self.site.fabric();
        let between = |id: &LinkId| {
            let link = &fabric.links()[id.index()];
            !fabric.is_host(link.from) && !fabric.is_host(link.to)
        };
        self.routing.is_none_or(|routing| !routing.dead().iter().any(between))
    }

    /// True in fabrics of groups: packets in flight may be led around a dead link and be overtaken by later packets. On
    /// trees such packets are lost.
    pub fn leads_around(&self) -> bool {
        self.site.fabric().groups() > 0
    }

    /// True if routing considers the link of this port dead.
    pub fn is_dead(&self, port: PortIndex) -> bool {
        self.routing.is_some_and(|r| r.is_dead(self.site.fabric().link(self.site.node, port)))
    }

    /// The switch's new routes.
    pub fn router(&self) -> Router<'a> {
        self.site.fabric().router_by(self.routing, self.site.node)
    }
}

/// The queue pair that an instance of a steering is made for, and the facts that the steering may use.
#[derive(Clone, Copy, Debug)]
pub struct QpSite<'a> {
    /// The whole plan.
    pub plan: &'a Plan,
    /// The queue pair whose packets it steers.
    pub qp: QpId,
}

impl QpSite<'_> {
    /// The key for the steering's draws.
    pub fn key(&self) -> Key {
        Key::new(self.plan.seed, Purpose::Steering, self.qp.0.into())
    }
}

/// A NACK for `psn` of `qp` that a ToR makes itself, of `frame` bytes, to the queue pair's sender.
pub fn forged_nack(qp: QpId, sender: HostId, psn: crate::Psn, frame: u32) -> Packet {
    Packet::new(Kind::Nack, qp, sender, psn, frame)
}
