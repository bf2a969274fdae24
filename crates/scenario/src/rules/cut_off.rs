//! Failures leave every queue pair a path in the end.

use super::case::Case;
use finding::{Finding, code};
use model::fabric::MOST_CHANNELS;
use model::plan::Qp;

pub(super) fn judge(case: &Case<'_>) -> Vec<Finding> {
    let (plan, fabric) = (case.plan, &case.plan.fabric);
    if plan.failures.is_empty() {
        return Vec::new();
    }
    let lost = |qp: &&Qp| !plan.failures.reach_in_the_end(fabric, plan.sharing, qp.from, qp.to);
    let mut cut = plan.qps.iter().filter(lost);
    let Some(first) = cut.next() else { return Vec::new() };
    let more = match cut.count() {
        0 => String::new(),
        n => format!(" and {n} more queue pairs"),
    };
    let job = &plan.jobs[usize::from(plan.messages[first.messages.start as usize].job)].name;
    let spare = match fabric.groups() > 0 && fabric.channels() < MOST_CHANNELS {
        true => {
            "; two groups without a link between them need `channels = 3` to reach each other over a third group"
        }
        false => "",
    };
    let text = format!(
        "failures cut off {} from {} (job {job}){more}: flows that have not finished by then never will; `until` \
         would restore the links{spare}",
        fabric.host_name(first.from),
        fabric.host_name(first.to)
    );
    vec![code::CUT_OFF.at("failure", text)]
}

#[cfg(test)]
mod tests {
    use super::super::testing::told_of;

    #[test]
    fn flows_that_failures_cut_off_are_warned_of_before_the_run() {
        let failing = |until: &str| {
            told_of(&format!("[[failure]]\nlinks = [[\"host3\", \"leaf1\"]]\nat = \"5us\"\n{until}"))
        };
        let cut = failing("");
        assert!(cut.starts_with("failures cut off host"), "{cut}");
        assert!(cut.contains("host3") && cut.contains("job neighbour-ring"), "{cut}");
        assert_eq!(failing("until = \"9us\""), "");
    }
}
