//! Instructions per hop of some workloads of the bench, on small fabrics: a change that makes every hop dearer is seen at once.
//! valgrind counts them, so they depend on the compiler, and on neither the machine nor what else it does.
//!
//! `GOLDEN=write CARGO_INCREMENTAL=0 cargo test --workspace --test instructions` writes the table anew; review its diff as you would a measurement.

#[path = "../benches/hops/workloads.rs"]
#[expect(dead_code, reason = "the bench runs them at other lengths, and others")]
mod workloads;

use engine::Kind;
use std::collections::BTreeMap;
use std::io::Write;
use std::process::Command;
use workloads::{ALL, Length};

/// Workloads with two amounts of data. Set-up and tear-down cancel in the difference.
const HELD: [(&str, u64, u64); 5] = [
    ("permutation", 60_000, 180_000),
    ("all-to-all", 4_000, 12_000),
    ("short-links", 60_000, 180_000),
    ("incast", 50_000, 150_000),
    ("drill", 60_000, 180_000),
];

/// The table of the repository: the compiler in its first line, then a workload and its instructions per hop in each.
const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/instructions.txt");

/// Largest difference between the table and a run, as a share.
const TOLERANCE: f64 = 0.03;

#[test]
fn a_hop_costs_as_many_instructions_as_the_table_says() {
    let compiler = Command::new("rustc").arg("--version").output();
    let compiler =
        compiler.map_or(String::new(), |out| String::from_utf8_lossy(&out.stdout).trim().to_owned());
    let write = std::env::var("GOLDEN").is_ok_and(|how| how == "write");
    let table = std::fs::read_to_string(TABLE).unwrap_or_default();
    let (of, rows) = table.split_once('\n').unwrap_or_default();
    if Command::new("valgrind").arg("--version").output().is_err() {
        return left_out("valgrind is not installed");
    }
    if compiler != of && !write {
        return left_out(&format!("the table is of {of}, and this compiler is {compiler}"));
    }
    let counted: BTreeMap<&str, f64> = HELD
        .into_iter()
        .map(|(name, few, many)| {
            let ((less, fewer), (more, hops)) = (count(name, few), count(name, many));
            (name, (more - less) / (hops - fewer))
        })
        .collect();
    if write {
        let rows: String = counted.iter().map(|(name, each)| format!("{name} {each:.1}\n")).collect();
        std::fs::write(TABLE, format!("{compiler}\n{rows}")).unwrap();
        return;
    }
    let held: BTreeMap<&str, f64> = rows
        .lines()
        .filter_map(|row| row.split_once(' '))
        .map(|(name, n)| (name, n.parse().unwrap()))
        .collect();
    assert!(held.keys().eq(counted.keys()), "the table has {held:?}, and the test counts {counted:?}");
    let moved: Vec<String> = counted
        .iter()
        .map(|(name, now)| (name, now, held[name]))
        .filter(|(_, now, then)| (*now / then - 1.0).abs() > TOLERANCE)
        .map(|(name, now, then)| format!("{name}: {now:.1} instructions per hop, {then:.1} in the table"))
        .collect();
    assert!(moved.is_empty(), "{}; if that is meant, see the head of this test", moved.join(", "));
}

/// Says why nothing is counted. A test that passes does not show what `println!` writes.
fn left_out(why: &str) {
    let line = format!("LEFT OUT: instructions per hop: {why}\n");
    std::io::stderr().write_all(line.as_bytes()).unwrap();
}

/// Instructions and hops of a workload with so many bytes, from this program under valgrind.
fn count(name: &str, bytes: u64) -> (f64, f64) {
    let mut command = Command::new("valgrind");
    command
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "worker", "--nocapture", "--test-threads=1"]);
    command.env("WORKLOAD", name).env("BYTES", bytes.to_string());
    let output = command.output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let number = |text: &str, after: &str| -> f64 {
        let found =
            text.lines().find_map(|line| line.split_once(after)?.1.trim().split(' ').next()?.parse().ok());
        found.unwrap_or_else(|| panic!("{name}: no `{after}` in\n{out}\n{err}"))
    };
    (number(&err, "Collected :"), number(&out, "hops "))
}

/// Runs the workload that `WORKLOAD` names.
#[test]
#[ignore = "runs under valgrind, for the other test"]
fn worker() {
    let Ok(name) = std::env::var("WORKLOAD") else { return };
    let bytes = std::env::var("BYTES").unwrap().parse().unwrap();
    let workload = ALL.iter().find(|w| w.name == name).unwrap();
    let checked = workload.checked(Length::SmallOf(bytes)).unwrap();
    let outcome = sim::run(&checked.plan, &checked.schemes, &checked.nics, Kind::Window, &mut ());
    println!("hops {}", outcome.data_hops + outcome.control_hops);
}
