use super::*;
use crate::{Crew, Failure, Progress};
use scenario::{Resolved, Source};
use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Six points, of which two are the same: 1kB and 1000B.
const TEXT: &str =
    "scenario = \"quickstart\"\nseeds = [1, 2]\n[[axis]]\nworkload.0.bytes = [\"1kB\", \"2kB\", \"1000B\"]\n";

fn sweep(text: &str) -> Sweep {
    let spec = scenario::sweep::Sweep::parse(&Source::new("small.toml", text), &[]).unwrap();
    let stop = AtomicBool::new(false);
    Sweep::check(spec, None, Crew::of_machine(), &Progress::silent(&stop)).unwrap()
}

fn bytes_of(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        if entry.path().is_dir() {
            files.extend(
                bytes_of(&entry.path()).into_iter().map(|(inner, bytes)| (format!("{name}/{inner}"), bytes)),
            );
        } else if name != "timing.parquet" {
            files.push((name, fs::read(entry.path()).unwrap()));
        }
    }
    files.sort();
    files
}

/// Runs all that is wanted, last first, as texts that go elsewhere and come back.
fn elsewhere(work: &Work) {
    for number in work.wanted().into_iter().rev() {
        let point = work.sweep().point(number).unwrap().to_json();
        work.keep_json(&run_point_json(&point).unwrap()).unwrap();
    }
}

#[test]
fn where_and_in_which_order_points_run_leaves_no_trace() {
    let tmp = tempfile::tempdir().unwrap();
    let (here, there) = (tmp.path().join("here"), tmp.path().join("there"));
    let text = format!("flows = true\n{TEXT}");
    let mut work = Work::open(sweep(&text), &here, false).unwrap();
    assert_eq!(work.wanted(), [0, 1, 2, 3], "points that come to the same run once");
    let stop = AtomicBool::new(false);
    assert!(run(&work, Crew::of_machine(), &Progress::silent(&stop)).unwrap().refused.is_empty());
    let finished = work.finish().unwrap();
    assert_eq!((finished.points.rows(), finished.failed.len()), (6, 0));
    let mut work = Work::open(sweep(&text), &there, false).unwrap();
    elsewhere(&work);
    work.finish().unwrap();
    let files = bytes_of(&here);
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names.iter().filter(|name| name.starts_with("flows/")).count(), 4, "{names:?}");
    assert!(files == bytes_of(&there), "{names:?}");
    assert_eq!(fs::read_dir(tmp.path()).unwrap().count(), 2, "nothing else is left");
    let again = Work::finished(&sweep(&text), &here).unwrap().unwrap();
    assert_eq!(again.points, finished.points);
}

#[test]
fn a_row_has_the_numbers_of_its_summary() {
    let tmp = tempfile::tempdir().unwrap();
    let mut work = Work::open(sweep(TEXT), &tmp.path().join("s"), false).unwrap();
    elsewhere(&work);
    let rows = dataset::rows(&work.finish().unwrap().points);
    let set = ["workload.0.bytes=2kB".to_owned(), "seed=2".into()];
    let summary = serde_json::to_value(crate::run(crate::load("quickstart", &set).unwrap()).summary).unwrap();
    let row = &rows[3];
    assert_eq!((&row["point"], &row["axis.workload.0.bytes"]), (&3.into(), &"2kB".into()));
    for key in ["seed", "scheme", "digest", "complete", "sim_time_us"] {
        assert_eq!(row[key], summary[key], "{key}");
    }
    assert_eq!(row["flows.fct_us.p99"], summary["flows"]["fct_us"]["p99"]);
    assert_eq!(row["packets.sent"], summary["packets"]["sent"]);
    assert_eq!(row["failure"], "");
    assert_eq!((&rows[0]["id"], &rows[0]["digest"]), (&rows[4]["id"], &rows[4]["digest"]));
}

#[test]
fn a_directory_with_files_of_two_sweeps_is_an_error() {
    let tmp = tempfile::tempdir().unwrap();
    let made = |name: &str, text: &str| {
        let mut work = Work::open(sweep(text), &tmp.path().join(name), false).unwrap();
        elsewhere(&work);
        work.finish().unwrap().path
    };
    let (dir, other) = (made("s", TEXT), made("other", &TEXT.replace("\"2kB\"", "\"3kB\"")));
    let shorter = made("shorter", &TEXT.replace("[1, 2]", "[1]"));
    let along = made("along", &TEXT.replace("workload.0.bytes", "workload.0.neighbour-ring.bytes"));
    assert!(dataset::read(&dir).is_ok());
    let told = || dataset::read(&dir).unwrap_err().to_string();
    let digest = |dir: &Path| dataset::open(dir).unwrap().manifest["digest"].as_str().unwrap().to_owned();
    let expected = digest(&dir);
    for from in [&other, &shorter, &along] {
        let found = digest(from);
        let why = format!(
            "points.parquet comes from another run than sweep.json: expected digest {expected}, found {found}; "
        );
        fs::copy(from.join("points.parquet"), dir.join("points.parquet")).unwrap();
        assert!(told().contains(&why), "{}", told());
    }
    assert!(told().contains("without --resume makes the sweep anew"), "{}", told());
    fs::write(dir.join("sweep.json"), "{}").unwrap();
    assert!(told().contains("sweep.json has no `checksums`"), "{}", told());
}

#[test]
fn the_column_of_an_axis_has_the_type_of_its_values() {
    let text = "scenario = \"quickstart\"\n[[axis]]\nlinks.loss = [0, 0.001]\nlinks.lose-replies = [true, false]\n\
                topology.leaf-spine.spines = [2, 4]\nswitch.pfc = [\"off\", true]\nscheme = [\"rps\", { themis = { watch = true } }]\n";
    let sweep = sweep(text);
    let mut dataset = dataset::Dataset::new(&sweep);
    let (id, version, none) = (String::new(), String::new(), String::new());
    let result = PointResult {
        id,
        ropewalk: version,
        failure: none,
        summary: results::Summary::default(),
        flows: None,
    };
    (0..2).for_each(|number| dataset.add(number, &result));
    let rows = dataset::rows(&dataset.tables().0);
    let column =
        |key: &str| rows.iter().map(|row| row[&format!("axis.{key}")].clone()).collect::<serde_json::Value>();
    assert_eq!(column("links.loss"), serde_json::json!([0.0, 0.001]));
    assert_eq!(column("links.lose-replies"), serde_json::json!([true, false]));
    assert_eq!(column("topology.leaf-spine.spines"), serde_json::json!([2, 4]));
    assert_eq!(column("switch.pfc"), serde_json::json!(["off", "true"]), "a text among them: all are");
    assert_eq!(column("scheme"), serde_json::json!(["rps", "{ themis = { watch = true } }"]));
}

#[test]
fn damaged_points_run_again_and_finished_points_do_not() {
    let tmp = tempfile::tempdir().unwrap();
    let dir = tmp.path().join("s");
    let work = Work::open(sweep(TEXT), &dir, false).unwrap();
    elsewhere(&work);
    let file = |i: usize| work::part_of(&dir).join("points").join(format!("{}.json", work.sweep().ids()[i]));
    let (cut, changed, swapped) = (file(0), file(1), file(2));
    let whole = fs::read_to_string(&cut).unwrap();
    fs::write(&cut, &whole[..whole.len() / 2]).unwrap();
    let other = fs::read_to_string(&changed).unwrap();
    fs::write(&changed, other.replacen("\"sent\":", "\"sent\":1", 1)).unwrap();
    fs::write(&swapped, &other).unwrap();
    let told = |resume| Work::open(sweep(TEXT), &dir, resume).map(|_| ()).unwrap_err().to_string();
    assert!(told(true).contains("another process is working on"), "{}", told(true));
    drop(work);
    assert!(told(false).contains("add --resume"), "{}", told(false));
    let mut work = Work::open(sweep(TEXT), &dir, true).unwrap();
    assert_eq!((work.wanted(), work.reused()), (vec![0, 1, 2], 1));
    let notes = work.notes.join("\n");
    for why in ["cut short or broken", "checksum does not fit", "is the result of point"] {
        assert!(notes.contains(why), "{notes}");
    }
    assert!(work.finish().unwrap_err().to_string().contains("3 points are still to be run"));
    elsewhere(&work);
    work.finish().unwrap();
}

#[test]
fn a_larger_sweep_keeps_its_points_and_another_sweep_stays() {
    let tmp = tempfile::tempdir().unwrap();
    let dir = tmp.path().join("s");
    elsewhere(&Work::open(sweep(TEXT), &dir, false).unwrap());
    let other = sweep(&format!("name = \"other\"\n{TEXT}"));
    let told = Work::open(other, &dir, true).map(|_| ()).unwrap_err().to_string();
    assert!(told.contains("holds another unfinished sweep: `small` of quickstart, not `other`"), "{told}");
    let grown = TEXT.replace("\"1000B\"", "\"3kB\"").replace("[1, 2]", "[1]");
    let work = Work::open(sweep(&grown), &dir, true).unwrap();
    assert_eq!((work.wanted(), work.reused()), (vec![2], 2));
    assert!(work.notes[0].starts_with("2 points that were done are no longer part"), "{:?}", work.notes);
    let stranger =
        fs::create_dir(tmp.path().join("t.part")).and_then(|()| fs::write(tmp.path().join("t.part/x"), ""));
    stranger.unwrap();
    let told = Work::open(sweep(TEXT), &tmp.path().join("t"), true).map(|_| ()).unwrap_err().to_string();
    assert!(told.contains("is in the way"), "{told}");
}

#[test]
fn changed_points_and_results_are_errors() {
    let sweep = sweep(TEXT);
    let point = sweep.point(0).unwrap();
    let told = |text: &str| run_point_json(text).unwrap_err().to_string();
    assert!(told("{}").contains("no point of a sweep"));
    assert!(told(&point.to_json().replace("seed = 1", "seed = 3")).contains("changed after it was sent"));
    let older = Point { ropewalk: "0.0.1".into(), ..point.clone() };
    assert!(told(&older.to_json()).contains("both ends need the same version"));
    assert!(sweep.point(6).unwrap_err().to_string().contains("the sweep has 6"));
    let tmp = tempfile::tempdir().unwrap();
    let work = Work::open(sweep, &tmp.path().join("s"), false).unwrap();
    let result = run_point_json(&point.to_json()).unwrap();
    assert_eq!(
        PointResult::from_json(&result).unwrap().to_json(),
        result,
        "a text that is read and written again"
    );
    assert!(work.keep_json(&result[..result.len() - 3]).unwrap_err().to_string().contains("cut short"));
    let foreign = PointResult { id: "0".into(), ..PointResult::from_json(&result).unwrap() };
    assert!(work.keep(&foreign).unwrap_err().to_string().contains("of no point of this sweep"));
}

#[test]
fn an_interruption_while_checking_is_one() {
    let spec = scenario::sweep::Sweep::parse(&Source::new("s.toml", TEXT), &[]).unwrap();
    let stop = AtomicBool::new(true);
    let checked = Sweep::check(spec, None, Crew::of_machine(), &Progress::silent(&stop));
    assert!(matches!(checked, Err(Failure::Interrupted)));
}

#[test]
fn every_column_has_a_meaning_and_a_unit() {
    let fct = |scheme: &str| vec!["workload.0.bytes=20kB".to_owned(), format!("scheme.{scheme}={{}}")];
    let runs = [
        ("quickstart", fct("themis")),
        ("web-search", vec!["workload.0.poisson.duration=100us".into()]),
        ("quickstart", vec!["workload.0.bytes=20kB".into(), "nic.transport={irn={}}".into()]),
    ];
    let (id, version, none) = (String::new(), String::new(), String::new());
    let empty = PointResult {
        id,
        ropewalk: version,
        failure: none,
        summary: results::Summary::default(),
        flows: None,
    };
    let sweep = sweep(TEXT);
    let mut dataset = dataset::Dataset::new(&sweep);
    for (number, (name, set)) in runs.into_iter().enumerate() {
        let summary = crate::run(crate::load(name, &set).unwrap()).summary;
        dataset.add(number, &PointResult { summary, ..empty.clone() });
    }
    let (points, timing) = dataset.tables();
    let about = |key: &str| {
        let schema = points.schema();
        let field = schema.field_with_name(key).unwrap().metadata().clone();
        (field["unit"].clone(), field["description"].clone())
    };
    for field in points.schema().fields().iter().chain(timing.schema().fields()) {
        assert!(!field.metadata()["description"].is_empty(), "{}", field.name());
        assert!(!field.metadata()["unit"].is_empty(), "{}", field.name());
    }
    assert_eq!(about("flows.by_size.up_to_10000.fct_us.p99").0, "us");
    let groups = "Groups (communicators) of the job; job all-reduce";
    assert_eq!(about("jobs.all-reduce.groups.count").1, groups);
    assert_eq!(about("packets.reorder_buffer.max").0, "packets");
    assert_eq!(about("classes.foreground.count").0, "flows");
    let columns = timing.schema();
    let names: Vec<&str> = columns.fields().iter().map(|field| field.name().as_str()).collect();
    assert_eq!(names[..4], ["point", "id", "wall_s", "cpu_s"]);
}

#[test]
fn comparisons_and_sweeps_leave_out_what_a_run_leaves_out() {
    let text = "[server]\ngpus = 2\nnvlink = { rate = \"800Gbps\", delay = \"1us\" }\n[topology.rails]\nservers = 4\nspines = 1\n\
                [[workload]]\n[workload.training]\n\
                model = { hidden = 256, layers = 4, heads = 4, kv-heads = 2, ffn = 1024, vocab = 1000, positions = 64 }\n\
                compute = { flops = \"1TFLOPS\" }\nbatch = { global = 16, micro = 1, sequence = 64 }\n";
    let source = Source::new("step.toml", text);
    let resolved = Resolved::of(&source, &[]).unwrap();
    let (stop, fast) = (AtomicBool::new(false), crate::fast::Leave::asked(Some(0.01), None));
    let progress = Progress::silent(&stop);
    let alone = crate::fast::run(resolved.clone(), fast.clone(), &progress).unwrap().summary;
    let comparison = crate::compare::Comparison {
        base: crate::fast::check(resolved.clone(), fast.as_ref()).unwrap(),
        class: None,
        schemes: vec!["ecmp".to_owned()],
        seeds: vec![alone.seed],
        reference: false,
        fast: fast.clone(),
        crew: Crew::of_machine(),
    };
    let compared = comparison.run(&progress).unwrap().remove(0).summary;
    let point = Point::new(&resolved, false, fast);
    assert_ne!(point.id, Point::new(&resolved, false, None).id);
    let point = Point::from_json(&point.to_json()).unwrap();
    let swept = run_point(&point, NonZeroUsize::MIN, &progress).unwrap().summary;
    for other in [compared, swept] {
        assert_eq!((&other.digest, &other.fast), (&alone.digest, &alone.fast));
    }
    assert_eq!(alone.number("fast.error_us"), alone.fast.as_ref().map(|fast| fast.error_us));
}

#[test]
fn a_point_of_other_own_code_is_another_point() {
    let resolved = Resolved::of(&scenario::find("quickstart").unwrap(), &[]).unwrap();
    let plain = Point::new(&resolved, false, None);
    assert!(plain.own.is_empty() && !plain.to_json().contains("\"own\""), "{}", plain.to_json());
    let edited = Point { own: " 01 [Some(2)]".into(), ..plain };
    let told = Point::from_json(&edited.to_json()).unwrap_err().to_string();
    assert!(told.contains("its content does not match its id"), "{told}");
}
