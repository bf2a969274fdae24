//! A run has one view of the queues, so all schemes that read one have the same.

use super::case::Case;
use finding::{Finding, code};

pub(super) fn judge(case: &Case<'_>) -> Vec<Finding> {
    let mut views = case
        .schemes
        .iter()
        .filter_map(|chosen| chosen.scheme.facts().view.map(|view| (chosen.settings(), view)));
    let Some((first, view)) = views.next() else { return Vec::new() };
    let other = views.find_map(|(path, other)| {
        let pairs = [("period", other.period, view.period), ("delay", other.delay, view.delay)];
        let (key, own, common) = pairs.into_iter().find(|(_, own, common)| own != common)?;
        let text = format!(
            "`{path}` has a {key} of {own} and `{first}` has one of {common}; all classes share one view of the queues"
        );
        let help = "give both the same `period` and `delay`; their default is 1us";
        Some(code::CONFLICT.at(&format!("{path}.{key}"), text).with_help(help))
    });
    other.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{JOB, told};

    #[test]
    fn different_views_are_refused() {
        let of = |keys: &str| told(&format!("[topology.dragonfly]\ngroups = 3\n{keys}\n{JOB}"));
        let end = "all classes share one view of the queues";
        assert_eq!(
            of("[scheme.ugal-g]\n[class.a.scheme.ugal-g]\ndelay = \"1us\"\nperiod = \"5us\""),
            format!(
                "s.toml:6:10: `class.a.scheme.ugal-g` has a period of 5us and `scheme.ugal-g` has one of 1us; {end}"
            )
        );
        assert_eq!(
            of("[class.a.scheme.ugal-g]\ndelay = \"3us\"\n[class.b.scheme.ugal-g]\nweight = 3"),
            format!(
                "s.toml:5:1: `class.b.scheme.ugal-g` has a delay of 1us and `class.a.scheme.ugal-g` has one of 3us; {end}"
            )
        );
    }
}
