//! Subflows are pinned to paths only where a scheme follows them.

use super::case::Case;
use crate::workload::Paths;
use finding::{Finding, code};

pub(super) fn judge(case: &Case<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (i, entry) in case.scenario.workload.iter().enumerate() {
        let scheme = case.scenario.scheme_of(entry.class());
        if entry.split.is_some_and(|split| split.paths == Paths::Pinned) && !scheme.facts().pinned {
            let text = format!(
                "the workload `{}` pins the subflows of its messages to paths, but `{}` chooses paths by itself; \
                 `split.paths = \"free\"` says so",
                entry.name.as_deref().unwrap_or_default(),
                scheme.name()
            );
            found.push(code::NO_EFFECT.at(&format!("workload.{i}.split.paths"), text));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::testing::told_of;

    #[test]
    fn pinned_subflows_under_a_scheme_that_chooses_paths_are_warned_of() {
        let of = |scheme: &str, paths: &str| {
            told_of(&format!(
                "[scheme.{scheme}]\n[[workload]]\nname = \"split\"\nneighbour-ring = {{}}\nsplit = {{ subflows = 2{paths} }}"
            ))
        };
        let text = of("ecmp", "");
        assert!(
            text.starts_with("the workload `split` pins the subflows of its messages to paths, but `ecmp`"),
            "{text}"
        );
        assert_eq!(of("ecmp", ", paths = \"free\""), "");
        assert_eq!(of("ethereal", ""), "");
    }
}
