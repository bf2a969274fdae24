//! What lies between NICs and their hosts: PCIe, and hosts that take data slowly.

use crate::Scenario;
use crate::nodes::node;
use finding::{Finding, code};
use model::plan::{ReceiveQueue, SwitchSettings};
use model::{Fabric, HostId, Rate, Wire};
use rnic::{Pcie, Receive};
use std::collections::BTreeSet;

/// Lowers the rates at which hosts send to those of their PCIe. Payload then leaves a host at this rate in full packets.
pub(crate) fn limit_uplinks(scenario: &Scenario, fabric: &mut Fabric, wire: &Wire) -> Result<(), Finding> {
    let Some(pcie) = &scenario.nic.pcie else { return Ok(()) };
    let frame = u128::from(wire.max_frame() + wire.gap);
    let on_wire = u128::from(pcie.rate().bps()) * frame / u128::from(wire.payload);
    let rate = Rate(u64::try_from(on_wire).unwrap_or(u64::MAX));
    let hosts = chosen(fabric, pcie.hosts.as_deref(), "nic.pcie.hosts")?;
    (0u32..)
        .zip(hosts)
        .filter(|(_, slow)| *slow)
        .for_each(|(host, _)| fabric.limit_uplink(HostId(host), rate));
    Ok(())
}

/// The queues by host; empty without any.
pub(crate) fn queues(
    scenario: &Scenario,
    fabric: &Fabric,
    switches: &[SwitchSettings],
    own_queues: bool,
) -> Result<Vec<Option<ReceiveQueue>>, Finding> {
    let (receive, pcie) = (&scenario.nic.receive, &scenario.nic.pcie);
    if receive.is_none() && pcie.is_none() {
        return Ok(Vec::new());
    }
    let may_pause = !own_queues && switches.iter().all(|switch| switch.flow_control.is_lossless());
    let queue = |receive: &Receive, rate| ReceiveQueue {
        rate,
        buffer: receive.buffer,
        pause: receive.pause.unwrap_or(may_pause),
    };
    let by_host = chosen(fabric, receive.as_ref().and_then(|r| r.hosts.as_deref()), "nic.receive.hosts")?;
    let by_pcie = chosen(fabric, pcie.as_ref().and_then(|p| p.hosts.as_deref()), "nic.pcie.hosts")?;
    let hosts = by_host.into_iter().zip(by_pcie).map(|(takes, pcie_limits)| {
        let receive = receive.as_ref().filter(|_| takes);
        let pcie = pcie.as_ref().filter(|_| pcie_limits).map(Pcie::rate);
        match (receive, pcie) {
            (Some(receive), limit) => {
                Some(queue(receive, limit.map_or(receive.rate, |limit| limit.min(receive.rate))))
            }
            (None, Some(limit)) => Some(queue(&Receive::behind(limit), limit)),
            (None, None) => None,
        }
    });
    Ok(hosts.collect())
}

/// By endpoint, whether its host is among those named; all are without names.
fn chosen(fabric: &Fabric, hosts: Option<&[String]>, key: &str) -> Result<Vec<bool>, Finding> {
    let Some(hosts) = hosts else { return Ok(vec![true; fabric.hosts()]) };
    let mut named = BTreeSet::new();
    for (i, name) in hosts.iter().enumerate() {
        let path = format!("{key}.{i}");
        let found = node(fabric, name, &path)?;
        if !fabric.is_host(found) {
            return Err(code::NO_NODE.at(&path, format!("expected a host; `{name}` is a switch")));
        }
        named.insert(found);
    }
    Ok((0..fabric.hosts() as u32).map(|host| named.contains(&fabric.node_of(HostId(host)))).collect())
}
