//! Checks of the settings against a plan.

use super::global::Reporter;
use super::profile::Settings;
use super::quality::BEST;
use super::{Alternates, Config, Mode};
use crate::groups::Groups;
use finding::{Finding, code};
use model::{Plan, Site, Time};

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
        if settings.interval == Time::ZERO && settings.congested_above.is_some() {
            let text = "with an `interval` of 0 there is no time in which bytes are sent: leave it out";
            return Err(code::CONFLICT.at("congested-above", text));
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
