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
fn a_mistake_in_a_default_points_at_its_table() {
    let long = format!("{HEAD}delay = \"4ms\"\n{JOB}");
    let text =
        "the headrooms of leaf0's 4 ports take 1600012kB of its buffer of 64MB; no shared buffer is left";
    assert_eq!(error_of(&format!("{long}[switch]\n"), &[]), format!("s.toml:8:1: {text}"));
    assert_eq!(error_of(&format!("{long}[switch.ecn]\n"), &[]), format!("s.toml:8:2: {text}"));
    assert_eq!(error_of(&long, &["switch.ecn.kmin=5kB"]), format!("--set:1:1: {text}"));
    assert_eq!(error_of(&long, &["seed=2"]), format!("s.toml:1:1: {text}"), "no table is there");
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

#[test]
fn characters_that_a_terminal_obeys_are_refused_with_their_place() {
    let told = "expected a text without control characters, found";
    assert_eq!(error_of("a = 1\nb = [1, \"x\\u001b[31m\"]", &[]), format!("s.toml:2:9: {told} U+001B"));
    assert_eq!(error_of("[[w]]\nname = \"h\\u202egnp\"", &[]), format!("s.toml:2:8: {told} U+202E"));
    assert_eq!(error_of("a = { \"k\\n\" = 1 }", &[]), format!("s.toml:1:7: {told} U+000A"));
    assert!(error_of(&format!("# \u{202e}\n{HEAD}{JOB}name = \"ü ☃ →\""), &[]).starts_with("accepted"));
}
