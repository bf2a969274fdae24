//! NICs find lost packets by something quicker than their timer, and look for drops only where switches drop.

use super::case::Case;
use finding::{Finding, code};
use model::Probability;
use model::plan::{Overflow, SwitchSettings};
use rnic::{CutReport, SilentLoss};
use std::collections::BTreeMap;

pub(super) fn judge(case: &Case<'_>) -> Vec<Finding> {
    let (scenario, plan) = (case.scenario, case.plan);
    // Traffic classes with queues of their own may have other rules.
    if !plan.own_queues.is_empty() || plan.switches.is_empty() {
        return Vec::new();
    }
    let lossy = plan.switches.iter().all(|switch| !switch.flow_control.is_lossless());
    let cut = |switch: &SwitchSettings| matches!(switch.overflow, Overflow::Cut(_));
    let clean = plan.fabric.links().iter().all(|link| link.loss == Probability::ZERO)
        && plan.failures.changes().is_empty()
        && plan.lost.is_empty()
        && plan.noise.links.is_empty();
    let mut warnings: BTreeMap<String, Finding> = BTreeMap::new();
    for class in scenario.workload.iter().map(|entry| entry.class()) {
        let nic = scenario.nic_of(class);
        let (mode, facts) = (nic.transport.name(), nic.transport.facts());
        let only_timer = format!(
            "only the timer of `transport.{mode}` finds packets that a switch drops, and switches drop instead of cutting; set \
             `switch.cut = \"on\"`"
        );
        let text = match facts.silent {
            _ if facts.cuts == CutReport::None || !lossy => None,
            SilentLoss::Unfound if !plan.cuts() => Some(only_timer),
            SilentLoss::FoundWith(setting) if !plan.cuts() => {
                Some(format!("{only_timer} or `{setting}` in `nic.transport.{mode}`"))
            }
            SilentLoss::FoundBy(setting) if clean && plan.switches.iter().all(cut) => Some(format!(
                "`{setting}` of `transport.{mode}` may repeat packets that are only late: switches trim packets instead of \
                 dropping them, and receivers report each packet whose headers arrive"
            )),
            _ => None,
        };
        let at = format!("{}.transport.{mode}", scenario.nic_path(class));
        warnings.extend(text.map(|text| (text.clone(), code::SILENT.at(&at, text))));
    }
    warnings.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{lossy, told_of};

    #[test]
    fn losses_that_only_the_timer_finds_are_warned_of() {
        let uec = lossy("[nic.transport.uec]\n");
        assert!(
            uec.starts_with("only the timer of `transport.uec` finds packets that a switch drops"),
            "{uec}"
        );
        assert!(uec.ends_with("or `infer-loss = true` in `nic.transport.uec`"), "{uec}");
        let dcp = lossy("[nic.transport.dcp]\n");
        assert!(dcp.contains("only the timer of `transport.dcp`") && dcp.ends_with("cut = \"on\"`"), "{dcp}");
        assert!(
            lossy("[nic.transport.mrc]\nlost-after = 0\n")
                .ends_with("`lost-after = 3` in `nic.transport.mrc`")
        );
        for fine in [
            "[nic.transport.uec]\ninfer-loss = true\n",
            "cut = \"on\"\n[nic.transport.uec]\n",
            "[nic.transport.mrc]\n",
            "[nic.transport.nic-sr]\n",
            "[nic.transport.ideal]\n",
        ] {
            assert_eq!(lossy(fine), "", "{fine}");
        }
        assert_eq!(told_of("[nic.transport.uec]"), "", "PFC loses nothing");
    }

    #[test]
    fn inferred_losses_beside_cuts_are_warned_of_unless_packets_may_be_lost() {
        let of = |keys: &str| lossy(&format!("cut = \"on\"\n[nic.transport.uec]\ninfer-loss = true\n{keys}"));
        let text = of("");
        assert!(
            text.starts_with("`infer-loss` of `transport.uec` may repeat packets that are only late"),
            "{text}"
        );
        assert_eq!(of("[links]\nloss = 1e-4\n"), "");
        assert_eq!(lossy("cut = \"on\"\n[nic.transport.mrc]\n"), "", "MRC has no such setting");
    }
}
