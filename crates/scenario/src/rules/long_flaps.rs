//! Flaps that outlast the retries of a NIC end jobs, or move queue pairs to another port.

use super::case::Case;
use crate::failure::flaps::longer;
use finding::{Finding, code};
use model::Time;
use model::failure::time_in_words;

pub(super) fn judge(case: &Case<'_>) -> Vec<Finding> {
    let (fabric, failures) = (&case.plan.fabric, &case.plan.failures);
    let retrying = case.nics.iter().filter_map(|waits| waits.nic.gives_up_after());
    let Some(retrying) = retrying.min() else { return Vec::new() };
    let flapping = (0..).zip(&case.scenario.failure).filter(|(_, entry)| entry.flaps.is_some());
    let told = flapping.filter_map(|(i, entry)| {
        let once = |link| entry.one_way || link < fabric.reverse(link);
        let causes = failures.outages().filter(|cause| cause.entry == i && once(cause.link));
        let flaps: Vec<(Time, Time)> = causes.map(|cause| (cause.at, cause.until)).collect();
        let long = longer(&flaps, retrying)?;
        let text =
            format!("{long} last longer than all retries of a queue pair, {}", time_in_words(retrying));
        Some(code::LONG_FLAPS.at(&format!("failure.{i}.flaps"), text))
    });
    told.collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::told_of;

    /// A timer of 10 us and seven retries: 80 us.
    #[test]
    fn flaps_longer_than_all_retries_are_counted_once_for_both_directions() {
        let of = |down: &str, nic: &str| {
            told_of(&format!(
                "[nic]\ntimeout = {{ fixed = \"10us\" }}\n{nic}\n[[failure]]\nlinks = [[\"leaf0\", \"spine1\"]]\nuntil = \"10ms\"\n\
                 flaps = {{ up = \"200us\", down = {down} }}\n"
            ))
        };
        let mixed = of("[\"79us\", \"81us\"]", "retries = 7");
        let (counts, _) = mixed.split_once(" flaps (").unwrap();
        let count = |text: &str| text.rsplit(' ').next().unwrap().parse::<u32>().unwrap();
        let (long, all) = counts.rsplit_once(" of ").map(|(long, all)| (count(long), count(all))).unwrap();
        assert!((25..50).contains(&all) && (all / 4..=all * 3 / 4).contains(&long), "{mixed}");
        assert!(mixed.contains("last longer than all retries of a queue pair, 80 us"), "{mixed}");
        assert!(!of("[\"79us\"]", "retries = 7").contains("last longer"));
        // 10, 20 and six times 40 us.
        let growing = of("[\"271us\"]", "retries = 7\nbackoff = { cap = \"40us\" }");
        assert!(growing.contains("all retries of a queue pair, 270 us"), "{growing}");
        assert!(!of("[\"81us\"]", "").contains("last longer"), "without a limit nothing gives up");
    }
}
