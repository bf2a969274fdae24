//! A list by the rate of a port has the rate of some port. A list with other entries may be meant for several fabrics.

use super::case::Case;
use crate::switch::{EcnConfig, PfcConfig, RateCap};
use crate::values::Switched;
use finding::{Finding, code};
use model::Rate;
use std::collections::BTreeSet;

pub(super) fn judge(case: &Case<'_>) -> Vec<Finding> {
    let have: BTreeSet<Rate> = case.plan.fabric.links().iter().map(|link| link.rate).collect();
    let mut warnings = Vec::new();
    let mut look = |path: String, rates: Vec<Rate>| {
        if !rates.is_empty() && rates.iter().all(|rate| !have.contains(rate)) {
            let found: Vec<String> = have.iter().map(Rate::to_string).collect();
            let found = found.join(", ");
            let text = format!("`{path}` has no effect: no port has such a rate; ports have {found}");
            warnings.push(code::NO_EFFECT.at(&path, text));
        }
    };
    let of_ecn = |ecn: &Switched<EcnConfig>| {
        ecn.get().map_or_else(Vec::new, |ecn| ecn.at_rate.iter().map(|entry| entry.rate).collect())
    };
    let of_pfc = |pfc: &Switched<PfcConfig>| {
        pfc.get().map_or_else(Vec::new, |pfc| pfc.alpha_at_rate.iter().map(|entry| entry.rate).collect())
    };
    let of_caps = |caps: &[RateCap]| caps.iter().map(|entry| entry.rate).collect();
    let base = &case.scenario.switch;
    look("switch.queue-cap-at-rate".into(), of_caps(&base.queue_cap_at_rate));
    look("switch.ecn.at-rate".into(), of_ecn(&base.ecn));
    look("switch.pfc.alpha-at-rate".into(), of_pfc(&base.pfc));
    for (name, role) in &case.scenario.switch_role {
        let path = |key: &str| format!("switch-role.{name}.{key}");
        look(path("queue-cap-at-rate"), role.queue_cap_at_rate.as_deref().map_or_else(Vec::new, of_caps));
        look(path("ecn.at-rate"), role.ecn.as_ref().map_or_else(Vec::new, of_ecn));
        look(path("pfc.alpha-at-rate"), role.pfc.as_ref().map_or_else(Vec::new, of_pfc));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::super::testing::lossy;

    #[test]
    fn rates_that_no_port_has_are_warned_of() {
        let of = |keys: &str| lossy(&format!("queue-cap = \"90kB\"\n{keys}\n"));
        let cap = |rate: &str| of(&format!("queue-cap-at-rate = [{{ rate = \"{rate}\", cap = \"50kB\" }}]"));
        assert_eq!(
            cap("40Gbps"),
            "`switch.queue-cap-at-rate` has no effect: no port has such a rate; ports have 400Gbps"
        );
        assert_eq!(cap("400Gbps"), "");
        let ecn = |rates: &str| {
            of(&format!(
                "[switch.ecn]\nat-rate = [{}]",
                rates
                    .split(' ')
                    .map(|rate| format!("{{ rate = \"{rate}\", kmin = \"1kB\", kmax = \"2kB\", pmax = 1 }}"))
                    .collect::<Vec<_>>()
                    .join(", ")
            ))
        };
        assert!(ecn("40Gbps").starts_with("`switch.ecn.at-rate` has no effect"), "{}", ecn("40Gbps"));
        assert_eq!(ecn("40Gbps 400Gbps"), "", "a list for several fabrics");
    }
}
