//! The scenario as TOML: each setting with a comment that names the file and the field it came from.

use crate::fabric::{Fabric, root};
use crate::facts::{Facts, NicSetting, Servers};
use crate::ledger::Ledger;
use crate::said::{Place, Said, rate_text};
use crate::settings::{Made, ROWS};
use crate::view::View;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// A setting of a switch: key below `[switch]`, value, comment.
type Setting = (String, String, String);

/// The scenario.
pub(crate) fn scenario(facts: &mut Facts, fabric: &mut Fabric, made: &[Written]) -> String {
    let mut out = String::from(
        "# Made by `ropewalk import site`. Comments name the file, the line and the field of each setting; what they leave out has\n\
         # ropewalk's default (`ropewalk check --full`).\n\n",
    );
    let switches = settings(facts, fabric, made);
    topology(&mut out, fabric);
    if let Some(servers) = &facts.servers {
        server(&mut out, servers);
    }
    out += &switches;
    nic(&mut out, facts);
    workload(&mut out, fabric);
    out
}

/// Most flows of a list. Our choice: a file that an editor still shows well.
const MOST_FLOWS: usize = 10_000;

/// Traffic to start with: a permutation, or, if hosts are in parts that no switch joins, flows inside the parts.
fn workload(out: &mut String, fabric: &Fabric) {
    let mut parts = parts(fabric);
    let is_one = parts.len() == 1;
    out.push_str("\n# Traffic to start with; the documentation has all workloads.\n[[workload]]\n");
    if is_one {
        out.push_str("permutation = { bytes = \"1MB\" }\n");
        return;
    }
    parts.retain(|part| part.len() > 1);
    let pairs = parts.iter().flat_map(|part| part.iter().zip(part.iter().cycle().skip(1)));
    let apart = pairs.filter(|((host, _), (other, _))| host != other).take(MOST_FLOWS);
    out.push_str("flows = { list = [\n");
    for ((_, from), (_, to)) in apart {
        let _ = writeln!(out, "    {{ from = {}, to = {}, bytes = \"1MB\" }},", word(from), word(to));
    }
    out.push_str("] }\n");
}

/// Ports of hosts that reach each other over switches, or over a cable between two hosts: the host and the name of the port.
fn parts(fabric: &Fabric) -> Vec<Vec<(String, String)>> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for end in fabric.links.iter().flat_map(|link| &link.ends) {
        *counts.entry(&end.node).or_default() += 1;
    }
    let hosts: BTreeSet<&str> = fabric.hosts.iter().map(String::as_str).collect();
    // Parts are joined by switches; a host forwards nothing, so each of its ports is by itself.
    let mut part: BTreeMap<String, usize> = BTreeMap::new();
    let mut top: Vec<usize> = Vec::new();
    let mut next: BTreeMap<&str, usize> = BTreeMap::new();
    let mut ports: Vec<(String, String)> = Vec::new();
    for link in &fabric.links {
        let mut ends = [0, 0];
        for (slot, end) in ends.iter_mut().zip(&link.ends) {
            let name = match hosts.contains(end.node.as_str()) {
                false => format!("switch {}", end.node),
                true => {
                    let number = next.entry(&end.node).or_default();
                    let port = match counts[end.node.as_str()] {
                        1 => end.node.clone(),
                        _ => format!("{}p{number}", end.node),
                    };
                    *number += 1;
                    ports.push((end.node.clone(), port.clone()));
                    format!("port {port}")
                }
            };
            *slot = *part.entry(name).or_insert_with(|| {
                top.push(top.len());
                top.len() - 1
            });
        }
        let [a, b] = ends.map(|end| root(&mut top, end));
        top[a] = b;
    }
    let mut parts: BTreeMap<usize, Vec<(String, String)>> = BTreeMap::new();
    for (host, port) in ports {
        let of = root(&mut top, part[&format!("port {port}")]);
        parts.entry(of).or_default().push((host, port));
    }
    parts.into_values().collect()
}

fn word(text: &str) -> String {
    toml::Value::from(text).to_string()
}

/// Words of a place in a comment, which has one line.
fn comment(place: &Place) -> String {
    files::printable::on_one_line(&place.to_string())
}

fn topology(out: &mut String, fabric: &Fabric) {
    let _ = writeln!(out, "[topology.links]");
    let hosts: Vec<String> = fabric.hosts.iter().map(|host| word(host)).collect();
    let _ = writeln!(out, "hosts = [{}]", hosts.join(", "));
    let _ = writeln!(out, "switches = [");
    for (name, role) in &fabric.switches {
        let _ = writeln!(out, "    {{ name = {}, role = {} }},", word(name), word(role));
    }
    let _ = writeln!(out, "]\nlinks = [");
    for link in &fabric.links {
        let [a, b] = &link.ends;
        let rate = link.rate.as_ref().map_or(0, |said| said.value);
        let delay = link.delay.as_ref().map_or(1, |said| said.value.max(1));
        let mut places = BTreeSet::from([comment(&link.at)]);
        places.extend(link.rate.iter().map(|said| comment(&said.at)));
        places.extend(link.delay.iter().map(|said| comment(&said.at)));
        let from = places.into_iter().collect::<Vec<_>>().join("; ");
        let _ = writeln!(
            out,
            "    [{}, {}, \"{}\", \"{delay}ps\"], # {from}",
            word(&a.node),
            word(&b.node),
            rate_text(rate)
        );
    }
    let _ = writeln!(out, "]");
}

fn server(out: &mut String, servers: &Servers) {
    let _ = writeln!(out, "\n[server] # {}", comment(&servers.at));
    let _ = writeln!(out, "gpus = {}", servers.gpus);
    if let Some(nics) = servers.nics {
        let _ = writeln!(out, "nics = {nics}");
    }
    let _ = match servers.nvlink {
        Some(bps) => writeln!(out, "nvlink = {{ rate = \"{}\" }}", rate_text(bps)),
        None => writeln!(out, "nvlink = \"off\""),
    };
}

/// A switch with its settings, each with its key.
pub(crate) type Written = (String, Vec<(&'static str, Made)>);

/// The settings that the views of the switches make, by name of the switch.
pub(crate) fn make(views: &[View<'_>], fabric: &Fabric, ledger: &mut Ledger) -> Vec<Written> {
    let in_fabric: BTreeSet<&str> = fabric.switches.iter().map(|(name, _)| name.as_str()).collect();
    let of = |view: &View<'_>| {
        let rows = ROWS.iter().filter_map(|(key, make)| Some((*key, make(view)?)));
        let direct = view.switch.direct.iter().map(|(key, said)| {
            let made = Made { toml: said.value.clone(), from: vec![said.at.clone()], note: String::new() };
            (*key, made)
        });
        (view.switch.name.clone(), rows.chain(direct).collect())
    };
    let mut all: Vec<Written> =
        views.iter().filter(|view| in_fabric.contains(view.switch.name.as_str())).map(of).collect();
    let values = |all: &[Written], key: &str| -> BTreeSet<Option<String>> {
        let own =
            |(_, made): &Written| made.iter().find(|(own, _)| *own == key).map(|(_, made)| made.toml.clone());
        all.iter().map(own).collect()
    };
    let drop_rows = |all: &mut Vec<Written>, key: &str| {
        all.iter_mut().for_each(|(_, made)| made.retain(|(own, _)| *own != key));
    };
    // A model fills in what no file says, of all switches.
    if values(&all, "switch.model").len() > 1 {
        drop_rows(&mut all, "switch.model");
        ledger.assumed("switches have several models: each has the cells and slices of its own, and settings that no file says have ropewalk's defaults");
    }
    // Queues are by DSCP or by kinds of packets.
    if values(&all, "switch.dscp-map").len() > 1 || all.iter().any(|(_, made)| has_map(made)) {
        drop_rows(&mut all, "switch.classes");
    }
    // SONiC's seeds by type are a rule of ours, unless types contradict it.
    let is_one = values(&all, "scheme.ecmp.seed").len() == 1;
    let is_wrong = is_one && ledger.contradicts.iter().any(|it| it.rule == "hash-seeds");
    for (_, made) in all.iter_mut().filter(|_| !is_wrong) {
        let seeds = made.iter_mut().filter(|(key, _)| *key == "scheme.ecmp.seed");
        seeds.for_each(|(_, made)| made.toml = "\"by-role\"".to_owned());
    }
    all
}

/// True if these settings read the DSCPs of NICs: by a map, or by that of the model.
fn has_map(made: &[(&'static str, Made)]) -> bool {
    made.iter().any(|(key, _)| ["switch.dscp-map", "switch.model"].contains(key))
}

/// DSCPs of SONiC's lossless classes: the first one (sonic-buildimage, files/build_templates/qos_config.j2).
const SONIC_LOSSLESS: u8 = 3;

/// The DSCP of data for the NICs, where switches read it.
pub(crate) fn dscp(
    views: &[View<'_>],
    made: &[Written],
    said: Option<&Said<u8>>,
    ledger: &mut Ledger,
) -> Option<NicSetting> {
    let (name, settings) = made.iter().find(|(_, made)| has_map(made))?;
    if let Some(said) = said {
        return Some(NicSetting {
            key: "dscp".to_owned(),
            toml: said.value.to_string(),
            at: said.at.clone(),
        });
    }
    let view = views.iter().find(|view| view.switch.name == *name)?;
    let class = view.class.as_ref()?;
    let is_own = settings.iter().any(|(key, _)| *key == "switch.dscp-map");
    let dscp = match is_own {
        true => view.dscp_of_data()?,
        false if class.lossless => SONIC_LOSSLESS,
        false => return None,
    };
    let at = class.from.first()?.clone();
    if dscp > 0 {
        ledger.assumed(format!(
            "no file says which DSCP NICs give to data: {dscp}, which leads to a lossless class; set nic.dscp, or add NCCL_IB_TC"
        ));
    }
    (dscp > 0).then(|| NicSetting { key: "dscp".to_owned(), toml: dscp.to_string(), at })
}

/// Keys that switches of one role may have for themselves.
const OF_ROLE: &[&str] =
    &["buffer", "cell", "slices", "guarantee", "pfc", "drop-alpha", "cut", "ecn", "scheme"];

/// `[switch]` and `[switch-role.NAME]`.
fn settings(facts: &mut Facts, fabric: &mut Fabric, made: &[Written]) -> String {
    let in_fabric: BTreeSet<&String> = fabric.switches.iter().map(|(name, _)| name).collect();
    // By switch, its settings by the first part of their key.
    let mut of: BTreeMap<&str, BTreeMap<&str, Vec<Setting>>> = BTreeMap::new();
    for (name, all) in made.iter().filter(|(name, _)| in_fabric.contains(name)) {
        let mut tops: BTreeMap<&str, Vec<Setting>> = BTreeMap::new();
        for (key, made) in all {
            let key = key.strip_prefix("switch.").unwrap_or(key);
            let top = key.split('.').next().unwrap_or(key);
            let places: BTreeSet<String> = made.from.iter().map(comment).collect();
            let more = if places.len() > 3 { format!("; {} more", places.len() - 3) } else { String::new() };
            let mut text = places.into_iter().take(3).collect::<Vec<_>>().join("; ") + &more;
            if !made.note.is_empty() {
                text += &format!(" ({})", files::printable::on_one_line(&made.note));
            }
            tops.entry(top).or_default().push((key.to_owned(), made.toml.clone(), text));
        }
        of.insert(name, tops);
    }
    let values = |settings: &Vec<Setting>| -> Vec<(String, String)> {
        settings.iter().map(|(key, value, _)| (key.clone(), value.clone())).collect()
    };
    let mut out = String::new();
    let tops: BTreeSet<&str> = of.values().flat_map(|tops| tops.keys().copied()).collect();
    let mut common: Vec<&Vec<Setting>> = Vec::new();
    let mut own: BTreeSet<&str> = BTreeSet::new();
    for top in tops {
        let all: Vec<Option<&Vec<Setting>>> = of.values().map(|tops| tops.get(top)).collect();
        let first = all.iter().flatten().next().copied();
        let alike = all.iter().all(|one| one.map(values) == first.map(values));
        let Some(first) = first else { continue };
        if alike {
            common.push(first);
        } else if OF_ROLE.contains(&top) {
            own.insert(top);
        } else {
            common.push(first);
            facts.ledger.assumed(format!("switch.{top} is that of one switch; others have another one"));
        }
    }
    let (scheme, common): (Vec<_>, Vec<_>) =
        common.into_iter().partition(|settings| settings.iter().any(|(key, ..)| key.starts_with("scheme.")));
    if !common.is_empty() {
        out += "\n[switch]\n";
        common.into_iter().for_each(|settings| lines(&mut out, settings));
    }
    let scheme: Vec<Setting> = scheme.into_iter().flatten().cloned().collect();
    if !scheme.is_empty() {
        out += "\n[scheme]\n";
        let below = |(key, value, from): Setting| {
            (key.strip_prefix("scheme.").unwrap_or(&key).to_owned(), value, from)
        };
        lines(&mut out, &scheme.into_iter().map(below).collect::<Vec<_>>());
    }
    let without: Vec<String> =
        in_fabric.iter().filter(|name| !of.contains_key(name.as_str())).map(|name| (*name).clone()).collect();
    if !without.is_empty() {
        let more = if without.len() > 4 { format!(" and {} more", without.len() - 4) } else { String::new() };
        let named = without.iter().take(4).cloned().collect::<Vec<_>>().join(", ");
        let whose = if out.is_empty() { "ropewalk's defaults" } else { "the settings of [switch]" };
        facts.ledger.assumed(format!("no configuration of {named}{more}: {whose} hold"));
    }
    if own.is_empty() {
        return out;
    }
    // Switches of one role whose settings differ become two roles.
    type OwnSettings = Vec<(String, String)>;
    let mut seen: BTreeMap<String, Vec<OwnSettings>> = BTreeMap::new();
    for (name, role) in &mut fabric.switches {
        let Some(tops) = of.get(name.as_str()) else {
            if of.keys().any(|_| true) {
                *role = format!("{role}-without-configuration");
            }
            continue;
        };
        let settings: Vec<&Setting> = own.iter().filter_map(|top| tops.get(top)).flatten().collect();
        let signature: Vec<(String, String)> =
            settings.iter().map(|(key, value, _)| (key.clone(), value.clone())).collect();
        let variants = seen.entry(role.clone()).or_default();
        let known = variants.iter().position(|one| *one == signature);
        let number = known.unwrap_or_else(|| {
            variants.push(signature);
            variants.len() - 1
        });
        if number > 0 {
            *role = format!("{role}-{}", number + 1);
        }
        if known.is_none() && !settings.is_empty() {
            let _ = writeln!(out, "\n[switch-role.{}]", word(role));
            let settings: Vec<Setting> = settings.into_iter().cloned().collect();
            lines(&mut out, &settings);
        }
    }
    out
}

fn lines(out: &mut String, settings: &[Setting]) {
    for (key, value, from) in settings {
        let _ = writeln!(out, "{key} = {value} # {from}");
    }
}

fn nic(out: &mut String, facts: &mut Facts) {
    let mut taken: Vec<&NicSetting> = Vec::new();
    let mut others = Vec::new();
    for setting in &facts.nic {
        match taken.iter().find(|one| one.key == setting.key) {
            None => taken.push(setting),
            Some(one) if one.toml != setting.toml => others.push((setting.clone(), one.toml.clone())),
            Some(_) => {}
        }
    }
    if !taken.is_empty() {
        let _ = writeln!(out, "\n[nic]");
    }
    for NicSetting { key, toml, at } in taken {
        let _ = writeln!(out, "{key} = {toml} # {}", comment(at));
    }
    for (setting, first) in others {
        let text = format!("NICs differ in {}: {first} and {}", setting.key, setting.toml);
        facts.ledger.contradicts(
            "nics-differ",
            text,
            "set all NICs alike; the first value counts here",
            vec![setting.at],
        );
    }
}
