//! No cap drops data of a class that PFC protects.

use super::case::Case;
use finding::{Finding, code};
use model::Kind;
use model::plan::SwitchSettings;

pub(super) fn judge(case: &Case<'_>) -> Vec<Finding> {
    let plan = case.plan;
    let lossless = |settings: &SwitchSettings| settings.flow_control.is_lossless();
    let pauses = |group: u8| match plan.own_queues.groups.get(usize::from(group).wrapping_sub(1)) {
        None => case.scenario.switch.pfc.get().is_some(),
        Some(group) => group.switches.iter().any(lossless),
    };
    let mut classes = plan.classes.all().iter().filter(|class| class.kinds.has(Kind::Data));
    let capped = classes.any(|class| class.charged && class.cap.is_some() && pauses(class.group));
    let text = "the class of data has a `cap` in `switch.classes`: packets beyond it are dropped, although PFC is on";
    capped.then(|| code::CAP.at("switch.classes", text)).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::told_of;

    #[test]
    fn a_cap_on_data_under_pfc_is_warned_of() {
        let of = |more: &str| {
            told_of(&format!("[switch]\nclasses = [{{ kinds = [\"data\"], cap = \"100kB\" }}]\n{more}"))
        };
        assert!(of("").starts_with("the class of data has a `cap`"), "{}", of(""));
        assert_eq!(of("pfc = \"off\""), "");
    }
}
