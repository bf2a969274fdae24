//! A switch without its ports: its scheme, its buffer, and the packets that its scheme holds. Both engines use it.

use crate::buffer::{Account, Admission, Buffer, Request};
use crate::cells::Place;
use crate::credits::Returned;
use crate::outcome::Room;
use crate::setup::{Setup, channel};
use crate::watchdog::Watchdog;
use crate::watermarks::Watermarks;
use model::draw::Key;
use model::fabric::Detours;
use model::packet::Kinds;
use model::plan::{FlowControl, PortSettings, SwitchSettings};
use model::scheme::{Effects, Emitted, Handle, SwitchKeys, flow_hash};
use model::{
    Annex, Cx, HostId, Interest, Kind, NodeId, Parcel, Parts, PortIndex, Reroute, Scheme, Site, Stamped,
    Switched, Time, Verdict,
};

/// A switch.
pub(crate) struct Switch<P: Parts> {
    pub(crate) scheme: P::Scheme,
    pub(crate) interest: Interest,
    pub(crate) buffer: Buffer,
    /// Number of virtual channels of its links, and of accounts of each group of classes.
    channels: u8,
    accounts: u16,
    key: Key,
    pub(crate) salt: u64,
    /// Held packets by handle: `None` for a free handle, `Some(None)` if the packet was dropped.
    stash: Vec<Option<Option<Parcel<P::Annex>>>>,
    /// Bytes of all held packets.
    pub(crate) held_bytes: u64,
    /// Bytes of held packets that are charged to the buffer, and the kinds that are charged.
    pub(crate) held_charge: u64,
    charged: Kinds,
    free: Vec<u32>,
    /// Bytes in the class of data that no buffer charges, because this switch made the packets.
    pub(crate) uncharged: u64,
    /// Number of the sampling interval in which the buffer was last sampled.
    pub(crate) sampled: u64,
    /// Time at which the scheme asked to be woken, ps; [`u64::MAX`] if it did not.
    pub(crate) wake: u64,
    pub(crate) dropped_while_lossless: bool,
    /// Index of the last change of routes; `None` while the first routes apply.
    pub(crate) route_change: Option<usize>,
    pub(crate) watchdog: Option<Box<Watchdog>>,
}

/// The account that is charged for a packet, in a switch whose links have `channels` virtual channels.
#[inline(always)]
fn account<A: Annex>(pkt: &Parcel<A>, channels: u8) -> Account {
    account_of(pkt.ingress(), channel(pkt.annex.route_state().came_on(), channels), channels)
}

#[inline(always)]
fn account_of(port: PortIndex, channel: u8, channels: u8) -> Account {
    Account(port.0 * u16::from(channels) + u16::from(channel))
}

/// True for data with a payload.
pub(crate) fn may_be_cut<A: Annex>(pkt: &Parcel<A>) -> bool {
    pkt.is_data() && pkt.annex.notice().is_none()
}

/// True if a waiting packet may be cut in place of one that arrives.
pub(crate) fn may_be_victim<A: Annex>(waiting: &Parcel<A>, arriving: &Parcel<A>) -> bool {
    may_be_cut(waiting) && waiting.ingress() != PortIndex::VIRTUAL && waiting.frame() >= arriving.frame()
}

/// An egress queue that a packet is to join.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Egress {
    /// Bytes in the queue.
    pub(crate) queue: u64,
    /// Its cap, bytes.
    pub(crate) cap: u64,
    /// Its place; `None` for a packet that is held.
    pub(crate) place: Option<Place>,
}

impl Egress {
    /// A queue without a cap: the place of packets that a scheme holds.
    const NONE: Egress = Egress { queue: 0, cap: u64::MAX, place: None };
}

/// The arrival of a packet at its switch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival<'a> {
    pub(crate) now: u64,
    pub(crate) ingress: PortIndex,
    pub(crate) from_host: bool,
    pub(crate) to_host: bool,
    pub(crate) detours: &'a Detours<'a>,
    pub(crate) view: &'a [u32],
}

impl<P: Parts> Switch<P> {
    pub(crate) fn new(setup: &Setup<'_>, parts: &P, node: NodeId) -> Self {
        let plan = setup.plan;
        let scheme = parts.scheme(Site { plan, node });
        let (key, salt) = setup.scheme_keys(node);
        let base = plan.fabric.base(node) as usize;
        let ports = &plan.ports[base..base + plan.fabric.ports(node).len()];
        let settings = &plan.switches[plan.fabric.switch_number(node)];
        let channels = plan.fabric.channels();
        // A channel without packets needs no headroom.
        let used = |p: usize| plan.fabric.channels_on(&plan.fabric.links()[setup.feeding(base + p)]);
        let headroom = |(p, port): (usize, &PortSettings)| {
            let (used, own) = (used(p), port.headroom.get());
            (0..channels).map(move |channel| if channel < used { own } else { 0 })
        };
        let alphas = |settings: &SwitchSettings, ports: &[PortSettings]| {
            let usual = match settings.flow_control {
                FlowControl::Lossless(pfc) => pfc.alpha,
                _ => (1, 1),
            };
            let of = ports.iter().map(|port| port.alpha.unwrap_or(usual));
            of.flat_map(|alpha| std::iter::repeat_n(alpha, channels.into())).collect::<Vec<_>>()
        };
        let limits = |ports: &[PortSettings]| ports.iter().enumerate().flat_map(headroom).collect();
        let mut buffer = Buffer::new(settings, limits(ports));
        let mut all_alphas = alphas(settings, ports);
        let mut memory = settings.memory;
        for group in &plan.own_queues.groups {
            let own = &group.ports[base..base + ports.len()];
            let settings = &group.switches[plan.fabric.switch_number(node)];
            memory.shared_headroom = memory.shared_headroom.or(settings.memory.shared_headroom);
            buffer.add_group(settings, limits(own));
            all_alphas.append(&mut alphas(settings, own));
        }
        let buffer = buffer.with_alphas(all_alphas).with_cells(memory, (ports.len(), channels.into()));
        Switch {
            interest: scheme.interest(),
            scheme,
            buffer: if plan.record.queues { buffer.with_watermarks() } else { buffer },
            channels,
            accounts: ports.len() as u16 * u16::from(channels),
            key,
            salt,
            stash: Vec::new(),
            held_bytes: 0,
            held_charge: 0,
            charged: setup.charged,
            free: Vec::new(),
            uncharged: 0,
            sampled: 0,
            wake: u64::MAX,
            dropped_while_lossless: false,
            route_change: None,
            watchdog: Watchdog::new(setup, node),
        }
    }

    /// Asks for room for a packet that is to join `egress`; `None` for a packet that the scheme holds. Packets of the
    /// switch itself need no room.
    #[inline]
    pub(crate) fn admit(
        &mut self,
        setup: &Setup<'_>,
        pkt: &Parcel<P::Annex>,
        egress: Option<Egress>,
    ) -> Admission {
        if pkt.ingress() == PortIndex::VIRTUAL {
            return Admission::Admitted;
        }
        let class = &setup.plan.classes.all()[setup.class_in_table(pkt)];
        let cuttable = egress.is_some() && may_be_cut(pkt);
        let account = Account(account(pkt, self.channels).0 + u16::from(class.group) * self.accounts);
        let bytes = pkt.frame() as u64;
        let admission = self.buffer.admit(Request {
            account,
            bytes,
            egress: egress.unwrap_or(Egress::NONE),
            class,
            cuttable,
        });
        // A class with a cap drops by its setting.
        self.dropped_while_lossless |= admission == Admission::Dropped
            && class.charged
            && class.cap.is_none()
            && self.buffer.is_lossless(account);
        admission
    }

    /// Recounts the buffer's charges by account, from the packets in its queues and those that the scheme holds.
    pub(crate) fn recount<'p>(
        &'p mut self,
        queued: impl Iterator<Item = &'p Parcel<P::Annex>>,
        with_data: Kinds,
    ) {
        let held = self.stash.iter().flatten().flatten().filter(|pkt| with_data.take(pkt));
        let charged = queued.chain(held).filter(|pkt| pkt.ingress() != PortIndex::VIRTUAL);
        let channels = self.channels;
        self.buffer.detail(charged.map(|pkt| (account(pkt, channels), pkt.frame().into())));
    }

    /// Counts all charges after a light visit, from the packets in the queues of each port and those that the scheme holds, if
    /// the buffer must know them.
    pub(crate) fn count<'p>(
        &'p mut self,
        setup: &Setup<'_>,
        queued: impl Iterator<Item = (usize, &'p Parcel<P::Annex>)>,
    ) {
        let channels = self.channels;
        let queued = queued.map(|(port, pkt)| (Some(Place::new(port, setup.class_in_table(pkt))), pkt));
        let held = self.stash.iter().flatten().flatten().filter(|pkt| setup.with_data.take(pkt));
        let all = queued.chain(held.map(|pkt| (None, pkt)));
        let charged = all.filter(|(_, pkt)| pkt.ingress() != PortIndex::VIRTUAL);
        self.buffer.count(charged.map(|(place, pkt)| (account(pkt, channels), place, pkt.frame().into())));
    }

    /// Puts a packet that the scheme held into its queue at a port.
    pub(crate) fn join(&mut self, setup: &Setup<'_>, pkt: &Parcel<P::Annex>, port: usize) {
        let class = setup.class_in_table(pkt);
        if setup.plan.classes.all()[class].charged && pkt.ingress() != PortIndex::VIRTUAL {
            let account = self.account(setup, pkt);
            self.buffer.join(account, pkt.frame().into(), Place::new(port, class));
        }
    }

    /// Gives the room of a waiting packet, which is cut, to the one that arrives at its port.
    pub(crate) fn replace(
        &mut self,
        setup: &Setup<'_>,
        waiting: &Parcel<P::Annex>,
        arriving: &Parcel<P::Annex>,
        port: usize,
    ) {
        let class = setup.class_in_table(arriving);
        if setup.plan.classes.all()[class].charged {
            let room = |pkt| (self.account(setup, pkt), pkt.frame() as u64);
            let (from, to) = (room(waiting), room(arriving));
            self.buffer.replace(from, to, Place::new(port, class));
        }
    }

    /// The account that is charged for a packet.
    #[inline(always)]
    pub(crate) fn account(&self, setup: &Setup<'_>, pkt: &Parcel<P::Annex>) -> Account {
        Account(account(pkt, self.channels).0 + u16::from(setup.group(pkt)) * self.accounts)
    }

    /// [`Switch::account`] in a run whose classes are plain.
    #[inline(always)]
    pub(crate) fn plain_account(&self, pkt: &Parcel<P::Annex>) -> Account {
        account(pkt, self.channels)
    }

    /// The account of a port's priority: of a virtual channel in a group of classes.
    #[inline(always)]
    fn account_of(&self, port: PortIndex, priority: u8) -> Account {
        let (group, channel) = (priority / self.channels, priority % self.channels);
        Account(account_of(port, channel, self.channels).0 + u16::from(group) * self.accounts)
    }

    /// The most room that each priority of each port has taken: port, priority and room, in order of ports.
    pub(crate) fn rooms(&self, marks: &Watermarks) -> Vec<(usize, u8, Room)> {
        let ports = self.accounts / u16::from(self.channels);
        let priorities = (marks.accounts.len() / usize::from(ports)) as u8;
        let room = |port, priority| marks.accounts[usize::from(self.account_of(PortIndex(port), priority).0)];
        let of = |port| (0..priorities).map(move |priority| (port, priority));
        let all = (0..ports).flat_map(of);
        all.map(|(port, priority)| (port.into(), priority, room(port, priority))).collect()
    }

    /// True if the far end of `port` is paused on a priority.
    pub(crate) fn pauses(&self, port: PortIndex, priority: u8) -> bool {
        self.buffer.pauses(self.account_of(port, priority))
    }

    /// Tells a watchdog that looks into queues of a packet that starts at a port whose link has so many virtual channels.
    #[inline]
    pub(crate) fn starts(
        &mut self,
        setup: &Setup<'_>,
        now: u64,
        pkt: &Parcel<P::Annex>,
        (port, channels): (usize, u8),
    ) {
        if self.watchdog.as_ref().is_some_and(|dog| dog.looks())
            && let Some(priority) = self.priority_out(setup, pkt, channels)
            && let Some(dog) = &mut self.watchdog
        {
            dog.starts(now, port, priority);
        }
    }

    /// What a port's priority has returned to its neighbour, if this switch grants it credits.
    pub(crate) fn returned(&mut self, port: PortIndex, priority: u8) -> Option<&mut Returned> {
        let account = self.account_of(port, priority);
        self.buffer.returned(account)
    }

    /// Returns the credits of a packet that this switch does not keep: the port and the priority of their neighbour, if the packet
    /// took any.
    pub(crate) fn refund(&mut self, setup: &Setup<'_>, pkt: &Parcel<P::Annex>) -> Option<(usize, u8)> {
        let account = if setup.grants.any() { self.took(setup, pkt)? } else { return None };
        self.buffer.refund(account, pkt.frame().into());
        Some((pkt.ingress().index(), self.priority_of(account)))
    }

    /// The account whose credits a packet has taken on its way to this switch; `None` if it has taken none.
    fn took(&self, setup: &Setup<'_>, pkt: &Parcel<P::Annex>) -> Option<Account> {
        let class = &setup.plan.classes.all()[setup.class_in_table(pkt)];
        let account = self.account(setup, pkt);
        let takes = class.charged && pkt.ingress() != PortIndex::VIRTUAL && self.buffer.grants(account);
        takes.then_some(account)
    }

    /// Sets the books right if this switch has made `pkt` from `before`, which waits in another class: the port and the priority of
    /// the neighbour whose credits are free. A packet of a class whose credits it has not taken counts as the switch's own.
    pub(crate) fn rebook(
        &mut self,
        setup: &Setup<'_>,
        before: &Parcel<P::Annex>,
        pkt: &mut Parcel<P::Annex>,
    ) -> Option<(usize, u8)> {
        let (took, takes) = (self.took(setup, before), self.took(setup, pkt));
        if took == takes {
            return None;
        }
        let freed = self.refund(setup, before);
        if takes.is_some() {
            *pkt = pkt.arriving(pkt.offset(), PortIndex::VIRTUAL);
        }
        freed
    }

    /// Records whether the scheme pauses a priority; true if the far end must get a frame.
    pub(crate) fn set_scheme_pause(&mut self, port: PortIndex, priority: u8, on: bool) -> bool {
        let account = self.account_of(port, priority);
        self.buffer.set_scheme_pause(account, on)
    }

    /// True if the watchdog drops a packet that has just come in.
    #[inline(never)]
    pub(crate) fn discards_in(&self, setup: &Setup<'_>, pkt: &Parcel<P::Annex>) -> bool {
        let Some(dog) = self.watchdog.as_ref().filter(|dog| dog.is_dropping()) else { return false };
        let class = &setup.plan.classes.all()[setup.class_in_table(pkt)];
        let priority =
            class.group * self.channels + channel(pkt.annex.route_state().came_on(), self.channels);
        class.charged && dog.drops(pkt.ingress().index(), priority)
    }

    /// True if the watchdog drops a packet that is to join its queue at a port whose link has so many virtual channels.
    #[inline(never)]
    pub(crate) fn discards_out(
        &self,
        setup: &Setup<'_>,
        pkt: &Parcel<P::Annex>,
        (port, channels): (usize, u8),
    ) -> bool {
        let dropping = self.watchdog.as_ref().filter(|dog| dog.is_dropping());
        dropping.is_some_and(|dog| {
            let priority = self.priority_out(setup, pkt, channels);
            priority.is_some_and(|priority| dog.drops(port, priority))
        })
    }

    /// The priority that holds a packet back at a port whose link has so many virtual channels; `None` if no pause does.
    pub(crate) fn priority_out(&self, setup: &Setup<'_>, pkt: &Parcel<P::Annex>, channels: u8) -> Option<u8> {
        let class = &setup.plan.classes.all()[setup.class_in_table(pkt)];
        let priority = class.group * self.channels + channel(pkt.annex.route_state().leg(), channels);
        class.charged.then_some(priority)
    }

    /// Time of the watchdog's next ruling, ps; [`u64::MAX`] if there is none.
    #[inline(always)]
    pub(crate) fn next_ruling(&self) -> u64 {
        self.watchdog.as_ref().map_or(u64::MAX, |dog| dog.next())
    }

    /// The priority of an account, for pause frames.
    pub(crate) fn priority_of(&self, account: Account) -> u8 {
        let (group, of_group) = (account.0 / self.accounts, account.0 % self.accounts);
        group as u8 * self.channels + (of_group % u16::from(self.channels)) as u8
    }

    #[inline]
    fn keys(&self) -> SwitchKeys {
        let handle = Handle(self.free.last().copied().unwrap_or(self.stash.len() as u32));
        SwitchKeys { key: self.key, salt: self.salt, handle }
    }

    /// Keys of the switch's draws and hashes.
    #[inline]
    pub(crate) fn hash_keys(&self) -> (Key, u64) {
        (self.key, self.salt)
    }

    #[inline(always)]
    pub(crate) fn judge(
        &mut self,
        arrival: Arrival<'_>,
        queued: &[u32],
        pkt: &mut Parcel<P::Annex>,
        ports: &[PortIndex],
        effects: &mut Effects,
    ) -> Verdict {
        let Arrival { now, ingress, from_host, to_host, detours, view } = arrival;
        let mut cx = Cx::new(Time(now), self.keys(), effects);
        (cx.ingress, cx.from_host, cx.to_host) = (ingress, from_host, to_host);
        (cx.queued, cx.detours, cx.view) = (queued, detours, view);
        let tagged = pkt.is_data() || pkt.kind() == Kind::Signal;
        let tag = if P::Annex::CARRIES && tagged { pkt.annex.tag() } else { 0 };
        cx.tag = tag;
        let kind = pkt.kind();
        cx.entropy = pkt.annex.path_entropy(pkt.is_forward());
        cx.echoed = if matches!(kind, Kind::Ack | Kind::Nack) { pkt.annex.entropy() } else { 0 };
        let verdict = self.scheme.on_packet(&mut cx, &mut pkt.label, ports);
        if P::Annex::CARRIES && cx.tag != tag {
            pkt.annex.set_tag(cx.tag);
        }
        if P::Annex::CARRIES && pkt.kind() != kind {
            pkt.annex = pkt.annex.overruled();
        }
        if P::Annex::CARRIES
            && let Some(detour) = cx.via
        {
            pkt.annex.set_route_state(pkt.annex.route_state().with_detour(detour));
        }
        verdict
    }

    /// Tells the scheme of data that is about to start on the wire of `port`.
    pub(crate) fn starting(
        &mut self,
        now: u64,
        pkt: &mut Parcel<P::Annex>,
        port: PortIndex,
        effects: &mut Effects,
    ) {
        let mut cx = Cx::new(Time(now), self.keys(), effects);
        (cx.ingress, cx.tag) = (pkt.ingress(), pkt.annex.tag());
        self.scheme.on_start(&mut cx, &mut pkt.label, port);
    }

    #[inline(always)]
    pub(crate) fn departed(
        &mut self,
        now: u64,
        pkt: &Parcel<P::Annex>,
        port: PortIndex,
        effects: &mut Effects,
    ) {
        let mut cx = Cx::new(Time(now), self.keys(), effects);
        (cx.to_host, cx.tag) = (true, pkt.annex.tag());
        self.scheme.on_depart(&mut cx, &pkt.label, port);
    }

    /// A packet that this switch makes, and the port by which it leaves.
    pub(crate) fn made(
        &self,
        setup: &Setup<'_>,
        node: NodeId,
        emitted: Emitted,
    ) -> (PortIndex, Parcel<P::Annex>) {
        let Emitted { mut packet, tag, port } = emitted;
        let router = setup.router(node, self.route_change);
        if port.is_none()
            && let Some(sharing) = setup.plan.sharing
            && router.ports(packet.to()).0.is_empty()
        {
            // The queue pair has moved to this plane, and its own port is in another one.
            let mut others = (0..sharing.ports).map(|k| HostId(sharing.home(packet.to()).0 + u32::from(k)));
            if let Some(to) = others.find(|to| !router.ports(*to).0.is_empty()) {
                packet = packet.with_to(to);
            }
        }
        let port = port.unwrap_or_else(|| match router.ports(packet.to()).0 {
            [port] => *port,
            ports => ports[flow_hash(self.salt, &packet, ports.len())],
        });
        let mut parcel: Parcel<P::Annex> = Parcel::bare(packet.arriving(0, PortIndex::VIRTUAL));
        parcel.annex.set_tag(tag);
        (port, parcel)
    }

    pub(crate) fn woken(&mut self, now: u64, queued: &[u32], effects: &mut Effects) {
        self.wake = u64::MAX;
        let mut cx = Cx::new(Time(now), self.keys(), effects).with_queued(queued);
        self.scheme.on_wake(&mut cx);
    }

    /// Changes the routes and informs the scheme.
    pub(crate) fn rerouted(
        &mut self,
        setup: &Setup<'_>,
        node: NodeId,
        now: u64,
        route_change: usize,
        effects: &mut Effects,
    ) {
        self.route_change = Some(route_change);
        let plan = setup.plan;
        let routing = plan.failures.routing(plan.failures.change_at_switch(route_change));
        let mut cx = Cx::new(Time(now), self.keys(), effects);
        self.scheme.on_routes_change(&mut cx, &Reroute { site: Site { plan, node }, routing });
    }

    /// Keeps a packet under the handle that its scheme was given. `None` stands for a packet without room. The
    /// scheme does not learn of this drop, so the handle stays in use until the scheme releases it.
    pub(crate) fn hold(&mut self, pkt: Option<Parcel<P::Annex>>) {
        self.held_bytes += pkt.map_or(0, |pkt| pkt.frame() as u64);
        self.held_charge += pkt.map_or(0, |pkt| self.charge(&pkt));
        match self.free.pop() {
            Some(i) => self.stash[i as usize] = Some(pkt),
            None => self.stash.push(Some(pkt)),
        }
    }

    /// Releases a held packet; `None` if the handle has no packet.
    pub(crate) fn unhold(&mut self, handle: Handle) -> Option<Parcel<P::Annex>> {
        let pkt = self.stash.get_mut(handle.0 as usize)?.take()?;
        self.free.push(handle.0);
        self.held_bytes -= pkt.map_or(0, |pkt| pkt.frame() as u64);
        self.held_charge -= pkt.map_or(0, |pkt| self.charge(&pkt));
        pkt
    }

    /// All packets that are held now.
    pub(crate) fn stashed(&self) -> impl Iterator<Item = &Parcel<P::Annex>> {
        self.stash.iter().flatten().flatten()
    }

    /// Bytes of a held packet that are charged to the buffer.
    fn charge(&self, pkt: &Parcel<P::Annex>) -> u64 {
        if self.charged.take(pkt) { pkt.frame() as u64 } else { 0 }
    }
}
