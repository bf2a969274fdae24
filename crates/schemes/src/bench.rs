//! Test bench for schemes: one switch that hands packets to its scheme as the engine would, and shows the effects.

use crate::{AnyScheme, FeedbackConfig, SchemeConfig};
use model::draw::{Key, Purpose};
use model::fabric::Detours;
use model::failure::{Effect, Fault};
use model::plan::{Classes, FlowControl, Overflow, Pfc, PortSettings, Qp, SwitchSettings};
use model::record::RecordPlan;
use model::scheme::{Effects, Emitted, Handle, SwitchKeys};
use model::{
    Bytes, Cx, Detour, FabricBuilder, Failures, HostId, Kind, NodeId, Packet, Plan, PortIndex, Probability,
    Psn, QpId, Rate, Reroute, Routing, Scheme, Site, Time, Verdict, Wire,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Plan of a leaf-spine fabric with 100 Gb/s and 1 us on every link. Between every two hosts there is a queue pair without
/// messages in each direction, sorted by destination and then by source. Ports of leaf `i`: its hosts, then the spines.
pub(crate) fn leaf_spine(leaves: usize, spines: usize, per_leaf: usize) -> Plan {
    leaf_spine_at(leaves, spines, per_leaf, |_| Rate::from_gbps(100))
}

/// [`leaf_spine`] with a rate for each spine's links.
pub(crate) fn leaf_spine_at(
    leaves: usize,
    spines: usize,
    per_leaf: usize,
    rate: impl Fn(usize) -> Rate,
) -> Plan {
    lay(leaves, spines, per_leaf, 1, rate)
}

/// [`leaf_spine`] with one host per leaf, and several links between each leaf and each spine.
pub(crate) fn leaf_spine_parallel(leaves: usize, spines: usize, links: usize) -> Plan {
    lay(leaves, spines, 1, links, |_| Rate::from_gbps(100))
}

fn lay(leaves: usize, spines: usize, per_leaf: usize, links: usize, rate: impl Fn(usize) -> Rate) -> Plan {
    let mut b = FabricBuilder::new();
    let hosts: Vec<_> = (0..leaves * per_leaf).map(|h| b.host(format!("h{h}"))).collect();
    let leaf: Vec<_> = (0..leaves).map(|l| b.switch(format!("leaf{l}"), "leaf")).collect();
    let spine: Vec<_> = (0..spines).map(|s| b.switch(format!("spine{s}"), "spine")).collect();
    let delay = Time::from_us(1);
    for (h, &host) in hosts.iter().enumerate() {
        b.connect(host, leaf[h / per_leaf], rate(0), delay, Probability::ZERO);
    }
    for &l in &leaf {
        for (s, &node) in spine.iter().enumerate() {
            (0..links).for_each(|_| b.connect(l, node, rate(s), delay, Probability::ZERO));
        }
    }
    plan(b)
}

/// Plan of a fat tree of `pods` pods. A pod has `edges` edge switches with one host each, and as many aggregation switches
/// as `cores` has entries; an entry is the number of core switches above that aggregation switch. The rest is as in
/// [`leaf_spine`].
pub(crate) fn pods(pods: usize, edges: usize, cores: &[usize]) -> Plan {
    let mut b = FabricBuilder::new();
    let hosts: Vec<_> = (0..pods * edges).map(|h| b.host(format!("h{h}"))).collect();
    let (rate, delay) = (Rate::from_gbps(100), Time::from_us(1));
    let core: Vec<Vec<_>> = cores
        .iter()
        .enumerate()
        .map(|(a, n)| (0..*n).map(|c| b.switch(format!("core{a}.{c}"), "core")).collect())
        .collect();
    for p in 0..pods {
        let above: Vec<_> = (0..cores.len()).map(|a| b.switch(format!("up{p}.{a}"), "aggregation")).collect();
        for e in 0..edges {
            let edge = b.switch(format!("edge{p}.{e}"), "edge");
            b.connect(hosts[p * edges + e], edge, rate, delay, Probability::ZERO);
            above.iter().for_each(|&up| b.connect(edge, up, rate, delay, Probability::ZERO));
        }
        for (&up, core) in above.iter().zip(&core) {
            core.iter().for_each(|&core| b.connect(up, core, rate, delay, Probability::ZERO));
        }
    }
    plan(b)
}

/// Plan of two datacentres. Each has `racks` racks of one host, a spine and an external switch; a link of 1.6 Tb/s and
/// 500 us joins the external switches. The rest is as in [`leaf_spine`].
pub(crate) fn datacentres(racks: usize) -> Plan {
    let mut b = FabricBuilder::new();
    let hosts: Vec<_> = (0..2 * racks).map(|h| b.host(format!("h{h}"))).collect();
    let externals: Vec<_> = (0..2).map(|site| b.switch(format!("external{site}"), "external")).collect();
    let spines: Vec<_> = (0..2).map(|site| b.switch(format!("spine{site}"), "spine")).collect();
    let mut join =
        |x, y, gbps, us| b.connect(x, y, Rate::from_gbps(gbps), Time::from_us(us), Probability::ZERO);
    join(externals[0], externals[1], 1600, 500);
    (0..2).for_each(|site| join(spines[site], externals[site], 400, 1));
    for (h, &host) in hosts.iter().enumerate() {
        let tor = b.switch(format!("tor{h}"), "tor");
        b.connect(host, tor, Rate::from_gbps(100), Time::from_us(1), Probability::ZERO);
        b.connect(tor, spines[h / racks], Rate::from_gbps(100), Time::from_us(1), Probability::ZERO);
    }
    plan(b)
}

/// Plan of a Dragonfly of `groups` groups of `routers` routers with one host each. Between every two groups there are
/// `links` links, spread over the routers in turn. Ports of a router: its host, its group's routers, other groups. The rest
/// is as in [`leaf_spine`].
pub(crate) fn dragonfly(groups: usize, routers: usize, links: usize) -> Plan {
    let mut b = FabricBuilder::new();
    let all = groups * routers;
    let hosts: Vec<_> = (0..all).map(|h| b.host(format!("h{h}"))).collect();
    let router: Vec<_> =
        (0..all).map(|r| b.switch(format!("g{}r{}", r / routers, r % routers), "router")).collect();
    let mut join = |x, y| b.connect(x, y, Rate::from_gbps(100), Time::from_us(1), Probability::ZERO);
    (0..all).for_each(|h| join(hosts[h], router[h]));
    for group in router.chunks(routers) {
        (0..routers).for_each(|i| group[i + 1..].iter().for_each(|&other| join(group[i], other)));
    }
    let mut ends = vec![0; groups];
    for (x, y) in (0..groups).flat_map(|x| (x + 1..groups).map(move |y| (x, y))) {
        for _ in 0..links {
            join(router[x * routers + ends[x] % routers], router[y * routers + ends[y] % routers]);
            ends[x] += 1;
            ends[y] += 1;
        }
    }
    b.groups((0..all).map(|r| (r / routers) as u16).collect(), 3, Default::default());
    plan(b)
}

/// A plan with a queue pair without messages between every two hosts of a fabric.
fn plan(b: FabricBuilder) -> Plan {
    let fabric = b.build().unwrap();
    let pfc = Pfc { alpha: (1, 8), resume_offset: Bytes(3072), watchdog: None };
    let flow_control = FlowControl::Lossless(pfc);
    let switch = SwitchSettings {
        buffer: Bytes(64_000_000),
        flow_control,
        overflow: Overflow::Drop,
        memory: Default::default(),
    };
    let ids = || (0..fabric.hosts() as u32).map(HostId);
    let qps = ids().flat_map(|to| {
        ids().filter(move |&from| from != to).map(move |from| Qp { from, to, messages: 0..0, path: None })
    });
    Plan {
        seed: 1,
        wire: Wire::roce(1500),
        classes: Classes::STRICT,
        own_queues: model::plan::OwnQueues::default(),
        nic_classes: model::plan::NicClasses::default(),
        ports: vec![PortSettings::default(); fabric.links().len()],
        switches: vec![switch; fabric.switch_count()],
        lose_replies: false,
        receive: Vec::new(),
        lost: Vec::new(),
        noise: model::Noise::default(),
        failures: model::Failures::default(),
        qps: qps.collect(),
        sharing: None,
        messages: Vec::new(),
        wholes: Vec::new(),
        slices: Vec::new(),
        tasks: Vec::new(),
        operations: Vec::new(),
        triggers: Vec::new(),
        jobs: Vec::new(),
        traffic_classes: Vec::new(),
        clock_spread: Time::ZERO,
        stop_after: None,
        digest: None,
        posted: None,
        no_progress: Time::from_ms(100),
        retries: Vec::new(),
        record: RecordPlan::default(),
        fabric,
    }
}

/// Queue pair between two hosts.
pub(crate) fn qp(plan: &Plan, from: u32, to: u32) -> QpId {
    let ends = |qp: &Qp| qp.from == HostId(from) && qp.to == HostId(to);
    QpId(plan.qps.iter().position(ends).unwrap() as u32)
}

/// A reply to the sender of `qp`.
pub(crate) fn reply(plan: &Plan, kind: Kind, qp: QpId, psn: Psn) -> Packet {
    Packet::new(kind, qp, plan.qps[qp.index()].from, psn, plan.wire.ack)
}

/// Effects of a packet.
#[derive(Debug)]
pub(crate) struct Seen {
    /// Verdict of the scheme.
    pub(crate) verdict: Verdict,
    /// The packet afterwards.
    pub(crate) pkt: Packet,
    /// Ports that it could take.
    pub(crate) ports: Vec<PortIndex>,
    /// Detour that the scheme chose.
    pub(crate) via: Option<Detour>,
    /// Packets that the scheme made.
    pub(crate) emitted: Vec<Packet>,
    /// Packets that the scheme made, with their tags and ports.
    pub(crate) made: Vec<Emitted>,
    /// Ports to pause (true) or to resume (false).
    pub(crate) pauses: Vec<(PortIndex, bool)>,
    /// The packet's tag afterwards.
    pub(crate) tag: u64,
    /// Held packets that the scheme released.
    pub(crate) released: Vec<(Handle, PortIndex)>,
    /// True if the packet's receiver is attached to this switch.
    pub(crate) home: bool,
}

/// One switch and its scheme.
pub(crate) struct Bench {
    plan: Arc<Plan>,
    /// The switch.
    pub(crate) node: NodeId,
    scheme: AnyScheme,
    /// Bytes that wait at every port; a scheme that did not ask for queues reads zeros.
    pub(crate) queued: Vec<u32>,
    /// Bytes that waited at every port of the fabric when the view was taken.
    pub(crate) view: Vec<u32>,
    /// Entropy of data packets, entropy that replies echo, and tag of packets.
    pub(crate) entropy: u16,
    pub(crate) echoed: u16,
    pub(crate) tag: u64,
    /// Ingress port of packets; `None` stands for the first port towards their source.
    pub(crate) ingress: Option<PortIndex>,
    pub(crate) now: Time,
    /// Held packets, with the ports by which they may leave.
    pub(crate) held: BTreeMap<Handle, Vec<PortIndex>>,
    /// Handle of the next held packet; each has its own.
    next: Handle,
    /// Time at which the scheme asked to be woken.
    pub(crate) alarm: Option<Time>,
    /// True if links have died, see [`Plan::failures`].
    rerouted: bool,
}

/// No detours, and no view.
fn nowhere() -> (&'static Detours<'static>, &'static [u32]) {
    (Detours::NONE, &[])
}

impl Bench {
    /// The switch named `switch` with the scheme that `config` builds.
    pub(crate) fn new(plan: &Plan, switch: &str, config: &SchemeConfig) -> Self {
        let node = plan.fabric.find(switch).unwrap();
        Bench::with(plan, switch, config.build(Site { plan, node }))
    }

    /// The switch named `switch` with ECMP and this feedback.
    pub(crate) fn telling(plan: &Plan, switch: &str, feedback: &FeedbackConfig) -> Self {
        let node = plan.fabric.find(switch).unwrap();
        let site = Site { plan, node };
        Bench::with(plan, switch, SchemeConfig::default().build(site).telling(feedback.build(site)))
    }

    /// The switch named `switch` with this scheme.
    pub(crate) fn with(plan: &Plan, switch: &str, scheme: AnyScheme) -> Self {
        let node = plan.fabric.find(switch).unwrap();
        let queued = vec![0; plan.fabric.ports(node).len()];
        Bench {
            view: vec![0; plan.fabric.links().len()],
            plan: Arc::new(plan.clone()),
            node,
            scheme,
            queued,
            entropy: 0,
            echoed: 0,
            tag: 0,
            ingress: None,
            now: Time::ZERO,
            held: BTreeMap::new(),
            next: Handle(0),
            alarm: None,
            rerouted: false,
        }
    }

    pub(crate) fn site(&self) -> Site<'_> {
        Site { plan: &self.plan, node: self.node }
    }

    pub(crate) fn scheme(&self) -> &AnyScheme {
        &self.scheme
    }

    /// A full data packet.
    pub(crate) fn data(&self, qp: QpId, psn: Psn) -> Packet {
        Packet::new(Kind::Data, qp, self.plan.qps[qp.index()].to, psn, self.plan.wire.max_frame())
    }

    /// A packet arrives from the direction of its source, 100 ns after the previous event.
    pub(crate) fn see(&mut self, mut pkt: Packet) -> Seen {
        let Qp { from, to, .. } = self.plan.qps[pkt.qp().index()];
        let source = if pkt.is_data() { from } else { to };
        let fabric = &self.plan.fabric;
        let ports = fabric.router_by(self.routing(), self.node).ports(pkt.to()).0.to_vec();
        let ingress = self.ingress.unwrap_or(fabric.route(self.node, source)[0]);
        let local = |host| fabric.attachment(host) == self.node;
        let ends = (local(source), local(pkt.to()));
        let mut effects = Effects::default();
        let mut tag = self.tag;
        let interest = self.scheme.interest();
        let starts = interest.detours && pkt.is_data() && ends.0;
        let plan = Arc::clone(&self.plan);
        let turn = plan.failures.route_changes().first().filter(|_| self.rerouted);
        let router = plan.fabric.router_by(turn.and_then(|turn| plan.failures.routing(turn)), self.node);
        let detours = if starts { router.detours(pkt.to()) } else { Detours::default() };
        let view = self.view.clone();
        let (verdict, via) = if ports.len() == 1 && !interest.every_packet && detours.is_empty() {
            self.now += Time::from_ns(100);
            (Verdict::Forward(ports[0]), None)
        } else {
            self.call(ingress, ends, (&detours, &view), &mut effects, |scheme, cx| {
                let verdict = scheme.on_packet(cx, &mut pkt, &ports);
                tag = cx.tag;
                (verdict, cx.via)
            })
        };
        if verdict == Verdict::Hold {
            self.held.insert(self.next, ports.clone());
            self.next.0 += 1;
        }
        self.carry_out(&effects);
        let Effects { emitted: made, pauses, released, .. } = effects;
        let emitted = made.iter().map(|e| e.packet).collect();
        Seen { verdict, pkt, ports, via, emitted, made, pauses, tag, released, home: ends.1 }
    }

    /// Routing learns that exactly these links are dead.
    pub(crate) fn reroute(&mut self, dead: &[(&str, &str)]) {
        let fabric = &self.plan.fabric;
        let down = |&(a, b): &(&str, &str)| {
            let (a, b) = (fabric.find(a).unwrap(), fabric.find(b).unwrap());
            let link = fabric.ports(a).iter().find(|link| link.to == b).unwrap();
            Fault {
                link: fabric.link(a, link.port),
                at: Time::ZERO,
                until: Time::NEVER,
                effect: Effect::Down,
            }
        };
        let faults: Vec<Fault> = dead.iter().map(down).collect();
        Arc::make_mut(&mut self.plan).failures = Failures::new(fabric, &faults, Time::ZERO).unwrap();
        self.rerouted = !dead.is_empty();
        let (plan, node) = (self.plan.clone(), self.node);
        let routing = plan.failures.route_changes().first().and_then(|turn| plan.failures.routing(turn));
        let news = Reroute { site: Site { plan: &plan, node }, routing };
        let mut effects = Effects::default();
        let none = (false, false);
        self.call(PortIndex::VIRTUAL, none, nowhere(), &mut effects, |s, cx| s.on_routes_change(cx, &news));
    }

    fn routing(&self) -> Option<&Routing> {
        let failures = &self.plan.failures;
        failures.route_changes().first().filter(|_| self.rerouted).and_then(|turn| failures.routing(turn))
    }

    /// A data packet departs to its host; returns what the scheme emits.
    pub(crate) fn depart(&mut self, qp: QpId, psn: Psn) -> Vec<Packet> {
        self.depart_as(self.data(qp, psn)).into_iter().map(|e| e.packet).collect()
    }

    /// This data packet departs to its host; returns what the scheme emits.
    pub(crate) fn depart_as(&mut self, pkt: Packet) -> Vec<Emitted> {
        let port = self.plan.fabric.route(self.node, pkt.to())[0];
        let mut effects = Effects::default();
        if self.scheme.interest().host_departures {
            let none = (false, false);
            self.call(PortIndex::VIRTUAL, none, nowhere(), &mut effects, |s, cx| s.on_depart(cx, &pkt, port));
            self.carry_out(&effects);
        }
        effects.emitted
    }

    /// This data packet starts on the wire towards its host; returns the packet and what the scheme emits.
    pub(crate) fn start(&mut self, mut pkt: Packet) -> (Packet, Vec<Packet>) {
        let port = self.plan.fabric.route(self.node, pkt.to())[0];
        let mut effects = Effects::default();
        if self.scheme.interest().departures {
            let none = (false, false);
            self.call(PortIndex::VIRTUAL, none, nowhere(), &mut effects, |s, cx| {
                s.on_start(cx, &mut pkt, port);
            });
            self.carry_out(&effects);
        }
        (pkt, effects.emitted.iter().map(|e| e.packet).collect())
    }

    /// Wakes the scheme; returns the packets that it makes.
    pub(crate) fn wake(&mut self) -> Vec<Emitted> {
        self.woken().emitted
    }

    /// Wakes the scheme; returns all effects.
    pub(crate) fn woken(&mut self) -> Effects {
        self.alarm = None;
        let mut effects = Effects::default();
        self.call(PortIndex::VIRTUAL, (false, false), nowhere(), &mut effects, |s, cx| s.on_wake(cx));
        self.carry_out(&effects);
        effects
    }

    /// Wakes the scheme as often as it asks for it until `until`.
    pub(crate) fn pass(&mut self, until: Time) {
        while let Some(at) = self.alarm.filter(|at| *at <= until) {
            // Every event takes 100 ns here, so an alarm may be late by that, but it must be served.
            self.now = self.now.max(at);
            self.woken();
        }
    }

    /// Does the engine's part for held packets and the clock.
    fn carry_out(&mut self, effects: &Effects) {
        for (handle, port) in &effects.released {
            let ports = self.held.remove(handle);
            assert!(ports.is_some_and(|ports| ports.contains(port)), "{handle:?} released by {port}");
        }
        if let Some(at) = effects.wake {
            assert!(at > self.now, "an alarm in the past");
            self.alarm = Some(self.alarm.map_or(at, |alarm| alarm.min(at)));
        }
    }

    /// A counter of the scheme.
    pub(crate) fn counter(&self, name: &str) -> u64 {
        let mut found = None;
        self.scheme.counters(&mut |n, value| {
            if n == name {
                found = Some(value);
            }
        });
        found.unwrap()
    }

    fn call<T>(
        &mut self,
        ingress: PortIndex,
        (from_host, to_host): (bool, bool),
        (detours, view): (&Detours<'_>, &[u32]),
        effects: &mut Effects,
        handler: impl FnOnce(&mut AnyScheme, &mut Cx<'_>) -> T,
    ) -> T {
        self.now += Time::from_ns(100);
        let entity = u64::from(self.node.0);
        let key = Key::new(self.plan.seed, Purpose::Scheme, entity);
        let salt = Key::new(self.plan.seed, Purpose::Salt, entity).salt();
        let zeros = vec![0; self.queued.len()];
        let queued = if self.scheme.interest().queues { &self.queued } else { &zeros };
        let keys = SwitchKeys { key, salt, handle: self.next };
        let cx = Cx::new(self.now, keys, effects).with_ingress(ingress).with_hosts(from_host, to_host);
        let mut cx =
            cx.with_queued(queued).with_entropy(self.entropy).with_tag(self.tag).with_detours(detours, view);
        cx.echoed = self.echoed;
        handler(&mut self.scheme, &mut cx)
    }
}
