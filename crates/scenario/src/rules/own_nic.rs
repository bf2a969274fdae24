//! Where a scheme brings a NIC of its own, the user has written no part that it replaces.

use super::case::Case;
use finding::{Finding, code};
use schemes::SchemeConfig;

pub(super) fn judge(case: &Case<'_>) -> Vec<Finding> {
    case.schemes.iter().filter_map(|chosen| unused(case, chosen.scheme)).collect()
}

/// The parts of the scenario's NIC that queue pairs under `scheme` do not use.
fn unused(case: &Case<'_>, scheme: &SchemeConfig) -> Option<Finding> {
    let nic = &case.scenario.nic;
    let own = scheme.own_nic(nic)?;
    let replaced = [
        ("transport", nic.transport.name(), own.transport.name()),
        ("congestion", nic.congestion.name(), own.congestion.name()),
    ];
    let unused =
        replaced.into_iter().filter(|(part, was, is)| was != is && case.is_explicit(&format!("nic.{part}")));
    let unused: Vec<String> = unused.map(|(part, was, _)| format!("nic.{part}.{was}")).collect();
    let text = format!(
        "`{}` brings its own recovery mode and congestion control, so its queue pairs do not use `{}`",
        scheme.name(),
        unused.join("` and `")
    );
    unused.first().map(|key| code::NO_EFFECT.at(key, text))
}

#[cfg(test)]
mod tests {
    use super::super::testing::told_of;

    #[test]
    fn nic_settings_that_are_not_used_are_warned_of_if_the_user_wrote_them() {
        let brings =
            "`mp-rdma` brings its own recovery mode and congestion control, so its queue pairs do not use";
        assert_eq!(
            told_of("[scheme.mp-rdma]\n[nic.transport.sr-sack]\n[nic.congestion.dcqcn]"),
            format!("{brings} `nic.transport.sr-sack` and `nic.congestion.dcqcn`")
        );
        assert_eq!(
            told_of("[scheme.mp-rdma]\n[nic]\non-nack = { to = 0.5 }\n[nic.congestion.dcqcn]"),
            format!("{brings} `nic.congestion.dcqcn`")
        );
        assert_eq!(told_of("[scheme.mp-rdma]\n[nic.transport.mp-rdma]\nbitmap = 99"), "");
    }
}
