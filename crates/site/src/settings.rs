//! What a switch's configuration says in ropewalk's settings: a row per setting.

use crate::rules::seed;
use crate::said::{Place, Said, rate_text};
use crate::view::{View, bytes};
use scenario::switch::LEAST_FRAME;
use std::collections::BTreeMap;

mod queues;
mod schemes;

/// A value of a setting, in TOML, with the places that it comes from.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    pub(crate) toml: String,
    pub(crate) from: Vec<Place>,
    /// What else the comment says.
    pub(crate) note: String,
}

/// Makes the value of a setting.
type Make = fn(&View<'_>) -> Option<Made>;

/// The settings, by their key from the top.
pub(crate) const ROWS: &[(&str, Make)] = &[
    ("switch.model", model),
    ("switch.buffer", buffer),
    ("switch.cell", cell),
    ("switch.slices", slices),
    ("switch.guarantee", guarantee),
    ("switch.pfc", pfc_off),
    ("switch.pfc.alpha", alpha),
    ("switch.pfc.xon-offset", xon_offset),
    ("switch.pfc.headroom", headroom),
    ("switch.pfc.watchdog", watchdog),
    ("switch.drop-alpha", drop_alpha),
    ("switch.cut", cut),
    ("switch.ecn", ecn_off),
    ("switch.ecn.at-rate", ecn),
    ("switch.classes", queues::classes),
    ("switch.dscp-map", queues::dscp_map),
    ("scheme.ars", schemes::ars),
    ("scheme.ecmp.fields", schemes::hash_fields),
    ("scheme.ecmp.function", schemes::hash_function),
    ("scheme.ecmp.seed", schemes::hash_seed),
    ("scheme.ecmp.buckets", schemes::buckets),
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

/// What is known of the SKU, by the role that SONiC's tables give to a type of switch.
fn known<'v>(view: &'v View<'_>) -> Option<(scenario::sonic::Known, &'v Place)> {
    let sku = view.switch.hwsku.as_ref()?;
    let kind = view.switch.kind.as_ref().map_or("", |kind| kind.value.as_str());
    // Roles of files/build_templates/buffers_config.j2 of sonic-buildimage.
    let role = [("ToRRouter", "t0"), ("LeafRouter", "t1"), ("SpineRouter", "t2")];
    let role = role.iter().find(|(word, _)| kind.contains(word)).map_or("", |(_, role)| *role);
    Some((scenario::sonic::known(&sku.value, role)?, &sku.at))
}

fn of_sku(view: &View<'_>, toml: impl Fn(&scenario::sonic::Known) -> Option<String>) -> Option<Made> {
    let (known, at) = known(view)?;
    Some(Made { toml: toml(&known)?, from: vec![at.clone()], note: String::new() })
}

/// The model, if its headrooms serve the rates of all links, or the configuration has headrooms of its own.
fn model(view: &View<'_>) -> Option<Made> {
    let serves = |known: &scenario::sonic::Known| {
        known.rates.is_empty() || view.fabric.rates.iter().all(|rate| known.rates.contains(rate))
    };
    let has_own = headroom(view).is_some() || !is_lossless(view);
    of_sku(view, |known| (has_own || serves(known)).then(|| format!("{:?}", known.model)))
}

fn cell(view: &View<'_>) -> Option<Made> {
    of_sku(view, |known| known.cell.map(quoted))
}

fn slices(view: &View<'_>) -> Option<Made> {
    of_sku(view, |known| (known.slices > 1).then(|| known.slices.to_string()))
}

/// The pool that ports share, beside which headrooms lie.
fn buffer(view: &View<'_>) -> Option<Made> {
    let pools = &view.switch.pools;
    let known = known(view);
    let pool = known.as_ref().and_then(|(known, _)| pools.get(known.pool));
    let pool = pool.or_else(|| pools.get("ingress_lossless_pool")).or_else(|| {
        let mut ingress = pools.iter().filter(|(name, _)| name.contains("ingress"));
        ingress.next().map(|(_, fields)| fields)
    })?;
    let size = bytes(pool, "size").filter(|size| size.value > 0)?;
    Some(Made { toml: quoted(size.value), from: vec![size.at], note: String::new() })
}

/// Least size of a pool of headrooms. Our choice: one jumbo frame.
const LEAST_POOL: u64 = 9_216;

/// Headroom by port, and the pool that the headrooms of all ports share.
fn headroom(view: &View<'_>) -> Option<Made> {
    if !is_lossless(view) {
        return None;
    }
    let of_port = |(name, port): &(&str, &crate::sonic::Port)| {
        let xoff = bytes(&view.group_profile(port)?.1, "xoff").filter(|xoff| xoff.value > 0)?;
        Some((view.link_rate(name, port), port.length.as_ref().map(|said| said.value), xoff))
    };
    let all: Vec<(Option<u64>, Option<u64>, Said<u64>)> = view.ports.iter().filter_map(of_port).collect();
    let largest = all.iter().map(|(.., xoff)| xoff.value).max()?;
    let mut from: Vec<Place> = all.iter().map(|(.., xoff)| xoff.at.clone()).collect();
    // By rate and length of the cable; rates of other links in the fabric have the largest.
    let mut cables: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    for (rate, metres, xoff) in &all {
        let own = cables.entry((rate.unwrap_or(0), metres.unwrap_or(0))).or_default();
        *own = xoff.value.max(*own);
    }
    let is_one = all.iter().all(|(.., xoff)| xoff.value == largest);
    let is_whole = cables.keys().all(|(rate, metres)| *rate > 0 && *metres > 0);
    let longest = cables.keys().map(|(_, metres)| *metres).max().unwrap_or(0);
    let rates: Vec<u64> = cables.keys().map(|(rate, _)| *rate).collect();
    for rate in view.fabric.rates.iter().filter(|rate| !rates.contains(rate)) {
        cables.insert((*rate, longest), largest);
    }
    let xoff = match !is_one && is_whole {
        false => quoted(largest),
        true => {
            let entry = |((rate, metres), xoff): (&(u64, u64), &u64)| {
                format!("{{ rate = \"{}\", metres = {metres}, xoff = \"{xoff}B\" }}", rate_text(*rate))
            };
            format!("[{}]", cables.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
    };
    let pool = view.switch.pools.get("ingress_lossless_pool").and_then(|pool| bytes(pool, "xoff"));
    let pool = pool.filter(|pool| pool.value >= LEAST_POOL);
    let shared =
        pool.as_ref().map_or_else(String::new, |pool| format!(", shared-pool = \"{}B\"", pool.value));
    from.extend(pool.map(|pool| pool.at));
    let note = if is_one || is_whole { "" } else { "the largest xoff of all ports" };
    Some(Made { toml: format!("{{ xoff = {xoff}{shared} }}"), from, note: note.to_owned() })
}

/// What a priority group has for itself. NVIDIA's profiles count the headroom in it.
fn guarantee(view: &View<'_>) -> Option<Made> {
    let all = view.ports.iter().filter_map(|(_, port)| {
        let (_, fields) = view.group_profile(port)?;
        let size = bytes(&fields, "size")?;
        let xoff = bytes(&fields, "xoff").map_or(0, |xoff| xoff.value);
        Some((size.value.checked_sub(xoff).unwrap_or(size.value), vec![size.at]))
    });
    let (bytes, from, others) = most(all.collect()).filter(|_| is_lossless(view))?;
    Some(Made { toml: quoted(bytes), from, note: differ(others).trim_start_matches("; ").to_owned() })
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

fn xon_offset(view: &View<'_>) -> Option<Made> {
    let (bytes, from, others) = of_group(view, "xon_offset").filter(|_| is_lossless(view))?;
    Some(Made { toml: quoted(bytes), from, note: differ(others).trim_start_matches("; ").to_owned() })
}

/// True for a switch on which SONiC finds storms by its script for Spectrum. Vendor: the folders of sonic-net/sonic-buildimage,
/// device/mellanox.
fn is_spectrum(sku: &str) -> bool {
    ["ACS-MSN", "ACS-SN", "Mellanox-", "NVIDIA-"].iter().any(|start| sku.starts_with(start))
}

/// The watchdog of most ports. One without an action drops (sonic-net/sonic-utilities, pfcwd/main.py).
fn watchdog(view: &View<'_>) -> Option<Made> {
    let all = view.ports.iter().filter_map(|(_, port)| {
        let detection = port.watchdog.as_ref().filter(|ms| ms.value > 0)?;
        let restoration = port.restoration.as_ref().filter(|ms| ms.value > 0);
        let action = port.on_storm.as_ref();
        let places = [Some(&detection.at), restoration.map(|it| &it.at), action.map(|it| &it.at)];
        let value = (detection.value, restoration.map(|it| it.value), action.map(|it| it.value.clone()));
        Some((value, places.into_iter().flatten().cloned().collect()))
    });
    let ((detection, restoration, action), mut from, others) =
        most(all.collect()).filter(|_| is_lossless(view))?;
    let action = match action.as_deref() {
        None | Some("drop") => "drop",
        Some("forward") => "forward",
        Some(_) => return None,
    };
    let mut keys = vec![format!("detection-time = \"{detection}ms\"")];
    keys.extend(restoration.map(|ms| format!("restoration-time = \"{ms}ms\"")));
    let fits =
        |poll: &&Said<u64>| poll.value > 0 && poll.value <= detection.min(restoration.unwrap_or(detection));
    if let Some(poll) = view.switch.poll.as_ref().filter(fits) {
        keys.push(format!("poll-interval = \"{}ms\"", poll.value));
        from.push(poll.at.clone());
    }
    if let Some(sku) = view.switch.hwsku.as_ref().filter(|sku| is_spectrum(&sku.value)) {
        keys.push("detection = \"nvidia\"".to_owned());
        from.push(sku.at.clone());
    }
    keys.push(format!("action = \"{action}\""));
    let note = differ(others).trim_start_matches("; ").to_owned();
    Some(Made { toml: format!("{{ {} }}", keys.join(", ")), from, note })
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
