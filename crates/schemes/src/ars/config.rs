//! Settings of `[scheme.ars]`.

use super::global::Reporter;
use super::profile::{Profile, Settings};
use super::quality::BEST;
use crate::groups::Groups;
use finding::{Finding, code};
use model::{Bytes, Plan, Rate, Site, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[scheme.ars]`. A setting that is absent has the value of the profile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "SchemeArs")]
pub struct Config {
    /// Vendor whose values the other settings have by default. The page of this scheme has the values and their sources. Default
    /// `"sonic"` (our choice: SAI documents most defaults).
    pub profile: Profile,
    /// Rule by which data gets its port. Default: `"flowlet-quality"`; `"packet-quality"` for `"spectrum"`, `"in-turn"` for
    /// `"arista-clb"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// Pause after which an entry of the table may move. Default 256 us (SAI; Junos; OcNOS), 600 us for `"nx-os"`, 16 us for
    /// `"fboss"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle: Option<Time>,
    /// Entries of each group's table, 1 to 2^20. Flows of one entry share its port. Default 512 (SAI); 256 for `"junos"`, 1024 for
    /// `"ocnos"`, 2048 for `"fboss"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<u32>,
    /// Entries of all tables of a switch. Groups beyond them follow `backup`. Default 32768 (Junos: groups = 32,768 / table).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entries: Option<u32>,
    /// Rule for groups beyond `entries`. Default `"fixed"` (FBOSS).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup: Option<Backup>,
    /// Time between two samples; with 0, every packet samples the ports that it may take. Default 16 us (SAI); 32 us for
    /// `"nx-os"`, 1 us for `"fboss"` and `"spectrum"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Time>,
    /// Exponent e of the averages, 0 to 15: a sample counts 1 / 2^e. Default 2 (SAI); 0 for `"fboss"` and `"spectrum"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exponent: Option<u8>,
    /// Whether a sample below the average replaces it. Default false (SAI, PORT_LOAD_CURRENT).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current: Option<bool>,
    /// Weight of the bytes sent. Default 16 (SAI; Junos weighs both alike); 0 for `"spectrum"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub past_weight: Option<u8>,
    /// Weight of the bytes that wait. Default 16 (SAI); 0 for `"nx-os"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub future_weight: Option<u8>,
    /// Rates between which the bytes sent are graded, for a port at `scale`. Default 1 to 10 Gb/s (FBOSS; assumed for the
    /// others, which do not publish it); 0 to 10 Gb/s for `"nx-os"`, whose levels are shares of the link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub past_limits: Option<[Rate; 2]>,
    /// Queue lengths between which the bytes that wait are graded. Default 1 to 10 kB (FBOSS; assumed for the others); for
    /// `"spectrum"` 0 to the share of the buffer that `alpha` gives to a single queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub future_limits: Option<[Bytes; 2]>,
    /// Rate of the port for which `past-limits` holds; they grow with the rate of a port. Default "10Gbps" (SONiC: speed / 10 Gb/s).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<Rate>,
    /// Widths of the bands from the best one on, in proportion, 2 to 8. Default: eight equal bands (our choice: SAI leaves them to
    /// the hardware); 15, 20, 30, 15, 10, 5, 5 for `"nx-os"`; 1, 1, 2, 4 for `"spectrum"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bands: Option<Vec<u16>>,
    /// Share of its link above which a port counts as congested: it gets the worst band. Default: none (Cumulus Linux since 5.6,
    /// for `"spectrum"`; it was 0.7 before).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congested_above: Option<f64>,
    /// Bands by which the best port must be better for an entry to move without a pause, which can reorder packets; 0 is off, up
    /// to 7. Default 0 (Junos, reactive path rebalancing).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quality_delta: Option<u8>,
    /// Chance of a packet to move its entry by `quality-delta`. Default 1 (our choice; Junos does not publish its default).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// Whether packets may take detours of a Dragonfly. Default: they do not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alternates: Option<Alternates>,
    /// Whether spines tell leaves the bands of their downlinks (Broadcom's and Juniper's global load balancing): a path's band is
    /// then the worse of both. Default false (Apstra 6.0).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub global: Option<bool>,
}

/// Rule by which data gets its port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "ArsMode")]
pub enum Mode {
    /// After a pause, an entry keeps its port if that is still among the best, and else draws one of the best.
    FlowletQuality,
    /// Each packet draws one of the best ports.
    PacketQuality,
    /// After a pause, an entry draws any port.
    FlowletRandom,
    /// Each packet draws any port.
    PacketRandom,
    /// An entry keeps the first port that it draws among the best.
    Fixed,
    /// Entries get the ports of their group in turn, and keep them until they age: Arista's cluster load balancing.
    InTurn,
}

/// Rule for groups without a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "ArsBackup")]
pub enum Backup {
    /// ECMP.
    #[default]
    Fixed,
    /// Each packet draws any port.
    PacketRandom,
}

/// Rule for alternate paths, which are longer: with the best band Bp of the shortest paths and Ba of the others, data takes an
/// alternate path if Bp < threshold and Bp + cost <= Ba + bias. SAI 6.4.5 contradicts itself; this reading is our choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "ArsAlternates")]
pub struct Alternates {
    /// Band from which on the shortest paths are good enough. Default 7 (FBOSS).
    pub threshold: u8,
    /// Bands that an alternate path costs. Default 0 (FBOSS).
    pub cost: u8,
    /// Bands that an alternate path is given. Default 7 (FBOSS).
    pub bias: u8,
}

impl Default for Alternates {
    fn default() -> Self {
        Alternates { threshold: 7, cost: 0, bias: 7 }
    }
}

/// Most entries of a table, and of all tables of a switch. Our choice: far above hardware, for comparisons with ECMP.
const MOST_ENTRIES: u32 = 1 << 20;

impl Config {
    /// Checks the settings against a plan; returns warnings.
    pub(super) fn check(&self, plan: &Plan) -> Result<Vec<Finding>, Finding> {
        let settings = self.settings();
        let range = |field, text: String| Err(code::RANGE.at(field, text));
        if !(1..=MOST_ENTRIES).contains(&settings.entries) {
            return range("entries", format!("{}; 1 to {MOST_ENTRIES} are possible", settings.entries));
        }
        if !(1..=settings.entries).contains(&settings.table) {
            return range(
                "table",
                format!("{}; 1 to {} are possible, see `entries`", settings.table, settings.entries),
            );
        }
        if settings.interval > Time::from_ms(1_000) {
            return range("interval", format!("{}; at most 1 s is possible", settings.interval));
        }
        if settings.exponent > 15 {
            return range("exponent", format!("{}; 0 to 15 are possible", settings.exponent));
        }
        if settings.past_weight == 0 && settings.future_weight == 0 {
            return range("past-weight", "both weights are 0; one of them must be above 0".to_owned());
        }
        if settings.interval == Time::ZERO && settings.past_weight > 0 {
            let text =
                "with an `interval` of 0 there is no time in which bytes are sent: set `past-weight = 0`";
            return Err(code::CONFLICT.at("past-weight", text));
        }
        let [low, high] = settings.past_limits;
        if low >= high {
            return range("past-limits", format!("{low} and {high}; the second must be above the first"));
        }
        if let Some([low, high]) = settings.future_limits.filter(|[low, high]| low >= high) {
            return range("future-limits", format!("{low} and {high}; the second must be above the first"));
        }
        if settings.scale.bps() == 0 {
            return range("scale", "it must be above 0".to_owned());
        }
        let bands = &settings.bands;
        if !(2..=8).contains(&bands.len()) || bands.contains(&0) {
            return range("bands", format!("{bands:?}; 2 to 8 widths above 0 are possible"));
        }
        if self.congested_above.is_some_and(|share| !(share > 0.0 && share <= 1.0)) {
            return range("congested-above", "a share above 0, and at most 1, is possible".to_owned());
        }
        if settings.quality_delta > BEST {
            return range("quality-delta", format!("{}; 0 to {BEST} are possible", settings.quality_delta));
        }
        if self.probability.is_some_and(|p| !(0.0..=1.0).contains(&p)) {
            return range("probability", "0 to 1 is possible".to_owned());
        }
        if let Some(Alternates { threshold, cost, bias }) = settings.alternates
            && threshold.max(cost).max(bias) > BEST
        {
            return range("alternates", format!("bands have the numbers 0 to {BEST}"));
        }
        Ok(self.warnings(plan, &settings))
    }

    fn warnings(&self, plan: &Plan, settings: &Settings) -> Vec<Finding> {
        let (fabric, mut warnings) = (&plan.fabric, Vec::new());
        if settings.alternates.is_some() && fabric.groups() == 0 {
            let text = "this fabric has no paths beside the shortest ones; a Dragonfly has some";
            warnings.push(code::NO_EFFECT.at("alternates", text));
        }
        let reports = |node| Reporter::of(Site { plan, node }).is_some();
        if settings.global && !fabric.switches().any(reports) {
            let text = "no switch above the ToRs has anything to report";
            warnings.push(code::NO_EFFECT.at("global", text));
        }
        let fit = (settings.entries / settings.table) as usize;
        if settings.mode.has_table() {
            let groups = |node| (Groups::of(Site { plan, node }).members().len(), node);
            // Groups are distinct sets of ports, so only a switch with many racks can have many.
            let most = if fabric.racks().len() > fit {
                fabric.switches().map(groups).max_by_key(|most| most.0)
            } else {
                None
            };
            if let Some((count, node)) = most.filter(|(count, _)| *count > fit) {
                let text = format!(
                    "{} entries hold {fit} groups of {}; `{}` has {count}, of which {} follow `backup`",
                    settings.entries,
                    settings.table,
                    fabric.name(node),
                    count - fit
                );
                warnings.push(code::HARDWARE.at("table", text));
            }
        }
        warnings
    }
}

impl Mode {
    /// True if flows have entries in tables.
    fn has_table(self) -> bool {
        !matches!(self, Mode::PacketQuality | Mode::PacketRandom)
    }
}
