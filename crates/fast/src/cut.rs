//! Runs that leave out the middle of long messages, where the state of the whole run repeats, see [`engine::cut`].
//!
//! [`period`] finds the time after which a run repeats. The engine's clock stands still in a cut, so the times of what ends later are
//! moved in the end.

mod period;
mod watch;

use engine::cut::Refusal;
use engine::outcome::{Ending, Recording};
use engine::{Kind, Observer, Outcome};
use model::plan::PortSettings;
use model::{HostId, LinkId, Plan, Time};
use scenario::Checked;
use watch::{Cutting, Watch};

/// Fewest packets of a message that may be cut. Our choice: about ten round trips at 400 Gb/s.
const LONG: u64 = 4_000;

/// What was left out of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cuts {
    /// Number of cuts.
    pub cuts: u64,
    /// Packets left out.
    pub left_out: u64,
    /// Why nothing was left out.
    pub reason: Option<&'static str>,
}

/// Why a run cannot be cut, as far as its plan says; `None` if it may be.
pub fn refused(checked: &Checked) -> Option<&'static str> {
    let plan = &checked.plan;
    if !plan.messages.iter().any(|message| plan.wire.packets(message.bytes) >= LONG) {
        Some("no message has 4,000 packets")
    } else if plan.posted.is_some() {
        Some("a program drives the run")
    } else if plan.jobs.iter().any(|job| job.background) || plan.stop_after.is_some() {
        Some("the run ends at a time, or has background traffic")
    } else {
        remembers(checked)
    }
}

/// Why a run cannot leave out the messages of a program that meet nobody, as far as its plan says; `None` if it may.
pub fn met(checked: &Checked) -> Option<&'static str> {
    let plan = &checked.plan;
    let failures = &plan.failures;
    let changes = !failures.is_empty() || !failures.route_changes().is_empty();
    if !plan.messages.is_empty() || !plan.tasks.is_empty() {
        Some("other jobs share the fabric")
    } else if changes || !failures.of_switches().is_empty() {
        Some("the fabric changes during the run")
    } else if plan.stop_after.is_some() {
        Some("the run ends at a time")
    } else if narrows(plan) {
        Some("a link is slower than a NIC, so that a message alone waits in queues")
    } else if marks_few(plan) {
        Some("switches mark queues of less than four frames")
    } else {
        remembers(checked)
    }
}

/// True if a link of some path may be slower than the NIC that sends: then a long message fills buffers, and is marked.
fn narrows(plan: &Plan) -> bool {
    let fabric = &plan.fabric;
    let fastest = (0..fabric.hosts()).map(|host| fabric.uplink(HostId(host as u32)).rate.bps()).max();
    fabric.links().iter().any(|link| Some(link.rate.bps()) < fastest)
}

/// True if a queue of a few frames may be marked, each by a draw. Where no link is slower than a NIC, a message alone has two frames in a
/// queue at most: our choice is twice as many.
fn marks_few(plan: &Plan) -> bool {
    let few = 4 * u64::from(plan.wire.max_frame());
    plan.ports.iter().any(|port| kmin(port) < few)
}

/// What of the fabric would remember packets, or draw for each of them.
fn remembers(checked: &Checked) -> Option<&'static str> {
    let Checked { plan, schemes, nics, .. } = checked;
    let recorded = !plan.record.follow.is_empty() || !plan.record.taps.is_empty();
    let lossy = plan.fabric.links().iter().any(|link| !link.loss.is_zero());
    let losses = lossy || !plan.lost.is_empty() || !plan.noise.links.is_empty();
    let own = plan.sharing.is_some() || !plan.own_queues.is_empty() || !plan.has_plain_queues();
    if !sim::only_hashes(plan, schemes, nics) {
        Some("switches do more than to hash flows")
    } else if losses || !plan.failures.losses().is_empty() {
        Some("links lose packets, and each loss is a draw by time")
    } else if !plan.failures.storms().is_empty() {
        Some("a host pauses its link")
    } else if own {
        Some("queues have turns, averages, credits or counts of their own")
    } else if plan.switches.iter().any(|switch| switch.flow_control.watchdog().is_some()) {
        Some("switches look for storms at fixed times")
    } else if recorded {
        Some("single packets are recorded")
    } else {
        None
    }
}

/// Runs a plan that is not [`refused`] to its end. Its times are those of the run that sends everything, and its counts those of what was
/// sent.
pub fn run(checked: &Checked, kind: Kind, observer: &mut dyn Observer) -> (Outcome, Cuts) {
    let Checked { plan, schemes, nics, .. } = checked;
    let mut tapped = plan.clone();
    tapped.record.taps = (0..plan.fabric.links().len() as u32).map(LinkId).collect();
    let mut cutting = Cutting { observer, watch: Watch::new(&tapped, last_change(plan)) };
    let kind = if matches!(kind, Kind::Threads(_)) { Kind::Window } else { kind };
    let mut outcome = sim::run(&tapped, schemes, nics, kind, &mut cutting);
    let watch = cutting.watch;
    outcome.notes.frames.clear();
    if !watch.jumps.is_empty() {
        // Its bins are of the engine's clock.
        outcome.recording = Recording { width: outcome.recording.width, ..Recording::default() };
    }
    let cuts = Cuts {
        cuts: watch.jumps.len() as u64,
        left_out: watch.shorter.values().sum(),
        reason: watch.jumps.is_empty().then_some(watch.reason),
    };
    tell(plan, &watch, &mut outcome);
    (outcome, cuts)
}

/// Time of the last start or change that the plan fixes, ps.
fn last_change(plan: &Plan) -> u64 {
    let starts = plan.messages.iter().map(|message| message.start).chain(plan.tasks.iter().map(|t| t.start));
    let failures = &plan.failures;
    let changes = failures.changes().iter().map(|change| change.at);
    let routes =
        failures.route_changes().iter().chain(failures.of_switches().iter().map(|(_, change)| change));
    starts.chain(changes).chain(routes.map(|change| change.at)).map(Time::ps).max().unwrap_or(0)
}

/// Moves the times of an outcome from the engine's clock to the run's.
fn tell(plan: &Plan, Watch { jumps, shorter, busy, .. }: &Watch, outcome: &mut Outcome) {
    let moved = |time: &mut Time| {
        if *time != Time::NEVER {
            let behind: u64 = jumps.iter().filter(|(at, _)| *at < time.ps()).map(|(_, span)| span).sum();
            *time = Time(time.ps() + behind);
        }
    };
    for record in &mut outcome.messages {
        [&mut record.start, &mut record.received, &mut record.acked, &mut record.last_sent]
            .into_iter()
            .for_each(moved);
    }
    for record in &mut outcome.tasks {
        [&mut record.ready, &mut record.start, &mut record.end].into_iter().for_each(moved);
    }
    for losses in &mut outcome.losses {
        [&mut losses.first, &mut losses.last].into_iter().for_each(moved);
    }
    outcome.failovers.iter_mut().for_each(|failover| moved(&mut failover.at));
    match &mut outcome.ending {
        Ending::RetryExceeded(exceeded) => moved(&mut exceeded.at),
        Ending::Stalled(stall) => moved(&mut stall.since),
        _ => {}
    }
    moved(&mut outcome.end);
    for (link, more) in outcome.links.iter_mut().zip(busy) {
        link.busy = Time(link.busy.ps() + more);
    }
    let on_wire = u64::from(plan.wire.max_frame() + plan.wire.gap);
    for (message, packets) in shorter {
        outcome.messages[message.index()].wire_bytes += packets * on_wire;
    }
}

/// The queue from which on packets may be marked at a port, bytes.
fn kmin(settings: &PortSettings) -> u64 {
    settings.marking.map_or(u64::MAX, |marking| marking.kmin.get())
}

/// Why a cut was refused by the engine, in words.
const fn words(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::Short => "the messages under way end too soon",
        Refusal::Waits => "a message waits while others are sent",
        Refusal::Tasks => "computation goes on all the time",
        Refusal::Control => "the congestion control goes by time, by what is sent, or by plain ACKs",
        Refusal::History => "there were CNPs, NACKs or timeouts, and NICs may remember when",
        Refusal::Sender => "the transport keeps more of its packets than their number",
        Refusal::Steering => "senders choose paths by what they have heard",
        Refusal::Nic => "NICs have a state that packets do not show",
    }
}
