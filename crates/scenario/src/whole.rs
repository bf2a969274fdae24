//! Schemes that are more than load balancing: they bring the NIC of their queue pairs along.

use crate::error::Fault;
use rnic::notification::Cnp;
use rnic::{CongestionConfig, NicConfig, Reaction, TransportConfig};
use schemes::SchemeConfig;
use toml::{Table, Value};

/// The NIC of queue pairs under `scheme`, if that is not the scenario's: MP-RDMA is a recovery mode and a congestion
/// control as well. What the scenario says of those two holds if they are MP-RDMA's, or else their defaults; ACKs come
/// for every packet and carry marks, as its paper has it.
pub(crate) fn nic_under(scheme: &SchemeConfig, nic: &NicConfig) -> Option<NicConfig> {
    let SchemeConfig::MpRdma(_) = scheme else { return None };
    let transport = match &nic.transport {
        own @ TransportConfig::MpRdma(_) => own.clone(),
        _ => TransportConfig::MpRdma(Default::default()),
    };
    let congestion = match &nic.congestion {
        own @ CongestionConfig::MpRdma(_) => own.clone(),
        _ => CongestionConfig::MpRdma(Default::default()),
    };
    // A window has no rate to lower.
    let react = |reaction| match reaction {
        Reaction::To(_) | Reaction::ToMinRate => Reaction::AsCnp,
        other => other,
    };
    let (on_nack, on_timeout) = (react(nic.on_nack), react(nic.on_timeout));
    Some(NicConfig {
        ack_every: 1,
        cnp: Cnp::Flag,
        on_nack,
        on_timeout,
        transport,
        congestion,
        ..nic.clone()
    })
}

/// A comment for a scenario's end: the NIC that `scheme` brings along. Nothing if it does not.
pub(crate) fn about(scheme: &SchemeConfig, nic: &NicConfig) -> String {
    let Some(own) = nic_under(scheme, nic) else { return String::new() };
    let tables = Value::try_from(own).map(|own| Table::from_iter([("nic".to_owned(), own)]));
    let text = tables.ok().and_then(|tables| toml::to_string(&tables).ok()).unwrap_or_default();
    let lines = text.lines().map(|line| format!("# {line}").trim_end().to_owned() + "\n");
    format!("\n# Queue pairs under `{}` have a NIC of their own:\n", scheme.name())
        + &lines.collect::<String>()
}

/// What cannot work with the NIC that a scheme brings along, and what is possible but probably not meant. `path` leads to
/// the scheme; `said` tells which parts of `nic` the user wrote.
pub(crate) fn check(
    path: &str,
    scheme: &SchemeConfig,
    nic: &NicConfig,
    said: &dyn Fn(&str) -> bool,
) -> Result<Option<String>, Fault> {
    let Some(own) = nic_under(scheme, nic) else { return Ok(None) };
    if let (SchemeConfig::MpRdma(config), TransportConfig::MpRdma(transport)) = (scheme, &own.transport)
        && config.delta >= transport.bitmap
    {
        let text = format!(
            "paths may be {} packets behind each other, and the receiver's bitmap holds {}: it would drop what is in time",
            config.delta, transport.bitmap
        );
        let help = "`delta` must be less than `bitmap` of `nic.transport.mp-rdma`";
        return Err(Fault::new(&format!("{path}.{}.delta", scheme.name()), text).with_help(help));
    }
    let replaced = [
        ("transport", nic.transport.name(), own.transport.name()),
        ("congestion", nic.congestion.name(), own.congestion.name()),
    ];
    let unused = replaced.into_iter().filter(|(part, was, is)| was != is && said(part));
    let unused: Vec<String> = unused.map(|(part, was, _)| format!("`nic.{part}.{was}`")).collect();
    Ok((!unused.is_empty()).then(|| {
        format!(
            "`{}` brings its own recovery mode and congestion control: its queue pairs do not use {}",
            scheme.name(),
            unused.join(" and ")
        )
    }))
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

    /// What a user sees of the NIC that the scheme brings along.
    fn own(checked: &Checked) -> Vec<String> {
        let shown = checked.annotated();
        let lines = shown.lines().skip_while(|line| !line.contains("a NIC of their own")).skip(1);
        let keys =
            lines.filter(|line| line.starts_with("# [") || line.contains(" cnp") || line.contains(" bitmap"));
        keys.map(|line| line.trim_start_matches("# ").to_owned()).collect()
    }

    #[test]
    fn a_scheme_that_brings_its_nic_needs_nothing_else() {
        let checked = lay("[scheme.mp-rdma]");
        assert_eq!(checked.warnings, [""; 0]);
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
    fn what_it_does_not_use_is_said_if_the_user_wrote_it() {
        let warning = |keys| lay(keys).warnings.join(";");
        let brings =
            "`mp-rdma` brings its own recovery mode and congestion control: its queue pairs do not use";
        assert_eq!(
            warning("[scheme.mp-rdma]\n[nic.transport.sr-sack]\n[nic.congestion.dcqcn]"),
            format!("{brings} `nic.transport.sr-sack` and `nic.congestion.dcqcn`")
        );
        assert_eq!(
            warning("[scheme.mp-rdma]\n[nic]\non-nack = { to = 0.5 }\n[nic.congestion.dcqcn]"),
            format!("{brings} `nic.congestion.dcqcn`")
        );
        assert_eq!(warning("[scheme.mp-rdma]\n[nic.transport.mp-rdma]\nbitmap = 99"), "");
    }
}
