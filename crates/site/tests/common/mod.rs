//! A small site in our own words: two ToRs and a spine, four servers.

#![allow(dead_code, unreachable_pub, reason = "not every test uses all of it")]

use scenario::{Source, check};
use site::{Answer, Contradiction, Input, Row, import};

/// A file of the site.
pub fn file(name: &str, text: impl Into<String>) -> Input {
    Input::new(name, text)
}

/// Makes the scenario, which must be one that `check` accepts.
pub fn accepted(files: &[Input]) -> Answer {
    let answer = import(files).unwrap_or_else(|failed| panic!("{}\n{:#?}", failed.finding, failed.ignored));
    if let Err(error) = check(&Source::new("site.toml", answer.toml.clone()), &[]) {
        panic!("{error:?}\n{}", answer.toml);
    }
    answer
}

/// The settings of the scenario's table.
pub fn value(answer: &Answer, path: &[&str]) -> Option<toml::Value> {
    let root: toml::Value = toml::from_str(&answer.toml).expect("the scenario is TOML");
    path.iter().try_fold(root, |value, key| match key.parse::<usize>() {
        Ok(i) => value.get(i).cloned(),
        Err(_) => value.get(key).cloned(),
    })
}

/// The contradictions of a rule.
pub fn of_rule<'a>(answer: &'a Answer, rule: &str) -> Vec<&'a Contradiction> {
    answer.contradicts.iter().filter(|it| it.rule == rule).collect()
}

/// Rules that fired, in order and once.
pub fn rules(answer: &Answer) -> Vec<&'static str> {
    let mut all: Vec<&str> = answer.contradicts.iter().map(|it| it.rule).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The row of a field.
pub fn row<'a>(rows: &'a [Row], field: &str) -> &'a Row {
    rows.iter().find(|row| row.field == field).unwrap_or_else(|| panic!("{field} is not in {rows:#?}"))
}

/// A port, its neighbour with its port, and the speed.
pub type Cable<'a> = (&'a str, &'a str, &'a str, u32);

/// What varies in the configuration of a switch.
pub struct Switch<'a> {
    pub name: &'a str,
    pub kind: &'a str,
    /// Ports: name, neighbour, its port, speed in Mb/s.
    pub ports: &'a [Cable<'a>],
    pub length: &'a str,
    pub profile: &'a str,
    pub pfc: &'a str,
    pub kmax: u64,
    pub ecn: &'a str,
    pub detection: u64,
    pub xoff_pool: u64,
    pub fec: &'a str,
    /// Traffic classes of DSCP 0 and 26.
    pub classes: [u8; 2],
}

/// A ToR without a mistake.
pub const GOOD: Switch<'static> = Switch {
    name: "tor1",
    kind: "ToRRouter",
    ports: &[
        ("Ethernet0", "gpu1", "eth0", 400_000),
        ("Ethernet8", "gpu2", "eth0", 400_000),
        ("Ethernet16", "spine1", "Ethernet0", 400_000),
    ],
    length: "40m",
    profile: "pg_lossless_400000_40m_profile",
    pfc: "3",
    kmax: 2_000_000,
    ecn: "ecn_all",
    detection: 200,
    xoff_pool: 4_000_000,
    fec: "rs",
    classes: [3, 3],
};

impl Switch<'_> {
    /// `config_db.json`.
    pub fn config(&self) -> String {
        let Switch { name, kind, length, profile, pfc, kmax, ecn, detection, xoff_pool, fec, .. } = self;
        let [zero, guide] = self.classes;
        let each =
            |line: &dyn Fn(&Cable<'_>) -> String| self.ports.iter().map(line).collect::<Vec<_>>().join(",\n");
        let ports = each(&|(port, _, _, speed)| {
            format!(
                r#"    "{port}": {{ "speed": "{speed}", "fec": "{fec}", "admin_status": "up", "lanes": "1" }}"#
            )
        });
        let neighbours = each(&|(port, peer, peer_port, _)| {
            format!(r#"    "{port}": {{ "name": "{peer}", "port": "{peer_port}" }}"#)
        });
        let lengths = each(&|(port, ..)| format!(r#"    "{port}": "{length}""#));
        let groups = each(&|(port, ..)| format!(r#"    "{port}|3": {{ "profile": "{profile}" }}"#));
        let maps = each(&|(port, ..)| {
            format!(
                r#"    "{port}": {{ "pfc_enable": "{pfc}", "dscp_to_tc_map": "M", "tc_to_queue_map": "M", "tc_to_pg_map": "M" }}"#
            )
        });
        let queues = each(&|(port, ..)| {
            format!(
                r#"    "{port}|3": {{ "scheduler": "data", "wred_profile": "W" }},
    "{port}|6": {{ "scheduler": "cnp" }}"#
            )
        });
        let watchdogs = each(&|(port, ..)| {
            format!(
                r#"    "{port}": {{ "detection_time": "{detection}", "restoration_time": "400", "action": "drop" }}"#
            )
        });
        format!(
            r#"{{
  "DEVICE_METADATA": {{ "localhost": {{ "hostname": "{name}", "type": "{kind}", "hwsku": "Some-SKU" }} }},
  "PORT": {{
{ports}
  }},
  "DEVICE_NEIGHBOR": {{
{neighbours}
  }},
  "CABLE_LENGTH": {{ "AZURE": {{
{lengths}
  }} }},
  "BUFFER_POOL": {{
    "ingress_lossless_pool": {{ "size": "60000000", "xoff": "{xoff_pool}", "type": "ingress", "mode": "dynamic" }}
  }},
  "BUFFER_PROFILE": {{
    "{profile}": {{
      "pool": "ingress_lossless_pool", "size": "1664", "xon": "1664", "xoff": "280000", "xon_offset": "3556",
      "dynamic_th": "0"
    }}
  }},
  "BUFFER_PG": {{
{groups}
  }},
  "DSCP_TO_TC_MAP": {{ "M": {{ "0": "{zero}", "24": "3", "26": "{guide}", "48": "6" }} }},
  "TC_TO_QUEUE_MAP": {{ "M": {{ "1": "1", "3": "3", "6": "6" }} }},
  "TC_TO_PRIORITY_GROUP_MAP": {{ "M": {{ "1": "0", "3": "3", "6": "0" }} }},
  "PORT_QOS_MAP": {{
{maps}
  }},
  "WRED_PROFILE": {{ "W": {{
    "ecn": "{ecn}", "green_min_threshold": "500000", "green_max_threshold": "{kmax}", "green_drop_probability": "5",
    "red_max_threshold": "1"
  }} }},
  "SCHEDULER": {{ "data": {{ "type": "DWRR", "weight": "15" }}, "cnp": {{ "type": "STRICT" }} }},
  "QUEUE": {{
{queues}
  }},
  "PFC_WD": {{
{watchdogs},
    "GLOBAL": {{ "POLL_INTERVAL": "200" }}
  }},
  "NTP_SERVER": {{ "10.0.0.1": {{}} }},
  "SOMETHING_NEW": {{ "a": {{ "b": "c" }} }}
}}
"#
        )
    }
}

/// The second ToR.
pub fn tor2() -> Switch<'static> {
    Switch {
        name: "tor2",
        ports: &[
            ("Ethernet0", "gpu3", "eth0", 400_000),
            ("Ethernet8", "gpu4", "eth0", 400_000),
            ("Ethernet16", "spine1", "Ethernet8", 400_000),
        ],
        ..GOOD
    }
}

/// The spine, with a larger alpha.
pub fn spine() -> Switch<'static> {
    Switch {
        name: "spine1",
        kind: "SpineRouter",
        ports: &[("Ethernet0", "tor1", "Ethernet16", 400_000), ("Ethernet8", "tor2", "Ethernet16", 400_000)],
        ..GOOD
    }
}

/// The three switches as files.
pub fn site() -> Vec<Input> {
    vec![
        file("site/tor1/config_db.json", GOOD.config()),
        file("site/tor2/config_db.json", tor2().config()),
        file("site/spine1/config_db.json", spine().config()),
    ]
}
