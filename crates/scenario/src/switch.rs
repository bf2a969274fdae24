//! `[switch]` and `[switch-role.NAME]`: buffers, PFC, marking.

pub use crate::classes::Classes;
use crate::values::{Chance, Share, Switched};
use finding::{Finding, code};
use model::fabric::Link;
use model::plan::{Cut, FlowControl, MarkAt, Marking, Overflow, Pfc, PortSettings, SwitchSettings};
use model::{Bytes, Fabric, NodeId, Rate, Wire};
use schemars::JsonSchema;
use schemes::{FeedbackConfig, SchemeConfig};
use serde::{Deserialize, Serialize};

/// Settings of every switch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct SwitchConfig {
    /// Switch whose published figures fill in the keys that the scenario leaves out, such as "tomahawk-5"; `ropewalk list
    /// switches` shows all. Default: none, so every key has its own default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Size of the packet buffer that all ports share. Default 64 MB (the switch of the Themis paper).
    pub buffer: Bytes,
    /// Priority flow control; `"off"` makes the fabric lossy. Default on (our choice).
    pub pfc: Switched<PfcConfig>,
    /// Without PFC, largest share of the free buffer that one egress queue may hold; a switch drops packets beyond it.
    /// Default 1 (the egress alpha of the ConWeave simulator).
    pub drop_alpha: Share,
    /// Marking of packets in long queues (ECN); `"off"` marks no packet. Default on (our choice).
    pub ecn: Switched<EcnConfig>,
    /// Without PFC, longest queue of data to a switch, in place of `drop-alpha`. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_cap: Option<Bytes>,
    /// Without PFC, longest queue of data to a host; needs `queue-cap`. Default: `queue-cap`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_cap_to_hosts: Option<Bytes>,
    /// Without PFC, longest queue of data at ports of certain rates, in place of `queue-cap` and `queue-cap-to-hosts`; needs
    /// `queue-cap`. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub queue_cap_at_rate: Vec<RateCap>,
    /// Cutting of data: a switch without PFC sends the headers of a data packet on that does not fit into its queue,
    /// instead of a drop. Default off (our choice).
    #[serde(skip_serializing_if = "is_off")]
    pub cut: Switched<CutConfig>,
    /// Priority classes of a port. `"strict"`: CNPs before all other control packets before data; PFC counts and pauses
    /// data only. `"one"`: one queue for all packets. `"cnp-first"`: CNPs first; all other control packets share the queue
    /// of data and are paused with it (the HPCC family of ns-3 simulators). An array lists up to four classes by their
    /// kinds of packets. Default `"strict"` (RoCE deployments; the ConWeave simulator).
    pub classes: Classes,
}

fn is_true(value: &bool) -> bool {
    *value
}

fn is_off<T>(feature: &Switched<T>) -> bool {
    feature.get().is_none()
}

impl Default for SwitchConfig {
    fn default() -> Self {
        SwitchConfig {
            model: None,
            buffer: Bytes(64_000_000),
            pfc: Switched::default(),
            drop_alpha: Share::new(1, 1),
            ecn: Switched::default(),
            queue_cap: None,
            queue_cap_to_hosts: None,
            queue_cap_at_rate: Vec::new(),
            cut: Switched::OFF,
            classes: Classes::Strict,
        }
    }
}

/// Cap on queues of ports of one rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RateCap {
    /// Rate of the ports. No default.
    pub rate: Rate,
    /// Longest queue of data. No default.
    pub cap: Bytes,
}

/// Cutting of data that does not fit into its queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct CutConfig {
    /// Frame of a trimmed packet, from the Ethernet header to the FCS. Default 64 B (the smallest Ethernet frame; htsim).
    pub frame: Bytes,
    /// Packet that is cut: the one that arrives (`"arriving"`), or by a coin either that one or the newest data packet in
    /// the queue (`"even"`, as in NDP and htsim). Default `"arriving"` (Ultra Ethernet, DCP).
    pub victim: Victim,
}

impl Default for CutConfig {
    fn default() -> Self {
        CutConfig { frame: Bytes(64), victim: Victim::Arriving }
    }
}

/// Packet that a switch cuts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Victim {
    /// The packet that arrives.
    Arriving,
    /// By a coin, the packet that arrives or the newest one that waits.
    Even,
}

/// Priority flow control.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct PfcConfig {
    /// Share of the free shared buffer at which an ingress port pauses its neighbour. Default 1/8 (HPCC simulator).
    pub alpha: Share,
    /// `alpha` of ports of certain rates, at least `alpha`: `[{ rate = "400Gbps", alpha = "1/2" }]`. Default: none. HPCC's
    /// simulator doubles it with each doubling of a rate above that of NICs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alpha_at_rate: Vec<RateAlpha>,
    /// Distance below the pause threshold at which the port lets its neighbour resume. Default 3 KiB (HPCC simulator).
    pub resume_offset: Bytes,
    /// Buffer reserved per port and virtual channel for packets that arrive after a pause was sent: a size, or
    /// `{ delays = 3 }` for so many times the port's delay x rate, and at least the default. Default
    /// 2 x delay x rate + 2 frames of that port, the least that loses no packet (our choice). With `compat = "ns3"` a
    /// pause frame occupies the wire, which adds one frame and the pause frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headroom: Option<Headroom>,
}

/// `alpha` of ports of one rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RateAlpha {
    /// Rate of the ports. No default.
    pub rate: Rate,
    /// Their share of the free shared buffer. No default.
    pub alpha: Share,
}

/// Size of a headroom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a size such as \"30kB\", or `{ delays = 3 }`")]
pub enum Headroom {
    /// Fixed size.
    Bytes(Bytes),
    /// A multiple of the link's delay x rate.
    Delays(Delays),
}

/// A multiple of a link's delay x rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Delays {
    /// Factor of the link's delay x rate. No default.
    pub delays: u32,
}

impl Default for PfcConfig {
    fn default() -> Self {
        PfcConfig {
            alpha: Share::new(1, 8),
            alpha_at_rate: Vec::new(),
            resume_offset: Bytes(3 * 1024),
            headroom: None,
        }
    }
}

/// Random early marking of a port's data queue. `kmin` and `kmax` hold for a port of 100 Gb/s and scale with the port's
/// rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct EcnConfig {
    /// Queue length up to which no packet is marked, per 100 Gb/s of the port's rate. Default 100 kB (HPCC family of
    /// ns-3 simulators).
    pub kmin: Bytes,
    /// Queue length above which every packet is marked, per 100 Gb/s of the port's rate. Default 400 kB (HPCC family of
    /// ns-3 simulators).
    pub kmax: Bytes,
    /// Probability of a mark just below `kmax`. Default 0.2 (HPCC family of ns-3 simulators).
    pub pmax: Chance,
    /// Moment of the marking decision: when a packet leaves the queue (`"dequeue"`) or joins it (`"enqueue"`). Default
    /// `"dequeue"` (HPCC family of ns-3 simulators).
    pub mark: Mark,
    /// Whether ports to hosts mark, too. Default true (HPCC family of ns-3 simulators). Ultra Ethernet turns these marks
    /// off where receivers grant credit.
    #[serde(skip_serializing_if = "is_true")]
    pub to_hosts: bool,
    /// Thresholds for ports of certain rates, used without scaling instead of `kmin`, `kmax` and `pmax`. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub at_rate: Vec<RateEcn>,
}

impl Default for EcnConfig {
    fn default() -> Self {
        EcnConfig {
            kmin: Bytes(100_000),
            kmax: Bytes(400_000),
            pmax: Chance::new(0.2),
            mark: Mark::Dequeue,
            to_hosts: true,
            at_rate: Vec::new(),
        }
    }
}

/// Thresholds for ports of one rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RateEcn {
    /// Rate of the ports. No default.
    pub rate: Rate,
    /// Queue length up to which no packet is marked. No default.
    pub kmin: Bytes,
    /// Queue length above which every packet is marked. No default.
    pub kmax: Bytes,
    /// Probability of a mark just below `kmax`. No default.
    pub pmax: Chance,
}

/// Moment at which a queue decides on a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mark {
    /// When a packet leaves the queue.
    Dequeue,
    /// When a packet joins the queue.
    Enqueue,
}

/// Settings that differ in switches of one role.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct RoleConfig {
    /// Size of the packet buffer. Default: `buffer` of `[switch]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer: Option<Bytes>,
    /// Priority flow control. Default: `pfc` of `[switch]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pfc: Option<Switched<PfcConfig>>,
    /// Without PFC, largest share of the free buffer that one egress queue may hold. Default: `drop-alpha` of `[switch]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drop_alpha: Option<Share>,
    /// Without PFC, longest queue of data to a switch. Default: `queue-cap` of `[switch]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_cap: Option<Bytes>,
    /// Without PFC, longest queue of data to a host. Default: `queue-cap-to-hosts` of `[switch]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_cap_to_hosts: Option<Bytes>,
    /// Without PFC, longest queue of data at ports of certain rates. Default: `queue-cap-at-rate` of `[switch]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_cap_at_rate: Option<Vec<RateCap>>,
    /// Cutting of data that does not fit into its queue. Default: `cut` of `[switch]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut: Option<Switched<CutConfig>>,
    /// Marking of packets in long queues. Default: `ecn` of `[switch]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ecn: Option<Switched<EcnConfig>>,
    /// Load balancing. Default: the scheme of the packet's class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheme: Option<SchemeConfig>,
    /// What these switches tell senders. Default: the scenario's `feedback`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feedback: Option<FeedbackConfig>,
}

/// The caps on queues of one switch.
struct Caps<'a> {
    to_switches: Bytes,
    to_hosts: Bytes,
    at_rate: &'a [RateCap],
}

impl Caps<'_> {
    /// The cap of the queue that leaves by a link.
    fn of(&self, link: &Link, fabric: &Fabric) -> Bytes {
        match self.at_rate.iter().find(|entry| entry.rate == link.rate) {
            Some(entry) => entry.cap,
            None if fabric.is_host(link.to) => self.to_hosts,
            None => self.to_switches,
        }
    }
}

/// Smallest frame of a trimmed packet, bytes: that of DCP (SIGCOMM 2025).
const LEAST_FRAME: u32 = 57;

/// The settings of one switch: those of its role where set, else those of `[switch]`. A class of `switch.classes` may have
/// settings of its own, which come before both.
pub(crate) struct EffectiveSwitch<'a> {
    pub(crate) base: &'a SwitchConfig,
    role: Option<(&'a str, &'a RoleConfig)>,
    class: Option<(usize, &'a RoleConfig)>,
}

/// The table that sets a value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Switch,
    Role,
    Class,
}

impl<'a> EffectiveSwitch<'a> {
    pub(crate) fn new(
        base: &'a SwitchConfig,
        role: Option<(&'a str, &'a RoleConfig)>,
        class: Option<(usize, &'a RoleConfig)>,
    ) -> Self {
        EffectiveSwitch { base, role, class }
    }

    /// Path of the key that set a value: `switch.classes.NUMBER.KEY`, `switch-role.NAME.KEY` or `switch.KEY`.
    pub(crate) fn path(&self, key: &str, source: Source) -> String {
        match (source, self.role, self.class) {
            (Source::Class, _, Some((i, _))) => format!("switch.classes.{i}.{key}"),
            (Source::Role, Some((name, _)), _) => format!("switch-role.{name}.{key}"),
            _ => format!("switch.{key}"),
        }
    }

    /// The value of a setting, and the table that sets it.
    pub(crate) fn pick<T>(&self, own: impl Fn(&'a RoleConfig) -> Option<T>, base: T) -> (T, Source) {
        if let Some(value) = self.class.and_then(|(_, class)| own(class)) {
            return (value, Source::Class);
        }
        match self.role.and_then(|(_, role)| own(role)) {
            Some(value) => (value, Source::Role),
            None => (base, Source::Switch),
        }
    }

    /// True if the class has a bound on its queues that puts those of the switch aside.
    fn class_bounds(&self) -> bool {
        let bounds = |class: &RoleConfig| {
            class.drop_alpha.is_some() || class.pfc.as_ref().is_some_and(|pfc| pfc.get().is_some())
        };
        self.class.is_some_and(|(_, class)| bounds(class))
    }

    /// Settings of the switch `node`; fills in `ports`.
    pub(crate) fn settle(
        &self,
        fabric: &Fabric,
        wire: &Wire,
        node: NodeId,
        ports: &mut [PortSettings],
        warnings: &mut Vec<Finding>,
    ) -> Result<SwitchSettings, Finding> {
        let (buffer, own_buffer) = self.pick(|r| r.buffer, self.base.buffer);
        let (pfc, own_pfc) = self.pick(|r| r.pfc.as_ref(), &self.base.pfc);
        let (ecn, own_ecn) = self.pick(|r| r.ecn.as_ref(), &self.base.ecn);
        let (drop_alpha, _) = self.pick(|r| r.drop_alpha, self.base.drop_alpha);
        let (buffer_path, ecn_path) = (self.path("buffer", own_buffer), self.path("ecn", own_ecn));
        if buffer.get() < u64::from(wire.max_frame()) {
            let text = format!("a buffer of {buffer} cannot hold one frame of {} B", wire.max_frame());
            return Err(code::FIT.at(&buffer_path, text));
        }
        let mut kept = 0u64;
        for (link, port) in fabric.ports(node).iter().zip(&mut *ports) {
            port.marking = match ecn.get() {
                Some(ecn) if ecn.to_hosts || !fabric.is_host(link.to) => {
                    Some(ecn.marking(link.rate, &ecn_path)?)
                }
                _ => None,
            };
            if let Some(pfc) = pfc.get() {
                let least = headroom(link, wire);
                port.headroom = match pfc.headroom {
                    None => least,
                    Some(Headroom::Bytes(bytes)) => bytes,
                    Some(Headroom::Delays(Delays { delays })) => least.max(over(link, delays.into())),
                };
                if let Some(i) = pfc.alpha_at_rate.iter().position(|entry| entry.rate == link.rate) {
                    let own = pfc.alpha_at_rate[i].alpha;
                    if u64::from(own.part) * u64::from(pfc.alpha.whole)
                        < u64::from(pfc.alpha.part) * u64::from(own.whole)
                    {
                        let path = self.path(&format!("pfc.alpha-at-rate.{i}.alpha"), own_pfc);
                        return Err(code::FIT
                            .at(&path, format!("expected at least `alpha`, {}, found {own}", pfc.alpha)));
                    }
                    port.alpha = Some(own.pair());
                }
                if port.headroom.get() < u64::from(wire.max_frame()) {
                    let frame = Bytes(wire.max_frame().into());
                    let text = format!("a headroom of {} cannot hold one frame of {frame}", port.headroom);
                    return Err(code::FIT.at(&self.path("pfc.headroom", own_pfc), text));
                }
                // A virtual channel that may be paused needs headroom of its own.
                let came = &fabric.links()[fabric.reverse(fabric.link(link.from, link.port)).index()];
                let channels = u64::from(fabric.channels_on(came));
                kept = kept.saturating_add(port.headroom.get().saturating_mul(channels));
                if port.headroom < least {
                    let path = self.path("pfc.headroom", own_pfc);
                    let text = format!(
                        "the headroom of {} at {} is below 2 x delay x rate + 2 frames = {}, so packets may be lost \
                         despite PFC ({path})",
                        port.headroom,
                        fabric.name(node),
                        least,
                    );
                    warnings.push(code::HEADROOM.at(&path, text));
                }
            }
        }
        if kept >= buffer.get() {
            let text = format!(
                "the headrooms of {}'s {} ports take {} of its buffer of {buffer}; no shared buffer is left",
                fabric.name(node),
                ports.len(),
                Bytes(kept),
            );
            return Err(code::FIT.at(&buffer_path, text).with_help(
                "a lossless port reserves 2 x delay x rate + 2 frames; use a larger buffer or shorter links",
            ));
        }
        let flow_control = match pfc.get() {
            Some(pfc) => {
                FlowControl::Lossless(Pfc { alpha: pfc.alpha.pair(), resume_offset: pfc.resume_offset })
            }
            None => FlowControl::Lossy { alpha: drop_alpha.pair() },
        };
        let flow_control = match self.caps(wire, pfc.get().is_some())? {
            Some(caps) => {
                let links = fabric.ports(node).iter();
                ports.iter_mut().zip(links).for_each(|(port, link)| port.cap = caps.of(link, fabric));
                let least = ports.iter().map(|port| port.cap).min().unwrap_or(Bytes(u64::MAX));
                FlowControl::Capped { least }
            }
            None => flow_control,
        };
        Ok(SwitchSettings { buffer, flow_control, overflow: self.overflow(wire, pfc.get().is_some())? })
    }

    /// The caps on queues of a switch without PFC.
    fn caps(&self, wire: &Wire, lossless: bool) -> Result<Option<Caps<'a>>, Finding> {
        if self.class_bounds() {
            return Ok(None);
        }
        let (cap, own_cap) = self.pick(|r| r.queue_cap.map(Some), self.base.queue_cap);
        let (to_hosts, own_to_hosts) =
            self.pick(|r| r.queue_cap_to_hosts.map(Some), self.base.queue_cap_to_hosts);
        let (at_rate, own_at_rate) =
            self.pick(|r| r.queue_cap_at_rate.as_deref(), &self.base.queue_cap_at_rate[..]);
        let mut caps = vec![
            (cap, self.path("queue-cap", own_cap)),
            (to_hosts, self.path("queue-cap-to-hosts", own_to_hosts)),
        ];
        let at_rate_path = self.path("queue-cap-at-rate", own_at_rate);
        let of_rates = at_rate.iter().enumerate();
        caps.extend(of_rates.map(|(i, entry)| (Some(entry.cap), format!("{at_rate_path}.{i}.cap"))));
        for (cap, path) in &caps {
            if cap.is_some() && lossless {
                let text = "with PFC a switch pauses senders and ignores caps on queues; set `pfc = \"off\"`";
                return Err(code::CONFLICT.at(path, text));
            }
            if let Some(cap) = cap.filter(|cap| cap.get() < u64::from(wire.max_frame())) {
                let text = format!("a cap of {cap} cannot hold one frame of {} B", wire.max_frame());
                return Err(code::FIT.at(path, text));
            }
        }
        let Some(to_switches) = cap else {
            let needs =
                |(_, path): &(_, String)| code::NEEDS.at(path, "this cap on queues needs `queue-cap`");
            let alone = caps.iter().find(|(cap, _)| cap.is_some());
            return alone.map_or(Ok(None), |cap| Err(needs(cap)));
        };
        Ok(Some(Caps { to_switches, to_hosts: to_hosts.unwrap_or(to_switches), at_rate }))
    }

    /// The fate of packets that do not fit.
    fn overflow(&self, wire: &Wire, lossless: bool) -> Result<Overflow, Finding> {
        let (cut, own) = self.pick(|r| r.cut.as_ref(), &self.base.cut);
        let Some(cut) = cut.get() else { return Ok(Overflow::Drop) };
        if lossless && self.class.is_some() && own != Source::Class {
            return Ok(Overflow::Drop);
        }
        if lossless {
            let text = "with PFC no data is cut; set `pfc = \"off\"`";
            return Err(code::CONFLICT.at(&self.path("cut", own), text));
        }
        let (least, most) = (u64::from(LEAST_FRAME), u64::from(wire.max_frame()));
        if !(least..=most).contains(&cut.frame.get()) {
            let text = format!("expected a frame from {least} to {most} B, found {}", cut.frame);
            return Err(code::RANGE.at(&self.path("cut.frame", own), text));
        }
        let victim = match cut.victim {
            Victim::Arriving => model::plan::Victim::Arriving,
            Victim::Even => model::plan::Victim::Even,
        };
        Ok(Overflow::Cut(Cut { frame: cut.frame.get() as u32, victim }))
    }
}

/// Least headroom with which an ingress port loses no packet. Packets arrive from the decision to pause until the
/// neighbour stops: for two delays of the link, plus the frame that led to the decision and the frame that the neighbour
/// has begun. A pause frame that occupies the wire waits for one more frame.
fn headroom(link: &Link, wire: &Wire) -> Bytes {
    let twice = 2 * u128::from(link.delay.ps());
    let nominal = u128::from(over(link, 2).get());
    // A clock that truncates to nanoseconds sends frames faster than the link's rate, short frames most of all. Frames
    // that take 0 ns on a very fast link are ignored: they are ACKs, at most one per full frame.
    let frames = [wire.max_frame(), wire.ack].map(|frame| (frame, wire.transmission(link.rate, frame).ps()));
    let quickest = frames.into_iter().filter(|(_, time)| *time > 0);
    let quick =
        quickest.map(|(frame, time)| (u128::from(frame) * twice).div_ceil(time.into())).max().unwrap_or(0);
    let on_the_way = u64::try_from(nominal.max(quick)).unwrap_or(u64::MAX);
    // Where one class takes all packets, ACKs are paused, too, and the longest frame may be one of them.
    let frame = u64::from(wire.max_frame().max(wire.ack).max(wire.cnp));
    let pause = if wire.pfc > 0 { frame + u64::from(wire.pfc) } else { 0 };
    Bytes(on_the_way.saturating_add(2 * frame + pause))
}

/// Bytes that a link sends in so many of its delays.
fn over(link: &Link, delays: u64) -> Bytes {
    let time = u128::from(delays) * u128::from(link.delay.ps());
    Bytes(u64::try_from((u128::from(link.rate.bps()) * time).div_ceil(8_000_000_000_000)).unwrap_or(u64::MAX))
}

impl EcnConfig {
    pub(crate) fn marking(&self, rate: Rate, path: &str) -> Result<Marking, Finding> {
        let scaled =
            |k: Bytes| Bytes((u128::from(k.get()) * u128::from(rate.bps()) / 100_000_000_000) as u64);
        let at = match self.mark {
            Mark::Dequeue => MarkAt::Dequeue,
            Mark::Enqueue => MarkAt::Enqueue,
        };
        let (kmin, kmax, pmax, path) = match self.at_rate.iter().position(|r| r.rate == rate) {
            Some(i) => {
                let own = &self.at_rate[i];
                (own.kmin, own.kmax, own.pmax, format!("{path}.at-rate.{i}"))
            }
            None => (scaled(self.kmin), scaled(self.kmax), self.pmax, path.to_owned()),
        };
        if kmin > kmax {
            let text = format!("kmin ({kmin}) is above kmax ({kmax})");
            return Err(code::FIT.at(&format!("{path}.kmin"), text));
        }
        Ok(Marking { kmin, kmax, pmax: pmax.probability(), at })
    }
}
