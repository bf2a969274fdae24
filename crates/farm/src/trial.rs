//! A trial of one scenario: it is refused with an error that names a place, or it runs and keeps every rule.

use crate::panics;
use engine::outcome::{Ending, Outcome};
use engine::{Kind, Observer, Progress};
use explain::Explanation;
use lab::execute::{Prepared, execute};
use model::fabric::Link;
use model::record::RecordPlan;
use model::{Plan, Time};
use scenario::ideal::Ideals;
use scenario::{Checked, Source, code};
use std::sync::atomic::AtomicBool;

/// Most hops of a run, after which the trial gives up.
const MOST_HOPS: u64 = 80_000;
/// One trial in so many also runs on two and on three threads. Threads meet in every window, which takes most of the time on a
/// busy machine.
const WITH_THREADS: u64 = 16;
/// One trial in so many also writes tables and explains a flow.
const WITH_RESULTS: u64 = 8;

/// The end of a trial.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The scenario was refused with an error that names its place.
    Refused,
    /// The run was given up, because it was too long.
    TooLong,
    /// The scenario ran, and all rules held. The events that happened in the run, in words.
    Passed(Vec<&'static str>),
    /// A rule was broken.
    Failed(Fault),
}

/// A broken rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// The rule, in the same words for the same fault.
    pub rule: String,
    /// What was found.
    pub detail: String,
}

impl Fault {
    pub(crate) fn new(rule: &str, detail: impl Into<String>) -> Self {
        Fault { rule: rule.to_owned(), detail: detail.into() }
    }
}

/// Checks the text of a scenario, and runs it if it is accepted.
pub fn of_text(name: &str, text: &str) -> Verdict {
    panics::caught(|| {
        let source = Source::new(name, text);
        match scenario::check(&source, &[]) {
            Err(error) => refused(&error),
            Ok(checked) => of_checked(&source, &checked),
        }
    })
}

/// An error names its place and says something.
pub(crate) fn refused(error: &scenario::Finding) -> Verdict {
    if error.text.trim().is_empty() {
        return Verdict::Failed(Fault::new("an error has a message", format!("{error:?}")));
    }
    match error.place.as_ref() {
        Some(_) => Verdict::Refused,
        None => Verdict::Failed(Fault::new("an error names its line", &*error.text)),
    }
}

/// Runs a checked scenario on all engines and checks the rules.
pub(crate) fn of_checked(source: &Source, checked: &Checked) -> Verdict {
    panics::caught(|| match rules(source, checked) {
        Ok(verdict) => verdict,
        Err(fault) => Verdict::Failed(fault),
    })
}

/// Most reports of progress of a run, each after a few dozen windows. Some runs have many timeouts and hardly any hops.
const MOST_REPORTS: u64 = 1_500;

/// An observer that ends a run after [`MOST_HOPS`] or [`MOST_REPORTS`].
#[derive(Default)]
struct Limit {
    reports: u64,
    exceeded: bool,
}

impl Observer for Limit {
    fn on_progress(&mut self, progress: Progress) -> bool {
        self.reports += 1;
        self.exceeded |= progress.hops > MOST_HOPS || self.reports > MOST_REPORTS;
        !self.exceeded
    }
}

fn rules(source: &Source, checked: &Checked) -> Result<Verdict, Fault> {
    let run = |plan: &Plan, kind| sim::run(plan, &checked.schemes, &checked.nics, kind, &mut ());
    let mut limit = Limit::default();
    let plan = &checked.plan;
    let bare = Plan { record: RecordPlan::default(), ..plan.clone() };
    let first = sim::run(&bare, &checked.schemes, &checked.nics, Kind::Window, &mut limit);
    if let Some(wrong) = first.violations.first() {
        return Err(Fault::new("the books add up", wrong));
    }
    if limit.exceeded {
        return Ok(Verdict::TooLong);
    }
    let number = number_of(&source.text);
    let threads: &[usize] = if (number / 8).is_multiple_of(WITH_THREADS) { &[2, 3] } else { &[] };
    let outcome = audit::compare(plan, threads, &run).map_err(|text| Fault::new(&rule_of(&text), &*text))?;
    no_faster_than_alone(checked, &outcome)?;
    lossless(checked, &outcome)?;
    patient(source, checked, &outcome)?;
    needless(checked, &outcome)?;
    if number.is_multiple_of(WITH_RESULTS) {
        results(source, checked)?;
        fast(source)?;
    }
    Ok(Verdict::Passed(events(&outcome)))
}

/// The kinds of events that happened in a run.
fn events(outcome: &Outcome) -> Vec<&'static str> {
    let (data, control) = (&outcome.data, &outcome.control);
    let marks: u64 = outcome.links.iter().map(|link| link.marks).sum();
    let kinds = [
        ("losses", data.dropped_link),
        ("drops", data.dropped_buffer),
        ("cuts", data.cut),
        ("pauses", control.pause),
        ("marks", marks),
        ("reordering", data.out_of_order),
        ("NACKs", control.nack),
        ("blocked control packets", control.blocked),
        ("retransmissions", data.retransmitted),
        ("timeouts", control.timeout),
        ("early stops", u64::from(outcome.ending == Ending::Stopped)),
        ("stalls", u64::from(matches!(outcome.ending, Ending::Stalled(_)))),
        ("failovers", outcome.failovers.len() as u64),
        ("exceeded retries", u64::from(matches!(outcome.ending, Ending::RetryExceeded(_)))),
    ];
    kinds.into_iter().filter(|(_, count)| *count > 0).map(|(kind, _)| kind).collect()
}

/// The rule in the first line of a comparison's message: the engines and parts that differ, without numbers.
fn rule_of(text: &str) -> String {
    let plain = |line: &str| line.chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
    let mut lines = text.lines();
    let first = lines.next().map(plain).unwrap_or_default();
    let part = lines.next().and_then(|line| line.trim().split(':').next()).unwrap_or_default();
    format!("{first} {part}").trim().to_owned()
}

/// A number that depends on the text only.
fn number_of(text: &str) -> u64 {
    text.bytes().fold(7, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)))
}

/// A flow takes at least the time that it takes alone on the idle fabric.
///
/// The ideal has an ACK for every packet, and an ACK waits for those before it, while some receivers acknowledge many packets
/// with one ACK or send none for packets out of order. It knows no failures. On a
/// fabric of groups it takes a minimal path, which need not be the fastest. Where links differ, it is exact to the time of
/// a frame.
fn no_faster_than_alone(checked: &Checked, outcome: &Outcome) -> Result<(), Fault> {
    let plan = &checked.plan;
    let (data, acks) = (&outcome.data, outcome.control.ack);
    let fewer_acks = acks < data.accepted || data.out_of_order > 0 || data.retransmitted > 0;
    if !plan.failures.is_empty() || fewer_acks || plan.fabric.groups() > 0 {
        return Ok(());
    }
    let frame = |link: &Link| plan.wire.transmission(link.rate, plan.wire.max_frame().max(plan.wire.ack));
    let frames = || plan.fabric.links().iter().map(frame);
    let unlike = frames().max() != frames().min();
    let slack = if unlike { frames().max().unwrap_or(Time::ZERO) } else { Time::ZERO };
    let mut ideals = Ideals::new(plan);
    for (message, record) in plan.messages.iter().zip(&outcome.messages) {
        let Some(fct) = results::flows::fct(record) else { continue };
        let qp = &plan.qps[message.qp.index()];
        let ideal = ideals.fct(qp.from, qp.to, message.bytes);
        if fct + slack < ideal {
            let text = format!("{} B took {fct}, and {ideal} alone", message.bytes);
            return Err(Fault::new("a flow is not faster than alone", text));
        }
    }
    Ok(())
}

/// With PFC, and headroom as the plan computes it, no packet is dropped for lack of buffer.
fn lossless(checked: &Checked, outcome: &Outcome) -> Result<(), Fault> {
    let plan = &checked.plan;
    let named = checked.scenario.switch.pfc.get().is_some_and(|pfc| pfc.headroom.is_some());
    let roles = checked.scenario.switch_role.values().any(|role| role.pfc.is_some() || role.buffer.is_some());
    if named || roles || !plan.failures.is_empty() || outcome.broke_lossless.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = outcome.broke_lossless.iter().map(|&node| plan.fabric.name(node)).collect();
    Err(Fault::new("a lossless fabric drops nothing", names.join(", ")))
}

/// A run that stalls also stalls if it gets eight times the patience.
fn patient(source: &Source, checked: &Checked, outcome: &Outcome) -> Result<(), Fault> {
    let Ending::Stalled(stall) = &outcome.ending else { return Ok(()) };
    // Where packets are lost, or arrive and are refused, a run may be lucky after any patience.
    let data = &outcome.data;
    let arrives = data.dropped_link + data.dropped_buffer + data.discarded + data.duplicate > 0;
    // The prototype of `long-haul` holds packets for any time, and a warning tells so.
    let holds = checked.findings.iter().any(|warning| warning.code == code::NO_END.name);
    if arrives || holds || checked.scenario.stop.no_progress.is_some() {
        return Ok(());
    }
    let longer = format!("stop.no-progress={}ps", checked.plan.no_progress.ps().saturating_mul(8));
    let Ok(longer) = scenario::check(source, &[longer]) else { return Ok(()) };
    let mut limit = Limit::default();
    let again = sim::run(&longer.plan, &longer.schemes, &longer.nics, Kind::Window, &mut limit);
    match again.ending {
        Ending::Stalled(other) if other.since == stall.since => Ok(()),
        Ending::Interrupted => Ok(()),
        ending => {
            let text = format!(
                "stalled at {}, and with more patience {} at {}",
                outcome.end,
                ending.name(),
                again.end
            );
            Err(Fault::new("a run that stalls would not go on", text))
        }
    }
}

/// A flow that is alone on a fabric without losses, failures and congestion retransmits nothing, or a warning tells why.
fn needless(checked: &Checked, outcome: &Outcome) -> Result<(), Fault> {
    let (plan, data) = (&checked.plan, &outcome.data);
    let dropped = data.dropped_buffer + data.dropped_scheme + data.cut;
    let lost = outcome.links.iter().any(|link| link.lost > 0);
    // Where a link is slower than the sender's, the flow queues behind itself, and a long queue outlasts the timer.
    let two = 2 * u64::from(plan.wire.max_frame());
    let congested = outcome.links.iter().any(|link| link.marks > 0 || link.max_queue > two);
    let alone = plan.messages.len() == 1 && plan.failures.is_empty() && !congested;
    if alone
        && dropped == 0
        && !lost
        && data.out_of_order == 0
        && data.retransmitted > 0
        && checked.findings.is_empty()
    {
        let text = format!("{} of {} packets were retransmissions", data.retransmitted, data.sent);
        return Err(Fault::new("a lone flow retransmits nothing without a warning", text));
    }
    Ok(())
}

/// Recording changes no digest, every table can be written, and the account of a flow adds up.
fn results(source: &Source, checked: &Checked) -> Result<(), Fault> {
    let stop = AtomicBool::new(false);
    let finished = |checked: Checked| {
        execute(Prepared { checked, setup_s: 0.0 }, Kind::Window, &lab::Progress::silent(&stop))
    };
    let plain = finished(checked.clone());
    let Ok(recorded) = scenario::check(source, &lab::RECORD_EVERYTHING.map(str::to_owned)) else {
        return Ok(());
    };
    let run = finished(recorded);
    if run.summary.digest != plain.summary.digest {
        return Err(Fault::new("recording changes no digest", plain.summary.digest));
    }
    let results = run.results(Vec::new());
    for (name, table) in results.tables() {
        let written = table.to_parquet(&run.summary.digest);
        written.map_err(|e| Fault::new("every table can be written", format!("{name}: {e}")))?;
    }
    let Ok(flow) = explain::find(&results, &run.checked.plan, "slowest") else { return Ok(()) };
    let Ok(explanation) = Explanation::of(&run.checked, &results, &flow) else { return Ok(()) };
    let account = &explanation.account;
    let parts = account.ideal_us.or(account.sending_us).unwrap_or(0.0)
        + account.delays.iter().map(|delay| delay.us).sum::<f64>();
    if (parts - account.elapsed_us).abs() > 1e-6 * (1.0 + account.elapsed_us) {
        let text =
            format!("{parts} us in the account of flow {}, {} us elapsed", flow.flow, account.elapsed_us);
        return Err(Fault::new("the account of a flow adds up", text));
    }
    if explanation.text().is_empty() || Time::NEVER.as_us() == parts {
        return Err(Fault::new("an explanation has words", flow.flow.to_string()));
    }
    Ok(())
}

/// A fast run leaves out the same on both engines.
fn fast(source: &Source) -> Result<(), Fault> {
    let stop = AtomicBool::new(false);
    let on = |kind| {
        let resolved = scenario::Resolved::of(source, &[]).ok()?;
        let leave = lab::fast::Leave::asked(Some(0.01), None);
        let run = lab::fast::run_on(resolved, leave, kind, &lab::Progress::silent(&stop)).ok()?;
        Some((run.summary.digest, run.summary.sim_time_us, run.summary.fast))
    };
    let window = on(Kind::Window);
    // Where nothing can be left out, other rules have compared the engines.
    if window.as_ref().is_some_and(|(.., fast)| fast.as_ref().is_some_and(|fast| fast.reason.is_some())) {
        return Ok(());
    }
    let reference = on(Kind::Reference);
    if window == reference {
        return Ok(());
    }
    Err(Fault::new("a fast run is the same on both engines", format!("{window:?} and {reference:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_passes_or_is_refused_at_its_place() {
        let text = "topology = { leaf-spine = { leaves = 2, spines = 2, hosts-per-leaf = 1 } }\nworkload = [{ permutation = {} }]\n";
        assert_eq!(of_text("a.toml", text), Verdict::Passed(Vec::new()));
        assert_eq!(of_text("a.toml", &text.replace("leaves", "laeves")), Verdict::Refused);
        let error = scenario::code::BUG.plain("it does not work");
        assert_eq!(
            refused(&error),
            Verdict::Failed(Fault::new("an error names its line", "it does not work"))
        );
    }

    #[test]
    fn a_panic_is_a_fault_with_its_message() {
        let Verdict::Failed(fault) = panics::caught(|| panic!("no {}", "luck")) else {
            panic!("a panic passes")
        };
        assert!(fault.rule.starts_with("nothing panics"), "{fault:?}");
        assert_eq!(fault.detail, "no luck");
    }

    /// A run whose watchdog gives up during a round trip would go on.
    #[test]
    fn an_impatient_watchdog_is_found() {
        let far = "topology = { links = { hosts = 2, delay = \"150ms\", links = [[\"host0\", \"host1\"]] } }\n\
                   workload = [{ back-to-back = { bytes = \"1MB\", messages = 2 } }]\nnic = { timeout = \"none\" }\n";
        let source = Source::new("far.toml", far);
        let mut checked = scenario::check(&source, &[]).unwrap();
        assert_eq!(of_checked(&source, &checked), Verdict::Passed(Vec::new()));
        checked.plan.no_progress = Time::from_ms(100);
        let Verdict::Failed(fault) = of_checked(&source, &checked) else { panic!("the watchdog passes") };
        assert_eq!(fault.rule, "a run that stalls would not go on");
    }

    /// The same with a timeout during the round trip, and without the warning.
    #[test]
    fn needless_retransmissions_without_a_warning_are_found() {
        let far = "topology = { links = { hosts = 2, delay = \"4ms\", links = [[\"host0\", \"host1\"]] } }\n\
                   workload = [{ back-to-back = { bytes = \"1MB\", messages = 1 } }]\n";
        let source = Source::new("far.toml", far);
        let mut checked = scenario::check(&source, &[]).unwrap();
        assert_eq!(of_checked(&source, &checked), Verdict::Passed(vec!["retransmissions", "timeouts"]));
        checked.findings.clear();
        let Verdict::Failed(fault) = of_checked(&source, &checked) else { panic!("retransmissions pass") };
        assert_eq!(fault.rule, "a lone flow retransmits nothing without a warning");
    }

    /// A receiver that can note one packet at a time acknowledges 16 of them at once: the sender has to ask.
    #[test]
    fn a_sender_whose_receiver_can_note_no_more_asks_for_an_ack() {
        let text = "topology = { links = { hosts = 2, links = [[\"host0\", \"host1\"]] } }\n\
                    workload = [{ flows = { list = [{ from = \"host0\", to = \"host1\", bytes = \"5B\" }] } }]\n\
                    wire = { payload = \"2B\" }\nnic = { transport = { uec = { reorder-window = 1 } } }\n";
        assert_eq!(of_text("asks.toml", text), Verdict::Passed(Vec::new()));
    }

    /// In a single class PFC pauses ACKs, too, and here they are longer than data.
    #[test]
    fn headroom_holds_acks_that_are_longer_than_data() {
        let text = "topology = { links = { hosts = 6, switches = [\"s0\", \"s1\", \"s2\", \"s3\"], links = [\
                    [\"host0\", \"s2\"], [\"host1\", \"s0\"], [\"host2\", \"s3\"], [\"host3\", \"s0\"], [\"host4\", \"s0\", \"1Gbps\"], \
                    [\"host5\", \"s2\"], [\"s1\", \"s0\", \"400Gbps\", \"50us\"], [\"s2\", \"s0\"], [\"s3\", \"s2\"]] } }\n\
                    workload = [{ permutation = { bytes = \"1kB\" } }]\nwire = { payload = \"2B\", ack = \"600B\" }\n\
                    switch = { buffer = \"5606470B\", classes = \"one\" }\n";
        let verdict = of_text("acks.toml", text);
        assert!(!matches!(verdict, Verdict::Failed(_)), "{verdict:?}");
    }

    /// DCP acknowledges a message once, and the ACK finds its way free.
    #[test]
    fn a_single_ack_may_be_faster_than_the_last_of_many() {
        let text = "topology = { rails = {} }\nserver = {}\nworkload = [{ fan-in = { senders = 1 } }]\n\
                    wire = { ack = \"200B\" }\nnic = { transport = { dcp = {} } }\n";
        assert_eq!(of_text("dcp.toml", text), Verdict::Passed(Vec::new()));
    }

    #[test]
    fn a_run_that_stops_before_its_copies_end_keeps_its_books() {
        let text = "topology = { leaf-spine = { leaves = 2, hosts-per-leaf = 1 } }\nserver = { gpus = 2 }\n\
                    workload = [{ collective = { kind = \"all-gather\", bytes = \"1B\" } }]\nstop = { after = \"1ps\" }\n";
        assert_eq!(of_text("copies.toml", text), Verdict::Passed(vec!["early stops"]));
    }

    #[test]
    fn a_fault_is_shrunk_to_what_it_needs() {
        let text = "seed = 9\ntopology = { leaf-spine = { leaves = 3, spines = 2, hosts-per-leaf = 3 } }\n\
                    workload = [{ permutation = {} }, { incast = { senders = 2 } }]\nwire = { frame = \"1500B\" }\n";
        let draft = crate::draft::Draft::of(text).unwrap();
        let needed = |draft: &crate::draft::Draft| draft.text().contains("incast");
        let small = crate::shrink::smallest(&draft, &needed).text();
        assert!(small.lines().count() <= 1 && small.contains("incast = {}"), "{small}");
    }

    /// On a slow link, 16 KiB take longer than this timeout, and the receiver owes an ACK after that.
    #[test]
    fn a_timeout_shorter_than_the_wait_for_an_ack_is_told() {
        let text = "topology = { links = { hosts = 2, rate = \"1Gbps\", links = [[\"host0\", \"host1\"]] } }\n\
                    workload = [{ back-to-back = { messages = 1 } }]\n\
                    nic = { timeout = { fixed = \"100us\" }, transport = { mrc = {} } }\n";
        assert_eq!(of_text("slow.toml", text), Verdict::Passed(vec!["retransmissions", "timeouts"]));
        let checked = scenario::check(&Source::new("slow.toml", text), &[]).unwrap();
        assert!(
            checked.warnings()[0].contains("time until an ACK (`ack-bytes`) comes back"),
            "{:?}",
            checked.warnings()
        );
        let slow = text.replace("100us", "200us");
        assert_eq!(of_text("slow.toml", &slow), Verdict::Passed(Vec::new()));
    }

    /// Behind a link of a hundredth of the sender's rate, a queue without marks outlasts the timer: that is congestion.
    #[test]
    fn a_flow_that_queues_behind_itself_is_congested() {
        let text = "topology = { links = { hosts = 2, switches = [\"s0\"], links = [[\"host0\", \"s0\"], \
                    [\"host1\", \"s0\", \"1Gbps\"]] } }\nworkload = [{ back-to-back = { messages = 1 } }]\n\
                    switch = { ecn = false }\nnic = { transport = { uec = {} } }\n";
        assert_eq!(of_text("slow.toml", text), Verdict::Passed(vec!["retransmissions", "timeouts"]));
    }
}
