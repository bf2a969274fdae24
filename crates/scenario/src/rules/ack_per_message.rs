//! A congestion control that reads telemetry gets more than one ACK per message.

use super::case::Case;
use finding::{Finding, code};

pub(super) fn judge(case: &Case<'_>) -> Vec<Finding> {
    case.of_schemes(|_, nic| {
        let text = format!(
            "with `ack-per-message` the sender gets one ACK per message, but `congestion.{}` needs frequent ACKs",
            nic.congestion.name()
        );
        let few = nic.ack_per_message && nic.telemetry().is_some();
        few.then(|| code::FEW_ACKS.at("ack-per-message", text))
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::told_of;

    #[test]
    fn telemetry_in_one_ack_per_message_is_warned_of() {
        let of =
            |control: &str| told_of(&format!("[nic]\nack-per-message = true\n[nic.congestion.{control}]"));
        assert!(of("hpcc").contains("one ACK per message, but `congestion.hpcc` needs frequent ACKs"));
        assert!(!of("dcqcn").contains("needs frequent ACKs"));
    }
}
