//! Load balancing: ARS, or the hash of ECMP.

use super::{Made, most, seed};
use crate::said::{Place, Said, rate_text};
use crate::view::{Fields, View, bytes};

/// Words of `ecmp_hash_algorithm` and our functions. Vendor: SAI_HASH_ALGORITHM of SAI, as sonic-types.yang has it; which CRC it is, is
/// unpublished.
const FUNCTIONS: &[(&str, &str)] =
    &[("CRC", "crc32"), ("CRC_32LO", "crc32"), ("CRC_32HI", "crc32"), ("CRC_CCITT", "crc16"), ("XOR", "xor")];

/// Ways to give data its port, and ours. Vendor: assign_mode of SONiC's Local_ARS_HLD.md, and SAI's two others.
const MODES: &[(&str, &str)] = &[
    ("per_flowlet_quality", "flowlet-quality"),
    ("per_packet_quality", "packet-quality"),
    ("per_flowlet_random", "flowlet-random"),
    ("per_packet_random", "packet-random"),
];

/// Longest table and most entries of `[scheme.ars]`.
const MOST_ENTRIES: u64 = 1 << 20;

/// The profile and the object that hold for next hops, or nothing if ARS has no port.
fn in_force<'v>(view: &'v View<'_>) -> Option<(Option<&'v Fields>, Option<&'v Fields>)> {
    let switch = view.switch;
    let profile = switch.ars_profiles.values().next();
    let mode = profile.and_then(|profile| profile.get("ars_nhg_path_selector_mode"));
    let is_global = mode.is_some_and(|mode| mode.value == "global");
    if !is_global && switch.ars_interfaces.is_empty() {
        return None;
    }
    let of_port = || switch.ars_interfaces.values().find_map(|fields| fields.get("ars_obj_name"));
    let named = of_port().or_else(|| profile?.get("default_ars_object"));
    let object = named.and_then(|name| switch.ars_objects.get(&name.value));
    let object =
        object.or_else(|| switch.ars_objects.values().next().filter(|_| switch.ars_objects.len() == 1));
    (profile.is_some() || object.is_some()).then_some((profile, object))
}

pub(super) fn ars(view: &View<'_>) -> Option<Made> {
    let (profile, object) = in_force(view)?;
    let number = |fields: Option<&Fields>, field: &str| bytes(fields?, field);
    let (mut keys, mut from) = (vec!["profile = \"sonic\"".to_owned()], Vec::new());
    let mut add = |said: Option<(String, Vec<Place>)>| {
        if let Some((key, places)) = said {
            keys.push(key);
            from.extend(places);
        }
    };
    let plain = |said: Option<Said<u64>>, range: std::ops::RangeInclusive<u64>, key: &str, unit: &str| {
        let said = said.filter(|said| range.contains(&said.value))?;
        let value = match unit {
            "" => said.value.to_string(),
            unit => format!("\"{}{unit}\"", said.value),
        };
        Some((format!("{key} = {value}"), vec![said.at]))
    };
    let mode = object.and_then(|object| object.get("assign_mode"));
    let ours =
        mode.and_then(|mode| Some((MODES.iter().find(|(word, _)| *word == mode.value)?.1, mode.at.clone())));
    add(ours.map(|(ours, at)| (format!("mode = \"{ours}\""), vec![at])));
    add(plain(number(object, "flowlet_idle_time"), 1..=1_000_000, "idle", "us"));
    let table = number(object, "max_flows").filter(|said| (1..=MOST_ENTRIES).contains(&said.value));
    let least = table.as_ref().map_or(512, |said| said.value);
    let entries = number(profile, "max_flows").filter(|said| (least..=MOST_ENTRIES).contains(&said.value));
    // The tables of all groups of a switch have 32,768 entries by default.
    let all = entries.as_ref().map_or_else(|| least.max(32_768), |said| said.value);
    add(plain(table, 1..=all, "table", ""));
    match entries {
        Some(_) => add(plain(entries, 1..=all, "entries", "")),
        None if all > 32_768 => add(Some((format!("entries = {all}"), Vec::new()))),
        None => {}
    }
    add(plain(number(profile, "sampling_interval"), 1..=1_000_000, "interval", "us"));
    let weights = ["past_load_weight", "future_load_weight"].map(|field| number(profile, field));
    let is_zero = |said: &Option<Said<u64>>| said.as_ref().is_some_and(|said| said.value == 0);
    if !weights.iter().all(is_zero) {
        for (said, key) in weights.into_iter().zip(["past-weight", "future-weight"]) {
            add(plain(said, 0..=255, key, ""));
        }
    }
    // A factor of 40 at 400 Gb/s means that limits are those of 10 Gb/s; 0 stands for this rule.
    let factors = view.ports.iter().filter_map(|(name, port)| {
        let factor = bytes(view.switch.ars_interfaces.get(*name)?, "scaling_factor")?;
        let rate = view.link_rate(name, port)?.checked_div(factor.value)?;
        (rate >= 1_000_000).then(|| (rate / 1_000_000 * 1_000_000, vec![factor.at]))
    });
    add(most(factors.collect()).map(|(rate, at, _)| (format!("scale = \"{}\"", rate_text(rate)), at)));
    let whole = [profile, object].into_iter().flatten().flat_map(|fields| fields.values());
    if from.is_empty() {
        from.extend(whole.take(1).map(|said| said.at.clone()));
    }
    Some(Made { toml: format!("{{ {} }}", keys.join(", ")), from, note: String::new() })
}

/// A setting of ECMP's hash, if ARS does not choose the ports.
fn of_hash(view: &View<'_>, toml: String, at: &Place, note: &str) -> Option<Made> {
    let made = Made { toml, from: vec![at.clone()], note: note.to_owned() };
    in_force(view).is_none().then_some(made)
}

/// Fields by whether the hash sees UDP ports. All packets of a queue pair have one source port.
pub(super) fn hash_fields(view: &View<'_>) -> Option<Made> {
    let said = view.switch.hash.get("ecmp_hash")?;
    let has = |name: &str| said.value.split(',').any(|field| field.trim() == name);
    let fields = match () {
        () if has("L4_SRC_PORT") => "5-tuple",
        () if has("SRC_IP") || has("DST_IP") => "addresses",
        () => return None,
    };
    of_hash(view, format!("\"{fields}\""), &said.at, "")
}

pub(super) fn hash_function(view: &View<'_>) -> Option<Made> {
    match view.switch.hash.get("ecmp_hash_algorithm") {
        Some(said) => {
            let (_, ours) = FUNCTIONS.iter().find(|(word, _)| *word == said.value)?;
            of_hash(view, format!("\"{ours}\""), &said.at, "")
        }
        None => {
            of_hash(view, "\"crc32\"".to_owned(), &view.switch.kind.as_ref()?.at, "SONiC's default is a CRC")
        }
    }
}

/// The seed that SONiC gives to this type of switch. The scenario has one rule for all of them.
pub(super) fn hash_seed(view: &View<'_>) -> Option<Made> {
    let said = view.switch.kind.as_ref()?;
    of_hash(view, seed(Some(&said.value)).to_string(), &said.at, "")
}

/// Buckets of a group, if a group has fewer next hops.
pub(super) fn buckets(view: &View<'_>) -> Option<Made> {
    let said = view.switch.buckets.as_ref()?;
    let least = view.fabric.next_hops.max(2) as u64;
    let said = Some(said).filter(|said| (least..=65_536).contains(&said.value))?;
    of_hash(view, said.value.to_string(), &said.at, "")
}
