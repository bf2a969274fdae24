//! Where a flow's time went, in pieces that add up to all of it.
//!
//! From its start to the start of its last packet every instant belongs to what then kept the sender, in this order: a frame
//! on the wire; the rate that paces what follows it; a closed window, or nothing to send; its own port, paused or
//! taken by others. From there on it is the network: the least time to the receiver is part of the ideal, what is beyond is
//! waiting; and the same for the ACK on its way back.

use crate::flow::ps;
use crate::kept::Kept;
use crate::life::Life;
use crate::trace::Step;
use engine::outcome::EventKind;
use model::{Kind, Time};
use serde::Serialize;
use std::collections::BTreeMap;

/// A piece of a flow's time beyond its ideal.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cause {
    /// What kept it.
    pub kept: Kept,
    /// For how long, us.
    pub us: f64,
    /// Measured from times of events; else shared out among those that had a part in it.
    pub measured: bool,
}

/// Where a flow's time went: `ideal_us` and the causes add up to `elapsed_us`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Account {
    /// From its start to its end, or to that of the run.
    pub elapsed_us: f64,
    /// What it takes alone on the fabric; null if it never ended.
    pub ideal_us: Option<f64>,
    /// Of a flow that never ended, what its packets took on the wire.
    pub sending_us: Option<f64>,
    /// What kept it, the longest first.
    pub causes: Vec<Cause>,
    /// Waits one by one, for the timeline: from, to, why.
    #[serde(skip)]
    pub(crate) waits: Vec<(Time, Time, Kept)>,
}

/// By which cuts the rate is what it is: how much each kind took, as logarithms.
type Blame = BTreeMap<Kept, f64>;

/// A packet that was sent, and what its rate is due to.
struct Sending<'a> {
    step: &'a Step,
    blame: Blame,
}

/// All packets that the queue pair sent, in order.
fn sendings<'a>(life: &Life<'a>) -> Vec<Sending<'a>> {
    let line = life.line_rate().as_gbps();
    let (mut blame, mut rate) = (Blame::new(), None);
    let mut sendings = Vec::new();
    let mut cuts = life.cuts.iter().peekable();
    for (i, step) in life.steps.iter().enumerate() {
        while let Some(cut) = cuts.next_if(|cut| cut.seen == i) {
            let taken = (cut.from / cut.to.max(1e-9)).ln() / cut.by.len().max(1) as f64;
            cut.by.iter().for_each(|by| *blame.entry(*by).or_default() += taken);
        }
        rate = step.gbps.or(rate);
        if step.starts() {
            // Back at line rate nothing of earlier cuts is left.
            if rate.is_some_and(|rate| rate >= line * 0.999) {
                blame.clear();
            }
            sendings.push(Sending { step, blame: blame.clone() });
        }
    }
    sendings
}

/// The pieces, as they are found.
struct Book<'a> {
    life: &'a Life<'a>,
    /// Up to here time is accounted for.
    now: Time,
    /// Part of the ideal.
    ideal: i128,
    kept: BTreeMap<Kept, i128>,
    waits: Vec<(Time, Time, Kept)>,
    /// When the sender's port was paused, one after the other.
    pauses: Vec<(Time, Time)>,
    /// NACKs that reached the sender, and its timeouts.
    news: Vec<&'a Step>,
}

impl Book<'_> {
    /// Time up to `until` was part of the ideal.
    fn ideal(&mut self, until: Time) {
        self.ideal += i128::from(until.since(self.now).ps());
        self.now = self.now.max(until);
    }

    /// Time up to `until` was due to `why`.
    fn spend(&mut self, until: Time, why: Kept) {
        if until <= self.now {
            return;
        }
        *self.kept.entry(why).or_default() += i128::from(until.since(self.now).ps());
        match self.waits.last_mut() {
            Some((_, to, last)) if *last == why && *to == self.now => *to = until,
            _ => self.waits.push((self.now, until, why)),
        }
        self.now = until;
    }

    /// Time up to `until` was due to a rate below line rate, and that to the cuts in `blame`, each as far as it cut.
    fn pace(&mut self, until: Time, blame: &Blame) {
        let lost = i128::from(until.since(self.now).ps());
        let whole: f64 = blame.values().sum();
        let mut left = lost;
        for (why, part) in blame.iter().skip(1) {
            let share = ((lost as f64 * part / whole) as i128).clamp(0, left);
            *self.kept.entry(*why).or_default() += share;
            left -= share;
        }
        if left > 0 {
            *self.kept.entry(blame.keys().next().copied().unwrap_or(Kept::Pace)).or_default() += left;
        }
        self.now = self.now.max(until);
    }

    /// Time up to `until` the packet stood at its port: paused, or behind something else.
    fn port(&mut self, until: Time) {
        let over = self.pauses.partition_point(|(_, to)| *to <= self.now);
        for i in over..self.pauses.len() {
            let (from, to) = self.pauses[i];
            if from >= until {
                break;
            }
            self.spend(from.min(until), Kept::Port);
            self.spend(to.min(until), Kept::Paused);
        }
        self.spend(until, Kept::Port);
    }

    /// From packet `a` (or the flow's start), after which the next one may start at `next`, to packet `b` with nothing sent
    /// between them.
    fn gap(&mut self, next: Time, blame: &Blame, b: &Step) {
        // Rates are noted in whole bits per second: a nanosecond is more than that makes in any gap.
        let next = if b.ready.since(next) <= Time::from_ns(1) { b.ready } else { next };
        self.pace(next.min(b.at), blame);
        let why = self.why_idle(b);
        self.spend(b.ready.min(b.at), why);
        self.port(b.at);
    }

    /// Why nothing was sent before `b` was ready.
    fn why_idle(&self, b: &Step) -> Kept {
        let after = self.news.partition_point(|step| step.at <= b.ready);
        let news = after.checked_sub(1).map(|last| self.news[last]);
        match news {
            Some(step) if step.at > self.now && step.what == EventKind::TimedOut => Kept::UntilTimeout,
            Some(step) if step.at > self.now && b.what == EventKind::Resent => Kept::UntilNack,
            _ => Kept::Window,
        }
    }
}

impl Account {
    pub(crate) fn of(life: &Life<'_>) -> Self {
        let sendings = sendings(life);
        let mut book = Book {
            life,
            now: life.start,
            ideal: 0,
            kept: BTreeMap::new(),
            waits: Vec::new(),
            pauses: pauses(life),
            news: life.steps.iter().filter(|step| tells_of_loss(step)).collect(),
        };
        let rate = life.line_rate();
        let line = |step: &Step| life.wire().transmission(rate, life.frame(step.seq));
        let next = |step: &Step| {
            let bytes = life.frame(step.seq) + life.wire().gap;
            let gbps = step.gbps.filter(|gbps| *gbps > 0.0).unwrap_or_else(|| rate.as_gbps());
            let pace = Time((f64::from(bytes) * 8e3 / gbps) as u64);
            step.at + pace.max(line(step))
        };
        let begins = |s: &Sending<'_>| {
            s.step.starts_first() && life.own.contains(&s.step.seq) && s.step.at >= life.start
        };
        let first = sendings.iter().position(begins);
        let before = &sendings[..first.unwrap_or(sendings.len())];
        // Up to its first packet.
        let none = Blame::new();
        let last = before.last();
        if let Some(last) = last.filter(|last| (life.start..=life.end).contains(&last.step.at)) {
            book.spend((last.step.at + line(last.step)).min(life.end), Kept::Behind);
        }
        if let Some(first) = first {
            let (after, blame) = last.map_or((book.now, &none), |last| (next(last.step), &last.blame));
            book.gap(after.max(book.now), blame, sendings[first].step);
        }
        // Up to the last packet that decided.
        let mut decisive = None;
        let own: Vec<usize> = (first.unwrap_or(sendings.len())..sendings.len())
            .filter(|&i| life.own.contains(&sendings[i].step.seq) && sendings[i].step.at <= life.end)
            .collect();
        if let Some(last) = last_decisive(life, &sendings, &own) {
            for pair in own[..=last].windows(2) {
                let (a, b) = (&sendings[pair[0]], &sendings[pair[1]]);
                let sent = (a.step.at + line(a.step)).min(b.step.at);
                match repetition(a.step) {
                    Some(why) => book.spend(sent, why),
                    None => book.ideal(sent),
                }
                if pair[0] + 1 < pair[1] {
                    // Other messages of the queue pair went in between.
                    book.pace(next(a.step).min(b.step.at), &a.blame);
                    let why = match (book.why_idle(b.step), b.step.what) {
                        (why, EventKind::Resent) => why,
                        _ => Kept::Behind,
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

/// The packet after which nothing that the sender did could delay the flow any more: its last one, or the copy by
/// which the last gap at the receiver was filled, if that started later. An index of `own`.
fn last_decisive(life: &Life<'_>, sendings: &[Sending<'_>], own: &[usize]) -> Option<usize> {
    let step = |i: usize| sendings[own[i]].step;
    let Some(received) = life.received else { return own.len().checked_sub(1) };
    let last = (0..own.len()).rev().find(|&i| step(i).starts_first())?;
    let filled = life.steps.iter().find(|s| {
        s.at == received
            && matches!(s.what, EventKind::Arrived | EventKind::Ahead)
            && life.own.contains(&s.seq)
    });
    let filler = filled.and_then(|filled| {
        let crossing = life.crossing(life.frame(filled.seq));
        let in_time = |i: &usize| step(*i).seq == filled.seq && step(*i).at + crossing <= received;
        (0..own.len()).rev().find(in_time)
    });
    Some(filler.map_or(last, |filler| filler.max(last)))
}

/// A NACK has reached the sender, or its timer has fired.
fn tells_of_loss(step: &Step) -> bool {
    step.what == EventKind::TimedOut || step.what == EventKind::FeedbackReceived && step.kind == Kind::Nack
}

/// The cause of delay that the frame of this packet is; `None` for the first sending, which is part of the ideal.
fn repetition(step: &Step) -> Option<Kept> {
    match step.what {
        EventKind::Resent => Some(Kept::Resent),
        _ => step.copy.then_some(Kept::Copies),
    }
}

/// When the sender's port was paused.
fn pauses(life: &Life<'_>) -> Vec<(Time, Time)> {
    let mut pauses = Vec::new();
    let mut since = None;
    for step in life.steps {
        match step.what {
            EventKind::Paused => since = Some(step.at),
            EventKind::Resumed => pauses.extend(since.take().map(|since| (since, step.at))),
            _ => {}
        }
    }
    pauses.extend(since.map(|since| (since, Time::NEVER)));
    pauses
}

impl Book<'_> {
    /// From the start of the decisive packet on, and all of it.
    fn rest(mut self, decisive: Option<&Step>, line: impl Fn(&Step) -> Time) -> Account {
        let life = self.life;
        if let (Some(step), Some(received)) = (decisive, life.received) {
            let crossing = life.crossing(life.frame(step.seq));
            self.ideal((step.at + crossing).min(received));
            // The frame of a packet that had to be sent again is none of the ideal's.
            if let Some(again) = repetition(step) {
                let frame = i128::from(line(step).ps());
                self.ideal -= frame;
                *self.kept.entry(again).or_default() += frame;
            }
            self.spend(received, Kept::Network);
        }
        if let (Some(received), Some(acked)) = (life.received, life.acked) {
            let back = life.crossing_back(life.wire().ack);
            self.ideal((received + back).min(acked));
            self.spend(acked, Kept::AckBack);
        }
        self.spend(life.end, Kept::RunEnded);
        let ideal = life.acked.and(life.flow.ideal_fct_us);
        if let Some(ideal) = ideal {
            // What the ideal waits, too, it waits in the network; or its sender does, if a later link is the slowest.
            let mut in_ideal = i128::from(ps(ideal).ps()) - self.ideal;
            for waited in [Kept::Network, Kept::AckBack] {
                let waited = self.kept.entry(waited).or_default();
                let there = in_ideal.min(*waited);
                *waited -= there;
                in_ideal -= there;
            }
            *self.kept.entry(Kept::InIdeal).or_default() -= in_ideal;
        }
        // A share is measured if only one thing can have it.
        let cuts = [Kept::CnpCut, Kept::NackCut, Kept::TimeoutCut];
        let kinds = cuts.iter().filter(|cut| self.kept.contains_key(cut)).count();
        let us = |ps: i128| ps as f64 / 1e6;
        let mut causes: Vec<Cause> = self
            .kept
            .iter()
            .filter(|(_, ps)| **ps != 0)
            .map(|(&kept, &ps)| {
                let measured = !(cuts.contains(&kept) && kinds > 1);
                Cause { kept, us: us(ps), measured }
            })
            .collect();
        causes.sort_by(|a, b| b.us.total_cmp(&a.us).then(a.kept.cmp(&b.kept)));
        Account {
            elapsed_us: life.end.since(life.start).as_us(),
            ideal_us: ideal,
            sending_us: ideal.is_none().then(|| us(self.ideal)),
            causes,
            waits: self.waits,
        }
    }
}
