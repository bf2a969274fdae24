//! CONGA: each flowlet takes the least congested path, by local measurement and by feedback from the far leaf.
//!
//! Alizadeh et al., "CONGA: Distributed Congestion-Aware Load Balancing for Datacenters", SIGCOMM'14. A *flowlet* is what
//! a flow sends between two long pauses. After such a pause nothing of the flow is in flight, so the flow may take
//! another path. The first packet of a flowlet takes the uplink whose path has the least congestion. The congestion of
//! a path is the larger of two metrics of a few bits: the load of the uplink itself, and the newest feedback of the far
//! leaf about the path behind it (section 3.5).
//!
//! * *Measurement*: every link between switches has a discounting rate estimator (DRE, section 3.2). Its register grows by
//!   the bytes that are sent and loses the share `alpha` of its value every `dre-period`. So the register is proportional
//!   to the rate over the last `dre-period / alpha`.
//! * *Transport*: the sender's leaf writes the number of the uplink (LBTag) on data (section 3.3), and every link on the
//!   path raises the congestion on the packet (CE) to its own.
//! * *Feedback*: the receiver's leaf keeps the newest CE for every leaf and LBTag (Congestion-From-Leaf) and sends it back
//!   to that leaf (Congestion-To-Leaf). Each packet carries feedback for one path; changed metrics go first.
//! * *Ageing*: a metric halves each time that `ageing` passes without an update, until the path looks idle again.
//!
//! On two tiers a path is given by an uplink and a destination. On three tiers the leaf chooses its uplink in the same way
//! and the switches further up hash, so CE describes only the flows that were hashed alike. The paper claims no more
//! (section 7: with several pods CONGA balances inside each pod, and beats ECMP at the first hop).
//!
//! Our choices, where the paper leaves it open or describes hardware:
//!
//! * In the paper, feedback rides on every packet in the reverse direction, which includes ACKs for TCP. Here ACKs have no
//!   room for it ([`model::Annex::tag`]), and RDMA often has no data in the reverse direction. So data carries feedback
//!   where there is data. Otherwise, if a leaf has sent no feedback to another leaf for `feedback-interval`, the next data
//!   packet from there makes it send a signal, a frame of `signal-size` that ends at that leaf. Signals cost bandwidth:
//!   at the defaults, 0.07 Gb/s for each leaf that sends to another.
//! * The flowlet table has an entry for every queue pair, without collisions, and compares times. The paper's age bit
//!   finds gaps of one to two times the timeout.
//! * A switch knows the rate of its links, also after a failure has slowed one down.
//! * A DRE counts a frame when the frame joins the port's queue. Control packets count, except those made by this switch.
//! * Ageing applies to both tables; otherwise a leaf would repeat stale metrics as if they were new.
//!
//! # Counters
//!
//! | name | counts |
//! |---|---|
//! | `flowlets` | flowlets that chose an uplink, including the first of each queue pair |
//! | `flowlets_moved` | flowlets that took another uplink than the flowlet before |
//! | `feedback_carried` | data packets that carried feedback |
//! | `feedback_signals` | signals sent because no data packet could carry the feedback |

mod dre;
mod tables;
#[cfg(test)]
mod tests;

use crate::flows::Flows;
use crate::racks::Racks;
use crate::{Facts, Recipe, palette::Look};
use dre::{Dre, DreRules};
use finding::{Finding, code};
use model::{Bytes, Cx, Interest, Kind, Packet, Plan, PortIndex, Reroute, Scheme, Site, Time, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tables::{FromLeaf, Header, PathFeedback, ToLeaf};

/// `[scheme.conga]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "SchemeConga")]
pub struct Config {
    /// Pause after which a flow may take another path. Default 100 us (the setting of ConWeave's authors for CONGA at
    /// 100 Gb/s; the CONGA paper, section 3.6, has 500 us for TCP at 10 Gb/s).
    pub flowlet_gap: Time,
    /// Time between two decays of a rate estimator. Default 50 us (ConWeave's authors).
    pub dre_period: Time,
    /// Share that a rate estimator loses at each decay, 0.01 to 1. Default 0.2 (ConWeave's authors). With the default
    /// period this gives a time constant of 250 us; the CONGA paper has 160 us (section 3.6).
    pub dre_alpha: f64,
    /// Bits of a congestion metric, 1 to 6. Default 3 (CONGA, section 3.6, which recommends 3 to 6).
    pub quantisation_bits: u8,
    /// Time without an update after which a metric halves, repeatedly. Default 500 us (ConWeave's authors; the CONGA
    /// paper, section 3.3, suggests 10 ms).
    pub ageing: Time,
    /// Shortest time from any feedback to a leaf until the next signal to it; at 0 every data packet may cause a signal.
    /// Default 10 us (our choice: feedback on eight paths well within a time constant, while at 100 Gb/s the signals cost
    /// a thousandth of the data that causes them).
    pub feedback_interval: Time,
    /// Size of a feedback signal on the wire, without preamble and gap. Default 64 B (Ethernet's smallest frame).
    pub signal_size: Bytes,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            flowlet_gap: Time::from_us(100),
            dre_period: Time::from_us(50),
            dre_alpha: 0.2,
            quantisation_bits: 3,
            ageing: Time::from_us(500),
            feedback_interval: Time::from_us(10),
            signal_size: Bytes(64),
        }
    }
}

/// Current flowlet of a queue pair that begins here.
#[derive(Clone, Copy, Debug, Default)]
struct Flowlet {
    port: PortIndex,
    /// Arrival of the flow's last packet.
    last: Time,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    flowlets: u64,
    moved: u64,
    carried: u64,
    signals: u64,
}

/// The scheme of one switch.
#[derive(Clone, Debug)]
pub struct Conga {
    gap: Time,
    interval: Time,
    signal_size: u32,
    /// Preamble and gap of a frame, bytes.
    overhead: u32,
    rules: DreRules,
    /// Rate estimators by port; `None` for ports to hosts.
    links: Vec<Option<Dre>>,
    racks: Racks,
    flowlets: Flows<Flowlet>,
    to_leaf: ToLeaf,
    from_leaf: FromLeaf,
    counts: Counts,
    /// True if a flowlet's port may no longer lead to its rack: after a change of routes, and in a fabric of groups.
    may_stray: bool,
}

impl Recipe for Config {
    type Scheme = Conga;
    const LOOK: Option<Look> = Some(Look::new(5, 3));
    const TRIALS: &'static [&'static str] = &[
        "flowlet-gap = \"1us\"\ndre-period = \"2us\"\nageing = \"20us\"\nfeedback-interval = \"1us\"",
        "flowlet-gap = \"2us\"\ndre-period = \"1us\"\ndre-alpha = 0.5\nfeedback-interval = \"0us\"",
    ];

    fn facts(&self) -> Facts {
        Facts { tags: true, signal: self.signal_size.get() as u32, ..Facts::plain(false) }
    }

    fn build(&self, site: Site<'_>) -> Conga {
        let fabric = site.fabric();
        let rules = DreRules::new(self.dre_period, self.dre_alpha, self.quantisation_bits);
        let ports = fabric.ports(site.node);
        let link = |link: &model::fabric::Link| {
            let changes = site.plan.failures.of(fabric.link(site.node, link.port));
            (!fabric.is_host(link.to)).then(|| rules.estimator(link.rate, changes))
        };
        let racks = Racks::of(site);
        Conga {
            gap: self.flowlet_gap,
            interval: self.feedback_interval,
            signal_size: self.signal_size.get() as u32,
            overhead: site.plan.wire.gap,
            rules,
            links: ports.iter().map(link).collect(),
            to_leaf: ToLeaf::new(racks.count(), ports.len(), self.ageing),
            from_leaf: FromLeaf::new(racks.count(), self.ageing),
            racks,
            flowlets: Flows::new(),
            counts: Counts::default(),
            may_stray: fabric.groups() > 0,
        }
    }

    fn validate(&self, plan: &Plan) -> Result<Vec<Finding>, Finding> {
        let fail = |field, text: String| Err(code::RANGE.at(field, text));
        for (field, time) in
            [("flowlet-gap", self.flowlet_gap), ("dre-period", self.dre_period), ("ageing", self.ageing)]
        {
            if time == Time::ZERO {
                return fail(field, "it must be longer than 0".to_owned());
            }
        }
        if !(self.dre_alpha >= 0.01 && self.dre_alpha <= 1.0) {
            return fail("dre-alpha", format!("a share of {}; 0.01 to 1 are possible", self.dre_alpha));
        }
        if !(1..=tables::MOST_BITS).contains(&self.quantisation_bits) {
            let text = format!("{} bits; 1 to {} are possible", self.quantisation_bits, tables::MOST_BITS);
            return fail("quantisation-bits", text);
        }
        if self.feedback_interval >= self.ageing {
            let text = format!(
                "{}; it must be shorter than `ageing` ({}), or metrics would age before they are sent again",
                self.feedback_interval, self.ageing
            );
            return fail("feedback-interval", text);
        }
        if self.signal_size == Bytes(0) || self.signal_size.get() > u64::from(plan.wire.max_frame()) {
            let text = format!("{}; it must be above 0 and no larger than a frame of data", self.signal_size);
            return fail("signal-size", text);
        }
        Ok(Vec::new())
    }
}

impl Conga {
    /// Congestion of the link behind a port.
    #[inline]
    fn local(&mut self, now: Time, port: PortIndex) -> u8 {
        let link = self.links.get_mut(port.index()).and_then(Option::as_mut);
        link.map_or(0, |dre| self.rules.level(dre, now))
    }

    /// The least congested uplink for a flowlet. Among equals the flow keeps its uplink, else a draw decides.
    fn choose(
        &mut self,
        cx: &mut Cx<'_>,
        rack: u16,
        ports: &[PortIndex],
        had: Option<PortIndex>,
    ) -> PortIndex {
        let (mut least, mut equals, mut stays) = (u8::MAX, 0, false);
        for &port in ports {
            let metric = self.local(cx.now, port).max(self.to_leaf.metric(rack, port, cx.now));
            if metric < least {
                (least, equals, stays) = (metric, 0, false);
            }
            if metric == least {
                equals += 1;
                stays |= had == Some(port);
            }
        }
        if let Some(port) = had.filter(|_| stays) {
            return port;
        }
        let lot = if equals > 1 { cx.pick(equals) } else { 0 };
        let now = cx.now;
        let best = ports
            .iter()
            .copied()
            .filter(|&port| self.local(now, port).max(self.to_leaf.metric(rack, port, now)) == least)
            .nth(lot);
        best.unwrap_or(ports[0])
    }

    /// Data that comes from a host and leaves the rack.
    fn depart(&mut self, cx: &mut Cx<'_>, pkt: &Packet, ports: &[PortIndex]) -> PortIndex {
        let Some(rack) = self.racks.rack(pkt.to()) else { return cx.base_path(pkt, ports) };
        let (now, gap, may_stray) = (cx.now, self.gap, self.may_stray);
        // A port that no longer leads to the rack has failed.
        let leads = |port: &PortIndex| !may_stray || ports.contains(port);
        let port = match self.flowlets.get_mut(pkt.qp()) {
            Some(flowlet) if now.since(flowlet.last) <= gap && leads(&flowlet.port) => {
                flowlet.last = now;
                flowlet.port
            }
            before => {
                let before = before.map(|flowlet| flowlet.port);
                let port = self.choose(cx, rack, ports, before.filter(leads));
                self.counts.flowlets += 1;
                self.counts.moved += u64::from(before.is_some_and(|before| before != port));
                self.flowlets.insert(pkt.qp(), Flowlet { port, last: now });
                port
            }
        };
        let feedback = self.from_leaf.next_feedback(rack, cx.now);
        if feedback.is_some() {
            self.counts.carried += 1;
            self.from_leaf.note_sent(rack, Time(cx.now.ps().saturating_add(self.interval.ps())));
        }
        cx.tag = Header { lb_tag: port, ce: 0, feedback }.tag();
        port
    }

    /// Data from another rack to a host of this one.
    fn arrive(&mut self, cx: &mut Cx<'_>, pkt: &Packet) {
        let header = Header::read(cx.tag);
        let Some(rack) = self.racks.sender(pkt.qp()).and_then(|host| self.racks.rack(host)) else { return };
        if let Some(feedback) = header.feedback {
            self.to_leaf.update(rack, feedback, cx.now);
        }
        self.from_leaf.record(rack, header.lb_tag, header.ce, cx.now);
        if self.from_leaf.may_signal(rack, cx.now)
            && let Some(feedback) = self.from_leaf.next_feedback(rack, cx.now)
            && let Some(packet) = self.racks.signal(pkt.qp(), self.signal_size)
            && let Some(here) = self.racks.rack(pkt.to())
        {
            self.counts.signals += 1;
            self.from_leaf.note_sent(rack, Time(cx.now.ps().saturating_add(self.interval.ps())));
            cx.signal(packet, feedback.tag_from(here), None);
        }
    }
}

impl Scheme for Conga {
    fn interest(&self) -> Interest {
        // A switch without hosts keeps nothing but the rate estimators of its ports.
        let alone = self.racks.count() == 0;
        Interest {
            every_packet: true,
            plain_replies: true,
            makes_replies: true,
            local: alone,
            passes: alone,
            by_arrivals: true,
            ..Interest::default()
        }
    }

    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &mut Packet, ports: &[PortIndex]) -> Verdict {
        let inside = cx.from_host && cx.to_host;
        let port = match pkt.kind() {
            Kind::Data if inside => ports[0],
            Kind::Data if cx.from_host => self.depart(cx, pkt, ports),
            Kind::Data => {
                if cx.to_host {
                    self.arrive(cx, pkt);
                }
                cx.base_path(pkt, ports)
            }
            Kind::Signal if cx.to_host => {
                let (rack, feedback) = PathFeedback::read_from(cx.tag);
                self.to_leaf.update(rack, feedback, cx.now);
                return Verdict::Drop;
            }
            _ => cx.base_path(pkt, ports),
        };
        if let Some(Some(dre)) = self.links.get_mut(port.index()) {
            self.rules.count(dre, cx.now, pkt.frame() + self.overhead);
            if pkt.is_data() && !inside {
                let level = self.rules.level(dre, cx.now);
                cx.tag = Header::raised(cx.tag, level);
            }
        }
        Verdict::Forward(port)
    }

    #[inline]
    fn on_pass(&mut self, now: Time, pkt: &Packet, tag: u64, port: PortIndex) -> u64 {
        let Some(Some(dre)) = self.links.get_mut(port.index()) else { return tag };
        self.rules.count(dre, now, pkt.frame() + self.overhead);
        if pkt.is_data() { Header::raised(tag, self.rules.level(dre, now)) } else { tag }
    }

    /// Replies load links, too.
    fn note_reply(&mut self, now: Time, pkt: &Packet, port: PortIndex) {
        if let Some(Some(dre)) = self.links.get_mut(port.index()) {
            self.rules.count(dre, now, pkt.frame() + self.overhead);
        }
    }

    fn on_routes_change(&mut self, _: &mut Cx<'_>, _: &Reroute<'_>) {
        self.may_stray = true;
    }

    fn counters(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("flowlets", self.counts.flowlets);
        sink("flowlets_moved", self.counts.moved);
        sink("feedback_carried", self.counts.carried);
        sink("feedback_signals", self.counts.signals);
    }
}
