//! `[switch]` and `[switch-role.NAME]`: buffers, PFC, marking.

use crate::error::Fault;
use crate::values::{Chance, Share, Switched};
use model::fabric::Link;
use model::plan::{Flow, MarkAt, Marking, Pfc, PortSettings, SwitchSettings};
use model::{Bytes, Fabric, NodeId, Rate, Wire};
use schemars::JsonSchema;
use schemes::SchemeConfig;
use serde::{Deserialize, Serialize};

/// Every switch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct SwitchConfig {
    /// Packet buffer that all ports share. Default 64 MB (the switch of the Themis paper).
    pub buffer: Bytes,
    /// Priority flow control; `"off"` makes the fabric lossy. Default on.
    pub pfc: Switched<PfcConfig>,
    /// Without PFC: a packet is dropped when its egress queue would hold more than this share of the free
    /// buffer. Default 1 (the egress alpha of the ConWeave simulator).
    pub drop_alpha: Share,
    /// Marking of packets in long queues (ECN); `"off"` marks nothing. Default on.
    pub ecn: Switched<EcnConfig>,
    /// `"strict"`: CNP before ACK and NACK before data, and only data is charged and paused. `"one"`: one queue
    /// for all. `"cnp-first"`: CNP first, ACK and NACK in the queue of data and paused with it (the HPCC family of ns-3
    /// simulators). Default `"strict"` (RoCE deployments; the ConWeave simulator).
    pub classes: Classes,
}

impl Default for SwitchConfig {
    fn default() -> Self {
        SwitchConfig {
            buffer: Bytes(64_000_000),
            pfc: Switched::default(),
            drop_alpha: Share::new(1, 1),
            ecn: Switched::default(),
            classes: Classes::Strict,
        }
    }
}

/// How ports treat kinds of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Classes {
    /// CNP before ACK and NACK before data.
    Strict,
    /// One queue for all.
    One,
    /// CNP before all else, which shares one queue.
    CnpFirst,
}

impl From<Classes> for model::plan::Classes {
    fn from(classes: Classes) -> Self {
        match classes {
            Classes::Strict => Self::Strict,
            Classes::One => Self::One,
            Classes::CnpFirst => Self::CnpFirst,
        }
    }
}

/// Priority flow control.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct PfcConfig {
    /// An ingress port pauses its neighbour when it holds this share of the free shared buffer. Default 1/8
    /// (HPCC simulator).
    pub alpha: Share,
    /// It lets it go on this much below the threshold. Default 3 KiB (HPCC simulator).
    pub resume_offset: Bytes,
    /// Buffer kept per port, and there per virtual channel, for what still arrives after a pause was sent. Default 2 x delay x
    /// rate + 2 frames of that port, the least that loses nothing; with `compat = "ns3"`, where a pause frame takes its time on the
    /// wire, one frame more and the pause frame itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headroom: Option<Bytes>,
}

impl Default for PfcConfig {
    fn default() -> Self {
        PfcConfig { alpha: Share::new(1, 8), resume_offset: Bytes(3 * 1024), headroom: None }
    }
}

/// Random early marking of a port's data queue. `kmin` and `kmax` are for a port of 100 Gb/s and grow with the
/// port's rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct EcnConfig {
    /// No marks up to this queue, per 100 Gb/s of the port's rate. Default 100 kB (HPCC family).
    pub kmin: Bytes,
    /// Every packet is marked above this queue, per 100 Gb/s of the port's rate. Default 400 kB (HPCC family).
    pub kmax: Bytes,
    /// Probability of a mark just below `kmax`. Default 0.2 (HPCC family).
    pub pmax: Chance,
    /// Whether the queue is looked at when a packet leaves it (`"dequeue"`) or joins it (`"enqueue"`). Default
    /// `"dequeue"` (HPCC family).
    pub mark: Mark,
    /// Thresholds for ports of certain rates, taken as they are, in place of the ones above.
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
            at_rate: Vec::new(),
        }
    }
}

/// Thresholds for ports of one rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RateEcn {
    /// The ports' rate.
    pub rate: Rate,
    /// No marks up to this queue.
    pub kmin: Bytes,
    /// Every packet is marked above this queue.
    pub kmax: Bytes,
    /// Probability of a mark just below `kmax`.
    pub pmax: Chance,
}

/// When a queue decides on a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mark {
    /// When a packet leaves it.
    Dequeue,
    /// When a packet joins it.
    Enqueue,
}

/// What is different for switches of one role.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct RoleConfig {
    /// Packet buffer. Default: that of `[switch]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer: Option<Bytes>,
    /// Priority flow control. Default: that of `[switch]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pfc: Option<Switched<PfcConfig>>,
    /// Share of the free buffer for one egress queue without PFC. Default: that of `[switch]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drop_alpha: Option<Share>,
    /// Marking. Default: that of `[switch]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ecn: Option<Switched<EcnConfig>>,
    /// Load balancing. Default: `[scheme]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheme: Option<SchemeConfig>,
}

/// The settings that hold for one switch, and the path of the table that said so.
pub(crate) struct Resolved<'a> {
    base: &'a SwitchConfig,
    role: Option<(&'a str, &'a RoleConfig)>,
}

impl<'a> Resolved<'a> {
    pub(crate) fn new(base: &'a SwitchConfig, role: Option<(&'a str, &'a RoleConfig)>) -> Self {
        Resolved { base, role }
    }

    /// `switch.KEY` or `switch-role.NAME.KEY`, whichever decided.
    fn path(&self, key: &str, by_role: bool) -> String {
        match self.role {
            Some((name, _)) if by_role => format!("switch-role.{name}.{key}"),
            _ => format!("switch.{key}"),
        }
    }

    fn pick<T>(&self, own: impl Fn(&'a RoleConfig) -> Option<T>, base: T) -> (T, bool) {
        match self.role.and_then(|(_, role)| own(role)) {
            Some(value) => (value, true),
            None => (base, false),
        }
    }

    /// The settings of the switch `node`; those of its ports go to `ports`.
    pub(crate) fn settle(
        &self,
        fabric: &Fabric,
        wire: &Wire,
        node: NodeId,
        ports: &mut [PortSettings],
        warnings: &mut Vec<String>,
    ) -> Result<SwitchSettings, Fault> {
        let (buffer, own_buffer) = self.pick(|r| r.buffer, self.base.buffer);
        let (pfc, own_pfc) = self.pick(|r| r.pfc.as_ref(), &self.base.pfc);
        let (ecn, own_ecn) = self.pick(|r| r.ecn.as_ref(), &self.base.ecn);
        let (drop_alpha, _) = self.pick(|r| r.drop_alpha, self.base.drop_alpha);
        let (buffer_path, ecn_path) = (self.path("buffer", own_buffer), self.path("ecn", own_ecn));
        if buffer.get() < u64::from(wire.max_frame()) {
            let text = format!("a buffer of {buffer} cannot hold one frame of {} B", wire.max_frame());
            return Err(Fault::new(&buffer_path, text));
        }
        let mut kept = 0u64;
        for (link, port) in fabric.ports(node).iter().zip(&mut *ports) {
            port.marking = match ecn.get() {
                Some(ecn) => Some(ecn.marking(link.rate, &ecn_path)?),
                None => None,
            };
            if let Some(pfc) = pfc.get() {
                let least = headroom(link, wire);
                port.headroom = pfc.headroom.unwrap_or(least);
                if port.headroom.get() < u64::from(wire.max_frame()) {
                    let frame = Bytes(wire.max_frame().into());
                    let text = format!("a headroom of {} holds no frame of {frame}", port.headroom);
                    return Err(Fault::new(&self.path("pfc.headroom", own_pfc), text));
                }
                // A virtual channel that may be paused needs headroom of its own.
                let came = &fabric.links()[fabric.reverse(fabric.link(link.from, link.port)).index()];
                let channels = u64::from(fabric.channels_on(came));
                kept = kept.saturating_add(port.headroom.get().saturating_mul(channels));
                if port.headroom < least {
                    warnings.push(format!(
                        "the headroom of {} at {} is below 2 x delay x rate + 2 frames = {}: packets may be lost \
                         in spite of PFC ({})",
                        port.headroom,
                        fabric.name(node),
                        least,
                        self.path("pfc.headroom", own_pfc),
                    ));
                }
            }
        }
        if kept >= buffer.get() {
            let text = format!(
                "the headrooms of the {} ports of {} take {}, and its buffer is {buffer}: nothing is left to share",
                ports.len(),
                fabric.name(node),
                Bytes(kept),
            );
            return Err(Fault::new(&buffer_path, text).with_help(
                "a lossless port keeps 2 x delay x rate + 2 frames; give the switch a larger buffer or shorter links",
            ));
        }
        let flow = match pfc.get() {
            Some(pfc) => Flow::Lossless(Pfc { alpha: pfc.alpha.pair(), resume_offset: pfc.resume_offset }),
            None => Flow::Lossy { alpha: drop_alpha.pair() },
        };
        Ok(SwitchSettings { buffer, flow })
    }
}

/// The least buffer of an ingress port that loses nothing: what arrives from the decision to pause until the
/// neighbour falls silent, that is in two delays of the link, and the frame that led to the decision and the one that
/// the neighbour has begun. A pause frame that takes its time on the wire waits for one more frame.
fn headroom(link: &Link, wire: &Wire) -> Bytes {
    let twice = 2 * u128::from(link.delay.ps());
    let nominal = (u128::from(link.rate.bps()) * twice).div_ceil(8_000_000_000_000);
    // A clock that cuts off part of a nanosecond lets frames through faster than the rate says, short ones still more. Those
    // that take no time at all on a very fast link are left aside: there are no more of them than full ones that they answer.
    let frames = [wire.max_frame(), wire.ack].map(|frame| (frame, wire.transmission(link.rate, frame).ps()));
    let quickest = frames.into_iter().filter(|(_, time)| *time > 0);
    let quick =
        quickest.map(|(frame, time)| (u128::from(frame) * twice).div_ceil(time.into())).max().unwrap_or(0);
    let on_the_way = u64::try_from(nominal.max(quick)).unwrap_or(u64::MAX);
    let frame = u64::from(wire.max_frame());
    let pause = if wire.pfc > 0 { frame + u64::from(wire.pfc) } else { 0 };
    Bytes(on_the_way.saturating_add(2 * frame + pause))
}

impl EcnConfig {
    fn marking(&self, rate: Rate, path: &str) -> Result<Marking, Fault> {
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
            return Err(Fault::new(&format!("{path}.kmin"), text));
        }
        Ok(Marking { kmin, kmax, pmax: pmax.probability(), at })
    }
}
