//! Configurations of switches: what becomes a setting, what is ignored and why, and what contradicts.

mod common;

use common::{GOOD, Switch, accepted, file, of_rule, row, rules, site, spine, value};
use site::import;

#[test]
fn three_switches_become_one_fabric_with_their_thresholds() {
    let answer = accepted(&site());
    assert_eq!((answer.hosts, answer.switches, answer.links), (4, 3, 6), "{}", answer.toml);
    assert_eq!(rules(&answer), [""; 0], "{:#?}", answer.contradicts);
    let text = |path: &[&str]| value(&answer, path).unwrap_or_else(|| panic!("{path:?}\n{}", answer.toml));
    assert_eq!(text(&["switch", "pfc", "alpha"]).as_str(), Some("1"));
    assert_eq!(text(&["switch", "pfc", "resume-offset"]).as_str(), Some("3556B"));
    assert_eq!(text(&["switch", "pfc", "headroom"]).as_str(), Some("280000B"));
    assert_eq!(text(&["switch", "classes"]).as_str(), Some("cnp-first"));
    let ecn = text(&["switch", "ecn", "at-rate", "0"]);
    assert_eq!((ecn["kmax"].as_str(), ecn["pmax"].as_float()), (Some("2000000B"), Some(0.05)));
    // The pool of a ToR, and the headroom of its three ports; the spine has two.
    assert_eq!(text(&["switch-role", "tor", "buffer"]).as_str(), Some("60840000B"));
    assert_eq!(text(&["switch-role", "spine", "buffer"]).as_str(), Some("60560000B"));
    // 40 m at 5 ns/m.
    let link = text(&["topology", "links", "links", "0"]);
    assert_eq!((link[2].as_str(), link[3].as_str()), (Some("400Gbps"), Some("200000ps")));
}

#[test]
fn every_setting_names_the_file_and_the_field_that_it_came_from() {
    let answer = accepted(&site());
    let line =
        |key: &str| answer.toml.lines().find(|line| line.starts_with(key)).unwrap_or_else(|| panic!("{key}"));
    let alpha = line("pfc.alpha");
    assert!(
        alpha.contains("config_db.json:")
            && alpha.contains("BUFFER_PROFILE|pg_lossless_400000_40m_profile|dynamic_th"),
        "{alpha}"
    );
    assert!(
        answer
            .toml
            .lines()
            .filter(|line| line.contains("\"400Gbps\", \"200000ps\""))
            .all(|line| line.contains("PORT|"))
    );
}

#[test]
fn every_field_ends_in_one_of_the_lists() {
    let answer = accepted(&site());
    let listed: usize = answer.read.iter().chain(&answer.ignored).map(|row| row.values).sum();
    let fields = |text: &str| {
        fn count(value: &serde_json::Value, depth: usize) -> usize {
            match value {
                serde_json::Value::Object(entries) if depth < 3 && !entries.is_empty() => {
                    entries.values().map(|value| count(value, depth + 1)).sum()
                }
                _ => 1,
            }
        }
        count(&serde_json::from_str(text).unwrap(), 0)
    };
    let expected: usize = site().iter().map(|input| fields(&input.text)).sum();
    assert_eq!(listed, expected);
    assert_eq!(row(&answer.ignored, "NTP_SERVER").what, "management and monitoring");
    assert_eq!(row(&answer.ignored, "SOMETHING_NEW b").what, "ropewalk knows no such table");
    assert!(row(&answer.ignored, "BUFFER_PROFILE size").what.starts_with("to set by hand"));
    assert!(row(&answer.read, "PORT speed").what.contains("rates"));
}

/// The rules that fire if the first ToR is `tor`.
fn fired(tor: &Switch<'_>) -> Vec<&'static str> {
    let mut files = site();
    files[0].text = tor.config();
    rules(&accepted(&files))
}

#[test]
fn pfc_without_a_lossless_group_is_found() {
    assert_eq!(fired(&Switch { pfc: "3,4", ..GOOD }), ["neighbours", "pfc-without-group"]);
}

#[test]
fn marking_above_the_threshold_of_pauses_is_found() {
    // One queue has half of the pool to itself: 30 MB.
    assert_eq!(fired(&Switch { kmax: 30_000_001, ..GOOD }), ["pause-before-marks"]);
    assert_eq!(fired(&Switch { kmax: 30_000_000, ..GOOD }), [""; 0]);
}

#[test]
fn the_headroom_of_a_shorter_cable_is_found() {
    assert_eq!(fired(&Switch { length: "150m", ..GOOD }), ["short-headroom"]);
    let five = Switch { profile: "pg_lossless_400000_5m_profile", ..GOOD };
    let mut files = site();
    files[0].text = five.config();
    let answer = accepted(&files);
    let found = of_rule(&answer, "short-headroom");
    assert!(found[0].text.contains("5 m at 400000 Mb/s is on a cable of 40 m"), "{}", found[0].text);
    assert_eq!(found[0].places.len(), 4);
    assert!(
        found[0].places[0].to_string().contains("BUFFER_PG|Ethernet0|3|profile"),
        "{}",
        found[0].places[0]
    );
}

#[test]
fn data_without_marks_is_found() {
    assert_eq!(fired(&Switch { ecn: "ecn_none", ..GOOD }), ["no-marks"]);
}

#[test]
fn a_watchdog_later_than_nccl_is_found() {
    assert_eq!(fired(&Switch { detection: 5_000, ..GOOD }), ["late-watchdog"]);
    let mut files = site();
    files.push(file("site/nccl.conf", "NCCL_IB_TIMEOUT=14\nNCCL_IB_RETRY_CNT=5\nNCCL_IB_TC=96\n"));
    let answer = accepted(&files);
    let found = of_rule(&answer, "late-watchdog");
    assert!(
        found[0].text.contains("400 ms, and NCCL's senders end the job after 336 ms"),
        "{}",
        found[0].text
    );
    assert_eq!(value(&answer, &["nic", "timeout", "ib"]).unwrap().as_integer(), Some(14));
    assert!(of_rule(&answer, "lossy-class").is_empty(), "DSCP 24 is lossless here");
}

#[test]
fn headrooms_above_their_pool_are_found() {
    assert_eq!(fired(&Switch { xoff_pool: 300_000, ..GOOD }), ["shared-headroom"]);
}

#[test]
fn neighbours_that_disagree_are_found() {
    assert_eq!(fired(&Switch { fec: "none-of-these", ..GOOD }), ["neighbours"]);
    let slow = Switch {
        ports: &[
            ("Ethernet0", "gpu1", "eth0", 400_000),
            ("Ethernet8", "gpu2", "eth0", 400_000),
            ("Ethernet16", "spine1", "Ethernet0", 200_000),
        ],
        ..GOOD
    };
    let mut files = site();
    files[0].text = slow.config();
    let answer = accepted(&files);
    let found = of_rule(&answer, "neighbours");
    assert!(found[0].text.contains("disagree on the speed"), "{}", found[0].text);
    assert_eq!(found[0].places.len(), 2);
}

#[test]
fn equal_hash_seeds_on_two_tiers_are_found() {
    let mut files = site();
    files[2].text = Switch { kind: "ToRRouter", ..spine() }.config();
    assert_eq!(rules(&accepted(&files)), ["hash-seeds"]);
}

#[test]
fn data_on_a_lossy_class_is_found_from_the_configuration_alone() {
    let mut files = site();
    files[0].text = Switch { classes: [1, 1], ..GOOD }.config();
    let answer = accepted(&files);
    let found = of_rule(&answer, "lossy-class");
    assert_eq!(found.len(), 2);
    assert!(
        found[0].text.contains("NCCL sends DSCP 0 unless NCCL_IB_TC is set, which is class 1"),
        "{}",
        found[0].text
    );
    assert!(found[0].text.contains("lossless are DSCP 24"), "{}", found[0].text);
    assert!(found[1].text.contains("DSCP 26"), "{}", found[1].text);
    assert!(found[0].places.iter().any(|place| place.path == "DSCP_TO_TC_MAP|M|0"), "{:?}", found[0].places);
}

#[test]
fn a_job_whose_dscp_is_lossy_runs_without_pfc_here_too() {
    let mut files: Vec<_> = site();
    for (file, switch) in files.iter_mut().zip([GOOD, common::tor2(), spine()]) {
        file.text = Switch { classes: [1, 1], ..switch }.config();
    }
    files.push(file("site/nccl.conf", "NCCL_IB_TC=0\n"));
    let answer = accepted(&files);
    assert_eq!(value(&answer, &["switch", "pfc"]).unwrap().as_str(), Some("off"), "{}", answer.toml);
    assert_eq!(of_rule(&answer, "lossy-class").len(), 3);
}

#[test]
fn parts_of_a_configuration_are_one_switch() {
    let whole: serde_json::Value = serde_json::from_str(&GOOD.config()).unwrap();
    let (mut qos, mut rest) = (serde_json::Map::new(), serde_json::Map::new());
    for (table, value) in whole.as_object().unwrap() {
        let part = table.contains("QUEUE")
            || table.contains("MAP")
            || table.contains("WRED")
            || table == "SCHEDULER";
        if part { &mut qos } else { &mut rest }.insert(table.clone(), value.clone());
    }
    let text = |part: &serde_json::Map<_, _>| serde_json::to_string_pretty(part).unwrap();
    let mut files = site();
    files[0].text = text(&rest);
    files.insert(1, file("site/tor1/qos.json", text(&qos)));
    assert_eq!(accepted(&files).toml.matches("role = ").count(), 3);
}

#[test]
fn a_dump_of_the_database_and_old_references_are_read() {
    let flat = r#"{
        "PORT|Ethernet0": { "speed": "100000" }, "PORT|Ethernet4": { "speed": "100000" },
        "DEVICE_NEIGHBOR|Ethernet0": { "name": "Servers0", "port": "eth0" },
        "DEVICE_NEIGHBOR|Servers1": { "local_port": "Ethernet4", "port": "eth0", "type": "Server" },
        "QUEUE|Ethernet0,Ethernet4|3-4": { "wred_profile": "[WRED_PROFILE|X]" },
        "WRED_PROFILE|X": { "ecn": "ecn_all", "green_min_threshold": "1", "green_max_threshold": "2", "green_drop_probability": "5" },
        "PORT_QOS_MAP|Ethernet0,Ethernet4": { "pfc_enable": "3,4" }
    }"#;
    let answer = accepted(&[file("dump.json", flat)]);
    assert_eq!((answer.hosts, answer.switches, answer.links), (2, 1, 2));
    assert_eq!(value(&answer, &["switch", "ecn", "at-rate", "0", "kmax"]).unwrap().as_str(), Some("2B"));
}

#[test]
fn headroom_comes_from_the_table_of_profiles_if_the_switch_makes_them() {
    let config = r#"{
        "PORT": { "Ethernet0": { "speed": "100000" }, "Ethernet4": { "speed": "100000" } },
        "CABLE_LENGTH": { "AZURE": { "Ethernet0": "5m", "Ethernet4": "5m" } },
        "BUFFER_POOL": { "ingress_lossless_pool": { "size": "10000000" } },
        "PORT_QOS_MAP": { "Ethernet0": { "pfc_enable": "3" }, "Ethernet4": { "pfc_enable": "3" } }
    }"#;
    let table = "# speed cable size xon xoff threshold xon_offset\n100000 5m 1248 2288 53248 -3 2288\n";
    let answer = accepted(&[file("a/config_db.json", config), file("a/pg_profile_lookup.ini", table)]);
    let pfc = value(&answer, &["switch", "pfc"]).unwrap();
    assert_eq!(
        (pfc["headroom"].as_str(), pfc["alpha"].as_str()),
        (Some("53248B"), Some("1/8")),
        "{}",
        answer.toml
    );
    assert!(
        answer.assumed.iter().any(|text| text.contains("no file says what the ports")),
        "{:?}",
        answer.assumed
    );
}

#[test]
fn files_that_are_not_read_are_named() {
    let mut files = site();
    files.push(file("site/spine2.conf", "system {\n    host-name spine2;\n}\nclass-of-service {\n}\n"));
    files.push(file("site/leaf.cfg", "hostname leaf9\nspanning-tree mode mstp\ninterface Ethernet1\n"));
    files.push(file("site/nx.txt", "feature nxapi\nhostname n9k\n"));
    files.push(file("site/broken.json", "{\"PORT\": {\n\"Ethernet0\": }"));
    files.push(file("site/empty", "\n"));
    files.push(file("site/prose.md", "We bought three switches.\n"));
    let answer = accepted(&files);
    let why = |name: &str| {
        let row = answer.ignored.iter().find(|row| row.file == name).unwrap_or_else(|| panic!("{name}"));
        assert_eq!(row.field, site::WHOLE_FILE);
        row.what.clone()
    };
    assert!(why("site/spine2.conf").contains("this looks like a configuration of Junos, which is not read"));
    assert!(why("site/leaf.cfg").contains("EOS") && why("site/nx.txt").contains("NX-OS"));
    assert!(why("site/broken.json").contains("wrong at 2:"), "{}", why("site/broken.json"));
    assert_eq!(why("site/empty"), "it is empty");
    assert!(why("site/prose.md").contains("none of the files that are read"));
}

#[test]
fn files_without_a_fabric_are_refused() {
    let failed = import(&[file("nccl.conf", "NCCL_IB_TC=96\n")]).unwrap_err();
    assert!(failed.finding.text.contains("describe no cable and no port"), "{}", failed.finding.text);
    assert!(import(&[]).is_err());
}
