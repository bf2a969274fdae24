//! Schemes that are more than load balancing: they bring the NIC of their queue pairs along.

use crate::error::Fault;
use rnic::notification::Cnp;
use rnic::{CongestionConfig, NicConfig, Reaction, TransportConfig};
use schemes::SchemeConfig;

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
    Some(NicConfig { ack_every: 1, cnp: Cnp::Flag, on_nack, on_timeout, transport, congestion, ..nic.clone() })
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
