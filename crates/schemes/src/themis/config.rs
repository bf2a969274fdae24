//! `[scheme.themis]`: its fields, and what they come to on a plan.

use super::cross_rack;
use super::last_hops::LastHops;
use crate::ConfigError;
use ::themis::{Mode, Rule, RuleError, Settings, Width};
use model::plan::Classes;
use model::{Fabric, NodeId, Plan, QpId};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

/// `[scheme.themis]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "SchemeThemis")]
pub struct Config {
    /// How the destination ToR judges a NACK. `literal` is the text of Themis (APNET'25), which also sends NACKs
    /// for packets that are only late; `sound` looks at the whole ring before it holds a packet to be missing.
    /// Default `sound` (our choice: no NACK for a packet that is not lost).
    pub mode: Judging,
    /// Bits of every PSN that the ring keeps: 8 (Themis, Eq. 4), 16 or 24. Below 24 the number of slots must
    /// divide 2^bits. Default 24 (our choice: fewer bits mistake packets that lie far apart for one another).
    pub psn_bits: u8,
    /// Entries of the ring of a queue pair at its destination ToR, or `formula`: ceil(BW x RTT_last x F / MTU)
    /// for the fastest host of the ToR (Themis, Eq. 4), and in mode `sound` no fewer than that mode needs: the packets
    /// that can leave for the host while one of them and the reply to it cross the last hop. Default `formula`.
    pub ring: Entries,
    /// F in that formula. Default 1.5 (Themis, Eq. 4).
    pub ring_factor: f64,
    /// Mode `sound`: a packet after which this many others of its queue pair have left, and which the receiver
    /// still misses, was lost on the last hop. In packets, or `formula`: what a round trip of the last hop holds.
    /// If NICs acknowledge only every k-th packet, even when one closes a gap, give that plus k. Default `formula`
    /// (our choice).
    pub age_limit: Entries,
    /// Mode `sound`: follow a packet over the last hop when its NACK was blocked because it was on the wire, and send
    /// the NACK if no reply covers it within the age limit. Default true (our choice: without it a loss
    /// there is left to the sender's timeout).
    pub watch: bool,
    /// What becomes of a blocked NACK: `drop`, or `ack`, which turns it into the ACK of everything before the
    /// packet that it names. A NACK that echoes a congestion mark becomes that ACK in either case, or the
    /// mark would be lost. Default `drop` (Themis, section 3).
    pub on_block: OnBlock,
    /// Slots N over which the source ToR deals PSNs, 1 to 65535. Default: the number of equal-cost uplinks towards
    /// the destination (Themis, Eq. 1).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slots: Option<u16>,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            mode: Judging::Sound,
            psn_bits: 24,
            ring: Entries::Formula,
            ring_factor: 1.5,
            age_limit: Entries::Formula,
            watch: true,
            on_block: OnBlock::Drop,
            slots: None,
        }
    }
}

/// How NACKs are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Judging {
    /// By the whole ring: a packet that is on the last hop is not missing.
    Sound,
    /// By the text of Themis (APNET'25).
    Literal,
}

/// What becomes of a blocked NACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnBlock {
    /// It ends at the ToR.
    Drop,
    /// It goes on as an ACK of everything before the packet that it names.
    Ack,
}

/// A number of ring entries: given, or by the formula. In TOML an integer or `"formula"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Entries {
    /// By the formula.
    #[default]
    Formula,
    /// This many.
    Count(u16),
}

/// The word for [`Entries::Formula`].
const FORMULA: &str = "formula";

impl Serialize for Entries {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Entries::Formula => to.serialize_str(FORMULA),
            Entries::Count(n) => to.serialize_u16(*n),
        }
    }
}

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Entries;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of entries from 1 to 65535, or \"formula\"")
            }
            fn visit_u64<E: de::Error>(self, n: u64) -> Result<Entries, E> {
                let count = u16::try_from(n);
                count.map(Entries::Count).map_err(|_| E::invalid_value(de::Unexpected::Unsigned(n), &self))
            }
            fn visit_i64<E: de::Error>(self, n: i64) -> Result<Entries, E> {
                let count = u16::try_from(n);
                count.map(Entries::Count).map_err(|_| E::invalid_value(de::Unexpected::Signed(n), &self))
            }
            fn visit_str<E: de::Error>(self, word: &str) -> Result<Entries, E> {
                if word == FORMULA {
                    return Ok(Entries::Formula);
                }
                Err(E::invalid_value(de::Unexpected::Str(word), &self))
            }
        }
        from.deserialize_any(Visitor)
    }
}

impl JsonSchema for Entries {
    fn schema_name() -> Cow<'static, str> {
        "Entries".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "a number of ring entries, or \"formula\"",
            "oneOf": [
                { "type": "integer", "minimum": 1, "maximum": 65535 },
                { "const": FORMULA },
            ],
        })
    }
}

impl Config {
    /// What the rule of queue pairs with `slots` slots is made from.
    pub(super) fn settings(&self, slots: u16, (ring, age_limit): (u16, u16)) -> Settings {
        let width = match self.psn_bits {
            8 => Width::W8,
            16 => Width::W16,
            _ => Width::W24,
        };
        let mode = match self.mode {
            Judging::Literal => Mode::Literal,
            Judging::Sound => Mode::Sound,
        };
        Settings { mode, slots, ring, width, age_limit, watch: self.watch && mode == Mode::Sound }
    }

    pub(super) fn check(&self, plan: &Plan) -> Result<Vec<String>, ConfigError> {
        let error = |field, message: &str| Err(ConfigError::new(field, message));
        if !matches!(self.psn_bits, 8 | 16 | 24) {
            return error("psn-bits", "8, 16 or 24 are possible");
        }
        if self.ring == Entries::Count(0) {
            return error(
                "ring",
                "the ring must have at least 1 entry; \"formula\" takes the paper's length",
            );
        }
        if self.age_limit == Entries::Count(0) {
            return error("age-limit", "the age limit must be at least 1 packet");
        }
        if !(self.ring_factor > 0.0 && self.ring_factor <= 1000.0) {
            return error("ring-factor", "the factor must lie above 0 and not above 1000");
        }
        if self.slots == Some(0) {
            return error("slots", "the number of slots must be at least 1");
        }
        let mut warnings = Vec::new();
        self.check_slots(plan, &mut warnings)?;
        if self.mode == Judging::Sound {
            self.check_rings(plan, &mut warnings);
        }
        Ok(warnings)
    }

    /// Slots against the bits that the ring keeps, and against the uplinks.
    fn check_slots(&self, plan: &Plan, warnings: &mut Vec<String>) -> Result<(), ConfigError> {
        let fabric = &plan.fabric;
        let (mut counts, mut uneven) = (BTreeSet::new(), BTreeSet::new());
        for (tor, qp) in plan.qps.iter().filter_map(|qp| Some((cross_rack(fabric, qp)?, qp))) {
            let ports = fabric.route(tor, qp.to);
            counts.insert(ports.len());
            let rate = |&port: &model::PortIndex| fabric.ports(tor)[port.index()].rate;
            if ports.windows(2).any(|pair| rate(&pair[0]) != rate(&pair[1])) {
                uneven.insert(tor);
            }
        }
        for &uplinks in &counts {
            let slots = self.slots.unwrap_or(uplinks as u16);
            match Rule::new(self.settings(slots, (1, 1))) {
                Err(error @ RuleError::SlotsDoNotFitWidth { .. }) => {
                    let field = if self.slots.is_some() { "slots" } else { "psn-bits" };
                    return Err(ConfigError::new(field, error.to_string()));
                }
                Err(error) => return Err(ConfigError::new("slots", error.to_string())),
                Ok(_) => {}
            }
            let slots = usize::from(slots);
            if slots < uplinks {
                warnings.push(format!("{slots} slots use only {slots} of {uplinks} uplinks for each flow"));
            } else if slots % uplinks != 0 {
                warnings.push(format!("{slots} slots load {uplinks} uplinks unevenly; take a multiple"));
            }
        }
        if let Some(&tor) = uneven.first() {
            warnings.push(format!(
                "equal-cost uplinks of {} differ in rate ({} such switches); every uplink gets the same share",
                fabric.name(tor),
                uneven.len()
            ));
        }
        Ok(())
    }

    /// Rings against what sound judging needs.
    fn check_rings(&self, plan: &Plan, warnings: &mut Vec<String>) {
        let mut worst: Option<(u16, u64, NodeId)> = None;
        let mut old = false;
        for (tor, qps) in incoming(plan) {
            let hops = LastHops::of(self, plan, tor, qps.into_iter());
            let lengths = hops.lengths(self);
            let bits = u32::from(self.psn_bits);
            let reach = lengths.0.min(((1u32 << (bits - 1)) - 1).min(u32::from(u16::MAX)) as u16);
            old |= u64::from(lengths.1) < hops.sound;
            if u64::from(reach) < hops.sound && worst.is_none_or(|(_, need, _)| need < hops.sound) {
                worst = Some((reach, hops.sound, tor));
            }
        }
        if let Some((reach, need, tor)) = worst {
            warnings.push(format!(
                "the ring tells {reach} packets apart, but sound judging needs {need} at {}: NACKs for packets that \
                 are only late will pass",
                plan.fabric.name(tor)
            ));
        }
        if old {
            warnings.push(
                "the age limit is shorter than a round trip of the last hop: NACKs for packets that are \
                           only late will pass"
                    .to_owned(),
            );
        }
        if plan.classes == Classes::One {
            warnings.push(
                "replies queue behind data, longer than the ring can cover: NACKs for packets that are \
                           only late may pass"
                    .to_owned(),
            );
        }
    }
}

/// The queue pairs that come from other racks, by the ToR where they end.
fn incoming(plan: &Plan) -> Vec<(NodeId, Vec<QpId>)> {
    let fabric: &Fabric = &plan.fabric;
    let mut by_tor = std::collections::BTreeMap::<NodeId, Vec<QpId>>::new();
    for (id, qp) in (0..).map(QpId).zip(&plan.qps) {
        if cross_rack(fabric, qp).is_some() {
            by_tor.entry(fabric.attachment(qp.to)).or_default().push(id);
        }
    }
    by_tor.into_iter().collect()
}
