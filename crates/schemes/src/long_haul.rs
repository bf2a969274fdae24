//! Long-haul: a notification point and a reaction point for congestion control, in the switches at a datacentre's edge.
//!
//! "THEMIS: Efficiently Mitigating Congestion-Induced Fairness Disparities in Long-Haul RDMA Networks" (Liu et al.), a
//! poster of two pages, and its public prototype. It is called long-haul here because another system is called Themis. A
//! report of congestion to a sender in another datacentre arrives a long round trip too late, and local flows pay for the
//! delay. So the *external* switch between a datacentre and the long link answers on behalf of the remote end:
//!
//! * **Notification point** ([`notify`]), for local senders. Data that was marked in its own datacentre and is about to
//!   leave loses its mark, and its sender gets a CNP from the external switch, at most one per interval. CNPs from the long
//!   link count against the same interval.
//! * **Reaction point** ([`react`]), for local receivers. A CNP that is about to leave shows that a remote flow is too
//!   fast. The switch notes on the CNP that it has reacted, forwards the CNP, and delays the flow's data for a while.
//!
//! A *long port* leads to another switch of the same role, so the scheme belongs in `[switch-role.external.scheme]`.
//! Data takes its base path.
//!
//! In a datacentre with several external switches, a flow's data and its CNPs take independent hashed paths. If they cross
//! different external switches, the switch that sees the CNPs is not the one that could delay the data.
//!
//! A congestion flag on an ACK is treated like a CNP frame: where a CNP would be dropped, the flag is cleared.
//!
//! # Counters
//!
//! | name | counts |
//! |---|---|
//! | `marks_seen` | marked data packets that were about to leave their sender's datacentre |
//! | `cnps_made` | CNPs to local senders |
//! | `cnps_passed` | CNPs from a long link that were forwarded |
//! | `cnps_gated` | CNPs from a long link that ended here |
//! | `reactions` | CNPs of local receivers that changed a flow's delay |
//! | `reacted_before` | CNPs from a long link that carried the note of the remote switch's reaction |
//! | `episodes` | times that the delay of a flow began |
//! | `holds` | packets held |
//! | `resubmissions` | further passes of held packets through the ingress pipeline (`delay`), or returns to the tail of their port (`prototype`) |
//! | `overflows` | packets released early because the stash was full |
//! | `stash_flow_peak` | most bytes held of one flow, summed over switches |
//! | `stash_peak` | most bytes held at one time, summed over switches |
//! | `stash_left` | bytes held at the end of the run |

mod notify;
mod prototype;
mod react;
#[cfg(test)]
mod tests;

use crate::{ConfigError, Facts, Feedback, Recipe};
use model::{
    Bytes, Cx, HostId, Interest, Kind, NodeId, Packet, Plan, PortIndex, Reroute, Scheme, Site, Time, Verdict,
};
use notify::Notifier;
use prototype::Prototype;
use react::Stash;
use rnic::Control as _;
use rnic::congestion::dcqcn;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[switch-role.external.scheme.long-haul]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "SchemeLongHaul")]
pub struct Config {
    /// Behaviour of the notification point. `"paper"`: at most one CNP per flow in `interval`. `"prototype"`: as in the
    /// prototype, one CNP for every marked packet, and a second one if `interval` has passed since the last. `"off"`: no
    /// CNPs. Default `"paper"`.
    pub notification: Notification,
    /// Shortest time between two CNPs to one flow's sender, made or forwarded; 0 sets no limit. It should equal the
    /// `cnp-interval` of receivers. Otherwise the senders that get more CNPs give way to those that get fewer. Default
    /// 50 us (long-haul paper, section 2).
    pub interval: Time,
    /// Whether CNPs from a long link count against the interval, and end here if it has not passed. Default true with
    /// `notification = "paper"` (long-haul paper, section 2), else false (prototype: not implemented).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate: Option<bool>,
    /// Behaviour of the reaction point. `"rate"`: packets of a flow are held for T_block, and leave no faster than a
    /// virtual DCQCN allows. `"delay"`: packets are held for T_block alone, in whole passes through the ingress pipeline,
    /// and no packet makes fewer passes than the packet before (the paper's wording, under which delays run away).
    /// `"prototype"`: as in the prototype, a packet goes to the tail of its port's queue once more, and the port then
    /// stands still; flows may never finish. `"off"`: no reaction. Default `"rate"` (our choice: a constant delay does not
    /// change a rate).
    pub reaction: ReactionMode,
    /// T_block after a single CNP. Default 8 us (our choice: a round trip within the paper's datacentre; the paper gives no
    /// number).
    pub first_delay: Time,
    /// Upper bound of T_block. Default: the round trip over the longest of the long links (our choice: by then the sender
    /// has received the CNP).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most_delay: Option<Time>,
    /// Memory for CNPs. A CNP within this time of the flow's last one doubles T_block. Each such time without a CNP halves
    /// T_block, and T_block below half of `first-delay` becomes 0. With `"prototype"`, a flow's packets take further turns
    /// for this long after a CNP. Default 55 us (prototype: the counterpart of its alpha timer; doubling and halving are
    /// our choice, the paper says "similar to DCQCN").
    pub memory: Time,
    /// Shortest time between two changes of a flow's T_block. Default: `interval`, and at least 1 us (our choice).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<Time>,
    /// Settings of the virtual rate of `reaction = "rate"`.
    pub rate: VirtualRate,
    /// Most bytes held of one flow. Default: the bytes that the flow's sender sends at line rate in a round trip over the
    /// longest of the long links (our choice: by then the sender has received the CNP).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow_stash: Option<Bytes>,
    /// Most bytes held in the switch. Default 209.7152 MB (our choice: 200 MiB, the buffer of an external switch in the
    /// prototype).
    pub stash: Bytes,
}

/// A DCQCN in the switch that receives a flow's CNPs before its sender does. It starts at the sender's line rate. Settings
/// that are absent here are the defaults of `[nic.congestion.dcqcn]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "LongHaulVirtualRate")]
pub struct VirtualRate {
    /// Time between rate increases. Default 55 us (DCQCN paper, SIGCOMM 2015; our choice over the sender's own timer: this
    /// loop is short, and held packets delay the flow for as long as the virtual rate is below the arrival rate).
    pub rate_increase_timer: Time,
    /// Number of increases that only return towards the rate before the cut. Default 5 (DCQCN paper, SIGCOMM 2015).
    pub fast_recovery: u32,
    /// Shortest time between rate cuts. Default 4 us (HPCC simulators).
    pub rate_decrease_interval: Time,
    /// Time between updates of alpha. Default 1 us (HPCC simulators).
    pub alpha_timer: Time,
}

impl Default for VirtualRate {
    fn default() -> Self {
        VirtualRate {
            rate_increase_timer: Time::from_us(55),
            fast_recovery: 5,
            rate_decrease_interval: Time::from_us(4),
            alpha_timer: Time::from_us(1),
        }
    }
}

impl VirtualRate {
    fn dcqcn(&self) -> dcqcn::Config {
        dcqcn::Config {
            rate_increase_timer: self.rate_increase_timer,
            fast_recovery: self.fast_recovery,
            rate_decrease_interval: self.rate_decrease_interval,
            alpha_timer: self.alpha_timer,
            ..dcqcn::Config::default()
        }
    }
}

/// Behaviour of the notification point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "LongHaulNotification")]
pub enum Notification {
    /// As described in the paper: at most one CNP per flow and interval.
    Paper,
    /// As in the prototype: one CNP for every marked packet, or two.
    Prototype,
    /// No notification.
    Off,
}

/// Behaviour of the reaction point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "LongHaulReaction")]
pub enum ReactionMode {
    /// A delay and a virtual rate.
    Rate,
    /// A delay alone.
    Delay,
    /// As in the prototype: a further turn in the queue of the port.
    Prototype,
    /// No reaction.
    Off,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            notification: Notification::Paper,
            interval: Time::from_us(50),
            gate: None,
            reaction: ReactionMode::Rate,
            first_delay: Time::from_us(8),
            most_delay: None,
            memory: Time::from_us(55),
            step: None,
            rate: VirtualRate::default(),
            flow_stash: None,
            stash: Bytes(200 << 20),
        }
    }
}

/// Shortest time between two changes of T_block if the interval is shorter. Our choice.
const LEAST_STEP: Time = Time::from_us(1);
/// Longest time that any timer runs, so that sums of times stay in range: ten days.
const MOST: Time = Time::from_ms(864_000_000);

/// Ports of a switch that lead to another switch of its role.
pub(crate) fn long_ports(plan: &Plan, node: NodeId) -> Vec<PortIndex> {
    let fabric = &plan.fabric;
    let alike = |to: NodeId| !fabric.is_host(to) && fabric.role(to) == fabric.role(node);
    fabric.ports(node).iter().filter(|link| alike(link.to)).map(|link| link.port).collect()
}

/// Round trip over the longest of a switch's long links.
fn long_round_trip(plan: &Plan, node: NodeId) -> Time {
    let ports = plan.fabric.ports(node);
    let delays = long_ports(plan, node).into_iter().map(|port| ports[usize::from(port.0)].delay);
    Time(delays.max().unwrap_or_default().ps().saturating_mul(2))
}

impl Config {
    fn gates(&self) -> bool {
        self.gate.unwrap_or(self.notification == Notification::Paper)
    }

    fn step(&self) -> Time {
        self.step.unwrap_or(self.interval.max(LEAST_STEP))
    }
}

impl Recipe for Config {
    type Scheme = LongHaul;

    fn facts(&self) -> Facts {
        Facts {
            sprays: false,
            feedback: Feedback::CnpsSent,
            tags: false,
            signal: 0,
            view: None,
            nic: None,
            pinned: false,
        }
    }

    fn build(&self, site: Site<'_>) -> LongHaul {
        let plan = site.plan;
        let mut long = vec![false; plan.fabric.ports(site.node).len()];
        for port in long_ports(plan, site.node) {
            long[usize::from(port.0)] = true;
        }
        let senders: Vec<HostId> = plan.qps.iter().map(|qp| qp.from).collect();
        let reactor = match self.reaction {
            ReactionMode::Off => Reactor::Off,
            ReactionMode::Rate | ReactionMode::Delay => Reactor::Stash(Box::new(Stash::new(self, site))),
            ReactionMode::Prototype => Reactor::Prototype(Box::new(Prototype::new(self, site))),
        };
        LongHaul { long, notifier: Box::new(Notifier::new(self, senders, plan.wire.cnp)), reactor }
    }

    fn validate(&self, plan: &Plan) -> Result<Vec<String>, ConfigError> {
        let fail = |field, text: String| Err(ConfigError::new(field, text));
        if self.notification == Notification::Prototype && self.interval == Time::ZERO {
            let text = "the prototype sends a second CNP after this interval, so 0 would double every CNP; \
                        the prototype has 10 us";
            return fail("interval", text.to_owned());
        }
        for (field, time) in [("first-delay", Some(self.first_delay)), ("most-delay", self.most_delay)] {
            if time == Some(Time::ZERO) && self.reaction == ReactionMode::Delay {
                return fail(
                    field,
                    "with `reaction = \"delay\"` it must be longer than 0: nothing else holds packets back"
                        .into(),
                );
            }
        }
        if self.memory == Time::ZERO {
            return fail(
                "memory",
                "it must be longer than 0, or every CNP would be forgotten at once".to_owned(),
            );
        }
        if self.step == Some(Time::ZERO) {
            let text = "T_block may double once per step, so it must be longer than 0";
            return fail("step", text.to_owned());
        }
        if self.most_delay.is_some_and(|most| most < self.first_delay) {
            let text = format!("it is below `first-delay` ({})", self.first_delay);
            return fail("most-delay", text);
        }
        if self.reaction == ReactionMode::Rate
            && let Err(invalid) = self.rate.dcqcn().validate()
        {
            return fail("rate", format!("`{}` {}", invalid.field, invalid.reason));
        }
        let mut warnings = Vec::new();
        if plan.ports.iter().all(|port| port.marking.is_none()) {
            warnings
                .push("no switch marks packets (`ecn = \"off\"`), so long-haul has nothing to do".to_owned());
        }
        if self.reaction == ReactionMode::Prototype {
            warnings.push(
                "long-haul with `reaction = \"prototype\"`: after a packet returns to the tail, its port stands still until \
                 another packet comes; flows may never finish"
                    .to_owned(),
            );
        }
        Ok(warnings)
    }

    fn place(&self, plan: &Plan, switches: &[NodeId]) -> Result<(), ConfigError> {
        for &node in switches {
            if long_ports(plan, node).is_empty() {
                let (name, role) = (plan.fabric.name(node), plan.fabric.role(node));
                let text = format!(
                    "the switch `{name}` has no long link: none of its links leads to another switch of the role `{role}`. \
                     The scheme belongs in the switches at the two ends of a long link, such as \
                     `[switch-role.external.scheme.long-haul]` in `topology.datacentres`"
                );
                return Err(ConfigError::new("", text));
            }
        }
        Ok(())
    }
}

/// The scheme of one external switch.
#[derive(Clone, Debug)]
pub struct LongHaul {
    /// True for long ports, by port.
    long: Vec<bool>,
    notifier: Box<Notifier>,
    reactor: Reactor,
}

#[derive(Clone, Debug)]
enum Reactor {
    Off,
    Stash(Box<Stash>),
    Prototype(Box<Prototype>),
}

impl LongHaul {
    fn is_long(&self, port: PortIndex) -> bool {
        self.long.get(usize::from(port.0)).copied().unwrap_or(false)
    }
}

/// True for a CNP, and for a reply that carries a congestion flag.
fn reports(pkt: &Packet) -> bool {
    match pkt.kind() {
        Kind::Cnp => true,
        Kind::Ack | Kind::Nack => pkt.echo(),
        Kind::Data | Kind::Signal | Kind::Trimmed | Kind::Control => false,
    }
}

impl Scheme for LongHaul {
    fn interest(&self) -> Interest {
        Interest { every_packet: true, makes_replies: true, ..Interest::default() }
    }

    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &mut Packet, ports: &[PortIndex]) -> Verdict {
        let port = cx.base_path(pkt, ports);
        let (came, leaves) = (self.is_long(cx.ingress), self.is_long(port));
        if reports(pkt) {
            match &mut self.reactor {
                Reactor::Stash(stash) if leaves && !came => stash.report(cx.now, pkt),
                Reactor::Stash(stash) if came => stash.hear(pkt),
                // The prototype does not tell CNPs of local receivers from CNPs of the long link.
                Reactor::Prototype(prototype) => prototype.report(cx.now, pkt.qp()),
                _ => {}
            }
            if came && !self.notifier.passes(cx.now, pkt) {
                if pkt.kind() == Kind::Cnp {
                    return Verdict::Drop;
                }
                *pkt = pkt.with_echo(false);
            }
        }
        if pkt.is_data() && leaves && !came && pkt.marked() {
            self.notifier.notify(cx, pkt);
        }
        match &mut self.reactor {
            Reactor::Stash(stash) if pkt.is_data() && came && !leaves => stash.arrive(cx, pkt, port),
            Reactor::Prototype(prototype) if !leaves => prototype.arrive(cx, pkt, port),
            _ => Verdict::Forward(port),
        }
    }

    fn on_wake(&mut self, cx: &mut Cx<'_>) {
        match &mut self.reactor {
            Reactor::Off => {}
            Reactor::Stash(stash) => stash.wake(cx),
            Reactor::Prototype(prototype) => prototype.wake(cx),
        }
    }

    fn on_routes_change(&mut self, _cx: &mut Cx<'_>, news: &Reroute<'_>) {
        match &mut self.reactor {
            Reactor::Off | Reactor::Prototype(_) => {}
            Reactor::Stash(stash) => stash.reroute(news),
        }
    }

    fn counters(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        self.notifier.counters(sink);
        match &self.reactor {
            Reactor::Off => {}
            Reactor::Stash(stash) => stash.counters(sink),
            Reactor::Prototype(prototype) => prototype.counters(sink),
        }
    }
}
