//! The queues of a port: by DSCP if the configuration maps DSCPs, else by kinds of packets.

use super::{Made, markings};
use crate::said::{Place, Said};
use crate::view::{View, bytes};
use model::plan::Service;
use rnic::config::CNP_DSCP;
use std::collections::BTreeMap;

/// The scheduler of a queue.
struct Scheduler<'v> {
    kind: &'v Said<String>,
    weight: Option<Said<u64>>,
    /// Where the queue names it.
    at: Place,
}

fn scheduler<'v>(view: &'v View<'_>, queue: u8) -> Option<Scheduler<'v>> {
    let named = view.ports.iter().find_map(|(_, port)| port.queues.get(&queue)?.scheduler.as_ref())?;
    let fields = view.switch.schedulers.get(&named.value)?;
    Some(Scheduler { kind: fields.get("type")?, weight: bytes(fields, "weight"), at: named.at.clone() })
}

/// The queues of CNPs and of data. ACKs have the class of data on RoCE NICs.
pub(super) fn classes(view: &View<'_>) -> Option<Made> {
    let data = view.class.as_ref()?;
    let (_, cnp) = view.class_of(CNP_DSCP).filter(|(_, cnp)| cnp.queue != data.queue)?;
    let of_cnps = scheduler(view, cnp.queue)?;
    let mut from = vec![of_cnps.kind.at.clone(), of_cnps.at];
    let note = format!("CNPs with DSCP {CNP_DSCP} are in queue {}", cnp.queue);
    if of_cnps.kind.value == "STRICT" {
        return Some(Made { toml: "\"cnp-first\"".to_owned(), from, note });
    }
    let of_data = scheduler(view, data.queue)?;
    let (cnp_weight, data_weight) = (of_cnps.weight?, of_data.weight?);
    from.extend([of_data.at, cnp_weight.at, data_weight.at]);
    let possible = |weight: u64| (1..=u64::from(Service::MOST_WEIGHT)).contains(&weight);
    (possible(cnp_weight.value) && possible(data_weight.value)).then(|| Made {
        toml: format!(
            "[{{ kinds = [\"cnp\"], weight = {} }}, {{ kinds = [\"data\", \"ack\", \"nack\", \"signal\", \"trimmed\", \
             \"control\", \"probe\"], weight = {} }}]",
            cnp_weight.value, data_weight.value
        ),
        from,
        note,
    })
}

/// Queues by DSCP, as the switch classifies packets. Of queues without a weight, the higher one leaves first; a queue without a scheduler
/// has SAI's default, round robin with weight 1.
pub(super) fn dscp_map(view: &View<'_>) -> Option<Made> {
    let data = view.class.as_ref()?;
    view.dscp_of_data()?;
    let mut queues: BTreeMap<u8, (Vec<u8>, bool)> = BTreeMap::new();
    let mut from = Vec::new();
    for dscp in 0..64 {
        let (_, class) = view.class_of(dscp)?;
        let queue = queues.entry(class.queue).or_default();
        queue.0.push(dscp);
        queue.1 |= class.lossless;
        from.extend(class.from.into_iter().filter(|place| !from.contains(place)).collect::<Vec<_>>());
    }
    let mut note = String::new();
    if !data.lossless && !markings(view).is_empty() {
        // `lossless` stands for pauses and marks, and `pfc` is off.
        queues.entry(data.queue).or_default().1 = true;
        note = format!("queue {} marks and pauses nobody: pfc is off", data.queue);
    }
    let weight = |queue: u8| match scheduler(view, queue) {
        Some(Scheduler { kind, .. }) if kind.value == "STRICT" => (None, vec![kind.at.clone()]),
        Some(Scheduler { kind, weight, .. }) => {
            let places = [Some(kind.at.clone()), weight.as_ref().map(|weight| weight.at.clone())];
            let weight = weight.map_or(1, |weight| weight.value.clamp(1, u64::from(Service::MOST_WEIGHT)));
            (Some(weight), places.into_iter().flatten().collect())
        }
        None => (Some(1), Vec::new()),
    };
    let usual = queues.iter().max_by_key(|(queue, (dscps, _))| (dscps.len(), u8::MAX - **queue));
    let usual = usual.map(|(queue, _)| *queue)?;
    let mut lines: Vec<((bool, u8), String)> = Vec::new();
    for (queue, (dscps, lossless)) in &queues {
        let (weight, places) = weight(*queue);
        from.extend(places);
        let mut keys = Vec::new();
        if *queue != usual {
            keys.push(format!("dscp = {dscps:?}"));
        }
        if *lossless {
            keys.push("lossless = true".to_owned());
        }
        keys.extend(weight.map(|weight| format!("weight = {weight}")));
        let keys = keys.join(", ");
        let table = if keys.is_empty() { "{}".to_owned() } else { format!("{{ {keys} }}") };
        lines.push(((weight.is_some(), u8::MAX - *queue), table));
    }
    lines.sort();
    let toml = format!("[{}]", lines.into_iter().map(|(_, line)| line).collect::<Vec<_>>().join(", "));
    Some(Made { toml, from, note })
}
