//! With a map of DSCPs, data of every job is in a lossless class: PFC protects nothing else.

use super::case::Case;
use crate::dscp::DscpMap;
use finding::{Finding, code};
use std::collections::BTreeSet;

pub(super) fn judge(case: &Case<'_>) -> Vec<Finding> {
    let scenario = case.scenario;
    let Some(map) = &scenario.switch.dscp_map else {
        let keys = ["nic.dscp", "nic.cnp-dscp", "nic.ack-dscp"].into_iter();
        let unread = keys.filter(|key| case.is_explicit(key));
        let text = "has no effect without `switch.dscp-map`, which tells the queue of a DSCP";
        return unread.map(|key| code::NO_EFFECT.at(key, format!("`{key}` {text}"))).take(1).collect();
    };
    let roles = scenario.switch_role.values().filter_map(|role| role.pfc.as_ref());
    if !roles.chain([&scenario.switch.pfc]).any(|pfc| pfc.get().is_some()) {
        return Vec::new();
    }
    let queues = map.queues();
    let lossless: BTreeSet<u8> =
        queues.iter().filter(|queue| queue.lossless).flat_map(|queue| &queue.dscp).copied().collect();
    let all = lossless.iter().map(u8::to_string).collect::<Vec<_>>().join(" and ");
    let mut told = BTreeSet::new();
    let mut warnings = Vec::new();
    for entry in &scenario.workload {
        let class = entry.class();
        let (dscp, path) = (scenario.nic_of(class).dscp, scenario.nic_path(class));
        if queues[DscpMap::queue(&queues, dscp)].lossless || !told.insert(path.clone()) {
            continue;
        }
        let text = format!(
            "data of `{class}` has DSCP {dscp}, which {} puts into a lossy queue: PFC does not protect it, and it gets no marks; {}",
            map.name(),
            if all.is_empty() {
                "no DSCP is lossless".to_owned()
            } else {
                format!("DSCP {all} {} lossless", if lossless.len() == 1 { "is" } else { "are" })
            }
        );
        let finding = code::LOSSY_CLASS.at(&format!("{path}.dscp"), text);
        warnings.push(match lossless.first() {
            None => finding.with_help("set `lossless = true` in a queue of the map"),
            Some(first) => finding.with_help(format!(
                "set `{path}.dscp = {first}`, in NCCL NCCL_IB_TC={}",
                u32::from(*first) * 4
            )),
        });
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::super::testing::told_of;

    /// The mistake of NCCL's default on SONiC's: NCCL sends DSCP 0, and SONiC has 3 and 4 in its lossless classes.
    #[test]
    fn data_outside_a_lossless_class_is_told() {
        let of = |keys: &str| told_of(&format!("[switch]\ndscp-map = \"sonic\"\n{keys}"));
        let default = of("");
        assert!(
            default.starts_with(
                "data of `foreground` has DSCP 0, which `switch.dscp-map = \"sonic\"` puts into a lossy queue: PFC does not protect it"
            ),
            "{default}"
        );
        assert_eq!(of("[nic]\ndscp = 3"), "");
        assert_eq!(of("pfc = \"off\""), "");
        assert!(of("[nic]\ndscp = 26").contains("DSCP 26"), "the DSCP of NVIDIA's and Juniper's guides");
        let map = "[switch]\ndscp-map = [{ dscp = [26], lossless = true }, {}]\n[nic]\ndscp = 26";
        assert_eq!(told_of(map), "");
    }

    #[test]
    fn a_dscp_that_no_map_reads_is_told() {
        assert!(
            told_of("[nic]\ndscp = 26").starts_with("`nic.dscp` has no effect without `switch.dscp-map`")
        );
    }
}
