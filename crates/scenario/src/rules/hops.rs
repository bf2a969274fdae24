//! The hops of routes and the rates of links fit into the telemetry of packets.

use super::case::Case;
use crate::ideal::Ideals;
use crate::telemetry::most_traced;
use finding::{Finding, code};
use model::telemetry::{MOST_HOPS, MOST_RATES};
use rnic::Evidence;

pub(super) fn judge(case: &Case<'_>) -> Vec<Finding> {
    let plan = case.plan;
    let area = usize::from(plan.wire.hops);
    let Some(nic) = most_traced(case.scenario) else { return Vec::new() };
    let rates = plan.rates().len();
    if rates > MOST_RATES && (area > 0 || plan.digest.is_some()) {
        let text = format!("telemetry distinguishes {MOST_RATES} rates of links, and the fabric has {rates}");
        return vec![code::UNSUITED.at("nic.congestion", text)];
    }
    let Evidence::Telemetry { setting, .. } = nic.congestion.facts().evidence else { return Vec::new() };
    let key = format!("nic.congestion.{}.{setting}", nic.congestion.name());
    let mut ideals = Ideals::new(plan);
    for qp in &plan.qps {
        let hops = ideals.switches(qp.from, qp.to).unwrap_or_default();
        if hops > area.min(MOST_HOPS) {
            let name = |host: model::HostId| plan.fabric.host_name(host);
            let (room, help) = match hops > MOST_HOPS {
                true => {
                    ("a packet carries".to_owned(), format!("no run can have more than {MOST_HOPS} hops"))
                }
                false => (format!("`{setting}` leaves space for"), format!("set `{key} = {hops}`")),
            };
            let text = format!(
                "packets from {} to {} cross {hops} switches, but {room} the telemetry of {}",
                name(qp.from),
                name(qp.to),
                area.min(MOST_HOPS)
            );
            return vec![code::UNSUITED.at(&key, text).with_help(help)];
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{LEAVES, lay};

    /// Two hosts with a chain of eight switches between them.
    fn chain(keys: &str) -> String {
        let links: String = (1..8).map(|i| format!("[\"s{}\", \"s{i}\"], ", i - 1)).collect();
        let names: String = (0..8).map(|i| format!("\"s{i}\", ")).collect();
        format!(
            "[topology.links]\nhosts = [\"a\", \"b\"]\nswitches = [{names}]\n\
             links = [[\"a\", \"s0\"], {links}[\"s7\", \"b\"]]\n[nic.congestion.hpcc]\n{keys}\n"
        )
    }

    #[test]
    fn a_route_with_more_hops_than_telemetry_has_space_for_is_refused() {
        let error = lay(&format!("{LEAVES}[nic.congestion.hpcc]\nint-hops = 2")).unwrap_err();
        assert_eq!(
            error.located(),
            "s.toml:7:12: packets from host2 to host0 cross 3 switches, but `int-hops` leaves space for the telemetry of 2"
        );
        let error = lay(&chain("int-hops = 10")).unwrap_err();
        assert!(
            error.to_string().contains("cross 8 switches, but a packet carries the telemetry of 7"),
            "{error}"
        );
        let error = lay(&format!("{LEAVES}[nic.congestion.hpcc]\nint-hops = 16")).unwrap_err();
        assert!(error.to_string().contains("`int-hops` must be between 1 and 15"), "{error}");
    }
}
