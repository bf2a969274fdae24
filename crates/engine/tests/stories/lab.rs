//! Tools of the stories: check a scenario, run it on every engine, and check its books.

pub(crate) use audit::mistakes;
use engine::outcome::{Ending, Outcome};
use engine::{Kind, Observer, Progress};
use model::{Parts, Plan};
use rnic::{CongestionConfig, TransportConfig};
use scenario::{Checked, Source, check};
use schemes::{FeedbackConfig, SchemeConfig};

/// Numbers of threads on which every story runs, too.
const THREADS: [usize; 2] = [2, 3];

/// A checked scenario from its text; the test fails with the user's error message.
pub(crate) fn lay(text: &str) -> Checked {
    match check(&Source::new("story.toml", text), &[]) {
        Ok(checked) => checked,
        Err(e) => panic!("{e}\nin:\n{text}"),
    }
}

/// A checked scenario, or `None` if a part of it does not suit another part; the test fails with any other error.
pub(crate) fn suited(text: &str) -> Option<Checked> {
    match check(&Source::new("story.toml", text), &[]) {
        Err(e) if e.code == "unsuited" => None,
        Err(e) => panic!("{e}\nin:\n{text}"),
        Ok(checked) => Some(checked),
    }
}

/// The trials of all schemes, each the text of its table, and of `[nic]` if it needs a NIC of its own.
pub(crate) fn schemes() -> Vec<String> {
    SchemeConfig::names().iter().flat_map(|name| trials(name)).collect()
}

/// The trials of one scheme.
pub(crate) fn trials(scheme: &str) -> Vec<String> {
    tables("scheme", scheme, SchemeConfig::named(scheme).map_or(&[], |scheme| scheme.trials()))
}

/// The trials of all transports and congestion controls, each the text of its tables below `[nic]`.
pub(crate) fn nics() -> Vec<String> {
    let modes = TransportConfig::all().flat_map(|t| tables("nic.transport", t.name(), t.trials()));
    modes
        .chain(CongestionConfig::all().flat_map(|c| tables("nic.congestion", c.name(), c.trials())))
        .collect()
}

/// The trials of all feedbacks, each the text of its table.
pub(crate) fn feedbacks() -> Vec<String> {
    let all = FeedbackConfig::NAMES.iter().filter_map(|name| FeedbackConfig::named(name));
    all.flat_map(|feedback| tables("feedback", feedback.name(), feedback.trials())).collect()
}

/// A scheme's trial for switches that drop, which cannot pause: they stop sources flow by flow.
pub(crate) fn without_pauses(scheme: &str) -> String {
    scheme.replace("\"class\"", "\"flow\"")
}

/// The NIC that a scheme gets: its own one, if its trial has one, or else this one.
pub(crate) fn nic_beside<'a>(scheme: &str, nic: &'a str) -> &'a str {
    if scheme.contains("[nic") { "" } else { nic }
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
