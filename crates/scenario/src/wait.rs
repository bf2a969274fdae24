//! What the senders of a NIC wait for: ACKs on the idle fabric, timers, and their own pauses.

use crate::ideal::Ideals;
use crate::values::LATEST;
use crate::{Plan, Scenario};
use model::fabric::Link;
use model::plan::Message;
use model::{HostId, Time};
use rnic::{Acks, NicConfig};

/// The NIC of one or more traffic classes, and the waits of its senders.
#[derive(Debug)]
pub(crate) struct Waits {
    /// Path of the NIC in the scenario.
    pub(crate) path: String,
    pub(crate) nic: NicConfig,
    /// Path of the shortest retransmission timeout, such as `nic.timeout`, and its time.
    pub(crate) shortest: (String, Time),
    /// Longest retransmission timeout; zero if there is none.
    pub(crate) timeout: Time,
    /// The ACK that may take longest; `None` if all surely come before they matter.
    pub(crate) ack: Option<LongestWait>,
}

/// The longest wait for an ACK on the idle fabric.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LongestWait {
    pub(crate) from: HostId,
    pub(crate) to: HostId,
    pub(crate) time: Time,
}

/// Least time without progress after which a run gives up. Our choice.
const LEAST_PATIENCE: Time = Time::from_ms(100);

/// Ten times this time.
pub(crate) fn ten(time: Time) -> Time {
    Time(time.ps().saturating_mul(10))
}

/// Longest time in which watchdogs of PFC find a storm and see its end: both begin between two polls.
pub(crate) fn for_watchdogs(plan: &Plan) -> Time {
    let watchdogs = plan.settings_of_groups().flatten().filter_map(|switch| switch.flow_control.watchdog());
    let longest = watchdogs.map(|dog| {
        dog.poll.ps().saturating_mul(dog.detection.saturating_add(dog.restoration).saturating_add(2))
    });
    Time(longest.max().unwrap_or(0))
}

/// The waits of all NICs of traffic classes with flows: the scenario's NIC, a class's own, or the one that its scheme brings.
pub(crate) fn of_nics(scenario: &Scenario, plan: &Plan) -> Vec<Waits> {
    let mut nics: Vec<(String, NicConfig)> = Vec::new();
    for job in &plan.jobs {
        let class = plan.traffic_classes.get(usize::from(job.class)).map_or("foreground", String::as_str);
        let nic = scenario.nic_of(class);
        if nics.iter().all(|(_, other)| *other != nic) {
            nics.push((scenario.nic_path(class), nic));
        }
    }
    let given = scenario.stop.no_progress;
    nics.into_iter().map(|(path, nic)| Waits::new(path, nic, given, plan)).collect()
}

impl Waits {
    fn new(path: String, nic: NicConfig, given: Option<Time>, plan: &Plan) -> Self {
        let span = nic.timeout.span();
        let timeout =
            if span == Time::NEVER { Time::ZERO } else { nic.backoff.map_or(span, |b| b.cap.max(span)) };
        let shortest = nic.transport.other_timeout().into_iter().chain([("nic.timeout".to_owned(), span)]);
        let shortest = shortest.min_by_key(|(_, time)| *time).unwrap_or_default();
        let mut waits = Waits { path, nic, shortest, timeout, ack: None };
        let limit = given.unwrap_or(Time(LEAST_PATIENCE.ps() / 10)).min(waits.shortest.1);
        waits.ack = waits.longest(plan, limit);
        waits
    }

    /// Most packets until a receiver owes an ACK.
    pub(crate) fn packets_per_ack(&self, plan: &Plan) -> u64 {
        let every = if self.nic.ack_per_message { u64::MAX } else { self.nic.ack_every.into() };
        self.nic.transport.facts().acks.packets(every, plan.wire.max_frame().into())
    }

    /// The longest round trip until an ACK, or zero if all are short.
    pub(crate) fn rtt(&self) -> Time {
        self.ack.map_or(Time::ZERO, |ack| ack.time)
    }

    /// Time without progress after which a run should give up: ten retransmission timeouts, ten round trips or ten pauses of the
    /// NIC, and no sooner than a queue pair without retries, which may have moved to another port before.
    pub(crate) fn patience(&self, plan: &Plan) -> Time {
        let longest = self.timeout.max(self.rtt()).max(longest_pause(&self.nic, plan));
        let timeouts = u64::from(self.nic.retry_limit().unwrap_or(0)) + 2;
        let mut retrying = Time(self.timeout.ps().saturating_mul(timeouts));
        if self.nic.fails_over() {
            retrying = Time(retrying.ps().saturating_mul(2).saturating_add(rnic::NCCL.probe.ps()));
        }
        LEAST_PATIENCE.max(ten(longest)).max(retrying).min(LATEST)
    }

    /// The queue pair that may wait longest for an ACK; `None` if all wait surely less than `limit`.
    fn longest(&self, plan: &Plan, limit: Time) -> Option<LongestWait> {
        let acks_messages = matches!(self.nic.transport.facts().acks, Acks::Messages(_));
        let packets = self.packets_per_ack(plan);
        let until_ack =
            |message: &Message| message.bytes.min(packets.saturating_mul(plan.wire.payload.into()));
        // Where ACKs concern whole messages, the timer runs from the last packet on.
        let spent = |message: &Message| {
            let before_last = plan.wire.packets(until_ack(message)) - 1;
            let link = plan.fabric.uplink(plan.qps[message.qp.index()].from);
            let frame = plan.wire.transmission(link.rate, plan.wire.max_frame());
            Time(frame.ps().saturating_mul(if acks_messages { before_last } else { 0 }))
        };
        let bytes = plan.messages.iter().map(until_ack).max().unwrap_or(0);
        if longest_way(plan, bytes) < limit {
            return None;
        }
        let mut ideals = Ideals::on_slowest_paths(plan);
        let waits = plan.messages.iter().map(|message| {
            let qp = &plan.qps[message.qp.index()];
            let time = match ideals.fct(qp.from, qp.to, until_ack(message)) {
                Time::NEVER => Time::NEVER,
                time => Time(time.ps().saturating_sub(spent(message).ps())),
            };
            LongestWait { from: qp.from, to: qp.to, time }
        });
        waits.filter(|wait| wait.time < Time::NEVER).max_by_key(|wait| wait.time)
    }
}

/// Most links that a path is expected to have. Our choice.
const LONGEST_PATH: u64 = 64;

/// A time that no message of so many bytes exceeds on any path.
fn longest_way(plan: &Plan, bytes: u64) -> Time {
    let frame = |link: &Link| plan.wire.transmission(link.rate, plan.wire.max_frame());
    let reach = |link: &Link| link.delay + frame(link);
    let longest = plan.fabric.links().iter().map(reach).max().unwrap_or(Time::ZERO);
    let slowest = plan.fabric.links().iter().map(frame).max().unwrap_or(Time::ZERO);
    let sending = slowest.ps().saturating_mul(plan.wire.packets(bytes));
    Time(longest.ps().saturating_mul(2 * LONGEST_PATH).saturating_add(sending))
}

/// Longest time that a NIC may put between two packets of a queue pair: at its lowest rate or smallest window, or while it
/// stalls.
fn longest_pause(nic: &NicConfig, plan: &Plan) -> Time {
    let frame = u64::from(plan.wire.max_frame() + plan.wire.gap);
    let gap = |rtt| nic.congestion.longest_gap(frame, rtt);
    let gap = match gap(Time::ZERO) == gap(LEAST_PATIENCE) {
        true => gap(Time::ZERO),
        false => gap(Ideals::on_slowest_paths(plan).longest_rtt()),
    };
    let slowest = plan.nic_classes.table.iter().filter_map(|class| class.rate).min();
    let by_class = slowest.map_or(Time::ZERO, |rate| rate.time_for(frame));
    gap.max(nic.on_nack.stall()).max(nic.on_timeout.stall()).max(by_class)
}
