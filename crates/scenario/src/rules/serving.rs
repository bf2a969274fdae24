//! Serving starts its messages itself: keys that shape messages of a plan do not fit it.

use super::case::Case;
use crate::workload::QpUse;
use finding::{Finding, code};

pub(super) fn judge(case: &Case<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (i, entry) in case.scenario.workload.iter().enumerate().filter(|(_, entry)| entry.serving.is_some()) {
        for (key, set, help) in [
            ("jitter", entry.jitter.is_some(), "`serving.trace.spread` moves requests"),
            ("slow", entry.slow.is_some(), "servers of serving are equally fast"),
            ("compute-jitter", entry.compute_jitter.is_some(), "computation of serving follows formulas"),
            (
                "qp",
                entry.qp.is_some_and(|qp| qp != QpUse::Persistent),
                "`serving.transfer.qps` sets queue pairs",
            ),
        ] {
            if set {
                let text = format!("`{key}` does not fit `serving`; {help}");
                found.push(code::UNSUITED.at(&format!("workload.{i}.{key}"), text));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use crate::workload::serving::testing::{SMALL, told};

    #[test]
    fn keys_that_shape_messages_of_a_plan_are_refused() {
        let of =
            |key: &str| told(&SMALL.replace("[workload.serving]", &format!("{key}\n[workload.serving]")));
        assert_eq!(of(""), "");
        assert_eq!(
            of("jitter = \"1us\""),
            "`jitter` does not fit `serving`; `serving.trace.spread` moves requests"
        );
        assert_eq!(
            of("qp = \"per-message\""),
            "`qp` does not fit `serving`; `serving.transfer.qps` sets queue pairs"
        );
        assert_eq!(
            of("verb = \"read\""),
            "cannot be \"read\" with `serving`, which has `transfer.way = \"pull\"`"
        );
    }
}
