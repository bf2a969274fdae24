//! Credits are those of lossless classes.

use super::case::Case;
use finding::{Finding, code};

pub(super) fn judge(case: &Case<'_>) -> Vec<Finding> {
    let on = case.scenario.switch.cbfc.get().is_some();
    let text = "no class is lossless, so no switch grants credits; `switch.pfc` says which classes are";
    let idle = on && !case.plan.has_credits();
    idle.then(|| code::UNSUITED.at("switch.cbfc", text)).into_iter().collect()
}
