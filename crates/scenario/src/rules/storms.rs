//! A storm of pauses concerns switches that obey pauses.

use super::case::Case;
use finding::{Finding, code};
use model::plan::FlowControl;

pub(super) fn judge(case: &Case<'_>) -> Vec<Finding> {
    let plan = case.plan;
    let fabric = &plan.fabric;
    let deaf = plan.failures.storms().iter().find_map(|(link, ..)| {
        let switch = fabric.links()[link.index()].to;
        let lossless = || {
            let number = fabric.switch_number(switch);
            plan.settings_of_groups()
                .any(|switches| matches!(switches[number].flow_control, FlowControl::Lossless(_)))
        };
        (fabric.is_host(switch) || !lossless()).then(|| fabric.name(switch))
    });
    let text = |name| format!("{name} has no PFC and ignores pauses; set `switch.pfc`");
    deaf.map(|name| code::NEEDS.at("failure", text(name))).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{lossy, told_of};

    #[test]
    fn a_storm_needs_a_switch_with_pfc() {
        let storm = "[[failure]]\nstorm = [\"host0\"]\n";
        assert_eq!(told_of(storm), "");
        assert!(lossy(storm).contains("leaf0 has no PFC and ignores pauses"), "{}", lossy(storm));
    }

    #[test]
    fn a_storm_comes_from_hosts_alone() {
        let told = told_of("[[failure]]\nstorm = [\"spine0\"]\n");
        assert!(told.contains("`spine0` is a switch"), "{told}");
        let told = told_of("[[failure]]\nstorm = [\"hots0\"]\n");
        assert!(told.contains("there is no node `hots0`; did you mean `host0`?"), "{told}");
        let told = told_of("[[failure]]\nstorm = [\"host0\"]\nloss = 0.5\n");
        assert!(told.contains("a storm takes no link down"), "{told}");
    }
}
