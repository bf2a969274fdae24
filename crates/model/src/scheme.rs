//! Load balancing inside a switch.

use crate::draw::{Key, Purpose, below};
use crate::fabric::{Detours, Router};
use crate::plan::{Plan, Qp};
use crate::{Detour, Fabric, HostId, Kind, LinkId, NodeId, Packet, PortIndex, QpId, Routing, Time};
use std::ops::Range;

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It leaves by this port.
    Forward(PortIndex),
    /// The engine keeps it, still charged to the buffer, until the scheme releases it by [`Cx::handle`].
    Hold,
    /// It ends here. A control packet that is dropped counts as blocked, a signal as heard.
    Drop,
}

/// What a scheme wants to see. What it does not ask for costs nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interest {
    /// It reads [`Cx::queued`].
    pub queues: bool,
    /// It wants `on_packet` also where there is only one port to choose.
    pub every_packet: bool,
    /// It wants `on_depart` for data that leaves towards a host.
    pub host_departures: bool,
    /// It makes replies or signals ([`Cx::emit`]), and it makes data. A switch that drops when its queues fill must know.
    pub makes_replies: bool,
    /// See `makes_replies`.
    pub makes_data: bool,
    /// It may send data over a detour ([`Cx::detours`]): it wants `on_packet` for data that comes from a host wherever
    /// there is one.
    pub detours: bool,
    /// It reads [`Cx::view`]. A run has one view: the one for which the first switch asks (a scenario in which others ask for
    /// another one is refused). Every switch that asks for one must ask for [`Interest::queues`], too, and so must all others.
    pub view: Option<QueueView>,
    /// It has so much state that packets should be announced to it ([`Scheme::expect`]).
    pub announcements: bool,
}

/// A view of all switches' queues, see [`Cx::view`].
///
/// A model of what a network could tell its switches, not a look into the present: it is taken at multiples of a period
/// and known some time later. Both are rounded up to whole multiples of the window that the fabric's links allow, less than
/// which no news takes to anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueView {
    /// How often it is taken.
    pub period: Time,
    /// How long it takes until it is known everywhere.
    pub delay: Time,
}

/// Identifies a held packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Handle(pub u32);

/// A packet that a switch makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Emitted {
    /// The packet.
    pub packet: Packet,
    /// Its tag.
    pub tag: u64,
    /// The port by which it leaves; `None` is that of the base path to its host.
    pub port: Option<PortIndex>,
}

/// What a handler asked for; the engine carries it out when the handler has returned.
#[derive(Debug, Default)]
pub struct Effects {
    /// Packets that the switch makes.
    pub emitted: Vec<Emitted>,
    /// Held packets to send, and where.
    pub released: Vec<(Handle, PortIndex)>,
    /// Ports whose far ends are to send no data, or to go on.
    pub pauses: Vec<(PortIndex, bool)>,
    /// When to call `on_wake`; the earliest wish counts.
    pub wake: Option<Time>,
}

impl Effects {
    /// Nothing was asked for.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.emitted.is_empty() && self.released.is_empty() && self.pauses.is_empty() && self.wake.is_none()
    }
}

/// What a handler sees: the present, its own switch, and nothing else.
#[derive(Debug)]
pub struct Cx<'a> {
    /// Now.
    pub now: Time,
    /// Where the packet came in; [`PortIndex::VIRTUAL`] in `on_depart` and `on_wake`.
    pub ingress: PortIndex,
    /// The packet came from a host of this switch.
    pub from_host: bool,
    /// The packet goes to a host of this switch. With `from_host`: it stays inside the rack.
    pub to_host: bool,
    /// Bytes that wait at every port of this switch, the frame on the wire not counted: true at this instant
    /// for the ports that `on_packet` may choose from and, in `on_wake`, for all, if the scheme has
    /// [`Interest::queues`]; of no meaning for others. Empty in `on_depart`.
    pub queued: &'a [u32],
    /// Bytes that waited at every port of every switch, by [`crate::LinkId`], when the newest [`QueueView`] was taken that is known
    /// now; nothing before the first. Empty if the scheme has not asked, and outside `on_packet`.
    pub view: &'a [u32],
    /// The entropy that the sender gave a data packet ([`crate::Annex::entropy`]).
    pub entropy: u16,
    /// The tag of a data packet or a signal ([`crate::Annex::tag`]); what `on_packet` writes here travels with it. In
    /// runs whose packets have no room for one it is always 0.
    pub tag: u64,
    /// The detours that the packet may take. There are some for data that comes from a host of this switch, in a fabric
    /// of groups; [`Cx::queued`] then is true for all ports.
    pub detours: Detours<'a>,
    /// Where the packet shall go before it goes to its host: one of `detours`, written by the scheme, and the port of its
    /// verdict leads there. The packet then meets the schemes of other switches with the ports on its way.
    pub via: Option<Detour>,
    keys: SwitchKeys,
    draws: u64,
    effects: &'a mut Effects,
}

/// What draws, hashes and held packets of one switch need.
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
            tag: 0,
            detours: Detours::default(),
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
    pub fn with_detours(self, detours: Detours<'a>, view: &'a [u32]) -> Self {
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

    /// The switch's hash of a packet's 5-tuple, reduced to `0..n`: the same for all packets of one direction
    /// of a queue pair that have one entropy.
    #[inline]
    pub fn hash(&self, pkt: &Packet, n: usize) -> usize {
        below(Key::from_salt(self.keys.salt).draw(tuple(pkt) ^ (self.entropy as u64) << 32), n)
    }

    /// Another hash like [`Cx::hash`], one for each `what`, that tells nothing of the others.
    #[inline]
    pub fn hash_for(&self, pkt: &Packet, what: u64, n: usize) -> usize {
        below(Key::from_salt(self.keys.salt).draw2(tuple(pkt) ^ (self.entropy as u64) << 32, what), n)
    }

    /// The base path: the port that the packet's flow hashes to.
    #[inline]
    pub fn base_path(&self, pkt: &Packet, ports: &[PortIndex]) -> PortIndex {
        if ports.len() == 1 { ports[0] } else { ports[self.hash(pkt, ports.len())] }
    }

    /// Sends a packet that this switch makes (a NACK, say). It takes the base path and does not meet the
    /// scheme of this switch.
    pub fn emit(&mut self, packet: Packet) {
        self.effects.emitted.push(Emitted { packet, tag: 0, port: None });
    }

    /// Sends a signal that says `tag` by `port`, or on the base path; other switches' schemes see it if they want
    /// [`Interest::every_packet`], or where it has several ports to choose from.
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

    /// Tells the far end of `port` by a PFC frame to send no data, or to go on as far as the buffer is concerned. Only
    /// in lossless fabrics: elsewhere a window may be too long for a pause.
    pub fn pause(&mut self, port: PortIndex, on: bool) {
        self.effects.pauses.push((port, on));
    }

    /// Asks for `on_wake` at `at`, which must lie after now.
    pub fn wake_at(&mut self, at: Time) {
        self.effects.wake = Some(self.effects.wake.map_or(at, |w| w.min(at)));
    }
}

/// Hash of the 5-tuple of a packet without entropy under a switch's `salt`, reduced to `0..n`.
#[inline]
pub fn flow_hash(salt: u64, pkt: &Packet, n: usize) -> usize {
    below(Key::from_salt(salt).draw(tuple(pkt)), n)
}

/// The 5-tuple of a packet without entropy: both directions of a queue pair have one of their own.
#[inline]
fn tuple(pkt: &Packet) -> u64 {
    (pkt.qp().0 as u64) << 1 | pkt.kind().is_control() as u64
}

/// A load-balancing scheme: a pure state machine, one instance per switch.
pub trait Scheme {
    /// What it wants to see; constant for the run.
    fn interest(&self) -> Interest;

    /// A packet will arrive soon: has the processor fetch what will be needed for it. Changes nothing, and may be
    /// left out.
    fn expect(&self, _pkt: &Packet) {}

    /// A packet has arrived; `ports` are the equal-cost ones towards its host (never empty).
    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &mut Packet, ports: &[PortIndex]) -> Verdict;

    /// A data packet starts on the wire towards a host.
    fn on_depart(&mut self, _cx: &mut Cx<'_>, _pkt: &Packet, _port: PortIndex) {}

    /// How many data packets may depart at `port` before [`Scheme::on_depart`] could ask for anything, unless
    /// [`Scheme::on_packet`] sees a packet that looks back at `port` before that. The engine may tell of so many
    /// departures late: in their order at the port, and before the next packet that looks back. A scheme that
    /// answers 0 sees every departure at its time.
    fn patience(&self, _port: PortIndex) -> u32 {
        0
    }

    /// True if this packet may shorten the scheme's patience, or if it makes a difference which of the departures
    /// at the port at which it came in the scheme has been told of.
    fn looks_back(&self, _pkt: &Packet) -> bool {
        true
    }

    /// The time asked for by [`Cx::wake_at`] has come.
    fn on_wake(&mut self, _cx: &mut Cx<'_>) {}

    /// Routing has taken note of dead links or of repairs, and from now on [`Scheme::on_packet`] is shown ports by
    /// it: entries of tables that point elsewhere are of no use any more. [`Cx::queued`] is empty.
    fn on_routes_change(&mut self, _cx: &mut Cx<'_>, _news: &Reroute<'_>) {}

    /// Its counters, by name; the results sum them over all switches.
    fn counters(&self, _sink: &mut dyn FnMut(&'static str, u64)) {}
}

/// Where an instance of a scheme is installed: what it may know of the fabric when it is built.
#[derive(Clone, Copy, Debug)]
pub struct Site<'a> {
    /// The whole plan (fabric, frame sizes, queue pairs): a controller configures switches from it.
    pub plan: &'a Plan,
    /// The switch.
    pub node: NodeId,
}

impl<'a> Site<'a> {
    /// The fabric.
    pub fn fabric(&self) -> &'a Fabric {
        &self.plan.fabric
    }

    /// True if hosts hang on this switch.
    pub fn is_tor(&self) -> bool {
        self.fabric().ports(self.node).iter().any(|l| self.fabric().is_host(l.to))
    }

    /// Queue pairs that end at hosts of this switch, for tables of their state. They may include pairs of
    /// other switches if hosts are not numbered rack by rack.
    pub fn incoming(&self) -> Range<u32> {
        let fabric = self.fabric();
        let hosts = fabric.ports(self.node).iter().filter(|l| fabric.is_host(l.to)).map(|l| l.to.0);
        let (low, high) = hosts.fold((u32::MAX, 0), |(low, high), host| (low.min(host), high.max(host)));
        // Queue pairs are sorted by destination.
        let before = |host: u32| self.plan.qps.partition_point(|qp| u32::from(qp.to.0) < host) as u32;
        if low <= high { before(low)..before(high + 1) } else { 0..0 }
    }

    /// A queue pair.
    pub fn qp(&self, id: QpId) -> &'a Qp {
        &self.plan.qps[id.index()]
    }
}

/// What a switch learns when routing has changed.
#[derive(Clone, Copy, Debug)]
pub struct Reroute<'a> {
    /// The switch.
    pub site: Site<'a>,
    /// The routing from now on; `None`: that of the whole fabric.
    pub routing: Option<&'a Routing>,
}

impl<'a> Reroute<'a> {
    /// No link between two switches is held to be dead.
    pub fn whole(&self) -> bool {
        let fabric = self.site.fabric();
        let between = |id: &LinkId| {
            let link = &fabric.links()[id.index()];
            !fabric.is_host(link.from) && !fabric.is_host(link.to)
        };
        self.routing.is_none_or(|routing| !routing.dead().iter().any(between))
    }

    /// True if packets that the change finds under way may be led around what is dead, and so be overtaken by later ones: in
    /// fabrics of groups. On trees they are lost.
    pub fn leads_around(&self) -> bool {
        self.site.fabric().groups() > 0
    }

    /// True if the link of this port of the switch is held to be dead.
    pub fn is_dead(&self, port: PortIndex) -> bool {
        self.routing.is_some_and(|r| r.is_dead(self.site.fabric().link(self.site.node, port)))
    }

    /// The switch's routes from now on.
    pub fn router(&self) -> Router<'a> {
        self.site.fabric().router_by(self.routing, self.site.node)
    }
}

/// Where an instance of a steering is installed.
#[derive(Clone, Copy, Debug)]
pub struct QpSite<'a> {
    /// The whole plan.
    pub plan: &'a Plan,
    /// The queue pair whose packets it steers.
    pub qp: QpId,
}

impl QpSite<'_> {
    /// The key for its draws.
    pub fn key(&self) -> Key {
        Key::new(self.plan.seed, Purpose::Steering, self.qp.0.into())
    }
}

/// A frame-sized NACK as a ToR would forge it: to the sender of `qp`, naming `psn`.
pub fn forged_nack(qp: QpId, sender: HostId, psn: crate::Psn, frame: u32) -> Packet {
    Packet::new(Kind::Nack, qp, sender, psn, frame)
}
