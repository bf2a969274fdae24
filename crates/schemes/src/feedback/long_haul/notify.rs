//! The notification point: sends CNPs to local senders on behalf of remote receivers.

use super::config::{CnpTable, Config, Notification};
use super::links::MOST;
use crate::flows::Flows;
use model::draw::below;
use model::{Cx, HostId, Kind, Packet, Plan, Psn, QpId, Time};
use std::collections::{BTreeMap, VecDeque};

/// Time of the last CNP to a flow's sender, if any. An entry older than the interval has no effect, so a switch may forget
/// it.
#[derive(Clone, Copy, Debug, Default)]
struct LastCnp(Option<Time>);

/// Entry of a flow in the table of senders' queue pairs.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// Time from which CNPs find it; `None` if it is not in the table.
    ready: Option<Time>,
    /// Last packet of the newest message, once it has passed, and the time of removal. Only a later packet brings the entry
    /// back.
    ended: Option<(Psn, Time)>,
}

/// The table of senders' queue pairs, see [`CnpTable`].
#[derive(Clone, Debug)]
struct Table {
    config: CnpTable,
    entries: Flows<Entry>,
    size: usize,
    /// Entries to remove, in order of time.
    ending: VecDeque<(Time, QpId)>,
    peak: u64,
}

impl Table {
    fn new(config: &CnpTable) -> Self {
        Table { config: config.clone(), entries: Flows::new(), size: 0, ending: VecDeque::new(), peak: 0 }
    }

    /// Takes note of data that passes the switch.
    fn note(&mut self, now: Time, pkt: &Packet) {
        self.remove(now);
        let (qp, psn) = (pkt.qp(), pkt.psn());
        let entry = self.entries.entry(qp);
        if entry.ended.is_none_or(|(last, _)| psn.is_after(last)) {
            entry.ended = None;
            if entry.ready.is_none() && self.size < self.config.entries {
                entry.ready = Some(now + self.config.install_delay.min(MOST));
                self.size += 1;
                self.peak = self.peak.max(self.size as u64);
            }
            if pkt.last() {
                let at = now + self.config.removal_delay.min(MOST);
                entry.ended = Some((psn, at));
                self.ending.push_back((at, qp));
            }
        }
    }

    fn remove(&mut self, now: Time) {
        while let Some(&(at, qp)) = self.ending.front().filter(|(at, _)| *at <= now) {
            self.ending.pop_front();
            let entry = self.entries.entry(qp);
            if entry.ended.is_some_and(|(_, end)| end == at) {
                self.size -= usize::from(entry.ready.take().is_some());
            }
        }
    }

    fn has(&self, now: Time, qp: QpId) -> bool {
        self.entries.get(qp).and_then(|entry| entry.ready).is_some_and(|ready| ready <= now)
    }
}

/// The notification point of one switch.
#[derive(Clone, Debug)]
pub(crate) struct Notifier {
    mode: Notification,
    gates: bool,
    interval: Time,
    /// Shortest and longest time until a CNP leaves.
    delays: (Time, Time),
    table: Option<Table>,
    /// CNPs that wait for their time, by that time and the number of the CNP.
    waiting: BTreeMap<(Time, u64), QpId>,
    /// Sending host of every queue pair.
    senders: Vec<HostId>,
    /// Frame of a CNP, bytes.
    frame: u32,
    last_cnp: Flows<LastCnp>,
    counts: Counts,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    seen: u64,
    made: u64,
    passed: u64,
    gated: u64,
    unaddressed: u64,
}

impl Notifier {
    pub(crate) fn new(config: &Config, plan: &Plan) -> Self {
        Notifier {
            mode: config.notification,
            gates: config.gates(),
            interval: config.interval(),
            delays: config.cnp_delays(),
            table: config.cnp_table.as_ref().map(Table::new),
            waiting: BTreeMap::new(),
            senders: plan.qps.iter().map(|qp| qp.from).collect(),
            frame: plan.wire.cnp,
            last_cnp: Flows::new(),
            counts: Counts::default(),
        }
    }

    /// True if this notification point acts as data starts on the wire.
    pub(crate) fn is_proactive(&self) -> bool {
        self.mode == Notification::Proactive
    }

    /// Takes note of data that has come in.
    pub(crate) fn note(&mut self, now: Time, pkt: &Packet) {
        if let Some(table) = &mut self.table {
            table.note(now, pkt);
        }
    }

    /// Handles marked data that starts on the wire.
    pub(crate) fn start(&mut self, cx: &mut Cx<'_>, pkt: &mut Packet) {
        self.counts.seen += 1;
        let (now, qp) = (cx.now, pkt.qp());
        let (last_cnp, interval) = (self.last_cnp.entry(qp), self.interval.ps());
        if interval == 0 || last_cnp.0.is_none_or(|at| now.ps() >= at.ps().saturating_add(interval)) {
            // The artefact takes the time at which the CNP leaves for that of the last CNP.
            let at = self.send_cnp(cx, qp);
            if let Some(at) = at {
                self.last_cnp.entry(qp).0 = Some(at);
            }
        }
        pkt.unmark();
    }

    /// Handles marked data that is about to leave for the other datacentre.
    pub(crate) fn notify(&mut self, cx: &mut Cx<'_>, pkt: &mut Packet) {
        self.counts.seen += 1;
        let qp = pkt.qp();
        match self.mode {
            Notification::Off | Notification::Proactive => return,
            Notification::Paper => {
                if self.due(cx.now, qp) {
                    self.send_cnp(cx, qp);
                }
            }
            Notification::Prototype => {
                if self.due(cx.now, qp) {
                    self.send_cnp(cx, qp);
                }
                self.send_cnp(cx, qp);
            }
        }
        // With the mark, the receiver or a later switch would report the same congestion again.
        pkt.unmark();
    }

    /// True if a CNP from a long link may be forwarded.
    pub(crate) fn passes(&mut self, now: Time, pkt: &Packet) -> bool {
        let passes = !self.gates || self.due(now, pkt.qp());
        match passes {
            true => self.counts.passed += 1,
            false => self.counts.gated += 1,
        }
        passes
    }

    /// True if a flow's sender may get a CNP now; then this starts a new interval.
    fn due(&mut self, now: Time, qp: QpId) -> bool {
        let last_cnp = self.last_cnp.entry(qp);
        let due = last_cnp.0.is_none_or(|at| now.ps() - at.ps() > self.interval.ps());
        if due {
            last_cnp.0 = Some(now);
        }
        due
    }

    /// Sends a CNP, now or after its delay; returns the time at which it leaves, or `None` if the switch does not know the
    /// sender's queue pair.
    fn send_cnp(&mut self, cx: &mut Cx<'_>, qp: QpId) -> Option<Time> {
        if self.table.as_ref().is_some_and(|table| !table.has(cx.now, qp)) {
            self.counts.unaddressed += 1;
            return None;
        }
        let (least, most) = self.delays;
        let range = most.ps() - least.ps();
        let drawn = if range > 0 { below(cx.draw(), range as usize + 1) as u64 } else { 0 };
        let at = cx.now + Time(least.ps() + drawn).min(MOST);
        self.counts.made += 1;
        if at == cx.now {
            self.emit(cx, qp);
        } else {
            self.waiting.insert((at, self.counts.made), qp);
            cx.wake_at(at);
        }
        Some(at)
    }

    fn emit(&self, cx: &mut Cx<'_>, qp: QpId) {
        if let Some(&sender) = self.senders.get(qp.index()) {
            cx.emit(Packet::new(Kind::Cnp, qp, sender, Psn::new(0), self.frame));
        }
    }

    /// Sends the CNPs whose time has come.
    pub(crate) fn wake(&mut self, cx: &mut Cx<'_>) {
        while let Some(first) = self.waiting.first_entry() {
            if first.key().0 > cx.now {
                cx.wake_at(first.key().0);
                break;
            }
            let qp = first.remove();
            self.emit(cx, qp);
        }
    }

    pub(crate) fn counters(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        let Counts { seen, made, passed, gated, unaddressed } = self.counts;
        for (name, count) in
            [("marks_seen", seen), ("cnps_made", made), ("cnps_passed", passed), ("cnps_gated", gated)]
        {
            sink(name, count);
        }
        if let Some(table) = &self.table {
            sink("cnps_unaddressed", unaddressed);
            sink("cnp_table_peak", table.peak);
        }
    }
}
