//! Damaged results as a user meets them: every command that reads results refuses them and names the file.

use assert_cmd::Command;
use lab::sweep::{Sweep, Work, run_point_json};
use lab::{Crew, Progress};
use predicates::str::contains;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use tempfile::TempDir;

/// Two runs of one scenario with every kind of file, and a copy of the first run to damage.
struct Damage {
    dir: TempDir,
}

impl Damage {
    fn new() -> Self {
        let damage = Damage { dir: TempDir::new().unwrap() };
        for (name, seed) in [("whole", "1"), ("other", "2")] {
            let small = ["--set", "workload.0.bytes=2kB", "--set", "record.follow=[0, 1]"];
            let files = ["--record", "--csv", "--pcap", "host0", "-q", "-o", name, "--seed", seed];
            damage.ropewalk(&[&["run", "quickstart"], &small[..], &files[..]].concat()).assert().code(0);
        }
        damage.restore();
        damage
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn ropewalk(&self, args: &[&str]) -> Command {
        let mut command = Command::cargo_bin("ropewalk").unwrap();
        command.args(args).current_dir(self.dir.path()).env("NO_COLOR", "1");
        command
    }

    /// Copies the whole results to `out` again.
    fn restore(&self) {
        drop(fs::remove_dir_all(self.path("out")));
        copy(&self.path("whole"), &self.path("out"));
    }

    /// Damages `out`, requires that `report` and `explain` refuse it with `why`, and repairs it.
    fn refused(&self, why: &str, damage: impl FnOnce(&Path)) {
        damage(&self.path("out"));
        for args in [&["report", "out"][..], &["explain", "0", "out"]] {
            let output = self.ropewalk(args).assert().code(2).get_output().clone();
            let text = unwrapped(&output.stderr);
            assert!(text.contains(why), "{args:?}: expected {why}, found {text}");
            assert!(text.contains("run the scenario again"), "{text}");
        }
        assert!(!self.path("out/report.html").exists());
        self.restore();
    }
}

/// Names of all files of a directory.
fn names(dir: &Path) -> Vec<String> {
    let files = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = files.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// The text of an error without the frame and the line breaks of the terminal. Long paths may be broken anywhere.
fn unwrapped(text: &[u8]) -> String {
    let text = String::from_utf8(text.to_vec()).unwrap().replace(['│', '×'], " ");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn whole_results_and_files_of_the_user_are_fine() {
    let damage = Damage::new();
    assert_eq!(names(&damage.path("out")).len(), 17, "{:?}", names(&damage.path("out")));
    fs::write(damage.path("out/notes.txt"), "mine").unwrap();
    damage.ropewalk(&["report", "out"]).assert().code(0);
    damage.ropewalk(&["explain", "0", "out"]).assert().code(0);
    damage.ropewalk(&["report", "out", "other", "-o", "both.html"]).assert().code(0);
    // Two runs of the same scenario write the same manifest.
    let args = ["run", "quickstart", "--set", "workload.0.bytes=2kB", "-q", "-o"];
    for name in ["a", "b"] {
        damage.ropewalk(&[&args[..], &[name]].concat()).assert().code(0);
    }
    let manifest = |name: &str| fs::read_to_string(damage.path(name).join("manifest.json")).unwrap();
    assert_eq!(manifest("a"), manifest("b"));
}

#[test]
fn a_file_of_another_run_is_refused() {
    let damage = Damage::new();
    let digest = |dir: &str| {
        let text = fs::read_to_string(damage.path(dir).join("manifest.json")).unwrap();
        serde_json::from_str::<Value>(&text).unwrap()["digest"].as_str().unwrap().to_owned()
    };
    let digests = format!("expected digest {}, found {}", digest("whole"), digest("other"));
    let foreign = format!("comes from another run than manifest.json: {digests}");
    for name in names(&damage.path("whole")) {
        let why = match name.rsplit_once('.') {
            // The other files then belong to another run than the manifest.
            _ if name == "manifest.json" => "comes from another run than manifest.json: expected".to_owned(),
            Some((_, "parquet" | "json")) => format!("{name} {foreign}"),
            _ if fs::read(damage.path("whole").join(&name)).unwrap()
                == fs::read(damage.path("other").join(&name)).unwrap() =>
            {
                continue;
            }
            // A CSV file and a capture have no digest.
            _ => format!("out/{name} "),
        };
        damage.refused(&why, |out| {
            fs::copy(damage.path("other").join(&name), out.join(&name)).unwrap();
        });
    }
}

#[test]
fn a_flipped_byte_a_cut_file_and_a_missing_file_are_refused() {
    let damage = Damage::new();
    for name in names(&damage.path("whole")) {
        let whole = fs::read(damage.path("whole").join(&name)).unwrap();
        let size = whole.len();
        let edited = format!("out/{name} was edited or damaged: expected");
        damage.refused(&edited, |out| {
            let mut bytes = whole.clone();
            // The first half of summary.json holds no `timing`.
            bytes[size / 3] ^= 1;
            fs::write(out.join(&name), bytes).unwrap();
        });
        let cut = match name.ends_with(".json") {
            true => format!("out/{name} is cut short: expected JSON, found: EOF"),
            false => format!("out/{name} is cut short: expected {size} bytes, found {}", size / 2),
        };
        damage.refused(&cut, |out| fs::write(out.join(&name), &whole[..size / 2]).unwrap());
        if name != "manifest.json" {
            let missing = format!("cannot read out/{name}: the file is missing, but manifest.json lists it");
            damage.refused(&missing, |out| fs::remove_file(out.join(&name)).unwrap());
        }
    }
    fs::remove_file(damage.path("out/manifest.json")).unwrap();
    damage.ropewalk(&["report", "out"]).assert().code(2).stderr(contains("manifest.json"));
}

/// Changes every number, text, list and truth value of a JSON value, one at a time.
fn edits(value: &Value) -> Vec<Value> {
    match value {
        Value::Object(keys) => {
            let inside = keys.iter().flat_map(|(key, value)| {
                edits(value).into_iter().map(|edit| {
                    let mut keys = keys.clone();
                    keys.insert(key.clone(), edit);
                    Value::Object(keys)
                })
            });
            let without = keys.keys().map(|key| {
                let mut keys = keys.clone();
                keys.shift_remove(key);
                Value::Object(keys)
            });
            inside.chain(without).collect()
        }
        Value::Array(items) => vec![items[1..].to_vec().into()],
        Value::String(text) => vec![format!("{text} ").into()],
        Value::Number(number) => vec![(number.as_f64().unwrap() + 1.0).into()],
        Value::Bool(flag) => vec![(!flag).into()],
        Value::Null => vec![Value::Bool(true)],
    }
}

#[test]
fn an_edit_of_any_field_of_a_manifest_is_refused() {
    let damage = Damage::new();
    let text = fs::read_to_string(damage.path("whole/manifest.json")).unwrap();
    let edits = edits(&serde_json::from_str(&text).unwrap());
    assert!(edits.len() > 100, "{}", edits.len());
    for edit in edits {
        fs::write(damage.path("out/manifest.json"), format!("{edit:#}\n")).unwrap();
        let output = damage.ropewalk(&["report", "out"]).assert().code(2).get_output().clone();
        let text = unwrapped(&output.stderr);
        assert!(text.contains("out/manifest.json ") && text.contains("edited"), "{text}");
    }
    // Another layout of the same JSON is the same manifest.
    let compact = serde_json::from_str::<Value>(&text).unwrap().to_string();
    fs::write(damage.path("out/manifest.json"), compact).unwrap();
    damage.ropewalk(&["report", "out"]).assert().code(0);
}

const SWEEP: &str = "scenario = \"quickstart\"\nseeds = [1, 2]\nflows = true\n[[axis]]\nworkload.0.bytes = [\"1kB\", \"2kB\"]\n";

#[test]
fn a_finished_sweep_with_a_damaged_file_is_refused() {
    let damage = Damage::new();
    fs::write(damage.path("s.toml"), SWEEP).unwrap();
    fs::write(damage.path("t.toml"), SWEEP.replace("2kB", "3kB")).unwrap();
    damage.ropewalk(&["sweep", "s.toml", "-q", "-o", "swept"]).assert().code(0);
    damage.ropewalk(&["sweep", "t.toml", "-q", "-o", "others"]).assert().code(0);
    let flows = format!("flows/{}", names(&damage.path("swept/flows"))[0]);
    let refused = |name: &str, why: &str, content: &[u8]| {
        let file = damage.path("swept").join(name);
        let whole = fs::read(&file).unwrap();
        fs::write(&file, content).unwrap();
        for args in [&["report", "swept"][..], &["sweep", "s.toml", "-q", "-o", "swept", "--resume"]] {
            let output = damage.ropewalk(args).assert().code(2).get_output().clone();
            let text = unwrapped(&output.stderr);
            assert!(text.contains(&format!("swept/{name} {why}")), "{args:?}: {text}");
            assert!(text.contains("without --resume makes the sweep anew") || name.contains('/'), "{text}");
        }
        fs::write(&file, whole).unwrap();
    };
    for name in ["points.parquet", "configs.parquet", &flows] {
        let mut whole = fs::read(damage.path("swept").join(name)).unwrap();
        let half = whole.len() / 2;
        refused(name, "is cut short: expected", &whole[..half]);
        whole[half] ^= 1;
        refused(name, "was edited or damaged: expected", &whole);
        let other = match name.contains('/') {
            true => damage.path("swept/flows").join(&names(&damage.path("swept/flows"))[1]),
            false => damage.path("others").join(name),
        };
        refused(name, "comes from another run than sweep.json: expected", &fs::read(other).unwrap());
    }
    let edited = fs::read_to_string(damage.path("swept/sweep.json")).unwrap();
    let edited = edited.replace("\"complete\": true", "\"complete\": false");
    let file = damage.path("swept/sweep.json");
    let whole = fs::read(&file).unwrap();
    fs::write(&file, edited).unwrap();
    damage.ropewalk(&["report", "swept"]).assert().code(2).stderr(contains("edited or damaged"));
    fs::write(&file, whole).unwrap();
    damage.ropewalk(&["report", "swept"]).assert().code(0);
}

#[test]
fn a_resumed_sweep_runs_a_damaged_point_again_and_says_so() {
    let damage = Damage::new();
    fs::write(damage.path("s.toml"), SWEEP).unwrap();
    damage.ropewalk(&["sweep", "s.toml", "-q", "-o", "swept"]).assert().code(0);
    let expected = fs::read(damage.path("swept/points.parquet")).unwrap();
    // A sweep that stopped before its last step.
    fs::remove_dir_all(damage.path("swept")).unwrap();
    let never = AtomicBool::new(false);
    let spec = scenario::sweep::load(damage.path("s.toml").to_str().unwrap(), &[]).unwrap();
    let sweep = Sweep::check(spec, None, Crew::of_machine(), &Progress::silent(&never)).unwrap();
    let work = Work::open(sweep, &damage.path("swept"), false).unwrap();
    for number in work.wanted() {
        work.keep_json(&run_point_json(&work.sweep().point(number).unwrap().to_json()).unwrap()).unwrap();
    }
    drop(work);
    let point = fs::read_dir(damage.path("swept.part/points")).unwrap().next().unwrap().unwrap().path();
    let whole = fs::read_to_string(&point).unwrap();
    fs::write(&point, whole.replacen("\"seed\":", "\"seed\":1", 1)).unwrap();
    let resume = ["sweep", "s.toml", "-o", "swept", "--resume"];
    let output = damage.ropewalk(&resume).assert().code(0).get_output().clone();
    let text = unwrapped(&output.stderr);
    assert!(text.contains("its checksum does not fit; that point runs again"), "{text}");
    assert!(text.contains("json: it is broken") && text.contains("3 of 4 runs are already done"), "{text}");
    assert_eq!(fs::read(damage.path("swept/points.parquet")).unwrap(), expected);
}
