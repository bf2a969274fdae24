//! Queue pairs fail over between the ports of a NIC that are devices of their own, and all of them do or none.

use super::case::Case;
use crate::server::{BondFailover, PortUse};
use finding::{Finding, code};

pub(super) fn judge(case: &Case<'_>) -> Vec<Finding> {
    if !case.nics.iter().any(|waits| waits.nic.fails_over()) {
        return Vec::new();
    }
    let server = case.scenario.server.and_then(|server| server.server().ok());
    let text = match server.filter(|server| server.ports_per_nic > 1) {
        None => "needs NICs with several ports (`server.ports-per-nic`)",
        Some(server) if server.port_use == PortUse::Spread => {
            "needs queue pairs with ports of their own, not `server.port-use`"
        }
        Some(server) if server.bond_failover == BondFailover::Resend => {
            "needs `server.bond-failover = \"wait\"`: a bond is one device, which moves queue pairs by itself"
        }
        Some(_) => {
            return case.of_nics(|waits| {
                let nic = &waits.nic;
                let text = match nic.fails_over() {
                    true if nic.transport.facts().sacks => {
                        let name = nic.transport.name();
                        format!(
                            "cannot restart the senders of `transport.{name}`, which report single packets"
                        )
                    }
                    false if nic.retry_limit().is_some() => {
                        "must be \"nccl-failover\" in all traffic classes with `retries`, or in none"
                            .to_owned()
                    }
                    _ => return None,
                };
                Some(code::UNSUITED.at("on-retry-exceeded", text))
            });
        }
    };
    case.of_nics(|waits| waits.nic.fails_over().then(|| code::UNSUITED.at("on-retry-exceeded", text)))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{JOB, told, told_of};

    const RETRIES: &str = "retries = 7\non-retry-exceeded = \"nccl-failover\"\n";

    #[test]
    fn a_failover_needs_several_devices_and_a_transport_of_verbs() {
        let alone = told_of(&format!("[nic]\n{RETRIES}"));
        assert!(alone.contains("needs NICs with several ports"), "{alone}");
        let without = told_of("[nic]\non-retry-exceeded = \"nccl-failover\"");
        assert!(without.contains("follows the last of `retries`"), "{without}");
        let of = |server: &str, nic: &str| {
            told(&format!(
                "[server]\ngpus = 1\nports-per-nic = 2\n{server}\n[topology.rails]\nkind = \"per-server\"\nservers = 4\n\
                 [nic]\n{RETRIES}{nic}\n{JOB}"
            ))
        };
        let bond = of("", "");
        assert!(bond.starts_with("s.toml:10:21: needs `server.bond-failover = \"wait\"`"), "{bond}");
        let devices = "bond-failover = \"wait\"";
        let spread =
            of(&format!("{devices}\nport-use = \"spread\""), "[nic.transport.uec]\n[nic.congestion.none]");
        assert!(spread.contains("needs queue pairs with ports of their own"), "{spread}");
        assert_eq!(of(devices, ""), "");
        let uec = of(devices, "[nic.transport.uec]\n[nic.congestion.none]");
        assert!(uec.contains("cannot restart the senders of `transport.uec`"), "{uec}");
        let class = "[class.background.nic]\nretries = 7\non-retry-exceeded = \"job-ends\"\n[[workload]]\nclass = \"background\"\nneighbour-ring = {}";
        let mixed = of(devices, class);
        assert!(mixed.contains("in all traffic classes with `retries`, or in none"), "{mixed}");
    }
}
