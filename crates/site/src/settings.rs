//! What a switch's configuration says in ropewalk's settings: a row per setting.
//!
//! A setting that the import does not write yet is [`State::ByHand`]: its fields are listed as ignored, with the setting to set.

use crate::said::{Place, Said, rate_text};
use crate::view::{View, bytes};
use rnic::config::CNP_DSCP;
use scenario::switch::LEAST_FRAME;
use std::collections::BTreeMap;

/// Whether the import writes a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Written,
    ByHand,
}
use State::{ByHand, Written};

/// A value of a setting, in TOML, with the places that it comes from.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    pub(crate) toml: String,
    pub(crate) from: Vec<Place>,
    /// What else the comment says.
    pub(crate) note: String,
}

/// A row of [`ROWS`].
pub(crate) struct Row {
    /// Key below `[switch]`, or from the top if it has another table.
    pub(crate) key: &'static str,
    pub(crate) state: State,
    pub(crate) make: fn(&View<'_>) -> Option<Made>,
}

const fn row(key: &'static str, state: State, make: fn(&View<'_>) -> Option<Made>) -> Row {
    Row { key, state, make }
}

/// The settings.
pub(crate) const ROWS: &[Row] = &[
    row("switch.model", ByHand, model),
    row("switch.buffer", Written, buffer),
    row("switch.guarantee", ByHand, guarantee),
    row("switch.pfc", Written, pfc_off),
    row("switch.pfc.alpha", Written, alpha),
    row("switch.pfc.resume-offset", Written, resume_offset),
    row("switch.pfc.headroom", Written, headroom),
    row("switch.pfc.headroom", ByHand, shared_headroom),
    row("switch.drop-alpha", Written, drop_alpha),
    row("switch.cut", Written, cut),
    row("switch.ecn", Written, ecn_off),
    row("switch.ecn.at-rate", Written, ecn),
    row("switch.classes", Written, classes),
    row("switch.dscp-map", ByHand, dscp_map),
    row("scheme.ecmp.fields", ByHand, hash_fields),
    row("scheme.ecmp.function", ByHand, hash_function),
    row("scheme.ecmp.seed", ByHand, hash_seed),
    row("scheme.ecmp.buckets", ByHand, buckets),
    row("scheme.ars", ByHand, ars),
];

/// The value that most have, its places, and how many have another one.
fn most<T: Ord + Clone>(all: Vec<(T, Vec<Place>)>) -> Option<(T, Vec<Place>, usize)> {
    let total = all.len();
    let mut counts: BTreeMap<T, (usize, Vec<Place>)> = BTreeMap::new();
    for (value, places) in all {
        let entry = counts.entry(value).or_default();
        entry.0 += 1;
        entry.1.extend(places);
    }
    let (value, (count, places)) = counts.into_iter().max_by_key(|(_, (count, _))| *count)?;
    Some((value, places, total - count))
}

fn quoted(bytes: u64) -> String {
    format!("\"{bytes}B\"")
}

fn differ(others: usize) -> String {
    if others == 0 { String::new() } else { format!("; {others} ports have another value") }
}

/// A field of the profile of data's priority group, as most ports have it.
fn of_group(view: &View<'_>, field: &str) -> Option<(u64, Vec<Place>, usize)> {
    let all = view.ports.iter().filter_map(|(_, port)| {
        let (name, fields) = view.group_profile(port)?;
        let value = bytes(&fields, field)?;
        Some((
            value.value,
            [Some(value.at), name.map(|name| name.at.clone())].into_iter().flatten().collect(),
        ))
    });
    most(all.collect())
}

fn is_lossless(view: &View<'_>) -> bool {
    view.class.as_ref().is_some_and(|class| class.lossless)
}

fn model(view: &View<'_>) -> Option<Made> {
    let sku = view.switch.hwsku.as_ref()?;
    Some(Made { toml: format!("\"sonic:{}\"", sku.value), from: vec![sku.at.clone()], note: String::new() })
}

/// The pool that ports share. ropewalk takes headrooms from `buffer`, and SONiC's pool does not hold them.
fn buffer(view: &View<'_>) -> Option<Made> {
    let pools = &view.switch.pools;
    let pool = pools.get("ingress_lossless_pool").or_else(|| {
        let mut ingress = pools.iter().filter(|(name, _)| name.contains("ingress"));
        ingress.next().map(|(_, fields)| fields)
    })?;
    let size = bytes(pool, "size").filter(|size| size.value > 0)?;
    let headroom = most_headroom(view).map(|(bytes, _)| bytes.saturating_mul(view.ports.len() as u64));
    let note = match headroom {
        Some(all) if all > 0 => {
            format!("{} and {all} B of headroom at {} ports", size.value, view.ports.len())
        }
        _ => String::new(),
    };
    let toml = quoted(size.value.saturating_add(headroom.unwrap_or(0)));
    Some(Made { toml, from: vec![size.at], note })
}

/// The largest headroom of data at a port, and the places of all.
fn most_headroom(view: &View<'_>) -> Option<(u64, Vec<Place>)> {
    if !is_lossless(view) {
        return None;
    }
    let all = view.ports.iter().filter_map(|(_, port)| bytes(&view.group_profile(port)?.1, "xoff"));
    let all: Vec<Said<u64>> = all.filter(|xoff| xoff.value > 0).collect();
    let largest = all.iter().map(|xoff| xoff.value).max()?;
    Some((largest, all.into_iter().map(|xoff| xoff.at).collect()))
}

fn headroom(view: &View<'_>) -> Option<Made> {
    let (bytes, from) = most_headroom(view)?;
    Some(Made { toml: quoted(bytes), from, note: "the largest xoff of all ports".to_owned() })
}

fn shared_headroom(view: &View<'_>) -> Option<Made> {
    let (xoff, _) = most_headroom(view)?;
    let pool = bytes(view.switch.pools.get("ingress_lossless_pool")?, "xoff")?;
    let toml = format!("{{ xoff = \"{xoff}B\", shared-pool = \"{}B\" }}", pool.value);
    Some(Made { toml, from: vec![pool.at], note: String::new() })
}

fn guarantee(view: &View<'_>) -> Option<Made> {
    let (bytes, from, others) = of_group(view, "size").filter(|_| is_lossless(view))?;
    Some(Made { toml: quoted(bytes), from, note: differ(others) })
}

fn pfc_off(view: &View<'_>) -> Option<Made> {
    let class = view.class.as_ref().filter(|class| !class.lossless)?;
    let note = format!("data is in queue {}, which is lossy", class.queue);
    Some(Made { toml: "\"off\"".to_owned(), from: class.from.clone(), note })
}

/// `2^exponent` as a share.
fn power(exponent: i64) -> Option<String> {
    match exponent {
        0..=10 => Some(format!("\"{}\"", 1u64 << exponent)),
        -10..=-1 => Some(format!("\"1/{}\"", 1u64 << -exponent)),
        _ => None,
    }
}

fn exponent(text: &str) -> Option<i64> {
    text.parse().ok().filter(|it| (-10..=10).contains(it))
}

fn alpha(view: &View<'_>) -> Option<Made> {
    let all = view.ports.iter().filter_map(|(_, port)| {
        let (_, fields) = view.group_profile(port)?;
        let th = fields.get("dynamic_th").or_else(|| fields.get("threshold"))?;
        Some((exponent(&th.value)?, vec![th.at.clone()]))
    });
    let (exponent, from, others) = most(all.collect()).filter(|_| is_lossless(view))?;
    Some(Made { toml: power(exponent)?, from, note: format!("2^{exponent}{}", differ(others)) })
}

fn resume_offset(view: &View<'_>) -> Option<Made> {
    let (bytes, from, others) = of_group(view, "xon_offset").filter(|_| is_lossless(view))?;
    Some(Made { toml: quoted(bytes), from, note: differ(others).trim_start_matches("; ").to_owned() })
}

fn drop_alpha(view: &View<'_>) -> Option<Made> {
    let class = view.class.as_ref().filter(|class| !class.lossless)?;
    let all = view.ports.iter().filter_map(|(_, port)| {
        let profile = view.switch.profiles.get(&port.buffer_queues.get(&class.queue)?.value)?;
        let th = profile.get("dynamic_th")?;
        Some((exponent(&th.value)?, vec![th.at.clone()]))
    });
    let (exponent, from, others) = most(all.collect())?;
    Some(Made { toml: power(exponent)?, from, note: format!("2^{exponent}{}", differ(others)) })
}

/// Cutting, if the profile of data's queue asks for it.
fn cut(view: &View<'_>) -> Option<Made> {
    let class = view.class.as_ref().filter(|class| !class.lossless)?;
    let trims = view.ports.iter().find_map(|(_, port)| {
        let profile = view.switch.profiles.get(&port.buffer_queues.get(&class.queue)?.value)?;
        profile.get("packet_discard_action").filter(|action| action.value == "trim")
    })?;
    let size = bytes(&view.switch.trimming, "size").filter(|size| size.value >= u64::from(LEAST_FRAME))?;
    let toml = format!("{{ frame = \"{}B\" }}", size.value);
    Some(Made { toml, from: vec![size.at, trims.at.clone()], note: String::new() })
}

/// Least and most bytes, and the chance in per cent.
type Thresholds = (u64, u64, u64);

/// Rate of a port, thresholds and probability of its queue of data, and their places.
type Marking = (u64, Thresholds, Vec<Place>);

fn markings(view: &View<'_>) -> Vec<Marking> {
    let Some(class) = &view.class else { return Vec::new() };
    let marks = view.ports.iter().filter_map(|(port_name, port)| {
        let (name, fields) = view.wred(port, class.queue)?.ok()?;
        let least = bytes(fields, "green_min_threshold")?;
        let most = bytes(fields, "green_max_threshold").filter(|most| most.value >= least.value)?;
        let chance = bytes(fields, "green_drop_probability").filter(|chance| chance.value <= 100)?;
        let speed = view.rate(port_name, port).filter(|rate| *rate > 0)?;
        let ecn = fields.get("ecn")?.at.clone();
        let thresholds = (least.value, most.value, chance.value);
        Some((speed, thresholds, vec![name.at.clone(), least.at, most.at, chance.at, ecn]))
    });
    marks.collect()
}

fn ecn(view: &View<'_>) -> Option<Made> {
    let mut rates: BTreeMap<u64, Vec<(Thresholds, Vec<Place>)>> = BTreeMap::new();
    for (speed, thresholds, places) in markings(view) {
        rates.entry(speed).or_default().push((thresholds, places));
    }
    let (mut entries, mut from, mut differing) = (Vec::new(), Vec::new(), 0);
    for (speed, all) in rates {
        let ((kmin, kmax, percent), places, others) = most(all)?;
        let pmax = percent as f64 / 100.0;
        entries.push(format!(
            "{{ rate = \"{}\", kmin = \"{kmin}B\", kmax = \"{kmax}B\", pmax = {pmax:?} }}",
            rate_text(speed)
        ));
        from.extend(places);
        differing += others;
    }
    let note = differ(differing).trim_start_matches("; ").to_owned();
    (!entries.is_empty()).then(|| Made { toml: format!("[{}]", entries.join(", ")), from, note })
}

/// No marks, if no port marks data.
fn ecn_off(view: &View<'_>) -> Option<Made> {
    let class = view.class.as_ref()?;
    let all: Vec<_> = view.ports.iter().filter_map(|(_, port)| view.wred(port, class.queue)).collect();
    let off: Vec<Place> = all.iter().filter_map(|it| it.as_ref().err().cloned()).collect();
    let note = format!("queue {} marks nothing", class.queue);
    (!off.is_empty() && off.len() == all.len()).then(|| Made { toml: "\"off\"".to_owned(), from: off, note })
}

/// The queues of CNPs and of data. ACKs have the class of data on RoCE NICs.
fn classes(view: &View<'_>) -> Option<Made> {
    let data = view.class.as_ref()?;
    let (_, cnp) = view.class_of(CNP_DSCP).filter(|(_, cnp)| cnp.queue != data.queue)?;
    let scheduler = |queue: u8| {
        let named = view.ports.iter().find_map(|(_, port)| port.queues.get(&queue)?.scheduler.as_ref())?;
        let fields = view.switch.schedulers.get(&named.value)?;
        Some((fields.get("type")?, bytes(fields, "weight"), named.at.clone()))
    };
    let (cnp_type, cnp_weight, at) = scheduler(cnp.queue)?;
    let mut from = vec![cnp_type.at.clone(), at];
    let note = format!("CNPs with DSCP {CNP_DSCP} are in queue {}", cnp.queue);
    if cnp_type.value == "STRICT" {
        return Some(Made { toml: "\"cnp-first\"".to_owned(), from, note });
    }
    let (_, data_weight, at) = scheduler(data.queue)?;
    let (cnp_weight, data_weight) = (cnp_weight?, data_weight?);
    from.extend([at, cnp_weight.at, data_weight.at]);
    let possible = |weight: u64| (1..=u64::from(model::plan::Service::MOST_WEIGHT)).contains(&weight);
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

fn dscp_map(view: &View<'_>) -> Option<Made> {
    let places = |maps: &BTreeMap<String, BTreeMap<u8, Said<u8>>>| {
        maps.values().flat_map(|map| map.values().map(|said| said.at.clone())).collect::<Vec<_>>()
    };
    let switch = view.switch;
    let from = [places(&switch.dscp_to_tc), places(&switch.tc_to_queue), places(&switch.tc_to_pg)].concat();
    (!from.is_empty()).then(|| Made { toml: "{ .. }".to_owned(), from, note: String::new() })
}

fn hash_fields(view: &View<'_>) -> Option<Made> {
    let said = view.switch.hash.get("ecmp_hash")?;
    Some(Made { toml: format!("{:?}", said.value), from: vec![said.at.clone()], note: String::new() })
}

fn hash_function(view: &View<'_>) -> Option<Made> {
    let said = view.switch.hash.get("ecmp_hash_algorithm")?;
    Some(Made { toml: format!("{:?}", said.value), from: vec![said.at.clone()], note: String::new() })
}

fn hash_seed(view: &View<'_>) -> Option<Made> {
    let said = view.switch.kind.as_ref()?;
    Some(Made { toml: "\"by-role\"".to_owned(), from: vec![said.at.clone()], note: String::new() })
}

fn buckets(view: &View<'_>) -> Option<Made> {
    let said = view.switch.buckets.as_ref()?;
    Some(Made { toml: said.value.to_string(), from: vec![said.at.clone()], note: String::new() })
}

fn ars(view: &View<'_>) -> Option<Made> {
    let from = view.switch.ars.clone();
    (!from.is_empty()).then(|| Made { toml: "{ .. }".to_owned(), from, note: String::new() })
}
