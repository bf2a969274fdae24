//! Queue pairs spread over ports if their transport reports every packet, and if each port reaches its equal.

use super::case::Case;
use finding::{Finding, code};
use model::PortChoice;
use model::plan::Qp;
use rnic::TransportConfig;

pub(super) fn judge(case: &Case<'_>) -> Vec<Finding> {
    let fabric = &case.plan.fabric;
    let Some(sharing) = case.plan.sharing.filter(|sharing| sharing.choice == PortChoice::Spread) else {
        return Vec::new();
    };
    let error = |text: String| vec![code::NEEDS.at("server.port-use", text)];
    if let Some(waits) = case.nics.iter().find(|waits| !waits.nic.transport.facts().sacks) {
        let able = TransportConfig::all().filter(|transport| transport.facts().sacks);
        let names: Vec<String> = able.map(|transport| format!("`{}`", transport.name())).collect();
        return error(format!(
            "to spread, expected a transport that reports every packet ({}), found `{}`",
            names.join(", "),
            waits.nic.transport.name()
        ));
    }
    let apart = |qp: &&Qp| sharing.open(fabric, None, qp.from, qp.to).count_ones() < sharing.ports.into();
    let Some(qp) = case.plan.qps.iter().find(apart) else { return Vec::new() };
    let [from, to] = [qp.from, qp.to].map(|host| fabric.host_name(sharing.home(host)));
    error(format!(
        "to spread, expected a path between all ports of equal number, and the NICs of {from} and {to} have fewer"
    ))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{JOB, told};

    #[test]
    fn spreading_needs_a_transport_that_reports_every_packet() {
        let of = |transport: &str| {
            told(&format!(
                "[server]\ngpus = 1\nports-per-nic = 2\nport-use = \"spread\"\n[topology.rails]\nkind = \"per-server\"\n\
                 servers = 4\n[nic.transport.{transport}]\n{JOB}"
            ))
        };
        let text = of("nic-sr");
        assert!(
            text.starts_with("s.toml:4:12: to spread, expected a transport that reports every packet ("),
            "{text}"
        );
        assert!(text.ends_with("), found `nic-sr`"), "{text}");
        assert!(!of("uec").contains("a transport that"), "{}", of("uec"));
    }
}
