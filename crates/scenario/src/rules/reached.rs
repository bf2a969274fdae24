//! A path joins any two hosts that exchange messages.

use super::case::Case;
use finding::{Finding, code};

pub(super) fn judge(case: &Case<'_>) -> Vec<Finding> {
    let plan = case.plan;
    let apart = plan.qps.iter().find(|qp| !plan.fabric.reaches(qp.from, qp.to));
    let error = apart.map(|qp| {
        let job = plan.messages[qp.messages.start as usize].job;
        let [from, to] = [qp.from, qp.to].map(|host| plan.fabric.host_name(host));
        code::NO_PATH.at(&format!("workload.{job}"), format!("no path leads from {from} to {to}"))
    });
    error.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{JOB, told};

    #[test]
    fn hosts_without_a_path_are_refused() {
        let fabric = |links: &str| {
            told(&format!(
                "[topology.links]\nhosts = [\"a\", \"b\"]\nswitches = [\"s\", \"t\"]\nlinks = [[\"a\", \"s\"], [\"b\", \"t\"]{links}]\n{JOB}"
            ))
        };
        assert_eq!(fabric(""), "s.toml:5:1: no path leads from b to a");
        assert_eq!(fabric(", [\"s\", \"t\"]"), "");
    }
}
