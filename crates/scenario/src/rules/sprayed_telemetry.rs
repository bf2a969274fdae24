//! A congestion control that compares the telemetry of two packets gets them over the same links.

use super::case::Case;
use finding::{Finding, code};
use rnic::Evidence;

pub(super) fn judge(case: &Case<'_>) -> Vec<Finding> {
    case.of_schemes(|scheme, nic| {
        let text = format!(
            "`congestion.{}` compares the telemetry of two consecutive packets over the same links, but under `{}` they \
             seldom take the same links: senders seldom learn of congestion or of its end",
            nic.congestion.name(),
            scheme.name()
        );
        let compares = matches!(nic.congestion.facts().evidence, Evidence::Telemetry { .. });
        let key = format!("congestion.{}", nic.congestion.name());
        (compares && scheme.facts().sprays).then(|| code::POOR_MATCH.at(&key, text))
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{LEAVES, lay};

    #[test]
    fn spraying_under_hpcc_is_warned_of_and_a_scheme_with_its_own_control_is_not() {
        let sprayed = lay(&format!("{LEAVES}[scheme.rps]\n[nic.congestion.hpcc]")).unwrap();
        assert!(sprayed.warnings()[0].contains("under `rps` they seldom take"), "{:?}", sprayed.warnings());
        let own = lay(&format!("{LEAVES}[scheme.mp-rdma]\n[nic.congestion.hpcc]")).unwrap();
        assert!(!own.nics.read_telemetry() && own.plan.wire.hops == 0);
    }
}
