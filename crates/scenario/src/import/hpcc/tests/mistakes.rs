//! Every error of the import: the wrong file, and the message with its place.

use super::*;
use finding::Finding;

const FIRST: &str = "expected \"nodes switches links\", \"nodes switches tors links\" or \"nodes gpus-per-server nvswitches switches links gpu-type\"";

/// The file that is wrong; the other two are right.
#[derive(Clone, Copy)]
enum Wrong<'a> {
    Topology(&'a str),
    Flows(&'a str),
    Config(&'a str),
    /// A topology and its flows.
    Both(&'a str, &'a str),
}
use Wrong::{Both, Config, Flows, Topology};

fn error(wrong: Wrong<'_>) -> Option<Finding> {
    let imported = match wrong {
        Topology(text) => run(text, SIX, None),
        Flows(text) => run(PLAIN, text, None),
        Config(text) => run(PLAIN, SIX, Some(text)),
        Both(topology, flows) => run(topology, flows, None),
    };
    imported.err()
}

#[test]
fn every_error_has_a_place_and_the_expected_words() {
    let links = "8 4 8\n4 5 6 7\n4 6 100Gbps 1us 0\n4 7";
    let cut = &PLAIN[..PLAIN.len() - 14];
    let first = |n: u32| format!("t.txt:1:1: the first line has {n} words; {FIRST}");
    let (two, one, seven) = (first(2), first(1), first(7));
    let cases: &[(Wrong<'_>, &str)] = &[
        // The first line of a topology.
        (Topology(""), "t.txt:1:1: the topology file is empty; expected \"nodes switches links\""),
        (Topology(" \n\n"), "t.txt:1:1: the topology file is empty; expected \"nodes switches links\""),
        (Topology("8 4"), &two),
        (Topology(SIX), &one),
        (Topology("1 2 3 4 5 6 7"), &seven),
        (Topology("x 4 8\n"), "t.txt:1:1: expected the number of nodes, a number, found \"x\""),
        (Topology("8 -4 8\n"), "t.txt:1:3: expected the number of switches, a number, found \"-4\""),
        (Topology("8 4 x\n"), "t.txt:1:5: expected the number of links, a number, found \"x\""),
        (
            Topology("8 4 99999999999\n"),
            "t.txt:1:5: expected the number of links, a number, found \"99999999999\", which is too large",
        ),
        (Topology("8 2 y 1 5 H20\n"), "t.txt:1:5: expected the number of NVSwitches, a number, found \"y\""),
        (Topology("2000000 4 8\n"), "t.txt:1:1: expected at most 1048576 nodes, found 2000000"),
        // Switches and links of a topology.
        (Topology("8 4 8\n4 5"), "t.txt:2:4: the file ends after 2 ids of switches; its first line states 4"),
        (Topology("8 4 8\n4 5 6 a"), "t.txt:2:7: expected the id of a node, a number, found \"a\""),
        (Topology("8 4 8\n4 5 6 9"), "t.txt:2:7: there is no node 9; the first line states 8 nodes, from 0"),
        (Topology("8 4 8\n4 5 5 6"), "t.txt:2:5: the switch 5 is listed twice"),
        (
            Topology(cut),
            "t.txt:10:4: the file ends inside a link: 2 of the 5 words \"from to rate delay error\"",
        ),
        (
            Topology(links),
            "t.txt:4:4: the file ends inside a link: 2 of the 5 words \"from to rate delay error\"",
        ),
        (
            Topology("2 0 2\n0 1 100Gbps 1us 0\n"),
            "t.txt:2:18: the file ends after 1 links; its first line states 2",
        ),
        (
            Topology("2 0 1\n0 7 1Gbps 1us 0\n"),
            "t.txt:2:3: there is no node 7; the first line states 2 nodes, from 0",
        ),
        (
            Topology("2 0 1\n0 1 100Gbs 1us 0\n"),
            "t.txt:2:5: unknown rate unit \"Gbs\"; did you mean \"Gbps\"?",
        ),
        (
            Topology("2 0 1\n0 1 1Gbps 1u 0\n"),
            "t.txt:2:11: unknown time unit \"u\"; expected one of us, ns, ms, ps, s",
        ),
        (
            Topology("2 0 1\n0 1 100Gbps 1us 7\n"),
            "t.txt:2:17: expected an error rate between 0 and 1, found 7",
        ),
        (Topology("2 0 1\n0 1 100Gbps 1us e\n"), "t.txt:2:17: expected an error rate, a number, found \"e\""),
        // Flows.
        (Flows(""), "f.txt:1:1: the flow file is empty; expected the number of flows"),
        (Flows("two\n"), "f.txt:1:1: expected the number of flows, a number, found \"two\""),
        (Flows(PLAIN), "f.txt:1:3: expected only the number of flows in the first line"),
        (Flows("2\n"), "f.txt:1:2: the file ends after 0 flows; its first line states 2"),
        (Flows("3\n0 2 3 100 1000 2\n"), "f.txt:2:17: the file ends after 1 flows; its first line states 3"),
        (
            Flows("2\n0 2 3 100 1000 2\n1 3 3"),
            "f.txt:3:5: expected 6 words as in the first flow, found 3; is the file cut off?",
        ),
        (
            Flows("2\n0 2 3 100 1000 2\n1 3 3 100 1000 2 9"),
            "f.txt:3:18: expected 6 words as in the first flow, found 7",
        ),
        (
            Flows("1\n0 2\n"),
            "f.txt:2:1: expected 6 words, \"from to class port bytes start\", or 5 without the port; found 2",
        ),
        (Flows("1\na 2 3 100 1000 2\n"), "f.txt:2:1: expected the id of a host, a number, found \"a\""),
        (Flows("1\n0 12 3 100 1000 2\n"), "f.txt:2:3: there is no host 12; the topology has 8 nodes, from 0"),
        (Flows("1\n0 4 3 100 1000 2\n"), "f.txt:2:3: node 4 is a switch; flows go from host to host"),
        (Flows("1\n0 0 3 100 1000 2\n"), "f.txt:2:3: host 0 cannot send to itself"),
        (Flows("1\n0 2 3 100 1e3 2\n"), "f.txt:2:11: expected a size in bytes, a number, found \"1e3\""),
        (Flows("1\n0 2 3 100 0 2\n"), "f.txt:2:11: expected at least 1 byte, found 0"),
        (
            Flows("2\n0 2 3 100 1000 2\n1 3 3 100 1000 1.5\n"),
            "f.txt:3:16: flows must be in order of their starts; found a start at 1500ms after 2s",
        ),
        // Keys of a configuration.
        (Config("RP_TIMER"), "c.txt:1:1: the key RP_TIMER has no value"),
        (Config("PACKET_PAYLOAD_SIZE x"), "c.txt:1:21: expected a payload in bytes, a number, found \"x\""),
        (Config("ERROR_RATE_PER_LINK 2"), "c.txt:1:21: expected an error rate between 0 and 1, found 2"),
        (Config("BUFFER_SIZE 9MB"), "c.txt:1:13: expected a buffer in MiB, a number, found \"9MB\""),
        (Config("\nENABLE_PFC on"), "c.txt:2:12: expected 0 or 1, a number, found \"on\""),
        (Config("ENABLE_QCN yes"), "c.txt:1:12: expected 0 or 1, a number, found \"yes\""),
        (Config("ACK_HIGH_PRIO yes"), "c.txt:1:15: expected 0 or 1, a number, found \"yes\""),
        (Config("KMIN_MAP x"), "c.txt:1:10: expected a number of pairs, a number, found \"x\""),
        (
            Config("KMIN_MAP 2 1Gbps 4"),
            "c.txt:1:10: expected 2 pairs of rate and value after KMIN_MAP, found 2 words",
        ),
        (Config("KMIN_MAP 1 1Gbs 4"), "c.txt:1:12: unknown rate unit \"Gbs\"; did you mean \"Gbps\"?"),
        (Config("KMIN_MAP 1 1Gbps 4"), "c.txt:1:18: KMIN_MAP has the rate 1Gbps, KMAX_MAP has not"),
        (
            Config("KMIN_MAP 1 1Gbps a\nKMAX_MAP 1 1Gbps 4"),
            "c.txt:1:18: expected a threshold in kB, found \"a\"",
        ),
        (
            Config("KMIN_MAP 1 1Gbps 4\nKMAX_MAP 1 1Gbps b"),
            "c.txt:2:18: expected a threshold in kB, found \"b\"",
        ),
        (
            Config("KMIN_MAP 1 1Gbps 4\nKMAX_MAP 1 1Gbps 8\nPMAX_MAP 1 1Gbps 3"),
            "c.txt:3:18: expected a probability between 0 and 1, found 3",
        ),
        (Config("CC_MODE HPCC"), "c.txt:1:9: expected a congestion control, a number, found \"HPCC\""),
        (Config("GLOBAL_T x"), "c.txt:1:10: expected 0 or 1, a number, found \"x\""),
        (
            Config("L2_BACK_TO_ZERO x"),
            "c.txt:1:17: expected a value of L2_BACK_TO_ZERO, a number, found \"x\"",
        ),
        (Config("CC_MODE 3\nU_TARGET 9"), "c.txt:2:10: expected a utilisation between 0 and 1, found 9"),
        (Config("CC_MODE 3\nMI_THRESH x"), "c.txt:2:11: expected a number of steps, a number, found \"x\""),
        (Config("CC_MODE 3\nRATE_AI 5Mbs"), "c.txt:2:9: unknown rate unit \"Mbs\"; did you mean \"Mbps\"?"),
        (Config("RP_TIMER 5us"), "c.txt:1:10: expected a number of microseconds, found \"5us\""),
        (Config("FAST_RECOVERY_TIMES x"), "c.txt:1:21: expected a number of steps, a number, found \"x\""),
        (Config("EWMA_GAIN 2"), "c.txt:1:11: expected a gain between 0 and 1, found 2"),
        (Config("CLAMP_TARGET_RATE x"), "c.txt:1:19: expected 0 or 1, a number, found \"x\""),
        (Config("HAS_WIN x"), "c.txt:1:9: expected 0 or 1, a number, found \"x\""),
        (Config("HAS_WIN 1\nVAR_WIN x"), "c.txt:2:9: expected 0 or 1, a number, found \"x\""),
        (Config("CC_MODE 8\nEWMA_GAIN -1"), "c.txt:2:11: expected a gain between 0 and 1, found -1"),
        (Config("LB_MODE 0\nENABLE_IRN x"), "c.txt:2:12: expected 0 or 1, a number, found \"x\""),
        (Config("LB_MODE letflow"), "c.txt:1:9: expected a load balancer, a number, found \"letflow\""),
        (
            Config("SIMULATOR_STOP_TIME 4m"),
            "c.txt:1:21: unknown time unit \"m\"; expected one of us, ns, ms, ps, s",
        ),
        // Files that are right by themselves, but whose scenario cannot run.
        (
            Both("4 1 2\n3\n0 3 1Gbps 1us 0\n1 3 1Gbps 1us 0\n", "1\n0 1 3 1 0\n"),
            "t.txt:1:1: the imported scenario cannot run: host n2 has no link",
        ),
        (
            Both(&PLAIN.replace("100Gbps", "0Gbps"), SIX),
            "t.txt:3:1: the imported scenario cannot run: expected a rate of at least 100Mbps, found 0Gbps",
        ),
        (
            Both("2 0 2\n0 0 100Gbps 1us 0\n0 1 100Gbps 1us 0\n", "1\n0 1 3 1 0\n"),
            "t.txt:2:1: the imported scenario cannot run: the link connects `n0` with itself",
        ),
        (
            Both("2 0 1\n0 1 100Gbps 0us 0\n", "1\n0 1 3 1 0\n"),
            "t.txt:2:1: the imported scenario cannot run: a link needs a delay above 0",
        ),
        (
            Both("4 2 2\n2 3\n0 2 100Gbps 1us 0\n1 3 100Gbps 1us 0\n", "1\n0 1 3 1 0\n"),
            "f.txt:2:3: no path leads from host 0 to host 1",
        ),
        (
            Both("3 2 1\n1 2\n0 1 100Gbps 1us 0\n", "1\n0 0 3 1 0\n"),
            "f.txt:2:3: host 0 cannot send to itself",
        ),
        (
            Flows("1\n0 2 3 100 18446744073709551615 2\n"),
            "f.txt:2:11: the imported scenario cannot run: expected at most 1 PiB, found 18446744073709551615B",
        ),
        (
            Flows("1\n0 2 3 100 1000 99999999999\n"),
            "f.txt:2:16: \"99999999999s\" is too large: at most 18446744073709551615 picoseconds are possible",
        ),
        (
            Config("PACKET_PAYLOAD_SIZE 0"),
            "c.txt:1:21: the imported scenario cannot run: expected a frame of 50 B to 16383 B, found 48 B",
        ),
        (
            Config("PACKET_PAYLOAD_SIZE 100000"),
            "c.txt:1:21: the imported scenario cannot run: expected a frame of 50 B to 16383 B, found 100048 B",
        ),
        (
            Config("RP_TIMER 0"),
            "c.txt:1:10: the imported scenario cannot run: `rate-increase-timer` must be at least 10ns",
        ),
        (
            Config("MIN_RATE 0"),
            "c.txt:1:10: the imported scenario cannot run: `min-rate` must be above 0: a queue pair at rate 0 never sends again",
        ),
        (
            Config("EWMA_GAIN 0"),
            "c.txt:1:11: the imported scenario cannot run: `gain` must be above 0 and at most 1",
        ),
        (
            Config("CC_MODE 3\nU_TARGET 0"),
            "c.txt:2:10: the imported scenario cannot run: `target-utilization` must be above 0 and at most 1",
        ),
        (
            Config("SIMULATOR_STOP_TIME 0"),
            "c.txt:1:21: the imported scenario cannot run: expected a time above 0 and at most 1000000s, found 0s",
        ),
    ];
    let mut wrong = String::new();
    for &(files, want) in cases {
        let got = error(files).map_or_else(|| "no error".to_owned(), |error| error.located());
        if got != want {
            wrong.push_str(&format!("got  {got}\nwant {want}\n\n"));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn files_that_are_swapped_are_recognised() {
    for (wrong, help) in [
        (Topology(SIX), "which `ropewalk import hpcc --flows` reads"),
        (Flows(PLAIN), "which `ropewalk import hpcc --topology` reads"),
        (Flows("CC_MODE 3\n"), "which `ropewalk import hpcc --config` reads"),
        (Config(SIX), "which `ropewalk import hpcc --flows` reads"),
    ] {
        let error = error(wrong).unwrap();
        assert!(error.help.as_deref().is_some_and(|text| text.contains(help)), "{error:?}");
    }
}

#[test]
fn a_key_that_is_not_used_is_a_warning_with_the_nearest_key() {
    let got = run(PLAIN, SIX, Some("ENABLE_QCN 0\nKMIN_MPA 1 1Gbps 4\nSTRANGE_KEY 1\nFLOW_ON_PATH_FILE x\n"))
        .unwrap();
    let near = "c.txt:2:1: the key KMIN_MPA is not used; did you mean KMIN_MAP?";
    assert_eq!(got.warnings, [near, "c.txt: keys that are not used: STRANGE_KEY, FLOW_ON_PATH_FILE"]);
}
