//! Claim: a fabric that is computed in double windows, by two sides in turns, has the outcome of any other engine.

use crate::fuzz::any_nic;
use crate::lab::{agreed_on, check_books, compared_on, lay, leaf_spine, run_on};
use engine::Kind;
use engine::outcome::{Ending, Outcome};
use model::Time;
use proptest::prelude::*;
use proptest::sample::select;
use scenario::Checked;

/// No series, which need the state of all nodes at one instant.
const BLIND: &str = "[record]\nflows = 0\nlinks = 0\n";

/// Twelve hosts on three racks send to each other, and queues cut data.
fn trimmed(switch: &str, rest: &str) -> String {
    format!(
        "{}[wire]\npayload = \"4096B\"\n[switch]\npfc = \"off\"\ncut = {{ victim = \"even\" }}\nqueue-cap = \"30kB\"\n\
         ecn = {{ kmin = \"11kB\", kmax = \"25kB\", pmax = 1.0 }}\nclasses = \"strict\"\n{switch}\n\
         [nic.transport.uec]\n[nic.congestion.nscc]\n[scheme.entropy-mixed]\n{BLIND}{rest}\n\
         [[workload]]\nall-to-all = {{ per-pair = \"60kB\", groups = \"all\" }}\n",
        leaf_spine(3, 2, 4, "rate = \"400Gbps\"\ndelay = \"500ns\"")
    )
}

/// Visits by whole windows, or by turns, as a share of those by half windows.
fn share_of_visits(checked: &Checked, run: &Outcome) -> f64 {
    let halves = sim::run(&checked.plan, &checked.schemes, &checked.nics, Kind::HalfWindow, &mut ());
    check_books(&checked.plan, &halves);
    run.effort.visits as f64 / halves.effort.visits as f64
}

#[test]
fn two_sides_that_take_turns_need_a_quarter_of_the_visits_of_half_windows() {
    let text = trimmed("", "");
    let checked = lay(&text);
    let run = agreed_on(&checked, &text);
    assert!(run.ending == Ending::Finished && run.data.cut > 100, "{:?}", run.data);
    // A side waits for the other one at both ends of a busy time.
    let run = run_on(&checked);
    assert!(share_of_visits(&checked, &run) < 0.33, "{}", share_of_visits(&checked, &run));
    assert_eq!(run.effort.heavy, 0);
    let text = text.replace(BLIND, "");
    let series = lay(&text);
    let whole = agreed_on(&series, &text);
    assert!(share_of_visits(&series, &run_on(&series)) > 0.4, "{:?}", whole.effort);
}

#[test]
fn a_visit_in_which_the_shared_buffer_may_fill_is_split_where_the_buffer_is_sampled() {
    for (buffer, heavy) in [("\"80kB\"", true), ("\"200kB\"", true), ("\"10MB\"", false)] {
        let text = trimmed(&format!("buffer = {buffer}"), "");
        let checked = lay(&text);
        let run = agreed_on(&checked, &text);
        assert!(run.max_buffer.iter().all(|most| most.get() > 4_000), "{:?}", run.max_buffer);
        assert_eq!(run_on(&checked).effort.heavy > 20, heavy, "{buffer}");
    }
}

#[test]
fn a_run_in_turns_that_stalls_begins_anew() {
    let text = trimmed("", "[links]\nloss = 0.02\nlose-replies = true\n").replace(
        "[nic.transport.uec]",
        "[nic]\ntimeout = { fixed = \"5ms\" }\n[nic.transport.uec]\ninfer-loss = false",
    );
    let mut checked = lay(&text);
    let finished = agreed_on(&checked, &text);
    assert!(finished.ending == Ending::Finished && finished.end > Time::from_ms(5));
    checked.plan.no_progress = Time::from_us(100);
    let stalled = agreed_on(&checked, &text);
    assert!(matches!(stalled.ending, Ending::Stalled(_)), "{:?}", stalled.ending);
    let mut starts = Starts(0);
    sim::run(&checked.plan, &checked.schemes, &checked.nics, Kind::Window, &mut starts);
    assert_eq!(starts.0, 1, "a set-up ends once");
}

/// Counts the starts of which a run tells.
struct Starts(u32);

impl engine::Observer for Starts {
    fn on_start(&mut self) {
        self.0 += 1;
    }

    fn on_progress(&mut self, _: engine::Progress) -> bool {
        true
    }
}

/// A random fabric of two tiers whose queues have caps.
fn capped() -> impl Strategy<Value = String> {
    let shape = (2..5usize, 1..4usize, 1..5usize);
    let links = (
        select(&["25Gbps", "100Gbps", "400Gbps"][..]),
        select(&["1ns", "120ns", "500ns", "2us"][..]),
        select(&["\n", "uplink-rate = \"100Gbps\"", "uplink-delay = \"700ns\""][..]),
    );
    let overflow = select(&["", "cut = \"on\"", "cut = { frame = \"100B\", victim = \"even\" }"][..]);
    let switch =
        (overflow, 4_000..60_000u32, 20_000..300_000u32, select(&["one", "strict", "cnp-first"][..]));
    let parts = (select(&["ecmp", "rps", "themis", "reps", "entropy-mixed", "drill"][..]), any_nic());
    let jobs = select(
        &[
            "all-to-all = { per-pair = \"SIZE\", groups = \"all\" }",
            "permutation = { bytes = \"SIZE\" }",
            "incast = { bytes = \"SIZE\", senders = SENDERS }",
        ][..],
    );
    let world = (0..1000u32, select(&[0.0, 0.0, 0.01, 0.1][..]), any::<bool>(), 1..90_000u32);
    (shape, links, switch, parts, jobs, world).prop_map(
        |((leaves, spines, hosts), (rate, delay, keys), (overflow, cap, buffer, classes), (scheme, nic), job, world)| {
            let (seed, loss, replies, bytes) = world;
            let fabric = leaf_spine(leaves, spines, hosts, &format!("rate = \"{rate}\"\ndelay = \"{delay}\"\n{keys}"));
            format!(
                "seed = {seed}\n{fabric}[links]\nloss = {loss:?}\nlose-replies = {replies}\n\
                 [switch]\npfc = \"off\"\n{overflow}\nqueue-cap = \"{cap}B\"\nbuffer = \"{buffer}B\"\nclasses = \"{classes}\"\n\
                 {BLIND}{nic}\n[scheme.{scheme}]\n[stop]\nno-progress = \"8ms\"\n[[workload]]\n{}\n",
                job.replace("SIZE", &format!("{bytes}B")).replace("SENDERS", &(leaves * hosts - 1).to_string())
            )
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn on_any_fabric_of_two_sides_the_engines_agree(text in capped()) {
        let Ok(checked) = scenario::check(&scenario::Source::new("turns.toml", text.clone()), &[]) else {
            return Err(TestCaseError::reject("a NIC that does not suit the fabric"));
        };
        if let Err(difference) = compared_on(&checked) {
            return Err(TestCaseError::fail(format!("{difference}\nin: {text}")));
        }
    }
}
