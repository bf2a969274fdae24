//! A scheme that works in the sending NIC or writes on packets stands in all switches.

use super::case::Case;
use finding::{Finding, code};

pub(super) fn judge(case: &Case<'_>) -> Vec<Finding> {
    let part = case.schemes.iter().find(|chosen| chosen.role.is_some() && chosen.scheme.writes());
    let error = part.map(|chosen| {
        let text = format!(
            "`{}` works in the sending NIC or writes on packets, so it cannot be the scheme of some switches only",
            chosen.scheme.name()
        );
        let help = "set it as `scheme` or for a traffic class";
        code::UNSUITED.at(&chosen.path, text).with_help(help)
    });
    error.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::told_of;

    #[test]
    fn a_scheme_that_writes_on_packets_stands_in_all_switches() {
        let text = told_of("[switch-role.leaf.scheme.reps]");
        assert!(
            text.starts_with("s.toml:5:19: `reps` works in the sending NIC or writes on packets"),
            "{text}"
        );
        assert_eq!(told_of("[switch-role.leaf.scheme.rps]"), "");
    }
}
