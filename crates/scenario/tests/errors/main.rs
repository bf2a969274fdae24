//! Errors of scenarios that users got wrong: file, line, column, and the nearest right word.

mod cases;

use scenario::{Source, check};

const HEAD: &str = "[topology.leaf-spine]\nleaves = 4\nspines = 2\nhosts-per-leaf = 2\n";
const JOB: &str = "[[workload]]\nneighbour-ring = {}\n";

/// The error of a text with `--set` changes, with its position.
fn error_of(text: &str, set: &[&str]) -> String {
    let set: Vec<String> = set.iter().map(|&s| s.to_owned()).collect();
    match check(&Source::new("s.toml", text), &set) {
        Ok(_) => format!("accepted: {text}"),
        Err(e) => e.located(),
    }
}

/// Checks that every text of a topic gives its error; reports all that differ at once.
fn assert_errors(cases: &[cases::Case]) {
    let mut wrong = String::new();
    for (text, want) in cases {
        let text = text.replace('H', HEAD);
        let text = if text.ends_with('J') { text.replace('J', JOB) } else { text };
        let got = error_of(&text, &[]);
        if got != *want {
            wrong.push_str(&format!("got  {got}\nwant {want}\n\n"));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

macro_rules! topics {
    ($($test:ident: $cases:ident,)+) => {
        $(#[test]
        fn $test() {
            assert_errors(cases::$cases);
        })+
    };
}

topics! {
    mistakes_in_files_have_a_position: FILES,
    mistakes_in_leaf_spine_fabrics_have_a_position: LEAF_SPINES,
    mistakes_in_fat_trees_have_a_position: FAT_TREES,
    mistakes_in_dragonflies_have_a_position: DRAGONFLIES,
    mistakes_in_lists_of_links_have_a_position: LINKS,
    mistakes_in_failures_have_a_position: FAILURES,
    mistakes_in_splits_have_a_position: SPLITS,
    mistakes_in_losses_have_a_position: LOSSES,
    mistakes_in_switches_have_a_position: SWITCHES,
    mistakes_in_nics_have_a_position: NICS,
    mistakes_in_schemes_have_a_position: SCHEMES,
    mistakes_in_jobs_have_a_position: JOBS,
    mistakes_in_traffic_have_a_position: TRAFFIC,
    mistakes_in_poisson_flows_have_a_position: POISSON,
    mistakes_in_runs_have_a_position: RUNS,
}

#[test]
fn mistakes_in_a_set_point_into_it() {
    let text = format!("{HEAD}{JOB}");
    for (set, want) in [
        ("topology.leaf-spine.spines=0", "--set:1:28: a leaf-spine fabric needs at least 1 spine"),
        (
            "topology.leaf-spine.rate=400",
            "--set:1:26: expected a rate with a unit such as \"400Gbps\", found the bare number 400",
        ),
        ("scheme.ecpm={}", "--set:1:1: unknown name `ecpm`; did you mean `ecmp`?"),
        ("sed=1", "--set:1:1: unknown key `sed`; did you mean `seed`?"),
        ("workload.0.byte=1MB", "--set:1:1: unknown key `byte`; did you mean `bytes`?"),
        ("workload.9.bytes=1MB", "--set:1:1: expected an entry between 0 and 1, found 9"),
        ("seed", "--set:1:1: expected KEY=VALUE, such as seed=7"),
        // serde alone would take these by position.
        ("topology.leaf-spine=[4,4,4]", "--set:1:21: expected a table, found an array"),
        ("switch=[\"16MB\"]", "--set:1:8: expected a table, found an array"),
        ("nic.congestion.dcqcn=[\"55us\"]", "--set:1:22: expected a table, found an array"),
        ("switch.pfc=[]", "--set:1:12: expected \"on\", \"off\" or a table of settings, found an array"),
    ] {
        assert_eq!(error_of(&text, &[set]), want);
    }
    assert!(
        error_of(&text, &["workload.0.bytes=1MB", "topology.leaf-spine.spines=4"]).starts_with("accepted")
    );
}

#[test]
fn a_report_marks_the_line() {
    let error = check(&Source::new("s.toml", format!("{HEAD}rate = \"400Gbs\"\n{JOB}")), &[]).unwrap_err();
    let report = format!("{error:?}");
    for part in ["s.toml:5:8", "rate = \"400Gbs\"", "^^^^^^^^", "did you mean \"Gbps\"?"] {
        assert!(report.contains(part), "{report}");
    }
}

#[test]
fn an_unknown_scenario_suggests_the_nearest_name() {
    let error = scenario::find("themis-fig2").unwrap_err();
    assert_eq!(error.help.as_deref(), Some("did you mean `themis-fig1`?"));
    let uec = scenario::find("uec").unwrap_err();
    let help = "`uec` is a recovery mode of NICs, such as those of `ndp`, `ultra-ethernet`";
    assert_eq!(uec.help.as_deref(), Some(help));
}

#[test]
fn broken_texts_and_changes_give_errors_and_no_panic() {
    // Cut, doubled and swapped pieces of a scenario that has nearly everything.
    let text = format!(
        "{HEAD}{JOB}[switch.ecn]\nat-rate = [{{ rate = \"1Gbps\", kmin = \"1B\", kmax = \"2B\", pmax = 1 }}]\n"
    );
    for cut in (0..text.len()).filter(|&i| text.is_char_boundary(i)) {
        error_of(&text[..cut], &[]);
        error_of(&text[cut..], &[]);
        error_of(&text, &[&text[cut..].replace('\n', " ")]);
    }
    for key in
        ["topology", "workload.0", "workload.0.x.y", "switch.pfc.alpha", "nic.transport", "scheme", "record"]
    {
        for value in [
            "",
            "[]",
            "{}",
            "off",
            "0",
            "-1",
            "nan",
            "1979-05-27",
            "[[[1]]]",
            "99999999999999999999",
            "\"",
            "{a=",
        ] {
            error_of(&text, &[&format!("{key}={value}")]);
        }
    }
}

#[test]
fn adaptive_routing_mode_does_not_react_to_nacks_and_refuses_a_reaction() {
    let text = format!("{HEAD}[nic.transport.adaptive-routing]\n{JOB}");
    let checked = check(&Source::new("s.toml", text.clone()), &[]).unwrap();
    assert!(checked.to_toml().contains("on-nack = \"none\""));
    assert!(error_of(&text, &["nic.on-nack=none"]).starts_with("accepted"));
    let conflict = error_of(&text, &["nic.on-nack={stall=\"1us\"}"]);
    assert!(
        conflict.starts_with("--set:1:13: with `transport.adaptive-routing` receivers send no NACKs"),
        "{conflict}"
    );
}

#[test]
fn themis_over_go_back_n_is_warned_of() {
    let warnings = |more: &str| {
        let text = format!("{HEAD}{more}{JOB}");
        check(&Source::new("s.toml", text), &[]).unwrap().warnings()
    };
    assert_eq!(warnings("[scheme.themis]\n"), [""; 0]);
    assert_eq!(warnings("[scheme.ecmp]\n[nic.transport.go-back-n]\n"), [""; 0]);
    for themis in ["[scheme.themis]", "[switch-role.leaf.scheme.themis]"] {
        let [warning] = &warnings(&format!("{themis}\n[nic.transport.go-back-n]\n"))[..] else {
            panic!("{themis}")
        };
        assert!(warning.starts_with("themis over `transport.go-back-n` cannot help"), "{warning}");
    }
}

/// Warnings of a small leaf-spine whose switches drop, with these keys.
fn lossy(keys: &str) -> String {
    let text = format!("{HEAD}[switch]\npfc = \"off\"\n{keys}{JOB}");
    check(&Source::new("s.toml", text), &[]).unwrap_or_else(|e| panic!("{e}")).warnings().join("\n")
}

#[test]
fn nacks_of_cut_packets_that_themis_may_block_are_warned_of() {
    let of = |keys: &str| lossy(&format!("cut = \"on\"\n[nic.transport.uec]\n{keys}\n"));
    let text = of("[scheme.themis]");
    assert!(text.starts_with("themis over `transport.uec`: its NACKs report trimmed packets"), "{text}");
    assert!(text.ends_with("set `scheme.themis.filter = false`"), "{text}");
    assert_eq!(of("[scheme.themis]\nfilter = false"), "");
    assert_eq!(of("[scheme.rps]"), "");
    // Without cuts there is no NACK to block.
    assert_eq!(lossy("[nic.transport.uec]\ninfer-loss = true\n[scheme.themis]\n"), "");
    let dcp = lossy("cut = \"on\"\n[nic.transport.dcp]\n[scheme.themis]\n");
    assert!(!dcp.contains("themis over"), "{dcp}");
}

#[test]
fn losses_that_only_the_timer_finds_are_warned_of() {
    let uec = lossy("[nic.transport.uec]\n");
    assert!(uec.starts_with("only the timer of `transport.uec` finds packets that a switch drops"), "{uec}");
    assert!(uec.ends_with("or `infer-loss = true` in `nic.transport.uec`"), "{uec}");
    let dcp = lossy("[nic.transport.dcp]\n");
    assert!(dcp.contains("only the timer of `transport.dcp`") && dcp.ends_with("cut = \"on\"`"), "{dcp}");
    assert!(
        lossy("[nic.transport.mrc]\nlost-after = 0\n").ends_with("`lost-after = 3` in `nic.transport.mrc`")
    );
    for fine in [
        "[nic.transport.uec]\ninfer-loss = true\n",
        "cut = \"on\"\n[nic.transport.uec]\n",
        "[nic.transport.mrc]\n",
        "[nic.transport.nic-sr]\n",
        "[nic.transport.ideal]\n",
    ] {
        assert_eq!(lossy(fine), "", "{fine}");
    }
    let text = format!("{HEAD}[nic.transport.uec]\n{JOB}");
    assert_eq!(check(&Source::new("s.toml", text), &[]).unwrap().warnings(), [""; 0], "PFC loses nothing");
}

#[test]
fn inferred_losses_beside_cuts_are_warned_of_unless_packets_may_be_lost() {
    let of = |keys: &str| lossy(&format!("cut = \"on\"\n[nic.transport.uec]\ninfer-loss = true\n{keys}"));
    let text = of("");
    assert!(
        text.starts_with("`infer-loss` of `transport.uec` may repeat packets that are only late"),
        "{text}"
    );
    assert_eq!(of("[links]\nloss = 1e-4\n"), "");
    assert_eq!(lossy("cut = \"on\"\n[nic.transport.mrc]\n"), "", "MRC has no such setting");
}

#[test]
fn rates_that_no_port_has_are_warned_of() {
    let of = |keys: &str| lossy(&format!("queue-cap = \"90kB\"\n{keys}\n"));
    let cap = |rate: &str| of(&format!("queue-cap-at-rate = [{{ rate = \"{rate}\", cap = \"50kB\" }}]"));
    assert_eq!(
        cap("40Gbps"),
        "`switch.queue-cap-at-rate` has no effect: no port has such a rate; ports have 400Gbps"
    );
    assert_eq!(cap("400Gbps"), "");
    let ecn = |rates: &str| {
        of(&format!(
            "[switch.ecn]\nat-rate = [{}]",
            rates
                .split(' ')
                .map(|rate| format!("{{ rate = \"{rate}\", kmin = \"1kB\", kmax = \"2kB\", pmax = 1 }}"))
                .collect::<Vec<_>>()
                .join(", ")
        ))
    };
    assert!(ecn("40Gbps").starts_with("`switch.ecn.at-rate` has no effect"), "{}", ecn("40Gbps"));
    assert_eq!(ecn("40Gbps 400Gbps"), "", "a list for several fabrics");
}

/// Two hosts that are joined by one link with this delay.
fn far_apart(delay: &str, settings: &str) -> scenario::Checked {
    let text = format!(
        "[topology.links]\nhosts = 2\nrate = \"100Gbps\"\ndelay = \"{delay}\"\nlinks = [[\"host0\", \"host1\"]]\n\
         {settings}[[workload]]\nflows = {{ list = [{{ from = \"host0\", to = \"host1\", bytes = \"1MB\" }}] }}\n"
    );
    check(&Source::new("s.toml", text), &[]).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn a_timeout_shorter_than_the_round_trip_is_warned_of() {
    let warning = |delay: &str| far_apart(delay, "").warnings().join("\n");
    assert_eq!(warning("400us"), "");
    let text = warning("4ms");
    assert!(
        text.starts_with(
            "the retransmission timeout of 1ms (`nic.timeout`) is shorter than the round trip of 8000.1 us"
        ),
        "{text}"
    );
    assert!(text.ends_with("from host0 to host1; packets are sent again although none is lost"), "{text}");
    let low = far_apart("60us", "[nic.transport.irn]\n").warnings().join("\n");
    assert!(
        low.starts_with("the retransmission timeout of 100us (`nic.transport.irn.low-timeout`) is shorter"),
        "{low}"
    );
    let long = far_apart("4ms", "[nic]\ntimeout = { fixed = \"20ms\" }\n");
    assert_eq!(long.warnings(), [""; 0]);
}

/// 1 MB takes 84.6 us at 100 Gb/s; the ACK of its first packet would be back after 2 us.
#[test]
fn a_timeout_shorter_than_a_whole_message_is_warned_of_if_only_its_end_is_acknowledged() {
    let warning = |settings: &str| far_apart("1us", settings).warnings().join("\n");
    let short = "[nic]\ntimeout = { fixed = \"50us\" }\n";
    assert_eq!(warning(short), "");
    let text = warning(&format!("{short}ack-per-message = true\n"));
    let begin = "the retransmission timeout of 50us (`nic.timeout`) is shorter than the time until the only ACK of a message \
                 (`nic.ack-per-message`) comes back: 86.";
    assert!(text.starts_with(begin), "{text}");
    assert_eq!(warning(&format!("{short}ack-every = 100\n")), "");
    let text = warning(&format!("{short}ack-every = 500\n"));
    assert!(text.contains("the time until an ACK (`nic.ack-every`) comes back: 62."), "{text}");
}

/// The sender waits for an ACK, and the receiver for more packets.
#[test]
fn a_window_smaller_than_what_the_receiver_acknowledges_is_warned_of() {
    let warning = |settings: &str| far_apart("1us", &format!("[nic]\n{settings}\n")).warnings().join("\n");
    let end = "holds fewer, a sender waits for its retransmission timeout";
    let swift = "[nic.congestion.swift]\nmax-window = 1";
    assert_eq!(
        warning(&format!("ack-every = 2\n{swift}")),
        format!(
            "with `nic.ack-every = 2` an ACK comes after up to 2 packets; where the window of `swift` {end}"
        )
    );
    assert_eq!(
        warning("ack-every = 9\nwindow = { bytes = \"9kB\" }"),
        format!("with `nic.ack-every = 9` an ACK comes after up to 9 packets; where `nic.window` {end}")
    );
    assert!(warning("ack-per-message = true\nwindow = \"bdp\"").contains("up to 696 packets"));
    // In a round trip of two links of 1 us, line rate sends 18 packets.
    assert!(warning("ack-every = 40\nwindow = \"bdp\"").contains("where `nic.window` holds fewer"));
    assert!(
        warning("ack-every = 2\nwindow = \"bdp\"\nwindow-scales-with-rate = true").contains("`nic.window`")
    );
    // The window of adaptive routing holds 64 packets.
    let few = warning("ack-per-message = true\n[nic.transport.adaptive-routing]");
    assert!(few.contains("696 packets; where the window of `adaptive-routing` holds fewer"), "{few}");
    assert_eq!(warning("ack-every = 64\n[nic.transport.adaptive-routing]"), "");
    // The scheme brings its own control with a window.
    let own = warning("ack-per-message = true\n[scheme.mp-rdma]");
    assert!(own.contains("where the window of `mp-rdma` holds fewer"), "{own}");
    for fine in [swift, "ack-every = 4\nwindow = \"bdp\"", "ack-every = 6\nwindow = { bytes = \"9kB\" }"] {
        assert_eq!(warning(fine), "", "{fine}");
    }
}

#[test]
fn a_cap_on_data_under_pfc_is_warned_of() {
    let classes =
        |more: &str| format!("[switch]\nclasses = [{{ kinds = [\"data\"], cap = \"100kB\" }}]\n{more}\n");
    let of = |more: &str| far_apart("1us", &classes(more)).warnings().join("\n");
    assert!(of("").starts_with("the class of data has a `cap`"), "{}", of(""));
    assert_eq!(of("pfc = \"off\""), "");
}

#[test]
fn a_run_gives_up_only_after_ten_round_trips() {
    use model::Time;
    assert_eq!(far_apart("1us", "[nic.congestion.none]\n").plan.no_progress, Time::from_ms(100));
    // At 1 Mb/s, the default of DCQCN's least rate, a packet takes 12 ms.
    let slow = far_apart("1us", "").plan.no_progress;
    assert!(slow > Time::from_ms(120) && slow < Time::from_ms(125), "{slow}");
    let far = far_apart("150ms", "[nic]\ntimeout = { fixed = \"1ms\" }\n").plan.no_progress;
    assert!(far > Time::from_ms(3000) && far < Time::from_ms(3001), "{far}");
    // At its smallest window, 0.001 packets, Swift sends a packet every thousand round trips of 200 us.
    let swift = far_apart("100us", "[nic.congestion.swift]\n").plan.no_progress;
    assert!(swift > Time::from_ms(2000) && swift < Time::from_ms(2100), "{swift}");
    let slow = far_apart("1us", "[nic.congestion.dcqcn]\nmin-rate = \"10kbps\"\n").plan.no_progress;
    // 1520 B at 10 kb/s take 1.216 s.
    assert_eq!(slow, Time::from_ms(12_160));
    let short = far_apart("150ms", "[nic]\ntimeout = \"none\"\n[stop]\nno-progress = \"200ms\"\n");
    assert_eq!(short.plan.no_progress, Time::from_ms(200));
    let text = short.warnings().join("\n");
    assert!(text.contains("the run gives up before a round trip (300000.1 us)"), "{text}");
}

/// The timer of a mode that acknowledges whole messages runs from the last packet on. Then the rest of the message waits for a
/// slow link, and the sender's own time does not count.
#[test]
fn where_acks_concern_messages_the_wait_begins_with_the_last_packet() {
    let warnings = |rate: &str, bytes: &str, own: &str| {
        let text = format!(
            "[topology.links]\nhosts = 2\nswitches = [\"s\"]\nlinks = [[\"host0\", \"s\", \"100Gbps\"],\n\
             [\"s\", \"host1\", \"{rate}\"]]\n[nic.transport.dcp]\n{own}\n[[workload]]\n\
             back-to-back = {{ bytes = \"{bytes}\", messages = 1 }}\n"
        );
        check(&Source::new("s.toml", text), &[]).unwrap().warnings().join("\n")
    };
    assert_eq!(warnings("100Gbps", "100MB", ""), "", "it takes 8 ms to send");
    let slow = warnings("10Gbps", "2MB", "");
    assert!(slow.contains("shorter than the time from the last packet of a message until its ACK"), "{slow}");
    assert_eq!(warnings("10Gbps", "1MB", ""), "", "0.77 ms");
    assert_eq!(warnings("10Gbps", "2MB", "message-packets = 100"), "", "each part has its own wait");
}

/// ECMP may take the longer of two parallel links, though the ideal flow takes the shorter one.
#[test]
fn the_longest_of_several_paths_counts() {
    let text = "[topology.links]\nhosts = 2\nswitches = [\"a\", \"b\"]\nlinks = [[\"host0\", \"a\"], [\"host1\", \"b\"],\n\
                [\"a\", \"b\"], [\"a\", \"b\", \"1Gbps\", \"100ms\"]]\n[[workload]]\nback-to-back = {}\n";
    let checked = check(&Source::new("s.toml", text), &[]).unwrap();
    assert!(checked.plan.no_progress > model::Time::from_ms(2000), "{}", checked.plan.no_progress);
    assert!(
        checked.warnings().join("\n").contains("shorter than the round trip of 200"),
        "{:?}",
        checked.warnings()
    );
}

#[test]
fn numbers_that_toml_cannot_write_are_called_numbers() {
    let text = format!("{HEAD}{JOB}");
    let wrong = "expected a number of at most 9223372036854775807, found 9223372036854775808";
    assert_eq!(error_of(&text, &["seed=9223372036854775808"]), format!("--set:1:6: {wrong}"));
    assert_eq!(error_of("seed = 9223372036854775808\n", &[]), format!("s.toml:1:8: {wrong}"));
}

#[test]
fn a_file_of_another_tool_is_recognised() {
    let error = check(&Source::new("a.goal", "num_ranks 2\nrank 0 {\n"), &[]).unwrap_err();
    let help = error.help.as_deref().unwrap_or_default();
    let text = "this looks like a GOAL schedule of LogGOPSim; `--topology SCENARIO` runs it on that scenario's fabric";
    assert_eq!(help, text);
}
