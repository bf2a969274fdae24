//! A NIC pauses only links whose switches pause, too: other switches do not listen to pauses. Ports that share queue pairs share PCIe
//! as well, which is not modelled.

use super::case::Case;
use finding::{Finding, code};

pub(super) fn judge(case: &Case<'_>) -> Vec<Finding> {
    let plan = case.plan;
    if plan.sharing.is_some() && case.scenario.nic.pcie.is_some() {
        return vec![
            code::UNSUITED.at("nic.pcie", "cannot limit a NIC with several ports, which would share it"),
        ];
    }
    let pauses = plan.receive.iter().flatten().any(|queue| queue.pause);
    let lossless = plan.switches.iter().all(|switch| switch.flow_control.is_lossless());
    let text = match pauses {
        true if !lossless => "needs `switch.pfc` at all switches; `pause = false` discards data",
        true if !plan.own_queues.is_empty() => "cannot pause classes with `of` one by one",
        _ => return Vec::new(),
    };
    vec![code::UNSUITED.at("nic.receive.pause", text)]
}

#[cfg(test)]
mod tests {
    use super::super::testing::{lossy, told_of};

    #[test]
    fn a_nic_that_pauses_needs_switches_with_pfc() {
        let slow = "[nic]\nreceive.rate = \"10Gbps\"\n";
        assert_eq!(told_of(slow), "");
        let told = lossy(&format!("{slow}receive.pause = true\n"));
        assert!(told.contains("needs `switch.pfc`"), "{told}");
        assert_eq!(lossy(slow), lossy(""), "without PFC it discards");
    }

    #[test]
    fn a_slow_receiver_exists_and_has_one_queue() {
        let told = told_of("[nic]\nreceive = { rate = \"10Gbps\", hosts = [\"hots0\"] }");
        assert!(told.contains("the host `hots0` does not exist"), "{told}");
        let told = told_of("[class.a.nic]\nreceive.rate = \"10Gbps\"");
        assert!(told.contains("belongs into `[nic]`"), "{told}");
    }
}
