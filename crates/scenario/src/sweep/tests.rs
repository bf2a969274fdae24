use super::*;
use finding::Finding;
use std::fmt::Write;

const FABRIC: &str = "[topology.leaf-spine]\nleaves = 4\nspines = 2\nhosts-per-leaf = 2\n";
const JOB: &str = "[[workload]]\nname = \"ring\"\nneighbour-ring = {}\n";

/// A sweep of a scenario `base.toml`, both in memory.
fn sweep(text: &str) -> Result<Sweep, Finding> {
    let file = Source::new("w.toml", format!("scenario = \"quickstart\"\n{text}"));
    let base = Source::new("base.toml", format!("{FABRIC}{JOB}[scheme.themis]\nmode = \"literal\"\n"));
    Sweep::parse(&file, &[]).map(|sweep| Sweep { scenario: base, ..sweep })
}

/// All points as `VALUE VALUE seed`.
fn points(text: &str) -> Vec<String> {
    let sweep = sweep(text).unwrap();
    let point = |i| {
        let mut values = sweep.values(i);
        values.extend(sweep.seed(i).map(|seed| seed.to_string()));
        values.join(" ")
    };
    (0..sweep.len()).map(point).collect()
}

#[test]
fn axes_are_crossed_keys_of_one_axis_change_together_and_seeds_vary_fastest() {
    assert_eq!(points(""), [""], "the scenario itself");
    assert_eq!(points("seeds = \"1..3\""), ["1", "2", "3"]);
    assert_eq!(points("seeds = 7"), ["7"]);
    let crossed = "[[axis]]\nschemes = [\"ar\", \"themis\"]\n[[axis]]\nswitch.buffer = [\"1MB\", \"2MB\"]";
    assert_eq!(points(crossed), ["ar 1MB", "ar 2MB", "themis 1MB", "themis 2MB"]);
    let zipped = "seeds = [9, 4]\n[[axis]]\n\"workload.ring.bytes\" = [\"1kB\", \"2kB\"]\n\
                  topology.leaf-spine.spines = [3, 4]";
    assert_eq!(points(zipped), ["1kB 3 9", "1kB 3 4", "2kB 4 9", "2kB 4 4"]);
}

#[test]
fn quoted_keys_bare_keys_and_headers_mean_the_same() {
    let ways = [
        "[set]\n\"nic.congestion.dcqcn.rate-increase-timer\" = \"55us\"\n[[axis]]\n\"workload.0.bytes\" = [\"1kB\", \"2kB\"]",
        "[set]\nnic.congestion.dcqcn.rate-increase-timer = \"55us\"\n[[axis]]\nworkload.0.bytes = [\"1kB\", \"2kB\"]",
        "[set.nic.congestion.dcqcn]\nrate-increase-timer = \"55us\"\n[[axis]]\n[axis.workload.ring]\nbytes = [\"1kB\", \"2kB\"]",
        "[set]\nnic.congestion = { dcqcn = { rate-increase-timer = \"55us\" } }\n[[axis]]\nworkload.0 = [\
         { name = \"ring\", neighbour-ring = { bytes = \"1kB\" } }, { name = \"ring\", neighbour-ring = { bytes = \"2kB\" } }]",
    ];
    let resolved =
        |way: &str, i| sweep(way).unwrap().point(i).unwrap_or_else(|e| panic!("{way}: {e:?}")).to_toml();
    for i in [0, 1] {
        let first = resolved(ways[0], i);
        assert!(first.contains(["bytes = \"1kB\"", "bytes = \"2kB\""][i]), "{first}");
        for way in ways {
            assert_eq!(resolved(way, i), first, "{way}");
        }
    }
}

#[test]
fn a_point_is_the_scenario_with_its_changes_scheme_and_seed() {
    let sweep = sweep(
        "seeds = [5]\n[set]\nswitch.buffer = \"3MB\"\n[[axis]]\nschemes = [\"themis\", \"ar\"]\n\
         [[axis]]\nscheme = [{ ecmp = {} }, \"rps\"]",
    )
    .unwrap();
    let names: Vec<_> = (0..4).map(|i| sweep.point(i).unwrap().lay().unwrap().scheme_name()).collect();
    assert_eq!(names, ["themis", "themis", "ar", "ar"], "`schemes` wins over a scheme on another axis");
    let by_set = crate::check(&sweep.scenario, &["seed=5".into(), "switch.buffer=3MB".into()]).unwrap();
    let schemes = Sweep { axes: vec![sweep.axes[0].clone()], ..sweep };
    assert_eq!(
        schemes.point(0).unwrap().to_toml(),
        by_set.to_toml(),
        "the scheme keeps the settings of the file"
    );
    assert_eq!(schemes.point(1).unwrap().to_toml(), by_set.with_scheme(None, "ar").unwrap().to_toml());
    assert_eq!(schemes.label(1), "schemes = ar, seed 5");
}

/// The TOML of a point is complete, also under schemes with a NIC of their own.
#[test]
fn a_resolved_point_is_complete() {
    for scheme in schemes::SchemeConfig::names() {
        let sweep = sweep(&format!("[[axis]]\nschemes = [\"{scheme}\"]")).unwrap();
        let Ok(checked) = sweep.point(0).and_then(Resolved::lay) else { continue };
        let again = crate::check(&Source::new("again", checked.to_toml()), &[]).unwrap();
        assert_eq!(
            (again.scenario, again.plan.qps.len()),
            (checked.scenario, checked.plan.qps.len()),
            "{scheme}"
        );
    }
}

#[test]
fn mistakes_have_a_position_in_the_sweep() {
    let mut wrong = String::new();
    // Line 1 names the scenario.
    for (text, want) in [
        ("axes = 1", "w.toml:2:1: unknown key `axes`; did you mean `axis`?"),
        (
            "name = \"a/b\"",
            "w.toml:2:8: `a/b` cannot be the name of a sweep, because its results go to a folder of that name",
        ),
        ("seeds = \"5..1\"", "w.toml:2:9: the range 5..1 is empty"),
        ("seeds = []", "w.toml:2:9: expected at least 1 seed, found none"),
        ("seeds = [1, 2, 1]", "w.toml:2:9: seed 1 is repeated; the same seed gives the same result"),
        ("seeds = \"7,7\"", "w.toml:2:9: seed 7 is repeated; the same seed gives the same result"),
        ("seeds = true", "w.toml:2:9: expected seeds such as \"1..5\" or [1, 2, 7], found true"),
        ("seeds = [-1]", "w.toml:2:10: expected a whole number that is not negative, found -1"),
        ("[[axis]]\nseed = [1, 2]", "w.toml:3:1: `seed` cannot be an axis; every point runs with all seeds"),
        ("seeds = 1\n[set]\nseed = 2", "w.toml:4:1: set either `seeds` or `seed`, not both"),
        ("[[axis]]", "w.toml:2:1: an axis needs a key with a list of values"),
        ("[[axis]]\na = 1", "w.toml:3:5: the axis `a` needs a list of values"),
        ("[[axis]]\na.b = []", "w.toml:3:7: the axis `a.b` needs at least one value"),
        ("[[axis]]\na = [1]\n[[axis]]\na = [2]", "w.toml:5:1: an axis above has the key `a`, too"),
        (
            "[[axis]]\na = [1]\nb = [1, 2]",
            "w.toml:4:1: the keys of one axis need the same number of values; `a` has 1, `b` has 2",
        ),
        (
            "[[axis]]\nschems = [\"ar\", \"themis\"]",
            "w.toml:3:1: unknown key `schems`; did you mean `schemes`?",
        ),
        ("[[axis]]\nschemes = [1]", "w.toml:3:12: expected the name of a scheme, such as \"themis\""),
        // Mistakes that only a point shows.
        (
            "[[axis]]\nschemes = [\"ar\", \"thems\"]",
            "w.toml:3:18: unknown scheme `thems`; did you mean `themis`?",
        ),
        (
            "class = \"bulk\"\n[[axis]]\nschemes = [\"ar\"]",
            "w.toml:4:12: there is no traffic class `bulk`; expected one of `foreground`, `background`",
        ),
        ("[set]\nswitch.bufer = \"1MB\"", "w.toml:3:8: unknown key `bufer`; did you mean `buffer`?"),
        (
            "[[axis]]\n\"switch.bufer\" = [\"1MB\", \"2MB\"]",
            "w.toml:3:1: axis `switch.bufer`, value \"1MB\": unknown key `bufer`; did you mean `buffer`?",
        ),
        (
            "[[axis]]\n\"switch.buffer\" = [\"1MB\", \"2MBs\"]",
            "w.toml:3:27: axis `switch.buffer`, value \"2MBs\": unknown size unit \"MBs\"; did you mean \"MB\"?",
        ),
        (
            "[[axis]]\n\"workload.rinq.bytes\" = [\"1MB\"]",
            "w.toml:3:1: axis `workload.rinq.bytes`, value \"1MB\": no entry is named `rinq`; did you mean `ring`?",
        ),
        (
            "[[axis]]\ntopology.leaf-spine.spines = [2, 0]",
            "w.toml:3:34: axis `topology.leaf-spine.spines`, value 0: a leaf-spine fabric needs at least 1 spine",
        ),
        ("[[axis]]\nschemes = [\"ar\", \"ugal-l\"]", "w.toml:3:18: "),
    ] {
        let told = match sweep(text) {
            Err(e) => e.located(),
            Ok(sweep) => {
                let bad = |i| Some(sweep.blame(i, sweep.point(i).and_then(Resolved::lay).err()?).located());
                (0..sweep.len()).find_map(bad).unwrap_or_else(|| "accepted".into())
            }
        };
        if told != want && !(want.ends_with(": ") && told.starts_with(want)) {
            let _ = writeln!(wrong, "{text}\n  want {want}\n  told {told}");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn a_mistake_in_the_scenario_names_the_point() {
    let sweep = sweep("[[axis]]\ntopology.leaf-spine.hosts-per-leaf = [2, 3]\n").unwrap();
    let base = format!("{FABRIC}{JOB}[[failure]]\nlink = [\"leaf0\", \"host9\"]\nfrom = \"1us\"\n");
    let sweep = Sweep { scenario: Source::new("base.toml", base), ..sweep };
    let error = sweep.point(1).and_then(Resolved::lay).map(drop).unwrap_err();
    let told = sweep.blame(1, error).located();
    assert!(
        told.starts_with("base.toml:")
            && told.ends_with("(at point 1: topology.leaf-spine.hosts-per-leaf = 3)"),
        "{told}"
    );
}

#[test]
fn a_sweep_has_a_largest_number_of_points() {
    let many: Vec<String> = (0..400).map(|i| i.to_string()).collect();
    let axis = |key| format!("[[axis]]\n{key} = [{}]\n", many.join(", "));
    let text = format!("seeds = \"1..10\"\n{}{}", axis("a"), axis("b"));
    let error = sweep(&text).unwrap_err();
    assert_eq!(error.text, "a sweep has at most 100000 points; this one has 400 x 400 x 10 seeds");
    assert_eq!(error.place.unwrap().line, 3);
}

#[test]
fn the_scenario_is_found_beside_the_sweep_or_among_those_built_in() {
    let told = |text: &str| Sweep::parse(&Source::new("w.toml", text), &[]).unwrap_err();
    let error = told("name = \"x\"\nscenario = \"quickstrat\"");
    assert_eq!(
        error.located(),
        "w.toml:2:12: there is neither a file nor a built-in scenario \"quickstrat\""
    );
    assert!(error.help.as_deref().unwrap().contains("quickstart"));
    assert_eq!(told("").located(), "w.toml:1:1: the key `scenario` is missing");
}

#[test]
fn built_in_sweeps_can_run() {
    for builtin in BUILTIN {
        let sweep = load(builtin.name, &[]).unwrap();
        for i in 0..sweep.len() {
            sweep.point(i).unwrap_or_else(|e| panic!("{}: {e:?}", builtin.name));
        }
        sweep.point(0).unwrap().lay().unwrap();
    }
}

#[test]
fn the_schema_has_every_key() {
    let schema = crate::sweep_schema();
    let keys: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["name", "scenario", "class", "seeds", "flows", "set", "axis"]);
    for key in keys {
        assert!(
            schema["properties"][key]["description"]
                .as_str()
                .is_some_and(|about| about.ends_with('.') || about.ends_with(')')),
            "{key}"
        );
    }
}
