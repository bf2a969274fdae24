//! A window heeds the penalties of its transport.

use super::case::Case;
use finding::{Finding, code};

pub(super) fn judge(case: &Case<'_>) -> Vec<Finding> {
    case.of_schemes(|_, nic| {
        let text = format!(
            "`penalties` of `transport.{}` have no effect: `congestion.{}` does not heed them",
            nic.transport.name(),
            nic.congestion.name()
        );
        let key = format!("transport.{}.penalties", nic.transport.name());
        let vain = nic.transport.penalises() && !nic.congestion.heeds_penalties();
        vain.then(|| code::NO_EFFECT.at(&key, text))
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{LEAVES, lay};

    #[test]
    fn penalties_that_no_window_heeds_are_warned_of_and_impossible_ones_refused() {
        let asked = |control: &str, penalty: &str| {
            lay(&format!(
                "{LEAVES}[nic.transport.uec]\npenalties = [{{ {penalty} }}]\n[nic.congestion.{control}"
            ))
        };
        let warned = |control: &str| {
            let warnings = asked(control, "at = \"5us\"").unwrap().warnings();
            warnings.iter().any(|text| text.contains("`penalties` of `transport.uec` have no effect"))
        };
        let heeded = ["nscc]", "rccc]\nnscc = {}", "smartt]"].map(warned);
        assert_eq!((heeded, warned("rccc]"), warned("none]")), ([false; 3], true, true));
        let said = |penalty| asked("nscc]", penalty).unwrap_err().located();
        assert_eq!(said("share = 128"), "s.toml:7:24: `share` must be from 1 to 127, found 128");
        assert_eq!(
            said("at = \"5us\", until = \"5us\""),
            "s.toml:7:36: `until` must be after `at`, 5us; found 5us"
        );
    }
}
