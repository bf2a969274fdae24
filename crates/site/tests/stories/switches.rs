//! Configurations of switches: what becomes a setting, what is ignored and why, and what contradicts.

use crate::common::{self, GOOD, Switch, accepted, file, of_rule, row, rules, site, spine, value};
use site::import;

#[test]
fn three_switches_become_one_fabric_with_their_thresholds() {
    let answer = accepted(&site());
    assert_eq!((answer.hosts, answer.switches, answer.links), (4, 3, 6), "{}", answer.toml);
    assert_eq!(rules(&answer), [""; 0], "{:#?}", answer.contradicts);
    let text = |path: &[&str]| value(&answer, path).unwrap_or_else(|| panic!("{path:?}\n{}", answer.toml));
    assert_eq!(text(&["switch", "pfc", "alpha"]).as_str(), Some("1"));
    assert_eq!(text(&["switch", "pfc", "xon-offset"]).as_str(), Some("3556B"));
    assert_eq!(text(&["switch", "guarantee"]).as_str(), Some("1664B"));
    let headroom = text(&["switch", "pfc", "headroom"]);
    assert_eq!(
        (headroom["xoff"].as_str(), headroom["shared-pool"].as_str()),
        (Some("280000B"), Some("4000000B"))
    );
    let watchdog = text(&["switch", "pfc", "watchdog"]);
    let of = |key: &str| watchdog[key].as_str();
    assert_eq!((of("detection-time"), of("restoration-time")), (Some("200ms"), Some("400ms")));
    assert_eq!((of("poll-interval"), of("action")), (Some("200ms"), Some("drop")));
    let ecn = text(&["switch", "ecn", "at-rate", "0"]);
    assert_eq!((ecn["kmax"].as_str(), ecn["pmax"].as_float()), (Some("2000000B"), Some(0.05)));
    // The pool, beside which headrooms lie.
    assert_eq!(text(&["switch", "buffer"]).as_str(), Some("60000000B"));
    // CNPs leave first, by their DSCP; DSCPs of no entry are traffic class 0, that is queue 0.
    let map = text(&["switch", "dscp-map"]);
    let queues: Vec<&toml::Value> = map.as_array().unwrap().iter().collect();
    assert_eq!(queues[0]["dscp"].as_array().unwrap()[0].as_integer(), Some(48));
    assert!(queues[0].get("weight").is_none() && queues[0].get("lossless").is_none(), "{map}");
    let data = queues.iter().find(|queue| queue.get("lossless").is_some()).unwrap();
    assert_eq!((data["dscp"].to_string().as_str(), data["weight"].as_integer()), ("[0, 24, 26]", Some(15)));
    assert_eq!(value(&answer, &["nic", "dscp"]), None, "DSCP 0 is lossless here");
    // 40 m at 5 ns/m.
    let link = text(&["topology", "links", "links", "0"]);
    assert_eq!((link[2].as_str(), link[3].as_str()), (Some("400Gbps"), Some("200000ps")));
}

#[test]
fn a_spectrum_switch_finds_storms_by_its_own_script() {
    let of = |name: &str, config: String| file(name, config.replace("Some-SKU", "Mellanox-SN9999"));
    let files =
        [of("site/tor1/config_db.json", GOOD.config()), of("site/spine1/config_db.json", spine().config())];
    let watchdog = value(&accepted(&files), &["switch", "pfc", "watchdog"]).unwrap();
    assert_eq!(watchdog["detection"].as_str(), Some("nvidia"));
    let others = value(&accepted(&site()), &["switch", "pfc", "watchdog"]).unwrap();
    assert!(others.get("detection").is_none(), "{others}");
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
    assert_eq!(row(&answer.read, "BUFFER_PROFILE size").what, "switch.guarantee");
    assert!(row(&answer.ignored, "WRED_PROFILE red_max_threshold").what.contains("green"));
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

/// A ToR and a spine of a known SKU: with ARS in the ToR, and a hash with buckets in the spine.
#[test]
fn a_known_sku_with_ars_and_a_hash_becomes_a_scenario_that_runs() {
    let more = |switch: &Switch<'_>, tables: &str| {
        let text = switch.config().replace("Some-SKU", "Arista-7060CX-32S");
        text.replacen("  \"NTP_SERVER\"", &format!("{tables}  \"NTP_SERVER\""), 1)
    };
    let ars = r#"  "ARS_PROFILE": { "p": { "algorithm": "ewma", "default_ars_object": "o", "max_flows": "4096", "sampling_interval": "10",
        "past_load_max_value": "100", "past_load_weight": "1", "future_load_weight": "5" } },
  "ARS_OBJECT": { "o": { "assign_mode": "per_flowlet_quality", "flowlet_idle_time": "100", "max_flows": "512",
        "alternative_path_cost": "250" } },
  "ARS_INTERFACES": { "Ethernet16": { "scaling_factor": "20" } },
"#;
    let hash = r#"  "SWITCH_HASH": { "GLOBAL": { "ecmp_hash": ["SRC_IP", "DST_IP", "L4_SRC_PORT"], "ecmp_hash_algorithm": "CRC_CCITT",
        "lag_hash": ["SRC_IP"] } },
  "FG_NHG": { "g": { "bucket_size": "120", "match_mode": "prefix-based" } },
"#;
    let spine = Switch { classes: [1, 3], ..spine() };
    let tors = [GOOD, common::tor2()].map(|tor| more(&Switch { classes: [1, 3], ..tor }, ars));
    let files = [
        file("s/a/config_db.json", tors[0].as_str()),
        file("s/b/config_db.json", tors[1].as_str()),
        file("s/c/config_db.json", more(&spine, hash)),
        file("s/gpu1/cnp_dscp", "46\n"),
    ];
    let answer = accepted(&files);
    let text = |path: &[&str]| {
        value(&answer, path).unwrap_or_else(|| panic!("{path:?}\n{}", answer.toml)).to_string()
    };
    // Roles of SONiC's tables have figures of their own for this SKU, so cells and slices are written, not the model.
    assert_eq!((text(&["switch", "cell"]), text(&["switch", "slices"])), ("\"208B\"".into(), "4".into()));
    assert_eq!(text(&["nic", "dscp"]), "24", "the first DSCP that leads to the lossless class");
    assert_eq!(text(&["nic", "cnp-dscp"]), "46");
    let ars = |key: &str| text(&["switch-role", "tor", "scheme", "ars", key]);
    assert_eq!(
        (ars("mode"), ars("idle"), ars("table")),
        ("\"flowlet-quality\"".into(), "\"100us\"".into(), "512".into())
    );
    assert_eq!(
        (ars("entries"), ars("interval"), ars("scale")),
        ("4096".into(), "\"10us\"".into(), "\"20Gbps\"".into())
    );
    assert_eq!((ars("past-weight"), ars("future-weight")), ("1".into(), "5".into()));
    let ecmp = |key: &str| text(&["switch-role", "spine", "scheme", "ecmp", key]);
    assert_eq!((ecmp("fields"), ecmp("function")), ("\"5-tuple\"".into(), "\"crc16\"".into()));
    assert_eq!((ecmp("seed"), ecmp("buckets")), ("\"by-role\"".into(), "120".into()));
    assert!(row(&answer.ignored, "ARS_PROFILE past_load_max_value").what.contains("unit"));
    assert!(row(&answer.ignored, "ARS_OBJECT alternative_path_cost").what.contains("Dragonfly"));
    // NCCL's DSCP 0 is lossy: told, and not simulated, since no file says that NICs send it.
    assert_eq!(rules(&answer), ["lossy-class"]);
    // One role: the model fills in what the file lacks.
    let alone = accepted(&files[..1]);
    assert_eq!(
        value(&alone, &["switch", "model"]).unwrap().as_str(),
        Some("sonic:Arista-7060CX-32S"),
        "{}",
        alone.toml
    );
}

#[test]
fn headrooms_of_several_cables_are_a_list() {
    let config = r#"{
        "PORT": { "Ethernet0": { "speed": "100000" }, "Ethernet4": { "speed": "100000" }, "Ethernet8": { "speed": "400000" } },
        "CABLE_LENGTH": { "AZURE": { "Ethernet0": "5m", "Ethernet4": "40m", "Ethernet8": "40m" } },
        "BUFFER_POOL": { "ingress_lossless_pool": { "size": "10000000" } },
        "PORT_QOS_MAP": { "Ethernet0,Ethernet4,Ethernet8": { "pfc_enable": "3" } }
    }"#;
    let table = "100000 5m 1248 2288 40000 -3 2288\n100000 40m 1248 2288 50000 -3 2288\n400000 40m 1248 2288 300000 -3 2288\n";
    let answer = accepted(&[file("a/config_db.json", config), file("a/pg_profile_lookup.ini", table)]);
    let xoff = value(&answer, &["switch", "pfc", "headroom", "xoff"]).unwrap();
    let all: Vec<(String, i64, String)> = xoff
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| {
            (
                entry["rate"].as_str().unwrap().into(),
                entry["metres"].as_integer().unwrap(),
                entry["xoff"].as_str().unwrap().into(),
            )
        })
        .collect();
    let expected = [("100Gbps", 5, "40000B"), ("100Gbps", 40, "50000B"), ("400Gbps", 40, "300000B")];
    assert_eq!(
        all,
        expected.map(|(rate, metres, xoff)| (rate.into(), metres, xoff.into())),
        "{}",
        answer.toml
    );
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
        (pfc["headroom"]["xoff"].as_str(), pfc["alpha"].as_str()),
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
    files.push(site::Input::unreadable("site/locked.json", "site/locked.json: it may not be read"));
    files.push(file("site/cables.csv", "side_a_device,side_a_name,side_b_device,side_b_name\n"));
    files.push(file("site/plan.dot", "graph plan {\n}\n"));
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
    assert_eq!(why("site/locked.json"), "site/locked.json: it may not be read");
    assert_eq!(why("site/cables.csv"), "it has no cable, no port and no setting");
    assert_eq!(why("site/plan.dot"), why("site/cables.csv"));
    assert!(why("site/prose.md").contains("none of the files that are read"));
}

#[test]
fn files_without_a_fabric_are_refused() {
    let failed = import(&[file("nccl.conf", "NCCL_IB_TC=96\n")]).unwrap_err();
    assert!(failed.finding.text.contains("describe no cable and no port"), "{}", failed.finding.text);
    assert!(import(&[]).is_err());
}
