//! A NIC pauses only links whose switches pause, too: other switches do not listen to pauses.

use super::case::Case;
use finding::{Finding, code};
use model::plan::FlowControl;

pub(super) fn judge(case: &Case<'_>) -> Vec<Finding> {
    let plan = case.plan;
    let pauses = plan.receive.iter().flatten().any(|queue| queue.pause);
    let lossless = plan.switches.iter().all(|switch| matches!(switch.flow_control, FlowControl::Lossless(_)));
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
    fn a_slow_receiver_is_a_host() {
        let told = told_of("[nic]\nreceive = { rate = \"10Gbps\", hosts = [\"hots0\"] }");
        assert!(told.contains("there is no node `hots0`; did you mean `host0`?"), "{told}");
        let told = told_of("[nic]\nreceive = { rate = \"10Gbps\", hosts = [\"host0\", \"spine0\"] }");
        assert!(told.contains("`spine0` is a switch"), "{told}");
    }
}
