//! The bounds of every setting: the last possible value on each side, and the first impossible one.

use crate::NicConfig;

/// Field that `[nic]` with this text is refused for, if any.
fn refused(text: &str) -> Option<String> {
    let config: NicConfig = toml::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    config.validate().err().map(|invalid| invalid.path())
}

/// Checks values of one setting; `table` is empty for settings of `[nic]` itself.
fn check(table: &str, setting: &str, possible: &[&str], impossible: &[&str]) {
    let text = |value: &str| match table {
        "" => format!("{setting} = {value}\n"),
        // Some controls need flags instead of CNPs, and all accept them.
        _ => format!("cnp = \"flag\"\n[{table}]\n{setting} = {value}\n"),
    };
    for value in possible {
        assert_eq!(refused(&text(value)), None, "{table} {setting} = {value}");
    }
    for value in impossible {
        let field =
            refused(&text(value)).unwrap_or_else(|| panic!("{table} {setting} = {value} is accepted"));
        assert!(field.contains(setting), "{table} {setting} = {value}: {field}");
    }
}

#[test]
fn settings_of_the_nic_have_their_bounds() {
    check("", "ack-every", &["1", "4294967295"], &["0"]);
    check(
        "",
        "timeout",
        &[
            "{ fixed = \"1ps\" }",
            "{ ib = 0 }",
            "{ ib = 31 }",
            "{ ib-floor = 31 }",
            "{ adp = 31 }",
            "\"none\"",
        ],
        &["{ fixed = \"0us\" }", "{ ib = 32 }", "{ ib-floor = 32 }", "{ adp = 32 }"],
    );
    check(
        "",
        "backoff",
        &["{ factor = 1, cap = \"1ps\" }"],
        &["{ factor = 0, cap = \"1ms\" }", "{ cap = \"0us\" }"],
    );
    assert_eq!(refused("timeout = { adp = 14 }\nbackoff = { cap = \"1ms\" }").as_deref(), Some("backoff"));
    check("", "window", &["{ bytes = \"1B\" }", "\"bdp\""], &["{ bytes = \"0B\" }"]);
    assert_eq!(refused("window-scales-with-rate = true").as_deref(), Some("window-scales-with-rate"));
    assert_eq!(refused("window-scales-with-rate = true\nwindow = \"bdp\""), None);
}

#[test]
fn reactions_have_their_bounds_and_some_need_a_rate() {
    for setting in ["on-nack", "on-timeout"] {
        let needs_rate = ["{ to = 1e-9 }", "{ to = 1.0 }", "\"to-min-rate\""];
        check("", setting, &needs_rate, &["{ to = 0.0 }", "{ to = 1.000001 }", "{ to = nan }"]);
        check("", setting, &["{ stall = \"1ps\" }", "\"none\""], &["{ stall = \"0us\" }"]);
        for value in needs_rate {
            let text = format!("{setting} = {value}\n[congestion.swift]\n");
            assert!(refused(&text).is_some_and(|field| field.starts_with(setting)), "{text}");
        }
    }
}

#[test]
fn a_control_that_counts_marks_needs_them_as_flags() {
    assert_eq!(refused("[congestion.mp-rdma]").as_deref(), Some("cnp"));
    assert_eq!(refused("cnp = \"flag\"\n[congestion.mp-rdma]"), None);
}

#[test]
fn settings_of_congestion_controls_have_their_bounds() {
    let share = (&["1e-9", "1.0"][..], &["0.0", "1.000001", "nan"][..]);
    let above_0 = (&["1e-9", "1e9"][..], &["0.0", "-1.0", "inf", "nan"][..]);
    let rate = (&["\"1bps\""][..], &["\"0bps\""][..]);
    for dcqcn in ["congestion.dcqcn", "congestion.dcqcn-hpcc"] {
        for timer in ["rate-increase-timer", "rate-decrease-interval", "alpha-timer"] {
            check(dcqcn, timer, &["\"10ns\""], &["\"9999ps\""]);
        }
        check(dcqcn, "gain", share.0, share.1);
        check(dcqcn, "min-rate", rate.0, rate.1);
    }
    check("congestion.dcqcn-hpcc", "rate-on-first-cnp", share.0, share.1);
    check("congestion.dcqcn", "initial-alpha", share.0, share.1);
    check("congestion.dcqcn", "cut-per-alpha", share.0, share.1);
    check("congestion.dcqcn", "cut-floor", &["0.0", "1.0"], &["-0.1", "1.000001", "nan"]);
    let dctcp = "congestion.dctcp";
    check(dctcp, "gain", share.0, share.1);
    check(dctcp, "min-rate", rate.0, rate.1);
    let hpcc = "congestion.hpcc";
    check(hpcc, "target-utilization", share.0, share.1);
    check(hpcc, "min-rate", rate.0, rate.1);
    check(hpcc, "base-rtt", &["{ fixed = \"1ps\" }", "\"pair\""], &["{ fixed = \"0us\" }"]);
    check(hpcc, "window", &["\"1B\""], &["\"0B\""]);
    check(hpcc, "int-hops", &["1", "15"], &["0", "16"]);
    check(hpcc, "cnp-cut", &["1e-9", "0.999999"], &["0.0", "1.0", "nan"]);
    check(hpcc, "unknown-rate", rate.0, rate.1);
    let pint = "congestion.pint";
    check(pint, "target-utilization", share.0, share.1);
    check(pint, "probability", share.0, share.1);
    check(pint, "log-base", &["1.0002", "2.0"], &["1.0", "1.0001", "inf", "nan"]);
    check(pint, "resolution", &["2", "4096"], &["1", "4097"]);
    check(pint, "base-rtt", &["\"1ps\""], &["\"0us\""]);
    check(pint, "min-rate", rate.0, rate.1);
    let timely = "congestion.timely";
    check(timely, "alpha", share.0, share.1);
    check(timely, "beta", share.0, share.1);
    check(timely, "min-rtt", &["\"1ps\""], &["\"0us\""]);
    check(timely, "t-high", &["\"50us\""], &["\"49us\""]);
    check(timely, "min-rate", rate.0, rate.1);
    let swift = "congestion.swift";
    check(swift, "base-target", &["\"1ps\""], &["\"0us\""]);
    check(swift, "flow-scale-min-window", &["1e-9", "99.9"], &["0.0", "inf", "nan"]);
    check(swift, "flow-scale-max-window", &["0.11", "1e9"], &["0.1", "0.0", "inf", "nan"]);
    check(swift, "additive-increase", above_0.0, above_0.1);
    check(swift, "beta", share.0, share.1);
    check(swift, "max-decrease", &["1e-9", "0.999999"], &["0.0", "1.0", "nan"]);
    check(swift, "min-window", &["1e-9", "1.0"], &["0.0", "1.000001", "nan"]);
    check(swift, "max-window", &["1", "8388607"], &["0", "8388608"]);
}

#[test]
fn settings_of_recovery_modes_have_their_bounds() {
    // Serial numbers of 24 bits compare correctly while they are less than 2^23 apart.
    let packets = (&["1", "8388607"][..], &["0", "8388608"][..]);
    check("transport.go-back-n", "max-outstanding", packets.0, packets.1);
    check("transport.go-back-n", "renack-interval", &["\"1ps\""], &["\"0us\""]);
    check("transport.nic-sr", "max-outstanding", packets.0, packets.1);
    check("transport.nic-sr", "reorder-window", packets.0, packets.1);
    check("transport.sr-sack", "max-outstanding", packets.0, packets.1);
    check("transport.sr-sack", "reorder-window", packets.0, packets.1);
    check("transport.ideal", "max-outstanding", packets.0, packets.1);
    check("transport.ideal", "reorder-window", packets.0, packets.1);
    check("transport.irn", "bdp-cap", packets.0, packets.1);
    check("transport.irn", "low-timeout", &["\"1ps\""], &["\"0us\""]);
    check("transport.mp-rdma", "bitmap", packets.0, packets.1);
    check("transport.adaptive-routing", "reorder-window", packets.0, packets.1);
    check("transport.dcp", "message-packets", &["1", "4194304"], &["0", "4194305"]);
    // The sender's limit follows the receiver's window unless it is set.
    assert_eq!(refused("[transport.adaptive-routing]\nreorder-window = 64\nmax-outstanding = 64"), None);
    let over = refused("[transport.adaptive-routing]\nreorder-window = 64\nmax-outstanding = 65");
    assert_eq!(over.as_deref(), Some("transport.adaptive-routing.max-outstanding"));
}
