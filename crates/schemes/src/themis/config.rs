//! Settings of `[scheme.themis]`.

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
    /// Rule by which the destination ToR judges a NACK. `literal` is the text of Themis (APNET'25), which also sends NACKs
    /// for packets that are only late; `sound` searches the whole ring before it counts a packet as missing. Default
    /// `sound` (our choice: no NACK for a packet that is not lost).
    pub mode: Judging,
    /// Bits of every PSN that the ring keeps: 8 (Themis, Eq. 4), 16 or 24. Below 24, the number of slots must divide 2^bits.
    /// Default 24 (our choice: with fewer bits the ring confuses packets whose PSNs are far apart).
    pub psn_bits: u8,
    /// Entries of a queue pair's ring at its destination ToR, or `formula`. The formula is ceil(BW x RTT_last x F / MTU)
    /// for the fastest host of the ToR (Themis, Eq. 4). In mode `sound` it gives at least what that mode needs: the
    /// packets that can leave for the host while one of them and the reply to it cross the last hop. Default `formula`
    /// (Themis, Eq. 4).
    pub ring: Entries,
    /// Factor F of the formula for `ring`. Default 1.5 (Themis, Eq. 4).
    pub ring_factor: f64,
    /// Age in packets at which mode `sound` counts a packet as lost on the last hop if the receiver still misses it, or
    /// `formula`. The age of a packet is the number of packets of its queue pair that have left after it. The formula gives
    /// the packets in a round trip of the last hop. If NICs acknowledge only every k-th packet, even when a packet closes a
    /// gap, add k to that number. Default `formula` (our choice).
    pub age_limit: Entries,
    /// Whether mode `sound` follows a packet over the last hop after blocking its NACK because the packet was on the wire.
    /// The ToR then sends the NACK if no reply covers the packet within the age limit. Default true (our choice: otherwise
    /// only the sender's timeout repairs a loss there).
    pub watch: bool,
    /// Whether destination ToRs judge NACKs. With false only the spraying is left, for NICs that accept packets in any order.
    /// Default true (Themis, section 3).
    pub filter: bool,
    /// Fate of a blocked NACK: `drop`, or `ack`, which turns it into an ACK of everything before the packet that it names.
    /// A NACK that echoes a congestion mark always becomes that ACK, since otherwise the mark would be lost. Default `drop`
    /// (Themis, section 3).
    pub on_block: OnBlock,
    /// Spraying while routing counts a link between switches as dead. `ecmp`: every ToR keeps a flow on one path and lets
    /// all NACKs pass, until the fabric is whole again (Themis, section 6; that all ToRs do so, and not only those behind
    /// the link, is our reading). `remap`: slots whose path is dead take a remaining path, and the others stay; NACKs are
    /// judged as before, since a slot still has one path. Default `ecmp` (Themis, section 6).
    pub on_failure: OnFailure,
    /// Number of slots N over which the source ToR sprays PSNs, 1 to 65535. Default: the number of equal-cost paths to the
    /// destination's rack (Themis, Eq. 1); with `path-map = false`, the number of the ToR's uplinks towards that rack.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slots: Option<u16>,
    /// Whether Themis steers switches above the ToRs that also choose a port (three tiers). The source ToR then rewrites the
    /// UDP source port of data by slot, and the switches' hashes give each slot a path of its own. This requires the same
    /// choices on all paths, each among a power of two of ports, and `hashes` that differ from tier to tier. With `false`
    /// the switches above the ToRs keep each flow on one port. The setting has no effect on two tiers. Default true (Themis, PathMap).
    pub path_map: bool,
    /// Hashes of the switches by tier, from the ToRs up; the last hash holds for all tiers beyond it. They determine only
    /// how a change of the source port changes a switch's choice; a flow's own hash is a draw for each switch. Default: the
    /// hashes that Google's SAI program gives to the three stages of its fabrics.
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
            filter: true,
            on_block: OnBlock::Drop,
            on_failure: OnFailure::Ecmp,
            slots: None,
            path_map: true,
            hashes: hashes::default(),
        }
    }
}

/// Rule by which NACKs are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Judging {
    /// The whole ring counts: a packet on the last hop is not missing.
    Sound,
    /// The text of Themis (APNET'25).
    Literal,
}

/// Fate of a blocked NACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnBlock {
    /// The NACK ends at the ToR.
    Drop,
    /// The NACK continues as an ACK of everything before the packet that it names.
    Ack,
}

/// Spraying while a link between switches is dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnFailure {
    /// Flows keep to one path, and all NACKs pass.
    Ecmp,
    /// Slots without a path take a remaining one.
    Remap,
}

/// Number of ring entries: explicit, or by the formula. In TOML an integer or `"formula"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Entries {
    /// The number that the formula gives.
    #[default]
    Formula,
    /// An explicit number.
    Count(u16),
}

/// Spelling of [`Entries::Formula`] in TOML.
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
    /// Settings of the rule for queue pairs with `slots` slots.
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
