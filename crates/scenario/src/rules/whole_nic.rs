//! Settings that all queue pairs of a NIC share belong to the scenario's NIC, and not to that of a traffic class.

use super::case::Case;
use crate::config::ClassConfig;
use finding::{Finding, code};

pub(super) fn judge(case: &Case<'_>) -> Vec<Finding> {
    let of_class = |(name, class): (&String, &ClassConfig)| {
        let nic = class.nic.as_ref()?;
        let shared = [
            ("classes", !nic.classes.is_empty()),
            ("receive", nic.receive.is_some()),
            ("pcie", nic.pcie.is_some()),
        ];
        let (key, _) = shared.into_iter().find(|(_, is_set)| *is_set)?;
        let text = "belongs into `[nic]`: all traffic classes of a host share it";
        Some(code::CONFLICT.at(&format!("class.{name}.nic.{key}"), text))
    };
    case.scenario.class.iter().filter_map(of_class).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::told_of;

    #[test]
    fn what_all_traffic_classes_share_belongs_to_the_nic() {
        for key in ["classes = [{}]", "receive.rate = \"10Gbps\"", "pcie.rate = \"10Gbps\""] {
            let told = told_of(&format!("[class.background.nic]\n{key}"));
            assert!(told.contains("belongs into `[nic]`"), "{told}");
        }
    }
}
