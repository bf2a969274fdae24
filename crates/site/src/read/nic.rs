//! Settings of NICs: dumps of sysfs, `mlnx_qos`, `mlxconfig -e query`, and variables of NCCL.

use super::File;
use crate::facts::{Facts, NicSetting};
use crate::kind::value;
use crate::said::{Place, Said};
use rnic::vendor::{NAMES, Value};

/// Why priorities of VLAN tags are ignored.
const BY_DSCP: &str = "switches classify by DSCP here, not by the priority of VLAN tags";

/// Names in dumps of `ecn/` and of tools that are no setting of DCQCN, and the reason why they are ignored.
pub(crate) const IGNORED: &[(&str, &str)] = &[
    ("cnp_802p_prio", BY_DSCP),
    ("cnp_priority", BY_DSCP),
    ("enable", "DCQCN is on for every priority of a run"),
    ("force_tc", "the class of data is that of its DSCP"),
    ("trust", "switches classify by DSCP here"),
];

/// True for the DSCP of CNPs: `cnp_dscp` of sysfs and mlxconfig's `CNP_DSCP_P1`.
pub(crate) fn is_cnp_dscp(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    lower.strip_prefix("cnp_dscp").is_some_and(|port| port.is_empty() || port.starts_with("_p"))
}

/// True for the DSCP of data: `traffic_class` of sysfs, `default_roce_tos` of configfs.
pub(crate) fn is_traffic_class(name: &str) -> bool {
    ["traffic_class", "default_roce_tos", "tclass", "roce_tos"].contains(&name)
}

/// A dump of sysfs, a value a line: `ecn/roce_rp/rpg_time_reset:300`, or a name and its value.
pub(super) fn values(facts: &mut Facts, file: &File<'_>) {
    for (line, text) in file.lines() {
        if let Some((name, value)) = value(text.trim()) {
            one(facts, &file.line(line), name, value);
        }
    }
}

/// A file of sysfs as such, such as `ecn/roce_rp/rpg_time_reset`: it has a number, and its name is all that says which. True if it is one.
pub(super) fn single(facts: &mut Facts, file: &File<'_>) -> bool {
    let text = file.text.trim();
    let is_short = text.len() < 40 && !text.is_empty() && !text.contains('\n');
    let number = text.rsplit(['=', ' ']).next().unwrap_or(text);
    let last = file.name.rsplit('/').next().unwrap_or_default().to_owned();
    let is_name = NAMES.iter().any(|known| known.matches(&last))
        || is_traffic_class(&last)
        || is_cnp_dscp(&last)
        || IGNORED.iter().any(|(ignored, _)| *ignored == last);
    let is_single = is_short && is_name && number.parse::<i64>().is_ok();
    if is_single {
        one(facts, &file.line(1), &last, number);
    }
    is_single
}

/// Takes a value by NVIDIA's name.
fn one(facts: &mut Facts, at: &Place, name: &str, value: &str) {
    if is_traffic_class(name) {
        return match value.parse::<u8>() {
            Ok(class) => dscp(facts, at, name, class),
            Err(_) => facts.ledger.ignored(at, name, "expected a traffic class from 0 to 255"),
        };
    }
    if is_cnp_dscp(name) {
        return match value.parse::<u8>() {
            Ok(dscp @ 0..=63) => {
                facts.ledger.read(at, name, "nic.cnp-dscp");
                facts.nic.push(NicSetting {
                    key: "cnp-dscp".to_owned(),
                    toml: dscp.to_string(),
                    at: at.clone(),
                });
            }
            _ => facts.ledger.ignored(at, name, "expected a DSCP from 0 to 63"),
        };
    }
    let Some(known) = NAMES.iter().find(|known| known.matches(name)) else {
        let why = IGNORED.iter().find(|(ignored, _)| *ignored == name).map(|(_, why)| *why);
        return facts.ledger.ignored(
            at,
            &files::printable::on_one_line(name),
            why.unwrap_or("it is no setting of DCQCN"),
        );
    };
    let number = value.split_whitespace().next().unwrap_or_default();
    // `mlxconfig` shows choices with their number: `True(1)`.
    let number = number.rsplit_once('(').map_or(number, |(_, number)| number.trim_end_matches(')'));
    match number.parse::<i64>().map_err(|_| "a whole number").and_then(|number| known.value(number)) {
        Ok(value) => {
            let toml = match value {
                Value::Text(text) => format!("\"{text}\""),
                Value::Count(count) => count.to_string(),
                Value::Share(share) => format!("{share:?}"),
                Value::Flag(flag) => flag.to_string(),
            };
            facts.ledger.read(at, known.vendor, &format!("nic.{}", known.key));
            facts.nic.push(NicSetting { key: known.key.to_owned(), toml, at: at.clone() });
        }
        Err(expected) => facts.ledger.ignored(at, known.vendor, &format!("expected {expected}")),
    }
}

/// The class of data, from the byte that has the DSCP in its upper six bits.
fn dscp(facts: &mut Facts, at: &Place, name: &str, class: u8) {
    let said = Said { value: class >> 2, at: at.clone() };
    facts.ledger.read(at, &files::printable::on_one_line(name), "the class of data at switches");
    match &facts.dscp {
        Some(first) if first.value != said.value => {
            let text = format!("data has DSCP {} and {}", first.value, said.value);
            let places = vec![first.at.clone(), said.at];
            facts.ledger.contradicts(
                "nics-differ",
                text,
                "set one class on all NICs; the first one counts here",
                places,
            );
        }
        Some(_) => {}
        None => facts.dscp = Some(said),
    }
}

/// `mlnx_qos -i DEV`.
pub(super) fn mlnx_qos(facts: &mut Facts, file: &File<'_>) {
    let mut pfc_next = false;
    for (line, text) in file.lines() {
        let (at, text) = (file.line(line), text.trim());
        let words: Vec<&str> = text.split_whitespace().collect();
        let name = text.split(':').next().unwrap_or(text).trim();
        match words.first().copied() {
            Some("enabled") if pfc_next => {
                pfc_next = false;
                let on: Vec<u8> =
                    words[1..].iter().zip(0..8).filter(|(word, _)| **word == "1").map(|(_, i)| i).collect();
                facts.ledger.read(&at, "PFC enabled", "compared with the switches' lossless priorities");
                facts.nic_pfc.push(Said { value: on, at });
            }
            Some("priority") => pfc_next = true,
            _ if name == "Priority trust state" => match text.ends_with("dscp") {
                true => facts.ledger.read(&at, name, "switches and NICs classify by DSCP"),
                false => {
                    let text = "a NIC trusts the priority of VLAN tags (pcp), and switches classify by DSCP"
                        .to_owned();
                    let advice = "mlnx_qos -i DEV --trust dscp";
                    facts.ledger.contradicts("trust", text, advice, vec![at]);
                }
            },
            _ => {
                let known = [
                    "DCBX mode",
                    "dscp2prio mapping",
                    "prio",
                    "Receive buffer size (bytes)",
                    "Cable len",
                    "buffer",
                    "tc",
                    "PFC configuration",
                    "default priority",
                ];
                let name = known.iter().find(|known| name.starts_with(**known)).unwrap_or(&"a line");
                facts.ledger.ignored(&at, name, "a NIC takes data as it comes and sends one class here");
            }
        }
    }
}

/// `mlxconfig -e query` or `mstconfig -e query`: default, current and next values, of which the current one counts.
pub(super) fn mlxconfig(facts: &mut Facts, file: &File<'_>) {
    let mut current = 0;
    for (line, text) in file.lines() {
        let (at, text) = (file.line(line), text.trim().trim_start_matches('*').trim());
        if let Some(device) = text.strip_prefix("Device type:") {
            device_type(facts, &at, device.trim());
            continue;
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        if words.first() == Some(&"Configurations:") {
            // Columns are Default, Current and Next Boot, or Next Boot alone.
            current = words[1..].iter().position(|word| *word == "Current").unwrap_or(0);
            continue;
        }
        let name = words.first().copied().unwrap_or_default();
        let is_setting =
            name.len() > 3 && name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
        match words.get(1 + current).filter(|_| is_setting) {
            Some(value) if NAMES.iter().any(|known| known.matches(name)) || is_cnp_dscp(name) => {
                one(facts, &at, name, value)
            }
            Some(_) if name.starts_with("CNP_") => facts.ledger.ignored(&at, name, BY_DSCP),
            Some(_) => facts.ledger.ignored(&at, name, "it is no setting of DCQCN"),
            None => facts.ledger.ignored(&at, "a line", "it has no setting"),
        }
    }
}

/// NICs of mlxconfig's `Device type`, without blanks and in lower case, and ours.
const MODELS: &[(&str, &str)] = &[
    ("connectx4", "connectx-4"),
    ("connectx5", "connectx-5"),
    ("connectx6", "connectx-6"),
    ("connectx7", "connectx-7"),
    ("connectx8", "connectx-8"),
    ("bluefield2", "bluefield-2"),
    ("bluefield3", "bluefield-3"),
];

fn device_type(facts: &mut Facts, at: &Place, device: &str) {
    let simple: String = device.to_lowercase().chars().filter(char::is_ascii_alphanumeric).collect();
    match MODELS.iter().find(|(sign, _)| simple.starts_with(sign)) {
        Some((_, model)) => {
            facts.ledger.read(at, "Device type", "nic.model");
            facts.nic.push(NicSetting {
                key: "model".to_owned(),
                toml: format!("\"{model}\""),
                at: at.clone(),
            });
        }
        None => facts.ledger.ignored(
            at,
            "Device type",
            "ropewalk has no such NIC; `ropewalk list nics` shows all",
        ),
    }
}

/// Variables of NCCL, a line each.
pub(super) fn nccl(facts: &mut Facts, file: &File<'_>) {
    for (line, text) in file.lines() {
        let at = file.line(line);
        let text = text.trim().trim_start_matches("export ");
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        let (name, value) = (name.trim(), value.trim().trim_matches('"'));
        let number = value.parse::<u8>();
        match (name, number) {
            ("NCCL_IB_TC", Ok(class)) => dscp(facts, &at, name, class),
            ("NCCL_IB_TIMEOUT", Ok(exponent @ 0..=31)) => {
                facts.ledger.read(&at, name, "nic.timeout");
                facts.nic.push(NicSetting {
                    key: "timeout".to_owned(),
                    toml: format!("{{ ib = {exponent} }}"),
                    at,
                });
            }
            ("NCCL_IB_RETRY_CNT", Ok(retries @ 0..=7)) => {
                facts.ledger.read(&at, name, "nic.retries");
                facts.nic.push(NicSetting { key: "retries".to_owned(), toml: retries.to_string(), at });
            }
            ("NCCL_IB_TC" | "NCCL_IB_TIMEOUT" | "NCCL_IB_RETRY_CNT", _) => {
                facts.ledger.ignored(&at, name, "its value is no possible number");
            }
            _ => {
                let name = files::printable::on_one_line(name);
                facts.ledger.ignored(&at, &name, "it is about collectives: enter it in [nccl] env");
            }
        }
    }
}
