//! Settings that follow from keys, and what a user reads where a key has no setting.

use super::*;
use rnic::congestion::hpcc::BaseRtt;
use rnic::window::Window;

/// The import of [`PLAIN`] with these keys and with [`MAPS`].
fn with(keys: &str) -> Imported {
    run(PLAIN, SIX, Some(&format!("{keys}\n{MAPS}"))).unwrap()
}

/// Asserts that one of the warnings has this text.
fn warned(imported: &Imported, text: &str) {
    assert!(
        imported.warnings.iter().any(|warning| warning.contains(text)),
        "{text}: {:#?}",
        imported.warnings
    );
}

#[test]
fn windows_are_those_of_all_hosts_or_of_the_pair_and_may_follow_the_rate() {
    for (keys, window, scales) in [
        ("HAS_WIN 1", Some(Window::LongestBdp), false),
        ("HAS_WIN 1\nGLOBAL_T 0", Some(Window::Bdp), false),
        ("HAS_WIN 1\nGLOBAL_T 0\nVAR_WIN 1", Some(Window::Bdp), true),
        ("HAS_WIN 0\nVAR_WIN 1", None, false),
    ] {
        for mode in ["1", "7", "8", "10"] {
            let nic = plan(&with(&format!("CC_MODE {mode}\n{keys}"))).scenario.nic;
            assert_eq!((nic.window, nic.window_scales_with_rate), (window, scales), "CC_MODE {mode}, {keys}");
        }
    }
    let base = |keys: &str| match plan(&with(keys)).scenario.nic.congestion {
        rnic::CongestionConfig::Hpcc(hpcc) => hpcc.base_rtt,
        other => panic!("{other:?}"),
    };
    assert_eq!(base("CC_MODE 3\nGLOBAL_T 0"), Some(BaseRtt::Pair));
    assert_eq!(base("CC_MODE 3\nGLOBAL_T 1"), Some(BaseRtt::Longest));
    warned(&with("CC_MODE 3\nHAS_WIN 0"), "HPCC without a window is not available");
    warned(&with("CC_MODE 3\nVAR_WIN 0"), "HPCC with a fixed window is not available");
}

#[test]
fn controls_that_ropewalk_lacks_are_a_warning_with_the_one_that_runs() {
    let none = with("CC_MODE 4");
    warned(&none, "there is no congestion control 4: the program sends at line rate then");
    assert!(none.toml.contains("[nic.congestion.none]"));
    let power = run(TORS, "1\n0 2 3 1000 2\n", Some("CC_MODE 3\nENABLE_QCN 0\n")).unwrap();
    warned(&power, "ropewalk has no PowerTCP, so the scenario has HPCC");
}

#[test]
fn a_step_of_pint_that_the_file_gives_is_not_scaled() {
    assert!(with("CC_MODE 10\nRATE_AI 40Mb/s").toml.contains("scale-increase = false"));
    assert!(!with("CC_MODE 10").toml.contains("scale-increase"));
}

#[test]
fn a_word_of_three_capitals_at_the_start_of_a_line_is_a_key_and_a_shorter_one_is_skipped() {
    let skipped = "2 words behind values are skipped";
    warned(&with("AB 1"), skipped);
    let key = with("ABC 1");
    assert!(!key.warnings.iter().any(|warning| warning.contains("skipped")), "{:?}", key.warnings);
    warned(&key, "ABC");
}

#[test]
fn thresholds_of_pfc_double_with_the_rate_in_hpccs_program() {
    // Uplinks of 400 Gb/s and 1.6 Tb/s; NICs have 100 Gb/s.
    let fast = PLAIN.replace("4 6 100Gbps", "4 6 400Gbps").replace("5 7 100Gbps", "5 7 1600Gbps");
    let maps = "KMAX_MAP 3 100000000000 9 400000000000 9 1600000000000 9\n\
                KMIN_MAP 3 100000000000 4 400000000000 4 1600000000000 4\n\
                PMAX_MAP 3 100000000000 0.2 400000000000 0.2 1600000000000 0.2\n";
    let c = plan(&run(&fast, SIX, Some(&format!("BUFFER_SIZE 32\n{maps}"))).unwrap());
    let alpha = |from: &str, to: &str| {
        let fabric = &c.plan.fabric;
        let (from, to) = (fabric.find(from).unwrap(), fabric.find(to).unwrap());
        let port = fabric.ports(from).iter().position(|link| link.to == to).unwrap();
        c.plan.ports[fabric.base(from) as usize + port].alpha
    };
    assert_eq!([alpha("n4", "n7"), alpha("n4", "n6"), alpha("n5", "n7")], [None, Some((1, 2)), Some((1, 1))]);
    // ConWeave's program has 1/16 for every port.
    let conweave = with("LB_MODE 0\nBUFFER_SIZE 9");
    assert!(conweave.toml.contains("pfc = { alpha = \"1/16\" }"), "{}", conweave.toml);
}

#[test]
fn acks_share_the_queue_of_data_unless_the_program_has_loops() {
    for (keys, line, warning) in [
        ("ACK_HIGH_PRIO 0", Some("classes = \"one\""), None),
        ("ACK_HIGH_PRIO 1", Some("classes = \"one\""), Some("the ACKs of a paused NIC wait here")),
        ("LB_MODE 0\nBUFFER_SIZE 9", None, None),
    ] {
        let got = with(keys);
        assert_eq!(got.toml.contains("classes"), line.is_some(), "{keys}: {}", got.toml);
        assert!(line.is_none_or(|line| got.toml.contains(line)), "{keys}: {}", got.toml);
        if let Some(text) = warning {
            warned(&got, text);
        }
    }
    let loops = PLAIN.replace("8 4 8", "8 4 9") + "4 4 100Gbps 100ns 0\n";
    let got = run(&loops, SIX, Some(&format!("ACK_HIGH_PRIO 1\nHAS_WIN 1\n{MAPS}"))).unwrap();
    assert!(!got.toml.contains("classes") && !got.toml.contains("window"), "{}", got.toml);
    assert!(got.notes.iter().any(|note| note.contains("ignores HAS_WIN")), "{:?}", got.notes);
}

#[test]
fn buffers_are_those_of_the_program() {
    // 0 stands for 375 kB per port: four at n4 and n5, two at n6 and n7.
    let c = plan(&with("LB_MODE 0\nBUFFER_SIZE 0"));
    let sizes: Vec<u64> = c.plan.switches.iter().map(|switch| switch.buffer.get()).collect();
    assert_eq!(sizes, [1_500_000, 1_500_000, 750_000, 750_000]);
    // 5000 MiB are 904 MiB in 32 bits.
    let wrapped = plan(&with("LB_MODE 0\nBUFFER_SIZE 5000"));
    assert_eq!(wrapped.plan.switches[0].buffer.get(), 904 << 20);
    // inet-tub's programs add the headrooms: 3 x 25 Gb/s x 1 us for each of three ports.
    let tub = run(TORS, "1\n0 2 3 1000 2\n", Some("BUFFER_SIZE 1\nENABLE_QCN 0\n")).unwrap();
    assert_eq!(plan(&tub).plan.switches[0].buffer.get(), (1 << 20) + 3 * 3 * 3_125);
}

#[test]
fn rates_without_thresholds_are_told() {
    let fast = PLAIN.replace("4 6 100Gbps", "4 6 400Gbps");
    let got = run(&fast, SIX, Some(MAPS)).unwrap();
    warned(&got, "KMIN_MAP lacks rates of links (400Gbps): the program stops there");
    let got = run(PLAIN, SIX, Some("KMAX_MAP 1 100000000000 9\nKMIN_MAP 1 100000000000 4\n")).unwrap();
    warned(&got, "PMAX_MAP lacks the rate 100Gbps");
    assert!(got.toml.contains("kmin = \"4kB\", kmax = \"9kB\", pmax = 0.2"), "{}", got.toml);
    assert!(!with("ENABLE_QCN 0").toml.contains("kmin"));
}

#[test]
fn runs_end_when_the_program_ends() {
    let after = |keys: &str| plan(&with(keys)).plan.stop_after;
    assert_eq!(after("CC_MODE 1"), Some(Time::from_ms(3_010)));
    assert_eq!(after("LB_MODE 0\nBUFFER_SIZE 9\nFLOWGEN_STOP_TIME 2.1"), Some(Time::from_ms(12_100)));
    let endless = with("SIMULATOR_STOP_TIME 40000000000000.00");
    assert_eq!(plan(&endless).plan.stop_after, None);
    assert!(endless.notes.iter().any(|note| note.contains("is never reached")), "{:?}", endless.notes);
    warned(&with("SIMULATOR_STOP_TIME 2.2"), "this flow and all later ones start after the stop at 2200ms");
}

#[test]
fn lossy_links_lose_replies_as_well() {
    for (keys, lose) in [("ERROR_RATE_PER_LINK 0.01", true), ("ERROR_RATE_PER_LINK 0", true)] {
        // One link of the topology has an error rate of its own.
        assert_eq!(plan(&with(keys)).plan.lose_replies, lose, "{keys}");
    }
    let clean = PLAIN.replace("0.001\n", "0\n");
    assert!(!plan(&run(&clean, SIX, Some(MAPS)).unwrap()).plan.lose_replies);
}

#[test]
fn flows_of_several_priority_groups_and_between_gpus_of_a_server_are_told() {
    let got = run(PLAIN, "2\n0 2 3 100 1000 2\n1 2 4 100 1000 2\n", None).unwrap();
    warned(&got, "flows have 2 priority groups, which have queues of their own there");
    let got = run(super::servers::RAILS, "2\n0 1 3 100 1000 2\n0 2 3 100 1000 2\n", None).unwrap();
    warned(&got, "1 flows join GPUs of one server");
}

#[test]
fn seeds_and_start_times_of_conweaves_generator_are_kept() {
    let got = with("LB_MODE 0\nBUFFER_SIZE 9\nRANDOM_SEED 7\nFLOWGEN_START_TIME 3.0\nLINK_DOWN 5 4 6");
    assert_eq!(plan(&got).plan.seed, 7);
    assert!(got.toml.contains("at = \"3000005us\""), "{}", got.toml);
    warned(&with("LB_MODE 1\nBUFFER_SIZE 9"), "there is no load balancer 1: the program has ECMP then");
}

#[test]
fn the_long_haul_system_is_in_switches_48_and_49_of_its_prototype() {
    // Two datacentres with an external switch each; the headroom of the long link exceeds the buffers.
    let topology = |low: u32| {
        let high = low + 1;
        let hosts = (0..50).filter(|id| ![2, 3, 4, low, high].contains(id));
        let links: String = hosts.map(|id| format!("{id} {} 100Gbps 1us 0\n", 2 + id % 2)).collect();
        format!(
            "50 5 49\n2 3 4 {low} {high}\n2 4 100Gbps 1us 0\n2 {low} 100Gbps 1us 0\n3 {high} 100Gbps 1us 0\n{low} {high} 100Gbps 5ms 0\n{links}"
        )
    };
    let on = |topology: &str, value: &str| {
        let config = format!("CC_MODE 1\nBUFFER_SIZE 32\nENABLE_THEMIS {value}\n{MAPS}");
        run(topology, "1\n0 1 3 100 1000 2\n", Some(&config)).unwrap()
    };
    let got = on(&topology(48), "1");
    let scenario = plan(&got).scenario;
    let settings = &scenario.switch_role["external"];
    assert!(settings.buffer.is_some_and(|buffer| buffer.get() > 4_000_000_000), "{}", got.toml);
    assert_eq!(settings.feedback.as_ref().map(schemes::FeedbackConfig::name), Some("long-haul"));
    assert_eq!(scenario.switch_role.len(), 1, "the role of wrapped buffers is gone: {}", got.toml);
    assert!(got.toml.contains("reaction = \"prototype\""), "{}", got.toml);
    for (got, note) in [(on(&topology(48), "0"), false), (on(&topology(40), "1"), true)] {
        assert!(!got.toml.contains("long-haul"), "{}", got.toml);
        assert_eq!(got.notes.iter().any(|note| note.contains("in switches 48 and 49 alone")), note);
    }
}

#[test]
fn telemetry_has_room_for_every_switch_of_a_path() {
    let chain = |switches: usize| {
        let ids: Vec<String> = (2..2 + switches).map(|id| id.to_string()).collect();
        let links: String = (2..1 + switches).map(|id| format!("{id} {} 100Gbps 1us 0\n", id + 1)).collect();
        let topology = format!(
            "{} {switches} {}\n{}\n0 2 100Gbps 1us 0\n1 {} 100Gbps 1us 0\n{links}",
            2 + switches,
            1 + switches,
            ids.join(" "),
            1 + switches
        );
        run(&topology, "1\n0 1 3 100 1000 2\n", Some(&format!("CC_MODE 3\nMULTI_RATE 0\nVAR_WIN 1\n{MAPS}")))
            .unwrap()
    };
    assert_eq!(chain(5).warnings, [""; 0]);
    let long = chain(7);
    warned(&long, "paths cross 7 switches, and the telemetry of the program has room for 5");
    assert!(long.toml.contains("int-hops = 7"));
    plan(&long);
}
