//! The fabric asks of its NICs and switches only what their models can do.

use super::case::Case;
use crate::hardware::{Limits, NICS, SWITCHES, limits};
use finding::{Finding, code};
use model::Rate;

pub(super) fn judge(case: &Case<'_>) -> Vec<Finding> {
    let (scenario, fabric) = (case.scenario, &case.plan.fabric);
    let mut warnings = Vec::new();
    if let Some((name, Limits { rate: Some(most), source, .. })) = limits(NICS, scenario.nic.model.as_deref())
    {
        let fastest =
            fabric.links().iter().filter(|link| fabric.is_host(link.from)).map(|link| link.rate).max();
        if let Some(rate) = fastest.filter(|rate| *rate > most) {
            let text = format!(
                "hosts have links of {rate}, and the ports of a {name} have at most {most} ({source})"
            );
            warnings.push(code::HARDWARE.at("nic.model", text));
        }
    }
    if let Some((name, limits)) = limits(SWITCHES, scenario.switch.model.as_deref()) {
        for switch in (0..fabric.switch_count()).map(|number| fabric.switch(number)) {
            let ports = fabric.ports(switch);
            let sum = Rate(ports.iter().map(|link| link.rate.bps()).sum());
            let who = fabric.name(switch);
            let many = limits.ports.filter(|most| ports.len() > *most);
            let fast = limits.capacity.filter(|most| sum > *most);
            let text = match (many, fast) {
                (Some(most), _) => {
                    format!("{who} has {} ports, and a {name} has at most {most}", ports.len())
                }
                (None, Some(most)) => {
                    format!("{who} has ports of {sum} in total, and a {name} has at most {most}")
                }
                (None, None) => continue,
            };
            // One switch is enough to see the mistake.
            warnings.push(code::HARDWARE.at("switch.model", format!("{text} ({})", limits.source)));
            break;
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::super::testing::{JOB, told, told_of};

    #[test]
    fn hardware_that_cannot_do_what_the_fabric_asks_is_warned_of() {
        let slow = "[topology.leaf-spine]\nleaves = 2\nspines = 2\nhosts-per-leaf = 2\nrate = \"100Gbps\"\n";
        let models = "[nic]\nmodel = \"connectx-5\"\n[switch]\nmodel = \"tomahawk-3\"\n";
        assert_eq!(told(&format!("{slow}{models}{JOB}")), "");
        let warnings = told_of("[nic]\nmodel = \"connectx-6\"");
        assert!(
            warnings.starts_with("hosts have links of 400Gbps, and the ports of a connectx-6"),
            "{warnings}"
        );
        let wide =
            "[topology.leaf-spine]\nleaves = 2\nspines = 80\nhosts-per-leaf = 80\nrate = \"400Gbps\"\n";
        let warnings = told(&format!("{wide}[switch]\nmodel = \"spectrum-4\"\n{JOB}"));
        assert!(warnings.contains("leaf0 has ports of 64000Gbps in total, and a spectrum-4"), "{warnings}");
    }
}
