//! Classes of NICs are those of all queue pairs of a port, and each has queue pairs and a limit that matter.

use super::case::Case;
use finding::{Finding, code};

pub(super) fn judge(case: &Case<'_>) -> Vec<Finding> {
    let plan = case.plan;
    let table = &plan.nic_classes.table;
    if table.is_empty() {
        return Vec::new();
    }
    if plan.sharing.is_some() {
        let text = "ports that share the queue pairs of their NIC (`server.port-use`) cannot have classes";
        return vec![code::UNSUITED.at("nic.classes", text)];
    }
    let unlimited = table.iter().all(|class| class.rate.is_none());
    let has_flows =
        |i: usize| plan.jobs.iter().any(|job| usize::from(plan.nic_classes.of[usize::from(job.class)]) == i);
    let used = (0..table.len()).filter(|i| has_flows(*i)).count();
    if used < 2 && unlimited {
        let text = "all queue pairs belong to one class, which has no `rate`";
        return vec![code::NO_EFFECT.at("nic.classes", text)];
    }
    let line = (0..plan.fabric.hosts() as u32).map(|host| plan.line(model::HostId(host))).max();
    let judge = |(i, class): (usize, &model::plan::NicClass)| match class.rate {
        _ if !has_flows(i) => {
            Some(code::NO_EFFECT.at(&format!("nic.classes.{i}"), "no job has queue pairs of this class"))
        }
        rate if rate.is_some() && rate >= line => {
            let text = "no host has a faster link, so the class is not limited";
            Some(code::NO_EFFECT.at(&format!("nic.classes.{i}.rate"), text))
        }
        _ => None,
    };
    table.iter().enumerate().filter_map(judge).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::told_of;

    #[test]
    fn classes_without_an_effect_are_warned_of() {
        let of = |classes: &str| {
            told_of(&format!(
                "[nic]\nclasses = [{classes}]\n[[workload]]\nclass = \"background\"\nneighbour-ring = {{}}"
            ))
        };
        assert_eq!(of("{ of = [\"background\"] }, {}"), "");
        assert_eq!(of("{ rate = \"100Gbps\" }"), "");
        assert_eq!(of("{}"), "all queue pairs belong to one class, which has no `rate`");
        assert_eq!(
            of("{ of = [\"foreground\", \"background\"], rate = \"1Gbps\" }, { weight = 2 }"),
            "no job has queue pairs of this class"
        );
        assert_eq!(of("{ rate = \"400Gbps\" }"), "no host has a faster link, so the class is not limited");
    }

    #[test]
    fn a_class_names_traffic_classes_that_exist() {
        let text = told_of("[nic]\nclasses = [{ of = [\"backgroun\"] }, {}]");
        assert!(text.starts_with("s.toml:6:20: there is no traffic class `backgroun`; "), "{text}");
    }
}
