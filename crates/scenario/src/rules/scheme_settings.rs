//! The settings of every scheme fit the plan.

use super::case::{Case, Chosen, all};
use finding::Finding;

pub(super) fn judge(case: &Case<'_>) -> Vec<Finding> {
    let of = |chosen: &Chosen<'_>| {
        let found = all(chosen.scheme.validate(case.plan));
        found.into_iter().map(|finding| finding.within(&chosen.settings())).collect::<Vec<_>>()
    };
    case.schemes.iter().flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::told_of;

    #[test]
    fn settings_are_refused_wherever_the_scheme_stands() {
        let gap = "it must be longer than 0";
        assert_eq!(told_of("[scheme.conga]\nflowlet-gap = \"0us\""), format!("s.toml:6:15: {gap}"));
        assert_eq!(told_of("[class.a.scheme.conga]\nflowlet-gap = \"0us\""), format!("s.toml:6:15: {gap}"));
    }
}
