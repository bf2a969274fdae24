//! Checks of `[scheme.themis]` against a plan.

use super::config::{Config, Entries, Judging};
use super::cross_rack;
use super::last_hops::LastHops;
use ::themis::{Rule, RuleError};
use finding::{Finding, code};
use model::{Fabric, Kind, NodeId, Plan, QpId};
use std::collections::BTreeSet;

impl Config {
    pub(super) fn check(&self, plan: &Plan) -> Result<Vec<Finding>, Finding> {
        let error = |field, message: &str| Err(code::RANGE.at(field, message));
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
            return error("ring-factor", "the factor must be above 0 and at most 1000");
        }
        if self.slots == Some(0) {
            return error("slots", "the number of slots must be at least 1");
        }
        self.check_paths(&plan.fabric)?;
        let mut warnings = Vec::new();
        self.check_slots(plan, &mut warnings)?;
        if self.mode == Judging::Sound {
            self.check_rings(plan, &mut warnings);
        }
        Ok(warnings)
    }

    /// Checks the number of slots against the bits that the ring keeps, and against the number of paths.
    fn check_slots(&self, plan: &Plan, warnings: &mut Vec<Finding>) -> Result<(), Finding> {
        let fabric = &plan.fabric;
        let (mut counts, mut uneven) = (BTreeSet::new(), BTreeSet::new());
        for (tor, qp) in plan.qps.iter().filter_map(|qp| Some((cross_rack(fabric, qp)?, qp))) {
            counts.insert(self.paths(fabric, tor, fabric.rack(qp.to)));
            let ports = fabric.route(tor, qp.to);
            let rate = |&port: &model::PortIndex| fabric.ports(tor)[port.index()].rate;
            if ports.windows(2).any(|pair| rate(&pair[0]) != rate(&pair[1])) {
                uneven.insert(tor);
            }
        }
        for &paths in &counts {
            let slots = self.slots.unwrap_or(u16::try_from(paths).unwrap_or(u16::MAX));
            match Rule::new(self.settings(slots, (1, 1))) {
                Err(error @ RuleError::SlotsDoNotFitWidth { .. }) => {
                    // Without the setting, the fabric decides.
                    let (code, field) =
                        self.slots.map_or((code::UNSUITED, "psn-bits"), |_| (code::RANGE, "slots"));
                    return Err(code.at(field, error.to_string()));
                }
                Err(error) => return Err(code::RANGE.at("slots", error.to_string())),
                Ok(_) => {}
            }
            let slots = usize::from(slots);
            if slots < paths {
                let text = format!("{slots} slots use only {slots} of {paths} paths for each flow");
                warnings.push(code::UNEVEN.at("slots", text));
            } else if slots % paths != 0 {
                let text = format!("{slots} slots load {paths} paths unevenly; take a multiple");
                warnings.push(code::UNEVEN.at("slots", text));
            }
        }
        if let Some(&tor) = uneven.first() {
            warnings.push(code::UNEVEN.plain(format!(
                "equal-cost uplinks of {} differ in rate ({} such switches); every uplink gets the same share",
                fabric.name(tor),
                uneven.len()
            )));
        }
        Ok(())
    }

    /// Checks the length of rings against the needs of sound judging.
    fn check_rings(&self, plan: &Plan, warnings: &mut Vec<Finding>) {
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
            let text = format!(
                "the ring tells {reach} packets apart, but sound judging needs {need} at {}: NACKs for packets that \
                 are only late will pass",
                plan.fabric.name(tor)
            );
            warnings.push(code::TOO_SHORT.at("ring", text));
        }
        if old {
            let text = "the age limit is shorter than a round trip of the last hop: NACKs for packets that are only late will \
                        pass";
            warnings.push(code::TOO_SHORT.at("age-limit", text));
        }
        if plan.classes.may_wait_with_data(Kind::Nack) {
            let text = "replies queue behind data, longer than the ring can cover: NACKs for packets that are only late may \
                        pass";
            warnings.push(code::TOO_SHORT.at("switch.classes", text).rooted());
        }
    }
}

/// Queue pairs that come from other racks, by the ToR where they end.
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
