//! `[switch]` and `[switch-role.NAME]`: buffers, PFC, marking.

use crate::cbfc::CbfcConfig;
pub use crate::classes::Classes;
use crate::dscp::DscpMap;
use crate::headroom::{self, Headroom};
use crate::values::{Chance, Share, Switched};
use crate::watchdog::WatchdogConfig;
use finding::{Finding, code};
use model::fabric::Link;
use model::plan::{Cut, FlowControl, MarkAt, Marking, Memory, Overflow, Pfc, PortSettings, SwitchSettings};
use model::{Bytes, Fabric, NodeId, Rate, Wire};
use schemars::JsonSchema;
use schemes::{FeedbackConfig, SchemeConfig};
use serde::{Deserialize, Serialize};

/// Settings of every switch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct SwitchConfig {
    /// Switch whose published figures fill in the keys that the scenario leaves out, such as "tomahawk-5" or "sonic:ACS-SN5600";
    /// `ropewalk list switches sonic` shows all. Default: none, so every key has its own default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Size of the packet buffer that all ports share. Default 64 MB (the switch of the Themis paper).
    pub buffer: Bytes,
    /// Size of a cell of the buffer: a packet takes whole cells, such as 208 B in Tomahawk 1 and 2, 254 B in Tomahawk 3 and 5, 420 B
    /// in Tomahawk 6 (sonic-net/sonic-mgmt, tests/qos), and 192 B in Spectrum-4 and -5 (sonic-net/sonic-buildimage, asic_table.j2).
    /// Queues, marks and `queue-cap` count bytes in any case. Default: none, and a packet takes its own size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cell: Option<Bytes>,
    /// Number of equal slices into which the shared buffer is cut; neighbouring ports share one. Default 1 (our choice).
    /// Tomahawk 1 and 2 have 4, and Tomahawk 3 and 5 have 2: fitted to the packets until the first pause that sonic-net/sonic-mgmt expects.
    #[serde(skip_serializing_if = "is_one")]
    pub slices: u16,
    /// Buffer that each ingress port and class with PFC has for itself, and each queue of a class without. It lies beside `buffer`.
    /// Default 0 (our choice).
    #[serde(skip_serializing_if = "is_zero")]
    pub guarantee: Bytes,
    /// Priority flow control; `"off"` makes the fabric lossy. Default on (our choice).
    pub pfc: Switched<PfcConfig>,
    /// Credit-based flow control of Ultra Ethernet: classes that `pfc` makes lossless get credits in place of pauses, on all links to
    /// switches. Default off (our choice).
    #[serde(skip_serializing_if = "is_off")]
    pub cbfc: Switched<CbfcConfig>,
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
    /// Queue of a packet by the DSCP that its NIC gives it, in place of `classes`: `"sonic"`, the map that SONiC delivers, or a list of
    /// queues such as `[{ dscp = [26], lossless = true, weight = 1 }, { weight = 1 }]`. `pfc` and `ecn` then hold for lossless queues alone.
    /// Default: none, and NICs' DSCPs are not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dscp_map: Option<DscpMap>,
}

fn is_one(value: &u16) -> bool {
    *value == 1
}

fn is_zero(value: &Bytes) -> bool {
    value.get() == 0
}

fn no_weight(value: &u8) -> bool {
    *value == 0
}

fn is_true(value: &bool) -> bool {
    *value
}

pub(crate) fn is_off<T>(feature: &Switched<T>) -> bool {
    feature.get().is_none()
}

impl Default for SwitchConfig {
    fn default() -> Self {
        SwitchConfig {
            model: None,
            buffer: Bytes(64_000_000),
            cell: None,
            slices: 1,
            guarantee: Bytes(0),
            pfc: Switched::default(),
            cbfc: Switched::OFF,
            drop_alpha: Share::new(1, 1),
            ecn: Switched::default(),
            queue_cap: None,
            queue_cap_to_hosts: None,
            queue_cap_at_rate: Vec::new(),
            cut: Switched::OFF,
            classes: Classes::Strict,
            dscp_map: None,
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
    /// `resume-offset` by its name in switches' configurations, and in its place. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub xon_offset: Option<Bytes>,
    /// Buffer reserved per port and virtual channel for packets that arrive after a pause was sent: a size, or
    /// `{ delays = 3 }` for so many times the port's delay x rate, and at least the default. Default
    /// 2 x delay x rate + 2 frames of that port, the least that loses no packet (our choice); with `cell`, in cells of the smallest
    /// frames. With `compat = "ns3"` a pause frame occupies the wire, which adds one frame and the pause frame. `{ xoff = "300kB",
    /// shared-pool = "8MB" }` is the form of a switch's configuration: `buffer` is then the pool, and headroom lies beside it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headroom: Option<Headroom>,
    /// Watchdog that frees queues which a neighbour pauses for too long. Default off (our choice).
    #[serde(skip_serializing_if = "is_off")]
    pub watchdog: Switched<WatchdogConfig>,
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

impl Default for PfcConfig {
    fn default() -> Self {
        PfcConfig {
            alpha: Share::new(1, 8),
            alpha_at_rate: Vec::new(),
            resume_offset: Bytes(3 * 1024),
            xon_offset: None,
            headroom: None,
            watchdog: Switched::OFF,
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
    /// Weight of the average of the queue by which a port marks: at each data packet, avg += (queue - avg) / 2^weight; 0 to 15. Default 0, the
    /// queue itself (SAI's default).
    #[serde(skip_serializing_if = "no_weight")]
    pub weight: u8,
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
            weight: 0,
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
    /// Size of a cell of the buffer. Default: `cell` of `[switch]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cell: Option<Bytes>,
    /// Number of slices of the shared buffer. Default: `slices` of `[switch]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slices: Option<u16>,
    /// Buffer that each ingress port or queue has for itself. Default: `guarantee` of `[switch]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guarantee: Option<Bytes>,
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

/// Largest weight of an average. Vendor: SAI_WRED_ATTR_WEIGHT (opencomputeproject/SAI, inc/saiwred.h).
const MOST_WEIGHT: u8 = 15;

/// Most slices of a buffer. Our choice: chips have up to 4.
const MOST_SLICES: u16 = 64;

/// Largest cell of a buffer, bytes. Our choice: above the 8,192 B of Cisco's GB (sonic-net/sonic-mgmt, tests/qos).
const MOST_CELL: u64 = 65_536;

/// Smallest frame of a trimmed packet, bytes: that of DCP (SIGCOMM 2025).
pub const LEAST_FRAME: u32 = 57;

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
        let memory = self.memory(pfc.get(), (wire, ports.len()), own_pfc)?;
        let cbfc = self.base.cbfc.get().zip(pfc.get());
        let cbfc = match cbfc {
            Some((cbfc, pfc)) => {
                Some((cbfc, cbfc.rule(pfc, &memory).map_err(|error| error.within("switch"))?))
            }
            None => None,
        };
        let mut kept = 0u64;
        for (link, port) in fabric.ports(node).iter().zip(&mut *ports) {
            port.marking = match ecn.get() {
                Some(ecn) if ecn.to_hosts || !fabric.is_host(link.to) => {
                    Some(ecn.marking(link.rate, &ecn_path)?)
                }
                _ => None,
            };
            if let Some(pfc) = pfc.get() {
                let least = headroom::least(link, wire, &memory);
                port.headroom = match (&pfc.headroom, cbfc) {
                    (_, Some((cbfc, rule))) => {
                        cbfc.of(rule, link, wire).map_err(|error| error.within("switch"))?
                    }
                    (None, None) => least,
                    (Some(headroom), None) => headroom
                        .of(link, &memory, least)
                        .map_err(|error| error.within(&self.path("pfc.headroom", own_pfc)))?,
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
                if !memory.headroom_beside {
                    kept = kept.saturating_add(port.headroom.get().saturating_mul(channels));
                }
                if let Some(Headroom::Cable(cable)) = &pfc.headroom {
                    let path = self.path("pfc.headroom.xoff", own_pfc);
                    let about = cable.too_short(link, fabric.name(node), &memory);
                    warnings.extend(about.map(|text| code::XOFF.at(&path, text)));
                }
                if port.headroom < least && cbfc.is_none() {
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
        let flow_control = match (pfc.get(), cbfc) {
            (Some(_), Some((_, rule))) => FlowControl::Credits(rule),
            (Some(pfc), None) => {
                let resume_offset = pfc.xon_offset.unwrap_or(pfc.resume_offset);
                let watchdog = pfc.watchdog.get().map(|dog| dog.watchdog(ports.len())).transpose();
                let watchdog = watchdog.map_err(|error| error.within(&self.path("pfc.watchdog", own_pfc)))?;
                FlowControl::Lossless(Pfc { alpha: pfc.alpha.pair(), resume_offset, watchdog })
            }
            (None, _) => FlowControl::Lossy { alpha: drop_alpha.pair() },
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
        let overflow = self.overflow(wire, pfc.get().is_some())?;
        Ok(SwitchSettings { buffer, flow_control, overflow, memory })
    }

    /// The units and parts of the buffer of a switch with so many ports.
    fn memory(
        &self,
        pfc: Option<&PfcConfig>,
        (wire, ports): (&Wire, usize),
        own_pfc: Source,
    ) -> Result<Memory, Finding> {
        let (cell, own_cell) = self.pick(|r| r.cell.map(Some), self.base.cell);
        let (slices, own_slices) = self.pick(|r| r.slices, self.base.slices);
        let (guarantee, own_guarantee) = self.pick(|r| r.guarantee, self.base.guarantee);
        let (buffer, _) = self.pick(|r| r.buffer, self.base.buffer);
        let range = |key, own, text| Err(code::RANGE.at(&self.path(key, own), text));
        if let Some(found) = cell.filter(|cell| !(1..=MOST_CELL).contains(&cell.get())) {
            let text = format!("expected a cell from 1 to {MOST_CELL} B, such as \"254B\", found {found}");
            return range("cell", own_cell, text);
        }
        let cell = cell.map_or(1, |cell| cell.get() as u32);
        if !(1..=MOST_SLICES).contains(&slices) {
            let text = format!("expected 1 to {MOST_SLICES} slices, found {slices}");
            return range("slices", own_slices, text);
        }
        let beside = match pfc.and_then(|pfc| pfc.headroom.as_ref()) {
            Some(Headroom::Cable(cable)) => Some(cable),
            _ => None,
        };
        let guarantees = u128::from(guarantee.get()) * ports as u128;
        if guarantees > u128::from(u64::MAX / 4) {
            return range(
                "guarantee",
                own_guarantee,
                format!("a guarantee of {guarantee} is more than any switch has"),
            );
        }
        let memory = Memory {
            cell,
            slices,
            guarantee,
            shared_headroom: beside.and_then(|cable| cable.shared_pool),
            headroom_beside: beside.is_some(),
        };
        let frame = memory.room(wire.max_frame().into());
        if buffer.get() / u64::from(slices) < frame {
            let slice = Bytes(buffer.get() / u64::from(slices));
            let (what, path) = match slices {
                1 => ("the buffer", self.path("cell", own_cell)),
                _ => ("a slice", self.path("slices", own_slices)),
            };
            let text = format!("{what} of {slice} cannot hold one frame, which takes {frame} B of cells");
            return Err(code::FIT.at(&path, text));
        }
        if let Some(pool) = memory.shared_headroom.filter(|pool| pool.get() < frame) {
            let text = format!("a shared headroom of {pool} cannot hold one frame of {frame} B");
            return Err(code::FIT.at(&self.path("pfc.headroom.shared-pool", own_pfc), text));
        }
        Ok(memory)
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
        if self.weight > MOST_WEIGHT {
            let text = format!("expected a weight from 0 to {MOST_WEIGHT}, found {}", self.weight);
            return Err(code::RANGE.at(&format!("{path}.weight"), text));
        }
        Ok(Marking { kmin, kmax, pmax: pmax.probability(), at, weight: self.weight })
    }
}
