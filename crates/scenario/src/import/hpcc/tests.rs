mod mistakes;
mod mutations;
mod servers;

use super::*;
use crate::ideal::ideal_fct;
use model::{HostId, Rate, Time};

/// Two hosts on each of two switches, joined by two more.
const PLAIN: &str = "8 4 8\n4 5 6 7\n0 4 100Gbps 1000ns 0\n1 4 100Gbps 0.001ms 0\n2 5 100Gbps 1us 0\n\
                     3 5 100Gbps 0.000001s 0.001\n4 6 100Gbps 1us 0\n4 7 100Gbps 1us 0\n5 6 100Gbps 1us 0\n\
                     5 7 100Gbps 1us 0\n";
const TORS: &str = "4 1 1 3\n3\n0 3 25000000000.0 1us 0\n1 3 25000000000.0 1us 0\n2 3 25000000000.0 1us 0\n";
const NV: &str = "6 2 1 1 5 H20\n4 5\n0 4 2400Gbps 0.000025ms 0\n1 4 2400Gbps 25ns 0\n\
                  2 5 400Gbps 1us 0\n3 5 400Gbps 1us 0\n4 5 400Gbps 1us 0\n";
const DIRECT: &str = "2 0 1\n\n0 1 100Gbps 1us 0\n";
const SIX: &str = "2\n0 2 3 100 10000000 2\n1 3 3 100 1000 2.5\n\n";

fn run(topology: &str, flows: &str, config: Option<&str>) -> Result<Imported, Error> {
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
                  BUFFER_SIZE 32\nPACKET_PAYLOAD_SIZE 1000\nENABLE_PFC 1\nSIMULATOR_STOP_TIME 4.00\nODD 1\n\
                  LINK_DOWN 0 0 0\nFCT_OUTPUT_FILE x\n";
    let got = run(PLAIN, SIX, Some(config)).unwrap();
    assert_eq!(
        got.warnings,
        [
            "c.txt:2:9: congestion control 7 (TIMELY) is not available; DCQCN replaces it",
            "c.txt: keys that are not used: ODD"
        ]
    );
    let c = plan(&got);
    assert_eq!(c.scenario.switch.buffer.get(), 32 << 20);
    let port = c.plan.ports[c.plan.fabric.base(c.plan.fabric.find("n4").unwrap()) as usize];
    assert_eq!(port.marking.map(|m| (m.kmin.get(), m.kmax.get())), Some((400_000, 1_600_000)));
    assert_eq!(c.scenario.nic.transport.name(), "go-back-n");
    assert_eq!(c.plan.stop_after, Some(Time::from_ms(4_000)));
    let got = run(PLAIN, SIX, Some("LB_MODE 2\nENABLE_IRN 1\nENABLE_PFC 0\nBUFFER_SIZE 9")).unwrap();
    let c = plan(&got);
    assert_eq!((c.scheme_name(), c.scenario.nic.transport.name()), ("drill", "nic-sr"));
}

#[test]
fn a_configuration_of_hpcc_keeps_its_round_trip_and_its_codes() {
    let config = "CC_MODE 3\nU_TARGET 0.95\nMI_THRESH 0\nRATE_AI 50Mb/s\nRP_TIMER 900\nHAS_WIN 1\nVAR_WIN 1\nGLOBAL_T 1\n";
    let got = run(PLAIN, SIX, Some(config)).unwrap();
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
    let got = run(PLAIN, SIX, Some(config)).unwrap();
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
fn more_flows_than_announced_are_a_warning_and_fewer_an_error() {
    let got = run(PLAIN, "1\n0 2 3 100 1000 2\n0 3 3 100 1000 2\n", None).unwrap();
    assert_eq!(got.warnings, ["f.txt:1:1: the first line states 1 flows; there are 2"]);
    let cut = run(PLAIN, "3\n0 2 3 100 1000 2\n", None).unwrap_err();
    assert!(
        cut.located().ends_with("the file ends after 1 flows; its first line states 3"),
        "{}",
        cut.located()
    );
}

proptest::proptest! {
    #[test]
    fn no_file_panics(t in "[0-9 a-z\n.]{0,80}", f in "[0-9 \n.e-]{0,80}", c in "[A-Z_]{1,9} [0-9. ]{0,9}\n") {
        let _ = run(&t, SIX, None);
        let _ = run(PLAIN, &f, Some(&c));
        let _ = run(PLAIN, SIX, Some(&c));
    }
}
