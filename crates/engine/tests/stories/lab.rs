//! Tools of the stories: check a scenario, run it on every engine, and check its books.

pub(crate) use audit::mistakes;
use engine::outcome::{Ending, Outcome};
use engine::{Kind, Observer, Progress};
use model::{Parts, Plan};
use rnic::{CongestionConfig, TransportConfig};
use scenario::{Checked, Source, check};
use schemes::SchemeConfig;

/// Numbers of threads on which every story runs, too.
const THREADS: [usize; 2] = [2, 3];

/// A checked scenario from its text; the test fails with the user's error message.
pub(crate) fn lay(text: &str) -> Checked {
    match check(&Source::new("story.toml", text), &[]) {
        Ok(checked) => checked,
        Err(e) => panic!("{e}\nin:\n{text}"),
    }
}

/// False if the scheme of a scenario cannot run on its fabric; the test fails with any other error.
pub(crate) fn suits(text: &str) -> bool {
    match check(&Source::new("story.toml", text), &[]) {
        Err(e) if e.code == "unsuited" => false,
        Err(e) => panic!("{e}\nin:\n{text}"),
        Ok(_) => true,
    }
}

/// The trials of all schemes, each the text of its table, and of `[nic]` if it needs a NIC of its own.
pub(crate) fn schemes() -> Vec<String> {
    let all = SchemeConfig::NAMES.iter().filter_map(|name| SchemeConfig::named(name));
    all.flat_map(|scheme| tables("scheme", scheme.name(), scheme.trials())).collect()
}

/// The trials of all transports and congestion controls, each the text of its tables below `[nic]`.
pub(crate) fn nics() -> Vec<String> {
    let modes = TransportConfig::all().flat_map(|t| tables("nic.transport", t.name(), t.trials()));
    modes
        .chain(CongestionConfig::all().flat_map(|c| tables("nic.congestion", c.name(), c.trials())))
        .collect()
}

fn tables(table: &str, name: &str, trials: &[&str]) -> Vec<String> {
    trials.iter().map(|keys| format!("[{table}.{name}]\n{keys}\n")).collect()
}

/// Runs a scenario on the window engine and checks its books.
pub(crate) fn run(text: &str) -> (Checked, Outcome) {
    let checked = lay(text);
    let outcome = run_on(&checked);
    (checked, outcome)
}

/// Runs a checked scenario on the window engine and checks its books.
pub(crate) fn run_on(checked: &Checked) -> Outcome {
    let outcome = simulate(&checked.plan, checked, Kind::Window);
    check_books(&checked.plan, &outcome);
    outcome
}

/// Runs a plan with the schemes and NICs of a scenario. The test fails if the run has no end.
fn simulate(plan: &Plan, checked: &Checked, kind: Kind) -> Outcome {
    let outcome = sim::run(plan, &checked.schemes, &checked.nics, kind, &mut Patience::default());
    assert_ne!(outcome.ending, Ending::Interrupted, "timers fire for ever, and no packet moves");
    outcome
}

/// Interrupts a run in which only timers fire: no packet has moved for 100,000 reports, and no stall was found.
#[derive(Default)]
struct Patience {
    hops: u64,
    quiet: u32,
}

impl Observer for Patience {
    fn on_progress(&mut self, progress: Progress) -> bool {
        self.quiet = if progress.hops == self.hops { self.quiet + 1 } else { 0 };
        self.hops = progress.hops;
        self.quiet < 100_000
    }
}

/// The outcome on which the reference engine and the window engine agree: with whole and half windows and, if the
/// run is short, on several threads. Checks its books, and panics with the first difference.
pub(crate) fn agreed(plan: &Plan, parts: &impl Parts, story: &str) -> Outcome {
    unanimous(audit::compare(plan, &THREADS, &|plan, kind| engine::run(plan, parts, kind, &mut ())), story)
}

fn unanimous(compared: Result<Outcome, String>, story: &str) -> Outcome {
    match compared {
        Ok(outcome) => outcome,
        Err(difference) => panic!("{difference}\nin: {story}"),
    }
}

/// The agreed outcome of a scenario with its own parts.
pub(crate) fn agreed_on(checked: &Checked, story: &str) -> Outcome {
    unanimous(compared_on(checked), story)
}

/// [`agreed_on`], with a `Result` in place of a panic.
pub(crate) fn compared_on(checked: &Checked) -> Result<Outcome, String> {
    audit::compare(&checked.plan, &THREADS, &|plan, kind| simulate(plan, checked, kind))
}

/// Checks the books of a run independently; the test fails with all mistakes.
pub(crate) fn check_books(plan: &Plan, run: &Outcome) {
    assert_eq!(mistakes(plan, run), [""; 0]);
}

/// A topology of two tiers with `hosts` on each of `leaves`; `keys` adds keys of the topology.
pub(crate) fn leaf_spine(leaves: usize, spines: usize, hosts: usize, keys: &str) -> String {
    format!("[topology.leaf-spine]\nleaves = {leaves}\nspines = {spines}\nhosts-per-leaf = {hosts}\n{keys}\n")
}

/// Sum of a column over all links.
pub(crate) fn total(run: &Outcome, column: fn(&engine::outcome::LinkRecord) -> u64) -> u64 {
    run.links.iter().map(column).sum()
}
