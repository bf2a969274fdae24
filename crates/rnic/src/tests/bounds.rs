//! The bounds of every setting: the last possible value on each side, and the first impossible one.

use crate::NicConfig;

/// Field that `[nic]` with this text is refused for, if any.
pub(crate) fn refused(text: &str) -> Option<String> {
    let config: NicConfig = toml::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    config.validate().err().map(|invalid| invalid.path())
}

/// Values of a setting that is a share: the last possible ones, and the first impossible ones.
pub(crate) const SHARE: (&[&str], &[&str]) = (&["1e-9", "1.0"], &["0.0", "1.000001", "nan"]);

/// Values of a factor above 0.
pub(crate) const ABOVE_0: (&[&str], &[&str]) = (&["1e-9", "1e9"], &["0.0", "-1.0", "inf", "nan"]);

/// Values of a rate.
pub(crate) const RATE: (&[&str], &[&str]) = (&["\"1bps\""], &["\"0bps\""]);

/// Values of a number of packets: serial numbers of 24 bits compare correctly while they are less than 2^23 apart.
pub(crate) const PACKETS: (&[&str], &[&str]) = (&["1", "8388607"], &["0", "8388608"]);

/// Checks values of one setting; `table` is empty for settings of `[nic]` itself.
pub(crate) fn check(table: &str, setting: &str, possible: &[&str], impossible: &[&str]) {
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
