mod mistakes;
mod mutations;
mod servers;
mod settings;

use super::*;
use crate::ideal::ideal_fct;
use finding::Finding;
use model::{HostId, Rate, Time};

/// Two hosts on each of two switches, joined by two more.
const PLAIN: &str = "8 4 8\n4 5 6 7\n0 4 100Gbps 1000ns 0\n1 4 100Gbps 0.001ms 0\n2 5 100Gbps 1us 0\n\
                     3 5 100Gbps 0.000001s 0.001\n4 6 100Gbps 1us 0\n4 7 100Gbps 1us 0\n5 6 100Gbps 1us 0\n\
                     5 7 100Gbps 1us 0\n";
const TORS: &str = "4 1 1 3\n3\n0 3 25000000000.0 1us 0\n1 3 25000000000.0 1us 0\n2 3 25000000000.0 1us 0\n";
const NV: &str = "6 2 1 1 5 H20\n4 5\n0 4 2400Gbps 0.000025ms 0\n1 4 2400Gbps 25ns 0\n\
                  2 5 400Gbps 1us 0\n3 5 400Gbps 1us 0\n4 5 400Gbps 1us 0\n";
const DIRECT: &str = "2 0 1\n\n0 1 100Gbps 1us 0\n";
/// Marking at the rate of all links.
const MAPS: &str = "KMAX_MAP 1 100000000000 1600\nKMIN_MAP 1 100000000000 400\nPMAX_MAP 1 100000000000 0.2\n";
const SIX: &str = "2\n0 2 3 100 10000000 2\n1 3 3 100 1000 2.5\n\n";

fn run(topology: &str, flows: &str, config: Option<&str>) -> Result<Imported, Finding> {
    let file = |name, text| File { name, text };
    import(file("t.txt", topology), file("f.txt", flows), config.map(|text| file("c.txt", text)))
}

fn plan(imported: &Imported) -> crate::Checked {
    crate::check(&Source::new("i.toml", &*imported.toml), &[]).unwrap()
}

#[test]
fn a_plain_topology_runs_with_the_numbers_of_its_family() {
    let got = run(PLAIN, SIX, None).unwrap();
    assert_eq!(got.warnings, Vec::<String>::new());
    let c = plan(&got);
    assert_eq!((c.plan.fabric.hosts(), c.plan.qps.len()), (4, 2));
    assert_eq!(ideal_fct(&c.plan, HostId(0), HostId(2), 10_000_000), Time::from_ns(838_265));
    let starts: Vec<_> = c.plan.messages.iter().map(|m| m.start).collect();
    assert_eq!(starts, [Time::from_ms(2_000), Time::from_ms(2_500)]);
    let lossy = c.plan.fabric.links().iter().filter(|l| !l.loss.is_zero()).count();
    assert_eq!(lossy, 2);
    assert_eq!(c.scenario.nic.cnp, rnic::notification::Cnp::Flag);
}

#[test]
fn all_dialects_are_told_apart() {
    let five = "1\n0 2 3 1000 2.000000001\n";
    let c = plan(&run(TORS, five, None).unwrap());
    assert_eq!(c.plan.fabric.links()[0].rate, Rate::from_gbps(25));
    assert_eq!(c.plan.messages[0].start, Time(2_000_000_001_000));
    let c = plan(&run(NV, "1\n0 3 3 1000 0\n", None).unwrap());
    assert_eq!(c.plan.fabric.role(c.plan.fabric.find("n4").unwrap()), "nvswitch");
    let c = plan(&run(DIRECT, "1\n0 1 3 1000 0\n", None).unwrap());
    assert_eq!((c.plan.fabric.hosts(), c.plan.switches.len()), (2, 0));
}

#[test]
fn a_configuration_sets_the_rest() {
    let config = "ENABLE_QCN 1\nCC_MODE 7\nRP_TIMER 300.000000\nRATE_AI 40Mb/s\nRATE_HAI 100Mb/s\nEWMA_GAIN 0.00390625\n\
                  KMAX_MAP 1 100000000000 1600\nKMIN_MAP 1 100000000000 400\nPMAX_MAP 1 100000000000 0.2\n\
                  BUFFER_SIZE 32\nPACKET_PAYLOAD_SIZE 1000\nENABLE_PFC 1\nSIMULATOR_STOP_TIME 4.00\nSTRANGE_KEY 1\n\
                  L2_ACK_INTERVAL 1\nLINK_DOWN 0 0 0\nFCT_OUTPUT_FILE x\n";
    let got = run(PLAIN, SIX, Some(config)).unwrap();
    assert_eq!(got.warnings, ["c.txt: keys that are not used: STRANGE_KEY"]);
    let c = plan(&got);
    assert_eq!(c.scenario.switch.buffer.get(), 32 << 20);
    let port = c.plan.ports[c.plan.fabric.base(c.plan.fabric.find("n4").unwrap()) as usize];
    assert_eq!(port.marking.map(|m| (m.kmin.get(), m.kmax.get())), Some((400_000, 1_600_000)));
    assert_eq!(c.scenario.nic.transport.name(), "go-back-n");
    assert_eq!(c.plan.stop_after, Some(Time::from_ms(4_000)));
    let rnic::CongestionConfig::Timely(timely) = &c.scenario.nic.congestion else {
        panic!("{:?}", c.scenario.nic)
    };
    assert_eq!((timely.additive_increase, timely.hyper_increase), (Rate(40_000_000), Rate(100_000_000)));
    // 1000 B of payload, 48 B of headers and a time stamp.
    assert_eq!(c.plan.wire.max_frame(), 1_056);
}

#[test]
fn a_configuration_of_hpcc_keeps_its_round_trip_and_its_codes() {
    let config = "CC_MODE 3\nU_TARGET 0.95\nMI_THRESH 0\nRATE_AI 50Mb/s\nRP_TIMER 900\nHAS_WIN 1\nVAR_WIN 1\nGLOBAL_T 1\n\
                  MULTI_RATE 0\n";
    let config = format!("{config}{MAPS}");
    let got = run(PLAIN, SIX, Some(&config)).unwrap();
    assert_eq!(got.warnings, [""; 0]);
    let c = plan(&got);
    let rnic::CongestionConfig::Hpcc(hpcc) = &c.scenario.nic.congestion else {
        panic!("{:?}", c.scenario.nic)
    };
    let longest = Some(rnic::congestion::hpcc::BaseRtt::Longest);
    assert_eq!((hpcc.base_rtt, hpcc.max_stage, hpcc.scale_increase), (longest, Some(0), false));
    assert_eq!(hpcc.unknown_rate, Some(Rate::from_gbps(25)));
    // 1000 B of payload, 48 B of headers and 42 B of telemetry.
    assert_eq!((c.plan.wire.max_frame(), c.plan.wire.ack), (1_090, 102));
    let dcqcn = plan(&run(PLAIN, SIX, Some("CC_MODE 1\nHAS_WIN 1\nVAR_WIN 1\nGLOBAL_T 0\n")).unwrap());
    let nic = &dcqcn.scenario.nic;
    assert_eq!((nic.window, nic.window_scales_with_rate), (Some(rnic::window::Window::Bdp), true));
}

#[test]
fn a_configuration_of_dctcp_keeps_its_gain_and_its_step() {
    let config =
        "CC_MODE 8\nEWMA_GAIN 0.0625\nDCTCP_RATE_AI 615Mb/s\nRATE_AI 50Mb/s\nMIN_RATE 100Mb/s\nHAS_WIN 1\n";
    let config = format!("{config}{MAPS}");
    let got = run(PLAIN, SIX, Some(&config)).unwrap();
    assert_eq!(got.warnings, [""; 0]);
    let nic = plan(&got).scenario.nic;
    let rnic::CongestionConfig::Dctcp(dctcp) = &nic.congestion else { panic!("{nic:?}") };
    assert_eq!((dctcp.gain, dctcp.additive_increase), (0.0625, Rate(615_000_000)));
    assert_eq!(
        (nic.cnp, nic.window),
        (rnic::notification::Cnp::Flag, Some(rnic::window::Window::LongestBdp))
    );
}

#[test]
fn a_configuration_of_pint_keeps_its_code_and_its_probability() {
    let config = format!(
        "CC_MODE 10\nPINT_LOG_BASE 1.01\nPINT_PROB 0.25\nU_TARGET 0.9\nMI_THRESH 0\nRATE_AI 50Mb/s\nHAS_WIN 1\nVAR_WIN 1\n\
         MULTI_RATE 1\n{MAPS}"
    );
    let got = run(PLAIN, SIX, Some(&config)).unwrap();
    assert_eq!(got.warnings, [""; 0]);
    let c = plan(&got);
    let rnic::CongestionConfig::Pint(pint) = &c.scenario.nic.congestion else {
        panic!("{:?}", c.scenario.nic)
    };
    assert_eq!((pint.log_base, pint.probability, pint.target_utilization), (1.01, 0.25, 0.9));
    assert_eq!(
        (pint.max_stage, pint.scale_increase, c.scenario.nic.window_scales_with_rate),
        (0, false, true)
    );
    // 1000 B of payload, 48 B of headers and a code of two bytes, which takes padding in ACKs.
    assert_eq!((c.plan.wire.max_frame(), c.plan.wire.ack), (1_050, 60));
    let absent = plan(&run(PLAIN, SIX, Some(&format!("CC_MODE 10\n{MAPS}"))).unwrap());
    assert_eq!(absent.plan.wire.max_frame(), 1_049);
}

#[test]
fn so_many_flows_are_read_as_the_first_line_states() {
    let got = run(PLAIN, "1\n0 2 3 100 1000 2\n0 3 3 100 1000 1\nprose\n", None).unwrap();
    assert_eq!(
        got.warnings,
        ["f.txt:1:1: the first line states 1 flows, so the 2 lines behind them are not read"]
    );
    assert_eq!(plan(&got).plan.messages.len(), 1);
    let cut = run(PLAIN, "3\n0 2 3 100 1000 2\n", None).unwrap_err();
    assert!(
        cut.located().ends_with("the file ends after 1 flows; its first line states 3"),
        "{}",
        cut.located()
    );
    let none = run(PLAIN, "0\n", None).unwrap();
    assert_eq!((none.report.sends, none.report.bytes), (0, 0));
    assert!(none.warnings[0].contains("there are no flows") && !none.toml.contains("[[workload]]"));
}

#[test]
fn conweaves_load_balancers_have_the_constants_of_the_program() {
    let scheme = |mode: &str| {
        let config = format!("LB_MODE {mode}\nENABLE_PFC 0\nBUFFER_SIZE 9\n{MAPS}");
        let got = run(PLAIN, "1\n0 2 3 1000 2\n", Some(&config)).unwrap();
        plan(&got);
        got.toml
    };
    for (mode, lines) in [
        ("0", "scheme.ecmp = { hash = \"conweave\" }\n"),
        ("2", "[scheme.drill]\n"),
        (
            "3",
            "[scheme.conga]\nflowlet-gap = \"100us\"\ndre-period = \"50us\"\ndre-alpha = 0.2\n\
             quantisation-bits = 3\nageing = \"500us\"\n",
        ),
        ("6", "[scheme.flowlet]\ngap = \"100us\"\n"),
        ("9\nCONWEAVE_PATH_PAUSE_TIME 16", "theta-path-busy = \"16us\"\ntheta-inactive = \"1ms\"\n"),
        // Two hops between ToRs, there and back, and the extra time.
        ("9\nCONWEAVE_REPLY_TIMEOUT_EXTRA 5", "theta-reply = \"9us\"\n"),
    ] {
        let toml = scheme(mode);
        assert!(toml.contains(lines), "{mode}: {toml}");
    }
}

#[test]
fn irn_of_conweave_repeats_everything_and_has_a_timer_without_pfc_alone() {
    let irn = |pfc: &str| {
        let config = format!("LB_MODE 0\nENABLE_IRN 1\nENABLE_PFC {pfc}\nBUFFER_SIZE 9\n{MAPS}");
        let config = format!("{config}TOPOLOGY_FILE config/leaf_spine_128_100G_OS2.txt\n");
        let got = run(PLAIN, "1\n0 2 3 1000 2\n", Some(&config)).unwrap();
        let c = plan(&got);
        assert_eq!(c.scenario.nic.transport.name(), "irn");
        got.toml
    };
    let lossless = irn("1");
    for line in ["bdp-cap = 104", "on-gap = \"all\"", "on-timeout = \"all\"", "few = 0", "timeout = \"none\""]
    {
        assert!(lossless.contains(line), "{line}: {lossless}");
    }
    // A file of an unknown name: four links of 1 us both ways and a packet of 1000 B each, at the rate of the first host's link.
    let config = format!("LB_MODE 0\nENABLE_IRN 1\nENABLE_PFC 1\nBUFFER_SIZE 9\n{MAPS}");
    let slower =
        run(&PLAIN.replace("5 7 100Gbps", "5 7 50Gbps"), "1\n0 2 3 1000 2\n", Some(&config)).unwrap();
    assert!(slower.toml.contains(&format!("bdp-cap = {}", 4 * (25 + 1))), "{}", slower.toml);
    let lossy = irn("0");
    for line in ["low-timeout = \"100us\"", "few = 3", "timeout = { fixed = \"320us\" }", "pfc = \"off\""] {
        assert!(lossy.contains(line), "{line}: {lossy}");
    }
}

#[test]
fn a_link_goes_down_for_good_and_routes_know_at_once() {
    let config = format!("LINK_DOWN 100 4 6\n{MAPS}");
    let got = run(PLAIN, SIX, Some(&config)).unwrap();
    assert!(got.toml.contains("[[failure]]\nlinks = [[\"n4\", \"n6\"]]\nat = \"2000100us\""), "{}", got.toml);
    assert!(got.toml.contains("[routing]\ndetection = \"0s\""));
    plan(&got);
    let error = run(PLAIN, SIX, Some("LINK_DOWN 100 4 99\n")).unwrap_err().located();
    assert!(error.starts_with("c.txt:1:17: there is no node 99"), "{error}");
    let got = run(PLAIN, SIX, Some(&format!("LINK_DOWN 100 0 6\n{MAPS}"))).unwrap();
    assert!(got.warnings.iter().any(|text| text.contains("no link joins the nodes 0 and 6, so none fails")));
}

#[test]
fn a_buffer_below_its_headrooms_wraps_as_in_32_bits() {
    // 3 x 100 Gb/s x 1 ms are 37.5 MB of headroom at the ends of the long link.
    let long = PLAIN.replace("4 6 100Gbps 1us", "4 6 100Gbps 1ms");
    let got = run(&long, SIX, Some(&format!("BUFFER_SIZE 32\n{MAPS}"))).unwrap();
    let wrap = got.warnings.iter().find(|text| text.contains("wraps to about 4 GB")).unwrap();
    assert!(wrap.contains("node 4's ports take") && wrap.contains("and those of 1 more switches"), "{wrap}");
    let c = plan(&got);
    let buffer = |name: &str| {
        let (node, hosts) = (c.plan.fabric.find(name).unwrap(), c.plan.fabric.hosts());
        c.plan.switches[node.index() - hosts].buffer.get()
    };
    assert!(buffer("n4") > 4_000_000_000 && buffer("n6") > 4_000_000_000);
    assert_eq!((buffer("n5"), buffer("n7")), (32 << 20, 32 << 20));
}

#[test]
fn absent_keys_have_the_values_of_the_program() {
    let got = run(PLAIN, SIX, Some(&format!("RP_TIMER 900\nEWMA_GAIN 0.1\nCC_MODE 1\n{MAPS}"))).unwrap();
    let c = plan(&got);
    assert_eq!(c.scenario.switch.buffer.get(), 16 << 20);
    assert_eq!(c.scenario.nic.window, Some(rnic::window::Window::LongestBdp));
    assert!(!c.scenario.nic.window_scales_with_rate);
    let note = got.notes.iter().find(|note| note.contains("BUFFER_SIZE 16")).unwrap();
    assert!(note.contains("HAS_WIN 1") && note.contains("VAR_WIN 0"), "{note}");
}

#[test]
fn what_the_scenario_cannot_do_is_a_warning_with_its_consequence() {
    let config = format!(
        "CC_MODE 3\nFAST_REACT 0\nRATE_BOUND 0\nL2_BACK_TO_ZERO 1\nL2_ACK_INTERVAL 9\nVAR_WIN 1\n{MAPS}"
    );
    let warnings = run(PLAIN, SIX, Some(&config)).unwrap().warnings;
    for text in [
        "c.txt:2:12: FAST_REACT 0 is not available: ",
        "c.txt: the file lacks MULTI_RATE, which is 1 then: ",
        "c.txt:3:12: RATE_BOUND 0 is not available: ",
        "c.txt:4:17: L2_BACK_TO_ZERO 1 is not available: ",
        "c.txt:5:17: L2_ACK_INTERVAL 9 is not available: ",
    ] {
        assert!(warnings.iter().any(|warning| warning.starts_with(text)), "{text}: {warnings:#?}");
    }
}

#[test]
fn words_behind_values_are_skipped_as_the_programs_skip_them() {
    let config = format!("BUFFER_SIZE\n9 {{the buffer, MB}}\nBUFFER_SIZE 10\n{MAPS}");
    let got = run(PLAIN, SIX, Some(&config)).unwrap();
    assert_eq!(plan(&got).scenario.switch.buffer.get(), 10 << 20, "the last value of a key holds");
    assert!(
        got.warnings.iter().any(|text| text.contains("3 words behind values are skipped")),
        "{:?}",
        got.warnings
    );
}

#[test]
fn loops_and_parallel_links_are_left_out() {
    let more = PLAIN.replace("8 4 8", "8 4 10") + "4 4 1600Gbps 100ns 0\n4 6 50Gbps 1us 0\n";
    let got = run(&more, SIX, None).unwrap();
    assert!(
        got.warnings[0].contains("links of a switch with itself (1, the first at node 4)"),
        "{:?}",
        got.warnings
    );
    assert!(
        got.warnings[1].contains("parallel links (1, the first between nodes 4 and 6)"),
        "{:?}",
        got.warnings
    );
    let c = plan(&got);
    assert_eq!(c.plan.fabric.links().iter().filter(|link| link.rate == Rate::from_gbps(50)).count(), 2);
}

#[test]
fn flows_of_hosts_with_several_links_keep_a_link_of_a_shortest_path() {
    let two = PLAIN.replace("8 4 8", "8 4 9") + "0 5 100Gbps 1us 0\n";
    let flows: String = (0..20).map(|n| format!("0 1 3 {n} 1000 2\n")).collect();
    let got = run(&two, &format!("21\n{flows}0 2 3 100 1000 2\n"), None).unwrap();
    // Node 1 is next to switch 4, node 2 next to switch 5.
    assert_eq!(got.toml.matches("from = \"n0p0\", to = \"n1\"").count(), 20);
    assert_eq!(got.toml.matches("from = \"n0p1\", to = \"n2\"").count(), 1);
    assert!(got.notes.iter().any(|note| note.contains("1 hosts have several links")), "{:?}", got.notes);
    plan(&got);
}

#[test]
fn inet_tubs_late_flows_start_at_once_and_others_are_refused() {
    let late = "2\n0 2 3 1000 2\n1 2 3 1000 1\n";
    let starts: Vec<_> =
        plan(&run(TORS, late, None).unwrap()).plan.messages.iter().map(|m| m.start).collect();
    assert_eq!(starts, [Time::from_ms(2_000); 2]);
    assert!(run(PLAIN, late, None).is_err());
}

proptest::proptest! {
    #[test]
    fn no_file_panics(t in "[0-9 a-z\n.]{0,80}", f in "[0-9 \n.e-]{0,80}", c in "[A-Z_]{1,9} [0-9. ]{0,9}\n") {
        let _ = run(&t, SIX, None);
        let _ = run(PLAIN, &f, Some(&c));
        let _ = run(PLAIN, SIX, Some(&c));
    }
}
