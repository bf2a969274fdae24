//! Where a flow's time went, in pieces that add up to its FCT.
//!
//! From the flow's start to the start of its last packet, every instant belongs to the first of these that applies: a
//! frame is on the wire; the rate forbids the next packet; the window is full, or there is nothing to send; the
//! sender's port is paused or sends other packets. After that, the time belongs to the network. The shortest possible
//! time to the receiver is part of the ideal, and any time beyond it is waiting. The same holds for the ACK on its way
//! back.

use crate::cause::Cause;
use crate::flow::ps;
use crate::history::History;
use crate::pauses::pauses;
use crate::trace::Step;
use engine::outcome::EventKind;
use model::{Kind, Time};
use serde::Serialize;
use std::collections::BTreeMap;

/// A piece of a flow's time beyond its ideal.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Delay {
    /// Cause of the delay.
    #[serde(rename = "kept")]
    pub cause: Cause,
    /// Length, us.
    pub us: f64,
    /// True if the delay is a difference of recorded times; false if several causes share a measured time.
    pub measured: bool,
}

/// Where a flow's time went: `ideal_us` and the delays add up to `elapsed_us`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Account {
    /// Time from the flow's start to its end, or to the end of the run.
    pub elapsed_us: f64,
    /// Ideal FCT, alone on the fabric; null if the flow never ended.
    pub ideal_us: Option<f64>,
    /// Time of the flow's packets on the wire; null if the flow ended.
    pub sending_us: Option<f64>,
    /// Delays by cause, the longest first.
    #[serde(rename = "causes")]
    pub delays: Vec<Delay>,
    /// Each wait with its start, end and cause, for the timeline.
    #[serde(skip)]
    pub(crate) waits: Vec<(Time, Time, Cause)>,
}

/// Each cause's share of the rate reduction (logarithmic).
type Blame = BTreeMap<Cause, f64>;

/// A packet that was sent, and the causes of its rate.
struct Sending<'a> {
    step: &'a Step,
    blame: Blame,
}

/// All packets that the queue pair sent, in order.
fn sendings<'a>(history: &History<'a>) -> Vec<Sending<'a>> {
    let line = history.line_rate().as_gbps();
    let (mut blame, mut rate) = (Blame::new(), None);
    let mut sendings = Vec::new();
    let mut cuts = history.cuts.iter().peekable();
    for (i, step) in history.steps.iter().enumerate() {
        while let Some(cut) = cuts.next_if(|cut| cut.seen == i) {
            let taken = (cut.from / cut.to.max(1e-9)).ln() / cut.by.len().max(1) as f64;
            cut.by.iter().for_each(|by| *blame.entry(*by).or_default() += taken);
        }
        rate = step.gbps.or(rate);
        if step.starts() {
            // At line rate, earlier cuts have no effect any more.
            if rate.is_some_and(|rate| rate >= line * 0.999) {
                blame.clear();
            }
            sendings.push(Sending { step, blame: blame.clone() });
        }
    }
    sendings
}

/// The division of the time, under construction.
struct Book<'a> {
    history: &'a History<'a>,
    /// End of the time that has been divided so far.
    now: Time,
    /// Time that is part of the ideal, ps.
    ideal: i128,
    /// Delay by cause, ps.
    delays: BTreeMap<Cause, i128>,
    waits: Vec<(Time, Time, Cause)>,
    /// Pauses of the sender's port, in order: start and end.
    pauses: Vec<(Time, Time)>,
    /// NACKs that reached the sender, and its timeouts.
    loss_reports: Vec<&'a Step>,
}

impl Book<'_> {
    /// Counts the time up to `until` as part of the ideal.
    fn ideal(&mut self, until: Time) {
        self.ideal += i128::from(until.since(self.now).ps());
        self.now = self.now.max(until);
    }

    /// Counts the time up to `until` as a delay by `why`.
    fn spend(&mut self, until: Time, why: Cause) {
        if until <= self.now {
            return;
        }
        *self.delays.entry(why).or_default() += i128::from(until.since(self.now).ps());
        match self.waits.last_mut() {
            Some((_, to, last)) if *last == why && *to == self.now => *to = until,
            _ => self.waits.push((self.now, until, why)),
        }
        self.now = until;
    }

    /// Counts the time up to `until` as due to a rate below line rate, and divides it among the causes in `blame` by their
    /// shares.
    fn pace(&mut self, until: Time, blame: &Blame) {
        let lost = i128::from(until.since(self.now).ps());
        let whole: f64 = blame.values().sum();
        let mut left = lost;
        for (why, part) in blame.iter().skip(1) {
            let share = ((lost as f64 * part / whole) as i128).clamp(0, left);
            *self.delays.entry(*why).or_default() += share;
            left -= share;
        }
        if left > 0 {
            *self.delays.entry(blame.keys().next().copied().unwrap_or(Cause::Pace)).or_default() += left;
        }
        self.now = self.now.max(until);
    }

    /// Counts the time up to `until`, in which the packet waited for its port: paused, or sending other packets.
    fn port(&mut self, until: Time) {
        let over = self.pauses.partition_point(|(_, to)| *to <= self.now);
        for i in over..self.pauses.len() {
            let (from, to) = self.pauses[i];
            if from >= until {
                break;
            }
            self.spend(from.min(until), Cause::Port);
            self.spend(to.min(until), Cause::Paused);
        }
        self.spend(until, Cause::Port);
    }

    /// Divides the time between two consecutive packets, or between the flow's start and its first packet. The rate
    /// allows the next packet at `next`; packet `b` follows.
    fn gap(&mut self, next: Time, blame: &Blame, b: &Step) {
        // Rates are recorded in whole bits per second; the rounding moves `next` by less than a nanosecond.
        let next = if b.ready.since(next) <= Time::from_ns(1) { b.ready } else { next };
        self.pace(next.min(b.at), blame);
        let why = self.why_idle(b);
        self.spend(b.ready.min(b.at), why);
        self.port(b.at);
    }

    /// The cause that kept the queue pair idle until `b` was ready.
    fn why_idle(&self, b: &Step) -> Cause {
        let after = self.loss_reports.partition_point(|step| step.at <= b.ready);
        let report = after.checked_sub(1).map(|last| self.loss_reports[last]);
        match report {
            Some(step) if step.at > self.now && step.what == EventKind::TimedOut => Cause::UntilTimeout,
            Some(step) if step.at > self.now && b.what == EventKind::Resent => Cause::UntilNack,
            _ => Cause::Window,
        }
    }
}

impl Account {
    pub(crate) fn of(history: &History<'_>) -> Self {
        let sendings = sendings(history);
        let mut book = Book {
            history,
            now: history.start,
            ideal: 0,
            delays: BTreeMap::new(),
            waits: Vec::new(),
            pauses: pauses(history),
            loss_reports: history.steps.iter().filter(|step| reports_loss(step)).collect(),
        };
        let rate = history.line_rate();
        let line = |step: &Step| history.wire().transmission(rate, history.frame(step.seq));
        let next = |step: &Step| {
            let bytes = history.frame(step.seq) + history.wire().gap;
            let gbps = step.gbps.filter(|gbps| *gbps > 0.0).unwrap_or_else(|| rate.as_gbps());
            let pace = Time((f64::from(bytes) * 8e3 / gbps) as u64);
            step.at + pace.max(line(step))
        };
        let begins = |s: &Sending<'_>| {
            s.step.starts_first() && history.own.contains(&s.step.seq) && s.step.at >= history.start
        };
        let first = sendings.iter().position(begins);
        let before = &sendings[..first.unwrap_or(sendings.len())];
        // The time up to the flow's first packet.
        let none = Blame::new();
        let last = before.last();
        if let Some(last) = last.filter(|last| (history.start..=history.end).contains(&last.step.at)) {
            let sent = last.step.at + line(last.step) + history.slowed(last.step);
            book.spend(sent.min(history.end), Cause::Behind);
        }
        if let Some(first) = first {
            let (after, blame) = last.map_or((book.now, &none), |last| (next(last.step), &last.blame));
            book.gap(after.max(book.now), blame, sendings[first].step);
        }
        // The time up to the decisive packet.
        let mut decisive = None;
        let own: Vec<usize> = (first.unwrap_or(sendings.len())..sendings.len())
            .filter(|&i| history.own.contains(&sendings[i].step.seq) && sendings[i].step.at <= history.end)
            .collect();
        if let Some(last) = last_decisive(history, &sendings, &own) {
            for pair in own[..=last].windows(2) {
                let (a, b) = (&sendings[pair[0]], &sendings[pair[1]]);
                let sent = (a.step.at + line(a.step)).min(b.step.at);
                match repetition(a.step) {
                    Some(why) => book.spend(sent, why),
                    None => book.ideal(sent),
                }
                book.spend((sent + history.slowed(a.step)).min(b.step.at), Cause::SlowPort);
                if pair[0] + 1 < pair[1] {
                    // The queue pair sent packets of other messages in between.
                    book.pace(next(a.step).min(b.step.at), &a.blame);
                    let why = match (book.why_idle(b.step), b.step.what) {
                        (why, EventKind::Resent) => why,
                        _ => Cause::Behind,
                    };
                    book.spend(b.step.ready.min(b.step.at), why);
                    book.port(b.step.at);
                } else {
                    book.gap(next(a.step), &a.blame, b.step);
                }
            }
            decisive = Some(sendings[own[last]].step);
        }
        book.rest(decisive, line)
    }
}

/// The decisive packet, after which the sender could not delay the flow any more, as an index of `own`. It is the
/// flow's last packet, or the repeated packet that filled the receiver's last gap, if that was sent later.
fn last_decisive(history: &History<'_>, sendings: &[Sending<'_>], own: &[usize]) -> Option<usize> {
    let step = |i: usize| sendings[own[i]].step;
    let Some(received) = history.received else { return own.len().checked_sub(1) };
    let last = (0..own.len()).rev().find(|&i| step(i).starts_first())?;
    let filled = history.steps.iter().find(|s| {
        s.at == received
            && matches!(s.what, EventKind::Arrived | EventKind::Ahead)
            && history.own.contains(&s.seq)
    });
    let filler = filled.and_then(|filled| {
        let crossing = history.crossing(history.frame(filled.seq));
        let in_time = |i: &usize| step(*i).seq == filled.seq && step(*i).at + crossing <= received;
        (0..own.len()).rev().find(in_time)
    });
    Some(filler.map_or(last, |filler| filler.max(last)))
}

/// True if a NACK reached the sender, or its retransmission timer fired.
fn reports_loss(step: &Step) -> bool {
    step.what == EventKind::TimedOut || step.what == EventKind::FeedbackReceived && step.kind == Kind::Nack
}

/// The cause of delay if the packet had been sent before; a first transmission is part of the ideal.
fn repetition(step: &Step) -> Option<Cause> {
    match step.what {
        EventKind::Resent => Some(Cause::Resent),
        _ => step.copy.then_some(Cause::Copies),
    }
}

impl Book<'_> {
    /// Divides the time from the start of the decisive packet, and returns the account.
    fn rest(mut self, decisive: Option<&Step>, line: impl Fn(&Step) -> Time) -> Account {
        let history = self.history;
        if let (Some(step), Some(received)) = (decisive, history.received) {
            let crossing = history.crossing(history.frame(step.seq));
            self.ideal((step.at + crossing).min(received));
            self.spend((self.now + history.slowed(step)).min(received), Cause::SlowPort);
            // The frame of a repeated packet is a delay, not part of the ideal.
            if let Some(again) = repetition(step) {
                let frame = i128::from(line(step).ps());
                self.ideal -= frame;
                *self.delays.entry(again).or_default() += frame;
            }
            self.spend(received, Cause::Network);
        }
        if let (Some(received), Some(acked)) = (history.received, history.acked) {
            let back = history.crossing_back(history.wire().ack);
            self.ideal((received + back).min(acked));
            self.spend(acked, Cause::AckBack);
        }
        self.spend(history.end, Cause::RunEnded);
        let ideal = history.acked.and(history.flow.ideal_fct_us);
        if let Some(ideal) = ideal {
            // Waits that the ideal includes are first subtracted from waits in the network. The rest is `InIdeal`: the
            // packets waited for it at the sender, because a later link is the slowest.
            let mut in_ideal = i128::from(ps(ideal).ps()) - self.ideal;
            for waited in [Cause::Network, Cause::AckBack] {
                let waited = self.delays.entry(waited).or_default();
                let shared = in_ideal.min(*waited);
                *waited -= shared;
                in_ideal -= shared;
            }
            *self.delays.entry(Cause::InIdeal).or_default() -= in_ideal;
        }
        // A time below line rate is measured if a single kind of cut caused it.
        let cuts = [Cause::CnpCut, Cause::NackCut, Cause::TimeoutCut];
        let kinds = cuts.iter().filter(|cut| self.delays.contains_key(cut)).count();
        let us = |ps: i128| ps as f64 / 1e6;
        let mut delays: Vec<Delay> = self
            .delays
            .iter()
            .filter(|(_, ps)| **ps != 0)
            .map(|(&cause, &ps)| {
                let measured = !(cuts.contains(&cause) && kinds > 1);
                Delay { cause, us: us(ps), measured }
            })
            .collect();
        delays.sort_by(|a, b| b.us.total_cmp(&a.us).then(a.cause.cmp(&b.cause)));
        Account {
            elapsed_us: history.end.since(history.start).as_us(),
            ideal_us: ideal,
            sending_us: ideal.is_none().then(|| us(self.ideal)),
            delays,
            waits: self.waits,
        }
    }
}
