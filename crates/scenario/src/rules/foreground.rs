//! Some workload is no background traffic, as a run ends when all others have finished.

use super::case::Case;
use finding::{Finding, code};

pub(super) fn judge(case: &Case<'_>) -> Vec<Finding> {
    let text = "all workloads are background, so the run would end at once";
    let all = case.plan.jobs.iter().all(|job| job.background);
    all.then(|| code::CONFLICT.at("workload.0.background", text)).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{HEAD, JOB, told};

    #[test]
    fn background_alone_is_refused() {
        let background = format!("{HEAD}[[workload]]\nbackground = true\nneighbour-ring = {{}}\n");
        assert_eq!(
            told(&background),
            "s.toml:6:14: all workloads are background, so the run would end at once"
        );
        assert_eq!(told(&format!("{background}{JOB}name = \"next\"\n")), "");
    }
}
