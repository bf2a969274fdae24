//! The limit that host software sets to a NIC: a class of the NIC is paced.

use crate::config::Scenario;
use finding::{Finding, code};
use model::{Fabric, HostId, Rate, Wire};
use rnic::NicClass;

/// The rate of the fastest host's link.
pub(super) fn fastest(fabric: &Fabric) -> Rate {
    (0..fabric.hosts() as u32).map(|host| fabric.uplink(HostId(host)).rate).max().unwrap_or(Rate(0))
}

/// The classes of NICs with the limit that the host software of a serving job sets: its traffic class is paced.
pub(crate) fn limited(scenario: &Scenario, fabric: &Fabric, wire: &Wire) -> Result<Vec<NicClass>, Finding> {
    let mut classes = scenario.nic.classes.clone();
    let found =
        scenario.workload.iter().enumerate().find_map(|(i, entry)| Some((i, entry, entry.serving.as_ref()?)));
    let Some((i, entry, serving)) = found else { return Ok(classes) };
    let Some(payload) = serving.transfer.rate() else { return Ok(classes) };
    let frame = u128::from(wire.max_frame() + wire.gap);
    let on_wire = u128::from(payload.bps()) * frame / u128::from(wire.payload.max(1));
    let rate = Rate(u64::try_from(on_wire).unwrap_or(u64::MAX));
    if rate >= fastest(fabric) {
        return Ok(classes);
    }
    let class = entry.class();
    let shares = |text: String| {
        let help = "give the serving job a class of its own, such as `class = \"kv\"` with `[class.kv]`";
        code::CONFLICT.at(&format!("workload.{i}.serving.transfer"), text).with_help(help)
    };
    let others: Vec<&str> = scenario
        .workload
        .iter()
        .enumerate()
        .filter(|(j, _)| *j != i)
        .map(|(_, other)| other.class())
        .collect();
    if others.contains(&class) {
        let text = format!(
            "host software limits the NIC to {payload} of payload, and other jobs share the traffic class `{class}`"
        );
        return Err(shares(text));
    }
    if classes.is_empty() {
        let mine = NicClass { rate: Some(rate), ..NicClass::default() };
        return Ok(match others.is_empty() {
            true => vec![mine],
            false => {
                let weight = Some(1);
                let other = NicClass { weight, ..NicClass::default() };
                vec![NicClass { of: vec![class.to_owned()], weight, ..mine }, other]
            }
        });
    }
    let place = classes.iter().position(|one| one.of.iter().any(|name| name == class));
    match place.map(|place| &mut classes[place]) {
        Some(NicClass { rate: Some(own), .. }) if *own <= rate => {}
        Some(one) if one.of.len() == 1 => one.rate = Some(rate),
        _ => {
            let text = format!(
                "host software limits the NIC to {payload} of payload, and no entry of `nic.classes` is for `{class}` alone"
            );
            return Err(shares(text));
        }
    }
    Ok(classes)
}
