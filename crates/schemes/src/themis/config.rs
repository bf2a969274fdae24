//! `[scheme.themis]`: its fields.

use super::hashes::{self, Hash};
use ::themis::{Mode, Settings, Width};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;
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
    /// What becomes of spraying while routing holds a link between switches to be dead. `ecmp`: every ToR keeps a flow on
    /// one path and lets all NACKs pass, until the fabric is whole again (Themis, section 6; that it is all of them, and
    /// not only those behind the link, is our reading). `remap`: slots whose path is gone take one that is left, the
    /// others stay; NACKs are judged as before, since a slot still has one path. Default `ecmp` (Themis, section 6).
    pub on_failure: OnFailure,
    /// Slots N over which the source ToR deals PSNs, 1 to 65535. Default: the number of equal-cost paths to the
    /// destination's rack (Themis, Eq. 1); with `path-map = false` that of the ToR's uplinks towards it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slots: Option<u16>,
    /// Where switches above the ToRs choose as well (three tiers): the source ToR rewrites the UDP source port of data
    /// by slot, and so steers their hashes, one path for each slot. It takes the same choices on all ways, each among
    /// a power of two of ports, and `hashes` that differ from tier to tier. With `false` those switches keep a flow
    /// on one port each. Of no meaning in two tiers. Default true (Themis, PathMap).
    pub path_map: bool,
    /// The hashes of the switches by tier, from the ToRs up; the last one stands for all tiers beyond it. Only what a
    /// change of the source port does to a hash is computed from this; a flow's own hash is a draw for each switch.
    /// Default: what Google's SAI program gives to the three stages of its fabrics.
    pub hashes: Vec<Hash>,
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
            on_failure: OnFailure::Ecmp,
            slots: None,
            path_map: true,
            hashes: hashes::default(),
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

/// What becomes of spraying while a link between switches is dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnFailure {
    /// Flows keep to one path, and NACKs pass.
    Ecmp,
    /// Slots without a path take another one.
    Remap,
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
}
