//! NICs that schemes bring for their queue pairs: their comment in a printed scenario.

use rnic::NicConfig;
use schemes::SchemeConfig;
use toml::{Table, Value};

/// A comment for the end of a printed scenario with the NIC that `scheme` brings; empty if it brings none.
pub(crate) fn about(scheme: &SchemeConfig, nic: &NicConfig) -> String {
    let Some(own) = scheme.own_nic(nic) else { return String::new() };
    let tables = Value::try_from(own).map(|own| Table::from_iter([("nic".to_owned(), own)]));
    let text = tables.ok().and_then(|tables| toml::to_string(&tables).ok()).unwrap_or_default();
    let lines = text.lines().map(|line| format!("# {line}").trim_end().to_owned() + "\n");
    format!("\n# Queue pairs under `{}` have a NIC of their own:\n", scheme.name())
        + &lines.collect::<String>()
}

#[cfg(test)]
mod tests {
    use crate::{Checked, Source};

    fn lay(keys: &str) -> Checked {
        let text = format!(
            "[topology.leaf-spine]\nleaves = 2\nspines = 2\nhosts-per-leaf = 2\n{keys}\n[[workload]]\nneighbour-ring = {{}}\n"
        );
        crate::check(&Source::new("s.toml", text), &[]).unwrap_or_else(|e| panic!("{e}"))
    }

    /// The lines of a printed scenario about the NIC that the scheme brings.
    fn own(checked: &Checked) -> Vec<String> {
        let shown = checked.annotated();
        let lines = shown.lines().skip_while(|line| !line.contains("a NIC of their own")).skip(1);
        let keys =
            lines.filter(|line| line.starts_with("# [") || line.contains(" cnp") || line.contains(" bitmap"));
        keys.map(|line| line.trim_start_matches("# ").to_owned()).collect()
    }

    #[test]
    fn a_scheme_with_its_own_nic_needs_no_other_settings() {
        let checked = lay("[scheme.mp-rdma]");
        assert_eq!(checked.warnings(), [""; 0]);
        assert!(checked.schemes.writes() && checked.nics.are_selective());
        let tables =
            ["[nic]", "cnp = \"flag\"", "[nic.transport.mp-rdma]", "bitmap = 64", "[nic.congestion.mp-rdma]"];
        let shown: Vec<String> = own(&checked);
        assert!(tables.iter().all(|line| shown.iter().any(|shown| shown == line)), "{shown:?}");
        // In a comparison the other schemes have the scenario's NIC.
        let ecmp = checked.with_scheme(None, "ecmp").unwrap();
        assert!(!ecmp.schemes.writes() && !ecmp.nics.are_selective());
        assert_eq!(own(&ecmp), [""; 0]);
        assert_eq!(own(&ecmp.with_scheme(None, "mp-rdma").unwrap()), shown);
        let tuned = lay("[scheme.mp-rdma]\n[nic.transport.mp-rdma]\nbitmap = 99");
        assert!(own(&tuned).contains(&"bitmap = 99".to_owned()));
    }

    #[test]
    fn a_traffic_class_may_have_another_nic_under_the_same_scheme() {
        let keys = "[nic.transport.uec]\n[class.legacy.nic.transport.nic-sr]\n[[workload]]\nname = \"old\"\nclass = \"legacy\"\n\
                    neighbour-ring = {}\n";
        let checked = lay(keys);
        let plan = &checked.plan;
        for qp in (0..plan.qps.len() as u32).map(model::QpId) {
            let old = plan.traffic_classes[usize::from(plan.class_of(qp))] == "legacy";
            assert_eq!(checked.nics.of(qp).sacks(), !old);
        }
        assert!(checked.nics.have_sacks() && checked.schemes.by_class().len() == 1);
        // Defaults that depend on other keys are filled in, and impossible values are refused.
        let legacy = |checked: &Checked| checked.scenario.class["legacy"].nic.clone().unwrap();
        let marks = lay("[class.legacy.nic.congestion.mp-rdma]");
        assert_eq!(legacy(&marks).cnp, rnic::notification::Cnp::Flag);
        let text =
            "[topology.leaf-spine]\n[class.legacy.nic]\nack-every = 0\n[[workload]]\nneighbour-ring = {}\n";
        let error = crate::check(&Source::new("s.toml", text), &[]).unwrap_err().to_string();
        assert!(error.contains("ack-every"), "{error}");
    }
}
