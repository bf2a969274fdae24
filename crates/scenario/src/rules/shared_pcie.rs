//! Ports that share queue pairs share PCIe as well, which is not modelled.

use super::case::Case;
use finding::{Finding, code};

pub(super) fn judge(case: &Case<'_>) -> Vec<Finding> {
    let shared = case.plan.sharing.is_some() && case.scenario.nic.pcie.is_some();
    let text = "cannot limit a NIC with several ports, which would share it";
    shared.then(|| code::UNSUITED.at("nic.pcie", text)).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{JOB, told};

    #[test]
    fn ports_that_share_queue_pairs_have_no_pcie() {
        let of = |port_use: &str| {
            told(&format!(
                "[server]\ngpus = 1\nports-per-nic = 2\nport-use = \"{port_use}\"\n[topology.rails]\nkind = \"per-server\"\n\
                 servers = 4\n[nic]\npcie.rate = \"96Gbps\"\n\
                 [nic.transport.uec]\n{JOB}"
            ))
        };
        let shared = "a NIC with several ports, which would share it";
        assert!(of("spread").contains(shared), "{}", of("spread"));
        assert!(!of("own").contains(shared), "{}", of("own"));
    }
}
