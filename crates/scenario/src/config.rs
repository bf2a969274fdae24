//! The keys of a scenario: one struct per table, one field per key.

use crate::failure::{Failure, RoutingConfig};
use crate::loss::LossConfig;
use crate::nccl::NcclConfig;
use crate::noise::{CodewordLoss, GilbertConfig, GilbertText, LlrConfig};
use crate::record::RecordConfig;
use crate::server::{Nvlink, ServerConfig};
use crate::switch::{RoleConfig, SwitchConfig, is_off};
use crate::topology::Topology;
use crate::values::{Chance, Switched};
use crate::workload::Workload;
use finding::{Finding, code, suggestion};
use model::{Bytes, Packet, Time, Wire};
use rnic::NicConfig;
use schemars::JsonSchema;
use schemes::{FeedbackConfig, SchemeConfig};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A scenario: a fabric, its NICs, a load-balancing scheme and a workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Scenario {
    /// Root of every random draw; the same scenario with the same seed gives the same result. Default 1 (our choice).
    #[serde(default = "one")]
    pub seed: u64,
    /// Simulator whose frames and clock to imitate. `"ns3"` takes three properties of the HPCC family of ns-3
    /// simulators: frame sizes, a clock that truncates to nanoseconds, and marks echoed on ACKs instead of CNP frames.
    /// Their path choice is a setting of its own, `scheme.ecmp.hash`. Default: not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compat: Option<Compat>,
    /// Hosts, switches and links, as one of the topologies. No default.
    pub topology: Topology,
    /// Servers with several GPUs. Default: none; every host is a server with one GPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerConfig>,
    /// Losses on all links.
    #[serde(default)]
    pub links: LinksConfig,
    /// Sizes of frames.
    #[serde(default)]
    pub wire: WireConfig,
    /// Settings of every switch.
    #[serde(default)]
    pub switch: SwitchConfig,
    /// Settings that differ in switches of one role, such as `[switch-role.spine]`. Default: none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub switch_role: BTreeMap<String, RoleConfig>,
    /// The NIC of every host.
    #[serde(default)]
    pub nic: NicConfig,
    /// The NCCL that does collectives. With it, `algorithm = "nccl"` is the default of every collective. Default: not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nccl: Option<NcclConfig>,
    /// Load balancing, as one of the schemes. Default `ecmp` (the usual default of switches).
    #[serde(default)]
    pub scheme: SchemeConfig,
    /// What switches tell senders, in every switch that it fits. It serves the packets of all classes. Default `none` (our
    /// choice: switches mark packets, and receivers answer).
    #[serde(default, skip_serializing_if = "FeedbackConfig::is_none")]
    pub feedback: FeedbackConfig,
    /// Traffic classes whose scheme or NIC differs, such as `[class.background.scheme.ecmp]`. Each job belongs to one
    /// class; the classes `foreground` and `background` always exist. With `of`, `switch.classes` gives their packets queues of
    /// their own. Default: all classes use `scheme`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub class: BTreeMap<String, ClassConfig>,
    /// Jobs; all of them run at the same time. No default.
    #[serde(default)]
    pub workload: Vec<Workload>,
    /// Links and switches that fail during the run and may recover. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failure: Vec<Failure>,
    /// Delay until routing reacts to failures.
    #[serde(default)]
    pub routing: RoutingConfig,
    /// Conditions that end a run early.
    #[serde(default)]
    pub stop: StopConfig,
    /// Time series, packet events and captures to record.
    #[serde(default)]
    pub record: RecordConfig,
}

/// A traffic class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct ClassConfig {
    /// Load balancing of the class's packets. Default: the scenario's `scheme`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheme: Option<SchemeConfig>,
    /// The NIC of the class's queue pairs, complete: keys that are not set have their own defaults. Clocks are those of the
    /// scenario's `nic`. Default: the scenario's `nic`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nic: Option<NicConfig>,
}

impl Scenario {
    /// The NVLink of servers, if there are servers with NVLink.
    pub fn nvlink(&self) -> Option<Nvlink> {
        self.server?.server().ok()?.nvlink
    }

    /// The scheme of a traffic class.
    pub fn scheme_of(&self, class: &str) -> &SchemeConfig {
        self.class.get(class).and_then(|class| class.scheme.as_ref()).unwrap_or(&self.scheme)
    }

    /// Every feedback of the scenario, and the path of its key: that of all switches, then those of roles.
    pub(crate) fn feedbacks(&self) -> impl Iterator<Item = (String, Option<&str>, &FeedbackConfig)> {
        let roles = self.switch_role.iter().filter_map(|(role, config)| {
            Some((format!("switch-role.{role}.feedback"), Some(role.as_str()), config.feedback.as_ref()?))
        });
        std::iter::once(("feedback".to_owned(), None, &self.feedback)).chain(roles)
    }

    /// The names of the scenario's feedbacks.
    pub(crate) fn feedback_names(&self) -> BTreeSet<&'static str> {
        self.feedbacks()
            .filter(|(.., feedback)| !feedback.is_none())
            .map(|(.., feedback)| feedback.name())
            .collect()
    }

    /// The NIC of a traffic class: the one that its scheme brings, else its own, else the scenario's.
    pub(crate) fn nic_of(&self, class: &str) -> NicConfig {
        let nic = self.class.get(class).and_then(|class| class.nic.as_ref()).unwrap_or(&self.nic);
        self.scheme_of(class).own_nic(nic).unwrap_or_else(|| nic.clone())
    }

    /// The path of the NIC that a traffic class has in the scenario.
    pub(crate) fn nic_path(&self, class: &str) -> String {
        match self.class.get(class).is_some_and(|class| class.nic.is_some()) {
            true => format!("class.{class}.nic"),
            false => "nic".to_owned(),
        }
    }

    /// The names of the traffic classes: `foreground`, `background`, then the other classes with a table.
    pub(crate) fn traffic_classes(&self) -> Result<Vec<&str>, Finding> {
        let mut names = vec!["foreground", "background"];
        names.extend(
            self.class.keys().map(String::as_str).filter(|name| !["foreground", "background"].contains(name)),
        );
        if names.len() > usize::from(u8::MAX) {
            return Err(code::RANGE.at("class", "expected at most 255 traffic classes, found more"));
        }
        for (i, entry) in self.workload.iter().enumerate() {
            if !names.contains(&entry.class()) {
                let text = format!(
                    "there is no traffic class `{}`; {}",
                    entry.class(),
                    suggestion(entry.class(), &names)
                );
                return Err(code::UNKNOWN_NAME.at(&format!("workload.{i}.class"), text));
            }
        }
        Ok(names)
    }
}

fn one() -> u64 {
    1
}

/// Simulator to imitate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Compat {
    /// The HPCC family of ns-3 simulators.
    Ns3,
}

/// Losses on all links.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct LinksConfig {
    /// Probability that a link loses a data packet; the topology can set another one for some links. Default 0 (our
    /// choice: clean links).
    pub loss: Chance,
    /// Whether links lose ACKs and NACKs, too. CNPs and PFC frames are never lost. Default false (our choice).
    pub lose_replies: bool,
    /// Chance that FEC cannot repair a pair of codewords, 1280 B of frames and gaps: all frames that touch it are lost, whatever
    /// they carry, except CNPs and PFC frames. A table `{ ber = 2.4e-4 }` has the rate of bit errors before FEC instead; then
    /// RS(544,514) repairs 15 wrong symbols of 544 (IEEE 802.3, clause 91). Default 0 (our choice: clean links).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub codeword_loss: Option<CodewordLoss>,
    /// Bursts of losses, which hit frames as `codeword-loss` does: a table, or `"light"` (1e-6, 0.3, 0.3) or `"dirty"` (1e-4, 0.1,
    /// 0.5), both our choice. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<GilbertText>")]
    pub gilbert: Option<GilbertConfig>,
    /// Links with `codeword-loss` and `gilbert`, each by its two ends, such as `[["leaf0", "spine1"]]`; `*` matches any
    /// characters, and both directions are noisy. Default: all links.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub noisy: Vec<[String; 2]>,
    /// Link-level retry of Ultra Ethernet on all links: a frame that the link loses, unless the link is down, is sent again with all
    /// frames behind it. Default off (our choice: few switches have it).
    #[serde(skip_serializing_if = "is_off")]
    pub llr: Switched<LlrConfig>,
    /// Packets to lose on purpose, in addition to `loss`: data, ACKs or NACKs by PSN. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lose: Vec<LossConfig>,
}

impl Default for LinksConfig {
    fn default() -> Self {
        LinksConfig {
            loss: Chance::ZERO,
            lose_replies: false,
            codeword_loss: None,
            gilbert: None,
            noisy: Vec::new(),
            llr: Switched::OFF,
            lose: Vec::new(),
        }
    }
}

/// Sizes of frames; set either `frame` or `payload`. The defaults are those of RoCEv2.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct WireConfig {
    /// Largest data frame from the Ethernet header to the FCS, without preamble and gap. The payload is 62 B less, or
    /// 48 B less with `compat = "ns3"`. Default 1500 B (the MTU of the Themis paper); with `compat = "ns3"` 1048 B
    /// (1000 B of payload, the default of the HPCC simulator).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame: Option<Bytes>,
    /// Largest payload of a data frame, instead of `frame`. Default: `frame` less the headers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Bytes>,
    /// Headers and trailers of a data frame. Default 62 B (RoCEv2 over IPv4, with FCS), or 48 B with `compat = "ns3"`
    /// (HPCC family of ns-3 simulators). Ultra Ethernet: 110 B over IPv4; its simulator: 64 B.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<Bytes>,
    /// Frame of an ACK, a NACK or a grant. Default 66 B (RoCEv2 over IPv4, with FCS), or 60 B with `compat = "ns3"` (HPCC
    /// family of ns-3 simulators). Ultra Ethernet: 82 B; its simulator: 64 B.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack: Option<Bytes>,
    /// Preamble and gap around a frame, which take link time, but no buffer. Default 20 B (IEEE 802.3), or 0 B with
    /// `compat = "ns3"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap: Option<Bytes>,
}

/// Conditions that end a run early.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct StopConfig {
    /// Time at which the run ends, finished or not. Default: not set; the run ends when every flow has finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Time>,
    /// Time without an accepted data packet after which the run gives up and reports what each unfinished flow waits
    /// for. Default: ten times the longest of three times, and at least 100 ms (our choice): the NIC's longest
    /// retransmission timeout, the longest round trip of a flow, and the longest pause between two packets that the NIC's
    /// congestion control orders.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_progress: Option<Time>,
}

impl WireConfig {
    /// Sizes of all kinds of frames.
    pub(crate) fn wire(&self, compat: Option<Compat>) -> Result<Wire, Finding> {
        let usual = match compat {
            Some(Compat::Ns3) => Wire::ns3(1000),
            None => Wire::roce(1500),
        };
        let header = size("header", self.header, usual.header, 0..=1000)?;
        let (frame, path) = match (self.frame, self.payload) {
            (Some(_), Some(_)) => {
                return Err(code::CONFLICT.at("wire.payload", "set either `frame` or `payload`, not both"));
            }
            (None, Some(payload)) => (payload.get().saturating_add(u64::from(header)), "wire.payload"),
            (frame, None) => (frame.map_or(u64::from(usual.max_frame()), Bytes::get), "wire.frame"),
        };
        // The smallest frame of Ethernet has 64 B.
        let least = u64::from(header + 2);
        if frame < least || frame > u64::from(Packet::MAX_FRAME) {
            let text = format!("expected a frame of {least} B to {} B, found {frame} B", Packet::MAX_FRAME);
            return Err(code::RANGE.at(path, text).with_help(format!("headers take {header} B of a frame")));
        }
        Ok(Wire {
            header,
            payload: frame as u32 - header,
            ack: size("ack", self.ack, usual.ack, 40..=1000)?,
            gap: size("gap", self.gap, usual.gap, 0..=1000)?,
            ..usual
        })
    }
}

/// A size in this range, or the usual one.
fn size(
    key: &str,
    set: Option<Bytes>,
    usual: u32,
    range: std::ops::RangeInclusive<u64>,
) -> Result<u32, Finding> {
    match set {
        None => Ok(usual),
        Some(bytes) if range.contains(&bytes.get()) => Ok(bytes.get() as u32),
        Some(bytes) => {
            let text = format!("expected {} B to {} B, found {bytes}", range.start(), range.end());
            Err(code::RANGE.at(&format!("wire.{key}"), text))
        }
    }
}
