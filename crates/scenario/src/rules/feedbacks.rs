//! Every feedback can run in its switches, and its settings fit the plan and the NIC.

use super::case::{Case, all};
use finding::Finding;
use model::NodeId;

pub(super) fn judge(case: &Case<'_>) -> Vec<Finding> {
    let (plan, nic) = (case.plan, case.scenario.nic_of("foreground"));
    let roles = &case.scenario.switch_role;
    let has_own = |role: &str| roles.get(role).is_some_and(|config| config.feedback.is_some());
    let mut found = Vec::new();
    for (path, role, feedback) in case.scenario.feedbacks() {
        let mine = |node: &NodeId| match (role, plan.fabric.role(*node)) {
            (Some(role), of_node) => role == of_node,
            (None, of_node) => !has_own(of_node),
        };
        let switches: Vec<NodeId> = plan.fabric.switches().filter(mine).collect();
        let own = feedback.place(plan, &switches, role.is_none()).err().into_iter();
        let own = own.chain(all(feedback.validate(plan))).chain(all(feedback.validate_nic(&nic)));
        found.extend(own.map(|finding| finding.within(&format!("{path}.{}", feedback.name()))));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::testing::told_of;

    #[test]
    fn a_feedback_is_refused_where_it_cannot_stand() {
        let all = told_of("[feedback.fair-rate]");
        assert!(all.starts_with("s.toml:5:1: no switch has a long link"), "{all}");
        let some = told_of("[switch-role.leaf.feedback.fair-rate]");
        assert!(some.contains(": the switch `leaf0` has no long link"), "{some}");
    }
}
